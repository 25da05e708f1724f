//! Genders of French nouns, as far as `un` and `une` show them.

use crate::text::verbalise::names::Gender;
use crate::text::verbalise::scan::Scan;
use crate::text::verbalise::speech::Speech;

/// Feminine nouns whose ending does not tell it, without the `s` of the plural.
const FEMININE: &[&str] = &[
    "personne",
    "fille",
    "femme",
    "heure",
    "minute",
    "seconde",
    "semaine",
    "page",
    "place",
    "table",
    "ville",
    "route",
    "rue",
    "ligne",
    "lettre",
    "tasse",
    "carte",
    "pomme",
    "image",
    "photo",
    "vidéo",
    "chose",
    "fois",
    "part",
    "question",
    "nuit",
    "main",
    "mer",
    "mère",
    "sœur",
    "dame",
    "voix",
    "pièce",
    "porte",
    "fenêtre",
    "tête",
    "boîte",
    "pizza",
    "tonne",
    "livre sterling",
    "couronne",
    "roupie",
    "banane",
    "orange",
    "piste",
    "règle",
    "équipe",
    "victoire",
    "défaite",
    "commande",
    "demande",
    "réponse",
    "erreur",
    "valeur",
    "couleur",
    "fleur",
    "goutte",
    "tranche",
    "cuillère",
    "couche",
    "marche",
    "étape",
    "étoile",
    "école",
    "œuvre",
    "offre",
    "copie",
    "vache",
    "poule",
    "entreprise",
    "réunion",
    "voiture",
    "maison",
    "chambre",
    "année",
    "journée",
    "soirée",
    "langue",
    "boule",
    "balle",
    "feuille",
    "bouteille",
    "famille",
    "nouvelle",
    "mille marin",
    "plage",
    "tour",
];
const MASCULINE: &[&str] = &[
    "comité",
    "côté",
    "été",
    "traité",
    "musée",
    "lycée",
    "trophée",
    "parapluie",
    "incendie",
    "génie",
    "silence",
    "magazine",
    "domaine",
    "moine",
    "capitaine",
    "centime",
    "litre",
    "mètre",
    "gramme",
    "euro",
    "dollar",
    "squelette",
];
const FEMININE_ENDINGS: &[&str] = &[
    "tion", "sion", "té", "ée", "ette", "ance", "ence", "ure", "ie", "aison", "ade", "esse",
    "euse", "trice", "elle", "enne", "ine", "ille", "aine", "ique", "ude", "ère",
];

/// The gender of a noun that is likely feminine; others keep the form of the number alone.
pub(super) fn gender(noun: &str) -> Option<Gender> {
    let noun = noun.to_lowercase();
    let one = noun.strip_suffix('s').unwrap_or(&noun);
    let is = |list: &[&str]| list.contains(&noun.as_str()) || list.contains(&one);
    let long = one.chars().count() > 3;
    let feminine = is(FEMININE) || (long && FEMININE_ENDINGS.iter().any(|end| one.ends_with(end)));
    (feminine && !is(MASCULINE)).then_some(Gender::Feminine)
}

/// une page, vingt-et-une pages: numbers that end in one agree with their noun.
pub(super) fn before(speech: &Speech, n: u64, behind: Scan<'_>) -> Option<String> {
    // Others have one form; a voice need not wait for the noun.
    if n % 10 != 1 || matches!(n % 100, 11 | 71 | 91) {
        return None;
    }
    speech.noun(behind).map(|gender| speech.cardinal(n, gender))
}
