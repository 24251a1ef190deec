//! The parts of LZ4 frames (LZ4 Frame Format 1.6.4), which are their blocks if the blocks are
//! independent.
//!
//! A block stores its compressed length, but not its decoded length. All blocks of a frame except
//! the last have the frame's maximum length, unless a writer flushed in between. To exclude a
//! flush, the last blocks are decoded. The total matches the content's length only if every earlier
//! block is full.

use std::sync::Arc;

use crate::asdf::compression::encoded::EncodedBlock;
use crate::asdf::compression::stream::codec::LZ4_MAGIC;
use crate::asdf::compression::stream::part_list::PartList;
use crate::asdf::scan;
use crate::error::Result;
use crate::filter::{self, DecodedLength, DecoderResources};
use crate::limits;
use crate::source;
use crate::wire::{Count, Extent, to_u64, to_usize};

/// Maximum number of bytes of an LZ4 frame's header without a dictionary.
const HEADER: u64 = 15;

/// Maximum number of bytes that are decoded to determine the decoded lengths of the last blocks of
/// frames.
const MAX_PROBE_BYTES: u64 = 64 << 20;

/// Returns the independent parts of the stream, or `None` if the stream does not consist of LZ4
/// frames with independent blocks.
///
/// # Errors
/// `Io` if the stream cannot be read.
pub(crate) fn find_parts(encoded: &EncodedBlock) -> Result<Option<PartList>> {
    let mut walk = Lz4FrameWalk {
        encoded,
        rest: encoded.stored,
        parts: PartList::new(encoded.decoded),
        budget: MAX_PROBE_BYTES,
        blocks: 0,
    };
    while !walk.rest.is_empty() {
        if walk.walk_frame()?.is_none() {
            return Ok(None);
        }
    }
    Ok(Some(walk.parts))
}

struct Lz4FrameWalk<'a> {
    encoded: &'a EncodedBlock,
    rest: Extent,
    parts: PartList,
    /// Number of bytes that may still be decoded only to determine the lengths of blocks.
    budget: u64,
    /// Number of blocks and frames so far.
    blocks: usize,
}

/// The header of an LZ4 frame ("Frame Descriptor").
struct Header {
    bytes: Arc<[u8]>,
    max_block_bytes: u64,
    has_block_checksums: bool,
    has_content_checksum: bool,
    content: Option<u64>,
}

/// A block of an LZ4 frame.
#[derive(Clone, Copy)]
struct Block {
    /// The stored bytes with length field and checksum.
    stored: Extent,
    /// Number of bytes of the block's data, without length field and checksum.
    length: u64,
    is_raw: bool,
}

impl Header {
    /// Parses the frame header at the start of `bytes`. Returns `None` if the frame's blocks depend
    /// on each other or on a dictionary.
    fn read(bytes: &[u8]) -> Option<Self> {
        let rest = bytes.strip_prefix(LZ4_MAGIC)?;
        let &[flags, sizes, ..] = rest else {
            return None;
        };
        // Requires version 1 and independent blocks, without the reserved bit and without a
        // dictionary.
        if flags & 0b1110_0011 != 0b0110_0000 {
            return None;
        }
        let longest = match sizes.wrapping_shr(4) {
            4 => 64 << 10,
            5 => 256 << 10,
            6 => 1 << 20,
            7 => 4 << 20,
            _ => return None,
        };
        let is_sized = flags & 0b1000 != 0;
        let content = rest.get(2..10).and_then(|bytes| bytes.try_into().ok());
        Some(Header {
            bytes: bytes.get(..if is_sized { 15 } else { 7 })?.into(),
            max_block_bytes: longest,
            has_block_checksums: flags & 0b1_0000 != 0,
            has_content_checksum: flags & 0b100 != 0,
            content: content.filter(|_| is_sized).map(u64::from_le_bytes),
        })
    }
}

