//! Arrays in memory, read in every way and compared with their elements.

mod cancelled;
mod far;
pub(super) mod sample;

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use proptest::prelude::*;

use super::*;
use crate::array::tests::sample::{FIRST_CHUNK, Sample, Table, byte, plain, range, shapes};
use crate::error::{Error, Result};
use crate::limits;
use crate::memory::buffer::Buffer;
use crate::memory::request_budget::RequestBudget;
use crate::model::array::{Fill, Storage};
use crate::model::storage::{
    ChunkIndex, ChunkVisitor, DecodeContext, IndexCursor, PieceDecoder, StoredChunk, StoredExtent,
};
use crate::source::memory::MemorySource;
use crate::testing::eventually;
use crate::wire::Extent;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    #[test]
    fn any_range_reads_as_its_elements(
        (dims, chunk, element) in shapes(),
        ends in prop::collection::vec(any::<(u64, u64)>(), 1..4),
        (deflate, partial_unfiltered, odd_masked) in any::<(bool, bool, bool)>(),
        some_absent in any::<bool>(),
        cache in prop::sample::select(vec![0, 1000, 1 << 20]),
    ) {
        let sample = Sample {
            deflate,
            partial_unfiltered: deflate && partial_unfiltered,
            odd_masked: deflate && odd_masked,
            absent: if some_absent { |number| number % 3 == 1 } else { |_| false },
            fill: (1..=element as u8).collect(),
            ..Sample::new(&dims, &chunk, element)
        };
        let engine = Engine::new(cache, 2);
        let (reader, _) = sample.reader(&engine);
        let expected = sample.expected();
        prop_assert_eq!(&*reader.read(0, expected.len() + 10).unwrap(), &expected[..]);
        for ends in ends {
            let (start, end) = range(sample.bytes(), ends);
            let read = reader.read(start, (end - start) as usize).unwrap();
            prop_assert_eq!(&*read, &expected[start as usize..end as usize]);
        }
    }
}

#[test]
fn reads_end_with_the_array() {
    let sample = Sample::new(&[10], &[4], 2);
    let (reader, _) = sample.reader(&Engine::new(1 << 20, 1));
    assert_eq!(reader.length(), 20);
    assert_eq!(&*reader.read(18, 100).unwrap(), &sample.expected()[18..]);
    assert!(reader.read(20, 100).unwrap().is_empty());
    assert!(reader.read(u64::MAX, usize::MAX).unwrap().is_empty());
}

#[test]
fn one_chunk_answers_without_a_copy() {
    let sample = Sample::new(&[64, 64], &[16, 64], 4);
    let (reader, _) = sample.reader(&Engine::new(1 << 20, 1));
    // From the middle of a row to the middle of another, all in the second chunk.
    let read = reader.read(16 * 256 + 100, 1000).unwrap();
    assert!(read.is_shared());
    assert_eq!(&*read, &sample.expected()[16 * 256 + 100..][..1000]);
    assert!(!reader.read(16 * 256 - 1, 2).unwrap().is_shared());

    // Whole columns in one chunk, but the chunk's rows are longer than the array's.
    let sample = Sample::new(&[8, 3], &[8, 5], 1);
    let (reader, _) = sample.reader(&Engine::new(1 << 20, 1));
    let read = reader.read(1, 10).unwrap();
    assert!(!read.is_shared());
    assert_eq!(&*read, &sample.expected()[1..11]);
}

#[test]
fn a_chunk_is_decoded_once_for_all_who_wait() {
    let sample = Sample {
        waits: |source, _| !source.released.load(Ordering::SeqCst),
        ..Sample::new(&[4096], &[4096], 1)
    };
    let engine = Engine::new(1 << 20, 2);
    let (reader, source) = sample.reader(&engine);
    let expected = sample.expected();
    std::thread::scope(|scope| {
        for i in 0..32 {
            let (reader, expected) = (&reader, &expected);
            scope.spawn(move || {
                assert_eq!(
                    &*reader.read(i * 100, 50).unwrap(),
                    &expected[i as usize * 100..][..50]
                );
            });
        }
        eventually("all wait", || engine.statistics().misses == 32);
        source.released.store(true, Ordering::SeqCst);
    });
    assert_eq!(source.reads.load(Ordering::SeqCst), 1);
    assert_eq!(engine.statistics().chunks_decoded, 1);
}

