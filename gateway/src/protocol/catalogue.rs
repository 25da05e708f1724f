//! What can be asked for: models and voices, as the wire shows them and as requests are checked against.

use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;

use super::event::ErrorEvent;
use crate::error::Code;
use crate::lexicon::Lexicons;
use engine::bundle::speech::{SpeechBundle, SpeechManifest};
use engine::bundle::{Bundle, Manifest, Opened};
use engine::text::ids::Language;
use engine::text::{Conventions, Lexicon, Locale};

/// Where a voice of a bundle comes from, in ElevenLabs' words.
const PREMADE: &str = "premade";

/// A model.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Model {
    /// Its name.
    pub id: String,
    /// Languages it speaks.
    pub languages: Vec<String>,
    /// Its manners of speaking.
    pub styles: Vec<String>,
    /// What a user should know of its limits.
    pub notes: Vec<String>,
    /// Whether it answers messages; else it speaks what it is given.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub answers: bool,
    /// Voices of a model that answers: they are its own, none of the others.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub voices: Vec<String>,
    /// What it hears, if it does.
    #[serde(skip)]
    pub hears: Option<Hears>,
}

/// What a model hears.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hears {
    /// The longest recording at once.
    pub most: Duration,
    /// Whether words can tell it what to do with one.
    pub is_told_in_words: bool,
}

/// A voice.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Voice {
    /// What it is asked for by.
    pub voice_id: String,
    /// What it is called.
    pub name: String,
    /// The model that speaks with it.
    pub model: String,
    /// Where it comes from: `premade` for those of the bundle, `cloned` for those that were added.
    pub category: &'static str,
    /// Languages it speaks.
    pub languages: Vec<String>,
    /// Its manners of speaking.
    pub styles: Vec<String>,
    /// The key that added it, and alone may use it; none: it is everybody's.
    #[serde(skip)]
    pub owner: Option<String>,
}

impl Voice {
    /// Whether who holds this key may use it.
    pub fn is_for(&self, key: Option<&str>) -> bool {
        self.owner.is_none() || self.owner.as_deref() == key
    }
}

/// All that can be asked for.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Catalogue {
    /// The models.
    pub models: Vec<Model>,
    /// The voices of models that speak a text.
    pub voices: Vec<Voice>,
    /// The voices of models that answer; each is in the list of its model, too.
    pub own_voices: Vec<Voice>,
    /// The voice taken when a request names none.
    pub default_voice: String,
    /// The spoken forms that the model was trained on.
    pub conventions: Conventions,
    /// Words with a form of their own.
    pub lexicons: Arc<Lexicons>,
}

impl Catalogue {
    /// What several bundles have; where two voices have the same name, that of the first bundle is meant.
    pub fn of_all(bundles: &[Opened]) -> Self {
        let mut all = Self::default();
        for bundle in bundles {
            match bundle {
                Opened::Voice(bundle) => all.extend(Self::of(bundle)),
                Opened::Speech(bundle) => all.add_speech(bundle),
            }
        }
        all
    }

    fn add_speech(&mut self, bundle: &SpeechBundle) {
        let SpeechManifest { name, notes, kind, audio_input, .. } = &bundle.manifest;
        self.own_voices.extend(bundle.voices.iter().map(|voice| Voice {
            voice_id: voice.name.clone(),
            name: voice.name.clone(),
            model: name.clone(),
            category: PREMADE,
            languages: Vec::new(),
            styles: Vec::new(),
            owner: None,
        }));
        self.models.push(Model {
            id: name.clone(),
            notes: notes.clone(),
            answers: true,
            hears: audio_input.as_ref().map(|input| Hears {
                most: Duration::from_secs_f32(input.max_seconds()),
                is_told_in_words: kind.is_told_in_words(),
            }),
            voices: bundle.voices.iter().map(|voice| voice.name.clone()).collect(),
            ..Model::default()
        });
    }

    /// All voices, of whichever models.
    pub fn all_voices(&self) -> impl Iterator<Item = &Voice> {
        self.voices.iter().chain(&self.own_voices)
    }

    /// Takes in a voice of one of the models.
    pub(crate) fn add_voice(&mut self, voice: Voice) {
        match self.models.iter_mut().find(|model| model.answers && model.id == voice.model) {
            Some(model) => {
                model.voices.push(voice.voice_id.clone());
                self.own_voices.push(voice);
            }
            None => self.voices.push(voice),
        }
    }

    /// Keeps the voices for which this holds.
    pub(crate) fn retain_voices(&mut self, keep: impl Fn(&Voice) -> bool) {
        for voice in self.own_voices.iter().filter(|voice| !keep(voice)) {
            for model in self.models.iter_mut().filter(|model| model.id == voice.model) {
                model.voices.retain(|id| *id != voice.voice_id);
            }
        }
        self.voices.retain(&keep);
        self.own_voices.retain(&keep);
    }

    fn extend(&mut self, other: Self) {
        if self.voices.is_empty() {
            self.default_voice = other.default_voice;
            self.conventions = other.conventions;
        }
        self.models.extend(other.models);
        for voice in other.voices {
            if self.voices.iter().all(|known| known.voice_id != voice.voice_id) {
                self.voices.push(voice);
            }
        }
    }

    /// What a bundle has.
    pub fn of(bundle: &Bundle) -> Self {
        Self::of_manifest(&bundle.manifest)
    }

