//! The encoding of messages and their fields in a packet.

use crate::error::Result;
use crate::wire::{Cursor, to_usize};

/// A message or a field of a message, with its encoding.
pub(super) trait Field: Sized {
    /// Appends the encoded value to the packet.
    fn put(&self, packet: &mut Vec<u8>);

    /// Decodes the value, checking that the packet has the bytes.
    fn take(packet: &mut Cursor<'_>) -> Result<Self>;
}

/// Implements `Field`: encodes the fields of a structure in order. For an enum, the variant's
/// number comes first.
macro_rules! fields {
    (struct $name:ident { $($field:tt)* }) => {
        impl Field for $name {
            fn put(&self, packet: &mut Vec<u8>) {
                $(self.$field.put(packet);)*
            }

            fn take(packet: &mut Cursor<'_>) -> Result<Self> {
                Ok($name { $($field: Field::take(packet)?),* })
            }
        }
    };
    (enum $name:ident { $($number:literal $variant:ident { $($field:ident)* })* }) => {
        impl Field for $name {
            fn put(&self, packet: &mut Vec<u8>) {
                match self {
                    $($name::$variant { $($field),* } => {
                        packet.push($number);
                        $($field.put(packet);)*
                    })*
                }
            }

            fn take(packet: &mut Cursor<'_>) -> Result<Self> {
                match packet.u8()? {
                    $($number => Ok($name::$variant { $($field: Field::take(packet)?),* }),)*
                    _ => Err(packet.corrupt("unknown kind")),
                }
            }
        }
    };
}

pub(super) use fields;

/// Encodes a message as a packet.
pub(super) fn packed(message: &impl Field) -> Vec<u8> {
    let mut packet = Vec::new();
    message.put(&mut packet);
    packet
}

/// Decodes the message in a packet.
///
/// # Errors
/// `Corrupt` if the packet was not made by [`packed`].
pub(super) fn unpacked<T: Field>(packet: &[u8], structure: &'static str) -> Result<T> {
    let mut packet = Cursor::new(packet, None, structure);
    let message = T::take(&mut packet)?;
    match packet.remaining() {
        0 => Ok(message),
        more => Err(packet.corrupt(&format!("{more} bytes too many"))),
    }
}

impl<const N: usize> Field for [u8; N] {
    fn put(&self, packet: &mut Vec<u8>) {
        packet.extend_from_slice(self);
    }

    fn take(packet: &mut Cursor<'_>) -> Result<Self> {
        packet.array()
    }
}

impl Field for bool {
    fn put(&self, packet: &mut Vec<u8>) {
        packet.push(u8::from(*self));
    }

    fn take(packet: &mut Cursor<'_>) -> Result<Self> {
        Ok(packet.u8()? != 0)
    }
}

macro_rules! numbers {
    ($($number:ty)*) => { $(
        impl Field for $number {
            fn put(&self, packet: &mut Vec<u8>) {
                self.to_le_bytes().put(packet);
            }

            fn take(packet: &mut Cursor<'_>) -> Result<Self> {
                packet.array().map(<$number>::from_le_bytes)
            }
        }
    )* };
}

numbers!(u64 i64);

/// The number of an object is encoded in 8 bytes, as every number is.
impl Field for u32 {
    fn put(&self, packet: &mut Vec<u8>) {
        u64::from(*self).put(packet);
    }

    fn take(packet: &mut Cursor<'_>) -> Result<Self> {
        let number = packet.u64()?;
        u32::try_from(number).map_err(|_| packet.corrupt("not the number of an object"))
    }
}

/// The length of a text always fits in 4 bytes, because the text fits in a packet.
impl Field for Vec<u8> {
    fn put(&self, packet: &mut Vec<u8>) {
        let length = u32::try_from(self.len()).unwrap_or(u32::MAX);
        length.to_le_bytes().put(packet);
        packet.extend_from_slice(self);
    }

    fn take(packet: &mut Cursor<'_>) -> Result<Self> {
        let length = to_usize(packet.u32()?.into())?;
        Ok(packet.take(length)?.to_vec())
    }
}

impl Field for String {
    fn put(&self, packet: &mut Vec<u8>) {
        self.as_bytes().to_vec().put(packet);
    }

    fn take(packet: &mut Cursor<'_>) -> Result<Self> {
        Vec::take(packet).map(|text| String::from_utf8_lossy(&text).into_owned())
    }
}
