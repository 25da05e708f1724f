//! From complete columns to the codec: what goes out, what is told beside it, and when nothing is kept back any more.

use std::sync::Arc;

use codecs::window::{End, FRAME_SAMPLES, Window as Release};

use super::{AudioJob, Context, Env, Source};
use crate::Speech;
use crate::event::Event;

impl Context {
    /// Gives the codec every column that is complete, chunk after chunk.
    pub(super) fn hand_over(&mut self, env: &mut Env<'_>) {
        while let Some(chunk) = self.chunks.front_mut() {
            let new = chunk.handed..chunk.refined();
            chunk.handed = new.end;
            let spoken = chunk.spoken();
            if new.is_empty() && !spoken {
                return;
            }
            let rows = std::iter::once(&chunk.codes)
                .chain(&chunk.acoustic)
                .map(|row| row[new.clone()].to_vec())
                .collect();
            let releases = self.send(rows, if spoken { End::Chunk } else { End::No }, env);
            let mut marks = self.align(&releases, spoken);
            if !spoken {
                self.jobs_tail(env).marks.append(&mut marks);
                return;
            }
            let chunk = self.chunks.pop_front().expect("just seen; this is a bug");
            let end = self.sample(chunk.base + chunk.codes.len());
            let said = Arc::new(Speech { text: chunk.text.text, codes: chunk.codes });
            marks.push((end, Event::ChunkEnd { said, raw: chunk.text.raw, end }));
            if chunk.text.flushed && self.flushes > 0 && !self.chunks.is_empty() {
                // Speech goes on behind the flush, so nothing is let go early: the flush is answered in passing.
                self.flushes -= 1;
                marks.push((end, Event::Flushed { samples: end }));
            }
            self.jobs_tail(env).marks.append(&mut marks);
        }
    }

    /// Which characters of the oldest chunk end in what goes out, with the sample that the event must come before. Told step
    /// by step of the codec's grid, by the codes that a step needs, however many there are by now: the answer must not depend
    /// on how busy the engine is.
    fn align(&mut self, releases: &[Release], spoken: bool) -> Vec<(u64, Event)> {
        let start = self.sample(self.chunks.front().map_or(0, |chunk| chunk.base));
        let Some(chunk) = self.chunks.front_mut() else { return Vec::new() };
        let mut ends = Vec::new();
        let grid = self.settings.window.grid_frames;
        for release in releases {
            let mut out = release.emit.start;
            while out < release.emit.end {
                out = ((out / grid + 1) * grid).min(release.emit.end);
                let Some(out) = out.checked_sub(chunk.base) else { continue };
                let frames = (out + self.settings.window.withheld_frames).min(chunk.codes.len());
                let until = (out * FRAME_SAMPLES) as u64;
                ends.extend(chunk.alignment.ends(frames, start, until));
            }
        }
        if spoken {
            ends.extend(chunk.alignment.rest(chunk.codes.len(), start));
        }
        let first = ends.first().map(|end| end.sample);
        first.map(|sample| (sample, Event::Aligned { ends })).into_iter().collect()
    }

    /// Where a frame of the codec's current passage begins on the context's timeline.
    fn sample(&self, frame: usize) -> u64 {
        self.passage_start + (frame * FRAME_SAMPLES) as u64
    }

    /// Nothing is at work, and nothing could be cut that is. The end, a flush, or a listener about to run dry lets go what the
    /// codec keeps back: what was spoken never waits for more text.
    pub(super) fn settle_down(&mut self, env: &mut Env<'_>) {
        let drained = match &self.source {
            Source::Whole { chunks, .. } => chunks.is_empty(),
            Source::Live(passage) => passage.is_drained(),
        };
        if drained {
            self.close(env);
            self.finished = true;
            self.jobs_tail(env).last = Some(Ok(self.summary()));
            return;
        }
        let dry = self.withheld() && env.now >= self.pause_at();
        if !self.parked(env.now) && (self.flushes > 0 || dry) {
            self.close(env);
        }
    }

    /// Closes the codec's passage: everything goes out, what follows starts anew, and flushes are answered.
    fn close(&mut self, env: &mut Env<'_>) {
        let rows = vec![Vec::new(); self.settings.grammar.stages.len()];
        self.send(rows, End::Passage, env);
        let samples = self.plan.released_samples();
        let job = self.jobs_tail(env);
        for _ in 0..std::mem::take(&mut self.flushes) {
            job.marks.push((samples, Event::Flushed { samples }));
        }
        self.passage_start = samples;
        self.passage_frames = 0;
    }

    fn jobs_tail<'e>(&self, env: &'e mut Env<'_>) -> &'e mut AudioJob {
        env.jobs.back_mut().expect("a job was just added; this is a bug")
    }

    /// Has an event told in its turn: behind everything that was handed over before.
    pub(super) fn tell(&mut self, event: Event, env: &mut Env<'_>) {
        let rows = vec![Vec::new(); self.settings.grammar.stages.len()];
        self.send(rows, End::No, env);
        self.jobs_tail(env).marks.push((0, event));
    }

    /// Gives the codec a job. Returns what it will let go.
    fn send(&mut self, rows: Vec<Vec<u16>>, end: End, env: &mut Env<'_>) -> Vec<Release> {
        let deadline = self.playout.dry_at().unwrap_or_default();
        let releases = self.plan.grow(rows[0].len(), end);
        let released = releases.iter().map(|r| r.samples() as u64).sum();
        self.playout.released(released, env.now);
        let (context, marks) = (self.id, Vec::new());
        let samples = (rows[0].len() * FRAME_SAMPLES) as u64;
        env.jobs.push_back(AudioJob { context, rows, samples, end, deadline, marks, last: None });
        releases
    }
}
