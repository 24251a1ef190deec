//! The types of netCDF, and the conversion of stored numbers to them.

use std::ops::RangeInclusive;

use h5fs_reader::error::Result;
use h5fs_reader::model::Datatype;
use h5fs_reader::model::datatype::Class;
use h5fs_reader::model::value::TextContext;
use h5fs_reader::wire::to_usize;

use crate::elements::converted::Conversion;
use crate::pictures::image::half_to_single;
use crate::zarr::datatype::{DataType, DataTypeKind};

/// A type of netCDF (`nc_type`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NetcdfType {
    Byte,
    Char,
    Short,
    Int,
    Float,
    Double,
    UnsignedByte,
    UnsignedShort,
    UnsignedInt,
    Int64,
    UnsignedInt64,
}

impl NetcdfType {
    /// Returns the number of the type in a header.
    pub(super) fn code(self) -> u32 {
        match self {
            NetcdfType::Byte => 1,
            NetcdfType::Char => 2,
            NetcdfType::Short => 3,
            NetcdfType::Int => 4,
            NetcdfType::Float => 5,
            NetcdfType::Double => 6,
            NetcdfType::UnsignedByte => 7,
            NetcdfType::UnsignedShort => 8,
            NetcdfType::UnsignedInt => 9,
            NetcdfType::Int64 => 10,
            NetcdfType::UnsignedInt64 => 11,
        }
    }

    /// Returns the size of a value in bytes.
    pub(super) fn size(self) -> u64 {
        match self {
            NetcdfType::Byte | NetcdfType::Char | NetcdfType::UnsignedByte => 1,
            NetcdfType::Short | NetcdfType::UnsignedShort => 2,
            NetcdfType::Int | NetcdfType::Float | NetcdfType::UnsignedInt => 4,
            NetcdfType::Double | NetcdfType::Int64 | NetcdfType::UnsignedInt64 => 8,
        }
    }

    /// Returns whether CDF-1 and CDF-2 have the type.
    pub(super) fn is_classic(self) -> bool {
        self.code() <= NetcdfType::Double.code()
    }

    /// Returns the bytes of one value with which netCDF pads a variable to a multiple of four bytes
    /// (`NC_FILL_BYTE` and so on). Only values of one and two bytes need padding.
    pub(super) fn padding(self) -> &'static [u8] {
        match self {
            NetcdfType::Byte => &[0x81],
            NetcdfType::Short => &[0x80, 0x01],
            NetcdfType::UnsignedByte | NetcdfType::UnsignedShort => &[0xff],
            _ => &[0],
        }
    }

    /// Returns the numbers that the type has; `None` unless it is a type of integers.
    pub(super) fn integer_range(self) -> Option<RangeInclusive<i128>> {
        let is_signed = match self {
            NetcdfType::Byte | NetcdfType::Short | NetcdfType::Int | NetcdfType::Int64 => true,
            NetcdfType::Char | NetcdfType::Float | NetcdfType::Double => return None,
            _ => false,
        };
        let end = 1_i128 << (self.size() * 8);
        Some(if is_signed {
            -end / 2..=end / 2 - 1
        } else {
            0..=end - 1
        })
    }

    fn from_integer(size: usize, is_signed: bool) -> Option<Self> {
        Some(match (size, is_signed) {
            (1, true) => NetcdfType::Byte,
            (2, true) => NetcdfType::Short,
            (4, true) => NetcdfType::Int,
            (8, true) => NetcdfType::Int64,
            (1, false) => NetcdfType::UnsignedByte,
            (2, false) => NetcdfType::UnsignedShort,
            (4, false) => NetcdfType::UnsignedInt,
            (8, false) => NetcdfType::UnsignedInt64,
            _ => return None,
        })
    }
}

/// The conversion of stored numbers to big-endian numbers of a netCDF type.
#[derive(Debug)]
pub(super) struct NumberConversion {
    /// The conversion to the little-endian numbers of a Zarr store.
    data_type: DataType,
    pub(super) netcdf_type: NetcdfType,
}

