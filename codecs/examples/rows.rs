//! How much each row of codes adds to the nano codec: decodes the held-out codes with their first 1, 2, 3 and 4 rows, into
//! DIR/1 .. DIR/4, for `tests/asr/judge.py`: `cargo run --release -p dovecote-codecs --example rows -- DIR`.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use anyhow::Context;
use codecs::nano::Nano;
use codecs::wav::{SampleFormat, WavWriter};

/// The bundle's gain.
const GAIN: f32 = 1.5;

#[derive(serde::Deserialize)]
struct Sentence {
    codes: Vec<Vec<u16>>,
}

fn main() -> anyhow::Result<()> {
    let folder = PathBuf::from(std::env::args().nth(1).context("name a folder")?);
    let lines = fs::read_to_string("tests/fixtures/nano/heldout_words.jsonl")
        .context("run this in the project's root")?;
    for rows in 1..=4 {
        let codec = Nano::load(Path::new("voices/nano/codec"), GAIN)?.with_rows(rows);
        let folder = folder.join(rows.to_string());
        fs::create_dir_all(&folder)?;
        for (number, line) in lines.lines().enumerate() {
            let sentence: Sentence = serde_json::from_str(line)?;
            let sound = codec.decode(&sentence.codes[..rows], 0)?;
            let file = File::create(folder.join(format!("{number:04}.wav")))?;
            let mut writer = WavWriter::new(file, 24_000, SampleFormat::I16, &[])?;
            writer.write(&sound)?;
            writer.finish_file()?;
        }
    }
    Ok(())
}
