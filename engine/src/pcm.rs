//! Sound on its way out of the engine.

/// Samples at 24 kHz, mono, full scale 1.0.
#[derive(Debug, Clone, PartialEq)]
pub enum Pcm {
    /// One by one.
    Samples(Vec<f32>),
    /// So many samples of silence. They take no room, and whoever knows what silence is need not look at them.
    Silence(usize),
}

impl Pcm {
    /// How many samples there are.
    pub fn len(&self) -> usize {
        match self {
            Self::Samples(samples) => samples.len(),
            Self::Silence(length) => *length,
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The samples, one by one.
    pub fn into_samples(self) -> Vec<f32> {
        match self {
            Self::Samples(samples) => samples,
            Self::Silence(length) => vec![0.0; length],
        }
    }

    /// Takes the first `length` samples off, or all there are.
    pub(crate) fn take_front(&mut self, length: usize) -> Self {
        let length = length.min(self.len());
        match self {
            Self::Samples(samples) => {
                let rest = samples.split_off(length);
                Self::Samples(std::mem::replace(samples, rest))
            }
            Self::Silence(left) => {
                *left -= length;
                Self::Silence(length)
            }
        }
    }

    /// Puts sound behind this one.
    pub(crate) fn append(&mut self, more: Self) {
        match (&mut *self, more) {
            (Self::Silence(length), Self::Silence(more)) => *length += more,
            (Self::Samples(samples), Self::Samples(more)) => samples.extend(more),
            (Self::Samples(samples), Self::Silence(more)) => {
                samples.resize(samples.len() + more, 0.0);
            }
            (Self::Silence(length), Self::Samples(more)) => {
                let mut samples = vec![0.0; *length];
                samples.extend(more);
                *self = Self::Samples(samples);
            }
        }
    }
}

impl IntoIterator for Pcm {
    type Item = f32;
    type IntoIter = std::vec::IntoIter<f32>;

    fn into_iter(self) -> Self::IntoIter {
        self.into_samples().into_iter()
    }
}

impl Default for Pcm {
    fn default() -> Self {
        Self::Silence(0)
    }
}

impl From<Vec<f32>> for Pcm {
    fn from(samples: Vec<f32>) -> Self {
        Self::Samples(samples)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sound_is_cut_and_joined_sample_by_sample() {
        let mut sound = Pcm::default();
        sound.append(Pcm::Silence(2));
        assert_eq!(sound, Pcm::Silence(2));
        sound.append(vec![0.5, 0.25].into());
        sound.append(Pcm::Silence(1));
        assert_eq!(sound.take_front(3), Pcm::Samples(vec![0.0, 0.0, 0.5]));
        assert_eq!(sound.clone().into_samples(), [0.25, 0.0]);
        assert_eq!((sound.take_front(9).len(), sound.is_empty()), (2, true));
    }

    #[test]
    fn silence_stays_without_samples() {
        let mut sound = Pcm::Silence(10);
        assert_eq!((sound.take_front(4), &sound), (Pcm::Silence(4), &Pcm::Silence(6)));
        assert_eq!(sound.into_samples(), [0.0; 6]);
    }
}
