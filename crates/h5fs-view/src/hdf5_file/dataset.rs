//! A dataset of the computed file: its type, its shape, and how its bytes are computed.

use std::collections::HashMap;
use std::sync::Arc;

use h5fs_reader::array::{CancelToken, Reader};
use h5fs_reader::error::{Error, Result};
use h5fs_reader::hdf5::encode::fill_value::{self, FillValue};
use h5fs_reader::hdf5::encode::{dataspace, datatype};
use h5fs_reader::model::array::Fill;
use h5fs_reader::model::attribute::AttributeContent;
use h5fs_reader::model::{Array, Datatype, NodeId, Shape, shape};
use h5fs_reader::wire::to_u64;

use crate::elements::raw::RawElements;
use crate::hdf5_file::element_source::ElementSource;
use crate::hdf5_file::elements::{AbsenceReason, ElementConversion, OrAbsent, computed_datatype};
use crate::hdf5_file::heap_layout::{ElementSizes, HeapLayout};
use crate::hdf5_file::source::Hdf5Source;
use crate::limits;

/// The reason why an object is absent whose type or shape the format cannot express.
pub(super) const UNKNOWN_TYPE: AbsenceReason = "a type or a shape that HDF5 1.8 does not have";

/// A dataset of the computed file.
pub(super) struct Dataset {
    pub(super) node: NodeId,
    pub(super) datatype: Datatype,
    pub(super) shape: Shape,
    /// The fill value, one element of the source. `None` for the default, zero.
    pub(super) fill: Option<AttributeContent>,
    /// Bytes of an element of the source.
    stored_size: u64,
    pub(super) conversion: ElementConversion,
    /// The positions of the values to which elements point.
    pub(super) heap: Option<HeapLayout>,
    /// Number of bytes of all elements.
    pub(super) element_bytes: u64,
    /// The chunks, if the first dimension is unlimited.
    pub(super) chunks: Option<RowChunks>,
}

/// Chunks of whole rows, stored one after another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RowChunks {
    /// Number of rows (indices of the first dimension) in a chunk.
    pub(super) rows: u64,
    /// Number of bytes of a chunk.
    pub(super) bytes: u64,
    pub(super) count: u64,
}

/// The elements of a dataset, open for reading.
pub(super) struct OpenElements {
    pub(super) reader: Arc<Reader>,
    /// The same bytes, as a file whose reads in order decode each chunk once.
    pub(super) file: RawElements,
}

impl Dataset {
    /// Plans the dataset for the array of `node`. Returns the reason if the computed file cannot have
    /// it.
    ///
    /// # Errors
    /// Fails if a variable-length element cannot be read now, or if the request is cancelled.
    pub(super) fn plan(
        source: &Hdf5Source,
        node: NodeId,
        array: &Arc<Array>,
        cancel: &CancelToken,
    ) -> Result<OrAbsent<Self>> {
        let (stored_type, shape) = (&array.datatype, &array.shape);
        let Ok(elements) = shape.elements() else {
            return Ok(Err("more elements than a file can have"));
        };
        let typed = ElementConversion::from_datatype(stored_type)
            .and_then(|conversion| Ok((conversion, computed_datatype(stored_type)?)));
        let (conversion, datatype) = match typed {
            Ok(typed) => typed,
            Err(reason) => return Ok(Err(reason)),
        };
        if datatype::encode(&datatype).is_err() || dataspace::encode(shape).is_err() {
            return Ok(Err(UNKNOWN_TYPE));
        }
        let Some(element_bytes) = elements.checked_mul(datatype.size.into()) else {
            return Ok(Err("more bytes than a file can have"));
        };
        let chunks = RowChunks::from_shape(shape, datatype.size.into());
        let mut dataset = Dataset {
            node,
            shape: computed_shape(shape, chunks.is_some()),
            fill: match &array.fill {
                Fill::Value(element) if fill_value::encode(FillValue::Value(element)).is_ok() => {
                    Some(AttributeContent {
                        datatype: stored_type.clone(),
                        shape: Shape::fixed(Vec::new()),
                        elements: Arc::clone(element),
                    })
                }
                _ => None,
            },
            stored_size: stored_type.size.into(),
            datatype,
            conversion,
            heap: None,
            element_bytes,
            chunks,
        };
        if dataset.conversion.heap_parts() > 0 && elements > 0 {
            match dataset.measure_heap(source, array, elements, cancel)? {
                Ok(heap) => dataset.heap = Some(heap),
                Err(reason) => return Ok(Err(reason)),
            }
        }
        Ok(Ok(dataset))
    }

    /// Opens the elements of the dataset, which belong to `array`.
    ///
    /// # Errors
    /// Fails if the array cannot be read.
    pub(super) fn open(&self, source: &Hdf5Source, array: &Arc<Array>) -> Result<OpenElements> {
        let reader = (source.open_array)(self.node, array)?;
        Ok(OpenElements {
            file: RawElements::new(Arc::clone(&reader)),
            reader,
        })
    }

    fn measure_heap(
        &self,
        source: &Hdf5Source,
        array: &Arc<Array>,
        elements: u64,
        cancel: &CancelToken,
    ) -> Result<OrAbsent<HeapLayout>> {
        // As many bytes as the longest array of sequences has.
        let most = limits::VARIABLE_LENGTH_ELEMENTS.saturating_mul(16);
        if elements.saturating_mul(self.stored_size) > most {
            return Ok(Err("too many variable-length elements"));
        }
        if elements > limits::HDF5_FILE_MEASURED {
            cancel.require_heavy_slot()?;
        }
        let opened = match self.open(source, array) {
            Ok(opened) => opened,
            Err(error) if error.is_transient() => return Err(error),
            Err(_) => return Ok(Err("variable-length elements that cannot be read")),
        };
        let source = ElementSource {
            reader: &opened.reader,
            container: &*source.container,
            addresses: &HashMap::new(),
            cancel,
        };
        let sizes = ElementSizes {
            elements,
            stored_size: self.stored_size,
            size: self.datatype.size.into(),
        };
        HeapLayout::measure(&source, &self.conversion, sizes).map(Ok)
    }

