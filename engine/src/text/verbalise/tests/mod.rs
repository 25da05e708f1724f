//! What is said for what is written, and that nothing else decides it.

mod dutch;
mod english;
mod french;
mod german;
mod italian;
mod portuguese;
mod spanish;

use proptest::prelude::*;

use super::*;
use crate::text::spoken::Spoken;

/// How the nano voice wants letters: apart from each other.
const SPACED: Conventions =
    Conventions { initialisms: Initialisms::Spaced, acronyms: Acronyms::Caps, number_and: false };

fn verbaliser(locale: &str, conventions: Conventions) -> Verbaliser {
    let locale = Some(locale.parse().unwrap());
    Verbaliser::new(&TextOptions { locale, conventions, ..TextOptions::default() })
}

fn read(locale: &str, conventions: Conventions, text: &str) -> Vec<Spoken> {
    let mut verbaliser = verbaliser(locale, conventions);
    let mut out = Vec::new();
    for (i, ch) in text.chars().enumerate() {
        verbaliser.push(Spoken::at(ch, i as u32));
    }
    verbaliser.settle(true, &mut out);
    out
}

fn say(locale: &str, conventions: Conventions, text: &str) -> String {
    read(locale, conventions, text).iter().map(|s| s.ch).collect()
}

/// How often a row is read with other digits.
const VARIANTS: u32 = 4;

/// A text with other digits in the places of its own; the same for the same seed.
fn with_other_digits(text: &str, seed: u32) -> String {
    let mut state = seed;
    let other = |c: char| {
        if !c.is_ascii_digit() {
            return c;
        }
        // Constants of Numerical Recipes' generator.
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        char::from_digit((state >> 16) % 10, 10).unwrap_or(c)
    };
    text.chars().map(other).collect()
}

