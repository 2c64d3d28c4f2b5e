//! Names that are made of an event: `orders.{topic}`, `tenant-{header:tenant}`.

use std::fmt::Write as _;
use std::str::FromStr;

use sendoff::Event;

/// What a template may have in braces, for people.
const KNOWN: &str = "{topic}, {key}, {target}, {id} and {header:NAME}";

/// A name with holes, checked when it is read.
///
/// ```
/// use sendoff_sinks::Template;
///
/// assert!("orders.{topic}".parse::<Template>().is_ok());
/// let error = "orders.{tpoic}".parse::<Template>().unwrap_err();
/// assert!(error.to_string().starts_with("`{tpoic}` is nothing that an event has"));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Template {
    parts: Vec<Part>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    Text(String),
    Topic,
    Key,
    Target,
    Id,
    Header(String),
}

/// A template that can never be filled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TemplateError {
    detail: String,
}

impl std::fmt::Display for TemplateError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.detail)
    }
}

impl std::error::Error for TemplateError {}

impl Template {
    /// The topic as it is.
    pub fn topic() -> Self {
        Self { parts: vec![Part::Topic] }
    }

    /// The same name for every event.
    pub fn fixed(name: impl Into<String>) -> Self {
        Self { parts: vec![Part::Text(name.into())] }
    }

    /// The name, if it is the same for every event.
    pub fn as_fixed(&self) -> Option<&str> {
        match self.parts.as_slice() {
            [Part::Text(text)] => Some(text),
            _ => None,
        }
    }

    /// The name for this event.
    ///
    /// # Errors
    /// What the event does not have.
    pub fn fill(&self, event: &Event) -> Result<String, String> {
        let mut name = String::new();
        for part in &self.parts {
            match part {
                Part::Text(text) => name.push_str(text),
                Part::Topic => name.push_str(&event.topic),
                Part::Target => name.push_str(&event.target),
                Part::Key => name.push_str(event.key.as_deref().ok_or("it has no key to be named by")?),
                Part::Id => write!(name, "{}", event.event_id).map_err(|error| error.to_string())?,
                Part::Header(header) => {
                    let value = event.headers.get(header);
                    name.push_str(
                        value.ok_or_else(|| format!("it has no header `{header}` to be named by"))?,
                    );
                }
            }
        }
        Ok(name)
    }
}

impl FromStr for Template {
    type Err = TemplateError;

    fn from_str(text: &str) -> Result<Self, TemplateError> {
        let wrong = |detail: String| TemplateError { detail };
        if text.is_empty() {
            return Err(wrong("an empty name is none".to_owned()));
        }
        let mut parts = Vec::new();
        let mut rest = text;
        while let Some(open) = rest.find(['{', '}']) {
            let (before, hole) = rest.split_at(open);
            if !before.is_empty() {
                parts.push(Part::Text(before.to_owned()));
            }
            let Some((inside, after)) = hole.strip_prefix('{').and_then(|hole| hole.split_once('}')) else {
                return Err(wrong(format!("`{text}` has a brace without its other one")));
            };
            parts.push(match inside {
                // As it is called in a CloudEvent.
                "topic" | "type" => Part::Topic,
                "key" => Part::Key,
                "target" => Part::Target,
                "id" => Part::Id,
                other => match other.strip_prefix("header:").filter(|name| !name.is_empty()) {
                    Some(name) => Part::Header(name.to_owned()),
                    None => {
                        return Err(wrong(format!(
                            "`{{{other}}}` is nothing that an event has: there are {KNOWN}"
                        )));
                    }
                },
            });
            rest = after;
        }
        if !rest.is_empty() {
            parts.push(Part::Text(rest.to_owned()));
        }
        Ok(Self { parts })
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::json_line::tests::claimed;

    #[test]
    fn holes_are_filled_from_the_event() {
        let mut event = claimed(1, Some("k"), b"").event;
        event.headers.insert("tenant".to_owned(), "acme".to_owned());
        let fill = |text: &str| text.parse::<Template>().unwrap().fill(&event);
        assert_eq!(fill("plain").unwrap(), "plain");
        assert_eq!(
            (fill("{topic}").unwrap(), fill("{type}").unwrap()),
            ("orders".to_owned(), "orders".to_owned())
        );
        assert_eq!(fill("a.{topic}.{key}-{header:tenant}/{target}").unwrap(), "a.orders.k-acme/default");
        assert_eq!(fill("{id}").unwrap(), event.event_id.to_string());
        assert_eq!(fill("{header:shop}").unwrap_err(), "it has no header `shop` to be named by");
        event.key = None;
        let error = "{key}".parse::<Template>().unwrap().fill(&event).unwrap_err();
        assert_eq!(error, "it has no key to be named by");
    }

    #[test]
    fn what_can_never_be_filled_is_refused() {
        for (text, error) in [
            ("", "an empty name is none"),
            ("a{topic", "`a{topic` has a brace without its other one"),
            ("a}b", "`a}b` has a brace without its other one"),
            (
                "{}",
                "`{}` is nothing that an event has: there are {topic}, {key}, {target}, {id} and {header:NAME}",
            ),
            ("{header:}", "`{header:}` is nothing that an event has"),
        ] {
            let got = text.parse::<Template>().unwrap_err().to_string();
            assert!(got.starts_with(error), "{text}: {got}");
        }
    }

    #[test]
    fn a_name_without_holes_is_known() {
        assert_eq!("a.b".parse::<Template>().unwrap().as_fixed(), Some("a.b"));
        assert_eq!("a.{key}".parse::<Template>().unwrap().as_fixed(), None);
        assert_eq!(Template::topic(), "{topic}".parse().unwrap());
        assert_eq!(Template::fixed("x").as_fixed(), Some("x"));
    }
}
