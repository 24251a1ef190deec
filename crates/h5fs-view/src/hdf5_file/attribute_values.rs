//! The values of attributes in the computed file: references get the addresses of the computed file,
//! and variable-length values move to its heap.

use h5fs_reader::error::{Error, Result};
use h5fs_reader::hdf5::encode::global_heap;
use h5fs_reader::model::attribute::AttributeContent;
use h5fs_reader::model::datatype::{Class, Member, ReferenceKind};
use h5fs_reader::model::text::ucs4_to_utf8;
use h5fs_reader::model::{Container, Datatype, NodeId};
use h5fs_reader::wire::{to_u64, to_usize};

use crate::hdf5_file::element_source::HeapPointer;
use crate::hdf5_file::elements::{OrAbsent, computed_datatype, needs_conversion};
use crate::hdf5_file::metadata_heap::MetadataHeap;
use crate::hdf5_file::source::referenced_node;
use crate::limits;

/// Converts values to the computed file.
pub(super) struct ValueConverter<'a> {
    pub(super) container: &'a dyn Container,
    /// Returns the address of the object that shows a node, or `None` if the computed file does not
    /// have the node.
    pub(super) address_of: &'a dyn Fn(NodeId) -> Option<u64>,
    pub(super) heap: &'a mut MetadataHeap,
    /// Bytes that may still be read for variable-length values.
    pub(super) remaining_bytes: &'a mut u64,
}

/// An attribute's value in the computed file.
pub(super) struct ConvertedValue {
    pub(super) datatype: Datatype,
    pub(super) elements: Vec<u8>,
}

impl ValueConverter<'_> {
    /// Converts the value of an attribute. Returns the reason if the computed file cannot have it.
    ///
    /// # Errors
    /// Fails if a part of the value cannot be read now.
    pub(super) fn convert(
        &mut self,
        content: &AttributeContent,
    ) -> Result<OrAbsent<ConvertedValue>> {
        let datatype = match computed_datatype(&content.datatype) {
            Ok(datatype) => datatype,
            Err(reason) => return Ok(Err(reason)),
        };
        if !needs_conversion(&content.datatype) {
            let elements = content.elements.to_vec();
            return Ok(Ok(ConvertedValue { datatype, elements }));
        }
        let size = to_usize(content.datatype.size.into())?;
        let mut elements = Vec::new();
        for element in content.elements.chunks_exact(size.max(1)) {
            match self.add_element(&content.datatype, element, &mut elements) {
                Err(error) if error.is_transient() => return Err(error),
                Err(Error::Limit { .. }) => return Ok(Err("too many bytes of variable length")),
                Err(_) => return Ok(Err("a value that cannot be read")),
                Ok(()) => {}
            }
        }
        Ok(Ok(ConvertedValue { datatype, elements }))
    }

    /// Appends the element in the form of the computed file.
    fn add_element(
        &mut self,
        datatype: &Datatype,
        element: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<()> {
        match &datatype.class {
            Class::Reference(ReferenceKind::Object) => {
                let node = referenced_node(self.container, element)?;
                let address = node.and_then(self.address_of).unwrap_or(0);
                out.extend_from_slice(&address.to_le_bytes());
            }
            Class::VariableString { .. } => {
                let text = self.read_value(element, 1)?;
                let length = text.as_ref().map_or(0, Vec::len);
                self.add_to_heap(to_u64(length), text, out)?;
            }
            Class::VariableLength(base) => {
                let size = to_usize(base.size.into())?.max(1);
                let Some(stored) = self.read_value(element, base.size.into())? else {
                    return self.add_to_heap(0, None, out);
                };
                let mut value = Vec::new();
                for element in stored.chunks_exact(size) {
                    self.add_element(base, element, &mut value)?;
                }
                let count = to_u64(stored.len() / size);
                self.add_to_heap(count, Some(value), out)?;
            }
            Class::Reference(ReferenceKind::Region) => {
                let pointer = self.region_pointer(element)?;
                out.extend_from_slice(&pointer.to_region());
            }
            Class::Ucs4(order) => {
                let mut text = ucs4_to_utf8(element, *order);
                text.resize(element.len(), 0);
                out.append(&mut text);
            }
            Class::Compound(members) if needs_conversion(datatype) => {
                self.add_record(members, element, out)?;
            }
            Class::Array { base, .. } if needs_conversion(datatype) => {
                let size = to_usize(base.size.into())?.max(1);
                for element in element.chunks_exact(size) {
                    self.add_element(base, element, out)?;
                }
            }
            _ => out.extend_from_slice(element),
        }
        Ok(())
    }

    /// Appends a record whose members keep their offsets.
    fn add_record(&mut self, members: &[Member], record: &[u8], out: &mut Vec<u8>) -> Result<()> {
        let mut converted = record.to_vec();
        for member in members
            .iter()
            .filter(|member| needs_conversion(&member.datatype))
        {
            let start = to_usize(member.offset.into())?;
            let end = start.saturating_add(to_usize(member.datatype.size.into())?);
            let stored = record.get(start..end);
            let outside = || Error::corrupt("a member outside of its record", None);
            let mut value = Vec::new();
            self.add_element(&member.datatype, stored.ok_or_else(outside)?, &mut value)?;
            if let Some(place) = converted.get_mut(start..end)
                && place.len() == value.len()
            {
                place.copy_from_slice(&value);
            }
        }
        out.append(&mut converted);
        Ok(())
    }

    /// Returns the value to which an element points, or `None` for a null pointer.
    fn read_value(&mut self, element: &[u8], base_size: u64) -> Result<Option<Vec<u8>>> {
        let Some(length) = self.container.variable_length_bytes(element, base_size)? else {
            return Ok(None);
        };
        self.charge(length)?;
        let value = self
            .container
            .read_variable_length(element, base_size, 0..length)?;
        Ok(Some(value.unwrap_or_default()))
    }

    /// Returns the pointer to the address and the selection of a region reference.
    fn region_pointer(&mut self, reference: &[u8]) -> Result<HeapPointer> {
        let Some((array, selection)) = self.container.encoded_region(reference)? else {
            return Ok(HeapPointer::default());
        };
        self.charge(to_u64(selection.len()))?;
        let address = (self.address_of)(array).unwrap_or(0).to_le_bytes();
        let value = [&address[..], &selection].concat();
        let length = to_u64(value.len());
        let (address, index) = self.heap.add(value)?;
        Ok(HeapPointer {
            length,
            address,
            index,
        })
    }

    /// Subtracts `length` from the bytes that may still be read.
    fn charge(&mut self, length: u64) -> Result<()> {
        let most = limits::HDF5_FILE_METADATA;
        let left = self.remaining_bytes.checked_sub(length);
        *self.remaining_bytes =
            left.ok_or_else(|| Error::limit("variable-length values of attributes", most))?;
        Ok(())
    }

    /// Appends the element for a value of `count` base elements. `None` is a null pointer.
    fn add_to_heap(&mut self, count: u64, value: Option<Vec<u8>>, out: &mut Vec<u8>) -> Result<()> {
        let Some(value) = value else {
            out.extend_from_slice(&global_heap::NULL_ELEMENT);
            return Ok(());
        };
        let (address, index) = self.heap.add(value)?;
        let count = u32::try_from(count).unwrap_or(u32::MAX);
        out.extend_from_slice(&global_heap::encode_element(count, address, index));
        Ok(())
    }
}
