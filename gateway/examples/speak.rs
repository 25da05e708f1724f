//! Speaks what comes on standard input, line by line as it comes, and writes PCM (24 kHz, 16 bit, mono) to standard
//! output.
//!
//! `cargo run --release`, then beside it:
//! `fortune | cargo run --release --example speak -- http://127.0.0.1:8080 | aplay -r 24000 -f S16_LE`

use std::io::Write;

use anyhow::{Context, Result};
use gateway::client::{AudioOptions, Event, Opening, Session, SessionOptions, Target};
use gateway::protocol::Codec;
use tokio::io::{AsyncBufReadExt, BufReader, stdin};

const CTX: &str = "stdin";

#[tokio::main]
async fn main() -> Result<()> {
    let url = std::env::args().nth(1).context("usage: speak URL [KEY]")?;
    let target = match std::env::args().nth(2) {
        Some(key) => Target::new(&url)?.with_key(key),
        None => Target::new(&url)?,
    };
    let audio = AudioOptions { codec: Some(Codec::PcmS16le), ..AudioOptions::default() };
    let options = SessionOptions { audio: Some(audio), ..SessionOptions::default() };
    let mut session = Session::connect(&target, &options).await?;
    session.open(CTX, &Opening::default()).await?;

    let mut lines = BufReader::new(stdin()).lines();
    let mut is_open = true;
    loop {
        tokio::select! {
            line = lines.next_line(), if is_open => match line? {
                Some(line) => session.text(CTX, &format!("{line}\n")).await?,
                None => {
                    session.end(CTX).await?;
                    is_open = false;
                }
            },
            event = session.next() => match event? {
                Event::Audio(frame) => {
                    for packet in frame.packets() {
                        std::io::stdout().write_all(&packet)?;
                    }
                }
                Event::Error(error) => eprintln!("{error}"),
                Event::Done(_) | Event::Cancelled(_) | Event::Closed(_) => break,
                _ => {}
            },
        }
    }
    std::io::stdout().flush()?;
    Ok(())
}
