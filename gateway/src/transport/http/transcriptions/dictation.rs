//! A recording that is being written down: each piece is an answer of its own, a few at once, told in order.
//!
//! ```text
//! |  told  |  being told  |  heard, being written  |  being heard  |  to come ..
//! ```
//! The next piece is given to the engine when the one before has been heard, so that a long recording keeps no other waiting.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::ops::Range;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::response::{IntoResponse, Response};
use codecs::pauses;
use codecs::recording::{self, RecordingError};
use engine::answer::{Part, Request};
use engine::{Event, Events, Failure, Summary};
use futures_util::{StreamExt, stream};

use super::writer::Writer;
use crate::access::Access;
use crate::auth::Caller;
use crate::server::Server;
use crate::sessions::Admission;
use crate::transcript::Span;
use crate::transport::http::answer::{answered, broken, failed};
use crate::transport::http::answers::{NotBegun, Place, begin};

/// When an engine is asked again that had no place for a piece: a recording is heard in about that time.
const AGAIN: Duration = Duration::from_millis(100);

/// A recording, in pieces that a model can hear at once.
pub(super) struct Recording {
    samples: Vec<f32>,
    /// Those that are to be heard, in order; silence is not.
    pieces: VecDeque<Range<usize>>,
}

impl Recording {
    /// Decodes and cuts a file of at most so many seconds: seconds of work.
    ///
    /// # Errors
    /// It cannot be read, or is longer.
    pub(super) fn read(
        file: &[u8],
        seconds_max: f64,
        piece_max: Duration,
    ) -> Result<Self, RecordingError> {
        let samples = recording::read(file, seconds_max)?;
        let mut pieces = pauses::cut(&samples, recording::RATE, piece_max.as_secs_f64());
        pieces.retain(|piece| !pauses::is_silent(&samples[piece.clone()]));
        Ok(Self { samples, pieces: pieces.into() })
    }

    /// Its length.
    pub(super) fn duration_s(&self) -> f64 {
        seconds(self.samples.len())
    }

    /// Whether a model hears it in several pieces.
    pub(super) fn is_long(&self) -> bool {
        self.pieces.len() > 1
    }

    /// What a piece is asked with, behind the words that each has.
    fn asked(&self, request: &Request, piece: &Range<usize>) -> Request {
        let mut request = request.clone();
        for message in &mut request.messages {
            message.parts.push(Part::Audio(self.samples[piece.clone()].into()));
        }
        request
    }
}

fn seconds(samples: usize) -> f64 {
    samples as f64 / f64::from(recording::RATE)
}

/// A piece that the engine has.
struct Piece {
    range: Range<usize>,
    events: Events,
    /// Its events that are not told yet: no more than an answer in text has.
    told: VecDeque<Event>,
    is_heard: bool,
    is_over: bool,
}

impl Piece {
    fn new(range: Range<usize>, events: Events) -> Self {
        Self { range, events, told: VecDeque::new(), is_heard: false, is_over: false }
    }

    /// Takes what has come. Returns whether anything has.
    fn take(&mut self, cx: &mut Context<'_>) -> bool {
        let mut has_news = false;
        while !self.is_over
            && let Poll::Ready(event) = self.events.poll_recv(cx)
        {
            (has_news, self.is_heard) = (true, true);
            // An engine that goes down says nothing more.
            let event = event.unwrap_or_else(|| Event::Cancelled(Summary::default()));
            self.is_over = matches!(event, Event::Done(_) | Event::Cancelled(_) | Event::Failed(_));
            self.told.push_back(event);
        }
        has_news
    }

    fn span(&self) -> Span {
        Span { start_s: seconds(self.range.start), end_s: seconds(self.range.end) }
    }
}

