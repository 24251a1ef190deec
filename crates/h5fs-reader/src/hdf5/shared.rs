//! Shared messages, whose body is stored in a committed datatype's header or on the file's shared
//! message heaps (HDF5 3.0, III.I, IV.A.2 and IV.A.2.p).

use std::borrow::Cow;
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::hdf5::file::metadata::{Metadata, verify_checksum};
use crate::hdf5::file::number_form::Address;
use crate::hdf5::heap::fractal::FractalHeap;
use crate::hdf5::object_header::{ObjectHeader, RawMessage};
use crate::wire::{Count, Cursor, to_u64};

/// The resolver of shared messages of one file: it finds the body that a shared message points to.
#[derive(Debug)]
pub(crate) struct SharedMessages {
    metadata: Arc<Metadata>,
    indexes: Arc<[SharedMessageIndex]>,
}

/// One index of the shared message table: the message types that it contains, as a bit mask, and
/// their heap.
#[derive(Debug)]
struct SharedMessageIndex {
    message_types: u16,
    heap: Option<Address>,
}

/// The body of a header message. If the message is shared, this is the body that the message points
/// to.
#[derive(Debug)]
pub(crate) struct MessageBody<'a> {
    bytes: Cow<'a, [u8]>,
    at: u64,
}

impl MessageBody<'_> {
    /// Returns a cursor at the body's start. `structure` is the message's name, for errors.
    pub(crate) fn cursor(&self, structure: &'static str) -> Cursor<'_> {
        Cursor::new(&self.bytes, self.at, structure)
    }
}

impl SharedMessages {
    /// Creates the resolver for a file without a shared message table, where only committed
    /// datatypes can be shared.
    pub(crate) fn without_table(metadata: Arc<Metadata>) -> Self {
        SharedMessages {
            metadata,
            indexes: Arc::default(),
        }
    }

    /// Creates the resolver for a file whose superblock extension has the shared message table
    /// message `message`.
    pub(crate) fn with_table(metadata: Arc<Metadata>, message: &RawMessage<'_>) -> Result<Self> {
        let mut cursor = Cursor::new(message.data, message.at, "shared message table message");
        cursor.read_version(0..=0)?;
        let table = metadata.read_defined_address(&mut cursor)?;
        let count = cursor.u8()?;
        let indexes = read_table(&metadata, table, count)?.into();
        Ok(SharedMessages { metadata, indexes })
    }

    /// Returns a view of the same resolver that reads through `metadata`.
    pub(crate) fn with_metadata(&self, metadata: &Arc<Metadata>) -> Self {
        SharedMessages {
            metadata: Arc::clone(metadata),
            indexes: Arc::clone(&self.indexes),
        }
    }

    /// Returns the body of `message`. If the message is shared, this is the body that the message
    /// points to.
    pub(crate) fn resolve<'a>(&self, message: &RawMessage<'a>) -> Result<MessageBody<'a>> {
        self.resolve_body(message.kind, message.is_shared(), message.data, message.at)
    }

    /// Returns the body of a message of type `kind` with data `data` at absolute offset `at`. If
    /// `is_shared` is true, `data` is a pointer to the body.
    ///
    /// # Errors
    /// `Corrupt` if the pointer does not lead to a message of that type.
    pub(crate) fn resolve_body<'a>(
        &self,
        kind: u16,
        is_shared: bool,
        data: &'a [u8],
        at: u64,
    ) -> Result<MessageBody<'a>> {
        /// The flag for a body on the global heap, which only version 1.0 of the format defines.
        const ON_GLOBAL_HEAP: u8 = 1;
        if !is_shared {
            return Ok(MessageBody {
                bytes: Cow::Borrowed(data),
                at,
            });
        }
        let mut cursor = Cursor::new(data, at, "shared message");
        let bytes = match (cursor.u8()?, cursor.u8()?) {
            (1, flags) if flags & ON_GLOBAL_HEAP == 0 => {
                cursor.skip(self.metadata.structure_size(0, 1, 6))?; // an unused name offset
                self.read_committed(kind, &mut cursor)?
            }
            (2, _) | (3, 2) => self.read_committed(kind, &mut cursor)?,
            (3, 1) => self.read_from_heap(kind, cursor.read_bytes(HEAP_ID)?, at)?,
            (version, place) => {
                let what = format!("version {version}, type {place}");
                return Err(cursor.unsupported(&what));
            }
        };
        Ok(MessageBody {
            bytes: Cow::Owned(bytes),
            at,
        })
    }

    /// Reads the shared message of type `kind` whose fractal heap ID is `id`. `at` is the location
    /// for errors.
    pub(crate) fn read_from_heap(&self, kind: u16, id: &[u8], at: u64) -> Result<Vec<u8>> {
        let holds = |index: &&SharedMessageIndex| {
            index
                .message_types
                .checked_shr(u32::from(kind))
                .unwrap_or(0)
                & 1
                != 0
        };
        let index = self.indexes.iter().find(holds);
        let heap = index.and_then(|index| index.heap).ok_or_else(|| {
            Error::corrupt(
                format!("shared message: no heap for message type {kind:#04x}"),
                at,
            )
        })?;
        FractalHeap::open(&self.metadata, heap)?.read_object(id)
    }

    /// Returns the message of type `kind` in the object header whose address is next in `cursor`.
    /// The message must not be shared itself, so that no chain is possible.
    fn read_committed(&self, kind: u16, cursor: &mut Cursor<'_>) -> Result<Vec<u8>> {
        let at = self.metadata.read_defined_address(cursor)?;
        let header = ObjectHeader::read(&self.metadata, at)?;
        match header.find(kind) {
            Some(message) if !message.is_shared() => Ok(message.data.to_vec()),
            Some(_) => Err(Error::corrupt(
                "shared message: its target is a shared message",
                at,
            )),
            None => Err(Error::corrupt(
                "shared message: its target header does not contain it",
                at,
            )),
        }
    }
}

/// Number of bytes of a fractal heap ID in a shared message.
const HEAP_ID: usize = 8;

fn read_table(metadata: &Metadata, at: Address, count: u8) -> Result<Vec<SharedMessageIndex>> {
    const WHAT: &str = "shared message table";
    let entry = metadata.structure_size(2, 0, 1 + 1 + 2 + 4 + 2 + 2 + 2);
    let length = entry.times(usize::from(count)).plus(4 + 4);
    let verify = |block: &[u8]| verify_checksum(block, at, WHAT);
    let block = metadata.verified_block(at, to_u64(length), WHAT, verify)?;
    let mut cursor = Cursor::new(&block, at, WHAT);
    cursor.expect_signature(b"SMTB")?;
    (0..count)
        .map(|_| read_index(metadata, &mut cursor))
        .collect()
}

/// Reads one index of the shared message table. A reader needs only the heap, because a shared
/// message contains the heap ID of its body. The list or B-tree of the index is only for writers.
fn read_index(metadata: &Metadata, cursor: &mut Cursor<'_>) -> Result<SharedMessageIndex> {
    cursor.read_version(0..=0)?;
    cursor.skip(1)?; // kind of index
    let message_types = cursor.u16()?;
    cursor.skip(4 + 2 + 2 + 2)?; // smallest size, cutoffs, number of messages
    metadata.read_address(cursor)?; // the list or B-tree
    Ok(SharedMessageIndex {
        message_types,
        heap: metadata.read_address(cursor)?,
    })
}
