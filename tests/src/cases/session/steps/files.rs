//! Texts that are spoken into a file over `/v1/audio/speech`.

use anyhow::bail;
use serde_json::{Value, json};

use super::super::format::Format;
use super::super::http;
use super::super::run::{Run, Speech};

/// Asks for the file whose text is complete.
pub(super) async fn end_speech(run: &Run) -> anyhow::Result<()> {
    let speech = run.left().speeches.last().cloned();
    let Some(Speech { text, format: Format::Speech { response_format }, .. }) = speech else {
        bail!("no file is asked for")
    };
    let body = json!({"model": "tontaube", "voice": "v1", "input": text, "response_format": response_format});
    ask_for_speech(run, &body).await
}

/// Asks for a file; the answer is that of the latest one that was begun.
pub(super) async fn ask_for_speech(run: &Run, body: &Value) -> anyhow::Result<()> {
    const PATH: &str = "/v1/audio/speech";
    let json = ("Content-Type".to_owned(), "application/json".to_owned());
    let address = run.server()?.address;
    let answer = http::ask(address, "POST", PATH, &[json], &body.to_string().into_bytes()).await?;
    let mut left = run.left();
    left.answers.push((PATH.to_owned(), answer.clone()));
    if let Some(speech) = left.speeches.last_mut() {
        speech.answer = Some(answer);
    }
    Ok(())
}

/// Whether a connection of this name is a file over HTTP; without a name, whether `c1` is.
pub(super) fn is_over_http(run: &Run, name: Option<&str>) -> bool {
    run.left().over_http.contains(name.unwrap_or("c1"))
}
