//! Chance as a pure function: the same seed, stream and step give the same number, whatever was drawn before.
//!
//! Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011): a counter is encrypted, so there
//! is no state that a batch, a preemption or a retry could leave behind.

/// A number in `[0, 1)`, a multiple of 2^-53. `seed` is the context's, `stream` keeps apart what shares a seed (stage,
/// chunk, try), `step` counts within it.
pub fn uniform(seed: u64, stream: u64, step: u64) -> f64 {
    let [a, b, ..] = philox(halves(step, stream), [low(seed), high(seed)]);
    let bits = (u64::from(b) << 32 | u64::from(a)) >> 11;
    bits as f64 * (1.0 / (1u64 << 53) as f64)
}

fn philox(mut counter: [u32; 4], mut key: [u32; 2]) -> [u32; 4] {
    const ROUNDS: usize = 10;
    const MULTIPLIERS: [u32; 2] = [0xD251_1F53, 0xCD9E_8D57];
    /// Golden ratio and square root of 3, minus one.
    const WEYL: [u32; 2] = [0x9E37_79B9, 0xBB67_AE85];
    for _ in 0..ROUNDS {
        let [c0, c1, c2, c3] = counter;
        let a = u64::from(c0) * u64::from(MULTIPLIERS[0]);
        let b = u64::from(c2) * u64::from(MULTIPLIERS[1]);
        counter = [high(b) ^ c1 ^ key[0], low(b), high(a) ^ c3 ^ key[1], low(a)];
        key = [key[0].wrapping_add(WEYL[0]), key[1].wrapping_add(WEYL[1])];
    }
    counter
}

fn halves(a: u64, b: u64) -> [u32; 4] {
    [low(a), high(a), low(b), high(b)]
}

fn low(x: u64) -> u32 {
    (x & u64::from(u32::MAX)) as u32
}

fn high(x: u64) -> u32 {
    (x >> 32) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The known answers that come with the paper's library.
    #[test]
    fn cipher_gives_the_published_answers() {
        assert_eq!(philox([0; 4], [0; 2]), [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8]);
        assert_eq!(
            philox([u32::MAX; 4], [u32::MAX; 2]),
            [0x408f_276d, 0x41c8_3b0e, 0xa20b_c7c6, 0x6d54_51fd]
        );
        assert_eq!(
            philox(
                [0x243f_6a88, 0x85a3_08d3, 0x1319_8a2e, 0x0370_7344],
                [0xa409_3822, 0x299f_31d0]
            ),
            [0xd16c_fe09, 0x94fd_cceb, 0x5001_e420, 0x2412_6ea1]
        );
    }

    #[test]
    fn numbers_are_below_one_and_even() {
        const DRAWS: u64 = 20_000;
        const BINS: usize = 10;
        /// Six standard deviations of a binomial count with p = 0.1.
        const TOLERANCE: f64 = 6.0 * 42.5;
        let mut counts = [0.0f64; BINS];
        for step in 0..DRAWS {
            let u = uniform(7, 3, step);
            assert!((0.0..1.0).contains(&u));
            counts[(u * BINS as f64) as usize] += 1.0;
        }
        for count in counts {
            assert!((count - DRAWS as f64 / BINS as f64).abs() < TOLERANCE, "{counts:?}");
        }
    }

    #[test]
    fn seed_stream_and_step_each_change_the_number() {
        let base = uniform(1, 2, 3);
        for other in [uniform(0, 2, 3), uniform(1, 3, 3), uniform(1, 2, 4), uniform(1 << 40, 2, 3)]
        {
            assert_ne!(base, other);
        }
        assert_eq!(base, uniform(1, 2, 3));
    }
}
