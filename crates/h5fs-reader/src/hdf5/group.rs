//! Groups, which store their links in one of three forms (HDF5 3.0, III.A–III.D and IV.A.2):
//!
//! - symbol tables (old)
//! - link messages in the header (compact)
//! - links on a fractal heap (dense)

pub(crate) mod bounds;
pub(crate) mod dense;
pub(crate) mod symbol_table_node;

use std::sync::Arc;

use crate::error::{Error, Result};
use crate::hdf5::file::metadata::Metadata;
use crate::hdf5::group::dense::{DenseLinkStream, DenseLinks};
use crate::hdf5::group::symbol_table_node::{SymbolTableLinkStream, SymbolTableLinks};
use crate::hdf5::message::on_heap::DenseStorageInfo;
use crate::hdf5::message::symbol_table::SymbolTable;
use crate::hdf5::message::{kind, link};
use crate::hdf5::object_header::ObjectHeader;
use crate::memory::distinct::deduplicate_by_name;
use crate::model::{Link, LinkStream, LinksInMemory};
use crate::wire::Cursor;

/// Types of header messages that only groups have.
pub(crate) const GROUP_MESSAGE_TYPES: [u16; 4] = [
    kind::SYMBOL_TABLE,
    kind::LINK_INFO,
    kind::LINK,
    kind::GROUP_INFO,
];

/// Number of bytes of the field "Maximum Creation Index" in the link info message.
const CREATION_ORDER_BYTES: usize = 8;

/// The links of a group, in the form in which the file stores them.
#[derive(Debug)]
pub(crate) enum GroupLinks {
    /// An old-style group, whose links are in a version 1 B-tree and a local heap.
    SymbolTable(SymbolTable),
    /// A new-style group with few links, which are in the object header. The second field is the
    /// error of the first link that cannot be read.
    Compact(Arc<Vec<Link>>, Option<Error>),
    /// A new-style group with many links, which are on a fractal heap.
    Dense(DenseStorageInfo),
}

impl GroupLinks {
    /// Reads the group with this `header`. Returns `None` if the object is not a group.
    ///
    /// # Errors
    /// Fails if the message that locates the links is damaged.
    pub(crate) fn read(metadata: &Metadata, header: &ObjectHeader) -> Result<Option<Self>> {
        if let Some(message) = header.find(kind::SYMBOL_TABLE) {
            let mut cursor = Cursor::new(message.data, message.at, "symbol table message");
            let table = SymbolTable::read(metadata, &mut cursor)?;
            return Ok(Some(GroupLinks::SymbolTable(table)));
        }
        if let Some(message) = header.find(kind::LINK_INFO) {
            let mut cursor = Cursor::new(message.data, message.at, "link info message");
            return Ok(Some(
                match DenseStorageInfo::read(metadata, CREATION_ORDER_BYTES, &mut cursor)? {
                    Some(links) => GroupLinks::Dense(links),
                    None => Self::compact(metadata, header),
                },
            ));
        }
        Ok(None)
    }

    fn compact(metadata: &Metadata, header: &ObjectHeader) -> Self {
        let mut failure = None;
        let mut links: Vec<Link> = header
            .messages()
            .filter(|message| message.kind == kind::LINK)
            .filter_map(|message| {
                let mut cursor = Cursor::new(message.data, message.at, "link message");
                link::read(metadata, &mut cursor)
                    .map_err(|error| failure.get_or_insert(error).clone())
                    .ok()
            })
            .collect();
        deduplicate_by_name(&mut links, |link| &link.name);
        GroupLinks::Compact(Arc::new(links), failure)
    }

    /// Returns the link called `name`, or `None` if the group has no such link.
    pub(crate) fn link(&self, metadata: &Arc<Metadata>, name: &[u8]) -> Result<Option<Link>> {
        match self {
            GroupLinks::SymbolTable(table) => SymbolTableLinks::new(metadata, table).find(name),
            GroupLinks::Compact(links, _) => {
                Ok(links.iter().find(|link| link.name == name).cloned())
            }
            GroupLinks::Dense(place) => DenseLinks::new(metadata, place).find(name),
        }
    }

    /// Returns all links: of an old-style group by name, of a compact group in the order of the
    /// header messages, and of a dense group by the hash of the name. A link that cannot be read is
    /// skipped, and the first error is returned at the end.
    pub(crate) fn links(&self, metadata: &Arc<Metadata>) -> Result<Box<dyn LinkStream>> {
        Ok(match self {
            GroupLinks::SymbolTable(table) => {
                let links = SymbolTableLinks::new(metadata, table);
                Box::new(SymbolTableLinkStream::new(links)?)
            }
            GroupLinks::Compact(links, failure) => {
                Box::new(LinksInMemory::new(Arc::clone(links), failure.clone()))
            }
            GroupLinks::Dense(place) => {
                Box::new(DenseLinkStream::new(&DenseLinks::new(metadata, place))?)
            }
        })
    }
}
