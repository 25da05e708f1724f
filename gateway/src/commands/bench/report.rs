//! What is shown at the end: a table for people, one JSON object for programs.

use std::fmt::Write;
use std::time::Duration;

use serde_json::{Value, json};

use super::buckets::Buckets;
use super::server::Held;
use super::tally::{Tally, Times};

/// All that is known of a run.
pub(super) struct Report {
    pub(super) tally: Tally,
    pub(super) sessions: u32,
    /// From the first turn's beginning to the last one's end.
    pub(super) wall: Duration,
    /// Growth of the server's memory; none for a server that is not our own.
    pub(super) resident_bytes_per_session: Option<u64>,
    pub(super) start_to_ready: Option<Duration>,
    /// Processor time of the callers, all threads together.
    pub(super) client_cpu: Duration,
    /// Processor time of a server of our own.
    pub(super) server_cpu: Option<Duration>,
    pub(super) held: Held,
    /// What the server adds between its engine and its sockets, as it counts it.
    pub(super) event_to_write: Buckets,
}

impl Report {
    /// One JSON object; what is not known is null.
    pub(super) fn as_json(&self) -> Value {
        let tally = &self.tally;
        json!({
            "sessions": self.sessions,
            "turns": tally.turns,
            "turns_failed": tally.failed,
            "turns_interrupted": tally.interrupted,
            "turns_broken_off": tally.broken_off,
            "turns_slept": tally.slept,
            "failures": tally.failures,
            "first_text_ms": percentiles(&tally.first_text, &[50, 95, 99]),
            "first_audio_ms": percentiles(&tally.first_audio, &[50, 95, 99]),
            "underruns": tally.underruns,
            "underrun_ms": rounded(tally.dry.as_secs_f64() * 1e3),
            "late_ms": percentiles(&tally.late, &[50, 99]),
            "real_time_factor": { "p50": tally.real_time_factor().map(rounded) },
            "aggregate_real_time_factor": self.aggregate().map(rounded),
            "cancel_ms": percentiles(&tally.cancel, &[50, 99]),
            "event_to_write_ms": {
                "p50": self.event_to_write.percentile_ms(50.0).map(rounded),
                "p99": self.event_to_write.percentile_ms(99.0).map(rounded),
            },
            "continuity_errors": tally.continuity_errors,
            "audio_after_cancel": tally.audio_after_cancel,
            "audio_s": rounded(tally.audio.as_secs_f64()),
            "wall_s": rounded(self.wall.as_secs_f64()),
            "resident_bytes_per_session": self.resident_bytes_per_session,
            "start_to_ready_ms": self.start_to_ready.map(|t| rounded(t.as_secs_f64() * 1e3)),
            "cpu_s": {
                "client": rounded(self.client_cpu.as_secs_f64()),
                "server": self.server_cpu.map(|t| rounded(t.as_secs_f64())),
            },
            "engine": {
                "kv_blocks_in_use_end": self.held.kv_blocks,
                "contexts_end": self.held.contexts,
            },
        })
    }

    /// A table.
    pub(super) fn as_text(&self) -> String {
        let tally = &self.tally;
        let mut text = String::new();
        let mut row = |name: &str, value: String| _ = writeln!(text, "{name:<28}{value}");
        row("sessions", self.sessions.to_string());
        let mut turns = tally.turns.to_string();
        let kinds = [
            (tally.interrupted, "interrupted"),
            (tally.broken_off, "broken off"),
            (tally.slept, "slept through"),
            (tally.failed, "failed"),
        ];
        for (count, kind) in kinds.into_iter().filter(|&(count, _)| count > 0) {
            turns += &format!(", {count} {kind}");
        }
        row("turns", turns);
        for (why, count) in &tally.failures {
            row("", format!("{count} x {why}"));
        }
        if tally.first_text.percentile_ms(50.0).is_some() {
            row("first text", in_words(&tally.first_text, &[50, 95, 99]));
        }
        row("first audio", in_words(&tally.first_audio, &[50, 95, 99]));
        let dry = format!("{} turns, {:.0} ms", tally.underruns, tally.dry.as_secs_f64() * 1e3);
        row("listeners who ran dry", dry);
        row("packets late", in_words(&tally.late, &[50, 99]));
        let added = |p: u32| self.event_to_write.percentile_ms(p.into());
        let added = added(50).zip(added(99));
        let added = added.map(|(half, most)| format!("p50 {half:.1} ms, p99 {most:.1} ms"));
        row("engine to socket", added.unwrap_or_else(|| "unknown".to_owned()));
        row("sound not contiguous", tally.continuity_errors.to_string());
        row("cancel to answer", in_words(&tally.cancel, &[50, 99]));
        row("sound after the answer", tally.audio_after_cancel.to_string());
        row("real-time factor of a turn", number(tally.real_time_factor()));
        row("real-time factor of all", number(self.aggregate()));
        let kib = self.resident_bytes_per_session.map(|bytes| format!("{} KiB", bytes >> 10));
        row("memory a session", kib.unwrap_or_else(|| "unknown".to_owned()));
        let cpu = self.server_cpu.map(|t| format!("server {:.1} s, ", t.as_secs_f64()));
        let cpu = cpu.unwrap_or_default();
        row("processor time", format!("{cpu}callers {:.1} s", self.client_cpu.as_secs_f64()));
        if let Some(time) = self.start_to_ready {
            row("start to ready", format!("{:.0} ms", time.as_secs_f64() * 1e3));
        }
        let count = |count: Option<u64>| count.map_or("unknown".to_owned(), |n| n.to_string());
        row("left in the engine", {
            let (contexts, blocks) = (count(self.held.contexts), count(self.held.kv_blocks));
            format!("contexts {contexts}, blocks {blocks}")
        });
        text
    }

