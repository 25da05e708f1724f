//! What one live stream costs in sound: the nano decoder, Opus packets, resampling.
//!
//! The budget: nano's whole pipeline at a real-time factor of 0.05 on one core, of which the codec may take 0.01, that
//! is 10 ms for a second of sound; and a 20 ms Opus packet in well under 1 ms.

use std::path::Path;

use codecs::nano::{Nano, NanoStream};
use codecs::opus::{Decoder, Encoder, EncoderConfig};
use codecs::resample::Resampler;
use codecs::weights::Weights;
use codecs::window::{FRAME_SAMPLES, Window};
use divan::Bencher;
use divan::counter::ItemsCount;

fn main() {
    divan::main();
}

fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
}

fn nano() -> Nano {
    Nano::load(&root().join("voices/nano/codec"), 1.5).expect("the bundled voice")
}

/// 3.04 s of speech.
fn codes() -> Vec<Vec<u16>> {
    let golden = root().join("tests/fixtures/nano/golden.safetensors");
    let codes = Weights::open(&golden).and_then(|w| w.ints("t1.codes")).expect("the fixture");
    codes.chunks(codes.len() / 4).map(|row| row.iter().map(|&c| c as u16).collect()).collect()
}

fn speech() -> Vec<f32> {
    nano().decode(&codes(), 1).expect("the fixture's codes")
}

/// One window of a live stream with 5 frames of context on each side: time for the whole window. Divided by the
/// seconds that go out (5 frames: 0.4 s, 25 frames: 2 s) it is the real-time factor.
#[divan::bench(args = [5, 25])]
fn nano_window(bencher: Bencher, emitted_frames: usize) {
    let (nano, codes) = (nano(), codes());
    let window = Window { decode: 0..emitted_frames + 10, emit: 5..emitted_frames + 5 };
    let rows: Vec<&[u16]> = codes.iter().map(|row| &row[window.decode.clone()]).collect();
    let mut stream = NanoStream::new(1);
    bencher
        .counter(ItemsCount::new(emitted_frames * FRAME_SAMPLES))
        .bench_local(|| nano.window(&mut stream, &rows, &window));
}

/// Packets of 20 ms at 24 kHz and 32 kbit/s; time for one.
#[divan::bench(args = [0, 5, 10])]
fn opus_encode_packet(bencher: Bencher, complexity: u32) {
    let config = EncoderConfig { complexity, ..EncoderConfig::default() };
    let mut encoder = Encoder::new(&config).expect("known settings");
    let speech = speech();
    let mut packets = speech.chunks_exact(480).cycle();
    bencher.bench_local(|| encoder.push(packets.next().expect("a cycle")));
}

/// The same packets decoded at 24 kHz; time for one.
#[divan::bench]
fn opus_decode_packet(bencher: Bencher) {
    let mut encoder = Encoder::new(&EncoderConfig::default()).expect("known settings");
    let packets = encoder.push(&speech()).expect("speech");
    let mut decoder = Decoder::new(24_000).expect("known rate");
    let mut packets = packets.iter().cycle();
    bencher.bench_local(|| decoder.decode(packets.next().expect("a cycle")).map(<[f32]>::len));
}

/// One second from 24 kHz.
#[divan::bench(args = [8_000, 22_050, 44_100, 48_000])]
fn resample_second(bencher: Bencher, out_rate: u32) {
    let mut resampler = Resampler::new(24_000, out_rate).expect("known rates");
    let speech = speech();
    let mut out = Vec::with_capacity(50_000);
    bencher.bench_local(|| {
        out.clear();
        resampler.push(&speech[..24_000], &mut out);
        out.len()
    });
}
