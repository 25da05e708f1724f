//! What the process costs, as the system tells it. Where the system does not, the metric is absent.
//!
//! The names are those that every Prometheus client library uses, so that general dashboards find them.

use std::fs;
use std::time::Duration;

use cpu_time::ProcessTime;

use super::page::Page;

/// Ticks of a second in `/proc`: the same on every Linux, whatever the kernel's own clock does.
const TICKS_PER_SECOND: u64 = 100;

/// Adds what can be known.
pub(super) fn add(page: &mut Page) {
    if let Some(bytes) = resident_bytes() {
        page.gauges(
            "process_resident_memory_bytes",
            "Memory that the process has in RAM.",
            [([].as_slice(), bytes as f64)],
        );
    }
    if let Some(files) = open_files() {
        page.gauges(
            "process_open_fds",
            "Open file descriptors: sockets, files, pipes.",
            [([].as_slice(), files as f64)],
        );
    }
    if let Ok(time) = ProcessTime::try_now() {
        page.counters(
            "process_cpu_seconds_total",
            "Processor time of all threads, user and system.",
            [([].as_slice(), time.as_duration().as_secs_f64())],
        );
    }
}

/// Memory that the process has in RAM.
pub(super) fn resident_bytes() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kilobytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kilobytes * 1024)
}

/// Open file descriptors.
pub(super) fn open_files() -> Option<usize> {
    // The listing itself holds one.
    Some(fs::read_dir("/proc/self/fd").ok()?.count().saturating_sub(1))
}

/// How long ago the process began, to a hundredth of a second.
pub(super) fn age() -> Option<Duration> {
    let uptime = fs::read_to_string("/proc/uptime").ok()?;
    let uptime: f64 = uptime.split(' ').next()?.parse().ok()?;
    let stat = fs::read_to_string("/proc/self/stat").ok()?;
    // The name in parentheses may hold anything; behind it, the 20th field is the start.
    let started: u64 = stat.rsplit(')').next()?.split_whitespace().nth(19)?.parse().ok()?;
    let age = uptime - started as f64 / TICKS_PER_SECOND as f64;
    Some(Duration::from_secs_f64(age.max(0.0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(target_os = "linux")]
    fn a_process_knows_its_memory_its_files_and_its_age() {
        assert!(resident_bytes().unwrap() > 100_000);
        let before = open_files().unwrap();
        let held = fs::File::open("/proc/self/stat").unwrap();
        // Other tests open and close files meanwhile.
        assert!(before > 0 && open_files().unwrap() > 0);
        drop(held);
        assert!(age().unwrap() < Duration::from_secs(86_400));
    }
}
