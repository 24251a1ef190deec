//! Access control.
//!
//! A browser on this machine runs the scripts of any site, so listening on loopback is not a
//! protection. A request must present the token of the printed URL, and name this server as its
//! host. A foreign host name that resolves to this server (DNS rebinding) is refused before any
//! file is opened. Only explicitly allowed sites may read a response.
//!
//! A browser sends a cookie to every port of a host, and other users may listen on other ports of
//! `127.0.0.1`. Each run therefore has a host name of its own, `h5fs-DIGITS.localhost`, which other
//! users cannot guess. A cookie is set and accepted only under that name, never under a name common
//! to all servers of a machine.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use http::header::{ACCEPT, AUTHORIZATION, COOKIE, HOST, ORIGIN};
use http::request::Parts;
use http::uri::Authority;
use http::{HeaderMap, StatusCode, Version};
use sha2::{Digest, Sha256};

use crate::http::fault::RequestFault;
use crate::http::preferences::{header_values, quality_value};
use crate::http::random::hex_digits;
use crate::http::target::RequestTarget;

/// The access rules of a server.
#[derive(Debug, Clone, Default)]
pub struct AccessRules {
    /// The token that a request must present, or `None` if every client of the socket has access.
    pub token: Option<Token>,
    /// Listening address, or `None` for a Unix socket, which web sites cannot reach.
    pub address: Option<SocketAddr>,
    /// Additional host names of this server.
    pub hosts: Vec<String>,
    /// Origins (scheme, host and port of a site) whose scripts may read responses.
    pub origins: Vec<String>,
}

/// The secret text that a client must present. It is never displayed.
#[derive(Clone)]
pub struct Token(String);

impl std::fmt::Debug for Token {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Token")
    }
}

impl Token {
    /// Creates a token from a text of letters and digits.
    #[must_use]
    pub fn new(text: String) -> Self {
        Token(text)
    }

    /// Returns the host name of this run, `h5fs-DIGITS.localhost`. The digits are a digest of the
    /// token, so the name is new for each run and does not reveal the token.
    #[must_use]
    pub fn host_name(&self) -> String {
        format!("h5fs-{}.localhost", self.hex_digest("host name"))
    }

    /// Returns the value of the cookie for a host. The value differs from the token and is invalid
    /// for any other host.
    fn cookie_value(&self, host: &str) -> String {
        self.hex_digest(&format!("cookie {host}"))
    }

    /// Returns 128 bits of a digest of the token and of the text `purpose`, as hexadecimal digits.
    fn hex_digest(&self, purpose: &str) -> String {
        let digest = Sha256::digest(format!("h5fs {purpose}\n{}", self.0));
        let (half, _) = digest.split_at(digest.len() / 2);
        hex_digits(half)
    }

    /// Returns whether `text` is the token.
    fn matches(&self, text: &str) -> bool {
        equals_in_constant_time(text, &self.0)
    }
}

/// Compares two secrets in a time that does not depend on where they differ.
fn equals_in_constant_time(one: &str, other: &str) -> bool {
    Sha256::digest(one) == Sha256::digest(other)
}

/// The host name of this server that a request uses.
#[derive(Debug, Clone, PartialEq, Eq)]
enum RequestHost {
    /// A host name or address of this server, in lowercase. Cookies may be set for this name.
    Own(String),
    /// A name that every server on a machine has: `localhost` or a loopback address. The browser
    /// would also send cookies of this name to servers of other users.
    Shared,
}

/// The result of a successful access check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Admission {
    /// The request has access and is handled.
    Granted,
    /// A browser has presented the token in the URL. The browser must store this cookie and repeat
    /// the request without the token, to keep the token out of history, bookmarks and referrers.
    StoreToken(String),
}

impl AccessRules {
    /// Checks whether a request has access.
    ///
    /// # Errors
    /// 400 and 421 for a foreign host, 401 without the token.
    pub(super) fn admit(
        &self,
        parts: &Parts,
        target: &RequestTarget,
    ) -> Result<Admission, RequestFault> {
        let host = self.request_host(parts)?;
        let Some(token) = &self.token else {
            return Ok(Admission::Granted);
        };
        if let Some(text) = &target.token {
            return match host {
                _ if !token.matches(text) => Err(missing_token_fault()),
                _ if !is_page_request(&parts.headers) => Ok(Admission::Granted),
                RequestHost::Own(host) => Ok(Admission::StoreToken(self.cookie(token, &host))),
                RequestHost::Shared => Err(shared_host_fault(token, parts)),
            };
        }
        let has_credentials = header_values(&parts.headers, &AUTHORIZATION)
            .filter_map(|text| text.split_once(' '))
            .any(
                |(scheme, text)| match scheme.to_ascii_lowercase().as_str() {
                    "bearer" => token.matches(text.trim()),
                    "basic" => basic_password(text.trim()).is_some_and(|text| token.matches(&text)),
                    _ => false,
                },
            );
        let has_cookie = match host {
            RequestHost::Own(host) => self.has_cookie(&parts.headers, &token.cookie_value(&host)),
            RequestHost::Shared => false,
        };
        if has_credentials || has_cookie {
            Ok(Admission::Granted)
        } else {
            Err(missing_token_fault())
        }
    }

