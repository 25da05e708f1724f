//! Clients of the TontaubeV1 server on a real socket, with the bundled voice.

mod house;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use codecs::opus::Decoder;
use codecs::wav::Wav;
use house::{House, status};
use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::Message;

const TEXT: &str = "Hello there. How can I help you today?";

#[tokio::test(flavor = "multi_thread")]
async fn a_file_comes_in_an_object_with_its_codes() {
    let house = House::open().await;
    let request = json!({"instances": [{"text": TEXT, "max_new_tokens": 400, "seed": 3}]});
    let (head, body) = house.post("/predict", &request).await;
    assert!(
        head.contains(" 200 ") && head.contains("x-dovecote-ignored: max_new_tokens"),
        "{head}"
    );
    let answer: Value = serde_json::from_slice(&body).expect("an object");
    assert_eq!(
        (&answer["mime_type"], &answer["sample_rate"]),
        (&json!("audio/wav"), &json!(24_000))
    );
    let file = STANDARD.decode(answer["audio_b64"].as_str().expect("a file")).expect("base64");
    let samples = Wav::read(&file).expect("a wav").samples.len();
    let frames = answer["codebook_tokens"][0].as_array().expect("codes").len();
    assert!(samples > 24_000 && frames > 12, "{samples} samples, {frames} frames");

    let (head, body) = house.post("/predict", &json!({"text": TEXT, "volume": 1})).await;
    assert_eq!(status(&head), 422);
    assert!(String::from_utf8_lossy(&body).contains("volume"));
    house.until_idle().await;
}

#[cfg(feature = "mp3")]
#[tokio::test(flavor = "multi_thread")]
async fn events_carry_mp3() {
    let house = House::open().await;
    let (head, body) = house.post("/stream", &json!({"text": TEXT})).await;
    assert!(head.contains("content-type: text/event-stream"), "{head}");
    let body = String::from_utf8(body).expect("text");
    let events: Vec<Value> = body
        .split_terminator("\n\n")
        .map(|event| serde_json::from_str(event.strip_prefix("data: ").expect("data")))
        .collect::<Result<_, _>>()
        .expect("JSON");
    let mut file = Vec::new();
    for (at, event) in events.iter().enumerate() {
        assert_eq!((&event["index"], &event["done"]), (&json!(at), &json!(at + 1 == events.len())));
        file.extend(STANDARD.decode(event["audio_b64"].as_str().expect("bytes")).expect("base64"));
    }
    let heard = codecs::mp3::read(&file, 60.0).expect("an MP3");
    assert!(heard.sample_rate == 24_000 && heard.samples.len() > 24_000);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_socket_gives_opus_packets_that_are_speech() {
    let house = House::open().await;
    let mut socket = house.socket("/ws/stream", &[("x-api-key", "any")]).await;
    socket.send(&json!({"text": TEXT, "streaming_initial_seconds": 0.8})).await;
    let mut decoder = Decoder::new(24_000).expect("a decoder");
    let mut heard: Vec<f32> = Vec::new();
    loop {
        let bytes = match socket.next().await {
            Message::Binary(bytes) => bytes,
            Message::Text(text) => {
                assert_eq!(text.as_str(), "{\"done\":true}");
                break;
            }
            other => panic!("{other:?}"),
        };
        let (count, mut rest) = bytes.split_at(2);
        for _ in 0..u16::from_le_bytes([count[0], count[1]]) {
            let length = usize::from(u16::from_le_bytes([rest[0], rest[1]]));
            heard.extend(decoder.decode(&rest[2..2 + length]).expect("a packet"));
            rest = &rest[2 + length..];
        }
        assert!(rest.is_empty());
    }
    assert!(
        matches!(socket.next().await, Message::Close(Some(frame)) if u16::from(frame.code) == 1_000)
    );
    let rms = (heard.iter().map(|s| s * s).sum::<f32>() / heard.len() as f32).sqrt();
    assert!(heard.len() > 24_000 && rms > 0.005, "{} samples, rms {rms}", heard.len());
    house.until_idle().await;
}
