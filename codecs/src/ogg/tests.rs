use super::*;
use crate::opus::{Encoder, EncoderConfig, FrameDuration, Tail};
use proptest::prelude::*;

const HEAD: OggHead = OggHead { pre_skip: 312, input_rate: 24_000 };
const LABEL: (&str, &str) = ("COMMENT", "synthetic speech");

/// 300 Hz at 24 kHz.
fn tone(n: usize) -> Vec<f32> {
    (0..n).map(|i| 0.4 * (std::f32::consts::TAU * i as f32 / 80.0).sin()).collect()
}

fn file(n: usize, frame: FrameDuration, page: usize) -> Vec<u8> {
    file_of(&tone(n), frame, page)
}

/// Encodes and writes samples, a page for every `page` packets.
fn file_of(pcm: &[f32], frame: FrameDuration, page: usize) -> Vec<u8> {
    let mut encoder = Encoder::new(&EncoderConfig { frame, ..EncoderConfig::default() }).unwrap();
    let mut writer = OggWriter::new(Vec::new(), 7, HEAD, &[LABEL]).unwrap();
    for (i, packet) in encoder.push(pcm).unwrap().into_iter().enumerate() {
        writer.packet(packet).unwrap();
        if (i + 1) % page == 0 {
            writer.flush().unwrap();
        }
    }
    writer.finish(encoder.finish().unwrap()).unwrap()
}

/// Flags, granule position and segments of each page.
fn pages(mut bytes: &[u8]) -> Vec<(u8, u64, usize)> {
    let mut pages = Vec::new();
    while !bytes.is_empty() {
        assert_eq!(bytes[..5], *b"OggS\0");
        let granule = u64::from_le_bytes(bytes[6..14].try_into().unwrap());
        let segments = usize::from(bytes[26]);
        let body: usize = bytes[27..27 + segments].iter().map(|&s| usize::from(s)).sum();
        pages.push((bytes[5], granule, segments));
        bytes = &bytes[27 + segments + body..];
    }
    pages
}

#[test]
fn the_audio_comes_back_at_its_exact_length() {
    for n in [0, 1, 479, 480, 24_037, 60_000] {
        for ms in [10, 20, 40, 60] {
            let stream = OggOpus::read(&file(n, FrameDuration::from_ms(ms).unwrap(), 9)).unwrap();
            assert_eq!(stream.decode(24_000, n).unwrap().len(), n, "{ms} ms");
            assert_eq!(stream.decode(48_000, 2 * n).unwrap().len(), 2 * n, "{ms} ms");
        }
    }
}

#[test]
fn the_audio_comes_back_at_its_place() {
    // A burst at 1 kHz, well above the filter that the encoder puts before speech.
    let burst: Vec<f32> = (0..24_000_i16)
        .map(|i| f32::from(i - 12_000))
        .map(|t| 0.5 * (-(t / 60.0).powi(2)).exp() * (std::f32::consts::TAU * t / 24.0).cos())
        .collect();
    let stream = OggOpus::read(&file_of(&burst, FrameDuration::Ms20, 50)).unwrap();
    let heard = stream.decode(24_000, 24_000).unwrap();
    let similarity = |shift: usize| -> f32 {
        heard[shift..].iter().zip(&burst[20..23_980]).map(|(a, b)| a * b).sum()
    };
    let best = (0..40).max_by(|&a, &b| similarity(a).total_cmp(&similarity(b))).unwrap();
    assert!((18..=22).contains(&best), "shifted by {} - 20 samples", best);
}

#[test]
fn head_and_comments_are_read_back() {
    let stream = OggOpus::read(&file(960, FrameDuration::Ms20, 1)).unwrap();
    assert_eq!(stream.head, HEAD);
    assert_eq!(stream.comments, [(LABEL.0.to_owned(), LABEL.1.to_owned())]);
}

#[test]
fn pages_follow_the_packets_and_the_last_trims_the_padding() {
    // 5 s are 250 packets of 20 ms; each page is closed at a second without being asked.
    let long = pages(&file(120_000, FrameDuration::Ms20, usize::MAX));
    assert_eq!(long[0], (0x02, 0, 1));
    assert_eq!(long[1].1, 0);
    let granules: Vec<u64> = long[2..].iter().map(|p| p.1).collect();
    assert_eq!(granules, [48_000, 96_000, 144_000, 192_000, 240_000, 240_312]);
    assert_eq!(long.last().unwrap().0, 0x04);

    let live = pages(&file(1_000, FrameDuration::Ms20, 1));
    // 312 + 2,000 ticks: two whole packets, one page each, and a third that is cut.
    assert_eq!(live[2..], [(0, 960, 1), (0, 1_920, 1), (4, 2_312, 1)]);
}

#[test]
fn a_flushed_page_is_at_the_sink_at_once() {
    let mut encoder = Encoder::new(&EncoderConfig::default()).unwrap();
    let mut writer = OggWriter::new(Vec::new(), 7, HEAD, &[]).unwrap();
    assert_eq!(pages(&std::mem::take(writer.sink_mut())).len(), 2);
    for packet in encoder.push(&tone(960)).unwrap() {
        writer.packet(packet).unwrap();
        assert!(writer.sink_mut().is_empty());
    }
    writer.flush().unwrap();
    assert_eq!(pages(&std::mem::take(writer.sink_mut())), [(0, 1_920, 2)]);
    writer.flush().unwrap();
    assert!(writer.sink_mut().is_empty(), "nothing to flush, no page");
}