    fn has_cookie(&self, headers: &HeaderMap, value: &str) -> bool {
        let name = self.cookie_name();
        header_values(headers, &COOKIE)
            .flat_map(|text| text.split(';'))
            .filter_map(|pair| pair.trim().split_once('='))
            .any(|(own, text)| own == name && equals_in_constant_time(text, value))
    }

    /// Returns the origin of the page whose script sent the request, if scripts of this origin may
    /// read responses.
    pub(super) fn allowed_origin<'h>(&self, headers: &'h HeaderMap) -> Option<&'h str> {
        let origin = headers.get(ORIGIN)?.to_str().ok()?;
        let is_named = self.origins.iter().any(|own| own == origin);
        is_named.then_some(origin)
    }

    /// Returns the name of the cookie, which contains the port because browsers share cookies among
    /// all ports of a host.
    fn cookie_name(&self) -> String {
        match self.address {
            Some(address) => format!("h5fs-{}", address.port()),
            None => "h5fs".to_owned(),
        }
    }

    fn cookie(&self, token: &Token, host: &str) -> String {
        let (name, value) = (self.cookie_name(), token.cookie_value(host));
        format!("{name}={value}; HttpOnly; SameSite=Strict; Path=/")
    }

    /// Determines the host of a request.
    fn request_host(&self, parts: &Parts) -> Result<RequestHost, RequestFault> {
        let Some(address) = self.address else {
            return Ok(self.classify_socket_host(parts));
        };
        let fields = parts.headers.get_all(HOST).iter().count();
        let named = match parts.uri.authority() {
            _ if fields > 1 || fields == 0 && parts.version > Version::HTTP_10 => {
                return Err(RequestFault::bad_request(
                    "exactly one Host header is required",
                ));
            }
            Some(authority) => authority.as_str().to_owned(),
            // Browsers do not use HTTP/1.0.
            None if fields == 0 => return Ok(RequestHost::Shared),
            None => header_values(&parts.headers, &HOST)
                .next()
                .unwrap_or_default()
                .to_owned(),
        };
        let host = named.parse::<Authority>();
        let host = host.map_err(|_| RequestFault::bad_request("the Host header is not valid"))?;
        let name = host_name(&host);
        self.classify_host(name, address.ip()).ok_or_else(|| {
            let reason = "this server does not have that name; --allow-host NAME accepts it";
            RequestFault::new(StatusCode::MISDIRECTED_REQUEST, reason)
        })
    }

    /// Classifies the host of a request on a Unix socket. Every name is accepted, because a proxy
    /// may send any name. Through `ssh -L`, a browser sends loopback names of its own machine,
    /// which the servers of other users on that machine share.
    fn classify_socket_host(&self, parts: &Parts) -> RequestHost {
        let Some(host) = authority(parts) else {
            return RequestHost::Shared;
        };
        let name = host_name(&host);
        let loopback = address_of(&name).map(|address| address.is_loopback());
        let is_shared = loopback.unwrap_or(name == "localhost");
        if is_shared && !self.is_allowed(&name) {
            RequestHost::Shared
        } else {
            RequestHost::Own(name)
        }
    }

    fn is_allowed(&self, name: &str) -> bool {
        self.hosts.iter().any(|own| own.eq_ignore_ascii_case(name))
    }

    /// Classifies a host name in lowercase. Returns `None` if it does not name this server. The
    /// port is not compared, because a tunnel uses another one.
    fn classify_host(&self, name: String, listening: IpAddr) -> Option<RequestHost> {
        let is_of_run = self
            .token
            .as_ref()
            .is_some_and(|token| token.host_name() == name);
        if is_of_run || self.is_allowed(&name) {
            return Some(RequestHost::Own(name));
        }
        let Some(address) = address_of(&name) else {
            return (name == "localhost").then_some(RequestHost::Shared);
        };
        if is_usual_loopback(address) || address.is_loopback() && address != listening {
            return Some(RequestHost::Shared);
        }
        // A numeric address cannot be redirected, but on loopback only the listening address is
        // accepted.
        let is_own = address == listening || !listening.is_loopback();
        is_own.then_some(RequestHost::Own(name))
    }
}

