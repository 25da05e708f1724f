//! What happens at the sockets, on counters that were resolved when the server began: counting costs an atomic addition.

use std::time::Duration;

use engine::{Finish, Usage};
use prometheus::core::Collector;
use prometheus::{
    Counter, Histogram, HistogramOpts, IntCounter, IntCounterVec, IntGauge, Opts, Registry,
};

use crate::error::Code;

/// Seconds from a context's first text to its first packet. The promise is 150 ms; a turn above a second is felt by everybody.
const FIRST_AUDIO_SECONDS: &[f64] =
    &[0.02, 0.04, 0.06, 0.08, 0.1, 0.125, 0.15, 0.2, 0.25, 0.3, 0.4, 0.6, 1.0, 2.0, 5.0, 10.0];
/// Seconds from a cancel to its answer. The promise is 20 ms.
const CANCEL_SECONDS: &[f64] =
    &[0.0005, 0.001, 0.002, 0.005, 0.01, 0.015, 0.02, 0.03, 0.05, 0.1, 0.25, 1.0];
/// Seconds that the gateway adds between the engine and the socket. The promise is 2 ms.
const EVENT_TO_WRITE_SECONDS: &[f64] =
    &[0.0001, 0.0002, 0.0004, 0.0007, 0.001, 0.0015, 0.002, 0.003, 0.005, 0.01, 0.02, 0.05, 0.2];
/// Seconds of silence that a listener heard in the middle of speech: a packet, a word, a sentence.
const GAP_SECONDS: &[f64] = &[0.005, 0.01, 0.02, 0.04, 0.08, 0.15, 0.3, 0.6, 1.2, 2.5, 5.0];
/// Seconds of a session: a request, a turn, a call, a long call.
const SESSION_SECONDS: &[f64] = &[1.0, 5.0, 15.0, 30.0, 60.0, 180.0, 600.0, 1800.0, 7200.0];

/// How sessions end.
pub(super) const OUTCOMES: [&str; 9] = [
    "ended",
    "gone",
    "internal",
    "misuse",
    "overloaded",
    "replaced",
    "shutting_down",
    "timeout",
    "unauthorized",
];
/// Why sessions and requests find no place.
pub(super) const REFUSALS: [&str; 4] = ["draining", "engine", "full", "key"];
/// Why contexts are cancelled.
pub(super) const CANCELS: [&str; 7] =
    ["client", "error", "gone", "idle", "replaced", "session_end", "shutting_down"];
/// Why listeners run dry.
pub(super) const CAUSES: [&str; 2] = ["server", "text"];

/// Why answers end.
const FINISHES: [&str; 2] = ["stop", "length"];
/// What their tokens are.
const TOKENS: [&str; 2] = ["audio", "text"];

/// What happens at the sockets.
pub(crate) struct Wire {
    /// HTTP requests, by route and class of status.
    pub(crate) requests: IntCounterVec,
    pub(crate) connections: Connections,
    pub(crate) sessions: Sessions,
    pub(crate) contexts: Contexts,
    pub(crate) sound: Sound,
    pub(crate) answers: Answers,
}

/// Answers of speech language models.
pub(crate) struct Answers {
    /// By why they ended.
    ended: IntCounterVec,
    /// By what they are.
    prompt_tokens: IntCounterVec,
    tokens: IntCounterVec,
    seconds: Counter,
}

impl Answers {
    /// One is complete. A guidance companion is no part of what it took.
    pub(crate) fn count(&self, usage: &Usage, sound: Duration) {
        let finish = match usage.finish {
            Finish::Stop => FINISHES[0],
            Finish::Length => FINISHES[1],
        };
        self.ended.with_label_values(&[finish]).inc();
        let add = |counters: &IntCounterVec, kind: &str, tokens: usize| {
            counters.with_label_values(&[kind]).inc_by(tokens as u64);
        };
        add(&self.prompt_tokens, TOKENS[0], usage.prompt_audio_tokens);
        add(&self.prompt_tokens, TOKENS[1], usage.prompt_tokens);
        add(&self.tokens, TOKENS[0], usage.audio_frames);
        add(&self.tokens, TOKENS[1], usage.text_tokens);
        self.seconds.inc_by(sound.as_secs_f64());
    }

