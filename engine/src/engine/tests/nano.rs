//! The bundled voice in the engine, against its reference.

use super::*;
use crate::bundle::{Bundle, Opened};
use crate::request::Request;
use crate::start::{Loaded, Options};
use codecs::weights::Weights;
use std::path::Path;

fn project(path: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(path)
}

/// Longest silence that a listener may hear between the first sound and the end, when an agent writes eight words a
/// second: twice as fast as they are spoken. A step takes a millisecond of invented time.
const LONGEST_GAP: Duration = Duration::from_millis(20);

#[test]
fn words_that_come_one_by_one_keep_a_listener_supplied() {
    let (mut engine, resolver) = engine();
    let (settings, source) = resolver.resolve(Request::live()).unwrap();
    let mut plan = window::Plan::new(settings.window.clone()).unwrap();
    engine.speak(ContextId(0), settings, source);
    let text = "The train leaves at nine, and you change in Basel before you arrive at noon. \
                There is a dining car on board, but it closes early on Sundays.";
    let mut words = text.split_inclusive(' ').peekable();
    let mut listener = crate::pipeline::Playout::default();
    let mut gap = Duration::ZERO;
    for ms in 0.. {
        let now = Duration::from_millis(ms);
        if ms % 125 == 0
            && let Some(word) = words.next()
        {
            let context = engine.voice(ContextId(0)).unwrap();
            context.push(word, now);
            if words.peek().is_none() {
                context.end(now);
            }
        }
        engine.step(now, |_| false);
        while let Some(job) = engine.next_job() {
            let frames = job.rows.first().map_or(0, Vec::len);
            let samples = plan.grow(frames, job.end).iter().map(|w| w.samples() as u64).sum();
            if samples > 0 {
                gap = gap.max(listener.dry_at().map_or(gap, |dry| now.saturating_sub(dry)));
            }
            listener.released(samples, now);
        }
        if engine.contexts() == 0 {
            break;
        }
        assert!(ms < 60_000, "the passage does not end");
    }
    assert!(gap <= LONGEST_GAP, "{gap:?} of silence");
}

fn engine() -> (Engine, crate::request::Resolver) {
    let bundle = Bundle::open(&project("voices/nano")).unwrap();
    let bundle = [Opened::Voice(Box::new(bundle))];
    let mut loaded = Loaded::load(&bundle, &Options::default(), &mut |_| {}).unwrap();
    let engine = Engine::new(loaded.stages, &[ROOMY; STAGES], BUDGET, None);
    (engine, loaded.models.voices.remove(0))
}

/// Codes of a text, one chunk, greedy.
fn greedy(text: &str, guidance: f32) -> Vec<Vec<u16>> {
    let (mut engine, resolver) = engine();
    let request =
        Request { temperature: Some(0.0), guidance: Some(guidance), ..Request::file(text) };
    let (settings, source) = resolver.resolve(request).unwrap();
    engine.speak(ContextId(0), settings, source);
    undisturbed(&mut engine).remove(&ContextId(0)).unwrap().rows
}

#[test]
fn greedy_codes_are_those_of_the_reference_implementation_with_and_without_guidance() {
    let golden = Weights::open(&project("tests/fixtures/nano/golden.safetensors")).unwrap();
    let codes = |name: &str| -> Vec<u16> {
        golden.ints(name).unwrap().into_iter().map(|c| c as u16).collect()
    };
    for (name, text) in [
        ("t0", "Hello there, how can I help you today?"),
        ("t1", "Your order has shipped and should arrive on Thursday."),
    ] {
        assert_eq!(greedy(text, 1.0).concat(), codes(&format!("{name}.codes")));
    }
    let guided = greedy("Hello there, how can I help you today?", 1.6);
    assert_eq!(guided[0], codes("t0.codes0_guided_1.6"));
}
