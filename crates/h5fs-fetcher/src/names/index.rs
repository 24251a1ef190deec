//! Index pages that web servers generate for directories: nginx, Apache, lighttpd, Caddy, Python's
//! `http.server` and others.
//!
//! No standard defines these pages. Each page has a link for each name, and the name is the last
//! part of the link. Links to directories end with `/`. A page counts as an index page in three
//! cases:
//!
//! - its title or its first heading says that it is an index
//! - its title or its first heading contains the path of the directory
//! - it links to the parent directory
//!
//! Sizes in these pages are rounded, and are not parsed.

use crate::fetch_error::FetchError;
use crate::names::href::{BaseDirectory, HrefTarget};
use crate::names::json;
use crate::names::page::{NameSet, NamesPage, invalid_page};

/// Starts of the titles and headings of index pages.
const INDEX_TITLES: [&str; 4] = ["index of", "directory listing", "directory:", "listing of"];

/// Parses the index page of the directory `base`. Returns `None` if the page is not an index page.
///
/// # Errors
/// Fails for an incomplete page, which a proxy may have truncated. The caller can retry.
pub(super) fn parse_page(
    body: &[u8],
    base: &BaseDirectory,
) -> Result<Option<NamesPage>, FetchError> {
    let text = String::from_utf8_lossy(body);
    let text = text.trim_start_matches('\u{feff}').trim_start();
    if text.starts_with(['[', '{']) {
        return json::parse_page(text);
    }
    let mut names = NameSet::default();
    let mut is_index = false;
    let mut html = HtmlTokenizer {
        rest: text,
        is_whole: false,
    };
    while let Some(tag) = html.next_tag() {
        match tag.name.as_str() {
            "title" | "h1" => is_index |= is_index_title(&html.take_text_until(&tag.name), base),
            "script" | "style" => drop(html.take_text_until(&tag.name)),
            _ => {}
        }
        let Some(reference) = tag.reference.filter(|_| tag.name == "a") else {
            continue;
        };
        match base.resolve(&reference) {
            HrefTarget::Child { name, is_directory } => names.add(name, is_directory)?,
            HrefTarget::Parent => is_index = true,
            HrefTarget::Itself | HrefTarget::Elsewhere => {}
        }
    }
    match is_index {
        false => Ok(None),
        true if html.is_whole => Ok(Some(names.into_page())),
        true => Err(invalid_page()),
    }
}

/// Returns whether the body of a response is a login page: whether it has a password field.
pub(super) fn is_login_page(body: &[u8]) -> bool {
    let text = String::from_utf8_lossy(body).to_ascii_lowercase();
    let text = text.trim_start_matches('\u{feff}').trim_start();
    let is_page = text.starts_with("<!") || text.starts_with("<html");
    let mut fields = text.split("<input").skip(1);
    is_page
        && fields.any(|field| {
            let field = field.split('>').next().unwrap_or_default();
            let plain = field.replace(['"', '\'', ' '], "");
            plain.contains("type=password")
        })
}

/// Returns whether a title or heading shows that the page is the index of the directory `base`.
fn is_index_title(text: &str, base: &BaseDirectory) -> bool {
    let text = text.trim().to_lowercase();
    let path = base.path();
    let path = String::from_utf8_lossy(&path).to_lowercase();
    INDEX_TITLES.iter().any(|title| text.starts_with(title))
        || !path.is_empty() && text.contains(&path)
}

/// A tokenizer of HTML tags. The page may be malformed in any way.
struct HtmlTokenizer<'a> {
    rest: &'a str,
    /// Whether the end tag of the page has been found.
    is_whole: bool,
}

struct Tag {
    /// The name of the tag in lower case. The name of an end tag starts with `/`.
    name: String,
    /// The value of the attribute `href`.
    reference: Option<String>,
}

impl<'a> HtmlTokenizer<'a> {
    /// Returns the next tag, or `None` at the end of the page.
    fn next_tag(&mut self) -> Option<Tag> {
        loop {
            let (_, behind) = self.rest.split_once('<')?;
            if let Some(comment) = behind.strip_prefix("!--") {
                self.rest = comment.split_once("-->")?.1;
                continue;
            }
            let is_of_name = |c: char| c.is_ascii_alphanumeric() || c == '/';
            let end = behind.find(|c| !is_of_name(c)).unwrap_or(behind.len());
            let (name, attributes) = behind.split_at(end);
            self.rest = attributes;
            if name.eq_ignore_ascii_case("/html") {
                self.is_whole = attributes.trim_start().starts_with('>');
                return None;
            }
            let reference = self.skip_attributes();
            if !name.is_empty() {
                let name = name.to_ascii_lowercase();
                return Some(Tag { name, reference });
            }
        }
    }

