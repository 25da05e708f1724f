//! Recorded sequences of ElevenLabs' clients, on virtual time.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use engine::{Event, Speech};

use super::super::rig::{PACKET, Rig};
use super::*;
use crate::config::Gateway;
use crate::protocol::Input;

/// What pipecat asks for.
const PIPECAT: [&str; 3] = [
    "/v1/text-to-speech/ann/multi-stream-input",
    "model_id=eleven_flash_v2_5&output_format=pcm_24000&auto_mode=true",
    "Python/3.12 websockets/15.0",
];
/// What LiveKit's plugin asks for, but for its format.
const LIVEKIT: [&str; 3] = [
    "/v1/text-to-speech/ann/multi-stream-input",
    "output_format=pcm_24000&sync_alignment=true&inactivity_timeout=180&auto_mode=true",
    "Python/3.12 aiohttp/3.11",
];

fn rig(of: [&str; 3]) -> Rig {
    Rig::from(ElevenLabs::multi, of, &Gateway::default())
}

fn single(query: &str) -> Rig {
    let path = "/v1/text-to-speech/ann/stream-input";
    Rig::from(ElevenLabs::single, [path, query, ""], &Gateway::default())
}

fn open(rig: &mut Rig, name: &str) {
    rig.send(&json!({"text": " ", "context_id": name, "voice_settings": null}));
}

fn text(rig: &mut Rig, name: &str, text: &str) {
    rig.send(&json!({"text": text, "context_id": name}));
}

fn phrase(rig: &mut Rig, name: &str, text: &str) {
    rig.send(&json!({"text": text, "context_id": name, "flush": true}));
}

fn flush(rig: &mut Rig, name: &str) {
    rig.send(&json!({"context_id": name, "flush": true}));
}

fn close(rig: &mut Rig, name: &str) {
    rig.send(&json!({"context_id": name, "close_context": true}));
}

/// What each message is: sound, an end, or an error; and whose.
fn heard(rig: &mut Rig) -> Vec<(&'static str, String)> {
    let kind = |message: &Value| {
        let kind = match message {
            m if m["isFinal"] == true => "final",
            m if !m["error"].is_null() => "error",
            m if m["audio"].is_string() => "audio",
            other => panic!("{other}"),
        };
        assert_eq!(message["contextId"], message["context_id"], "both names of the name");
        (kind, message["contextId"].as_str().unwrap_or_default().to_owned())
    };
    rig.heard().iter().map(kind).collect()
}

fn of(kind: &'static str, name: &str) -> (&'static str, String) {
    (kind, name.to_owned())
}

/// The engine says a chunk: which characters, and when it ends.
fn chunk(rig: &mut Rig, context: u32, text: &str, from: usize, end: u64) {
    let raw = from..from + text.chars().count();
    rig.engine(context, Event::Chunk { text: text.into(), raw: raw.clone() });
    let said = Speech { text: String::new(), codes: Vec::new() }.into();
    rig.engine(context, Event::ChunkEnd { said, raw, end });
}

#[test]
fn a_turn_of_pipecat_is_sound_characters_and_an_end() {
    let mut rig = rig(PIPECAT);
    open(&mut rig, "a");
    text(&mut rig, "a", "Hello there.");
    text(&mut rig, "a", "I am fine.");
    assert_eq!(rig.text(1), "Hello there. I am fine.");
    flush(&mut rig, "a");
    close(&mut rig, "a");
    assert_eq!(rig.told(1), ["open", "flush", "flush", "flush", "end"]);
    chunk(&mut rig, 1, "Hello there. I am fine.", 0, 24_000);
    rig.speak(1, 0, 50, true);
    rig.done(1, 24_000);
    let messages = rig.heard();
    let (last, sound) = messages.split_last().unwrap();
    assert_eq!((&last["isFinal"], &last["contextId"]), (&json!(true), &json!("a")));
    let bytes: Vec<u8> =
        sound.iter().flat_map(|m| STANDARD.decode(m["audio"].as_str().unwrap()).unwrap()).collect();
    assert_eq!(bytes, PACKET.repeat(50));
    let alignment = &sound.last().unwrap()["alignment"];
    let chars: String =
        alignment["chars"].as_array().unwrap().iter().map(|c| c.as_str().unwrap()).collect();
    assert_eq!(chars, "Hello there. I am fine.");
    assert_eq!(alignment["charStartTimesMs"][0], 0);
    for field in ["charStartTimesMs", "charDurationsMs"] {
        assert_eq!(alignment[field].as_array().unwrap().len(), chars.len());
    }
    assert_eq!(sound.last().unwrap()["normalizedAlignment"], *alignment);
}

