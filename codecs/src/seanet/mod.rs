//! The SEANet that ESPnet calls DAC, OpusLM's codec: convolutions that mirror a sound at its ends, an LSTM, eight codebooks of
//! vectors as wide as the latent. 320 samples a frame at 16 kHz in the release.
//!
//! A stream of codes decodes seven frames behind, bit for bit to what the whole gives. It cannot begin in the middle of a sound:
//! the LSTM remembers all that went before.

mod config;
mod decoder;
mod encoder;
mod layers;
mod lstm;

pub use config::Config;
pub use decoder::{Decoder, DecoderState};
pub use encoder::Encoder;

use crate::codebook::Residual;

/// What stands before the names of all tensors that are used.
const PREFIX: &str = "codec.generator";

fn residual(config: &Config) -> Residual {
    let name = |q: usize| format!("{PREFIX}.quantizer.vq.layers.{q}._codebook.embed");
    Residual {
        names: (0..config.quantizer_n_q).map(name).collect(),
        shape: [config.quantizer_bins, config.hidden_dim],
    }
}
