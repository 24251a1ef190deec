//! The proxies that the environment names, and the requests that go through them.
//!
//! | request | route |
//! |---|---|
//! | to this machine, or to a metadata service | no proxy: the proxy would connect to its own machine |
//! | over http, with a secret | no proxy: the proxy could read the secret |
//! | over https | a tunnel: `CONNECT HOST:443` |
//! | over http | the proxy's own request: `GET http://HOST/PATH`, RFC 9112, section 3.2.2 |

use std::fmt;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use h5fs_reader::source::location::signature::is_signed;
use http::uri::Authority;
use http::{HeaderMap, HeaderName, Request, Uri, header};
use ureq::config::Config;
use ureq::unversioned::resolver::{ResolvedSocketAddrs, Resolver};
use ureq::unversioned::transport::{Buffers, ConnectionDetails, Connector, NextTimeout, Transport};
use ureq::{Error, Proxy, ProxyProtocol};

use crate::client::resolver::PermittedResolver;
use crate::fetch_error::FetchError;
use crate::hosts::{self, AddressPolicy};

/// The proxies that the environment variables name. The variables have the lowercase names that
/// curl also reads.
#[derive(Debug, Default)]
pub(super) struct Proxies {
    http: Option<Proxy>,
    https: Option<Proxy>,
}

/// The route of a request to its server.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Route {
    /// A direct connection to the server.
    Direct,
    /// A tunnel through the proxy, which opens the connection to the server.
    Tunnel(Proxy),
    /// A request to the proxy, which sends the request to the server on its own connection.
    Forwarded,
}

impl Proxies {
    /// Reads the environment variables.
    pub(super) fn from_environment() -> Self {
        Self::from_variables(|name| std::env::var(name).ok())
    }

    fn from_variables(variable: impl Fn(&str) -> Option<String>) -> Self {
        let first = |names: &[&str]| {
            let mut values = names.iter().filter_map(|name| variable(name));
            values.find(|value| !value.is_empty())
        };
        let except = first(&["no_proxy", "NO_PROXY"]).unwrap_or_default();
        let proxy_of = |names: &[&str]| parse_proxy(&first(names)?, &except);
        Proxies {
            http: proxy_of(&["http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"]),
            https: proxy_of(&["https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"]),
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Proxy> {
        [&self.http, &self.https].into_iter().flatten()
    }

    /// Returns the route of a request to `uri`.
    ///
    /// # Errors
    /// `Other` if the protocol of the proxy is not supported.
    pub(super) fn route(&self, uri: &Uri, has_secret: bool) -> Result<Route, FetchError> {
        let is_encrypted = uri.scheme_str() == Some("https");
        let proxy = if is_encrypted {
            &self.https
        } else {
            &self.http
        };
        let is_exempt = |proxy: &Proxy| hosts::is_proxy_exempt(uri) || proxy.is_no_proxy(uri);
        let Some(proxy) = proxy.as_ref().filter(|proxy| !is_exempt(proxy)) else {
            return Ok(Route::Direct);
        };
        match proxy.protocol() {
            _ if has_secret && !is_encrypted => Ok(Route::Direct),
            ProxyProtocol::Http | ProxyProtocol::Https if is_encrypted => {
                Ok(Route::Tunnel(proxy.clone()))
            }
            ProxyProtocol::Http | ProxyProtocol::Https => Ok(Route::Forwarded),
            _ => Err(FetchError::permanent(
                "the environment names a SOCKS proxy, which is not supported",
            )),
        }
    }

    /// Returns the connector and the resolver for plain HTTP requests through the proxy. `inner`
    /// opens the connections to the proxy. Returns `None` if no HTTP proxy is set.
    pub(super) fn forwarding_connector<C>(
        &self,
        inner: C,
    ) -> Option<(ForwardingConnector<C>, ProxyResolver)> {
        let proxy = self.http.as_ref()?;
        let scheme = match proxy.protocol() {
            ProxyProtocol::Http => "http",
            ProxyProtocol::Https => "https",
            _ => return None,
        };
        let uri = format!("{scheme}://{}:{}/", proxy.host(), proxy.port());
        let uri: Uri = uri.parse().ok()?;
        let names = ProxyResolver {
            names: PermittedResolver::new(AddressPolicy::Anywhere, Vec::new()),
            proxy: uri.clone(),
        };
        let login = login_header(proxy);
        let forwarding = ForwardingConnector {
            inner,
            proxy: uri,
            login,
        };
        Some((forwarding, names))
    }
}

/// Parses the URL of a proxy. `except` lists the hosts for which the proxy is not used.
fn parse_proxy(text: &str, except: &str) -> Option<Proxy> {
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

/// Returns the header line that authenticates the user to the proxy. Returns an empty text if the
/// proxy's URL has no user.
fn login_header(proxy: &Proxy) -> String {
    let (user, password) = (proxy.username(), proxy.password());
    if user.is_none() && password.is_none() {
        return String::new();
    }
    let pair = format!(
        "{}:{}",
        user.unwrap_or_default(),
        password.unwrap_or_default()
    );
    let pair = BASE64_STANDARD.encode(pair);
    format!("Proxy-Authorization: Basic {pair}\r\n")
}

/// Returns whether a request contains a secret: a login, a signature, or cloud credentials.
pub(super) fn has_secret<T>(request: &Request<T>) -> bool {
    let has_signature = request.uri().query().is_some_and(is_signed);
    has_signature || has_secret_header(request.headers())
}

fn has_secret_header(headers: &HeaderMap) -> bool {
    const NAMES: [HeaderName; 3] = [
        header::AUTHORIZATION,
        header::COOKIE,
        HeaderName::from_static("x-amz-security-token"),
    ];
    let mut all = headers.iter();
    all.any(|(name, value)| value.is_sensitive() || NAMES.contains(name))
}

/// A connector that connects to a proxy instead of the server, and rewrites requests for the proxy.
pub(super) struct ForwardingConnector<C> {
    inner: C,
    proxy: Uri,
    /// The header line that authenticates to the proxy, or an empty text.
    login: String,
}

impl<C> fmt::Debug for ForwardingConnector<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Forwarding")
    }
}

impl<C: Connector<()>> Connector<()> for ForwardingConnector<C> {
    type Out = AbsoluteFormTransport<C::Out>;

