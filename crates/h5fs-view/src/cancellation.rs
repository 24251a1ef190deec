//! Tests that the work of a view ends when its request is cancelled, also in the middle of a read.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use h5fs_reader::array::{Bytes, CancelToken, Canceller, Engine};
use h5fs_reader::error::Result;
use h5fs_reader::memory::request_budget::RequestBudget;
use h5fs_reader::testing::{Heap, int};

use crate::csv::CsvTable;
use crate::csv::array;
use crate::elements::Elements;
use crate::elements::missing::MissingValues;
use crate::elements::strings::{StringStorage, Strings};
use crate::json::{ArrayJson, SharedPaths};
use crate::text_files::counted_text::{CountedFile, TextLengthIndex};
use crate::text_files::text::InMemoryContent;
use crate::view::View;

/// A source of zeros. One of its reads cancels the request.
#[derive(Default)]
pub(crate) struct ZeroSource {
    canceller: Canceller,
    reads: AtomicU64,
    /// Number of the read that cancels the request, counted from 1; 0 if no read does.
    cancelling_read: AtomicU64,
    /// Whether the read that cancels the request received the request's cancellation token.
    has_token: AtomicBool,
}

/// A view of `length` zero bytes. `source` counts its reads.
pub(crate) struct ZeroContent {
    source: Arc<ZeroSource>,
    length: u64,
}

impl View for ZeroContent {
    fn length(&self) -> u64 {
        self.length
    }

    fn read_for(&self, _: u64, length: usize, cancel: &CancelToken) -> Result<Bytes> {
        let source = &*self.source;
        let number = source.reads.fetch_add(1, Ordering::Relaxed) + 1;
        if number == source.cancelling_read.load(Ordering::Relaxed) {
            source.canceller.cancel();
            let is_cancelled = cancel.is_cancelled();
            source.has_token.store(is_cancelled, Ordering::Relaxed);
        }
        Ok(vec![0; length].into())
    }
}

/// Checks that `work` fails as cancelled after two reads, if the second read cancels the request.
/// Also checks that this read received the request's cancellation token. `open` creates the object
/// that `work` reads, from a content of `length` zero bytes.
#[track_caller]
pub(crate) fn ends_with_its_second_read<V, T>(
    length: u64,
    open: impl FnOnce(ZeroContent) -> V,
    work: impl FnOnce(&V, &CancelToken) -> Result<T>,
) {
    let source = Arc::<ZeroSource>::default();
    let opened = open(ZeroContent {
        source: Arc::clone(&source),
        length,
    });
    source.reads.store(0, Ordering::Relaxed);
    source.cancelling_read.store(2, Ordering::Relaxed);
    let ended = work(&opened, &source.canceller.token()).err();
    assert!(ended.is_some_and(|error| error.is_cancelled()));
    assert_eq!(source.reads.load(Ordering::Relaxed), 2, "reads");
    assert!(
        source.has_token.load(Ordering::Relaxed),
        "the token of the request"
    );
}

const COUNT: u64 = 200_000;

/// Returns an array of one-byte integers with the bytes of `content`.
fn elements(content: impl View + 'static, dims: &[u64]) -> Elements {
    Elements {
        datatype: int(1),
        dims: Some(dims.to_vec()),
        content: Box::new(content),
    }
}

fn zeros() -> Elements {
    elements(
        InMemoryContent::new(vec![0; COUNT as usize]),
        &[COUNT / 4, 4],
    )
}

/// Returns a mask in which each element applies to four elements of the array, so that mask
/// elements are read one at a time.
fn missing_by_mask(content: ZeroContent) -> Option<MissingValues> {
    let mask = elements(content, &[COUNT / 4, 1]);
    Some(MissingValues::from_mask(mask, &[COUNT / 4, 4]).unwrap())
}

fn no_paths() -> SharedPaths {
    Arc::new(|_| Ok(None))
}

fn csv(elements: Elements, missing: Option<MissingValues>) -> CsvTable {
    let heap = Arc::new(Heap(Vec::new()));
    let table = array::table(elements, missing, Engine::new(0, 1), heap, no_paths());
    table.unwrap().unwrap()
}

fn json(elements: Elements, missing: Option<MissingValues>) -> ArrayJson {
    let heap = Arc::new(Heap(Vec::new()));
    let json = ArrayJson::new(elements, Engine::new(0, 1), heap, no_paths());
    json.unwrap().with_missing(missing)
}

fn strings(elements: Elements) -> Strings {
    let heap = Arc::new(Heap(Vec::new()));
    let (storage, cancel) = (StringStorage::Characters, &CancelToken::default());
    Strings::new(elements, storage, Engine::new(0, 1), heap, cancel).unwrap()
}

fn read(view: &impl View, cancel: &CancelToken) -> Result<Bytes> {
    view.read_for(0, 1 << 20, cancel)
}

#[test]
fn cancelling_a_request_ends_its_text() {
    let dims = [COUNT / 4, 4];
    let values = |content| CountedFile::from_units(csv(elements(content, &dims), None));
    ends_with_its_second_read(COUNT, values, read);
    let values = |content| CountedFile::from_units(json(elements(content, &dims), None));
    ends_with_its_second_read(COUNT, values, read);
    let values = |content| CountedFile::from_units(strings(elements(content, &dims)));
    ends_with_its_second_read(COUNT, values, read);
}

#[test]
fn cancelling_a_request_ends_a_text_of_masked_elements() {
    let mask = |content| CountedFile::from_units(csv(zeros(), missing_by_mask(content)));
    ends_with_its_second_read(COUNT / 4, mask, read);
    let mask = |content| CountedFile::from_units(json(zeros(), missing_by_mask(content)));
    ends_with_its_second_read(COUNT / 4, mask, read);
}

#[test]
fn cancelling_a_request_ends_the_counting_of_a_text() {
    let count = |table: &CsvTable, cancel: &CancelToken| {
        let (budget, _granted) = RequestBudget::unlimited_until_cancelled(cancel);
        TextLengthIndex::measure(table, &Engine::new(0, 1), &budget)
    };
    let mask = |content| csv(zeros(), missing_by_mask(content));
    ends_with_its_second_read(COUNT / 4, mask, count);
}
