//! Raw files with elements of a dataset: HDF5's external data files.

use std::sync::Arc;

use crate::error::Result;
use crate::memory::cancel::WantedCheck;
use crate::source::neighbours::Neighbours;
use crate::source::{Source, Urgency};
use crate::wire::{Count, to_u64, to_usize};

/// A neighbour file that is opened on the first read. Bytes past its end read as zeros.
#[derive(Debug)]
pub struct RawFile {
    neighbours: Arc<Neighbours>,
    name: Vec<u8>,
}

impl RawFile {
    /// Creates a source for the neighbour called `name`.
    pub fn new(neighbours: Arc<Neighbours>, name: Vec<u8>) -> Self {
        RawFile { neighbours, name }
    }
}

impl Source for RawFile {
    fn is_composite(&self) -> bool {
        true
    }

    /// Returns the largest 64-bit length, because bytes past the end of the file read as zeros.
    fn length(&self) -> u64 {
        u64::MAX
    }

    fn weight(&self) -> u64 {
        to_u64(size_of::<Self>().plus(self.name.len()))
    }

    fn is_remote(&self) -> bool {
        self.neighbours.is_remote()
    }

    /// Prefetches only from an open file, because opening a remote file waits for its server.
    fn prefetch(&self, ranges: &[(u64, u64)], urgency: Urgency) {
        if let Some(file) = self.neighbours.find_open_raw(&self.name) {
            let within = ranges.iter().filter_map(|&(at, length)| {
                let there = file.length().checked_sub(at)?;
                Some((at, length.min(there)))
            });
            file.prefetch(&within.collect::<Vec<_>>(), urgency);
        }
    }

    fn is_available(&self, at: u64, length: u64) -> bool {
        match self.neighbours.find_open_raw(&self.name) {
            Some(file) => {
                let there = file.length().minus_or_zero(at);
                file.is_available(at, length.min(there))
            }
            None => !self.is_remote(),
        }
    }

    fn read_cancellable(
        &self,
        at: u64,
        buffer: &mut [u8],
        is_wanted: &WantedCheck<'_>,
    ) -> Result<()> {
        let file = self.neighbours.open_raw(&self.name, is_wanted)?;
        let there = file.length().minus_or_zero(at).min(to_u64(buffer.len()));
        let (there, past_end) = buffer.split_at_mut(to_usize(there)?);
        file.read_cancellable(at, there, is_wanted)?;
        past_end.fill(0);
        file.check()?;
        Ok(())
    }
}
