//! From text to configuration: what is wrong is said with its line, and a key that nobody knows with the nearest one that is known.

use anyhow::Result;

use super::Config;
use crate::exit::Refused;

/// Names that are further apart are not taken for each other.
const LIKENESS: f64 = 0.7;

/// Reads a configuration.
///
/// # Errors
/// What is wrong, in which line.
pub(super) fn parse(text: &str) -> Result<Config> {
    toml::from_str(text).map_err(|error| {
        let line = error.span().and_then(|span| Some(text.get(..span.start)?.matches('\n').count() + 1));
        let place = line.map(|line| format!("line {line}: ")).unwrap_or_default();
        // Only what is wrong: the line itself may have a secret in it.
        Refused(format!("{place}{}", advice(error.message()))).into()
    })
}

/// The message, with the nearest known key for one that is not known.
fn advice(message: &str) -> String {
    let quoted: Vec<&str> = message.split('`').skip(1).step_by(2).collect();
    let Some((unknown, known)) = quoted.split_first().filter(|_| message.starts_with("unknown ")) else {
        return message.to_owned();
    };
    let likeness = |name: &&&str| strsim::jaro_winkler(unknown, name);
    let nearest = known
        .iter()
        .max_by(|a, b| likeness(a).total_cmp(&likeness(b)))
        .filter(|name| likeness(name) >= LIKENESS);
    match nearest {
        Some(nearest) => format!("{message}; did you mean `{nearest}`?"),
        None => message.to_owned(),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn error(text: &str) -> String {
        format!("{:#}", parse(text).unwrap_err())
    }

    #[test]
    fn a_key_that_nobody_knows_is_refused_with_the_nearest() {
        let text = "[store]\nurl = \"sqlite:x\"\n\n[targets.default]\nsink = \"null:\"\nconcurency = 3\n";
        let error = error(text);
        assert!(error.starts_with("line 6: unknown field `concurency`"), "{error}");
        assert!(error.ends_with("did you mean `concurrency`?"), "{error}");
        assert!(self::error("[stroe]\nurl = \"x\"").contains("did you mean `store`?"));
        assert!(!self::error("[zzz]\n").contains("did you mean"));
    }

    #[test]
    fn a_wrong_value_is_said_with_its_line_and_without_itself() {
        let lease = error("[relay]\nlease = \"soon\"");
        assert!(lease.starts_with("line 2: \"soon\" is no time: write 500ms"), "{lease}");
        assert!(error("[relay]\nlease = \"0s\"").contains("a time of 0"));
        assert!(error("[relay]\nworkers = 0").contains("line 2"), "{}", error("[relay]\nworkers = 0"));
        let url = error("[store]\nurl = { flie = \"s3cret\" }");
        assert!(url.contains("{ file") && !url.contains("s3cret"), "{url}");
        let torn = error("[store]\nurl = \"postgres://u:s3cret@h\nnames = 1");
        assert!(!torn.contains("s3cret"), "{torn}");
    }
}
