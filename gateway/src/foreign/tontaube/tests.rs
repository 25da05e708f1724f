//! Clients of the TontaubeV1 server, without a wire.

use std::sync::Arc;

use engine::{Speech, Text};

use super::*;
use crate::foreign::rig::Rig;
use crate::foreign::whole::Read;
use crate::protocol::{Catalogue, Codec, Voice};

fn asked(read: Read, body: &Value) -> Result<Whole, Refused> {
    let config = Gateway::default();
    let voice = Voice {
        voice_id: "ann".into(),
        name: "ann".into(),
        model: "nano".into(),
        category: "premade",
        languages: Vec::new(),
        styles: Vec::new(),
        owner: None,
    };
    let catalogue = Arc::new(Catalogue { voices: vec![voice], ..Catalogue::default() });
    let body = body.to_string();
    let (path, query) = ("/predict", "");
    read(&Asking { path, query, body: body.as_bytes(), config: &config, catalogue: &catalogue })
}

fn predict(body: &Value) -> Whole {
    asked(Tontaube::predict, body).unwrap_or_else(|refused| panic!("{refused:?}"))
}

#[test]
fn every_field_reaches_the_engine_or_is_told() {
    let whole = predict(&json!({"instances": [{
        "text": "Hi there.", "language": "en", "tag": "agentic", "temperature": 0.5, "top_p": 0.9,
        "top_k": 40, "frequency_penalty": 0.1, "seed": 7, "voice_path": "/voices/ann.wav",
        "prefix_text": "Before.", "prefix_tokens": [[1, 2, 3], [4, 5, 6]], "max_new_tokens": 400,
        "streaming_initial_seconds": 0.8, "acoustic_temperature": 0.2, "acoustic_top_k": 5,
        "prompt_max_tokens": 100, "use_verbalization": false, "silence_logit_bias": -0.2,
        "vibevoice_postprocess": true, "mossformer2_postprocess": false, "vllm_priority": 1,
        "trim_silence_padding_ms": 50, "format": "opus", "bitrate": "32k", "priority": "high",
    }]}));
    let request = whole.request;
    assert_eq!(request.text, Text::Whole("Hi there.".into()));
    let names = (request.voice.as_deref(), request.language.as_deref(), request.style.as_deref());
    assert_eq!(names, (Some("ann"), Some("en"), Some("agentic")));
    assert_eq!(
        (request.temperature, request.top_p, request.top_k),
        (Some(0.5), Some(0.9), Some(40))
    );
    assert_eq!((request.frequency_penalty, request.seed), (Some(0.1), 7));
    assert_eq!((request.acoustic_temperature, request.acoustic_top_k), (Some(0.2), Some(5)));
    assert_eq!((request.prompt_max_frames, request.priority), (Some(100), 8));
    assert!(!request.options.verbalize && request.first_frames == 10);
    let prefix = Speech { text: "Before.".into(), codes: vec![1, 2, 3] };
    assert_eq!(request.prefix.as_deref(), Some(&prefix));
    assert_eq!(whole.shape, Shape::Encoded(Encoding::Opus { bitrate: 32_000 }));
    assert_eq!(
        whole.ignored,
        [
            "max_new_tokens",
            "silence_logit_bias",
            "vibevoice_postprocess",
            "mossformer2_postprocess",
            "vllm_priority",
            "trim_silence_padding_ms",
        ]
    );
}

#[test]
fn null_is_what_is_left_out() {
    let whole = predict(&json!({"text": "Hi.", "language": null, "seed": null, "format": null}));
    assert_eq!(whole.shape, Shape::File(FileFormat::Wav));
    assert!(whole.ignored.is_empty());
}

#[test]
fn pieces_of_a_text_are_sentences() {
    let whole = predict(&json!({"text": ["One", " two! ", "", "three:"]}));
    assert_eq!(whole.request.text, Text::Whole("One. two! three:".into()));
}

