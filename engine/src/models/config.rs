//! What a stage's `config.json` says: sizes of the network, ids of the grammar. Knows no tensor and no text.
//!
//! ```text
//! ids   0 .. text and markers .. | codebook 0          | codebook 1         | ..
//!                                ^ audio_start         ^ + semantic_codes   ^ + acoustic_codes
//! ```

use std::path::Path;

use codecs::weights::{LoadError, Weights};

use super::backbone::{Backbone, Block};
use super::fields::Fields;
use super::tensors::FC2_WEIGHT;

/// Frames that the next chunk's text is moved ahead of the audio; the grammar knows no other value.
pub const REALIGN_FRAMES: u64 = 25;
/// Rows of codes that a frame has.
const CODEBOOKS: u64 = 4;
/// Outputs of cb0 beside its codes: end of speech, audio split.
const STOP_SYMBOLS: usize = 2;

/// Sizes and ids of one stage.
#[derive(Debug, Clone, PartialEq)]
pub struct StageConfig {
    /// The transformer.
    pub backbone: Backbone,
    /// Which codebook the stage writes: 0 to 3.
    pub stage: usize,
    /// Inner width of the audio head.
    pub head_hidden: usize,
    /// Starts each row of codes.
    pub pad: u32,
    /// Ends the codes of a passage.
    pub end_of_speech: u32,
    /// Stands between the texts of two chunks.
    pub text_split: u32,
    /// Stands between the codes of two chunks.
    pub audio_split: u32,
    /// Id of code 0 of codebook 0.
    pub audio_start: u32,
    /// Codes of codebook 0.
    pub semantic_codes: usize,
    /// Codes of each further codebook; 0 in a cb0 that does not say.
    pub acoustic_codes: usize,
    /// Length of one row of logits.
    pub outputs: usize,
    /// The head whose attention follows the text as it is spoken, where training has made one.
    pub alignment: Option<AlignmentHead>,
}

/// One head of one layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AlignmentHead {
    /// Which layer, 0 based.
    pub layer: usize,
    /// Which query head of it, 0 based.
    pub head: usize,
}

impl StageConfig {
    /// Reads a `config.json`. `outputs` is the number of rows of the audio head's last matrix: the release tells the
    /// sizes of its codebooks in no other place.
    ///
    /// # Errors
    /// A field that is missing, of another type, out of range, or at odds with another.
    pub fn read(file: &Path, outputs: usize) -> Result<Self, LoadError> {
        let fields = Fields::read(file)?;
        let backbone = Backbone::read(&fields, Block::Qwen3)?;
        let stage = fields.size("target_codebook")?;
        fields.equals("n_codebooks", CODEBOOKS)?;
        fields.equals("chunk_realign_offset", REALIGN_FRAMES)?;
        let mut config = Self {
            backbone,
            stage,
            head_hidden: fields.positive("audio_head_hidden")?,
            pad: fields.id("pad_token_id")?,
            end_of_speech: fields.id("eos_token_id")?,
            text_split: fields.id("text_marker_token_id")?,
            audio_split: fields.id("audio_marker_token_id")?,
            audio_start: fields.id("audio_token_start_id")?,
            semantic_codes: 0,
            acoustic_codes: 0,
            outputs,
            alignment: None,
        };
        config.alignment = config.find_alignment(&fields)?;
        if config.stage >= CODEBOOKS as usize {
            return Err(fields.wrong("target_codebook", "must be 0 to 3"));
        }
        config.size_codebooks(&fields)?;
        config.check_ids(&fields)?;
        Ok(config)
    }

    /// Embedding id of a code, or `None` when this stage has no such code: it reads codebooks 0 to its own.
    pub fn code_id(&self, codebook: usize, code: u32) -> Option<u32> {
        let codes = if codebook == 0 { self.semantic_codes } else { self.acoustic_codes };
        if codebook > self.stage || code as usize >= codes {
            return None;
        }
        let before = match codebook {
            0 => 0,
            n => self.semantic_codes + (n - 1) * self.acoustic_codes,
        };
        Some(self.audio_start + before as u32 + code)
    }

