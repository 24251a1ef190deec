//! Produces the response to one request: looks up the path, opens the file or directory, and
//! describes its content. The code here does not depend on connections.

use std::ops::Range;
use std::sync::Arc;

use h5fs_reader::array::CancelToken;
use h5fs_reader::error::{Error, Result};
use h5fs_view::documents::html::script;
use http::header::{
    ACCEPT, ACCEPT_ENCODING, ACCEPT_RANGES, ACCESS_CONTROL_ALLOW_HEADERS,
    ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN, ACCESS_CONTROL_EXPOSE_HEADERS,
    ALLOW, CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_RANGE,
    CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG, HeaderValue, LOCATION, RANGE, REFERRER_POLICY,
    RETRY_AFTER, SET_COOKIE, VARY, WWW_AUTHENTICATE, X_CONTENT_TYPE_OPTIONS,
};
use http::request::Parts;
use http::response::Builder;
use http::{HeaderMap, HeaderName, Method, Response, StatusCode};

use crate::errno::{is_stale, refusal_error};
use crate::http::access::{AccessRules, Admission};
use crate::http::conditions::{ConditionResult, Validators};
use crate::http::content::{ContentPart, FileParts, ResponseContent};
use crate::http::dav::{self, DavEntry, PropertyRequest, RequestedProperties};
use crate::http::fault::RequestFault;
use crate::http::gzip::{self, TextCompressor, TextReservation};
use crate::http::h5grove;
use crate::http::listing::{
    self, ListedDirectory, ListedProperties, ListingFormat, StreamedListing,
};
use crate::http::media;
use crate::http::multipart;
use crate::http::preferences::quality_value;
use crate::http::ranges::{RequestedRanges, parse_ranges};
use crate::http::search::ObjectSearch;
use crate::http::target::RequestTarget;
use crate::http::trees::{OpenedEntry, PathDestination, ResolvedPath, ServedTrees};
use crate::requests::Version;
use crate::stat::FileKind;
use crate::state::handle::Caching;
use crate::state::traffic::RequestType;

/// The content security policy of all responses except pages about objects: no scripts, and no
/// embedding in other sites.
const POLICY: &str = "default-src 'none'; img-src 'self' data:; style-src 'unsafe-inline'; \
                      base-uri 'none'; form-action 'none'; frame-ancestors 'self'";

/// The content security policy of a page about an object. The page may show content of this server,
/// and request it with this server's own script. No other content has the type of a script.
const PAGE_POLICY: &str = "default-src 'none'; img-src 'self' data:; style-src 'unsafe-inline'; \
                           script-src 'self'; connect-src 'self'; base-uri 'none'; \
                           form-action 'none'; frame-ancestors 'self'";

/// The `Cache-Control` value for the script of pages. The script's address contains its version, so
/// it never changes.
const IMMUTABLE: &str = "private, max-age=31536000, immutable";

/// The methods of all resources.
const METHODS: &str = "OPTIONS, GET, HEAD, PROPFIND";

/// The method of WebDAV that requests properties.
const PROPFIND: &str = "PROPFIND";

/// The header that says whether the properties of a directory's entries are requested, too.
const DEPTH: HeaderName = HeaderName::from_static("depth");

/// Path, relative to a data file's directory, of the page about the data file.
const PAGE: &str = ".h5fs/html/index.html";

/// The header in which a browser states whether the request comes from the same site.
const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

const RESOURCE_POLICY: HeaderName = HeaderName::from_static("cross-origin-resource-policy");

/// The served trees, with their access rules.
pub(super) struct Site {
    pub(super) trees: Arc<ServedTrees>,
    pub(super) access: AccessRules,
    pub(super) compressor: TextCompressor,
    /// The compressed script that pages about objects use.
    pub(super) script: Option<bytes::Bytes>,
    /// A random value of this process that is part of each entity tag.
    pub(super) seed: u64,
}

/// A request that has been granted access.
pub(super) struct AdmittedRequest {
    target: RequestTarget,
    method: Method,
    version: http::Version,
    headers: HeaderMap,
    /// The requested properties, if the method is PROPFIND.
    properties: Option<PropertyRequest>,
}

/// A response produced without opening a tree: a refusal, a CORS preflight, or a login redirect.
pub(super) struct EarlyResponse {
    pub(super) response: Response<ResponseContent>,
    /// Whether the client is known to have access.
    pub(super) is_admitted: bool,
}

