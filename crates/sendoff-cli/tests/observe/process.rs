//! A relay as a process, its log and its admin listener.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

/// Long enough for anything that is going to happen.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// A relay, which does not outlive its test.
pub(crate) struct Process {
    child: Child,
    log: Arc<Mutex<Vec<String>>>,
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Waits until it is so.
pub(crate) fn until<T>(what: &str, mut found: impl FnMut() -> Option<T>) -> T {
    let began = Instant::now();
    loop {
        if let Some(found) = found() {
            return found;
        }
        assert!(began.elapsed() < PATIENCE, "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

impl Process {
    pub(crate) fn start(command: &mut Command) -> Self {
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let errors = BufReader::new(child.stderr.take().unwrap());
        let log = Arc::new(Mutex::new(Vec::new()));
        let lines = Arc::clone(&log);
        std::thread::spawn(move || {
            errors.lines().map_while(Result::ok).for_each(|line| lines.lock().unwrap().push(line))
        });
        Self { child, log }
    }

    /// What it has logged so far.
    pub(crate) fn log(&self) -> Vec<String> {
        self.log.lock().unwrap().clone()
    }

    /// Waits for a line that has these words in it.
    pub(crate) fn said(&mut self, words: &str) -> String {
        until(words, || {
            let found = self.log().into_iter().find(|line| line.contains(words));
            if found.is_none() {
                let ended = self.child.try_wait().unwrap();
                assert!(ended.is_none(), "it ended ({ended:?}) before it said {words:?}: {:#?}", self.log());
            }
            found
        })
    }

    /// Where its admin listener is.
    pub(crate) fn admin(&mut self) -> Admin {
        let line = self.said("figures on http://");
        let address = line.split("http://").nth(1).unwrap().split('/').next().unwrap();
        Admin(address.parse().unwrap())
    }

    pub(crate) fn is_running(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Tells it to stop; how it ended, and how long that took.
    pub(crate) fn stop(&mut self) -> (ExitStatus, Duration) {
        let began = Instant::now();
        self.signal(Signal::TERM);
        let status = until("it ends", || self.child.try_wait().unwrap());
        (status, began.elapsed())
    }
}

/// An admin listener.
#[derive(Clone, Copy)]
pub(crate) struct Admin(pub(crate) SocketAddr);

impl Admin {
    pub(crate) fn connect(self) -> TcpStream {
        let stream = TcpStream::connect(self.0).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream
    }

    /// What it answers to these bytes: the status, and all of it.
    pub(crate) fn send(self, bytes: &[u8]) -> (u16, String) {
        let mut stream = self.connect();
        // It may have heard enough before all is sent.
        let _ = stream.write_all(bytes);
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        let answer = String::from_utf8(answer).unwrap();
        let status = answer.get(9..12).and_then(|status| status.parse().ok()).unwrap_or_default();
        (status, answer)
    }

    pub(crate) fn get(self, path: &str) -> (u16, String) {
        let (status, answer) = self.send(format!("GET {path} HTTP/1.1\r\nHost: x\r\n\r\n").as_bytes());
        (status, answer.split_once("\r\n\r\n").map(|(_, body)| body.to_owned()).unwrap_or_default())
    }

    /// Every value of `/metrics`, by its name with its labels.
    pub(crate) fn figures(self) -> BTreeMap<String, f64> {
        let (status, page) = self.get("/metrics");
        assert_eq!(status, 200, "{page}");
        let values = page.lines().filter(|line| !line.starts_with('#'));
        values
            .map(|line| {
                let (name, value) = line.rsplit_once(' ').unwrap();
                (name.to_owned(), value.parse().unwrap())
            })
            .collect()
    }

    /// A figure of the target `default`, or of another.
    pub(crate) fn figure(self, metric: &str, target: &str) -> f64 {
        let name = format!("{metric}{{store=\"default\",target=\"{target}\"}}");
        let figures = self.figures();
        *figures.get(&name).unwrap_or_else(|| panic!("{name} is not among {figures:#?}"))
    }
}
