//! WebDAV for reading (RFC 4918, class 1): the properties of files and directories, as XML. File
//! managers mount such a server without FUSE.

use std::fmt::Write;
use std::time::{Duration, SystemTime};

use quick_xml::NsReader;
use quick_xml::escape::escape;
use quick_xml::events::Event;
use quick_xml::name::ResolveResult;

use crate::http::fault::RequestFault;
use crate::http::target::encode_name;
use crate::limits;
use crate::stat::FileKind;

/// The value of the header `DAV` in responses to OPTIONS.
pub(super) const CLASS: &str = "1";

/// The namespace of the properties of the standard.
const NAMESPACE: &str = "DAV:";

/// The properties of the standard that every file or directory can have.
const PROPERTIES: [&str; 5] = [
    "displayname",
    "resourcetype",
    "getcontentlength",
    "getlastmodified",
    "supportedlock",
];

/// A request for properties (PROPFIND).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PropertyRequest {
    /// Whether the properties of a directory's entries are requested, too.
    pub(super) has_entries: bool,
    pub(super) properties: RequestedProperties,
}

/// The properties that a request asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum RequestedProperties {
    All,
    /// Only the names of all properties.
    Names,
    Listed(Vec<PropertyName>),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PropertyName {
    namespace: String,
    name: String,
}

/// A file or directory whose properties are requested.
pub(super) struct DavEntry<'a> {
    /// Percent-encoded absolute path. The path of a directory ends with a slash.
    pub(super) href: &'a str,
    pub(super) name: &'a [u8],
    pub(super) kind: FileKind,
    pub(super) size: Option<u64>,
    /// Time of the last modification in seconds since 1970.
    pub(super) modified: Option<i64>,
}

impl RequestedProperties {
    /// Parses the body of a request. An empty body asks for all properties.
    ///
    /// # Errors
    /// 400 if the body is not the XML of such a request, or asks for too many properties.
    pub(super) fn parse(body: &[u8]) -> Result<Self, RequestFault> {
        let invalid = |_| RequestFault::bad_request("the body is not a PROPFIND request in XML");
        if body.trim_ascii().is_empty() {
            return Ok(RequestedProperties::All);
        }
        let text = str::from_utf8(body).map_err(|_| invalid(()))?;
        let mut reader = NsReader::from_str(text);
        reader.config_mut().expand_empty_elements = true;
        let (mut path, mut found, mut names) = (Vec::new(), None, Vec::new());
        let mut has_root = false;
        loop {
            let (namespace, event) = reader.read_resolved_event().map_err(|_| invalid(()))?;
            match event {
                Event::Start(element) => {
                    let name = element.local_name().as_ref().to_owned();
                    if !is_xml_name(&name) {
                        return Err(invalid(()));
                    }
                    let namespace = match namespace {
                        ResolveResult::Bound(namespace) => namespace.as_ref().to_owned(),
                        ResolveResult::Unbound => String::new(),
                        ResolveResult::Unknown(_) => return Err(invalid(())),
                    };
                    match (&*path, &*name) {
                        ([], "propfind") if namespace == NAMESPACE && !has_root => has_root = true,
                        ([], _) => return Err(invalid(())),
                        ([_], "propname") => found = Some(RequestedProperties::Names),
                        ([_], "allprop") => found = Some(RequestedProperties::All),
                        ([_, parent], _) if parent == "prop" => {
                            if names.len() >= limits::DAV_PROPERTIES {
                                return Err(RequestFault::bad_request("too many properties"));
                            }
                            names.push(PropertyName {
                                namespace,
                                name: name.clone(),
                            });
                        }
                        _ => {}
                    }
                    path.push(name);
                }
                Event::End(_) => drop(path.pop()),
                Event::DocType(_) => return Err(invalid(())),
                Event::Eof if path.is_empty() && has_root => break,
                Event::Eof => return Err(invalid(())),
                _ => {}
            }
        }
        Ok(found.unwrap_or(RequestedProperties::Listed(names)))
    }
}

/// Returns whether a name can be written as the name of an element.
fn is_xml_name(name: &str) -> bool {
    let is_of_name = |c: char| c.is_alphanumeric() || "._-".contains(c);
    name.chars().all(is_of_name) && name.starts_with(|c: char| c.is_alphabetic() || c == '_')
}

