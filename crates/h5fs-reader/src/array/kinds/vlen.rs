//! A variable-length array as one sequence of bytes, and the offset of each element in it. Strings
//! are each followed by a line feed. The elements of sequences are concatenated.
//!
//! Stored elements are counts and pointers of one size, grouped in blocks. One walk over all
//! elements finds the start of each block, which is kept. The starts within a block are computed
//! each time they are needed.

use std::fmt;
use std::ops::Range;
use std::sync::{Arc, Mutex};

use crate::array::geometry::allocation::Allocation;
use crate::array::reader::Reader;
use crate::array::stored_elements::StoredElements;
use crate::error::{Error, Result};
use crate::limits;
use crate::memory::cancel::CancelToken;
use crate::memory::request_budget::RequestBudget;
use crate::model::datatype::{Class, StringPadding};
use crate::model::{Array, Container, Datatype};
use crate::wire::{Count, Extent};

/// Number of elements in a block.
const BLOCK_ELEMENTS: u64 = 4096;

/// Number of elements whose lengths a read examines first.
const FIRST_BATCH_ELEMENTS: u64 = 64;

/// The content of a variable-length array as one sequence of bytes.
pub struct VariableLengthContent {
    stored: Arc<dyn StoredElements>,
    container: Arc<dyn Container>,
    content: ElementKind,
    elements: u64,
    /// Size of a stored element in bytes.
    size: u32,
    /// The start of each block and the end of the last one, as offsets in the content.
    starts: Mutex<Option<Arc<Vec<u64>>>>,
}

/// The kind of the elements of a variable-length array.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ElementKind {
    /// Strings. If `end_at_nul` is set, each text ends at its first NUL.
    Strings { end_at_nul: bool },
    /// Sequences of base elements of `base_size` bytes.
    Sequences { base_size: u64 },
}

/// The position at which a read ended. The next read can continue there without a search.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ElementStart {
    element: u64,
    /// The offset in the content at which the element begins, in bytes.
    start: u64,
}

impl VariableLengthContent {
    /// Returns whether the elements of an array have variable length.
    pub fn is_variable_length_array(array: &Array) -> bool {
        Self::is_variable_length(&array.datatype)
    }

    /// Returns whether an element of this type has variable length.
    pub fn is_variable_length(datatype: &Datatype) -> bool {
        ElementKind::from_datatype(datatype).is_some()
    }

    /// Returns the content of the array that `reader` reads, or `None` if its elements have a fixed
    /// length.
    ///
    /// # Errors
    /// `Limit` for more elements than [`limits::VARIABLE_LENGTH_ELEMENTS`].
    pub fn new(reader: Arc<Reader>, container: Arc<dyn Container>) -> Result<Option<Self>> {
        let array = Arc::clone(reader.array());
        Self::from_elements(reader, &array.datatype, array.shape.elements()?, container)
    }

    /// Returns the content of `elements` elements of `datatype`, which `stored` reads.
    ///
    /// # Errors
    /// Fails as [`new`](Self::new) does.
    pub fn from_elements(
        stored: Arc<dyn StoredElements>,
        datatype: &Datatype,
        elements: u64,
        container: Arc<dyn Container>,
    ) -> Result<Option<Self>> {
        let Some(content) = ElementKind::from_datatype(datatype) else {
            return Ok(None);
        };
        Error::check_limit(
            elements,
            limits::VARIABLE_LENGTH_ELEMENTS,
            "elements of a variable-length dataset",
        )?;
        Ok(Some(VariableLengthContent {
            stored,
            container,
            content,
            elements,
            size: datatype.size,
            starts: Mutex::new(None),
        }))
    }

    /// Returns the number of bytes after each element: one for a string's line feed, otherwise
    /// zero.
    pub fn separator_bytes(&self) -> u64 {
        match self.content {
            ElementKind::Strings { .. } => 1,
            ElementKind::Sequences { .. } => 0,
        }
    }

