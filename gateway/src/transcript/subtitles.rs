//! Subtitles: SubRip, and WebVTT as the W3C has it.
//!
//! ```text
//! 1                                   WEBVTT
//! 00:00:00,000 --> 00:00:02,100
//! Tauben & Türme.                     00:00:00.000 --> 00:00:02.100
//!                                     Tauben &amp; Türme.
//! ```

use std::fmt::Write;

use super::Segment;

/// What stands between the times of a cue, and must not stand in its text.
const ARROW: &str = "-->";

pub(super) fn srt(segments: &[Segment]) -> String {
    let mut out = String::new();
    for (number, (segment, lines)) in (1..).zip(cues(segments)) {
        let [start, end] = times(segment, ',');
        let lines = lines.replace(ARROW, "->");
        let _infallible = write!(out, "{number}\n{start} {ARROW} {end}\n{lines}\n\n");
    }
    out
}

pub(super) fn vtt(segments: &[Segment]) -> String {
    let mut out = String::from("WEBVTT\n\n");
    for (segment, lines) in cues(segments) {
        let [start, end] = times(segment, '.');
        // Ampersand first, as the others make new ones.
        let lines = lines.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
        let _infallible = write!(out, "{start} {ARROW} {end}\n{lines}\n\n");
    }
    out
}

/// The segments that say something, with their lines: an empty line would end a cue.
fn cues(segments: &[Segment]) -> impl Iterator<Item = (&Segment, String)> {
    let lines = |text: &str| {
        let lines = text.split(['\n', '\r']).map(str::trim).filter(|line| !line.is_empty());
        lines.collect::<Vec<_>>().join("\n")
    };
    let cues = segments.iter().map(move |segment| (segment, lines(&segment.text)));
    cues.filter(|(_, lines)| !lines.is_empty())
}

/// Start and end. A cue that lasts no millisecond would not be shown.
fn times(segment: &Segment, point: char) -> [String; 2] {
    let start = millis(segment.span.start_s);
    let end = millis(segment.span.end_s).max(start + 1);
    [start, end].map(|ms| {
        let (s, min, h) = (ms / 1_000, ms / 60_000, ms / 3_600_000);
        format!("{h:02}:{:02}:{:02}{point}{:03}", min % 60, s % 60, ms % 1_000)
    })
}

fn millis(seconds: f64) -> u64 {
    // What is negative or no number becomes 0.
    (seconds * 1e3).round() as u64
}

#[cfg(test)]
mod tests {
    use super::super::Span;
    use super::*;

    fn segment(start_s: f64, end_s: f64, text: &str) -> Segment {
        Segment { span: Span { start_s, end_s }, text: text.to_owned(), tokens: Vec::new() }
    }

    #[test]
    fn both_formats_are_as_players_read_them() {
        let segments = [segment(0.0, 2.1, "A & B."), segment(2.1, 3_725.0, " Ende. ")];
        let expected = "1\n00:00:00,000 --> 00:00:02,100\nA & B.\n\n\
                        2\n00:00:02,100 --> 01:02:05,000\nEnde.\n\n";
        assert_eq!(srt(&segments), expected);
        let expected = "WEBVTT\n\n00:00:00.000 --> 00:00:02.100\nA &amp; B.\n\n\
                        00:00:02.100 --> 01:02:05.000\nEnde.\n\n";
        assert_eq!(vtt(&segments), expected);
    }

    #[test]
    fn times_are_rounded_as_a_whole_and_no_cue_is_empty() {
        assert_eq!(times(&segment(59.999_6, 60.0, ""), '.'), ["00:01:00.000", "00:01:00.001"]);
        assert_eq!(times(&segment(-1.0, f64::NAN, ""), ','), ["00:00:00,000", "00:00:00,001"]);
        assert_eq!(
            times(&segment(360_000.0, 360_001.5, ""), ','),
            ["100:00:00,000", "100:00:01,500"]
        );
    }

    #[test]
    fn text_can_neither_end_a_cue_nor_begin_one() {
        let segments = [
            segment(0.0, 1.0, "a\n\n2\r\n00:00:01,000 --> 00:00:09,000\n<b>"),
            segment(1.0, 2.0, " \n "),
        ];
        let one = "00:00:00,000 --> 00:00:01,000\na\n2\n00:00:01,000 -> 00:00:09,000\n<b>\n\n";
        assert_eq!(srt(&segments), format!("1\n{one}"));
        let escaped = vtt(&segments);
        assert_eq!(escaped.matches(ARROW).count(), 1, "{escaped}");
        assert!(escaped.ends_with("00:00:01,000 --&gt; 00:00:09,000\n&lt;b&gt;\n\n"), "{escaped}");
    }

    #[test]
    fn nothing_heard_is_an_empty_file_of_its_format() {
        assert_eq!(srt(&[]), "");
        assert_eq!(vtt(&[]), "WEBVTT\n\n");
    }
}
