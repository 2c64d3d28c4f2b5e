//! A broker's process: started, killed, held and started again at the same address.

use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// Only one that does not start at all takes so long, on a machine that has more to do.
const PATIENCE: Duration = Duration::from_secs(90);

/// One process. It ends with this.
pub(crate) struct Broker {
    make: Box<dyn Fn() -> Command + Send + Sync>,
    child: Mutex<Option<Child>>,
}

impl Broker {
    pub(crate) fn new(make: impl Fn() -> Command + Send + Sync + 'static) -> Self {
        Self { make: Box::new(make), child: Mutex::default() }
    }

    pub(crate) fn start(&self) {
        let started = (self.make)().stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        *self.child.lock().unwrap() = Some(started.expect("the broker is installed"));
    }

    /// It has ended already, if it has.
    fn has_ended(&self) -> bool {
        self.child.lock().unwrap().as_mut().is_none_or(|child| child.try_wait().unwrap().is_some())
    }

    /// Waits until it answers. False: it has ended, since somebody else was faster to take its port.
    pub(crate) async fn until(&self, is_ready: impl Fn() -> bool) -> bool {
        let began = Instant::now();
        while !is_ready() {
            if self.has_ended() {
                return false;
            }
            assert!(began.elapsed() < PATIENCE, "it does not answer");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        true
    }

    pub(crate) fn kill(&self) {
        if let Some(mut child) = self.child.lock().unwrap().take() {
            let _ = child.kill();
            child.wait().unwrap();
        }
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.lock().unwrap().as_ref().expect("it runs").id()
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(i32::try_from(self.id()).unwrap()), signal).unwrap();
    }

    pub(crate) fn hold(&self, held: bool) {
        let id = self.id();
        self.signal(if held { Signal::SIGSTOP } else { Signal::SIGCONT });
        // Its threads stop one after the other.
        while held && !threads(id).iter().all(|state| state == "T") {
            std::thread::yield_now();
        }
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        self.kill();
    }
}

/// What each thread of a process does.
fn threads(id: u32) -> Vec<String> {
    let tasks = std::fs::read_dir(format!("/proc/{id}/task")).unwrap();
    let state = |task: std::fs::DirEntry| {
        let stat = std::fs::read_to_string(task.path().join("stat")).ok()?;
        // Behind the name, which may have anything in it.
        stat.rsplit_once(") ")?.1.split(' ').next().map(str::to_owned)
    };
    tasks.filter_map(|task| state(task.ok()?)).collect()
}

/// Neither there nor required.
pub(crate) fn is_missing(name: &str, variables: &[&str]) -> bool {
    let required = std::env::var("SENDOFF_TEST_REQUIRE").unwrap_or_default();
    let is_required = required.split(',').any(|required| required == name || required == "all");
    !is_required && variables.iter().any(|variable| std::env::var_os(variable).is_none())
}

/// Where a program is.
pub(crate) fn program(variable: &str) -> String {
    std::env::var(variable).unwrap_or_else(|_| panic!("it is required, but {variable} is not set"))
}

/// A port that nobody has now.
pub(crate) fn free_port() -> u16 {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap().port()
}

/// A certificate for the loopback address that nobody but itself has signed, and its key.
pub(crate) fn certificate(directory: &Path) -> (PathBuf, PathBuf) {
    let (certificate, key) = (directory.join("certificate.pem"), directory.join("key.pem"));
    let made = Command::new("openssl")
        .args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"])
        .args(["-days", "2", "-subj", "/CN=receiver", "-addext", "subjectAltName=IP:127.0.0.1"])
        .args(["-addext", "basicConstraints=critical,CA:FALSE", "-out"])
        .arg(&certificate)
        .arg("-keyout")
        .arg(&key)
        .output()
        .expect("the program openssl is installed");
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    (certificate, key)
}
