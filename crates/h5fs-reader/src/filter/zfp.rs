//! Filter 32013, ZFP: arrays of one to four dimensions in blocks of four elements in each
//! dimension.
//!
//! Parameter 0 contains versions of the libraries. The other parameters are ZFP's header in words
//! of 32 bits. The header contains `zfp` and the codec's version 5, 52 bits of scalar type and
//! dimensions, and 12 or 64 bits of mode. The chunk itself starts without a header. Dimensions of 1
//! are omitted, and the fastest dimension comes first. (zfp 1.0, "Bit stream": bits fill bytes from
//! the lowest up.)

mod block;
mod order;
mod stream;

use crate::error::{Error, Result};
use crate::filter::{DecodedLength, DecoderResources};
use crate::memory::buffer::Buffer;
use crate::wire::{Count, to_usize};
use block::{BlockDecoder, Mode, ZfpInteger};
use stream::BitStream;

/// Returns the decoded bytes of a chunk.
///
/// # Errors
/// `Corrupt` for truncated bytes, invalid parameters, or a decoded length that `length` does not
/// allow. `Unsupported` for another version of the codec than 5.
pub fn decode(
    stored: &[u8],
    parameters: &[u32],
    length: DecodedLength,
    context: &DecoderResources,
) -> Result<Buffer> {
    let words = parameters.get(1..).unwrap_or_default();
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    if bytes.starts_with(b"zfp") {
        return Header::read(&bytes)?.decode(stored, false, length, context);
    }
    // A big-endian machine wrote the words, and the elements are stored in its byte order.
    let swapped: Vec<u8> = words.iter().flat_map(|word| word.to_be_bytes()).collect();
    if swapped.starts_with(b"zfp") {
        return Header::read(&swapped)?.decode(stored, true, length, context);
    }
    Err(Error::corrupt(
        "ZFP: the header is missing in the parameters",
        None,
    ))
}

fn damaged() -> Error {
    Error::corrupt("ZFP: damaged, or ends too early", None)
}

/// ZFP's header, decoded from the filter's parameters.
#[derive(Debug)]
struct Header {
    scalar: Scalar,
    rank: usize,
    /// The lengths of the dimensions, fastest first, and 1 for each dimension beyond the rank.
    dims: [usize; 4],
    mode: Mode,
}

#[derive(Debug, Clone, Copy)]
enum Scalar {
    Int32,
    Int64,
    Float,
    Double,
}

impl Scalar {
    fn bytes(self) -> usize {
        match self {
            Scalar::Int32 | Scalar::Float => 4,
            Scalar::Int64 | Scalar::Double => 8,
        }
    }
}

impl Header {
    fn read(bytes: &[u8]) -> Result<Self> {
        const CODEC: u64 = 5;
        const LONG_MODE: u64 = 0xfff;
        let no_header = || Error::corrupt("ZFP: invalid parameters", None);
        let mut bits = BitStream::new(bytes);
        bits.skip(24).ok_or_else(no_header)?;
        let codec = bits.read(8).ok_or_else(no_header)?;
        if codec != CODEC {
            return Err(Error::unsupported(format!("ZFP: codec {codec}"), None));
        }
        let mut next = |width| bits.read(width).ok_or_else(no_header);
        let scalar = match next(2)? {
            0 => Scalar::Int32,
            1 => Scalar::Int64,
            2 => Scalar::Float,
            _ => Scalar::Double,
        };
        let rank = to_usize(next(2)?)?.plus_one();
        let width = [48, 24, 16, 12]
            .get(rank.minus_or_zero(1))
            .copied()
            .unwrap_or(0);
        let mut dims = [1; 4];
        for dim in dims.iter_mut().take(rank) {
            *dim = to_usize(next(width)?)?.plus_one();
        }
        let mode = match next(12)? {
            LONG_MODE => Mode::from_long_mode(next(52)?),
            short => Mode::from_short_mode(short),
        };
        Ok(Header {
            scalar,
            rank,
            dims,
            mode: mode.ok_or_else(no_header)?,
        })
    }

    fn decode(
        &self,
        stored: &[u8],
        big_endian: bool,
        length: DecodedLength,
        context: &DecoderResources,
    ) -> Result<Buffer> {
        let total = self.scalar.bytes();
        let total = self
            .dims
            .iter()
            .try_fold(total, |total, &dim| total.checked_mul(dim));
        let mut output = context
            .pool
            .buffer(length.check("ZFP", total.ok_or_else(damaged)?)?)?;
        match self.scalar {
            Scalar::Int32 => self.array::<i32>(false, stored, big_endian, &mut output),
            Scalar::Int64 => self.array::<i64>(false, stored, big_endian, &mut output),
            Scalar::Float => self.array::<i32>(true, stored, big_endian, &mut output),
            Scalar::Double => self.array::<i64>(true, stored, big_endian, &mut output),
        }?;
        Ok(output)
    }

