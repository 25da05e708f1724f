//! Voices that clients add: made of codes or of a recording, spoken with at once, kept over a restart, taken away.

#![expect(clippy::unwrap_used, reason = "a test's helpers fail its test")]

mod house;

use codecs::wav::{self, SampleFormat};
use gateway::config::{Gateway, VoiceUploads};
use house::{House, form, hearing, status};
use serde_json::{Value, json};

const PATH: &str = "/v1/voices";

/// Adds a voice of this part, with consent.
async fn add(house: &House, part: (&str, &[u8])) -> (u16, Value) {
    let consent: [(&str, &[u8]); 3] =
        [("name", b"Ann"), ("consent", b"true"), ("reference", b"Ann, on paper, in the safe")];
    answer(house, &[&consent[..], &[part]].concat()).await
}

async fn answer(house: &House, parts: &[(&str, &[u8])]) -> (u16, Value) {
    let (head, body) = house.answer(form(PATH, parts)).await;
    (status(&head), serde_json::from_slice(&body).unwrap())
}

async fn ids(house: &House) -> Vec<String> {
    let (_, body) = house.answer(format!("GET {PATH} HTTP/1.0\r\n\r\n")).await;
    let body: Value = serde_json::from_slice(&body).unwrap();
    let voices = body["voices"].as_array().unwrap().iter();
    voices.map(|v| v["voice_id"].as_str().unwrap().to_owned()).collect()
}

async fn delete(house: &House, id: &str) -> u16 {
    status(&house.answer(format!("DELETE {PATH}/{id} HTTP/1.0\r\n\r\n")).await.0)
}

async fn speak(house: &House, voice: &str) -> (u16, Vec<u8>) {
    let body = json!({"input": "Hello there.", "voice": voice, "response_format": "pcm"});
    let (head, body) = house.post("/v1/audio/speech", &body).await;
    (status(&head), body)
}

fn codes(frames: usize) -> String {
    let row = |row: usize| (0..frames).map(|f| (17 * f + row) % 1_000).collect::<Vec<_>>();
    json!((0..4).map(row).collect::<Vec<_>>()).to_string()
}

/// A voice-like sound: 16-bit WAV at 16 kHz.
fn recording(seconds: f64, loudness: f32) -> Vec<u8> {
    let samples = (seconds * 16_000.0).round() as usize;
    let mut bytes = wav::header(16_000, SampleFormat::I16, &[], Some(samples as u64));
    let sound: Vec<f32> = (0..samples)
        .map(|i| loudness * (i as f32 * 0.05).sin() * (i as f32 * 0.000_7).sin())
        .collect();
    codecs::pcm::extend_i16_le(&mut bytes, &sound);
    bytes
}

