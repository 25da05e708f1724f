//! Metrics that are read when somebody asks, and counted elsewhere: builds their families for the encoder.

use prometheus::proto::{
    Bucket, Counter, Gauge, Histogram, LabelPair, Metric, MetricFamily, MetricType,
};

/// Families under construction.
#[derive(Debug, Default)]
pub(crate) struct Page {
    families: Vec<MetricFamily>,
}

/// Names and values of labels.
pub(crate) type Labels<'a> = &'a [(&'a str, &'a str)];

impl Page {
    /// A number that only grows, once for each set of labels.
    pub(crate) fn counters<'a>(
        &mut self,
        name: &str,
        help: &str,
        values: impl IntoIterator<Item = (Labels<'a>, f64)>,
    ) {
        let metrics = values.into_iter().map(|(labels, value)| {
            let mut counter = Counter::default();
            counter.set_value(value);
            let mut metric = labelled(labels);
            metric.set_counter(counter);
            metric
        });
        self.add(name, help, MetricType::COUNTER, metrics.collect());
    }

    /// A number that comes and goes, once for each set of labels.
    pub(crate) fn gauges<'a>(
        &mut self,
        name: &str,
        help: &str,
        values: impl IntoIterator<Item = (Labels<'a>, f64)>,
    ) {
        let metrics = values.into_iter().map(|(labels, value)| {
            let mut gauge = Gauge::default();
            gauge.set_value(value);
            let mut metric = labelled(labels);
            metric.set_gauge(gauge);
            metric
        });
        self.add(name, help, MetricType::GAUGE, metrics.collect());
    }

    /// Values counted by their size, once for each set of labels.
    pub(crate) fn histograms<'a>(
        &mut self,
        name: &str,
        help: &str,
        values: impl IntoIterator<Item = (Labels<'a>, &'a engine::stats::Histogram)>,
    ) {
        let metrics = values.into_iter().map(|(labels, value)| {
            let mut metric = labelled(labels);
            metric.set_histogram(histogram(value));
            metric
        });
        self.add(name, help, MetricType::HISTOGRAM, metrics.collect());
    }

    /// What was built.
    pub(crate) fn into_families(self) -> Vec<MetricFamily> {
        self.families
    }

    fn add(&mut self, name: &str, help: &str, kind: MetricType, metrics: Vec<Metric>) {
        if metrics.is_empty() {
            return;
        }
        let mut family = MetricFamily::default();
        family.set_name(name.to_owned());
        family.set_help(help.to_owned());
        family.set_field_type(kind);
        family.set_metric(metrics);
        self.families.push(family);
    }
}

fn labelled(labels: Labels<'_>) -> Metric {
    let pair = |&(name, value): &(&str, &str)| {
        let mut pair = LabelPair::default();
        pair.set_name(name.to_owned());
        pair.set_value(value.to_owned());
        pair
    };
    Metric::from_label(labels.iter().map(pair).collect())
}

fn histogram(value: &engine::stats::Histogram) -> Histogram {
    let bucket = |(bound, below)| {
        let mut bucket = Bucket::default();
        bucket.set_upper_bound(bound);
        bucket.set_cumulative_count(below);
        bucket
    };
    let mut histogram = Histogram::default();
    histogram.set_bucket(value.cumulative().map(bucket).collect());
    histogram.set_sample_count(value.count());
    histogram.set_sample_sum(value.sum());
    histogram
}