impl NumberConversion {
    /// Returns the conversion for a datatype. Returns `None` if netCDF does not have such numbers.
    /// Booleans become bytes of 0 and 1, half floats become single floats, and enumerations become
    /// integers.
    pub(super) fn from_datatype(datatype: &Datatype) -> Option<Self> {
        let data_type = DataType::from_datatype(datatype)?;
        let netcdf_type = match data_type.kind {
            DataTypeKind::Bool => NetcdfType::Byte,
            DataTypeKind::Integer { size, signed } => NetcdfType::from_integer(size, signed)?,
            DataTypeKind::Float { size: 2 | 4 } => NetcdfType::Float,
            DataTypeKind::Float { .. } => NetcdfType::Double,
            _ => return None,
        };
        Some(NumberConversion {
            data_type,
            netcdf_type,
        })
    }

    /// Returns whether stored numbers have the same bytes in the netCDF file.
    pub(super) fn is_unchanged(&self) -> bool {
        let is_big_endian = self.data_type.is_big_endian() == Some(true);
        let is_one_byte = self.data_type.has_same_bytes() && self.netcdf_type.size() == 1;
        is_one_byte || is_big_endian && !self.is_half()
    }

    fn is_half(&self) -> bool {
        self.data_type.kind == DataTypeKind::Float { size: 2 }
    }
}

impl Conversion for NumberConversion {
    fn convert(&self, element: &[u8], out: &mut Vec<u8>) -> Result<()> {
        self.convert_all(element, element.len(), out)
    }

    fn convert_all(&self, elements: &[u8], _: usize, out: &mut Vec<u8>) -> Result<()> {
        let start = out.len();
        let context = TextContext::without_pointers(0);
        self.data_type.convert(elements, &context, out)?;
        if self.is_half() {
            let halves = out.split_off(start);
            for &half in halves.as_chunks().0 {
                let single = half_to_single(u16::from_le_bytes(half));
                out.extend_from_slice(&single.to_be_bytes());
            }
        } else if let Some(numbers) = out.get_mut(start..) {
            reverse_each(numbers, to_usize(self.netcdf_type.size())?);
        }
        Ok(())
    }
}

/// Reverses the bytes of each number of `size` bytes.
fn reverse_each(numbers: &mut [u8], size: usize) {
    match size {
        // The compiler turns a fixed size into a swap of whole numbers.
        2 => numbers
            .as_chunks_mut::<2>()
            .0
            .iter_mut()
            .for_each(|number| number.reverse()),
        4 => numbers
            .as_chunks_mut::<4>()
            .0
            .iter_mut()
            .for_each(|number| number.reverse()),
        8 => numbers
            .as_chunks_mut::<8>()
            .0
            .iter_mut()
            .for_each(|number| number.reverse()),
        _ => {}
    }
}

