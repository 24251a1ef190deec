//! Compressed blocks: the codes of the block header, and the framings that writers put under them.
//!
//! | code | framing | pieces |
//! |---|---|---|
//! | `zlib` | one zlib stream | 1 MiB, found again by checkpoints |
//! | `bzp2` | one bzip2 stream | 1 MiB, of blocks that are decoded alone |
//! | `zstd` | Zstandard frames | 1 MiB, decoded on from the last one, or from a frame |
//! | `lz4f`, `lz4` | LZ4 frames | 1 MiB, decoded on from the last one, or from an independent block |
//! | `xz` | .xz streams | 1 MiB, decoded on from the last one, or from a block |
//! | `lz4` | chunks: u32 big-endian length, u32 little-endian decoded length, LZ4 block | the chunks |
//! | `blsc` | chunks: u32 big-endian length, Blosc-1 buffer | the chunks |
//! | `blsc` | one Blosc-1 buffer | the whole |
//! | `bls2` | one Blosc-2 chunk or contiguous frame | the whole |
//!
//! A block that decodes to [`limits::WHOLE_BLOCK`] bytes or less is one piece, whatever its framing, so
//! that its checksums are verified before a byte of it is served; unless far more is stored than such
//! content needs.
//!
//! What a read costs beyond its pieces: for `zlib` the way from the checkpoint before it, for `bzp2`
//! nothing, once the blocks before it were decoded to know where it is, for the others the way from the
//! beginning of the [part](parts) it lies in. Where a stream is one part, going back costs the way from its
//! beginning; but what is decoded on the way goes into the cache of chunks, as much of
//! its end as half of that holds. So reading backwards, or here and there, decodes a stream once
//! where half of the cache holds it, and otherwise once for each half of the cache.
//!
//! Memory: what a stream needs to be decoded on is kept for [`limits::RESUMABLE_BLOCKS`] blocks of a
//! file, that of the others is forgotten. For `zlib` it is at most 129 positions of 43 KiB (5.5 MiB),
//! for `bzp2` the places of the blocks and [`limits::BZIP2_KEPT`] bytes, for the others one decoder
//! with its window, the four pieces decoded last and the places of at most
//! [`limits::STREAM_PARTS`] parts, 56 bytes each.
//! The places of chunks are kept for the blocks of all files together, within [`limits::CHUNK_TABLES`].

pub mod bit_marks;
pub mod bzip2_blocks;
pub mod chunk_table;
pub mod codec;
pub mod following;
pub mod lz4_frames;
pub mod lzma2;
pub mod parts;
pub mod plain;
pub mod resumable;
pub mod runs;
pub mod stream;
pub mod whole;
pub mod xz_streams;
pub mod zlib;
pub mod zstd_frames;

use std::sync::Arc;

use crate::asdf::block::Block;
use crate::asdf::scan;
use crate::error::{Error, Result};
use crate::limits;
use crate::model::storage::Pieces;
use crate::source::{self, SharedSource};

use bzip2_blocks::Bzip2Blocks;
use chunk_table::{ChunkCodec, ChunkTable, Tables};
use codec::{LZ4_MAGIC, StreamCodec};
use resumable::{Resumables, StreamPieces};
use stream::Stream;
use whole::{Whole, WholeCodec};
use zlib::ZlibBlock;

/// How one block's bytes are compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Framing {
    Zlib,
    Bzip2,
    Stream(StreamCodec),
    Chunks(ChunkCodec),
    Whole(WholeCodec),
}

/// What is kept for the blocks of one file.
#[derive(Debug, Default)]
pub struct Kept {
    resumables: Arc<Resumables>,
    tables: Arc<Tables>,
}

/// A compressed block and where it is.
#[derive(Debug, Clone)]
pub struct Encoded {
    /// Offset of the block.
    pub block: u64,
    /// The file.
    pub source: SharedSource,
    /// Offset of the stored bytes.
    pub offset: u64,
    /// Stored bytes.
    pub stored: u64,
    /// Decoded bytes, as the block header has it.
    pub decoded: u64,
}

impl Encoded {
    /// `Limit` where more is stored than `needed` bytes and a surplus.
    fn limit_stored(&self, needed: u64, surplus: u64) -> Result<()> {
        let most = needed.saturating_add(surplus);
        if self.stored > most {
            let what = format!(
                "a block of {} bytes stored as {}",
                self.decoded, self.stored
            );
            return Err(Error::limit(what, most));
        }
        Ok(())
    }

    /// The stored bytes, all of them.
    fn read(&self) -> Result<Vec<u8>> {
        source::read_block(&*self.source, self.offset, self.stored, "block")
    }

