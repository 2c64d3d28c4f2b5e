//! Who a server runs as.
//!
//! PostgreSQL refuses to run as root, and under root MariaDB's state transfer between cluster nodes changes
//! to `nobody` and fails. So when we are root each server runs as the account its Debian package made;
//! otherwise it simply runs as ourselves.

use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};
use nix::unistd::{User, geteuid};

/// Whether we may install packages and change accounts.
pub(crate) fn is_root() -> bool {
    geteuid().is_root()
}

/// Whether the system knows this account.
pub(crate) fn exists(name: &str) -> bool {
    matches!(User::from_name(name), Ok(Some(_)))
}

/// The account a server and its helper programs run as.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Account {
    /// Whoever started us.
    Ourselves,
    /// A system account, which only root can change to.
    System {
        /// Its user id.
        uid: u32,
        /// Its primary group.
        gid: u32,
    },
}

impl Account {
    /// `name` when we are root, ourselves otherwise.
    pub(crate) fn for_server(name: &str) -> Result<Account> {
        if !is_root() {
            return Ok(Account::Ourselves);
        }
        match User::from_name(name).with_context(|| format!("cannot look up the account {name}"))? {
            Some(user) => Ok(Account::System { uid: user.uid.as_raw(), gid: user.gid.as_raw() }),
            None => bail!(
                "the account {name} does not exist and a server must not run as root; \
                 run `cargo xtask services --install-only`, whose packages create it"
            ),
        }
    }

    /// Makes a file or directory belong to this account.
    pub(crate) fn own(&self, path: &Path) -> Result<()> {
        if let Account::System { uid, gid } = *self {
            std::os::unix::fs::chown(path, Some(uid), Some(gid))
                .with_context(|| format!("cannot hand {} over to uid {uid}", path.display()))?;
        }
        Ok(())
    }

    /// A command that runs as this account, in `dir`, with nothing of our own environment: a developer's
    /// locale, `PG*` variables or preloaded libraries must not change what the tests see.
    pub(crate) fn command(&self, program: &Path, dir: &Path) -> Command {
        let mut command = Command::new(program);
        command
            .current_dir(dir)
            .env_clear()
            .env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")
            .env("LC_ALL", "C.UTF-8")
            .env("TZ", "UTC")
            .env("HOME", dir);
        if let Account::System { uid, gid } = *self {
            command.uid(uid).gid(gid);
        }
        command
    }
}
