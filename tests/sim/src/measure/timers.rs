//! `cargo sim timers`: what follows from Tm and Tp, and what a slower network costs.

use bellwether::config::{Algorithm, Timing};
use bellwether::time::Duration;

use super::sample::{self, Recovery};
use super::table::{Spread, Table};
use super::{all, for_seeds, with_capacity};
use crate::settings::Settings;

const NODES: u8 = 16;
const SEEDS: u64 = 50;
/// (Tm, Tp, T where it is not the least one), in ms.
const NETWORKS: [(u64, u64, Option<u64>); 6] = [
    (5, 3, Some(20)),
    (5, 3, None),
    (10, 5, None),
    (20, 10, None),
    (50, 25, None),
    (200, 50, None),
];

/// Measures and prints; `false` if a flock did not settle.
pub fn command() -> bool {
    let ms = Duration::from_millis;
    let mut table = Table::new(&[
        "Tm",
        "Tp",
        "T",
        "Beat",
        "Q",
        "stagger",
        "P",
        "bully",
        "invitation",
        "ring",
        "coordinator sends",
    ]);
    let mut settled = true;
    for (tm, tp, t) in NETWORKS {
        let mut timing = Timing::derive(ms(tm), ms(tp), ms(5));
        if let Some(t) = t {
            timing = timing.with_t(ms(t));
        }
        let failover = |algorithm| {
            let samples = for_seeds(SEEDS, |seed| {
                let mut settings = Settings::new(NODES, algorithm, timing, seed);
                settings.base_delay_us = (timing.tm.us() / 20, timing.tm.us());
                with_capacity!(failover, settings, 0.0)
            });
            Some(Spread::of(all(samples)?.iter().map(|r: &Recovery| r.total_us as f64 / 1000.0)))
        };
        let (Some(bully), Some(invitation), Some(ring)) = (
            failover(Algorithm::Bully),
            failover(Algorithm::Invitation),
            failover(Algorithm::Ring),
        ) else {
            settled = false;
            continue;
        };
        let span = |span: Duration| format!("{:.1} ms", span.0 as f64 / 1000.0);
        table.row(&[
            format!("{tm} ms"),
            format!("{tp} ms"),
            span(timing.t),
            span(timing.beat),
            span(timing.quiet),
            span(timing.stagger),
            span(timing.check),
            format!("{:.0} ms", bully.worst),
            format!("{:.0} ms", invitation.worst),
            format!("{:.0} ms", ring.worst),
            format!("{:.0} /s", 1e6 / timing.beat.us() as f64),
        ]);
    }
    println!(
        "bully, invitation, ring: death of the coordinator to all Normal, {NODES} nodes, one-way delays"
    );
    println!("up to Tm, worst of {SEEDS} seeds; coordinator sends: its Beats per second");
    table.print();
    settled
}
