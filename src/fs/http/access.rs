//! Who is let in.
//!
//! A browser on this machine runs the scripts of any site, so that a port on loopback is no wall.
//! A request has to show the token that the printed URL holds, and to name this server as its host:
//! the name of another site that was made to lead here (DNS rebinding) is refused before anything is
//! looked at. No other site may read an answer, unless it is named.

use std::net::{IpAddr, SocketAddr};

use http::header::{ACCEPT, AUTHORIZATION, COOKIE, HOST, ORIGIN};
use http::request::Parts;
use http::uri::Authority;
use http::{HeaderMap, StatusCode, Version};
use sha2::{Digest, Sha256};

use crate::fs::http::fault::Fault;
use crate::fs::http::preferences::{texts, weight};
use crate::fs::http::target::Target;

/// Who is let in, and from where.
#[derive(Debug, Clone, Default)]
pub struct Access {
    /// What a request has to show; `None` where everybody who gets to the socket is let in.
    pub token: Option<Token>,
    /// Where it listens; `None` for a Unix socket, to which no site leads.
    pub address: Option<SocketAddr>,
    /// Further names of this server.
    pub hosts: Vec<String>,
    /// The origins whose scripts may read answers.
    pub origins: Vec<String>,
}

/// A secret. Nothing shows it.
#[derive(Clone)]
pub struct Token(String);

impl std::fmt::Debug for Token {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Token")
    }
}

impl Token {
    /// The token of this text: letters and digits.
    #[must_use]
    pub fn new(text: String) -> Self {
        Token(text)
    }

    /// Whether `text` is it, which takes as long wherever they differ.
    fn is(&self, text: &str) -> bool {
        Sha256::digest(text) == Sha256::digest(&self.0)
    }
}

/// How a request is let in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Admission {
    /// It has shown what it has to.
    In,
    /// A browser has shown the token in the URL. It is to keep this cookie, and to ask for the URL
    /// without the token: no history, no bookmark and no referrer then holds that.
    Enter(String),
}

impl Access {
    /// Lets a request in.
    ///
    /// # Errors
    /// 400 and 421 for a host that is not this one, 401 without the token.
    pub(super) fn admit(&self, parts: &Parts, target: &Target) -> Result<Admission, Fault> {
        self.refuse_host(parts)?;
        let Some(token) = &self.token else {
            return Ok(Admission::In);
        };
        if let Some(text) = &target.token {
            if !token.is(text) {
                return Err(unknown());
            }
            return Ok(if is_of_browser(&parts.headers) {
                Admission::Enter(self.cookie(token))
            } else {
                Admission::In
            });
        }
        let bearer = texts(&parts.headers, &AUTHORIZATION)
            .filter_map(|text| text.split_once(' '))
            .filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"))
            .map(|(_, text)| text.trim());
        let name = self.cookie_name();
        let kept = texts(&parts.headers, &COOKIE)
            .flat_map(|text| text.split(';'))
            .filter_map(|pair| pair.trim().split_once('='))
            .filter(|(own, _)| *own == name)
            .map(|(_, text)| text);
        if bearer.chain(kept).any(|text| token.is(text)) {
            Ok(Admission::In)
        } else {
            Err(unknown())
        }
    }

    /// The origin of the request, if its scripts may read answers.
    pub(super) fn origin<'h>(&self, headers: &'h HeaderMap) -> Option<&'h str> {
        let origin = headers.get(ORIGIN)?.to_str().ok()?;
        let is_named = self.origins.iter().any(|own| own == origin);
        is_named.then_some(origin)
    }

    /// Cookies are those of a host, whatever the port.
    fn cookie_name(&self) -> String {
        match self.address {
            Some(address) => format!("h5fs-{}", address.port()),
            None => "h5fs".to_owned(),
        }
    }

    fn cookie(&self, token: &Token) -> String {
        let (name, value) = (self.cookie_name(), &token.0);
        format!("{name}={value}; HttpOnly; SameSite=Strict; Path=/")
    }

    fn refuse_host(&self, parts: &Parts) -> Result<(), Fault> {
        let Some(address) = self.address else {
            return Ok(());
        };
        let fields = parts.headers.get_all(HOST).iter().count();
        let named = match parts.uri.authority() {
            _ if fields > 1 || fields == 0 && parts.version > Version::HTTP_10 => {
                return Err(Fault::bad("one Host is needed"));
            }
            Some(authority) => authority.as_str().to_owned(),
            // A client of HTTP/1.0 is no browser.
            None if fields == 0 => return Ok(()),
            None => texts(&parts.headers, &HOST)
                .next()
                .unwrap_or_default()
                .to_owned(),
        };
        let host = named.parse::<Authority>();
        let host = host.map_err(|_| Fault::bad("the Host is none"))?;
        if self.is_own(host.host(), address.ip()) {
            return Ok(());
        }
        let reason = "this server does not go by that name; --allow-host NAME lets it in";
        Err(Fault::new(StatusCode::MISDIRECTED_REQUEST, reason))
    }

    /// Whether a host is this server. The port is not looked at: that of a tunnel is another one.
    fn is_own(&self, host: &str, listening: IpAddr) -> bool {
        let bare = host.trim_start_matches('[').trim_end_matches(']');
        if let Ok(address) = bare.parse::<IpAddr>() {
            // Nobody can make a number lead elsewhere; but on loopback, no other is meant.
            return address.is_loopback() || address == listening || !listening.is_loopback();
        }
        let name = host.trim_end_matches('.');
        let is_local = name.eq_ignore_ascii_case("localhost");
        is_local || self.hosts.iter().any(|own| own.eq_ignore_ascii_case(name))
    }
}

