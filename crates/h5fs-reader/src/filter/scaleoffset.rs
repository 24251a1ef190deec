//! Filter 6, scaleoffset: the smallest number of the chunk, and the differences from it in the
//! smallest sufficient number of bits. Floats are first scaled by a power of ten.
//!
//! The filter has twenty parameters:
//!
//! - 0: kind of scaling (0 decimal, 1 binary, 2 integer)
//! - 1: scale factor
//! - 2: elements
//! - 3: class (0 integer, 1 float)
//! - 4: size
//! - 5: signed
//! - 6: byte order (0 little)
//! - 7: whether a fill value exists
//! - 8 and following: the fill value in little-endian words
//!
//! A chunk starts with the number of bits of a code as u32, the value 8 as u8, the minimum as u64,
//! and eight unused bytes. The codes follow, the most significant bit first. A code with all bits
//! set is the fill value.

use crate::error::{Error, Result};
use crate::filter::bits::{self, BitReader, PackedNumbers};
use crate::filter::{DecodedLength, DecoderResources};
use crate::memory::buffer::Buffer;
use crate::wire::{Count, Cursor, to_usize};

/// Returns the decoded bytes of a chunk.
///
/// # Errors
/// `Corrupt` for truncated bytes, invalid parameters, or a decoded length that `length` does not
/// allow. `Unsupported` for binary scaling, which no library writes.
pub fn decode(
    stored: Buffer,
    parameters: &[u32],
    length: DecodedLength,
    context: &DecoderResources,
) -> Result<Buffer> {
    let scheme = ScaleOffsetParameters::new(parameters)?;
    if scheme.as_is {
        return Ok(stored);
    }
    let total = scheme.elements.times(scheme.size);
    let mut output = context.pool.buffer(length.check("scaleoffset", total)?)?;
    let mut cursor = Cursor::new(&stored, None, "scaleoffset");
    let code_bits = cursor.u32()?;
    let minimum_bytes = usize::from(cursor.u8()?).min(8);
    let minimum = cursor.clone().uint(minimum_bytes)?;
    cursor.skip(16)?;
    let code_bytes = code_bits.wrapping_shr(3);
    if to_usize(code_bytes.into())? >= scheme.size {
        scheme.copy_unpacked(code_bits, cursor.rest(), &mut output)?;
        return Ok(output);
    }
    let codes = (cursor.rest(), code_bits);
    match scheme.class {
        // Sums are computed modulo 2^64, and the element contains the low bytes of the sum.
        Class::Integer => scheme.unpack(codes, &mut output, |code| minimum.wrapping_add(code)),
        Class::Float(decimals) => {
            let scale = 10_f64.powf(decimals.into());
            if scheme.size == 4 {
                let number = |code| unscale_single(code, scale, minimum);
                scheme.unpack(codes, &mut output, number)
            } else {
                let number = |code| unscale_double(code, scale, minimum);
                scheme.unpack(codes, &mut output, number)
            }
        }
    }
    .ok_or_else(|| Error::corrupt("scaleoffset: ends too early", None))?;
    Ok(output)
}

/// Computes code / scale + minimum in single precision, as the library does. `minimum` and the
/// result are bit patterns.
#[expect(
    clippy::as_conversions,
    reason = "rounding to the nearest float is meant, and there is no other conversion"
)]
fn unscale_single(code: u64, scale: f64, minimum: u64) -> u64 {
    let minimum = f32::from_bits((minimum & 0xffff_ffff) as u32);
    (code as f32 / scale as f32 + minimum).to_bits().into()
}

/// Computes code / scale + minimum in double precision. `minimum` and the result are bit patterns.
#[expect(
    clippy::as_conversions,
    reason = "rounding to the nearest float is meant, and there is no other conversion"
)]
fn unscale_double(code: u64, scale: f64, minimum: u64) -> u64 {
    (code as f64 / scale + f64::from_bits(minimum)).to_bits()
}

/// The filter's parameters, decoded.
#[derive(Debug)]
struct ScaleOffsetParameters {
    /// Whether the filter stored the elements unchanged.
    as_is: bool,
    class: Class,
    elements: usize,
    /// Number of bytes of an element: 1, 2, 4 or 8.
    size: usize,
    big_endian: bool,
    /// The fill value's bits, if the dataset has one.
    fill: Option<u64>,
}

#[derive(Debug, Clone, Copy)]
enum Class {
    Integer,
    /// A float, with the number of digits after the decimal point that the filter kept.
    Float(i32),
}

impl ScaleOffsetParameters {
    fn new(parameters: &[u32]) -> Result<Self> {
        let damaged = || Error::corrupt("scaleoffset: invalid parameters", None);
        let &[
            kind,
            factor,
            elements,
            class,
            size,
            _,
            order,
            filled,
            ref fill @ ..,
        ] = parameters
        else {
            return Err(damaged());
        };
        if !matches!(size, 1 | 2 | 4 | 8) || order > 1 {
            return Err(damaged());
        }
        let class = match (class, kind, size) {
            (0, 2, _) => Class::Integer,
            (1, 0, 4 | 8) => Class::Float(i32::from_le_bytes(factor.to_le_bytes())),
            (1, 1, _) => return Err(Error::unsupported("scaleoffset: binary scaling", None)),
            _ => return Err(damaged()),
        };
        let word = |place: usize| u64::from(fill.get(place).copied().unwrap_or(0));
        Ok(ScaleOffsetParameters {
            as_is: matches!(class, Class::Integer) && factor == size.wrapping_mul(8),
            class,
            elements: to_usize(elements.into())?,
            size: to_usize(size.into())?,
            big_endian: order == 1,
            fill: (filled != 0).then(|| word(0) | word(1).wrapping_shl(32)),
        })
    }

