//! Selections: the part of an array that a selector picks, with the rules of NumPy's indexing.
//!
//! A part that does not exist, for which NumPy raises `IndexError` or `KeyError`, is
//! [`Error::NotFound`].
//!
//! If an element is itself an array, its dimensions follow the array's own dimensions, as in NumPy.

use std::sync::Arc;

use crate::error::{Error, Result};
use crate::limits;
use crate::model::datatype::{ByteOrder, Class};
use crate::model::selector::{DimensionIndex, Selector, SelectorStep};
use crate::model::shape::product;
use crate::model::{Datatype, Shape};
use crate::wire::{Count, to_u64, to_usize};

/// A selection of an array's elements, or of parts of them, in any order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Selection {
    /// The type of the selected elements, never an array.
    pub datatype: Datatype,
    /// The dimensions of the selection, slowest first. Empty for a single element.
    pub axes: Vec<Axis>,
    /// The offset of the first element from the start of the array, in bytes.
    pub offset: u64,
}

/// A dimension of a selection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Axis {
    /// The number of selected elements along the dimension.
    pub count: u64,
    /// The positions of the selected elements in the array.
    pub positions: AxisPositions,
}

/// The positions of the selected elements along one dimension.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AxisPositions {
    /// A constant distance between selected elements, in bytes of the array. Meaningless for a
    /// single element.
    Strided(i64),
    /// Any positions: the distance from the first selected element to each selected element, in
    /// bytes of the array.
    Listed(Arc<[i64]>),
}

impl Selector {
    /// Returns the part of an array of `datatype` and `shape` that the selector picks.
    ///
    /// # Errors
    /// `NotFound` if the part does not exist, `Limit` for an array larger than any file.
    pub fn select(&self, datatype: &Datatype, shape: &Shape) -> Result<Selection> {
        if *shape == Shape::Null {
            return Err(Error::NotFound);
        }
        let mut selection = Selection::all_elements(datatype, shape.dims())?;
        for step in &self.0 {
            match step {
                SelectorStep::Field(name) => selection.select_field(name)?,
                SelectorStep::Indices(indices) => selection.apply_indices(indices)?,
            }
        }
        Ok(selection)
    }
}

impl Selector {
    /// Returns the numbers of the array's dimensions that remain in the selection, counted from 0,
    /// in the selection's order. The array has `rank` dimensions, and its elements are not
    /// compound.
    ///
    /// # Errors
    /// `NotFound` if an array of `rank` dimensions does not have the selected part.
    pub fn dimensions(&self, rank: usize) -> Result<Vec<usize>> {
        let mut dimensions = (0..rank).collect();
        for step in &self.0 {
            let SelectorStep::Indices(indices) = step else {
                return Err(Error::NotFound);
            };
            dimensions = arrange_dimensions(dimensions, indices, |dimension, index| {
                let is_kept = !matches!(index, DimensionIndex::Integer(_));
                Ok(is_kept.then_some(dimension))
            })?;
        }
        Ok(dimensions)
    }

    /// Returns the positions along the dimension `dimension` that the selector picks from an array
    /// with the dimensions `dims`, whose elements are not compound.
    ///
    /// # Errors
    /// `NotFound` if the array does not have the selected part.
    pub fn positions(&self, dims: &[u64], dimension: usize) -> Result<DimensionPositions> {
        let stride = |other| i64::from(other == dimension);
        let numbered = dims.iter().enumerate();
        let mut selection = Selection {
            datatype: Datatype::integer(1, false, ByteOrder::Little),
            axes: numbered
                .map(|(other, &count)| Axis::at_stride(count, stride(other)))
                .collect(),
            offset: 0,
        };
        for step in &self.0 {
            match step {
                SelectorStep::Field(_) => return Err(Error::NotFound),
                SelectorStep::Indices(indices) => selection.apply_indices(indices)?,
            }
        }
        let kept = self.dimensions(dims.len())?;
        let kept = kept.iter().position(|&kept| kept == dimension);
        Ok(DimensionPositions {
            first: selection.offset,
            axis: kept.and_then(|at| selection.axes.get(at).cloned()),
        })
    }
}

