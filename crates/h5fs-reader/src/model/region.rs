//! Selections of an array's elements, which virtual arrays use to map parts of other arrays.
//!
//! HDF5: a dataspace selection (hyperslab, all, none). ASDF: not used.

use crate::error::{Error, Result};
use crate::limits;
use crate::memory::{ALLOCATION_OVERHEAD, allocation_size};
use crate::model::shape::product;
use crate::wire::{Count, to_u64};

/// A selection of an array's elements, counted in C order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Region {
    /// No element.
    Nothing,
    /// Every element.
    All,
    /// A regular pattern for each dimension.
    Regular(Vec<RegionAxis>),
    /// The union of rectangular blocks, each given by the coordinates of its first and its last
    /// element.
    Blocks(Vec<(Vec<u64>, Vec<u64>)>),
}

impl Region {
    /// Returns the approximate memory in bytes that the region takes.
    pub fn weight(&self) -> u64 {
        match self {
            Region::Nothing | Region::All => ALLOCATION_OVERHEAD,
            Region::Regular(axes) => allocation_size(size_of_val(&**axes)),
            Region::Blocks(blocks) => {
                let corner = |corner: &Vec<u64>| allocation_size(size_of_val(&**corner));
                let block = |block: &(Vec<u64>, Vec<u64>)| {
                    let own = to_u64(size_of_val(block));
                    u64::sum([corner(&block.0), corner(&block.1), own])
                };
                u64::sum(blocks.iter().map(block))
            }
        }
    }
}

/// The indices that a regular pattern selects in one dimension: blocks at regular distances.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RegionAxis {
    /// The first selected index.
    pub start: u64,
    /// Number of indices from the beginning of one block to the next, never 0.
    pub stride: u64,
    /// Number of indices in a block, never 0.
    pub block: u64,
    /// The number of selected indices. The last block may be incomplete. `None` for an unlimited
    /// pattern.
    pub length: Option<u64>,
}

impl RegionAxis {
    /// Returns the pattern that selects all `extent` indices.
    pub fn all_indices(extent: u64) -> Self {
        let step = extent.max(1);
        RegionAxis {
            start: 0,
            stride: step,
            block: step,
            length: Some(extent),
        }
    }

    /// Returns the number of selected indices below `end`, as if the pattern were unlimited.
    pub(crate) fn count_selected_before(&self, end: u64) -> u64 {
        let span = end.minus_or_zero(self.start);
        let blocks = span.checked_div(self.stride).unwrap_or(0);
        let rest = span.checked_rem(self.stride).unwrap_or(0);
        blocks.times(self.block).plus(rest.min(self.block))
    }

    /// Returns the index that is number `ordinal` among the selected indices, counted from 0.
    fn selected_index(&self, ordinal: u64) -> u64 {
        let blocks = ordinal.checked_div(self.block).unwrap_or(0);
        let rest = ordinal.checked_rem(self.block).unwrap_or(0);
        self.start.plus(blocks.times(self.stride)).plus(rest)
    }

    /// Returns the index after the last selected index, or 0 if none is selected.
    pub fn end(&self) -> u64 {
        match self.length {
            Some(0) => 0,
            Some(length) => self.selected_index(length.minus_or_zero(1)).plus_one(),
            None => u64::MAX,
        }
    }
}

/// A region of an array of known extent, as runs of elements that are contiguous in C order.
#[derive(Debug)]
pub struct RegionRuns(RunPattern);

#[derive(Debug)]
enum RunPattern {
    /// The axes, slowest first, each with the number of elements per index. The last axis has one
    /// element per index.
    Regular(Vec<(RegionAxis, u64)>),
    /// The runs in ascending order.
    Listed(Vec<Run>),
}

/// A run of contiguous elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Run {
    /// The number of the run's first element in the array, in C order.
    pub element: u64,
    /// The number of elements.
    pub length: u64,
    /// The number of selected elements before the run.
    pub ordinal: u64,
}

