//! The models that an engine runs, as requests are checked against them: found by name, or by what they can do.

use std::sync::Arc;

use crate::Error;
use crate::answer::{self, Speaker};
use crate::load::Lane;
use crate::request::{Request, Resolver};
use crate::stats::Part;
use crate::voices::{NewVoice, VoiceError};

/// The models.
#[derive(Default)]
pub(crate) struct Models {
    /// Those that speak a text.
    pub(crate) voices: Vec<Resolver>,
    /// Those that answer.
    pub(crate) speakers: Vec<Arc<Speaker>>,
    /// What the engine's stages are parts of.
    pub(crate) parts: Vec<Part>,
}

/// A model that voices can be given to.
pub(crate) enum Taker<'m> {
    Voice(&'m Resolver),
    Speaker(&'m Speaker),
}

impl Taker<'_> {
    pub(crate) fn name(&self) -> &str {
        match self {
            Self::Voice(resolver) => &resolver.manifest.name,
            Self::Speaker(speaker) => speaker.name(),
        }
    }

    /// # Errors
    /// What is wrong with the rows, in a sentence.
    pub(crate) fn new_voice(&self, rows: Vec<Vec<u16>>) -> Result<NewVoice, String> {
        match self {
            Self::Voice(resolver) => resolver.new_voice(rows),
            Self::Speaker(speaker) => speaker.new_voice(rows),
        }
    }
}

impl Models {
    /// The model of that name that speaks a text; without one, the first that has the voice, else the first.
    pub(crate) fn voice(
        &self,
        name: Option<&str>,
        voice: Option<&str>,
    ) -> Result<&Resolver, Error> {
        let having = |voice: &str| self.voices.iter().find(|model| model.voices.has(voice));
        if let (None, Some(model)) = (name, voice.and_then(having)) {
            return Ok(model);
        }
        pick(&self.voices, |voice| &voice.manifest.name, name, "models that speak a text")
    }

    /// How the models make sound when a request says nothing of it.
    pub(crate) fn lanes(&self) -> impl Iterator<Item = Lane> {
        let voice = |resolver: &Resolver| resolver.lane(&Request::whole(""));
        let speakers = self.speakers.iter().map(|s| s.lane(&answer::Request::new("", &[])));
        self.voices.iter().map(voice).chain(speakers)
    }

    /// The models that voices can be given to, those that speak a text first.
    pub(crate) fn takers(&self) -> impl Iterator<Item = Taker<'_>> {
        let speakers = self.speakers.iter().filter(|speaker| speaker.voice_frames().is_some());
        self.voices.iter().map(Taker::Voice).chain(speakers.map(|s| Taker::Speaker(s)))
    }

    pub(crate) fn taker(&self, model: &str) -> Result<Taker<'_>, VoiceError> {
        self.takers().find(|taker| taker.name() == model).ok_or_else(|| VoiceError::Model {
            model: model.to_owned(),
            known: self.takers().map(|taker| taker.name().to_owned()).collect(),
        })
    }

    pub(crate) fn speaker(&self, name: Option<&str>) -> Result<&Arc<Speaker>, Error> {
        pick(&self.speakers, |speaker| speaker.name(), name, "models that answer")
    }
}

/// The model of that name, or the first one.
fn pick<'m, M>(
    models: &'m [M],
    named: impl Fn(&M) -> &str,
    name: Option<&str>,
    what: &str,
) -> Result<&'m M, Error> {
    let found = match name {
        Some(name) => models.iter().find(|model| named(model) == name),
        None => models.first(),
    };
    found.ok_or_else(|| {
        let names: Vec<&str> = models.iter().map(named).collect();
        let allowed = match names.is_empty() {
            true => format!("there are no {what}"),
            false => format!("{what}: {}", names.join(", ")),
        };
        Error::option("model", name.unwrap_or_default(), allowed)
    })
}
