//! Cartesia's clients on virtual time.

use super::*;
use crate::config::{Foreign, Gateway};
use crate::foreign::rig::{PACKET, Rig};
use crate::protocol::{Codec, Input, Limits};
use engine::{Event, Speech};

fn rig() -> Rig {
    Rig::new(Cartesia::make)
}

/// A message as clients send it, with more fields.
fn message(name: &str, transcript: &str, more: &Value) -> Value {
    let mut message = json!({
        "model_id": "sonic-3", "context_id": name, "transcript": transcript,
        "voice": {"mode": "id", "id": "71a7ad14"}, "language": null, "continue": true,
        "output_format":
            {"container": "raw", "encoding": "pcm_s16le", "sample_rate": 24_000, "new": 1},
        "add_timestamps": true, "use_normalized_timestamps": false, "unheard_of": [{}],
    });
    message.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    message
}

fn last(name: &str) -> Value {
    message(name, "", &json!({"continue": false}))
}

fn types(heard: &[Value]) -> Vec<&str> {
    heard.iter().map(|m| m["type"].as_str().unwrap()).collect()
}

#[test]
fn a_turn_is_sound_in_small_pieces_words_and_an_end() {
    let mut rig = rig();
    rig.send(&message("a", "Hello ", &json!({})));
    rig.send(&message("a", "there.", &json!({})));
    rig.send(&last("a"));
    assert_eq!((rig.text(1).as_str(), rig.told(1)), ("Hello there.", vec!["open", "end"]));
    assert!(rig.heard().is_empty());
    rig.engine(1, Event::Chunk { text: "Hello there.".into(), raw: 0..12 });
    let said = Speech { text: String::new(), codes: Vec::new() }.into();
    rig.engine(1, Event::ChunkEnd { said, raw: 0..12, end: 24_000 });
    rig.now += Duration::from_millis(30);
    rig.speak(1, 0, 50, true);
    rig.done(1, 24_000);
    let heard = rig.heard();
    assert!(heard.iter().all(|m| m["context_id"] == "a" && m["status_code"].is_u64()));
    let (chunks, rest) = heard.split_at(10);
    for chunk in chunks {
        assert_eq!((&chunk["type"], &chunk["done"]), (&json!("chunk"), &json!(false)));
        // 100 ms, and nothing but samples.
        let sound = STANDARD.decode(chunk["data"].as_str().unwrap()).unwrap();
        assert_eq!(sound, PACKET.repeat(5));
    }
    assert_eq!(chunks[0]["step_time"], 30.0);
    assert_eq!(types(rest), ["timestamps", "done"]);
    let words = &rest[0]["word_timestamps"];
    assert_eq!(words["words"], json!(["Hello", "there."]));
    assert_eq!((&words["start"][0], &words["end"][1]), (&json!(0.0), &json!(1.0)));
    assert_eq!((&rest[1]["done"], &rest[1]["status_code"]), (&json!(true), &json!(200)));
}

#[test]
fn words_are_those_that_were_written_in_every_commit() {
    let mut rig = rig();
    let text = "Ünder größe one two three four five six seven eight nine ten eleven twelve.";
    rig.send(&message("a", text, &json!({"continue": false})));
    rig.engine(1, Event::Chunk { text: text.into(), raw: 0..text.chars().count() });
    for second in 0..5 {
        rig.speak(1, second * 50, 50, second == 4);
    }
    rig.done(1, 120_000);
    let told: Vec<String> = rig
        .heard()
        .iter()
        .filter(|m| m["type"] == "timestamps")
        .flat_map(|m| m["word_timestamps"]["words"].as_array().unwrap().clone())
        .map(|word| word.as_str().unwrap().to_owned())
        .collect();
    assert_eq!(told.join(" "), text);
}

