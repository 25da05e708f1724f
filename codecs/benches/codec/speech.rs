//! The codecs of speech language models at the sizes of the releases: streams a frame at a time, alone and eight together, whole
//! clips, and encoding. Real-time factors of one core of an AMD EPYC with AVX-512, other work running beside, each stream's own:
//!
//! | | a stream alone | of eight together | a clip | encode |
//! |---|---|---|---|---|
//! | X-Codec | 0.30 | 0.15 | 0.15 | |
//! | DAC | 0.79 | 0.39 | 0.34 | 0.15 |
//! | SEANet | 0.10 | 0.05 | 0.04 | 0.04 |
//!
//! Aim: 0.15 for a stream. A frame of one stream is eight rows and less in the widest layers, so reading the weights (80 MB of
//! X-Codec) is most of what it costs.

use std::path::Path;

use codecs::codes::Piece;
use codecs::{dac, seanet, xcodec};
use serde_json::{Value, json};

use super::Workload;
use super::weights::Layout;

/// Frames of a run, a second of sound.
const FRAMES: usize = 50;
const FRAME_SAMPLES: usize = 320;
const SAMPLE_RATE: usize = 16_000;
const CODEBOOKS: usize = 8;
const ENTRIES: usize = 1024;
/// Streams that are decoded together.
const STREAMS: usize = 8;
/// Taps of the first layer, the last one and the wide one of a residual unit.
const KERNEL: usize = 7;
/// Strides of every decoder, first to last.
const RATES: [usize; 4] = [8, 5, 4, 2];

/// A decoder: a run of one stream, of several together, and of a clip.
macro_rules! workloads {
    ($name:literal, $load:ident, $macs:ident, $frame:ident, $together:ident, $clip:ident) => {
        pub(crate) fn $frame() -> Workload {
            let decoder = $load();
            let mut state = decoder.state();
            let codes = codes(FRAMES);
            streamed(concat!($name, ", frame by frame"), 1, $macs(), move || {
                for frame in 0..FRAMES {
                    let piece: Vec<&[u16]> = codes.iter().map(|row| &row[frame..=frame]).collect();
                    let samples = decoder.step(&mut state, &piece, false).expect("codes in range");
                    std::hint::black_box(samples);
                }
            })
        }

        pub(crate) fn $together() -> Workload {
            let decoder = $load();
            let mut states = vec![decoder.state(); STREAMS];
            let codes = codes(FRAMES);
            let name = format!(concat!($name, ", {} streams frame by frame"), STREAMS);
            streamed(&name, STREAMS, $macs(), move || {
                for frame in 0..FRAMES {
                    let piece: Vec<&[u16]> = codes.iter().map(|row| &row[frame..=frame]).collect();
                    let pieces = states.iter_mut();
                    let pieces =
                        pieces.map(|state| Piece { state, codes: &piece, ended: false }).collect();
                    std::hint::black_box(decoder.step_each(pieces).expect("codes in range"));
                }
            })
        }

        pub(crate) fn $clip() -> Workload {
            let decoder = $load();
            let codes = codes(FRAMES);
            streamed(concat!($name, ", a clip of a second"), 1, $macs(), move || {
                let rows: Vec<&[u16]> = codes.iter().map(Vec::as_slice).collect();
                std::hint::black_box(decoder.decode(&rows).expect("codes in range"));
            })
        }
    };
}

workloads!("X-Codec", load_xcodec, xcodec_macs, xcodec_frame, xcodec_together, xcodec_clip);
workloads!("DAC", load_dac, dac_macs, dac_frame, dac_together, dac_clip);
workloads!("SEANet", load_seanet, seanet_macs, seanet_frame, seanet_together, seanet_clip);

/// Encoding a second with DAC.
pub(crate) fn dac_encode() -> Workload {
    let (weights, config) = (dac_layout().open(), dac_config());
    let dac = dac::Encoder::load(&weights, &config).expect("loads");
    let samples = tone(FRAMES * FRAME_SAMPLES);
    let analysis = analysis_macs(64, 1024) + CODEBOOKS * (1024 * 8 + 8 * ENTRIES + 8 * 1024);
    streamed("DAC encode, a second", 1, FRAMES * analysis, move || {
        std::hint::black_box(dac.encode(&samples));
    })
}