    /// Decodes the array block by block, the fastest dimension first.
    fn array<I: ZfpInteger>(
        &self,
        floats: bool,
        stored: &[u8],
        big_endian: bool,
        output: &mut [u8],
    ) -> Result<()> {
        let mut bits = BitStream::new(stored);
        let mut decoder = BlockDecoder::<I>::new(self.rank, self.mode);
        let blocks = self.dims.map(|dim| dim.div_ceil(4));
        let count = blocks.iter().product::<usize>();
        for number in 0..count {
            let block = if floats {
                decoder.floats(&mut bits)
            } else {
                decoder.integers(&mut bits)
            };
            let origin = origin(number, blocks);
            self.scatter(block.ok_or_else(damaged)?, origin, big_endian, output);
        }
        Ok(())
    }

    /// Writes the part of a block that is within the array to `output`, in rows of the fastest
    /// dimension. `origin` is the position of the block's first element.
    fn scatter<I: ZfpInteger>(
        &self,
        block: &[I],
        origin: [usize; 4],
        big_endian: bool,
        output: &mut [u8],
    ) {
        let [x, y, z, w] = origin;
        let [nx, ny, nz, nw] = self.dims;
        let length = nx.minus_or_zero(x).min(4);
        for (number, row) in block.chunks(4).enumerate() {
            let y = y.wrapping_add(number & 3);
            let z = z.wrapping_add(number.wrapping_shr(2) & 3);
            let w = w.wrapping_add(number.wrapping_shr(4) & 3);
            if y >= ny || z >= nz || w >= nw {
                continue;
            }
            let place = w
                .wrapping_mul(nz)
                .wrapping_add(z)
                .wrapping_mul(ny)
                .wrapping_add(y);
            let place = place
                .wrapping_mul(nx)
                .wrapping_add(x)
                .wrapping_mul(I::BYTES);
            let places = output.get_mut(place..).unwrap_or_default();
            for (to, number) in places.chunks_exact_mut(I::BYTES).zip(row).take(length) {
                number.store(to);
                if big_endian {
                    to.reverse();
                }
            }
        }
    }
}

