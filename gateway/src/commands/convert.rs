//! `dovecote convert`: a published checkpoint of a speech language model made into a bundle.

use std::io::{self, IsTerminal};
use std::path::PathBuf;

use engine::bundle::speech::{Convert, convert};

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
}

/// Converts, and says what became of it on standard output.
///
/// # Errors
/// What is wrong with the checkpoint, by file and field or tensor, or which file cannot be written.
pub fn run(args: &Args) -> Result<(), CommandError> {
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
    let done = convert(&args.source, &args.target, &to, &mut |bytes| progress.came(bytes as i64))?;
    progress.finish();
    let mib = done.bytes as f64 / f64::from(1 << 20);
    let mut text = format!("{}: {}, {mib:.0} MiB\n", args.target.display(), done.kind);
    for (group, tensors) in &done.left_out {
        text += &format!("left out: {group} ({tensors} tensors)\n");
    }
    print(&text)
}