impl EarlyResponse {
    /// Creates an early response to a client with access, for example to an invalid body.
    pub(super) fn refusal(fault: &RequestFault) -> Box<Self> {
        Box::new(EarlyResponse {
            response: fault_response(fault),
            is_admitted: true,
        })
    }

    /// Creates an early response to a client without access.
    fn without_access(answer: Response<ResponseContent>) -> Box<Self> {
        let is_let_in = false;
        Box::new(EarlyResponse {
            response: answer,
            is_admitted: is_let_in,
        })
    }
}

impl AdmittedRequest {
    fn text(&self, name: &HeaderName) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// Returns whether a request for the directory of a data file may be redirected to the page
    /// about the data file. A click on the page's own link to the directory must not be redirected.
    fn may_redirect_to_page(&self) -> bool {
        let comes_from_here = self.text(&SEC_FETCH_SITE) == Some("same-origin");
        !self.target.wants_list && (self.target.wants_page || !comes_from_here)
    }

    /// Adds the token to the URL `reference` as the query parameter `token`, if the request's URL
    /// contained it. Some programs can send the token only in URLs.
    fn with_token(&self, reference: &str) -> String {
        match &self.target.token {
            Some(token) if reference.contains('?') => format!("{reference}&token={token}"),
            Some(token) => format!("{reference}?token={token}"),
            None => reference.to_owned(),
        }
    }

    /// Reads which properties a PROPFIND request asks for from its body.
    ///
    /// # Errors
    /// Returns the refusal of an invalid body.
    pub(super) fn with_body(mut self, body: &[u8]) -> std::result::Result<Self, RequestFault> {
        if let Some(request) = &mut self.properties {
            request.properties = RequestedProperties::parse(body)?;
        }
        Ok(self)
    }

    /// Returns whether the request may have a body.
    pub(super) fn may_have_body(&self) -> bool {
        self.properties.is_some()
    }

    /// Returns the path of the request as written in its URL, before it is looked up in a tree.
    pub(super) fn path(&self) -> Vec<u8> {
        self.target.path()
    }
}

impl Site {
    /// Checks the access of a request. Responds at once to requests that need no tree.
    ///
    /// # Errors
    /// Returns the response as the error if no tree is needed, for example for a refusal.
    pub(super) fn admit(
        &self,
        parts: &Parts,
        has_body: bool,
    ) -> std::result::Result<AdmittedRequest, Box<EarlyResponse>> {
        let answered = self.check_access(parts, has_body);
        answered.map_err(|mut turned| {
            turned.response = self.with_common_headers(turned.response, &parts.headers);
            turned
        })
    }

    fn check_access(
        &self,
        parts: &Parts,
        has_body: bool,
    ) -> std::result::Result<AdmittedRequest, Box<EarlyResponse>> {
        let target = RequestTarget::parse(&parts.uri)
            .map_err(|fault| EarlyResponse::without_access(fault_response(&fault)))?;
        if parts.method == Method::OPTIONS && self.access.allowed_origin(&parts.headers).is_some() {
            return Err(EarlyResponse::without_access(preflight_response()));
        }
        if parts.method == Method::OPTIONS {
            return Err(EarlyResponse::without_access(options_response()));
        }
        let properties = property_request(parts)
            .map_err(|fault| EarlyResponse::without_access(fault_response(&fault)))?;
        let is_read = [Method::GET, Method::HEAD].contains(&parts.method);
        if !is_read && properties.is_none() {
            let reason = "this server is read-only: use GET, HEAD or PROPFIND";
            let fault = RequestFault::new(StatusCode::METHOD_NOT_ALLOWED, reason);
            return Err(EarlyResponse::without_access(fault_response(&fault)));
        }
        if has_body && properties.is_none() {
            let reason = "a request for a file must not have a body";
            let fault = RequestFault::new(StatusCode::PAYLOAD_TOO_LARGE, reason);
            return Err(EarlyResponse::without_access(fault_response(&fault)));
        }
        match self.access.admit(parts, &target) {
            Ok(Admission::Granted) => Ok(AdmittedRequest {
                target,
                method: parts.method.clone(),
                version: parts.version,
                headers: parts.headers.clone(),
                properties,
            }),
            Ok(Admission::StoreToken(cookie)) => {
                let answer = login_response(&parts.headers, target, &cookie);
                let is_let_in = true;
                Err(Box::new(EarlyResponse {
                    response: answer,
                    is_admitted: is_let_in,
                }))
            }
            Err(fault) => {
                let mut answer = fault_response(&fault);
                // A browser would show its own dialog for a password in place of the reason.
                if parts.method.as_str() == PROPFIND && fault.status == StatusCode::UNAUTHORIZED {
                    let challenge = HeaderValue::from_static("Basic realm=\"h5fs\"");
                    answer.headers_mut().append(WWW_AUTHENTICATE, challenge);
                }
                Err(EarlyResponse::without_access(answer))
            }
        }
    }

