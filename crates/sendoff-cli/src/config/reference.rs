//! Every key of the configuration, from the same types that read it.

use std::fmt::Write as _;

use schemars::schema_for;
use serde_json::Value;

use super::Config;
use super::sinks;

/// `docs/configuration.md`.
pub(crate) fn markdown() -> String {
    let mut text = String::from(
        "# Every key of the configuration\n\nPrinted by `sendoff config reference`; a test keeps it true. `sendoff config init` prints a file to begin with, \
         `sendoff config check FILE` says whether one is right.\n\n\
         Times are written `500ms`, `30s`, `5m`, `12h`, `7d`. What may be secret is a text, `{ file = \"PATH\" }` or `{ env = \"NAME\" }`.\n",
    );
    let schema = schema_for!(Config).to_value();
    let definitions = &schema["$defs"];
    section(&mut text, "The file", &schema);
    for (heading, name) in [
        ("`[store]`, `[stores.NAME]`", "StoreConfig"),
        ("`[table]`", "TableOptions"),
        ("`[table.claims]`", "ClaimsOptions"),
        ("`words` of `[table.claims]`", "WordOptions"),
        ("`[table.beside]`", "BesideOptions"),
        ("`[relay]`", "RelayConfig"),
        ("`[targets.NAME]`", "TargetOptions"),
        ("`retry` of a target", "RetryOptions"),
        ("`breaker` of a target", "BreakerOptions"),
        ("`[retention]`", "RetentionConfig"),
        ("`[admin]`", "AdminConfig"),
        ("`[telemetry]`", "TelemetryConfig"),
    ] {
        section(&mut text, heading, &definitions[name]);
    }
    text.push_str(
        "\n## `[targets.NAME.sink]`\n\nA sink is its URL, or a table with its `url` and these settings.\n",
    );
    for (_, schema) in sinks::all(&mut schemars::SchemaGenerator::default()) {
        let schema = schema.to_value();
        let about = schema["description"].as_str().unwrap_or_default().to_owned();
        let _ = write!(text, "\n### {about}\n");
        rows(&mut text, &schema);
    }
    text
}

fn section(text: &mut String, heading: &str, schema: &Value) {
    let about = schema["description"].as_str().unwrap_or_default();
    let _ = write!(text, "\n## {heading}\n\n{about}\n");
    rows(text, schema);
}

/// A table of the keys.
fn rows(text: &mut String, schema: &Value) {
    let Some(properties) = schema["properties"].as_object().filter(|properties| !properties.is_empty())
    else {
        return;
    };
    text.push_str("\n| key | what it is |\n|---|---|\n");
    for (key, property) in properties {
        let about = property["description"].as_str().unwrap_or_default().replace('\n', " ");
        let usual = match &property["default"] {
            Value::Null => String::new(),
            Value::Object(_) => String::new(),
            Value::Array(values) if values.is_empty() => String::new(),
            value => format!(" Usually `{value}`."),
        };
        let _ = writeln!(text, "| `{key}` | {about}{usual} |");
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    #[cfg(all(feature = "aws", feature = "kafka", feature = "http"))]
    #[test]
    fn the_reference_is_what_the_types_say() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/configuration.md");
        let text = super::markdown();
        if std::env::var_os("SENDOFF_UPDATE_SNAPSHOTS").is_some() {
            std::fs::write(path, &text).unwrap();
        }
        assert!(
            std::fs::read_to_string(path).unwrap_or_default() == text,
            "docs/configuration.md is old: SENDOFF_UPDATE_SNAPSHOTS=1 writes it anew"
        );
    }
}
