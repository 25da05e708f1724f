//! Sound, and the times of its characters.

use super::*;

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
