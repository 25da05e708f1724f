//! `dovecote say`: the engine without a server. A text, a text that is still being written, or many at once, to sound.
//!
//! ```text
//! argument, file, stdin ---- whole ---.
//! --stream-from ------------ live -----+-> engine -> resample -> wav, ogg, mp3, flac, pcm -> file or pipe
//! --batch ------------------ many ----'
//! ```
//! A speech language model answers in the same way: what it says goes to the file, what it writes to standard error.

mod answer;
mod batch;
mod live;
mod output;

use std::ffi::OsString;
use std::io::{self, IsTerminal, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use engine::bundle::{Bundle, Opened};
use engine::text::Lexicon;
use engine::{Event, Events, Handle, Request, Segment, StartError};

use self::output::{Format, Recorder, Target};
use super::progress::Progress;
use super::speed::Stopwatch;
use super::text::words;
use super::{CommandError, bundle_root, open_bundles, tell};
use crate::config::Config;

/// Stands for standard input or output.
const STANDARD: &str = "-";

/// Arguments of `dovecote say`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// What to say; `-`, or nothing where something is piped in, reads standard input
    #[arg(value_name = "TEXT", group = "source")]
    text: Option<OsString>,
    /// Say what is in a file
    #[arg(long, value_name = "FILE", group = "source")]
    file: Option<PathBuf>,
    /// Say what comes from a pipe (`-`: standard input) while it is still being written
    #[arg(long, value_name = "FIFO", group = "source")]
    stream_from: Option<PathBuf>,
    /// Say each line of a file, many at once, to 0000.wav, 0001.wav, ..
    #[arg(
        long,
        value_name = "FILE",
        group = "source",
        requires = "out_dir",
        conflicts_with = "output"
    )]
    batch: Option<PathBuf>,
    /// The folder that --batch writes to
    #[arg(long, value_name = "DIR", requires = "batch")]
    out_dir: Option<PathBuf>,
    /// Where the sound goes: a .wav, .ogg, .mp3, .flac or .pcm file, or `-` for standard output
    #[arg(short, long, value_name = "FILE", default_value = "out.wav")]
    output: PathBuf,
    /// How the sound is written [default: by the file's name, else wav]
    #[arg(long)]
    format: Option<Format>,
    /// Samples a second: 8000, 16000, 22050, 24000, 32000, 44100 or 48000
    #[arg(long, value_name = "HZ", default_value_t = 24_000)]
    sample_rate: u32,
    /// Name of the model, where several bundles are named [default: the first]
    #[arg(long, value_name = "NAME")]
    model: Option<String>,
    /// What a speech language model is to do with the text [default: speak, if it was trained to]
    #[arg(long = "do", value_name = "WHAT")]
    doing: Option<answer::Doing>,
    /// Print one JSON line with the speed on standard error
    #[arg(long)]
    speed_report: bool,
    #[command(flatten)]
    voicing: Voicing,
}

/// How the text is spoken. Anything left out is the bundle's default.
#[derive(Debug, clap::Args)]
struct Voicing {
    /// Name of a voice, see `dovecote voices`
    #[arg(long)]
    voice: Option<String>,
    /// Name or code of a language
    #[arg(long)]
    language: Option<String>,
    /// Name of a style
    #[arg(long)]
    style: Option<String>,
    /// JSON file of words with a form of their own, as for `dovecote text`
    #[arg(long, value_name = "FILE")]
    lexicon: Option<PathBuf>,
    /// Decides all draws: the same seed and text give the same sound
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// 0 to 2; the lower, the plainer
    #[arg(long, value_name = "T")]
    temperature: Option<f32>,
    /// Guidance weight, 0 to 10; 1 switches it off
    #[arg(long, value_name = "W")]
    cfg: Option<f32>,
    /// Frames of 80 ms before the first sound: a multiple of 5; fewer are sooner heard
    #[arg(long, value_name = "N")]
    first_frames: Option<usize>,
}

impl Voicing {
    fn apply(&self, mut request: Request, lexicon: &Lexicon) -> Request {
        request.options.lexicon = lexicon.clone();
        Request {
            voice: self.voice.clone(),
            language: self.language.clone(),
            style: self.style.clone(),
            seed: self.seed,
            temperature: self.temperature,
            guidance: self.cfg,
            first_frames: self.first_frames.unwrap_or(request.first_frames),
            // Nobody is known to listen: pipes say by themselves when they are full.
            max_ahead: None,
            ..request
        }
    }
}

/// Speaks as the arguments say.
///
/// # Errors
/// See [`CommandError`].
pub fn run(args: &Args, config: &Config) -> Result<(), CommandError> {
    let target = Target::new(&args.output, args.format, args.sample_rate)?;
    let source = Source::of(args)?;
    let opened = chosen(args.model.as_deref(), config)?;
    if io::stderr().is_terminal() || config.verbose {
        tell(&format!("{}: {}", opened.name(), opened.license()));
    }
    let watch = match opened {
        Opened::Voice(bundle) => speak(args, source, &target, *bundle, config)?,
        Opened::Speech(bundle) => answer::run(args, source, &target, *bundle, config)?,
    };
    if args.speed_report {
        tell(&watch.report(config.engine.threads).to_string());
    }
    Ok(())
}

