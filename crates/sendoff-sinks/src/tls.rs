//! Whom a sink trusts, and who it is itself.

use std::error::Error as StdError;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{AlertDescription, CertificateError, ClientConfig, RootCertStore};
use rustls_platform_verifier::BuilderVerifierExt as _;

#[cfg(any(feature = "mqtt", feature = "redis"))]
use crate::unusable::{REACHED, Unusable};

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

/// The files of a configuration. They are read for each connection anew, where the client lets them be.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Files<'f> {
    ca: Option<&'f Path>,
    certificate: Option<&'f Path>,
    key: Option<&'f Path>,
}

impl<'f> Files<'f> {
    pub(crate) fn new(
        ca: &'f Option<PathBuf>,
        certificate: &'f Option<PathBuf>,
        key: &'f Option<PathBuf>,
    ) -> Self {
        Self { ca: ca.as_deref(), certificate: certificate.as_deref(), key: key.as_deref() }
    }

    #[cfg(any(
        feature = "inbox",
        feature = "mqtt",
        feature = "nats",
        feature = "rabbitmq",
        feature = "redis"
    ))]
    pub(crate) fn are_given(self) -> bool {
        self.ca.is_some() || self.certificate.is_some() || self.key.is_some()
    }

    /// # Errors
    /// They are given, and the connection is not encrypted: who gives them wants it to be.
    #[cfg(any(feature = "mqtt", feature = "rabbitmq", feature = "redis"))]
    pub(crate) fn check_unused(self, scheme: &str) -> Result<(), String> {
        if !self.are_given() {
            return Ok(());
        }
        Err(format!(
            "it has `ca_file` or a client certificate, but its URL is not encrypted; give {scheme}://"
        ))
    }

    /// Those whom the file has, or the system.
    pub(crate) fn trust(self) -> Trust<'f> {
        self.ca.map_or(Trust::System, Trust::File)
    }

    /// How a client encrypts.
    ///
    /// # Errors
    /// What a file has that is wrong.
    pub(crate) fn client(self) -> Result<ClientConfig, String> {
        client(self.trust(), self.identity()?)
    }

    /// # Errors
    /// One of the two is given without the other.
    pub(crate) fn identity(self) -> Result<Option<Identity<'f>>, String> {
        match (self.certificate, self.key) {
            (Some(certificate), Some(key)) => Ok(Some(Identity { certificate, key })),
            (None, None) => Ok(None),
            _ => {
                Err("`client_cert_file` and `client_key_file` go together: give both, or neither".to_owned())
            }
        }
    }
}

/// A certificate and its key, by which a server knows a client.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Identity<'f> {
    certificate: &'f Path,
    key: &'f Path,
}

/// How a client encrypts. The provider of the cryptography is given here, since the process may have none.
///
/// # Errors
/// What a file has that is wrong.
pub(crate) fn client(trust: Trust<'_>, identity: Option<Identity<'_>>) -> Result<ClientConfig, String> {
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
    let Some(Identity { certificate, key }) = identity else { return Ok(builder.with_no_client_auth()) };
    let chain = certificates("client_cert_file", certificate)?;
    // Its text says what was expected, and nothing of the key.
    let read = PrivateKeyDer::from_pem_file(key).map_err(|error| {
        format!("`client_key_file` {}: {error}; it has a key as PEM, without a password", key.display())
    })?;
    builder.with_client_auth_cert(chain, read).map_err(|error| {
        format!("`client_cert_file` {}: {error}; is the key its own?", certificate.display())
    })
}

fn certificates(field: &str, file: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let wrong = |error: String| format!("`{field}` {}: {error}; it has certificates as PEM", file.display());
    let read = CertificateDer::pem_file_iter(file).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let read = read.map_err(|error| wrong(error.to_string()))?;
    if read.is_empty() { Err(wrong("no certificates".to_owned())) } else { Ok(read) }
}

fn authorities(file: &Path) -> Result<RootCertStore, String> {
    let mut store = RootCertStore::empty();
    for certificate in certificates("ca_file", file)? {
        let added = store.add(certificate);
        added
            .map_err(|error| format!("`ca_file` {}: {error}; it has certificates as PEM", file.display()))?;
    }
    Ok(store)
}

