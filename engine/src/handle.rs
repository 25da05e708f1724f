//! The engine as its users hold it: bounded channels in front, threads behind. The only place that spawns, names and joins
//! threads, and the only one in the engine that reads the clock.
//!
//! ```text
//! Handle --commands--> engine-step --jobs--> engine-audio --events--> Events (one outbox a context)
//!        --recordings-> engine-voice --codes--> back; only where a model can make voices of them
//!        --requests--> engine-hearing --commands--> engine-step; where there is a recording in what a model is to answer
//!        --sound-----> engine-hearing; of recordings that come in while they are made
//!        --texts-> engine-verbalizer --chunks--> engine-step; only where a model puts texts into words
//! ```

mod answers;

use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::audio::{self, Audio};
use crate::bundle::Prompt;
use crate::bundle::speech::SpeechVoice;
use crate::engine::{Engine, Opening};
use crate::event::{Events, Outbox, outbox};
use crate::hearing::{self, Inbox, LiveLimits, Waiting};
use crate::load::{self, Lane};
use crate::request::{Manner, Request, Written};
use crate::roster::{Models, Taker};
use crate::sound::Stream;
use crate::stats::Stats;
use crate::text::Chunk;
use crate::verbalizer::{self, Job, Verbalizer};
use crate::voices::{
    self, LoadedVoice, Maker, NewVoice, SharedEar, VoiceError, VoiceJob, VoiceSource,
};
use crate::worker::{Command, Worker};
use crate::{ContextId, Error};

/// Commands under way to the step thread. A command is a few words or one text delta, so this is at most a few megabytes; a
/// caller that finds it full is told so at once.
const COMMANDS: usize = 4096;
/// Jobs under way to the audio thread: about two for each of a hundred contexts. When it is full the engine makes no more
/// codes until one is done.
const JOBS: usize = 256;
/// Recordings of voices that wait to be encoded: seconds of work each, and five megabytes.
const RECORDINGS: usize = 4;
/// Texts that wait to be put into words: seconds of work each. What finds no place is spoken by the rules.
const TEXTS: usize = 16;

/// When a caller that was turned away may ask again: speech turns of agents last some seconds, so a place is soon free.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// A running engine. Dropping it stops and joins the threads.
pub struct Handle {
    commands: SyncSender<Command>,
    next_id: AtomicU64,
    stats: Arc<Mutex<Stats>>,
    threads: Vec<JoinHandle<()>>,
    models: Models,
    /// None where no model can make voices of recordings.
    recordings: Option<SyncSender<VoiceJob>>,
    /// Names of the models that can.
    makers: BTreeSet<String>,
    /// None where no model that answers can hear.
    inbox: Option<Arc<Inbox>>,
    /// Those whose recordings are still to be heard, or whose texts are still to be put into words.
    waiting: Arc<Waiting>,
    /// The clock by which texts and sound are waited for.
    now: Arc<dyn Fn() -> Duration + Send + Sync>,
}

/// What works beside the steps, each on a thread of its own.
#[derive(Default)]
pub(crate) struct Helpers {
    /// What makes voices of recordings, by the names of the models.
    pub(crate) makers: BTreeMap<String, Maker>,
    /// What each model that answers hears with, if anything.
    pub(crate) ears: Vec<Option<SharedEar>>,
    /// What may come in for them while it is made.
    pub(crate) live: LiveLimits,
    /// Put the texts of some of the voice bundles into words, by their places.
    pub(crate) verbalizers: Vec<(usize, Verbalizer)>,
}

