//! Blocks that are one stream, whose decoder cannot be copied: decoded from the beginning, and on
//! from where the last piece ended.
//!
//! Reading on costs each byte once, however the readers are interleaved within the pieces kept;
//! going back further costs the way from the beginning, unless what was decoded on the way is still kept
//! by whom it was handed to.

use std::collections::VecDeque;
use std::io::{self, BufReader, Read};
use std::num::NonZeroU64;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::asdf::compression::Encoded;
use crate::asdf::compression::resumable::Resumable;
use crate::asdf::compression::whole::WholeCodec;
use crate::error::{Error, Result};
use crate::filter::{self, Length};
use crate::model::storage::Passed;
use crate::source::SharedSource;
use crate::wire::{to_u64, to_usize};

/// Pieces that are kept, so that readers who overtake each other do not make the stream start again.
const KEPT: usize = 4;

/// KiB of memory that an .xz stream's dictionary may take.
const XZ_KIB: u32 = 80 << 10;

/// What a stream is compressed with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StreamCodec {
    /// One zlib stream.
    Zlib,
    /// Zstandard frames.
    Zstd,
    /// One LZ4 frame.
    Lz4Frame,
    /// One .xz stream.
    Xz,
}

impl StreamCodec {
    /// The codec for a block that is decoded at once.
    pub fn whole(self) -> WholeCodec {
        WholeCodec::Stream(self)
    }

    /// Decodes a whole stream.
    ///
    /// # Errors
    /// `Corrupt` for a damaged stream or another length.
    pub fn decode(self, stored: &[u8], length: Length) -> Result<Vec<u8>> {
        match self {
            StreamCodec::Zlib => filter::deflate::decode(stored, length),
            StreamCodec::Zstd => filter::zstd::decode(stored, length),
            StreamCodec::Lz4Frame => filter::lz4::frame(stored, length),
            StreamCodec::Xz => length.fill("xz", |output| {
                let mut decoder = xz(stored);
                let written = fill(&mut decoder, output)?;
                let is_end = written < output.len() || at_end(&mut decoder)?;
                let more = usize::from(!is_end);
                Ok(written.saturating_add(more))
            }),
        }
    }

    fn decoder(self, stored: StoredBytes) -> Result<Box<dyn Read + Send>> {
        let stored = BufReader::new(stored);
        Ok(match self {
            StreamCodec::Zlib => Box::new(flate2::bufread::ZlibDecoder::new(stored)),
            StreamCodec::Zstd => Box::new(
                zstd::stream::read::Decoder::with_buffer(stored)
                    .map_err(|error| damaged(&error))?,
            ),
            StreamCodec::Lz4Frame => Box::new(lz4_flex::frame::FrameDecoder::new(stored)),
            StreamCodec::Xz => Box::new(xz(stored)),
        })
    }
}

fn xz<R: Read>(stored: R) -> lzma_rust2::XzReader<R> {
    lzma_rust2::XzReader::new_mem_limit(stored, false, XZ_KIB)
}

fn damaged(error: &io::Error) -> Error {
    Error::corrupt(format!("compressed stream: {error}"), 0)
}

/// Reads until `output` is full or the stream ends; gives the bytes read.
fn fill(decoder: &mut dyn Read, output: &mut [u8]) -> Result<usize> {
    let mut filled = 0_usize;
    while let Some(room) = output.get_mut(filled..).filter(|room| !room.is_empty()) {
        match decoder.read(room) {
            Ok(0) => break,
            Ok(read) => filled = filled.saturating_add(read),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(damaged(&error)),
        }
    }
    Ok(filled)
}

fn at_end(decoder: &mut dyn Read) -> Result<bool> {
    Ok(fill(decoder, &mut [0])? == 0)
}

/// The stored bytes of a block, in order.
struct StoredBytes {
    source: SharedSource,
    at: u64,
    end: u64,
}

