//! The block index at a file's end ("Low-level file layout": Block index).

use crate::asdf::scan;
use crate::asdf::yaml::compose::compose;
use crate::asdf::yaml::resolve::{self, CoreTag};
use crate::asdf::yaml::{Document, Index};
use crate::error::Result;
use crate::limits;
use crate::source::Source;
use crate::wire::to_u64;

/// The line before the index, without its line break.
pub const MAGIC: &[u8; 17] = b"#ASDF BLOCK INDEX";

/// The offsets that the last block index of the file lists; `None` where there is none, or it is
/// no list of growing whole numbers.
///
/// # Errors
/// `Io` as the source cannot be read.
pub fn read(source: &dyn Source) -> Result<Option<Vec<u64>>> {
    let length = source.length();
    let range = length.saturating_sub(limits::BLOCK_INDEX_SEARCH)..length;
    let Some(at) = scan::find_last(source, &range, MAGIC)? else {
        return Ok(None);
    };
    let start = at.saturating_add(to_u64(MAGIC.len()));
    let text = scan::piece(source, start..length)?;
    let end = text.iter().position(|&byte| byte == 0);
    let text = text.get(..end.unwrap_or(text.len())).unwrap_or_default();
    let document = compose(text.trim_ascii_start(), start).ok();
    Ok(document.and_then(|document| offsets(&document)))
}

fn offsets(document: &Document) -> Option<Vec<u64>> {
    let items = document.items(Index::ROOT)?;
    let offset = |&item: &Index| match document.core_tag(item)? {
        CoreTag::Int => u64::try_from(resolve::integer(document.text(item)?)?).ok(),
        _ => None,
    };
    let offsets: Vec<u64> = items.iter().map(offset).collect::<Option<_>>()?;
    offsets
        .is_sorted_by(|one, next| one < next)
        .then_some(offsets)
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
        for bad in [" [8, 7]", " [1.5]", " ['7']", " {a: 7}", " [-1]", " [7"] {
            assert_eq!(index(&format!("{yaml}{bad}\n...\n")), None, "{bad}");
        }
        assert_eq!(index("no index"), None);
    }
}
