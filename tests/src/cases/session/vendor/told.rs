//! What a client's messages mean natively, and what it remembers of having said them.

use serde_json::{Value, json};

use super::super::surface::Surface;
use super::{Client, Last, NAME, State, Turn};

impl Client {
    /// Takes note of a message that goes out; `ctx` is whose it is, where only the case says so. Gives its meaning.
    pub(in super::super) fn told(&mut self, message: &Value, ctx: Option<&str>) -> Vec<Value> {
        match self.vendor.surface {
            Surface::Cartesia => self.told_cartesia(message),
            Surface::Deepgram => self.told_deepgram(message, ctx),
            Surface::Elevenlabs => self.told_elevenlabs(message, ctx),
            _ => match message["type"].as_str() {
                Some("input_transcript") => {
                    let at = self.open(&self.next_name(ctx));
                    self.text(at, message["transcript"].as_str().unwrap_or_default())
                }
                Some("session.flush") => {
                    let at = self.open(&self.next_name(ctx));
                    self.end(at)
                }
                _ => Vec::new(),
            },
        }
    }

    fn told_cartesia(&mut self, message: &Value) -> Vec<Value> {
        let name = message["context_id"].as_str().unwrap_or_default();
        if message["cancel"] == true {
            return self.cancel(Some(name));
        }
        let text = message["transcript"].as_str().unwrap_or_default();
        let ends = message["continue"] != true;
        let speaks = self.of(name).any(|(_, turn)| !turn.state.is_over());
        if ends && text.trim().is_empty() && self.taking(name).is_none() && speaks {
            return Vec::new();
        }
        let at = self.open(name);
        let mut meaning = self.text(at, text);
        if ends {
            meaning.extend(self.end(at));
        }
        meaning
    }

    fn told_deepgram(&mut self, message: &Value, ctx: Option<&str>) -> Vec<Value> {
        match message["type"].as_str() {
            Some("Speak") => {
                let at = self.open(&self.next_name(ctx));
                self.text(at, message["text"].as_str().unwrap_or_default())
            }
            Some("Flush") => {
                let at = self.open(&self.next_name(ctx));
                self.end(at)
            }
            Some("Clear" | "Close") => self.cancel(None),
            _ => Vec::new(),
        }
    }

    fn told_elevenlabs(&mut self, message: &Value, ctx: Option<&str>) -> Vec<Value> {
        let is_single = !self.vendor.is_multi;
        let name = match message["context_id"].as_str().or(message["contextId"].as_str()) {
            Some(name) => name.to_owned(),
            None if is_single => self.next_name(ctx),
            None => String::new(),
        };
        let (text, flush) = (message["text"].as_str(), message["flush"] == true);
        if message["close_socket"] == true || (is_single && text == Some("")) {
            let open = |at: &usize| self.turns[*at].state == State::Open;
            let open: Vec<usize> = (0..self.turns.len()).filter(open).collect();
            return open.into_iter().flat_map(|at| self.end(at)).collect();
        }
        let mut meaning = Vec::new();
        let has_text = text.is_some_and(|text| !text.trim().is_empty());
        if let Some(text) = text.filter(|text| !text.is_empty()) {
            let is_new = self.taking(&name).is_none();
            let at = self.open(&name);
            // The blank that opens is not spoken.
            if has_text || !is_new {
                meaning.extend(self.text(at, text));
            }
        }
        if let Some(at) = self.taking(&name) {
            let turn = &mut self.turns[at];
            turn.last = match (has_text, flush) {
                (true, false) => Last::Text,
                (true, true) => Last::Phrase,
                (false, true) => Last::Flush,
                (false, false) => turn.last,
            };
        }
        if message["close_context"] == true {
            meaning.extend(match self.taking(&name) {
                Some(at) if self.turns[at].last != Last::Text => self.end(at),
                _ => self.cancel(Some(&name)),
            });
        }
        meaning
    }

    /// What a turn is called that has no name on the wire: as its client says, or as the case calls it later.
    fn next_name(&self, ctx: Option<&str>) -> String {
        let names = &self.vendor.names;
        let open = self.turns.iter().filter(|turn| turn.state == State::Open).count();
        let at = self.turns.len() - open;
        let name = ctx.or(names.get(at).or(names.last()).map(String::as_str));
        name.unwrap_or(NAME).to_owned()
    }

    /// The turn of a name that takes text. Where turns have no names, there is but one.
    fn taking(&self, name: &str) -> Option<usize> {
        let is_named = self.vendor.has_names();
        let takes = |turn: &Turn| turn.state == State::Open && (!is_named || turn.ctx == name);
        self.turns.iter().rposition(takes)
    }

    fn open(&mut self, name: &str) -> usize {
        self.taking(name).unwrap_or_else(|| {
            self.turns.push(Turn { ctx: name.to_owned(), ..Turn::default() });
            self.turns.len() - 1
        })
    }

    fn text(&mut self, at: usize, text: &str) -> Vec<Value> {
        let turn = &mut self.turns[at];
        turn.text.push_str(text);
        vec![json!({"type": "text", "ctx": turn.ctx, "text": text})]
    }

    fn end(&mut self, at: usize) -> Vec<Value> {
        let turn = &mut self.turns[at];
        turn.state = State::Ended;
        vec![json!({"type": "end", "ctx": turn.ctx})]
    }

    /// No more of a name, or of any.
    fn cancel(&mut self, name: Option<&str>) -> Vec<Value> {
        let mut meaning = Vec::new();
        for turn in &mut self.turns {
            if !turn.state.is_over() && name.is_none_or(|name| turn.ctx == name) {
                turn.state = State::Cancelled;
                meaning.push(json!({"type": "cancel", "ctx": turn.ctx}));
            }
        }
        meaning
    }
}
