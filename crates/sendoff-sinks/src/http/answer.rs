//! What a receiver's answer means for the event it is about.

use std::error::Error as StdError;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use reqwest::header::{HeaderMap, HeaderValue, LOCATION, RETRY_AFTER};
use reqwest::{Response, StatusCode, Url};
use sendoff::Delivery;
use time::{Date, Month, OffsetDateTime};

use super::guard::Private;
use crate::tls;
use crate::unusable::Unusable;

/// More of an answer is not read.
const BODY_MAX: usize = 64 * 1024;

/// So much of an answer is told.
const SHOWN_MAX: usize = 200;

/// No receiver is believed to want more time.
const AFTER_MAX: Duration = Duration::from_secs(24 * 60 * 60);

/// What came of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Answer {
    /// It is clear what became of it.
    Clear(Delivery),
    /// The receiver took too long.
    TimedOut,
    /// The connection was lost in the midst of it.
    Lost(String),
}

/// What a receiver said.
#[derive(Debug)]
pub(super) struct Said {
    pub(super) status: StatusCode,
    /// When to come again.
    after: Option<Duration>,
    /// The host that it is sent to instead.
    elsewhere: Option<String>,
    /// The beginning of what it says, made safe.
    text: String,
}

impl Said {
    /// Reads what is said, and no more of it than has to be; `secrets` are left out.
    pub(super) async fn read(mut response: Response, secrets: &[String]) -> Self {
        let status = response.status();
        let after = response.headers().get(RETRY_AFTER).and_then(|value| after(value, SystemTime::now()));
        let elsewhere = status.is_redirection().then(|| elsewhere(response.url(), response.headers()));
        let mut body = Vec::new();
        // To its end, so that the connection can be used again. The status counts, whatever becomes of the rest.
        while let Ok(Some(chunk)) = response.chunk().await {
            if body.len() + chunk.len() > BODY_MAX {
                break;
            }
            if !status.is_success() {
                body.extend_from_slice(&chunk);
            }
        }
        Self { status, after, elsewhere: elsewhere.flatten(), text: shown(&body, secrets) }
    }

    /// What it means for the event; `is_fixed`: the URL is the same for every event.
    pub(super) fn delivery(&self, server: &str, is_fixed: bool) -> Delivery {
        let status = self.status;
        let said = format!("{server} answered {status}");
        let quoted = if self.text.is_empty() { said.clone() } else { format!("{said}: {}", self.text) };
        match status.as_u16() {
            200..=299 => Delivery::Delivered,
            300..=399 => {
                let host = self.elsewhere.as_deref().unwrap_or("nowhere");
                Delivery::down(format!(
                    "{said} and leads to {host}; redirects are not followed: give the URL that it leads to"
                ))
            }
            // Without its text: it may repeat what it refuses.
            401 | 403 | 407 => Delivery::down(format!("{said}; {CREDENTIALS}")),
            404 | 405 | 410 if is_fixed => {
                Delivery::down(format!("{said}: nothing takes events there; is the path of its URL right?"))
            }
            // The path is of the event: those of other paths may well arrive.
            404 | 405 | 410 => Delivery::Retry {
                error: format!("{said}: nothing takes events at the path that is made of it"),
                after: self.after,
            },
            408 | 425 | 429 | 500..=599 => Delivery::Retry { error: quoted, after: self.after },
            400..=499 => Delivery::reject(quoted),
            _ => Delivery::down(format!("{said}, which is no answer to a POST")),
        }
    }
}

/// What to do about a refusal.
pub(super) const CREDENTIALS: &str =
    "are the credentials, in `authorization`, its headers or URL, and its signing secrets right?";

/// Why there was no answer; `server`: host and port.
pub(super) fn unanswered(server: &str, error: &reqwest::Error) -> Answer {
    if error.is_timeout() {
        Answer::TimedOut
    } else if error.is_builder() {
        Answer::Clear(Delivery::reject(format!("it makes no request that can be sent: {}", cause(error))))
    } else if error.is_connect() {
        Answer::Clear(Delivery::down(unreachable(server, error)))
    } else {
        Answer::Lost(format!("{server}: the connection was lost: {}", cause(error)))
    }
}

