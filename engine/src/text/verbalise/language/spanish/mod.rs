//! Spanish. Forms after the Real Academia Española (Diccionario panhispánico de dudas, Ortografía 2010) and Fundéu;
//! where Spain and America differ, by the locale.

mod money;
mod nouns;
mod tables;
mod words;

use super::other::BARE;
use super::{Currency, Date, Half, Language, Part, Time, romance};
use crate::text::verbalise::classes::{Reading, clock, word};
use crate::text::verbalise::names::Gender;
use crate::text::verbalise::number::Number;
use crate::text::verbalise::scan::Scan;
use crate::text::verbalise::speech::Speech;

/// Number rules of its own, read behind those of CLDR: hundreds of thousands agree (doscientas mil personas), ordinals
/// from eleven on are undécimo, duodécimo.
pub(super) const RULES: &str =
    concat!(include_str!("../../data/es.rbnf"), include_str!("rules.rbnf"));

/// An ordinal before a masculine noun: primer, tercer.
const SHORT_ORDINAL: &str = "spellout-ordinal-masculine-adjective";

pub(super) const SPANISH: Language = Language {
    counting: "spellout-numbering",
    counting_and: "spellout-numbering",
    cardinals: ["spellout-cardinal-masculine", "spoken-feminine", "spellout-cardinal-masculine"],
    ordinals: ["spoken-ordinal-masculine", "spoken-ordinal-feminine", "spoken-ordinal-masculine"],
    year: "spellout-numbering-year",
    is_one: |number| number.is(1),
    ordinal_endings: &[
        (".º", Gender::Masculine),
        ("º", Gender::Masculine),
        (".ª", Gender::Feminine),
        ("ª", Gender::Feminine),
        (".o", Gender::Masculine),
        (".a", Gender::Feminine),
        ("ero", Gender::Masculine),
        ("era", Gender::Feminine),
        ("ro", Gender::Masculine),
        ("ra", Gender::Feminine),
        ("do", Gender::Masculine),
        ("da", Gender::Feminine),
        ("to", Gender::Masculine),
        ("ta", Gender::Feminine),
        ("mo", Gender::Masculine),
        ("ma", Gender::Feminine),
        ("vo", Gender::Masculine),
        ("va", Gender::Feminine),
        ("no", Gender::Masculine),
        ("na", Gender::Feminine),
    ],
    noun: nouns::gender,
    words: words::WORDS,
    signs: words::SIGNS,
    letters: [
        "a",
        "be",
        "ce",
        "de",
        "e",
        "efe",
        "ge",
        "hache",
        "i",
        "jota",
        "ka",
        "ele",
        "eme",
        "ene",
        "o",
        "pe",
        "cu",
        "erre",
        "ese",
        "te",
        "u",
        "uve",
        "uve doble",
        "equis",
        "i griega",
        "zeta",
    ],
    magnitudes: money::MAGNITUDES,
    currencies: money::CURRENCIES,
    units: tables::UNITS,
    abbreviations: tables::ABBREVIATIONS,
    initialisms: tables::INITIALISMS,
    acronyms: tables::ACRONYMS,
    year_openers: &[],
    count_openers: &[],
    day_openers: words::DAY_OPENERS,
    ratio_openers: words::RATIO_OPENERS,
    digit_openers: words::DIGIT_OPENERS,
    decade_openers: &["los", "las", "años"],
    short_calls: &[],
    pair_openers: &[],
    streets: &[],
    slash_words: &["y", "él", "ella", "los", "las", "el", "la", "o", "sí", "todos", "todas"],
    articles: &[],
    small_words: words::SMALL_WORDS,
    loud_words: words::LOUD_WORDS,
    numbered: words::NUMBERED,
    rulers: words::RULERS,
    per: words::PER,
    of: "de",
    small_months: true,
    capital_nouns: false,
    dotted_days: false,
    bare_percent: true,
    hour_signs: &["horas", "hrs", "hs", "h"],
    telephones: &[&[3, 3, 3], &[3, 2, 2, 2], &[2, 3, 2, 2], &[2, 4, 4], &[4, 4]],
    fine_fractions: true,
    code_openers: &["código", "contraseña", "pin", "matrícula", "serie", "localizador"],
    number_endings: &[
        ("termina", "en"),
        ("terminada", "en"),
        ("terminado", "en"),
        ("acaba", "en"),
        ("acabada", "en"),
    ],
    ordered,
    day_last: false,
    halves: true,
    decades: Some(str::to_owned),
    regnal,
    plural: |letters| letters.to_owned(),
    mixed: |whole, part, (above, below)| {
        let part = if (above, below) == (1, 2) { "medio" } else { part };
        format!("{whole} y {part}")
    },
    group,
    date,
    time,
    fraction,
    part_of,
    before_noun: |speech, n, behind| {
        romance::before_noun(speech, n, behind, [|noun| noun.ends_with('s'), nouns::is_plural])
    },
    decimals: |speech, digits| {
        romance::two_pairs(speech, digits).unwrap_or_else(|| romance::decimals(speech, digits))
    },
    cents: |whole, noun, part, cents| format!("{whole} {noun} con {part} {cents}"),
    watched: &["siglo", "año"],
    readings: &[
        small_numeral,
        |scan, speech| clock::pointed(scan, speech, &["las"], false),
        short_ordinal,
        |scan, _| romance::kilometre(scan, "kilómetro"),
        |scan, speech| romance::labelled(scan, speech, words::LABELS),
        romance::number_sign,
        romance::multiplied,
    ],
    is_counted: |behind| romance::is_counted(behind, nouns::gender),
    ..BARE
};

