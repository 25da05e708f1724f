//! Reads `dovecote.json` field by field.

use std::ops::RangeInclusive;
use std::path::{Component, Path};
use std::str::FromStr;

use codecs::weights::LoadError;

use super::{
    ACOUSTIC_TOP_P, CodecEntry, MAX_CODES, MIN_CODES, Manifest, PACE, PROMPT_FRAMES, STAGES,
    SamplingDefaults, Silence, TRIES, Trailing, Verbalizer, VoiceEntry,
};
use crate::bundle::object::Object;
use crate::bundle::speech::FAMILY as SPEECH_FAMILY;
use crate::sampler::Sampling;
use crate::text::ids::{IdError, Language};
use crate::text::{CHUNK_CHARS, Conventions, LOOKAHEAD_CHARS};

/// What Qwen3 reads where it is to answer without thinking.
const VERBALIZER_CLOSING: &str = "<think>\n\n</think>\n\n";
const VERBALIZER_TOKENS: usize = 480;
const VERBALIZER_TIMEOUT_MS: u64 = 2000;
/// The one version of the format.
const FORMAT: u32 = 1;

impl Manifest {
    /// Reads a manifest.
    ///
    /// # Errors
    /// A field that is missing, unknown, of another type, out of range, or at odds with another.
    pub fn read(file: &Path) -> Result<Self, LoadError> {
        let mut o = Object::read(file)?;
        check_kind(&mut o)?;
        let languages = names(&mut o, "languages")?;
        let styles = names(&mut o, "styles")?;
        let default_language = one_of(&mut o, "default_language", &languages)?;
        let default_style = one_of(&mut o, "default_style", &styles)?;
        let voices = voices(&mut o, &languages, default_language)?;
        let voice_names: Vec<String> = voices.iter().map(|v| v.name.clone()).collect();
        let mut silence = o.inner("silence")?;
        let forced_first_code = silence.take("forced_first_code")?;
        let trailing = trailing(&mut silence)?;
        let manifest = Self {
            name: o.need("name")?,
            stages: stages(&mut o)?,
            codec: codec(o.inner("codec")?)?,
            sampling: sampling(o.inner("sampling")?)?,
            null_trained: o.take("null_trained")?.unwrap_or(false),
            spoken: spoken(o.inner("spoken")?)?,
            silence: silence_codes(silence)?,
            forced_first_code,
            trailing,
            characters_per_second: pace(&mut o)?,
            output_gain: o.within("output_gain", 1.0, 0.0..=100.0)?,
            prompt_frames: prompt_frames(&mut o)?,
            chunk_characters: at_least(&mut o, "chunk_characters", CHUNK_CHARS, 1)?,
            lookahead_characters: at_least(&mut o, "lookahead_characters", LOOKAHEAD_CHARS, 1)?,
            default_voice: one_of(&mut o, "default_voice", &voice_names)?,
            license: o.need("license")?,
            notes: o.take("notes")?.unwrap_or_default(),
            verbalizer: verbalizer(&mut o)?,
            languages,
            default_language,
            styles,
            default_style,
            voices,
        };
        if manifest.sampling.cfg.is_some() && !manifest.null_trained {
            return Err(o.wrong("sampling.cfg", "guidance needs `null_trained`"));
        }
        o.finish()?;
        Ok(manifest)
    }
}

/// Checks that this program reads the version of the format.
pub(in crate::bundle) fn check_format(o: &mut Object<'_>) -> Result<(), LoadError> {
    match o.need("format")? {
        FORMAT => Ok(()),
        other => {
            let reason = format!("is {other}, this program reads format {FORMAT}");
            Err(o.wrong("format", reason))
        }
    }
}

fn check_kind(o: &mut Object<'_>) -> Result<(), LoadError> {
    check_format(o)?;
    match o.need::<String>("family")?.as_str() {
        "tontaube" => Ok(()),
        SPEECH_FAMILY => {
            let reason = format!("`{SPEECH_FAMILY}` is a speech language model, not a voice");
            Err(o.wrong("family", reason))
        }
        other => {
            let reason = format!("`{other}` is neither `tontaube` nor `{SPEECH_FAMILY}`");
            Err(o.wrong("family", reason))
        }
    }
}

fn stages(o: &mut Object<'_>) -> Result<Vec<String>, LoadError> {
    let default = || (0..STAGES).map(|i| format!("cb{i}")).collect();
    let stages: Vec<String> = o.take("stages")?.unwrap_or_else(default);
    if stages.len() != STAGES {
        return Err(o.wrong("stages", format!("{} folders, must be {STAGES}", stages.len())));
    }
    stages.into_iter().map(|s| inside(o, "stages", s)).collect()
}

