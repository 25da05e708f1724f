//! Chance that can be had again: the same seed throws the same dice. For load and for tests, never for secrets.

use std::time::Duration;

/// SplitMix64 (Steele, Lea, Flood: "Fast splittable pseudorandom number generators", 2014).
#[derive(Debug, Clone)]
pub struct Chance(u64);

impl Chance {
    /// The dice of a seed.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The dice of the `n`th of many who share a seed.
    pub fn of(seed: u64, n: u64) -> Self {
        let mut first = Self(seed ^ n.wrapping_mul(0xd134_2543_de82_ef95));
        Self(first.bits())
    }

    /// 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// In `[0, 1)`.
    pub fn share(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// One of `n` things; `n` is at least 1.
    pub fn below(&mut self, n: usize) -> usize {
        (self.share() * n as f64) as usize
    }

    /// Anywhere in a stretch of time.
    pub fn within(&mut self, from: Duration, to: Duration) -> Duration {
        from + (to - from).mul_f64(self.share())
    }

    /// The wait for the next of events that come `rate` times a second, independently of each other.
    pub fn wait(&mut self, rate: f64) -> Duration {
        Duration::from_secs_f64(-(1.0 - self.share()).ln() / rate)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_throws_the_same_dice() {
        let throws = |mut chance: Chance| [chance.bits(), chance.bits(), chance.bits()];
        assert_eq!(throws(Chance::of(7, 3)), throws(Chance::of(7, 3)));
        assert_ne!(throws(Chance::of(7, 3)), throws(Chance::of(7, 4)));
        assert_ne!(throws(Chance::of(7, 3)), throws(Chance::of(8, 3)));
    }

    #[test]
    fn waits_are_as_long_as_their_rate_says() {
        const TOLERANCE: f64 = 0.05; // of 10,000 waits; their mean strays by 1 %
        let mut chance = Chance::new(1);
        let sum: Duration = (0..10_000).map(|_| chance.wait(20.0)).sum();
        assert!((sum.as_secs_f64() / 500.0 - 1.0).abs() < TOLERANCE, "{sum:?}");
    }
}
