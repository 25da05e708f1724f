//! Deepgram's clients on a real socket, with the bundled voice: turns of words, barge-ins, an end.

mod house;

use house::{House, Socket};
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
