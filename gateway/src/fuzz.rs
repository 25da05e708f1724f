//! Targets for fuzzers: whatever bytes come in, each returns without a panic. `fuzz/` has a target for each, and
//! `tests/fuzz.rs` goes through them with mutations of a small corpus.

mod vendors;

use std::convert::Infallible;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::Request;
use axum::http::{HeaderValue, header};
use bytes::Bytes;
use codecs::incoming::{Coding, Incoming};
use codecs::recording;
use engine::text::{LiveSettings, Need, Passage, TextOptions};
use engine::{Event, Summary};
use futures_util::FutureExt;

pub use self::vendors::{
    cartesia_messages, deepgram_messages, elevenlabs_messages, livekit_messages, tontaube_messages,
    vendor_bodies,
};
use crate::auth::SessionAllowance;
use crate::client;
use crate::config;
use crate::protocol::{
    Catalogue, Hears, Input, Limits, Model, Output, Packet, Session, Setup, Voice,
};
use crate::transport::http::{chat, speech, transcriptions, voices};

/// Takes whatever comes.
pub type Target = fn(&[u8]);

/// All targets by name; a folder of `fuzz/corpus` has the name of each.
pub const TARGETS: &[(&str, Target)] = &[
    ("native_messages", native_messages),
    ("server_messages", server_messages),
    ("binary_header", binary_header),
    ("text", text),
    ("settings", settings),
    ("speech_body", speech_body),
    ("voice_form", voice_form),
    ("chat_body", chat_body),
    ("transcription_form", transcription_form),
    ("incoming_frames", incoming_frames),
    ("recording", recording),
    ("incoming_sound", incoming_sound),
    ("cartesia_messages", cartesia_messages),
    ("deepgram_messages", deepgram_messages),
    ("elevenlabs_messages", elevenlabs_messages),
    ("livekit_messages", livekit_messages),
    ("tontaube_messages", tontaube_messages),
    ("vendor_bodies", vendor_bodies),
];

/// Time that passes behind each message.
const STEP: Duration = Duration::from_millis(700);
/// Bytes of a body that come at once, so that boundaries are cut.
const BODY_PIECE_BYTES: usize = 61;
/// Sound that is read of a recording: the limit is reached by few bytes.
const RECORDING_SECONDS_MAX: f64 = 2.0;
/// Frames that are taken behind each message.
const FRAMES: usize = 64;

/// A session of the native protocol; each line is a message of the client.
pub fn native_messages(data: &[u8]) {
    let Ok(lines) = std::str::from_utf8(data) else { return };
    let mut session = Session::new(setup(), Duration::ZERO);
    let mut now = Duration::ZERO;
    for line in lines.lines() {
        session.handle_input(now, Input::Message(line.to_owned()));
        answer(&mut session, now);
        now += STEP;
        session.handle_input(now, Input::Tick);
        answer(&mut session, now);
        for _ in 0..FRAMES {
            if session.poll_frame(now).is_none() {
                break;
            }
        }
    }
}

/// Stands in for the driver and the engine: opens what it is asked to, and gives it a packet.
fn answer(session: &mut Session, now: Duration) {
    while let Some(output) = session.poll_output() {
        let context = match output {
            Output::Open { context, .. } | Output::Answer { context, .. } => context,
            Output::Cancel(context) => {
                session.handle_input(now, Input::Freed { context, kv_blocks: 1 });
                continue;
            }
            Output::Read { context, reading } => {
                session.handle_input(now, Input::Read { context, messages: reading.read() });
                continue;
            }
            Output::End(context) => {
                let event = Event::Done(Summary { samples: 480, ..Summary::default() });
                session.handle_input(now, Input::Engine { context, event });
                continue;
            }
            Output::Resume(_) => {
                session.handle_input(now, Input::ResumeRefused);
                continue;
            }
            _ => continue,
        };
        session.handle_input(now, Input::Opened { context, answer: Ok(()) });
        let packet = Packet {
            // Silence, whatever samples the bytes are taken for: encoders take no others than an engine makes.
            bytes: Bytes::from_static(&[0; 8]),
            duration: 960,
            silent: false,
            last: false,
        };
        session
            .handle_input(now, Input::Packets { context, packets: vec![packet], generated: 480 });
    }
}

fn catalogue() -> Catalogue {
    let (languages, styles) = (vec!["english".to_owned()], vec!["agentic".to_owned()]);
    let model = Model {
        id: "toy".into(),
        languages: languages.clone(),
        styles: styles.clone(),
        ..Model::default()
    };
    let parrot = Model {
        id: "parrot".into(),
        answers: true,
        hears: Some(Hears { most: Duration::from_secs(1), is_told_in_words: true }),
        ..Model::default()
    };
    let voice = Voice {
        voice_id: "ann".into(),
        name: "Ann".into(),
        model: "nano".into(),
        category: "premade",
        languages,
        styles,
        owner: None,
    };
    Catalogue {
        models: vec![model, parrot],
        voices: vec![voice],
        default_voice: "ann".into(),
        ..Catalogue::default()
    }
}

fn setup() -> Setup {
    Setup {
        limits: Limits::default(),
        catalogue: Arc::new(catalogue()),
        session_id: "s".into(),
        token: "t".into(),
        unix_ms: 0,
        allowance: SessionAllowance::default(),
        has_room: true,
        is_foreign: false,
    }
}

/// A message of the server, as a client reads it.
pub fn server_messages(data: &[u8]) {
    if let Ok(json) = std::str::from_utf8(data) {
        client::read_message(json);
    }
}