/// Why a receiver cannot be reached, and what to do.
pub(super) fn unreachable(server: &str, error: &reqwest::Error) -> String {
    if error.is_timeout() {
        return format!("{server}: it does not answer; is it running, and can it be reached from here?");
    }
    let hint = if causes(error).any(|cause| cause.is::<Private>()) {
        ""
    } else if let Some(hint) = tls::hint(error) {
        hint
    } else if error.is_dns() {
        "; is its name right?"
    } else {
        "; is it running, and can it be reached from here?"
    };
    format!("{server}: {}{hint}", cause(error))
}

/// The same, and whether it may pass by itself.
pub(super) fn unusable(server: &str, error: &reqwest::Error) -> Unusable {
    let is_wrong = tls::hint(error).is_some() || causes(error).any(|cause| cause.is::<Private>());
    let text = unreachable(server, error);
    if is_wrong { Unusable::Wrong(text) } else { Unusable::Away(text) }
}

/// The error itself is left out: it says no more than that there was one, and may repeat the URL.
fn causes(error: &reqwest::Error) -> impl Iterator<Item = &(dyn StdError + 'static)> {
    std::iter::successors(error.source(), |cause| (*cause).source())
}

/// The one that it began with.
fn cause(error: &reqwest::Error) -> String {
    causes(error).last().map_or_else(|| "it could not be sent".to_owned(), ToString::to_string)
}

/// Where a redirect leads: its host, and nothing else of it.
fn elsewhere(url: &Url, headers: &HeaderMap) -> Option<String> {
    let location = url.join(headers.get(LOCATION)?.to_str().ok()?).ok()?;
    location.host_str().map(str::to_owned)
}

/// Seconds, or a date, as in `Sun, 06 Nov 1994 08:49:37 GMT`.
fn after(value: &HeaderValue, now: SystemTime) -> Option<Duration> {
    let text = value.to_str().ok()?.trim();
    let after = match text.parse() {
        Ok(seconds) => Duration::from_secs(seconds),
        Err(_) => {
            let at = UNIX_EPOCH + Duration::from_secs(u64::try_from(date(text)?.unix_timestamp()).ok()?);
            at.duration_since(now).unwrap_or_default()
        }
    };
    Some(after.min(AFTER_MAX))
}

fn date(text: &str) -> Option<OffsetDateTime> {
    const MONTHS: [&str; 12] =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let (_, rest) = text.strip_suffix(" GMT")?.split_once(", ")?;
    let parts: Vec<&str> = rest.split([' ', ':']).collect();
    let [day, month, year, hour, minute, second] = parts.try_into().ok()?;
    let month = u8::try_from(MONTHS.iter().position(|name| *name == month)?).ok()? + 1;
    let date = Date::from_calendar_date(year.parse().ok()?, Month::try_from(month).ok()?, day.parse().ok()?);
    let time = date.ok()?.with_hms(hour.parse().ok()?, minute.parse().ok()?, second.parse().ok()?);
    Some(time.ok()?.assume_utc())
}

