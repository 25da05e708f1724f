//! Prompts of multi-stream models: symbols, text and sound as rows of ids, `[rows, streams]`.
//!
//! ```text
//! Bagpiper   begin | role text-marker text.. end | .. | assistant        a sound's rows stand behind its marker
//! OpusLM     begin task text-marker text.. 0.. [speaker voice.. 0..] audio-marker
//!            begin task audio-marker sound.. audio-marker 0.. text-marker
//!            begin task [system speaker voice.. 0..] | role marker text or sound.. 0.. | .. | assistant marker
//! ```
//! Sound is delayed as it is when it is said. Behind each piece of an OpusLM prompt stand as many rows of nothing as the last
//! stream is behind, so that no delayed code touches what follows.

use super::{NOTHING, StreamIds};
use crate::delay::interleave;
use crate::phase::{BagpiperIds, Modality, OpusLmIds};

/// Who says something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Tells what to be.
    System,
    /// Asks.
    User,
    /// Answers.
    Assistant,
}

/// What is said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Piece<'a> {
    /// Ids of the model's vocabulary.
    Text(&'a [u32]),
    /// Codes, `[streams][frames]`.
    Sound(&'a [&'a [u16]]),
    /// Ids of what was heard, for models that hear otherwise than in codes.
    Heard(&'a [u32]),
}

/// One message of a conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Message<'a> {
    /// Who says it.
    pub role: Role,
    /// What is said.
    pub piece: Piece<'a>,
}

