//! ITU-T G.711, the companding of telephony: mu-law and A-law, one byte a sample.
//!
//! Both laws round a 16-bit sample to one of 256 values whose steps double from segment to segment:
//!
//! ```text
//! byte = sign (1 bit) | segment (3 bits) | step (4 bits), stored inverted (mu-law) or xor 0x55 (A-law)
//! ```
//!
//! The codec is pure arithmetic on integers. It knows no rates and holds no state.

/// mu-law adds this to the magnitude (14-bit scale), so that each segment begins at a power of two.
const MU_BIAS: i32 = 33;
/// Largest biased mu-law magnitude, 13 bits.
const MU_MAX: i32 = 0x1fff;
/// A-law inverts every other bit, so that silence has many transitions on the line.
const A_MASK: u8 = 0x55;
const POSITIVE: u8 = 0x80;

/// The mu-law byte of a 16-bit sample.
pub fn mulaw_encode(sample: i16) -> u8 {
    let biased = (magnitude(sample) >> 2) + MU_BIAS;
    let biased = biased.min(MU_MAX);
    // A biased magnitude has 6 bits in segment 0 and one more in each further segment.
    let segment = 26 - biased.leading_zeros();
    let step = (biased >> (segment + 1)) & 0x0f;
    let code = ((segment as u8) << 4) | step as u8;
    (!code & 0x7f) | sign(sample)
}

/// The 16-bit sample of a mu-law byte.
pub fn mulaw_decode(byte: u8) -> i16 {
    let code = !byte;
    let (segment, step) = (i32::from((code >> 4) & 7), i32::from(code & 0x0f));
    // Middle of the step: 2 step + 33 half steps, doubled by each segment, less the bias.
    let magnitude = (((2 * step + MU_BIAS) << segment) - MU_BIAS) << 2;
    signed(byte, magnitude)
}

/// The A-law byte of a 16-bit sample.
pub fn alaw_encode(sample: i16) -> u8 {
    let magnitude = magnitude(sample) >> 4;
    // Segments 0 and 1 share a step size; from 32 on each segment has one bit more.
    let segment = 28_u32.saturating_sub((magnitude | 0x0f).leading_zeros());
    let step = (magnitude >> segment.saturating_sub(1)) & 0x0f;
    let code = ((segment as u8) << 4) | step as u8;
    (code | sign(sample)) ^ A_MASK
}

/// The 16-bit sample of an A-law byte.
pub fn alaw_decode(byte: u8) -> i16 {
    let code = byte ^ A_MASK;
    let (segment, step) = (i32::from((code >> 4) & 7), i32::from(code & 0x0f));
    // Middle of the step; all segments but the first have a leading one.
    let magnitude = match segment {
        0 => (step << 4) + 8,
        _ => ((step << 4) + 0x108) << (segment - 1),
    };
    signed(code, magnitude)
}

/// Magnitude in one's complement, as the ITU's reference has it: the two signs then share their thresholds.
fn magnitude(sample: i16) -> i32 {
    i32::from(if sample < 0 { !sample } else { sample })
}

fn sign(sample: i16) -> u8 {
    if sample < 0 { 0 } else { POSITIVE }
}

fn signed(byte: u8, magnitude: i32) -> i16 {
    let value = if byte & POSITIVE == 0 { -magnitude } else { magnitude };
    i16::try_from(value).expect("the largest magnitude of either law is 32,256; this is a bug")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// G.711 tables 1a and 2a: the decoder output values at the ends of each segment, on the 16-bit scale.
    const MU_SEGMENT_START: [i16; 8] = [0, 132, 396, 924, 1980, 4092, 8316, 16764];
    const A_SEGMENT_START: [i16; 8] = [8, 264, 528, 1056, 2112, 4224, 8448, 16896];

    #[test]
    fn mulaw_decodes_to_the_values_of_the_recommendation() {
        for byte in 0..=255_u8 {
            let (segment, step) = (usize::from((!byte >> 4) & 7), i16::from(!byte & 0x0f));
            let value = MU_SEGMENT_START[segment] + step * (8 << segment);
            let expected = if byte & 0x80 == 0 { -value } else { value };
            assert_eq!(mulaw_decode(byte), expected, "{byte:#x}");
        }
        assert_eq!(mulaw_decode(0x80), 32_124);
        assert_eq!(mulaw_decode(0x00), -32_124);
    }

    #[test]
    fn alaw_decodes_to_the_values_of_the_recommendation() {
        for byte in 0..=255_u8 {
            let code = byte ^ 0x55;
            let (segment, step) = (usize::from((code >> 4) & 7), i16::from(code & 0x0f));
            let value = A_SEGMENT_START[segment] + step * (16 << segment.saturating_sub(1));
            let expected = if code & 0x80 == 0 { -value } else { value };
            assert_eq!(alaw_decode(byte), expected, "{byte:#x}");
        }
        assert_eq!(alaw_decode(0xaa), 32_256);
        assert_eq!(alaw_decode(0x2a), -32_256);
    }

    #[test]
    fn all_codes_survive_the_round_trip() {
        for byte in 0..=255_u8 {
            assert_eq!(alaw_encode(alaw_decode(byte)), byte);
            // mu-law has two zeros; the positive one is the canonical form.
            let canonical = if byte == 0x7f { 0xff } else { byte };
            assert_eq!(mulaw_encode(mulaw_decode(byte)), canonical);
        }
    }

    #[test]
    fn every_sample_lies_within_half_a_step_of_its_value() {
        // Half steps of the eight segments; the last segment's step is also where clipping begins.
        let mu_half = |byte: u8| 4 << ((!byte >> 4) & 7);
        let a_half = |byte: u8| 8 << (((byte ^ 0x55) >> 4) & 7).saturating_sub(1);
        for sample in i16::MIN..=i16::MAX {
            let distance = |value: i16| (i32::from(sample) - i32::from(value)).abs();
            let (mu, a) = (mulaw_encode(sample), alaw_encode(sample));
            let mu_clips = sample.unsigned_abs() > 32_124;
            assert!(mu_clips || distance(mulaw_decode(mu)) <= mu_half(mu), "{sample}");
            assert!(distance(alaw_decode(a)) <= a_half(a), "{sample}");
        }
    }

    #[test]
    fn encoding_is_monotone_and_clips() {
        for (encode, decode) in [
            (mulaw_encode as fn(i16) -> u8, mulaw_decode as fn(u8) -> i16),
            (alaw_encode, alaw_decode),
        ] {
            let all: Vec<i16> = (i16::MIN..=i16::MAX).map(|s| decode(encode(s))).collect();
            assert!(all.is_sorted());
        }
        assert_eq!(mulaw_encode(i16::MAX), 0x80);
        assert_eq!(alaw_encode(i16::MIN), 0x2a);
        assert_eq!((mulaw_encode(0), alaw_encode(0)), (0xff, 0xd5));
    }
}
