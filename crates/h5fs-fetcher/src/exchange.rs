//! One request and its response: signature, redirects, and one renewal of the credentials.
//!
//! The rules for redirects (see docs/remote.md):
//!
//! - A chain contains at most [`limits::REDIRECTS`] redirects.
//! - A redirect never leads from https to http.
//! - A redirect to another host is sent without the user's name, password and signature.
//! - A redirect never leads to the address of a metadata service.
//! - A redirect never leads from a public server to a private network.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use h5fs_reader::memory::lock::lock;
use h5fs_reader::source::remote::message::{Counters, FailureKind};
use h5fs_reader::source::remote::state::ObjectState;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, StatusCode, Uri, header};

use crate::address::{FetchTarget, IN_REFERENCE, SourceAddress, percent_decode, percent_encode};
use crate::client::{AddressPolicy, HttpClient, HttpResponse, RequestHeader};
use crate::fetch_error::{FetchError, RetryAction};
use crate::hosts;
use crate::limits;
use crate::login::Login;
use crate::pelican;
use crate::rate_limits::RateLimits;
use crate::retries::AttemptLimit;
use crate::signer::Signer;

/// The connection settings, credentials and rate limits for requests to one server.
pub(super) struct RequestSender {
    pub(super) client: Arc<HttpClient>,
    /// `None` if requests are not signed.
    pub(super) signer: Option<Signer>,
    pub(super) login: Login,
    pub(super) address: SourceAddress,
    pub(super) region: Mutex<String>,
    pub(super) redirect_policy: AddressPolicy,
    pub(super) rate_limits: RateLimits,
    pub(super) requester_pays: bool,
    /// Whether entity tags are not compared if the object has a modification date.
    pub(super) has_weak_tags: bool,
    /// Ports to which redirects may lead.
    pub(super) ports: Vec<u16>,
    /// For the URI of a request, the destination of an earlier redirect. Later requests go there
    /// directly.
    pub(super) redirects: Mutex<HashMap<Uri, Uri>>,
    /// For the URI of a request, other locations of the object that a Pelican director has named.
    /// The best location is the last one.
    pub(super) duplicates: Mutex<HashMap<Uri, Vec<Uri>>>,
    pub(super) counters: ConnectionCounters,
}

/// Counters of requests and bytes over all connections.
#[derive(Debug, Default)]
pub(super) struct ConnectionCounters {
    pub(super) requests: AtomicU64,
    pub(super) bytes: AtomicU64,
    pub(super) retries: AtomicU64,
    pub(super) waited_microseconds: AtomicU64,
    pub(super) disk_bytes: AtomicU64,
}

impl ConnectionCounters {
    pub(super) fn add(counter: &AtomicU64, more: u64) {
        counter.fetch_add(more, Ordering::Relaxed);
    }

    pub(super) fn counters(&self) -> Counters {
        let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Counters {
            requests: of(&self.requests),
            bytes: of(&self.bytes),
            retries: of(&self.retries),
            // The counter is in microseconds, because most waits are shorter than a millisecond.
            waited: of(&self.waited_microseconds) / 1000,
            disk_bytes: of(&self.disk_bytes),
        }
    }
}

/// Hint that is added to the error of an HTTP server that requires a login.
const LOGIN_HINT: &str =
    "; `netrc`, `bearer_token_file`, `header_file` and `cookies` provide a login";

/// A function that returns the target of a request, given the address of the source and the region
/// of the bucket.
pub(super) type TargetBuilder<'a> =
    dyn Fn(&SourceAddress, &str) -> Result<FetchTarget, FetchError> + 'a;

impl RequestSender {
    /// Returns the ports that requests need: those of the server, of redirects and of the proxies.
    pub(super) fn all_ports(&self) -> Vec<u16> {
        let all = self.ports.iter().copied();
        all.chain(self.client.proxy_ports()).collect()
    }

    /// Returns the fields of an object's state that are compared with later states of the object.
    pub(super) fn comparable_state(&self, state: ObjectState) -> ObjectState {
        if self.has_weak_tags {
            state.without_tag()
        } else {
            state
        }
    }

    /// Returns the location of the object `name`, which is its key in the disk cache, and the
    /// object's URL for messages.
    ///
    /// # Errors
    /// Fails as [`SourceAddress::object_target`] does.
    pub(super) fn location(&self, name: &[u8]) -> Result<(String, String), FetchError> {
        let region = lock(&self.region).clone();
        let target = self.address.object_target(name, &region)?;
        Ok((target.location, target.shown_url))
    }

