//! The demo page: a few files inside the binary, and the headers they go out with. Knows nothing of speech.

use axum::extract::Path;
use axum::http::header::{
    CACHE_CONTROL, CONTENT_ENCODING, CONTENT_SECURITY_POLICY, CONTENT_TYPE, REFERRER_POLICY,
    X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderName, HeaderValue};
use axum::response::{IntoResponse, Redirect, Response};

use crate::server::not_found;

/// Where the page lies.
const HOME: &str = "/demo/";
/// The page speaks with its own server and with nobody else, and cannot be framed. The detector of speech is WebAssembly.
const POLICY: &str = "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; style-src 'self'; \
    img-src 'self'; connect-src 'self'; worker-src 'self'; base-uri 'none'; form-action 'none'; \
    frame-ancestors 'none'";
/// Of all that a page may ask its visitor for, only the microphone.
const PERMISSIONS: &str = "microphone=(self), camera=(), geolocation=()";
/// Asked again each time: page and server are one version.
const CACHE: &str = "no-cache";

const HTML: &str = "text/html; charset=utf-8";
const CSS: &str = "text/css; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";
const SVG: &str = "image/svg+xml";
const WASM: &str = "application/wasm";
const MODEL: &str = "application/octet-stream";

macro_rules! page_file {
    ($name:literal) => {
        include_bytes!(concat!(env!("CARGO_MANIFEST_DIR"), "/../web-demo/", $name))
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
        "connection.js" => page(SCRIPT, page_file!("connection.js")),
        "decoder.js" => page(SCRIPT, page_file!("decoder.js")),
        "dialogue.js" => page(SCRIPT, page_file!("dialogue.js")),
        "engine.js" => page(SCRIPT, page_file!("engine.js")),
        "microphone.js" => page(SCRIPT, page_file!("microphone.js")),
        "passage.js" => page(SCRIPT, page_file!("passage.js")),
        "player.js" => page(SCRIPT, page_file!("player.js")),
        "plots.js" => page(SCRIPT, page_file!("plots.js")),
        "samples.js" => page(SCRIPT, page_file!("samples.js")),
        "speaker.js" => page(SCRIPT, page_file!("speaker.js")),
        "spoken.js" => page(SCRIPT, page_file!("spoken.js")),
        "timeline.js" => page(SCRIPT, page_file!("timeline.js")),
        "view.js" => page(SCRIPT, page_file!("view.js")),
        "style.css" => page(CSS, page_file!("style.css")),
        "dove.svg" => page(SVG, page_file!("dove.svg")),
        _ => not_found().await,
    }
}

/// What others have written for it; the large files are packed, and every browser unpacks them.
pub(crate) async fn vendor(Path(name): Path<String>) -> Response {
    match name.as_str() {
        "vad.min.js" => page(SCRIPT, page_file!("vendor/vad.min.js")),
        "vad.worklet.bundle.min.js" => page(SCRIPT, page_file!("vendor/vad.worklet.bundle.min.js")),
        "ort-wasm-simd-threaded.mjs" => {
            page(SCRIPT, page_file!("vendor/ort-wasm-simd-threaded.mjs"))
        }
        "ort-wasm-simd-threaded.wasm" => {
            packed(WASM, page_file!("vendor/ort-wasm-simd-threaded.wasm.gz"))
        }
        "silero_vad_v5.onnx" => packed(MODEL, page_file!("vendor/silero_vad_v5.onnx.gz")),
        _ => not_found().await,
    }
}

fn packed(content_type: &'static str, body: &'static [u8]) -> Response {
    let mut response = page(content_type, body);
    response.headers_mut().insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    response
}

fn page(content_type: &'static str, body: &'static [u8]) -> Response {
    let headers = [
        (CONTENT_TYPE, HeaderValue::from_static(content_type)),
        (CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY)),
        (CACHE_CONTROL, HeaderValue::from_static(CACHE)),
        (X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
        (REFERRER_POLICY, HeaderValue::from_static("no-referrer")),
        (HeaderName::from_static("permissions-policy"), HeaderValue::from_static(PERMISSIONS)),
    ];
    (headers, body).into_response()
}
