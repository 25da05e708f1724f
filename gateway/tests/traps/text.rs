//! Texts and the messages that they come in.

use super::*;

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
