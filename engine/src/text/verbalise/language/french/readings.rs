//! Forms that only French has: `n° 5`, `2nd`, `XXIe siècle`, `Saint-`.

use super::words;
use crate::text::verbalise::classes::{Reading, measure, money, word};
use crate::text::verbalise::names::Gender;
use crate::text::verbalise::scan::{Scan, is_gap};
use crate::text::verbalise::speech::Speech;

/// A group of a telephone number: two and three digits are one number.
pub(super) fn group(speech: &Speech, digits: &str) -> String {
    let rest = digits.trim_start_matches('0');
    match rest.parse() {
        Ok(n) if matches!(digits.len(), 2 | 3) => {
            let mut said = vec![speech.count(0); digits.len() - rest.len()];
            said.push(speech.count(n));
            said.join(" ")
        }
        _ => speech.digits(digits),
    }
}

/// n° 5, nº 5, no 5, nos 5 et 6
pub(super) fn number_sign<'a>(mut scan: Scan<'a>, _: &Speech) -> Option<Reading<'a>> {
    if scan.before().is_some_and(char::is_alphanumeric) {
        return None;
    }
    scan.eat_if(|c| c == 'n' || c == 'N')?;
    let sign = scan.eat_if(|c| c == '°' || c == 'º').is_some();
    if !sign && !scan.eat('o') {
        return None;
    }
    let many = scan.eat('s');
    let number = scan.next_visible().is_some_and(|c| c.is_ascii_digit());
    let word = scan.at_word_end() || scan.peek().is_some_and(|c| c.is_ascii_digit());
    let spoken = if many { "numéros" } else { "numéro" };
    (word && (sign || number)).then(|| (scan, spoken.to_owned()))
}

/// 2nd, 2nde, 2d, 2de; 3es
pub(super) fn second<'a>(mut scan: Scan<'a>, speech: &Speech) -> Option<Reading<'a>> {
    let digits: String = scan.digits().iter().collect();
    let ending: String = scan.letters().iter().collect();
    if !scan.at_word_end() {
        return None;
    }
    let said = match (digits.as_str(), ending.as_str()) {
        ("2", "nd" | "d") => "second".to_owned(),
        ("2", "nde" | "de") => "seconde".to_owned(),
        ("2", "nds" | "ds") => "seconds".to_owned(),
        ("2", "ndes" | "des") => "secondes".to_owned(),
        ("1", "ers") => "premiers".to_owned(),
        ("1", "res" | "ères") => "premières".to_owned(),
        (_, "es" | "èmes" | "emes") => {
            let n = digits.parse().ok()?;
            format!("{}s", speech.ordinal(n, Gender::Masculine))
        }
        _ => return None,
    };
    Some((scan, said))
}

/// XXIe siècle, François Ier, IIème, la Ve République
pub(super) fn roman_ordinal<'a>(scan: Scan<'a>, speech: &Speech) -> Option<Reading<'a>> {
    let (end, n, ending) = word::roman_with_ending(scan)?;
    let (gender, many) = match ending.as_str() {
        "er" | "e" | "ème" | "eme" | "ième" => (Gender::Masculine, ""),
        "re" | "ère" => (Gender::Feminine, ""),
        "es" | "èmes" => (Gender::Masculine, "s"),
        _ => return None,
    };
    Some((end, speech.ordinal(n, gender) + many))
}

/// 1/2 heure, ½ journée
pub(super) fn half_hour<'a>(mut scan: Scan<'a>, _: &Speech) -> Option<Reading<'a>> {
    const NOUNS: [&str; 5] = ["heure", "journée", "finale", "tarif", "litre"];
    if !scan.eat('½') && !scan.eat_str("1/2", false) {
        return None;
    }
    if !scan.blank() {
        return None;
    }
    let noun: String = scan.letters().iter().collect();
    NOUNS.iter().position(|&known| known == noun)?;
    let article = super::nouns::gender(&noun).map_or("un", |_| "une");
    let article = if matches!(noun.as_str(), "finale") { "une" } else { article };
    scan.at_word_end().then(|| (scan, format!("{article} demi-{noun}")))
}

/// "Ils sont sept." is no September.
pub(super) fn seven<'a>(mut scan: Scan<'a>, _: &Speech) -> Option<Reading<'a>> {
    let word: String = scan.letters().iter().collect();
    let end = scan;
    let dotted = scan.eat('.');
    let dated = scan.next_visible().is_some_and(|c| c.is_ascii_digit());
    (word == "sept" && !(dotted && dated)).then_some((end, word))
}