/// Returns whether the name `localhost` and names below it usually resolve to this address.
#[must_use]
pub fn is_usual_loopback(address: IpAddr) -> bool {
    address == Ipv4Addr::LOCALHOST || address == Ipv6Addr::LOCALHOST
}

/// Returns the authority of a request, if it has one that is valid.
fn authority(parts: &Parts) -> Option<Authority> {
    let named = parts.uri.authority().cloned();
    named.or_else(|| header_values(&parts.headers, &HOST).next()?.parse().ok())
}

/// Returns the host of an authority in lowercase, without the dot at the end of an absolute name.
fn host_name(authority: &Authority) -> String {
    let host = authority.host().trim_end_matches('.');
    host.to_ascii_lowercase()
}

/// Returns the address of a host that is written as an IP address.
fn address_of(host: &str) -> Option<IpAddr> {
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    let address = bare.parse::<IpAddr>().ok()?;
    Some(address.to_canonical())
}

/// Creates the refusal for a browser that presents the token under `localhost` or a loopback
/// address, with a URL to use in its place.
fn shared_host_fault(token: &Token, parts: &Parts) -> RequestFault {
    let name = token.host_name();
    // The port of a tunnel differs from the port of the server.
    let port = authority(parts).and_then(|authority| authority.port_u16());
    let port = port.map_or(String::new(), |port| format!(":{port}"));
    let reason = format!(
        "open http://{name}{port}/ with the token in a browser: under this host name, the browser \
         would also send the cookie to the servers of other users; if the browser cannot resolve \
         the name, use --allow-host 127.0.0.1"
    );
    RequestFault::new(StatusCode::MISDIRECTED_REQUEST, reason)
}

fn missing_token_fault() -> RequestFault {
    let reason = "a token is required: open the URL that h5fs printed, or send `Authorization: \
                  Bearer TOKEN`";
    RequestFault::new(StatusCode::UNAUTHORIZED, reason)
}

/// Returns whether the request comes from a browser that displays the response as a page.
fn is_page_request(headers: &HeaderMap) -> bool {
    quality_value(headers, &ACCEPT, "text/html") > 0.0
}

/// Returns the password in the credentials of the scheme `Basic` (RFC 7617). File managers send the
/// token this way, because they cannot send other headers.
fn basic_password(credentials: &str) -> Option<String> {
    let decoded = BASE64_STANDARD.decode(credentials).ok()?;
    let text = String::from_utf8(decoded).ok()?;
    text.split_once(':')
        .map(|(_, password)| password.to_owned())
}

#[cfg(test)]
mod tests {
    use http::HeaderName;

    use super::*;
    use http::Request;

    const TOKEN: &str = "0123456789abcdef";

    fn access() -> AccessRules {
        AccessRules {
            token: Some(Token::new(TOKEN.to_owned())),
            address: Some("127.0.0.1:8080".parse().unwrap()),
            hosts: vec!["node7".to_owned()],
            origins: vec!["https://viewer.example".to_owned()],
        }
    }

    fn asked(
        access: &AccessRules,
        uri: &str,
        fields: &[(HeaderName, &str)],
    ) -> Result<Admission, u16> {
        let mut request = Request::get(uri);
        for (name, text) in fields {
            request = request.header(name, *text);
        }
        let parts = request.body(()).unwrap().into_parts().0;
        let target = RequestTarget::parse(&parts.uri).unwrap();
        access
            .admit(&parts, &target)
            .map_err(|fault| fault.status.as_u16())
    }

    /// The `Accept` header of a browser that opens a page.
    const PAGE: (HeaderName, &str) = (ACCEPT, "text/html,*/*;q=0.8");

