//! What the stub's contexts are to do, and what they did: shared by its networks, its codec and whoever controls it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::Serialize;

use super::script::{Script, ScriptError};
use crate::ContextId;

/// Contexts that are remembered: more than any load test has at once. Older ones are forgotten, and should one of them
/// still speak, it goes on with the script of the newcomers.
const CONTEXTS_MAX: usize = 4_096;
/// Scripts that may wait for their seed.
const SCRIPTS_MAX: usize = 4_096;
/// Chunks of a context that are remembered.
const CHUNKS_MAX: usize = 1_024;
/// Frames of codes of a context that are remembered.
const FRAMES_MAX: usize = 4_096;

/// What a context was told and did.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ContextReport {
    /// Number of the context: each gets the next.
    pub number: u64,
    /// The seed that its request named, so that a client can find its own again.
    pub seed: u64,
    /// Frequency of the tone that tells the context, in Hz.
    pub context_hz: f64,
    /// Steps of a network that worked for it, prefills and decodes, all stages together.
    pub steps: u64,
    /// Times the codec worked for it.
    pub codec_runs: u64,
    /// Samples that the codec gave.
    pub samples: u64,
    /// Samples of each piece in which they went out, the latest at most 1,024.
    pub pieces: Vec<usize>,
    /// The chunks of text that reached the model.
    pub chunks: Vec<ChunkReport>,
    /// Codes that the codec was given, `[rows][frames]`, the first 4,096 frames; only where a script asks for a real one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub codes: Vec<Vec<u16>>,
}

/// A chunk that reached the model.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct ChunkReport {
    /// Its text, as it is spoken.
    pub text: String,
    /// Frequency of the tone that tells the chunk, in Hz.
    pub chunk_hz: f64,
    /// Frames that went to the codec.
    pub frames: usize,
    /// Samples that the codec made of them.
    pub samples: u64,
}

/// What is known of a context; there may be thousands.
struct Entry {
    script: Arc<Script>,
    /// None where nobody will ask.
    report: Option<Box<ContextReport>>,
}

struct Inner {
    /// What a second of sound costs when a script does not say.
    rtf: f64,
    /// Whether contexts leave a report.
    is_watched: bool,
    script: Arc<Script>,
    for_seed: BTreeMap<u64, Arc<Script>>,
    entries: BTreeMap<u64, Entry>,
}

pub(crate) struct Ledger {
    inner: Mutex<Inner>,
}

/// The ledger while it is read and written.
pub(super) struct Open<'a>(MutexGuard<'a, Inner>);

impl Ledger {
    /// `rtf` is what a second of sound costs when a script does not say.
    pub(super) fn new(script: Script, rtf: f64) -> Self {
        let (script, for_seed, entries) = (settled(script, rtf), BTreeMap::new(), BTreeMap::new());
        let is_watched = true;
        Self { inner: Mutex::new(Inner { rtf, is_watched, script, for_seed, entries }) }
    }

    /// From now on nothing is remembered of what contexts do.
    pub(super) fn unwatch(&self) {
        self.open().0.is_watched = false;
    }

    /// Opens the ledger; not to be held while anything waits.
    pub(super) fn open(&self) -> Open<'_> {
        Open(self.inner.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(super) fn set_script(&self, seed: Option<u64>, script: Script) -> Result<(), ScriptError> {
        let inner = &mut *self.open().0;
        let script = settled(script, inner.rtf);
        let Some(seed) = seed else {
            inner.script = script;
            return Ok(());
        };
        if inner.for_seed.len() >= SCRIPTS_MAX && !inner.for_seed.contains_key(&seed) {
            return Err(ScriptError::Full { max: SCRIPTS_MAX });
        }
        inner.for_seed.insert(seed, script);
        Ok(())
    }

    pub(super) fn reports(&self) -> Vec<ContextReport> {
        let entries = &self.open().0.entries;
        entries.values().filter_map(|e| e.report.as_deref().cloned()).collect()
    }
}

fn settled(script: Script, rtf: f64) -> Arc<Script> {
    Arc::new(Script { rtf: script.rtf.or(Some(rtf)), ..script })
}

impl Open<'_> {
    /// Takes in a context, and says what it is to do.
    pub(super) fn enrol(&mut self, context: ContextId, seed: u64) -> Arc<Script> {
        let inner = &mut *self.0;
        let script = inner.for_seed.remove(&seed).unwrap_or_else(|| inner.script.clone());
        if inner.entries.len() >= CONTEXTS_MAX {
            inner.entries.pop_first();
        }
        let report = || ContextReport {
            number: context.0,
            seed,
            context_hz: super::tones::context_hz(context.0),
            steps: 0,
            codec_runs: 0,
            samples: 0,
            pieces: Vec::new(),
            chunks: Vec::new(),
            codes: Vec::new(),
        };
        let report = inner.is_watched.then(|| Box::new(report()));
        inner.entries.insert(context.0, Entry { script: script.clone(), report });
        script
    }