    /// Returns the number of bytes of the content of all elements. The first call walks over all
    /// elements, and the request may then be postponed or cancelled.
    ///
    /// # Errors
    /// Fails if an element or its content cannot be read. [`Error::cancelled`] once the request is
    /// cancelled or postponed.
    pub fn length(&self, cancel: &CancelToken) -> Result<u64> {
        Ok(self.block_starts(cancel)?.last().copied().unwrap_or(0))
    }

    /// Returns the number of elements.
    pub fn element_count(&self) -> u64 {
        self.elements
    }

    /// Returns the memory in bytes that the list of block starts takes.
    pub fn weight(&self) -> u64 {
        self.elements / BLOCK_ELEMENTS * size_of::<u64>() as u64
    }

    /// Reads the `length` bytes at `offset` of the content, fewer only at the end. `place` is the
    /// position at which the last read ended, and is set to the position at which this read ends.
    ///
    /// # Errors
    /// Fails if an element that the range touches, or the element's content, cannot be read.
    pub fn read(
        &self,
        offset: u64,
        length: usize,
        place: &mut ElementStart,
        cancel: &CancelToken,
    ) -> Result<Vec<u8>> {
        let starts = self.block_starts(cancel)?;
        let all = starts.last().copied().unwrap_or(0);
        let end = Extent::saturating(offset, length as u64).end().min(all);
        if offset >= end {
            return Ok(Vec::new());
        }
        let container = self.container_for(end - offset);
        let mut reply = vec![0; (end - offset) as usize];
        let mut at = nearest_known_start(&starts, offset, *place);
        let (mut count, mut is_full) = (FIRST_BATCH_ELEMENTS, false);
        while !is_full {
            cancel.check_cancelled()?;
            at.element = skip_empty(&starts, at);
            let stored = self.read_block(at.element, count, cancel)?;
            if stored.is_empty() {
                return Err(Error::corrupt("variable-length dataset: has shrunk", None));
            }
            let mut parts = Vec::new();
            for (element, bytes) in self
                .split_elements(&stored)
                .zip(self.content_lengths(&*container, &stored)?)
            {
                let from = offset.minus_or_zero(at.start).min(bytes);
                let to = end.minus_or_zero(at.start).min(bytes);
                if from < to {
                    let place = (at.start + from - offset) as usize;
                    parts.push(ElementPart {
                        element,
                        bytes,
                        range: from..to,
                        place,
                    });
                }
                is_full = at.start + bytes >= end;
                if is_full {
                    break;
                }
                at = ElementStart {
                    element: at.element + 1,
                    start: at.start + bytes,
                };
            }
            parts.sort_by_cached_key(|part| container.variable_length_offset(part.element));
            for part in parts {
                self.copy_content(&*container, &part, &mut reply)?;
            }
            count = (count * 4).min(BLOCK_ELEMENTS);
        }
        *place = at;
        Ok(reply)
    }

    /// Returns the offsets at which the elements `first..first + count` begin. The offset after the
    /// last element is the end of the content.
    ///
    /// # Errors
    /// Fails as [`read`](Self::read) does.
    pub fn offsets(&self, first: u64, count: u64, cancel: &CancelToken) -> Result<Vec<u64>> {
        let starts = self.block_starts(cancel)?;
        let last = Extent::saturating(first, count)
            .end()
            .min(self.elements + 1);
        let mut offsets = Vec::with_capacity(last.minus_or_zero(first) as usize);
        let block = first / BLOCK_ELEMENTS;
        let Some(&start) = starts.get(block as usize) else {
            return Ok(offsets);
        };
        let mut at = ElementStart {
            element: block * BLOCK_ELEMENTS,
            start,
        };
        while at.element < last {
            let stored = self.read_block(at.element, last - at.element, cancel)?;
            for length in self.content_lengths(&*self.container, &stored)? {
                if (first..last).contains(&at.element) {
                    offsets.push(at.start);
                }
                at.element += 1;
                at.start += length;
            }
            if at.element >= self.elements {
                if (first..last).contains(&at.element) {
                    offsets.push(at.start);
                }
                break;
            }
        }
        Ok(offsets)
    }

