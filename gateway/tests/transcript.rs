//! The session of `docs/protocol.md`, played against a real server: the page's own lines are sent and expected, so that
//! page and server cannot drift apart. The stub engine speaks, since its lengths are told.

#![expect(clippy::unwrap_used, reason = "a test's helpers fail its test")]

mod house;

use std::sync::Arc;

use engine::stub::{self, Script, Timbre};
use gateway::config::Gateway;
use gateway::protocol::Catalogue;
use house::wire::Wire;
use house::{House, repository};
use serde_json::Value;
use tokio_tungstenite::tungstenite::Message;

/// How long the answers of the page are: 4.32 s.
const ANSWER_SAMPLES: u64 = 103_680;
/// What depends on the moment; only that it is there, and of the kind that the page shows.
const OF_THE_MOMENT: [&str; 8] =
    ["queue_ms", "first_audio_ms", "rtf", "generated", "sent", "dropped_ms", "kv_blocks", "ms"];
/// Where more stands than the page shows: fields of an object, items of a list, the rest of a name.
const MORE: &str = "...";
/// Samples of a packet of the page's session.
const PACKET_SAMPLES: u64 = 960;

/// A line of the page.
#[derive(Debug)]
enum Line {
    /// The client's message.
    Send(String),
    /// The server's message.
    Expect(Value),
    /// The header of a binary frame.
    Frame(Vec<u8>),
    /// Any number of binary frames.
    Frames,
    /// Whatever may have been on its way.
    Anything,
    Close(u16),
}

fn lines(page: &str) -> Vec<Line> {
    let section = page.split("\n## A session\n").nth(1).unwrap();
    let block = section.split("```").nth(1).unwrap();
    block.trim().lines().map(line).collect()
}

fn line(text: &str) -> Line {
    if let Some(code) = text.strip_prefix("close ") {
        return Line::Close(code.parse().unwrap());
    }
    match text.split_once(' ').unwrap() {
        ("→", message) => Line::Send(message.to_owned()),
        ("←", MORE) => Line::Anything,
        ("←", message) => Line::Expect(elided(message)),
        ("⇐", MORE) => Line::Frames,
        ("⇐", frame) => Line::Frame(header(frame.strip_suffix(" <packet>").unwrap())),
        _ => panic!("no line of a session: {text}"),
    }
}

/// JSON in which `...` may stand for more.
fn elided(message: &str) -> Value {
    let json = message.replace(",...}", ",\"...\":0}").replace(",...]", ",\"...\"]");
    serde_json::from_str(&json).unwrap_or_else(|e| panic!("{message}: {e}"))
}

fn header(digits: &str) -> Vec<u8> {
    let digits: Vec<u8> = digits.bytes().filter(|b| *b != b' ').collect();
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
    digits.chunks(2).map(byte).collect()
}

/// Where a message is not as the page has it; none: nowhere.
fn difference(page: &Value, real: &Value, path: &str) -> Option<String> {
    let differs = || Some(format!("{path}: {real} where the page has {page}"));
    match (page, real) {
        (Value::Object(ours), Value::Object(theirs)) => {
            let told = ours.keys().filter(|key| *key != MORE);
            let missing = told.clone().find(|key| !theirs.contains_key(*key));
            let is_open = ours.contains_key(MORE);
            let untold = theirs.keys().find(|key| !is_open && !ours.contains_key(*key));
            if let Some(key) = missing.or(untold) {
                return Some(format!("{path}.{key} is only on one side: {real}"));
            }
            told.filter(|key| !is_of_the_moment(key, &ours[*key], &theirs[*key]))
                .find_map(|key| difference(&ours[key], &theirs[key], &format!("{path}.{key}")))
        }
        (Value::Array(ours), Value::Array(theirs)) => {
            let shown = ours.strip_suffix(&[Value::from(MORE)]).unwrap_or(ours);
            let fits = shown.len() == theirs.len() || shown.len() < ours.len();
            if !fits || theirs.len() < shown.len() {
                return differs();
            }
            let pairs = shown.iter().zip(theirs).enumerate();
            pairs.map(|(i, (a, b))| difference(a, b, &format!("{path}[{i}]"))).find_map(|d| d)
        }
        (Value::String(ours), Value::String(theirs)) => {
            let fits = match ours.strip_suffix(MORE) {
                Some(start) => theirs.starts_with(start) && theirs.len() > start.len(),
                None => ours == theirs,
            };
            if fits { None } else { differs() }
        }
        _ if page == real => None,
        _ => differs(),
    }
}

fn is_of_the_moment(key: &str, page: &Value, real: &Value) -> bool {
    OF_THE_MOMENT.contains(&key) && page.is_number() && real.is_number()
}

/// What the server sent, with its place in the session.
struct Server {
    wire: Wire,
    /// Read, but not yet matched.
    ahead: Option<Message>,
    /// Number of the next message.
    n: u64,
    /// Context, number and position of the next frame.
    next: (u32, u32, u64),
}

impl Server {
    async fn connect(house: &House) -> Self {
        Self { wire: Wire::connect(house).await, ahead: None, n: 1, next: (0, 0, 0) }
    }

