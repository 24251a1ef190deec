//! The bytes of one array, wherever they come from.

use std::sync::{Arc, OnceLock};

use crate::array::ahead::prefetch::Stream;
use crate::array::bytes::Bytes;
use crate::array::decode::held_memory::HeldMemory;
use crate::array::engine::Engine;
use crate::array::kinds::stored::Stored;
use crate::array::kinds::strided::Strided;
use crate::array::kinds::virtual_array::{SourceReader, VirtualArray};
use crate::array::parts::allocation::Allocation;
use crate::error::{Error, Result};
use crate::limits;
use crate::memory::cancel::CancelToken;
use crate::model::Array;
use crate::model::array::{Mappings, Storage};
use crate::wire::{Count, Extent};

/// The bytes of one array; shared by all open files that show it.
#[derive(Debug)]
pub(crate) struct Reader {
    array: Arc<Array>,
    length: u64,
    content: Content,
    allocation: OnceLock<Allocation>,
    /// The reads that belong to no open file, if the source is far: what they need next is asked
    /// for as well.
    ahead: Option<Stream>,
    /// The memory of the description; `None` for a source of a virtual array, which counts in the
    /// cache of such sources.
    _held: Option<HeldMemory>,
}

/// Where the bytes come from.
#[derive(Debug)]
enum Content {
    Stored(Stored),
    Strided(Strided),
    Virtual(VirtualArray),
}

impl Reader {
    /// The bytes of `array`.
    ///
    /// # Errors
    /// Fails with the reason why the storage is not readable, as the description says;
    /// `Unsupported` for a filter that cannot be undone; `Corrupt` where the description
    /// contradicts itself; `Limit` for pieces of a block over the limit; `Io` (`OutOfMemory`) where
    /// the descriptions of all that is open take too much.
    pub(crate) fn new(engine: &Arc<Engine>, array: Arc<Array>) -> Result<Reader> {
        Self::at_depth(engine, array, 0)
    }

    /// The bytes of an array that is a source of `depth` virtual arrays, one for the other.
    fn at_depth(engine: &Arc<Engine>, array: Arc<Array>, depth: usize) -> Result<Reader> {
        let length = array.bytes()?;
        let content = Content::new(engine, &array, length, depth)?;
        let weight = array.weight().with_more(content.weight(&array));
        let held = match depth {
            0 => Some(engine.hold(weight)?),
            _ => None,
        };
        Ok(Reader {
            ahead: content.is_far(length).then(Stream::new),
            array,
            length,
            content,
            allocation: OnceLock::new(),
            _held: held,
        })
    }

    /// The description.
    pub(crate) fn array(&self) -> &Arc<Array> {
        &self.array
    }

    /// Whether reading it takes long because bytes of it are far away.
    pub(crate) fn is_far(&self) -> bool {
        self.ahead.is_some()
    }

    /// Bytes of all elements.
    pub(crate) fn length(&self) -> u64 {
        self.length
    }

    /// The `length` bytes at `offset`; fewer only where the array ends.
    ///
    /// # Errors
    /// Fails if a part of them cannot be read or decoded; never zeros in its stead.
    pub(crate) fn read(&self, offset: u64, length: usize) -> Result<Bytes> {
        self.read_for(offset, length, &CancelToken::default())
    }

    /// Like [`read`](Self::read), until `cancel` says that the reader has gone.
    ///
    /// # Errors
    /// Fails as [`read_in`](Self::read_in) does.
    pub(crate) fn read_for(
        &self,
        offset: u64,
        length: usize,
        cancel: &CancelToken,
    ) -> Result<Bytes> {
        self.read_in(self.ahead.as_ref(), offset, length, cancel)
    }

    /// Like `read`, until `cancel` says that the reader has gone: a decode that no other reader
    /// waits for is given up then. For reads that belong to `stream`, the chunks that a sequential
    /// reader needs next are decoded ahead.
    ///
    /// # Errors
    /// Fails as `read` does; [`Error::unwanted`](crate::error::Error::unwanted) once it is
    /// cancelled.
    pub(crate) fn read_in(
        &self,
        stream: Option<&Stream>,
        offset: u64,
        length: usize,
        cancel: &CancelToken,
    ) -> Result<Bytes> {
        let end = self.end(offset, length);
        if offset >= end {
            return Ok(Bytes::from(Vec::new()));
        }
        match &self.content {
            Content::Stored(stored) => stored.read(offset, end, stream, cancel),
            Content::Strided(strided) => strided.read(offset, end, stream, cancel),
            Content::Virtual(parts) => parts.read(offset, end, cancel),
        }
    }

    /// Like `read_in`, but only if the bytes are to be had without decoding, waiting or searching
    /// an index: those of one chunk that is decoded already, or that stand in the file as they are.
    ///
    /// # Errors
    /// Fails as `read` does.
    pub(crate) fn read_now(
        &self,
        stream: &Stream,
        offset: u64,
        length: usize,
    ) -> Result<Option<Bytes>> {
        let end = self.end(offset, length);
        if offset >= end {
            return Ok(Some(Bytes::from(Vec::new())));
        }
        match &self.content {
            Content::Stored(stored) => stored.read_now(offset, end, Some(stream)),
            Content::Strided(strided) => strided.read_now(offset, end, Some(stream)),
            Content::Virtual(_) => Ok(None),
        }
    }

