//! The directory of one run: data, sockets and logs of every server in it.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result};

const REMOVE_ATTEMPTS_MAX: u32 = 20;
const REMOVE_PAUSE: Duration = Duration::from_millis(250);

/// Removed when dropped, unless the user asked to keep it.
#[derive(Debug)]
pub(crate) struct RunDir {
    path: PathBuf,
    keep: bool,
}

impl RunDir {
    /// A fresh directory below the system's temporary directory. Other accounts may pass through it: when
    /// we are root, the servers run as accounts of their own.
    pub(crate) fn create(keep: bool) -> Result<RunDir> {
        let dir = tempfile::Builder::new().prefix("sendoff-").tempdir().context(
            "cannot create a directory for the servers; set TMPDIR to a place that can be written",
        )?;
        let run_dir = RunDir { path: dir.keep(), keep };
        fs::set_permissions(&run_dir.path, Permissions::from_mode(0o755))
            .with_context(|| format!("cannot open up {}", run_dir.path.display()))?;
        Ok(run_dir)
    }

    /// Its path.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Makes a directory inside.
    pub(crate) fn subdirectory(&self, name: &str) -> Result<PathBuf> {
        let path = self.path.join(name);
        fs::create_dir(&path).with_context(|| format!("cannot create {}", path.display()))?;
        Ok(path)
    }
}

impl Drop for RunDir {
    /// Tries for a while: the scripts by which a cluster node gets its data notice the end of their server
    /// only a second later, and may write until then.
    fn drop(&mut self) {
        if self.keep {
            return;
        }
        for attempt in 1.. {
            match fs::remove_dir_all(&self.path) {
                Err(_) if !self.path.exists() => return,
                Err(_) if attempt < REMOVE_ATTEMPTS_MAX => thread::sleep(REMOVE_PAUSE),
                Err(error) => {
                    eprintln!("xtask: cannot remove {}: {error}; remove it by hand", self.path.display());
                    return;
                }
                Ok(()) => return,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_can_be_passed_through_and_goes_away_with_all_that_is_in_it() {
        let run_dir = RunDir::create(false).unwrap();
        let path = run_dir.path().to_owned();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o755);
        fs::write(run_dir.subdirectory("server").unwrap().join("log"), "").unwrap();
        drop(run_dir);
        assert!(!path.exists());
    }

    #[test]
    fn it_stays_when_asked_to() {
        let run_dir = RunDir::create(true).unwrap();
        let path = run_dir.path().to_owned();
        drop(run_dir);
        assert!(path.exists());
        fs::remove_dir_all(path).unwrap();
    }
}
