//! A line of OpenAI's speech requests: a turn is one request, sent when its text is complete; a barge-in drops the connection.

use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::{Broken, Signal, TurnId, broken, sounding};
use crate::client::Target;
use crate::commands::bench::turn::Sound;

/// Longest head of an answer.
const HEAD_BYTES_MAX: usize = 16 << 10;

/// A line.
pub(in crate::commands::bench) struct OpenAi {
    target: Target,
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
    /// Pieces and bytes of sound so far.
    heard: (u64, u64),
}

impl OpenAi {
    pub(super) fn new(target: &Target) -> Self {
        let target = target.clone().at("/v1/audio/speech");
        Self { target, turn: 0, text: String::new(), answer: None, stopped: None }
    }

    pub(super) fn begin(&mut self, turn: TurnId) {
        (self.turn, self.answer) = (turn, None);
        self.text.clear();
    }

    pub(super) fn say(&mut self, text: &str) {
        self.text.push_str(text);
    }

    pub(super) async fn end(&mut self) -> Result<(), Broken> {
        let body = serde_json::json!({
            "model": "bench", "input": self.text, "voice": "alloy", "response_format": "pcm",
        });
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
        self.answer = Some(Answer { stream, bytes: Vec::new(), has_head: false, heard: (0, 0) });
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
    Sound(Sound),
    End,
    Refused(String),
}

impl Answer {
    /// The next piece, if it is there as a whole.
    fn piece(&mut self) -> Result<Option<Piece>, Broken> {
        if !self.has_head {
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
        }
        let Some((length, begin)) = chunk(&self.bytes)? else { return Ok(None) };
        if self.bytes.len() < begin.saturating_add(length).saturating_add(2) {
            return Ok(None);
        }
        self.bytes.drain(..begin + length + 2);
        if length == 0 {
            return Ok(Some(Piece::End));
        }
        let (seq, at) = self.heard;
        let end = at + length as u64;
        self.heard = (seq + 1, end);
        let sound = Sound { seq, count: 1, from: sounding(at), to: sounding(end) };
        Ok(Some(Piece::Sound(sound)))
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
