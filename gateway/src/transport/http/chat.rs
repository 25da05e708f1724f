//! `POST /v1/chat/completions`: what a speech language model answers, written and spoken.
//!
//! ```text
//! body --read, decoded--> messages --engine--> text and sound --Chunks--> events as they come
//!                                                             --Object--> one object at the end
//! ```

use std::sync::Arc;
use std::time::Duration;

use axum::body::Bytes;
use axum::extract::rejection::BytesRejection;
use axum::extract::{DefaultBodyLimit, Extension, State};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, post};
use engine::answer::Message;

use super::answer::{self, Wanted};
use super::answers::{Place, begin};
use super::unread;
use crate::access::Access;
use crate::auth::Caller;
use crate::chat::reply::{Chunks, Keep, Names, Object, Spoken};
use crate::chat::request::Chat;
use crate::chat::{Refusal, content};
use crate::config::{self, Gateway};
use crate::container::FileFormat;
use crate::foreign::whole::Framing;
use crate::protocol::Catalogue;
use crate::server::{Server, random_hex, random_seed, unix_ms};
use crate::shape::{Shape, ShapeWriter};

/// Where it is asked for.
pub(crate) const PATH: &str = "/v1/chat/completions";

/// The route.
pub(crate) fn completions(settings: &config::Chat) -> MethodRouter<Arc<Server>> {
    post(complete).layer(DefaultBodyLimit::max(settings.max_body_bytes))
}

async fn complete(
    State(server): State<Arc<Server>>,
    Extension(access): Extension<Access>,
    Extension(caller): Extension<Caller>,
    place: Place,
    body: Result<Bytes, BytesRejection>,
) -> Response {
    let body = match body {
        Ok(body) => body,
        Err(rejection) => return unread(&rejection, server.config.chat.max_body_bytes),
    };
    let key = caller.key().map(str::to_owned);
    let catalogue = server.voices.catalogue().seen_by(caller.key());
    let reading = {
        let (server, key) = (server.clone(), key.clone());
        move || read(&body, &server, &catalogue, key.as_deref())
    };
    // Sound takes longer to decode than the threads of the sockets may be kept from them.
    let read = tokio::task::spawn_blocking(reading).await;
    drop(place);
    let (chat, messages, chars) = match read.expect("reading does not panic; this is a bug") {
        Ok(read) => read,
        Err(refusal) => return refusal.into_response(),
    };
    let Chat { request, seed, model, sound, stream, .. } = chat;
    let seed = seed.unwrap_or_else(random_seed);
    let request = engine::answer::Request { messages, seed, ..request };
    let names = names(model, sound.is_some(), server.config.chat.keep_answers);
    let keep = keep(&server, key, &names);
    let framing: Box<dyn Framing> = match stream {
        Some(stream) => Box::new(Chunks::new(names, stream.has_usage, keep)),
        None => Box::new(Object::new(names, sound == Some(FileFormat::Wav), keep)),
    };
    let shape = Shape::File(match sound {
        // Its header says how long it is, which is known at the end.
        Some(FileFormat::Wav) | None => FileFormat::Pcm,
        Some(format) => format,
    });
    let writer = match ShapeWriter::new(shape) {
        Ok(writer) => writer,
        Err(error) => return Refusal::of("audio.format", error.to_string()).into_response(),
    };
    let (events, admission) = match begin(&server, &caller, &access, chars, request) {
        Ok(begun) => begun,
        Err(none) => return none.into_response(),
    };
    let content_type = framing.content_type();
    let (text, framing, metrics) = (String::new(), Some(framing), server.metrics.clone());
    let wanted = Wanted { text, writer, content_type, framing, metrics };
    match stream {
        Some(_) => answer::answer(events, wanted, admission, access).await,
        None => answer::collect(events, wanted, admission, access).await,
    }
}

/// Reads a body: the request, its messages, and the characters of text in them.
fn read(
    body: &[u8],
    server: &Server,
    catalogue: &Catalogue,
    key: Option<&str>,
) -> Result<(Chat, Vec<Message>, usize), Refusal> {
    let mut chat = Chat::parse(body, &server.config, catalogue)?;
    let chars = content::text_chars(&chat.said);
    let said = std::mem::take(&mut chat.said);
    let now = server.since_start();
    let kept = |id: &str| server.kept().find(id, key, now);
    // Recordings that are sent beside the messages are for sessions.
    let seconds = content::Seconds::of(&server.config.chat);
    let messages = content::resolve(said, seconds, kept, |_| None)?;
    Ok((chat, messages, chars))
}

/// Reads a body with at most so much sound, and forgets it.
pub(crate) fn read_body(body: &[u8], catalogue: &Catalogue, seconds_max: f64) {
    if let Ok(chat) = Chat::parse(body, &Gateway::default(), catalogue) {
        let seconds = content::Seconds { most: seconds_max, key: "chat.max_input_seconds" };
        let _ = content::resolve(chat.said, seconds, |_| None, |_| None);
    }
}

fn names(model: String, is_spoken: bool, keep: Duration) -> Names {
    let created = unix_ms() / 1_000;
    let spoken = is_spoken.then(|| Spoken {
        id: format!("audio_{}", random_hex()),
        expires_at: created + keep.as_secs(),
    });
    Names { id: format!("chatcmpl-{}", random_hex()), created, model, spoken }
}

/// What becomes of the text of a complete answer: of a spoken one, a later request may name it.
fn keep(server: &Arc<Server>, key: Option<String>, names: &Names) -> Keep {
    let Some(id) = names.spoken.as_ref().map(|spoken| spoken.id.clone()) else {
        return Box::new(|_| {});
    };
    let server = server.clone();
    Box::new(move |text| {
        let until = server.since_start() + server.config.chat.keep_answers;
        server.kept().keep(id, key.as_deref(), text, until);
    })
}
