//! The output buffer of a picture encoder, with a memory bound.

use std::io::{self, Write};

use h5fs_reader::array::HeldMemory;
use h5fs_reader::error::{Error, Result};
use h5fs_reader::wire::to_u64;
use png::EncodingError;

/// The encoded bytes, which count against the memory budget of open files.
pub(in crate::view::pictures) struct Output<'a> {
    pub(in crate::view::pictures) bytes: Vec<u8>,
    memory: &'a HeldMemory,
    /// Bytes of memory of the encoder itself.
    beside: u64,
    /// The error that stopped the output. The encoder would keep only its text.
    error: Option<Error>,
}

impl<'a> Output<'a> {
    /// Creates an empty buffer. `beside` is the memory of the encoder.
    ///
    /// # Errors
    /// `Io` (`ENOMEM`) if the memory budget of the mount has too little left.
    pub(in crate::view::pictures) fn new(memory: &'a HeldMemory, beside: u64) -> Result<Self> {
        memory.resize(beside)?;
        Ok(Output {
            bytes: Vec::new(),
            memory,
            beside,
            error: None,
        })
    }

    /// Returns the bytes, after the encoder has finished with `encoded`.
    ///
    /// # Errors
    /// Fails if the memory was insufficient, or with the error of `encoded`.
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

/// Converts an error of the encoder.
pub(in crate::view::pictures) fn failed(error: EncodingError) -> Error {
    Error::io(&error.into(), "encoding a picture")
}
