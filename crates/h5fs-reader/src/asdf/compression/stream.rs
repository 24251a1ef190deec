//! Blocks that are one stream and whose decoder cannot be copied. Decoding starts at the beginning
//! and continues after the last decoded piece.
//!
//! Concurrent sequential readers decode each byte once, as long as they are at most `KEPT_PIECES`
//! pieces apart. A read that goes backwards or far ahead begins at the nearest independent part, if
//! the stream has such parts. Otherwise, a read that goes backwards decodes the stream from the
//! beginning, unless the array engine still caches the piece. A checksum of the whole stream is
//! verified for a reader that goes from the beginning to the end. A part's checksum is verified
//! before the part's last bytes are returned.

pub mod codec;
pub(crate) mod consecutive_frames;
pub(crate) mod lz4_frames;
pub(crate) mod lzma2;
pub(crate) mod part_list;
pub(crate) mod part_search;
pub(crate) mod xz_streams;
pub(crate) mod zstd_frames;

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use crate::asdf::compression::resumable_block::{ResumableBlock, ResumableCodec};
use crate::asdf::compression::stream::codec::{
    SourceRangeReader, StreamCodec, StreamDecoder, fill, is_at_end,
};
use crate::asdf::compression::stream::part_list::StreamPart;
use crate::asdf::compression::stream::part_search::PartsReader;
use crate::error::{Error, Result};
use crate::memory::buffer::Buffer;
use crate::memory::cancel::check_wanted;
use crate::model::storage::DecodeContext;
use crate::wire::{Count, to_u64, to_usize};

/// Number of the most recently decoded pieces that are kept in memory, so that readers that
/// overtake each other do not restart the decoder.
const KEPT_PIECES: usize = 4;

/// Maximum distance, in pieces, between the concurrent requests of one sequential reader.
const MAX_REQUEST_DISTANCE: u64 = 8;

/// When decoding starts at a part a second time, all pieces from the requested one to the end of
/// the part are decoded at once, if they are at most this many.
const MAX_EXTRA_PIECES: u64 = 32;

/// A block that is one stream.
pub type StreamBlock = ResumableBlock<StreamCodec>;

/// The position of the decoder in the stream, and the other positions at which decoding can start.
#[derive(Default)]
pub struct StreamState {
    run: DecoderRun,
    /// The independent parts, once the stream was searched for them.
    parts: Option<Arc<[StreamPart]>>,
    /// The numbers of the independent parts at whose beginnings decoding has started before.
    started_parts: BTreeSet<usize>,
    /// Whether decoding from the beginning has reached damage.
    is_broken: bool,
}

/// A decoder at its current position in the stream, with the pieces that it decoded last.
#[derive(Default)]
struct DecoderRun {
    decoder: Option<StreamDecoder<'static>>,
    /// The number of the piece that the decoder decodes next.
    next: u64,
    /// The most recently decoded pieces, up to the one before `next`.
    kept: VecDeque<Buffer>,
}

impl DecoderRun {
    /// Returns the number of the first kept piece, or of the next piece if none is kept.
    fn first_kept(&self) -> u64 {
        self.next.minus_or_zero(to_u64(self.kept.len()))
    }

    /// Returns whether the piece with this number is kept, or is among the next `most` pieces of
    /// the decoder.
    fn is_near(&self, piece: u64, most: u64) -> bool {
        self.first_kept() <= piece && piece < self.next.plus(most)
    }
}

impl StreamBlock {
    fn decode_from(
        &self,
        state: &mut StreamState,
        piece: u64,
        help: &mut DecodeContext<'_>,
    ) -> Result<Buffer> {
        let mut until = piece;
        if state.is_broken || !state.run.is_near(piece, MAX_REQUEST_DISTANCE) {
            until = self.seek(state, piece)?;
        }
        let bytes = self.decode_up_to(state, piece, help)?;
        if until > piece {
            self.emit_extra_pieces(&mut state.run, until, help);
        }
        Ok(bytes)
    }

    /// Continues decoding up to the end of `piece`, and returns that piece. The piece must not be
    /// before the first kept piece.
    fn decode_up_to(
        &self,
        state: &mut StreamState,
        piece: u64,
        help: &mut DecodeContext<'_>,
    ) -> Result<Buffer> {
        let run = &mut state.run;
        if run.decoder.is_none() {
            *run = DecoderRun {
                decoder: Some(self.codec.decoder(self.stored())?),
                ..DecoderRun::default()
            };
        }
        while run.next <= piece {
            check_wanted(help.is_wanted)?;
            if let Err(error) = self.step(run, help) {
                state.run = DecoderRun::default();
                state.is_broken = !error.is_transient();
                return Err(error);
            }
        }
        let place = to_usize(piece.minus_or_zero(run.first_kept()))?;
        run.kept.get(place).cloned().ok_or(Error::NotFound)
    }

