use super::*;
use crate::text::{sanitize, spoken};
use proptest::prelude::*;

fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

fn live() -> Passage {
    Passage::new(TextOptions::default(), LiveSettings::default())
}

/// A passage that was given each delta at its time.
fn given(deltas: &[(u64, &str)]) -> Passage {
    let mut passage = live();
    for (at, delta) in deltas {
        passage.push(delta, ms(*at));
    }
    passage
}

/// All chunks that can be cut at one moment.
fn cut_all(passage: &mut Passage, at: u64, need: Need) -> Vec<String> {
    std::iter::from_fn(|| passage.cut(ms(at), need)).map(|c| c.text).collect()
}

/// The first moment up to `until` at which a chunk can be cut, and the chunk.
fn first_cut(passage: &mut Passage, until: u64) -> Option<(u64, Chunk)> {
    (0..=until).find_map(|t| passage.cut(ms(t), Need::Relaxed).map(|c| (t, c)))
}

#[test]
fn a_first_chunk_is_cut_when_its_wait_is_over() {
    let mut passage = live();
    let mut cut = None;
    for (k, word) in "He walked slowly through the old garden".split(' ').enumerate() {
        let at = 30 * k as u64;
        passage.push(&format!("{}{word}", if k == 0 { "" } else { " " }), ms(at));
        cut = cut.or_else(|| passage.cut(ms(at), Need::Relaxed).map(|c| (at, c)));
    }
    let (at, chunk) = cut.unwrap();
    assert_eq!((at, chunk.text.as_str()), (90, "He walked slowly"));
    assert_eq!(chunk.tail, Tail::Open);
}

#[test]
fn a_finished_sentence_does_not_wait_for_the_next_delta() {
    for (text, cut_at, spoken) in [
        ("Please hold the line. ", 80, "Please hold the line."),
        ("I am looking that up.", 150, "I am looking that up."),
        ("Yes. ", 400, "Yes."),
        ("The answer is 42.", 400, "The answer is forty-two."),
    ] {
        let (at, chunk) = first_cut(&mut given(&[(0, text)]), 4_000).unwrap();
        assert_eq!((at, chunk.text.as_str()), (cut_at, spoken));
        assert_eq!(chunk.tail, Tail::Final, "{text}");
    }
}

#[test]
fn a_sentence_with_its_lookahead_is_cut_at_once() {
    let text = "Hello there, my friend. Today we will look at the old garden behind the house.";
    let chunk = given(&[(0, text)]).cut(ms(0), Need::Relaxed).unwrap();
    assert_eq!(chunk.text, "Hello there, my friend.");
    let seen = " Today we will look at the old garden behind the";
    assert_eq!(chunk.tail, Tail::Lookahead(seen.to_owned()));
}

#[test]
fn later_chunks_take_as_many_sentences_as_fit_and_only_what_is_needed_early() {
    let sentence = "This is one of many sentences that are all alike. ";
    let mut passage = given(&[(0, &sentence.repeat(12))]);
    assert_eq!(passage.cut(ms(0), Need::Relaxed).unwrap().text.len(), 49);
    assert_eq!(passage.cut(ms(0), Need::Relaxed).unwrap().text.len(), 7 * 50 - 1);
    assert_eq!(passage.cut(ms(0), Need::Relaxed).unwrap().text.len(), 2 * 50 - 1);
    assert_eq!(passage.cut(ms(0), Need::Relaxed), None, "49 characters of lookahead");
    assert_eq!(passage.cut(ms(80), Need::Urgent).unwrap().tail, Tail::Final);
}

#[test]
fn an_early_cut_leaves_no_stub_of_a_sentence() {
    for (pending, urgent) in [
        ("and then sat down in", None),
        ("and then sat down in the shade", Some("and then sat down")),
        (
            "and then sat down in the shade under the trees. ",
            Some("and then sat down in the shade under the trees."),
        ),
        ("and then sat down in the shade under the trees.", Some("and then sat down in the shade")),
        ("together with him, since the old", Some("together with him,")),
    ] {
        // The first chunk is cut inside the sentence.
        let mut passage = given(&[(0, "He walked slowly with his friend ")]);
        assert!(passage.cut(ms(80), Need::Relaxed).is_some());
        passage.push(pending, ms(90));
        assert_eq!(passage.cut(ms(95), Need::Relaxed), None);
        let chunk = passage.cut(ms(95), Need::Urgent).map(|c| c.text);
        assert_eq!(chunk.as_deref(), urgent, "{pending}");
    }
}

