//! The response to one request: looks up a path, opens it, and describes its content. The code here
//! is independent of connections.

use std::ops::Range;
use std::sync::Arc;

use h5fs_reader::array::CancelToken;
use h5fs_reader::error::{Error, Result};
use http::header::{
    ACCEPT, ACCEPT_ENCODING, ACCEPT_RANGES, ACCESS_CONTROL_ALLOW_HEADERS,
    ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN, ACCESS_CONTROL_EXPOSE_HEADERS,
    ALLOW, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_SECURITY_POLICY,
    CONTENT_TYPE, ETAG, HeaderValue, LOCATION, RANGE, REFERRER_POLICY, RETRY_AFTER, SET_COOKIE,
    VARY, WWW_AUTHENTICATE, X_CONTENT_TYPE_OPTIONS,
};
use http::request::Parts;
use http::response::Builder;
use http::{HeaderMap, HeaderName, Method, Response, StatusCode};

use crate::fs::errno::{is_stale, refusal};
use crate::fs::http::access::{Access, Admission};
use crate::fs::http::conditions::{Validators, Verdict};
use crate::fs::http::content::{Content, FileParts, Part};
use crate::fs::http::fault::Fault;
use crate::fs::http::gzip::{self, Packer, Room};
use crate::fs::http::listing::{self, Form, Listing};
use crate::fs::http::media;
use crate::fs::http::multipart;
use crate::fs::http::preferences::weight;
use crate::fs::http::ranges::{Wanted, wanted};
use crate::fs::http::search::Search;
use crate::fs::http::target::Target;
use crate::fs::http::trees::{OpenPlace, Place, Trees, Way};
use crate::fs::requests::Version;
use crate::fs::stat::Kind;
use crate::fs::state::handle::Caching;
use crate::fs::state::traffic::Call;
use crate::view::texts::html::script;

/// The content security policy of all responses: no scripts, and no embedding in other sites.
const POLICY: &str = "default-src 'none'; img-src 'self' data:; style-src 'unsafe-inline'; \
                      base-uri 'none'; form-action 'none'; frame-ancestors 'self'";

/// The content security policy of a page about an object. The page may show content of this server,
/// and request it with this server's own script. No other content has the type of a script.
const PAGE_POLICY: &str = "default-src 'none'; img-src 'self' data:; style-src 'unsafe-inline'; \
                           script-src 'self'; connect-src 'self'; base-uri 'none'; \
                           form-action 'none'; frame-ancestors 'self'";

/// How long the script is cached. A new version has a new address.
const LASTING: &str = "private, max-age=31536000, immutable";

const METHODS: &str = "GET, HEAD";

/// Path of a data file's page.
const PAGE: &str = ".h5fs/html/index.html";

/// The header in which a browser states whether the request comes from the same site.
const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

const RESOURCE_POLICY: HeaderName = HeaderName::from_static("cross-origin-resource-policy");

/// The served trees, with their access rules.
pub(super) struct Site {
    pub(super) trees: Arc<Trees>,
    pub(super) access: Access,
    pub(super) packer: Packer,
    /// The script of pages, compressed.
    pub(super) script: Option<bytes::Bytes>,
    /// A value of this process that is part of each entity tag.
    pub(super) seed: u64,
}

/// A request that has been granted access.
pub(super) struct Asked {
    target: Target,
    method: Method,
    version: http::Version,
    headers: HeaderMap,
}

/// A response produced without opening a tree: a refusal, a CORS preflight, or a login redirect.
pub(super) struct Turned {
    pub(super) answer: Response<Content>,
    /// Whether the client has been granted access.
    pub(super) is_let_in: bool,
}

impl Turned {
    /// Creates the response to a client without access.
    fn away(answer: Response<Content>) -> Box<Self> {
        let is_let_in = false;
        Box::new(Turned { answer, is_let_in })
    }
}

