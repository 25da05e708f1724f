//! A published checkpoint made into a bundle: the tensors that are read, as safetensors, each part in a folder of its own.
//!
//! ```text
//! SRC/ config.json, weights [, tokenizer.json]       DST/ dovecote.json tokenizer.json
//!                                               ->        model/   what the model reads
//! CODEC/ config.json or .yaml, weights                    codec/
//!                                                         audio/   the tower that hears, where the checkpoint has one
//! ```

use std::fs;
use std::path::{Path, PathBuf};

use codecs::streaming;
use codecs::weights::{
    FILE_BYTES, LoadError, Outgoing, SaveError, SaveOptions, Weights, read_json, read_text, save,
    size,
};
use serde_json::{Map, Value, json};

use super::{FAMILY, Kind, SpeechBundle, Task, kind_of};
use crate::bundle::{MANIFEST, TOKENIZER};
use crate::models::speech::{Audit, open_model};

/// Reads what the tower makes of sound; it stays with the model.
pub(super) const ADAPTOR: &str = "adaptor.";
/// Where a Bagpiper checkpoint has its tower, and its configuration has the tower's.
pub(super) const TOWER: &str = "multimodal_io_dict.continuous_audio.model.audio_tower.";
const TOWER_CONFIG: &str = "audio_config";
const CONFIG: &str = "config.json";
/// What ESPnet calls its configurations.
const YAML: [&str; 2] = ["config.yaml", "config.yml"];
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

/// How far the writing is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Copied {
    /// Bytes of tensors that were written.
    pub bytes: usize,
    /// Bytes that all of them have.
    pub total: usize,
}

/// Converts the checkpoint in `source`; `copied` hears of each tensor as it is written. What was written when it fails stays, without
/// a manifest: no bundle.
///
/// # Errors
/// See [`ConvertError`].
pub fn convert(
    source: &Path,
    target: &Path,
    to: &Convert,
    copied: &mut dyn FnMut(Copied),
) -> Result<Converted, ConvertError> {
    let (config, weights) = open_model(source)?;
    let file = source.join(CONFIG);
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
    let all: Vec<String> = weights.names().map(str::to_owned).collect();
    let own = |name: &&String| audit.needed.contains(name) || name.starts_with(ADAPTOR);
    let own = all.iter().filter(own);
    let mut parts = vec![Part::new(target.join("model"), &weights, own, "", options)];
    let tower = tower_of(source, &weights)?;
    if tower.is_some() {
        let own = all.iter().filter(|name| name.starts_with(TOWER));
        parts.push(Part::new(target.join("audio"), &weights, own, TOWER, options));
    }
    let codec = to.codec.as_ref().map(|(folder, _)| open_codec(folder)).transpose()?;
    if let Some((weights, _)) = &codec {
        let names: Vec<String> = weights.names().map(str::to_owned).collect();
        // It is a small part, and every sample is as exact as its tensors are.
        let options = SaveOptions { narrow: false, ..options };
        parts.push(Part::new(target.join("codec"), weights, names.iter(), "", options));
    }
    let bytes = write_parts(&parts, copied)?;
    copy(&file, &target.join("model").join(CONFIG))?;
    if let Some(tower) = &tower {
        write(&target.join("audio").join(CONFIG), tower)?;
    }
    if let Some((_, config)) = &codec {
        write(&target.join("codec").join(CONFIG), config)?;
    }
    let tokenizer = to.tokenizer.clone().unwrap_or_else(|| source.join(TOKENIZER));
    copy(&tokenizer, &target.join(TOKENIZER))?;
    let manifest = manifest(kind, to, &said, tower.is_some());
    write(&target.join(MANIFEST), &manifest)?;
    SpeechBundle::open(target)?;
    let left = |(group, _): &(String, usize)| {
        let moved = tower.is_some() && TOWER.starts_with(group.as_str());
        !(moved || group.starts_with(ADAPTOR))
    };
    let left_out = audit.unused_groups().into_iter().filter(left).collect();
    Ok(Converted { kind, bytes, left_out })
}

/// The configuration of the tower that a checkpoint hears with, if it has one.
pub(super) fn tower_of(source: &Path, weights: &Weights) -> Result<Option<Value>, LoadError> {
    let mut said: Map<String, Value> = read_json(&source.join(CONFIG))?;
    Ok(said.remove(TOWER_CONFIG).filter(|_| weights.names().any(|n| n.starts_with(TOWER))))
}

/// The codec's tensors and its configuration, which may be one of ESPnet's in YAML.
fn open_codec(folder: &Path) -> Result<(Weights, Value), LoadError> {
    let weights = Weights::open(&crate::models::speech::weight_file(folder)?)?;
    let file = folder.join(CONFIG);
    let yaml = YAML.map(|name| folder.join(name)).into_iter().find(|file| file.is_file());
    let Some(yaml) = yaml.filter(|_| !file.is_file()) else {
        return Ok((weights, read_json(&file)?));
    };
    let said: Map<String, Value> = serde_saphyr::from_str(&read_text(&yaml)?)
        .map_err(|e| LoadError::malformed(&yaml, e.to_string()))?;
    // All else in it is of training.
    let own = said.into_iter().filter(|(name, _)| name == "codec" || name == "codec_conf");
    Ok((weights, Value::Object(own.collect())))
}

