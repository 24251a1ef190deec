//! Filter 1, deflate: one zlib stream (RFC 1950). Bytes after the end of the stream are ignored, as
//! in libhdf5.
//!
//! libdeflate only decodes streams whose whole output fits in memory, and returns all output at
//! once. A chunk is such a stream, and libdeflate takes a fifth less time for it than a streaming
//! decoder.

use libdeflater::{DecompressionError, Decompressor};

use crate::error::{Error, Result};
use crate::filter::{DecodedLength, DecoderResources};
use crate::memory::buffer::Buffer;

/// Returns the decoded bytes of the zlib stream at the start of `stream`.
///
/// # Errors
/// `Corrupt` for a damaged or truncated stream, or a decoded length that `length` does not allow.
pub fn decode(
    stream: &[u8],
    length: DecodedLength,
    context: &mut DecoderResources,
) -> Result<Buffer> {
    let DecoderResources { pool, deflate, .. } = context;
    length.fill("deflate", pool, |output| {
        decode_into(stream, output, deflate)
    })
}

/// Decodes the whole zlib stream at the start of `stream` into `output`. Returns the number of
/// bytes written.
pub(crate) fn decode_into(
    stream: &[u8],
    output: &mut [u8],
    decoder: &mut Option<Decompressor>,
) -> Result<usize> {
    let decoder = decoder.get_or_insert_with(Decompressor::new);
    let decoded = decoder.zlib_decompress(stream, output);
    decoded.map_err(|error| {
        let why = match error {
            DecompressionError::BadData => "deflate: damaged, or ends too early",
            DecompressionError::InsufficientSpace => "deflate: longer than the chunk",
        };
        Error::corrupt(why, None)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decode(stored: &[u8], length: DecodedLength) -> Result<Vec<u8>> {
        super::decode(stored, length, &mut DecoderResources::default()).map(Buffer::into_vec)
    }

    /// Python's `zlib.compress(b'a' * 300)`.
    const A300: &[u8] = &[120, 156, 75, 76, 28, 5, 196, 2, 0, 216, 168, 113, 173];

    #[test]
    fn the_stream_may_be_followed_by_anything() {
        let mut stream = A300.to_vec();
        stream.extend([1, 2, 3]);
        assert_eq!(
            decode(&stream, DecodedLength::Exactly(300)),
            Ok(vec![b'a'; 300])
        );
        assert_eq!(
            decode(A300, DecodedLength::AtMost(999)),
            Ok(vec![b'a'; 300])
        );
    }

    #[test]
    fn another_length_is_damage() {
        for length in [0, 299, 301] {
            assert!(
                decode(A300, DecodedLength::Exactly(length)).is_err(),
                "{length}"
            );
        }
        assert!(decode(A300, DecodedLength::AtMost(299)).is_err());
    }

    #[test]
    fn every_truncation_and_a_wrong_checksum_are_detected() {
        for end in 0..A300.len() {
            assert!(
                decode(&A300[..end], DecodedLength::AtMost(300)).is_err(),
                "{end}"
            );
        }
        let mut stream = A300.to_vec();
        *stream.last_mut().unwrap() ^= 1;
        assert!(decode(&stream, DecodedLength::Exactly(300)).is_err());
    }
}
