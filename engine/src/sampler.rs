//! One row of logits in, the index of one output out. Same input, same output, bit for bit.
//!
//! It must never know what an output means, nor draw chance itself: the uniform number is an argument.
//!
//! ```text
//! logits -> forbidden -> biases -> frequency penalty -> [greedy] -> temperature -> top-k -> top-p -> draw
//! ```

use std::cmp::Ordering;

use crate::kernels::math::all_finite;

/// How freely to choose.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sampling {
    /// Divides the logits; below [`GREEDY_BELOW`] the best output is taken.
    pub temperature: f32,
    /// How many of the best outputs stay; 0: all.
    pub top_k: usize,
    /// The best outputs stay that together have at least this probability; 1 and above: all.
    pub top_p: f32,
    /// Subtracted from an output's logit for each time it was generated already.
    pub frequency_penalty: f32,
}

/// Temperatures below this are greedy.
pub const GREEDY_BELOW: f32 = 1e-5;

impl Sampling {
    /// Takes the best output, nothing penalised.
    pub const GREEDY: Self =
        Self { temperature: 0.0, top_k: 0, top_p: 1.0, frequency_penalty: 0.0 };
}

/// Outputs that are made more or less likely together.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BiasGroup<'a> {
    /// Their indices.
    pub outputs: &'a [u16],
    /// Added to the logit of each.
    pub add: f32,
}

/// What holds for one step of one sequence.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rules<'a> {
    /// How freely to choose.
    pub sampling: Sampling,
    /// Outputs that cannot be chosen: stop symbols before the minimum length.
    pub forbidden: &'a [u16],
    /// Biases; an output in two groups gets both.
    pub biases: &'a [BiasGroup<'a>],
    /// What this call has generated so far, forced codes not included; the frequency penalty counts these.
    pub generated: &'a [u16],
}

/// Why nothing could be chosen.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
pub enum SampleError {
    /// The network produced a value that is not finite.
    #[error("logit {output} is {value}, not a finite number")]
    BrokenNumbers {
        /// Index of the first such logit.
        output: usize,
        /// The value.
        value: f32,
    },
    /// Every output is forbidden.
    #[error("all {outputs} outputs are forbidden")]
    NothingAllowed {
        /// How many there are.
        outputs: usize,
    },
}

/// Chooses an output. `uniform` in `[0, 1)` decides; a greedy choice ignores it and takes the lowest index on ties.
/// The logits are changed in place by all steps before the temperature.
///
/// # Errors
/// A logit that is not finite, or nothing left to choose from.
///
/// # Panics
/// When a rule names an output beyond the row.
pub fn sample(logits: &mut [f32], rules: &Rules<'_>, uniform: f64) -> Result<usize, SampleError> {
    check_finite(logits)?;
    shape(logits, rules);
    let Sampling { temperature, top_k, top_p, .. } = rules.sampling;
    let greedy = temperature.is_nan() || temperature < GREEDY_BELOW;
    let mut kept = best_of(logits, if greedy { 1 } else { top_k.max(1) });
    let best = *kept.first().ok_or(SampleError::NothingAllowed { outputs: logits.len() })?;
    if greedy {
        return Ok(best.output);
    }
    if top_k == 0 {
        kept = all_allowed(logits);
    }
    // Dividing by the temperature keeps the order, so it may wait until only the kept ones are left.
    let weigh = |c: &Candidate| (f64::from(c.logit - best.logit) / f64::from(temperature)).exp();
    let mut weighted: Vec<(usize, f64)> = kept.iter().map(|c| (c.output, weigh(c))).collect();
    keep_top_p(&mut weighted, f64::from(top_p), top_k > 0);
    Ok(draw(&weighted, uniform))
}

#[derive(Debug, Clone, Copy)]
struct Candidate {
    logit: f32,
    output: usize,
}

/// Minimum length, biases, frequency penalty.
fn shape(logits: &mut [f32], rules: &Rules<'_>) {
    for &output in rules.forbidden {
        logits[usize::from(output)] = f32::NEG_INFINITY;
    }
    for group in rules.biases {
        for &output in group.outputs {
            logits[usize::from(output)] += group.add;
        }
    }
    if rules.sampling.frequency_penalty != 0.0 {
        for &output in rules.generated {
            logits[usize::from(output)] -= rules.sampling.frequency_penalty;
        }
    }
}