    fn connect(
        &self,
        details: &ConnectionDetails<'_>,
        chained: Option<()>,
    ) -> Result<Option<Self::Out>, Error> {
        let to_proxy = ConnectionDetails {
            uri: &self.proxy,
            addrs: details.addrs.clone(),
            config: details.config,
            request_level: details.request_level,
            resolver: details.resolver,
            now: details.now,
            timeout: details.timeout,
            current_time: details.current_time.clone(),
            run_connector: details.run_connector.clone(),
            register_shutdown: details.register_shutdown.clone(),
        };
        let connection = self.inner.connect(&to_proxy, chained)?;
        let server = details.uri.authority().map_or("", Authority::as_str);
        Ok(connection.map(|connection| AbsoluteFormTransport {
            connection,
            start: format!("http://{server}"),
            login: self.login.clone(),
        }))
    }
}

/// A connection to a proxy. Requests are rewritten to the absolute form, which names the server.
#[derive(Debug)]
pub(super) struct AbsoluteFormTransport<T> {
    connection: T,
    /// The start of the server's URI: its scheme, host and port.
    start: String,
    login: String,
}

impl<T: Transport> AbsoluteFormTransport<T> {
    /// Rewrites a request to the absolute form. The request is in the first `amount` bytes of the
    /// output buffer. Returns its new length in bytes.
    fn rewrite(&mut self, amount: usize) -> Result<usize, Error> {
        let output = self.connection.buffers().output();
        let Some(text) = output
            .get(..amount)
            .and_then(|head| to_absolute_form(head, &self.start, &self.login))
        else {
            return Ok(amount);
        };
        let place = output
            .get_mut(..text.len())
            .ok_or_else(|| Error::Io(std::io::Error::other("the request header is too long")))?;
        place.copy_from_slice(&text);
        Ok(text.len())
    }
}

/// Converts the start of a request to the absolute form. `start` is the URI up to the path, and
/// `login` becomes the first header line. Returns `None` if `head` is not the start of a request.
fn to_absolute_form(head: &[u8], start: &str, login: &str) -> Option<Vec<u8>> {
    let end = head.windows(2).position(|pair| pair == b"\r\n")?;
    let (line, rest) = head.split_at_checked(end + 2)?;
    let space = line.iter().position(|byte| *byte == b' ')?;
    let (method, target) = line.split_at_checked(space + 1)?;
    let is_method = |byte: &u8| byte.is_ascii_uppercase();
    let is_start = method.iter().take(space).all(is_method) && target.starts_with(b"/");
    is_start.then(|| [method, start.as_bytes(), target, login.as_bytes(), rest].concat())
}

impl<T: Transport> Transport for AbsoluteFormTransport<T> {
    fn buffers(&mut self) -> &mut dyn Buffers {
        self.connection.buffers()
    }

    fn transmit_output(&mut self, amount: usize, timeout: NextTimeout) -> Result<(), Error> {
        let amount = self.rewrite(amount)?;
        self.connection.transmit_output(amount, timeout)
    }

    fn await_input(&mut self, timeout: NextTimeout) -> Result<bool, Error> {
        self.connection.await_input(timeout)
    }

    fn is_open(&mut self) -> bool {
        self.connection.is_open()
    }

    fn is_tls(&self) -> bool {
        self.connection.is_tls()
    }
}

/// A resolver that returns the proxy's addresses for the name of every server.
#[derive(Debug)]
pub(super) struct ProxyResolver {
    names: PermittedResolver,
    proxy: Uri,
}

impl Resolver for ProxyResolver {
    fn resolve(
        &self,
        _: &Uri,
        config: &Config,
        timeout: NextTimeout,
    ) -> Result<ResolvedSocketAddrs, Error> {
        self.names.resolve(&self.proxy, config, timeout)
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn proxies(variables: &[(&str, &str)]) -> Proxies {
        Proxies::from_variables(|name| {
            let mut pairs = variables.iter();
            let pair = pairs.find(|(own, _)| *own == name);
            pair.map(|(_, value)| (*value).to_owned())
        })
    }

    fn route(proxies: &Proxies, uri: &str, has_secret: bool) -> &'static str {
        match proxies.route(&uri.parse().unwrap(), has_secret) {
            Ok(Route::Direct) => "direct",
            Ok(Route::Tunnel(_)) => "tunnel",
            Ok(Route::Forwarded) => "forwarded",
            Err(_) => "refused",
        }
    }