impl Asked {
    fn text(&self, name: &HeaderName) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// Returns whether the root of a data file may redirect to its page. The link on that page to
    /// the directory must not.
    fn may_lead_to_page(&self) -> bool {
        let comes_from_here = self.text(&SEC_FETCH_SITE) == Some("same-origin");
        !self.target.wants_list && (self.target.wants_page || !comes_from_here)
    }

    /// Adds the token to a reference, for programs that can send it only there.
    fn with_token(&self, reference: &str) -> String {
        match &self.target.token {
            Some(token) if reference.contains('?') => format!("{reference}&token={token}"),
            Some(token) => format!("{reference}?token={token}"),
            None => reference.to_owned(),
        }
    }

    /// Returns the path of the request, before it is looked up.
    pub(super) fn path(&self) -> Vec<u8> {
        self.target.path()
    }
}

impl Site {
    /// Grants access to a request, or responds at once without reading a tree.
    ///
    /// # Errors
    /// The response, if the request is complete.
    pub(super) fn admit(
        &self,
        parts: &Parts,
        has_body: bool,
    ) -> std::result::Result<Asked, Box<Turned>> {
        let answered = self.admitted(parts, has_body);
        answered.map_err(|mut turned| {
            turned.answer = self.with_fields(turned.answer, &parts.headers);
            turned
        })
    }

    fn admitted(&self, parts: &Parts, has_body: bool) -> std::result::Result<Asked, Box<Turned>> {
        let target = Target::of(&parts.uri).map_err(|fault| Turned::away(refused(&fault)))?;
        if parts.method == Method::OPTIONS && self.access.origin(&parts.headers).is_some() {
            return Err(Turned::away(preflight()));
        }
        if ![Method::GET, Method::HEAD].contains(&parts.method) {
            let reason = "this server is read-only: use GET or HEAD";
            let fault = Fault::new(StatusCode::METHOD_NOT_ALLOWED, reason);
            return Err(Turned::away(refused(&fault)));
        }
        if has_body {
            let reason = "a request for a file must not have a body";
            let fault = Fault::new(StatusCode::PAYLOAD_TOO_LARGE, reason);
            return Err(Turned::away(refused(&fault)));
        }
        match self.access.admit(parts, &target) {
            Ok(Admission::In) => Ok(Asked {
                target,
                method: parts.method.clone(),
                version: parts.version,
                headers: parts.headers.clone(),
            }),
            Ok(Admission::Enter(cookie)) => {
                let answer = entered(&parts.headers, target, &cookie);
                let is_let_in = true;
                Err(Box::new(Turned { answer, is_let_in }))
            }
            Err(fault) => Err(Turned::away(refused(&fault))),
        }
    }

    /// Returns the response to a request.
    ///
    /// # Errors
    /// [`Error::unwanted`] if the request must be repeated, or no client waits for it.
    pub(super) fn answer(&self, asked: &Asked, cancel: &CancelToken) -> Result<Response<Content>> {
        let mut found = self.found(asked, cancel);
        // The file has changed since it was looked up.
        if found.as_ref().is_err_and(is_stale) {
            found = self.found(asked, cancel);
        }
        let mut answer = match found {
            Err(error) if error.is_unwanted() => return Err(error),
            Err(error) => refused(&Fault::of(&error)),
            Ok(answer) => answer,
        };
        if self.has_no_end(asked, answer.body()) {
            let reason = "this response has no length, so it requires HTTP/1.1";
            let fault = Fault::new(StatusCode::HTTP_VERSION_NOT_SUPPORTED, reason);
            answer = refused(&fault);
        }
        if asked.method == Method::HEAD {
            *answer.body_mut() = Content::Empty;
        }
        Ok(self.with_fields(answer, &asked.headers))
    }

