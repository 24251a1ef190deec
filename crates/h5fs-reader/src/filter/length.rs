//! The exact or maximum length of a decoder's result, which is set before decoding.

use crate::error::{Error, Result};
use crate::memory::buffer::{Buffer, BufferPool};

/// The number of bytes that a decoder must or may produce.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DecodedLength {
    /// Exactly this number: the result is the chunk itself.
    Exactly(usize),
    /// At most this number: the result is the input of another decoder.
    AtMost(usize),
}

impl DecodedLength {
    /// Returns the maximum number of bytes that the decoder may produce.
    pub fn maximum(self) -> usize {
        match self {
            DecodedLength::Exactly(bytes) | DecodedLength::AtMost(bytes) => bytes,
        }
    }

    /// Checks that `bytes` is an accepted length, and returns it.
    ///
    /// # Errors
    /// `Corrupt` if `bytes` is not accepted. `codec` is the name of the decoder that returned or
    /// announced it.
    pub fn check(self, codec: &str, bytes: usize) -> Result<usize> {
        let why = match self {
            DecodedLength::Exactly(exactly) if bytes != exactly => {
                format!("{codec}: {bytes} bytes instead of {exactly}")
            }
            DecodedLength::AtMost(most) if bytes > most => {
                format!("{codec}: {bytes} bytes instead of at most {most}")
            }
            _ => return Ok(bytes),
        };
        Err(Error::corrupt(why, None))
    }

    /// Calls `decode` with a buffer of the maximum length. `decode` returns the number of bytes
    /// that it wrote, and the buffer is truncated to it.
    ///
    /// # Errors
    /// The errors of `decode`, and `Corrupt` if it wrote too few bytes.
    pub fn fill(
        self,
        codec: &str,
        pool: &BufferPool,
        decode: impl FnOnce(&mut [u8]) -> Result<usize>,
    ) -> Result<Buffer> {
        let mut buffer = pool.buffer(self.maximum())?;
        let written = decode(&mut buffer)?;
        buffer.truncate(self.check(codec, written)?);
        Ok(buffer)
    }
}
