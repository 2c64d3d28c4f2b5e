//! The configuration that is proposed, as text.

use std::fmt::Write as _;

/// Keys and values of `[table]` and what is below it, in the order in which they were said.
#[derive(Debug, Default)]
pub(super) struct Written {
    keys: Vec<(String, String, String)>,
}

/// A text as TOML has it.
pub(super) fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for letter in text.chars() {
        match letter {
            '"' | '\\' => quoted.extend(['\\', letter]),
            letter if letter.is_control() => {
                let _ = write!(quoted, "\\u{:04X}", u32::from(letter));
            }
            letter => quoted.push(letter),
        }
    }
    quoted.push('"');
    quoted
}

/// A key as TOML has it.
fn key(name: &str) -> String {
    let is_bare = |letter: char| letter.is_ascii_alphanumeric() || "_-".contains(letter);
    if !name.is_empty() && name.chars().all(is_bare) { name.to_owned() } else { quoted(name) }
}

fn value(word: &str, is_number: bool) -> String {
    if is_number && word.parse::<i64>().is_ok() { word.to_owned() } else { quoted(word) }
}

impl Written {
    fn push(&mut self, section: &str, name: &str, value: String) {
        self.keys.push((section.to_owned(), name.to_owned(), value));
    }

    pub(super) fn set(&mut self, section: &str, name: &str, text: &str) {
        self.push(section, name, quoted(text));
    }

    pub(super) fn word(&mut self, section: &str, name: &str, word: &str, is_number: bool) {
        self.push(section, name, value(word, is_number));
    }

    pub(super) fn list(&mut self, section: &str, name: &str, texts: &[&str]) {
        let texts: Vec<String> = texts.iter().map(|text| quoted(text)).collect();
        self.push(section, name, format!("[{}]", texts.join(", ")));
    }

    pub(super) fn words(&mut self, section: &str, name: &str, words: &[(&'static str, String)]) {
        let words: Vec<String> =
            words.iter().map(|(name, word)| format!("{name} = {}", quoted(word))).collect();
        self.push(section, name, format!("{{ {} }}", words.join(", ")));
    }

    pub(super) fn only(&mut self, column: &str, word: &str, is_number: bool) {
        self.push("", "only", format!("{{ {} = {} }}", key(column), value(word, is_number)));
    }

    pub(super) fn flag(&mut self, column: &str) {
        self.push("", "only", format!("{{ {} = false }}", key(column)));
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.keys.iter().any(|(_, known, _)| known == name)
    }

    /// The whole configuration. `store`: what `url` is, as TOML.
    pub(super) fn text(&self, table: &str, store: &str, targets: &[String]) -> String {
        let mut text = format!(
            "# The outbox table {table}, adopted. All keys: docs/configuration.md; the way to go: docs/adopting.md.\n\n[store]\nurl = {store}\n\n[table]\nname = {}\n",
            quoted(table)
        );
        let sections = ["", "claims", "beside"];
        for section in sections {
            let keys = self.keys.iter().filter(|(of, _, _)| of == section);
            let mut lines = keys.map(|(_, name, value)| format!("{name} = {value}\n")).peekable();
            if !section.is_empty() && lines.peek().is_some() {
                let _ = write!(text, "\n[table.{section}]\n");
            }
            text.extend(lines);
        }
        for target in targets {
            let _ = write!(
                text,
                "\n[targets.{}]\nsink = \"stdout:\"    # where its events go: docs/sinks.md\n",
                key(target)
            );
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_every_kind_are_quoted() {
        assert_eq!(quoted("a\"b\\c\n"), "\"a\\\"b\\\\c\\u000A\"");
        assert_eq!((key("a_b-1").as_str(), key("a b").as_str()), ("a_b-1", "\"a b\""));
        let mut written = Written::default();
        written.only("My Status", "7", true);
        written.set("beside", "at_end", "leave");
        let text = written.text("o", "\"sqlite:x\"", &["eu west".to_owned()]);
        assert!(
            text.contains(
                "name = \"o\"\nonly = { \"My Status\" = 7 }\n\n[table.beside]\nat_end = \"leave\"\n"
            ),
            "{text}"
        );
        assert!(text.contains("[targets.\"eu west\"]"), "{text}");
    }
}
