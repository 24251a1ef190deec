//! A block that is decoded in order, from a state that is kept between reads.

use std::any::Any;
use std::fmt;
use std::num::NonZeroU64;
use std::ops::Range;
use std::sync::Arc;

use crate::asdf::compression::encoded::Encoded;
use crate::asdf::compression::resumes::Resumes;
use crate::error::{Error, Result};
use crate::memory::buffer::Buffer;
use crate::model::storage::{Help, Pieces, StoredExtent};

/// The decoder of a block's stream.
pub trait Codec: Sized {
    /// The state for continuing the decoding.
    type State: Any + Send + Default;

    /// Decodes one of the block's pieces.
    ///
    /// # Errors
    /// `Corrupt` if the stream is damaged, or its length differs from the header.
    fn decode(
        block: &Resumed<Self>,
        state: &mut Self::State,
        piece: u64,
        help: &mut Help<'_>,
    ) -> Result<Buffer>;
}

/// A block in pieces of `piece` bytes.
pub struct Resumed<C> {
    pub(super) codec: C,
    pub(super) encoded: Encoded,
    pub(super) piece: u64,
    pub(super) resumes: Arc<Resumes>,
}

impl<C> Resumed<C> {
    /// Returns the block in pieces of `piece` bytes, whose states are kept in `resumes`.
    pub fn of(codec: C, encoded: Encoded, piece: NonZeroU64, resumes: Arc<Resumes>) -> Self {
        Resumed {
            codec,
            encoded,
            piece: piece.get(),
            resumes,
        }
    }
}

impl<C: fmt::Debug> fmt::Debug for Resumed<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} at {}", self.codec, self.encoded.stored.start())
    }
}

impl<C: Codec + fmt::Debug + Send + Sync> Pieces for Resumed<C> {
    fn bytes(&self) -> u64 {
        self.encoded.decoded
    }

    fn piece_bytes(&self) -> Result<u64> {
        Ok(self.piece)
    }

    fn stored_bytes(&self) -> u64 {
        self.encoded.stored.length()
    }

    fn place(&self, pieces: Range<u64>) -> Vec<StoredExtent> {
        self.encoded.place(pieces, self.piece)
    }

    fn is_sequential(&self) -> bool {
        true
    }

    fn decode(&self, piece: u64, help: &mut Help<'_>) -> Result<Buffer> {
        if self.encoded.piece(piece, self.piece).is_empty() {
            return Err(Error::NotFound);
        }
        let decode = |state: &mut C::State| C::decode(self, state, piece, help);
        let bytes = self.resumes.with(self.encoded.stored.start(), decode);
        bytes.map_err(|error| self.encoded.placed(error))
    }
}
