//! The symbol table message, which locates an old-style group's links (HDF5 3.0, IV.A.2.r).

use crate::error::Result;
use crate::hdf5::file::metadata::Metadata;
use crate::hdf5::file::number_form::Address;
use crate::wire::Cursor;

/// The location of an old-style group's links. Addresses are absolute file offsets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SymbolTable {
    /// The version 1 B-tree that indexes the links by name.
    pub(crate) btree: Address,
    /// The local heap that contains the names of the links.
    pub(crate) heap: Address,
}

impl SymbolTable {
    /// Reads the body of a symbol table message.
    pub(crate) fn read(metadata: &Metadata, cursor: &mut Cursor<'_>) -> Result<Self> {
        let btree = metadata.read_defined_address(cursor)?;
        Ok(SymbolTable {
            btree,
            heap: metadata.read_defined_address(cursor)?,
        })
    }
}
