//! A byte range of an array.

use std::ops::Deref;
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::model::storage::Storage;
use crate::model::{self, array::Fill};

/// What readers share.
#[derive(Debug)]
pub struct Engine;

impl Engine {
    /// An engine with a cache of that many bytes and that many threads.
    pub fn new(_cache_bytes: u64, _threads: usize) -> Arc<Engine> {
        Arc::new(Engine)
    }
}

/// Bytes that were read.
#[derive(Debug, Clone)]
pub struct Bytes(Arc<[u8]>);

impl From<Vec<u8>> for Bytes {
    fn from(bytes: Vec<u8>) -> Self {
        Bytes(bytes.into())
    }
}

impl Deref for Bytes {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        &self.0
    }
}

/// Reads one array.
#[derive(Debug)]
pub struct Reader {
    array: Arc<model::Array>,
    length: u64,
}

/// Which bytes of an array are stored.
#[derive(Debug, Clone)]
pub struct Allocation {
    /// Stored bytes.
    pub stored_bytes: u64,
    length: u64,
    holes: bool,
}

impl Allocation {
    /// The first byte that is data at or after `offset`.
    pub fn data_at(&self, offset: u64) -> Option<u64> {
        (!self.holes && offset < self.length).then_some(offset)
    }

    /// The first byte that is a hole at or after `offset`.
    pub fn hole_at(&self, offset: u64) -> u64 {
        if self.holes { offset } else { self.length }
    }
}

impl Reader {
    /// A reader of `array`.
    pub fn new(_engine: &Arc<Engine>, array: Arc<model::Array>) -> Result<Reader> {
        if let Err(error) = &array.storage {
            return Err(error.clone());
        }
        let length = array.bytes()?;
        Ok(Reader { array, length })
    }

    /// Bytes of the whole array.
    pub fn length(&self) -> u64 {
        self.length
    }

    /// The bytes at `offset`.
    pub fn read(&self, offset: u64, length: usize) -> Result<Bytes> {
        let end = (offset + length as u64).min(self.length);
        let start = offset.min(end) as usize;
        let end = end as usize;
        match self.array.storage.as_ref() {
            Ok(Storage::Inline(bytes)) => Ok(bytes[start..end].to_vec().into()),
            Ok(Storage::Fill) => Ok(match &self.array.fill {
                Fill::Zero => vec![0; end - start],
                Fill::Value(value) => (start..end).map(|i| value[i % value.len()]).collect(),
            }
            .into()),
            _ => Err(Error::unsupported("storage", 0)),
        }
    }

    /// Which bytes are stored.
    pub fn allocation(&self) -> Result<Allocation> {
        let holes = matches!(self.array.storage, Ok(Storage::Fill)) && self.array.fill.is_zero();
        let stored_bytes = match &self.array.storage {
            Ok(Storage::Fill) => 0,
            _ => self.length,
        };
        Ok(Allocation {
            stored_bytes,
            length: self.length,
            holes,
        })
    }
}

/// How one handle reads: decides what is fetched ahead.
#[derive(Debug, Default)]
pub struct Stream;

impl Stream {
    /// A stream that has read nothing.
    #[allow(clippy::new_without_default)]
    pub fn new() -> Self {
        Stream
    }

    /// Tells what is read now.
    pub fn advise(&self, _reader: &Reader, _offset: u64, _length: usize) {}
}
