//! One answer from its prompt to its last sample: rows of a turn become text, and frames for the codec. Pure: networks, clocks
//! and channels are elsewhere.

use std::time::Duration;

use codecs::window::End;

use super::Settings;
use super::writer::{Writer, Written};
use crate::ContextId;
use crate::event::{Event, Failure, Finish, Segment, Summary, Usage};
use crate::phase::{Modality, Phase};
use crate::pipeline::{AudioJob, Env, Playout, Standing, Urgency};
use crate::scheduler::Scheduler;
use crate::sequence::{Group, GroupId, Sequence};
use crate::turn::{Said, Turn};

/// A listener with less sound in hand than this is served before whoever writes, all others behind: so writing holds up no
/// listener, and sound that is needed later does not hold up writing.
const IN_HAND: Duration = Duration::from_millis(50);

/// An answer under way.
pub(crate) struct Context {
    id: ContextId,
    settings: Settings,
    /// What runs it; none before any of its prompt is known, and behind the last step.
    group: Option<GroupId>,
    /// None before all of its prompt is known, and behind the last step.
    turn: Option<Turn>,
    segment: Option<Open>,
    playout: Playout,
    /// Samples of all sounds that are over.
    sounded: u64,
    usage: Usage,
    /// Whether anything was said.
    has_begun: bool,
    queued_at: Option<Duration>,
    queued: Duration,
    finished: bool,
}

/// The segment under way.
enum Open {
    Text(Writer),
    Sound { frames: usize },
}

impl Context {
    pub(crate) fn new(id: ContextId, settings: Settings) -> Self {
        let usage = settings.usage;
        // Nobody waits for a prompt that is still coming.
        let queued_at = Some(settings.standing.opened_at).filter(|_| !settings.growing);
        Self {
            id,
            settings,
            group: None,
            turn: None,
            segment: None,
            playout: Playout::default(),
            sounded: 0,
            usage,
            has_begun: false,
            queued_at,
            queued: Duration::ZERO,
            finished: false,
        }
    }

    /// The listener has heard so many samples.
    pub(crate) fn played(&mut self, position: u64, now: Duration) {
        self.playout.played(position, now);
    }

    /// Whether there may be sound in it.
    pub(crate) fn sounds(&self) -> bool {
        self.settings.sounds
    }

    /// Whether the last job has been made.
    pub(crate) fn finished(&self) -> bool {
        self.finished
    }

    /// The context's place in the order of work, smaller first; `None` when it is far enough ahead of its listener.
    pub(crate) fn urgency(&self, now: Duration) -> Option<Urgency> {
        if self.settings.growing {
            return Some(self.settings.standing.listening());
        }
        let is_heard = matches!(self.segment, Some(Open::Sound { .. }));
        // Nobody waits for the first sound of what is only written.
        if !is_heard && (self.has_begun || !self.settings.sounds()) {
            return Some(Standing::due(now + IN_HAND));
        }
        self.settings.standing.urgency(&self.playout, now)
    }

    /// Whether the listener has as much sound in hand as the context may run ahead.
    pub(crate) fn parked(&self, now: Duration) -> bool {
        self.settings.standing.parked(&self.playout, now)
    }

    /// When time alone gives the context something to do that it did not have now.
    pub(crate) fn due_after(&self, now: Duration) -> Option<Duration> {
        self.settings.standing.unparked_at(&self.playout).filter(|&at| at > now)
    }

    /// Told when tokens of the context have run. Returns how long it had waited for that, once.
    pub(crate) fn ran(&mut self, now: Duration) -> Option<Duration> {
        self.queued = now.saturating_sub(self.queued_at.take()?);
        Some(self.queued)
    }

    /// Key/value blocks that it holds.
    pub(crate) fn held_blocks(&self, scheduler: &Scheduler) -> usize {
        self.group.and_then(|group| scheduler.group(group)).map_or(0, Group::blocks)
    }

    /// Ends the context: its group is removed, companion and all, and its blocks are free when this returns.
    pub(crate) fn stop(&mut self, scheduler: &mut Scheduler) -> Summary {
        let mut summary = self.summary();
        self.turn = None;
        if let Some(group) = self.group.take() {
            summary.kv_blocks = scheduler.remove(group);
        }
        summary
    }

