//! A line of a vendor's WebSocket protocol. Its sound is 16-bit PCM at 24 kHz, mostly in base64, so that its length tells its time.
//!
//! Where a cancel has no answer, a ping is sent behind it: whatever comes before the pong was on its way already.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;

use super::{Broken, Signal, TURNS_KNOWN, TurnId, broken, closed_with, name, sounding, turn_of};
use crate::client::Target;
use crate::commands::bench::turn::Sound;

/// How its clients name a voice that the server does not know.
const VOICE: &str = "bench";

/// Which protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Dialect {
    Cartesia,
    LiveKit,
    ElevenLabs,
    Deepgram,
}

/// What a message of the server tells.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Told {
    /// So many bytes of sound.
    Sound(TurnId, u64),
    Done(TurnId),
    Stopped(TurnId),
    Refused(TurnId, String),
    Nothing,
}

/// A line.
pub(in crate::commands::bench) struct Vendor {
    dialect: Dialect,
    target: Target,
    /// None between a barge-in that closes and the next turn.
    socket: Option<WebSocketStream<TcpStream>>,
    turn: TurnId,
    /// Messages and bytes of sound that came, by turn.
    heard: BTreeMap<TurnId, (u64, u64)>,
    signals: VecDeque<Signal>,
    /// The turn whose cancel waits for its pong, or for the answer to a close.
    stopping: Option<TurnId>,
}

impl Vendor {
    pub(super) async fn connect(dialect: Dialect, target: &Target) -> Result<Self, Broken> {
        let path = match dialect {
            Dialect::Cartesia => "/tts/websocket",
            Dialect::LiveKit => "/v1/tts?model=bench",
            Dialect::ElevenLabs => {
                "/v1/text-to-speech/bench/multi-stream-input?output_format=pcm_24000"
            }
            Dialect::Deepgram => "/v1/speak?model=bench&encoding=linear16&sample_rate=24000",
        };
        let mut line = Self {
            dialect,
            target: target.clone().at(path),
            socket: None,
            turn: 0,
            heard: BTreeMap::new(),
            signals: VecDeque::new(),
            stopping: None,
        };
        line.dial().await?;
        Ok(line)
    }

    async fn dial(&mut self) -> Result<(), Broken> {
        let request = self.target.upgrade(None).map_err(|error| Broken(error.to_string()))?;
        let stream = TcpStream::connect(self.target.address()).await.map_err(broken)?;
        stream.set_nodelay(true).map_err(broken)?;
        let (socket, _) = tokio_tungstenite::client_async(request, stream).await.map_err(broken)?;
        self.socket = Some(socket);
        if self.dialect == Dialect::LiveKit {
            let create = json!({
                "type": "session.create", "sample_rate": "24000", "encoding": "pcm_s16le",
                "model": VOICE, "extra": {},
            });
            self.send(Message::text(create.to_string())).await?;
        }
        Ok(())
    }

    pub(super) async fn begin(&mut self, turn: TurnId) -> Result<(), Broken> {
        self.turn = turn;
        self.heard.insert(turn, (0, 0));
        while self.heard.len() > TURNS_KNOWN {
            self.heard.pop_first();
        }
        if self.socket.is_none() { self.dial().await } else { Ok(()) }
    }

    pub(super) async fn say(&mut self, turn: TurnId, text: &str) -> Result<(), Broken> {
        let message = match self.dialect {
            Dialect::Cartesia => generation(turn, text, true),
            Dialect::LiveKit => json!({"type": "input_transcript", "transcript": text}),
            Dialect::ElevenLabs => json!({"text": text, "context_id": name(turn)}),
            Dialect::Deepgram => json!({"type": "Speak", "text": text}),
        };
        self.send(Message::text(message.to_string())).await
    }

    pub(super) async fn end(&mut self, turn: TurnId) -> Result<(), Broken> {
        let message = match self.dialect {
            Dialect::Cartesia => generation(turn, "", false),
            Dialect::LiveKit => json!({"type": "session.flush"}),
            Dialect::ElevenLabs => {
                let flush = json!({"context_id": name(turn), "flush": true});
                self.send(Message::text(flush.to_string())).await?;
                json!({"context_id": name(turn), "close_context": true})
            }
            Dialect::Deepgram => json!({"type": "Flush"}),
        };
        self.send(Message::text(message.to_string())).await
    }

