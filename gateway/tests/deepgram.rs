//! Deepgram's clients on a real socket, with the bundled voice: turns of words, barge-ins, an end.

mod house;

use gateway::auth::digest_of;
use gateway::config::{Gateway, Key};
use house::{House, Socket, status};
use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::Message;

const PATH: &str = "/v1/speak?model=aura-2-helena-en&encoding=linear16&sample_rate=24000";
const TEXT: &str = "Hello there. How can I help you today? ";

async fn speak(socket: &mut Socket, text: &str) {
    for word in text.split_inclusive(' ') {
        socket.send(&json!({"type": "Speak", "text": word})).await;
    }
}

/// Bytes of sound up to a message of a type.
async fn until(socket: &mut Socket, kind: &str) -> usize {
    let mut bytes = 0;
    loop {
        match socket.next().await {
            Message::Binary(sound) => bytes += sound.len(),
            Message::Text(text) => {
                let message: Value = serde_json::from_str(&text).expect("JSON");
                assert_ne!(message["type"], "Error", "{message}");
                if message["type"] == kind {
                    return bytes;
                }
            }
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn turns_of_words_are_sound_and_an_end_each() {
    let house = House::open().await;
    let mut socket = house.socket(PATH, &[("Authorization", "Token any")]).await;
    assert_eq!(socket.json().await["type"], "Metadata");
    for _ in 0..2 {
        speak(&mut socket, TEXT).await;
        socket.send(&json!({"type": "Flush"})).await;
        let bytes = until(&mut socket, "Flushed").await;
        assert!(bytes > 48_000 && bytes.is_multiple_of(2), "{bytes} bytes");
    }
    house.until_idle().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn clear_and_close_free_everything() {
    let house = House::open().await;
    let mut socket = house.socket(PATH, &[]).await;
    let long = TEXT.repeat(8);
    for end in ["Clear", "Close"] {
        speak(&mut socket, &long).await;
        socket.send(&json!({"type": "Flush"})).await;
        while !matches!(socket.next().await, Message::Binary(_)) {}
        socket.send(&json!({"type": end})).await;
        if end == "Clear" {
            until(&mut socket, "Cleared").await;
        }
        house.until_idle().await;
    }
    loop {
        match socket.next().await {
            Message::Close(Some(frame)) => break assert_eq!(u16::from(frame.code), 1_000),
            Message::Binary(_) => {}
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_whole_text_is_a_file() {
    let house = House::open().await;
    let (head, body) = house
        .post("/v1/speak?model=aura-2-helena-en&encoding=linear16", &json!({"text": TEXT}))
        .await;
    assert!(head.contains("content-type: audio/wav"), "{head}");
    let wav = codecs::wav::Wav::read(&body).expect("a wav");
    assert!((24_000..240_000).contains(&wav.samples.len()), "{} samples", wav.samples.len());
    let (head, body) = house.post("/v1/speak?encoding=aac", &json!({"text": TEXT})).await;
    assert!(head.contains(" 400 ") && body.starts_with(b"{\"err_code\""), "{head}");
    house.until_idle().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_browser_offers_its_key_as_a_subprotocol() {
    let mut config = Gateway::default();
    config.auth.keys.push(Key {
        id: "page".into(),
        sha256: digest_of("opens"),
        max_sessions: None,
        max_contexts: None,
        chars_per_minute: None,
        lexicon: None,
    });
    let house = House::with(config).await;
    for (offer, answer) in [("token, opens", 101), ("token, wrong", 401), ("token", 401)] {
        let head = house.handshake(PATH, &[("Sec-WebSocket-Protocol", offer)]).await;
        assert_eq!(status(&head), answer, "{offer}");
        if answer == 101 {
            assert!(
                head.to_ascii_lowercase().contains("sec-websocket-protocol: token\r"),
                "{head}"
            );
            assert!(!head.contains("opens"), "{head}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_whole_text_comes_at_every_rate_in_every_container() {
    let house = House::open().await;
    let ask = async |query: &str| {
        let path = format!("/v1/speak?model=aura-2-helena-en&{query}");
        let (head, body) = house.post(&path, &json!({"text": "Hello there."})).await;
        assert_eq!(status(&head), 200, "{query}: {}", String::from_utf8_lossy(&body));
        body
    };
    let bare = ask("encoding=linear16&container=none&sample_rate=24000").await;
    let seconds = bare.len() as f64 / 48_000.0;
    for rate in [8_000, 16_000, 24_000, 32_000, 48_000] {
        for encoding in ["linear16", "mulaw", "alaw"] {
            let body = ask(&format!("encoding={encoding}&sample_rate={rate}")).await;
            let wav = codecs::wav::Wav::read(&body).expect("a wav");
            let lasts = wav.samples.len() as f64 / f64::from(wav.sample_rate);
            assert_eq!(wav.sample_rate, rate);
            assert!((lasts - seconds).abs() < 0.001, "{encoding} at {rate}: {lasts} s");
        }
        if rate != 24_000 {
            let flac = ask(&format!("encoding=flac&sample_rate={rate}")).await;
            assert_eq!(codecs::flac::read(&flac, 60.0).expect("a flac").sample_rate, rate);
        }
    }
    let mulaw = ask("encoding=mulaw&sample_rate=8000&container=none").await;
    assert!((mulaw.len() as f64 / 8_000.0 - seconds).abs() < 0.001);
    let ogg = ask("encoding=opus&container=ogg").await;
    assert!(codecs::ogg::OggOpus::read(&ogg).is_ok());
    house.until_idle().await;
}
