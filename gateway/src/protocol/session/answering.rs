//! Contexts that answer messages: what they are asked, the recordings that come for them, and the text that they write.
//!
//! ```text
//! context.open{messages}            --> Answer, at once
//! context.open{messages: "u1"}      --> opened   audio.begin u1  frames  audio.end u1  --> Answer
//! Text, Audio of the engine         --> text.delta, text.done, and sound as ever, in the order in which they were made
//! ```

use std::collections::BTreeMap;
use std::time::Duration;

use engine::answer::{Draw, Modality, Request};
use engine::{Event, Segment};

use super::options::{Asked, answer_options, choose};
use super::{Session, Settled};
use crate::chat::content::{self, Most, Piece};
use crate::chat::request::modalities;
use crate::error::Code;
use crate::protocol::context::{Answering, Context, Phase, Waiting};
use crate::protocol::event::{AudioBegin, AudioEnd, ErrorEvent, Open, Options};
use crate::protocol::incoming::{Incoming, NotTaken, Recording};
use crate::protocol::timer::Timer;
use crate::protocol::{Codec, Handle, Output};

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
        let mut recordings = BTreeMap::new();
        for piece in pieces {
            let elsewhere = match piece {
                Piece::Text(_) => continue,
                Piece::Upload(id) => {
                    recordings.insert(id.clone(), None);
                    continue;
                }
                Piece::File(_) => {
                    "input_audio.data is for requests over HTTP; here input_audio.id names a recording that audio.begin and audio.end enclose"
                }
                Piece::Answer(_) => "audio.id is for requests over HTTP; here content is the text",
            };
            let message = format!("messages: {elsewhere}");
            return Err(Box::new(ErrorEvent::new(Code::BadOption, message)));
        }
        // Who speaks this protocol is here to listen.
        let both = ["text", "audio"].map(str::to_owned);
        let asked = open.modalities.as_deref().unwrap_or(&both);
        let modalities = modalities(Some(asked)).map_err(refused)?;
        let request = Box::new(request(&options, &modalities, settled, open.priority));
        let chars = content::text_chars(&said);
        Ok(Asked { said, request, recordings, chars })
    }

    /// Asks the engine, or waits for the recordings that the messages name.
    pub(super) fn begin_answer(&mut self, mut context: Box<Context>, asked: Asked, now: Duration) {
        let handle = context.record.handle;
        let rate = crate::audio::ENGINE_RATE;
        let most = self.setup.limits.max_recording.as_secs_f64() * f64::from(rate);
        let waiting = Box::new(Waiting {
            said: asked.said,
            request: asked.request,
            recordings: asked.recordings,
            current: None,
            next_seq: 0,
            samples_left: most as usize,
        });
        let is_complete = waiting.is_complete();
        let answering = Answering { waiting: Some(waiting), ..Answering::default() };
        context.answering = Some(Box::new(answering));
        self.live.insert(handle, context);
        if is_complete {
            return self.ask(handle, now);
        }
        self.wait_for_more(handle, now);
        self.announce(handle, now);
    }

    /// All that the messages name is there.
    fn ask(&mut self, handle: Handle, now: Duration) {
        let Some(context) = self.live.get_mut(&handle) else { return };
        let Some(waiting) = context.answering.as_mut().and_then(|a| a.waiting.take()) else {
            return;
        };
        let Waiting { said, mut request, recordings, .. } = *waiting;
        let recording = |id: &str| recordings.get(id).cloned().flatten();
        match content::resolve(said, 0.0, |_| None, recording) {
            Ok(messages) => request.messages = messages,
            Err(refusal) => {
                let error =
                    ErrorEvent::new(Code::BadOption, refusal.message).of(&context.record.name);
                self.error(error);
                return self.cancel_live(handle, "error", now);
            }
        }
        let format = context.format();
        // It takes nothing more.
        context.record.phase = Phase::Ended;
        self.timers.clear(Timer::ContextIdle(handle));
        self.outputs.push_back(Output::Answer { context: handle, request, format });
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
        if let Some((id, _)) = &waiting.current {
            return Err(bad(format!("id: {id:?} is still being sent")));
        }
        if waiting.recordings.get(&begin.id) != Some(&None) {
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
        answering.is_some_and(|answering| answering.waiting.is_some())
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
        let Some((_, recording)) = &mut waiting.current else { return };
        if let Err(not_taken) = frame.packets.iter().try_for_each(|packet| recording.push(packet)) {
            return self.spoil(handle, not_taken, now);
        }
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
        let samples = match recording.finish() {
            Ok(samples) => samples,
            Err(not_taken) => return self.spoil(handle, not_taken, now),
        };
        let Some(waiting) = self.waiting(handle) else { return };
        waiting.samples_left -= samples.len();
        waiting.recordings.insert(id, Some(samples.into()));
        if waiting.is_complete() {
            return self.ask(handle, now);
        }
        self.wait_for_more(handle, now);
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
