//! Free loopback ports.
//!
//! The kernel names a free port and we give it back at once, so somebody else may take it before the server
//! binds it. The window is small and closed by [`crate::fleet`], which starts the server again on new ports.

use std::collections::BTreeSet;
use std::net::{Ipv4Addr, TcpListener};
use std::sync::{Mutex, PoisonError};

use anyhow::{Context, Result, bail};

const ATTEMPTS_MAX: usize = 100;

/// Ports named before: servers start in parallel, and a port that is free for the kernel may already be
/// meant for another server that has not bound it yet.
static NAMED: Mutex<BTreeSet<u16>> = Mutex::new(BTreeSet::new());

/// A port on 127.0.0.1 that nobody listens on, and that this run has not named before.
pub(crate) fn free() -> Result<u16> {
    for _ in 0..ATTEMPTS_MAX {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("cannot bind a loopback port")?;
        let port = listener.local_addr().context("cannot read the port just bound")?.port();
        if NAMED.lock().unwrap_or_else(PoisonError::into_inner).insert(port) {
            return Ok(port);
        }
    }
    bail!("the kernel named only ports in use, {ATTEMPTS_MAX} times: are there too many open sockets?")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_is_named_once() {
        let ports: BTreeSet<u16> = (0..50).map(|_| free().unwrap()).collect();
        assert_eq!(ports.len(), 50);
    }
}