    fn new(r: &Registrar<'_>) -> Self {
        Self {
            ended: r.counters(
                "dovecote_answers_total",
                "Answers of speech language models that are complete, by why they ended.",
                &["finish"],
            ),
            prompt_tokens: r.counters(
                "dovecote_answer_prompt_tokens_total",
                "Tokens of what was answered, by what they are.",
                &["kind"],
            ),
            tokens: r.counters(
                "dovecote_answer_tokens_total",
                "Tokens of answers, by what they are; of sound, the rows of the model's codes.",
                &["kind"],
            ),
            seconds: r.seconds("dovecote_answer_audio_seconds_total", "Sound of answers."),
        }
    }
}

/// Sockets.
#[derive(Clone)]
pub(crate) struct Connections {
    pub(crate) open: IntGauge,
    pub(crate) refused: IntCounter,
}

/// Sessions.
pub(crate) struct Sessions {
    pub(crate) open: IntGauge,
    /// By how they ended.
    pub(crate) ended: IntCounterVec,
    /// By why.
    pub(crate) refused: IntCounterVec,
    pub(crate) seconds: Histogram,
    /// Errors, by code.
    pub(crate) errors: IntCounterVec,
}

/// Contexts of sessions.
pub(crate) struct Contexts {
    pub(crate) open: IntGauge,
    pub(crate) done: IntCounter,
    /// By why.
    pub(crate) cancelled: IntCounterVec,
    pub(crate) late_cancels: IntCounter,
    pub(crate) cancel_seconds: Histogram,
    pub(crate) parks: IntCounter,
    pub(crate) pressure: IntCounter,
    pub(crate) text_characters: IntCounter,
}

/// Sound on its way out.
pub(crate) struct Sound {
    pub(crate) packets: IntCounter,
    pub(crate) bytes: IntCounter,
    pub(crate) seconds: Counter,
    pub(crate) first_seconds: Histogram,
    pub(crate) event_to_write_seconds: Histogram,
    /// By whose fault.
    pub(crate) underruns: IntCounterVec,
    pub(crate) underrun_seconds: Histogram,
}

impl Wire {
    /// New counters, known to the registry.
    pub(crate) fn new(registry: &Registry) -> Self {
        let r = Registrar(registry);
        let wire = Self {
            requests: r.counters(
                "dovecote_http_requests_total",
                "HTTP requests that were answered, upgrades among them.",
                &["route", "status"],
            ),
            connections: Connections::new(&r),
            sessions: Sessions::new(&r),
            contexts: Contexts::new(&r),
            sound: Sound::new(&r),
            answers: Answers::new(&r),
        };
        wire.begin_at_zero();
        wire
    }

    /// Makes every series whose labels are known beforehand: the first error of a kind is then a rise from zero, which
    /// alerts see, and what is on the page does not depend on who has called.
    fn begin_at_zero(&self) {
        let all = |of: &IntCounterVec, values: &[&str]| {
            values.iter().for_each(|value| of.with_label_values(&[value]).inc_by(0));
        };
        all(&self.sessions.ended, &OUTCOMES);
        all(&self.sessions.refused, &REFUSALS);
        all(&self.sessions.errors, &Code::ALL.map(Code::name));
        all(&self.contexts.cancelled, &CANCELS);
        all(&self.sound.underruns, &CAUSES);
        all(&self.answers.ended, &FINISHES);
        all(&self.answers.prompt_tokens, &TOKENS);
        all(&self.answers.tokens, &TOKENS);
    }
}

impl Connections {
    fn new(r: &Registrar<'_>) -> Self {
        Self {
            open: r.gauge("dovecote_connections_open", "TCP connections that are served."),
            refused: r.counter(
                "dovecote_connections_refused_total",
                "TCP connections beyond server.max_connections.",
            ),
        }
    }
}

impl Sessions {
    fn new(r: &Registrar<'_>) -> Self {
        Self {
            open: r.gauge("dovecote_sessions_open", "Sessions that are served."),
            ended: r.counters(
                "dovecote_sessions_total",
                "Sessions that ended, by how.",
                &["outcome"],
            ),
            refused: r.counters(
                "dovecote_sessions_refused_total",
                "Sessions and speech requests that found no place, by why.",
                &["reason"],
            ),
            seconds: r.histogram(
                "dovecote_session_seconds",
                "How long sessions lasted.",
                SESSION_SECONDS,
            ),
            errors: r.counters(
                "dovecote_errors_total",
                "Errors told to clients, by code.",
                &["code"],
            ),
        }
    }
}

