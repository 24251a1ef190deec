//! Reads of arrays in a source that counts the round trips of its readers.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use crate::array::read_ahead::hints::{TouchedChunks, stored_ranges};
use crate::array::tests::sample::{Sample, Table, plain};
use crate::array::{CancelToken, Engine, ReadStream, Reader};
use crate::error::Result;
use crate::limits;
use crate::memory::cancel::WantedCheck;
use crate::model::array::{Storage, StridedLayout};
use crate::model::storage::{StoredChunk, StoredExtent};
use crate::source::recording::RoundTripRecorder;
use crate::source::{SharedSource, Source, Urgency};
use crate::wire::Extent;

/// Returns a reader of the sample's array, whose bytes come from `source`.
fn reader_from(sample: &Sample, engine: &Arc<Engine>, source: SharedSource) -> Reader {
    let mut array = Arc::into_inner(sample.array().0).unwrap();
    let Ok(Storage::Chunked(chunked)) = &mut array.storage else {
        panic!("a sample is chunked");
    };
    chunked.source = source;
    Reader::new(engine, Arc::new(array)).unwrap()
}

fn far_reader(sample: &Sample, engine: &Arc<Engine>) -> (Reader, Arc<RoundTripRecorder>) {
    let (file, _) = sample.file();
    let far = RoundTripRecorder::new(file);
    (reader_from(sample, engine, far.clone()), far)
}

fn read_on(reader: &Reader, stream: &ReadStream, offset: u64, length: usize) -> Vec<u8> {
    let token = CancelToken::default();
    let read = reader.read_in_stream(Some(stream), offset, length, &token);
    read.unwrap().to_vec()
}

#[test]
fn the_chunks_of_a_read_are_requested_together() {
    let sample = Sample::new(&[64, 64], &[8, 32], 4);
    let (reader, far) = far_reader(&sample, &Engine::new(1 << 20, 2));
    let expected = sample.expected();
    assert_eq!(&*reader.read(0, expected.len()).unwrap(), expected);
    assert_eq!(far.round_trips(), 1);
    let needed = far
        .announced_ranges()
        .into_iter()
        .filter(|asked| asked.2 == Urgency::Needed);
    assert_eq!(needed.count(), 16);
    // Decoded chunks are not requested again.
    reader.read(0, expected.len()).unwrap();
    assert_eq!((far.round_trips(), far.bytes()), (1, far.length() - 20));
}

#[test]
fn only_the_needed_runs_of_an_unfiltered_chunk_are_requested() {
    let sample = Sample {
        deflate: false,
        ..Sample::new(&[4, 100_000], &[4, 60_000], 1)
    };
    let (reader, far) = far_reader(&sample, &Engine::new(1 << 20, 2));
    // Rows 1 and 2: two rows of the first chunk, and 40 000 bytes of two rows of the second.
    let read = reader.read(100_000, 200_000).unwrap();
    assert_eq!(&*read, &sample.expected()[100_000..300_000]);
    assert_eq!(
        (far.round_trips(), far.bytes()),
        (1, 2 * 60_000 + 2 * 40_000)
    );
    let needed = far
        .announced_ranges()
        .into_iter()
        .filter(|asked| asked.2 == Urgency::Needed);
    assert_eq!(needed.count(), 3);
}

#[test]
fn a_sequential_reader_waits_twice() {
    let sample = Sample::new(&[400, 64], &[2, 64], 4);
    let (reader, far) = far_reader(&sample, &Engine::new(1 << 20, 2));
    let (stream, expected) = (ReadStream::new(), sample.expected());
    for (i, part) in expected.chunks(512).enumerate() {
        assert_eq!(read_on(&reader, &stream, i as u64 * 512, 512), part);
    }
    assert_eq!(far.round_trips(), 2);
}

#[test]
fn reads_without_a_handle_are_read_ahead() {
    let sample = Sample::new(&[400, 64], &[2, 64], 4);
    let (reader, far) = far_reader(&sample, &Engine::new(1 << 20, 2));
    for (i, part) in sample.expected().chunks(512).enumerate() {
        assert_eq!(&*reader.read(i as u64 * 512, 512).unwrap(), part);
    }
    assert_eq!(far.round_trips(), 2);
}

