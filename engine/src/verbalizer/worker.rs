//! The verbalizer's own thread: whole texts of contexts that are about to begin, one after the other, so that a long text stops no
//! step. It must never know what becomes of the chunks.

use std::sync::mpsc::Receiver;
use std::time::Duration;

use super::Verbalizer;
use crate::text::{self, Chunk, ChunkLimits, Rewriter, TextOptions};

/// A text to be put into words.
pub(crate) struct Job {
    pub(crate) text: String,
    pub(crate) options: TextOptions,
    pub(crate) limits: ChunkLimits,
    /// When it was asked for, by the clock of the thread.
    pub(crate) since: Duration,
    /// Whether anybody still waits for it.
    pub(crate) wanted: Box<dyn Fn() -> bool + Send>,
    /// Takes the chunks; none: the rules' are spoken.
    pub(crate) done: Box<dyn FnOnce(Option<Vec<Chunk>>) + Send>,
}

/// Does all jobs until nobody can send any more.
pub(crate) fn run(mut verbalizer: Verbalizer, todo: &Receiver<Job>, clock: impl Fn() -> Duration) {
    while let Ok(job) = todo.recv() {
        carry_out(&mut verbalizer, job, &clock);
    }
}

fn carry_out(verbalizer: &mut Verbalizer, job: Job, clock: &impl Fn() -> Duration) {
    let Job { text, options, limits, since, wanted, done } = job;
    let until = since + verbalizer.timeout();
    let late = || clock() >= until || !wanted();
    let chunks = text::whole_by(&text, &options, limits, &mut Timed { verbalizer, late: &late });
    done(Some(chunks));
}

/// A verbalizer that is waited for no longer than a text allows.
struct Timed<'a> {
    verbalizer: &'a mut Verbalizer,
    late: &'a dyn Fn() -> bool,
}

impl Rewriter for Timed<'_> {
    fn rewrite(&mut self, pieces: &[String]) -> Vec<Option<String>> {
        let texts: Vec<&str> = pieces.iter().map(String::as_str).collect();
        let answers = self.verbalizer.verbalize(&texts, self.late);
        let refused = answers.iter().filter_map(|answer| answer.as_ref().err());
        for refusal in refused {
            tracing::info!("a text is left to the rules: {refusal}");
        }
        answers.into_iter().map(Result::ok).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::sync_channel;

    use super::super::tests::scripted;
    use super::*;

    /// What is spoken of each text, in order, with a clock that goes on a second at every look.
    fn spoken(verbalizer: Verbalizer, texts: &[(&str, bool)]) -> Vec<String> {
        let (jobs, todo) = sync_channel(texts.len());
        let (said, heard) = sync_channel(texts.len());
        for &(text, wanted) in texts {
            let said = said.clone();
            let done = move |chunks: Option<Vec<Chunk>>| {
                let spoken: Vec<String> =
                    chunks.unwrap().into_iter().map(|chunk| chunk.text).collect();
                said.send(spoken.concat()).unwrap();
            };
            let job = Job {
                text: text.to_owned(),
                options: TextOptions { locale: "en-US".parse().ok(), ..TextOptions::default() },
                limits: ChunkLimits::default(),
                since: Duration::ZERO,
                wanted: Box::new(move || wanted),
                done: Box::new(done),
            };
            jobs.send(job).unwrap();
        }
        drop((jobs, said));
        run(verbalizer, &todo, || Duration::ZERO);
        heard.iter().collect()
    }

    #[test]
    fn a_text_is_spoken_by_the_model_or_by_the_rules() {
        let verbalizer = scripted(&[
            ("It is 5 p.m.", "<tool_call>It is five in the afternoon.</tool_call>"),
            ("It is 6 p.m.", "I do not know."),
        ]);
        let said = spoken(verbalizer, &[("It is 5 p.m.", true), ("It is 6 p.m.", true)]);
        assert_eq!(said[0], "It is five in the afternoon.");
        assert_eq!(said[1].trim(), text::sanitize("It is 6 p.m.", &TextOptions::default()));
        assert!(said[1].contains("six"), "{said:?}");
    }

    #[test]
    fn what_nobody_waits_for_is_given_up() {
        let verbalizer = scripted(&[("5", "<tool_call>fünf</tool_call>")]);
        let said = spoken(verbalizer, &[("5", false), ("5", true)]);
        assert_eq!(said, ["five.", "fünf."]);
    }
}