impl Contexts {
    fn new(r: &Registrar<'_>) -> Self {
        Self {
            open: r.gauge("dovecote_contexts_open", "Contexts of sessions that are not over."),
            done: r.counter(
                "dovecote_contexts_done_total",
                "Contexts of sessions that were sent to their end.",
            ),
            cancelled: r.counters(
                "dovecote_contexts_cancelled_total",
                "Contexts of sessions that were cancelled before all of their sound was sent, by why.",
                &["reason"],
            ),
            late_cancels: r.counter(
                "dovecote_late_cancels_total",
                "Cancels of contexts whose sound had been sent: barge-ins into what was still playing.",
            ),
            cancel_seconds: r.histogram(
                "dovecote_cancel_seconds",
                "From a cancel, or what replaces a context, to the answer at the socket.",
                CANCEL_SECONDS,
            ),
            parks: r.counter(
                "dovecote_parks_total",
                "Times a context was held since it was too far ahead of its listener.",
            ),
            pressure: r.counter(
                "dovecote_pressure_total",
                "Times a client was told that its text piles up.",
            ),
            text_characters: r.counter(
                "dovecote_text_characters_total",
                "Characters of text that sessions accepted.",
            ),
        }
    }
}

impl Sound {
    fn new(r: &Registrar<'_>) -> Self {
        Self {
            packets: r.counter("dovecote_packets_total", "Packets of sound handed to sockets."),
            bytes: r.counter(
                "dovecote_audio_bytes_total",
                "Bytes of sound handed to sockets, with their headers.",
            ),
            seconds: r.seconds("dovecote_audio_seconds_total", "Sound handed to sockets."),
            first_seconds: r.histogram(
                "dovecote_first_audio_seconds",
                "From a context's first text to its first packet at the socket.",
                FIRST_AUDIO_SECONDS,
            ),
            event_to_write_seconds: r.histogram(
                "dovecote_event_to_write_seconds",
                "From sound leaving the engine to its first packet at the socket, unless that was held back on purpose.",
                EVENT_TO_WRITE_SECONDS,
            ),
            underruns: r.counters(
                "dovecote_underruns_total",
                "Times a listener ran dry within a context, by the server's clock: sound came late (server), or text did (text).",
                &["cause"],
            ),
            underrun_seconds: r.histogram(
                "dovecote_underrun_seconds",
                "How long listeners were dry because sound came late, by the server's clock.",
                GAP_SECONDS,
            ),
        }
    }
}

#[cfg(test)]
impl Wire {
    /// Makes a series of every metric that begins with its first event.
    pub(super) fn touch(&self) {
        self.requests.with_label_values(&["other", "2xx"]);
    }
}

/// One more, until it is dropped.
#[derive(Debug)]
pub(crate) struct Held(IntGauge);

impl Held {
    pub(crate) fn new(gauge: &IntGauge) -> Self {
        gauge.inc();
        Self(gauge.clone())
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.0.dec();
    }
}

/// Makes metrics and registers them.
struct Registrar<'a>(&'a Registry);

impl Registrar<'_> {
    fn counter(&self, name: &str, help: &str) -> IntCounter {
        self.known(IntCounter::new(name, help))
    }

    fn seconds(&self, name: &str, help: &str) -> Counter {
        self.known(Counter::new(name, help))
    }

    fn counters(&self, name: &str, help: &str, labels: &[&str]) -> IntCounterVec {
        self.known(IntCounterVec::new(Opts::new(name, help), labels))
    }

    fn gauge(&self, name: &str, help: &str) -> IntGauge {
        self.known(IntGauge::new(name, help))
    }

    fn histogram(&self, name: &str, help: &str, buckets: &[f64]) -> Histogram {
        let options = HistogramOpts::new(name, help).buckets(buckets.to_vec());
        self.known(Histogram::with_opts(options))
    }

    fn known<C: Collector + Clone + 'static>(&self, metric: prometheus::Result<C>) -> C {
        let metric = metric.expect("names and buckets above are well formed; this is a bug");
        let registered = self.0.register(Box::new(metric.clone()));
        registered.expect("every name above is there once; this is a bug");
        metric
    }
}
