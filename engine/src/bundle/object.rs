//! A JSON object read field by field: what is wrong is told by file and field, what nobody asked for is an error.

use std::path::Path;

use codecs::weights::{LoadError, read_json};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

/// The fields of one object that were not read yet.
pub(super) struct Object<'a> {
    file: &'a Path,
    /// Where the object lies in the file: empty, or a path that ends with a dot.
    path: String,
    fields: Map<String, Value>,
}

impl<'a> Object<'a> {
    /// The whole of a file.
    pub(super) fn read(file: &'a Path) -> Result<Self, LoadError> {
        Ok(Self { file, path: String::new(), fields: read_json(file)? })
    }

    /// A field that may be absent; null is absent.
    pub(super) fn take<T: DeserializeOwned>(&mut self, name: &str) -> Result<Option<T>, LoadError> {
        let value = self.fields.remove(name).filter(|v| !v.is_null());
        let parsed = value.map(serde_json::from_value).transpose();
        parsed.map_err(|e| self.wrong(name, e.to_string()))
    }

    /// A field that must be there.
    pub(super) fn need<T: DeserializeOwned>(&mut self, name: &str) -> Result<T, LoadError> {
        self.take(name)?.ok_or_else(|| self.wrong(name, "missing"))
    }

    /// A number within bounds, or a default.
    pub(super) fn within(
        &mut self,
        name: &str,
        default: f32,
        bounds: std::ops::RangeInclusive<f32>,
    ) -> Result<f32, LoadError> {
        let value = self.take(name)?.unwrap_or(default);
        if bounds.contains(&value) {
            return Ok(value);
        }
        let reason = format!("is {value}, must lie in {} to {}", bounds.start(), bounds.end());
        Err(self.wrong(name, reason))
    }

    /// An object inside that may be absent.
    pub(super) fn optional(&mut self, name: &str) -> Result<Option<Self>, LoadError> {
        let path = format!("{}{name}.", self.path);
        Ok(self.take(name)?.map(|fields| Self { file: self.file, path, fields }))
    }

    /// An object inside; an absent one is empty.
    pub(super) fn inner(&mut self, name: &str) -> Result<Self, LoadError> {
        let empty =
            Self { file: self.file, path: format!("{}{name}.", self.path), fields: Map::default() };
        Ok(self.optional(name)?.unwrap_or(empty))
    }

    /// A list of objects inside; an absent one is empty.
    pub(super) fn inner_list(&mut self, name: &str) -> Result<Vec<Self>, LoadError> {
        let list: Vec<Map<String, Value>> = self.take(name)?.unwrap_or_default();
        let path = |i: usize| format!("{}{name}.{i}.", self.path);
        let inner = |(i, fields)| Self { file: self.file, path: path(i), fields };
        Ok(list.into_iter().enumerate().map(inner).collect())
    }

    /// An error about a field of this object.
    pub(super) fn wrong(&self, name: &str, reason: impl Into<String>) -> LoadError {
        LoadError::field(self.file, format!("{}{name}", self.path), reason)
    }

    /// Ends the reading: a field that is left is one that this program does not know.
    pub(super) fn finish(self) -> Result<(), LoadError> {
        match self.fields.keys().next() {
            Some(name) => Err(self.wrong(name, "unknown field")),
            None => Ok(()),
        }
    }
}
