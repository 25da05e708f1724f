//! Number words by the rule-based number formats of CLDR: an interpreter of the part of their language that the
//! spell-out rules use. It must never know a language.
//!
//! ```text
//! %spellout-cardinal:            a set of rules; %%name is one that only other sets use
//! 20: twenty[->>];               from 20 on: "twenty", then "-" and the words of n % 10 unless that is nought
//! 100: << hundred[ >>];          words of n / 100, "hundred", the words of n % 100
//! 1010/100: << >%%2d-year>;      the same with 100 for the power of ten, the rest by another set
//! 0: =%spellout-numbering=;      n by another set
//! x.x: << point >>;              a number with a fraction
//! ```
//!
//! Source: Unicode Technical Standard 35, part 3, "Rule-Based Number Formatting".

/// Numbers from here on have no words in the rules; they are told digit by digit.
pub(super) const LIMIT: u64 = 1_000_000_000_000_000_000;

/// The rule sets of one language.
#[derive(Debug)]
pub(super) struct Rules {
    sets: Vec<Set>,
}

/// One rule set, by base value.
#[derive(Debug, Default)]
struct Set {
    name: String,
    rules: Vec<Rule>,
    point: Option<String>,
    comma: Option<String>,
}

#[derive(Debug)]
struct Rule {
    base: u64,
    divisor: u64,
    parts: Vec<Part>,
    /// Has both a part of the quotient or remainder: see [`Rules::rule`].
    splits: bool,
}

#[derive(Debug)]
enum Part {
    Text(String),
    Quotient(Target),
    Remainder(Target),
    Same(Target),
    /// Left out when the remainder is nought.
    Optional(Vec<Part>),
    /// One form or the other by the quotient: `one{..}other{..}`.
    Plural {
        one: String,
        other: String,
    },
}

#[derive(Debug)]
enum Target {
    /// The set that the rule stands in.
    Own,
    Set(usize),
    /// Digits, by a decimal pattern.
    Digits,
}

impl Rules {
    /// Reads a rule file of CLDR.
    pub(super) fn parse(text: &str) -> Self {
        let header = |line: &str| {
            let name = line.strip_suffix(':').filter(|_| line.starts_with('%'))?;
            Some(name.trim_start_matches('%').to_owned())
        };
        let lines = || text.lines().map(|line| line.trim_start_matches('\u{feff}'));
        let names: Vec<String> = lines().filter_map(header).collect();
        let mut sets: Vec<Set> = Vec::new();
        for line in lines() {
            if let Some(name) = header(line) {
                sets.push(Set { name, ..Set::default() });
            } else if let (Some(set), Some((base, body))) = (sets.last_mut(), line.split_once(':'))
            {
                set.add(base, body.trim().trim_end_matches(';'), &names);
            }
        }
        Self { sets }
    }

    /// Appends the words of `n` by a set. Without that set, or from [`LIMIT`] on, these are its digits.
    pub(super) fn say(&self, set: &str, n: u64, out: &mut String) {
        match self.set(set) {
            Some(set) if n < LIMIT => self.say_by(set, n, out),
            _ => self.say_digits(n, out),
        }
    }

    /// The word between a number and its fraction; with `comma`, where a comma stands there and has a word of its own. A set
    /// that leaves fractions to others has the word of the first that tells one.
    pub(super) fn point(&self, set: &str, comma: bool) -> &str {
        let Some(set) = self.set(set) else { return "." };
        let own = set.comma.as_deref().filter(|_| comma);
        let any = || self.sets.iter().find_map(|set| set.point.as_deref());
        own.or(set.point.as_deref()).or_else(any).unwrap_or(".")
    }

    fn set(&self, name: &str) -> Option<&Set> {
        self.sets.iter().find(|set| set.name == name)
    }

    fn say_digits(&self, n: u64, out: &mut String) {
        for (i, digit) in n.to_string().bytes().enumerate() {
            if i > 0 {
                out.push(' ');
            }
            if let Some(set) = self.set("spellout-numbering") {
                self.say_by(set, u64::from(digit - b'0'), out);
            }
        }
    }

