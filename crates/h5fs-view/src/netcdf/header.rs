//! The header of a netCDF classic file, in the grammar of the format:
//!
//! ```text
//! header     = 'C' 'D' 'F' version numrecs dim_list gatt_list var_list
//! dim_list   = ABSENT | 0x0A nelems [name dim_length ...]
//! gatt_list  = ABSENT | 0x0C nelems [name nc_type nelems values ...]
//! var_list   = ABSENT | 0x0B nelems [name nelems [dimid ...] vatt_list nc_type vsize begin ...]
//! name       = nelems bytes, padded with zeros to a multiple of four
//! ```
//!
//! Tags and types have four bytes. All other numbers have four bytes in CDF-1 and CDF-2, and eight
//! in CDF-5. Only `begin` has eight bytes in CDF-2, too.

use h5fs_reader::wire::to_u64;

use crate::netcdf::attributes::NetcdfAttribute;
use crate::netcdf::layout::{Layout, VariablePlace};
use crate::netcdf::types::NetcdfType;

/// The version of the netCDF classic format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FormatVersion {
    /// CDF-1: offsets of 32 bits.
    Classic,
    /// CDF-2: offsets of 64 bits.
    Offsets64,
    /// CDF-5: sizes of 64 bits, unsigned and 64-bit integers.
    Data64,
}

/// A dimension in the header of a netCDF file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FileDimension {
    pub(super) name: Vec<u8>,
    /// The length; 0 for the record dimension.
    pub(super) length: u64,
}

/// The description of a variable in the header of a netCDF file.
#[derive(Debug)]
pub(super) struct VariableHeader {
    pub(super) name: Vec<u8>,
    /// The indices of the dimensions, slowest first.
    pub(super) dimensions: Vec<usize>,
    pub(super) attributes: Vec<NetcdfAttribute>,
    pub(super) netcdf_type: NetcdfType,
}

/// The content of the header of a netCDF file.
pub(super) struct Header {
    pub(super) record_count: u64,
    pub(super) dimensions: Vec<FileDimension>,
    pub(super) attributes: Vec<NetcdfAttribute>,
    pub(super) variables: Vec<VariableHeader>,
}

impl Header {
    /// Returns the length of the header in bytes, which does not depend on the offsets in it.
    pub(super) fn length(&self, version: FormatVersion) -> u64 {
        to_u64(self.write(version, None).len())
    }

    /// Returns the bytes of the header. Without a layout, all sizes and offsets are 0.
    pub(super) fn write(&self, version: FormatVersion, layout: Option<&Layout>) -> Vec<u8> {
        let mut out = HeaderWriter {
            version,
            bytes: b"CDF".to_vec(),
        };
        out.bytes.push(match version {
            FormatVersion::Classic => 1,
            FormatVersion::Offsets64 => 2,
            FormatVersion::Data64 => 5,
        });
        out.number(self.record_count);
        out.list(0x0A, &self.dimensions, |out, dimension| {
            out.name(&dimension.name);
            out.number(dimension.length);
        });
        out.attributes(&self.attributes);
        let places = layout.map_or(&[][..], |layout| &layout.places);
        let places = places.iter().copied().map(Some);
        let mut places = places.chain(std::iter::repeat(None));
        out.list(0x0B, &self.variables, |out, variable| {
            out.variable(variable, places.next().flatten());
        });
        out.bytes
    }
}

/// A writer of the header of a netCDF file, with the bytes written so far.
struct HeaderWriter {
    version: FormatVersion,
    bytes: Vec<u8>,
}

impl HeaderWriter {
    fn word(&mut self, number: u32) {
        self.bytes.extend_from_slice(&number.to_be_bytes());
    }

    /// Writes a count, a length or an index. A number beyond 32 bits in CDF-1 or CDF-2 becomes the
    /// largest one, as the format requires for the size of a large variable.
    fn number(&mut self, number: u64) {
        match self.version {
            FormatVersion::Data64 => self.bytes.extend_from_slice(&number.to_be_bytes()),
            _ => self.word(u32::try_from(number).unwrap_or(u32::MAX)),
        }
    }

    fn offset(&mut self, offset: u64) {
        match self.version {
            FormatVersion::Classic => self.number(offset),
            _ => self.bytes.extend_from_slice(&offset.to_be_bytes()),
        }
    }

    fn name(&mut self, name: &[u8]) {
        self.number(to_u64(name.len()));
        self.write_padded(name);
    }

    fn write_padded(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
        let length = self.bytes.len().next_multiple_of(4);
        self.bytes.resize(length, 0);
    }

    /// Writes a list with the tag `tag`. An empty list has the tag 0.
    fn list<T>(&mut self, tag: u32, items: &[T], mut write: impl FnMut(&mut Self, &T)) {
        self.word(if items.is_empty() { 0 } else { tag });
        self.number(to_u64(items.len()));
        for item in items {
            write(self, item);
        }
    }

