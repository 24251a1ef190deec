//! A source with some of its bytes replaced by others of its own: an HDF5 file whose metadata is in
//! a cache image.

use crate::error::{Error, Result};
use crate::source::{SharedSource, Source, Urgency, check_range};
use crate::wire::{to_u64, to_usize};

/// Bytes that stand elsewhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Patch {
    /// Where they belong.
    pub at: u64,
    /// How many there are.
    pub length: u64,
    /// Where they stand.
    pub from: u64,
}

impl Patch {
    /// Where it ends, which an overlay has checked to be within 64 bits.
    fn end(&self) -> u64 {
        self.at.saturating_add(self.length)
    }

    fn is_within_64_bits(&self) -> bool {
        let ends = |start: u64| start.checked_add(self.length).is_some();
        ends(self.at) && ends(self.from)
    }
}

/// The bytes of `below`, except where a patch belongs.
#[derive(Debug)]
pub struct Overlay {
    below: SharedSource,
    /// Ascending, without overlaps.
    patches: Vec<Patch>,
    length: u64,
}

impl Overlay {
    /// A patch may belong past the end of the source below: it was never written home. Bytes
    /// between that end and the first such patch would be nowhere, so there may be none.
    ///
    /// # Errors
    /// `Corrupt` where patches overlap, leave a gap, or do not end within 64 bits.
    pub fn new(below: SharedSource, mut patches: Vec<Patch>) -> Result<Self> {
        patches.retain(|patch| patch.length > 0);
        patches.sort_unstable_by_key(|patch| patch.at);
        let (mut end, mut length) = (0, below.length());
        for patch in &patches {
            let fault = match patch.at {
                at if at < end => "overlaps another",
                at if at > length => "is past the end of the file",
                _ if !patch.is_within_64_bits() => "reaches past the last address",
                _ => {
                    end = patch.end();
                    length = length.max(end);
                    continue;
                }
            };
            let what = format!("a structure in the cache image {fault}");
            return Err(Error::corrupt(what, patch.from));
        }
        Ok(Overlay {
            below,
            patches,
            length,
        })
    }

    /// The ranges below from which the `length` bytes at `at` are read.
    fn below(&self, at: u64, length: u64) -> impl Iterator<Item = (u64, u64)> {
        let end = at.saturating_add(length);
        let own = end.min(self.below.length()).saturating_sub(at);
        let first = self.patches.partition_point(|patch| patch.end() <= at);
        let met = self.patches.iter().skip(first);
        let met = met.take_while(move |patch| patch.at < end);
        let parts = met.map(move |patch| {
            let start = at.max(patch.at);
            let from = patch.from.saturating_add(start.saturating_sub(patch.at));
            (from, end.min(patch.end()).saturating_sub(start))
        });
        (own > 0).then_some((at, own)).into_iter().chain(parts)
    }

    /// Puts the part of `patch` that belongs to the buffer, which is read from `at` on, in its
    /// place.
    fn apply(&self, patch: &Patch, at: u64, buffer: &mut [u8]) -> Result<()> {
        let skipped = at.saturating_sub(patch.at);
        let start = to_usize(patch.at.saturating_sub(at))?;
        let most = to_usize(patch.length.saturating_sub(skipped))?;
        let part = buffer.get_mut(start..).unwrap_or_default();
        let here = most.min(part.len());
        let part = part.get_mut(..here).unwrap_or_default();
        self.below.read_at(patch.from.saturating_add(skipped), part)
    }
}

impl Source for Overlay {
    fn length(&self) -> u64 {
        self.length
    }

    fn available(&self, at: u64) -> u64 {
        let below = self.below.available(at);
        match at.saturating_add(below) < self.below.length() {
            true => below,
            false => self.length.saturating_sub(at),
        }
    }

    fn is_far(&self) -> bool {
        self.below.is_far()
    }

    fn reads_ahead(&self) -> bool {
        self.below.reads_ahead()
    }

