//! `cargo flock` from the outside: files, images, keys, exit codes.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use bellwether::cells::BootEpoch;
use bellwether_flash::read::read;
use bellwether_flock::board::Board;
use bellwether_flock::file::Flock;

/// Exit code, and both outputs together.
fn flock(arguments: &[&str]) -> (i32, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_bellwether-flock")).args(arguments).output();
    let output = output.unwrap();
    let text = [output.stdout, output.stderr].concat();
    (output.status.code().unwrap(), String::from_utf8(text).unwrap())
}

struct Folder {
    _folder: tempfile::TempDir,
    file: PathBuf,
    out: PathBuf,
}

impl Folder {
    /// A folder with the file of a new flock.
    fn new(nodes: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (file, out) = (folder.path().join("barn.toml"), folder.path().join("images"));
        let (code, said) = flock(&["new", file.to_str().unwrap(), "--nodes", nodes]);
        assert_eq!(code, 0, "{said}");
        Self { _folder: folder, file, out }
    }

    fn file(&self) -> &str {
        self.file.to_str().unwrap()
    }

    fn read(&self) -> Flock {
        Flock::parse("barn.toml", &fs::read_to_string(&self.file).unwrap()).unwrap()
    }

    fn make(&self, more: &[&str]) -> (i32, String) {
        let arguments = [&["make", self.file(), "--out", self.out.to_str().unwrap()], more];
        flock(&arguments.concat())
    }

    fn cells(&self, id: u8) -> bellwether_flash::read::Cells {
        let bytes = fs::read(self.image(id)).unwrap();
        read(&Board::named("sf2").unwrap().image(bytes).unwrap()).unwrap()
    }

