//! Datasets: the messages of an object header that together describe an array (HDF5 3.0, IV.A.2).

use std::sync::Arc;

use crate::error::{Error, Result};
use crate::hdf5::file::context::Context;
use crate::hdf5::file::number_form::Address;
use crate::hdf5::index::btree_v1::BtreeV1Index;
use crate::hdf5::index::btree_v2::BtreeV2Index;
use crate::hdf5::index::extensible_array::ExtensibleArray;
use crate::hdf5::index::fixed_array::FixedArray;
use crate::hdf5::index::implicit::ImplicitIndex;
use crate::hdf5::index::single::SingleChunkIndex;
use crate::hdf5::index::{ChunkGeometry, UnwrittenIndex};
use crate::hdf5::message::data_layout::{self, ChunkIndexKind, ChunkedLayout, DataLayout};
use crate::hdf5::message::{
    dataspace, datatype, external_files, fill_value, filter_pipeline, kind,
};
use crate::hdf5::object_header::{ObjectHeader, RawMessage};
use crate::hdf5::virtual_layout;
use crate::model::array::{Fill, Layout, Mappings, Storage};
use crate::model::storage::{ChunkGrid, ChunkIndex, Pipeline, StoredExtent};
use crate::model::{Array, Datatype, Shape};
use crate::source::local::raw_file::RawFile;
use crate::wire::{Count, Extent, to_u64};

/// A reader of the header messages of one dataset.
pub(crate) struct DatasetReader<'a> {
    /// The context for reading the dataset's file.
    pub(crate) context: &'a Context,
    /// The dataset's header.
    pub(crate) header: &'a ObjectHeader,
}

impl DatasetReader<'_> {
    /// Reads the array that the header describes. If only the storage has an error, the error
    /// becomes the value of the array's `storage`, so that type and extent are still available.
    ///
    /// # Errors
    /// Fails if the datatype, the dataspace or the layout message is missing or damaged.
    pub(crate) fn read(&self) -> Result<Array> {
        let datatype = self.read_datatype()?;
        let layout = self.read_layout()?;
        let (shape, mappings) = self.read_extent(&layout)?;
        let fill = self.read_fill_value(&datatype);
        let pipeline = self.read_pipeline();
        let chunk_shape = match &layout {
            DataLayout::Chunked(chunks) => Some(chunks.shape.clone()),
            _ => None,
        };
        let is_external = self.header.find(kind::EXTERNAL_FILES).is_some();
        let storage = match (&fill, &pipeline, mappings) {
            (Err(error), ..) | (_, Err(error), _) => Err(error.clone()),
            (.., Err(error)) => Err(error),
            (Ok(_), Ok(pipeline), Ok(mappings)) => {
                let parts = StorageParts {
                    reader: self,
                    datatype: &datatype,
                    shape: &shape,
                };
                parts.storage(&layout, pipeline, mappings, is_external)
            }
        };
        Ok(Array {
            layout: layout_kind(&layout, is_external),
            datatype,
            shape,
            fill: fill.unwrap_or(Fill::Zero),
            chunk_shape,
            pipeline: pipeline.unwrap_or_default(),
            storage,
        })
    }

    /// Returns the dataspace, and the mappings of a virtual dataset, whose extent may depend on its
    /// sources. Other datasets have no mappings.
    fn read_extent(&self, layout: &DataLayout) -> Result<(Shape, Result<Mappings>)> {
        let shape = self.read_shape()?;
        let &DataLayout::Virtual {
            collection: Some(collection),
            index,
        } = layout
        else {
            return Ok((shape, Ok(Mappings::default())));
        };
        let made = virtual_layout::read(self.context, &shape, collection, index);
        Ok(match made {
            Ok((shape, mappings)) => (shape, Ok(mappings)),
            Err(error) => (shape, Err(error)),
        })
    }

    /// Returns the datatype of a dataset or of a committed datatype.
    pub(crate) fn read_datatype(&self) -> Result<Datatype> {
        let body = self
            .context
            .shared
            .resolve(&self.required_message(kind::DATATYPE, "datatype message")?)?;
        let mut cursor = body.cursor("datatype message");
        datatype::read(&mut cursor, self.context.metadata.size_of_offsets())
    }

    fn read_shape(&self) -> Result<Shape> {
        let body = self
            .context
            .shared
            .resolve(&self.required_message(kind::DATASPACE, "dataspace message")?)?;
        dataspace::read(
            &self.context.metadata,
            &mut body.cursor("dataspace message"),
        )
    }

    fn read_layout(&self) -> Result<DataLayout> {
        let message = self.required_message(kind::DATA_LAYOUT, "data layout message")?;
        let body = self.context.shared.resolve(&message)?;
        data_layout::read(
            &self.context.metadata,
            &mut body.cursor("data layout message"),
        )
    }

    /// Reads the fill value. If the header contains both the old and the new fill value message,
    /// the new one is used.
    fn read_fill_value(&self, datatype: &Datatype) -> Result<Fill> {
        let new = self.header.find(kind::FILL_VALUE);
        let Some(message) = new.or_else(|| self.header.find(kind::FILL_VALUE_OLD)) else {
            return Ok(Fill::Zero);
        };
        let body = self.context.shared.resolve(&message)?;
        fill_value::read(
            message.kind,
            datatype.size,
            &mut body.cursor("fill value message"),
        )
    }

    fn read_pipeline(&self) -> Result<Pipeline> {
        let Some(message) = self.header.find(kind::FILTER_PIPELINE) else {
            return Ok(Pipeline::default());
        };
        let body = self.context.shared.resolve(&message)?;
        filter_pipeline::read(&mut body.cursor("filter pipeline message"))
    }

    fn required_message(&self, kind: u16, name: &str) -> Result<RawMessage<'_>> {
        let missing = || Error::corrupt(format!("{name}: missing"), self.header.at);
        self.header.find(kind).ok_or_else(missing)
    }
}

