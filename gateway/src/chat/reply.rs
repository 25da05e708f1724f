//! An answer in OpenAI's words: one object, or chunks of it as server-sent events.
//!
//! ```text
//! {"object":"chat.completion","choices":[{"message":{"content":"..","audio":{..}},..}],"usage":{..}}
//!
//! data: {"object":"chat.completion.chunk","choices":[{"delta":{"role":"assistant","content":""},..}]}
//! data: {..{"delta":{"content":"Hel"}..}          or, where it is spoken, {"audio":{"id":"..","transcript":"Hel"}}
//! data: {..{"delta":{"audio":{"id":"..","data":"<base64 of 16-bit samples, 24 kHz>"}}..}
//! data: {..{"delta":{},"finish_reason":"stop"}..}
//! data: [DONE]
//! ```

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use engine::{Event, Finish, Summary, Usage};
use serde_json::{Value, json};

use crate::container::complete_wav;
use crate::foreign::whole::{Framing, server_sent};

/// What stands in every piece of an answer.
#[derive(Debug, Clone)]
pub(crate) struct Names {
    /// Of the answer.
    pub(crate) id: String,
    /// Seconds of Unix time.
    pub(crate) created: u64,
    /// Of the model.
    pub(crate) model: String,
    /// Where it is spoken.
    pub(crate) spoken: Option<Spoken>,
}

/// What stands beside sound.
#[derive(Debug, Clone)]
pub(crate) struct Spoken {
    /// By which a later request may name it.
    pub(crate) id: String,
    /// Seconds of Unix time until which it may.
    pub(crate) expires_at: u64,
}

impl Names {
    /// The object of a complete answer; `sound` is a file, where it is spoken.
    fn completion(&self, text: &str, sound: &[u8], counted: &Usage) -> Value {
        let mut message = json!({"role": "assistant", "content": text, "refusal": null});
        if let Some(spoken) = &self.spoken {
            message["content"] = Value::Null;
            message["audio"] = json!({
                "id": spoken.id, "expires_at": spoken.expires_at,
                "data": STANDARD.encode(sound), "transcript": text,
            });
        }
        let choice = json!({
            "index": 0, "message": message, "logprobs": null,
            "finish_reason": finish_reason(counted.finish),
        });
        json!({
            "id": self.id, "object": "chat.completion", "created": self.created,
            "model": self.model, "choices": [choice], "usage": usage(counted),
            "service_tier": "default", "system_fingerprint": null,
        })
    }

    fn chunk(&self, choices: &Value) -> Value {
        json!({
            "id": self.id, "object": "chat.completion.chunk", "created": self.created,
            "model": self.model, "choices": choices,
            "service_tier": "default", "system_fingerprint": null,
        })
    }
}

fn finish_reason(finish: Finish) -> &'static str {
    match finish {
        Finish::Stop => "stop",
        Finish::Length => "length",
    }
}

/// What an answer counts as. Tokens of sound are frames of the model's codes.
fn usage(usage: &Usage) -> Value {
    let prompt = usage.prompt_tokens + usage.prompt_audio_tokens;
    let completion = usage.text_tokens + usage.audio_frames;
    json!({
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion,
        "prompt_tokens_details": {
            "audio_tokens": usage.prompt_audio_tokens, "text_tokens": usage.prompt_tokens,
            "cached_tokens": 0,
        },
        "completion_tokens_details": {
            "audio_tokens": usage.audio_frames, "text_tokens": usage.text_tokens,
            "reasoning_tokens": 0, "accepted_prediction_tokens": 0, "rejected_prediction_tokens": 0,
        },
    })
}

/// What a complete answer said, for who wants to keep it.
pub(crate) type Keep = Box<dyn FnOnce(String) + Send>;

/// An answer in one object.
pub(crate) struct Object {
    names: Names,
    /// Whether its samples are to be a WAV.
    in_wav: bool,
    text: String,
    sound: Vec<u8>,
    keep: Option<Keep>,
}

impl Object {
    /// Of an answer that is about to begin; `keep` is given its text at its end.
    pub(crate) fn new(names: Names, in_wav: bool, keep: Keep) -> Self {
        Self { names, in_wav, text: String::new(), sound: Vec::new(), keep: Some(keep) }
    }
}

impl Framing for Object {
    fn content_type(&self) -> &'static str {
        "application/json"
    }

    fn learn(&mut self, event: &Event) -> Bytes {
        if let Event::Text { delta } = event {
            self.text.push_str(delta);
        }
        Bytes::new()
    }

    fn sound(&mut self, bytes: &[u8]) -> Bytes {
        self.sound.extend_from_slice(bytes);
        Bytes::new()
    }

    fn done(&mut self, summary: &Summary) -> Bytes {
        if self.in_wav {
            self.sound = complete_wav(&self.sound);
        }
        let counted = summary.usage.unwrap_or_default();
        let object = self.names.completion(&self.text, &self.sound, &counted);
        if let Some(keep) = self.keep.take() {
            keep(std::mem::take(&mut self.text));
        }
        object.to_string().into()
    }

    fn broken(&mut self, _message: &str) -> Bytes {
        // Nothing was sent: the status says it.
        Bytes::new()
    }
}

