//! Figures that boards must keep to, and what they measure of their network.

use std::process::Command;
use std::slice::from_ref;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use bellwether_scenario::{Algorithm, Scenario};

use crate::calm;
use crate::display::{Printer, settled};
use crate::flock::Flock;
use crate::folder;
use crate::play;
use crate::probe::Image;
use crate::tools;

type Test = fn(&Arc<Image>) -> Result<String, String>;

pub const TESTS: [(&str, Test); 2] = [
    ("processor time of five idle boards and their lab", idle),
    ("delays that boards measure, replayed by the simulator", delays),
];

const NODES: u8 = 5;
/// Long enough for Beats and Checks to be in every stretch.
const IDLE: Duration = Duration::from_secs(3);
const STRETCHES: usize = 12;
/// Boards, lab, and for how much of the time the clock stands still.
const LIMITS: [f64; 3] = [calm::BOARDS_SHARE_MAX, calm::LAB_SHARE_MAX, calm::HELD_BACK_MAX];

/// Once they are settled, boards and lab leave the host nearly alone.
fn idle(image: &Arc<Image>) -> Result<String, String> {
    let mut scenario = Scenario::undisturbed(Algorithm::Bully, NODES, 0);
    (scenario.tm_us, scenario.tp_us) = (40_000, 40_000);
    let mut flock = Flock::prepare(&scenario, from_ref(image), None)?;
    flock.begin();
    flock.boot(1..=NODES)?;
    let give_up = flock.now() + Duration::from_secs(20);
    while settled(flock.watch.seen()) != Some(NODES) {
        flock.look_after()?;
        if flock.now() > give_up {
            return Err("the flock did not settle".into());
        }
        flock.listen_for(Duration::from_millis(20));
    }
    // Others on the same cores make the same work take longer: the best of some stretches counts.
    let mut least = [f64::MAX; 3];
    for _ in 0..STRETCHES {
        let (began, until) = (Instant::now(), flock.now() + IDLE);
        let before = (flock.cpu(), play::own_cpu(), flock.now());
        while flock.now() < until {
            flock.look_after()?;
            flock.listen(until);
        }
        let took = began.elapsed().as_secs_f64();
        let shares = [
            (flock.cpu() - before.0).as_secs_f64() / took,
            (play::own_cpu() - before.1).as_secs_f64() / took,
            1.0 - flock.now().since(before.2).as_secs_f64() / took,
        ];
        least = std::array::from_fn(|index| least[index].min(shares[index]));
        if least.iter().zip(LIMITS).all(|(share, most)| *share <= most) {
            break;
        }
    }
    let [boards, lab, held_back] = least.map(|share| format!("{:.1} %", share * 100.0));
    let seen =
        format!("boards {boards} of one core, lab {lab}, clock held back {held_back} at best");
    let kept = least.iter().zip(LIMITS).all(|(share, most)| *share <= most);
    if kept { Ok(seen) } else { Err(seen) }
}

/// Boards tell their delays, Tm and Tp are judged by them, and the simulator plays with them.
fn delays(image: &Arc<Image>) -> Result<String, String> {
    let mut scenario = Scenario::undisturbed(Algorithm::Bully, 3, 5_000_000);
    (scenario.tm_us, scenario.tp_us) = (40_000, 100_000);
    let stop = AtomicBool::new(false);
    let (images, mut display) = (from_ref(image), Printer::new(true));
    let outcome = play::play(&scenario, 1.0, images, None, &stop, &mut display)?;
    let delays = outcome.measured.delays().ok_or("the boards told no delays")?;
    let judged = outcome.measured.verdict();
    if judged.len() != 2 || !judged.iter().all(|line| line.contains("safe")) {
        return Err(format!("Tm and Tp are not judged: {}", judged.join("; ")));
    }
    let folder = folder::create().map_err(|error| error.to_string())?;
    let (measured, play) = (folder.path().join("delays.toml"), folder.path().join("play.toml"));
    let text = "name = \"replay\"\nalgorithm = \"bully\"\nnodes = 3\nduration_ms = 5000\ntm_ms = 40\n\
                tp_ms = 100\n[[expect]]\nnodes = [1, 2, 3]\nsettled = true\ncoordinator = 3\n";
    std::fs::write(&measured, delays.text())
        .and_then(|()| std::fs::write(&play, text))
        .map_err(|error| error.to_string())?;
    let ran = Command::new("cargo")
        .args(["run", "--quiet", "--release", "--package", "bellwether-sim", "--", "--delays"])
        .arg(&measured)
        .arg(&play)
        .current_dir(tools::root())
        .output()
        .map_err(|error| format!("cargo: {error}"))?;
    if !ran.status.success() {
        let said = String::from_utf8_lossy(&[ran.stdout, ran.stderr].concat()).into_owned();
        return Err(format!("cargo sim --delays: {}: {said}", ran.status));
    }
    Ok(format!("{} round trips", delays.trips.samples()))
}
