//! The bar on a terminal: what is fetched or loaded, then what is spoken. Off a terminal it draws nothing.

use indicatif::{ProgressBar, ProgressStyle};

use super::speed::Stopwatch;

const LOADING: &str = "loading  [{bar:40}] {human_pos} of {human_len} parameters";
const WRITING: &str = "writing  [{bar:40}] {binary_bytes} of {binary_total_bytes}, {eta} left";
const FETCHING: &str = "fetching [{bar:40}] {binary_bytes} of {binary_total_bytes}, {eta} left";
const SPEAKING: &str = "speaking {spinner} {msg}";

/// A bar, visible or not.
pub(super) struct Progress {
    bar: ProgressBar,
}

impl Progress {
    /// Parameters being loaded.
    pub(super) fn loading(visible: bool) -> Self {
        Self::new(visible, LOADING)
    }

    /// Bytes on their way.
    pub(super) fn fetching(visible: bool, bytes: u64) -> Self {
        let progress = Self::new(visible, FETCHING);
        progress.bar.set_length(bytes);
        progress
    }

    /// Bytes being written.
    pub(super) fn writing(visible: bool) -> Self {
        Self::new(visible, WRITING)
    }

    /// More bytes; fewer, where some come once more.
    pub(super) fn came(&self, bytes: i64) {
        if bytes < 0 {
            self.bar.dec(bytes.unsigned_abs());
        } else {
            self.bar.inc(bytes.unsigned_abs());
        }
    }

    /// Sound being made.
    pub(super) fn speaking(visible: bool) -> Self {
        Self::new(visible, SPEAKING)
    }

    fn new(visible: bool, template: &str) -> Self {
        let bar = if visible { ProgressBar::new(0) } else { ProgressBar::hidden() };
        let style = ProgressStyle::with_template(template);
        Self {
            bar: bar.with_style(style.expect("the templates above are well formed; this is a bug")),
        }
    }

    pub(super) fn loaded(&self, parameters: usize, total: usize) {
        self.bar.set_length(total as u64);
        self.bar.set_position(parameters as u64);
    }

    pub(super) fn spoken(&self, watch: &Stopwatch) {
        if self.bar.is_hidden() {
            return;
        }
        let mut text = format!("{:.1} s", watch.audio_s());
        if let Some(factor) = watch.real_time_factor() {
            text += &format!(", real-time factor {factor:.3}");
        }
        if let Some(first) = watch.first_audio_ms() {
            text += &format!(", first audio after {first:.0} ms");
        }
        self.bar.set_message(text);
        self.bar.tick();
    }

    /// Leaves the last state on the screen.
    pub(super) fn finish(&self) {
        if !self.bar.is_hidden() {
            self.bar.finish();
        }
    }
}
