//! Blocks that are one stream, and what is kept to decode it on from where it was left, for the blocks
//! used last.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use crate::asdf::compression::Encoded;
use crate::error::{Error, Result};
use crate::limits;
use crate::memory::buffer::Buffer;
use crate::model::storage::{Help, Pieces};

/// A stream that keeps what it needs to be decoded on.
pub trait Resumable: Send + Sync + std::fmt::Debug {
    /// The block that is the stream.
    fn encoded(&self) -> &Encoded;

    /// Decoded bytes of every piece but the last.
    fn piece_bytes(&self) -> u64;

    /// Whether a piece can only be decoded after the one before it.
    fn is_sequential(&self) -> bool {
        true
    }

    /// The decoded bytes of a piece that the block has.
    ///
    /// # Errors
    /// As the stream is damaged.
    fn decode(&self, piece: u64, help: &mut Help<'_>) -> Result<Buffer>;

    /// Drops what is kept, if it is not in use.
    fn forget(&self);
}

/// The streams of one file that keep something, the one used last at the end.
#[derive(Default)]
pub struct Resumables(Mutex<VecDeque<(u64, Weak<dyn Resumable>)>>);

impl std::fmt::Debug for Resumables {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Resumables")
    }
}

impl Resumables {
    /// Notes that the stream at `offset` is used, and lets the one that was used longest ago forget
    /// what it keeps where there are too many.
    pub fn touch(&self, offset: u64, stream: Weak<dyn Resumable>) {
        let mut streams = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        streams.retain(|&(other, _)| other != offset);
        streams.push_back((offset, stream));
        let mut oldest = None;
        if streams.len() > limits::RESUMABLE_BLOCKS {
            oldest = streams.pop_front();
        }
        drop(streams);
        if let Some(stream) = oldest.and_then(|(_, stream)| stream.upgrade()) {
            stream.forget();
        }
    }
}

/// The pieces of a block that is one stream.
#[derive(Debug)]
pub struct StreamPieces {
    stream: Arc<dyn Resumable>,
    resumables: Arc<Resumables>,
}

impl StreamPieces {
    /// The pieces of `stream`, which keeps what it keeps as one of `resumables`.
    pub fn new(stream: impl Resumable + 'static, resumables: &Arc<Resumables>) -> Self {
        StreamPieces {
            stream: Arc::new(stream),
            resumables: Arc::clone(resumables),
        }
    }
}

impl Pieces for StreamPieces {
    fn bytes(&self) -> u64 {
        self.stream.encoded().decoded
    }

    fn piece_bytes(&self) -> Result<u64> {
        Ok(self.stream.piece_bytes())
    }

    fn stored_bytes(&self) -> u64 {
        self.stream.encoded().stored
    }

    fn is_sequential(&self) -> bool {
        self.stream.is_sequential()
    }

    fn decode(&self, piece: u64) -> Result<Buffer> {
        let mut alone = Help {
            threads: 1,
            is_wanted: &|| true,
            pass: &mut |_, _| {},
        };
        self.decode_with(piece, &mut alone)
    }

    fn decode_with(&self, piece: u64, help: &mut Help<'_>) -> Result<Buffer> {
        let encoded = self.stream.encoded();
        if piece.saturating_mul(self.stream.piece_bytes()) >= encoded.decoded {
            return Err(Error::NotFound);
        }
        let stream = Arc::downgrade(&self.stream);
        self.resumables.touch(encoded.offset, stream);
        let bytes = self.stream.decode(piece, help);
        bytes.map_err(|error| encoded.placed(error))
    }
}
