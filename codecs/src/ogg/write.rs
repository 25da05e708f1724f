//! Writing: packets are gathered into pages, and bytes reach the sink page by page.

use std::io::Write;

use ::ogg::{PacketWriteEndInfo, PacketWriter};

use super::{HEAD_MAGIC, OggError, OggHead, TAGS_MAGIC};
use crate::opus::{self, CLOCK_RATE, Tail};

/// A page is closed when it holds so much audio on the 48 kHz clock: 1 s, the longest that RFC 7845 advises.
const PAGE_TICKS_MAX: u64 = CLOCK_RATE as u64;

/// Writes one mono stream.
pub struct OggWriter<W: Write> {
    pages: PacketWriter<'static, W>,
    serial: u32,
    /// Packets of the page being filled, each with the clock at its end.
    page: Vec<(Vec<u8>, u64)>,
    /// The clock where that page begins.
    page_start: u64,
    /// The clock at the end of the last packet.
    clock: u64,
}

impl<W: Write> OggWriter<W> {
    /// Starts a stream: writes head and comments, each its own page.
    ///
    /// `serial` tells streams apart that are joined later; comments are pairs of name and value.
    ///
    /// # Errors
    /// A comment name that is empty or has '=' or other than printable ASCII; a sink that refuses.
    pub fn new(
        sink: W,
        serial: u32,
        head: OggHead,
        comments: &[(&str, &str)],
    ) -> Result<Self, OggError> {
        let tags = tags_packet(comments)?;
        let mut pages = PacketWriter::new(sink);
        pages.write_packet(head_packet(head), serial, PacketWriteEndInfo::EndPage, 0)?;
        pages.write_packet(tags, serial, PacketWriteEndInfo::EndPage, 0)?;
        Ok(Self { pages, serial, page: Vec::new(), page_start: 0, clock: 0 })
    }

    /// Adds a packet; a page that then holds a second of audio is written.
    ///
    /// # Errors
    /// Bytes that are not an Opus packet; a sink that refuses.
    pub fn packet(&mut self, packet: Vec<u8>) -> Result<(), OggError> {
        self.gather(packet)?;
        if self.clock - self.page_start >= PAGE_TICKS_MAX {
            self.flush()?;
        }
        Ok(())
    }

    /// Writes the page begun, so that a listener has all packets so far.
    ///
    /// # Errors
    /// A sink that refuses.
    pub fn flush(&mut self) -> Result<(), OggError> {
        self.write_page(PacketWriteEndInfo::EndPage)
    }

    /// Ends the stream with what the encoder gave at its end, and returns the sink.
    ///
    /// # Errors
    /// As [`OggWriter::packet`].
    pub fn finish(mut self, tail: Tail) -> Result<W, OggError> {
        for packet in tail.packets {
            self.gather(packet)?;
        }
        if let Some((_, clock)) = self.page.last_mut() {
            *clock = tail.end;
        }
        self.write_page(PacketWriteEndInfo::EndStream)?;
        Ok(self.pages.into_inner())
    }

    /// The sink: a live stream takes its bytes from here.
    pub fn sink_mut(&mut self) -> &mut W {
        self.pages.inner_mut()
    }

    fn gather(&mut self, packet: Vec<u8>) -> Result<(), OggError> {
        self.clock += opus::packet_duration(&packet)?;
        self.page.push((packet, self.clock));
        Ok(())
    }

    fn write_page(&mut self, end: PacketWriteEndInfo) -> Result<(), OggError> {
        self.page_start = self.clock;
        let last = self.page.len().saturating_sub(1);
        for (i, (packet, clock)) in self.page.drain(..).enumerate() {
            let end = if i == last { end } else { PacketWriteEndInfo::NormalPacket };
            self.pages.write_packet(packet, self.serial, end, clock)?;
        }
        Ok(())
    }
}

fn head_packet(head: OggHead) -> Vec<u8> {
    let mut packet = HEAD_MAGIC.to_vec();
    packet.extend([1, 1]); // version, channels
    packet.extend(head.pre_skip.to_le_bytes());
    packet.extend(head.input_rate.to_le_bytes());
    packet.extend([0, 0, 0]); // output gain, channel mapping family
    packet
}

fn tags_packet(comments: &[(&str, &str)]) -> Result<Vec<u8>, OggError> {
    let mut packet = TAGS_MAGIC.to_vec();
    // The vendor is the encoder, as RFC 7845 asks.
    push_string(&mut packet, opus::library_version());
    packet.extend((comments.len() as u32).to_le_bytes());
    for (name, value) in comments {
        let printable = name.bytes().all(|b| (0x20..=0x7d).contains(&b) && b != b'=');
        if name.is_empty() || !printable {
            return Err(OggError::CommentName((*name).to_owned()));
        }
        push_string(&mut packet, &format!("{name}={value}"));
    }
    Ok(packet)
}

fn push_string(packet: &mut Vec<u8>, text: &str) {
    packet.extend((text.len() as u32).to_le_bytes());
    packet.extend(text.as_bytes());
}
