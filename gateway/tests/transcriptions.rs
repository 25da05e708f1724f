//! Recordings that are written down over a real socket, by tiny models of random weights: what they write means nothing, but
//! the same recording gives the same, and every length, time, format and refusal is real.

#![expect(clippy::unwrap_used, reason = "a test that cannot set itself up should stop")]

mod house;

use std::ops::Range;

use codecs::ogg::{OggHead, OggWriter};
use codecs::opus::{Encoder, EncoderConfig};
use codecs::pauses;
use codecs::wav::{SampleFormat, header};
use gateway::config::Gateway;
use house::{House, form, post, status};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

const PATH: &str = "/v1/audio/transcriptions";
/// What it hears at once is 10 s.
const MODEL: &str = "bagpiper-tiny";
const DEAF: &str = "opuslm-tiny";
const RATE: u32 = 24_000;
const SECONDS_AT_ONCE: f64 = 10.0;
/// Times are told to the millisecond.
const ROUNDING_S: f64 = 1e-3;
/// Looks at an engine between which nothing begins, 10 ms apart, that say that nothing will: a piece is heard in less.
const STILL: u32 = 30;
/// What MP3 puts before and behind a sound, in seconds.
#[cfg(feature = "mp3")]
const MP3_PAD_S: f64 = 0.15;

async fn open(config: Gateway) -> House {
    House::of(
        house::start_all(&["tests/fixtures/bundles/opuslm", "tests/fixtures/bundles/bagpiper"]),
        config,
    )
    .await
}

/// Something that changes all the time, with silence at the given seconds.
fn sound(seconds: f64, silent: &[Range<f64>]) -> Vec<f32> {
    let sample = |i: usize| {
        let at = i as f64 / f64::from(RATE);
        let is_silent = silent.iter().any(|span| span.contains(&at));
        if is_silent {
            0.0
        } else {
            (0.4 * (at * 900.0 * (1.0 + 0.3 * (at * 0.7).sin())).sin()) as f32
        }
    };
    (0..(seconds * f64::from(RATE)) as usize).map(sample).collect()
}

fn wav(samples: &[f32]) -> Vec<u8> {
    let mut bytes = header(RATE, SampleFormat::I16, &[], Some(samples.len() as u64));
    codecs::pcm::extend_i16_le(&mut bytes, samples);
    bytes
}

fn flac(samples: &[f32]) -> Vec<u8> {
    let mut encoder = codecs::flac::Encoder::new(RATE, &[]).unwrap();
    let mut bytes = encoder.push(samples).unwrap();
    bytes.extend(encoder.finish().unwrap());
    bytes
}

fn ogg(samples: &[f32]) -> Vec<u8> {
    let mut encoder = Encoder::new(&EncoderConfig::default()).unwrap();
    let head = OggHead { pre_skip: encoder.pre_skip(), input_rate: RATE };
    let mut ogg = OggWriter::new(Vec::new(), 1, head, &[]).unwrap();
    for packet in encoder.push(samples).unwrap() {
        ogg.packet(packet).unwrap();
    }
    ogg.finish(encoder.finish().unwrap()).unwrap()
}

/// An answer, and the head before it.
async fn asked(house: &House, file: &[u8], fields: &[(&str, &str)]) -> (String, Vec<u8>) {
    let mut parts: Vec<(&str, &[u8])> = vec![("file", file)];
    if fields.iter().all(|(name, _)| *name != "model") {
        parts.push(("model", MODEL.as_bytes()));
    }
    parts.extend(fields.iter().map(|(name, value)| (*name, value.as_bytes())));
    house.answer(form(PATH, &parts)).await
}

async fn written(house: &House, file: &[u8], fields: &[(&str, &str)]) -> String {
    let (head, body) = asked(house, file, fields).await;
    let body = String::from_utf8(body).unwrap();
    assert_eq!(status(&head), 200, "{body}");
    body
}

async fn object(house: &House, file: &[u8], fields: &[(&str, &str)]) -> Value {
    serde_json::from_str(&written(house, file, fields).await).unwrap()
}

async fn events(house: &House, file: &[u8]) -> Vec<Value> {
    let stream = written(house, file, &[("stream", "true")]).await;
    let events = stream.split_terminator("\n\n");
    let event = |event: &str| serde_json::from_str(event.strip_prefix("data: ").unwrap()).unwrap();
    events.map(event).collect()
}