    /// Sends the request that `wanted` describes, with these additional `headers`. Returns the
    /// response if its status is 200, 206, 207, 304 or 416. If the remembered destination of a
    /// redirect fails, the request is sent to the original server again.
    ///
    /// # Errors
    /// Fails with the meaning of any other status, or with the reason why no response arrived
    /// within the limit `allowed`.
    pub(super) fn request(
        &self,
        wanted: &TargetBuilder<'_>,
        headers: &[RequestHeader],
        allowed: &AttemptLimit<'_>,
    ) -> Result<HttpResponse, FetchError> {
        let (mut is_renewed, mut has_moved, mut has_gone_back) = (false, false, false);
        loop {
            let region = lock(&self.region).clone();
            self.find_director(allowed)
                .map_err(FetchError::permanent_after_login)?;
            let target = wanted(&self.address, &region)?;
            let way = lock(&self.redirects).get(&target.uri).cloned();
            let way = way.filter(|_| !has_gone_back);
            let is_led = way.is_some();
            let uri = way.unwrap_or_else(|| target.uri.clone());
            let answer = self.follow_redirects(&target, uri.clone(), headers, &region, allowed);
            let has_failed = !answer.as_ref().is_ok_and(is_final);
            if has_failed && !has_gone_back && self.select_duplicate(&target.uri, &uri) {
                continue;
            }
            if has_failed && is_led {
                lock(&self.redirects).remove(&target.uri);
                has_gone_back = true;
                continue;
            }
            if !is_renewed && self.may_be_expired(&answer) && self.renew_login(&target) {
                lock(&self.redirects).remove(&target.uri);
                is_renewed = true;
                continue;
            }
            let mut answer = answer.map_err(FetchError::permanent_after_login)?;
            if !has_moved && self.change_region(&answer, &region) {
                has_moved = true;
                continue;
            }
            if is_final(&answer) {
                return Ok(answer);
            }
            let body = answer.read_body_within(limits::ERROR_BODY, limits::ERROR_TIME);
            let code = s3_error_code(&body.unwrap_or_default());
            if !is_renewed && is_refusal(answer.status, &code) && self.renew_login(&target) {
                is_renewed = true;
                continue;
            }
            return Err(
                self.with_login_hint(status_error(&answer, &code, &target.shown_url), &target)
            );
        }
    }

    /// Returns whether a response suggests that the login has expired: a redirect to a login page
    /// or to a forbidden destination.
    fn may_be_expired(&self, answer: &Result<HttpResponse, FetchError>) -> bool {
        self.login.is_configured()
            && match answer {
                Ok(answer) => {
                    answer.is_redirected && answer.is_html() && !answer.status.is_success()
                }
                Err(trouble) => trouble.retry_action == RetryAction::Login,
            }
    }

    /// Adds a hint to the failure if the server wants a login and none is configured.
    pub(super) fn with_login_hint(
        &self,
        mut trouble: FetchError,
        target: &FetchTarget,
    ) -> FetchError {
        let may_log_in = !target.is_signed && !self.login.is_configured();
        if trouble.failure == FailureKind::Denied && may_log_in {
            trouble.text += LOGIN_HINT;
        }
        trouble
    }

    /// Fails if the server sends an HTML page, which is usually a login page, although an object
    /// was requested.
    fn refuse_login_page(
        &self,
        target: &FetchTarget,
        uri: &Uri,
        headers: &[RequestHeader],
        answer: &mut HttpResponse,
    ) -> Result<(), FetchError> {
        let is_led = *uri != target.uri;
        let is_range = headers.iter().any(|(name, _)| *name == header::RANGE);
        let is_of_first = headers
            .iter()
            .any(|(_, value)| value.as_bytes().starts_with(b"bytes=0-"));
        let is_page = match answer.status.as_u16() {
            200 if answer.headers.contains_key(header::CONTENT_RANGE) => false,
            200 => is_range || is_led && target.method == Method::HEAD,
            206 => is_led && is_of_first && self.login.is_configured() && answer.begins_with(b'<'),
            _ => false,
        };
        if !is_page || !answer.is_html() || is_page_or_directory(&target.uri, uri) {
            return Ok(());
        }
        let shown = &target.shown_url;
        let text = format!("{shown}: the server sends a page instead of it, possibly a login page");
        Err(self.with_login_hint(FetchError::login_needed(text), target))
    }

