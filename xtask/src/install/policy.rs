//! Keeps packages from starting their services while we install them.
//!
//! Installing a database server on Debian starts it, on its standard port. A developer who runs the tests
//! did not ask for that, so for the time of the install a policy file forbids it.

use std::fs::{self, OpenOptions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

/// 101 is Debian's code for "action forbidden by policy".
const FORBID: &str = "#!/bin/sh
# Put here by sendoff's `cargo xtask` while it installs packages, and removed afterwards.
# If you find it with no install running, it is a leftover: remove it.
exit 101
";

/// Services stay down as long as this lives.
#[derive(Debug)]
pub(super) struct NoServices {
    /// Only when the file is ours to remove.
    placed: Option<PathBuf>,
}

impl NoServices {
    /// Puts the policy in place, unless the machine has one of its own, which is left alone.
    pub(super) fn place(path: &Path) -> Result<NoServices> {
        let file = OpenOptions::new().write(true).create_new(true).mode(0o755).open(path);
        match file {
            Ok(mut file) => {
                let guard = NoServices { placed: Some(path.to_owned()) };
                file.write_all(FORBID.as_bytes())
                    .with_context(|| format!("cannot write the policy {}", path.display()))?;
                Ok(guard)
            }
            Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(NoServices { placed: None }),
            Err(error) => Err(error).with_context(|| format!("cannot create the policy {}", path.display())),
        }
    }
}

impl Drop for NoServices {
    fn drop(&mut self) {
        if let Some(path) = &self.placed
            && let Err(error) = fs::remove_file(path)
        {
            eprintln!("xtask: cannot remove {}: {error}; remove it by hand", path.display());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn the_policy_is_executable_and_goes_away() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("policy-rc.d");
        let guard = NoServices::place(&path).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o700, 0o700);
        assert!(fs::read_to_string(&path).unwrap().contains("exit 101"));
        drop(guard);
        assert!(!path.exists());
    }

    #[test]
    fn a_policy_of_the_machines_own_is_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("policy-rc.d");
        fs::write(&path, "theirs").unwrap();
        drop(NoServices::place(&path).unwrap());
        assert_eq!(fs::read_to_string(&path).unwrap(), "theirs");
    }
}
