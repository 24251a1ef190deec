//! Object headers, versions 1 and 2, with their continuation blocks. A header is a list of messages
//! that describe an object (HDF5 3.0, IV.A.1).

use std::collections::{HashSet, VecDeque};
use std::ops::Range;

use crate::error::{Error, Result};
use crate::hdf5::file::metadata::{Metadata, verify_checksum};
use crate::hdf5::file::number_form::Address;
use crate::hdf5::message::kind;
use crate::limits;
use crate::source::growing::retry_while_growing;
use crate::wire::{Count, Cursor, to_u64, to_usize};

/// Number of bytes of the first read of a header. Most headers end within these bytes.
pub(crate) const FIRST_READ_BYTES: u64 = 512;

/// Number of bytes of a version 1 object header before its messages, including padding.
const PREFIX_V1_BYTES: usize = 16;

/// Number of bytes of the checksum at the end of each block of a version 2 object header.
const CHECKSUM: usize = 4;

/// The message flag for shared messages, whose data is a pointer to their body.
const SHARED: u8 = 0b10;

/// An object header with all its blocks.
#[derive(Debug)]
pub(crate) struct ObjectHeader {
    /// Absolute offset of the header.
    pub(crate) at: Address,
    /// Number of hard links to the object, from the version 1 prefix or the reference count
    /// message.
    pub(crate) reference_count: u32,
    /// Modification time from a version 2 object header, in seconds since 1970 UTC. `None` if the
    /// header does not store it.
    pub(crate) modification_time: Option<u32>,
    blocks: Vec<Block>,
    /// Number of bytes of all blocks together.
    bytes: u64,
    messages: Vec<MessageLocation>,
}

/// A header message as stored, not resolved if it is shared.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RawMessage<'a> {
    /// The type number of the message, see [`kind`].
    pub(crate) kind: u16,
    /// The message's flags.
    pub(crate) flags: u8,
    /// The creation index of an attribute, or 0 if the header does not store it.
    pub(crate) creation_index: u16,
    /// The message's data.
    pub(crate) data: &'a [u8],
    /// Absolute offset of the data.
    pub(crate) at: u64,
}

impl RawMessage<'_> {
    /// Returns whether the data is a pointer to the message's body.
    pub(crate) fn is_shared(&self) -> bool {
        self.flags & SHARED != 0
    }
}

#[derive(Debug)]
struct Block {
    at: Address,
    bytes: Vec<u8>,
}

#[derive(Debug)]
struct MessageLocation {
    kind: u16,
    flags: u8,
    creation_index: u16,
    block: usize,
    data: Range<usize>,
}

/// The version of an object header, which determines the layout of its messages.
#[derive(Debug, Clone, Copy)]
enum HeaderVersion {
    One,
    Two { creation_index: bool },
}

impl ObjectHeader {
    /// Reads the header at absolute offset `at` and all its continuation blocks.
    ///
    /// # Errors
    /// - `Corrupt` for a damaged block, checksum or chain.
    /// - `Limit` for a header that is too long.
    /// - `Unsupported` for an unknown version, or an unknown message that must not be ignored.
    pub(crate) fn read(metadata: &Metadata, at: Address) -> Result<Self> {
        retry_while_growing(&**metadata.source(), || Self::read_once(metadata, at))
    }

    fn read_once(metadata: &Metadata, at: Address) -> Result<Self> {
        let first = metadata.peek(at, FIRST_READ_BYTES)?;
        let mut header = ObjectHeader {
            at,
            reference_count: 1,
            modification_time: None,
            blocks: Vec::new(),
            bytes: 0,
            messages: Vec::new(),
        };
        let mut continuations = VecDeque::new();
        let version = if first.starts_with(b"OHDR") {
            header.read_prefix_2(metadata, first, &mut continuations)?
        } else {
            header.read_prefix_1(metadata, first, &mut continuations)?
        };
        header.read_continuations(metadata, version, continuations)?;
        header.read_reference_count()?;
        Ok(header)
    }