/// Encrypts a connection to this host.
///
/// # Errors
/// Why not, and what to do.
#[cfg(any(feature = "mqtt", feature = "redis"))]
pub(crate) async fn encrypt(
    stream: tokio::net::TcpStream,
    host: &str,
    config: Arc<ClientConfig>,
) -> Result<tokio_rustls::client::TlsStream<tokio::net::TcpStream>, Unusable> {
    let name = rustls::pki_types::ServerName::try_from(host.to_owned())
        .map_err(|_| "its name is none that a certificate can have".to_owned())?;
    let connecting = tokio_rustls::TlsConnector::from(config).connect(name, stream).await;
    connecting.map_err(|error| match hint(&error) {
        Some(hint) => Unusable::Wrong(format!("{error}{hint}")),
        None => Unusable::Away(format!("{error}{REACHED}")),
    })
}

/// What to do, if the error is one of encryption.
pub(crate) fn hint(error: &(dyn StdError + 'static)) -> Option<&'static str> {
    use AlertDescription as Alert;
    use CertificateError as Certificate;
    Some(match cause(error)? {
        rustls::Error::InvalidCertificate(
            Certificate::NotValidForName | Certificate::NotValidForNameContext { .. },
        ) => "; its certificate is for another name than the one in its URL",
        rustls::Error::InvalidCertificate(_) => "; who signed its certificate can be given as `ca_file`",
        rustls::Error::AlertReceived(Alert::CertificateRequired | Alert::HandshakeFailure) => {
            "; it may want to know who asks: give `client_cert_file` and `client_key_file`"
        }
        rustls::Error::AlertReceived(
            Alert::UnknownCA
            | Alert::BadCertificate
            | Alert::CertificateExpired
            | Alert::CertificateRevoked
            | Alert::CertificateUnknown
            | Alert::UnsupportedCertificate
            | Alert::AccessDenied
            | Alert::DecryptError,
        ) => "; it does not take the certificate of `client_cert_file`",
        _ => "; does it speak TLS there?",
    })
}

/// The error of encryption that an error came from, if it came from one.
fn cause<'e>(error: &'e (dyn StdError + 'static)) -> Option<&'e rustls::Error> {
    if let Some(cause) = error.downcast_ref() {
        return Some(cause);
    }
    // Neither one that is shared nor an I/O error names the one inside of it as its source.
    if let Some(shared) = error.downcast_ref::<Arc<dyn StdError + Send + Sync>>() {
        return cause(&**shared);
    }
    let inner = error.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref);
    inner.and_then(|inner| cause(inner)).or_else(|| cause(error.source()?))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::io;

    use super::*;

    #[test]
    fn a_file_that_is_none_is_named() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("file.pem");
        std::fs::write(&file, "s3cret").unwrap();
        let nowhere = Path::new("/nowhere.pem");
        let error = |trust, identity| client(trust, identity).unwrap_err();
        let named = format!("`ca_file` {}: no certificates; it has certificates as PEM", file.display());
        assert_eq!(error(Trust::File(&file), None), named);
        assert!(error(Trust::File(nowhere), None).starts_with("`ca_file` /nowhere.pem: "));
        let (file, nowhere) = (Some(file), Some(nowhere.to_owned()));
        let error = |certificate, key| Files::new(&None, certificate, key).client().unwrap_err();
        assert!(error(&nowhere, &file).starts_with("`client_cert_file` /nowhere.pem: "));
        assert!(error(&file, &None).contains("go together") && error(&None, &file).contains("go together"));
    }

    #[test]
    fn an_error_of_encryption_is_found_wherever_it_is() {
        let unknown = || rustls::Error::InvalidCertificate(CertificateError::UnknownIssuer);
        let ca_file = "; who signed its certificate can be given as `ca_file`";
        assert_eq!(hint(&unknown()), Some(ca_file));
        let inner = io::Error::new(io::ErrorKind::InvalidData, unknown());
        assert_eq!(hint(&inner), Some(ca_file));
        let shared: Arc<dyn StdError + Send + Sync> = Arc::new(io::Error::other(inner));
        assert_eq!(hint(&shared), Some(ca_file));
        assert_eq!(hint(&io::Error::from(io::ErrorKind::ConnectionRefused)), None);
        let asked = rustls::Error::AlertReceived(AlertDescription::CertificateRequired);
        assert!(hint(&asked).unwrap().contains("give `client_cert_file`"));
        let refused = rustls::Error::AlertReceived(AlertDescription::UnknownCA);
        assert!(hint(&refused).unwrap().contains("does not take the certificate"));
    }
}
