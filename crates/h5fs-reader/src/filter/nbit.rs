//! Filter 5, nbit: only the significant bits of each element, as its datatype defines them, packed
//! without gaps.
//!
//! Parameters: their number, whether the data were stored unchanged, elements of the chunk, and the
//! datatype as a tree. When decoding, bits that are not stored become 0. The nodes of the tree are:
//!
//! - 1 number: size, byte order, precision, offset
//! - 2 array: size, element type
//! - 3 compound: size, members, each an offset and a type
//! - 4 any other type: size

use crate::error::{Error, Result};
use crate::filter::bits::{self, BitReader, PackedNumbers};
use crate::filter::{DecodedLength, DecoderResources};
use crate::limits;
use crate::memory::buffer::Buffer;
use crate::wire::{Count, to_usize};

/// Returns the decoded bytes of a chunk.
///
/// # Errors
/// `Corrupt` for truncated bytes, invalid parameters, or a decoded length that `length` does not
/// allow.
pub fn decode(
    stored: Buffer,
    parameters: &[u32],
    length: DecodedLength,
    context: &DecoderResources,
) -> Result<Buffer> {
    let mut numbers = Parameters(parameters.iter());
    let (_, as_is, elements) = (numbers.next()?, numbers.next()?, numbers.next()?);
    if as_is == 1 {
        return Ok(stored);
    }
    let datatype = PackedType::read(&mut numbers, limits::DATATYPE_DEPTH)?;
    let size = datatype.size();
    let total = elements.times(size);
    let total = length.check("nbit", total)?;
    if let Some(numbers) = datatype.numbers(&stored) {
        let mut output = context.pool.buffer(total)?;
        bits::store_elements(numbers, size, datatype.is_big_endian(), &mut output)
            .ok_or_else(too_short_error)?;
        return Ok(output);
    }
    let mut output = Buffer::from(vec![0; total]);
    let mut bits = BitReader::new(&stored);
    for element in output.chunks_exact_mut(size) {
        datatype
            .unpack(&mut bits, element)
            .ok_or_else(too_short_error)?;
    }
    Ok(output)
}

fn too_short_error() -> Error {
    Error::corrupt("nbit: ends too early", None)
}

fn damaged() -> Error {
    Error::corrupt("nbit: invalid parameters", None)
}

/// A reader of the filter's parameters in order.
struct Parameters<'a>(std::slice::Iter<'a, u32>);

impl Parameters<'_> {
    fn next(&mut self) -> Result<usize> {
        let number = self.0.next().copied().ok_or_else(damaged)?;
        to_usize(number.into())
    }

    /// Reads a size, which must not be 0.
    fn size(&mut self) -> Result<usize> {
        match self.next()? {
            0 => Err(damaged()),
            size => Ok(size),
        }
    }
}

/// The parts of a datatype that packing depends on.
#[derive(Debug)]
enum PackedType {
    Number(PackedNumber),
    /// An array: its size in bytes, which is a multiple of the element's size, and its element
    /// type.
    Array(usize, Box<PackedType>),
    /// A compound: its size in bytes, and its members with their offsets.
    Compound(usize, Vec<(usize, PackedType)>),
    /// A type whose bytes are stored unchanged, with their number.
    Bytes(usize),
}

/// A number whose significant bits are at an offset within its bytes.
#[derive(Debug)]
struct PackedNumber {
    size: usize,
    big_endian: bool,
    precision: u32,
    offset: u32,
}

