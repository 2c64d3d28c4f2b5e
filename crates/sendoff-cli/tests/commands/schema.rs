//! Checks what a command prints against its schema in `docs/schemas`. It knows the words that those schemas have, and fails at any other: none of
//! them is passed over. A name that a schema does not have is a fault here, though consumers must put up with new ones.

use std::path::Path;

use serde_json::Value;

/// Whether this is what the command prints.
pub(crate) fn check(command: &str, value: &Value) -> Result<(), String> {
    let path = format!("{}/../../docs/schemas/{command}.json", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(Path::new(&path)).unwrap_or_else(|error| panic!("{path}: {error}"));
    let root: Value = serde_json::from_str(&text).unwrap();
    conforms(&root, &root, value).map_err(|fault| fault.trim_start_matches('/').to_owned())
}

/// A fault begins with the place where it is.
fn conforms(root: &Value, schema: &Value, value: &Value) -> Result<(), String> {
    let Some(words) = schema.as_object() else { return Err(format!(": {schema} is no schema")) };
    for (word, rule) in words {
        match word.as_str() {
            "$schema" | "$defs" | "title" | "description" | "default" => {}
            "$ref" => {
                let name = rule.as_str().unwrap().trim_start_matches('#');
                conforms(root, root.pointer(name).unwrap_or_else(|| panic!("{rule}")), value)?;
            }
            "type" => has_type(rule, value)?,
            "enum" if !rule.as_array().unwrap().contains(value) => {
                return Err(format!(": {value} is none of {rule}"));
            }
            "const" if rule != value => return Err(format!(": {value} is not {rule}")),
            "enum" | "const" => {}
            "format" => has_format(rule.as_str().unwrap(), value)?,
            "minimum" | "maximum" if !value.is_number() => {}
            "minimum" if value.as_f64() < rule.as_f64() => return Err(format!(": {value} is below {rule}")),
            "maximum" if value.as_f64() > rule.as_f64() => return Err(format!(": {value} is above {rule}")),
            "minimum" | "maximum" => {}
            "anyOf" | "oneOf" => {
                let faults = rule.as_array().unwrap().iter().map(|one| conforms(root, one, value));
                let faults: Vec<_> = faults.filter_map(Result::err).collect();
                if faults.len() == rule.as_array().unwrap().len() {
                    return Err(format!(": none of {}", faults.join(" | ")));
                }
            }
            "items" => {
                for (index, item) in value.as_array().into_iter().flatten().enumerate() {
                    conforms(root, rule, item).map_err(|fault| format!("/{index}{fault}"))?;
                }
            }
            "required" => {
                for name in rule.as_array().unwrap().iter().filter_map(Value::as_str) {
                    if value.as_object().is_some_and(|object| !object.contains_key(name)) {
                        return Err(format!(": {name} is missing"));
                    }
                }
            }
            "properties" | "additionalProperties" => has_properties(root, words, value)?,
            _ => panic!("this check does not know the word {word}"),
        }
    }
    Ok(())
}

fn has_properties(
    root: &Value,
    schema: &serde_json::Map<String, Value>,
    value: &Value,
) -> Result<(), String> {
    for (name, value) in value.as_object().into_iter().flatten() {
        let known = schema.get("properties").and_then(|known| known.get(name));
        let Some(rule) = known.or(schema.get("additionalProperties")) else {
            return Err(format!(": it has no {name}"));
        };
        conforms(root, rule, value).map_err(|fault| format!("/{name}{fault}"))?;
    }
    Ok(())
}

fn has_type(rule: &Value, value: &Value) -> Result<(), String> {
    let found = match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    };
    let is = |name: &str| name == found || name == "number" && found == "integer";
    let one = rule.as_str().is_some_and(is);
    let many = rule.as_array().is_some_and(|names| names.iter().filter_map(Value::as_str).any(is));
    if one || many { Ok(()) } else { Err(format!(": {value} is no {rule}")) }
}

fn has_format(format: &str, value: &Value) -> Result<(), String> {
    let is_right = match (format, value.as_str()) {
        ("date-time", Some(text)) => text.len() == 24 && has_digits(text, "0000-00-00T00:00:00.000Z"),
        ("uuid", Some(text)) => text.len() == 36 && text.chars().all(|c| c == '-' || c.is_ascii_hexdigit()),
        // How wide a number is: its bounds are said apart.
        (
            "int16" | "uint16" | "uint32" | "uint64" | "uint" | "int64" | "double" | "date-time" | "uuid",
            _,
        ) => true,
        _ => panic!("this check does not know the format {format}"),
    };
    if is_right { Ok(()) } else { Err(format!(": {value} is no {format}")) }
}

/// Digits where the pattern has a 0, and else what the pattern has.
fn has_digits(text: &str, pattern: &str) -> bool {
    text.chars()
        .zip(pattern.chars())
        .all(|(c, like)| if like == '0' { c.is_ascii_digit() } else { c == like })
}
