//! DualCodec at the sizes of the release.

use codecs::dualcodec::{Config, Decoder};

use super::Workload;
use super::weights::Layout;

/// Context and new frames of one streaming commit.
const CONTEXT_FRAMES: usize = 75;
const NEW_FRAMES: usize = 25;
const ACOUSTIC_ROWS: usize = 3;
const FRAME_S: f64 = 0.08;

/// Decoding the window of one commit.
pub(crate) fn decode_window() -> Workload {
    let config = Config::release();
    let decoder = Decoder::load(&layout(&config).open(), &config, ACOUSTIC_ROWS).expect("loads");
    let frames = CONTEXT_FRAMES + NEW_FRAMES;
    let codes = |row: usize| (0..frames).map(|t| ((t * 7919 + row * 31) % 4096) as u16).collect();
    let rows: Vec<Vec<u16>> = (0..=ACOUSTIC_ROWS).map(codes).collect();
    Workload {
        name: format!("DualCodec decode, {CONTEXT_FRAMES} + {NEW_FRAMES} frames"),
        audio_s: frames as f64 * FRAME_S,
        macs: decode_macs(&config, frames),
        run: Box::new(move || {
            std::hint::black_box(decoder.decode(&rows).expect("codes in range"));
        }),
    }
}

/// Multiply-adds of the layers of one decode, without those that tiles repeat at their edges.
fn decode_macs(config: &Config, frames: usize) -> f64 {
    let (width, hidden, latent) =
        (config.convnext_dim, config.convnext_intermediate_dim, config.latent_dim);
    let block = 7 * width + 2 * width * hidden;
    let lookups =
        config.semantic_codebook_dim * width + ACOUSTIC_ROWS * config.codebook_dim * latent;
    let first = 7 * latent * config.decoder_dim;
    let mut macs = frames * (lookups + config.convnext_layers * block + width * latent + first);
    let (mut steps, mut width) = (frames, config.decoder_dim);
    for rate in &config.decoder_rates {
        let out = width / 2;
        // Each input step reaches 2 * rate outputs; three units of a seven-tap and a one-tap filter.
        macs += steps * 2 * rate * width * out;
        steps *= rate;
        macs += steps * 3 * 8 * out * out;
        width = out;
    }
    (macs + steps * 7 * width) as f64
}

/// The tensors that a decode reads.
fn layout(config: &Config) -> Layout {
    let mut layout = Layout::default();
    let (width, hidden, latent) =
        (config.convnext_dim, config.convnext_intermediate_dim, config.latent_dim);
    let (entries, code) = (config.semantic_codebook_size, config.semantic_codebook_dim);
    layout.add("semantic_vq.quantizers.0.codebook.weight", &[entries, code], 0.0, 1.0);
    layout.add_weight_norm("semantic_vq.quantizers.0.out_proj", [width, code, 1], width);
    for i in 0..config.convnext_layers {
        let name = format!("convnext_decoder.{i}");
        layout.add_layer(&format!("{name}.dwconv"), &[width, 1, 7], width, 7);
        layout.add(format!("{name}.norm.weight"), &[width], 1.0, 0.1);
        layout.add(format!("{name}.norm.bias"), &[width], 0.0, 0.1);
        layout.add_layer(&format!("{name}.pwconv1"), &[hidden, width], hidden, width);
        layout.add_layer(&format!("{name}.pwconv2"), &[width, hidden], width, hidden);
    }
    let widen = format!("convnext_decoder.{}", config.convnext_layers);
    layout.add_weight_norm(&widen, [latent, width, 1], latent);
    let (entries, code) = (config.codebook_size, config.codebook_dim);
    for row in 0..ACOUSTIC_ROWS {
        let name = format!("dac.quantizer.quantizers.{row}");
        layout.add(format!("{name}.codebook.weight"), &[entries, code], 0.0, 1.0);
        layout.add_weight_norm(&format!("{name}.out_proj"), [latent, code, 1], latent);
    }
    add_dac_decoder(&mut layout, config);
    layout
}

fn add_dac_decoder(layout: &mut Layout, config: &Config) {
    let name = |i: usize| format!("dac.decoder.model.{i}");
    let mut width = config.decoder_dim;
    layout.add_weight_norm(&name(0), [width, config.latent_dim, 7], width);
    for (i, rate) in config.decoder_rates.iter().enumerate() {
        let (block, out) = (format!("{}.block", name(i + 1)), width / 2);
        layout.add(format!("{block}.0.alpha"), &[1, width, 1], 1.0, 0.5);
        layout.add_weight_norm(&format!("{block}.1"), [width, out, 2 * rate], out);
        for unit in 2..5 {
            let unit = format!("{block}.{unit}.block");
            layout.add(format!("{unit}.0.alpha"), &[1, out, 1], 1.0, 0.5);
            layout.add_weight_norm(&format!("{unit}.1"), [out, out, 7], out);
            layout.add(format!("{unit}.2.alpha"), &[1, out, 1], 1.0, 0.5);
            layout.add_weight_norm(&format!("{unit}.3"), [out, out, 1], out);
        }
        width = out;
    }
    let last = config.decoder_rates.len() + 1;
    layout.add(format!("{}.alpha", name(last)), &[1, width, 1], 1.0, 0.5);
    layout.add_weight_norm(&name(last + 1), [1, width, 7], 1);
}
