//! The lab as a program: started, stopped and judged from outside.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open};

use crate::folder;

type Test = fn() -> Result<String, String>;

pub const TESTS: [(&str, Test); 7] = [
    ("a false expectation is found out", false_expectation),
    ("five boards settle within five seconds", soon_settled),
    ("two labs at once", two_at_once),
    ("a killed lab leaves no board behind", killed),
    ("a host that stalls resets no board", host_stalls),
    ("a board that stalls alone is reset", board_stalls),
    ("on the host's clock the lab says so, and judges", host_clock),
];

/// Many times Tp.
const STALL: Duration = Duration::from_millis(300);

/// Power to settled, five boards.
const SETTLED_MAX_S: f64 = 5.0;
/// How long a process that was killed may take to go.
const GOING: Duration = Duration::from_secs(5);

fn lab(arguments: &[&str]) -> Result<Child, String> {
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| format!("the lab could not be started: {error}"))
}

/// The exit code of a lab, and all that it printed since it was last read.
fn ended(lab: Child) -> Result<(Option<i32>, String), String> {
    let output = lab.wait_with_output().map_err(|error| error.to_string())?;
    let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    Ok((output.status.code(), said))
}

/// The judge must be able to say no: the lower of two boards cannot win.
fn false_expectation() -> Result<String, String> {
    let text = "name = \"wrong\"\nalgorithm = \"bully\"\nnodes = 2\nduration_ms = 4000\ntm_ms = 40\n\
                tp_ms = 100\n[[expect]]\nnodes = [1, 2]\ncoordinator = 1\n";
    let folder = folder::create().map_err(|error| error.to_string())?;
    let path = folder.path().join("wrong.toml");
    std::fs::write(&path, text).map_err(|error| error.to_string())?;
    let (code, said) = ended(lab(&["--quiet", &path.display().to_string()])?)?;
    if code == Some(1) && said.contains("coordinator") && said.contains("replay: cargo lab") {
        return Ok(String::new());
    }
    Err(format!("exit code {code:?}: {said}"))
}

/// When the flock was settled first, as the lab says at its end.
fn settled_s(said: &str) -> Option<f64> {
    let line = said.lines().find_map(|line| line.strip_prefix("settled: "))?;
    line.split_once(" s under")?.0.parse().ok()
}

fn soon_settled() -> Result<String, String> {
    let (code, said) = ended(lab(&["--headless", "--nodes", "5", "--duration-ms", "7000"])?)?;
    match settled_s(&said) {
        Some(seconds) if code == Some(0) && seconds <= SETTLED_MAX_S => Ok(format!("{seconds} s")),
        Some(seconds) if code == Some(0) => Err(format!("only after {seconds} s")),
        _ => Err(format!("exit code {code:?}: {said}")),
    }
}

fn two_at_once() -> Result<String, String> {
    let start = || lab(&["--quiet", "--nodes", "2", "--duration-ms", "6000"]);
    let labs = [start()?, start()?];
    let mut seen = Vec::new();
    for lab in labs {
        let (code, said) = ended(lab)?;
        match settled_s(&said) {
            Some(seconds) if code == Some(0) => seen.push(format!("{seconds} s")),
            _ => return Err(format!("exit code {code:?}: {said}")),
        }
    }
    Ok(seen.join(" and "))
}

/// The processes whose parent this is, with their names.
fn children(parent: u32) -> Vec<(u32, String)> {
    let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let child = |entry: std::fs::DirEntry| {
        let id: u32 = entry.file_name().to_str()?.parse().ok()?;
        let stat = std::fs::read_to_string(entry.path().join("stat")).ok()?;
        let (name, rest) = stat.split_once('(')?.1.rsplit_once(") ")?;
        let of: u32 = rest.split(' ').nth(1)?.parse().ok()?;
        (of == parent).then(|| (id, name.to_owned()))
    };
    processes.filter_map(child).collect()
}

/// The QEMUs of a lab.
fn boards(lab: &Child) -> Vec<u32> {
    let qemus = children(lab.id()).into_iter().filter(|(_, name)| name.starts_with("qemu"));
    qemus.map(|(id, _)| id).collect()
}

/// Reads on until the lab says this, or ends; whether it did, and its output from there on.
fn says(lab: &mut Child, what: &str) -> Result<(bool, BufReader<ChildStdout>), String> {
    let mut output = BufReader::new(lab.stdout.take().ok_or("the lab has no output")?);
    let said = output.by_ref().lines().map_while(Result::ok).any(|line| line.contains(what));
    Ok((said, output))
}