#[test]
fn who_asks_for_no_words_gets_none() {
    let mut rig = rig();
    rig.send(&message("a", "Hi.", &json!({"add_timestamps": null, "continue": false})));
    rig.engine(1, Event::Chunk { text: "Hi.".into(), raw: 0..3 });
    rig.speak(1, 0, 1, true);
    rig.done(1, 480);
    assert_eq!(types(&rig.heard()), ["chunk", "done"]);
}

#[test]
fn sentences_without_a_space_between_them_get_one_and_are_spoken_at_once() {
    let mut rig = rig();
    let at_once = json!({"max_buffer_delay_ms": 0});
    for sentence in ["Yes.", "I see.", " And then?"] {
        rig.send(&message("a", sentence, &at_once));
    }
    assert_eq!(rig.text(1), "Yes. I see. And then?");
    assert_eq!(rig.told(1), ["open", "flush", "flush", "flush"]);
    // Clients that send tokens send their spaces too.
    for token in ["v1.", "2"] {
        rig.send(&message("b", token, &json!({})));
    }
    assert_eq!((rig.text(2).as_str(), rig.told(2)), ("v1.2", vec!["open"]));
    rig.engine(1, Event::Flushed { samples: 0 });
    assert!(rig.heard().is_empty(), "nobody asked for a flush");
}

#[test]
fn many_sentences_at_once_are_no_fault() {
    let mut rig = rig();
    for _ in 0..200 {
        rig.send(&message("a", "So.", &json!({"max_buffer_delay_ms": 0})));
    }
    assert!(rig.heard().is_empty());
    assert!(!rig.told(1).contains(&"cancel"));
}

#[test]
fn a_flush_is_answered_and_the_sound_behind_it_says_so() {
    let mut rig = rig();
    rig.send(&message("a", "One.", &json!({})));
    rig.send(&message("a", "", &json!({"flush": true})));
    rig.speak(1, 0, 5, false);
    rig.engine(1, Event::Flushed { samples: 2_400 });
    rig.send(&message("a", "Two.", &json!({"continue": false})));
    rig.speak(1, 5, 5, true);
    rig.done(1, 4_800);
    let heard = rig.heard();
    let heard: Vec<&Value> = heard.iter().filter(|m| m["type"] != "timestamps").collect();
    let id = |at: usize| (heard[at]["type"].as_str().unwrap(), heard[at]["flush_id"].as_u64());
    assert_eq!(
        [id(0), id(1), id(2)],
        [("chunk", Some(1)), ("flush_done", Some(1)), ("chunk", Some(2))]
    );
    assert_eq!(heard[1]["flush_done"], true);
}

#[test]
fn nothing_of_a_context_follows_its_cancel() {
    let mut rig = rig();
    rig.send(&message("a", "A long story.", &json!({})));
    rig.speak(1, 0, 5, false);
    assert_eq!(types(&rig.heard()), ["chunk"]);
    rig.send(&json!({"context_id": "a", "cancel": true}));
    rig.speak(1, 5, 5, false);
    rig.send(&json!({"context_id": "a", "cancel": true}));
    rig.send(&json!({"context_id": "never", "cancel": true}));
    assert!(rig.heard().is_empty());
    assert_eq!(rig.told(1), ["open", "cancel"]);
    // The name is free.
    rig.send(&message("a", "Anew.", &json!({"continue": false})));
    rig.speak(2, 0, 5, true);
    rig.done(2, 2_400);
    assert_eq!(types(&rig.heard()).first(), Some(&"chunk"));
    assert_eq!(rig.close, None);
}

#[test]
fn a_name_that_is_used_again_is_spoken_behind_the_first() {
    let mut rig = rig();
    for text in ["First.", "Second."] {
        rig.send(&message("a", text, &json!({"continue": false, "add_timestamps": false})));
    }
    rig.send(&last("a"));
    rig.speak(2, 0, 5, true);
    rig.done(2, 2_400);
    assert!(rig.heard().is_empty());
    rig.speak(1, 0, 5, true);
    rig.done(1, 2_400);
    assert_eq!(types(&rig.heard()), ["chunk", "done", "chunk", "done"]);
    assert_eq!((rig.text(1).as_str(), rig.text(2).as_str()), ("First.", "Second."));
}