    /// The script of a context.
    pub(super) fn script(&self, context: u64) -> Arc<Script> {
        self.0.entries.get(&context).map_or(&self.0.script, |e| &e.script).clone()
    }

    /// The cost of the very first step.
    pub(super) fn warm_up_ms(&self) -> u64 {
        self.0.script.warm_up_ms
    }

    /// What is remembered of a context.
    pub(super) fn report(&mut self, context: u64) -> Option<&mut ContextReport> {
        self.0.entries.get_mut(&context)?.report.as_deref_mut()
    }

    /// A chunk of text has reached the model.
    pub(super) fn chunk(&mut self, context: u64, text: &str) {
        let Some(report) = self.report(context) else { return };
        if report.chunks.len() < CHUNKS_MAX {
            let chunk_hz = super::tones::chunk_hz(report.chunks.len());
            let text = text.to_owned();
            report.chunks.push(ChunkReport { text, chunk_hz, ..ChunkReport::default() });
        }
    }

    /// Codes go to a real codec.
    pub(super) fn codes(&mut self, context: u64, rows: &[&[u16]]) {
        let Some(report) = self.report(context) else { return };
        report.codes.resize(rows.len(), Vec::new());
        for (known, new) in report.codes.iter_mut().zip(rows) {
            known.extend(new.iter().take(FRAMES_MAX.saturating_sub(known.len())));
        }
    }

    /// A piece of sound goes out.
    pub(super) fn piece(&mut self, context: u64, samples: usize) {
        let Some(report) = self.report(context) else { return };
        if report.pieces.len() >= CHUNKS_MAX {
            report.pieces.remove(0);
        }
        report.pieces.push(samples);
        report.samples += samples as u64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_waits_for_its_seed_and_serves_once() {
        let ledger = Ledger::new(Script::default(), 0.05);
        let slow = || Script { rtf: Some(2.0), ..Script::default() };
        ledger.set_script(Some(7), slow()).unwrap();
        assert_eq!(ledger.open().enrol(ContextId(0), 1).rtf, Some(0.05));
        assert_eq!(ledger.open().enrol(ContextId(1), 7).rtf, Some(2.0));
        assert_eq!(ledger.open().enrol(ContextId(2), 7).rtf, Some(0.05));
        ledger.set_script(None, slow()).unwrap();
        assert_eq!(ledger.open().enrol(ContextId(3), 1).rtf, Some(2.0));
        assert_eq!(ledger.open().script(1).rtf, Some(2.0));
    }

    #[test]
    fn scripts_and_contexts_are_bounded() {
        let ledger = Ledger::new(Script::default(), 0.05);
        for seed in 0..SCRIPTS_MAX as u64 {
            ledger.set_script(Some(seed), Script::default()).unwrap();
        }
        let full = Err(ScriptError::Full { max: SCRIPTS_MAX });
        assert_eq!(ledger.set_script(Some(u64::MAX), Script::default()), full);
        for context in 0..CONTEXTS_MAX as u64 + 5 {
            ledger.open().enrol(ContextId(context), context);
        }
        let reports = ledger.reports();
        assert_eq!((reports.len(), reports[0].number), (CONTEXTS_MAX, 5));
    }
}
