//! The servers of one run: started together, stopped together.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use anyhow::{Result, anyhow, bail};

use crate::interrupt::Interrupted;
use crate::run_dir::RunDir;
use crate::server::{Cancelled, Durability, PortTaken, Running, Server, Site};

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
    pub(crate) fn start(
        servers: &[&'static dyn Server],
        keep: bool,
        durability: Durability,
    ) -> Result<Fleet> {
        let mut fleet = Fleet { waves: Vec::new(), run_dir: RunDir::create(keep)? };
        if keep {
            eprintln!("data and logs stay in {}", fleet.run_dir.path().display());
        }
        for has_upstream in [false, true] {
            let wave: Vec<_> = servers
                .iter()
                .copied()
                .filter(|server| server.upstream().is_some() == has_upstream)
                .collect();
            let earlier = fleet.waves.first().map_or(&[][..], Vec::as_slice);
            let started = start_wave(&wave, earlier, &fleet.run_dir, durability)?;
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

fn start_wave(
    wave: &[&'static dyn Server],
    earlier: &[Running],
    run_dir: &RunDir,
    durability: Durability,
) -> Result<Vec<Running>> {
    let cancelled = AtomicBool::new(false);
    let results: Vec<Result<Running>> = thread::scope(|scope| {
        let starting: Vec<_> = wave
            .iter()
            .map(|&server| {
                let cancelled = &cancelled;
                scope.spawn(move || {
                    let result = start_one(server, earlier, run_dir, cancelled, durability);
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
    durability: Durability,
) -> Result<Running> {
    let mut attempt = 1;
    loop {
        let dir = match attempt {
            1 => run_dir.subdirectory(server.name())?,
            _ => run_dir.subdirectory(&format!("{}-{attempt}", server.name()))?,
        };
        match server.start(&Site { durability, dir: &dir, earlier, cancelled }) {
            Err(error) if attempt < ATTEMPTS_MAX && error.is::<PortTaken>() => {
                eprintln!("{}: {PortTaken}, trying others", server.name());
                attempt += 1;
            }
            Ok(mut running) => {
                running.nodes.iter_mut().for_each(|node| node.process.mark_up());
                return Ok(running);
            }
            Err(error) => return Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::process::Command;
    use std::sync::Mutex;
    use std::time::{Duration, Instant};

    use nix::sys::signal::Signal;

    use super::*;
    use crate::process::Process;
    use crate::requirement::Requirement;
    use crate::server::Node;

    /// A program that does what a shell script says, in place of a server.
    struct Script {
        name: &'static str,
        /// Run in the server's directory; `ready` is the file that says it is ready.
        script: &'static str,
        started: Mutex<Vec<u32>>,
    }

    impl Script {
        const fn new(name: &'static str, script: &'static str) -> Script {
            Script { name, script, started: Mutex::new(Vec::new()) }
        }
    }

    impl Server for Script {
        fn name(&self) -> &'static str {
            self.name
        }

        fn requirements(&self) -> Vec<Requirement> {
            Vec::new()
        }

        fn start(&self, site: &Site<'_>) -> Result<Running> {
            let mut command = Command::new("/bin/sh");
            command.current_dir(site.dir).args(["-c", self.script]);
            let mut process = Process::spawn(&mut command, site.dir.join("server.log"), Signal::SIGTERM)?;
            self.started.lock().unwrap().push(process.id());
            site.await_ready(&mut process, Duration::from_secs(20), || {
                anyhow::ensure!(site.dir.join("ready").exists(), "not ready");
                Ok(())
            })?;
            let node = Node { process, port: 1, dir: site.dir.to_owned() };
            let env = vec![("SENDOFF_TEST_SCRIPT", site.dir.display().to_string())];
            Ok(Running { name: self.name, version: "1".to_owned(), nodes: vec![node], env })
        }
    }

    fn all_gone(server: &Script) -> bool {
        let started = server.started.lock().unwrap();
        !started.is_empty() && started.iter().all(|pid| !Path::new(&format!("/proc/{pid}")).exists())
    }

    #[test]
    fn a_fleet_tells_where_it_is_and_leaves_nothing_behind() {
        static GOOD: Script = Script::new("good", "touch ready; exec sleep 1000");
        let fleet = Fleet::start(&[&GOOD], false, Durability::Scratch).unwrap();
        let environment = fleet.environment();
        let dir = environment[0].1.clone();
        assert_eq!(environment[0].0, "SENDOFF_TEST_SCRIPT");
        assert_eq!(environment[1], ("SENDOFF_TEST_REQUIRE".to_owned(), "good".to_owned()));
        assert!(Path::new(&dir).exists());
        drop(fleet);
        assert!(all_gone(&GOOD) && !Path::new(&dir).exists());
    }

    #[test]
    fn one_failure_stops_the_others_and_shows_the_log() {
        static GOOD: Script = Script::new("good", "touch ready; exec sleep 1000");
        static SLOW: Script = Script::new("slow", "exec sleep 1000");
        static BROKEN: Script = Script::new("broken", "sleep 0.3; echo the disk is on fire; exit 3");
        let started_at = Instant::now();
        let Err(error) = Fleet::start(&[&GOOD, &SLOW, &BROKEN], false, Durability::Scratch) else {
            panic!("it started")
        };
        let error = format!("{error:#}");
        assert!(error.contains("cannot start broken: it ended (exit status: 3)"), "{error}");
        assert!(error.contains("the disk is on fire") && !error.contains("slow"), "{error}");
        assert!(all_gone(&GOOD) && all_gone(&SLOW) && all_gone(&BROKEN));
        assert!(started_at.elapsed() < Duration::from_secs(10), "nobody waits for the slow one");
    }

    #[test]
    fn a_taken_port_is_tried_again_in_a_fresh_directory() {
        // The directory of the second attempt has a number, which makes this script succeed.
        static UNLUCKY: Script = Script::new(
            "unlucky",
            r#"case "$PWD" in *-2) touch ready; exec sleep 1000;; esac; echo "bind(): Address already in use"; exit 1"#,
        );
        let fleet = Fleet::start(&[&UNLUCKY], false, Durability::Scratch).unwrap();
        assert_eq!(UNLUCKY.started.lock().unwrap().len(), 2);
        assert_eq!(fleet.running().count(), 1);
    }

    #[test]
    fn a_port_that_is_always_taken_is_an_error() {
        static HOPELESS: Script = Script::new("hopeless", r#"echo "bind(): Address already in use"; exit 1"#);
        let Err(error) = Fleet::start(&[&HOPELESS], false, Durability::Scratch) else { panic!("it started") };
        assert!(format!("{error:#}").contains("its port was taken by another program"));
        assert_eq!(HOPELESS.started.lock().unwrap().len(), ATTEMPTS_MAX);
    }
}
