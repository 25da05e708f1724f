//! Thousands of random sessions on virtual time, beside a model that knows what must hold: order, positions, exactly
//! one end for each context, nothing behind a barrier, text neither lost nor doubled.

use std::collections::BTreeMap;
use std::ops::Range;
use std::time::Duration;

use engine::answer::Modality;
use engine::{Event, Failure, Segment};
use serde_json::{Value, json};

use super::rig::{Rig, Seen};
use crate::protocol::{Handle, Input, Output};

const SESSIONS: u64 = 10_000;
const ACTIONS: u64 = 80;
const WORDS: [&str; 5] = ["Ja, ", "the train ", "grüßt. ", "😀 ", "x"];

/// SplitMix64: small, seeded, the same everywhere.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % sides
    }
}

/// What the engine has of a context.
#[derive(Default)]
struct Fake {
    text: String,
    chunked: usize,
    chunk: Option<Range<usize>>,
    samples: u64,
    flushes: usize,
    is_ended: bool,
    is_over: bool,
    /// Its name, if it answers.
    answers: Option<String>,
    /// Whether it has begun to say what it wrote, and has ended.
    speaks: bool,
    has_spoken: bool,
}

/// What the client knows of a context.
#[derive(Default)]
struct Told {
    /// Its text; of one that answers, what the engine wrote.
    text: String,
    answers: bool,
    next_seq: u64,
    marks: u64,
    /// The context whose end its sound waits for.
    after: Option<String>,
}

struct World {
    rig: Rig,
    dice: Dice,
    fakes: BTreeMap<Handle, Fake>,
    told: BTreeMap<String, Told>,
    /// Cancels of a single id: each has one answer.
    cancels: usize,
    opens: u64,
    /// Whether the session outlives its socket.
    is_kept: bool,
    /// What the client has seen for sure.
    safe: usize,
}

impl World {
    fn new(seed: u64) -> Self {
        let mut dice = Dice(seed);
        let pack = [1, 1, 3, 50][dice.roll(4) as usize];
        let release = if dice.roll(4) == 0 { "commit" } else { "frame" };
        let audio = json!({"codec": "pcm_s16le", "pack": pack});
        let window = [0, 15_000][dice.roll(2) as usize];
        let mut rig = Rig::started_with(json!({
            "audio": audio, "flow": {"release": release}, "resume_window_ms": window
        }));
        rig.outputs.clear();
        let (fakes, told) = (BTreeMap::new(), BTreeMap::new());
        Self { rig, dice, fakes, told, cancels: 0, opens: 0, is_kept: window > 0, safe: 0 }
    }

    /// Any id: mostly one that exists.
    fn any_id(&mut self) -> String {
        format!("c{}", self.dice.roll(self.opens + 1))
    }

    fn act(&mut self) {
        match self.dice.roll(23) {
            0 | 1 => self.open(),
            2..=6 => self.text(),
            7 => self.on_any("flush"),
            8 => self.on_any("end"),
            9 => self.cancel(),
            10 => {
                let (ctx, pos) = (self.any_id(), self.dice.roll(100_000));
                self.rig.send(json!({"type": "played", "ctx": ctx, "pos": pos}));
                self.safe = self.rig.seen.len();
            }
            11 => {
                self.rig.is_writable = self.dice.roll(3) > 0;
                self.rig.pump();
            }
            12 => {
                // A wire that takes nothing for long is another test's.
                let longest = if self.rig.is_writable { 3_000 } else { 100 };
                let span = Duration::from_millis(self.dice.roll(longest));
                self.rig.sleep(span);
            }
            13 => {
                let ctx = self.any_id();
                let Some(told) = self.told.get_mut(&ctx) else { return };
                told.marks += 1;
                let id = told.marks.to_string();
                self.rig.send(json!({"type": "mark", "ctx": ctx, "id": id}));
            }
            15 if self.is_kept => self.lose(),
            14 => {
                let ctx = self.any_id();
                self.rig.send(json!({"type": "context.update", "ctx": ctx, "style": "agentic"}));
            }
            _ => {
                let handle = 1 + self.dice.roll(self.opens.max(1)) as Handle;
                self.progress(handle);
            }
        }
        self.obey();
    }

    /// The socket is lost with the last frames that were put on it, and the client comes back; or comes back at once.
    fn lose(&mut self) {
        let lost = self.dice.roll(8) as usize;
        let left = self.rig.seen.len().saturating_sub(lost).max(self.safe);
        self.rig.seen.truncate(left);
        if self.dice.roll(2) == 0 {
            self.rig.input(Input::Lost);
            for _ in 0..self.dice.roll(6) {
                let handle = 1 + self.dice.roll(self.opens.max(1)) as Handle;
                self.progress(handle);
                self.obey();
                let away = Duration::from_millis(self.dice.roll(2_000));
                self.rig.sleep(away);
            }
        }
        assert!(self.rig.resume());
    }

