//! Contexts: their names, their ends, and what comes behind those.

use super::*;

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
    assert_eq!(socket.json().await["type"], "Error");
    let closed = socket.next().await;
    assert!(
        matches!(&closed, Message::Close(Some(frame)) if &*frame.reason == "DATA-0000"),
        "{closed:?}"
    );

    let mut socket = house.socket(INFERENCE, &[]).await;
    socket.send(&json!({"type": "session.create", "voice": "nobody"})).await;
    assert_eq!(socket.json().await["type"], "session.created");
    socket.send(&json!({"type": "input_transcript", "transcript": "Hello. "})).await;
    let heard = until(&mut socket, is("done")).await;
    assert_eq!((heard.len(), &heard[0]["type"]), (2, &json!("error")));
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
