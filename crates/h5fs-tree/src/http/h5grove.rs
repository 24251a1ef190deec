//! The routes of h5grove 4.0.0 beneath one prefix: front ends such as h5web read the objects of
//! data files from them.

use std::sync::Arc;

use h5fs_reader::array::{Bytes, CancelToken};
use h5fs_reader::error::{Error, Result};
use h5fs_reader::model::text::JsonObject;
use h5fs_reader::source::location::percent::percent_decode_strictly;
use h5fs_reader::wire::to_u64;
use h5fs_view::view::View;
use http::StatusCode;
use nix::errno::Errno;

use crate::errno::{is_stale, refusal_error, stale_error};
use crate::http::content::{ResponseContent, StreamedContent};
use crate::http::fault::RequestFault;
use crate::http::target::is_name;
use crate::http::trees::{PathDestination, ResolvedPath, ServedTrees};
use crate::requests::{DataFormat, FollowedLinks, ObjectAnswer, ObjectQuery, ObjectQuestion};
use crate::state::traffic::RequestType;
use crate::workers::{RequestObject, RequestSubject};

/// The first name of the path of all routes.
pub(super) const PREFIX: &[u8] = b".h5grove";

/// The answer to a request.
pub(super) struct GroveResponse {
    pub(super) status: StatusCode,
    pub(super) media_type: &'static str,
    /// The name under which a browser saves the content.
    pub(super) saved_name: Option<&'static str>,
    pub(super) length: u64,
    pub(super) content: ResponseContent,
}

impl GroveResponse {
    fn text(status: StatusCode, text: String) -> Self {
        GroveResponse {
            status,
            media_type: "application/json",
            saved_name: None,
            length: to_u64(text.len()),
            content: ResponseContent::Whole(text.into_bytes().into()),
        }
    }

    /// Creates the answer to a refused request: a JSON document with the reason.
    fn refusal(fault: &RequestFault) -> Self {
        let mut message = JsonObject::default();
        message.add_text("message", &fault.reason);
        Self::text(fault.status, message.finish())
    }
}

/// Returns the answer to a request. `route` has the names after the prefix, and `query` is the query
/// of the URL.
///
/// # Errors
/// [`Error::cancelled`] and `ESTALE`, after which the request is tried again.
pub(super) fn answer(
    trees: &Arc<ServedTrees>,
    route: &[Vec<u8>],
    query: &str,
    cancel: &CancelToken,
) -> Result<GroveResponse> {
    let route = match route {
        [] => return Ok(GroveResponse::text(StatusCode::OK, "\"ok\"".to_owned())),
        [route] => &route[..],
        _ => b"",
    };
    let request = match GroveRequest::parse(route, query) {
        Ok(request) => request,
        Err(fault) => return Ok(GroveResponse::refusal(&fault)),
    };
    match request.answer(trees, cancel) {
        Err(error) if error.is_cancelled() || is_stale(&error) => Err(error),
        Err(error) => Ok(GroveResponse::refusal(&RequestFault::from_error(&error))),
        answer => answer,
    }
}

/// A request for one of the routes.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct GroveRequest {
    /// The names on the path of the data file in the server.
    pub(super) file: Vec<Vec<u8>>,
    pub(super) query: ObjectQuery,
}

/// The parameters of a request, decoded, in order.
struct Parameters(Vec<(Vec<u8>, Vec<u8>)>);

impl Parameters {
    fn parse(query: &str) -> std::result::Result<Self, RequestFault> {
        let decode = |text: &str| {
            percent_decode_strictly(&text.replace('+', " "))
                .ok_or_else(|| invalid("`%` without two hexadecimal digits"))
        };
        let words = query.split('&').filter(|word| !word.is_empty());
        let pairs = words.map(|word| {
            let (name, value) = word.split_once('=').unwrap_or((word, ""));
            Ok((decode(name)?, decode(value)?))
        });
        Ok(Parameters(pairs.collect::<std::result::Result<_, _>>()?))
    }

    fn all(&self, name: &'static str) -> impl Iterator<Item = &[u8]> {
        let named = self.0.iter().filter(move |(own, _)| own == name.as_bytes());
        named.map(|(_, value)| &value[..])
    }

    fn bytes(&self, name: &'static str) -> Option<&[u8]> {
        self.all(name).next()
    }

    fn text(&self, name: &'static str) -> std::result::Result<Option<&str>, RequestFault> {
        let text = self.bytes(name).map(str::from_utf8).transpose();
        text.map_err(|_| invalid(&format!("the parameter {name} is not UTF-8")))
    }
}

fn invalid(reason: &str) -> RequestFault {
    RequestFault::new(StatusCode::UNPROCESSABLE_ENTITY, reason)
}

