//! The elements that a selector picks, in C order, as NumPy's indexing would copy them.
//!
//! Elements that are adjacent in the array form a run, which is read at once. Short runs that are
//! near each other are read together, including the bytes between them, if that does not touch
//! further chunks.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use crate::array::bytes::Bytes;
use crate::array::read_ahead::prefetch::ReadStream;
use crate::array::stored_elements::StoredElements;
use crate::error::{Error, Result};
use crate::memory::cancel::CancelToken;
use crate::model::array::{Array, Storage};
use crate::model::selection::{Axis, AxisPositions, Selection};
use crate::wire::{Count, to_u64, to_usize};

/// Maximum number of bytes that one read of several runs covers, including the bytes between the
/// runs.
const MAX_SPAN_BYTES: u64 = 1 << 20;

/// Maximum distance in bytes of runs that are read together.
const MAX_RUN_GAP: u64 = 4096;

/// A reader of an array whose elements can be selected.
pub trait SelectableArray: fmt::Debug + Send + Sync {
    /// Returns the description of the array.
    fn array(&self) -> &Arc<Array>;

    /// Returns whether the array's bytes are in a remote source.
    fn is_remote(&self) -> bool;

    /// Reads at most `length` bytes of the array from `offset` on. Fewer bytes are returned only at
    /// the end. For reads that belong to `stream`, the chunks that a sequential reader needs next
    /// are decoded ahead.
    ///
    /// # Errors
    /// Fails if a part of the bytes cannot be read or decoded.
    /// [`Error::cancelled`](crate::error::Error::cancelled) once the request is cancelled.
    fn read_in_order(
        &self,
        stream: Option<&ReadStream>,
        offset: u64,
        length: usize,
        cancel: &CancelToken,
    ) -> Result<Bytes>;
}

/// The selected elements of one array.
#[derive(Debug)]
pub struct SelectedElements {
    reader: Arc<dyn SelectableArray>,
    stream: ReadStream,
    offset: u64,
    /// Length of a run in bytes. A run is contiguous both in the selection and in the array.
    run_bytes: u64,
    /// The arrangement of the runs, slowest axis first; at least one axis.
    axes: Vec<Axis>,
    length: u64,
    /// Length of one row of the array in bytes. Runs are only read together within one row, so that
    /// no other chunk is touched between them.
    row_bytes: u64,
}

impl SelectedElements {
    /// Selects the elements that `selection` picks from the array of `reader`.
    ///
    /// # Errors
    /// `Limit` if the selection has more bytes than a file can have.
    pub fn new(reader: Arc<dyn SelectableArray>, selection: &Selection) -> Result<Self> {
        let mut run = u64::from(selection.datatype.size);
        let mut axes = selection.axes.clone();
        axes.retain(|axis| axis.count != 1);
        while let Some(axis) = axes.pop_if(|axis| is_dense(axis, run)) {
            run = run.times(axis.count);
        }
        if axes.is_empty() {
            let places = AxisPositions::Strided(0);
            axes.push(Axis {
                count: 1,
                positions: places,
            });
        }
        Ok(SelectedElements {
            row_bytes: array_row_bytes(reader.array()),
            stream: ReadStream::new(),
            offset: selection.offset,
            run_bytes: run,
            axes,
            length: selection.byte_length()?,
            reader,
        })
    }

    /// Returns the description of the array from which elements are selected.
    pub fn array(&self) -> &Array {
        self.reader.array()
    }

    /// Returns whether the array's bytes are in a remote source.
    pub(in crate::array) fn is_remote(&self) -> bool {
        self.reader.is_remote()
    }

    /// Returns the number of bytes of all selected elements.
    pub fn length(&self) -> u64 {
        self.length
    }

    /// Returns at most `length` bytes of the selected elements from `offset` on. Fewer bytes are
    /// returned only at the end.
    ///
    /// # Errors
    /// Fails if the elements cannot be read. [`Error::cancelled`] once the request is cancelled.
    pub fn read(&self, offset: u64, length: usize, cancel: &CancelToken) -> Result<Bytes> {
        self.read_to(offset, offset.plus(to_u64(length)).min(self.length), cancel)
    }

