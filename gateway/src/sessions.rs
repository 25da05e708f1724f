//! Who is being served: how many at once, how everybody is asked to leave, and where a client finds the session that it had.

use std::sync::Arc;
use std::time::Duration;

use dashmap::DashMap;
use subtle::ConstantTimeEq;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot, watch};

use crate::auth::Place;
use crate::protocol::Resume;
use crate::transport::ws::Socket;

/// Clients that want to go on with one session at the same time; one is the rule.
const RESUMPTIONS_MAX: usize = 4;

/// A place among all that is served; given back when it is dropped.
#[derive(Debug)]
pub(crate) struct Admission {
    /// Becomes the time that is left, when the server goes down.
    pub(crate) drain: watch::Receiver<Option<Duration>>,
    _place: OwnedSemaphorePermit,
    _key_place: Option<Place>,
}

impl Admission {
    /// The same, with a place of those that the key has.
    pub(crate) fn with(self, key_place: Place) -> Self {
        Self { _key_place: Some(key_place), ..self }
    }
}

/// Why nobody is let in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Refused {
    /// All places are taken.
    #[error("all {places} places are taken")]
    Full {
        /// How many there are.
        places: u32,
    },
    /// The server goes down.
    #[error("the server is shutting down")]
    Draining,
}

/// A client that wants to go on with a session.
pub(crate) struct Resumption {
    /// Its connection.
    pub(crate) socket: Box<Socket>,
    /// What it says.
    pub(crate) resume: Box<Resume>,
    /// Gets the connection back if the session cannot go on.
    pub(crate) refused: oneshot::Sender<Box<Socket>>,
}

/// Where a session hears of clients that want to go on with it.
#[derive(Debug)]
struct Inbox {
    token: String,
    sender: mpsc::Sender<Resumption>,
}

/// A session that can be found; until this is dropped.
#[derive(Debug)]
pub(crate) struct Kept<'a> {
    sessions: &'a Sessions,
    session_id: String,
    /// Clients that want to go on with it.
    pub(crate) resumptions: mpsc::Receiver<Resumption>,
}

impl Drop for Kept<'_> {
    fn drop(&mut self) {
        self.sessions.inboxes.remove(&self.session_id);
        self.resumptions.close();
        while let Ok(resumption) = self.resumptions.try_recv() {
            // A client that is gone itself needs nothing back.
            let _ = resumption.refused.send(resumption.socket);
        }
    }
}

/// All connections that are served: sessions, and requests that are being answered with sound.
#[derive(Debug)]
pub(crate) struct Sessions {
    places: Arc<Semaphore>,
    places_total: u32,
    drain: watch::Sender<Option<Duration>>,
    /// By the session's id.
    inboxes: DashMap<String, Inbox>,
}

impl Sessions {
    /// So many places, all free.
    pub(crate) fn new(places_total: u32) -> Self {
        let places = Arc::new(Semaphore::new(places_total as usize));
        let inboxes = DashMap::new();
        Self { places, places_total, drain: watch::Sender::new(None), inboxes }
    }

    /// Takes a place.
    ///
    /// # Errors
    /// [`Refused`].
    pub(crate) fn admit(&self) -> Result<Admission, Refused> {
        if self.is_draining() {
            return Err(Refused::Draining);
        }
        let place = self.places.clone().try_acquire_owned();
        let place = place.map_err(|_| Refused::Full { places: self.places_total })?;
        Ok(Admission { drain: self.drain.subscribe(), _place: place, _key_place: None })
    }

    /// Lets a session be found by who knows its id and token.
    pub(crate) fn keep(&self, session_id: &str, token: &str) -> Kept<'_> {
        let (sender, resumptions) = mpsc::channel(RESUMPTIONS_MAX);
        self.inboxes.insert(session_id.to_owned(), Inbox { token: token.to_owned(), sender });
        Kept { sessions: self, session_id: session_id.to_owned(), resumptions }
    }

    /// Hands a connection over to the session that it belongs to.
    ///
    /// # Errors
    /// The connection, when there is no such session or it cannot go on.
    pub(crate) async fn hand_over(
        &self,
        socket: Box<Socket>,
        resume: Box<Resume>,
    ) -> Result<(), Box<Socket>> {
        let sender = self.inboxes.get(&resume.session_id).and_then(|inbox| {
            // How much of a guess is right must not show in how long the answer takes.
            let is_right = inbox.token.as_bytes().ct_eq(resume.token.as_bytes());
            bool::from(is_right).then(|| inbox.sender.clone())
        });
        let Some(sender) = sender else { return Err(socket) };
        let (refused, answer) = oneshot::channel();
        if let Err(error) = sender.try_send(Resumption { socket, resume, refused }) {
            return Err(error.into_inner().socket);
        }
        match answer.await {
            Ok(socket) => Err(socket),
            // Taken in: the sender was dropped.
            Err(_) => Ok(()),
        }
    }

    /// Whether everybody is leaving.
    pub(crate) fn is_draining(&self) -> bool {
        self.drain.borrow().is_some()
    }

    /// Whether there is room.
    pub(crate) fn has_room(&self) -> bool {
        self.places.available_permits() > 0
    }

    /// Asks everybody to leave within `limit`, and waits until they have.
    pub(crate) async fn drain(&self, limit: Duration) {
        self.drain.send_replace(Some(limit));
        // All places together are free only when nobody is left.
        let _ = self.places.acquire_many(self.places_total).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn places_are_limited_and_come_back() {
        let sessions = Sessions::new(2);
        let first = sessions.admit().unwrap();
        let _second = sessions.admit().unwrap();
        assert_eq!(sessions.admit().unwrap_err(), Refused::Full { places: 2 });
        assert!(!sessions.has_room());
        drop(first);
        assert!(sessions.admit().is_ok());
    }

    #[tokio::test]
    async fn a_drain_waits_for_the_last_to_leave() {
        let sessions = Arc::new(Sessions::new(2));
        let mut last = sessions.admit().unwrap();
        let draining = tokio::spawn({
            let sessions = sessions.clone();
            async move { sessions.drain(Duration::from_secs(30)).await }
        });
        let limit = *last.drain.wait_for(Option::is_some).await.unwrap();
        assert_eq!(limit, Some(Duration::from_secs(30)));
        assert_eq!(sessions.admit().unwrap_err(), Refused::Draining);
        assert!(!draining.is_finished());
        drop(last);
        draining.await.unwrap();
    }
}
