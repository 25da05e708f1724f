//! Waiting for what a server tells only when it is asked, so that there is no event to wait for.
#![allow(dead_code, reason = "each test takes what it needs")]

use std::time::Duration;

/// Longest wait for anything at all: a debug build on a machine that has other things to do.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);
/// Between two questions.
const PAUSE: Duration = Duration::from_millis(10);

/// Asks again and again until it holds.
pub(crate) async fn until(what: &str, holds: impl AsyncFnMut() -> bool) {
    until_within(PATIENCE, what, holds).await;
}

/// As [`until`], with a patience of its own.
pub(crate) async fn until_within(
    patience: Duration,
    what: &str,
    mut holds: impl AsyncFnMut() -> bool,
) {
    let waited = async {
        while !holds().await {
            tokio::time::sleep(PAUSE).await;
        }
    };
    tokio::time::timeout(patience, waited).await.unwrap_or_else(|_| panic!("never {what}"));
}