/// A settled flock of three is stalled in some way; the exit code of its lab, and what that said after.
fn stalled(stall: fn(lab: u32, boards: &[u32])) -> Result<(Option<i32>, String), String> {
    let run = "--headless --nodes 3 --tm-ms 20 --tp-ms 20 --duration-ms 5000";
    let mut lab = lab(&run.split(' ').collect::<Vec<_>>())?;
    let (settled, mut output) = says(&mut lab, "settled under")?;
    let boards = boards(&lab);
    if settled && boards.len() == 3 {
        stall(lab.id(), &boards);
    }
    let mut said = String::new();
    output.read_to_string(&mut said).map_err(|error| error.to_string())?;
    let (code, errors) = ended(lab)?;
    if settled { Ok((code, said + &errors)) } else { Err(format!("it did not settle: {errors}")) }
}

fn signal(process: u32, signal: Signal) {
    if let Some(process) = Pid::from_raw(process as i32) {
        // Who has gone shows it in the lab's report.
        let _ = kill_process(process, signal);
    }
}

/// As a virtual machine whose cores are taken away: all stand still, the lab first, and go on in reverse.
fn host_stalls() -> Result<String, String> {
    let (code, said) = stalled(|lab, boards| {
        signal(lab, Signal::STOP);
        boards.iter().for_each(|board| signal(*board, Signal::STOP));
        std::thread::sleep(STALL);
        boards.iter().rev().for_each(|board| signal(*board, Signal::CONT));
        signal(lab, Signal::CONT);
    })?;
    let once = said.lines().any(|line| line.starts_with("settled: ") && !line.contains(','));
    if code == Some(0) && once && said.contains("resets: none") {
        return Ok(format!("{} ms", STALL.as_millis()));
    }
    Err(format!("exit code {code:?}: {said}"))
}

/// The others go on, and so does the clock.
fn board_stalls() -> Result<String, String> {
    let (code, said) = stalled(|_, boards| {
        signal(boards[0], Signal::STOP);
        std::thread::sleep(STALL);
        signal(boards[0], Signal::CONT);
    })?;
    // Nobody told the lab: to the lab it is a board that missed its deadline.
    let reset = said.lines().any(|line| line.starts_with("resets: node ") && !line.contains(','));
    if code == Some(1) && reset && said.contains("missed a deadline") {
        return Ok(format!("{} ms", STALL.as_millis()));
    }
    Err(format!("exit code {code:?}: {said}"))
}

/// Whatever the host makes of it: a verdict, or that there is none.
fn host_clock() -> Result<String, String> {
    let run = "--host-clock --quiet --nodes 2 --duration-ms 4000";
    let (code, said) = ended(lab(&run.split(' ').collect::<Vec<_>>())?)?;
    let told = said.contains("the boards go by the host's clock") && said.contains("host late ");
    match code {
        Some(0) if told => Ok("held".into()),
        Some(3) if told && said.contains("inconclusive") => Ok("inconclusive".into()),
        _ => Err(format!("exit code {code:?}: {said}")),
    }
}

/// Whatever ends the lab ends its boards.
fn killed() -> Result<String, String> {
    let mut lab = lab(&["--headless", "--raw", "--nodes", "2", "--duration-ms", "60000"])?;
    // Nothing is said before all boards have power.
    let (spoke, _) = says(&mut lab, "  boot ")?;
    let boards = boards(&lab);
    let handles: Vec<_> = boards
        .iter()
        .filter_map(|id| pidfd_open(Pid::from_raw(*id as i32)?, PidfdFlags::empty()).ok())
        .collect();
    let _ = lab.kill();
    let (_, said) = ended(lab)?;
    if !spoke || handles.len() != 2 {
        return Err(format!("{} boards were running: {said}", handles.len()));
    }
    let began = Instant::now();
    for (id, handle) in boards.iter().zip(&handles) {
        let left = GOING.saturating_sub(began.elapsed());
        let wait = Timespec { tv_sec: left.as_secs() as i64, tv_nsec: left.subsec_nanos().into() };
        let gone = poll(&mut [PollFd::new(handle, PollFlags::IN)], Some(&wait));
        if gone != Ok(1) {
            let still = Path::new("/proc").join(id.to_string()).exists();
            return Err(format!("QEMU {id} outlived its lab (in /proc: {still})"));
        }
    }
    Ok(format!("2 gone after {} ms", began.elapsed().as_millis()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lab_says_when_it_was_settled() {
        assert_eq!(settled_s("x\nsettled: 1.25 s under 4, 2.00 s under 5\n"), Some(1.25));
        assert_eq!(settled_s("settled: never\n"), None);
    }

    #[test]
    fn children_are_found_by_their_parent() {
        let mut child = Command::new("sleep").arg("60").spawn().unwrap();
        let found = children(std::process::id());
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(found.iter().any(|(id, _)| *id == child.id()), "{found:?}");
    }
}