    /// Returns whether a client could not detect a truncated response. In HTTP/1.0, the end of the
    /// connection ends a response without a length, and a Unix socket has no resets.
    fn has_no_end(&self, asked: &Asked, content: &Content) -> bool {
        let is_unix = self.access.address.is_none();
        let is_old = asked.version < http::Version::HTTP_11;
        is_unix && is_old && matches!(content, Content::Pieces(pieces) if pieces.left().is_none())
    }

    /// Adds the header fields that all responses have.
    fn with_fields(&self, mut answer: Response<Content>, asked: &HeaderMap) -> Response<Content> {
        let origin = self.access.origin(asked);
        let origin = origin.and_then(|origin| HeaderValue::from_str(origin).ok());
        let headers = answer.headers_mut();
        let policy = HeaderValue::from_static(POLICY);
        headers.entry(CONTENT_SECURITY_POLICY).or_insert(policy);
        let mut set = |name, text| _ = headers.insert(name, HeaderValue::from_static(text));
        set(X_CONTENT_TYPE_OPTIONS, "nosniff");
        set(REFERRER_POLICY, "no-referrer");
        set(
            RESOURCE_POLICY,
            if origin.is_some() {
                "cross-origin"
            } else {
                "same-origin"
            },
        );
        if let Some(origin) = origin {
            let exposed = "Accept-Ranges, Content-Encoding, Content-Length, Content-Range, ETag";
            set(ACCESS_CONTROL_EXPOSE_HEADERS, exposed);
            headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
        }
        if !self.access.origins.is_empty() {
            headers.append(VARY, HeaderValue::from_static("Origin"));
        }
        answer
    }

    fn found(&self, asked: &Asked, cancel: &CancelToken) -> Result<Response<Content>> {
        if asked.target.wants_script {
            return Ok(self.script(asked));
        }
        let within = match self.trees.split(&asked.target.names) {
            Way::Tree(tree, names) => (tree, names),
            Way::Nowhere => return Err(Error::NotFound),
            Way::Root => {
                let form = form(asked);
                let text = listing::of_sources(self.trees.names(), form);
                return Ok(whole(form, text));
            }
        };
        let place = Place::find(&self.trees, within, cancel)?;
        place.requests().traffic().asked(Call::Lookup);
        match place.entry().attributes.kind {
            Kind::Directory if !asked.target.is_directory => Ok(redirect_into(asked)),
            Kind::Directory => self.directory(asked, place, cancel),
            _ if asked.target.is_directory => Err(refusal(nix::errno::Errno::ENOTDIR, "a file")),
            _ => self.file(asked, place, cancel),
        }
    }

    /// Returns the script of pages.
    fn script(&self, asked: &Asked) -> Response<Content> {
        let answer = Response::builder()
            .header(CONTENT_TYPE, "text/javascript; charset=utf-8")
            .header(CACHE_CONTROL, LASTING)
            .header(VARY, ACCEPT_ENCODING.as_str());
        let packed = self.script.clone();
        let (answer, text) = match packed.filter(|_| gzip::is_accepted(&asked.headers)) {
            Some(packed) => (answer.header(CONTENT_ENCODING, "gzip"), packed),
            None => (answer, bytes::Bytes::from_static(script::TEXT.as_bytes())),
        };
        let answer = answer.header(CONTENT_LENGTH, text.len());
        made(answer, Content::Whole(text))
    }

    /// Returns the page about a data file, or the listing of a directory.
    fn directory(
        &self,
        asked: &Asked,
        place: Place,
        cancel: &CancelToken,
    ) -> Result<Response<Content>> {
        let form = form(asked);
        refuse_unreadable(&place)?;
        if let Some(sought) = &asked.target.sought {
            let search = Search::new(&place, sought, cancel)?;
            let answer = Response::builder()
                .header(CONTENT_TYPE, "application/jsonl; charset=utf-8")
                .header(CACHE_CONTROL, "no-store");
            return Ok(made(answer, Content::Pieces(Box::new(search))));
        }
        if form == Form::Page && asked.may_lead_to_page() && has_page(&place, cancel)? {
            return Ok(redirect(&asked.with_token(PAGE), None));
        }
        let open = OpenPlace::directory(place, cancel)?;
        let has_views = listing::has_views(&open, cancel);
        let listing = Listing::new(open, form, asked.path(), has_views);
        let answer = answer_of(form);
        Ok(made(answer, Content::Pieces(Box::new(listing))))
    }

