//! A chunk of the store as a file. It has the elements of the whole chunk shape in C order,
//! including elements outside of the array.

use std::ops::Range;
use std::sync::Arc;

use h5fs_reader::array::{Bytes, CancelToken, Reader};
use h5fs_reader::error::{Error, Result};
use h5fs_reader::model::Container;
use h5fs_reader::model::value::TextContext;
use h5fs_reader::wire::{to_u64, to_usize};

use crate::limits;
use crate::text_files::counted_text::TextUnits;
use crate::view::View;
use crate::zarr::array::ZarrArray;
use crate::zarr::block::SelectedBlock;

/// The elements of one chunk of the store, in the file's datatype and encoding: not yet converted
/// to the store's data type.
pub struct ChunkElements {
    content: ElementSource,
    /// Total size of the elements in bytes.
    length: u64,
}

/// The source of the elements of a chunk.
enum ElementSource {
    /// The file's chunk at these grid indices.
    Chunk(Arc<Reader>, Vec<u64>),
    /// A selection from the array.
    Block(SelectedBlock),
    /// Nothing is stored for the chunk, and each element is this fill value.
    Fill(Vec<u8>),
}

impl ChunkElements {
    /// Finds where the elements of the chunk at the grid indices `place` come from.
    ///
    /// # Errors
    /// Fails if the elements are known to be unreadable.
    pub fn new(
        array: &ZarrArray,
        place: &[u64],
        reader: impl FnOnce() -> Result<Arc<Reader>>,
    ) -> Result<Self> {
        let own = array.file_chunk_indices(place);
        let size = u64::from(array.array.datatype.size);
        let shape = array.file_chunk_indices(&array.chunk_shape);
        let elements = h5fs_reader::model::shape::product(shape)?;
        let length = elements.checked_mul(size);
        let length = length.ok_or_else(|| Error::limit("size of a chunk", u64::MAX))?;
        let is_stored = array.stored_grid().is_none() || array.has_stored_chunk(place)?;
        let content = if !is_stored {
            ElementSource::Fill(array.element_fill_value())
        } else if array.has_stored_chunk_shape() && array.stored_grid().is_some() {
            ElementSource::Chunk(reader()?, own.to_vec())
        } else {
            ElementSource::Block(SelectedBlock::new(
                reader()?,
                shape,
                &array.chunk_extents(place),
            )?)
        };
        Ok(ChunkElements { content, length })
    }

    /// Reads at most `length` bytes of the elements from `offset` on. Returns fewer bytes only at
    /// the end of the chunk.
    fn read(&self, offset: u64, length: usize, cancel: &CancelToken) -> Result<Bytes> {
        let end = offset.saturating_add(to_u64(length)).min(self.length);
        if offset >= end {
            return Ok(Bytes::from(Vec::new()));
        }
        match &self.content {
            ElementSource::Chunk(reader, place) => reader.read_chunk(place, offset, length, cancel),
            ElementSource::Block(block) => block.read(offset, end, cancel),
            ElementSource::Fill(element) => {
                let size = to_u64(element.len()).max(1);
                let bytes = (offset..end).map(|at| {
                    let within = to_usize(at % size).unwrap_or_default();
                    element.get(within).copied().unwrap_or_default()
                });
                Ok(bytes.collect::<Vec<_>>().into())
            }
        }
    }

    /// Returns the bytes that [`read`](Self::read) would return, if they are available without
    /// waiting.
    fn read_ready(&self, offset: u64, length: usize) -> Option<Bytes> {
        match &self.content {
            ElementSource::Chunk(reader, place) => reader.try_read_chunk(place, offset, length),
            ElementSource::Block(_) | ElementSource::Fill(_) => None,
        }
    }

    fn is_encoded(&self) -> bool {
        match &self.content {
            ElementSource::Chunk(reader, _) => reader.is_slow_to_read(),
            ElementSource::Block(block) => block.is_encoded(),
            ElementSource::Fill(_) => false,
        }
    }
}

/// The file of a chunk whose elements all have the same size in the store.
pub struct ChunkFile {
    array: ZarrArray,
    stored: ChunkElements,
    length: u64,
}

impl ChunkFile {
    /// Creates the file of a chunk. `stored` are its elements in the file's datatype. Returns
    /// `None` if the elements are texts.
    pub fn new(array: ZarrArray, stored: ChunkElements) -> Option<Self> {
        let length = array.chunk_bytes()?;
        Some(ChunkFile {
            array,
            stored,
            length,
        })
    }

    /// Converts the elements that overlap the bytes `offset..end` of the chunk file.
    fn convert_bytes(&self, offset: u64, end: u64, cancel: &CancelToken) -> Result<Bytes> {
        let size = to_u64(self.array.data_type.size().unwrap_or(1));
        let elements = offset / size..end.div_ceil(size);
        let before = to_usize(offset - elements.start * size)?;
        let context = TextContext::without_pointers(0);
        let mut out = Vec::with_capacity(to_usize((elements.end - elements.start) * size)?);
        convert_elements(
            &self.array,
            &self.stored,
            elements,
            &context,
            cancel,
            &mut out,
        )?;
        out.drain(..before);
        out.truncate(to_usize(end - offset)?);
        Ok(out.into())
    }
}

