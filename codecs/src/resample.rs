//! Sample-rate conversion of a stream, mono, among the seven rates that clients ask for.
//!
//! Band-limited by FFT in blocks of 20 ms (40 ms from or to 22,050 Hz):
//!
//! ```text
//! in   |== 20 ms ==|== 20 ms ==|== 7 ms ==: kept until more comes, or the end
//! out    :== 20 ms ==|== 20 ms ==|         the filter's delay of 10 ms is cut off at the start
//! ```
//!
//! It knows nothing of packets or codecs. Any division of the input into pieces gives the same samples.

use rubato::audioadapter_buffers::direct::SequentialSlice;
use rubato::{Fft, FixedSync, Resampler as _};

/// The rates among which streams are converted, in Hz.
pub const RATES: [u32; 7] = [8_000, 16_000, 22_050, 24_000, 32_000, 44_100, 48_000];

/// Rates that recordings come at beside [`RATES`], in Hz. 11,025 Hz is not among them: its blocks are no even number of samples.
pub const RECORDING_RATES: [u32; 5] = [12_000, 88_200, 96_000, 176_400, 192_000];

/// A rate that is not one of [`RATES`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "sample rate {rate} Hz is not supported; supported are 8000, 16000, 22050, 24000, 32000, 44100 and 48000"
)]
pub struct UnsupportedRate {
    /// The rate asked for, in Hz.
    pub rate: u32,
}

/// One stream's converter from one rate to another.
pub struct Resampler {
    in_rate: u64,
    out_rate: u64,
    /// Absent when the rates are equal: the samples pass unchanged.
    filter: Option<Filter>,
    samples_in: u64,
    samples_out: u64,
}

struct Filter {
    fft: Fft<f32>,
    /// Input that does not fill a block yet.
    carry: Vec<f32>,
    block: Vec<f32>,
    /// Output still to be dropped: the filter's delay.
    skip: usize,
}

impl Resampler {
    /// A converter at the start of a stream.
    ///
    /// # Errors
    /// A rate that is not one of [`RATES`].
    pub fn new(in_rate: u32, out_rate: u32) -> Result<Self, UnsupportedRate> {
        for rate in [in_rate, out_rate] {
            if !RATES.contains(&rate) {
                return Err(UnsupportedRate { rate });
            }
        }
        Ok(Self::between(in_rate, out_rate))
    }

    /// A converter that also takes the [`RECORDING_RATES`].
    ///
    /// # Errors
    /// An input rate that is in neither list, an output rate that is not one of [`RATES`].
    pub fn of_recording(in_rate: u32, out_rate: u32) -> Result<Self, UnsupportedRate> {
        if RECORDING_RATES.contains(&in_rate) && RATES.contains(&out_rate) {
            return Ok(Self::between(in_rate, out_rate));
        }
        Self::new(in_rate, out_rate)
    }

    fn between(in_rate: u32, out_rate: u32) -> Self {
        let filter = (in_rate != out_rate).then(|| Filter::new(in_rate, out_rate));
        let (in_rate, out_rate) = (in_rate.into(), out_rate.into());
        Self { in_rate, out_rate, filter, samples_in: 0, samples_out: 0 }
    }

    /// How far the output lies behind the input at most while the stream runs, in output samples: the filter's
    /// delay and one incomplete block. [`Resampler::finish`] lets all of it go; nothing is shifted in time.
    pub fn held_samples_max(&self) -> usize {
        self.filter.as_ref().map_or(0, |f| f.block.len() + f.fft.output_delay())
    }

    /// Converts the next piece, appending what is ready to `out`.
    pub fn push(&mut self, samples: &[f32], out: &mut Vec<f32>) {
        self.samples_in += samples.len() as u64;
        let before = out.len();
        match &mut self.filter {
            None => out.extend_from_slice(samples),
            Some(filter) => filter.push(samples, out),
        }
        self.samples_out += (out.len() - before) as u64;
    }

    /// Ends the stream: appends the rest, so that n input samples have given n * out / in in all, rounded up.
    /// The converter is then as new.
    pub fn finish(&mut self, out: &mut Vec<f32>) {
        let total = (self.samples_in * self.out_rate).div_ceil(self.in_rate);
        let missing = (total - self.samples_out) as usize;
        if let Some(filter) = &mut self.filter {
            filter.finish(missing, out);
        }
        (self.samples_in, self.samples_out) = (0, 0);
    }
}