impl PackedType {
    fn read(numbers: &mut Parameters<'_>, depth: usize) -> Result<Self> {
        let depth = depth.checked_sub(1).ok_or_else(damaged)?;
        let class = numbers.next()?;
        let size = numbers.size()?;
        match class {
            1 => PackedNumber::read(numbers, size).map(PackedType::Number),
            2 => match PackedType::read(numbers, depth)? {
                // The inner size is the size of an element or of a part of it, but all bytes of the
                // whole array are stored unchanged.
                PackedType::Bytes(_) => Ok(PackedType::Bytes(size)),
                base if size.is_multiple_of(base.size()) => {
                    Ok(PackedType::Array(size, Box::new(base)))
                }
                _ => Err(damaged()),
            },
            3 => {
                let count = numbers.next()?;
                let mut members = Vec::new();
                for _ in 0..count {
                    let offset = numbers.next()?;
                    let member = PackedType::read(numbers, depth)?;
                    let end = offset.checked_add(member.size());
                    if end.is_none_or(|end| end > size) {
                        return Err(damaged());
                    }
                    members.push((offset, member));
                }
                Ok(PackedType::Compound(size, members))
            }
            4 => Ok(PackedType::Bytes(size)),
            _ => Err(damaged()),
        }
    }

    /// Returns the size of an element in bytes, not 0.
    fn size(&self) -> usize {
        match self {
            PackedType::Number(number) => number.size,
            PackedType::Array(size, _)
            | PackedType::Compound(size, _)
            | PackedType::Bytes(size) => *size,
        }
    }

    /// Returns an iterator over the elements if each is a number of 1, 2, 4 or 8 bytes. Such
    /// elements can be decoded together. Returns `None` for any other datatype.
    fn numbers<'a>(&self, stored: &'a [u8]) -> Option<impl Iterator<Item = u64> + use<'a>> {
        let PackedType::Number(PackedNumber {
            size: 1 | 2 | 4 | 8,
            precision,
            offset,
            ..
        }) = *self
        else {
            return None;
        };
        let numbers = PackedNumbers::new(stored, precision)?;
        Some(numbers.map(move |number| number.wrapping_shl(offset)))
    }

    fn is_big_endian(&self) -> bool {
        matches!(self, PackedType::Number(number) if number.big_endian)
    }

    /// Writes one element into `output`, which contains zeros. Returns `None` if too few bits
    /// remain.
    fn unpack(&self, bits: &mut BitReader<'_>, output: &mut [u8]) -> Option<()> {
        match self {
            PackedType::Number(number) => number.unpack(bits, output),
            PackedType::Array(_, base) => output
                .chunks_exact_mut(base.size())
                .try_for_each(|element| base.unpack(bits, element)),
            PackedType::Compound(_, members) => members.iter().try_for_each(|(offset, member)| {
                let place = output.get_mut(*offset..)?.get_mut(..member.size())?;
                member.unpack(bits, place)
            }),
            PackedType::Bytes(_) => output.iter_mut().try_for_each(|byte| {
                *byte = u8::try_from(bits.read(8)?).ok()?;
                Some(())
            }),
        }
    }
}

impl PackedNumber {
    /// Size of the largest number: a quadruple-precision float.
    const MOST_BYTES: usize = 16;

    fn read(numbers: &mut Parameters<'_>, size: usize) -> Result<Self> {
        let order = numbers.next()?;
        let (precision, offset) = (numbers.size()?, numbers.next()?);
        let end = precision.checked_add(offset);
        let room = size.times(8);
        if size > Self::MOST_BYTES || order > 1 || end.is_none_or(|end| end > room) {
            return Err(damaged());
        }
        Ok(PackedNumber {
            size,
            big_endian: order == 1,
            precision: u32::try_from(precision).map_err(|_| damaged())?,
            offset: u32::try_from(offset).map_err(|_| damaged())?,
        })
    }

    fn unpack(&self, bits: &mut BitReader<'_>, output: &mut [u8]) -> Option<()> {
        let Some(high_bits) = self.precision.checked_sub(64) else {
            // The most frequent case. Number and offset fit into one word if the element has at
            // most 8 bytes.
            let number = bits.read_wide(self.precision)?;
            if self.size <= 8 {
                self.store(number.wrapping_shl(self.offset).to_le_bytes(), output);
            } else {
                self.store(
                    u128::from(number).wrapping_shl(self.offset).to_le_bytes(),
                    output,
                );
            }
            return Some(());
        };
        let high = u128::from(bits.read_wide(high_bits)?);
        let number = high.wrapping_shl(64) | u128::from(bits.read_wide(64)?);
        self.store(number.wrapping_shl(self.offset).to_le_bytes(), output);
        Some(())
    }

