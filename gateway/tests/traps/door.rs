//! The door, and the socket itself.

use super::*;

/// A key that may have one session.
fn closed() -> Gateway {
    let mut config = Gateway::default();
    config.auth.keys.push(Key {
        id: "agent".into(),
        sha256: digest_of("opens"),
        max_sessions: Some(1),
        max_contexts: None,
        chars_per_minute: None,
        lexicon: None,
    });
    config
}

#[tokio::test(flavor = "multi_thread")]
async fn the_door_refuses_in_the_vendors_words() {
    let said = |body: &[u8]| serde_json::from_slice::<Value>(body).unwrap();
    let upgrade = |path: &str, header: &str| {
        format!(
            "GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close, Upgrade\r\nUpgrade: websocket\r\n\
             Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n{header}\r\n\r\n"
        )
    };
    let vendors = [
        (MULTI, "xi-api-key: ", "/detail/status"),
        (CARTESIA, "X-API-Key: ", "/error_code"),
        (DEEPGRAM, "Authorization: Token ", "/err_code"),
    ];
    for (path, header, code) in vendors {
        let (house, _control) = house(FAST, closed()).await;
        let (head, body) = house.answer(upgrade(path, &format!("{header}wrong"))).await;
        assert_eq!(
            (status(&head), said(&body).pointer(code)),
            (401, Some(&json!("unauthorized"))),
            "{path}"
        );
        let key = format!("{header}opens");
        let (name, value) = key.split_once(": ").unwrap();
        let _held = house.socket(path, &[(name, value)]).await;
        let (head, body) = house.answer(upgrade(path, &key)).await;
        assert_eq!(
            (status(&head), said(&body).pointer(code)),
            (429, Some(&json!("overloaded"))),
            "{path}"
        );
        assert!(head.contains("retry-after: "), "{head}");
    }
    let (house, _control) = house(FAST, closed()).await;
    let (head, body) = house.post("/v1/text-to-speech/v1", &json!({"text": "Hi."})).await;
    assert_eq!((status(&head), &said(&body)["detail"]["status"]), (401, &json!("unauthorized")));
    let (head, body) = house.post("/tts/bytes", &json!({"transcript": "Hi."})).await;
    assert_eq!((status(&head), &said(&body)["status_code"]), (401, &json!(401)));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_engine_is_told_at_the_door() {
    let (house, _control) = house(CROWDED, Gateway::default()).await;
    let mut socket = house.socket(CARTESIA, &[]).await;
    for n in 0..CROWD {
        socket.send(&generate(&format!("t{n}"), "The train leaves at nine. ", true)).await;
    }
    let full = async || !house.engine().has_room();
    house.until("full", full).await;
    for path in [MULTI, CARTESIA, DEEPGRAM, INFERENCE] {
        let head = house.handshake(path, &[]).await;
        assert_eq!(status(&head), 503, "{head}");
        assert!(head.contains("retry-after: 1"), "{head}");
    }
    // Whoever is inside already is told in the context.
    socket.send(&generate("b", "Hello. ", false)).await;
    let heard = until(&mut socket, is("error")).await;
    let error = &heard[heard.len() - 1];
    let told = (&error["status_code"], &error["context_id"], &error["error_code"]);
    assert_eq!(told, (&json!(503), &json!("b"), &json!("overloaded")));
}

#[tokio::test(flavor = "multi_thread")]
async fn pings_are_answered_and_compression_is_declined() {
    let (house, _control) = house(FAST, Gateway::default()).await;
    for path in [MULTI, CARTESIA, DEEPGRAM, INFERENCE] {
        let offer = ("Sec-WebSocket-Extensions", "permessage-deflate; client_max_window_bits");
        let head = house.handshake(path, &[offer]).await;
        assert_eq!(status(&head), 101);
        assert!(!head.to_ascii_lowercase().contains("sec-websocket-extensions"), "{head}");
        let mut socket = house.socket(path, &[]).await;
        socket.ping(b"still there").await;
        assert_eq!(&*socket.pong().await.1, b"still there", "{path}");
    }
}
