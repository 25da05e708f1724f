//! A histogram of a server, as its metrics page tells it: how many values lie at or below each bound.

/// Counts by their bounds in seconds, ascending, each with those below.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Buckets(Vec<(f64, f64)>);

impl Buckets {
    /// Reads the histogram of a name, all labels together; empty if it is not there.
    pub(super) fn read(page: &str, name: &str) -> Self {
        let start = format!("{name}_bucket{{");
        let mut counts: Vec<(f64, f64)> = Vec::new();
        for line in page.lines().filter_map(|line| line.strip_prefix(&start)) {
            let Some((labels, count)) = line.rsplit_once("} ") else { continue };
            let bound = labels.split("le=\"").nth(1).and_then(|rest| rest.split('"').next());
            let bound = bound.and_then(|bound| bound.parse().ok());
            let (Some(bound), Ok(count)) = (bound, count.parse::<f64>()) else { continue };
            match counts.iter_mut().find(|(known, _)| *known == bound) {
                Some((_, sum)) => *sum += count,
                None => counts.push((bound, count)),
            }
        }
        counts.sort_by(|a, b| a.0.total_cmp(&b.0));
        Self(counts)
    }

    /// What has come since an earlier page.
    pub(super) fn since(&self, before: &Self) -> Self {
        let earlier = |bound: f64| before.0.iter().find(|(b, _)| *b == bound).map_or(0.0, |b| b.1);
        Self(self.0.iter().map(|&(bound, count)| (bound, count - earlier(bound))).collect())
    }

    /// The time in milliseconds that so many of a hundred keep below, spread evenly within a bucket; none of none. What lies
    /// above the last bound counts as that.
    pub(super) fn percentile_ms(&self, percent: f64) -> Option<f64> {
        let all = self.0.last().map_or(0.0, |last| last.1);
        let wanted = all * percent / 100.0;
        let (mut lower, mut below) = (0.0, 0.0);
        for &(bound, count) in self.0.iter().filter(|_| all > 0.0) {
            if count >= wanted {
                let share = (wanted - below) / (count - below).max(f64::MIN_POSITIVE);
                let upper = if bound.is_finite() { bound } else { lower };
                return Some((lower + (upper - lower) * share) * 1e3);
            }
            (lower, below) = (bound, count);
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "# TYPE wait_seconds histogram\n\
        wait_seconds_bucket{le=\"0.001\"} 90\n\
        wait_seconds_bucket{le=\"0.002\"} 98\n\
        wait_seconds_bucket{le=\"0.01\"} 100\n\
        wait_seconds_bucket{le=\"+Inf\"} 100\n\
        wait_seconds_sum 0.1\n\
        wait_seconds_count 100\n";

    #[test]
    fn percentiles_lie_within_their_bucket() {
        let buckets = Buckets::read(PAGE, "wait_seconds");
        let close = |percent, ms: f64| {
            let found = buckets.percentile_ms(percent).unwrap();
            assert!((found - ms).abs() < 1e-9, "{found}");
        };
        close(45.0, 0.5);
        close(94.0, 1.5);
        close(99.0, 6.0);
        assert_eq!(Buckets::read(PAGE, "wait").percentile_ms(50.0), None);
    }

    #[test]
    fn what_was_there_before_does_not_count() {
        let now = Buckets::read(PAGE, "wait_seconds");
        assert_eq!(now.since(&now).percentile_ms(99.0), None);
        let before = "wait_seconds_bucket{le=\"0.001\"} 90\nwait_seconds_bucket{le=\"0.002\"} 90\n\
            wait_seconds_bucket{le=\"0.01\"} 90\nwait_seconds_bucket{le=\"+Inf\"} 90\n";
        let since = now.since(&Buckets::read(before, "wait_seconds"));
        assert_eq!(since.percentile_ms(80.0), Some(2.0));
    }

    #[test]
    fn what_is_above_all_bounds_counts_as_the_last() {
        let page = "w_bucket{le=\"0.5\"} 0\nw_bucket{le=\"+Inf\"} 4\n";
        assert_eq!(Buckets::read(page, "w").percentile_ms(50.0), Some(500.0));
    }
}