#[test]
fn a_turn_without_text_ends_all_the_same() {
    let mut rig = rig();
    rig.send(&message("a", " ", &json!({"continue": false})));
    rig.done(1, 0);
    assert_eq!(types(&rig.heard()), ["done"]);
}

#[test]
fn every_format_is_the_one_asked_for_or_refused_by_name() {
    let mut rig = rig();
    let formats = [
        ("pcm_s16le", 44_100, Codec::PcmS16le),
        ("pcm_f32le", 24_000, Codec::PcmF32le),
        ("pcm_mulaw", 8_000, Codec::Mulaw),
        ("pcm_alaw", 16_000, Codec::Alaw),
    ];
    for (at, (encoding, sample_rate, codec)) in (1..).zip(formats) {
        let format = json!({"container": "raw", "encoding": encoding, "sample_rate": sample_rate});
        rig.send(&message(encoding, "Hi.", &json!({"output_format": format})));
        let (_, got) = rig.opened(at);
        assert_eq!((got.codec, got.sample_rate), (codec, sample_rate));
    }
    assert!(rig.heard().is_empty());
    for (format, says) in [
        (json!({"container": "wav", "encoding": "pcm_s16le"}), "container"),
        (json!({"container": "raw", "encoding": "opus"}), "pcm_mulaw"),
        (json!({"encoding": "pcm_s16le", "sample_rate": 11_025}), "output_format.sample_rate"),
    ] {
        rig.send(&message("x", "Hi.", &json!({"output_format": format})));
        let [error] = &rig.heard()[..] else { panic!() };
        let told = (&error["type"], &error["context_id"], &error["done"]);
        assert_eq!(told, (&json!("error"), &json!("x"), &json!(true)));
        assert_eq!(error["status_code"], 400);
        assert!(error["message"].as_str().unwrap().contains(says), "{error}");
    }
}

#[test]
fn voices_are_ours_or_stand_for_ours_or_are_the_default() {
    let mut config = Gateway::default();
    config.speech.voices.insert("71a7ad14".into(), "bob".into());
    let voice = |rig: &mut Rig, id: &str| {
        rig.send(&message("a", "Hi.", &json!({"voice": {"mode": "id", "id": id}})));
    };
    let mut rig = Rig::with(Cartesia::make, &config);
    for (at, (asked, found)) in
        (1..).zip([("ann", Some("ann")), ("71a7ad14", Some("bob")), ("unknown", None)])
    {
        rig.send(&json!({"context_id": "a", "cancel": true}));
        voice(&mut rig, asked);
        assert_eq!(rig.opened(at).0.voice.as_deref(), found);
    }
    rig.send(&message("by_name", "Hi.", &json!({"voice": "71a7ad14"})));
    assert_eq!(rig.opened(4).0.voice.as_deref(), Some("bob"));
    config.foreign = Foreign { takes_unknown_voices: false, ..Foreign::default() };
    let mut rig = Rig::with(Cartesia::make, &config);
    voice(&mut rig, "unknown");
    let [error] = &rig.heard()[..] else { panic!() };
    assert_eq!(error["error_code"], "unknown_voice");
    assert!(error["message"].as_str().unwrap().contains("ann, bob"));
}

#[test]
fn models_are_ours_or_stand_for_ours_or_are_the_default() {
    let mut config = Gateway::default();
    config.speech.models.insert("sonic-3".into(), "toy".into());
    config.foreign.takes_unknown_models = false;
    let mut rig = Rig::with(Cartesia::make, &config);
    for known in ["toy", "sonic-3"] {
        rig.send(&message(known, "Hi.", &json!({"model_id": known})));
    }
    assert!(rig.heard().is_empty());
    rig.send(&message("x", "Hi.", &json!({"model_id": "sonic-9"})));
    let [error] = &rig.heard()[..] else { panic!() };
    assert_eq!(
        (&error["error_code"], &error["context_id"]),
        (&json!("unknown_model"), &json!("x"))
    );
    assert!(error["message"].as_str().unwrap().contains("toy"), "{error}");
    // Unless it is said otherwise, whatever is asked for is what there is.
    let mut rig = Rig::new(Cartesia::make);
    rig.send(&message("x", "Hi.", &json!({"model_id": "sonic-9"})));
    assert!(rig.heard().is_empty());
}

