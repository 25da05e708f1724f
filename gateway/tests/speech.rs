//! Speech over HTTP on a real socket, with the bundled voice: every format, events, refusals, and clients that leave.

mod house;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use codecs::ogg::OggOpus;
use codecs::wav::Wav;
use gateway::config::Gateway;
use house::House;
use serde_json::{Value, json};
use tokio::io::AsyncReadExt;

const PATH: &str = "/v1/audio/speech";
/// The longest that a passage of these tests may be, in seconds.
const SECONDS_MAX: f64 = 30.0;
const LONG: &str = "The quick brown fox jumps over the lazy dog while the old clock on the wall \
    keeps ticking. Nobody in the house seems to notice that the evening has come, and the lights \
    are still off. A little later the door opens and the children come home with wet shoes.";

fn ask(format: &str) -> Value {
    json!({"model": "gpt-4o-mini-tts", "input": "Hello there.", "voice": "alloy",
        "response_format": format})
}

#[tokio::test(flavor = "multi_thread")]
async fn every_format_is_the_same_sound() {
    let house = House::open().await;
    let speak = async |format| {
        let (head, body) = house.post(PATH, &ask(format)).await;
        assert!(head.starts_with("HTTP/1.0 200"), "{head}");
        (head, body)
    };
    let (head, pcm) = speak("pcm").await;
    assert!(head.contains("content-type: audio/pcm"), "{head}");
    let samples = pcm.len() / 2;
    assert!(samples > 4_800);

    let (head, wav) = speak("wav").await;
    assert!(head.contains("content-type: audio/wav"), "{head}");
    assert_eq!((&wav[..8], &wav[8..12]), (&b"RIFF\xff\xff\xff\xff"[..], &b"WAVE"[..]));
    let heard = Wav::read(&wav).unwrap();
    assert_eq!((heard.sample_rate, heard.samples.len()), (24_000, samples));

    let (head, flac) = speak("flac").await;
    assert!(head.contains("content-type: audio/flac"), "{head}");
    assert_eq!(codecs::flac::read(&flac, SECONDS_MAX).unwrap().samples, heard.samples);

    let (head, opus) = speak("opus").await;
    assert!(head.contains("content-type: audio/ogg"), "{head}");
    let opus = OggOpus::read(&opus).unwrap();
    assert_eq!(opus.end, u64::from(opus.head.pre_skip) + 2 * samples as u64);
    assert_eq!(opus.decode(24_000, samples).unwrap().len(), samples);
    house.until_idle().await;
}

#[cfg(feature = "mp3")]
#[tokio::test(flavor = "multi_thread")]
async fn who_names_no_format_gets_mp3() {
    let house = House::open().await;
    let (_, pcm) = house.post(PATH, &ask("pcm")).await;
    let (head, mp3) = house.post(PATH, &json!({"input": "Hello there.", "voice": "alloy"})).await;
    assert!(head.contains("content-type: audio/mpeg"), "{head}");
    let heard = codecs::mp3::read(&mp3, SECONDS_MAX).unwrap();
    assert_eq!(heard.sample_rate, 24_000);
    let samples = pcm.len() / 2 + codecs::mp3::DELAY_SAMPLES;
    // Whole frames of 576 samples, and one that flushes the encoder.
    assert!((samples..samples + 4 * 576).contains(&heard.samples.len()));
}