    /// Wall clock for each second of sound that all listeners together got.
    fn aggregate(&self) -> Option<f64> {
        let audio = self.tally.audio.as_secs_f64();
        (audio > 0.0).then(|| self.wall.as_secs_f64() / audio)
    }
}

fn percentiles(times: &Times, percents: &[u32]) -> Value {
    let value = |&p: &u32| (format!("p{p}"), json!(times.percentile_ms(p.into()).map(rounded)));
    Value::Object(percents.iter().map(value).collect())
}

fn in_words(times: &Times, percents: &[u32]) -> String {
    let value = |&p: &u32| Some(format!("p{p} {:.1} ms", times.percentile_ms(p.into())?));
    let values: Option<Vec<String>> = percents.iter().map(value).collect();
    values.map_or_else(|| "none".to_owned(), |values| values.join(", "))
}

fn number(value: Option<f64>) -> String {
    value.map_or_else(|| "none".to_owned(), |value| format!("{value:.4}"))
}

/// To four decimals: finer figures would not be the same twice.
fn rounded(value: f64) -> f64 {
    (value * 1e4).round() / 1e4
}

#[cfg(test)]
mod tests {
    use super::super::tally::End;
    use super::super::turn::{Sound, Turn};
    use super::*;

    fn report(tally: Tally) -> Report {
        Report {
            tally,
            sessions: 2,
            wall: Duration::from_secs(1),
            resident_bytes_per_session: None,
            start_to_ready: None,
            client_cpu: Duration::ZERO,
            server_cpu: None,
            held: Held::default(),
            event_to_write: Buckets::default(),
        }
    }

    #[test]
    fn what_was_not_measured_is_null() {
        let json = report(Tally::new()).as_json();
        assert_eq!(json["first_text_ms"], json!({"p50": null, "p95": null, "p99": null}));
        assert_eq!(json["first_audio_ms"], json!({"p50": null, "p95": null, "p99": null}));
        assert_eq!(json["cancel_ms"], json!({"p50": null, "p99": null}));
        assert_eq!(json["engine"], json!({"kv_blocks_in_use_end": null, "contexts_end": null}));
        assert!(json["aggregate_real_time_factor"].is_null());
        assert_eq!(json["event_to_write_ms"], json!({"p50": null, "p99": null}));
    }

    #[test]
    fn failures_are_told_by_reason() {
        let mut tally = Tally::new();
        let mut turn = Turn::new(Duration::ZERO);
        let whole = Duration::from_secs(4);
        turn.sound(Sound { seq: 0, count: 200, from: Duration::ZERO, to: whole }, Duration::ZERO);
        tally.add(&turn, End::Failed("overloaded".into()));
        tally.add(&turn, End::Failed("overloaded".into()));
        let report = report(tally);
        assert_eq!(report.as_json()["failures"], json!({"overloaded": 2}));
        assert_eq!(report.as_json()["aggregate_real_time_factor"], json!(0.125));
        let text = report.as_text();
        assert!(text.contains("2, 2 failed") && text.contains("2 x overloaded"), "{text}");
    }
}