    /// What a manifest names.
    pub fn of_manifest(manifest: &Manifest) -> Self {
        let languages: Vec<String> = manifest.languages.iter().map(|l| l.name().into()).collect();
        let styles: Vec<String> = manifest.styles.iter().map(ToString::to_string).collect();
        let voice = |name: &str| Voice {
            voice_id: name.to_owned(),
            name: name.to_owned(),
            model: manifest.name.clone(),
            category: PREMADE,
            languages: languages.clone(),
            styles: styles.clone(),
            owner: None,
        };
        let voices = manifest.voices.iter().map(|v| voice(&v.name)).collect();
        let model = Model {
            id: manifest.name.clone(),
            languages: languages.clone(),
            styles: styles.clone(),
            notes: manifest.notes.clone(),
            ..Model::default()
        };
        Self {
            models: vec![model],
            voices,
            own_voices: Vec::new(),
            default_voice: manifest.default_voice.clone(),
            conventions: manifest.spoken,
            lexicons: Arc::default(),
        }
    }

    /// How text is written for the default voice.
    pub(crate) fn locale(&self) -> Locale {
        let voice = self.voices.iter().find(|v| v.voice_id == self.default_voice);
        let language = voice.and_then(|v| v.languages.first()?.parse::<Language>().ok());
        language.map_or_else(Locale::default, Locale::of)
    }

    /// What who holds this key may ask for.
    pub fn seen_by(self: &Arc<Self>, key: Option<&str>) -> Arc<Self> {
        if self.all_voices().all(|v| v.is_for(key)) {
            return self.clone();
        }
        let mut seen = (**self).clone();
        seen.retain_voices(|v| v.is_for(key));
        Arc::new(seen)
    }

    /// The same for who holds a key with words of its own.
    pub fn with_words(self: Arc<Self>, key: &Lexicon) -> Arc<Self> {
        if key.is_empty() {
            return self;
        }
        let lexicons = Arc::new(self.lexicons.with_key(key));
        Arc::new(Self { lexicons, ..(*self).clone() })
    }

    /// The words of key and voice; without a name, of the default voice.
    pub(crate) fn words(&self, voice: Option<&str>) -> Lexicon {
        self.lexicons.of_voice(voice.unwrap_or(&self.default_voice))
    }

    /// Whether names that a client gives are known; those it leaves out are.
    ///
    /// # Errors
    /// The first that is not, with those that are.
    pub(crate) fn check(&self, asked: &Names<'_>) -> Result<(), Box<ErrorEvent>> {
        let models: Vec<&str> = self.models.iter().map(|m| m.id.as_str()).collect();
        known(Code::UnknownModel, "model", asked.model, &models, |name, m| name == m)?;
        let voices: Vec<&str> = self.voices.iter().map(|v| v.voice_id.as_str()).collect();
        known(Code::UnknownVoice, "voice", asked.voice, &voices, |name, v| name == v)?;
        let languages = all(&self.models, |m| &m.languages);
        known(Code::UnknownLanguage, "language", asked.language, &languages, |name, l| {
            name.parse::<Language>().is_ok_and(|language| language.name() == l)
        })?;
        let styles = all(&self.models, |m| &m.styles);
        known(Code::UnknownStyle, "style", asked.style, &styles, |name, s| {
            name.eq_ignore_ascii_case(s)
        })
    }
}

/// Names that a client gives.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Names<'a> {
    pub(crate) model: Option<&'a str>,
    pub(crate) voice: Option<&'a str>,
    pub(crate) language: Option<&'a str>,
    pub(crate) style: Option<&'a str>,
}

fn all(models: &[Model], names: impl Fn(&Model) -> &Vec<String>) -> Vec<&str> {
    models.iter().flat_map(|m| names(m).iter().map(String::as_str)).collect()
}

fn known(
    code: Code,
    field: &str,
    asked: Option<&str>,
    names: &[&str],
    same: impl Fn(&str, &str) -> bool,
) -> Result<(), Box<ErrorEvent>> {
    let Some(asked) = asked else { return Ok(()) };
    if names.iter().any(|name| same(asked, name)) {
        return Ok(());
    }
    let message = format!("{field} {asked:?} is not one of {}", names.join(", "));
    Err(Box::new(ErrorEvent::new(code, message)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_voice_is_seen_by_its_owner_alone_and_one_without_owner_by_all() {
        let voice = |id: &str, model: &str, owner: Option<&str>| Voice {
            voice_id: id.into(),
            name: id.into(),
            model: model.into(),
            category: "cloned",
            languages: Vec::new(),
            styles: Vec::new(),
            owner: owner.map(str::to_owned),
        };
        let model = |id: &str, answers| Model { id: id.into(), answers, ..Model::default() };
        let models = vec![model("reads", false), model("answers", true)];
        let mut catalogue = Catalogue { models, ..Catalogue::default() };
        for (id, model, owner) in [
            ("all", "reads", None),
            ("a", "reads", Some("key a")),
            ("b", "answers", Some("key b")),
            ("each", "answers", None),
        ] {
            catalogue.add_voice(voice(id, model, owner));
        }
        let catalogue = Arc::new(catalogue);
        let seen = |key| {
            let seen = catalogue.seen_by(key);
            let own = seen.own_voices.iter().map(|v| v.voice_id.clone());
            assert!(own.eq(seen.models[1].voices.iter().cloned()), "both lists are one");
            seen.all_voices().map(|v| v.voice_id.clone()).collect::<Vec<_>>()
        };
        assert_eq!(seen(Some("key a")), ["all", "a", "each"]);
        assert_eq!(seen(Some("key b")), ["all", "b", "each"]);
        assert_eq!(seen(None), ["all", "each"]);
    }
}
