//! One request and its answer: signed, led on by redirects, with credentials renewed once.
//!
//! The rules for redirects, which docs/remote.md tells: at most [`limits::REDIRECTS`] in a row;
//! never from https to http; to another host only without the user's name, password and signature;
//! never to an address of a metadata service, and from a public server to no private network.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, StatusCode, Uri, header};

use crate::cli::fetcher::address::{Address, IN_REFERENCE, Target, decoded, encoded};
use crate::cli::fetcher::client::{Answer, Client, Header, Reach};
use crate::cli::fetcher::hosts;
use crate::cli::fetcher::login::Login;
use crate::cli::fetcher::patience::Allowed;
use crate::cli::fetcher::pelican;
use crate::cli::fetcher::signer::Signer;
use crate::cli::fetcher::trouble::{Remedy, Trouble};
use crate::cli::fetcher::turns::Turns;
use crate::limits;
use crate::memory::lock::lock;
use crate::source::remote::message::{Counters, Failure};
use crate::source::remote::state::ObjectState;

/// The way to one server.
pub(super) struct Exchange {
    pub(super) client: Arc<Client>,
    /// None for requests that are not signed.
    pub(super) signer: Option<Signer>,
    pub(super) login: Login,
    pub(super) address: Address,
    pub(super) region: Mutex<String>,
    pub(super) home: Reach,
    pub(super) turns: Turns,
    pub(super) requester_pays: bool,
    /// Whether entity tags are left out where there is a date.
    pub(super) has_weak_tags: bool,
    /// Ports that redirects may lead to.
    pub(super) ports: Vec<u16>,
    /// Where redirects led, so that the way is not asked for again.
    pub(super) ways: Mutex<HashMap<Uri, Uri>>,
    /// Other places of the same, which the directors of Pelican name, the best last.
    pub(super) duplicates: Mutex<HashMap<Uri, Vec<Uri>>>,
    pub(super) counted: Counted,
}

/// The counters, to which all connections add.
#[derive(Debug, Default)]
pub(super) struct Counted {
    pub(super) requests: AtomicU64,
    pub(super) bytes: AtomicU64,
    pub(super) retries: AtomicU64,
    pub(super) waited: AtomicU64,
    pub(super) disk_bytes: AtomicU64,
}

impl Counted {
    pub(super) fn add(counter: &AtomicU64, more: u64) {
        counter.fetch_add(more, Ordering::Relaxed);
    }

    pub(super) fn counters(&self) -> Counters {
        let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Counters {
            requests: of(&self.requests),
            bytes: of(&self.bytes),
            retries: of(&self.retries),
            // Counted in microseconds: most waits take less than a millisecond.
            waited: of(&self.waited) / 1000,
            disk_bytes: of(&self.disk_bytes),
        }
    }
}

/// What may help where a server of HTTP refuses a request that shows no login.
const HINT: &str =
    "; `netrc`, `bearer_token_file`, `header_file` and `cookies` say where a login is";

/// The object or the page of names that is asked for, in a region.
pub(super) type Wanted<'a> = dyn Fn(&Address, &str) -> Result<Target, Trouble> + 'a;

impl Exchange {
    /// The ports of the server, of redirects and of the proxies.
    pub(super) fn all_ports(&self) -> Vec<u16> {
        let all = self.ports.iter().copied();
        all.chain(self.client.proxy_ports()).collect()
    }

    /// The state of an object as it is compared with others.
    pub(super) fn compared(&self, state: ObjectState) -> ObjectState {
        if self.has_weak_tags {
            state.without_tag()
        } else {
            state
        }
    }

    /// The place of an object, by which it is cached, and the object as people may see it.
    ///
    /// # Errors
    /// Fails as [`Address::object`] does.
    pub(super) fn place(&self, name: &[u8]) -> Result<(String, String), Trouble> {
        let region = lock(&self.region).clone();
        let target = self.address.object(name, &region)?;
        Ok((target.place, target.shown))
    }

