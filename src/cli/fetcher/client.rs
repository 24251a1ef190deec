//! HTTP; the only file that knows the client.
//!
//! Redirects are not followed here, no cookie is kept, and a header block is bounded. The addresses
//! of a host are looked up once a minute.

mod tls;

use std::collections::HashMap;
use std::io::{self, Read};
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use http::{HeaderMap, HeaderName, HeaderValue, Request, Response, StatusCode, Uri, header};
use ureq::config::Config;
use ureq::tls::{RootCerts, TlsConfig};
use ureq::unversioned::resolver::{DefaultResolver, ResolvedSocketAddrs, Resolver};
use ureq::unversioned::transport::{DefaultConnector, NextTimeout};
use ureq::{Agent, Body, Proxy};

use crate::cli::fetcher::client::tls::Trust;
use crate::cli::fetcher::hosts;
use crate::cli::fetcher::trouble::Trouble;
use crate::cli::options::RemoteSettings;
use crate::error::{Result, words_of};
use crate::limits;
use crate::memory::lock::lock;

/// How long a service of the machine itself is waited for: most machines have none.
const LOCAL: Duration = Duration::from_secs(2);

/// The client of one mount.
pub(super) struct Client {
    /// For hosts that the user named.
    named: Agent,
    /// For hosts that a server named.
    led: Agent,
    proxies: Proxies,
    /// How long each step of an exchange is waited for.
    pub(super) step: Duration,
    /// Whether any server has answered: until then, a host that is not there is a wrong name.
    has_answered: AtomicBool,
}

/// A header of a request.
pub(super) type Header = (HeaderName, HeaderValue);

/// The answer of a server, of which the body is still to come.
pub(super) struct Answer {
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
    pub(super) body: Box<dyn Read + Send>,
}

/// The proxies that the environment names; the lowercase names are curl's.
#[derive(Debug, Default)]
struct Proxies {
    http: Option<Proxy>,
    https: Option<Proxy>,
}

impl Client {
    /// A client with these settings, which waits so long for each `step` of an exchange.
    ///
    /// # Errors
    /// `Usage` for a file of certificates that holds none.
    pub(super) fn new(settings: &RemoteSettings, step: Duration, home: Reach) -> Result<Self> {
        let connections = settings.connections();
        let trust = trust(settings)?;
        let system = TlsConfig::builder().root_certs(RootCerts::PlatformVerifier);
        let system = system.build();
        let config = Config::builder()
            .http_status_as_error(false)
            // That of WebDAV which asks for names.
            .allow_non_standard_methods(true)
            .max_redirects(0)
            .max_redirects_will_error(false)
            .proxy(None)
            .accept_encoding("identity")
            .user_agent(concat!("h5fs/", env!("CARGO_PKG_VERSION")))
            .max_response_header_size(limits::RESPONSE_HEADERS)
            // Behind a hint (103), the client takes all that it has of the answer for a header.
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
        let proxies = Proxies::of_environment();
        let agent = |reach| {
            let names = Names::new(reach, proxies.hosts());
            match &trust {
                Some(trust) => Agent::with_parts(config.clone(), trust.connector(), names),
                None => Agent::with_parts(config.clone(), DefaultConnector::default(), names),
            }
        };
        Ok(Client {
            named: agent(Reach::Anywhere),
            led: agent(home),
            proxies,
            step,
            has_answered: AtomicBool::new(false),
        })
    }

    /// Sends a request without a body, or a short one, to a host that the user named, or to one
    /// that a server named. Its whole exchange, up to the last byte of the answer, ends with the
    /// time that is `left`.
    ///
    /// # Errors
    /// Why there is no answer.
    pub(super) fn send(
        &self,
        request: Request<Vec<u8>>,
        is_led: bool,
        left: Duration,
    ) -> std::result::Result<Answer, Trouble> {
        let agent = if is_led { &self.led } else { &self.named };
        let proxy = self.proxies.of(request.uri());
        let limit = if is_local(request.uri()) {
            left.min(LOCAL)
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
                Ok(Answer::from(answer))
            }
            Err(error) => Err(self.trouble(error)),
        }
    }

    /// The ports of the proxies.
    pub(super) fn proxy_ports(&self) -> impl Iterator<Item = u16> {
        [&self.proxies.http, &self.proxies.https]
            .into_iter()
            .flatten()
            .map(Proxy::port)
    }

    fn trouble(&self, error: ureq::Error) -> Trouble {
        use ureq::Error as E;
        let is_known = self.has_answered.load(Ordering::Relaxed);
        match error {
            E::Io(error) if is_refusal(&error) => Trouble::other(words_of(&error)),
            E::Rustls(_) | E::Tls(_) | E::Pem(_) => Trouble::other(format!("TLS: {error}")),
            // Of TLS, too: the verifier's word on a certificate.
            E::Io(error) if error.kind() == io::ErrorKind::InvalidData => {
                Trouble::other(format!("TLS: {error}"))
            }
            E::Io(error) if is_known || !is_absence(&error) => Trouble::passing(words_of(&error)),
            E::Io(error) => Trouble::other(words_of(&error)),
            E::HostNotFound | E::ConnectionFailed if !is_known => Trouble::other(error.to_string()),
            E::Timeout(_) | E::HostNotFound | E::ConnectionFailed => {
                Trouble::passing(error.to_string())
            }
            E::LargeResponseHeader(..) => Trouble::other("the answer's header is too long"),
            E::ConnectProxyFailed(_) => Trouble::other("the proxy refuses the connection"),
            E::Protocol(error) => Trouble::passing(format!("HTTP: {error}")),
            // The others' texts may hold the URI.
            _ => Trouble::other("HTTP: the request failed"),
        }
    }
}

