//! The place of each member in the joined arrays: the joined dimensions, divided into blocks, and
//! new dimensions.

use std::collections::HashSet;

use h5fs_reader::wire::{Count, to_u64};

use crate::paths::Path;

/// The placement of the members of one kind in the joined arrays.
#[derive(Debug, Default)]
pub(crate) struct Placement {
    pub(crate) axes: Vec<JoinAxis>,
    /// For each member of the kind, the index of the member's block on each axis.
    pub(crate) member_blocks: Vec<Vec<usize>>,
    /// Keys of the dimensions whose coordinates are equal in all members.
    pub(crate) shared_dimensions: HashSet<Path>,
    /// Keys of the dimensions whose coordinates differ between members, but which are not joined.
    pub(crate) unjoined_dimensions: HashSet<Path>,
}

/// A direction along which members are joined: one joined dimension, or several that are joined
/// together. The axis is divided into consecutive blocks, and each member belongs to one of them.
#[derive(Debug)]
pub(crate) struct JoinAxis {
    /// The dimensions that are joined along this axis, usually one. Dimensions of several groups
    /// may be joined together.
    pub(crate) dims: Vec<JoinedDimension>,
    pub(crate) block_count: usize,
    /// The new dimension of this axis, if no member has a dimension that the axis joins.
    pub(crate) new_dimension: Option<NewDimension>,
    /// Whether the coordinates of two blocks overlap.
    pub(crate) has_overlap: bool,
    /// Whether this axis joins the rows of tables. Each table has its own dimension of rows, which
    /// no other variable has.
    pub(crate) has_tables: bool,
}

/// A dimension that is joined along an axis.
#[derive(Debug)]
pub(crate) struct JoinedDimension {
    pub(crate) key: Path,
    /// The offset of each block along the dimension, and the end of the last block.
    pub(crate) block_starts: Vec<u64>,
    /// Whether every block except the first omits its first element.
    pub(crate) is_first_element_omitted: bool,
}

impl JoinedDimension {
    /// Returns the length of the joined dimension.
    pub(crate) fn length(&self) -> u64 {
        self.block_starts.last().copied().unwrap_or(0)
    }

    /// Returns the offset of a block along the dimension.
    pub(crate) fn block_start(&self, block: usize) -> u64 {
        self.block_starts.get(block).copied().unwrap_or(0)
    }

    /// Returns the number of elements at the start of a block that the joined dimension leaves out.
    pub(crate) fn omitted_count(&self, block: usize) -> u64 {
        u64::from(self.is_first_element_omitted && block > 0)
    }

    /// Creates a dimension from the lengths of its blocks. Every block except the first omits its
    /// first element.
    pub(crate) fn new_omitting_first(key: &Path, lengths: &[u64]) -> Self {
        let numbered = lengths.iter().enumerate();
        let cut = numbered.map(|(block, length)| length.minus_or_zero(u64::from(block > 0)));
        JoinedDimension {
            is_first_element_omitted: true,
            ..JoinedDimension::new(key, &cut.collect::<Vec<_>>())
        }
    }

    pub(crate) fn new(key: &Path, lengths: &[u64]) -> Self {
        let mut starts = vec![0];
        let mut end: u64 = 0;
        for &length in lengths {
            end = end.plus(length);
            starts.push(end);
        }
        JoinedDimension {
            key: Path::clone(key),
            block_starts: starts,
            is_first_element_omitted: false,
        }
    }
}

impl Placement {
    /// Returns whether the block of a member has length 0 on one of the axes. `place` contains the
    /// member's block on every axis.
    pub(crate) fn is_empty_at(&self, place: &[usize]) -> bool {
        self.axes.iter().zip(place).any(|(axis, &block)| {
            let length = |dim: &JoinedDimension| {
                let end = dim.block_start(block.saturating_add(1));
                end.minus_or_zero(dim.block_start(block))
            };
            !axis.dims.is_empty() && axis.dims.iter().all(|dim| length(dim) == 0)
        })
    }

    /// Returns the approximate memory of the placement, in bytes.
    pub(crate) fn weight(&self) -> u64 {
        let places = self.member_blocks.iter().map(|place| size_of_val(&**place));
        let axes = self.axes.iter().flat_map(|axis| &axis.dims);
        let axes = axes.map(|dim| size_of_val(&*dim.block_starts));
        let own = size_of::<Vec<usize>>().times(2);
        to_u64(places.map(|place| place.plus(own)).chain(axes).sum())
    }

    /// Finds the joined dimension with this key. Returns the index of its axis, and its index in
    /// the axis.
    pub(crate) fn find_dimension(&self, key: &[u8]) -> Option<(usize, usize)> {
        let axes = self.axes.iter().enumerate();
        axes.filter_map(|(number, axis)| {
            let place = axis.dims.iter().position(|dim| &*dim.key == key)?;
            Some((number, place))
        })
        .next()
    }

    /// Returns the joined dimension with the index `place` on the axis with the index `axis`.
    pub(crate) fn joined_dimension(
        &self,
        (axis, place): (usize, usize),
    ) -> Option<&JoinedDimension> {
        self.axes.get(axis)?.dims.get(place)
    }
}

/// A dimension that no member has.
#[derive(Debug)]
pub(crate) struct NewDimension {
    pub(crate) name: Path,
    pub(crate) values: NewDimensionValues,
}

/// The coordinates of a new dimension.
#[derive(Debug)]
pub(crate) enum NewDimensionValues {
    Texts(Vec<Vec<u8>>),
    Integers(Vec<i64>),
    /// Times in nanoseconds since 1970-01-01. In each member, the variable whose path is the name
    /// of the dimension contains the time.
    Times(Vec<i128>),
}

impl NewDimensionValues {
    pub(crate) fn len(&self) -> usize {
        match self {
            NewDimensionValues::Texts(values) => values.len(),
            NewDimensionValues::Integers(values) => values.len(),
            NewDimensionValues::Times(values) => values.len(),
        }
    }
}

impl Placement {
    /// Creates the placement of this number of members without any axis.
    pub(crate) fn without_axes(members: usize) -> Self {
        Placement {
            axes: Vec::new(),
            member_blocks: vec![Vec::new(); members],
            ..Placement::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The arrays `indptr` of three matrices with 2, 0 and 3 rows: 3, 1 and 4 elements become 1 + 2
    /// + 0 + 3.
    #[test]
    fn later_blocks_omit_their_first_element() {
        let dim = JoinedDimension::new_omitting_first(&Path::from(&b"indptr"[..]), &[3, 1, 4]);
        assert_eq!(dim.block_starts, [0, 3, 3, 6]);
        assert_eq!([0, 1, 2].map(|block| dim.omitted_count(block)), [0, 1, 1]);
        let whole = JoinedDimension::new(&Path::from(&b"data"[..]), &[3, 1, 4]);
        assert_eq!(
            (whole.block_starts.last(), whole.omitted_count(1)),
            (Some(&8), 0)
        );
    }
}