/// Times of all characters, when the client adds up the spans of messages, or does not.
fn times(rig: &mut Rig, adds_up: bool) -> Vec<u64> {
    let (mut times, mut base) = (Vec::new(), 0);
    for message in rig.heard() {
        let list = |field: &str| -> Vec<u64> {
            let values = message["alignment"][field].as_array();
            values.into_iter().flatten().map(|v| v.as_u64().unwrap()).collect()
        };
        let (starts, lengths) = (list("charStartTimesMs"), list("charDurationsMs"));
        let end = starts.iter().zip(&lengths).map(|(s, l)| s + l).next_back();
        times.extend(starts.iter().map(|start| start + base));
        base += if adds_up { end.unwrap_or(0) } else { 0 };
    }
    times
}

#[test]
fn times_are_those_of_the_message_or_of_the_context_as_the_client_takes_them() {
    let text = "One two three four five six seven eight nine ten eleven twelve and on.";
    let spoken = |of| {
        let mut rig = rig(of);
        phrase(&mut rig, "a", text);
        chunk(&mut rig, 1, text, 0, 120_000);
        rig.speak(1, 0, 250, true);
        rig.done(1, 120_000);
        rig
    };
    let relative = times(&mut spoken(PIPECAT), true);
    let absolute = times(&mut spoken(LIVEKIT), false);
    assert_eq!(relative, absolute);
    assert_eq!(relative.len(), text.len());
    assert!(relative.is_sorted() && relative[text.len() - 1] > 4_800, "{relative:?}");
}

#[test]
fn an_interruption_of_pipecat_ends_at_once() {
    let mut rig = rig(PIPECAT);
    open(&mut rig, "a");
    text(&mut rig, "a", "A long story.");
    rig.speak(1, 0, 5, false);
    assert_eq!(heard(&mut rig), [of("audio", "a")]);
    close(&mut rig, "a");
    rig.speak(1, 5, 5, false);
    assert_eq!((heard(&mut rig), rig.told(1).last()), (vec![of("final", "a")], Some(&"cancel")));
}

#[test]
fn a_second_close_interrupts_what_the_first_has_ended() {
    let mut rig = rig(PIPECAT);
    open(&mut rig, "a");
    text(&mut rig, "a", "A long story.");
    flush(&mut rig, "a");
    close(&mut rig, "a");
    rig.speak(1, 0, 5, false);
    assert_eq!((heard(&mut rig), rig.told(1).last()), (vec![of("audio", "a")], Some(&"end")));
    close(&mut rig, "a");
    rig.speak(1, 5, 5, true);
    assert_eq!((heard(&mut rig), rig.told(1).last()), (vec![of("final", "a")], Some(&"cancel")));
    // And again, in a race with its end: nobody is there any more.
    close(&mut rig, "a");
    assert!(rig.heard().is_empty() && rig.close.is_none());
}

#[test]
fn a_phrase_and_a_close_is_an_end_but_for_livekit() {
    for (client, ends_by) in [(PIPECAT, "end"), (LIVEKIT, "cancel")] {
        let mut rig = rig(client);
        open(&mut rig, "a");
        phrase(&mut rig, "a", "Say this, and then close. ");
        close(&mut rig, "a");
        assert_eq!(rig.told(1).last(), Some(&ends_by), "{client:?}");
    }
    let at_its_address = ["/x/livekit/v1/text-to-speech/ann/multi-stream-input", PIPECAT[1], ""];
    let mut rig = rig(at_its_address);
    phrase(&mut rig, "a", "Say this. ");
    close(&mut rig, "a");
    assert_eq!(rig.told(1).last(), Some(&"cancel"));
}

