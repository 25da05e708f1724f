//! A request, checked against its model once, when the context is opened.

use std::sync::Arc;

use super::{Draw, Modality, Part, Request, Speaker, Task, prompt};
use crate::Error;
use crate::event::Usage;
use crate::hearing::Lease;
use crate::load::Lane;
use crate::models::speech::{Clip, Heard};
use crate::phase::{Machine, Plan};
use crate::pipeline::Standing;
use crate::request::{check_guidance, share, warmed};
use crate::sampler::Sampling;
use crate::sound::Stream;
use crate::streams::Manner;
use crate::turn::Guidance;

/// Most strings at which an answer stops.
const STOPS_MAX: usize = 16;
/// Longest of them, in bytes: so much of a text may be held back.
const STOP_BYTES_MAX: usize = 256;
/// Most weights of guidance where the model chooses its segments.
const SOUNDS_MAX: usize = 16;
/// Symbols around a segment: the assistant's, the modality's and what ends it.
const SYMBOLS: usize = 4;

/// Resolved settings of an answer.
pub(crate) struct Settings {
    /// Its model.
    pub(super) speaker: Arc<Speaker>,
    /// Its place in the order of work.
    pub(crate) standing: Standing,
    /// Rows of the prompt, `[rows, streams]`; while it grows those that are known.
    pub(super) prompt: Vec<u32>,
    /// Whether more of the prompt is to come, since a recording in it has not ended.
    pub(crate) growing: bool,
    /// The place of the recordings that come in.
    pub(crate) lease: Option<Lease>,
    /// What was heard and stands in it.
    pub(super) _clips: Vec<Arc<Clip>>,
    /// What may be said behind it.
    pub(super) machine: Machine,
    /// How it is chosen.
    pub(super) manner: Manner,
    /// How much the condition counts in each sound.
    pub(super) guidance: Guidance,
    /// Strings at which it stops.
    pub(super) stops: Arc<[String]>,
    /// Most rows of prompt and answer together.
    pub(super) rows_max: usize,
    /// Whether there may be sound in it.
    pub(super) sounds: bool,
    /// What the prompt takes.
    pub(super) usage: Usage,
}

impl Settings {
    /// How its sound is made.
    pub(crate) fn lane(&self) -> Lane {
        Lane { stage: self.speaker.stage, guided: !self.guidance.is_none() }
    }

    /// Rows of the prompt that are known, `[rows, streams]`.
    #[cfg(test)]
    pub(crate) fn rows(&self) -> Vec<u32> {
        self.prompt.clone()
    }

    /// Whether there may be sound in it.
    pub(crate) fn sounds(&self) -> bool {
        self.sounds
    }

    /// The codec's side of it.
    pub(crate) fn stream(&self) -> Stream {
        match self.speaker.codec.as_ref().filter(|_| self.sounds) {
            Some(codec) => Stream::Streaming(codec.clone(), Box::new(codec.stream())),
            None => Stream::Mute,
        }
    }
}

impl Speaker {
    /// The settings of an answer.
    ///
    /// # Errors
    /// A field with a value that the model or the engine does not have.
    pub(crate) fn resolve(self: &Arc<Self>, request: Request) -> Result<Settings, Error> {
        let defaults = &self.manifest.sampling;
        let order = self.order(&request)?;
        let guidance = self.guidance(&request, &order)?;
        let names = ["text.temperature", "text.top_p"];
        let text = drawn(names, defaults.text, request.text)?;
        let names = ["audio.temperature", "audio.top_p"];
        let audio = drawn(names, defaults.audio, request.audio)?;
        let stops = stops(&request.stop)?;
        let mut prompt = prompt::rows(self, &request)?;
        let streams = self.family.streams().len();
        let members = if guidance.is_none() { 1 } else { 2 };
        let rows_max = self.rows_max(members);
        let room = rows_max.saturating_sub(prompt.len() / streams);
        let plan = self.plan(&request, &order, room)?;
        let machine = self.family.machine(plan);
        let machine =
            machine.map_err(|e| Error::option("modalities", list(&order), e.to_string()))?;
        let growing = !request.live().is_empty();
        if growing {
            // The limits above are those of the shortest recording; they are set anew when all is there.
            prompt.truncate(prompt::known(&prompt, streams) * streams);
        }
        Ok(Settings {
            growing,
            lease: None,
            standing: Standing::new(request.priority, request.max_ahead),
            usage: self.usage(&prompt),
            sounds: order.contains(&Modality::Audio) || order.is_empty() && self.codec.is_some(),
            speaker: self.clone(),
            prompt,
            _clips: clips(&request),
            machine,
            manner: Manner { text, audio, seed: request.seed },
            guidance,
            stops,
            rows_max,
        })
    }

