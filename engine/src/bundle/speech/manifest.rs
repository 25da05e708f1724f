//! `dovecote.json` of a speech language model: what it says of itself. Reads it strictly and states every default.
//!
//! ```text
//! {"format": 1, "name": "bagpiper", "family": "speechlm", "kind": "bagpiper", "license": "...",
//!  "model": "model", "tokenizer": "tokenizer.json", "codec": {"kind": "xcodec", "path": "codec"},
//!  "audio_input": {"kind": "qwen3-omni", "path": "audio"}, "tasks": {"speech": 82}, "voices": [..], "sampling": {..}}
//! ```

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

use codecs::streaming;
use codecs::weights::LoadError;

use crate::bundle::manifest::{at_least, check_format, inside};
use crate::bundle::object::Object;
use crate::sampler::Sampling;

/// What the field `family` says.
pub const FAMILY: &str = "speechlm";
const TEMPERATURES: std::ops::RangeInclusive<f32> = 0.0..=10.0;
const MAX_TEXT: usize = 1024;
/// A minute at 50 frames a second.
const MAX_FRAMES: usize = 3000;
const MAX_SECONDS: f32 = 30.0;

/// The models there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Chat in text and sound, eight streams of X-Codec, hears by an audio tower.
    Bagpiper,
    /// Tasks in text and sound, one semantic stream and eight of SEANet.
    OpusLm,
    /// OpusLM for spoken dialogue.
    OpusLmDialogue,
}

impl Kind {
    const ALL: [Self; 3] = [Self::Bagpiper, Self::OpusLm, Self::OpusLmDialogue];

    /// What a manifest calls it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Bagpiper => "bagpiper",
            Self::OpusLm => "opuslm",
            Self::OpusLmDialogue => "opuslm-dialogue",
        }
    }

    /// Leading streams that its codec does not read.
    pub fn silent_streams(self) -> usize {
        match self {
            Self::Bagpiper => 0,
            Self::OpusLm | Self::OpusLmDialogue => 1,
        }
    }

    /// Whether messages alone tell it what to do, so that words can stand beside a recording; the others are told by the
    /// symbol of a task.
    pub fn is_told_in_words(self) -> bool {
        matches!(self, Self::Bagpiper)
    }

    /// The codec that it was published with.
    fn codec(self) -> streaming::Kind {
        match self {
            Self::Bagpiper => streaming::Kind::XCodec,
            Self::OpusLm | Self::OpusLmDialogue => streaming::Kind::Seanet,
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// What a model can be asked to do, by the names that a manifest has for them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Task {
    /// Goes on with a text.
    TextLm,
    /// Writes down what it hears.
    Transcribe,
    /// Speaks a text in the voice of a prompt.
    SpeechWithVoice,
    /// Speaks a text.
    Speech,
    /// Goes on with a sound.
    AudioLm,
    /// Converses in text.
    TextDialogue,
    /// Converses in sound.
    AudioDialogue,
}

impl Task {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::TextLm,
        Self::Transcribe,
        Self::SpeechWithVoice,
        Self::Speech,
        Self::AudioLm,
        Self::TextDialogue,
        Self::AudioDialogue,
    ];

    /// What a manifest calls it.
    pub fn name(self) -> &'static str {
        match self {
            Self::TextLm => "text_lm",
            Self::Transcribe => "transcribe",
            Self::SpeechWithVoice => "speech_with_voice",
            Self::Speech => "speech",
            Self::AudioLm => "audio_lm",
            Self::TextDialogue => "text_dialogue",
            Self::AudioDialogue => "audio_dialogue",
        }
    }
}

/// What a speech language model says of itself, with all defaults filled in.
#[derive(Debug, Clone, PartialEq)]
pub struct SpeechManifest {
    /// Name of the model.
    pub name: String,
    /// Which model it is.
    pub kind: Kind,
    /// Folder of `config.json` and the weights, relative to the bundle. Default: `model`.
    pub model: String,
    /// The tokenizer's file, relative to the bundle. Default: `tokenizer.json`.
    pub tokenizer: String,
    /// What turns codes into sound. Default: none, the model only writes.
    pub codec: Option<CodecEntry>,
    /// What turns sound into something that the model reads. Default: none, it only reads text.
    pub audio_input: Option<AudioInput>,
    /// Symbols of the tasks that it was trained on, for a model that is told its task by a symbol.
    pub tasks: BTreeMap<Task, u32>,
    /// How it chooses when a request says nothing.
    pub sampling: SpeechSampling,
    /// Whether it was trained without its condition, so that guidance means something. Default: Bagpiper was.
    pub null_trained: bool,
    /// Named voices. Default: none.
    pub voices: Vec<VoiceEntry>,
    /// The licence, in a line that is shown wherever the bundle is loaded.
    pub license: String,
    /// What a user should know of the model's limits. Default: nothing.
    pub notes: Vec<String>,
}

