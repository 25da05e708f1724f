//! What the engine makes, on its way to the client: as the body itself or in a vendor's messages, streamed or in one piece.
//! Sound goes a tenth of a second at a time, however much comes at once.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use engine::text::Notice;
use engine::{Event, Events, Failure, Pcm, Summary};
use futures_util::stream;
use serde_json::json;

use crate::access::Access;
use crate::audio::ENGINE_RATE;
use crate::container::FileError;
use crate::foreign::whole::{Framing, Timing, Word};
use crate::metrics::Metrics;
use crate::protocol::{Alignment, Timed};
use crate::server::next;
use crate::sessions::Admission;
use crate::shape::ShapeWriter;
use crate::transport::http::{NOTICE, problem};

/// Sound of one piece: 100 ms. A larger one would keep a listener waiting for its end.
const PIECE_SAMPLES: usize = ENGINE_RATE as usize / 10;
/// Words are told for so much sound at a time, as in sessions.
const WORDS_SAMPLES: u64 = 2 * ENGINE_RATE as u64;

/// Most bytes of the header that tells what of a text had no effect: heads of answers are small.
const NOTICE_BYTES_MAX: usize = 1_024;

/// What is to become of a context's sound.
pub(super) struct Wanted {
    pub(super) text: String,
    pub(super) writer: ShapeWriter,
    /// Of the bytes that it writes.
    pub(super) content_type: &'static str,
    pub(super) framing: Option<Box<dyn Framing>>,
    /// Where answers of models are counted.
    pub(super) metrics: Arc<Metrics>,
}

impl Wanted {
    /// Of the body.
    fn content_type(&self) -> &'static str {
        self.framing.as_ref().map_or(self.content_type, |framing| framing.content_type())
    }
}

/// Waits for the first that a client hears or reads, so that a failure before it has a status of its own; then streams.
pub(super) async fn answer(
    events: Events,
    wanted: Wanted,
    admission: Admission,
    access: Access,
) -> Response {
    let content_type = wanted.content_type();
    let mut speech = Speech::new(events, wanted, admission, access);
    while speech.ready.is_empty() && speech.first.is_none() {
        match next(&speech.events).await {
            Some(Event::Failed(failure)) => return BodyError::from(failure).into_response(),
            Some(event @ (Event::Audio { .. } | Event::Done(_))) => speech.first = Some(event),
            Some(event) => speech.learn(&event),
            None => return BodyError::Stopped.into_response(),
        }
    }
    // Until the last byte is out.
    speech.access.outcome("gone");
    // All of them: they come with the first chunk, before any sound.
    let notices = notice_header(&speech.notices);
    let body = Body::from_stream(stream::try_unfold(speech, Speech::advance));
    let mut response = answered(content_type, body);
    response.headers_mut().extend(notices.map(|notices| (NOTICE, notices)));
    response
}

/// Waits for all of it. A client that leaves meanwhile drops this, and with it the context.
pub(super) async fn collect(
    events: Events,
    wanted: Wanted,
    admission: Admission,
    access: Access,
) -> Response {
    let content_type = wanted.content_type();
    let mut speech = Speech::new(events, wanted, admission, access);
    speech.access.outcome("gone");
    let mut body = Vec::new();
    loop {
        match speech.advance().await {
            Ok(Some((bytes, rest))) => {
                body.extend(bytes);
                speech = rest;
            }
            Ok(None) => break,
            Err(error) => return error.into_response(),
        }
    }
    answered(content_type, body)
}

/// The answer that a body is.
pub(super) fn answered(content_type: &'static str, body: impl IntoResponse) -> Response {
    ([(header::CONTENT_TYPE, content_type), (header::CACHE_CONTROL, "no-store")], body)
        .into_response()
}

/// The engine could not go on. What it could not hear stands at this place of the request; all else is its own.
pub(super) fn failed(failure: &Failure, heard_at: &str) -> Response {
    match failure {
        Failure::Hearing(_) => {
            problem(StatusCode::BAD_REQUEST, "cannot_hear", Some(heard_at), &failure.to_string())
        }
        failure => broken(&failure.to_string()),
    }
}

/// The engine is to blame.
pub(super) fn broken(message: &str) -> Response {
    problem(StatusCode::INTERNAL_SERVER_ERROR, "engine_failed", None, message)
}

/// What of a text had no effect, as a session and `/v1/text` tell it, in ASCII; as many as there is room for.
fn notice_header(notices: &[Notice]) -> Option<HeaderValue> {
    let mut told = String::new();
    for Notice { what, from, to } in notices {
        let notice = json!({"what": what, "text": {"from": from, "to": to}}).to_string();
        let notice = ascii(&notice);
        let separator = if told.is_empty() { "[" } else { "," };
        if told.len() + separator.len() + notice.len() >= NOTICE_BYTES_MAX {
            break;
        }
        told += separator;
        told += &notice;
    }
    if told.is_empty() {
        return None;
    }
    HeaderValue::from_str(&(told + "]")).ok()
}