/// A conversation that the assistant goes on with, for Bagpiper.
///
/// # Panics
/// When a sound has not the model's streams, or they differ in length: that is a bug of the caller.
pub fn bagpiper_chat(ids: &BagpiperIds, messages: &[Message<'_>]) -> Vec<u32> {
    let mut rows = Rows::new(&ids.streams);
    rows.symbol(ids.begin);
    for (i, message) in messages.iter().enumerate() {
        rows.symbol(match message.role {
            Role::System => ids.system,
            Role::User => ids.user,
            Role::Assistant => ids.assistant,
        });
        match message.piece {
            Piece::Text(text) => {
                rows.symbol(ids.text_marker);
                rows.text(text);
            }
            Piece::Sound(codes) => {
                rows.symbol(ids.audio_marker);
                rows.sound(codes);
            }
            Piece::Heard(heard) => {
                rows.symbol(ids.audio_marker);
                rows.text(heard);
            }
        }
        let goes_on = messages.get(i + 1).is_some_and(|next| next.role == message.role);
        rows.symbol(if goes_on { ids.end_of_segment } else { ids.end_of_turn });
    }
    rows.symbol(ids.assistant);
    rows.ids
}

/// A text to be spoken, for OpusLM, in the voice of a reference if there is one: its first [`OpusLmIds::voice_frames`] frames,
/// `[streams][frames]`, filled up with nothing. `task` is the symbol of what is to be done.
///
/// # Panics
/// As [`bagpiper_chat`].
pub fn opuslm_speech(
    ids: &OpusLmIds,
    task: u32,
    text: &[u32],
    voice: Option<&[&[u16]]>,
) -> Vec<u32> {
    let mut rows = Rows::new(&ids.streams);
    rows.text(&[ids.end, task, ids.text_marker]);
    rows.text(text);
    rows.pause();
    if let Some(voice) = voice {
        rows.voice(ids, voice);
    }
    rows.symbol(ids.audio_marker);
    rows.ids
}

/// A recording that is to be written down, for OpusLM, `[streams][frames]`: `task` is the symbol of what is to be done. The
/// marker that closes the sound is its last frame, so the codes that are behind drain beside it and after it.
///
/// # Panics
/// As [`bagpiper_chat`].
pub fn opuslm_transcription(ids: &OpusLmIds, task: u32, recording: &[&[u16]]) -> Vec<u32> {
    let mut rows = Rows::new(&ids.streams);
    rows.text(&[ids.end, task, ids.audio_marker]);
    let frames = recording.first().map_or(0, |codes| codes.len());
    let behind = rows.ids.len() + frames * ids.streams.len();
    rows.sound(recording);
    // One row more than the sound alone drains in.
    rows.symbol(NOTHING);
    rows.ids[behind] = ids.audio_marker;
    rows.symbol(ids.text_marker);
    rows.ids
}

/// A conversation that the assistant goes on with in text or sound, for OpusLM's dialogue model, with its own voice if there is
/// one.
///
/// # Panics
/// As [`bagpiper_chat`].
pub fn opuslm_dialogue(
    ids: &OpusLmIds,
    task: u32,
    voice: Option<&[&[u16]]>,
    messages: &[Message<'_>],
    answer: Modality,
) -> Vec<u32> {
    let mut rows = Rows::new(&ids.streams);
    rows.text(&[ids.end, task]);
    if let Some(voice) = voice {
        rows.symbol(ids.system);
        rows.voice(ids, voice);
    }
    for message in messages {
        rows.symbol(match message.role {
            Role::System => ids.system,
            Role::User => ids.user,
            Role::Assistant => ids.assistant,
        });
        match message.piece {
            Piece::Text(text) => {
                rows.symbol(ids.text_marker);
                rows.text(text);
                rows.pause();
            }
            Piece::Sound(codes) => {
                rows.symbol(ids.audio_marker);
                // The drain of the sound is the pause.
                rows.sound(codes);
            }
            Piece::Heard(heard) => {
                rows.symbol(ids.audio_marker);
                rows.text(heard);
                rows.pause();
            }
        }
    }
    rows.symbol(ids.assistant);
    rows.symbol(match answer {
        Modality::Text => ids.text_marker,
        Modality::Audio => ids.audio_marker,
    });
    rows.ids
}

struct Rows<'a> {
    streams: &'a [StreamIds],
    ids: Vec<u32>,
}

impl<'a> Rows<'a> {
    fn new(streams: &'a [StreamIds]) -> Self {
        Self { streams, ids: Vec::new() }
    }

    fn symbol(&mut self, id: u32) {
        self.ids.push(id);
        self.ids.resize(self.ids.len() + self.streams.len() - 1, NOTHING);
    }

    fn text(&mut self, ids: &[u32]) {
        ids.iter().for_each(|&id| self.symbol(id));
    }

    fn pause(&mut self) {
        let rows = self.streams.len() - 1;
        self.ids.resize(self.ids.len() + rows * self.streams.len(), NOTHING);
    }

    fn sound(&mut self, codes: &[&[u16]]) {
        assert_eq!(codes.len(), self.streams.len(), "codes of each stream; this is a bug");
        for row in interleave(codes) {
            self.ids.extend(self.streams.iter().zip(row).map(|(stream, cell)| stream.id(cell)));
        }
    }

    fn voice(&mut self, ids: &OpusLmIds, codes: &[&[u16]]) {
        self.symbol(ids.speaker_marker);
        let kept: Vec<&[u16]> =
            codes.iter().map(|row| &row[..row.len().min(ids.voice_frames)]).collect();
        let end = self.ids.len() + (ids.voice_frames + self.streams.len() - 1) * self.streams.len();
        self.sound(&kept);
        self.ids.resize(end, NOTHING);
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::Arc;

    use codecs::weights::Weights;

    use super::*;
    use crate::models::speech::{Family, SpeechConfig};

    fn fixture(name: &str) -> std::path::PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/fixtures/speechlm_tiny").join(name)
    }

    fn golden(name: &str) -> Vec<u32> {
        let case = Weights::open(&fixture(name)).unwrap();
        case.ints("prompt_rows").unwrap().iter().map(|&id| id as u32).collect()
    }

    fn bagpiper() -> Arc<BagpiperIds> {
        match SpeechConfig::read(&fixture("bagpiper/config.json")).unwrap().family {
            Family::Bagpiper(ids) => ids,
            other => panic!("{other:?}"),
        }
    }

    fn opuslm() -> Arc<OpusLmIds> {
        match SpeechConfig::read(&fixture("opuslm/config.json")).unwrap().family {
            Family::OpusLm(ids) => ids,
            other => panic!("{other:?}"),
        }
    }

    /// The first ids of the rows.
    fn column(rows: &[u32], streams: usize) -> Vec<u32> {
        rows.iter().step_by(streams).copied().collect()
    }

    #[test]
    fn golden_prompts_are_laid_out_row_for_row() {
        let ids = bagpiper();
        let expected = golden("bagpiper/gen_plain.safetensors");
        let text: Vec<u32> = column(&expected, 8)[3..10].to_vec();
        let user = Message { role: Role::User, piece: Piece::Text(&text) };
        assert_eq!(bagpiper_chat(&ids, &[user]), expected);
        let ids = opuslm();
        let expected = golden("opuslm/gen_tts.safetensors");
        let text: Vec<u32> = column(&expected, 9)[3..9].to_vec();
        assert_eq!(opuslm_speech(&ids, 82, &text, None), expected);
        let expected = golden("opuslm/gen_text_audio.safetensors");
        let text: Vec<u32> = column(&expected, 9)[4..9].to_vec();
        let user = Message { role: Role::User, piece: Piece::Text(&text) };
        assert_eq!(opuslm_dialogue(&ids, 89, None, &[user], Modality::Text), expected);
    }

    #[test]
    fn what_was_heard_stands_behind_the_marker_of_sound() {
        let heard = [3_000_000_000, 3_000_000_001];
        let user = Message { role: Role::User, piece: Piece::Heard(&heard) };
        let ids = bagpiper();
        let rows = bagpiper_chat(&ids, &[user]);
        let expected = [
            ids.begin,
            ids.user,
            ids.audio_marker,
            heard[0],
            heard[1],
            ids.end_of_turn,
            ids.assistant,
        ];
        assert_eq!(column(&rows, 8), expected);
        let beside = rows.chunks_exact(8).flat_map(|row| &row[1..]);
        assert!(beside.clone().all(|&id| id == NOTHING), "{rows:?}");
    }

    #[test]
    fn a_recording_to_be_written_down_drains_beside_the_marker_that_closes_it() {
        let ids = opuslm();
        let codes: Vec<Vec<u16>> = (0..9).map(|s| vec![s, s + 10]).collect();
        let codes: Vec<&[u16]> = codes.iter().map(Vec::as_slice).collect();
        let rows = opuslm_transcription(&ids, 80, &codes);
        let said = |stream: usize, code: u16| ids.streams[stream].id(Some(code));
        let mut first = vec![ids.end, 80, ids.audio_marker, said(0, 0), said(0, 10)];
        first.push(ids.audio_marker);
        first.resize(first.len() + 8, NOTHING);
        first.push(ids.text_marker);
        assert_eq!(column(&rows, 9), first);
        for (stream, shown) in (1..9).zip(3 + 1..) {
            let column: Vec<u32> = rows.chunks_exact(9).map(|row| row[stream]).collect();
            let expected = [said(stream, stream as u16), said(stream, stream as u16 + 10)];
            assert_eq!(column[shown..shown + 2], expected, "stream {stream}");
            assert_eq!(column.iter().filter(|&&id| id != NOTHING).count(), 2);
        }
    }

    #[test]
    fn messages_of_one_speaker_are_parted_by_the_end_of_a_segment() {
        let ids = bagpiper();
        let codes: Vec<Vec<u16>> = (0..8).map(|s| vec![s, s + 1]).collect();
        let codes: Vec<&[u16]> = codes.iter().map(Vec::as_slice).collect();
        let say = |role, piece| Message { role, piece };
        let messages = [
            say(Role::System, Piece::Text(&[300])),
            say(Role::Assistant, Piece::Text(&[301])),
            say(Role::Assistant, Piece::Sound(&codes)),
        ];
        let rows = bagpiper_chat(&ids, &messages);
        let first = column(&rows, 8);
        assert_eq!(first[..9], [1, 4, 7, 300, 2, 6, 7, 301, 3]);
        // Two frames in nine rows, then the end of the turn and whose turn it is.
        assert_eq!(first[9..], [6, 8, 385, 386, 384, 384, 384, 384, 384, 384, 384, 2, 6]);
        let sound = &rows[11 * 8..20 * 8];
        assert_eq!(sound[3 * 8 + 3], ids.streams[3].id(Some(3)));
        assert_eq!(sound[4 * 8 + 3], ids.streams[3].id(Some(4)));
        assert_eq!(sound[5 * 8 + 3], ids.streams[3].pad);
    }

    #[test]
    fn a_voice_is_cut_or_filled_up_to_its_frames() {
        let ids = OpusLmIds { voice_frames: 4, ..(*opuslm()).clone() };
        for frames in [0, 3, 4, 9] {
            let codes: Vec<Vec<u16>> =
                (0..9).map(|s| (0..frames).map(|t| (s + t) as u16).collect()).collect();
            let codes: Vec<&[u16]> = codes.iter().map(Vec::as_slice).collect();
            let rows = opuslm_speech(&ids, 81, &[600], Some(&codes));
            // begin, task, marker, text, pause, speaker, frames with their drain, marker
            assert_eq!(rows.len() / 9, 4 + 8 + 1 + (4 + 8) + 1);
            let first = column(&rows, 9);
            assert_eq!((first[12], first[25]), (ids.speaker_marker, ids.audio_marker));
            let codes = first[13..25].iter().filter(|&&id| id != NOTHING).count();
            assert_eq!(codes, frames.min(4));
            // The last stream's code of the last frame stands in the last row that may hold one.
            let last = rows[25 * 9 - 1];
            assert_eq!(last != NOTHING, frames >= 4);
            let turn = [Message { role: Role::Assistant, piece: Piece::Text(&[601]) }];
            let silent: [&[u16]; 9] = [&[]; 9];
            let rows = opuslm_dialogue(&ids, 89, Some(&silent), &turn, Modality::Audio);
            assert_eq!(column(&rows, 9)[..4], [5, 89, ids.system, ids.speaker_marker]);
            assert_eq!(column(&rows, 9)[rows.len() / 9 - 2..], [ids.assistant, ids.audio_marker]);
        }
    }
}