    fn open(&mut self) {
        let mut message = json!({"type": "context.open", "ctx": format!("c{}", self.opens)});
        if self.dice.roll(4) == 0 {
            let replaced = self.any_id();
            // Replacing oneself is a cancel of something unknown.
            self.cancels += 1;
            message["replaces"] = json!([replaced]);
        }
        let mut told = Told::default();
        if self.opens > 0 && self.dice.roll(4) == 0 {
            told.after = Some(format!("c{}", self.dice.roll(self.opens)));
            message["after"] = json!(told.after);
        }
        if self.dice.roll(4) == 0 {
            told.answers = true;
            message["messages"] = json!([{"role": "user", "content": "Und?"}]);
        }
        self.told.insert(format!("c{}", self.opens), told);
        self.opens += 1;
        self.rig.send(message);
    }

    fn text(&mut self) {
        let ctx = self.any_id();
        let Some(told) = self.told.get(&ctx) else { return };
        let seq = match self.dice.roll(8) {
            0 => told.next_seq.saturating_sub(1),
            1 => told.next_seq + 1,
            _ => told.next_seq,
        };
        let text = WORDS[self.dice.roll(WORDS.len() as u64) as usize];
        let errors = self.rig.session.control.len() + self.rig.seen.len();
        self.rig.send(json!({"type": "text", "ctx": ctx, "seq": seq, "text": text}));
        let is_refused = self.rig.session.control.len() + self.rig.seen.len() > errors;
        let told = self.told.get_mut(&ctx).unwrap();
        if seq == told.next_seq && !is_refused {
            told.text.push_str(text);
            told.next_seq += 1;
        }
    }

