//! The stored elements of one array, with the values to which they point, and their conversion to
//! elements of the computed file.

use std::collections::HashMap;
use std::ops::Range;

use h5fs_reader::array::{CancelToken, Reader};
use h5fs_reader::error::{Error, Result};
use h5fs_reader::hdf5::encode::global_heap;
use h5fs_reader::model::text::ucs4_to_utf8;
use h5fs_reader::model::{Container, NodeId};
use h5fs_reader::wire::{to_u64, to_usize};

use crate::hdf5_file::elements::{ConvertedPart, ElementConversion, PartKind, REGION_REFERENCE};
use crate::hdf5_file::source::referenced_node;

/// The stored elements of an array, its file, and the addresses of the computed file.
#[derive(Clone, Copy)]
pub(super) struct ElementSource<'a> {
    pub(super) reader: &'a Reader,
    pub(super) container: &'a dyn Container,
    /// The address of the header of each node in the computed file. Empty while the addresses are
    /// unknown.
    pub(super) addresses: &'a HashMap<NodeId, u64>,
    pub(super) cancel: &'a CancelToken,
}

/// A pointer of the computed file to a value of `length` bytes in a heap collection. The index of a
/// null pointer is 0.
#[derive(Clone, Copy, Default)]
pub(super) struct HeapPointer {
    pub(super) length: u64,
    pub(super) address: u64,
    pub(super) index: u16,
}

impl HeapPointer {
    /// Returns the bytes of a pointer to a sequence of base elements of `base_size` bytes.
    fn to_sequence(self, base_size: u64) -> [u8; 16] {
        if self.index == 0 {
            return global_heap::NULL_ELEMENT;
        }
        let count = u32::try_from(self.length / base_size.max(1)).unwrap_or(u32::MAX);
        global_heap::encode_element(count, self.address, self.index)
    }

    /// Returns the bytes of a region reference: the address of the collection, and the index of the
    /// object there.
    pub(super) fn to_region(self) -> [u8; REGION_REFERENCE as usize] {
        let mut reference = [0; REGION_REFERENCE as usize];
        if self.index > 0 {
            reference[..8].copy_from_slice(&self.address.to_le_bytes());
            reference[8..].copy_from_slice(&u32::from(self.index).to_le_bytes());
        }
        reference
    }
}

/// Number of bytes of an address in the computed file.
const ADDRESS: usize = 8;

impl ElementSource<'_> {
    /// Returns the address in the computed file of the object to which a stored object reference
    /// points, or 0.
    ///
    /// # Errors
    /// Fails if the reference cannot be read now.
    fn address_of(&self, reference: &[u8]) -> Result<u64> {
        let node = referenced_node(self.container, reference)?;
        Ok(node.map_or(0, |node| self.address_of_node(node)))
    }

    fn address_of_node(&self, node: NodeId) -> u64 {
        self.addresses.get(&node).copied().unwrap_or(0)
    }

    /// Returns the number of bytes of the value to which `pointer` points, in the computed file.
    /// Returns `None` for a null pointer, which libraries tell from an empty value.
    ///
    /// # Errors
    /// Fails if the length cannot be read.
    pub(super) fn value_length(&self, part: &ConvertedPart, pointer: &[u8]) -> Result<Option<u64>> {
        match part.kind {
            PartKind::Sequence { base_size, .. } => {
                self.container.variable_length_bytes(pointer, base_size)
            }
            PartKind::Region => {
                self.cancel.check_cancelled()?;
                let length = to_u64(self.region_value(pointer)?.len());
                Ok(Some(length).filter(|length| *length > 0))
            }
            PartKind::Reference | PartKind::Ucs4(_) => Ok(None),
        }
    }

    /// Returns the bytes in `range` of the value to which `pointer` points, with the addresses of
    /// the computed file.
    ///
    /// # Errors
    /// Fails if the value cannot be read.
    pub(super) fn read_value(
        &self,
        part: &ConvertedPart,
        pointer: &[u8],
        range: Range<u64>,
    ) -> Result<Vec<u8>> {
        match &part.kind {
            PartKind::Sequence {
                base_size,
                references,
            } => {
                let size = (*base_size).max(1);
                let first = range.start / size * size;
                let last = range.end.div_ceil(size).saturating_mul(size);
                let whole = if references.is_empty() {
                    range.clone()
                } else {
                    first..last
                };
                let start = whole.start;
                let value = self
                    .container
                    .read_variable_length(pointer, *base_size, whole)?;
                let mut value = value.unwrap_or_default();
                for base in value.chunks_exact_mut(to_usize(size)?) {
                    self.replace_references(references, base)?;
                }
                part_of(value, range.start - start..range.end - start)
            }
            PartKind::Region => part_of(self.region_value(pointer)?, range),
            PartKind::Reference | PartKind::Ucs4(_) => Ok(Vec::new()),
        }
    }

    fn replace_references(&self, offsets: &[usize], base: &mut [u8]) -> Result<()> {
        for &offset in offsets {
            if let Some(reference) = base.get_mut(offset..offset.saturating_add(ADDRESS)) {
                let address = self.address_of(reference)?;
                reference.copy_from_slice(&address.to_le_bytes());
            }
        }
        Ok(())
    }

    /// Returns the value to which a region reference points: the address of the array, and the
    /// selection. Returns no bytes for a null reference.
    fn region_value(&self, reference: &[u8]) -> Result<Vec<u8>> {
        let Some((array, selection)) = self.container.encoded_region(reference)? else {
            return Ok(Vec::new());
        };
        let address = self.address_of_node(array).to_le_bytes();
        Ok([&address[..], &selection].concat())
    }

    /// Returns the element of the computed file, which has `size` bytes, for a stored element.
    /// `next_pointer` returns the pointer to each value on the heap, in order.
    ///
    /// # Errors
    /// Fails if a reference cannot be read now.
    pub(super) fn convert(
        &self,
        conversion: &ElementConversion,
        stored: &[u8],
        size: usize,
        next_pointer: &mut dyn FnMut() -> HeapPointer,
    ) -> Result<Vec<u8>> {
        let mut element = stored.to_vec();
        element.resize(size, 0);
        for part in &conversion.parts {
            let converted = match part.kind {
                PartKind::Reference => {
                    let address = self.address_of(part.stored(stored))?;
                    address.to_le_bytes().to_vec()
                }
                PartKind::Sequence { base_size, .. } => {
                    next_pointer().to_sequence(base_size).to_vec()
                }
                PartKind::Region => next_pointer().to_region().to_vec(),
                PartKind::Ucs4(order) => {
                    let mut text = ucs4_to_utf8(part.stored(stored), order);
                    text.resize(part.stored_size, 0);
                    text
                }
            };
            let end = part.offset.saturating_add(converted.len());
            let outside = || Error::corrupt("a part outside of its element", None);
            let place = element.get_mut(part.offset..end).ok_or_else(outside)?;
            place.copy_from_slice(&converted);
        }
        Ok(element)
    }
}

fn part_of(mut value: Vec<u8>, range: Range<u64>) -> Result<Vec<u8>> {
    let (start, end) = (to_usize(range.start)?, to_usize(range.end)?);
    value.truncate(end);
    value.drain(..start.min(value.len()));
    Ok(value)
}
