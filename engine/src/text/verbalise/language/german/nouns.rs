//! Genders and cases of German, as far as number words show them.

use super::small;
use crate::text::verbalise::names::Gender;

/// Last parts of nouns whose gender their ending does not tell.
const FEMININE: &[&str] = &[
    "person",
    "frau",
    "nacht",
    "stadt",
    "hand",
    "zahl",
    "nummer",
    "liga",
    "etage",
    "mutter",
    "tochter",
    "schwester",
    "wand",
    "bank",
    "kraft",
    "macht",
    "antwort",
    "arbeit",
    "zeit",
    "tür",
    "uhr",
    "mail",
    "app",
    "firma",
    "fahrt",
    "sicht",
    "schicht",
    "nachricht",
    "amtszeit",
    "hälfte",
    "cola",
    "pizza",
    "butter",
    "million",
    "wahl",
    "bahn",
    "kammer",
    "mannschaft",
    "sms",
    "cd",
    "dvd",
    "option",
    "figur",
    "spur",
    "kultur",
    "dauer",
    "feier",
    "mauer",
    "steuer",
    "leiter",
];
const NEUTER: &[&str] = &[
    "jahr",
    "kind",
    "mal",
    "stück",
    "haus",
    "auto",
    "buch",
    "bier",
    "glas",
    "bild",
    "ei",
    "zimmer",
    "paar",
    "ticket",
    "video",
    "foto",
    "wort",
    "produkt",
    "quartal",
    "hundert",
    "tausend",
    "zehnt",
    "semester",
    "kapitel",
    "spiel",
    "tor",
    "prozent",
    "kilo",
    "pfund",
    "gramm",
    "drittel",
    "viertel",
    "geschoss",
    "gebot",
    "konto",
    "problem",
    "team",
    "angebot",
    "baby",
    "tier",
    "bett",
    "gerät",
    "fenster",
    "feld",
    "ziel",
    "mitglied",
    "date",
    "brot",
    "bad",
    "land",
    "schiff",
    "unternehmen",
    "mädchen",
    "gespräch",
    "treffen",
    "gebäude",
    "büro",
    "paket",
    "hotel",
    "modell",
    "projekt",
    "kilogramm",
    "volk",
    "leben",
    "reich",
    "fahrrad",
    "handy",
    "radio",
    "lied",
    "programm",
    "werk",
    "system",
    "format",
    "finale",
    "ende",
    "auge",
    "interesse",
    "kino",
];
const MASCULINE: &[&str] = &[
    "name",
    "käse",
    "kunde",
    "kollege",
    "junge",
    "hase",
    "löwe",
    "buchstabe",
    "gedanke",
    "affe",
    "neffe",
    "zeuge",
    "experte",
    "schritt",
    "punkt",
    "kasten",
    "kaffee",
    "tee",
    "schnee",
    "see",
];
const FEMININE_ENDINGS: &[&str] = &[
    "ung", "heit", "keit", "schaft", "tion", "sion", "tät", "enz", "anz", "erei", "ik", "erin", "e",
];
const NEUTER_ENDINGS: &[&str] = &["chen", "lein", "ment", "ium", "zentrum", "datum", "nis"];

/// The likely gender of a noun; compounds have that of their last part.
pub(super) fn gender(noun: &str) -> Gender {
    let noun = noun.to_lowercase();
    let ends = |list: &[&str]| list.iter().any(|end| noun.ends_with(end));
    match () {
        () if ends(MASCULINE) => Gender::Masculine,
        () if ends(NEUTER) => Gender::Neuter,
        () if ends(FEMININE) || ends(FEMININE_ENDINGS) => Gender::Feminine,
        () if ends(NEUTER_ENDINGS) => Gender::Neuter,
        () => Gender::Masculine,
    }
}

/// The gender of a word that is a noun, as its capital letter tells.
pub(super) fn of_noun(word: &str) -> Option<Gender> {
    let noun = word.starts_with(char::is_uppercase) && word.chars().count() > 1;
    let small = small::SMALL_WORDS.contains(&word.to_lowercase().as_str());
    (noun && !small).then(|| gender(word))
}

/// Prepositions that want the dative, or mostly have it where a number follows.
const DATIVE: &[&str] = &[
    "in",
    "mit",
    "von",
    "zu",
    "aus",
    "bei",
    "seit",
    "nach",
    "vor",
    "ab",
    "an",
    "auf",
    "unter",
    "zwischen",
    "innerhalb",
];
const ACCUSATIVE: &[&str] = &["für", "um", "ohne", "gegen", "durch", "über", "pro", "je"];

pub(super) fn wants_dative(word: &str) -> bool {
    DATIVE.contains(&word)
}

pub(super) fn wants_accusative(word: &str) -> bool {
    ACCUSATIVE.contains(&word)
}

/// What stands behind the `e` of an ordinal: by the words before it and the gender of its noun. Source: Duden, Die
/// Grammatik, declension of adjectives.
pub(super) fn ordinal_ending(before: &str, earlier: &str, gender: Gender) -> &'static str {
    let strong = match gender {
        Gender::Masculine => "r",
        Gender::Feminine => "",
        Gender::Neuter => "s",
    };
    match before {
        "am" | "im" | "zum" | "vom" | "beim" | "zur" | "dem" | "den" | "des" | "ans" => "n",
        "der" if wants_dative(earlier) || gender == Gender::Feminine => "n",
        "der" | "die" | "das" | "ins" | "aufs" | "fürs" | "übers" => "",
        "dieser" | "jeder" | "jener" if gender == Gender::Masculine => "",
        "diese" | "dieses" | "jede" | "jedes" | "jene" | "jenes" => "",
        word if is_possessive(word, &["em", "en", "er", "es"]) => "n",
        word if is_possessive(word, &["e"]) => "",
        "dieser" | "jeder" | "jener" | "diesem" | "diesen" | "jedem" | "jeden" => "n",
        word if is_possessive(word, &[""]) => strong,
        word if wants_dative(word) => match gender {
            Gender::Feminine => "r",
            _ => "m",
        },
        word if wants_accusative(word) && gender == Gender::Masculine => "n",
        _ => strong,
    }
}

/// ein, kein, mein, and so on, with one of these endings.
fn is_possessive(word: &str, endings: &[&str]) -> bool {
    const STEMS: [&str; 9] = ["ein", "kein", "mein", "dein", "sein", "ihr", "unser", "euer", "eur"];
    endings.iter().any(|end| {
        word.strip_suffix(end).is_some_and(|stem| STEMS.contains(&stem) && word.is_ascii())
    })
}

/// Whether a word is an article or stands for one: a number with a period behind it is an ordinal.
pub(super) fn opens_ordinal(word: &str) -> bool {
    matches!(word, "der" | "die" | "das" | "zur" | "dieser" | "diese" | "dieses" | "diesem")
        || matches!(word, "diesen" | "jeder" | "jede" | "jedes" | "jedem" | "jeden" | "ins")
        || opens_day(word)
        || is_possessive(word, &["", "e", "em", "en", "er", "es"])
}

/// Words with an article in them that a day in digits often follows: a period there is part of it.
pub(super) fn opens_day(word: &str) -> bool {
    matches!(word, "am" | "im" | "zum" | "vom" | "beim" | "dem" | "den" | "des")
}
