//! Blocks that are decoded in order, from a decoder state that is kept between reads.

use std::any::Any;
use std::fmt;
use std::num::NonZeroU64;
use std::ops::Range;
use std::sync::Arc;

use crate::asdf::compression::decoder_states::DecoderStates;
use crate::asdf::compression::encoded::EncodedBlock;
use crate::error::{Error, Result};
use crate::memory::buffer::Buffer;
use crate::model::storage::{DecodeContext, PieceDecoder, StoredExtent};

/// The codec of a block that is decoded in order.
pub trait ResumableCodec: Sized {
    /// The decoder state from which a later call continues.
    type ResumeState: Any + Send + Default;

    /// Decodes the piece with the number `piece` of the block. Starts from `state`, and leaves in
    /// it the state for the next call.
    ///
    /// # Errors
    /// `Corrupt` if the stream is damaged, or its length differs from the header.
    fn decode(
        block: &ResumableBlock<Self>,
        state: &mut Self::ResumeState,
        piece: u64,
        help: &mut DecodeContext<'_>,
    ) -> Result<Buffer>;
}

/// A compressed block that is decoded in order, in pieces of `piece` bytes.
pub struct ResumableBlock<C> {
    pub(super) codec: C,
    pub(super) encoded: EncodedBlock,
    pub(super) piece: u64,
    pub(super) resumes: Arc<DecoderStates>,
}

impl<C> ResumableBlock<C> {
    /// Creates a block that is decoded in pieces of `piece` bytes and keeps its decoder state in
    /// `resumes`.
    pub fn with_states(
        codec: C,
        encoded: EncodedBlock,
        piece: NonZeroU64,
        resumes: Arc<DecoderStates>,
    ) -> Self {
        ResumableBlock {
            codec,
            encoded,
            piece: piece.get(),
            resumes,
        }
    }
}

impl<C: fmt::Debug> fmt::Debug for ResumableBlock<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} at {}", self.codec, self.encoded.stored.start())
    }
}

impl<C: ResumableCodec + fmt::Debug + Send + Sync> PieceDecoder for ResumableBlock<C> {
    fn byte_length(&self) -> u64 {
        self.encoded.decoded
    }

    fn piece_bytes(&self) -> Result<u64> {
        Ok(self.piece)
    }

    fn stored_bytes(&self) -> u64 {
        self.encoded.stored.length()
    }

    fn stored_extents(&self, pieces: Range<u64>) -> Vec<StoredExtent> {
        self.encoded.estimated_extents(pieces, self.piece)
    }

    fn is_sequential(&self) -> bool {
        true
    }

    fn decode(&self, piece: u64, help: &mut DecodeContext<'_>) -> Result<Buffer> {
        if self.encoded.piece(piece, self.piece).is_empty() {
            return Err(Error::NotFound);
        }
        let decode = |state: &mut C::ResumeState| C::decode(self, state, piece, help);
        let bytes = self
            .resumes
            .decode_with(self.encoded.stored.start(), decode);
        bytes.map_err(|error| self.encoded.with_offset(error))
    }
}