    fn prefetch(&self, ranges: &[(u64, u64)], urgency: Urgency) {
        let below = ranges
            .iter()
            .flat_map(|&(at, length)| self.below(at, length));
        self.below.prefetch(&below.collect::<Vec<_>>(), urgency);
    }

    fn has(&self, at: u64, length: u64) -> bool {
        self.below(at, length)
            .all(|(at, length)| self.below.has(at, length))
    }

    fn set_pages(&self, base: u64, length: u64) {
        self.below.set_pages(base, length);
    }

    fn read_at(&self, at: u64, buffer: &mut [u8]) -> Result<()> {
        check_range(self, at, to_u64(buffer.len()), "a read")?;
        let end = at.saturating_add(to_u64(buffer.len()));
        let below = self.below.length().saturating_sub(at);
        let below = to_usize(below.min(to_u64(buffer.len())))?;
        match buffer.get_mut(..below) {
            Some(part) if !part.is_empty() => self.below.read_at(at, part)?,
            _ => {}
        }
        let first = self.patches.partition_point(|patch| patch.end() <= at);
        let met = self.patches.iter().skip(first);
        for patch in met.take_while(|patch| patch.at < end) {
            self.apply(patch, at, buffer)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::source::memory::MemorySource;
    use crate::source::recording::Recording;

    /// Ten bytes, and these patches: where they belong, how many, where they stand.
    fn overlay(patches: &[(u64, u64, u64)]) -> Result<Overlay> {
        let below: SharedSource = Arc::new(MemorySource::new(b"0123456789".to_vec()));
        let patch = |&(at, length, from): &(u64, u64, u64)| Patch { at, length, from };
        Overlay::new(below, patches.iter().map(patch).collect())
    }

    #[test]
    fn patches_win_wherever_a_read_begins() {
        let overlay = overlay(&[(9, 3, 4), (2, 3, 7), (6, 0, 0)]).unwrap();
        let read = |at, length| {
            let mut bytes = vec![b'?'; length];
            overlay.read_at(at, &mut bytes).map(|()| bytes)
        };
        assert_eq!(read(0, 6), Ok(b"017895".to_vec()));
        assert_eq!(read(3, 3), Ok(b"895".to_vec()));
        assert_eq!(read(8, 4), Ok(b"8456".to_vec()));
        assert_eq!(read(11, 1), Ok(b"6".to_vec()));
        assert_eq!(overlay.length(), 12);
        read(8, 5).expect_err("past the last patch");
    }

    #[test]
    fn a_hint_leads_to_where_the_bytes_stand() {
        let far = Recording::of(b"0123456789".to_vec());
        let patch = |at, length, from| Patch { at, length, from };
        let patches = vec![patch(2, 3, 7), patch(9, 3, 4)];
        let overlay = Overlay::new(far.clone(), patches).unwrap();
        overlay.prefetch(&[(3, 2), (8, 4)], Urgency::Expected);
        let asked = [(3, 2), (8, 2), (8, 2), (4, 3)].map(|(at, n)| (at, n, Urgency::Expected));
        assert_eq!(far.asked(), asked);
        assert!(overlay.is_far() && !overlay.has(8, 4));
        overlay.read_at(8, &mut [0; 4]).unwrap();
        assert_eq!((overlay.has(8, 4), far.trips()), (true, 1));
    }

    #[test]
    fn patches_neither_overlap_nor_leave_a_gap() {
        overlay(&[(2, 3, 0), (5, 1, 0), (10, 2, 0), (12, 1, 0)]).expect("side by side");
        for patches in [
            &[(2, 3, 0), (4, 1, 0)][..],
            &[(2, 3, 0), (2, 3, 0)],
            &[(11, 1, 0)],
            &[(10, 1, 0), (12, 1, 0)],
            &[(1 << 60, 1, 0)],
            &[(5, u64::MAX, 0)],
            &[(5, 8, u64::MAX)],
        ] {
            overlay(patches).expect_err("is no place");
        }
    }
}
