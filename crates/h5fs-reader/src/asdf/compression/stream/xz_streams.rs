//! The parts of .xz streams (.xz File Format 1.2), which are the blocks that the index at the end
//! of each stream lists. A block is decoded as the only block of a stream of its own.

use std::sync::Arc;

use crate::asdf::compression::encoded::EncodedBlock;
use crate::asdf::compression::stream::codec::XZ_MAGIC;
use crate::asdf::compression::stream::lzma2::ChunkCounter;
use crate::asdf::compression::stream::part_list::{PartList, StreamPart};
use crate::asdf::scan;
use crate::error::Result;
use crate::limits;
use crate::wire::crc32::crc32;
use crate::wire::{Count, Extent, to_u64};

/// Length in bytes of an .xz stream's header. The footer has the same length.
const HEADER: u64 = 12;

/// Maximum number of bytes of an index with the maximum number of records, each with two numbers of
/// up to nine bytes.
const INDEX: u64 = 2 << 20;

/// Maximum number of padding zeros after an .xz stream.
const PADDING: u64 = 64 << 10;

/// One of the consecutive .xz streams of an ASDF block.
struct Stream {
    /// The stored bytes of the .xz stream before its index.
    stored: Extent,
    header: Arc<[u8]>,
    records: Vec<IndexRecord>,
}

/// The record of an .xz block in the index of its stream.
#[derive(Debug, PartialEq, Eq)]
struct IndexRecord {
    /// Length of the block in bytes, with header and checksum, without padding.
    unpadded: u64,
    uncompressed: u64,
}

/// Returns the independent parts of the stream, or `None` if there is only one .xz block or the
/// indices contradict the blocks.
///
/// # Errors
/// `Io` if the stream cannot be read.
pub(crate) fn find_parts(encoded: &EncodedBlock) -> Result<Option<PartList>> {
    let mut rest = encoded.stored;
    let (mut streams, mut blocks) = (Vec::new(), 0_usize);
    while !rest.is_empty() {
        let Some(stream) = read_last_stream(encoded, rest)? else {
            return Ok(None);
        };
        rest = Extent::from_range(rest.start(), stream.stored.start());
        // A stream may be without blocks.
        blocks = blocks.plus(stream.records.len().max(1));
        if blocks > limits::STREAM_PARTS {
            return Ok(None);
        }
        streams.push(stream);
    }
    if blocks < 2 {
        return Ok(None);
    }
    let mut chunks = ChunkCounter::default();
    let mut parts = PartList::new(encoded.decoded);
    for stream in streams.iter().rev() {
        let mut rest = stream.stored.skip(HEADER);
        for record in &stream.records {
            let stored = rest.first(record.unpadded);
            let decoded = chunks.decoded_length(encoded, with_padding(stored))?;
            let is_right = decoded == Some(record.uncompressed);
            let mut push = || parts.push(stored, record.uncompressed, &stream.header);
            if !is_right || push().is_none() {
                return Ok(None);
            }
            rest = rest.skip(with_padding(stored).length());
        }
    }
    Ok(Some(parts))
}

/// Returns the last .xz stream in the range `streams`, which may end with padding. Returns `None`
/// if the range does not end with a valid index and footer.
fn read_last_stream(encoded: &EncodedBlock, streams: Extent) -> Result<Option<Stream>> {
    let Some(streams) = without_padding(encoded, streams)? else {
        return Ok(None);
    };
    let read = |part: Extent| scan::read_truncated(&*encoded.source, part);
    let footer = read(streams.last(HEADER))?;
    let Some(index_bytes) = index_length(&footer) else {
        return Ok(None);
    };
    let before_footer = streams.first(streams.length().minus_or_zero(HEADER));
    let index = before_footer.last(index_bytes);
    if index_bytes > INDEX || index_bytes >= before_footer.length() {
        return Ok(None);
    }
    let Some(records) = records(&read(index)?) else {
        return Ok(None);
    };
    let blocks = records.iter().map(|record| padded_length(record.unpadded));
    let bytes = Count::sum(blocks).plus(HEADER);
    let before_index = Extent::from_range(streams.start(), index.start());
    if bytes > before_index.length() {
        return Ok(None);
    }
    let stored = before_index.last(bytes);
    let header = read(stored.first(HEADER))?;
    let is_right = header.starts_with(XZ_MAGIC) && header.get(6..8) == footer.get(8..10);
    Ok(is_right.then(|| Stream {
        stored,
        header: header.into(),
        records,
    }))
}

