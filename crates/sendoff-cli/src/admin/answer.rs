//! What is answered to each path.

use futures_util::future::Shared;
use sendoff_relay::metrics::{self, Page};

use super::request::Request;
use super::watch::Watch;

/// What a page of text is.
const TEXT: &str = "text/plain; charset=utf-8";

/// What the process has to say for itself.
pub(crate) struct Answers {
    watches: Vec<Watch>,
    token: Option<String>,
    /// Ready once the process is told to stop.
    stop: Shared<futures_util::future::BoxFuture<'static, ()>>,
}

impl Answers {
    pub(crate) fn new(
        watches: Vec<Watch>,
        token: Option<String>,
        stop: Shared<futures_util::future::BoxFuture<'static, ()>>,
    ) -> Self {
        Self { watches, token, stop }
    }

    /// Looks after the stores until it is dropped.
    pub(crate) async fn watch(&self) {
        futures_util::future::join_all(self.watches.iter().map(Watch::run)).await;
    }

    /// The whole answer, as it is sent.
    pub(super) fn answer(&self, request: Result<Request, u16>) -> Vec<u8> {
        let is_head = request.as_ref().is_ok_and(|request| request.is_head);
        let (status, kind, body) = match request {
            Ok(request) => self.of(&request),
            Err(status) => (status, TEXT, format!("{}\n", reason(status))),
        };
        let more = match status {
            401 => "WWW-Authenticate: Bearer\r\n",
            405 => "Allow: GET, HEAD\r\n",
            _ => "",
        };
        let mut answer = format!(
            "HTTP/1.1 {status} {}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\n{more}\
             Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\nConnection: close\r\n\r\n",
            reason(status),
            body.len()
        );
        if !is_head {
            answer.push_str(&body);
        }
        answer.into_bytes()
    }

    fn of(&self, request: &Request) -> (u16, &'static str, String) {
        match request.path.as_str() {
            "/metrics" if !self.may_read(request) => {
                (401, TEXT, "show the admin token: Authorization: Bearer TOKEN\n".to_owned())
            }
            "/metrics" => (200, Page::CONTENT_TYPE, self.metrics()),
            // Who watches over a process has no token to show, and learns nothing but whether.
            "/healthz" => self.verdict(request, self.watches.iter().flat_map(Watch::stuck).collect()),
            "/readyz" => self.verdict(request, self.not_ready()),
            _ => (404, TEXT, "there are /metrics, /healthz and /readyz\n".to_owned()),
        }
    }

    /// `ok`, or what is wrong.
    fn verdict(&self, request: &Request, wrong: Vec<String>) -> (u16, &'static str, String) {
        match wrong.is_empty() {
            true => (200, TEXT, "ok\n".to_owned()),
            false if self.may_read(request) => (503, TEXT, wrong.join("\n") + "\n"),
            false => (503, TEXT, "no\n".to_owned()),
        }
    }

    fn not_ready(&self) -> Vec<String> {
        let stopping = self.stop.peek().map(|()| "it is stopping".to_owned());
        stopping.into_iter().chain(self.watches.iter().filter_map(Watch::silent)).collect()
    }

    /// Every byte is compared, so that the time it takes tells nothing.
    fn may_read(&self, request: &Request) -> bool {
        let Some(token) = &self.token else { return true };
        let shown = request.token.as_deref().unwrap_or_default();
        let differing = token.bytes().zip(shown.bytes()).fold(0, |sum, (one, other)| sum | (one ^ other));
        differing == 0 && token.len() == shown.len()
    }

    fn metrics(&self) -> String {
        let mut page = Page::default();
        page.add(&metrics::BUILD_INFO, &[env!("CARGO_PKG_VERSION")], 1.0);
        for watch in &self.watches {
            watch.tell(&mut page);
        }
        page.text()
    }
}

const fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        400 => "Bad Request",
        401 => "Unauthorized",
        404 => "Not Found",
        405 => "Method Not Allowed",
        431 => "Request Header Fields Too Large",
        _ => "Service Unavailable",
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    fn status(answers: &Answers, path: &str, token: Option<&str>) -> String {
        let request = Request { path: path.to_owned(), is_head: false, token: token.map(str::to_owned) };
        let answer = String::from_utf8_lossy(&answers.answer(Ok(request))).into_owned();
        answer.lines().next().unwrap_or_default().to_owned()
    }

    #[test]
    fn the_figures_are_for_who_shows_the_token() {
        let never = || std::future::pending().boxed().shared();
        let answers = Answers::new(Vec::new(), Some("t0ken".to_owned()), never());
        for wrong in [None, Some(""), Some("t0ke"), Some("t0kenn"), Some("T0ken")] {
            assert_eq!(status(&answers, "/metrics", wrong), "HTTP/1.1 401 Unauthorized", "{wrong:?}");
        }
        assert_eq!(status(&answers, "/metrics", Some("t0ken")), "HTTP/1.1 200 OK");
        assert_eq!(status(&answers, "/healthz", None), "HTTP/1.1 200 OK");
        let open = Answers::new(Vec::new(), None, never());
        assert_eq!(status(&open, "/metrics", None), "HTTP/1.1 200 OK");
        assert_eq!(status(&open, "/", None), "HTTP/1.1 404 Not Found");
    }

    #[test]
    fn a_process_that_stops_is_alive_and_not_ready() {
        let stop = std::future::ready(()).boxed().shared();
        let _ = stop.clone().now_or_never();
        let answers = Answers::new(Vec::new(), None, stop);
        assert_eq!(status(&answers, "/readyz", None), "HTTP/1.1 503 Service Unavailable");
        assert_eq!(status(&answers, "/healthz", None), "HTTP/1.1 200 OK");
    }
}