/// The bundle of that name among those that the settings name; without one, the first.
fn chosen(model: Option<&str>, config: &Config) -> Result<Opened, CommandError> {
    let Some(model) = model else {
        return Ok(engine::bundle::open(&bundle_root(config)?).map_err(StartError::from)?);
    };
    let mut bundles = open_bundles(config)?;
    match bundles.iter().position(|bundle| bundle.name() == model) {
        Some(at) => Ok(bundles.swap_remove(at)),
        None => {
            let names: Vec<&str> = bundles.iter().map(Opened::name).collect();
            let reason = format!("--model {model:?} is none of {}", names.join(", "));
            Err(CommandError::Usage(reason))
        }
    }
}

/// A voice speaks as the arguments say.
fn speak(
    args: &Args,
    source: Source,
    target: &Target,
    bundle: Bundle,
    config: &Config,
) -> Result<Stopwatch, CommandError> {
    let words = words(args.voicing.lexicon.as_deref(), config)?;
    let visible = io::stderr().is_terminal();
    let engine = start(bundle, config, visible)?;
    let progress = Progress::speaking(visible);
    let watch = match source {
        Source::Whole(text) => {
            // Whoever reads a pipe may be listening; nobody listens to a file before it is there.
            let piped = args.output == Path::new(STANDARD);
            let request = if piped { Request::whole(text) } else { Request::file(text) };
            let watch = Stopwatch::start();
            let (_, events) = engine.open(args.voicing.apply(request, &words))?;
            record(&events, Recorder::create(&args.output, target)?, watch, &progress)
        }
        Source::Live(from) => {
            let mut pipe = live::open(&from)?;
            // Shared with the thread that reads: whoever drops it last stops it.
            let engine = Arc::new(engine);
            let (id, events) = engine.open(args.voicing.apply(Request::live(), &words))?;
            let recorder = Recorder::create(&args.output, target)?;
            let first = pipe.next().map_err(CommandError::io(&from))?;
            let watch = Stopwatch::start();
            engine.push(id, first.unwrap_or_default())?;
            live::feed(engine.clone(), id, pipe).map_err(CommandError::io(&from))?;
            record(&events, recorder, watch, &progress)
        }
        Source::Lines { lines, folder } => {
            let request = |text| args.voicing.apply(Request::file(text), &words);
            batch::speak(&engine, &lines, &folder, target, request, &progress)
        }
    }?;
    progress.finish();
    Ok(watch)
}

/// Where the text comes from.
enum Source {
    Whole(String),
    Live(PathBuf),
    Lines { lines: Vec<String>, folder: PathBuf },
}

impl Source {
    fn of(args: &Args) -> Result<Self, CommandError> {
        if let Some(from) = &args.stream_from {
            return Ok(Self::Live(from.clone()));
        }
        if let (Some(file), Some(folder)) = (&args.batch, &args.out_dir) {
            let text = read_text(file)?;
            let lines = text.lines().filter(|l| !l.trim().is_empty()).map(str::to_owned).collect();
            return Ok(Self::Lines { lines, folder: folder.clone() });
        }
        if let Some(file) = &args.file {
            return read_text(file).map(Self::Whole);
        }
        match &args.text {
            Some(text) if text != STANDARD => Ok(Self::Whole(text.to_string_lossy().into_owned())),
            None if io::stdin().is_terminal() => {
                let reason = "nothing to say: give a text, --file FILE, or pipe something in";
                Err(CommandError::Usage(reason.to_owned()))
            }
            _ => read_text(Path::new(STANDARD)).map(Self::Whole),
        }
    }
}

/// A text of any bytes: what is no UTF-8 becomes U+FFFD.
fn read_text(file: &Path) -> Result<String, CommandError> {
    let bytes = if file == Path::new(STANDARD) {
        let mut bytes = Vec::new();
        io::stdin().lock().read_to_end(&mut bytes).map(|_| bytes)
    } else {
        std::fs::read(file)
    };
    let bytes = bytes.map_err(CommandError::io(file))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn start(bundle: Bundle, config: &Config, visible: bool) -> Result<Handle, CommandError> {
    let progress = Progress::loading(visible);
    let engine = Handle::start(&[bundle.into()], &config.engine, &mut |p| {
        progress.loaded(p.loaded, p.total)
    })?;
    progress.finish();
    Ok(engine)
}

/// Writes one context's sound as it comes, and to standard error what a model writes. What was made before a failure is a valid file.
fn record(
    events: &Events,
    mut recorder: Recorder,
    mut watch: Stopwatch,
    progress: &Progress,
) -> Result<Stopwatch, CommandError> {
    while let Some(event) = events.recv() {
        match event {
            Event::Audio { samples, .. } => {
                watch.heard(samples.len());
                progress.spoken(&watch);
                recorder.write(&samples.into_samples())?;
            }
            Event::SegmentEnd(Segment::Text(text)) => tell(&text),
            Event::Failed(failure) => {
                recorder.finish()?;
                return Err(failure.into());
            }
            Event::Cancelled(_) => return Err(engine::Error::Stopped.into()),
            _ => {}
        }
    }
    recorder.finish()?;
    watch.stop();
    Ok(watch)
}
