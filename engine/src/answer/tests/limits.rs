//! Limits, stops and what a reader gets, in order.

use super::*;
use crate::Error;
use crate::batch::Batch;
use crate::event::{Finish, Usage};
use crate::pipeline::AudioJob;
use crate::runner::ForwardError;

const TURN: &[Modality] = &[Modality::Text, Modality::Audio];

fn usage(heard: &Heard) -> Usage {
    let Some(Ok(Summary { usage: Some(usage), .. })) = heard.outcome else { panic!("{heard:?}") };
    usage
}

#[test]
fn limits_end_segments_without_a_lost_frame() {
    let mut rig = Rig::new(ROOMY, BUDGET);
    for model in [BAGPIPER, OPUSLM] {
        for frames in [3, 11] {
            let settings = rig.resolve(
                model,
                Request {
                    max_text_tokens: Some(4),
                    max_audio_frames: Some(frames),
                    // As many as there may be at most, so that only the limit ends it.
                    min_audio_frames: Some(frames),
                    ..request(TURN, 5)
                },
            );
            let heard = rig.alone(settings);
            assert_eq!(heard.frames.len(), frames);
            let sound = heard.segments.last().unwrap();
            assert_eq!(*sound, Segment::Audio { frames, lost: 0 });
            let usage = usage(&heard);
            assert_eq!((usage.audio_frames, usage.finish), (frames, Finish::Length));
            assert!(usage.text_tokens <= 4);
        }
    }
}

#[test]
fn a_sound_is_heard_a_look_ahead_after_its_first_frame_and_then_step_by_step() {
    let mut rig = Rig::new(ROOMY, BUDGET);
    let wanted = 30;
    let request = Request {
        max_audio_frames: Some(wanted),
        min_audio_frames: Some(wanted),
        ..request(&[Modality::Audio], 9)
    };
    let id = ContextId(0);
    let settings = rig.resolve(BAGPIPER, request);
    rig.open(id, settings);
    let mut samples_by_frames = vec![0; wanted + 1];
    while rig.engine.contexts() > 0 {
        rig.step();
        let events = rig.events.get(&id).unwrap();
        while let Ok(Some(event)) = events.recv_timeout(Duration::ZERO) {
            if let Event::Audio { samples, .. } = event {
                samples_by_frames[rig.heard[&id].frames.len()] += samples.len();
            }
        }
    }
    // Ten frames of the codec's look-ahead and the block that the rate is converted in; then a frame for a frame.
    let first = samples_by_frames.iter().position(|samples| *samples > 0).unwrap();
    assert!((10..=12).contains(&first), "first heard at frame {first}");
    assert!(samples_by_frames[first + 1..wanted].iter().all(|samples| *samples == 480));
    assert_eq!(samples_by_frames.iter().sum::<usize>(), wanted * 480);
}

/// One seat for all, and steps that are as long as half a frame: there is time for the listener, and what it leaves for others.
#[test]
fn writing_holds_up_no_listener_and_is_done_in_what_time_is_left() {
    let mut rig = Rig::new(ROOMY, Budget { sequences: 1, ..BUDGET });
    rig.step_ms = 10;
    for writer in 1..=6 {
        let asked = Request { max_text_tokens: Some(20), ..request(&[Modality::Text], writer) };
        let settings = rig.resolve(BAGPIPER, asked);
        rig.open(ContextId(writer), settings);
    }
    let (listener, wanted) = (ContextId(0), 40);
    let settings = rig.resolve(
        BAGPIPER,
        Request {
            max_audio_frames: Some(wanted),
            min_audio_frames: Some(wanted),
            max_ahead: Some(Duration::from_millis(200)),
            ..request(&[Modality::Audio], 7)
        },
    );
    rig.open(listener, settings);
    // Frames that can be heard while more are to come.
    let heard = |rig: &Rig| rig.heard[&listener].frames.len().saturating_sub(10) as u64;
    let (mut since, mut beside) = (None, 0);
    for _ in 0..20_000 {
        rig.step();
        // Then all of it is out.
        if !rig.heard[&listener].segments.is_empty() {
            break;
        }
        if heard(&rig) > 0 {
            let since = *since.get_or_insert(rig.now());
            assert!((rig.now() - since).as_millis() as u64 <= heard(&rig) * 20, "it runs dry");
            beside += u64::from((1..=6).any(|w| rig.heard[&ContextId(w)].outcome.is_none()));
        }
    }
    assert!(beside > 20, "only {beside} steps beside somebody who writes");
    rig.run();
    assert!(rig.heard.values().all(|heard| matches!(heard.outcome, Some(Ok(_)))));
}

