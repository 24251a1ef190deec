//! Sample arrays as files store them, with bytes whose values identify their positions.

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use proptest::prelude::*;

use crate::array::{Engine, Reader};
use crate::error::Result;
use crate::memory::cancel::WantedCheck;
use crate::memory::request_budget::RequestBudget;
use crate::model::Shape;
use crate::model::array::{Array, Fill, Layout, Storage};
use crate::model::datatype::{Class, Datatype};
use crate::model::storage::{
    ChunkGrid, ChunkIndex, ChunkVisitor, Filter, IndexCursor, Pipeline, StoredChunk,
};
use crate::source::memory::MemorySource;
use crate::source::{SharedSource, Source};
use crate::testing::eventually;

/// A chunk index that is a table.
#[derive(Debug, Default)]
pub(in crate::array) struct Table(pub(super) HashMap<Vec<u64>, StoredChunk>);

impl ChunkIndex for Table {
    fn find(&self, place: &[u64]) -> Result<Option<StoredChunk>> {
        Ok(self.0.get(place).copied())
    }

    fn walk_from(
        &self,
        _: &mut IndexCursor,
        _: &RequestBudget,
        visit: &mut ChunkVisitor<'_>,
    ) -> Result<()> {
        for (place, &stored) in &self.0 {
            if visit(place, stored) == ControlFlow::Break(()) {
                break;
            }
        }
        Ok(())
    }
}

/// A source that counts its reads and can delay them.
#[derive(Debug)]
pub(in crate::array) struct CountingSource {
    pub(super) bytes: MemorySource,
    pub(super) reads: AtomicU64,
    pub(super) read_bytes: AtomicU64,
    reading: AtomicU64,
    /// The largest number of simultaneous reads.
    pub(super) together: AtomicU64,
    /// Returns whether a read at this offset still has to wait.
    waits: fn(&CountingSource, u64) -> bool,
    /// For `waits`: whether the test has come to its end.
    pub(super) released: AtomicBool,
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
        self.reads.fetch_add(1, Ordering::SeqCst);
        self.read_bytes
            .fetch_add(buffer.len() as u64, Ordering::SeqCst);
        let reading = self.reading.fetch_add(1, Ordering::SeqCst) + 1;
        self.together.fetch_max(reading, Ordering::SeqCst);
        eventually("a read may go on", || !(self.waits)(self, at));
        self.reading.fetch_sub(1, Ordering::SeqCst);
        self.bytes.read_cancellable(at, buffer, is_wanted)
    }
}

/// An array whose byte number i is `byte(i)`, as a file would store it.
pub(in crate::array) struct Sample {
    pub(super) dims: Vec<u64>,
    pub(super) chunk: Vec<u64>,
    pub(super) element: u64,
    /// Selects the chunks that are not stored, by number.
    pub(super) absent: fn(u64) -> bool,
    pub(super) deflate: bool,
    pub(super) partial_unfiltered: bool,
    /// Whether filters were skipped for chunks of odd number.
    pub(super) odd_masked: bool,
    pub(super) fill: Vec<u8>,
    /// Delays reads, see [`CountingSource`].
    pub(super) waits: fn(&CountingSource, u64) -> bool,
}

/// The offset of the first chunk. Other bytes precede it.
pub(super) const FIRST_CHUNK: u64 = 20;

pub(in crate::array) fn byte(i: u64) -> u8 {
    (i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) as u8
}

impl Sample {
    pub(super) fn new(dims: &[u64], chunk: &[u64], element: u64) -> Self {
        Sample {
            dims: dims.to_vec(),
            chunk: chunk.to_vec(),
            element,
            absent: |_| false,
            deflate: true,
            partial_unfiltered: false,
            odd_masked: false,
            fill: vec![0; element as usize],
            waits: |_, _| false,
        }
    }

    pub(super) fn bytes(&self) -> u64 {
        self.dims.iter().product::<u64>() * self.element
    }

    pub(super) fn counts(&self) -> Vec<u64> {
        let sizes = self.dims.iter().zip(&self.chunk);
        sizes.map(|(d, c)| d.div_ceil(*c)).collect()
    }

    /// Returns all bytes, element by element: the model that reads are compared with.
    pub(super) fn expected(&self) -> Vec<u8> {
        let counts = self.counts();
        let mut bytes = Vec::new();
        for element in 0..self.dims.iter().product::<u64>() {
            let place = unravel(element, &self.dims).into_iter().zip(&self.chunk);
            let place: Vec<u64> = place.map(|(i, c)| i / c).collect();
            let absent = (self.absent)(ravel(&place, &counts));
            for i in 0..self.element {
                let stored = byte(element * self.element + i);
                bytes.push(if absent {
                    self.fill[i as usize]
                } else {
                    stored
                });
            }
        }
        bytes
    }

