//! Every metric of the process in one place: its name, its unit, its help, its buckets and why they are those.
//!
//! Labels come from closed sets: no metric knows a session, a context, a key, an address, a path as it was asked for, or a
//! word. So the number of series does not depend on who calls. `grafana/README.md` lists all of them; a test holds the
//! list to this.
//!
//! ```text
//! wire     counted as it happens, on counters resolved beforehand    sessions, contexts, packets, latencies
//! engine   read when somebody asks                                   steps, blocks, guards, codec
//! process  read when somebody asks                                   memory, files, processor
//! ```

mod generation;
mod page;
mod process;
mod session;
mod wire;

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use prometheus::{Registry, TextEncoder};

use page::Page;
pub(crate) use session::SessionMeter;
pub(crate) use wire::{Connections, Held, Wire};

/// What a scraper is told the answer is.
pub(crate) const CONTENT_TYPE: &str = prometheus::TEXT_FORMAT;

/// All metrics.
pub(crate) struct Metrics {
    /// What happens at the sockets.
    pub(crate) wire: Wire,
    registry: Registry,
    engine: Arc<engine::Handle>,
    model: String,
    ready_after: OnceLock<Duration>,
}

impl Metrics {
    /// Metrics of a server with this engine, which speaks with this model.
    pub(crate) fn new(engine: Arc<engine::Handle>, model: &str) -> Self {
        let registry = Registry::new();
        let wire = Wire::new(&registry);
        let (model, ready_after) = (model.to_owned(), OnceLock::new());
        Self { wire, registry, engine, model, ready_after }
    }

    /// The server is ready for its first guest.
    pub(crate) fn ready(&self) {
        if let Some(age) = process::age() {
            self.ready_after.get_or_init(|| age);
        }
    }

    /// Everything, as Prometheus reads it. `is_ready`: whether new sessions are welcome.
    pub(crate) fn text(&self, is_ready: bool) -> String {
        let mut page = Page::default();
        server(&mut page, is_ready, self.ready_after.get().copied());
        generation::add(&mut page, &self.engine.stats(), &self.model);
        process::add(&mut page);
        render(&self.registry, page)
    }
}

fn render(registry: &Registry, page: Page) -> String {
    let mut families = registry.gather();
    families.extend(page.into_families());
    TextEncoder::new()
        .encode_to_string(&families)
        .expect("families are only added with a metric in them; this is a bug")
}

fn server(page: &mut Page, is_ready: bool, ready_after: Option<Duration>) {
    let version = [("version", env!("CARGO_PKG_VERSION"))];
    page.gauges(
        "dovecote_build_info",
        "Always 1; the label says which version this is.",
        [(version.as_slice(), 1.0)],
    );
    page.gauges(
        "dovecote_ready",
        "1 when new sessions are welcome: warmed up, not full, not going down.",
        [([].as_slice(), f64::from(u8::from(is_ready)))],
    );
    page.gauges(
        "dovecote_time_to_ready_seconds",
        "From the start of the process to the end of its warm-up; 0 until then.",
        [([].as_slice(), ready_after.unwrap_or_default().as_secs_f64())],
    );
}

#[cfg(test)]
mod tests;
