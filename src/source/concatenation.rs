//! One address space made of several sources: the members of an HDF5 family, split or multi file.

use crate::error::{Error, Result};
use crate::source::{SharedSource, Source};
use crate::wire::{to_u64, to_usize};

/// Sources at ascending addresses; what lies between the end of one and the start of the next is nowhere.
#[derive(Debug)]
pub struct Concatenation {
    /// Start address and source, ascending.
    members: Vec<(u64, SharedSource)>,
}

impl Concatenation {
    /// Each member with the address at which it begins, in any order.
    pub fn new(mut members: Vec<(u64, SharedSource)>) -> Self {
        members.sort_by_key(|(start, _)| *start);
        Concatenation { members }
    }

    /// The member that holds `at`, with its start and the start of the one after.
    fn member(&self, at: u64) -> Result<(&(u64, SharedSource), u64)> {
        let after = self.members.partition_point(|(start, _)| *start <= at);
        let member = after
            .checked_sub(1)
            .and_then(|index| self.members.get(index));
        let end = self
            .members
            .get(after)
            .map_or(u64::MAX, |(start, _)| *start);
        let before_all = || Error::corrupt("an address before the first member file", at);
        Ok((member.ok_or_else(before_all)?, end))
    }
}

impl Source for Concatenation {
    fn length(&self) -> u64 {
        let last = self.members.last();
        last.map_or(0, |(start, source)| start.saturating_add(source.length()))
    }

    fn available(&self, at: u64) -> u64 {
        let after = self.members.partition_point(|(start, _)| *start <= at);
        let mut end = at;
        for (start, source) in self.members.iter().skip(after.saturating_sub(1)) {
            if *start > end {
                break;
            }
            end = end.max(start.saturating_add(source.length()));
        }
        end.saturating_sub(at)
    }

    fn read_at(&self, at: u64, buffer: &mut [u8]) -> Result<()> {
        let (mut at, mut rest) = (at, buffer);
        while !rest.is_empty() {
            let ((start, source), end) = self.member(at)?;
            let here = to_usize(end.saturating_sub(at).min(to_u64(rest.len())))?;
            let (part, after) = rest.split_at_mut(here);
            source.read_at(at.saturating_sub(*start), part)?;
            at = at.saturating_add(to_u64(here));
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

    fn members(parts: &[(u64, &[u8])]) -> Concatenation {
        let member = |(start, bytes): &(u64, &[u8])| {
            let source: SharedSource = Arc::new(MemorySource::new(bytes.to_vec()));
            (*start, source)
        };
        Concatenation::new(parts.iter().map(member).collect())
    }

    #[test]
    fn a_read_crosses_from_member_to_member() {
        let family = members(&[(3, b"def"), (0, b"abc"), (6, b"g")]);
        let mut bytes = [0; 5];
        family.read_at(2, &mut bytes).unwrap();
        assert_eq!((&bytes, family.length()), (b"cdefg", 7));
        assert_eq!(family.available(2), 5);
    }

    #[test]
    fn a_gap_between_members_is_no_data() {
        let split = members(&[(0, b"abc"), (100, b"raw")]);
        let mut bytes = [0; 4];
        assert!(split.read_at(0, &mut bytes).is_err());
        assert_eq!(split.available(1), 2);
        assert_eq!((split.available(3), split.available(101)), (0, 2));
        assert!(split.read_at(100, &mut bytes[..3]).is_ok());
    }
}
