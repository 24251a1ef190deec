//! A page of names of S3's protocol: the answer of `ListObjectsV2`.

use quick_xml::Reader;
use quick_xml::events::{BytesRef, Event};

use crate::cli::fetcher::address::decoded;
use crate::cli::fetcher::trouble::Trouble;
use crate::limits;
use crate::source::remote::message::{ListedName, ObjectState};

/// The names directly beneath a prefix, as far as a page goes.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Page {
    /// Sorted by their bytes.
    pub(super) names: Vec<ListedName>,
    /// Asks for the next page; empty at the end.
    pub(super) next: String,
}

/// What has been read of a document.
#[derive(Default)]
struct Document {
    /// The names of the elements around the place that is read.
    path: Vec<String>,
    text: String,
    entries: Vec<Entry>,
    /// Of the object that is read.
    key: String,
    state: ObjectState,
    next: String,
    is_encoded: bool,
    is_truncated: bool,
}

/// A key or a common prefix as it stands in the document, and the state of an object.
struct Entry {
    key: String,
    state: Option<ObjectState>,
}

impl Page {
    /// Reads the page of the names that begin with `prefix`, which itself is none of them.
    ///
    /// # Errors
    /// `Other` for what is no such page, or has more than its bounds.
    pub(super) fn parse(body: &[u8], prefix: &[u8]) -> Result<Self, Trouble> {
        let wrong = || Trouble::other("the server's listing cannot be read");
        let text = std::str::from_utf8(body).map_err(|_| wrong())?;
        let mut reader = Reader::from_str(text);
        let mut document = Document::default();
        loop {
            match reader.read_event().map_err(|_| wrong())? {
                Event::Start(element) => document.begin(element.local_name().as_ref())?,
                Event::End(_) => document.end()?,
                Event::Text(text) => document.text += &text.xml10_content(),
                Event::CData(text) => document.text += &text.xml10_content(),
                Event::GeneralRef(name) => document.text.push(character(&name).ok_or_else(wrong)?),
                Event::DocType(_) => return Err(wrong()),
                Event::Eof => break,
                Event::Empty(_) | Event::Comment(_) | Event::Decl(_) | Event::PI(_) => {}
            }
        }
        document.page(prefix)
    }
}

impl Document {
    fn begin(&mut self, name: &str) -> Result<(), Trouble> {
        if self.path.len() >= limits::XML_DEPTH {
            return Err(Trouble::other("the server's listing is nested too deeply"));
        }
        self.path.push(name.to_owned());
        self.text.clear();
        Ok(())
    }

    fn end(&mut self) -> Result<(), Trouble> {
        let path: Vec<&str> = self.path.iter().skip(1).map(String::as_str).collect();
        let text = self.text.trim();
        match path[..] {
            ["EncodingType"] => self.is_encoded = text == "url",
            ["IsTruncated"] => self.is_truncated = text == "true",
            ["NextContinuationToken"] if text.len() > limits::KEY_BYTES => {
                return Err(Trouble::other(
                    "the server's place in its listing is too long",
                ));
            }
            ["NextContinuationToken"] => text.clone_into(&mut self.next),
            // Spaces are part of a key.
            ["Contents", "Key"] | ["CommonPrefixes", "Prefix"] => self.key.clone_from(&self.text),
            ["Contents", "Size"] => {
                let wrong = |_| Trouble::other("the server lists an object without a size");
                self.state.length = text.parse().map_err(wrong)?;
            }
            ["Contents", "ETag"] => self.state.etag = text.as_bytes().to_vec(),
            ["Contents", "LastModified"] => {
                let time = text.parse::<jiff::Timestamp>();
                self.state.modified = time.map_or(0, jiff::Timestamp::as_second);
            }
            ["Contents"] => {
                let state = std::mem::take(&mut self.state);
                self.add(Some(state))?;
            }
            ["CommonPrefixes"] => self.add(None)?,
            _ => {}
        }
        self.path.pop();
        self.text.clear();
        Ok(())
    }

    fn add(&mut self, state: Option<ObjectState>) -> Result<(), Trouble> {
        let is_long = state
            .as_ref()
            .is_some_and(|state| state.etag.len() > limits::ETAG_BYTES);
        if is_long || self.entries.len() >= limits::LISTING_NAMES {
            return Err(Trouble::other("the server's listing is too long"));
        }
        let key = std::mem::take(&mut self.key);
        self.entries.push(Entry { key, state });
        Ok(())
    }