/// Encoding a second with SEANet.
pub(crate) fn seanet_encode() -> Workload {
    let (weights, config) = (seanet_layout().open(), seanet_config());
    let encoder = seanet::Encoder::load(&weights, &config).expect("loads");
    let samples = tone(FRAMES * FRAME_SAMPLES);
    let search = CODEBOOKS * ENTRIES * LATENT;
    streamed("SEANet encode, a second", 1, seanet_macs() + FRAMES * search, move || {
        std::hint::black_box(encoder.encode(&samples));
    })
}

fn streamed(name: &str, streams: usize, macs: usize, run: impl FnMut() + 'static) -> Workload {
    Workload {
        name: name.to_owned(),
        audio_s: (streams * FRAMES * FRAME_SAMPLES) as f64 / SAMPLE_RATE as f64,
        macs: (streams * macs) as f64,
        run: Box::new(run),
    }
}

/// `[codebooks][frames]` without a pattern.
fn codes(frames: usize) -> Vec<Vec<u16>> {
    let code = |row: usize, frame: usize| ((frame * 7919 + row * 31) % ENTRIES) as u16;
    (0..CODEBOOKS).map(|row| (0..frames).map(|frame| code(row, frame)).collect()).collect()
}

fn tone(count: usize) -> Vec<f32> {
    (0..count).map(|i| 0.3 * (i as f32 * 0.05).sin()).collect()
}

/// The configuration of a fixture with the sizes of a release.
fn config<T, E: std::fmt::Debug>(
    fixture: &str,
    sizes: &[(&str, Value)],
    read: impl Fn(&Path) -> Result<T, E>,
) -> T {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/fixtures");
    let text = std::fs::read_to_string(root.join(fixture)).expect("the fixture");
    let mut config: Value = serde_json::from_str(&text).expect("the fixture");
    for (pointer, size) in sizes {
        *config.pointer_mut(pointer).expect("a field of the fixture") = size.clone();
    }
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("config.json");
    std::fs::write(&file, config.to_string()).expect("room for the file");
    read(&file).expect("a release")
}

fn load_xcodec() -> xcodec::Decoder {
    let sizes = [
        ("/codebook_size", json!(ENTRIES)),
        ("/codebook_dim", json!(1024)),
        ("/target_bandwidths", json!([4.0])),
        ("/acoustic_model_config/decoder_hidden_size", json!(1024)),
        ("/acoustic_model_config/hidden_size", json!(256)),
        ("/semantic_model_config/hidden_size", json!(768)),
    ];
    let config = config("xcodec_tiny/config.json", &sizes, xcodec::Config::read);
    let mut layout = Layout::default();
    for q in 0..CODEBOOKS {
        let name = format!("quantizer.quantizers.{q}.codebook.embed");
        layout.add(name, &[ENTRIES, 1024], 0.0, 0.5);
    }
    layout.add_layer("fc2", &[256, 1024], 256, 1024);
    add_synthesis(&mut layout, "acoustic_decoder", 256, 1024);
    xcodec::Decoder::load(&layout.open(), &config).expect("loads")
}

fn xcodec_macs() -> usize {
    FRAMES * (1024 * 256 + synthesis_macs(256, 1024))
}

fn load_dac() -> dac::Decoder {
    dac::Decoder::load(&dac_layout().open(), &dac_config()).expect("loads")
}

fn dac_config() -> dac::Config {
    let sizes = [
        ("/encoder_hidden_size", json!(64)),
        ("/decoder_hidden_size", json!(1536)),
        ("/hidden_size", json!(1024)),
        ("/n_codebooks", json!(CODEBOOKS)),
        ("/codebook_size", json!(ENTRIES)),
        ("/codebook_dim", json!(8)),
    ];
    config("dac_tiny/config.json", &sizes, dac::Config::read)
}

