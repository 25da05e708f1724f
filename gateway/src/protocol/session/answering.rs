//! Contexts that answer messages: what they are asked, the recordings that come for them, and the text that they write.
//!
//! ```text
//! context.open{messages}            --> Answer; with files in them  --> Read, then Answer
//! audio.begin u1  frames  audio.end u1  --> Sound, Sound, .., SoundEnd: the engine listens while they come
//! Text, Audio of the engine         --> text.delta, text.done, and sound as ever, in the order in which they were made
//! ```

use std::collections::BTreeMap;
use std::time::Duration;

use engine::answer::{Draw, Message, Modality, Part, Request};
use engine::{Event, Segment};

use super::options::{Asked, answer_options, choose};
use super::{Session, Settled};
use crate::chat::content::{self, Most, Piece};
use crate::chat::request::modalities;
use crate::error::{Code, refusal};
use crate::protocol::context::{Answering, Context, Phase, Upload, Waiting};
use crate::protocol::event::{AudioBegin, AudioEnd, ErrorEvent, Open, Options};
use crate::protocol::incoming::{Incoming, NotTaken, Recording};
use crate::protocol::timer::Timer;
use crate::protocol::{Codec, Handle, Output, Reading};

/// What recordings come in.
const CODECS: [(&str, Codec); 5] = [
    ("pcm_s16le", Codec::PcmS16le),
    ("pcm_f32le", Codec::PcmF32le),
    ("mulaw", Codec::Mulaw),
    ("alaw", Codec::Alaw),
    ("opus", Codec::Opus),
];
/// Rate of recordings that tell none, in Hz.
const RATE_DEFAULT: u32 = 24_000;

impl Session {
    /// What a context is asked that answers messages.
    ///
    /// # Errors
    /// The first thing that is not to be had.
    pub(super) fn asked(&self, open: &Open, settled: &Settled) -> Result<Asked, Box<ErrorEvent>> {
        let refused = |refusal: crate::chat::Refusal| {
            Box::new(ErrorEvent::new(Code::BadOption, refusal.message))
        };
        let options = answer_options(open, settled, &self.setup.catalogue)?;
        let most = Most {
            messages: usize::MAX,
            chars: self.setup.limits.max_text_chars,
            keys: ["limits.max_message_bytes", "limits.max_text_chars"],
        };
        let messages = open.messages.as_ref().unwrap_or(&serde_json::Value::Null);
        let said = content::read(messages, &most).map_err(refused)?;
        let pieces = said.iter().flat_map(|one| &one.pieces);
        let mut uploads = BTreeMap::<String, Upload>::new();
        let mut live = 0..;
        for piece in pieces {
            match piece {
                Piece::Text(_) | Piece::File(_) => {}
                Piece::Upload(id) => {
                    uploads.entry(id.clone()).or_default().places.extend(live.next());
                }
                Piece::Answer(_) => {
                    let message =
                        "messages: audio.id is for requests over HTTP; here content is the text";
                    return Err(Box::new(ErrorEvent::new(Code::BadOption, message)));
                }
            }
        }
        // Who speaks this protocol is here to listen.
        let both = ["text", "audio"].map(str::to_owned);
        let asked = open.modalities.as_deref().unwrap_or(&both);
        let modalities = modalities(Some(asked)).map_err(refused)?;
        let request = Box::new(request(&options, &modalities, settled, open.priority));
        let chars = content::text_chars(&said);
        Ok(Asked { said, request, uploads, chars })
    }

    /// Asks the engine, once files in the messages are read. Recordings that they name come while it listens.
    pub(super) fn begin_answer(&mut self, mut context: Box<Context>, asked: Asked, now: Duration) {
        let handle = context.record.handle;
        let seconds = self.setup.limits.max_recording.as_secs_f64();
        let waiting = Box::new(Waiting {
            request: Some(asked.request),
            uploads: asked.uploads,
            current: None,
            next_seq: 0,
            samples_left: (seconds * f64::from(crate::audio::ENGINE_RATE)) as usize,
        });
        let answering = Answering { waiting: Some(waiting), ..Answering::default() };
        context.answering = Some(Box::new(answering));
        self.live.insert(handle, context);
        let reading = Reading::new(asked.said, seconds);
        match reading.has_files() {
            true => self.outputs.push_back(Output::Read { context: handle, reading }),
            false => self.read(handle, reading.read(), now),
        }
    }

