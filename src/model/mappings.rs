//! The parts that a virtual array is made of. There may be tens of thousands: all their numbers stand in a few lists, not
//! in pieces of memory of their own, so that they take little and are gone at once.

use std::sync::Arc;

use crate::memory;
use crate::model::region::{Axis, Region};
use crate::model::storage::VirtualSource;
use crate::wire::to_usize;

/// A part of an array that is made of elements of another: the k-th element of one region is the k-th of
/// the other.
#[derive(Debug, Clone)]
pub struct Mapping {
    /// Where the elements are in the array that is made.
    pub region: Region,
    /// Where they are in the source.
    pub source_region: Region,
    /// The source.
    pub source: Arc<dyn VirtualSource>,
}

/// Mappings in their order.
#[derive(Debug, Default)]
pub struct Mappings {
    list: Vec<Packed>,
    regions: Regions,
    /// Bytes of memory that the sources take, about.
    sources: u64,
}

#[derive(Debug)]
struct Packed {
    region: Place,
    source_region: Place,
    source: Arc<dyn VirtualSource>,
}

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
pub struct Place(Form);

#[derive(Debug, Clone, Copy)]
enum Form {
    Nothing,
    All,
    /// So many axes from this one on.
    Regular(usize, u32),
    /// So many blocks of so many dimensions, from this number on.
    Blocks(usize, u32, u32),
}

impl Mappings {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// None yet, but these regions for those that come.
    pub fn of_regions(regions: Regions) -> Self {
        Mappings {
            regions,
            ..Mappings::default()
        }
    }

    /// The regions of all of them.
    pub fn regions(&mut self) -> &mut Regions {
        &mut self.regions
    }

    /// Appends one: where the elements are in the array, where they are in the source, and the source.
    pub fn push(&mut self, region: Place, source_region: Place, source: Arc<dyn VirtualSource>) {
        let last = self.list.last();
        if last.is_none_or(|last| !Arc::ptr_eq(&last.source, &source)) {
            let own = memory::piece(to_usize(source.weight()).unwrap_or(usize::MAX));
            self.sources = self.sources.saturating_add(own);
        }
        self.list.push(Packed {
            region,
            source_region,
            source,
        });
    }

    /// The one at a place.
    pub fn get(&self, place: usize) -> Option<Mapping> {
        self.list.get(place).map(|packed| self.unpacked(packed))
    }

    /// All, in their order.
    pub fn iter(&self) -> impl Iterator<Item = Mapping> {
        self.list.iter().map(|packed| self.unpacked(packed))
    }

    /// Gives back what was allocated for more of them.
    pub fn shrink(&mut self) {
        self.list.shrink_to_fit();
        self.regions.axes.shrink_to_fit();
        self.regions.corners.shrink_to_fit();
    }

    /// Bytes of memory that they take, about.
    pub fn weight(&self) -> u64 {
        let lists = [
            size_of_val(&*self.list),
            size_of_val(&*self.regions.axes),
            size_of_val(&*self.regions.corners),
        ];
        let lists = lists.into_iter().map(memory::piece);
        lists.fold(self.sources, u64::saturating_add)
    }

    fn unpacked(&self, packed: &Packed) -> Mapping {
        Mapping {
            region: self.regions.get(packed.region),
            source_region: self.regions.get(packed.source_region),
            source: Arc::clone(&packed.source),
        }
    }
}

impl Regions {
    /// Keeps a region.
    pub fn keep(&mut self, region: &Region) -> Place {
        let count = |length: usize| u32::try_from(length).unwrap_or(u32::MAX);
        Place(match region {
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
    pub fn get(&self, place: Place) -> Region {
        match place.0 {
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
}

impl FromIterator<Mapping> for Mappings {
    fn from_iter<I: IntoIterator<Item = Mapping>>(mappings: I) -> Self {
        let mut packed = Mappings::default();
        for mapping in mappings {
            let region = packed.regions.keep(&mapping.region);
            let source_region = packed.regions.keep(&mapping.source_region);
            packed.push(region, source_region, mapping.source);
        }
        packed.shrink();
        packed
    }
}

fn length(count: u32) -> usize {
    to_usize(count.into()).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Result;
    use crate::model::storage::OpenSource;
    use crate::wire::to_u64;

    #[derive(Debug)]
    struct Nowhere;

    impl VirtualSource for Nowhere {
        fn open(&self) -> Result<Option<OpenSource>> {
            Ok(None)
        }

        fn is_elsewhere(&self) -> bool {
            false
        }

        fn weight(&self) -> u64 {
            84
        }
    }

    #[test]
    fn what_is_put_in_comes_out() {
        let axis = |start| Axis {
            start,
            ..Axis::whole(3)
        };
        let regions = [
            Region::All,
            Region::Regular(vec![axis(1), axis(2)]),
            Region::Blocks(vec![(vec![1, 2], vec![3, 4]), (vec![5, 6], vec![7, 8])]),
            Region::Nothing,
            Region::Regular(Vec::new()),
            Region::Blocks(vec![(vec![9], vec![10])]),
            Region::Blocks(Vec::new()),
        ];
        let pairs = || regions.iter().zip(regions.iter().rev());
        let source: Arc<dyn VirtualSource> = Arc::new(Nowhere);
        let mappings: Mappings = pairs()
            .map(|(region, source_region)| Mapping {
                region: region.clone(),
                source_region: source_region.clone(),
                source: Arc::clone(&source),
            })
            .collect();
        assert_eq!(mappings.len(), regions.len());
        for (mapping, (region, source_region)) in mappings.iter().zip(pairs()) {
            assert_eq!(
                (&mapping.region, &mapping.source_region),
                (region, source_region)
            );
        }
        assert_eq!(mappings.get(1).unwrap().region, regions[1]);
        assert!(mappings.get(regions.len()).is_none());
        let numbers = 2 * (2 * 40 + 8 * 8 + 2 * 8);
        assert_eq!(size_of::<Axis>(), 40);
        let list = to_u64(regions.len() * size_of::<Packed>());
        assert_eq!(mappings.weight(), list + numbers + 4 * 16 + 84);
    }
}