impl Handle {
    /// Starts the threads.
    pub(crate) fn spawn(engine: Engine, mut models: Models, helpers: Helpers) -> Self {
        let Helpers { makers, ears, live, verbalizers } = helpers;
        let (commands, inbox) = sync_channel(COMMANDS);
        let (jobs, todo) = sync_channel(JOBS);
        let stats = Arc::new(Mutex::new(Stats::new(models.parts.clone())));
        let worker = Worker::new(engine, inbox, jobs, stats.clone());
        let audio = audio::Side { todo, back: commands.clone(), stats: stats.clone() };
        let mut threads = vec![
            spawn_named("engine-step", move || worker.run(clock())),
            spawn_named("engine-audio", move || audio.run(Audio::default(), clock())),
        ];
        let names = makers.keys().cloned().collect();
        let recordings = (!makers.is_empty()).then(|| {
            let (recordings, todo) = sync_channel(RECORDINGS);
            threads.push(spawn_named("engine-voice", move || voices::run(makers, &todo)));
            recordings
        });
        let waiting = Arc::<Waiting>::default();
        let now: Arc<dyn Fn() -> Duration + Send + Sync> = Arc::new(clock());
        let inbox = ears.iter().any(Option::is_some).then(|| {
            let inbox = Inbox::new(live);
            let (waiting, commands) = (waiting.clone(), commands.clone());
            let side = hearing::Side { ears, inbox: inbox.clone(), waiting, commands };
            let now = now.clone();
            threads.push(spawn_named("engine-hearing", move || side.run(&*now)));
            inbox
        });
        for (voice, verbalizer) in verbalizers {
            let ((texts, todo), now) = (sync_channel(TEXTS), now.clone());
            let work = move || verbalizer::run(verbalizer, &todo, &*now);
            threads.push(spawn_named("engine-verbalizer", work));
            models.voices[voice].texts = Some(texts);
        }
        let next_id = AtomicU64::new(0);
        Self {
            commands,
            next_id,
            stats,
            threads,
            models,
            recordings,
            makers: names,
            inbox,
            waiting,
            now,
        }
    }

    /// Opens a context; its events come through the second value.
    ///
    /// # Errors
    /// [`Error::Option`] for a value that the bundle does not have, [`Error::Overloaded`] when one more listener could not be
    /// kept supplied, [`Error::Busy`] when the command queue is full.
    pub fn open(&self, request: Request) -> Result<(ContextId, Events), Error> {
        let voice = self.models.voice(request.model.as_deref(), request.voice.as_deref())?;
        if request.max_ahead.is_some() {
            self.admit(voice.lane(&request))?;
        }
        let texts = voice.texts.as_ref();
        let written = texts.and_then(|texts| Some((texts, voice.written(&request)?)));
        let (mut settings, source) = voice.resolve(request)?;
        let id = self.next_id();
        voice.sound.enrol(id, &mut settings);
        let stream = voice.sound.stream(id, settings.window.first_frames, settings.seed);
        let stream = stream.expect("the plan was checked when the request was resolved");
        let opening = Opening::Voice(Box::new(settings), source);
        match written {
            None => self.begin(id, opening, stream),
            Some((texts, written)) => {
                Ok(self.begin_in_words(id, (opening, stream), texts, written))
            }
        }
    }

    fn next_id(&self) -> ContextId {
        ContextId(self.next_id.fetch_add(1, Ordering::Relaxed))
    }

    fn begin(
        &self,
        id: ContextId,
        opening: Opening,
        stream: Stream,
    ) -> Result<(ContextId, Events), Error> {
        let (outbox, events) = self.outbox(id);
        self.send(Command::Open { id, opening, stream, outbox })?;
        Ok((id, events))
    }

    /// Begins a context when its text is put into words; at once, by the rules, where too many wait for that.
    fn begin_in_words(
        &self,
        id: ContextId,
        (mut opening, stream): (Opening, Stream),
        texts: &SyncSender<Job>,
        Written { text, options, limits }: Written,
    ) -> (ContextId, Events) {
        let (outbox, events) = self.outbox(id);
        self.waiting.add(id, outbox);
        let (commands, waiting) = (self.commands.clone(), self.waiting.clone());
        let done = move |chunks: Option<Vec<Chunk>>| {
            if let Some(chunks) = chunks {
                opening.say(chunks);
            }
            waiting.end(id, |outbox| {
                // Waits while the queue is full; the step thread empties it before every step.
                let _ = commands.send(Command::Open { id, opening, stream, outbox });
            });
        };
        let waiting = self.waiting.clone();
        let wanted = Box::new(move || waiting.wants(id));
        let since = (self.now)();
        let job = Job { text, options, limits, since, wanted, done: Box::new(done) };
        if let Err(TrySendError::Full(job) | TrySendError::Disconnected(job)) = texts.try_send(job)
        {
            (job.done)(None);
        }
        (id, events)
    }