#[test]
fn after_a_stall_everything_known_is_spoken() {
    let mut passage = given(&[(0, "Hm")]);
    assert_eq!(first_cut(&mut passage, 1_000).unwrap().0, 400);
    passage.push(" so it", ms(1_000));
    assert_eq!(passage.cut(ms(1_399), Need::Urgent), None);
    assert_eq!(cut_all(&mut passage, 1_400, Need::Urgent), ["so it"]);
}

#[test]
fn a_flush_speaks_everything_and_cuts_there() {
    let mut passage = given(&[(0, "Five more")]);
    passage.flush(ms(0));
    passage.push(" and six", ms(0));
    passage.flush(ms(0));
    passage.flush(ms(0));
    let first = passage.cut(ms(0), Need::Relaxed).unwrap();
    assert_eq!((first.text.as_str(), first.flushed, &first.raw), ("Five more", true, &(0..9)));
    assert_eq!(first.tail, Tail::Lookahead(" and six".to_owned()));
    let second = passage.cut(ms(0), Need::Relaxed).unwrap();
    assert_eq!((second.text.as_str(), second.flushed, second.tail), ("and six", true, Tail::Final));
    assert_eq!(passage.cut_to(), 17);
    passage.end(ms(0));
    assert!(passage.is_drained(), "no lone period is left to say");
}

#[test]
fn a_flush_at_the_end_has_the_final_period() {
    let mut passage = given(&[(0, "Good night")]);
    passage.flush(ms(0));
    passage.end(ms(0));
    assert_eq!(cut_all(&mut passage, 0, Need::Relaxed), ["Good night."]);
}

#[test]
fn text_that_grows_extends_the_lookahead_of_the_chunk_before_it() {
    let mut passage = given(&[(0, "The answer is yes, ")]);
    let chunk = passage.cut(ms(80), Need::Relaxed).unwrap();
    assert_eq!((chunk.text.as_str(), chunk.tail), ("The answer is yes,", Tail::Open));
    passage.push("and the rea", ms(120));
    assert_eq!(passage.tail(), Tail::Lookahead(" and the".to_owned()));
    passage.push("son is", ms(130));
    passage.end(ms(140));
    assert_eq!(passage.tail(), Tail::Lookahead(" and the reason is.\n".to_owned()));
    assert_eq!(cut_all(&mut passage, 140, Need::Relaxed), ["and the reason is."]);
    assert_eq!(passage.tail(), Tail::Final);
}

#[test]
fn nothing_to_say_gives_no_chunk() {
    for text in ["", " \n\t ", "?!... ,, ;", "**", "<br/>", "```x```", "🎉", "\u{0}\u{fffd}"] {
        let mut passage = given(&[(0, text)]);
        passage.flush(ms(10));
        assert_eq!(passage.cut(ms(5_000), Need::Urgent), None, "{text:?}");
        passage.end(ms(5_000));
        assert_eq!(passage.cut(ms(9_000), Need::Urgent), None, "{text:?}");
        assert!(passage.is_drained());
        assert_eq!(passage.cut_to(), text.chars().count());
    }
}

#[test]
fn no_live_chunk_is_only_marks() {
    let mut passage = given(&[(0, &"-.".repeat(400)), (10, " so "), (10, &"!?".repeat(400))]);
    assert_eq!(cut_all(&mut passage, 90, Need::Urgent), ["so"]);
    passage.end(ms(90));
    assert_eq!(cut_all(&mut passage, 90, Need::Urgent), Vec::<String>::new());
    let mut passage = given(&[(0, &format!("{}.", "d".repeat(350)))]);
    passage.end(ms(0));
    let chunks = cut_all(&mut passage, 0, Need::Relaxed);
    assert_eq!(chunks.len(), 2);
    assert!(chunks.iter().all(|c| c.contains('d') && c.len() <= CAP), "{chunks:?}");
}

const CAP: usize = crate::text::CHUNK_CHARS;

