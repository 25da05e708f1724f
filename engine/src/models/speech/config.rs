//! What the `config.json` of a speech language model says: the transformer, the symbols, and the ids of each stream.

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use codecs::weights::LoadError;

use crate::delay::Ending;
use crate::layout::{NOTHING, StreamIds};
use crate::models::backbone::{Backbone, Block};
use crate::models::fields::Fields;
use crate::phase::{Bagpiper, BagpiperIds, Machine, OpusLm, OpusLmIds, Plan, PlanError};
use crate::streams::Outputs;

/// What stands before the names of OpusLM's layers.
const OPUSLM_PREFIX: &str = "corelm.decoders.";
const TIED: &str = "tie_word_embeddings";

/// A model: a transformer whose vocabulary holds text and streams of codes.
#[derive(Debug, Clone)]
pub struct SpeechConfig {
    /// The transformer.
    pub backbone: Backbone,
    /// Which symbols it knows, and what its streams are.
    pub family: Family,
    /// Whether the head is the embedding.
    pub tied: bool,
}

/// The kinds of models, by what they say beside text.
#[derive(Debug, Clone)]
pub enum Family {
    /// Text alone: one stream, which is the whole vocabulary.
    Text,
    /// Bagpiper: an id of 0 in a stream behind the first adds nothing to a token's embedding.
    Bagpiper(Arc<BagpiperIds>),
    /// OpusLM and its dialogue model: every stream counts, 0 too.
    OpusLm(Arc<OpusLmIds>),
}

impl Family {
    /// Ids of the streams of codes; none in a model of text alone.
    pub fn streams(&self) -> &[StreamIds] {
        match self {
            Self::Text => &[],
            Self::Bagpiper(ids) => &ids.streams,
            Self::OpusLm(ids) => &ids.streams,
        }
    }

    /// Ids of text, where the vocabulary has others beside them.
    pub fn text(&self) -> Range<u32> {
        match self {
            Self::Text => 0..0,
            Self::Bagpiper(ids) => ids.text.clone(),
            Self::OpusLm(ids) => ids.text.clone(),
        }
    }

    /// How its sounds end.
    pub fn ending(&self) -> Ending {
        match self {
            Self::Text | Self::Bagpiper(_) => Ending::Padded,
            Self::OpusLm(_) => Ending::Flushed,
        }
    }

    /// The state of a turn behind its prompt.
    ///
    /// # Errors
    /// The plan is none that the model can follow.
    pub fn machine(&self, plan: Plan) -> Result<Machine, PlanError> {
        match self {
            Self::Text => Err(PlanError::Order("a model of text alone", plan.order)),
            Self::Bagpiper(ids) => Ok(Machine::Bagpiper(Bagpiper::new(ids.clone(), plan)?)),
            Self::OpusLm(ids) => Ok(Machine::OpusLm(OpusLm::new(ids.clone(), plan)?)),
        }
    }
}

impl SpeechConfig {
    /// Reads a `config.json`.
    ///
    /// # Errors
    /// A field that is missing, of another type, out of range, or at odds with another; a model that is not known.
    pub fn read(file: &Path) -> Result<Self, LoadError> {
        let fields = Fields::read(file)?;
        let mut tied = fields.switch(TIED)?;
        let (backbone, family) = match fields.text("model_type")? {
            "qwen3" => (Backbone::read(&fields, Block::Qwen3)?, Family::Text),
            "llama" => (Backbone::read(&fields, Block::Llama)?, Family::Text),
            "olmo2" => (Backbone::read(&fields, Block::Olmo2)?, Family::Text),
            // The older exports are called after what they do.
            "bagpiper" | "speechlm" => {
                let inner = fields.inner("text_config")?;
                let backbone = Backbone::read(&inner, Block::Qwen3)?;
                let ids = bagpiper(&fields, &backbone)?;
                tied = inner.switch(TIED)?;
                (backbone, Family::Bagpiper(Arc::new(ids)))
            }
            "opuslm" => opuslm(&fields, Block::Olmo2)?,
            "opuslm_dialogue" => opuslm(&fields, Block::Llama)?,
            other => {
                return Err(fields.wrong("model_type", format!("{other:?} is not a known model")));
            }
        };
        check_apart(&fields, &family)?;
        Ok(Self { backbone, family, tied })
    }

    /// Ids that a token has.
    pub fn streams(&self) -> usize {
        self.family.streams().len().max(1)
    }

    /// What a row of logits holds.
    pub fn outputs(&self) -> Outputs {
        let text = self.family.text();
        let heads: Vec<_> = self.family.streams().iter().map(StreamIds::head).collect();
        let mut others: Vec<_> = heads.iter().chain([&text]).cloned().collect();
        let vocabulary = self.backbone.vocabulary as u32;
        others.push(vocabulary..vocabulary);
        others.sort_by_key(|ids| ids.start);
        let (mut symbols, mut end) = (Vec::new(), 0);
        for ids in others {
            if end < ids.start {
                symbols.push(end..ids.start);
            }
            end = ids.end;
        }
        let own_pads = matches!(self.family, Family::Bagpiper(_));
        Outputs { symbols, text, heads, own_pads }
    }