    /// Returns the bytes of the selected elements from `offset` to `end`, which must not exceed the
    /// length of the selection.
    ///
    /// # Errors
    /// Fails as [`read`](Self::read) does.
    pub(in crate::array) fn read_to(
        &self,
        offset: u64,
        end: u64,
        cancel: &CancelToken,
    ) -> Result<Bytes> {
        if offset >= end {
            return Ok(Bytes::from(Vec::new()));
        }
        let mut out = Vec::new();
        let mut at = offset;
        while at < end {
            let (number, within) = (at / self.run_bytes, at % self.run_bytes);
            let (place, along) = self.run_start(number);
            let wanted = (end - at) / self.run_bytes;
            if within == 0 {
                let (count, span) = self.batch_of_runs(place, along, wanted);
                if count > 1 {
                    self.append_runs((place, along), count, &span, cancel, &mut out)?;
                    at = cancel.next_batch(at, at + count * self.run_bytes)?;
                    continue;
                }
            }
            let taken = (self.run_bytes - within).min(end - at);
            let bytes = self.read_exact(place + within, taken, cancel)?;
            if out.is_empty() && at + taken == end {
                return Ok(bytes);
            }
            out.reserve(to_usize(end - at)?);
            out.extend_from_slice(&bytes);
            at = cancel.next_batch(at, at + taken)?;
        }
        Ok(out.into())
    }

    /// Returns the offset of run `number` in the array, and its index on the last axis.
    fn run_start(&self, number: u64) -> (u64, u64) {
        let mut rest = number;
        let mut offset = self.offset;
        let mut along = 0;
        for (distance, axis) in self.axes.iter().rev().enumerate() {
            let place = rest % axis.count;
            rest /= axis.count;
            if distance == 0 {
                along = place;
            }
            offset = offset.wrapping_add_signed(axis.byte_distance(place));
        }
        (offset, along)
    }

    /// Returns the number of runs to read together, at most `wanted`, and the bytes of the array
    /// that they span. The first run is at `offset` and has index `along` of the last axis.
    fn batch_of_runs(&self, offset: u64, along: u64, wanted: u64) -> (u64, Range<u64>) {
        let one = offset..offset.plus(self.run_bytes);
        let Some(axis) = self.axes.last().filter(|_| self.run_bytes <= MAX_RUN_GAP) else {
            return (1, one);
        };
        let row = offset - offset % self.row_bytes;
        let row = row..row.plus(self.row_bytes);
        let most = wanted.min(axis.count - along).max(1);
        match &axis.positions {
            AxisPositions::Strided(stride) => {
                let distance = stride.unsigned_abs();
                if distance > MAX_RUN_GAP || distance == 0 {
                    return (1, one);
                }
                let room = if *stride > 0 {
                    row.end.minus_or_zero(one.end)
                } else {
                    offset - row.start
                };
                let count = most.min(room.min(MAX_SPAN_BYTES) / distance + 1);
                let reach = (count - 1) * distance;
                if *stride > 0 {
                    (count, offset..one.end + reach)
                } else {
                    (count, offset - reach..one.end)
                }
            }
            AxisPositions::Listed(_) => {
                let mut span = one;
                let mut count = 1;
                while count < most {
                    let start = self.following_run_offset(axis, offset, along, count);
                    let low = span.start.min(start);
                    let high = span.end.max(start.plus(self.run_bytes));
                    let is_near = low.abs_diff(span.start) <= MAX_RUN_GAP
                        && high.abs_diff(span.end) <= MAX_RUN_GAP;
                    if !is_near || low < row.start || high > row.end || high - low > MAX_SPAN_BYTES
                    {
                        break;
                    }
                    span = low..high;
                    count += 1;
                }
                (count, span)
            }
        }
    }