    /// Returns the number of bytes that the elements take in the computed file. The last chunk is
    /// whole.
    pub(super) fn stored_bytes(&self) -> u64 {
        let chunks = self
            .chunks
            .map(|chunks| chunks.count.saturating_mul(chunks.bytes));
        chunks.unwrap_or(self.element_bytes)
    }

    /// Returns the memory in bytes that the description takes.
    pub(super) fn weight(&self) -> u64 {
        let own = to_u64(size_of::<Dataset>() + 32 * self.shape.dims().len());
        let fill = self.fill.as_ref();
        let fill = fill.map_or(0, |fill| to_u64(fill.elements.len()));
        let heap = self.heap.as_ref().map_or(0, HeapLayout::weight);
        let types = self
            .datatype
            .weight()
            .saturating_add(self.conversion.weight());
        [own, fill, heap, types]
            .into_iter()
            .fold(0, u64::saturating_add)
    }
}

/// Returns the shape in the computed file. Only the first dimension may stay unlimited.
fn computed_shape(shape: &Shape, is_unlimited: bool) -> Shape {
    match shape {
        Shape::Null => Shape::Null,
        Shape::Simple { dims, .. } => {
            let mut max: Vec<Option<u64>> = dims.iter().copied().map(Some).collect();
            if let Some(first) = max.first_mut().filter(|_| is_unlimited) {
                *first = None;
            }
            Shape::Simple {
                dims: dims.clone(),
                max,
            }
        }
    }
}

impl RowChunks {
    /// Number of bytes of a small chunk. A chunk has more only if there would be too many chunks.
    const SMALL: u64 = 1 << 20;

    /// Number of chunks for which one node of a B-tree suffices.
    const FEW: u64 = 64;

    /// Maximum number of bytes of a chunk, which the format stores in 32 bits.
    const LARGEST: u64 = u32::MAX as u64;

    /// Maximum number of chunks. The index of this many chunks has about a mebibyte.
    const MOST: u64 = 16_384;

    /// Returns the chunks of an array of this shape whose elements have `element_size` bytes in the
    /// computed file. Returns `None` unless the first dimension is unlimited, and for arrays of
    /// more than 64 TiB.
    fn from_shape(shape: &Shape, element_size: u64) -> Option<Self> {
        let Some(None) = shape.max().first() else {
            return None;
        };
        let (&count, inner) = shape.dims().split_first()?;
        let row = shape::product(inner).ok()?.checked_mul(element_size)?;
        if row == 0 || row > Self::LARGEST {
            return None;
        }
        let rows = (Self::SMALL / row).max(count.div_ceil(Self::FEW)).max(1);
        let rows = rows.min(Self::LARGEST / row).min(count.max(1));
        let chunks = RowChunks {
            rows,
            bytes: rows.saturating_mul(row),
            count: count.div_ceil(rows),
        };
        Some(chunks).filter(|chunks| chunks.count <= Self::MOST)
    }

    /// Returns the shape of a chunk of an array with the dimensions `dims`.
    pub(super) fn shape(&self, dims: &[u64]) -> Vec<u64> {
        let mut shape = dims.to_vec();
        if let Some(first) = shape.first_mut() {
            *first = self.rows;
        }
        shape
    }
}

/// Returns the error of reading a dataset whose node is no array any more.
pub(super) fn missing_array_error() -> Error {
    Error::corrupt("computed HDF5 file: an object is no array any more", None)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn growing(dims: &[u64]) -> Shape {
        let mut max: Vec<Option<u64>> = dims.iter().copied().map(Some).collect();
        max[0] = None;
        let dims = dims.to_vec();
        Shape::Simple { dims, max }
    }

    #[test]
    fn an_unlimited_first_dimension_has_chunks_of_whole_rows() {
        let chunks = |dims: &[u64], size| RowChunks::from_shape(&growing(dims), size);
        let few = RowChunks {
            rows: 10,
            bytes: 240,
            count: 1,
        };
        assert_eq!(chunks(&[10, 3], 8), Some(few));
        let many = chunks(&[1 << 40], 1).unwrap();
        assert_eq!(many.bytes, u64::from(u32::MAX));
        assert_eq!(many.count, (1_u64 << 40).div_ceil(many.rows));
        // 640 MiB in chunks of 10 MiB
        assert_eq!(chunks(&[640, 1 << 20], 1).unwrap().count, 64);
        assert_eq!(chunks(&[0, 5], 4).unwrap().count, 0);
        assert_eq!(chunks(&[5, 0], 4), None);
        assert_eq!(RowChunks::from_shape(&Shape::fixed(vec![4]), 4), None);
        assert_eq!(RowChunks::from_shape(&Shape::Null, 4), None);
    }

    #[test]
    fn an_array_of_too_many_chunks_is_stored_contiguously() {
        assert!(RowChunks::from_shape(&growing(&[1 << 45]), 1).is_some());
        assert_eq!(RowChunks::from_shape(&growing(&[1 << 57]), 1), None);
    }

    #[test]
    fn a_row_of_more_than_a_chunk_is_stored_contiguously() {
        assert_eq!(RowChunks::from_shape(&growing(&[2, 1 << 32]), 1), None);
    }
}
