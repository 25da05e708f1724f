//! The plainest of WebSocket clients: sends what it is told, and gives what comes as it comes.
#![expect(clippy::unwrap_used, reason = "a test that cannot set itself up should stop")]

use futures_util::{SinkExt, StreamExt};
use gateway::protocol::SUBPROTOCOL;
use serde_json::Value;
use tokio::net::TcpStream;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;

use super::{House, PATIENCE};

/// A connection to `/v1/tts/stream`.
pub(crate) struct Wire(WebSocketStream<TcpStream>);

impl Wire {
    pub(crate) async fn connect(house: &House) -> Self {
        Self::over(TcpStream::connect(house.address()).await.unwrap(), "").await
    }

    /// The upgrade of a connection; `query` begins with a question mark, if there is one.
    pub(crate) async fn over(stream: TcpStream, query: &str) -> Self {
        let uri = format!("ws://{}/v1/tts/stream{query}", stream.peer_addr().unwrap());
        let mut request = uri.into_client_request().unwrap();
        request.headers_mut().insert("Sec-WebSocket-Protocol", SUBPROTOCOL.parse().unwrap());
        Self(tokio_tungstenite::client_async(request, stream).await.unwrap().0)
    }

    pub(crate) async fn send(&mut self, message: &str) {
        self.0.send(Message::text(message)).await.unwrap();
    }

    /// Sends a binary frame.
    pub(crate) async fn send_frame(&mut self, frame: Vec<u8>) {
        self.0.send(Message::binary(frame)).await.unwrap();
    }

    /// What comes next, beside pings.
    pub(crate) async fn next(&mut self) -> Message {
        loop {
            let message = tokio::time::timeout(PATIENCE, self.0.next()).await;
            let message = message.expect("nothing came in time").expect("the end").unwrap();
            if !message.is_ping() {
                return message;
            }
        }
    }

    /// The next text message of a type; everything before it is passed over.
    pub(crate) async fn until(&mut self, r#type: &str) -> Value {
        loop {
            match self.next().await {
                Message::Text(text) => {
                    let message: Value = serde_json::from_str(&text).unwrap();
                    if message["type"] == r#type {
                        return message;
                    }
                }
                Message::Close(frame) => panic!("{frame:?} before {type}"),
                _ => {}
            }
        }
    }

    /// The code of the close; everything before it is passed over.
    pub(crate) async fn close_code(&mut self) -> u16 {
        loop {
            if let Message::Close(frame) = self.next().await {
                return frame.unwrap().code.into();
            }
        }
    }
}
