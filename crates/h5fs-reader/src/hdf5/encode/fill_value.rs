//! The fill value message, version 3 (HDF5 3.0, IV.A.2.f).

use crate::error::Result;
use crate::hdf5::encode::{CONSTANT, Message, length_field};
use crate::hdf5::message::kind;
use crate::model::array::Fill;

const WHAT: &str = "fill value message";

/// The fill value of a dataset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FillValue<'a> {
    /// The content of unwritten elements is unspecified.
    Undefined,
    /// The default of the library, which is zero.
    Default,
    /// One element's bytes, in the stored type.
    Value(&'a [u8]),
}

impl<'a> From<&'a Fill> for FillValue<'a> {
    fn from(fill: &'a Fill) -> Self {
        match fill {
            Fill::Zero => FillValue::Default,
            Fill::Value(element) => FillValue::Value(element),
        }
    }
}

/// Encodes the fill value of a dataset whose space is allocated when it is written.
///
/// # Errors
/// `Limit` for a value that does not fit into a message of less than 64 KiB.
pub fn encode(fill: FillValue<'_>) -> Result<Message> {
    const VERSION: u8 = 3;
    /// Space is allocated late, and the value is written to new space if the user has set it.
    const TIMES: u8 = 2 | 2 << 2;
    const IS_UNDEFINED: u8 = 0x10;
    const HAS_VALUE: u8 = 0x20;
    let data = match fill {
        FillValue::Undefined => vec![VERSION, TIMES | IS_UNDEFINED],
        FillValue::Default => vec![VERSION, TIMES],
        FillValue::Value(element) => {
            let size = u32::from(length_field(element.len(), WHAT)?);
            let prefix = [VERSION, TIMES | HAS_VALUE];
            [&prefix[..], &size.to_le_bytes(), element].concat()
        }
    };
    Message::new(kind::FILL_VALUE, CONSTANT, data, WHAT)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Error;

    /// The values are written from the specification. h5py writes the same default.
    #[test]
    fn each_value_has_its_flags() {
        let data = |fill| encode(fill).unwrap().data().to_vec();
        assert_eq!(data(FillValue::Default), [3, 0x0a]);
        assert_eq!(data(FillValue::Undefined), [3, 0x1a]);
        let value = data(FillValue::Value(&[9, 0]));
        assert_eq!(value, [3, 0x2a, 2, 0, 0, 0, 9, 0]);
    }

    #[test]
    fn the_length_of_a_fill_value_is_limited() {
        let longest = vec![1; 65_535 - 6];
        encode(FillValue::Value(&longest)).unwrap();
        for length in [65_535 - 5, 70_000] {
            let longer = encode(FillValue::Value(&vec![1; length]));
            assert!(matches!(longer, Err(Error::Limit { .. })));
        }
    }
}
