//! What servers trip over that speak other vendors' protocols: each on the wire, over real sockets, with the stub engine.
//!
//! | trap | what | where |
//! |---|---|---|
//! | T1 | ElevenLabs' answers name contexts otherwise than its clients do | `a_context_is_named_in_both_spellings` |
//! | T2 | an end comes behind an error too | `who_waits_for_an_end_gets_it_behind_an_error` |
//! | T3 | times of the message, or of the context | `characters_are_timed_as_the_address_says` |
//! | T4 | sentences without a space between them | `sentences_are_parted_and_tokens_are_not` |
//! | T5 | an empty text is an end here and a sign of life there | `an_empty_text_ends_a_stream_and_no_context` |
//! | T6 | an interruption is told from an end by what came before | `a_close_is_an_end_or_an_interruption` |
//! | T7 | what is not there is closed | `closing_what_is_not_there_is_nothing` |
//! | T8 | a whole turn in one read | `a_turn_in_one_burst_is_spoken` |
//! | T9 | a socket that is gone is a cancel | `whoever_leaves_is_spoken_to_no_more`; over HTTP in `speech.rs` |
//! | T10 | contexts that drain take no place | `a_context_that_drains_takes_no_place` |
//! | T11 | refusals at the door | `the_door_refuses_in_the_vendors_words`, `a_full_engine_is_told_at_the_door` |
//! | T12 | what is not known is ignored, and never said | `what_is_not_known_is_ignored_and_never_said` |
//! | T13 | null in the place of an object | `null_is_nothing` |
//! | T14 | small messages, a page of Ogg each | `messages_are_small` |
//! | T15 | pings are answered, compression is declined | `pings_are_answered_and_compression_is_declined` |
//! | T16 | nothing old behind a cancel | `nothing_old_comes_behind_a_cancel` |
//! | T17 | single words are no texts | `single_words_are_spoken_as_one_text` |
//! | T18 | MP3 where nothing else is asked for | `sound_that_nobody_named_is_an_mp3`; whole files in `elevenlabs.rs` |

#![expect(clippy::unwrap_used, reason = "a test's helpers fail its test")]

mod house;

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use engine::stub::{self, Control, Script, Timbre};
use gateway::auth::digest_of;
use gateway::config::{Gateway, Key};
use gateway::protocol::Catalogue;
use house::{House, Socket, status};
use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::Message;

const MULTI: &str = "/v1/text-to-speech/v1/multi-stream-input?output_format=pcm_24000";
const AUTO: &str =
    "/v1/text-to-speech/v1/multi-stream-input?output_format=pcm_24000&auto_mode=true";
const LIVEKIT_MULTI: &str =
    "/x/livekit/v1/text-to-speech/v1/multi-stream-input?output_format=pcm_24000&auto_mode=true";
const CARTESIA: &str = "/tts/websocket?cartesia_version=2025-04-16";
const DEEPGRAM: &str = "/v1/speak?encoding=linear16&sample_rate=24000";
const INFERENCE: &str = "/v1/tts?model=cartesia%2Fsonic-3";
/// So many bytes are a tenth of a second of 16 bits at 24 kHz.
const TENTH_BYTES: usize = 4_800;
/// 20 ms for each of its characters: 6.3 s.
const LONG: &str = "The quick brown fox jumps over the lazy dog while the old clock on the wall \
    keeps ticking. Nobody in the house seems to notice that the evening has come, and the lights \
    are still off. A little later the door opens and the children come home with wet shoes, and \
    then somebody at last puts on the kettle. It is late.";
/// At this speed a turn can be interrupted, and is over before anybody's patience is.
const SLOW: &str = r#"{"rtf": 0.3}"#;
/// So many of these at once are as much as the engine can supply, and they last long enough for a test.
const CROWDED: &str = r#"{"rtf": 1.0, "chunk_samples": [768000]}"#;
const CROWD: usize = 8;
const FAST: &str = r#"{"rtf": 0}"#;

