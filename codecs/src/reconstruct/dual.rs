//! DualCodec and the VibeVoice tokenizer joined: codes to waveform, waveform to latents, latents to the waveform
//! that is heard.
//!
//! The first waveform of a window is thrown away: neighbouring windows differ where one of them lacked context, and
//! only the causal decoder, whose state is never turned back, can join their latents without a seam.

use crate::codes::CodeError;
use crate::dualcodec::{Config, Decoder};
use crate::frames::Frames;
use crate::vibevoice::{DecoderState, Tokenizer};
use crate::window::Window;

/// Weights of the joined codec.
pub struct Dual {
    codec: Decoder,
    codebooks: Vec<usize>,
    tokenizer: Tokenizer,
}

impl Dual {
    /// Joins a DualCodec decoder, loaded with its sizes `config` and as many rows as the voice makes, and a tokenizer.
    pub fn new(codec: Decoder, config: &Config, tokenizer: Tokenizer) -> Self {
        let mut codebooks = vec![config.codebook_size; codec.rows()];
        codebooks[0] = config.semantic_codebook_size;
        Self { codec, codebooks, tokenizer }
    }

    pub(super) fn codebooks(&self) -> &[usize] {
        &self.codebooks
    }

    pub(super) fn state(&self) -> DecoderState {
        self.tokenizer.decoder.state()
    }

    /// The latents that go out with a window, `[latents, width]`, from `[rows][frames]` codes of `window.decode`.
    ///
    /// # Errors
    /// Codes that cannot be decoded.
    ///
    /// # Panics
    /// When `codes` holds fewer frames than the window.
    pub fn latents(&self, codes: &[Vec<u16>], window: &Window) -> Result<Frames, CodeError> {
        let waveform = self.codec.decode(codes)?;
        let latents = self.tokenizer.encoder.encode(&waveform);
        let first = window.skipped_latents();
        Ok(latents.slice(first..first + window.latents().len()))
    }

    pub(super) fn render(
        &self,
        state: &mut DecoderState,
        codes: &[Vec<u16>],
        window: &Window,
    ) -> Vec<f32> {
        let latents =
            self.latents(codes, window).expect("codes are checked on arrival; this is a bug");
        let mut sound = self.tokenizer.decoder.step(state, &latents);
        // Only the last window of a passage can end inside a latent.
        sound.truncate(window.samples());
        sound
    }
}
