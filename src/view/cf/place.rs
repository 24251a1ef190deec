//! The rows of a long table, and the element of a coordinate that belongs to each.

use crate::error::{Error, Result};
use crate::model::selection::{Axis, Places};
use crate::model::selector::Selector;
use crate::model::shape::product;
use crate::view::cf::decoding::Decoding;
use crate::view::cf::variable::Variable;

/// The rows of a table: one for each decoded element of a variable, or of a selection from it.
pub(super) struct Rows {
    /// The dimension of the variable that each dimension of the rows is, slowest first.
    pub(super) dimensions: Vec<usize>,
    axes: Vec<Axis>,
    /// Along each dimension of the variable, the place of the first row.
    first: Vec<u64>,
    /// Bytes in the variable from one place to the next along each of its dimensions.
    strides: Vec<u64>,
}

/// Which element belongs to each row.
#[derive(Clone)]
pub(in crate::view) struct Place {
    start: u64,
    /// For each dimension of the rows, slowest first.
    steps: Vec<Step>,
}

#[derive(Clone)]
struct Step {
    /// Rows along the dimension.
    count: u64,
    /// The places of the rows in the variable, and bytes from one place to the next; without it,
    /// rows are counted.
    along: Option<(Axis, u64)>,
    /// Elements from one place to the next.
    stride: u64,
}

impl Rows {
    /// The rows of a selection from `variable`, or of all of it.
    ///
    /// # Errors
    /// `NotFound` where it has no such part, or one without the dimension of characters; `Limit`
    /// for an array that no file can hold.
    pub(super) fn of(variable: &Variable, selector: Option<&Selector>) -> Result<Self> {
        variable.check(selector)?;
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
        Ok(Rows {
            dimensions,
            axes,
            first: first.collect(),
            strides,
        })
    }

    /// How many there are.
    pub(super) fn count(&self) -> Result<u64> {
        let counts: Vec<u64> = self.axes.iter().map(|axis| axis.count).collect();
        product(&counts)
    }

    /// The element of a coordinate over these dimensions of the variable, with so many elements
    /// along each.
    pub(super) fn place(&self, dimensions: &[usize], extents: &[u64]) -> Place {
        let stride = |number: usize| {
            let inner = extents.get(number + 1..).unwrap_or_default();
            inner
                .iter()
                .fold(1_u64, |all, &extent| all.saturating_mul(extent))
        };
        let start = dimensions
            .iter()
            .enumerate()
            .map(|(number, &dimension)| self.first[dimension].saturating_mul(stride(number)));
        let steps = self
            .axes
            .iter()
            .zip(&self.dimensions)
            .map(|(axis, dimension)| {
                let own = dimensions.iter().position(|own| own == dimension);
                Step {
                    count: axis.count,
                    along: Some((axis.clone(), self.strides[*dimension])),
                    stride: own.map_or(0, stride),
                }
            });
        Place {
            start: start.fold(0, u64::saturating_add),
            steps: steps.collect(),
        }
    }

    /// The number of a row along dimension `number` of the rows.
    pub(super) fn number(&self, number: usize) -> Place {
        let steps = self
            .axes
            .iter()
            .enumerate()
            .map(|(axis_number, axis)| Step {
                count: axis.count,
                along: None,
                stride: u64::from(axis_number == number),
            });
        Place {
            start: 0,
            steps: steps.collect(),
        }
    }
}

impl Place {
    /// A number that no element's is greater than; the greatest one where places follow each other
    /// at strides.
    pub(in crate::view) fn most(&self) -> u64 {
        let ends = self.steps.iter().filter(|step| step.count > 1);
        let more = ends.map(|step| match &step.along {
            Some((axis, bytes)) => {
                let furthest = match &axis.places {
                    Places::Every(_) => axis.distance(step.count - 1).max(0),
                    Places::Listed(all) => all.iter().copied().max().unwrap_or(0).max(0),
                };
                let places = furthest.unsigned_abs() / (*bytes).max(1);
                places.saturating_mul(step.stride)
            }
            None => (step.count - 1).saturating_mul(step.stride),
        });
        more.fold(self.start, u64::saturating_add)
    }

    /// Whether the element depends on the place along the slowest dimension alone, so that it is the
    /// same, or a later one, in each following row.
    pub(in crate::view) fn ascends(&self) -> bool {
        let mut steps = self.steps.iter().filter(|step| step.count > 1);
        let first = steps.next();
        let is_along = |step: &Step| match &step.along {
            Some((axis, _)) => matches!(axis.places, Places::Every(stride) if stride >= 0),
            None => true,
        };
        first.is_none_or(is_along) && steps.all(|step| step.stride == 0)
    }

    /// The number of the element.
    pub(in crate::view) fn of(&self, row: u64) -> u64 {
        let mut rest = row;
        let mut element = self.start;
        for step in self.steps.iter().rev() {
            let at = rest % step.count.max(1);
            rest /= step.count.max(1);
            if step.stride == 0 {
                continue;
            }
            let places = match &step.along {
                Some((axis, bytes)) => {
                    axis.distance(at) / i64::try_from(*bytes).unwrap_or(i64::MAX).max(1)
                }
                None => at.cast_signed(),
            };
            let stride = step.stride.cast_signed();
            element = element.wrapping_add_signed(places.wrapping_mul(stride));
        }
        element
    }
}