    /// Returns the container with a metadata budget large enough to find the content of `elements`
    /// elements, even if each of them is in another heap collection.
    fn container_for(&self, elements: u64) -> Arc<dyn Container> {
        let all = elements.plus(BLOCK_ELEMENTS);
        // An error of this budget is permanent, because every request would spend as much.
        let budget = RequestBudget::default().sub_budget(all.times(limits::COLLECTION_METADATA));
        Arc::clone(&self.container).for_request(&budget)
    }

    /// Returns the offset in the content at which each block starts. A call waits if another call
    /// is computing these offsets.
    fn block_starts(&self, cancel: &CancelToken) -> Result<Arc<Vec<u64>>> {
        let mut known = cancel.lock(&self.starts)?;
        if let Some(starts) = &*known {
            return Ok(Arc::clone(starts));
        }
        if self.elements > limits::QUICK_VALUES {
            cancel.require_heavy_slot()?;
        }
        let container = self.container_for(self.elements);
        let mut starts = vec![0];
        let mut total = 0_u64;
        let allocation = self.stored.known_allocation();
        for first in (0..self.elements).step_by(BLOCK_ELEMENTS as usize) {
            cancel.check_cancelled()?;
            let bytes = if self.may_be_stored(allocation.as_ref(), first) {
                checked_sum(&self.content_lengths(
                    &*container,
                    &self.read_block(first, BLOCK_ELEMENTS, cancel)?,
                )?)
            } else {
                self.null_length(&*container)?
                    .checked_mul(self.elements_to_block_end(first))
            };
            total = bytes
                .and_then(|bytes| total.checked_add(bytes))
                .filter(|&total| i64::try_from(total).is_ok())
                .ok_or_else(|| Error::limit("size of a dataset", i64::MAX as u64))?;
            starts.push(total);
        }
        let starts = Arc::new(starts);
        *known = Some(Arc::clone(&starts));
        Ok(starts)
    }

    /// Returns the number of elements from `first` to the end of the block that contains `first`.
    fn elements_to_block_end(&self, first: u64) -> u64 {
        let end = (first / BLOCK_ELEMENTS * BLOCK_ELEMENTS + BLOCK_ELEMENTS).min(self.elements);
        end.minus_or_zero(first)
    }

    /// Returns whether any element from `first` to the end of the block that contains `first` may
    /// be stored and not null.
    fn may_be_stored(&self, allocation: Option<&Allocation>, first: u64) -> bool {
        let size = self.size() as u64;
        let end = (first + self.elements_to_block_end(first)) * size;
        let data = |allocation: &Allocation| allocation.next_data(first * size);
        allocation.is_none_or(|allocation| data(allocation).is_some_and(|data| data < end))
    }

    /// Reads the stored elements from element `first` on, at most `most` elements, and only up to
    /// the end of the block that contains `first`.
    fn read_block(&self, first: u64, most: u64, cancel: &CancelToken) -> Result<Vec<u8>> {
        let size = self.size() as u64;
        let length = self.elements_to_block_end(first).min(most) * size;
        let block = self
            .stored
            .read_stored(first * size, length as usize, cancel)?;
        self.container.prefetch_variable_length(&block, self.size());
        Ok(block.into_vec())
    }

    /// Returns the content length of each stored element. Elements that point to the same file
    /// offset are read one after another, because the content at that offset may exceed the cache.
    fn content_lengths(&self, container: &dyn Container, stored: &[u8]) -> Result<Vec<u64>> {
        let mut elements: Vec<_> = self.split_elements(stored).enumerate().collect();
        let mut lengths = vec![0; elements.len()];
        if self.content == (ElementKind::Strings { end_at_nul: true }) {
            let place = |element: &[u8]| container.variable_length_offset(element);
            elements.sort_by_cached_key(|(_, element)| place(element));
        }
        for (number, element) in elements {
            lengths[number] = self.content_length(container, element)?;
        }
        Ok(lengths)
    }

