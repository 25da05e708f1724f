//! Fields of a `config.json`, each missed or refused by its name.

use std::path::Path;

use codecs::weights::{LoadError, read_json};
use serde_json::{Map, Value};

/// One object of a file.
pub(super) struct Fields<'a> {
    pub(super) file: &'a Path,
    pub(super) map: Map<String, Value>,
}

impl<'a> Fields<'a> {
    pub(super) fn read(file: &'a Path) -> Result<Self, LoadError> {
        Ok(Self { file, map: read_json(file)? })
    }

    /// An object within this one.
    pub(super) fn inner(&self, name: &str) -> Result<Self, LoadError> {
        match self.get(name)? {
            Value::Object(map) => Ok(Self { file: self.file, map: map.clone() }),
            value => Err(self.wrong(name, format!("{value} is not an object"))),
        }
    }

    pub(super) fn wrong(&self, name: &str, reason: impl Into<String>) -> LoadError {
        LoadError::field(self.file, name, reason)
    }

    fn present(&self, name: &str) -> Option<&Value> {
        self.map.get(name).filter(|v| !v.is_null())
    }

    fn get(&self, name: &str) -> Result<&Value, LoadError> {
        self.present(name).ok_or_else(|| self.wrong(name, "missing"))
    }

    fn integer(&self, name: &str) -> Result<u64, LoadError> {
        let value = self.get(name)?;
        value.as_u64().ok_or_else(|| self.wrong(name, format!("{value} is not a whole number")))
    }

    pub(super) fn size(&self, name: &str) -> Result<usize, LoadError> {
        // The limit keeps products of two sizes far from overflow; no real model comes near it.
        let value = self.integer(name)?;
        let size =
            u32::try_from(value).map_err(|_| self.wrong(name, format!("{value} is too large")))?;
        Ok(size as usize)
    }

    pub(super) fn positive(&self, name: &str) -> Result<usize, LoadError> {
        match self.size(name)? {
            0 => Err(self.wrong(name, "must be above 0")),
            n => Ok(n),
        }
    }

    pub(super) fn optional_size(&self, name: &str) -> Result<Option<usize>, LoadError> {
        self.present(name).map(|_| self.size(name)).transpose()
    }

    pub(super) fn id(&self, name: &str) -> Result<u32, LoadError> {
        Ok(self.size(name)? as u32)
    }

    pub(super) fn number(&self, name: &str) -> Result<f64, LoadError> {
        let value = self.get(name)?;
        value.as_f64().ok_or_else(|| self.wrong(name, format!("{value} is not a number")))
    }

    pub(super) fn text(&self, name: &str) -> Result<&str, LoadError> {
        let value = self.get(name)?;
        value.as_str().ok_or_else(|| self.wrong(name, format!("{value} is not a text")))
    }

    /// False where it is absent.
    pub(super) fn switch(&self, name: &str) -> Result<bool, LoadError> {
        let Some(value) = self.present(name) else { return Ok(false) };
        value.as_bool().ok_or_else(|| self.wrong(name, format!("{value} is not true or false")))
    }

    pub(super) fn equals(&self, name: &str, expected: u64) -> Result<(), LoadError> {
        match self.integer(name)? {
            n if n == expected => Ok(()),
            n => Err(self.wrong(name, format!("is {n}, must be {expected}"))),
        }
    }

    /// Newer exports put the base into an object of its own.
    pub(super) fn rope_theta(&self) -> Result<f64, LoadError> {
        let nested = self.present("rope_parameters").and_then(|p| p.get("rope_theta"));
        let theta = match nested.and_then(Value::as_f64) {
            Some(theta) if self.present("rope_theta").is_none() => theta,
            _ => self.number("rope_theta")?,
        };
        if theta > 1.0 && theta.is_finite() {
            Ok(theta)
        } else {
            Err(self.wrong("rope_theta", "must be above 1"))
        }
    }

    /// Variants of the block that this program does not compute must not load as if they were the plain one.
    pub(super) fn reject_unknown_variants(&self) -> Result<(), LoadError> {
        let plain_rope = |v: &Value| {
            let kind = v.get("rope_type").or_else(|| v.get("type"));
            kind.is_none_or(|k| k == "default")
        };
        for name in [
            "hidden_act",
            "attention_bias",
            "mlp_bias",
            "use_sliding_window",
            "rope_interleaved",
            "rope_scaling",
            "rope_parameters",
        ] {
            let Some(value) = self.present(name) else { continue };
            let plain = match name {
                "hidden_act" => value == "silu",
                "rope_scaling" | "rope_parameters" => plain_rope(value),
                _ => value == false,
            };
            if !plain {
                return Err(self.wrong(name, format!("{value} is not supported")));
            }
        }
        Ok(())
    }
}