/// The selected positions along one dimension of an array.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DimensionPositions {
    /// The first selected position.
    pub first: u64,
    /// The selected positions, with distances in positions instead of bytes. `None` if the
    /// dimension does not remain, because one position was selected by its number.
    pub axis: Option<Axis>,
}

#[expect(
    clippy::disallowed_methods,
    reason = "what a selection picks is inside the array, whose bytes 63 bits count"
)]
impl DimensionPositions {
    /// Returns the selection of an array of `datatype` and `dims` that has these positions along
    /// its first dimension, and all elements along the others.
    ///
    /// # Errors
    /// `NotFound` if the array has no dimension. `Limit` for an array larger than any file.
    pub fn rows(&self, datatype: &Datatype, dims: &[u64]) -> Result<Selection> {
        let mut selection = Selection::all_elements(datatype, dims)?;
        if dims.is_empty() {
            return Err(Error::NotFound);
        }
        let all = selection.axes.remove(0);
        let first = i64::try_from(self.first).unwrap_or(i64::MAX);
        let row = all.byte_distance(1);
        selection.offset = selection
            .offset
            .saturating_add_signed(first.saturating_mul(row));
        if let Some(axis) = &self.axis {
            let scaled = |distance: i64| distance.saturating_mul(row);
            let positions = match &axis.positions {
                AxisPositions::Strided(stride) => AxisPositions::Strided(scaled(*stride)),
                AxisPositions::Listed(listed) => {
                    AxisPositions::Listed(listed.iter().map(|&distance| scaled(distance)).collect())
                }
            };
            let count = axis.count;
            selection.axes.insert(0, Axis { count, positions });
        }
        Ok(selection)
    }
}

impl Selection {
    /// Returns the selection of all elements of an array of `datatype` and `dims`.
    ///
    /// # Errors
    /// `Limit` for an array larger than any file.
    pub fn all_elements(datatype: &Datatype, dims: &[u64]) -> Result<Self> {
        let mut selection = Selection {
            datatype: datatype.clone(),
            axes: axes_in_c_order(dims, datatype.size)?,
            offset: 0,
        };
        selection.append_array_dimensions()?;
        Ok(selection)
    }

    /// Returns the number of selected elements in each dimension, slowest first.
    pub fn dims(&self) -> Vec<u64> {
        self.axes.iter().map(|axis| axis.count).collect()
    }

    /// Returns the number of bytes of the selected elements.
    ///
    /// # Errors
    /// `Limit` if the number exceeds 63 bits.
    pub fn byte_length(&self) -> Result<u64> {
        let mut factors = self.dims();
        factors.push(self.datatype.size.into());
        product(&factors)
    }

    /// Appends the dimensions of array elements to the array's own dimensions.
    fn append_array_dimensions(&mut self) -> Result<()> {
        while let Class::Array { base, dims } = &self.datatype.class {
            let dims: Vec<u64> = dims.iter().copied().map(u64::from).collect();
            self.axes.extend(axes_in_c_order(&dims, base.size)?);
            self.datatype = Datatype::clone(base);
        }
        Error::check_limit(self.axes.len(), limits::SELECTION_RANK, "rank")?;
        Ok(())
    }

    /// Selects the field `name` of each element.
    ///
    /// # Errors
    /// `NotFound` if the field does not exist.
    pub(in crate::model) fn select_field(&mut self, name: &[u8]) -> Result<()> {
        let Class::Compound(members) = &self.datatype.class else {
            return Err(Error::NotFound);
        };
        let member = members.iter().find(|member| member.name == name);
        let member = member.ok_or(Error::NotFound)?;
        self.offset = self.offset.plus(member.offset.into());
        self.datatype = member.datatype.clone();
        self.append_array_dimensions()
    }