/// What is refused, as clients read it: status, code, part, message.
async fn refused(house: &House, request: impl AsRef<[u8]>) -> (u16, String, Value, String) {
    let (head, body) = house.answer(request).await;
    assert!(head.contains("content-type: application/json"), "{head}");
    let body: Value = serde_json::from_slice(&body).unwrap();
    let error = &body["error"];
    assert_eq!(error["type"], "invalid_request_error", "{body}");
    let string = |name: &str| error[name].as_str().unwrap().to_owned();
    (status(&head), string("code"), error["param"].clone(), string("message"))
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is no number"))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_recording_is_the_same_text_in_every_format_and_in_events() {
    let house = open(Gateway::default()).await;
    let file = wav(&sound(3.0, &[]));
    let json = object(&house, &file, &[]).await;
    let text = json["text"].as_str().unwrap();
    assert!(!text.is_empty() && text.trim() == text, "{text:?}");
    let usage = &json["usage"];
    assert_eq!(usage["type"], "tokens");
    assert!(number(&usage["input_token_details"]["audio_tokens"]) > 0.0);
    let sum = number(&usage["input_tokens"]) + number(&usage["output_tokens"]);
    assert_eq!(number(&usage["total_tokens"]), sum);

    let plain = written(&house, &file, &[("response_format", "text")]).await;
    assert_eq!(plain, format!("{text}\n"));
    let verbose =
        object(&house, &file, &[("response_format", "verbose_json"), ("language", "en")]).await;
    assert_eq!((&verbose["duration"], &verbose["language"]), (&json!(3.0), &json!("en")));
    assert_eq!(verbose["usage"], json!({"type": "duration", "seconds": 3.0}));
    let segments = verbose["segments"].as_array().unwrap();
    assert!(!segments.is_empty() && segments.iter().all(|s| number(&s["end"]) <= 3.0));
    let srt = written(&house, &file, &[("response_format", "srt")]).await;
    assert!(srt.starts_with("1\n00:00:00,"), "{srt}");
    let vtt = written(&house, &file, &[("response_format", "vtt")]).await;
    assert!(vtt.starts_with("WEBVTT\n\n00:00:00."), "{vtt}");

    let events = events(&house, &file).await;
    let deltas: String = events.iter().filter_map(|event| event["delta"].as_str()).collect();
    assert_eq!(deltas, text);
    let last = events.last().unwrap();
    assert_eq!(last["type"], "transcript.text.done");
    assert_eq!((&last["text"], &last["usage"]), (&json["text"], usage));
    house.until_idle().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_kind_of_file_is_heard() {
    let house = open(Gateway::default()).await;
    let samples = sound(1.5, &[]);
    let verbose = [("response_format", "verbose_json")];
    let whole = object(&house, &wav(&samples), &verbose).await;
    let lossless = object(&house, &flac(&samples), &verbose).await;
    assert_eq!(lossless, whole, "the same samples");
    let opus = object(&house, &ogg(&samples), &verbose).await;
    assert_eq!(opus["duration"], json!(1.5));
    #[cfg(feature = "mp3")]
    {
        let mut encoder =
            codecs::mp3::Encoder::new(&codecs::mp3::EncoderConfig::default()).unwrap();
        let mut bytes = encoder.push(&samples).unwrap();
        bytes.extend(encoder.finish().unwrap());
        let mp3 = number(&object(&house, &bytes, &verbose).await["duration"]);
        assert!((1.5..1.5 + MP3_PAD_S).contains(&mp3), "{mp3} s");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_recording_is_heard_in_pieces_whose_texts_and_times_are_told_in_order() {
    let samples = sound(27.0, &[7.5..8.0, 15.5..16.0]);
    let pieces = pauses::cut(&samples, RATE, SECONDS_AT_ONCE);
    let second = |at: usize| at as f64 / f64::from(RATE);
    assert_eq!(pieces.len(), 4);
    assert!((7.6..=7.9).contains(&second(pieces[0].end)), "{pieces:?}");
    assert!((15.6..=15.9).contains(&second(pieces[1].end)), "{pieces:?}");
    let file = wav(&samples);
    let house = open(Gateway::default()).await;
    // Each piece as a file of its own says what is to be said.
    let (mut texts, mut tokens) = (Vec::new(), 0.0);
    for piece in &pieces {
        let alone = object(&house, &wav(&samples[piece.clone()]), &[]).await;
        texts.push(alone["text"].as_str().unwrap().to_owned());
        tokens += number(&alone["usage"]["total_tokens"]);
    }
    texts.retain(|text| !text.is_empty());
    let whole = object(&house, &file, &[]).await;
    assert_eq!(whole["text"], texts.join(" "));
    assert_eq!(number(&whole["usage"]["total_tokens"]), tokens);
    let events = events(&house, &file).await;
    let deltas: String = events.iter().filter_map(|event| event["delta"].as_str()).collect();
    assert_eq!((&json!(deltas), &events.last().unwrap()["text"]), (&whole["text"], &whole["text"]));

    let verbose = object(&house, &file, &[("response_format", "verbose_json")]).await;
    assert_eq!(verbose["duration"], json!(27.0));
    let segments = verbose["segments"].as_array().unwrap();
    let times = segments.iter().map(|s| number(&s["start"])..number(&s["end"]));
    let times: Vec<Range<f64>> = times.collect();
    for piece in &pieces {
        let (start, end) = (second(piece.start), second(piece.end));
        let starts = times.iter().any(|time| (time.start - start).abs() <= ROUNDING_S);
        let ends = times.iter().any(|time| (time.end - end).abs() <= ROUNDING_S);
        assert!(starts && ends, "no segment is from {start} or to {end}: {times:?}");
    }
    assert!(times.windows(2).all(|two| two[0].end <= two[1].start + ROUNDING_S), "{times:?}");
    let last = *times.last().map(|time| &time.start).unwrap();
    let vtt = written(&house, &file, &[("response_format", "vtt")]).await;
    let told = format!("00:00:{last:06.3} -->");
    assert!(vtt.contains(&told), "{told} is not in {vtt}");
    house.until_idle().await;

    let mut one_by_one = Gateway::default();
    one_by_one.chat.pieces_at_once = 1;
    let house = open(one_by_one).await;
    assert_eq!(object(&house, &file, &[]).await, whole);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_silent_is_no_text_and_no_work() {
    let house = open(Gateway::default()).await;
    let before = house.engine().stats().endings.opened;
    let silence = wav(&sound(12.0, &[0.0..12.0]));
    assert_eq!(object(&house, &silence, &[]).await["text"], "");
    assert_eq!(written(&house, &silence, &[("response_format", "vtt")]).await, "WEBVTT\n\n");
    let events = events(&house, &silence).await;
    assert_eq!((events.len(), &events[0]["text"]), (1, &json!("")));
    assert_eq!(house.engine().stats().endings.opened, before, "nothing was asked of the model");
    // A silence of two pieces between two that say something.
    let samples = sound(32.0, &[6.0..27.0]);
    let verbose = object(&house, &wav(&samples), &[("response_format", "verbose_json")]).await;
    let is_quiet = |s: &Value| number(&s["end"]) <= 15.0 || number(&s["start"]) >= 20.0;
    assert!(verbose["segments"].as_array().unwrap().iter().all(is_quiet), "{verbose}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_told_of_a_recording_reaches_the_model() {
    let house = open(Gateway::default()).await;
    let file = wav(&sound(2.0, &[]));
    let tokens = async |fields: &[(&str, &str)]| {
        let (head, body) = asked(&house, &file, fields).await;
        assert!(!head.contains("x-dovecote-ignored"), "{head}");
        let body: Value = serde_json::from_slice(&body).unwrap();
        number(&body["usage"]["input_token_details"]["text_tokens"])
    };
    let plain = tokens(&[]).await;
    let (prompted, named) =
        (tokens(&[("prompt", "Ann, Bo.")]).await, tokens(&[("language", "de")]).await);
    assert!(prompted > plain && named > plain, "{plain}, {prompted}, {named}");
    // The first that hears is meant where none is named.
    let parts: [(&str, &[u8]); 1] = [("file", &file)];
    assert_eq!(status(&house.answer(form(PATH, &parts)).await.0), 200);

    let mut silent = Gateway::default();
    silent.chat.transcription_prompt = String::new();
    let house = open(silent).await;
    let body = object(&house, &file, &[]).await;
    assert!(number(&body["usage"]["input_token_details"]["text_tokens"]) < plain);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_that_is_told_its_task_by_a_symbol_is_told_nothing_else() {
    let engine = house::start_all(&["tests/fixtures/bundles/opuslm-hearing"]);
    let model = ("model", engine.1.models[0].id.clone());
    let house = House::of(engine, Gateway::default()).await;
    let (file, model) = (wav(&sound(3.0, &[])), (model.0, model.1.as_str()));
    let (head, plain) = asked(&house, &file, &[model]).await;
    assert_eq!(status(&head), 200, "{}", String::from_utf8_lossy(&plain));
    assert!(!head.contains("x-dovecote-ignored"), "{head}");
    let fields = [model, ("prompt", "Ann."), ("language", "de")];
    let (head, prompted) = asked(&house, &file, &fields).await;
    assert!(head.contains("x-dovecote-ignored: language, prompt"), "{head}");
    assert_eq!(prompted, plain);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_written_down_is_refused_as_clients_read_it() {
    let mut config = Gateway::default();
    config.chat.max_transcription_seconds = 2.0;
    config.chat.max_body_bytes = 150_000;
    let house = open(config).await;
    let good = wav(&sound(1.0, &[]));
    let long = wav(&sound(2.1, &[]));
    let with = |file: &[u8], name: &'static str, value: &'static str| {
        form(PATH, &[("file", file), ("model", MODEL.as_bytes()), (name, value.as_bytes())])
    };
    let of = |file: &[u8]| with(file, "user", "x");
    let torn = flac(&sound(1.0, &[]));
    let nothing: [(&str, &[u8]); 1] = [("model", MODEL.as_bytes())];
    let kind = "multipart/form-data; boundary=b";
    let cut = b"--b\r\nContent-Disposition: form-data; name=\"model\"\r\n\r\nbagp";
    let too_large = vec![0; 150_001];
    let file = json!("file");
    for (request, code, error, param, says) in [
        (of(&long), 400, "too_long", &file, "2 s (chat.max_transcription_seconds)"),
        (of(&wav(&sound(0.09, &[]))), 400, "too_short", &file, "0.1 s"),
        (of(b"no sound at all"), 400, "cannot_decode", &file, "not a WAV"),
        (of(b"\0\0\0\x20ftypM4A \0\0\0\0"), 400, "cannot_decode", &file, "M4A or MP4 is not read"),
        (of(&torn[..torn.len() / 2]), 400, "cannot_decode", &file, "file: "),
        (of(&too_large), 413, "too_large", &file, "more than 150000 bytes"),
        (form(PATH, &nothing), 400, "bad_value", &file, "missing"),
        (with(&good, "temperature", "7"), 400, "bad_value", &json!("temperature"), "0 to 1"),
        (
            with(&good, "response_format", "pdf"),
            400,
            "bad_value",
            &json!("response_format"),
            "json, text",
        ),
        (
            with(&good, "timestamp_granularities[]", "word"),
            400,
            "bad_value",
            &json!("timestamp_granularities"),
            "segment",
        ),
        (with(&good, "model", DEAF), 400, "bad_value", &json!("model"), MODEL),
        (with(&good, "model", "whisper-1"), 404, "model_not_found", &json!("model"), "not one of"),
        (post(PATH, kind, cut), 400, "bad_body", &json!("model"), ""),
        (post(PATH, "application/json", b"{}"), 400, "bad_body", &Value::Null, "multipart"),
    ] {
        let (status, code_told, param_told, message) = refused(&house, request).await;
        assert_eq!((status, code_told.as_str(), &param_told), (code, error, param), "{message}");
        assert!(message.contains(says), "{message}");
    }
    house.until_idle().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_leaves_stops_the_work() {
    let house = open(Gateway::default()).await;
    // Told to be a third as fast as it is: so ten minutes are a body that may be sent.
    let samples = sound(200.0, &[]);
    let mut file = header(8_000, SampleFormat::I16, &[], Some(samples.len() as u64));
    codecs::pcm::extend_i16_le(&mut file, &samples);
    let pieces = (3.0 * 200.0 / SECONDS_AT_ONCE) as u64;
    for streams in ["true", "false"] {
        let before = house.engine().stats().endings;
        let parts: [(&str, &[u8]); 3] =
            [("file", &file), ("model", MODEL.as_bytes()), ("stream", streams.as_bytes())];
        let mut stream = TcpStream::connect(house.address()).await.unwrap();
        stream.write_all(&form(PATH, &parts)).await.unwrap();
        house.until("asked", async || house.engine().stats().endings.opened > before.opened).await;
        if streams == "true" {
            stream.read_exact(&mut [0; 64]).await.unwrap();
        }
        drop(stream);
        // Between two pieces the engine holds nothing either.
        let (mut still, mut opened) = (0, 0);
        let is_over = async || {
            let stats = house.engine().stats();
            let is_still = stats.contexts == 0 && stats.endings.opened == opened;
            (still, opened) = (if is_still { still + 1 } else { 0 }, stats.endings.opened);
            still == STILL
        };
        house.until("over", is_over).await;
        let after = house.engine().stats().endings;
        assert!(after.opened - before.opened < pieces, "not all of it was heard");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_piece_is_an_answer_that_is_counted() {
    let house = open(Gateway::default()).await;
    let body = object(&house, &wav(&sound(15.0, &[])), &[]).await;
    let (_, page) = house.answer("GET /metrics HTTP/1.0\r\n\r\n").await;
    let page = String::from_utf8(page).unwrap();
    let total = |name: &str| -> f64 {
        let lines = page.lines().filter(|line| line.starts_with(name));
        lines.map(|line| line.rsplit(' ').next().unwrap().parse::<f64>().unwrap()).sum()
    };
    assert_eq!(total("dovecote_answers_total"), 2.0);
    let usage = &body["usage"];
    assert_eq!(total("dovecote_answer_prompt_tokens_total"), number(&usage["input_tokens"]));
    assert_eq!(total("dovecote_answer_tokens_total"), number(&usage["output_tokens"]));
}
