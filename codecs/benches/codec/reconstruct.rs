//! One commit of streaming reconstruction: at the sizes of the release, and how its cost depends on what is spoken
//! already.

use std::path::{Path, PathBuf};

use codecs::dualcodec;
use codecs::reconstruct::{Codec, Dual, Family, Stream};
use codecs::vibevoice::Tokenizer;
use codecs::weights::Weights;
use codecs::window::{End, latents_of};

use super::{Workload, seconds_of, vibevoice};

const ACOUSTIC_ROWS: usize = 3;
const FIRST_FRAMES: usize = 40;
const GRID_FRAMES: usize = 25;
const WITHHELD_FRAMES: usize = 5;
const FRAME_S: f64 = 0.08;
/// Entries that even the smallest codebook has.
const ENTRIES: usize = 64;

/// A commit may cost at most this much more late in a passage than early.
const GROWTH_AIM: f64 = 1.05;
const GROWTH_RUNS: usize = 8;
/// Commits timed together, since the system counts time on a core in ticks of 4 ms.
const GROWTH_COMMITS: usize = 8;

/// One commit, 12 s into a passage: decode and encode 105 frames, decode 15 latents.
pub(crate) fn commit() -> Workload {
    const KNOWN: usize = 155;
    let config = dualcodec::Config::release();
    let weights = super::dualcodec::layout(&config).open();
    let decoder = dualcodec::Decoder::load(&weights, &config, ACOUSTIC_ROWS).expect("loads");
    let codec = joined(decoder, &config, vibevoice::tokenizer());
    let mut stream = codec.stream(FIRST_FRAMES, 0).expect("the published settings");
    push(&codec, &mut stream, FIRST_FRAMES);
    while stream.plan().known_frames() < KNOWN {
        let new = stream.plan().next_event() - stream.plan().known_frames();
        push(&codec, &mut stream, new);
    }
    let window = stream.plan().clone().grow(GRID_FRAMES, End::No).remove(0);
    let macs = super::dualcodec::decode_macs(&config, window.decode.len())
        + vibevoice::half_macs(window.decoded_latents())
        + vibevoice::half_macs(latents_of(window.emit.len()));
    Workload {
        name: format!("reconstruction, a commit of {GRID_FRAMES} frames"),
        audio_s: window.emit.len() as f64 * FRAME_S,
        macs,
        run: Box::new(move || push(&codec, &mut stream.clone(), GRID_FRAMES)),
    }
}

/// Times a commit at 12 s and at 300 s of the same passage. With the small models of the fixtures: at the sizes of
/// the release it would take minutes to get there, and everything that could grow weighs more beside less work.
pub(crate) fn report_growth() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/fixtures");
    let folder: PathBuf = root.join("dualcodec_tiny");
    let config = dualcodec::Config::read(&folder.join("config.json")).expect("the fixture");
    let weights = Weights::open(&folder).expect("the fixture");
    let decoder = dualcodec::Decoder::load(&weights, &config, ACOUSTIC_ROWS).expect("the fixture");
    let tokenizer = Tokenizer::open(&root.join("vibevoice_tiny")).expect("the fixture");
    let codec = joined(decoder, &config, tokenizer);
    let mut stream = codec.stream(FIRST_FRAMES, 0).expect("the published settings");
    push(&codec, &mut stream, FIRST_FRAMES);
    let [early, late] = [150, 3750].map(|frames| {
        while stream.plan().known_frames() < frames + WITHHELD_FRAMES {
            let new = stream.plan().next_event() - stream.plan().known_frames();
            push(&codec, &mut stream, new);
        }
        stream.clone()
    });
    let best = |stream: &Stream| {
        let mut commits = || {
            for _ in 0..GROWTH_COMMITS {
                push(&codec, &mut stream.clone(), GRID_FRAMES);
            }
        };
        (0..GROWTH_RUNS).map(|_| seconds_of(&mut commits)).fold(f64::INFINITY, f64::min)
    };
    let growth = best(&late) / best(&early);
    let verdict = if growth <= GROWTH_AIM { "" } else { "  above the aim of 1.05" };
    println!("a commit at 300 s of a passage against one at 12 s: {growth:.3} times{verdict}");
}

fn joined(decoder: dualcodec::Decoder, config: &dualcodec::Config, tokenizer: Tokenizer) -> Codec {
    let dual = Dual::new(decoder, config, tokenizer);
    Codec::new(Family::Dual(Box::new(dual)), None).expect("no silence code to refuse")
}

/// Pushes codes without a pattern.
fn push(codec: &Codec, stream: &mut Stream, frames: usize) {
    let first = stream.plan().known_frames();
    let row = |row: usize| -> Vec<u16> {
        (first..first + frames).map(|t| ((t * 7919 + row * 31) % ENTRIES) as u16).collect()
    };
    let rows: Vec<Vec<u16>> = (0..codec.rows()).map(row).collect();
    let rows: Vec<&[u16]> = rows.iter().map(Vec::as_slice).collect();
    std::hint::black_box(codec.push(stream, &rows, End::No).expect("codes in range"));
}