#[test]
fn an_array_is_requested_whole_after_several_touched_chunks() {
    let sample = Sample::new(&[80, 64], &[1, 64], 4);
    let (reader, far) = far_reader(&sample, &Engine::new(1 << 20, 2));
    let touch = |chunk: u64| reader.read(chunk * 256, 1).unwrap();
    for i in 0..7 {
        touch(i * 11);
    }
    assert_eq!(far.round_trips(), 7);
    assert!(
        far.announced_ranges()
            .iter()
            .all(|asked| asked.2 == Urgency::Needed)
    );
    touch(79);
    touch(78);
    assert_eq!(far.round_trips(), 9);
    for i in 0..80 {
        touch(i);
    }
    assert_eq!((far.round_trips(), far.bytes()), (9, far.length() - 20));
}

/// Checks that the chunks of a store are requested as a whole too, in whatever order they are
/// opened.
#[test]
fn an_array_is_requested_whole_after_many_read_chunks() {
    let sample = Sample::new(&[80, 64], &[1, 64], 4);
    let (reader, far) = far_reader(&sample, &Engine::new(1 << 20, 2));
    let expected = sample.expected();
    for place in (0..80).rev() {
        // In two pieces, as the kernel reads a file.
        for offset in [0, 100] {
            let token = CancelToken::default();
            let read = reader.read_chunk(&[place, 0], offset, 256, &token).unwrap();
            let start = place as usize * 256;
            assert_eq!(&*read, &expected[start + offset as usize..start + 256]);
        }
    }
    // Eight chunks, one after another, and then all others.
    assert_eq!((far.round_trips(), far.bytes()), (9, far.length() - 20));
}

#[test]
fn one_touched_chunk_does_not_request_the_array() {
    let enough = |chunks: &[u64], count| {
        let touched = TouchedChunks::default();
        let mut asked = chunks
            .iter()
            .map(|&chunk| touched.record_touches([chunk].into_iter(), count));
        asked.position(|is_enough| is_enough)
    };
    assert_eq!(enough(&[1, 1, 1], 2), None);
    assert_eq!(enough(&[1, 1, 0, 0], 2), Some(2));
    assert_eq!(enough(&[1, 5, 9, 13], 24), Some(2));
    let many: Vec<u64> = (0..20).collect();
    assert_eq!(
        enough(&many, u64::MAX),
        Some(limits::TOUCHED_CHUNKS as usize - 1)
    );
}

#[test]
fn large_arrays_are_not_requested_whole() {
    let ranges = |lengths: &[(u64, u64)]| {
        let chunk = |(i, &(offset, length)): (usize, &(u64, u64))| {
            let filter_mask = 0;
            let stored = StoredChunk {
                offset,
                length,
                filter_mask,
            };
            (vec![i as u64], stored)
        };
        let mut array = Arc::into_inner(Sample::new(&[9], &[1], 1).array().0).unwrap();
        let Ok(Storage::Chunked(chunked)) = &mut array.storage else {
            panic!("a sample is chunked");
        };
        chunked.index = Arc::new(Table(lengths.iter().enumerate().map(chunk).collect()));
        stored_ranges(chunked)
    };
    let touching = [(50, 10), (20, 5), (60, 7), (10, 10)];
    assert_eq!(ranges(&touching), Some(vec![(10, 15), (50, 17)]));
    let endless = [(10, 5), (u64::MAX - 3, 4)];
    assert_eq!(ranges(&endless), Some(vec![(10, 5)]));
    let half = limits::WHOLE_BYTES / 2;
    assert_eq!(
        ranges(&[(0, half), (half, half)]),
        Some(vec![(0, 2 * half)])
    );
    assert_eq!(ranges(&[(0, half), (half, half), (2 * half, 1)]), None);
    let many: Vec<_> = (0..=limits::WHOLE_CHUNKS).map(|i| (2 * i, 1)).collect();
    assert_eq!(ranges(&many), None);
    assert!(ranges(&many[1..]).is_some());
}

/// A source that counts the reads of decode threads, and the reads for which they would have
/// waited.
#[derive(Debug)]
struct Watched {
    far: Arc<RoundTripRecorder>,
    ahead: AtomicUsize,
    waited: AtomicUsize,
}