impl Filter {
    fn new(in_rate: u32, out_rate: u32) -> Self {
        let blocks = blocks_per_second(in_rate, out_rate);
        let (in_block, out_block) = (in_rate / blocks, out_rate / blocks);
        let fft = Fft::new_custom(
            in_rate as usize,
            out_rate as usize,
            in_block as usize,
            1, // one FFT a block
            1, // channel
            rubato::WindowFunction::BlackmanHarris2,
            FixedSync::Both,
        )
        .expect("a block is a whole number of samples at every supported rate; this is a bug");
        let skip = fft.output_delay();
        let carry = Vec::with_capacity(in_block as usize);
        Self { fft, carry, block: vec![0.0; out_block as usize], skip }
    }

    fn push(&mut self, mut samples: &[f32], out: &mut Vec<f32>) {
        let block_len = self.fft.input_frames_next();
        while self.carry.len() + samples.len() >= block_len {
            let (head, rest) = samples.split_at(block_len - self.carry.len());
            self.carry.extend_from_slice(head);
            samples = rest;
            self.convert_block(out);
        }
        self.carry.extend_from_slice(samples);
    }

    fn convert_block(&mut self, out: &mut Vec<f32>) {
        let input = SequentialSlice::new(&self.carry, 1, self.carry.len());
        let frames = self.block.len();
        let output = SequentialSlice::new_mut(&mut self.block, 1, frames);
        let sizes = "both buffers hold exactly one block; this is a bug";
        self.fft
            .process_into_buffer(&input.expect(sizes), &mut output.expect(sizes), None)
            .expect(sizes);
        self.carry.clear();
        let skipped = self.skip.min(frames);
        self.skip -= skipped;
        out.extend_from_slice(&self.block[skipped..]);
    }

    /// Pads with silence until `missing` more samples have come out, then starts anew.
    fn finish(&mut self, missing: usize, out: &mut Vec<f32>) {
        let end = out.len() + missing;
        let silence = vec![0.0; self.fft.input_frames_next()];
        while out.len() < end {
            let fill = silence.len() - self.carry.len();
            self.push(&silence[..fill], out);
        }
        out.truncate(end);
        self.carry.clear();
        self.fft.reset();
        self.skip = self.fft.output_delay();
    }
}