    /// Requests the configuration of a Pelican federation, and remembers the director that it
    /// names.
    fn find_director(&self, allowed: &AttemptLimit<'_>) -> Result<(), FetchError> {
        let Some(target) = self.address.federation_configuration_target() else {
            return Ok(());
        };
        let target = target?;
        let mut answer = self.follow_redirects(&target, target.uri.clone(), &[], "", allowed)?;
        let body = answer.read_body_within(limits::ERROR_BODY, self.client.step_timeout)?;
        if answer.status != StatusCode::OK {
            return Err(status_error(&answer, "", &target.shown_url));
        }
        let director = pelican::parse_director(&body)?;
        let uri = director.to_string().parse();
        let uri = uri.map_err(|_| FetchError::permanent("the director has no URI"))?;
        self.check_redirect(&target.uri, &uri)?;
        self.address.set_director(director);
        Ok(())
    }

    /// Selects another location of an object for the next request, because the location `failed`
    /// has failed. Only a Pelican director names several locations of an object. Returns whether a
    /// location is left.
    fn select_duplicate(&self, target: &Uri, failed: &Uri) -> bool {
        if !self.address.is_pelican() {
            return false;
        }
        let way = lock(&self.redirects).get(target).cloned();
        if way.is_some_and(|way| way != *failed) {
            // Another connection has already selected the next location.
            return true;
        }
        let next = lock(&self.duplicates).get_mut(target).and_then(Vec::pop);
        let may_be_asked = |next: &Uri| self.check_redirect(target, next).is_ok();
        match next {
            Some(next) if may_be_asked(&next) => {
                lock(&self.redirects).insert(target.clone(), next);
                true
            }
            Some(_) => self.select_duplicate(target, failed),
            None => false,
        }
    }

    /// Remembers the locations of an object that a Pelican director names in addition to its
    /// redirect.
    fn remember_duplicates(&self, target: &Uri, answer: &HttpResponse) {
        if self.address.is_pelican() {
            let mut places = pelican::parse_duplicates(&answer.headers);
            let first = redirect_location(answer);
            places.retain(|place| first.as_deref() != Some(&place.to_string()));
            places.reverse();
            let mut known = lock(&self.duplicates);
            if known.len() >= limits::HOSTS {
                known.clear();
            }
            known.insert(target.clone(), places);
        }
    }

    /// Removes the remembered redirect of this request, so that it goes to the original server
    /// again. Returns whether a redirect was remembered.
    pub(super) fn forget_redirect(&self, wanted: &TargetBuilder<'_>) -> bool {
        let region = lock(&self.region).clone();
        let target = wanted(&self.address, &region);
        target.is_ok_and(|target| lock(&self.redirects).remove(&target.uri).is_some())
    }