impl GroveRequest {
    /// Parses a request for the route `route` with the query `query`.
    ///
    /// # Errors
    /// 404 for a route that does not exist, and 422 for a parameter that is invalid.
    pub(super) fn parse(route: &[u8], query: &str) -> std::result::Result<Self, RequestFault> {
        let parameters = Parameters::parse(query)?;
        let selector = || match parameters.text("selection")? {
            None => Ok(Vec::new()),
            Some(selection) => parse_selection(selection),
        };
        let question = match route {
            b"attr" => {
                let names: Vec<_> = parameters.all("attr_keys").map(<[u8]>::to_vec).collect();
                ObjectQuestion::Attributes((!names.is_empty()).then_some(names))
            }
            b"data" => ObjectQuestion::Data {
                selector: selector()?,
                format: parse_format(parameters.text("format")?.unwrap_or("json"))?,
                is_flat: parameters
                    .text("flatten")?
                    .is_some_and(|flatten| !flatten.eq_ignore_ascii_case("false")),
                is_safe: match parameters.text("dtype")?.unwrap_or("origin") {
                    "origin" => false,
                    "safe" => true,
                    other => return Err(invalid(&format!("Unsupported dtype {other}"))),
                },
            },
            b"meta" => ObjectQuestion::Metadata,
            b"paths" => ObjectQuestion::Paths,
            b"stats" => ObjectQuestion::Statistics(selector()?),
            _ => {
                let reason = "the routes are attr, data, meta, paths and stats";
                return Err(RequestFault::new(StatusCode::NOT_FOUND, reason));
            }
        };
        // Only these routes have the parameter.
        let links = match question {
            ObjectQuestion::Metadata | ObjectQuestion::Paths => {
                parse_links(parameters.text("resolve_links")?.unwrap_or("only_valid"))?
            }
            _ => FollowedLinks::Valid,
        };
        let file = parameters.bytes("file").unwrap_or_default();
        let file = file.split(|&byte| byte == b'/');
        let file: Vec<_> = file
            .filter(|name| !name.is_empty())
            .map(<[u8]>::to_vec)
            .collect();
        if !file.iter().all(|name| is_name(name)) {
            return Err(invalid("the parameter file is not a path of names"));
        }
        Ok(GroveRequest {
            file,
            query: ObjectQuery {
                path: parameters.bytes("path").unwrap_or(b"/").to_vec(),
                links,
                question,
            },
        })
    }

    fn answer(&self, trees: &Arc<ServedTrees>, cancel: &CancelToken) -> Result<GroveResponse> {
        let within = match trees.find_tree(&self.file) {
            // Front ends name the file even if the server has only one.
            PathDestination::Tree(tree, _) if trees.is_file(tree) => (tree, &[][..]),
            PathDestination::Tree(tree, names) => (tree, names),
            PathDestination::Root | PathDestination::Nowhere => return Err(Error::NotFound),
        };
        let place = ResolvedPath::find(trees, within, cancel)?;
        if place.entry().attributes.permissions & 0o444 == 0 {
            return Err(refusal_error(Errno::EACCES, "the mode of the source"));
        }
        let tree = place.requests();
        tree.traffic().count_request(RequestType::Open);
        let refused = |status, reason| {
            let fault = RequestFault::new(status, reason);
            Ok(GroveResponse::refusal(&fault))
        };
        match tree.answer_query(place.ino(), &self.query, cancel)? {
            ObjectAnswer::Missing(reason) => refused(StatusCode::NOT_FOUND, reason),
            ObjectAnswer::Refused(reason) => refused(StatusCode::UNPROCESSABLE_ENTITY, reason),
            ObjectAnswer::Content(view) => {
                let (media_type, saved_name) = self.media_type();
                Ok(GroveResponse {
                    status: StatusCode::OK,
                    media_type,
                    saved_name,
                    length: view.length(),
                    content: ResponseContent::Pieces(Box::new(GroveContent::new(view, &place))),
                })
            }
        }
    }

    /// Returns the media type of the answer, and the name under which a browser saves it.
    pub(super) fn media_type(&self) -> (&'static str, Option<&'static str>) {
        let ObjectQuestion::Data { format, .. } = &self.query.question else {
            return ("application/json", None);
        };
        match format {
            DataFormat::Json => ("application/json", None),
            DataFormat::Binary => ("application/octet-stream", None),
            DataFormat::Npy => ("application/octet-stream", Some("data.npy")),
            DataFormat::Csv => ("text/csv", Some("data.csv")),
            DataFormat::Tiff => ("image/tiff", Some("data.tiff")),
        }
    }
}

/// Parses the links to follow. Before h5grove had three kinds, the value was a boolean.
fn parse_links(text: &str) -> std::result::Result<FollowedLinks, RequestFault> {
    match &*text.to_ascii_lowercase() {
        "true" | "all" => Ok(FollowedLinks::All),
        "false" | "none" => Ok(FollowedLinks::None),
        "only_valid" => Ok(FollowedLinks::Valid),
        _ => Err(invalid(&format!(
            "{text} is not a valid value for link resolution. Accepted values are: all, none or \
             only_valid"
        ))),
    }
}

fn parse_format(text: &str) -> std::result::Result<DataFormat, RequestFault> {
    match text {
        "json" => Ok(DataFormat::Json),
        "bin" => Ok(DataFormat::Binary),
        "npy" => Ok(DataFormat::Npy),
        "csv" => Ok(DataFormat::Csv),
        "tiff" => Ok(DataFormat::Tiff),
        other => Err(invalid(&format!("Unsupported encoding {other}"))),
    }
}

