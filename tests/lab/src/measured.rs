//! What the boards have measured of their network, and whether Tm and Tp are right for it.

use bellwether::advice::{Advice, BUCKETS, Histogram, advise};
use bellwether::time::Duration;
use bellwether_scenario::{Delays, Distribution, What};

use crate::chronicle::Said;
use crate::line::Line;

/// Less than was set is advised only after so many times.
const ENOUGH: u64 = 100;

/// One kind of times: of the boots that are over, and the latest word of each board.
#[derive(Debug, Clone)]
struct Times {
    past: Vec<Histogram>,
    latest: Vec<Option<Histogram>>,
    longest_us: u64,
}

impl Times {
    fn new(nodes: u8) -> Self {
        Self { past: Vec::new(), latest: vec![None; nodes.into()], longest_us: 0 }
    }

    fn all(&self) -> impl Iterator<Item = &Histogram> {
        self.past.iter().chain(self.latest.iter().flatten())
    }

    fn distribution(&self) -> Option<Distribution> {
        // All have the same T, and so the same buckets.
        let first = self.all().next()?.first();
        let same = || self.all().filter(|times| times.first() == first);
        let bucket = |index: usize| {
            let below = same().find_map(|times| times.below_us(index)).unwrap_or(u64::MAX);
            (below, same().map(|times| u64::from(times.counts()[index])).sum())
        };
        Distribution::new((0..BUCKETS).map(bucket), self.longest_us)
    }
}

#[derive(Debug, Clone)]
pub struct Measured {
    tm_us: u64,
    tp_us: u64,
    trips: Times,
    handling: Times,
}

/// The histogram of a `delays` line.
fn histogram(line: &Line) -> Option<Histogram> {
    let word = |key| u64::from_str_radix(line.get(key)?, 16).ok();
    let words = [word("a")?, word("b")?, word("c")?, word("d")?];
    let first = u8::try_from(line.number("first")?).ok()?;
    Histogram::from_parts(first, u32::try_from(line.number("max_us")?).ok()?, words)
}

impl Measured {
    pub fn new(nodes: u8, tm_us: u64, tp_us: u64) -> Self {
        Self { tm_us, tp_us, trips: Times::new(nodes), handling: Times::new(nodes) }
    }

    pub fn hear(&mut self, said: &Said) {
        let index = usize::from(said.node).saturating_sub(1);
        if said.events.iter().any(|event| event.what == What::Boot) {
            for times in [&mut self.trips, &mut self.handling] {
                times.past.extend(times.latest.get_mut(index).and_then(Option::take));
            }
        }
        let number = |key| said.line.number(key).unwrap_or(0);
        match (said.line.word.as_str(), said.line.get("what")) {
            ("margin", _) => {
                self.trips.longest_us = self.trips.longest_us.max(number("trip_us"));
                self.handling.longest_us = self.handling.longest_us.max(number("answer_us"));
            }
            ("delays", Some(what @ ("trips" | "handling"))) => {
                let times = if what == "trips" { &mut self.trips } else { &mut self.handling };
                if let (Some(latest), Some(told)) =
                    (times.latest.get_mut(index), histogram(&said.line))
                {
                    times.longest_us = times.longest_us.max(told.max_us().into());
                    *latest = Some(told);
                }
            }
            _ => {}
        }
    }

    /// `None` while there is too little to speak of.
    pub fn delays(&self) -> Option<Delays> {
        let (trips, handling) = (self.trips.distribution()?, self.handling.distribution()?);
        Some(Delays { tm_us: self.tm_us, tp_us: self.tp_us, trips, handling })
    }

    fn advice(&self, delays: &Delays) -> Advice {
        let [trip, handling] =
            [&delays.trips, &delays.handling].map(|d| Duration::from_us(d.longest_us()));
        advise(Duration::from_us(self.tm_us), Duration::from_us(self.tp_us), trip, handling)
    }

    /// What to think of Tm and of Tp, a line each.
    pub fn verdict(&self) -> Vec<String> {
        let Some(delays) = self.delays() else {
            return vec!["Tm and Tp: too little was measured to judge them".into()];
        };
        let advice = self.advice(&delays);
        let of_tm = Judged {
            name: "Tm",
            key: "tm_ms",
            set_us: self.tm_us,
            bound: "2 Tm + Tp",
            bound_us: 2 * self.tm_us + self.tp_us,
            what: "round trip",
            times: &delays.trips,
            safe: advice.tm_safe,
            advised: advice.tm,
        };
        let of_tp = Judged {
            name: "Tp",
            key: "tp_ms",
            set_us: self.tp_us,
            bound: "it",
            bound_us: self.tp_us,
            what: "handling",
            times: &delays.handling,
            safe: advice.tp_safe,
            advised: advice.tp,
        };
        vec![of_tm.sentence(), of_tp.sentence()]
    }

    /// The same in a few words.
    pub fn brief(&self) -> Option<String> {
        let advice = self.advice(&self.delays()?);
        let one = |name, safe, advised: Duration| match safe {
            true => format!("{name} safe"),
            false => format!("{name} TOO SHORT: {} ms", advised.us() / 1000),
        };
        let (tm, tp) = (one("Tm", advice.tm_safe, advice.tm), one("Tp", advice.tp_safe, advice.tp));
        Some(format!("{tm} · {tp}"))
    }
}

