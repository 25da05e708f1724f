//! Audio codecs: neural decoders, Opus, containers, resampling. Knows neither engine nor gateway.

pub mod conv;
pub mod dualcodec;
pub mod frames;
pub mod math;
pub mod reconstruct;
pub mod vibevoice;
pub mod w2vbert;
pub mod weights;
pub mod window;
