//! Blocks that are chunks one after another, each compressed for itself, each with its length.

use crate::asdf::compression::Encoded;
use crate::asdf::scan;
use crate::error::{Error, Result};
use crate::filter::{self, Length};
use crate::limits;
use crate::model::buffer::Buffer;
use crate::model::storage::Pieces;
use crate::wire::{to_u64, to_usize};

/// What a chunk is compressed with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChunkCodec {
    /// u32 little-endian decoded length, then an LZ4 block.
    Lz4,
    /// A Blosc-1 buffer.
    Blosc,
}

/// The chunks of a block. Pieces are as long as the longest decoded chunk, and are the chunks where
/// these are equal but for the last, as all known writers make them.
#[derive(Debug)]
pub struct ChunkTable {
    encoded: Encoded,
    codec: ChunkCodec,
    chunks: Vec<Chunk>,
    longest: u64,
}

#[derive(Debug, Clone, Copy)]
struct Chunk {
    /// Offset of the stored bytes, after their length.
    offset: u64,
    stored: u32,
    /// Offset of the decoded bytes in the block's content.
    start: u64,
    decoded: u32,
}

impl Chunk {
    fn end(&self) -> u64 {
        self.start.saturating_add(u64::from(self.decoded))
    }
}

impl ChunkTable {
    /// Walks the chunks' headers, one small read each.
    ///
    /// # Errors
    /// `Corrupt` where they do not fill the block or do not give as many bytes as the block header
    /// says, `Limit` for too many.
    pub fn new(encoded: Encoded, codec: ChunkCodec) -> Result<Self> {
        let end = encoded.offset.saturating_add(encoded.stored);
        let mut chunks = Vec::new();
        let (mut at, mut start, mut longest) = (encoded.offset, 0_u64, 1_u64);
        while at < end {
            if chunks.len() >= limits::BLOCK_CHUNKS {
                let most = to_u64(limits::BLOCK_CHUNKS);
                return Err(Error::limit("chunks of a compressed block", most));
            }
            let chunk = chunk_at(&encoded, codec, at, start)?;
            at = chunk.offset.saturating_add(u64::from(chunk.stored));
            if at > end {
                return Err(Error::corrupt("block: a chunk reaches past its end", at));
            }
            start = chunk.end();
            longest = longest.max(u64::from(chunk.decoded));
            chunks.push(chunk);
        }
        if start != encoded.decoded {
            let what = format!("block: decodes to {start} bytes, not {}", encoded.decoded);
            return Err(Error::corrupt(what, encoded.offset));
        }
        Ok(ChunkTable {
            encoded,
            codec,
            chunks,
            longest,
        })
    }

    fn chunk(&self, chunk: Chunk) -> Result<Buffer> {
        let source = &*self.encoded.source;
        let stored = Buffer::read(source, chunk.offset, u64::from(chunk.stored), "chunk")?;
        let length = Length::Exactly(to_usize(u64::from(chunk.decoded))?);
        match self.codec {
            ChunkCodec::Lz4 => filter::lz4::block(stored.get(4..).unwrap_or_default(), length),
            ChunkCodec::Blosc => filter::blosc::decode(&stored, length),
        }
        .map_err(|error| self.encoded.placed(error))
    }
}

/// The chunk whose length stands at `at`.
fn chunk_at(encoded: &Encoded, codec: ChunkCodec, at: u64, start: u64) -> Result<Chunk> {
    let header = scan::piece(&*encoded.source, at..at.saturating_add(12))?;
    let cut = || Error::corrupt("block: a chunk's header is cut", at);
    let word = |place: usize| -> Result<[u8; 4]> {
        let bytes = header.get(place..place.saturating_add(4)).ok_or_else(cut)?;
        bytes.try_into().map_err(|_| cut())
    };
    let stored = u32::from_be_bytes(word(0)?);
    let decoded = u32::from_le_bytes(match codec {
        ChunkCodec::Lz4 => word(4)?,
        ChunkCodec::Blosc => word(8)?,
    });
    // An LZ4 block cannot expand by more; a larger claim would be memory for nothing.
    let most = match codec {
        ChunkCodec::Lz4 => stored.saturating_mul(256),
        ChunkCodec::Blosc => u32::MAX,
    };
    if stored == 0 || decoded == 0 || decoded > most {
        return Err(Error::corrupt("block: a chunk of impossible length", at));
    }
    Ok(Chunk {
        offset: at.saturating_add(4),
        stored,
        start,
        decoded,
    })
}

impl Pieces for ChunkTable {
    fn bytes(&self) -> u64 {
        self.encoded.decoded
    }

    fn piece_bytes(&self) -> u64 {
        self.longest
    }

    fn stored_bytes(&self) -> u64 {
        self.encoded.stored
    }

    fn decode(&self, piece: u64) -> Result<Buffer> {
        let start = piece.saturating_mul(self.longest);
        let end = start.saturating_add(self.longest).min(self.encoded.decoded);
        if start >= end {
            return Err(Error::NotFound);
        }
        let first = self.chunks.partition_point(|chunk| chunk.end() <= start);
        let overlapping = self.chunks.iter().skip(first);
        let mut bytes = Vec::new();
        for &chunk in overlapping.take_while(|chunk| chunk.start < end) {
            let decoded = self.chunk(chunk)?;
            if chunk.start == start && chunk.end() == end {
                return Ok(decoded);
            }
            let from = to_usize(start.saturating_sub(chunk.start))?;
            let to = to_usize(end.min(chunk.end()).saturating_sub(chunk.start))?;
            bytes.extend_from_slice(decoded.get(from..to).unwrap_or_default());
        }
        Ok(bytes.into())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::source::memory::MemorySource;

    /// A chunk whose LZ4 block is one run of literals.
    fn chunk(literals: &[u8]) -> Vec<u8> {
        let length = u32::try_from(literals.len()).unwrap();
        let token = u8::try_from(length << 4).unwrap();
        let stored = (length + 5).to_be_bytes();
        [&stored[..], &length.to_le_bytes(), &[token], literals].concat()
    }

    fn table(bytes: Vec<u8>, decoded: u64) -> Result<ChunkTable> {
        let stored = u64::try_from(bytes.len()).unwrap();
        let encoded = Encoded {
            source: Arc::new(MemorySource::new(bytes)),
            offset: 0,
            stored,
            decoded,
        };
        ChunkTable::new(encoded, ChunkCodec::Lz4)
    }

    #[test]
    fn chunks_of_any_length_give_pieces_of_one() {
        let bytes = [chunk(b"abc"), chunk(b"defgh"), chunk(b"i"), chunk(b"jkl")].concat();
        let table = table(bytes, 12).unwrap();
        assert_eq!(table.piece_bytes(), 5);
        for (piece, bytes) in (0..).zip([&b"abcde"[..], b"fghij", b"kl"]) {
            assert_eq!(*table.decode(piece).unwrap(), *bytes);
        }
        assert_eq!(table.decode(3), Err(Error::NotFound));
    }

    #[test]
    fn lengths_that_contradict_are_corrupt() {
        assert!(table(chunk(b"abc"), 4).is_err());
        assert!(table(vec![0; 12], 0).is_err());
        assert!(table(b"\0\0\0\x05\xff\xff\xff\xff\0".to_vec(), 0xffff_ffff).is_err());
        assert!(table(chunk(b"abc")[..7].to_vec(), 3).is_err());
    }
}
