//! Every error code of `docs/protocol.md`, provoked on the wire: what the page says that it ends is what ends.

#![expect(clippy::unwrap_used, reason = "a test's helpers fail its test")]

mod house;

use std::sync::Arc;
use std::time::Duration;

use engine::stub::{self, Script, Timbre};
use gateway::auth::digest_of;
use gateway::config::{Gateway, Key};
use gateway::protocol::Catalogue;
use house::wire::Wire;
use house::{House, repository};
use serde_json::{Value, json};
use tokio::net::{TcpSocket, TcpStream};

/// A limit that a test waits for.
const SHORT: Duration = Duration::from_millis(400);
/// The seed of a context that the engine fails.
const FAILS: u64 = 13;
/// The key of the server that has one.
const KEY: &str = "correct-horse";
/// Messages that cannot be read and end a session.
const BAD_IN_ROW: usize = 16;
/// Listeners of an engine that has room for no more of them.
const CROWD: usize = 8;
/// What a second of sound of all of them together costs it, in seconds: no time is left for one more.
const CROWDED_RTF: f64 = 1.0;
/// Bytes that the system keeps for a client that reads nothing: few, so that the server has to.
const SMALL_BUFFER: u32 = 4_096;
/// The longest chunk that the stub speaks: 32 s.
const LONGEST: u64 = 768_000;
const TEXT: &str = "The train leaves at nine.";

/// A code, as the page has it.
#[derive(Debug)]
struct Row {
    code: String,
    ends: String,
    close: Option<u16>,
}

impl Row {
    /// The rows of the page's table, one for each code.
    fn all() -> Vec<Self> {
        let page = std::fs::read_to_string(repository("docs/protocol.md")).unwrap();
        let section = page.split("\n## Errors and closes\n").nth(1).unwrap();
        let table = section.lines().skip_while(|line| !line.starts_with('|')).skip(2);
        table.take_while(|line| line.starts_with('|')).flat_map(Self::of_line).collect()
    }

    fn of_line(line: &str) -> Vec<Self> {
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        let [codes, ends, close] = cells[..] else { panic!("no row of codes: {line}") };
        let close = close.parse().ok();
        // What stands in brackets is about a code.
        let codes: String = codes.split('(').map(|part| part.rsplit(')').next().unwrap()).collect();
        let names = codes.split('`').skip(1).step_by(2);
        names.map(|code| Self { code: code.to_owned(), ends: ends.to_owned(), close }).collect()
    }
}

/// A session in which the code comes next, and the server that must not go meanwhile.
struct Provoked {
    wire: Wire,
    _house: Option<House>,
}

/// A server with these settings, whose engine does this once it is ready.
async fn house(script: Script, settings: Gateway) -> House {
    let (engine, control) = stub::start(Script::default(), Timbre::Tones(None)).unwrap();
    let fails = Script { fail_chunk: Some(0), ..Script::default() };
    control.set_script(Some(FAILS), fails).unwrap();
    settings.check().unwrap();
    let engine = (Arc::new(engine), Catalogue::of_manifest(&stub::manifest()));
    let house = House::of(engine, settings).await;
    control.set_script(None, script).unwrap();
    house
}

async fn say(wire: &mut Wire, messages: impl IntoIterator<Item = Value>) {
    for message in messages {
        wire.send(&message.to_string()).await;
    }
}

fn start(fields: Value) -> Value {
    with(json!({"type": "session.start"}), fields)
}

fn open(ctx: &str, fields: Value) -> Value {
    with(json!({"type": "context.open", "ctx": ctx}), fields)
}

fn text(ctx: &str, seq: u64, text: &str) -> Value {
    json!({"type": "text", "ctx": ctx, "seq": seq, "text": text})
}

fn with(mut message: Value, fields: Value) -> Value {
    message.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    message
}

/// Limits that a few messages reach.
fn narrow() -> Gateway {
    let mut settings = Gateway::default();
    settings.limits.max_contexts = 2;
    settings.limits.max_pending_chars = 40;
    settings.limits.max_text_chars = 60;
    settings
}

