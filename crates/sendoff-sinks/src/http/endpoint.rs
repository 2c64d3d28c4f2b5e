//! The URL that an event goes to.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use reqwest::Url;
use sendoff::Event;

use crate::template::Template;

/// Everything that has a meaning in a URL; a value stays within its segment.
const SEGMENT: AsciiSet = NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// A URL, whose path may have holes.
#[derive(Clone)]
pub(super) struct Endpoint {
    /// With the path as far as it is fixed.
    base: Url,
    /// None: the whole URL is fixed.
    path: Option<Vec<Piece>>,
}

#[derive(Clone)]
enum Piece {
    Text(String),
    Hole(Template),
}

impl Endpoint {
    /// # Errors
    /// What is wrong with the URL, without its text: it may have a secret in it.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let unreadable = || "its URL cannot be read; give https://host/path".to_owned();
        let (scheme, rest) = text.split_once("://").ok_or_else(unreadable)?;
        let path_at = rest.find(['/', '\\', '?', '#']).unwrap_or(rest.len());
        let (host, rest) = rest.split_at(path_at);
        let (path, query) = rest.split_at(rest.find(['?', '#']).unwrap_or(rest.len()));
        let has_holes = |part: &str| part.contains(['{', '}']);
        if host.is_empty() {
            return Err(unreadable());
        }
        if [scheme, host, query].into_iter().any(has_holes) {
            return Err(
                "its URL has braces outside of its path: only the path may be of the event".to_owned()
            );
        }
        let pieces = has_holes(path).then(|| pieces(path)).transpose()?;
        let fixed = path.split('{').next().unwrap_or_default();
        let fixed = if pieces.is_some() { &fixed[..=fixed.rfind('/').unwrap_or(0)] } else { fixed };
        let mut base = Url::parse(&format!("{scheme}://{host}{fixed}{query}")).map_err(|_| unreadable())?;
        if !matches!(base.scheme(), "http" | "https") || !base.has_host() {
            return Err(unreadable());
        }
        base.set_fragment(None);
        Ok(Self { base, path: pieces })
    }

    pub(super) fn is_fixed(&self) -> bool {
        self.path.is_none()
    }

    /// The URL as far as it is the same for every event.
    pub(super) fn base(&self) -> &Url {
        &self.base
    }

    /// Host and port, for people: what follows may be a secret.
    pub(super) fn server(&self) -> String {
        let host = self.base.host_str().unwrap_or_default();
        match self.base.port_or_known_default() {
            Some(port) => format!("{host}:{port}"),
            None => host.to_owned(),
        }
    }

    /// The URL for this event.
    ///
    /// # Errors
    /// What the event does not have.
    pub(super) fn fill(&self, event: &Event) -> Result<Url, String> {
        let Some(pieces) = &self.path else { return Ok(self.base.clone()) };
        let mut path = String::new();
        for piece in pieces {
            match piece {
                Piece::Text(text) => path.push_str(text),
                Piece::Hole(hole) => {
                    let value = hole.fill(event)?;
                    if value.is_empty() {
                        return Err("a part of its URL would be empty".to_owned());
                    }
                    path.extend(utf8_percent_encode(&value, &SEGMENT));
                }
            }
        }
        // They would lead elsewhere, and writing them as %2E does not help.
        if path.split(['/', '\\']).any(|segment| matches!(segment, "." | "..")) {
            return Err("a part of its URL would be `.` or `..`".to_owned());
        }
        let mut url = self.base.clone();
        url.set_path(&path);
        Ok(url)
    }
}

fn pieces(path: &str) -> Result<Vec<Piece>, String> {
    let mut pieces = Vec::new();
    let mut rest = path;
    while let Some(open) = rest.find(['{', '}']) {
        let (text, hole) = rest.split_at(open);
        pieces.push(Piece::Text(text.to_owned()));
        let end = hole.find('}').filter(|_| hole.starts_with('{'));
        let end = end.ok_or("its URL has a brace without its other one")?;
        let (hole, after) = hole.split_at(end + 1);
        pieces.push(Piece::Hole(hole.parse().map_err(|error| format!("its URL: {error}"))?));
        rest = after;
    }
    pieces.push(Piece::Text(rest.to_owned()));
    Ok(pieces)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::json_line::tests::claimed;

    fn fill(url: &str, key: &str) -> Result<String, String> {
        let event = claimed(1, Some(key), b"").event;
        Endpoint::parse(url).unwrap().fill(&event).map(String::from)
    }

    #[test]
    fn only_the_path_is_of_the_event() {
        assert_eq!(fill("https://h/a?b=c", "k").unwrap(), "https://h/a?b=c");
        assert_eq!(fill("https://h:1/a/{topic}-{key}?b=c#d", "k").unwrap(), "https://h:1/a/orders-k?b=c");
        assert_eq!(
            fill("https://h/{key}/x", "ü /?#\\%2e@").unwrap(),
            "https://h/%C3%BC%20%2F%3F%23%5C%252e%40/x"
        );
        for url in
            ["https://{topic}/", "https://h{key}", "{key}://h/", "https://h/?{key}", "https://h/#{key}"]
        {
            assert!(Endpoint::parse(url).err().unwrap().contains("outside of its path"), "{url}");
        }
    }

    #[test]
    fn a_value_leads_nowhere_else() {
        for key in [".", ".."] {
            assert_eq!(fill("https://h/a/{key}", key).unwrap_err(), "a part of its URL would be `.` or `..`");
        }
        assert_eq!(fill("https://h/a/.{key}", ".").unwrap_err(), "a part of its URL would be `.` or `..`");
        assert_eq!(fill("https://h/a/{key}/", "").unwrap_err(), "a part of its URL would be empty");
        assert_eq!(fill("https://h/a/{key}", "../../b").unwrap(), "https://h/a/..%2F..%2Fb");
        assert_eq!(fill("https://h/a/{key}", "//evil.example").unwrap(), "https://h/a/%2F%2Fevil.example");
    }

    #[test]
    fn a_url_that_is_none_is_refused_and_not_shown() {
        for (url, error) in [
            ("s3cret", "its URL cannot be read; give https://host/path"),
            ("ftp://h/s3cret", "its URL cannot be read; give https://host/path"),
            ("https:///s3cret", "its URL cannot be read; give https://host/path"),
            ("https://h:s3cret/", "its URL cannot be read; give https://host/path"),
            ("https://h/s3cret{key", "its URL has a brace without its other one"),
            ("https://h/s3cret}", "its URL has a brace without its other one"),
        ] {
            let got = Endpoint::parse(url).err().unwrap_or_default();
            assert_eq!(got, error, "{url}");
        }
        let error = Endpoint::parse("https://h/s3cret/{tpoic}").err().unwrap();
        assert!(error.starts_with("its URL: `{tpoic}` is nothing that an event has"), "{error}");
    }

    #[test]
    fn what_is_the_same_for_every_event_is_known() {
        for (url, base) in [
            ("https://h/a/b", "https://h/a/b"),
            ("https://h", "https://h/"),
            ("https://h/a/b-{topic}/c?d", "https://h/a/?d"),
            ("https://h/{topic}", "https://h/"),
        ] {
            assert_eq!(Endpoint::parse(url).unwrap().base().as_str(), base, "{url}");
        }
        assert_eq!(Endpoint::parse("https://u:s3cret@h/s3cret?s3cret").unwrap().server(), "h:443");
        assert!(Endpoint::parse("http://h/a").unwrap().is_fixed());
        assert!(!Endpoint::parse("http://h/{key}").unwrap().is_fixed());
    }
}
