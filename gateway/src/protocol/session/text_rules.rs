//! What a client asks to be done to its text, checked and put into the engine's terms.

use engine::text::{Lexicon, Locale, TextOptions};

use crate::lexicon::{Lexicons, compile};
use crate::protocol::event::TextRules;

/// What cannot be had: the field below `text`, and why.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Refused {
    pub(crate) field: &'static str,
    pub(crate) reason: String,
}

/// The engine's options for a text. `language` is what the request names: with a region (`en-GB`) it names the locale too,
/// unless the rules do. Words of the rules go before those of `base`.
///
/// # Errors
/// An unknown value of `verbalize`, an unknown locale or dictionary, a lexicon that is too long or has a bad pattern.
pub(crate) fn text_options(
    rules: &TextRules,
    language: Option<&str>,
    base: TextOptions,
    lexicons: &Lexicons,
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
    let mut lexicon = match &rules.lexicon {
        None => Lexicon::default(),
        Some(forms) => compile(forms, &lexicons.limits)
            .map_err(|reason| Refused { field: "text.lexicon", reason })?,
    };
    if let Some(names) = &rules.dictionaries {
        let named = lexicons.named(names);
        let named = named.map_err(|reason| Refused { field: "text.dictionaries", reason })?;
        lexicon = lexicon.over(&named);
    }
    Ok(TextOptions {
        markdown: rules.markdown.unwrap_or(base.markdown),
        emoji: rules.emoji.unwrap_or(base.emoji),
        ssml: rules.ssml.unwrap_or(base.ssml),
        verbalize,
        locale,
        lexicon: lexicon.over(&base.lexicon),
        inline_words: rules.inline_words,
        ..base
    })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn options(rules: Value, language: Option<&str>) -> Result<TextOptions, Refused> {
        let rules: TextRules = serde_json::from_value(rules).unwrap();
        text_options(&rules, language, TextOptions::default(), &Lexicons::default())
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
                "entry 0, \"(\": no pattern",
            ),
            (json!({"lexicon": [{"spoken": "x"}]}), "text.lexicon", "either `word` or `pattern`"),
            (
                json!({"lexicon": {"x".repeat(101): "y"}}),
                "text.lexicon",
                "entry 0: more than 100 characters written (lexicon.max_written_chars)",
            ),
            (json!({"dictionaries": ["names"]}), "text.dictionaries", "\"names\" is not there"),
        ] {
            let refused = options(rules, None).unwrap_err();
            assert_eq!(refused.field, field);
            assert!(refused.reason.contains(says), "{}", refused.reason);
        }
    }
}
