//! The language model that writes text as it is spoken: another verbaliser beside the rules of `text`, which stay the default
//! and speak whatever it cannot.
//!
//! It must never know contexts, chunks or voices: written texts go in, spoken ones or reasons come out.
//!
//! ```text
//! instruction | text, each digit alone | closing | [thought] <tool_call> the answer </tool_call>
//! ```

mod answer;
mod greedy;
mod lookup;
mod worker;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use codecs::weights::{LoadError, read_json};
use serde::Deserialize;
use tokenizers::Tokenizer;

pub use answer::Refusal;
use answer::{Part, answer, digit_by_digit, parts};
use greedy::Rules;
pub use lookup::Lookup;
pub(crate) use worker::{Job, run};

use crate::batch::BLOCK_TOKENS;
use crate::bundle;
use crate::bundle::control::Controls;
use crate::kernels::matrix::Precision;
use crate::models::fast;
use crate::models::speech::{Family, SpeechLm, open_model};
use crate::runner::StageModel;

/// Ends the answer.
const CLOSE_TAG: &str = "</tool_call>";
/// Texts that are answered side by side.
const TOGETHER: usize = 4;

/// The model with what it is told.
pub struct Verbalizer {
    network: Box<dyn StageModel>,
    tokenizer: Tokenizer,
    controls: Controls,
    instruction: Vec<u32>,
    closing: Vec<u32>,
    ends: Vec<u32>,
    room: usize,
    lookup: Lookup,
    timeout: Duration,
}

/// Which ids end what a model says.
#[derive(Deserialize)]
#[serde(untagged)]
enum Ends {
    One(u32),
    Many(Vec<u32>),
}

#[derive(Deserialize)]
struct Generation {
    eos_token_id: Option<Ends>,
}

impl Verbalizer {
    /// Loads the model in `folder`, which is told what the manifest says.
    ///
    /// # Errors
    /// A file, a field or a tensor that is missing or malformed, a model that speaks, an instruction that leaves no room.
    pub fn open(
        folder: &Path,
        entry: &bundle::Verbalizer,
        precision: Precision,
        pool: Option<Arc<rayon::ThreadPool>>,
    ) -> Result<Self, LoadError> {
        let (config, weights) = open_model(folder)?;
        if !matches!(config.family, Family::Text) {
            let reason = "is a model that speaks, a verbalizer only writes";
            return Err(LoadError::field(&config.backbone.file, "model_type", reason));
        }
        let file = folder.join(bundle::TOKENIZER);
        let parsed = Tokenizer::from_bytes(bundle::read_bytes(&file)?);
        let tokenizer = parsed.map_err(|e| LoadError::malformed(&file, e.to_string()))?;
        let (known, vocabulary) = (tokenizer.get_vocab_size(true), config.backbone.vocabulary);
        if known > vocabulary {
            let reason = format!("{known} ids, the model has {vocabulary}");
            return Err(LoadError::field(&file, "model.vocab", reason));
        }
        let options = fast::Options { precision, kept_ids: None, pool };
        let network = SpeechLm::load(&weights, &config, &options, &mut |_| ())?;
        let room = entry.context_tokens.min(config.backbone.max_positions);
        let ends = ends_of(folder)?;
        let made = Self::new(Box::new(network), tokenizer, entry, ends, room);
        made.map_err(|reason| LoadError::field(&file, "verbalizer.instruction", reason))
    }

    /// A model of any network, or in words why its instruction cannot be given.
    fn new(
        mut network: Box<dyn StageModel>,
        tokenizer: Tokenizer,
        entry: &bundle::Verbalizer,
        mut ends: Vec<u32>,
        room: usize,
    ) -> Result<Self, String> {
        let ids = |text: &str| {
            let encoded = tokenizer.encode_fast(text, false).map_err(|e| e.to_string())?;
            Ok::<_, String>(encoded.get_ids().to_vec())
        };
        let (instruction, closing) = (ids(&entry.instruction)?, ids(&entry.closing)?);
        if instruction.len() + closing.len() >= room {
            let asked = instruction.len() + closing.len();
            return Err(format!("{asked} tokens leave no room for a text among {room}"));
        }
        network.reserve(TOGETHER * room.div_ceil(BLOCK_TOKENS));
        ends.extend(tokenizer.token_to_id(CLOSE_TAG));
        Ok(Self {
            network,
            controls: Controls::of(&tokenizer),
            tokenizer,
            instruction,
            closing,
            ends,
            room,
            lookup: Lookup::PUBLISHED,
            timeout: Duration::from_millis(entry.timeout_ms),
        })
    }