#[test]
fn a_text_without_a_good_place_is_cut_all_the_same() {
    for (unit, options, ends) in [
        // Between numbers, where no live cut would be made by choice.
        ("1000 ", TextOptions { verbalize: false, ..TextOptions::default() }, "0"),
        // Between two families, never inside one.
        (
            "👩\u{200d}👧\u{200d}👦",
            TextOptions { emoji: false, verbalize: false, ..TextOptions::default() },
            "👦",
        ),
        ("e\u{323}\u{306}\u{1ab0}", TextOptions::default(), "\u{1ab0}"),
    ] {
        let mut passage = Passage::new(options, LiveSettings::default());
        passage.push("A", ms(0));
        passage.push(&unit.repeat(240), ms(0));
        let chunk = passage.cut(ms(0), Need::Relaxed).expect("cap and lookahead are there");
        assert!(chunk.spans.len() <= CAP && chunk.text.ends_with(ends), "{chunk:?}");
    }
}

#[test]
fn held_markup_is_let_go_when_its_time_is_over() {
    let mut passage = given(&[(0, "One. <break "), (1_500, "time=\"1s\"/> Two. ")]);
    passage.end(ms(1_500));
    assert_eq!(cut_all(&mut passage, 1_500, Need::Relaxed), ["One. Two."]);
    let mut passage = given(&[(0, "One. <break "), (1_500, &"so ".repeat(100))]);
    passage.end(ms(1_500));
    assert!(cut_all(&mut passage, 1_500, Need::Relaxed).concat().len() > 90);
    let mut passage = given(&[(0, "see [the docs and")]);
    assert_eq!(first_cut(&mut passage, 1_000).unwrap().1.text, "see [the docs and");
}

#[test]
fn offsets_point_into_the_raw_text() {
    let raw = "  **Cafe\u{301}** &amp; <b>bar</b>\u{200b}\n";
    let mut passage = given(&[(0, raw)]);
    passage.end(ms(0));
    let chunk = passage.cut(ms(0), Need::Relaxed).unwrap();
    assert_eq!(chunk.text, "Café and bar.");
    let raw: Vec<char> = raw.chars().collect();
    let origin = |k: usize| -> String {
        raw[chunk.spans[k].start as usize..chunk.spans[k].end as usize].iter().collect()
    };
    assert_eq!([origin(0), origin(3), origin(5), origin(9)], ["C", "e\u{301}", "&amp;", "b"]);
    assert_eq!((origin(12).as_str(), chunk.raw), ("", 0..raw.len()));
    let stats = passage.stats();
    assert_eq!((stats.raw_chars, stats.pending_chars), (raw.len(), 0));
    // Both blanks in front, four stars, two tags, the zero-width space and the line feed at the end.
    assert_eq!(stats.dropped_chars, 2 + 4 + 7 + 2);
}

#[test]
fn a_text_ten_times_as_long_costs_ten_times_as_much() {
    let unit = "Hello **there**, [my](x) <b>friend</b>. It is 3.14 &amp; more; isn't it? ";
    let work = |n: usize, delta_chars: usize| {
        let mut passage = live();
        let text: Vec<char> = unit.chars().cycle().take(n).collect();
        let mut chunks = 0;
        for delta in text.chunks(delta_chars) {
            passage.push(&delta.iter().collect::<String>(), ms(0));
            chunks += usize::from(passage.cut(ms(0), Need::Relaxed).is_some());
        }
        passage.end(ms(0));
        chunks += cut_all(&mut passage, 0, Need::Relaxed).len();
        assert!(chunks > n / CAP / 2);
        assert!(passage.text.capacity() <= 2 * n.next_power_of_two().max(1_024));
        passage.front.work()
    };
    for delta_chars in [1, 100_000] {
        let (small, large) = (work(10_000, delta_chars), work(100_000, delta_chars));
        assert!(large <= 11 * small, "{delta_chars}: {small} -> {large}");
    }
}

#[test]
fn work_grows_with_the_text_whatever_it_is_made_of() {
    /// Four times the text, and what is not yet worked off at its end.
    const GROWTH_MAX: usize = 5;
    let work = |unit: &str, chars: usize| {
        let options = TextOptions { inline_words: true, ..TextOptions::default() };
        let mut passage = Passage::new(options, LiveSettings::default());
        let text: String = unit.chars().cycle().take(chars).collect();
        crate::text::verbalise::take_work();
        passage.push(&text, ms(0));
        passage.end(ms(0));
        passage.front.work() + crate::text::verbalise::take_work()
    };
    for unit in [
        "1",
        "1,",
        "$1",
        "1/",
        "0 ",
        "[",
        "((",
        "{\"",
        "{\"word\":\"a\"}",
        "<a ",
        "<b>",
        "<sub alias=\"a\">",
        "<say-as interpret-as=\"digits\">1",
        "<spell><spell>",
        "<!--",
        "```",
        "**",
        "_",
        "&#",
        "&amp;",
        "https://x.org/a?b=1&",
        "/usr",
        "a@b.",
        "a\u{301}",
        "A.",
        "<<",
        "|",
        "\\",
        "🎉",
    ] {
        let (few, many) = (work(unit, 25_000), work(unit, 100_000));
        assert!(many <= GROWTH_MAX * few.max(1), "{unit}: {few} -> {many}");
    }
}

