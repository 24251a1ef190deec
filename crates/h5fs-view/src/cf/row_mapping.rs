//! The mapping from each row of a long table to an element of a coordinate.

use h5fs_reader::error::{Error, Result};
use h5fs_reader::model::selection::{Axis, AxisPositions};
use h5fs_reader::model::selector::Selector;
use h5fs_reader::model::shape::product;

use crate::cf::decoding::Decoding;
use crate::cf::variable::Variable;

/// The rows of a long table: one row for each decoded element of a variable, or of a selection from
/// the variable.
pub(super) struct VariableRows {
    /// The dimensions of the variable that the rows extend over, by their index, slowest first.
    pub(super) dimensions: Vec<usize>,
    axes: Vec<Axis>,
    /// For each dimension of the variable, the index of the first selected element.
    first_selected: Vec<u64>,
    /// For each dimension of the variable, the distance in bytes between two neighbouring elements.
    strides: Vec<u64>,
}

/// A mapping from the number of a row to the number of an element of a coordinate.
#[derive(Clone)]
pub(crate) struct RowMapping {
    start: u64,
    /// For each dimension of the rows, how the element number changes along the dimension; slowest
    /// first.
    steps: Vec<AxisStep>,
}

#[derive(Clone)]
struct AxisStep {
    /// Number of rows along the dimension.
    count: u64,
    /// The indices that the selection picks in the variable's dimension, and the distance in bytes
    /// between two neighbouring elements of the variable. `None` for a mapping to the positions of
    /// rows, which do not depend on the picked indices.
    selected_indices: Option<(Axis, u64)>,
    /// Distance between two neighbours of the coordinate along the dimension, in elements; 0 if the
    /// coordinate does not have the dimension.
    stride: u64,
}

impl VariableRows {
    /// Creates the rows of a selection from `variable`, or of the whole variable.
    ///
    /// # Errors
    /// `NotFound` if the selection is not within the variable, or if it has a single index in the
    /// dimension of characters; `Limit` for an array that is longer than any file can be.
    pub(super) fn new(variable: &Variable, selector: Option<&Selector>) -> Result<Self> {
        variable.check_selection(selector)?;
        let stored = &variable.array;
        let dims = stored.shape.dims();
        let whole = || Selector::parse(b"[...]").ok_or(Error::NotFound);
        let selector = selector.cloned().map_or_else(whole, Ok)?;
        let selection = selector.select(&stored.datatype, &stored.shape)?;
        let mut dimensions = selector.dimensions(dims.len())?;
        let mut axes = selection.axes;
        if matches!(variable.decoding, Decoding::Characters) {
            axes.pop();
            dimensions.pop();
        }
        let inner = (1..=dims.len()).map(|next| product(&dims[next..]));
        let size = u64::from(stored.datatype.size);
        let strides = inner.map(|inner| inner.map(|inner| inner.saturating_mul(size)));
        let strides: Vec<u64> = strides.collect::<Result<_>>()?;
        let places = strides.iter().zip(dims);
        let first = places.map(|(stride, &count)| {
            let place = selection.offset.checked_div(*stride).unwrap_or(0);
            place.checked_rem(count).unwrap_or(0)
        });
        Ok(VariableRows {
            dimensions,
            axes,
            first_selected: first.collect(),
            strides,
        })
    }

    /// Returns the number of rows.
    pub(super) fn count(&self) -> Result<u64> {
        let counts: Vec<u64> = self.axes.iter().map(|axis| axis.count).collect();
        product(&counts)
    }

    /// Returns the mapping from rows to the elements of a coordinate over the dimensions
    /// `dimensions` of the variable. `extents` has the lengths of the coordinate's dimensions.
    pub(super) fn coordinate_mapping(&self, dimensions: &[usize], extents: &[u64]) -> RowMapping {
        let stride = |number: usize| {
            let inner = extents.get(number + 1..).unwrap_or_default();
            inner
                .iter()
                .fold(1_u64, |all, &extent| all.saturating_mul(extent))
        };
        let start = dimensions.iter().enumerate().map(|(number, &dimension)| {
            self.first_selected[dimension].saturating_mul(stride(number))
        });
        let steps = self
            .axes
            .iter()
            .zip(&self.dimensions)
            .map(|(axis, dimension)| {
                let own = dimensions.iter().position(|own| own == dimension);
                AxisStep {
                    count: axis.count,
                    selected_indices: Some((axis.clone(), self.strides[*dimension])),
                    stride: own.map_or(0, stride),
                }
            });
        RowMapping {
            start: start.fold(0, u64::saturating_add),
            steps: steps.collect(),
        }
    }

    /// Returns the mapping from a row to the row's position along dimension `number` of the rows.
    pub(super) fn position_mapping(&self, number: usize) -> RowMapping {
        let steps = self
            .axes
            .iter()
            .enumerate()
            .map(|(axis_number, axis)| AxisStep {
                count: axis.count,
                selected_indices: None,
                stride: u64::from(axis_number == number),
            });
        RowMapping {
            start: 0,
            steps: steps.collect(),
        }
    }
}

impl RowMapping {
    /// Returns an upper bound of the element numbers of all rows. The bound is exact if the
    /// selected indices are evenly spaced.
    pub(crate) fn upper_bound(&self) -> u64 {
        let ends = self.steps.iter().filter(|step| step.count > 1);
        let more = ends.map(|step| match &step.selected_indices {
            Some((axis, bytes)) => {
                let furthest = match &axis.positions {
                    AxisPositions::Strided(_) => axis.byte_distance(step.count - 1).max(0),
                    AxisPositions::Listed(all) => all.iter().copied().max().unwrap_or(0).max(0),
                };
                let places = furthest.unsigned_abs() / (*bytes).max(1);
                places.saturating_mul(step.stride)
            }
            None => (step.count - 1).saturating_mul(step.stride),
        });
        more.fold(self.start, u64::saturating_add)
    }

    /// Returns whether the element number depends only on the slowest dimension of the rows, and
    /// never decreases from row to row.
    pub(crate) fn is_ascending(&self) -> bool {
        let mut steps = self.steps.iter().filter(|step| step.count > 1);
        let first = steps.next();
        let is_along = |step: &AxisStep| match &step.selected_indices {
            Some((axis, _)) => {
                matches!(axis.positions, AxisPositions::Strided(stride) if stride >= 0)
            }
            None => true,
        };
        first.is_none_or(is_along) && steps.all(|step| step.stride == 0)
    }

    /// Returns the number of the coordinate's element for a row.
    pub(crate) fn element_of_row(&self, row: u64) -> u64 {
        let mut rest = row;
        let mut element = self.start;
        for step in self.steps.iter().rev() {
            let at = rest % step.count.max(1);
            rest /= step.count.max(1);
            if step.stride == 0 {
                continue;
            }
            let places = match &step.selected_indices {
                Some((axis, bytes)) => {
                    axis.byte_distance(at) / i64::try_from(*bytes).unwrap_or(i64::MAX).max(1)
                }
                None => at.cast_signed(),
            };
            let stride = step.stride.cast_signed();
            element = element.wrapping_add_signed(places.wrapping_mul(stride));
        }
        element
    }
}
