//! Two files of a variable-length array: its strings or sequences, one after another, and the
//! offset of each.

use std::sync::{Arc, Mutex};

use h5fs_reader::array::kinds::vlen::{ElementStart, VariableLengthContent};
use h5fs_reader::array::{Bytes, CancelToken};
use h5fs_reader::error::Result;
use h5fs_reader::memory::lock::lock;
use h5fs_reader::wire::to_usize;

use crate::view::View;

/// The file of a variable-length array: its strings, each followed by a line feed, or the items of
/// all its sequences.
pub struct VariableLengthFile {
    array: Arc<VariableLengthContent>,
    length: u64,
    last_start: Mutex<ElementStart>,
}

impl VariableLengthFile {
    /// Creates the file of `array`. If the lengths of the elements are not known yet, reads them,
    /// unless `cancel` cancels the request.
    ///
    /// # Errors
    /// Fails if an element cannot be read.
    pub fn new(array: Arc<VariableLengthContent>, cancel: &CancelToken) -> Result<Self> {
        let length = array.length(cancel)?;
        Ok(VariableLengthFile {
            array,
            length,
            last_start: Mutex::default(),
        })
    }

    /// Creates the file of the only element of `array`. A string is not followed by a line feed.
    ///
    /// # Errors
    /// Fails as [`new`](Self::new) does.
    pub(crate) fn from_element(array: Arc<VariableLengthContent>) -> Result<Self> {
        let separator = array.separator_bytes();
        let content = VariableLengthFile::new(array, &CancelToken::default())?;
        Ok(VariableLengthFile {
            length: content.length.saturating_sub(separator),
            ..content
        })
    }
}

impl View for VariableLengthFile {
    fn length(&self) -> u64 {
        self.length
    }

    fn own_bytes(&self) -> u64 {
        self.array.weight()
    }

    fn read_for(&self, offset: u64, length: usize, cancel: &CancelToken) -> Result<Bytes> {
        let left = to_usize(self.length.saturating_sub(offset)).unwrap_or(usize::MAX);
        let mut place = *lock(&self.last_start);
        let bytes = self
            .array
            .read(offset, length.min(left), &mut place, cancel)?;
        *lock(&self.last_start) = place;
        Ok(bytes.into())
    }
}

/// The file with the offset of each element in the file of the array, followed by the offset where
/// the last element ends. Each offset is a 64-bit little-endian number.
pub struct ElementOffsets {
    array: Arc<VariableLengthContent>,
}

/// Size of one offset in bytes.
const OFFSET_BYTES: u64 = 8;

impl ElementOffsets {
    /// Creates the file of the offsets of `array`.
    pub fn new(array: Arc<VariableLengthContent>) -> Self {
        ElementOffsets { array }
    }

    /// Returns the length of the file of offsets, in bytes.
    pub fn size(array: &VariableLengthContent) -> u64 {
        (array.element_count() + 1) * OFFSET_BYTES
    }
}

impl View for ElementOffsets {
    fn length(&self) -> u64 {
        Self::size(&self.array)
    }

    fn own_bytes(&self) -> u64 {
        self.array.weight()
    }

    fn read_for(&self, offset: u64, length: usize, cancel: &CancelToken) -> Result<Bytes> {
        let end = offset
            .saturating_add(length as u64)
            .min(Self::size(&self.array));
        if offset >= end {
            return Ok(Bytes::from(Vec::new()));
        }
        let first = offset / OFFSET_BYTES;
        let offsets = self
            .array
            .offsets(first, end.div_ceil(OFFSET_BYTES) - first, cancel)?;
        let mut bytes: Vec<u8> = offsets
            .iter()
            .flat_map(|offset| offset.to_le_bytes())
            .collect();
        bytes.drain(..(offset - first * OFFSET_BYTES) as usize);
        bytes.truncate((end - offset) as usize);
        Ok(bytes.into())
    }
}
