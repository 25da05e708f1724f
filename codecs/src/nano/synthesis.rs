//! Parameters to samples: pulses and noise, each given its spectral envelope every 10 ms, overlapped and added.
//!
//! ```text
//! hop j is centred on sample 240 j of the passage:
//!
//! pulses   ....|------ 1,200 samples, Hann ------|....  -> spectrum x harmonic magnitudes --+
//! noise    a complex normal deviate for each bin        ->          x noise magnitudes -----+-> back, Hann, added
//! ```
//!
//! Every value depends on its place in the passage alone, never on the window that was asked for, so a passage
//! rendered in pieces is the passage rendered whole, to the bit.

use std::ops::Range;
use std::sync::Arc;

use realfft::num_complex::Complex32;
use realfft::{ComplexToReal, RealFftPlanner, RealToComplex};

use super::bands::Bands;
use super::config::Config;
use super::noise::NoiseKey;
use super::pulses::PulseTrain;
use crate::frames::Frames;
use crate::window::FRAME_SAMPLES;

/// Least sum of squared windows that the output is divided by: at the very ends of a passage it goes to 0.
const WINDOW_SUM_MIN: f32 = 1e-3;

/// Renders parameters. It holds plans and tables only; threads may share it.
pub(super) struct Synthesizer {
    hop: usize,
    hops_per_subframe: usize,
    subframes: usize,
    /// Periodic Hann window, one spectrum long.
    window: Vec<f32>,
    forward: Arc<dyn RealToComplex<f32>>,
    inverse: Arc<dyn ComplexToReal<f32>>,
    pulses: PulseTrain,
    harmonic_bands: Bands,
    noise_bands: Bands,
    harmonic_count: usize,
    /// The bundle's gain and what the unscaled inverse transform leaves over.
    gain: f32,
}

/// The parameters of some frames of a passage.
pub(super) struct Stretch<'a> {
    /// The first frame, counted from the start of the passage.
    pub(super) first_frame: usize,
    /// `[sub-frames, 1 + bands]`.
    pub(super) parameters: &'a Frames,
}

/// The noise of a passage.
#[derive(Clone, Copy)]
pub(super) struct Noise {
    pub(super) key: NoiseKey,
    /// Frames of the context before this passage, so that no two passages hear the same noise.
    pub(super) frames_before: u64,
}

impl Synthesizer {
    pub(super) fn new(config: &Config, output_gain: f32) -> Self {
        let n = config.n_fft;
        let mut planner = RealFftPlanner::new();
        let hann = |i: usize| 0.5 - 0.5 * (std::f64::consts::TAU * i as f64 / n as f64).cos();
        let bands = |count| Bands::new(count, n / 2 + 1, config.max_frequency.into());
        Self {
            hop: config.hop,
            hops_per_subframe: config.hops_per_subframe(),
            subframes: config.subframes,
            window: (0..n).map(|i| hann(i) as f32).collect(),
            forward: planner.plan_fft_forward(n),
            inverse: planner.plan_fft_inverse(n),
            pulses: PulseTrain::new(config.hop, config.pulse_max_frequency),
            harmonic_bands: bands(config.harmonic_bands),
            noise_bands: bands(config.noise_bands),
            harmonic_count: config.harmonic_bands,
            gain: output_gain / n as f32,
        }
    }

    /// The samples of the frames `emit`, counted from the start of the passage.
    ///
    /// `phase` is the phase of the pulses where the first of them that these frames hear begins; it becomes the one
    /// for the frames that follow.
    pub(super) fn render(
        &self,
        stretch: &Stretch<'_>,
        emit: Range<usize>,
        phase: &mut f64,
        noise: Option<Noise>,
    ) -> Vec<f32> {
        let track = self.interpolate(stretch);
        let samples = emit.start * FRAME_SAMPLES..emit.end * FRAME_SAMPLES;
        let hops = self.hops_heard(&samples, &track);
        let pulses = self.excite(&track, &hops, samples.end, phase);

        let mut overlap = Overlap::new(samples);
        let mut scratch = Scratch::new(self);
        for hop in hops {
            let start = self.hop_start(hop);
            scratch.clear();
            if pulses.cut(start, &self.window, &mut scratch.time) {
                self.add_pulses(track.row(hop as isize), &mut scratch);
            }
            if let Some(noise) = noise {
                self.add_noise(hop, track.row(hop as isize), noise, &mut scratch);
            }
            self.to_time(&mut scratch);
            overlap.add(start, &scratch.time, &self.window);
        }
        overlap.finish(self.gain)
    }