/// A server of a stub engine of its own, and what its engine was told.
async fn house(script: &str, config: Gateway) -> (House, Control) {
    let read = |script: &str| serde_json::from_str::<Script>(script).unwrap();
    let (engine, control) = stub::start(read(FAST), Timbre::Tones(None)).unwrap();
    let engine = (Arc::new(engine), Catalogue::of_manifest(&stub::manifest()));
    let house = House::of(engine, config).await;
    // Only now, so that the warm-up is over at once.
    control.set_script(None, read(script)).unwrap();
    (house, control)
}

/// What the engine spoke of each context behind the warm-up, chunk by chunk.
fn spoken(control: &Control) -> Vec<Vec<String>> {
    let chunks = |report: stub::ContextReport| {
        report.chunks.into_iter().map(|chunk| chunk.text.trim().to_owned()).collect()
    };
    control.contexts().into_iter().skip(1).map(chunks).collect()
}

fn bytes(message: &Value) -> Vec<u8> {
    let data = message["audio"].as_str().or(message["data"].as_str()).unwrap_or_default();
    STANDARD.decode(data).unwrap()
}

fn sound(heard: &[Value]) -> Vec<u8> {
    heard.iter().flat_map(bytes).collect()
}

/// Everything up to the first message for which something holds, and that one.
async fn until(socket: &mut Socket, holds: impl Fn(&Value) -> bool) -> Vec<Value> {
    let mut heard = Vec::new();
    loop {
        let message = socket.json().await;
        let is_last = holds(&message);
        heard.push(message);
        if is_last {
            return heard;
        }
    }
}

fn is_final(message: &Value) -> bool {
    message["isFinal"] == true
}

fn is(kind: &str) -> impl Fn(&Value) -> bool {
    move |message| message["type"] == kind
}

fn text(name: &str, text: &str) -> Value {
    json!({"text": text, "context_id": name})
}

fn flush(name: &str) -> Value {
    json!({"text": "", "context_id": name, "flush": true})
}

fn close(name: &str) -> Value {
    json!({"context_id": name, "close_context": true})
}

fn generate(name: &str, transcript: &str, goes_on: bool) -> Value {
    json!({"context_id": name, "transcript": transcript, "continue": goes_on})
}

/// A turn of ElevenLabs', to its end.
async fn turn(socket: &mut Socket, name: &str, said: &str) -> Vec<Value> {
    for message in [text(name, said), flush(name), close(name)] {
        socket.send(&message).await;
    }
    until(socket, is_final).await
}

/// A key that may have one session.
fn closed() -> Gateway {
    let mut config = Gateway::default();
    config.auth.keys.push(Key {
        id: "agent".into(),
        sha256: digest_of("opens"),
        max_sessions: Some(1),
        max_contexts: None,
        chars_per_minute: None,
        lexicon: None,
    });
    config
}

