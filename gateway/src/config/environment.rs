//! Settings from the environment: every key of a section is a variable too.
//!
//! ```text
//! DOVECOTE_SERVER_DRAIN_S=10      [server] drain_s = 10
//! DOVECOTE_TLS_CERT=/etc/a.pem    [tls] cert = "/etc/a.pem"
//! ```

use toml::{Table, Value};

use super::{ConfigError, File};

const PREFIX: &str = "DOVECOTE_";

/// What the variables say, as the file would. Variables that name no section are left to the flags.
///
/// # Errors
/// A variable that names a section but no key of it, or has a value that does not fit.
pub(super) fn overlay(
    sections: &[&str],
    variables: impl Iterator<Item = (String, String)>,
) -> Result<Table, ConfigError> {
    let mut all = Table::new();
    for (name, text) in variables {
        let Some((section, key)) = split(sections, &name) else { continue };
        let one = Table::from_iter([(key.clone(), value(&text))]);
        // Alone first, so that an error names its variable.
        let alone = Table::from_iter([(section.to_owned(), Value::Table(one.clone()))]);
        alone.try_into::<File>().map_err(|e| ConfigError::Variable {
            name: name.clone(),
            reason: e.message().to_owned(),
        })?;
        merge(&mut all, Table::from_iter([(section.to_owned(), Value::Table(one))]));
    }
    Ok(all)
}

/// Lays one table over another, key by key.
pub(super) fn merge(under: &mut Table, over: Table) {
    for (key, value) in over {
        match (under.get_mut(&key), value) {
            (Some(Value::Table(under)), Value::Table(over)) => merge(under, over),
            (_, value) => _ = under.insert(key, value),
        }
    }
}

/// Section and key of a variable, if it names a section.
fn split<'a>(sections: &[&'a str], name: &str) -> Option<(&'a str, String)> {
    let rest = name.strip_prefix(PREFIX)?.to_ascii_lowercase();
    let of = |section: &&&str| {
        rest.strip_prefix(**section).is_some_and(|key| key.starts_with('_') && key.len() > 1)
    };
    let section = sections.iter().find(of)?;
    Some((section, rest[section.len() + 1..].to_owned()))
}

/// A value as TOML has it, else the text itself: paths and names need no quotation marks.
fn value(text: &str) -> Value {
    let parsed = format!("value = {text}").parse::<Table>().ok();
    parsed.and_then(|mut t| t.remove("value")).unwrap_or_else(|| Value::String(text.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(variables: &[(&str, &str)]) -> Result<Table, ConfigError> {
        let variables = variables.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned()));
        overlay(&["server", "tls"], variables)
    }

    #[test]
    fn variables_become_keys_of_their_sections() {
        let table = read(&[
            ("DOVECOTE_SERVER_MAX_SESSIONS", "7"),
            ("DOVECOTE_SERVER_ORIGINS", "[\"https://a.example\"]"),
            ("DOVECOTE_TLS_CERT", "/etc/a.pem"),
            ("DOVECOTE_LISTEN", "is a flag's"),
            ("HOME", "is somebody else's"),
        ])
        .unwrap();
        let says = "[server]\nmax_sessions = 7\norigins = [\"https://a.example\"]\n[tls]\ncert = \"/etc/a.pem\"";
        assert_eq!(table, says.parse::<Table>().unwrap());
    }

    #[test]
    fn a_wrong_variable_is_named() {
        for (name, value) in
            [("DOVECOTE_SERVER_MAX_SESSION", "7"), ("DOVECOTE_SERVER_MAX_SESSIONS", "many")]
        {
            let error = read(&[("DOVECOTE_TLS_CERT", "a.pem"), (name, value)]).unwrap_err();
            assert!(error.to_string().starts_with(&format!("{name}: ")), "{error}");
        }
    }
}
