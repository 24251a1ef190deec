//! Many regions in little memory: there may be tens of thousands, of the mappings of one virtual
//! array. All their numbers stand in two lists, not in pieces of memory of their own.

use crate::memory;
use crate::model::region::{Axis, Region};
use crate::wire::{Count, to_usize};

/// Many regions.
#[derive(Debug, Default)]
pub struct Regions {
    /// Of all regular ones.
    axes: Vec<Axis>,
    /// Of all blocks: of each the first corner, then the last.
    corners: Vec<u64>,
}

/// Where the numbers of one of them stand.
#[derive(Debug, Clone, Copy)]
pub struct RegionAt(Form);

#[derive(Debug, Clone, Copy)]
enum Form {
    Nothing,
    All,
    /// So many axes from this one on.
    Regular(usize, u32),
    /// So many blocks of so many dimensions, from this number on.
    Blocks(usize, u32, u32),
}

impl Regions {
    /// Keeps a region.
    pub fn keep(&mut self, region: &Region) -> RegionAt {
        let count = |length: usize| u32::try_from(length).unwrap_or(u32::MAX);
        RegionAt(match region {
            Region::Nothing => Form::Nothing,
            Region::All => Form::All,
            Region::Regular(axes) => {
                let start = self.axes.len();
                self.axes.extend(axes);
                Form::Regular(start, count(axes.len()))
            }
            Region::Blocks(blocks) => {
                let start = self.corners.len();
                for (first, last) in blocks {
                    self.corners.extend(first.iter().chain(last));
                }
                let rank = blocks.first().map_or(0, |(first, _)| first.len());
                Form::Blocks(start, count(blocks.len()), count(rank))
            }
        })
    }

    /// The region that is kept there.
    pub fn get(&self, RegionAt(form): RegionAt) -> Region {
        match form {
            Form::Nothing => Region::Nothing,
            Form::All => Region::All,
            Form::Regular(start, rank) => {
                let axes = self.axes.iter().skip(start);
                Region::Regular(axes.take(length(rank)).copied().collect())
            }
            Form::Blocks(start, count, rank) => {
                let mut corners = self.corners.iter().skip(start).copied();
                let mut corner = || corners.by_ref().take(length(rank)).collect();
                let blocks = (0..count).map(|_| (corner(), corner()));
                Region::Blocks(blocks.collect())
            }
        }
    }

    /// Gives back what was allocated for more of them.
    pub fn shrink(&mut self) {
        self.axes.shrink_to_fit();
        self.corners.shrink_to_fit();
    }

    /// Bytes of memory that they take, about.
    pub fn weight(&self) -> u64 {
        let lists = [size_of_val(&*self.axes), size_of_val(&*self.corners)];
        u64::together(lists.map(memory::piece))
    }
}

fn length(count: u32) -> usize {
    to_usize(count.into()).unwrap_or(usize::MAX)
}
