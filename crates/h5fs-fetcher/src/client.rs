//! The HTTP client. Only this module uses the crate ureq.
//!
//! The client follows no redirects, keeps no cookies, and bounds the size of headers. `resolver`
//! looks up hosts, `proxies` decides which requests go through a proxy.

mod proxies;
mod resolver;
mod tls;

use std::io::{self, Read};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use h5fs_reader::error::{Result, io_error_message};
use http::{HeaderMap, HeaderName, HeaderValue, Request, Response, StatusCode, Uri, header};
use ureq::config::Config;
use ureq::tls::{RootCerts, TlsConfig};
use ureq::unversioned::transport::DefaultConnector;
use ureq::{Agent, Body, Proxy};

use crate::client::proxies::{Proxies, Route, has_secret};
use crate::client::resolver::PermittedResolver;
use crate::client::tls::TrustedCertificates;
use crate::fetch_error::FetchError;
use crate::hosts;
pub(super) use crate::hosts::AddressPolicy;
use crate::limits;
use crate::settings::RemoteSettings;

/// Time limit for the metadata service of a cloud machine. Most machines have no such service.
const METADATA_SERVICE_TIMEOUT: Duration = Duration::from_secs(2);

/// The HTTP client of one mount.
pub(super) struct HttpClient {
    /// The agent for hosts that the user named.
    named_agent: Agent,
    /// The agent for hosts that a server named in a redirect. It connects only to permitted
    /// addresses.
    redirect_agent: Agent,
    /// The agent for requests that a proxy forwards.
    forwarding_agent: Option<Agent>,
    proxies: Proxies,
    /// Time limit for each step of an exchange: resolving the host, connecting, sending the
    /// request, receiving the response header, and each read of the body.
    pub(super) step_timeout: Duration,
    /// Whether any server has answered. Until then, an unreachable host counts as a wrong host
    /// name, and the request is not retried.
    has_answered: AtomicBool,
}

/// A request header.
pub(super) type RequestHeader = (HeaderName, HeaderValue);

/// The response of a server. The body has not been read yet.
pub(super) struct HttpResponse {
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
    pub(super) body: Box<dyn Read + Send>,
    /// Whether a redirect led to the server that sent the response.
    pub(super) is_redirected: bool,
}

impl HttpClient {
    /// Creates a client with these settings. `step` is the time limit for each step of an exchange,
    /// and `home` the addresses to which redirects may lead.
    ///
    /// # Errors
    /// `Usage` if the file of certificates contains none.
    pub(super) fn new(
        settings: &RemoteSettings,
        step: Duration,
        home: AddressPolicy,
    ) -> Result<Self> {
        let connections = settings.connections();
        let trust = read_certificates(settings)?;
        let system = TlsConfig::builder().root_certs(RootCerts::PlatformVerifier);
        let system = system.build();
        let config = Config::builder()
            .http_status_as_error(false)
            // Permits `PROPFIND` of WebDAV.
            .allow_non_standard_methods(true)
            .max_redirects(0)
            .max_redirects_will_error(false)
            .proxy(None)
            .accept_encoding("identity")
            .user_agent(concat!("h5fs/", env!("CARGO_PKG_VERSION")))
            .max_response_header_size(limits::RESPONSE_HEADERS)
            // After an informational response (103), ureq counts all buffered bytes as the header.
            .input_buffer_size(limits::RESPONSE_HEADERS)
            .max_idle_connections(connections)
            .max_idle_connections_per_host(connections)
            .timeout_resolve(Some(step))
            .timeout_connect(Some(step))
            .timeout_send_request(Some(step))
            .timeout_recv_response(Some(step))
            .timeout_per_read(Some(step))
            .tls_config(system)
            .build();
        let proxies = Proxies::from_environment();
        let hosts: Vec<_> = proxies
            .iter()
            .map(|proxy| proxy.host().to_owned())
            .collect();
        let agent = |reach| {
            let names = PermittedResolver::new(reach, hosts.clone());
            match &trust {
                Some(trust) => Agent::with_parts(config.clone(), trust.connector(), names),
                None => Agent::with_parts(config.clone(), DefaultConnector::default(), names),
            }
        };
        let forwarded = match &trust {
            Some(trust) => {
                let parts = proxies.forwarding_connector(trust.connector());
                parts.map(|(to_proxy, names)| Agent::with_parts(config.clone(), to_proxy, names))
            }
            None => {
                let parts = proxies.forwarding_connector(DefaultConnector::default());
                parts.map(|(to_proxy, names)| Agent::with_parts(config.clone(), to_proxy, names))
            }
        };
        Ok(HttpClient {
            named_agent: agent(AddressPolicy::Anywhere),
            redirect_agent: agent(home),
            forwarding_agent: forwarded,
            proxies,
            step_timeout: step,
            has_answered: AtomicBool::new(false),
        })
    }

