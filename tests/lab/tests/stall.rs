//! The boards' account of stalls, which only the host can try.

#[path = "../../../boards/common/src/stall.rs"]
mod stall;

use stall::Stall;

const MS: u64 = 1000;

fn at(stall: Stall, ms: u64) -> u64 {
    stall.not_later(ms * MS) / MS
}

#[test]
fn frames_found_soon_after_a_stall_may_have_come_when_it_began() {
    let stall = Stall::NONE.and(1000 * MS, 1400 * MS);
    assert_eq!((at(stall, 999), at(stall, 1000), at(stall, 1429)), (999, 1000, 1000));
    assert_eq!(at(stall, 1430), 1430);
    assert_eq!(Stall::NONE.not_later(5), 5);
}

#[test]
fn a_stall_right_after_another_does_not_hide_its_beginning() {
    let stall = Stall::NONE.and(1000 * MS, 1100 * MS).and(1110 * MS, 1113 * MS);
    assert_eq!(at(stall, 1120), 1000);
    // But one that comes after what was left over has been worked off begins anew.
    let stall = Stall::NONE.and(1000 * MS, 1100 * MS).and(1130 * MS, 1133 * MS);
    assert_eq!(at(stall, 1140), 1130);
}

#[test]
fn a_row_of_stalls_does_not_reach_back_for_ever() {
    let mut stall = Stall::NONE;
    for page in 0..1000 {
        let from = 1000 + 10 * page;
        stall = stall.and(from * MS, (from + 3) * MS);
        let now = from + 4;
        assert!(at(stall, now) <= from, "it hides the last one");
        assert!(now - at(stall, now) <= 431, "{} ms back", now - at(stall, now));
    }
    // The longest stall of all is never cut short.
    let stall = stall.and(20_000 * MS, 20_600 * MS);
    assert_eq!(at(stall, 20_610), 20_000);
}
