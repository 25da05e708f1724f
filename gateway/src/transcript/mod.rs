//! What was heard in a recording, in the formats and events of OpenAI's `/v1/audio/transcriptions`. Knows neither requests
//! nor models.
//!
//! ```text
//! text, segments with times, usage --write--> json | text | verbose_json | srt | vtt
//! pieces of text, then all of it --events--> transcript.text.delta, transcript.text.done
//! texts of pieces of a recording --joined--> one text
//! ```

pub mod cues;
pub mod events;
pub mod joined;
mod subtitles;

use serde_json::{Value, json};

/// A span of the recording, in seconds from its start.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Span {
    /// Where it begins.
    pub start_s: f64,
    /// Where it ends; not before the start.
    pub end_s: f64,
}

/// What was said in one span.
#[derive(Debug, Clone, PartialEq)]
pub struct Segment {
    /// When it is heard.
    pub span: Span,
    /// What is said in it.
    pub text: String,
    /// What the model wrote for it, as far as that is known for the segment alone.
    pub tokens: Vec<u32>,
}

/// What a transcription is counted as.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// Tokens of the text that went in: the instruction.
    pub text_tokens: u64,
    /// Tokens of the sound that went in.
    pub audio_tokens: u64,
    /// Tokens that came out.
    pub output_tokens: u64,
}

/// All that was heard.
#[derive(Debug, Clone, PartialEq)]
pub struct Transcript {
    /// The whole text.
    pub text: String,
    /// Language of the text, as the request named it.
    pub language: Option<String>,
    /// Length of the recording, in seconds.
    pub duration_s: f64,
    /// The text in order, with times.
    pub segments: Vec<Segment>,
    /// Words with times, for who has asked and where they are known.
    pub words: Option<Vec<(Span, String)>>,
    /// Temperature that the text was drawn at.
    pub temperature: f32,
    /// What it counts as.
    pub usage: Usage,
}

/// What an answer is written as.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Format {
    /// The text and what it counts as.
    #[default]
    Json,
    /// The text alone.
    Text,
    /// With segments and times.
    VerboseJson,
    /// Subtitles of SubRip.
    Srt,
    /// Subtitles of the web.
    Vtt,
}

impl Format {
    /// All of them, by their names.
    pub const NAMES: [(&'static str, Self); 5] = [
        ("json", Self::Json),
        ("text", Self::Text),
        ("srt", Self::Srt),
        ("verbose_json", Self::VerboseJson),
        ("vtt", Self::Vtt),
    ];

    /// The format of that name.
    pub fn named(name: &str) -> Option<Self> {
        Self::NAMES.into_iter().find(|(known, _)| *known == name).map(|(_, format)| format)
    }

    /// What an answer in it goes out as.
    pub fn content_type(self) -> &'static str {
        match self {
            Self::Json | Self::VerboseJson => "application/json",
            Self::Text | Self::Srt | Self::Vtt => "text/plain; charset=utf-8",
        }
    }
}

impl Transcript {
    /// The body of an answer.
    pub fn write(&self, format: Format) -> String {
        match format {
            Format::Json => json!({"text": self.text, "usage": self.usage.json()}).to_string(),
            Format::Text => format!("{}\n", self.text),
            Format::VerboseJson => self.verbose().to_string(),
            Format::Srt => subtitles::srt(&self.segments),
            Format::Vtt => subtitles::vtt(&self.segments),
        }
    }

    fn verbose(&self) -> Value {
        let segments = self.segments.iter().enumerate().map(|(id, s)| self.verbose_segment(id, s));
        let mut body = json!({
            "task": "transcribe",
            // The tag of a language that nobody has told.
            "language": self.language.as_deref().unwrap_or("und"),
            "duration": seconds(self.duration_s),
            "text": self.text,
            "segments": segments.collect::<Vec<_>>(),
            "usage": {"type": "duration", "seconds": self.duration_s.ceil()},
        });
        if let Some(words) = &self.words {
            let word = |(span, word): &(Span, String)| {
                json!({
                    "word": word, "start": seconds(span.start_s), "end": seconds(span.end_s),
                })
            };
            body["words"] = words.iter().map(word).collect();
        }
        body
    }

