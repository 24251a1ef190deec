//! The coordinates of a dimension, which determine the place of a member.

use std::cmp::Ordering;

use h5fs_conventions::stored_type::{ExactNumber, StoredType};
use h5fs_reader::error::{Error, Result};
use h5fs_reader::model::datatype::Class;
use h5fs_reader::wire::to_usize;

use crate::instants;
use crate::members::content::{ElementSummary, trim_padding};
use crate::members::skeleton::Variable;

/// The coordinates of a dimension in one member.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Coordinate {
    /// Number of coordinates.
    length: u64,
    /// All coordinates, or only the first and the last one if there are many.
    values: CoordinateValues,
    /// Two hashes of all coordinates, if there are many.
    hash: Option<[u64; 2]>,
}

/// Coordinates in a form that can be compared between members.
#[derive(Debug, Clone, PartialEq)]
enum CoordinateValues {
    /// Integers. Times are in nanoseconds.
    Integers(Vec<i128>),
    Reals(Vec<f64>),
    /// Texts. Opaque elements are also compared as bytes.
    Texts(Vec<Box<[u8]>>),
}

/// One coordinate, in a form that can be sorted.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum OrderedValue {
    Integer(i128),
    Real(f64),
    Text(Box<[u8]>),
}

impl OrderedValue {
    pub(crate) fn compare(&self, other: &Self) -> Ordering {
        match (self, other) {
            (OrderedValue::Integer(a), OrderedValue::Integer(b)) => a.cmp(b),
            (OrderedValue::Text(a), OrderedValue::Text(b)) => a.cmp(b),
            (OrderedValue::Text(_), _) => Ordering::Greater,
            (_, OrderedValue::Text(_)) => Ordering::Less,
            (a, b) => a.as_f64().total_cmp(&b.as_f64()),
        }
    }

    fn as_f64(&self) -> f64 {
        match self {
            OrderedValue::Integer(number) => *number as f64,
            OrderedValue::Real(number) => *number,
            OrderedValue::Text(_) => f64::INFINITY,
        }
    }
}

/// Number of leading bytes of a text that are compared to order coordinates.
const MAX_COMPARED_TEXT_BYTES: usize = 256;

/// Two coordinates count as equal if they differ by less than the smallest step between coordinates
/// divided by this number.
const TOLERANCE: f64 = 1000.0;

impl Coordinate {
    /// Converts the elements of a variable, or their summary, to coordinates. `length` is the
    /// number of elements.
    ///
    /// # Errors
    /// `Unsupported` if a value is missing, or the scan did not read the elements.
    pub(crate) fn from_variable(
        variable: &Variable,
        known: &ElementSummary,
        length: u64,
    ) -> Result<Self> {
        let (elements, hash) = match known {
            ElementSummary::Elements(elements) => (elements, None),
            ElementSummary::EndsAndHash(ends, hash) => (ends, Some(*hash)),
            ElementSummary::NotRead | ElementSummary::Hash(_) => {
                return Err(Error::unsupported("joined: unknown values", None));
            }
        };
        let values = CoordinateValues::from_elements(variable, elements, length)?;
        Ok(Coordinate {
            length,
            values,
            hash,
        })
    }

    /// Returns whether both have the same coordinates. Two coordinates may differ by at most a
    /// thousandth of the smallest step, because files of one grid may round their coordinates
    /// differently.
    pub(crate) fn is_nearly_equal(&self, other: &Self) -> bool {
        let are_same = match (self.hash, other.hash) {
            (None, None) => self.values.is_nearly_equal(&other.values),
            (own, other) => own == other,
        };
        self.length == other.length && are_same
    }

    /// Returns whether both have equal numbers, times or texts, even if the types of the elements
    /// differ.
    pub(crate) fn is_equal(&self, other: &Self) -> bool {
        let are_equal = match (&self.values, &other.values) {
            (CoordinateValues::Integers(_), CoordinateValues::Reals(_))
            | (CoordinateValues::Reals(_), CoordinateValues::Integers(_)) => {
                self.values.as_floats() == other.values.as_floats()
            }
            (own, other) => own == other,
        };
        self.length == other.length && self.hash == other.hash && are_equal
    }

