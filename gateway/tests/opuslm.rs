//! A model that hears in codes, over the wire: recordings are written down, answered and spoken to, and a voice is asked for.
//! Weights are random, so only that it depends on what was heard can be told.

#![expect(clippy::unwrap_used, reason = "a test that cannot set itself up should stop")]

mod house;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use codecs::wav::{self, SampleFormat};
use gateway::config::Gateway;
use house::wire::Wire;
use house::{House, form, status};
use serde_json::{Value, json};

const MODEL: &str = "opuslm-hearing";

async fn open() -> House {
    let bundles = ["voices/nano", "tests/fixtures/bundles/opuslm-hearing"];
    House::of(house::start_all(&bundles), Gateway::default()).await
}

/// Sound as a WAV file at 16 kHz.
fn long_recording(step: f32, seconds: u32) -> Vec<u8> {
    let samples = seconds * 16_000;
    let mut bytes = wav::header(16_000, SampleFormat::I16, &[], Some(samples.into()));
    let sample = |i: u32| (i as f32 * step).sin() * (i as f32 * 0.001).cos() * 0.4;
    codecs::pcm::extend_i16_le(&mut bytes, &(0..samples).map(sample).collect::<Vec<f32>>());
    bytes
}

fn recording(step: f32) -> Vec<u8> {
    long_recording(step, 1)
}

