//! The VibeVoice tokenizer at the sizes of the release.

use codecs::frames::Frames;
use codecs::vibevoice::{Config, Side, Tokenizer};
use codecs::window::{FRAME_SAMPLES, LATENT_SAMPLES, latents_of};

use super::Workload;
use super::weights::Layout;

/// Taps of the first and the last convolution of both halves, and of every depthwise one.
const KERNEL: usize = 7;
const SAMPLE_RATE: f64 = 24_000.0;

/// Sizes of the release.
pub(crate) fn release() -> Config {
    let side = Side {
        widths: vec![32, 64, 128, 256, 512, 1024, 2048],
        ratios: vec![2, 2, 4, 5, 5, 8],
        depths: vec![3, 3, 3, 3, 3, 3, 8],
    };
    let reversed = |list: &[usize]| list.iter().rev().copied().collect();
    let decoder = Side {
        widths: reversed(&side.widths),
        ratios: reversed(&side.ratios),
        depths: reversed(&side.depths),
    };
    Config { latent_width: 64, norm_eps: 1e-5, encoder: side, decoder }
}

/// The tokenizer with random weights.
pub(crate) fn tokenizer() -> Tokenizer {
    let config = release();
    Tokenizer::load(&layout(&config).open(), &config).expect("loads")
}

/// Encoding the window of one streaming commit: 75 frames of context, 25 new, 5 withheld.
pub(crate) fn encode_window() -> Workload {
    const FRAMES: usize = 75 + 25 + 5;
    let encoder = tokenizer().encoder;
    let samples = tone(FRAMES * FRAME_SAMPLES - 4);
    Workload {
        name: format!("VibeVoice encode, {FRAMES} frames"),
        audio_s: samples.len() as f64 / SAMPLE_RATE,
        macs: half_macs(latents_of(FRAMES)),
        run: Box::new(move || {
            std::hint::black_box(encoder.encode(&samples));
        }),
    }
}

/// Decoding the latents of one streaming commit: two seconds.
pub(crate) fn decode_piece() -> Workload {
    const LATENTS: usize = 15;
    let decoder = tokenizer().decoder;
    let mut state = decoder.state();
    let latents = Frames::new(tone(LATENTS * release().latent_width), release().latent_width);
    Workload {
        name: format!("VibeVoice decode, {LATENTS} latents of a stream"),
        audio_s: (LATENTS * LATENT_SAMPLES) as f64 / SAMPLE_RATE,
        macs: half_macs(LATENTS),
        run: Box::new(move || {
            std::hint::black_box(decoder.step(&mut state, &latents));
        }),
    }
}

fn tone(count: usize) -> Vec<f32> {
    (0..count).map(|i| 0.3 * (i as f32 * 0.05).sin()).collect()
}

/// Multiply-adds of either half, which mirror each other, for a number of latents.
pub(crate) fn half_macs(latents: usize) -> f64 {
    let Config { latent_width, decoder: Side { widths, ratios, depths }, .. } = release();
    let mut steps = latents;
    let mut macs = steps * KERNEL * latent_width * widths[0];
    for (i, (width, depth)) in widths.iter().zip(depths).enumerate() {
        if i > 0 {
            macs += steps * 2 * ratios[i - 1] * widths[i - 1] * width;
            steps *= ratios[i - 1];
        }
        macs += steps * depth * (KERNEL * width + 2 * 4 * width * width);
    }
    (macs + steps * KERNEL * widths[widths.len() - 1]) as f64
}

fn layout(config: &Config) -> Layout {
    let mut layout = Layout::default();
    let latent = config.latent_width;
    let conv = |layout: &mut Layout, name: &str, [out, input, kernel]: [usize; 3]| {
        layout.add_layer(name, &[out, input, kernel], out, input * kernel);
    };
    let Side { widths, ratios, depths } = &config.encoder;
    for (i, &width) in widths.iter().enumerate() {
        let shape = match i {
            0 => [width, 1, KERNEL],
            _ => [width, widths[i - 1], 2 * ratios[i - 1]],
        };
        conv(&mut layout, &format!("encoder.downsample_layers.{i}.0.conv.conv"), shape);
        add_stage(&mut layout, &format!("encoder.stages.{i}"), depths[i], width);
    }
    conv(&mut layout, "encoder.head.conv.conv", [latent, widths[widths.len() - 1], KERNEL]);
    let Side { widths, ratios, depths } = &config.decoder;
    let stem = [widths[0], latent, KERNEL];
    conv(&mut layout, "decoder.upsample_layers.0.0.conv.conv", stem);
    for (i, &width) in widths.iter().enumerate() {
        if i > 0 {
            let name = format!("decoder.upsample_layers.{i}.0.convtr.convtr");
            let shape = [widths[i - 1], width, 2 * ratios[i - 1]];
            // Every output sums two taps of every input.
            layout.add_layer(&name, &shape, width, 2 * widths[i - 1]);
        }
        add_stage(&mut layout, &format!("decoder.stages.{i}"), depths[i], width);
    }
    conv(&mut layout, "decoder.head.conv.conv", [1, widths[widths.len() - 1], KERNEL]);
    layout
}

fn add_stage(layout: &mut Layout, name: &str, depth: usize, width: usize) {
    for j in 0..depth {
        let name = format!("{name}.{j}");
        for member in ["norm.weight", "ffn_norm.weight", "gamma", "ffn_gamma"] {
            layout.add(format!("{name}.{member}"), &[width], 1.0, 0.5);
        }
        let mixer = format!("{name}.mixer.conv.conv.conv");
        layout.add_layer(&mixer, &[width, 1, KERNEL], width, KERNEL);
        layout.add_layer(&format!("{name}.ffn.linear1"), &[4 * width, width], 4 * width, width);
        layout.add_layer(&format!("{name}.ffn.linear2"), &[width, 4 * width], width, 4 * width);
    }
}
