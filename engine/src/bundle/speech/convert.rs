//! A published checkpoint made into a bundle: the tensors that are read, as safetensors, each part in a folder of its own.
//!
//! ```text
//! SRC/ config.json, weights [, tokenizer.json]       DST/ dovecote.json tokenizer.json
//!                                               ->        model/   what the model reads
//! CODEC/ config.json, weights                             codec/
//!                                                         audio/   the tower that hears, where the checkpoint has one
//! ```

use std::fs;
use std::path::{Path, PathBuf};

use codecs::streaming;
use codecs::weights::{
    FILE_BYTES, LoadError, Outgoing, SaveError, SaveOptions, Weights, read_json, save,
};
use serde_json::{Map, Value, json};

use super::{FAMILY, Kind, SpeechBundle, Task, kind_of};
use crate::bundle::{MANIFEST, TOKENIZER};
use crate::models::speech::{Audit, open_model};

/// Reads what the tower makes of sound; it stays with the model.
const ADAPTOR: &str = "adaptor.";
/// Where a Bagpiper checkpoint has its tower, and its configuration has the tower's.
const TOWER: &str = "multimodal_io_dict.continuous_audio.model.audio_tower.";
const TOWER_CONFIG: &str = "audio_config";
/// Symbols of the tasks in the released checkpoints of OpusLM and its dialogue model.
const TASKS: [(Task, u32); 7] = [
    (Task::TextLm, 64),
    (Task::Transcribe, 80),
    (Task::SpeechWithVoice, 81),
    (Task::Speech, 82),
    (Task::AudioLm, 83),
    (Task::TextDialogue, 88),
    (Task::AudioDialogue, 89),
];
/// What the manifest calls what a served configuration says of sampling.
const SAMPLING: [(&str, &str); 5] = [
    ("text_temperature", "text_temperature"),
    ("text_topk", "text_top_k"),
    ("audio_temperature", "audio_temperature"),
    ("audio_topk", "audio_top_k"),
    ("audio_minlen", "min_rows"),
];

/// What a checkpoint is made into.
#[derive(Debug, Clone)]
pub struct Convert {
    /// Name of the model in the bundle.
    pub name: String,
    /// The licence line of the weights.
    pub license: String,
    /// `tokenizer.json`; none: that beside the checkpoint.
    pub tokenizer: Option<PathBuf>,
    /// Folder of the codec, and which it is, if not the one that the model was published with; none: the bundle only writes.
    pub codec: Option<(PathBuf, Option<streaming::Kind>)>,
    /// Whether wider floats become bf16.
    pub narrow: bool,
}

/// What became of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Converted {
    /// Which model it is.
    pub kind: Kind,
    /// Bytes of the tensors that were written.
    pub bytes: usize,
    /// Tensors that were left out, by what their names begin with, and how many those are.
    pub left_out: Vec<(String, usize)>,
}