    fn file(&self, asked: &Asked, place: Place, cancel: &CancelToken) -> Result<Response<Content>> {
        refuse_unreadable(&place)?;
        let tree = place.requests();
        // A text that is too long to count is refused here, as by `stat`.
        tree.getattr_for(place.ino(), cancel)?;
        tree.traffic().asked(Call::Open);
        let kind = media::kind_of(place.view());
        let names = place.names().join(&b'/');
        let open = OpenPlace::file(place, cancel)?;
        let version = open.requests().version_of(open.handle(), cancel)?;
        let validators = match open.opened.caching {
            Caching::Never => Validators::default(),
            _ => Validators::of(&names, &version, self.seed),
        };
        let ranges = ranges(asked, &validators, version.length);
        let room = match ranges {
            Wanted::Whole => self.room(asked, kind, &version),
            _ => None,
        };
        // The client's validators are compared with the bytes that would be sent.
        let sent = match room {
            Some(_) => validators.packed(),
            None => validators.clone(),
        };
        let verdict = sent.verdict(&asked.headers);
        if verdict != Verdict::Send {
            return Ok(without_content(verdict, &sent, kind));
        }
        match ranges {
            Wanted::Unsatisfiable => Ok(unsatisfiable(version.length)),
            Wanted::Whole => match room {
                Some(room) => compressed((open, version, room), &validators, kind, cancel),
                None => parts((open, version), &validators, kind, &[]),
            },
            Wanted::Ranges(ranges) => parts((open, version), &validators, kind, &ranges),
        }
    }

    /// Reserves memory to compress a content, if it should be compressed.
    fn room(&self, asked: &Asked, kind: &str, version: &Version) -> Option<Room> {
        let is_text = media::is_text(kind) && gzip::is_worthwhile(version.length);
        let is_wanted = is_text && gzip::is_accepted(&asked.headers);
        is_wanted
            .then(|| self.packer.room(version.length))
            .flatten()
    }
}

/// Returns the requested ranges of a content of `length` bytes.
fn ranges(asked: &Asked, validators: &Validators, length: u64) -> Wanted {
    let is_allowed = asked.method == Method::GET && validators.allow_ranges(&asked.headers);
    let field = asked.text(&RANGE).filter(|_| is_allowed);
    field.map_or(Wanted::Whole, |field| wanted(field, length))
}

/// Returns the requested format of a directory.
fn form(asked: &Asked) -> Form {
    let [json, page] =
        ["application/json", "text/html"].map(|kind| weight(&asked.headers, &ACCEPT, kind));
    if json > 0.0 && json >= page {
        Form::Json
    } else {
        Form::Page
    }
}

/// Refuses content whose mode has no read permission for any user.
fn refuse_unreadable(place: &Place) -> Result<()> {
    if place.entry().attributes.permissions & 0o444 == 0 {
        return Err(refusal(nix::errno::Errno::EACCES, "the mode of the source"));
    }
    Ok(())
}

/// Returns whether a place is the root of a data file with a page. Such roots also exist within
/// views: joined files (`.h5fs/joined`), and other files (`.h5fs/external/FILE`).
fn has_page(place: &Place, cancel: &CancelToken) -> Result<bool> {
    match place.beneath(PAGE.as_bytes(), cancel) {
        Err(error) if error.is_unwanted() => Err(error),
        found => Ok(found.is_ok_and(|page| page.view().is_some())),
    }
}

