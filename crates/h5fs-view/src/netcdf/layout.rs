//! The offsets of the variables and records in a netCDF file.

use h5fs_reader::error::{Error, Result};
use h5fs_reader::model::shape::product;

/// The shape of a variable's data, from which its size in the netCDF file follows.
#[derive(Debug, Clone)]
pub(super) struct DataShape {
    /// The lengths of the dimensions, slowest first, without the record dimension.
    pub(super) dims: Vec<u64>,
    /// Whether the variable has the record dimension, which is then its first one.
    pub(super) is_record: bool,
    /// Size of a value in bytes.
    pub(super) value_bytes: u64,
}

/// The offset and the size of a variable's data in the netCDF file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct VariablePlace {
    /// The offset of the variable's first byte in the file, in the first record if the variable has
    /// records.
    pub(super) begin: u64,
    /// Number of bytes of the variable's values: of one record, if the variable has records.
    pub(super) bytes: u64,
    /// The same number of bytes, rounded up to a multiple of four.
    pub(super) padded_bytes: u64,
    pub(super) is_record: bool,
}

/// The offsets of all variables in a netCDF file, and the file's length.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Layout {
    /// The places of all variables, in the order of the header.
    pub(super) places: Vec<VariablePlace>,
    /// The offset of the first record.
    pub(super) records_begin: u64,
    /// The distance in bytes from one record to the next.
    pub(super) record_bytes: u64,
    /// The length of the file in bytes.
    pub(super) length: u64,
}

impl Layout {
    /// Computes the offsets in a file with a header of `header_bytes` bytes.
    ///
    /// # Errors
    /// `Limit` if the file is longer than any file can be.
    pub(super) fn new(header_bytes: u64, shapes: &[DataShape], record_count: u64) -> Result<Self> {
        let places = shapes.iter().map(VariablePlace::new);
        let mut places: Vec<VariablePlace> = places.collect::<Result<_>>()?;
        let mut end = header_bytes;
        for place in places.iter_mut().filter(|place| !place.is_record) {
            place.begin = end;
            end = add(end, place.padded_bytes)?;
        }
        let records_begin = end;
        for place in places.iter_mut().filter(|place| place.is_record) {
            place.begin = end;
            end = add(end, place.padded_bytes)?;
        }
        let mut records = places.iter().filter(|place| place.is_record);
        let record_bytes = match (records.next(), records.next()) {
            // The records of a single variable are not padded.
            (Some(only), None) => only.bytes,
            _ => end - records_begin,
        };
        let all = record_count.checked_mul(record_bytes);
        let length = add(records_begin, all.ok_or_else(too_long_error)?)?;
        Ok(Layout {
            places,
            records_begin,
            record_bytes,
            length,
        })
    }

    /// Returns the greatest number of bytes of a variable, or of one record of a variable.
    pub(super) fn largest_variable(&self) -> u64 {
        let sizes = self.places.iter().map(|place| place.padded_bytes);
        sizes.max().unwrap_or(0)
    }
}

impl VariablePlace {
    fn new(shape: &DataShape) -> Result<Self> {
        let bytes = product(&shape.dims)?.checked_mul(shape.value_bytes);
        let bytes = bytes.ok_or_else(too_long_error)?;
        let padded = bytes.checked_next_multiple_of(4);
        Ok(VariablePlace {
            begin: 0,
            bytes,
            padded_bytes: padded.ok_or_else(too_long_error)?,
            is_record: shape.is_record,
        })
    }
}

/// The greatest length of a file.
const MOST: u64 = i64::MAX.unsigned_abs();

fn add(offset: u64, bytes: u64) -> Result<u64> {
    let sum = offset.checked_add(bytes);
    sum.filter(|&sum| sum <= MOST).ok_or_else(too_long_error)
}

fn too_long_error() -> Error {
    Error::limit("bytes of a netCDF file", MOST)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fixed(dims: &[u64], value_bytes: u64) -> DataShape {
        let (dims, is_record) = (dims.to_vec(), false);
        DataShape {
            dims,
            is_record,
            value_bytes,
        }
    }

    fn record(dims: &[u64], value_bytes: u64) -> DataShape {
        DataShape {
            is_record: true,
            ..fixed(dims, value_bytes)
        }
    }

    fn begins(layout: &Layout) -> Vec<u64> {
        layout.places.iter().map(|place| place.begin).collect()
    }

    #[test]
    fn fixed_variables_come_before_records() {
        let shapes = [
            record(&[3], 2),
            fixed(&[5], 1),
            record(&[], 8),
            fixed(&[], 4),
        ];
        let layout = Layout::new(100, &shapes, 7).unwrap();
        assert_eq!(begins(&layout), [112, 100, 120, 108]);
        assert_eq!((layout.records_begin, layout.record_bytes), (112, 16));
        assert_eq!(layout.length, 112 + 7 * 16);
        assert_eq!(layout.largest_variable(), 8);
    }

    #[test]
    fn records_of_a_single_variable_are_not_padded() {
        let layout = Layout::new(100, &[record(&[3], 1), fixed(&[1], 2)], 5).unwrap();
        assert_eq!(begins(&layout), [104, 100]);
        assert_eq!((layout.record_bytes, layout.length), (3, 104 + 15));
        assert_eq!(layout.places[0].padded_bytes, 4);
        let two = Layout::new(100, &[record(&[3], 1), record(&[1], 2)], 5).unwrap();
        assert_eq!((two.record_bytes, two.length), (8, 100 + 40));
    }

    #[test]
    fn file_lengths_are_limited_to_63_bits() {
        assert!(Layout::new(8, &[fixed(&[1 << 60], 8)], 0).is_err());
        assert!(Layout::new(8, &[fixed(&[1 << 59], 8)], 0).is_ok());
        assert!(Layout::new(8, &[record(&[1 << 30], 8)], 1 << 40).is_err());
        assert_eq!(Layout::new(32, &[], 9).unwrap().length, 32);
    }
}
