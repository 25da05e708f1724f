//! `dovecote fetch`: a bundle from a server, resumed and checked; and the list of files that a server needs.
//!
//! ```text
//! URL/dovecote.files.json --> each URL/path --> DIR/path.part --SHA-256--> DIR/path
//! ```

mod download;
mod index;

use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};
use std::time::Duration;

use engine::StartError;
use engine::bundle::Bundle;

pub use self::download::FetchError;
use self::download::{Download, client, disk, small};
use self::index::Index;
use super::progress::Progress;
use super::{CommandError, licence_line, print, tell};

/// Between the first two tries of a file.
const PAUSE: Duration = Duration::from_secs(1);

/// Arguments of `dovecote fetch`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Where the bundle lies: the folder of its dovecote.files.json as a URL, or a name below --hub
    #[arg(required_unless_present = "index", conflicts_with = "index")]
    source: Option<String>,
    /// Folder to put it in; what lies there already and is right is not fetched again
    #[arg(short, long, value_name = "DIR", required_unless_present = "index")]
    output: Option<PathBuf>,
    /// Where names of bundles are looked for
    #[arg(long, env = "DOVECOTE_HUB", hide_env_values = true, value_name = "URL")]
    hub: Option<String>,
    /// Write dovecote.files.json into a bundle, so that it can be fetched from any server of files
    #[arg(long, value_name = "DIR")]
    index: Option<PathBuf>,
}

/// Fetches a bundle, or lists one.
///
/// # Errors
/// A server that does not have it, a line that breaks too often, a checksum that is wrong, a disk that refuses.
pub fn run(args: &Args) -> Result<(), CommandError> {
    match (&args.index, &args.source, &args.output) {
        (Some(folder), _, _) => list(folder),
        (None, Some(source), Some(folder)) => fetch(&base(source, args.hub.as_deref())?, folder),
        _ => Err(CommandError::Usage("name a bundle and a folder for it".to_owned())),
    }
}

/// The URL of a bundle's folder, without a slash at its end.
fn base(source: &str, hub: Option<&str>) -> Result<String, CommandError> {
    let is_url = |text: &str| text.starts_with("https://") || text.starts_with("http://");
    let base = match hub {
        _ if is_url(source) => source.to_owned(),
        Some(hub) if is_url(hub) => format!("{}/{}", hub.trim_end_matches('/'), encoded(source)),
        Some(hub) => return Err(CommandError::Usage(format!("--hub {hub:?} is not a URL"))),
        None => {
            let message = format!("{source:?} is not a URL: say where it lies with --hub");
            return Err(CommandError::Usage(message));
        }
    };
    Ok(base.trim_end_matches('/').to_owned())
}

/// A path as part of a URL.
fn encoded(path: &str) -> String {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"-._~/".contains(&b);
    path.bytes()
        .map(|b| if plain(b) { char::from(b).to_string() } else { format!("%{b:02X}") })
        .collect()
}

fn fetch(base: &str, folder: &Path) -> Result<(), CommandError> {
    let client = client();
    let url = format!("{base}/{}", index::NAME);
    let index = Index::parse(&small(&client, &url, index::BYTES_MAX)?);
    let index = index.map_err(|reason| FetchError::Index { url, reason })?;
    tell(&format!("{}: {}", index.name, index.license));
    let bar = Progress::fetching(io::stderr().is_terminal(), index.bytes());
    for entry in &index.files {
        let file = folder.join(&entry.path);
        let url = format!("{base}/{}", encoded(&entry.path));
        let download = Download { client: &client, url, entry, file, pause: PAUSE };
        download.run(&mut |bytes| bar.came(bytes))?;
    }
    bar.finish();
    let bundle = Bundle::open(folder).map_err(StartError::from)?;
    let name = &bundle.manifest.name;
    print(&format!("{name} lies in {0}; hear it with --bundle {0}\n", folder.display()))
}

fn list(folder: &Path) -> Result<(), CommandError> {
    let bundle = Bundle::open(folder).map_err(StartError::from)?;
    let manifest = &bundle.manifest;
    let index = Index::of(folder, &manifest.name, &manifest.license);
    let index = index.map_err(|(file, source)| FetchError::Disk { file, source })?;
    let file = folder.join(index::NAME);
    let text = serde_json::to_string_pretty(&index).map_err(|e| disk(&file)(e.into()))?;
    std::fs::write(&file, text + "\n").map_err(disk(&file))?;
    tell(&licence_line(&bundle));
    let (files, megabytes) = (index.files.len(), index.bytes() as f64 / 1e6);
    print(&format!("{}: {files} files, {megabytes:.1} MB\n", file.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_looked_for_in_the_hub_and_urls_are_taken_as_they_are() {
        let hub = Some("https://example.com/bundles/");
        assert_eq!(base("nano 2", hub).unwrap(), "https://example.com/bundles/nano%202");
        assert_eq!(base("http://localhost:1/a/", hub).unwrap(), "http://localhost:1/a");
        assert!(base("nano", None).unwrap_err().to_string().contains("--hub"));
        assert!(base("nano", Some("example.com")).unwrap_err().to_string().contains("not a URL"));
    }
}
