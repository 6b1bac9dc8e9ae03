//! The boards' own division, which only the host can try with many numbers.

#[path = "../../../boards/common/src/division.rs"]
mod division;

/// Numbers of every length, their neighbours, and what comes of multiplying them.
fn numbers() -> Vec<u64> {
    let powers = (0..64).map(|shift| 1_u64 << shift);
    let near = powers.flat_map(|power| [power - 1, power, power.wrapping_add(1)]);
    let spread = near.clone().map(|number| number.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    near.chain(spread).chain([71, 1_000, 1_000_000, u64::MAX]).collect()
}

#[test]
fn quotients_and_remainders_are_those_of_the_host() {
    for dividend in numbers() {
        for divisor in numbers().into_iter().filter(|divisor| *divisor != 0) {
            let expected = (dividend / divisor, dividend % divisor);
            assert_eq!(division::divide(dividend, divisor), expected, "{dividend} / {divisor}");
        }
    }
}
