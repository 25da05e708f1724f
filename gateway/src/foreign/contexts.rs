//! The contexts of a connection: a client's name for each, and ours, which is a number that is used once.
//!
//! ```text
//! client   "a" open ... "a" end      "a" again
//! session  "1" ........ draining     "2", whose sound waits for the end of "1"
//! ```

use std::collections::BTreeMap;

use super::whole::Word;
use super::{Format, Step, lacks_space};
use crate::protocol::Handle;
use crate::protocol::event::{
    Cancel, ClientEvent, Commit, End, Flush, Open, Opened, Options, TextDelta,
};

/// Flushes of a context under way beyond which text is not flushed by itself: it is spoken in its turn.
const FLUSHES_MAX: u32 = 32;

/// All contexts of a connection that the client has not heard the last of.
pub(super) struct Contexts<T> {
    by_number: BTreeMap<u64, Context<T>>,
    next: u64,
}

/// One of them.
pub(super) struct Context<T> {
    /// The client's name.
    pub(super) name: String,
    pub(super) format: Format,
    /// What the dialect remembers of it.
    pub(super) own: T,
    number: u64,
    handle: Option<Handle>,
    /// Number of the next piece of text.
    seq: u64,
    is_ended: bool,
    /// Flushes that were not answered.
    flushes: u32,
    /// What no commit has told of yet, and where in the context's text it begins, in code points.
    script: String,
    script_from: usize,
    /// The last piece of text.
    last: String,
}

impl<T> Default for Contexts<T> {
    fn default() -> Self {
        Self { by_number: BTreeMap::new(), next: 1 }
    }
}

impl<T> Contexts<T> {
    /// Opens a context; without a name it gets one. If one of that name is still being spoken, this one is spoken behind it.
    pub(super) fn open(
        &mut self,
        name: Option<String>,
        format: Format,
        options: Options,
        own: T,
    ) -> (&mut Context<T>, Step) {
        let number = self.next;
        self.next += 1;
        let name = name.unwrap_or_else(|| format!("context-{number}"));
        let before = self.by_number.values().rfind(|context| context.name == name);
        let open = Open {
            ctx: number.to_string(),
            after: before.map(|context| context.number.to_string()),
            format: Some(format),
            options,
            ..Open::default()
        };
        let context = Context {
            name,
            format,
            own,
            number,
            handle: None,
            seq: 0,
            is_ended: false,
            flushes: 0,
            script: String::new(),
            script_from: 0,
            last: String::new(),
        };
        let context = self.by_number.entry(number).or_insert(context);
        (context, Step::Say(ClientEvent::Open(Box::new(open))))
    }

    /// The context of a name that takes text.
    pub(super) fn open_of(&mut self, name: &str) -> Option<&mut Context<T>> {
        self.by_number.values_mut().rfind(|context| context.name == name && !context.is_ended)
    }

    /// Whether something of this name is still being spoken.
    pub(super) fn speaks(&self, name: &str) -> bool {
        self.by_number.values().any(|context| context.name == name)
    }

    /// The client has no more text for any of them.
    pub(super) fn end_all(&mut self) -> Vec<Step> {
        let open = self.by_number.values_mut().filter(|context| !context.is_ended);
        open.map(Context::end).collect()
    }

    /// The context that the session calls so.
    pub(super) fn of(&mut self, ctx: &str) -> Option<&mut Context<T>> {
        self.by_number.get_mut(&ctx.parse().ok()?)
    }

    /// The context that sound belongs to.
    pub(super) fn of_handle(&mut self, handle: Handle) -> Option<&mut Context<T>> {
        self.by_number.values_mut().find(|context| context.handle == Some(handle))
    }

    /// The session has opened a context.
    pub(super) fn opened(&mut self, opened: &Opened) {
        if !opened.ignored.is_empty() {
            tracing::info!(ignored = ?opened.ignored, "a context is spoken without what the models have not");
        }
        if let Some(context) = self.of(&opened.ctx) {
            context.handle = Some(opened.handle);
        }
    }

    /// The client has heard the last of a context.
    pub(super) fn remove(&mut self, ctx: &str) -> Option<Context<T>> {
        self.by_number.remove(&ctx.parse().ok()?)
    }

    /// The client wants to hear no more under a name: what is to be said to the session about it.
    pub(super) fn stop(&mut self, name: &str) -> Vec<Step> {
        let stopped = self.by_number.extract_if(.., |_, context| context.name == name);
        stopped.map(|(_, context)| context.cancel()).collect()
    }
}

impl<T> Context<T> {
    /// More text, as it came.
    pub(super) fn text(&mut self, text: String) -> Step {
        self.script.push_str(&text);
        if !text.is_empty() {
            self.last.clone_from(&text);
        }
        let seq = self.seq;
        self.seq += 1;
        let delta = TextDelta { ctx: self.number.to_string(), seq, text, end: false };
        Step::Say(ClientEvent::Text(delta))
    }

    /// More text from a client that sends whole sentences, with a space between two of them if there is none.
    pub(super) fn sentence(&mut self, text: String) -> Step {
        let text = if lacks_space(&self.last, &text) { format!(" {text}") } else { text };
        self.text(text)
    }

    /// Speak what there is.
    pub(super) fn flush(&mut self, id: Option<String>) -> Step {
        self.flushes += 1;
        Step::Say(ClientEvent::Flush(Flush { ctx: self.number.to_string(), id }))
    }

    /// Speak what there is, for a client that asks so with every piece of text: nothing if many flushes are under way.
    pub(super) fn flush_quietly(&mut self) -> Option<Step> {
        (self.flushes < FLUSHES_MAX).then(|| self.flush(None))
    }

    /// A flush was answered.
    pub(super) fn flushed(&mut self) {
        self.flushes = self.flushes.saturating_sub(1);
    }

    /// No more text.
    pub(super) fn end(&mut self) -> Step {
        self.is_ended = true;
        Step::Say(ClientEvent::End(End { ctx: self.number.to_string() }))
    }

    /// Stop.
    fn cancel(&self) -> Step {
        let cancel = Cancel { ctx: self.number.to_string(), played: None, at: None };
        Step::Say(ClientEvent::Cancel(cancel))
    }

    /// As [`Context::timed`], in seconds.
    pub(super) fn words(&mut self, commit: &Commit) -> Vec<Word> {
        let rate = f64::from(self.format.sample_rate);
        let second = |position: u64| position as f64 / rate;
        let word = |(text, [start, end]): (String, [u64; 2])| Word {
            text,
            start_s: second(start),
            end_s: second(end),
        };
        self.timed(commit).into_iter().map(word).collect()
    }

    /// The words or characters of a commit as they were written, with their places on the context's clock. They are
    /// forgotten here.
    pub(super) fn timed(&mut self, commit: &Commit) -> Vec<(String, [u64; 2])> {
        let mut words = Vec::new();
        let timed = commit.words.iter().chain(&commit.chars).flatten();
        for &[from, to, start, end] in timed {
            let (from, to) = (from as usize, to as usize);
            let skipped = from.saturating_sub(self.script_from);
            let word = self.script.chars().skip(skipped).take(to.saturating_sub(from)).collect();
            words.push((word, [start, end]));
        }
        let told = commit.text.to.saturating_sub(self.script_from);
        let bytes = self.script.char_indices().nth(told).map_or(self.script.len(), |(at, _)| at);
        self.script.drain(..bytes);
        self.script_from += told;
        words
    }
}
