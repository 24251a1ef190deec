//! The parts of Zstandard frames (RFC 8878, 3.1). If there are several frames with a content size,
//! each is a part.

use std::sync::Arc;

use crate::asdf::compression::encoded::EncodedBlock;
use crate::asdf::compression::stream::part_list::PartList;
use crate::asdf::scan;
use crate::error::Result;
use crate::limits;
use crate::wire::{Count, Extent};

/// Maximum number of bytes of a Zstandard frame's header: magic number, descriptor, window,
/// dictionary, content size.
const HEADER: u64 = 18;

/// Returns the independent parts of the stream, or `None` if the stream does not consist of several
/// Zstandard frames with a content size.
///
/// # Errors
/// `Io` if the stream cannot be read.
pub(crate) fn find_parts(encoded: &EncodedBlock) -> Result<Option<PartList>> {
    let mut walk = ZstdFrameWalk {
        encoded,
        rest: encoded.stored,
        blocks: 0,
    };
    let mut parts = PartList::new(encoded.decoded);
    let no_head = Arc::default();
    while !walk.rest.is_empty() {
        let frame = walk.rest;
        let first = scan::read_truncated(&*encoded.source, frame.first(HEADER))?;
        if let [0x50..=0x5f, 0x2a, 0x4d, 0x18, a, b, c, d, ..] = *first {
            let length = u32::from_le_bytes([a, b, c, d]);
            walk.rest = frame.skip(u64::from(length).plus(8));
            walk.blocks = walk.blocks.plus_one();
            if walk.blocks > limits::BLOCK_CHUNKS {
                return Ok(None);
            }
            continue;
        }
        let Some(header) = Header::read(&first) else {
            return Ok(None);
        };
        // Parts are not useful in a stream of one frame, so its blocks are not walked.
        if header.content >= encoded.decoded || walk.walk_frame(&header)?.is_none() {
            return Ok(None);
        }
        let frame = Extent::from_range(frame.start(), walk.rest.start());
        if parts.push_merged(frame, header.content, &no_head).is_none() {
            return Ok(None);
        }
    }
    Ok(Some(parts))
}

/// The header of a Zstandard frame that states its content size.
struct Header {
    length: u64,
    content: u64,
    has_checksum: bool,
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
            content: content.plus(if size == 2 { 256 } else { 0 }),
            has_checksum: descriptor & 0b100 != 0,
        })
    }
}

struct ZstdFrameWalk<'a> {
    encoded: &'a EncodedBlock,
    rest: Extent,
    /// Number of blocks and skippable frames so far.
    blocks: usize,
}

impl ZstdFrameWalk<'_> {
    /// Walks over a frame's header and its blocks. Returns `None` if a block is invalid or
    /// truncated, or if there are too many blocks.
    fn walk_frame(&mut self, header: &Header) -> Result<Option<()>> {
        self.rest = self.rest.skip(header.length);
        loop {
            let bytes = scan::read_truncated(&*self.encoded.source, self.rest.first(3))?;
            let &[low, middle, high] = bytes.as_slice() else {
                return Ok(None);
            };
            let block = u32::from_le_bytes([low, middle, high, 0]);
            let stored = match block.wrapping_shr(1) & 0b11 {
                0 | 2 => u64::from(block.wrapping_shr(3)),
                1 => 1,
                _ => return Ok(None),
            };
            let is_last = block & 1 == 1;
            let sum = if is_last && header.has_checksum { 4 } else { 0 };
            let length = Count::sum([3, stored, sum]);
            self.blocks = self.blocks.plus_one();
            if length > self.rest.length() || self.blocks > limits::BLOCK_CHUNKS {
                return Ok(None);
            }
            self.rest = self.rest.skip(length);
            if is_last {
                return Ok(Some(()));
            }
        }
    }
}
