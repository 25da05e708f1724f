//! Cartesia's clients on a real socket, with the bundled voice: turns, words, barge-ins, lost sockets, keys.

mod house;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use gateway::auth::digest_of;
use gateway::config::{Gateway, Key};
use house::{House, Socket, status};
use serde_json::{Value, json};

const PATH: &str = "/tts/websocket?cartesia_version=2025-04-16";
const TEXT: [&str; 2] = ["Hello there.", "How can I help you today?"];
const LONG: &str = "The quick brown fox jumps over the lazy dog while the old clock on the wall \
    keeps ticking. Nobody in the house seems to notice that the evening has come, and the lights \
    are still off. A little later the door opens and the children come home with wet shoes.";

fn message(name: &str, transcript: &str, goes_on: bool) -> Value {
    json!({
        "model_id": "sonic-3", "context_id": name, "transcript": transcript, "continue": goes_on,
        "voice": {"mode": "id", "id": "71a7ad14-091c-4e8e-a314-022ece01c121"}, "language": "en",
        "output_format": {"container": "raw", "encoding": "pcm_s16le", "sample_rate": 24_000},
        "add_timestamps": true, "max_buffer_delay_ms": 0,
    })
}

/// Everything up to the first message of a type, and that one.
async fn until(socket: &mut Socket, kind: &str) -> Vec<Value> {
    let mut heard = Vec::new();
    loop {
        heard.push(socket.json().await);
        let last = &heard[heard.len() - 1];
        assert_ne!(last["type"], "error", "{last}");
        if last["type"] == kind {
            return heard;
        }
    }
}

