//! Which tensors a model needs and which a checkpoint has: all that is missing, of another shape, or unknown, told at once and
//! without reading a number.

use std::cell::RefCell;
use std::collections::BTreeSet;

use codecs::weights::{LoadError, Weights};

use super::{Family, Names, SpeechConfig};
use crate::models::tensors::{LayerTensors, final_norm_name};

/// Names told of each fault, at most.
const TOLD: usize = 8;

/// What a checkpoint has beside what its model needs, in the order of the names.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Audit {
    /// Tensors that are needed.
    pub needed: Vec<String>,
    /// Needed tensors that are not there.
    pub missing: Vec<String>,
    /// Needed tensors of another shape, with both shapes.
    pub misshapen: Vec<String>,
    /// Tensors of other parts, of training, or of what is public elsewhere: known and not read.
    pub unused: Vec<String>,
    /// Tensors that no such model has.
    pub unknown: Vec<String>,
}

impl Audit {
    /// Compares a checkpoint with its configuration.
    pub fn new(weights: &Weights, config: &SpeechConfig) -> Self {
        let mut audit = Self::default();
        for (name, shape) in needed(config) {
            match weights.shape(&name) {
                None => audit.missing.push(name.clone()),
                Some(found) if !fits(found, &shape, &name, config) => {
                    audit.misshapen.push(format!("{name} is {found:?}, not {shape:?}"));
                }
                Some(_) => {}
            }
            audit.needed.push(name);
        }
        let read: BTreeSet<&str> = audit.needed.iter().map(String::as_str).collect();
        let known = known(&config.family);
        for name in weights.names().filter(|name| !read.contains(name)) {
            let is_known =
                known.iter().any(|k| name.starts_with(k)) || name.ends_with(".rotary_emb.inv_freq");
            let list = if is_known { &mut audit.unused } else { &mut audit.unknown };
            list.push(name.to_owned());
        }
        audit
    }

    /// Whether the model can be made of the checkpoint.
    ///
    /// # Errors
    /// All that is wrong, with the first names of each fault.
    pub fn check(&self, weights: &Weights) -> Result<(), LoadError> {
        let faults = [
            ("missing", &self.missing),
            ("of another shape", &self.misshapen),
            ("the model has no such tensor", &self.unknown),
        ];
        let told = faults.iter().filter(|(_, names)| !names.is_empty());
        let told: Vec<String> =
            told.map(|(fault, names)| format!("{fault}: {}", list(names))).collect();
        if told.is_empty() {
            return Ok(());
        }
        Err(LoadError::malformed(weights.file(), told.join("; ")))
    }

    /// The unused tensors by what their names begin with, up to the second dot, and how many those are.
    pub fn unused_groups(&self) -> Vec<(String, usize)> {
        let mut groups: Vec<(String, usize)> = Vec::new();
        for name in &self.unused {
            let group = name.splitn(3, '.').take(2).collect::<Vec<&str>>().join(".");
            match groups.last_mut() {
                Some((last, count)) if *last == group => *count += 1,
                _ => groups.push((group, 1)),
            }
        }
        groups
    }
}

/// Tensors that are read, with their shapes.
fn needed(config: &SpeechConfig) -> Vec<(String, Vec<usize>)> {
    let (names, backbone) = (Names::of(&config.family), &config.backbone);
    let table = vec![backbone.vocabulary, backbone.hidden];
    let mut needed = vec![(names.embedding.to_owned(), table.clone())];
    if !config.tied {
        needed.push((names.head.to_owned(), table));
    }
    if let Some(name) = names.streams {
        needed.push((name.to_owned(), vec![config.streams(), backbone.hidden]));
    }
    let layers = RefCell::new(Vec::new());
    for index in 0..backbone.layers {
        let note = |name: &str, shape: &[usize]| {
            layers.borrow_mut().push((name.to_owned(), shape.to_vec()));
            Ok(Vec::new())
        };
        LayerTensors::get(backbone, index, &note, &note).expect("nothing is read; this is a bug");
    }
    needed.extend(layers.into_inner());
    needed.push((final_norm_name(backbone), vec![backbone.hidden]));
    needed.sort();
    needed
}

/// The vectors of streams may be more than there are streams.
fn fits(found: &[usize], shape: &[usize], name: &str, config: &SpeechConfig) -> bool {
    if Names::of(&config.family).streams == Some(name) {
        return found.len() == 2 && found[0] >= shape[0] && found[1] == shape[1];
    }
    found == shape
}

/// What the names of tensors begin with that a checkpoint of the family may have.
fn known(family: &Family) -> &'static [&'static str] {
    match family {
        // Whatever else a model of text has is none of our business.
        Family::Text => &[""],
        // What hears, what speaks and what weighs a loss are other parts of the same file.
        Family::Bagpiper(_) => &["adaptor.", "multimodal_io_dict.", "vocab_weight"],
        Family::OpusLm(_) => &["criterion."],
    }
}

fn list(names: &[String]) -> String {
    let shown = names[..names.len().min(TOLD)].join(", ");
    match names.len().checked_sub(TOLD) {
        None | Some(0) => shown,
        Some(more) => format!("{shown} and {more} more"),
    }
}
