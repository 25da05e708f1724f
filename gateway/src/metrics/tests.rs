//! What the page says, and that it says it in a form that Prometheus reads.

use std::collections::BTreeSet;

use ::engine::Stats;

use super::*;

fn page(stats: &Stats) -> String {
    let mut page = Page::default();
    server(&mut page, true, Some(Duration::from_millis(1_500)));
    engine::add(&mut page, stats, "nano");
    process::add(&mut page);
    render(page)
}

#[test]
fn numbers_of_the_engine_stand_under_their_names() {
    let mut stats = Stats::new(2);
    stats.guards.budget = 3;
    stats.endings.cancelled = 4;
    (stats.stages[1].blocks_total, stats.stages[1].blocks_in_use) = (10, 7);
    let page = page(&stats);
    for line in [
        "dovecote_generation_budget_hits_total{model=\"nano\"} 3",
        "dovecote_engine_contexts_ended_total{model=\"nano\",outcome=\"cancelled\"} 4",
        "dovecote_engine_kv_blocks{model=\"nano\",stage=\"cb1\",state=\"used\"} 7",
        "dovecote_engine_kv_blocks{model=\"nano\",stage=\"cb1\",state=\"free\"} 3",
        "dovecote_engine_step_seconds_bucket{model=\"nano\",le=\"+Inf\"} 0",
        "dovecote_time_to_ready_seconds 1.5",
        "dovecote_ready 1",
    ] {
        assert!(page.lines().any(|l| l == line), "{line} is not in\n{page}");
    }
}

#[test]
fn every_series_is_there_once_and_every_family_has_a_help() {
    let page = page(&Stats::new(4));
    let mut seen = BTreeSet::new();
    for line in page.lines() {
        if let Some(family) = line.strip_prefix("# TYPE ") {
            let name = family.split(' ').next().unwrap();
            assert!(page.contains(&format!("# HELP {name} ")), "{name} says nothing of itself");
        } else if !line.starts_with('#') {
            let (series, value) = line.rsplit_once(' ').unwrap();
            assert!(value.parse::<f64>().is_ok(), "{line}");
            assert!(seen.insert(series), "{series} is there twice");
        }
    }
    assert!(seen.len() > 100);
}
