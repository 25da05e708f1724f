//! Text that arrives while it is spoken: flushes, pauses and the end.

use super::*;
use crate::text::{ChunkLimits, LiveSettings, Passage};

const ID: ContextId = ContextId(0);

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

fn open(engine: &mut Engine) {
    let passage = Passage::new(TextOptions::default(), LiveSettings::default());
    engine.speak(ID, settings(1), Source::Live(Box::new(passage)));
}

/// Runs until nothing happens before `until` any more; time jumps to the next thing that time alone brings. Returns what
/// was made: frames, passages closed, flushes answered, and whether it was the end.
fn run_to(engine: &mut Engine, from: Duration, until: Duration) -> Made {
    let mut made = Made::default();
    let mut now = from;
    loop {
        let step = engine.step(now, |_| false);
        while let Some(job) = engine.next_job() {
            made.frames += job.rows.first().map_or(0, Vec::len);
            made.closed += usize::from(job.end == window::End::Passage);
            made.flushed.extend(job.marks.iter().filter_map(|(_, event)| match event {
                Event::Flushed { samples } => Some(*samples),
                _ => None,
            }));
            made.samples = job.last.map_or(made.samples, |last| Some(last.unwrap().samples));
        }
        if step.tokens > 0 {
            now += ms(1);
            continue;
        }
        match step.wake_at {
            Some(at) if at.max(now) <= until => now = at.max(now + ms(1)),
            _ => return made,
        }
    }
}

#[derive(Debug, Default, PartialEq, Eq)]
struct Made {
    frames: usize,
    closed: usize,
    flushed: Vec<u64>,
    samples: Option<u64>,
}

const SENTENCE: &str = "This sentence is spoken while the next one is not written yet.";

#[test]
fn whoever_waits_for_text_is_woken_by_no_moment_that_has_passed() {
    let mut engine = engine(ROOMY, BUDGET);
    let passage = Passage::new(TextOptions::default(), LiveSettings::default());
    let standing = Standing::new(5, Some(ms(6000)));
    let listening = Settings { standing, ..settings(1) };
    engine.speak(ID, listening, Source::Live(Box::new(passage)));
    engine.voice(ID).unwrap().push(SENTENCE, ms(0));
    engine.voice(ID).unwrap().flush(ms(0));
    assert!(run_to(&mut engine, ms(0), ms(2000)).frames > 0);
    for now in [ms(2000), ms(60_000)] {
        engine.step(now, |_| false);
        let step = engine.step(now, |_| false);
        assert!(step.wake_at.is_none_or(|at| at > now), "{:?} at {now:?}", step.wake_at);
    }
}

#[test]
fn what_of_a_text_has_no_effect_is_told_with_its_first_chunk() {
    let text = "Say <phoneme ph=\"x\">tomato</phoneme>.";
    let (chunks, notices) = text::whole(text, &TextOptions::default(), ChunkLimits::default());
    let whole = Source::Whole { chunks: chunks.into(), raw_chars: 0, notices };
    let mut passage = Passage::new(TextOptions::default(), LiveSettings::default());
    passage.push(text, ms(0));
    passage.end(ms(0));
    for source in [whole, Source::Live(Box::new(passage))] {
        let mut engine = engine(ROOMY, BUDGET);
        engine.speak(ID, settings(1), source);
        let mut told = Vec::new();
        for now in 0.. {
            engine.step(ms(now), |_| false);
            let Some(job) = engine.next_job() else { continue };
            told.extend(job.marks.into_iter().filter_map(|(_, event)| match event {
                Event::Notice(notice) => Some((notice.what, notice.from, notice.to)),
                _ => None,
            }));
            if job.last.is_some() {
                break;
            }
        }
        assert_eq!(told, [("phoneme".to_owned(), 4, 20)]);
    }
}

#[test]
fn a_flush_lets_everything_go_and_is_answered() {
    let mut engine = engine(ROOMY, BUDGET);
    open(&mut engine);
    engine.voice(ID).unwrap().push(SENTENCE, ms(0));
    engine.voice(ID).unwrap().flush(ms(0));
    let made = run_to(&mut engine, ms(0), ms(2000));
    assert_eq!((made.closed, made.flushed.len(), made.samples), (1, 1, None));
    assert_eq!(made.flushed[0], made.frames as u64 * 1920, "every frame of the sentence is out");
    engine.voice(ID).unwrap().push(SENTENCE, ms(8000));
    engine.voice(ID).unwrap().end(ms(8000));
    let rest = run_to(&mut engine, ms(8000), ms(9000));
    assert_eq!(rest.samples, Some((made.frames + rest.frames) as u64 * 1920));
}

#[test]
fn a_listener_that_runs_dry_gets_what_was_kept_back() {
    let mut engine = engine(ROOMY, BUDGET);
    open(&mut engine);
    engine.voice(ID).unwrap().push(SENTENCE, ms(0));
    let spoken = run_to(&mut engine, ms(0), ms(60_000));
    assert_eq!((spoken.closed, spoken.samples), (1, None), "{spoken:?}");
    assert!(spoken.frames > 0);
    // Four seconds of nothing change nothing.
    let nothing = run_to(&mut engine, ms(60_000), ms(64_000));
    assert_eq!(nothing, Made::default());
    engine.voice(ID).unwrap().end(ms(64_000));
    let end = run_to(&mut engine, ms(64_000), ms(65_000));
    assert_eq!(end.samples, Some(spoken.frames as u64 * 1920));
}

#[test]
fn text_with_nothing_to_say_is_done_without_a_sample() {
    for text in ["", " \n ", "...", "**"] {
        let mut engine = engine(ROOMY, BUDGET);
        open(&mut engine);
        engine.voice(ID).unwrap().push(text, ms(0));
        engine.voice(ID).unwrap().end(ms(0));
        let made = run_to(&mut engine, ms(0), ms(1000));
        assert_eq!((made.frames, made.samples), (0, Some(0)), "{text:?}");
    }
}

#[test]
fn the_split_of_a_text_that_is_all_there_changes_nothing() {
    let text = format!("{SENTENCE} {SENTENCE} {SENTENCE}");
    let codes = |pieces: Vec<&str>| {
        let mut engine = engine(ROOMY, BUDGET);
        open(&mut engine);
        for piece in pieces {
            engine.voice(ID).unwrap().push(piece, ms(0));
        }
        engine.voice(ID).unwrap().end(ms(0));
        undisturbed(&mut engine)
    };
    let whole = codes(vec![&text]);
    for size in [1, 3, 7] {
        let pieces = text.as_bytes().chunks(size).map(|p| std::str::from_utf8(p).unwrap());
        assert_eq!(codes(pieces.collect()), whole);
    }
}
