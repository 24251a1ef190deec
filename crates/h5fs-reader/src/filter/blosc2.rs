//! Filter 32026, Blosc2: a contiguous frame of Blosc 2 chunks. With the metalayer `b2nd`, the frame
//! contains one chunk whose blocks are boxes of an n-dimensional array.
//!
//! The fields of the frame's header are at fixed offsets. Each field is big-endian and preceded by
//! a MessagePack type byte. The chunks follow, then a chunk with their offsets, which are
//! little-endian and relative to the end of the header. If the highest bit of an offset is set, the
//! chunk consists of one special value. (Blosc's README_CFRAME_FORMAT.)

mod b2nd;
mod size;

use crate::error::{Error, Result};
use crate::filter::blosc::Chunk;
use crate::filter::{DecodedLength, DecoderResources};
use crate::memory::buffer::Buffer;
use crate::wire::{Cursor, to_usize};
use b2nd::BlockGrid;
use size::{read_size_i32, read_size_i64};

/// The first bytes of every contiguous frame.
const SIGNATURE: &[u8] = b"\x9e\xa8b2frame\0";

/// Returns the decoded bytes of a contiguous frame.
///
/// # Errors
/// `Corrupt` for damaged or truncated bytes, or a decoded length that `length` does not allow.
/// `Unsupported` for codecs and filters of plugins, chunks of varying length, and arrays of several
/// chunks.
pub fn decode(
    bytes: &[u8],
    length: DecodedLength,
    context: &mut DecoderResources,
) -> Result<Buffer> {
    let frame = Frame::new(bytes)?;
    let layer = match frame.metalayer(b"b2nd")? {
        Some(layer) => Some(layer),
        // The former name of this metalayer, before it became part of Blosc 2. The content is the
        // same.
        None => frame.metalayer(b"caterva")?,
    };
    match layer {
        Some(layer) => {
            frame.decode_array(&BlockGrid::new(layer, frame.type_bytes)?, length, context)
        }
        None => frame.decode_plain(length, context),
    }
}

/// A contiguous frame whose header was read.
#[derive(Debug)]
struct Frame<'a> {
    header: &'a [u8],
    /// The chunks and all bytes after them.
    chunks: &'a [u8],
    /// Number of decoded bytes of all chunks.
    bytes: usize,
    /// Number of stored bytes of all chunks.
    stored: usize,
    type_bytes: usize,
    /// Number of decoded bytes of every chunk except the last.
    chunk_bytes: usize,
}

impl<'a> Frame<'a> {
    fn new(bytes: &'a [u8]) -> Result<Self> {
        let mut cursor = Cursor::new(bytes, None, "Blosc2 frame");
        cursor.expect_signature(SIGNATURE)?;
        cursor.skip(1)?;
        let header_bytes = read_size_i32(&mut cursor)?;
        cursor.skip(1)?;
        let frame_bytes = read_size_i64(&mut cursor)?;
        cursor.skip(1)?;
        let [flags, kind, _, _]: [u8; 4] = cursor.read_array()?;
        cursor.skip(1)?;
        let total = read_size_i64(&mut cursor)?;
        cursor.skip(1)?;
        let stored = read_size_i64(&mut cursor)?;
        cursor.skip(1)?;
        let type_bytes = read_size_i32(&mut cursor)?;
        // The type byte, the size of blocks, and the next type byte.
        cursor.skip(6)?;
        let chunk_bytes = read_size_i32(&mut cursor)?;
        if kind & 0xf != 0 || flags & 0xc0 != 0 || (chunk_bytes == 0 && total > 0) {
            return Err(cursor.unsupported("sparse, or chunks of varying length"));
        }
        // In a truncated frame, the offsets of chunks could be misread as offsets of special
        // chunks.
        let frame = bytes.get(..frame_bytes);
        let parts = frame.and_then(|frame| frame.split_at_checked(header_bytes));
        let Some((header, chunks)) = parts else {
            return Err(cursor.corrupt("ends too early"));
        };
        Ok(Frame {
            header,
            chunks,
            bytes: total,
            stored,
            type_bytes,
            chunk_bytes,
        })
    }

