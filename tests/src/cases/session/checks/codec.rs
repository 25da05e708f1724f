//! Whether the sound of a real codec is what it would be if all of its codes were known at once, also where windows join.

use std::ops::Range;

use anyhow::{Context as _, bail};
use codecs::nano::Nano;
use codecs::reconstruct::{Codec, Family};
use engine::bundle::{self, Bundle};

use super::audio::decoded;
use super::{Miss, hard, targets};
use crate::cases::session::args::Args;
use crate::cases::session::repository;
use crate::cases::session::run::Run;
use crate::cases::session::server::Spoken;

/// The voice whose codec the stub speaks with when a script asks for one.
const VOICE: &str = "voices/nano";
/// A frame of codes: where a passage begins and ends, a whole one may be decoded with other silence around it.
const EDGE_SAMPLES: usize = 1_920;
/// What is beside a join, on each side: 20 ms.
const BESIDE_SAMPLES: usize = 480;

pub(super) async fn check(run: &Run, args: &mut Args) -> Result<bool, Miss> {
    match &*args.name.clone() {
        "stream_vs_full_snr_db" => {
            let min: f64 = args.need("min")?;
            for (connection, ctx) in targets(run, args)? {
                let spoken = run.spoken(&connection, &ctx).await?;
                let (streamed, whole) = (decoded(&connection, &ctx)?, whole(&spoken)?);
                let lengths = (streamed.len(), whole.len());
                hard(lengths.0 == lengths.1, || format!("{lengths:?} samples"))?;
                let ratio = snr_db(&whole, &streamed);
                hard(ratio >= min, || format!("{ratio:.1} dB"))?;
            }
        }
        "join_jump_ratio" => {
            let max: f64 = args.need("max")?;
            for (connection, ctx) in targets(run, args)? {
                let spoken = run.spoken(&connection, &ctx).await?;
                let sound = decoded(&connection, &ctx)?;
                let joins = joins(&spoken.pieces);
                hard(!joins.is_empty(), || "all sound went out at once".to_owned())?;
                let ratio = joins.iter().map(|&at| jump_ratio(&sound, at)).fold(0.0, f64::max);
                hard(ratio <= max, || format!("{ratio:.2} at one of {joins:?}"))?;
            }
        }
        _ => return Ok(false),
    }
    Ok(true)
}

/// All codes of a context, decoded at once.
fn whole(spoken: &Spoken) -> anyhow::Result<Vec<f32>> {
    let bundle = Bundle::open(&repository(VOICE))?;
    let bundle::Codec::Nano { folder } = &bundle.codec else { bail!("{VOICE} has another codec") };
    let nano = Nano::load(folder, bundle.manifest.output_gain)?;
    let codec = Codec::new(Family::Nano(Box::new(nano)), None)?;
    let rows: Vec<&[u16]> = spoken.codes.iter().map(Vec::as_slice).collect();
    let mut sound = codec.offline(&rows, spoken.seed).context("codes of the stub")?;
    sound.iter_mut().for_each(|s| *s = s.clamp(-1.0, 1.0));
    Ok(sound)
}

/// How far a sound lies above its difference from another, away from the ends.
fn snr_db(whole: &[f32], other: &[f32]) -> f64 {
    let inside: Range<usize> = EDGE_SAMPLES..whole.len().saturating_sub(EDGE_SAMPLES);
    let power = |of: &dyn Fn(usize) -> f64| inside.clone().map(|i| of(i).powi(2)).sum::<f64>();
    let sound = power(&|i| f64::from(whole[i]));
    let error = power(&|i| f64::from(whole[i]) - f64::from(other[i]));
    10.0 * (sound / error.max(f64::MIN_POSITIVE)).log10()
}

/// Where pieces of sound meet.
fn joins(pieces: &[usize]) -> Vec<usize> {
    let ends = pieces.iter().scan(0, |end, piece| {
        *end += piece;
        Some(*end)
    });
    ends.take(pieces.len().saturating_sub(1)).collect()
}

/// The step of the sound at a join against the largest beside it.
fn jump_ratio(sound: &[f32], at: usize) -> f64 {
    let step = |i: usize| f64::from((sound[i] - sound[i - 1]).abs());
    let beside = (at.saturating_sub(BESIDE_SAMPLES).max(1)..at)
        .chain(at + 1..(at + BESIDE_SAMPLES).min(sound.len()));
    let largest = beside.map(step).fold(0.0, f64::max);
    if at < sound.len() { step(at) / largest.max(f64::MIN_POSITIVE) } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_click_at_a_join_is_found() {
        let mut sound: Vec<f32> = (0..9_600).map(|i| (i as f32 * 0.05).sin() * 0.3).collect();
        let whole = sound.clone();
        assert_eq!(joins(&[4_000, 800, 4_800]), [4_000, 4_800]);
        assert!(jump_ratio(&sound, 4_800) <= 1.01);
        sound[4_800..].iter_mut().for_each(|s| *s += 0.1);
        assert!(jump_ratio(&sound, 4_800) > 1.5 && jump_ratio(&sound, 4_000) <= 1.01);
        assert!(snr_db(&whole, &sound) < 15.0 && snr_db(&whole, &whole) > 100.0);
    }
}
