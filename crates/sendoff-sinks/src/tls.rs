//! Whom a sink trusts.

use std::path::Path;
use std::sync::Arc;

use rustls::crypto::ring;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use rustls::{ClientConfig, RootCertStore};
use rustls_platform_verifier::BuilderVerifierExt as _;

/// Who is trusted.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Trust<'f> {
    /// Who the system trusts.
    System,
    /// The authorities of a file, and nobody else.
    File(&'f Path),
    /// For a client that is never to meet anybody who would have to be trusted.
    #[cfg(feature = "http")]
    Nobody,
}

impl<'f> Trust<'f> {
    pub(crate) fn of(ca_file: Option<&'f Path>) -> Self {
        ca_file.map_or(Self::System, Self::File)
    }
}

/// How a client encrypts. The provider of the cryptography is given here, since the process may have none.
///
/// # Errors
/// What the file has that is wrong.
pub(crate) fn client(trust: Trust<'_>) -> Result<ClientConfig, String> {
    let provider = Arc::new(ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let builder = builder.map_err(|error| error.to_string())?;
    let builder = match trust {
        Trust::File(file) => builder.with_root_certificates(authorities(file)?),
        #[cfg(feature = "http")]
        Trust::Nobody => builder.with_root_certificates(RootCertStore::empty()),
        Trust::System => {
            builder.with_platform_verifier().map_err(|error| format!("the system trusts nobody: {error}"))?
        }
    };
    Ok(builder.with_no_client_auth())
}

fn authorities(file: &Path) -> Result<RootCertStore, String> {
    let wrong = |error: String| format!("`ca_file` {}: {error}; it has certificates as PEM", file.display());
    let mut store = RootCertStore::empty();
    for certificate in CertificateDer::pem_file_iter(file).map_err(|error| wrong(error.to_string()))? {
        let certificate = certificate.map_err(|error| wrong(error.to_string()))?;
        store.add(certificate).map_err(|error| wrong(error.to_string()))?;
    }
    if store.is_empty() { Err(wrong("no certificates".to_owned())) } else { Ok(store) }
}
