//! Italian. Forms after the Accademia della Crusca and the Treccani; Switzerland by its locale's marks.

mod money;
mod nouns;
mod tables;
mod words;

use super::other::BARE;
use super::{Date, Half, Language, Part, Time, romance};
use crate::text::verbalise::classes::{Reading, clock};
use crate::text::verbalise::names::Gender;
use crate::text::verbalise::scan::Scan;
use crate::text::verbalise::speech::Speech;

/// Number rules of its own, read behind those of CLDR: only one has forms (un libro, una pagina, ventuno pagine).
pub(super) const RULES: &str =
    concat!(include_str!("../../data/it.rbnf"), include_str!("rules.rbnf"));

pub(super) const ITALIAN: Language = Language {
    counting: "spellout-numbering",
    counting_and: "spellout-numbering",
    cardinals: ["spoken-masculine", "spoken-feminine", "spoken-masculine"],
    ordinals: [
        "spellout-ordinal-masculine",
        "spellout-ordinal-feminine",
        "spellout-ordinal-masculine",
    ],
    year: "spellout-numbering-year",
    is_one: |number| number.is(1),
    ordinal_endings: &[
        (".º", Gender::Masculine),
        ("º", Gender::Masculine),
        ("°", Gender::Masculine),
        (".ª", Gender::Feminine),
        ("ª", Gender::Feminine),
        ("o", Gender::Masculine),
        ("a", Gender::Feminine),
    ],
    noun: nouns::gender,
    words: words::WORDS,
    signs: words::SIGNS,
    letters: [
        "a",
        "bi",
        "ci",
        "di",
        "e",
        "effe",
        "gi",
        "acca",
        "i",
        "i lunga",
        "cappa",
        "elle",
        "emme",
        "enne",
        "o",
        "pi",
        "cu",
        "erre",
        "esse",
        "ti",
        "u",
        "vu",
        "doppia vu",
        "ics",
        "ipsilon",
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
    decade_openers: &["gli", "anni", "negli", "degli"],
    short_calls: &[],
    pair_openers: &[],
    streets: &[],
    slash_words: &["e", "lui", "lei", "il", "la", "i", "gli", "le", "o", "sì", "tutti", "uno"],
    articles: &[],
    small_words: words::SMALL_WORDS,
    loud_words: words::LOUD_WORDS,
    numbered: words::NUMBERED,
    rulers: words::RULERS,
    per: words::PER,
    of: "di",
    small_months: true,
    capital_nouns: false,
    dotted_days: false,
    bare_percent: true,
    hour_signs: &["h"],
    fine_fractions: true,
    // Numbers of mobile telephones have ten.
    bare_digits: 10..=12,
    code_openers: &["codice", "pin", "targa", "serie", "prenotazione", "password"],
    number_endings: &[("termina", "con"), ("finisce", "con"), ("terminante", "con")],
    telephones: &[&[3, 3, 4], &[3, 7], &[3, 3, 2, 2], &[3, 2, 2, 3], &[2, 4, 4]],
    ordered,
    day_last: false,
    halves: true,
    decades: Some(str::to_owned),
    regnal,
    plural: |letters| letters.to_owned(),
    mixed: |whole, part, (above, below)| {
        let part = if (above, below) == (1, 2) { "mezzo" } else { part };
        format!("{whole} e {part}")
    },
    date,
    time,
    fraction,
    part_of,
    before_noun,
    decimals: romance::decimals,
    cents: |whole, noun, part, cents| format!("{whole} {noun} e {part} {cents}"),
    readings: &[
        |scan, speech| clock::pointed(scan, speech, HOUR_OPENERS, true),
        degrees,
        elided,
        thousands,
        century,
        |scan, _| romance::kilometre(scan, "chilometro"),
        |scan, speech| romance::labelled(scan, speech, words::LABELS),
        romance::number_sign,
        romance::multiplied,
    ],
    is_counted: |behind| romance::is_counted(behind, nouns::gender),
    ..BARE
};

/// Words before a time of day with a point: alle 15.45.
const HOUR_OPENERS: &[&str] = &["ore", "alle", "dalle", "le", "delle", "h", "all", "ora"];

/// 30° are degrees, but il 2° piano is the second.
fn degrees<'a>(mut scan: Scan<'a>, speech: &Speech) -> Option<Reading<'a>> {
    let article = matches!(&*scan.word_before(), "il" | "lo" | "la" | "al" | "del" | "dal" | "nel");
    let digits: String = scan.digits().iter().collect();
    let n: u64 = digits.parse().ok().filter(|_| digits.len() <= 3)?;
    scan.eat_if(|c| c == '°')?;
    let next: String = scan.next_word().iter().collect();
    let scale = next.chars().count() == 1 && next.chars().all(char::is_uppercase);
    let month = speech.names().find_month(&next).is_some();
    if !scan.at_word_end() || scale || month || scan.peek().is_some_and(|c| c.is_ascii_digit()) {
        return None;
    }
    match speech.noun(scan) {
        Some(gender) => Some((scan, speech.ordinal(n, gender))),
        None if article => None,
        None if n == 1 => Some((scan, "un grado".to_owned())),
        None => Some((scan, format!("{} gradi", speech.count(n)))),
    }
}