#[test]
fn a_stream_joined_midway_keeps_its_length() {
    let mut encoder = Encoder::new(&EncoderConfig::default()).unwrap();
    let packets = encoder.push(&tone(4_800)).unwrap();
    let mut clock = 1_000_000;
    let mut pages = ::ogg::PacketWriter::new(Vec::new());
    let end_page = ::ogg::PacketWriteEndInfo::EndPage;
    let whole = file(0, FrameDuration::Ms20, 1);
    let mut headers = ::ogg::PacketReader::new(std::io::Cursor::new(&whole));
    for _ in 0..2 {
        let header = headers.read_packet().unwrap().unwrap().data;
        pages.write_packet(header, 1, end_page, 0).unwrap();
    }
    for packet in packets {
        clock += 960;
        pages.write_packet(packet, 1, end_page, clock).unwrap();
    }
    let tail = encoder.finish().unwrap().packets.remove(0);
    pages.write_packet(tail, 1, ::ogg::PacketWriteEndInfo::EndStream, clock + 312).unwrap();
    let stream = OggOpus::read(&pages.into_inner()).unwrap();
    assert_eq!(stream.decode(24_000, 4_800).unwrap().len(), 4_800);
}

#[test]
fn what_cannot_be_written_is_refused() {
    for name in ["", "A=B", "NÄME", "A\n"] {
        let refused = OggWriter::new(Vec::new(), 7, HEAD, &[(name, "x")]).err().unwrap();
        assert!(matches!(refused, OggError::CommentName(n) if n == name));
    }
    let mut writer = OggWriter::new(Vec::new(), 7, HEAD, &[]).unwrap();
    assert!(matches!(writer.packet(Vec::new()), Err(OggError::Opus(_))));
    let empty_tail = Tail { packets: Vec::new(), end: 0 };
    assert_eq!(pages(&writer.finish(empty_tail).unwrap()).len(), 2);
}

#[test]
fn more_audio_than_allowed_is_refused() {
    let stream = OggOpus::read(&file(24_000, FrameDuration::Ms20, 50)).unwrap();
    let refused = stream.decode(24_000, 23_999).unwrap_err();
    assert!(matches!(refused, OggError::TooLong { samples_max: 23_999 }));
    assert!(stream.decode(44_100, usize::MAX).is_err());
}

#[test]
fn no_more_packets_are_kept_than_a_file_of_the_length_allowed_needs() {
    let bytes = file(240_000, FrameDuration::Ms20, 50);
    assert!(OggOpus::read_within(&bytes, 10.0).is_ok());
    // 1.4 s of packets beyond the limit may be padding.
    assert!(matches!(OggOpus::read_within(&bytes, 8.0), Err(OggError::Longer(_))));
}

#[test]
fn other_content_is_refused() {
    let whole = file(4_800, FrameDuration::Ms20, 1);
    for bytes in [&whole[..0], b"RIFF....WAVE", &whole[..40], &whole[..whole.len() - 1]] {
        assert!(OggOpus::read(bytes).is_err(), "{} bytes", bytes.len());
    }
    let mut pages = ::ogg::PacketWriter::new(Vec::new());
    let end = ::ogg::PacketWriteEndInfo::EndStream;
    pages.write_packet(&b"\x01vorbis and so on"[..], 1, end, 0).unwrap();
    assert!(matches!(OggOpus::read(&pages.into_inner()), Err(OggError::NotOpus(_))));
}

/// Pages with right checksums around hostile packets, so that the parsers behind the container are reached.
fn wrapped(packets: &[Vec<u8>], granule: u64) -> Vec<u8> {
    let mut pages = ::ogg::PacketWriter::new(Vec::new());
    for (i, packet) in packets.iter().enumerate() {
        let end = match i + 1 == packets.len() {
            true => ::ogg::PacketWriteEndInfo::EndStream,
            false => ::ogg::PacketWriteEndInfo::EndPage,
        };
        pages.write_packet(packet.clone(), 1, end, granule).unwrap();
    }
    pages.into_inner()
}

proptest! {
    #[test]
    fn damaged_files_are_errors_or_sound(
        at in any::<prop::sample::Index>(),
        with in prop::collection::vec(any::<u8>(), 0..40),
    ) {
        let mut bytes = file(2_400, FrameDuration::Ms20, 2);
        let at = at.index(bytes.len());
        let end = (at + with.len()).min(bytes.len());
        bytes.splice(at..end, with);
        if let Ok(stream) = OggOpus::read(&bytes) {
            let _ = stream.decode(24_000, 100_000);
        }
    }

    #[test]
    fn hostile_packets_in_sound_pages_are_errors_or_sound(
        head in prop::collection::vec(any::<u8>(), 0..30),
        tags in prop::collection::vec(any::<u8>(), 0..60),
        audio in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..20), 0..4),
        granule in any::<u64>(),
    ) {
        let mut packets = vec![[&b"OpusHead\x01\x01"[..], &head].concat()];
        packets.push([&b"OpusTags"[..], &tags].concat());
        packets.extend(audio);
        for hostile in [&packets[..1], &packets] {
            if let Ok(stream) = OggOpus::read(&wrapped(hostile, granule)) {
                let pcm = stream.decode(48_000, 50_000);
                prop_assert!(pcm.map_or(0, |p| p.len()) <= 50_000);
            }
        }
    }

    #[test]
    fn any_bytes_are_errors_or_sound(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        prop_assert!(OggOpus::read(&bytes).is_err());
    }
}