    /// How the sound of a request would be made.
    pub(crate) fn lane(&self, request: &Request) -> Lane {
        let of_others = request.guidance.unwrap_or(self.manifest.sampling.guidance);
        let guidance = Guidance::new(&request.sound_guidance, of_others);
        Lane { stage: self.stage, guided: !guidance.is_none() }
    }

    /// Checks a request with recordings as far as it can be checked before they are heard: a frame of codes stands for each.
    ///
    /// # Errors
    /// As [`Speaker::resolve`]; also recordings that this model does not hear.
    pub(crate) fn check_unheard(self: &Arc<Self>, request: &Request) -> Result<(), Error> {
        let refused = |allowed: String| Error::option("messages", "audio", allowed);
        let limits = self.hears.ok_or_else(|| refused("this model does not hear".to_owned()))?;
        for samples in request.recordings() {
            limits.check(samples).map_err(|e| refused(e.to_string()))?;
        }
        let frame: Arc<[Vec<u16>]> = vec![vec![0]; self.family.streams().len()].into();
        let mut request = request.clone();
        for part in request.messages.iter_mut().flat_map(|message| &mut message.parts) {
            if let Part::Audio(_) = part {
                *part = Part::Codes(frame.clone());
            }
        }
        self.resolve(request).map(|_| ())
    }

    /// The order of segments that is asked for, if the model can say them.
    fn order(&self, request: &Request) -> Result<Vec<Modality>, Error> {
        let order = match request.task {
            Task::Speak if request.modalities.is_empty() => vec![Modality::Audio],
            Task::Transcribe if request.modalities.is_empty() => vec![Modality::Text],
            // A model without a codec has nothing to choose between.
            _ if request.modalities.is_empty() && self.codec.is_none() => vec![Modality::Text],
            _ => request.modalities.clone(),
        };
        if order.contains(&Modality::Audio) && self.codec.is_none() {
            return Err(Error::option("modalities", list(&order), "text: this model has no codec"));
        }
        Ok(order)
    }

    /// Weights of guidance, of each sound.
    fn guidance(&self, request: &Request, order: &[Modality]) -> Result<Guidance, Error> {
        let of_others = request.guidance.unwrap_or(self.manifest.sampling.guidance);
        let of_first = &request.sound_guidance;
        for &weight in of_first.iter().chain([&of_others]) {
            check_guidance(weight, self.manifest.null_trained)?;
        }
        let sounds = match order {
            [] => SOUNDS_MAX,
            _ => order.iter().filter(|m| **m == Modality::Audio).count(),
        };
        if of_first.len() > sounds {
            let allowed = format!("at most {sounds} weights, one for each sound");
            return Err(Error::option("guidance", of_first.len(), allowed));
        }
        Ok(Guidance::new(of_first, of_others))
    }