impl Lz4FrameWalk<'_> {
    fn next_length_field(&self) -> Result<Option<u32>> {
        let bytes = scan::read_truncated(&*self.encoded.source, self.rest.first(4))?;
        Ok(bytes.try_into().ok().map(u32::from_le_bytes))
    }

    /// Walks over one frame or skippable frame. Returns `None` if neither follows, if the blocks
    /// are not independent, or if there are too many frames and blocks.
    fn walk_frame(&mut self) -> Result<Option<()>> {
        self.blocks = self.blocks.plus_one();
        if self.blocks > limits::BLOCK_CHUNKS {
            return Ok(None);
        }
        let first = scan::read_truncated(&*self.encoded.source, self.rest.first(HEADER))?;
        if let [0x50..=0x5f, 0x2a, 0x4d, 0x18, a, b, c, d, ..] = *first {
            let length = u32::from_le_bytes([a, b, c, d]);
            self.rest = self.rest.skip(u64::from(length).plus(8));
            return Ok(Some(()));
        }
        let Some(header) = Header::read(&first) else {
            return Ok(None);
        };
        self.rest = self.rest.skip(to_u64(header.bytes.len()));
        let start = self.parts.end();
        let mut before: Option<Block> = None;
        while let Some(word) = self.next_length_field()? {
            if word == 0 {
                let after = if header.has_content_checksum { 8 } else { 4 };
                self.rest = self.rest.skip(after);
                return self.finish(&header, start, before);
            }
            let block = self.walk_block(&header, word);
            let block = block.filter(|_| before.is_none_or(|block| self.add(&header, block)));
            if block.is_none() {
                return Ok(None);
            }
            before = block;
        }
        Ok(None)
    }

    /// Walks over a block whose length field is `word`. Returns `None` if its length is impossible,
    /// or if there are too many blocks.
    fn walk_block(&mut self, header: &Header, word: u32) -> Option<Block> {
        let length = u64::from(word & 0x7fff_ffff);
        let bytes = length.plus(if header.has_block_checksums { 8 } else { 4 });
        let block = Block {
            length,
            stored: self.rest.first(bytes),
            is_raw: word & 0x8000_0000 != 0,
        };
        self.rest = self.rest.skip(bytes);
        self.blocks = self.blocks.plus_one();
        let is_right = length <= header.max_block_bytes && block.stored.length() == bytes;
        (is_right && self.blocks <= limits::BLOCK_CHUNKS).then_some(block)
    }

    /// Adds a block that is not the last of its frame to the parts. Returns false if the list of
    /// parts does not accept it.
    fn add(&mut self, header: &Header, block: Block) -> bool {
        let decoded = if block.is_raw {
            block.length
        } else {
            header.max_block_bytes
        };
        self.push(header, block, decoded).is_some()
    }

    fn push(&mut self, header: &Header, block: Block, decoded: u64) -> Option<()> {
        self.parts.push_merged(block.stored, decoded, &header.bytes)
    }

    /// Adds the last block, if there is one, of a frame whose content begins at `start`. Returns
    /// `None` if its decoded length cannot be determined or the lengths are contradictory.
    fn finish(&mut self, header: &Header, start: u64, last: Option<Block>) -> Result<Option<()>> {
        if let Some(block) = last {
            let is_only = self.parts.end() == start;
            let decoded = match header.content {
                _ if block.is_raw => Some(block.length),
                Some(content) if is_only => {
                    Some(content).filter(|&all| all <= header.max_block_bytes)
                }
                _ => self.decoded_length(header, block)?,
            };
            let added = decoded.and_then(|decoded| self.push(header, block, decoded));
            if added.is_none() {
                return Ok(None);
            }
        }
        let content = self.parts.end().minus_or_zero(start);
        let is_whole = header.content.is_none_or(|size| size == content);
        Ok(is_whole.then_some(()))
    }

    /// Returns the decoded length of a block by decoding it. Returns `None` if the block is
    /// damaged, or if too much was already decoded to determine lengths.
    fn decoded_length(&mut self, header: &Header, block: Block) -> Result<Option<u64>> {
        let Some(budget) = self.budget.checked_sub(header.max_block_bytes) else {
            return Ok(None);
        };
        self.budget = budget;
        let at = block.stored.skip(4).start();
        let stored = source::read_block(&*self.encoded.source, at, block.length, "LZ4 block")?;
        let most = DecodedLength::AtMost(to_usize(header.max_block_bytes)?);
        let decoded = filter::lz4::decode_block(&stored, most, &DecoderResources::default()).ok();
        Ok(decoded.map(|decoded| to_u64(decoded.len())))
    }
}