    fn on_any(&mut self, r#type: &str) {
        let ctx = self.any_id();
        self.rig.send(json!({"type": r#type, "ctx": ctx}));
    }

    fn cancel(&mut self) {
        if self.dice.roll(8) == 0 {
            return self.rig.send(json!({"type": "cancel", "ctx": "*"}));
        }
        self.cancels += 1;
        let ctx = self.any_id();
        let at = ["now", "now", "word", "sentence"][self.dice.roll(4) as usize];
        self.rig.send(json!({"type": "cancel", "ctx": ctx, "at": at}));
    }

    fn obey(&mut self) {
        for output in std::mem::take(&mut self.rig.outputs) {
            match output {
                Output::Open { context, .. } => {
                    self.fakes.insert(context, Fake::default());
                }
                Output::Answer { context, .. } => {
                    let name = self.rig.session.live.get(&context).map(|c| c.record.name.clone());
                    let answers = Some(name.unwrap_or_default());
                    self.fakes.insert(context, Fake { answers, ..Fake::default() });
                }
                Output::Speak { context, text } => {
                    self.fakes.get_mut(&context).unwrap().text.push_str(&text);
                }
                Output::Flush(context) => self.fakes.get_mut(&context).unwrap().flushes += 1,
                Output::End(context) => self.fakes.get_mut(&context).unwrap().is_ended = true,
                Output::Cancel(context) => {
                    self.fakes.get_mut(&context).unwrap().is_over = true;
                }
                _ => {}
            }
        }
    }

    /// The engine does a little for one context.
    fn progress(&mut self, handle: Handle) {
        let Some(fake) = self.fakes.get_mut(&handle).filter(|f| !f.is_over) else { return };
        let chars = fake.text.chars().count();
        if self.dice.roll(200) == 0 {
            fake.is_over = true;
            return self.rig.engine(handle, Event::Failed(Failure::Codec("bad luck".into())));
        }
        if fake.answers.is_some() {
            return self.answer(handle);
        }
        if let Some(chunk) = fake.chunk.clone() {
            let (packets, before) = (1 + self.dice.roll(60), fake.samples);
            fake.samples += packets * 480;
            let end = fake.samples;
            let is_end = self.dice.roll(2) == 0;
            if is_end {
                fake.chunk = None;
            }
            self.rig.speak(handle, before, packets, false);
            if is_end {
                self.rig
                    .engine(handle, Event::ChunkEnd { said: Default::default(), raw: chunk, end });
            }
        } else if fake.chunked < chars {
            let raw = fake.chunked..chars;
            (fake.chunked, fake.chunk) = (chars, Some(raw.clone()));
            self.rig.engine(handle, Event::Chunk { text: String::new(), raw });
        } else if fake.flushes > 0 {
            fake.flushes -= 1;
            let samples = fake.samples;
            self.rig.engine(handle, Event::Flushed { samples });
        } else if fake.is_ended {
            fake.is_over = true;
            let before = fake.samples;
            if before > 0 {
                fake.samples += 480;
                self.rig.speak(handle, before, 1, true);
            }
            let samples = self.fakes[&handle].samples;
            self.rig.done(handle, samples);
        }
    }

    /// The engine does a little for a context that answers: it writes, then it speaks.
    fn answer(&mut self, handle: Handle) {
        let (more, packets) = (self.dice.roll(3) > 0, 1 + self.dice.roll(60));
        let Some(fake) = self.fakes.get_mut(&handle) else { return };
        if !fake.speaks && more {
            let word = WORDS[packets as usize % WORDS.len()];
            fake.text.push_str(word);
            if let Some(told) = fake.answers.as_ref().and_then(|name| self.told.get_mut(name)) {
                told.text.push_str(word);
            }
            self.rig.engine(handle, Event::Text { delta: word.to_owned() });
        } else if !fake.speaks {
            fake.speaks = true;
            let text = fake.text.clone();
            self.rig.engine(handle, Event::SegmentEnd(Segment::Text(text)));
            self.rig.engine(handle, Event::Segment { modality: Modality::Audio });
        } else if !fake.has_spoken {
            let before = fake.samples;
            fake.samples += packets * 480;
            fake.has_spoken = !more;
            let end = fake.has_spoken;
            self.rig.speak(handle, before, packets, false);
            if end {
                let frames = packets as usize;
                self.rig.engine(handle, Event::SegmentEnd(Segment::Audio { frames, lost: 0 }));
            }
        } else {
            fake.is_over = true;
            let before = fake.samples;
            fake.samples += 480;
            let samples = fake.samples;
            self.rig.speak(handle, before, 1, true);
            self.rig.done(handle, samples);
        }
    }

    /// Lets everything come to its end, then looks at all that was seen.
    fn finish(mut self, seed: u64) {
        self.rig.is_writable = true;
        self.rig.pump();
        self.rig.send(json!({"type": "session.end"}));
        self.obey();
        self.rig.sleep(Duration::from_millis(20));
        assert_eq!(self.rig.close_code(), Some(1000), "seed {seed}");
        let mut contexts: BTreeMap<Handle, Watch> = BTreeMap::new();
        let mut answers = 0;
        let numbers = self.rig.seen.iter().filter_map(|seen| match seen {
            Seen::Text(event) if event["resumed"] != true => event["n"].as_u64(),
            _ => None,
        });
        assert!(numbers.eq(1..self.rig.session.n), "seed {seed}: a message is lost or doubled");
        for seen in &self.rig.seen {
            match seen {
                Seen::Audio { handle, .. } => {
                    let watch = contexts.get_mut(handle).expect("opened before it sounds");
                    watch.audio(seen);
                    let after = self.told[&watch.ctx].after.clone();
                    let other = contexts.values().find(|w| Some(&w.ctx) == after.as_ref());
                    assert!(other.is_none_or(|w| w.ends == 1), "seed {seed}: not {after:?} yet");
                }
                Seen::Text(event) => {
                    if event["type"] == "context.opened" {
                        let handle = event["handle"].as_u64().unwrap() as Handle;
                        let ctx = event["ctx"].as_str().unwrap().to_owned();
                        let again = contexts.insert(handle, Watch::new(ctx));
                        assert!(again.is_none(), "seed {seed}");
                    } else if let Some(watch) =
                        contexts.values_mut().find(|w| event["ctx"] == *w.ctx)
                    {
                        watch.event(event, &self.told[&watch.ctx]);
                    }
                    let reason = event["reason"].as_str().unwrap_or_default();
                    let is_asked = !["error", "session_end"].contains(&reason);
                    if event["type"] == "context.cancelled" && (is_asked || event["late"] == true) {
                        answers += 1;
                    }
                }
                Seen::Ping | Seen::Close(_) => {}
            }
        }
        assert!(
            answers >= self.cancels,
            "seed {seed}: {answers} answers, {} cancels",
            self.cancels
        );
        for (handle, watch) in &contexts {
            let fake = &self.fakes[handle];
            assert_eq!(watch.ends, 1, "seed {seed}: {} has not exactly one end", watch.ctx);
            assert_eq!(
                fake.text, self.told[&watch.ctx].text,
                "seed {seed}: text is lost or doubled"
            );
            if watch.is_done {
                let answered = watch.marks.len() as u64 + watch.marks_refused;
                assert_eq!(
                    answered, self.told[&watch.ctx].marks,
                    "seed {seed}: not one answer a mark"
                );
                assert_eq!(watch.samples, fake.samples, "seed {seed}");
                assert_eq!(watch.packets * 480, fake.samples, "seed {seed}: sound is lost");
            }
        }
    }
}

/// What was seen of one context, and what may follow.
struct Watch {
    ctx: String,
    packets: u64,
    /// A frame closed a commit, so its message comes next.
    owes_commit: bool,
    commit_to: u64,
    text_to: u64,
    marks: Vec<u64>,
    marks_refused: u64,
    ends: u32,
    is_done: bool,
    samples: u64,
    /// What the model has written.
    written: String,
}

impl Watch {
    fn new(ctx: String) -> Self {
        Self {
            ctx,
            packets: 0,
            owes_commit: false,
            commit_to: 0,
            text_to: 0,
            marks: Vec::new(),
            marks_refused: 0,
            ends: 0,
            is_done: false,
            samples: 0,
            written: String::new(),
        }
    }

    fn audio(&mut self, seen: &Seen) {
        let &Seen::Audio { flags, count, seq, pos, .. } = seen else { return };
        assert_eq!(self.ends, 0, "{}: sound behind the end", self.ctx);
        assert!(!self.owes_commit, "{}: sound before the commit of the sound before", self.ctx);
        assert_eq!((u64::from(seq), pos), (self.packets, self.packets * 480), "{}", self.ctx);
        self.packets += u64::from(count);
        self.owes_commit = flags & 1 != 0;
        let end = pos + u64::from(count) * 480;
        assert!(end.div_ceil(48_000) - pos / 48_000 <= 1, "{}: a frame in two commits", self.ctx);
        let at_boundary = (pos / 48_000) < end / 48_000;
        assert_eq!(self.owes_commit, at_boundary || flags & 2 != 0, "{}", self.ctx);
    }

    fn event(&mut self, event: &Value, told: &Told) {
        let number = |field: &str| event[field].as_u64().unwrap();
        match event["type"].as_str().unwrap() {
            "commit" => {
                assert!(std::mem::take(&mut self.owes_commit));
                assert_eq!(number("from"), self.commit_to);
                self.commit_to = number("to");
                assert_eq!(self.commit_to, self.packets * 480);
                assert_eq!(event["text"]["from"].as_u64().unwrap(), self.text_to);
                let text_to = event["text"]["to"].as_u64().unwrap();
                assert!(text_to >= self.text_to);
                self.text_to = text_to;
            }
            "mark" => {
                assert_eq!(self.ends, 0, "{}: {event} behind the end", self.ctx);
                let id: u64 = event["id"].as_str().unwrap().parse().unwrap();
                assert!(self.marks.last().is_none_or(|last| *last < id), "{event}");
                assert!(number("pos") <= self.packets * 480, "{event} before its sound");
                self.marks.push(id);
            }
            "text.delta" => {
                assert_eq!(self.ends, 0, "{}: {event} behind the end", self.ctx);
                assert_eq!(self.packets, 0, "{}: it is written before it is said", self.ctx);
                self.written.push_str(event["text"].as_str().unwrap());
            }
            "text.done" => assert_eq!(event["text"], self.written),
            "error" if event["ref"]["type"] == "mark" => self.marks_refused += 1,
            "context.done" => {
                self.ends += 1;
                (self.is_done, self.samples) = (true, number("samples"));
                assert_eq!(number("text_chars"), told.text.chars().count() as u64);
                assert!(!told.answers || self.written == told.text, "text is lost or doubled");
                assert_eq!(event["seq_last"].as_i64().unwrap(), self.packets as i64 - 1);
                assert_eq!(self.commit_to, self.samples);
            }
            "context.cancelled" => {
                if event["late"] == false {
                    self.ends += 1;
                }
                assert!(number("played") <= number("sent"));
                assert!(number("sent") <= number("generated"));
                assert_eq!(number("sent"), self.packets * 480);
                let heard = event["heard"]["text"].as_str().unwrap();
                assert!(told.text.starts_with(heard));
                let text_to = event["heard"]["text_to"].as_u64().unwrap();
                assert_eq!(text_to, heard.chars().count() as u64);
            }
            "flushed" | "context.parked" | "context.resumed" | "pressure" => {
                assert_eq!(self.ends, 0, "{}: {event} behind the end", self.ctx);
            }
            _ => {}
        }
    }
}

#[test]
fn random_sessions_keep_every_promise() {
    for seed in 0..SESSIONS {
        let mut world = World::new(seed);
        for _ in 0..ACTIONS {
            world.act();
        }
        world.finish(seed);
    }
}