    /// Returns the response to a request. If the file changes while the response is prepared, tries
    /// once more.
    ///
    /// # Errors
    /// [`Error::cancelled`] if the request must be tried again in a heavy slot, or if no client
    /// waits for the response.
    pub(super) fn respond_with_retry(
        &self,
        asked: &AdmittedRequest,
        cancel: &CancelToken,
    ) -> Result<Response<ResponseContent>> {
        let mut found = self.respond(asked, cancel);
        // The file has changed since it was looked up.
        if found.as_ref().is_err_and(is_stale) {
            found = self.respond(asked, cancel);
        }
        let mut answer = match found {
            Err(error) if error.is_cancelled() => return Err(error),
            Err(error) => fault_response(&RequestFault::from_error(&error)),
            Ok(answer) => answer,
        };
        if self.is_undelimited(asked, answer.body()) {
            let reason = "this response has no length, so it requires HTTP/1.1";
            let fault = RequestFault::new(StatusCode::HTTP_VERSION_NOT_SUPPORTED, reason);
            answer = fault_response(&fault);
        }
        if asked.method == Method::HEAD {
            *answer.body_mut() = ResponseContent::Empty;
        }
        Ok(self.with_common_headers(answer, &asked.headers))
    }

    /// Returns whether the client could not detect that a response is incomplete. This is the case
    /// for a response without a length, in HTTP/1.0 over a Unix socket. Only the end of the
    /// connection ends such a response, and a Unix socket cannot report a reset.
    fn is_undelimited(&self, asked: &AdmittedRequest, content: &ResponseContent) -> bool {
        let is_unix = self.access.address.is_none();
        let is_old = asked.version < http::Version::HTTP_11;
        is_unix
            && is_old
            && matches!(content, ResponseContent::Pieces(pieces) if pieces.remaining().is_none())
    }

