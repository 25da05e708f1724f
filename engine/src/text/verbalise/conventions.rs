//! How a model wants text to be written that is not read letter by letter as it stands.

use serde::Deserialize;

/// The spoken forms that a model was trained on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Conventions {
    /// Letters spoken one by one. Default: `caps`.
    pub initialisms: Initialisms,
    /// Letters spoken as a word. Default: `capitalised`.
    pub acronyms: Acronyms,
    /// Whether numbers have an "and" before the tens. Default: no.
    pub number_and: bool,
}

/// F.B.I. for a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Initialisms {
    /// FBI
    Caps,
    /// F B I
    Spaced,
    /// eff bee eye
    Names,
}

/// NASA for a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Acronyms {
    /// Nasa
    Capitalised,
    /// NASA
    Caps,
}

impl Conventions {
    /// What holds where a bundle says nothing: the forms of the public release.
    pub const DEFAULT: Self =
        Self { initialisms: Initialisms::Caps, acronyms: Acronyms::Capitalised, number_and: false };
}

impl Default for Conventions {
    fn default() -> Self {
        Self::DEFAULT
    }
}