/// les 17/18 juin, les 17-18-19 juin: days of one month, one behind the other.
pub(super) fn days<'a>(mut scan: Scan<'a>, speech: &Speech) -> Option<Reading<'a>> {
    let joined = scan.before().is_some_and(|c| c.is_alphanumeric() || "/-.,".contains(c));
    let day = |scan: &mut Scan<'a>| -> Option<u64> {
        let digits: String = scan.digits().iter().collect();
        digits.parse().ok().filter(|day| digits.len() <= 2 && (1..=31).contains(day))
    };
    let mut said = vec![speech.count(day(&mut scan).filter(|_| !joined)?)];
    let sign = scan.peek().filter(|&c| c == '/' || c == '-')?;
    while scan.eat(sign) {
        said.push(speech.count(day(&mut scan)?));
    }
    // 17-18 juin is said with its "à".
    let several = said.len() > 2 || (said.len() == 2 && sign == '/');
    let month = || speech.names().find_month(&scan.next_word().iter().collect::<String>());
    (several && scan.peek().is_some_and(is_gap) && month().is_some())
        .then(|| (scan, said.join(" ")))
}

/// le 1/4 de finale: no day.
pub(super) fn part_of<'a>(mut scan: Scan<'a>, speech: &Speech) -> Option<Reading<'a>> {
    let number = |scan: &mut Scan<'a>| -> Option<u64> {
        let digits: String = scan.digits().iter().collect();
        digits.parse().ok().filter(|_| digits.len() <= 2)
    };
    let before = scan.word_before();
    let above = number(&mut scan)?;
    if !scan.eat('/') {
        return None;
    }
    let below = number(&mut scan).filter(|&below| above < below && scan.at_number_end())?;
    let next: String = scan.next_word().iter().collect();
    let said = (speech.language().fraction)(speech, above, below)?;
    let said = match said.strip_prefix("un ") {
        Some(rest) if before == "le" => rest.to_owned(),
        _ => said,
    };
    matches!(next.as_str(), "de" | "d" | "des" | "du").then_some((scan, said))
}

/// 3/4 l, 1/2 h: trois quarts de litre, une demi-heure
pub(super) fn part_of_unit<'a>(mut scan: Scan<'a>, speech: &Speech) -> Option<Reading<'a>> {
    let joined = scan.before().is_some_and(|c| !c.is_whitespace() && c != '(');
    let behind_number = scan.visible_before().is_some_and(|c| c.is_ascii_digit());
    let number = |digits: &[char]| digits.iter().collect::<String>().parse::<u64>().ok();
    let above = number(scan.digits()).filter(|_| !joined && !behind_number)?;
    let below = scan.eat('/').then(|| number(scan.digits()))??;
    if above >= below || below > 10 {
        return None;
    }
    let (end, noun, gender) = measure::noun(scan, speech)?;
    let said = match (above, below, gender) {
        (1, 2, Gender::Feminine) => format!("une demi-{noun}"),
        (1, 2, _) => format!("un demi-{noun}"),
        _ => {
            let part = (speech.language().fraction)(speech, above, below)?;
            format!("{part} {}", money::linked(speech.language().of, noun, speech))
        }
    };
    Some((end, said))
}

/// St-Denis, Ste-Marie, bd Voltaire
pub(super) fn saint<'a>(mut scan: Scan<'a>, _: &Speech) -> Option<Reading<'a>> {
    let word: String = scan.letters().iter().collect();
    if word == "bd" && scan.peek().is_some_and(is_gap) {
        let name = scan.next_visible().is_some_and(char::is_uppercase);
        return name.then(|| (scan, "boulevard".to_owned()));
    }
    let said = match word.as_str() {
        "St" => "Saint",
        "Ste" => "Sainte",
        "Sts" => "Saints",
        _ => return None,
    };
    let name = scan.peek() == Some('-') && scan.at(1).is_some_and(char::is_uppercase);
    name.then(|| (scan, said.to_owned()))
}

/// c.-à-d., av. J.-C.
pub(super) fn listed<'a>(scan: Scan<'a>, speech: &Speech) -> Option<Reading<'a>> {
    word::listed(scan, words::LISTED, speech)
}