    /// Returns the content length of a null element.
    fn null_length(&self, container: &dyn Container) -> Result<u64> {
        self.content_length(container, &vec![0; self.size()])
    }

    fn split_elements<'a>(&self, block: &'a [u8]) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        block.chunks_exact(self.size())
    }

    fn size(&self) -> usize {
        self.size as usize
    }

    /// Returns the content length of an element.
    fn content_length(&self, container: &dyn Container, element: &[u8]) -> Result<u64> {
        match self.content {
            ElementKind::Sequences { base_size } => {
                let bytes = container.variable_length_bytes(element, base_size)?;
                Ok(bytes.unwrap_or(0))
            }
            ElementKind::Strings { end_at_nul } => {
                let text = if end_at_nul {
                    container.text_length(element)?
                } else {
                    container.variable_length_bytes(element, 1)?.unwrap_or(0)
                };
                Ok(text + 1)
            }
        }
    }

    /// Copies the range of an element's content that `part` describes into `reply`.
    fn copy_content(
        &self,
        container: &dyn Container,
        part: &ElementPart<'_>,
        reply: &mut [u8],
    ) -> Result<()> {
        let (base_size, text_end) = match self.content {
            ElementKind::Sequences { base_size } => (base_size, part.bytes),
            ElementKind::Strings { .. } => (1, part.bytes - 1),
        };
        let stored = part.range.start.min(text_end)..part.range.end.min(text_end);
        let target = &mut reply[part.place..][..(part.range.end - part.range.start) as usize];
        let (text, line_feed) = target.split_at_mut((stored.end - stored.start) as usize);
        line_feed.fill(b'\n');
        if text.is_empty() {
            return Ok(());
        }
        let fetched = container.read_variable_length(part.element, base_size, stored)?;
        let fetched = fetched.filter(|fetched| fetched.len() == text.len());
        let short = || Error::corrupt("variable-length element: has shrunk", None);
        text.copy_from_slice(&fetched.ok_or_else(short)?);
        Ok(())
    }
}

/// A range of one element's content that is read.
struct ElementPart<'a> {
    element: &'a [u8],
    /// Length of the element's whole content in bytes.
    bytes: u64,
    /// The range of the content that is read.
    range: Range<u64>,
    /// The offset in the reply at which the range is written.
    place: usize,
}

fn checked_sum(lengths: &[u64]) -> Option<u64> {
    let add = |sum: u64, &length| sum.checked_add(length);
    lengths.iter().try_fold(0, add)
}

/// Returns the index of the first element from `at` on that is not in a block whose elements are
/// all empty.
fn skip_empty(starts: &[u64], at: ElementStart) -> u64 {
    let block = at.element / BLOCK_ELEMENTS;
    match starts.get(block as usize + 1) {
        Some(&end) if end <= at.start => {
            let ends = starts.partition_point(|&start| start <= at.start) as u64;
            at.element.max((ends - 1) * BLOCK_ELEMENTS)
        }
        _ => at.element,
    }
}

/// Returns the last known position at or before `offset`: the end of the last read, or the
/// beginning of a block.
fn nearest_known_start(starts: &[u64], offset: u64, last: ElementStart) -> ElementStart {
    let block = starts
        .partition_point(|&start| start <= offset)
        .minus_or_zero(1);
    let block = ElementStart {
        element: block as u64 * BLOCK_ELEMENTS,
        start: starts[block],
    };
    if last.start <= offset && last.element > block.element {
        last
    } else {
        block
    }
}

impl ElementKind {
    fn from_datatype(datatype: &Datatype) -> Option<Self> {
        match &datatype.class {
            Class::VariableString { padding, .. } => Some(ElementKind::Strings {
                end_at_nul: *padding == StringPadding::NullTerminated,
            }),
            Class::VariableLength(base) => Some(ElementKind::Sequences {
                base_size: u64::from(base.size),
            }),
            _ => None,
        }
    }
}