    /// Codes that this stage writes.
    pub fn own_codes(&self) -> usize {
        if self.stage == 0 { self.semantic_codes } else { self.acoustic_codes }
    }

    /// Output that ends a passage; only cb0 has one.
    pub fn end_output(&self) -> Option<usize> {
        (self.stage == 0).then_some(self.semantic_codes)
    }

    /// Output that ends an inner chunk; only cb0 has one.
    pub fn split_output(&self) -> Option<usize> {
        (self.stage == 0).then_some(self.semantic_codes + 1)
    }

    /// Numbers that the stage's files hold.
    pub fn parameters(&self) -> usize {
        let inner = (self.backbone.hidden + 1) * self.head_hidden;
        self.backbone.parameters() + inner + (self.head_hidden + 1) * self.outputs
    }

    fn find_alignment(&self, fields: &Fields<'_>) -> Result<Option<AlignmentHead>, LoadError> {
        const LAYER: &str = "alignment_layer";
        const HEAD: &str = "alignment_head";
        let (layer, head) = (fields.optional_size(LAYER)?, fields.optional_size(HEAD)?);
        match (layer, head) {
            (None, None) => Ok(None),
            (Some(_), None) => Err(fields.wrong(HEAD, "missing beside alignment_layer")),
            (None, Some(_)) => Err(fields.wrong(LAYER, "missing beside alignment_head")),
            (Some(layer), _) if layer >= self.backbone.layers => {
                Err(fields.wrong(LAYER, format!("{layer} of {} layers", self.backbone.layers)))
            }
            (_, Some(head)) if head >= self.backbone.heads => {
                Err(fields.wrong(HEAD, format!("{head} of {} heads", self.backbone.heads)))
            }
            (Some(layer), Some(head)) => Ok(Some(AlignmentHead { layer, head })),
        }
    }

    /// Where the fields are absent the sizes follow from the head and the embedding.
    fn size_codebooks(&mut self, fields: &Fields<'_>) -> Result<(), LoadError> {
        let (semantic, acoustic) = ("semantic_vocab_size", "acoustic_vocab_size");
        let start = self.audio_start as usize;
        let own = match self.stage {
            0 => self.outputs.saturating_sub(STOP_SYMBOLS),
            _ => self.outputs,
        };
        if self.stage == 0 {
            self.semantic_codes = fields.optional_size(semantic)?.unwrap_or(own);
            self.acoustic_codes = fields.optional_size(acoustic)?.unwrap_or(0);
        } else {
            self.acoustic_codes = fields.optional_size(acoustic)?.unwrap_or(own);
            let others = start.saturating_add(self.stage.saturating_mul(self.acoustic_codes));
            let rest = self.backbone.vocabulary.saturating_sub(others);
            self.semantic_codes = fields.optional_size(semantic)?.unwrap_or(rest);
        }
        if self.own_codes() != own || own == 0 {
            let name = if self.stage == 0 { semantic } else { acoustic };
            let reason = format!(
                "{} codes, but the audio head has {} outputs",
                self.own_codes(),
                self.outputs
            );
            return Err(fields.wrong(name, reason));
        }
        let acoustic_ids = self.acoustic_codes.saturating_mul(self.stage);
        let ids = start.saturating_add(self.semantic_codes).saturating_add(acoustic_ids);
        if ids != self.backbone.vocabulary || self.semantic_codes == 0 {
            let reason = format!(
                "{}, but {start} ids before the codes, {} semantic and {acoustic_ids} acoustic codes make {ids}",
                self.backbone.vocabulary, self.semantic_codes
            );
            return Err(fields.wrong("vocab_size", reason));
        }
        Ok(())
    }