/// Why a checkpoint could not be converted.
#[derive(Debug, thiserror::Error)]
pub enum ConvertError {
    /// A part cannot be read, or does not fit the others.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// Tensors cannot be written.
    #[error(transparent)]
    Save(#[from] SaveError),
    /// A file cannot be copied or written.
    #[error("{}: {source}", file.display())]
    Io {
        /// The file.
        file: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The folder that the bundle should become holds something.
    #[error("{} is not empty", .0.display())]
    NotEmpty(PathBuf),
}

/// Converts the checkpoint in `source`; `written` hears of bytes as files are done. What was written when it fails stays, without a
/// manifest: no bundle.
///
/// # Errors
/// See [`ConvertError`].
pub fn convert(
    source: &Path,
    target: &Path,
    to: &Convert,
    written: &mut dyn FnMut(usize),
) -> Result<Converted, ConvertError> {
    let (config, weights) = open_model(source)?;
    let file = source.join("config.json");
    let kind = kind_of(&config).ok_or_else(|| {
        LoadError::field(
            &file,
            "model_type",
            "is a model of text alone, which no bundle is made of",
        )
    })?;
    let said: Map<String, Value> = read_json(&file)?;
    make_folder(target)?;
    let audit = Audit::new(&weights, &config);
    let options = SaveOptions { narrow: to.narrow, file_bytes: FILE_BYTES };
    let own = |name: &&String| audit.needed.contains(name) || name.starts_with(ADAPTOR);
    let all: Vec<String> = weights.names().map(str::to_owned).collect();
    let model = target.join("model");
    let mut bytes = write_part(&model, &weights, all.iter().filter(own), "", options, written)?;
    copy(&file, &model.join("config.json"))?;
    let hears = said.get(TOWER_CONFIG).filter(|_| all.iter().any(|n| n.starts_with(TOWER)));
    if let Some(tower) = hears {
        let (folder, own) = (target.join("audio"), |name: &&String| name.starts_with(TOWER));
        bytes += write_part(&folder, &weights, all.iter().filter(own), TOWER, options, written)?;
        write(&folder.join("config.json"), tower)?;
    }
    if let Some((codec, _)) = &to.codec {
        bytes += write_codec(codec, &target.join("codec"), options, written)?;
    }
    let tokenizer = to.tokenizer.clone().unwrap_or_else(|| source.join(TOKENIZER));
    copy(&tokenizer, &target.join(TOKENIZER))?;
    let manifest = manifest(kind, to, &said, hears.is_some());
    write(&target.join(MANIFEST), &manifest)?;
    SpeechBundle::open(target)?;
    let left = |(group, _): &(String, usize)| {
        let moved = hears.is_some() && TOWER.starts_with(group.as_str());
        !(moved || group.starts_with(ADAPTOR))
    };
    let left_out = audit.unused_groups().into_iter().filter(left).collect();
    Ok(Converted { kind, bytes, left_out })
}

/// Writes tensors without the beginning `prefix` of their names.
fn write_part<'a>(
    folder: &Path,
    weights: &Weights,
    names: impl Iterator<Item = &'a String>,
    prefix: &str,
    options: SaveOptions,
    written: &mut dyn FnMut(usize),
) -> Result<usize, ConvertError> {
    make_folder(folder)?;
    let out = |name: &String| Outgoing {
        name: name.strip_prefix(prefix).unwrap_or(name).to_owned(),
        weights,
        from: name.clone(),
    };
    let tensors: Vec<Outgoing<'_>> = names.map(out).collect();
    Ok(save(folder, &tensors, options, written)?)
}

/// The codec's tensors stay as exact as they are: it is a small part, and every sample is as exact as they are.
fn write_codec(
    from: &Path,
    folder: &Path,
    options: SaveOptions,
    written: &mut dyn FnMut(usize),
) -> Result<usize, ConvertError> {
    let weights = Weights::open(&crate::models::speech::weight_file(from)?)?;
    let names: Vec<String> = weights.names().map(str::to_owned).collect();
    let options = SaveOptions { narrow: false, ..options };
    let bytes = write_part(folder, &weights, names.iter(), "", options, written)?;
    copy(&from.join("config.json"), &folder.join("config.json"))?;
    Ok(bytes)
}

fn manifest(kind: Kind, to: &Convert, said: &Map<String, Value>, hears: bool) -> Value {
    let mut manifest = json!({
        "format": 1, "name": to.name, "family": FAMILY, "kind": kind.name(), "license": to.license,
    });
    if let Some((_, codec)) = &to.codec {
        manifest["codec"] = codec.map_or_else(|| json!({}), |codec| json!({"kind": codec.name()}));
    }
    if hears {
        manifest["audio_input"] = json!({"kind": "qwen3-omni"});
    }
    if kind != Kind::Bagpiper {
        let tasks = TASKS.map(|(task, id)| (task.name().to_owned(), id.into()));
        manifest["tasks"] = Value::Object(tasks.into_iter().collect());
    }
    let sampling = SAMPLING
        .iter()
        .filter_map(|(theirs, ours)| Some(((*ours).to_owned(), said.get(*theirs)?.clone())));
    let sampling: Map<String, Value> = sampling.collect();
    if !sampling.is_empty() {
        manifest["sampling"] = Value::Object(sampling);
    }
    manifest
}

/// A folder that is there and empty.
fn make_folder(folder: &Path) -> Result<(), ConvertError> {
    let io = |source| ConvertError::Io { file: folder.to_path_buf(), source };
    fs::create_dir_all(folder).map_err(io)?;
    match fs::read_dir(folder).map_err(io)?.next() {
        None => Ok(()),
        Some(_) => Err(ConvertError::NotEmpty(folder.to_path_buf())),
    }
}

fn copy(from: &Path, to: &Path) -> Result<(), ConvertError> {
    let copied = fs::copy(from, to);
    copied.map(drop).map_err(|source| ConvertError::Io { file: from.to_path_buf(), source })
}

fn write(file: &Path, value: &Value) -> Result<(), ConvertError> {
    let written = fs::write(file, format!("{value:#}\n"));
    written.map_err(|source| ConvertError::Io { file: file.to_path_buf(), source })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bundle::speech::LoadOptions;
    use crate::kernels::matrix::Precision;

    fn fixture(name: &str) -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/fixtures").join(name)
    }

