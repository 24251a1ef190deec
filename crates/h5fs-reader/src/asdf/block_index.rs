//! The block index at a file's end ("Low-level file layout": Block index).

use crate::asdf::scan;
use crate::error::Result;
use crate::limits;
use crate::source::Source;
use crate::wire::{Count, Extent, to_u64};

/// The line before the block index, without its line break.
pub(crate) const MAGIC: &[u8; 17] = b"#ASDF BLOCK INDEX";

/// Returns the block offsets that the last block index of the file lists. Returns `None` if the
/// file lacks an index, or if the index is not a list of increasing integers. Also returns `None`
/// if the index lists more blocks than [`limits::BLOCKS`].
///
/// # Errors
/// `Io` if the source cannot be read.
pub(crate) fn read(source: &dyn Source) -> Result<Option<Vec<u64>>> {
    read_in_last(source, limits::BLOCK_INDEX_SEARCH)
}

/// Reads the block index like [`read`], but searches only the last `bytes` bytes of the file for
/// it.
///
/// # Errors
/// Fails as [`read`] does.
pub(crate) fn read_in_last(source: &dyn Source, bytes: u64) -> Result<Option<Vec<u64>>> {
    let length = source.length();
    let range = length.minus_or_zero(bytes)..length;
    let Some(at) = scan::find_last(source, &range, MAGIC)? else {
        return Ok(None);
    };
    let behind = Extent::from_range(at, length).skip(to_u64(MAGIC.len()));
    let text = scan::read_truncated(source, behind)?;
    let text = text.split(|&byte| byte == 0).next().unwrap_or_default();
    Ok(std::str::from_utf8(text).ok().and_then(offsets))
}

/// Parses the numbers of a YAML document that contains only a list, in flow or block style. Returns
/// `None` if the document contains anything else, or if the numbers are not increasing or too many.
/// A composed YAML tree would take far more memory than the numbers.
fn offsets(text: &str) -> Option<Vec<u64>> {
    let text = text.split_once("---").map_or(text, |(_, list)| list);
    let text = text.split("\n...").next().unwrap_or(text).trim_ascii();
    let mut offsets = Vec::new();
    match text.strip_prefix('[') {
        Some(list) => {
            let list = list.strip_suffix(']')?.trim_ascii_end();
            let mut items = list.strip_suffix(',').unwrap_or(list).split(',');
            items.try_for_each(|item| push(&mut offsets, item))?;
        }
        None => {
            let mut items = text
                .lines()
                .map(|line| line.trim_ascii().strip_prefix("- "));
            items.try_for_each(|item| push(&mut offsets, item?))?;
        }
    }
    Some(offsets)
}

fn push(offsets: &mut Vec<u64>, item: &str) -> Option<()> {
    let offset = item.trim_ascii().parse().ok()?;
    let is_next = offsets.last().is_none_or(|&last| last < offset);
    let is_taken = is_next && offsets.len() < limits::BLOCKS;
    is_taken.then(|| offsets.push(offset))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::memory::MemorySource;

    fn index(text: &str) -> Option<Vec<u64>> {
        read(&MemorySource::new(text.as_bytes().to_vec())).unwrap()
    }

    #[test]
    fn lists_in_either_style_are_read() {
        let yaml = "#ASDF BLOCK INDEX\n%YAML 1.1\n---";
        assert_eq!(
            index(&format!("{yaml} [2043, 16340,]\n...\n\0\0")),
            Some(vec![2043, 16340])
        );
        assert_eq!(
            index(&format!("{yaml}\r\n- 7\r\n- 8\r\n...\r\n")),
            Some(vec![7, 8])
        );
        assert_eq!(
            index(&format!("{yaml} [\n  7,\n  8\n]\n")),
            Some(vec![7, 8])
        );
        for bad in [
            " [8, 7]", " [7, 7]", " []", " - 7\n8", " [7] [8]", " [1.5]", " ['7']", " {a: 7}",
            " [-1]", " [7",
        ] {
            assert_eq!(index(&format!("{yaml}{bad}\n...\n")), None, "{bad}");
        }
        assert_eq!(index("no index"), None);
    }
}
