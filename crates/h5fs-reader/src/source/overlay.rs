//! A source with some bytes replaced by bytes from other offsets: an HDF5 file whose metadata is in
//! a cache image.

use crate::error::{Error, Result};
use crate::memory::cancel::WantedCheck;
use crate::source::{SharedSource, Source, Urgency, check_range};
use crate::wire::{Count, Extent, to_u64, to_usize};

/// A range of bytes whose content is stored at another offset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Patch {
    /// Range where the bytes appear in the overlay.
    at: Extent,
    /// Range where the bytes are stored in the source below.
    from: Extent,
}

impl Patch {
    /// Creates a patch of `length` bytes that appear at `at` and are stored at `from`.
    ///
    /// # Errors
    /// `Corrupt` if the end of either range exceeds 64 bits.
    pub fn new(at: u64, length: u64, from: u64) -> Result<Self> {
        let both = Extent::checked(at, length).zip(Extent::checked(from, length));
        let (at, from) =
            both.ok_or_else(|| cache_image_error("reaches past the last address", from))?;
        Ok(Patch { at, from })
    }

    /// Returns the range in the source below that stores the patch's bytes within `wanted`, a range
    /// of the overlay.
    fn stored_part(&self, wanted: Extent) -> Extent {
        let part = self.at.intersect(wanted);
        let skipped = part.start().minus_or_zero(self.at.start());
        self.from.skip(skipped).first(part.length())
    }
}

fn cache_image_error(fault: &str, from: u64) -> Error {
    Error::corrupt(format!("a structure in the cache image {fault}"), from)
}

/// The bytes of `below`, except where a patch applies.
#[derive(Debug)]
pub struct Overlay {
    below: SharedSource,
    /// Patches in ascending order, without overlaps.
    patches: Vec<Patch>,
    length: u64,
}

impl Overlay {
    /// Creates an overlay. A patch may extend past the end of the source below, because its bytes
    /// were never written to their final address. A gap between that end and the first such patch
    /// is refused: its bytes would not exist.
    ///
    /// # Errors
    /// `Corrupt` if patches overlap or leave a gap.
    pub fn new(below: SharedSource, mut patches: Vec<Patch>) -> Result<Self> {
        patches.retain(|patch| !patch.at.is_empty());
        patches.sort_unstable_by_key(|patch| patch.at.start());
        let (mut end, mut length) = (0, below.length());
        for patch in &patches {
            let (at, from) = (patch.at.start(), patch.from.start());
            if at < end {
                return Err(cache_image_error("overlaps another", from));
            }
            if at > length {
                return Err(cache_image_error("is past the end of the file", from));
            }
            end = patch.at.end();
            length = length.max(end);
        }
        Ok(Overlay {
            below,
            patches,
            length,
        })
    }

    /// Returns the patches that intersect `wanted`.
    fn overlapping_patches(&self, wanted: Extent) -> impl Iterator<Item = &Patch> {
        let is_before = |patch: &Patch| patch.at.end() <= wanted.start();
        let met = self
            .patches
            .iter()
            .skip(self.patches.partition_point(is_before));
        met.take_while(move |patch| patch.at.start() < wanted.end())
    }

    /// Returns the ranges of `below` that a read of `wanted` needs.
    fn ranges_below(&self, wanted: Extent) -> impl Iterator<Item = (u64, u64)> {
        let own = wanted.intersect(Extent::from_range(0, self.below.length()));
        let parts = self
            .overlapping_patches(wanted)
            .map(move |patch| patch.stored_part(wanted));
        let all = (!own.is_empty()).then_some(own).into_iter().chain(parts);
        all.map(|part| (part.start(), part.length()))
    }

    /// Copies the part of `patch` within `wanted` to its offset in `buffer`, which contains the
    /// bytes of `wanted`.
    fn apply(
        &self,
        (patch, wanted): (&Patch, Extent),
        buffer: &mut [u8],
        is_wanted: &WantedCheck<'_>,
    ) -> Result<()> {
        let from = patch.stored_part(wanted);
        let start = to_usize(patch.at.start().minus_or_zero(wanted.start()))?;
        let part = buffer.get_mut(start..).unwrap_or_default();
        let part = part.get_mut(..to_usize(from.length())?).unwrap_or_default();
        self.below.read_cancellable(from.start(), part, is_wanted)
    }
}

impl Source for Overlay {
    fn length(&self) -> u64 {
        self.length
    }

    fn contiguous_bytes(&self, at: u64) -> u64 {
        let below = self.below.contiguous_bytes(at);
        if Extent::saturating(at, below).end() < self.below.length() {
            return below;
        }
        self.length.minus_or_zero(at)
    }

    fn is_remote(&self) -> bool {
        self.below.is_remote()
    }

    fn benefits_from_prefetch(&self) -> bool {
        self.below.benefits_from_prefetch()
    }

    fn prefetch(&self, ranges: &[(u64, u64)], urgency: Urgency) {
        let below = ranges
            .iter()
            .flat_map(|&(at, length)| self.ranges_below(Extent::saturating(at, length)));
        self.below.prefetch(&below.collect::<Vec<_>>(), urgency);
    }

    fn is_available(&self, at: u64, length: u64) -> bool {
        self.ranges_below(Extent::saturating(at, length))
            .all(|(at, length)| self.below.is_available(at, length))
    }

    fn set_metadata_pages(&self, base: u64, length: u64) {
        self.below.set_metadata_pages(base, length);
    }

    fn read_cancellable(
        &self,
        at: u64,
        buffer: &mut [u8],
        is_wanted: &WantedCheck<'_>,
    ) -> Result<()> {
        let wanted = check_range(self, at, to_u64(buffer.len()), "a read")?;
        let below = self.below.length().minus_or_zero(at);
        let below = to_usize(below.min(to_u64(buffer.len())))?;
        match buffer.get_mut(..below) {
            Some(part) if !part.is_empty() => self.below.read_cancellable(at, part, is_wanted)?,
            _ => {}
        }
        for patch in self.overlapping_patches(wanted) {
            self.apply((patch, wanted), buffer, is_wanted)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::source::memory::MemorySource;
    use crate::source::recording::RoundTripRecorder;

    /// Creates an overlay over ten bytes. Each patch is given as target offset, length and stored
    /// offset.
    fn overlay(patches: &[(u64, u64, u64)]) -> Result<Overlay> {
        let below: SharedSource = Arc::new(MemorySource::new(b"0123456789".to_vec()));
        let patch = |&(at, length, from): &(u64, u64, u64)| Patch::new(at, length, from);
        Overlay::new(below, patches.iter().map(patch).collect::<Result<_>>()?)
    }

    #[test]
    fn patches_replace_bytes_at_any_offset() {
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
    fn a_prefetch_is_sent_to_the_stored_offset() {
        let far = RoundTripRecorder::new(b"0123456789".to_vec());
        let patch = |at, length, from| Patch::new(at, length, from).unwrap();
        let patches = vec![patch(2, 3, 7), patch(9, 3, 4)];
        let overlay = Overlay::new(far.clone(), patches).unwrap();
        overlay.prefetch(&[(3, 2), (8, 4)], Urgency::Expected);
        let asked = [(3, 2), (8, 2), (8, 2), (4, 3)].map(|(at, n)| (at, n, Urgency::Expected));
        assert_eq!(far.announced_ranges(), asked);
        assert!(overlay.is_remote() && !overlay.is_available(8, 4));
        overlay.read_at(8, &mut [0; 4]).unwrap();
        assert_eq!((overlay.is_available(8, 4), far.round_trips()), (true, 1));
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
