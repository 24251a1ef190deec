//! Cookies from a file in Netscape format, which curl and browsers write, and cookies that servers
//! set (RFC 6265). Cookies from servers are kept in memory only.

use std::time::{SystemTime, UNIX_EPOCH};

use http::{HeaderValue, Uri};
use jiff::fmt::rfc2822::DateTimeParser;

/// Maximum number of stored cookies that servers have set. Beyond this number, the oldest cookie is
/// dropped.
const MAX_SERVER_COOKIES: usize = 256;

/// Maximum length in bytes of a cookie that a server sets. A longer cookie is ignored.
const COOKIE_BYTES: usize = 8192;

/// All cookies, in the order in which they were added.
#[derive(Default)]
pub(super) struct Cookies {
    file_cookies: Vec<Cookie>,
    server_cookies: Vec<Cookie>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Cookie {
    /// The domain in lower case, without a leading dot.
    domain: String,
    /// Whether the cookie is also sent to subdomains of `domain`.
    includes_subdomains: bool,
    path: String,
    name: String,
    value: String,
    /// Expiry in seconds since 1970. `None` for a session cookie.
    expires: Option<i64>,
}

impl Cookies {
    /// Parses a cookie file, whose lines have seven fields separated by tabs.
    ///
    /// # Errors
    /// Returns why the text is not a cookie file.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let mut cookies = Vec::new();
        for (number, line) in text.lines().enumerate() {
            let line = line.strip_prefix("#HttpOnly_").unwrap_or(line);
            if line.trim().is_empty() || line.starts_with('#') {
                continue;
            }
            let wrong = || {
                format!(
                    "line {}: not a cookie with seven fields",
                    number.saturating_add(1)
                )
            };
            cookies.push(Cookie::from_line(line).ok_or_else(wrong)?);
        }
        if cookies.is_empty() {
            return Err("the file contains no cookie".to_owned());
        }
        Ok(Cookies {
            file_cookies: cookies,
            server_cookies: Vec::new(),
        })
    }

    /// Applies a `Set-Cookie` header of the server at `uri`: stores its cookie, or removes the
    /// cookie that it deletes.
    pub(super) fn store(&mut self, uri: &Uri, header: &HeaderValue) {
        let text = header
            .to_str()
            .ok()
            .filter(|text| text.len() <= COOKIE_BYTES);
        let Some(cookie) = text.and_then(|text| Cookie::from_header(text, uri)) else {
            return;
        };
        self.file_cookies.retain(|old| !old.replaces(&cookie));
        self.server_cookies.retain(|old| !old.replaces(&cookie));
        if !cookie.is_expired(now()) {
            self.server_cookies.push(cookie);
        }
        if self.server_cookies.len() > MAX_SERVER_COOKIES {
            self.server_cookies.remove(0);
        }
    }

    /// Returns the `Cookie` header for a request to `uri`, or `None` if no cookie matches.
    pub(super) fn cookie_header(&self, uri: &Uri) -> Option<HeaderValue> {
        let now = now();
        let seen: Vec<_> = (self.file_cookies.iter().chain(&self.server_cookies))
            .filter(|cookie| !cookie.is_expired(now) && cookie.is_for(uri))
            .map(|cookie| format!("{}={}", cookie.name, cookie.value))
            .collect();
        let mut value = HeaderValue::from_str(&seen.join("; ")).ok()?;
        value.set_sensitive(true);
        (!seen.is_empty()).then_some(value)
    }
}

impl Cookie {
    /// Parses a line of a cookie file: `domain, subdomains, path, secure, expires, name, value`.
    fn from_line(line: &str) -> Option<Self> {
        let fields: Vec<&str> = line.splitn(7, '\t').collect();
        let &[domain, is_of_subdomains, path, _, expires, name, value] = fields.as_slice() else {
            return None;
        };
        let expires: i64 = expires.trim().parse().ok()?;
        Some(Cookie {
            domain: domain.trim_start_matches('.').to_ascii_lowercase(),
            includes_subdomains: is_of_subdomains.eq_ignore_ascii_case("TRUE"),
            path: path.to_owned(),
            name: name.to_owned(),
            value: value.trim_end().to_owned(),
            expires: Some(expires).filter(|&seconds| seconds > 0),
        })
    }

