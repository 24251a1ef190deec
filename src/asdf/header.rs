//! The beginning of a file: the header line, comment lines, and where the tree's text stands
//! ("Low-level file layout": Header, Comments, Tree).
//!
//! Real files have padding where the specification knows none (before the tree, before the blocks
//! of a file without a tree), versions other than 1.0.0 with the same layout, and trees without
//! their end marker. All of these are read.

use std::ops::Range;

use crate::asdf::block;
use crate::asdf::scan;
use crate::error::{Error, Result};
use crate::limits;
use crate::source::Source;
use crate::wire::to_u64;

const MAGIC: &[u8] = b"#ASDF";

/// What stands before the blocks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Header {
    /// The file format version, as the header line has it.
    pub version: String,
    /// Where the tree's text is, to the end of the line of its end marker; none in a file without a tree.
    pub tree: Option<Range<u64>>,
    /// Why the tree's text is not a whole one.
    pub error: Option<Error>,
    /// Where the search for the first block begins.
    pub end: u64,
}

/// Whether a file calls itself ASDF, by its first bytes.
///
/// # Errors
/// `Io` as the source cannot be read.
pub fn is_asdf(source: &dyn Source) -> Result<bool> {
    let first = scan::piece(source, 0..6)?;
    let rest = first.strip_prefix(MAGIC).unwrap_or_default();
    Ok(rest.first().is_some_and(|&byte| is_blank(byte)))
}

/// Reads the header and finds the tree.
///
/// # Errors
/// `Corrupt` where the file does not begin as ASDF files do, `Unsupported` for a major version
/// over 1.
pub fn read(source: &dyn Source) -> Result<Header> {
    let mut text = Growing::new(source);
    let first = text.line(0)?;
    let version = version(text.get(first.clone()))?;
    let mut at = first.end;
    while text.get(at..at.saturating_add(1)) == b"#" {
        at = text.line(at)?.end;
    }
    while text
        .byte(at)?
        .is_some_and(|byte| is_blank(byte) || byte == 0)
    {
        at = at.saturating_add(1);
    }
    let mut header = Header {
        version,
        tree: None,
        error: None,
        end: to_u64(at),
    };
    if text.byte(at)?.is_none() || text.starts_with(at, block::MAGIC)? {
        return Ok(header);
    }
    let (end, error) = tree_end(&mut text, at)?;
    header.tree = Some(to_u64(at)..to_u64(end));
    header.error = error;
    header.end = to_u64(end);
    Ok(header)
}

fn version(line: &[u8]) -> Result<String> {
    let text = String::from_utf8_lossy(line);
    let mut words = text.split_whitespace();
    let is_first = words.next().is_some_and(|word| word.as_bytes() == MAGIC);
    let version = words.next().unwrap_or_default();
    let mut numbers = version.split('.').map(str::parse::<u32>);
    match (numbers.next(), numbers.all(|number| number.is_ok())) {
        _ if !is_first => Err(Error::corrupt("ASDF header: no #ASDF line", 0)),
        (Some(Ok(0 | 1)), true) => Ok(version.to_owned()),
        (Some(Ok(_)), true) => Err(Error::unsupported(
            format!("ASDF file format version {version}"),
            0,
        )),
        _ => Err(Error::corrupt("ASDF header: no version number", 0)),
    }
}

/// The end of the tree that begins at `start`, and why it is not a proper end.
fn tree_end(text: &mut Growing<'_>, start: usize) -> Result<(usize, Option<Error>)> {
    let (end, error) = any_tree_end(text, start)?;
    match to_u64(end.saturating_sub(start)) > limits::TREE_BYTES {
        true => Ok((end, Some(too_long()))),
        false => Ok((end, error)),
    }
}

/// The same, however long the tree is.
fn any_tree_end(text: &mut Growing<'_>, start: usize) -> Result<(usize, Option<Error>)> {
    let mut searched = start;
    loop {
        let bytes = text.get(searched..usize::MAX);
        let marker = end_marker(bytes, text.is_whole());
        let block = scan::first(bytes, block::MAGIC);
        match (marker, block) {
            (Some(end), block) if block.is_none_or(|block| end <= block) => {
                return Ok((searched.saturating_add(end), None));
            }
            (_, Some(block)) => {
                let end = searched.saturating_add(block);
                return Ok((end, Some(no_end(end))));
            }
            _ => {}
        }
        // A marker and its line break are seven bytes at most, and may be cut by the end of what is here.
        searched = text.length().saturating_sub(8).max(start);
        if text.is_whole() {
            return Ok((text.length(), Some(no_end(text.length()))));
        }
        if to_u64(text.length().saturating_sub(start)) >= limits::TREE_BYTES {
            return Ok((text.length(), Some(too_long())));
        }
        text.grow()?;
    }
}

fn too_long() -> Error {
    Error::limit("bytes of the tree's text", limits::TREE_BYTES)
}

fn no_end(at: usize) -> Error {
    Error::corrupt("tree: its end marker (...) is missing", to_u64(at))
}

