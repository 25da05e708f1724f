//! Forms that only Dutch has: `15.45 uur`, `XXe eeuw`, `18-jarige`, `jaren '90`, `1012 AB`.

use super::words;
use crate::text::verbalise::classes::{Reading, clock, word};
use crate::text::verbalise::names::Gender;
use crate::text::verbalise::scan::{Scan, is_gap, lower};
use crate::text::verbalise::speech::Speech;

/// 15.45 uur, 9.00–17.00 uur, 15.30 u.
pub(super) fn clock<'a>(scan: Scan<'a>, speech: &Speech) -> Option<Reading<'a>> {
    let (mut end, said) = clock::named(scan, speech, &["uur", "u"])?;
    let short = end.before() == Some('u') && end.peek() == Some('.');
    if short && !word::ends_sentence(end.skip(1), speech) {
        end = end.skip(1);
    }
    Some((end, said))
}

/// ma-vr, ma t/m vr, ma. t/m vr., di. 14.00 uur
pub(super) fn weekdays<'a>(scan: Scan<'a>, speech: &Speech) -> Option<Reading<'a>> {
    let day = |mut scan: Scan<'a>| {
        let word: String = scan.letters().iter().map(|&c| lower(c)).collect();
        let (number, short) = speech.names().find_day(&word)?;
        Some((scan, speech.names().day(number), short))
    };
    let (mut end, first, short) = day(scan)?;
    if short {
        end.eat('.');
    }
    end.blank();
    if end.eat_if(|c| matches!(c, '-' | '–')).is_none() && !end.eat_str("t/m", false) {
        // "di. 14.00 uur"
        let told = short && clock::named(end, speech, &["uur", "u"]).is_some();
        let end = scan.skip(end.taken() - scan.taken() - 1);
        return told.then(|| (end, first.to_owned()));
    }
    end.blank();
    let (mut end, last, short) = day(end)?;
    if short && end.peek() == Some('.') && !word::ends_sentence(end.skip(1), speech) {
        end = end.skip(1);
    }
    end.at_word_end().then(|| (end, format!("{first} tot en met {last}")))
}

/// XXe eeuw
pub(super) fn roman_ordinal<'a>(scan: Scan<'a>, speech: &Speech) -> Option<Reading<'a>> {
    let (end, n, ending) = word::roman_with_ending(scan)?;
    matches!(ending.as_str(), "e" | "de" | "ste")
        .then(|| (end, speech.ordinal(n, Gender::Masculine)))
}

/// 18-jarige, 3-daagse, 2x, 3×
pub(super) fn joined<'a>(mut scan: Scan<'a>, speech: &Speech) -> Option<Reading<'a>> {
    const ENDINGS: &[&str] = &[
        "jarig", "daags", "maands", "weeks", "urig", "delig", "koppig", "voudig", "persoons",
        "procents", "tallig", "cijferig", "zijdig", "hoofdig", "dubbel", "benig", "gangen",
    ];
    let digits: String = scan.digits().iter().collect();
    let n: u64 = digits.parse().ok().filter(|_| digits.len() <= 4)?;
    let hyphen = scan.eat('-');
    if !hyphen && scan.eat_if(|c| c == 'x' || c == '×').is_some() {
        let ends = scan.at_word_end() && !scan.next_visible().is_some_and(|c| c.is_ascii_digit());
        return ends.then(|| (scan, format!("{} keer", speech.count(n))));
    }
    let letters: String = scan.letters().iter().collect();
    let known = ENDINGS.iter().any(|end| letters.starts_with(end)) && scan.at_word_end();
    let number = if n == 1 { "een".to_owned() } else { speech.count(n) };
    known.then(|| (scan, number + &letters))
}

/// jaren '90, zomer '69
pub(super) fn short_year<'a>(mut scan: Scan<'a>, speech: &Speech) -> Option<Reading<'a>> {
    let opens = scan.before().is_none_or(is_gap);
    scan.eat_if(|c| matches!(c, '\'' | '’' | '‘')).filter(|_| opens)?;
    let digits: String = scan.digits().iter().collect();
    let n = digits.parse().ok().filter(|_| digits.len() == 2 && scan.at_word_end())?;
    let nought = if digits.starts_with('0') { "nul " } else { "" };
    Some((scan, format!("{nought}{}", speech.count(n))))
}

/// 1012 AB Amsterdam: told in pairs.
pub(super) fn postcode<'a>(mut scan: Scan<'a>, speech: &Speech) -> Option<Reading<'a>> {
    let before = scan.word_before();
    let digits: String = scan.digits().iter().collect();
    let n: u64 = digits.parse().ok().filter(|&n| digits.len() == 4 && n >= 1000)?;
    scan.blank();
    let letters: String = scan.letters().iter().collect();
    let code = letters.len() == 2 && letters.bytes().all(|b| b.is_ascii_uppercase());
    let name = speech.language().initialisms.contains(&letters.as_str());
    if !code || name || !scan.at_word_end() || words::YEAR_OPENERS.contains(&before.as_str()) {
        return None;
    }
    let (high, low) = (n / 100, n % 100);
    let digits = match low {
        0 => speech.count(n),
        1..=9 => format!("{} nul {}", speech.count(high), speech.count(low)),
        _ => format!("{} {}", speech.count(high), speech.count(low)),
    };
    Some((scan, format!("{digits} {}", speech.spell(&letters))))
}