/// A binary frame, as a client reads it.
pub fn binary_header(data: &[u8]) {
    if let Ok(frame) = client::AudioFrame::parse(Bytes::copy_from_slice(data)) {
        assert_eq!(frame.packets().count(), usize::from(frame.count));
    }
}

/// Text of a context in pieces, whose lengths are the first bytes; cut as soon as can be.
pub fn text(data: &[u8]) {
    let (lengths, mut rest) = data.split_at(data.len().min(8));
    let mut passage = Passage::new(TextOptions::default(), LiveSettings::default());
    let mut now = Duration::ZERO;
    for &length in lengths {
        let (piece, others) = rest.split_at(rest.len().min(length.into()));
        passage.push_bytes(piece, now);
        rest = others;
        now += Duration::from_millis(50);
        while passage.cut(now, Need::Urgent).is_some() {}
    }
    passage.push_bytes(rest, now);
    passage.end(now);
    while passage.cut(now, Need::Urgent).is_some() {}
    assert!(passage.is_drained(), "text is kept back behind its end");
}

/// A settings file.
pub fn settings(data: &[u8]) {
    if let Ok(text) = std::str::from_utf8(data) {
        let _ = config::parse(Path::new("dovecote.toml"), text);
    }
}

/// The body of a request for speech.
pub fn speech_body(data: &[u8]) {
    speech::read_body(data, &catalogue());
}

/// The body of a request to a model that answers, with its recordings.
pub fn chat_body(data: &[u8]) {
    chat::read_body(data, &catalogue(), RECORDING_SECONDS_MAX);
}

/// The form of a voice, piece by piece; its boundary is the first line.
pub fn voice_form(data: &[u8]) {
    let Some(request) = form(data) else { return };
    let read = voices::read_form(request);
    assert!(read.now_or_never().is_some(), "a body that is all there is waited for");
}

/// The form of a recording that is to be written down, as that of a voice.
pub fn transcription_form(data: &[u8]) {
    let Some(request) = form(data) else { return };
    let read = transcriptions::read_form(request, RECORDING_SECONDS_MAX);
    assert!(read.now_or_never().is_some(), "a body that is all there is waited for");
}

/// A form in pieces; its boundary is the first line.
fn form(data: &[u8]) -> Option<Request> {
    let end = data.iter().position(|b| *b == b'\n').unwrap_or(data.len());
    let (boundary, body) = data.split_at(end);
    let content_type = [b"multipart/form-data; boundary=", boundary].concat();
    let content_type = HeaderValue::from_bytes(&content_type).ok()?;
    let pieces: Vec<Result<Bytes, Infallible>> = body
        .get(1..)
        .unwrap_or_default()
        .chunks(BODY_PIECE_BYTES)
        .map(|piece| Ok(Bytes::copy_from_slice(piece)))
        .collect();
    let mut request = Request::new(Body::from_stream(futures_util::stream::iter(pieces)));
    request.headers_mut().insert(header::CONTENT_TYPE, content_type);
    Some(request)
}

/// Recordings that are sent to a session: its messages, a line each, an empty line, and frames, each behind a byte with its
/// length. Behind them the recording `u` of the context `c` is ended.
pub fn incoming_frames(data: &[u8]) {
    let end = data.windows(2).position(|two| two == b"\n\n").unwrap_or(data.len());
    let (lines, mut frames) = (&data[..end], data.get(end + 2..).unwrap_or_default());
    let Ok(lines) = std::str::from_utf8(lines) else { return };
    let mut session = Session::new(setup(), Duration::ZERO);
    let mut now = Duration::ZERO;
    let mut hear = |input: Input| {
        session.handle_input(now, input);
        answer(&mut session, now);
        now += STEP;
        session.handle_input(now, Input::Tick);
        answer(&mut session, now);
    };
    for line in lines.lines() {
        hear(Input::Message(line.to_owned()));
    }
    while let [length, rest @ ..] = frames {
        let (frame, others) = rest.split_at(rest.len().min(usize::from(*length)));
        hear(Input::Binary(Bytes::copy_from_slice(frame)));
        frames = others;
    }
    hear(Input::Message(r#"{"type":"audio.end","ctx":"c","id":"u"}"#.to_owned()));
}

/// A file that somebody says is a recording, at the rates that models hear.
pub fn recording(data: &[u8]) {
    for rate in [recording::RATE, 16_000] {
        if let Ok(samples) = recording::read_at(rate, data, RECORDING_SECONDS_MAX) {
            let most = RECORDING_SECONDS_MAX * f64::from(rate);
            assert!(samples.len() as f64 <= most + 1.0, "{} samples", samples.len());
        }
    }
}

/// Sound that comes in while it is made: a byte each for its coding and its rate, then pieces or packets, a line each.
pub fn incoming_sound(data: &[u8]) {
    const CODINGS: [Coding; 5] =
        [Coding::I16, Coding::F32, Coding::Mulaw, Coding::Alaw, Coding::Opus];
    const RATES: [u32; 5] = [8_000, 11_025, 16_000, 44_100, 48_000];
    let [coding, rate, sound @ ..] = data else { return };
    let (coding, rate) = (CODINGS[usize::from(*coding) % 5], RATES[usize::from(*rate) % 5]);
    let Ok(mut incoming) = Incoming::new(coding, rate, 16_000, RECORDING_SECONDS_MAX) else {
        return;
    };
    for piece in sound.split(|&byte| byte == b'\n') {
        if let Ok(samples) = incoming.push(piece) {
            assert!(samples.iter().all(|sample| sample.is_finite()), "{samples:?}");
        }
        assert!(incoming.seconds() <= RECORDING_SECONDS_MAX);
    }
    let _ = incoming.finish();
}