/// Text rich in everything the front end looks at.
fn rich_text() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        "[a-zA-Z]{1,9}",
        "[ \n\t\r.,;:!?…'\"”)(-]{1,3}",
        "[0-9]{1,3}",
        "(\\*\\*|\\*|_|`|```|~~|#|\\[|\\]|\\]\\(|\\(|\\)|<|>|<b>|</p>|<br/>|<!--|-->|&|&amp;|\\||\\\\|- |\n# )",
        "(e\u{301}|\u{ad}|\u{200d}|🎉|👩\u{200d}👧|\u{1b}\\[31m|\u{0}|\u{a0}|\u{fffd}|가|\u{11a8})",
        "(<break time=\"1s\"/>|<break|<say-as interpret-as=\"date\" format=\"dmy\">|</say-as>|<sub alias=\"x\">|</sub>|1/2/2026)",
        "(\\{\"word\": \"a1\", \"pronounce\": \"b\"\\}|\\{\"word\"|<phoneme ph=\"x\">|<emotion/>)",
        "(Dr\\. |U\\.S\\. |a\\.m\\. |http://x\\.org/a_b |[A-Z][a-z]+\\. )",
    ];
    proptest::collection::vec(piece, 0..60).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn any_split_gives_the_same_characters_with_the_same_offsets(
        text in rich_text(), sizes in proptest::collection::vec(1_usize..9, 1..20), literal: bool,
    ) {
        let rules = TextOptions { inline_words: true, ..TextOptions::default() };
        let options = if literal { TextOptions::literal() } else { rules };
        let whole = spoken(&text, &options);
        let chars: Vec<char> = text.chars().collect();
        let mut split = Passage::new(options, LiveSettings::default());
        let mut bytes = split.clone();
        let mut rest = &chars[..];
        for size in sizes.iter().cycle() {
            let (delta, behind) = rest.split_at((*size).min(rest.len()));
            split.push(&delta.iter().collect::<String>(), ms(0));
            rest = behind;
            if rest.is_empty() {
                break;
            }
        }
        for delta in text.as_bytes().chunks(sizes[0]) {
            bytes.push_bytes(delta, ms(0));
        }
        for mut passage in [split, bytes] {
            passage.end(ms(0));
            if is_speakable(&whole) {
                prop_assert_eq!(&passage.text, &whole);
            } else {
                prop_assert!(passage.is_drained());
            }
        }
    }

    #[test]
    fn offsets_are_monotone_and_inside_the_text(text in rich_text()) {
        let chars = text.chars().count() as u32;
        let out = spoken(&text, &TextOptions::default());
        for pair in out.windows(2) {
            prop_assert!(pair[0].from <= pair[1].from && pair[0].to <= pair[1].to, "{:?}", pair);
        }
        prop_assert!(out.iter().all(|s| s.from <= s.to && s.to <= chars));
    }

    #[test]
    fn guarded_text_is_composed_and_clean(text in rich_text()) {
        use unicode_normalization::UnicodeNormalization;
        let out = sanitize(&text, &TextOptions::default());
        prop_assert!(!out.contains(crate::text::spoken::is_unheard));
        prop_assert!(!out.contains(crate::text::spoken::is_emoji));
        // An escape sequence or sign dropped between a letter and its mark may leave them side by side.
        if !text.contains(['<', '*', '`', '[', '&', '#', '|', '_', '~', '\\']) {
            prop_assert_eq!(out.nfc().collect::<String>(), out);
        }
    }

    #[test]
    fn chunks_tile_the_text_whatever_the_timing(
        text in rich_text(),
        steps in proptest::collection::vec((1_usize..12, 0_u64..300, any::<bool>(), 0_u8..20), 1..40),
    ) {
        let options = TextOptions::literal();
        let mut passage = Passage::new(options.clone(), LiveSettings::default());
        let chars: Vec<char> = text.chars().collect();
        let (mut rest, mut now, mut chunks) = (&chars[..], 0, Vec::<Chunk>::new());
        let mut shown: Vec<Tail> = Vec::new();
        let mut flushes = 0;
        for (size, wait, urgent, other) in steps.iter().cycle() {
            now += wait;
            let need = if *urgent { Need::Urgent } else { Need::Relaxed };
            if let Some(chunk) = passage.cut(ms(now), need) {
                shown.push(chunk.tail.clone());
                chunks.push(chunk);
            } else if let Some(tail) = shown.last_mut() {
                *tail = passage.tail();
            }
            let (delta, behind) = rest.split_at((*size).min(rest.len()));
            passage.push(&delta.iter().collect::<String>(), ms(now));
            if *other == 0 {
                passage.flush(ms(now));
                flushes += 1;
            }
            rest = behind;
            if rest.is_empty() {
                break;
            }
        }
        passage.end(ms(now));
        while let Some(chunk) = passage.cut(ms(now), Need::Relaxed) {
            shown.push(chunk.tail.clone());
            chunks.push(chunk);
        }
        prop_assert!(passage.is_drained());
        let mut at = 0;
        for (k, chunk) in chunks.iter().enumerate() {
            prop_assert_eq!(chunk.raw.start, at);
            at = chunk.raw.end;
            prop_assert_eq!(chunk.first, k == 0);
            prop_assert!(chunk.text.chars().any(char::is_alphanumeric));
            prop_assert_eq!(chunk.text.trim(), &chunk.text);
            prop_assert_eq!(chunk.text.chars().count(), chunk.spans.len());
            prop_assert!(chunk.spans.len() <= CAP);
            prop_assert!(chunk.spans.iter().all(|s| s.end as usize <= chunk.raw.end));
            if let (Tail::Lookahead(seen), Some(next)) = (&shown[k], chunks.get(k + 1)) {
                let input = next.input(&Tail::Open);
                prop_assert!(input.starts_with(seen.trim_end_matches('\n')), "{:?} {:?}", seen, input);
                prop_assert!(!seen.ends_with('\n') || next.last, "{:?} {:?}", seen, next);
                prop_assert!(seen.trim_end_matches('\n').chars().count() <= 51);
            }
        }
        let visible = |s: &str| s.chars().filter(|c| !is_edge_blank(*c)).collect::<String>();
        let joined: String = chunks.iter().map(|c| visible(&c.text)).collect();
        let whole = visible(&sanitize(&text, &options));
        if flushes == 0 && !joined.is_empty() {
            // Only marks behind the last word can stay unspoken: they came after it was cut.
            let left = whole.strip_prefix(&joined);
            prop_assert!(left.is_some_and(|l| !l.contains(char::is_alphanumeric)), "{:?} {:?}", joined, whole);
        }
        if flushes == 0 && joined.is_empty() {
            prop_assert!(!whole.contains(char::is_alphanumeric));
        }
    }

    #[test]
    fn nothing_is_cut_before_the_deadline_that_was_told(
        deltas in proptest::collection::vec(("[a-zA-Z .,!?<>b\\[*0-9]{1,14}", 0_u64..200), 1..12),
        urgent: bool,
    ) {
        let need = if urgent { Need::Urgent } else { Need::Relaxed };
        let mut passage = live();
        let mut now = 0;
        for (delta, wait) in &deltas {
            passage.push(delta, ms(now));
            while passage.cut(ms(now), need).is_some() {}
            let until = passage.next_deadline(need).unwrap_or(ms(now + wait)).min(ms(now + wait));
            for t in now..u64::try_from(until.as_millis()).unwrap() {
                prop_assert_eq!(passage.clone().cut(ms(t), need), None);
            }
            now += wait;
        }
    }

    #[test]
    fn no_input_makes_it_panic(
        deltas in proptest::collection::vec((proptest::collection::vec(any::<u8>(), 0..20), ".{0,12}", 0_u64..300, 0_u8..6), 0..20),
    ) {
        let mut passage = live();
        let mut now = 0;
        for (bytes, text, wait, step) in &deltas {
            now += wait;
            passage.push_bytes(bytes, ms(now));
            passage.push(text, ms(now));
            match step {
                0 => passage.flush(ms(now)),
                1 => drop(passage.tail()),
                2 => passage.end(ms(now)),
                _ => drop(passage.cut(ms(now), Need::Urgent)),
            }
        }
        passage.end(ms(now));
        while passage.cut(ms(now), Need::Urgent).is_some() {}
        prop_assert!(passage.is_drained());
    }
}