    #[test]
    fn the_token_lets_in_and_nothing_else() {
        let access = access();
        let name = access.token.as_ref().unwrap().host_name();
        let own = (HOST, &*format!("{name}:8080"));
        let bearer = format!("Bearer {TOKEN}");
        let asked = |uri: &str, fields: &[(HeaderName, &str)]| {
            asked(&access, uri, &[std::slice::from_ref(&own), fields].concat())
        };
        let query = format!("/x?token={TOKEN}");
        assert_eq!(asked(&query, &[]), Ok(Admission::Granted));
        assert_eq!(
            asked("/x", &[(AUTHORIZATION, &bearer)]),
            Ok(Admission::Granted)
        );
        let Ok(Admission::StoreToken(kept)) = asked(&query, &[PAGE]) else {
            panic!("no cookie");
        };
        let (pair, attributes) = kept.split_once("; ").unwrap();
        assert_eq!(attributes, "HttpOnly; SameSite=Strict; Path=/");
        let value = pair.strip_prefix("h5fs-8080=").unwrap();
        assert!(value.len() == 32 && value != TOKEN, "{value}");
        let cookie = format!("a=b; {pair}");
        assert_eq!(asked("/x", &[(COOKIE, &cookie)]), Ok(Admission::Granted));
        let basic = |text: &str| format!("Basic {}", BASE64_STANDARD.encode(text));
        let own_basic = basic(&format!("any user:{TOKEN}"));
        assert_eq!(
            asked("/x", &[(AUTHORIZATION, &own_basic)]),
            Ok(Admission::Granted)
        );
        let (as_user, plain) = (basic(&format!("{TOKEN}:")), format!("Basic {TOKEN}"));
        let elsewhere = format!("h5fs-8081={value}");
        let bare = format!("h5fs-8080={TOKEN}");
        let as_token = format!("Bearer {value}");
        for fields in [
            &[][..],
            &[(AUTHORIZATION, "Bearer 0123456789abcdee")],
            &[(AUTHORIZATION, "Bearer ")],
            &[(AUTHORIZATION, &*as_user)],
            &[(AUTHORIZATION, &*plain)],
            &[(AUTHORIZATION, &*as_token)],
            &[(COOKIE, &*elsewhere)],
            &[(COOKIE, &*bare)],
        ] {
            assert_eq!(asked("/x", fields), Err(401), "{fields:?}");
        }
        assert_eq!(asked("/x?token=", &[(AUTHORIZATION, &bearer)]), Err(401));
        assert!(!format!("{access:?}").contains(TOKEN));
    }

    /// Servers of other users listen on other ports of the same loopback address, and receive its
    /// cookies.
    #[test]
    fn a_cookie_is_for_one_host_that_no_other_server_has() {
        let access = access();
        let token = access.token.as_ref().unwrap();
        let (query, bearer) = (format!("/x?token={TOKEN}"), format!("Bearer {TOKEN}"));
        let of_host = |host: &str| format!("h5fs-8080={}", token.cookie_value(host));
        let name = token.host_name();
        for shared in [
            "127.0.0.1",
            "localhost",
            "[::1]",
            "127.0.0.2",
            "[::ffff:127.0.0.1]",
        ] {
            let host = (HOST, &*format!("{shared}:8080"));
            let asked =
                |uri: &str, field: (HeaderName, &str)| asked(&access, uri, &[host.clone(), field]);
            assert_eq!(asked(&query, PAGE), Err(421), "{shared}");
            assert_eq!(asked(&query, (ACCEPT, "*/*")), Ok(Admission::Granted));
            assert_eq!(
                asked("/x", (AUTHORIZATION, &bearer)),
                Ok(Admission::Granted)
            );
            for kept in [of_host(shared), of_host(&name)] {
                assert_eq!(asked("/x", (COOKIE, &kept)), Err(401), "{shared}");
            }
        }
        // A host name allowed by the user has a cookie of its own.
        let named = |cookie: &str| asked(&access, "/x", &[(HOST, "node7"), (COOKIE, cookie)]);
        assert_eq!(named(&of_host("node7")), Ok(Admission::Granted));
        assert_eq!(named(&of_host(&name)), Err(401));
        let allowed = AccessRules {
            hosts: vec!["127.0.0.1".to_owned()],
            ..access.clone()
        };
        let entered = asked(&allowed, &query, &[(HOST, "127.0.0.1:8080"), PAGE]);
        assert!(
            matches!(entered, Ok(Admission::StoreToken(_))),
            "{entered:?}"
        );
    }

