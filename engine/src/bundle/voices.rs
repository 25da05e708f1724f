//! Voice prompts: rows of codes from a file or from a request, checked against the codebooks they index.
//!
//! ```text
//! nano.safetensors   tensor `codes` [rows, frames], integers
//! nano.json          [[row 0], [row 1], ..]
//! ```

use std::path::{Path, PathBuf};

use codecs::weights::{LoadError, Weights, read_json};

use super::manifest::STAGES;
use crate::text::ids::Language;

/// A named voice of a bundle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Voice {
    /// What requests call it.
    pub name: String,
    /// The language it speaks when a request names none.
    pub language: Language,
    /// What it sounds like.
    pub prompt: VoicePrompt,
}

/// What a voice is made from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum VoicePrompt {
    /// Codes, or none: the voice that the model has without a prompt.
    Codes(Prompt),
    /// A recording that has to be encoded first.
    Audio(PathBuf),
}

/// Rows of codes, the semantic one first, of equal length.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Prompt {
    /// One row for each stage; none for a voice without prompt.
    pub rows: Vec<Vec<u16>>,
    /// How many leading frames each stage reads, at most.
    pub frames: Vec<usize>,
}

/// Entries of the codebooks, and how much of a prompt is read: what rows of codes are measured against.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PromptRules {
    /// Entries of the semantic codebook.
    pub semantic_codes: usize,
    /// Entries of each acoustic codebook.
    pub acoustic_codes: usize,
    /// Leading frames that each stage reads.
    pub frames: Vec<usize>,
}

impl Prompt {
    /// The rows that a stage reads, each cut to its length; none without a prompt.
    pub fn cut(&self, stage: usize) -> Vec<&[u16]> {
        let rows = self.rows.iter().take(stage + 1);
        rows.map(|row| &row[..row.len().min(self.frames[stage])]).collect()
    }

    /// Checks rows of codes and makes a prompt of them. Rows and frames that no stage reads are dropped: a codec makes
    /// more rows than the model speaks.
    ///
    /// # Errors
    /// What is wrong with the rows, in a sentence.
    pub fn from_rows(mut rows: Vec<Vec<u16>>, rules: &PromptRules) -> Result<Self, String> {
        if rows.len() < STAGES {
            return Err(format!("{} rows of codes, at least {STAGES} are needed", rows.len()));
        }
        let frames = rows[0].len();
        if frames == 0 {
            return Err("no frame of codes".to_owned());
        }
        if let Some(row) = rows.iter().position(|row| row.len() != frames) {
            return Err(format!("row {row} has {} codes, row 0 has {frames}", rows[row].len()));
        }
        rows.truncate(STAGES);
        for (row, codes) in rows.iter_mut().enumerate() {
            codes.truncate(rules.frames.iter().copied().max().unwrap_or(0));
            let entries = if row == 0 { rules.semantic_codes } else { rules.acoustic_codes };
            if let Some(frame) = codes.iter().position(|&c| usize::from(c) >= entries) {
                let code = codes[frame];
                return Err(format!("row {row}, frame {frame}: code {code} of {entries}"));
            }
        }
        Ok(Self { rows, frames: rules.frames.clone() })
    }
}

/// Reads the prompt of a voice; what is not a code file is taken for a recording, which is only looked for.
pub(super) fn read(file: &Path, rules: &PromptRules) -> Result<VoicePrompt, LoadError> {
    let Some(rows) = read_rows(file)? else {
        let open = std::fs::File::open(file);
        open.map_err(|source| LoadError::Io { file: file.to_path_buf(), source })?;
        return Ok(VoicePrompt::Audio(file.to_path_buf()));
    };
    let prompt = Prompt::from_rows(rows, rules).map_err(|e| LoadError::malformed(file, e))?;
    Ok(VoicePrompt::Codes(prompt))
}

/// Reads `[rows][frames]` of codes; none when the file's name does not say that it holds any.
pub(super) fn read_rows(file: &Path) -> Result<Option<Vec<Vec<u16>>>, LoadError> {
    match file.extension().and_then(|e| e.to_str()) {
        Some("json") => read_json(file).map(Some),
        Some("safetensors") => tensor_rows(file).map(Some),
        _ => Ok(None),
    }
}

