//! What the server's messages mean natively.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::super::surface::Surface;
use super::super::transcript::{Audio, What};
use super::{Client, NAME, State};

impl Client {
    /// What a text message of the server comes to.
    pub(in super::super) fn heard(&mut self, message: &Value) -> Vec<What> {
        match self.vendor.surface {
            Surface::Deepgram => self.heard_deepgram(message),
            Surface::Elevenlabs => self.heard_elevenlabs(message),
            _ => self.heard_typed(message),
        }
    }

    /// Sound that comes bare.
    pub(in super::super) fn sound(&mut self, bytes: &[u8]) -> What {
        match self.speaking() {
            Some(at) => self.audio(at, bytes.to_vec()),
            None => What::Odd("sound that is no turn's".to_owned()),
        }
    }

    /// Cartesia's messages and LiveKit's differ in the names of things.
    fn heard_typed(&mut self, message: &Value) -> Vec<What> {
        let kind = message["type"].as_str().unwrap_or_default();
        let at = match self.vendor.surface {
            Surface::Cartesia => self.oldest(message["context_id"].as_str().unwrap_or_default()),
            _ => self.speaking(),
        };
        let sound = message["data"].as_str().or(message["audio"].as_str());
        match (kind, at) {
            ("chunk" | "output_audio", Some(at)) => self.encoded(at, sound).into_iter().collect(),
            ("timestamps", Some(at)) => {
                let lists = &message["word_timestamps"];
                let list = |field: &str| lists[field].as_array().cloned().unwrap_or_default();
                let times = list("start").into_iter().zip(list("end"));
                let words = list("words").into_iter().zip(times).map(|(word, (s, e))| (word, s, e));
                vec![self.words(at, words.collect())]
            }
            ("output_alignment", Some(at)) => {
                let words = message["words"].as_array().cloned().unwrap_or_default();
                let word = |w: &Value| (w["word"].clone(), w["start"].clone(), w["end"].clone());
                vec![self.words(at, words.iter().map(word).collect())]
            }
            ("done", Some(at)) => vec![self.ended(at, message)],
            ("error", _) => vec![self.error(at, message)],
            ("flush_done", Some(at)) => vec![event("flushed", &self.turns[at].ctx, message)],
            ("chunk" | "output_audio" | "done", None) => {
                vec![What::Odd(format!("{kind} that is no context's: {message}"))]
            }
            (kind, at) => vec![event(kind, at.map_or("", |at| &self.turns[at].ctx), message)],
        }
    }

    fn heard_deepgram(&mut self, message: &Value) -> Vec<What> {
        let kind = message["type"].as_str().unwrap_or_default();
        match (kind, self.speaking()) {
            ("Flushed", Some(at)) => vec![self.ended(at, message)],
            ("Flushed", None) => vec![What::Odd("Flushed that is no turn's".to_owned())],
            ("Cleared", _) => {
                let mut name = None;
                for turn in self.turns.iter_mut().filter(|turn| turn.state == State::Cancelled) {
                    turn.state = State::Stopped;
                    name = Some(turn.ctx.clone());
                }
                let last = self.turns.last().map_or(NAME, |turn| &turn.ctx);
                vec![event("context.cancelled", name.as_deref().unwrap_or(last), message)]
            }
            ("Error", at) => vec![self.error(at, message)],
            (kind, _) => vec![event(kind, "", message)],
        }
    }

    fn heard_elevenlabs(&mut self, message: &Value) -> Vec<What> {
        let at = match self.vendor.is_multi {
            true => self.oldest(message["contextId"].as_str().unwrap_or_default()),
            false => self.speaking(),
        };
        if !message["error"].is_null() {
            return vec![self.error(at, message)];
        }
        let Some(at) = at.or_else(|| self.failed(message)) else {
            return vec![What::Odd(format!("a message that is no context's: {message}"))];
        };
        let mut all: Vec<What> = self.encoded(at, message["audio"].as_str()).into_iter().collect();
        let list =
            |field: &str| message["alignment"][field].as_array().cloned().unwrap_or_default();
        let (chars, starts) = (list("chars"), list("charStartTimesMs"));
        let base = self.turns[at].told_ms;
        let mut words = Vec::new();
        let mut end = 0;
        for ((ch, start), length) in chars.into_iter().zip(starts).zip(list("charDurationsMs")) {
            let start = start.as_u64().unwrap_or_default();
            end = start + length.as_u64().unwrap_or_default();
            let second = |ms: u64| json!((base + ms) as f64 / 1e3);
            words.push((ch, second(start), second(end)));
        }
        if !words.is_empty() {
            self.turns[at].told_ms += end;
            all.push(self.words(at, words));
        }
        if message["isFinal"] == true {
            all.push(self.ended(at, message));
        }
        all
    }

