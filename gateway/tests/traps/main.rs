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

mod contexts;
mod door;
#[path = "../house/mod.rs"]
mod house;
mod sound;
mod text;

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
