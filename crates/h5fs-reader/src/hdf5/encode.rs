//! Encoders of HDF5 structures, for programs that compute an HDF5 file. Each file of this module
//! has the name of the parser of the same structure.
//!
//! HDF5 1.8 and later read the encoded structures. Addresses and lengths have 8 bytes, and address
//! 0 is the first byte of the file. `None` is the undefined address.
//!
//! | module | structures |
//! |---|---|
//! | [`superblock`] | superblock, version 2 |
//! | [`object_header`] | object header, version 2, in one chunk |
//! | [`dataspace`], [`datatype`], [`fill_value`], [`data_layout`] | messages of a dataset |
//! | [`attribute`] | attribute message, attribute info message |
//! | [`link`] | link message, link info message, group info message |
//! | [`reference_count`] | the number of hard links to an object |
//! | [`btree_v1`] | node of a version 1 B-tree of chunks |
//! | [`global_heap`] | global heap collection, and the elements that point to it |
//!
//! # Two passes
//!
//! The length of a structure does not depend on the addresses in it. A caller first encodes all
//! structures with addresses of 0 to place them in the file, and then with their true addresses.

pub mod attribute;
pub mod btree_v1;
pub mod data_layout;
pub mod dataspace;
pub mod datatype;
pub mod fill_value;
pub mod global_heap;
pub mod link;
pub mod object_header;
pub mod reference_count;
pub mod superblock;
#[cfg(test)]
mod tests;

use crate::error::{Error, Result};
use crate::model::datatype::Charset;

/// Message flag: the data of the message never change.
const CONSTANT: u8 = 0b001;

/// Message flag: a writer must not move the message to a heap of shared messages.
const DO_NOT_SHARE: u8 = 0b100;

/// A message of an object header (HDF5 3.0, IV.A.2).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// The type number of the message, see `kind` in `hdf5::message`.
    kind: u16,
    flags: u8,
    data: Vec<u8>,
}

impl Message {
    /// Creates a message. `what` names the message in an error.
    ///
    /// # Errors
    /// `Limit` for data of 64 KiB or more.
    fn new(kind: u16, flags: u8, data: Vec<u8>, what: &'static str) -> Result<Self> {
        length_field(data.len(), what)?;
        Ok(Message { kind, flags, data })
    }

    /// Returns the data of the message, without its type, length and flags.
    pub fn data(&self) -> &[u8] {
        &self.data
    }
}

/// Returns a length in bytes as a field of two bytes. `what` names the structure in an error.
///
/// # Errors
/// `Limit` for 64 KiB or more.
fn length_field(length: usize, what: &'static str) -> Result<u16> {
    u16::try_from(length).map_err(|_| Error::limit(what, u64::from(u16::MAX)))
}

/// Returns the field of an address. `None` is the undefined address, whose bits are all one.
fn address_field(address: Option<u64>) -> [u8; 8] {
    address.unwrap_or(u64::MAX).to_le_bytes()
}

/// Returns the number of a character set.
fn charset_number(charset: Charset) -> u8 {
    match charset {
        Charset::Ascii => 0,
        Charset::Utf8 => 1,
    }
}

/// Checks that the HDF5 library accepts `name`. The library ends names at a NUL, and an empty name
/// also hides the other attributes of the object.
///
/// # Errors
/// `Unsupported` for an empty name or a name with a NUL. `what` names the structure in the error.
fn check_name(name: &[u8], what: &'static str) -> Result<()> {
    if name.is_empty() || name.contains(&0) {
        let what = format!("{what}: a name that is empty or contains a NUL");
        return Err(Error::unsupported(what, None));
    }
    Ok(())
}
