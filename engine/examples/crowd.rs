//! Speaks the same story alone and in a crowd, and prints how much faster a crowd is made:
//! `cargo run --release -p dovecote-engine --example crowd -- 32 2`.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::Context;
use engine::bundle::Bundle;
use engine::{Event, Handle, Options, Request, Segments};

const STORY: &str = "The bakery on the corner opens at seven in the morning. Fresh bread is ready a little later, \
    and the coffee is always hot. On Sundays there are small cakes as well, so come early.";

#[expect(clippy::disallowed_methods, reason = "an example that measures")]
fn main() -> anyhow::Result<()> {
    let mut numbers = std::env::args().skip(1).map(|a| a.parse::<usize>());
    let crowd = numbers.next().transpose()?.unwrap_or(32);
    let threads = numbers.next().transpose()?.unwrap_or(2);
    let bundle =
        Bundle::open(Path::new("voices/nano")).context("run this in the project's root")?;
    let options = Options { threads, ..Options::default() };
    let engine = Handle::start(&[bundle.into()], &options, &mut |_| {})?;
    speak(&engine, 1)?;
    for contexts in [1, crowd] {
        let start = Instant::now();
        let (audio, first) = speak(&engine, contexts)?;
        let wall = start.elapsed();
        let speed = audio.as_secs_f64() / wall.as_secs_f64();
        println!(
            "{contexts:3} contexts, {threads} threads: {:6.1} s of audio in {:5.2} s, {speed:6.1} times real time, \
             first audio of the last {} ms",
            audio.as_secs_f64(),
            wall.as_secs_f64(),
            first.as_millis(),
        );
    }
    println!("{:?}", engine.stats());
    Ok(())
}

/// Audio made, and when the last of the contexts had its first.
#[expect(clippy::disallowed_methods, reason = "an example that measures")]
fn speak(engine: &Handle, contexts: usize) -> anyhow::Result<(Duration, Duration)> {
    let start = Instant::now();
    let request = |seed| Request {
        seed,
        segments: Segments::Frames,
        first_frames: 10,
        ..Request::whole(STORY)
    };
    let opened = (0..contexts).map(|i| engine.open(request(i as u64)));
    let opened = opened.collect::<Result<Vec<_>, _>>()?;
    let mut samples = 0;
    let mut last_first = Duration::ZERO;
    for (_, events) in &opened {
        let mut first = true;
        while let Some(event) = events.recv() {
            match event {
                Event::Audio { samples: new, .. } => {
                    if std::mem::take(&mut first) {
                        last_first = last_first.max(start.elapsed());
                    }
                    samples += new.len() as u64;
                }
                Event::Failed(failure) => return Err(failure.into()),
                _ => {}
            }
        }
    }
    Ok((engine::pipeline::sounding(samples), last_first))
}
