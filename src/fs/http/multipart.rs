//! Several ranges in one answer: `multipart/byteranges`; RFC 9110, section 14.6.

use std::ops::Range;

use crate::fs::http::content::Part;

/// Stands between the parts. Bytes in which it stands do no harm: the parts tell their ranges.
const BOUNDARY: &str = "h5fs-c7e1a5d26b0f4d38";

/// A range as the field `Content-Range` has it.
pub(super) fn content_range(range: &Range<u64>, length: u64) -> String {
    let last = range.end.saturating_sub(1);
    format!("bytes {}-{last}/{length}", range.start)
}

/// The kind of such an answer, and its parts: these ranges of a content of `length` bytes and of
/// this `kind`.
pub(super) fn parts(ranges: &[Range<u64>], length: u64, kind: &str) -> (String, Vec<Part>) {
    let mut parts = Vec::with_capacity(2 * ranges.len() + 1);
    for range in ranges {
        let content_range = content_range(range, length);
        let head = format!(
            "\r\n--{BOUNDARY}\r\nContent-Type: {kind}\r\nContent-Range: {content_range}\r\n\r\n"
        );
        parts.push(Part::Text(head.into_bytes().into()));
        parts.push(Part::Range(range.clone()));
    }
    parts.push(Part::Text(
        format!("\r\n--{BOUNDARY}--\r\n").into_bytes().into(),
    ));
    (format!("multipart/byteranges; boundary={BOUNDARY}"), parts)
}
