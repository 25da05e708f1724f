//! `dovecote serve` from the outside: where it listens, what it refuses, how it ends.

#![expect(clippy::unwrap_used, reason = "a test that cannot set itself up should stop")]

mod common;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, ChildStderr, Command, Stdio};
use std::time::Duration;

use common::{dovecote, repository, run, stderr};

/// Longest wait for an answer or an end.
const PATIENCE: Duration = Duration::from_secs(60);

/// A server under way. Its standard error stays open, as a terminal would.
struct Server {
    process: Child,
    address: String,
    stderr: BufReader<ChildStderr>,
}

fn start(command: &mut Command) -> Server {
    let mut process = command.stderr(Stdio::piped()).spawn().unwrap();
    let mut stderr = BufReader::new(process.stderr.take().unwrap());
    let listening = |line: String| Some(line.strip_prefix("listening on http://")?.to_owned());
    let address = (&mut stderr).lines().find_map(|line| listening(line.unwrap()));
    Server { process, address: address.expect("it says where it listens"), stderr }
}

fn status(address: &str, path: &str) -> u16 {
    ask(address, path, "")
}

/// The status of the answer to a request with more headers.
fn ask(address: &str, path: &str, headers: &str) -> u16 {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{headers}\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer.split(' ').nth(1).unwrap().parse().unwrap()
}

/// Until a server is ready: it says so only when it is asked.
fn until_ready(address: &str) {
    while status(address, "/readyz") != 200 {
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn it_is_the_default_command_gets_ready_and_ends_on_a_signal() {
    // No command is named; the address comes from the environment.
    let mut command = dovecote(&repository(""));
    let mut server = start(command.env("DOVECOTE_LISTEN", "127.0.0.1:0"));
    assert_eq!(status(&server.address, "/healthz"), 200);
    until_ready(&server.address);
    assert_eq!(status(&server.address, "/v1/voices"), 200);
    let pid = server.process.id().to_string();
    assert!(Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
    let mut log = String::new();
    server.stderr.read_to_string(&mut log).unwrap();
    assert_eq!(server.process.wait().unwrap().code(), Some(0));
    assert!(log.contains("route=\"/v1/voices\"") && !log.contains('\x1b'), "{log}");
}

#[test]
fn it_does_not_listen_to_the_world_without_keys() {
    let output = run(dovecote(&repository("")).args(["serve", "--listen", "0.0.0.0:0"]));
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("--insecure-open"));
}

#[test]
fn an_address_that_is_taken_is_told() {
    let mut server = start(dovecote(&repository("")).args(["serve", "--listen", "127.0.0.1:0"]));
    let output = run(dovecote(&repository("")).args(["serve", "--listen", &server.address]));
    server.process.kill().unwrap();
    server.process.wait().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let told = stderr(&output);
    assert!(told.contains(&server.address), "{told}");
    assert_eq!(told.lines().count(), 1, "no model was loaded before: {told}");
}

#[test]
fn a_stub_speaks_without_a_bundle_and_is_controlled_from_here_only() {
    let stub = ["serve", "--listen", "127.0.0.1:0", "--engine", "stub-live", "--control"];
    let elsewhere = tempfile::tempdir().unwrap();
    let mut command = dovecote(elsewhere.path());
    let mut server = start(command.args(stub).arg("127.0.0.1:0"));
    let control = |line: String| Some(line.strip_prefix("control address http://")?.to_owned());
    let control = (&mut server.stderr).lines().find_map(|line| control(line.unwrap())).unwrap();
    until_ready(&server.address);
    assert_eq!((status(&control, "/state"), status(&control, "/contexts?seed=1")), (200, 200));
    server.process.kill().unwrap();
    server.process.wait().unwrap();
    let output = run(dovecote(elsewhere.path()).args(stub).arg("0.0.0.0:0"));
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("from this machine only"));
    let output = run(dovecote(&repository("")).args(["serve", "--control", "127.0.0.1:0"]));
    assert!(stderr(&output).contains("--engine stub"));
}

#[test]
fn a_drawn_key_opens_and_no_key_shows_in_the_log() {
    let folder = tempfile::tempdir().unwrap();
    let drawn = run(dovecote(folder.path()).args(["key", "agents"]));
    let key = stderr(&drawn).split(' ').next().unwrap().to_owned();
    std::fs::write(folder.path().join("keys.toml"), &drawn.stdout).unwrap();
    let mut command = dovecote(folder.path());
    command.args(["serve", "--verbose", "--listen", "127.0.0.1:0", "--keys-file", "keys.toml"]);
    let mut server = start(command.env("RUST_LOG", "debug").env("DOVECOTE_LOG_FORMAT", "json"));
    let marked = |path: &str, header: &str| ask(&server.address, path, header);
    assert_eq!(marked("/v1/voices", &format!("Authorization: Bearer {key}\r\n")), 200);
    assert_eq!(marked("/v1/voices", "Authorization: Bearer WRONG-MARKER\r\n"), 401);
    assert_eq!(marked("/v1/voices", "xi-api-key: WRONG-MARKER\r\n"), 401);
    assert_eq!(marked("/v1/voices?token=WRONG-MARKER&api_key=WRONG-MARKER", ""), 401);
    let upgrade = "Connection: upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
        Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\
        Sec-WebSocket-Protocol: dovecote.v1, dovecote.token.WRONG-MARKER\r\n";
    assert_eq!(marked("/v1/tts/stream", upgrade), 401);
    let pid = server.process.id().to_string();
    assert!(Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
    let mut log = String::new();
    server.stderr.read_to_string(&mut log).unwrap();
    assert_eq!(server.process.wait().unwrap().code(), Some(0));
    assert!(log.contains("finishing what was begun"), "{log}");
    assert!(!log.contains("MARKER") && !log.contains(&key), "{log}");
}
