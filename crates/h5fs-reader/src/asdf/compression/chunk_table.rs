//! Blocks that consist of consecutive chunks, each compressed independently and preceded by its
//! length.

use std::ops::Range;
use std::sync::{Arc, Mutex, OnceLock};

use crate::asdf::compression::encoded::EncodedBlock;
use crate::asdf::window::Window;
use crate::error::{Error, Result};
use crate::filter::{self, DecodedLength, DecoderResources};
use crate::limits;
use crate::memory::buffer::Buffer;
use crate::memory::lock::lock;
use crate::memory::marks::CheckpointList;
use crate::memory::shared_lru::{FileLru, SharedLru};
use crate::model::storage::{DecodeContext, PieceDecoder, StoredExtent};
use crate::source::read_buffer;
use crate::wire::{Count, Extent, to_u64, to_usize};

/// Maximum number of chunks of one ASDF block whose positions are kept. Any other chunk is found by
/// a walk from the last kept position before it.
const CHUNK_MARKS: usize = 1 << 16;

/// Maximum number of bytes of the chunk positions in ASDF blocks, for all files of a mount
/// together. Enough for four blocks with the maximum number of chunks.
const CHUNK_TABLES: u64 = 5 << 20;

/// The compression of a chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChunkCodec {
    /// A u32 little-endian decoded length, then an LZ4 block.
    Lz4,
    /// A Blosc-1 buffer.
    Blosc,
}

/// The chunks of a block. All pieces have the length of the longest decoded chunk. If all chunks
/// except the last have equal length, as from all known writers, pieces and chunks are identical.
#[derive(Debug)]
pub struct ChunkTable {
    encoded: EncodedBlock,
    codec: ChunkCodec,
    longest: OnceLock<LongestChunk>,
    tables: Arc<ChunkTables>,
    /// Locked while the chunk headers are read, so that only one thread reads them. The order in
    /// which the array engine decodes pieces does not ensure this: the headers are needed before
    /// the array is opened, and pieces are decoded in parallel. Decoding a piece may need the
    /// headers again, if `tables` has evicted the positions.
    walking: Mutex<()>,
}

/// The maximum stored length and the maximum decoded length of a block's chunks, in bytes.
#[derive(Debug, Default, Clone, Copy)]
struct LongestChunk {
    stored: u64,
    decoded: u64,
}

/// The position of a chunk in the file and in the content of its block.
#[derive(Debug, Clone, Copy)]
struct ChunkMark {
    /// The file offset of the chunk's length field.
    at: u64,
    /// The offset of the chunk's decoded bytes in the block's content.
    start: u64,
}

#[derive(Debug, Clone, Copy)]
struct Chunk {
    /// The stored bytes after the length field.
    stored: Extent,
    /// The chunk's decoded bytes as a range of the block's content.
    content: Extent,
}

/// The positions of the chunks of one file's blocks, by the blocks' offsets.
#[derive(Debug)]
pub struct ChunkTables(FileLru<u64, Arc<[ChunkMark]>>);

/// The chunk tables of all files of a mount, with one limit on their memory.
#[derive(Debug, Clone)]
pub struct SharedChunkTables(Arc<SharedLru<u64, Arc<[ChunkMark]>>>);

impl Default for SharedChunkTables {
    fn default() -> Self {
        SharedChunkTables(SharedLru::new(CHUNK_TABLES))
    }
}

impl ChunkTables {
    /// Returns empty tables for a new file. All files share the memory limit of `all`.
    pub fn new(all: &SharedChunkTables) -> Self {
        ChunkTables(FileLru::new(&all.0))
    }
}

/// A walk over the chunk headers of a block, from one chunk to the next.
struct ChunkWalk<'a> {
    encoded: &'a EncodedBlock,
    codec: ChunkCodec,
    window: Window<'a>,
    next: ChunkMark,
}

impl ChunkWalk<'_> {
    /// Returns the next chunk, or `None` after the last.
    fn next(&mut self) -> Result<Option<Chunk>> {
        let ChunkMark { at, start } = self.next;
        let end = self.encoded.stored.end();
        if at >= end {
            return Ok(None);
        }
        let header = self.window.piece(Extent::saturating(at, 12))?;
        let chunk = parse_chunk_header(header, self.codec, at, start)?;
        let after = chunk.stored.end();
        if after > end {
            return Err(Error::corrupt("block: a chunk ends after the block", after));
        }
        self.next = ChunkMark {
            at: after,
            start: chunk.content.end(),
        };
        Ok(Some(chunk))
    }
}

impl ChunkTable {
    /// Creates the block. Its chunk headers are read when they are first needed, and the positions
    /// of the chunks are cached in `tables`.
    pub fn new(encoded: EncodedBlock, codec: ChunkCodec, tables: &Arc<ChunkTables>) -> Self {
        ChunkTable {
            encoded,
            codec,
            longest: OnceLock::new(),
            tables: Arc::clone(tables),
            walking: Mutex::default(),
        }
    }

