//! Filter 32004, LZ4: a header, then blocks of the LZ4 block format, each with its length. The same
//! block format serves other filters.
//!
//! Two crates are used, because each is slow where the other is fast. For blocks of floats,
//! `lz4_flex` 0.14 takes twice the time of the reference library in `lz4`, and more if matches
//! overlap their own output. For frames (`asdf/compression/stream/codec.rs`), `lz4` takes 1.3 to
//! 1.5 times the time of `lz4_flex`. It takes seven times the time if blocks are linked and do not
//! compress.

use crate::error::{Error, Result};
use crate::filter::blocks::BlockReader;
use crate::filter::{DecodedLength, DecoderResources};
use crate::memory::buffer::Buffer;

/// Returns the decoded bytes of a chunk of filter 32004.
///
/// The chunk contains the u64 decoded length of the chunk and the u32 decoded length of a block.
/// Each block is preceded by its u32 stored length, and is uncompressed if that equals its decoded
/// length. All numbers are big-endian.
///
/// # Errors
/// `Corrupt` for damaged or truncated bytes, or a decoded length that `length` does not allow.
pub fn decode(stored: &[u8], length: DecodedLength, context: &DecoderResources) -> Result<Buffer> {
    let mut blocks = BlockReader::new("LZ4", stored);
    let total = length.check("LZ4", blocks.read_decoded_length()?)?;
    let block_bytes = blocks.read_length()?;
    if block_bytes == 0 && total > 0 {
        return Err(Error::corrupt("LZ4: block size is 0", None));
    }
    let mut output = context.pool.buffer(total)?;
    for block in output.chunks_mut(block_bytes.max(1)) {
        let stored = blocks.read_block()?;
        if stored.len() == block.len() {
            block.copy_from_slice(stored);
        } else {
            decode_block_into(stored, block)?;
        }
    }
    Ok(output)
}

/// Decodes one LZ4 block, which must fill `output`.
pub(crate) fn decode_block_into(block: &[u8], output: &mut [u8]) -> Result<()> {
    let written = decode_block_prefix(block, output)?;
    DecodedLength::Exactly(output.len()).check("LZ4", written)?;
    Ok(())
}

/// Decodes one LZ4 block into the start of `output`. Returns the number of bytes written.
fn decode_block_prefix(block: &[u8], output: &mut [u8]) -> Result<usize> {
    // The crate passes lengths on as C's `int` without a check. Without a length, it reads one from
    // a prefix of the block.
    let lengths = (i32::try_from(block.len()), i32::try_from(output.len()));
    let (Ok(_), Ok(most)) = lengths else {
        return Err(Error::corrupt("LZ4: block of more than 2 GiB", None));
    };
    lz4::block::decompress_to_buffer(block, Some(most), output)
        .map_err(|error| Error::corrupt(format!("LZ4: {error}"), None))
}

/// Returns the decoded bytes of one raw LZ4 block.
///
/// # Errors
/// `Corrupt` for a damaged block, or a decoded length that `length` does not allow.
pub(crate) fn decode_block(
    block: &[u8],
    length: DecodedLength,
    context: &DecoderResources,
) -> Result<Buffer> {
    length.fill("LZ4", &context.pool, |output| {
        decode_block_prefix(block, output)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decode(stored: &[u8], length: DecodedLength) -> Result<Vec<u8>> {
        super::decode(stored, length, &DecoderResources::default()).map(Buffer::into_vec)
    }

    /// The chunk that `hdf5plugin.LZ4(nbytes=16)` of hdf5plugin 7.1 stored for `DATA`: LZ4 blocks
    /// of 16 bytes, one that does not compress, and a short last one.
    const STORED: &[u8] = &[
        0, 0, 0, 0, 0, 0, 0, 35, 0, 0, 0, 16, 0, 0, 0, 10, 22, 97, 1, 0, 80, 97, 97, 97, 97, 97, 0,
        0, 0, 16, 97, 98, 99, 100, 101, 102, 103, 104, 105, 106, 107, 108, 109, 110, 111, 112, 0,
        0, 0, 3, 120, 121, 122,
    ];
    const DATA: &[u8] = b"aaaaaaaaaaaaaaaaabcdefghijklmnopxyz";
    /// `lz4.decode_block.compress(b'abc' * 100, store_size=False)`.
    const BLOCK: &[u8] = &[63, 97, 98, 99, 3, 0, 255, 18, 80, 98, 99, 97, 98, 99];

    #[test]
    fn blocks_are_compressed_or_raw() {
        assert_eq!(
            decode(STORED, DecodedLength::Exactly(DATA.len())),
            Ok(DATA.to_vec())
        );
    }

    #[test]
    fn damage_and_excess_are_detected() {
        assert!(decode(STORED, DecodedLength::AtMost(DATA.len() - 1)).is_err());
        for end in 0..STORED.len() {
            assert!(
                decode(&STORED[..end], DecodedLength::AtMost(1000)).is_err(),
                "{end}"
            );
        }
        let mut endless = STORED.to_vec();
        endless[..8].fill(0xff);
        assert!(decode(&endless, DecodedLength::AtMost(1000)).is_err());
        let mut blockless = STORED.to_vec();
        blockless[8..12].fill(0);
        assert!(decode(&blockless, DecodedLength::AtMost(1000)).is_err());
    }

    #[test]
    fn a_raw_block_is_decoded() {
        let block = |length| decode_block(BLOCK, length, &DecoderResources::default());
        assert_eq!(
            *block(DecodedLength::Exactly(300)).unwrap(),
            *b"abc".repeat(100)
        );
        for length in [0, 299, 301] {
            assert!(block(DecodedLength::Exactly(length)).is_err(), "{length}");
        }
    }
}