/// JSON with escapes for all that is not ASCII.
fn ascii(json: &str) -> String {
    let mut escaped = String::with_capacity(json.len());
    for c in json.chars() {
        if c.is_ascii() && c != '\u{7f}' {
            escaped.push(c);
            continue;
        }
        for unit in c.encode_utf16(&mut [0; 2]).iter() {
            escaped += &format!("\\u{unit:04x}");
        }
    }
    escaped
}

/// An answer under way. Dropping it, as a client's leaving does, cancels the context.
struct Speech {
    events: Events,
    /// What was read before the answer began.
    first: Option<Event>,
    /// Sound that came at once, and how much of it is encoded.
    sound: Pcm,
    at: usize,
    /// None once the file is complete.
    writer: Option<ShapeWriter>,
    framing: Option<Box<dyn Framing>>,
    words: Option<Words>,
    /// What of the text has no effect, as far as that is known.
    notices: Vec<Notice>,
    /// What goes out next.
    ready: VecDeque<Bytes>,
    /// Why it breaks off, once what is ready is out.
    broken: Option<BodyError>,
    metrics: Arc<Metrics>,
    access: Access,
    _admission: Admission,
}

/// Why a body ends before its time; the client sees a broken transfer, never a short file that looks whole.
#[derive(Debug, thiserror::Error)]
enum BodyError {
    #[error(transparent)]
    Failed(#[from] Failure),
    #[error("the engine stopped")]
    Stopped,
    #[error(transparent)]
    File(#[from] FileError),
}

impl IntoResponse for BodyError {
    fn into_response(self) -> Response {
        match self {
            Self::Failed(failure) => failed(&failure, "messages"),
            error => broken(&error.to_string()),
        }
    }
}

impl Speech {
    fn new(events: Events, wanted: Wanted, admission: Admission, access: Access) -> Self {
        let Wanted { text, writer, framing, metrics, .. } = wanted;
        let timing = framing.as_ref().map_or(Timing::Nothing, |framing| framing.timing());
        Self {
            events,
            first: None,
            sound: Pcm::default(),
            at: 0,
            writer: Some(writer),
            framing,
            words: (timing != Timing::Nothing).then(|| Words::new(text, timing)),
            notices: Vec::new(),
            ready: VecDeque::new(),
            broken: None,
            metrics,
            access,
            _admission: admission,
        }
    }

    /// Takes note of what the engine tells beside the sound.
    fn learn(&mut self, event: &Event) {
        if let Event::Notice(notice) = event {
            self.notices.push(notice.clone());
        }
        if let Some(words) = &mut self.words {
            words.learn(event);
        }
        if let Some(framing) = &mut self.framing {
            let message = framing.learn(event);
            self.send(message);
        }
    }

    async fn advance(mut self) -> Result<Option<(Bytes, Self)>, BodyError> {
        loop {
            if let Some(bytes) = self.ready.pop_front() {
                return Ok(Some((bytes, self)));
            }
            if let Some(error) = self.broken.take() {
                return Err(error);
            }
            if self.writer.is_none() {
                return Ok(None);
            }
            if let Err(error) = self.step().await {
                // Without messages there is nothing to tell it in.
                let Some(framing) = &mut self.framing else { return Err(error) };
                let message = framing.broken(&error.to_string());
                self.send(message);
                self.broken = Some(error);
            }
        }
    }

    /// A step of the work: a piece is encoded, or the next event taken.
    async fn step(&mut self) -> Result<(), BodyError> {
        let Some(writer) = &mut self.writer else { return Ok(()) };
        if self.at < self.sound.len() {
            let end = self.sound.len().min(self.at + PIECE_SAMPLES);
            let bytes = match &self.sound {
                Pcm::Samples(samples) => writer.write(&samples[self.at..end])?,
                Pcm::Silence(_) => writer.write(&vec![0.0; end - self.at])?,
            };
            let samples = (end - self.at) as u64;
            self.at = end;
            self.give(bytes);
            if let Some(words) = &mut self.words {
                words.sounded += samples;
            }
            self.tell_words(WORDS_SAMPLES);
            return Ok(());
        }
        let event = match self.first.take() {
            Some(event) => Some(event),
            None => next(&self.events).await,
        };
        match event {
            Some(Event::Audio { samples, .. }) => {
                self.access.sound(sounding(samples.len()));
                (self.sound, self.at) = (samples, 0);
            }
            Some(Event::Done(summary)) => return self.finish(&summary),
            Some(Event::Failed(failure)) => {
                self.access.outcome("failed");
                return Err(failure.into());
            }
            Some(Event::Cancelled(_)) | None => return Err(BodyError::Stopped),
            Some(event) => self.learn(&event),
        }
        Ok(())
    }

    fn finish(&mut self, summary: &Summary) -> Result<(), BodyError> {
        let Some(writer) = self.writer.take() else { return Ok(()) };
        self.access.outcome("done");
        if let Some(usage) = &summary.usage {
            self.metrics.wire.answers.count(usage, sounding(summary.samples as usize));
        }
        let bytes = writer.finish()?;
        self.give(bytes);
        self.tell_words(1);
        if let Some(framing) = &mut self.framing {
            let done = framing.done(summary);
            self.send(done);
        }
        Ok(())
    }

    /// Puts bytes into line, if there are any.
    fn give(&mut self, bytes: Vec<u8>) {
        if bytes.is_empty() {
            return;
        }
        let bytes = match &mut self.framing {
            Some(framing) => {
                framing.at(self.access.elapsed());
                framing.sound(&bytes)
            }
            None => bytes.into(),
        };
        self.send(bytes);
    }

    /// Puts a message into line, if there is anything in it.
    fn send(&mut self, message: Bytes) {
        if !message.is_empty() {
            self.ready.push_back(message);
        }
    }

    /// Tells the words of the sound that was told, if that is so much.
    fn tell_words(&mut self, least: u64) {
        let (Some(framing), Some(words)) = (&mut self.framing, &mut self.words) else { return };
        if words.sounded - words.told >= least {
            let words = words.next();
            if !words.is_empty() {
                let message = framing.words(&words);
                self.send(message);
            }
        }
    }
}

/// When the words or characters of a text sound.
struct Words {
    timing: Timing,
    alignment: Alignment,
    text: String,
    /// Samples that were encoded, and those whose words were told.
    sounded: u64,
    told: u64,
}

impl Words {
    fn new(text: String, timing: Timing) -> Self {
        Self { timing, alignment: Alignment::default(), text, sounded: 0, told: 0 }
    }

    fn learn(&mut self, event: &Event) {
        match event {
            Event::Chunk { raw, .. } => self.alignment.chunk(raw.clone()),
            Event::ChunkEnd { raw, end, .. } => self.alignment.chunk_end(raw, *end),
            Event::Aligned { ends } => self.alignment.aligned(ends),
            _ => {}
        }
    }

    /// Those that end in the sound since the last call.
    fn next(&mut self) -> Vec<Word> {
        self.alignment.freeze(self.sounded);
        let ended = self.told..self.sounded;
        let timings = match self.timing {
            Timing::Characters => self.alignment.chars(&self.text, ended),
            _ => self.alignment.words(&self.text, ended),
        };
        self.told = self.sounded;
        let second = |samples: u64| samples as f64 / f64::from(ENGINE_RATE);
        let mut chars = self.text.chars();
        let mut passed = 0;
        let word = |timed: Timed| {
            let skipped = chars.by_ref().skip(timed.chars.start - passed);
            let text = skipped.take(timed.chars.len()).collect();
            passed = timed.chars.end;
            Word { text, start_s: second(timed.samples.start), end_s: second(timed.samples.end) }
        };
        timings.timed.into_iter().map(word).collect()
    }
}

/// How long so many samples sound.
fn sounding(samples: usize) -> Duration {
    Duration::from_secs_f64(samples as f64 / f64::from(ENGINE_RATE))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn notice(what: &str) -> Notice {
        Notice { what: what.to_owned(), from: 4, to: 20 }
    }

    #[test]
    fn what_has_no_effect_is_told_in_ascii_and_not_without_end() {
        assert_eq!(notice_header(&[]), None);
        let told = notice_header(&[notice("phoneme"), notice("say-as Größe \"😀\"")]).unwrap();
        assert!(told.to_str().is_ok(), "{told:?}");
        let read: serde_json::Value = serde_json::from_slice(told.as_bytes()).unwrap();
        assert_eq!(read[0], json!({"what": "phoneme", "text": {"from": 4, "to": 20}}));
        assert_eq!(read[1]["what"], "say-as Größe \"😀\"");
        let told = notice_header(&vec![notice(&"x".repeat(100)); 100]).unwrap();
        let read: Vec<serde_json::Value> = serde_json::from_slice(told.as_bytes()).unwrap();
        assert!(told.len() <= NOTICE_BYTES_MAX && !read.is_empty(), "{}", told.len());
        assert_eq!(notice_header(&[notice(&"x".repeat(NOTICE_BYTES_MAX))]), None);
    }
}
