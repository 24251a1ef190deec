//! Blocks that are one zlib stream. Who reads on from the beginning is served by two threads; who goes
//! elsewhere, by one decoder, from checkpoints: copies of its state, taken at even
//! distances where the stream is decoded so for the first time.
//!
//! A read costs the way from the checkpoint before it, and the first one a way from the beginning.

use std::num::NonZeroU64;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use crate::asdf::compression::Encoded;
use crate::asdf::compression::codec::StreamCodec;
use crate::asdf::compression::resumable::Resumable;
use crate::asdf::compression::stream::Stream;
use crate::asdf::scan;
use crate::error::{Error, Result};
use crate::filter::inflate::{self, Inflater};
use crate::memory::buffer::Buffer;
use crate::model::storage::{Help, still};
use crate::wire::{to_u64, to_usize};

/// Bytes that deflate makes of one byte at most (RFC 1951: 258 bytes of two bits), rounded up.
const EXPANSION: u64 = 1032;

/// The most checkpoints of one block, 43 KiB each.
const CHECKPOINTS: u64 = 128;

/// Pieces by which the requests of one sequential reader may be ahead of each other.
const NEAR: u64 = 8;

/// Stored bytes that are read at once.
const INPUT: u64 = 256 << 10;

/// A block that is one zlib stream.
pub struct Checkpointed {
    encoded: Encoded,
    /// The way from the beginning.
    run: Stream,
    piece: u64,
    /// Pieces from one checkpoint to the next.
    distance: u64,
    state: Mutex<Kept>,
    arrived: Condvar,
}

#[derive(Default)]
struct Kept {
    /// The state before every `distance`-th piece, as far as the stream was decoded.
    checkpoints: Vec<Position>,
    /// The state after the piece decoded last.
    last: Option<Position>,
    /// The pieces that are being decoded where the way is known.
    under_way: Vec<u64>,
}

impl Kept {
    /// Whether somebody is about to reach a piece shortly before this one.
    fn is_on_the_way(&self, piece: u64, distance: u64) -> bool {
        let mut others = self.under_way.iter();
        others.any(|&other| other < piece && other.saturating_add(distance) > piece)
    }
}

/// Tells those who wait that a piece is decoded, or cannot be.
struct Arrival<'a> {
    stream: &'a Checkpointed,
    piece: u64,
}

impl Drop for Arrival<'_> {
    fn drop(&mut self) {
        let mut kept = self.stream.kept();
        let place = kept.under_way.iter().position(|&other| other == self.piece);
        place.map(|place| kept.under_way.swap_remove(place));
        drop(kept);
        self.stream.arrived.notify_all();
    }
}

/// A place in the stream from which it can be decoded on.
#[derive(Clone)]
struct Position {
    inflater: Inflater,
    /// The bytes before it that those after it may refer to.
    window: Vec<u8>,
    /// Offset of the next stored byte.
    at: u64,
    /// The piece that comes next.
    piece: u64,
}

impl std::fmt::Debug for Checkpointed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Checkpointed(at {})", self.encoded.offset)
    }
}

