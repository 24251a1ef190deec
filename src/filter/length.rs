//! How long a decoder's result is: the bound that is set before it begins.

use crate::error::{Error, Result};
use crate::memory::buffer::{Buffer, BufferPool};

/// How many bytes a decoder has to give.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Length {
    /// So many: the result is the chunk itself.
    Exactly(usize),
    /// No more than so many: the result is the input of another decoder.
    AtMost(usize),
}

impl Length {
    /// The most bytes that are granted.
    pub fn most(self) -> usize {
        match self {
            Length::Exactly(bytes) | Length::AtMost(bytes) => bytes,
        }
    }

    /// Whether `bytes` bytes are as many as are wanted; gives the number back.
    ///
    /// # Errors
    /// `Corrupt` where they are not, `codec` being the decoder that gave or announced them.
    pub fn check(self, codec: &str, bytes: usize) -> Result<usize> {
        let why = match self {
            Length::Exactly(exactly) if bytes != exactly => {
                format!("{codec}: {bytes} bytes where {exactly} belong")
            }
            Length::AtMost(most) if bytes > most => {
                format!("{codec}: {bytes} bytes where {most} are the most")
            }
            _ => return Ok(bytes),
        };
        Err(Error::corrupt(why, None))
    }

    /// Lets `decode` write into a buffer as long as is granted and say how much it wrote.
    ///
    /// # Errors
    /// The errors of `decode`, and `Corrupt` where it wrote too little.
    pub fn fill(
        self,
        codec: &str,
        pool: &BufferPool,
        decode: impl FnOnce(&mut [u8]) -> Result<usize>,
    ) -> Result<Buffer> {
        let mut buffer = pool.buffer(self.most())?;
        let written = decode(&mut buffer)?;
        buffer.truncate(self.check(codec, written)?);
        Ok(buffer)
    }
}