impl RegionRuns {
    /// Returns the runs of `region` in an array of extent `dims`.
    ///
    /// # Errors
    /// `Corrupt` if the region does not lie in the array or is unlimited. `Limit` if the region has
    /// too many runs, or the array's number of elements exceeds 63 bits.
    pub fn new(region: &Region, dims: &[u64]) -> Result<Self> {
        // Checks that the array's elements can be counted, so that no arithmetic below saturates.
        product(dims)?;
        let outside = || Error::corrupt("a selection reaches outside its dataset", None);
        match region {
            Region::Nothing => Ok(RegionRuns(RunPattern::Listed(Vec::new()))),
            Region::All => {
                let axes: Vec<RegionAxis> = dims
                    .iter()
                    .map(|&dim| RegionAxis::all_indices(dim))
                    .collect();
                Ok(RegionRuns(RunPattern::Regular(merged_axes(&axes, dims))))
            }
            Region::Regular(axes) => {
                let fits =
                    |(axis, dim): (&RegionAxis, &u64)| axis.length.is_some() && axis.end() <= *dim;
                if axes.len() == dims.len() && axes.iter().zip(dims).all(fits) {
                    Ok(RegionRuns(RunPattern::Regular(merged_axes(axes, dims))))
                } else {
                    Err(outside())
                }
            }
            Region::Blocks(blocks) => {
                let fits = |(first, last): &(Vec<u64>, Vec<u64>)| {
                    let in_order = first.iter().zip(last).all(|(first, last)| first <= last);
                    first.len() == dims.len()
                        && last.len() == dims.len()
                        && in_order
                        && last.iter().zip(dims).all(|(last, dim)| last < dim)
                };
                if !blocks.iter().all(fits) {
                    return Err(outside());
                }
                match blocks.as_slice() {
                    [block] => Ok(RegionRuns(RunPattern::Regular(merged_axes(
                        &block_axes(block),
                        dims,
                    )))),
                    several => Ok(RegionRuns(RunPattern::Listed(listed_runs(several, dims)?))),
                }
            }
        }
    }

    /// Returns the number of bytes of the list of runs, or 0 for a regular pattern, which needs no
    /// list.
    pub(crate) fn listed_bytes(&self) -> u64 {
        match &self.0 {
            RunPattern::Regular(_) => 0,
            RunPattern::Listed(runs) => to_u64(size_of_val(&**runs)),
        }
    }

    /// Returns the number of bytes of heap memory that the pattern or the list of runs takes.
    pub(crate) fn heap_bytes(&self) -> usize {
        match &self.0 {
            RunPattern::Regular(axes) => size_of_val(&**axes),
            RunPattern::Listed(runs) => size_of_val(&**runs),
        }
    }

    /// Returns the number of selected elements.
    pub(crate) fn selected_count(&self) -> u64 {
        match &self.0 {
            RunPattern::Regular(axes) => {
                let lengths = axes.iter().map(|(axis, _)| axis.length.unwrap_or(0));
                lengths.fold(1, u64::times)
            }
            RunPattern::Listed(runs) => runs.last().map_or(0, |run| run.ordinal.plus(run.length)),
        }
    }

    /// Returns the rest of a run from the selected element with number `ordinal` on. Returns `None`
    /// after the last selected element.
    pub(crate) fn run_at(&self, ordinal: u64) -> Option<Run> {
        if ordinal >= self.selected_count() {
            return None;
        }
        match &self.0 {
            RunPattern::Regular(axes) => regular_run(axes, ordinal),
            RunPattern::Listed(runs) => {
                let after = runs.partition_point(|run| run.ordinal <= ordinal);
                let run = runs.get(after.checked_sub(1)?)?;
                Some(run.cut_front(ordinal.minus_or_zero(run.ordinal)))
            }
        }
    }

    /// Returns the number of selected elements before element `element` of the array.
    pub(crate) fn count_selected_before(&self, element: u64) -> u64 {
        match &self.0 {
            RunPattern::Regular(axes) => count_regular_selected_before(axes, element),
            RunPattern::Listed(runs) => {
                let index = runs.partition_point(|run| run.element.plus(run.length) <= element);
                let elements = self.selected_count();
                runs.get(index).map_or(elements, |run| {
                    run.ordinal.plus(element.minus_or_zero(run.element))
                })
            }
        }
    }
}

impl Run {
    /// Returns the run without its first `count` elements.
    fn cut_front(self, count: u64) -> Self {
        Run {
            element: self.element.plus(count),
            length: self.length.minus_or_zero(count),
            ordinal: self.ordinal.plus(count),
        }
    }
}

