//! An array whose elements are at fixed strides in the bytes of a block.

use std::ops::Range;
use std::sync::Arc;

use crate::array::bytes::Bytes;
use crate::array::engine::Engine;
use crate::array::geometry::grid::Grid;
use crate::array::geometry::span::ByteSpan;
use crate::array::kinds::stored::StoredArray;
use crate::array::read_ahead::prefetch::ReadStream;
use crate::error::{Error, Result};
use crate::memory::cancel::CancelToken;
use crate::model::Array;
use crate::model::array::StridedLayout as Description;
use crate::wire::Extent;

/// Number of bytes that are fetched at a time from a block without pieces of its own.
const PIECE_BYTES: u64 = 64 << 10;

/// Minimum number of bytes of a run of adjacent elements that is read directly from the file.
const LONG_RUN_BYTES: u64 = 4096;

/// Maximum number of runs that are sorted and copied together.
const BATCH_RUNS: usize = 1 << 16;

/// A strided array over a block.
#[derive(Debug)]
pub(in crate::array) struct StridedReader {
    /// The array as one "chunk" with gaps.
    grid: Grid,
    /// Offset in the block of the array's first element, in bytes.
    offset: i64,
    base: StoredArray,
}

/// The most recently read piece of the block.
struct CurrentPiece {
    start: u64,
    bytes: Bytes,
}

impl StridedReader {
    /// Returns the reader of a strided array over its block. The array must not be empty.
    ///
    /// # Errors
    /// `Corrupt` if elements lie outside the block. Otherwise fails if the block is not readable.
    pub(in crate::array) fn new(
        engine: &Arc<Engine>,
        array: &Array,
        description: &Description,
    ) -> Result<Self> {
        let (dims, element) = (array.shape.dims(), u64::from(array.datatype.size));
        let Description {
            offset, strides, ..
        } = description;
        let grid = Grid::new_strided(dims, strides, element)?;
        let base = match grid.axes().last() {
            Some(run) if run.length >= LONG_RUN_BYTES => {
                StoredArray::new(engine, &description.base)?
            }
            _ => StoredArray::new_in_pieces(engine, &description.base)?,
        };
        let reach = |sign: i128| {
            let steps = dims.iter().zip(strides).map(|(&dim, &stride)| {
                let furthest = (i128::from(dim) - 1) * i128::from(stride);
                if furthest * sign > 0 { furthest } else { 0 }
            });
            i128::from(*offset) + steps.sum::<i128>()
        };
        let (first, end) = (reach(-1), reach(1) + i128::from(element));
        if first < 0 || end > i128::from(base.length()) {
            let what = format!(
                "elements from byte {first} to {end} of a block of {} bytes",
                base.length()
            );
            return Err(Error::corrupt(what, None));
        }
        Ok(StridedReader {
            grid,
            offset: offset.cast_signed(),
            base,
        })
    }

    /// Returns the block and the array's offset in the block, if the elements are contiguous in the
    /// block in C order. Otherwise returns `None`.
    fn contiguous_base(&self) -> Option<(&StoredArray, u64)> {
        let packed = matches!(self.grid.axes(), [axis] if axis.chunk_stride == 1);
        packed.then(|| (&self.base, self.offset.cast_unsigned()))
    }

    /// Returns whether the block is in a remote source.
    pub(in crate::array) fn is_remote(&self) -> bool {
        self.base.is_remote(0, 1)
    }

    /// Returns the array's share of the block's stored bytes: in proportion to the array's `length`
    /// bytes and the block's decoded bytes.
    pub(in crate::array) fn stored_bytes(&self, length: u64) -> Result<u64> {
        let stored = u128::from(self.base.allocation()?.stored_bytes);
        let share = stored * u128::from(length) / u128::from(self.base.length().max(1));
        Ok(share.min(stored) as u64)
    }

    /// Reads bytes `offset..end`, which must not be empty and must lie inside the array. `stream`
    /// is the sequence of reads that the read belongs to.
    pub(in crate::array) fn read(
        &self,
        offset: u64,
        end: u64,
        stream: Option<&ReadStream>,
        cancel: &CancelToken,
    ) -> Result<Bytes> {
        if let Some((base, start)) = self.contiguous_base() {
            return base.read(start + offset, start + end, stream, cancel);
        }
        let span = ByteSpan::new(&self.grid, offset, end);
        let mut reply = vec![0; span.length()];
        let mut runs = Vec::new();
        for plan in span.parts().flat_map(|part| part.plans) {
            plan.for_each_run(|from, to| {
                let at = (self.offset + from).cast_unsigned();
                runs.push((at, to, plan.run_bytes()));
                if runs.len() < BATCH_RUNS {
                    return Ok(());
                }
                self.copy_runs(&mut runs, &mut reply, cancel)
            })?;
        }
        self.copy_runs(&mut runs, &mut reply, cancel)?;
        Ok(reply.into())
    }

    /// Reads like `read`, but returns `None` if that would require decoding, waiting or searching
    /// an index.
    pub(in crate::array) fn try_read(
        &self,
        offset: u64,
        end: u64,
        stream: Option<&ReadStream>,
    ) -> Result<Option<Bytes>> {
        match self.contiguous_base() {
            Some((base, start)) => base.try_read(start + offset, start + end, stream),
            None => Ok(None),
        }
    }

