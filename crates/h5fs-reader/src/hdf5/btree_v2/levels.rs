//! The capacities of the nodes of a version 2 B-tree, and the widths of the counts that follow from
//! them.
//!
//! HDF5 3.0, III.A.2, "Number of Records in Child Node". The specification's formula for the
//! maximum number of records in a subtree is wrong near powers of 256. This module computes the
//! widths that real files use.

use crate::error::{Error, Result};
use crate::hdf5::file::number_form::{Address, Width};
use crate::limits;
use crate::wire::{Count, Cursor, to_u64};

/// Number of bytes before a node's records: signature, version and type.
pub(super) const NODE_PREFIX: usize = 6;
pub(super) const CHECKSUM: usize = 4;

/// The address of a node and its numbers of records. They are stored in the parent or the header,
/// not in the node itself.
#[derive(Debug, Clone, Copy)]
pub(super) struct ChildPointer {
    pub(super) at: Address,
    /// Number of records in the node.
    pub(super) record_count: u64,
    /// Number of records in the node and all nodes below it.
    pub(super) total_count: u64,
}

/// The maximum number of records in the nodes of each level, from the leaves (level 0) up. The
/// widths of counts follow from these numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct NodeCapacities {
    size_of_offsets: Width,
    levels: Vec<LevelLimits>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct LevelLimits {
    /// Maximum number of records in one node.
    max_records: u64,
    /// Maximum number of records in one node and all nodes below it.
    max_total_records: u64,
}

impl NodeCapacities {
    /// Computes the limits of all levels of a tree whose root has `depth` levels below it. Returns
    /// `None` if a node of some level cannot contain a single record.
    ///
    /// # Errors
    /// `Limit` if `depth` exceeds [`limits::TREE_DEPTH`], or if one node of each level together
    /// exceed [`limits::TREE_BRANCH`] bytes.
    pub(super) fn new(
        node_size: u64,
        record_size: usize,
        size_of_offsets: Width,
        depth: usize,
    ) -> Result<Option<Self>> {
        Error::check_limit(depth, limits::TREE_DEPTH, "levels of a B-tree")?;
        let branch = node_size.times(to_u64(depth.plus_one()));
        Error::check_limit(branch, limits::TREE_BRANCH, "nodes of a B-tree")?;
        let mut levels = NodeCapacities {
            size_of_offsets,
            levels: Vec::new(),
        };
        let room = node_size.minus_or_zero(to_u64(NODE_PREFIX.plus(CHECKSUM)));
        for level in 0..=depth {
            let pointer = match level {
                0 => 0,
                _ => to_u64(levels.pointer_size(level)),
            };
            let entry = to_u64(record_size).plus(pointer);
            let most = room.minus_or_zero(pointer).checked_div(entry);
            let Some(most) = most.filter(|&most| most > 0 && record_size > 0) else {
                return Ok(None);
            };
            let below = levels
                .levels
                .last()
                .map_or(0, |level| level.max_total_records);
            let most_total = most.plus_one().times(below);
            levels.levels.push(LevelLimits {
                max_records: most,
                max_total_records: most_total.plus(most),
            });
        }
        Ok(Some(levels))
    }

    pub(super) fn depth(&self) -> usize {
        self.levels.len().minus_or_zero(1)
    }

    /// Returns the number of bytes of the field "Number of Records for Child Node". All levels use
    /// the width of a leaf's count.
    pub(super) fn record_count_width(&self) -> usize {
        self.levels
            .first()
            .map_or(1, |leaf| count_width(leaf.max_records))
    }

    /// Returns the number of bytes of the field "Total Number of Records for Child Node" in a node
    /// of `level`. The field is absent directly above the leaves.
    pub(super) fn total_count_width(&self, level: usize) -> usize {
        match level {
            0 | 1 => 0,
            _ => {
                let below = self.levels.get(level.minus_or_zero(1));
                below.map_or(8, |below| count_width(below.max_total_records))
            }
        }
    }

    /// Returns the number of bytes of the pointer to one child in a node of `level`, which is not a
    /// leaf.
    pub(super) fn pointer_size(&self, level: usize) -> usize {
        let address = self.size_of_offsets.bytes();
        Count::sum([
            address,
            self.record_count_width(),
            self.total_count_width(level),
        ])
    }

    /// Fails with `Corrupt` if the numbers of records of `child`, a node of `level`, are
    /// impossible. `cursor`, which is after these numbers in the parent, gives the location of the
    /// error.
    pub(super) fn check_counts(
        &self,
        child: ChildPointer,
        level: usize,
        cursor: &Cursor<'_>,
    ) -> Result<()> {
        let Some(limit) = self.levels.get(level) else {
            return Err(cursor.corrupt("has no such level"));
        };
        if child.record_count > limit.max_records || child.total_count > limit.max_total_records {
            return Err(cursor.corrupt("more records than a node can hold"));
        }
        let below = child.total_count.checked_sub(child.record_count);
        match below {
            Some(0) => Ok(()),
            Some(_) if level > 0 => Ok(()),
            _ => Err(cursor.corrupt("counts of records contradict each other")),
        }
    }
}

/// Returns the number of bytes that the format reserves for a number from 0 to `most`.
fn count_width(most: u64) -> usize {
    let bits = u64::BITS.minus_or_zero(most.leading_zeros());
    usize::try_from(bits.div_ceil(8)).unwrap_or(8).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn widths_change_at_powers_of_256() {
        let width = Width::new(8).unwrap();
        let levels = |node_size, record_size| {
            let levels = NodeCapacities::new(node_size, record_size, width, 2).unwrap();
            levels.unwrap()
        };
        assert_eq!(levels(10 + 255 * 4, 4).record_count_width(), 1);
        assert_eq!(levels(10 + 256 * 4, 4).record_count_width(), 2);
        // With 1654 bytes, a leaf contains 16 records and a node above contains (1644 - 9) / 109 =
        // 15. The total is 15 + 16 * 16 = 271, which takes two bytes. The specification's 16 * 15 =
        // 240 would take one.
        let levels = levels(1654, 100);
        assert_eq!(levels.total_count_width(1), 0);
        assert_eq!(levels.total_count_width(2), 2);
        assert_eq!(levels.pointer_size(2), 8 + 1 + 2);
    }
}