    fn check_ids(&self, fields: &Fields<'_>) -> Result<(), LoadError> {
        let ids = [
            ("pad_token_id", self.pad),
            ("eos_token_id", self.end_of_speech),
            ("text_marker_token_id", self.text_split),
            ("audio_marker_token_id", self.audio_split),
        ];
        for (at, &(name, id)) in ids.iter().enumerate() {
            if id >= self.audio_start {
                let reason = format!("{id} is not below audio_token_start_id {}", self.audio_start);
                return Err(fields.wrong(name, reason));
            }
            if let Some((other, _)) = ids[..at].iter().find(|(_, o)| *o == id) {
                return Err(fields.wrong(name, format!("{id} is also {other}")));
            }
        }
        Ok(())
    }
}

/// Opens a stage's folder: its configuration and its tensors, which are not read yet.
///
/// # Errors
/// A file that is missing or damaged, or a configuration that does not hold.
pub fn open_stage(folder: &Path) -> Result<(StageConfig, Weights), LoadError> {
    let weights = Weights::open(folder)?;
    let outputs = match weights.shape(FC2_WEIGHT) {
        Some([outputs, _]) => *outputs,
        Some(shape) => {
            let reason = format!("shape is {shape:?}, expected two axes");
            return Err(LoadError::tensor(weights.file(), FC2_WEIGHT, reason));
        }
        None => return Err(LoadError::tensor(weights.file(), FC2_WEIGHT, "missing")),
    };
    Ok((StageConfig::read(&folder.join("config.json"), outputs)?, weights))
}

#[cfg(test)]
mod tests {
    use codecs::weights::read_json;
    use serde_json::{Map, Value};

    use super::*;

    const NANO: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../voices/nano");

    fn nano(stage: usize) -> Map<String, Value> {
        read_json(&Path::new(NANO).join(format!("cb{stage}/config.json"))).unwrap()
    }

    fn read(map: &Map<String, Value>, outputs: usize) -> Result<StageConfig, LoadError> {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("config.json");
        std::fs::write(&file, serde_json::to_string(map).unwrap()).unwrap();
        StageConfig::read(&file, outputs)
    }

    #[test]
    fn codes_of_each_codebook_follow_one_another() {
        let (cb2, _) = open_stage(&Path::new(NANO).join("cb2")).unwrap();
        assert_eq!(cb2.code_id(0, 0), Some(273));
        assert_eq!(cb2.code_id(0, 2047), Some(2320));
        assert_eq!(cb2.code_id(1, 0), Some(2321));
        assert_eq!(cb2.code_id(2, 1023), Some(4368));
        assert_eq!(cb2.code_id(2, 1024), None);
        assert_eq!(cb2.code_id(3, 0), None);
        assert_eq!((cb2.outputs, cb2.end_output(), cb2.split_output()), (1024, None, None));
        let (cb0, _) = open_stage(&Path::new(NANO).join("cb0")).unwrap();
        assert_eq!(
            (cb0.end_output(), cb0.split_output(), cb0.outputs),
            (Some(2048), Some(2049), 2050)
        );
    }

    #[test]
    fn sizes_of_codebooks_follow_from_head_and_embedding() {
        for stage in 0..4 {
            let mut map = nano(stage);
            let outputs = if stage == 0 { 2050 } else { 1024 };
            let told = read(&map, outputs).unwrap();
            map.remove("semantic_vocab_size");
            map.remove("acoustic_vocab_size");
            let derived = read(&map, outputs).unwrap();
            assert_eq!(derived.semantic_codes, told.semantic_codes);
            let acoustic = if stage == 0 { 0 } else { told.acoustic_codes };
            assert_eq!(derived.acoustic_codes, acoustic);
        }
    }