    /// Adds the header fields that all responses have.
    fn with_common_headers(
        &self,
        mut answer: Response<ResponseContent>,
        asked: &HeaderMap,
    ) -> Response<ResponseContent> {
        let origin = self.access.allowed_origin(asked);
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

    fn respond(
        &self,
        asked: &AdmittedRequest,
        cancel: &CancelToken,
    ) -> Result<Response<ResponseContent>> {
        if asked.target.wants_script {
            return Ok(self.script_response(asked));
        }
        if asked
            .target
            .names
            .first()
            .is_some_and(|name| name == h5grove::PREFIX)
        {
            return self.grove_response(asked, cancel);
        }
        let within = match self.trees.find_tree(&asked.target.names) {
            PathDestination::Tree(tree, names) => (tree, names),
            PathDestination::Nowhere => return Err(Error::NotFound),
            PathDestination::Root => {
                let form = listing_format(asked, None);
                let text = listing::sources_listing(self.trees.names(), &form);
                return Ok(complete_response(&form, text));
            }
        };
        let place = ResolvedPath::find(&self.trees, within, cancel)?;
        place
            .requests()
            .traffic()
            .count_request(RequestType::Lookup);
        match place.entry().attributes.kind {
            FileKind::Directory if !asked.target.is_directory && asked.properties.is_none() => {
                Ok(redirect_to_slash(asked))
            }
            FileKind::Directory => self.directory_response(asked, place, cancel),
            _ if asked.target.is_directory => {
                Err(refusal_error(nix::errno::Errno::ENOTDIR, "a file"))
            }
            _ => match &asked.properties {
                Some(request) => file_properties(asked, &place, request, cancel),
                None => self.respond_with_file(asked, place, cancel),
            },
        }
    }

    /// Returns the response to a request for one of h5grove's routes.
    fn grove_response(
        &self,
        asked: &AdmittedRequest,
        cancel: &CancelToken,
    ) -> Result<Response<ResponseContent>> {
        if asked.properties.is_some() {
            return Err(Error::NotFound);
        }
        let route = asked.target.names.get(1..).unwrap_or_default();
        let found = h5grove::answer(&self.trees, route, &asked.target.query, cancel)?;
        let mut answer = Response::builder()
            .status(found.status)
            .header(CONTENT_TYPE, found.media_type)
            .header(CACHE_CONTROL, "no-store")
            .header(CONTENT_LENGTH, found.length);
        if let Some(name) = found.saved_name {
            let saved = format!("attachment; filename=\"{name}\"");
            answer = answer.header(CONTENT_DISPOSITION, saved);
        }
        Ok(build_response(answer, found.content))
    }

    /// Returns the response with the script that pages use.
    fn script_response(&self, asked: &AdmittedRequest) -> Response<ResponseContent> {
        let answer = Response::builder()
            .header(CONTENT_TYPE, "text/javascript; charset=utf-8")
            .header(CACHE_CONTROL, IMMUTABLE)
            .header(VARY, ACCEPT_ENCODING.as_str());
        let packed = self.script.clone();
        let (answer, text) = match packed.filter(|_| gzip::accepts_gzip(&asked.headers)) {
            Some(packed) => (answer.header(CONTENT_ENCODING, "gzip"), packed),
            None => (answer, bytes::Bytes::from_static(script::SCRIPT.as_bytes())),
        };
        let answer = answer.header(CONTENT_LENGTH, text.len());
        build_response(answer, ResponseContent::Whole(text))
    }

    /// Returns the response for the directory `place`: a redirect to the page about a data file, or
    /// the listing.
    fn directory_response(
        &self,
        asked: &AdmittedRequest,
        place: ResolvedPath,
        cancel: &CancelToken,
    ) -> Result<Response<ResponseContent>> {
        let form = listing_format(asked, Some(&place));
        refuse_unreadable(&place)?;
        if let Some(sought) = &asked.target.search_text {
            let search = ObjectSearch::new(&place, sought, cancel)?;
            let answer = Response::builder()
                .header(CONTENT_TYPE, "application/jsonl; charset=utf-8")
                .header(CACHE_CONTROL, "no-store");
            return Ok(build_response(
                answer,
                ResponseContent::Pieces(Box::new(search)),
            ));
        }
        if form == ListingFormat::Page && asked.may_redirect_to_page() && has_page(&place, cancel)?
        {
            return Ok(redirect(&asked.with_token(PAGE), None));
        }
        let open = OpenedEntry::open_directory(place, cancel)?;
        let views = listing::linked_views(&open, cancel);
        let answer = listing_response_builder(&form);
        let listing = StreamedListing::new(open, form, asked.path(), views);
        Ok(build_response(
            answer,
            ResponseContent::Pieces(Box::new(listing)),
        ))
    }

    fn respond_with_file(
        &self,
        asked: &AdmittedRequest,
        place: ResolvedPath,
        cancel: &CancelToken,
    ) -> Result<Response<ResponseContent>> {
        refuse_unreadable(&place)?;
        let tree = place.requests();
        // A text that is too long for its bytes to be counted is refused here, as by `stat`.
        tree.getattr_with_cancel(place.ino(), cancel)?;
        tree.traffic().count_request(RequestType::Open);
        let kind = media::media_type(place.names_in_views());
        let names = place.names().join(&b'/');
        let open = OpenedEntry::open_file(place, cancel)?;
        let version = open.requests().content_version(open.handle(), cancel)?;
        let validators = match open.opened.caching {
            Caching::Never => Validators::without_tag(&version),
            _ => Validators::for_version(&names, &version, self.seed),
        };
        let ranges = requested_ranges(asked, &validators, version.length);
        let room = match ranges {
            RequestedRanges::Whole => self.reserve_compression(asked, kind, &version),
            _ => None,
        };
        // The client's validators are compared with the bytes that would be sent.
        let sent = match room {
            Some(_) => validators.for_gzip(),
            None => validators.clone(),
        };
        let verdict = sent.evaluate_conditions(&asked.headers);
        if verdict != ConditionResult::Proceed {
            return Ok(response_without_content(verdict, &sent, kind));
        }
        match ranges {
            RequestedRanges::Unsatisfiable => Ok(range_not_satisfiable_response(version.length)),
            RequestedRanges::Whole => match room {
                Some(room) => compressed_response((open, version, room), &validators, kind, cancel),
                None => file_response((open, version), &validators, kind, &[]),
            },
            RequestedRanges::Ranges(ranges) => {
                file_response((open, version), &validators, kind, &ranges)
            }
        }
    }

    /// Reserves memory to compress a content of the media type `kind`. Returns `None` if the
    /// content should not be compressed.
    fn reserve_compression(
        &self,
        asked: &AdmittedRequest,
        kind: &str,
        version: &Version,
    ) -> Option<TextReservation> {
        let is_text = media::is_text(kind) && gzip::should_compress(version.length);
        let is_wanted = is_text && gzip::accepts_gzip(&asked.headers);
        is_wanted
            .then(|| self.compressor.reserve(version.length))
            .flatten()
    }
}

/// Returns the byte ranges that the request selects from a content of `length` bytes.
fn requested_ranges(
    asked: &AdmittedRequest,
    validators: &Validators,
    length: u64,
) -> RequestedRanges {
    let is_allowed = asked.method == Method::GET && validators.allows_ranges(&asked.headers);
    let field = asked.text(&RANGE).filter(|_| is_allowed);
    field.map_or(RequestedRanges::Whole, |field| parse_ranges(field, length))
}

/// Returns the properties that a request with the method PROPFIND asks for, apart from its body.
/// Returns `None` for any other method.
///
/// # Errors
/// 403 for the properties of a whole tree, which the standard allows to refuse (RFC 4918, 9.1).
fn property_request(parts: &Parts) -> std::result::Result<Option<PropertyRequest>, RequestFault> {
    if parts.method.as_str() != PROPFIND {
        return Ok(None);
    }
    let depth = parts.headers.get(&DEPTH).map(HeaderValue::as_bytes);
    let has_entries = match depth {
        Some(b"0") => false,
        Some(b"1") => true,
        _ => {
            let reason = "the properties of a whole tree are not listed: send `Depth: 0` or `1`";
            return Err(RequestFault::new(StatusCode::FORBIDDEN, reason));
        }
    };
    Ok(Some(PropertyRequest {
        has_entries,
        properties: RequestedProperties::All,
    }))
}

/// Returns the response with the properties of the file `place`.
fn file_properties(
    asked: &AdmittedRequest,
    place: &ResolvedPath,
    request: &PropertyRequest,
    cancel: &CancelToken,
) -> Result<Response<ResponseContent>> {
    let entry = place.requests().getattr_with_cancel(place.ino(), cancel)?;
    let attributes = entry.attributes;
    let href = dav::directory_href(&asked.target.names);
    let entry = DavEntry {
        href: href.trim_end_matches('/'),
        name: asked.target.names.last().map_or(b"", Vec::as_slice),
        kind: FileKind::File,
        size: Some(attributes.size),
        modified: Some(attributes.modified.0),
    };
    let mut text = dav::BEGINNING.to_owned();
    dav::write_properties(&entry, &request.properties, &mut text);
    text.push_str(dav::END);
    let answer = Response::builder()
        .status(StatusCode::MULTI_STATUS)
        .header(CONTENT_TYPE, "application/xml; charset=utf-8")
        .header(CACHE_CONTROL, "no-store")
        .header(CONTENT_LENGTH, text.len());
    Ok(build_response(
        answer,
        ResponseContent::Whole(text.into_bytes().into()),
    ))
}

/// Returns the format in which the request wants the listing of a directory. `place` is `None` for
/// the root of a server with several sources.
fn listing_format(asked: &AdmittedRequest, place: Option<&ResolvedPath>) -> ListingFormat {
    if let Some(request) = &asked.properties {
        let attributes = place.map(|place| place.entry().attributes);
        return ListingFormat::Properties(Arc::new(ListedProperties {
            href: dav::directory_href(&asked.target.names),
            request: request.clone(),
            own: ListedDirectory {
                name: asked.target.names.last().cloned().unwrap_or_default(),
                modified: attributes.map(|attributes| attributes.modified.0),
            },
        }));
    }
    let [json, page] =
        ["application/json", "text/html"].map(|kind| quality_value(&asked.headers, &ACCEPT, kind));
    if json > 0.0 && json >= page {
        ListingFormat::Json
    } else {
        ListingFormat::Page
    }
}

/// Fails if the file's permission bits grant no user the right to read.
fn refuse_unreadable(place: &ResolvedPath) -> Result<()> {
    if place.entry().attributes.permissions & 0o444 == 0 {
        return Err(refusal_error(
            nix::errno::Errno::EACCES,
            "the mode of the source",
        ));
    }
    Ok(())
}

/// Returns whether `place` is the root directory of a data file that has a page. Joined files
/// (`.h5fs/joined`) and externally linked files (`.h5fs/external/FILE`) also have such directories.
fn has_page(place: &ResolvedPath, cancel: &CancelToken) -> Result<bool> {
    match place.descendant(PAGE.as_bytes(), cancel) {
        Err(error) if error.is_cancelled() => Err(error),
        found => Ok(found.is_ok_and(|page| page.names_in_views().is_some())),
    }
}

/// Starts a response whose content has the media type `kind`, with the header fields for
/// `validators`.
fn start_response(status: StatusCode, validators: &Validators, kind: &str) -> Builder {
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

fn response_without_content(
    verdict: ConditionResult,
    validators: &Validators,
    kind: &str,
) -> Response<ResponseContent> {
    if verdict == ConditionResult::NotModified {
        let answer = start_response(StatusCode::NOT_MODIFIED, validators, kind);
        return build_response(answer, ResponseContent::Empty);
    }
    let reason = "the file is not in the requested state";
    fault_response(&RequestFault::new(StatusCode::PRECONDITION_FAILED, reason))
}

fn range_not_satisfiable_response(length: u64) -> Response<ResponseContent> {
    let reason = "no such range of bytes, or too many";
    let mut answer = fault_response(&RequestFault::new(
        StatusCode::RANGE_NOT_SATISFIABLE,
        reason,
    ));
    if let Ok(range) = HeaderValue::from_str(&format!("bytes */{length}")) {
        answer.headers_mut().insert(CONTENT_RANGE, range);
    }
    answer
}

/// Returns a response with the byte ranges `ranges` of the file, or with the whole file if `ranges`
/// is empty.
fn file_response(
    (open, version): (OpenedEntry, Version),
    validators: &Validators,
    kind: &str,
    ranges: &[Range<u64>],
) -> Result<Response<ResponseContent>> {
    let length = version.length;
    let (status, kind, content_range, parts) = match ranges {
        [] => (
            StatusCode::OK,
            kind.to_owned(),
            None,
            vec![ContentPart::Range(0..length)],
        ),
        [range] => {
            let content_range = multipart::content_range(range, length);
            let parts = vec![ContentPart::Range(range.clone())];
            (
                StatusCode::PARTIAL_CONTENT,
                kind.to_owned(),
                Some(content_range),
                parts,
            )
        }
        ranges => {
            let (kind, parts) = multipart::multipart_parts(ranges, length, kind)?;
            (StatusCode::PARTIAL_CONTENT, kind, None, parts)
        }
    };
    let all: u64 = parts.iter().map(ContentPart::length).sum();
    let mut answer = start_response(status, validators, &kind)
        .header(ACCEPT_RANGES, "bytes")
        .header(CONTENT_LENGTH, all);
    if let Some(range) = content_range {
        answer = answer.header(CONTENT_RANGE, range);
    }
    let parts = FileParts::new(open, version, parts);
    Ok(build_response(
        answer,
        ResponseContent::Pieces(Box::new(parts)),
    ))
}

/// Returns a response with the content of a text file, compressed if that makes it shorter.
fn compressed_response(
    (open, version, room): (OpenedEntry, Version, TextReservation),
    validators: &Validators,
    kind: &str,
    cancel: &CancelToken,
) -> Result<Response<ResponseContent>> {
    let mut all = FileParts::new(
        open,
        version.clone(),
        vec![ContentPart::Range(0..version.length)],
    );
    let Some(packed) = room.compress(&all.read_all(cancel)?) else {
        return file_response((all.into_opened_entry(), version), validators, kind, &[]);
    };
    let answer = start_response(StatusCode::OK, &validators.for_gzip(), kind)
        .header(CONTENT_ENCODING, "gzip")
        .header(CONTENT_LENGTH, packed.len());
    Ok(build_response(answer, ResponseContent::Whole(packed)))
}

fn listing_response_builder(form: &ListingFormat) -> Builder {
    let status = match form {
        ListingFormat::Properties(_) => StatusCode::MULTI_STATUS,
        ListingFormat::Page | ListingFormat::Json => StatusCode::OK,
    };
    Response::builder()
        .status(status)
        .header(CONTENT_TYPE, form.media_type())
        .header(CACHE_CONTROL, "no-store")
        .header(VARY, ACCEPT.as_str())
}

fn complete_response(form: &ListingFormat, text: Vec<u8>) -> Response<ResponseContent> {
    let answer = listing_response_builder(form).header(CONTENT_LENGTH, text.len());
    build_response(answer, ResponseContent::Whole(text.into()))
}

/// Redirects a directory's path without a slash to the path with a slash, because the links in a
/// listing are relative to the path with a slash.
fn redirect_to_slash(asked: &AdmittedRequest) -> Response<ResponseContent> {
    let into = RequestTarget {
        is_directory: true,
        ..asked.target.clone()
    };
    // The reference is relative to the parent directory and ends with the directory's own name.
    let reference = into.relative_url();
    let reference = reference.strip_prefix('.').unwrap_or(&reference);
    redirect(&asked.with_token(reference), None)
}

/// Redirects to a relative reference, and may set a cookie. A relative reference works regardless
/// of proxies in front of this server.
fn redirect(reference: &str, cookie: Option<&str>) -> Response<ResponseContent> {
    let mut answer = Response::builder()
        .status(StatusCode::FOUND)
        .header(LOCATION, reference)
        .header(CACHE_CONTROL, "no-store")
        .header(CONTENT_LENGTH, 0);
    if let Some(cookie) = cookie {
        answer = answer.header(SET_COOKIE, cookie);
    }
    build_response(answer, ResponseContent::Empty)
}

/// Returns a response that makes a browser store `cookie` and request `target` again, without the
/// token. If the user came from another site, a redirect by status code would count as cross-site,
/// and the browser would withhold the cookie. In this case, the response is a page that redirects
/// the browser.
fn login_response(
    headers: &HeaderMap,
    mut target: RequestTarget,
    cookie: &str,
) -> Response<ResponseContent> {
    let site = headers.get(&SEC_FETCH_SITE);
    if site.is_none_or(|site| site != "cross-site") {
        return redirect(&target.relative_url(), Some(cookie));
    }
    // The browser gets the same page as if it had requested the target directly.
    target.wants_page = !target.wants_list;
    let reference = target.relative_url();
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
    build_response(answer, ResponseContent::Whole(text.into()))
}

/// Responds to OPTIONS: the server is read-only, and file managers can mount it by WebDAV.
fn options_response() -> Response<ResponseContent> {
    let answer = Response::builder()
        .status(StatusCode::OK)
        .header(ALLOW, METHODS)
        .header("DAV", dav::CLASS)
        // Without it, the file manager of Windows uses another protocol.
        .header("MS-Author-Via", "DAV")
        .header(CONTENT_LENGTH, 0);
    build_response(answer, ResponseContent::Empty)
}

/// Responds to a CORS preflight of an allowed origin.
fn preflight_response() -> Response<ResponseContent> {
    let answer = Response::builder()
        .status(StatusCode::NO_CONTENT)
        .header(ACCESS_CONTROL_ALLOW_METHODS, METHODS)
        .header(
            ACCESS_CONTROL_ALLOW_HEADERS,
            "Authorization, If-None-Match, If-Range, Range",
        );
    build_response(answer, ResponseContent::Empty)
}

/// Returns the response to a refused or failed request, with the reason as text.
pub(super) fn fault_response(fault: &RequestFault) -> Response<ResponseContent> {
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
    build_response(answer, ResponseContent::Whole(text.into_bytes().into()))
}

/// Builds the response. All header fields are generated here, so they are valid.
fn build_response(answer: Builder, content: ResponseContent) -> Response<ResponseContent> {
    answer.body(content).unwrap_or_else(|_| {
        let mut answer = Response::new(ResponseContent::Empty);
        *answer.status_mut() = StatusCode::INTERNAL_SERVER_ERROR;
        answer
    })
}
