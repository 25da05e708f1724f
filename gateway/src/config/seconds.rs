//! Durations in settings: a number of seconds, which may have a fraction. For `#[serde(with = "seconds")]`.

use std::time::Duration;

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serializer};

pub(crate) fn serialize<S: Serializer>(span: &Duration, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_f64(span.as_secs_f64())
}

pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Duration, D::Error> {
    let seconds = f64::deserialize(from)?;
    Duration::try_from_secs_f64(seconds).map_err(|e| D::Error::custom(format!("{seconds}: {e}")))
}
