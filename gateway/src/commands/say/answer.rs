//! What a speech language model says to a text: its sound to the file, what it writes to standard error.

use std::io::{self, IsTerminal};

use engine::Handle;
use engine::answer::{Draw, Modality, Request, Task};
use engine::bundle::speech::{SpeechBundle, Task as Trained};

use super::output::{Recorder, Target};
use super::{Args, Source, record};
use crate::commands::CommandError;
use crate::commands::progress::Progress;
use crate::commands::speed::Stopwatch;
use crate::config::Config;

/// What is to be done with the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Doing {
    /// Say it
    Speak,
    /// Answer it, in text first and then in sound
    Answer,
}

/// Speaks or answers as the arguments say.
///
/// # Errors
/// See [`CommandError`].
pub(super) fn run(
    args: &Args,
    source: Source,
    target: &Target,
    bundle: SpeechBundle,
    config: &Config,
) -> Result<Stopwatch, CommandError> {
    let Source::Whole(text) = source else {
        let reason = "a speech language model takes whole texts, one at a time";
        return Err(CommandError::Usage(reason.to_owned()));
    };
    let request = request(args, text, &bundle)?;
    let visible = io::stderr().is_terminal();
    let progress = Progress::loading(visible);
    let mut told = |p: engine::Progress| progress.loaded(p.loaded, p.total);
    let engine = Handle::start(&[bundle.into()], &config.engine, &mut told)?;
    progress.finish();
    let progress = Progress::speaking(visible);
    let watch = Stopwatch::start();
    let (_, events) = engine.answer(request)?;
    let recorder = Recorder::create(&args.output, target)?;
    let watch = record(&events, recorder, watch, &progress)?;
    progress.finish();
    Ok(watch)
}

/// What is asked of the model. One that was trained to speak a text does so unless it is told to answer.
fn request(args: &Args, text: String, bundle: &SpeechBundle) -> Result<Request, CommandError> {
    let voicing = &args.voicing;
    if voicing.language.is_some() || voicing.style.is_some() || voicing.first_frames.is_some() {
        let reason = "--language, --style and --first-frames are for voices, not for this model";
        return Err(CommandError::Usage(reason.to_owned()));
    }
    let speaks = bundle.manifest.tasks.contains_key(&Trained::Speech);
    let doing = args.doing.unwrap_or(if speaks { Doing::Speak } else { Doing::Answer });
    let (task, order): (_, &[_]) = match doing {
        Doing::Speak => (Task::Speak, &[Modality::Audio]),
        Doing::Answer => (Task::Converse, &[Modality::Text, Modality::Audio]),
    };
    let draw = Draw { temperature: voicing.temperature, ..Draw::default() };
    Ok(Request {
        task,
        voice: voicing.voice.clone(),
        text: draw,
        audio: draw,
        guidance: voicing.cfg,
        seed: voicing.seed,
        ..Request::new(text, order)
    })
}