    #[test]
    fn this_machine_and_metadata_services_are_reached_without_a_proxy() {
        let all = proxies(&[("ALL_PROXY", "http://proxy.example.org:3128")]);
        for host in [
            "localhost",
            "LOCALHOST",
            "localhost.",
            "run.localhost",
            "127.0.0.1",
            "127.9.9.9",
            "[::1]",
            "[::ffff:127.0.0.1]",
            "169.254.169.254",
            "169.254.170.2",
            "[fe80::1]",
            "metadata.google.internal",
            "metadata",
        ] {
            for scheme in ["http", "https"] {
                let uri = format!("{scheme}://{host}:8080/a");
                assert_eq!(route(&all, &uri, false), "direct", "{uri}");
            }
        }
        for host in [
            "example.org",
            "10.0.0.1",
            "localhost.example.org",
            "notlocalhost",
        ] {
            let uri = format!("http://{host}/a");
            assert_eq!(route(&all, &uri, false), "forwarded", "{uri}");
        }
    }

    #[test]
    fn each_variable_names_a_proxy_and_no_secret_goes_there_in_clear() {
        for (variable, http, https) in [
            ("http_proxy", "forwarded", "direct"),
            ("HTTP_PROXY", "forwarded", "direct"),
            ("https_proxy", "direct", "tunnel"),
            ("HTTPS_PROXY", "direct", "tunnel"),
            ("all_proxy", "forwarded", "tunnel"),
            ("ALL_PROXY", "forwarded", "tunnel"),
        ] {
            let one = proxies(&[(variable, "proxy:3128")]);
            assert_eq!(route(&one, "http://example.org/", false), http);
            assert_eq!(route(&one, "https://example.org/", false), https);
            assert_eq!(route(&one, "http://example.org/", true), "direct");
            assert_eq!(route(&one, "https://example.org/", true), https);
        }
        let except = proxies(&[("http_proxy", "proxy:3128"), ("no_proxy", "a.org, .b.org")]);
        assert_eq!(route(&except, "http://a.org/", false), "direct");
        assert_eq!(route(&except, "http://x.b.org/", false), "direct");
        assert_eq!(route(&except, "http://c.org/", false), "forwarded");
        let socks = proxies(&[("ALL_PROXY", "socks5://proxy:1080")]);
        assert_eq!(route(&socks, "https://a.org/", false), "refused");
        assert_eq!(route(&socks, "http://127.0.0.1/", false), "direct");
    }

    #[test]
    fn a_login_or_a_signature_is_a_secret() {
        let request = |uri: &str| Request::get(uri).body(()).unwrap();
        assert!(!has_secret(&request("http://h/a?list-type=2&sig=1")));
        for signed in [
            "http://h/a?X-Amz-Signature=1",
            "http://h/a?sv=1&se=2&sp=r&sig=3",
        ] {
            assert!(has_secret(&request(signed)), "{signed}");
        }
        for name in ["authorization", "cookie", "x-amz-security-token"] {
            let mut request = request("http://h/a");
            request
                .headers_mut()
                .insert(name, HeaderValue::from_static("a"));
            assert!(has_secret(&request), "{name}");
        }
        let mut of_file = HeaderValue::from_static("k");
        of_file.set_sensitive(true);
        let mut request = request("http://h/a");
        request.headers_mut().insert("x-api-key", of_file);
        assert!(has_secret(&request));
    }

    #[test]
    fn a_proxied_request_has_the_absolute_uri() {
        let head = b"GET /a?b=/c HTTP/1.1\r\nhost: h:81\r\n\r\n";
        let wanted = "GET http://h:81/a?b=/c HTTP/1.1\r\nP: q\r\nhost: h:81\r\n\r\n";
        let found = to_absolute_form(head, "http://h:81", "P: q\r\n");
        assert_eq!(found.as_deref(), Some(wanted.as_bytes()));
        for other in [
            &b"range: bytes=0-1\r\n\r\n"[..],
            b"GET http://h/ HTTP/1.1\r\n",
            b"",
            b"GET /",
        ] {
            assert_eq!(to_absolute_form(other, "http://h", ""), None);
        }
        let named = Proxy::new("http://joe:sesame@proxy:3128").unwrap();
        // Output of `printf joe:sesame | base64`.
        assert_eq!(
            login_header(&named),
            "Proxy-Authorization: Basic am9lOnNlc2FtZQ==\r\n"
        );
        assert_eq!(login_header(&Proxy::new("proxy:3128").unwrap()), "");
    }
}