/// Returns the axes, each with the number of the array's elements per index. A completely selected
/// dimension is merged with the next slower one, to make runs longer.
fn merged_axes(axes: &[RegionAxis], dims: &[u64]) -> Vec<(RegionAxis, u64)> {
    let mut merged: Vec<(RegionAxis, u64)> = Vec::new();
    let mut stride = 1_u64;
    for (&axis, &dim) in axes.iter().zip(dims).rev() {
        let axis = with_joined_blocks(axis);
        match merged.last_mut() {
            Some((inner, _)) if inner.start == 0 && inner.length == Some(stride) => {
                let unit = stride;
                *inner = RegionAxis {
                    start: axis.start.times(unit),
                    stride: axis.stride.times(unit),
                    block: axis.block.times(unit),
                    length: axis.length.map(|length| length.times(unit)),
                };
                *inner = with_joined_blocks(*inner);
            }
            _ => merged.push((axis, stride)),
        }
        stride = stride.times(dim);
    }
    merged.reverse();
    if merged.is_empty() {
        merged.push((RegionAxis::all_indices(1), 1));
    }
    merged.shrink_to_fit();
    merged
}

/// Replaces the adjacent blocks of a pattern by one block.
fn with_joined_blocks(axis: RegionAxis) -> RegionAxis {
    match axis.length {
        Some(length) if length > 0 && (axis.stride == axis.block || length <= axis.block) => {
            RegionAxis {
                stride: length,
                block: length,
                ..axis
            }
        }
        _ => axis,
    }
}

fn regular_run(axes: &[(RegionAxis, u64)], ordinal: u64) -> Option<Run> {
    let mut rest = ordinal;
    let mut element = 0_u64;
    let mut length = 0;
    for (place, (axis, stride)) in axes.iter().enumerate().rev() {
        let steps = axis.length?;
        let step = rest.checked_rem(steps)?;
        rest = rest.checked_div(steps)?;
        element = axis
            .selected_index(step)
            .checked_mul(*stride)?
            .checked_add(element)?;
        if place.plus_one() == axes.len() {
            let in_block = axis.block.minus_or_zero(step.checked_rem(axis.block)?);
            length = in_block.min(steps.minus_or_zero(step));
        }
    }
    Some(Run {
        element,
        length,
        ordinal,
    })
}

/// Returns the number of selected elements before `element`. The count continues on the next axis
/// only while the element's own index is selected.
fn count_regular_selected_before(axes: &[(RegionAxis, u64)], element: u64) -> u64 {
    let mut rest = element;
    let mut ordinal = 0_u64;
    for (place, (axis, stride)) in axes.iter().enumerate() {
        let steps = axis.length.unwrap_or(0);
        let inner = axes.iter().skip(place.plus_one());
        let inner = inner
            .map(|(axis, _)| axis.length.unwrap_or(0))
            .fold(1, u64::times);
        let step = rest.checked_div(*stride).unwrap_or(0);
        rest = rest.checked_rem(*stride).unwrap_or(0);
        let before = axis.count_selected_before(step).min(steps);
        ordinal = ordinal.plus(before.times(inner));
        let is_selected = before < steps && axis.selected_index(before) == step;
        if !is_selected {
            return ordinal;
        }
    }
    ordinal
}

/// Returns the runs of the union of all blocks, in ascending order. An element in several blocks
/// counts once.
fn listed_runs(blocks: &[(Vec<u64>, Vec<u64>)], dims: &[u64]) -> Result<Vec<Run>> {
    let mut runs = Vec::new();
    for block in blocks {
        let block = RegionRuns(RunPattern::Regular(merged_axes(&block_axes(block), dims)));
        let mut ordinal = 0;
        while let Some(run) = block.run_at(ordinal) {
            ordinal = ordinal.plus(run.length);
            runs.push(run);
            Error::check_limit(
                runs.len(),
                limits::REGION_RUNS,
                "runs of an irregular selection",
            )?;
        }
    }
    runs.sort_unstable_by_key(|run| run.element);
    join_overlaps(&mut runs);
    Ok(runs)
}

/// Returns the pattern in each dimension that selects the block from corner `first` to corner
/// `last`.
fn block_axes((first, last): &(Vec<u64>, Vec<u64>)) -> Vec<RegionAxis> {
    let axis = |(first, last): (&u64, &u64)| {
        let length = last.minus_or_zero(*first).plus_one();
        RegionAxis {
            start: *first,
            stride: length,
            block: length,
            length: Some(length),
        }
    };
    first.iter().zip(last).map(axis).collect()
}