fn samples(heard: &[Value]) -> usize {
    let chunks = heard.iter().filter_map(|m| m["data"].as_str());
    chunks.map(|data| STANDARD.decode(data).expect("base64").len() / 2).sum()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_is_heard_with_its_words() {
    let house = House::open().await;
    let mut socket = house.socket(PATH, &[("X-API-Key", "any")]).await;
    for sentence in TEXT {
        socket.send(&message("turn", sentence, true)).await;
    }
    socket.send(&message("turn", "", false)).await;
    let heard = until(&mut socket, "done").await;
    assert!(heard.iter().all(|m| m["context_id"] == "turn"));
    let sounding = samples(&heard) as f64 / 24_000.0;
    let stamps: Vec<&Value> = heard.iter().map(|m| &m["word_timestamps"]).collect();
    let all = |field: &str| {
        let lists = stamps.iter().filter_map(|s| s[field].as_array());
        lists.flatten().cloned().collect::<Vec<Value>>()
    };
    let words: Vec<Value> = TEXT.join(" ").split(' ').map(|word| json!(word)).collect();
    assert_eq!(all("words"), words);
    let times: Vec<f64> = all("end").iter().map(|at| at.as_f64().expect("a number")).collect();
    assert!(times.is_sorted() && times.last().is_some_and(|at| *at <= sounding), "{times:?}");
    house.until_idle().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_barge_in_and_a_socket_that_is_gone_free_everything() {
    let house = House::open().await;
    let mut socket = house.socket(PATH, &[]).await;
    socket.send(&message("one", LONG, true)).await;
    until(&mut socket, "chunk").await;
    socket.send(&json!({"context_id": "one", "cancel": true})).await;
    house.until_idle().await;
    socket.send(&message("two", "Sure.", false)).await;
    let heard = until(&mut socket, "done").await;
    let fresh = heard.iter().position(|m| m["context_id"] == "two").expect("spoken");
    assert!(heard[fresh..].iter().all(|m| m["context_id"] == "two"), "nothing old behind the new");
    socket.send(&message("three", LONG, true)).await;
    until(&mut socket, "chunk").await;
    drop(socket);
    house.until_idle().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn compression_is_declined() {
    let house = House::open().await;
    let offer = ("Sec-WebSocket-Extensions", "permessage-deflate; client_max_window_bits");
    let head = house.handshake(PATH, &[offer]).await;
    assert_eq!(status(&head), 101);
    assert!(!head.to_ascii_lowercase().contains("sec-websocket-extensions"), "{head}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_is_taken_from_where_its_clients_put_it() {
    let mut config = Gateway::default();
    config.auth.keys.push(Key {
        id: "agent".into(),
        sha256: digest_of("sk_car_1"),
        max_sessions: Some(1),
        max_contexts: None,
        chars_per_minute: None,
        lexicon: None,
    });
    let house = House::with(config).await;
    for headers in [&[][..], &[("X-API-Key", "wrong")]] {
        assert_eq!(status(&house.handshake(PATH, headers).await), 401);
    }
    let held = house.socket(PATH, &[("Authorization", "Bearer sk_car_1")]).await;
    let head = house.handshake(PATH, &[("X-API-Key", "sk_car_1")]).await;
    assert_eq!(status(&head), 429);
    assert!(head.contains("retry-after: 1"), "{head}");
    drop(held);
    let free = async || {
        let head = house.handshake(PATH, &[("X-API-Key", "sk_car_1")]).await;
        status(&head) == 101
    };
    house.until("a place", free).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_whole_text_is_answered_in_the_format_asked_for() {
    let house = House::open().await;
    let ask = async |format: Value| {
        let body = json!({"model_id": "sonic-3", "transcript": "Hello there.", "language": null,
            "voice": {"mode": "id", "id": "71a7ad14"}, "output_format": format});
        house.post("/tts/bytes", &body).await
    };
    let raw =
        |encoding, rate| json!({"container": "raw", "encoding": encoding, "sample_rate": rate});
    let (head, pcm) = ask(raw("pcm_s16le", 24_000)).await;
    assert!(head.contains(" 200 ") && head.contains("content-type: audio/pcm"), "{head}");
    let samples = pcm.len() / 2;
    assert!(samples > 4_800);
    let (_, floats) = ask(raw("pcm_f32le", 48_000)).await;
    assert_eq!(floats.len(), samples * 2 * 4);
    let (head, wav) =
        ask(json!({"container": "wav", "encoding": "pcm_s16le", "sample_rate": 24_000})).await;
    assert!(head.contains("content-type: audio/wav"), "{head}");
    let wav = codecs::wav::Wav::read(&wav).expect("a wav");
    assert_eq!((wav.sample_rate, wav.samples.len()), (24_000, samples));
    let (head, body) = ask(json!({"container": "mp3", "sample_rate": 44_100, "bit_rate": 7})).await;
    assert_eq!(status(&head), 400, "{}", String::from_utf8_lossy(&body));
    house.until_idle().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn events_carry_the_sound_the_words_and_the_end() {
    let house = House::open().await;
    let text = "Hello there. How can I help you today?";
    let body = json!({"model_id": "sonic-3", "transcript": text, "add_timestamps": true,
        "voice": {"mode": "id", "id": "71a7ad14"}, "context_id": "a",
        "output_format": {"container": "raw", "encoding": "pcm_s16le", "sample_rate": 16_000}});
    let (head, body) = house.post("/tts/sse", &body).await;
    assert!(head.contains("content-type: text/event-stream"), "{head}");
    let body = String::from_utf8(body).expect("text");
    let heard: Vec<Value> = body
        .split_terminator("\n\n")
        .map(|event| serde_json::from_str(event.split_once("data: ").expect("data").1))
        .collect::<Result<_, _>>()
        .expect("JSON");
    let (end, rest) = heard.split_last().expect("an end");
    assert_eq!(end["type"], "done");
    let sounding = samples(rest) as f64 / 16_000.0;
    let words: Vec<&Value> = rest.iter().filter(|m| m["type"] == "timestamps").collect();
    let texts: Vec<&str> = words
        .iter()
        .flat_map(|m| m["word_timestamps"]["words"].as_array().expect("words"))
        .filter_map(Value::as_str)
        .collect();
    assert_eq!(texts.join(" "), text);
    let end = &words[words.len() - 1]["word_timestamps"]["end"];
    let end = end.as_array().and_then(|ends| ends.last()).and_then(Value::as_f64);
    assert!(end.is_some_and(|end| end > 0.0 && end <= sounding), "{end:?} {sounding}");
    assert!(rest.iter().filter_map(|m| m["data"].as_str()).all(|data| data.len() < 6_000));
}
