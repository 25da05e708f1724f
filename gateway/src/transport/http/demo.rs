//! The demo page: a few files inside the binary, and the headers they go out with. Knows nothing of speech.

use axum::extract::Path;
use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
};
use axum::response::{IntoResponse, Redirect, Response};

use crate::server::not_found;

/// Where the page lies.
const HOME: &str = "/demo/";
/// The page speaks with its own server and with nobody else, and cannot be framed.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; \
    connect-src 'self'; worker-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
/// Asked again each time: page and server are one version.
const CACHE: &str = "no-cache";

const HTML: &str = "text/html; charset=utf-8";
const CSS: &str = "text/css; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";
const SVG: &str = "image/svg+xml";

macro_rules! page_file {
    ($name:literal) => {
        include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../web-demo/", $name))
    };
}

/// Sends visitors of the root to the page.
pub(crate) async fn home() -> Redirect {
    Redirect::temporary(HOME)
}

/// The page itself.
pub(crate) async fn index() -> Response {
    page(HTML, page_file!("index.html"))
}

/// What the page is made of.
pub(crate) async fn file(Path(name): Path<String>) -> Response {
    match name.as_str() {
        "app.js" => page(SCRIPT, page_file!("app.js")),
        "dovecote.js" => page(SCRIPT, page_file!("dovecote.js")),
        "player.js" => page(SCRIPT, page_file!("player.js")),
        "samples.js" => page(SCRIPT, page_file!("samples.js")),
        "speaker.js" => page(SCRIPT, page_file!("speaker.js")),
        "view.js" => page(SCRIPT, page_file!("view.js")),
        "style.css" => page(CSS, page_file!("style.css")),
        "dove.svg" => page(SVG, page_file!("dove.svg")),
        _ => not_found().await,
    }
}

fn page(content_type: &'static str, body: &'static str) -> Response {
    let headers = [
        (CONTENT_TYPE, content_type),
        (CONTENT_SECURITY_POLICY, POLICY),
        (CACHE_CONTROL, CACHE),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (REFERRER_POLICY, "no-referrer"),
    ];
    (headers, body).into_response()
}