    /// Sends a request, which has at most a short body. `is_led` is set if a server named the host,
    /// and not set if the user named it. The whole exchange, including the response body, must end
    /// within the time `left`.
    ///
    /// # Errors
    /// Fails with the reason why no response arrived.
    pub(super) fn send(
        &self,
        request: Request<Vec<u8>>,
        is_led: bool,
        left: Duration,
    ) -> std::result::Result<HttpResponse, FetchError> {
        let route = self.proxies.route(request.uri(), has_secret(&request))?;
        let (agent, proxy) = match (route, &self.forwarding_agent) {
            (Route::Forwarded, Some(forwarded)) => (forwarded, None),
            (Route::Tunnel(proxy), _) => (self.agent(is_led), Some(proxy)),
            (Route::Direct | Route::Forwarded, _) => (self.agent(is_led), None),
        };
        let limit = if hosts::is_metadata_service(request.uri()) {
            left.min(METADATA_SERVICE_TIMEOUT)
        } else {
            left
        };
        let answer = if request.body().is_empty() {
            let request = agent
                .configure_request(request.map(|_| ()))
                .proxy(proxy)
                .timeout_global(Some(limit))
                .build();
            agent.run(request)
        } else {
            let request = agent
                .configure_request(request)
                .proxy(proxy)
                .timeout_global(Some(limit))
                .build();
            agent.run(request)
        };
        match answer {
            Ok(answer) => {
                self.has_answered.store(true, Ordering::Relaxed);
                Ok(HttpResponse::from(answer))
            }
            Err(error) => Err(self.convert_error(error)),
        }
    }

    fn agent(&self, is_led: bool) -> &Agent {
        if is_led {
            &self.redirect_agent
        } else {
            &self.named_agent
        }
    }

    /// Returns whether a proxy resolves the host of this URI.
    pub(super) fn is_proxied(&self, uri: &Uri) -> bool {
        !matches!(self.proxies.route(uri, false), Ok(Route::Direct))
    }

    /// Returns the ports of the proxies.
    pub(super) fn proxy_ports(&self) -> impl Iterator<Item = u16> {
        self.proxies.iter().map(Proxy::port)
    }

    fn convert_error(&self, error: ureq::Error) -> FetchError {
        use ureq::Error as E;
        let is_known = self.has_answered.load(Ordering::Relaxed);
        match error {
            E::Io(error) if is_refusal(&error) => FetchError::permanent(io_error_message(&error)),
            E::Rustls(_) | E::Tls(_) | E::Pem(_) => FetchError::permanent(format!("TLS: {error}")),
            // An error of the certificate verifier also has this kind.
            E::Io(error) if error.kind() == io::ErrorKind::InvalidData => {
                FetchError::permanent(format!("TLS: {error}"))
            }
            E::Io(error) if is_known || !is_unreachable(&error) => {
                FetchError::temporary(io_error_message(&error))
            }
            E::Io(error) => FetchError::permanent(io_error_message(&error)),
            E::HostNotFound | E::ConnectionFailed if !is_known => {
                FetchError::permanent(error.to_string())
            }
            E::HostNotFound
            | E::ConnectionFailed
            | E::Timeout(ureq::Timeout::Connect | ureq::Timeout::Resolve) => {
                FetchError::temporary(error.to_string())
            }
            E::Timeout(_) => FetchError::timed_out(),
            E::LargeResponseHeader(..) => FetchError::permanent("the response header is too long"),
            E::ConnectProxyFailed(_) => FetchError::permanent("the proxy refuses the connection"),
            E::Protocol(error) => FetchError::temporary(format!("HTTP: {error}")),
            // The texts of the other errors may contain the URI.
            _ => FetchError::permanent("HTTP: the request failed"),
        }
    }
}

/// Returns whether an error means that the resolver or the sandbox of this process forbids the
/// connection. A server that refuses a connection causes a different error.
fn is_refusal(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::PermissionDenied
}

/// Returns whether an error means that the host does not exist or does not accept connections.
fn is_unreachable(error: &io::Error) -> bool {
    use io::ErrorKind as K;
    matches!(
        error.kind(),
        K::ConnectionRefused | K::NetworkUnreachable | K::HostUnreachable | K::NotFound | K::Other
    ) || error.to_string().starts_with("failed to lookup address")
}