#[test]
fn the_cache_size_is_not_exceeded() {
    let sample = Sample::new(&[100_000], &[1000], 1);
    let engine = Engine::new(10_000, 1);
    let (reader, _) = sample.reader(&engine);
    let expected = sample.expected();
    assert_eq!(&*reader.read(0, 100_000).unwrap(), &expected[..]);
    let statistics = engine.statistics();
    assert!(statistics.cache_bytes <= 10_000 && statistics.cache_bytes > 5_000);
    assert!(statistics.evictions > 80);
}

/// Reads all bytes in order, `step` at a time. Returns how many chunks were decoded.
fn decoded_in_order(engine: &Arc<Engine>, sample: &Sample, step: usize) -> u64 {
    let before = engine.statistics().chunks_decoded;
    let (reader, _) = sample.reader(engine);
    let stream = ReadStream::new();
    for (part, expected) in sample.expected().chunks(step).enumerate() {
        let offset = (part * step) as u64;
        assert_eq!(
            &*reader
                .read_in_stream(Some(&stream), offset, step, &CancelToken::default())
                .unwrap(),
            expected
        );
    }
    engine.statistics().chunks_decoded - before
}

#[test]
fn the_cache_grows_to_hold_a_row_of_chunks() {
    // Columns: each row of 64 kB overlaps all 16 chunks.
    let columns = Sample::new(&[20, 64_000], &[20, 4000], 1);
    let size = CacheSize {
        initial_bytes: 200_000,
        max_bytes: 4_000_000,
    };
    let engine = Engine::new(size, 2);
    assert_eq!(decoded_in_order(&engine, &columns, 64_000), 16);
    let statistics = engine.statistics();
    assert!(statistics.cache_bytes <= 200_000 && statistics.cache_capacity == 200_000);

    // Cubes: two bands of four each.
    let cubes = Sample::new(&[40, 40, 40], &[20, 20, 20], 1);
    assert_eq!(decoded_in_order(&engine, &cubes, 1000), 8);
}

#[test]
fn damage_affects_only_its_chunk() {
    let sample = Sample::new(&[30], &[10], 1);
    let (mut file, mut table) = sample.file();
    let middle = table.0[&vec![1]];
    file[middle.offset as usize..][..2].fill(0xff);
    // The last chunk ends after the end of the file.
    table.0.get_mut(&vec![2]).unwrap().length += 1;
    let (array, _) = sample.array();
    let mut array = Arc::into_inner(array).unwrap();
    let Ok(Storage::Chunked(chunked)) = &mut array.storage else {
        panic!("a sample is chunked");
    };
    chunked.source = Arc::new(MemorySource::new(file));
    chunked.index = Arc::new(table);
    let reader = Reader::new(&Engine::new(1 << 20, 1), Arc::new(array)).unwrap();
    assert_eq!(&*reader.read(0, 10).unwrap(), &sample.expected()[..10]);
    for _ in 0..2 {
        match reader.read(10, 1) {
            Err(Error::Corrupt { what, at }) => {
                assert!(what.starts_with("chunk [1]: "), "{what}");
                assert_eq!(at, Some(middle.offset));
            }
            other => panic!("{other:?}"),
        }
        assert!(matches!(reader.read(29, 1), Err(Error::Corrupt { .. })));
        assert!(reader.read(0, 30).is_err());
    }
}