/// Starts a response with a content of known length, with its validators.
fn described(status: StatusCode, validators: &Validators, kind: &str) -> Builder {
    let mut answer = Response::builder()
        .status(status)
        .header(CONTENT_TYPE, kind);
    let is_known = validators.tag.is_some();
    let kept = if is_known {
        "private, no-cache"
    } else {
        "no-store"
    };
    answer = answer.header(CACHE_CONTROL, kept);
    if let Some(tag) = &validators.tag {
        answer = answer.header(ETAG, tag);
    }
    if kind == media::PAGE {
        answer = answer.header(CONTENT_SECURITY_POLICY, PAGE_POLICY);
    }
    if media::is_text(kind) {
        answer = answer.header(VARY, ACCEPT_ENCODING.as_str());
    }
    answer
}

fn without_content(verdict: Verdict, validators: &Validators, kind: &str) -> Response<Content> {
    if verdict == Verdict::Unchanged {
        let answer = described(StatusCode::NOT_MODIFIED, validators, kind);
        return made(answer, Content::Empty);
    }
    let reason = "the file is not in the requested state";
    refused(&Fault::new(StatusCode::PRECONDITION_FAILED, reason))
}

fn unsatisfiable(length: u64) -> Response<Content> {
    let reason = "no such range of bytes, or too many";
    let mut answer = refused(&Fault::new(StatusCode::RANGE_NOT_SATISFIABLE, reason));
    if let Ok(range) = HeaderValue::from_str(&format!("bytes */{length}")) {
        answer.headers_mut().insert(CONTENT_RANGE, range);
    }
    answer
}

/// Returns a response with a whole file, or with these ranges.
fn parts(
    (open, version): (OpenPlace, Version),
    validators: &Validators,
    kind: &str,
    ranges: &[Range<u64>],
) -> Result<Response<Content>> {
    let length = version.length;
    let (status, kind, content_range, parts) = match ranges {
        [] => (
            StatusCode::OK,
            kind.to_owned(),
            None,
            vec![Part::Range(0..length)],
        ),
        [range] => {
            let content_range = multipart::content_range(range, length);
            let parts = vec![Part::Range(range.clone())];
            (
                StatusCode::PARTIAL_CONTENT,
                kind.to_owned(),
                Some(content_range),
                parts,
            )
        }
        ranges => {
            let (kind, parts) = multipart::parts(ranges, length, kind)?;
            (StatusCode::PARTIAL_CONTENT, kind, None, parts)
        }
    };
    let all: u64 = parts.iter().map(Part::length).sum();
    let mut answer = described(status, validators, &kind)
        .header(ACCEPT_RANGES, "bytes")
        .header(CONTENT_LENGTH, all);
    if let Some(range) = content_range {
        answer = answer.header(CONTENT_RANGE, range);
    }
    let parts = FileParts::new(open, version, parts);
    Ok(made(answer, Content::Pieces(Box::new(parts))))
}

/// Returns a response with a text, compressed if that makes it shorter.
fn compressed(
    (open, version, room): (OpenPlace, Version, Room),
    validators: &Validators,
    kind: &str,
    cancel: &CancelToken,
) -> Result<Response<Content>> {
    let mut all = FileParts::new(open, version.clone(), vec![Part::Range(0..version.length)]);
    let Some(packed) = room.packed(&all.whole(cancel)?) else {
        return parts((all.into_open(), version), validators, kind, &[]);
    };
    let answer = described(StatusCode::OK, &validators.packed(), kind)
        .header(CONTENT_ENCODING, "gzip")
        .header(CONTENT_LENGTH, packed.len());
    Ok(made(answer, Content::Whole(packed)))
}

fn answer_of(form: Form) -> Builder {
    Response::builder()
        .header(CONTENT_TYPE, form.kind())
        .header(CACHE_CONTROL, "no-store")
        .header(VARY, ACCEPT.as_str())
}

fn whole(form: Form, text: Vec<u8>) -> Response<Content> {
    let answer = answer_of(form).header(CONTENT_LENGTH, text.len());
    made(answer, Content::Whole(text.into()))
}