    /// Numbers of the network that are loaded.
    pub fn parameters(&self) -> usize {
        let Backbone { vocabulary, hidden, .. } = self.backbone;
        let head = if self.tied { 0 } else { vocabulary * hidden };
        self.backbone.parameters() + head + self.family.streams().len() * hidden
    }
}

fn bagpiper(fields: &Fields<'_>, backbone: &Backbone) -> Result<BagpiperIds, LoadError> {
    let streams = fields.positive("num_stream")?;
    let (base, width) = (fields.id("codec_base_offset")?, fields.id("codec_layer_size")?);
    if width < 2 {
        return Err(fields.wrong("codec_layer_size", "must have room for a pad and a code"));
    }
    let end = u64::from(base) + streams as u64 * u64::from(width);
    within(fields, "codec_base_offset", end, backbone)?;
    let text = range(fields, "text_token_offset", "text_token_end", backbone)?;
    let first = base.min(text.start);
    Ok(BagpiperIds {
        begin: symbol(fields, "bos_token_id", first)?,
        system: symbol(fields, "system_token_id", first)?,
        user: symbol(fields, "user_token_id", first)?,
        end_of_turn: symbol(fields, "eos_token_id", first)?,
        end_of_segment: symbol(fields, "eot_token_id", first)?,
        assistant: symbol(fields, "assistant_token_id", first)?,
        text_marker: symbol(fields, "text_token_id", first)?,
        audio_marker: symbol(fields, "audio_token_id", first)?,
        text,
        streams: StreamIds::with_own_pads(base, width, streams as u32),
    })
}

fn opuslm(fields: &Fields<'_>, block: Block) -> Result<(Backbone, Family), LoadError> {
    let backbone = Backbone { prefix: OPUSLM_PREFIX, ..Backbone::read(fields, block)? };
    let first = range(fields, "ssl_token_start", "ssl_token_end", &backbone)?;
    let others = range(fields, "codec_token_start", "codec_token_end", &backbone)?;
    let width = fields.positive("codec_per_stream_size")?;
    let count = fields.positive("num_codec_streams")?;
    if others.len() as u64 != width as u64 * count as u64 {
        let reason =
            format!("{count} streams of {width} codes are not the {} ids there are", others.len());
        return Err(fields.wrong("num_codec_streams", reason));
    }
    fields.equals("nq", count as u64 + 1)?;
    let text = range(fields, "text_token_start", "text_token_end", &backbone)?;
    let start = first.start.min(others.start).min(text.start);
    let ids = OpusLmIds {
        end: symbol(fields, "eos_token_id", start)?,
        system: symbol(fields, "system_prompt_token_id", start)?,
        user: symbol(fields, "user_input_token_id", start)?,
        assistant: symbol(fields, "assistant_output_token_id", start)?,
        speaker_marker: symbol(fields, "spk_start_end_token_id", start)?,
        voice_frames: fields.positive("speaker_prompt_length")?,
        text_marker: symbol(fields, "text_bpe_start_end_token_id", start)?,
        audio_marker: symbol(fields, "codec_ssl_start_end_token_id", start)?,
        text,
        streams: StreamIds::without_pads(first, others, width as u32),
    };
    Ok((backbone, Family::OpusLm(Arc::new(ids))))
}

/// A symbol stands before all codes and all text.
fn symbol(fields: &Fields<'_>, name: &str, others: u32) -> Result<u32, LoadError> {
    let id = fields.id(name)?;
    if id >= others {
        let reason = format!("{id} is not below the first code or text, {others}");
        return Err(fields.wrong(name, reason));
    }
    Ok(id)
}

/// No id is of two streams, or of text and a stream: each has one logit in a row.
fn check_apart(fields: &Fields<'_>, family: &Family) -> Result<(), LoadError> {
    let streams = family.streams().iter().map(|s| (s.head(), "codec_token_start"));
    let mut all: Vec<_> = streams.chain([(family.text(), "text_token_end")]).collect();
    all.sort_by_key(|(ids, _)| ids.start);
    for pair in all.windows(2) {
        let [(one, name), (other, other_name)] = pair else { continue };
        if one.end > other.start {
            let name = if *name == "text_token_end" { name } else { other_name };
            let reason = format!("ids {one:?} and {other:?} are of two kinds");
            return Err(fields.wrong(name, reason));
        }
    }
    Ok(())
}

fn range(
    fields: &Fields<'_>,
    start: &str,
    end: &str,
    backbone: &Backbone,
) -> Result<Range<u32>, LoadError> {
    let ids = fields.id(start)?..fields.id(end)?;
    if ids.start == NOTHING {
        return Err(fields.wrong(start, "is 0, the id that says nothing"));
    }
    if ids.is_empty() {
        return Err(fields.wrong(end, format!("{} is not above {start}", ids.end)));
    }
    within(fields, end, u64::from(ids.end), backbone)?;
    Ok(ids)
}

fn within(fields: &Fields<'_>, name: &str, end: u64, backbone: &Backbone) -> Result<(), LoadError> {
    let vocabulary = backbone.vocabulary;
    if end > vocabulary as u64 {
        return Err(fields.wrong(name, format!("ids up to {end}, but vocab_size is {vocabulary}")));
    }
    Ok(())
}