    fn stored(&self) -> SourceRangeReader {
        SourceRangeReader::new(Arc::clone(&self.encoded.source), self.encoded.stored)
    }

    /// Moves the decoder to the last part that begins at or before `piece`, or to the beginning.
    /// Does nothing if the current run will reach the piece sooner. Returns the number of the piece
    /// up to which (exclusive) the following pieces should be decoded too, or `piece` if only this
    /// piece should be decoded.
    fn seek(&self, state: &mut StreamState, piece: u64) -> Result<u64> {
        let parts = match &state.parts {
            Some(parts) => Arc::clone(parts),
            None => part_search::find_parts(&self.encoded, self.codec)?,
        };
        state.parts = Some(Arc::clone(&parts));
        let start = piece.times(self.piece);
        let after = parts.partition_point(|part| part.content.start() <= start);
        let comes_by = state.run.decoder.is_some() && state.run.first_kept() <= piece;
        let place = after.checked_sub(1);
        let Some((place, part)) = place.and_then(|place| Some((place, parts.get(place)?))) else {
            if !comes_by {
                state.run = DecoderRun::default();
            }
            return Ok(piece);
        };
        if comes_by && part.content.start() <= state.run.next.times(self.piece) {
            return Ok(piece);
        }
        let end = part.content.end().div_ceil(self.piece);
        let is_known = !state.started_parts.insert(place);
        let is_short = end.minus_or_zero(piece) <= MAX_EXTRA_PIECES;
        let from = part.content.start();
        state.run = DecoderRun::default();
        if place > 0 || state.is_broken {
            state.run = self.run_from(parts, place, from)?;
        }
        Ok(if is_known && is_short { end } else { piece })
    }

    /// Creates a decoder at the part with the index `place`, whose content begins at byte `from`.
    /// The first piece that it decodes is the first one that begins at or after this byte.
    fn run_from(&self, parts: Arc<[StreamPart]>, place: usize, from: u64) -> Result<DecoderRun> {
        let next = from.div_ceil(self.piece);
        let passed_over = next.times(self.piece).minus_or_zero(from);
        let reader = PartsReader::new(self.encoded.clone(), self.codec, parts, place);
        let mut decoder: StreamDecoder<'static> = Box::new(reader);
        let mut bytes = vec![0; to_usize(passed_over)?];
        if fill(&mut decoder, &mut bytes)? < bytes.len() {
            return Err(self.encoded.corrupt("block: ends before data_size"));
        }
        Ok(DecoderRun {
            decoder: Some(decoder),
            next,
            kept: VecDeque::new(),
        })
    }

    /// Decodes the pieces before `until` and passes them to `on_extra_piece`. The caller does this
    /// when decoding starts at a part a second time. Otherwise, a reader that goes backwards would
    /// decode the part from its beginning for each of its pieces.
    fn emit_extra_pieces(&self, run: &mut DecoderRun, until: u64, help: &mut DecodeContext<'_>) {
        while run.next < until && (help.is_wanted)() {
            if self.step(run, help).is_err() {
                // The reader that needs the piece reports the error again.
                *run = DecoderRun::default();
                return;
            }
        }
        for (number, bytes) in (run.first_kept()..).zip(&run.kept) {
            (help.on_extra_piece)(number, bytes.clone());
        }
    }

    /// Decodes the next piece. After the last piece, checks that the stream ends.
    fn step(&self, run: &mut DecoderRun, help: &mut DecodeContext<'_>) -> Result<()> {
        let wanted = self.encoded.piece(run.next, self.piece);
        let mut bytes = help.pool.buffer(to_usize(wanted.length())?)?;
        let decoder = run.decoder.as_mut().ok_or(Error::NotFound)?;
        if fill(&mut **decoder, &mut bytes)? < bytes.len() {
            return Err(self.encoded.corrupt("block: ends before data_size"));
        }
        if wanted.end() == self.encoded.decoded && !is_at_end(&mut **decoder)? {
            return Err(self.encoded.corrupt("block: longer than data_size"));
        }
        if run.kept.len() >= KEPT_PIECES
            && let Some(oldest) = run.kept.pop_front()
        {
            let number = run.next.minus_or_zero(to_u64(KEPT_PIECES));
            (help.on_extra_piece)(number, oldest);
        }
        run.next = run.next.plus_one();
        run.kept.push_back(bytes);
        Ok(())
    }
}

impl ResumableCodec for StreamCodec {
    type ResumeState = StreamState;

    fn decode(
        block: &StreamBlock,
        state: &mut StreamState,
        piece: u64,
        help: &mut DecodeContext<'_>,
    ) -> Result<Buffer> {
        block.decode_from(state, piece, help)
    }
}