    /// Parses a `Set-Cookie` header; RFC 6265, sections 5.2 and 5.3. The attribute `Secure` is
    /// ignored, because every cookie is treated as secure. Returns `None` if the header is
    /// malformed, or if the server at `uri` may not set cookies for the domain.
    fn from_header(text: &str, uri: &Uri) -> Option<Self> {
        let mut parts = text.split(';').map(str::trim);
        let (name, value) = parts.next()?.split_once('=')?;
        let host = uri.host()?.to_ascii_lowercase();
        let directory = uri.path().rsplit_once('/').map_or("", |(before, _)| before);
        let mut cookie = Cookie {
            domain: host.clone(),
            includes_subdomains: false,
            path: if directory.is_empty() { "/" } else { directory }.to_owned(),
            name: name.trim().to_owned(),
            value: value.trim().to_owned(),
            expires: None,
        };
        let mut age = None;
        for part in parts {
            let (attribute, value) = part.split_once('=').unwrap_or((part, ""));
            match attribute.trim().to_ascii_lowercase().as_str() {
                "domain" if !value.is_empty() => {
                    cookie.domain = value.trim().trim_start_matches('.').to_ascii_lowercase();
                    cookie.includes_subdomains = true;
                }
                "path" if value.starts_with('/') => value.clone_into(&mut cookie.path),
                "max-age" => age = value.trim().parse::<i64>().ok().or(age),
                "expires" => cookie.expires = parse_cookie_date(value).or(cookie.expires),
                _ => {}
            }
        }
        if let Some(age) = age {
            // The addition saturates, so that a very large age never expires.
            cookie.expires = Some(now().saturating_add(age.max(-1)));
        }
        let is_named = !cookie.name.is_empty() && cookie.domain.contains('.');
        let is_own = cookie.domain == host;
        (is_own || is_named && cookie.is_subdomain(&host)).then_some(cookie)
    }

    /// Returns whether a host is a subdomain of the cookie's domain. An IP address is no subdomain.
    fn is_subdomain(&self, host: &str) -> bool {
        let is_address = host
            .trim_matches(['[', ']'])
            .parse::<std::net::IpAddr>()
            .is_ok();
        let before = host.strip_suffix(&self.domain);
        self.includes_subdomains
            && !is_address
            && before.is_some_and(|before| before.ends_with('.'))
    }

    /// Returns whether a request to `uri` must contain the cookie; RFC 6265, sections 5.1.3 and
    /// 5.1.4.
    fn is_for(&self, uri: &Uri) -> bool {
        let host = uri.host().unwrap_or_default().to_ascii_lowercase();
        let behind = uri.path().strip_prefix(&self.path);
        let is_on_path =
            |rest: &str| rest.is_empty() || rest.starts_with('/') || self.path.ends_with('/');
        (host == self.domain || self.is_subdomain(&host)) && behind.is_some_and(is_on_path)
    }

    /// Returns whether this cookie replaces `other`.
    fn replaces(&self, other: &Self) -> bool {
        (&self.domain, &self.path, &self.name) == (&other.domain, &other.path, &other.name)
    }

    fn is_expired(&self, now: i64) -> bool {
        self.expires.is_some_and(|end| end <= now)
    }
}

/// Returns the current time in seconds since 1970.
fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| {
        i64::try_from(since.as_secs()).unwrap_or(i64::MAX)
    })
}