    /// Returns whether both contain the same bounds of cells. Each cell has `each` bounds. Compares
    /// the first bounds of all cells as coordinates, then the second bounds of all cells, and so
    /// on.
    pub(crate) fn are_nearly_equal_bounds(&self, other: &Self, each: usize) -> bool {
        let of = |own: &Self, number| {
            let reals = own.values.as_floats().into_iter().skip(number);
            reals.step_by(each).collect::<Vec<_>>()
        };
        let are_whole = self.hash.is_none() && other.hash.is_none();
        let are_numbers = |own: &Self| !matches!(own.values, CoordinateValues::Texts(_));
        let are_near = |number| are_nearly_equal(&of(self, number), &of(other, number));
        self.length == other.length
            && are_whole
            && [self, other].into_iter().all(are_numbers)
            && each > 0
            && (0..each).all(are_near)
    }
}

/// A summary of the coordinates of one member.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct CoordinateSummary {
    pub(crate) length: u64,
    /// The first and the last coordinate. `None` if there are no coordinates.
    pub(crate) first_and_last: Option<(OrderedValue, OrderedValue)>,
    /// The smallest and the largest coordinate.
    pub(crate) min_and_max: Option<(OrderedValue, OrderedValue)>,
    pub(crate) is_text: bool,
    pub(crate) has_nan: bool,
}

impl Coordinate {
    pub(crate) fn summary(&self) -> CoordinateSummary {
        let has_nan = |values: &[f64]| values.iter().any(|value| value.is_nan());
        CoordinateSummary {
            length: self.length,
            first_and_last: self.values.first_and_last(),
            min_and_max: self.values.min_and_max(),
            is_text: matches!(self.values, CoordinateValues::Texts(_)),
            has_nan: matches!(&self.values, CoordinateValues::Reals(values) if has_nan(values)),
        }
    }
}

impl CoordinateValues {
    fn from_elements(variable: &Variable, elements: &[u8], length: u64) -> Result<Self> {
        let missing = || Error::unsupported("joined: a coordinate with missing values", None);
        let Some(packing) = &variable.meaning.packing else {
            return Self::from_texts(variable, elements, length);
        };
        let size = to_usize(variable.datatype.size.into())?.max(1);
        let numbers = elements
            .chunks_exact(size)
            .map(|element| packing.decode_number(element));
        let numbers: Vec<ExactNumber> = numbers.collect::<Option<_>>().ok_or_else(missing)?;
        if let Some(time) = &variable.meaning.time {
            let times = numbers
                .iter()
                .map(|&number| instants::to_nanoseconds(time, number)?.ok_or_else(missing));
            return Ok(CoordinateValues::Integers(times.collect::<Result<_>>()?));
        }
        let integers = numbers.iter().map(|number| number.as_integer());
        Ok(match integers.collect::<Option<_>>() {
            Some(integers)
                if StoredType::new(&packing.datatype())
                    .is_some_and(|own| own.is_signed().is_some()) =>
            {
                CoordinateValues::Integers(integers)
            }
            _ => CoordinateValues::Reals(numbers.iter().map(|number| number.as_f64()).collect()),
        })
    }

    fn from_texts(variable: &Variable, elements: &[u8], length: u64) -> Result<Self> {
        let is_text = matches!(
            variable.datatype.class,
            Class::String { .. } | Class::VariableString { .. }
        );
        let size = elements.len() / to_usize(length)?.max(1);
        let each = elements.chunks_exact(size.max(1));
        let each = each.map(|element| {
            if is_text {
                trim_padding(element)
            } else {
                element
            }
        });
        Ok(CoordinateValues::Texts(each.map(Into::into).collect()))
    }

    fn len(&self) -> usize {
        match self {
            CoordinateValues::Integers(values) => values.len(),
            CoordinateValues::Reals(values) => values.len(),
            CoordinateValues::Texts(values) => values.len(),
        }
    }

    fn value_at(&self, number: usize) -> Option<OrderedValue> {
        match self {
            CoordinateValues::Integers(values) => {
                values.get(number).copied().map(OrderedValue::Integer)
            }
            CoordinateValues::Reals(values) => values.get(number).copied().map(OrderedValue::Real),
            CoordinateValues::Texts(values) => {
                let text = values.get(number)?;
                Some(OrderedValue::Text(
                    text.get(..MAX_COMPARED_TEXT_BYTES).unwrap_or(text).into(),
                ))
            }
        }
    }

