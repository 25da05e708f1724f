//! The audio tower of Qwen3-Omni at the widths of the release, with a quarter of its layers: all of them would be 2.6 GB.
//! One core of an AMD EPYC with AVX-512, other work running beside: 77 GMAC/s, 137 % of the plain product.

use codecs::frames::Frames;
use codecs::qwen3_omni::{Config, Tower};

use super::Workload;
use super::weights::Layout;

const LAYERS: usize = 8;
/// Frames of the spectrum: one attention window, 8 s.
const FRAMES: usize = 800;
const FRAMES_PER_SECOND: f64 = 100.0;
/// Taps of a convolution along either axis.
const TAPS: usize = 9;

/// Encoding one window, its spectrum given.
pub(crate) fn encode_window() -> Workload {
    let config = Config { encoder_layers: LAYERS, ..Config::release() };
    let tower = Tower::load(&layout(&config).open(), &config).expect("loads");
    let noise = |i: usize| ((i * 7_919) % 101) as f32 / 50.0 - 1.0;
    let values = (0..FRAMES * config.num_mel_bins).map(noise).collect();
    let mel = Frames::new(values, config.num_mel_bins);
    Workload {
        name: format!("Qwen3-Omni tower, 8 s, {LAYERS} of 32 layers"),
        audio_s: FRAMES as f64 / FRAMES_PER_SECOND,
        macs: macs(&config, tower.tokens(FRAMES)),
        run: Box::new(move || {
            std::hint::black_box(tower.forward(&mel));
        }),
    }
}

fn layout(config: &Config) -> Layout {
    let (width, wide) = (config.d_model, config.encoder_ffn_dim);
    let channels = config.downsample_hidden_size;
    let rows = config.num_mel_bins.div_ceil(8);
    let mut layout = Layout::default();
    for (i, inputs) in [(1, 1), (2, channels), (3, channels)] {
        let shape = [channels, inputs, 3, 3];
        layout.add_layer(&format!("conv2d{i}"), &shape, channels, TAPS * inputs);
    }
    layout.add("conv_out.weight", &[width, channels * rows], 0.0, 0.01);
    for i in 0..config.encoder_layers {
        let name = format!("layers.{i}");
        for part in ["q", "k", "v", "out"] {
            let name = format!("{name}.self_attn.{part}_proj");
            layout.add_layer(&name, &[width, width], width, width);
        }
        layout.add_layer(&format!("{name}.fc1"), &[wide, width], wide, width);
        layout.add_layer(&format!("{name}.fc2"), &[width, wide], width, wide);
        for norm in ["self_attn_layer_norm", "final_layer_norm"] {
            add_norm(&mut layout, &format!("{name}.{norm}"), width);
        }
    }
    add_norm(&mut layout, "ln_post", width);
    layout.add_layer("proj1", &[width, width], width, width);
    layout.add_layer("proj2", &[config.output_dim, width], config.output_dim, width);
    layout
}

fn add_norm(layout: &mut Layout, name: &str, width: usize) {
    layout.add(format!("{name}.weight"), &[width], 1.0, 0.1);
    layout.add(format!("{name}.bias"), &[width], 0.0, 0.1);
}

/// Multiply-adds of a window of so many tokens, without the scores of attention, which are few.
fn macs(config: &Config, tokens: usize) -> f64 {
    let (width, wide) = (config.d_model, config.encoder_ffn_dim);
    let channels = config.downsample_hidden_size;
    // Places of the picture that each convolution gives, chunk by chunk.
    let places = |halvings: u32| {
        let chunks = FRAMES / (2 * config.n_window);
        let step = 1 << halvings;
        chunks * (2 * config.n_window).div_ceil(step) * config.num_mel_bins.div_ceil(step)
    };
    let convs = TAPS * channels * (places(1) + channels * (places(2) + places(3)));
    let layer = 4 * width * width + 2 * width * wide;
    let ends = channels * config.num_mel_bins.div_ceil(8) * width
        + width * width
        + width * config.output_dim;
    (convs + tokens * (config.encoder_layers * layer + ends)) as f64
}
