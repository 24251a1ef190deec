//! Blocks that are one zlib stream (RFC 1950), with two decoders.
//!
//! A reader that continues from the beginning uses the faster decoder, zlib-rs, which cannot go
//! back. For all other readers there are checkpoints: copies of the slower decoder with its window.
//! Checkpoints are created at even distances when the slower decoder first reaches them. A read
//! then decodes from the last checkpoint before it. The first such read decodes from the beginning.
//!
//! If the faster decoder refuses data, the slower one decides, so that all readers see the same
//! damage.

mod in_order;

use std::num::NonZeroU64;
use std::sync::Arc;

use miniz_oxide::inflate::TINFLStatus;
use miniz_oxide::inflate::core::inflate_flags::{
    TINFL_FLAG_COMPUTE_ADLER32, TINFL_FLAG_HAS_MORE_INPUT, TINFL_FLAG_PARSE_ZLIB_HEADER,
    TINFL_FLAG_USING_NON_WRAPPING_OUTPUT_BUF,
};
use miniz_oxide::inflate::core::{DecompressorOxide, decompress};

use crate::asdf::compression::decoder_states::DecoderStates;
use crate::asdf::compression::encoded::EncodedBlock;
use crate::asdf::compression::resumable_block::{ResumableBlock, ResumableCodec};
use crate::asdf::compression::zlib::in_order::{INPUT, InflateStep, SequentialInflater};
use crate::asdf::scan;
use crate::error::Result;
use crate::limits;
use crate::memory::buffer::Buffer;
use crate::memory::cancel::{WantedCheck, check_wanted};
use crate::model::storage::DecodeContext;
use crate::wire::{Count, Extent, to_u64, to_usize};

/// Maximum number of bytes that deflate produces from one byte (RFC 1951: 258 bytes from two bits),
/// rounded up.
const EXPANSION: u64 = 1032;

/// Minimum number of pieces between two checkpoints.
const LEAST_DISTANCE: u64 = 4;

/// Maximum distance, in pieces, between the concurrent requests of one sequential reader.
const MAX_REQUEST_DISTANCE: u64 = 8;

/// Number of preceding bytes that the next byte may refer to (RFC 1951, 2).
const WINDOW: usize = 32 << 10;

const FLAGS: u32 = TINFL_FLAG_PARSE_ZLIB_HEADER
    | TINFL_FLAG_COMPUTE_ADLER32
    | TINFL_FLAG_HAS_MORE_INPUT
    | TINFL_FLAG_USING_NON_WRAPPING_OUTPUT_BUF;

/// A block that is one zlib stream.
pub type ZlibBlock = ResumableBlock<Zlib>;

/// The codec of a block that is one zlib stream.
#[derive(Debug)]
pub struct Zlib {
    /// Number of pieces from one checkpoint to the next.
    distance: u64,
}

/// The positions of both decoders in the stream, and the checkpoints.
#[derive(Default)]
pub struct ZlibProgress {
    in_order: Option<SequentialInflater>,
    /// Whether the faster decoder found damage. Only the slower decoder is used from then on.
    is_refused: bool,
    /// The position before every [`Zlib::distance`]-th piece, as far as the slower decoder has
    /// decoded.
    checkpoints: Vec<Position>,
    /// The position of the slower decoder after the piece that it decoded most recently.
    last: Option<Position>,
}

/// A position in the stream where decoding can continue.
#[derive(Clone)]
struct Position {
    decoder: Box<DecompressorOxide>,
    /// The preceding decoded bytes that the following bytes may refer to.
    window: Vec<u8>,
    /// The file offset of the next stored byte.
    at: u64,
    /// The number of the next piece.
    piece: u64,
}

impl ZlibProgress {
    /// Returns the number of the last piece, up to `piece`, before which the slower decoder can
    /// start: at a checkpoint, at its own position, or at the beginning.
    fn nearest_start(&self, piece: u64) -> u64 {
        let places = self.checkpoints.iter().chain(&self.last);
        let before = places.map(|position| position.piece);
        before.filter(|&known| known <= piece).max().unwrap_or(0)
    }
}

impl ZlibBlock {
    /// Creates a block that is decoded in pieces of `piece` bytes.
    ///
    /// # Errors
    /// `Corrupt` if the stored bytes cannot decode to the stated length.
    pub fn new(
        encoded: EncodedBlock,
        piece: NonZeroU64,
        resumes: Arc<DecoderStates>,
    ) -> Result<Self> {
        // A saturated product exceeds any length.
        if encoded.decoded > encoded.stored.length().times(EXPANSION) {
            return Err(encoded.corrupt("block: data_size is larger than its bytes can decode to"));
        }
        let pieces = encoded.decoded.div_ceil(piece.get());
        let most = to_u64(limits::ZLIB_CHECKPOINTS);
        let distance = pieces.div_ceil(most).max(LEAST_DISTANCE);
        Ok(ResumableBlock::with_states(
            Zlib { distance },
            encoded,
            piece,
            resumes,
        ))
    }