    fn store<const N: usize>(&self, little_endian: [u8; N], output: &mut [u8]) {
        if self.big_endian {
            let places = output.iter_mut().rev();
            places.zip(little_endian).for_each(|(to, from)| *to = from);
        } else {
            let places = output.iter_mut();
            places.zip(little_endian).for_each(|(to, from)| *to = from);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decode(stored: Vec<u8>, parameters: &[u32], length: DecodedLength) -> Result<Vec<u8>> {
        super::decode(
            stored.into(),
            parameters,
            length,
            &DecoderResources::default(),
        )
        .map(Buffer::into_vec)
    }

    /// Chunks that libhdf5 (h5py 3.16, `set_nbit`) stored for numbers of 12 bits at offset 4 in
    /// `<u4` and `>u4`.
    #[test]
    fn bits_go_back_to_their_offset() {
        let stored = vec![18, 31, 255, 0, 80];
        let little = [[0x10, 0x12, 0, 0], [0xf0, 0xff, 0, 0], [0x50, 0, 0, 0]].concat();
        let decoded = decode(
            stored.clone(),
            &[8, 0, 3, 1, 4, 0, 12, 4],
            DecodedLength::Exactly(12),
        );
        assert_eq!(decoded, Ok(little.clone()));
        let big: Vec<u8> = little
            .chunks(4)
            .flat_map(|bytes| bytes.iter().rev().copied())
            .collect();
        let decoded = decode(
            stored.clone(),
            &[8, 0, 3, 1, 4, 1, 12, 4],
            DecodedLength::Exactly(12),
        );
        assert_eq!(decoded, Ok(big));
        for end in 0..5 {
            let short = stored[..end].to_vec();
            assert!(
                decode(
                    short,
                    &[8, 0, 3, 1, 4, 0, 12, 4],
                    DecodedLength::Exactly(12)
                )
                .is_err()
            );
        }
    }

    #[test]
    fn unfiltered_data_is_copied() {
        assert_eq!(
            decode(vec![1, 2], &[3, 1, 2], DecodedLength::Exactly(2)),
            Ok(vec![1, 2])
        );
    }

    /// The compound has 8 bytes: at 1 an array of two 4-bit numbers, at 4 three bytes.
    #[test]
    fn members_follow_each_other_without_gaps() {
        let parameters = [17, 0, 1, 3, 8, 2, 1, 2, 2, 1, 1, 0, 4, 0, 4, 4, 3];
        let decoded = decode(vec![0xab, 1, 2, 3], &parameters, DecodedLength::Exactly(8));
        assert_eq!(decoded, Ok(vec![0, 0xa, 0xb, 0, 1, 2, 3, 0]));
    }

    #[test]
    fn invalid_parameters_are_rejected() {
        let bombs: [&[u32]; 7] = [
            &[],
            &[8, 0, u32::MAX, 1, 4, 0, 12, 4],
            &[8, 0, 3, 1, 4, 0, 30, 4],
            &[8, 0, 3, 1, 4, 2, 12, 4],
            &[5, 0, 3, 4, 0],
            &[8, 0, 1, 3, 4, 1, 2, 4, 3],
            &[0, 0, 1, 9, 1],
        ];
        for parameters in bombs {
            assert!(
                decode(vec![0; 99], parameters, DecodedLength::Exactly(12)).is_err(),
                "{parameters:?}"
            );
        }
        let mut deep = vec![0, 0, 1];
        deep.extend([2, 12].repeat(100_000));
        assert!(decode(vec![0; 99], &deep, DecodedLength::Exactly(12)).is_err());
    }
}
