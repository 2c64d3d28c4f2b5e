//! The directory of one run: data, sockets and logs of every server in it.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use tempfile::TempDir;

/// Removed when dropped, unless the user asked to keep it.
#[derive(Debug)]
pub(crate) struct RunDir {
    dir: TempDir,
}

impl RunDir {
    /// A fresh directory below the system's temporary directory. Other accounts may pass through it: when
    /// we are root, the servers run as accounts of their own.
    pub(crate) fn create(keep: bool) -> Result<RunDir> {
        let mut dir = tempfile::Builder::new().prefix("sendoff-").tempdir().context(
            "cannot create a directory for the servers; set TMPDIR to a place that can be written",
        )?;
        fs::set_permissions(dir.path(), Permissions::from_mode(0o755))
            .with_context(|| format!("cannot open up {}", dir.path().display()))?;
        dir.disable_cleanup(keep);
        Ok(RunDir { dir })
    }

    /// Its path.
    pub(crate) fn path(&self) -> &Path {
        self.dir.path()
    }

    /// Makes a directory inside.
    pub(crate) fn subdirectory(&self, name: &str) -> Result<PathBuf> {
        let path = self.dir.path().join(name);
        fs::create_dir(&path).with_context(|| format!("cannot create {}", path.display()))?;
        Ok(path)
    }
}