async fn transcribed(house: &House, step: f32) -> Value {
    let file = recording(step);
    let parts = [("model", MODEL.as_bytes()), ("temperature", b"0"), ("file", &file)];
    let (head, answer) = house.answer(form("/v1/audio/transcriptions", &parts)).await;
    assert_eq!(status(&head), 200, "{}", String::from_utf8_lossy(&answer));
    serde_json::from_slice(&answer).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_recording_is_written_down() {
    let house = open().await;
    let (low, high) = (transcribed(&house, 0.03).await, transcribed(&house, 0.2).await);
    assert!(low["text"].is_string());
    assert_eq!(low["text"], transcribed(&house, 0.03).await["text"]);
    assert_ne!(low["text"], high["text"], "what is heard decides what is written");
    house.until_idle().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_spoken_question_is_answered_in_a_voice() {
    let house = open().await;
    let ask = async |step: f32, voice: &str| {
        let data = STANDARD.encode(recording(step));
        let body = json!({"model": MODEL, "seed": 7, "modalities": ["text", "audio"],
            "audio": {"voice": voice, "format": "pcm16"}, "messages": [{"role": "user",
            "content": [{"type": "input_audio", "input_audio": {"data": data, "format": "wav"}}]}]});
        let (head, answer) = house.post("/v1/chat/completions", &body).await;
        let answer: Value = serde_json::from_slice(&answer).unwrap();
        assert_eq!(status(&head), 200, "{answer}");
        answer
    };
    let told = |answer: &Value| answer["choices"][0]["message"]["audio"].clone();
    let ann = ask(0.03, "ann").await;
    // A second of what is heard, and the twelve frames of the voice.
    assert_eq!(ann["usage"]["prompt_tokens_details"]["audio_tokens"], 49 + 12);
    assert!(ann["usage"]["completion_tokens_details"]["audio_tokens"].as_u64() > Some(0));
    let (own, other) = (ask(0.03, "alloy").await, ask(0.2, "ann").await);
    assert_eq!(own["usage"]["prompt_tokens_details"]["audio_tokens"], 49);
    assert_ne!(told(&ann)["data"], told(&own)["data"]);
    assert_ne!(told(&ann)["transcript"], told(&other)["transcript"]);
    house.until_idle().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_text_is_spoken_in_the_voice_that_is_named() {
    let house = open().await;
    let speech = async |voice: &str| {
        let body =
            json!({"model": MODEL, "input": "Hi.", "voice": voice, "response_format": "pcm"});
        let (head, sound) = house.post("/v1/audio/speech", &body).await;
        (status(&head), sound)
    };
    let (ann, own) = (speech("ann").await, speech("alloy").await);
    assert_eq!((ann.0, own.0), (200, 200));
    assert!(!ann.1.is_empty() && ann.1 != own.1);
    let (refused, answer) = speech("nobody").await;
    assert_eq!(refused, 400, "{}", String::from_utf8_lossy(&answer));
    house.until_idle().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_sends_what_is_to_be_answered() {
    let house = open().await;
    let mut wire = Wire::connect(&house).await;
    wire.send(r#"{"type":"session.start","audio":{"codec":"pcm_s16le"}}"#).await;
    let ready = wire.until("session.ready").await;
    let models = ready["models"].as_array().unwrap();
    let model = models.iter().find(|model| model["id"] == MODEL).unwrap();
    assert_eq!(model["voices"], json!(["ann"]));
    let heard = json!([{"type": "input_audio", "input_audio": {"id": "u"}}]);
    let open = json!({"type": "context.open", "ctx": "q", "model": MODEL, "voice": "ann", "seed": 7,
        "messages": [{"role": "user", "content": heard}]});
    wire.send(&open.to_string()).await;
    let handle = wire.until("context.opened").await["handle"].as_u64().unwrap();
    wire.send(r#"{"type":"audio.begin","ctx":"q","id":"u","sample_rate":16000}"#).await;
    let mut frame = vec![2, 0, 0, 1];
    frame.extend(u32::try_from(handle).unwrap().to_be_bytes());
    frame.extend([0; 12]);
    // Behind the header of the file.
    let file = recording(0.03);
    frame.extend(&file[file.len() - 32_000..]);
    wire.send_frame(frame).await;
    wire.send(r#"{"type":"audio.end","ctx":"q","id":"u"}"#).await;
    let done = wire.until("context.done").await;
    assert_eq!(done["usage"]["prompt_audio_tokens"], 49 + 12, "{done}");
    assert!(done["usage"]["audio_frames"].as_u64() > Some(0), "{done}");
    house.until_idle().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_voice_of_a_recording_is_added_to_the_model_that_is_named() {
    let house = open().await;
    let add = async |more: &[(&str, &[u8])]| {
        let parts = [&[("name", &b"Bea"[..]), ("consent", b"true")], more].concat();
        let (head, body) = house.answer(form("/v1/voices", &parts)).await;
        (status(&head), serde_json::from_slice::<Value>(&body).unwrap())
    };
    let file = long_recording(0.03, 11);
    let (code, added) = add(&[("file", &file), ("model", MODEL.as_bytes())]).await;
    assert_eq!((code, &added["model"]), (201, &json!(MODEL)), "{added}");
    assert_eq!((&added["seconds_used"], &added["prompt_frames"]), (&json!(10.0), &json!([500])));
    // The bundled voice does not hear, so the model that does is the first that can.
    let (code, unnamed) = add(&[("file", &recording(0.2))]).await;
    assert_eq!((code, &unnamed["model"]), (201, &json!(MODEL)), "{unnamed}");
    assert_eq!(unnamed["prompt_frames"], json!([49]));
    let (code, refused) = add(&[("file", &file), ("model", b"nano")]).await;
    assert_eq!((code, &refused["error"]["code"]), (400, &json!("cannot_encode")), "{refused}");
    let (code, refused) = add(&[("file", &file), ("model", b"nobody")]).await;
    assert_eq!((code, &refused["error"]["code"]), (400, &json!("unknown_model")), "{refused}");
    let told = refused["error"]["message"].as_str().unwrap();
    assert!(told.contains("nano, opuslm-hearing"), "{told}");

    let id = added["voice_id"].as_str().unwrap();
    let (_, list) = house.answer("GET /v1/voices HTTP/1.0\r\n\r\n").await;
    let list: Value = serde_json::from_slice(&list).unwrap();
    let listed: Vec<(&str, &str, &str)> = list["voices"]
        .as_array()
        .unwrap()
        .iter()
        .map(|voice| {
            let field = |name: &str| voice[name].as_str().unwrap();
            (field("voice_id"), field("model"), field("category"))
        })
        .collect();
    let other = unnamed["voice_id"].as_str().unwrap();
    let expected = [
        ("nano", "nano", "premade"),
        ("ann", MODEL, "premade"),
        (id, MODEL, "cloned"),
        (other, MODEL, "cloned"),
    ];
    assert_eq!(listed, expected);

    let speech = async |voice: &str| {
        let body =
            json!({"model": MODEL, "input": "Hi.", "voice": voice, "response_format": "pcm"});
        let (head, sound) = house.post("/v1/audio/speech", &body).await;
        (status(&head), sound)
    };
    let (made, ann) = (speech(id).await, speech("ann").await);
    assert_eq!((made.0, ann.0), (200, 200), "{}", String::from_utf8_lossy(&made.1));
    assert_ne!(made.1, ann.1);
    for (voice, expected) in [(id, 204), (id, 404), ("ann", 403)] {
        let (head, _) = house.answer(format!("DELETE /v1/voices/{voice} HTTP/1.0\r\n\r\n")).await;
        assert_eq!(status(&head), expected, "{voice}");
    }
    assert_eq!(speech(id).await.0, 400);
    house.until_idle().await;
}
