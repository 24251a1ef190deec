//! Reads of arrays that are assembled from other arrays. A cancelled read ends at once, and a read
//! counts as heavy if the reads of its sources do.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use crate::array::tests::sample::{Sample, Table, plain};
use crate::array::{Engine, Reader};
use crate::error::{Error, Result};
use crate::limits;
use crate::memory::cancel::{CancelToken, Canceller, RequestSlot, WantedCheck};
use crate::model::array::{
    Array, ElementRecoder, Mapping, OpenVirtualSource, Storage, StridedLayout, VirtualSource,
};
use crate::model::datatype::{ByteOrder, Datatype};
use crate::model::region::Region;
use crate::model::storage::{ChunkGrid, Filter, Pipeline, StoredChunk, StoredExtent};
use crate::source::{SharedSource, Source};
use crate::testing::eventually;
use crate::wire::Extent;

/// A remote source whose server never answers.
#[derive(Debug, Default)]
struct SilentSource {
    is_asked: AtomicBool,
    is_left: AtomicBool,
}

impl Source for SilentSource {
    fn length(&self) -> u64 {
        1 << 20
    }

    fn is_remote(&self) -> bool {
        true
    }

    fn read_cancellable(&self, _: u64, _: &mut [u8], is_wanted: &WantedCheck<'_>) -> Result<()> {
        self.is_asked.store(true, Ordering::SeqCst);
        eventually("nobody waits for the bytes", || !is_wanted());
        self.is_left.store(true, Ordering::SeqCst);
        Err(Error::cancelled())
    }
}

/// A whole array as a source of a virtual one.
#[derive(Debug)]
struct WholeArraySource {
    array: Arc<Array>,
    is_remote: bool,
    recode: Option<Arc<dyn ElementRecoder>>,
}

impl VirtualSource for WholeArraySource {
    fn open(&self, _: &CancelToken) -> Result<Option<OpenVirtualSource>> {
        Ok(Some(OpenVirtualSource {
            array: Arc::clone(&self.array),
            file: None,
            recode: self.recode.clone(),
        }))
    }

    fn name(&self) -> String {
        "whole".to_owned()
    }

    fn is_in_other_file(&self) -> bool {
        false
    }

    fn is_remote(&self) -> bool {
        self.is_remote
    }

    fn weight(&self) -> u64 {
        1
    }
}

/// A recoding that keeps each element unchanged.
#[derive(Debug)]
struct UnchangedElements;

impl ElementRecoder for UnchangedElements {
    fn recode(&self, stored: &[u8], element: &mut [u8]) -> Result<()> {
        element.copy_from_slice(stored);
        Ok(())
    }
}

/// Returns the array with integers of `size` bytes as its datatype.
fn integers(size: u16, array: Array) -> Arc<Array> {
    Arc::new(Array {
        datatype: Datatype::integer(size, true, ByteOrder::Little),
        ..array
    })
}

fn virtual_over(whole: WholeArraySource, size: u16) -> Arc<Array> {
    let dims = whole.array.shape.dims().to_vec();
    let mapping = Mapping {
        region: Region::All,
        source_region: Region::All,
        source: Arc::new(whole),
    };
    let storage = Storage::Virtual(std::iter::once(mapping).collect());
    integers(size, plain(&dims, size.into(), storage))
}

fn read_locally(array: &Arc<Array>) -> WholeArraySource {
    WholeArraySource {
        array: Arc::clone(array),
        is_remote: false,
        recode: None,
    }
}

/// Returns 1000 bytes in extents, in chunks, and in chunks with a filter.
fn stored(source: &Arc<SilentSource>) -> [Arc<Array>; 3] {
    let source = || -> SharedSource { Arc::clone(source) as SharedSource };
    let extent = StoredExtent {
        source: source(),
        extent: Extent::saturating(0, 1000),
    };
    let chunks = |filters: &[u16]| {
        let chunk = |number: u64| StoredChunk {
            offset: number * 100,
            length: 100,
            filter_mask: 0,
        };
        let table = (0..10).map(|number| (vec![number], chunk(number)));
        let filter = |&id: &u16| Filter {
            id,
            name: None,
            parameters: Vec::new(),
        };
        Storage::Chunked(ChunkGrid {
            source: source(),
            min_offset: 0,
            chunk_shape: vec![100],
            index: Arc::new(Table(table.collect())),
            pipeline: Pipeline(filters.iter().map(filter).collect()),
            has_unfiltered_edge_chunks: false,
        })
    };
    [Storage::Extents(vec![extent]), chunks(&[]), chunks(&[1])]
        .map(|storage| integers(1, plain(&[1000], 1, storage)))
}

