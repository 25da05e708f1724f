//! `dovecote convert`: a published checkpoint of a speech language model made into a bundle.

use std::io::{self, IsTerminal};
use std::path::PathBuf;

use engine::StartError;
use engine::bundle::speech::{Convert, Copied, Survey, convert, survey};

use super::progress::Progress;
use super::{CommandError, print};

/// Arguments of `dovecote convert`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Folder of the checkpoint: config.json beside safetensors or one torch file
    source: PathBuf,
    /// Folder that becomes the bundle; it is made, or must be empty
    target: PathBuf,
    /// Name of the model in the bundle
    #[arg(long)]
    name: String,
    /// The licence line of the weights, which is shown wherever the bundle is loaded
    #[arg(long)]
    license: String,
    /// tokenizer.json [default: that beside the checkpoint]
    #[arg(long, value_name = "FILE")]
    tokenizer: Option<PathBuf>,
    /// Folder of the codec: config.json and weights; without one the model only writes
    #[arg(long, value_name = "DIR")]
    codec: Option<PathBuf>,
    /// Which codec that is: xcodec, dac or seanet [default: the one that the model was published with]
    #[arg(long, value_name = "KIND", requires = "codec")]
    codec_kind: Option<String>,
    /// Store wider floats as bf16: half the size
    #[arg(long)]
    bf16: bool,
    /// Write nothing; say of each tensor what would become of it, and which are missing
    #[arg(long)]
    dry_run: bool,
}

/// Converts, and says what became of it on standard output.
///
/// # Errors
/// What is wrong with the checkpoint, by file and field or tensor, or which file cannot be written.
pub fn run(args: &Args) -> Result<(), CommandError> {
    if args.dry_run {
        return tell_all(&survey(&args.source).map_err(StartError::from)?);
    }
    let kind = args.codec_kind.as_deref().map(str::parse).transpose();
    let kind = kind.map_err(|e| CommandError::Usage(format!("--codec-kind: {e}")))?;
    let to = Convert {
        name: args.name.clone(),
        license: args.license.clone(),
        tokenizer: args.tokenizer.clone(),
        codec: args.codec.clone().map(|folder| (folder, kind)),
        narrow: args.bf16,
    };
    let progress = Progress::writing(io::stderr().is_terminal());
    let mut copied = |copied: Copied| progress.loaded(copied.bytes, copied.total);
    let done = convert(&args.source, &args.target, &to, &mut copied)?;
    progress.finish();
    let mib = done.bytes as f64 / f64::from(1 << 20);
    let mut text = format!("{}: {}, {mib:.0} MiB\n", args.target.display(), done.kind);
    for (group, tensors) in &done.left_out {
        text += &format!("left out: {group} ({tensors} tensors)\n");
    }
    print(&text)
}

/// A line for each tensor. Fails where one keeps the checkpoint from being converted.
fn tell_all(survey: &Survey) -> Result<(), CommandError> {
    let lists = [
        ("model", &survey.read),
        ("audio", &survey.moved),
        ("left out", &survey.left_out),
        ("missing", &survey.missing),
        ("other shape", &survey.misshapen),
        ("unknown", &survey.unknown),
    ];
    let lines = lists.iter().flat_map(|(fate, names)| names.iter().map(move |n| (fate, n)));
    print(&lines.map(|(fate, name)| format!("{fate}: {name}\n")).collect::<String>())?;
    match survey.faults() {
        0 => Ok(()),
        faults => Err(CommandError::Unfit { faults }),
    }
}
