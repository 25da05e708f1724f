//! The upgrades of clients that speak another vendor's protocol. Some of them show their key only in their first message: until
//! then they are strangers, of whom there are few at a time, and not for long.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::extract::ws::{CloseFrame, Message, WebSocket, WebSocketUpgrade};
use axum::extract::{Extension, State};
use axum::http::{HeaderMap, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, get};
use futures_util::StreamExt;
use tokio::sync::OwnedSemaphorePermit;

use super::{Talk, Visit, bounded, serve};
use crate::access::Access;
use crate::auth::{Caller, Credential, Denied};
use crate::error::Code;
use crate::foreign::{Dialect, Greeting, Introduction, Make, Unwelcome};
use crate::protocol::Setup;
use crate::server::{NoPlace, Server, unix_ms};
use crate::sessions::Admission;
use crate::transport::http::{overloaded, problem};
use crate::transport::wire::Meter;

/// Subprotocols behind which browsers' clients of other vendors offer their key; the one that was offered is echoed.
const KEY_SUBPROTOCOLS: [&str; 2] = ["token", "bearer"];
/// How long somebody who is turned away may take to hear it.
const GOODBYE: Duration = Duration::from_secs(1);

/// Answers upgrades of clients that speak another vendor's protocol.
pub(crate) fn speaks(make: Make) -> MethodRouter<Arc<Server>> {
    door(make, None)
}

/// As [`speaks`], for clients that may show their key in their first message.
pub(crate) fn speaks_once_known(
    make: Make,
    introduction: Introduction,
) -> MethodRouter<Arc<Server>> {
    door(make, Some(introduction))
}

fn door(make: Make, introduction: Option<Introduction>) -> MethodRouter<Arc<Server>> {
    get(
        async move |State(server): State<Arc<Server>>,
                    Extension(access): Extension<Access>,
                    caller: Option<Extension<Caller>>,
                    Extension(meter): Extension<Meter>,
                    uri: Uri,
                    headers: HeaderMap,
                    upgrade: Result<WebSocketUpgrade, WebSocketUpgradeRejection>| {
            let upgrade = match upgrade {
                Ok(upgrade) => upgrade.protocols(KEY_SUBPROTOCOLS),
                Err(rejection) => return rejection.into_response(),
            };
            let knock = Knock { server, access, meter, uri, headers };
            match (caller, introduction) {
                (Some(Extension(caller)), _) => knock.answer(make, caller, upgrade),
                (None, Some(introduction)) => knock.wait(make, introduction, upgrade),
                // Not past the gate.
                (None, None) => {
                    let message = Denied::Nothing.to_string();
                    problem(StatusCode::UNAUTHORIZED, "unauthorized", None, &message)
                }
            }
        },
    )
}

/// Somebody who wants to speak so.
struct Knock {
    server: Arc<Server>,
    access: Access,
    meter: Meter,
    uri: Uri,
    headers: HeaderMap,
}

impl Knock {
    fn dialect(&self, make: Make, setup: &Setup) -> Result<Box<dyn Dialect>, Unwelcome> {
        let agent = self.headers.get(header::USER_AGENT).and_then(|agent| agent.to_str().ok());
        make(&Greeting {
            path: self.uri.path(),
            query: self.uri.query().unwrap_or_default(),
            agent: agent.unwrap_or_default(),
            setup,
            config: &self.server.config,
        })
    }

    /// Answers somebody who is known. That the engine is full is told now, since few of the protocols have a word for it
    /// later.
    fn answer(self, make: Make, caller: Caller, upgrade: WebSocketUpgrade) -> Response {
        let setup = self.server.session_setup(&caller, true);
        let dialect = match self.dialect(make, &setup) {
            Ok(dialect) => dialect,
            Err(Unwelcome(reason)) => {
                return problem(StatusCode::BAD_REQUEST, "bad_value", None, &reason);
            }
        };
        let admission = match self.place(&caller, &setup) {
            Ok(admission) => admission,
            Err(refused) => return refused.into_response(),
        };
        let Self { server, access, meter, .. } = self;
        let talk = Talk { setup, dialect: Some(dialect), first: None };
        serve(Visit { server, access, caller, meter }, talk, admission, upgrade)
    }