    fn outbox(&self, id: ContextId) -> (Outbox, Events) {
        let commands = self.commands.clone();
        outbox(clock(), move || {
            // A full queue means that the step thread is about to look at every outbox anyway.
            let _ = commands.try_send(Command::Drained(id));
        })
    }

    /// More text of a live context; text of one that is over is dropped.
    ///
    /// # Errors
    /// [`Error::Busy`] when the command queue is full; nothing was taken then.
    pub fn push(&self, id: ContextId, delta: impl Into<String>) -> Result<(), Error> {
        self.send(Command::Text { id, delta: delta.into() })
    }

    /// Speaks everything so far without waiting for more text; answered by [`crate::event::Event::Flushed`].
    ///
    /// # Errors
    /// As [`Handle::push`].
    pub fn flush(&self, id: ContextId) -> Result<(), Error> {
        self.send(Command::Flush(id))
    }

    /// From the next chunk on a context is spoken in another style; `manner` also names the model, the voice and the language
    /// that it was opened with.
    ///
    /// # Errors
    /// [`Error::Option`] for a value that the bundle does not have, else as [`Handle::push`].
    pub fn restyle(&self, id: ContextId, manner: &Manner) -> Result<(), Error> {
        let voice = self.models.voice(manner.model.as_deref(), manner.voice.as_deref())?;
        self.send(Command::Restyle { id, control: voice.manner(manner)? })
    }

    /// No more text will come; [`crate::event::Event::Done`] follows the last sound.
    ///
    /// # Errors
    /// As [`Handle::push`].
    pub fn end(&self, id: ContextId) -> Result<(), Error> {
        self.send(Command::End(id))
    }

    /// The listener has heard so many samples of the context.
    ///
    /// # Errors
    /// As [`Handle::push`].
    pub fn played(&self, id: ContextId, position: u64) -> Result<(), Error> {
        self.send(Command::Played { id, position })
    }

    /// Stops a context before the next step; [`crate::event::Event::Cancelled`] is the next and last thing to read.
    ///
    /// # Errors
    /// As [`Handle::push`].
    pub fn cancel(&self, id: ContextId) -> Result<(), Error> {
        if self.waiting.cancel(id) {
            return Ok(());
        }
        self.send(Command::Cancel(id))
    }

