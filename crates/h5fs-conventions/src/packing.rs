//! Packed numbers and missing values (CF 1.12, 2.5.1 and 8.1; NUG, Appendix B).
//!
//! A number is missing if it equals `_FillValue` or one of `missing_value`. It is also missing if
//! it is outside of `valid_range`, or of `valid_min` and `valid_max`. All of these are compared
//! with the stored number. Any other number is multiplied by `scale_factor`, and `add_offset` is
//! added.
//!
//! | attributes | decoded type, as in xarray |
//! |---|---|
//! | `scale_factor` and `add_offset`, both float32 | float32; float64 for integers of four bytes |
//! | `scale_factor` alone, float32 | float32 |
//! | `scale_factor` alone, an integer, and integers without missing values | the type of `scale_factor` |
//! | any other combination of the two | float64 |
//! | only attributes for missing values | float32 for numbers of up to two bytes and for float32; otherwise float64 |
//! | none | as stored |
//!
//! xarray ignores valid ranges, and netCDF4-python applies them. As in netCDF4-python, a bound that
//! the stored type cannot represent is ignored. `_Unsigned` overrides the signedness of the stored
//! integer type. If the integer type of `scale_factor` cannot represent a product, this is an
//! error; xarray wraps around. xarray also truncates floating-point numbers with an integer
//! `scale_factor`, and fails for integers with such a factor and a `_FillValue`. Both become
//! float64 here.

use std::cmp::Ordering;

use h5fs_reader::error::{Error, Result};
use h5fs_reader::model::Datatype;
use h5fs_reader::model::datatype::ByteOrder;
use h5fs_reader::model::number::{FloatValue, Integer};
use serde::{Deserialize, Serialize};

use crate::stored_type::{ExactNumber, StoredType};

/// The attributes that define how the numbers of a variable are packed.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PackingAttributes {
    /// `scale_factor`: packed numbers are multiplied by it.
    pub scale_factor: Option<Factor>,
    /// `add_offset`: it is added after the multiplication.
    pub add_offset: Option<Factor>,
    /// The values of `_FillValue` and `missing_value`.
    pub missing: Vec<ExactNumber>,
    /// The smallest valid packed number: `valid_min`, or the first number of `valid_range`.
    pub valid_min: Option<ExactNumber>,
    /// The largest valid packed number: `valid_max`, or the second number of `valid_range`.
    pub valid_max: Option<ExactNumber>,
    /// The value of `_Unsigned`; `None` if the attribute is absent or neither true nor false.
    pub unsigned: Option<bool>,
}

/// The value of `scale_factor` or `add_offset`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Factor {
    /// The value of the attribute.
    pub number: ExactNumber,
    /// The type of the attribute.
    pub stored: StoredType,
}

impl Factor {
    /// Returns whether the type of the attribute is a 32-bit floating-point type.
    fn is_single(&self) -> bool {
        self.stored.is_signed().is_none() && self.stored.size() == 4
    }
}

/// The rule that unpacks the stored numbers of a variable.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Packing {
    stored: StoredType,
    missing: Vec<ExactNumber>,
    valid_min: Option<ExactNumber>,
    valid_max: Option<ExactNumber>,
    scale_factor: Option<ExactNumber>,
    add_offset: Option<ExactNumber>,
    decoded: DecodedType,
}

/// The datatype of unpacked numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
enum DecodedType {
    /// The stored datatype, because the numbers are not packed and none is missing.
    AsStored,
    Single,
    Double,
    /// The integer type of `scale_factor`, because packed numbers are integers and none is missing.
    Integer(StoredType),
}

impl Packing {
    /// Creates the unpacking rule for stored numbers of type `stored`.
    pub fn new(stored: StoredType, attributes: &PackingAttributes) -> Self {
        let stored = match (stored.is_signed(), attributes.unsigned) {
            (Some(_), Some(unsigned)) => stored.with_signedness(!unsigned),
            _ => stored,
        };
        // Elements never equal NaN, and a NaN element is missing anyway.
        let missing = attributes.missing.iter().filter(|number| !number.is_nan());
        let bound = |number: Option<ExactNumber>| {
            let number = number.map(|number| stored.reinterpret_sign(number));
            number.filter(|&number| stored.can_hold(number))
        };
        let mut packing = Packing {
            stored,
            missing: missing
                .map(|&number| stored.reinterpret_sign(number))
                .collect(),
            valid_min: bound(attributes.valid_min),
            valid_max: bound(attributes.valid_max),
            scale_factor: attributes.scale_factor.map(|factor| factor.number),
            add_offset: attributes.add_offset.map(|factor| factor.number),
            decoded: DecodedType::AsStored,
        };
        packing.decoded = packing.choose_decoded_type(attributes);
        packing
    }