    /// The chunk at `place` of the array's grid as it is decoded, also where it sticks out of the
    /// array: at most `length` bytes from `offset` on.
    ///
    /// # Errors
    /// `NotFound` where the array has no such chunk; else fails as `read_in` does.
    pub(crate) fn read_chunk(
        &self,
        place: &[u64],
        offset: u64,
        length: usize,
        cancel: &CancelToken,
    ) -> Result<Bytes> {
        match &self.content {
            Content::Stored(stored) => stored.read_chunk(place, offset, length, cancel),
            Content::Strided(_) | Content::Virtual(_) => Err(Error::NotFound),
        }
    }

    /// Like `read_chunk`, but only if the chunk is decoded already.
    pub(crate) fn decoded_chunk(&self, place: &[u64], offset: u64, length: usize) -> Option<Bytes> {
        match &self.content {
            Content::Stored(stored) => stored.decoded_chunk(place, offset, length),
            Content::Strided(_) | Content::Virtual(_) => None,
        }
    }

    fn end(&self, offset: u64, length: usize) -> u64 {
        Extent::cut(offset, length as u64).end().min(self.length)
    }

    /// Whether reading it may take long for each byte: it is decoded.
    pub(crate) fn is_encoded(&self) -> bool {
        match &self.content {
            Content::Stored(stored) => stored.is_encoded(),
            Content::Strided(_) | Content::Virtual(_) => true,
        }
    }

    /// Hands over all bytes in order; those of an encoded block so that each piece is decoded once.
    ///
    /// # Errors
    /// Fails as `read` does.
    pub(crate) fn read_all(&self, visit: &mut dyn FnMut(&[u8])) -> Result<()> {
        const PART: u64 = 1 << 20;
        let piece = match &self.content {
            Content::Stored(stored) => stored.chunk_bytes().unwrap_or(1).min(limits::CHUNK_BYTES),
            _ => 1,
        };
        let part = piece * (PART / piece).max(1);
        for offset in (0..self.length).step_by(part as usize) {
            visit(&self.read(offset, part as usize)?);
        }
        Ok(())
    }

    /// Which parts of the array are stored; found once, by a walk over the chunk index within
    /// limits.
    ///
    /// # Errors
    /// Fails if the chunk index is damaged.
    pub(crate) fn allocation(&self) -> Result<Allocation> {
        if let Some(known) = self.allocation.get() {
            return Ok(known.clone());
        }
        let found = match &self.content {
            Content::Stored(stored) => stored.allocation()?,
            Content::Strided(strided) => {
                Allocation::dense(strided.stored_bytes(self.length)?, self.length)
            }
            Content::Virtual(_) => Allocation::dense(self.length, self.length),
        };
        Ok(self.allocation.get_or_init(|| found).clone())
    }
}

impl SourceReader for Reader {
    fn array(&self) -> &Arc<Array> {
        &self.array
    }

    fn read(&self, offset: u64, length: usize, cancel: &CancelToken) -> Result<Bytes> {
        self.read_for(offset, length, cancel)
    }
}

impl Content {
    fn new(engine: &Arc<Engine>, array: &Arc<Array>, length: u64, depth: usize) -> Result<Self> {
        Ok(match &array.storage {
            Ok(Storage::Strided(strided)) if length > 0 => {
                Content::Strided(Strided::new(engine, array, strided)?)
            }
            Ok(Storage::Virtual(mappings)) if length > 0 => {
                Content::Virtual(virtual_array(engine, array, mappings, depth)?)
            }
            _ => Content::Stored(Stored::new(engine, array)?),
        })
    }

    /// Whether its `length` bytes stand in a far source.
    fn is_far(&self, length: u64) -> bool {
        match self {
            Content::Stored(stored) => stored.is_far(0, length.min(1)),
            Content::Strided(strided) => strided.is_far(),
            Content::Virtual(_) => false,
        }
    }

    /// Bytes of memory that it takes beside the description.
    fn weight(&self, array: &Array) -> u64 {
        match (self, &array.storage) {
            (Content::Virtual(parts), _) => parts.weight(),
            (Content::Strided(_), Ok(Storage::Strided(strided))) => strided.base.weight(),
            _ => 0,
        }
    }
}

/// The array that `mappings` make of others, each of which has a reader of its own.
fn virtual_array(
    engine: &Arc<Engine>,
    array: &Arc<Array>,
    mappings: &Mappings,
    depth: usize,
) -> Result<VirtualArray> {
    let sources = &engine.sources;
    let engine = Arc::clone(engine);
    let open_reader = move |array| -> Result<Box<dyn SourceReader>> {
        Ok(Box::new(Reader::at_depth(&engine, array, depth + 1)?))
    };
    VirtualArray::new(array, mappings, depth, sources, Box::new(open_reader))
}
