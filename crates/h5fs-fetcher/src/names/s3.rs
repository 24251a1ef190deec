//! Parses a page of a bucket's listing in the S3 protocol: the response of `ListObjectsV2`.

use h5fs_reader::source::location::percent::percent_decode;
use h5fs_reader::source::remote::state::ObjectState;

use crate::fetch_error::FetchError;
use crate::limits;
use crate::names::keys::ListedKeys;
use crate::names::page::{NamesPage, invalid_page};
use crate::names::xml::{self, ElementVisitor};

/// The part of a `ListObjectsV2` response that has been parsed so far.
#[derive(Default)]
struct S3Listing {
    keys: ListedKeys,
    /// The prefix that the response repeats, or an empty text.
    prefix: String,
    /// Number of keys and common prefixes that the response says it contains.
    stated_count: usize,
    /// Key of the current object.
    key: String,
    state: ObjectState,
    has_length: bool,
    next: String,
    is_encoded: bool,
    is_truncated: bool,
}

/// Parses one page of the keys that start with `prefix`.
///
/// # Errors
/// Fails as [`parse_store_page`](crate::names::parse_store_page) does.
pub(super) fn parse_page(body: &[u8], prefix: &[u8]) -> Result<NamesPage, FetchError> {
    let mut document = S3Listing::default();
    xml::parse_document(body, "ListBucketResult", &mut document)?;
    document.into_page(prefix)
}

impl ElementVisitor for S3Listing {
    fn end(&mut self, path: &[&str], whole: &str) -> Result<(), FetchError> {
        let text = whole.trim();
        match path {
            ["EncodingType"] => self.is_encoded = text == "url",
            ["Prefix"] => whole.clone_into(&mut self.prefix),
            ["KeyCount"] => self.stated_count = text.parse().map_err(|_| invalid_page())?,
            ["IsTruncated"] => self.is_truncated = parse_bool(text).ok_or_else(invalid_page)?,
            ["NextContinuationToken"] if text.len() > limits::KEY_BYTES => {
                return Err(FetchError::permanent(
                    "the continuation marker of the server's listing is too long",
                ));
            }
            ["NextContinuationToken"] => text.clone_into(&mut self.next),
            // Spaces are part of a key.
            ["Contents", "Key"] | ["CommonPrefixes", "Prefix"] => whole.clone_into(&mut self.key),
            ["Contents", "Size"] => {
                self.state.length = text.parse().map_err(|_| invalid_page())?;
                self.has_length = true;
            }
            ["Contents", "ETag"] => {
                self.state.etag = ObjectState::parse_entity_tag(text.as_bytes());
            }
            ["Contents", "LastModified"] => {
                let time = text.parse::<jiff::Timestamp>();
                self.state.modified = time.map_or(0, jiff::Timestamp::as_second);
            }
            ["Contents"] => {
                if !std::mem::take(&mut self.has_length) {
                    return Err(invalid_page());
                }
                let state = std::mem::take(&mut self.state);
                self.keys.add(std::mem::take(&mut self.key), Some(state))?;
            }
            ["CommonPrefixes"] => self.keys.add(std::mem::take(&mut self.key), None)?,
            _ => {}
        }
        Ok(())
    }
}

impl S3Listing {
    fn into_page(self, prefix: &[u8]) -> Result<NamesPage, FetchError> {
        // Some servers count only the keys. So more entries than reported are accepted, but fewer
        // are not.
        if self.stated_count > self.keys.len() {
            return Err(invalid_page());
        }
        let plain = |text: &str| {
            if self.is_encoded {
                percent_decode(&text.replace('+', " "))
            } else {
                text.as_bytes().to_vec()
            }
        };
        // Some servers encode only the keys.
        let said = &self.prefix;
        if !said.is_empty() && said.as_bytes() != prefix && plain(said) != prefix {
            return Err(invalid_page());
        }
        // Some servers send an empty marker on the last page.
        if self.is_truncated == self.next.is_empty() {
            return Err(invalid_page());
        }
        self.keys.into_page(prefix, plain, self.next)
    }
}