    fn to(codec: &str) -> Convert {
        Convert {
            name: "converted".to_owned(),
            license: "a licence".to_owned(),
            tokenizer: Some(fixture("bundles/tokenizer.json")),
            codec: Some((fixture(codec), None)),
            narrow: false,
        }
    }

    #[test]
    fn a_converted_checkpoint_is_a_bundle_with_the_same_numbers() {
        for (model, codec, tasks, left) in [
            ("bagpiper", "xcodec_tiny", 0, vec![("vocab_weight".to_owned(), 1)]),
            ("opuslm", "dac_tiny/espnet", 7, vec![("criterion.weight".to_owned(), 1)]),
        ] {
            let (source, target) =
                (fixture("speechlm_tiny").join(model), tempfile::tempdir().unwrap());
            let mut heard = 0;
            let done = convert(&source, target.path(), &to(codec), &mut |b| heard += b).unwrap();
            assert_eq!((done.kind.name(), done.bytes, done.left_out), (model, heard, left));
            let bundle = SpeechBundle::open(target.path()).unwrap();
            let SpeechBundle { manifest, .. } = &bundle;
            assert_eq!((manifest.tasks.len(), manifest.name.as_str()), (tasks, "converted"));
            assert_eq!(manifest.sampling.min_rows, if model == "opuslm" { 3 } else { 1 });
            let options = LoadOptions { precision: Precision::F32, pool: None };
            assert!(bundle.load(&options, &mut |_| ()).unwrap().codec.is_some());
            let (before, after) =
                (open_model(&source).unwrap().1, open_model(&bundle.model_folder()).unwrap().1);
            for name in after.names() {
                let shape = before.shape(name).unwrap();
                assert_eq!(
                    before.f32(name, shape).unwrap(),
                    after.f32(name, shape).unwrap(),
                    "{name}"
                );
            }
        }
    }

    #[test]
    fn the_tower_that_hears_becomes_a_part_of_its_own() {
        let (source, target) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let mut config: Value = read_json(&fixture("speechlm_tiny/bagpiper/config.json")).unwrap();
        config[TOWER_CONFIG] = json!({"d_model": 64});
        fs::write(source.path().join("config.json"), config.to_string()).unwrap();
        let model = Weights::open(&fixture("speechlm_tiny/bagpiper")).unwrap();
        let codec = Weights::open(&fixture("xcodec_tiny")).unwrap();
        let tensor =
            |weights, name: &str, to: String| Outgoing { name: to, weights, from: name.into() };
        let mut tensors: Vec<Outgoing<'_>> =
            model.names().map(|n| tensor(&model, n, n.to_owned())).collect();
        // Any tensors do for a tower that is only moved.
        tensors.extend(codec.names().take(2).map(|n| tensor(&codec, n, format!("{TOWER}{n}"))));
        let options = SaveOptions { narrow: false, file_bytes: FILE_BYTES };
        save(source.path(), &tensors, options, &mut |_| ()).unwrap();
        let narrow = Convert { narrow: true, codec: None, ..to("xcodec_tiny") };
        convert(source.path(), target.path(), &narrow, &mut |_| ()).unwrap();
        let tower = Weights::open(&target.path().join("audio")).unwrap();
        assert!(tower.names().eq(codec.names().take(2)));
        let bundle = SpeechBundle::open(target.path()).unwrap();
        assert!(bundle.manifest.audio_input.is_some() && bundle.codec.is_none());
        let written: Value = read_json(&target.path().join("audio/config.json")).unwrap();
        assert_eq!(written, config[TOWER_CONFIG]);
        let adaptor = open_model(&bundle.model_folder()).unwrap().1;
        assert!(adaptor.names().any(|n| n.starts_with(ADAPTOR)));
    }

    #[test]
    fn nothing_is_written_over_and_nothing_made_of_what_does_not_fit() {
        let source = fixture("speechlm_tiny/opuslm");
        let full = tempfile::tempdir().unwrap();
        fs::write(full.path().join("mine"), "").unwrap();
        let refuse = |source: &Path, target: &Path, to: &Convert| {
            convert(source, target, to, &mut |_| ()).unwrap_err().to_string()
        };
        let text = refuse(&source, full.path(), &to("dac_tiny/espnet"));
        assert!(text.ends_with("is not empty"), "{text}");
        let target = tempfile::tempdir().unwrap();
        let text = refuse(&fixture("llama_tiny"), target.path(), &to("xcodec_tiny"));
        assert!(text.contains("a model of text alone"), "{text}");
        let gone = Convert { tokenizer: None, ..to("dac_tiny/espnet") };
        let text = refuse(&source, target.path(), &gone);
        assert!(text.contains("tokenizer.json"), "{text}");
        assert!(!target.path().join(MANIFEST).exists());
    }
}
