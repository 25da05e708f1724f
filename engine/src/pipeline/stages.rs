//! Segments through the stages: what each reads, what becomes of what it says, and when a chunk is said again.

use super::chunk::{Ending, Refine};
use super::{Before, Context, Env, Said, draw};
use crate::event::Failure;
use crate::guards::Trouble;
use crate::layout::{Layout, Spoken, Symbol, Window};
use crate::sequence::{GroupId, Sequence};
use crate::text;

impl Context {
    /// Takes what the networks said to a group that completed its step.
    ///
    /// # Errors
    /// Broken numbers, or a chunk that stayed empty.
    pub(crate) fn on_logits(
        &mut self,
        group: GroupId,
        said: Said<'_>,
        env: &mut Env<'_>,
    ) -> Result<(), Failure> {
        let chunk = self.chunks.iter().position(|c| c.semantic == Some(group));
        if let Some(at) = chunk {
            return self.on_semantic(at, group, said, env);
        }
        let refined = self.chunks.iter().position(|c| c.refine.is_some_and(|r| r.group == group));
        let at = refined.expect("a group belongs to a chunk of its context; this is a bug");
        self.on_acoustic(at, group, said.logits, env)
    }

    /// Opens CB0's group for the newest chunk: a first attempt, or another one behind what is frozen.
    pub(super) fn start_semantic(&mut self, env: &mut Env<'_>) {
        let grammar = self.settings.grammar.clone();
        let stage = &grammar.stages[0];
        let chunk = self.chunks.back_mut().expect("called for a chunk; this is a bug");
        let control = &chunk.control[0];
        let text = stage.read(&chunk.text.input(&text::Tail::Open));
        let lookahead = stage.read(chunk.text.lookahead());
        let before = self.before.as_ref().map(|b| (stage.read(&b.text), &b.codes));
        let before_rows = before.as_ref().map(|(_, codes)| [codes.as_slice()]);
        let prompt = self.settings.prompt.cut(0);
        let window = Window {
            prompt: &prompt,
            control,
            before: before
                .as_ref()
                .zip(before_rows.as_ref())
                .map(|((text, _), rows)| Spoken { text, rows }),
            text: &text,
            tail: chunk.tail(&lookahead),
            rows: &[&chunk.codes],
        };
        let layout = Layout::of(&stage.vocabulary, &window);
        let watched = layout.text.clone();
        let mut members = vec![Sequence { watched, ..sequence(layout) }];
        if self.settings.guidance.is_some() {
            members.push(sequence(Layout::null(&stage.vocabulary, control, &chunk.codes)));
        }
        chunk.semantic = Some(env.scheduler.add(self.id, grammar.first_stage, members));
    }

    /// Opens the group of an acoustic stage that says its row of a chunk up to `frames`.
    pub(super) fn start_refine(
        &mut self,
        at: usize,
        stage: usize,
        frames: usize,
        env: &mut Env<'_>,
    ) {
        let grammar = self.settings.grammar.clone();
        let first_stage = grammar.first_stage;
        let grammar = &grammar.stages[stage];
        let chunk = &mut self.chunks[at];
        let text = grammar.read(&chunk.text.input(&text::Tail::Open));
        let c0 = &chunk.codes[..frames];
        let rows: Vec<&[u16]> =
            std::iter::once(c0).chain(chunk.acoustic[..stage].iter().map(Vec::as_slice)).collect();
        let prompt = self.settings.prompt.cut(stage);
        let window = Window {
            prompt: &prompt,
            control: &chunk.control[stage],
            before: None,
            text: &text,
            tail: chunk.tail(&[]),
            rows: &rows,
        };
        let members = vec![sequence(Layout::of(&grammar.vocabulary, &window))];
        let group = env.scheduler.add(self.id, first_stage + stage, members);
        chunk.refine = Some(Refine { group, stage, frames });
    }

