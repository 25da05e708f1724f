//! What a configuration says of the transformer: its sizes, and where its blocks have their norms. Knows no ids and no tensor.
//!
//! ```text
//! Qwen3    x += Wo attention(rope(norm(q)), rope(norm(k)), v)  of norm(x)      q, k normed head by head
//! Llama    x += Wo attention(rope(q), rope(k), v)              of norm(x)
//! OLMo-2   x += norm(Wo attention(rope(norm(q)), rope(norm(k)), v))  of x      q, k normed over the whole projection
//! ```
//! The feed-forward block `Wdown(silu(Wgate x) * Wup x)` has its norm in the same place.

use std::path::PathBuf;

use codecs::weights::LoadError;

use super::fields::Fields;

/// How a layer is built.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Block {
    /// Norms in front, and of queries and keys, head by head.
    Qwen3,
    /// Norms in front.
    Llama,
    /// Norms behind, and of queries and keys, over all heads at once.
    Olmo2,
}

/// Sizes of a transformer.
#[derive(Debug, Clone, PartialEq)]
pub struct Backbone {
    /// Where it was read, for error messages.
    pub file: PathBuf,
    /// What stands before `model.` in the names of its tensors.
    pub prefix: &'static str,
    /// How a layer is built.
    pub block: Block,
    /// Transformer layers.
    pub layers: usize,
    /// Width of the residual stream.
    pub hidden: usize,
    /// Query heads.
    pub heads: usize,
    /// Key/value heads; `heads` is a multiple of it.
    pub kv_heads: usize,
    /// Width of one head; even.
    pub head_dim: usize,
    /// Inner width of the feed-forward block.
    pub ffn: usize,
    /// Added to the mean square before its root is taken.
    pub rms_eps: f32,
    /// Base of the rotary frequencies.
    pub rope_theta: f64,
    /// Embedding ids.
    pub vocabulary: usize,
    /// Longest sequence the network was made for, in tokens.
    pub max_positions: usize,
}

impl Backbone {
    /// Reads the sizes. Where the width of a head is not told, the heads share the residual stream; Qwen3 must tell it.
    ///
    /// # Errors
    /// A field that is missing, of another type, out of range, or at odds with another; a variant that is not computed here.
    pub(super) fn read(fields: &Fields<'_>, block: Block) -> Result<Self, LoadError> {
        fields.reject_unknown_variants()?;
        let (hidden, heads) =
            (fields.positive("hidden_size")?, fields.positive("num_attention_heads")?);
        let head_dim = match block {
            Block::Qwen3 => fields.positive("head_dim")?,
            Block::Llama | Block::Olmo2 => {
                fields.optional_size("head_dim")?.unwrap_or(hidden / heads)
            }
        };
        let backbone = Self {
            file: fields.file.to_path_buf(),
            prefix: "",
            block,
            layers: fields.positive("num_hidden_layers")?,
            hidden,
            heads,
            kv_heads: fields.positive("num_key_value_heads")?,
            head_dim,
            ffn: fields.positive("intermediate_size")?,
            rms_eps: fields.number("rms_norm_eps")? as f32,
            rope_theta: fields.rope_theta()?,
            vocabulary: fields.positive("vocab_size")?,
            max_positions: fields.positive("max_position_embeddings")?,
        };
        backbone.check(fields)?;
        Ok(backbone)
    }

    /// Width of all queries.
    pub fn q_width(&self) -> usize {
        self.heads * self.head_dim
    }

    /// Width of all keys, and of all values.
    pub fn kv_width(&self) -> usize {
        self.kv_heads * self.head_dim
    }

    /// Numbers of the embedding, the layers and the final norm.
    pub fn parameters(&self) -> usize {
        let (q_width, kv_width) = (self.q_width(), self.kv_width());
        let qk_norms = match self.block {
            Block::Qwen3 => 2 * self.head_dim,
            Block::Llama => 0,
            Block::Olmo2 => q_width + kv_width,
        };
        let attention = self.hidden * (2 * q_width + 2 * kv_width) + qk_norms;
        let layer = attention + 3 * self.hidden * self.ffn + 2 * self.hidden;
        self.vocabulary * self.hidden + self.layers * layer + self.hidden
    }

    fn check(&self, fields: &Fields<'_>) -> Result<(), LoadError> {
        if !self.heads.is_multiple_of(self.kv_heads) {
            let reason = format!("{} heads cannot share {} evenly", self.heads, self.kv_heads);
            return Err(fields.wrong("num_key_value_heads", reason));
        }
        if self.head_dim == 0 || !self.head_dim.is_multiple_of(2) {
            return Err(fields.wrong("head_dim", "must be even: its halves are rotated"));
        }
        if !(self.rms_eps > 0.0 && self.rms_eps < 1.0) {
            return Err(fields.wrong("rms_norm_eps", "must lie between 0 and 1"));
        }
        Ok(())
    }
}
