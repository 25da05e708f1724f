//! What a layer does inside, at every tap of the golden cases.

use super::*;
use crate::kernels::math::{rms_norm, silu_times};
use crate::kernels::matrix::Store;
use crate::models::tensors::LayerTensors;

/// Layer 0 of a backbone, its golden taps and what they were made with.
struct Layer {
    case: Weights,
    tensors: LayerTensors,
    hidden: usize,
    ffn: usize,
    eps: f32,
}

impl Layer {
    fn of(folder: &str) -> Self {
        let backbone = config(folder).backbone;
        let weights = open(&format!("{folder}/model.safetensors"));
        let tensors = LayerTensors::read(&weights, &backbone, 0).unwrap();
        let case = open(&format!("{folder}/case_prefill.safetensors"));
        Self { case, tensors, hidden: backbone.hidden, ffn: backbone.ffn, eps: backbone.rms_eps }
    }

    fn tap(&self, name: &str) -> Vec<f32> {
        tensor(&self.case, name)
    }

    fn norm(&self, x: &[f32], weight: Option<&Vec<f32>>) -> Vec<f32> {
        let weight = weight.unwrap();
        let mut out = vec![0.0; x.len()];
        let rows = x.chunks_exact(self.hidden).zip(out.chunks_exact_mut(self.hidden));
        rows.for_each(|(row, out)| rms_norm(row, weight, self.eps, out));
        out
    }

    fn feed_forward(&self, x: &[f32]) -> Vec<f32> {
        let apply = |weight: &[f32], inputs: usize, x: &[f32]| {
            let matrix = Matrix::pack(weight, inputs, Precision::F32);
            let mut out = vec![0.0; x.len() / inputs * matrix.outputs()];
            matrix.apply(x, &mut out, Store::Set);
            out
        };
        let mut gate = apply(&self.tensors.gate, self.hidden, x);
        silu_times(&mut gate, &apply(&self.tensors.up, self.hidden, x));
        apply(&self.tensors.down, self.ffn, &gate)
    }

    fn check(&self, got: &[f32], name: &str) {
        close(got, &self.tap(name), TOLERANCE, name);
    }
}

fn sum(a: &[f32], b: &[f32]) -> Vec<f32> {
    a.iter().zip(b).map(|(a, b)| a + b).collect()
}

/// Its norms stand behind each block.
#[test]
fn olmo2_norms_what_each_block_makes() {
    let layer = Layer::of("olmo2_tiny");
    let attended = layer.norm(&layer.tap("layer0_attn_out"), layer.tensors.attended_norm.as_ref());
    layer.check(&attended, "layer0_attn_out_normed");
    let between = sum(&layer.tap("embeddings"), &attended);
    let fed = layer.feed_forward(&between);
    layer.check(&fed, "layer0_mlp_out");
    let fed = layer.norm(&fed, layer.tensors.fed_norm.as_ref());
    layer.check(&fed, "layer0_mlp_out_normed");
    layer.check(&sum(&between, &fed), "hidden_after_layer_0");
}

/// Its norms stand in front of each block.
#[test]
fn llama_norms_what_each_block_reads() {
    let layer = Layer::of("llama_tiny");
    let embeddings = layer.tap("embeddings");
    layer.check(&layer.norm(&embeddings, layer.tensors.input_norm.as_ref()), "layer0_attn_in");
    let between = sum(&embeddings, &layer.tap("layer0_attn_out"));
    let read = layer.norm(&between, layer.tensors.ffn_norm.as_ref());
    layer.check(&read, "layer0_mlp_in");
    let fed = layer.feed_forward(&read);
    layer.check(&fed, "layer0_mlp_out");
    layer.check(&sum(&between, &fed), "hidden_after_layer_0");
}

/// Queries and keys, each token alone at position 0, where nothing is rotated: what they are before that.
#[test]
fn olmo2_norms_queries_and_keys_over_the_whole_projection() {
    let folder = "olmo2_tiny";
    let layer = Layer::of(folder);
    let backbone = config(folder).backbone;
    // The queries hold the scale of the scores.
    let scale = (backbone.head_dim as f32).sqrt();
    let mut model = load(folder, Precision::F32, |c| c.backbone.layers = 1);
    let (mut queries, mut keys) = (Vec::new(), Vec::new());
    for id in ids(&layer.case, "input_ids") {
        feed(&mut model, &[id], 1, 0, 0);
        let (q, rest) = model.projected().split_at(backbone.q_width());
        queries.extend(q.iter().map(|v| v * scale));
        keys.extend_from_slice(&rest[..backbone.kv_width()]);
    }
    layer.check(&queries, "layer0_q_normed");
    layer.check(&keys, "layer0_k_normed");
}

#[test]
fn tokens_stand_where_the_golden_ones_do_and_are_embedded_alike() {
    for folder in ["olmo2_tiny", "llama_tiny"] {
        let layer = Layer::of(folder);
        let rows = ids(&layer.case, "input_ids");
        let model = load(folder, Precision::F32, |_| ());
        let batch = batch(&rows, 1, 0, 0);
        let positions: Vec<i64> = batch.positions.iter().map(|&p| i64::from(p)).collect();
        assert_eq!(positions, layer.case.ints("position_ids").unwrap());
        let mut embeddings = Vec::new();
        (0..rows.len()).for_each(|token| model.ends().embed(&batch, token, &mut embeddings));
        layer.check(&embeddings, "embeddings");
    }
}