/// Reads the elements `elements` of a chunk, converts them to the store's data type, and appends
/// them.
fn convert_elements(
    array: &ZarrArray,
    stored: &ChunkElements,
    elements: Range<u64>,
    context: &TextContext<'_>,
    cancel: &CancelToken,
    out: &mut Vec<u8>,
) -> Result<()> {
    /// Amount of the file's data to read at a time, in bytes.
    const BATCH_BYTES: u64 = 1 << 20;
    let record = u64::from(array.array.datatype.size).max(1);
    let size = array.data_type.stored_size();
    let count = array.field.count()?.max(1);
    let is_dense = array.field.is_dense(size);
    let mut at = elements.start;
    while at < elements.end {
        let before = at;
        let first = at / count;
        let last = (elements.end - 1) / count;
        let records = (BATCH_BYTES / record).clamp(1, last - first + 1);
        let length = to_usize(records * record)?;
        let bytes = stored.read(first * record, length, cancel)?;
        if bytes.len() != length {
            return Err(Error::corrupt("chunk: fewer elements than its shape", None));
        }
        for (number, record) in (first..).zip(bytes.chunks_exact(to_usize(record)?)) {
            let inside = at - number * count..(elements.end - number * count).min(count);
            let run = to_usize(inside.end - inside.start)?;
            if is_dense {
                let start = array.field.element_offset(inside.start);
                array
                    .data_type
                    .convert(element_bytes(record, start, run * size)?, context, out)?;
            } else {
                for place in inside.clone() {
                    let start = array.field.element_offset(place);
                    array
                        .data_type
                        .convert(element_bytes(record, start, size)?, context, out)?;
                }
            }
            at += inside.end - inside.start;
        }
        cancel.next_batch(before, at)?;
    }
    Ok(())
}

fn element_bytes(record: &[u8], start: usize, length: usize) -> Result<&[u8]> {
    let part = record.get(start..start.saturating_add(length));
    part.ok_or_else(|| Error::corrupt("compound: a field outside its record", None))
}

impl View for ChunkFile {
    fn length(&self) -> u64 {
        self.length
    }

    fn read_for(&self, offset: u64, length: usize, cancel: &CancelToken) -> Result<Bytes> {
        if self.array.has_same_bytes() {
            return self.stored.read(offset, length, cancel);
        }
        let end = offset.saturating_add(to_u64(length)).min(self.length);
        if offset < end {
            self.convert_bytes(offset, end, cancel)
        } else {
            Ok(Bytes::from(Vec::new()))
        }
    }

    fn read_now(&self, offset: u64, length: usize) -> Result<Option<Bytes>> {
        Ok(if self.array.has_same_bytes() {
            self.stored.read_ready(offset, length)
        } else {
            None
        })
    }

    fn stops_on_cancel(&self) -> bool {
        self.stored.is_encoded()
    }
}

/// The file of a chunk of texts: their number, followed by each text with its length before it
/// (`vlen-utf8`).
pub struct TextChunkFile {
    array: ZarrArray,
    stored: ChunkElements,
    container: Arc<dyn Container>,
    count: u32,
}

impl TextChunkFile {
    /// Creates the file of a chunk of texts. `stored` are its elements in the file's datatype.
    ///
    /// # Errors
    /// `Limit` for more texts than a chunk can have.
    pub fn new(
        array: ZarrArray,
        stored: ChunkElements,
        container: Arc<dyn Container>,
    ) -> Result<Self> {
        let most = || Error::limit("texts of a chunk", u32::MAX.into());
        Ok(TextChunkFile {
            count: u32::try_from(array.chunk_element_count()?).map_err(|_| most())?,
            array,
            stored,
            container,
        })
    }
}

impl TextUnits for TextChunkFile {
    fn count(&self) -> u64 {
        self.count.into()
    }

    fn write(
        &self,
        units: Range<u64>,
        enough: usize,
        cancel: &CancelToken,
        out: &mut Vec<u8>,
    ) -> Result<u64> {
        /// Number of texts to write before the next check of `enough`.
        const BATCH: u64 = 64;
        if units.start == 0 {
            out.extend_from_slice(&self.count.to_le_bytes());
        }
        let mut at = units.start;
        while at < units.end {
            let end = units.end.min(at + BATCH);
            // The limit of the context applies to the whole length of `out`.
            let most = out
                .len()
                .saturating_add(to_usize(limits::TEXT_ELEMENT_BYTES)?);
            let context = TextContext::new(&*self.container, &|_| Ok(None), most);
            convert_elements(&self.array, &self.stored, at..end, &context, cancel, out)?;
            at = end;
            if out.len() >= enough {
                break;
            }
        }
        Ok(at)
    }
}

/// A chunk file whose reads all fail. Opening it must succeed, because readers could interpret a
/// failure as a chunk that is not stored.
pub struct UnreadableChunk {
    /// The length of the chunk in bytes.
    pub length: u64,
    /// The error of each read.
    pub error: Error,
}

impl View for UnreadableChunk {
    fn length(&self) -> u64 {
        self.length
    }

    fn failure(&self) -> Option<&Error> {
        Some(&self.error)
    }

    fn read_for(&self, _: u64, _: usize, _: &CancelToken) -> Result<Bytes> {
        Err(self.error.clone())
    }
}
