//! Filter 32001, Blosc: one chunk of Blosc 1, and the chunks of Blosc 2, which extend that format.
//!
//! Header, little-endian: u8 version, u8 codec's version, u8 flags, u8 type size, u32 bytes, u32
//! block size, u32 stored bytes. In Blosc 2, sixteen bytes follow if both shuffle flags are set.
//! Then comes the start of every block as u32. A block is compressed in one stream, or in one
//! stream for each byte of the type. Each stream is preceded by its length. After decompression,
//! the block's filters are reversed. (Blosc's README_CHUNK_FORMAT.)

mod blosclz;
mod codec;

use std::borrow::Cow;

use crate::error::{Error, Result};
use crate::filter::bit_planes::unbitshuffle;
use crate::filter::shuffle::{self, unshuffle};
use crate::filter::{DecodedLength, DecoderResources};
use crate::memory::buffer::{Buffer, BufferPool};
use crate::wire::{Count, Cursor, to_usize};
use codec::Codec;

/// Returns the decoded bytes of the Blosc 1 or Blosc 2 chunk at the start of `chunk`.
///
/// # Errors
/// `Corrupt` for damaged or truncated bytes, or a decoded length that `length` does not allow.
/// `Unsupported` for codecs and filters of Blosc 2's plugins.
pub fn decode(
    chunk: &[u8],
    length: DecodedLength,
    context: &mut DecoderResources,
) -> Result<Buffer> {
    let chunk = Chunk::new(chunk)?;
    let mut output = context.pool.buffer(length.check("Blosc", chunk.bytes)?)?;
    chunk.decode_into(&mut output, context)?;
    Ok(output)
}

/// Buffers and codec state for decoding one block at a time.
pub(crate) struct Scratch<'a> {
    context: &'a mut DecoderResources,
    joined: Buffer,
    other: Buffer,
    planes: Vec<u8>,
}

impl<'a> Scratch<'a> {
    pub(crate) fn new(context: &'a mut DecoderResources) -> Self {
        Scratch {
            context,
            joined: Buffer::default(),
            other: Buffer::default(),
            planes: Vec::new(),
        }
    }
}

/// One Blosc chunk whose header was read.
#[derive(Debug)]
pub(crate) struct Chunk<'a> {
    /// Number of decoded bytes of the chunk.
    pub(crate) bytes: usize,
    /// Number of decoded bytes of every block except the last. Not 0.
    pub(crate) block_bytes: usize,
    type_bytes: usize,
    content: BloscContent<'a>,
}

/// The stored form of a chunk's elements.
#[derive(Debug)]
enum BloscContent<'a> {
    /// Uncompressed bytes.
    Raw(&'a [u8]),
    /// One element that is repeated throughout the chunk.
    Repeated(Cow<'a, [u8]>),
    /// Compressed blocks.
    Blocks(BloscBlocks<'a>),
}

#[derive(Debug)]
struct BloscBlocks<'a> {
    /// The whole chunk. The offsets in `starts` refer to this slice.
    chunk: &'a [u8],
    starts: &'a [[u8; 4]],
    codec: Codec,
    /// Whether each full block has one stream for each byte of the type.
    is_split: bool,
    /// The filters, in decoding order.
    filters: Vec<BlockFilter>,
}

/// A filter that was applied to a block before compression.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BlockFilter {
    /// A byte shuffle. The number is the size of an element in bytes.
    Shuffle(usize),
    Bitshuffle {
        /// Whether a block remains unshuffled if its number of elements is not a multiple of 8, as
        /// in Blosc 1.
        whole_only: bool,
    },
    Delta,
}

impl<'a> Chunk<'a> {
    const RAW: u8 = 2;
    const NOT_SPLIT: u8 = 0x10;

