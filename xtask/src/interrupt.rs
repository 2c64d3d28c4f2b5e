//! Ctrl-C, SIGTERM and SIGHUP, turned into an ordinary error.
//!
//! The handler only raises a flag. Every wait in this program looks at the flag and returns [`Interrupted`],
//! so the servers are stopped by the same guards that stop them after a success, a failure or a panic: there
//! is one way out, not two.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, Result};

static INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// The user, or whoever runs us, asked us to stop.
#[derive(Debug)]
pub(crate) struct Interrupted;

impl fmt::Display for Interrupted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("interrupted by a signal")
    }
}

impl std::error::Error for Interrupted {}

/// Installs the handler. Call once, before anything is started.
pub(crate) fn listen() -> Result<()> {
    ctrlc::set_handler(|| {
        if !INTERRUPTED.swap(true, Ordering::SeqCst) {
            eprintln!("\nxtask: stopping, as asked by a signal; please wait");
        }
    })
    .context("cannot install the signal handler")
}

/// An error as soon as a signal has arrived.
pub(crate) fn check() -> Result<(), Interrupted> {
    if INTERRUPTED.load(Ordering::SeqCst) { Err(Interrupted) } else { Ok(()) }
}
