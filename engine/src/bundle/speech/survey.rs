//! What would become of each tensor of a checkpoint if it were made into a bundle, name by name. Reads no number.

use std::path::Path;

use codecs::weights::LoadError;

use super::convert::{ADAPTOR, TOWER, tower_of};
use crate::models::speech::{Audit, open_unchecked};

/// Tensors by what would become of them, each list in the order of the names.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Survey {
    /// Become part of the model.
    pub read: Vec<String>,
    /// Become part of what hears.
    pub moved: Vec<String>,
    /// Are left out: of training, or of what is public elsewhere.
    pub left_out: Vec<String>,
    /// Are needed and not there.
    pub missing: Vec<String>,
    /// Have another shape than the configuration says; with both shapes.
    pub misshapen: Vec<String>,
    /// Are of no such model.
    pub unknown: Vec<String>,
}

impl Survey {
    /// How many keep the checkpoint from being converted.
    pub fn faults(&self) -> usize {
        self.missing.len() + self.misshapen.len() + self.unknown.len()
    }
}

/// Looks a checkpoint through.
///
/// # Errors
/// A file that is missing or damaged, no weights or several, a configuration that does not hold.
pub fn survey(source: &Path) -> Result<Survey, LoadError> {
    let (config, weights) = open_unchecked(source)?;
    let hears = tower_of(source, &weights)?.is_some();
    let Audit { needed, missing, misshapen, unused, unknown } = Audit::new(&weights, &config);
    let is_there = |name: &String| weights.shape(name).is_some();
    let mut survey = Survey { missing, misshapen, unknown, ..Survey::default() };
    survey.read = needed.into_iter().filter(is_there).collect();
    for name in unused {
        let list = match name {
            _ if name.starts_with(ADAPTOR) => &mut survey.read,
            _ if hears && name.starts_with(TOWER) => &mut survey.moved,
            _ => &mut survey.left_out,
        };
        list.push(name);
    }
    survey.read.sort();
    Ok(survey)
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use codecs::weights::{FILE_BYTES, Outgoing, SaveOptions, Weights, save};

    use super::*;

    #[test]
    fn every_tensor_is_told_of_by_name() {
        let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/fixtures");
        let fixture: PathBuf = fixtures.join("speechlm_tiny/opuslm");
        let whole = survey(&fixture).unwrap();
        assert_eq!(
            (whole.left_out.as_slice(), whole.faults()),
            (&["criterion.weight".to_owned()][..], 0)
        );
        // One is gone, one has another name, one another shape.
        let weights = Weights::open(&fixture).unwrap();
        let (gone, renamed, other) = (
            "corelm.head_emb.weight",
            "corelm.lm_head.weight",
            "corelm.decoders.model.norm.weight",
        );
        let out = |name: &str, from: &str| {
            let (name, from) = (name.to_owned(), from.to_owned());
            Outgoing { name, weights: &weights, from }
        };
        let kept = weights.names().filter(|name| ![gone, renamed, other].contains(name));
        let mut tensors: Vec<Outgoing<'_>> = kept.map(|name| out(name, name)).collect();
        tensors.extend([out("corelm.extra", renamed), out(other, gone)]);
        let made = tempfile::tempdir().unwrap();
        let options = SaveOptions { narrow: false, file_bytes: FILE_BYTES };
        save(made.path(), &tensors, options, &mut |_| ()).unwrap();
        std::fs::copy(fixture.join("config.json"), made.path().join("config.json")).unwrap();
        let found = survey(made.path()).unwrap();
        assert_eq!(found.missing, [gone, renamed]);
        assert_eq!(found.unknown, ["corelm.extra"]);
        assert_eq!(found.misshapen.len(), 1);
        assert!(found.misshapen[0].starts_with(other), "{:?}", found.misshapen);
        assert_eq!((found.faults(), found.left_out), (4, whole.left_out));
        assert_eq!(found.read.len(), whole.read.len() - 2);
    }
}
