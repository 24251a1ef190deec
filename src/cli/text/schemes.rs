//! Rejects sources that look like a URL but are not supported.

use std::ffi::OsString;

use h5fs_reader::error::{Error, Result};
use h5fs_reader::source::location::Location;

/// URL schemes of supported sources, and schemes that users may try instead.
const KNOWN_SCHEMES: [&str; 12] = [
    "s3", "gs", "az", "abfs", "abfss", "hf", "http", "https", "pelican", "osdf", "ftp", "file",
];

/// Parses the location of a source.
///
/// # Errors
/// `Usage` for an unsupported URL, and for an empty text.
pub(in crate::cli) fn parse_location(text: OsString) -> Result<Location> {
    if text.is_empty() {
        return Err(Error::Usage("the name of a source is empty".to_owned()));
    }
    let location = Location::parse(text)?;
    let path = location.path().filter(|path| !path.exists());
    let scheme = path.and_then(|path| parse_scheme(path.to_str()?));
    match scheme {
        // The rest of the text may be a secret.
        Some(scheme) => Err(Error::Usage(format!(
            "{scheme}…: no such file, and not a URL that h5fs can read: these begin with s3://, \
             gs://, az://, hf://, http://, https://, pelican:// or osdf://"
        ))),
        None => Ok(location),
    }
}

/// Returns the scheme at the start of a text, with the `:` or `://` after it; RFC 3986, section
/// 3.1. Returns `None` if the text is probably not a URL.
fn parse_scheme(text: &str) -> Option<&str> {
    let end = text.find(':')?;
    let (scheme, rest) = text.split_at_checked(end)?;
    let is_of_scheme = |c: char| c.is_ascii_alphanumeric() || "+-.".contains(c);
    let is_scheme =
        scheme.starts_with(|c: char| c.is_ascii_alphabetic()) && scheme.chars().all(is_of_scheme);
    let is_word = KNOWN_SCHEMES
        .iter()
        .any(|word| scheme.eq_ignore_ascii_case(word));
    let is_meant = rest.starts_with("://") || is_word;
    let length = if rest.starts_with("://") {
        end + 3
    } else {
        end + 1
    };
    text.get(..length).filter(|_| is_scheme && is_meant)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unsupported_urls_are_rejected() {
        for (text, wanted) in [
            ("gcs://bucket/key", "gcs://"),
            ("gs:bucket/key", "gs:"),
            ("ftp://joe:sesame@host/a.h5", "ftp://"),
            ("http:/host/a.h5", "http:"),
            ("S3:bucket/key", "S3:"),
            ("file:///a.h5", "file://"),
            ("abfs+x.y-1://a", "abfs+x.y-1://"),
        ] {
            let told = parse_location(text.into()).unwrap_err().to_string();
            assert!(told.starts_with(&format!("{wanted}…: ")), "{told}");
            assert!(
                told.contains(
                    "s3://, gs://, az://, hf://, http://, https://, pelican:// or osdf://"
                ),
                "{told}"
            );
            assert!(!told.contains("sesame"), "{told}");
        }
        for text in [
            "c:/a.h5", "run:1.h5", "./gs://a", "a b://c", "1://a", ":", "a.h5",
        ] {
            assert!(
                parse_location(text.into()).unwrap().path().is_some(),
                "{text}"
            );
        }
        assert!(
            parse_location("s3://bucket/key".into())
                .unwrap()
                .url()
                .is_some()
        );
        assert!(parse_location("".into()).is_err());
    }
}
