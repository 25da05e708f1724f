//! Audio codecs: neural decoders, Opus, containers, resampling. Knows neither engine nor gateway.

pub mod weights;
pub mod window;
