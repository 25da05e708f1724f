//! Audio codecs: neural decoders, Opus, containers, resampling. Knows neither engine nor gateway.

pub mod conv;
pub mod frames;
pub mod math;
pub mod vibevoice;
pub mod weights;
pub mod window;
