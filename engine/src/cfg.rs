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
    use super::*;

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