    fn page(self, prefix: &[u8]) -> Result<Page, Trouble> {
        let is_encoded = self.is_encoded;
        let name = |entry: Entry| {
            let key = match is_encoded {
                true => decoded(&entry.key.replace('+', " ")),
                false => entry.key.into_bytes(),
            };
            let name = key.strip_prefix(prefix)?;
            let name = match entry.state {
                None => name.strip_suffix(b"/")?,
                Some(_) => name,
            };
            let has_room = (1..=limits::KEY_BYTES).contains(&name.len());
            let is_plain = has_room && !name.contains(&b'/') && !name.contains(&0);
            is_plain.then(|| ListedName {
                name: name.to_vec(),
                state: entry.state,
            })
        };
        let mut names: Vec<_> = self.entries.into_iter().filter_map(name).collect();
        names.sort_by(|a, b| a.name.cmp(&b.name));
        let next = match self.is_truncated {
            true if self.next.is_empty() => {
                return Err(Trouble::other("the server's listing has no end"));
            }
            true => self.next,
            false => String::new(),
        };
        Ok(Page { names, next })
    }
}

/// The character of a reference: `&amp;`, `&#38;`.
fn character(reference: &BytesRef<'_>) -> Option<char> {
    match &**reference {
        "amp" => Some('&'),
        "lt" => Some('<'),
        "gt" => Some('>'),
        "quot" => Some('"'),
        "apos" => Some('\''),
        _ => reference.resolve_char_ref().ok().flatten(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As the documentation of Amazon S3 shows an answer of `ListObjectsV2`.
    const PAGE: &str = r#"<?xml version="1.0" encoding="UTF-8"?>
<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">
  <Name>example-bucket</Name><Prefix>photos%2F2006%2F</Prefix><KeyCount>4</KeyCount>
  <MaxKeys>1000</MaxKeys><Delimiter>%2F</Delimiter><EncodingType>url</EncodingType>
  <IsTruncated>true</IsTruncated>
  <NextContinuationToken>1ueGcxLPRx1Tr/XYExHnhbYLgveDs2J/wm36Hy4vbOwM=</NextContinuationToken>
  <Contents><Key>photos%2F2006%2F</Key><Size>0</Size></Contents>
  <Contents><Key>photos%2F2006%2Fa+b%26c.h5</Key>
    <LastModified>2009-10-12T17:50:30.000Z</LastModified>
    <ETag>&quot;fba9dede5f27731c9771645a39863328&quot;</ETag><Size>434234</Size>
    <StorageClass>STANDARD</StorageClass></Contents>
  <CommonPrefixes><Prefix>photos%2F2006%2FFebruary%2F</Prefix></CommonPrefixes>
</ListBucketResult>"#;

    #[test]
    fn a_page_has_names_and_prefixes() {
        let page = Page::parse(PAGE.as_bytes(), b"photos/2006/").unwrap();
        let object = ObjectState {
            length: 434_234,
            etag: b"\"fba9dede5f27731c9771645a39863328\"".to_vec(),
            // `date -u -d 2009-10-12T17:50:30Z +%s`
            modified: 1_255_369_830,
        };
        let name = |name: &[u8], state| ListedName {
            name: name.to_vec(),
            state,
        };
        let names = vec![name(b"February", None), name(b"a b&c.h5", Some(object))];
        let next = "1ueGcxLPRx1Tr/XYExHnhbYLgveDs2J/wm36Hy4vbOwM=".to_owned();
        assert_eq!(page, Page { names, next });
    }

    #[test]
    fn a_page_that_is_wrong_is_refused() {
        let deep = "<a>".repeat(limits::XML_DEPTH + 1);
        let entry = "<Contents><Key>k</Key><Size>1</Size></Contents>";
        let long = format!("<L>{}</L>", entry.repeat(limits::LISTING_NAMES + 1));
        for wrong in [
            "<L><Contents>",
            "<L></M>",
            "<L><Contents><Key>&bomb;</Key></Contents></L>",
            "<!DOCTYPE L [<!ENTITY bomb \"b\">]><L></L>",
            "<L><IsTruncated>true</IsTruncated></L>",
            "<L><Contents><Key>k</Key><Size>-1</Size></Contents></L>",
            &deep,
            &long,
        ] {
            let page = Page::parse(wrong.as_bytes(), b"");
            let shown = &wrong[..wrong.len().min(60)];
            assert!(page.is_err() || wrong == "<L><Contents>", "{shown}");
        }
        assert!(Page::parse(b"\xff", b"").is_err());
    }

    #[test]
    fn names_of_no_file_are_left_out() {
        let of = |keys: &[&str]| {
            let one = |key: &&str| format!("<Contents><Key>{key}</Key><Size>1</Size></Contents>");
            let text: String = keys.iter().map(one).collect();
            let page = Page::parse(format!("<L>{text}</L>").as_bytes(), b"d/").unwrap();
            page.names
                .into_iter()
                .map(|name| name.name)
                .collect::<Vec<_>>()
        };
        assert_eq!(of(&["d/", "d/a", "e/b", "d/sub/c"]), [b"a"]);
        assert_eq!(of(&["d/%2F", "d/ a "]), [&b" a "[..], b"%2F"]);
    }
}
