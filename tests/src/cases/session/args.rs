//! The fields of a step or a demand. Whoever takes one has understood it; what is left over at the end was not
//! understood by anybody, and that is a failure.

use anyhow::{Context, bail};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

/// One step or demand: its name, and fields that are taken one by one.
#[derive(Debug, Clone)]
pub(super) struct Args {
    /// What is to be done, or must hold.
    pub(super) name: String,
    fields: Map<String, Value>,
}

impl Args {
    /// Reads `{"do": name, ..}` or `{"check": name, ..}`; notes are for people.
    ///
    /// # Errors
    /// No object, or no name under `tag`.
    pub(super) fn new(value: &Value, tag: &str) -> anyhow::Result<Self> {
        let mut fields = value.as_object().context("not an object")?.clone();
        fields.remove("note");
        let name = fields.remove(tag);
        let name = name.as_ref().and_then(Value::as_str).with_context(|| format!("no {tag:?}"))?;
        Ok(Self { name: name.to_owned(), fields })
    }

    /// Takes a field that may be absent.
    ///
    /// # Errors
    /// A value of another type.
    pub(super) fn take<T: DeserializeOwned>(&mut self, field: &str) -> anyhow::Result<Option<T>> {
        let value = self.fields.remove(field);
        let read = |v| serde_json::from_value(v).with_context(|| format!("{}: {field}", self.name));
        value.map(read).transpose()
    }

    /// Takes a field that must be there.
    ///
    /// # Errors
    /// It is absent, or of another type.
    pub(super) fn need<T: DeserializeOwned>(&mut self, field: &str) -> anyhow::Result<T> {
        self.take(field)?.with_context(|| format!("{}: {field} is missing", self.name))
    }

    /// Takes whatever is left.
    pub(super) fn rest(&mut self) -> Map<String, Value> {
        std::mem::take(&mut self.fields)
    }

    /// All fields must have been taken.
    ///
    /// # Errors
    /// The names of those that nobody knows.
    pub(super) fn finish(&self) -> anyhow::Result<()> {
        if self.fields.is_empty() {
            return Ok(());
        }
        let left: Vec<&str> = self.fields.keys().map(String::as_str).collect();
        bail!("{}: unknown {}", self.name, left.join(", "))
    }
}

/// Puts `with` in the place of `{var}` in every text of a value.
pub(super) fn put_in(value: &Value, var: &str, with: &str) -> Value {
    match value {
        Value::String(text) => Value::String(text.replace(&format!("{{{var}}}"), with)),
        Value::Array(items) => items.iter().map(|v| put_in(v, var, with)).collect(),
        Value::Object(map) => map.iter().map(|(k, v)| (k.clone(), put_in(v, var, with))).collect(),
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_nobody_took_is_told() {
        let mut args = Args::new(&json!({"do": "text", "ctx": "A", "loud": 1, "note": "x"}), "do");
        let args = args.as_mut().unwrap();
        assert_eq!(args.need::<String>("ctx").unwrap(), "A");
        assert_eq!(args.take::<u64>("seed").unwrap(), None);
        assert!(args.need::<u64>("seed").is_err());
        assert_eq!(args.finish().unwrap_err().to_string(), "text: unknown loud");
        assert!(Args::new(&json!({"ctx": "A"}), "do").is_err());
    }

    #[test]
    fn variables_are_put_in_everywhere() {
        let body = json!([{"ctx": "R{i}", "n": 1, "a": [{"t": "{i}{i}"}]}]);
        assert_eq!(put_in(&body, "i", "7"), json!([{"ctx": "R7", "n": 1, "a": [{"t": "77"}]}]));
    }
}
