//! A raw file that holds a part of a dataset's elements: HDF5's external data files.

use std::sync::Arc;

use crate::error::Result;
use crate::source::Source;
use crate::source::neighbours::Neighbours;
use crate::wire::{to_u64, to_usize};

/// A file among the neighbours that is opened when it is read. Past its end it reads as zeros.
#[derive(Debug)]
pub struct RawFile {
    neighbours: Arc<Neighbours>,
    name: Vec<u8>,
}

impl RawFile {
    /// The neighbour called `name`.
    pub fn new(neighbours: Arc<Neighbours>, name: Vec<u8>) -> Self {
        RawFile { neighbours, name }
    }
}

impl Source for RawFile {
    /// It never ends: past the end of the file it reads as zeros.
    fn length(&self) -> u64 {
        u64::MAX
    }

    fn weight(&self) -> u64 {
        to_u64(size_of::<Self>().saturating_add(self.name.len()))
    }

    fn read_at(&self, at: u64, buffer: &mut [u8]) -> Result<()> {
        let file = self.neighbours.open_raw(&self.name)?;
        let there = file.length().saturating_sub(at).min(to_u64(buffer.len()));
        let (there, past_end) = buffer.split_at_mut(to_usize(there)?);
        file.read_at(at, there)?;
        past_end.fill(0);
        file.check()?;
        Ok(())
    }
}