/// Spanish where `$` is the sign of the peso.
pub(super) const WITH_PESOS: Language = Language { currencies: &PESOS_FIRST, ..SPANISH };

const PESOS_FIRST: [Currency; 1 + money::CURRENCIES.len()] = {
    let mut all = [money::PESO; 1 + money::CURRENCIES.len()];
    let mut i = 0;
    while i < money::CURRENCIES.len() {
        all[i + 1] = money::CURRENCIES[i];
        i += 1;
    }
    all
};

/// 1.er, 3er, 3.º piso: before a masculine noun.
fn short_ordinal<'a>(mut scan: Scan<'a>, speech: &Speech) -> Option<Reading<'a>> {
    let number = Number::read(&mut scan, speech.data.locale.marks())?;
    let n = number.value().filter(|n| number.fraction.is_empty() && (1..10_000).contains(n))?;
    scan.eat('.');
    let short = scan.eat_str("er", true) || scan.eat_str("ᵉʳ", false);
    let before_noun = |scan| speech.noun(scan) == Some(Gender::Masculine);
    let ended = short || (scan.eat('º') && before_noun(scan));
    (ended && scan.at_word_end()).then(|| (scan, speech.by(SHORT_ORDINAL, n)))
}

/// siglo xix, año mcmxc: a Roman numeral in small letters, where nothing else can stand.
fn small_numeral<'a>(mut scan: Scan<'a>, speech: &Speech) -> Option<Reading<'a>> {
    let noun: String = scan.letters().iter().collect();
    // "año mi" and the like
    let least = match noun.to_lowercase().as_str() {
        "siglo" => 1,
        "año" => 3,
        _ => return None,
    };
    if !scan.blank() {
        return None;
    }
    let letters = scan.eat_while(usize::MAX, |c| "ivxlcdm".contains(c));
    let capitals: Vec<char> = letters.iter().map(char::to_ascii_uppercase).collect();
    let n =
        word::roman_value(&capitals).filter(|_| letters.len() >= least && scan.at_word_end())?;
    Some((scan, format!("{noun} {}", speech.count(n))))
}

/// Two digits of a telephone number are a number; three and more are told one by one.
fn group(speech: &Speech, digits: &str) -> String {
    match digits.parse() {
        Ok(n) if digits.len() == 2 && !digits.starts_with('0') => speech.count(n),
        _ => speech.digits(digits),
    }
}

/// XX aniversario, III Congreso.
fn ordered(speech: &Speech, n: u64, noun: &str) -> Option<String> {
    let &(_, gender) = words::ORDERED.iter().find(|(known, _)| *known == noun)?;
    Some(match gender {
        Gender::Masculine => speech.by(SHORT_ORDINAL, n),
        _ => speech.ordinal(n, gender),
    })
}

/// Felipe sexto, Isabel segunda; above ten Alfonso trece.
fn regnal(speech: &Speech, n: u64, name: &str) -> String {
    if n > 10 {
        return speech.count(n);
    }
    let woman = name.ends_with('a') || name == "isabel";
    speech.ordinal(n, if woman { Gender::Feminine } else { Gender::Masculine })
}

