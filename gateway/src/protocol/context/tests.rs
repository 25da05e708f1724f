use std::sync::Arc;

use bytes::Bytes;
use engine::Speech;

use super::super::format::Asked;
use super::*;
use crate::protocol::event::ServerEvent;

const NOW: Duration = Duration::ZERO;
const LATER: Duration = Duration::from_millis(10);

fn delivery(asked: &Asked) -> Delivery {
    Delivery {
        format: Format::choose(asked).unwrap(),
        max_ahead: Duration::from_secs(60),
        release: Release::Frame,
        timestamps: Timestamps::Word,
    }
}

fn context(asked: &Asked) -> Context {
    delivered(delivery(asked))
}

fn delivered(delivery: Delivery) -> Context {
    let mut context = Context::new("a".into(), 7, delivery);
    context.announced = true;
    context
}

fn packets(n: usize, duration: u64) -> Vec<Packet> {
    let bytes = Bytes::from_static(&[9, 9]);
    vec![Packet { bytes, duration, silent: false, last: false }; n]
}

fn commits(context: &mut Context) -> Vec<(u64, u64, bool)> {
    let mut commits = Vec::new();
    loop {
        match context.next(NOW) {
            Next::Nothing => return commits,
            Next::Event(ServerEvent::Commit(c)) => commits.push((c.from, c.to, c.r#final)),
            _ => {}
        }
    }
}

/// Packets of each frame that leaves at `now`.
fn counts(context: &mut Context, now: Duration) -> Vec<u8> {
    let mut counts = Vec::new();
    loop {
        match context.next(now) {
            Next::Sound(sound) => counts.push(sound.bytes[3]),
            Next::Event(_) => {}
            Next::Nothing | Next::Held(_) | Next::Stopped => return counts,
        }
    }
}

#[test]
fn frames_follow_each_other_without_a_hole() {
    let mut context = context(&Asked::default());
    context.push_packets(packets(2, 960), 960, NOW);
    let Next::Sound(first) = context.next(NOW) else { panic!() };
    assert_eq!(
        &first.bytes[..],
        &[1, 0, 0, 1, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9, 9]
    );
    let Next::Sound(second) = context.next(NOW) else { panic!() };
    assert_eq!(&second.bytes[8..20], &[0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 3, 192]);
}

#[test]
fn a_commit_ends_with_the_first_packet_that_reaches_its_boundary() {
    let mut context = context(&Asked { frame_ms: Some(60), ..Asked::default() });
    context.push_packets(packets(68, 2_880), 98_000, NOW);
    let expected = [(0, 97_920, false), (97_920, 192_960, false)];
    assert_eq!(commits(&mut context), expected);
}

#[test]
fn the_last_commit_ends_with_the_last_real_sample() {
    let mut context = context(&Asked::default());
    let mut all = packets(51, 960);
    all[50].last = true;
    context.push_packets(all, 24_037, NOW);
    assert_eq!(commits(&mut context), [(0, 48_386, true)]);
}

#[test]
fn nothing_goes_before_the_context_was_announced() {
    let mut context = context(&Asked::default());
    context.announced = false;
    context.push_packets(packets(1, 960), 480, NOW);
    assert!(matches!(context.next(NOW), Next::Nothing));
}

#[test]
fn a_pack_is_full_or_waits_a_moment_and_never_crosses_a_commit() {
    let mut context = context(&Asked { pack: Some(8), ..Asked::default() });
    context.push_packets(packets(104, 960), 49_920, NOW);
    // 100 packets of 20 ms are a commit: twelve full packs and four packets.
    let expected: Vec<u8> = [vec![8; 12], vec![4]].concat();
    assert_eq!(counts(&mut context, NOW), expected);
    assert_eq!(counts(&mut context, LATER), [4]);
}

#[test]
fn a_pack_does_not_keep_an_answer_waiting() {
    let mut context = context(&Asked { pack: Some(50), ..Asked::default() });
    context.push_text("hello", NOW);
    context.flush(None);
    context.push_packets(packets(3, 960), 1_440, NOW);
    assert!(counts(&mut context, NOW).is_empty());
    context.flushed(1_440);
    assert_eq!(counts(&mut context, NOW), [3]);
}

#[test]
fn sound_that_is_released_with_its_commit_waits_for_it() {
    let commit = Delivery { release: Release::Commit, ..delivery(&Asked::default()) };
    let mut context = delivered(commit);
    context.push_packets(packets(99, 960), 47_520, NOW);
    assert!(counts(&mut context, LATER).is_empty());
    assert!(context.lacks_commit());
    context.push_packets(packets(2, 960), 48_480, NOW);
    assert_eq!(counts(&mut context, NOW).len(), 100);
    let mut last = packets(1, 960);
    last[0].last = true;
    context.push_packets(last, 48_960, NOW);
    assert_eq!(counts(&mut context, NOW).len(), 2, "the end waits for nothing");
}

#[test]
fn a_mark_is_told_behind_the_sound_of_its_text() {
    let mut context = context(&Asked { codec: Some("pcm_s16le".into()), ..Asked::default() });
    context.mark("start".into());
    context.push_text("hello ", NOW);
    context.mark("hello".into());
    context.push_text("you", NOW);
    context.mark("end".into());
    context.record.alignment.chunk(0..9);
    context.push_packets(packets(2, 480), 960, NOW);
    let seen = |context: &mut Context| {
        let mut seen = Vec::new();
        loop {
            seen.push(match context.next(NOW) {
                Next::Sound(_) => "sound".to_owned(),
                Next::Event(ServerEvent::Mark { id, pos, text_offset, .. }) => {
                    format!("{id} {pos} {text_offset}")
                }
                _ => return seen,
            });
        }
    };
    assert_eq!(seen(&mut context), ["start 0 0", "sound", "sound"]);
    context.record.alignment.chunk_end(&(0..9), 1_800);
    context.settle_marks();
    context.push_packets(packets(2, 480), 1_920, NOW);
    assert_eq!(seen(&mut context), ["sound", "hello 1200 6", "sound", "end 1800 9"]);
}

#[test]
fn of_what_was_heard_only_the_last_chunk_is_kept_for_others() {
    let mut context = context(&Asked::default());
    context.push_packets(packets(101, 960), 48_000, NOW);
    assert_eq!(counts(&mut context, NOW).len(), 101);
    let chunks = [Arc::new(Speech::default()), Arc::new(Speech::default())];
    context.record.remember(chunks[0].clone(), 24_000, NOW);
    context.record.remember(chunks[1].clone(), 48_000, NOW);
    let mut record = context.into_record();
    record.forget_heard(NOW + Duration::from_millis(1_500));
    assert_eq!(chunks.each_ref().map(Arc::strong_count), [2, 2]);
    record.forget_heard(NOW + Duration::from_millis(2_020));
    assert_eq!(chunks.each_ref().map(Arc::strong_count), [1, 2]);
    assert!(Arc::ptr_eq(&record.last_said().unwrap(), &chunks[1]));
}