#[test]
fn a_turn_of_livekit_in_one_burst_is_spoken() {
    let mut rig = rig(LIVEKIT);
    open(&mut rig, "b");
    phrase(&mut rig, "b", "Yes. ");
    rig.send(&json!({"text": "", "context_id": "b", "flush": true}));
    close(&mut rig, "b");
    assert_eq!((rig.text(1).as_str(), rig.told(1).last()), ("Yes. ", Some(&"end")));
    rig.speak(1, 0, 5, true);
    rig.done(1, 2_400);
    assert_eq!(heard(&mut rig), [of("audio", "b"), of("final", "b")]);
}

#[test]
fn signs_of_life_open_nothing_and_keep_what_is_open() {
    let mut rig = rig(PIPECAT);
    rig.send(&json!({"text": ""}));
    rig.send(&json!({"text": "", "context_id": "a"}));
    assert!(rig.outputs.is_empty());
    open(&mut rig, "a");
    text(&mut rig, "a", "Let me see.");
    for _ in 0..4 {
        rig.sleep(Duration::from_secs(10));
        rig.send(&json!({"text": "", "context_id": "a"}));
    }
    assert!(!rig.told(1).contains(&"cancel") && rig.close.is_none());
    assert!(heard(&mut rig).is_empty());
    rig.sleep(Duration::from_secs(21));
    assert_eq!((heard(&mut rig), rig.told(1).last()), (vec![of("final", "a")], Some(&"cancel")));
}

#[test]
fn tokens_are_joined_as_they_come() {
    let path = PIPECAT[0];
    let mut rig = rig([path, "output_format=pcm_24000&auto_mode=false", ""]);
    open(&mut rig, "a");
    for token in ["It", " is", " v1.", "2", " ", "now"] {
        text(&mut rig, "a", token);
    }
    assert_eq!((rig.text(1).as_str(), rig.told(1)), ("It is v1.2 now", vec!["open"]));
}

#[test]
fn a_client_that_leaves_hears_everything_first() {
    let mut rig = rig(PIPECAT);
    phrase(&mut rig, "a", "One.");
    text(&mut rig, "b", "Two.");
    rig.send(&json!({"close_socket": true}));
    text(&mut rig, "c", "Too late.");
    for context in [1, 2] {
        rig.speak(context, 0, 5, true);
        rig.done(context, 2_400);
    }
    let (sound, end) = (|name| of("audio", name), |name| of("final", name));
    assert_eq!(heard(&mut rig), [sound("a"), end("a"), sound("b"), end("b")]);
    assert_eq!(rig.close, Some(1_000));
}

#[test]
fn a_refusal_is_told_and_ended() {
    let mut rig = rig(PIPECAT);
    rig.refuse = Some(engine::Error::Busy { commands: 1 });
    text(&mut rig, "a", "Hello.");
    assert_eq!(heard(&mut rig), [of("error", "a"), of("final", "a")]);
    rig.refuse = None;
    text(&mut rig, "a", "Hello again.");
    assert_eq!((heard(&mut rig), rig.text(2).as_str()), (vec![], "Hello again."));
    rig.input(Input::Message("{".into()));
    assert_eq!((heard(&mut rig), rig.close), (vec![of("error", "")], None));
}

#[test]
fn a_single_stream_ends_with_an_empty_text_and_closes() {
    let mut rig = single("output_format=pcm_24000");
    rig.send(&json!({
        "text": " ", "try_trigger_generation": true, "voice_settings": null,
        "generation_config": {"chunk_length_schedule": [50]},
    }));
    for word in ["Hello ", " ", "there. "] {
        rig.send(&json!({"text": word, "try_trigger_generation": true}));
    }
    rig.send(&json!({"text": ""}));
    assert_eq!((rig.text(1).as_str(), rig.told(1)), ("Hello  there. ", vec!["open", "end"]));
    rig.speak(1, 0, 5, true);
    rig.done(1, 2_400);
    let messages = rig.heard();
    assert_eq!(messages.len(), 2);
    assert!(messages.iter().all(|m| m.get("contextId").is_none()), "one stream has no names");
    assert_eq!(messages[1], json!({"isFinal": true, "audio": null}));
    assert_eq!(rig.close, Some(1_000));
}