    /// `ssh -L 8000:SOCKET` opens a port on another machine, where other users may run servers.
    #[test]
    fn a_cookie_at_a_tunnel_to_a_socket_is_for_the_name_of_the_run() {
        let access = AccessRules {
            address: None,
            hosts: Vec::new(),
            ..access()
        };
        let token = access.token.as_ref().unwrap();
        let (query, bearer) = (format!("/x?token={TOKEN}"), format!("Bearer {TOKEN}"));
        let of_host = |host: &str| format!("h5fs={}", token.cookie_value(host));
        for shared in ["localhost", "127.0.0.1", "127.0.0.9", "[::1]"] {
            let host = (HOST, &*format!("{shared}:8000"));
            let asked =
                |uri: &str, field: (HeaderName, &str)| asked(&access, uri, &[host.clone(), field]);
            assert_eq!(asked(&query, PAGE), Err(421), "{shared}");
            assert_eq!(asked(&query, (ACCEPT, "*/*")), Ok(Admission::Granted));
            assert_eq!(
                asked("/x", (AUTHORIZATION, &bearer)),
                Ok(Admission::Granted)
            );
            for kept in [of_host(shared), of_host("")] {
                assert_eq!(asked("/x", (COOKIE, &kept)), Err(401), "{shared}");
            }
        }
        // A proxy may send any other name.
        for own in [&*token.host_name(), "hub.example"] {
            let host = (HOST, &*format!("{own}:8000"));
            let entered = asked(&access, &query, &[host.clone(), PAGE]);
            let cookie = format!("{}; HttpOnly; SameSite=Strict; Path=/", of_host(own));
            assert_eq!(entered, Ok(Admission::StoreToken(cookie)), "{own}");
            let kept = of_host(own);
            assert_eq!(
                asked(&access, "/x", &[host, (COOKIE, &kept)]),
                Ok(Admission::Granted)
            );
        }
        let allowed = AccessRules {
            hosts: vec!["localhost".to_owned()],
            ..access.clone()
        };
        let entered = asked(&allowed, &query, &[(HOST, "localhost:8000"), PAGE]);
        assert!(
            matches!(entered, Ok(Admission::StoreToken(_))),
            "{entered:?}"
        );
    }

    #[test]
    fn each_token_has_a_host_name_of_its_own() {
        let name = |token: &str| Token::new(token.to_owned()).host_name();
        let digits = name(TOKEN);
        let digits = digits.strip_prefix("h5fs-").unwrap();
        let digits = digits.strip_suffix(".localhost").unwrap();
        assert!(digits.len() == 32 && digits.bytes().all(|byte| byte.is_ascii_hexdigit()));
        assert!(!digits.contains(TOKEN));
        assert_ne!(name(TOKEN), name("0123456789abcdee"));
    }

    #[test]
    fn no_other_name_leads_here() {
        let open = AccessRules {
            token: None,
            ..access()
        };
        let host = |access: &AccessRules, host: &str| asked(access, "/", &[(HOST, host)]);
        for own in [
            "127.0.0.1:8080",
            "localhost",
            "LOCALHOST:1",
            "localhost.",
            "[::1]:9",
            "127.0.0.2",
            "node7:80",
        ] {
            assert_eq!(host(&open, own), Ok(Admission::Granted), "{own}");
        }
        for other in [
            "evil.example",
            "evil.example:8080",
            "localhost.evil.example",
            "h5fs-0123456789abcdef0123456789abcdef.localhost",
            "10.0.0.1",
            "node77",
        ] {
            assert_eq!(host(&open, other), Err(421), "{other}");
        }
        assert_eq!(asked(&open, "/", &[]), Err(400));
        assert_eq!(host(&open, "a b"), Err(400));
        let twice = [(HOST, "localhost"), (HOST, "evil.example")];
        assert_eq!(asked(&open, "/", &twice), Err(400));
        // An absolute target's authority takes precedence.
        let absolute = asked(&open, "http://evil.example/", &[(HOST, "localhost")]);
        assert_eq!(absolute, Err(421));
        let everywhere = AccessRules {
            address: Some("0.0.0.0:80".parse().unwrap()),
            ..open.clone()
        };
        assert_eq!(host(&everywhere, "10.0.0.1"), Ok(Admission::Granted));
        assert_eq!(host(&everywhere, "evil.example"), Err(421));
        let unix = AccessRules {
            address: None,
            ..open
        };
        assert_eq!(host(&unix, "hub.example"), Ok(Admission::Granted));
    }

    #[test]
    fn an_origin_is_named_whole() {
        let access = access();
        let named = |origin: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(ORIGIN, origin.parse().unwrap());
            access.allowed_origin(&headers).is_some()
        };
        assert!(named("https://viewer.example"));
        assert!(!named("https://viewer.example.evil") && !named("http://viewer.example"));
        assert!(!named("null") && !named("*"));
    }
}
