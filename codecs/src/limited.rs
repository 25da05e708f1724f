//! Sound that is being read from a file of unknown size: mono, at the file's rate, and never more of it than allowed.

/// More sound than the caller allows.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
#[error("longer than {seconds_max} s")]
pub struct TooLong {
    /// The limit.
    pub seconds_max: f64,
}

/// Mono samples at some rate, with a limit that they cannot pass.
#[derive(Debug, Clone, PartialEq)]
pub struct Mono {
    /// Rate in Hz.
    pub sample_rate: u32,
    /// The samples so far.
    pub samples: Vec<f32>,
    seconds_max: f64,
}

impl Mono {
    /// No sound yet.
    pub(crate) fn new(sample_rate: u32, seconds_max: f64) -> Self {
        Self { sample_rate, samples: Vec::new(), seconds_max }
    }

    /// Sound that is all there is.
    ///
    /// # Errors
    /// [`TooLong`].
    pub(crate) fn of(
        sample_rate: u32,
        samples: Vec<f32>,
        seconds_max: f64,
    ) -> Result<Self, TooLong> {
        let mono = Self { samples, ..Self::new(sample_rate, seconds_max) };
        mono.expect(mono.samples.len() as u64)?;
        Ok(mono)
    }

    /// Length so far; zero where the rate is.
    pub fn seconds(&self) -> f64 {
        self.samples.len() as f64 / f64::from(self.sample_rate.max(1))
    }

    /// Checks a length that the file tells beforehand.
    ///
    /// # Errors
    /// [`TooLong`].
    pub(crate) fn expect(&self, samples: u64) -> Result<(), TooLong> {
        match samples > self.samples_max() {
            true => Err(TooLong { seconds_max: self.seconds_max }),
            false => Ok(()),
        }
    }

    /// Appends samples.
    ///
    /// # Errors
    /// [`TooLong`]; nothing beyond the limit is kept.
    pub(crate) fn extend(&mut self, samples: impl Iterator<Item = f32>) -> Result<(), TooLong> {
        let most = self.samples_max();
        for sample in samples {
            if self.samples.len() as u64 >= most {
                return Err(TooLong { seconds_max: self.seconds_max });
            }
            self.samples.push(sample);
        }
        Ok(())
    }

    fn samples_max(&self) -> u64 {
        // A limit without end saturates.
        (self.seconds_max * f64::from(self.sample_rate)).round() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_itself_is_allowed_and_one_more_is_not() {
        let mut mono = Mono::new(100, 0.5);
        assert_eq!(mono.expect(50), Ok(()));
        assert_eq!(mono.expect(51), Err(TooLong { seconds_max: 0.5 }));
        assert_eq!(mono.extend((0..50).map(|_| 0.0)), Ok(()));
        assert_eq!(mono.extend([1.0].into_iter()), Err(TooLong { seconds_max: 0.5 }));
        assert_eq!((mono.samples.len(), mono.seconds()), (50, 0.5));
        assert!(Mono::of(100, vec![0.0; 50], 0.5).is_ok());
        assert_eq!(Mono::of(100, vec![0.0; 51], 0.5), Err(TooLong { seconds_max: 0.5 }));
    }
}