fn layout_kind(layout: &DataLayout, is_external: bool) -> Layout {
    match layout {
        DataLayout::Compact(_) => Layout::Compact,
        DataLayout::Contiguous { .. } if is_external => Layout::External,
        DataLayout::Contiguous { .. } => Layout::Contiguous,
        DataLayout::Chunked(_) => Layout::Chunked,
        DataLayout::Virtual { .. } => Layout::Virtual,
    }
}

/// The inputs for constructing the [`Storage`] of a dataset.
struct StorageParts<'a> {
    reader: &'a DatasetReader<'a>,
    datatype: &'a Datatype,
    shape: &'a Shape,
}

impl StorageParts<'_> {
    fn storage(
        &self,
        layout: &DataLayout,
        pipeline: &Pipeline,
        mappings: Mappings,
        is_external: bool,
    ) -> Result<Storage> {
        let elements = self.shape.elements()?;
        let element_size = u64::from(self.datatype.size);
        let bytes = elements
            .checked_mul(element_size)
            .ok_or_else(|| Error::limit("size of a dataset", u64::MAX))?;
        self.check_size(layout, bytes)?;
        if bytes == 0 {
            return Ok(Storage::Empty);
        }
        match layout {
            DataLayout::Compact(elements) => Ok(Storage::Inline(elements.as_slice().into())),
            DataLayout::Contiguous { .. } if is_external => self.external_storage(bytes),
            DataLayout::Contiguous { address, .. } => self.contiguous_storage(*address, bytes),
            DataLayout::Chunked(chunks) => self.chunked_storage(chunks, pipeline),
            DataLayout::Virtual { .. } => Ok(Storage::Virtual(mappings)),
        }
    }

    /// Checks that a compact or contiguous layout stores `bytes` bytes, which is the size of all
    /// elements. Otherwise, the extent may be wrong.
    fn check_size(&self, layout: &DataLayout, bytes: u64) -> Result<()> {
        let stored = match layout {
            DataLayout::Compact(elements) => to_u64(elements.len()),
            &DataLayout::Contiguous {
                address: Some(_),
                size: Some(size),
            } => size,
            _ => return Ok(()),
        };
        if stored == bytes {
            Ok(())
        } else {
            Err(Error::corrupt(
                format!("data layout: {stored} bytes for {bytes} bytes of elements"),
                self.reader.header.at,
            ))
        }
    }

    fn contiguous_storage(&self, address: Option<Address>, bytes: u64) -> Result<Storage> {
        let Some(address) = address else {
            return Ok(Storage::Fill);
        };
        let offset = address.offset();
        let metadata = &self.reader.context.metadata;
        if offset < metadata.min_data_offset() {
            return Err(Error::corrupt(
                "contiguous data: within the superblock",
                offset,
            ));
        }
        let source = Arc::clone(metadata.source());
        let extent = Extent::new(offset, bytes, "contiguous data")?;
        Ok(Storage::Extents(vec![StoredExtent { source, extent }]))
    }

    /// Returns the extents of the external raw files, one after another, until all `bytes` bytes of
    /// elements are covered.
    fn external_storage(&self, bytes: u64) -> Result<Storage> {
        let message = self
            .reader
            .required_message(kind::EXTERNAL_FILES, "external data files message")?;
        let body = self.reader.context.shared.resolve(&message)?;
        let mut cursor = body.cursor("external data files message");
        let mut missing = bytes;
        let mut extents = Vec::new();
        for slot in external_files::read(&self.reader.context.metadata, &mut cursor)? {
            let length = slot.size.min(missing);
            if length == 0 {
                continue;
            }
            let Some(extent) = Extent::checked(slot.offset, length) else {
                let what = "external data files: a part is after the end of all files";
                return Err(Error::corrupt(what, message.at));
            };
            missing = missing.minus_or_zero(length);
            let neighbours = Arc::clone(self.reader.context.other_files.neighbours());
            let source = Arc::new(RawFile::new(neighbours, slot.name));
            extents.push(StoredExtent { source, extent });
        }
        match missing {
            0 => Ok(Storage::Extents(extents)),
            _ => Err(Error::corrupt(
                "external data files: fewer bytes than elements",
                message.at,
            )),
        }
    }

    fn chunked_storage(&self, chunks: &ChunkedLayout, pipeline: &Pipeline) -> Result<Storage> {
        let at = self.reader.header.at;
        let Shape::Simple { dims, max } = self.shape else {
            return Err(Error::corrupt("chunks without dimensions", at));
        };
        if chunks.shape.len() != dims.len() {
            return Err(Error::corrupt(
                "the rank of the chunks differs from the dataspace",
                at,
            ));
        }
        if chunks.element_size != u64::from(self.datatype.size) {
            return Err(Error::corrupt(
                "the element size of the chunks differs from the datatype",
                at,
            ));
        }
        let chunk_bytes = chunks
            .shape
            .iter()
            .try_fold(chunks.element_size, |bytes, &extent| {
                bytes.checked_mul(extent)
            })
            .ok_or_else(|| Error::limit("size of a chunk", u64::MAX))?;
        let shape = chunks.shape.clone();
        let geometry = ChunkGeometry::new(dims.clone(), max.clone(), shape, chunk_bytes, at)?;
        Ok(Storage::Chunked(ChunkGrid {
            source: Arc::clone(self.reader.context.metadata.source()),
            min_offset: self.reader.context.metadata.min_data_offset(),
            chunk_shape: chunks.shape.clone(),
            index: self.open_chunk_index(chunks, geometry, !pipeline.0.is_empty())?,
            pipeline: pipeline.clone(),
            has_unfiltered_edge_chunks: chunks.has_unfiltered_edge_chunks,
        }))
    }

    fn open_chunk_index(
        &self,
        chunks: &ChunkedLayout,
        geometry: ChunkGeometry,
        filtered: bool,
    ) -> Result<Arc<dyn ChunkIndex>> {
        const HEADER_LOOK: u64 = 128;
        let metadata = &self.reader.context.metadata;
        if let (Some(at), true) = (chunks.address, chunks.index.has_header()) {
            metadata.check_available(at.offset(), HEADER_LOOK)?;
        }
        let metadata = metadata.fresh_view();
        Ok(match (chunks.index, chunks.address) {
            (ChunkIndexKind::Single(chunk), address) => Arc::new(SingleChunkIndex::new(
                address,
                chunk,
                geometry,
                self.reader.header.at,
            )?),
            (_, None) => Arc::new(UnwrittenIndex),
            (ChunkIndexKind::BtreeV1, Some(root)) => {
                Arc::new(BtreeV1Index::new(metadata, root, geometry, filtered))
            }
            (ChunkIndexKind::Implicit, Some(at)) => {
                Arc::new(ImplicitIndex::new(metadata, at, geometry)?)
            }
            (ChunkIndexKind::FixedArray, Some(at)) => {
                Arc::new(FixedArray::open(metadata, at, geometry, filtered)?)
            }
            (ChunkIndexKind::ExtensibleArray, Some(at)) => {
                Arc::new(ExtensibleArray::open(metadata, at, geometry, filtered)?)
            }
            (ChunkIndexKind::BtreeV2, Some(at)) => {
                Arc::new(BtreeV2Index::open(metadata, at, geometry, filtered)?)
            }
        })
    }
}
