//! `dovecote fetch`: a bundle from a hub or from any server of files, resumed and checked; and the list that a server of files
//! needs.
//!
//! ```text
//! owner/name[@rev] --hub's API---------.
//! URL -------------dovecote.files.json-+-> each URL --DIR/path.part--checksum--> DIR/path
//! ```

mod checksum;
mod download;
mod hub;
mod index;

use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};
use std::time::Duration;

use engine::StartError;
use engine::bundle::Bundle;
use ureq::Agent;

pub use self::download::FetchError;
use self::download::{Download, Wanted, ask, client, disk};
use self::hub::Repository;
use self::index::Index;
use super::progress::Progress;
use super::{CommandError, licence_line, print, tell};

/// Between the first two tries of a file.
const PAUSE: Duration = Duration::from_secs(1);

/// Arguments of `dovecote fetch`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// owner/name or owner/name@revision on a hub, or the URL of a folder with a dovecote.files.json
    #[arg(required_unless_present = "index", conflicts_with = "index")]
    source: Option<String>,
    /// Folder to put it in; what lies there already and is right is not fetched again
    #[arg(short, long, value_name = "DIR", required_unless_present = "index")]
    output: Option<PathBuf>,
    /// The hub, or a mirror that answers as it does
    #[arg(
        long,
        visible_alias = "base",
        env = "DOVECOTE_HUB",
        hide_env_values = true,
        value_name = "URL",
        default_value = hub::USUAL
    )]
    hub: String,
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
        (None, Some(source), Some(folder)) => {
            let client = client();
            let listing = Place::of(source, &args.hub)?.list(&client)?;
            fetch(&client, &listing, folder)
        }
        _ => Err(CommandError::Usage("name a bundle and a folder for it".to_owned())),
    }
}

/// What there is to fetch.
#[derive(Debug, PartialEq, Eq)]
struct Listing {
    name: String,
    /// In a line.
    license: String,
    files: Vec<Wanted>,
}

/// Where a bundle lies.
#[derive(Debug, PartialEq, Eq)]
enum Place {
    /// A folder on a server of files.
    Folder(String),
    /// A repository on a hub.
    Hub { hub: String, repository: Repository },
}

impl Place {
    /// Addresses are without a slash at their end.
    fn of(source: &str, hub: &str) -> Result<Self, CommandError> {
        let is_url = |text: &str| text.starts_with("https://") || text.starts_with("http://");
        if is_url(source) {
            return Ok(Self::Folder(source.trim_end_matches('/').to_owned()));
        }
        let Some(repository) = Repository::parse(source) else {
            let message = format!("{source:?} is neither a URL nor owner/name[@revision]");
            return Err(CommandError::Usage(message));
        };
        if !is_url(hub) {
            return Err(CommandError::Usage(format!("--hub {hub:?} is not a URL")));
        }
        Ok(Self::Hub { hub: hub.trim_end_matches('/').to_owned(), repository })
    }

    fn list(&self, client: &Agent) -> Result<Listing, FetchError> {
        match self {
            Self::Hub { hub, repository } => repository.list(client, hub),
            Self::Folder(base) => {
                let url = format!("{base}/{}", index::NAME);
                let index = Index::parse(&ask(client, &url, index::BYTES_MAX)?.body);
                let index = index.map_err(|reason| FetchError::Index { url, reason })?;
                Ok(index.listing(base))
            }
        }
    }
}

/// A path as part of a URL.
fn encoded(path: &str) -> String {
    path.split('/').map(encoded_part).collect::<Vec<_>>().join("/")
}

/// A part of a path as part of a URL; its slashes are none of the URL's.
fn encoded_part(part: &str) -> String {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"-._~".contains(&b);
    part.bytes()
        .map(|b| if plain(b) { char::from(b).to_string() } else { format!("%{b:02X}") })
        .collect()
}

fn fetch(client: &Agent, listing: &Listing, folder: &Path) -> Result<(), CommandError> {
    let told = format!("{}: {}", listing.name, listing.license);
    tell(&told);
    let bytes = listing.files.iter().fold(0_u64, |sum, file| sum.saturating_add(file.bytes));
    let bar = Progress::fetching(io::stderr().is_terminal(), bytes);
    for wanted in &listing.files {
        let file = folder.join(&wanted.path);
        let download = Download { client, wanted, file, pause: PAUSE };
        download.run(&mut |bytes| bar.came(bytes))?;
    }
    bar.finish();
    let bundle = Bundle::open(folder).map_err(StartError::from)?;
    let line = licence_line(&bundle);
    if line != told {
        tell(&line);
    }
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
    fn a_url_is_a_folder_and_a_name_a_repository() {
        let hub = "https://hub.example/";
        let folder = Place::Folder("http://localhost:1/a".to_owned());
        assert_eq!(Place::of("http://localhost:1/a/", hub).unwrap(), folder);
        let Place::Hub { hub, .. } = Place::of("owner/name@v1", hub).unwrap() else { panic!() };
        assert_eq!(hub, "https://hub.example");
        let wrong = Place::of("nano", &hub).unwrap_err().to_string();
        assert!(wrong.contains("\"nano\" is neither"), "{wrong}");
        let wrong = Place::of("owner/name", "hub.example").unwrap_err().to_string();
        assert!(wrong.contains("not a URL"), "{wrong}");
    }

    #[test]
    fn paths_stay_paths_and_revisions_become_one_part() {
        assert_eq!(encoded("cb0/nano 2"), "cb0/nano%202");
        assert_eq!(encoded_part("refs/pr/1"), "refs%2Fpr%2F1");
    }
}
