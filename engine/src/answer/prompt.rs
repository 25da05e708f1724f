//! A request's messages as rows of ids, the way the model was trained to read them.

use std::sync::Arc;

use super::{Message, Modality, Part, Request, Speaker, Task};
use crate::Error;
use crate::bundle::speech;
use crate::layout::{
    self, Piece, bagpiper_chat, opuslm_dialogue, opuslm_speech, opuslm_transcription,
};
use crate::models::speech::{COMING, Family};
use crate::phase::OpusLmIds;

/// A part that the model can read.
enum Read<'a> {
    Text(Vec<u32>),
    Sound(Vec<&'a [u16]>),
    Heard(Vec<u32>),
}

/// Stands for a recording in codes that is still to come.
const FRAME: &[u16] = &[0];

/// The prompt's rows, `[rows, streams]`. One row or frame stands for what is still to come of a live recording.
///
/// # Errors
/// Messages or a voice that this model cannot read.
pub(super) fn rows(speaker: &Speaker, request: &Request) -> Result<Vec<u32>, Error> {
    if request.messages.iter().all(|message| message.parts.is_empty()) {
        return Err(Error::option("messages", "none", "at least one part of a message"));
    }
    let voice = voice(speaker, request.voice.as_deref())?;
    let voice: Option<Vec<&[u16]>> =
        voice.as_deref().map(|codes| codes.iter().map(Vec::as_slice).collect());
    let voice = voice.as_deref();
    let mut said = Vec::new();
    for Message { role, parts } in &request.messages {
        for part in parts {
            said.push((*role, read(speaker, part)?));
        }
    }
    let laid = said.iter().map(|(role, read)| layout::Message { role: *role, piece: piece(read) });
    let pieces: Vec<layout::Message<'_>> = laid.collect();
    match &speaker.family {
        Family::Bagpiper(_) if voice.is_some() => {
            Err(Error::option("voice", "given", "this model speaks with its own voice only"))
        }
        Family::Bagpiper(ids) => Ok(bagpiper_chat(ids, &pieces)),
        Family::OpusLm(ids) => opuslm(speaker, ids, request, voice, &pieces),
        Family::Text => Err(Error::option("model", speaker.name(), "a model that speaks")),
    }
}

/// Rows of a prompt that holds live recordings which are known already, whatever comes: those before the first that is still
/// to come. Sound in codes is laid across rows, so nothing is known before all of it is there.
pub(super) fn known(rows: &[u32], streams: usize) -> usize {
    rows.iter().step_by(streams).position(|&id| id == COMING).unwrap_or(0)
}

fn opuslm(
    speaker: &Speaker,
    ids: &OpusLmIds,
    request: &Request,
    voice: Option<&[&[u16]]>,
    pieces: &[layout::Message<'_>],
) -> Result<Vec<u32>, Error> {
    use speech::Task as Known;
    let speaks = request.modalities.contains(&Modality::Audio);
    let known = match (request.task, voice) {
        (Task::Speak, None) => Known::Speech,
        (Task::Speak, Some(_)) => Known::SpeechWithVoice,
        (Task::Converse, _) if speaks => Known::AudioDialogue,
        (Task::Converse, _) => Known::TextDialogue,
        (Task::Transcribe, _) => Known::Transcribe,
    };
    let task = *speaker.manifest.tasks.get(&known).ok_or_else(|| {
        let names: Vec<&str> = speaker.manifest.tasks.keys().map(|task| task.name()).collect();
        Error::option("task", known.name(), format!("this model's tasks: {}", names.join(", ")))
    })?;
    match (request.task, pieces) {
        (Task::Speak, [layout::Message { piece: Piece::Text(text), .. }]) => {
            Ok(opuslm_speech(ids, task, text, voice))
        }
        (Task::Speak, _) => Err(Error::option("messages", pieces.len(), "one text to be spoken")),
        (Task::Transcribe, [layout::Message { piece: Piece::Sound(codes), .. }]) => {
            Ok(opuslm_transcription(ids, task, codes))
        }
        (Task::Transcribe, _) => {
            Err(Error::option("messages", pieces.len(), "one recording to be written down"))
        }
        (Task::Converse, _) => {
            let first = request.modalities.first().copied().unwrap_or(Modality::Text);
            Ok(opuslm_dialogue(ids, task, voice, pieces, first))
        }
    }
}

/// The codes of the voice of that name.
fn voice(speaker: &Speaker, name: Option<&str>) -> Result<Option<Arc<[Vec<u16>]>>, Error> {
    let Some(name) = name else { return Ok(None) };
    match speaker.voices.find(name) {
        Ok(voice) => Ok(Some(voice.codes)),
        Err(names) => Err(Error::option("voice", name, format!("voices: {}", names.join(", ")))),
    }
}

fn piece<'r>(read: &'r Read<'_>) -> Piece<'r> {
    match read {
        Read::Text(ids) => Piece::Text(ids),
        Read::Sound(codes) => Piece::Sound(codes),
        Read::Heard(ids) => Piece::Heard(ids),
    }
}

fn deaf() -> Error {
    Error::option("messages", "audio", "this model does not hear")
}

fn read<'p>(speaker: &Speaker, part: &'p Part) -> Result<Read<'p>, Error> {
    match part {
        Part::Text(text) => {
            let ids = speaker.text.encode(text);
            ids.map(Read::Text).map_err(|e| Error::option("messages", "text", e.to_string()))
        }
        Part::Audio(_) => Err(deaf()),
        Part::Live(_) if speaker.hears.is_none() => Err(deaf()),
        Part::Live(_) if speaker.hears.is_some_and(|hears| hears.in_codes) => {
            Ok(Read::Sound(vec![FRAME; speaker.family.streams().len()]))
        }
        Part::Live(clips) | Part::Heard(clips) => {
            if !clips.iter().all(|clip| clip.is_of(&speaker.heard)) {
                return Err(Error::option("messages", "audio", "what this model has heard"));
            }
            let more = matches!(part, Part::Live(_)).then_some(COMING);
            Ok(Read::Heard(clips.iter().flat_map(|clip| clip.ids()).chain(more).collect()))
        }
        Part::Codes(codes) => {
            let streams = speaker.family.streams();
            let frames = codes.first().map_or(0, Vec::len);
            let fits = |(row, ids): (&Vec<u16>, &layout::StreamIds)| {
                row.len() == frames && row.iter().all(|&c| usize::from(c) < ids.codes.len())
            };
            if codes.len() != streams.len() || frames == 0 || !codes.iter().zip(streams).all(fits) {
                let allowed = format!("{} rows of codes of equal length", streams.len());
                return Err(Error::option("messages", "codes", allowed));
            }
            Ok(Read::Sound(codes.iter().map(Vec::as_slice).collect()))
        }
    }
}
