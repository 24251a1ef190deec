//! Blocks that are one zlib stream, decoded from checkpoints: copies of the decoder's state, taken at
//! even distances while the stream is decoded for the first time.
//!
//! A read costs the way from the checkpoint before it. The decoder is one whose state is plain data.

use std::num::NonZeroU64;
use std::sync::{Mutex, MutexGuard, PoisonError};

use miniz_oxide::inflate::stream::{InflateState, inflate};
use miniz_oxide::{DataFormat, MZError, MZFlush, MZStatus};

use crate::asdf::compression::Encoded;
use crate::asdf::compression::resumable::Resumable;
use crate::asdf::scan;
use crate::error::Result;
use crate::model::storage::Passed;
use crate::wire::{to_u64, to_usize};

/// Bytes that deflate makes of one byte at most (RFC 1951: 258 bytes of two bits), rounded up.
const EXPANSION: u64 = 1032;

/// The most checkpoints of one block, 43 KiB each.
const CHECKPOINTS: u64 = 128;

/// Stored bytes that are read at once.
const INPUT: u64 = 64 << 10;

/// A block that is one zlib stream.
pub struct Checkpointed {
    encoded: Encoded,
    piece: u64,
    /// Pieces from one checkpoint to the next.
    distance: u64,
    state: Mutex<Kept>,
}

#[derive(Default)]
struct Kept {
    /// The state before every `distance`-th piece, as far as the stream was decoded.
    checkpoints: Vec<Position>,
    /// The state after the piece decoded last.
    last: Option<Position>,
}

/// A place in the stream from which it can be decoded on.
#[derive(Clone)]
struct Position {
    inflater: Box<InflateState>,
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
            encoded,
            piece: piece.get(),
            distance: pieces.div_ceil(CHECKPOINTS).max(4),
            state: Mutex::default(),
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
                inflater: InflateState::new_boxed(DataFormat::Zlib),
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
        passed: &mut Passed<'_>,
    ) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        while position.piece <= piece {
            if let Some(checkpoints) = checkpoints.as_deref_mut() {
                let next = to_u64(checkpoints.len()).saturating_mul(self.distance);
                if position.piece == next {
                    checkpoints.push(position.clone());
                }
            }
            let start = position.piece.saturating_mul(self.piece);
            let left = self.encoded.decoded.saturating_sub(start);
            bytes.resize(to_usize(left.min(self.piece))?, 0);
            if self.inflate(position, &mut bytes)? < bytes.len() {
                return Err(self.encoded.corrupt("block: ends before data_size"));
            }
            if left <= self.piece && self.inflate(position, &mut [0])? > 0 {
                return Err(self.encoded.corrupt("block: longer than data_size"));
            }
            position.piece = position.piece.saturating_add(1);
        }
        Ok(bytes)
    }

    /// Decodes until `output` is full or the stream ends; gives the bytes written.
    fn inflate(&self, position: &mut Position, output: &mut [u8]) -> Result<usize> {
        let end = self.encoded.offset.saturating_add(self.encoded.stored);
        let mut written = 0_usize;
        loop {
            let until = position.at.saturating_add(INPUT).min(end);
            let input = scan::piece(&*self.encoded.source, position.at..until)?;
            let mut used = 0_usize;
            loop {
                let rest = input.get(used..).unwrap_or_default();
                let room = output.get_mut(written..).unwrap_or_default();
                if room.is_empty() {
                    return Ok(written);
                }
                let step = inflate(&mut position.inflater, rest, room, MZFlush::None);
                used = used.saturating_add(step.bytes_consumed);
                written = written.saturating_add(step.bytes_written);
                let consumed = to_u64(step.bytes_consumed);
                position.at = position.at.saturating_add(consumed);
                let is_stuck = step.bytes_consumed == 0 && step.bytes_written == 0;
                match step.status {
                    Ok(MZStatus::StreamEnd) => return Ok(written),
                    Ok(_) | Err(MZError::Buf) if is_stuck => break,
                    Ok(_) | Err(MZError::Buf) => {}
                    Err(_) => return Err(self.encoded.corrupt("zlib: damaged stream")),
                }
            }
            if used == 0 {
                return Err(self.encoded.corrupt("zlib: ends too early"));
            }
        }
    }
}

impl Resumable for Checkpointed {
    fn encoded(&self) -> &Encoded {
        &self.encoded
    }

    fn piece_bytes(&self) -> u64 {
        self.piece
    }

    fn decode(&self, piece: u64, passed: &mut Passed<'_>) -> Result<Vec<u8>> {
        let mut kept = self.kept();
        let mut position = self.nearest(&mut kept, piece);
        let reaches_new = to_u64(kept.checkpoints.len()).saturating_mul(self.distance) <= piece;
        if !reaches_new {
            // The way is known: others need not wait.
            drop(kept);
            let bytes = self.forward(&mut position, piece, None, passed)?;
            self.kept().last = Some(position);
            return Ok(bytes);
        }
        let checkpoints = Some(&mut kept.checkpoints);
        let bytes = self.forward(&mut position, piece, checkpoints, passed)?;
        kept.last = Some(position);
        Ok(bytes)
    }

    fn forget(&self) {
        if let Ok(mut kept) = self.state.try_lock() {
            *kept = Kept::default();
        }
    }
}