fn check_finite(logits: &[f32]) -> Result<(), SampleError> {
    if all_finite(logits) {
        return Ok(());
    }
    let output = logits.iter().position(|l| !l.is_finite()).expect("one of them is not finite");
    Err(SampleError::BrokenNumbers { output, value: logits[output] })
}

fn all_allowed(logits: &[f32]) -> Vec<Candidate> {
    let all = logits.iter().enumerate().map(|(output, &logit)| Candidate { logit, output });
    all.filter(|c| c.logit > f32::NEG_INFINITY).collect()
}

/// The `k` largest, largest first, lower indices first on ties; fewer when fewer are allowed. One pass with a short
/// sorted list: only what reaches a floor known beforehand goes into it, and once it is full, nearly all that follow lie below its
/// end, and whole runs of them are passed over at once.
fn best_of(logits: &[f32], k: usize) -> Vec<Candidate> {
    const RUN: usize = 16;
    let mut best: Vec<Candidate> = Vec::with_capacity(k.min(logits.len()) + 1);
    let mut least = floor_of(logits, k).next_down();
    for (run, values) in logits.chunks(RUN).enumerate() {
        if !values.iter().fold(false, |any, &l| any | (l > least)) {
            continue;
        }
        for (i, &logit) in values.iter().enumerate() {
            if logit > least {
                let at = best.partition_point(|c| c.logit >= logit);
                best.insert(at, Candidate { logit, output: run * RUN + i });
                best.truncate(k);
                if best.len() == k {
                    least = best[k - 1].logit;
                }
            }
        }
    }
    best
}

/// A value that at least `k` of the logits reach; minus infinity where none is found cheaply. It is the `k`-th of the largest of
/// some columns.
fn floor_of(logits: &[f32], k: usize) -> f32 {
    const COLUMNS: usize = 64;
    const ROWS: usize = 16;
    if logits.len() < COLUMNS || !(2..=COLUMNS).contains(&k) {
        return f32::NEG_INFINITY;
    }
    let mut largest = [f32::NEG_INFINITY; COLUMNS];
    for row in logits.chunks_exact(COLUMNS).take(ROWS) {
        for (largest, &logit) in largest.iter_mut().zip(row) {
            *largest = if logit > *largest { logit } else { *largest };
        }
    }
    *largest.select_nth_unstable_by(k - 1, |a, b| b.total_cmp(a)).1
}

/// Keeps the smallest set of the heaviest that has at least `top_p` of the weight, and always the heaviest one. Sorts
/// no more than it must: in a flat codebook of thousands a few hundred usually carry it all.
fn keep_top_p(weighted: &mut Vec<(usize, f64)>, top_p: f64, sorted: bool) {
    const FIRST_LOOK: usize = 64;
    if top_p >= 1.0 {
        return;
    }
    let wanted = top_p * weighted.iter().map(|w| w.1).sum::<f64>();
    let mut ordered = if sorted { weighted.len() } else { 0 };
    let (mut count, mut sum) = (0, 0.0);
    while count < weighted.len() && (count == 0 || sum < wanted) {
        if count == ordered {
            ordered = (ordered * 2).max(FIRST_LOOK).min(weighted.len());
            order_next(&mut weighted[count..], ordered - count);
        }
        sum += weighted[count].1;
        count += 1;
    }
    weighted.truncate(count);
}

/// Brings the `n` heaviest to the front, heaviest first.
fn order_next(weighted: &mut [(usize, f64)], n: usize) {
    let heavier = |a: &(usize, f64), b: &(usize, f64)| -> Ordering {
        b.1.total_cmp(&a.1).then(a.0.cmp(&b.0))
    };
    if n < weighted.len() {
        weighted.select_nth_unstable_by(n, heavier);
    }
    weighted[..n].sort_unstable_by(heavier);
}