    /// Decodes `piece` with the faster decoder. Returns `None` if the slower decoder must be used:
    ///
    /// - the faster decoder has passed the piece, or has found damage,
    /// - the slower decoder can start nearer to the piece, or
    /// - the piece is at least `MAX_REQUEST_DISTANCE` pieces ahead, and the faster decoder has not
    ///   decoded more pieces than that yet.
    fn decode_in_order(
        &self,
        progress: &mut ZlibProgress,
        piece: u64,
        help: &mut DecodeContext<'_>,
    ) -> Result<Option<Buffer>> {
        let next = progress.in_order.as_ref().map_or(0, |way| way.piece);
        let goes_on = next <= piece && piece < next.times(2).max(next.plus(MAX_REQUEST_DISTANCE));
        if progress.is_refused || !goes_on || progress.nearest_start(piece) > next {
            return Ok(None);
        }
        let way = progress
            .in_order
            .get_or_insert_with(|| SequentialInflater::new(&self.encoded));
        loop {
            let number = way.piece;
            let InflateStep::Decoded(bytes) = way.step(&self.encoded, self.piece, help)? else {
                progress.is_refused = true;
                progress.in_order = None;
                return Ok(None);
            };
            if number >= piece {
                let is_last = self.encoded.piece(way.piece, self.piece).is_empty();
                progress.in_order.take_if(|_| is_last);
                return Ok(Some(bytes));
            }
            (help.on_extra_piece)(number, bytes);
        }
    }

    /// Returns the nearest position at or before `piece` at which the slower decoder can start.
    fn nearest_position(&self, progress: &mut ZlibProgress, piece: u64) -> Position {
        let last = progress.last.take_if(|last| last.piece <= piece);
        let mut checkpoints = progress.checkpoints.iter();
        let checkpoint = checkpoints.rfind(|position| position.piece <= piece);
        match (last, checkpoint) {
            (Some(last), Some(checkpoint)) if last.piece < checkpoint.piece => checkpoint.clone(),
            (Some(last), _) => last,
            (None, Some(checkpoint)) => checkpoint.clone(),
            (None, None) => Position {
                decoder: Box::default(),
                window: Vec::new(),
                at: self.encoded.stored.start(),
                piece: 0,
            },
        }
    }

    /// Decodes from `position` up to the end of `piece`, and returns that piece. Creates the
    /// checkpoints on the way that do not exist yet.
    fn decode_forward(
        &self,
        position: &mut Position,
        piece: u64,
        checkpoints: &mut Vec<Position>,
        help: &mut DecodeContext<'_>,
    ) -> Result<Buffer> {
        loop {
            let next = to_u64(checkpoints.len()).checked_mul(self.codec.distance);
            if next == Some(position.piece) {
                checkpoints.push(position.clone());
            }
            let number = position.piece;
            let bytes = self.step(position, help)?;
            if number >= piece {
                return Ok(bytes);
            }
            (help.on_extra_piece)(number, bytes);
        }
    }

    /// Decodes the next piece with the slower decoder. On an error, `position` stays unchanged.
    fn step(&self, position: &mut Position, help: &DecodeContext<'_>) -> Result<Buffer> {
        let wanted = self.encoded.piece(position.piece, self.piece);
        let length = to_usize(wanted.length())?;
        let before = position.window.len();
        let end = before.plus(length);
        // One additional byte after the last piece detects a stream that does not end there.
        let is_last = wanted.end() == self.encoded.decoded;
        let mut bytes = help.pool.buffer(end.plus(usize::from(is_last)))?;
        let (window, _) = bytes.split_at_mut(before);
        window.copy_from_slice(&position.window);
        let mut next = position.clone();
        let reached = self.inflate(&mut next, &mut bytes, help.is_wanted)?;
        if reached < end {
            return Err(self.encoded.corrupt("block: ends before data_size"));
        }
        if reached > end {
            return Err(self.encoded.corrupt("block: longer than data_size"));
        }
        let mut piece = help.pool.buffer(length)?;
        piece.copy_from_slice(bytes.get(before..end).unwrap_or_default());
        let window = end.minus_or_zero(WINDOW)..end;
        next.window = bytes.get(window).unwrap_or_default().to_vec();
        next.piece = next.piece.plus_one();
        *position = next;
        Ok(piece)
    }

