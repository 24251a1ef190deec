//! A source with some of its bytes replaced: an HDF5 file whose metadata is in a cache image.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::error::Result;
use crate::source::{SharedSource, Source};
use crate::wire::{to_u64, to_usize};

/// The bytes of `below`, except where a patch covers them.
#[derive(Debug)]
pub struct Overlay {
    below: SharedSource,
    patches: BTreeMap<u64, Arc<[u8]>>,
    longest: u64,
}

impl Overlay {
    /// `patches` are bytes by their offset; they do not overlap.
    pub fn new(below: SharedSource, patches: BTreeMap<u64, Arc<[u8]>>) -> Self {
        let longest = patches
            .values()
            .map(|patch| to_u64(patch.len()))
            .max()
            .unwrap_or(0);
        Overlay {
            below,
            patches,
            longest,
        }
    }
}

impl Source for Overlay {
    /// A patch may lie past the end of what is below: the image holds what was never written home.
    fn length(&self) -> u64 {
        let last = self.patches.last_key_value();
        let end = last.map_or(0, |(at, patch)| at.saturating_add(to_u64(patch.len())));
        self.below.length().max(end)
    }

    fn available(&self, at: u64) -> u64 {
        let below = self.below.available(at);
        match at.saturating_add(below) < self.below.length() {
            true => below,
            false => self.length().saturating_sub(at),
        }
    }

    fn read_at(&self, at: u64, buffer: &mut [u8]) -> Result<()> {
        let end = at.saturating_add(to_u64(buffer.len()));
        let below = self
            .below
            .length()
            .saturating_sub(at)
            .min(to_u64(buffer.len()));
        if let Some(part) = buffer.get_mut(..to_usize(below)?) {
            self.below.read_at(at, part)?;
        }
        let first = at.saturating_sub(self.longest);
        for (start, patch) in self.patches.range(first..end) {
            let (skipped, ahead) = (at.saturating_sub(*start), start.saturating_sub(at));
            let from = patch.iter().skip(to_usize(skipped)?);
            buffer
                .iter_mut()
                .skip(to_usize(ahead)?)
                .zip(from)
                .for_each(|(to, from)| *to = *from);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::memory::MemorySource;

    #[test]
    fn patches_win_wherever_a_read_begins() {
        let below: SharedSource = Arc::new(MemorySource::new(b"..........".to_vec()));
        let patches = [(2, Arc::from(*b"abc")), (9, Arc::from(*b"xyz"))];
        let overlay = Overlay::new(below, patches.into_iter().collect());
        let read = |at, length| {
            let mut bytes = vec![b'?'; length];
            overlay.read_at(at, &mut bytes).map(|()| bytes)
        };
        assert_eq!(read(0, 6), Ok(b"..abc.".to_vec()));
        assert_eq!(read(3, 3), Ok(b"bc.".to_vec()));
        assert_eq!(read(8, 4), Ok(b".xyz".to_vec()));
        assert_eq!(overlay.length(), 12);
    }
}
