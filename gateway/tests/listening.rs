//! Recordings that a model hears while they are made, over a real socket: a tiny model whose tower hears eight seconds at a
//! time. Its weights are random: what it says means nothing, but the same sound and seed give the same.

#![expect(clippy::unwrap_used, reason = "a test that cannot set itself up should stop")]

mod house;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use codecs::wav::{SampleFormat, header};
use gateway::config::Gateway;
use house::{House, Socket};
use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::Message;

const MODEL: &str = "bagpiper-tiny";
/// Samples a second of what is sent, and of what the engine takes.
const RATE: usize = 24_000;
/// More than a window of the tower, less than its model hears.
const LONG: usize = 9 * RATE;
/// Rows of a window of eight seconds.
const WINDOW_ROWS: u64 = 104;

async fn open() -> House {
    House::of(house::start_all(&["tests/fixtures/bundles/bagpiper"]), Gateway::default()).await
}

async fn start(house: &House) -> Socket {
    let mut socket =
        house.socket("/v1/tts/stream", &[("sec-websocket-protocol", "dovecote.v1")]).await;
    socket.send(&json!({"type": "session.start", "audio": {"codec": "pcm_s16le"}})).await;
    assert_eq!(socket.json().await["type"], "session.ready");
    socket
}

fn upload() -> Value {
    json!({"type": "input_audio", "input_audio": {"id": "u1"}})
}

/// Asks about a part of a message, in text.
async fn ask(socket: &mut Socket, ctx: &str, part: Value) -> Value {
    let content = json!([{"type": "text", "text": "What is this?"}, part]);
    let messages = json!([{"role": "user", "content": content}]);
    let sampling = json!({"temperature": 0});
    let open = json!({"type": "context.open", "ctx": ctx, "model": MODEL, "messages": messages,
        "modalities": ["text"], "sampling": sampling});
    socket.send(&open).await;
    socket.json().await
}

fn tone(samples: usize) -> Vec<u8> {
    let wave = |i: usize| ((i as f32 * 0.04).sin() * 9_000.0) as i16;
    (0..samples).flat_map(|i| wave(i).to_le_bytes()).collect()
}

/// The microphone of a context.
struct Microphone {
    handle: u32,
    seq: u32,
}

impl Microphone {
    /// Of a context that `opened` told of.
    async fn begin(socket: &mut Socket, opened: &Value) -> Self {
        assert_eq!(opened["type"], "context.opened", "{opened}");
        let begin =
            json!({"type": "audio.begin", "ctx": opened["ctx"], "id": "u1", "sample_rate": RATE});
        socket.send(&begin).await;
        Self { handle: opened["handle"].as_u64().unwrap() as u32, seq: 0 }
    }

    async fn say(&mut self, socket: &mut Socket, sound: &[u8], piece: usize) {
        for piece in sound.chunks(piece) {
            let mut bytes = vec![2, 0, 0, 1];
            bytes.extend(self.handle.to_be_bytes());
            bytes.extend(self.seq.to_be_bytes());
            bytes.extend([0; 8]);
            bytes.extend(piece);
            self.seq += 1;
            socket.send_bytes(bytes).await;
        }
    }
}

async fn end(socket: &mut Socket, ctx: &str) {
    socket.send(&json!({"type": "audio.end", "ctx": ctx, "id": "u1"})).await;
}