/// 20mila, 20 mila: one word.
fn thousands<'a>(mut scan: Scan<'a>, speech: &Speech) -> Option<Reading<'a>> {
    let digits: String = scan.digits().iter().collect();
    let n: u64 = digits.parse().ok().filter(|n| (2..1_000).contains(n))?;
    scan.blank();
    let mila = scan.eat_str("mila", true) && scan.at_word_end();
    mila.then(|| (scan, speech.count(n * 1_000)))
}

/// nel '900: a century by its hundreds.
fn century<'a>(mut scan: Scan<'a>, speech: &Speech) -> Option<Reading<'a>> {
    scan.eat_if(|c| matches!(c, '\'' | '’' | '‘'))?;
    let digits: String = scan.digits().iter().collect();
    let n: u64 = digits.parse().ok().filter(|n| digits.len() == 3 && n % 100 == 0)?;
    scan.at_word_end().then(|| (scan, speech.count(n)))
}

/// 1 ora: un'ora.
fn elided<'a>(mut scan: Scan<'a>, speech: &Speech) -> Option<Reading<'a>> {
    let one = scan.digits() == ['1'] && scan.blank();
    let word: String = scan.letters().iter().collect();
    let word = if word == "h" { "ora" } else { &word };
    let gender = (speech.language().noun)(word).filter(|_| one)?;
    let vowel = word.starts_with(['a', 'e', 'i', 'o', 'u']) && gender == Gender::Feminine;
    vowel.then(|| (scan, format!("un'{word}")))
}

/// un libro, uno studente, una pagina; un milione di pagine.
fn before_noun(speech: &Speech, n: u64, behind: Scan<'_>) -> Option<String> {
    let said = romance::before_noun(speech, n, behind, [|_| false, nouns::is_plural])?;
    let word: String = behind.next_word().iter().collect();
    Some(if said == "un" && takes_uno(&word) { "uno".to_owned() } else { said })
}

/// Before z, s with a consonant behind it, gn, ps, pn, x, y.
fn takes_uno(word: &str) -> bool {
    let mut letters = word.chars();
    match (letters.next(), letters.next()) {
        (Some('z' | 'x' | 'y'), _) | (Some('g' | 'p'), Some('n')) | (Some('p'), Some('s')) => true,
        (Some('s'), Some(second)) => !"aeiouàèéìòù".contains(second),
        _ => false,
    }
}

/// XX secolo, III Congresso, II guerra mondiale.
fn ordered(speech: &Speech, n: u64, noun: &str) -> Option<String> {
    // "Via XX Settembre" is named for a day.
    if speech.names().find_month(noun).is_some_and(|(_, short)| !short) {
        return Some(if n == 1 { "primo".to_owned() } else { speech.count(n) });
    }
    let &(_, gender) = words::ORDERED.iter().find(|(known, _)| *known == noun)?;
    Some(speech.ordinal(n, gender))
}

