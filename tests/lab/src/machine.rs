//! One emulated board: a QEMU process, its power switch and its sockets.

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::clock::{Clock, Followed};
use crate::probe::Image;
use crate::tools::QEMU;

/// How long QEMU may take to listen to a command, and to answer it.
const PATIENCE: Duration = Duration::from_secs(10);
const RETRY: Duration = Duration::from_millis(5);

/// Where the files of a node are.
#[derive(Debug, Clone)]
pub struct Files {
    folder: PathBuf,
    id: u8,
}

impl Files {
    pub fn new(folder: &Path, id: u8) -> Self {
        Self { folder: folder.to_owned(), id }
    }

    fn file(&self, kind: &str) -> PathBuf {
        self.folder.join(format!("{kind}{}", self.id))
    }

    pub fn flash(&self) -> PathBuf {
        self.file("flash")
    }

    /// The board's end of its cable.
    pub fn nic(&self) -> PathBuf {
        self.file("nic")
    }

    /// The switch's end of the cable.
    pub fn port(&self) -> PathBuf {
        self.file("port")
    }

    pub fn probe(&self) -> PathBuf {
        self.file("probe")
    }

    /// Where QEMU listens to commands.
    pub fn control(&self) -> PathBuf {
        self.file("control")
    }

    pub fn errors(&self) -> PathBuf {
        self.file("stderr")
    }
}

/// A board with power. Dropping it cuts the power.
#[derive(Debug)]
pub struct Machine {
    child: Child,
    files: Files,
    /// The clock does not go on without it.
    _followed: Followed,
}

impl Machine {
    /// Powers a board that lives on this clock; `counted`: its time counts instructions, a nanosecond each. Must be called from
    /// a thread that outlives it: `setpriv` ties the life of the process to that of its parent, so that
    /// no way in which the lab can end leaves one behind.
    pub fn start(
        image: &Image,
        files: &Files,
        clock: &Clock,
        counted: bool,
    ) -> Result<Self, String> {
        let machine = image.board.machine.ok_or("there is no such machine in QEMU")?;
        for stale in [files.nic(), files.probe(), files.control()] {
            let _ = std::fs::remove_file(stale);
        }
        let errors = File::create(files.errors()).map_err(|error| error.to_string())?;
        let shown = |path: PathBuf| path.display().to_string();
        let child = Command::new("setpriv")
            .envs(clock.environment())
            .args(["--pdeathsig", "KILL", QEMU])
            .args(machine(files))
            .args(["-display", "none", "-serial", "none", "-monitor", "none"])
            // So that the thread of the board's processor can be told from others.
            .args(["-name", "board,debug-threads=on", "-accel", "tcg", "-kernel"])
            .arg(&image.path)
            .args([
                "-netdev",
                &format!(
                    "dgram,id=n0,local.type=unix,local.path={},remote.type=unix,remote.path={}",
                    shown(files.nic()),
                    shown(files.port())
                ),
                "-net",
                "nic,netdev=n0",
                "-qtest",
                &format!("unix:{},server=on,wait=off", shown(files.probe())),
                "-qtest-log",
                "/dev/null",
                "-qmp",
                &format!("unix:{},server=on,wait=off", shown(files.control())),
            ])
            .args(if counted { &["-icount", "shift=0"][..] } else { &[] })
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(errors)
            .spawn()
            .map_err(|error| format!("setpriv (of util-linux) could not be started: {error}"))?;
        let _followed = clock.follow(child.id());
        Ok(Self { child, files: files.clone(), _followed })
    }

    fn signal(&self, signal: Signal) {
        if let Some(pid) = Pid::from_raw(self.child.id() as i32) {
            // A process that has gone is found by `died`.
            let _ = kill_process(pid, signal);
        }
    }

    pub fn pause(&self) {
        self.signal(Signal::STOP);
    }

    pub fn resume(&self) {
        self.signal(Signal::CONT);
    }

    /// Pulls the cable or puts it back: the board sees its link go down and up.
    pub fn set_link(&self, up: bool) -> Result<(), String> {
        let set = format!(r#"{{"execute":"set_link","arguments":{{"name":"n0","up":{up}}}}}"#);
        self.command(&set).map_err(|why| format!("the cable could not be moved: {why}"))
    }

    /// Pulls the reset pin.
    pub fn reset(&self) -> Result<(), String> {
        let reset = r#"{"execute":"system_reset"}"#;
        self.command(reset).map_err(|why| format!("the board could not be reset: {why}"))
    }

    /// Has QEMU do something, and waits until it has.
    fn command(&self, command: &str) -> Result<(), String> {
        let failed = |error: std::io::Error| error.to_string();
        // A QEMU that has just been started does not listen yet.
        let give_up = Instant::now() + PATIENCE;
        let stream = loop {
            match UnixStream::connect(self.files.control()) {
                Err(_) if Instant::now() < give_up => std::thread::sleep(RETRY),
                connected => break connected.map_err(failed)?,
            }
        };
        stream.set_read_timeout(Some(PATIENCE)).map_err(failed)?;
        let mut stream = BufReader::new(stream);
        let mut answer = String::new();
        stream.read_line(&mut answer).map_err(failed)?; // the greeting
        for command in [r#"{"execute":"qmp_capabilities"}"#, command] {
            stream.get_mut().write_all(command.as_bytes()).map_err(failed)?;
            answer.clear();
            // News may come between the command and its answer.
            while !answer.contains("\"return\"") {
                if answer.contains("\"error\"") {
                    return Err(answer.trim().into());
                }
                answer.clear();
                if stream.read_line(&mut answer).map_err(failed)? == 0 {
                    return Err("QEMU is gone".into());
                }
            }
        }
        Ok(())
    }

    /// What the process said when it ended by itself.
    pub fn died(&mut self) -> Option<String> {
        let status = self.child.try_wait().ok().flatten()?;
        let said = std::fs::read_to_string(self.files.errors()).unwrap_or_default();
        let last: Vec<&str> = said.lines().rev().take(3).collect();
        Some(format!("{status}: {}", last.into_iter().rev().collect::<Vec<_>>().join(" | ")))
    }

    /// Processor time used so far, in clock ticks of 10 ms.
    pub fn cpu_ticks(&self) -> u64 {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id()));
        let stat = stat.unwrap_or_default();
        let after_name = stat.rsplit(')').next().unwrap_or_default();
        after_name.split_whitespace().skip(11).take(2).filter_map(|t| t.parse::<u64>().ok()).sum()
    }
}

impl Drop for Machine {
    /// A power cut: SIGKILL, whatever it is doing.
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
