//! The heap collections with the variable-length values of attributes. They are a part of the
//! metadata.

use h5fs_reader::error::Result;
use h5fs_reader::hdf5::encode::global_heap::{self, MAX_OBJECTS};
use h5fs_reader::wire::to_u64;

/// The values of all attributes, in collections one after another.
#[derive(Default)]
pub(super) struct MetadataHeap {
    /// The address of the first collection, or 0 while it is unknown.
    address: u64,
    /// The bytes of the complete collections.
    complete: Vec<u8>,
    /// The values of the last collection.
    open: Vec<Vec<u8>>,
}

impl MetadataHeap {
    /// Creates an empty heap whose first collection will be at `address`.
    pub(super) fn at(address: u64) -> Self {
        MetadataHeap {
            address,
            ..MetadataHeap::default()
        }
    }

    /// Adds a value. Returns the address of its collection, and its index there.
    ///
    /// # Errors
    /// `Limit` if the values are too long for a heap.
    pub(super) fn add(&mut self, value: Vec<u8>) -> Result<(u64, u16)> {
        if self.open.len() >= MAX_OBJECTS.into() {
            self.close()?;
        }
        self.open.push(value);
        let address = self.address.saturating_add(to_u64(self.complete.len()));
        let index = u16::try_from(self.open.len()).unwrap_or(MAX_OBJECTS);
        Ok((address, index))
    }

    fn close(&mut self) -> Result<()> {
        let values: Vec<&[u8]> = self.open.iter().map(Vec::as_slice).collect();
        let collection = global_heap::encode_collection(&values)?;
        self.complete.extend(collection);
        self.open.clear();
        Ok(())
    }

    /// Returns the bytes of all collections.
    ///
    /// # Errors
    /// Fails as [`add`](Self::add) does.
    pub(super) fn into_bytes(mut self) -> Result<Vec<u8>> {
        if !self.open.is_empty() {
            self.close()?;
        }
        Ok(self.complete)
    }
}
