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
    _stderr: BufReader<ChildStderr>,
}

fn start(command: &mut Command) -> Server {
    let mut process = command.stderr(Stdio::piped()).spawn().unwrap();
    let mut stderr = BufReader::new(process.stderr.take().unwrap());
    let listening = |line: String| Some(line.strip_prefix("listening on http://")?.to_owned());
    let address = (&mut stderr).lines().find_map(|line| listening(line.unwrap()));
    Server { process, address: address.expect("it says where it listens"), _stderr: stderr }
}

fn status(address: &str, path: &str) -> u16 {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    write!(stream, "GET {path} HTTP/1.0\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer.split(' ').nth(1).unwrap().parse().unwrap()
}

#[test]
fn it_is_the_default_command_gets_ready_and_ends_on_a_signal() {
    // No command is named; the address comes from the environment.
    let mut command = dovecote(&repository(""));
    let mut server = start(command.env("DOVECOTE_LISTEN", "127.0.0.1:0"));
    assert_eq!(status(&server.address, "/healthz"), 200);
    while status(&server.address, "/readyz") != 200 {
        std::thread::sleep(Duration::from_millis(20));
    }
    let pid = server.process.id().to_string();
    assert!(Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
    assert_eq!(server.process.wait().unwrap().code(), Some(0));
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
    assert!(stderr(&output).contains(&server.address));
}

#[test]
fn a_stub_speaks_without_a_bundle_and_is_controlled_from_here_only() {
    let stub = ["serve", "--listen", "127.0.0.1:0", "--engine", "stub-live", "--control"];
    let elsewhere = tempfile::tempdir().unwrap();
    let mut command = dovecote(elsewhere.path());
    let mut server = start(command.args(stub).arg("127.0.0.1:0"));
    let control = |line: String| Some(line.strip_prefix("control address http://")?.to_owned());
    let control = (&mut server._stderr).lines().find_map(|line| control(line.unwrap())).unwrap();
    while status(&server.address, "/readyz") != 200 {
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!((status(&control, "/state"), status(&control, "/contexts?seed=1")), (200, 200));
    server.process.kill().unwrap();
    server.process.wait().unwrap();
    let output = run(dovecote(elsewhere.path()).args(stub).arg("0.0.0.0:0"));
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("from this machine only"));
    let output = run(dovecote(&repository("")).args(["serve", "--control", "127.0.0.1:0"]));
    assert!(stderr(&output).contains("--engine stub"));
}