    /// The answer to a GET with these `headers`: with one of the statuses 200, 206, 207, 304 and 416.
    /// Where the place fails to which a redirect led before, its origin is asked for the way anew.
    ///
    /// # Errors
    /// What any other status means, and why there is no answer in the time that is `allowed`.
    pub(super) fn get(
        &self,
        wanted: &Wanted<'_>,
        headers: &[Header],
        allowed: &Allowed<'_>,
    ) -> Result<Answer, Trouble> {
        let (mut is_renewed, mut has_moved, mut has_gone_back) = (false, false, false);
        loop {
            let region = lock(&self.region).clone();
            self.find_director(allowed).map_err(Trouble::after_login)?;
            let target = wanted(&self.address, &region)?;
            let way = lock(&self.ways).get(&target.uri).cloned();
            let way = way.filter(|_| !has_gone_back);
            let is_led = way.is_some();
            let uri = way.unwrap_or_else(|| target.uri.clone());
            let answer = self.follow(&target, uri.clone(), headers, &region, allowed);
            let has_failed = !answer.as_ref().is_ok_and(is_had);
            if has_failed && !has_gone_back && self.has_duplicate(&target.uri, &uri) {
                continue;
            }
            if has_failed && is_led {
                lock(&self.ways).remove(&target.uri);
                has_gone_back = true;
                continue;
            }
            if !is_renewed && self.may_be_expired(&answer) && self.renew(&target) {
                lock(&self.ways).remove(&target.uri);
                is_renewed = true;
                continue;
            }
            let mut answer = answer.map_err(Trouble::after_login)?;
            if !has_moved && self.moves(&answer, &region) {
                has_moved = true;
                continue;
            }
            if is_had(&answer) {
                return Ok(answer);
            }
            let body = answer.text(limits::ERROR_BODY, limits::ERROR_TIME);
            let code = code(&body.unwrap_or_default());
            if !is_renewed && is_refusal(answer.status, &code) && self.renew(&target) {
                is_renewed = true;
                continue;
            }
            return Err(self.hinted(meaning(&answer, &code, &target.shown), &target));
        }
    }

    /// Whether an answer may be that of a server whose login has expired: it leads to where people
    /// log in, or somewhere that it may not lead to.
    fn may_be_expired(&self, answer: &Result<Answer, Trouble>) -> bool {
        self.login.is_some()
            && match answer {
                Ok(answer) => answer.is_led && answer.is_html() && !answer.status.is_success(),
                Err(trouble) => trouble.remedy == Remedy::Login,
            }
    }

    /// The failure, with what may help where the server wants a login and none is given.
    pub(super) fn hinted(&self, mut trouble: Trouble, target: &Target) -> Trouble {
        let may_log_in = !target.is_signed && !self.login.is_some();
        if trouble.failure == Failure::Denied && may_log_in {
            trouble.text += HINT;
        }
        trouble
    }

    /// Fails for a page that a server sends in place of an object: people log in there.
    fn check_page(
        &self,
        target: &Target,
        uri: &Uri,
        headers: &[Header],
        answer: &mut Answer,
    ) -> Result<(), Trouble> {
        let is_led = *uri != target.uri;
        let is_range = headers.iter().any(|(name, _)| *name == header::RANGE);
        let is_of_first = headers
            .iter()
            .any(|(_, value)| value.as_bytes().starts_with(b"bytes=0-"));
        let is_page = match answer.status.as_u16() {
            200 if answer.headers.contains_key(header::CONTENT_RANGE) => false,
            200 => is_range || is_led && target.method == Method::HEAD,
            206 => is_led && is_of_first && self.login.is_some() && answer.begins_with(b'<'),
            _ => false,
        };
        if !is_page || !answer.is_html() || is_page_or_directory(&target.uri, uri) {
            return Ok(());
        }
        let shown = &target.shown;
        let text = format!("{shown}: the server sends a page in place of it, maybe for a login");
        Err(self.hinted(Trouble::of_login(text), target))
    }

