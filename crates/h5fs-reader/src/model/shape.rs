//! The extent of an array.

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::limits;

/// The extent of an array. HDF5: dataspace. ASDF: `shape`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Shape {
    /// HDF5: a null dataspace, which is without elements.
    Null,
    /// A scalar (rank 0, one element) or an array in C order.
    Simple {
        /// Number of elements in each dimension, slowest first.
        dims: Vec<u64>,
        /// The maximum of each dimension, `None` if unlimited. The list is as long as `dims`.
        max: Vec<Option<u64>>,
    },
}

impl Shape {
    /// Returns a shape of the dimensions `dims` that cannot grow.
    pub fn fixed(dims: Vec<u64>) -> Self {
        let max = dims.iter().copied().map(Some).collect();
        Shape::Simple { dims, max }
    }

    /// Returns the dimensions, slowest first. Empty for a scalar or a null dataspace.
    pub fn dims(&self) -> &[u64] {
        match self {
            Shape::Null => &[],
            Shape::Simple { dims, .. } => dims,
        }
    }

    /// Returns the maximum of each dimension, `None` if unlimited. Empty for a null dataspace.
    pub fn max(&self) -> &[Option<u64>] {
        match self {
            Shape::Null => &[],
            Shape::Simple { max, .. } => max,
        }
    }

    /// Returns the number of elements of the array.
    ///
    /// # Errors
    /// `Limit` if the number exceeds 63 bits, or the rank exceeds [`limits::RANK`].
    pub fn elements(&self) -> Result<u64> {
        match self {
            Shape::Null => Ok(0),
            Shape::Simple { dims, .. } => {
                Error::check_limit(dims.len(), limits::RANK, "rank")?;
                product(dims)
            }
        }
    }
}

/// Returns the product of `dims`, or 1 if `dims` is empty.
///
/// # Errors
/// `Limit` if the product exceeds 63 bits (a file's size is a signed number).
pub fn product(dims: &[u64]) -> Result<u64> {
    const MOST: u64 = i64::MAX.unsigned_abs();
    if dims.contains(&0) {
        return Ok(0);
    }
    dims.iter()
        .try_fold(1_u64, |product, &dim| product.checked_mul(dim))
        .filter(|&product| product <= MOST)
        .ok_or_else(|| Error::limit("number of elements", MOST))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_are_the_product() {
        assert_eq!(Shape::Null.elements(), Ok(0));
        assert_eq!(Shape::fixed(vec![]).elements(), Ok(1));
        assert_eq!(Shape::fixed(vec![3, 4]).elements(), Ok(12));
        assert_eq!(Shape::fixed(vec![u64::MAX, u64::MAX, 0]).elements(), Ok(0));
        assert!(Shape::fixed(vec![u64::MAX, 2]).elements().is_err());
    }
}