/// Whether this process's own rules refused the connection.
fn is_refusal(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::PermissionDenied
}

/// Whether nobody is there to answer.
fn is_absence(error: &io::Error) -> bool {
    use io::ErrorKind as K;
    matches!(
        error.kind(),
        K::ConnectionRefused | K::NetworkUnreachable | K::HostUnreachable | K::NotFound | K::Other
    ) || error.to_string().starts_with("failed to lookup address")
}

impl From<Response<Body>> for Answer {
    fn from(answer: Response<Body>) -> Self {
        let (parts, body) = answer.into_parts();
        Answer {
            status: parts.status,
            headers: parts.headers,
            body: Box::new(body.into_reader()),
        }
    }
}

impl Answer {
    /// The value of a header, where it is text and stands once.
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.only(name)?.to_str().ok()
    }

    /// The value of a header that stands once.
    pub(super) fn only(&self, name: &str) -> Option<&HeaderValue> {
        let mut values = self.headers.get_all(name).iter();
        values.next().filter(|_| values.next().is_none())
    }

    /// The body, of at most `most` bytes, if it comes `within` this time.
    ///
    /// # Errors
    /// `Other` for a longer one, and what reading says.
    pub(super) fn text(
        &mut self,
        most: usize,
        within: Duration,
    ) -> std::result::Result<Vec<u8>, Trouble> {
        let end = Instant::now() + within;
        self.whole(most, |_| {
            if Instant::now() < end {
                Ok(())
            } else {
                Err(Trouble::passing("the answer comes too slowly"))
            }
        })
    }

    /// The body, of at most `most` bytes, as long as it `goes_on` after so many bytes more.
    ///
    /// # Errors
    /// `Other` for a longer one, and what reading and `goes_on` say.
    pub(super) fn whole(
        &mut self,
        most: usize,
        mut goes_on: impl FnMut(usize) -> std::result::Result<(), Trouble>,
    ) -> std::result::Result<Vec<u8>, Trouble> {
        let (mut text, mut piece) = (Vec::new(), [0; 8192]);
        loop {
            let read = self.body.read(&mut piece);
            let length = read.map_err(|error| Trouble::passing(words_of(&error)))?;
            if length == 0 {
                return Ok(text);
            }
            text.extend_from_slice(&piece[..length]);
            if text.len() > most {
                return Err(Trouble::other("the answer is too long"));
            }
            goes_on(length)?;
        }
    }

    /// Sees the end of a body of which all bytes have come, for the connection to serve again. That
    /// of chunks is not waited for: whatever the server likes may follow them.
    pub(super) fn end(mut self) {
        let is_counted = !self.headers.contains_key(header::TRANSFER_ENCODING);
        if is_counted && self.headers.contains_key(header::CONTENT_LENGTH) {
            let _ = self.body.read(&mut [0]);
        }
    }
}

impl Proxies {
    fn of_environment() -> Self {
        let variable = |names: [&str; 4]| {
            let value = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
            names.into_iter().find_map(value)
        };
        let except = ["no_proxy", "NO_PROXY"]
            .iter()
            .find_map(|name| std::env::var(name).ok());
        let except = except.unwrap_or_default();
        let of = |names| proxy(&variable(names)?, &except);
        Proxies {
            http: of(["http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"]),
            https: of(["https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"]),
        }
    }

    fn hosts(&self) -> Vec<String> {
        let both = [&self.http, &self.https].into_iter().flatten();
        both.map(|proxy| proxy.host().to_owned()).collect()
    }

    /// The proxy for a request; none for the machine's own services.
    fn of(&self, uri: &Uri) -> Option<Proxy> {
        let proxy = match uri.scheme_str() {
            Some("https") => self.https.as_ref(),
            _ => self.http.as_ref(),
        };
        proxy
            .filter(|proxy| !is_local(uri) && !proxy.is_no_proxy(uri))
            .cloned()
    }
}

/// Whether a URI is of a service of the machine itself.
fn is_local(uri: &Uri) -> bool {
    let host = uri.host().unwrap_or_default();
    let address = host.trim_matches(['[', ']']).parse::<IpAddr>();
    address.is_ok_and(hosts::is_link_local)
}