fn tensor_rows(file: &Path) -> Result<Vec<Vec<u16>>, LoadError> {
    const NAME: &str = "codes";
    let wrong = |reason: String| LoadError::tensor(file, NAME, reason);
    let weights = Weights::open(file)?;
    let codes = weights.ints(NAME)?;
    let frames = match weights.shape(NAME) {
        Some([rows, frames]) if rows * frames > 0 => *frames,
        shape => return Err(wrong(format!("shape is {shape:?}, expected rows and frames"))),
    };
    let code = |&c: &i64| u16::try_from(c).map_err(|_| wrong(format!("{c} is not a code")));
    codes.chunks(frames).map(|row| row.iter().map(code).collect()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use safetensors::{Dtype, tensor::TensorView};

    fn rules() -> PromptRules {
        PromptRules { semantic_codes: 50, acoustic_codes: 20, frames: vec![6, 4, 2, 1] }
    }

    fn rows(frames: usize) -> Vec<Vec<u16>> {
        (0..STAGES).map(|row| (0..frames).map(|f| (row + f) as u16).collect()).collect()
    }

    fn write_tensor(dtype: Dtype, shape: Vec<usize>, bytes: &[u8]) -> (tempfile::TempDir, PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("voice.safetensors");
        let view = TensorView::new(dtype, shape, bytes).unwrap();
        std::fs::write(&file, safetensors::serialize([("codes", view)], None).unwrap()).unwrap();
        (dir, file)
    }

    #[test]
    fn each_stage_reads_its_rows_and_its_length() {
        let prompt = Prompt::from_rows(rows(8), &rules()).unwrap();
        assert_eq!(prompt.cut(0), [[0, 1, 2, 3, 4, 5]]);
        assert_eq!(prompt.cut(2), [[0, 1], [1, 2], [2, 3]]);
        assert_eq!(prompt.cut(3).len(), 4);
        assert!(Prompt::default().cut(3).is_empty());
    }

    #[test]
    fn rows_beyond_the_models_are_dropped_and_missing_ones_refused() {
        let mut many = rows(3);
        many.push(vec![999; 3]);
        assert_eq!(Prompt::from_rows(many, &rules()).unwrap().rows, rows(3));
        let error = Prompt::from_rows(rows(3)[..3].to_vec(), &rules()).unwrap_err();
        assert_eq!(error, "3 rows of codes, at least 4 are needed");
        assert_eq!(Prompt::from_rows(rows(0), &rules()).unwrap_err(), "no frame of codes");
    }

    #[test]
    fn uneven_rows_and_codes_beyond_their_codebook_are_refused() {
        let mut uneven = rows(3);
        uneven[2].pop();
        let error = Prompt::from_rows(uneven, &rules()).unwrap_err();
        assert_eq!(error, "row 2 has 2 codes, row 0 has 3");
        let mut beyond = rows(3);
        beyond[1][2] = 20;
        let error = Prompt::from_rows(beyond, &rules()).unwrap_err();
        assert_eq!(error, "row 1, frame 2: code 20 of 20");
    }

    #[test]
    fn both_kinds_of_code_file_give_the_same_prompt() {
        let flat: Vec<u8> = rows(3).concat().iter().flat_map(|c| c.to_le_bytes()).collect();
        let (dir, tensors) = write_tensor(Dtype::U16, vec![4, 3], &flat);
        let json = dir.path().join("voice.json");
        std::fs::write(&json, serde_json::to_string(&rows(3)).unwrap()).unwrap();
        let expected = VoicePrompt::Codes(Prompt { rows: rows(3), frames: rules().frames });
        assert_eq!(read(&tensors, &rules()).unwrap(), expected);
        assert_eq!(read(&json, &rules()).unwrap(), expected);
    }

    #[test]
    fn faults_of_a_code_file_name_it() {
        let (_dir, negative) = write_tensor(Dtype::I32, vec![1, 1], &(-1i32).to_le_bytes());
        let (_dir, floats) = write_tensor(Dtype::F32, vec![1, 1], &[0; 4]);
        let (_dir, flat) = write_tensor(Dtype::U8, vec![4], &[0; 4]);
        let (_dir, short) = write_tensor(Dtype::U8, vec![2, 2], &[0; 4]);
        for (file, says) in [
            (&negative, "tensor `codes`: -1 is not a code"),
            (&floats, "tensor `codes`: type F32"),
            (&flat, "tensor `codes`: shape is Some([4])"),
            (&short, "2 rows of codes"),
            (&PathBuf::from("gone.json"), "cannot read"),
            (&PathBuf::from("gone.wav"), "cannot read"),
        ] {
            let text = read(file, &rules()).unwrap_err().to_string();
            let name = file.file_name().unwrap().to_str().unwrap();
            assert!(text.contains(name) && text.contains(says), "{text}");
        }
    }
}