fn codec(mut o: Object<'_>) -> Result<CodecEntry, LoadError> {
    let path = |o: &mut Object<'_>, name: &str, default: &str| {
        let path = o.take(name)?.unwrap_or_else(|| default.to_owned());
        inside(o, name, path)
    };
    let entry = match o.need::<String>("kind")?.as_str() {
        "nano" => CodecEntry::Nano { path: path(&mut o, "path", "codec")? },
        "dualcodec+vibevoice" => CodecEntry::DualCodecVibeVoice {
            dualcodec: path(&mut o, "dualcodec", "dualcodec")?,
            vibevoice: path(&mut o, "vibevoice", "vibevoice")?,
            w2v_bert: path(&mut o, "w2v_bert", "w2v-bert-2.0")?,
        },
        other => {
            let reason = format!("`{other}` is neither `nano` nor `dualcodec+vibevoice`");
            return Err(o.wrong("kind", reason));
        }
    };
    o.finish()?;
    Ok(entry)
}

fn sampling(mut o: Object<'_>) -> Result<SamplingDefaults, LoadError> {
    let (temperatures, shares, penalties) = (0.0..=10.0, f32::MIN_POSITIVE..=1.0, -10.0..=10.0);
    let temperature: f32 = o.need("temperature")?;
    let semantic = Sampling {
        temperature: o.within("temperature", temperature, temperatures.clone())?,
        top_p: o.within("top_p", 0.95, shares.clone())?,
        top_k: o.take("top_k")?.unwrap_or(50),
        frequency_penalty: o.within("frequency_penalty", 0.0, penalties.clone())?,
    };
    let acoustic = Sampling {
        temperature: o.within("acoustic_temperature", 0.0, temperatures)?,
        top_p: o.within("acoustic_top_p", ACOUSTIC_TOP_P, shares)?,
        top_k: o.take("acoustic_top_k")?.unwrap_or(0),
        frequency_penalty: 0.0,
    };
    let cfg = o.within("cfg", 1.0, 0.0..=10.0)?;
    let min_codes = at_least(&mut o, "min_codes", MIN_CODES, 0)?;
    let defaults = SamplingDefaults {
        semantic,
        acoustic,
        cfg: (cfg != 1.0).then_some(cfg),
        min_codes,
        max_codes: at_least(&mut o, "max_codes", MAX_CODES, min_codes.max(1))?,
        end_bias: o.within("end_bias", 0.0, -100.0..=100.0)?,
        tries: o.take("tries")?.unwrap_or(TRIES).max(1),
    };
    o.finish()?;
    Ok(defaults)
}

fn spoken(mut o: Object<'_>) -> Result<Conventions, LoadError> {
    let spoken = Conventions {
        initialisms: o.take("initialisms")?.unwrap_or(Conventions::DEFAULT.initialisms),
        acronyms: o.take("acronyms")?.unwrap_or(Conventions::DEFAULT.acronyms),
        number_and: o.take("number_and")?.unwrap_or(Conventions::DEFAULT.number_and),
    };
    o.finish()?;
    Ok(spoken)
}

fn trailing(o: &mut Object<'_>) -> Result<Option<Trailing>, LoadError> {
    let trailing: Option<Trailing> = o.take("trailing")?;
    match &trailing {
        Some(t) if t.codes.len() != STAGES => {
            Err(o.wrong("trailing", format!("{} codes, must be {STAGES}", t.codes.len())))
        }
        _ => Ok(trailing),
    }
}

fn silence_codes(mut o: Object<'_>) -> Result<Silence, LoadError> {
    let biases = -100.0..=100.0;
    let silence = Silence {
        collapse_codes: o.take("collapse_codes")?.unwrap_or_default(),
        collapse_bias: o.within("collapse_bias", 0.0, biases.clone())?,
        retry_bias: o.within("retry_bias", 0.0, biases.clone())?,
        ordinary_codes: o.take("ordinary_codes")?.unwrap_or_default(),
        ordinary_bias: o.within("ordinary_bias", 0.0, biases)?,
    };
    o.finish()?;
    Ok(silence)
}

fn pace(o: &mut Object<'_>) -> Result<RangeInclusive<f32>, LoadError> {
    let (slowest, fastest) = o.take("characters_per_second")?.unwrap_or(PACE);
    if !(slowest > 0.0 && slowest < fastest && fastest.is_finite()) {
        return Err(o.wrong("characters_per_second", "must be two rising numbers above 0"));
    }
    Ok(slowest..=fastest)
}

