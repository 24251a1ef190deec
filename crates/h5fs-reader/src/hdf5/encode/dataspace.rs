//! The dataspace message, version 2 (HDF5 3.0, IV.A.2.b).

use crate::error::{Error, Result};
use crate::hdf5::encode::Message;
use crate::hdf5::message::kind;
use crate::limits;
use crate::model::Shape;
use crate::wire::to_u64;

const WHAT: &str = "dataspace message";

/// Encodes the extent of a dataset or an attribute. The maximum dimensions are stored only if they
/// differ from the dimensions.
///
/// # Errors
/// `Limit` for more than [`limits::RANK`] dimensions. `Corrupt` if the numbers of dimensions and of
/// maximum dimensions differ.
pub fn encode(shape: &Shape) -> Result<Message> {
    const VERSION: u8 = 2;
    const SCALAR: u8 = 0;
    const SIMPLE: u8 = 1;
    const NULL: u8 = 2;
    const HAS_MAXIMUM: u8 = 1;
    let (dims, max) = (shape.dims(), shape.max());
    if dims.len() != max.len() {
        let what = format!("{WHAT}: a dimension without a maximum");
        return Err(Error::corrupt(what, None));
    }
    let dataspace_type = match shape {
        Shape::Null => NULL,
        _ if dims.is_empty() => SCALAR,
        _ => SIMPLE,
    };
    let can_grow = dims.iter().zip(max).any(|(dim, max)| *max != Some(*dim));
    let flags = if can_grow { HAS_MAXIMUM } else { 0 };
    let mut data = vec![VERSION, rank_field(dims.len())?, flags, dataspace_type];
    data.extend(dims.iter().flat_map(|dim| dim.to_le_bytes()));
    if can_grow {
        // All bits one means unlimited.
        let max = max.iter().map(|max| max.unwrap_or(u64::MAX));
        data.extend(max.flat_map(u64::to_le_bytes));
    }
    Message::new(kind::DATASPACE, 0, data, WHAT)
}

/// Returns the number of dimensions as a field of one byte.
///
/// # Errors
/// `Limit` for more than [`limits::RANK`] dimensions.
fn rank_field(rank: usize) -> Result<u8> {
    Error::check_limit(rank, limits::RANK, "rank")?;
    u8::try_from(rank).map_err(|_| Error::limit("rank", to_u64(limits::RANK)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn data(shape: &Shape) -> Vec<u8> {
        encode(shape).unwrap().data().to_vec()
    }

    /// The expected messages are from files that h5py wrote with `libver="v108"`. The library also
    /// stores maximum dimensions that equal the dimensions.
    #[test]
    fn the_bytes_equal_those_of_the_library() {
        assert_eq!(data(&Shape::Null), [2, 0, 0, 2]);
        assert_eq!(data(&Shape::fixed(vec![])), [2, 0, 0, 0]);
        let growing = Shape::Simple {
            dims: vec![4, 3],
            max: vec![None, Some(3)],
        };
        let mut expected = vec![2, 2, 1, 1, 4, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0];
        expected.extend([0xff; 8]);
        expected.extend([3, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(data(&growing), expected);
    }

    #[test]
    fn a_fixed_shape_has_no_maximum() {
        let expected = [2, 1, 0, 1, 5, 0, 0, 0, 0, 0, 0, 0];
        assert_eq!(data(&Shape::fixed(vec![5])), expected);
    }

    #[test]
    fn a_shape_that_no_message_can_store_is_refused() {
        let long = Shape::fixed(vec![1; limits::RANK + 1]);
        assert!(matches!(encode(&long), Err(Error::Limit { .. })));
        let uneven = Shape::Simple {
            dims: vec![1],
            max: vec![],
        };
        assert!(matches!(encode(&uneven), Err(Error::Corrupt { .. })));
    }
}