/// The text of an answer, and the message that ends its context.
async fn answer(socket: &mut Socket) -> (String, Value) {
    let mut text = String::new();
    loop {
        let Message::Text(message) = socket.next().await else { continue };
        let message: Value = serde_json::from_str(&message).unwrap();
        match message["type"].as_str().unwrap() {
            "text.delta" => text += message["text"].as_str().unwrap(),
            "context.done" | "context.cancelled" => return (text, message),
            "error" => text += message["message"].as_str().unwrap(),
            _ => {}
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_heard_is_computed_before_the_recording_ends() {
    let house = open().await;
    let mut socket = start(&house).await;
    let tokens = || house.engine().stats().stages[0].tokens;
    // What the server said to itself before it was ready.
    let before = tokens();
    let opened = ask(&mut socket, "a", upload()).await;
    house.until("read", async || tokens().prefill > before.prefill).await;
    let text = tokens().prefill;
    let mut microphone = Microphone::begin(&mut socket, &opened).await;
    microphone.say(&mut socket, &tone(LONG), RATE).await;
    house.until("heard", async || tokens().prefill == text + WINDOW_ROWS).await;
    assert_eq!(house.engine().stats().contexts, 1);
    assert_eq!(tokens().decode, before.decode, "nothing is said while more is to come");
    end(&mut socket, "a").await;
    let (_, done) = answer(&mut socket).await;
    assert_eq!(done["usage"]["prompt_audio_tokens"], 117, "{done}");
    house.until_idle().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_sound_is_answered_the_same_in_pieces_of_any_length_and_as_a_file() {
    let house = open().await;
    let mut socket = start(&house).await;
    for samples in [RATE, LONG] {
        let mut answers = Vec::new();
        for (n, piece) in [901, 48_000].into_iter().enumerate() {
            let ctx = format!("{samples} {n}");
            let opened = ask(&mut socket, &ctx, upload()).await;
            let mut microphone = Microphone::begin(&mut socket, &opened).await;
            microphone.say(&mut socket, &tone(samples), piece).await;
            end(&mut socket, &ctx).await;
            let (text, done) = answer(&mut socket).await;
            assert_eq!(done["type"], "context.done", "{text}: {done}");
            answers.push((text, done["usage"].clone()));
        }
        assert_eq!(answers[0], answers[1]);
        if samples > RATE {
            continue;
        }
        // A second in a message has little more than it may.
        let mut file = header(RATE as u32 / 3, SampleFormat::I16, &[], Some(RATE as u64 / 3));
        file.extend(tone(RATE).chunks(6).flat_map(|three| &three[..2]));
        let data = STANDARD.encode(file);
        let part = json!({"type": "input_audio", "input_audio": {"data": data, "format": "wav"}});
        assert_eq!(ask(&mut socket, "file", part).await["type"], "context.opened");
        let (text, done) = answer(&mut socket).await;
        assert_eq!(done["type"], "context.done", "{text}: {done}");
        assert_eq!(done["usage"]["prompt_audio_tokens"], answers[0].1["prompt_audio_tokens"]);
    }
    house.until_idle().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_interruption_while_it_listens_gives_all_back() {
    let house = open().await;
    let mut socket = start(&house).await;
    let before = house.engine().stats().prefill_tokens;
    let opened = ask(&mut socket, "a", upload()).await;
    let mut microphone = Microphone::begin(&mut socket, &opened).await;
    microphone.say(&mut socket, &tone(LONG), RATE).await;
    let heard = async || house.engine().stats().prefill_tokens > before + WINDOW_ROWS;
    house.until("heard", heard).await;
    socket.send(&json!({"type": "cancel", "ctx": "a"})).await;
    let (_, cancelled) = answer(&mut socket).await;
    assert_eq!(cancelled["reason"], "client");
    assert!(cancelled["freed"]["kv_blocks"].as_u64() >= Some(WINDOW_ROWS / 16), "{cancelled}");
    house.until_idle().await;
    // One that is replaced by the next question, as its user speaks on.
    ask(&mut socket, "b", upload()).await;
    let messages = json!([{"role": "user", "content": [upload()]}]);
    let next = json!({"type": "context.open", "ctx": "c", "replaces": ["b"], "model": MODEL,
        "messages": messages});
    socket.send(&next).await;
    assert_eq!(answer(&mut socket).await.1["reason"], "replaced");
    socket.close().await;
    house.until_idle().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_heard_ends_the_context_and_says_why() {
    let house = open().await;
    let mut socket = start(&house).await;
    let opened = ask(&mut socket, "long", upload()).await;
    let mut microphone = Microphone::begin(&mut socket, &opened).await;
    microphone.say(&mut socket, &tone(11 * RATE), RATE).await;
    let (error, cancelled) = answer(&mut socket).await;
    assert_eq!(error, "recording 0: longer than 10 s (audio_input.max_seconds)");
    assert_eq!(cancelled["reason"], "error");
    let opened = ask(&mut socket, "empty", upload()).await;
    Microphone::begin(&mut socket, &opened).await;
    end(&mut socket, "empty").await;
    let (error, cancelled) = answer(&mut socket).await;
    assert!(error.contains("0 samples are too short to be heard"), "{error}");
    assert_eq!(cancelled["reason"], "error");
    let part = json!({"type": "input_audio", "input_audio": {"data": "AAAA"}});
    let refused = ask(&mut socket, "file", part).await;
    assert_eq!((&refused["code"], &refused["ctx"]), (&json!("bad_option"), &json!("file")));
    house.until_idle().await;
}
