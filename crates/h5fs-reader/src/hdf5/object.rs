//! Objects, which are described by the messages of an object header (HDF5 3.0, IV.A).

use std::sync::Arc;

use crate::error::{Error, Result};
use crate::hdf5::dataset::DatasetReader;
use crate::hdf5::file::context::Context;
use crate::hdf5::file::number_form::Address;
use crate::hdf5::group::GroupLinks;
use crate::hdf5::message::{kind, modification_time, object_comment};
use crate::hdf5::object_header::ObjectHeader;
use crate::model::{Link, Node, NodeKind};
use crate::wire::{Count, Cursor, to_u64};

/// A parsed object: its node in the data model, and its links if it is a group.
#[derive(Debug)]
pub(crate) struct Object {
    /// The node that represents the object in the data model.
    pub(crate) node: Arc<Node>,
    /// The links of the object, or `None` if it is not a group.
    pub(crate) group: Option<GroupLinks>,
}

/// Types of header messages that only datasets have. An object with one of them is a dataset, even
/// if other messages are missing.
const DATASET_MESSAGE_TYPES: [u16; 6] = [
    kind::DATASPACE,
    kind::DATA_LAYOUT,
    kind::FILL_VALUE,
    kind::FILL_VALUE_OLD,
    kind::EXTERNAL_FILES,
    kind::FILTER_PIPELINE,
];

impl Object {
    /// Reads the object whose header is at absolute offset `at`. `error` is a known problem of the
    /// object, which is stored in its node.
    ///
    /// # Errors
    /// Fails if the header or a required message is damaged or unsupported.
    pub(crate) fn read(context: &Context, at: Address, error: Option<Error>) -> Result<Self> {
        let header = ObjectHeader::read(&context.metadata, at)?;
        let group = GroupLinks::read(&context.metadata, &header)?;
        let reader = DatasetReader {
            context,
            header: &header,
        };
        let has = |kinds: &[u16]| kinds.iter().any(|kind| header.find(*kind).is_some());
        let kind = match group {
            Some(_) if has(&[kind::DATASPACE, kind::DATATYPE, kind::DATA_LAYOUT]) => {
                return Err(Error::corrupt("object header: both group and dataset", at));
            }
            Some(_) => NodeKind::Group,
            None if has(&DATASET_MESSAGE_TYPES) => NodeKind::Array(Arc::new(reader.read()?)),
            None if header.find(kind::DATATYPE).is_some() => {
                NodeKind::CommittedDatatype(reader.read_datatype()?)
            }
            None => {
                return Err(Error::corrupt(
                    "object header: neither group nor dataset",
                    at,
                ));
            }
        };
        let node = Node {
            id: at.try_into()?,
            kind,
            link_count: header.reference_count,
            modified: read_modification_time(&header),
            comment: read_comment(&header),
            tag: None,
            assembled_array: None,
            error,
        };
        Ok(Object {
            node: Arc::new(node),
            group,
        })
    }

    /// Returns the approximate memory in bytes that the object takes.
    pub(crate) fn weight(&self) -> u64 {
        let content = match (&self.group, &self.node.kind) {
            (Some(GroupLinks::Compact(links, _)), _) => links.iter().map(Link::weight).sum(),
            (_, NodeKind::Array(array)) => array.weight(),
            (_, NodeKind::CommittedDatatype(datatype)) => datatype.weight(),
            _ => 0,
        };
        let comment = self.node.comment.as_ref().map_or(0, Vec::len);
        let own = Count::sum([size_of::<Node>(), size_of::<Self>(), comment]);
        content.plus(to_u64(own))
    }
}

/// Returns the modification time in seconds since 1970 UTC, or `None` if the header has no time
/// that can be read.
fn read_modification_time(header: &ObjectHeader) -> Option<i64> {
    if let Some(seconds) = header.modification_time {
        return Some(i64::from(seconds));
    }
    header.messages().find_map(|message| {
        let mut cursor = Cursor::new(message.data, message.at, "modification time message");
        match message.kind {
            kind::MODIFICATION_TIME => modification_time::read(&mut cursor).ok(),
            kind::MODIFICATION_TIME_OLD => modification_time::read_old(&mut cursor).ok(),
            _ => None,
        }
    })
}

fn read_comment(header: &ObjectHeader) -> Option<Vec<u8>> {
    let message = header.find(kind::OBJECT_COMMENT)?;
    let mut cursor = Cursor::new(message.data, message.at, "object comment message");
    object_comment::read(&mut cursor).ok()
}