    /// The messages of a context are read.
    pub(super) fn read(
        &mut self,
        handle: Handle,
        read: Result<Vec<Message>, String>,
        now: Duration,
    ) {
        let messages = match read {
            Ok(messages) => messages,
            Err(reason) => {
                return self.refuse_open(handle, ErrorEvent::new(Code::BadOption, reason));
            }
        };
        let Some(context) = self.live.get_mut(&handle) else { return };
        let format = context.format();
        let Some(waiting) = context.answering.as_mut().and_then(|a| a.waiting.as_mut()) else {
            return;
        };
        let Some(mut request) = waiting.request.take() else { return };
        let parts = messages.iter().flat_map(|message| &message.parts);
        let read =
            parts.map(|part| if let Part::Audio(samples) = part { samples.len() } else { 0 });
        waiting.samples_left = waiting.samples_left.saturating_sub(read.sum());
        request.messages = messages;
        self.outputs.push_back(Output::Answer { context: handle, request, format });
        self.wait_or_close(handle, now);
    }

    /// Waits for what is missing; a context that nothing is missing of takes nothing more.
    fn wait_or_close(&mut self, handle: Handle, now: Duration) {
        let Some(context) = self.live.get_mut(&handle) else { return };
        let Some(answering) = &mut context.answering else { return };
        if answering.waiting.take_if(|waiting| waiting.is_complete()).is_none() {
            return self.wait_for_more(handle, now);
        }
        context.record.phase = Phase::Ended;
        self.timers.clear(Timer::ContextIdle(handle));
    }

    fn wait_for_more(&mut self, handle: Handle, now: Duration) {
        if let Some(settled) = &self.settled {
            self.timers.set(Timer::ContextIdle(handle), now + settled.context_idle);
        }
    }

    pub(super) fn audio_begin(&mut self, begin: &AudioBegin, now: Duration) {
        let Some(handle) = self.find(&begin.ctx, "audio.begin", None) else { return };
        if let Err(error) = self.begin_recording(handle, begin) {
            return self.error(error.of(&begin.ctx).about("audio.begin", None));
        }
        self.wait_for_more(handle, now);
    }

    fn begin_recording(
        &mut self,
        handle: Handle,
        begin: &AudioBegin,
    ) -> Result<(), Box<ErrorEvent>> {
        let bad = |message: String| Box::new(ErrorEvent::new(Code::BadOption, message));
        let codec = choose("codec", begin.codec.as_deref(), &CODECS)?;
        let rate = begin.sample_rate.unwrap_or(RATE_DEFAULT);
        let Some(waiting) = self.waiting(handle) else {
            return Err(Box::new(ErrorEvent::new(Code::CtxEnded, "the context takes no sound")));
        };
        if waiting.request.is_some() {
            let message = "the context is not open yet";
            return Err(Box::new(ErrorEvent::new(Code::CtxUnknown, message)));
        }
        if let Some((id, _)) = &waiting.current {
            return Err(bad(format!("id: {id:?} is still being sent")));
        }
        if waiting.uploads.get(&begin.id).is_none_or(|upload| upload.has_ended) {
            let message = format!("id: the messages wait for no recording {:?}", begin.id);
            return Err(bad(message));
        }
        let recording = Recording::new(codec, rate, waiting.samples_left).map_err(bad)?;
        waiting.current = Some((begin.id.clone(), recording));
        Ok(())
    }

    /// Whether a context waits for recordings.
    pub(super) fn is_waiting(&self, handle: Handle) -> bool {
        let answering = self.live.get(&handle).and_then(|context| context.answering.as_ref());
        let waiting = answering.and_then(|answering| answering.waiting.as_ref());
        waiting.is_some_and(|waiting| !waiting.is_complete())
    }

    fn waiting(&mut self, handle: Handle) -> Option<&mut Waiting> {
        self.live.get_mut(&handle)?.answering.as_mut()?.waiting.as_deref_mut()
    }

    /// A binary frame of the client.
    pub(super) fn binary(&mut self, bytes: &[u8], now: Duration) {
        self.touch(now);
        let frame = match Incoming::read(bytes) {
            Ok(frame) => frame,
            Err(reason) => return self.bad(reason, now),
        };
        let handle = frame.handle;
        let is_expected = self.waiting(handle).is_some_and(|w| w.current.is_some());
        if !is_expected {
            // Of a context that is over it is only late.
            return match self.over.contains_key(&handle) {
                true => {}
                false => self.bad("a binary frame belongs to no audio.begin".to_owned(), now),
            };
        }
        self.bad_in_row = 0;
        let Some(waiting) = self.waiting(handle) else { return };
        let (seq, count) = (frame.seq, frame.packets.len() as u32);
        // Sent again, after a doubt whether it had arrived.
        if seq < waiting.next_seq {
            return;
        }
        if seq > waiting.next_seq {
            let message = format!("seq {} was expected", waiting.next_seq);
            let error = ErrorEvent::new(Code::SeqGap, message);
            return self.refuse_sound(handle, error);
        }
        waiting.next_seq = seq.wrapping_add(count);
        let Some((id, recording)) = &mut waiting.current else { return };
        let (id, pushed) =
            (id.clone(), frame.packets.iter().try_for_each(|packet| recording.push(packet)));
        let samples = recording.take();
        if let Err(not_taken) = pushed {
            return self.spoil(handle, not_taken, now);
        }
        self.sounds(handle, &id, samples);
        self.wait_for_more(handle, now);
    }