#[test]
fn an_embedding_is_no_voice() {
    let mut rig = rig();
    let voice = json!({"mode": "embedding", "embedding": [0.1, 0.2]});
    rig.send(&message("a", "Hi.", &json!({"voice": voice})));
    let [error] = &rig.heard()[..] else { panic!() };
    let told = (&error["type"], &error["context_id"], &error["status_code"]);
    assert_eq!(told, (&json!("error"), &json!("a"), &json!(400)));
    assert!(error["message"].as_str().unwrap().contains("POST /v1/voices"), "{error}");
}

#[test]
fn an_address_may_name_a_seed() {
    let mut rig =
        Rig::at(Cartesia::make, "cartesia_version=2025-04-16&seed=7", &Gateway::default());
    rig.send(&message("a", "Hi.", &json!({})));
    assert_eq!(rig.opened(1).0.seed, 7);
}

#[test]
fn what_goes_wrong_ends_its_context_and_no_other() {
    let limits = Limits { max_pending_chars: 10, ..Limits::default() };
    let mut rig = Rig::with(Cartesia::make, &Gateway { limits, ..Gateway::default() });
    rig.send(&message("good", "Fine.", &json!({})));
    rig.send(&message("long", "More than ten characters.", &json!({})));
    let [error] = &rig.heard()[..] else { panic!() };
    assert_eq!((&error["context_id"], &error["status_code"]), (&json!("long"), &json!(429)));
    assert_eq!(rig.told(2), ["open", "cancel"]);
    let tongues = json!({"language": "klingon"});
    rig.send(&message("tongue", "nuqneH", &tongues));
    assert_eq!(rig.heard()[0]["error_code"], "unknown_language");
    rig.engine(1, Event::Failed(engine::Failure::Codec("broken".into())));
    let [error] = &rig.heard()[..] else { panic!() };
    assert_eq!((&error["context_id"], &error["status_code"]), (&json!("good"), &json!(500)));
    rig.refuse =
        Some(engine::Error::Overloaded { retry_after: Duration::from_secs(1), listeners: 9 });
    rig.send(&message("late", "Hi.", &json!({})));
    assert_eq!(rig.heard()[0]["status_code"], 503);
    assert_eq!(rig.close, None);
}

#[test]
fn what_cannot_be_read_is_told_and_too_much_of_it_is_the_end() {
    let mut rig = rig();
    rig.send(&message("a", "Hi.", &json!({})));
    rig.send(&message("a", "Hi.", &json!({"continue": "yes"})));
    let [error] = &rig.heard()[..] else { panic!() };
    assert_eq!((&error["context_id"], &error["status_code"]), (&json!("a"), &json!(400)));
    assert_eq!(rig.told(1), ["open", "cancel"]);
    let long = "n".repeat(NAME_BYTES_MAX + 1);
    for odd in ["", "null", "[]", "{}", "7", &message(&long, "Hi.", &json!({})).to_string()] {
        rig.input(Input::Message(odd.to_owned()));
        let [error] = &rig.heard()[..] else { panic!("{odd}") };
        assert_eq!((&error["type"], &error["context_id"]), (&json!("error"), &Value::Null));
    }
    for _ in 0..16 {
        rig.input(Input::Message("?".into()));
    }
    assert_eq!(rig.close, Some(1_008));
}