    /// A turn that failed still gets its last message.
    fn failed(&self, message: &Value) -> Option<usize> {
        let name = message["contextId"].as_str().unwrap_or_default();
        let fits = |ctx: &str| !self.vendor.is_multi || name == ctx;
        self.turns.iter().rposition(|turn| turn.state == State::Failed && fits(&turn.ctx))
    }

    /// The first turn that is not over.
    fn speaking(&self) -> Option<usize> {
        self.turns.iter().position(|turn| !turn.state.is_over())
    }

    /// As [`Client::speaking`], of a name. Of a name that is used again behind a cancel that nobody answers, the new one.
    fn oldest(&self, name: &str) -> Option<usize> {
        let of = |wanted: fn(State) -> bool| {
            self.turns.iter().position(|turn| turn.ctx == name && wanted(turn.state))
        };
        let waits = |state: State| matches!(state, State::Open | State::Ended);
        match self.vendor.surface {
            Surface::Cartesia => of(waits).or(of(|state| !state.is_over())),
            _ => of(|state| !state.is_over()),
        }
    }

    fn encoded(&mut self, at: usize, data: Option<&str>) -> Option<What> {
        let data = data.filter(|data| !data.is_empty())?;
        Some(match STANDARD.decode(data) {
            Ok(bytes) => self.audio(at, bytes),
            Err(error) => What::Odd(format!("not base64: {error}")),
        })
    }

    fn audio(&mut self, at: usize, payload: Vec<u8>) -> What {
        let bytes = self.vendor.format.sample_bytes().unwrap_or(1);
        let turn = &mut self.turns[at];
        let audio =
            Audio { ctx: turn.ctx.clone(), turn: at, seq: turn.frames, pos: turn.samples, payload };
        turn.frames += 1;
        turn.samples += (audio.payload.len() / bytes) as u64;
        What::Audio(audio)
    }

    /// Words with their start and end in seconds, at their places in the turn's text.
    fn words(&mut self, at: usize, words: Vec<(Value, Value, Value)>) -> What {
        let rate = f64::from(self.vendor.format.rate());
        let position = |seconds: &Value| (seconds.as_f64().unwrap_or(-1.0) * rate).round() as u64;
        let turn = &mut self.turns[at];
        let text: Vec<char> = turn.text.chars().collect();
        let mut placed = Vec::new();
        for (word, start, end) in words {
            let word: Vec<char> = word.as_str().unwrap_or_default().chars().collect();
            if word.iter().all(|ch| ch.is_whitespace()) {
                continue;
            }
            let rest = text.get(turn.told_chars..).unwrap_or_default();
            let Some(found) = rest.windows(word.len()).position(|w| w == word) else {
                return What::Odd(format!("{word:?} is not in what follows"));
            };
            let from = turn.told_chars + found;
            turn.told_chars = from + word.len();
            placed.push(json!([from, turn.told_chars, position(&start), position(&end)]));
        }
        What::Event(json!({"type": "commit", "ctx": turn.ctx, "words": placed}))
    }

    /// The server's last word about a turn.
    fn ended(&mut self, at: usize, message: &Value) -> What {
        let turn = &mut self.turns[at];
        let (state, kind) = match turn.state {
            State::Cancelled => (State::Stopped, "context.cancelled"),
            State::Failed => (State::Failed, "context.cancelled"),
            _ => (State::Done, "context.done"),
        };
        turn.state = state;
        event(kind, &turn.ctx, message)
    }

    fn error(&mut self, at: Option<usize>, message: &Value) -> What {
        let field = |name: &str| message[name].as_str();
        let code = field("error_code").or(field("code")).or(field("error")).unwrap_or_default();
        let named = field("context_id").or(field("contextId")).map(str::to_owned);
        // A message without a name is about the connection, where there are names.
        let is_about = named.is_some() || !self.vendor.has_names();
        let ctx = match at.filter(|_| is_about) {
            Some(at) => {
                self.turns[at].state = State::Failed;
                self.turns[at].ctx.clone()
            }
            None => named.unwrap_or_default(),
        };
        let text = field("message").or(field("description")).unwrap_or_default();
        What::Event(json!({"type": "error", "ctx": ctx, "code": code, "message": text}))
    }
}

fn event(kind: &str, ctx: &str, message: &Value) -> What {
    What::Event(json!({"type": kind, "ctx": ctx, "said": message}))
}
