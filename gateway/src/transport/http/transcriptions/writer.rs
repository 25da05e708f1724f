//! What is heard in pieces of a recording, written down in the format that was asked for. Knows neither engine nor sockets.

use axum::body::Bytes;
use engine::Summary;
use serde_json::json;

use super::form::Form;
use crate::foreign::whole::server_sent;
use crate::transcript::joined::Joined;
use crate::transcript::{Format, Segment, Span, Transcript, Usage, cues, events};

/// Writes down what is heard, piece after piece.
pub(super) struct Writer {
    format: Format,
    streams: bool,
    language: Option<String>,
    temperature: f32,
    duration_s: f64,
    /// All of the text so far.
    text: Joined,
    /// What was said in the piece under way.
    piece: String,
    segments: Vec<Segment>,
    usage: Usage,
}

impl Writer {
    /// For a recording of so many seconds.
    pub(super) fn new(form: &Form, duration_s: f64) -> Self {
        Self {
            format: form.format,
            streams: form.streams,
            language: form.language.clone(),
            temperature: form.temperature.unwrap_or_default(),
            duration_s,
            text: Joined::default(),
            piece: String::new(),
            segments: Vec::new(),
            usage: Usage::default(),
        }
    }

    /// What it writes.
    pub(super) fn content_type(&self) -> &'static str {
        if self.streams { "text/event-stream" } else { self.format.content_type() }
    }

    /// More of the piece under way.
    pub(super) fn text(&mut self, delta: &str) -> Bytes {
        self.piece.push_str(delta);
        let told = self.text.push(delta);
        if self.streams && !told.is_empty() { events::delta(&told) } else { Bytes::new() }
    }

    /// The piece is complete; it took the span.
    pub(super) fn end_piece(&mut self, span: Span, summary: &Summary) {
        self.text.end_piece();
        self.segments.extend(cues::cut(&std::mem::take(&mut self.piece), span));
        let counted = summary.usage.unwrap_or_default();
        self.usage.text_tokens += counted.prompt_tokens as u64;
        self.usage.audio_tokens += counted.prompt_audio_tokens as u64;
        self.usage.output_tokens += counted.text_tokens as u64;
    }

    /// Nothing follows.
    pub(super) fn done(self) -> Bytes {
        let text = self.text.into_text();
        if self.streams {
            return events::done(&text, self.usage);
        }
        let transcript = Transcript {
            text,
            language: self.language,
            duration_s: self.duration_s,
            segments: self.segments,
            words: None,
            temperature: self.temperature,
            usage: self.usage,
        };
        transcript.write(self.format).into()
    }

    /// It breaks off, behind what has been told.
    pub(super) fn broken(&self, message: &str) -> Bytes {
        if !self.streams {
            return Bytes::new();
        }
        let error = json!({
            "message": message, "type": "server_error", "param": null, "code": "engine_failed",
        });
        server_sent(None, &json!({"type": "error", "error": error}))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    const USAGE: engine::Usage = engine::Usage {
        prompt_tokens: 2,
        prompt_audio_tokens: 50,
        text_tokens: 3,
        audio_frames: 0,
        finish: engine::Finish::Stop,
    };

    /// Two pieces with a silence between them.
    fn written(format: Format, streams: bool) -> String {
        let form = Form { format, streams, ..Form::default() };
        let mut writer = Writer::new(&form, 5.0);
        let summary = Summary { usage: Some(USAGE), ..Summary::default() };
        let mut all = Vec::new();
        for (start_s, text) in [(0.0, [" Good", " day. "]), (3.0, [" How", " so?"])] {
            for delta in text {
                all.extend(writer.text(delta));
            }
            writer.end_piece(Span { start_s, end_s: start_s + 2.0 }, &summary);
        }
        all.extend(writer.done());
        String::from_utf8(all).unwrap()
    }

    #[test]
    fn the_text_is_written_in_every_format_with_the_times_of_its_pieces() {
        let json: Value = serde_json::from_str(&written(Format::Json, false)).unwrap();
        assert_eq!(json["text"], "Good day. How so?");
        assert_eq!(json["usage"]["total_tokens"], 110);
        assert_eq!(written(Format::Text, false), "Good day. How so?\n");
        let srt = written(Format::Srt, false);
        assert!(srt.contains("00:00:00,000 --> 00:00:02,000\nGood day."), "{srt}");
        assert!(srt.contains("00:00:03,000 --> 00:00:05,000\nHow so?"), "{srt}");
        assert!(written(Format::Vtt, false).starts_with("WEBVTT\n"));
        let verbose: Value = serde_json::from_str(&written(Format::VerboseJson, false)).unwrap();
        let segment = &verbose["segments"][1];
        assert_eq!((&verbose["duration"], &segment["start"]), (&json!(5.0), &json!(3.0)));
    }

    #[test]
    fn a_stream_tells_pieces_and_then_the_whole() {
        let events = written(Format::Json, true);
        let events: Vec<Value> = events
            .split_terminator("\n\n")
            .map(|event| serde_json::from_str(event.strip_prefix("data: ").unwrap()).unwrap())
            .collect();
        let deltas: String = events.iter().filter_map(|event| event["delta"].as_str()).collect();
        let last = events.last().unwrap();
        assert_eq!(last["type"], "transcript.text.done");
        assert_eq!((deltas.as_str(), &last["text"]), ("Good day. How so?", &json!(deltas)));
    }

    #[test]
    fn only_a_stream_tells_that_it_breaks_off() {
        let form = |streams| Form { streams, ..Form::default() };
        assert!(Writer::new(&form(false), 1.0).broken("why").is_empty());
        let event = Writer::new(&form(true), 1.0).broken("why");
        assert!(event.starts_with(br#"data: {"type":"error""#));
    }
}