/// What a session says that begins in the usual way and is then told of the code; none: it takes more than that.
fn misdeed(code: &str) -> Option<Vec<Value>> {
    let (begin, a) = (start(json!({})), open("a", json!({})));
    let end = json!({"type": "end", "ctx": "a"});
    let refused =
        |field: &str, value: Value| vec![start(json!({})), open("a", json!({field: value}))];
    Some(match code {
        "bad_message" => vec![begin, json!({"type": "text", "ctx": "a"})],
        "unknown_voice" => refused("voice", json!("nobody")),
        "unknown_model" => refused("model", json!("nothing")),
        "unknown_language" => refused("language", json!("klingon")),
        "unknown_style" => refused("style", json!("sung")),
        "bad_option" => refused("priority", json!(10)),
        "unsupported_audio" => vec![start(json!({"audio": {"codec": "mp3"}}))],
        "ctx_exists" => vec![begin, a.clone(), a],
        "ctx_unknown" => vec![begin, text("a", 0, TEXT)],
        "ctx_ended" => vec![begin, a, end, text("a", 0, TEXT)],
        "seq_gap" => vec![begin, a, text("a", 1, TEXT)],
        "too_many_contexts" => vec![begin, a, open("b", json!({})), open("c", json!({}))],
        "text_overflow" => vec![begin, a, text("a", 0, &TEXT.repeat(2))],
        "text_too_long" => vec![begin, a, text("a", 0, &TEXT.repeat(3))],
        "played_beyond_sent" => {
            vec![begin, a, json!({"type": "played", "ctx": "a", "pos": 1_000_000})]
        }
        "resume_unknown" => {
            vec![start(json!({"resume": {"session_id": "s_0", "token": "r_0", "last_n": 1}}))]
        }
        "ctx_idle" => vec![start(json!({"context_idle_ms": 1_000})), a],
        "idle_timeout" => vec![start(json!({"idle_timeout_ms": 1_000}))],
        "message_too_big" => vec![begin, text("a", 0, &TEXT.repeat(3_000))],
        "engine_failed" => vec![begin, open("a", json!({"seed": FAILS})), text("a", 0, TEXT), end],
        _ => return None,
    })
}

/// Does what the code is the answer to.
async fn provoke(plain: &House, code: &str) -> Provoked {
    if let Some(messages) = misdeed(code) {
        let mut wire = Wire::connect(plain).await;
        say(&mut wire, messages).await;
        return Provoked { wire, _house: None };
    }
    match code {
        "unauthorized" => unauthorized().await,
        "overloaded" => {
            let house = house(crowded(), Gateway::default()).await;
            let mut wire = crowd(&house).await;
            say(&mut wire, [open("more", json!({}))]).await;
            Provoked { wire, _house: Some(house) }
        }
        "slow_consumer" => slow_consumer().await,
        "start_timeout" => {
            let mut settings = Gateway::default();
            settings.limits.start = SHORT;
            let house = house(Script::default(), settings).await;
            Provoked { wire: Wire::connect(&house).await, _house: Some(house) }
        }
        "replaced" => replaced(plain).await,
        "shutting_down" => {
            let mut house = house(Script::default(), Gateway::default()).await;
            let mut wire = Wire::connect(&house).await;
            say(&mut wire, [start(json!({}))]).await;
            wire.until("session.ready").await;
            house.shut_down();
            Provoked { wire, _house: Some(house) }
        }
        "internal" => {
            let house = house(Script::default(), Gateway::default()).await;
            let mut wire = Wire::connect(&house).await;
            say(&mut wire, [start(json!({}))]).await;
            wire.until("session.ready").await;
            house.engine().stop();
            house.until("stopped", async || !house.engine().has_room()).await;
            say(&mut wire, [open("a", json!({}))]).await;
            Provoked { wire, _house: Some(house) }
        }
        _ => panic!("the page has a code {code:?} that nothing here provokes"),
    }
}

/// A session outlives its token.
async fn unauthorized() -> Provoked {
    let mut settings = Gateway::default();
    let key = Key {
        id: "tests".into(),
        sha256: digest_of(KEY),
        max_sessions: None,
        max_contexts: None,
        chars_per_minute: None,
        lexicon: None,
    };
    settings.auth.keys.push(key);
    let house = house(Script::default(), settings).await;
    let body = r#"{"ttl_s": 1}"#;
    let head = format!("POST /v1/tokens HTTP/1.0\r\nAuthorization: Bearer {KEY}\r\n");
    let request = format!("{head}Content-Length: {}\r\n\r\n{body}", body.len());
    let answer: Value = serde_json::from_slice(&house.answer(request).await.1).unwrap();
    let query = format!("?token={}", answer["token"].as_str().unwrap());
    let stream = TcpStream::connect(house.address()).await.unwrap();
    let mut wire = Wire::over(stream, &query).await;
    say(&mut wire, [start(json!({}))]).await;
    Provoked { wire, _house: Some(house) }
}

