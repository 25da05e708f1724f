//! Speaks one sentence with a bundle and writes it to a file: `cargo run --release -p dovecote-engine --example say`.

use std::fs::File;
use std::path::Path;

use anyhow::Context;
use codecs::wav::{SampleFormat, WavWriter};
use engine::bundle::Bundle;
use engine::{Event, Handle, Options, Request};

fn main() -> anyhow::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let text = arguments.next().unwrap_or_else(|| "Hello there, how can I help you today?".into());
    let file = arguments.next().unwrap_or_else(|| "hello.wav".into());
    let bundle =
        Bundle::open(Path::new("voices/nano")).context("run this in the project's root")?;
    let engine = Handle::start(&[bundle.into()], &Options::default(), &mut |_| {})?;
    let (_, events) = engine.open(Request::whole(text))?;
    let mut sound = Vec::new();
    while let Some(event) = events.recv() {
        match event {
            Event::Audio { samples, .. } => sound.extend(samples),
            Event::Failed(failure) => return Err(failure.into()),
            _ => {}
        }
    }
    let mut writer = WavWriter::new(File::create(file)?, 24_000, SampleFormat::I16, &[])?;
    writer.write(&sound)?;
    writer.finish_file()?;
    Ok(())
}
