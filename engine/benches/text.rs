//! How fast is text read: guard, sanitise and cut?
//!
//! Budget: 7,000 deltas of one character, the engine asking after each, may cost 50 ms in all: 0.14 MB/s. Prose and text full
//! of numbers are read at 5 MB/s on one core; the way of the first delta is no longer than 50 µs.

use std::time::Duration;

use divan::Bencher;
use divan::counter::BytesCount;
use engine::text::{ChunkLimits, LiveSettings, Need, Passage, TextOptions, whole};

/// Characters of each text: a whole context at its limit.
const CHARS: usize = 100_000;

/// What is read: plain speech; numbers, dates and addresses of all kinds; every kind of markup; brackets that never close, each of which is held to the limit.
const TEXTS: [&str; 4] = ["prose", "numbers", "markup", "brackets"];

const PROSE: &str = "Our bakery opens at six in the morning, and by half past six the first trays are already on \
    the counter. Is there anything else you would like to know? Just ask! ";

const NUMBERS: &str = "Your total is $1,234.50, due 11/29/2026 at 3:45 PM. Call +1 (415) 555-0132 or see \
    https://example.com/help. Dr. Lee paid 5.3 million for 20 km of NASA cable in 2019. ";

const MARKUP: &str = "## Plan\n**Buy** [milk](https://example.com/a_(b)), *then* call `home` at 7 p.m. &amp; wait.\n\
    - one <break time=\"1s\"/> two 🎉\n- cafe\u{301} ```x```\n\n| a | b |\n|---|---|\n| 1 | 2 |\n";

fn main() {
    divan::main();
}

fn text(name: &str) -> String {
    let unit = match name {
        "prose" => PROSE,
        "numbers" => NUMBERS,
        "markup" => MARKUP,
        _ => "[",
    };
    unit.chars().cycle().take(CHARS).collect()
}

#[divan::bench(args = TEXTS, sample_count = 20)]
fn whole_text(bencher: Bencher<'_, '_>, name: &str) {
    let text = text(name);
    bencher.counter(BytesCount::of_str(&text)).bench_local(|| {
        whole(divan::black_box(&text), &TextOptions::default(), ChunkLimits::default())
    });
}

#[divan::bench(args = TEXTS, sample_count = 20)]
fn live_in_one_delta(bencher: Bencher<'_, '_>, name: &str) {
    let text = text(name);
    bencher.counter(BytesCount::of_str(&text)).bench_local(|| speak([text.as_str()]));
}

/// From the first characters of a context to what may be cut of them.
#[divan::bench]
fn first_delta(bencher: Bencher<'_, '_>) {
    bencher
        .with_inputs(|| Passage::new(TextOptions::default(), LiveSettings::default()))
        .bench_local_values(|mut passage| {
            passage.push(divan::black_box("Your total is $1,234.50, "), Duration::ZERO);
            passage.cut(Duration::ZERO, Need::Urgent).is_some()
        });
}

/// The engine asks after every delta.
#[divan::bench(args = TEXTS, sample_count = 20)]
fn live_character_by_character(bencher: Bencher<'_, '_>, name: &str) {
    let text = text(name);
    let characters: Vec<String> = text.chars().map(String::from).collect();
    bencher
        .counter(BytesCount::of_str(&text))
        .bench_local(|| speak(characters.iter().map(String::as_str)));
}

fn speak<'a>(deltas: impl IntoIterator<Item = &'a str>) -> usize {
    let mut passage = Passage::new(TextOptions::default(), LiveSettings::default());
    let mut chunks = 0;
    for delta in deltas {
        passage.push(delta, Duration::ZERO);
        chunks += usize::from(passage.cut(Duration::ZERO, Need::Urgent).is_some());
    }
    passage.end(Duration::ZERO);
    while passage.cut(Duration::ZERO, Need::Urgent).is_some() {
        chunks += 1;
    }
    chunks
}