    /// Returns the content of the metalayer called `name`, if it exists. The header contains a list
    /// of names and offsets, and each offset refers to a MessagePack `bin 32`.
    fn metalayer(&self, name: &[u8]) -> Result<Option<&'a [u8]>> {
        const LIST: usize = 0x57;
        let mut cursor = Cursor::new(self.header, None, "Blosc2 frame");
        cursor.skip(LIST)?;
        if cursor.remaining() == 0 {
            return Ok(None);
        }
        // An array of three: bytes of the list as u16, then a map with the following number of
        // entries.
        cursor.skip(5)?;
        let count = u16::from_be_bytes(cursor.read_array()?);
        for _ in 0..count {
            let length = usize::from(cursor.u8()? & 0x1f);
            let key = cursor.read_bytes(length)?;
            cursor.skip(1)?;
            let offset = read_size_i32(&mut cursor)?;
            if key == name {
                let mut cursor = Cursor::new(self.header, None, "Blosc2 frame");
                cursor.skip(offset)?;
                cursor.skip(1)?;
                let length = read_size_i32(&mut cursor)?;
                return cursor.read_bytes(length).map(Some);
            }
        }
        Ok(None)
    }

    /// Returns the offsets of the `count` chunks, each as eight little-endian bytes.
    fn offsets(&self, count: usize, context: &mut DecoderResources) -> Result<Vec<u8>> {
        let index = self.chunks.get(self.stored..).ok_or_else(damaged)?;
        let index = Chunk::new(index)?;
        let bytes = count.checked_mul(8).ok_or_else(damaged)?;
        // The index must have one offset for each chunk, and no chunk is empty. The length of the
        // output therefore bounds the index.
        DecodedLength::Exactly(bytes).check("Blosc2 frame", index.bytes)?;
        let mut offsets = vec![0; bytes];
        index.decode_into(&mut offsets, context)?;
        Ok(offsets)
    }

    /// Returns the chunk at `offset`, which must decode to `bytes` bytes. If the chunk is a special
    /// value, its blocks have `block_bytes` bytes.
    fn chunk(&self, offset: [u8; 8], bytes: usize, block_bytes: usize) -> Result<Chunk<'a>> {
        let [.., special] = offset;
        if special & 0x80 != 0 {
            return Chunk::special(special & 7, self.type_bytes, bytes, block_bytes);
        }
        let offset = to_usize(u64::from_le_bytes(offset))?;
        let chunk = Chunk::new(self.chunks.get(offset..).ok_or_else(damaged)?)?;
        DecodedLength::Exactly(bytes).check("Blosc2 chunk", chunk.bytes)?;
        Ok(chunk)
    }

    /// Decodes a frame without an array: its chunks, one after another.
    fn decode_plain(
        &self,
        length: DecodedLength,
        context: &mut DecoderResources,
    ) -> Result<Buffer> {
        let mut output = context
            .pool
            .buffer(length.check("Blosc2 frame", self.bytes)?)?;
        let chunk_bytes = self.chunk_bytes.max(1);
        let offsets = self.offsets(output.len().div_ceil(chunk_bytes), context)?;
        for (chunk, offset) in output.chunks_mut(chunk_bytes).zip(offsets.as_chunks().0) {
            self.chunk(*offset, chunk.len(), chunk.len())?
                .decode_into(chunk, context)?;
        }
        Ok(output)
    }

    fn decode_array(
        &self,
        boxes: &BlockGrid,
        length: DecodedLength,
        context: &mut DecoderResources,
    ) -> Result<Buffer> {
        let total = length.check("Blosc2 array", boxes.array_bytes())?;
        let offsets = self.offsets(1, context)?;
        let offset = offsets.first_chunk().ok_or_else(damaged)?;
        let chunk = self.chunk(*offset, boxes.padded_bytes(), boxes.block_bytes())?;
        let mut output = context.pool.buffer(total)?;
        boxes.decode_into(&chunk, &mut output, context)?;
        Ok(output)
    }
}

