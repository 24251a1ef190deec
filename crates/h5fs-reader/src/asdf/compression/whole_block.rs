//! Blocks that are decoded in one piece.

use std::ops::Range;

use crate::asdf::compression::encoded::EncodedBlock;
use crate::asdf::compression::stream::codec::StreamCodec;
use crate::error::{Error, Result};
use crate::filter::{self, DecodedLength, DecoderResources};
use crate::limits;
use crate::memory::buffer::Buffer;
use crate::model::storage::{DecodeContext, PieceDecoder, StoredExtent};
use crate::wire::{Count, to_u64, to_usize};

/// The codec of a block that is decoded in one piece.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WholeCodec {
    /// One zlib stream.
    Zlib,
    /// One .bz2 stream.
    Bzip2,
    /// Zstandard frames, LZ4 frames or .xz streams.
    Stream(StreamCodec),
    /// One Blosc-1 buffer or Blosc-2 chunk.
    Blosc,
    /// One Blosc-2 contiguous frame.
    Blosc2Frame,
}

/// Fails with `Limit` if more bytes are stored than the content can need, because all of them are
/// in memory at once.
pub(crate) fn limit_stored(encoded: &EncodedBlock) -> Result<()> {
    let needed = encoded.decoded.plus(encoded.decoded / 8);
    encoded.limit_stored(needed, limits::WHOLE_SURPLUS)
}

/// A compressed block that is decoded in one piece.
#[derive(Debug)]
pub struct WholeBlock {
    encoded: EncodedBlock,
    codec: WholeCodec,
}

impl WholeBlock {
    /// Creates a block that is decoded in one piece.
    ///
    /// # Errors
    /// `Limit` if the decoded or stored bytes are too many to decode at once.
    pub fn new(encoded: EncodedBlock, codec: WholeCodec) -> Result<Self> {
        if encoded.decoded > limits::CHUNK_BYTES {
            let what = "bytes of a block that must be decoded whole";
            return Err(Error::limit(what, limits::CHUNK_BYTES));
        }
        limit_stored(&encoded)?;
        Ok(WholeBlock { encoded, codec })
    }

    fn decoded(&self, help: &DecodeContext<'_>) -> Result<Buffer> {
        let context = &mut DecoderResources::new(help.pool);
        let length = DecodedLength::Exactly(to_usize(self.encoded.decoded)?);
        let stored = self.encoded.read(help.pool, help.is_wanted)?;
        match self.codec {
            WholeCodec::Zlib => filter::deflate::decode(&stored, length, context),
            WholeCodec::Bzip2 => {
                let decoded = filter::bzip2::decode(&stored, length, context, help.is_wanted);
                decoded.or_else(|error| match error {
                    error if error.is_cancelled() => Err(error),
                    error => self.decode_truncated(&stored).ok_or(error),
                })
            }
            WholeCodec::Stream(codec) => codec.decode(&stored, length, context),
            WholeCodec::Blosc => filter::blosc::decode(&stored, length, context),
            WholeCodec::Blosc2Frame => filter::blosc2::decode(&stored, length, context),
        }
    }
}

impl WholeBlock {
    /// Decodes a bzip2 stream that is truncated after its last content byte, and returns its whole
    /// content. Returns `None` if content is missing.
    fn decode_truncated(&self, stored: &[u8]) -> Option<Buffer> {
        let (content, _) = filter::bzip2::decode_truncated(stored, self.encoded.decoded).ok()?;
        let is_all = to_u64(content.len()) == self.encoded.decoded;
        is_all.then(|| self.encoded.warn_truncated());
        is_all.then(|| content.into())
    }
}

impl PieceDecoder for WholeBlock {
    fn byte_length(&self) -> u64 {
        self.encoded.decoded
    }

    fn piece_bytes(&self) -> Result<u64> {
        Ok(self.encoded.decoded.max(1))
    }

    fn max_stored_bytes(&self) -> Result<u64> {
        Ok(self.encoded.stored.length())
    }

    fn stored_bytes(&self) -> u64 {
        self.encoded.stored.length()
    }

    fn stored_extents(&self, pieces: Range<u64>) -> Vec<StoredExtent> {
        self.encoded.estimated_extents(pieces, self.encoded.decoded)
    }

    fn decode(&self, piece: u64, help: &mut DecodeContext<'_>) -> Result<Buffer> {
        if piece > 0 {
            return Err(Error::NotFound);
        }
        self.decoded(help)
            .map_err(|error| self.encoded.with_offset(error))
    }
}
