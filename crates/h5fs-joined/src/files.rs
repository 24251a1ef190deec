//! A virtual array that contains, for each row of a joined table, the name of the file of the row.

use std::sync::Arc;

use h5fs_reader::error::{Error, Result};
use h5fs_reader::memory::cancel::CancelToken;
use h5fs_reader::model::array::{
    Array, Fill, Layout, Mapping, Mappings, OpenVirtualSource, Storage, VirtualSource,
};
use h5fs_reader::model::region::{Region, RegionAxis};
use h5fs_reader::model::storage::Pipeline;
use h5fs_reader::model::{Datatype, Shape};
use h5fs_reader::wire::{Count, to_u64, to_usize};

use crate::limits;
use crate::member_mapping::PlacedMembers;
use crate::members::Members;
use crate::members::content::text_type;
use crate::paths::Path;

/// The names of the files whose rows are joined, one name for each row.
#[derive(Debug)]
pub(super) struct FileNames {
    pub(super) placed_members: Arc<PlacedMembers>,
    /// The joined dimension of the rows: the index of its axis, and its index in the axis.
    pub(super) row_dimension: (usize, usize),
}

impl FileNames {
    /// Returns a string type whose length is the length of the longest file name.
    pub(super) fn datatype(&self, members: &Members) -> Datatype {
        let lengths = self.placed_members.members.iter();
        let lengths = lengths.map(|&member| members.list[member].name.len());
        text_type(lengths.max().unwrap_or(0).max(1))
    }

    /// Returns one mapping for each file that has rows. The mapping repeats the file's name.
    ///
    /// # Errors
    /// `Limit` if there are too many files.
    pub(super) fn mappings(&self, members: &Members, datatype: &Datatype) -> Result<Mappings> {
        let count = to_u64(self.placed_members.members.len());
        let each = to_u64(size_of::<RepeatedFileName>() + size_of::<RegionAxis>() + 100);
        Error::check_limit(
            count.times(each.plus(datatype.size.into())),
            limits::VIRTUAL_BYTES,
            "bytes of the parts of a joined array",
        )?;
        let placement = &self.placed_members.placement;
        let members_with_places = self
            .placed_members
            .members
            .iter()
            .zip(&placement.member_blocks);
        let parts = members_with_places.filter_map(|(&member, place)| {
            let (dim, block) = (
                placement.joined_dimension(self.row_dimension)?,
                *place.get(self.row_dimension.0)?,
            );
            let start = dim.block_start(block);
            let rows = dim
                .block_start(block.saturating_add(1))
                .minus_or_zero(start);
            let axis = RegionAxis {
                start,
                ..RegionAxis::all_indices(rows)
            };
            (rows > 0).then(|| Mapping {
                region: Region::Regular(vec![axis]),
                source_region: Region::All,
                source: Arc::new(RepeatedFileName {
                    name: Path::clone(&members.list[member].name),
                    rows,
                    datatype: datatype.clone(),
                }),
            })
        });
        Ok(parts.collect())
    }
}

/// A virtual source with one element for each row of a file. Every element is the name of that
/// file.
#[derive(Debug)]
struct RepeatedFileName {
    name: Path,
    rows: u64,
    datatype: Datatype,
}

impl VirtualSource for RepeatedFileName {
    fn open(&self, _cancel: &CancelToken) -> Result<Option<OpenVirtualSource>> {
        let mut name = self.name.to_vec();
        name.resize(to_usize(self.datatype.size.into())?, 0);
        let array = Array {
            datatype: self.datatype.clone(),
            shape: Shape::fixed(vec![self.rows]),
            fill: Fill::Value(name.into()),
            layout: Layout::Contiguous,
            chunk_shape: None,
            pipeline: Pipeline::default(),
            storage: Ok(Storage::Fill),
        };
        Ok(Some(OpenVirtualSource {
            array: Arc::new(array),
            file: None,
            recode: None,
        }))
    }

    fn name(&self) -> String {
        self.name.escape_ascii().to_string()
    }

    fn is_in_other_file(&self) -> bool {
        false
    }

    fn weight(&self) -> u64 {
        to_u64(size_of::<Self>() + self.name.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_row_contains_its_file_name() {
        let source = RepeatedFileName {
            name: Path::from(&b"a.h5"[..]),
            rows: 3,
            datatype: text_type(6),
        };
        let array = source.open(&CancelToken::default()).unwrap().unwrap().array;
        assert_eq!(array.shape.dims(), [3]);
        assert_eq!(array.fill, Fill::Value(b"a.h5\0\0"[..].into()));
    }
}
