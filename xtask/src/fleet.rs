//! The servers of one run: started together, stopped together.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use anyhow::{Result, anyhow, bail};

use crate::interrupt::Interrupted;
use crate::run_dir::RunDir;
use crate::server::{Cancelled, PortTaken, Running, Server, Site};

/// How often a server is started on new ports when somebody was quicker to take the old ones.
const ATTEMPTS_MAX: usize = 3;
/// What the variables that tell the tests about servers begin with.
const VARIABLE_PREFIX: &str = "SENDOFF_TEST_";

/// Running servers; dropping it stops them all and removes their directory.
pub(crate) struct Fleet {
    /// In the order they were started: a server in front of another one is in a later wave.
    waves: Vec<Vec<Running>>,
    // Dropped last: the processes end before their directory goes.
    run_dir: RunDir,
}

impl Fleet {
    /// Starts the servers in parallel, those in front of another one after it. When one fails, the others
    /// are stopped, and the error has the end of its log.
    pub(crate) fn start(servers: &[&'static dyn Server], keep: bool) -> Result<Fleet> {
        let mut fleet = Fleet { waves: Vec::new(), run_dir: RunDir::create(keep)? };
        if keep {
            eprintln!("data and logs stay in {}", fleet.run_dir.path().display());
        }
        for stands_behind in [false, true] {
            let wave: Vec<_> =
                servers.iter().copied().filter(|server| server.behind().is_some() == stands_behind).collect();
            let earlier = fleet.waves.first().map_or(&[][..], Vec::as_slice);
            let started = start_wave(&wave, earlier, &fleet.run_dir)?;
            fleet.waves.push(started);
        }
        Ok(fleet)
    }

    /// The servers that answer.
    pub(crate) fn running(&self) -> impl Iterator<Item = &Running> {
        self.waves.iter().flatten()
    }

    /// The variables by which the tests find the servers, and know which ones must be there.
    pub(crate) fn environment(&self) -> Vec<(String, String)> {
        let names: Vec<&str> = self.running().map(|running| running.name).collect();
        let urls = self.running().flat_map(|running| running.env.iter());
        urls.map(|(name, value)| ((*name).to_owned(), value.clone()))
            .chain([(format!("{VARIABLE_PREFIX}REQUIRE"), names.join(","))])
            .collect()
    }

    /// The variables of this kind that we were started with: they belong to servers of somebody else.
    pub(crate) fn foreign_variables() -> Vec<String> {
        std::env::vars_os()
            .filter_map(|(name, _)| name.into_string().ok())
            .filter(|name| name.starts_with(VARIABLE_PREFIX))
            .collect()
    }
}

impl Drop for Fleet {
    fn drop(&mut self) {
        // In parallel, as a shutdown takes seconds; a server in front of another one goes first.
        while let Some(mut wave) = self.waves.pop() {
            thread::scope(|scope| {
                for running in &mut wave {
                    scope.spawn(|| running.stop());
                }
            });
        }
    }
}

fn start_wave(wave: &[&'static dyn Server], earlier: &[Running], run_dir: &RunDir) -> Result<Vec<Running>> {
    let cancelled = AtomicBool::new(false);
    let results: Vec<Result<Running>> = thread::scope(|scope| {
        let starting: Vec<_> = wave
            .iter()
            .map(|&server| {
                let cancelled = &cancelled;
                scope.spawn(move || {
                    let result = start_one(server, earlier, run_dir, cancelled);
                    if result.is_err() {
                        cancelled.store(true, Ordering::SeqCst);
                    }
                    result
                })
            })
            .collect();
        starting
            .into_iter()
            .map(|thread| thread.join().unwrap_or_else(|_| Err(anyhow!("the thread starting it panicked"))))
            .collect()
    });
    collect(wave, results)
}

/// All or nothing: what did start is stopped by being dropped here.
fn collect(wave: &[&'static dyn Server], results: Vec<Result<Running>>) -> Result<Vec<Running>> {
    let mut running = Vec::new();
    let mut failures = Vec::new();
    for (server, result) in wave.iter().zip(results) {
        match result {
            Ok(started) => running.push(started),
            Err(error) if error.is::<Interrupted>() => return Err(error),
            Err(error) if error.is::<Cancelled>() => {}
            Err(error) => failures.push(format!("{}: {error:#}", server.name())),
        }
    }
    if !failures.is_empty() {
        bail!(
            "cannot start {}\n(--keep keeps data and logs; --only NAME,… leaves a server out)",
            failures.join("\n")
        );
    }
    Ok(running)
}

fn start_one(
    server: &'static dyn Server,
    earlier: &[Running],
    run_dir: &RunDir,
    cancelled: &AtomicBool,
) -> Result<Running> {
    let mut attempt = 1;
    loop {
        let dir = match attempt {
            1 => run_dir.subdirectory(server.name())?,
            _ => run_dir.subdirectory(&format!("{}-{attempt}", server.name()))?,
        };
        match server.start(&Site { dir: &dir, earlier, cancelled }) {
            Err(error) if attempt < ATTEMPTS_MAX && error.is::<PortTaken>() => {
                eprintln!("{}: {PortTaken}, trying others", server.name());
                attempt += 1;
            }
            result => return result,
        }
    }
}
