//! PCM between `f32` (full scale ±1) and 16-bit integers. Knows neither rates nor containers.

/// One full-scale step of 16-bit audio: `1.0` is 32,768 steps, so every `i16` survives the way there and back.
const SCALE: f32 = 32_768.0;

/// Nearest 16-bit value of a sample; beyond full scale it clips, and NaN is silence.
#[inline]
pub fn to_i16(sample: f32) -> i16 {
    // A float-to-integer cast saturates, which is the clipping.
    (sample * SCALE).round_ties_even() as i16
}

/// The sample of a 16-bit value, in [-1, 1).
#[inline]
pub fn from_i16(value: i16) -> f32 {
    f32::from(value) / SCALE
}

/// Appends samples to `bytes` as 16-bit little-endian PCM.
pub fn extend_i16_le(bytes: &mut Vec<u8>, samples: &[f32]) {
    bytes.extend(samples.iter().flat_map(|&s| to_i16(s).to_le_bytes()));
}

/// Appends samples to `bytes` as 32-bit little-endian floats.
pub fn extend_f32_le(bytes: &mut Vec<u8>, samples: &[f32]) {
    bytes.extend(samples.iter().flat_map(|s| s.to_le_bytes()));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_integer_survives_the_round_trip() {
        for value in i16::MIN..=i16::MAX {
            assert_eq!(to_i16(from_i16(value)), value);
        }
    }

    #[test]
    fn beyond_full_scale_clips() {
        assert_eq!(to_i16(1.0), i16::MAX);
        assert_eq!(to_i16(7.0), i16::MAX);
        assert_eq!(to_i16(-1.0), i16::MIN);
        assert_eq!(to_i16(f32::NEG_INFINITY), i16::MIN);
        assert_eq!(to_i16(f32::NAN), 0);
    }

    #[test]
    fn bytes_are_little_endian() {
        let mut bytes = Vec::new();
        extend_i16_le(&mut bytes, &[0.5, -1.0]);
        extend_f32_le(&mut bytes, &[1.0]);
        assert_eq!(bytes, [0x00, 0x40, 0x00, 0x80, 0x00, 0x00, 0x80, 0x3f]);
    }
}