fn dac_layout() -> Layout {
    let mut layout = Layout::default();
    for q in 0..CODEBOOKS {
        let name = format!("quantizer.quantizers.{q}");
        layout.add(format!("{name}.codebook.weight"), &[ENTRIES, 8], 0.0, 1.0);
        layout.add_layer(&format!("{name}.in_proj"), &[8, 1024, 1], 8, 1024);
        layout.add_layer(&format!("{name}.out_proj"), &[1024, 8, 1], 1024, 8);
    }
    add_analysis(&mut layout, 64, 1024);
    add_synthesis(&mut layout, "decoder", 1024, 1536);
    layout
}

fn dac_macs() -> usize {
    FRAMES * (CODEBOOKS * 8 * 1024 + synthesis_macs(1024, 1536))
}

fn add_synthesis(layout: &mut Layout, name: &str, latent: usize, mut width: usize) {
    layout.add_layer(&format!("{name}.conv1"), &[width, latent, KERNEL], width, KERNEL * latent);
    for (i, rate) in RATES.into_iter().enumerate() {
        let stage = format!("{name}.block.{i}");
        add_snake(layout, &format!("{stage}.snake1"), width);
        // Every output sums two taps of every input.
        let shape = [width, width / 2, 2 * rate];
        layout.add_layer(&format!("{stage}.conv_t1"), &shape, width / 2, 2 * width);
        width /= 2;
        add_units(layout, &stage, width);
    }
    add_snake(layout, &format!("{name}.snake1"), width);
    layout.add_layer(&format!("{name}.conv2"), &[1, width, KERNEL], 1, KERNEL * width);
}

fn add_analysis(layout: &mut Layout, mut width: usize, latent: usize) {
    layout.add_layer("encoder.conv1", &[width, 1, KERNEL], width, KERNEL);
    for (i, rate) in RATES.into_iter().rev().enumerate() {
        let stage = format!("encoder.block.{i}");
        add_units(layout, &stage, width);
        add_snake(layout, &format!("{stage}.snake1"), width);
        let shape = [2 * width, width, 2 * rate];
        layout.add_layer(&format!("{stage}.conv1"), &shape, 2 * width, 2 * rate * width);
        width *= 2;
    }
    add_snake(layout, "encoder.snake1", width);
    layout.add_layer("encoder.conv2", &[latent, width, 3], latent, 3 * width);
}

fn add_units(layout: &mut Layout, stage: &str, width: usize) {
    for unit in ["res_unit1", "res_unit2", "res_unit3"].map(|unit| format!("{stage}.{unit}")) {
        add_snake(layout, &format!("{unit}.snake1"), width);
        layout.add_layer(&format!("{unit}.conv1"), &[width, width, KERNEL], width, KERNEL * width);
        add_snake(layout, &format!("{unit}.snake2"), width);
        layout.add_layer(&format!("{unit}.conv2"), &[width, width, 1], width, width);
    }
}

fn add_snake(layout: &mut Layout, name: &str, width: usize) {
    layout.add(format!("{name}.alpha"), &[1, width, 1], 1.0, 0.5);
}

/// Multiply-adds of a frame.
fn synthesis_macs(latent: usize, mut width: usize) -> usize {
    let mut macs = KERNEL * latent * width;
    let mut steps = 1;
    for rate in RATES {
        macs += steps * 2 * rate * width * (width / 2);
        steps *= rate;
        width /= 2;
        macs += steps * 3 * (KERNEL + 1) * width * width;
    }
    macs + steps * KERNEL * width
}

/// Multiply-adds of a frame.
fn analysis_macs(mut width: usize, latent: usize) -> usize {
    let mut steps = FRAME_SAMPLES;
    let mut macs = steps * KERNEL * width;
    for rate in RATES.into_iter().rev() {
        macs += steps * 3 * (KERNEL + 1) * width * width;
        steps /= rate;
        macs += steps * 2 * rate * width * (2 * width);
        width *= 2;
    }
    macs + steps * 3 * width * latent
}

/// Width of SEANet's outermost layers.
const FILTERS: usize = 32;
/// Values of SEANet's latent.
const LATENT: usize = 512;

