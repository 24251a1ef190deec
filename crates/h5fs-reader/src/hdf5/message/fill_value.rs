//! The fill value messages, old and new, with the value of elements that were never written (HDF5
//! 3.0, IV.A.2.e and IV.A.2.f).

use crate::error::Result;
use crate::hdf5::message::kind;
use crate::model::array::Fill;
use crate::wire::{Cursor, to_usize};

/// Reads the body of a fill value message of type `kind`, for elements of `element_size` bytes. An
/// undefined fill value leaves the content of unwritten elements unspecified. They are read as
/// zeros, as in other libraries.
///
/// # Errors
/// `Corrupt` if the value does not have the size of one element, `Unsupported` for an unknown
/// version or flag.
pub(crate) fn read(kind: u16, element_size: u32, cursor: &mut Cursor<'_>) -> Result<Fill> {
    if kind == kind::FILL_VALUE_OLD {
        return read_value(element_size, cursor);
    }
    match cursor.u8()? {
        version @ 1..=2 => {
            cursor.skip(2)?; // when space is allocated, when the value is written
            let defined = cursor.u8()? != 0;
            if defined || version == 1 && cursor.remaining() >= 4 {
                read_value(element_size, cursor)
            } else {
                Ok(Fill::Zero)
            }
        }
        3 => {
            const UNDEFINED: u8 = 0x10;
            const HAS_VALUE: u8 = 0x20;
            const UNKNOWN: u8 = 0xc0;
            let flags = cursor.u8()?;
            if flags & UNKNOWN != 0 {
                return Err(cursor.unsupported(&format!("flags {flags:#04x}")));
            }
            match (flags & HAS_VALUE, flags & UNDEFINED) {
                (0, _) => Ok(Fill::Zero),
                (_, 0) => match read_value(element_size, cursor)? {
                    Fill::Zero => Err(cursor.corrupt("a value with size 0")),
                    value => Ok(value),
                },
                _ => Err(cursor.corrupt("an undefined value")),
            }
        }
        version => Err(cursor.unsupported(&format!("version {version}"))),
    }
}

/// Reads the size of a fill value, and the value after it. The sizes 0 and -1 mean the default
/// value, which is zero.
fn read_value(element_size: u32, cursor: &mut Cursor<'_>) -> Result<Fill> {
    match cursor.u32()? {
        0 | u32::MAX => Ok(Fill::Zero),
        size if size == element_size => Ok(Fill::Value(
            cursor.read_bytes(to_usize(u64::from(size))?)?.into(),
        )),
        size => Err(cursor.corrupt(&format!("{size} bytes for elements of {element_size}"))),
    }
}