/// Returns the range of the streams without the padding after the last one. Returns `None` if the
/// padding is too long or not a multiple of four bytes.
fn without_padding(encoded: &EncodedBlock, streams: Extent) -> Result<Option<Extent>> {
    let mut bytes = scan::read_truncated(&*encoded.source, streams.last(4))?;
    if bytes.ends_with(&[0]) {
        bytes = scan::read_truncated(&*encoded.source, streams.last(PADDING))?;
    }
    let zeros = bytes.iter().rev().take_while(|&&byte| byte == 0).count();
    let is_padding = zeros < bytes.len() && zeros.is_multiple_of(4);
    let length = streams.length().minus_or_zero(to_u64(zeros));
    Ok(is_padding.then(|| streams.first(length)))
}

/// Returns the length in bytes of the index before a footer, or `None` if `footer` is not a valid
/// footer.
fn index_length(footer: &[u8]) -> Option<u64> {
    let (sum, rest) = footer.split_first_chunk::<4>()?;
    let rest = rest.strip_suffix(b"YZ")?;
    let (length, flags) = rest.split_first_chunk::<4>()?;
    let is_right = flags.len() == 2 && crc32(rest) == u32::from_le_bytes(*sum);
    let words = u64::from(u32::from_le_bytes(*length)).plus_one();
    is_right.then(|| words.times(4))
}

/// Parses the records of an index. Returns `None` if the index is damaged or has too many records.
fn records(index: &[u8]) -> Option<Vec<IndexRecord>> {
    let (content, sum) = index.split_last_chunk::<4>()?;
    let mut rest = content.strip_prefix(&[0])?;
    if crc32(content) != u32::from_le_bytes(*sum) {
        return None;
    }
    let count = take_number(&mut rest)?;
    if count > to_u64(limits::STREAM_PARTS) {
        return None;
    }
    let records: Option<Vec<IndexRecord>> = (0..count)
        .map(|_| {
            let unpadded = take_number(&mut rest).filter(|&unpadded| unpadded > 0)?;
            let uncompressed = take_number(&mut rest)?;
            Some(IndexRecord {
                unpadded,
                uncompressed,
            })
        })
        .collect();
    records.filter(|_| rest.len() < 4 && rest.iter().all(|&byte| byte == 0))
}

/// Removes an integer of variable length from the front of `bytes`: seven bits per byte, lowest
/// bits first. Returns `None` if it is truncated or longer than nine bytes.
fn take_number(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for place in 0..9_u32 {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        let bits = u64::from(byte & 0x7f).wrapping_shl(place.wrapping_mul(7));
        number |= bits;
        if byte & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

fn put_number(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push(number.to_le_bytes()[0] | 0x80);
        number = number.wrapping_shr(7);
    }
    bytes.push(number.to_le_bytes()[0]);
}

/// Returns the length of a block of `length` bytes with its padding to a multiple of four bytes.
fn padded_length(length: u64) -> u64 {
    length.checked_next_multiple_of(4).unwrap_or(u64::MAX)
}

/// Returns the range of a block with its padding to a multiple of four bytes.
pub(crate) fn with_padding(block: Extent) -> Extent {
    Extent::saturating(block.start(), padded_length(block.length()))
}

/// Returns the bytes after the block in a stream that contains only this block: an index with one
/// record, and a footer.
pub(crate) fn index_and_footer(part: &StreamPart) -> Vec<u8> {
    let mut index = vec![0, 1];
    put_number(&mut index, part.stored.length());
    put_number(&mut index, part.content.length());
    index.resize(index.len().next_multiple_of(4), 0);
    index.extend(crc32(&index).to_le_bytes());
    let words = u32::try_from(index.len() / 4).unwrap_or(1);
    let mut footer = words.minus_or_zero(1).to_le_bytes().to_vec();
    footer.extend(part.head.get(6..8).unwrap_or_default());
    let sum = crc32(&footer).to_le_bytes();
    [index.as_slice(), &sum, &footer, b"YZ"].concat()
}
