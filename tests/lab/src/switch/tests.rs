//! What becomes of frames on links of all kinds.

use super::*;

const TM: Duration = Duration::from_millis(40);
const FRAMES: usize = 10_000;

/// Many frames from node 1 to node 2 over a link of this quality, a millisecond apart.
fn carried(quality: LinkQuality) -> Carried {
    let mut state = State::new(2, TM, 7);
    state.powered.fill(true);
    state.links[1] = quality;
    let began = Clock::host().now();
    let (mut at_once, mut delays, mut overtaken) = (0, Vec::new(), 0);
    let mut latest = began;
    for index in 0..FRAMES {
        let now = began + Duration::from_millis(index as u64);
        let mut to = Vec::new();
        state.draw(now, 0, 1, &[0; 20], &mut to);
        assert!(to.iter().all(|to| *to == 1));
        at_once += to.len();
        let dues: Vec<_> = state.delayed.drain().map(|Reverse(held)| held.due).collect();
        let earliest = if to.is_empty() { dues.iter().min().copied() } else { Some(now) };
        overtaken += usize::from(earliest.is_some_and(|earliest| earliest < latest));
        latest = earliest.map_or(latest, |earliest| earliest.max(latest));
        delays.extend(dues.iter().map(|due| due.since(now)));
    }
    Carried { at_once, delays, overtaken, broken: state.broken.len() }
}

struct Carried {
    at_once: usize,
    delays: Vec<Duration>,
    /// How many frames overtook one before them.
    overtaken: usize,
    broken: usize,
}

fn about(count: usize, share: f64) -> bool {
    (count as f64 / FRAMES as f64 - share).abs() < 0.02
}

#[test]
fn a_perfect_link_hands_over_at_once() {
    let carried = carried(LinkQuality::default());
    assert_eq!((carried.at_once, carried.delays.len(), carried.broken), (FRAMES, 0, 0));
}

#[test]
fn losses_are_as_frequent_as_asked_for_and_noted() {
    let carried = carried(LinkQuality { loss: 0.2, ..LinkQuality::default() });
    assert!(about(carried.at_once, 0.8) && carried.delays.is_empty());
    assert_eq!(carried.broken, FRAMES - carried.at_once);
}

#[test]
fn a_delay_is_kept_and_noted_only_beyond_tm() {
    for (delay, broken) in [(TM, 0), (TM + Duration::from_millis(1), FRAMES)] {
        let delay_us = delay.as_micros() as u64;
        let carried = carried(LinkQuality { delay_us, ..LinkQuality::default() });
        assert!(carried.delays.len() == FRAMES && carried.at_once == 0);
        assert!(carried.delays.iter().all(|is| *is == delay));
        assert_eq!(carried.broken, broken);
    }
}

#[test]
fn jitter_lies_within_its_bounds_and_is_noted_only_beyond_tm() {
    let quality = LinkQuality { delay_us: 2000, jitter_us: 10_000, ..LinkQuality::default() };
    let carried = carried(quality);
    let ms = Duration::from_millis;
    assert!(carried.delays.iter().all(|is| (ms(2)..=ms(12)).contains(is)));
    assert!(carried.delays.iter().any(|is| *is < ms(4)));
    assert!(carried.delays.iter().any(|is| *is > ms(10)));
    assert!(carried.overtaken > FRAMES / 2, "{}", carried.overtaken);
    assert_eq!(carried.broken, 0);
    // Less than the time between two frames: nothing is overtaken.
    let quality = LinkQuality { jitter_us: 900, ..LinkQuality::default() };
    assert_eq!(self::carried(quality).overtaken, 0);
    let quality = LinkQuality { jitter_us: 80_000, ..LinkQuality::default() };
    assert!(about(self::carried(quality).broken, 0.5), "half of the jitter is beyond Tm");
}

#[test]
fn duplicates_come_twice() {
    let carried = carried(LinkQuality { duplicate: 0.25, ..LinkQuality::default() });
    assert!(about(carried.at_once - FRAMES, 0.25) && carried.broken == 0);
}

#[test]
fn a_frame_that_is_held_back_is_overtaken() {
    let carried = carried(LinkQuality { reorder: 0.1, ..LinkQuality::default() });
    assert!(about(carried.at_once, 0.9) && about(carried.delays.len(), 0.1));
    assert!(carried.delays.iter().all(|is| *is <= TM / 2));
    assert!(carried.overtaken > FRAMES / 4, "{}", carried.overtaken);
    assert_eq!(carried.broken, 0);
}

#[test]
fn a_link_that_gets_faster_keeps_its_order() {
    let mut state = State::new(2, TM, 7);
    let (now, mut at_once) = (Clock::host().now(), Vec::new());
    state.links[1].delay_us = 20_000;
    state.draw(now, 0, 1, &[1], &mut at_once);
    state.links[1].delay_us = 0;
    state.draw(now + Duration::from_millis(1), 0, 1, &[2], &mut at_once);
    assert!(at_once.is_empty() && state.broken.is_empty());
    let mut frames = std::iter::from_fn(|| state.delayed.pop());
    assert!(frames.by_ref().map(|Reverse(held)| held.frame[0]).eq([1, 2]));
}

#[test]
fn what_a_cut_loses_is_noted_if_somebody_was_there() {
    for (powered, broken) in [(true, 1), (false, 0)] {
        let mut state = State::new(2, TM, 7);
        state.powered[1] = powered;
        state.plugged[0] = false;
        let mut at_once = Vec::new();
        state.draw(Clock::host().now(), 0, 1, &[0], &mut at_once);
        assert_eq!((at_once.len(), state.broken.len()), (0, broken));
    }
}
