//! The fill value messages, old and new: what elements that were never written read as
//! (HDF5 3.0, IV.A.2.e and IV.A.2.f).

use crate::error::Result;
use crate::hdf5::message::kind;
use crate::model::array::Fill;
use crate::wire::{Cursor, to_usize};

/// Reads the body of a fill value message of type `kind` for elements of `element_size` bytes.
///
/// An undefined fill value leaves the content open; it reads as zeros here, as with the libraries.
///
/// # Errors
/// `Corrupt` where the value is not one element; `Unsupported` for an unknown version.
pub fn read(kind: u16, element_size: u32, cursor: &mut Cursor<'_>) -> Result<Fill> {
    if kind == kind::FILL_VALUE_OLD {
        return value(element_size, cursor);
    }
    match cursor.u8()? {
        version @ 1..=2 => {
            cursor.skip(2)?; // when space is allocated, when the value is written
            let defined = cursor.u8()? != 0;
            match defined || version == 1 && cursor.remaining() >= 4 {
                true => value(element_size, cursor),
                false => Ok(Fill::Zero),
            }
        }
        3 => {
            const HAS_VALUE: u8 = 0x20;
            match cursor.u8()? & HAS_VALUE {
                0 => Ok(Fill::Zero),
                _ => value(element_size, cursor),
            }
        }
        version => Err(cursor.unsupported(&format!("version {version}"))),
    }
}

/// A size and a value; sizes 0 and -1 stand for the default.
fn value(element_size: u32, cursor: &mut Cursor<'_>) -> Result<Fill> {
    match cursor.u32()? {
        0 | u32::MAX => Ok(Fill::Zero),
        size if size == element_size => {
            Ok(Fill::Value(cursor.take(to_usize(u64::from(size))?)?.into()))
        }
        size => Err(cursor.corrupt(&format!("{size} bytes for elements of {element_size}"))),
    }
}
