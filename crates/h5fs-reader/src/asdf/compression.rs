//! Compressed blocks: the codes of the block header, and the framings that writers use for them.
//!
//! A block is decoded in pieces. The last column states their length and where decoding starts:
//!
//! | code | framing | pieces |
//! |---|---|---|
//! | `zlib` | one zlib stream | 1 MiB, in order or from the last checkpoint |
//! | `bzp2` | one bzip2 stream | 1 MiB, from bzip2 blocks that are decoded independently |
//! | `zstd` | Zstandard frames | 1 MiB, after the previous piece or from the start of a frame |
//! | `lz4f`, `lz4` | LZ4 frames | 1 MiB, after the previous piece or from an independent block |
//! | `xz` | .xz streams | 1 MiB, after the previous piece or from an .xz block |
//! | `lz4` | chunks: u32 big-endian length, u32 little-endian decoded length, block | the chunks |
//! | `blsc` | chunks: u32 big-endian length, Blosc-1 buffer | the chunks |
//! | `blsc` | one Blosc-1 buffer | one piece |
//! | `bls2` | one Blosc-2 chunk or contiguous frame | one piece |
//!
//! A block that decodes to at most [`limits::WHOLE_BLOCK`] bytes is one piece, whatever its
//! framing. Its checksums are then verified before any byte is served. The exception is a block
//! that stores far more bytes than such content needs.
//!
//! Every block provides its pieces through [`PieceDecoder::decode`]. The array engine caches
//! pieces, waits for them, and lets one thread at a time decode a sequential block.
//! `DecoderStates` keeps the state for continuing the decoding of such a block.
//!
//! A read decodes more than its pieces:
//!
//! - `zlib`: the bytes from the last checkpoint before the read, unless the read continues a
//!   sequential read from the beginning.
//! - `bzp2`: no further bytes, once the earlier bzip2 blocks were decoded to determine their
//!   lengths.
//! - The other streams: the bytes from the beginning of the read's part.
//!
//! If a stream is one part, a read that goes backwards decodes it from its beginning. The pieces
//! before the read go into the cache of chunks. Of these pieces, only the last ones are cached, up
//! to half of the cache. Reading backwards or at random therefore decodes a stream once if half of
//! the cache can contain it. Otherwise, the stream is decoded once for each half of the cache.
//!
//! Arithmetic: a block's range lies within its file, so offsets in the block are far from overflow.
//! Only header numbers of up to 32 bits are added to them. A product or a length that saturates is
//! compared with a limit or an end, which the largest number always exceeds.
//!
//! Memory: the decoder states of [`limits::RESUMABLE_BLOCKS`] blocks of a file are kept.
//!
//! - `zlib`: at most [`limits::ZLIB_CHECKPOINTS`] checkpoints and one more position, 43 KiB each
//!   (5.5 MiB). Also the decoder of a sequential reader, with the piece that it was decoding when
//!   it was cancelled (1.1 MiB).
//! - `bzp2`: the positions of the bzip2 blocks, and [`limits::BZIP2_KEPT`] bytes of decoded
//!   content.
//! - The other streams: one decoder with its window, the four most recently decoded pieces, and the
//!   positions of at most [`limits::STREAM_PARTS`] parts, 56 bytes each.
//!
//! The positions of chunks are cached for the blocks of all files of a mount together, within
//! `chunk_table::CHUNK_TABLES` bytes.

pub mod bzip2;
pub(crate) mod chunk_table;
pub(crate) mod decoder_states;
pub mod encoded;
pub(crate) mod resumable_block;
pub mod stream;
pub mod whole_block;
pub mod zlib;

use std::num::NonZeroU64;
use std::sync::Arc;

use crate::asdf::block::Block;
use crate::asdf::scan;
use crate::error::{Error, Result};
use crate::limits;
use crate::model::storage::PieceDecoder;
use crate::source::{self, SharedSource};

use crate::wire::Count;
use bzip2::{Bzip2, Bzip2Block};
use chunk_table::{ChunkCodec, ChunkTable, ChunkTables, SharedChunkTables};
use decoder_states::DecoderStates;
use encoded::EncodedBlock;
use stream::StreamBlock;
use stream::codec::{LZ4_MAGIC, StreamCodec};
use whole_block::{WholeBlock, WholeCodec};
use zlib::ZlibBlock;

/// Length in bytes of one piece of a compressed ASDF block that is one long stream.
const BLOCK_PIECE: NonZeroU64 = NonZeroU64::new(1 << 20).unwrap();

/// The framing of one block's compressed bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Framing {
    Zlib,
    Bzip2,
    Stream(StreamCodec),
    Chunks(ChunkCodec),
    Whole(WholeCodec),
}

