//! Filter 32015, Zstandard: consecutive frames (RFC 8878), with or without their content size.

use zstd::bulk::Decompressor;

use crate::error::{Error, Result};
use crate::filter::{DecodedLength, DecoderResources};
use crate::memory::buffer::Buffer;

/// Returns the decoded bytes of the Zstandard frames in `frames`.
///
/// # Errors
/// `Corrupt` for damaged or truncated frames, or a decoded length that `length` does not allow.
pub fn decode(
    frames: &[u8],
    length: DecodedLength,
    context: &mut DecoderResources,
) -> Result<Buffer> {
    let DecoderResources { pool, zstd, .. } = context;
    length.fill("zstd", pool, |output| decode_into(frames, output, zstd))
}

/// Decodes the frames in `frames` into `output`. Returns the number of bytes written.
pub(crate) fn decode_into(
    frames: &[u8],
    output: &mut [u8],
    decoder: &mut Option<Decompressor<'static>>,
) -> Result<usize> {
    let decoder = match decoder {
        Some(decoder) => decoder,
        None => {
            let made = Decompressor::new();
            decoder.insert(made.map_err(|error| Error::from_io(&error, "preparing zstd"))?)
        }
    };
    let written = decoder.decompress_to_buffer(frames, output);
    written.map_err(|error| Error::corrupt(format!("zstd: {error}"), None))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decode(stored: &[u8], length: DecodedLength) -> Result<Vec<u8>> {
        super::decode(stored, length, &mut DecoderResources::default()).map(Buffer::into_vec)
    }

    /// `zstandard.compress(b'abc' * 100)` of Python's zstandard 0.25.
    const ABC: &[u8] = &[
        40, 181, 47, 253, 96, 44, 0, 85, 0, 0, 24, 97, 98, 99, 1, 0, 38, 170, 110, 8,
    ];
    /// The same bytes, compressed by `ZstdCompressor(write_content_size=False)`.
    const UNSIZED: &[u8] = &[
        40, 181, 47, 253, 0, 0, 85, 0, 0, 24, 97, 98, 99, 1, 0, 38, 170, 110, 8,
    ];

    #[test]
    fn frames_may_follow_each_other() {
        let expected = b"abc".repeat(200);
        assert_eq!(
            decode(&[ABC, UNSIZED].concat(), DecodedLength::Exactly(600)),
            Ok(expected)
        );
        assert_eq!(
            decode(UNSIZED, DecodedLength::AtMost(400)),
            Ok(b"abc".repeat(100))
        );
    }

    #[test]
    fn damage_and_excess_are_detected() {
        for frame in [ABC, UNSIZED] {
            for length in [0, 299, 301] {
                assert!(
                    decode(frame, DecodedLength::Exactly(length)).is_err(),
                    "{length}"
                );
            }
            for end in 0..frame.len() {
                assert!(
                    decode(&frame[..end], DecodedLength::Exactly(300)).is_err(),
                    "{end}"
                );
            }
        }
    }
}