    fn attributes(&mut self, attributes: &[NetcdfAttribute]) {
        self.list(0x0C, attributes, |out, attribute| {
            out.name(&attribute.name);
            out.word(attribute.netcdf_type.code());
            out.number(attribute.count());
            out.write_padded(&attribute.values);
        });
    }

    fn variable(&mut self, variable: &VariableHeader, place: Option<VariablePlace>) {
        self.name(&variable.name);
        self.number(to_u64(variable.dimensions.len()));
        for &dimension in &variable.dimensions {
            self.number(to_u64(dimension));
        }
        self.attributes(&variable.attributes);
        self.word(variable.netcdf_type.code());
        self.number(place.map_or(0, |place| place.padded_bytes));
        self.offset(place.map_or(0, |place| place.begin));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::netcdf::layout::DataShape;

    fn example() -> Header {
        let text = NetcdfAttribute::from_text(b"units".to_vec(), b"K".to_vec());
        Header {
            record_count: 2,
            dimensions: vec![
                FileDimension {
                    name: b"time".to_vec(),
                    length: 0,
                },
                FileDimension {
                    name: b"x".to_vec(),
                    length: 3,
                },
            ],
            attributes: Vec::new(),
            variables: vec![VariableHeader {
                name: b"t2m".to_vec(),
                dimensions: vec![0, 1],
                attributes: vec![text],
                netcdf_type: NetcdfType::Short,
            }],
        }
    }

    fn write_example_header(version: FormatVersion) -> Vec<u8> {
        let header = example();
        let shape = DataShape {
            dims: vec![3],
            is_record: true,
            value_bytes: 2,
        };
        let layout = Layout::new(header.length(version), &[shape], 2).unwrap();
        header.write(version, Some(&layout))
    }

    /// Expected: written by hand from the grammar.
    #[test]
    fn a_header_of_cdf_1() {
        let expected: &[&[u8]] = &[
            b"CDF\x01\0\0\0\x02",
            b"\0\0\0\x0A\0\0\0\x02",
            b"\0\0\0\x04time\0\0\0\0",
            b"\0\0\0\x01x\0\0\0\0\0\0\x03",
            b"\0\0\0\0\0\0\0\0",
            b"\0\0\0\x0B\0\0\0\x01",
            b"\0\0\0\x03t2m\0",
            b"\0\0\0\x02\0\0\0\0\0\0\0\x01",
            b"\0\0\0\x0C\0\0\0\x01",
            b"\0\0\0\x05units\0\0\0\0\0\0\x02\0\0\0\x01K\0\0\0",
            b"\0\0\0\x03\0\0\0\x08\0\0\0\x78",
        ];
        assert_eq!(
            write_example_header(FormatVersion::Classic),
            expected.concat()
        );
    }

    #[test]
    fn cdf_2_has_longer_offsets() {
        let first = write_example_header(FormatVersion::Classic);
        let second = write_example_header(FormatVersion::Offsets64);
        assert_eq!(second.len(), first.len() + 4);
        assert_eq!(second[3], 2);
        assert_eq!(second[4..first.len() - 4], first[4..first.len() - 4]);
        assert_eq!(second[first.len() - 4..], 124_u64.to_be_bytes());
    }

    /// Expected: written by hand from the grammar of CDF-5.
    #[test]
    fn cdf_5_has_longer_numbers() {
        let eight = |number: u64| number.to_be_bytes();
        let expected: &[&[u8]] = &[
            b"CDF\x05",
            &eight(2),
            b"\0\0\0\x0A",
            &eight(2),
            &eight(4),
            b"time",
            &eight(0),
            &eight(1),
            b"x\0\0\0",
            &eight(3),
            b"\0\0\0\0",
            &eight(0),
            b"\0\0\0\x0B",
            &eight(1),
            &eight(3),
            b"t2m\0",
            &eight(2),
            &eight(0),
            &eight(1),
            b"\0\0\0\x0C",
            &eight(1),
            &eight(5),
            b"units\0\0\0\0\0\0\x02",
            &eight(1),
            b"K\0\0\0\0\0\0\x03",
            &eight(8),
            &eight(188),
        ];
        assert_eq!(
            write_example_header(FormatVersion::Data64),
            expected.concat()
        );
    }

    #[test]
    fn an_empty_header() {
        let header = Header {
            record_count: 0,
            dimensions: Vec::new(),
            attributes: Vec::new(),
            variables: Vec::new(),
        };
        let expected = [&b"CDF\x01"[..], &[0; 28]].concat();
        assert_eq!(header.write(FormatVersion::Classic, None), expected);
    }
}
