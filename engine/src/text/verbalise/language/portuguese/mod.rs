//! Portuguese. Forms after the Manual de Redação da Presidência da República and the Ciberdúvidas da Língua Portuguesa;
//! number words of Brazil and of Portugal by the rules of their locale.

mod money;
mod nouns;
mod tables;
mod words;

use super::other::BARE;
use super::{Date, Half, Language, Part, Time, Words, romance};
use crate::text::verbalise::classes::{Reading, clock};
use crate::text::verbalise::names::Gender;
use crate::text::verbalise::scan::Scan;
use crate::text::verbalise::speech::Speech;

pub(super) const PORTUGUESE: Language = Language {
    counting: "spellout-numbering",
    counting_and: "spellout-numbering",
    cardinals: [
        "spellout-cardinal-masculine",
        "spellout-cardinal-feminine",
        "spellout-cardinal-masculine",
    ],
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
        (".ª", Gender::Feminine),
        ("ª", Gender::Feminine),
        ("o", Gender::Masculine),
        ("a", Gender::Feminine),
    ],
    noun: nouns::gender,
    words: words::WORDS,
    signs: words::SIGNS,
    letters: [
        "a", "bê", "cê", "dê", "é", "efe", "gê", "agá", "i", "jota", "cá", "ele", "eme", "ene",
        "ó", "pê", "quê", "erre", "esse", "tê", "u", "vê", "dáblio", "xis", "ípsilon", "zê",
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
    decade_openers: &["os", "nos", "dos", "anos"],
    short_calls: &[],
    pair_openers: &[],
    streets: &[],
    slash_words: &["e", "ele", "ela", "os", "as", "o", "a", "sim", "todos", "todas", "ou"],
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
    hour_signs: &["horas", "hs", "h", "H"],
    fine_fractions: true,
    code_openers: &["código", "senha", "pin", "placa", "matrícula", "série", "reserva"],
    number_endings: &[("termina", "em"), ("terminado", "em"), ("terminada", "em"), ("final", "em")],
    telephones: &[
        &[3, 3, 3],
        &[2, 5, 4],
        &[2, 4, 4],
        &[2, 3, 4],
        &[5, 4],
        &[5, 3],
        &[4, 3, 4],
        &[4, 4],
    ],
    ordered,
    day_last: false,
    halves: true,
    decades: Some(str::to_owned),
    regnal,
    plural: |letters| letters.to_owned(),
    mixed: |whole, part, (above, below)| {
        let part = if (above, below) == (1, 2) { "meio" } else { part };
        format!("{whole} e {part}")
    },
    date,
    time,
    fraction,
    part_of,
    before_noun: |speech, n, behind| {
        romance::before_noun(speech, n, behind, [|noun| noun.ends_with('s'); 2])
    },
    decimals: romance::decimals,
    cents: |whole, noun, part, cents| format!("{whole} {noun} e {part} {cents}"),
    readings: &[
        |scan, speech| clock::pointed(scan, speech, &["às", "as", "das"], false),
        register_number,
        |scan, _| romance::kilometre(scan, "quilômetro"),
        |scan, speech| romance::labelled(scan, speech, words::LABELS),
        romance::number_sign,
        romance::multiplied,
    ],
    is_counted: |behind| romance::is_counted(behind, nouns::gender),
    ..BARE
};

/// Portuguese as it is spoken in Portugal.
pub(super) const OF_PORTUGAL: Language = Language {
    counting: "spoken-masculine",
    counting_and: "spoken-masculine",
    cardinals: ["spoken-masculine", "spoken-feminine", "spoken-masculine"],
    words: Words { east: "este", ..words::WORDS },
    ..PORTUGUESE
};

/// Number rules of Portugal, read behind those of CLDR: a thousand millions is mil milhões.
pub(super) const RULES_OF_PORTUGAL: &str =
    concat!(include_str!("../../data/pt-PT.rbnf"), include_str!("portugal.rbnf"));

/// 123.456.789-09 and 12.345.678/0001-95: numbers of persons and firms, told digit by digit.
fn register_number<'a>(start: Scan<'a>, speech: &Speech) -> Option<Reading<'a>> {
    const SHAPES: [(&[usize], &str); 2] = [(&[3, 3, 3, 2], "..-"), (&[2, 3, 3, 4, 2], "../-")];
    let shaped = |(lengths, signs): &(&[usize], &str)| {
        let (mut scan, mut signs) = (start, signs.chars());
        let mut groups = Vec::new();
        for &length in *lengths {
            let digits: String = scan.digits().iter().collect();
            if digits.len() != length {
                return None;
            }
            groups.push(speech.digits(&digits));
            if !signs.next().is_none_or(|sign| scan.eat(sign)) {
                return None;
            }
        }
        scan.at_number_end().then(|| (scan, groups.join(", ")))
    };
    start.peek().filter(char::is_ascii_digit)?;
    SHAPES.iter().find_map(shaped)
}