    /// A place in the house, and room in the engine.
    fn place(&self, caller: &Caller, setup: &Setup) -> Result<Admission, NoPlace> {
        let admission = self.server.admit(caller)?;
        self.server.has_room_for(setup)?;
        Ok(admission)
    }

    /// Opens the socket of a stranger, if there are not too many, and waits for the first message.
    fn wait(self, make: Make, introduction: Introduction, upgrade: WebSocketUpgrade) -> Response {
        let Ok(place) = self.server.strangers.clone().try_acquire_owned() else {
            let most = self.server.config.foreign.max_unknown_sockets;
            let message = format!(
                "{most} sockets wait for the key of their client (foreign.max_unknown_sockets)"
            );
            return overloaded(&message);
        };
        bounded(upgrade, &self.server)
            .on_upgrade(async move |socket| self.meet(make, introduction, socket, place).await)
    }

    /// Waits for a stranger's first message, and serves the session if its key opens and there is a place.
    async fn meet(
        self,
        make: Make,
        introduction: Introduction,
        mut socket: WebSocket,
        place: OwnedSemaphorePermit,
    ) {
        let limit = self.server.config.limits.start;
        let first = match tokio::time::timeout(limit, first_message(&mut socket)).await {
            Ok(Some(first)) => first,
            Ok(None) => return,
            Err(_) => {
                let reason = format!(
                    "no message with a key came within {} s (limits.start_s)",
                    limit.as_secs_f64()
                );
                return turn_away(socket, (introduction.refuse)(Code::Unauthorized, &reason)).await;
            }
        };
        let shown = (introduction.key)(&first).map(Credential::Any);
        let met = self.let_in(make, shown.as_ref());
        drop(place);
        match met {
            Ok((caller, talk, admission)) => {
                self.access.key(&caller.key_id);
                let Self { server, access, meter, .. } = self;
                let visit = Visit { server, access, caller, meter };
                visit.hold(socket, Talk { first: Some(first), ..talk }, admission).await;
            }
            Err((code, reason)) => {
                turn_away(socket, (introduction.refuse)(code, &reason)).await;
            }
        }
    }

    /// What [`Knock::answer`] asks, of somebody who is inside already.
    fn let_in(
        &self,
        make: Make,
        shown: Option<&Credential>,
    ) -> Result<(Caller, Talk, Admission), (Code, String)> {
        let caller = self.server.security.keyring.admit(shown, unix_ms());
        let caller = caller.map_err(|denied| (Code::Unauthorized, denied.to_string()))?;
        let setup = self.server.session_setup(&caller, true);
        let dialect = self.dialect(make, &setup).map_err(|Unwelcome(r)| (Code::BadOption, r))?;
        let admission = self.place(&caller, &setup);
        let admission = admission.map_err(|full| (Code::Overloaded, full.to_string()))?;
        Ok((caller, Talk { setup, dialect: Some(dialect), first: None }, admission))
    }
}

/// The first message of a client; none if it says something else, or goes.
async fn first_message(socket: &mut WebSocket) -> Option<String> {
    loop {
        match socket.next().await? {
            Ok(Message::Text(text)) => return Some(text.as_str().to_owned()),
            Ok(Message::Ping(_) | Message::Pong(_)) => {}
            Ok(Message::Binary(_) | Message::Close(_)) | Err(_) => return None,
        }
    }
}

/// Tells somebody why it is not let in, and closes. A client that takes nothing is not waited for.
async fn turn_away(mut socket: WebSocket, (message, code): (String, u16)) {
    let told = async {
        socket.send(Message::Text(message.into())).await?;
        let close = CloseFrame { code, reason: "".into() };
        socket.send(Message::Close(Some(close))).await?;
        // Until its answer, so that what was told is not lost in a reset.
        while socket.next().await.is_some_and(|answer| answer.is_ok()) {}
        Ok::<(), axum::Error>(())
    };
    let _ = tokio::time::timeout(GOODBYE, told).await;
}