    fn walk(&self, from: ChunkMark) -> ChunkWalk<'_> {
        ChunkWalk {
            encoded: &self.encoded,
            codec: self.codec,
            window: Window::new(&*self.encoded.source),
            next: from,
        }
    }

    /// Returns the positions of evenly spaced chunks, ascending. These are all chunks of the block
    /// if it has fewer than `CHUNK_MARKS`.
    ///
    /// # Errors
    /// `Corrupt` if the chunks do not fill the block or their decoded length differs from the block
    /// header, `Limit` for too many chunks.
    fn marks(&self) -> Result<Arc<[ChunkMark]>> {
        let _alone = lock(&self.walking);
        if let Some(marks) = self.tables.0.get(self.encoded.block_offset) {
            return Ok(marks);
        }
        let marks: Arc<[ChunkMark]> = self.find_marks()?.into();
        let weight = to_u64(size_of_val(&*marks));
        self.tables
            .0
            .put(self.encoded.block_offset, Arc::clone(&marks), weight);
        Ok(marks)
    }

    fn find_marks(&self) -> Result<Vec<ChunkMark>> {
        let mut walk = self.walk(ChunkMark {
            at: self.encoded.stored.start(),
            start: 0,
        });
        let mut longest = LongestChunk::default();
        let mut marks = CheckpointList::new(CHUNK_MARKS, 1);
        for number in 0.. {
            let mark = walk.next;
            let Some(chunk) = walk.next()? else {
                break;
            };
            let most = to_u64(limits::BLOCK_CHUNKS);
            Error::check_room(number, most, "chunks of a compressed block")?;
            longest.stored = longest.stored.max(chunk.stored.length());
            longest.decoded = longest.decoded.max(chunk.content.length());
            marks.record(number, || mark);
        }
        let decoded = walk.next.start;
        if decoded != self.encoded.decoded {
            let what = format!(
                "block: decodes to {decoded} bytes, not {}",
                self.encoded.decoded
            );
            return Err(self.encoded.with_offset(Error::corrupt(what, None)));
        }
        self.longest.get_or_init(|| longest);
        Ok(marks.into_states().collect())
    }

    fn longest(&self) -> Result<LongestChunk> {
        if self.longest.get().is_none() {
            self.marks()?;
        }
        self.longest.get().copied().ok_or(Error::NotFound)
    }

    fn chunk(&self, chunk: Chunk, help: &DecodeContext<'_>) -> Result<Buffer> {
        let context = &mut DecoderResources::new(help.pool);
        let source = &*self.encoded.source;
        let stored = (chunk.stored.start(), chunk.stored.length());
        let stored = read_buffer(source, stored, (help.pool, help.is_wanted), "chunk")?;
        let length = DecodedLength::Exactly(to_usize(chunk.content.length())?);
        match self.codec {
            ChunkCodec::Lz4 => {
                filter::lz4::decode_block(stored.get(4..).unwrap_or_default(), length, context)
            }
            ChunkCodec::Blosc => filter::blosc::decode(&stored, length, context),
        }
        .map_err(|error| self.encoded.with_offset(error))
    }
}

/// Parses the header of the chunk whose length field is at the file offset `at`. `header` contains
/// the bytes from this offset on. `start` is the offset of the chunk's content in the block's
/// content.
fn parse_chunk_header(header: &[u8], codec: ChunkCodec, at: u64, start: u64) -> Result<Chunk> {
    let cut = || Error::corrupt("block: the header of a chunk is truncated", at);
    let word = |place: usize| -> Result<[u8; 4]> {
        let bytes = header.get(place..).and_then(<[u8]>::first_chunk);
        bytes.copied().ok_or_else(cut)
    };
    let stored = u32::from_be_bytes(word(0)?);
    let decoded = u32::from_le_bytes(match codec {
        ChunkCodec::Lz4 => word(4)?,
        ChunkCodec::Blosc => word(8)?,
    });
    // LZ4 cannot expand data further. A larger claim would only waste memory.
    let most = match codec {
        ChunkCodec::Lz4 => stored.times(256),
        ChunkCodec::Blosc => u32::MAX,
    };
    // Compression does not add that much to incompressible bytes either.
    let overhead = u64::from(decoded / 8).plus(to_u64(limits::FILTER_OVERHEAD));
    let is_too_long = u64::from(stored) > u64::from(decoded).plus(overhead);
    if stored == 0 || decoded == 0 || decoded > most || is_too_long {
        return Err(Error::corrupt(
            "block: the length of a chunk is not possible",
            at,
        ));
    }
    let whole = Extent::new(at, u64::from(stored).plus(4), "chunk of a block")?;
    Ok(Chunk {
        stored: whole.skip(4),
        content: Extent::new(start, u64::from(decoded), "content of a block")?,
    })
}

impl PieceDecoder for ChunkTable {
    fn byte_length(&self) -> u64 {
        self.encoded.decoded
    }

    fn piece_bytes(&self) -> Result<u64> {
        Ok(self.longest()?.decoded.max(1))
    }

    fn max_stored_bytes(&self) -> Result<u64> {
        Ok(self.longest()?.stored)
    }