    /// Skips to the end of a tag. Returns the value of the attribute `href`.
    fn skip_attributes(&mut self) -> Option<String> {
        let mut reference = None;
        loop {
            let is_between = |c: char| c.is_ascii_whitespace() || c == '/';
            let rest = self.rest.trim_start_matches(is_between);
            let end = rest.find(|c: char| c.is_ascii_whitespace() || "=>/".contains(c));
            let (name, behind) = rest.split_at(end.unwrap_or(rest.len()));
            let behind = behind.trim_start();
            if let Some(value) = behind.strip_prefix('=') {
                let value = self.take_value(value.trim_start());
                if name.eq_ignore_ascii_case("href") && reference.is_none() {
                    reference = Some(decode_character_references(value));
                }
                continue;
            }
            self.rest = behind;
            if name.is_empty() || behind.is_empty() {
                self.rest = behind.strip_prefix('>').unwrap_or(behind);
                return reference;
            }
        }
    }

    /// Returns the attribute value at the start of `text`, and moves the tokenizer to the end of
    /// the value.
    fn take_value(&mut self, text: &'a str) -> &'a str {
        let quote = text.chars().next().filter(|c| matches!(c, '"' | '\''));
        let (value, behind) = match quote {
            Some(quote) => {
                let quoted = text.get(1..).unwrap_or_default();
                quoted.split_once(quote).unwrap_or((quoted, ""))
            }
            None => {
                let end = text.find(|c: char| c.is_ascii_whitespace() || c == '>');
                text.split_at(end.unwrap_or(text.len()))
            }
        };
        self.rest = behind;
        value
    }

    /// Returns the text up to the end tag `name`, without the tags within the text.
    fn take_text_until(&mut self, name: &str) -> String {
        let end = format!("</{name}");
        let lower = |text: &str| text.to_ascii_lowercase();
        // Returns the rest of the page if the end tag is missing.
        let at = self
            .rest
            .char_indices()
            .filter(|(_, c)| *c == '<')
            .find(|(at, _)| {
                let here = self.rest.get(*at..at + end.len());
                here.is_some_and(|here| lower(here) == end)
            });
        let (text, behind) = self.rest.split_at(at.map_or(self.rest.len(), |(at, _)| at));
        self.rest = behind;
        let mut pieces = text.split('<');
        let first = pieces.next().unwrap_or_default().to_owned();
        let others = pieces.filter_map(|piece| piece.split_once('>'));
        decode_character_references(&others.fold(first, |all, (_, text)| all + text))
    }
}

/// Decodes the character references that index pages contain, such as `&amp;`.
fn decode_character_references(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, behind)) = rest.split_once('&') {
        out += before;
        let referred = behind.split_once(';').and_then(|(name, behind)| {
            let character = parse_character_reference(name)?;
            Some((character, behind))
        });
        rest = if let Some((character, behind)) = referred {
            out.push(character);
            behind
        } else {
            out.push('&');
            behind
        };
    }
    out + rest
}