    /// Reads the header of the chunk at the start of `bytes`.
    pub(crate) fn new(bytes: &'a [u8]) -> Result<Self> {
        let mut cursor = Cursor::new(bytes, None, "Blosc chunk");
        let (version, _, flags) = (cursor.read_version(1..=6)?, cursor.u8()?, cursor.u8()?);
        let type_bytes = usize::from(cursor.u8()?);
        let total = to_usize(cursor.u32()?.into())?;
        let block_bytes = to_usize(cursor.u32()?.into())?;
        let stored = to_usize(cursor.u32()?.into())?;
        let chunk = bytes
            .get(..stored)
            .ok_or_else(|| cursor.corrupt("ends too early"))?;
        if type_bytes == 0 || (block_bytes == 0 && total > 0) {
            return Err(cursor.corrupt("the type size or block size is 0"));
        }
        let header = BlockTransforms::read(&mut cursor, version, flags)?;
        let content = chunk
            .get(cursor.position()..)
            .ok_or_else(|| cursor.corrupt("ends too early"))?;
        let block_bytes = block_bytes.min(total).max(1);
        let content = match header.special {
            0 if flags & Self::RAW != 0 => {
                let raw = content
                    .get(..total)
                    .ok_or_else(|| cursor.corrupt("ends too early"))?;
                BloscContent::Raw(raw)
            }
            0 => {
                let starts = total.div_ceil(block_bytes);
                let starts = content.as_chunks().0.get(..starts);
                // Before Blosc 1.14 the header had no flag for splitting, and the sizes alone
                // decide.
                let fits = type_bytes <= 16 && block_bytes.checked_div(type_bytes) >= Some(128);
                BloscContent::Blocks(BloscBlocks {
                    chunk,
                    starts: starts.ok_or_else(|| cursor.corrupt("ends too early"))?,
                    codec: Codec::new(flags.wrapping_shr(5)),
                    is_split: flags & Self::NOT_SPLIT == 0 && (fits || version > 2),
                    filters: header.filters(type_bytes, version)?,
                })
            }
            3 if !content.is_empty() => BloscContent::Repeated(Cow::Borrowed(content)),
            special => BloscContent::Repeated(special_value(special, type_bytes)?),
        };
        Ok(Chunk {
            bytes: total,
            block_bytes,
            type_bytes,
            content,
        })
    }

    /// Creates a chunk of `bytes` decoded bytes whose elements are all the special value `special`
    /// (see `special_value`).
    pub(crate) fn special(
        special: u8,
        type_bytes: usize,
        bytes: usize,
        block_bytes: usize,
    ) -> Result<Self> {
        Ok(Chunk {
            bytes,
            block_bytes: block_bytes.max(1),
            type_bytes,
            content: BloscContent::Repeated(special_value(special, type_bytes)?),
        })
    }

    /// Decodes the whole chunk into `output`, which has the chunk's length.
    pub(crate) fn decode_into(
        &self,
        output: &mut [u8],
        context: &mut DecoderResources,
    ) -> Result<()> {
        let mut scratch = Scratch::new(context);
        let first = self.block_bytes.min(output.len());
        let (first, others) = output.split_at_mut_checked(first).unwrap_or_default();
        if first.is_empty() {
            return Ok(());
        }
        self.decode_block(0, &mut scratch, &[], first)?;
        for (number, block) in (1..).zip(others.chunks_mut(self.block_bytes)) {
            self.decode_block(number, &mut scratch, first, block)?;
        }
        Ok(())
    }

    /// Decodes block `number` into `output`, which has the block's length. `first` is the decoded
    /// block 0.
    pub(crate) fn decode_block(
        &self,
        number: usize,
        scratch: &mut Scratch<'_>,
        first: &[u8],
        output: &mut [u8],
    ) -> Result<()> {
        match &self.content {
            BloscContent::Raw(elements) => {
                let start = number.times(self.block_bytes);
                let elements = elements
                    .get(start..)
                    .and_then(|rest| rest.get(..output.len()));
                output.copy_from_slice(elements.ok_or_else(damaged)?);
                Ok(())
            }
            BloscContent::Repeated(value) => {
                for element in output.chunks_mut(value.len().max(1)) {
                    element
                        .iter_mut()
                        .zip(value.iter())
                        .for_each(|(to, from)| *to = *from);
                }
                Ok(())
            }
            BloscContent::Blocks(blocks) => {
                let whole = output.len() == self.block_bytes;
                let streams = if blocks.is_split && whole {
                    self.type_bytes
                } else {
                    1
                };
                if blocks.filters.is_empty() {
                    return blocks.decode_streams(number, streams, output, scratch.context);
                }
                let Scratch {
                    context, joined, ..
                } = scratch;
                resize_buffer(joined, output.len(), &context.pool)?;
                if blocks.is_shuffled(streams) {
                    return blocks
                        .decode_shuffled_streams(number, streams, joined, output, context);
                }
                blocks.decode_streams(number, streams, joined, context)?;
                blocks.decode_filters(self.type_bytes, scratch, first, output)?;
                Ok(())
            }
        }
    }
}

