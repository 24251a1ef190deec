//! The beginning of a file: the header line, comment lines, and the location of the tree's text
//! ("Low-level file layout": Header, Comments, Tree).
//!
//! Real files deviate from the specification in these points, and all of them are read:
//!
//! - padding before the tree, or before the blocks of a file without a tree
//! - versions other than 1.0.0 with the same layout
//! - trees without an end marker

use std::ops::Range;

use crate::asdf::block;
use crate::asdf::scan;
use crate::error::{Error, Result};
use crate::limits;
use crate::source::Source;
use crate::wire::{Count, Extent, to_u64};

const MAGIC: &[u8] = b"#ASDF";

/// The part of a file before its blocks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Header {
    /// The file format version in the header line.
    pub(crate) version: String,
    /// The range of the tree's text, up to the end of its end marker's line. `None` in a file
    /// without a tree.
    pub(crate) tree: Option<Range<u64>>,
    /// The error that explains why the tree's text is incomplete.
    pub(crate) error: Option<Error>,
    /// The offset at which the search for the first block begins.
    pub(crate) end: u64,
}

/// Returns whether a file starts with the first bytes of an ASDF file.
///
/// # Errors
/// `Io` if the source cannot be read.
pub(crate) fn is_asdf(source: &dyn Source) -> Result<bool> {
    let first = scan::read_truncated(source, 0..6)?;
    let rest = first.strip_prefix(MAGIC).unwrap_or_default();
    Ok(rest.first().is_some_and(|&byte| is_blank(byte)))
}

/// Reads the header and finds the tree.
///
/// # Errors
/// `Corrupt` if the file does not begin like an ASDF file, `Unsupported` for a major version over
/// 1.
pub(crate) fn read(source: &dyn Source) -> Result<Header> {
    let mut text = TextWindow::new(source);
    let version = version(first_line(text.read_from(0)?))?;
    let mut at = text.line_end(0)?;
    while text.read_from(at)?.first() == Some(&b'#') {
        at = text.line_end(at)?;
    }
    let at = text.skip_blanks(at)?;
    let mut header = Header {
        version,
        tree: None,
        error: None,
        end: at,
    };
    let rest = text.read_from(at)?;
    if rest.is_empty() || rest.starts_with(block::MAGIC) {
        return Ok(header);
    }
    let (end, error) = tree_end(&mut text, at)?;
    header.tree = Some(at..end);
    header.error = error;
    header.end = end;
    Ok(header)
}

/// Returns the part of `bytes` before its first line break or block.
fn first_line(bytes: &[u8]) -> &[u8] {
    let line = bytes.split(|&byte| byte == b'\n').next();
    let line = line.unwrap_or_default();
    let end = scan::find_in(line, block::MAGIC);
    line.get(..end.unwrap_or(line.len())).unwrap_or_default()
}

fn version(line: &[u8]) -> Result<String> {
    let text = String::from_utf8_lossy(line);
    let mut words = text.split_whitespace();
    let is_first = words.next().is_some_and(|word| word.as_bytes() == MAGIC);
    let version = words.next().unwrap_or_default();
    let mut numbers = version.split('.').map(str::parse::<u32>);
    match (numbers.next(), numbers.all(|number| number.is_ok())) {
        _ if !is_first => Err(Error::corrupt(
            "ASDF header: the #ASDF line is missing",
            None,
        )),
        (Some(Ok(0 | 1)), true) => Ok(version.to_owned()),
        (Some(Ok(_)), true) => Err(Error::unsupported(
            format!("ASDF file format version {version}"),
            None,
        )),
        _ => Err(Error::corrupt(
            "ASDF header: the version number is missing",
            None,
        )),
    }
}

/// Returns the file offset after the tree that begins at `start`, and the error if the tree's end
/// is invalid or the tree is too long.
fn tree_end(text: &mut TextWindow<'_>, start: u64) -> Result<(u64, Option<Error>)> {
    let (end, error) = find_tree_end(text, start)?;
    if end.minus_or_zero(start) > limits::TREE_BYTES {
        Ok((end, Some(too_long())))
    } else {
        Ok((end, error))
    }
}

/// Finds the end of the tree like `tree_end`. The search stops once it has passed
/// [`limits::TREE_BYTES`], but may return an end that is up to one piece after this limit.
fn find_tree_end(text: &mut TextWindow<'_>, start: u64) -> Result<(u64, Option<Error>)> {
    let mut searched = start;
    loop {
        text.read_from(searched)?;
        let (bytes, is_last) = (text.bytes_from(searched), text.is_last());
        let marker = find_after_end_marker(bytes, is_last);
        let block = scan::find_in(bytes, block::MAGIC);
        let end = text.end();
        match (marker, block) {
            (Some(marker), block) if block.is_none_or(|block| marker <= block) => {
                return Ok((offset_after(searched, marker), None));
            }
            (_, Some(block)) => {
                let end = offset_after(searched, block);
                return Ok((end, Some(missing_end_error(end))));
            }
            _ if is_last => return Ok((end, Some(missing_end_error(end)))),
            _ if end.minus_or_zero(start) >= limits::TREE_BYTES => {
                return Ok((end, Some(too_long())));
            }
            _ => searched = end.minus_or_zero(TextWindow::MIN_AVAILABLE).max(start),
        }
    }
}