    /// Applies the indices of one pair of brackets.
    ///
    /// # Errors
    /// `NotFound` if the part does not exist. After an error, the selection must not be used.
    pub(in crate::model) fn apply_indices(&mut self, indices: &[DimensionIndex]) -> Result<()> {
        let axes = std::mem::take(&mut self.axes);
        self.axes = arrange_dimensions(axes, indices, |axis, index| {
            let (bytes, axis) = match index {
                DimensionIndex::Ellipsis => (0, Some(axis)),
                DimensionIndex::Integer(at) => {
                    (axis.byte_distance(axis.index_from_start(*at)?), None)
                }
                DimensionIndex::Slice { start, stop, step } => {
                    let (first, count) = axis.slice_range(*start, *stop, *step);
                    let (bytes, axis) = axis.select_slice(first, count, *step);
                    (bytes, Some(axis))
                }
                DimensionIndex::List(list) => {
                    let places = list.iter().map(|&at| axis.index_from_start(at));
                    let (bytes, axis) = axis.select_list(places.collect::<Result<_>>()?);
                    (bytes, Some(axis))
                }
            };
            self.offset = self.offset.saturating_add_signed(bytes);
            Ok(axis)
        })?;
        Ok(())
    }
}

/// Applies `pick` to each dimension and its index. Returns the dimensions that `pick` returns, in
/// the order that NumPy gives them.
fn arrange_dimensions<D>(
    dimensions: Vec<D>,
    indices: &[DimensionIndex],
    mut pick: impl FnMut(D, &DimensionIndex) -> Result<Option<D>>,
) -> Result<Vec<D>> {
    let named = indices
        .iter()
        .filter(|&index| *index != DimensionIndex::Ellipsis);
    let unnamed = dimensions.len().checked_sub(named.count());
    let unnamed = unnamed.ok_or(Error::NotFound)?;
    let mut dimensions = dimensions.into_iter();
    let mut arranged = Vec::new();
    let mut listed = None;
    for index in indices {
        if *index == DimensionIndex::Ellipsis {
            arranged.extend(dimensions.by_ref().take(unnamed));
            continue;
        }
        if matches!(index, DimensionIndex::List(_)) {
            listed = Some(arranged.len());
        }
        let dimension = dimensions.next().ok_or(Error::NotFound)?;
        arranged.extend(pick(dimension, index)?);
    }
    arranged.extend(dimensions);
    if let Some(place) = listed
        && is_split(indices)
    {
        let dimension = arranged.remove(place);
        arranged.insert(0, dimension);
    }
    Ok(arranged)
}

/// Returns whether a slice or an ellipsis stands between integers and lists. NumPy then puts the
/// dimension of a list first.
fn is_split(indices: &[DimensionIndex]) -> bool {
    let is_advanced = |index: &DimensionIndex| {
        matches!(index, DimensionIndex::Integer(_) | DimensionIndex::List(_))
    };
    let groups = indices.chunk_by(|a, b| is_advanced(a) == is_advanced(b));
    let advanced = groups.filter(|group| group.first().is_some_and(is_advanced));
    advanced.count() > 1
}

#[expect(
    clippy::disallowed_methods,
    reason = "what a selection picks is inside the array, whose bytes 63 bits count"
)]
impl Axis {
    /// Returns an axis with a constant distance between elements, in bytes.
    fn at_stride(count: u64, stride: i64) -> Self {
        let places = AxisPositions::Strided(stride);
        Axis {
            count,
            positions: places,
        }
    }

    /// Returns the number of bytes from the axis's first element to the element with index `place`.
    pub fn byte_distance(&self, place: u64) -> i64 {
        match &self.positions {
            AxisPositions::Strided(stride) => {
                let place = i64::try_from(place).unwrap_or(i64::MAX);
                place.saturating_mul(*stride)
            }
            AxisPositions::Listed(distances) => {
                let distance = to_usize(place).ok().and_then(|place| distances.get(place));
                distance.copied().unwrap_or(0)
            }
        }
    }

    /// Selects `count` elements of the axis from index `first` on, in steps of `step`. Returns the
    /// distance in bytes to the first selected element, or 0 if none is selected, and the new axis.
    fn select_slice(&self, first: u64, count: u64, step: i64) -> (i64, Axis) {
        match &self.positions {
            _ if count == 0 => (0, Axis::at_stride(0, 0)),
            AxisPositions::Strided(stride) => {
                let axis = Axis::at_stride(count, stride.saturating_mul(step));
                (self.byte_distance(first), axis)
            }
            AxisPositions::Listed(_) => {
                let place = |at: u64| {
                    let steps = i64::try_from(at).unwrap_or(i64::MAX).saturating_mul(step);
                    first.saturating_add_signed(steps)
                };
                self.select_list((0..count).map(place).collect())
            }
        }
    }

