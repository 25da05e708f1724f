//! A real server on a real socket, with the bundled voice: text in, packets out and decoded, barge-in, drain.

#![expect(clippy::unwrap_used, reason = "a test's helpers fail its test")]

#[path = "house/waiting.rs"]
mod waiting;

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Arc, LazyLock};

use codecs::opus::Decoder;
use engine::bundle::Bundle;
use futures_util::{SinkExt, StreamExt};
use gateway::config::Gateway;
use gateway::protocol::{Catalogue, SUBPROTOCOL};
use gateway::server;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Mutex, MutexGuard, oneshot};
use tokio::task::JoinHandle;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use waiting::{PATIENCE, until};

/// Speech is never this faint over a whole sentence; silence is far below.
const SPEECH_RMS_MIN: f32 = 0.005;
const LONG: &str = "The quick brown fox jumps over the lazy dog while the old clock on the wall \
    keeps ticking. Nobody in the house seems to notice that the evening has come, and the lights \
    are still off. A little later the door opens and the children come home with wet shoes.";

/// One engine for all tests, and one test at a time: they count what the engine holds.
static ENGINE: LazyLock<Mutex<(Arc<engine::Handle>, Catalogue)>> = LazyLock::new(|| {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../voices/nano");
    let bundle = Bundle::open(&root).unwrap();
    let engine =
        engine::Handle::start(&[bundle.clone().into()], &engine::Options::default(), &mut |_| {})
            .unwrap();
    Mutex::new((Arc::new(engine), Catalogue::of(&bundle)))
});

struct House {
    address: SocketAddr,
    engine: MutexGuard<'static, (Arc<engine::Handle>, Catalogue)>,
    shutdown: Option<oneshot::Sender<()>>,
    served: JoinHandle<std::io::Result<()>>,
}

impl House {
    async fn open() -> Self {
        let engine = ENGINE.lock().await;
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (shutdown, asked) = oneshot::channel();
        let (handle, catalogue) = engine.clone();
        let served = tokio::spawn(async move {
            let asked = async {
                let _ = asked.await;
            };
            server::run(Gateway::default(), listener, handle, catalogue, asked).await
        });
        let house = Self { address, engine, shutdown: Some(shutdown), served };
        until("ready", async || house.get("/readyz").await.0 == 200).await;
        house
    }

    /// Until the engine holds nothing for anybody.
    async fn until_idle(&self) {
        until("idle", async || {
            let stats = self.engine.0.stats();
            stats.contexts == 0 && stats.kv_blocks_in_use == 0
        })
        .await;
    }

    async fn get(&self, path: &str) -> (u16, Vec<u8>) {
        self.http(&format!("GET {path} HTTP/1.0\r\n\r\n")).await
    }

    async fn http(&self, request: &str) -> (u16, Vec<u8>) {
        let (head, body) = self.answer(request).await;
        (head.split(' ').nth(1).unwrap().parse().unwrap(), body)
    }

    /// Head and body. HTTP 1.0: the body is whatever comes until the end.
    async fn answer(&self, request: &str) -> (String, Vec<u8>) {
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = Vec::new();
        let read = tokio::time::timeout(PATIENCE, stream.read_to_end(&mut answer)).await;
        read.expect("no answer in time").unwrap();
        let end = answer.windows(4).position(|w| w == b"\r\n\r\n").unwrap();
        let head = String::from_utf8(answer[..end].to_vec()).unwrap();
        (head, answer[end + 4..].to_vec())
    }

    async fn connect(&self) -> Client {
        let mut request =
            format!("ws://{}/v1/tts/stream", self.address).into_client_request().unwrap();
        request.headers_mut().insert("Sec-WebSocket-Protocol", SUBPROTOCOL.parse().unwrap());
        let stream = TcpStream::connect(self.address).await.unwrap();
        let (socket, answer) = tokio_tungstenite::client_async(request, stream).await.unwrap();
        assert_eq!(answer.headers()["Sec-WebSocket-Protocol"], SUBPROTOCOL);
        Client { socket }
    }
}

#[derive(Debug)]
enum Seen {
    Text(Value),
    Audio { flags: u8, handle: u32, seq: u32, pos: u64, packet: Vec<u8> },
    Close(u16),
}

struct Client {
    socket: WebSocketStream<TcpStream>,
}

impl Client {
    async fn start(house: &House) -> Self {
        let mut client = house.connect().await;
        client.send(json!({"type": "session.start", "audio": {"codec": "opus"}})).await;
        let ready = client.until("session.ready").await.1;
        assert_eq!((&ready["synthetic"], &ready["audio"]["pre_skip"]), (&json!(true), &json!(312)));
        client
    }

    async fn send(&mut self, message: Value) {
        self.socket.send(Message::text(message.to_string())).await.unwrap();
    }

