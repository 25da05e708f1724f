//! The binary frame of the wire: 20 bytes of header, big-endian, then one packet or several.
//!
//! ```text
//! kind flags count handle   seq      pos              [lengths, when packed]  packets
//! 01   01    0001  00000001 00000063 0000000000017340                         ...
//! ```

use bytes::Bytes;

use crate::protocol::{Handle, Packet};

const KIND_AUDIO: u8 = 1;
const HEADER_BYTES: usize = 20;
const FLAGS_AT: usize = 1;
const COUNT_AT: usize = 2;

/// The last frame of a commit.
pub(super) const COMMIT: u8 = 0x01;
/// The last frame of a context.
pub(super) const LAST: u8 = 0x02;
/// Frames before it are missing.
pub(super) const GAP: u8 = 0x04;
/// Nothing but silence.
const SILENCE: u8 = 0x08;
/// Lengths stand before the packets.
const PACKED: u8 = 0x10;

/// What stands in front of packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) flags: u8,
    pub(super) handle: Handle,
    /// Of the first packet.
    pub(super) seq: u32,
    /// Of the first packet's first sample.
    pub(super) position: u64,
}

/// Puts packets, at least one, behind their header.
pub(super) fn frame(head: Head, packets: &[Packet]) -> Bytes {
    let is_packed = packets.len() > 1;
    let mut flags = head.flags;
    if is_packed {
        flags |= PACKED;
    }
    if packets.iter().all(|packet| packet.silent) {
        flags |= SILENCE;
    }
    let count = u16::try_from(packets.len()).expect("a format packs at most 50; this is a bug");
    let bytes: usize = packets.iter().map(|packet| packet.bytes.len()).sum();
    let mut frame = Vec::with_capacity(HEADER_BYTES + 2 * packets.len() + bytes);
    frame.extend([KIND_AUDIO, flags]);
    frame.extend(count.to_be_bytes());
    frame.extend(head.handle.to_be_bytes());
    frame.extend(head.seq.to_be_bytes());
    frame.extend(head.position.to_be_bytes());
    if is_packed {
        for packet in packets {
            let length = u16::try_from(packet.bytes.len());
            let length = length.expect("60 ms of any format are less than 64 KiB; this is a bug");
            frame.extend(length.to_be_bytes());
        }
    }
    packets.iter().for_each(|packet| frame.extend(&packet.bytes));
    frame.into()
}

/// The packets of a frame, one right behind the other, without what stands before them.
pub(crate) fn payload(frame: &Bytes) -> Bytes {
    let is_packed = frame[FLAGS_AT] & PACKED != 0;
    let count = usize::from(u16::from_be_bytes([frame[COUNT_AT], frame[COUNT_AT + 1]]));
    frame.slice(HEADER_BYTES + if is_packed { 2 * count } else { 0 }..)
}

/// The packets of a frame, one by one.
pub(crate) fn packets(frame: &Bytes) -> Vec<Bytes> {
    let payload = payload(frame);
    if frame[FLAGS_AT] & PACKED == 0 {
        return vec![payload];
    }
    let lengths = frame[HEADER_BYTES..frame.len() - payload.len()].chunks_exact(2);
    let mut at = 0;
    let packet = |length: &[u8]| {
        let from = at;
        at += usize::from(u16::from_be_bytes([length[0], length[1]]));
        payload.slice(from..at)
    };
    lengths.map(packet).collect()
}

/// A frame that was sent before, behind a hole.
pub(crate) fn behind_gap(frame: &Bytes) -> Bytes {
    let mut bytes = frame.to_vec();
    bytes[FLAGS_AT] |= GAP;
    bytes.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(bytes: &'static [u8], silent: bool) -> Packet {
        Packet { bytes: Bytes::from_static(bytes), duration: 960, silent, last: false }
    }

    const HEAD: Head = Head { flags: COMMIT, handle: 1, seq: 99, position: 95_040 };

    #[test]
    fn a_packet_stands_behind_twenty_bytes_of_header() {
        let frame = frame(HEAD, &[packet(&[9, 9], false)]);
        assert_eq!(&payload(&frame)[..], &[9, 9]);
        assert_eq!(packets(&frame), [&[9, 9][..]]);
        let expected = [1, 1, 0, 1, 0, 0, 0, 1, 0, 0, 0, 99, 0, 0, 0, 0, 0, 1, 0x73, 0x40, 9, 9];
        assert_eq!(&frame[..], &expected);
    }

    #[test]
    fn packed_packets_stand_behind_their_lengths() {
        let frame = frame(HEAD, &[packet(&[7], true), packet(&[8, 8, 8], false)]);
        assert_eq!(&payload(&frame)[..], &[7, 8, 8, 8]);
        assert_eq!(packets(&frame), [&[7][..], &[8, 8, 8]]);
        assert_eq!((frame[1], &frame[2..4]), (COMMIT | PACKED, &[0, 2][..]));
        assert_eq!(&frame[20..], &[0, 1, 0, 3, 7, 8, 8, 8]);
    }

    #[test]
    fn a_gap_is_told_in_a_frame_that_was_made_before() {
        let made = frame(HEAD, &[packet(&[9, 9], false)]);
        let behind = behind_gap(&made);
        assert_eq!((behind[1], &behind[2..]), (COMMIT | GAP, &made[2..]));
    }

    #[test]
    fn a_frame_of_silence_says_so() {
        let silent = frame(HEAD, &[packet(&[7], true), packet(&[7], true)]);
        assert_eq!(silent[1], COMMIT | PACKED | SILENCE);
    }
}
