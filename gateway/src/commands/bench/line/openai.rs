//! A line of OpenAI's requests, of speech or of chat completions: a turn is one request, sent when its text is complete; a barge-in
//! drops the connection.

use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::events::{Events, Said};
use super::{Broken, Signal, TurnId, broken, sounding};
use crate::client::Target;
use crate::commands::bench::turn::Sound;

/// Longest head of an answer.
const HEAD_BYTES_MAX: usize = 16 << 10;

/// A line.
pub(in crate::commands::bench) struct OpenAi {
    target: Target,
    /// The model that is asked; none: texts are spoken.
    model: Option<String>,
    turn: TurnId,
    text: String,
    answer: Option<Answer>,
    stopped: Option<TurnId>,
}

/// An answer that is being read.
struct Answer {
    stream: TcpStream,
    bytes: Vec<u8>,
    has_head: bool,
    /// What a model says; none: the body is sound.
    events: Option<Events>,
    /// Pieces and bytes of sound so far.
    heard: (u64, u64),
}

impl OpenAi {
    pub(super) fn new(target: &Target, model: Option<&str>) -> Self {
        let path = if model.is_some() { "/v1/chat/completions" } else { "/v1/audio/speech" };
        let (target, model) = (target.clone().at(path), model.map(str::to_owned));
        Self { target, model, turn: 0, text: String::new(), answer: None, stopped: None }
    }

    pub(super) fn begin(&mut self, turn: TurnId) {
        (self.turn, self.answer) = (turn, None);
        self.text.clear();
    }

    pub(super) fn say(&mut self, text: &str) {
        self.text.push_str(text);
    }

    pub(super) async fn end(&mut self) -> Result<(), Broken> {
        let body = match &self.model {
            None => serde_json::json!({
                "model": "bench", "input": self.text, "voice": "alloy", "response_format": "pcm",
            }),
            Some(model) => serde_json::json!({
                "model": model, "stream": true, "seed": self.turn, "modalities": ["text", "audio"],
                "audio": {"voice": "alloy", "format": "pcm16"},
                "messages": [{"role": "user", "content": self.text}],
            }),
        };
        let (body, address) = (body.to_string(), self.target.address());
        let key = self.target.key().map(|key| format!("Authorization: Bearer {key}\r\n"));
        let head = format!(
            "POST {} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n{}\
             Content-Type: application/json\r\nContent-Length: {}\r\n\r\n",
            self.target.path(),
            key.unwrap_or_default(),
            body.len()
        );
        let mut stream = TcpStream::connect(&address).await.map_err(broken)?;
        stream.set_nodelay(true).map_err(broken)?;
        stream.write_all(format!("{head}{body}").as_bytes()).await.map_err(broken)?;
        let events = self.model.is_some().then(Events::default);
        let (bytes, has_head, heard) = (Vec::new(), false, (0, 0));
        self.answer = Some(Answer { stream, bytes, has_head, events, heard });
        Ok(())
    }

    pub(super) fn interrupt(&mut self, turn: TurnId) {
        self.answer = None;
        self.stopped = Some(turn);
    }

    /// Nothing is lost when the future is dropped before it is ready.
    pub(super) async fn next(&mut self) -> Result<Signal, Broken> {
        if let Some(turn) = self.stopped.take() {
            return Ok(Signal::Stopped(turn));
        }
        let Some(answer) = &mut self.answer else { return std::future::pending().await };
        loop {
            match answer.piece()? {
                Some(Piece::Refused(why)) => {
                    let (turn, retry_after) = (self.turn, Duration::ZERO);
                    self.answer = None;
                    return Ok(Signal::Refused { turn, why, retry_after });
                }
                Some(Piece::Text) => return Ok(Signal::Text(self.turn)),
                Some(Piece::Sound(sound)) => return Ok(Signal::Sound(self.turn, sound)),
                Some(Piece::End) => {
                    self.answer = None;
                    return Ok(Signal::Done(self.turn));
                }
                None => {}
            }
            if answer.stream.read_buf(&mut answer.bytes).await.map_err(broken)? == 0 {
                return Err(Broken("the answer broke off".to_owned()));
            }
        }
    }