/// Sound comes faster than the client takes it, and the client takes none.
async fn slow_consumer() -> Provoked {
    let mut settings = Gateway::default();
    settings.limits.stall = SHORT;
    let quick = Script { rtf: Some(0.0), chunk_samples: vec![LONGEST; 8], ..Script::default() };
    let house = house(quick, settings).await;
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(SMALL_BUFFER).unwrap();
    let stream = socket.connect(house.address()).await.unwrap();
    let mut wire = Wire::over(stream, "").await;
    let sound = json!({"codec": "pcm_f32le"});
    let begin = start(json!({"audio": sound, "flow": {"max_ahead_ms": 600_000}}));
    let speak = (0..100).map(|n| text("a", n, TEXT));
    say(&mut wire, [begin, open("a", json!({}))].into_iter().chain(speak)).await;
    let contexts = async || house.engine().stats().contexts;
    house.until("speaking", async || contexts().await > 0).await;
    house.until("given up", async || contexts().await == 0).await;
    Provoked { wire, _house: Some(house) }
}

/// A second socket comes for a session that has one.
async fn replaced(house: &House) -> Provoked {
    let mut wire = Wire::connect(house).await;
    say(&mut wire, [start(json!({"resume_window_ms": 15_000}))]).await;
    let ready = wire.until("session.ready").await;
    let resume =
        json!({"session_id": ready["session_id"], "token": ready["token"], "last_n": ready["n"]});
    let mut second = Wire::connect(house).await;
    say(&mut second, [start(json!({"resume": resume}))]).await;
    assert_eq!(second.until("session.ready").await["resumed"], true);
    Provoked { wire, _house: None }
}

fn crowded() -> Script {
    Script { rtf: Some(CROWDED_RTF), chunk_samples: vec![LONGEST], ..Script::default() }
}

/// A session with as many listeners as the engine can supply.
async fn crowd(house: &House) -> Wire {
    let mut wire = Wire::connect(house).await;
    say(&mut wire, [start(json!({}))]).await;
    for n in 0..CROWD {
        let ctx = format!("t{n}");
        say(&mut wire, [open(&ctx, json!({})), text(&ctx, 0, TEXT)]).await;
    }
    for _ in 0..CROWD {
        wire.until("context.opened").await;
    }
    house.until("full", async || !house.engine().has_room()).await;
    wire
}

/// Does what ends the session of a code that otherwise ends nothing.
async fn provoke_end(plain: &House, code: &str) -> Provoked {
    let wrong = |fields| vec![start(fields)];
    let messages = match code {
        "bad_message" => vec![json!({"type": "text"}); BAD_IN_ROW],
        "unknown_voice" => wrong(json!({"defaults": {"voice": "nobody"}})),
        "unknown_model" => wrong(json!({"defaults": {"model": "nothing"}})),
        "unknown_language" => wrong(json!({"defaults": {"language": "klingon"}})),
        "unknown_style" => wrong(json!({"defaults": {"style": "sung"}})),
        "bad_option" => wrong(json!({"timestamps": "never"})),
        "overloaded" => {
            let house = house(crowded(), Gateway::default()).await;
            // They listen on while the next client comes.
            let listeners = crowd(&house).await;
            let mut wire = Wire::connect(&house).await;
            say(&mut wire, [start(json!({}))]).await;
            let error = wire.until("error").await;
            assert_eq!((&error["code"], &error["fatal"]), (&json!(code), &json!(true)));
            assert!(error["retry_after_ms"].as_u64().unwrap() > 0);
            drop(listeners);
            return Provoked { wire, _house: Some(house) };
        }
        _ => panic!("the page lets {code:?} end a session, and nothing here does"),
    };
    let mut wire = Wire::connect(plain).await;
    say(&mut wire, messages).await;
    Provoked { wire, _house: None }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_code_of_the_page_can_be_provoked_and_ends_what_the_page_says() {
    let rows = Row::all();
    assert!(rows.len() > 20, "the table was not found: {rows:?}");
    let plain = house(Script::default(), narrow()).await;
    futures_util::future::join_all(rows.into_iter().map(|row| holds(&plain, row))).await;
}

/// Whether the code comes, and ends what the page says.
async fn holds(plain: &House, Row { code, ends, close }: Row) {
    let mut provoked = provoke(plain, &code).await;
    let error = provoked.wire.until("error").await;
    assert_eq!(error["code"], code, "{error}");
    let ends_nothing = ends.starts_with("nothing");
    let ends_session = !ends_nothing && !ends.starts_with("the context");
    assert_eq!(error["fatal"], ends_session, "{error}");
    if ends_session {
        assert_eq!(Some(provoked.wire.close_code().await), close, "{code}");
        return;
    }
    if !ends_nothing {
        assert_eq!(provoked.wire.until("context.cancelled").await["ctx"], "a", "{code}");
    }
    provoked.wire.send(r#"{"type":"ping","t":7}"#).await;
    assert_eq!(provoked.wire.until("pong").await["t"], 7, "{code}");
    if let Some(close) = close {
        let mut provoked = provoke_end(plain, &code).await;
        assert_eq!(provoked.wire.close_code().await, close, "{code}");
    }
}