fn proxy(text: &str, except: &str) -> Option<Proxy> {
    let named = Proxy::new(text).ok()?;
    let mut builder = Proxy::builder(named.protocol())
        .host(named.host())
        .port(named.port());
    if let Some(user) = named.username() {
        builder = builder.username(user);
    }
    if let Some(password) = named.password() {
        builder = builder.password(password);
    }
    for host in except
        .split(',')
        .map(str::trim)
        .filter(|host| !host.is_empty())
    {
        builder = builder.no_proxy(host);
    }
    builder.build().ok()
}

/// The certificates that count in place of the system's.
fn trust(settings: &RemoteSettings) -> Result<Option<Trust>> {
    let variable = std::env::var_os("AWS_CA_BUNDLE").filter(|path| !path.is_empty());
    let named = match (&settings.ca_file, &variable) {
        (Some(path), _) => Some(("ca_file", path.as_path())),
        (None, Some(path)) => Some(("AWS_CA_BUNDLE", Path::new(path))),
        (None, None) => None,
    };
    let read = named.map(|(word, path)| Trust::of_file(word, path));
    read.transpose()
}

pub(super) use hosts::Reach;

/// The addresses of hosts, as far as they may be spoken to.
#[derive(Debug)]
struct Names {
    inner: DefaultResolver,
    reach: Reach,
    /// The user named them as well.
    proxies: Vec<String>,
    known: Mutex<HashMap<(String, u16), Known>>,
}

#[derive(Debug)]
struct Known {
    addresses: Vec<SocketAddr>,
    until: Instant,
}

impl Names {
    fn new(reach: Reach, proxies: Vec<String>) -> Self {
        Names {
            inner: DefaultResolver::default(),
            reach,
            proxies,
            known: Mutex::default(),
        }
    }

    fn look_up(
        &self,
        uri: &Uri,
        config: &Config,
        timeout: NextTimeout,
    ) -> std::result::Result<Vec<SocketAddr>, ureq::Error> {
        const FRESH: Duration = Duration::from_secs(60);
        let key = (uri.host().unwrap_or_default().to_owned(), hosts::port(uri));
        let now = Instant::now();
        let old = lock(&self.known)
            .get(&key)
            .map(|known| (known.addresses.clone(), known.until));
        if let Some((addresses, until)) = &old
            && *until > now
        {
            return Ok(addresses.clone());
        }
        // The cage may not let the resolver read a file that has replaced its own.
        let addresses = match (self.inner.resolve(uri, config, timeout), old) {
            (Ok(found), _) => found.to_vec(),
            (Err(error), Some((addresses, _))) => {
                log::warn!("{}: {error}; its last addresses are used", key.0);
                addresses
            }
            (Err(error), None) => return Err(error),
        };
        let mut known = lock(&self.known);
        // Hosts that servers name are as many as they like.
        if known.len() >= limits::HOSTS {
            known.clear();
        }
        let until = now + FRESH;
        let addresses_known = addresses.clone();
        known.insert(
            key,
            Known {
                addresses: addresses_known,
                until,
            },
        );
        Ok(addresses)
    }
}

impl Resolver for Names {
    fn resolve(
        &self,
        uri: &Uri,
        config: &Config,
        timeout: NextTimeout,
    ) -> std::result::Result<ResolvedSocketAddrs, ureq::Error> {
        let mut allowed = self.empty();
        let found = self.look_up(uri, config, timeout)?;
        let is_proxy = self
            .proxies
            .iter()
            .any(|host| Some(host.as_str()) == uri.host());
        let may_be_had = |address: &&SocketAddr| is_proxy || self.reach.allows(address.ip());
        for address in found.iter().filter(may_be_had).take(16) {
            allowed.push(*address);
        }
        if allowed.is_empty() {
            Err(ureq::Error::Io(io::Error::new(
                io::ErrorKind::PermissionDenied,
                "a server led to an address that it may not lead to",
            )))
        } else {
            Ok(allowed)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file of the resolver may have been replaced, so that the cage hides it.
    #[test]
    fn a_host_that_is_not_found_any_more_has_its_last_addresses() {
        let names = Names::new(Reach::Anywhere, Vec::new());
        let address = SocketAddr::from(([192, 0, 2, 1], 80));
        let known = Known {
            addresses: vec![address],
            until: Instant::now(),
        };
        lock(&names.known).insert(("gone.invalid".to_owned(), 80), known);
        let config = Config::default();
        let timeout = || NextTimeout {
            after: Duration::from_secs(5).into(),
            reason: ureq::Timeout::Resolve,
            ..NextTimeout::default()
        };
        let look_up = |host: &str| {
            let uri = format!("http://{host}/").parse().unwrap();
            names.look_up(&uri, &config, timeout()).ok()
        };
        assert_eq!(look_up("gone.invalid"), Some(vec![address]));
        assert_eq!(look_up("never.invalid"), None);
    }
}