fn too_long() -> Error {
    Error::limit("bytes of the tree's text", limits::TREE_BYTES)
}

fn missing_end_error(at: u64) -> Error {
    Error::corrupt("tree: its end marker (...) is missing", at)
}

/// Returns the index in `bytes` after the first line that contains only `...`, or `None` if there
/// is no such line. `whole` states that `bytes` reaches the end of the file.
fn find_after_end_marker(bytes: &[u8], whole: bool) -> Option<usize> {
    let mut from = 0;
    loop {
        let rest = bytes.get(from..)?;
        let place = from.checked_add(scan::find_in(rest, b"\n...")?)?;
        let after = place.checked_add(4)?;
        match bytes.get(after..)? {
            [b'\n', ..] => return after.checked_add(1),
            [b'\r', b'\n', ..] => return after.checked_add(2),
            [] if whole => return Some(after),
            _ => from = after,
        }
    }
}

fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r' | b'\n' | 0x0b | 0x0c)
}

/// A piece of the file from the current position on.
struct TextWindow<'a> {
    source: &'a dyn Source,
    /// The offset of the piece in the file.
    start: u64,
    bytes: Vec<u8>,
}

impl<'a> TextWindow<'a> {
    const PIECE: u64 = 64 << 10;

    /// Number of bytes that are available after every position, unless the file ends first. Enough
    /// for an end marker with its line breaks, or a block's magic bytes.
    const MIN_AVAILABLE: u64 = 8;

    fn new(source: &'a dyn Source) -> Self {
        TextWindow {
            source,
            start: 0,
            bytes: Vec::new(),
        }
    }

    /// Returns the file offset after the piece.
    fn end(&self) -> u64 {
        offset_after(self.start, self.bytes.len())
    }

    /// Returns whether the piece reaches the end of the file.
    fn is_last(&self) -> bool {
        self.end() >= self.source.length()
    }

    /// Returns the bytes of the piece from a file offset on.
    fn bytes_from(&self, at: u64) -> &[u8] {
        let skipped = at.checked_sub(self.start);
        let skipped = skipped.and_then(|skipped| usize::try_from(skipped).ok());
        skipped
            .and_then(|skipped| self.bytes.get(skipped..))
            .unwrap_or_default()
    }

    /// Returns the bytes of the file from the offset `at` on: more than `MIN_AVAILABLE` bytes,
    /// unless the file ends first. Reads another piece if necessary.
    fn read_from(&mut self, at: u64) -> Result<&[u8]> {
        let is_short =
            self.end() <= Extent::saturating(at, Self::MIN_AVAILABLE).end() && !self.is_last();
        if at < self.start || is_short {
            self.start = at;
            self.bytes = scan::read_truncated(self.source, Extent::saturating(at, Self::PIECE))?;
        }
        Ok(self.bytes_from(at))
    }

    /// Returns the file offset after the line that begins at `start`, including its line break. The
    /// magic bytes of a block also end the line.
    fn line_end(&mut self, start: u64) -> Result<u64> {
        let mut at = start;
        loop {
            check_search_limit(at)?;
            let bytes = self.read_from(at)?;
            let newline = bytes.iter().position(|&byte| byte == b'\n');
            let length = newline.map(Count::plus_one);
            let line = bytes.get(..length.unwrap_or(bytes.len()));
            let block = scan::find_in(line.unwrap_or_default(), block::MAGIC);
            match block.or(length) {
                Some(length) => return Ok(offset_after(at, length)),
                None if self.is_last() => return Ok(self.end()),
                None => at = self.end().minus_or_zero(to_u64(block::MAGIC.len())),
            }
        }
    }

    /// Returns the first file offset from `start` on whose byte is neither a blank nor zero.
    fn skip_blanks(&mut self, start: u64) -> Result<u64> {
        let mut at = start;
        loop {
            check_search_limit(at)?;
            let mut bytes = self.read_from(at)?.iter();
            match bytes.position(|&byte| !is_blank(byte) && byte != 0) {
                Some(blanks) => return Ok(offset_after(at, blanks)),
                None if self.is_last() => return Ok(self.end()),
                None => at = self.end(),
            }
        }
    }
}