impl Checkpointed {
    /// The block as a stream, in pieces of `piece` bytes.
    ///
    /// # Errors
    /// `Corrupt` where so few bytes cannot hold so many.
    pub fn new(encoded: Encoded, piece: NonZeroU64) -> Result<Self> {
        if encoded.decoded > encoded.stored.saturating_mul(EXPANSION) {
            return Err(encoded.corrupt("block: data_size is more than its bytes can hold"));
        }
        let pieces = encoded.decoded.div_ceil(piece.get());
        Ok(Checkpointed {
            run: Stream::new(encoded.clone(), StreamCodec::Zlib, piece),
            encoded,
            piece: piece.get(),
            distance: pieces.div_ceil(CHECKPOINTS).max(4),
            state: Mutex::default(),
            arrived: Condvar::new(),
        })
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The nearest position at or before `piece`.
    fn nearest(&self, kept: &mut Kept, piece: u64) -> Position {
        let last = kept.last.take_if(|last| last.piece <= piece);
        let before = kept
            .checkpoints
            .iter()
            .rfind(|position| position.piece <= piece);
        match (last, before) {
            (Some(last), Some(before)) if last.piece < before.piece => before.clone(),
            (Some(last), _) => last,
            (None, Some(before)) => before.clone(),
            (None, None) => Position {
                inflater: Inflater::default(),
                window: Vec::new(),
                at: self.encoded.offset,
                piece: 0,
            },
        }
    }

    /// Decodes on to the end of `piece`, leaving checkpoints on the way where none are yet.
    fn forward(
        &self,
        position: &mut Position,
        piece: u64,
        mut checkpoints: Option<&mut Vec<Position>>,
        help: &mut Help<'_>,
    ) -> Result<Buffer> {
        loop {
            if let Some(checkpoints) = checkpoints.as_deref_mut() {
                let next = to_u64(checkpoints.len()).saturating_mul(self.distance);
                if position.piece == next {
                    checkpoints.push(position.clone());
                }
            }
            still(help.is_wanted)?;
            let number = position.piece;
            let bytes = self.next(position)?;
            if number >= piece {
                return Ok(bytes);
            }
            (help.pass)(number, bytes);
        }
    }

    /// Decodes the next piece, and after the last one looks whether the stream ends there.
    fn next(&self, position: &mut Position) -> Result<Buffer> {
        let start = position.piece.saturating_mul(self.piece);
        let left = self.encoded.decoded.saturating_sub(start);
        let before = position.window.len();
        let length = before.saturating_add(to_usize(left.min(self.piece))?);
        let is_last = left <= self.piece;
        // The byte more tells the stream's end from too long a stream.
        let mut bytes = std::mem::take(&mut position.window);
        bytes.resize(length.saturating_add(usize::from(is_last)), 0);
        let end = self.inflate(position, &mut bytes, before)?;
        if end < length {
            return Err(self.encoded.corrupt("block: ends before data_size"));
        }
        if end > length {
            return Err(self.encoded.corrupt("block: longer than data_size"));
        }
        bytes.truncate(length);
        let window = bytes.len().saturating_sub(inflate::WINDOW);
        position.window = bytes.get(window..).unwrap_or_default().to_vec();
        position.piece = position.piece.saturating_add(1);
        bytes.drain(..before);
        Ok(bytes.into())
    }

    /// Decodes from byte `at` of `output` on until it is full or the stream ends; gives where that is.
    fn inflate(&self, position: &mut Position, output: &mut [u8], mut at: usize) -> Result<usize> {
        let end = self.encoded.offset.saturating_add(self.encoded.stored);
        while at < output.len() {
            let until = position.at.saturating_add(INPUT).min(end);
            let input = scan::piece(&*self.encoded.source, position.at..until)?;
            let step = position.inflater.inflate(&input, output, at);
            let step = step.map_err(|error| self.encoded.placed(error))?;
            position.at = position.at.saturating_add(to_u64(step.used));
            at = at.saturating_add(step.written);
            if step.is_done {
                break;
            }
            if step.used == 0 && step.written == 0 {
                return Err(self.encoded.corrupt("zlib: ends too early"));
            }
        }
        Ok(at)
    }
}

/// Whether decoding can go on where it ended.
fn is_sound(decoded: &Result<Buffer>) -> bool {
    decoded.as_ref().err().is_none_or(Error::is_unwanted)
}

impl Resumable for Checkpointed {
    fn encoded(&self) -> &Encoded {
        &self.encoded
    }

    fn piece_bytes(&self) -> u64 {
        self.piece
    }

    fn decode(&self, piece: u64, help: &mut Help<'_>) -> Result<Buffer> {
        if let Some(decoded) = self.run.decode_near(piece, NEAR, help) {
            return decoded;
        }
        let mut kept = self.kept();
        // Who is about to come here needs no help, and will leave its state.
        while kept.is_on_the_way(piece, self.distance) {
            let waited = self.arrived.wait(kept);
            kept = waited.unwrap_or_else(PoisonError::into_inner);
        }
        let mut position = self.nearest(&mut kept, piece);
        let reaches_new = to_u64(kept.checkpoints.len()).saturating_mul(self.distance) <= piece;
        if reaches_new {
            let checkpoints = Some(&mut kept.checkpoints);
            let bytes = self.forward(&mut position, piece, checkpoints, help);
            if is_sound(&bytes) {
                kept.last = Some(position);
            }
            return bytes;
        }
        // The way is known: others need not wait.
        kept.under_way.push(piece);
        drop(kept);
        let arrival = Arrival {
            stream: self,
            piece,
        };
        let bytes = self.forward(&mut position, piece, None, help);
        if is_sound(&bytes) {
            self.kept().last = Some(position);
        }
        drop(arrival);
        bytes
    }

    fn forget(&self) {
        if let Ok(mut kept) = self.state.try_lock() {
            kept.checkpoints = Vec::new();
            kept.last = None;
        }
        self.run.forget();
    }
}
