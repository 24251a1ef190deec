//! The encoding of a file's addresses and lengths: their widths, and the offset of address 0 (HDF5
//! 3.0, II.A "Disk Format: Level 0A").

use std::ops::Range;

use crate::error::{Error, Result};
use crate::model::NodeId;
use crate::wire::{Count, Cursor};

/// Number of bytes of an address or of a length: 2, 4, 8, 16 or 32.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Width(u8);

impl Width {
    /// Returns the width of `bytes` bytes, or `None` if the specification does not permit this
    /// width.
    pub(crate) fn new(bytes: u8) -> Option<Self> {
        matches!(bytes, 2 | 4 | 8 | 16 | 32).then_some(Width(bytes))
    }

    pub(crate) fn bytes(self) -> usize {
        usize::from(self.0)
    }
}

/// The absolute offset of a structure in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Address(u64);

impl Address {
    /// Returns the address `relative` bytes after the absolute offset `base`. Returns `None` on
    /// overflow.
    pub(crate) fn new(base: u64, relative: u64) -> Option<Self> {
        base.checked_add(relative).map(Address)
    }

    /// Returns the address `bytes` bytes after this one. Returns `None` on overflow.
    pub(crate) fn after(self, bytes: u64) -> Option<Self> {
        Address::new(self.0, bytes)
    }

    /// Returns the offset from the start of the file in bytes.
    pub(crate) fn offset(self) -> u64 {
        self.0
    }
}

/// An object's identity is the absolute offset of its object header.
impl From<NodeId> for Address {
    fn from(object: NodeId) -> Self {
        Address(object.number())
    }
}

impl TryFrom<Address> for NodeId {
    type Error = Error;

    fn try_from(address: Address) -> Result<Self> {
        let no_object = || Error::corrupt("object header: its address is not possible", address);
        NodeId::new(address.0).ok_or_else(no_object)
    }
}

/// Converts the address to the location of an error.
impl From<Address> for Option<u64> {
    fn from(address: Address) -> Self {
        Some(address.0)
    }
}

/// The encoding of a file's addresses and lengths.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct AddressEncoding {
    /// The absolute offset of address 0, which is the length of the user block.
    pub(crate) base: u64,
    /// Number of bytes of an address.
    pub(crate) size_of_offsets: Width,
    /// Number of bytes of a length.
    pub(crate) size_of_lengths: Width,
    /// The original start address of the object headers in a file of the multi driver, if these
    /// addresses are too large for the node IDs that the views support. The headers are moved to
    /// [`MOVED_HEADER_RANGE`].
    pub(crate) original_header_start: Option<u64>,
}

/// The address range to which object headers are moved, if their own addresses are too large to be
/// node IDs. The views support only node IDs below 2^45.
pub(crate) const MOVED_HEADER_RANGE: Range<u64> = 1 << 44..1 << 45;

impl AddressEncoding {
    /// Reads the two widths of a file whose address 0 is at the absolute offset `base`.
    ///
    /// # Errors
    /// `Corrupt` for a width that is not in the specification.
    pub(crate) fn read(cursor: &mut Cursor<'_>, base: u64) -> Result<Self> {
        let (offsets, lengths) = (cursor.u8()?, cursor.u8()?);
        let width = |bytes| {
            Width::new(bytes).ok_or_else(|| cursor.corrupt(&format!("numbers of {bytes} bytes")))
        };
        Ok(AddressEncoding {
            base,
            size_of_offsets: width(offsets)?,
            size_of_lengths: width(lengths)?,
            original_header_start: None,
        })
    }

    /// Reads the next address as an absolute file offset. Returns `None` for the undefined address
    /// (all bits one).
    ///
    /// # Errors
    /// `Corrupt` if the offset overflows.
    pub(crate) fn read_address(&self, cursor: &mut Cursor<'_>) -> Result<Option<Address>> {
        let Some(relative) = cursor.optional_uint(self.size_of_offsets.bytes())? else {
            return Ok(None);
        };
        Address::new(self.base, relative)
            .map(|address| Some(self.relocate(address)))
            .ok_or_else(|| cursor.corrupt("an address is after the end of all files"))
    }

    /// Returns the address in [`MOVED_HEADER_RANGE`] of the structure that was moved from
    /// `address`, or `address` itself if the structure was not moved.
    pub(crate) fn relocate(&self, address: Address) -> Address {
        let first = self.original_header_start;
        let within = first.and_then(|first| address.0.checked_sub(first));
        let place = within.and_then(|within| MOVED_HEADER_RANGE.start.checked_add(within));
        let place = place.filter(|place| MOVED_HEADER_RANGE.contains(place));
        place.map_or(address, Address)
    }

    /// Returns the number of bytes of a structure of `addresses` addresses, `lengths` lengths and
    /// `others` other bytes.
    pub(crate) fn structure_size(&self, addresses: usize, lengths: usize, others: usize) -> usize {
        // A saturated size is refused like any other size over `limits::METADATA_BLOCK`.
        let addresses = addresses.times(self.size_of_offsets.bytes());
        let lengths = lengths.times(self.size_of_lengths.bytes());
        Count::sum([addresses, lengths, others])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hdf5::testing;

    #[test]
    fn widths_match_the_specification() {
        let widths = (0..=u8::MAX).filter_map(Width::new).map(Width::bytes);
        assert_eq!(widths.collect::<Vec<_>>(), [2, 4, 8, 16, 32]);
    }

    #[test]
    fn addresses_are_absolute_undefined_or_past_all_files() {
        let form = AddressEncoding::read(&mut Cursor::new(&[8, 4], 0, "test"), 512).unwrap();
        let address =
            |bytes: u64| form.read_address(&mut Cursor::new(&bytes.to_le_bytes(), 0, "test"));
        assert_eq!(address(96), Ok(Some(Address(608))));
        assert_eq!(address(u64::MAX), Ok(None));
        address(u64::MAX - 511).unwrap_err();
        assert_eq!(form.structure_size(2, 3, 5), 16 + 12 + 5);
    }

    #[test]
    fn moved_object_headers_have_valid_node_ids() {
        let far = AddressEncoding {
            original_header_start: Some(5 << 61),
            ..testing::form(8)
        };
        let placed = |address| far.relocate(Address(address)).0;
        assert_eq!(placed(5 << 61), 1 << 44);
        assert_eq!(placed((5 << 61) + 96), (1 << 44) + 96);
        for other in [0, 96, (5 << 61) - 1, (5 << 61) + (1 << 44), u64::MAX] {
            assert_eq!(placed(other), other);
        }
    }
}
