//! The location of an object's dense links or attributes. The link info message (HDF5 3.0,
//! IV.A.2.c) and the attribute info message (IV.A.2.v) have the same form.

use crate::error::Result;
use crate::hdf5::file::metadata::Metadata;
use crate::hdf5::file::number_form::Address;
use crate::wire::Cursor;

/// The location of dense links or attributes: a fractal heap and its index. Addresses are absolute
/// file offsets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DenseStorageInfo {
    /// The fractal heap that contains the link or attribute messages.
    pub(crate) heap: Address,
    /// The version 2 B-tree that indexes the messages by the hash of the name.
    pub(crate) name_index: Address,
}

impl DenseStorageInfo {
    /// Reads the body of a link info or attribute info message, whose field "Maximum Creation
    /// Index" has `order_size` bytes. Returns `None` if the links or attributes are in the object
    /// header instead.
    ///
    /// # Errors
    /// `Corrupt` for a heap without an index or an index without a heap, `Unsupported` for an
    /// unknown version or flag.
    pub(crate) fn read(
        metadata: &Metadata,
        order_size: usize,
        cursor: &mut Cursor<'_>,
    ) -> Result<Option<Self>> {
        const ORDER_TRACKED: u8 = 0b01;
        const ORDER_INDEXED: u8 = 0b10;
        cursor.read_version(0..=0)?;
        let flags = cursor.u8()?;
        if flags & !(ORDER_TRACKED | ORDER_INDEXED) != 0 {
            return Err(cursor.unsupported(&format!("flags {flags:#04x}")));
        }
        if flags & ORDER_TRACKED != 0 {
            cursor.skip(order_size)?; // the highest creation order so far
        }
        let heap = metadata.read_address(cursor)?;
        // An index by creation order may follow. For attributes, the name index also contains the
        // creation order.
        match (heap, metadata.read_address(cursor)?) {
            (Some(heap), Some(name_index)) => Ok(Some(DenseStorageInfo { heap, name_index })),
            (None, None) => Ok(None),
            (Some(_), None) => Err(cursor.corrupt("a heap without an index of names")),
            (None, Some(_)) => Err(cursor.corrupt("an index of names without a heap")),
        }
    }
}
