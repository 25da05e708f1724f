//! The routes of the TontaubeV1 server, so that its clients need nothing but another address.
//!
//! ```text
//! POST /predict    a JSON object with the whole file in base64
//! POST /stream     server-sent events {"index","audio_b64","done"}, MP3 unless the request says otherwise
//! GET /ws/stream   one JSON request, then binary messages: u16 count, then per Opus packet u16 length and its bytes, all
//!                  little-endian; at the end {"done":true}
//! ```

mod asked;
#[cfg(test)]
mod tests;

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use engine::{Event, Summary};
use serde_json::{Value, json};

pub(crate) use self::asked::problem;
use self::asked::{Asked, Kind, refused};
use super::contexts::Contexts;
use super::names::Names;
use super::whole::{Asking, Framing, Refused, Whole, server_sent};
use super::{Dialect, Greeting, Step, Unwelcome, text_frame};
use crate::audio::ENGINE_RATE;
use crate::config::Gateway;
use crate::container::{Encoding, FileFormat};
use crate::protocol::event::{ClientEvent, EndSession, ServerEvent};
use crate::protocol::{Asked as Audio, Format, Frame, SoundFrame, packets};
use crate::shape::Shape;

/// Bits a second of MP3 and Opus, unless the request says otherwise.
const BITRATE: u32 = 64_000;
/// Packets of 20 ms in a binary message.
const PACK: u16 = 5;
/// The only context of a connection.
const NAME: &str = "";

/// The TontaubeV1 server's protocol.
pub(crate) struct Tontaube {
    config: Gateway,
    names: Names,
    contexts: Contexts<()>,
    /// The request has come; the socket takes no other.
    has_asked: bool,
}

impl Tontaube {
    /// Reads a request for a file in a JSON object.
    ///
    /// # Errors
    /// What cannot be spoken.
    pub(crate) fn predict(asking: &Asking<'_>) -> Result<Whole, Refused> {
        let asked = read(asking)?;
        let shape = shape(&asked, Kind::Wav)?;
        let framing = Predicted {
            mime_type: shape.content_type(),
            has_begun: false,
            rest: Vec::new(),
            codes: Vec::new(),
        };
        whole(asking, asked, shape, Box::new(framing))
    }

    /// Reads a request for events.
    ///
    /// # Errors
    /// What cannot be spoken.
    pub(crate) fn stream(asking: &Asking<'_>) -> Result<Whole, Refused> {
        let asked = read(asking)?;
        let shape = shape(&asked, Kind::Mp3)?;
        whole(asking, asked, shape, Box::new(Streamed { index: 0 }))
    }

    /// For a new connection.
    ///
    /// # Errors
    /// None: what a client asks for stands in its request.
    pub(crate) fn make(greeting: &Greeting<'_>) -> Result<Box<dyn Dialect>, Unwelcome> {
        Ok(Box::new(Self {
            config: greeting.config.clone(),
            names: Names::new(greeting),
            contexts: Contexts::default(),
            has_asked: false,
        }))
    }

    fn ask(&mut self, message: &str) -> Result<Vec<Step>, String> {
        let message = serde_json::from_str(message).map_err(|error| error.to_string())?;
        let asked = Asked::read(message, &self.config)?;
        if asked.kind.is_some_and(|kind| kind != Kind::Opus) {
            return Err("format here is opus".to_owned());
        }
        let bitrate = Some(asked.bitrate.unwrap_or(BITRATE));
        let format = Format::choose(&Audio { bitrate, pack: Some(PACK), ..Audio::default() })?;
        let mut options = asked.options;
        options.voice = self.names.voice(options.voice.as_deref());
        let (context, mut open) = self.contexts.open(Some(NAME.to_owned()), format, options, ());
        if let Step::Say(ClientEvent::Open(open)) = &mut open {
            open.priority = asked.priority;
        }
        if !asked.ignored.is_empty() {
            tracing::info!(ignored = ?asked.ignored, "a context is spoken without what has no effect here");
        }
        let end = ClientEvent::EndSession(EndSession { drain: true });
        Ok(vec![open, context.text(asked.text), context.end(), Step::Say(end)])
    }

    /// The last words of a connection that comes to nothing.
    fn error(reason: &str) -> Frame {
        text_frame(&json!({"error": reason, "done": true}))
    }
}

fn read(asking: &Asking<'_>) -> Result<Asked, Refused> {
    let asked = asking.json().and_then(|body| Asked::read(body, asking.config));
    asked.map_err(|reason| refused(&reason))
}

fn whole(
    asking: &Asking<'_>,
    asked: Asked,
    shape: Shape,
    framing: Box<dyn Framing>,
) -> Result<Whole, Refused> {
    let mut request = asked.request();
    let names = Names::of(asking.config, asking.catalogue);
    request.voice = names.voice(request.voice.as_deref());
    Ok(Whole { request, shape, framing: Some(framing), ignored: asked.ignored })
}

