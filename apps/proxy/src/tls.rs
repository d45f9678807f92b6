//! Certificates: our own, which viewers see, and those of sources, which are believed or not.

use crate::config::shown;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{
    CertificateError, ClientConfig, ClientConnection, DigitallySignedStruct, RootCertStore, ServerConfig,
    SignatureScheme,
};
use std::io;
use std::net::TcpStream;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

fn provider() -> Arc<CryptoProvider> {
    Arc::new(aws_lc_rs::default_provider())
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let path_text = path.to_string_lossy();
    let shown = shown(&path_text);
    let read = CertificateDer::pem_file_iter(path).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let found = read.map_err(|e| format!("cannot read certificates of {shown}: {e}; give a PEM file"))?;
    match found.is_empty() {
        true => Err(format!("{shown} has no certificate in it; give a PEM file with BEGIN CERTIFICATE")),
        false => Ok(found),
    }
}

fn private_key(path: &Path) -> Result<PrivateKeyDer<'static>, String> {
    let text = std::fs::read(path).map_err(|e| format!("{e}; give its PEM file with --key"))?;
    let is_encrypted = [&b"BEGIN ENCRYPTED PRIVATE KEY"[..], b"Proc-Type: 4,ENCRYPTED"]
        .iter()
        .any(|mark| text.windows(mark.len()).any(|bytes| bytes == *mark));
    PrivateKeyDer::from_pem_slice(&text).map_err(|e| match e {
        _ if is_encrypted => {
            "it is encrypted, and nobody is there to be asked for its passphrase; give one that is not, such as openssl pkey writes".to_owned()
        }
        pem::Error::NoItemsFound => "there is none in it; give a PEM file with BEGIN PRIVATE KEY".to_owned(),
        e => format!("{e}; give its PEM file with --key"),
    })
}

/// What viewers see who connect by TLS.
///
/// # Errors
/// In words, with the way out.
pub fn server(certificate: &Path, key: &Path) -> Result<Arc<ServerConfig>, String> {
    let chain = certificates(certificate)?;
    let secret = private_key(key).map_err(|why| format!("cannot read the private key of {}: {why}", key.display()))?;
    let config = ServerConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .and_then(|config| config.with_no_client_auth().with_single_cert(chain, secret));
    config.map(Arc::new).map_err(|e| {
        format!(
            "the certificate {} and the key {} do not fit: {e}; give the key for which the certificate was made",
            certificate.display(),
            key.display()
        )
    })
}

/// Why a certificate is not believed, for people.
fn unbelieved(why: &CertificateError) -> String {
    match why {
        CertificateError::UnknownIssuer => "nobody who is known has signed it".to_owned(),
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => "its time is over".to_owned(),
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            "its time has not begun, or the clock here is wrong".to_owned()
        }
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            "it is for another name than that of the address".to_owned()
        }
        // What a camera makes for itself.
        _ if format!("{why:?}").contains("CaUsedAsEndEntity") => "it is signed by itself".to_owned(),
        _ => format!("{why:?}"),
    }
}

/// Which certificates of sources are believed: those that the system's authorities have signed, and those of a file, which may
/// be authorities or the sources' own.
pub struct Trust {
    config: Arc<ClientConfig>,
}

#[derive(Debug)]
struct Verifier {
    usual: Option<Arc<WebPkiServerVerifier>>,
    /// Certificates that are believed as they are, whatever name is in them: cameras sign for themselves.
    own: Vec<CertificateDer<'static>>,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        between: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        status: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        if self.own.iter().any(|own| own == certificate) {
            return Ok(ServerCertVerified::assertion());
        }
        match &self.usual {
            Some(usual) => usual.verify_server_cert(certificate, between, name, status, now),
            None => Err(CertificateError::UnknownIssuer.into()),
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let known = &self.provider.signature_verification_algorithms;
        rustls::crypto::verify_tls12_signature(message, certificate, signature, known)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let known = &self.provider.signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, certificate, signature, known)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

impl Trust {
    /// The system's authorities, and the certificates of a file.
    ///
    /// # Errors
    /// In words, with the way out.
    pub fn new(file: Option<&Path>) -> Result<Trust, String> {
        let own = file.map_or_else(|| Ok(Vec::new()), certificates)?;
        let mut roots = RootCertStore::empty();
        // A system without authorities believes the file's only.
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        roots.add_parsable_certificates(own.iter().cloned());
        let provider = provider();
        let usual = (!roots.is_empty())
            .then(|| WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider.clone()).build().ok());
        let verifier = Verifier { usual: usual.flatten(), own, provider: provider.clone() };
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|e| format!("cannot speak TLS: {e}"))?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(verifier))
            .with_no_client_auth();
        Ok(Trust { config: Arc::new(config) })
    }

    /// Greets a source until it is known who it is, within the time; the connection may wait, so this is not for a worker.
    ///
    /// # Errors
    /// In words, with the way out.
    pub fn greet(&self, mut socket: &TcpStream, host: &str, within: Duration) -> Result<ClientConnection, String> {
        let name = ServerName::try_from(host.to_owned())
            .map_err(|_| format!("{host} is no name that a certificate can have; correct the host of its address"))?;
        let failed = |e: rustls::Error| match &e {
            rustls::Error::InvalidCertificate(why) => format!(
                "its certificate is not believed: {}; give the certificate, or that of who signed it, by --trust FILE",
                unbelieved(why)
            ),
            _ => format!("it does not speak TLS as it should: {e}; look whether rtsp:// is meant, and at the port"),
        };
        let mut tls = ClientConnection::new(self.config.clone(), name).map_err(failed)?;
        let end = Instant::now() + within;
        while tls.is_handshaking() {
            let left = end.saturating_duration_since(Instant::now());
            let slow = || format!("it does not greet within {} s; look whether rtsp:// is meant", within.as_secs());
            if left.is_zero() {
                return Err(slow());
            }
            let cut = |e: io::Error| match e.kind() {
                io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => slow(),
                _ => format!("the connection has broken: {e}; look whether rtsp:// is meant"),
            };
            socket.set_read_timeout(Some(left)).and_then(|()| socket.set_write_timeout(Some(left))).map_err(cut)?;
            while tls.wants_write() {
                tls.write_tls(&mut socket).map_err(cut)?;
            }
            if tls.is_handshaking() && tls.wants_read() {
                if tls.read_tls(&mut socket).map_err(cut)? == 0 {
                    return Err(
                        "it has ended the connection instead of a greeting; look whether rtsp:// is meant".to_owned()
                    );
                }
                if let Err(e) = tls.process_new_packets() {
                    // It is told why.
                    let _ = tls.write_tls(&mut socket);
                    return Err(failed(e));
                }
            }
        }
        Ok(tls)
    }
}
