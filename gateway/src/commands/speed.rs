//! How fast sound is made: the one clock of the commands.

use std::time::{Duration, Instant};

use cpu_time::ProcessTime;
use serde_json::{Value, json};

use super::ENGINE_RATE;

/// Runs from the moment a loaded engine is handed the text.
pub(super) struct Stopwatch {
    started: Instant,
    cpu: ProcessTime,
    samples: u64,
    first_audio: Option<Duration>,
    stopped: Option<(Duration, Duration)>,
}

impl Stopwatch {
    #[expect(clippy::disallowed_methods, reason = "the only clock of this command")]
    pub(super) fn start() -> Self {
        let (started, cpu) = (Instant::now(), ProcessTime::now());
        Self { started, cpu, samples: 0, first_audio: None, stopped: None }
    }

    /// So many samples have come from the engine.
    pub(super) fn heard(&mut self, samples: usize) {
        self.samples += samples as u64;
        if self.samples > 0 {
            self.first_audio.get_or_insert_with(|| self.started.elapsed());
        }
    }

    /// All of the text is spoken.
    pub(super) fn stop(&mut self) {
        self.stopped = Some(self.now());
    }

    /// Seconds of sound so far.
    pub(super) fn audio_s(&self) -> f64 {
        self.samples as f64 / f64::from(ENGINE_RATE)
    }

    /// Milliseconds to the first sound, once there is one.
    pub(super) fn first_audio_ms(&self) -> Option<f64> {
        self.first_audio.map(|at| at.as_secs_f64() * 1e3)
    }

    /// Seconds of work for each second of sound; none without sound.
    pub(super) fn real_time_factor(&self) -> Option<f64> {
        let (wall, _) = self.stopped.unwrap_or_else(|| self.now());
        (self.samples > 0).then(|| wall.as_secs_f64() / self.audio_s())
    }

    /// One JSON object. `threads` is the engine's setting; `cpu_s` is that of the whole process, all threads together.
    pub(super) fn report(&self, threads: usize) -> Value {
        let (wall, cpu) = self.stopped.unwrap_or_else(|| self.now());
        json!({
            "audio_s": rounded(self.audio_s()),
            "wall_s": rounded(wall.as_secs_f64()),
            "cpu_s": rounded(cpu.as_secs_f64()),
            "real_time_factor": self.real_time_factor().map(rounded),
            "first_audio_ms": self.first_audio_ms().map(rounded),
            "threads": threads,
        })
    }

    /// Wall clock and processor time since the start.
    fn now(&self) -> (Duration, Duration) {
        (self.started.elapsed(), self.cpu.elapsed())
    }
}

/// To four decimals: finer figures would not be the same twice.
fn rounded(value: f64) -> f64 {
    (value * 1e4).round() / 1e4
}
