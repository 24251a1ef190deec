//! The parts of .xz streams (.xz File Format 1.2): their blocks, as the index at the end of each
//! stream has them. A block is decoded alone as the only one of a stream of its own.

use std::sync::Arc;

use crate::asdf::compression::encoded::Encoded;
use crate::asdf::compression::stream::codec::XZ_MAGIC;
use crate::asdf::compression::stream::lzma2::Chunks;
use crate::asdf::compression::stream::part_list::{Part, PartList};
use crate::asdf::scan;
use crate::error::Result;
use crate::limits;
use crate::wire::crc32::crc32;
use crate::wire::to_u64;

/// Bytes of a stream's header, and of its footer.
const HEADER: u64 = 12;

/// Bytes of an index at most: of so many records as are taken, each two numbers of up to nine
/// bytes.
const INDEX: u64 = 2 << 20;

/// Zeros behind a stream at most.
const PADDING: u64 = 64 << 10;

/// One stream of several.
struct Stream {
    start: u64,
    header: Arc<[u8]>,
    records: Vec<Record>,
}

/// The record of a block in the index.
#[derive(Debug, PartialEq, Eq)]
struct Record {
    /// Bytes with header and checksum, without padding.
    unpadded: u64,
    uncompressed: u64,
}

/// The parts, or `None` where there are no several blocks or their indices contradict themselves.
///
/// # Errors
/// `Io` as the stream cannot be read.
pub fn parts(encoded: &Encoded) -> Result<Option<PartList>> {
    let mut end = encoded.offset.saturating_add(encoded.stored);
    let (mut streams, mut blocks) = (Vec::new(), 0_usize);
    while end > encoded.offset {
        let Some(stream) = before(encoded, end)? else {
            return Ok(None);
        };
        end = stream.start;
        // A stream may have no block.
        blocks = blocks.saturating_add(stream.records.len().max(1));
        if blocks > limits::STREAM_PARTS {
            return Ok(None);
        }
        streams.push(stream);
    }
    if blocks < 2 {
        return Ok(None);
    }
    let mut chunks = Chunks::default();
    let mut parts = PartList::new(encoded.decoded);
    for stream in streams.iter().rev() {
        let mut at = stream.start.saturating_add(HEADER);
        for record in &stream.records {
            let (stored, end) = (record.unpadded, at.saturating_add(padded(record.unpadded)));
            let decoded = chunks.decoded(encoded, at, end)?;
            let is_right = decoded == Some(record.uncompressed);
            let mut push = || parts.push(at, stored, record.uncompressed, &stream.header);
            if !is_right || push().is_none() {
                return Ok(None);
            }
            at = end;
        }
    }
    Ok(Some(parts))
}

/// The stream that ends at `end`, but for padding.
fn before(encoded: &Encoded, end: u64) -> Result<Option<Stream>> {
    let Some(end) = unpadded_end(encoded, end)? else {
        return Ok(None);
    };
    let range = |from: u64, length: u64| {
        let from = from.max(encoded.offset);
        scan::piece(&*encoded.source, from..from.saturating_add(length))
    };
    let footer = range(end.saturating_sub(HEADER), HEADER)?;
    let Some(index_bytes) = index_length(&footer) else {
        return Ok(None);
    };
    let index_start = end.saturating_sub(HEADER).saturating_sub(index_bytes);
    if index_bytes > INDEX || index_start <= encoded.offset {
        return Ok(None);
    }
    let Some(records) = records(&range(index_start, index_bytes)?) else {
        return Ok(None);
    };
    let stored = records.iter().map(|record| padded(record.unpadded));
    let stored = stored.fold(HEADER, u64::saturating_add);
    let Some(start) = index_start
        .checked_sub(stored)
        .filter(|&start| start >= encoded.offset)
    else {
        return Ok(None);
    };
    let header = range(start, HEADER)?;
    let is_right = header.starts_with(XZ_MAGIC) && header.get(6..8) == footer.get(8..10);
    Ok(is_right.then(|| Stream {
        start,
        header: header.into(),
        records,
    }))
}

/// The end of the last stream, in front of the padding.
fn unpadded_end(encoded: &Encoded, end: u64) -> Result<Option<u64>> {
    let from = end.saturating_sub(PADDING).max(encoded.offset);
    let mut bytes = scan::piece(&*encoded.source, end.saturating_sub(4).max(from)..end)?;
    if bytes.ends_with(&[0]) {
        bytes = scan::piece(&*encoded.source, from..end)?;
    }
    let zeros = bytes.iter().rev().take_while(|&&byte| byte == 0).count();
    let is_padding = zeros < bytes.len() && zeros.is_multiple_of(4);
    Ok(is_padding.then(|| end.saturating_sub(to_u64(zeros))))
}

/// The bytes of the index before a footer, if it is one.
fn index_length(footer: &[u8]) -> Option<u64> {
    let (sum, rest) = footer.split_first_chunk::<4>()?;
    let rest = rest.strip_suffix(b"YZ")?;
    let (length, flags) = rest.split_first_chunk::<4>()?;
    let is_right = flags.len() == 2 && crc32(rest) == u32::from_le_bytes(*sum);
    let words = u64::from(u32::from_le_bytes(*length)).saturating_add(1);
    is_right.then(|| words.saturating_mul(4))
}

/// The records of an index.
fn records(index: &[u8]) -> Option<Vec<Record>> {
    let (content, sum) = index.split_last_chunk::<4>()?;
    let mut rest = content.strip_prefix(&[0])?;
    if crc32(content) != u32::from_le_bytes(*sum) {
        return None;
    }
    let count = number(&mut rest)?;
    if count > to_u64(limits::STREAM_PARTS) {
        return None;
    }
    let records: Option<Vec<Record>> = (0..count)
        .map(|_| {
            let unpadded = number(&mut rest).filter(|&unpadded| unpadded > 0)?;
            let uncompressed = number(&mut rest)?;
            Some(Record {
                unpadded,
                uncompressed,
            })
        })
        .collect();
    records.filter(|_| rest.len() < 4 && rest.iter().all(|&byte| byte == 0))
}

/// Takes a number from the front: seven bits a byte, the lowest first.
fn number(bytes: &mut &[u8]) -> Option<u64> {
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

/// Bytes that a block of this length takes.
pub fn padded(length: u64) -> u64 {
    length.checked_next_multiple_of(4).unwrap_or(u64::MAX)
}

/// The end of a stream of one block: an index of that block, and a footer.
pub fn tail(part: &Part) -> Vec<u8> {
    let mut index = vec![0, 1];
    put_number(&mut index, part.stored);
    put_number(&mut index, part.decoded);
    index.resize(index.len().next_multiple_of(4), 0);
    index.extend(crc32(&index).to_le_bytes());
    let words = u32::try_from(index.len() / 4).unwrap_or(1);
    let mut footer = words.saturating_sub(1).to_le_bytes().to_vec();
    footer.extend(part.head.get(6..8).unwrap_or_default());
    let sum = crc32(&footer).to_le_bytes();
    [index.as_slice(), &sum, &footer, b"YZ"].concat()
}