    /// Decodes from `position` into `output`, which begins with the window of `position`, until
    /// `output` is full or the stream ends. Returns the index in `output` after the last decoded
    /// byte.
    fn inflate(
        &self,
        position: &mut Position,
        output: &mut [u8],
        is_wanted: &WantedCheck<'_>,
    ) -> Result<usize> {
        let end = self.encoded.stored.end();
        let mut at = position.window.len();
        while at < output.len() {
            check_wanted(is_wanted)?;
            let rest = Extent::from_range(position.at, end);
            let input = scan::read_truncated(&*self.encoded.source, rest.first(INPUT))?;
            let (status, used, written) =
                decompress(&mut position.decoder, &input, output, at, FLAGS);
            position.at = rest.skip(to_u64(used)).start();
            at = at.plus(written);
            match status {
                TINFLStatus::Done => break,
                TINFLStatus::HasMoreOutput => {}
                TINFLStatus::NeedsMoreInput if !input.is_empty() => {}
                TINFLStatus::NeedsMoreInput => {
                    return Err(self.encoded.corrupt("zlib: ends too early"));
                }
                TINFLStatus::Adler32Mismatch => {
                    return Err(self.encoded.corrupt("zlib: wrong checksum"));
                }
                _ => return Err(self.encoded.corrupt("zlib: damaged")),
            }
        }
        Ok(at)
    }
}

impl ResumableCodec for Zlib {
    type ResumeState = ZlibProgress;