fn unknown() -> Fault {
    let reason = "a token is needed: open the URL that h5fs has printed, or send \
                  `Authorization: Bearer TOKEN`";
    Fault::new(StatusCode::UNAUTHORIZED, reason)
}

/// Whether a page is asked for by somebody who looks at it.
fn is_of_browser(headers: &HeaderMap) -> bool {
    weight(headers, &ACCEPT, "text/html") > 0.0
}

#[cfg(test)]
mod tests {
    use http::HeaderName;

    use super::*;
    use http::Request;

    const TOKEN: &str = "0123456789abcdef";

    fn access() -> Access {
        Access {
            token: Some(Token::new(TOKEN.to_owned())),
            address: Some("127.0.0.1:8080".parse().unwrap()),
            hosts: vec!["node7".to_owned()],
            origins: vec!["https://viewer.example".to_owned()],
        }
    }

    fn asked(access: &Access, uri: &str, fields: &[(HeaderName, &str)]) -> Result<Admission, u16> {
        let mut request = Request::get(uri);
        for (name, text) in fields {
            request = request.header(name, *text);
        }
        let parts = request.body(()).unwrap().into_parts().0;
        let target = Target::of(&parts.uri).unwrap();
        access
            .admit(&parts, &target)
            .map_err(|fault| fault.status.as_u16())
    }

    #[test]
    fn the_token_lets_in_and_nothing_else() {
        let access = access();
        let own = (HOST, "127.0.0.1:8080");
        let bearer = format!("Bearer {TOKEN}");
        let cookie = format!("a=b; h5fs-8080={TOKEN}");
        let asked = |uri: &str, fields: &[(HeaderName, &str)]| {
            asked(&access, uri, &[std::slice::from_ref(&own), fields].concat())
        };
        let query = format!("/x?token={TOKEN}");
        assert_eq!(asked(&query, &[]), Ok(Admission::In));
        assert_eq!(asked("/x", &[(AUTHORIZATION, &bearer)]), Ok(Admission::In));
        assert_eq!(asked("/x", &[(COOKIE, &cookie)]), Ok(Admission::In));
        let entered = asked(&query, &[(ACCEPT, "text/html,*/*;q=0.8")]);
        let kept = format!("h5fs-8080={TOKEN}; HttpOnly; SameSite=Strict; Path=/");
        assert_eq!(entered, Ok(Admission::Enter(kept)));
        let basic = format!("Basic {TOKEN}");
        let elsewhere = format!("h5fs-8081={TOKEN}");
        for fields in [
            &[][..],
            &[(AUTHORIZATION, "Bearer 0123456789abcdee")],
            &[(AUTHORIZATION, "Bearer ")],
            &[(AUTHORIZATION, &*basic)],
            &[(COOKIE, &*elsewhere)],
        ] {
            assert_eq!(asked("/x", fields), Err(401), "{fields:?}");
        }
        assert_eq!(asked("/x?token=", &[(AUTHORIZATION, &bearer)]), Err(401));
        assert!(!format!("{access:?}").contains(TOKEN));
    }

    #[test]
    fn no_other_name_leads_here() {
        let open = Access {
            token: None,
            ..access()
        };
        let host = |access: &Access, host: &str| asked(access, "/", &[(HOST, host)]);
        for own in [
            "127.0.0.1:8080",
            "localhost",
            "LOCALHOST:1",
            "localhost.",
            "[::1]:9",
            "127.0.0.2",
            "node7:80",
        ] {
            assert_eq!(host(&open, own), Ok(Admission::In), "{own}");
        }
        for other in [
            "evil.example",
            "evil.example:8080",
            "localhost.evil.example",
            "10.0.0.1",
            "node77",
        ] {
            assert_eq!(host(&open, other), Err(421), "{other}");
        }
        assert_eq!(asked(&open, "/", &[]), Err(400));
        assert_eq!(host(&open, "a b"), Err(400));
        let twice = [(HOST, "localhost"), (HOST, "evil.example")];
        assert_eq!(asked(&open, "/", &twice), Err(400));
        // The target's own authority counts.
        let absolute = asked(&open, "http://evil.example/", &[(HOST, "localhost")]);
        assert_eq!(absolute, Err(421));
        let everywhere = Access {
            address: Some("0.0.0.0:80".parse().unwrap()),
            ..open.clone()
        };
        assert_eq!(host(&everywhere, "10.0.0.1"), Ok(Admission::In));
        assert_eq!(host(&everywhere, "evil.example"), Err(421));
        let unix = Access {
            address: None,
            ..open
        };
        assert_eq!(host(&unix, "hub.example"), Ok(Admission::In));
    }

    #[test]
    fn an_origin_is_named_whole() {
        let access = access();
        let named = |origin: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(ORIGIN, origin.parse().unwrap());
            access.origin(&headers).is_some()
        };
        assert!(named("https://viewer.example"));
        assert!(!named("https://viewer.example.evil") && !named("http://viewer.example"));
        assert!(!named("null") && !named("*"));
    }
}