/// The decoder states and chunk tables of the blocks of one file.
#[derive(Debug)]
pub struct BlockCaches {
    resumes: Arc<DecoderStates>,
    tables: Arc<ChunkTables>,
}

impl BlockCaches {
    /// Creates empty caches for one file. Its chunk tables count towards the limit of `tables`,
    /// which all files of a mount share.
    pub fn new(tables: &SharedChunkTables) -> Self {
        BlockCaches {
            resumes: Arc::default(),
            tables: Arc::new(ChunkTables::new(tables)),
        }
    }
}

/// Returns the decoder of the pieces of a compressed block.
///
/// # Errors
/// - `Unsupported` for an unknown code or framing.
/// - `Corrupt` if the framing is damaged or contradicts the block header.
/// - `Limit` for far more stored bytes than the content can need.
pub(crate) fn open_piece_decoder(
    source: &SharedSource,
    block: &Block,
    caches: &BlockCaches,
) -> Result<Arc<dyn PieceDecoder>> {
    let BlockCaches { resumes, tables } = caches;
    let encoded = EncodedBlock {
        block_offset: block.header_offset,
        source: Arc::clone(source),
        decoded: block.content_length()?,
        stored: source::check_range(&**source, block.data_offset, block.stored_bytes, "block")?,
    };
    encoded.limit_stored(encoded.decoded.times(16), limits::BLOCK_SURPLUS)?;
    let is_small =
        encoded.decoded <= limits::WHOLE_BLOCK && whole_block::limit_stored(&encoded).is_ok();
    let (piece, resumes) = (BLOCK_PIECE, Arc::clone(resumes));
    Ok(match framing(&encoded, block)? {
        Framing::Zlib if is_small => Arc::new(WholeBlock::new(encoded, WholeCodec::Zlib)?),
        Framing::Zlib => Arc::new(ZlibBlock::new(encoded, piece, resumes)?),
        Framing::Bzip2 if is_small => Arc::new(WholeBlock::new(encoded, WholeCodec::Bzip2)?),
        Framing::Bzip2 => Arc::new(Bzip2Block::with_states(Bzip2, encoded, piece, resumes)),
        Framing::Stream(codec) if is_small => {
            Arc::new(WholeBlock::new(encoded, WholeCodec::Stream(codec))?)
        }
        Framing::Stream(codec) => {
            Arc::new(StreamBlock::with_states(codec, encoded, piece, resumes))
        }
        Framing::Chunks(codec) => Arc::new(ChunkTable::new(encoded, codec, tables)),
        Framing::Whole(codec) => Arc::new(WholeBlock::new(encoded, codec)?),
    })
}

fn framing(encoded: &EncodedBlock, block: &Block) -> Result<Framing> {
    let first = scan::read_truncated(&*encoded.source, encoded.stored.first(32))?;
    let is_frame = first.starts_with(LZ4_MAGIC);
    Ok(match &block.compression {
        b"zlib" => Framing::Zlib,
        b"bzp2" => Framing::Bzip2,
        b"zstd" => Framing::Stream(StreamCodec::Zstd),
        b"xz\0\0" => Framing::Stream(StreamCodec::Xz),
        b"lz4f" => Framing::Stream(StreamCodec::Lz4Frame),
        b"lz4\0" if is_frame => Framing::Stream(StreamCodec::Lz4Frame),
        b"lz4\0" => Framing::Chunks(ChunkCodec::Lz4),
        b"blsc" if is_bare_blosc(&first, encoded.stored.length()) => {
            Framing::Whole(WholeCodec::Blosc)
        }
        b"blsc" => Framing::Chunks(ChunkCodec::Blosc),
        b"bls2" if first.get(2..9) == Some(b"b2frame") => Framing::Whole(WholeCodec::Blosc2Frame),
        b"bls2" => Framing::Whole(WholeCodec::Blosc),
        _ => {
            let name = block.compression_name();
            return Err(Error::unsupported(
                format!("compression {name}"),
                block.header_offset,
            ));
        }
    })
}

/// Returns whether a block of `stored` bytes, which begins with `first`, is one Blosc-1 buffer
/// without chunks: its version is valid, and the length in its header equals `stored`.
fn is_bare_blosc(first: &[u8], stored: u64) -> bool {
    let length = first.get(12..16).and_then(|bytes| bytes.try_into().ok());
    let is_whole = length.map(u32::from_le_bytes).map(u64::from) == Some(stored);
    is_whole && matches!(first, [1 | 2, ..])
}

#[cfg(test)]
mod tests;
