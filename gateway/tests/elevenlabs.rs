//! ElevenLabs' clients on a real socket, with the bundled voice: turns, characters, barge-ins, files in pieces, lost sockets.

mod house;

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use gateway::auth::digest_of;
use gateway::config::{Gateway, Key};
use house::{House, Socket, status};
use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::Message;

const MULTI: &str = "/v1/text-to-speech/21m00Tcm4TlvDq8ikWAM/multi-stream-input";
const PCM: &str = "model_id=eleven_flash_v2_5&output_format=pcm_24000&auto_mode=true";
const TEXT: [&str; 2] = ["Hello there.", "How can I help you today?"];
const LONG: &str = "The quick brown fox jumps over the lazy dog while the old clock on the wall \
    keeps ticking. Nobody in the house seems to notice that the evening has come, and the lights \
    are still off. A little later the door opens and the children come home with wet shoes.";

async fn turn(socket: &mut Socket, name: &str, sentences: &[&str]) {
    socket.send(&json!({"text": " ", "context_id": name})).await;
    for sentence in sentences {
        socket.send(&json!({"text": sentence, "context_id": name})).await;
    }
}

async fn end(socket: &mut Socket, name: &str) {
    socket.send(&json!({"context_id": name, "flush": true})).await;
    socket.send(&json!({"context_id": name, "close_context": true})).await;
}

/// Everything up to the end of a context.
async fn until_final(socket: &mut Socket) -> Vec<Value> {
    let mut heard = Vec::new();
    loop {
        let message = socket.json().await;
        assert!(message["error"].is_null(), "{message}");
        if message["isFinal"] == true {
            return heard;
        }
        heard.push(message);
    }
}

