//! The parts of Zstandard frames (RFC 8878, 3.1): the frames, where there are several and each says
//! how long its content is.

use std::sync::Arc;

use crate::asdf::compression::encoded::Encoded;
use crate::asdf::compression::stream::part_list::PartList;
use crate::asdf::scan;
use crate::error::Result;
use crate::limits;

/// Bytes of a frame's header at most: magic number, descriptor, window, dictionary, content size.
const HEADER: u64 = 18;

/// The parts, or `None` where the stream does not consist of such frames.
///
/// # Errors
/// `Io` as the stream cannot be read.
pub fn parts(encoded: &Encoded) -> Result<Option<PartList>> {
    let mut walk = Walk {
        encoded,
        at: encoded.offset,
        end: encoded.offset.saturating_add(encoded.stored),
        blocks: 0,
    };
    let mut parts = PartList::new(encoded.decoded);
    let no_head = Arc::default();
    while walk.at < walk.end {
        let start = walk.at;
        let until = start.saturating_add(HEADER).min(walk.end);
        let first = scan::piece(&*encoded.source, start..until)?;
        if let [0x50..=0x5f, 0x2a, 0x4d, 0x18, a, b, c, d, ..] = *first {
            let length = u32::from_le_bytes([a, b, c, d]);
            walk.at = start.saturating_add(8).saturating_add(length.into());
            walk.blocks = walk.blocks.saturating_add(1);
            if walk.blocks > limits::BLOCK_CHUNKS {
                return Ok(None);
            }
            continue;
        }
        let Some(header) = Header::read(&first) else {
            return Ok(None);
        };
        // One frame: the way over its blocks would be for nothing.
        if header.content >= encoded.decoded || walk.frame(&header)?.is_none() {
            return Ok(None);
        }
        let stored = walk.at.saturating_sub(start);
        if parts
            .append(start, stored, header.content, &no_head)
            .is_none()
        {
            return Ok(None);
        }
    }
    Ok(Some(parts))
}

/// A frame's header that says how long the content is.
struct Header {
    length: u64,
    content: u64,
    has_sum: bool,
}

impl Header {
    fn read(bytes: &[u8]) -> Option<Self> {
        let rest = bytes.strip_prefix(&[0x28, 0xb5, 0x2f, 0xfd])?;
        let (&descriptor, rest) = rest.split_first()?;
        let is_single = descriptor & 0b10_0000 != 0;
        let dictionary = [0, 1, 2, 4].get(usize::from(descriptor & 0b11)).copied()?;
        let before = usize::from(!is_single).checked_add(dictionary)?;
        let size = match descriptor.wrapping_shr(6) {
            0 => usize::from(is_single),
            1 => 2,
            2 => 4,
            _ => 8,
        };
        let field = rest.get(before..before.checked_add(size)?)?;
        let mut content = [0; 8];
        content.get_mut(..size)?.copy_from_slice(field);
        let content = u64::from_le_bytes(content);
        if size == 0 || descriptor & 0b1000 != 0 {
            return None;
        }
        let length = 5_usize.checked_add(before)?.checked_add(size)?;
        Some(Header {
            length: u64::try_from(length).ok()?,
            content: content.saturating_add(if size == 2 { 256 } else { 0 }),
            has_sum: descriptor & 0b100 != 0,
        })
    }
}

struct Walk<'a> {
    encoded: &'a Encoded,
    at: u64,
    end: u64,
    /// Blocks, and frames that are to be skipped, so far.
    blocks: usize,
}

impl Walk<'_> {
    /// Goes over a frame's header and its blocks.
    fn frame(&mut self, header: &Header) -> Result<Option<()>> {
        self.at = self.at.saturating_add(header.length);
        loop {
            let until = self.at.saturating_add(3).min(self.end);
            let bytes = scan::piece(&*self.encoded.source, self.at.min(until)..until)?;
            let &[low, middle, high] = bytes.as_slice() else {
                return Ok(None);
            };
            let block = u32::from_le_bytes([low, middle, high, 0]);
            let stored = match block.wrapping_shr(1) & 0b11 {
                0 | 2 => u64::from(block.wrapping_shr(3)),
                1 => 1,
                _ => return Ok(None),
            };
            self.at = until.saturating_add(stored);
            self.blocks = self.blocks.saturating_add(1);
            if self.blocks > limits::BLOCK_CHUNKS {
                return Ok(None);
            }
            if block & 1 == 1 {
                self.at = self.at.saturating_add(if header.has_sum { 4 } else { 0 });
                return Ok((self.at <= self.end).then_some(()));
            }
        }
    }
}