    /// Sets the region that a response names if the bucket is not in `region`. Returns whether the
    /// region has changed.
    fn change_region(&self, answer: &HttpResponse, region: &str) -> bool {
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

    /// Discards the credentials or login that the server has refused. Returns whether the next
    /// request may use other credentials.
    fn renew_login(&self, target: &FetchTarget) -> bool {
        let signer = self.signer.as_ref().filter(|_| target.is_signed);
        signer.inspect(|signer| signer.renew()).is_some() || self.login.renew()
    }

    fn follow_redirects(
        &self,
        target: &FetchTarget,
        mut uri: Uri,
        headers: &[RequestHeader],
        region: &str,
        allowed: &AttemptLimit<'_>,
    ) -> Result<HttpResponse, FetchError> {
        for _ in 0..=limits::REDIRECTS {
            let is_own = hosts::has_same_origin(&uri, &target.uri);
            let may_see = is_own && target.is_named;
            let shown = self.headers(target, &uri, headers, may_see.then_some(region))?;
            // A director counts as a host that a server named, because its federation has named it.
            let is_led = !is_own || self.address.has_director();
            let mut answer = self.send(target, &uri, shown, is_led, allowed)?;
            self.login.store_cookies(&uri, &answer.headers);
            let Some(next) = redirect_location(&answer) else {
                answer.is_redirected = uri != target.uri;
                self.refuse_login_page(target, &uri, headers, &mut answer)?;
                self.remember_redirect(target, &uri, &answer);
                return Ok(answer);
            };
            if uri == target.uri {
                self.remember_duplicates(&uri, &answer);
            }
            let next = resolve_reference(&uri, &next)?;
            self.check_redirect(&uri, &next)?;
            // Reading the whole body lets the connection be reused.
            let _ = answer.read_body_within(limits::ERROR_BODY, limits::ERROR_TIME);
            uri = next;
        }
        Err(self.redirect_refused_error(format!("more than {} redirects", limits::REDIRECTS)))
    }

    fn headers(
        &self,
        target: &FetchTarget,
        uri: &Uri,
        headers: &[RequestHeader],
        own: Option<&str>,
    ) -> Result<HeaderMap, FetchError> {
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
        target: &FetchTarget,
        uri: &Uri,
        headers: HeaderMap,
        is_led: bool,
        allowed: &AttemptLimit<'_>,
    ) -> Result<HttpResponse, FetchError> {
        let mut request = Request::new(Vec::new());
        request.method_mut().clone_from(&target.method);
        request.uri_mut().clone_from(uri);
        *request.headers_mut() = headers;
        let turn = self.rate_limits.wait_for_permit(uri, allowed);
        let turn =
            turn.map_err(|_| FetchError::temporary("the server accepts no more requests"))?;
        ConnectionCounters::add(&self.counters.requests, 1);
        let began = Instant::now();
        let answer = self.client.send(request, is_led, allowed.remaining());
        let waited = u64::try_from(began.elapsed().as_micros()).unwrap_or(u64::MAX);
        ConnectionCounters::add(&self.counters.waited_microseconds, waited);
        match &answer {
            Ok(answer) if is_rate_limited(answer) => turn.report_refused(retry_after(answer)),
            Ok(_) => turn.report_accepted(),
            Err(_) => {}
        }
        answer
    }

    /// Returns the error for a redirect that is not followed. If a login is configured, the error
    /// says that the login may have expired, because the redirect may lead to a login page.
    fn redirect_refused_error(&self, text: String) -> FetchError {
        if self.login.is_configured() {
            FetchError::login_needed(format!("{text}; the login may have expired"))
        } else {
            FetchError::permanent(text)
        }
    }

    /// Fails unless a server at `from` may redirect to `to`.
    fn check_redirect(&self, from: &Uri, to: &Uri) -> Result<(), FetchError> {
        let refused = |why: &str| {
            Err(self.redirect_refused_error(format!("a redirect {why} is not followed")))
        };
        let host = to.host().unwrap_or_default();
        let literal = host.trim_matches(['[', ']']);
        let is_out = |address: IpAddr| !self.redirect_policy.allows_address(address);
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
                    && !self.redirect_policy.allows_name(host)
                {
                    refused(&format!("to {host}, a name of a private network,"))
                } else {
                    Ok(())
                }
            }
            _ => refused("to another protocol"),
        }
    }

    fn remember_redirect(&self, target: &FetchTarget, uri: &Uri, answer: &HttpResponse) {
        if *uri != target.uri && is_final(answer) {
            let mut ways = lock(&self.redirects);
            if ways.len() >= limits::HOSTS {
                ways.clear();
            }
            ways.insert(target.uri.clone(), uri.clone());
        }
    }
}

/// Returns whether a response is a result for the caller: either it has data (status 200, 206, and
/// 207 of WebDAV), or it says that no data exists or has changed (304, 416).
fn is_final(answer: &HttpResponse) -> bool {
    matches!(answer.status.as_u16(), 200 | 206 | 207 | 304 | 416)
}

/// Returns whether the requested path can be an HTML page or a directory. A directory is recognised
/// by a redirect to the same path with a `/`.
fn is_page_or_directory(target: &Uri, uri: &Uri) -> bool {
    let path = target.path().to_ascii_lowercase();
    let is_page = ["/", ".html", ".htm", ".xhtml"]
        .iter()
        .any(|end| path.ends_with(end));
    is_page || leads_to_directory(target, uri)
}

/// Returns whether a redirect leads to the same path with a `/` at its end. Paths are compared
/// after decoding, because servers percent-encode different characters.
pub(super) fn leads_to_directory(from: &Uri, to: &Uri) -> bool {
    let path = |uri: &Uri| percent_decode(uri.path());
    [path(from), b"/".to_vec()].concat() == path(to)
}

/// Returns the destination of a redirect, or `None` if the response is not a redirect. Bytes that a
/// URI may not contain are percent-encoded.
fn redirect_location(answer: &HttpResponse) -> Option<String> {
    let is_redirect = matches!(answer.status.as_u16(), 301 | 302 | 303 | 307 | 308);
    let location = answer.single_header("location").filter(|_| is_redirect)?;
    Some(percent_encode(
        location.as_bytes().trim_ascii(),
        IN_REFERENCE,
    ))
}

/// Resolves the URI reference of a redirect relative to `base`; RFC 3986, section 5.2.
fn resolve_reference(base: &Uri, reference: &str) -> Result<Uri, FetchError> {
    let scheme = base.scheme_str().unwrap_or("http");
    let authority = base.authority().map_or("", http::uri::Authority::as_str);
    let reference = reference.split('#').next().unwrap_or_default();
    let (path, query) = match reference.split_once('?') {
        Some((path, query)) => (path, format!("?{query}")),
        None => (reference, String::new()),
    };
    // A `:` follows a scheme only if no `/` precedes it.
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
        format!(
            "{scheme}://{authority}/{}{query}",
            remove_dot_segments(path)
        )
    });
    let uri: Option<Uri> = text.and_then(|text| text.parse().ok());
    let is_whole = |uri: &Uri| {
        let authority = uri.authority().map(http::uri::Authority::as_str);
        authority.is_some_and(|authority| !authority.contains('@'))
    };
    uri.filter(is_whole)
        .ok_or_else(|| FetchError::permanent("a redirect without a valid URL"))
}

