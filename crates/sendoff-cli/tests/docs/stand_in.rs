//! The program as documents call it. What runs until it is told to stop is told so once it has done what it is for.
//!
//! It stands before the real one in `PATH`, and is this very test: a link with another name. Another link is a client of SQLite, which not every machine has.

use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use sqlx::Connection as _;

/// Only what hangs takes so long.
const PATIENCE: Duration = Duration::from_secs(60);

const PROGRAM: &str = env!("CARGO_BIN_EXE_sendoff");

/// Makes `bin/sendoff` and `bin/sqlite` in a directory.
pub(crate) fn install(directory: &Path) {
    std::fs::create_dir(directory.join("bin")).unwrap();
    for name in ["bin/sendoff", "bin/sqlite"] {
        std::os::unix::fs::symlink(std::env::current_exe().unwrap(), directory.join(name)).unwrap();
    }
}

/// Stands in for the program, if it was called by its name.
pub(crate) fn run_if_asked() -> Option<ExitCode> {
    let mut arguments = std::env::args();
    let name = arguments.next()?;
    match Path::new(&name).file_name()?.to_str()? {
        "sqlite" => return Some(sqlite()),
        "sendoff" => {}
        _ => return None,
    }
    let arguments: Vec<String> = arguments.collect();
    if arguments.first().is_some_and(|command| command == "run") {
        return Some(relay(&arguments));
    }
    if arguments.iter().any(|argument| argument == "--watch") {
        return Some(watch(&arguments));
    }
    panic!("{}", Command::new(PROGRAM).args(arguments).exec());
}

/// Runs what is on standard input, on `shop.db`.
fn sqlite() -> ExitCode {
    let script = std::io::read_to_string(std::io::stdin()).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let done = runtime.block_on(async {
        let mut connection = sqlx::SqliteConnection::connect("sqlite://shop.db?mode=rwc").await?;
        sqlx::raw_sql(sqlx::AssertSqlSafe(script)).execute(&mut connection).await?;
        connection.close().await
    });
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

/// Runs until nothing of its targets is left to do.
fn relay(arguments: &[String]) -> ExitCode {
    let mut relay = Command::new(PROGRAM).args(arguments).stderr(Stdio::piped()).spawn().unwrap();
    let errors = BufReader::new(relay.stderr.take().unwrap()).lines();
    let (found, targets) = mpsc::channel();
    std::thread::spawn(move || {
        for line in errors.map_while(Result::ok) {
            eprintln!("{line}");
            if let Some(rest) = line.strip_prefix("relaying target \"") {
                let _ = found.send(rest.split('"').next().unwrap().to_owned());
            }
        }
    });
    // All are named before the first is relayed. None: it says why, and ends.
    let mut known: Vec<String> = targets.recv().into_iter().collect();
    let began = Instant::now();
    while !known.is_empty() {
        let is_done = is_done(arguments, &known);
        let count = known.len();
        known.extend(targets.try_iter());
        if is_done && known.len() == count {
            tell(&relay, Signal::TERM);
            break;
        }
        if began.elapsed() > PATIENCE {
            eprintln!("not all was delivered");
            let _ = relay.kill();
            break;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    code(&mut relay)
}

fn is_done(arguments: &[String], targets: &[String]) -> bool {
    let mut status = Command::new(PROGRAM);
    status.args(["status", "--json"]);
    for flag in ["--store", "--names", "--config"] {
        if let Some(at) = arguments.iter().position(|argument| argument == flag) {
            status.args(&arguments[at..=at + 1]);
        }
    }
    let output = status.output().unwrap();
    let status: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
    let is_waiting = |counts: &Value| {
        let is_ours = targets.iter().any(|target| counts["target"] == *target);
        is_ours && (counts["unprocessed"] != 0 || counts["processing"] != 0)
    };
    status["targets"].as_array().is_some_and(|all| !all.iter().any(is_waiting))
}

/// Runs until it has said something.
fn watch(arguments: &[String]) -> ExitCode {
    let mut watching = Command::new(PROGRAM).args(arguments).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(watching.stdout.take().unwrap()).lines();
    match lines.next() {
        Some(Ok(line)) => {
            let _ = writeln!(std::io::stdout(), "{line}");
            tell(&watching, Signal::TERM);
            watching.wait().unwrap();
            ExitCode::SUCCESS
        }
        _ => code(&mut watching),
    }
}

fn tell(child: &Child, signal: Signal) {
    let _ = kill_process(Pid::from_child(child), signal);
}

fn code(child: &mut Child) -> ExitCode {
    let status = child.wait().unwrap();
    status.code().and_then(|code| u8::try_from(code).ok()).map_or(ExitCode::FAILURE, ExitCode::from)
}