/// The beginning of a response with the properties of several files.
pub(super) const BEGINNING: &str =
    "<?xml version=\"1.0\" encoding=\"utf-8\"?>\n<D:multistatus xmlns:D=\"DAV:\">\n";

/// The end of a response with the properties of several files.
pub(super) const END: &str = "</D:multistatus>\n";

/// Appends the properties of `entry` that the request asks for. Properties that the entry does not
/// have are listed as missing.
pub(super) fn write_properties(
    entry: &DavEntry<'_>,
    requested: &RequestedProperties,
    out: &mut String,
) {
    let (mut present, mut missing) = (String::new(), String::new());
    match requested {
        RequestedProperties::All => {
            for name in PROPERTIES {
                if let Some(value) = entry.value(name) {
                    push_property(name, &value, &mut present);
                }
            }
        }
        RequestedProperties::Names => {
            for name in PROPERTIES.iter().filter(|name| entry.value(name).is_some()) {
                push_property(name, "", &mut present);
            }
        }
        RequestedProperties::Listed(names) => {
            for PropertyName { namespace, name } in names {
                match entry.value(name).filter(|_| namespace == NAMESPACE) {
                    Some(value) => push_property(name, &value, &mut present),
                    None => {
                        let (name, namespace) = (escape(&**name), escape(&**namespace));
                        // Writing to a String cannot fail.
                        let _ = write!(missing, "<{name} xmlns=\"{namespace}\"/>");
                    }
                }
            }
        }
    }
    let _ = write!(out, "<D:response><D:href>{}</D:href>", entry.href);
    for (properties, status) in [(present, "200 OK"), (missing, "404 Not Found")] {
        if !properties.is_empty() || status.starts_with("200") {
            let _ = write!(
                out,
                "<D:propstat><D:prop>{properties}</D:prop>\
                 <D:status>HTTP/1.1 {status}</D:status></D:propstat>"
            );
        }
    }
    out.push_str("</D:response>\n");
}

fn push_property(name: &str, value: &str, out: &mut String) {
    let _ = write!(out, "<D:{name}>{value}</D:{name}>");
}

/// Returns the absolute path of a directory, percent-encoded, from the names on it.
pub(super) fn directory_href(names: &[Vec<u8>]) -> String {
    let names = names.iter().map(|name| encode_name(name) + "/");
    names.fold("/".to_owned(), |path, name| path + &name)
}

impl DavEntry<'_> {
    /// Returns the value of a property of the standard as XML, or `None` if the entry does not have
    /// the property.
    fn value(&self, property: &str) -> Option<String> {
        let is_directory = self.kind == FileKind::Directory;
        match property {
            "displayname" => Some(display_name(self.name)),
            "resourcetype" if is_directory => Some("<D:collection/>".to_owned()),
            "resourcetype" | "supportedlock" => Some(String::new()),
            "getcontentlength" if !is_directory => self.size.map(|size| size.to_string()),
            "getlastmodified" => {
                let seconds = u64::try_from(self.modified?).ok()?;
                let time = SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(seconds))?;
                // The crate supports years up to 9999.
                let is_allowed = seconds < 253_402_300_800;
                is_allowed.then(|| httpdate::fmt_http_date(time))
            }
            _ => None,
        }
    }
}

