//! What vendors' names of voices and models stand for here.

use std::collections::BTreeMap;

use super::{Arc, Catalogue, Foreign, Gateway, Greeting};

/// Voices and models by the names that clients use.
pub(crate) struct Names {
    ours: Arc<Catalogue>,
    voices: BTreeMap<String, String>,
    models: BTreeMap<String, String>,
    settings: Foreign,
}

impl Names {
    pub(super) fn new(greeting: &Greeting<'_>) -> Self {
        Self::of(greeting.config, &greeting.setup.catalogue)
    }

    /// Those of a catalogue.
    pub(crate) fn of(config: &Gateway, ours: &Arc<Catalogue>) -> Self {
        Self {
            ours: ours.clone(),
            voices: config.speech.voices.clone(),
            models: config.speech.models.clone(),
            settings: config.foreign.clone(),
        }
    }

    /// What the table of voices has for a name, as a name to look for.
    pub(super) fn listed(&self, name: Option<&str>) -> Option<String> {
        self.voices.get(name?).cloned()
    }

    /// The voice to ask the session for; none: its default. A name that is not known stays as it is where such names are
    /// to be refused, so that the session refuses it.
    pub(super) fn voice(&self, asked: Option<&str>) -> Option<String> {
        let ours = |name: &str| self.ours.voices.iter().any(|voice| voice.voice_id == name);
        find(asked, ours, &self.voices, self.settings.takes_unknown_voices)
    }

    /// The model, likewise.
    pub(crate) fn model(&self, asked: Option<&str>) -> Option<String> {
        let ours = |name: &str| self.ours.models.iter().any(|model| model.id == name);
        find(asked, ours, &self.models, self.settings.takes_unknown_models)
    }
}

/// Our name for what a client asks for. An empty name is none.
fn find(
    asked: Option<&str>,
    is_ours: impl Fn(&str) -> bool,
    table: &BTreeMap<String, String>,
    takes_unknown: bool,
) -> Option<String> {
    let name = asked.filter(|name| !name.is_empty())?;
    if is_ours(name) {
        return Some(name.to_owned());
    }
    let known = table.get(name).cloned();
    known.or_else(|| (!takes_unknown).then(|| name.to_owned()))
}