    async fn next(&mut self) -> Seen {
        loop {
            let message = tokio::time::timeout(PATIENCE, self.socket.next()).await;
            match message.expect("nothing came in time").expect("the end of the stream").unwrap() {
                Message::Text(text) => return Seen::Text(serde_json::from_str(&text).unwrap()),
                Message::Binary(frame) => {
                    assert_eq!((frame[0], &frame[2..4]), (1, &[0, 1][..]));
                    return Seen::Audio {
                        flags: frame[1],
                        handle: u32::from_be_bytes(frame[4..8].try_into().unwrap()),
                        seq: u32::from_be_bytes(frame[8..12].try_into().unwrap()),
                        pos: u64::from_be_bytes(frame[12..20].try_into().unwrap()),
                        packet: frame[20..].to_vec(),
                    };
                }
                Message::Close(frame) => return Seen::Close(frame.unwrap().code.into()),
                _ => {}
            }
        }
    }

    /// Everything up to a message of this type, and that message.
    async fn until(&mut self, r#type: &str) -> (Vec<Seen>, Value) {
        let mut before = Vec::new();
        loop {
            match self.next().await {
                Seen::Text(event) if event["type"] == r#type => return (before, event),
                Seen::Close(code) => panic!("closed with {code} before {type}"),
                seen => before.push(seen),
            }
        }
    }

