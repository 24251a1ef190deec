//! Answers of the protocol h5grove (4.0.0), which front ends such as h5web speak: types, values and
//! statistics in the forms that h5py, NumPy and orjson give them.

mod byte_order;
pub mod datatypes;
pub mod statistics;
pub mod values;

use h5fs_reader::model::datatype::{ByteOrder, Class};
use h5fs_reader::model::number::float_value;
use h5fs_reader::model::shape::product;
use h5fs_reader::model::{Datatype, numpy};
use h5fs_reader::wire::to_usize;

use crate::documents::h5grove::byte_order::order_of;
use crate::documents::h5grove::values::{Number, decode_number};
use crate::elements::converted::ConvertedElements;
use crate::elements::{Elements, numpy_datatype};

/// Returns whether NumPy counts the type among the numbers, as h5grove does before it converts
/// elements: numbers, booleans and enumerations.
pub fn is_numeric(datatype: &Datatype) -> bool {
    match &numpy_datatype(datatype).class {
        Class::Integer { .. } | Class::Bitfield { .. } | Class::Float(_) | Class::Bool => true,
        Class::Complex(_) => true,
        Class::Enumeration { base, .. } => is_numeric(base),
        _ => false,
    }
}

/// Returns the type to which h5py converts numbers whose format NumPy does not have. Returns `None`
/// for any other type, and for numbers that need more than 8 bytes.
pub(super) fn converted_type(datatype: &Datatype) -> Option<Datatype> {
    if numpy::numpy_descr(&numpy_datatype(datatype)).is_some() {
        return None;
    }
    let size = |bytes: u32| u16::try_from(bytes.next_power_of_two()).ok();
    match &datatype.class {
        Class::Integer { order, signed, .. } => {
            Some(Datatype::integer(size(datatype.size)?, *signed, *order))
        }
        Class::Float(format) if datatype.size <= 8 => {
            let holds = |exponent, mantissa| {
                format.exponent_bits <= exponent && format.mantissa_bits <= mantissa
            };
            let size = match () {
                () if holds(5, 10) => 2,
                () if holds(8, 23) => 4,
                () => 8,
            };
            Some(Datatype::ieee(size, format.order))
        }
        _ => None,
    }
}

/// Converts numbers whose format NumPy does not have, such as bfloat16, as h5py does.
pub fn to_numpy(elements: Elements) -> Elements {
    let is_half = |target: &Datatype| target.size == 2 && matches!(target.class, Class::Float(_));
    let target = converted_type(&elements.datatype);
    let Some(target) = target.filter(|target| !is_half(target)) else {
        return elements;
    };
    let (stored, order, size) = (
        elements.datatype.clone(),
        order_of(&target),
        to_usize(target.size.into()).unwrap_or_default(),
    );
    let is_single = size == 4;
    let convert = move |element: &[u8], out: &mut Vec<u8>| {
        let start = out.len();
        match decode_number(&stored, element) {
            Some(Number::Whole(value)) => {
                out.extend_from_slice(value.to_le_bytes().get(..size).unwrap_or_default());
            }
            #[expect(clippy::cast_possible_truncation, reason = "it has at most 24 bits")]
            Some(Number::Real(value)) if is_single => {
                out.extend_from_slice(&(value as f32).to_le_bytes());
            }
            Some(Number::Real(value)) => out.extend_from_slice(&value.to_le_bytes()),
            None => out.resize(start + size, 0),
        }
        if order == Some(ByteOrder::Big) {
            out[start..].reverse();
        }
    };
    let sizes = (elements.datatype.size, target.size);
    converted(elements, sizes, target, convert)
}

/// Converts elements to a type that has a typed array in JavaScript (`dtype=safe`): little-endian,
/// and floating-point numbers of 4 or 8 bytes. The elements must be numeric.
pub fn to_safe(elements: Elements) -> Elements {
    let numpy = numpy_datatype(&elements.datatype);
    let part = match &numpy.class {
        Class::Enumeration { base, .. } | Class::Complex(base) => (**base).clone(),
        _ => numpy.clone(),
    };
    let (size, order) = (part.size, order_of(&part));
    match &part.class {
        Class::Float(format) if !(4..=8).contains(&size) || numpy::numpy_descr(&part).is_none() => {
            let target: u8 = if size < 4 { 4 } else { 8 };
            let format = *format;
            let convert = move |element: &[u8], out: &mut Vec<u8>| {
                let value = float_value(element, &format).and_then(|value| value.as_f64());
                let value = value.unwrap_or(f64::NAN);
                if target == 4 {
                    #[expect(clippy::cast_possible_truncation, reason = "it has at most 16 bits")]
                    out.extend_from_slice(&(value as f32).to_le_bytes());
                } else {
                    out.extend_from_slice(&value.to_le_bytes());
                }
            };
            let datatype = Datatype::ieee(target, ByteOrder::Little);
            converted(elements, (size, u32::from(target)), datatype, convert)
        }
        _ if order == Some(ByteOrder::Big) && size > 1 => {
            let little = in_little_endian(&numpy);
            let reverse = |element: &[u8], out: &mut Vec<u8>| out.extend(element.iter().rev());
            converted(elements, (size, size), little, reverse)
        }
        _ => elements,
    }
}

/// Returns the elements with each part of `sizes.0` bytes converted to one of `sizes.1` bytes. An
/// element consists of one part, or of two if it is a complex number.
fn converted(
    elements: Elements,
    (from, to): (u32, u32),
    datatype: Datatype,
    conversion: impl Fn(&[u8], &mut Vec<u8>) + Send + Sync + 'static,
) -> Elements {
    let parts = u64::from(elements.datatype.size / from.max(1));
    let count = product(elements.dims.as_deref().unwrap_or_default()).unwrap_or_default();
    let content = ConvertedElements {
        content: elements.content,
        conversion,
        count: count.saturating_mul(parts),
        stored_size: from.into(),
        size: to.into(),
    };
    Elements {
        datatype,
        dims: elements.dims,
        content: Box::new(content),
    }
}

/// Returns the type with little-endian numbers. It is not an array or a compound.
fn in_little_endian(datatype: &Datatype) -> Datatype {
    let class = match &datatype.class {
        &Class::Integer { signed, bits, .. } => Class::Integer {
            order: ByteOrder::Little,
            signed,
            bits,
        },
        &Class::Bitfield { bits, .. } => Class::Bitfield {
            order: ByteOrder::Little,
            bits,
        },
        Class::Float(format) => {
            let mut format = *format;
            format.order = ByteOrder::Little;
            Class::Float(format)
        }
        Class::Complex(base) => Class::Complex(Box::new(in_little_endian(base))),
        Class::Enumeration { base, .. } => return in_little_endian(base),
        class => class.clone(),
    };
    Datatype {
        size: datatype.size,
        class,
    }
}
