//! Added voices on disk: a file for each, with its codes, who added it, and the consent that it rests on. Never a recording.
//!
//! ```text
//! v_0123...cdef.json   {"voice_id": "v_0123...cdef", "name": "Ann", "model": "nano", "owner": null, "reference": "...", "codes": [[..], ..]}
//! ```

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

const EXTENSION: &str = "json";
/// Of a file that is being written: not a voice yet.
const UNFINISHED: &str = "unfinished";

/// A voice as it is kept.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Stored {
    /// What it is asked for by.
    pub(crate) voice_id: String,
    /// What it is called.
    pub(crate) name: String,
    /// The model that speaks with it; none in files of earlier versions: the first that takes voices.
    #[serde(default)]
    pub(crate) model: Option<String>,
    /// The key that added it; none where there are no keys.
    pub(crate) owner: Option<String>,
    /// Always true: without consent there is no voice.
    pub(crate) consent: bool,
    /// Who agreed, and where that is kept, in the words of who added it.
    pub(crate) reference: String,
    /// When it was added, in milliseconds since 1970.
    pub(crate) added_unix_ms: u64,
    /// Length of the recording that was used, or of the codes.
    pub(crate) seconds_used: f64,
    /// Rows of codes, the semantic one first.
    pub(crate) codes: Vec<Vec<u16>>,
}

/// A folder or file of voices that cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("{}: {source}", file.display())]
pub(crate) struct StoreError {
    /// The folder or file.
    pub(crate) file: PathBuf,
    /// What the system said.
    pub(crate) source: io::Error,
}

/// A folder of voices.
#[derive(Debug)]
pub(super) struct Store {
    folder: PathBuf,
}

impl Store {
    /// Opens a folder; makes it if it is not there.
    pub(super) fn open(folder: &Path) -> Result<Self, StoreError> {
        fs::create_dir_all(folder)
            .and_then(|()| fs::read_dir(folder).map(drop))
            .map_err(|source| StoreError { file: folder.to_path_buf(), source })?;
        Ok(Self { folder: folder.to_path_buf() })
    }

    /// All voices, by their ids. A file that cannot be read is told in the log.
    pub(super) fn voices(&self) -> Vec<Stored> {
        let entries = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        let files = entries.map(|e| e.path());
        let mut voices: Vec<Stored> = files
            .filter(|file| file.extension().is_some_and(|e| e == EXTENSION))
            .filter_map(|file| match read(&file) {
                Ok(voice) => Some(voice),
                Err(error) => {
                    tracing::error!("{}: not a kept voice: {error}", file.display());
                    None
                }
            })
            .collect();
        voices.sort_by(|a, b| a.voice_id.cmp(&b.voice_id));
        voices
    }

    /// Writes a voice, whole or not at all.
    pub(super) fn keep(&self, voice: &Stored) -> Result<(), StoreError> {
        let (file, unfinished) =
            (self.file(&voice.voice_id, EXTENSION), self.file(&voice.voice_id, UNFINISHED));
        let wrong = |source| StoreError { file: file.clone(), source };
        let text = serde_json::to_vec(voice).map_err(|e| wrong(e.into()))?;
        fs::write(&unfinished, text).map_err(wrong)?;
        fs::rename(&unfinished, &file).map_err(wrong)
    }

    /// Removes a voice; one that is not there is no error.
    pub(super) fn forget(&self, id: &str) -> Result<(), StoreError> {
        let file = self.file(id, EXTENSION);
        match fs::remove_file(&file) {
            Err(source) if source.kind() != io::ErrorKind::NotFound => {
                Err(StoreError { file, source })
            }
            _ => Ok(()),
        }
    }

    /// Ids are made here, of letters and digits alone; whatever comes from outside is looked up before it is a path.
    fn file(&self, id: &str, extension: &str) -> PathBuf {
        assert!(is_safe(id), "a voice's id is no path; this is a bug");
        self.folder.join(id).with_extension(extension)
    }
}

fn is_safe(id: &str) -> bool {
    !id.is_empty() && id.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
}

fn read(file: &Path) -> io::Result<Stored> {
    let voice: Stored = serde_json::from_slice(&fs::read(file)?)?;
    let stem = file.file_stem().and_then(|s| s.to_str());
    if stem != Some(voice.voice_id.as_str()) || !is_safe(&voice.voice_id) {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "its name is not its voice_id"));
    }
    Ok(voice)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn voice(id: &str) -> Stored {
        Stored {
            voice_id: id.into(),
            name: "Ann".into(),
            model: Some("nano".into()),
            owner: Some("key".into()),
            consent: true,
            reference: "Ann said so".into(),
            added_unix_ms: 1,
            seconds_used: 0.24,
            codes: vec![vec![1, 2, 3]; 4],
        }
    }

    #[test]
    fn voices_are_kept_and_forgotten() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(&folder.path().join("new")).unwrap();
        store.keep(&voice("v_2")).unwrap();
        store.keep(&voice("v_1")).unwrap();
        let again = Store::open(&folder.path().join("new")).unwrap();
        assert_eq!(again.voices(), [voice("v_1"), voice("v_2")]);
        store.forget("v_1").unwrap();
        store.forget("v_1").unwrap();
        assert_eq!(store.voices(), [voice("v_2")]);
    }

    #[test]
    fn a_voice_that_was_kept_before_models_were_named_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let mut old = serde_json::to_value(voice("v_1")).unwrap();
        old.as_object_mut().unwrap().remove("model").unwrap();
        fs::write(folder.path().join("v_1.json"), old.to_string()).unwrap();
        let read = Store::open(folder.path()).unwrap().voices();
        assert_eq!(read, [Stored { model: None, ..voice("v_1") }]);
    }

    #[test]
    fn other_files_are_no_voices() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path()).unwrap();
        fs::write(folder.path().join("v_1.json"), "{").unwrap();
        fs::write(folder.path().join("v_1.unfinished"), "{}").unwrap();
        let other = serde_json::to_string(&voice("../../v_9")).unwrap();
        fs::write(folder.path().join("v_3.json"), other).unwrap();
        assert_eq!(store.voices(), []);
    }

    #[test]
    fn a_folder_that_cannot_be_is_told() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let error = Store::open(file.path()).unwrap_err().to_string();
        assert!(error.contains(file.path().to_str().unwrap()), "{error}");
    }
}
