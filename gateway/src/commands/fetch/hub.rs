//! Bundles on a hub: repositories named `owner/name`, listed by an API and fetched at one commit. Reads answers as from a stranger.
//!
//! ```text
//! HUB/api/models/OWNER/NAME/revision/REV         {"sha": COMMIT, "cardData": {"license": ..}}
//! HUB/api/models/OWNER/NAME/tree/COMMIT          [{"type", "path", "size", "oid", "lfs": {"oid"}}, ..], page by page
//! HUB/OWNER/NAME/resolve/COMMIT/PATH             the file
//! ```

use serde::Deserialize;
use ureq::Agent;

use super::checksum::{Checksum, is_digits};
use super::download::{Answer, FetchError, Wanted, ask};
use super::{Listing, encoded, encoded_part, index};

/// The hub that names mean unless another is named.
pub(super) const USUAL: &str = "https://huggingface.co";
/// The revision that a name means without one.
const USUAL_REVISION: &str = "main";
/// Most pages of a list: a bundle has some dozens of files, a page a thousand.
const PAGES_MAX: usize = 16;
/// Digits of a commit, or of a file's object id.
const GIT_DIGITS: usize = 40;
const SHA256_DIGITS: usize = 64;

/// A repository on a hub, at a branch, tag or commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Repository {
    /// `owner/name`
    name: String,
    revision: String,
}