    fn say_by(&self, set: &Set, n: u64, out: &mut String) {
        if let Some(rule) = rule(set, n) {
            self.say_parts(set, rule, &rule.parts, n, out);
        }
    }

    fn say_parts(&self, set: &Set, rule: &Rule, parts: &[Part], n: u64, out: &mut String) {
        let (quotient, remainder) = (n / rule.divisor, n % rule.divisor);
        for part in parts {
            match part {
                Part::Text(text) => out.push_str(text),
                Part::Quotient(target) => self.say_target(set, target, quotient, out),
                Part::Remainder(target) => self.say_target(set, target, remainder, out),
                Part::Same(target) => self.say_target(set, target, n, out),
                Part::Optional(parts) if remainder != 0 => {
                    self.say_parts(set, rule, parts, n, out);
                }
                Part::Optional(_) => {}
                Part::Plural { one, other } => {
                    out.push_str(if quotient == 1 { one } else { other });
                }
            }
        }
    }

    fn say_target(&self, own: &Set, target: &Target, n: u64, out: &mut String) {
        match target {
            Target::Own => self.say_by(own, n, out),
            Target::Set(index) if n < LIMIT => self.say_by(&self.sets[*index], n, out),
            Target::Set(_) => self.say_digits(n, out),
            Target::Digits => self.say_digits(n, out),
        }
    }
}

/// The last rule at or below `n`. A rule that divides is passed over where nothing is left and its base is no multiple
/// ("roll back" of the standard).
fn rule(set: &Set, n: u64) -> Option<&Rule> {
    let after = set.rules.partition_point(|rule| rule.base <= n);
    let rule = set.rules.get(after.checked_sub(1)?)?;
    let passed =
        rule.splits && n.is_multiple_of(rule.divisor) && !rule.base.is_multiple_of(rule.divisor);
    match after.checked_sub(2) {
        Some(before) if passed => set.rules.get(before),
        _ => Some(rule),
    }
}

impl Set {
    fn add(&mut self, base: &str, body: &str, names: &[String]) {
        // An apostrophe keeps the blanks behind it.
        let body = body.strip_prefix('\'').unwrap_or(body).replace('\u{ad}', "");
        let between =
            |body: &str| body.trim_start_matches('<').trim_end_matches('>').trim().to_owned();
        match base {
            "x.x" if !body.starts_with('=') => self.point = Some(between(&body)),
            "x,x" if !body.starts_with('=') => self.comma = Some(between(&body)),
            _ => {
                let (base, radix) = base.split_once('/').unwrap_or((base, "10"));
                if let (Ok(base), Ok(radix)) = (base.parse::<u64>(), radix.parse::<u64>()) {
                    self.rules.push(Rule::new(base, radix, &body, names));
                }
            }
        }
    }
}

impl Rule {
    fn new(base: u64, radix: u64, body: &str, names: &[String]) -> Self {
        let radix = radix.max(2);
        let mut divisor: u64 = 1;
        while divisor.checked_mul(radix).is_some_and(|next| next <= base) {
            divisor *= radix;
        }
        let parts = parts(body, names);
        let splits = parts.iter().any(|p| matches!(p, Part::Remainder(_)));
        Self { base, divisor: divisor.max(if base == 0 { radix } else { 1 }), parts, splits }
    }
}

fn parts(mut body: &str, names: &[String]) -> Vec<Part> {
    let mut parts = Vec::new();
    while let Some(first) = body.chars().next() {
        let (part, rest) = match first {
            '<' | '>' | '=' => substitution(first, &body[1..], names),
            '[' => {
                let (inner, rest) = body[1..].split_once(']').unwrap_or((&body[1..], ""));
                (Part::Optional(self::parts(inner, names)), rest)
            }
            '$' => plural(&body[1..]),
            _ => {
                let end = body.find(['<', '>', '=', '[', '$']).unwrap_or(body.len());
                (Part::Text(body[..end].to_owned()), &body[end..])
            }
        };
        parts.push(part);
        body = rest;
    }
    parts
}