fn sound(heard: &[Value]) -> Vec<u8> {
    let pieces = heard.iter().filter_map(|m| m["audio"].as_str());
    pieces.flat_map(|data| STANDARD.decode(data).expect("base64")).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_is_heard_with_its_characters() {
    let house = House::open().await;
    let mut socket = house.socket(&format!("{MULTI}?{PCM}"), &[("xi-api-key", "any")]).await;
    turn(&mut socket, "turn", &TEXT).await;
    end(&mut socket, "turn").await;
    let heard = until_final(&mut socket).await;
    assert!(heard.iter().all(|m| m["contextId"] == "turn"));
    let chars = heard.iter().flat_map(|m| m["alignment"]["chars"].as_array().into_iter().flatten());
    let chars: String = chars.map(|ch| ch.as_str().expect("a character")).collect();
    assert_eq!(chars, TEXT.join(" "));
    let ms = sound(&heard).len() as u64 / 48;
    let spans = heard.iter().filter_map(|m| {
        let last = |field: &str| m["alignment"][field].as_array()?.last()?.as_u64();
        Some(last("charStartTimesMs")? + last("charDurationsMs")?)
    });
    let told: u64 = spans.sum();
    assert!((1..=ms).contains(&told), "{told} ms of characters in {ms} ms of sound");
    house.until_idle().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_barge_in_and_a_socket_that_is_gone_free_everything() {
    let house = House::open().await;
    let mut socket = house.socket(&format!("{MULTI}?{PCM}"), &[]).await;
    turn(&mut socket, "one", &[LONG]).await;
    assert!(socket.json().await["audio"].is_string());
    socket.send(&json!({"context_id": "one", "close_context": true})).await;
    until_final(&mut socket).await;
    house.until_idle().await;
    turn(&mut socket, "two", &["Sure."]).await;
    end(&mut socket, "two").await;
    let heard = until_final(&mut socket).await;
    assert!(heard.iter().all(|m| m["contextId"] == "two") && !heard.is_empty());
    turn(&mut socket, "three", &[LONG]).await;
    assert!(socket.json().await["audio"].is_string());
    drop(socket);
    house.until_idle().await;
}

#[cfg(feature = "mp3")]
#[tokio::test(flavor = "multi_thread")]
async fn a_file_in_pieces_is_one_file() {
    let house = House::open().await;
    let mut socket = house.socket(&format!("{MULTI}?output_format=mp3_22050_32"), &[]).await;
    turn(&mut socket, "turn", &TEXT).await;
    end(&mut socket, "turn").await;
    let heard = until_final(&mut socket).await;
    let told = heard.iter().filter_map(|m| m["alignment"]["charStartTimesMs"].as_array());
    assert!(told.count() > 0);
    let file = codecs::mp3::read(&sound(&heard), 60.0).expect("an mp3");
    let seconds = file.samples.len() as f64 / f64::from(file.sample_rate);
    assert!((1.0..10.0).contains(&seconds), "{seconds} s");
    assert!(file.samples.iter().any(|sample| sample.abs() > 0.02), "silence");
    house.until_idle().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_single_stream_is_closed_when_it_is_spoken() {
    let house = House::open().await;
    let path = "/v1/text-to-speech/nano/stream-input?output_format=pcm_16000";
    let mut socket = house.socket(path, &[]).await;
    for text in [" ", "Hello ", "there. ", ""] {
        socket.send(&json!({"text": text})).await;
    }
    let heard = until_final(&mut socket).await;
    assert!(sound(&heard).len() > 16_000);
    match socket.next().await {
        Message::Close(Some(frame)) => assert_eq!(u16::from(frame.code), 1_000),
        other => panic!("{other:?}"),
    }
    house.until_idle().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_whole_text_comes_with_its_characters() {
    let house = House::open().await;
    let text = TEXT.join(" ");
    let path = "/v1/text-to-speech/anybody/stream/with-timestamps?output_format=pcm_24000";
    let (head, body) = house.post(path, &json!({"text": text, "model_id": "any"})).await;
    assert_eq!(status(&head), 200, "{head}");
    let body = String::from_utf8(body).expect("text");
    let lines: Vec<Value> =
        body.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let of = |field: &str| -> Vec<Value> {
        let lists = lines.iter().filter_map(|line| line["alignment"][field].as_array());
        lists.flatten().cloned().collect()
    };
    let chars: String = of("characters").iter().filter_map(Value::as_str).collect();
    assert_eq!(chars, text);
    let ends: Vec<f64> =
        of("character_end_times_seconds").iter().filter_map(Value::as_f64).collect();
    let pieces = lines.iter().filter_map(|line| line["audio_base64"].as_str());
    let bytes: usize = pieces.map(|data| STANDARD.decode(data).expect("base64").len()).sum();
    let sounding = bytes as f64 / 48_000.0;
    assert!(ends.is_sorted() && ends.last().is_some_and(|end| *end <= sounding), "{ends:?}");

    let path = "/v1/text-to-speech/anybody/with-timestamps?output_format=pcm_24000";
    let (_, body) = house.post(path, &json!({"text": text})).await;
    let whole: Value = serde_json::from_slice(&body).expect("JSON");
    assert_eq!(
        STANDARD.decode(whole["audio_base64"].as_str().expect("sound")).expect("base64").len(),
        bytes
    );
    house.until_idle().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_whole_text_is_a_file() {
    let house = House::open().await;
    let path = "/x/livekit/v1/text-to-speech/anybody/stream?output_format=opus_48000_32";
    let (head, body) = house.post(path, &json!({"text": TEXT.join(" ")})).await;
    assert!(head.contains("content-type: audio/ogg") && body.starts_with(b"OggS"), "{head}");
    let path = "/v1/text-to-speech/anybody?output_format=aac_24000";
    let (head, body) = house.post(path, &json!({"text": "Hi."})).await;
    assert_eq!(status(&head), 400);
    let refused: Value = serde_json::from_slice(&body).expect("JSON");
    assert!(refused["detail"]["message"].as_str().is_some_and(|m| m.contains("pcm_24000")));
    house.until_idle().await;
}

/// Somebody is let in with the key `opens`, for so many sessions.
fn locked(max_sessions: u32) -> Gateway {
    let mut config = Gateway::default();
    config.auth.keys.push(Key {
        id: "agent".into(),
        sha256: digest_of("opens"),
        max_sessions: Some(max_sessions),
        max_contexts: None,
        chars_per_minute: None,
        lexicon: None,
    });
    config
}

/// What somebody is told that is turned away, and the code of the close.
async fn refusal(socket: &mut Socket) -> (Value, u16) {
    let told = socket.json().await;
    match socket.next().await {
        Message::Close(Some(frame)) => (told, frame.code.into()),
        other => panic!("{other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_may_come_in_the_first_message() {
    let house = House::with(locked(9)).await;
    let path = "/v1/text-to-speech/nano/stream-input?output_format=pcm_16000";
    for (field, key) in
        [("xi-api-key", "opens"), ("xi_api_key", "opens"), ("authorization", "Bearer opens")]
    {
        let mut socket = house.socket(path, &[]).await;
        let mut open = json!({"text": " "});
        open[field] = key.into();
        socket.send(&open).await;
        for text in ["Hello there. ", ""] {
            socket.send(&json!({"text": text})).await;
        }
        assert!(sound(&until_final(&mut socket).await).len() > 16_000, "{field}");
    }
    house.until_idle().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_comes_with_the_first_message_has_the_limits_of_who_comes_with_a_header() {
    let house = House::with(locked(1)).await;
    let path = format!("{MULTI}?{PCM}");
    let mut held = house.socket(&path, &[]).await;
    held.send(&json!({"text": " ", "context_id": "a", "xi_api_key": "opens"})).await;
    turn(&mut held, "a", &TEXT).await;
    end(&mut held, "a").await;
    assert!(!until_final(&mut held).await.is_empty());
    let mut second = house.socket(&path, &[]).await;
    second.send(&json!({"text": " ", "xi_api_key": "opens"})).await;
    let (told, code) = refusal(&mut second).await;
    assert_eq!((&told["error"], code), (&json!("overloaded"), 1_013));
}

#[tokio::test(flavor = "multi_thread")]
async fn who_shows_no_good_key_is_turned_away() {
    let mut config = locked(9);
    config.limits.start = Duration::from_millis(300);
    let house = House::with(config).await;
    let path = format!("{MULTI}?{PCM}");
    for first in
        [Some(json!({"text": " ", "xi_api_key": "wrong"})), Some(json!({"text": "Hi. "})), None]
    {
        let mut socket = house.socket(&path, &[]).await;
        if let Some(first) = &first {
            socket.send(first).await;
        }
        let (told, code) = refusal(&mut socket).await;
        let errors = (&told["error"], &told["code"], code);
        assert_eq!(errors, (&json!("unauthorized"), &json!(1_008), 1_008));
        let why = told["message"].as_str().expect("a reason");
        assert!(first.is_some() || why.contains("limits.start_s"), "{why}");
        assert!(!why.contains("wrong"), "nothing of it is told");
    }
    assert_eq!(status(&house.handshake(&path, &[("xi-api-key", "wrong")]).await), 401);
}

#[tokio::test(flavor = "multi_thread")]
async fn strangers_are_few_at_a_time() {
    let mut config = locked(9);
    config.limits.start = house::PATIENCE;
    config.foreign.max_unknown_sockets = 1;
    let house = House::with(config).await;
    let path = format!("{MULTI}?{PCM}");
    let silent = house.socket(&path, &[]).await;
    let head = house.handshake(&path, &[]).await;
    assert_eq!(status(&head), 503, "{head}");
    assert!(head.contains("retry-after: 1"), "{head}");
    // Who shows a key at the door is none of them.
    assert_eq!(status(&house.handshake(&path, &[("xi-api-key", "opens")]).await), 101);
    drop(silent);
    let free = async || status(&house.handshake(&path, &[]).await) == 101;
    house.until("a place for strangers", free).await;
}