    /// The same error, with the place of the stored bytes where it has none.
    fn placed(&self, error: Error) -> Error {
        match error {
            Error::Corrupt { what, at: None } => Error::corrupt(what, self.offset),
            other => other,
        }
    }

    fn corrupt(&self, what: &'static str) -> Error {
        Error::corrupt(what, self.offset)
    }

    /// Says that the stream lacks its end, although all of its content is there.
    fn warn_of_cut(&self) {
        let at = self.offset;
        log::warn!("block at byte {at}: the bzip2 stream lacks its end; its content is whole");
    }
}

/// The pieces of a compressed block.
///
/// # Errors
/// `Unsupported` for a code or framing that is not known, `Corrupt` where the framing is damaged or
/// contradicts the block header, `Limit` for far more stored bytes than the content can need.
pub fn pieces(source: &SharedSource, block: &Block, kept: &Kept) -> Result<Arc<dyn Pieces>> {
    let Kept { resumables, tables } = kept;
    let encoded = Encoded {
        block: block.at,
        source: Arc::clone(source),
        offset: block.data,
        stored: block.stored,
        decoded: block.size()?,
    };
    source::check_range(&**source, encoded.offset, encoded.stored, "block")?;
    encoded.limit_stored(encoded.decoded.saturating_mul(16), limits::BLOCK_SURPLUS)?;
    let is_small = encoded.decoded <= limits::WHOLE_BLOCK && whole::limit_stored(&encoded).is_ok();
    Ok(match framing(&encoded, block)? {
        Framing::Zlib if is_small => Arc::new(Whole::new(encoded, WholeCodec::Zlib)?),
        Framing::Zlib => {
            let stream = ZlibBlock::new(encoded, limits::BLOCK_PIECE)?;
            Arc::new(StreamPieces::new(stream, resumables))
        }
        Framing::Bzip2 if is_small => Arc::new(Whole::new(encoded, WholeCodec::Bzip2)?),
        Framing::Bzip2 => {
            let stream = Bzip2Blocks::new(encoded, limits::BLOCK_PIECE);
            Arc::new(StreamPieces::new(stream, resumables))
        }
        Framing::Stream(codec) if is_small => Arc::new(Whole::new(encoded, codec.whole())?),
        Framing::Stream(codec) => {
            let stream = Stream::new(encoded, codec, limits::BLOCK_PIECE);
            Arc::new(StreamPieces::new(stream, resumables))
        }
        Framing::Chunks(codec) => Arc::new(ChunkTable::new(encoded, codec, tables)),
        Framing::Whole(codec) => Arc::new(Whole::new(encoded, codec)?),
    })
}

fn framing(encoded: &Encoded, block: &Block) -> Result<Framing> {
    let end = encoded.offset.saturating_add(encoded.stored.min(32));
    let first = scan::piece(&*encoded.source, encoded.offset..end)?;
    let is_frame = first.starts_with(LZ4_MAGIC);
    Ok(match &block.compression {
        b"zlib" => Framing::Zlib,
        b"bzp2" => Framing::Bzip2,
        b"zstd" => Framing::Stream(StreamCodec::Zstd),
        b"xz\0\0" => Framing::Stream(StreamCodec::Xz),
        b"lz4f" => Framing::Stream(StreamCodec::Lz4Frame),
        b"lz4\0" if is_frame => Framing::Stream(StreamCodec::Lz4Frame),
        b"lz4\0" => Framing::Chunks(ChunkCodec::Lz4),
        b"blsc" if is_bare_blosc(&first, encoded.stored) => Framing::Whole(WholeCodec::Blosc),
        b"blsc" => Framing::Chunks(ChunkCodec::Blosc),
        b"bls2" if first.get(2..9) == Some(b"b2frame") => Framing::Whole(WholeCodec::Blosc2Frame),
        b"bls2" => Framing::Whole(WholeCodec::Blosc),
        _ => {
            let name = block.compression_name();
            return Err(Error::unsupported(format!("compression {name}"), block.at));
        }
    })
}

/// Whether a block is one Blosc-1 buffer: a version that exists, and its own length in its header.
fn is_bare_blosc(first: &[u8], stored: u64) -> bool {
    let version = first
        .first()
        .is_some_and(|version| matches!(version, 1 | 2));
    let length = first.get(12..16).and_then(|bytes| bytes.try_into().ok());
    version && length.map(u32::from_le_bytes).map(u64::from) == Some(stored)
}

#[cfg(test)]
mod tests;