fn prompt_frames(o: &mut Object<'_>) -> Result<Vec<usize>, LoadError> {
    let frames: Vec<usize> = o.take("prompt_frames")?.unwrap_or_else(|| PROMPT_FRAMES.to_vec());
    if frames.len() != STAGES || frames.iter().any(|&f| f > frames[0]) {
        let reason = format!("must be {STAGES} numbers, none above the first");
        return Err(o.wrong("prompt_frames", reason));
    }
    Ok(frames)
}

fn voices(
    o: &mut Object<'_>,
    languages: &[Language],
    default_language: Language,
) -> Result<Vec<VoiceEntry>, LoadError> {
    let mut voices: Vec<VoiceEntry> = Vec::new();
    for mut v in o.inner_list("voices")? {
        let name: String = v.need("name")?;
        if name.trim().is_empty() || voices.iter().any(|other| other.name == name) {
            return Err(v.wrong("name", format!("`{name}` is empty or there twice")));
        }
        let language: Option<String> = v.take("language")?;
        let language = language.map(|l| parse(&v, "language", &l)).transpose()?;
        let language = language.unwrap_or(default_language);
        if !languages.contains(&language) {
            return Err(v.wrong("language", format!("`{language}` is not among the languages")));
        }
        let prompt: Option<String> = v.take("prompt")?;
        let prompt = prompt.map(|p| inside(&v, "prompt", p)).transpose()?;
        v.finish()?;
        voices.push(VoiceEntry { name, language, prompt });
    }
    if voices.is_empty() {
        voices.push(VoiceEntry::without_prompt(default_language));
    }
    Ok(voices)
}

fn verbalizer(o: &mut Object<'_>) -> Result<Option<Verbalizer>, LoadError> {
    let Some(mut v) = o.optional("verbalizer")? else { return Ok(None) };
    let path = v.need("path")?;
    let verbalizer = Verbalizer {
        path: inside(&v, "path", path)?,
        instruction: v.take("instruction")?.ok_or_else(|| {
            v.wrong(
                "instruction",
                "missing: the text that instructs the model is not in its weights",
            )
        })?,
        closing: v.take("closing")?.unwrap_or_else(|| VERBALIZER_CLOSING.to_owned()),
        context_tokens: at_least(&mut v, "context_tokens", VERBALIZER_TOKENS, 1)?,
        timeout_ms: v.take("timeout_ms")?.unwrap_or(VERBALIZER_TIMEOUT_MS),
    };
    v.finish()?;
    Ok(Some(verbalizer))
}

/// A list of at least one name that the control block knows.
fn names<T: FromStr<Err = IdError>>(o: &mut Object<'_>, field: &str) -> Result<Vec<T>, LoadError> {
    let names: Vec<String> = o.need(field)?;
    if names.is_empty() {
        return Err(o.wrong(field, "must name at least one"));
    }
    names.iter().map(|name| parse(o, field, name)).collect()
}

fn parse<T: FromStr<Err = IdError>>(
    o: &Object<'_>,
    field: &str,
    name: &str,
) -> Result<T, LoadError> {
    name.parse().map_err(|e: IdError| o.wrong(field, e.to_string()))
}

/// A field that picks from a list by name; the first by default.
fn one_of<T: Clone + ToString>(
    o: &mut Object<'_>,
    field: &str,
    list: &[T],
) -> Result<T, LoadError> {
    let Some(name) = o.take::<String>(field)? else { return Ok(list[0].clone()) };
    list.iter().find(|item| item.to_string() == name).cloned().ok_or_else(|| {
        let names: Vec<String> = list.iter().map(T::to_string).collect();
        o.wrong(field, format!("`{name}` is none of {}", names.join(", ")))
    })
}

/// A whole number with a least value, or a default.
pub(in crate::bundle) fn at_least(
    o: &mut Object<'_>,
    field: &str,
    default: usize,
    least: usize,
) -> Result<usize, LoadError> {
    let value = o.take(field)?.unwrap_or(default);
    if value < least {
        return Err(o.wrong(field, format!("is {value}, must be at least {least}")));
    }
    Ok(value)
}