#[tokio::test(flavor = "multi_thread")]
async fn a_context_is_named_in_both_spellings() {
    let (house, _control) = house(FAST, Gateway::default()).await;
    let mut socket = house.socket(MULTI, &[]).await;
    let heard = turn(&mut socket, "a", "Hello there. ").await;
    assert!(heard.len() > 1);
    for message in &heard {
        assert_eq!((&message["contextId"], &message["context_id"]), (&json!("a"), &json!("a")));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn who_waits_for_an_end_gets_it_behind_an_error() {
    let mut config = Gateway::default();
    config.foreign.takes_unknown_voices = false;
    let (house, _control) = house(FAST, config).await;

    let nobody = MULTI.replace("/v1/multi", "/nobody/multi");
    let mut socket = house.socket(&nobody, &[]).await;
    socket.send(&text("a", "Hello. ")).await;
    let heard = until(&mut socket, is_final).await;
    assert_eq!((heard.len(), &heard[0]["error"]), (2, &json!("unknown_voice")));

    let mut socket = house.socket(CARTESIA, &[]).await;
    let mut message = generate("a", "Hello. ", true);
    message["voice"] = json!({"mode": "id", "id": "nobody"});
    socket.send(&message).await;
    let error = socket.json().await;
    assert_eq!((&error["type"], &error["done"]), (&json!("error"), &json!(true)));
    assert_eq!(
        (&error["context_id"], &error["error_code"]),
        (&json!("a"), &json!("unknown_voice"))
    );

    let mut socket = house.socket(&format!("{DEEPGRAM}&model=nobody"), &[]).await;
    assert_eq!(socket.json().await["type"], "Metadata");
    socket.send(&json!({"type": "Speak", "text": "Hello. "})).await;
    let heard = until(&mut socket, is("Flushed")).await;
    assert_eq!((heard.len(), &heard[0]["type"]), (2, &json!("Error")));

    let mut socket = house.socket(INFERENCE, &[]).await;
    socket.send(&json!({"type": "session.create", "voice": "nobody"})).await;
    assert_eq!(socket.json().await["type"], "session.created");
    socket.send(&json!({"type": "input_transcript", "transcript": "Hello. "})).await;
    let heard = until(&mut socket, is("done")).await;
    assert_eq!((heard.len(), &heard[0]["type"]), (2, &json!("error")));
}

#[tokio::test(flavor = "multi_thread")]
async fn characters_are_timed_as_the_address_says() {
    let (house, _control) = house(FAST, Gateway::default()).await;
    let mut ends = Vec::new();
    for (path, adds_up) in [(AUTO, true), (LIVEKIT_MULTI, false)] {
        let mut socket = house.socket(path, &[]).await;
        let heard = turn(&mut socket, "a", LONG).await;
        let (mut base, mut all) = (0, Vec::new());
        for alignment in heard.iter().map(|m| &m["alignment"]).filter(|a| a.is_object()) {
            let list = |field: &str| -> Vec<u64> {
                serde_json::from_value(alignment[field].clone()).unwrap()
            };
            let (starts, lengths) = (list("charStartTimesMs"), list("charDurationsMs"));
            let chars = alignment["chars"].as_array().unwrap().len();
            assert_eq!((starts.len(), lengths.len()), (chars, chars));
            let told = starts.iter().zip(&lengths).map(|(start, length)| base + start + length);
            all.extend(told);
            base += if adds_up { starts[chars - 1] + lengths[chars - 1] } else { 0 };
        }
        assert!(all.is_sorted() && all.len() == LONG.chars().count(), "{path}: {all:?}");
        ends.push(all);
    }
    // Times inside are estimates, by what was known when a commit told them. Where the last character ends is not.
    assert_eq!(ends[0].last(), ends[1].last(), "the same end, told in two ways");
}

#[tokio::test(flavor = "multi_thread")]
async fn sentences_are_parted_and_tokens_are_not() {
    let (house, _control) = house(FAST, Gateway::default()).await;
    let joined = async |path: &str, pieces: [&str; 2]| {
        let mut socket = house.socket(path, &[]).await;
        for piece in pieces {
            socket.send(&text("a", piece)).await;
        }
        socket.send(&flush("a")).await;
        socket.send(&close("a")).await;
        let heard = until(&mut socket, is_final).await;
        let chars = heard.iter().filter_map(|m| m["alignment"]["chars"].as_array()).flatten();
        chars.filter_map(Value::as_str).collect::<String>()
    };
    assert_eq!(joined(AUTO, ["Yes.", "I see."]).await, "Yes. I see.");
    assert_eq!(joined(MULTI, ["It is v1.", "2 now."]).await, "It is v1.2 now.");

    let words = async |pieces: [&str; 2], more: Value| {
        let mut socket = house.socket(CARTESIA, &[]).await;
        for (piece, goes_on) in pieces.into_iter().zip([true, false]) {
            let mut message = generate("a", piece, goes_on);
            message["add_timestamps"] = json!(true);
            message.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            socket.send(&message).await;
        }
        let heard = until(&mut socket, is("done")).await;
        let words = heard.iter().filter_map(|m| m["word_timestamps"]["words"].as_array()).flatten();
        words.filter_map(Value::as_str).map(str::to_owned).collect::<Vec<_>>()
    };
    let whole = json!({"max_buffer_delay_ms": 0});
    assert_eq!(words(["Yes.", "I see."], whole).await, ["Yes.", "I", "see."]);
    assert_eq!(words(["v1.", "2 now."], json!({})).await, ["v1.2", "now."]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_empty_text_ends_a_stream_and_no_context() {
    let (house, control) = house(FAST, Gateway::default()).await;
    let mut socket = house.socket(MULTI, &[]).await;
    socket.send(&json!({"text": ""})).await;
    for said in ["", " ", "Hello there. ", "", "And more. "] {
        socket.send(&text("a", said)).await;
    }
    socket.send(&flush("a")).await;
    socket.send(&close("a")).await;
    until(&mut socket, is_final).await;
    assert_eq!(spoken(&control).concat().join(" "), "Hello there. And more.");

    let path = "/v1/text-to-speech/v1/stream-input?output_format=pcm_24000";
    let mut socket = house.socket(path, &[]).await;
    for said in [" ", "Good ", "bye. ", ""] {
        socket.send(&json!({"text": said})).await;
    }
    until(&mut socket, is_final).await;
    assert_eq!(spoken(&control).last().unwrap().join(" "), "Good bye.");
    match socket.next().await {
        Message::Close(Some(frame)) => assert_eq!(u16::from(frame.code), 1_000),
        other => panic!("{other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_close_is_an_end_or_an_interruption() {
    let (house, _control) = house(SLOW, Gateway::default()).await;
    let whole = LONG.chars().count() * 20 * 48;
    let phrase = json!({"text": LONG, "context_id": "a", "flush": true});
    // What is said before the close, and whether all is heard then; a second close comes behind the first sound.
    let cases: [(&str, Vec<Value>, bool, bool); 5] = [
        (MULTI, vec![text("a", LONG), flush("a")], false, true),
        (MULTI, vec![text("a", LONG)], false, false),
        (MULTI, vec![text("a", LONG), flush("a")], true, false),
        (AUTO, vec![phrase.clone()], false, true),
        (LIVEKIT_MULTI, vec![phrase], false, false),
    ];
    for (path, said, twice, is_whole) in cases {
        let mut socket = house.socket(path, &[]).await;
        for message in &said {
            socket.send(message).await;
        }
        let mut heard = Vec::new();
        if !is_whole && !twice {
            heard.extend(until(&mut socket, |m| m["audio"].is_string()).await);
        }
        socket.send(&close("a")).await;
        if twice {
            heard.extend(until(&mut socket, |m| m["audio"].is_string()).await);
            socket.send(&close("a")).await;
        }
        heard.extend(until(&mut socket, is_final).await);
        let bytes = sound(&heard).len();
        assert_eq!(bytes >= whole, is_whole, "{path} {said:?}: {bytes} of {whole}");
        house.until_idle().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn closing_what_is_not_there_is_nothing() {
    let (house, _control) = house(FAST, Gateway::default()).await;
    let mut socket = house.socket(MULTI, &[]).await;
    socket.send(&close("never")).await;
    turn(&mut socket, "a", "Hello there. ").await;
    socket.send(&close("a")).await;
    let heard = turn(&mut socket, "b", "And again. ").await;
    assert!(heard.iter().all(|m| m["contextId"] == "b"), "{heard:?}");

    let mut socket = house.socket(CARTESIA, &[]).await;
    socket.send(&json!({"context_id": "never", "cancel": true})).await;
    socket.send(&generate("a", "Hello there. ", false)).await;
    let heard = until(&mut socket, is("done")).await;
    assert!(heard.iter().all(|m| m["context_id"] == "a"), "{heard:?}");

    let mut socket = house.socket(DEEPGRAM, &[]).await;
    assert_eq!(socket.json().await["type"], "Metadata");
    socket.send(&json!({"type": "Clear"})).await;
    assert_eq!(socket.json().await["type"], "Cleared");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_in_one_burst_is_spoken() {
    let (house, control) = house(FAST, Gateway::default()).await;
    let mut socket = house.socket(LIVEKIT_MULTI, &[]).await;
    let phrase = json!({"text": "Yes, of course. ", "context_id": "a", "flush": true});
    socket.send_together(&[text("a", " "), phrase, flush("a"), close("a")]).await;
    let heard = until(&mut socket, is_final).await;
    assert_eq!(spoken(&control), [["Yes, of course."]]);
    let made = control.contexts().last().unwrap().samples as usize;
    assert_eq!(sound(&heard).len(), 2 * made);
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_leaves_is_spoken_to_no_more() {
    let (house, _control) = house(SLOW, Gateway::default()).await;
    // Over a minute, and no more than some seconds are made ahead: nobody waits for its end.
    let story = LONG.repeat(12);
    let turns = [
        (MULTI, vec![text("a", &story), flush("a"), close("a")]),
        (CARTESIA, vec![generate("a", &story, false)]),
        (DEEPGRAM, vec![json!({"type": "Speak", "text": story}), json!({"type": "Flush"})]),
        (
            INFERENCE,
            vec![
                json!({"type": "session.create"}),
                json!({"type": "input_transcript", "transcript": story}),
                json!({"type": "session.flush"}),
            ],
        ),
    ];
    for (path, messages) in turns {
        for says_goodbye in [true, false] {
            let mut socket = house.socket(path, &[]).await;
            for message in &messages {
                socket.send(message).await;
            }
            let busy = async || house.engine().stats().contexts > 0;
            house.until("busy", busy).await;
            match says_goodbye {
                true => socket.close().await,
                false => drop(socket),
            }
            house.until_idle().await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_context_that_drains_takes_no_place() {
    let mut config = Gateway::default();
    config.limits.max_contexts = 1;
    let (house, _control) = house(SLOW, config).await;
    let mut socket = house.socket(MULTI, &[]).await;
    for message in [text("a", LONG), flush("a"), close("a"), text("b", "Two. ")] {
        socket.send(&message).await;
    }
    socket.send(&text("c", "Three. ")).await;
    let heard = until(&mut socket, is_final).await;
    let refused = &heard[heard.len() - 2];
    let told = (&refused["error"], &refused["contextId"]);
    assert_eq!(told, (&json!("too_many_contexts"), &json!("c")), "{heard:?}");
    socket.send(&flush("b")).await;
    socket.send(&close("b")).await;
    let mut ended = Vec::new();
    for _ in 0..2 {
        let heard = until(&mut socket, |m| is_final(m) || m["error"].is_string()).await;
        ended.push(heard.last().unwrap()["contextId"].as_str().unwrap().to_owned());
    }
    ended.sort();
    assert_eq!(ended, ["a", "b"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_door_refuses_in_the_vendors_words() {
    let said = |body: &[u8]| serde_json::from_slice::<Value>(body).unwrap();
    let upgrade = |path: &str, header: &str| {
        format!(
            "GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close, Upgrade\r\nUpgrade: websocket\r\n\
             Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n{header}\r\n\r\n"
        )
    };
    let vendors = [
        (MULTI, "xi-api-key: ", "/detail/status"),
        (CARTESIA, "X-API-Key: ", "/error_code"),
        (DEEPGRAM, "Authorization: Token ", "/err_code"),
    ];
    for (path, header, code) in vendors {
        let (house, _control) = house(FAST, closed()).await;
        let (head, body) = house.answer(upgrade(path, &format!("{header}wrong"))).await;
        assert_eq!(
            (status(&head), said(&body).pointer(code)),
            (401, Some(&json!("unauthorized"))),
            "{path}"
        );
        let key = format!("{header}opens");
        let (name, value) = key.split_once(": ").unwrap();
        let _held = house.socket(path, &[(name, value)]).await;
        let (head, body) = house.answer(upgrade(path, &key)).await;
        assert_eq!(
            (status(&head), said(&body).pointer(code)),
            (429, Some(&json!("overloaded"))),
            "{path}"
        );
        assert!(head.contains("retry-after: "), "{head}");
    }
    let (house, _control) = house(FAST, closed()).await;
    let (head, body) = house.post("/v1/text-to-speech/v1", &json!({"text": "Hi."})).await;
    assert_eq!((status(&head), &said(&body)["detail"]["status"]), (401, &json!("unauthorized")));
    let (head, body) = house.post("/tts/bytes", &json!({"transcript": "Hi."})).await;
    assert_eq!((status(&head), &said(&body)["status_code"]), (401, &json!(401)));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_engine_is_told_at_the_door() {
    let (house, _control) = house(CROWDED, Gateway::default()).await;
    let mut socket = house.socket(CARTESIA, &[]).await;
    for n in 0..CROWD {
        socket.send(&generate(&format!("t{n}"), "The train leaves at nine. ", true)).await;
    }
    let full = async || !house.engine().has_room();
    house.until("full", full).await;
    for path in [MULTI, CARTESIA, DEEPGRAM, INFERENCE] {
        let head = house.handshake(path, &[]).await;
        assert_eq!(status(&head), 503, "{head}");
        assert!(head.contains("retry-after: 1"), "{head}");
    }
    // Whoever is inside already is told in the context.
    socket.send(&generate("b", "Hello. ", false)).await;
    let heard = until(&mut socket, is("error")).await;
    let error = &heard[heard.len() - 1];
    let told = (&error["status_code"], &error["context_id"], &error["error_code"]);
    assert_eq!(told, (&json!(503), &json!("b"), &json!("overloaded")));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_known_is_ignored_and_never_said() {
    let (house, _control) = house(FAST, Gateway::default()).await;
    let mut socket = house.socket(&format!("{CARTESIA}&unheard_of=1"), &[]).await;
    let mut message = generate("a", "Hello there. ", true);
    message["unheard_of"] = json!({"of": [1]});
    message["add_phoneme_timestamps"] = json!(true);
    message["add_timestamps"] = json!(true);
    socket.send(&message).await;
    message["flush"] = json!(true);
    message["transcript"] = json!("");
    socket.send(&message).await;
    // Longer than may be waited for ahead of the listener, so that the session parks the context.
    socket.send(&generate("a", &LONG.repeat(2), false)).await;
    let parked = async || house.engine().stats().parked > 0;
    house.until("parked", parked).await;
    let known = ["chunk", "timestamps", "flush_done", "done"];
    for message in until(&mut socket, is("done")).await {
        assert!(known.iter().any(|kind| message["type"] == *kind), "{message}");
        assert_eq!(message["context_id"], "a", "each says whose it is");
    }

    let mut socket = house.socket(&format!("{MULTI}&unheard_of=1"), &[]).await;
    socket.send(&json!({"text": "Hi. ", "context_id": "a", "unheard_of": [{}]})).await;
    socket.send(&flush("a")).await;
    socket.send(&close("a")).await;
    assert!(!sound(&until(&mut socket, is_final).await).is_empty());

    let mut socket = house.socket(&format!("{DEEPGRAM}&unheard_of=1"), &[]).await;
    assert_eq!(socket.json().await["type"], "Metadata");
    socket.send(&json!({"type": "Unheard", "of": 1})).await;
    assert_eq!(socket.json().await["type"], "Warning");

    let mut socket = house.socket(&format!("{INFERENCE}&unheard_of=1"), &[]).await;
    socket.send(&json!({"type": "session.unheard"})).await;
    socket.send(&json!({"type": "session.create", "unheard_of": {}})).await;
    assert_eq!(socket.json().await["type"], "session.created");
}

#[tokio::test(flavor = "multi_thread")]
async fn null_is_nothing() {
    let (house, _control) = house(FAST, Gateway::default()).await;
    let mut socket = house.socket(MULTI, &[]).await;
    let open = json!({"text": "Hi. ", "context_id": "a", "voice_settings": null,
        "generation_config": null, "pronunciation_dictionary_locators": null, "flush": null});
    socket.send(&open).await;
    socket.send(&flush("a")).await;
    socket.send(&close("a")).await;
    assert!(!sound(&until(&mut socket, is_final).await).is_empty());

    let mut socket = house.socket(CARTESIA, &[]).await;
    let message = json!({"context_id": "a", "transcript": "Hi. ", "continue": false,
        "language": null, "voice": null, "output_format": null, "generation_config": null,
        "add_timestamps": null, "max_buffer_delay_ms": null, "flush": null, "model_id": null});
    socket.send(&message).await;
    assert!(!sound(&until(&mut socket, is("done")).await).is_empty());

    let mut socket = house.socket(INFERENCE, &[]).await;
    socket
        .send(&json!({"type": "session.create", "voice": null, "language": null, "extra": null,
        "sample_rate": null, "encoding": null}))
        .await;
    socket
        .send(&json!({"type": "input_transcript", "transcript": "Hi. ",
        "generation_config": null, "extra": null}))
        .await;
    socket.send(&json!({"type": "session.flush"})).await;
    assert!(!sound(&until(&mut socket, is("done")).await).is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_are_small() {
    let (house, _control) = house(FAST, Gateway::default()).await;
    let small = |heard: &[Value]| {
        let lengths: Vec<usize> = heard.iter().map(|m| bytes(m).len()).collect();
        assert!(lengths.iter().all(|n| *n <= TENTH_BYTES && n % 2 == 0), "{lengths:?}");
        assert!(lengths.iter().sum::<usize>() > 10 * TENTH_BYTES);
    };
    let mut socket = house.socket(MULTI, &[]).await;
    small(&turn(&mut socket, "a", LONG).await);
    let mut socket = house.socket(CARTESIA, &[]).await;
    socket.send(&generate("a", LONG, false)).await;
    small(&until(&mut socket, is("done")).await);
    let mut socket = house.socket(INFERENCE, &[]).await;
    socket.send(&json!({"type": "input_transcript", "transcript": LONG})).await;
    socket.send(&json!({"type": "session.flush"})).await;
    small(&until(&mut socket, is("done")).await);
    let mut socket = house.socket(DEEPGRAM, &[]).await;
    socket.send(&json!({"type": "Speak", "text": LONG})).await;
    socket.send(&json!({"type": "Flush"})).await;
    loop {
        match socket.next().await {
            Message::Binary(sound) => assert!(sound.len() <= TENTH_BYTES && sound.len() % 2 == 0),
            Message::Text(text) if text.contains("Flushed") => break,
            Message::Text(_) => {}
            other => panic!("{other:?}"),
        }
    }

    let mut socket = house.socket(&MULTI.replace("pcm_24000", "opus_48000_32"), &[]).await;
    let heard = turn(&mut socket, "a", LONG).await;
    let pages = heard.iter().map(bytes).filter(|bytes| !bytes.is_empty());
    assert!(pages.clone().all(|bytes| bytes.starts_with(b"OggS")), "a message is whole pages");
    assert!(pages.count() >= 60, "6 s of sound in tenths of a second");
    let ogg = codecs::ogg::OggOpus::read(&sound(&heard)).unwrap();
    let samples = ogg.decode(24_000, 1_000_000).unwrap().len();
    assert!(samples >= 6 * 24_000, "{samples}");
}

#[tokio::test(flavor = "multi_thread")]
async fn pings_are_answered_and_compression_is_declined() {
    let (house, _control) = house(FAST, Gateway::default()).await;
    for path in [MULTI, CARTESIA, DEEPGRAM, INFERENCE] {
        let offer = ("Sec-WebSocket-Extensions", "permessage-deflate; client_max_window_bits");
        let head = house.handshake(path, &[offer]).await;
        assert_eq!(status(&head), 101);
        assert!(!head.to_ascii_lowercase().contains("sec-websocket-extensions"), "{head}");
        let mut socket = house.socket(path, &[]).await;
        socket.ping(b"still there").await;
        assert_eq!(&*socket.pong().await.1, b"still there", "{path}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_old_comes_behind_a_cancel() {
    let (house, _control) = house(SLOW, Gateway::default()).await;
    let mut socket = house.socket(CARTESIA, &[]).await;
    socket.send(&generate("old", LONG, true)).await;
    until(&mut socket, is("chunk")).await;
    socket.send(&json!({"context_id": "old", "cancel": true})).await;
    // The pong is written behind all that was on its way.
    socket.ping(b"").await;
    socket.pong().await;
    socket.send(&generate("new", "Sure. ", false)).await;
    let heard = until(&mut socket, is("done")).await;
    assert!(heard.iter().all(|m| m["context_id"] == "new"), "{heard:?}");

    let mut socket = house.socket(DEEPGRAM, &[]).await;
    socket.send(&json!({"type": "Speak", "text": LONG})).await;
    while !socket.next().await.is_binary() {}
    socket.send(&json!({"type": "Clear"})).await;
    let cleared = |m: &Message| m.to_text().is_ok_and(|text| text.contains("Cleared"));
    while !cleared(&socket.next().await) {}
    socket.ping(b"").await;
    let (before, _) = socket.pong().await;
    assert!(before.is_empty(), "{before:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn single_words_are_spoken_as_one_text() {
    let (house, control) = house(FAST, Gateway::default()).await;
    let words = ["I ", "am ", "here. "].map(|word| json!({"type": "Speak", "text": word}));
    let mut socket = house.socket(DEEPGRAM, &[]).await;
    assert_eq!(socket.json().await["type"], "Metadata");
    for word in &words {
        socket.send(word).await;
    }
    // Too little to begin with, so nothing was said before this.
    socket.send(&json!({"type": "Flush"})).await;
    let ended = |m: &Message| m.to_text().is_ok_and(|text| text.contains("Flushed"));
    while !ended(&socket.next().await) {}
    assert_eq!(spoken(&control), [["I am here."]]);
}

#[cfg(feature = "mp3")]
#[tokio::test(flavor = "multi_thread")]
async fn sound_that_nobody_named_is_an_mp3() {
    let (house, _control) = house(FAST, Gateway::default()).await;
    let path = "/v1/text-to-speech/v1/multi-stream-input";
    for (query, rate) in [("", 44_100), ("?output_format=mp3_22050_32", 22_050)] {
        let mut socket = house.socket(&format!("{path}{query}"), &[]).await;
        let heard = turn(&mut socket, "a", LONG).await;
        let file = codecs::mp3::read(&sound(&heard), 60.0).unwrap();
        assert_eq!(file.sample_rate, rate);
        assert!(file.samples.len() >= 6 * rate as usize, "{} samples", file.samples.len());
    }
    let (head, body) = house.post("/v1/text-to-speech/v1", &json!({"text": "Hello."})).await;
    assert!(head.contains("content-type: audio/mpeg"), "{head}");
    assert!(codecs::mp3::read(&body, 60.0).is_ok());
    let (head, _) = house.post("/v1/speak", &json!({"text": "Hello."})).await;
    assert!(head.contains("content-type: audio/mpeg"), "{head}");
}
