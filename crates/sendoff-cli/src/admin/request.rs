//! A request, as far as it matters: what is asked for, and what is shown for it.

/// No longer head of a request is read.
pub(super) const HEAD_MAX: usize = 8 * 1_024;

/// A request.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Request {
    pub(super) path: String,
    /// Only whether, not what.
    pub(super) is_head: bool,
    /// What follows `Authorization: Bearer`.
    pub(super) token: Option<String>,
}

impl Request {
    /// Reads a head. None: it does not end yet. An error is the status to answer with.
    pub(super) fn read(head: &[u8]) -> Option<Result<Self, u16>> {
        let end = head.windows(4).position(|four| four == b"\r\n\r\n");
        let end = end.or_else(|| head.windows(2).position(|two| two == b"\n\n"))?;
        Some(std::str::from_utf8(&head[..end]).map_err(|_| 400).and_then(Self::parse))
    }

    fn parse(head: &str) -> Result<Self, u16> {
        let mut lines = head.lines();
        let words: Vec<&str> = lines.next().unwrap_or_default().split(' ').collect();
        let [method, target, version] = words[..] else { return Err(400) };
        if !version.starts_with("HTTP/1.") || !target.starts_with('/') {
            return Err(400);
        }
        if !matches!(method, "GET" | "HEAD") {
            return Err(405);
        }
        let path = target.split('?').next().unwrap_or_default().to_owned();
        let token = lines.filter_map(|line| line.split_once(':')).find_map(|(name, value)| {
            let (scheme, token) = value.trim().split_once(' ')?;
            let is_shown =
                name.eq_ignore_ascii_case("authorization") && scheme.eq_ignore_ascii_case("bearer");
            is_shown.then(|| token.trim().to_owned())
        });
        Ok(Self { path, is_head: method == "HEAD", token })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(head: &str) -> Option<Result<Request, u16>> {
        Request::read(head.as_bytes())
    }

    #[test]
    fn what_is_asked_for_is_found() {
        let asked = |path: &str, is_head, token: Option<&str>| {
            Some(Ok(Request { path: path.to_owned(), is_head, token: token.map(str::to_owned) }))
        };
        assert_eq!(read("GET /metrics?x=1 HTTP/1.1\r\nHost: h\r\n\r\n"), asked("/metrics", false, None));
        assert_eq!(
            read("HEAD / HTTP/1.0\r\nA: b\r\nauthorization:  bearer t0k\r\n\r\n"),
            asked("/", true, Some("t0k"))
        );
        assert_eq!(read("GET /healthz HTTP/1.1\n\n"), asked("/healthz", false, None), "as people type it");
        assert_eq!(read("GET / HTTP/1.1\r\nauthorization: Basic x\r\n\r\n"), asked("/", false, None));
    }

    #[test]
    fn garbage_is_a_bad_request_and_no_panic() {
        assert_eq!(read("GET /metrics HTTP/1.1\r\nHost: h\r\n"), None, "it goes on");
        for wrong in
            ["\r\n\r\n", "GET\r\n\r\n", "GET / HTTP/2\r\n\r\n", "GET x HTTP/1.1\r\n\r\n", "\n\n", "  \n\n"]
        {
            assert_eq!(read(wrong), Some(Err(400)), "{wrong:?}");
        }
        assert_eq!(read("POST /metrics HTTP/1.1\r\n\r\n"), Some(Err(405)));
        assert_eq!(Request::read(b"GET /\xff\xfe HTTP/1.1\r\n\r\n"), Some(Err(400)));
        for length in 0..600 {
            let bytes: Vec<u8> = (0..length).map(|_| fastrand::u8(..)).collect();
            let _ = Request::read(&bytes);
            let _ = Request::read(&[&bytes[..], b"\r\n\r\n"].concat());
        }
    }
}
