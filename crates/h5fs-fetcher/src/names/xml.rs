//! Parses XML documents from servers. The size of a document is bounded, and an incomplete document
//! is rejected.

use quick_xml::events::{BytesRef, BytesStart, Event};
use quick_xml::{Reader, XmlVersion};

use crate::fetch_error::FetchError;
use crate::limits;
use crate::names::page::invalid_page;

/// A visitor of the elements of an XML document. The `path` of an element consists of the local
/// names of its ancestors, without the root, and of the element's own local name.
pub(super) trait ElementVisitor {
    /// Handles the start of an element.
    ///
    /// # Errors
    /// Fails if the document must be rejected.
    fn begin(&mut self, _path: &[&str], _attributes: &XmlAttributes) -> Result<(), FetchError> {
        Ok(())
    }

    /// Handles the end of an element. `text` is the text after its last child element.
    ///
    /// # Errors
    /// Fails if the document must be rejected.
    fn end(&mut self, path: &[&str], text: &str) -> Result<(), FetchError>;
}

/// The attributes of an XML element, by their local names.
pub(super) struct XmlAttributes(Vec<(String, String)>);

impl XmlAttributes {
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        let found = self.0.iter().find(|(own, _)| own == name);
        found.map(|(_, value)| value.as_str())
    }
}

/// The state of the parser of an XML document.
struct XmlParser<'a> {
    /// The required name of the root element.
    root: &'a str,
    elements: &'a mut dyn ElementVisitor,
    /// The local names of the open elements. The root is the first one.
    path: Vec<String>,
    /// Whether the root was closed. No element may follow.
    is_closed: bool,
    text: String,
}

/// Parses a document whose root element has the name `root`, and passes its elements to the visitor
/// `elements`.
///
/// # Errors
/// Fails if the document is incomplete or has another root, because a proxy may have truncated it.
/// The caller can retry.
pub(super) fn parse_document(
    body: &[u8],
    root: &str,
    elements: &mut dyn ElementVisitor,
) -> Result<(), FetchError> {
    let text = std::str::from_utf8(body).map_err(|_| invalid_page())?;
    let mut reader = Reader::from_str(text.trim_start_matches('\u{feff}'));
    let mut document = XmlParser {
        root,
        elements,
        path: Vec::new(),
        is_closed: false,
        text: String::new(),
    };
    loop {
        match reader.read_event().map_err(|_| invalid_page())? {
            Event::Start(element) => document.begin(&element)?,
            Event::End(_) => document.end()?,
            Event::Empty(element) => {
                document.begin(&element)?;
                document.end()?;
            }
            Event::Text(text) => document.append_text(&text.xml10_content())?,
            Event::CData(text) => document.append_text(&text.xml10_content())?,
            Event::GeneralRef(name) => {
                let character = parse_character_reference(&name).ok_or_else(invalid_page)?;
                document.append_text(character.encode_utf8(&mut [0; 4]))?;
            }
            Event::DocType(_) => return Err(invalid_page()),
            Event::Eof if document.is_closed => return Ok(()),
            Event::Eof => return Err(invalid_page()),
            Event::Comment(_) | Event::Decl(_) | Event::PI(_) => {}
        }
    }
}

impl XmlParser<'_> {
    fn begin(&mut self, element: &BytesStart<'_>) -> Result<(), FetchError> {
        if self.path.len() >= limits::XML_DEPTH {
            return Err(FetchError::permanent(
                "the server's listing is nested too deeply",
            ));
        }
        let name = element.local_name();
        let name: &str = name.as_ref();
        if self.is_closed || self.path.is_empty() && name != self.root {
            return Err(invalid_page());
        }
        self.path.push(name.to_owned());
        self.text.clear();
        let attributes = parse_attributes(element)?;
        let path: Vec<&str> = self.path.iter().skip(1).map(String::as_str).collect();
        self.elements.begin(&path, &attributes)
    }

    /// Appends text to the current element. Rejects text outside the root element.
    fn append_text(&mut self, text: &str) -> Result<(), FetchError> {
        if self.path.is_empty() && !text.trim().is_empty() {
            return Err(invalid_page());
        }
        self.text += text;
        Ok(())
    }

    fn end(&mut self) -> Result<(), FetchError> {
        let path: Vec<&str> = self.path.iter().skip(1).map(String::as_str).collect();
        self.elements.end(&path, &self.text)?;
        self.path.pop();
        self.is_closed = self.path.is_empty();
        self.text.clear();
        Ok(())
    }
}

fn parse_attributes(element: &BytesStart<'_>) -> Result<XmlAttributes, FetchError> {
    let pairs = element.attributes().map(|attribute| {
        let attribute = attribute.map_err(|_| invalid_page())?;
        let value = attribute.normalized_value(XmlVersion::Implicit1_0);
        let value = value.map_err(|_| invalid_page())?.into_owned();
        let name = attribute.key.local_name();
        let name: &str = name.as_ref();
        Ok((name.to_owned(), value))
    });
    pairs.collect::<Result<_, _>>().map(XmlAttributes)
}

/// Decodes a character reference such as `&amp;` or `&#38;`. Returns `None` for an unknown name or
/// an invalid number.
fn parse_character_reference(reference: &BytesRef<'_>) -> Option<char> {
    match &**reference {
        "amp" => Some('&'),
        "lt" => Some('<'),
        "gt" => Some('>'),
        "quot" => Some('"'),
        "apos" => Some('\''),
        _ => reference.resolve_char_ref().ok().flatten(),
    }
}