    /// Copies `runs` from the block to `reply`. Each run is given by its offset in the block, its
    /// offset in the reply, and its length in bytes. The runs are sorted by their offset in the
    /// block, so that each piece is needed once, whatever the strides are.
    fn copy_runs(
        &self,
        runs: &mut Vec<(u64, usize, usize)>,
        reply: &mut [u8],
        cancel: &CancelToken,
    ) -> Result<()> {
        runs.sort_unstable();
        if let (Some(&(first, ..)), Some(&(last, _, length))) = (runs.first(), runs.last())
            && self.base.is_remote(first, last + length as u64)
        {
            self.base.prefetch_ranges(self.piece_ranges(runs), cancel)?;
        }
        let mut held = None;
        for (at, to, length) in runs.drain(..) {
            self.copy_bytes(at, &mut held, &mut reply[to..to + length], cancel)?;
        }
        Ok(())
    }

    /// Returns the byte ranges of the block's pieces that the sorted `runs` touch, without
    /// overlaps.
    fn piece_ranges(&self, runs: &[(u64, usize, usize)]) -> impl Iterator<Item = Range<u64>> {
        let piece = self.base.chunk_bytes().unwrap_or(PIECE_BYTES);
        let mut end = 0;
        runs.iter().filter_map(move |&(at, _, length)| {
            let start = (at / piece * piece).max(end);
            let last = at + length as u64;
            end = end.max(last.next_multiple_of(piece).min(self.base.length()));
            (start < last).then_some(start..end)
        })
    }

    /// Copies bytes from offset `at` of the block to `target`. `held` keeps the last piece for the
    /// next call.
    fn copy_bytes(
        &self,
        mut at: u64,
        held: &mut Option<CurrentPiece>,
        mut target: &mut [u8],
        cancel: &CancelToken,
    ) -> Result<()> {
        while !target.is_empty() {
            let rest = match held {
                Some(held) if held.contains(at) => &held.bytes[(at - held.start) as usize..],
                _ => {
                    *held = Some(self.read_piece(at, cancel)?);
                    continue;
                }
            };
            let count = rest.len().min(target.len());
            let (now, later) = target.split_at_mut(count);
            now.copy_from_slice(&rest[..count]);
            at += count as u64;
            target = later;
        }
        Ok(())
    }

    /// Reads the piece of the block that contains byte `at`.
    fn read_piece(&self, at: u64, cancel: &CancelToken) -> Result<CurrentPiece> {
        let length = self.base.chunk_bytes().unwrap_or(PIECE_BYTES);
        let start = at / length * length;
        let end = Extent::saturating(start, length)
            .end()
            .min(self.base.length());
        if end <= start {
            return Err(Error::corrupt("block under an array: too short", None));
        }
        let bytes = self.base.read(start, end, None, cancel)?;
        Ok(CurrentPiece { start, bytes })
    }
}