    pub(super) async fn interrupt(&mut self, turn: TurnId) -> Result<(), Broken> {
        self.stopping = Some(turn);
        let cancel = match self.dialect {
            Dialect::Cartesia => json!({"context_id": name(turn), "cancel": true}),
            // Of text that was not flushed, or for the second time.
            Dialect::ElevenLabs => json!({"context_id": name(turn), "close_context": true}),
            Dialect::Deepgram => json!({"type": "Clear"}),
            Dialect::LiveKit => return self.send(Message::Close(None)).await,
        };
        self.send(Message::text(cancel.to_string())).await?;
        match self.dialect {
            Dialect::Deepgram => Ok(()),
            _ => self.send(Message::Ping(bytes::Bytes::new())).await,
        }
    }

    async fn send(&mut self, message: Message) -> Result<(), Broken> {
        match &mut self.socket {
            Some(socket) => socket.send(message).await.map_err(broken),
            None => Err(Broken("closed".to_owned())),
        }
    }

    /// Nothing is lost when the future is dropped before it is ready.
    pub(super) async fn next(&mut self) -> Result<Signal, Broken> {
        loop {
            if let Some(signal) = self.signals.pop_front() {
                return Ok(signal);
            }
            let Some(socket) = &mut self.socket else { return std::future::pending().await };
            match socket.next().await {
                Some(Ok(Message::Text(text))) => {
                    let message = serde_json::from_str(&text).map_err(broken)?;
                    let told = read(self.dialect, &message, self.turn);
                    let signal = self.signal(told);
                    self.signals.extend(signal);
                }
                Some(Ok(Message::Binary(sound))) => {
                    let signal = self.signal(Told::Sound(self.turn, sound.len() as u64));
                    self.signals.extend(signal);
                }
                Some(Ok(Message::Pong(_))) => {
                    self.signals.extend(self.stopping.take().map(Signal::Stopped));
                }
                Some(Ok(Message::Close(frame))) => {
                    self.hung_up(frame.map(|frame| frame.code.into()))?;
                }
                None => self.hung_up(None)?,
                Some(Ok(_)) => {}
                Some(Err(error)) => return Err(broken(error)),
            }
        }
    }

    /// The server has closed: that is the answer to a close of ours, or the end.
    fn hung_up(&mut self, code: Option<u16>) -> Result<(), Broken> {
        self.socket = None;
        let stopped = self.stopping.take().ok_or_else(|| Broken(closed_with(code)))?;
        self.signals.push_back(Signal::Stopped(stopped));
        Ok(())
    }

    fn signal(&mut self, told: Told) -> Option<Signal> {
        Some(match told {
            Told::Sound(turn, bytes) => {
                // What comes behind a close that was sent belongs to nobody.
                let (seq, at) = self.heard.get_mut(&turn)?;
                let sound =
                    Sound { seq: *seq, count: 1, from: sounding(*at), to: sounding(*at + bytes) };
                *seq += 1;
                *at += bytes;
                Signal::Sound(turn, sound)
            }
            // The end of a turn that was interrupted, where it has one.
            Told::Done(turn) if self.stopping == Some(turn) => return None,
            Told::Done(turn) => Signal::Done(turn),
            Told::Stopped(turn) => {
                self.stopping = None;
                Signal::Stopped(turn)
            }
            Told::Refused(turn, why) => Signal::Refused { turn, why, retry_after: Duration::ZERO },
            Told::Nothing => return None,
        })
    }

    /// Breaks off as a crash would.
    pub(super) fn reset(self) {
        if let Some(socket) = self.socket {
            let _ = socket.into_inner().set_zero_linger();
        }
    }

    pub(super) async fn hang_up(mut self) {
        // Whoever is gone already needs no goodbye.
        if let Some(socket) = &mut self.socket {
            let _ = socket.close(None).await;
            while let Some(Ok(_)) = socket.next().await {}
        }
    }
}