    fn iter_values(&self) -> impl Iterator<Item = OrderedValue> + '_ {
        (0..self.len()).filter_map(|number| self.value_at(number))
    }

    /// Returns the first and the last coordinate.
    fn first_and_last(&self) -> Option<(OrderedValue, OrderedValue)> {
        self.value_at(0)
            .zip(self.value_at(self.len().checked_sub(1)?))
    }

    /// Returns the smallest and the largest coordinate.
    fn min_and_max(&self) -> Option<(OrderedValue, OrderedValue)> {
        let lowest = self.iter_values().min_by(OrderedValue::compare);
        lowest.zip(self.iter_values().max_by(OrderedValue::compare))
    }

    fn is_nearly_equal(&self, other: &Self) -> bool {
        if self.len() != other.len() {
            return false;
        }
        match (self, other) {
            (CoordinateValues::Integers(a), CoordinateValues::Integers(b)) => a == b,
            (CoordinateValues::Texts(a), CoordinateValues::Texts(b)) => a == b,
            (CoordinateValues::Texts(_), _) | (_, CoordinateValues::Texts(_)) => false,
            (a, b) => are_nearly_equal(&a.as_floats(), &b.as_floats()),
        }
    }

    fn as_floats(&self) -> Vec<f64> {
        self.iter_values().map(|step| step.as_f64()).collect()
    }
}

fn are_nearly_equal(a: &[f64], b: &[f64]) -> bool {
    if a == b {
        return true;
    }
    let steps = a.iter().zip(a.iter().skip(1)).map(|(a, b)| (b - a).abs());
    let Some(smallest) = steps.min_by(f64::total_cmp) else {
        return false;
    };
    let most = smallest / TOLERANCE;
    smallest > 0.0 && a.iter().zip(b).all(|(a, b)| (a - b).abs() <= most)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_that_were_rounded_are_the_same() {
        let floats = |values: &[f64]| CoordinateValues::Reals(values.to_vec());
        let grid = floats(&[-89.5, -79.5, -69.5]);
        assert!(grid.is_nearly_equal(&floats(&[-89.499, -79.5, -69.5])));
        assert!(!grid.is_nearly_equal(&floats(&[-89.4, -79.5, -69.5])));
        assert!(!grid.is_nearly_equal(&floats(&[-89.5, -79.5])));
        assert!(!floats(&[1.0]).is_nearly_equal(&floats(&[1.000_001])));
        assert!(CoordinateValues::Integers(vec![1, 2]).is_nearly_equal(&floats(&[1.0, 2.0])));
        assert!(
            !CoordinateValues::Integers(vec![0, 5000])
                .is_nearly_equal(&CoordinateValues::Integers(vec![3, 5000]))
        );
    }

    #[test]
    fn bounds_that_were_rounded_are_the_same() {
        let bounds = |values: &[f64]| Coordinate {
            length: values.len() as u64,
            values: CoordinateValues::Reals(values.to_vec()),
            hash: None,
        };
        let cells = bounds(&[0.0, 1.0, 1.0, 2.0, 2.0, 3.0]);
        assert!(cells.are_nearly_equal_bounds(&bounds(&[0.0, 1.0, 1.0005, 2.0, 2.0, 3.0]), 2));
        assert!(!cells.are_nearly_equal_bounds(&bounds(&[0.0, 1.0, 1.1, 2.0, 2.0, 3.0]), 2));
        assert!(!cells.are_nearly_equal_bounds(&bounds(&[0.0, 1.0, 1.0, 2.0]), 2));
        // A single cell has no step.
        assert!(!bounds(&[0.0, 1.0]).are_nearly_equal_bounds(&bounds(&[0.0, 1.000_001]), 2));
    }

    #[test]
    fn first_and_last_differ_from_min_and_max_if_values_descend() {
        let falling = CoordinateValues::Integers(vec![5, 3, 1]);
        let (five, one) = (OrderedValue::Integer(5), OrderedValue::Integer(1));
        assert_eq!(falling.first_and_last(), Some((five.clone(), one.clone())));
        assert_eq!(falling.min_and_max(), Some((one, five)));
        assert_eq!(CoordinateValues::Reals(Vec::new()).first_and_last(), None);
    }
}