fn draw(weighted: &[(usize, f64)], uniform: f64) -> usize {
    let mut left = uniform * weighted.iter().map(|w| w.1).sum::<f64>();
    for &(output, weight) in weighted {
        if left < weight {
            return output;
        }
        left -= weight;
    }
    // Rounding may carry the point just past the end.
    weighted.last().expect("the best output is always kept").0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::uniform;
    use proptest::prelude::*;

    fn free(sampling: Sampling) -> Rules<'static> {
        Rules { sampling, forbidden: &[], biases: &[], generated: &[] }
    }

    fn sampling(temperature: f32, top_k: usize, top_p: f32) -> Sampling {
        Sampling { temperature, top_k, top_p, frequency_penalty: 0.0 }
    }

    /// Every output that some uniform number leads to.
    fn reachable(logits: &[f32], rules: &Rules<'_>) -> Vec<usize> {
        const POINTS: usize = 1000;
        let draw = |i| sample(&mut logits.to_vec(), rules, i as f64 / POINTS as f64).unwrap();
        let mut seen: Vec<usize> = (0..POINTS).map(draw).collect();
        seen.sort_unstable();
        seen.dedup();
        seen
    }

    fn logits_of(probabilities: &[f32]) -> Vec<f32> {
        probabilities.iter().map(|p| p.ln()).collect()
    }

    #[test]
    fn top_k_comes_before_top_p() {
        // After top-k 2 the first has 0.5 / 0.7 = 0.714, more than 0.705: alone. The other way round top-p keeps three
        // (0.5 + 0.2 is less than 0.705), and top-k then two.
        let logits = logits_of(&[0.5, 0.2, 0.12, 0.1, 0.08]);
        assert_eq!(reachable(&logits, &free(sampling(1.0, 2, 0.705))), [0]);
        assert_eq!(reachable(&logits, &free(sampling(1.0, 0, 0.705))), [0, 1, 2]);
    }

    #[test]
    fn temperature_comes_before_top_p() {
        // At temperature 2 the probabilities go with their square roots, 0.894 0.316 0.224 0.224 of 1.658: the first has
        // 0.54, the first two 0.73.
        let logits = logits_of(&[0.8, 0.1, 0.05, 0.05]);
        assert_eq!(reachable(&logits, &free(sampling(1.0, 0, 0.7))), [0]);
        assert_eq!(reachable(&logits, &free(sampling(2.0, 0, 0.7))), [0, 1]);
    }

    #[test]
    fn penalty_comes_before_top_k() {
        let logits = [3.0, 2.9, 2.8, 0.0];
        let mut rules = free(sampling(1.0, 2, 1.0));
        assert_eq!(reachable(&logits, &rules), [0, 1]);
        rules.sampling.frequency_penalty = 0.1;
        rules.generated = &[0, 0, 0, 1];
        // 2.7, 2.8 and 2.8: the two others stay.
        assert_eq!(reachable(&logits, &rules), [1, 2]);
    }

    #[test]
    fn greedy_takes_the_first_of_the_best_and_obeys_biases_and_penalties() {
        let logits = [1.0, 4.0, 4.0, 3.9];
        let mut rules = free(Sampling::GREEDY);
        let pick = |rules: &Rules<'_>| sample(&mut logits.to_vec(), rules, 0.999).unwrap();
        assert_eq!(pick(&rules), 1);
        rules.sampling.temperature = 0.9e-5;
        assert_eq!(pick(&rules), 1);
        rules.generated = &[1];
        rules.sampling.frequency_penalty = 0.05;
        assert_eq!(pick(&rules), 2);
        let groups = [
            BiasGroup { outputs: &[1, 2], add: -0.3 },
            BiasGroup { outputs: &[0], add: 2.0 },
            BiasGroup { outputs: &[0], add: 1.0 },
        ];
        rules.biases = &groups[..1];
        assert_eq!(pick(&rules), 3);
        rules.biases = &groups;
        assert_eq!(pick(&rules), 0);
    }

    #[test]
    fn forbidden_outputs_are_never_chosen_whatever_their_bias() {
        let logits = [0.0, 1.0, 50.0, 60.0];
        let group = [BiasGroup { outputs: &[2, 3], add: 100.0 }];
        for s in [Sampling::GREEDY, sampling(1.0, 50, 0.95), sampling(5.0, 0, 1.0)] {
            let rules = Rules { forbidden: &[3, 2], biases: &group, ..free(s) };
            assert!(reachable(&logits, &rules).iter().all(|&o| o < 2));
        }
        let rules = Rules { forbidden: &[0, 1, 2, 3], ..free(sampling(1.0, 2, 0.9)) };
        let error = sample(&mut logits.to_vec(), &rules, 0.5).unwrap_err();
        assert_eq!(error, SampleError::NothingAllowed { outputs: 4 });
    }

    #[test]
    fn broken_numbers_are_an_error_that_names_the_first() {
        for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
            for s in [Sampling::GREEDY, sampling(1.0, 50, 0.95)] {
                let error = sample(&mut [0.0, bad, f32::NAN], &free(s), 0.5).unwrap_err();
                assert!(matches!(error, SampleError::BrokenNumbers { output: 1, .. }), "{error}");
            }
        }
    }

    #[test]
    fn ties_at_the_edge_of_top_k_go_to_the_lower_index() {
        let logits = [1.0, 2.0, 1.0, 2.0, 1.0];
        assert_eq!(reachable(&logits, &free(sampling(1.0, 3, 1.0))), [0, 1, 3]);
    }

    #[test]
    fn draws_follow_the_distribution() {
        const DRAWS: u64 = 50_000;
        /// Six standard deviations of the worst of these counts, as a share of all draws.
        const TOLERANCE: f64 = 6.0 * 0.5 / 223.6;
        let probabilities = [0.05f32, 0.5, 0.15, 0.3];
        let logits = logits_of(&probabilities);
        for seed in [1, 2] {
            let mut counts = [0.0; 4];
            for step in 0..DRAWS {
                let rules = free(sampling(1.0, 0, 1.0));
                let u = uniform(seed, 0, step);
                counts[sample(&mut logits.clone(), &rules, u).unwrap()] += 1.0 / DRAWS as f64;
            }
            for (count, p) in counts.iter().zip(probabilities) {
                assert!((count - f64::from(p)).abs() < TOLERANCE, "seed {seed}: {counts:?}");
            }
        }
    }

    /// The steps as plainly as they can be written: a full sort, and one loop for each step.
    fn naive(logits: &[f32], rules: &Rules<'_>, uniform: f64) -> usize {
        let mut row = logits.to_vec();
        shape(&mut row, rules);
        let mut order: Vec<usize> = (0..row.len()).filter(|&o| row[o].is_finite()).collect();
        order.sort_by(|&a, &b| row[b].total_cmp(&row[a]));
        let Sampling { temperature, top_k, top_p, .. } = rules.sampling;
        if top_k > 0 {
            order.truncate(top_k);
        }
        let best = row[order[0]];
        let weight = |o: usize| (f64::from(row[o] - best) / f64::from(temperature)).exp();
        let total: f64 = order.iter().map(|&o| weight(o)).sum();
        let mut kept = vec![];
        let mut sum = 0.0;
        for &output in &order {
            if !kept.is_empty() && sum >= f64::from(top_p) * total {
                break;
            }
            sum += weight(output);
            kept.push(output);
        }
        let mut left = uniform * sum;
        for &output in &kept {
            if left < weight(output) {
                return output;
            }
            left -= weight(output);
        }
        kept[kept.len() - 1]
    }

    proptest! {
        #[test]
        fn partial_selection_chooses_what_a_full_sort_would(
            logits in prop::collection::vec(-8.0..8.0f32, 1..1500),
            is_coarse in any::<bool>(),
            top_k in 0..60usize,
            top_p in 0.01..0.999f32,
            temperature in 0.2..2.0f32,
            draw in 0.0..1.0f64,
            end in any::<bool>(),
        ) {
            // Rounded, many are equal; none is a negative zero, which a full sort tells from zero.
            let round = |l: f32| if is_coarse { l.round() + 0.0 } else { l };
            let logits: Vec<f32> = logits.into_iter().map(round).collect();
            let forbidden: &[u16] = if end && logits.len() > 2 { &[1] } else { &[] };
            let groups = [BiasGroup { outputs: &[0], add: -0.4 }];
            let rules = Rules {
                sampling: Sampling { temperature, top_k, top_p, frequency_penalty: 0.3 },
                forbidden,
                biases: &groups,
                generated: &[0, 0],
            };
            let expected = naive(&logits, &rules, draw);
            let chosen = sample(&mut logits.clone(), &rules, draw);
            prop_assert_eq!(chosen, Ok(expected));
            prop_assert_eq!(sample(&mut logits.clone(), &rules, draw), chosen);
        }
    }
}