/// Replaces `buffer` if its length differs from `length`, the length of a block, which is rare.
/// Returns the buffer's bytes.
fn resize_buffer<'a>(
    buffer: &'a mut Buffer,
    length: usize,
    pool: &BufferPool,
) -> Result<&'a mut [u8]> {
    if buffer.len() != length {
        *buffer = pool.buffer(length)?;
    }
    Ok(buffer)
}

/// Returns the number of decoded bytes of each of the `streams` streams of a block of `block`
/// bytes. Fails if the block cannot be divided evenly.
fn stream_bytes(block: usize, streams: usize) -> Result<usize> {
    let bytes = block.checked_div(streams).unwrap_or(0);
    if bytes == 0 || bytes.checked_mul(streams) != Some(block) {
        return Err(damaged());
    }
    Ok(bytes)
}

fn damaged() -> Error {
    Error::corrupt("Blosc: damaged block", None)
}

/// The filters and the special value from the last sixteen bytes of a Blosc 2 header. A shorter
/// header has the equivalent values in its flags.
struct BlockTransforms {
    /// The numbers of the block's filters in encoding order, each with its parameter.
    slots: [(u8, u8); 6],
    /// The code of the special value that the chunk repeats (see `special_value`), or 0 if the
    /// chunk consists of blocks.
    special: u8,
}

impl BlockTransforms {
    const SHUFFLE: u8 = 1;
    const BITSHUFFLE: u8 = 4;
    const DELTA: u8 = 8;

    fn read(cursor: &mut Cursor<'_>, version: u8, flags: u8) -> Result<Self> {
        const BOTH: u8 = BlockTransforms::SHUFFLE | BlockTransforms::BITSHUFFLE;
        let mut slots = [(0, 0); 6];
        if version <= 2 || flags & BOTH != BOTH {
            let [.., delta, shuffle] = &mut slots;
            shuffle.0 = match flags & BOTH {
                0 => 0,
                Self::BITSHUFFLE => 2,
                _ => 1,
            };
            if version > 2 && flags & Self::DELTA != 0 {
                delta.0 = 3;
            }
            return Ok(BlockTransforms { slots, special: 0 });
        }
        let filters: [u8; 6] = cursor.read_array()?;
        cursor.skip(1)?;
        let more_flags = cursor.u8()?;
        let told: [u8; 6] = cursor.read_array()?;
        cursor.skip(1)?;
        let flags = cursor.u8()?;
        // Dictionaries (1), lazy chunks (8), instrumented codecs (128), and blocks of varying
        // length.
        if flags & 0x89 != 0 || more_flags != 0 {
            return Err(cursor.unsupported("dictionary, lazy chunk or blocks of any length"));
        }
        slots
            .iter_mut()
            .zip(filters.into_iter().zip(told))
            .for_each(|(slot, filter)| *slot = filter);
        if version == 3 {
            // Early versions had five slots and left the sixth uninitialized.
            let [.., last] = &mut slots;
            *last = (0, 0);
        }
        Ok(BlockTransforms {
            slots,
            special: flags.wrapping_shr(4) & 7,
        })
    }

    /// Returns the block's filters in decoding order, for elements of `type_bytes` bytes.
    fn filters(&self, type_bytes: usize, version: u8) -> Result<Vec<BlockFilter>> {
        let mut filters = Vec::new();
        for &(number, told) in self.slots.iter().rev() {
            filters.push(match number {
                // Truncated precision (4) cannot be restored.
                0 | 4 => continue,
                1 if told == 0 => BlockFilter::Shuffle(type_bytes),
                1 => BlockFilter::Shuffle(told.into()),
                2 => BlockFilter::Bitshuffle {
                    whole_only: version <= 2,
                },
                3 => BlockFilter::Delta,
                _ => return Err(Error::unsupported(format!("Blosc2: filter {number}"), None)),
            });
        }
        // Differences refer to the decoded first block, so that delta can only be the first filter.
        let before_last = filters.split_last().map_or(&[][..], |(_, before)| before);
        if before_last.contains(&BlockFilter::Delta) {
            return Err(Error::unsupported("Blosc2: a filter before delta", None));
        }
        Ok(filters)
    }
}