    /// How long a text is waited for.
    pub fn timeout(&self) -> Duration {
        self.timeout
    }

    /// Puts texts into words, or says of each why not; a text in part only is none. What stands between `<<` and `>>` is spoken as it
    /// is. Those that are not ready when `late` says so are given up.
    pub fn verbalize(
        &mut self,
        texts: &[&str],
        late: &dyn Fn() -> bool,
    ) -> Vec<Result<String, Refusal>> {
        let texts: Vec<Vec<Part<'_>>> = texts.iter().map(|text| parts(text)).collect();
        let written: Vec<&str> = texts.iter().flatten().filter_map(|part| part.asked()).collect();
        let mut answers = Vec::with_capacity(written.len());
        for together in written.chunks(TOGETHER) {
            answers.extend(self.answers(together, late));
        }
        let mut answers = answers.into_iter();
        let mut say = |part: &Part<'_>| match (part.asked(), part) {
            (Some(text), _) => {
                let answer = answers.next().unwrap_or(Err(Refusal::Broken))?;
                Ok(between_blanks_of(text, &answer))
            }
            (None, Part::Written(text) | Part::Kept(text)) => Ok((*text).to_owned()),
        };
        // Every answer is taken, also behind one that is refused: the next text's is the next.
        let join = |parts: &Vec<Part<'_>>| {
            let said: Vec<Result<String, Refusal>> = parts.iter().map(&mut say).collect();
            said.into_iter().collect::<Result<String, Refusal>>()
        };
        texts.iter().map(join).collect()
    }

    /// The answers to at most [`TOGETHER`] written texts.
    fn answers(&mut self, texts: &[&str], late: &dyn Fn() -> bool) -> Vec<Result<String, Refusal>> {
        let prompts: Vec<Result<Vec<u32>, Refusal>> =
            texts.iter().map(|text| self.prompt(text)).collect();
        let runnable: Vec<Vec<u32>> = prompts.iter().flatten().cloned().collect();
        let rules = Rules { room: self.room, ends: &self.ends, lookup: self.lookup };
        let answered = greedy::answer(&mut *self.network, &runnable, rules, late);
        let mut answered = answered.map(|answers| answers.ids.into_iter());
        let mut read = |prompt: Result<Vec<u32>, Refusal>| {
            prompt?;
            let next = answered.as_mut().map_err(|_| Refusal::Broken)?.next();
            let ids = next.flatten().ok_or(Refusal::TooSlow)?;
            let text = self.tokenizer.decode(&ids, false).map_err(|_| Refusal::Broken)?;
            answer(&text).map(str::to_owned)
        };
        prompts.into_iter().map(&mut read).collect()
    }

    /// What the model reads of a text, if it leaves room for as long an answer.
    fn prompt(&self, text: &str) -> Result<Vec<u32>, Refusal> {
        let mut ids = self.instruction.clone();
        for run in self.controls.cut(text.trim()).into_iter().flat_map(digit_by_digit) {
            let encoded = self.tokenizer.encode_fast(run, false).map_err(|_| Refusal::Broken)?;
            ids.extend_from_slice(encoded.get_ids());
        }
        let text = ids.len() - self.instruction.len();
        ids.extend_from_slice(&self.closing);
        let tokens = ids.len() + text;
        if tokens > self.room {
            return Err(Refusal::TooLong { tokens, room: self.room });
        }
        Ok(ids)
    }
}

/// The answer to a text, with the blanks around it that the text had.
fn between_blanks_of(text: &str, answer: &str) -> String {
    let front = &text[..text.len() - text.trim_start().len()];
    let behind = &text[text.trim_end().len()..];
    format!("{front}{answer}{behind}")
}

/// The ids that end what the model says, by its configurations.
fn ends_of(folder: &Path) -> Result<Vec<u32>, LoadError> {
    let mut ends = Vec::new();
    for name in ["generation_config.json", "config.json"] {
        let file = folder.join(name);
        if !file.exists() {
            continue;
        }
        match read_json::<Generation>(&file)?.eos_token_id {
            Some(Ends::One(id)) => ends.push(id),
            Some(Ends::Many(ids)) => ends.extend(ids),
            None => {}
        }
    }
    Ok(ends)
}

#[cfg(test)]
mod tests;