    fn on_semantic(
        &mut self,
        at: usize,
        group: GroupId,
        said: Said<'_>,
        env: &mut Env<'_>,
    ) -> Result<(), Failure> {
        let grammar = self.settings.grammar.clone();
        let vocabulary = &grammar.stages[0].vocabulary;
        let chunk = &mut self.chunks[at];
        let row = self.settings.merge(said.logits, vocabulary.outputs());
        let index = draw::semantic(&self.settings, chunk, row)?;
        let Symbol::Code(code) = vocabulary.symbol(index) else {
            return self.end_attempt(at, Ending::Stopped, env);
        };
        chunk.alignment.look(chunk.codes.len(), said.attention);
        chunk.codes.push(code);
        if let Some(trouble) = self.settings.guards.running(&chunk.codes) {
            let from = match trouble {
                Trouble::Loops { from, .. } => {
                    env.hits.repetition += 1;
                    from
                }
                Trouble::Silent { from } => {
                    env.hits.silence += 1;
                    from
                }
            };
            chunk.codes.truncate(from.max(chunk.frozen()));
            return self.end_attempt(at, Ending::Guard, env);
        }
        if self.settings.next_cut(chunk) == Some(chunk.codes.len()) {
            if !self.settings.guards.opening(&chunk.codes)
                && chunk.attempt + 1 < self.settings.tries
            {
                env.hits.silence += 1;
                return self.end_attempt(at, Ending::Guard, env);
            }
            chunk.cut();
        }
        if chunk.codes.len() >= self.settings.frame_budget(chunk) {
            env.hits.budget += 1;
            return self.end_attempt(at, Ending::Budget, env);
        }
        let id = vocabulary.code(0, code);
        env.scheduler.append(group, id);
        Ok(())
    }

    /// CB0 has stopped, by itself or because a guard stopped it: the chunk is complete, or is said again.
    fn end_attempt(&mut self, at: usize, ending: Ending, env: &mut Env<'_>) -> Result<(), Failure> {
        let chunk = &mut self.chunks[at];
        if let Some(group) = chunk.semantic.take() {
            env.scheduler.remove(group);
        }
        let verdict = self.settings.judge(chunk, ending == Ending::Stopped);
        if !verdict.accepted() && chunk.attempt + 1 < self.settings.tries {
            env.hits.retries += 1;
            chunk.turn_down(verdict, ending);
            self.start_semantic(env);
            return Ok(());
        }
        if !verdict.accepted() {
            env.hits.exhausted += 1;
            self.guard_exhausted = true;
            let Some(ending) = chunk.settle(verdict, ending) else {
                return Err(Failure::NoSpeech { chunk: chunk.index, tries: self.settings.tries });
            };
            self.truncated_by_budget |= ending == Ending::Budget;
        }
        chunk.complete = true;
        chunk.cut();
        self.passage_frames = chunk.base + chunk.codes.len();
        self.before =
            Some(Before { text: chunk.text.input(&text::Tail::Open), codes: chunk.codes.clone() });
        Ok(())
    }

    fn on_acoustic(
        &mut self,
        at: usize,
        group: GroupId,
        logits: &mut [f32],
        env: &mut Env<'_>,
    ) -> Result<(), Failure> {
        let chunk = &mut self.chunks[at];
        let refine = chunk.refine.expect("found by its group; this is a bug");
        let vocabulary = &self.settings.grammar.stages[refine.stage].vocabulary;
        let index = draw::acoustic(&self.settings, chunk, refine.stage, logits)?;
        let Symbol::Code(code) = vocabulary.symbol(index) else {
            unreachable!("acoustic stages say codes only; this is a bug")
        };
        let row = &mut chunk.acoustic[refine.stage - 1];
        row.push(code);
        if row.len() < refine.frames {
            let id = vocabulary.code(refine.stage, code);
            env.scheduler.append(group, id);
        } else {
            chunk.refine = None;
            env.scheduler.remove(group);
        }
        Ok(())
    }
}

fn sequence(layout: Layout) -> Sequence {
    Sequence::new(layout.ids, layout.positions, layout.next_position)
}
