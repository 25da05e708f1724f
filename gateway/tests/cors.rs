//! What a browser is told about pages of other servers, and so whose scripts may read the answers of `/v1`.

#![expect(clippy::unwrap_used, reason = "a test's helpers fail its test")]

mod house;

use std::sync::Arc;

use engine::stub::{self, Script, Timbre};
use gateway::auth::digest_of;
use gateway::config::{Gateway, Key};
use gateway::protocol::Catalogue;
use house::{House, status};

const KEY: &str = "correct-horse";
const PAGE: &str = "https://app.example";

async fn house(origins: &[&str], has_keys: bool) -> House {
    let mut settings = Gateway::default();
    settings.server.origins = origins.iter().map(|origin| (*origin).to_owned()).collect();
    if has_keys {
        settings.auth.keys.push(Key {
            id: "tests".into(),
            sha256: digest_of(KEY),
            max_sessions: None,
            max_contexts: None,
            chars_per_minute: None,
            lexicon: None,
        });
    }
    let (engine, _control) = stub::start(Script::default(), Timbre::Tones(None)).unwrap();
    House::of((Arc::new(engine), Catalogue::of_manifest(&stub::manifest())), settings).await
}

/// The head of an answer, in small letters.
async fn head(house: &House, method: &str, path: &str, headers: &[(&str, &str)]) -> String {
    let headers: String = headers.iter().map(|(n, v)| format!("{n}: {v}\r\n")).collect();
    let request = format!("{method} {path} HTTP/1.0\r\n{headers}\r\n");
    house.answer(request).await.0.to_ascii_lowercase()
}

/// What a browser asks before a page may send a key.
async fn preflight(house: &House, origin: &str, path: &str) -> String {
    let asked = [
        ("Origin", origin),
        ("Access-Control-Request-Method", "POST"),
        ("Access-Control-Request-Headers", "authorization, content-type, x-stainless-lang"),
    ];
    head(house, "OPTIONS", path, &asked).await
}

fn allows(head: &str, origin: &str) -> bool {
    head.contains(&format!("access-control-allow-origin: {origin}\r\n"))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_listed_page_may_send_its_key_and_read_every_answer() {
    let house = house(&[PAGE], true).await;
    for path in ["/v1/audio/speech", "/v1/voices", "/v1/voices/ann", "/v1/tokens"] {
        let head = preflight(&house, PAGE, path).await;
        assert_eq!(status(&head), 200, "{head}");
        assert!(allows(&head, PAGE), "{head}");
        let headers = "access-control-allow-headers: authorization, content-type, x-stainless-lang";
        assert!(head.contains(headers), "{head}");
        for method in ["get", "post", "delete"] {
            let methods = head.lines().find(|l| l.starts_with("access-control-allow-methods"));
            assert!(methods.unwrap().contains(method), "{head}");
        }
        assert!(head.contains("vary: origin"), "{head}");
    }
    let bearer = format!("Bearer {KEY}");
    let with_key = [("Origin", PAGE), ("Authorization", bearer.as_str())];
    let read = head(&house, "GET", "/v1/voices", &with_key).await;
    assert!(status(&read) == 200 && allows(&read, PAGE), "{read}");
    let exposed = "x-request-id,retry-after,x-dovecote-ignored,x-dovecote-notice";
    assert!(read.contains(&format!("access-control-expose-headers: {exposed}")), "{read}");
    let refused = head(&house, "GET", "/v1/voices", &[("Origin", PAGE)]).await;
    assert!(status(&refused) == 401 && allows(&refused, PAGE), "a page is told why: {refused}");
}

#[tokio::test(flavor = "multi_thread")]
async fn other_pages_and_other_paths_are_left_to_the_browser() {
    let house = house(&[PAGE], true).await;
    let head = preflight(&house, "https://evil.example", "/v1/audio/speech").await;
    assert!(!head.contains("access-control-allow-origin"), "{head}");
    let head = preflight(&house, PAGE, "/metrics").await;
    assert!(!head.contains("access-control-allow-origin"), "{head}");
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_list_nothing_is_said() {
    let house = house(&[], false).await;
    let asked = preflight(&house, PAGE, "/v1/voices").await;
    let read = head(&house, "GET", "/v1/voices", &[]).await;
    assert!(!asked.contains("access-control") && !read.contains("access-control"), "{asked}{read}");
}

#[tokio::test(flavor = "multi_thread")]
async fn all_pages_are_named_as_such_only_where_no_key_is_needed() {
    let open = house(&["*"], false).await;
    assert!(allows(&preflight(&open, PAGE, "/v1/voices").await, "*"));
    let closed = house(&["*"], true).await;
    assert!(allows(&preflight(&closed, PAGE, "/v1/voices").await, PAGE));
}