/// Converts a selection, such as `0:10, 2`, to a selector. h5py does not select backwards.
fn parse_selection(text: &str) -> std::result::Result<Vec<u8>, RequestFault> {
    let fault = || invalid(&format!("{text} is not a valid selection"));
    let mut members = Vec::new();
    for member in text.split(',') {
        let numbers: Vec<&str> = member.split(':').map(str::trim).collect();
        let is_number = |number: &&str| number.parse::<i64>().is_ok();
        let is_slice = matches!(numbers.len(), 2 | 3);
        let is_valid = match &*numbers {
            [number] => is_number(number),
            numbers => {
                is_slice
                    && numbers
                        .iter()
                        .all(|text| text.is_empty() || is_number(text))
            }
        };
        let is_forward = numbers
            .get(2)
            .and_then(|step| step.parse::<i64>().ok())
            .is_none_or(|step| step > 0);
        if !is_valid || !is_forward {
            return Err(fault());
        }
        members.push(numbers.join(":").replace('+', ""));
    }
    Ok(format!("[{}]", members.join(",")).into_bytes())
}

/// The content of an answer, sent in pieces.
pub(super) struct GroveContent {
    view: Box<dyn View>,
    subject: RequestSubject,
    /// Offset of the next byte.
    offset: u64,
}

impl GroveContent {
    /// Creates the content `view` of an answer about the data file at `place`.
    pub(super) fn new(view: Box<dyn View>, place: &ResolvedPath) -> Self {
        let file = place.requests().data_file_number(place.ino());
        GroveContent {
            view,
            subject: (RequestObject::Content(place.inode_key()), file),
            offset: 0,
        }
    }
}

impl StreamedContent for GroveContent {
    fn request_subject(&self) -> RequestSubject {
        self.subject
    }

    fn remaining(&self) -> Option<u64> {
        Some(self.view.length().saturating_sub(self.offset))
    }

    fn next_piece(&mut self, most: usize, cancel: &CancelToken) -> Result<Option<Bytes>> {
        let left = self.view.length().saturating_sub(self.offset);
        if left == 0 {
            return Ok(None);
        }
        let length = usize::try_from(left).map_or(most, |left| left.min(most));
        let bytes = self.view.read_for(self.offset, length, cancel)?;
        if bytes.is_empty() {
            // The content ended before the announced length, or the work was cancelled.
            cancel.check_cancelled()?;
            return Err(stale_error());
        }
        self.offset = self.offset.saturating_add(to_u64(bytes.len()));
        Ok(Some(bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(route: &str, query: &str) -> std::result::Result<GroveRequest, u16> {
        let parsed = GroveRequest::parse(route.as_bytes(), query);
        parsed.map_err(|fault| fault.status.as_u16())
    }

    #[test]
    fn a_request_has_a_path_and_a_question() {
        let request = parse(
            "data",
            "file=a%20b/run.h5&path=/x+y&selection=0:10,+2,::3&format=bin&dtype=safe&flatten=False",
        )
        .unwrap();
        assert_eq!(request.file, [&b"a b"[..], b"run.h5"]);
        assert_eq!(request.query.path, b"/x y");
        let expected = ObjectQuestion::Data {
            selector: b"[0:10,2,::3]".to_vec(),
            format: DataFormat::Binary,
            is_flat: false,
            is_safe: true,
        };
        assert_eq!(request.query.question, expected);
        let request = parse("attr", "attr_keys=a&attr_keys=b%26").unwrap();
        let names = vec![b"a".to_vec(), b"b&".to_vec()];
        assert_eq!(
            request.query.question,
            ObjectQuestion::Attributes(Some(names))
        );
        assert_eq!(request.query.path, b"/");
        let request = parse("meta", "resolve_links=NONE&token=x").unwrap();
        assert_eq!(request.query.links, FollowedLinks::None);
    }

    #[test]
    fn other_requests_are_refused() {
        assert_eq!(parse("files", ""), Err(404));
        for (route, query) in [
            ("data", "format=yaml"),
            ("data", "dtype=float"),
            ("data", "selection="),
            ("data", "selection=a"),
            ("data", "selection=1,,2"),
            ("data", "selection=::-1"),
            ("data", "selection=1:2:3:4"),
            ("data", "selection=[0]"),
            ("data", "selection=9999999999999999999"),
            ("meta", "resolve_links=maybe"),
            ("meta", "file=../x"),
            ("meta", "file=a%00"),
            ("meta", "path=%zz"),
        ] {
            assert_eq!(parse(route, query), Err(422), "{route}?{query}");
        }
    }

    proptest::proptest! {
        #[test]
        fn a_selection_becomes_one_selector_or_is_refused(text in "[-+0-9:, \\[\\]a]{0,20}") {
            if let Ok(selector) = parse_selection(&text) {
                use h5fs_reader::model::selector::Selector;
                proptest::prop_assert!(Selector::parse(&selector).is_some(), "{text}");
            }
        }
    }
}