/// Returns the element that a chunk with the special value `special` repeats: zero for 1,
/// not-a-number for 2, and zero for 4, uninitialized elements.
fn special_value(special: u8, type_bytes: usize) -> Result<Cow<'static, [u8]>> {
    match (special, type_bytes) {
        (1 | 4, _) => Ok(Cow::Borrowed(&[0])),
        (2, 4) => Ok(f32::NAN.to_le_bytes().to_vec().into()),
        (2, 8) => Ok(f64::NAN.to_le_bytes().to_vec().into()),
        _ => Err(Error::corrupt(
            format!("Blosc2: special value {special}"),
            None,
        )),
    }
}

impl BloscBlocks<'_> {
    /// Decodes the streams of block `number` into `output`, one after another.
    fn decode_streams(
        &self,
        number: usize,
        streams: usize,
        output: &mut [u8],
        context: &mut DecoderResources,
    ) -> Result<()> {
        let mut cursor = self.block_cursor(number)?;
        for output in output.chunks_mut(stream_bytes(output.len(), streams)?) {
            if let Some(raw) = self.decode_stream(&mut cursor, output, context)? {
                output.copy_from_slice(raw);
            }
        }
        Ok(())
    }

    /// Returns whether each of `streams` streams is one plane of a shuffle, and shuffle is the
    /// block's only filter.
    fn is_shuffled(&self, streams: usize) -> bool {
        streams > 1 && self.filters == [BlockFilter::Shuffle(streams)]
    }

    /// Decodes block `number`, whose streams are planes, into `output`. Uncompressed planes are
    /// read from the chunk directly. The other planes are first decompressed into `joined`, which
    /// has the block's length.
    fn decode_shuffled_streams(
        &self,
        number: usize,
        streams: usize,
        joined: &mut [u8],
        output: &mut [u8],
        context: &mut DecoderResources,
    ) -> Result<()> {
        let mut cursor = self.block_cursor(number)?;
        let mut planes = Vec::with_capacity(streams);
        for plane in joined.chunks_mut(stream_bytes(output.len(), streams)?) {
            let raw = self.decode_stream(&mut cursor, plane, context)?;
            planes.push(raw.unwrap_or(plane));
        }
        let plane = |byte: usize| planes.get(byte).copied().unwrap_or_default();
        shuffle::assemble_elements(plane, streams, output);
        Ok(())
    }

    /// Returns a cursor at the stored bytes of block `number`.
    fn block_cursor(&self, number: usize) -> Result<Cursor<'_>> {
        let start = self.starts.get(number).copied().map(u32::from_le_bytes);
        let start = to_usize(start.ok_or_else(damaged)?.into())?;
        let stored = self.chunk.get(start..).ok_or_else(damaged)?;
        Ok(Cursor::new(stored, None, "Blosc block"))
    }

    /// Decodes one stream of a block into `output`, or returns its bytes if they are stored
    /// uncompressed.
    ///
    /// A stream is an i32 length, then this number of bytes. Length 0 means that all decoded bytes
    /// are 0. A negative length means that all decoded bytes equal its absolute value, and a byte
    /// follows that confirms this.
    fn decode_stream<'a>(
        &self,
        cursor: &mut Cursor<'a>,
        output: &mut [u8],
        context: &mut DecoderResources,
    ) -> Result<Option<&'a [u8]>> {
        let length = i32::from_le_bytes(cursor.read_array()?);
        if length <= 0 {
            let byte = u8::try_from(length.unsigned_abs()).map_err(|_| damaged())?;
            if byte != 0 && cursor.u8()? & 1 == 0 {
                return Err(Error::unsupported("Blosc2: stream token", None));
            }
            output.fill(byte);
            return Ok(None);
        }
        let length = to_usize(length.unsigned_abs().into())?;
        let stored = cursor.read_bytes(length)?;
        if length == output.len() {
            return Ok(Some(stored));
        }
        // No codec adds more bytes. Without this check, many blocks could share one long stream
        // that decodes to few bytes.
        let most = output.len().plus(output.len().wrapping_shr(2)).plus(64);
        if length > most {
            return Err(damaged());
        }
        self.codec.decode_into(stored, output, context)?;
        Ok(None)
    }

    /// Reverses the filters of the block in `scratch.joined` and writes the elements into `output`.
    /// `first` is the decoded block 0.
    fn decode_filters(
        &self,
        type_bytes: usize,
        scratch: &mut Scratch<'_>,
        first: &[u8],
        output: &mut [u8],
    ) -> Result<()> {
        let Scratch {
            context,
            joined,
            other,
            planes,
        } = scratch;
        let mut filters = self.filters.as_slice();
        while let Some((filter, after)) = filters.split_first() {
            filters = after;
            if *filter == BlockFilter::Delta {
                undo_delta(type_bytes, first, joined);
                output.copy_from_slice(joined);
                return Ok(());
            }
            let to: &mut [u8] = if filters.is_empty() {
                output
            } else {
                resize_buffer(other, joined.len(), &context.pool)?
            };
            match *filter {
                BlockFilter::Shuffle(size) => unshuffle(joined, size, to),
                BlockFilter::Bitshuffle { whole_only } => {
                    let elements = joined.len().checked_div(type_bytes).unwrap_or(0);
                    if whole_only && elements & 7 != 0 {
                        to.copy_from_slice(joined);
                    } else {
                        unbitshuffle(joined, type_bytes, planes, to);
                    }
                }
                BlockFilter::Delta => {}
            }
            std::mem::swap(joined, other);
        }
        Ok(())
    }
}

