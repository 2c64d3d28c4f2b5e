//! What a server does not let its user do.
//!
//! It says so once, beside everything else, and never answers what was asked for: without a look at this a permission that is missing is a server that
//! is silent.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use async_nats::{Event, ServerError};
use tokio::time::Instant;

/// So many subjects are known at a time: as many as events have of them could be forbidden.
const SUBJECTS_MAX: usize = 1_000;

/// What was forbidden on the present connection.
#[derive(Default)]
pub(super) struct Forbidden(Mutex<Subjects>);

#[derive(Default)]
struct Subjects {
    /// Nothing may be published to these, as was said then.
    published: HashMap<String, Instant>,
    /// This may not be listened to. Answers come there, and it is asked for once on a connection.
    heard: Option<String>,
}

impl Forbidden {
    /// Takes note of what the server has said.
    pub(super) fn hear(&self, event: &Event) {
        let mut subjects = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match event {
            Event::Connected | Event::Disconnected => *subjects = Subjects::default(),
            Event::ServerError(ServerError::Other(text)) => match parse(text) {
                Some(Violation::Publish(subject)) => {
                    if subjects.published.len() >= SUBJECTS_MAX {
                        subjects.published.clear();
                    }
                    subjects.published.insert(subject.to_owned(), Instant::now());
                }
                Some(Violation::Subscription(subject)) => subjects.heard = Some(subject.to_owned()),
                None => {}
            },
            _ => {}
        }
    }

    /// What was said since then of publishing to this subject, and what to do.
    pub(super) fn publishing(&self, subject: &str, since: Instant) -> Option<String> {
        let subjects = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_forbidden = subjects.published.get(subject).is_some_and(|said| *said >= since);
        is_forbidden.then(|| publishing(subject))
    }

    /// What was said since then of asking for a stream, and what to do.
    pub(super) fn asking(&self, since: Instant) -> Option<String> {
        let subjects = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_asked = |(subject, said): &(&String, &Instant)| subject.starts_with("$JS.") && **said >= since;
        subjects.published.iter().filter(is_asked).map(|(subject, _)| publishing(subject)).next()
    }

    /// What was said of listening to answers, and what to do.
    pub(super) fn listening(&self) -> Option<String> {
        let subjects = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        subjects.heard.as_ref().map(|subject| {
            // What comes after the first token differs from one connection to the next.
            let inbox = subject.split('.').next().unwrap_or_default();
            format!(
                "its user may not subscribe to `{subject}`, where answers come: let it subscribe to `{inbox}.>`"
            )
        })
    }
}

fn publishing(subject: &str) -> String {
    format!("its user may not publish to `{subject}`: let it, in its permissions")
}

enum Violation<'t> {
    Publish(&'t str),
    Subscription(&'t str),
}

/// `Permissions Violation for Publish to "subject"`, as a server says it.
fn parse(text: &str) -> Option<Violation<'_>> {
    let said = text.get(.."permissions violation for ".len())?;
    if !said.eq_ignore_ascii_case("permissions violation for ") {
        return None;
    }
    let (what, subject) = text[said.len()..].split_once(" to \"")?;
    let (subject, _) = subject.split_once('"')?;
    match what.to_ascii_lowercase().as_str() {
        "publish" => Some(Violation::Publish(subject)),
        "subscription" => Some(Violation::Subscription(subject)),
        _ => None,
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn said(text: &str) -> Event {
        Event::ServerError(ServerError::Other(text.to_owned()))
    }

    #[test]
    fn what_a_server_forbids_is_known_until_the_connection_is_lost() {
        let (forbidden, began) = (Forbidden::default(), Instant::now());
        forbidden.hear(&said("Permissions Violation for Publish to \"orders.a b\""));
        forbidden.hear(&said("permissions violation for publish to \"$JS.API.STREAM.INFO.s\""));
        forbidden.hear(&said("Permissions Violation for Subscription to \"_INBOX.x.*\" using queue \"q\""));
        let text = "its user may not publish to `orders.a b`: let it, in its permissions";
        assert_eq!(forbidden.publishing("orders.a b", began).unwrap(), text);
        assert_eq!(forbidden.publishing("orders.b", began), None);
        let later = Instant::now() + std::time::Duration::from_secs(1);
        assert_eq!(forbidden.publishing("orders.a b", later), None, "it may have been allowed since");
        assert!(forbidden.asking(began).unwrap().contains("`$JS.API.STREAM.INFO.s`"));
        assert_eq!(forbidden.asking(later), None);
        assert!(forbidden.listening().unwrap().ends_with("let it subscribe to `_INBOX.>`"));
        forbidden.hear(&Event::Disconnected);
        assert_eq!(forbidden.listening(), None);
        assert_eq!(forbidden.publishing("orders.a b", began), None);
    }

    #[test]
    fn other_words_forbid_nothing() {
        let forbidden = Forbidden::default();
        for text in [
            "",
            "Permissions Violation for ",
            "Permissions Violation for Publish to orders",
            "Stale Connection",
        ] {
            forbidden.hear(&said(text));
        }
        forbidden.hear(&said("Permissions Violation for Publish with Reply of \"x\""));
        assert!(forbidden.0.lock().unwrap().published.is_empty());
        assert_eq!(forbidden.listening(), None);
    }

    #[test]
    fn so_many_subjects_are_known_and_no_more() {
        let (forbidden, began) = (Forbidden::default(), Instant::now());
        for number in 0..SUBJECTS_MAX * 3 {
            forbidden.hear(&said(&format!("Permissions Violation for Publish to \"s.{number}\"")));
        }
        assert!(forbidden.0.lock().unwrap().published.len() <= SUBJECTS_MAX);
        assert!(forbidden.publishing(&format!("s.{}", SUBJECTS_MAX * 3 - 1), began).is_some());
    }
}