/// Why a text ends before its time.
#[derive(Debug, thiserror::Error)]
enum Broken {
    #[error(transparent)]
    Failed(#[from] Failure),
    #[error(transparent)]
    Engine(#[from] engine::Error),
    #[error("the engine stopped")]
    Stopped,
}

/// A recording that is being written down. Dropping it, as a client's leaving does, cancels its pieces.
pub(super) struct Dictation {
    server: Arc<Server>,
    request: Request,
    recording: Recording,
    under_way: VecDeque<Piece>,
    /// None once all is told.
    writer: Option<Writer>,
    has_told: bool,
    /// Why it breaks off, once that is told.
    broken: Option<Broken>,
    access: Access,
    /// None where there is nothing to hear.
    _admission: Option<Admission>,
    _place: Option<Place>,
}

impl Dictation {
    /// Gives the first piece to the engine, if there is a place for it.
    ///
    /// # Errors
    /// See [`NotBegun`].
    pub(super) fn begin(
        server: &Arc<Server>,
        (caller, access): (&Caller, Access),
        (mut recording, place): (Recording, Option<Place>),
        request: Request,
        writer: Writer,
    ) -> Result<Self, NotBegun> {
        let (mut under_way, mut admission) = (VecDeque::new(), None);
        if let Some(range) = recording.pieces.pop_front() {
            let asked = recording.asked(&request, &range);
            let (events, admitted) = begin(server, caller, &access, chars(&request), asked)?;
            under_way.push_back(Piece::new(range, events));
            admission = Some(admitted);
        }
        access.outcome("gone");
        Ok(Self {
            server: server.clone(),
            request,
            recording,
            under_way,
            writer: Some(writer),
            has_told: false,
            broken: None,
            access,
            _admission: admission,
            _place: place,
        })
    }

    /// Waits for all of it. A client that leaves meanwhile drops this.
    pub(super) async fn collect(mut self) -> Response {
        let content_type = self.content_type();
        let mut body = Vec::new();
        loop {
            match self.advance().await {
                Ok(Some((bytes, rest))) => {
                    body.extend(bytes);
                    self = rest;
                }
                Ok(None) => return answered(content_type, body),
                Err(error) => return error.into_response(),
            }
        }
    }

    /// Waits for the first that a client reads, so that a failure before it has a status of its own; then streams.
    pub(super) async fn stream(self) -> Response {
        let content_type = self.content_type();
        let (first, rest) = match self.advance().await {
            Ok(Some(begun)) => begun,
            Ok(None) => return answered(content_type, Body::empty()),
            Err(error) => return error.into_response(),
        };
        let first = stream::once(async { Ok(first) });
        let body = first.chain(stream::try_unfold(rest, Self::advance));
        answered(content_type, Body::from_stream(body))
    }

    fn content_type(&self) -> &'static str {
        self.writer.as_ref().map_or("", Writer::content_type)
    }

    /// The next bytes of the answer.
    async fn advance(mut self) -> Result<Option<(Bytes, Self)>, Broken> {
        loop {
            if let Some(error) = self.broken.take() {
                return Err(error);
            }
            if self.writer.is_none() {
                return Ok(None);
            }
            let bytes = match self.step().await {
                Ok(bytes) => bytes,
                Err(error) => self.break_off(error),
            };
            if !bytes.is_empty() {
                self.has_told = true;
                return Ok(Some((bytes, self)));
            }
        }
    }

    /// Takes one event of the piece that is being told, or waits for any.
    async fn step(&mut self) -> Result<Bytes, Broken> {
        self.begin_next()?;
        let Some(first) = self.under_way.front_mut() else {
            if self.recording.pieces.is_empty() {
                self.access.outcome("done");
                return Ok(self.writer.take().map(Writer::done).unwrap_or_default());
            }
            tokio::time::sleep(AGAIN).await;
            return Ok(Bytes::new());
        };
        let span = first.span();
        let Some(event) = first.told.pop_front() else {
            poll_fn(|cx| self.take(cx)).await;
            return Ok(Bytes::new());
        };
        let Some(writer) = &mut self.writer else { return Ok(Bytes::new()) };
        match event {
            Event::Text { delta } => return Ok(writer.text(&delta)),
            Event::Done(summary) => {
                if let Some(usage) = &summary.usage {
                    self.server.metrics.wire.answers.count(usage, Duration::ZERO);
                }
                writer.end_piece(span, &summary);
                self.under_way.pop_front();
            }
            Event::Failed(failure) => return Err(failure.into()),
            Event::Cancelled(_) => return Err(Broken::Stopped),
            _ => {}
        }
        Ok(Bytes::new())
    }

    /// Gives the engine the next piece, if those before it are heard.
    fn begin_next(&mut self) -> Result<(), Broken> {
        let is_full = self.under_way.len() >= self.server.config.chat.pieces_at_once;
        if is_full || self.under_way.back().is_some_and(|piece| !piece.is_heard) {
            return Ok(());
        }
        let Some(range) = self.recording.pieces.front() else { return Ok(()) };
        match self.server.engine.answer(self.recording.asked(&self.request, range)) {
            Ok((_, events)) => {
                let range = self.recording.pieces.pop_front().unwrap_or_default();
                self.under_way.push_back(Piece::new(range, events));
            }
            // Others are heard first.
            Err(engine::Error::Busy { .. }) => {}
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }

    /// Takes what has come of any piece; ready when something has.
    fn take(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let news = self.under_way.iter_mut().map(|piece| piece.take(cx));
        // Each is asked, so that each can wake this.
        if news.fold(false, |any, has_news| any | has_news) {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    }

    /// Who has read something is told in the same way; else the status says it.
    fn break_off(&mut self, error: Broken) -> Bytes {
        self.access.outcome("failed");
        self.under_way.clear();
        let message = error.to_string();
        self.broken = Some(error);
        let told = self.writer.as_ref().filter(|_| self.has_told);
        told.map(|writer| writer.broken(&message)).unwrap_or_default()
    }
}

impl IntoResponse for Broken {
    fn into_response(self) -> Response {
        match self {
            Self::Failed(failure) => failed(&failure, "file"),
            Self::Engine(error) => NotBegun::Engine(error).into_response(),
            error @ Self::Stopped => broken(&error.to_string()),
        }
    }
}

/// Characters of text in a request.
fn chars(request: &Request) -> usize {
    let parts = request.messages.iter().flat_map(|message| &message.parts);
    let chars = parts.map(|part| match part {
        Part::Text(text) => text.chars().count(),
        _ => 0,
    });
    chars.sum()
}