fn substitution<'a>(sign: char, rest: &'a str, names: &[String]) -> (Part, &'a str) {
    let (name, rest) = rest.split_once(sign).unwrap_or((rest, ""));
    let target = match name {
        "" => Target::Own,
        name => {
            let name = name.trim_start_matches('%');
            names.iter().position(|known| known == name).map_or(Target::Digits, Target::Set)
        }
    };
    let part = match sign {
        '<' => Part::Quotient(target),
        '>' => Part::Remainder(target),
        _ => Part::Same(target),
    };
    (part, rest)
}

/// `(cardinal,one{milhão}other{milhões})$`, or the endings of an ordinal in digits.
fn plural(rest: &str) -> (Part, &str) {
    let (inner, rest) = rest.split_once('$').unwrap_or((rest, ""));
    let form = |name: &str| {
        let (_, text) = inner.split_once(&format!("{name}{{"))?;
        Some(text.split_once('}')?.0.to_owned())
    };
    let other = form("other").unwrap_or_default();
    (Part::Plural { one: form("one").unwrap_or_else(|| other.clone()), other }, rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILES: [(&str, &str); 11] = [
        ("en", include_str!("data/en.rbnf")),
        ("de", include_str!("data/de.rbnf")),
        ("es", concat!(include_str!("data/es.rbnf"), include_str!("language/spanish/rules.rbnf"))),
        ("fr", include_str!("data/fr.rbnf")),
        ("it", concat!(include_str!("data/it.rbnf"), include_str!("language/italian/rules.rbnf"))),
        ("nl", include_str!("data/nl.rbnf")),
        ("pt", include_str!("data/pt.rbnf")),
        (
            "pt-PT",
            concat!(
                include_str!("data/pt-PT.rbnf"),
                include_str!("language/portuguese/portugal.rbnf")
            ),
        ),
        ("de-CH", include_str!("data/de-CH.rbnf")),
        ("fr-BE", include_str!("data/fr-BE.rbnf")),
        ("fr-CH", include_str!("data/fr-CH.rbnf")),
    ];

    fn say(language: &str, set: &str, n: u64) -> String {
        let file = FILES.iter().find(|f| f.0 == language).unwrap();
        let mut out = String::new();
        Rules::parse(file.1).say(set, n, &mut out);
        out
    }

    /// Read against the rule files and the grammars of the languages.
    #[test]
    fn numbers_have_their_words() {
        for (language, set, n, words) in [
            ("en", "spellout-cardinal", 0, "zero"),
            ("en", "spellout-cardinal", 21, "twenty-one"),
            ("en", "spellout-cardinal", 100, "one hundred"),
            (
                "en",
                "spellout-cardinal",
                1_234_567,
                "one million two hundred thirty-four thousand five hundred sixty-seven",
            ),
            ("en", "spellout-cardinal-verbose", 1_234, "one thousand two hundred and thirty-four"),
            ("en", "spellout-cardinal-verbose", 1_005, "one thousand and five"),
            ("en", "spellout-numbering-year", 1984, "nineteen eighty-four"),
            ("en", "spellout-numbering-year", 1905, "nineteen oh-five"),
            ("en", "spellout-numbering-year", 1900, "nineteen hundred"),
            ("en", "spellout-numbering-year", 2000, "two thousand"),
            ("en", "spellout-numbering-year", 2026, "twenty twenty-six"),
            ("en", "spellout-ordinal", 42, "forty-second"),
            ("en", "spellout-ordinal", 20, "twentieth"),
            ("en", "spellout-ordinal", 1_000, "one thousandth"),
            ("en", "spellout-ordinal", 113, "one hundred thirteenth"),
            ("de", "spellout-numbering", 21, "einundzwanzig"),
            ("de", "spellout-cardinal-feminine", 1, "eine"),
            ("de", "spellout-numbering", 2_345, "zweitausenddreihundertfünfundvierzig"),
            ("de", "spellout-numbering", 1_000_000, "eine Million"),
            ("de", "spellout-numbering-year", 1984, "neunzehnhundertvierundachtzig"),
            ("de", "spellout-ordinal-n", 29, "neunundzwanzigsten"),
            ("es", "spellout-numbering", 31, "treinta y uno"),
            ("es", "spellout-cardinal-feminine", 201, "doscientas una"),
            ("es", "spellout-numbering", 1_001, "mil uno"),
            ("es", "spellout-ordinal-masculine", 3, "tercero"),
            ("es", "spoken-feminine", 421_200, "cuatrocientas veintiún mil doscientas"),
            ("es", "spoken-ordinal-feminine", 112, "centésima duodécima"),
            ("fr", "spellout-numbering", 71, "soixante-et-onze"),
            ("fr", "spellout-numbering", 80, "quatre-vingts"),
            ("fr", "spellout-numbering", 81, "quatre-vingt-un"),
            ("fr", "spellout-numbering", 200, "deux cents"),
            ("fr", "spellout-ordinal-masculine", 21, "vingt-et-unième"),
            ("fr", "spellout-ordinal-masculine", 91, "quatre-vingt-onzième"),
            ("fr", "spellout-ordinal-masculine", 101, "cent unième"),
            ("fr-BE", "spellout-numbering", 85_000, "quatre-vingt-cinq mille"),
            ("fr-BE", "spellout-numbering", 95, "nonante-cinq"),
            ("fr-CH", "spellout-numbering", 80, "huitante"),
            ("de-CH", "spellout-numbering", 30, "dreissig"),
            ("it", "spellout-numbering", 23, "ventitré"),
            ("it", "spellout-numbering", 28, "ventotto"),
            ("it", "spellout-numbering", 2_000, "duemila"),
            ("it", "spellout-ordinal-masculine", 3, "terzo"),
            ("nl", "spellout-numbering", 22, "tweeëntwintig"),
            ("nl", "spellout-ordinal", 8, "achtste"),
            ("nl", "spellout-numbering-year", 1984, "negentienvierentachtig"),
            ("pt", "spellout-numbering", 1_234, "mil duzentos e trinta e quatro"),
            ("pt", "spellout-numbering", 16, "dezesseis"),
            ("pt", "spellout-numbering", 2_000_000, "dois milhões"),
            ("pt-PT", "spellout-numbering", 16, "dezasseis"),
            ("pt-PT", "spoken-masculine", 1_500_000_000, "mil e quinhentos milhões"),
            ("pt-PT", "spoken-feminine", 2_000_000_002, "dois mil milhões e duas"),
            ("pt", "spellout-ordinal-feminine", 22, "vigésima segunda"),
        ] {
            assert_eq!(say(language, set, n), words, "{language} {set} {n}");
        }
    }

    #[test]
    fn fractions_have_a_word() {
        let rules = Rules::parse(FILES[0].1);
        assert_eq!(rules.point("spellout-cardinal", false), "point");
        let spanish = Rules::parse(FILES[2].1);
        assert_eq!(spanish.point("spellout-cardinal-masculine", true), "coma");
        assert_eq!(spanish.point("spellout-cardinal-masculine", false), "punto");
    }

    #[test]
    fn every_set_of_every_file_has_words_without_digits_for_every_size() {
        for (language, file) in FILES {
            let rules = Rules::parse(file);
            let sets = file.lines().filter(|line| line.starts_with("%s"));
            for set in sets.map(|line| line.trim_matches(['%', ':'])) {
                let sizes = (0..19).map(|e| 10_u64.pow(e));
                for n in sizes.flat_map(|n| [n - 1, n, n + 1, 3 * n / 2]).filter(|&n| n < LIMIT) {
                    let mut out = String::new();
                    rules.say(set, n, &mut out);
                    let silent = out.is_empty() || out.contains(|c: char| c.is_ascii_digit());
                    assert!(!silent, "{language} {set} {n}: {out:?}");
                }
            }
        }
    }

    #[test]
    fn what_has_no_words_is_told_digit_by_digit() {
        let all_nines = ["nine"; 20].join(" ");
        assert_eq!(say("en", "spellout-cardinal", 9_999_999_999_999_999_999), all_nines[..94]);
        assert_eq!(say("en", "no such set", 12), "one two");
    }
}
