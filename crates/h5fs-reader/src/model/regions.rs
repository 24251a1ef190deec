//! A compact list of regions. One virtual array may have tens of thousands of regions. The numbers
//! of all regions are in two lists instead of separate allocations.

use crate::memory;
use crate::model::region::{Region, RegionAxis};
use crate::wire::{Count, to_usize};

/// A compact list of regions.
#[derive(Debug, Default)]
pub struct RegionList {
    /// The axes of all regular regions.
    axes: Vec<RegionAxis>,
    /// The corners of all blocks: the first corner, then the last corner of each block.
    corners: Vec<u64>,
}

/// The position of one region in [`RegionList`].
#[derive(Debug, Clone, Copy)]
pub struct RegionPosition(RegionForm);

#[derive(Debug, Clone, Copy)]
enum RegionForm {
    Nothing,
    All,
    /// The position of the first axis in the list of axes, and the number of axes.
    Regular(usize, u32),
    /// The position of the first coordinate in the list of corners, the number of blocks, and their
    /// rank.
    Blocks(usize, u32, u32),
}

impl RegionList {
    /// Stores a region and returns its position.
    pub fn store(&mut self, region: &Region) -> RegionPosition {
        let count = |length: usize| u32::try_from(length).unwrap_or(u32::MAX);
        RegionPosition(match region {
            Region::Nothing => RegionForm::Nothing,
            Region::All => RegionForm::All,
            Region::Regular(axes) => {
                let start = self.axes.len();
                self.axes.extend(axes);
                RegionForm::Regular(start, count(axes.len()))
            }
            Region::Blocks(blocks) => {
                let start = self.corners.len();
                for (first, last) in blocks {
                    self.corners.extend(first.iter().chain(last));
                }
                let rank = blocks.first().map_or(0, |(first, _)| first.len());
                RegionForm::Blocks(start, count(blocks.len()), count(rank))
            }
        })
    }

    /// Returns the region at the position that [`store`](Self::store) returned.
    pub fn get(&self, RegionPosition(form): RegionPosition) -> Region {
        match form {
            RegionForm::Nothing => Region::Nothing,
            RegionForm::All => Region::All,
            RegionForm::Regular(start, rank) => {
                let axes = self.axes.iter().skip(start);
                Region::Regular(axes.take(to_length(rank)).copied().collect())
            }
            RegionForm::Blocks(start, count, rank) => {
                let mut corners = self.corners.iter().skip(start).copied();
                let mut corner = || corners.by_ref().take(to_length(rank)).collect();
                let blocks = (0..count).map(|_| (corner(), corner()));
                Region::Blocks(blocks.collect())
            }
        }
    }

    /// Releases unused allocated memory.
    pub fn shrink(&mut self) {
        self.axes.shrink_to_fit();
        self.corners.shrink_to_fit();
    }

    /// Returns the approximate memory in bytes that the regions take.
    pub fn weight(&self) -> u64 {
        let lists = [size_of_val(&*self.axes), size_of_val(&*self.corners)];
        u64::sum(lists.map(memory::allocation_size))
    }
}

fn to_length(count: u32) -> usize {
    to_usize(count.into()).unwrap_or(usize::MAX)
}