    /// Asks a Pelican federation what its director is, once.
    fn find_director(&self, allowed: &Allowed<'_>) -> Result<(), Trouble> {
        let Some(target) = self.address.configuration() else {
            return Ok(());
        };
        let target = target?;
        let mut answer = self.follow(&target, target.uri.clone(), &[], "", allowed)?;
        let body = answer.text(limits::ERROR_BODY, self.client.step)?;
        if answer.status != StatusCode::OK {
            return Err(meaning(&answer, "", &target.shown));
        }
        let director = pelican::director(&body)?;
        let uri = director.to_string().parse();
        let uri = uri.map_err(|_| Trouble::other("the director has no URI"))?;
        self.may_lead(&target.uri, &uri)?;
        self.address.set_director(director);
        Ok(())
    }

    /// Has the next of the other places be asked where one has `failed`; whether there is one.
    fn has_duplicate(&self, target: &Uri, failed: &Uri) -> bool {
        if !self.address.is_pelican() {
            return false;
        }
        let way = lock(&self.ways).get(target).cloned();
        if way.is_some_and(|way| way != *failed) {
            // Another connection was quicker.
            return true;
        }
        let next = lock(&self.duplicates).get_mut(target).and_then(Vec::pop);
        let may_be_asked = |next: &Uri| self.may_lead(target, next).is_ok();
        match next {
            Some(next) if may_be_asked(&next) => {
                lock(&self.ways).insert(target.clone(), next);
                true
            }
            Some(_) => self.has_duplicate(target, failed),
            None => false,
        }
    }

    /// Remembers the other places that a director names beside the one where it leads.
    fn remember_duplicates(&self, target: &Uri, answer: &Answer) {
        if self.address.is_pelican() {
            let mut places = pelican::duplicates(&answer.headers);
            let first = redirect(answer);
            places.retain(|place| first.as_deref() != Some(&place.to_string()));
            places.reverse();
            let mut known = lock(&self.duplicates);
            if known.len() >= limits::HOSTS {
                known.clear();
            }
            known.insert(target.clone(), places);
        }
    }

    /// Forgets where a redirect led from what is wanted; whether one did.
    pub(super) fn forget_way(&self, wanted: &Wanted<'_>) -> bool {
        let region = lock(&self.region).clone();
        let target = wanted(&self.address, &region);
        target.is_ok_and(|target| lock(&self.ways).remove(&target.uri).is_some())
    }

    /// Whether the bucket is in another region, which is the one from now on.
    fn moves(&self, answer: &Answer, region: &str) -> bool {
        let is_hint = matches!(answer.status.as_u16(), 301 | 307 | 400 | 403);
        let of_bucket = answer.header("x-amz-bucket-region");
        let is_name = |name: &&str| {
            name.len() < 64 && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
        };
        match of_bucket.filter(is_name) {
            Some(name) if is_hint && self.address.is_s3() && name != region => {
                name.clone_into(&mut lock(&self.region));
                true
            }
            _ => false,
        }
    }

    /// Forgets the credentials that the server refuses, where there are any.
    fn renew(&self, target: &Target) -> bool {
        let signer = self.signer.as_ref().filter(|_| target.is_signed);
        signer.inspect(|signer| signer.renew()).is_some() || self.login.renew()
    }

    fn follow(
        &self,
        target: &Target,
        mut uri: Uri,
        headers: &[Header],
        region: &str,
        allowed: &Allowed<'_>,
    ) -> Result<Answer, Trouble> {
        for _ in 0..=limits::REDIRECTS {
            let is_own = hosts::has_same_origin(&uri, &target.uri);
            let may_see = is_own && target.is_named;
            let shown = self.headers(target, &uri, headers, may_see.then_some(region))?;
            // The federation has named its director, as servers name where they lead.
            let is_led = !is_own || self.address.has_director();
            let mut answer = self.send(target, &uri, shown, is_led, allowed)?;
            self.login.keep(&uri, &answer.headers);
            let Some(next) = redirect(&answer) else {
                answer.is_led = uri != target.uri;
                self.check_page(target, &uri, headers, &mut answer)?;
                self.remember(target, &uri, &answer);
                return Ok(answer);
            };
            if uri == target.uri {
                self.remember_duplicates(&uri, &answer);
            }
            let next = joined(&uri, &next)?;
            self.may_lead(&uri, &next)?;
            // What is read to its end leaves the connection for the next request.
            let _ = answer.text(limits::ERROR_BODY, limits::ERROR_TIME);
            uri = next;
        }
        Err(self.not_followed(format!("more than {} redirects", limits::REDIRECTS)))
    }

