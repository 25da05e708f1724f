//! Recordings that a client sends, for contexts that answer.

use futures_util::SinkExt;
use tokio_tungstenite::tungstenite::Message as Wire;

use super::command::Command;
use super::frame::incoming;
use super::{ClientError, Session};
use crate::protocol::Codec;

impl Session {
    /// Begins a recording that the messages of a context name.
    ///
    /// # Errors
    /// The connection is gone.
    pub async fn begin_audio(
        &mut self,
        ctx: &str,
        id: &str,
        codec: Codec,
        sample_rate: u32,
    ) -> Result<(), ClientError> {
        self.send(&Command::AudioBegin { ctx, id, codec, sample_rate }).await
    }

    /// Sends the next packet of it; `handle` is that of [`super::Event::Opened`]. Samples may be cut anywhere.
    ///
    /// # Errors
    /// The connection is gone.
    pub async fn audio(&mut self, handle: u32, packet: &[u8]) -> Result<(), ClientError> {
        let next = self.recordings.entry(handle).or_default();
        let frame = incoming(handle, *next, packet);
        *next += 1;
        Ok(self.socket.send(Wire::binary(frame)).await?)
    }

    /// Ends it. When all that the messages name is there, the model answers.
    ///
    /// # Errors
    /// The connection is gone.
    pub async fn end_audio(&mut self, ctx: &str, id: &str) -> Result<(), ClientError> {
        self.send(&Command::AudioEnd { ctx, id }).await
    }
}
