//! Filter 32008, bitshuffle: blocks of bit-shuffled elements. Either every block is compressed with
//! LZ4 or Zstandard, or no block is compressed.
//!
//! Parameters: two numbers of a version, bytes of an element, elements of a block, codec. The last
//! block is shorter and contains a multiple of 8 elements. The remaining elements, fewer than 8,
//! are stored unchanged after it.

use crate::error::{Error, Result};
use crate::filter::bit_planes::unbitshuffle;
use crate::filter::blocks::BlockReader;
use crate::filter::{DecodedLength, DecoderResources, lz4, zstd};
use crate::memory::buffer::Buffer;
use crate::wire::{Count, to_usize};

/// The compression of a block after it was bit-shuffled.
#[derive(Debug, Clone, Copy)]
enum Codec {
    Lz4,
    Zstd,
}

/// Returns the decoded bytes of a chunk.
///
/// # Errors
/// `Corrupt` for damaged or truncated bytes, or a decoded length that `length` does not allow.
/// `Unsupported` for a codec other than LZ4 and Zstandard.
pub fn decode(
    stored: &[u8],
    parameters: &[u32],
    length: DecodedLength,
    context: &mut DecoderResources,
) -> Result<Buffer> {
    let parameter = |place: usize| to_usize(parameters.get(place).copied().unwrap_or(0).into());
    let size = parameter(2)?;
    if size == 0 {
        return Err(Error::corrupt(
            "bitshuffle: the element size is missing",
            None,
        ));
    }
    match parameter(4)? {
        0 => decode_uncompressed(stored, size, parameter(3)?, length, context),
        2 => decode_compressed(stored, size, Codec::Lz4, length, context),
        3 => decode_compressed(stored, size, Codec::Zstd, length, context),
        codec => Err(Error::unsupported(
            format!("bitshuffle: codec {codec}"),
            None,
        )),
    }
}

fn decode_uncompressed(
    stored: &[u8],
    size: usize,
    block: usize,
    length: DecodedLength,
    context: &DecoderResources,
) -> Result<Buffer> {
    let mut output = context
        .pool
        .buffer(length.check("bitshuffle", stored.len())?)?;
    let block = match block {
        0 => default_block(size),
        block => block,
    };
    let shape = BlockLayout::new(output.len(), size, block.times(size))?;
    let mut scratch = Vec::new();
    let (elements, after) = output
        .split_at_mut_checked(shape.shuffled)
        .unwrap_or_default();
    let (planes, rest) = stored.split_at_checked(shape.shuffled).unwrap_or_default();
    let blocks = elements.chunks_mut(shape.block);
    for (elements, planes) in blocks.zip(planes.chunks(shape.block)) {
        unbitshuffle(planes, size, &mut scratch, elements);
    }
    after.copy_from_slice(rest);
    Ok(output)
}

/// Returns the number of elements in a block if the parameters do not state it. The number is 8 KiB
/// of elements, rounded down to a multiple of 8, but at least 128.
fn default_block(size: usize) -> usize {
    let elements = 8192_usize.checked_div(size).unwrap_or(0) & !7;
    elements.max(128)
}

fn decode_compressed(
    stored: &[u8],
    size: usize,
    codec: Codec,
    length: DecodedLength,
    context: &mut DecoderResources,
) -> Result<Buffer> {
    let mut blocks = BlockReader::new("bitshuffle", stored);
    let total = length.check("bitshuffle", blocks.read_decoded_length()?)?;
    let shape = BlockLayout::new(total, size, blocks.read_length()?)?;
    let mut output = context.pool.buffer(total)?;
    let mut scratch = Vec::new();
    let mut planes = vec![0; shape.block.min(total)];
    let (elements, after) = output
        .split_at_mut_checked(shape.shuffled)
        .unwrap_or_default();
    for elements in elements.chunks_mut(shape.block) {
        let planes = planes.get_mut(..elements.len()).unwrap_or_default();
        let block = blocks.read_block()?;
        match codec {
            Codec::Lz4 => lz4::decode_block_into(block, planes)?,
            Codec::Zstd => {
                let written = zstd::decode_into(block, planes, &mut context.zstd)?;
                DecodedLength::Exactly(planes.len()).check("bitshuffle", written)?;
            }
        }
        unbitshuffle(planes, size, &mut scratch, elements);
    }
    after.copy_from_slice(blocks.read_bytes(after.len())?);
    Ok(output)
}