/// Reverses the delta filter. The differences are exclusive ors of whole elements. In the first
/// block, each element was combined with the previous element. In any other block, it was combined
/// with the element of the first block at the same index.
fn undo_delta(type_bytes: usize, first: &[u8], block: &mut [u8]) {
    let unit = match type_bytes {
        1 | 2 | 4 | 8 => type_bytes,
        _ if type_bytes & 7 == 0 => 8,
        _ => 1,
    };
    let whole = block
        .len()
        .minus_or_zero(block.len().checked_rem(unit).unwrap_or(0));
    let block = block.get_mut(..whole).unwrap_or_default();
    if !first.is_empty() {
        block
            .iter_mut()
            .zip(first)
            .for_each(|(to, from)| *to ^= from);
        return;
    }
    let mut before = [0; 8];
    for element in block.chunks_exact_mut(unit) {
        for (byte, before) in element.iter_mut().zip(&mut before) {
            *byte ^= *before;
            *before = *byte;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decode(stored: &[u8], length: DecodedLength) -> Result<Vec<u8>> {
        super::decode(stored, length, &mut DecoderResources::default()).map(Buffer::into_vec)
    }

    // Chunks that hdf5plugin 7.1 stored for `np.arange(300) % 7` as `<u2`, level 9.
    const BLOSCLZ: &[u8] = &[
        2, 1, 1, 2, 88, 2, 0, 0, 88, 2, 0, 0, 57, 0, 0, 0, 20, 0, 0, 0, 16, 0, 0, 0, 38, 0, 1, 2,
        3, 4, 5, 6, 224, 255, 26, 6, 2, 3, 4, 5, 13, 0, 0, 0, 35, 0, 0, 0, 0, 224, 255, 29, 3, 2,
        0, 0, 0,
    ];
    const LZ4: &[u8] = &[
        2, 1, 36, 2, 88, 2, 0, 0, 88, 2, 0, 0, 78, 0, 0, 0, 20, 0, 0, 0, 25, 0, 0, 0, 239, 0, 0, 1,
        0, 2, 0, 3, 0, 4, 0, 5, 0, 6, 0, 14, 0, 255, 7, 80, 0, 1, 0, 2, 0, 25, 0, 0, 0, 239, 3, 0,
        4, 0, 5, 0, 6, 0, 0, 0, 1, 0, 2, 0, 14, 0, 255, 7, 80, 0, 4, 0, 5, 0,
    ];
    const SNAPPY: &[u8] = &[
        2, 1, 64, 2, 88, 2, 0, 0, 88, 2, 0, 0, 92, 0, 0, 0, 20, 0, 0, 0, 32, 0, 0, 0, 172, 2, 52,
        0, 0, 1, 0, 2, 0, 3, 0, 4, 0, 5, 0, 6, 0, 254, 14, 0, 254, 14, 0, 254, 14, 0, 254, 14, 0,
        118, 14, 0, 32, 0, 0, 0, 172, 2, 52, 3, 0, 4, 0, 5, 0, 6, 0, 0, 0, 1, 0, 2, 0, 254, 14, 0,
        254, 14, 0, 254, 14, 0, 254, 14, 0, 118, 14, 0,
    ];
    const ZLIB: &[u8] = &[
        2, 1, 97, 2, 88, 2, 0, 0, 88, 2, 0, 0, 60, 0, 0, 0, 20, 0, 0, 0, 19, 0, 0, 0, 120, 218, 99,
        96, 100, 98, 102, 97, 101, 99, 24, 165, 8, 83, 0, 13, 176, 3, 130, 13, 0, 0, 0, 120, 218,
        99, 96, 24, 5, 196, 2, 0, 1, 44, 0, 1,
    ];
    const ZSTD: &[u8] = &[
        2, 1, 148, 2, 88, 2, 0, 0, 88, 2, 0, 0, 56, 0, 0, 0, 20, 0, 0, 0, 32, 0, 0, 0, 40, 181, 47,
        253, 96, 88, 1, 181, 0, 0, 120, 0, 0, 1, 0, 2, 0, 3, 0, 4, 0, 5, 0, 6, 0, 0, 1, 0, 70, 162,
        154, 117,
    ];
    /// The same numbers encoded by Blosc 2 with LZ4 and delta. The frame's header and index are
    /// removed.
    const DELTA: &[u8] = &[
        5, 1, 61, 2, 88, 2, 0, 0, 88, 2, 0, 0, 68, 0, 0, 0, 0, 0, 0, 0, 0, 3, 1, 0, 0, 0, 0, 0, 0,
        0, 0, 0, 36, 0, 0, 0, 28, 0, 0, 0, 145, 0, 0, 1, 0, 3, 0, 1, 0, 7, 8, 0, 17, 6, 6, 0, 15,
        14, 0, 255, 255, 46, 80, 0, 7, 0, 1, 0,
    ];

    fn numbers() -> Vec<u8> {
        (0..300_u16)
            .flat_map(|place| (place % 7).to_le_bytes())
            .collect()
    }

    #[test]
    fn every_codec_and_filter() {
        for chunk in [BLOSCLZ, LZ4, SNAPPY, ZLIB, ZSTD, DELTA] {
            assert_eq!(
                decode(chunk, DecodedLength::Exactly(600)),
                Ok(numbers()),
                "{chunk:?}"
            );
            assert!(decode(chunk, DecodedLength::Exactly(599)).is_err());
            assert!(decode(chunk, DecodedLength::AtMost(599)).is_err());
        }
    }

    #[test]
    fn damage_never_panics_and_truncation_is_detected() {
        for chunk in [BLOSCLZ, LZ4, SNAPPY, ZLIB, ZSTD, DELTA] {
            for end in 0..chunk.len() {
                assert!(
                    decode(&chunk[..end], DecodedLength::Exactly(600)).is_err(),
                    "{end}"
                );
            }
            for bit in 0..chunk.len() * 8 {
                let mut damaged = chunk.to_vec();
                damaged[bit / 8] ^= 1 << (bit % 8);
                let _ = decode(&damaged, DecodedLength::AtMost(600));
            }
        }
    }

    /// Returns a Blosc 2 header with version 5, both shuffle flags, a type of 4 bytes, 12 bytes,
    /// and the given kind of special value.
    fn special(kind: u8, value: &[u8]) -> Vec<u8> {
        let mut chunk = vec![5, 1, 5, 4, 12, 0, 0, 0, 12, 0, 0, 0, 32, 0, 0, 0];
        chunk[12] += value.len() as u8;
        chunk.extend([0; 15]);
        chunk.push(kind << 4);
        chunk.extend(value);
        chunk
    }

    #[test]
    fn a_chunk_may_be_one_value() {
        let length = DecodedLength::Exactly(12);
        assert_eq!(decode(&special(1, &[]), length), Ok(vec![0; 12]));
        assert_eq!(decode(&special(4, &[]), length), Ok(vec![0; 12]));
        assert_eq!(
            decode(&special(3, b"abcd"), length),
            Ok(b"abcdabcdabcd".to_vec())
        );
        assert_eq!(
            decode(&special(2, &[]), length),
            Ok([0, 0, 0xc0, 0x7f].repeat(3))
        );
        assert!(decode(&special(3, &[]), length).is_err());
        assert!(decode(&special(5, &[]), length).is_err());
    }
}
