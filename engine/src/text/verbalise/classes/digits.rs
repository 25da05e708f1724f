//! Digits that are no number: telephone and card numbers, versions, addresses of machines.

use super::{Reading, measure};
use crate::text::verbalise::scan::Scan;
use crate::text::verbalise::speech::Speech;

/// Most groups of one telephone, card or account number.
const GROUPS_MAX: usize = 8;
/// Most digits of a card or account number. Source: ISO 13616.
const LONGEST: usize = 30;
/// Most digits of a telephone number. Source: ITU-T E.164. Longer ones are those of cards, told digit by digit.
const TELEPHONE_DIGITS_MAX: usize = 15;

/// 192.168.0.1, 3.14.2: three or more numbers parted by points.
pub(super) fn dotted<'a>(mut scan: Scan<'a>, speech: &Speech) -> Option<Reading<'a>> {
    let mut parts = Vec::new();
    loop {
        let digits = scan.digits();
        if digits.is_empty() {
            return None;
        }
        parts.push(digits);
        let mut ahead = scan;
        if !(ahead.eat('.') && ahead.peek().is_some_and(|c| c.is_ascii_digit())) {
            break;
        }
        scan = ahead;
    }
    // 1.234.567 is a number where points part groups.
    let groups = parts[1..].iter().all(|p| p.len() == 3) && parts[0].len() <= 3;
    let byte = |p: &&[char]| {
        let text: String = p.iter().collect();
        text.parse::<u8>().is_ok() && (text.len() == 1 || !text.starts_with('0'))
    };
    let address = parts.len() == 4 && parts.iter().all(byte);
    let grouped = speech.data.locale.marks().group == '.' && groups && !address;
    if parts.len() < 3 || grouped {
        return None;
    }
    let part = |digits: &&[char]| {
        let text: String = digits.iter().collect();
        match text.parse::<u64>() {
            Ok(n) if (text.len() == 1 || !text.starts_with('0')) && text.len() <= 4 => {
                let address = parts.len() == 4;
                if address && text.len() == 3 { speech.digits(&text) } else { speech.count(n) }
            }
            _ => speech.digits(&text),
        }
    };
    let said: Vec<String> = parts.iter().map(part).collect();
    let mut port = scan;
    if parts.len() == 4 && port.eat(':') {
        let digits: String = port.digits().iter().collect();
        if !digits.is_empty() && port.at_word_end() {
            let dot = format!(" {} ", speech.words().dot);
            let said =
                format!("{} {} {}", said.join(&dot), speech.words().colon, speech.digits(&digits));
            return Some((port, said));
        }
    }
    Some((scan, said.join(&format!(" {} ", speech.words().dot))))
}

/// +1 (415) 555-0132, 4111 1111 1111 1111, 978-3-16-148410-0: groups with pauses between.
pub(super) fn grouped<'a>(scan: Scan<'a>, speech: &Speech) -> Option<Reading<'a>> {
    let first = scan.peek()?;
    let opener =
        matches!(first, '+' | '(') && scan.at(1).is_some_and(|c| c.is_ascii_digit() || c == '(');
    if !first.is_ascii_digit() && !opener {
        return None;
    }
    let found = Groups::read(scan)?;
    let before = scan.label_before();
    // "CA 90001"
    let state = before.len() == 2 && scan.word_before_is_loud() && found.total == 5;
    let state = state || (found.total == 5 && is_behind_state(scan));
    // l'ordine 48213977
    let last = before.rsplit(['\'', '’']).next().unwrap_or_default();
    let known = state || speech.language().digit_openers.contains(&last);
    if found.is_short() && is_end_of_number(scan, speech) {
        return Some((found.end, speech.digits(&found.groups[0])));
    }
    let edge = |c: Option<char>| c.is_none_or(|c| c == '\n');
    let local = found.is_local() && edge(scan.before()) && edge(found.end.peek());
    if !(local || found.is_number_of_digits(known, speech) || found.is_telephone(speech)) {
        return None;
    }
    let mut said: Vec<String> = found.groups.iter().map(|g| group(g, &found, speech)).collect();
    let words = speech.words();
    if found.plus
        && let Some(first) = said.first_mut()
    {
        *first = format!("{} {first}", words.plus);
    }
    Some((found.end, said.join(", ")))
}

/// "Miami, FL, 33101"
fn is_behind_state(scan: Scan<'_>) -> bool {
    let before = [0, 1, 2, 3, 4].map(|k| scan.far_before(k));
    let [Some(' '), Some(','), Some(second), Some(first), Some(' ')] = before else { return false };
    first.is_ascii_uppercase() && second.is_ascii_uppercase()
}

/// "card ending in 8876": words that tell that only the last digits follow.
fn is_end_of_number(scan: Scan<'_>, speech: &Speech) -> bool {
    let endings = speech.language().number_endings;
    if endings.is_empty() {
        return false;
    }
    let [last, earlier] = scan.words_before();
    endings.iter().any(|&(first, second)| first == earlier && second == last)
}

/// 800 of 1-800 is a number; all else is told digit by digit.
fn group(digits: &str, all: &Groups<'_>, speech: &Speech) -> String {
    let toll_free = digits.len() == 3 && digits.ends_with("00") && !digits.starts_with('0');
    let first_groups = all.groups.iter().take(2).any(|g| g == digits);
    match digits.parse() {
        Ok(n) if toll_free && first_groups && all.groups.len() > 2 && all.total <= 11 => {
            speech.count(n)
        }
        _ if all.total > TELEPHONE_DIGITS_MAX => speech.digits(digits),
        _ => (speech.language().group)(speech, digits),
    }
}