#[test]
fn a_large_unfiltered_chunk_is_read_in_parts() {
    let sample = Sample {
        deflate: false,
        ..Sample::new(&[512, 512], &[512, 512], 4)
    };
    let (reader, source) = sample.reader(&Engine::new(1 << 20, 1));
    assert_eq!(
        &*reader.read(5000, 100).unwrap(),
        &sample.expected()[5000..5100]
    );
    assert_eq!(source.read_bytes.load(Ordering::SeqCst), 100);

    // Two columns of chunks with rows of 1 KiB. A reader of one row needs no more than that row.
    let sample = Sample {
        deflate: false,
        ..Sample::new(&[512, 512], &[512, 256], 4)
    };
    let (reader, source) = sample.reader(&Engine::new(1 << 20, 1));
    assert_eq!(
        &*reader.read(2048, 2048).unwrap(),
        &sample.expected()[2048..4096]
    );
    assert_eq!(source.read_bytes.load(Ordering::SeqCst), 2048);
}

#[test]
fn extents_follow_each_other() {
    let extent = |bytes: &[u8], offset, length| StoredExtent {
        source: Arc::new(MemorySource::new(bytes.to_vec())),
        extent: Extent::saturating(offset, length),
    };
    let extents = vec![
        extent(b"xxabc", 2, 3),
        extent(b"", 0, 0),
        extent(b"defx", 0, 3),
        extent(b"gh", 0, 3),
    ];
    let array = plain(&[5], 2, Storage::Extents(extents));
    let reader = Reader::new(&Engine::new(0, 1), Arc::new(array)).unwrap();
    assert_eq!(&*reader.read(0, 8).unwrap(), b"abcdefgh");
    assert_eq!(&*reader.read(2, 2).unwrap(), b"cd");
    assert_eq!(&*reader.read(5, 1).unwrap(), b"f");
    // The third source is too short, and no extents follow.
    assert!(reader.read(8, 1).is_err());
    assert!(reader.read(9, 1).is_err());
    assert_eq!(reader.allocation().unwrap().next_data(3), Some(3));
}

#[test]
fn fill_inline_and_empty_storage_are_read() {
    let engine = Engine::new(0, 1);
    let mut array = plain(&[1 << 40], 3, Storage::Fill);
    array.fill = Fill::Value(b"abc"[..].into());
    let reader = Reader::new(&engine, Arc::new(array)).unwrap();
    assert_eq!(&*reader.read(3 * (1 << 39) + 1, 6).unwrap(), b"bcabca");
    assert_eq!(reader.allocation().unwrap().next_data(7), Some(7));

    let zeros = plain(&[1 << 40], 3, Storage::Fill);
    let reader = Reader::new(&engine, Arc::new(zeros)).unwrap();
    assert_eq!(&*reader.read(5, 4).unwrap(), [0; 4]);
    assert!(reader.allocation().unwrap().is_hole());

    let inline = plain(&[2], 2, Storage::Inline(b"wxyz"[..].into()));
    let reader = Reader::new(&engine, Arc::new(inline)).unwrap();
    assert_eq!(&*reader.read(1, 9).unwrap(), b"xyz");

    let empty = plain(&[0, 7], 2, Storage::Empty);
    let reader = Reader::new(&engine, Arc::new(empty)).unwrap();
    assert_eq!((reader.length(), reader.read(0, 9).unwrap().len()), (0, 0));

    let mut odd = plain(&[2], 2, Storage::Fill);
    odd.fill = Fill::Value(b"abc"[..].into());
    assert!(Reader::new(&engine, Arc::new(odd)).is_err());
}

#[test]
fn unsupported_filters_are_rejected_at_once() {
    let engine = Engine::new(0, 1);
    let (array, _) = Sample::new(&[10], &[5], 1).array();
    let mut array = Arc::into_inner(array).unwrap();
    let Ok(Storage::Chunked(chunked)) = &mut array.storage else {
        panic!("a sample is chunked");
    };
    chunked.pipeline.0[0].id = 60_000;
    let refused = Reader::new(&engine, Arc::new(array)).err();
    assert!(matches!(refused, Some(Error::Unsupported { .. })));

    let mut array = plain(&[10], 1, Storage::Fill);
    array.storage = Err(Error::unsupported("virtual storage", 7));
    let refused = Reader::new(&engine, Arc::new(array)).err();
    assert_eq!(refused, Some(Error::unsupported("virtual storage", 7)));
}