/// The lengths of a chunk's blocks.
#[derive(Debug, Clone, Copy)]
struct BlockLayout {
    /// Number of decoded bytes of every block except the last. Not 0.
    block: usize,
    /// Number of decoded bytes of all blocks. The bytes after them are stored unchanged.
    shuffled: usize,
}

impl BlockLayout {
    fn new(total: usize, size: usize, block: usize) -> Result<Self> {
        let unit = size.times(8);
        let rest = |bytes: usize| bytes.checked_rem(unit).unwrap_or(0);
        if block == 0 || rest(block) != 0 {
            return Err(Error::corrupt(
                "bitshuffle: the block size is not a multiple of 8 elements",
                None,
            ));
        }
        Ok(BlockLayout {
            block,
            shuffled: total.minus_or_zero(rest(total)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decode(stored: &[u8], parameters: &[u32], length: DecodedLength) -> Result<Vec<u8>> {
        super::decode(stored, parameters, length, &mut DecoderResources::default())
            .map(Buffer::into_vec)
    }

    /// Chunks that hdf5plugin 7.1 stored for 21 `u2` numbers, `np.arange(21) * 100`, in blocks of
    /// 16 elements. Each entry contains the parameters, then the bytes.
    const STORED: [(&[u32], &[u8]); 3] = [
        (
            &[0, 4, 2, 16, 0],
            &[
                0, 0, 0, 0, 170, 170, 204, 204, 240, 240, 170, 85, 102, 204, 180, 150, 56, 231,
                192, 7, 0, 248, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 64, 6, 164, 6, 8, 7, 108, 7, 208, 7,
            ],
        ),
        (
            &[0, 4, 2, 16, 2],
            &[
                0, 0, 0, 0, 0, 0, 0, 42, 0, 0, 0, 32, 0, 0, 0, 34, 240, 17, 0, 0, 0, 0, 170, 170,
                204, 204, 240, 240, 170, 85, 102, 204, 180, 150, 56, 231, 192, 7, 0, 248, 0, 0, 0,
                0, 0, 0, 0, 0, 0, 0, 64, 6, 164, 6, 8, 7, 108, 7, 208, 7,
            ],
        ),
        (
            &[0, 4, 2, 16, 3, 3],
            &[
                0, 0, 0, 0, 0, 0, 0, 42, 0, 0, 0, 32, 0, 0, 0, 38, 40, 181, 47, 253, 32, 32, 237,
                0, 0, 184, 0, 0, 0, 0, 170, 170, 204, 204, 240, 240, 170, 85, 102, 204, 180, 150,
                56, 231, 192, 7, 0, 248, 0, 1, 0, 11, 208, 4, 64, 6, 164, 6, 8, 7, 108, 7, 208, 7,
            ],
        ),
    ];

    #[test]
    fn every_codec_and_the_short_blocks() {
        let expected: Vec<u8> = (0..21_u16)
            .flat_map(|number| (number * 100).to_le_bytes())
            .collect();
        for (parameters, stored) in STORED {
            let decoded = decode(stored, parameters, DecodedLength::Exactly(42));
            assert_eq!(decoded.as_ref(), Ok(&expected), "{parameters:?}");
            assert!(decode(stored, parameters, DecodedLength::Exactly(40)).is_err());
            for end in 0..stored.len() {
                assert!(
                    decode(&stored[..end], parameters, DecodedLength::Exactly(42)).is_err(),
                    "{end}"
                );
            }
        }
    }

    #[test]
    fn invalid_block_sizes_are_damage() {
        let (parameters, stored) = STORED[1];
        for block in [0_u32, 1, 15] {
            let mut stored = stored.to_vec();
            stored[8..12].copy_from_slice(&block.to_be_bytes());
            assert!(decode(&stored, parameters, DecodedLength::Exactly(42)).is_err());
        }
        assert!(decode(stored, &[0, 2, 0, 0, 2], DecodedLength::Exactly(42)).is_err());
        assert!(decode(stored, &[0, 2, 2, 0, 9], DecodedLength::Exactly(42)).is_err());
    }
}
