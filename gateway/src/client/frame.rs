//! Sound on the wire: the 20-byte header, and the packets behind it.
//!
//! ```text
//! 01 flags count(2) handle(4) seq(4) pos(8) | packet                            big-endian
//! 01 flags count(2) handle(4) seq(4) pos(8) | length(2) x count | packets       flag 0x10
//! ```

use bytes::{Buf, Bytes};

/// Bytes of the header.
const HEADER: usize = 20;
/// The only kind of binary frame that a server sends.
const KIND_AUDIO: u8 = 1;
/// The only kind that a client sends.
const KIND_INCOMING: u8 = 2;

/// A binary frame of the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AudioFrame {
    /// What else is known about it, see [`AudioFrame::has`].
    pub flags: u8,
    /// Packets in it.
    pub count: u16,
    /// Its context, as told by `context.opened`.
    pub handle: u32,
    /// Number of its first packet in the context.
    pub seq: u32,
    /// Position of its first sample on the context's media clock.
    pub pos: u64,
    payload: Bytes,
}

/// A bit of [`AudioFrame::flags`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Flag {
    /// The last frame of a commit.
    CommitEnd = 0x01,
    /// The last frame of its context.
    ContextEnd = 0x02,
    /// Frames before it are lost.
    Discontinuity = 0x04,
    /// It holds nothing audible.
    Silence = 0x08,
    /// Its payload begins with the lengths of its packets.
    Packed = 0x10,
}

/// Why bytes are no frame of sound.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// Too short for a header.
    #[error("a frame of {bytes} bytes; its header alone has {HEADER}")]
    Short {
        /// Bytes there are.
        bytes: usize,
    },
    /// Not sound.
    #[error("a frame of kind {kind}, not {KIND_AUDIO}")]
    Kind {
        /// The first byte.
        kind: u8,
    },
    /// Count and lengths do not agree with the bytes there are.
    #[error("{count} packets do not fill a payload of {bytes} bytes")]
    Packets {
        /// Packets told.
        count: u16,
        /// Bytes of the payload.
        bytes: usize,
    },
}

impl AudioFrame {
    /// Reads a frame. Its payload shares the memory of `bytes`.
    ///
    /// # Errors
    /// [`FrameError`].
    pub fn parse(mut bytes: Bytes) -> Result<Self, FrameError> {
        if bytes.len() < HEADER {
            return Err(FrameError::Short { bytes: bytes.len() });
        }
        let kind = bytes.get_u8();
        if kind != KIND_AUDIO {
            return Err(FrameError::Kind { kind });
        }
        let frame = Self {
            flags: bytes.get_u8(),
            count: bytes.get_u16(),
            handle: bytes.get_u32(),
            seq: bytes.get_u32(),
            pos: bytes.get_u64(),
            payload: bytes,
        };
        frame.lengths()?;
        Ok(frame)
    }

    /// Whether a flag is set.
    pub fn has(&self, flag: Flag) -> bool {
        self.flags & flag as u8 != 0
    }

    /// Its packets, in the session's codec.
    pub fn packets(&self) -> impl Iterator<Item = Bytes> + '_ {
        let lengths = self.lengths().unwrap_or_default();
        let mut rest = self.payload.slice(self.payload.len() - lengths.iter().sum::<usize>()..);
        lengths.into_iter().map(move |length| rest.split_to(length))
    }

    /// Bytes of each packet.
    fn lengths(&self) -> Result<Vec<usize>, FrameError> {
        let bytes = self.payload.len();
        let wrong = FrameError::Packets { count: self.count, bytes };
        if !self.has(Flag::Packed) {
            return if self.count == 1 { Ok(vec![bytes]) } else { Err(wrong) };
        }
        let count = usize::from(self.count);
        let Some(told) = self.payload.get(..2 * count).filter(|_| count > 0) else {
            return Err(wrong);
        };
        let length = |pair: &[u8]| usize::from(u16::from_be_bytes([pair[0], pair[1]]));
        let lengths: Vec<usize> = told.chunks_exact(2).map(length).collect();
        let fills = 2 * count + lengths.iter().sum::<usize>() == bytes;
        if fills { Ok(lengths) } else { Err(wrong) }
    }
}

/// A frame of the client, with one packet.
pub(super) fn incoming(handle: u32, seq: u32, packet: &[u8]) -> Vec<u8> {
    let mut frame = Vec::with_capacity(HEADER + packet.len());
    frame.extend([KIND_INCOMING, 0, 0, 1]);
    frame.extend(handle.to_be_bytes());
    frame.extend(seq.to_be_bytes());
    // Where it lies is told by those before it.
    frame.extend([0; 8]);
    frame.extend_from_slice(packet);
    frame
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(flags: u8, count: u16, payload: &[u8]) -> Bytes {
        let mut bytes = vec![1, flags];
        bytes.extend(count.to_be_bytes());
        bytes.extend(7_u32.to_be_bytes());
        bytes.extend(99_u32.to_be_bytes());
        bytes.extend(95_040_u64.to_be_bytes());
        bytes.extend(payload);
        bytes.into()
    }

    fn packets(bytes: Bytes) -> Result<Vec<Vec<u8>>, FrameError> {
        Ok(AudioFrame::parse(bytes)?.packets().map(|p| p.to_vec()).collect())
    }

    #[test]
    fn the_header_is_read() {
        let frame = AudioFrame::parse(frame(0x03, 1, b"abc")).unwrap();
        assert_eq!((frame.handle, frame.seq, frame.pos), (7, 99, 95_040));
        assert!(frame.has(Flag::CommitEnd) && frame.has(Flag::ContextEnd));
        assert!(!frame.has(Flag::Discontinuity));
    }

    #[test]
    fn packets_are_taken_apart() {
        assert_eq!(packets(frame(0, 1, b"abc")), Ok(vec![b"abc".to_vec()]));
        let packed = [0, 1, 0, 0, 0, 2, b'a', b'b', b'c'];
        let all = vec![b"a".to_vec(), vec![], b"bc".to_vec()];
        assert_eq!(packets(frame(0x10, 3, &packed)), Ok(all));
    }

    #[test]
    fn what_does_not_add_up_is_refused() {
        let short = packets(Bytes::from_static(&[1; 19]));
        assert_eq!(short, Err(FrameError::Short { bytes: 19 }));
        let other = packets(Bytes::from_static(&[2; 30]));
        assert_eq!(other, Err(FrameError::Kind { kind: 2 }));
        let payloads: [(u8, u16, &[u8]); 5] = [
            (0, 0, b"abc"),
            (0, 2, b"abc"),
            (0x10, 0, b""),
            (0x10, 2, &[0, 1, 0]),
            (0x10, 1, &[0, 2, b'a']),
        ];
        for (flags, count, payload) in payloads {
            let error = FrameError::Packets { count, bytes: payload.len() };
            assert_eq!(packets(frame(flags, count, payload)), Err(error));
        }
    }
}