/// Checks that the limit applies to decoding only: if no such chunk is stored, none is ever in
/// memory.
#[test]
fn an_oversized_filtered_chunk_is_rejected_only_if_stored() {
    let engine = Engine::new(1 << 20, 1);
    let mut sample = Sample::new(&[10], &[limits::CHUNK_BYTES + 1], 1);
    sample.absent = |_| true;
    sample.fill = vec![7];
    let (array, _) = sample.array();
    let reader = Reader::new(&engine, Arc::clone(&array)).unwrap();
    let stream = ReadStream::new();
    for offset in [0, 3, 6] {
        assert_eq!(
            &*reader
                .read_in_stream(Some(&stream), offset, 3, &CancelToken::default())
                .unwrap(),
            [7; 3]
        );
    }

    drop(reader);
    let mut array = Arc::into_inner(array).unwrap();
    let Ok(Storage::Chunked(chunked)) = &mut array.storage else {
        panic!("a sample is chunked");
    };
    let mut table = Table::default();
    let stored = StoredChunk {
        offset: 0,
        length: 7,
        filter_mask: 0,
    };
    table.0.insert(vec![0], stored);
    chunked.index = Arc::new(table);
    let reader = Reader::new(&engine, Arc::new(array)).unwrap();
    let refused = reader.read(0, 3).err();
    assert!(matches!(refused, Some(Error::Limit { max, .. }) if max == limits::CHUNK_BYTES));
}

#[test]
fn holes_are_rows_without_stored_chunks() {
    // Five bands of two chunks; only the chunks 2, 3 and 9 are stored: bands 1 and 4.
    let sample = Sample {
        absent: |number| ![2, 3, 9].contains(&number),
        ..Sample::new(&[1, 10, 6], &[1, 2, 4], 2)
    };
    let (reader, _) = sample.reader(&Engine::new(1 << 20, 1));
    let allocation = reader.allocation().unwrap();
    assert_eq!(allocation.next_data(0), Some(24));
    assert_eq!(allocation.next_data(30), Some(30));
    assert_eq!(allocation.next_hole(30), 48);
    assert_eq!(allocation.next_data(48), Some(96));
    assert_eq!(allocation.next_hole(10), 10);
    assert_eq!(allocation.next_hole(96), 120);
    assert_eq!(allocation.next_data(120), None);
    let expected = sample.expected();
    assert!(
        expected[..24]
            .iter()
            .chain(&expected[48..96])
            .all(|&b| b == 0)
    );
    let (file, _) = sample.file();
    let before = b"something else first".len() as u64;
    assert_eq!(allocation.stored_bytes, file.len() as u64 - before);

    let filled = Sample {
        fill: vec![0, 1],
        ..sample
    };
    let (reader, _) = filled.reader(&Engine::new(1 << 20, 1));
    assert_eq!(reader.allocation().unwrap().next_data(0), Some(0));
}

/// An endless index that claims this many chunks of a huge array, with 7 bytes each.
#[derive(Debug)]
struct EndlessChunkIndex(u64);

impl ChunkIndex for EndlessChunkIndex {
    fn find(&self, _: &[u64]) -> Result<Option<StoredChunk>> {
        Ok(None)
    }

    fn walk_from(
        &self,
        _: &mut IndexCursor,
        _: &RequestBudget,
        visit: &mut ChunkVisitor<'_>,
    ) -> Result<()> {
        let stored = StoredChunk {
            offset: 0,
            length: 7,
            filter_mask: 0,
        };
        let broken_off = (0..self.0).any(|i| visit(&[i], stored) == ControlFlow::Break(()));
        if broken_off {
            Ok(())
        } else {
            Err(Error::limit("what a request looks at", self.0))
        }
    }
}