fn damaged() -> Error {
    Error::corrupt("Blosc2: damaged frame", None)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decode(stored: &[u8], length: DecodedLength) -> Result<Vec<u8>> {
        super::decode(stored, length, &mut DecoderResources::default()).map(Buffer::into_vec)
    }

    /// Chunks that hdf5plugin 7.1 stored for `np.arange(12, dtype='<i2')`, and for the same numbers
    /// in the shape of 3 by 4.
    const PLAIN: &[u8] = &[
        158, 168, 98, 50, 102, 114, 97, 109, 101, 0, 210, 0, 0, 0, 97, 207, 0, 0, 0, 0, 0, 0, 0,
        228, 164, 18, 0, 81, 3, 211, 0, 0, 0, 0, 0, 0, 0, 24, 211, 0, 0, 0, 0, 0, 0, 0, 56, 210, 0,
        0, 0, 2, 210, 0, 0, 0, 24, 210, 0, 0, 0, 24, 209, 0, 0, 209, 0, 1, 194, 216, 6, 0, 0, 0, 0,
        0, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 147, 205, 0, 7, 222, 0, 0, 220, 0, 0, 5, 1, 7, 2, 24,
        0, 0, 0, 24, 0, 0, 0, 56, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1,
        0, 2, 0, 3, 0, 4, 0, 5, 0, 6, 0, 7, 0, 8, 0, 9, 0, 10, 0, 11, 0, 5, 1, 7, 8, 8, 0, 0, 0, 8,
        0, 0, 0, 40, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
        0, 148, 1, 147, 205, 0, 6, 222, 0, 0, 220, 0, 0, 206, 0, 0, 0, 35, 216, 0, 0, 0, 0, 0, 0,
        0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
    ];
    const ARRAY: &[u8] = &[
        158, 168, 98, 50, 102, 114, 97, 109, 101, 0, 210, 0, 0, 0, 165, 207, 0, 0, 0, 0, 0, 0, 1,
        40, 164, 18, 0, 21, 3, 211, 0, 0, 0, 0, 0, 0, 0, 24, 211, 0, 0, 0, 0, 0, 0, 0, 56, 210, 0,
        0, 0, 2, 210, 0, 0, 0, 24, 210, 0, 0, 0, 24, 209, 0, 0, 209, 0, 1, 194, 216, 6, 0, 0, 0, 0,
        0, 1, 5, 0, 0, 0, 0, 0, 0, 0, 0, 0, 147, 205, 0, 17, 222, 0, 1, 164, 98, 50, 110, 100, 210,
        0, 0, 0, 107, 220, 0, 1, 198, 0, 0, 0, 53, 151, 0, 2, 146, 211, 0, 0, 0, 0, 0, 0, 0, 3,
        211, 0, 0, 0, 0, 0, 0, 0, 4, 146, 210, 0, 0, 0, 3, 210, 0, 0, 0, 4, 146, 210, 0, 0, 0, 3,
        210, 0, 0, 0, 4, 0, 219, 0, 0, 0, 3, 124, 86, 50, 5, 1, 7, 2, 24, 0, 0, 0, 24, 0, 0, 0, 56,
        0, 0, 0, 0, 0, 0, 0, 0, 1, 5, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 2, 0, 3, 0, 4, 0, 5,
        0, 6, 0, 7, 0, 8, 0, 9, 0, 10, 0, 11, 0, 5, 1, 7, 8, 8, 0, 0, 0, 8, 0, 0, 0, 40, 0, 0, 0,
        0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 148, 1, 147, 205,
        0, 6, 222, 0, 0, 220, 0, 0, 206, 0, 0, 0, 35, 216, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
        0, 0, 0, 0,
    ];
    /// The frame for 3 by 4 zeros, which contains no chunk.
    const ZEROS: &[u8] = &[
        158, 168, 98, 50, 102, 114, 97, 109, 101, 0, 210, 0, 0, 0, 165, 207, 0, 0, 0, 0, 0, 0, 1,
        40, 164, 18, 0, 81, 3, 211, 0, 0, 0, 0, 0, 0, 0, 24, 211, 0, 0, 0, 0, 0, 0, 0, 56, 210, 0,
        0, 0, 2, 210, 0, 0, 0, 24, 210, 0, 0, 0, 24, 209, 0, 0, 209, 0, 1, 194, 216, 6, 0, 0, 0, 0,
        0, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 147, 205, 0, 17, 222, 0, 1, 164, 98, 50, 110, 100, 210,
        0, 0, 0, 107, 220, 0, 1, 198, 0, 0, 0, 53, 151, 0, 2, 146, 211, 0, 0, 0, 0, 0, 0, 0, 3,
        211, 0, 0, 0, 0, 0, 0, 0, 4, 146, 210, 0, 0, 0, 3, 210, 0, 0, 0, 4, 146, 210, 0, 0, 0, 3,
        210, 0, 0, 0, 4, 0, 219, 0, 0, 0, 3, 124, 86, 50, 5, 1, 7, 2, 24, 0, 0, 0, 24, 0, 0, 0, 56,
        0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
        0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 5, 1, 7, 8, 8, 0, 0, 0, 8, 0, 0, 0, 40, 0, 0, 0, 0,
        0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 148, 1, 147, 205, 0,
        6, 222, 0, 0, 220, 0, 0, 206, 0, 0, 0, 35, 216, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
        0, 0, 0,
    ];

    #[test]
    fn frames_and_arrays() {
        let numbers: Vec<u8> = (0..12_i16).flat_map(i16::to_le_bytes).collect();
        assert_eq!(
            decode(PLAIN, DecodedLength::Exactly(24)),
            Ok(numbers.clone())
        );
        assert_eq!(decode(ARRAY, DecodedLength::Exactly(24)), Ok(numbers));
        assert_eq!(decode(ZEROS, DecodedLength::Exactly(24)), Ok(vec![0; 24]));
    }

    #[test]
    fn a_cut_frame_is_corrupt() {
        for frame in [PLAIN, ARRAY, ZEROS] {
            for lost in 0..frame.len() {
                let cut = [&frame[..lost], &frame[lost + 1..]].concat();
                let decoded = decode(&cut, DecodedLength::Exactly(24));
                assert!(decoded.is_err(), "without byte {lost}: {decoded:?}");
            }
        }
    }

    #[test]
    fn damage_never_panics_and_length_is_checked() {
        for frame in [PLAIN, ARRAY, ZEROS] {
            assert!(decode(frame, DecodedLength::Exactly(26)).is_err());
            assert!(decode(frame, DecodedLength::AtMost(23)).is_err());
            for end in 0..frame.len() {
                let _ = decode(&frame[..end], DecodedLength::AtMost(24));
            }
            for bit in 0..frame.len() * 8 {
                let mut damaged = frame.to_vec();
                damaged[bit / 8] ^= 1 << (bit % 8);
                let _ = decode(&damaged, DecodedLength::AtMost(24));
            }
        }
        assert!(decode(b"", DecodedLength::AtMost(24)).is_err());
    }
}