/// Tensors that become files of a folder.
struct Part<'a> {
    folder: PathBuf,
    tensors: Vec<Outgoing<'a>>,
    options: SaveOptions,
}

impl<'a> Part<'a> {
    /// Tensors without the beginning `prefix` of their names.
    fn new<'n>(
        folder: PathBuf,
        weights: &'a Weights,
        names: impl Iterator<Item = &'n String>,
        prefix: &str,
        options: SaveOptions,
    ) -> Self {
        let out = |name: &String| Outgoing {
            name: name.strip_prefix(prefix).unwrap_or(name).to_owned(),
            weights,
            from: name.clone(),
        };
        Self { folder, tensors: names.map(out).collect(), options }
    }
}

/// Writes all of them. Returns how many bytes they have.
fn write_parts(parts: &[Part<'_>], copied: &mut dyn FnMut(Copied)) -> Result<usize, ConvertError> {
    let (mut bytes, mut total) = (0, 0);
    for part in parts {
        total += size(&part.tensors, part.options)?;
    }
    for part in parts {
        make_folder(&part.folder)?;
        let mut written = |more| {
            bytes += more;
            copied(Copied { bytes, total });
        };
        save(&part.folder, &part.tensors, part.options, &mut written)?;
    }
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
            let mut heard = Vec::new();
            let done = convert(&source, target.path(), &to(codec), &mut |c| heard.push(c)).unwrap();
            let last = heard.last().unwrap();
            assert_eq!((done.kind.name(), done.left_out), (model, left));
            assert_eq!((last.bytes, last.total), (done.bytes, done.bytes));
            // Each tensor is heard of, and the whole is known from the first on.
            assert!(heard.len() > 20 && heard.iter().all(|c| c.total == done.bytes));
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
    fn a_codec_of_espnet_comes_with_its_configuration_in_yaml() {
        let (source, codec) = (fixture("speechlm_tiny/opuslm"), tempfile::tempdir().unwrap());
        let target = tempfile::tempdir().unwrap();
        let weights = fixture("dac_tiny/espnet/model.safetensors");
        fs::copy(weights, codec.path().join("model.safetensors")).unwrap();
        let json: Value = read_json(&fixture("dac_tiny/espnet/config.json")).unwrap();
        let generator = json["codec_conf"]["generator_params"].as_object().unwrap();
        // Block style, as ESPnet writes it, among what is of training.
        let mut yaml =
            "optim: adamw\ncodec: dac\ncodec_conf:\n    sampling_rate: 16000\n".to_owned();
        yaml += "    generator_params:\n";
        for (name, value) in generator {
            match value {
                Value::Array(items) => {
                    yaml += &format!("        {name}:\n");
                    items.iter().for_each(|item| yaml += &format!("        - {item}\n"));
                }
                Value::String(text) => yaml += &format!("        {name}: {text}\n"),
                value => yaml += &format!("        {name}: {value}\n"),
            }
        }
        yaml += "token_list:\n- <pad>\n- <unk>\nversion: '202511'\n";
        fs::write(codec.path().join("config.yaml"), yaml).unwrap();
        let to = Convert { codec: Some((codec.path().to_owned(), None)), ..to("none") };
        convert(&source, target.path(), &to, &mut |_| ()).unwrap();
        let written: Value = read_json(&target.path().join("codec/config.json")).unwrap();
        assert_eq!(written, json);

        fs::write(codec.path().join("config.yaml"), "codec: [dac").unwrap();
        let again = tempfile::tempdir().unwrap();
        let text = convert(&source, again.path(), &to, &mut |_| ()).unwrap_err().to_string();
        assert!(text.contains("config.yaml"), "{text}");
        assert!(!again.path().join(MANIFEST).exists());
    }

    #[test]
    fn a_checkpoint_with_broken_numbers_becomes_no_bundle() {
        let (source, target) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let fixture = fixture("speechlm_tiny/opuslm");
        fs::copy(fixture.join("config.json"), source.path().join("config.json")).unwrap();
        let mut bytes = fs::read(fixture.join("model.safetensors")).unwrap();
        let end = 8 + u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
        let header: Value = serde_json::from_slice(&bytes[8..end]).unwrap();
        let name = "corelm.lm_head.weight";
        let start = end + header[name]["data_offsets"][0].as_u64().unwrap() as usize;
        let wide = if header[name]["dtype"] == "F32" { 4 } else { 2 };
        // The third number, all bits of it: not a number in any width.
        bytes[start + 2 * wide..start + 3 * wide].fill(0xff);
        fs::write(source.path().join("model.safetensors"), bytes).unwrap();
        let text = convert(source.path(), target.path(), &to("dac_tiny/espnet"), &mut |_| ())
            .unwrap_err()
            .to_string();
        assert!(text.contains(name) && text.contains("value 2 is not a finite number"), "{text}");
        assert!(!target.path().join(MANIFEST).exists());
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
