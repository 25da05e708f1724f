//! LiveKit Inference's clients on a real socket, with the bundled voice: turns, sockets that close, tokens.

mod house;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use gateway::config::{Gateway, Secret};
use hmac::{Hmac, Mac};
use house::{House, Socket, status};
use serde_json::{Value, json};
use sha2::Sha256;

const PATH: &str = "/v1/tts?model=cartesia%2Fsonic-3";
const SECRET: &str = "a secret of a project";
/// The end of all time, in seconds.
const NEVER: u64 = 99_999_999_999;

/// The token of a client of the project `APIone`.
fn token(expires_s: u64, secret: &str) -> String {
    let claims = json!({"iss": "APIone", "sub": "agent", "nbf": 1, "exp": expires_s,
        "inference": {"perform": true}});
    let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
    let signed = format!("{}.{}", part(&json!({"alg": "HS256", "typ": "JWT"})), part(&claims));
    let mac = Hmac::<Sha256>::new_from_slice(secret.as_bytes()).expect("any key will do");
    let signature = mac.chain_update(&signed).finalize().into_bytes();
    format!("Bearer {signed}.{}", URL_SAFE_NO_PAD.encode(signature))
}

async fn begin(house: &House, headers: &[(&str, &str)]) -> Socket {
    let mut socket = house.socket(PATH, headers).await;
    socket
        .send(&json!({
            "type": "session.create", "sample_rate": "24000", "encoding": "pcm_s16le",
            "model": "cartesia/sonic-3", "voice": "71a7ad14", "language": "en", "extra": {},
        }))
        .await;
    assert_eq!(socket.json().await["type"], "session.created");
    socket
}

async fn say(socket: &mut Socket, transcript: &str) {
    let config = json!({"model": "cartesia/sonic-3", "voice": "71a7ad14", "language": "en"});
    let message = json!({"type": "input_transcript", "transcript": transcript,
        "generation_config": config, "extra": {}});
    socket.send(&message).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn turns_are_heard_one_after_the_other() {
    let house = House::open().await;
    let mut socket = begin(&house, &[]).await;
    for text in ["Hello there. How are you?", "Good."] {
        for sentence in text.split_inclusive(". ") {
            say(&mut socket, sentence).await;
        }
        socket.send(&json!({"type": "session.flush"})).await;
        let (mut bytes, mut words) = (0, Vec::new());
        loop {
            let message = socket.json().await;
            match message["type"].as_str().expect("a type") {
                "output_audio" => {
                    let sound = STANDARD.decode(message["audio"].as_str().expect("sound"));
                    bytes += sound.expect("base64").len();
                }
                "output_alignment" => words.extend(message["words"].as_array().cloned()),
                "done" => break,
                other => panic!("{other}"),
            }
        }
        let words = words.concat();
        let texts: Vec<&str> = words.iter().map(|w| w["word"].as_str().expect("text")).collect();
        assert_eq!(texts.join(" "), text);
        let end = words.last().and_then(|w| w["end"].as_f64()).expect("a time");
        assert!(end > 0.0 && end <= bytes as f64 / 48_000.0);
    }
    house.until_idle().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_socket_that_closes_is_a_barge_in() {
    let house = House::open().await;
    let mut socket = begin(&house, &[]).await;
    say(&mut socket, "The quick brown fox jumps over the lazy dog while the old clock ticks. ")
        .await;
    assert_eq!(socket.json().await["type"], "output_audio");
    socket.close().await;
    house.until_idle().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn only_the_tokens_of_a_known_project_open() {
    let mut config = Gateway::default();
    config.livekit.secrets.insert("APIone".into(), Secret::new(SECRET));
    let house = House::with(config).await;
    let tokens = [token(NEVER, "another"), token(1_000, SECRET), "Bearer APIone".into()];
    for wrong in &tokens {
        let head = house.handshake(PATH, &[("Authorization", wrong)]).await;
        assert_eq!(status(&head), 401, "{head}");
        assert!(!head.contains(&wrong["Bearer ".len()..]), "nothing of it is told");
    }
    assert_eq!(status(&house.handshake(PATH, &[]).await), 401);
    begin(&house, &[("Authorization", &token(NEVER, SECRET))]).await;
}
