//! Model files with random weights of given names and shapes.

use codecs::weights::Weights;
use safetensors::Dtype;
use safetensors::tensor::TensorView;

/// Tensors to make: name, shape, value around which they lie, and how far from it at most.
#[derive(Default)]
pub(crate) struct Layout(Vec<(String, Vec<usize>, f32, f32)>);

impl Layout {
    /// Adds a tensor with values in `centre - spread .. centre + spread`.
    pub(crate) fn add(
        &mut self,
        name: impl Into<String>,
        shape: &[usize],
        centre: f32,
        spread: f32,
    ) {
        self.0.push((name.into(), shape.to_vec(), centre, spread));
    }

    /// Adds `NAME.weight` and `NAME.bias` of a layer whose outputs sum `fan_in` products.
    pub(crate) fn add_layer(&mut self, name: &str, shape: &[usize], outputs: usize, fan_in: usize) {
        self.add(format!("{name}.weight"), shape, 0.0, (3.0 / fan_in as f32).sqrt());
        self.add(format!("{name}.bias"), &[outputs], 0.0, 0.1);
    }

    /// Adds `NAME.weight_g`, `NAME.weight_v` and `NAME.bias`, every part of unit length.
    pub(crate) fn add_weight_norm(&mut self, name: &str, shape: [usize; 3], outputs: usize) {
        self.add(format!("{name}.weight_g"), &[shape[0], 1, 1], 1.0, 0.0);
        self.add(format!("{name}.weight_v"), &shape, 0.0, 1.0);
        self.add(format!("{name}.bias"), &[outputs], 0.0, 0.1);
    }

    /// Writes the file, opens it, and forgets its name.
    pub(crate) fn open(self) -> Weights {
        let mut state = 0x9e37_79b9_u32;
        let mut noise = move || {
            state ^= state << 13;
            state ^= state >> 17;
            state ^= state << 5;
            (f64::from(state) / f64::from(u32::MAX) * 2.0 - 1.0) as f32
        };
        let data: Vec<Vec<u8>> = self
            .0
            .iter()
            .map(|(_, shape, centre, spread)| {
                let count = shape.iter().product();
                let value = |_| half::bf16::from_f32(centre + spread * noise()).to_le_bytes();
                (0..count).flat_map(value).collect()
            })
            .collect();
        let views = self.0.iter().zip(&data).map(|((name, shape, ..), bytes)| {
            (name, TensorView::new(Dtype::BF16, shape.clone(), bytes).expect("sizes agree"))
        });
        let dir = tempfile::tempdir().expect("a temporary folder");
        let file = dir.path().join("model.safetensors");
        safetensors::serialize_to_file(views, None, &file).expect("room for the file");
        Weights::open(&file).expect("the file just written")
    }
}