/// Removes the segments `.` and `..` from a path; RFC 3986, section 5.2.4.
fn remove_dot_segments(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "." => {}
            ".." => drop(parts.pop()),
            _ => parts.push(part),
        }
    }
    // A trailing `.` or `..` leaves a directory, which ends with `/`.
    if matches!(path.rsplit('/').next(), Some("." | "..")) {
        parts.push("");
    }
    parts.join("/")
}

/// Returns whether a response means that the server refuses the credentials.
fn is_refusal(status: StatusCode, code: &str) -> bool {
    let is_expired = matches!(
        code,
        "ExpiredToken" | "InvalidToken" | "TokenRefreshRequired" | "PublicAccessNotPermitted"
    );
    matches!(status.as_u16(), 401 | 403) || is_expired
}

/// Returns the error code in the body of an S3 error response: `<Error><Code>…</Code>…`. Returns an
/// empty text if the body has none.
fn s3_error_code(body: &[u8]) -> String {
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

/// Converts the status of a response to an error. `code` is the store's error code, and `shown` is
/// the URL for the message.
fn status_error(answer: &HttpResponse, code: &str, shown: &str) -> FetchError {
    let status = answer.status.as_u16();
    let text = match code {
        "" => format!("{shown}: the server answers {status}"),
        code => format!("{shown}: the server answers {status} {code}"),
    };
    match status {
        _ if is_refusal(answer.status, code) => FetchError::new(FailureKind::Denied, text),
        404 | 410 => FetchError::new(FailureKind::NotFound, text),
        412 => FetchError::entity_tag_changed(),
        408 | 425 | 429 | 500 | 502..=504 | 509 => FetchError {
            retry_action: RetryAction::Retry(retry_after(answer)),
            ..FetchError::temporary(text)
        },
        _ => FetchError::permanent(text),
    }
}

/// Returns whether the server asks the client to send fewer requests; RFC 9110, section 15.6.4, and
/// RFC 6585, section 4.
fn is_rate_limited(answer: &HttpResponse) -> bool {
    match answer.status.as_u16() {
        429 | 503 | 509 => true,
        status => status >= 500 && retry_after(answer).is_some(),
    }
}

/// Parses `Retry-After` in seconds, at most a minute; RFC 9110, section 10.2.3.
fn retry_after(answer: &HttpResponse) -> Option<Duration> {
    const LONGEST: Duration = Duration::from_secs(60);
    let seconds: u64 = answer.header("retry-after")?.trim().parse().ok()?;
    Some(Duration::from_secs(seconds).min(LONGEST))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_relative_redirect_is_resolved_against_its_source() {
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
            let found = resolve_reference(&base, reference).map(|uri| uri.to_string());
            assert_eq!(found.as_deref(), Ok(wanted), "{reference}");
        }
        for wrong in ["http://joe@other/c", "mailto://", "http://", "mailto:joe"] {
            assert!(resolve_reference(&base, wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn invalid_uri_bytes_are_percent_encoded() {
        let mut headers = HeaderMap::new();
        let value = HeaderValue::from_bytes("/a b/\u{fc}%20[1].h5?c d|".as_bytes());
        headers.insert(header::LOCATION, value.unwrap());
        let answer = HttpResponse {
            status: StatusCode::FOUND,
            headers,
            body: Box::new(&b""[..]),
            is_redirected: false,
        };
        let found = redirect_location(&answer);
        assert_eq!(found.as_deref(), Some("/a%20b/%C3%BC%20[1].h5?c%20d%7C"));
    }

    #[test]
    fn an_error_of_s3_has_a_code() {
        let body = b"<?xml version=\"1.0\"?><Error><Code>NoSuchKey</Code><Key>a</Key></Error>";
        assert_eq!(s3_error_code(body), "NoSuchKey");
        // Error documents of MinIO, Ceph, Google Cloud and Azure.
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
            assert_eq!(s3_error_code(body.as_bytes()), "X");
        }
        assert_eq!(s3_error_code(b"<Code>\x1b[31m</Code>"), "");
        assert_eq!(s3_error_code(b"<html>"), "");
    }
}