    /// Returns the messages in the order of the header's blocks.
    pub(crate) fn messages(&self) -> impl Iterator<Item = RawMessage<'_>> {
        self.messages.iter().filter_map(|place| {
            let block = self.blocks.get(place.block)?;
            let data = block.bytes.get(place.data.clone())?;
            let at = block.at.after(to_u64(place.data.start))?.offset();
            Some(RawMessage {
                kind: place.kind,
                flags: place.flags,
                creation_index: place.creation_index,
                data,
                at,
            })
        })
    }

    /// Returns the first message of type `kind`, or `None` if the header has none.
    pub(crate) fn find(&self, kind: u16) -> Option<RawMessage<'_>> {
        self.messages().find(|message| message.kind == kind)
    }

    fn read_prefix_1(
        &mut self,
        metadata: &Metadata,
        first: Vec<u8>,
        continuations: &mut VecDeque<(Address, u64)>,
    ) -> Result<HeaderVersion> {
        let mut cursor = Cursor::new(&first, self.at, "object header");
        cursor.read_version(1..=1)?;
        cursor.skip(1 + 2)?; // reserved, number of messages (bounded by the blocks anyway)
        self.reference_count = cursor.u32()?;
        let size = u64::from(cursor.u32()?);
        let bytes = metadata.read_rest(self.at, first, to_u64(PREFIX_V1_BYTES).plus(size))?;
        let end = bytes.len();
        self.add_block(
            metadata,
            HeaderVersion::One,
            self.at,
            bytes,
            PREFIX_V1_BYTES..end,
            continuations,
        )?;
        Ok(HeaderVersion::One)
    }

    fn read_prefix_2(
        &mut self,
        metadata: &Metadata,
        first: Vec<u8>,
        continuations: &mut VecDeque<(Address, u64)>,
    ) -> Result<HeaderVersion> {
        let mut cursor = Cursor::new(&first, self.at, "object header");
        let PrefixV2 {
            version,
            modification_time,
            size,
        } = PrefixV2::read(&mut cursor)?;
        self.modification_time = modification_time;
        let start = cursor.position();
        let length = size.plus(to_u64(start.plus(CHECKSUM)));
        let bytes = metadata.read_rest(self.at, first, length)?;
        verify_checksum(&bytes, self.at, "object header")?;
        let messages = start..bytes.len().minus_or_zero(CHECKSUM);
        self.add_block(metadata, version, self.at, bytes, messages, continuations)?;
        Ok(version)
    }

    fn read_continuations(
        &mut self,
        metadata: &Metadata,
        version: HeaderVersion,
        mut continuations: VecDeque<(Address, u64)>,
    ) -> Result<()> {
        let mut met = HashSet::from([self.at]);
        if continuations.len() > 1 {
            metadata.prefetch(continuations.iter().copied());
        }
        while let Some((at, length)) = continuations.pop_front() {
            if !met.insert(at) {
                return Err(Error::corrupt(
                    "object header: its continuations form a cycle",
                    at,
                ));
            }
            let bytes = metadata.read(at, length, "object header continuation")?;
            let messages = match version {
                HeaderVersion::One => 0..bytes.len(),
                HeaderVersion::Two { .. } => {
                    Cursor::new(&bytes, at, "object header continuation")
                        .expect_signature(b"OCHK")?;
                    verify_checksum(&bytes, at, "object header continuation")?;
                    4..bytes.len().minus_or_zero(CHECKSUM)
                }
            };
            self.add_block(metadata, version, at, bytes, messages, &mut continuations)?;
        }
        Ok(())
    }

    /// Appends a block to the header. The messages are in the range `messages` of its `bytes`. The
    /// targets of continuation messages are appended to `continuations`.
    fn add_block(
        &mut self,
        metadata: &Metadata,
        version: HeaderVersion,
        at: Address,
        bytes: Vec<u8>,
        messages: Range<usize>,
        continuations: &mut VecDeque<(Address, u64)>,
    ) -> Result<()> {
        self.bytes = self.bytes.plus(to_u64(bytes.len()));
        Error::check_limit(
            self.bytes,
            limits::HEADER_BYTES,
            "bytes of an object header",
        )?;
        Error::check_room(
            self.blocks.len(),
            limits::HEADER_CHUNKS,
            "continuations of an object header",
        )?;
        let block = self.blocks.len();
        let mut cursor = Cursor::new(
            bytes.get(..messages.end).unwrap_or_default(),
            at,
            "object header message",
        );
        cursor.skip(messages.start)?;
        let mut has_nil = false;
        while cursor.remaining() >= prefix_length(version) {
            let place = read_message(&mut cursor, version, block)?;
            has_nil |= place.kind == kind::NIL;
            if place.kind == kind::CONTINUATION {
                let data = bytes.get(place.data.clone()).unwrap_or_default();
                let mut target = Cursor::new(data, cursor.offset(), "continuation message");
                let next = metadata.read_defined_address(&mut target)?;
                let length = metadata.read_length(&mut target)?;
                if length == 0 {
                    return Err(target.corrupt("a block with size 0"));
                }
                continuations.push_back((next, length));
            }
            Error::check_room(
                self.messages.len(),
                limits::HEADER_MESSAGES,
                "messages of an object header",
            )?;
            self.messages.push(place);
        }
        // Writers convert a gap into a NIL message, and the HDF5 library refuses both in one block.
        if has_nil && cursor.remaining() > 0 && matches!(version, HeaderVersion::Two { .. }) {
            return Err(cursor.corrupt("a gap next to a NIL message"));
        }
        self.blocks.push(Block { at, bytes });
        Ok(())
    }

    fn read_reference_count(&mut self) -> Result<()> {
        let Some(message) = self.find(kind::REFERENCE_COUNT) else {
            return Ok(());
        };
        let mut cursor = Cursor::new(message.data, message.at, "reference count message");
        cursor.skip(1)?;
        self.reference_count = cursor.u32()?;
        Ok(())
    }
}