#[test]
fn stored_bytes_do_not_exceed_the_file() {
    let mut array = Arc::into_inner(Sample::new(&[2], &[1], 1).array().0).unwrap();
    let Ok(Storage::Chunked(chunked)) = &mut array.storage else {
        panic!("a sample is chunked");
    };
    let endless = StoredChunk {
        offset: 0,
        length: u64::MAX,
        filter_mask: 0,
    };
    chunked.index = Arc::new(Table([0, 1].map(|i| (vec![i], endless)).into()));
    let length = chunked.source.length();
    let reader = Reader::new(&Engine::new(0, 1), Arc::new(array)).unwrap();
    assert_eq!(reader.allocation().unwrap().stored_bytes, length);
}

#[test]
fn an_incomplete_walk_is_extrapolated() {
    for chunks in [1000, u64::MAX] {
        extrapolates(chunks);
    }
}

#[track_caller]
fn extrapolates(chunks: u64) {
    let mut sample = Sample::new(&[1 << 40], &[1 << 20], 1);
    sample.absent = |_| true;
    let (array, _) = sample.array();
    let mut array = Arc::into_inner(array).unwrap();
    let Ok(Storage::Chunked(chunked)) = &mut array.storage else {
        panic!("a sample is chunked");
    };
    chunked.index = Arc::new(EndlessChunkIndex(chunks));
    chunked.source = Arc::new(MemorySource::new(vec![0; 8 << 20]));
    let reader = Reader::new(&Engine::new(0, 1), Arc::new(array)).unwrap();
    let allocation = reader.allocation().unwrap();
    assert_eq!(allocation.stored_bytes, 7 << 20);
    assert_eq!(allocation.next_hole(5), 1 << 40);
}

#[test]
fn a_sequential_reader_finds_its_chunks_decoded() {
    let sample = Sample::new(&[64, 1000], &[1, 1000], 1);
    let engine = Engine::new(1 << 20, 2);
    let (reader, _) = sample.reader(&engine);
    let stream = ReadStream::new();
    // The requests of one reader, two of them in the wrong order.
    for offset in [0, 200, 600, 400] {
        reader
            .read_in_stream(Some(&stream), offset, 200, &CancelToken::default())
            .unwrap();
    }
    eventually("all 64 chunks decoded", || {
        engine.statistics().chunks_decoded == 64
    });
    let before = engine.statistics();
    assert_eq!(
        &*reader.read(1000, 63_000).unwrap(),
        &sample.expected()[1000..]
    );
    let after = engine.statistics();
    assert_eq!(after.misses, before.misses);
    assert_eq!(after.chunks_decoded, 64);
}

/// Waits until all queued chunks have been taken. To check this, reads chunks of another array that
/// are queued after them.
fn pass_through_the_queue(engine: &Arc<Engine>) {
    let sample = Sample::new(&[4, 1000], &[1, 1000], 1);
    let (reader, source) = sample.reader(engine);
    let stream = ReadStream::new();
    for offset in [0, 500] {
        let cancel = CancelToken::default();
        reader
            .read_in_stream(Some(&stream), offset, 500, &cancel)
            .unwrap();
    }
    eventually("the end of the queue", || {
        source.reads.load(Ordering::SeqCst) == 4
    });
}

#[test]
fn a_random_reader_causes_no_other_decodes() {
    let sample = Sample::new(&[64_000], &[1000], 1);
    let engine = Engine::new(1 << 20, 1);
    let (reader, source) = sample.reader(&engine);
    let stream = ReadStream::new();
    for i in 0..16 {
        let offset = i * 37 % 64 * 1000;
        reader
            .read_in_stream(Some(&stream), offset, 100, &CancelToken::default())
            .unwrap();
    }
    pass_through_the_queue(&engine);
    assert_eq!(source.reads.load(Ordering::SeqCst), 16);
}

