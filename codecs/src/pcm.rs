//! PCM between `f32` (full scale ±1) and 16-bit integers, and the size of its packets. Knows no containers.

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

/// 32-bit little-endian floats as samples; what is left of a broken one is dropped.
pub fn f32_le(bytes: &[u8]) -> impl Iterator<Item = f32> {
    bytes.chunks_exact(4).map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]]))
}

/// Samples of a packet of `frame_ms` at `sample_rate` Hz; none when they are not whole, as 10 ms at 22,050 Hz are not.
pub fn packet_samples(sample_rate: u32, frame_ms: u32) -> Option<usize> {
    let thousandths = u64::from(sample_rate) * u64::from(frame_ms);
    thousandths.is_multiple_of(1_000).then_some((thousandths / 1_000) as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_are_whole_samples_or_refused() {
        assert_eq!(packet_samples(24_000, 20), Some(480));
        assert_eq!(packet_samples(44_100, 10), Some(441));
        assert_eq!(packet_samples(22_050, 20), Some(441));
        assert_eq!(packet_samples(22_050, 10), None);
    }

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
        assert_eq!(f32_le(&bytes[4..]).collect::<Vec<f32>>(), [1.0]);
    }
}
