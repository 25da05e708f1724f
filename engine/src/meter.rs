//! What is counted of a speech language model's answers, by the events that their readers get: so a companion counts for nothing,
//! and times are those that a caller sees, hearing included. Knows no name and no clock.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::event::{Event, Usage};
use crate::stats::AnswerStats;

/// The counts of one model.
#[derive(Debug, Default)]
pub(crate) struct Meter {
    counted: Mutex<AnswerStats>,
    /// Answers whose recordings are still to be heard.
    hearing: AtomicU64,
}

impl Meter {
    /// An answer is asked for.
    pub(crate) fn begin(self: &Arc<Self>) -> Watch {
        self.lock().endings.opened += 1;
        Watch { meter: self.clone(), has_text: false, has_audio: false, is_over: false }
    }

    /// An answer waits to be heard for as long as what is returned lives.
    pub(crate) fn hearing(self: &Arc<Self>) -> Queued {
        self.hearing.fetch_add(1, Ordering::Relaxed);
        Queued(self.clone())
    }

    /// All of it, of a model of this name.
    pub(crate) fn stats(&self, model: &str) -> AnswerStats {
        let hearing = self.hearing.load(Ordering::Relaxed);
        AnswerStats { model: model.to_owned(), hearing, ..self.lock().clone() }
    }

    fn lock(&self) -> MutexGuard<'_, AnswerStats> {
        // Numbers are whole, whoever panicked.
        self.counted.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A place in the queue of what is to be heard.
pub(crate) struct Queued(Arc<Meter>);

impl Drop for Queued {
    fn drop(&mut self) {
        self.0.hearing.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The eye on one answer.
pub(crate) struct Watch {
    meter: Arc<Meter>,
    has_text: bool,
    has_audio: bool,
    is_over: bool,
}

impl Watch {
    /// The answer was never begun.
    pub(crate) fn disown(mut self) {
        self.meter.lock().endings.opened -= 1;
        self.is_over = true;
    }

    /// An event goes out so long after the answer was asked for.
    pub(crate) fn heed(&mut self, event: &Event, since: Duration) {
        let mut counted = self.meter.lock();
        let since = since.as_secs_f64();
        match event {
            Event::Text { .. } if !std::mem::replace(&mut self.has_text, true) => {
                counted.first_text_seconds.observe(since);
            }
            Event::Audio { .. } if !std::mem::replace(&mut self.has_audio, true) => {
                counted.first_audio_seconds.observe(since);
            }
            Event::Done(summary) => {
                counted.endings.done += 1;
                counted.add(summary.usage.as_ref());
                self.is_over = true;
            }
            Event::Cancelled(summary) => {
                counted.endings.cancelled += 1;
                counted.add(summary.usage.as_ref());
                self.is_over = true;
            }
            Event::Failed(_) => {
                counted.endings.failed += 1;
                self.is_over = true;
            }
            _ => {}
        }
    }
}

impl Drop for Watch {
    /// Nobody waits for it any more.
    fn drop(&mut self) {
        if !self.is_over {
            self.meter.lock().endings.cancelled += 1;
        }
    }
}

impl AnswerStats {
    fn add(&mut self, usage: Option<&Usage>) {
        let Some(usage) = usage else { return };
        self.prompt_tokens += usage.prompt_tokens as u64;
        self.prompt_audio_tokens += usage.prompt_audio_tokens as u64;
        self.text_tokens += usage.text_tokens as u64;
        self.audio_frames += usage.audio_frames as u64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{Failure, Summary};
    use crate::stats::Endings;

    fn text() -> Event {
        Event::Text { delta: "a".to_owned() }
    }

    fn sound() -> Event {
        Event::Audio { start: 0, samples: vec![0.0; 3].into() }
    }

    fn ended(text_tokens: usize, audio_frames: usize) -> Summary {
        let usage = Usage {
            prompt_tokens: 3,
            prompt_audio_tokens: 2,
            text_tokens,
            audio_frames,
            ..Usage::default()
        };
        Summary { usage: Some(usage), ..Summary::default() }
    }

    #[test]
    fn answers_are_counted_by_what_their_readers_get() {
        let meter = Arc::<Meter>::default();
        let (mut done, mut cancelled) = (meter.begin(), meter.begin());
        let (mut failed, gone) = (meter.begin(), meter.begin());
        done.heed(&text(), Duration::from_millis(100));
        done.heed(&text(), Duration::from_millis(900));
        done.heed(&sound(), Duration::from_millis(300));
        cancelled.heed(&sound(), Duration::from_millis(500));
        done.heed(&Event::Done(ended(5, 7)), Duration::from_secs(2));
        cancelled.heed(&Event::Cancelled(ended(1, 4)), Duration::from_secs(2));
        failed.heed(&Event::Failed(Failure::Hearing("x".to_owned())), Duration::from_secs(2));
        drop((done, cancelled, failed, gone));
        meter.begin().disown();
        let stats = meter.stats("m");
        let endings = Endings { opened: 4, done: 1, cancelled: 2, failed: 1 };
        assert_eq!((stats.model.as_str(), stats.endings), ("m", endings));
        assert_eq!((stats.prompt_tokens, stats.prompt_audio_tokens), (6, 4));
        assert_eq!((stats.text_tokens, stats.audio_frames), (6, 11));
        let seconds = |h: &crate::stats::Histogram| (h.count(), (h.sum() * 1e3).round());
        assert_eq!(seconds(&stats.first_text_seconds), (1, 100.0));
        assert_eq!(seconds(&stats.first_audio_seconds), (2, 800.0));
    }

    #[test]
    fn who_is_still_to_be_heard_is_told() {
        let meter = Arc::<Meter>::default();
        let (first, second) = (meter.hearing(), meter.hearing());
        assert_eq!(meter.stats("m").hearing, 2);
        drop(first);
        assert_eq!(meter.stats("m").hearing, 1);
        drop(second);
        assert_eq!(meter.stats("m").hearing, 0);
    }
}
