//! The elements that a selector picks, C order, as NumPy's basic indexing would copy them.
//!
//! Elements that are side by side in the array are one run, which is read at once. Short runs that
//! stand near each other are read together, with what is between them, as long as that touches no
//! chunk more.

use std::sync::Arc;

use crate::array::{Bytes, CancelToken, Reader, Stream};
use crate::error::{Error, Result};
use crate::model::array::Storage;
use crate::model::selection::{Axis, Selection};
use crate::view::View;
use crate::wire::to_usize;

/// Bytes that are read together at most, with what is between the runs.
const SPAN: u64 = 1 << 20;

/// Runs that are farther apart are read one by one.
const NEAR: u64 = 4096;

/// Picked elements of one array.
pub(crate) struct Selected {
    reader: Arc<Reader>,
    stream: Stream,
    offset: u64,
    /// Bytes that are side by side both here and in the array.
    run: u64,
    /// How the runs follow each other, slowest first; at least one axis.
    axes: Vec<Axis>,
    length: u64,
    /// Bytes of the array that a span must not leave: within them no other chunk lies between two
    /// runs that are near.
    row: u64,
}

impl Selected {
    /// The elements that `selection` picks from the array of `reader`.
    ///
    /// # Errors
    /// `Limit` where they have more bytes than a file can hold.
    pub(crate) fn new(reader: Arc<Reader>, selection: &Selection) -> Result<Self> {
        let mut run = u64::from(selection.datatype.size);
        let mut axes = selection.axes.clone();
        axes.retain(|axis| axis.count != 1);
        while let Some(axis) = axes.pop_if(|axis| u64::try_from(axis.stride) == Ok(run)) {
            run = run.saturating_mul(axis.count);
        }
        if axes.is_empty() {
            let stride = 0;
            axes.push(Axis { count: 1, stride });
        }
        Ok(Selected {
            row: row(&reader),
            stream: Stream::new(),
            offset: selection.offset,
            run,
            axes,
            length: selection.bytes()?,
            reader,
        })
    }

    /// Where run `number` begins in the array, and its place along the last axis.
    fn place(&self, number: u64) -> (u64, u64) {
        let mut rest = number;
        let mut offset = self.offset;
        let mut along = 0;
        for (distance, axis) in self.axes.iter().rev().enumerate() {
            let place = rest % axis.count;
            rest /= axis.count;
            if distance == 0 {
                along = place;
            }
            let bytes = place.cast_signed().wrapping_mul(axis.stride);
            offset = offset.wrapping_add_signed(bytes);
        }
        (offset, along)
    }

    /// The runs, at most `wanted`, that are read at once with the one at `offset`, `along` the last
    /// axis.
    fn together(&self, offset: u64, along: u64, wanted: u64) -> u64 {
        let Some(axis) = self.axes.last() else {
            return 1;
        };
        let stride = axis.stride.unsigned_abs();
        if stride > NEAR || stride == 0 || self.run > NEAR {
            return 1;
        }
        let in_row = offset % self.row;
        let room = match axis.stride > 0 {
            true => self.row.saturating_sub(in_row).saturating_sub(self.run),
            false => in_row,
        };
        let more = room.min(SPAN) / stride;
        wanted.min(axis.count - along).min(more + 1)
    }

    /// Appends `count` runs, the first at `offset`, to `out`.
    fn gather(&self, offset: u64, count: u64, out: &mut Vec<u8>) -> Result<()> {
        let stride = self.axes.last().map_or(0, |axis| axis.stride);
        let reach = (count - 1) * stride.unsigned_abs();
        let low = if stride < 0 { offset - reach } else { offset };
        let span = self.fetch(low, reach + self.run)?;
        let run = to_usize(self.run)?;
        let distance = to_usize(stride.unsigned_abs())?;
        let mut push = |start: usize| out.extend_from_slice(&span[start..start + run]);
        let starts = (0..to_usize(count)?).map(|i| i * distance);
        match stride < 0 {
            true => starts.rev().for_each(&mut push),
            false => starts.for_each(&mut push),
        }
        Ok(())
    }

    /// Exactly `length` bytes of the array.
    fn fetch(&self, offset: u64, length: u64) -> Result<Bytes> {
        let length = to_usize(length)?;
        let is_long = self.run > NEAR || length > usize::try_from(NEAR).unwrap_or(usize::MAX);
        let stream = is_long.then_some(&self.stream);
        let cancel = CancelToken::default();
        let bytes = self.reader.read_in(stream, offset, length, &cancel)?;
        match bytes.len() == length {
            true => Ok(bytes),
            false => Err(Error::corrupt("selection: outside of its array", None)),
        }
    }
}

