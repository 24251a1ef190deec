//! The bytes of a picture as it is encoded, within a bound.

use std::io::{self, Write};

use png::EncodingError;

use crate::array::HeldMemory;
use crate::error::{Error, Result};
use crate::wire::to_u64;

/// The encoded bytes, which are held as memory of what is open.
pub(in crate::view::pictures) struct Output<'a> {
    pub(in crate::view::pictures) bytes: Vec<u8>,
    memory: &'a HeldMemory,
    /// Bytes that the encoder takes beside.
    beside: u64,
    /// Why no more can be taken: of an error within an error the encoder keeps the text alone.
    error: Option<Error>,
}

impl<'a> Output<'a> {
    /// No bytes yet, and an encoder that takes so many `beside`.
    ///
    /// # Errors
    /// `Io` (`ENOMEM`) where all that is open takes too much.
    pub(in crate::view::pictures) fn new(memory: &'a HeldMemory, beside: u64) -> Result<Self> {
        memory.resize(beside)?;
        Ok(Output {
            bytes: Vec::new(),
            memory,
            beside,
            error: None,
        })
    }

    /// The bytes, once they are encoded.
    ///
    /// # Errors
    /// Fails if there was no room, or with the error of `encoded`.
    pub(in crate::view::pictures) fn finished(mut self, encoded: Result<()>) -> Result<Vec<u8>> {
        encoded.map_err(|error| self.error.take().unwrap_or(error))?;
        self.bytes.shrink_to_fit();
        Ok(self.bytes)
    }

    fn reserve(&mut self, more: usize) -> Result<()> {
        const LEAST: usize = 64 << 10;
        let length = self.bytes.len().saturating_add(more);
        if length > self.bytes.capacity() {
            let capacity = length + (length / 2).max(LEAST);
            self.memory.resize(self.beside + to_u64(capacity))?;
            self.bytes.reserve_exact(capacity - self.bytes.len());
        }
        Ok(())
    }
}

impl Write for Output<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if let Err(error) = self.reserve(bytes.len()) {
            self.error = Some(error);
            return Err(io::Error::other("no room"));
        }
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The encoder's error.
pub(in crate::view::pictures) fn failed(error: EncodingError) -> Error {
    Error::io(&error.into(), "encode a picture")
}