#[test]
fn a_reader_gets_segments_in_order_and_one_end() {
    let mut rig = Rig::new(ROOMY, BUDGET);
    let order = [Modality::Text, Modality::Audio, Modality::Text];
    let id = ContextId(0);
    let settings =
        rig.resolve(BAGPIPER, Request { max_audio_frames: Some(12), ..request(&order, 2) });
    rig.open(id, settings);
    rig.run();
    let (mut seen, mut text, mut sent) = (Vec::new(), String::new(), 0);
    for event in rig.read(id) {
        match event {
            Event::Segment { modality } => {
                assert_eq!(seen.len() % 2, 0, "a segment begins when the last one is over");
                seen.push(Some(modality));
                text.clear();
            }
            Event::Text { delta } => {
                assert_eq!(seen.last(), Some(&Some(Modality::Text)));
                text += &delta;
            }
            Event::Audio { start, samples } => {
                assert_eq!((seen.last(), start), (Some(&Some(Modality::Audio)), sent));
                sent += samples.len() as u64;
            }
            Event::SegmentEnd(segment) => {
                match segment {
                    Segment::Text(all) => assert_eq!(all, text),
                    Segment::Audio { frames, .. } => assert_eq!(frames as u64 * 480, sent),
                }
                seen.push(None);
            }
            Event::Done(summary) => {
                assert_eq!(summary.samples, sent);
                seen.push(None);
            }
            other => panic!("{other:?}"),
        }
    }
    let expected = order.into_iter().flat_map(|modality| [Some(modality), None]);
    assert_eq!(seen, expected.chain([None]).collect::<Vec<_>>());
}

#[test]
fn a_string_to_stop_at_ends_the_answer_and_is_not_shown() {
    let mut rig = Rig::new(ROOMY, BUDGET);
    let ask = |stop: &[String]| Request {
        stop: stop.to_vec(),
        max_text_tokens: Some(20),
        ..request(TURN, 8)
    };
    let settings = rig.resolve(BAGPIPER, ask(&[]));
    let whole = rig.alone(settings);
    assert!(whole.text.chars().count() > 4, "{:?}", whole.text);
    let chars: Vec<char> = whole.text.chars().collect();
    let stop: String = chars[2..4].iter().collect();
    let settings = rig.resolve(BAGPIPER, ask(std::slice::from_ref(&stop)));
    let cut = rig.alone(settings);
    assert_eq!(cut.text, whole.text[..whole.text.find(&stop).unwrap()]);
    assert_eq!(cut.segments, [Segment::Text(cut.text.clone())]);
    assert!(cut.frames.is_empty());
    assert_eq!(usage(&cut).finish, Finish::Stop);
}

#[test]
fn the_prompt_is_counted_by_what_it_holds() {
    let rig = Rig::new(ROOMY, BUDGET);
    for (model, streams) in [(BAGPIPER, 8), (OPUSLM, 9)] {
        let plain = rig.resolve(model, request(TURN, 0)).usage;
        assert_eq!((plain.prompt_audio_tokens, plain.prompt_tokens > 11), (0, true));
        let mut heard = request(TURN, 0);
        heard.messages[0].parts.push(Part::Codes(vec![vec![3; 5]; streams].into()));
        let counted = rig.resolve(model, heard).usage;
        assert_eq!(counted.prompt_audio_tokens, 5);
        assert!(counted.prompt_tokens > plain.prompt_tokens);
    }
}

/// Where the model chooses its segments, it might do so for ever.
#[test]
fn an_answer_of_free_order_ends_with_its_room() {
    let mut rig = Rig::new(ROOMY, BUDGET);
    for seed in 0..4 {
        let mut settings = rig.resolve(BAGPIPER, request(&[], seed));
        settings.rows_max = 40;
        let streams = settings.speaker.family.streams().len();
        let prompt = settings.prompt.len() / streams;
        let heard = rig.alone(settings);
        let usage = usage(&heard);
        assert!(prompt + usage.text_tokens + usage.audio_frames <= 41);
    }
}