    /// Makes a voice for the model of that name, or for the first that can make one of such a source. Blocks while a recording is
    /// encoded, and while the encoder is loaded for the first one: some seconds.
    ///
    /// # Errors
    /// See [`VoiceError`].
    pub fn make_voice(
        &self,
        model: Option<&str>,
        source: VoiceSource,
    ) -> Result<NewVoice, VoiceError> {
        let makes = |taker: &Taker<'_>| match &source {
            VoiceSource::Codes(_) => true,
            VoiceSource::Recording(_) => self.makers.contains(taker.name()),
        };
        let taker = match (model, self.models.takers().find(makes)) {
            (Some(model), _) => self.models.taker(model)?,
            (None, Some(taker)) => taker,
            (None, None) if self.models.takers().next().is_some() => return Err(VoiceError::Deaf),
            (None, None) => return Err(VoiceError::NoVoices),
        };
        let rows = match source {
            VoiceSource::Codes(rows) => rows,
            VoiceSource::Recording(samples) => self.encode(taker.name(), samples)?,
        };
        taker.new_voice(rows).map_err(VoiceError::Codes)
    }

    /// Codes of a recording, by what a model makes voices with.
    fn encode(&self, model: &str, samples: Vec<f32>) -> Result<Vec<Vec<u16>>, VoiceError> {
        let recordings = self.recordings.as_ref().filter(|_| self.makers.contains(model));
        let recordings = recordings.ok_or(VoiceError::Deaf)?;
        let (answer, made) = sync_channel(1);
        let job = VoiceJob { model: model.to_owned(), samples, answer };
        recordings.try_send(job).map_err(|e| match e {
            TrySendError::Full(_) => VoiceError::Busy { jobs: RECORDINGS },
            TrySendError::Disconnected(_) => VoiceError::Stopped,
        })?;
        made.recv().unwrap_or(Err(VoiceError::Stopped))
    }

    /// From now on contexts may be opened with this voice of its model; it speaks the model's default language.
    ///
    /// # Errors
    /// [`VoiceError::Taken`], [`VoiceError::Full`], [`VoiceError::Model`]; [`VoiceError::Codes`] for rows that were changed since.
    pub fn add_voice(&self, name: impl Into<String>, voice: NewVoice) -> Result<(), VoiceError> {
        let name = name.into();
        match self.models.taker(&voice.model)? {
            Taker::Voice(resolver) => {
                let language = resolver.manifest.default_language;
                let prompt = Prompt::from_rows(voice.rows, &resolver.prompt_rules);
                let prompt = Arc::new(prompt.map_err(VoiceError::Codes)?);
                resolver.voices.add(LoadedVoice { name, language, prompt })
            }
            Taker::Speaker(speaker) => {
                let voice = speaker.new_voice(voice.rows).map_err(VoiceError::Codes)?;
                speaker.add_voice(SpeechVoice { name, codes: voice.rows.into() })
            }
        }
    }

    /// From now on no context can be opened with this voice of the model; those that speak with it go on. Returns whether it was
    /// there.
    pub fn remove_voice(&self, model: &str, name: &str) -> bool {
        match self.models.taker(model) {
            Ok(Taker::Voice(resolver)) => resolver.voices.remove(name),
            Ok(Taker::Speaker(speaker)) => speaker.remove_voice(name),
            Err(_) => false,
        }
    }

    /// Whether its speech can be heard; an engine for load tests may give silence of the right length.
    pub fn is_heard(&self) -> bool {
        self.models.voices.first().is_none_or(|resolver| resolver.sound.is_heard())
    }

    /// What the engine has done and holds, as of its last step.
    pub fn stats(&self) -> Stats {
        let stats = self.stats.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let answers = self.models.speakers.iter().map(|s| s.meter.stats(s.name()));
        Stats { answers: answers.collect(), ..stats }
    }

    /// Whether a context for a listener would be taken now, by whichever model costs least.
    pub fn has_room(&self) -> bool {
        let is_running = self.threads.iter().all(|thread| !thread.is_finished());
        is_running && self.models.lanes().any(|lane| self.admit(lane).is_ok())
    }

    /// Goes down while others may still hold the engine: what speaks is cancelled, and nothing more is taken. Does not wait
    /// for that.
    pub fn stop(&self) {
        self.waiting.cancel_all();
        // Blocks while the queue is full: the step thread empties it. One that has ended needs no telling.
        let _ = self.commands.send(Command::Stop);
    }

    /// Whether one more listener of a lane can be kept supplied, by what sound has cost lately.
    fn admit(&self, lane: Lane) -> Result<(), Error> {
        let stats = self.stats.lock().unwrap_or_else(PoisonError::into_inner);
        if load::holds(&stats.costs, lane) {
            return Ok(());
        }
        Err(Error::Overloaded { listeners: stats.listeners, retry_after: RETRY_AFTER })
    }

    fn send(&self, command: Command) -> Result<(), Error> {
        self.commands.try_send(command).map_err(|e| match e {
            TrySendError::Full(_) => Error::Busy { commands: COMMANDS },
            TrySendError::Disconnected(_) => Error::Stopped,
        })
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.stop();
        self.waiting.cancel_all();
        // The threads of recordings and texts end when nobody can send them anything.
        self.recordings = None;
        self.inbox.iter().for_each(|inbox| inbox.close());
        self.models.voices.iter_mut().for_each(|voice| voice.texts = None);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

/// An engine whose thread is gone can keep none of its promises, so the process ends and a supervisor starts it again.
#[expect(clippy::disallowed_methods, reason = "the one place where threads are spawned")]
fn spawn_named(name: &'static str, body: impl FnOnce() + Send + 'static) -> JoinHandle<()> {
    let guarded = move || {
        if catch_unwind(AssertUnwindSafe(body)).is_err() {
            tracing::error!("thread {name} panicked; the process ends");
            std::process::abort();
        }
    };
    std::thread::Builder::new()
        .name(name.to_owned())
        .spawn(guarded)
        .expect("a process that cannot start two threads cannot serve")
}

/// Time since this call, for whoever takes time as an argument.
#[expect(clippy::disallowed_methods, reason = "the engine's only clock")]
fn clock() -> impl Fn() -> Duration + Send + Sync {
    let origin = Instant::now();
    move || origin.elapsed()
}