/// Luigi quattordicesimo, Elisabetta seconda.
fn regnal(speech: &Speech, n: u64, name: &str) -> String {
    let woman = name.ends_with('a') && !matches!(name, "luca" | "andrea" | "enea");
    speech.ordinal(n, if woman { Gender::Feminine } else { Gender::Masculine })
}

/// primo maggio duemilaventisei
fn date(speech: &Speech, date: &Date, before: &str) -> String {
    let weekday = date.weekday.map(|day| speech.names().day(day).to_owned());
    let day = date.day.map(|day| match day {
        // "l'1 maggio" has no room for more.
        1 if !date.ordinal && before.ends_with(['\'', '’']) => speech.count(1),
        1 => "primo".to_owned(),
        day => speech.count(day.into()),
    });
    let year = date.year.map(|year| speech.year(year.into()));
    let month = Some(speech.names().month(date.month).to_owned());
    [weekday, day, month, year].into_iter().flatten().collect::<Vec<String>>().join(" ")
}

/// quindici e quarantacinque, otto e mezza, quindici ore e trenta minuti, tre del pomeriggio.
fn time(speech: &Speech, time: &Time) -> String {
    let hours = match time.hour {
        1 => "una".to_owned(),
        hour => speech.count(hour.into()),
    };
    let counted = |n: u32, one: &str, other: &str| match n {
        1 => format!("un {one}"),
        n => format!("{} {other}", speech.count(n.into())),
    };
    let out = match (time.minute, time.second) {
        (minute, Some(second)) => format!(
            "{hours}, {} e {}",
            counted(minute, "minuto", "minuti"),
            counted(second, "secondo", "secondi")
        ),
        (minute, None) if time.lasting => {
            let hours = counted(time.hour, "ora", "ore").replace("un ora", "un'ora");
            format!("{hours} e {}", counted(minute, "minuto", "minuti"))
        }
        (0, None) if time.named => counted(time.hour, "ora", "ore").replace("un ora", "un'ora"),
        (0, None) if time.hour == 0 => "zero".to_owned(),
        (0, None) => hours,
        (15, None) if (1..=12).contains(&time.hour) => format!("{hours} e un quarto"),
        (30, None) if (1..=12).contains(&time.hour) => format!("{hours} e mezza"),
        (minute, None) => format!("{hours} e {}", speech.count(minute.into())),
    };
    match (time.half, time.hour) {
        (None, _) => out,
        (Some(Half::Am), 12 | 1..=4) => format!("{out} di notte"),
        (Some(Half::Am), _) => format!("{out} del mattino"),
        (Some(Half::Pm), 6..=11) => format!("{out} di sera"),
        (Some(Half::Pm), _) => format!("{out} del pomeriggio"),
    }
}

/// un mezzo, due terzi, tre quarti, cinque dodicesimi.
fn fraction(speech: &Speech, above: u64, below: u64) -> Option<String> {
    let name = match below {
        0 | 1 => return None,
        2 => "mezzo".to_owned(),
        _ => speech.ordinal(below, Gender::Masculine),
    };
    Some(match (above, below) {
        (1, _) => format!("un {name}"),
        (_, 2) => format!("{} mezzi", speech.count(above)),
        _ => format!("{} {}i", speech.count(above), name.strip_suffix('o').unwrap_or(&name)),
    })
}

/// mezza tazza, tre quarti di tazza, due tazze e mezza is said as due e mezza tazze.
fn part_of(speech: &Speech, part: &Part) -> Option<String> {
    let Part { whole, above, below, gender } = *part;
    let half = if gender == Gender::Feminine { "mezza" } else { "mezzo" };
    let is_half = (above, below) == (1, 2);
    match whole {
        None if is_half => Some(half.to_owned()),
        None => Some(format!("{} di", fraction(speech, above, below)?)),
        Some(whole) => {
            let part = if is_half { half.to_owned() } else { fraction(speech, above, below)? };
            Some(format!("{} e {part}", speech.count(whole)))
        }
    }
}
