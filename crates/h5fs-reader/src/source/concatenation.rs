//! One address space made of several sources: the members of an HDF5 family, split or multi file.

use crate::error::{Error, Result};
use crate::memory::cancel::WantedCheck;
use crate::source::{SharedSource, Source, Urgency};
use crate::wire::{Count, Extent, to_u64, to_usize};

/// Sources at ascending addresses. Addresses between the end of one source and the start of the
/// next are unmapped.
#[derive(Debug)]
pub struct Concatenation {
    /// The members, ascending by address.
    members: Vec<SourceMember>,
}

#[derive(Debug)]
struct SourceMember {
    extent: Extent,
    source: SharedSource,
}

impl SourceMember {
    /// Returns the part of a range that lies in this member, as an offset in the member and a
    /// length. Returns `None` if they do not overlap.
    fn overlap(&self, (at, length): (u64, u64)) -> Option<(u64, u64)> {
        let part = self.extent.intersect(Extent::saturating(at, length));
        let start = part.start().minus_or_zero(self.extent.start());
        (!part.is_empty()).then_some((start, part.length()))
    }

    fn new((start, source): (u64, SharedSource)) -> Result<Self> {
        let place = Extent::new(start, source.length(), "a member file")?;
        Ok(SourceMember {
            extent: place,
            source,
        })
    }
}

impl Concatenation {
    /// Joins members, each given with its start address, in any order.
    ///
    /// # Errors
    /// `Corrupt` if a member's end address exceeds 64 bits.
    pub fn new(mut members: Vec<(u64, SharedSource)>) -> Result<Self> {
        members.sort_by_key(|(start, _)| *start);
        let members = members
            .into_iter()
            .map(SourceMember::new)
            .collect::<Result<_>>()?;
        Ok(Concatenation { members })
    }

    /// Returns the last member that starts at or before the address `at`, and the start address of
    /// the next member, or `u64::MAX` if there is none.
    fn member_at(&self, at: u64) -> Result<(&SourceMember, u64)> {
        let after = self
            .members
            .partition_point(|member| member.extent.start() <= at);
        let member = after
            .checked_sub(1)
            .and_then(|index| self.members.get(index));
        let next = self.members.get(after);
        let before_all = || Error::corrupt("an address before the first member file", at);
        Ok((
            member.ok_or_else(before_all)?,
            next.map_or(u64::MAX, |next| next.extent.start()),
        ))
    }
}

impl Source for Concatenation {
    fn length(&self) -> u64 {
        self.members.last().map_or(0, |member| member.extent.end())
    }

    fn is_composite(&self) -> bool {
        true
    }

    fn contiguous_bytes(&self, at: u64) -> u64 {
        let after = self
            .members
            .partition_point(|member| member.extent.start() <= at);
        let mut end = at;
        for member in self.members.iter().skip(after.minus_or_zero(1)) {
            if member.extent.start() > end {
                break;
            }
            end = end.max(member.extent.end());
        }
        end.minus_or_zero(at)
    }

    fn is_remote(&self) -> bool {
        self.members.iter().any(|member| member.source.is_remote())
    }

    fn benefits_from_prefetch(&self) -> bool {
        self.members
            .iter()
            .any(|member| member.source.benefits_from_prefetch())
    }

    fn prefetch(&self, ranges: &[(u64, u64)], urgency: Urgency) {
        for member in &self.members {
            let parts = ranges.iter().filter_map(|&range| member.overlap(range));
            let parts: Vec<_> = parts.collect();
            if !parts.is_empty() {
                member.source.prefetch(&parts, urgency);
            }
        }
    }

    fn is_available(&self, at: u64, length: u64) -> bool {
        let has = |member: &SourceMember| {
            let part = member.overlap((at, length));
            part.is_none_or(|(at, length)| member.source.is_available(at, length))
        };
        self.members.iter().all(has)
    }

    fn read_cancellable(
        &self,
        at: u64,
        buffer: &mut [u8],
        is_wanted: &WantedCheck<'_>,
    ) -> Result<()> {
        // The check guarantees progress of the loop below: every address that the loop reads has a
        // successor.
        Extent::new(at, to_u64(buffer.len()), "a read")?;
        let (mut at, mut rest) = (at, buffer);
        while !rest.is_empty() {
            let (member, next) = self.member_at(at)?;
            let here = to_usize(next.minus_or_zero(at).min(to_u64(rest.len())))?;
            let (part, after) = rest.split_at_mut(here);
            member.source.read_cancellable(
                at.minus_or_zero(member.extent.start()),
                part,
                is_wanted,
            )?;
            at = Extent::saturating(at, to_u64(here)).end();
            rest = after;
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

    fn members(parts: &[(u64, &[u8])]) -> Concatenation {
        let member = |(start, bytes): &(u64, &[u8])| {
            let source: SharedSource = Arc::new(MemorySource::new(bytes.to_vec()));
            (*start, source)
        };
        Concatenation::new(parts.iter().map(member).collect()).unwrap()
    }

    #[test]
    fn a_member_ends_within_64_bits() {
        let bytes: SharedSource = Arc::new(MemorySource::new(b"abc".to_vec()));
        let at = |start| Concatenation::new(vec![(start, Arc::clone(&bytes))]);
        let last = at(u64::MAX - 3).unwrap();
        assert_eq!(last.length(), u64::MAX);
        last.read_at(u64::MAX, &mut [0]).unwrap_err();
        at(u64::MAX - 2).unwrap_err();
    }

    #[test]
    fn a_read_crosses_from_member_to_member() {
        let family = members(&[(3, b"def"), (0, b"abc"), (6, b"g")]);
        let mut bytes = [0; 5];
        family.read_at(2, &mut bytes).unwrap();
        assert_eq!((&bytes, family.length()), (b"cdefg", 7));
        assert_eq!(family.contiguous_bytes(2), 5);
    }

    #[test]
    fn a_prefetch_goes_to_each_overlapping_member() {
        let far = || RoundTripRecorder::new(vec![0; 10]);
        let (first, second) = (far(), far());
        let members: Vec<(u64, SharedSource)> = vec![(0, first.clone()), (100, second.clone())];
        let split = Concatenation::new(members).unwrap();
        split.prefetch(&[(8, 94), (103, 2), (50, 10)], Urgency::Needed);
        assert_eq!(first.announced_ranges(), [(8, 2, Urgency::Needed)]);
        let second_asked = [(0, 2, Urgency::Needed), (3, 2, Urgency::Needed)];
        assert_eq!(second.announced_ranges(), second_asked);
        assert!(split.is_remote() && !split.is_available(8, 1));
        first.read_at(8, &mut [0; 2]).unwrap();
        assert!(split.is_available(8, 2) && !split.is_available(8, 94));
    }

    #[test]
    fn a_gap_between_members_cannot_be_read() {
        let split = members(&[(0, b"abc"), (100, b"raw")]);
        let mut bytes = [0; 4];
        assert!(split.read_at(0, &mut bytes).is_err());
        assert_eq!(split.contiguous_bytes(1), 2);
        assert_eq!(
            (split.contiguous_bytes(3), split.contiguous_bytes(101)),
            (0, 2)
        );
        assert!(split.read_at(100, &mut bytes[..3]).is_ok());
    }
}