impl Source for Watched {
    fn length(&self) -> u64 {
        self.far.length()
    }

    fn is_remote(&self) -> bool {
        true
    }

    fn prefetch(&self, ranges: &[(u64, u64)], urgency: Urgency) {
        self.far.prefetch(ranges, urgency);
    }

    fn is_available(&self, at: u64, length: u64) -> bool {
        self.far.is_available(at, length)
    }

    fn read_cancellable(
        &self,
        at: u64,
        buffer: &mut [u8],
        is_wanted: &WantedCheck<'_>,
    ) -> Result<()> {
        if thread::current().name() == Some("decode") {
            let waits = !self.is_available(at, buffer.len() as u64);
            self.ahead.fetch_add(1, Ordering::SeqCst);
            self.waited.fetch_add(usize::from(waits), Ordering::SeqCst);
        }
        self.far.read_cancellable(at, buffer, is_wanted)
    }
}

#[test]
fn decode_threads_never_wait_for_the_source() {
    let sample = Sample::new(&[300, 64], &[1, 64], 4);
    let (file, _) = sample.file();
    let source = Arc::new(Watched {
        far: RoundTripRecorder::new(file),
        ahead: AtomicUsize::new(0),
        waited: AtomicUsize::new(0),
    });
    let engine = Engine::new(1 << 20, 2);
    let reader = reader_from(&sample, &engine, source.clone());
    let (stream, expected) = (ReadStream::new(), sample.expected());
    for (i, part) in expected.chunks(5 * 256).enumerate() {
        assert_eq!(read_on(&reader, &stream, i as u64 * 1280, 1280), part);
        thread::sleep(std::time::Duration::from_millis(1));
    }
    assert_eq!(source.waited.load(Ordering::SeqCst), 0);
    assert!(source.ahead.load(Ordering::SeqCst) > 0);
}

/// Returns an array of bytes in these extents of one source, each an offset and a length.
fn extents(far: &Arc<RoundTripRecorder>, parts: &[(u64, u64)]) -> Storage {
    let extent = |&(offset, length): &(u64, u64)| StoredExtent {
        source: far.clone(),
        extent: Extent::saturating(offset, length),
    };
    Storage::Extents(parts.iter().map(extent).collect())
}

#[test]
fn extents_are_requested_as_they_are_read() {
    let far = RoundTripRecorder::new((0..200).collect());
    let storage = extents(&far, &[(100, 50), (0, 50)]);
    let array = Arc::new(plain(&[100], 1, storage));
    let reader = Reader::new(&Engine::new(1 << 20, 1), array).unwrap();
    let stream = ReadStream::new();
    let expected: Vec<u8> = (100..150).chain(0..50).collect();
    assert_eq!(read_on(&reader, &stream, 40, 20), expected[40..60]);
    let needed = [(140, 10), (0, 10)].map(|(at, n)| (at, n, Urgency::Needed));
    assert_eq!(
        (far.round_trips(), far.announced_ranges()),
        (1, needed.to_vec())
    );
    assert_eq!(read_on(&reader, &stream, 60, 10), expected[60..70]);
    assert_eq!(read_on(&reader, &stream, 70, 30), expected[70..]);
    assert_eq!((far.round_trips(), far.bytes()), (2, 60));
    assert!(
        reader.try_read(&stream, 0, 10).unwrap().is_none(),
        "it would be waited for"
    );
}

#[test]
fn the_pieces_of_strided_elements_are_requested_together() {
    let far = RoundTripRecorder::new(vec![7; 4 << 20]);
    let base = Arc::new(plain(&[4 << 20], 1, extents(&far, &[(0, 4 << 20)])));
    let strided = StridedLayout {
        base,
        offset: 5,
        strides: vec![1 << 20, 1],
    };
    let array = plain(&[4, 2], 1, Storage::Strided(strided));
    let reader = Reader::new(&Engine::new(8 << 20, 2), Arc::new(array)).unwrap();
    assert_eq!(&*reader.read(0, 8).unwrap(), [7; 8]);
    assert_eq!((far.round_trips(), far.bytes()), (1, 4 * (256 << 10)));
}