    fn headers(
        &self,
        target: &Target,
        uri: &Uri,
        headers: &[Header],
        own: Option<&str>,
    ) -> Result<HeaderMap, Trouble> {
        let mut map: HeaderMap = headers.iter().chain(&target.headers).cloned().collect();
        if own.is_some()
            && let Some(authorization) = &target.authorization
        {
            map.insert(header::AUTHORIZATION, authorization.clone());
        }
        self.login.add(uri, own.is_some(), &mut map);
        let Some(region) = own else {
            return Ok(map);
        };
        if target.is_signed && self.requester_pays {
            let payer = HeaderName::from_static("x-amz-request-payer");
            map.insert(payer, HeaderValue::from_static("requester"));
        }
        match &self.signer {
            Some(signer) if target.is_signed => signer.sign(uri, map, region),
            _ => Ok(map),
        }
    }

    fn send(
        &self,
        target: &Target,
        uri: &Uri,
        headers: HeaderMap,
        is_led: bool,
        allowed: &Allowed<'_>,
    ) -> Result<Answer, Trouble> {
        let mut request = Request::new(Vec::new());
        request.method_mut().clone_from(&target.method);
        request.uri_mut().clone_from(uri);
        *request.headers_mut() = headers;
        let turn = self.turns.take(uri, allowed);
        let turn = turn.map_err(|_| Trouble::passing("the server takes no more requests"))?;
        Counted::add(&self.counted.requests, 1);
        let began = Instant::now();
        let answer = self.client.send(request, is_led, allowed.left());
        let waited = u64::try_from(began.elapsed().as_micros()).unwrap_or(u64::MAX);
        Counted::add(&self.counted.waited, waited);
        match &answer {
            Ok(answer) if asks_for_fewer(answer) => turn.is_refused(wish(answer)),
            Ok(_) => turn.is_taken(),
            Err(_) => {}
        }
        answer
    }

    /// A redirect is not followed: where there is a login, it may lead to where people log in.
    fn not_followed(&self, text: String) -> Trouble {
        if self.login.is_some() {
            Trouble::of_login(format!("{text}; the login may have expired"))
        } else {
            Trouble::other(text)
        }
    }

    /// Whether a server at `from` may lead to `to`.
    fn may_lead(&self, from: &Uri, to: &Uri) -> Result<(), Trouble> {
        let refused =
            |why: &str| Err(self.not_followed(format!("a redirect {why} is not followed")));
        let host = to.host().unwrap_or_default();
        let literal = host.trim_matches(['[', ']']);
        let is_out = |address: IpAddr| !self.home.allows(address);
        let port = hosts::port(to);
        if !self.ports.contains(&port) {
            return refused(&format!(
                "to port {port} of {host} (`redirect_ports={port}` allows it)"
            ));
        }
        match (from.scheme_str(), to.scheme_str()) {
            (Some("https"), Some("http")) => refused("from https to http"),
            (_, Some("http" | "https")) => {
                if literal.parse().is_ok_and(is_out) {
                    refused("to an address of a private network")
                } else if from.host() != to.host()
                    && self.client.is_proxied(to)
                    && !self.home.allows_name(host)
                {
                    refused(&format!("to {host}, a name of a private network,"))
                } else {
                    Ok(())
                }
            }
            _ => refused("to another protocol"),
        }
    }

    fn remember(&self, target: &Target, uri: &Uri, answer: &Answer) {
        if *uri != target.uri && is_had(answer) {
            let mut ways = lock(&self.ways);
            if ways.len() >= limits::HOSTS {
                ways.clear();
            }
            ways.insert(target.uri.clone(), uri.clone());
        }
    }
}

/// Whether a status brings what is asked for, or says that there is nothing of it; 207 is of WebDAV.
fn is_had(answer: &Answer) -> bool {
    matches!(answer.status.as_u16(), 200 | 206 | 207 | 304 | 416)
}