impl From<Response<Body>> for HttpResponse {
    fn from(answer: Response<Body>) -> Self {
        let (parts, body) = answer.into_parts();
        HttpResponse {
            status: parts.status,
            headers: parts.headers,
            body: Box::new(body.into_reader()),
            is_redirected: false,
        }
    }
}

impl HttpResponse {
    /// Returns the value of a header, if the header occurs once and is text.
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.single_header(name)?.to_str().ok()
    }

    /// Returns the value of a header, if the header occurs once.
    pub(super) fn single_header(&self, name: &str) -> Option<&HeaderValue> {
        let mut values = self.headers.get_all(name).iter();
        values.next().filter(|_| values.next().is_none())
    }

    /// Returns whether the body is an HTML page.
    pub(super) fn is_html(&self) -> bool {
        is_html(&self.headers)
    }

    /// Returns whether the first byte of the body, after white space, is `wanted`. The body can
    /// still be read from its start.
    pub(super) fn begins_with(&mut self, wanted: u8) -> bool {
        let mut come = Vec::new();
        let mut byte = [0];
        while come.len() < 64 && matches!(self.body.read(&mut byte), Ok(1)) {
            come.push(byte[0]);
            if !byte[0].is_ascii_whitespace() {
                break;
            }
        }
        let is_wanted = come.last() == Some(&wanted);
        let rest = std::mem::replace(&mut self.body, Box::new(io::empty()));
        self.body = Box::new(io::Cursor::new(come).chain(rest));
        is_wanted
    }

    /// Reads the whole body. The body has at most `most` bytes and must arrive within the time
    /// `within`.
    ///
    /// # Errors
    /// `Other` if the body is too long. Otherwise fails with the error of reading.
    pub(super) fn read_body_within(
        &mut self,
        most: usize,
        within: Duration,
    ) -> std::result::Result<Vec<u8>, FetchError> {
        let end = Instant::now() + within;
        self.read_body(most, |_| {
            if Instant::now() < end {
                Ok(())
            } else {
                Err(FetchError::temporary("the response arrives too slowly"))
            }
        })
    }

    /// Reads the whole body, of at most `most` bytes. After each read, calls `goes_on` with the
    /// number of bytes that were read. Stops if `goes_on` fails.
    ///
    /// # Errors
    /// `Other` if the body is too long. Otherwise fails with the error of reading or of `goes_on`.
    pub(super) fn read_body(
        &mut self,
        most: usize,
        mut goes_on: impl FnMut(usize) -> std::result::Result<(), FetchError>,
    ) -> std::result::Result<Vec<u8>, FetchError> {
        let (mut text, mut piece) = (Vec::new(), [0; 8192]);
        loop {
            let read = self.body.read(&mut piece);
            let length = read.map_err(|error| FetchError::temporary(io_error_message(&error)))?;
            if length == 0 {
                return Ok(text);
            }
            text.extend_from_slice(&piece[..length]);
            if text.len() > most {
                return Err(FetchError::permanent("the response is too long"));
            }
            goes_on(length)?;
        }
    }

    /// Reads once after the last byte of a body of known length, so that ureq notices the end of
    /// the body and reuses the connection. Does not read the end of a chunked body, because a
    /// server may send a trailer of any length.
    pub(super) fn read_end(mut self) {
        let is_counted = !self.headers.contains_key(header::TRANSFER_ENCODING);
        if is_counted && self.headers.contains_key(header::CONTENT_LENGTH) {
            let _ = self.body.read(&mut [0]);
        }
    }
}

/// Returns whether these headers describe an HTML page.
pub(super) fn is_html(headers: &HeaderMap) -> bool {
    let of_type = headers.get(header::CONTENT_TYPE);
    let of_type = of_type.and_then(|value| value.to_str().ok());
    let of_type = of_type.and_then(|text| text.split(';').next());
    let pages = ["text/html", "application/xhtml+xml"];
    of_type.is_some_and(|text| {
        pages
            .iter()
            .any(|page| text.trim().eq_ignore_ascii_case(page))
    })
}

/// Reads the certificates of the option `ca_file` or of `AWS_CA_BUNDLE`, which replace the system's
/// certificates. Returns `None` if neither is set.
fn read_certificates(settings: &RemoteSettings) -> Result<Option<TrustedCertificates>> {
    let variable = std::env::var_os("AWS_CA_BUNDLE").filter(|path| !path.is_empty());
    let named = match (&settings.ca_file, &variable) {
        (Some(path), _) => Some(("ca_file", path.as_path())),
        (None, Some(path)) => Some(("AWS_CA_BUNDLE", Path::new(path))),
        (None, None) => None,
    };
    let read = named.map(|(word, path)| TrustedCertificates::from_file(word, path));
    read.transpose()
}
