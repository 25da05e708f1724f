//! Speech language models over HTTP on a real socket, with a tiny model beside the bundled voice: answers written and spoken,
//! whole and in chunks, refusals, and clients that leave. The model's weights are random: what it says means nothing, but the
//! same seed gives the same.

#![expect(clippy::unwrap_used, reason = "a test that cannot set itself up should stop")]

mod house;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use codecs::ogg::OggOpus;
use codecs::wav::Wav;
use gateway::config::Gateway;
use house::{House, status};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

const PATH: &str = "/v1/chat/completions";
const MODEL: &str = "bagpiper-tiny";
/// The longest that an answer of these tests may be, in seconds.
const SECONDS_MAX: f64 = 30.0;

async fn open(config: Gateway) -> House {
    House::of(house::start_all(&["voices/nano", "tests/fixtures/bundles/bagpiper"]), config).await
}

fn ask(extra: &Value) -> Value {
    let mut body = json!({"model": MODEL, "seed": 7, "max_tokens": 40,
        "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi."}]});
    for (name, value) in extra.as_object().unwrap() {
        body[name] = value.clone();
    }
    body
}

fn spoken(format: &str) -> Value {
    let audio = json!({"voice": "alloy", "format": format});
    // Text has 64 tokens at most: what is left is sound.
    ask(&json!({"modalities": ["text", "audio"], "audio": audio, "max_tokens": 104}))
}

async fn answered(house: &House, body: &Value) -> Value {
    let (head, answer) = house.post(PATH, body).await;
    assert_eq!(status(&head), 200, "{}", String::from_utf8_lossy(&answer));
    assert!(head.contains("content-type: application/json"), "{head}");
    serde_json::from_slice(&answer).unwrap()
}

/// The chunks of an answer, which ends as it should.
async fn chunks(house: &House, body: &Value) -> Vec<Value> {
    let (head, answer) = house.post(PATH, body).await;
    let text = String::from_utf8(answer).unwrap();
    assert!(head.contains("content-type: text/event-stream"), "{head}: {text}");
    let events = text.strip_suffix("data: [DONE]\n\n").unwrap().split_terminator("\n\n");
    let chunk = |event: &str| serde_json::from_str(event.strip_prefix("data: ").unwrap()).unwrap();
    events.map(chunk).collect()
}

fn message(answer: &Value) -> &Value {
    &answer["choices"][0]["message"]
}

