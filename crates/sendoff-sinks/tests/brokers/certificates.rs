//! Authorities, and the certificates that they sign.

use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

/// A certificate and its key.
#[derive(Clone)]
pub(crate) struct Pair {
    pub(crate) certificate: PathBuf,
    pub(crate) key: PathBuf,
}

impl Pair {
    fn make(directory: &Path, name: &str, options: &[&str], signer: Option<&Self>) -> Self {
        let pair = Self {
            certificate: directory.join(format!("{name}.pem")),
            key: directory.join(format!("{name}.key")),
        };
        let mut command = Command::new("openssl");
        command
            .args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"])
            .args(["-days", "2", "-subj", &format!("/CN={name}"), "-addext"])
            .args(options)
            .arg("-out")
            .arg(&pair.certificate)
            .arg("-keyout")
            .arg(&pair.key);
        if let Some(signer) = signer {
            command.arg("-CA").arg(&signer.certificate).arg("-CAkey").arg(&signer.key);
        }
        let made = command.output().expect("the program openssl is installed");
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        pair
    }
}

/// Who signs certificates.
pub(crate) struct Authority {
    own: Pair,
    directory: TempDir,
}

impl Authority {
    pub(crate) fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let options =
            ["basicConstraints=critical,CA:TRUE", "-addext", "keyUsage=critical,keyCertSign,cRLSign"];
        Self { own: Pair::make(directory.path(), "authority", &options, None), directory }
    }

    /// The certificate that those are known by whom it has signed.
    pub(crate) fn file(&self) -> PathBuf {
        self.own.certificate.clone()
    }

    /// For the loopback address, as server and as client.
    pub(crate) fn sign(&self, name: &str) -> Pair {
        let options = [
            "subjectAltName=IP:127.0.0.1",
            "-addext",
            "basicConstraints=critical,CA:FALSE",
            "-addext",
            "extendedKeyUsage=serverAuth,clientAuth",
        ];
        Pair::make(self.directory.path(), name, &options, Some(&self.own))
    }
}
