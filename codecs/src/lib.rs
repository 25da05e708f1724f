//! Audio codecs: neural decoders, Opus, MP3, FLAC, containers, resampling. Knows neither engine nor gateway.

mod codebook;
pub mod codes;
pub mod conv;
pub mod dac;
pub mod dualcodec;
pub mod flac;
pub mod frames;
pub mod g711;
pub mod limited;
pub mod math;
pub mod mp3;
pub mod nano;
pub mod ogg;
pub mod opus;
pub mod pcm;
pub mod reconstruct;
pub mod recording;
pub mod resample;
pub mod seanet;
pub mod streaming;
pub mod vibevoice;
pub mod w2vbert;
pub mod wav;
pub mod weights;
pub mod window;
pub mod xcodec;
