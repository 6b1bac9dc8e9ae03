//! `cargo flock`: flock files, flash images, keys and captures.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use bellwether::cells::BootEpoch;
use bellwether::id::NodeId;
use bellwether_flock::board::{ALL as BOARDS, Board};
use bellwether_flock::edit::{Edit, Rotation};
use bellwether_flock::image::Contents;
use bellwether_flock::open::Opener;
use bellwether_flock::{example, pcap, save, show};
use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(name = "cargo flock", about = "Flock files, and the flash images made from them")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Writes a commented flock file with a fresh root key
    New {
        file: PathBuf,
        #[arg(long, value_parser = clap::value_parser!(u8).range(1..=64))]
        nodes: u8,
        /// The name of the network [default: the name of the file]
        #[arg(long)]
        name: Option<String>,
        #[arg(long, default_value = "bully", value_parser = ["bully", "invitation", "ring"])]
        algorithm: String,
        /// The kind of the boards
        #[arg(long, default_value = "sf2")]
        board: String,
    },
    /// Makes one flash image per member and counts their incarnations in the file
    Make {
        file: PathBuf,
        #[arg(long)]
        out: PathBuf,
        /// Only this member, for a board that is replaced
        #[arg(long)]
        only: Option<u8>,
    },
    /// Says what a flash image holds; never the bytes of a key
    Show {
        image: PathBuf,
        #[arg(long, default_value = "sf2")]
        board: String,
    },
    /// Adds a key; then --switch to it; then --drop-old
    Rotate {
        file: PathBuf,
        /// Send with the new key; the old one is still accepted
        #[arg(long, conflicts_with = "drop_old")]
        switch: bool,
        /// Forget the old key
        #[arg(long)]
        drop_old: bool,
    },
    /// Opens the sealed datagrams of a capture
    Open {
        capture: PathBuf,
        #[arg(long)]
        flock: PathBuf,
        #[arg(long)]
        out: PathBuf,
    },
}

/// What went wrong, and whose fault it is.
enum Failure {
    /// Exit code 2: nothing was changed.
    Input(String),
    /// Exit code 1.
    Host(String),
}

fn main() -> ExitCode {
    let (what, code) = match run(Arguments::parse().command) {
        Ok(()) => return ExitCode::SUCCESS,
        Err(Failure::Input(what)) => (what, 2),
        Err(Failure::Host(what)) => (what, 1),
    };
    eprintln!("{what}");
    ExitCode::from(code)
}

fn run(command: Command) -> Result<(), Failure> {
    match command {
        Command::New { file, nodes, name, algorithm, board } => {
            new(&file, nodes, name, &algorithm, named(&board)?)
        }
        Command::Make { file, out, only } => make(&file, &out, only),
        Command::Show { image, board } => {
            let board = named(&board)?;
            let bad = |what| Failure::Input(format!("{}: {what}", image.display()));
            print!("{}", show::show(board, read(&image)?).map_err(bad)?);
            Ok(())
        }
        Command::Rotate { file, switch, drop_old } => {
            let step = match (switch, drop_old) {
                (true, _) => Rotation::Switch,
                (_, true) => Rotation::DropOld,
                _ => Rotation::Add,
            };
            let _alone = save::lock(&file).map_err(Failure::Input)?;
            let mut edit = read_flock(&file)?;
            let said = edit.rotate(step).map_err(Failure::Input)?;
            edit.save(&file).map_err(Failure::Host)?;
            println!("{said}");
            Ok(())
        }
        Command::Open { capture, flock, out } => open(&capture, &flock, &out),
    }
}

fn named(board: &str) -> Result<&'static Board, Failure> {
    Board::named(board).ok_or_else(|| {
        let allowed = BOARDS.each_ref().map(|board| board.name).join(", ");
        Failure::Input(format!("there is no board {board:?}; allowed: {allowed}"))
    })
}

fn read(path: &Path) -> Result<Vec<u8>, Failure> {
    std::fs::read(path).map_err(|error| Failure::Input(format!("{}: {error}", path.display())))
}