    /// Selects the elements of the axis with the indices `places`. Returns the distance in bytes to
    /// the first selected element, or 0 if none is selected, and the new axis.
    fn select_list(&self, places: Vec<u64>) -> (i64, Axis) {
        let places = places.into_iter();
        let mut distances: Vec<i64> = places.map(|place| self.byte_distance(place)).collect();
        let first = distances.first().copied().unwrap_or(0);
        for distance in &mut distances {
            *distance = distance.saturating_sub(first);
        }
        let stride = distances.get(1).copied().unwrap_or(0);
        let mut pairs = distances.windows(2);
        let is_regular = pairs.all(|pair| match pair {
            [a, b] => b.saturating_sub(*a) == stride,
            _ => true,
        });
        let count = to_u64(distances.len());
        let axis = if is_regular {
            Axis::at_stride(count, stride)
        } else {
            Axis {
                count,
                positions: AxisPositions::Listed(distances.into()),
            }
        };
        (first, axis)
    }

    /// Returns the index `at` of the axis, counted from the start. A negative `at` counts from the
    /// end. Fails with `NotFound` outside the axis.
    fn index_from_start(&self, at: i64) -> Result<u64> {
        let count = i64::try_from(self.count).unwrap_or(i64::MAX);
        let from_start = if at < 0 { at.saturating_add(count) } else { at };
        if (0..count).contains(&from_start) {
            Ok(from_start.unsigned_abs())
        } else {
            Err(Error::NotFound)
        }
    }

    /// Returns the first index that a slice selects and the number of selected indices, by the
    /// rules of Python's `slice.indices`.
    fn slice_range(&self, start: Option<i64>, stop: Option<i64>, step: i64) -> (u64, u64) {
        let count = i64::try_from(self.count).unwrap_or(i64::MAX);
        // The bounds of a slice are clamped to one place after the last, or one before the first.
        let (low, high) = if step > 0 {
            (0, count)
        } else {
            (-1, count.saturating_sub(1))
        };
        let place = |bound: i64| {
            let from_start = if bound < 0 {
                bound.saturating_add(count)
            } else {
                bound
            };
            from_start.clamp(low, high)
        };
        let (first, end) = if step > 0 {
            (start.map_or(low, place), stop.map_or(high, place))
        } else {
            (start.map_or(high, place), stop.map_or(low, place))
        };
        let ahead = if step > 0 { end > first } else { end < first };
        if !ahead {
            return (0, 0);
        }
        let places = end.abs_diff(first).div_ceil(step.unsigned_abs());
        (first.unsigned_abs(), places)
    }
}

