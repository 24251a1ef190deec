//! Filter 307, bzip2: one .bz2 stream. Bytes after the end of the stream are ignored, as in the
//! reference implementation of the filter.

use bzip2::{Decompress, Status};

use crate::error::{Error, Result};
use crate::filter::{DecodedLength, DecoderResources};
use crate::memory::buffer::Buffer;
use crate::memory::cancel::{WantedCheck, check_wanted};
use crate::wire::Count;

/// Number of bytes that are decoded in one step: slightly more than a bzip2 block of the usual
/// size.
const STEP_BYTES: usize = 1 << 20;

/// Returns the decoded bytes of the bzip2 stream at the start of `stream`.
///
/// # Errors
/// `Corrupt` for a damaged or truncated stream, or a decoded length that `length` does not allow.
/// [`Error::cancelled`] if `is_wanted`, called after each mebibyte, returns false.
pub fn decode(
    stream: &[u8],
    length: DecodedLength,
    context: &DecoderResources,
    is_wanted: &WantedCheck<'_>,
) -> Result<Buffer> {
    length.fill("bzip2", &context.pool, |output| {
        let mut decoder = Decompress::new(false);
        let mut written = 0_usize;
        loop {
            check_wanted(is_wanted)?;
            let used = usize::try_from(decoder.total_in()).unwrap_or(usize::MAX);
            let rest = stream.get(used..).unwrap_or_default();
            let end = written.plus(STEP_BYTES).min(output.len());
            let room = output.get_mut(written..end).unwrap_or_default();
            let status = decoder
                .decompress(rest, room)
                .map_err(|error| Error::corrupt(format!("bzip2: {error}"), None))?;
            written = usize::try_from(decoder.total_out()).unwrap_or(usize::MAX);
            match status {
                Status::StreamEnd => return Ok(written),
                _ if written < end => return Err(Error::corrupt("bzip2: ends too early", None)),
                _ if end == output.len() => {
                    return Err(Error::corrupt("bzip2: longer than the chunk", None));
                }
                _ => {}
            }
        }
    })
}

/// Decodes a bzip2 stream of at most `most` decoded bytes, which may be truncated. Returns the
/// content of the complete blocks, which have their own checksums, and whether the stream is
/// complete. Memory grows with the decoded content.
///
/// # Errors
/// Fails as [`decode_in_parts`] does.
pub(crate) fn decode_truncated(stream: &[u8], most: u64) -> Result<(Vec<u8>, bool)> {
    let mut output = Vec::new();
    let is_whole = decode_in_parts(stream, most, &|| true, &mut |part| {
        output.extend_from_slice(part);
    })?;
    Ok((output, is_whole))
}

/// Passes the decoded bytes of the bzip2 stream at the start of `stream` to `take` in order, one
/// mebibyte at a time. Returns whether the stream is complete. The checksum of a bzip2 block is
/// checked after its bytes were passed, so an error also applies to earlier bytes.
///
/// # Errors
/// `Corrupt` for a damaged stream, or one of more than `most` bytes. [`Error::cancelled`] if
/// `is_wanted`, called before each part, returns false.
pub(crate) fn decode_in_parts(
    stream: &[u8],
    most: u64,
    is_wanted: &WantedCheck<'_>,
    take: &mut dyn FnMut(&[u8]),
) -> Result<bool> {
    let mut decoder = Decompress::new(false);
    let mut output = vec![0; STEP_BYTES];
    loop {
        check_wanted(is_wanted)?;
        let used = usize::try_from(decoder.total_in()).unwrap_or(usize::MAX);
        let rest = stream.get(used..).unwrap_or_default();
        let before = decoder.total_out();
        let status = decoder
            .decompress(rest, &mut output)
            .map_err(|error| Error::corrupt(format!("bzip2: {error}"), None))?;
        if decoder.total_out() > most {
            return Err(Error::corrupt("bzip2: longer than expected", None));
        }
        let written = decoder.total_out().minus_or_zero(before);
        let written = usize::try_from(written).unwrap_or(usize::MAX);
        take(output.get(..written).unwrap_or_default());
        match status {
            Status::StreamEnd => return Ok(true),
            // If the output has room left, the checksum of the last block was verified.
            _ if written < output.len() => return Ok(false),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decode(stored: &[u8], length: DecodedLength) -> Result<Vec<u8>> {
        super::decode(stored, length, &DecoderResources::default(), &|| true).map(Buffer::into_vec)
    }

    /// Python's `bz2.compress(b'abc' * 100)`.
    const ABC: &[u8] = &[
        66, 90, 104, 57, 49, 65, 89, 38, 83, 89, 139, 157, 174, 165, 0, 0, 49, 129, 0, 56, 0, 32,
        0, 48, 204, 5, 41, 166, 34, 226, 44, 69, 226, 238, 72, 167, 10, 18, 17, 115, 181, 212, 160,
    ];

    #[test]
    fn the_stream_may_be_followed_by_anything() {
        let stream = [ABC, &[1, 2, 3]].concat();
        assert_eq!(
            decode(&stream, DecodedLength::Exactly(300)),
            Ok(b"abc".repeat(100))
        );
        assert_eq!(
            decode(ABC, DecodedLength::AtMost(400)),
            Ok(b"abc".repeat(100))
        );
    }

    #[test]
    fn a_truncated_stream_returns_its_complete_blocks() {
        let whole = Ok((b"abc".repeat(100), true));
        assert_eq!(decode_truncated(ABC, 300), whole);
        assert!(decode_truncated(ABC, 299).is_err());
        // The end-of-stream marker and the stream's checksum are ten bytes.
        for end in ABC.len() - 9..ABC.len() {
            assert_eq!(
                decode_truncated(&ABC[..end], 300),
                Ok((b"abc".repeat(100), false))
            );
        }
        for end in 0..ABC.len() - 11 {
            assert_eq!(decode_truncated(&ABC[..end], 300), Ok((Vec::new(), false)));
        }
        let mut damaged = ABC.to_vec();
        damaged[10] ^= 1;
        assert!(decode_truncated(&damaged[..ABC.len() - 9], 300).is_err());
    }

    #[test]
    fn damage_and_excess_are_detected() {
        for length in [0, 299, 301] {
            assert!(
                decode(ABC, DecodedLength::Exactly(length)).is_err(),
                "{length}"
            );
        }
        for end in 0..ABC.len() {
            assert!(
                decode(&ABC[..end], DecodedLength::AtMost(300)).is_err(),
                "{end}"
            );
        }
    }
}
