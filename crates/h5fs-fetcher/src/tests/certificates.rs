//! Servers with TLS, and a file of trusted certificates.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::thread;

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};

use super::*;

/// A certificate and its key.
struct TestCertificate {
    params: CertificateParams,
    pem: String,
    certificate: CertificateDer<'static>,
    key: KeyPair,
}

/// Creates a self-signed certificate of an authority, as `openssl req -x509` does.
fn self_signed(name: &str) -> TestCertificate {
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new([name.to_owned()]).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let made = params.self_signed(&key).unwrap();
    TestCertificate {
        params,
        pem: made.pem(),
        certificate: made.der().clone(),
        key,
    }
}

/// Creates a certificate that another one has signed.
fn signed_by(authority: &TestCertificate, name: &str) -> TestCertificate {
    let key = KeyPair::generate().unwrap();
    let params = CertificateParams::new([name.to_owned()]).unwrap();
    let issuer = Issuer::from_params(&authority.params, &authority.key);
    let made = params.signed_by(&key, &issuer).unwrap();
    TestCertificate {
        params,
        pem: made.pem(),
        certificate: made.der().clone(),
        key,
    }
}

/// Serves `bytes` over TLS for any request, until the test ends. Returns the port.
fn serve(own: &TestCertificate, bytes: &'static [u8]) -> u16 {
    let key = PrivateKeyDer::try_from(own.key.serialize_der()).unwrap();
    let config =
        ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![own.certificate.clone()], key)
            .unwrap();
    let (config, listener) = (Arc::new(config), TcpListener::bind("127.0.0.1:0").unwrap());
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let session = ServerConnection::new(Arc::clone(&config)).unwrap();
            let mut stream = BufReader::new(StreamOwned::new(session, stream));
            thread::spawn(move || while answer(&mut stream, bytes).is_some() {});
        }
    });
    port
}

fn answer(stream: &mut BufReader<impl Read + Write>, bytes: &[u8]) -> Option<()> {
    let mut line = String::new();
    while line != "\r\n" {
        line.clear();
        let read = stream.read_line(&mut line).ok()?;
        (read > 0).then_some(())?;
    }
    let end = bytes.len();
    let head = format!(
        "HTTP/1.1 206 -\r\netag: \"1\"\r\ncontent-range: bytes 0-{}/{end}\r\ncontent-length: {end}\r\n\r\n",
        end - 1
    );
    let output = stream.get_mut();
    output.write_all(&[head.as_bytes(), bytes].concat()).ok()?;
    output.flush().ok()
}

/// Returns the response to a client that trusts only `pem`.
fn response_with_trust(url: &str, pem: &str) -> Result<Vec<u8>> {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("ca.pem");
    std::fs::write(&path, pem).unwrap();
    let settings = RemoteSettings {
        ca_file: Some(path),
        ..quick()
    };
    let object = open(&fetcher(url, &settings), "")?;
    read(&object, 0, 5)
}

#[test]
fn the_certificates_of_a_file_are_trusted_and_no_other() {
    let (own, other) = (self_signed("127.0.0.1"), self_signed("127.0.0.1"));
    let of_authority = signed_by(&other, "127.0.0.1");
    let of_another_name = self_signed("example.org");
    let url = |own: &TestCertificate| format!("https://127.0.0.1:{}/a.h5", serve(own, b"hello"));
    let both = format!("{}{}", other.pem, own.pem);
    for pem in [&own.pem, &both] {
        assert_eq!(response_with_trust(&url(&own), pem).unwrap(), b"hello");
    }
    assert_eq!(
        response_with_trust(&url(&of_authority), &other.pem).unwrap(),
        b"hello"
    );
    for (served, trusted) in [
        (&own, &other),
        (&of_authority, &own),
        (&of_another_name, &of_another_name),
    ] {
        let error = response_with_trust(&url(served), &trusted.pem)
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("TLS: ") && error.contains("certificate"),
            "{error}"
        );
    }
}

#[test]
fn a_file_without_certificates_is_refused() {
    let (directory, url) = (tempfile::tempdir().unwrap(), "https://127.0.0.1/a.h5");
    let Ok(Location::Url(url)) = Location::parse(url.into()) else {
        panic!("{url} is no URL");
    };
    let key = self_signed("127.0.0.1").key.serialize_pem();
    for (name, content, reason) in [
        (
            "key.pem",
            Some(key.as_str()),
            "the file contains no certificate",
        ),
        ("empty.pem", Some(""), "the file contains no certificate"),
        ("absent.pem", None, "No such file or directory"),
    ] {
        let path = directory.path().join(name);
        if let Some(content) = content {
            std::fs::write(&path, content).unwrap();
        }
        let settings = RemoteSettings {
            ca_file: Some(path.clone()),
            ..quick()
        };
        let refused = prepare(&url, &settings);
        let told = refused.map(|_| ()).unwrap_err().to_string();
        assert!(
            told.ends_with(&format!("ca_file: {}: {reason}", path.display())),
            "{told}"
        );
    }
}
