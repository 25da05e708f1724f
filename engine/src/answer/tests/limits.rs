//! Limits, stops and what a reader gets, in order.

use super::*;
use crate::Error;
use crate::event::{Finish, Usage};

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
fn a_limit_of_the_whole_answer_counts_text_and_frames_together() {
    let mut rig = Rig::new(ROOMY, BUDGET);
    for model in [BAGPIPER, OPUSLM] {
        // The least of a sound would be more than is left for it.
        let ask = |max_tokens: usize| Request {
            max_text_tokens: Some(4),
            min_audio_frames: Some(40),
            max_tokens: Some(max_tokens),
            ..request(TURN, 5)
        };
        let settings = rig.resolve(model, ask(3));
        let written = rig.alone(settings);
        let counted = usage(&written);
        assert_eq!((counted.text_tokens, counted.audio_frames), (3, 0), "all of it is text");
        assert_eq!((counted.finish, written.segments.len()), (Finish::Length, 1));
        let settings = rig.resolve(model, ask(14));
        let spoken = rig.alone(settings);
        let counted = usage(&spoken);
        assert_eq!((counted.text_tokens, counted.audio_frames), (4, 10), "what is left is sound");
        assert_eq!(spoken.segments.last(), Some(&Segment::Audio { frames: 10, lost: 0 }));
        assert_eq!(counted.finish, Finish::Length);
    }
    let refused =
        rig.speakers[BAGPIPER].resolve(Request { max_tokens: Some(0), ..request(TURN, 1) });
    assert!(refused.err().unwrap().to_string().contains("max_tokens"));
}

/// Steps are counted from that which says the first row: the first frame takes as many rows as there are streams, and is heard
/// when as many more are there as the codec looks ahead.
#[test]
fn sound_is_heard_a_look_ahead_after_its_first_frame_and_then_in_each_step() {
    /// Samples of a frame at the engine's rate.
    const FRAME: usize = 480;
    /// Frames that a block of the conversion to that rate may wait for.
    const CONVERSION: usize = 1;
    for (model, streams, look_ahead) in [(BAGPIPER, 8, 10), (OPUSLM, 9, 7)] {
        let wanted = 30;
        let task = if model == OPUSLM { Task::Speak } else { Task::Converse };
        let mut rig = sway::rig_without_pads();
        let settings = rig.resolve(
            model,
            Request {
                task,
                max_audio_frames: Some(wanted),
                min_audio_frames: Some(wanted),
                ..request(&[Modality::Audio], 9)
            },
        );
        let id = ContextId(0);
        rig.open(id, settings);
        if model == BAGPIPER {
            // The marker that opens the sound is a step of its own.
            rig.step();
        }
        let (mut frames, mut samples) = (Vec::new(), Vec::new());
        while rig.engine.contexts() > 0 {
            rig.step();
            frames.push(rig.heard[&id].frames.len());
            let events = rig.events.get(&id).unwrap();
            let mut new = 0;
            while let Ok(Some(event)) = events.recv_timeout(Duration::ZERO) {
                if let Event::Audio { samples, .. } = event {
                    new += samples.len();
                }
            }
            samples.push(new);
        }
        let whole = |rows: usize| rows.saturating_sub(streams - 1).min(wanted);
        assert!(frames.iter().enumerate().all(|(row, &n)| n == whole(row + 1)), "{frames:?}");
        let first = samples.iter().position(|new| *new > 0).unwrap();
        let heard = streams - 1 + look_ahead;
        assert!((heard..=heard + CONVERSION).contains(&first), "first heard in step {first}");
        let last = streams - 1 + wanted - 1;
        assert!(samples[first + 1..last].iter().all(|new| *new == FRAME), "{samples:?}");
        assert_eq!(samples.iter().sum::<usize>(), wanted * FRAME);
    }
}