struct Judged<'d> {
    name: &'static str,
    key: &'static str,
    set_us: u64,
    bound: &'static str,
    bound_us: u64,
    what: &'static str,
    times: &'d Distribution,
    safe: bool,
    advised: Duration,
}

impl Judged<'_> {
    fn sentence(&self) -> String {
        let ms = |us: u64| us as f64 / 1000.0;
        let Self { name, key, set_us, bound, bound_us, what, times, .. } = self;
        let longest = times.longest_us();
        let advised = self.advised.us() / 1000;
        let (verdict, advice) = match self.safe {
            true if times.samples() < ENOUGH => ("safe", "too few to advise less".into()),
            true => ("safe", format!("{key} = {advised} would do")),
            false => ("NOT safe", format!("set {key} = {advised}")),
        };
        format!(
            "{name} = {} ms is {verdict}: {bound} allows for {:.1} times the longest {what}, {:.2} ms \
             (p99.9 {:.2} ms, {} measured); {advice}",
            ms(*set_us),
            *bound_us as f64 / longest.max(1) as f64,
            ms(longest),
            ms(times.quantile_us(0.999)),
            times.samples()
        )
    }
}

#[cfg(test)]
mod tests {
    use bellwether_scenario::NodeEvent;

    use super::*;

    fn said(node: u8, text: &str, boots: bool) -> Said {
        let boot = NodeEvent { at_us: 0, node, uncertainty_us: None, what: What::Boot };
        let events = if boots { vec![boot] } else { Vec::new() };
        Said { node, at_us: 0, line: Line::parse(text).unwrap(), events }
    }

    /// As the firmware would say it.
    fn told(what: &str, ms: &[u64]) -> String {
        let mut times = Histogram::new(Duration::from_millis(120));
        ms.iter().for_each(|ms| times.note(Duration::from_millis(*ms)));
        let [a, b, c, d] = times.words();
        let (first, max_us) = (times.first(), times.max_us());
        format!(
            "7 delays what={what} first={first} max_us={max_us} a={a:x} b={b:x} c={c:x} d={d:x}"
        )
    }

    fn heard(trips: &[u64], handling: &[u64]) -> Measured {
        let mut measured = Measured::new(2, 40_000, 40_000);
        assert!(measured.verdict()[0].contains("too little"));
        assert_eq!(measured.brief(), None);
        measured.hear(&said(1, &told("trips", trips), false));
        measured.hear(&said(2, &told("handling", handling), false));
        measured
    }

    #[test]
    fn a_fast_network_is_safe() {
        let mut trips = vec![10; 99];
        trips.push(30);
        let measured = heard(&trips, &[1, 2, 3, 5]);
        let [tm, tp] = &measured.verdict()[..] else { panic!("two lines") };
        assert!(tm.starts_with("Tm = 40 ms is safe: 2 Tm + Tp allows for 4.0 times"), "{tm}");
        assert!(tm.ends_with("100 measured); tm_ms = 19 would do"), "{tm}");
        assert!(tp.starts_with("Tp = 40 ms is safe: it allows for 8.0 times"), "{tp}");
        assert!(tp.ends_with("4 measured); too few to advise less"), "{tp}");
        assert_eq!(measured.brief().unwrap(), "Tm safe · Tp safe");
    }

    #[test]
    fn a_slow_one_is_not_and_what_to_set_is_said() {
        let mut measured = heard(&[10, 100], &[3]);
        let tm = measured.verdict().remove(0);
        assert!(tm.contains("NOT safe") && tm.ends_with("set tm_ms = 63"), "{tm}");
        // A mark that rose since the counts were told.
        measured.hear(&said(2, "9 margin answer_us=39000 late_us=1 step_us=2 trip_us=0", false));
        let tp = measured.verdict().remove(1);
        assert!(tp.contains("NOT safe") && tp.ends_with("set tp_ms = 49"), "{tp}");
        assert!(measured.brief().unwrap().contains("Tp TOO SHORT: 49 ms"));
    }

    #[test]
    fn the_counts_of_earlier_boots_stay() {
        let mut measured = heard(&[10, 12], &[1]);
        let samples = |measured: &Measured| measured.delays().unwrap().trips.samples();
        // The same boot tells more, the next one begins anew.
        measured.hear(&said(1, &told("trips", &[10, 12, 13, 14]), false));
        assert_eq!(samples(&measured), 4);
        measured.hear(&said(1, "0 start cause=power", true));
        measured.hear(&said(1, &told("trips", &[10]), false));
        assert_eq!(samples(&measured), 5);
        let text = measured.delays().unwrap().text();
        assert_eq!(Delays::parse("a.toml", &text), Ok(measured.delays().unwrap()), "{text}");
    }

    #[test]
    fn a_line_that_makes_no_sense_changes_nothing() {
        let mut measured = heard(&[10], &[1]);
        let before = measured.delays();
        for line in
            ["3 delays what=trips first=200 max_us=4 a=0 b=0 c=0 d=0", "4 delays what=trips"]
        {
            measured.hear(&said(1, line, false));
        }
        measured.hear(&said(9, &told("trips", &[1000]), false));
        assert_eq!(measured.delays(), before);
    }
}
