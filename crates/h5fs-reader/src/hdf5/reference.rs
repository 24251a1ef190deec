//! The targets that stored elements point to: object, region and standard references, and
//! variable-length data on the global heap (HDF5 3.0, IV.A.2.d "Reference" and "Variable-length",
//! VIII).

use std::ops::Range;

use crate::error::{Error, Result};
use crate::hdf5::file::metadata::Metadata;
use crate::hdf5::file::number_form::Address;
use crate::hdf5::heap::global::GlobalHeap;
use crate::hdf5::selection;
use crate::limits;
use crate::model::datatype::ReferenceKind;
use crate::model::region::Region;
use crate::model::{NodeId, Reference};
use crate::wire::{Count, Cursor, to_u64, to_usize};

/// The location of the base elements of a variable-length element.
struct VariableLengthLocation {
    collection: Address,
    index: u32,
    bytes: u64,
}

/// A resolver of the pointers in stored elements.
#[derive(Debug)]
pub(crate) struct ElementPointers<'a> {
    /// The metadata of the file, for reading addresses.
    pub(crate) metadata: &'a Metadata,
    /// The global heap, which stores variable-length data and regions.
    pub(crate) heap: &'a GlobalHeap,
}

impl ElementPointers<'_> {
    /// Returns the number of bytes of the base elements of a variable-length element, or `None` for
    /// a null element.
    ///
    /// # Errors
    /// `Limit` for an element that is too long.
    pub(crate) fn variable_length_bytes(
        &self,
        element: &[u8],
        base_size: u64,
    ) -> Result<Option<u64>> {
        Ok(self
            .parse_sequence(element, base_size)?
            .map(|sequence| sequence.bytes))
    }

    /// Returns the range `part`, in bytes, of the base elements of a variable-length element,
    /// truncated at their end. Returns `None` for a null element.
    ///
    /// # Errors
    /// `Limit` for an element that is too long, `Corrupt` for one with an invalid pointer.
    pub(crate) fn read_variable_length(
        &self,
        element: &[u8],
        base_size: u64,
        part: Range<u64>,
    ) -> Result<Option<Vec<u8>>> {
        let Some(sequence) = self.parse_sequence(element, base_size)? else {
            return Ok(None);
        };
        let part = part.start.min(sequence.bytes)..part.end.min(sequence.bytes);
        if part.is_empty() {
            return Ok(Some(Vec::new()));
        }
        let VariableLengthLocation {
            collection,
            index,
            bytes,
        } = sequence;
        self.heap
            .read_object_range(collection, index, bytes, part)
            .map(Some)
    }

    /// Returns the absolute offset of the global heap collection that a variable-length element
    /// points to, 0 for a null element.
    pub(crate) fn variable_length_offset(&self, element: &[u8]) -> u64 {
        self.collection_address(element).map_or(0, Address::offset)
    }

    /// Asks a remote source for the global heap collections that the variable-length elements point
    /// to.
    pub(crate) fn prefetch_collections<'e>(&self, elements: impl Iterator<Item = &'e [u8]>) {
        let collections = elements.filter_map(|element| self.collection_address(element));
        self.heap.prefetch_collections(collections);
    }

    fn collection_address(&self, element: &[u8]) -> Option<Address> {
        let mut cursor = Cursor::new(element, None, "variable-length element");
        let id = cursor.u32().and_then(|_| self.read_heap_id(&mut cursor));
        id.ok()?.0
    }

    /// Returns the number of bytes before the first NUL in the content of a variable-length element
    /// whose base elements have one byte. Returns 0 for a null element.
    ///
    /// # Errors
    /// Fails as [`read_variable_length`](Self::read_variable_length) does.
    pub(crate) fn text_length(&self, element: &[u8]) -> Result<u64> {
        match self.parse_sequence(element, 1)? {
            Some(text) if text.bytes > 0 => {
                self.heap
                    .text_length(text.collection, text.index, text.bytes)
            }
            _ => Ok(0),
        }
    }

    /// Parses a variable-length element: a count of base elements, the address of a heap
    /// collection, and an object's index. Returns `None` for a null element. Only its address
    /// identifies a null element, and its other fields may have any value.
    fn parse_sequence(
        &self,
        element: &[u8],
        base_size: u64,
    ) -> Result<Option<VariableLengthLocation>> {
        let mut cursor = Cursor::new(element, None, "variable-length element");
        let count = u64::from(cursor.u32()?);
        let (collection, index) = self.read_heap_id(&mut cursor)?;
        let Some(collection) = collection else {
            return Ok(None);
        };
        let most = limits::VARIABLE_LENGTH_BYTES;
        let bytes = count.checked_mul(base_size).filter(|&bytes| bytes <= most);
        let bytes = bytes.ok_or_else(|| Error::limit("variable-length element", most))?;
        Ok(Some(VariableLengthLocation {
            collection,
            index,
            bytes,
        }))
    }

    /// Returns the target of one reference element.
    pub(crate) fn reference(&self, kind: ReferenceKind, element: &[u8]) -> Result<Reference> {
        let mut cursor = Cursor::new(element, None, "reference element");
        match kind {
            ReferenceKind::Object => {
                let object = self.read_pointer(&mut cursor)?;
                Ok(self.reference_to(object, Reference::Object))
            }
            ReferenceKind::Region => self.region_target(&mut cursor),
            ReferenceKind::Standard => self.standard_reference(&mut cursor),
        }
    }

    /// Reads an address. Returns `None` for address 0 and the undefined address, which both are
    /// null pointers.
    fn read_pointer(&self, cursor: &mut Cursor<'_>) -> Result<Option<Address>> {
        let address = self.metadata.read_address(cursor)?;
        Ok(address.filter(|address| address.offset() != self.metadata.base()))
    }

    /// Returns the reference that `to` creates from the identity of the object at the address
    /// `object`. Without an address, the reference is null. For an address outside of the file, the
    /// reference is dangling.
    fn reference_to(
        &self,
        object: Option<Address>,
        to: impl FnOnce(NodeId) -> Reference,
    ) -> Reference {
        let Some(address) = object else {
            return Reference::Null;
        };
        let is_inside = address.offset() < self.metadata.source().length();
        match NodeId::try_from(address) {
            Ok(node) if is_inside => to(node),
            _ => Reference::Dangling(address.offset()),
        }
    }

    /// Reads a global heap ID: the address of a collection, `None` for a null pointer, and the
    /// index of an object in the collection.
    fn read_heap_id(&self, cursor: &mut Cursor<'_>) -> Result<(Option<Address>, u32)> {
        Ok((self.read_pointer(cursor)?, cursor.u32()?))
    }

    /// Returns the target of a region reference: the array, without the selection, which may take
    /// long to read.
    fn region_target(&self, cursor: &mut Cursor<'_>) -> Result<Reference> {
        let (Some(collection), index) = self.read_heap_id(cursor)? else {
            return Ok(Reference::Null);
        };
        let width = to_u64(self.metadata.size_of_offsets().bytes());
        let address = self.heap.read_object_prefix(collection, index, width)?;
        let array =
            self.read_pointer(&mut Cursor::new(&address, collection, "region reference"))?;
        Ok(self.reference_to(array, Reference::Region))
    }

    /// Returns the selection of a region reference. Returns `None` for a null reference, and for a
    /// selection that is damaged or unsupported, such as one of points.
    pub(crate) fn region(&self, element: &[u8]) -> Result<Option<Region>> {
        let Some((collection, object)) = self.region_object(element)? else {
            return Ok(None);
        };
        let mut cursor = Cursor::new(&object, collection, "region reference");
        cursor.skip(self.metadata.size_of_offsets().bytes())?;
        Ok(selection::read(&mut cursor).ok())
    }

    /// Returns the array to which a region reference points, and the encoded selection. Returns
    /// `None` for a null or dangling reference.
    pub(crate) fn encoded_region(&self, element: &[u8]) -> Result<Option<(NodeId, Vec<u8>)>> {
        let Some((collection, object)) = self.region_object(element)? else {
            return Ok(None);
        };
        let mut cursor = Cursor::new(&object, collection, "region reference");
        let array = self.read_pointer(&mut cursor)?;
        Ok(match self.reference_to(array, Reference::Region) {
            Reference::Region(node) => Some((node, cursor.rest().to_vec())),
            _ => None,
        })
    }

    /// Returns the heap object of a region reference, and the address of its collection. Returns
    /// `None` for a null reference.
    fn region_object(&self, element: &[u8]) -> Result<Option<(Address, Vec<u8>)>> {
        let mut cursor = Cursor::new(element, None, "reference element");
        let (Some(collection), index) = self.read_heap_id(&mut cursor)? else {
            return Ok(None);
        };
        let object = self
            .heap
            .read_whole_object(collection, index, limits::REGION_BYTES)?;
        Ok(Some((collection, object)))
    }

    /// Reads an element of type `H5T_STD_REF`, which states its own reference type. A reference to
    /// an object of the same file is in the element itself. Any other reference is on the global
    /// heap.
    fn standard_reference(&self, cursor: &mut Cursor<'_>) -> Result<Reference> {
        /// The maximum number of bytes that are read of a reference on the heap: an object token
        /// and a text, each after its length. The bytes of a region after them are not read.
        const LONGEST_BLOB: u64 = 1 + 0xff + 2 + 0xffff;
        const OBJECT: u8 = 2;
        const IS_EXTERNAL: u8 = 1;
        let kind = cursor.u8()?;
        let flags = cursor.u8()?;
        if kind == 0 {
            return Ok(Reference::Null);
        }
        if kind == OBJECT && flags & IS_EXTERNAL == 0 {
            let object = self.read_token(cursor)?;
            return Ok(self.reference_to(object, Reference::Object));
        }
        let size = u64::from(cursor.u32()?);
        let (Some(collection), index) = self.read_heap_id(cursor)? else {
            return Ok(Reference::Null);
        };
        let blob = self
            .heap
            .read_object_range(collection, index, size, 0..LONGEST_BLOB)?;
        let mut cursor = Cursor::new(&blob, collection, "reference");
        self.standard_blob(kind, flags & IS_EXTERNAL != 0, &mut cursor)
    }

    fn standard_blob(
        &self,
        kind: u8,
        is_external: bool,
        cursor: &mut Cursor<'_>,
    ) -> Result<Reference> {
        const OBJECT: u8 = 2;
        const REGION: u8 = 3;
        const ATTRIBUTE: u8 = 4;
        let Some(object) = self.read_token(cursor)? else {
            return Ok(Reference::Null);
        };
        if is_external {
            let file = read_short_text(cursor)?;
            let address = object.offset().minus_or_zero(self.metadata.base());
            return Ok(Reference::External { file, address });
        }
        match kind {
            OBJECT => Ok(self.reference_to(Some(object), Reference::Object)),
            REGION => Ok(self.reference_to(Some(object), Reference::Region)),
            ATTRIBUTE => {
                let name = read_short_text(cursor)?;
                Ok(self.reference_to(Some(object), |node| Reference::Attribute { node, name }))
            }
            kind => Err(cursor.unsupported(&format!("reference type {kind}"))),
        }
    }

    /// Reads an object token: its size in one byte, then the object's address, padded with zeros.
    fn read_token(&self, cursor: &mut Cursor<'_>) -> Result<Option<Address>> {
        let size = usize::from(cursor.u8()?);
        let at = cursor.offset();
        let token = cursor.read_bytes(size)?;
        self.read_pointer(&mut Cursor::new(token, at, "object token"))
    }
}

/// Reads a text whose length in bytes precedes it in two bytes.
fn read_short_text(cursor: &mut Cursor<'_>) -> Result<Vec<u8>> {
    let length = u64::from(cursor.u16()?);
    Ok(cursor.read_bytes(to_usize(length)?)?.to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hdf5::file::caches::Caches;
    use crate::hdf5::testing::file;

    #[test]
    fn an_impossible_address_is_dangling() {
        let metadata = file([(0, vec![0; 1000])]);
        let heap = GlobalHeap::new(
            metadata.clone(),
            Caches::default().new_heap_directory_cache(),
        );
        let pointers = ElementPointers {
            metadata: &metadata,
            heap: &heap,
        };
        let target = |address: u64| {
            let element = address.to_le_bytes();
            pointers.reference(ReferenceKind::Object, &element).unwrap()
        };
        assert_eq!(target(0), Reference::Null);
        assert_eq!(target(u64::MAX), Reference::Null);
        assert_eq!(target(999), Reference::Object(NodeId::for_test(999)));
        for address in [1, 1000, 1 << 62, u64::MAX - 1] {
            assert_eq!(target(address), Reference::Dangling(address));
        }
    }
}