/// Parses a boolean of XML Schema. Some servers capitalize it.
fn parse_bool(text: &str) -> Option<bool> {
    match text.to_ascii_lowercase().as_str() {
        "true" | "1" => Some(true),
        "false" | "0" => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use h5fs_reader::source::remote::message::{ListedName, ListedType};

    /// A response of `ListObjectsV2` from the documentation of Amazon S3.
    const PAGE: &str = r#"<?xml version="1.0" encoding="UTF-8"?>
<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">
  <Name>example-bucket</Name><Prefix>photos%2F2006%2F</Prefix><KeyCount>3</KeyCount>
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
        let page = parse_page(PAGE.as_bytes(), b"photos/2006/").unwrap();
        let object = ObjectState {
            length: 434_234,
            etag: b"\"fba9dede5f27731c9771645a39863328\"".to_vec(),
            // Output of `date -u -d 2009-10-12T17:50:30Z +%s`.
            modified: 1_255_369_830,
        };
        let name = |name: &[u8], named| ListedName {
            name: name.to_vec(),
            entry_type: named,
        };
        let names = vec![
            name(b"February", ListedType::Prefix),
            name(b"a b&c.h5", ListedType::Object(object)),
        ];
        let next = "1ueGcxLPRx1Tr/XYExHnhbYLgveDs2J/wm36Hy4vbOwM=".to_owned();
        assert_eq!(page, NamesPage { names, next });
    }

    /// The pages are written from the sources and the documentation of other servers.
    #[test]
    fn pages_of_other_servers_are_read() {
        let root = "<ListBucketResult xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">";
        let minio = format!(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n{root}<Name>b</Name><Prefix>d/</Prefix>\
             <KeyCount>2</KeyCount><MaxKeys>1000</MaxKeys><Delimiter>/</Delimiter><IsTruncated>false\
             </IsTruncated><Contents><Key>d/a+b.h5</Key><LastModified>2009-10-12T17:50:30.123Z\
             </LastModified><ETag>&#34;1-2&#34;</ETag><Size>7</Size><StorageClass>STANDARD\
             </StorageClass></Contents><CommonPrefixes><Prefix>d/sub/</Prefix></CommonPrefixes>\
             <EncodingType>url</EncodingType></ListBucketResult>"
        );
        let ceph = format!(
            "{root}<Name>b</Name><Prefix>d/</Prefix><MaxKeys>1000</MaxKeys><Delimiter>/</Delimiter>\
             <IsTruncated>false</IsTruncated><EncodingType>url</EncodingType><Contents><Key>d/a%20b.h5\
             </Key><LastModified>2009-10-12T17:50:30.123Z</LastModified><ETag>&quot;1-2&quot;</ETag>\
             <Size>7</Size><StorageClass>STANDARD</StorageClass><Owner><ID>u</ID><DisplayName>U\
             </DisplayName></Owner><Type>Normal</Type></Contents><CommonPrefixes><Prefix>d/sub/\
             </Prefix></CommonPrefixes><KeyCount>2</KeyCount></ListBucketResult>"
        );
        let r2 = format!(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>{root}<Name>b</Name><Contents><Key>d%2Fa%20b.h5\
             </Key><Size>7</Size><LastModified>2009-10-12T17:50:30.123Z</LastModified><ETag>&quot;1-2\
             &quot;</ETag><StorageClass>STANDARD</StorageClass></Contents><CommonPrefixes><Prefix>\
             d%2Fsub%2F</Prefix></CommonPrefixes><IsTruncated>false</IsTruncated><Prefix>d%2F</Prefix>\
             <Delimiter>%2F</Delimiter><MaxKeys>1000</MaxKeys><EncodingType>url</EncodingType><KeyCount>2\
             </KeyCount></ListBucketResult>"
        );
        let google = "<?xml version='1.0' encoding='UTF-8'?><ListBucketResult \
             xmlns='http://doc.s3.amazonaws.com/2006-03-01'><Name>b</Name><Prefix>d/</Prefix>\
             <KeyCount>2</KeyCount><Delimiter>/</Delimiter><IsTruncated>false</IsTruncated><Contents>\
             <Key>d/a b.h5</Key><Generation>1360887697105000</Generation><MetaGeneration>1\
             </MetaGeneration><LastModified>2009-10-12T17:50:30.123Z</LastModified><ETag>\"1-2\"</ETag>\
             <Size>7</Size></Contents><CommonPrefixes><Prefix>d/sub/</Prefix></CommonPrefixes>\
             </ListBucketResult>";
        let object = ListedType::Object(ObjectState {
            length: 7,
            etag: b"\"1-2\"".to_vec(),
            modified: 1_255_369_830,
        });
        for text in [&minio, &ceph, &r2, google] {
            let names = parse_page(text.as_bytes(), b"d/").unwrap().names;
            let [file, directory] = &names[..] else {
                panic!("{names:?}");
            };
            assert_eq!(
                (&file.name[..], &file.entry_type),
                (&b"a b.h5"[..], &object),
                "{text}"
            );
            assert_eq!(
                (&directory.name[..], &directory.entry_type),
                (&b"sub"[..], &ListedType::Prefix)
            );
        }
    }

    fn list(content: &str) -> String {
        format!("<ListBucketResult>{content}</ListBucketResult>")
    }

    #[test]
    fn a_page_that_is_wrong_is_refused() {
        let deep = "<a>".repeat(limits::XML_DEPTH + 1);
        let entry = "<Contents><Key>k</Key><Size>1</Size></Contents>";
        let long = list(&entry.repeat(limits::LISTING_NAMES + 1));
        let lists = [
            "<Contents>",
            "<Contents><Key>&bomb;</Key></Contents>",
            "<IsTruncated>true</IsTruncated>",
            "<Contents><Key>k</Key><Size>-1</Size></Contents>",
            "<Contents><Key>k</Key></Contents>",
            "<Contents><Size>1</Size></Contents>",
            "<CommonPrefixes></CommonPrefixes>",
            // A server that counts only the keys never reports more entries than it sends.
            "<KeyCount>2</KeyCount><Contents><Key>k</Key><Size>1</Size></Contents>",
        ];
        let lists = lists.map(list);
        let others = [
            "",
            " ",
            "<ListBucketResult></M>",
            "<!DOCTYPE L [<!ENTITY bomb \"b\">]><ListBucketResult></ListBucketResult>",
            "<!DOCTYPE html><html><head><title>Busy</title></head><body></body></html>",
            "<html></html>",
            "try again",
            "<Error><Code>SlowDown</Code></Error>",
            "<L><Contents><Key>k</Key><Size>1</Size></Contents></L>",
            "<ListBucketResult></ListBucketResult>more",
            "<ListBucketResult></ListBucketResult><ListBucketResult></ListBucketResult>",
            "<ListBucketResult/><ListBucketResult></ListBucketResult>",
            "before<ListBucketResult></ListBucketResult>",
        ];
        let others = others.map(str::to_owned);
        for wrong in [&lists[..], &others, &[deep, long]].concat() {
            let page = parse_page(wrong.as_bytes(), b"");
            assert!(page.is_err(), "{}", &wrong[..wrong.len().min(60)]);
        }
        assert!(parse_page(b"\xff", b"").is_err());
    }

    #[test]
    fn a_page_that_is_cut_anywhere_is_refused() {
        let cut = |end: &usize| parse_page(&PAGE.as_bytes()[..*end], b"photos/2006/").is_ok();
        let accepted: Vec<_> = (0..PAGE.len()).filter(cut).collect();
        assert!(accepted.is_empty(), "{} of {}", accepted.len(), PAGE.len());
    }

    #[test]
    fn a_page_without_names_is_valid() {
        for empty in [
            "<ListBucketResult/>",
            &list("<KeyCount>0</KeyCount>"),
            &list("\n"),
        ] {
            assert_eq!(
                parse_page(empty.as_bytes(), b""),
                Ok(NamesPage::default()),
                "{empty}"
            );
        }
    }

    #[test]
    fn a_page_states_whether_it_is_the_last() {
        let next = |text: &str| parse_page(list(text).as_bytes(), b"").map(|page| page.next);
        let token = "<NextContinuationToken>t</NextContinuationToken>";
        let cut = |text: &str| format!("<IsTruncated>{text}</IsTruncated>");
        for word in ["true", "True", "TRUE", "1"] {
            assert_eq!(next(&(cut(word) + token)).as_deref(), Ok("t"), "{word}");
            assert!(next(&cut(word)).is_err(), "{word}");
        }
        for word in ["false", "False", "0"] {
            assert_eq!(next(&cut(word)).as_deref(), Ok(""), "{word}");
            let empty = cut(word) + "<NextContinuationToken/>";
            assert_eq!(next(&empty).as_deref(), Ok(""), "{word}");
            assert!(next(&(cut(word) + token)).is_err(), "{word}");
        }
        for word in ["yes", "", "2"] {
            assert!(next(&cut(word)).is_err() && next(&(cut(word) + token)).is_err());
        }
        assert!(next(token).is_err());
        assert_eq!(next("<NextContinuationToken/>").as_deref(), Ok(""));
    }

    /// A cache that ignores the query sends such a page. So does a server that encodes keys but
    /// does not declare the encoding.
    #[test]
    fn a_page_with_another_prefix_is_rejected() {
        let key = |key: &str| format!("<Contents><Key>{key}</Key><Size>1</Size></Contents>");
        let prefix = |prefix: &str| format!("<Prefix>{prefix}</Prefix>");
        let of = |text: &str| parse_page(list(text).as_bytes(), b"d/ru");
        for wrong in [
            key("e/run.h5"),
            key("d%2Frun.h5"),
            key("d/a.h5"),
            key("run.h5"),
            format!("<CommonPrefixes>{}</CommonPrefixes>", prefix("d/")),
            prefix("d/"),
            prefix("d%2Fru"),
            prefix("e/") + &key("d/run.h5"),
        ] {
            assert_eq!(of(&wrong), Err(invalid_page()), "{wrong}");
        }
        let encoded = "<EncodingType>url</EncodingType>";
        for right in [
            prefix("d/ru"),
            prefix("d%2Fru") + encoded,
            // Some servers encode only the keys.
            prefix("d/ru") + encoded,
            prefix(""),
        ] {
            let names = of(&(right.clone() + &key("d/run.h5"))).unwrap().names;
            assert_eq!(names.len(), 1, "{right}");
            assert_eq!(names[0].name, b"run.h5", "{right}");
        }
    }

    #[test]
    fn invalid_file_names_are_skipped() {
        let of = |keys: &[&str]| {
            let one = |key: &&str| format!("<Contents><Key>{key}</Key><Size>1</Size></Contents>");
            let text: String = keys.iter().map(one).collect();
            let page = parse_page(list(&text).as_bytes(), b"d/").unwrap();
            page.names
                .into_iter()
                .map(|name| name.name)
                .collect::<Vec<_>>()
        };
        assert_eq!(of(&["d/", "d/a", "d/sub/c"]), [b"a"]);
        assert_eq!(of(&["d/%2F", "d/ a "]), [&b" a "[..], b"%2F"]);
    }
}