/// Returns the coordinates of the first element of block `number`, fastest dimension first.
/// `blocks` is the number of blocks in each dimension.
fn origin(number: usize, blocks: [usize; 4]) -> [usize; 4] {
    let mut number = number;
    blocks.map(|count| {
        let place = number.checked_rem(count).unwrap_or(0);
        number = number.checked_div(count).unwrap_or(0);
        place.wrapping_mul(4)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decode(stored: &[u8], parameters: &[u32], length: DecodedLength) -> Result<Vec<u8>> {
        super::decode(stored, parameters, length, &DecoderResources::default())
            .map(Buffer::into_vec)
    }

    // Parameters and chunk as hdf5plugin 7.1 stored them.
    /// `np.arange(20).reshape(4, 5)**2` as `<i8`, reversible.
    const REVERSIBLE: (&[u32], &[u8]) = (
        &[269504785, 91252346, 805306437, 2281701376],
        &[
            63, 0, 0, 0, 0, 0, 0, 128, 76, 36, 20, 3, 135, 51, 252, 0, 0, 0, 0, 0, 0, 0, 50, 129,
            66, 0, 16, 136, 0,
        ],
    );
    /// `np.arange(5) / 4 - 0.5`, reversible.
    const FLOATS: (&[u32], &[u8]) = (
        &[269504785, 91252346, 67, 2281701376],
        &[253, 111, 96, 214, 255, 4, 11],
    );
    /// `np.linspace(0, 1, 16, dtype='<f4').reshape(4, 4)`, rate 8.
    const RATE: (&[u32], &[u8]) = (
        &[269504785, 91252346, 805306422, 133169152],
        &[1, 49, 5, 2, 4, 2, 4, 2, 4, 2, 4, 2, 4, 2, 12, 20],
    );
    /// `np.sin(np.arange(27))` as `<f4` in 3 by 3 by 3, accuracy 0.1.
    const ACCURACY: (&[u32], &[u8]) = (
        &[269504785, 91252346, 2097194, 3404726304],
        &[
            255, 4, 0, 0, 0, 0, 0, 0, 128, 0, 0, 0, 0, 0, 12, 0, 32, 64, 0, 64, 0, 128, 11, 200, 0,
            112, 128, 112, 0, 32, 2, 19, 94, 64, 64, 33, 128, 193, 194, 42, 8, 65, 198, 32, 128,
            65, 14, 197, 63, 65, 128, 196, 27, 81, 9, 113, 156, 224, 196, 68, 45, 143, 240, 104,
            148, 121, 88, 70, 201, 14, 249, 227, 19, 252, 147, 141, 237, 32, 8, 39, 56, 235, 95,
            98, 64, 32, 60, 227, 51,
        ],
    );
    /// `np.arange(16) % 3` as `<f8` in 2 by 2 by 2 by 2, precision 12.
    const PRECISION: (&[u32], &[u8]) = (
        &[269504785, 91252346, 268501023, 2159018240],
        &[
            3, 136, 9, 0, 0, 0, 0, 0, 120, 30, 0, 0, 0, 0, 0, 0, 0, 27, 0, 0, 0, 0, 0, 0, 0, 0,
            128, 0, 0, 0, 0, 0, 0, 126, 0, 0, 0, 0, 0, 0, 0, 30, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 80,
            0, 0, 0, 0, 24, 0, 0, 0, 0, 0, 0, 0, 10, 0, 0, 0, 0, 0, 0, 0, 0, 128, 2, 240, 0, 0, 0,
            0, 126, 0, 0, 0, 0, 0, 0, 0, 30, 0, 0, 0, 0, 0, 0, 0, 0, 128, 0, 0, 0, 0, 0, 0, 0, 0,
            0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
            0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
            0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
            0, 0,
        ],
    );
    // The values that h5py reads back from the lossy chunks.
    const RATE_READ: [f32; 16] = [
        1.8626451e-08,
        0.06666668,
        0.13333334,
        0.2,
        0.26666665,
        0.3333333,
        0.39999998,
        0.46666664,
        0.53333336,
        0.6,
        0.6666667,
        0.73333335,
        0.8,
        0.8666667,
        0.93333334,
        1.0,
    ];
    const ACCURACY_READ: [f32; 27] = [
        -0.0028839111,
        0.8436432,
        0.9072113,
        0.14015198,
        -0.7521515,
        -0.9601288,
        -0.28175354,
        0.6584015,
        0.98747253,
        0.41163635,
        -0.5402374,
        -1.0030975,
        -0.5266876,
        0.42945862,
        0.99131775,
        0.65071106,
        -0.28297424,
        -0.9620209,
        -0.7516022,
        0.15022278,
        0.90971375,
        0.8368683,
        -0.0077056885,
        -0.847641,
        -0.9071808,
        -0.13389587,
        0.7665863,
    ];
    const PRECISION_READ: [f64; 16] = [
        0.0, 1.0, 2.0, 0.0, 1.0, 2.0, 0.0, 1.0, 2.0, 0.0, 1.0, 2.0, 0.0, 1.0, 2.0, 0.0,
    ];

    fn read((parameters, stored): (&[u32], &[u8]), bytes: usize) -> Vec<u8> {
        decode(stored, parameters, DecodedLength::Exactly(bytes)).unwrap()
    }

    #[test]
    fn reversible_arrays_are_restored_exactly() {
        let squares: Vec<u8> = (0..20_i64).flat_map(|n| (n * n).to_le_bytes()).collect();
        assert_eq!(read(REVERSIBLE, 160), squares);
        let quarters = [-0.5_f64, -0.25, 0.0, 0.25, 0.5];
        assert_eq!(read(FLOATS, 40), quarters.map(f64::to_le_bytes).concat());
    }

    #[test]
    fn lossy_arrays_agree_with_the_reference() {
        assert_eq!(read(RATE, 64), RATE_READ.map(f32::to_le_bytes).concat());
        assert_eq!(
            read(ACCURACY, 108),
            ACCURACY_READ.map(f32::to_le_bytes).concat()
        );
        assert_eq!(
            read(PRECISION, 128),
            PRECISION_READ.map(f64::to_le_bytes).concat()
        );
    }

    #[test]
    fn big_endian_parameters_mean_big_endian_elements() {
        let (parameters, stored) = FLOATS;
        let mut swapped = parameters.to_vec();
        swapped[1..]
            .iter_mut()
            .for_each(|word| *word = word.swap_bytes());
        let quarters = [-0.5_f64, -0.25, 0.0, 0.25, 0.5];
        assert_eq!(
            read((&swapped, stored), 40),
            quarters.map(f64::to_be_bytes).concat()
        );
    }

    #[test]
    fn damage_never_panics_and_length_is_checked() {
        for (parameters, stored) in [REVERSIBLE, FLOATS, RATE, ACCURACY, PRECISION] {
            assert!(decode(stored, parameters, DecodedLength::Exactly(16)).is_err());
            assert!(decode(&[], parameters, DecodedLength::AtMost(1000)).is_err());
            for end in 0..stored.len() {
                let _ = decode(&stored[..end], parameters, DecodedLength::AtMost(1000));
            }
            for bit in 0..parameters.len() * 32 {
                let mut parameters = parameters.to_vec();
                parameters[bit / 32] ^= 1 << (bit % 32);
                let _ = decode(stored, &parameters, DecodedLength::AtMost(1000));
            }
            for bit in 0..stored.len() * 8 {
                let mut damaged = stored.to_vec();
                damaged[bit / 8] ^= 1 << (bit % 8);
                let _ = decode(&damaged, parameters, DecodedLength::AtMost(1000));
            }
        }
        assert!(decode(&[], &[], DecodedLength::AtMost(1000)).is_err());
    }
}