/// Whether what is wanted is a page itself, or has led to the same with a `/`: a directory.
fn is_page_or_directory(target: &Uri, uri: &Uri) -> bool {
    let path = target.path().to_ascii_lowercase();
    let is_page = ["/", ".html", ".htm", ".xhtml"]
        .iter()
        .any(|end| path.ends_with(end));
    is_page || leads_to_directory(target, uri)
}

/// Whether a server has led from a name to the same with a `/`. Servers do not agree on what they
/// encode.
pub(super) fn leads_to_directory(from: &Uri, to: &Uri) -> bool {
    let path = |uri: &Uri| decoded(uri.path());
    [path(from), b"/".to_vec()].concat() == path(to)
}

/// Where a redirect leads: what of it no URI may hold is encoded, byte by byte.
fn redirect(answer: &Answer) -> Option<String> {
    let is_redirect = matches!(answer.status.as_u16(), 301 | 302 | 303 | 307 | 308);
    let location = answer.only("location").filter(|_| is_redirect)?;
    Some(encoded(location.as_bytes().trim_ascii(), IN_REFERENCE))
}

/// A reference in its place; RFC 3986, section 5.2.
fn joined(base: &Uri, reference: &str) -> Result<Uri, Trouble> {
    let scheme = base.scheme_str().unwrap_or("http");
    let authority = base.authority().map_or("", http::uri::Authority::as_str);
    let reference = reference.split('#').next().unwrap_or_default();
    let (path, query) = match reference.split_once('?') {
        Some((path, query)) => (path, format!("?{query}")),
        None => (reference, String::new()),
    };
    // A `:` is of a scheme only where no `/` stands before it.
    let first = path.split('/').next().unwrap_or_default();
    let whole = if first.contains(':') {
        path.to_owned()
    } else if path.starts_with("//") {
        format!("{scheme}:{path}")
    } else if path.starts_with('/') {
        format!("{scheme}://{authority}{path}")
    } else if path.is_empty() {
        format!("{scheme}://{authority}{}", base.path())
    } else {
        let directory = base
            .path()
            .rsplit_once('/')
            .map_or("", |(directory, _)| directory);
        format!("{scheme}://{authority}{directory}/{path}")
    };
    let text = whole.split_once("://").map(|(scheme, rest)| {
        let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
        format!("{scheme}://{authority}/{}{query}", without_dots(path))
    });
    let uri: Option<Uri> = text.and_then(|text| text.parse().ok());
    let is_whole = |uri: &Uri| {
        let authority = uri.authority().map(http::uri::Authority::as_str);
        authority.is_some_and(|authority| !authority.contains('@'))
    };
    uri.filter(is_whole)
        .ok_or_else(|| Trouble::other("a redirect to no URL"))
}

/// A path without the parts `.` and `..`; RFC 3986, section 5.2.4.
fn without_dots(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "." => {}
            ".." => drop(parts.pop()),
            _ => parts.push(part),
        }
    }
    // What stands before such a part at the end is a directory.
    if matches!(path.rsplit('/').next(), Some("." | "..")) {
        parts.push("");
    }
    parts.join("/")
}

/// Whether the server does not take the credentials.
fn is_refusal(status: StatusCode, code: &str) -> bool {
    let is_expired = matches!(
        code,
        "ExpiredToken" | "InvalidToken" | "TokenRefreshRequired" | "PublicAccessNotPermitted"
    );
    matches!(status.as_u16(), 401 | 403) || is_expired
}

/// The code of an error of S3's protocol: `<Error><Code>…</Code>…`.
fn code(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(body);
    let code = text
        .split_once("<Code>")
        .and_then(|(_, rest)| rest.split_once("</Code>"));
    let is_word =
        |code: &&str| code.len() <= 64 && code.bytes().all(|byte| byte.is_ascii_alphanumeric());
    code.map(|(code, _)| code)
        .filter(is_word)
        .unwrap_or_default()
        .to_owned()
}