impl CurrentPiece {
    fn contains(&self, at: u64) -> bool {
        at >= self.start && at - self.start < self.bytes.len() as u64
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use proptest::prelude::*;

    use super::*;
    use crate::array::Reader;
    use crate::array::tests::sample::{byte, plain, range};
    use crate::memory::buffer::Buffer;
    use crate::model::array::Storage;
    use crate::model::storage::{DecodeContext, PieceDecoder, StoredExtent};
    use crate::source::memory::MemorySource;
    use crate::wire::Extent;

    /// A block of computed bytes: byte `i` is `byte(i)`. The block counts how many pieces were
    /// decoded.
    #[derive(Debug)]
    struct CountingBlock {
        bytes: u64,
        piece: u64,
        decoded: AtomicU64,
    }

    impl PieceDecoder for CountingBlock {
        fn byte_length(&self) -> u64 {
            self.bytes
        }

        fn piece_bytes(&self) -> Result<u64> {
            Ok(self.piece)
        }

        fn stored_bytes(&self) -> u64 {
            self.bytes / 2
        }

        fn decode(&self, piece: u64, _: &mut DecodeContext<'_>) -> Result<Buffer> {
            self.decoded.fetch_add(1, Ordering::SeqCst);
            let start = piece * self.piece;
            let bytes = (start..self.bytes.min(start + self.piece)).map(byte);
            Ok(bytes.collect::<Vec<u8>>().into())
        }
    }

    fn block(bytes: u64, piece: u64) -> (Arc<Array>, Arc<CountingBlock>) {
        let block = Arc::new(CountingBlock {
            bytes,
            piece,
            decoded: AtomicU64::new(0),
        });
        let storage = Storage::Encoded(Arc::clone(&block) as Arc<dyn PieceDecoder>);
        (Arc::new(plain(&[bytes], 1, storage)), block)
    }

    fn strided_over(
        base: &Arc<Array>,
        dims: &[u64],
        strides: &[i64],
        element: u64,
        offset: u64,
    ) -> Arc<Array> {
        let strided = Description {
            base: Arc::clone(base),
            offset,
            strides: strides.to_vec(),
        };
        Arc::new(plain(dims, element, Storage::Strided(strided)))
    }

    /// Returns the block offset of each byte of the array.
    fn places(dims: &[u64], strides: &[i64], element: u64, offset: u64) -> Vec<u64> {
        let mut starts = vec![offset.cast_signed()];
        for (&dim, &stride) in dims.iter().zip(strides) {
            let along = |&start: &i64| (0..dim.cast_signed()).map(move |i| start + i * stride);
            starts = starts.iter().flat_map(along).collect();
        }
        let bytes = |start: i64| (0..element).map(move |i| start.cast_unsigned() + i);
        starts.into_iter().flat_map(bytes).collect()
    }

    proptest! {
        #[test]
        fn any_strides_read_as_their_elements(
            axes in prop::collection::vec((1_u64..5, -12_i64..12), 0..4),
            element in 1_u64..4,
            piece in 1_u64..40,
            ends in any::<(u64, u64)>(),
        ) {
            let (dims, strides): (Vec<u64>, Vec<i64>) = axes.into_iter().unzip();
            let (base, _) = block(300, piece);
            let array = strided_over(&base, &dims, &strides, element, 145);
            let reader = Reader::new(&Engine::new(1 << 20, 1), array).unwrap();
            let expected = places(&dims, &strides, element, 145).into_iter();
            let expected: Vec<u8> = expected.map(byte).collect();
            let (start, end) = range(expected.len() as u64, ends);
            let read = reader.read(start, (end - start) as usize).unwrap();
            prop_assert_eq!(&*read, &expected[start as usize..end as usize]);
        }
    }

    #[test]
    fn arrays_over_one_block_share_decoded_pieces() {
        let engine = Engine::new(1 << 20, 1);
        let (base, block) = block(1000, 300);
        // The last piece is shorter. The array's elements are contiguous, so the read needs no
        // copy.
        let tail = Reader::new(&engine, strided_over(&base, &[50], &[2], 2, 900)).unwrap();
        let read = tail.read(0, 100).unwrap();
        assert!(read.is_shared());
        assert_eq!(&*read, (900..1000).map(byte).collect::<Vec<_>>());
        let back = Reader::new(&engine, strided_over(&base, &[50], &[-2], 1, 999)).unwrap();
        let odd: Vec<u8> = (450..500).rev().map(|i| byte(2 * i + 1)).collect();
        assert_eq!(&*back.read(0, 50).unwrap(), odd);
        assert_eq!(block.decoded.load(Ordering::SeqCst), 1);
        // The array has 50 of 1000 bytes, which are stored in 500.
        assert_eq!(back.allocation().unwrap().stored_bytes, 25);
    }

    #[test]
    fn a_read_decodes_each_piece_once_without_a_cache() {
        let engine = Engine::new(0, 1);
        let (base, block) = block(100, 10);
        let transposed =
            Reader::new(&engine, strided_over(&base, &[10, 10], &[1, 10], 1, 0)).unwrap();
        let expected: Vec<u8> = places(&[10, 10], &[1, 10], 1, 0)
            .into_iter()
            .map(byte)
            .collect();
        assert_eq!(&*transposed.read(0, 100).unwrap(), expected);
        assert_eq!(block.decoded.load(Ordering::SeqCst), 10);
    }

    #[test]
    fn pieces_are_cached_for_strided_elements() {
        const LENGTH: u64 = 512 << 10;
        let extent = StoredExtent {
            source: Arc::new(MemorySource::new((0..LENGTH).map(byte).collect())),
            extent: Extent::saturating(0, LENGTH),
        };
        let base = Arc::new(plain(&[LENGTH], 1, Storage::Extents(vec![extent])));
        for (run, kept) in [(LONG_RUN_BYTES - 1, 2), (LONG_RUN_BYTES, 0)] {
            let engine = Engine::new(1 << 20, 1);
            let (dims, strides) = ([64, run], [8 << 10, 1]);
            let expected: Vec<u8> = places(&dims, &strides, 1, 0)
                .into_iter()
                .map(byte)
                .collect();
            let reader = Reader::new(&engine, strided_over(&base, &dims, &strides, 1, 0)).unwrap();
            for _ in 0..2 {
                assert_eq!(&*reader.read(0, expected.len()).unwrap(), expected);
            }
            assert_eq!(engine.statistics().chunks_decoded, kept);
        }
    }

    #[test]
    fn elements_outside_the_block_are_refused() {
        let engine = Engine::new(0, 1);
        let (base, _) = block(100, 10);
        for (strides, offset) in [(10, 8), (-10, 89), (10, u64::MAX), (i64::MIN, 50)] {
            let array = strided_over(&base, &[10], &[strides], 3, offset);
            let refused = Reader::new(&engine, array);
            assert!(matches!(refused, Err(Error::Corrupt { .. })));
        }
        assert!(Reader::new(&engine, strided_over(&base, &[10], &[10], 3, 7)).is_ok());
        assert!(Reader::new(&engine, strided_over(&base, &[10], &[-10], 3, 90)).is_ok());
    }
}