    /// Fills `output` with the elements of codes of `code_bits` bits. `number` converts a code to
    /// the bits of an element. Returns `None` if too few codes remain.
    fn unpack(
        &self,
        (codes, code_bits): (&[u8], u32),
        output: &mut [u8],
        number: impl Fn(u64) -> u64,
    ) -> Option<()> {
        let all_ones = 1_u64.wrapping_shl(code_bits).wrapping_sub(1);
        let number = |code| match self.fill {
            Some(fill) if code == all_ones => fill,
            _ => number(code),
        };
        if let Some(codes) = PackedNumbers::new(codes, code_bits) {
            return bits::store_elements(codes.map(number), self.size, self.big_endian, output);
        }
        let mut reader = BitReader::new(codes);
        let codes = std::iter::from_fn(|| reader.read_wide(code_bits));
        bits::store_elements(codes.map(number), self.size, self.big_endian, output)
    }

    /// Copies the elements of a chunk that is not packed, because its codes would be as wide as the
    /// elements. Such elements are stored in the writer's byte order. It is assumed to be
    /// little-endian, because no file of a big-endian writer is known.
    fn copy_unpacked(&self, code_bits: u32, elements: &[u8], output: &mut [u8]) -> Result<()> {
        let whole = to_usize(code_bits.into())? == self.size.times(8);
        match elements.get(..output.len()) {
            Some(elements) if whole => output.copy_from_slice(elements),
            _ => return Err(Error::corrupt("scaleoffset: ends too early", None)),
        }
        if self.big_endian {
            output.chunks_exact_mut(self.size).for_each(<[u8]>::reverse);
        }
        Ok(())
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

    // Chunks that h5py 3.16 stored with `scaleoffset=0` for integers and `scaleoffset=2` for
    // floats. Each constant contains the parameters and the chunk.
    /// `np.array([-300, -299, -290, 7], '>i2')`.
    const INTEGERS: (&[u32], &[u8]) = (
        &[2, 0, 4, 0, 2, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
        &[
            9, 0, 0, 0, 8, 212, 254, 255, 255, 255, 255, 255, 255, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
            65, 83, 48,
        ],
    );
    /// `np.array([99, 3, 4, 99], 'u1')`, `fillvalue=99`.
    const FILLED: (&[u32], &[u8]) = (
        &[2, 0, 4, 0, 1, 0, 0, 1, 99, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
        &[
            2, 0, 0, 0, 8, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 199, 0,
        ],
    );
    /// `np.array([1.234, -5.5, 100.017], '<f4')`, and the values that h5py reads back.
    const FLOATS: (&[u32], &[u8]) = (
        &[0, 2, 3, 1, 4, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
        &[
            14, 0, 0, 0, 8, 0, 0, 176, 192, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 10, 132, 0, 10, 78,
            0,
        ],
    );
    const FLOATS_READ: [f32; 3] = [1.23, -5.5, 100.02];
    /// `np.array([255, 0, 128, 127], 'u1')`.
    const WIDE: (&[u32], &[u8]) = (
        &[2, 0, 4, 0, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
        &[
            8, 0, 0, 0, 8, 127, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 255, 0, 128, 127,
        ],
    );

    #[test]
    fn integers_are_minimum_and_code() {
        let (parameters, stored) = INTEGERS;
        let expected: Vec<u8> = [-300_i16, -299, -290, 7]
            .iter()
            .flat_map(|number| number.to_be_bytes())
            .collect();
        assert_eq!(
            decode(stored.to_vec(), parameters, DecodedLength::Exactly(8)),
            Ok(expected)
        );
        for end in 0..stored.len() - 1 {
            assert!(
                decode(
                    stored[..end].to_vec(),
                    parameters,
                    DecodedLength::Exactly(8)
                )
                .is_err(),
                "{end}"
            );
        }
    }

    #[test]
    fn codes_of_all_ones_are_the_fill_value() {
        let (parameters, stored) = FILLED;
        assert_eq!(
            decode(stored.to_vec(), parameters, DecodedLength::Exactly(4)),
            Ok(vec![99, 3, 4, 99])
        );
    }

    #[test]
    fn floats_keep_decimals() {
        let (parameters, stored) = FLOATS;
        let decoded = decode(stored.to_vec(), parameters, DecodedLength::Exactly(12)).unwrap();
        let numbers: Vec<f32> = decoded
            .as_chunks()
            .0
            .iter()
            .map(|bytes| f32::from_le_bytes(*bytes))
            .collect();
        assert_eq!(numbers, FLOATS_READ);
    }

    #[test]
    fn codes_as_wide_as_the_elements_are_the_elements() {
        let (parameters, stored) = WIDE;
        let expected = [0xff, 0, 0x80, 0x7f];
        assert_eq!(
            decode(stored.to_vec(), parameters, DecodedLength::Exactly(4)),
            Ok(expected.to_vec())
        );
        let mut wider = stored.to_vec();
        wider[0] = 9;
        assert!(decode(wider, parameters, DecodedLength::Exactly(4)).is_err());
    }
}