impl Read for StoredBytes {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = self.end.saturating_sub(self.at);
        let count = to_u64(buffer.len()).min(left);
        let room = usize::try_from(count)
            .ok()
            .and_then(|count| buffer.get_mut(..count));
        let Some(room) = room else {
            return Ok(0);
        };
        self.source
            .read_at(self.at, room)
            .map_err(io::Error::other)?;
        self.at = self.at.saturating_add(count);
        Ok(room.len())
    }
}

/// A block that is one stream.
pub struct Stream {
    encoded: Encoded,
    codec: StreamCodec,
    piece: u64,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    decoder: Option<Box<dyn Read + Send>>,
    /// The piece that the decoder gives next.
    next: u64,
    /// The pieces decoded last, up to the one before `next`.
    kept: VecDeque<Vec<u8>>,
}

impl State {
    /// The first piece that is kept, or the next one where none is.
    fn first(&self) -> u64 {
        self.next.saturating_sub(to_u64(self.kept.len()))
    }
}

impl std::fmt::Debug for Stream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Stream({:?} at {})", self.codec, self.encoded.offset)
    }
}

impl Stream {
    /// The block as a stream, in pieces of `piece` bytes.
    pub fn new(encoded: Encoded, codec: StreamCodec, piece: NonZeroU64) -> Self {
        Stream {
            encoded,
            codec,
            piece: piece.get(),
            state: Mutex::default(),
        }
    }

    /// As `decode`, where that takes the way over no more than `most` pieces; else `None`.
    pub fn decode_near(
        &self,
        piece: u64,
        most: u64,
        passed: &mut Passed<'_>,
    ) -> Option<Result<Vec<u8>>> {
        let mut state = self.state();
        let is_near = state.first() <= piece && piece < state.next.saturating_add(most);
        is_near.then(|| self.decode_on(&mut state, piece, passed))
    }

    /// Decodes on to the end of `piece`, which is not before the first one that is kept.
    fn decode_on(&self, state: &mut State, piece: u64, passed: &mut Passed<'_>) -> Result<Vec<u8>> {
        if state.decoder.is_none() {
            *state = State {
                decoder: Some(self.codec.decoder(StoredBytes {
                    source: Arc::clone(&self.encoded.source),
                    at: self.encoded.offset,
                    end: self.encoded.offset.saturating_add(self.encoded.stored),
                })?),
                ..State::default()
            };
        }
        while state.next <= piece {
            if let Err(error) = self.step(state, passed) {
                *state = State::default();
                return Err(error);
            }
        }
        let place = to_usize(piece.saturating_sub(state.first()))?;
        state.kept.get(place).cloned().ok_or(Error::NotFound)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Decodes the next piece, and after the last one looks whether the stream ends there.
    fn step(&self, state: &mut State, passed: &mut Passed<'_>) -> Result<()> {
        let start = state.next.saturating_mul(self.piece);
        let left = self.encoded.decoded.saturating_sub(start);
        let mut bytes = vec![0; to_usize(left.min(self.piece))?];
        let decoder = state.decoder.as_mut().ok_or(Error::NotFound)?;
        if fill(&mut **decoder, &mut bytes)? < bytes.len() {
            return Err(self.encoded.corrupt("block: ends before data_size"));
        }
        if left <= self.piece && !at_end(&mut **decoder)? {
            return Err(self.encoded.corrupt("block: longer than data_size"));
        }
        if state.kept.len() >= KEPT
            && let Some(oldest) = state.kept.pop_front()
        {
            let number = state.next.saturating_sub(to_u64(KEPT));
            passed(number, oldest);
        }
        state.next = state.next.saturating_add(1);
        state.kept.push_back(bytes);
        Ok(())
    }
}

impl Resumable for Stream {
    fn encoded(&self) -> &Encoded {
        &self.encoded
    }

    fn piece_bytes(&self) -> u64 {
        self.piece
    }

    fn decode(&self, piece: u64, passed: &mut Passed<'_>) -> Result<Vec<u8>> {
        let mut state = self.state();
        if piece < state.first() {
            *state = State::default();
        }
        self.decode_on(&mut state, piece, passed)
    }

    fn forget(&self) {
        if let Ok(mut state) = self.state.try_lock() {
            *state = State::default();
        }
    }
}