    /// Breaks off as a crash would.
    pub(super) fn reset(self) {
        if let Some(answer) = self.answer {
            let _ = answer.stream.set_zero_linger();
        }
    }
}

/// What an answer has next.
#[derive(Debug, PartialEq)]
enum Piece {
    Text,
    Sound(Sound),
    End,
    Refused(String),
}

impl Answer {
    /// The next piece, if it is there as a whole.
    fn piece(&mut self) -> Result<Option<Piece>, Broken> {
        if !self.has_head
            && let Some(refused) = self.head()?
        {
            return Ok(Some(refused));
        }
        if !self.has_head {
            return Ok(None);
        }
        loop {
            if let Some(said) = self.events.as_mut().and_then(Events::next) {
                return Ok(Some(match said {
                    Said::Text => Piece::Text,
                    Said::Sound(bytes) => self.sound(bytes),
                    Said::Refused(code) => Piece::Refused(code),
                }));
            }
            let Some((length, begin)) = chunk(&self.bytes)? else { return Ok(None) };
            if self.bytes.len() < begin.saturating_add(length).saturating_add(2) {
                return Ok(None);
            }
            let chunk: Vec<u8> = self.bytes.drain(..begin + length + 2).collect();
            if length == 0 {
                return Ok(Some(Piece::End));
            }
            match &mut self.events {
                Some(events) => events.push(&chunk[begin..begin + length])?,
                None => return Ok(Some(self.sound(length as u64))),
            }
        }
    }

    /// Reads the head, if it is there as a whole. Returns why the request was refused, if it was.
    fn head(&mut self) -> Result<Option<Piece>, Broken> {
        let Some(end) = find(&self.bytes, b"\r\n\r\n") else {
            let is_long = self.bytes.len() > HEAD_BYTES_MAX;
            return if is_long { Err(Broken("no HTTP".to_owned())) } else { Ok(None) };
        };
        let head: Vec<u8> = self.bytes.drain(..end + 4).collect();
        let head = String::from_utf8_lossy(&head).to_ascii_lowercase();
        let status = head.split(' ').nth(1).unwrap_or_default();
        if status != "200" {
            return Ok(Some(Piece::Refused(format!("http {status}"))));
        }
        if !head.contains("transfer-encoding: chunked") {
            return Err(Broken("the answer comes in one piece".to_owned()));
        }
        self.has_head = true;
        Ok(None)
    }

    /// So many more bytes of sound.
    fn sound(&mut self, bytes: u64) -> Piece {
        let (seq, at) = self.heard;
        let end = at + bytes;
        self.heard = (seq + 1, end);
        Piece::Sound(Sound { seq, count: 1, from: sounding(at), to: sounding(end) })
    }
}

/// Length of the chunk in front, and where it begins; none while that has not come.
fn chunk(bytes: &[u8]) -> Result<Option<(usize, usize)>, Broken> {
    let Some(end) = find(bytes, b"\r\n") else { return Ok(None) };
    let line = String::from_utf8_lossy(&bytes[..end]);
    let digits = line.split(';').next().unwrap_or_default().trim();
    let length = usize::from_str_radix(digits, 16);
    let length = length.map_err(|_| Broken("no length of a chunk".to_owned()))?;
    Ok(Some((length, end + 2)))
}

fn find(bytes: &[u8], what: &[u8]) -> Option<usize> {
    bytes.windows(what.len()).position(|window| window == what)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chunk_is_known_by_its_line() {
        assert_eq!(chunk(b"12c0\r\nab").unwrap(), Some((4_800, 6)));
        assert_eq!(chunk(b"5;note=1\r\n").unwrap(), Some((5, 10)));
        assert_eq!(chunk(b"12").unwrap(), None);
        assert!(chunk(b"sound\r\n").is_err());
    }
}
