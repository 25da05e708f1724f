//! The list of a bundle's files that lies beside them on a server. Reads it as from a stranger; makes it from a folder.
//!
//! ```text
//! dovecote.files.json   {"format": 1, "name": "nano", "license": "...",
//!                        "files": [{"path": "cb0/config.json", "bytes": 812, "sha256": "..64 digits.."}, ..]}
//! ```

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::Listing;
use super::checksum::{Checksum, is_digits, sha256};
use super::download::{PARTIAL, Wanted};
use super::encoded;

/// The list's own name, on a server and in a folder.
pub(super) const NAME: &str = "dovecote.files.json";
/// The largest list that is read: some ten thousand files.
pub(super) const BYTES_MAX: u64 = 4 << 20;
const FORMAT: u32 = 1;

/// The files of a bundle.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Index {
    format: u32,
    /// What the bundle is called.
    pub(super) name: String,
    /// Its licence, in a line.
    pub(super) license: String,
    pub(super) files: Vec<Entry>,
}

/// A file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Entry {
    /// Below the bundle's folder, with `/` between the parts.
    pub(super) path: String,
    pub(super) bytes: u64,
    /// Hexadecimal digits, small.
    pub(super) sha256: String,
}

impl Index {
    /// Reads a list.
    ///
    /// # Errors
    /// What is wrong with it, in a sentence.
    pub(super) fn parse(json: &[u8]) -> Result<Self, String> {
        let index: Self = serde_json::from_slice(json).map_err(|e| e.to_string())?;
        if index.format != FORMAT {
            return Err(format!("format is {}, this version reads {FORMAT}", index.format));
        }
        for Entry { path, sha256, .. } in &index.files {
            if !is_inside(path) {
                return Err(format!("path {path:?} does not stay in the bundle's folder"));
            }
            if !is_digits(sha256, 64) {
                return Err(format!("sha256 of {path:?} is not 64 hexadecimal digits"));
            }
        }
        Ok(index)
    }

    /// Lists the files of a folder, in the order of their paths. Hidden files, unfinished downloads and the list itself are
    /// left out.
    ///
    /// # Errors
    /// A file that cannot be read.
    pub(super) fn of(root: &Path, name: &str, license: &str) -> Result<Self, (PathBuf, io::Error)> {
        let mut files = Vec::new();
        collect(root, "", &mut files)?;
        files.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(Self { format: FORMAT, name: name.to_owned(), license: license.to_owned(), files })
    }

    /// What there is to fetch, from the folder at `base`.
    pub(super) fn listing(self, base: &str) -> Listing {
        let wanted = |entry: Entry| Wanted {
            url: format!("{base}/{}", encoded(&entry.path)),
            path: entry.path,
            bytes: entry.bytes,
            checksum: Checksum::Sha256(entry.sha256),
        };
        let files = self.files.into_iter().map(wanted).collect();
        Listing { name: self.name, license: self.license, files }
    }

    /// Bytes of all files together.
    pub(super) fn bytes(&self) -> u64 {
        self.files.iter().fold(0, |sum, file| sum.saturating_add(file.bytes))
    }
}

/// Whether a path, taken from a stranger, names a file below where it is put: plain parts that mean the same on every system.
pub(super) fn is_inside(path: &str) -> bool {
    let is_plain = |part: &str| {
        let odd = |c: char| c.is_control() || "\\:*?\"<>|".contains(c);
        !part.is_empty() && !part.starts_with('.') && !part.contains(odd)
    };
    path.split('/').all(is_plain) && path != NAME && !path.ends_with(PARTIAL)
}

fn collect(
    folder: &Path,
    prefix: &str,
    files: &mut Vec<Entry>,
) -> Result<(), (PathBuf, io::Error)> {
    let wrong = |path: &Path| {
        let path = path.to_path_buf();
        move |e| (path, e)
    };
    for entry in std::fs::read_dir(folder).map_err(wrong(folder))? {
        let file = entry.map_err(wrong(folder))?.path();
        let name = file.file_name().and_then(|n| n.to_str());
        let path = format!("{prefix}{}", name.unwrap_or_default());
        if file.is_dir() && is_inside(&path) {
            collect(&file, &format!("{path}/"), files)?;
        } else if file.is_file() && is_inside(&path) {
            let opened = File::open(&file).map_err(wrong(&file))?;
            let (bytes, sha256) = sha256(opened).map_err(wrong(&file))?;
            files.push(Entry { path, bytes, sha256 });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn paths_that_leave_the_folder_or_hide_in_it_are_refused() {
        let digest = "a".repeat(64);
        for path in [
            "../up",
            "a/../../up",
            "/etc/passwd",
            "a//b",
            "",
            ".",
            "a/.ssh",
            "c:\\x",
            "a\\b",
            "nul\0",
            "a/",
            NAME,
            "x.part",
        ] {
            let file = json!({"path": path, "bytes": 1, "sha256": digest});
            let json = json!({"format": 1, "name": "n", "license": "l", "files": [file]});
            let error = Index::parse(json.to_string().as_bytes()).unwrap_err();
            assert!(error.contains("does not stay"), "{path:?}: {error}");
        }
    }

    #[test]
    fn lists_of_other_formats_and_bad_digests_are_told() {
        let parse = |format: u32, sha256: &str| {
            let file = json!({"path": "cb0/a.json", "bytes": 1, "sha256": sha256});
            let json = json!({"format": format, "name": "n", "license": "l", "files": [file]});
            Index::parse(json.to_string().as_bytes())
        };
        assert!(parse(1, &"0".repeat(64)).is_ok());
        assert!(parse(2, &"0".repeat(64)).unwrap_err().contains("format is 2"));
        for sha256 in ["", "abc", &"A".repeat(64), &"0".repeat(63)] {
            assert!(parse(1, sha256).unwrap_err().contains("64 hexadecimal"), "{sha256}");
        }
        assert!(Index::parse(b"<html>").is_err());
    }

    #[test]
    fn a_folder_is_listed_by_path_without_what_is_hidden_or_unfinished() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("cb0")).unwrap();
        for (path, text) in
            [("z", "abc"), ("cb0/a", ""), (".git", "x"), ("b.part", "x"), (NAME, "x")]
        {
            std::fs::write(folder.path().join(path), text).unwrap();
        }
        let index = Index::of(folder.path(), "n", "l").unwrap();
        let files: Vec<(&str, u64)> =
            index.files.iter().map(|f| (f.path.as_str(), f.bytes)).collect();
        assert_eq!(files, [("cb0/a", 0), ("z", 3)]);
        // FIPS 180-2, example B.1.
        let abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(index.files[1].sha256, abc);
        assert_eq!(index.bytes(), 3);
        let json = serde_json::to_vec(&index).unwrap();
        assert_eq!(Index::parse(&json), Ok(index));
    }
}
