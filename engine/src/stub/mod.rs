//! An engine without a model, for load tests and for whoever writes a client: everything of the engine is there but the
//! four networks, which say what a [`Script`] tells them, and the codec, which makes tones or silence ([`Timbre`]).
//!
//! Scheduler, key/value blocks, pipeline, guards and both threads are those of a real voice. It must never be told apart
//! by them: what it knows of a context it reads from the ids that a network is shown.
//!
//! ```text
//! voice prompt    three frames whose codes are the number of the context
//! C0              chunk * 32 + frame, so that a chunk knows its number from the codes before it
//! C1..C3          digits of the number of the context, so that the codec hears whose codes it was given
//! sound           two tones, one for the context and one for the chunk; 80 ms a frame
//! ```
//!
//! A step costs what the script says: the network sleeps, as a slow one would let the step thread wait.

mod codes;
mod ledger;
mod network;
mod script;
mod tones;

use std::sync::Arc;

use crate::bundle::{Manifest, Prompt, PromptRules, Silence, VoiceEntry};
use crate::engine::Engine;
use crate::grammar::{Grammar, StageGrammar};
use crate::guards::Guards;
use crate::handle::{Handle, Helpers};
use crate::request::Resolver;
use crate::roster::Models;
use crate::runner::StageModel;
use crate::scheduler::Budget;
use crate::sound::Sound;
use crate::stats;
use crate::text::ids::{CharacterIds, Language};
use crate::voices::{LoadedVoice, Voices};

pub use ledger::{ChunkReport, ContextReport};
pub use script::{Part, Pieces, Script, ScriptError};
pub use tones::{OpenBundle, Timbre};

use ledger::Ledger;
use network::Network;
pub(crate) use tones::{ToneStream, Tones};

/// Its characters are read as the bundled voice reads them: a token a byte.
const TOKENIZER: &[u8] = include_bytes!("../../../voices/nano/cb0/tokenizer.json");
/// Blocks of each stage: some hundred contexts of the longest chunks, thousands of short ones ...
const BLOCKS: usize = 32_768;
/// ... and where speech costs nothing, so that contexts hold blocks for moments only. What every block holds is remembered as
/// long as it may be found again, and that would be most of the memory of a load test.
const SILENT_BLOCKS: usize = 8_192;
/// Nobody waits for a prefill that costs nothing.
const BUDGET: Budget = Budget { prefill_tokens: 4096, sequences: 1024, share_prefixes: true };
/// Tones are spoken at up to 50 characters a second and are never too fast to be speech.
const CHARACTERS_PER_SECOND: std::ops::RangeInclusive<f32> = 6.0..=100.0;
/// The voices; they sound alike.
const VOICES: [&str; 2] = ["v1", "v2"];

/// Tells a running stub what to do, and what it did.
#[derive(Clone)]
pub struct Control {
    ledger: Arc<Ledger>,
    tones: Arc<Tones>,
}

impl Control {
    /// The script of the contexts that are opened from now on; with a seed, of those only that ask for this seed.
    ///
    /// # Errors
    /// See [`ScriptError`].
    pub fn set_script(&self, seed: Option<u64>, script: Script) -> Result<(), ScriptError> {
        script.check()?;
        self.tones.prepare(&script)?;
        self.ledger.set_script(seed, script)
    }

    /// Nobody will ask what contexts did, so that nothing of it is remembered.
    pub fn unwatch(&self) {
        self.ledger.unwatch();
    }

    /// The latest contexts, in the order in which they were opened.
    pub fn contexts(&self) -> Vec<ContextReport> {
        self.ledger.reports()
    }
}

/// What the stub says of itself: languages and styles of the release, the voices `v1` and `v2`.
pub fn manifest() -> Manifest {
    let release = Manifest::release();
    let voice = |name: &&str| VoiceEntry {
        name: (*name).to_owned(),
        language: Language::English,
        prompt: None,
    };
    let mut sampling = release.sampling;
    sampling.semantic.temperature = 0.0;
    sampling.acoustic.temperature = 0.0;
    (sampling.min_codes, sampling.end_bias) = (1, 0.0);
    Manifest {
        name: "tontaube".to_owned(),
        sampling,
        null_trained: true,
        silence: Silence::default(),
        forced_first_code: None,
        trailing: None,
        characters_per_second: CHARACTERS_PER_SECOND,
        voices: VOICES.iter().map(voice).collect(),
        default_voice: VOICES[0].to_owned(),
        license: "tones without a model".to_owned(),
        notes: vec!["This is the stub engine: it makes tones, not speech.".to_owned()],
        ..release
    }
}

/// Starts an engine that is heard as `timbre` and follows `script` until it is told otherwise.
///
/// # Errors
/// See [`ScriptError`].
pub fn start(script: Script, timbre: Timbre) -> Result<(Handle, Control), ScriptError> {
    script.check()?;
    let is_silent = matches!(timbre, Timbre::Silence);
    let rtf = if is_silent { 0.0 } else { script::RTF };
    let blocks = if is_silent { SILENT_BLOCKS } else { BLOCKS };
    let ledger = Arc::new(Ledger::new(script.clone(), rtf));
    let tones = Arc::new(Tones::new(ledger.clone(), timbre));
    tones.prepare(&script)?;
    let manifest = manifest();
    let grammar = Arc::new(grammar());
    let models = grammar.stages.iter().map(|stage| {
        let network = Network::new(stage.vocabulary.clone(), ledger.clone(), std::thread::sleep);
        Box::new(network) as Box<dyn StageModel>
    });
    let stages = grammar.stages.len();
    let engine = Engine::new(models.collect(), &vec![blocks; stages], BUDGET, None);
    let guards = Guards {
        min_codes: manifest.sampling.min_codes,
        max_codes: manifest.sampling.max_codes,
        characters_per_second: manifest.characters_per_second.clone(),
        silence: Vec::new(),
    };
    let voices = manifest.voices.iter().map(|voice| LoadedVoice {
        name: voice.name.clone(),
        language: voice.language,
        prompt: Arc::new(Prompt::default()),
    });
    let vocabulary = &grammar.stages[0].vocabulary;
    let prompt_rules = PromptRules {
        semantic_codes: vocabulary.semantic_codes as usize,
        acoustic_codes: vocabulary.acoustic_codes as usize,
        frames: manifest.prompt_frames.clone(),
    };
    let resolver = Resolver {
        voices: Voices::new(voices.collect()),
        prompt_rules,
        grammar,
        sound: Sound::Tones(tones.clone()),
        guards: Arc::new(guards),
        manifest,
        texts: None,
    };
    let parts = stats::Part::of_voice(&resolver.manifest.name, stages).collect();
    let models = Models { voices: vec![resolver], parts, ..Models::default() };
    Ok((Handle::spawn(engine, models, Helpers::default()), Control { ledger, tones }))
}

fn grammar() -> Grammar {
    let characters = || {
        CharacterIds::new(TOKENIZER)
            .expect("the bundled voice's tokenizer is tested; this is a bug")
    };
    let stage =
        |stage| StageGrammar { vocabulary: codes::vocabulary(stage), characters: characters() };
    Grammar { stages: (0..crate::bundle::STAGES).map(stage).collect(), first_stage: 0 }
}

#[cfg(test)]
mod tests;
