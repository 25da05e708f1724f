use super::*;

fn guarded(text: &str, options: TextOptions) -> String {
    let (mut guard, mut out) = (Guard::new(options), Vec::new());
    for (i, c) in text.chars().enumerate() {
        guard.push(Spoken::at(c, i as u32), &mut out);
    }
    guard.release(&mut out);
    out.iter().map(|s| s.ch).collect()
}

fn check(table: &[(&str, &str)]) {
    for (raw, spoken) in table {
        assert_eq!(guarded(raw, TextOptions::default()), *spoken, "{raw:?}");
    }
}

#[test]
fn emphasis_headings_and_bullets_lose_their_signs() {
    check(&[
        ("## Plan\n**Buy** milk\n* `call` home\n", " Plan\nBuy milk\n call home\n"),
        ("# One\n### Two ##\n", " One\n Two \n"),
        ("a *b* c _d_ __e__ ***f*** ~~g~~", "a b c d e f g"),
        ("*Note*: **a**b", "Note: ab"),
        ("- one\n+ two\n• three\n  - four", " one\n two\n three\n   four"),
        ("- [ ] open\n- [x] done", "  open\n  done"),
        ("above\n---\n***\n===\nbelow", "above\n\n\n\nbelow"),
        ("> quoted\n>> twice", " quoted\n twice"),
        ("say ``x`` now", "say x now"),
    ]);
}

#[test]
fn signs_that_are_not_markup_stay() {
    let text = "Two * three * four, my_file_name, #1 too, a*b, 2*3, ~5, C# and x_1.";
    check(&[
        (text, text),
        ("-5 degrees\n-On deck\n> 5", "-5 degrees\n-On deck\n 5"),
        ("a - b = c + d | e", "a - b = c + d | e"),
        ("see [1] and [sic].", "see [1] and [sic]."),
        ("x < y, 5 > 3, <3, a <= b", "x < y, 5 > 3, <3, a <= b"),
        ("AT&T, R&D & co; &unknown; &", "AT&T, R&D & co; &unknown; &"),
        (r"C:\Users", r"C:\Users"),
        ("https://x.org/a_b_c?d=1&e=2#f", "https://x.org/a_b_c?d=1&e=2#f"),
        ("if a <b and c> d", "if a <b and c> d"),
    ]);
}

#[test]
fn links_are_read_without_their_targets() {
    check(&[
        ("see [the **docs**](https://x.org/a_(b)) now", "see the docs now"),
        ("![a cat](cat.png) sits", "a cat sits"),
        ("[a [b] c](u) d", "a [b] c d"),
        ("note[^1] here", "note here"),
        ("<https://x.org> or <me@x.org>", "https://x.org or me@x.org"),
        ("[no end", "[no end"),
        ("[broken](no end\nnext", "broken\nnext"),
    ]);
}

#[test]
fn tables_are_read_cell_by_cell() {
    check(&[(
        "| Name | Price |\n|:-----|------:|\n| Bread | 3 |\nend",
        " Name, Price\n\n Bread, 3\nend",
    )]);
}

#[test]
fn code_blocks_are_skipped_and_never_mute_the_rest() {
    check(&[
        ("Run: ```python\nprint(1)\n```\nDone.", "Run: \nDone."),
        ("a\n~~~\nx ``` y\n~~~\nb", "a\n\nb"),
        ("a ```x``` b", "a  b"),
    ]);
    let options = TextOptions { skip_chars: 20, ..TextOptions::default() };
    assert_eq!(guarded("a ```12345678901234567890 heard", options), "a  heard");
}

#[test]
fn tags_are_dropped_and_keep_words_apart_where_they_break() {
    check(&[
        ("First part. <break time=\"1.5s\" /> Second.", "First part.  Second."),
        ("one <break strength=\"none\"/>two <break time='0ms'/>three", "one two three"),
        ("One.<break/>Two<br>three", "One. Two three"),
        ("<b>B</b>old <span class='x y'>te</span>xt", "Bold text"),
        ("<speak>Hi <prosody rate=\"slow\">you</prosody> &amp; me</speak>", "Hi you & me"),
        ("a <!-- no > b --> c", "a  c"),
        ("<?xml version=\"1.0\"?><!DOCTYPE x>text", "text"),
        ("Stop <|im_end|> here<|text_split|>now", "Stop  here now"),
        ("&lt;b&gt; &#65;&#x42;&nbsp;&#0;&quot;", "<b> AB \""),
        ("<sub alias=\"a > b\">x</sub>", "a > b"),
    ]);
}

#[test]
fn emoji_are_dropped_and_never_glue_words() {
    check(&[
        ("✅ Done 🎉🎉 and ⚙ ready⚙!", " Done  and  ready!"),
        ("one🎉two", "one two"),
        ("(🎉yes)", "(yes)"),
    ]);
}