    /// Parameters in the middle of each hop, on straight lines between the middles of sub-frames.
    fn interpolate(&self, stretch: &Stretch<'_>) -> Track {
        let (parameters, hops) = (stretch.parameters, self.hops_per_subframe);
        let last = parameters.time().saturating_sub(1);
        let row =
            |i: usize| &parameters.data()[i * parameters.channels()..][..parameters.channels()];
        let mut data = Vec::with_capacity(parameters.data().len() * hops);
        for hop in 0..parameters.time() * hops {
            // Counted in half hops from the middle of the first sub-frame.
            let twice = (2 * hop + 1).saturating_sub(hops);
            let (low, part) = (twice / (2 * hops), (twice % (2 * hops)) as f32 / (2 * hops) as f32);
            let (low, high) = (row(low.min(last)), row((low + 1).min(last)));
            let start = data.len();
            data.extend(low.iter().zip(high).map(|(l, h)| (h - l).mul_add(part, *l)));
            if low[0] == 0.0 || high[0] == 0.0 {
                // Between voiced and unvoiced the nearer one counts.
                data[start] = if part < 0.5 { low[0] } else { high[0] };
            }
        }
        let first = stretch.first_frame * self.subframes * hops;
        Track { first, rows: Frames::new(data, parameters.channels()) }
    }

    /// The pulses under `hops`; `phase` becomes the phase where those for the samples from `end` on begin.
    fn excite(&self, track: &Track, hops: &Range<usize>, end: usize, phase: &mut f64) -> Pulses {
        let known_end = track.end() * self.hop;
        let start = self.pulses_start(hops.start);
        let next = self.pulses_start(self.first_hop(end)).min(known_end);
        let stop = (hops.end * self.hop + self.window.len() / 2).min(known_end);
        let mut samples = Vec::with_capacity(stop - start);
        let pitch_hz = |hop: isize| track.row(hop)[0];
        self.pulses.render(pitch_hz, start..next, phase, &mut samples);
        let mut ahead = *phase;
        self.pulses.render(pitch_hz, next..stop, &mut ahead, &mut samples);
        Pulses { start, samples }
    }

    /// The first hop whose window reaches beyond sample `n`; the window's first value is 0 and does not count.
    fn first_hop(&self, n: usize) -> usize {
        (n + 1).saturating_sub(self.window.len() / 2).div_ceil(self.hop)
    }

    /// Hops whose windows lie on some of `samples`.
    fn hops_heard(&self, samples: &Range<usize>, track: &Track) -> Range<usize> {
        let beyond = (samples.end + self.window.len() / 2).div_ceil(self.hop);
        self.first_hop(samples.start)..beyond.min(track.end())
    }

    /// Where a hop's window begins.
    fn hop_start(&self, hop: usize) -> isize {
        (hop * self.hop) as isize - (self.window.len() / 2) as isize
    }

    fn pulses_start(&self, hop: usize) -> usize {
        self.hop_start(hop).max(0) as usize
    }

    fn add_pulses(&self, row: &[f32], scratch: &mut Scratch) {
        let Scratch { time, spectrum, pulse_spectrum, magnitudes, forward, .. } = scratch;
        let lengths = "all buffers have the plan's lengths; this is a bug";
        self.forward.process_with_scratch(time, pulse_spectrum, forward).expect(lengths);
        self.harmonic_bands.magnitudes(&row[1..=self.harmonic_count], magnitudes);
        for ((out, x), m) in spectrum.iter_mut().zip(pulse_spectrum).zip(magnitudes) {
            *out += *x * *m;
        }
    }

    fn add_noise(&self, hop: usize, row: &[f32], noise: Noise, scratch: &mut Scratch) {
        let hops_a_frame = (self.subframes * self.hops_per_subframe) as u64;
        let place = noise.frames_before * hops_a_frame + hop as u64;
        let Scratch { spectrum, magnitudes, real, imaginary, .. } = scratch;
        noise.key.fill(place, real, imaginary);
        self.noise_bands.magnitudes(&row[1 + self.harmonic_count..], magnitudes);
        for (((out, re), im), m) in spectrum.iter_mut().zip(real).zip(imaginary).zip(magnitudes) {
            *out += Complex32::new(*re * *m, *im * *m);
        }
    }