#[test]
fn a_single_stream_that_fails_is_closed() {
    let mut rig = single("output_format=pcm_24000");
    rig.refuse = Some(engine::Error::Busy { commands: 1 });
    rig.send(&json!({"text": "Hello. "}));
    assert_eq!(rig.heard()[0]["error"], "overloaded");
    assert_eq!(rig.close, Some(POLICY));
}

#[test]
fn files_are_whole_in_pieces() {
    for (name, starts) in [
        ("opus_48000_32", &b"OggS"[..]),
        #[cfg(feature = "mp3")]
        ("mp3_22050_32", &[0xff, 0xf3]),
        #[cfg(feature = "mp3")]
        ("mp3_44100_128", &[0xff, 0xfb]),
    ] {
        let mut rig = rig([PIPECAT[0], &format!("output_format={name}"), ""]);
        phrase(&mut rig, "a", "Hello.");
        let silence = bytes::Bytes::from(vec![0; 480 * 4]);
        for at in 0..25 {
            let packet = crate::protocol::Packet {
                bytes: silence.clone(),
                duration: 480,
                silent: false,
                last: at == 24,
            };
            let generated = (at + 1) * 480;
            rig.input(Input::Packets { context: 1, packets: vec![packet], generated });
        }
        rig.done(1, 12_000);
        let messages = rig.heard();
        let bytes: Vec<u8> = messages
            .iter()
            .filter_map(|m| m["audio"].as_str())
            .flat_map(|sound| STANDARD.decode(sound).unwrap())
            .collect();
        assert!(bytes.starts_with(starts), "{name}: {:?}", &bytes[..4]);
        assert!(messages.len() > 3, "{name}: {} messages", messages.len());
    }
}

#[test]
fn lists_of_words_are_those_of_the_settings_or_refused_by_their_field() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("words.json");
    std::fs::write(&file, r#"{"nginx": "engine x"}"#).unwrap();
    let mut config = Gateway::default();
    config.lexicon.dictionaries.insert("d_1".into(), file);
    let mut rig = Rig::from(ElevenLabs::multi, PIPECAT, &config);
    let open = |rig: &mut Rig, name: &str, ids: &[&str]| {
        let locators: Vec<Value> = ids
            .iter()
            .map(|id| json!({"pronunciation_dictionary_id": id, "version_id": "v"}))
            .collect();
        rig.send(&json!({
            "text": " ", "context_id": name, "pronunciation_dictionary_locators": locators,
        }));
    };
    open(&mut rig, "a", &["d_1"]);
    open(&mut rig, "b", &[]);
    let said = |rig: &Rig, at| engine::text::sanitize("nginx", &rig.opened(at).0.options);
    assert_eq!((said(&rig, 1).as_str(), said(&rig, 2).as_str()), ("engine x.", "nginx."));
    assert!(heard(&mut rig).is_empty());
    open(&mut rig, "c", &["d_1", "d_2"]);
    let messages = rig.heard();
    let says = messages[0]["message"].as_str().unwrap();
    assert!(says.starts_with("pronunciation_dictionary_locators: \"d_2\" is not there"), "{says}");
    assert_eq!((&messages[0]["contextId"], &messages[1]["isFinal"]), (&json!("c"), &json!(true)));
}

#[test]
fn numbers_stay_as_they_are_where_the_address_wants_it() {
    for (normalization, spoken) in
        [("auto", "Room five."), ("on", "Room five."), ("off", "Room 5.")]
    {
        let query = format!("output_format=pcm_24000&apply_text_normalization={normalization}");
        let mut rig = rig([PIPECAT[0], &query, ""]);
        open(&mut rig, "a");
        assert_eq!(engine::text::sanitize("Room 5", &rig.opened(1).0.options), spoken);
    }
}