#[test]
fn what_a_model_cannot_do_is_refused_by_field() {
    let rig = Rig::new(ROOMY, BUDGET);
    let refused = |model: usize, request: Request| match rig.speakers[model].resolve(request) {
        Err(Error::Option { field, allowed, .. }) => (field, allowed),
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("it is not refused"),
    };
    let good = || request(TURN, 0);
    let draw = |temperature| Draw { temperature: Some(temperature), ..Draw::default() };
    let says = |parts| vec![Message { role: Role::User, parts }];
    let cases: [(usize, Request, &str, &str); 14] = [
        (OPUSLM, Request { guidance: Some(2.0), ..good() }, "guidance", "only 1"),
        (BAGPIPER, Request { guidance: Some(11.0), ..good() }, "guidance", "0 to 10"),
        (BAGPIPER, Request { text: draw(2.5), ..good() }, "text.temperature", "0 to 2"),
        (BAGPIPER, Request { audio: draw(-1.0), ..good() }, "audio.temperature", "0 to 2"),
        (BAGPIPER, Request { max_text_tokens: Some(65), ..good() }, "max_text_tokens", "1 to 64"),
        (BAGPIPER, Request { max_audio_frames: Some(0), ..good() }, "max_audio_frames", "1 to 100"),
        (
            BAGPIPER,
            Request { max_audio_frames: Some(9), min_audio_frames: Some(10), ..good() },
            "min_audio_frames",
            "1 to 9",
        ),
        (BAGPIPER, Request { stop: vec![String::new()], ..good() }, "stop", "1 to 256 bytes"),
        (BAGPIPER, Request { stop: vec!["a".into(); 17], ..good() }, "stop", "at most 16"),
        (BAGPIPER, Request { voice: Some("x".into()), ..good() }, "voice", "voices: "),
        (BAGPIPER, Request { messages: Vec::new(), ..good() }, "messages", "at least one"),
        (
            BAGPIPER,
            Request { messages: says(vec![Part::Text("word ".repeat(4000))]), ..good() },
            "messages",
            "room for",
        ),
        (
            OPUSLM,
            Request { modalities: vec![Modality::Audio, Modality::Text], ..good() },
            "modalities",
            "order",
        ),
        (
            BAGPIPER,
            Request { messages: says(vec![Part::Codes(vec![vec![0; 3]; 7].into())]), ..good() },
            "messages",
            "8 rows of codes",
        ),
    ];
    for (model, request, field, says) in cases {
        let (found, allowed) = refused(model, request);
        assert_eq!(found, field, "{allowed}");
        assert!(allowed.contains(says), "{field}: {allowed}");
    }
}

/// A network that would rather say a stream's pad than any of its codes.
struct Padding(Box<dyn StageModel>);

/// Logits of the tiny Bagpiper's streams behind the first: a pad and 32 codes each, behind the vocabulary.
fn pads() -> impl Iterator<Item = usize> {
    (0..7).map(|stream| 648 + stream * 33)
}

impl StageModel for Padding {
    fn vocabulary(&self) -> usize {
        self.0.vocabulary()
    }

    fn outputs(&self) -> usize {
        self.0.outputs()
    }

    fn reserve(&mut self, blocks: usize) {
        self.0.reserve(blocks);
    }

    fn forward(&mut self, batch: &Batch, logits: &mut Vec<f32>) -> Result<(), ForwardError> {
        self.0.forward(batch, logits)?;
        for row in logits.chunks_exact_mut(self.0.outputs()) {
            pads().for_each(|pad| row[pad] = 1000.0);
        }
        Ok(())
    }
}

/// A pad inside a frame would be no code, and code 0 in its place would be a sound that nobody said.
#[test]
fn no_frame_that_has_begun_holds_a_pad_or_a_code_in_its_place() {
    let pad = |stage, network| -> Box<dyn StageModel> {
        if stage == BAGPIPER { Box::new(Padding(network)) } else { network }
    };
    let said = |rig: &mut Rig| {
        let settings = rig.resolve(
            BAGPIPER,
            Request { max_audio_frames: Some(8), ..request(&[Modality::Audio], 6) },
        );
        rig.alone(settings)
    };
    let heard = said(&mut Rig::with(ROOMY, BUDGET, pad));
    assert!(matches!(heard.outcome, Some(Ok(_))), "{heard:?}");
    // What is said inside frames is what would have been said without it: the first frame is made of the same logits.
    let plain = said(&mut Rig::new(ROOMY, BUDGET));
    assert_eq!(heard.frames[0][0], plain.frames[0][0]);
    assert!(heard.frames.iter().all(|frame| frame.len() == 8));
    let zeros = heard.frames.iter().flatten().filter(|code| **code == 0).count();
    assert!(zeros < heard.frames.len(), "{zeros} codes of 0 in {} frames", heard.frames.len());
}

/// A codec that cannot decode is told, never silence in its place.
#[test]
fn codes_that_the_codec_does_not_have_end_the_answer() {
    let mut rig = Rig::new(ROOMY, BUDGET);
    let id = ContextId(0);
    let settings = rig.resolve(BAGPIPER, request(&[Modality::Audio], 1));
    rig.open(id, settings);
    rig.audio.take(AudioCommand::Job(AudioJob {
        context: id,
        rows: vec![vec![64]; 8],
        samples: 480,
        end: codecs::window::End::No,
        deadline: Duration::ZERO,
        marks: Vec::new(),
        last: None,
    }));
    rig.audio.work();
    let events = rig.read(id);
    assert!(matches!(events[..], [Event::Failed(Failure::Codec(_))]), "{events:?}");
}
