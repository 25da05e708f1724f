//! What vendors' names of voices stand for here.

use super::{Arc, Catalogue, Foreign, Gateway, Greeting};

/// Voices by the names that clients use.
pub(super) struct Voices {
    ours: Arc<Catalogue>,
    table: std::collections::BTreeMap<String, String>,
    settings: Foreign,
}

impl Voices {
    pub(super) fn new(greeting: &Greeting<'_>) -> Self {
        Self::of(greeting.config, &greeting.setup.catalogue)
    }

    /// Those of a catalogue.
    pub(super) fn of(config: &Gateway, ours: &Arc<Catalogue>) -> Self {
        Self {
            ours: ours.clone(),
            table: config.speech.voices.clone(),
            settings: config.foreign.clone(),
        }
    }

    /// What the table has for a name, as a name to look for.
    pub(super) fn listed(&self, name: Option<&str>) -> Option<String> {
        self.table.get(name?).cloned()
    }

    /// The voice to ask the session for; none: its default. A name that is not known stays as it is where such names are
    /// to be refused, so that the session refuses it.
    pub(super) fn find(&self, asked: Option<&str>) -> Option<String> {
        let name = asked?;
        if self.ours.voices.iter().any(|voice| voice.voice_id == name) {
            return Some(name.to_owned());
        }
        let known = self.table.get(name).cloned();
        known.or_else(|| (!self.settings.takes_unknown_voices).then(|| name.to_owned()))
    }
}