/// Parses the date of a cookie, such as `Wed, 21 Oct 2026 07:28:00 GMT`. The date may also contain
/// `-`. Returns seconds since 1970, or `None` if the text is not a date.
fn parse_cookie_date(text: &str) -> Option<i64> {
    let text = text.trim().replace('-', " ");
    let date = DateTimeParser::new()
        .relaxed_weekday(true)
        .parse_timestamp(&text);
    date.ok().map(jiff::Timestamp::as_second)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent_cookie(cookies: &Cookies, uri: &str) -> Option<String> {
        let value = cookies.cookie_header(&uri.parse().unwrap())?;
        assert!(value.is_sensitive());
        Some(value.to_str().unwrap().to_owned())
    }

    #[test]
    fn a_cookie_is_sent_only_to_its_domain() {
        let text = "# Netscape HTTP Cookie File\n\
                    #HttpOnly_.nasa.gov\tTRUE\t/\tTRUE\t0\turs\ta=b\n\
                    host.org\tFALSE\t/data\tFALSE\t4102444800\tone\t1\n\
                    host.org\tFALSE\t/\tFALSE\t1\told\t2\n";
        let cookies = Cookies::parse(text).unwrap();
        for (uri, wanted) in [
            ("https://nasa.gov/x", Some("urs=a=b")),
            ("https://a.b.NASA.gov/x", Some("urs=a=b")),
            ("https://evilnasa.gov/x", None),
            ("https://host.org/data", Some("one=1")),
            ("https://host.org/data/a.h5", Some("one=1")),
            ("https://host.org/data2", None),
            ("https://a.host.org/data", None),
        ] {
            assert_eq!(sent_cookie(&cookies, uri).as_deref(), wanted, "{uri}");
        }
        for wrong in ["", "# only\n", "a\tTRUE\t/\tTRUE\tsoon\tb\tc", "a b c"] {
            assert!(Cookies::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_server_sets_cookies_for_itself_and_its_domain() {
        let mut cookies = Cookies::default();
        let mut set = |text: &str| {
            let uri = "https://data.host.org/d/login?code=1".parse().unwrap();
            cookies.store(&uri, &HeaderValue::from_str(text).unwrap());
        };
        set("own=1");
        set("wide=2; Domain=.host.org; Path=/; HttpOnly; Secure; SameSite=Lax");
        set("other=3; Domain=else.org; Path=/");
        set("top=4; Domain=org; Path=/");
        set("gone=5; Path=/");
        set("gone=; Path=/; Expires=Thu, 01-Jan-1970 00:00:00 GMT");
        set("short=6; Path=/; Max-Age=0; Expires=Fri, 01 Jan 2100 00:00:00 GMT");
        set("long=7; Path=/; Expires=Fri, 01 Jan 2100 00:00:00 GMT");
        set("own=8");
        let own = sent_cookie(&cookies, "https://data.host.org/d/a.h5");
        assert_eq!(own.as_deref(), Some("wide=2; long=7; own=8"));
        assert_eq!(
            sent_cookie(&cookies, "https://b.host.org/d/").as_deref(),
            Some("wide=2")
        );
        assert_eq!(sent_cookie(&cookies, "https://else.org/"), None);
        assert_eq!(sent_cookie(&cookies, "https://x.org/"), None);
    }

    #[test]
    fn the_number_of_server_cookies_is_limited() {
        let mut cookies = Cookies::parse("h.org\tFALSE\t/\tTRUE\t0\town\t1").unwrap();
        let uri = "https://h.org/".parse().unwrap();
        for number in 0..MAX_SERVER_COOKIES + 10 {
            cookies.store(
                &uri,
                &HeaderValue::from_str(&format!("c{number}=1")).unwrap(),
            );
        }
        let long = format!("long={}", "x".repeat(COOKIE_BYTES));
        cookies.store(&uri, &HeaderValue::from_str(&long).unwrap());
        assert_eq!(cookies.server_cookies.len(), MAX_SERVER_COOKIES);
        assert_eq!(cookies.server_cookies[0].name, "c10");
        assert_eq!(
            cookies.file_cookies[0].name, "own",
            "none takes the file's place"
        );
    }
}
