//! The encoding of messages and their fields in a packet.

use crate::error::Result;
use crate::wire::{Cursor, to_usize};

/// A message or a field of a message, with its encoding.
pub(super) trait WireField: Sized {
    /// Appends the encoded value to the packet.
    fn encode(&self, packet: &mut Vec<u8>);

    /// Decodes the value, checking that the packet has the bytes.
    fn decode(packet: &mut Cursor<'_>) -> Result<Self>;
}

/// Implements `WireField`: encodes the fields of a structure in order. For an enum, the variant's
/// number comes first.
macro_rules! fields {
    (struct $name:ident { $($field:tt)* }) => {
        impl WireField for $name {
            fn encode(&self, packet: &mut Vec<u8>) {
                $(self.$field.encode(packet);)*
            }

            fn decode(packet: &mut Cursor<'_>) -> Result<Self> {
                Ok($name { $($field: WireField::decode(packet)?),* })
            }
        }
    };
    (enum $name:ident { $($number:literal $variant:ident { $($field:ident)* })* }) => {
        impl WireField for $name {
            fn encode(&self, packet: &mut Vec<u8>) {
                match self {
                    $($name::$variant { $($field),* } => {
                        packet.push($number);
                        $($field.encode(packet);)*
                    })*
                }
            }

            fn decode(packet: &mut Cursor<'_>) -> Result<Self> {
                match packet.u8()? {
                    $($number => Ok($name::$variant { $($field: WireField::decode(packet)?),* }),)*
                    _ => Err(packet.corrupt("unknown kind")),
                }
            }
        }
    };
}

pub(super) use fields;

/// Encodes a message as a packet.
pub(super) fn encode_packet(message: &impl WireField) -> Vec<u8> {
    let mut packet = Vec::new();
    message.encode(&mut packet);
    packet
}

/// Decodes the message in a packet.
///
/// # Errors
/// `Corrupt` if the packet was not made by [`encode_packet`].
pub(super) fn decode_packet<T: WireField>(packet: &[u8], structure: &'static str) -> Result<T> {
    let mut packet = Cursor::new(packet, None, structure);
    let message = T::decode(&mut packet)?;
    match packet.remaining() {
        0 => Ok(message),
        more => Err(packet.corrupt(&format!("{more} bytes too many"))),
    }
}

impl<const N: usize> WireField for [u8; N] {
    fn encode(&self, packet: &mut Vec<u8>) {
        packet.extend_from_slice(self);
    }

    fn decode(packet: &mut Cursor<'_>) -> Result<Self> {
        packet.read_array()
    }
}

impl WireField for bool {
    fn encode(&self, packet: &mut Vec<u8>) {
        packet.push(u8::from(*self));
    }

    fn decode(packet: &mut Cursor<'_>) -> Result<Self> {
        Ok(packet.u8()? != 0)
    }
}

macro_rules! numbers {
    ($($number:ty)*) => { $(
        impl WireField for $number {
            fn encode(&self, packet: &mut Vec<u8>) {
                self.to_le_bytes().encode(packet);
            }

            fn decode(packet: &mut Cursor<'_>) -> Result<Self> {
                packet.read_array().map(<$number>::from_le_bytes)
            }
        }
    )* };
}

numbers!(u64 i64);

/// Encodes and decodes the number of an object in 8 bytes, like every other number.
impl WireField for u32 {
    fn encode(&self, packet: &mut Vec<u8>) {
        u64::from(*self).encode(packet);
    }

    fn decode(packet: &mut Cursor<'_>) -> Result<Self> {
        let number = packet.u64()?;
        u32::try_from(number).map_err(|_| packet.corrupt("not the number of an object"))
    }
}

/// Encodes and decodes a text. The length of the text always fits in 4 bytes, because the text fits
/// in a packet.
impl WireField for Vec<u8> {
    fn encode(&self, packet: &mut Vec<u8>) {
        let length = u32::try_from(self.len()).unwrap_or(u32::MAX);
        length.to_le_bytes().encode(packet);
        packet.extend_from_slice(self);
    }

    fn decode(packet: &mut Cursor<'_>) -> Result<Self> {
        let length = to_usize(packet.u32()?.into())?;
        Ok(packet.read_bytes(length)?.to_vec())
    }
}

impl WireField for String {
    fn encode(&self, packet: &mut Vec<u8>) {
        self.as_bytes().to_vec().encode(packet);
    }

    fn decode(packet: &mut Cursor<'_>) -> Result<Self> {
        Vec::decode(packet).map(|text| String::from_utf8_lossy(&text).into_owned())
    }
}
