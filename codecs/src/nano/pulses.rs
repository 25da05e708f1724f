//! The voiced excitation: a train of band-limited pulses whose pitch glides, all harmonics in phase.

use std::ops::Range;

use super::elementary::sin_turns;

/// Lowest pitch, in Hz. The phase runs on with it where nothing is voiced, which decides where the next voiced stretch
/// begins; and the number of harmonics is bounded.
const PITCH_HZ_MIN: f32 = 40.0;
/// Where the closed form would divide by less than this, its limit stands instead.
const DENOMINATOR_MIN: f32 = 2e-3;
const SAMPLE_RATE: f64 = 24_000.0;

/// Makes pulse trains.
pub(super) struct PulseTrain {
    /// Samples from one given pitch to the next; even.
    hop: usize,
    /// No harmonic above this, in Hz.
    max_hz: f32,
}

impl PulseTrain {
    pub(super) fn new(hop: usize, max_hz: f32) -> Self {
        Self { hop, max_hz }
    }

    /// Appends the samples of `range` to `out`.
    ///
    /// `pitch_hz` tells the pitch in the middle of each hop, 0 where unvoiced. `phase` is the phase before the first
    /// sample, in turns, and becomes the phase after the last.
    pub(super) fn render(
        &self,
        pitch_hz: impl Fn(isize) -> f32,
        range: Range<usize>,
        phase: &mut f64,
        out: &mut Vec<f32>,
    ) {
        let mut line = Line { hz: vec![0.0; self.hop], turns: vec![0.0; self.hop] };
        let half = self.hop / 2;
        let mut n = range.start;
        while n < range.end {
            // From the middle of one hop to the middle of the next the pitch follows a straight line.
            let hop = (n + half) / self.hop;
            let end = (hop * self.hop + half).min(range.end);
            let part = n + half - hop * self.hop..end + half - hop * self.hop;
            let (from, to) = (pitch_hz(hop as isize - 1), pitch_hz(hop as isize));
            line.follow([from.min(self.max_hz), to.min(self.max_hz)], part.clone(), phase);
            let values = line.hz[part.clone()].iter().zip(&line.turns[part]);
            out.extend(values.map(|(&hz, &turns)| self.pulse(hz, turns)));
            n = end;
        }
    }

    /// Sum of the cosines of all harmonics at a phase in turns, from 0 to 1; 0 where unvoiced.
    #[inline]
    fn pulse(&self, hz: f32, turns: f64) -> f32 {
        // With t the phase and H harmonics and a half: sin(H t) / (2 sin(t / 2)) - 1/2, the Dirichlet kernel.
        let harmonics = (self.max_hz / hz.max(PITCH_HZ_MIN)).floor() + 0.5;
        let cycles = f64::from(harmonics) * turns;
        let numerator = sin_turns((cycles - cycles.round_ties_even()) as f32);
        let denominator = 2.0 * sin_turns(0.5 * turns.min(1.0 - turns) as f32);
        let kernel =
            if denominator < DENOMINATOR_MIN { harmonics } else { numerator / denominator };
        if hz > 0.0 { kernel - 0.5 } else { 0.0 }
    }
}

/// Pitch and phase of each sample between the middles of two hops.
struct Line {
    hz: Vec<f32>,
    turns: Vec<f64>,
}

impl Line {
    fn follow(&mut self, [from, to]: [f32; 2], part: Range<usize>, phase: &mut f64) {
        let samples = self.hz.len() as f32;
        let glides = from > 0.0 && to > 0.0;
        for i in part {
            let place = (i as f32 + 0.5) / samples;
            let hz = match glides {
                true => (to - from).mul_add(place, from),
                // A voiced and an unvoiced neighbour have nothing between them.
                false if place < 0.5 => from,
                false => to,
            };
            *phase += f64::from(hz.max(PITCH_HZ_MIN)) / SAMPLE_RATE;
            if *phase >= 1.0 {
                *phase -= 1.0;
            }
            self.hz[i] = hz;
            self.turns[i] = *phase;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRAIN: PulseTrain = PulseTrain { hop: 240, max_hz: 11_000.0 };

    fn render(pitch: &[f32], range: Range<usize>, phase: &mut f64) -> Vec<f32> {
        let mut out = Vec::new();
        let at = |hop: isize| pitch[hop.clamp(0, pitch.len() as isize - 1) as usize];
        TRAIN.render(at, range, phase, &mut out);
        out
    }

    #[test]
    fn a_steady_pitch_is_the_sum_of_its_harmonics() {
        let samples = render(&[230.0; 4], 0..960, &mut 0.0);
        for (n, got) in samples.into_iter().enumerate() {
            let turn = (n as f64 + 1.0) * 230.0 / 24_000.0;
            let cosine = |k: i32| (f64::from(k) * turn * std::f64::consts::TAU).cos();
            let expected: f64 = (1..=47).map(cosine).sum(); // 47 * 230 = 10,810 Hz
            // 1e-5 of the pulse's height; more where the limit replaces the quotient.
            assert!((f64::from(got) - expected).abs() < 5e-3, "{n}: {got} for {expected}");
        }
    }

    #[test]
    fn unvoiced_stretches_are_silent_and_the_phase_runs_on() {
        let mut phase = 0.05;
        let samples = render(&[0.0, 0.0, 100.0, 100.0], 0..960, &mut phase);
        // The nearer hop decides: the voice begins half way between the middles of hops 1 and 2.
        assert!(samples[..480].iter().all(|&s| s == 0.0));
        assert!(samples[480..485].iter().any(|&s| s != 0.0));
        let expected: f64 = 0.05 + 480.0 * 40.0 / 24_000.0 + 480.0 * 100.0 / 24_000.0;
        assert!((phase - expected.fract()).abs() < 1e-9);
    }

    #[test]
    fn pieces_equal_the_whole_to_the_bit() {
        let pitch = [90.0, 130.0, 0.0, 210.0, 205.0];
        let whole = render(&pitch, 0..1_200, &mut 0.0);
        let (mut phase, mut pieces) = (0.0, Vec::new());
        for range in [0..1, 1..120, 120..500, 500..1_199, 1_199..1_200] {
            pieces.extend(render(&pitch, range, &mut phase));
        }
        assert_eq!(pieces, whole);
    }

    #[test]
    fn pitches_beyond_reason_stay_finite() {
        for hz in [1e-30, 1.0, 11_500.0, f32::MAX, f32::INFINITY, f32::NAN] {
            let samples = render(&[hz, 100.0, hz], 0..720, &mut 0.0);
            assert!(samples.iter().all(|s| s.is_finite() && s.abs() < 300.0), "{hz}");
        }
    }
}