/// A path that cannot leave the bundle.
pub(in crate::bundle) fn inside(
    o: &Object<'_>,
    field: &str,
    path: String,
) -> Result<String, LoadError> {
    let plain = Path::new(&path).components().all(|c| matches!(c, Component::Normal(_)));
    if plain && !path.is_empty() {
        return Ok(path);
    }
    Err(o.wrong(field, format!("`{path}` must be a path inside the bundle")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::ids::Style;
    use crate::text::{Acronyms, Initialisms};
    use serde_json::{Value, json};

    const NANO: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../voices/nano/dovecote.json");

    fn read(value: &Value) -> Result<Manifest, LoadError> {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("dovecote.json");
        std::fs::write(&file, value.to_string()).unwrap();
        Manifest::read(&file)
    }

    fn least() -> Value {
        json!({
            "format": 1, "name": "m", "family": "tontaube", "license": "l",
            "codec": {"kind": "nano"}, "languages": ["english", "german"], "styles": ["agentic"],
            "sampling": {"temperature": 0.7},
        })
    }

    #[test]
    fn nano_says_what_its_file_says() {
        let nano = Manifest::read(Path::new(NANO)).unwrap();
        assert_eq!(nano.sampling.cfg, Some(1.6));
        assert_eq!((nano.sampling.min_codes, nano.sampling.max_codes), (5, 400));
        assert_eq!(nano.sampling.semantic.temperature, 0.5);
        assert_eq!(nano.spoken.initialisms, Initialisms::Spaced);
        assert_eq!(nano.spoken.acronyms, Acronyms::Caps);
        assert_eq!(nano.characters_per_second, 8.0..=28.0);
        assert_eq!((nano.forced_first_code, &nano.trailing), (None, &None));
        assert_eq!((nano.default_voice.as_str(), nano.voices.len()), ("nano", 1));
        assert_eq!(nano.default_style, Style::Conversational);
        assert_eq!(nano.output_gain, 1.5);
        assert!(nano.null_trained && nano.license.starts_with("Apache-2.0"));
    }

    #[test]
    fn what_a_manifest_leaves_out_has_the_stated_default() {
        let m = read(&least()).unwrap();
        let release = Manifest::release();
        assert_eq!(m.stages, release.stages);
        assert_eq!(m.codec, CodecEntry::Nano { path: "codec".to_owned() });
        assert_eq!(m.default_language, Language::English);
        assert_eq!(m.default_voice, "default");
        assert_eq!(m.voices, release.voices);
        assert_eq!(m.silence, Silence::default());
        assert_eq!(m.spoken, release.spoken);
        assert_eq!(m.prompt_frames, release.prompt_frames);
        let expected = SamplingDefaults {
            semantic: Sampling { temperature: 0.7, ..release.sampling.semantic },
            end_bias: 0.0,
            ..release.sampling
        };
        assert_eq!(m.sampling, expected);
    }

    #[test]
    fn every_field_can_be_said() {
        let mut all = least();
        let more = json!({
            "default_language": "german", "default_style": "agentic", "default_voice": "b",
            "codec": {"kind": "dualcodec+vibevoice", "dualcodec": "d", "vibevoice": "v", "w2v_bert": "w"},
            "sampling": {
                "temperature": 0.0, "top_p": 1.0, "top_k": 0, "frequency_penalty": 0.5, "cfg": 2.0,
                "acoustic_temperature": 0.3, "acoustic_top_p": 0.5, "acoustic_top_k": 9,
                "min_codes": 1, "max_codes": 7, "end_bias": -0.8, "tries": 2,
            },
            "null_trained": true,
            "spoken": {"initialisms": "names", "acronyms": "caps", "number_and": true},
            "silence": {
                "forced_first_code": 3, "collapse_codes": [3], "collapse_bias": -0.2, "retry_bias": -0.3,
                "ordinary_codes": [4], "ordinary_bias": -0.1, "trailing": {"codes": [1, 2, 3, 4], "frames": 3},
            },
            "characters_per_second": [5, 6.5], "output_gain": 2, "prompt_frames": [8, 8, 4, 2],
            "chunk_characters": 200, "lookahead_characters": 20, "notes": ["n"],
            "voices": [{"name": "a"}, {"name": "b", "language": "german", "prompt": "voices/b.json"}],
            "verbalizer": {"path": "verbalizer", "instruction": "Write it out.", "closing": "Answer:", "context_tokens": 99, "timeout_ms": 7},
        });
        all.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let m = read(&all).unwrap();
        assert_eq!(m.sampling.cfg, Some(2.0));
        assert_eq!(m.trailing, Some(Trailing { codes: vec![1, 2, 3, 4], frames: 3 }));
        assert_eq!(m.silence.retry_bias, -0.3);
        assert_eq!(m.voices[0].language, Language::German);
        assert_eq!(m.voices[1].prompt.as_deref(), Some("voices/b.json"));
        let verbalizer = m.verbalizer.unwrap();
        assert_eq!(verbalizer.instruction, "Write it out.");
        assert_eq!(verbalizer.closing, "Answer:");
        assert_eq!((verbalizer.context_tokens, verbalizer.timeout_ms), (99, 7));
    }

    /// Each value in place of a field gives an error that says this.
    fn refuses(cases: &[(&str, Value, &str)]) {
        for (field, value, says) in cases {
            let mut manifest = least();
            manifest[field] = value.clone();
            let text = read(&manifest).unwrap_err().to_string();
            let named = text.contains("dovecote.json") && text.contains(says);
            assert!(named, "{text}\nexpected {says}");
        }
    }

    #[test]
    fn faults_at_the_top_name_file_and_field() {
        refuses(&[
            ("format", json!(2), "field `format`: is 2"),
            ("family", json!("speechlm"), "field `family`: `speechlm` is a speech language model"),
            ("family", json!("bark"), "field `family`: `bark` is neither `tontaube` nor"),
            ("name", Value::Null, "field `name`: missing"),
            ("license", json!(7), "field `license`: invalid type"),
            ("licence", json!("x"), "field `licence`: unknown field"),
            ("stages", json!(["cb0"]), "field `stages`: 1 folders"),
            (
                "stages",
                json!(["cb0", "cb1", "cb2", "../x"]),
                "field `stages`: `../x` must be a path inside",
            ),
            ("codec", json!({"kind": "opus"}), "field `codec.kind`: `opus`"),
            (
                "codec",
                json!({"kind": "nano", "dualcodec": "x"}),
                "field `codec.dualcodec`: unknown",
            ),
            ("codec", json!({"kind": "nano", "path": "/etc"}), "field `codec.path`: `/etc`"),
            ("languages", json!([]), "field `languages`: must name at least one"),
            ("styles", json!(["loud"]), "field `styles`: unknown style `loud`"),
            (
                "voices",
                json!([{"name": "a", "language": "dutch"}]),
                "field `voices.0.language`: `dutch` is not",
            ),
            ("default_style", json!("loud"), "field `default_style`: `loud` is none of agentic"),
        ]);
    }

    #[test]
    fn faults_further_in_name_file_and_field() {
        refuses(&[
            ("sampling", json!({}), "field `sampling.temperature`: missing"),
            ("sampling", json!({"temperature": -1}), "field `sampling.temperature`: is -1"),
            ("sampling", json!({"temperature": 1, "topp": 1}), "field `sampling.topp`: unknown"),
            ("sampling", json!({"temperature": 1, "top_p": 0}), "field `sampling.top_p`: is 0"),
            (
                "sampling",
                json!({"temperature": 1, "max_codes": 3}),
                "field `sampling.max_codes`: is 3",
            ),
            ("sampling", json!({"temperature": 1, "cfg": 2}), "field `sampling.cfg`: guidance"),
            ("spoken", json!({"acronyms": "loud"}), "field `spoken.acronyms`: unknown variant"),
            (
                "silence",
                json!({"collapse_codes": [70000]}),
                "field `silence.collapse_codes`: invalid value",
            ),
            (
                "silence",
                json!({"trailing": {"codes": [1], "frames": 3}}),
                "field `silence.trailing`: 1 codes",
            ),
            (
                "silence",
                json!({"trailing": {"code": [1]}}),
                "field `silence.trailing`: unknown field `code`",
            ),
            ("characters_per_second", json!([9, 8]), "field `characters_per_second`: must be"),
            ("prompt_frames", json!([1, 2, 3, 4]), "field `prompt_frames`: must be"),
            ("voices", json!([{"language": "english"}]), "field `voices.0.name`: missing"),
            ("voices", json!([{"name": "a"}, {"name": "a"}]), "field `voices.1.name`: `a`"),
            (
                "voices",
                json!([{"name": "a", "language": "latin"}]),
                "field `voices.0.language`: unknown language `latin`",
            ),
            ("voices", json!([{"name": "a", "promt": "x"}]), "field `voices.0.promt`: unknown"),
            ("default_voice", json!("b"), "field `default_voice`: `b` is none of default"),
            ("verbalizer", json!({"path": "v"}), "field `verbalizer.instruction`: missing"),
            ("verbalizer", json!({"instruction": "i"}), "field `verbalizer.path`: missing"),
            (
                "verbalizer",
                json!({"path": "v", "instruction": "i", "context_tokens": 0}),
                "field `verbalizer.context_tokens`: is 0",
            ),
        ]);
    }
}
