//! Filter 32015, Zstandard: frames one after another (RFC 8878), with or without their content
//! size.

use std::cell::RefCell;
use std::io;

use zstd::bulk::Decompressor;

use crate::error::{Error, Result};
use crate::filter::Length;
use crate::memory::buffer::Buffer;

/// The bytes of the Zstandard frames in `frames`.
///
/// # Errors
/// `Corrupt` for damaged or truncated frames, or another length.
pub fn decode(frames: &[u8], length: Length) -> Result<Buffer> {
    length.fill("zstd", |output| decode_into(frames, output))
}

/// Decodes the frames in `frames` into `output`; gives the bytes written.
pub(crate) fn decode_into(frames: &[u8], output: &mut [u8]) -> Result<usize> {
    CONTEXT.with_borrow_mut(|context| {
        let context = context
            .as_mut()
            .map_err(|error| Error::io(error, "preparing zstd"))?;
        let written = context.decompress_to_buffer(frames, output);
        written.map_err(|error| Error::corrupt(format!("zstd: {error}"), None))
    })
}

thread_local! {
    /// Made once for each thread: to make one for every chunk is a twentieth of the work.
    static CONTEXT: RefCell<io::Result<Decompressor<'static>>> = RefCell::new(Decompressor::new());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decode(stored: &[u8], length: Length) -> Result<Vec<u8>> {
        super::decode(stored, length).map(Buffer::into_vec)
    }

    /// `zstandard.compress(b'abc' * 100)` of Python's zstandard 0.25.
    const ABC: &[u8] = &[
        40, 181, 47, 253, 96, 44, 0, 85, 0, 0, 24, 97, 98, 99, 1, 0, 38, 170, 110, 8,
    ];
    /// The same bytes by `ZstdCompressor(write_content_size=False)`.
    const UNSIZED: &[u8] = &[
        40, 181, 47, 253, 0, 0, 85, 0, 0, 24, 97, 98, 99, 1, 0, 38, 170, 110, 8,
    ];

    #[test]
    fn frames_may_follow_each_other() {
        let expected = b"abc".repeat(200);
        assert_eq!(
            decode(&[ABC, UNSIZED].concat(), Length::Exactly(600)),
            Ok(expected)
        );
        assert_eq!(decode(UNSIZED, Length::AtMost(400)), Ok(b"abc".repeat(100)));
    }

    #[test]
    fn damage_and_excess_are_seen() {
        for frame in [ABC, UNSIZED] {
            for length in [0, 299, 301] {
                assert!(decode(frame, Length::Exactly(length)).is_err(), "{length}");
            }
            for end in 0..frame.len() {
                assert!(
                    decode(&frame[..end], Length::Exactly(300)).is_err(),
                    "{end}"
                );
            }
        }
    }
}