/// Room that ends within a warm-up leaves no frame, within a sound or its drain all that are whole; what had begun is counted.
#[test]
fn room_that_ends_within_a_sound_leaves_its_whole_frames() {
    let mut rig = sway::rig_without_pads();
    for (model, streams, marker) in [(BAGPIPER, 8, 1), (OPUSLM, 9, 0)] {
        let task = if model == OPUSLM { Task::Speak } else { Task::Converse };
        for rows in [1, 5, 8, 9, 12, 16] {
            let asked = Request {
                task,
                min_audio_frames: Some(9),
                max_audio_frames: Some(9),
                ..request(&[Modality::Audio], 3)
            };
            let mut settings = rig.resolve(model, asked);
            settings.rows_max = settings.prompt.len() / streams + marker + rows;
            let whole: usize = (rows + 1).saturating_sub(streams);
            let heard = rig.alone(settings);
            assert_eq!(heard.frames.len(), whole, "{rows} rows");
            // Nine begin, one in each row.
            let lost = rows.min(9) - whole;
            assert_eq!(heard.segments, [Segment::Audio { frames: whole, lost }], "{rows} rows");
            let Some(Ok(summary)) = &heard.outcome else { panic!("{heard:?}") };
            assert_eq!(summary.samples, whole as u64 * 480);
            assert_eq!(usage(&heard).finish, Finish::Length);
        }
    }
}

/// Where a limit of frames comes near, the drain is forced within it, also where one frame is all; nothing that has begun is
/// lost. Only Bagpiper may end a sound before its frames are whole, of its own will.
#[test]
fn a_limit_of_frames_forces_a_drain_that_loses_none() {
    let mut rig = Rig::new(ROOMY, BUDGET);
    let mut limited = [0; 2];
    for (model, task) in [(BAGPIPER, Task::Converse), (OPUSLM, Task::Speak)] {
        for (min, max) in [(1, 1), (1, 2), (2, 2), (1, 20)] {
            for seed in 0..4 {
                let asked = Request {
                    task,
                    min_audio_frames: Some(min),
                    max_audio_frames: Some(max),
                    ..request(&[Modality::Audio], seed)
                };
                let settings = rig.resolve(model, asked);
                let heard = rig.alone(settings);
                let [Segment::Audio { frames, lost }] = heard.segments[..] else {
                    panic!("{heard:?}")
                };
                assert!(frames == heard.frames.len() && frames <= max, "{heard:?}");
                let by_limit = usage(&heard).finish == Finish::Length;
                limited[model] += u64::from(by_limit);
                assert!(lost == 0 || model == BAGPIPER && !by_limit, "{heard:?}");
                assert!(frames >= min || model == BAGPIPER, "{heard:?}");
                assert!(frames == max || model == BAGPIPER || !by_limit, "{heard:?}");
            }
        }
    }
    assert!(limited.iter().all(|count| *count > 4), "{limited:?}");
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

/// The companion of a sound counts as much as that sound was asked to be guided.
#[test]
fn each_sound_is_guided_as_was_asked_for_it() {
    const FRAMES: usize = 6;
    let mut rig = sway::rig_without_pads();
    let mut say = |of_first: &[f32], of_others: f32| {
        let asked = Request {
            guidance: Some(of_others),
            sound_guidance: of_first.to_vec(),
            min_audio_frames: Some(FRAMES),
            max_audio_frames: Some(FRAMES),
            ..request(&[Modality::Audio; 3], 4)
        };
        let settings = rig.resolve(BAGPIPER, asked);
        let heard = rig.alone(settings);
        assert_eq!(heard.segments, vec![Segment::Audio { frames: FRAMES, lost: 0 }; 3]);
        heard.frames.chunks(FRAMES).map(<[_]>::to_vec).collect::<Vec<_>>()
    };
    let (plain, guided) = (say(&[], 1.0), say(&[], 3.0));
    assert_ne!(plain[0], guided[0]);
    let mixed = say(&[1.0, 3.0], 1.0);
    assert_eq!(mixed[0], plain[0]);
    assert_ne!(mixed[1], plain[1]);
    // What is said of others holds for all that are not named.
    let both = say(&[1.0], 3.0);
    assert_eq!(both[..2], mixed[..2]);
    assert_ne!(both[2], mixed[2]);
    assert_eq!(say(&[3.0], 1.0)[0], guided[0]);
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
    let each = |weights: &[f32]| Request { sound_guidance: weights.to_vec(), ..good() };
    let cases: [(usize, Request, &str, &str); 18] = [
        (OPUSLM, each(&[2.0]), "guidance", "only 1"),
        (BAGPIPER, each(&[-1.0]), "guidance", "0 to 10"),
        (BAGPIPER, each(&[1.0; 2]), "guidance", "at most 1 weights"),
        (
            BAGPIPER,
            Request { modalities: Vec::new(), ..each(&[1.0; 17]) },
            "guidance",
            "at most 16 weights",
        ),
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