/// The beginning of a text, on one line, without what it should not have and without the secrets that it may repeat.
fn shown(body: &[u8], secrets: &[String]) -> String {
    let mut text = String::from_utf8_lossy(body).into_owned();
    for secret in secrets {
        text = text.replace(secret, "***");
    }
    let safe = text.split(|letter: char| letter.is_whitespace() || letter.is_control());
    let line = safe.filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ");
    line.chars().take(SHOWN_MAX).collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn said(status: u16) -> Said {
        let status = StatusCode::from_u16(status).unwrap();
        Said { status, after: Some(Duration::from_secs(7)), elsewhere: None, text: "says it".to_owned() }
    }

    #[test]
    fn a_status_stops_the_sink_or_the_event() {
        for status in [200, 201, 202, 204, 299] {
            assert_eq!(said(status).delivery("h:1", true), Delivery::Delivered, "{status}");
        }
        for status in [408, 425, 429, 500, 501, 502, 503, 504, 507, 599] {
            let delivery = said(status).delivery("h:1", true);
            let Delivery::Retry { error, after } = &delivery else { panic!("{status}: {delivery:?}") };
            assert!(error.starts_with(&format!("h:1 answered {status}")), "{error}");
            assert!(error.ends_with(": says it") && *after == Some(Duration::from_secs(7)), "{delivery:?}");
        }
        for status in [400, 402, 406, 409, 413, 415, 418, 422, 451] {
            let delivery = said(status).delivery("h:1", true);
            assert!(
                matches!(&delivery, Delivery::Reject { error } if error.contains(&status.to_string()) && error.ends_with(": says it")),
                "{delivery:?}"
            );
        }
        for (status, hint) in [
            (301, "leads to nowhere; redirects are not followed"),
            (304, "leads to nowhere; redirects are not followed"),
            (401, CREDENTIALS),
            (403, CREDENTIALS),
            (407, CREDENTIALS),
            (404, "is the path of its URL right?"),
            (405, "is the path of its URL right?"),
            (410, "is the path of its URL right?"),
            (101, "which is no answer to a POST"),
        ] {
            let delivery = said(status).delivery("h:1", true);
            assert!(
                matches!(&delivery, Delivery::Down { error } if error.contains(hint) && !error.contains("says it")),
                "{delivery:?}"
            );
        }
        for status in [404, 405, 410] {
            let delivery = said(status).delivery("h:1", false);
            assert!(matches!(delivery, Delivery::Retry { .. }), "the path is the event's: {delivery:?}");
        }
    }

    #[test]
    fn a_receiver_says_when_to_come_again() {
        let now = UNIX_EPOCH + Duration::from_secs(784_111_777 - 30);
        for (text, seconds) in [
            ("120", Some(120)),
            (" 0 ", Some(0)),
            ("99999999", Some(86_400)),
            ("Sun, 06 Nov 1994 08:49:37 GMT", Some(30)),
            ("Sun, 06 Nov 1994 08:48:37 GMT", Some(0)),
            ("Sun, 06 Nov 2094 08:49:37 GMT", Some(86_400)),
            ("Sun, 31 Feb 1994 08:49:37 GMT", None),
            ("Sun, 06 Nov 1994 25:49:37 GMT", None),
            ("Sun, 06 Nov 1994 08:49:37", None),
            ("-1", None),
            ("soon", None),
            ("", None),
        ] {
            let got = after(&HeaderValue::from_str(text).unwrap(), now);
            assert_eq!(got, seconds.map(Duration::from_secs), "{text:?}");
        }
    }

    #[test]
    fn what_is_shown_of_an_answer_is_short_and_safe() {
        let secrets = ["s3cret".to_owned()];
        assert_eq!(shown(b"a\r\n\x1b[31mb\0\tc s3cret", &secrets), "a [31mb c ***");
        assert_eq!(shown("ü".repeat(500).as_bytes(), &[]).chars().count(), 200);
        assert_eq!(shown(b"\xff\xfe", &[]), "\u{fffd}\u{fffd}");
    }

    #[test]
    fn of_where_a_redirect_leads_only_the_host_is_told() {
        let url = Url::parse("https://h/a").unwrap();
        for (location, host) in [
            ("https://user:s3cret@other.example:8/b?c=s3cret", Some("other.example")),
            ("/b", Some("h")),
            ("//other.example/b", Some("other.example")),
            ("https://", None),
        ] {
            let headers = HeaderMap::from_iter([(LOCATION, location.parse().unwrap())]);
            assert_eq!(elsewhere(&url, &headers).as_deref(), host, "{location}");
        }
    }
}