    fn stored_bytes(&self) -> u64 {
        self.encoded.stored.length()
    }

    fn stored_extents(&self, pieces: Range<u64>) -> Vec<StoredExtent> {
        self.encoded
            .estimated_extents(pieces, self.piece_bytes().unwrap_or(1))
    }

    fn decode(&self, piece: u64, help: &mut DecodeContext<'_>) -> Result<Buffer> {
        let longest = self.piece_bytes()?;
        let wanted = self.encoded.piece(piece, longest);
        let marks = self.marks()?;
        let after = marks.partition_point(|mark| mark.start <= wanted.start());
        let mark = after.checked_sub(1).and_then(|place| marks.get(place));
        let mark = mark.filter(|_| !wanted.is_empty()).ok_or(Error::NotFound)?;
        let mut walk = self.walk(*mark);
        let mut bytes = Vec::new();
        while walk.next.start < wanted.end()
            && let Some(chunk) = walk.next()?
        {
            let part = chunk.content.intersect(wanted);
            if part.is_empty() {
                continue;
            }
            let decoded = self.chunk(chunk, help)?;
            if chunk.content == wanted {
                return Ok(decoded);
            }
            let from = to_usize(part.start().minus_or_zero(chunk.content.start()))?;
            let to = to_usize(part.end().minus_or_zero(chunk.content.start()))?;
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

    /// Returns a chunk whose LZ4 block is one run of literals.
    fn chunk(literals: &[u8]) -> Vec<u8> {
        let length = u32::try_from(literals.len()).unwrap();
        let token = u8::try_from(length << 4).unwrap();
        let stored = (length + 5).to_be_bytes();
        [&stored[..], &length.to_le_bytes(), &[token], literals].concat()
    }

    fn table(bytes: Vec<u8>, decoded: u64) -> Result<ChunkTable> {
        let stored = u64::try_from(bytes.len()).unwrap();
        let encoded = EncodedBlock {
            block_offset: 0,
            source: Arc::new(MemorySource::new(bytes)),
            stored: Extent::from(0..stored),
            decoded,
        };
        let table = ChunkTable::new(
            encoded,
            ChunkCodec::Lz4,
            &Arc::new(ChunkTables::new(&SharedChunkTables::default())),
        );
        table.piece_bytes().map(|_| table)
    }

    fn decode_piece(table: &ChunkTable, piece: u64) -> Result<Buffer> {
        (table as &dyn PieceDecoder).decode_alone(piece)
    }

    #[test]
    fn chunks_of_any_length_give_pieces_of_one() {
        let bytes = [chunk(b"abc"), chunk(b"defgh"), chunk(b"i"), chunk(b"jkl")].concat();
        let table = table(bytes, 12).unwrap();
        assert_eq!(table.piece_bytes(), Ok(5));
        for (piece, bytes) in (0..).zip([&b"abcde"[..], b"fghij", b"kl"]) {
            assert_eq!(*decode_piece(&table, piece).unwrap(), *bytes);
        }
        assert_eq!(decode_piece(&table, 3), Err(Error::NotFound));
    }

    #[test]
    fn positions_of_many_chunks_are_thinned() {
        let count = 2 * CHUNK_MARKS + 3;
        let content: Vec<u8> = (0..count).map(|place| place.to_le_bytes()[0]).collect();
        let bytes: Vec<u8> = content.iter().flat_map(|byte| chunk(&[*byte])).collect();
        let table = table(bytes, to_u64(count)).unwrap();
        assert!(table.marks().unwrap().len() <= CHUNK_MARKS);
        for piece in [0, 1, 2, 3, 4, 5, count / 2, count - 3, count - 2, count - 1] {
            let forgotten = piece % 2 == 0;
            if forgotten {
                table.tables.0.clear();
            }
            let decoded = decode_piece(&table, to_u64(piece)).unwrap();
            assert_eq!(*decoded, content[piece..=piece], "{piece}");
        }
        assert_eq!(decode_piece(&table, to_u64(count)), Err(Error::NotFound));
    }

    #[test]
    fn a_chunk_that_is_far_longer_than_its_content_is_corrupt() {
        let padded = |more: usize| {
            let mut bytes = chunk(b"goodness");
            bytes.resize(bytes.len() + more, 0);
            let stored = u32::try_from(bytes.len() - 4).unwrap();
            bytes[..4].copy_from_slice(&stored.to_be_bytes());
            table(bytes, 8)
        };
        assert!(padded(limits::FILTER_OVERHEAD - 100).is_ok());
        assert!(padded(limits::FILTER_OVERHEAD).is_err());
    }

    #[test]
    fn lengths_that_contradict_are_corrupt() {
        assert!(table(chunk(b"abc"), 4).is_err());
        assert!(table(vec![0; 12], 0).is_err());
        assert!(table(b"\0\0\0\x05\xff\xff\xff\xff\0".to_vec(), 0xffff_ffff).is_err());
        assert!(table(chunk(b"abc")[..7].to_vec(), 3).is_err());
    }
}