    /// Returns the offset of the run that is `count` runs after the run at `offset`, which has
    /// index `along` of the last axis.
    fn following_run_offset(&self, axis: &Axis, offset: u64, along: u64, count: u64) -> u64 {
        let bytes = axis.byte_distance(along + count) - axis.byte_distance(along);
        offset.wrapping_add_signed(bytes)
    }

    /// Reads the array's bytes in `span`, and appends `count` runs to `out`. The first run is at
    /// `offset` and has index `along` of the last axis.
    fn append_runs(
        &self,
        (offset, along): (u64, u64),
        count: u64,
        span: &Range<u64>,
        cancel: &CancelToken,
        out: &mut Vec<u8>,
    ) -> Result<()> {
        let bytes = self.read_exact(span.start, span.end - span.start, cancel)?;
        let run = to_usize(self.run_bytes)?;
        let Some(axis) = self.axes.last() else {
            return Ok(());
        };
        for number in 0..count {
            let start = self.following_run_offset(axis, offset, along, number) - span.start;
            let start = to_usize(start)?;
            out.extend_from_slice(&bytes[start..start + run]);
        }
        Ok(())
    }

    /// Reads exactly `length` bytes of the array from `offset` on.
    fn read_exact(&self, offset: u64, length: u64, cancel: &CancelToken) -> Result<Bytes> {
        let length = to_usize(length)?;
        let is_long = self.run_bytes > MAX_RUN_GAP
            || length > usize::try_from(MAX_RUN_GAP).unwrap_or(usize::MAX);
        let stream = is_long.then_some(&self.stream);
        let bytes = self.reader.read_in_order(stream, offset, length, cancel)?;
        if bytes.len() == length {
            Ok(bytes)
        } else {
            Err(Error::corrupt("selection: outside its array", None))
        }
    }
}

/// Returns whether the elements on the axis, `run` bytes each, are contiguous in the array.
fn is_dense(axis: &Axis, run: u64) -> bool {
    matches!(axis.positions, AxisPositions::Strided(stride) if u64::try_from(stride) == Ok(run))
}

/// Returns the length in bytes of one row of the array's last dimension, or `u64::MAX` for an array
/// that is not stored in chunks.
fn array_row_bytes(array: &Array) -> u64 {
    let dense = matches!(
        array.storage,
        Ok(Storage::Inline(_) | Storage::Extents(_) | Storage::Fill)
    );
    let last = array.shape.dims().last().copied().unwrap_or(1);
    if dense {
        u64::MAX
    } else {
        last.times(array.datatype.size.into()).max(1)
    }
}

