//! What the page says, and that it says it in a form that Prometheus reads.

use std::collections::BTreeSet;

use engine::Stats;
use engine::stats::{AnswerStats, Cost, Lane, Part};

use super::*;

fn stats(stages: usize) -> Stats {
    let part = |stage| Part { model: "nano".into(), name: format!("cb{stage}") };
    let stats = Stats::new((0..stages).map(part).collect());
    let per_second = Some(Duration::from_millis(20));
    let cost = |guided| Cost { lane: Lane { stage: 0, guided }, listeners: 3, per_second };
    let answers = vec![AnswerStats { model: "piper".into(), ..AnswerStats::default() }];
    Stats { costs: vec![cost(false), Cost { per_second: None, ..cost(true) }], answers, ..stats }
}

fn page(stats: &Stats) -> String {
    let registry = Registry::new();
    Wire::new(&registry).touch();
    let mut page = Page::default();
    server(&mut page, true, Some(Duration::from_millis(1_500)));
    generation::add(&mut page, stats, "nano");
    process::add(&mut page);
    render(&registry, page)
}

#[test]
fn numbers_of_the_engine_stand_under_their_names() {
    let mut stats = stats(2);
    stats.guards.budget = 3;
    stats.endings.cancelled = 4;
    (stats.stages[1].blocks_total, stats.stages[1].blocks_in_use) = (10, 7);
    (stats.stages[0].pairs, stats.answers[0].audio_frames) = (2, 9);
    let page = page(&stats);
    for line in [
        "dovecote_engine_pairs{model=\"nano\",stage=\"cb0\"} 2",
        "dovecote_model_cost_ratio{model=\"nano\",guided=\"false\"} 0.02",
        "dovecote_model_cost_ratio{model=\"nano\",guided=\"true\"} 0",
        "dovecote_model_listeners{model=\"nano\",guided=\"true\"} 3",
        "dovecote_lm_tokens_total{model=\"piper\",kind=\"audio\"} 9",
        "dovecote_lm_first_audio_seconds_count{model=\"piper\"} 0",
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
    let page = page(&stats(4));
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

/// Where dashboards, alerts and the list of metrics lie.
const GRAFANA: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../grafana");

fn read(file: &str) -> String {
    std::fs::read_to_string(format!("{GRAFANA}/{file}")).unwrap()
}

/// Every family on the page, with its type and labels.
fn families() -> BTreeSet<String> {
    let page = page(&stats(4));
    let mut families = BTreeSet::new();
    for family in page.lines().filter_map(|line| line.strip_prefix("# TYPE ")) {
        let (name, kind) = family.split_once(' ').unwrap();
        let series = page.lines().find(|line| {
            line.strip_prefix(name).is_some_and(|rest| rest.starts_with(['{', ' ', '_']))
        });
        let labels = series.unwrap().split_once('{').map_or("", |(_, labels)| labels);
        let names = labels.split("\",").filter_map(|pair| Some(pair.split_once("=\"")?.0));
        let names: BTreeSet<&str> = names.filter(|name| *name != "le").collect();
        families.insert(format!("{name} {kind} {names:?}"));
    }
    families
}

#[test]
fn the_list_of_metrics_is_complete_and_true() {
    let readme = read("README.md");
    let rows = readme
        .lines()
        .filter(|line| line.starts_with("| `dovecote_") || line.starts_with("| `process_"));
    let listed: BTreeSet<String> = rows
        .map(|row| {
            let cells: Vec<&str> = row.split('|').map(str::trim).collect();
            let labels: BTreeSet<&str> = cells[4].split(", ").filter(|l| !l.is_empty()).collect();
            format!("{} {} {labels:?}", cells[1].trim_matches('`'), cells[2])
        })
        .collect();
    let families = families();
    let missing: Vec<_> = families.difference(&listed).collect();
    let wrong: Vec<_> = listed.difference(&families).collect();
    assert!(missing.is_empty() && wrong.is_empty(), "missing {missing:?}, wrong {wrong:?}");
}

/// Words of a text that look like our metrics.
fn named(text: &str) -> BTreeSet<String> {
    let words = text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
    let ours = |w: &&str| w.starts_with("dovecote_") || w.starts_with("process_");
    words.filter(ours).map(str::to_owned).collect()
}

#[test]
fn dashboards_and_alerts_name_only_what_there_is_and_dashboards_show_all_of_it() {
    let families: BTreeSet<String> =
        families().iter().map(|f| f.split(' ').next().unwrap().to_owned()).collect();
    let base = |name: &str| {
        let suffix = ["_bucket", "_sum", "_count"].iter().find_map(|s| name.strip_suffix(s));
        suffix.filter(|base| families.contains(*base)).unwrap_or(name).to_owned()
    };
    let mut shown = BTreeSet::new();
    for file in ["dashboards/overview.json", "dashboards/engine.json", "dashboards/models.json"] {
        shown.extend(named(&read(file)).iter().map(|name| base(name)));
    }
    let alerts: BTreeSet<String> = named(&read("alerts.yaml")).iter().map(|n| base(n)).collect();
    let unknown: Vec<_> = shown.union(&alerts).filter(|name| !families.contains(*name)).collect();
    assert!(unknown.is_empty(), "{unknown:?}");
    let hidden: Vec<_> = families.difference(&shown).filter(|f| *f != "dovecote_ready").collect();
    assert!(hidden.is_empty(), "no panel shows {hidden:?}");
}

#[test]
fn dashboards_are_json_with_a_number_of_its_own_for_each_panel() {
    for file in ["dashboards/overview.json", "dashboards/engine.json", "dashboards/models.json"] {
        let board: serde_json::Value = serde_json::from_str(&read(file)).unwrap();
        let panels = board["panels"].as_array().unwrap();
        let ids: BTreeSet<u64> = panels.iter().map(|p| p["id"].as_u64().unwrap()).collect();
        assert_eq!(ids.len(), panels.len(), "{file}");
        for panel in panels.iter().filter(|panel| panel["type"] != "row") {
            assert_eq!(panel["datasource"]["uid"], "dovecote", "{file}: {}", panel["title"]);
            assert!(!panel["targets"].as_array().unwrap().is_empty(), "{file}: {}", panel["title"]);
        }
    }
}

#[test]
fn every_alert_has_a_condition_a_severity_and_a_runbook() {
    let alerts = read("alerts.yaml");
    let rules: Vec<&str> = alerts.split("- alert: ").skip(1).collect();
    assert!(rules.len() > 5);
    for rule in rules {
        for part in ["expr:", "severity:", "summary:", "runbook:"] {
            assert!(rule.contains(part), "{part} is missing in {rule}");
        }
    }
}