/// Returns a name as XML text. Control characters, which XML does not allow, are replaced.
fn display_name(name: &[u8]) -> String {
    let name = String::from_utf8_lossy(name);
    let name = name.replace(|c: char| c.is_control() || c >= '\u{fffe}', "\u{fffd}");
    escape(name).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listed(names: &[(&str, &str)]) -> RequestedProperties {
        let names = names.iter().map(|(namespace, name)| PropertyName {
            namespace: (*namespace).to_owned(),
            name: (*name).to_owned(),
        });
        RequestedProperties::Listed(names.collect())
    }

    #[test]
    fn a_body_names_properties() {
        let parse = |body: &str| RequestedProperties::parse(body.as_bytes());
        assert_eq!(parse(" \n"), Ok(RequestedProperties::All));
        let all = r#"<?xml version="1.0"?><propfind xmlns="DAV:"><allprop/></propfind>"#;
        assert_eq!(parse(all), Ok(RequestedProperties::All));
        let names = r#"<D:propfind xmlns:D="DAV:"><D:propname/></D:propfind>"#;
        assert_eq!(parse(names), Ok(RequestedProperties::Names));
        let two = r#"<a:propfind xmlns:a="DAV:"><a:prop><a:resourcetype/><x xmlns="urn:q"><y/></x></a:prop></a:propfind>"#;
        let expected = listed(&[("DAV:", "resourcetype"), ("urn:q", "x")]);
        assert_eq!(parse(two), Ok(expected));
    }

    #[test]
    fn other_bodies_are_refused() {
        let many = "<x/>".repeat(limits::DAV_PROPERTIES + 1);
        for body in [
            "text",
            "<propfind/>",
            r#"<propfind xmlns="DAV:">"#,
            r#"<D:propfind xmlns:D="DAV:"><E:prop/></D:propfind>"#,
            "<!DOCTYPE x [<!ENTITY a 'b'>]><propfind xmlns='DAV:'><prop/></propfind>",
            &format!("<propfind xmlns='DAV:'><prop>{many}</prop></propfind>"),
            "\u{0}",
        ] {
            let refused = RequestedProperties::parse(body.as_bytes());
            assert_eq!(
                refused.map_err(|fault| fault.status.as_u16()),
                Err(400),
                "{body}"
            );
        }
    }

    /// Parts of bodies, which random bodies consist of.
    const PARTS: &[&str] = &[
        "<propfind xmlns='DAV:'>",
        "</propfind>",
        "<prop>",
        "</prop>",
        "<displayname/>",
        "<allprop/>",
        "<x:y xmlns:x='&lt;\"&gt;'/>",
        "<x:y/>",
        "<a&b/>",
        "<a\"b/>",
        "<1/>",
        "<!-- -- -->",
        "<![CDATA[",
        "]]>",
        "<?x?>",
        "&#0;",
        "&amp;",
        "<",
        ">",
        "\0",
        "\u{fffe}",
    ];

    proptest::proptest! {
        /// The answer to any body is XML, and names no more properties than the limit.
        #[test]
        fn any_body_has_an_answer_in_xml(
            parts in proptest::collection::vec(proptest::sample::select(PARTS), 0..12),
            is_whole in proptest::bool::ANY,
        ) {
            let body = parts.concat();
            let body = if is_whole {
                format!("<propfind xmlns='DAV:'><prop>{body}</prop></propfind>")
            } else {
                body
            };
            if let Ok(requested) = RequestedProperties::parse(body.as_bytes()) {
                let entry = DavEntry {
                    href: "/a",
                    name: b"<&\0",
                    kind: FileKind::File,
                    size: None,
                    modified: None,
                };
                let mut text = BEGINNING.to_owned();
                write_properties(&entry, &requested, &mut text);
                text.push_str(END);
                let mut reader = NsReader::from_str(&text);
                while reader.read_resolved_event().expect("XML").1 != Event::Eof {}
                if let RequestedProperties::Listed(names) = requested {
                    proptest::prop_assert!(names.len() <= limits::DAV_PROPERTIES);
                }
            }
        }
    }

    #[test]
    fn missing_properties_are_listed_as_missing() {
        let entry = DavEntry {
            href: "/a%20b",
            name: b"a <b>\n",
            kind: FileKind::File,
            size: Some(7),
            modified: Some(784_111_777),
        };
        let mut text = String::new();
        write_properties(&entry, &RequestedProperties::All, &mut text);
        for part in [
            "<D:href>/a%20b</D:href>",
            "<D:displayname>a &lt;b&gt;\u{fffd}</D:displayname>",
            "<D:getcontentlength>7</D:getcontentlength>",
            // The example of RFC 9110, section 5.6.7.
            "<D:getlastmodified>Sun, 06 Nov 1994 08:49:37 GMT</D:getlastmodified>",
            "<D:resourcetype></D:resourcetype>",
        ] {
            assert!(text.contains(part), "{part} in {text}");
        }
        assert!(!text.contains("404"));
        let mut text = String::new();
        let requested = listed(&[("DAV:", "getetag"), ("urn:q", "displayname")]);
        write_properties(&entry, &requested, &mut text);
        let missing = "<D:prop><getetag xmlns=\"DAV:\"/><displayname xmlns=\"urn:q\"/></D:prop>\
                       <D:status>HTTP/1.1 404 Not Found</D:status>";
        assert!(text.contains(missing), "{text}");
    }
}
