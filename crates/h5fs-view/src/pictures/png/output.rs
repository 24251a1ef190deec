//! The output buffer of a picture encoder, with a limit on its memory.

use std::io::{self, Write};

use h5fs_reader::array::MemoryReservation;
use h5fs_reader::error::{Error, Result};
use h5fs_reader::wire::to_u64;
use png::EncodingError;

/// The encoded bytes of a picture. Their memory counts against the memory budget of open files.
pub(in crate::pictures) struct EncoderOutput<'a> {
    pub(in crate::pictures) bytes: Vec<u8>,
    memory: &'a MemoryReservation,
    /// Memory in bytes that the encoder occupies in addition to its output.
    encoder_memory: u64,
    /// The error that stopped the encoding. The encoder itself would report only the text of the
    /// error.
    error: Option<Error>,
}

impl<'a> EncoderOutput<'a> {
    /// Creates an empty buffer. `beside` is the memory in bytes that the encoder occupies in
    /// addition to the buffer.
    ///
    /// # Errors
    /// `Io` (`ENOMEM`) if the memory budget of the mount has too little left.
    pub(in crate::pictures) fn new(memory: &'a MemoryReservation, beside: u64) -> Result<Self> {
        memory.resize(beside)?;
        Ok(EncoderOutput {
            bytes: Vec::new(),
            memory,
            encoder_memory: beside,
            error: None,
        })
    }

    /// Returns the encoded bytes. `encoded` is the result of the encoder.
    ///
    /// # Errors
    /// Fails if the memory was insufficient, or with the error of `encoded`.
    pub(in crate::pictures) fn finish(mut self, encoded: Result<()>) -> Result<Vec<u8>> {
        encoded.map_err(|error| self.error.take().unwrap_or(error))?;
        self.bytes.shrink_to_fit();
        Ok(self.bytes)
    }

    fn reserve(&mut self, more: usize) -> Result<()> {
        const LEAST: usize = 64 << 10;
        let length = self.bytes.len().saturating_add(more);
        if length > self.bytes.capacity() {
            let capacity = length + (length / 2).max(LEAST);
            self.memory.resize(self.encoder_memory + to_u64(capacity))?;
            self.bytes.reserve_exact(capacity - self.bytes.len());
        }
        Ok(())
    }
}

impl Write for EncoderOutput<'_> {
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

/// Converts an error of the encoder to an error of this crate.
pub(in crate::pictures) fn encoder_error(error: EncodingError) -> Error {
    Error::from_io(&error.into(), "encoding a picture")
}