/// Checks that rows with other digits leave no digit, and are read as themselves once they are spoken.
#[track_caller]
fn check_variants(locale: &str, conventions: Conventions, rows: &[(&str, &str)]) {
    let mut wrong = Vec::new();
    for (text, _) in rows.iter().filter(|(text, _)| !text.contains("<<")) {
        for seed in 0..VARIANTS {
            let text = with_other_digits(text, seed);
            let said = say(locale, conventions, &text);
            let again = say(locale, conventions, &said);
            if again != said || said.contains(|c: char| c.is_ascii_digit()) {
                wrong.push(format!("{text:?}\n  is      {said:?}\n  read as {again:?}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Checks all rows, and that what is spoken is read as itself; tells all that fail.
#[track_caller]
fn check(locale: &str, conventions: Conventions, rows: &[(&str, &str)]) {
    let said = rows.iter().map(|(text, spoken)| (text, spoken, say(locale, conventions, text)));
    let wrong: Vec<String> = said
        .filter(|(_, spoken, said)| said != *spoken || say(locale, conventions, said) != *said)
        .map(|(text, spoken, said)| {
            format!(
                "{text:?}\n  must be {spoken:?}\n  but is  {said:?}\n  read as {:?}",
                say(locale, conventions, &said)
            )
        })
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    check_variants(locale, conventions, rows);
}

#[test]
fn tags_say_how_their_text_is_read() {
    for (text, spoken) in [
        ("the <sub alias=\"World Wide Web\">WWW</sub> now", "the World Wide Web now."),
        ("<say-as interpret-as=\"characters\">A1-b</say-as> it", "A one dash B it."),
        ("<spell>abc12</spell>", "A B C one two."),
        ("<say-as interpret-as='digits'>2026</say-as>", "two zero two six."),
        ("the <say-as interpret-as=\"ordinal\">3</say-as> one", "the third one."),
        (
            "<say-as interpret-as=\"date\">11/29/2026</say-as>",
            "November twenty-ninth twenty twenty-six.",
        ),
        (
            "<say-as interpret-as=\"date\" format=\"dmy\">03/04/2026</say-as>",
            "the third of April twenty twenty-six.",
        ),
        (
            "<say-as interpret-as=\"date\" format=\"yyyymmdd\">20260403</say-as>",
            "the third of April twenty twenty-six.",
        ),
        ("<say-as interpret-as=\"date\" format=\"md\">4/3</say-as>", "April third."),
        ("<say-as interpret-as=\"date\" format=\"my\">04/26</say-as>", "April twenty twenty-six."),
        ("<say-as interpret-as=\"date\" format=\"y\">84</say-as>", "nineteen eighty-four."),
        (
            "<say-as interpret-as=\"date\" format=\"dmy\">13/13/13</say-as>",
            "thirteen over thirteen over thirteen.",
        ),
        ("<say-as interpret-as=\"time\">0930</say-as>", "nine thirty."),
        ("<say-as interpret-as=\"time\">3:45pm</say-as>", "three forty-five P M."),
        ("<say-as interpret-as=\"fraction\">3/20</say-as>", "three twentieths."),
        ("<say-as interpret-as=\"fraction\">1+1/2</say-as>", "one and a half."),
        ("<say-as interpret-as=\"unit\">10 kg</say-as>", "ten kilograms."),
        ("<say-as interpret-as=\"currency\">$42.01</say-as>", "forty-two dollars and one cent."),
        (
            "<say-as interpret-as=\"telephone\">5550132</say-as>",
            "five five five zero one three two.",
        ),
        (
            "<say-as interpret-as=\"telephone\">415-555-0132</say-as>",
            "four one five, five five five, zero one three two.",
        ),
        (
            "<say-as interpret-as=\"cardinal\">1994</say-as>",
            "one thousand nine hundred ninety-four.",
        ),
        ("<say-as interpret-as=\"cardinal\">-5.5</say-as>", "minus five point five."),
        ("<say-as interpret-as=\"ordinal\">XIV</say-as>", "fourteenth."),
        ("<say-as interpret-as=\"digits\">12", "twelve."),
        ("<<B2B <i>*x*>> and B2B", "B2B <i>*x* and B two B."),
    ] {
        let options = TextOptions { conventions: SPACED, ..TextOptions::default() };
        assert_eq!(crate::text::sanitize(text, &options), spoken, "{text}");
    }
}

#[test]
fn emoji_are_named_where_they_are_not_dropped() {
    let text = "Done 🎉👍🏽 👩\u{200d}💻!";
    let say = |emoji| crate::text::sanitize(text, &TextOptions { emoji, ..TextOptions::default() });
    assert_eq!(say(true), "Done !");
    assert_eq!(say(false), "Done party popper thumbs up woman!");
}

/// Random texts that are full of what is read.
fn spoken_text() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        prop::sample::select(
            [
                dutch::PIECES,
                english::PIECES,
                french::PIECES,
                german::PIECES,
                italian::PIECES,
                portuguese::PIECES,
                spanish::PIECES,
            ]
            .concat()
        )
        .prop_map(str::to_owned),
        "(?s).{0,4}",
    ];
    prop::collection::vec(piece, 0..14).prop_map(|pieces| pieces.concat())
}

const LOCALES: [&str; 14] = [
    "en-US", "en-GB", "de-DE", "de-AT", "de-CH", "es-ES", "es-MX", "fr-FR", "fr-BE", "fr-CH",
    "it-IT", "nl-NL", "pt-BR", "pt-PT",
];

proptest! {
    #[test]
    fn any_split_of_deltas_is_read_alike(
        text in spoken_text(),
        cuts in prop::collection::vec(0_usize..60, 0..6),
        locale in prop::sample::select(&LOCALES[..]),
    ) {
        let whole = read(locale, SPACED, &text);
        let mut verbaliser = verbaliser(locale, SPACED);
        let mut out = Vec::new();
        for (i, ch) in text.chars().enumerate() {
            if cuts.contains(&i) || cuts.len() == 5 {
                verbaliser.settle(false, &mut out);
            }
            verbaliser.push(Spoken::at(ch, i as u32));
        }
        verbaliser.settle(true, &mut out);
        prop_assert_eq!(out, whole);
    }

    #[test]
    fn every_spoken_character_knows_where_it_came_from(
        text in spoken_text(),
        locale in prop::sample::select(&LOCALES[..]),
    ) {
        let spoken = read(locale, Conventions::DEFAULT, &text);
        let chars = text.chars().count() as u32;
        let mut last = (0, 0);
        for s in &spoken {
            prop_assert!(s.from < s.to && s.to <= chars, "{s:?}");
            prop_assert!(s.from >= last.0 && s.to >= last.1, "{s:?} behind {last:?}");
            last = (s.from, s.to);
        }
    }

    #[test]
    fn no_digit_is_left(
        text in spoken_text().prop_filter("passed through", |t| !t.contains("<<")),
        locale in prop::sample::select(&LOCALES[..]),
    ) {
        for conventions in [Conventions::DEFAULT, SPACED] {
            let spoken = say(locale, conventions, &text);
            prop_assert!(!spoken.contains(|c: char| c.is_ascii_digit()), "{spoken:?}");
        }
    }
}

/// Characters that rules look at for each character of text, at most: each is asked by about twenty rules, of which
/// few look further than a word.
const LOOKS_PER_CHAR_MAX: usize = 4_000;

#[test]
fn work_grows_with_the_length_of_the_text_only() {
    for unit in [
        "a",
        "1",
        "1.",
        "1. ",
        "A. ",
        "1 ",
        "a.",
        "a@",
        "A.",
        "$",
        "1,",
        "I",
        "<<",
        "_a",
        "+1-",
        "é",
        "#a",
        "0",
        "9,",
        "https://a",
        "a/",
        "_",
        "-",
        "(",
        "\"",
        "%",
        "a-",
        "A",
        "x²",
    ] {
        let text: String = unit.chars().cycle().take(20_000).collect();
        for locale in ["en-US", "de-DE", "es-ES", "fr-FR", "it-IT", "nl-NL", "pt-BR"] {
            super::scan::WORK.with(|work| work.set(0));
            say(locale, Conventions::DEFAULT, &text);
            let work = super::scan::WORK.with(std::cell::Cell::get);
            let looks = work / text.len();
            assert!(work <= text.len() * LOOKS_PER_CHAR_MAX, "{locale} {unit:?}: {looks}");
        }
    }
}
