//! A raw file that holds a part of a dataset's elements: HDF5's external data files.

use std::sync::{Arc, Mutex, PoisonError};

use crate::error::{Error, Result};
use crate::source::Source;
use crate::source::file::FileSource;
use crate::source::neighbours::Neighbours;
use crate::wire::{to_u64, to_usize};

/// A file among the neighbours that is opened when it is first read. Past its end it reads as zeros.
#[derive(Debug)]
pub struct RawFile {
    neighbours: Arc<Neighbours>,
    name: Vec<u8>,
    file: Mutex<Option<Arc<FileSource>>>,
}

impl RawFile {
    /// The neighbour called `name`.
    pub fn new(neighbours: Arc<Neighbours>, name: Vec<u8>) -> Self {
        RawFile {
            neighbours,
            name,
            file: Mutex::new(None),
        }
    }

    /// A failure is not kept: the file may come back.
    fn file(&self) -> Result<Arc<FileSource>> {
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(file) = &*file {
            return Ok(Arc::clone(file));
        }
        let missing = || {
            Error::corrupt(
                format!("external raw file {}: missing", self.name.escape_ascii()),
                0,
            )
        };
        let opened = Arc::new(self.neighbours.open(&self.name)?.ok_or_else(missing)?);
        *file = Some(Arc::clone(&opened));
        Ok(opened)
    }
}

impl Source for RawFile {
    /// It never ends: what is not there reads as zeros.
    fn length(&self) -> u64 {
        u64::MAX
    }

    fn read_at(&self, at: u64, buffer: &mut [u8]) -> Result<()> {
        let file = self.file()?;
        let there = file.length().saturating_sub(at).min(to_u64(buffer.len()));
        let (there, past_end) = buffer.split_at_mut(to_usize(there)?);
        file.read_at(at, there)?;
        past_end.fill(0);
        Ok(())
    }
}
