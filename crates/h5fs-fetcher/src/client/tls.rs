//! TLS with the certificates of one file: certificates of authorities, and self-signed certificates
//! of servers. Only this file uses rustls.
//!
//! RFC 5280 does not permit a server to use a certificate that can sign other certificates, and the
//! verifier rejects such a certificate. But `openssl req -x509` creates one, and a user who names
//! its file trusts it. So a server that presents a certificate of the file is accepted for the host
//! names in this certificate.

use std::fmt;
use std::io::{Read, Write};
use std::path::Path;
use std::sync::Arc;

use h5fs_reader::error::{Error, Result, io_error_message};
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{
    ClientConfig, ClientConnection, DigitallySignedStruct, RootCertStore, SignatureScheme,
    StreamOwned,
};
use ureq::unversioned::transport::{
    Buffers, ConnectProxyConnector, ConnectionDetails, Connector, Either, LazyBuffers, NextTimeout,
    TcpConnector, Transport, TransportAdapter,
};

/// The TLS configuration that trusts the certificates of a file.
#[derive(Clone, Debug)]
pub(super) struct TrustedCertificates(Arc<ClientConfig>);

impl TrustedCertificates {
    /// Creates a configuration that trusts the certificates of the file at `path`. `word` is the
    /// name of the option or environment variable that names the file.
    ///
    /// # Errors
    /// `Usage` if the file cannot be read or contains no certificate.
    pub(super) fn from_file(word: &str, path: &Path) -> Result<Self> {
        let failed = |reason: &str| Error::Usage(format!("{word}: {}: {reason}", path.display()));
        let text = std::fs::read(path).map_err(|error| failed(&io_error_message(&error)))?;
        let pinned: Vec<_> = CertificateDer::pem_slice_iter(&text).flatten().collect();
        let mut roots = RootCertStore::empty();
        if roots.add_parsable_certificates(pinned.iter().cloned()).0 == 0 {
            return Err(failed("the file contains no certificate"));
        }
        let provider = Arc::new(ring::default_provider());
        let signed = WebPkiServerVerifier::builder_with_provider(roots.into(), provider.clone());
        let signed = signed.build().map_err(|error| failed(&error.to_string()))?;
        let builder = ClientConfig::builder_with_provider(provider);
        let builder = builder.with_safe_default_protocol_versions();
        let builder = builder.map_err(|error| failed(&error.to_string()))?;
        let verifier = Arc::new(CertificateVerifier { signed, pinned });
        let config = builder
            .dangerous()
            .with_custom_certificate_verifier(verifier);
        Ok(TrustedCertificates(Arc::new(config.with_no_client_auth())))
    }

    /// Returns the ureq connector that opens TLS connections with this configuration.
    pub(super) fn connector(&self) -> impl Connector {
        let proxied = ().chain(ConnectProxyConnector::default());
        proxied.chain(TcpConnector::default()).chain(self.clone())
    }
}

/// A verifier that accepts certificates signed by an authority of the file, and the certificates of
/// the file themselves.
#[derive(Debug)]
struct CertificateVerifier {
    signed: Arc<WebPkiServerVerifier>,
    pinned: Vec<CertificateDer<'static>>,
}

impl ServerCertVerifier for CertificateVerifier {
    fn verify_server_cert(
        &self,
        own: &CertificateDer<'_>,
        between: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> std::result::Result<ServerCertVerified, rustls::Error> {
        if self.pinned.iter().any(|pinned| pinned == own) {
            rustls::client::verify_server_name(&ParsedCertificate::try_from(own)?, name)?;
            return Ok(ServerCertVerified::assertion());
        }
        let signed = &self.signed;
        signed.verify_server_cert(own, between, name, ocsp, now)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        own: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> std::result::Result<HandshakeSignatureValid, rustls::Error> {
        self.signed.verify_tls12_signature(message, own, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        own: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> std::result::Result<HandshakeSignatureValid, rustls::Error> {
        self.signed.verify_tls13_signature(message, own, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.signed.supported_verify_schemes()
    }
}

impl<In: Transport> Connector<In> for TrustedCertificates {
    type Out = Either<In, TlsConnection>;

    fn connect(
        &self,
        details: &ConnectionDetails<'_>,
        chained: Option<In>,
    ) -> std::result::Result<Option<Self::Out>, ureq::Error> {
        let Some(plain) = chained else {
            return Ok(None);
        };
        if !details.needs_tls() || plain.is_tls() {
            return Ok(Some(Either::A(plain)));
        }
        let host = details
            .uri
            .host()
            .unwrap_or_default()
            .trim_matches(['[', ']']);
        let name = ServerName::try_from(host.to_owned());
        let name = name.map_err(|_| ureq::Error::Tls("the host name is not valid for TLS"))?;
        let mut session = ClientConnection::new(Arc::clone(&self.0), name)?;
        let boxed: Box<dyn Transport> = Box::new(plain);
        let mut stream = TransportAdapter::new(boxed, details.current_time.clone());
        stream.set_timeout(details.timeout);
        session.complete_io(&mut stream)?;
        let config = &details.config;
        Ok(Some(Either::B(TlsConnection {
            buffers: LazyBuffers::new(config.input_buffer_size(), config.output_buffer_size()),
            stream: StreamOwned::new(session, stream),
        })))
    }
}

/// A TLS connection.
pub(super) struct TlsConnection {
    buffers: LazyBuffers,
    stream: StreamOwned<ClientConnection, TransportAdapter>,
}

impl fmt::Debug for TlsConnection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Encrypted")
    }
}

impl Transport for TlsConnection {
    fn buffers(&mut self) -> &mut dyn Buffers {
        &mut self.buffers
    }

    fn transmit_output(
        &mut self,
        amount: usize,
        timeout: NextTimeout,
    ) -> std::result::Result<(), ureq::Error> {
        self.stream.get_mut().set_timeout(timeout);
        let output = self.buffers.output().get(..amount).unwrap_or_default();
        Ok(self.stream.write_all(output)?)
    }

    fn await_input(&mut self, timeout: NextTimeout) -> std::result::Result<bool, ureq::Error> {
        self.stream.get_mut().set_timeout(timeout);
        let read = self.stream.read(self.buffers.input_append_buf())?;
        self.buffers.input_appended(read);
        Ok(read > 0)
    }

    fn is_open(&mut self) -> bool {
        self.stream.get_mut().get_mut().is_open()
    }

    fn is_tls(&self) -> bool {
        true
    }
}