/// A codec's place in the bundle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CodecEntry {
    /// Which codec it is. Default: the one that the model was published with.
    pub kind: streaming::Kind,
    /// Folder of `config.json` and the weights. Default: `codec`.
    pub path: String,
}

/// What hears, relative to the bundle.
#[derive(Debug, Clone, PartialEq)]
pub enum AudioInput {
    /// The audio tower of Qwen3-Omni, whose output the model's own adaptor reads.
    Qwen3Omni {
        /// Folder of `config.json` and the weights. Default: `audio`.
        path: String,
        /// Whether a sound is brought to mean 0 and variance 1 first, as it was in training. Default: yes.
        normalize: bool,
        /// Whether a sound that comes in while it is made is heard window by window, each at the level of what came up to
        /// its end; else at its end, as one that was there before. Default: yes.
        live: bool,
        /// Longest sound, in seconds. Default: 30.
        max_seconds: f32,
    },
    /// Codes: those of the codec, and units of speech features for the semantic stream.
    Units {
        /// Folder of the network that makes features.
        features: String,
        /// Which of its layers.
        layer: usize,
        /// File with the units' centres, tensor `centers` `[units, width]`.
        centers: String,
        /// Longest sound, in seconds. Default: 30.
        max_seconds: f32,
    },
}

impl AudioInput {
    /// Longest sound that is heard at once, in seconds.
    pub fn max_seconds(&self) -> f32 {
        match self {
            Self::Qwen3Omni { max_seconds, .. } | Self::Units { max_seconds, .. } => *max_seconds,
        }
    }
}

/// How a model chooses, and how much it says at most.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SpeechSampling {
    /// Text and symbols. Default: temperature 0.6 and top-k 20 (Bagpiper), 0.8 and 30 (OpusLM).
    pub text: Sampling,
    /// Codes of all streams. Default: temperature 0.8, top-k 20 (Bagpiper), 30 (OpusLM).
    pub audio: Sampling,
    /// Weight of the condition; 1 is no guidance, the default.
    pub guidance: f32,
    /// Rows before which a sound cannot end. Default: 1 (Bagpiper), 50 (OpusLM), 3 (its dialogue model).
    pub min_rows: usize,
    /// Tokens of a text at most. Default: 1024.
    pub max_text: usize,
    /// Frames of a sound at most. Default: 3000.
    pub max_frames: usize,
}

/// A named voice, before its codes are read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VoiceEntry {
    /// What requests call it.
    pub name: String,
    /// File of its codes, one row for each stream, relative to the bundle.
    pub prompt: String,
}

impl SpeechManifest {
    /// Reads a manifest.
    ///
    /// # Errors
    /// A field that is missing, unknown, of another type, out of range, or at odds with another.
    pub fn read(file: &Path) -> Result<Self, LoadError> {
        let mut o = Object::read(file)?;
        check_format(&mut o)?;
        match o.need::<String>("family")?.as_str() {
            FAMILY => {}
            other => return Err(o.wrong("family", format!("`{other}` is not `{FAMILY}`"))),
        }
        let kind = kind(&mut o)?;
        let manifest = Self {
            name: o.need("name")?,
            kind,
            model: path(&mut o, "model", Some("model"))?,
            tokenizer: path(&mut o, "tokenizer", Some("tokenizer.json"))?,
            codec: o.optional("codec")?.map(|o| codec(o, kind)).transpose()?,
            audio_input: o.optional("audio_input")?.map(audio_input).transpose()?,
            tasks: tasks(o.inner("tasks")?)?,
            sampling: sampling(o.inner("sampling")?, kind)?,
            null_trained: o.take("null_trained")?.unwrap_or(kind == Kind::Bagpiper),
            voices: voices(&mut o)?,
            license: o.need("license")?,
            notes: o.take("notes")?.unwrap_or_default(),
        };
        if manifest.sampling.guidance != 1.0 && !manifest.null_trained {
            return Err(o.wrong("sampling.cfg", "guidance needs `null_trained`"));
        }
        if kind == Kind::Bagpiper && !manifest.tasks.is_empty() {
            return Err(o.wrong("tasks", "this model is told what to do in words"));
        }
        o.finish()?;
        Ok(manifest)
    }
}

fn kind(o: &mut Object<'_>) -> Result<Kind, LoadError> {
    let name: String = o.need("kind")?;
    Kind::ALL.into_iter().find(|kind| kind.name() == name).ok_or_else(|| {
        let names = Kind::ALL.map(Kind::name).join(", ");
        o.wrong("kind", format!("`{name}` is none of {names}"))
    })
}