fn parse_character_reference(name: &str) -> Option<char> {
    match name {
        "amp" => Some('&'),
        "lt" => Some('<'),
        "gt" => Some('>'),
        "quot" => Some('"'),
        "apos" => Some('\''),
        _ => {
            let number = name.strip_prefix('#')?;
            let hexadecimal = number.strip_prefix(['x', 'X']);
            let code = match hexadecimal {
                Some(digits) => u32::from_str_radix(digits, 16),
                None => number.parse(),
            };
            char::from_u32(code.ok()?)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits;
    use h5fs_reader::source::remote::message::ListedType;

    fn read(text: &str, uri: &str) -> Result<Option<Vec<String>>, FetchError> {
        let base = BaseDirectory::from_uri(&uri.parse().unwrap());
        let page = parse_page(text.as_bytes(), &base)?;
        let shown = |page: NamesPage| {
            let names = page.names.into_iter().map(|name| {
                let end = if name.entry_type == ListedType::Prefix {
                    "/"
                } else {
                    ""
                };
                format!("{}{end}", String::from_utf8_lossy(&name.name))
            });
            names.collect()
        };
        Ok(page.map(shown))
    }

    fn names(text: &str, uri: &str) -> Vec<String> {
        read(text, uri)
            .unwrap()
            .unwrap_or_else(|| panic!("no index page: {text}"))
    }

    /// An index page of nginx's autoindex module, written from the module's source.
    const NGINX: &str = "<html>\r\n<head><title>Index of /data/</title></head>\r\n<body>\r\n\
        <h1>Index of /data/</h1><hr><pre><a href=\"../\">../</a>\r\n\
        <a href=\"2026/\">2026/</a>                  26-Nov-2026 10:00                   -\r\n\
        <a href=\"run%201.h5\">run 1.h5</a>          26-Nov-2026 10:00                2048\r\n\
        </pre><hr></body>\r\n</html>\r\n";

    /// An index page of Apache's mod_autoindex with its fancy table and its sort links, written
    /// from the module's documentation.
    const APACHE: &str = "<!DOCTYPE HTML PUBLIC \"-//W3C//DTD HTML 3.2 Final//EN\">\n<html>\n \
        <head>\n  <title>Index of /data</title>\n </head>\n <body>\n<h1>Index of /data</h1>\n\
        <table><tr><th><a href=\"?C=N;O=D\">Name</a></th><th><a href=\"?C=S;O=A\">Size</a></th>\
        </tr>\n<tr><td><img src=\"/icons/back.gif\"></td><td><a href=\"/\">Parent Directory</a>\
        </td></tr>\n<tr><td><a href=\"a&amp;b.h5\">a&amp;b.h5</a></td><td align=\"right\">1.2K\
        </td></tr>\n<tr><td><a href=\"sub/\">sub/</a></td><td>-</td></tr>\n</table>\n\
        <address>Apache/2.4 Server at <a href=\"mailto:joe@host\">host</a></address>\n\
        </body></html>\n";

    /// An index page of lighttpd. This page and the next ones are written from the templates of the
    /// servers.
    const LIGHTTPD: &str = "<!DOCTYPE html><html><head><title>Index of /data/</title>\
        <style>a { color: red } /* <a href=\"no.h5\"> */</style></head><body>\
        <table><tr class=d><td class=n><a href=\"../\">..</a>/</td></tr>\
        <tr><td class=n><a href='a.h5'>a.h5</a></td><td class=s>2.0K</td></tr></table>\
        <script>var x = '<a href=\"no.h5\">';</script></body></html>";
    const XROOTD: &str = "<html><head><title>/data</title></head><body><h1>Listing of: /data</h1>\
        <a href=\"https://host/data/a.h5\">a.h5</a><A HREF=/data/sub/>sub</A></body></html>";

    #[test]
    fn the_names_of_an_index_page_are_its_links() {
        assert_eq!(names(NGINX, "http://h/data/"), ["2026/", "run 1.h5"]);
        assert_eq!(names(APACHE, "http://h/data/"), ["a&b.h5", "sub/"]);
        assert_eq!(names(LIGHTTPD, "http://h/data/"), ["a.h5"]);
        assert_eq!(names(XROOTD, "https://host/data/"), ["a.h5", "sub/"]);
    }

    #[test]
    fn a_page_that_is_cut_anywhere_has_no_names() {
        for whole in [NGINX, APACHE, LIGHTTPD] {
            let end = whole.rfind("</html>").unwrap() + "</html>".len();
            for cut in 0..end {
                let page = read(&whole[..cut], "http://h/data/");
                assert!(!matches!(page, Ok(Some(_))), "{cut} of {end}");
            }
            assert!(matches!(read(&whole[..end], "http://h/data/"), Ok(Some(_))));
        }
    }

    #[test]
    fn other_html_pages_are_not_index_pages() {
        for page in [
            "",
            "<html><head><title>Sign in</title></head><body><a href=\"a.h5\">a</a></body></html>",
            "<html><body><h1>Welcome</h1><a href=\"/data/a.h5\">a</a></body></html>",
            "<?xml version=\"1.0\"?><ListBucketResult></ListBucketResult>",
            "some text",
            "<",
            "<a",
            "<a href",
            "<a href=",
            "<a href='",
            "<!--",
            "<title>",
        ] {
            assert_eq!(read(page, "http://h/data/"), Ok(None), "{page}");
        }
    }

    #[test]
    fn hostile_links_are_not_names() {
        let links = [
            "../x",
            "/etc/passwd",
            "//other/data/a.h5",
            "http://other/data/a.h5",
            "..%2fx",
            "a%2fb",
            "%2e%2e/",
            "a.h5?x=y",
            "javascript:alert(1)",
            "a/b",
            "&#46;&#x2e;/x",
        ];
        let links: String = links
            .map(|link| format!("<a href=\"{link}\">x</a>"))
            .concat();
        let odd = "<a title=\">\" href=\"b.h5\">b</a><a href=c.h5 href=\"../d\">c</a><a\nhref = \
                   'e.h5' >e</a><a name=f.h5>f</a><ahref=\"g.h5\">g</a><link href=\"h.css\">\
                   <!-- <a href=\"i.h5\"> --><a href=\"j.h5";
        let page = format!("<h1>Index of /data</h1>{links}{odd}");
        assert_eq!(read(&page, "http://h/data/"), Err(invalid_page()));
        let page = format!("<h1>Index of /data</h1>{links}{odd}\">j</a></html>");
        assert_eq!(
            names(&page, "http://h/data/"),
            ["b.h5", "c.h5", "e.h5", "j.h5"]
        );
        let long = "x".repeat(limits::KEY_BYTES + 1);
        let page = format!("<h1>Index of /</h1><a href=\"{long}\">x</a></html>");
        assert_eq!(names(&page, "http://h/"), Vec::<String>::new());
    }

    #[test]
    fn the_number_of_names_is_limited() {
        let link = |number: usize| format!("<a href={number}>");
        let page = |count: usize| {
            let links: String = (0..count).map(link).collect();
            read(
                &format!("<title>Index of /</title>{links}</html>"),
                "http://h/",
            )
        };
        let all = page(limits::LISTING_NAMES).unwrap().unwrap();
        assert_eq!(all.len(), limits::LISTING_NAMES);
        assert!(page(limits::LISTING_NAMES + 1).is_err());
    }
}