/// The end of the first line that holds `...` alone. `whole`: nothing follows `bytes`.
fn end_marker(bytes: &[u8], whole: bool) -> Option<usize> {
    let mut from = 0;
    loop {
        let rest = bytes.get(from..)?;
        let place = from.checked_add(scan::first(rest, b"\n...")?)?;
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

/// The beginning of the file, as much of it as was asked for.
struct Growing<'a> {
    source: &'a dyn Source,
    bytes: Vec<u8>,
}

impl<'a> Growing<'a> {
    const FIRST: u64 = 64 << 10;

    fn new(source: &'a dyn Source) -> Self {
        Growing {
            source,
            bytes: Vec::new(),
        }
    }

    fn length(&self) -> usize {
        self.bytes.len()
    }

    fn is_whole(&self) -> bool {
        to_u64(self.bytes.len()) >= self.source.length()
    }

    /// Reads on, so that there is twice as much.
    fn grow(&mut self) -> Result<()> {
        let length = to_u64(self.bytes.len());
        let end = length.saturating_mul(2).max(Self::FIRST);
        let more = scan::piece(self.source, length..end)?;
        self.bytes.extend_from_slice(&more);
        Ok(())
    }

    /// What is here of a range.
    fn get(&self, range: Range<usize>) -> &[u8] {
        let end = range.end.min(self.bytes.len());
        self.bytes.get(range.start..end).unwrap_or_default()
    }

    /// The byte at a place, which is read if need be; none at the end of the file.
    fn byte(&mut self, at: usize) -> Result<Option<u8>> {
        self.reach(at.saturating_add(1))?;
        Ok(self.bytes.get(at).copied())
    }

    fn starts_with(&mut self, at: usize, pattern: &[u8]) -> Result<bool> {
        self.reach(at.saturating_add(pattern.len()))?;
        Ok(self.get(at..usize::MAX).starts_with(pattern))
    }

    fn reach(&mut self, end: usize) -> Result<()> {
        while self.length() < end && !self.is_whole() {
            self.bounded()?;
            self.grow()?;
        }
        Ok(())
    }

    /// The line that begins at `start`, its line break included; a block ends it too.
    fn line(&mut self, start: usize) -> Result<Range<usize>> {
        loop {
            let bytes = self.get(start..usize::MAX);
            let block = scan::first(bytes, block::MAGIC).unwrap_or(usize::MAX);
            let newline = bytes.iter().position(|&byte| byte == b'\n');
            match newline.filter(|&newline| newline < block) {
                Some(newline) => {
                    let length = newline.saturating_add(1);
                    self.reach(start.saturating_add(length).saturating_add(1))?;
                    return Ok(start..start.saturating_add(length));
                }
                None if block != usize::MAX => return Ok(start..start.saturating_add(block)),
                None if self.is_whole() => return Ok(start..self.length()),
                None => {
                    self.bounded()?;
                    self.grow()?;
                }
            }
        }
    }

    fn bounded(&self) -> Result<()> {
        match to_u64(self.length()) <= limits::TREE_BYTES {
            true => Ok(()),
            false => Err(Error::limit("bytes before the tree", limits::TREE_BYTES)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::memory::MemorySource;

    fn header(bytes: &[u8]) -> Result<Header> {
        read(&MemorySource::new(bytes.to_vec()))
    }

    /// The tree's text and the rest of the file.
    fn cut(bytes: &[u8]) -> (String, Vec<u8>) {
        let header = header(bytes).unwrap();
        let usize = |at: u64| usize::try_from(at).unwrap();
        let tree = header.tree.unwrap_or(0..0);
        let text = bytes[usize(tree.start)..usize(tree.end)].to_vec();
        let rest = bytes[usize(header.end)..].to_vec();
        (String::from_utf8(text).unwrap(), rest)
    }

    #[test]
    fn the_tree_ends_with_the_line_of_its_marker() {
        let (tree, rest) =
            cut(b"#ASDF 1.0.0\n#ASDF_STANDARD 1.6.0\n%YAML 1.1\n---\na: ...b\n...\n  ");
        assert_eq!(tree, "%YAML 1.1\n---\na: ...b\n...\n");
        assert_eq!(rest, b"  ");
        let (tree, _) = cut(b"#ASDF 1.0.0\r\n%YAML 1.1\r\n---\r\na: b\r\n...\r\n");
        assert_eq!(tree, "%YAML 1.1\r\n---\r\na: b\r\n...\r\n");
        let (tree, _) = cut(b"#ASDF 1.0.0\n \0%YAML 1.1\n--- 1\n...");
        assert_eq!(tree, "%YAML 1.1\n--- 1\n...");
    }

    #[test]
    fn a_file_may_have_no_tree() {
        assert_eq!(header(b"#ASDF 1.0.0").unwrap().tree, None);
        let (tree, rest) = cut(b"#ASDF 1.0.0\n# note\xd3BLK...");
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

    #[test]
    fn a_marker_across_a_read_is_found() {
        let mut bytes = b"#ASDF 1.0.0\n%YAML 1.1\n---\n".to_vec();
        bytes.resize(65_533, b' ');
        bytes.extend_from_slice(b"\n...\nrest");
        assert_eq!(header(&bytes).unwrap().end, 65_538);
    }
}
