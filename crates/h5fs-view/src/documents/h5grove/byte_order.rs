//! The byte order of the numbers of a type.

use h5fs_reader::model::Datatype;
use h5fs_reader::model::datatype::{ByteOrder, Class};

/// Returns the byte order of the numbers, or `None` if the type does not consist of numbers of one
/// byte order.
pub(super) fn order_of(datatype: &Datatype) -> Option<ByteOrder> {
    match &datatype.class {
        Class::Integer { order, .. } | Class::Bitfield { order, .. } => Some(*order),
        Class::Float(format) => Some(format.order),
        Class::Complex(base) | Class::Enumeration { base, .. } => order_of(base),
        _ => None,
    }
}

/// Returns whether the numbers of this type are big-endian.
pub(super) fn is_big_endian(datatype: &Datatype) -> bool {
    datatype.size > 1 && order_of(datatype) == Some(ByteOrder::Big)
}