/// Returns arrays over another array, one of each kind.
fn arrays_over(base: &Arc<Array>) -> Vec<Arc<Array>> {
    let recoded = WholeArraySource {
        recode: Some(Arc::new(UnchangedElements)),
        ..read_locally(base)
    };
    let strided = Storage::Strided(StridedLayout {
        base: Arc::clone(base),
        offset: 0,
        strides: vec![2],
    });
    let once = virtual_over(read_locally(base), 1);
    vec![
        virtual_over(read_locally(&once), 1),
        once,
        virtual_over(recoded, 1),
        virtual_over(read_locally(base), 2),
        integers(1, plain(&[500], 1, strided)),
    ]
}

#[test]
fn a_cancelled_read_leaves_the_source_at_once() {
    for kind in 0..3 {
        let kinds = arrays_over(&stored(&Arc::default())[kind]).len();
        for number in 0..kinds {
            let silent = Arc::<SilentSource>::default();
            let array = arrays_over(&stored(&silent)[kind]).swap_remove(number);
            let reader = Reader::new(&Engine::new(1 << 20, 1), array).unwrap();
            let canceller = Canceller::default();
            let token = canceller.token();
            thread::scope(|scope| {
                let read = scope.spawn(|| reader.read_with_cancel(0, 50, &token));
                eventually("the source is asked", || {
                    silent.is_asked.load(Ordering::SeqCst)
                });
                canceller.cancel();
                let read = read.join().unwrap();
                assert!(
                    read.is_err_and(|error| error.is_cancelled()),
                    "{kind} {number}"
                );
            });
            assert!(silent.is_left.load(Ordering::SeqCst), "{kind} {number}");
        }
    }
}

/// Returns an array of `bytes` bytes in one chunk with a filter.
fn numbered(bytes: u64) -> Arc<Array> {
    let (array, _) = Sample::new(&[bytes], &[bytes], 1).array();
    integers(1, Arc::into_inner(array).unwrap())
}

/// Reads as a quick request, and returns whether the request was postponed.
fn is_put_off(reader: &Reader) -> bool {
    let ticket = Arc::<RequestSlot>::default();
    let cancel = CancelToken::default().with_slot(&ticket);
    let read = reader.read_with_cancel(0, 50, &cancel);
    assert_eq!(read.is_err(), ticket.is_postponed());
    ticket.move_to_heavy_slot();
    assert!(reader.read_with_cancel(0, 50, &cancel).is_ok());
    ticket.is_postponed() || read.is_err()
}

#[test]
fn a_read_is_heavy_if_its_source_is() {
    for (bytes, is_heavy) in [(limits::SMALL_DECODE, true), (1000, false)] {
        let array = || numbered(bytes);
        let engine = || Engine::new(0, 1);
        let plain = Reader::new(&engine(), array()).unwrap();
        assert_eq!(is_put_off(&plain), is_heavy, "of its own");
        for (number, over) in arrays_over(&array()).into_iter().enumerate() {
            let reader = Reader::new(&engine(), over).unwrap();
            assert_eq!(is_put_off(&reader), is_heavy, "{number}");
        }
    }
}

#[test]
fn opening_a_far_source_counts_as_heavy() {
    let array = numbered(1000);
    let far = WholeArraySource {
        is_remote: true,
        ..read_locally(&array)
    };
    let reader = Reader::new(&Engine::new(1 << 20, 1), virtual_over(far, 1)).unwrap();
    assert!(is_put_off(&reader));
    assert!(!is_put_off(&reader), "it is open");
}