/// Blocks a second. A block must be an even number of samples at both rates, for its half is the filter's delay:
/// 20 ms are, but 441 samples at 22,050 Hz are not.
fn blocks_per_second(in_rate: u32, out_rate: u32) -> u32 {
    if in_rate == 22_050 || out_rate == 22_050 { 25 } else { 50 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::f64::consts::TAU;

    /// Power of what is not the tone, against the tone: f32 FFTs of these sizes and the window's side lobes.
    const IMPURITY_DB_MAX: f64 = -90.0;

    fn tone(rate: u32, hz: f64, n: usize) -> Vec<f32> {
        (0..n).map(|i| (0.5 * (TAU * hz * i as f64 / f64::from(rate)).sin()) as f32).collect()
    }

    fn convert(in_rate: u32, out_rate: u32, pieces: &[&[f32]]) -> Vec<f32> {
        let mut resampler = Resampler::new(in_rate, out_rate).unwrap();
        let mut out = Vec::new();
        for piece in pieces {
            resampler.push(piece, &mut out);
        }
        resampler.finish(&mut out);
        out
    }

    fn pairs() -> impl Iterator<Item = (u32, u32)> {
        RATES.into_iter().flat_map(|i| RATES.into_iter().map(move |o| (i, o)))
    }

    #[test]
    fn a_tone_stays_pure_and_in_its_place() {
        for (in_rate, out_rate) in pairs() {
            let out = convert(in_rate, out_rate, &[&tone(in_rate, 1000.0, in_rate as usize)]);
            let ideal = tone(out_rate, 1000.0, out_rate as usize);
            // The ends ring: there the tone begins and stops at once.
            let inner = out_rate as usize / 20..out.len() - out_rate as usize / 20;
            let energy = |s: &mut dyn Iterator<Item = f64>| s.map(|v| v * v).sum::<f64>();
            let error = energy(&mut inner.clone().map(|i| f64::from(out[i]) - f64::from(ideal[i])));
            let signal = energy(&mut inner.map(|i| f64::from(ideal[i])));
            let db = 10.0 * (error / signal).log10();
            assert!(db < IMPURITY_DB_MAX, "{in_rate} to {out_rate}: {db:.1} dB");
        }
    }

    #[test]
    fn what_the_lower_rate_cannot_hold_is_removed() {
        for (out_rate, hz) in [(8_000, 4_400.0), (16_000, 8_400.0), (22_050, 11_500.0)] {
            let out = convert(24_000, out_rate, &[&tone(24_000, hz, 24_000)]);
            let inner = &out[out.len() / 10..out.len() * 9 / 10];
            let peak = inner.iter().fold(0.0_f32, |m, s| m.max(s.abs()));
            assert!(peak < 5e-4, "{out_rate}: an alias of {peak}"); // -60 dB below the tone
        }
    }

    #[test]
    fn telephone_band_passes_whole() {
        let out = convert(24_000, 8_000, &[&tone(24_000, 3_400.0, 24_000)]);
        let ideal = tone(8_000, 3_400.0, 8_000);
        for i in 800..7_200 {
            assert!((out[i] - ideal[i]).abs() < 5e-3, "{i}"); // 0.1 dB of the tone
        }
    }

    #[test]
    fn length_is_exact_for_any_input() {
        for (in_rate, out_rate) in pairs() {
            for n in [0, 1, 7, 479, 480, 481, 4_801] {
                let expected =
                    (n as u64 * u64::from(out_rate)).div_ceil(u64::from(in_rate)) as usize;
                let out = convert(in_rate, out_rate, &[&vec![0.1; n]]);
                assert_eq!(out.len(), expected, "{in_rate} to {out_rate}, {n}");
            }
        }
    }

    #[test]
    fn a_finished_converter_is_as_new() {
        let signal = tone(24_000, 440.0, 5_000);
        let mut resampler = Resampler::new(24_000, 44_100).unwrap();
        let mut out = Vec::new();
        resampler.push(&tone(24_000, 3_000.0, 777), &mut out);
        resampler.finish(&mut out);
        out.clear();
        resampler.push(&signal, &mut out);
        resampler.finish(&mut out);
        assert_eq!(out, convert(24_000, 44_100, &[&signal]));
    }

    #[test]
    fn no_more_is_held_than_stated() {
        for (in_rate, out_rate) in pairs() {
            let mut resampler = Resampler::new(in_rate, out_rate).unwrap();
            let mut out = Vec::new();
            for n in 1..2_000 {
                resampler.push(&[0.0], &mut out);
                let due = n * out_rate as usize / in_rate as usize;
                assert!(due - out.len() <= resampler.held_samples_max());
            }
        }
    }

    #[test]
    fn a_recording_at_a_studios_rate_keeps_its_tone() {
        for rate in RECORDING_RATES {
            let mut resampler = Resampler::of_recording(rate, 24_000).unwrap();
            let mut out = Vec::new();
            resampler.push(&tone(rate, 1000.0, rate as usize), &mut out);
            resampler.finish(&mut out);
            assert_eq!(out.len(), 24_000);
            let ideal = tone(24_000, 1000.0, 24_000);
            for i in 1_200..22_800 {
                assert!((out[i] - ideal[i]).abs() < 1e-3, "{rate} Hz, sample {i}"); // -54 dB of the tone
            }
        }
        assert!(Resampler::of_recording(11_025, 24_000).is_err());
    }

    #[test]
    fn other_rates_are_refused() {
        assert_eq!(Resampler::new(24_000, 11_025).err(), Some(UnsupportedRate { rate: 11_025 }));
    }

    proptest! {
        #[test]
        fn pieces_equal_the_whole(
            cuts in prop::collection::vec(0_usize..3_000, 0..6),
            pair in prop::sample::select(pairs().collect::<Vec<_>>()),
        ) {
            let signal = tone(pair.0, 700.0, 3_000);
            let mut cuts = cuts;
            cuts.sort_unstable();
            let ends = cuts.iter().copied().chain([signal.len()]);
            let starts = [0].into_iter().chain(cuts.iter().copied());
            let pieces: Vec<&[f32]> = starts.zip(ends).map(|(a, b)| &signal[a..b]).collect();
            prop_assert_eq!(convert(pair.0, pair.1, &pieces), convert(pair.0, pair.1, &[&signal]));
        }
    }
}
