//! The gender of Italian nouns, as far as their form tells it. Only the number one asks for it, and a half.

use crate::text::verbalise::language::romance::{ends, is_noun_like};
use crate::text::verbalise::names::Gender;

/// Words behind a number that it does not count.
const OTHERS: &[&str] = &[
    "di", "del", "dello", "della", "dei", "degli", "delle", "da", "dal", "dalla", "dai", "dalle",
    "all", "dell", "nell", "sull", "dall", "a", "al", "allo", "alla", "ai", "agli", "alle", "in",
    "nel", "nella", "nei", "nelle", "con", "su", "sul", "sulla", "per", "tra", "fra", "il", "lo",
    "la", "gli", "le", "un", "uno", "una", "e", "ed", "o", "od", "ma", "se", "che", "chi", "non",
    "né", "è", "sono", "era", "erano", "fu", "ha", "hanno", "aveva", "c'è", "più", "meno", "come",
    "quando", "dove", "mentre", "però", "perché", "poi", "dopo", "prima", "oggi", "ieri", "domani",
    "quindi", "allora", "anche", "ancora", "già", "mi", "ti", "si", "ci", "vi", "mio", "tuo",
    "suo", "mia", "tua", "sua", "questo", "questa", "questi", "queste", "quello", "quella", "ogni",
    "tutto", "tutta", "tutti", "tutte", "può", "possono", "deve", "devono", "va", "vanno", "costa",
    "costano", "milione", "milioni", "miliardo", "miliardi", "circa", "contro", "durante",
    "secondo", "uguale", "diviso", "versus", "solo", "soltanto", "manca", "mancano", "resta",
    "restano", "grazie", "mila",
];

/// Masculine though they end like feminine nouns.
const MASCULINE: &[&str] = &[
    "problema",
    "sistema",
    "programma",
    "tema",
    "clima",
    "dramma",
    "diagramma",
    "schema",
    "teorema",
    "sintomo",
    "telegramma",
    "pigiama",
    "cinema",
    "pianeta",
    "poeta",
    "collega",
    "panda",
    "gorilla",
    "diploma",
    "enigma",
    "poema",
    "grammo",
    "chilogrammo",
    "papa",
    "sosia",
    "vaglia",
    "trauma",
];

/// Feminine though their ending does not say so.
const FEMININE: &[&str] = &[
    "mano",
    "notte",
    "parte",
    "classe",
    "madre",
    "moglie",
    "foto",
    "moto",
    "radio",
    "auto",
    "legge",
    "luce",
    "chiave",
    "torre",
    "fase",
    "base",
    "frase",
    "serie",
    "specie",
    "superficie",
    "sede",
    "nave",
    "fonte",
    "morte",
    "sorte",
    "gente",
    "carne",
    "voce",
    "croce",
    "pace",
    "pelle",
    "crisi",
    "tesi",
    "dose",
    "rete",
    "neve",
    "arte",
    "fede",
    "fine",
    "fame",
    "sete",
    "febbre",
    "mente",
    "corrente",
    "chiesa",
    "email",
    "mail",
    "app",
    "radice",
    "matrice",
    "attrice",
    "cornice",
    "estate",
    "automobile",
    "canzone",
    "stazione",
    "immagine",
    "pagine",
    "origine",
    "gru",
    "calle",
    "valle",
    "stampante",
    "variante",
    "costante",
    "patente",
    "polvere",
    "cenere",
];

/// Endings of feminine nouns in the singular.
const ENDINGS: &[&str] = &["a", "zione", "sione", "gione", "tà", "tù", "trice", "udine", "igine"];

/// The gender of a word in small letters, unless it is no noun.
pub(super) fn gender(word: &str) -> Option<Gender> {
    if !is_noun_like(word) || OTHERS.contains(&word) {
        return None;
    }
    let feminine = FEMININE.contains(&word) || ends(word, ENDINGS) || is_feminine_plural(word);
    Some(if feminine && !MASCULINE.contains(&word) { Gender::Feminine } else { Gender::Masculine })
}

/// Whether a masculine noun stands in the plural: giorni, but taxi.
pub(super) fn is_plural(word: &str) -> bool {
    const SINGULARS: [&str; 7] = ["taxi", "safari", "kiwi", "brindisi", "alibi", "sci", "wifi"];
    word.ends_with('i') && !SINGULARS.contains(&word)
}

/// tazze, corone, lettere; but mesi, chilometri.
fn is_feminine_plural(word: &str) -> bool {
    ends(word, &["he", "ie", "zioni", "sioni", "zze", "tte", "lle", "ine"])
        || (ends(word, &["one", "ere"]) && !ends(word, &["ione", "iere"]))
}
