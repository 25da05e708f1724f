//! Rows that were heard, in a prompt.

use super::*;

const FOLDER: &str = "speechlm_tiny/bagpiper";
const STREAMS: usize = 8;
const LAYERS: usize = 2;

/// The golden prompt, its heard rows as the adaptor makes them, and the network that knows them.
fn heard_prompt(layers: usize) -> (Weights, SpeechLm, Clip, Vec<u32>) {
    let case = open(&format!("{FOLDER}/audio_in.safetensors"));
    let weights = open(&format!("{FOLDER}/model.safetensors"));
    let model = load(FOLDER, Precision::F32, |c| c.backbone.layers = layers);
    let matrix = tensor(&weights, "adaptor.continuous_audio.weight");
    let bias = tensor(&weights, "adaptor.continuous_audio.bias");
    let features = tensor(&case, "features");
    let width = matrix.len() / bias.len();
    let adapt = |row: &[f32]| -> Vec<f32> {
        matrix.chunks_exact(width).zip(&bias).map(|(w, b)| dot(w, row) + b).collect()
    };
    let rows = features.chunks_exact(width).flat_map(adapt).collect();
    let clip = model.heard().add(rows);
    let mut heard = clip.ids();
    let named = ids(&case, "ids").into_iter().zip(ids(&case, "is_audio"));
    let prompt: Vec<u32> = named
        .flat_map(|(id, is_audio)| {
            let id = if is_audio == 1 { heard.next().unwrap() } else { id };
            [&[id][..], &[NOTHING; STREAMS - 1]].concat()
        })
        .collect();
    assert_eq!(heard.len(), 0, "every row has its place");
    (case, model, clip, prompt)
}

#[test]
fn what_was_heard_stands_in_the_place_of_embeddings() {
    let (case, mut model, _clip, prompt) = heard_prompt(LAYERS);
    let mut embeddings = Vec::new();
    for token in 0..prompt.len() / STREAMS {
        model.ends().embed(&batch(&prompt, STREAMS, 0, 0), token, &mut embeddings);
    }
    close(&embeddings, &tensor(&case, "embeddings"), TOLERANCE, "embeddings");
    let (_, mut first, _its_clip, its_prompt) = heard_prompt(1);
    let [residual, ..] = trace(&mut first, &its_prompt, STREAMS);
    close(&residual, &tensor(&case, "hidden_after_layer_0"), TOLERANCE, "hidden_after_layer_0");
    let [_, hidden, logits, _] = trace(&mut model, &prompt, STREAMS);
    close(&hidden, &tensor(&case, "h"), TOLERANCE, "h");
    let [expected, _] = traced(&model, &tensor(&case, "logits0"), &[]);
    close(&logits, &expected, TOLERANCE, "logits of symbols and text");
}

#[test]
fn splits_and_blocks_change_no_bit_of_what_was_heard() {
    let (_, mut model, _clip, prompt) = heard_prompt(LAYERS);
    let whole = feed(&mut model, &prompt, STREAMS, 0, 0);
    let (head, tail) = prompt.split_at(STREAMS * 9);
    feed(&mut model, head, STREAMS, 0, BLOCKS);
    assert_eq!(feed(&mut model, tail, STREAMS, 9, BLOCKS), whole);
}

#[test]
fn a_clip_that_is_gone_is_refused_and_not_guessed() {
    let (_, mut model, clip, prompt) = heard_prompt(LAYERS);
    drop(clip);
    let error = model.forward(&batch(&prompt, STREAMS, 0, 0), &mut Vec::new()).unwrap_err();
    assert!(error.to_string().contains("id 2147483648 has no embedding row"), "{error}");
}