#[test]
fn escaped_signs_are_text() {
    check(&[(r"\*not\* \_x\_ \# a\\b", "*not* _x_ # a\\b")]);
}

#[test]
fn everything_off_passes_everything() {
    let text = "**a** <b>c</b> &amp; 🎉 [d](e) ```f```";
    assert_eq!(guarded(text, TextOptions::literal()), text);
}

#[test]
fn a_construct_without_end_is_let_go_at_the_limit() {
    let options = TextOptions { hold_chars: 10, ..TextOptions::default() };
    let (mut guard, mut out) = (Guard::new(options), Vec::new());
    for (i, c) in "[123456789".chars().enumerate() {
        guard.push(Spoken::at(c, i as u32), &mut out);
    }
    assert_eq!((out.len(), guard.holds_from()), (0, Some(0)));
    guard.push(Spoken::at('x', 10), &mut out);
    assert_eq!((out.len(), guard.holds_from()), (11, None));
}

#[test]
fn a_slow_tag_is_dropped_and_so_is_its_rest() {
    let (mut guard, mut out) = (Guard::new(TextOptions::default()), Vec::new());
    let mut at = 0;
    for piece in ["One. <break ", "time=\"1s\"/>two, a <b", "ig"] {
        for c in piece.chars() {
            guard.push(Spoken::at(c, at), &mut out);
            at += 1;
        }
        guard.release(&mut out);
    }
    assert_eq!(out.iter().map(|s| s.ch).collect::<String>(), "One. two, a <big");
}

#[test]
fn work_grows_with_the_text_and_not_faster() {
    // Each character is looked at by the rule of one construct, and that sees at most `hold_chars` of them.
    for unit in ["a", "[", "<b ", "*", "`x", "&a", "| - ", "\\", "](", "[a](b) ", "<!-", "~~~"] {
        let work = |n: usize| {
            let mut guard = Guard::new(TextOptions::default());
            let mut out = Vec::new();
            let text = unit.repeat(n);
            for (i, c) in text.chars().enumerate() {
                guard.push(Spoken::at(c, i as u32), &mut out);
                out.clear();
            }
            guard.work.get()
        };
        let (small, large) = (work(5_000), work(20_000));
        assert!(large <= small * 4 + small / 4 + 1_000, "{unit:?}: {small} -> {large}");
    }
}

#[test]
fn what_a_tag_asks_in_vain_is_told_once_with_its_place() {
    let told = |text: &str, options: TextOptions| -> Vec<(String, u32, u32)> {
        let (mut guard, mut out) = (Guard::new(options), Vec::new());
        for (i, c) in text.chars().enumerate() {
            guard.push(Spoken::at(c, i as u32), &mut out);
        }
        guard.release(&mut out);
        guard.take_notices().into_iter().map(|n| (n.what, n.from, n.to)).collect()
    };
    let text = "<speak>A <phoneme ph=\"x\">b</phoneme> <emotion value='sad'/><phoneme>c</phoneme> \
        <say-as interpret-as=\"bleep\">d</say-as> <b>e</b><say-as interpret-as=\"date\">f</say-as></speak>";
    let all = told(text, TextOptions::default());
    let names: Vec<&str> = all.iter().map(|(what, ..)| what.as_str()).collect();
    assert_eq!(names, ["phoneme", "emotion", "say-as bleep"]);
    assert_eq!((all[0].1, all[0].2), (9, 25));
    assert_eq!(told(text, TextOptions { ssml: false, ..TextOptions::default() }), []);
    let many: String = (0..100).map(|i| format!("<t{i}>")).collect();
    assert_eq!(told(&many, TextOptions::default()).len(), NOTICES_MAX);
    let long = format!("<{}>", "t".repeat(NOTICE_CHARS_MAX + 1));
    assert_eq!(told(&long, TextOptions::default())[0].0.len(), NOTICE_CHARS_MAX);
}

#[test]
fn an_inline_word_is_read_without_its_pronunciation() {
    let options = || TextOptions { inline_words: true, ..TextOptions::default() };
    for (raw, spoken) in [
        (
            r#"Take {"word": "dupilumab", "pronounce": "x}"} twice."#,
            "Take {\"word\": \"dupilumab\", \"pronounce\": \"x}\"} twice.",
        ),
        (r#"Take {"word": "dupilumab", "pronounce": "duː"} twice."#, "Take dupilumab twice."),
        (r#"{ "pronounce":"a","word":"b"}"#, "b"),
        (r#"{"word": 7} and {a} and {"x"#, r#"{"word": 7} and {a} and {"x"#),
    ] {
        assert_eq!(guarded(raw, options()), spoken, "{raw}");
        assert_eq!(guarded(raw, TextOptions::default()), raw, "{raw}");
    }
}