/// Returns the axes of an array in C order with elements of `size` bytes.
fn axes_in_c_order(dims: &[u64], size: u32) -> Result<Vec<Axis>> {
    let empty = dims.contains(&0);
    let mut stride = u64::from(size);
    let mut axes = Vec::new();
    for &count in dims.iter().rev() {
        let bytes = if empty { 0 } else { stride };
        let most = i64::MAX.unsigned_abs();
        let too_long = || Error::limit("size of an array", most);
        let stride_of_axis = i64::try_from(bytes).map_err(|_| too_long())?;
        axes.push(Axis::at_stride(count, stride_of_axis));
        if !empty {
            stride = stride.checked_mul(count).ok_or_else(too_long)?;
        }
    }
    axes.reverse();
    Ok(axes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{int, member, type_of};
    use proptest::prelude::*;

    fn select(text: &str, datatype: &Datatype, dims: &[u64]) -> Result<Selection> {
        let selector = Selector::parse(text.as_bytes()).ok_or(Error::NotFound)?;
        selector.select(datatype, &Shape::fixed(dims.to_vec()))
    }

    /// Returns the selected elements' numbers in the array, in the selection's order.
    fn selected_numbers(selection: &Selection) -> Vec<u64> {
        let size = i64::from(selection.datatype.size);
        let mut places = vec![selection.offset.cast_signed()];
        for axis in &selection.axes {
            let along = |&place: &i64| (0..axis.count).map(move |i| place + axis.byte_distance(i));
            places = places.iter().flat_map(along).collect();
        }
        places.iter().map(|place| (place / size) as u64).collect()
    }

    /// Expected: the same indices of `numpy.arange(n).reshape(dims)`.
    #[test]
    fn selections_equal_numpy_indexing() {
        let pick = |text: &str, dims: &[u64]| {
            select(text, &int(2), dims)
                .map(|selection| (selection.dims(), selected_numbers(&selection)))
        };
        assert_eq!(pick("[1,::2]", &[2, 3]), Ok((vec![2], vec![3, 5])));
        assert_eq!(pick("[::-1]", &[3]), Ok((vec![3], vec![2, 1, 0])));
        assert_eq!(pick("[..., 1]", &[2, 3]), Ok((vec![2], vec![1, 4])));
        assert_eq!(pick("[-1, ..., -1]", &[2, 3]), Ok((vec![], vec![5])));
        assert_eq!(
            pick("[5:, 0:1 , ]", &[2, 3]),
            Ok((vec![0, 1], vec![] as Vec<u64>))
        );
        assert_eq!(pick("[-9:9:2]", &[4]), Ok((vec![2], vec![0, 2])));
        assert_eq!(pick("[...]", &[]), Ok((vec![], vec![0])));
        assert_eq!(pick("[2:][1]", &[5]), Ok((vec![], vec![3])));
        let beyond = "[99999999999999999999:-99999999999999999999:-9999999999999999999]";
        assert_eq!(pick(beyond, &[3]), Ok((vec![1], vec![2])));
        for none in [
            "[3]",
            "[-4]",
            "[0,0]",
            "[...,...]",
            "[::0]",
            "[x]",
            "[1.0]",
            "[0]x",
            "0]",
            "[0",
        ] {
            assert_eq!(pick(none, &[3]), Err(Error::NotFound), "{none}");
        }
        assert_eq!(
            Selector::parse(b"[0]")
                .unwrap()
                .select(&int(2), &Shape::Null),
            Err(Error::NotFound)
        );
    }

    #[test]
    fn fields_and_arrays_within_elements() {
        let base = Box::new(int(2));
        let dims = vec![3];
        let triple = type_of(6, Class::Array { base, dims });
        let inner = type_of(8, Class::Compound(vec![member("x:y]", 2, triple)]));
        let record = type_of(20, Class::Compound(vec![member("in", 10, inner)]));
        let found = select("[in][\"x:y]\"][-1, 1:]", &record, &[4]).unwrap();
        assert_eq!(found.datatype, int(2));
        assert_eq!(found.offset, 3 * 20 + 10 + 2 + 2);
        assert_eq!(found.axes, [Axis::at_stride(2, 2)]);
    }

    /// Expected: the same indices of `numpy.arange(24).reshape(2, 3, 4)`.
    #[test]
    fn list_selections_equal_numpy_indexing() {
        let pick = |text: &str| {
            let found = select(text, &int(2), &[2, 3, 4]);
            found.map(|selection| (selection.dims(), selected_numbers(&selection)))
        };
        let from_12: Vec<u64> = (12..24).chain(0..12).chain(12..24).collect();
        assert_eq!(pick("[[1,0,-1],:]"), Ok((vec![3, 3, 4], from_12)));
        assert_eq!(
            pick("[0,[2,0]]"),
            Ok((vec![2, 4], vec![8, 9, 10, 11, 0, 1, 2, 3]))
        );
        assert_eq!(pick("[:,[2,0],1]"), Ok((vec![2, 2], vec![9, 1, 21, 13])));
        assert_eq!(
            pick("[[1,0],:,2]"),
            Ok((vec![2, 3], vec![14, 18, 22, 2, 6, 10]))
        );
        assert_eq!(
            pick("[...,[3,0,2]][::2]"),
            Ok((vec![1, 3, 3], vec![3, 0, 2, 7, 4, 6, 11, 8, 10]))
        );
        assert_eq!(
            pick("[[1,0,0]][:2][1,1,[3,1,0]][::2]"),
            Ok((vec![2], vec![7, 4]))
        );
        assert_eq!(pick("[:,[]]"), Ok((vec![2, 0, 4], vec![])));
        // After a slice, the dimension of the list comes first if an integer precedes the slice.
        assert_eq!(
            pick("[0,:,[3,1]]"),
            Ok((vec![2, 3], vec![3, 7, 11, 1, 5, 9]))
        );
        assert_eq!(
            pick("[0,...,[3,1]]"),
            Ok((vec![2, 3], vec![3, 7, 11, 1, 5, 9]))
        );
        assert_eq!(
            pick("[:,0,...,[1,3,0]]"),
            Ok((vec![3, 2], vec![1, 13, 3, 15, 0, 12]))
        );
        assert_eq!(
            pick("[:,0,[1,3,0],...]"),
            Ok((vec![2, 3], vec![1, 3, 0, 13, 15, 12]))
        );
        for none in ["[[2]]", "[[0,-3]]", "[0:0,[3]]", "[[0],:,:,0]"] {
            assert_eq!(pick(none), Err(Error::NotFound), "{none}");
        }
    }

    /// Identifies the dimensions by their lengths, which differ and are kept by the selection.
    #[test]
    fn the_dimensions_of_a_selection() {
        let of = |text: &str| Selector::parse(text.as_bytes()).unwrap().dimensions(3);
        for text in [
            "[0]",
            "[:,1]",
            "[...,2]",
            "[0][:,1]",
            "[0,:,[3,1,0,2]]",
            "[[1,0],:,2]",
            "[0,0,0]",
            "[:,[2,1,0],1]",
            "[::-1][...,0]",
        ] {
            let lengths = of(text)
                .unwrap()
                .into_iter()
                .map(|dimension| [2, 3, 4][dimension]);
            let found = select(text, &int(2), &[2, 3, 4]).unwrap();
            assert_eq!(lengths.collect::<Vec<_>>(), found.dims(), "{text}");
        }
        assert_eq!(of("[0,0,0,0]"), Err(Error::NotFound));
        assert_eq!(of("[flux]"), Err(Error::NotFound));
    }

    #[test]
    fn a_list_at_a_stride_is_a_slice() {
        let pick = |text: &str| select(text, &int(2), &[9, 2]).unwrap();
        assert_eq!(pick("[[1,3,5]]"), pick("[1:6:2]"));
        assert_eq!(pick("[[8,5,2]]"), pick("[:1:-3]"));
        assert_eq!(pick("[[4,4,4]]").axes[0], Axis::at_stride(3, 0));
        assert!(matches!(
            pick("[[4,4,3]]").axes[0].positions,
            AxisPositions::Listed(_)
        ));
    }

    #[derive(Debug, Clone)]
    struct SliceBounds(Option<i64>, Option<i64>, i64);

    fn bounds() -> impl Strategy<Value = SliceBounds> {
        let bound = || prop::option::of(-8_i64..8);
        (
            bound(),
            bound(),
            prop_oneof![Just(1), Just(-1), 2_i64..5, -5_i64..-1],
        )
            .prop_map(|(start, stop, step)| SliceBounds(start, stop, step))
    }

    /// Walks a slice place by place, from the start until the end is reached.
    fn walk(bounds: &SliceBounds, count: i64) -> Vec<i64> {
        let &SliceBounds(start, stop, step) = bounds;
        let wrap = |bound: i64| if bound < 0 { bound + count } else { bound };
        let mut place = match (start, step > 0) {
            (Some(start), true) => wrap(start).max(0),
            (Some(start), false) => wrap(start).min(count - 1),
            (None, true) => 0,
            (None, false) => count - 1,
        };
        let reached = |place: i64| match (stop, step > 0) {
            (Some(stop), true) => place >= wrap(stop),
            (Some(stop), false) => place <= wrap(stop),
            (None, _) => false,
        };
        let mut places = Vec::new();
        while (0..count).contains(&place) && !reached(place) {
            places.push(place);
            place += step;
        }
        places
    }

    proptest! {
        #[test]
        fn slices_select_the_same_elements_as_a_walk(
            axes in prop::collection::vec((0_u64..7, bounds()), 0..4)
        ) {
            let text = |&SliceBounds(start, stop, step): &SliceBounds| {
                let bound = |bound: Option<i64>| bound.map_or(String::new(), |b| b.to_string());
                format!("{}:{}:{step}", bound(start), bound(stop))
            };
            let mut indices: Vec<String> = axes.iter().map(|(_, bounds)| text(bounds)).collect();
            indices.push("...".to_owned());
            let dims: Vec<u64> = axes.iter().map(|(count, _)| *count).collect();
            let found = select(&format!("[{}]", indices.join(",")), &int(2), &dims).unwrap();

            let mut expected = vec![0];
            for (count, bounds) in &axes {
                let along = |&place: &i64| {
                    let walked = walk(bounds, *count as i64).into_iter();
                    walked.map(move |i| place * *count as i64 + i)
                };
                expected = expected.iter().flat_map(along).collect();
            }
            let expected: Vec<u64> = expected.iter().map(|place| *place as u64).collect();
            prop_assert_eq!(selected_numbers(&found), expected);
        }

        /// A list applied to a list, with slices before and after it.
        #[test]
        fn lists_select_their_indices(
            list in prop::collection::vec(-7_i64..7, 0..9),
            again in prop::collection::vec(0_usize..9, 0..9),
            bounds in bounds(),
        ) {
            let again: Vec<usize> = again.into_iter().filter(|&at| at < list.len()).collect();
            let SliceBounds(start, stop, step) = bounds;
            let bound = |bound: Option<i64>| bound.map_or(String::new(), |b| b.to_string());
            let slice = format!("{}:{}:{step}", bound(start), bound(stop));
            let text = format!("[:,{list:?}][:,{again:?}][1:,{slice}]");
            let found = select(&text, &int(2), &[3, 7]).unwrap();

            let picked_again: Vec<i64> = again.iter().map(|&at| list[at]).collect();
            let kept = walk(&bounds, picked_again.len() as i64);
            let along: Vec<u64> = kept
                .iter()
                .map(|&at| picked_again[at as usize].rem_euclid(7) as u64)
                .collect();
            let expected: Vec<u64> = [7, 14]
                .iter()
                .flat_map(|row| along.iter().map(move |place| row + place))
                .collect();
            prop_assert_eq!(found.dims(), vec![2, along.len() as u64]);
            prop_assert_eq!(selected_numbers(&found), expected);
        }
    }

    #[test]
    fn positions_along_a_dimension_equal_numpy() {
        let dims = [9, 4, 7];
        let positions = |text: &str, dimension| {
            let selector = Selector::parse(text.as_bytes()).unwrap();
            let found = selector.positions(&dims, dimension).unwrap();
            let axis = found.axis.map(|axis| {
                let at = |place| found.first.saturating_add_signed(axis.byte_distance(place));
                (0..axis.count).map(at).collect::<Vec<_>>()
            });
            axis.ok_or(found.first)
        };
        assert_eq!(positions("[2:5]", 0), Ok(vec![2, 3, 4]));
        assert_eq!(positions("[2:5]", 1), Ok(vec![0, 1, 2, 3]));
        assert_eq!(positions("[::-4]", 0), Ok(vec![8, 4, 0]));
        assert_eq!(positions("[-1]", 0), Err(8));
        assert_eq!(positions("[:,3,[5,0]]", 1), Err(3));
        assert_eq!(positions("[:,3,[5,0]]", 2), Ok(vec![5, 0]));
        assert_eq!(positions("[1:][2,1:][::2]", 1), Ok(vec![1, 3]));
        let outside = Selector::parse(b"[9]").unwrap();
        assert_eq!(outside.positions(&dims, 0), Err(Error::NotFound));
    }

    #[test]
    fn rows_at_positions_have_all_other_elements() {
        let positions = Selector::parse(b"[::2]").unwrap().positions(&[5, 3], 0);
        let rows = positions
            .unwrap()
            .rows(&Datatype::integer(2, false, ByteOrder::Little), &[5, 4]);
        let rows = rows.unwrap();
        assert_eq!((rows.dims(), rows.offset), (vec![3, 4], 0));
        assert_eq!(rows.axes[0].byte_distance(2), 2 * 2 * 4 * 2);
        let last = Selector::parse(b"[-1]").unwrap().positions(&[5, 3], 0);
        let last = last
            .unwrap()
            .rows(&Datatype::integer(2, false, ByteOrder::Little), &[5]);
        let last = last.unwrap();
        assert_eq!((last.dims(), last.offset), (vec![], 4 * 2));
    }
}