    /// What comes next, without taking it.
    async fn peek(&mut self) -> &Message {
        if self.ahead.is_none() {
            self.ahead = Some(self.wire.next().await);
        }
        self.ahead.as_ref().unwrap()
    }

    async fn take(&mut self) -> Message {
        self.peek().await;
        self.ahead.take().unwrap()
    }

    async fn text(&mut self) -> Value {
        let message = self.take().await;
        let Message::Text(text) = message else { panic!("no text message: {message:?}") };
        self.numbered(&text)
    }

    /// A message without its number, which is the next one.
    fn numbered(&mut self, text: &str) -> Value {
        let mut message: Value = serde_json::from_str(text).unwrap();
        assert_eq!(message.as_object_mut().unwrap().remove("n").unwrap(), self.n, "{text}");
        self.n += 1;
        message
    }

    /// A frame's header. Its number and position go on from the frame before.
    async fn frame(&mut self) -> Vec<u8> {
        let message = self.take().await;
        let Message::Binary(frame) = message else { panic!("no frame: {message:?}") };
        let handle = u32::from_be_bytes(frame[4..8].try_into().unwrap());
        let seq = u32::from_be_bytes(frame[8..12].try_into().unwrap());
        let pos = u64::from_be_bytes(frame[12..20].try_into().unwrap());
        if self.next.0 != handle {
            self.next = (handle, 0, 0);
        }
        assert_eq!((handle, seq, pos), self.next);
        assert!(frame.len() > 20, "a frame without a packet");
        self.next = (handle, seq + 1, pos + PACKET_SAMPLES);
        frame[..20].to_vec()
    }

    /// Takes frames up to the message, or to the frame, that the page shows next.
    async fn frames(&mut self, next: &Line) {
        while self.peek().await.is_binary() {
            if let Line::Frame(header) = next
                && self.peek().await.clone().into_data().starts_with(header)
            {
                return;
            }
            self.frame().await;
        }
    }

    /// Takes whatever comes up to the message that the page shows next.
    async fn anything(&mut self, next: &Line) {
        let Line::Expect(awaited) = next else { panic!("nothing shows where {MORE} ends") };
        loop {
            match self.peek().await.clone() {
                Message::Text(text) => {
                    let message: Value = serde_json::from_str(&text).unwrap();
                    if (&message["type"], &message["ctx"]) == (&awaited["type"], &awaited["ctx"]) {
                        return;
                    }
                    self.text().await;
                }
                _ => _ = self.frame().await,
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_session_on_the_page_is_what_happens() {
    let script = Script { samples: Some(ANSWER_SAMPLES), ..Script::default() };
    let (engine, _control) = stub::start(script, Timbre::Tones(None)).unwrap();
    let catalogue = Catalogue::of_manifest(&stub::manifest());
    let house = House::of((Arc::new(engine), catalogue), Gateway::default()).await;
    let mut server = Server::connect(&house).await;
    let page = lines(&std::fs::read_to_string(repository("docs/protocol.md")).unwrap());
    for (at, line) in page.iter().enumerate() {
        match line {
            Line::Send(message) => server.wire.send(message).await,
            Line::Expect(message) => {
                let real = server.text().await;
                let difference = difference(message, &real, "");
                assert_eq!(difference, None, "line {} of the session: {real}", at + 1);
            }
            Line::Frame(header) => {
                assert_eq!(server.frame().await, *header, "line {} of the session", at + 1);
            }
            Line::Frames => server.frames(&page[at + 1]).await,
            Line::Anything => server.anything(&page[at + 1]).await,
            Line::Close(code) => {
                let message = server.take().await;
                let Message::Close(Some(frame)) = message else { panic!("{message:?}") };
                assert_eq!(u16::from(frame.code), *code);
            }
        }
    }
    house.until_idle().await;
}

#[test]
fn what_differs_from_the_page_is_found_and_told() {
    let page = elided(r#"{"a":1,"name":"s_...","ms":3,"list":[[1,2],...],"in":{"x":true}}"#);
    let real = |json: &str| difference(&page, &serde_json::from_str(json).unwrap(), "");
    let same = r#"{"a":1,"name":"s_7","ms":9,"list":[[1,2],[3]],"in":{"x":true}}"#;
    assert_eq!(real(same), None);
    for (ours, theirs, says) in [
        (r#""a":1"#, r#""a":2"#, ".a: 2 where the page has 1"),
        ("s_7", "r_7", ".name"),
        (r#""ms":9"#, r#""ms":"9""#, ".ms"),
        ("[[1,2],[3]]", "[[1,3]]", ".list[0][1]"),
        ("[[1,2],[3]]", "[]", ".list"),
        (r#""x":true"#, r#""x":true,"y":1"#, ".in.y"),
        (r#""a":1,"#, "", ".a"),
    ] {
        let difference = real(&same.replace(ours, theirs)).unwrap();
        assert!(difference.contains(says), "{difference}");
    }
    let open = elided(r#"{"a":1,...}"#);
    assert_eq!(difference(&open, &serde_json::json!({"a": 1, "b": 2}), ""), None);
}