/// XX aniversário, III Congresso.
fn ordered(speech: &Speech, n: u64, noun: &str) -> Option<String> {
    let &(_, gender) = words::ORDERED.iter().find(|(known, _)| *known == noun)?;
    Some(speech.ordinal(n, gender))
}

/// Pedro segundo, Maria primeira; above ten Luís catorze.
fn regnal(speech: &Speech, n: u64, name: &str) -> String {
    if n > 10 {
        return speech.count(n);
    }
    let woman = name.ends_with('a') || matches!(name, "isabel" | "beatriz");
    speech.ordinal(n, if woman { Gender::Feminine } else { Gender::Masculine })
}

/// primeiro de maio de dois mil e vinte e seis
fn date(speech: &Speech, date: &Date, _: &str) -> String {
    let month = speech.names().month(date.month);
    let mut parts = Vec::new();
    if let Some(day) = date.weekday {
        parts.push(format!("{},", speech.names().day(day)));
    }
    match date.day {
        None => parts.push(month.to_owned()),
        Some(1) => parts.push(format!("primeiro de {month}")),
        Some(day) => parts.push(format!("{} de {month}", speech.count(day.into()))),
    }
    if let Some(year) = date.year {
        parts.push(format!("de {}", speech.year(year.into())));
    }
    parts.join(" ")
}

/// oito e meia, quinze e quarenta e cinco, quinze horas, três da tarde.
fn time(speech: &Speech, time: &Time) -> String {
    let hours = speech.cardinal(time.hour.into(), Gender::Feminine);
    let counted = |n: u32, noun: &str| {
        let ending = if n == 1 { "" } else { "s" };
        format!("{} {noun}{ending}", speech.cardinal(n.into(), Gender::Masculine))
    };
    let hour_noun = if time.hour == 1 { "hora" } else { "horas" };
    let out = match (time.minute, time.second) {
        (minute, Some(second)) => format!(
            "{hours} {hour_noun}, {} e {}",
            counted(minute, "minuto"),
            counted(second, "segundo")
        ),
        (minute, None) if time.lasting => {
            format!("{hours} {hour_noun} e {}", counted(minute, "minuto"))
        }
        (0, None) if time.half.is_some() => hours,
        (0, None) => format!("{hours} {hour_noun}"),
        (30, None) if (1..=12).contains(&time.hour) => format!("{hours} e meia"),
        (minute, None) if time.half.is_some() => {
            format!("{hours} e {}", speech.count(minute.into()))
        }
        (minute, None) => format!("{hours} {hour_noun} e {}", speech.count(minute.into())),
    };
    match (time.half, time.hour) {
        (None, _) => out,
        (Some(Half::Am), 12) => format!("{out} da noite"),
        (Some(Half::Am), _) => format!("{out} da manhã"),
        (Some(Half::Pm), 7..=11) => format!("{out} da noite"),
        (Some(Half::Pm), _) => format!("{out} da tarde"),
    }
}

/// um meio, dois terços, três quartos, cinco doze avos.
fn fraction(speech: &Speech, above: u64, below: u64) -> Option<String> {
    let plural = if above == 1 { "" } else { "s" };
    let name = match below {
        0 | 1 => return None,
        2 => format!("meio{plural}"),
        3 => format!("terço{plural}"),
        4..=10 | 100 | 1_000 => {
            format!("{}{plural}", speech.ordinal(below, Gender::Masculine))
        }
        _ => format!("{} avos", speech.count(below)),
    };
    Some(format!("{} {name}", speech.count(above)))
}

/// meia xícara, três quartos de xícara, uma e meia xícaras.
fn part_of(speech: &Speech, part: &Part) -> Option<String> {
    let Part { whole, above, below, gender } = *part;
    let half = if gender == Gender::Feminine { "meia" } else { "meio" };
    let is_half = (above, below) == (1, 2);
    match whole {
        None if is_half => Some(half.to_owned()),
        None => Some(format!("{} de", fraction(speech, above, below)?)),
        Some(whole) => {
            let part = if is_half { half.to_owned() } else { fraction(speech, above, below)? };
            Some(format!("{} e {part}", speech.cardinal(whole, gender)))
        }
    }
}