/// The fields of a version 2 object header before its messages.
struct PrefixV2 {
    version: HeaderVersion,
    modification_time: Option<u32>,
    /// Number of bytes of the messages in the header's first block.
    size: u64,
}

impl PrefixV2 {
    fn read(cursor: &mut Cursor<'_>) -> Result<Self> {
        cursor.expect_signature(b"OHDR")?;
        cursor.read_version(2..=2)?;
        let flags = cursor.u8()?;
        let mut modification_time = None;
        if flags & 0x20 != 0 {
            cursor.skip(4)?; // access time
            modification_time = Some(cursor.u32()?);
            cursor.skip(4 + 4)?; // change and birth time
        }
        if flags & 0x10 != 0 {
            cursor.skip(2 + 2)?; // thresholds for dense attribute storage
        }
        Ok(PrefixV2 {
            version: HeaderVersion::Two {
                creation_index: flags & 0b100 != 0,
            },
            modification_time,
            size: cursor.uint(1 << (flags & 0b11))?,
        })
    }
}

/// Returns the types of the messages at the beginning of a damaged or truncated header, up to the
/// first message that cannot be parsed. Does not verify checksums.
pub(crate) fn first_message_types(metadata: &Metadata, at: Address) -> Vec<u16> {
    let first = metadata.peek(at, FIRST_READ_BYTES).unwrap_or_default();
    let mut cursor = Cursor::new(&first, at, "object header");
    let version = if first.starts_with(b"OHDR") {
        PrefixV2::read(&mut cursor).map(|prefix| prefix.version)
    } else {
        cursor
            .read_version(1..=1)
            .and_then(|_| cursor.skip(PREFIX_V1_BYTES.minus_or_zero(1)))
            .map(|()| HeaderVersion::One)
    };
    let mut kinds = Vec::new();
    if let Ok(version) = version {
        while let Ok(place) = read_message(&mut cursor, version, 0) {
            kinds.push(place.kind);
        }
    }
    kinds
}

/// Returns the number of bytes before the data of a message. If fewer bytes remain in a block, they
/// are a gap.
fn prefix_length(version: HeaderVersion) -> usize {
    match version {
        HeaderVersion::One => 8,
        HeaderVersion::Two {
            creation_index: false,
        } => 4,
        HeaderVersion::Two {
            creation_index: true,
        } => 6,
    }
}

fn read_message(
    cursor: &mut Cursor<'_>,
    version: HeaderVersion,
    block: usize,
) -> Result<MessageLocation> {
    let (kind, size, flags, creation_index) = match version {
        HeaderVersion::One => {
            let fields = (cursor.u16()?, cursor.u16()?, cursor.u8()?, 0);
            cursor.skip(3)?;
            fields
        }
        HeaderVersion::Two { creation_index } => {
            let (kind, size, flags) = (cursor.u8()?, cursor.u16()?, cursor.u8()?);
            let index = if creation_index { cursor.u16()? } else { 0 };
            (kind.into(), size, flags, index)
        }
    };
    const MUST_BE_KNOWN: u8 = 0x80;
    if kind > kind::LAST_KNOWN && flags & MUST_BE_KNOWN != 0 {
        return Err(cursor.unsupported(&format!("message type {kind:#06x}")));
    }
    if flags & SHARED != 0 && kind::NEVER_SHARED.contains(&kind) {
        return Err(cursor.corrupt(&format!("type {kind:#06x} is never shared")));
    }
    let start = cursor.position();
    cursor.skip(usize::from(size))?;
    Ok(MessageLocation {
        kind,
        flags,
        creation_index,
        block,
        data: start..cursor.position(),
    })
}

impl Metadata {
    /// Reads up to `most` bytes of an object header at `at`. Fewer bytes are returned at the end of
    /// the file, or at the end of one of its member files.
    fn peek(&self, at: Address, most: u64) -> Result<Vec<u8>> {
        let length = self.source().contiguous_bytes(at.offset()).min(most);
        self.read_uncached(at.offset(), length.max(1), "object header")
    }

    /// Returns the `length` bytes of an object header at `at`. `first` contains the bytes at its
    /// beginning that were already read.
    fn read_rest(&self, at: Address, mut first: Vec<u8>, length: u64) -> Result<Vec<u8>> {
        if length > to_u64(first.len()) {
            return self.read(at, length, "object header");
        }
        first.truncate(to_usize(length)?);
        Ok(first)
    }

    /// Reads the `length` bytes at `at` without caching them, because the parsed object is cached
    /// instead.
    fn read(&self, at: Address, length: u64, what: &'static str) -> Result<Vec<u8>> {
        Error::check_limit(length, limits::HEADER_BYTES, what)?;
        self.budget().spend(length)?;
        self.read_uncached(at.offset(), length, what)
    }
}
