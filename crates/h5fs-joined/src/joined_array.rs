//! Describes an array of the joined file.

use std::sync::Arc;

use h5fs_reader::model::array::{Array, Fill, Layout, Storage};
use h5fs_reader::model::storage::Pipeline;
use h5fs_reader::model::{Datatype, Shape};
use h5fs_reader::wire::{Count, to_u64};

use crate::files::FileNames;
use crate::member_mapping::MappedArray;
use crate::members::Members;
use crate::members::skeleton::NamedAttribute;
use crate::paths::Path;

/// An array of the joined file, with its attributes and the origin of its elements.
#[derive(Debug)]
pub(super) struct JoinedArray {
    pub(super) path: Path,
    pub(super) datatype: Datatype,
    pub(super) dims: Vec<OutputDimension>,
    pub(super) fill: Fill,
    pub(super) chunk_shape: Option<Vec<u64>>,
    /// Whether the array is a dimension scale, with or without values.
    pub(super) is_scale: bool,
    /// Whether the array is a dimension scale without values.
    pub(super) is_scale_without_values: bool,
    pub(super) attributes: Vec<NamedAttribute>,
    /// The names of attributes that refer to other objects of the joined file, each with the path
    /// of the object.
    pub(super) reference_attributes: Vec<(Vec<u8>, Path)>,
    pub(super) content: ArrayContent,
}

/// A dimension of a joined array.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct OutputDimension {
    /// The key that identifies the dimension in the joined file: the path of its scale, otherwise
    /// its label, otherwise a key that no other dimension has.
    pub(super) key: Path,
    pub(super) has_name: bool,
    pub(super) length: u64,
    /// Whether the members are joined along the dimension, so that another member would make it
    /// longer.
    pub(super) is_joined: bool,
}

/// The origin of the elements of a joined array.
#[derive(Debug)]
pub(super) enum ArrayContent {
    /// The elements are in memory.
    InMemory(Arc<[u8]>),
    /// All elements are the fill value.
    AllFill,
    /// The elements are read from the members.
    Mapped(MappedArray),
    /// Each element is the name of the file of its row.
    FileNames(FileNames),
}

impl JoinedArray {
    pub(super) fn shape(&self) -> Vec<u64> {
        self.dims.iter().map(|dim| dim.length).collect()
    }

    /// Returns the [`Array`] through which the elements are read, from `members` or from memory.
    pub(super) fn array(&self, members: &Arc<Members>) -> Array {
        let (storage, layout) = match &self.content {
            ArrayContent::InMemory(elements) => {
                (Ok(Storage::Inline(Arc::clone(elements))), Layout::Compact)
            }
            ArrayContent::AllFill => (Ok(Storage::Fill), Layout::Contiguous),
            ArrayContent::FileNames(files) => {
                let mappings = files.mappings(members, &self.datatype);
                (mappings.map(Storage::Virtual), Layout::Virtual)
            }
            ArrayContent::Mapped(mapped) => {
                let mappings = mapped.mappings(members);
                (mappings.map(Storage::Virtual), Layout::Virtual)
            }
        };
        let shape = self.shape();
        // netCDF's tools need an unlimited dimension to compute means of the records.
        let is_unlimited =
            |at: usize| at == 0 && self.dims.first().is_some_and(|dim| dim.is_joined);
        let numbered = shape.iter().enumerate();
        let max = numbered.map(|(at, &length)| (!is_unlimited(at)).then_some(length));
        let max = max.collect();
        let chunk_shape = self.chunk_shape.clone();
        let chunk_shape =
            chunk_shape.filter(|chunk| chunk.len() == shape.len() && !chunk.contains(&0));
        Array {
            datatype: self.datatype.clone(),
            shape: Shape::Simple { dims: shape, max },
            fill: self.fill.clone(),
            layout,
            chunk_shape: chunk_shape.filter(|_| layout == Layout::Virtual),
            pipeline: Pipeline::default(),
            storage,
        }
    }

    /// Returns the approximate memory of the array description, in bytes.
    pub(super) fn weight(&self) -> u64 {
        let attributes = self.attributes.iter();
        let attributes = attributes.map(|(name, value)| name.len() + value.elements.len() + 150);
        let elements = match &self.content {
            ArrayContent::InMemory(elements) => to_u64(elements.len()),
            ArrayContent::Mapped(mapped) => mapped.weight(),
            _ => 0,
        };
        to_u64(size_of::<JoinedArray>() + 200 + attributes.sum::<usize>())
            .plus(elements)
            .plus(self.datatype.weight())
    }
}