    fn to_time(&self, scratch: &mut Scratch) {
        let Scratch { time, spectrum, inverse, .. } = scratch;
        // The first and last bin of a real signal are real.
        for bin in [0, spectrum.len() - 1] {
            spectrum[bin].im = 0.0;
        }
        let lengths = "all buffers have the plan's lengths; this is a bug";
        self.inverse.process_with_scratch(spectrum, time, inverse).expect(lengths);
    }
}

/// Parameters in the middle of each hop.
struct Track {
    /// The first hop, counted from the start of the passage.
    first: usize,
    rows: Frames,
}

impl Track {
    fn end(&self) -> usize {
        self.first + self.rows.time()
    }

    /// The parameters of a hop; beyond the ends those of the last hop there.
    fn row(&self, hop: isize) -> &[f32] {
        let last = self.rows.time() as isize - 1;
        let index = (hop - self.first as isize).clamp(0, last) as usize;
        &self.rows.data()[index * self.rows.channels()..][..self.rows.channels()]
    }
}

/// Pulses from a sample of the passage on; silence before and after.
struct Pulses {
    start: usize,
    samples: Vec<f32>,
}

impl Pulses {
    /// Cuts out one window and weighs it; says whether there is anything in it.
    fn cut(&self, start: isize, window: &[f32], out: &mut [f32]) -> bool {
        let offset = start - self.start as isize;
        let skipped = offset.min(0).unsigned_abs();
        let from = offset.max(0) as usize;
        let weight = 4.0 / window.len() as f32; // a Hann window sums to half its length; a cosine has two sides
        let pulses = self.samples.get(from..).unwrap_or_default();
        let mut any = false;
        for ((out, w), pulse) in out[skipped..].iter_mut().zip(&window[skipped..]).zip(pulses) {
            *out = pulse * (w * weight);
            any |= *pulse != 0.0;
        }
        any
    }
}

/// Windows added up over the samples that go out.
struct Overlap {
    start: usize,
    samples: Vec<f32>,
    /// Sum of the squared windows on each sample.
    weights: Vec<f32>,
}

impl Overlap {
    fn new(range: Range<usize>) -> Self {
        let zeros = vec![0.0; range.len()];
        Self { start: range.start, samples: zeros.clone(), weights: zeros }
    }

    fn add(&mut self, start: isize, values: &[f32], window: &[f32]) {
        let offset = start - self.start as isize;
        let skipped = offset.min(0).unsigned_abs();
        let from = offset.max(0) as usize;
        let places = self.samples[from..].iter_mut().zip(&mut self.weights[from..]);
        for (((sample, weight), v), w) in places.zip(&values[skipped..]).zip(&window[skipped..]) {
            *sample = v.mul_add(*w, *sample);
            *weight = w.mul_add(*w, *weight);
        }
    }

    fn finish(mut self, gain: f32) -> Vec<f32> {
        for (sample, weight) in self.samples.iter_mut().zip(self.weights) {
            *sample = (*sample / weight.max(WINDOW_SUM_MIN) * gain).clamp(-1.0, 1.0);
        }
        self.samples
    }
}

/// Buffers of one hop, made once a call.
struct Scratch {
    time: Vec<f32>,
    spectrum: Vec<Complex32>,
    pulse_spectrum: Vec<Complex32>,
    magnitudes: Vec<f32>,
    real: Vec<f32>,
    imaginary: Vec<f32>,
    forward: Vec<Complex32>,
    inverse: Vec<Complex32>,
}

impl Scratch {
    fn new(synthesizer: &Synthesizer) -> Self {
        let n = synthesizer.window.len();
        let bins = n / 2 + 1;
        Self {
            time: vec![0.0; n],
            spectrum: vec![Complex32::default(); bins],
            pulse_spectrum: vec![Complex32::default(); bins],
            magnitudes: vec![0.0; bins],
            real: vec![0.0; bins],
            imaginary: vec![0.0; bins],
            forward: synthesizer.forward.make_scratch_vec(),
            inverse: synthesizer.inverse.make_scratch_vec(),
        }
    }

    fn clear(&mut self) {
        self.time.fill(0.0);
        self.spectrum.fill(Complex32::default());
    }
}