/// uno de mayo de dos mil veintiséis; in America, and where an ordinal is written, primero de mayo.
fn date(speech: &Speech, date: &Date, _: &str) -> String {
    let month = speech.names().month(date.month);
    let mut parts = Vec::new();
    if let Some(day) = date.weekday {
        parts.push(format!("{},", speech.names().day(day)));
    }
    let spain = speech.data.locale.tag() == "es-ES";
    match date.day {
        None => parts.push(month.to_owned()),
        Some(1) if date.ordinal || !spain => parts.push(format!("primero de {month}")),
        Some(day) => parts.push(format!("{} de {month}", speech.count(day.into()))),
    }
    if let Some(year) = date.year {
        let of = if date.definite { "del" } else { "de" };
        parts.push(format!("{of} {}", speech.year(year.into())));
    }
    parts.join(" ")
}

/// ocho y media, quince y cuarenta y cinco, quince horas y cuarenta y cinco minutos; una de la tarde.
fn time(speech: &Speech, time: &Time) -> String {
    let hours = speech.cardinal(time.hour.into(), Gender::Feminine);
    let counted = |n: u32, one: &str, other: &str| {
        let noun = if n == 1 { one } else { other };
        format!("{} {noun}", speech.cardinal(n.into(), Gender::Masculine))
    };
    let minutes = counted(time.minute, "minuto", "minutos");
    let hour_noun = if time.hour == 1 { "hora" } else { "horas" };
    let out = match (time.minute, time.second) {
        (_, Some(second)) => {
            let seconds = counted(second, "segundo", "segundos");
            format!("{hours} {hour_noun}, {minutes} y {seconds}")
        }
        (0, None) if time.named => format!("{hours} {hour_noun}"),
        (0, None) => hours,
        (_, None) if time.lasting => format!("{hours} {hour_noun} y {minutes}"),
        (15, None) if (1..=12).contains(&time.hour) => format!("{hours} y cuarto"),
        (30, None) if (1..=12).contains(&time.hour) => format!("{hours} y media"),
        (minute, None) => format!("{hours} y {}", speech.count(minute.into())),
    };
    match (time.half, time.hour) {
        (None, _) => out,
        (Some(Half::Am), 12) => format!("{out} de la noche"),
        (Some(Half::Am), _) => format!("{out} de la mañana"),
        (Some(Half::Pm), 12) => format!("{out} del mediodía"),
        (Some(Half::Pm), 8..=11) => format!("{out} de la noche"),
        (Some(Half::Pm), _) => format!("{out} de la tarde"),
    }
}

/// un medio, dos tercios, tres cuartos, cinco doceavos.
fn fraction(speech: &Speech, above: u64, below: u64) -> Option<String> {
    let name = match below {
        0 | 1 => return None,
        2 => "medio".to_owned(),
        3 => "tercio".to_owned(),
        4..=10 | 1_000 => speech.ordinal(below, Gender::Masculine),
        100..=900 if below.is_multiple_of(100) => speech.ordinal(below, Gender::Masculine),
        // "un cienmilésimo", "un millonésimo"
        _ if below.is_multiple_of(1_000) => {
            let name = speech.ordinal(below, Gender::Masculine);
            name.strip_prefix("un ").unwrap_or(&name).replace(' ', "")
        }
        _ => {
            let joined = speech.count(below).replace(" y ", "i").replace(' ', "");
            let plain: String = joined.chars().map(without_accent).collect();
            format!("{}avo", plain.strip_suffix(['o', 'a']).unwrap_or(&plain))
        }
    };
    let plural = if above == 1 { "" } else { "s" };
    Some(format!("{} {name}{plural}", speech.cardinal(above, Gender::Masculine)))
}

fn without_accent(c: char) -> char {
    match c {
        'é' => 'e',
        'ó' => 'o',
        _ => c,
    }
}

/// media taza, tres cuartos de taza, una y media tazas.
fn part_of(speech: &Speech, part: &Part) -> Option<String> {
    let Part { whole, above, below, gender } = *part;
    let half = if gender == Gender::Feminine { "media" } else { "medio" };
    let is_half = (above, below) == (1, 2);
    match whole {
        None if is_half => Some(half.to_owned()),
        None => Some(format!("{} de", fraction(speech, above, below)?)),
        Some(whole) => {
            let part = if is_half { half.to_owned() } else { fraction(speech, above, below)? };
            // un kilogramo, but uno y medio
            let whole = match gender {
                Gender::Feminine => speech.cardinal(whole, gender),
                _ => speech.count(whole),
            };
            Some(format!("{whole} y {part}"))
        }
    }
}