/// A path inside the bundle; it must be there where there is no default.
fn path(o: &mut Object<'_>, name: &str, default: Option<&str>) -> Result<String, LoadError> {
    let given: Option<String> = o.take(name)?;
    match given.or_else(|| default.map(str::to_owned)) {
        Some(path) => inside(o, name, path),
        None => Err(o.wrong(name, "missing")),
    }
}

fn codec(mut o: Object<'_>, kind: Kind) -> Result<CodecEntry, LoadError> {
    let name: Option<String> = o.take("kind")?;
    let named =
        name.map(|name| name.parse().map_err(|e: String| o.wrong("kind", e))).transpose()?;
    let entry = CodecEntry {
        kind: named.unwrap_or(kind.codec()),
        path: path(&mut o, "path", Some("codec"))?,
    };
    o.finish()?;
    Ok(entry)
}

fn audio_input(mut o: Object<'_>) -> Result<AudioInput, LoadError> {
    let max_seconds = o.within("max_seconds", MAX_SECONDS, 0.1..=3600.0)?;
    let input = match o.need::<String>("kind")?.as_str() {
        "qwen3-omni" => AudioInput::Qwen3Omni {
            path: path(&mut o, "path", Some("audio"))?,
            normalize: o.take("normalize")?.unwrap_or(true),
            live: o.take("live")?.unwrap_or(true),
            max_seconds,
        },
        "units" => AudioInput::Units {
            features: path(&mut o, "features", None)?,
            layer: o.need("layer")?,
            centers: path(&mut o, "centers", None)?,
            max_seconds,
        },
        other => {
            let reason = format!("`{other}` is neither `qwen3-omni` nor `units`");
            return Err(o.wrong("kind", reason));
        }
    };
    o.finish()?;
    Ok(input)
}

fn tasks(mut o: Object<'_>) -> Result<BTreeMap<Task, u32>, LoadError> {
    let mut tasks = BTreeMap::new();
    for task in Task::ALL {
        if let Some(id) = o.take(task.name())? {
            tasks.insert(task, id);
        }
    }
    o.finish()?;
    Ok(tasks)
}

fn sampling(mut o: Object<'_>, kind: Kind) -> Result<SpeechSampling, LoadError> {
    let (text, audio, min_rows) = match kind {
        Kind::Bagpiper => ((0.6, 20), (0.8, 20), 1),
        Kind::OpusLm => ((0.8, 30), (0.8, 30), 50),
        Kind::OpusLmDialogue => ((0.8, 30), (0.8, 30), 3),
    };
    let mut drawn = |[temperature, top_k]: [&str; 2], default: (f32, usize)| {
        Ok::<_, LoadError>(Sampling {
            temperature: o.within(temperature, default.0, TEMPERATURES)?,
            top_k: o.take(top_k)?.unwrap_or(default.1),
            ..Sampling::GREEDY
        })
    };
    let text = drawn(["text_temperature", "text_top_k"], text)?;
    let audio = drawn(["audio_temperature", "audio_top_k"], audio)?;
    let sampling = SpeechSampling {
        text,
        audio,
        guidance: o.within("cfg", 1.0, 0.0..=10.0)?,
        min_rows: o.take("min_rows")?.unwrap_or(min_rows),
        max_text: at_least(&mut o, "max_text", MAX_TEXT, 1)?,
        max_frames: at_least(&mut o, "max_frames", MAX_FRAMES, 1)?,
    };
    if sampling.min_rows > sampling.max_frames {
        let reason = format!("is {}, more than `max_frames`", sampling.min_rows);
        return Err(o.wrong("min_rows", reason));
    }
    o.finish()?;
    Ok(sampling)
}

