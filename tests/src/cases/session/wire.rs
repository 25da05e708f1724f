//! WebSocket frames as bytes, written here once more: a runner that shares the server's library would share its faults.
//!
//! ```text
//! first byte fin | rsv1..3 | opcode    second byte mask | length    [2 or 8 bytes of length] [4 bytes of mask] payload
//! ```

/// What a frame is.
pub(super) mod opcode {
    pub(crate) const CONTINUATION: u8 = 0;
    pub(crate) const TEXT: u8 = 1;
    pub(crate) const BINARY: u8 = 2;
    pub(crate) const CLOSE: u8 = 8;
    pub(crate) const PING: u8 = 9;
    pub(crate) const PONG: u8 = 10;
}

/// Set in the first byte of a message's last frame.
pub(super) const FIN: u8 = 0x80;
/// Set in the first byte of a frame that an extension has changed.
pub(super) const RSV1: u8 = 0x40;
/// The mask may be any; this one shows that it is undone.
const MASK: [u8; 4] = [0x5a, 0x11, 0xc3, 0x7e];

/// A frame of the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Frame {
    pub(super) first: u8,
    pub(super) payload: Vec<u8>,
}

/// A masked frame.
pub(super) fn encode(first: u8, payload: &[u8]) -> Vec<u8> {
    let mut bytes = vec![first];
    match payload.len() {
        n @ 0..126 => bytes.push(0x80 | n as u8),
        n @ 126..65_536 => {
            bytes.push(0x80 | 126);
            bytes.extend((n as u16).to_be_bytes());
        }
        n => {
            bytes.push(0x80 | 127);
            bytes.extend((n as u64).to_be_bytes());
        }
    }
    bytes.extend(MASK);
    bytes.extend(payload.iter().zip(MASK.iter().cycle()).map(|(byte, mask)| byte ^ mask));
    bytes
}

/// The frame at the start of what has arrived, and its length; `None`: it is not complete.
pub(super) fn decode(bytes: &[u8]) -> Option<(Frame, usize)> {
    let (&first, &second) = (bytes.first()?, bytes.get(1)?);
    let (length, head) = match second & 0x7f {
        126 => (u64::from(u16::from_be_bytes(bytes.get(2..4)?.try_into().ok()?)), 4),
        127 => (u64::from_be_bytes(bytes.get(2..10)?.try_into().ok()?), 10),
        short => (u64::from(short), 2),
    };
    let end = head + usize::try_from(length).ok()?;
    let payload = bytes.get(head..end)?.to_vec();
    Some((Frame { first, payload }, end))
}

/// Zeros as a raw deflate stream: one block of fixed codes, a literal and runs of 258.
pub(super) fn deflated_zeros(bytes: usize) -> Vec<u8> {
    let mut bits = Bits::default();
    // Last block, fixed codes; literal 0.
    bits.put(0b011, 3);
    bits.put_code(0b0011_0000, 8);
    for _ in 0..bytes.saturating_sub(1) / 258 {
        // Length 258, then distance 1.
        bits.put_code(0b1100_0101, 8);
        bits.put_code(0, 5);
    }
    bits.put_code(0, 7);
    bits.bytes
}

/// Bits from the lowest of each byte on.
#[derive(Default)]
struct Bits {
    bytes: Vec<u8>,
    used: usize,
}

impl Bits {
    fn put(&mut self, value: u32, count: usize) {
        for bit in 0..count {
            if self.used.is_multiple_of(8) {
                self.bytes.push(0);
            }
            let at = self.used / 8;
            self.bytes[at] |= ((value >> bit & 1) as u8) << (self.used % 8);
            self.used += 1;
        }
    }

    /// Codes stand with their highest bit first.
    fn put_code(&mut self, value: u32, count: usize) {
        self.put(value.reverse_bits() >> (32 - count), count);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_of_every_length_are_read_back() {
        for length in [0, 125, 126, 65_535, 65_536] {
            let payload: Vec<u8> = (0..length).map(|i| i as u8).collect();
            let mut bytes = encode(FIN | opcode::TEXT, &payload);
            // A server's frame has no mask.
            let head = bytes.len() - payload.len() - 4;
            bytes[1] &= 0x7f;
            let masked = bytes.split_off(head);
            bytes.extend(masked[4..].iter().zip(MASK.iter().cycle()).map(|(b, m)| b ^ m));
            assert_eq!(decode(&bytes[..bytes.len() - 1]), None);
            let (frame, end) = decode(&bytes).unwrap();
            assert_eq!((frame.first, frame.payload, end), (0x81, payload, bytes.len()));
        }
    }
}