    fn image(&self, id: u8) -> PathBuf {
        self.out.join(format!("node-{id}.bin"))
    }
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn a_new_file_is_secret_commented_and_never_overwritten() {
    let folder = Folder::new("5");
    assert_eq!(mode(&folder.file), 0o600);
    let text = fs::read_to_string(&folder.file).unwrap();
    assert!(text.contains("network = \"barn\"") && text.contains("# Tm:"), "{text}");
    assert_eq!(folder.read().members.len(), 5);
    let (code, said) = flock(&["new", folder.file(), "--nodes", "3"]);
    assert!(code == 2 && said.contains("exists already"), "{said}");
    assert_eq!(fs::read_to_string(&folder.file).unwrap(), text);
    let other = Folder::new("5");
    assert_ne!(folder.read().keys, other.read().keys, "keys are random");
    let (code, _) = flock(&["new", "/nowhere/at/all.toml", "--nodes", "65"]);
    assert_eq!(code, 2);
}

#[test]
fn images_for_boards_that_can_be_bought_have_their_cells_and_their_address() {
    let boards = [
        ("nucleo-h563zi", 80, "STM32H563ZITx --binary-format bin --base-address 0x8100000"),
        ("w5500-evb-pico2", 64, "RP235x --binary-format bin --base-address 0x101f0000"),
        ("nucleo-f429zi", 768, "STM32F429ZITx --binary-format bin --base-address 0x8120000"),
    ];
    for (board, kib, place) in boards {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("barn.toml");
        let (file, out) = (file.to_str().unwrap(), folder.path().to_str().unwrap());
        let (code, said) = flock(&["new", file, "--nodes", "2", "--board", board]);
        assert_eq!(code, 0, "{said}");
        let (code, said) = flock(&["make", file, "--out", out]);
        assert!(code == 0 && said.contains(place), "{said}");
        let image = folder.path().join("node-2.bin");
        assert_eq!(fs::metadata(&image).unwrap().len(), kib << 10);
        let (code, said) = flock(&["show", image.to_str().unwrap(), "--board", board]);
        assert!(code == 0 && said.contains("2 of network"), "{said}");
    }
    let (code, said) = flock(&["new", "/nowhere/at/all.toml", "--nodes", "2", "--board", "sf3"]);
    assert!(code == 2 && said.contains("allowed: sf2, nucleo-h563zi"), "{said}");
}

#[test]
fn each_making_is_a_new_incarnation_above_all_epochs_of_the_last() {
    let folder = Folder::new("3");
    for (round, incarnation) in [(0, 1), (1, 2)] {
        let (code, said) = folder.make(&[]);
        assert_eq!(code, 0, "{said}");
        assert!(said.contains("truncate -s 16777216") && said.contains("at 0x0"), "{said}");
        for id in 1..=3 {
            assert_eq!(mode(&folder.image(id)), 0o600);
            let cells = folder.cells(id);
            assert_eq!(cells.incarnation, Some(incarnation), "round {round}");
            assert_eq!(cells.epoch, BootEpoch::first_of(incarnation).map(|epoch| epoch.0));
        }
        assert!(folder.read().members.iter().all(|member| member.incarnation == incarnation));
    }
    let before = fs::read(folder.image(1)).unwrap();
    let (code, said) = folder.make(&["--only", "2"]);
    assert_eq!(code, 0, "{said}");
    let counted: Vec<u32> = folder.read().members.iter().map(|member| member.incarnation).collect();
    assert_eq!(counted, [2, 3, 2]);
    assert_eq!(fs::read(folder.image(1)).unwrap(), before);
    assert_eq!(mode(&folder.file), 0o600);
    assert!(!folder.file.with_extension("toml.new").exists());
    let text = fs::read_to_string(&folder.file).unwrap();
    assert!(text.contains("# counted by `cargo flock make`"), "comments stay: {text}");

    let (code, said) = folder.make(&["--only", "9"]);
    assert!(code == 2 && said.contains("no member 9; allowed: 1, 2, 3"), "{said}");
    fs::write(&folder.file, text.replace("incarnation = 3", "incarnation = 1023")).unwrap();
    let (code, said) = folder.make(&["--only", "2"]);
    assert!(code == 2 && said.contains("no boot epochs left"), "{said}");
}

#[test]
fn a_member_that_was_deleted_and_comes_back_goes_on_where_it_was() {
    let folder = Folder::new("3");
    for _ in 0..2 {
        assert_eq!(folder.make(&[]).0, 0);
    }
    let text = fs::read_to_string(&folder.file).unwrap();
    let member = text.rfind("\n[[member]]\nid = 3").unwrap();
    fs::write(&folder.file, &text[..member]).unwrap();
    assert_eq!(folder.make(&[]).0, 0);
    assert_eq!(folder.read().members.len(), 2);
    let without = fs::read_to_string(&folder.file).unwrap();

    fs::write(&folder.file, format!("{without}\n[[member]]\nid = 3\nincarnation = 0\n")).unwrap();
    let (code, said) = folder.make(&[]);
    assert!(code == 2 && said.contains("allowed: at least 2, as in `made`"), "{said}");
    fs::write(&folder.file, format!("{without}\n[[member]]\nid = 3\n")).unwrap();
    let (code, said) = folder.make(&["--only", "3"]);
    assert!(code == 0 && said.contains("node 3, incarnation 3"), "{said}");
    assert_eq!(folder.cells(3).epoch, BootEpoch::first_of(3).map(|epoch| epoch.0));
}

#[test]
fn two_that_make_at_once_never_count_the_same() {
    let folder = Folder::new("2");
    let out = folder.out.to_str().unwrap();
    let runs: Vec<_> = (0..8)
        .map(|run| {
            let out = format!("{out}-{run}");
            let arguments = ["make", folder.file(), "--only", "1", "--out", &out];
            Command::new(env!("CARGO_BIN_EXE_bellwether-flock"))
                .args(arguments)
                .stdout(std::process::Stdio::piped())
                .spawn()
                .unwrap()
        })
        .collect();
    let mut counted: Vec<String> = runs
        .into_iter()
        .map(|run| {
            let output = run.wait_with_output().unwrap();
            assert!(output.status.success());
            let said = String::from_utf8(output.stdout).unwrap();
            said.split("incarnation ").nth(1).unwrap().split(',').next().unwrap().to_owned()
        })
        .collect();
    counted.sort();
    assert_eq!(counted, ["1", "2", "3", "4", "5", "6", "7", "8"]);
}

#[test]
fn an_image_boots_as_the_file_says_and_shows_no_key() {
    let folder = Folder::new("4");
    folder.make(&[]);
    let shown = |id| {
        let (code, said) = flock(&["show", folder.image(id).to_str().unwrap()]);
        assert_eq!(code, 0, "{said}");
        said
    };
    let said = shown(3);
    let number = folder.read().network;
    for expected in [
        "Complete; copies Good and Good".to_owned(),
        format!("node          3 of network {number}"),
        format!("10.66.{}.3:4711", number.to_le_bytes()[0]),
        "members       1, 2, 3, 4".into(),
        "keys          send with 1\n".into(),
        "incarnation   1\n".into(),
        "boot epoch    4194304\n".into(),
        "last state    none".into(),
    ] {
        assert!(said.contains(&expected), "{expected}: {said}");
    }
    let flock_file = folder.read();
    let link = flock_file.link_keys().unwrap();
    let cells = folder.cells(3);
    assert_eq!(cells.keys, Some(link.clone()));
    let root = flock_file.keys[0].key.to_hex();
    let printed = format!("{said}{cells:?}{flock_file:?}{link:?}").to_lowercase();
    for secret in [root.as_str(), &hex(link.send.key.bytes())] {
        assert!(!printed.contains(secret), "a key is shown");
    }
    let decimal = format!("{:?}", &link.send.key.bytes()[..4]);
    assert!(!printed.contains(decimal.trim_matches(['[', ']'])), "a key is shown");
    // And the root key is not on the board at all.
    let image = fs::read(folder.image(3)).unwrap();
    let root: Vec<u8> =
        (0..32).map(|at| u8::from_str_radix(&root[2 * at..2 * at + 2], 16).unwrap()).collect();
    assert!(!image.windows(8).any(|here| root.windows(8).any(|part| part == here)));
    assert!(image.windows(32).any(|here| here == link.send.key.bytes()));
}

#[test]
fn a_flock_moves_from_key_to_key_in_three_steps() {
    let folder = Folder::new("2");
    let rotate = |more: &[&str]| flock(&[&["rotate", folder.file()], more].concat());
    let ids = || {
        let flock = folder.read();
        (flock.send, flock.keys.iter().map(|root| root.id).collect::<Vec<_>>())
    };
    assert_eq!(rotate(&["--switch"]).0, 2);
    assert_eq!(rotate(&["--drop-old"]).0, 2);
    let old = folder.read().keys[0].clone();
    let (code, said) = rotate(&[]);
    assert!(code == 0 && said.contains("key 2 was added") && said.contains("--switch"), "{said}");
    assert_eq!(ids(), (1, vec![1, 2]));
    assert_eq!(rotate(&[]).0, 2);
    assert_eq!(rotate(&["--drop-old"]).0, 2, "the new key must not be dropped");
    folder.make(&[]);
    let keys = folder.cells(1).keys.unwrap();
    assert_eq!((keys.send.id, keys.other.map(|slot| slot.id)), (1, Some(2)));

    let (code, said) = rotate(&["--switch"]);
    assert!(code == 0 && said.contains("--drop-old"), "{said}");
    assert_eq!(ids(), (2, vec![1, 2]));
    assert_eq!(rotate(&["--switch"]).0, 2);
    let (code, said) = rotate(&["--drop-old"]);
    assert!(code == 0 && said.contains("only key 2"), "{said}");
    assert_eq!(ids(), (2, vec![2]));
    assert!(!fs::read_to_string(&folder.file).unwrap().contains(old.key.to_hex().as_str()));
    assert_eq!(mode(&folder.file), 0o600);
    assert_eq!(rotate(&["--switch", "--drop-old"]).0, 2);
}

#[test]
fn bad_input_is_refused_with_file_and_line_and_changes_nothing() {
    let folder = Folder::new("2");
    let text = fs::read_to_string(&folder.file).unwrap().replace("tm_ms", "tm");
    fs::write(&folder.file, &text).unwrap();
    let (code, said) = folder.make(&[]);
    assert!(code == 2 && said.contains("barn.toml:10: unknown key `tm`"), "{said}");
    assert!(!folder.out.exists());
    assert_eq!(fs::read_to_string(&folder.file).unwrap(), text);
    assert_eq!(flock(&["show", folder.file()]).0, 2);
    assert_eq!(flock(&["show", "/nowhere"]).0, 2);
    assert_eq!(flock(&["show", folder.file(), "--board", "sf3"]).0, 2);
    fs::set_permissions(&folder.file, fs::Permissions::from_mode(0o644)).unwrap();
    assert!(folder.make(&[]).1.contains("warning: others can read the keys"));
}