    fn choose_decoded_type(&self, attributes: &PackingAttributes) -> DecodedType {
        let size = self.stored.size();
        let is_integer = self.stored.is_signed().is_some();
        let has_missing =
            !self.missing.is_empty() || self.valid_min.is_some() || self.valid_max.is_some();
        match (attributes.scale_factor, attributes.add_offset) {
            (None, None) if !has_missing => DecodedType::AsStored,
            (None, None) if size <= 2 || !is_integer && size == 4 => DecodedType::Single,
            (Some(scale), Some(offset)) if scale.is_single() && offset.is_single() => {
                if is_integer && size == 4 {
                    DecodedType::Double
                } else {
                    DecodedType::Single
                }
            }
            (Some(scale), None) if scale.is_single() => DecodedType::Single,
            (Some(scale), None)
                if scale.stored.is_signed().is_some() && is_integer && !has_missing =>
            {
                DecodedType::Integer(scale.stored)
            }
            _ => DecodedType::Double,
        }
    }

    /// Returns whether decoded elements equal the stored ones.
    pub fn is_identity(&self) -> bool {
        self.decoded == DecodedType::AsStored
    }

    /// Returns the type of unpacked integers; `None` if numbers are not packed, or are unpacked to
    /// floating-point numbers.
    pub fn unpacked_integer_type(&self) -> Option<StoredType> {
        match self.decoded {
            DecodedType::Integer(stored) => Some(stored.with_byte_order(ByteOrder::Little)),
            _ => None,
        }
    }

    /// Returns whether an element may be missing. This is always true for floating-point numbers,
    /// which may be NaN.
    pub fn can_be_missing(&self) -> bool {
        let is_bounded = self.valid_min.is_some() || self.valid_max.is_some();
        is_bounded || !self.missing.is_empty() || self.stored.is_signed().is_none()
    }

    /// Returns the datatype of decoded numbers.
    pub fn datatype(&self) -> Datatype {
        match self.decoded {
            DecodedType::AsStored => self.stored.datatype(),
            DecodedType::Single => Datatype::ieee(4, ByteOrder::Little),
            DecodedType::Double => Datatype::ieee(8, ByteOrder::Little),
            DecodedType::Integer(stored) => stored.with_byte_order(ByteOrder::Little).datatype(),
        }
    }

    /// Decodes an element to a number; `None` if it is missing.
    pub fn decode_number(&self, element: &[u8]) -> Option<ExactNumber> {
        let stored = self.stored.read_number(element);
        if stored.is_nan() || self.is_missing(stored) {
            return None;
        }
        if self.scale_factor.is_none() && self.add_offset.is_none() {
            return Some(stored);
        }
        if let (DecodedType::Integer(_), Some(product)) =
            (self.decoded, self.multiply_by_scale(stored))
        {
            return Some(ExactNumber::Integer(product));
        }
        // The defaults leave a number unchanged, even the sign of a zero.
        let scale = self.scale_factor.map_or(1.0, ExactNumber::as_f64);
        let offset = self.add_offset.map_or(-0.0, ExactNumber::as_f64);
        Some(ExactNumber::Real(match self.decoded {
            DecodedType::Single => (stored.as_f32() * scale as f32 + offset as f32).into(),
            _ => stored.as_f64() * scale + offset,
        }))
    }

    /// Returns the product of an integer and an integer `scale_factor`; `None` if it overflows 128
    /// bits.
    fn multiply_by_scale(&self, stored: ExactNumber) -> Option<i128> {
        let scale = self.scale_factor?.as_integer()?;
        stored.as_integer()?.checked_mul(scale)
    }

    fn is_missing(&self, stored: ExactNumber) -> bool {
        let is = |bound: Option<ExactNumber>, order| {
            bound.is_some_and(|bound| stored.compare(bound) == Some(order))
        };
        self.missing.iter().any(|&missing| stored.equals(missing))
            || is(self.valid_min, Ordering::Less)
            || is(self.valid_max, Ordering::Greater)
    }

    /// Appends the unpacked number of an element, as bytes. A missing element becomes NaN.
    ///
    /// # Errors
    /// `Limit` for an integer that the type of `scale_factor` cannot represent.
    pub fn decode(&self, element: &[u8], out: &mut Vec<u8>) -> Result<()> {
        let number = || {
            self.decode_number(element)
                .unwrap_or(ExactNumber::Real(f64::NAN))
        };
        match self.decoded {
            DecodedType::AsStored => out.extend_from_slice(element),
            DecodedType::Single => out.extend_from_slice(&number().as_f32().to_le_bytes()),
            DecodedType::Double => out.extend_from_slice(&number().as_f64().to_le_bytes()),
            DecodedType::Integer(stored) => {
                let bytes = integer_of_type(stored, number())?.to_le_bytes();
                out.extend(bytes.iter().take(stored.size().into()));
            }
        }
        Ok(())
    }

