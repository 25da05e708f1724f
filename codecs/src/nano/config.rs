//! Sizes of a nano codec, as its `config.json` states them.

use std::path::Path;

use serde::Deserialize;

use crate::weights::{LoadError, read_json};
use crate::window::FRAME_SAMPLES;

/// The one kind of decoder that this codec is.
const FAMILY: &str = "harmonic_noise";
const SAMPLE_RATE: u32 = 24_000;
/// Above every size that makes sense, and far below where sums and products of sizes overflow.
const SIZE_MAX: usize = 1 << 16;

/// Fields of `codec/config.json`; others are left to other programs.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Config {
    family: String,
    sample_rate: u32,
    pub(super) semantic_vocab_size: usize,
    pub(super) acoustic_vocab_size: usize,
    pub(super) n_codebooks: usize,
    /// Channels at the code rate.
    pub(super) width: usize,
    /// Channels at the sub-frame rate.
    pub(super) subframe_width: usize,
    /// Sub-frames of a code frame.
    pub(super) subframes: usize,
    pub(super) harmonic_bands: usize,
    pub(super) noise_bands: usize,
    pub(super) n_fft: usize,
    /// Samples from one spectrum to the next.
    pub(super) hop: usize,
    /// Width of a codebook vector.
    pub(super) code_width: usize,
    /// Kernel of each block at the code rate.
    pub(super) frame_blocks: Vec<usize>,
    /// Kernel of each block at the sub-frame rate.
    pub(super) subframe_blocks: Vec<usize>,
    /// Inner width of a block over its outer.
    pub(super) block_mult: usize,
    /// Frequency of the last band, in Hz.
    pub(super) max_frequency: f32,
    /// Pulses hold no harmonic above this, in Hz.
    pub(super) pulse_max_frequency: f32,
    pub(super) layer_norm_eps: f32,
}

impl Config {
    pub(super) fn read(file: &Path) -> Result<Self, LoadError> {
        let config: Self = read_json(file)?;
        config.check().map_err(|(field, reason)| LoadError::field(file, field, reason))?;
        Ok(config)
    }

    /// Entries of each row's codebook, the semantic row first.
    pub(super) fn codebooks(&self) -> Vec<usize> {
        let mut codebooks = vec![self.acoustic_vocab_size; self.n_codebooks];
        codebooks[0] = self.semantic_vocab_size;
        codebooks
    }

    /// Pitch, harmonic and noise bands: the values of a sub-frame.
    pub(super) fn parameters(&self) -> usize {
        1 + self.harmonic_bands + self.noise_bands
    }

    /// Spectra of a sub-frame.
    pub(super) fn hops_per_subframe(&self) -> usize {
        FRAME_SAMPLES / (self.subframes * self.hop)
    }

    /// Code frames on either side that a sample depends on: what the convolutions see, and one more frame for
    /// interpolation, spectra and overlap.
    pub(super) fn reach_frames(&self) -> usize {
        let reach = |kernels: &[usize]| kernels.iter().map(|k| k / 2).sum::<usize>();
        reach(&self.frame_blocks) + reach(&self.subframe_blocks).div_ceil(self.subframes) + 1
    }

    /// What one frame beyond the convolutions must cover, in samples: an overlapping spectrum (half of it, all but the
    /// sample it starts at), the pulses under it (half again), the next spectrum's pitch, the next sub-frame's values.
    fn synthesis_reach_samples(&self) -> usize {
        self.n_fft + self.hop + FRAME_SAMPLES / self.subframes
    }

    fn check(&self) -> Result<(), (&'static str, String)> {
        let sizes = [
            ("semantic_vocab_size", self.semantic_vocab_size),
            ("acoustic_vocab_size", self.acoustic_vocab_size),
            ("n_codebooks", self.n_codebooks),
            ("width", self.width),
            ("subframe_width", self.subframe_width),
            ("subframes", self.subframes),
            ("harmonic_bands", self.harmonic_bands),
            ("noise_bands", self.noise_bands),
            ("n_fft", self.n_fft),
            ("hop", self.hop),
            ("code_width", self.code_width),
            ("block_mult", self.block_mult),
        ];
        let kernels =
            [("frame_blocks", &self.frame_blocks), ("subframe_blocks", &self.subframe_blocks)];
        let kernels =
            kernels.into_iter().flat_map(|(field, all)| all.iter().map(move |k| (field, *k)));
        let out_of_range = |(_, size): &(&str, usize)| !(1..=SIZE_MAX).contains(size);
        if let Some((field, size)) = sizes.into_iter().chain(kernels).find(out_of_range) {
            return Err((field, format!("{size}, expected 1 to {SIZE_MAX}")));
        }
        if self.family != FAMILY {
            return Err(("family", format!("{}, expected {FAMILY}", self.family)));
        }
        if self.sample_rate != SAMPLE_RATE {
            return Err(("sample_rate", format!("{}, expected {SAMPLE_RATE}", self.sample_rate)));
        }
        self.check_bands()?;
        self.check_time()
    }

    fn check_bands(&self) -> Result<(), (&'static str, String)> {
        for (field, bands) in
            [("harmonic_bands", self.harmonic_bands), ("noise_bands", self.noise_bands)]
        {
            if bands < 2 {
                return Err((field, format!("{bands}, expected at least 2")));
            }
        }
        let half = SAMPLE_RATE as f32 / 2.0;
        if self.max_frequency != half {
            return Err(("max_frequency", format!("{}, expected {half}", self.max_frequency)));
        }
        // Negated, so that a NaN is refused too.
        if !(self.pulse_max_frequency > 0.0 && self.pulse_max_frequency <= half) {
            let reason =
                format!("{}, expected above 0 and at most {half}", self.pulse_max_frequency);
            return Err(("pulse_max_frequency", reason));
        }
        Ok(())
    }

    fn check_time(&self) -> Result<(), (&'static str, String)> {
        if !FRAME_SAMPLES.is_multiple_of(self.subframes * self.hop) {
            let reason = format!(
                "{} samples in {} sub-frames do not divide a frame of {FRAME_SAMPLES}",
                self.hop, self.subframes
            );
            return Err(("hop", reason));
        }
        if !self.hop.is_multiple_of(2) {
            return Err(("hop", format!("{}, expected even", self.hop)));
        }
        if !self.n_fft.is_multiple_of(2) || self.n_fft < self.hop {
            return Err(("n_fft", format!("{}, expected even and at least the hop", self.n_fft)));
        }
        if self.synthesis_reach_samples() > FRAME_SAMPLES {
            let reason = format!(
                "a sample would depend on {} samples around it, expected at most a frame of {FRAME_SAMPLES}",
                self.synthesis_reach_samples()
            );
            return Err(("n_fft", reason));
        }
        for (field, kernels) in
            [("frame_blocks", &self.frame_blocks), ("subframe_blocks", &self.subframe_blocks)]
        {
            if let Some(kernel) = kernels.iter().find(|k| k.is_multiple_of(2)) {
                return Err((field, format!("kernel {kernel}, expected odd kernels")));
            }
        }
        Ok(())
    }
}