/// Redirects a directory's path without a slash to the path with a slash, because references in a
/// listing are relative to the latter.
fn redirect_into(asked: &Asked) -> Response<Content> {
    let into = Target {
        is_directory: true,
        ..asked.target.clone()
    };
    // The reference is relative to the parent directory and ends with the directory's own name.
    let reference = into.own_reference();
    let reference = reference.strip_prefix('.').unwrap_or(&reference);
    redirect(&asked.with_token(reference), None)
}

/// Redirects to a relative reference, and may set a cookie. A relative reference works regardless
/// of proxies in front of this server.
fn redirect(reference: &str, cookie: Option<&str>) -> Response<Content> {
    let mut answer = Response::builder()
        .status(StatusCode::FOUND)
        .header(LOCATION, reference)
        .header(CACHE_CONTROL, "no-store")
        .header(CONTENT_LENGTH, 0);
    if let Some(cookie) = cookie {
        answer = answer.header(SET_COOKIE, cookie);
    }
    made(answer, Content::Empty)
}

/// Makes a browser store the cookie and request the reference. If another site has led here, a
/// redirect would still count as cross-site, and the browser would withhold the cookie. So a page
/// of this server redirects instead.
fn entered(headers: &HeaderMap, mut target: Target, cookie: &str) -> Response<Content> {
    let site = headers.get(&SEC_FETCH_SITE);
    if site.is_none_or(|site| site != "cross-site") {
        return redirect(&target.own_reference(), Some(cookie));
    }
    // Leads to the same page as without this detour.
    target.wants_page = !target.wants_list;
    let reference = target.own_reference();
    // A reference contains no characters that need escaping.
    let text = format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"refresh\" content=\"0; url={reference}\">\n<title>h5fs</title>\n\
         <p><a href=\"{reference}\">The page</a></p>\n</html>\n"
    );
    let answer = Response::builder()
        .header(CONTENT_TYPE, media::PAGE)
        .header(SET_COOKIE, cookie)
        .header(CACHE_CONTROL, "no-store")
        .header(CONTENT_LENGTH, text.len());
    made(answer, Content::Whole(text.into()))
}

/// Responds to a CORS preflight of an allowed origin.
fn preflight() -> Response<Content> {
    let answer = Response::builder()
        .status(StatusCode::NO_CONTENT)
        .header(ACCESS_CONTROL_ALLOW_METHODS, METHODS)
        .header(
            ACCESS_CONTROL_ALLOW_HEADERS,
            "Authorization, If-None-Match, If-Range, Range",
        );
    made(answer, Content::Empty)
}

/// Returns a refusal, with the reason as text.
pub(super) fn refused(fault: &Fault) -> Response<Content> {
    let text = format!("{}\n", fault.reason);
    let mut answer = Response::builder()
        .status(fault.status)
        .header(CONTENT_TYPE, "text/plain; charset=utf-8")
        .header(CACHE_CONTROL, "no-store")
        .header(CONTENT_LENGTH, text.len());
    answer = match fault.status {
        StatusCode::METHOD_NOT_ALLOWED => answer.header(ALLOW, METHODS),
        StatusCode::UNAUTHORIZED => answer.header(WWW_AUTHENTICATE, "Bearer realm=\"h5fs\""),
        StatusCode::SERVICE_UNAVAILABLE => answer.header(RETRY_AFTER, "1"),
        _ => answer,
    };
    made(answer, Content::Whole(text.into_bytes().into()))
}

/// Builds the response. All header fields are generated here, so they are valid.
fn made(answer: Builder, content: Content) -> Response<Content> {
    answer.body(content).unwrap_or_else(|_| {
        let mut answer = Response::new(Content::Empty);
        *answer.status_mut() = StatusCode::INTERNAL_SERVER_ERROR;
        answer
    })
}