fn count_of(groups: &[String], test: impl Fn(&str) -> bool) -> usize {
    groups.iter().filter(|group| test(group)).count()
}

struct Groups<'a> {
    groups: Vec<String>,
    end: Scan<'a>,
    plus: bool,
    bracket: bool,
    blanks: usize,
    signs: usize,
    points: usize,
    strokes: usize,
    total: usize,
}

impl<'a> Groups<'a> {
    fn read(mut scan: Scan<'a>) -> Option<Self> {
        let plus = scan.eat('+');
        let mut found = Self {
            groups: Vec::new(),
            end: scan,
            plus,
            bracket: false,
            blanks: 0,
            signs: 0,
            points: 0,
            strokes: 0,
            total: 0,
        };
        while found.groups.len() < GROUPS_MAX {
            let open = scan.eat('(');
            let digits = scan.digits();
            // "+33 1 23 45 67 89"
            let lone = found.blanks > 0 && digits.len() == 1 && !plus;
            // Before the area at most the number of a country: "1988 (1990)" are two years.
            let area = found.groups.len() <= 1 && found.groups.iter().all(|g| g.len() <= 3);
            let bracket = !open || (area && scan.eat(')'));
            if digits.is_empty() || lone || digits.len() > LONGEST || !bracket {
                break;
            }
            found.groups.push(digits.iter().collect());
            found.total += digits.len();
            found.bracket |= open;
            found.end = scan;
            let blank = scan.blank();
            let (point, stroke) = (scan.peek() == Some('.'), scan.peek() == Some('/'));
            let sign =
                !blank && scan.eat_if(|c| matches!(c, '-' | '.' | '/' | '‑' | '–')).is_some();
            let next_open = scan.peek() == Some('(');
            if !(blank || sign || open || next_open) {
                break;
            }
            if !scan.peek().is_some_and(|c| c.is_ascii_digit() || c == '(') {
                break;
            }
            found.blanks += usize::from(blank);
            found.signs += usize::from(sign);
            found.points += usize::from(sign && point);
            found.strokes += usize::from(sign && stroke);
        }
        (!found.groups.is_empty() && found.end.at_word_end()).then_some(found)
    }

    /// A few digits alone.
    fn is_short(&self) -> bool {
        self.groups.len() == 1 && (2..=6).contains(&self.total) && !self.plus && !self.bracket
    }

    /// 555-1234, where it stands alone in its line; 200-1500 is a range.
    fn is_local(&self) -> bool {
        let lengths = self.groups.iter().map(String::len);
        let parts_other = self.blanks + self.points + self.strokes > 0;
        lengths.eq([3, 4]) && !parts_other && !self.groups[1].ends_with('0')
    }

    /// Groups like those of the telephone numbers of a country, with nothing behind that they could count.
    fn is_telephone(&self, speech: &Speech) -> bool {
        let lengths = || self.groups.iter().map(String::len);
        let known = speech.language().telephones.iter().any(|t| t.iter().copied().eq(lengths()));
        let years = self.groups.iter().all(|g| g.len() == 4 && ("1000".."2200").contains(&&**g));
        let round = count_of(&self.groups, |g| g.ends_with("00")) > 1;
        known
            && !years
            && !round
            && (self.points == 0
                || (self.points + 1 == self.groups.len() && self.groups[0].starts_with('0')))
            && !measure::is_measured(self.end, speech)
            && speech.noun(self.end).is_none()
    }

    /// `known`: the word before says that digits follow.
    fn is_number_of_digits(&self, known: bool, speech: &Speech) -> bool {
        let lengths: Vec<usize> = self.groups.iter().map(String::len).collect();
        let count = lengths.len();
        let telephone = (self.plus || self.bracket) && (7..=15).contains(&self.total);
        if self.points > 0 {
            // Points part versions and addresses of machines as well.
            return lengths == [3, 3, 4] && self.points == 2;
        }
        let spelled = count >= 3 && self.blanks == 0 && lengths.iter().all(|&l| l == 1);
        // One stroke may stand behind the area; more part other things.
        let signed = self.signs >= 2
            && self.strokes < 2
            && self.blanks == 0
            && (7..=16).contains(&self.total);
        let card = count >= 3
            && (13..=LONGEST).contains(&self.total)
            && lengths[..count - 1].iter().all(|&l| l >= 4);
        let trunk = self.groups[0].starts_with('0') && count >= 2 && (8..=12).contains(&self.total);
        let national = count == 3 && lengths[0] == 3 && lengths[1] == 3 && lengths[2] == 4;
        let toll_free = count == 4 && self.groups[0] == "1" && lengths[1..] == [3, 3, 4];
        let local = known && lengths == [3, 4];
        let bare = speech.language().bare_digits.contains(&self.total);
        let long = count == 1 && (bare || (known && self.total >= 5));
        let padded = count == 1 && self.total >= 3 && self.groups[0].starts_with('0');
        let named = known && count >= 2 && self.total >= 7;
        telephone
            || spelled
            || signed
            || card
            || trunk
            || national
            || toll_free
            || local
            || long
            || padded
            || named
    }
}