    pub(super) fn audio_end(&mut self, end: &AudioEnd, now: Duration) {
        let Some(handle) = self.find(&end.ctx, "audio.end", None) else { return };
        let current = self.waiting(handle).and_then(|w| w.current.take_if(|(id, _)| *id == end.id));
        let Some((id, recording)) = current else {
            let message = format!("id: no recording {:?} is being sent", end.id);
            let error = ErrorEvent::new(Code::BadOption, message);
            return self.error(error.of(&end.ctx).about("audio.end", None));
        };
        let (samples, count) = match recording.finish() {
            Ok(finished) => finished,
            Err(not_taken) => return self.spoil(handle, not_taken, now),
        };
        self.sounds(handle, &id, samples);
        let Some(waiting) = self.waiting(handle) else { return };
        waiting.samples_left -= count;
        let Some(upload) = waiting.uploads.get_mut(&id) else { return };
        upload.has_ended = true;
        for recording in upload.places.clone() {
            self.outputs.push_back(Output::SoundEnd { context: handle, recording });
        }
        self.wait_or_close(handle, now);
    }

    /// Gives the engine more of a recording, in each of its places.
    fn sounds(&mut self, handle: Handle, id: &str, samples: Vec<f32>) {
        let upload = self.waiting(handle).and_then(|waiting| waiting.uploads.get(id));
        let Some(places) = upload.map(|upload| upload.places.clone()) else { return };
        if samples.is_empty() {
            return;
        }
        for recording in places {
            let samples = samples.clone();
            self.outputs.push_back(Output::Sound { context: handle, recording, samples });
        }
    }

    /// The engine does not take what was sent of a recording; the context cannot go on.
    pub(super) fn sound_refused(&mut self, handle: Handle, refused: &engine::Error, now: Duration) {
        self.refuse_sound(handle, ErrorEvent::new(refusal(refused), refused.to_string()));
        self.cancel_live(handle, "error", now);
    }

    /// A recording cannot be what was said; the context cannot go on.
    fn spoil(&mut self, handle: Handle, not_taken: NotTaken, now: Duration) {
        let message = match not_taken {
            NotTaken::TooLong => {
                let most = self.setup.limits.max_recording.as_secs_f64();
                format!("more than {most} s of sound (limits.max_recording_s)")
            }
            NotTaken::Unreadable(reason) => format!("a packet cannot be decoded: {reason}"),
        };
        self.refuse_sound(handle, ErrorEvent::new(Code::BadOption, message));
        self.cancel_live(handle, "error", now);
    }

    fn refuse_sound(&mut self, handle: Handle, error: ErrorEvent) {
        if let Some(context) = self.live.get(&handle) {
            let error = error.of(&context.record.name).about("audio.begin", None);
            self.error(error);
        }
    }
}

/// What the engine tells of an answer beside its sound.
pub(super) fn learn(context: &mut Context, event: Event, now: Duration) {
    match event {
        Event::Text { delta } => context.wrote(&delta, now),
        Event::Segment { modality: Modality::Audio } => context.begins_to_speak(),
        Event::SegmentEnd(Segment::Text(text)) => context.has_written(text),
        Event::SegmentEnd(Segment::Audio { .. }) => context.has_spoken(),
        _ => {}
    }
}

/// The request to the engine, without its messages.
fn request(
    options: &Options,
    modalities: &[Modality],
    settled: &Settled,
    priority: Option<u8>,
) -> Request {
    let request = Request::new("", modalities);
    let sampling = &options.sampling;
    Request {
        model: options.model.clone(),
        messages: Vec::new(),
        voice: options.voice.clone(),
        text: Draw {
            temperature: sampling.temperature,
            top_k: sampling.top_k,
            top_p: sampling.top_p,
        },
        audio: Draw {
            temperature: sampling.acoustic_temperature,
            top_k: sampling.acoustic_top_k,
            top_p: None,
        },
        guidance: options.cfg,
        seed: options.seed.unwrap_or(0),
        max_ahead: Some(settled.delivery.max_ahead),
        priority: priority.unwrap_or(request.priority),
        ..request
    }
}