fn seanet_config() -> seanet::Config {
    let field = |name: &str| format!("/codec_conf/generator_params/{name}");
    let sizes = [
        (field("hidden_dim"), LATENT),
        (field("codebook_dim"), LATENT),
        (field("encdec_n_filters"), FILTERS),
        (field("quantizer_n_q"), CODEBOOKS),
        (field("quantizer_bins"), ENTRIES),
    ];
    let sizes: Vec<_> = sizes.iter().map(|(name, size)| (name.as_str(), json!(size))).collect();
    config("dac_tiny/espnet/config.json", &sizes, seanet::Config::read)
}

fn load_seanet() -> seanet::Decoder {
    seanet::Decoder::load(&seanet_layout().open(), &seanet_config()).expect("loads")
}

fn seanet_layout() -> Layout {
    let mut layout = Layout::default();
    let whole = "codec.generator";
    for q in 0..CODEBOOKS {
        let name = format!("{whole}.quantizer.vq.layers.{q}._codebook.embed");
        layout.add(name, &[ENTRIES, LATENT], 0.0, 0.5);
    }
    let conv = |layout: &mut Layout, name: String, [out, inputs, kernel]: [usize; 3]| {
        layout.add_layer(
            &format!("{name}.conv.conv"),
            &[out, inputs, kernel],
            out,
            inputs * kernel,
        );
    };
    let blocks = |layout: &mut Layout, model: &str, first: usize, width: usize| {
        for name in (first..first + 3).map(|i| format!("{model}.{i}")) {
            conv(layout, format!("{name}.block.1"), [width / 2, width, KERNEL]);
            conv(layout, format!("{name}.block.3"), [width, width / 2, 1]);
            conv(layout, format!("{name}.shortcut"), [width, width, 1]);
        }
    };
    let model = format!("{whole}.decoder.model");
    let mut width = FILTERS << RATES.len();
    conv(&mut layout, format!("{model}.0"), [width, LATENT, KERNEL]);
    add_lstm(&mut layout, &format!("{model}.1.lstm"), width);
    for (i, rate) in RATES.into_iter().enumerate() {
        let rise = format!("{model}.{}.convtr.convtr", 5 * i + 3);
        layout.add_layer(&rise, &[width, width / 2, 2 * rate], width / 2, 2 * width);
        width /= 2;
        blocks(&mut layout, &model, 5 * i + 4, width);
    }
    conv(&mut layout, format!("{model}.23"), [1, width, KERNEL]);
    let model = format!("{whole}.encoder.model");
    conv(&mut layout, format!("{model}.0"), [width, 1, KERNEL]);
    for (i, rate) in RATES.into_iter().rev().enumerate() {
        blocks(&mut layout, &model, 5 * i + 1, width);
        conv(&mut layout, format!("{model}.{}", 5 * i + 5), [2 * width, width, 2 * rate]);
        width *= 2;
    }
    add_lstm(&mut layout, &format!("{model}.21.lstm"), width);
    conv(&mut layout, format!("{model}.23"), [LATENT, width, KERNEL]);
    layout
}

fn add_lstm(layout: &mut Layout, name: &str, width: usize) {
    let spread = (3.0 / width as f32).sqrt();
    for layer in 0..2 {
        for part in ["ih", "hh"] {
            let weight = format!("{name}.weight_{part}_l{layer}");
            layout.add(weight, &[4 * width, width], 0.0, spread);
            layout.add(format!("{name}.bias_{part}_l{layer}"), &[4 * width], 0.0, 0.1);
        }
    }
}

/// Multiply-adds of a run in either direction, which mirror each other.
fn seanet_macs() -> usize {
    let mut width = FILTERS << RATES.len();
    let mut macs = KERNEL * LATENT * width + 2 * 8 * width * width;
    let mut steps = 1;
    for rate in RATES {
        macs += steps * 2 * rate * width * (width / 2);
        steps *= rate;
        width /= 2;
        // Seven taps to half the width, one back, and one of the shortcut.
        macs += steps * 3 * (KERNEL + 1 + 2) * width * width / 2;
    }
    FRAMES * (macs + steps * KERNEL * width)
}
