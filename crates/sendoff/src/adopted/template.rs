//! Topics made of columns: `orders.{event_type}`.

use crate::error::StoreError;

/// Text with columns in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Template(Vec<Part>);

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Part {
    Text(String),
    Column(String),
}

impl Template {
    /// Reads it.
    ///
    /// # Errors
    /// `Rejected` for a brace that is not closed, or a column without a name.
    pub(crate) fn parse(text: &str) -> Result<Self, StoreError> {
        let refuse = |detail: &str| Err(StoreError::rejected("map", "topic", detail.to_owned()));
        let mut parts = Vec::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once('{') {
            let Some((column, tail)) = after.split_once('}') else {
                return refuse("a `{` is not closed; write `orders.{event_type}`");
            };
            if column.is_empty() {
                return refuse("`{}` names no column; write `orders.{event_type}`");
            }
            if !before.is_empty() {
                parts.push(Part::Text(before.to_owned()));
            }
            parts.push(Part::Column(column.to_owned()));
            rest = tail;
        }
        if !rest.is_empty() {
            parts.push(Part::Text(rest.to_owned()));
        }
        if parts.is_empty() {
            return refuse("it is empty; name a column as `{event_type}`, or write a topic");
        }
        Ok(Self(parts))
    }

    pub(crate) fn columns(&self) -> impl Iterator<Item = &str> {
        self.0.iter().filter_map(|part| match part {
            Part::Column(name) => Some(name.as_str()),
            Part::Text(_) => None,
        })
    }

    /// Fills it; `value` is what a column holds, none if it is NULL.
    pub(crate) fn fill(&self, value: impl Fn(&str) -> Option<String>) -> Result<String, String> {
        let mut filled = String::new();
        for part in &self.0 {
            match part {
                Part::Text(text) => filled.push_str(text),
                Part::Column(name) => {
                    let value = value(name).ok_or_else(|| format!("column `{name}` is null"))?;
                    filled.push_str(&value);
                }
            }
        }
        Ok(filled)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_topic_is_made_of_text_and_columns() {
        let template = Template::parse("outbox.event.{type}-{part}").unwrap();
        assert_eq!(template.columns().collect::<Vec<_>>(), ["type", "part"]);
        let filled =
            template.fill(|name| (name == "type").then(|| "order".to_owned()).or(Some("7".to_owned())));
        assert_eq!(filled.unwrap(), "outbox.event.order-7");
        assert_eq!(template.fill(|_| None).unwrap_err(), "column `type` is null");
        for wrong in ["", "a{b", "a{}"] {
            assert!(Template::parse(wrong).is_err(), "{wrong}");
        }
    }
}
