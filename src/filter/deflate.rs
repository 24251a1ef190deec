//! Filter 1, deflate: one zlib stream (RFC 1950). Bytes after its end are tolerated, as libhdf5 does.

use flate2::{Decompress, FlushDecompress, Status};

use crate::error::{Error, Result};
use crate::filter::Length;

/// The bytes of the zlib stream at the start of `stream`.
///
/// # Errors
/// `Corrupt` for a damaged or truncated stream, or one of another length.
pub fn decode(stream: &[u8], length: Length) -> Result<Vec<u8>> {
    length.fill("deflate", |output| decode_into(stream, output))
}

/// Decodes the whole zlib stream at the start of `stream` into `output`; gives the bytes written.
pub(crate) fn decode_into(stream: &[u8], output: &mut [u8]) -> Result<usize> {
    let mut inflater = Decompress::new(true);
    // The output is there at once and as long as it can get, so that the decoder never has to keep a
    // window of its own nor to be called again.
    let status = inflater
        .decompress(stream, output, FlushDecompress::Finish)
        .map_err(|error| Error::corrupt(format!("deflate: {error}"), 0))?;
    let written = usize::try_from(inflater.total_out()).unwrap_or(usize::MAX);
    match status {
        Status::StreamEnd => Ok(written),
        _ if written == output.len() => Err(Error::corrupt("deflate: longer than the chunk", 0)),
        _ => Err(Error::corrupt("deflate: ends too early", 0)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Python's `zlib.compress(b'a' * 300)`.
    const A300: &[u8] = &[120, 156, 75, 76, 28, 5, 196, 2, 0, 216, 168, 113, 173];

    #[test]
    fn the_stream_may_be_followed_by_anything() {
        let mut stream = A300.to_vec();
        stream.extend([1, 2, 3]);
        assert_eq!(decode(&stream, Length::Exactly(300)), Ok(vec![b'a'; 300]));
        assert_eq!(decode(A300, Length::AtMost(999)), Ok(vec![b'a'; 300]));
    }

    #[test]
    fn another_length_is_damage() {
        for length in [0, 299, 301] {
            assert!(decode(A300, Length::Exactly(length)).is_err(), "{length}");
        }
        assert!(decode(A300, Length::AtMost(299)).is_err());
    }

    #[test]
    fn every_truncation_and_a_wrong_checksum_are_seen() {
        for end in 0..A300.len() {
            assert!(decode(&A300[..end], Length::AtMost(300)).is_err(), "{end}");
        }
        let mut stream = A300.to_vec();
        *stream.last_mut().unwrap() ^= 1;
        assert!(decode(&stream, Length::Exactly(300)).is_err());
    }
}