#[tokio::test(flavor = "multi_thread")]
async fn events_carry_the_same_bytes_in_small_pieces_and_say_that_they_end() {
    let house = House::open().await;
    for format in ["pcm", "opus", "flac", "wav"] {
        let (_, whole) = house.post(PATH, &ask(format)).await;
        let mut events = ask(format);
        events["stream_format"] = json!("sse");
        let (head, body) = house.post(PATH, &events).await;
        assert!(head.contains("content-type: text/event-stream"), "{head}");
        let text = String::from_utf8(body).unwrap();
        let events: Vec<Value> = text
            .split_terminator("\n\n")
            .map(|e| serde_json::from_str(e.strip_prefix("data: ").unwrap()).unwrap())
            .collect();
        let (last, deltas) = events.split_last().unwrap();
        let mut bytes = Vec::new();
        for delta in deltas {
            assert_eq!(delta["type"], "speech.audio.delta");
            let piece = STANDARD.decode(delta["audio"].as_str().unwrap()).unwrap();
            // 100 ms of samples are 4,800 bytes; a header may stand before them.
            assert!(!piece.is_empty() && piece.len() < 6_000, "{format}: {} bytes", piece.len());
            bytes.extend(piece);
        }
        assert_eq!(bytes, whole, "{format}");
        let usage = &last["usage"];
        assert_eq!(
            (&last["type"], &usage["input_tokens"]),
            (&json!("speech.audio.done"), &json!(12))
        );
        let total =
            usage["input_tokens"].as_u64().unwrap() + usage["output_tokens"].as_u64().unwrap();
        assert_eq!(usage["total_tokens"], total);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_of_a_text_has_no_effect_is_told_in_the_head() {
    let house = House::open().await;
    let speak = async |input: &str| {
        let mut asked = ask("pcm");
        asked["input"] = json!(input);
        let (head, _) = house.post(PATH, &asked).await;
        let told = head.lines().find_map(|line| line.strip_prefix("x-dovecote-notice: "));
        told.map(|told| serde_json::from_str::<Value>(told).unwrap())
    };
    let told = speak("Say <phoneme ph=\"x\">tomato</phoneme>.").await;
    assert_eq!(told, Some(json!([{"what": "phoneme", "text": {"from": 4, "to": 20}}])));
    assert_eq!(speak("Say tomato.").await, None);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_to_be_had_is_refused_in_openais_words() {
    let house = House::open().await;
    let refused = async |body: &Value| {
        let (head, body) = house.post(PATH, body).await;
        let body: Value = serde_json::from_slice(&body).unwrap();
        let error = body["error"].clone();
        assert_eq!(error["type"], "invalid_request_error");
        (house::status(&head), error)
    };
    let (status, error) = refused(&ask("aac")).await;
    assert_eq!((status, &error["param"]), (400, &json!("response_format")));
    assert!(error["message"].as_str().unwrap().contains("opus, flac, wav, pcm"));
    let (status, error) = refused(&json!({"input": "a".repeat(4_097)})).await;
    assert_eq!((status, &error["param"]), (400, &json!("input")));
    let (status, error) = refused(&json!({"input": "a".repeat(70_000)})).await;
    assert_eq!((status, &error["code"]), (413, &json!("body_too_large")));
    assert!(error["message"].as_str().unwrap().contains("65536"));
    let (status, error) = refused(&json!(["input"])).await;
    assert_eq!((status, &error["code"]), (400, &json!("bad_body")));
    let (head, body) = house.answer("GET /v1/audio/speech HTTP/1.0\r\n\r\n").await;
    assert!(house::status(&head) == 405 && head.contains("allow: POST"), "{head}");
    let error = serde_json::from_slice::<Value>(&body).unwrap()["error"].clone();
    assert_eq!(error["code"], "method_not_supported");
    for path in ["/v1/", "/v1/audio"] {
        let (head, body) = house.answer(&format!("GET {path} HTTP/1.0\r\n\r\n")).await;
        assert_eq!(house::status(&head), 404, "{path}");
        assert!(serde_json::from_slice::<Value>(&body).unwrap()["error"]["code"] == "not_found");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_text_is_put_into_words_without_being_spoken() {
    let mut settings = Gateway::default();
    settings.limits.max_text_chars = 30;
    let house = House::with(settings).await;
    let ask = async |body: Value| {
        let (head, body) = house.post("/v1/text", &body).await;
        (house::status(&head), serde_json::from_slice::<Value>(&body).unwrap())
    };
    let (status, said) = ask(json!({"input": "It is 9:30."})).await;
    assert_eq!((status, &said["spoken"]), (200, &json!("It is nine thirty.")));
    let map = said["map"].as_array().unwrap();
    assert_eq!((&map[5], &map[6], &map[17]), (&json!([5, 6]), &json!([6, 10]), &json!([10, 11])));
    // The bundle's own forms: letters with blanks between them.
    assert_eq!(ask(json!({"input": "The FBI."})).await.1["spoken"], "The F B I.");
    for asked in [json!({"language": "de"}), json!({"language": "de", "locale": "de-AT"})] {
        let mut asked = asked;
        asked["input"] = json!("21");
        assert_eq!(ask(asked).await.1["spoken"], "einundzwanzig");
    }
    let rules = json!({"lexicon": {"x": "y"}, "ssml": true});
    let said = ask(json!({"input": "x <prosody>1</prosody>", "text": rules})).await.1;
    let place = json!([{"what": "prosody", "text": {"from": 2, "to": 11}}]);
    assert_eq!((&said["spoken"], &said["notices"]), (&json!("y one"), &place));
    for (body, status, code, says) in [
        (json!({"input": "x".repeat(31)}), 400, "text_too_long", "limits.max_text_chars"),
        (json!({"input": "x".repeat(70_000)}), 413, "body_too_large", "65536"),
        (json!({"input": "x", "locale": "en-XX"}), 400, "bad_value", "known: en-US"),
        (json!({"words": "x"}), 400, "bad_body", "input"),
        (
            json!({"input": "x", "text": {"lexicon": [{"pattern": "[", "spoken": ""}]}}),
            400,
            "bad_value",
            "entry 0",
        ),
    ] {
        let (answered, said) = ask(body).await;
        assert_eq!((answered, &said["error"]["code"]), (status, &json!(code)));
        assert!(said["error"]["message"].as_str().unwrap().contains(says), "{said}");
    }
    assert_eq!(house.engine().stats().contexts, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_leaves_costs_nothing_more() {
    let house = House::open().await;
    for framing in ["audio", "sse"] {
        let body = json!({"input": LONG, "response_format": "pcm", "stream_format": framing});
        // One leaves before the first sound, the other in the middle.
        for bytes in [0, 1_000] {
            let mut socket = house.begin(PATH, &body).await;
            house.until("at work", async || house.engine().stats().kv_blocks_in_use > 0).await;
            let mut some = vec![0; bytes];
            socket.read_exact(&mut some).await.unwrap();
            drop(socket);
            house.until_idle().await;
        }
    }
}