fn voices(o: &mut Object<'_>) -> Result<Vec<VoiceEntry>, LoadError> {
    let mut voices: Vec<VoiceEntry> = Vec::new();
    for mut v in o.inner_list("voices")? {
        let name: String = v.need("name")?;
        if name.trim().is_empty() || voices.iter().any(|other| other.name == name) {
            return Err(v.wrong("name", format!("`{name}` is empty or there twice")));
        }
        let prompt = path(&mut v, "prompt", None)?;
        v.finish()?;
        voices.push(VoiceEntry { name, prompt });
    }
    Ok(voices)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn read(value: &Value) -> Result<SpeechManifest, LoadError> {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("dovecote.json");
        std::fs::write(&file, value.to_string()).unwrap();
        SpeechManifest::read(&file)
    }

    fn least(kind: &str) -> Value {
        json!({"format": 1, "name": "m", "family": "speechlm", "kind": kind, "license": "l"})
    }

    #[test]
    fn what_a_manifest_leaves_out_has_the_published_default() {
        let m = read(&least("bagpiper")).unwrap();
        assert_eq!((m.model.as_str(), m.tokenizer.as_str()), ("model", "tokenizer.json"));
        assert!(m.codec.is_none() && m.audio_input.is_none() && m.null_trained);
        assert_eq!((m.sampling.text.temperature, m.sampling.text.top_k), (0.6, 20));
        assert_eq!((m.sampling.audio.temperature, m.sampling.audio.top_k), (0.8, 20));
        assert_eq!((m.sampling.min_rows, m.sampling.guidance), (1, 1.0));
        let m = read(&least("opuslm")).unwrap();
        assert_eq!((m.sampling.audio.top_k, m.sampling.min_rows, m.null_trained), (30, 50, false));
        assert_eq!(read(&least("opuslm-dialogue")).unwrap().sampling.min_rows, 3);
    }

    #[test]
    fn every_field_can_be_said() {
        let mut all = least("opuslm");
        let more = json!({
            "model": "m", "tokenizer": "t/tokenizer.json", "codec": {}, "null_trained": true,
            "audio_input": {"kind": "units", "features": "f", "layer": 18, "centers": "k.safetensors", "max_seconds": 5},
            "tasks": {"speech": 82, "transcribe": 80},
            "sampling": {
                "text_temperature": 0, "text_top_k": 1, "audio_temperature": 1, "audio_top_k": 2, "cfg": 3,
                "min_rows": 4, "max_text": 5, "max_frames": 6,
            },
            "voices": [{"name": "a", "prompt": "a.json"}], "notes": ["n"],
        });
        all.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let m = read(&all).unwrap();
        let codec = CodecEntry { kind: streaming::Kind::Seanet, path: "codec".to_owned() };
        assert_eq!(m.codec, Some(codec));
        assert_eq!(m.tasks, BTreeMap::from([(Task::Transcribe, 80), (Task::Speech, 82)]));
        let SpeechSampling { text, audio, guidance, min_rows, max_text, max_frames } = m.sampling;
        assert_eq!((text.temperature, text.top_k), (0.0, 1));
        assert_eq!((audio.temperature, audio.top_k, guidance), (1.0, 2, 3.0));
        assert_eq!((min_rows, max_text, max_frames), (4, 5, 6));
        let Some(AudioInput::Units { layer: 18, max_seconds: 5.0, .. }) = m.audio_input else {
            panic!("{:?}", m.audio_input)
        };
        assert_eq!(m.voices[0].prompt, "a.json");
        for (said, normalize, live) in
            [(json!({}), true, true), (json!({"normalize": false, "live": false}), false, false)]
        {
            all["audio_input"] = said;
            all["audio_input"]["kind"] = json!("qwen3-omni");
            let path = "audio".into();
            let input = AudioInput::Qwen3Omni { path, normalize, live, max_seconds: 30.0 };
            assert_eq!(read(&all).unwrap().audio_input, Some(input));
        }
    }

    #[test]
    fn faults_name_file_and_field() {
        for (field, value, says) in [
            ("format", json!(2), "field `format`: is 2"),
            ("family", json!("tontaube"), "field `family`: `tontaube` is not `speechlm`"),
            ("kind", json!("bark"), "field `kind`: `bark` is none of bagpiper, opuslm"),
            ("model", json!("../m"), "field `model`: `../m` must be a path inside"),
            ("codec", json!({"kind": "mimi"}), "field `codec.kind`: `mimi` is none of xcodec"),
            ("codec", json!({"folder": "c"}), "field `codec.folder`: unknown field"),
            ("audio_input", json!({"kind": "ears"}), "field `audio_input.kind`: `ears` is neither"),
            ("audio_input", json!({"kind": "units"}), "field `audio_input.features`: missing"),
            (
                "audio_input",
                json!({"kind": "qwen3-omni", "max_seconds": 0}),
                "field `audio_input.max_seconds`: is 0",
            ),
            ("tasks", json!({"speech": 82}), "field `tasks`: this model is told"),
            ("tasks", json!({"sing": 82}), "field `tasks.sing`: unknown field"),
            ("sampling", json!({"cfg": 11}), "field `sampling.cfg`: is 11"),
            ("sampling", json!({"max_text": 0}), "field `sampling.max_text`: is 0"),
            (
                "sampling",
                json!({"min_rows": 9, "max_frames": 8}),
                "field `sampling.min_rows`: is 9, more than",
            ),
            ("null_trained", json!(7), "field `null_trained`: invalid type"),
            ("voices", json!([{"name": "a"}]), "field `voices.0.prompt`: missing"),
            ("stages", json!([]), "field `stages`: unknown field"),
        ] {
            let mut manifest = least("bagpiper");
            manifest[field] = value;
            let text = read(&manifest).unwrap_err().to_string();
            assert!(text.contains("dovecote.json") && text.contains(says), "{text}\n{says}");
        }
        let mut unguided = least("opuslm");
        unguided["sampling"] = json!({"cfg": 2});
        let text = read(&unguided).unwrap_err().to_string();
        assert!(text.contains("guidance needs `null_trained`"), "{text}");
    }
}