    /// Clients expect every field. Null are the judgements of one model that others do not make.
    fn verbose_segment(&self, id: usize, segment: &Segment) -> Value {
        json!({
            "id": id,
            "seek": 0,
            "start": seconds(segment.span.start_s),
            "end": seconds(segment.span.end_s),
            "text": segment.text,
            "tokens": segment.tokens,
            "temperature": f64::from((self.temperature * 1e3).round()) / 1e3,
            "avg_logprob": null,
            "compression_ratio": null,
            "no_speech_prob": null,
        })
    }
}

impl Usage {
    /// As answers and events tell it.
    fn json(self) -> Value {
        let Self { text_tokens, audio_tokens, output_tokens } = self;
        let input_tokens = text_tokens + audio_tokens;
        json!({
            "type": "tokens",
            "input_tokens": input_tokens,
            "input_token_details": {"text_tokens": text_tokens, "audio_tokens": audio_tokens},
            "output_tokens": output_tokens,
            "total_tokens": input_tokens + output_tokens,
        })
    }
}

/// To the millisecond, as nothing here is known better.
fn seconds(seconds: f64) -> f64 {
    (seconds * 1e3).round() / 1e3
}

#[cfg(test)]
mod tests {
    use super::*;

    fn transcript() -> Transcript {
        let segment = |start_s, end_s, text: &str| Segment {
            span: Span { start_s, end_s },
            text: text.to_owned(),
            tokens: vec![7, 9],
        };
        Transcript {
            text: "Tauben & Türme. Ende.".to_owned(),
            language: Some("de".to_owned()),
            duration_s: 3.600_04,
            segments: vec![segment(0.0, 2.1, "Tauben & Türme."), segment(2.1, 3.6, "Ende.")],
            words: None,
            temperature: 0.6,
            usage: Usage { text_tokens: 3, audio_tokens: 46, output_tokens: 9 },
        }
    }

    fn parsed(format: Format, transcript: &Transcript) -> Value {
        serde_json::from_str(&transcript.write(format)).unwrap()
    }

    #[test]
    fn json_is_the_text_and_what_it_counts_as() {
        let expected = json!({
            "text": "Tauben & Türme. Ende.",
            "usage": {
                "type": "tokens",
                "input_tokens": 49,
                "input_token_details": {"text_tokens": 3, "audio_tokens": 46},
                "output_tokens": 9,
                "total_tokens": 58,
            },
        });
        assert_eq!(parsed(Format::Json, &transcript()), expected);
    }

    #[test]
    fn verbose_json_has_every_field_of_a_segment() {
        let body = parsed(Format::VerboseJson, &transcript());
        assert_eq!(body["duration"], 3.6);
        assert_eq!(body["language"], "de");
        assert_eq!(body["usage"], json!({"type": "duration", "seconds": 4.0}));
        let expected = json!({
            "id": 1, "seek": 0, "start": 2.1, "end": 3.6, "text": "Ende.", "tokens": [7, 9],
            "temperature": 0.6, "avg_logprob": null, "compression_ratio": null, "no_speech_prob": null,
        });
        assert_eq!(body["segments"][1], expected);
        assert!(body.get("words").is_none());
    }

    #[test]
    fn words_are_there_for_who_has_asked() {
        let span = Span { start_s: 2.100_4, end_s: 3.6 };
        let words = Some(vec![(span, "Ende".to_owned())]);
        let body =
            parsed(Format::VerboseJson, &Transcript { words, language: None, ..transcript() });
        assert_eq!(body["words"], json!([{"word": "Ende", "start": 2.1, "end": 3.6}]));
        assert_eq!(body["language"], "und");
    }

    #[test]
    fn text_ends_in_a_line_feed() {
        assert_eq!(transcript().write(Format::Text), "Tauben & Türme. Ende.\n");
    }

    #[test]
    fn every_format_has_a_name_and_a_type() {
        for (name, format) in Format::NAMES {
            assert_eq!(Format::named(name), Some(format));
            assert_eq!(name.contains("json"), format.content_type() == "application/json");
        }
        assert_eq!(Format::named("JSON"), None);
        assert_eq!(Format::default(), Format::Json);
    }
}