fn sound(answer: &Value) -> Vec<u8> {
    STANDARD.decode(message(answer)["audio"]["data"].as_str().unwrap()).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_written_answer_is_the_same_in_one_object_and_in_chunks() {
    let house = open(Gateway::default()).await;
    let whole = answered(&house, &ask(&json!({}))).await;
    assert_eq!((&whole["object"], &whole["model"]), (&json!("chat.completion"), &json!(MODEL)));
    let content = message(&whole)["content"].as_str().unwrap();
    let usage = &whole["usage"];
    let number = |of: &Value, name: &str| of[name].as_u64().unwrap();
    assert!(number(usage, "prompt_tokens") > 0);
    let written = number(usage, "completion_tokens");
    assert!((1..=40).contains(&written));
    assert_eq!(number(usage, "total_tokens"), number(usage, "prompt_tokens") + written);
    assert_eq!(number(&usage["completion_tokens_details"], "audio_tokens"), 0);

    let options = json!({"stream": true, "stream_options": {"include_usage": true}});
    let chunks = chunks(&house, &ask(&options)).await;
    let delta = |chunk: &Value| chunk["choices"][0]["delta"]["content"].as_str().map(str::to_owned);
    assert_eq!(chunks.iter().filter_map(delta).collect::<String>(), content);
    let last = chunks.last().unwrap();
    assert_eq!((&last["choices"], &last["usage"]), (&json!([]), usage));
    let finish = chunks.iter().rev().find_map(|c| c["choices"][0]["finish_reason"].as_str());
    assert_eq!(finish, whole["choices"][0]["finish_reason"].as_str());
    house.until_idle().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_spoken_answer_is_the_same_sound_in_every_format_and_in_chunks() {
    let house = open(Gateway::default()).await;
    let pcm = answered(&house, &spoken("pcm16")).await;
    let samples = sound(&pcm);
    assert!(samples.len() > 2 * 480, "a frame at least");
    let audio = &message(&pcm)["audio"];
    let transcript = audio["transcript"].as_str().unwrap();
    assert!(audio["id"].as_str().unwrap().starts_with("audio_"));
    assert!(audio["expires_at"].as_u64() > pcm["created"].as_u64());
    assert_eq!(message(&pcm)["content"], Value::Null);
    assert!(pcm["usage"]["completion_tokens_details"]["audio_tokens"].as_u64() > Some(0));

    let heard = Wav::read(&sound(&answered(&house, &spoken("wav")).await)).unwrap();
    assert_eq!((heard.sample_rate, heard.samples.len()), (24_000, samples.len() / 2));
    let flac = sound(&answered(&house, &spoken("flac")).await);
    assert_eq!(codecs::flac::read(&flac, SECONDS_MAX).unwrap().samples, heard.samples);
    let opus = OggOpus::read(&sound(&answered(&house, &spoken("opus")).await)).unwrap();
    assert_eq!(opus.end, u64::from(opus.head.pre_skip) + samples.len() as u64);

    let mut streamed = spoken("pcm16");
    streamed["stream"] = json!(true);
    let chunks = chunks(&house, &streamed).await;
    let audio: Vec<&Value> = chunks.iter().map(|c| &c["choices"][0]["delta"]["audio"]).collect();
    let said = audio.iter().filter_map(|a| a["transcript"].as_str()).collect::<String>();
    assert_eq!(said, transcript);
    let pieces = audio.iter().filter_map(|a| a["data"].as_str());
    let pieces: Vec<Vec<u8>> = pieces.map(|data| STANDARD.decode(data).unwrap()).collect();
    assert!(pieces.iter().all(|piece| piece.len() <= 4_800), "a tenth of a second at a time");
    assert_eq!(pieces.concat(), samples);
    house.until_idle().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_limit_of_tokens_is_that_of_the_whole_answer() {
    let house = open(Gateway::default()).await;
    let mut has_sound = Vec::new();
    for most in [1, 20, 104] {
        let mut body = spoken("pcm16");
        body["max_tokens"] = json!(null);
        body["max_completion_tokens"] = json!(most);
        let answer = answered(&house, &body).await;
        let usage = &answer["usage"];
        let given = usage["completion_tokens"].as_u64().unwrap();
        assert!((1..=most).contains(&given), "{usage}");
        let details = &usage["completion_tokens_details"];
        let frames = details["audio_tokens"].as_u64().unwrap();
        assert_eq!(given, details["text_tokens"].as_u64().unwrap() + frames);
        // A frame is 20 ms, and none that was begun is lost.
        assert_eq!(sound(&answer).len() as u64, frames * 960);
        if given == most {
            assert_eq!(answer["choices"][0]["finish_reason"], "length");
        }
        has_sound.push(frames > 0);
    }
    assert_eq!(has_sound, [false, false, true], "text comes first");
    house.until_idle().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn sound_that_is_heard_is_a_part_of_a_question_within_what_a_model_hears() {
    let house = open(Gateway::default()).await;
    let question = |seconds: f64| {
        let samples = (0..(seconds * 24_000.0) as usize).map(|i| (i as f32 * 0.05).sin() * 0.3);
        let samples: Vec<f32> = samples.collect();
        let header = codecs::wav::header;
        let format = codecs::wav::SampleFormat::I16;
        let mut wav = header(24_000, format, &[], Some(samples.len() as u64));
        codecs::pcm::extend_i16_le(&mut wav, &samples);
        let sound = json!({"data": STANDARD.encode(wav), "format": "wav"});
        let content = json!([{"type": "text", "text": "What is this?"},
            {"type": "input_audio", "input_audio": sound}]);
        ask(&json!({"messages": [{"role": "user", "content": content}]}))
    };
    let answer = answered(&house, &question(1.0)).await;
    let details = &answer["usage"]["prompt_tokens_details"];
    assert_eq!(details["audio_tokens"], 13, "{details}");
    assert!(details["text_tokens"].as_u64() > Some(0));
    let (head, refused) = house.post(PATH, &question(10.5)).await;
    let refused: Value = serde_json::from_slice(&refused).unwrap();
    let error = &refused["error"];
    assert_eq!((status(&head), &error["code"]), (400, &json!("bad_value")), "{refused}");
    assert!(error["message"].as_str().unwrap().contains("longer than 10 s"), "{refused}");
    let (head, refused) = house.post(PATH, &question(0.0)).await;
    let refused: Value = serde_json::from_slice(&refused).unwrap();
    let error = &refused["error"];
    assert_eq!((status(&head), &error["code"]), (400, &json!("cannot_hear")), "{refused}");
    assert_eq!(error["param"], "messages");
    house.until_idle().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_is_named_in_a_later_request() {
    let house = open(Gateway::default()).await;
    let first = answered(&house, &spoken("pcm16")).await;
    let audio = &message(&first)["audio"];
    let mut messages = ask(&json!({}))["messages"].clone();
    let next = |earlier: Value| {
        let mut messages = messages.as_array_mut().unwrap().clone();
        messages.extend([earlier, json!({"role": "user", "content": "And then?"})]);
        ask(&json!({"messages": messages}))
    };
    let (mut next, said) = (next, audio["transcript"].clone());
    let by_name = next(json!({"role": "assistant", "audio": {"id": audio["id"]}}));
    let by_text = next(json!({"role": "assistant", "content": said}));
    let content = |answer: &Value| message(answer)["content"].clone();
    let (named, written) = (answered(&house, &by_name).await, answered(&house, &by_text).await);
    assert_eq!(content(&named), content(&written));
    assert_eq!(named["usage"], written["usage"]);
    let unknown = next(json!({"role": "assistant", "audio": {"id": "audio_x"}}));
    let (head, answer) = house.post(PATH, &unknown).await;
    let answer: Value = serde_json::from_slice(&answer).unwrap();
    assert_eq!((status(&head), &answer["error"]["param"]), (400, &json!("messages[2].audio.id")));
}

#[tokio::test(flavor = "multi_thread")]
async fn who_leaves_stops_the_work() {
    let house = open(Gateway::default()).await;
    let long = json!({"modalities": ["text", "audio"], "max_tokens": null});
    for streams in [true, false] {
        let mut body = ask(&long);
        body["stream"] = json!(streams);
        let before = house.engine().stats().endings;
        let mut stream = house.begin(PATH, &body).await;
        house.until("asked", async || house.engine().stats().endings.opened > before.opened).await;
        if streams {
            let mut some = [0; 64];
            stream.read_exact(&mut some).await.unwrap();
        }
        drop(stream);
        house.until_idle().await;
        let after = house.engine().stats().endings;
        assert_eq!(after.cancelled, before.cancelled + 1, "it was not said to its end");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_to_be_had_is_refused_as_clients_read_it() {
    let mut config = Gateway::default();
    config.chat.max_body_bytes = 2_000;
    let house = open(config).await;
    for (body, code, error, param) in [
        (ask(&json!({"model": "gpt-x"})), 404, "model_not_found", json!("model")),
        (ask(&json!({"n": 2})), 400, "unsupported_value", json!("n")),
        (ask(&json!({"messages": []})), 400, "bad_value", json!("messages")),
        (ask(&json!({"stream": 1})), 400, "bad_body", Value::Null),
        (ask(&json!({"user": "x".repeat(2_000)})), 413, "body_too_large", Value::Null),
    ] {
        let (head, answer) = house.post(PATH, &body).await;
        let answer: Value = serde_json::from_slice(&answer).unwrap();
        let told = &answer["error"];
        assert_eq!((status(&head), &told["code"], &told["param"]), (code, &json!(error), &param));
        assert_eq!(told["type"], "invalid_request_error");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn as_many_large_bodies_are_read_at_once_as_may_be() {
    let mut config = Gateway::default();
    config.chat.max_uploads = 1;
    config.server.max_body_bytes = 600;
    let house = open(config).await;
    let large = ask(&json!({"user": "x".repeat(1_000)}));
    let (mut waiting, body) =
        (TcpStream::connect(house.address()).await.unwrap(), large.to_string());
    let head = format!(
        "POST {PATH} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nExpect: 100-continue\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    waiting.write_all(head.as_bytes()).await.unwrap();
    // Said when the body is about to be read: its place is taken.
    let mut go_on = [0; 25];
    waiting.read_exact(&mut go_on).await.unwrap();
    assert_eq!(&go_on, b"HTTP/1.1 100 Continue\r\n\r\n");
    let (head, answer) = house.post(PATH, &large).await;
    let answer: Value = serde_json::from_slice(&answer).unwrap();
    assert_eq!(status(&head), 503, "{answer}");
    assert!(answer["error"]["message"].as_str().unwrap().contains("chat.max_uploads"), "{answer}");
    let small = ask(&json!({"max_tokens": 1}));
    assert_eq!(status(&house.post(PATH, &small).await.0), 200, "it needs no such place");
    waiting.write_all(body.as_bytes()).await.unwrap();
    assert!(!house::body(&mut waiting).await.is_empty());
    assert_eq!(status(&house.post(PATH, &large).await.0), 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn models_are_listed_and_speech_is_made_by_the_one_that_is_named() {
    let house = open(Gateway::default()).await;
    let (_, list) = house.answer("GET /v1/models HTTP/1.0\r\n\r\n").await;
    let list: Value = serde_json::from_slice(&list).unwrap();
    let names: Vec<&str> =
        list["data"].as_array().unwrap().iter().map(|m| m["id"].as_str().unwrap()).collect();
    assert_eq!(names, ["nano", MODEL]);
    for (id, expected) in [(MODEL, 200), ("gpt-x", 404)] {
        let (head, one) = house.answer(format!("GET /v1/models/{id} HTTP/1.0\r\n\r\n")).await;
        let one: Value = serde_json::from_slice(&one).unwrap();
        assert_eq!(status(&head), expected, "{one}");
        let told = if expected == 200 { &one["id"] } else { &one["error"]["code"] };
        assert!(told == MODEL || told == "model_not_found", "{one}");
    }
    let speech = async |model: &str| {
        let body =
            json!({"model": model, "input": "Hi.", "voice": "alloy", "response_format": "pcm"});
        let (head, sound) = house.post("/v1/audio/speech", &body).await;
        assert_eq!(status(&head), 200, "{}", String::from_utf8_lossy(&sound));
        sound
    };
    let (voice, model) = (speech("tts-1").await, speech(MODEL).await);
    assert!(!voice.is_empty() && !model.is_empty() && voice != model);
    house.until_idle().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_hears_an_answer_and_what_it_says() {
    let house = open(Gateway::default()).await;
    let mut socket =
        house.socket("/v1/tts/stream", &[("sec-websocket-protocol", "dovecote.v1")]).await;
    let audio = json!({"codec": "pcm_s16le"});
    socket.send(&json!({"type": "session.start", "audio": audio})).await;
    socket
        .send(&json!({"type": "context.open", "ctx": "a", "model": MODEL, "seed": 7,
            "messages": [{"role": "user", "content": "Hi."}]}))
        .await;
    let (mut text, mut frames, mut words) = (String::new(), 0, Vec::new());
    let done = loop {
        let message = match socket.next().await {
            tokio_tungstenite::tungstenite::Message::Text(text) => text,
            _ => {
                frames += 1;
                continue;
            }
        };
        let message: Value = serde_json::from_str(&message).unwrap();
        match message["type"].as_str().unwrap() {
            "text.delta" => text.push_str(message["text"].as_str().unwrap()),
            "text.done" => assert_eq!(message["text"], text),
            "commit" => words.extend(message["words"].as_array().unwrap().clone()),
            "context.done" => break message,
            "error" | "context.cancelled" => panic!("{message}"),
            _ => {}
        }
    };
    let chars = text.chars().count() as u64;
    assert!(frames > 0 && words.iter().all(|word| word[1].as_u64().unwrap() <= chars));
    assert_eq!(done["text_chars"].as_u64(), Some(chars));
    assert!(done["usage"]["audio_frames"].as_u64() > Some(0), "{done}");
    house.until_idle().await;
}
