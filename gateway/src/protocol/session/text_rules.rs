//! What a client asks to be done to its text, checked and put into the engine's terms.

use engine::text::lexicon::{Entry, Written};
use engine::text::{Lexicon, Locale, TextOptions};

use crate::protocol::event::{ListedForms, TextRules};

/// What cannot be had: the field below `text`, and why.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Refused {
    pub(super) field: &'static str,
    pub(super) reason: String,
}

/// The engine's options for a text. `language` is what the request names: with a region (`en-GB`) it names the locale too,
/// unless the rules do.
///
/// # Errors
/// An unknown value of `verbalize`, an unknown locale, a lexicon that is too long or has a bad pattern.
pub(super) fn text_options(
    rules: &TextRules,
    language: Option<&str>,
    base: TextOptions,
) -> Result<TextOptions, Refused> {
    let verbalize = match rules.verbalize.as_deref() {
        None => base.verbalize,
        Some("auto") => true,
        Some("off") => false,
        Some(other) => {
            let reason = format!("`{other}` is neither \"auto\" nor \"off\"");
            return Err(Refused { field: "text.verbalize", reason });
        }
    };
    let region = language.filter(|l| l.contains(['-', '_'])).and_then(|l| l.parse().ok());
    let locale = match rules.locale.as_deref() {
        None => region.or(base.locale),
        Some(tag) => Some(
            tag.parse::<Locale>()
                .map_err(|e| Refused { field: "text.locale", reason: e.to_string() })?,
        ),
    };
    let lexicon = match &rules.lexicon {
        None => base.lexicon,
        Some(forms) => lexicon(forms)?,
    };
    Ok(TextOptions {
        markdown: rules.markdown.unwrap_or(base.markdown),
        emoji: rules.emoji.unwrap_or(base.emoji),
        ssml: rules.ssml.unwrap_or(base.ssml),
        verbalize,
        locale,
        lexicon,
        inline_words: rules.inline_words,
        ..base
    })
}

fn lexicon(forms: &ListedForms) -> Result<Lexicon, Refused> {
    let word = |(word, spoken): (&String, &String)| Entry {
        written: Written::Word(word.clone()),
        spoken: spoken.clone(),
    };
    let entries = match forms {
        ListedForms::Words(words) => words.iter().map(word).collect(),
        ListedForms::Entries(entries) => {
            let entry = |entry: &crate::protocol::event::ListedForm| {
                let written = match (&entry.word, &entry.pattern) {
                    (Some(word), None) => Written::Word(word.clone()),
                    (None, Some(pattern)) => Written::Pattern(pattern.clone()),
                    _ => return Err(refused("an entry has either `word` or `pattern`".to_owned())),
                };
                Ok(Entry { written, spoken: entry.spoken.clone() })
            };
            entries.iter().map(entry).collect::<Result<_, _>>()?
        }
    };
    Lexicon::new(entries).map_err(|e| refused(e.to_string()))
}

fn refused(reason: String) -> Refused {
    Refused { field: "text.lexicon", reason }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn options(rules: Value, language: Option<&str>) -> Result<TextOptions, Refused> {
        let rules: TextRules = serde_json::from_value(rules).unwrap();
        text_options(&rules, language, TextOptions::default())
    }

    #[test]
    fn rules_become_options() {
        let asked = json!({"verbalize": "off", "emoji": false, "markdown": false, "ssml": false});
        let asked = options(asked, None).unwrap();
        assert!(!(asked.verbalize || asked.emoji || asked.markdown || asked.ssml));
        let tag =
            |rules: Value, language| options(rules, language).unwrap().locale.map(Locale::tag);
        assert_eq!(tag(json!({}), Some("german")), None);
        assert_eq!(tag(json!({}), Some("en-GB")), Some("en-GB"));
        assert_eq!(tag(json!({"locale": "de-AT"}), Some("de-DE")), Some("de-AT"));
        for listed in
            [json!({"nginx": "engine x"}), json!([{"word": "nginx", "spoken": "engine x"}])]
        {
            let asked = options(json!({"lexicon": listed}), None).unwrap();
            assert_eq!(engine::text::sanitize("Nginx 1", &asked), "engine x one.");
        }
    }

    #[test]
    fn what_is_not_to_be_had_is_named() {
        for (rules, field, says) in [
            (json!({"verbalize": "on"}), "text.verbalize", "`on` is neither"),
            (json!({"locale": "en-XX"}), "text.locale", "known: en-US"),
            (
                json!({"lexicon": [{"pattern": "(", "spoken": ""}]}),
                "text.lexicon",
                "entry 0: no pattern",
            ),
            (json!({"lexicon": [{"spoken": "x"}]}), "text.lexicon", "either `word` or `pattern`"),
        ] {
            let refused = options(rules, None).unwrap_err();
            assert_eq!(refused.field, field);
            assert!(refused.reason.contains(says), "{}", refused.reason);
        }
    }
}