#[tokio::test(flavor = "multi_thread")]
async fn a_voice_of_codes_speaks_until_it_is_taken_away() {
    let house = House::open().await;
    let (status, added) = add(&house, ("codes", codes(120).as_bytes())).await;
    assert_eq!((status, &added["name"]), (201, &json!("Ann")), "{added}");
    assert_eq!(added["prompt_frames"], json!([120, 120, 120, 100]));
    assert_eq!(added["seconds_used"], 9.6);
    let id = added["voice_id"].as_str().unwrap();
    assert_eq!(ids(&house).await, ["nano", id]);

    let (status, with) = speak(&house, id).await;
    let (_, without) = speak(&house, "nano").await;
    assert_eq!(status, 200);
    assert_ne!(with, without);

    // One that speaks goes on; the next is refused.
    let long = "Hello there, how are you today? ".repeat(20);
    let body = json!({"input": long, "voice": id, "response_format": "pcm"});
    let (_, whole) = house.post("/v1/audio/speech", &body).await;
    let mut under_way = house.begin("/v1/audio/speech", &body).await;
    house.until("at work", async || house.engine().stats().kv_blocks_in_use > 0).await;
    assert_eq!(delete(&house, id).await, 204);
    assert!(house::body(&mut under_way).await == whole, "it is not what it was before");
    assert_eq!(speak(&house, id).await.0, 400);
    assert_eq!(ids(&house).await, ["nano"]);
    assert_eq!(delete(&house, id).await, 404);
    assert_eq!(delete(&house, "nano").await, 403);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_become_a_voice_is_told() {
    let settings = VoiceUploads { max_upload_bytes: 100_000, ..VoiceUploads::default() };
    let house = House::with(Gateway { voices: settings, ..Gateway::default() }).await;
    let (codes, yes) = (codes(20), ("consent", &b"true"[..]));
    let part = ("codes", codes.as_bytes());
    for (parts, expected, code) in [
        (vec![("name", &b"Ann"[..]), part], 400, "consent_required"),
        (vec![("name", b"Ann"), part, ("consent", b"no")], 400, "consent_required"),
        (vec![part, yes], 400, "bad_value"),
        (vec![("name", b"Ann"), yes], 400, "bad_value"),
        (vec![("name", b"Ann"), yes, ("codes", b"[[1],[2]]")], 400, "bad_value"),
        (vec![("name", b"Ann"), yes, ("codes", b"[[1],[2],[3],[9999]]")], 400, "bad_value"),
        (vec![("name", b"Ann"), yes, ("codes", b"hello")], 400, "bad_value"),
        (vec![("name", b"Ann"), yes, ("file", b"hello")], 400, "cannot_decode"),
        // This bundle only speaks.
        (vec![("name", b"Ann"), yes, ("file", &recording(1.0, 0.3))], 400, "cannot_encode"),
        (vec![("name", b"Ann"), yes, ("file", &[0; 100_001])], 413, "too_large"),
        (vec![("name", b"Ann"), yes, ("file", &[0; 900_000])], 413, "too_large"),
        (vec![("name", &[b'a'; 201][..]), yes, part], 400, "bad_value"),
    ] {
        let (status, body) = answer(&house, &parts).await;
        assert_eq!((status, &body["error"]["code"]), (expected, &json!(code)), "{body}");
    }
    let (head, _) = house.post(PATH, &json!({"name": "Ann"})).await;
    assert_eq!(status(&head), 400);
    assert_eq!(ids(&house).await, ["nano"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_recording_becomes_a_voice_up_to_a_minute() {
    let bundle = hearing::bundle(&json!([{"name": "recorded", "prompt": "me.wav"}]));
    std::fs::write(bundle.path().join("me.wav"), recording(2.0, 0.3)).unwrap();
    let house = House::of(house::start(bundle.path()), Gateway::default()).await;
    assert_eq!(ids(&house).await, ["recorded"]);

    let (status, added) = add(&house, ("file", &recording(60.0, 0.3))).await;
    assert_eq!(status, 201, "{added}");
    // The encoder gives a frame less than the recording has.
    assert_eq!(added["prompt_frames"], json!([749, 300, 150, 100]));
    assert_eq!(added["seconds_used"], 60.0);
    let (status, added) = add(&house, ("file", &recording(1.0, 0.3))).await;
    assert_eq!((status, &added["prompt_frames"]), (201, &json!([12, 12, 12, 12])));
    assert_eq!(ids(&house).await.len(), 3);

    for (seconds, loudness, code) in [
        (60.08, 0.3, "too_long"),
        (184.0, 0.3, "too_long"),
        (0.0, 0.3, "silent"),
        (2.0, 0.0, "silent"),
        (0.05, 0.3, "cannot_encode"),
    ] {
        let (status, body) = add(&house, ("file", &recording(seconds, loudness))).await;
        assert_eq!((status, &body["error"]["code"]), (400, &json!(code)), "{seconds} s: {body}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn added_voices_outlive_the_server_if_there_is_a_folder_for_them() {
    let folder = tempfile::tempdir().unwrap();
    let config = || {
        let folder = Some(folder.path().join("kept"));
        Gateway { voices: VoiceUploads { folder, ..VoiceUploads::default() }, ..Gateway::default() }
    };
    let nano = house::repository("voices/nano");
    let house = House::of(house::start(&nano), config()).await;
    let (_, first) = add(&house, ("codes", codes(20).as_bytes())).await;
    let (_, second) = add(&house, ("codes", codes(30).as_bytes())).await;
    let id = |added: &Value| added["voice_id"].as_str().unwrap().to_owned();
    assert_eq!(delete(&house, &id(&first)).await, 204);
    let (_, spoken) = speak(&house, &id(&second)).await;
    drop(house);

    std::fs::write(folder.path().join("kept/v_0.json"), "damaged").unwrap();
    let house = House::of(house::start(&nano), config()).await;
    assert_eq!(ids(&house).await, ["nano".to_owned(), id(&second)]);
    assert_eq!(speak(&house, &id(&second)).await, (200, spoken));
    let kept = folder.path().join("kept").join(id(&second)).with_extension("json");
    let kept: Value = serde_json::from_slice(&std::fs::read(kept).unwrap()).unwrap();
    assert_eq!(
        (&kept["consent"], &kept["reference"]),
        (&json!(true), &json!("Ann, on paper, in the safe"))
    );
}