fn read_flock(path: &Path) -> Result<Edit, Failure> {
    let name = path.display().to_string();
    let text = String::from_utf8(read(path)?)
        .map_err(|_| Failure::Input(format!("{name}:1: no UTF-8; allowed: TOML")))?;
    if let Some(warning) = save::warning(path) {
        eprintln!("{warning}");
    }
    Edit::parse(&name, &text).map_err(Failure::Input)
}

fn new(
    file: &Path,
    nodes: u8,
    name: Option<String>,
    algorithm: &str,
    board: &Board,
) -> Result<(), Failure> {
    let stem = || file.file_stem().map(|stem| stem.to_string_lossy().into_owned());
    let name = name.or_else(stem).filter(|name| !name.trim().is_empty());
    let name = name.ok_or_else(|| Failure::Input("--name NAME is missing".into()))?;
    let text = example::example(&name, algorithm, board, nodes).map_err(Failure::Host)?;
    // A file that this program cannot read is not written.
    Edit::parse(&file.display().to_string(), &text).map_err(Failure::Input)?;
    if file.exists() {
        let what = format!("{} exists already; nothing was written", file.display());
        return Err(Failure::Input(what));
    }
    save::create(file, text.as_bytes()).map_err(Failure::Host)?;
    println!("{}: a flock of {nodes} with a new key; only you can read the file", file.display());
    println!("next: look at its times, then `cargo flock make {} --out DIR`", file.display());
    Ok(())
}

fn make(file: &Path, out: &Path, only: Option<u8>) -> Result<(), Failure> {
    // From reading the counts to saving them: two runs at once must not count the same.
    let alone = save::lock(file).map_err(Failure::Input)?;
    let mut edit = read_flock(file)?;
    let ids: Vec<NodeId> = match only {
        None => edit.flock.members.iter().map(|member| member.id).collect(),
        Some(id) => {
            vec![NodeId::new(id).ok_or_else(|| Failure::Input("node ids start at 1".into()))?]
        }
    };
    let mut images = Vec::new();
    for id in ids {
        let incarnation = edit.count_incarnation(id).map_err(Failure::Input)?;
        let contents = Contents::of(&edit.flock, id, incarnation).map_err(Failure::Input)?;
        let image = contents.image(edit.flock.board).map_err(Failure::Host)?;
        images.push((id, incarnation, image));
    }
    // Counted before any image exists: no two boards can get the same incarnation.
    edit.save(file).map_err(Failure::Host)?;
    drop(alone);
    let failed = |error: std::io::Error| Failure::Host(format!("{}: {error}", out.display()));
    std::fs::create_dir_all(out).map_err(failed)?;
    for (id, incarnation, image) in images {
        let path = out.join(format!("node-{id}.bin"));
        save::replace(&path, &image).map_err(Failure::Host)?;
        let path = path.display().to_string();
        println!("{path}: node {id}, incarnation {incarnation}, {} bytes", image.len());
        println!("    {}", edit.flock.board.how_to_write(&path));
    }
    println!(
        "each image is for one board, once: two boards with one image reuse nonces. An incarnation \
         can boot {} times",
        BootEpoch::BOOTS_MAX
    );
    Ok(())
}

fn open(capture: &Path, flock: &Path, out: &Path) -> Result<(), Failure> {
    let flock = read_flock(flock)?.flock;
    let keys = flock.link_keys().map_err(Failure::Host)?;
    let opener = Opener { network: flock.network, port: flock.port, keys };
    let named = |what| Failure::Input(format!("{}: {what}", capture.display()));
    let frames = pcap::read(&read(capture)?).map_err(named)?;
    let (opened, fates) = opener.frames(&frames);
    save::replace(out, &pcap::write(&opened)).map_err(Failure::Host)?;
    println!("{}: {} frames", out.display(), frames.len());
    for (fate, count) in fates {
        println!("{count:9} {fate}");
    }
    Ok(())
}
