//! What the guards do to a context: attempts, what is kept of them, and when it fails.

use super::*;

const END: usize = SEMANTIC as usize;
const SPLIT: usize = END + 1;

/// One context whose CB0 says the script, attempt after attempt.
fn scripted(settings: Settings, script: &[usize], chunks: &[&str]) -> Spoken {
    counted(settings, script, chunks).0
}

/// The same, with what the guards counted.
fn counted(settings: Settings, script: &[usize], chunks: &[&str]) -> (Spoken, GuardHits) {
    let mut engine = engine_with(ROOMY, BUDGET, script);
    engine.speak(ContextId(0), settings, source(chunks));
    let spoken = undisturbed(&mut engine).remove(&ContextId(0)).unwrap();
    (spoken, engine.tally().guards)
}

fn strict() -> Settings {
    let guards =
        Guards { min_codes: 5, max_codes: 60, characters_per_second: 6.0..=24.0, silence: vec![7] };
    Settings { tries: 3, guards: Arc::new(guards), segments: Segments::Chunk, ..settings(1) }
}

/// Codes that are neither silent nor in a cycle.
fn speech(codes: usize, salt: usize) -> Vec<usize> {
    (0..codes).map(|i| 8 + (i * i + salt * i) % 53).collect()
}

fn exhausted(spoken: &Spoken) -> bool {
    spoken.outcome.as_ref().unwrap().as_ref().unwrap().guard_exhausted
}

fn said(spoken: &Spoken) -> Vec<usize> {
    spoken.rows[0].iter().map(|&c| usize::from(c)).collect()
}

#[test]
fn either_stop_symbol_ends_any_chunk() {
    for (inner, last) in [(SPLIT, END), (END, SPLIT)] {
        let (a, b) = (speech(12, 1), speech(9, 2));
        let script = [&a[..], &[inner], &b, &[last]].concat();
        let spoken = scripted(strict(), &script, &["Short one.", "Two."]);
        assert_eq!(said(&spoken), [a, b].concat());
        assert!(!exhausted(&spoken));
    }
}

#[test]
fn an_attempt_that_is_too_fast_is_said_again() {
    let text = "A text of more than thirty characters, so that its pace counts.";
    let (fast, good) = (speech(8, 1), speech(50, 2));
    let script = [&fast[..], &[END], &good, &[END]].concat();
    let spoken = scripted(strict(), &script, &[text]);
    assert_eq!(said(&spoken), good);
    assert!(!exhausted(&spoken));
}

#[test]
fn a_retry_goes_on_behind_what_was_sent() {
    let text = "A text of more than thirty characters, so that its pace counts.";
    let settings = Settings { segments: Segments::Frames, ..strict() };
    // Ten codes are on their way when the attempt ends too early.
    let (fast, rest) = (speech(14, 1), speech(40, 3));
    let script = [&fast[..], &[END], &rest, &[END]].concat();
    let spoken = scripted(settings, &script, &[text]);
    assert_eq!(said(&spoken), [&fast[..10], &rest].concat());
}

#[test]
fn when_the_tries_are_used_up_the_best_is_spoken_and_counted() {
    let text = "A text of more than thirty characters, so that its pace counts.";
    let (worst, best, worse) = (speech(6, 1), speech(20, 2), speech(9, 3));
    let script = [&worst[..], &[END], &best, &[END], &worse, &[END]].concat();
    let spoken = scripted(strict(), &script, &[text]);
    assert_eq!(said(&spoken), best);
    assert!(exhausted(&spoken));
}

#[test]
fn a_chunk_that_never_stops_ends_at_its_budget() {
    let text = "Yes.";
    let script: Vec<usize> = (0..3).flat_map(|salt| speech(60, salt)).collect();
    let (spoken, hits) = counted(strict(), &script, &[text]);
    assert_eq!(spoken.rows[0].len(), strict().guards.budget(text.len()));
    assert_eq!(hits, GuardHits { budget: 3, retries: 2, exhausted: 1, ..GuardHits::default() });
    assert!(exhausted(&spoken));
}

#[test]
fn a_loop_and_a_fall_into_silence_are_cut_off_and_said_again() {
    let text = "A text of more than thirty characters, so that its pace counts.";
    let good = speech(45, 5);
    for stuck in [vec![30, 31, 32], vec![7]] {
        let trouble: Vec<usize> = stuck.iter().copied().cycle().take(50).collect();
        let head = speech(8, 5);
        let script = [&head[..], &trouble[..30], &good, &[END]].concat();
        let window = window::Settings { first_frames: 40, ..window::Settings::default() };
        let (spoken, hits) = counted(Settings { window, ..strict() }, &script, &[text]);
        assert_eq!(said(&spoken), good, "{stuck:?}");
        assert_eq!((hits.repetition, hits.retries, hits.exhausted), (1, 1, 0), "{stuck:?}");
    }
}

#[test]
fn an_opening_of_silence_is_not_sent() {
    let window = window::Settings { first_frames: 40, ..window::Settings::default() };
    let settings = Settings { segments: Segments::Frames, window, ..strict() };
    let text = "A text of more than thirty characters, so that its pace counts.";
    let mut silent = speech(40, 1);
    (0..40).step_by(2).for_each(|i| silent[i] = 7);
    let good = speech(45, 5);
    let script = [&silent[..], &good, &[END]].concat();
    let (spoken, hits) = counted(settings, &script, &[text]);
    assert_eq!(said(&spoken), good);
    assert_eq!((hits.silence, hits.retries), (1, 1));
}

#[test]
fn only_silence_in_every_attempt_is_a_failure() {
    let script: Vec<usize> = [vec![7; 6], vec![END]].concat().repeat(3);
    let spoken = scripted(strict(), &script, &["Well."]);
    assert_eq!(spoken.outcome, Some(Err(Failure::NoSpeech { chunk: 0, tries: 3 })));
}