#[test]
fn what_is_not_to_be_had_is_refused_by_name() {
    for (body, says) in [
        (json!({"text": "Hi.", "volume": 3}), "unknown field `volume`"),
        (json!({}), "text is missing"),
        (json!({"text": ""}), "1 to 40000"),
        (json!({"text": "a".repeat(40_001)}), "foreign.max_predict_chars"),
        (json!({"text": vec!["a"; 1_001]}), "foreign.max_predict_segments"),
        (json!({"text": "Hi.", "max_new_tokens": 49}), "max_new_tokens 49 is not within 50 to 400"),
        (json!({"text": "Hi.", "prompt_max_tokens": 751}), "1 to 750"),
        (json!({"text": "Hi.", "streaming_initial_seconds": 0.1}), "0.4 to 6"),
        (json!({"text": "Hi.", "format": "flac"}), "wav, mp3, opus"),
        (json!({"text": "Hi.", "bitrate": "1k"}), "32k, 64k"),
        (json!({"text": "Hi.", "priority": "soon"}), "low, high"),
        (json!({"text": "Hi.", "voice_audio_b64": "UklGRg=="}), "POST /v1/voices"),
        (json!({"text": "Hi.", "prefix_text": "Before."}), "belong together"),
        (json!({"instances": []}), "one request"),
        (json!([]), "text is missing"),
    ] {
        for read in [Tontaube::predict as Read, Tontaube::stream] {
            let Err(Refused { status, body }) = asked(read, &body) else { panic!("{says}") };
            assert_eq!(status, 422);
            assert!(body["detail"].as_str().unwrap().contains(says), "{body}");
        }
    }
}

#[test]
fn an_object_that_is_written_in_pieces_is_one_object() {
    let mut framing = predict(&json!({"text": "Hi."})).framing.unwrap();
    let bytes: Vec<u8> = (0..=255).collect();
    let mut body = Vec::new();
    for piece in bytes.chunks(7) {
        body.extend(framing.sound(piece));
    }
    let said = Speech { text: String::new(), codes: vec![5, 6] }.into();
    framing.learn(&Event::ChunkEnd { said, raw: 0..3, end: 9 });
    body.extend(framing.done(&Summary::default()));
    let object: Value = serde_json::from_slice(&body).unwrap();
    assert_eq!(STANDARD.decode(object["audio_b64"].as_str().unwrap()).unwrap(), bytes);
    let rest = (&object["mime_type"], &object["sample_rate"], &object["codebook_tokens"]);
    assert_eq!(rest, (&json!("audio/wav"), &json!(24_000), &json!([[5, 6]])));
    // One without sound, and one that breaks off.
    let mut silent = predict(&json!({"text": "Hi."})).framing.unwrap();
    let object: Value = serde_json::from_slice(&silent.done(&Summary::default())).unwrap();
    assert_eq!(object["audio_b64"], "");
    let mut broken = predict(&json!({"text": "Hi."})).framing.unwrap();
    let body = [broken.sound(b"abc"), broken.broken("why")].concat();
    assert!(serde_json::from_slice::<Value>(&body).is_err());
}

#[test]
fn events_are_counted_and_the_last_says_so() {
    let mut framing = asked(Tontaube::stream, &json!({"text": "Hi."})).unwrap().framing.unwrap();
    let data = |bytes: Bytes| -> Value {
        let text = String::from_utf8(bytes.to_vec()).unwrap();
        serde_json::from_str(text.strip_prefix("data: ").unwrap().trim_end()).unwrap()
    };
    let first = data(framing.sound(b"abc"));
    assert_eq!(first, json!({"index": 0, "audio_b64": "YWJj", "done": false}));
    let last = data(framing.done(&Summary::default()));
    assert_eq!(last, json!({"index": 1, "audio_b64": "", "done": true}));
}

#[test]
fn a_socket_gives_packets_in_small_messages_then_an_end_and_closes() {
    let mut rig = Rig::new(Tontaube::make);
    rig.send(&json!({"text": "Hi there.", "seed": 7, "priority": "low", "bitrate": "32k"}));
    let (request, format) = rig.opened(1);
    assert_eq!((request.seed, request.priority), (7, 2));
    assert_eq!((format.codec, format.bitrate), (Codec::Opus, 32_000));
    assert_eq!((rig.text(1).as_str(), rig.told(1)), ("Hi there.", vec!["open", "end"]));
    rig.speak(1, 0, 5, true);
    rig.done(1, 2_400);
    let [message] = &rig.sound[..] else { panic!() };
    assert_eq!(&message[..4], &[5, 0, 0xc0, 0x03]);
    assert_eq!(message.len(), 2 + 5 * (2 + crate::foreign::rig::PACKET.len()));
    assert_eq!(rig.heard(), [json!({"done": true})]);
    assert_eq!(rig.close, Some(1_000));
}

#[test]
fn a_request_that_cannot_be_spoken_is_told_and_the_socket_closes() {
    for (body, says) in [
        (json!({"text": "Hi.", "format": "mp3"}), "opus"),
        (json!({"text": "Hi.", "volume": 3}), "volume"),
        (json!({"text": "Hi.", "language": "klingon"}), "english"),
    ] {
        let mut rig = Rig::new(Tontaube::make);
        rig.send(&body);
        let [error] = &rig.heard()[..] else { panic!("{says}") };
        assert!(error["error"].as_str().unwrap().contains(says), "{error}");
        assert_eq!(rig.close, Some(1_000));
    }
}