/// What the hub says of a revision.
#[derive(Debug, Deserialize)]
struct Revision {
    sha: String,
    #[serde(default, rename = "cardData")]
    card: Option<Card>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Card {
    license: Option<License>,
    license_name: Option<String>,
    license_link: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum License {
    One(String),
    Several(Vec<String>),
}

/// Something in a repository.
#[derive(Debug, Deserialize)]
struct Item {
    r#type: String,
    path: String,
    #[serde(default)]
    size: u64,
    #[serde(default)]
    oid: String,
    lfs: Option<Lfs>,
}

#[derive(Debug, Deserialize)]
struct Lfs {
    oid: String,
}

impl Repository {
    /// Reads `owner/name` or `owner/name@revision`; none: it is something else.
    pub(super) fn parse(source: &str) -> Option<Self> {
        let (name, revision) = source.split_once('@').unwrap_or((source, USUAL_REVISION));
        let is_plain = |part: &str| {
            let plain = |c: char| c.is_ascii_alphanumeric() || "-._".contains(c);
            !part.is_empty() && !part.starts_with('.') && part.chars().all(plain)
        };
        let (owner, model) = name.split_once('/')?;
        let fits = is_plain(owner) && is_plain(model) && !revision.is_empty();
        fits.then(|| Self { name: name.to_owned(), revision: revision.to_owned() })
    }

    /// What lies in it.
    ///
    /// # Errors
    /// A hub that cannot be reached, does not have it, or whose list cannot be used.
    pub(super) fn list(&self, client: &Agent, hub: &str) -> Result<Listing, FetchError> {
        let api = format!("{hub}/api/models/{}", self.name);
        let url = format!("{api}/revision/{}", encoded_part(&self.revision));
        let answer = ask(client, &url, index::BYTES_MAX).map_err(|error| self.missing(error))?;
        let revision: Revision = parse(&url, &answer.body)?;
        let commit = revision.sha;
        if !is_digits(&commit, GIT_DIGITS) {
            return Err(unusable(&url, format!("{commit:?} is no commit")));
        }
        let files = format!("{hub}/{}/resolve/{commit}", self.name);
        let mut wanted = Vec::new();
        let mut next = Some(format!("{api}/tree/{commit}?recursive=true"));
        for _ in 0..PAGES_MAX {
            let Some(url) = next.take() else { break };
            let Answer { body, next: more } = ask(client, &url, index::BYTES_MAX)?;
            for item in parse::<Vec<Item>>(&url, &body)? {
                wanted.extend(item.wanted(&files).map_err(|reason| unusable(&url, reason))?);
            }
            next = more
                .map(|more| {
                    here(hub, &more)
                        .ok_or_else(|| unusable(&url, format!("it goes on at {more:?}")))
                })
                .transpose()?;
        }
        match next {
            Some(url) => Err(unusable(&url, format!("the list has more than {PAGES_MAX} pages"))),
            None => {
                let license = revision.card.unwrap_or_default().line();
                let name = format!("{}@{}", self.name, &commit[..8]);
                Ok(Listing { name, license, files: wanted })
            }
        }
    }

    /// Hubs say 401 of what is not there, so that nobody learns what is.
    fn missing(&self, error: FetchError) -> FetchError {
        match error {
            FetchError::Status { url, status: 401 | 403 | 404 } => {
                let Self { name, revision } = self;
                let reason =
                    format!("there is no {name} at {revision} here that everybody may have");
                FetchError::Server { url, reason }
            }
            error => error,
        }
    }
}

impl Item {
    /// The file to fetch from below `files`; none: a folder, or a hidden file, which is the repository's own.
    fn wanted(self, files: &str) -> Result<Option<Wanted>, String> {
        let path = self.path;
        let is_hidden = |part: &str| part.starts_with('.') && part != "." && part != "..";
        if self.r#type != "file" || path.split('/').any(is_hidden) {
            return Ok(None);
        }
        if !index::is_inside(&path) {
            return Err(format!("path {path:?} does not stay in the bundle's folder"));
        }
        let checksum = match self.lfs {
            Some(Lfs { oid }) if is_digits(&oid, SHA256_DIGITS) => Checksum::Sha256(oid),
            None if is_digits(&self.oid, GIT_DIGITS) => Checksum::Git(self.oid),
            _ => return Err(format!("{path:?} has no checksum")),
        };
        let url = format!("{files}/{}", encoded(&path));
        Ok(Some(Wanted { path, url, bytes: self.size, checksum }))
    }
}

impl Card {
    /// The licence in a line.
    fn line(self) -> String {
        let license = match self.license {
            Some(License::One(one)) => one,
            Some(License::Several(several)) => several.join(", "),
            None => "the hub names no licence".to_owned(),
        };
        let more = [self.license_name, self.license_link].into_iter().flatten();
        std::iter::once(license).chain(more).collect::<Vec<_>>().join(", ")
    }
}

/// The same page on this hub: a mirror may show the links of what it mirrors, and no answer leads to another server.
fn here(hub: &str, page: &str) -> Option<String> {
    let at = page.find("/api/models/")?;
    Some(format!("{hub}{}", &page[at..]))
}

fn parse<T: for<'a> Deserialize<'a>>(url: &str, json: &[u8]) -> Result<T, FetchError> {
    serde_json::from_slice(json).map_err(|e| unusable(url, e.to_string()))
}

fn unusable(url: &str, reason: String) -> FetchError {
    FetchError::Index { url: url.to_owned(), reason }
}

/// The address that a `Link` header names as the next page.
pub(super) fn next_page(link: &str) -> Option<&str> {
    link.split(',').find_map(|part| {
        let (address, parameters) = part.trim().strip_prefix('<')?.split_once('>')?;
        let is_next =
            parameters.split(';').any(|p| matches!(p.trim(), "rel=next" | "rel=\"next\""));
        is_next.then_some(address)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const FILES: &str = "https://hub.example/o/n/resolve/c";

    fn wanted(item: serde_json::Value) -> Result<Option<Wanted>, String> {
        serde_json::from_value::<Item>(item).unwrap().wanted(FILES)
    }

    #[test]
    fn names_have_an_owner_and_perhaps_a_revision() {
        let parsed = |source| Repository::parse(source).map(|r| (r.name, r.revision));
        let is = |name: &str, revision: &str| Some((name.to_owned(), revision.to_owned()));
        assert_eq!(parsed("tontaube/TontaubeV1"), is("tontaube/TontaubeV1", "main"));
        assert_eq!(parsed("a/b.c@refs/pr/3"), is("a/b.c", "refs/pr/3"));
        for source in ["nano", "a/b/c", "a/../b", "./b", "/b", "a/", "a/b@", "a b/c", "a/b?c"] {
            assert_eq!(parsed(source), None, "{source}");
        }
    }

    #[test]
    fn files_have_the_checksum_that_the_hub_has_for_them() {
        let (git, sha256) = ("a".repeat(40), "b".repeat(64));
        let small = wanted(json!({"type": "file", "path": "cb0/a b", "size": 3, "oid": git}));
        let small = small.unwrap().unwrap();
        assert_eq!(small.checksum, Checksum::Git(git.clone()));
        assert_eq!(small.url, format!("{FILES}/cb0/a%20b"));
        let lfs = json!({"oid": sha256, "size": 3, "pointerSize": 130});
        let large = json!({"type": "file", "path": "w", "size": 3, "oid": git, "lfs": lfs});
        assert_eq!(wanted(large).unwrap().unwrap().checksum, Checksum::Sha256(sha256));
    }

    #[test]
    fn folders_and_hidden_files_are_left_and_paths_that_lead_out_are_refused() {
        let item = |path: &str, kind: &str| {
            wanted(json!({"type": kind, "path": path, "size": 1, "oid": "a".repeat(40)}))
        };
        assert_eq!(item("cb0", "directory"), Ok(None));
        assert_eq!(item(".gitattributes", "file"), Ok(None));
        assert_eq!(item("a/.b/c", "file"), Ok(None));
        for path in ["../up", "a/../../up", "/etc/passwd", "c:\\x"] {
            assert!(item(path, "file").unwrap_err().contains("does not stay"), "{path}");
        }
        let bare = json!({"type": "file", "path": "a", "size": 1, "oid": "x"});
        assert!(wanted(bare).unwrap_err().contains("no checksum"));
    }

    #[test]
    fn the_licence_is_told_with_its_name() {
        let line = |card| serde_json::from_value::<Card>(card).unwrap().line();
        assert_eq!(line(json!({"license": "apache-2.0", "tags": []})), "apache-2.0");
        assert_eq!(line(json!({"license": "other", "license_name": "own"})), "other, own");
        assert_eq!(line(json!({"license": ["mit", "isc"]})), "mit, isc");
        assert_eq!(line(json!({})), "the hub names no licence");
    }

    #[test]
    fn the_next_page_is_found_in_a_link() {
        let link = "<https://a/1>; rel=\"first\", <https://a/2?cursor=x>; rel=\"next\"";
        assert_eq!(next_page(link), Some("https://a/2?cursor=x"));
        assert_eq!(next_page("<https://a/1>; rel=\"prev\""), None);
        assert_eq!(next_page("nonsense"), None);
    }
}