    /// Returns the file with the stored chunks, and the index with their locations.
    pub(super) fn file(&self) -> (Vec<u8>, Table) {
        let counts = self.counts();
        let mut file = vec![b'x'; FIRST_CHUNK as usize];
        let mut table = Table::default();
        for number in 0..counts.iter().product() {
            if (self.absent)(number) {
                continue;
            }
            let place = unravel(number, &counts);
            let raw = !self.deflate
                || self.odd_masked && number % 2 == 1
                || self.partial_unfiltered && self.sticks_out(&place);
            let elements = self.chunk_elements(&place);
            let stored = if raw { elements } else { deflate(&elements) };
            let chunk = StoredChunk {
                offset: file.len() as u64,
                length: stored.len() as u64,
                filter_mask: u32::from(self.odd_masked && number % 2 == 1),
            };
            table.0.insert(place, chunk);
            file.extend(stored);
        }
        (file, table)
    }

    pub(super) fn sticks_out(&self, place: &[u64]) -> bool {
        let sizes = self.dims.iter().zip(&self.chunk);
        place.iter().zip(sizes).any(|(p, (d, c))| (p + 1) * c > *d)
    }

    /// Returns a chunk's elements, with 0xee outside the array.
    pub(super) fn chunk_elements(&self, place: &[u64]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for inner in 0..self.chunk.iter().product() {
            let within = unravel(inner, &self.chunk).into_iter().zip(&self.chunk);
            let at: Vec<u64> = within.zip(place).map(|((i, c), p)| p * c + i).collect();
            let outside = at.iter().zip(&self.dims).any(|(i, d)| i >= d);
            let element = ravel(&at, &self.dims) * self.element;
            let byte = |i| if outside { 0xee } else { byte(element + i) };
            bytes.extend((0..self.element).map(byte));
        }
        bytes
    }

    pub(super) fn array(&self) -> (Arc<Array>, Arc<CountingSource>) {
        let (file, table) = self.file();
        let source = Arc::new(CountingSource {
            bytes: MemorySource::new(file),
            reads: AtomicU64::new(0),
            read_bytes: AtomicU64::new(0),
            reading: AtomicU64::new(0),
            together: AtomicU64::new(0),
            waits: self.waits,
            released: AtomicBool::new(false),
        });
        let shared: SharedSource = Arc::clone(&source) as SharedSource;
        let filters = vec![Filter {
            id: 1,
            name: None,
            parameters: vec![],
        }];
        let storage = Storage::Chunked(ChunkGrid {
            source: shared,
            min_offset: 0,
            chunk_shape: self.chunk.clone(),
            index: Arc::new(table),
            pipeline: Pipeline(if self.deflate { filters } else { vec![] }),
            has_unfiltered_edge_chunks: self.partial_unfiltered,
        });
        let array = Array {
            fill: Fill::Value(self.fill.clone().into()),
            ..plain(&self.dims, self.element, storage)
        };
        (Arc::new(array), source)
    }

    pub(super) fn reader(&self, engine: &Arc<Engine>) -> (Reader, Arc<CountingSource>) {
        let (array, source) = self.array();
        (Reader::new(engine, array).unwrap(), source)
    }
}

pub(in crate::array) fn plain(dims: &[u64], element: u64, storage: Storage) -> Array {
    Array {
        datatype: Datatype {
            size: element as u32,
            class: Class::Opaque { tag: vec![] },
        },
        shape: Shape::fixed(dims.to_vec()),
        fill: Fill::Zero,
        layout: Layout::Chunked,
        chunk_shape: None,
        pipeline: Pipeline::default(),
        storage: Ok(storage),
    }
}

pub(in crate::array) fn unravel(mut number: u64, sizes: &[u64]) -> Vec<u64> {
    let mut place = vec![0; sizes.len()];
    for (place, size) in place.iter_mut().zip(sizes).rev() {
        *place = number % size;
        number /= size;
    }
    place
}

pub(in crate::array) fn ravel(place: &[u64], sizes: &[u64]) -> u64 {
    place.iter().zip(sizes).fold(0, |n, (p, size)| n * size + p)
}

pub(in crate::array) fn deflate(bytes: &[u8]) -> Vec<u8> {
    miniz_oxide::deflate::compress_to_vec_zlib(bytes, 1)
}

/// Generates a shape, its chunk shape and its element size.
pub(in crate::array) fn shapes() -> impl Strategy<Value = (Vec<u64>, Vec<u64>, u64)> {
    let axis = (1_u64..6, 1_u64..8);
    (prop::collection::vec(axis, 0..=5), 1_u64..5).prop_map(|(axes, element)| {
        let (dims, chunk) = axes.into_iter().unzip();
        (dims, chunk, element)
    })
}

/// Returns a non-empty range of an array of `bytes` bytes, computed from two numbers.
pub(in crate::array) fn range(bytes: u64, (a, b): (u64, u64)) -> (u64, u64) {
    let start = a % bytes;
    (start, start + 1 + b % (bytes - start))
}