/// The file that is asked for.
fn shape(asked: &Asked, usual: Kind) -> Result<Shape, Refused> {
    let bitrate = asked.bitrate.unwrap_or(BITRATE);
    Ok(match asked.kind.unwrap_or(usual) {
        Kind::Wav => Shape::File(FileFormat::Wav),
        Kind::Opus => Shape::Encoded(Encoding::Opus { bitrate }),
        #[cfg(feature = "mp3")]
        Kind::Mp3 => Shape::Encoded(Encoding::Mp3 { sample_rate: ENGINE_RATE, bitrate }),
        #[cfg(not(feature = "mp3"))]
        Kind::Mp3 => {
            return Err(refused("format \"mp3\" is not available; available are wav, opus"));
        }
    })
}

/// A JSON object that is written while its sound is made, so that none of it need be kept.
struct Predicted {
    mime_type: &'static str,
    has_begun: bool,
    /// Bytes that do not fill a group of base64.
    rest: Vec<u8>,
    /// Semantic codes.
    codes: Vec<u16>,
}

impl Predicted {
    fn begin(&mut self) -> &'static str {
        if std::mem::replace(&mut self.has_begun, true) { "" } else { "{\"audio_b64\":\"" }
    }
}

impl Framing for Predicted {
    fn content_type(&self) -> &'static str {
        "application/json"
    }

    fn learn(&mut self, event: &Event) -> Bytes {
        if let Event::ChunkEnd { said, .. } = event {
            self.codes.extend(&said.codes);
        }
        Bytes::new()
    }

    fn sound(&mut self, bytes: &[u8]) -> Bytes {
        self.rest.extend(bytes);
        let whole = self.rest.len() / 3 * 3;
        let text = STANDARD.encode(&self.rest[..whole]);
        self.rest.drain(..whole);
        format!("{}{text}", self.begin()).into()
    }

    fn done(&mut self, _summary: &Summary) -> Bytes {
        let (begin, text) = (self.begin(), STANDARD.encode(&self.rest));
        let (mime_type, codes) = (self.mime_type, json!([self.codes]));
        let end = format!(
            "\"mime_type\":\"{mime_type}\",\"sample_rate\":{ENGINE_RATE},\"codebook_tokens\":{codes}}}"
        );
        format!("{begin}{text}\",{end}").into()
    }

    fn broken(&mut self, _message: &str) -> Bytes {
        // The object stays open: nobody can take it for a whole one.
        Bytes::new()
    }
}

/// Events with the bytes of a file.
struct Streamed {
    index: u64,
}

impl Streamed {
    fn event(&mut self, bytes: &[u8], done: bool) -> Value {
        let event = json!({"index": self.index, "audio_b64": STANDARD.encode(bytes), "done": done});
        self.index += 1;
        event
    }
}

impl Framing for Streamed {
    fn sound(&mut self, bytes: &[u8]) -> Bytes {
        server_sent(None, &self.event(bytes, false))
    }

    fn done(&mut self, _summary: &Summary) -> Bytes {
        server_sent(None, &self.event(&[], true))
    }

    fn broken(&mut self, message: &str) -> Bytes {
        let mut event = self.event(&[], true);
        event["error"] = message.into();
        server_sent(None, &event)
    }
}

impl Dialect for Tontaube {
    fn greet(&mut self) -> Vec<Step> {
        vec![Step::Say(ClientEvent::Start(Box::default()))]
    }

    fn hear(&mut self, message: &str, _now: Duration) -> Vec<Step> {
        if self.has_asked {
            return vec![Step::Malformed("a connection is for one request".to_owned())];
        }
        self.has_asked = true;
        self.ask(message).unwrap_or_else(|reason| {
            let end = ClientEvent::EndSession(EndSession { drain: false });
            vec![Step::Reply(Self::error(&reason)), Step::Say(end)]
        })
    }

    fn say(&mut self, event: ServerEvent, _now: Duration) -> Vec<Frame> {
        let done = |_| text_frame(&json!({"done": true}));
        let frame = match event {
            ServerEvent::Opened(opened) => {
                self.contexts.opened(&opened);
                None
            }
            ServerEvent::Done(end) => self.contexts.remove(&end.ctx).map(done),
            ServerEvent::Cancelled(end) => self.contexts.remove(&end.ctx).map(done),
            ServerEvent::Error(error) => match &error.ctx {
                Some(ctx) => self.contexts.remove(ctx).map(|_| Self::error(&error.message)),
                None => Some(Self::error(&error.message)),
            },
            _ => None,
        };
        frame.into_iter().collect()
    }

    fn sound(&mut self, sound: &SoundFrame, _now: Duration) -> Vec<Frame> {
        let packets = packets(&sound.bytes);
        let mut bytes = (packets.len() as u16).to_le_bytes().to_vec();
        for packet in packets {
            bytes.extend((packet.len() as u16).to_le_bytes());
            bytes.extend(&packet);
        }
        vec![Frame::Audio(bytes.into())]
    }
}
