//! The targets of other vendors' clients: those of their sockets, and one for all of their requests.

use super::{FRAMES, STEP, answer, catalogue, setup};
use crate::config::Gateway;
use crate::foreign::cartesia::Cartesia;
use crate::foreign::deepgram::Deepgram;
use crate::foreign::elevenlabs::ElevenLabs;
use crate::foreign::livekit::LiveKit;
use crate::foreign::tontaube::Tontaube;
use crate::foreign::whole::{Asking, Read};
use crate::foreign::{Greeting, Interpreter, Make};
use crate::protocol::{Input, Session, Setup};

use std::sync::Arc;
use std::time::Duration;

/// Everything that reads a request with a whole text.
const READERS: &[Read] = &[
    Cartesia::bytes,
    Cartesia::events,
    Deepgram::file,
    ElevenLabs::file,
    ElevenLabs::timed_file,
    ElevenLabs::timed_pieces,
    Tontaube::predict,
    Tontaube::stream,
];

/// A client of Cartesia's WebSocket.
pub fn cartesia_messages(data: &[u8]) {
    messages(Cartesia::make, data);
}

/// A client of Deepgram's WebSocket.
pub fn deepgram_messages(data: &[u8]) {
    messages(Deepgram::make, data);
}

/// A client of ElevenLabs' WebSockets: that with contexts, and that without. Its first message may be its introduction.
pub fn elevenlabs_messages(data: &[u8]) {
    messages(ElevenLabs::multi, data);
    messages(ElevenLabs::single, data);
    let first = std::str::from_utf8(data).ok().and_then(|lines| lines.lines().next());
    if let Some(first) = first {
        (ElevenLabs::INTRODUCTION.key)(first);
    }
}

/// A client of LiveKit Inference.
pub fn livekit_messages(data: &[u8]) {
    messages(LiveKit::make, data);
}

/// A client of the TontaubeV1 server's WebSocket.
pub fn tontaube_messages(data: &[u8]) {
    messages(Tontaube::make, data);
}

/// A request with a whole text, as every vendor's reader reads it: the first line is its address, what follows its body.
pub fn vendor_bodies(data: &[u8]) {
    let end = data.iter().position(|b| *b == b'\n').unwrap_or(data.len());
    let Ok(address) = std::str::from_utf8(&data[..end]) else { return };
    let (path, query) = address.split_once('?').unwrap_or((address, ""));
    let body = data.get(end + 1..).unwrap_or_default();
    let (config, catalogue) = (Gateway::default(), Arc::new(catalogue()));
    for read in READERS {
        // Refusals are answers as good as others.
        let _ = read(&Asking { path, query, body, config: &config, catalogue: &catalogue });
    }
}

/// A client on a socket: the first line is its address, each further one a message.
fn messages(make: Make, data: &[u8]) {
    let Ok(lines) = std::str::from_utf8(data) else { return };
    let mut lines = lines.lines();
    let address = lines.next().unwrap_or_default();
    let (path, query) = address.split_once('?').unwrap_or((address, ""));
    let setup = Setup { is_foreign: true, ..setup() };
    let config = Gateway::default();
    let greeting = Greeting { path, query, agent: "", setup: &setup, config: &config };
    let Ok(dialect) = make(&greeting) else { return };
    let mut now = Duration::ZERO;
    let mut session = Session::new(setup.clone(), now);
    let mut interpreter = Interpreter::greet(dialect, &mut session, now);
    for line in lines {
        interpreter.hear(&mut session, now, Input::Message(line.to_owned()));
        answer(&mut session, now);
        now += STEP;
        interpreter.hear(&mut session, now, Input::Tick);
        answer(&mut session, now);
        for _ in 0..FRAMES {
            if interpreter.poll_frame(&mut session, now).is_none() {
                break;
            }
        }
    }
}