#[test]
fn a_context_that_drains_leaves_its_place() {
    let limits = Limits { max_contexts: 1, max_draining_contexts: 2, ..Limits::default() };
    let mut rig = Rig::with(Cartesia::make, &Gateway { limits, ..Gateway::default() });
    for name in ["a", "b"] {
        rig.send(&message(name, "Hi.", &json!({"continue": false})));
    }
    assert!(rig.heard().is_empty());
    rig.send(&message("c", "Hi.", &json!({})));
    let [error] = &rig.heard()[..] else { panic!() };
    assert!(error["message"].as_str().unwrap().starts_with("2 contexts are still"), "{error}");
    rig.send(&json!({"context_id": "a", "cancel": true}));
    rig.send(&message("c", "Hi.", &json!({})));
    rig.send(&message("d", "Hi.", &json!({})));
    let [error] = &rig.heard()[..] else { panic!() };
    assert_eq!((&error["context_id"], &error["status_code"]), (&json!("d"), &json!(429)));
}

#[test]
fn an_abandoned_context_is_done_and_an_idle_connection_closes_as_usual() {
    let mut rig = rig();
    rig.send(&message("a", "Hi.", &json!({})));
    rig.sleep(Duration::from_secs(121));
    assert_eq!(types(&rig.heard()), ["done"]);
    assert_eq!(rig.told(1), ["open", "cancel"]);
    rig.sleep(Duration::from_secs(400));
    assert_eq!((rig.close, rig.heard().len()), (Some(1_000), 0));
}

#[test]
fn a_server_that_goes_down_speaks_to_the_end() {
    let mut rig = rig();
    rig.send(&message("a", "Hi.", &json!({"continue": false, "add_timestamps": false})));
    rig.input(Input::Drain(Duration::from_secs(9)));
    rig.send(&message("b", "Hi.", &json!({})));
    assert_eq!(rig.heard()[0]["status_code"], 503);
    rig.speak(1, 0, 5, true);
    rig.done(1, 2_400);
    assert_eq!(types(&rig.heard()), ["chunk", "done"]);
    assert_eq!(rig.close, Some(1_012));
}

#[test]
fn a_list_of_words_is_one_of_the_settings_or_refused_by_its_field() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("words.json");
    std::fs::write(&file, r#"{"nginx": "engine x"}"#).unwrap();
    let mut config = Gateway::default();
    config.lexicon.dictionaries.insert("pd_1".into(), file);
    let mut rig = Rig::with(Cartesia::make, &config);
    rig.send(&message("a", "nginx", &json!({"pronunciation_dict_id": "pd_1"})));
    rig.send(&message("b", "nginx", &json!({"pronunciation_dict_id": null})));
    let said = |rig: &Rig, at| engine::text::sanitize("nginx", &rig.opened(at).0.options);
    assert_eq!((said(&rig, 1).as_str(), said(&rig, 2).as_str()), ("engine x.", "nginx."));
    rig.send(&message("c", "nginx", &json!({"pronunciation_dict_id": "pd_2"})));
    let [error] = &rig.heard()[..] else { panic!() };
    assert_eq!((&error["context_id"], &error["error_code"]), (&json!("c"), &json!("bad_option")));
    let says = error["message"].as_str().unwrap();
    assert!(says.starts_with("pronunciation_dict_id: \"pd_2\" is not there"), "{says}");
}

#[test]
fn tags_are_obeyed_or_dropped_and_no_client_hears_of_it() {
    let mut rig = rig();
    let text = "<speed ratio=\"1.5\"/><emotion value=\"angry\"/>Code <spell>AB1</spell>, <break time=\"1s\"/>go.";
    rig.send(&message("a", text, &json!({})));
    let options = &rig.opened(1).0.options;
    assert_eq!(engine::text::sanitize(text, options), "Code AB one, go.");
    let notice = engine::text::Notice { what: "speed".into(), from: 0, to: 20 };
    rig.engine(1, Event::Notice(notice));
    assert!(rig.heard().is_empty());
}