/// Returns the file offset `bytes` bytes after `at`.
fn offset_after(at: u64, bytes: usize) -> u64 {
    Extent::saturating(at, to_u64(bytes)).end()
}

fn check_search_limit(at: u64) -> Result<()> {
    if at <= limits::TREE_BYTES {
        Ok(())
    } else {
        Err(Error::limit("bytes before the tree", limits::TREE_BYTES))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::memory::MemorySource;
    use crate::testing::processor_time;

    fn header(bytes: &[u8]) -> Result<Header> {
        read(&MemorySource::new(bytes.to_vec()))
    }

    /// Splits a file: returns its tree's text, and its bytes after the header.
    fn tree_and_rest(bytes: &[u8]) -> (String, Vec<u8>) {
        let header = header(bytes).unwrap();
        let usize = |at: u64| usize::try_from(at).unwrap();
        let tree = header.tree.unwrap_or(0..0);
        let text = bytes[usize(tree.start)..usize(tree.end)].to_vec();
        let rest = bytes[usize(header.end)..].to_vec();
        (String::from_utf8(text).unwrap(), rest)
    }

    #[test]
    fn the_tree_ends_after_its_end_marker() {
        let (tree, rest) =
            tree_and_rest(b"#ASDF 1.0.0\n#ASDF_STANDARD 1.6.0\n%YAML 1.1\n---\na: ...b\n...\n  ");
        assert_eq!(tree, "%YAML 1.1\n---\na: ...b\n...\n");
        assert_eq!(rest, b"  ");
        let (tree, _) = tree_and_rest(b"#ASDF 1.0.0\r\n%YAML 1.1\r\n---\r\na: b\r\n...\r\n");
        assert_eq!(tree, "%YAML 1.1\r\n---\r\na: b\r\n...\r\n");
        let (tree, _) = tree_and_rest(b"#ASDF 1.0.0\n \0%YAML 1.1\n--- 1\n...");
        assert_eq!(tree, "%YAML 1.1\n--- 1\n...");
    }

    #[test]
    fn a_file_may_have_no_tree() {
        assert_eq!(header(b"#ASDF 1.0.0").unwrap().tree, None);
        let (tree, rest) = tree_and_rest(b"#ASDF 1.0.0\n# note\xd3BLK...");
        assert_eq!((tree.as_str(), &rest[..]), ("", &b"\xd3BLK..."[..]));
    }

    #[test]
    fn a_tree_without_end_ends_at_the_first_block() {
        let header = header(b"#ASDF 1.0.0\n%YAML 1.1\n---\na: 1\n\xd3BLK\n...\n").unwrap();
        assert_eq!(header.tree, Some(12..31));
        assert_eq!(
            header.error,
            Some(Error::corrupt("tree: its end marker (...) is missing", 31))
        );
    }

    #[test]
    fn versions_up_to_1_are_read() {
        assert_eq!(header(b"#ASDF\t0.1.0 \n").unwrap().version, "0.1.0");
        assert!(matches!(
            header(b"#ASDF 2.0.0\n"),
            Err(Error::Unsupported { .. })
        ));
        for bad in [&b""[..], b"#ASDF", b"#ASDF\n", b"#ASDF foo\n", b"SIMPLE"] {
            assert!(matches!(header(bad), Err(Error::Corrupt { .. })), "{bad:?}");
        }
    }

    /// Checks that half a million comments are not searched for a block once for each comment.
    #[test]
    fn many_comments_are_read_once() {
        let mut bytes = b"#ASDF 1.0.0\n".to_vec();
        bytes.extend(b"#\n".repeat(500_000));
        bytes.extend_from_slice(b"# \xd3BLK");
        let before = processor_time();
        let found = header(&bytes).unwrap();
        assert_eq!((found.tree, found.end), (None, 1_000_014));
        assert!(processor_time() - before < std::time::Duration::from_secs(5));
    }

    #[test]
    fn a_block_across_a_read_ends_a_comment() {
        for length in 65_530..65_540 {
            let mut bytes = b"#ASDF 1.0.0\n#".to_vec();
            bytes.resize(length, b'x');
            bytes.extend_from_slice(b"\xd3BLK\n...\n");
            let found = header(&bytes).unwrap();
            let length = to_u64(length);
            assert_eq!((found.tree, found.end), (None, length));
        }
    }

    #[test]
    fn a_marker_across_a_read_is_found() {
        for length in 65_525..65_540 {
            let mut bytes = b"#ASDF 1.0.0\n%YAML 1.1\n---\n".to_vec();
            bytes.resize(length, b' ');
            bytes.extend_from_slice(b"\n...\r\nrest");
            assert_eq!(header(&bytes).unwrap().end, to_u64(length) + 6);
        }
    }
}