/// What a status says of the request.
fn meaning(answer: &Answer, code: &str, shown: &str) -> Trouble {
    let status = answer.status.as_u16();
    let text = match code {
        "" => format!("{shown}: the server answers {status}"),
        code => format!("{shown}: the server answers {status} {code}"),
    };
    match status {
        _ if is_refusal(answer.status, code) => Trouble::new(Failure::Denied, text),
        404 | 410 => Trouble::new(Failure::NotFound, text),
        412 => Trouble::retagged(),
        408 | 425 | 429 | 500 | 502..=504 | 509 => Trouble {
            remedy: Remedy::Again(wish(answer)),
            ..Trouble::passing(text)
        },
        _ => Trouble::other(text),
    }
}

/// Whether a server takes no more requests for now; RFC 9110, section 15.6.4, and RFC 6585, section 4.
fn asks_for_fewer(answer: &Answer) -> bool {
    match answer.status.as_u16() {
        429 | 503 | 509 => true,
        status => status >= 500 && wish(answer).is_some(),
    }
}

/// `Retry-After` in seconds, at most a minute; RFC 9110, section 10.2.3.
fn wish(answer: &Answer) -> Option<Duration> {
    const LONGEST: Duration = Duration::from_secs(60);
    let seconds: u64 = answer.header("retry-after")?.trim().parse().ok()?;
    Some(Duration::from_secs(seconds).min(LONGEST))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_redirect_leads_on_from_where_it_is() {
        let base: Uri = "https://host:8443/a/b.h5?x".parse().unwrap();
        for (reference, wanted) in [
            ("http://other/c", "http://other/c"),
            ("//other/c", "https://other/c"),
            ("/c?d#e", "https://host:8443/c?d"),
            ("c", "https://host:8443/a/c"),
            ("?d", "https://host:8443/a/b.h5?d"),
            ("../c", "https://host:8443/c"),
            ("../../../c/./d", "https://host:8443/c/d"),
            ("/c/../d/..", "https://host:8443/"),
            (".", "https://host:8443/a/"),
            ("HTTP://other/c/../d", "http://other/d"),
            (
                "/c?to=http://d/../e",
                "https://host:8443/c?to=http://d/../e",
            ),
            ("./c:d", "https://host:8443/a/c:d"),
        ] {
            let found = joined(&base, reference).map(|uri| uri.to_string());
            assert_eq!(found.as_deref(), Ok(wanted), "{reference}");
        }
        for wrong in ["http://joe@other/c", "mailto://", "http://", "mailto:joe"] {
            assert!(joined(&base, wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn what_no_uri_holds_is_encoded() {
        let mut headers = HeaderMap::new();
        let value = HeaderValue::from_bytes("/a b/\u{fc}%20[1].h5?c d|".as_bytes());
        headers.insert(header::LOCATION, value.unwrap());
        let answer = Answer {
            status: StatusCode::FOUND,
            headers,
            body: Box::new(&b""[..]),
            is_led: false,
        };
        let found = redirect(&answer);
        assert_eq!(found.as_deref(), Some("/a%20b/%C3%BC%20[1].h5?c%20d%7C"));
    }

    #[test]
    fn an_error_of_s3_has_a_code() {
        let body = b"<?xml version=\"1.0\"?><Error><Code>NoSuchKey</Code><Key>a</Key></Error>";
        assert_eq!(code(body), "NoSuchKey");
        // MinIO, Ceph, Google's cloud and Azure's.
        for body in [
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<Error><Code>X</Code><Message>The specified \
             key does not exist.</Message><Key>a</Key><BucketName>b</BucketName></Error>",
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?><Error><Code>X</Code><Message></Message>\
             <BucketName>b</BucketName><RequestId>tx1</RequestId><HostId>h</HostId></Error>",
            "<?xml version='1.0' encoding='UTF-8'?><Error><Code>X</Code><Message>Access denied.\
             </Message><Details>Anonymous caller does not have access.</Details></Error>",
            "\u{feff}<?xml version=\"1.0\" encoding=\"utf-8\"?><Error><Code>X</Code><Message>No\n\
             RequestId:1</Message></Error>",
        ] {
            assert_eq!(code(body.as_bytes()), "X");
        }
        assert_eq!(code(b"<Code>\x1b[31m</Code>"), "");
        assert_eq!(code(b"<html>"), "");
    }
}
