//! Prompts of OpusLM against those that an independent script lays out cell by cell, at the sizes of the released checkpoints.

use std::path::Path;

use serde::Deserialize;

use super::*;
use crate::phase::{Modality, OpusLmIds};

#[derive(Deserialize)]
struct Case {
    name: String,
    task: String,
    #[serde(default)]
    text: Vec<u32>,
    voice: Option<Vec<Vec<u16>>>,
    #[serde(default)]
    voice_frames: usize,
    #[serde(default)]
    recording: Vec<Vec<u16>>,
    #[serde(default)]
    messages: Vec<Turn>,
    answer: Option<String>,
    rows: usize,
    /// Row, stream and id of everything that is not nothing.
    cells: Vec<(usize, usize, u32)>,
}

fn released(voice_frames: usize) -> OpusLmIds {
    OpusLmIds {
        end: 5,
        system: 8,
        user: 9,
        assistant: 10,
        speaker_marker: 37,
        voice_frames,
        text_marker: 35,
        audio_marker: 34,
        text: 13_448..113_800,
        streams: StreamIds::without_pads(256..5_256, 5_256..13_448, 1_024),
    }
}

fn slices(rows: &[Vec<u16>]) -> Vec<&[u16]> {
    rows.iter().map(Vec::as_slice).collect()
}

/// A message of a dialogue.
#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Said {
    Text(Vec<u32>),
    Sound(Vec<Vec<u16>>),
}

#[derive(Deserialize)]
struct Turn {
    role: String,
    #[serde(flatten)]
    said: Said,
}

impl Turn {
    fn sound(&self) -> Vec<&[u16]> {
        match &self.said {
            Said::Text(_) => Vec::new(),
            Said::Sound(rows) => slices(rows),
        }
    }
}

fn laid(case: &Case, task: u32) -> Vec<u32> {
    let ids = released(case.voice_frames);
    let voice = case.voice.as_deref().map(slices);
    match case.task.as_str() {
        "speech" | "speech_with_voice" => opuslm_speech(&ids, task, &case.text, voice.as_deref()),
        "transcribe" => opuslm_transcription(&ids, task, &slices(&case.recording)),
        "audio_dialogue" => {
            let sounds: Vec<Vec<&[u16]>> = case.messages.iter().map(Turn::sound).collect();
            let messages = case.messages.iter().zip(&sounds).map(|(turn, sound)| Message {
                role: if turn.role == "user" { Role::User } else { Role::Assistant },
                piece: match &turn.said {
                    Said::Text(text) => Piece::Text(text),
                    Said::Sound(_) => Piece::Sound(sound),
                },
            });
            let messages: Vec<Message<'_>> = messages.collect();
            let is_written = case.answer.as_deref() == Some("text");
            let answer = if is_written { Modality::Text } else { Modality::Audio };
            opuslm_dialogue(&ids, task, voice.as_deref(), &messages, answer)
        }
        other => panic!("{other}"),
    }
}

#[test]
fn prompts_of_opuslm_are_the_golden_ones_cell_for_cell() {
    #[derive(Deserialize)]
    struct Golden {
        tasks: std::collections::BTreeMap<String, u32>,
        cases: Vec<Case>,
    }
    let file =
        concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/fixtures/delay_pattern/prompts_opuslm.json");
    let golden: Golden = codecs::weights::read_json(Path::new(file)).unwrap();
    let streams = released(0).streams.len();
    for case in &golden.cases {
        let rows = laid(case, golden.tasks[&case.task]);
        assert_eq!(rows.len(), case.rows * streams, "{}", case.name);
        let said = rows.iter().enumerate().filter(|(_, id)| **id != NOTHING);
        let cells: Vec<_> = said.map(|(at, &id)| (at / streams, at % streams, id)).collect();
        assert_eq!(cells, case.cells, "{}", case.name);
    }
    let voices = golden.cases.iter().filter(|case| case.voice.is_some());
    assert!(golden.cases.len() == 9 && voices.count() == 4);
}