/// Merges overlapping and adjacent sorted runs, and computes their ordinals. Works in place,
/// because there may be a million runs.
fn join_overlaps(runs: &mut Vec<Run>) {
    runs.dedup_by(|run, last| {
        let touches = run.element <= last.element.plus(last.length);
        if touches {
            let end = run.element.plus(run.length);
            last.length = last.length.max(end.minus_or_zero(last.element));
        }
        touches
    });
    runs.shrink_to_fit();
    let mut ordinal = 0_u64;
    for run in runs {
        run.ordinal = ordinal;
        ordinal = ordinal.plus(run.length);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Returns the numbers of all selected elements, found one by one.
    fn reference_elements(axes: &[RegionAxis], dims: &[u64]) -> Vec<u64> {
        let selected = |axis: &RegionAxis, step: u64| {
            let length = axis.length.unwrap_or(0);
            (0..length).any(|i| axis.start + i / axis.block * axis.stride + i % axis.block == step)
        };
        let total: u64 = dims.iter().product();
        (0..total)
            .filter(|&element| {
                let mut rest = element;
                axes.iter().zip(dims).rev().all(|(axis, dim)| {
                    let step = rest % dim;
                    rest /= dim;
                    selected(axis, step)
                })
            })
            .collect()
    }

    fn all_elements(runs: &RegionRuns) -> Vec<u64> {
        let mut elements = Vec::new();
        while let Some(run) = runs.run_at(elements.len() as u64) {
            assert_eq!(run.ordinal, elements.len() as u64);
            elements.extend(run.element..run.element + run.length);
        }
        elements
    }

    fn axis_of(dim: u64) -> impl Strategy<Value = RegionAxis> {
        (0..dim, 1..4_u64, 1..3_u64).prop_map(move |(start, block, gap)| {
            let axis = RegionAxis {
                start,
                stride: block + gap - 1,
                block,
                length: None,
            };
            RegionAxis {
                length: Some(axis.count_selected_before(dim)),
                ..axis
            }
        })
    }

    proptest! {
        #[test]
        fn regular_runs_are_the_selected_elements(
            (dims, axes) in prop::collection::vec(1..6_u64, 1..4).prop_flat_map(|dims| {
                let axes: Vec<_> = dims.iter().map(|&dim| axis_of(dim)).collect();
                (Just(dims), axes)
            })
        ) {
            let runs = RegionRuns::new(&Region::Regular(axes.clone()), &dims).unwrap();
            let elements = reference_elements(&axes, &dims);
            prop_assert_eq!(all_elements(&runs), elements.clone());
            for element in 0..dims.iter().product::<u64>() {
                let before = elements.iter().filter(|&&selected| selected < element).count();
                prop_assert_eq!(runs.count_selected_before(element), before as u64);
            }
        }
    }

    #[test]
    fn complete_rows_are_one_run() {
        let rows = RegionAxis {
            start: 2,
            stride: 3,
            block: 3,
            length: Some(3),
        };
        let region = Region::Regular(vec![rows, RegionAxis::all_indices(100)]);
        let runs = RegionRuns::new(&region, &[10, 100]).unwrap();
        let run = Run {
            element: 200,
            length: 300,
            ordinal: 0,
        };
        assert_eq!(runs.run_at(0), Some(run));
    }

    #[test]
    fn overlapping_blocks_count_once() {
        let blocks = vec![(vec![0, 0], vec![1, 1]), (vec![1, 1], vec![1, 2])];
        let runs = RegionRuns::new(&Region::Blocks(blocks), &[2, 3]).unwrap();
        assert_eq!(all_elements(&runs), [0, 1, 3, 4, 5]);
        assert_eq!(runs.count_selected_before(2), 2);
    }

    #[test]
    fn a_region_outside_its_array_is_rejected() {
        let region = Region::Regular(vec![RegionAxis::all_indices(11)]);
        assert!(RegionRuns::new(&region, &[10]).is_err());
        assert!(RegionRuns::new(&Region::Blocks(vec![(vec![9], vec![10])]), &[10]).is_err());
    }

    #[test]
    fn an_array_that_cannot_be_counted_has_no_runs() {
        let dims = [1 << 40, 1 << 40];
        let runs = RegionRuns::new(&Region::All, &dims);
        assert!(matches!(runs, Err(Error::Limit { .. })));
    }
}