    async fn packets(&mut self, n: usize) {
        let mut count = 0;
        while count < n {
            count += usize::from(matches!(self.next().await, Seen::Audio { .. }));
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn words_become_packets_while_they_are_written() {
    let house = House::open().await;
    let mut client = Client::start(&house).await;
    let text = "Hello there, how can I help you today? I am listening to every word.";
    client.send(json!({"type": "context.open", "ctx": "t1"})).await;
    let mut before = Vec::new();
    for (seq, word) in text.split_inclusive(' ').enumerate() {
        client.send(json!({"type": "text", "ctx": "t1", "seq": seq, "text": word})).await;
        // Only what was spoken of the first sentence lets the writer go on.
        while word == "today? " && !matches!(before.last(), Some(Seen::Audio { .. })) {
            before.push(client.next().await);
        }
    }
    client.send(json!({"type": "end", "ctx": "t1"})).await;
    let (rest, done) = client.until("context.done").await;
    before.extend(rest);
    let mut decoder = Decoder::new(48_000).unwrap();
    let (mut sound, mut packets, mut last_flags) = (Vec::new(), 0_u64, 0);
    let mut commits = Vec::new();
    for seen in before {
        match seen {
            Seen::Audio { flags, handle, seq, pos, packet } => {
                assert_eq!((handle, u64::from(seq), pos), (1, packets, packets * 960));
                sound.extend_from_slice(decoder.decode(&packet).unwrap());
                (packets, last_flags) = (packets + 1, flags);
            }
            Seen::Text(event) if event["type"] == "commit" => commits.push(event),
            _ => {}
        }
    }
    assert_eq!(last_flags, 0x03);
    let samples = done["samples"].as_u64().unwrap();
    assert!(samples <= sound.len() as u64 && samples + 2 * 960 > sound.len() as u64);
    let rms = (sound.iter().map(|s| s * s).sum::<f32>() / sound.len() as f32).sqrt();
    assert!(rms > SPEECH_RMS_MIN, "rms {rms}");
    let last = commits.last().unwrap();
    assert_eq!((&last["final"], &last["to"]), (&json!(true), &done["samples"]));
    assert_eq!(last["text"]["to"], text.len());
    assert!(commits.windows(2).all(|w| w[0]["to"] == w[1]["from"]));
    house.until_idle().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_barge_in_stops_the_sound_and_frees_the_memory() {
    let house = House::open().await;
    let mut client = Client::start(&house).await;
    client.send(json!({"type": "context.open", "ctx": "t1"})).await;
    client.send(json!({"type": "text", "ctx": "t1", "seq": 0, "text": LONG})).await;
    client.packets(20).await;
    assert!(house.engine.0.stats().kv_blocks_in_use > 0);
    client.send(json!({"type": "cancel", "ctx": "t1", "played": 15_000})).await;
    let (_, answer) = client.until("context.cancelled").await;
    assert_eq!((&answer["late"], &answer["played"]), (&json!(false), &json!(15_000)));
    assert!(LONG.starts_with(answer["heard"]["text"].as_str().unwrap()));
    house.until_idle().await;

    // The next turn is all that is heard from now on.
    client.send(json!({"type": "context.open", "ctx": "t2"})).await;
    client.send(json!({"type": "text", "ctx": "t2", "seq": 0, "text": "Sure.", "end": true})).await;
    let (before, _) = client.until("context.done").await;
    let stale = before.iter().filter(|s| matches!(s, Seen::Audio { handle: 1, .. })).count();
    let fresh = before.iter().filter(|s| matches!(s, Seen::Audio { handle: 2, .. })).count();
    assert!(stale == 0 && fresh > 0, "{stale} stale, {fresh} fresh");

    // A late cancel is answered, and a client that just leaves costs nothing either.
    client.send(json!({"type": "cancel", "ctx": "t2"})).await;
    assert_eq!(client.until("context.cancelled").await.1["late"], true);
    client.send(json!({"type": "context.open", "ctx": "t3"})).await;
    client.send(json!({"type": "text", "ctx": "t3", "seq": 0, "text": LONG})).await;
    client.packets(1).await;
    drop(client);
    house.until_idle().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_read_is_told_by_close_code() {
    let house = House::open().await;
    let mut client = Client::start(&house).await;
    client.send(json!({"type": "text", "ctx": "x", "seq": 0, "text": "a".repeat(70_000)})).await;
    let error = client.until("error").await.1;
    assert_eq!((&error["code"], &error["fatal"]), (&json!("message_too_big"), &json!(true)));
    assert!(matches!(client.next().await, Seen::Close(1009)));

    let mut client = Client::start(&house).await;
    client.send(json!({"type": "session.end"})).await;
    assert_eq!(client.until("session.closing").await.1["reason"], "client");
    assert!(matches!(client.next().await, Seen::Close(1000)));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_goes_down_lets_what_was_begun_be_heard() {
    let mut house = House::open().await;
    let mut speaking = Client::start(&house).await;
    let mut idle = Client::start(&house).await;
    speaking.send(json!({"type": "context.open", "ctx": "t1"})).await;
    let text = json!({"type": "text", "ctx": "t1", "seq": 0, "text": "Good night.", "end": true});
    speaking.send(text).await;
    speaking.until("context.opened").await;
    house.shutdown.take().unwrap().send(()).unwrap();
    idle.until("session.closing").await;
    assert_eq!(idle.until("error").await.1["code"], "shutting_down");
    assert!(matches!(idle.next().await, Seen::Close(1012)));
    let (before, done) = speaking.until("context.done").await;
    let packets = before.iter().filter(|s| matches!(s, Seen::Audio { .. })).count() as u64;
    assert!(packets * 960 >= done["samples"].as_u64().unwrap());
    assert_eq!(speaking.until("error").await.1["code"], "shutting_down");
    assert!(matches!(speaking.next().await, Seen::Close(1012)));
    drop((speaking, idle));
    tokio::time::timeout(PATIENCE, &mut house.served).await.unwrap().unwrap().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn plain_requests_are_answered() {
    let house = House::open().await;
    assert_eq!(house.get("/healthz").await, (200, b"ok".to_vec()));
    let json = |body: &[u8]| serde_json::from_slice::<Value>(body).unwrap();
    let (_, voices) = house.get("/v1/voices").await;
    assert_eq!(json(&voices)["voices"][0]["category"], "premade");
    let (_, models) = house.get("/v1/models").await;
    assert_eq!(json(&models)["data"][0]["id"], "nano");
    let (status, body) = house.get("/v1/").await;
    assert_eq!((status, &json(&body)["error"]["type"]), (404, &json!("invalid_request_error")));
    assert_eq!(house.get("/v1/tts/stream").await.0, 400);
}

/// How packed files begin.
const GZIP: [u8; 2] = [0x1f, 0x8b];

/// The names in a text between `before` and a quotation mark.
fn names<'a>(text: &'a str, before: &'a str) -> impl Iterator<Item = &'a str> {
    text.split(before).skip(1).filter_map(|rest| rest.split('"').next())
}

#[tokio::test(flavor = "multi_thread")]
async fn the_demo_page_comes_whole_from_here_and_may_reach_nobody_else() {
    let house = House::open().await;
    let ask = async |path: &str| house.answer(&format!("GET {path} HTTP/1.0\r\n\r\n")).await;
    for path in ["/", "/demo"] {
        let (head, _) = ask(path).await;
        assert!(head.starts_with("HTTP/1.0 307") && head.contains("location: /demo/"), "{head}");
    }
    assert_eq!(house.get("/demo/nothing.js").await.0, 404);

    // Whatever a file names is asked for in turn, so that none is missing in the binary. What the detector of speech asks
    // for by itself is named here.
    let fetched = [
        "vad.worklet.bundle.min.js",
        "ort-wasm-simd-threaded.mjs",
        "ort-wasm-simd-threaded.wasm",
        "silero_vad_v5.onnx",
    ];
    let mut files = vec![String::new()];
    files.extend(fetched.map(|name| format!("vendor/{name}")));
    let mut at = 0;
    while let Some(name) = files.get(at).cloned() {
        let (head, body) = ask(&format!("/demo/{name}")).await;
        let content_type = match name.rsplit('.').next() {
            Some("js" | "mjs") => "text/javascript",
            Some("wasm") => "application/wasm",
            Some("onnx") => "application/octet-stream",
            Some("css") => "text/css",
            Some("svg") => "image/svg+xml",
            _ => "text/html",
        };
        assert!(head.contains(" 200 OK"), "{name}: {head}");
        assert!(head.contains(&format!("content-type: {content_type}")), "{name}: {head}");
        assert!(head.contains("content-security-policy: default-src 'none'; script-src 'self' "));
        assert!(head.contains("cache-control: no-cache"), "{name}: {head}");
        let is_packed = head.contains("content-encoding: gzip");
        assert_eq!(is_packed, body.starts_with(&GZIP), "{name}: {head}");
        if is_packed || name.starts_with("vendor/") {
            at += 1;
            continue;
        }
        let body = String::from_utf8(body).unwrap();
        let links = ["href=\"", "src=\"", "from \"./", "new URL(\"./"];
        let named = links.iter().flat_map(|before| names(&body, before)).map(str::to_owned);
        files.extend(named.filter(|n| !files.contains(n)).collect::<BTreeSet<_>>());
        at += 1;
    }
    for name in
        ["app.js", "player.js", "decoder.js", "dovecote.js", "style.css", "vendor/vad.min.js"]
    {
        assert!(files.iter().any(|f| f == name), "nothing names {name}");
    }
}

/// Asks for a session that outlives its socket, and lets it speak until some packets have come. Returns where to resume.
async fn lose(house: &House, packets: u32) -> (Client, Value) {
    let mut client = house.connect().await;
    client.send(json!({"type": "session.start", "resume_window_ms": 15_000})).await;
    let ready = client.until("session.ready").await.1;
    client.send(json!({"type": "context.open", "ctx": "t1"})).await;
    let text = "Hello there, how can I help you today? I am listening to every word.";
    let message = json!({"type": "text", "ctx": "t1", "seq": 0, "text": text, "end": true});
    client.send(message).await;
    let opened = client.until("context.opened").await.1;
    client.packets(packets as usize).await;
    let place = json!({
        "session_id": ready["session_id"], "token": ready["token"],
        "last_n": opened["n"], "last": {"t1": packets - 1}
    });
    (client, place)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_lost_its_socket_goes_on_where_it_was() {
    let house = House::open().await;
    let (client, place) = lose(&house, 10).await;
    drop(client);
    let mut client = house.connect().await;
    client.send(json!({"type": "session.start", "resume": place})).await;
    let ready = client.until("session.ready").await.1;
    assert_eq!((&ready["resumed"], &ready["next_text_seq"]["t1"]), (&json!(true), &json!(1)));
    let (before, done) = client.until("context.done").await;
    let sequence = |seen: &Seen| if let Seen::Audio { seq, .. } = seen { Some(*seq) } else { None };
    let packets: Vec<u32> = before.iter().filter_map(sequence).collect();
    let last = done["seq_last"].as_u64().unwrap() as u32;
    assert_eq!(packets, (10..=last).collect::<Vec<_>>());
    client.send(json!({"type": "session.end"})).await;
    client.until("session.closing").await;
    house.until_idle().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_socket_takes_a_session_over() {
    let house = House::open().await;
    let (mut first, place) = lose(&house, 1).await;
    let mut stranger = house.connect().await;
    let mut guess = place.clone();
    guess["token"] = json!("r_0");
    stranger.send(json!({"type": "session.start", "resume": guess})).await;
    assert_eq!(stranger.until("session.ready").await.1["resumed"], false);
    assert_eq!(stranger.until("error").await.1["code"], "resume_unknown");
    let mut second = house.connect().await;
    second.send(json!({"type": "session.start", "resume": place})).await;
    assert_eq!(second.until("session.ready").await.1["resumed"], true);
    assert_eq!(first.until("error").await.1["code"], "replaced");
    assert!(matches!(first.next().await, Seen::Close(4409)));
    second.until("context.done").await;
    drop((stranger, second));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_closes_its_half_hears_what_it_has_ended() {
    let house = House::open().await;
    let mut client = Client::start(&house).await;
    for (ctx, end) in [("t1", true), ("t2", false)] {
        client.send(json!({"type": "context.open", "ctx": ctx})).await;
        let text = json!({"type": "text", "ctx": ctx, "seq": 0, "text": "Good night.", "end": end});
        client.send(text).await;
    }
    client.socket.get_mut().shutdown().await.unwrap();
    let cancelled = client.until("context.cancelled").await.1;
    assert_eq!((&cancelled["ctx"], &cancelled["reason"]), (&json!("t2"), &json!("session_end")));
    let done = client.until("context.done").await.1;
    assert_eq!(done["ctx"], "t1");
    client.until("session.closing").await;
    assert!(matches!(client.next().await, Seen::Close(1000)));
    house.until_idle().await;
}