    #[test]
    fn parameters_of_the_release_follow_from_its_shapes() {
        let mut cb1 = nano(1);
        for (name, value) in [
            ("num_hidden_layers", 16),
            ("hidden_size", 1024),
            ("num_attention_heads", 16),
            ("num_key_value_heads", 8),
            ("head_dim", 128),
            ("intermediate_size", 3072),
            ("audio_head_hidden", 4096),
            ("vocab_size", 172_153),
            ("audio_token_start_id", 151_673),
            ("semantic_vocab_size", 16_384),
            ("acoustic_vocab_size", 4096),
        ] {
            cb1.insert(name.into(), value.into());
        }
        assert_eq!(read(&cb1, 4096).unwrap().parameters(), 448_960_512);
    }

    #[test]
    fn every_required_field_is_missed_by_name() {
        let optional = [
            "architectures",
            "model_type",
            "tie_word_embeddings",
            "hidden_act",
            "semantic_vocab_size",
            "acoustic_vocab_size",
            "alignment_layer",
            "alignment_head",
        ];
        let whole = nano(0);
        let required: Vec<&String> =
            whole.keys().filter(|k| !optional.contains(&k.as_str())).collect();
        assert_eq!(required.len(), 19);
        for name in required {
            let mut map = whole.clone();
            map.remove(name);
            let text = read(&map, 2050).unwrap_err().to_string();
            assert!(text.contains("config.json") && text.contains(&format!("`{name}`")), "{text}");
            assert!(text.contains("missing"), "{text}");
        }
    }

    #[test]
    fn contradictions_are_told_by_field() {
        let cases: [(&str, Value, &str); 17] = [
            ("chunk_realign_offset", 24.into(), "must be 25"),
            ("n_codebooks", 8.into(), "must be 4"),
            ("target_codebook", 4.into(), "0 to 3"),
            ("num_key_value_heads", 2.into(), "evenly"),
            ("num_key_value_heads", 0.into(), "above 0"),
            ("head_dim", 63.into(), "even"),
            ("hidden_size", "192".into(), "whole number"),
            ("hidden_size", (1_u64 << 40).into(), "too large"),
            ("rms_norm_eps", 0.into(), "between"),
            ("rope_theta", 0.5.into(), "above 1"),
            ("vocab_size", 2322.into(), "make 2321"),
            ("semantic_vocab_size", 2047.into(), "2050 outputs"),
            ("pad_token_id", 273.into(), "not below"),
            ("audio_marker_token_id", 260.into(), "text_marker_token_id"),
            ("hidden_act", "gelu".into(), "not supported"),
            ("alignment_layer", 6.into(), "6 of 6"),
            ("alignment_head", 3.into(), "3 of 3"),
        ];
        for (name, value, says) in cases {
            let mut map = nano(0);
            map.insert(name.into(), value);
            let text = read(&map, 2050).unwrap_err().to_string();
            assert!(text.contains(&format!("`{name}`")) && text.contains(says), "{text}");
        }
    }

    #[test]
    fn alignment_head_is_named_whole_or_not_at_all() {
        let mut map = nano(0);
        let named = read(&map, 2050).unwrap().alignment;
        assert_eq!(named, Some(AlignmentHead { layer: 3, head: 0 }));
        map.remove("alignment_head");
        let text = read(&map, 2050).unwrap_err().to_string();
        assert!(text.contains("`alignment_head`") && text.contains("missing"), "{text}");
        map.remove("alignment_layer");
        assert_eq!(read(&map, 2050).unwrap().alignment, None);
    }

    #[test]
    fn rope_theta_is_found_where_newer_exports_put_it() {
        let mut map = nano(0);
        map.remove("rope_theta");
        let nested = serde_json::json!({"rope_theta": 5e5, "rope_type": "default"});
        map.insert("rope_parameters".into(), nested);
        assert_eq!(read(&map, 2050).unwrap().backbone.rope_theta, 5e5);
        map["rope_parameters"]["rope_type"] = "yarn".into();
        let text = read(&map, 2050).unwrap_err().to_string();
        assert!(text.contains("`rope_parameters`") && text.contains("yarn"), "{text}");
    }
}