impl StoredElements for SelectedElements {
    fn read_stored(&self, offset: u64, length: usize, cancel: &CancelToken) -> Result<Bytes> {
        self.read(offset, length, cancel)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::array::Engine;
    use crate::array::Reader;
    use crate::model::Shape;
    use crate::model::array::{Fill, Layout};
    use crate::model::selector::Selector;
    use crate::model::storage::Pipeline;
    use crate::testing::int;
    use proptest::prelude::*;

    /// Returns the reader of an array of 2-byte numbers: 0, 1, 2 and so on.
    fn counting_reader(dims: &[u64]) -> Arc<Reader> {
        let count = dims.iter().product::<u64>() as u16;
        let bytes: Vec<u8> = (0..count).flat_map(u16::to_le_bytes).collect();
        let array = Array {
            datatype: int(2),
            shape: Shape::fixed(dims.to_vec()),
            fill: Fill::Zero,
            layout: Layout::Compact,
            chunk_shape: None,
            pipeline: Pipeline::default(),
            storage: Ok(Storage::Inline(bytes.into())),
        };
        Arc::new(Reader::new(&Engine::new(0, 1), Arc::new(array)).unwrap())
    }

    fn view(reader: &Arc<Reader>, text: &str) -> SelectedElements {
        let array = reader.array();
        let selector = Selector::parse(text.as_bytes()).unwrap();
        let selection = selector.select(&array.datatype, &array.shape).unwrap();
        SelectedElements::new(reader.clone(), &selection).unwrap()
    }

    fn numbers(bytes: &[u8]) -> Vec<u16> {
        let pairs = bytes.chunks_exact(2);
        pairs
            .map(|pair| u16::from_le_bytes([pair[0], pair[1]]))
            .collect()
    }

    /// The expected numbers are those of `numpy.arange(24).reshape(2, 3, 4)[…].ravel()`.
    #[test]
    fn selections_equal_numpy_copies() {
        let reader = counting_reader(&[2, 3, 4]);
        let all = |text| numbers(&part(&view(&reader, text), 0, 1000));
        assert_eq!(all("[1, :, ::-2]"), [15, 13, 19, 17, 23, 21]);
        assert_eq!(all("[::-1, 1:, 0]"), [16, 20, 4, 8]);
        assert_eq!(all("[1, 1]"), [16, 17, 18, 19]);
        assert_eq!(all("[0:0]"), [] as [u16; 0]);
        assert_eq!(all("[[1, 0, 0], 0, 1:3]"), [13, 14, 1, 2, 1, 2]);
        assert_eq!(all("[:, 2, [3, 0, 1, 1]]"), [11, 8, 9, 9, 23, 20, 21, 21]);
        assert_eq!(
            all("[1, :, [0, 3, 1]]"),
            [12, 16, 20, 15, 19, 23, 13, 17, 21]
        );
        let runs = view(&reader, "[:, 1:]");
        assert_eq!((runs.run_bytes, runs.axes.len(), runs.length), (16, 1, 32));
    }

    fn part(view: &SelectedElements, start: u64, length: usize) -> Vec<u8> {
        let cancel = CancelToken::default();
        view.read(start, length, &cancel).unwrap().to_vec()
    }

    /// Returns a range of the bytes of all numbers.
    fn slice(numbers: &[u16], start: u64, length: usize) -> Vec<u8> {
        let bytes = numbers.iter().flat_map(|number| number.to_le_bytes());
        bytes.skip(start as usize).take(length).collect()
    }

    proptest! {
        /// Any range of the content is the same range of the whole, whether it is read in one piece
        /// or across rows.
        #[test]
        fn any_range_equals_its_part_of_the_selection(
            steps in prop::array::uniform3(prop_oneof![1_i64..4, -3_i64..0]),
            start in 0_u64..60, length in 0_usize..60, short_rows: bool,
        ) {
            let reader = counting_reader(&[3, 4, 5]);
            let [a, b, c] = steps;
            let mut view = view(&reader, &format!("[::{a},::{b},::{c}]"));
            let mut expected = Vec::new();
            let places = |count: u16, step: i64| {
                let step_by = step.unsigned_abs() as usize;
                let mut places: Vec<u16> = (0..count).collect();
                if step < 0 { places.reverse(); }
                places.into_iter().step_by(step_by)
            };
            for i in places(3, a) {
                for j in places(4, b) {
                    expected.extend(places(5, c).map(|k| (i * 4 + j) * 5 + k));
                }
            }
            if short_rows {
                view.row_bytes = 10;
            }
            prop_assert_eq!(part(&view, start, length), slice(&expected, start, length));
        }

        /// The same holds for any range of the elements that a list picks, on the last axis or on
        /// an earlier one.
        #[test]
        fn any_range_of_a_list_equals_its_part_of_the_selection(
            list in prop::collection::vec(0_u16..5, 0..9), before: bool,
            start in 0_u64..60, length in 0_usize..60, short_rows: bool,
        ) {
            let reader = counting_reader(&[5, 5]);
            let mut expected = Vec::new();
            let text = if before {
                expected.extend(list.iter().flat_map(|i| (0..5).rev().map(move |j| i * 5 + j)));
                format!("[{list:?},::-1]")
            } else {
                expected.extend((0..5).flat_map(|i| list.iter().map(move |j| i * 5 + j)));
                format!("[:,{list:?}]")
            };
            let mut view = view(&reader, &text);
            if short_rows {
                view.row_bytes = 10;
            }
            prop_assert_eq!(part(&view, start, length), slice(&expected, start, length));
        }
    }
}