    /// The last job of a context that cannot go on.
    pub(crate) fn failed(&self, failure: Failure) -> AudioJob {
        AudioJob { last: Some(Err(failure)), ..self.job() }
    }

    fn summary(&self) -> Summary {
        Summary {
            samples: self.released(),
            queued: self.queued,
            usage: Some(self.usage),
            ..Summary::default()
        }
    }

    /// More of the prompt is known, or all of it: what it is now, in the place of what it was.
    ///
    /// What has run of it stays. It grows by rows, block after block as text that is written does, and nothing is kept for the
    /// longest recording: most are short, and a group that finds no block waits or displaces another as any group does.
    pub(crate) fn heard(&mut self, mut settings: Settings, env: &mut Env<'_>) {
        if !self.settings.growing {
            return;
        }
        if settings.growing {
            settings.standing = self.settings.standing;
            settings.lease = self.settings.lease.take();
        } else {
            // Its place in the line is that of a request that comes now.
            settings.standing.opened_at = env.now;
            self.queued_at = Some(env.now);
        }
        self.usage = settings.usage;
        self.settings = settings;
        self.advance(env);
    }

    /// Puts into the scheduler what is known of the prompt, and begins the turn when that is all.
    pub(crate) fn advance(&mut self, env: &mut Env<'_>) {
        if self.turn.is_some() || self.finished || self.settings.prompt.is_empty() {
            return;
        }
        let s = &self.settings;
        let group = self.lay(env.scheduler);
        env.scheduler.grows(group, s.growing);
        self.group = Some(group);
        if s.growing {
            return;
        }
        let (turns, how) = (s.speaker.turns.clone(), (s.manner, s.guidance.clone()));
        let turn = Turn::begin(env.scheduler, group, turns, s.machine.clone(), how);
        let mut job = self.job();
        // Some prompts open the first segment themselves.
        self.open_segment(turn.phase(), &mut job);
        self.turn = Some(turn);
        self.hand_over(job, env);
    }

    /// The group with all rows of the prompt that are known.
    fn lay(&self, scheduler: &mut Scheduler) -> GroupId {
        let s = &self.settings;
        let streams = s.speaker.family.streams().len();
        let Some(group) = self.group else {
            let main = Sequence::of_rows(&s.prompt, streams);
            return scheduler.add(self.id, s.speaker.stage, vec![main]);
        };
        let laid = scheduler.group(group).map_or(0, |group| group.members[0].ids.len());
        scheduler.extend(group, &s.prompt[laid * streams..]);
        group
    }

    /// Goes on from what the network said to the group's members.
    ///
    /// # Errors
    /// Broken numbers, a model that left a code out, or ids that are no text.
    pub(crate) fn on_logits(
        &mut self,
        logits: &mut [f32],
        env: &mut Env<'_>,
    ) -> Result<(), Failure> {
        let turn = self.turn.as_mut().expect("it has just run; this is a bug");
        let before = turn.phase();
        let said = turn.advance(env.scheduler, logits);
        let said = said.map_err(|e| Failure::Model(e.to_string()))?;
        let (after, is_capped) = (turn.phase(), turn.is_capped());
        self.has_begun = true;
        if is_capped {
            self.usage.finish = Finish::Length;
        }
        let mut job = self.job();
        let mut done = said.done;
        if before == Phase::Text {
            done |= self.write(&said, &mut job)?;
        }
        if let Some(frame) = &said.frame {
            self.sound(frame, &mut job, env.now);
        }
        if done || holds(before).is_some_and(|modality| holds(after) != Some(modality)) {
            self.close_segment(said.lost, &mut job, env)?;
        }
        if !done && self.is_full(env.scheduler) {
            self.usage.finish = Finish::Length;
            let lost = self.turn.as_ref().map_or(0, Turn::unfinished);
            self.close_segment(lost, &mut job, env)?;
            done = true;
        }
        if done {
            job.last = Some(Ok(self.summary()));
            self.stop(env.scheduler);
            self.finished = true;
        } else if self.segment.is_none() {
            self.open_segment(after, &mut job);
        }
        self.hand_over(job, env);
        Ok(())
    }

