//! Responses with several byte ranges: `multipart/byteranges`; RFC 9110, section 14.6.

use std::ops::Range;

use h5fs_reader::error::Result;

use crate::http::content::ContentPart;
use crate::http::random;

/// Returns the value of the header field `Content-Range` for a range of a content of `length`
/// bytes.
pub(super) fn content_range(range: &Range<u64>, length: u64) -> String {
    let last = range.end.saturating_sub(1);
    format!("bytes {}-{last}/{length}", range.start)
}

/// Returns the media type and the parts of a response with the byte ranges `ranges`. The content
/// has `length` bytes and the media type `kind`. The boundary is random, so that no content can
/// contain it.
///
/// # Errors
/// Fails if the operating system cannot provide random numbers.
pub(super) fn multipart_parts(
    ranges: &[Range<u64>],
    length: u64,
    kind: &str,
) -> Result<(String, Vec<ContentPart>)> {
    let boundary = random::random_word()?;
    let mut parts = Vec::with_capacity(2 * ranges.len() + 1);
    for range in ranges {
        let content_range = content_range(range, length);
        let head = format!(
            "\r\n--{boundary}\r\nContent-Type: {kind}\r\nContent-Range: {content_range}\r\n\r\n"
        );
        parts.push(ContentPart::Text(head.into_bytes().into()));
        parts.push(ContentPart::Range(range.clone()));
    }
    parts.push(ContentPart::Text(
        format!("\r\n--{boundary}--\r\n").into_bytes().into(),
    ));
    let kind = format!("multipart/byteranges; boundary={boundary}");
    Ok((kind, parts))
}
