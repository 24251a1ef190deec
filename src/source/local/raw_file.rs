//! A raw file that holds a part of a dataset's elements: HDF5's external data files.

use std::sync::Arc;

use crate::error::Result;
use crate::memory::cancel::IsWanted;
use crate::source::neighbours::Neighbours;
use crate::source::{Source, Urgency};
use crate::wire::{Count, to_u64, to_usize};

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
        to_u64(size_of::<Self>().with_more(self.name.len()))
    }

    fn is_far(&self) -> bool {
        let file = self.neighbours.open_raw(&self.name);
        file.is_ok_and(|file| file.is_far())
    }

    fn prefetch(&self, ranges: &[(u64, u64)], urgency: Urgency) {
        if let Ok(file) = self.neighbours.open_raw(&self.name) {
            let within = ranges.iter().filter_map(|&(at, length)| {
                let there = file.length().checked_sub(at)?;
                Some((at, length.min(there)))
            });
            file.prefetch(&within.collect::<Vec<_>>(), urgency);
        }
    }

    /// A file that cannot be opened is not waited for.
    fn has(&self, at: u64, length: u64) -> bool {
        let file = self.neighbours.open_raw(&self.name);
        file.map_or(true, |file| {
            let there = file.length().left_after(at);
            file.has(at, length.min(there))
        })
    }

    fn read_wanted(&self, at: u64, buffer: &mut [u8], is_wanted: &IsWanted<'_>) -> Result<()> {
        let file = self.neighbours.open_raw(&self.name)?;
        let there = file.length().left_after(at).min(to_u64(buffer.len()));
        let (there, past_end) = buffer.split_at_mut(to_usize(there)?);
        file.read_wanted(at, there, is_wanted)?;
        past_end.fill(0);
        file.check()?;
        Ok(())
    }
}