/// An answer in chunks.
pub(crate) struct Chunks {
    names: Names,
    has_usage: bool,
    has_begun: bool,
    text: String,
    keep: Option<Keep>,
}

impl Chunks {
    /// Of an answer that is about to begin; `keep` is given its text at its end.
    pub(crate) fn new(names: Names, has_usage: bool, keep: Keep) -> Self {
        Self { names, has_usage, has_begun: false, text: String::new(), keep: Some(keep) }
    }

    fn delta(&mut self, delta: &Value, finish: Option<&str>) -> Bytes {
        let mut bytes = Vec::new();
        if !std::mem::replace(&mut self.has_begun, true) {
            let mut first = json!({"role": "assistant", "refusal": null});
            match &self.names.spoken {
                Some(spoken) => first["audio"] = json!({"id": spoken.id, "transcript": ""}),
                None => first["content"] = json!(""),
            }
            bytes.extend(self.choice(&first, None));
        }
        bytes.extend(self.choice(delta, finish));
        bytes.into()
    }

    fn choice(&self, delta: &Value, finish: Option<&str>) -> Bytes {
        let choice =
            json!([{"index": 0, "delta": delta, "logprobs": null, "finish_reason": finish}]);
        let mut chunk = self.names.chunk(&choice);
        if self.has_usage {
            chunk["usage"] = Value::Null;
        }
        server_sent(None, &chunk)
    }
}

impl Framing for Chunks {
    fn learn(&mut self, event: &Event) -> Bytes {
        let Event::Text { delta } = event else { return Bytes::new() };
        self.text.push_str(delta);
        let delta = match &self.names.spoken {
            Some(spoken) => json!({"audio": {"id": spoken.id, "transcript": delta}}),
            None => json!({"content": delta}),
        };
        self.delta(&delta, None)
    }

    fn sound(&mut self, bytes: &[u8]) -> Bytes {
        let Some(spoken) = &self.names.spoken else { return Bytes::new() };
        let delta = json!({"audio": {"id": spoken.id, "data": STANDARD.encode(bytes)}});
        self.delta(&delta, None)
    }

    fn done(&mut self, summary: &Summary) -> Bytes {
        let counted = summary.usage.unwrap_or_default();
        let mut bytes = Vec::new();
        if let Some(Spoken { id, expires_at }) = &self.names.spoken {
            let delta = json!({"audio": {"id": id, "expires_at": expires_at}});
            bytes.extend(self.delta(&delta, None));
        }
        bytes.extend(self.delta(&json!({}), Some(finish_reason(counted.finish))));
        if self.has_usage {
            let mut chunk = self.names.chunk(&json!([]));
            chunk["usage"] = usage(&counted);
            bytes.extend(server_sent(None, &chunk));
        }
        bytes.extend(b"data: [DONE]\n\n");
        if let Some(keep) = self.keep.take() {
            keep(std::mem::take(&mut self.text));
        }
        bytes.into()
    }