    fn decode(
        block: &ZlibBlock,
        progress: &mut ZlibProgress,
        piece: u64,
        help: &mut DecodeContext<'_>,
    ) -> Result<Buffer> {
        if let Some(bytes) = block.decode_in_order(progress, piece, help)? {
            return Ok(bytes);
        }
        let mut position = block.nearest_position(progress, piece);
        let bytes = block.decode_forward(&mut position, piece, &mut progress.checkpoints, help);
        progress.last = Some(position);
        bytes
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use libdeflater::{CompressionLvl, Compressor};

    use super::*;
    use crate::error::Error;
    use crate::memory::buffer::BufferPool;
    use crate::model::storage::PieceDecoder;
    use crate::source::Source;
    use crate::source::memory::MemorySource;

    /// A source that counts the bytes that are read.
    #[derive(Debug)]
    struct CountingSource {
        bytes: MemorySource,
        read: AtomicU64,
    }

    impl Source for CountingSource {
        fn length(&self) -> u64 {
            self.bytes.length()
        }

        fn read_cancellable(
            &self,
            at: u64,
            buffer: &mut [u8],
            is_wanted: &WantedCheck<'_>,
        ) -> Result<()> {
            self.read.fetch_add(to_u64(buffer.len()), Ordering::Relaxed);
            self.bytes.read_cancellable(at, buffer, is_wanted)
        }
    }

    fn zlib(content: &[u8]) -> Vec<u8> {
        let mut encoder = Compressor::new(CompressionLvl::default());
        let mut stream = vec![0; encoder.zlib_compress_bound(content.len())];
        let length = encoder.zlib_compress(content, &mut stream).unwrap();
        stream.truncate(length);
        stream
    }

    /// Returns the block, and its source with the counter.
    fn block(stored: Vec<u8>, decoded: u64, piece: u64) -> (ZlibBlock, Arc<CountingSource>) {
        let source = Arc::new(CountingSource {
            bytes: MemorySource::new(stored),
            read: AtomicU64::default(),
        });
        let encoded = EncodedBlock {
            block_offset: 0,
            stored: Extent::from(0..source.length()),
            decoded,
            source: Arc::clone(&source) as Arc<dyn Source>,
        };
        let piece = NonZeroU64::new(piece).unwrap();
        let block = ZlibBlock::new(encoded, piece, Arc::default());
        (block.unwrap(), source)
    }

    #[test]
    fn a_block_of_many_pieces_has_no_more_checkpoints() {
        let pieces = to_u64(limits::ZLIB_CHECKPOINTS) * LEAST_DISTANCE + 1;
        let content: Vec<u8> = (0..pieces * 16)
            .map(|place| place.to_le_bytes()[0])
            .collect();
        let (block, _) = block(zlib(&content), to_u64(content.len()), 16);
        for piece in [pieces - 1, 0, pieces / 2] {
            let start = to_usize(piece * 16).unwrap();
            let decoded = (&block as &dyn PieceDecoder).decode_alone(piece).unwrap();
            assert_eq!(*decoded, content[start..start + 16]);
        }
        let count = |progress: &mut ZlibProgress| progress.checkpoints.len();
        let checkpoints = block.resumes.decode_with(0, count);
        assert!((100..=limits::ZLIB_CHECKPOINTS).contains(&checkpoints));
    }

    /// Returns compressible numbers.
    fn content(bytes: u64) -> Vec<u8> {
        let number = |place: u64| (place / 5).wrapping_mul(0x9e37_79b9).to_le_bytes()[3];
        (0..bytes).map(number).collect()
    }

    /// Checks a piece of 1000 bytes.
    fn assert_piece(block: &ZlibBlock, content: &[u8], piece: u64) {
        let start = to_usize(piece * 1000).unwrap();
        let end = content.len().min(start + 1000);
        let decoded = (block as &dyn PieceDecoder).decode_alone(piece);
        assert!(*decoded.unwrap() == content[start..end], "piece {piece}");
    }

    #[test]
    fn only_backward_reads_create_checkpoints() {
        let content = content(99_500);
        let (block, _) = block(zlib(&content), to_u64(content.len()), 1000);
        let state = |progress: &mut ZlibProgress| {
            let next = progress.in_order.as_ref().map(|way| way.piece);
            (next, progress.checkpoints.len())
        };
        // Requests overtake each other, and one skips fewer pieces than were already decoded.
        for piece in [0, 3, 10, 11, 20, 41, 42] {
            assert_piece(&block, &content, piece);
        }
        assert_eq!(block.resumes.decode_with(0, state), (Some(43), 0));
        // Goes back and continues there, interleaved with the reader that still reads in order.
        for (back, on) in [(16, 43), (17, 44), (3, 45), (18, 46)] {
            assert_piece(&block, &content, back);
            assert_piece(&block, &content, on);
        }
        assert_eq!(block.resumes.decode_with(0, state), (Some(47), 5));
        // Far after both of them, at the end, and at the beginning again.
        for piece in [99, 98, 60, 0] {
            assert_piece(&block, &content, piece);
        }
        assert_eq!(block.resumes.decode_with(0, state), (Some(47), 25));
        for piece in 47..100 {
            assert_piece(&block, &content, piece);
        }
    }

    #[test]
    fn pieces_before_damage_are_read_in_any_order() {
        let content = content(99_500);
        let mut stored = zlib(&content);
        let middle = stored.len() / 2;
        stored[middle..middle + 64].fill(0xff);
        let (block, _) = block(stored, to_u64(content.len()), 1000);
        let pieces = &block as &dyn PieceDecoder;
        let broken = (0..100).find(|&piece| pieces.decode_alone(piece).is_err());
        let broken = broken.unwrap();
        assert!((20..80).contains(&broken), "{broken}");
        for piece in (0..broken).rev().chain(0..broken) {
            assert_piece(&block, &content, piece);
        }
        assert!(pieces.decode_alone(broken).is_err() && pieces.decode_alone(99).is_err());
        assert!(
            block
                .resumes
                .decode_with(0, |progress: &mut ZlibProgress| progress.is_refused)
        );
    }

    /// Checks empty blocks of fixed codes. Each takes ten bits (RFC 1951, 3.2.6: three for its
    /// header, seven for the end-of-block code), and a decoder rebuilds its tables for each.
    #[test]
    fn decoding_empty_deflate_blocks_can_be_cancelled() {
        const CONTENT: &[u8] = b"goodness";
        const EMPTY: [u8; 5] = [0x02, 0x08, 0x20, 0x80, 0x00];
        let stream = zlib(CONTENT);
        let (header, rest) = stream.split_at(2);
        let count = to_usize(4 * INPUT).unwrap() / EMPTY.len();
        let stored = [header, &EMPTY.repeat(count), rest].concat();
        let (block, source) = block(stored, to_u64(CONTENT.len()), 1 << 20);
        let mut read = 0;
        for wanted in [0, 1, 2] {
            let asked = AtomicU64::default();
            let mut help = DecodeContext {
                threads: &|| 1,
                pool: &BufferPool::default(),
                is_wanted: &|| asked.fetch_add(1, Ordering::Relaxed) < wanted,
                on_extra_piece: &mut |_, _| {},
            };
            assert_eq!(block.decode(0, &mut help), Err(Error::cancelled()));
            read += wanted * INPUT;
            assert_eq!(source.read.load(Ordering::Relaxed), read);
        }
        let decoded = (&block as &dyn PieceDecoder).decode_alone(0);
        assert_eq!(decoded, Ok(CONTENT.to_vec().into()));
        assert_eq!(source.read.load(Ordering::Relaxed), source.length());
    }
}
