//! Plain HTTP requests, each on a connection of its own.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::Context;
use serde::de::DeserializeOwned;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// Longest wait for an answer: whole texts are spoken in some.
const PATIENCE: Duration = Duration::from_secs(60);

/// What came back.
#[derive(Debug, Clone, Default)]
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) body: Vec<u8>,
}

impl Answer {
    /// The body as JSON.
    ///
    /// # Errors
    /// It is something else.
    pub(super) fn json<T: DeserializeOwned>(&self) -> anyhow::Result<T> {
        let said = || String::from_utf8_lossy(&self.body).into_owned();
        serde_json::from_slice(&self.body).with_context(said)
    }
}

/// Asks for a path.
///
/// # Errors
/// No answer.
pub(super) async fn get(address: SocketAddr, path: &str) -> anyhow::Result<Answer> {
    ask(address, "GET", path, &[], &[]).await
}

/// Asks in HTTP 1.0, so that the body is whatever comes until the end.
///
/// # Errors
/// No answer, or none that is HTTP.
pub(super) async fn ask(
    address: SocketAddr,
    method: &str,
    path: &str,
    headers: &[(String, String)],
    body: &[u8],
) -> anyhow::Result<Answer> {
    let answered = async {
        let mut stream = TcpStream::connect(address).await?;
        let mut head = format!("{method} {path} HTTP/1.0\r\nHost: {address}\r\n");
        for (name, value) in headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        head.push_str(&format!("Content-Length: {}\r\n\r\n", body.len()));
        stream.write_all(head.as_bytes()).await?;
        stream.write_all(body).await?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).await?;
        parse(&answer).context("not an HTTP answer")
    };
    tokio::time::timeout(PATIENCE, answered).await.context("no answer in time")?
}

fn parse(answer: &[u8]) -> Option<Answer> {
    let end = answer.windows(4).position(|w| w == b"\r\n\r\n")?;
    let head = std::str::from_utf8(&answer[..end]).ok()?;
    let status = head.split(' ').nth(1)?.parse().ok()?;
    Some(Answer { status, body: answer[end + 4..].to_vec() })
}
