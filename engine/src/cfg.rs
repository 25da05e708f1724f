//! Classifier-free guidance: two rows of logits become one. It must never know whose they are.

/// Merges in place: `conditioned = weight * conditioned + (1 - weight) * null`. A weight of 1 changes nothing, above 1 the
/// condition (text, voice) counts for more than it was trained to.
///
/// # Panics
/// When the rows differ in length.
pub fn merge(conditioned: &mut [f32], null: &[f32], weight: f32) {
    assert_eq!(conditioned.len(), null.len(), "rows of one stage; this is a bug");
    for (c, &n) in conditioned.iter_mut().zip(null) {
        *c = weight * *c + (1.0 - weight) * n;
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    fn golden() -> Value {
        let file =
            concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/fixtures/delay_pattern/cfg_merge.json");
        serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap()
    }

    fn read<T: serde::de::DeserializeOwned>(value: &Value) -> T {
        serde_json::from_value(value.clone()).unwrap()
    }

    /// The best of the allowed outputs, the lowest on ties.
    fn best(row: &[f32], allowed: &[usize]) -> usize {
        let better = |b: usize, &o: &usize| if row[o] > row[b] { o } else { b };
        allowed.iter().fold(allowed[0], better)
    }

    /// All inputs are multiples of 1/8, so every product and sum is exact.
    #[test]
    fn golden_rows_merge_exactly_and_are_masked_afterwards() {
        for case in golden()["single"].as_array().unwrap() {
            let mut row: Vec<f32> = read(&case["cond"]);
            merge(&mut row, &read::<Vec<f32>>(&case["uncond"]), read(&case["w"]));
            assert_eq!(row, read::<Vec<f32>>(&case["merged"]), "{}", case["name"]);
            let allowed: Vec<usize> = read(&case["allowed"]);
            assert_eq!(best(&row, &allowed), read::<usize>(&case["argmax"]), "{}", case["name"]);
            let masked: Vec<Option<f32>> = read(&case["merged_masked"]);
            let kept = |(o, v): (usize, &f32)| allowed.contains(&o).then_some(*v);
            assert_eq!(row.iter().enumerate().map(kept).collect::<Vec<_>>(), masked);
        }
    }

    #[test]
    fn golden_streams_merge_each_on_its_own() {
        for case in golden()["multi_stream"].as_array().unwrap() {
            let mut rows: Vec<Vec<f32>> = read(&case["cond"]);
            let nulls: Vec<Vec<f32>> = read(&case["uncond"]);
            let argmax: Vec<usize> = read(&case["argmax"]);
            let all: Vec<usize> = (0..rows[0].len()).collect();
            for ((row, null), expected) in rows.iter_mut().zip(&nulls).zip(argmax) {
                merge(row, null, read(&case["w"]));
                assert_eq!(best(row, &all), expected, "{}", case["name"]);
            }
            assert_eq!(rows, read::<Vec<Vec<f32>>>(&case["merged"]), "{}", case["name"]);
        }
    }

    #[test]
    fn weight_moves_from_null_over_condition_and_beyond() {
        for (weight, expected) in [(0.0, [3.0, 1.0]), (1.0, [1.0, 5.0]), (2.0, [-1.0, 9.0])] {
            let mut row = [1.0, 5.0];
            merge(&mut row, &[3.0, 1.0], weight);
            assert_eq!(row, expected);
        }
    }

    #[test]
    fn weight_one_is_the_condition_bit_for_bit() {
        let row: Vec<f32> = (0..100).map(|i| (i as f32 * 0.37).sin() * 9.0).collect();
        let mut merged = row.clone();
        merge(&mut merged, &vec![-3.3; 100], 1.0);
        assert_eq!(merged, row);
    }
}