fn generation(turn: TurnId, text: &str, goes_on: bool) -> Value {
    json!({
        "model_id": "bench", "context_id": name(turn), "transcript": text, "continue": goes_on,
        "voice": {"mode": "id", "id": VOICE}, "add_timestamps": true,
        "output_format": {"container": "raw", "encoding": "pcm_s16le", "sample_rate": 24_000},
    })
}

/// What a message tells; `turn` is the only one where they have no name.
fn read(dialect: Dialect, message: &Value, turn: TurnId) -> Told {
    let kind = message["type"].as_str().unwrap_or_default();
    let text = |field: &str| message[field].as_str().unwrap_or_default();
    match dialect {
        Dialect::Cartesia => match (kind, turn_of(text("context_id"))) {
            ("chunk", Some(turn)) => Told::Sound(turn, decoded_bytes(text("data"))),
            ("done", Some(turn)) => Told::Done(turn),
            ("error", Some(turn)) => Told::Refused(turn, text("error_code").to_owned()),
            _ => Told::Nothing,
        },
        Dialect::LiveKit => match kind {
            "output_audio" => Told::Sound(turn, decoded_bytes(text("audio"))),
            "done" => Told::Done(turn),
            "error" => Told::Refused(turn, text("code").to_owned()),
            _ => Told::Nothing,
        },
        Dialect::ElevenLabs => match turn_of(text("contextId")) {
            None => Told::Nothing,
            Some(turn) if message["isFinal"] == true => Told::Done(turn),
            Some(turn) if message["error"].is_string() => {
                Told::Refused(turn, text("error").to_owned())
            }
            Some(turn) => Told::Sound(turn, decoded_bytes(text("audio"))),
        },
        Dialect::Deepgram => match kind {
            "Flushed" => Told::Done(turn),
            "Cleared" => Told::Stopped(turn),
            "Error" => Told::Refused(turn, text("code").to_owned()),
            _ => Told::Nothing,
        },
    }
}

/// Bytes in so much base64.
fn decoded_bytes(text: &str) -> u64 {
    let padding = text.bytes().rev().take_while(|byte| *byte == b'=').count();
    (text.len() / 4 * 3).saturating_sub(padding) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_of_all_are_understood() {
        let chunk = json!({"type": "chunk", "context_id": "t3", "data": "AAAA"});
        assert_eq!(read(Dialect::Cartesia, &chunk, 9), Told::Sound(3, 3));
        let done = json!({"type": "done", "context_id": "t3"});
        assert_eq!(read(Dialect::Cartesia, &done, 9), Told::Done(3));
        let error = json!({"type": "error", "context_id": "t3", "error_code": "overloaded"});
        assert_eq!(read(Dialect::Cartesia, &error, 9), Told::Refused(3, "overloaded".into()));
        assert_eq!(read(Dialect::Cartesia, &json!({"type": "timestamps"}), 9), Told::Nothing);
        let audio = json!({"type": "output_audio", "audio": "AAAAAAA="});
        assert_eq!(read(Dialect::LiveKit, &audio, 9), Told::Sound(9, 5));
        assert_eq!(read(Dialect::LiveKit, &json!({"type": "done"}), 9), Told::Done(9));
        let audio = json!({"audio": "AAAA", "isFinal": null, "contextId": "t3"});
        assert_eq!(read(Dialect::ElevenLabs, &audio, 9), Told::Sound(3, 3));
        let last = json!({"isFinal": true, "audio": null, "contextId": "t3"});
        assert_eq!(read(Dialect::ElevenLabs, &last, 9), Told::Done(3));
        assert_eq!(read(Dialect::Deepgram, &json!({"type": "Flushed"}), 9), Told::Done(9));
        assert_eq!(read(Dialect::Deepgram, &json!({"type": "Cleared"}), 9), Told::Stopped(9));
        assert_eq!(read(Dialect::Deepgram, &json!({"type": "Metadata"}), 9), Told::Nothing);
    }
}