impl fmt::Debug for VariableLengthContent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("VariableLength");
        debug
            .field("content", &self.content)
            .field("elements", &self.elements);
        debug.finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::array::Engine;
    use crate::memory::cancel::RequestSlot;
    use crate::model::Shape;
    use crate::model::array::{Fill, Layout, Storage};
    use crate::model::datatype::Charset;
    use crate::model::storage::Pipeline;
    use crate::testing::Heap;

    /// Returns strings whose stored element is the number of the text.
    fn strings(elements: &[u8], texts: Vec<Vec<u8>>) -> VariableLengthContent {
        let padding = StringPadding::NullTerminated;
        let array = Array {
            datatype: Datatype {
                size: 1,
                class: Class::VariableString {
                    padding,
                    charset: Charset::Utf8,
                },
            },
            shape: Shape::fixed(vec![elements.len() as u64]),
            fill: Fill::Zero,
            layout: Layout::Compact,
            chunk_shape: None,
            pipeline: Pipeline::default(),
            storage: Ok(Storage::Inline(elements.into())),
        };
        let engine = Engine::new(1 << 20, 1);
        let reader = Arc::new(Reader::new(&engine, Arc::new(array)).unwrap());
        VariableLengthContent::new(reader, Arc::new(Heap(texts)))
            .unwrap()
            .unwrap()
    }

    #[test]
    fn strings_end_at_their_nul_and_null_is_an_empty_line() {
        let array = strings(&[0, 9, 1], vec![b"ab\0cd".to_vec(), b"e".to_vec()]);
        assert_eq!(
            array.read(
                0,
                100,
                &mut ElementStart::default(),
                &CancelToken::default()
            ),
            Ok(b"ab\n\ne\n".to_vec())
        );
        assert_eq!(array.length(&CancelToken::default()), Ok(6));
        let offsets = |first, count| array.offsets(first, count, &CancelToken::default());
        assert_eq!(offsets(0, 10), Ok(vec![0, 3, 4, 6]));
        assert_eq!(offsets(2, 1), Ok(vec![4]));
    }

    #[test]
    fn a_long_walk_needs_a_heavy_slot_and_can_be_cancelled() {
        let many = vec![0; usize::try_from(limits::QUICK_VALUES).unwrap() + 1];
        let array = strings(&many, vec![b"a".to_vec()]);
        let ticket = Arc::<RequestSlot>::default();
        let cancel = CancelToken::default().with_slot(&ticket);
        let put_off = array.length(&cancel);
        assert!(put_off.is_err_and(|error| error.is_cancelled()) && ticket.is_postponed());
        ticket.move_to_heavy_slot();
        ticket.abandon();
        let given_up = array.length(&cancel);
        assert!(given_up.is_err_and(|error| error.is_cancelled()));
        let found = array.length(&CancelToken::default());
        assert_eq!(found, Ok(2 * (limits::QUICK_VALUES + 1)));
        assert_eq!(array.length(&cancel), found, "it is known now");
    }

    proptest! {
        #[test]
        fn any_part_equals_its_range_of_the_whole(
            elements in prop::collection::vec(0..4_u8, 0..9000),
            reads in prop::collection::vec((0..40_000_u64, 0..9000_usize), 1..6),
        ) {
            let texts = [&b""[..], b"a", b"four", b"a longer one"].map(<[u8]>::to_vec).to_vec();
            let whole: Vec<u8> = elements
                .iter()
                .flat_map(|&element| [&texts[usize::from(element)][..], b"\n"].concat())
                .collect();
            let array = strings(&elements, texts);
            let mut place = ElementStart::default();
            for (offset, length) in reads {
                let start = (offset as usize).min(whole.len());
                let end = (start + length).min(whole.len());
                let read = array.read(offset, length, &mut place, &CancelToken::default()).unwrap();
                prop_assert_eq!(&read[..], &whole[start..end]);
            }
        }
    }
}