    /// Limits of the segments. What is asked for must fit behind the prompt; a default is cut to what does.
    fn plan(&self, request: &Request, order: &[Modality], room: usize) -> Result<Plan, Error> {
        let defaults = &self.manifest.sampling;
        let (ending, streams) = (self.family.ending(), self.family.streams().len());
        let texts = order.iter().filter(|m| **m == Modality::Text).count();
        let sounds = order.len() - texts;
        // Where the model chooses, one segment of either kind is enough: the last one ends with the room.
        let (texts, sounds) = if order.is_empty() { (1, 1) } else { (texts, sounds) };
        let drain = ending.rows(1, streams) - 1;
        let segment = |rows: usize| if rows == 0 { 0 } else { rows + SYMBOLS };
        let least = texts * segment(1) + sounds * segment(1 + drain);
        let Some(spare) = room.checked_sub(least) else {
            let allowed = format!("room for {least} rows of an answer; {room} are left");
            return Err(Error::option("messages", "too long", allowed));
        };
        // Beside the one row that every segment has.
        let most = |spare: usize, segments: usize, default: usize| {
            spare.checked_div(segments).map_or(default, |rows| default.min(1 + rows))
        };
        let limit = most(spare, texts, defaults.max_text);
        // Unless it is asked for, text takes no more of a narrow room than sound.
        let usual = limit.min(1 + spare / (texts + sounds));
        let max_text = limited("max_text_tokens", request.max_text_tokens, usual, limit)?;
        // What text leaves is for sound.
        let spare = spare.saturating_sub(texts * (max_text - 1));
        let limit = most(spare, sounds, defaults.max_frames);
        let max_frames = limited("max_audio_frames", request.max_audio_frames, limit, limit)?;
        let min_rows = match request.min_audio_frames {
            Some(_) => limited("min_audio_frames", request.min_audio_frames, 1, max_frames)?,
            None => defaults.min_rows.min(max_frames),
        };
        let max_rows = ending.rows(max_frames, streams);
        let max_tokens = limited("max_tokens", request.max_tokens, usize::MAX, usize::MAX)?;
        Ok(Plan { order: order.to_vec(), max_text, min_rows, max_rows, max_tokens })
    }

    fn usage(&self, prompt: &[u32]) -> Usage {
        let streams = self.family.streams();
        let firsts = prompt.iter().step_by(streams.len());
        let sounds = |id: u32| streams[0].code(id).is_some() || Heard::names(id);
        let sound = firsts.clone().filter(|id| sounds(**id)).count();
        Usage {
            prompt_tokens: firsts.count() - sound,
            prompt_audio_tokens: sound,
            ..Usage::default()
        }
    }
}

/// What was heard, to be kept as long as the answer may look at it.
fn clips(request: &Request) -> Vec<Arc<Clip>> {
    let parts = request.messages.iter().flat_map(|message| &message.parts);
    let clips = |part: &Part| match part {
        Part::Live(clips) | Part::Heard(clips) => clips.clone(),
        Part::Text(_) | Part::Audio(_) | Part::Codes(_) => Vec::new(),
    };
    parts.flat_map(clips).collect()
}

/// A number from 1 to a limit.
fn limited(
    field: &'static str,
    asked: Option<usize>,
    default: usize,
    limit: usize,
) -> Result<usize, Error> {
    let number = asked.unwrap_or(default);
    if !(1..=limit).contains(&number) {
        return Err(Error::option(field, number, format!("1 to {limit}")));
    }
    Ok(number)
}

fn drawn(
    [temperature, top_p]: [&'static str; 2],
    default: Sampling,
    asked: Draw,
) -> Result<Sampling, Error> {
    let top_k = asked.top_k.unwrap_or(default.top_k);
    let share = share(top_p, asked.top_p.unwrap_or(default.top_p))?;
    warmed(temperature, Sampling { top_k, top_p: share, ..default }, asked.temperature)
}

fn stops(asked: &[String]) -> Result<Arc<[String]>, Error> {
    if asked.len() > STOPS_MAX {
        return Err(Error::option("stop", asked.len(), format!("at most {STOPS_MAX} strings")));
    }
    match asked.iter().map(String::len).find(|len| !(1..=STOP_BYTES_MAX).contains(len)) {
        Some(length) => {
            let allowed = format!("strings of 1 to {STOP_BYTES_MAX} bytes");
            Err(Error::option("stop", format!("a string of {length}"), allowed))
        }
        None => Ok(asked.into()),
    }
}

fn list(order: &[Modality]) -> String {
    let name = |modality: &Modality| match modality {
        Modality::Text => "text",
        Modality::Audio => "audio",
    };
    order.iter().map(name).collect::<Vec<_>>().join(", ")
}