    /// Takes what was said in a segment of text. Returns whether the answer ends with it.
    fn write(&mut self, said: &Said, job: &mut AudioJob) -> Result<bool, Failure> {
        let (speaker, id) = (&self.settings.speaker, said.ids[0]);
        let Some(Open::Text(writer)) = &mut self.segment else { return Ok(false) };
        if !speaker.text.range().contains(&id) {
            return Ok(false);
        }
        self.usage.text_tokens += 1;
        let written = writer.push(id, |ids| speaker.text.decode(ids));
        let Written { delta, stopped } = written.map_err(|e| Failure::Model(e.to_string()))?;
        tell_text(delta, job);
        if stopped {
            self.usage.finish = Finish::Stop;
        }
        Ok(stopped)
    }

    /// Takes a frame of a segment of sound.
    fn sound(&mut self, frame: &[u16], job: &mut AudioJob, now: Duration) {
        let Some(Open::Sound { frames }) = &mut self.segment else { return };
        let speaker = &self.settings.speaker;
        let heard = |frames: usize| speaker.samples(frames.saturating_sub(speaker.look_ahead()));
        let before = heard(*frames);
        *frames += 1;
        let released = heard(*frames) - before;
        job.samples = speaker.samples(*frames) - speaker.samples(*frames - 1);
        job.rows = frame[speaker.sounding.clone()].iter().map(|&code| vec![code]).collect();
        self.usage.audio_frames += 1;
        self.playout.released(released, now);
    }

    fn open_segment(&mut self, phase: Phase, job: &mut AudioJob) {
        let Some(modality) = holds(phase) else { return };
        self.segment = Some(match modality {
            Modality::Text => Open::Text(Writer::new(self.settings.stops.clone())),
            Modality::Audio => Open::Sound { frames: 0 },
        });
        job.marks.push((0, Event::Segment { modality }));
    }

    fn close_segment(
        &mut self,
        lost: usize,
        job: &mut AudioJob,
        env: &mut Env<'_>,
    ) -> Result<(), Failure> {
        let speaker = &self.settings.speaker;
        let said = match self.segment.take() {
            None => return Ok(()),
            Some(Open::Text(mut writer)) => {
                let rest = writer.finish(|ids| speaker.text.decode(ids));
                let rest = rest.map_err(|e| Failure::Model(e.to_string()))?;
                tell_text(rest.delta, job);
                Segment::Text(writer.text().to_owned())
            }
            Some(Open::Sound { frames }) => {
                if frames > 0 {
                    // What the codec kept back goes out.
                    job.rows.resize_with(speaker.sounding.len(), Vec::new);
                    job.end = End::Passage;
                }
                let all = speaker.samples(frames);
                let heard = speaker.samples(frames.saturating_sub(speaker.look_ahead()));
                self.playout.released(all - heard, env.now);
                self.sounded += all;
                Segment::Audio { frames, lost }
            }
        };
        job.marks.push((0, Event::SegmentEnd(said)));
        Ok(())
    }

    /// Whether no further row fits.
    fn is_full(&self, scheduler: &Scheduler) -> bool {
        let group = self.group.and_then(|group| scheduler.group(group));
        group.is_some_and(|group| group.members[0].ids.len() >= self.settings.rows_max)
    }

    /// Samples that went out.
    fn released(&self) -> u64 {
        let speaker = &self.settings.speaker;
        let under_way = match &self.segment {
            Some(Open::Sound { frames }) => {
                speaker.samples(frames.saturating_sub(speaker.look_ahead()))
            }
            _ => 0,
        };
        self.sounded + under_way
    }

    fn job(&self) -> AudioJob {
        AudioJob::of(self.id, &self.playout)
    }

    /// Gives the codec a job, if there is anything in it.
    fn hand_over(&self, job: AudioJob, env: &mut Env<'_>) {
        if !job.rows.is_empty() || !job.marks.is_empty() || job.last.is_some() {
            env.jobs.push_back(job);
        }
    }
}

/// What is said in a phase, if it is one of a segment.
fn holds(phase: Phase) -> Option<Modality> {
    match phase {
        Phase::Text => Some(Modality::Text),
        Phase::Audio | Phase::Drain => Some(Modality::Audio),
        Phase::Select | Phase::Transition | Phase::Stop | Phase::Done => None,
    }
}

fn tell_text(delta: String, job: &mut AudioJob) {
    if !delta.is_empty() {
        job.marks.push((0, Event::Text { delta }));
    }
}