    /// Appends the text of the unpacked number. Returns false, without a text, if the element is
    /// missing.
    ///
    /// # Errors
    /// Fails as [`decode`](Self::decode) does.
    pub fn write_unpacked(&self, element: &[u8], out: &mut Vec<u8>) -> Result<bool> {
        let Some(number) = self
            .decode_number(element)
            .filter(|number| !number.is_nan())
        else {
            return Ok(false);
        };
        match self.decoded {
            DecodedType::AsStored => self.stored.write_number(element, out),
            DecodedType::Single => FloatValue::Single(number.as_f32()).write_text(out),
            DecodedType::Double => FloatValue::Double(number.as_f64()).write_text(out),
            DecodedType::Integer(stored) => {
                Integer::Signed(integer_of_type(stored, number)?).write(out);
            }
        }
        Ok(true)
    }
}

/// Converts a number to an integer of the type `stored`.
///
/// # Errors
/// `Limit` for an integer that the type cannot represent.
fn integer_of_type(stored: StoredType, number: ExactNumber) -> Result<i128> {
    let integer = number.as_integer().filter(|_| stored.can_hold(number));
    integer.ok_or_else(|| {
        let bits = u64::from(stored.size()) * 8;
        Error::limit(
            "cf: bits of a number of the integer type of scale_factor",
            bits,
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use h5fs_reader::testing::int;

    fn float32_factor(number: f32) -> Option<Factor> {
        factor(
            ExactNumber::Real(number.into()),
            &Datatype::ieee(4, ByteOrder::Little),
        )
    }

    fn double(number: f64) -> Option<Factor> {
        factor(
            ExactNumber::Real(number),
            &Datatype::ieee(8, ByteOrder::Little),
        )
    }

    fn factor(number: ExactNumber, datatype: &Datatype) -> Option<Factor> {
        let stored = StoredType::new(datatype).unwrap();
        Some(Factor { number, stored })
    }

    fn packing(datatype: &Datatype, attributes: &PackingAttributes) -> Packing {
        Packing::new(StoredType::new(datatype).unwrap(), attributes)
    }

    /// Returns the size of one unpacked number in bytes, and whether it is an integer.
    fn decoded(packing: &Packing) -> (u32, bool) {
        let datatype = packing.datatype();
        (
            datatype.size,
            StoredType::new(&datatype).unwrap().is_signed().is_some(),
        )
    }

    fn decode_to_f64(packing: &Packing, elements: &[u8]) -> Vec<f64> {
        let mut out = Vec::new();
        for element in elements.chunks_exact(packing.stored.size().into()) {
            packing.decode(element, &mut out).unwrap();
        }
        let eight = out.chunks_exact(8);
        eight
            .map(|bytes| f64::from_le_bytes(bytes.try_into().unwrap()))
            .collect()
    }

    /// Expected: the types of `xarray.conventions.decode_cf_variable`.
    #[test]
    fn decoded_types() {
        let of = |datatype: &Datatype, scale_factor, add_offset| {
            let missing = vec![ExactNumber::Integer(-1)];
            let with = PackingAttributes {
                scale_factor,
                add_offset,
                missing,
                ..PackingAttributes::default()
            };
            let without = PackingAttributes {
                missing: Vec::new(),
                ..with.clone()
            };
            let types = [with, without].map(|attributes| decoded(&packing(datatype, &attributes)));
            assert!(scale_factor.or(add_offset).is_none() || types[0] == types[1]);
            types
        };
        let real = |size| (size, false);
        let ieee = |size| Datatype::ieee(size, ByteOrder::Big);
        assert_eq!(of(&int(2), None, None), [real(4), (2, true)]);
        assert_eq!(of(&int(4), None, None), [real(8), (4, true)]);
        assert_eq!(of(&ieee(4), None, None), [real(4); 2]);
        assert_eq!(of(&ieee(8), None, None), [real(8); 2]);
        assert_eq!(
            of(&int(2), float32_factor(0.1), float32_factor(1.0)),
            [real(4); 2]
        );
        assert_eq!(
            of(&int(4), float32_factor(0.1), float32_factor(1.0)),
            [real(8); 2]
        );
        assert_eq!(of(&int(4), float32_factor(0.1), None), [real(4); 2]);
        assert_eq!(of(&int(2), None, float32_factor(1.0)), [real(8); 2]);
        assert_eq!(of(&int(1), float32_factor(0.1), double(1.0)), [real(8); 2]);
        assert_eq!(of(&ieee(4), double(0.1), None), [real(8); 2]);
    }

    /// Expected: xarray's types, and its values unless it wraps around.
    #[test]
    fn integers_with_an_integer_scale_stay_integers() {
        let scaled = |datatype: &Datatype, scale: &Datatype, missing: Vec<ExactNumber>| {
            let attributes = PackingAttributes {
                scale_factor: factor(ExactNumber::Integer(2), scale),
                missing,
                ..PackingAttributes::default()
            };
            packing(datatype, &attributes)
        };
        let text = |packing: &Packing, element: &[u8]| {
            let mut out = Vec::new();
            let written = packing.write_unpacked(element, &mut out);
            written.map(|_| String::from_utf8(out).unwrap())
        };
        for size in [1, 2, 4, 8] {
            let of_bytes = scaled(&int(1), &int(size), Vec::new());
            assert_eq!(decoded(&of_bytes), (u32::from(size), true));
            assert_eq!(text(&of_bytes, &[7]), Ok("14".to_owned()));
            let mut bytes = Vec::new();
            of_bytes.decode(&[0xFF], &mut bytes).unwrap();
            assert_eq!(bytes, (-2_i64).to_le_bytes()[..size.into()]);
        }
        let narrow = scaled(&int(1), &int(1), Vec::new());
        assert!(text(&narrow, &[100]).is_err());
        assert!(narrow.decode(&[100], &mut Vec::new()).is_err());
        let filled = scaled(&int(1), &int(8), vec![ExactNumber::Integer(7)]);
        assert_eq!(decoded(&filled), (8, false));
        let real = scaled(&Datatype::ieee(4, ByteOrder::Little), &int(8), Vec::new());
        assert_eq!(text(&real, &0.25_f32.to_le_bytes()), Ok("0.5".to_owned()));
    }

    #[test]
    fn numbers_are_scaled_and_some_are_missing() {
        let packed = packing(
            &int(1),
            &PackingAttributes {
                scale_factor: double(0.5),
                add_offset: double(10.0),
                missing: vec![ExactNumber::Integer(-1), ExactNumber::Real(7.0)],
                valid_max: Some(ExactNumber::Integer(100)),
                ..PackingAttributes::default()
            },
        );
        let found = decode_to_f64(&packed, &[0, 3, 0xFF, 7, 100, 101, 0x80]);
        assert_eq!(found[..2], [10.0, 11.5]);
        assert!(found[2].is_nan() && found[3].is_nan() && found[5].is_nan());
        assert_eq!((found[4], found[6]), (60.0, -54.0));
    }

    #[test]
    fn single_numbers_are_rounded_after_each_step() {
        let attributes = PackingAttributes {
            scale_factor: float32_factor(0.1),
            add_offset: float32_factor(1000.0),
            ..PackingAttributes::default()
        };
        let mut out = Vec::new();
        packing(&int(2), &attributes)
            .decode(&33_i16.to_le_bytes(), &mut out)
            .unwrap();
        assert_eq!(out, (33_f32 * 0.1_f32 + 1000_f32).to_le_bytes());
    }

    #[test]
    fn unsigned_integers() {
        let attributes = PackingAttributes {
            unsigned: Some(true),
            missing: vec![ExactNumber::Integer(-1)],
            valid_max: Some(ExactNumber::Integer(-6)),
            scale_factor: double(1.0),
            ..PackingAttributes::default()
        };
        let found = decode_to_f64(&packing(&int(1), &attributes), &[0xFE, 0xFA, 0xFF]);
        assert!(found[0].is_nan() && found[2].is_nan());
        assert_eq!(found[1], 250.0);
        let attributes = PackingAttributes {
            unsigned: Some(true),
            ..PackingAttributes::default()
        };
        let plain = packing(&int(2), &attributes);
        assert!(plain.is_identity());
        assert_eq!(
            plain.datatype(),
            Datatype::integer(2, false, ByteOrder::Little)
        );
    }

    #[test]
    fn unrepresentable_bounds_and_missing_values_are_ignored() {
        let attributes = PackingAttributes {
            missing: vec![ExactNumber::Real(f64::NAN)],
            valid_min: Some(ExactNumber::Real(0.5)),
            valid_max: Some(ExactNumber::Integer(300)),
            ..PackingAttributes::default()
        };
        assert!(packing(&int(1), &attributes).is_identity());
    }

    #[test]
    fn a_nan_scale_makes_all_numbers_nan() {
        let attributes = PackingAttributes {
            scale_factor: double(f64::NAN),
            ..PackingAttributes::default()
        };
        assert!(decode_to_f64(&packing(&int(1), &attributes), &[1])[0].is_nan());
    }
}