/// Returns what a datatype is called in `_h5fs_absent`.
pub(super) fn datatype_words(datatype: &Datatype) -> &'static str {
    match &datatype.class {
        _ if datatype.complex_part().is_some() => "complex numbers",
        Class::Compound(_) => "compounds",
        Class::VariableLength(_) => "sequences of variable length",
        Class::Reference(_) => "references",
        Class::Opaque { .. } => "opaque values",
        Class::Time { .. } => "HDF5 times",
        Class::Array { .. } => "arrays within a value",
        Class::String { .. } | Class::VariableString { .. } | Class::Ucs4(_) => "texts",
        _ => "numbers of a type that netCDF does not have",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use h5fs_reader::model::datatype::ByteOrder;
    use h5fs_reader::testing::{int, type_of};

    fn convert_to_netcdf(datatype: &Datatype, elements: &[u8]) -> Option<(NetcdfType, Vec<u8>)> {
        let conversion = NumberConversion::from_datatype(datatype)?;
        let mut out = b"x".to_vec();
        conversion.convert_all(elements, 1, &mut out).unwrap();
        assert!(!conversion.is_unchanged() || out[1..] == *elements);
        Some((conversion.netcdf_type, out.split_off(1)))
    }

    #[test]
    fn numbers_are_big_endian() {
        let little = |size| Datatype::integer(size, false, ByteOrder::Little);
        assert_eq!(
            convert_to_netcdf(&int(2), &[1, 2, 3, 4]),
            Some((NetcdfType::Short, vec![2, 1, 4, 3]))
        );
        let big = Datatype::integer(4, true, ByteOrder::Big);
        assert_eq!(
            convert_to_netcdf(&big, &[1, 2, 3, 4]),
            Some((NetcdfType::Int, vec![1, 2, 3, 4]))
        );
        assert!(
            NumberConversion::from_datatype(&big)
                .unwrap()
                .is_unchanged()
        );
        let bytes = NumberConversion::from_datatype(&int(1)).unwrap();
        assert!(bytes.is_unchanged() && bytes.netcdf_type == NetcdfType::Byte);
        for (size, expected) in [
            (1, NetcdfType::UnsignedByte),
            (2, NetcdfType::UnsignedShort),
            (4, NetcdfType::UnsignedInt),
            (8, NetcdfType::UnsignedInt64),
        ] {
            let conversion = NumberConversion::from_datatype(&little(size)).unwrap();
            assert_eq!(
                (conversion.netcdf_type, conversion.netcdf_type.size()),
                (expected, size.into())
            );
        }
        // Three bytes, -2.
        let three = Datatype::integer(3, true, ByteOrder::Little);
        let expected = (-2_i32).to_be_bytes().to_vec();
        assert_eq!(
            convert_to_netcdf(&three, &[0xfe, 0xff, 0xff]),
            Some((NetcdfType::Int, expected))
        );
    }

    #[test]
    fn floats_are_single_or_double() {
        let ieee = |size| Datatype::ieee(size, ByteOrder::Little);
        let expected = (NetcdfType::Double, 1.5_f64.to_be_bytes().to_vec());
        assert_eq!(
            convert_to_netcdf(&ieee(8), &1.5_f64.to_le_bytes()),
            Some(expected)
        );
        // 0xc000 is -2 as a half float.
        let expected = [-2_f32, 0.0].map(f32::to_be_bytes).concat();
        let half = (NetcdfType::Float, expected);
        assert_eq!(
            convert_to_netcdf(&ieee(2), &[0, 0xc0, 0, 0]),
            Some(half.clone())
        );
        let big = Datatype::ieee(2, ByteOrder::Big);
        assert_eq!(convert_to_netcdf(&big, &[0xc0, 0, 0, 0]), Some(half));
        assert_eq!(
            convert_to_netcdf(&type_of(8, Class::Opaque { tag: Vec::new() }), &[]),
            None
        );
    }

    #[test]
    fn booleans_and_enumerations_are_integers() {
        assert_eq!(
            convert_to_netcdf(&type_of(1, Class::Bool), &[0, 2]),
            Some((NetcdfType::Byte, vec![0, 1]))
        );
        let members = vec![
            (b"LAND".to_vec(), vec![1, 0]),
            (b"SEA".to_vec(), vec![2, 0]),
        ];
        let enumeration = type_of(
            2,
            Class::Enumeration {
                base: Box::new(int(2)),
                members,
            },
        );
        assert_eq!(
            convert_to_netcdf(&enumeration, &[2, 0]),
            Some((NetcdfType::Short, vec![0, 2]))
        );
    }

    #[test]
    fn ranges_of_integers() {
        assert_eq!(NetcdfType::Byte.integer_range(), Some(-128..=127));
        assert_eq!(NetcdfType::UnsignedShort.integer_range(), Some(0..=65535));
        assert_eq!(
            NetcdfType::Int64.integer_range(),
            Some(i64::MIN.into()..=i64::MAX.into())
        );
        assert_eq!(NetcdfType::Float.integer_range(), None);
    }
}