/// Bytes along the last dimension; where there are no chunks, all.
fn row(reader: &Reader) -> u64 {
    let array = reader.array();
    let dense = matches!(
        array.storage,
        Ok(Storage::Inline(_) | Storage::Extents(_) | Storage::Fill)
    );
    let last = array.shape.dims().last().copied().unwrap_or(1);
    match dense {
        true => u64::MAX,
        false => last.saturating_mul(array.datatype.size.into()).max(1),
    }
}

impl View for Selected {
    fn length(&self) -> Option<u64> {
        Some(self.length)
    }

    fn read_at(&self, offset: u64, length: usize) -> Result<Bytes> {
        let end = offset
            .saturating_add(crate::wire::to_u64(length))
            .min(self.length);
        if offset >= end {
            return Ok(Bytes::from(Vec::new()));
        }
        let mut out = Vec::new();
        let mut at = offset;
        while at < end {
            let (number, within) = (at / self.run, at % self.run);
            let (place, along) = self.place(number);
            let wanted = (end - at) / self.run;
            let whole = match within {
                0 => self.together(place, along, wanted),
                _ => 1,
            };
            if whole > 1 {
                self.gather(place, whole, &mut out)?;
                at += whole * self.run;
                continue;
            }
            let taken = (self.run - within).min(end - at);
            let bytes = self.fetch(place + within, taken)?;
            if out.is_empty() && at + taken == end {
                return Ok(bytes);
            }
            out.reserve(to_usize(end - at)?);
            out.extend_from_slice(&bytes);
            at += taken;
        }
        Ok(out.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::array::Engine;
    use crate::model::Shape;
    use crate::model::array::{Array, Fill, Layout};
    use crate::model::selection::Selector;
    use crate::model::storage::Pipeline;
    use crate::model::value::tests::int;
    use proptest::prelude::*;

    /// A reader of 2-byte numbers that count from 0.
    fn counting(dims: &[u64]) -> Arc<Reader> {
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

    fn view(reader: &Arc<Reader>, text: &str) -> Selected {
        let array = reader.array();
        let selector = Selector::parse(text.as_bytes()).unwrap();
        let selection = selector.select(&array.datatype, &array.shape).unwrap();
        Selected::new(Arc::clone(reader), &selection).unwrap()
    }

    fn numbers(bytes: &[u8]) -> Vec<u16> {
        let pairs = bytes.chunks_exact(2);
        pairs
            .map(|pair| u16::from_le_bytes([pair[0], pair[1]]))
            .collect()
    }

    /// Expected: `numpy.arange(24).reshape(2, 3, 4)[…].ravel()`.
    #[test]
    fn as_numpy_copies() {
        let reader = counting(&[2, 3, 4]);
        let all = |text| numbers(&view(&reader, text).read_at(0, 1000).unwrap());
        assert_eq!(all("[1, :, ::-2]"), [15, 13, 19, 17, 23, 21]);
        assert_eq!(all("[::-1, 1:, 0]"), [16, 20, 4, 8]);
        assert_eq!(all("[1, 1]"), [16, 17, 18, 19]);
        assert_eq!(all("[0:0]"), [] as [u16; 0]);
        let runs = view(&reader, "[:, 1:]");
        assert_eq!((runs.run, runs.axes.len(), runs.length), (16, 1, 32));
    }

    proptest! {
        /// Any part of the content, read in one piece and over rows, is that part of the whole.
        #[test]
        fn any_range_is_a_part_of_the_whole(
            steps in prop::array::uniform3(prop_oneof![1_i64..4, -3_i64..0]),
            start in 0_u64..60, length in 0_usize..60, short_rows: bool,
        ) {
            let reader = counting(&[3, 4, 5]);
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
                view.row = 10;
            }
            let expected: Vec<u8> = expected.iter().flat_map(|n: &u16| n.to_le_bytes()).collect();
            let from = (start as usize).min(expected.len());
            let to = (from + length).min(expected.len());
            let found = view.read_at(start, length).unwrap();
            prop_assert_eq!(&found[..], &expected[from..to]);
        }
    }
}