    fn broken(&mut self, message: &str) -> Bytes {
        let error = json!({
            "message": message, "type": "server_error", "param": null, "code": "engine_failed",
        });
        server_sent(None, &json!({"error": error}))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    const USAGE: Usage = Usage {
        prompt_tokens: 10,
        prompt_audio_tokens: 25,
        text_tokens: 3,
        audio_frames: 40,
        finish: Finish::Stop,
    };

    fn names(is_spoken: bool) -> Names {
        let spoken = Spoken { id: "audio_1".into(), expires_at: 99 };
        let spoken = is_spoken.then_some(spoken);
        Names { id: "chatcmpl-1".into(), created: 7, model: "bag".into(), spoken }
    }

    fn text(delta: &str) -> Event {
        Event::Text { delta: delta.to_owned() }
    }

    /// The chunks of an answer, and what was kept of it.
    fn chunks(is_spoken: bool, has_usage: bool) -> (Vec<Value>, String) {
        let kept = Arc::new(Mutex::new(String::new()));
        let keeper = kept.clone();
        let keep = Box::new(move |text| *keeper.lock().unwrap() = text);
        let mut chunks = Chunks::new(names(is_spoken), has_usage, keep);
        let mut bytes = Vec::new();
        bytes.extend(chunks.learn(&text("Good ")));
        bytes.extend(chunks.learn(&Event::Flushed { samples: 0 }));
        bytes.extend(chunks.learn(&text("\"day\"\n\n")));
        if is_spoken {
            bytes.extend(chunks.sound(&[1, 2]));
        }
        bytes.extend(chunks.done(&Summary { usage: Some(USAGE), ..Summary::default() }));
        let stream = String::from_utf8(bytes).unwrap();
        let stream =
            stream.strip_suffix("data: [DONE]\n\n").expect("the end that clients wait for");
        let events = stream.split_terminator("\n\n");
        let events = events.map(|e| serde_json::from_str(e.strip_prefix("data: ").unwrap()));
        let text = kept.lock().unwrap().clone();
        (events.collect::<Result<_, _>>().unwrap(), text)
    }

    #[test]
    fn a_written_answer_is_content() {
        let (chunks, kept) = chunks(false, false);
        let deltas: Vec<&Value> = chunks.iter().map(|c| &c["choices"][0]["delta"]).collect();
        assert_eq!(deltas[0], &json!({"role": "assistant", "refusal": null, "content": ""}));
        let content = deltas.iter().filter_map(|d| d["content"].as_str()).collect::<String>();
        assert_eq!((content.as_str(), kept.as_str()), ("Good \"day\"\n\n", "Good \"day\"\n\n"));
        let last = chunks.last().unwrap();
        assert_eq!(last["choices"][0]["finish_reason"], "stop");
        assert!(
            chunks
                .iter()
                .all(|c| c["object"] == "chat.completion.chunk" && c["id"] == "chatcmpl-1")
        );
        assert!(chunks.iter().all(|c| c.get("usage").is_none()));
    }

    #[test]
    fn a_spoken_answer_is_a_transcript_and_sound_of_one_name() {
        let (chunks, _) = chunks(true, true);
        let audio = chunks.iter().map(|c| &c["choices"][0]["delta"]["audio"]);
        let audio: Vec<&Value> = audio.filter(|audio| !audio.is_null()).collect();
        assert!(audio.iter().all(|audio| audio["id"] == "audio_1"));
        let said =
            audio.iter().filter_map(|audio| audio["transcript"].as_str()).collect::<String>();
        assert_eq!(said, "Good \"day\"\n\n");
        assert_eq!(audio.iter().filter(|a| a["data"] == STANDARD.encode([1, 2])).count(), 1);
        assert_eq!(audio.last().unwrap()["expires_at"], 99);
        let last = chunks.last().unwrap();
        assert_eq!((&last["choices"], &last["usage"]["total_tokens"]), (&json!([]), &json!(78)));
        assert!(chunks[..chunks.len() - 1].iter().all(|c| c["usage"].is_null()));
    }

    #[test]
    fn an_answer_of_nothing_is_complete_all_the_same() {
        let mut chunks = Chunks::new(names(false), false, Box::new(|_| {}));
        let usage = Usage { finish: Finish::Length, ..Usage::default() };
        let bytes = chunks.done(&Summary { usage: Some(usage), ..Summary::default() });
        let stream = String::from_utf8(bytes.to_vec()).unwrap();
        assert_eq!(stream.matches("data: ").count(), 3, "{stream}");
        assert!(stream.contains(r#""role":"assistant""#) && stream.contains(r#""length""#));
    }

    #[test]
    fn one_object_has_text_sound_and_what_it_counts_as() {
        let object = |is_spoken: bool, in_wav: bool| -> Value {
            let mut object = Object::new(names(is_spoken), in_wav, Box::new(|_| {}));
            assert!(object.learn(&text("H")).is_empty() && object.learn(&text("i.")).is_empty());
            assert!(object.sound(&[1, 2]).is_empty() && object.sound(&[3, 4]).is_empty());
            let summary = Summary { usage: Some(USAGE), ..Summary::default() };
            serde_json::from_slice(&object.done(&summary)).unwrap()
        };
        let spoken = object(true, false);
        let message = &spoken["choices"][0]["message"];
        let audio =
            json!({"id": "audio_1", "expires_at": 99, "data": "AQIDBA==", "transcript": "Hi."});
        assert_eq!((&message["content"], &message["audio"]), (&Value::Null, &audio));
        let counted = &spoken["usage"];
        assert_eq!(
            (&counted["prompt_tokens"], &counted["completion_tokens"]),
            (&json!(35), &json!(43))
        );
        assert_eq!(counted["completion_tokens_details"]["audio_tokens"], 40);
        let wav = object(true, true);
        let wav = wav["choices"][0]["message"]["audio"]["data"].as_str().unwrap();
        let heard = codecs::wav::Wav::read(&STANDARD.decode(wav).unwrap()).unwrap();
        assert_eq!((heard.sample_rate, heard.samples.len()), (24_000, 2));
        let written = object(false, false);
        let message = &written["choices"][0]["message"];
        assert_eq!((&message["content"], message.get("audio")), (&json!("Hi."), None));
    }

    #[test]
    fn what_breaks_it_off_is_told_as_clients_raise_it() {
        let mut chunks = Chunks::new(names(false), false, Box::new(|_| {}));
        let event = String::from_utf8(chunks.broken("why").to_vec()).unwrap();
        assert!(event.starts_with(r#"data: {"error":{"#) && event.ends_with("}\n\n"), "{event}");
    }
}