#[test]
fn a_seek_drops_queued_chunks() {
    // All chunks after the first one wait until the stream is dropped.
    let sample = Sample {
        waits: |source, at| at > FIRST_CHUNK && !source.released.load(Ordering::SeqCst),
        ..Sample::new(&[64_000], &[1000], 1)
    };
    let engine = Engine::new(1 << 20, 2);
    let (reader, source) = sample.reader(&engine);
    let stream = ReadStream::new();
    for offset in [0, 500] {
        let cancel = CancelToken::default();
        reader
            .read_in_stream(Some(&stream), offset, 500, &cancel)
            .unwrap();
    }
    drop(stream);
    source.released.store(true, Ordering::SeqCst);
    pass_through_the_queue(&engine);
    // In addition to the first chunk, the chunks that the two threads were decoding.
    let read = source.reads.load(Ordering::SeqCst);
    assert!(read <= 3, "{read}");
}

#[test]
fn one_read_of_many_chunks_is_decoded_by_all_threads() {
    let sample = Sample {
        waits: |source, _| source.together.load(Ordering::SeqCst) < 2,
        ..Sample::new(&[8, 1000], &[1, 1000], 1)
    };
    let engine = Engine::new(1 << 20, 4);
    let (reader, source) = sample.reader(&engine);
    assert_eq!(&*reader.read(0, 8000).unwrap(), &sample.expected()[..]);
    assert!(source.together.load(Ordering::SeqCst) > 1);
    assert_eq!(engine.statistics().chunks_decoded, 8);
}

/// A block that decodes all earlier pieces before each piece, and counts the decoded pieces.
#[derive(Debug, Default)]
struct SequentialBlock {
    decoded: AtomicU64,
}

impl PieceDecoder for SequentialBlock {
    fn byte_length(&self) -> u64 {
        64_000
    }

    fn piece_bytes(&self) -> Result<u64> {
        Ok(1000)
    }

    fn stored_bytes(&self) -> u64 {
        64_000
    }

    fn is_sequential(&self) -> bool {
        true
    }

    fn decode(&self, piece: u64, help: &mut DecodeContext<'_>) -> Result<Buffer> {
        self.decoded.fetch_add(piece + 1, Ordering::SeqCst);
        let content = |piece: u64| {
            let bytes = (piece * 1000..(piece + 1) * 1000).map(byte);
            Buffer::from(bytes.collect::<Vec<u8>>())
        };
        (0..piece).for_each(|before| (help.on_extra_piece)(before, content(before)));
        Ok(content(piece))
    }
}

#[test]
fn going_backwards_through_a_stream_is_not_quadratic() {
    let read_backwards = |cache_bytes| {
        let block = Arc::new(SequentialBlock::default());
        let storage = Storage::Encoded(Arc::clone(&block) as Arc<dyn PieceDecoder>);
        let array = Arc::new(plain(&[64_000], 1, storage));
        let reader = Reader::new(&Engine::new(cache_bytes, 1), array).unwrap();
        for start in (0..128_u64).rev().map(|part| part * 500) {
            let expected: Vec<u8> = (start..start + 500).map(byte).collect();
            assert_eq!(&*reader.read(start, 500).unwrap(), expected);
        }
        block.decoded.load(Ordering::SeqCst)
    };
    // One decode fills only half of the room, which is 72 pieces.
    assert_eq!(read_backwards(72_500), 64 + 28);
    assert_eq!(read_backwards(1 << 20), 64);
    // Each decode leaves five pieces: 64 + 59 + ... + 4.
    assert_eq!(read_backwards(10_152), 442);
}

#[test]
fn the_threads_end_with_the_engine() {
    let engine = Engine::new(0, 3);
    let decoder = Arc::downgrade(&engine.decoder);
    drop(engine);
    eventually("threads ended", || decoder.strong_count() == 0);
}
