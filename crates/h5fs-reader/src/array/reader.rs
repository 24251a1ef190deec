//! The reader of one array, however the array is stored.

use std::sync::{Arc, OnceLock};

use crate::array::bytes::Bytes;
use crate::array::decode::held_memory::MemoryReservation;
use crate::array::engine::Engine;
use crate::array::geometry::allocation::Allocation;
use crate::array::kinds::stored::StoredArray;
use crate::array::kinds::strided::StridedReader;
use crate::array::kinds::virtual_array::{SourceReader, VirtualArray};
use crate::array::read_ahead::prefetch::ReadStream;
use crate::array::selected::{SelectableArray, SelectedElements};
use crate::array::stored_elements::StoredElements;
use crate::error::{Error, Result};
use crate::limits;
use crate::memory::cancel::CancelToken;
use crate::model::Array;
use crate::model::array::{Mappings, Storage};
use crate::wire::{Count, Extent};

/// The reader of one array's bytes. All open files that show the array share the reader.
#[derive(Debug)]
pub struct Reader {
    array: Arc<Array>,
    length: u64,
    content: ReaderStorage,
    allocation: OnceLock<Allocation>,
    /// The stream of reads that belong to no open file, if the source is remote. The bytes that
    /// these reads need next are requested ahead.
    default_stream: Option<ReadStream>,
    /// The memory that is reserved for the array's description. `None` for a source of a virtual
    /// array, because the cache of such sources counts its memory.
    _held: Option<MemoryReservation>,
}

/// The storage that the bytes come from.
#[derive(Debug)]
enum ReaderStorage {
    Stored(StoredArray),
    Strided(StridedReader),
    Selected(SelectedElements),
    Virtual(VirtualArray),
}

impl Reader {
    /// Returns the reader of `array`.
    ///
    /// # Errors
    /// - The description's error, if the storage is not readable.
    /// - `Unsupported` for a filter that cannot be decoded.
    /// - `Corrupt` if the description contradicts itself.
    /// - `Limit` for an encoded block in pieces of more than `limits::CHUNK_BYTES`.
    /// - `Io` (`OutOfMemory`) if the descriptions of all open arrays take too much memory.
    pub fn new(engine: &Arc<Engine>, array: Arc<Array>) -> Result<Reader> {
        Self::new_nested(engine, array, 0)
    }

    /// Returns the reader of an array that is nested in `depth` virtual arrays as a source.
    fn new_nested(engine: &Arc<Engine>, array: Arc<Array>, depth: usize) -> Result<Reader> {
        let length = array.byte_length()?;
        let content = ReaderStorage::new(engine, &array, length, depth)?;
        let weight = array.weight().plus(content.weight(&array));
        let held = match depth {
            0 => Some(engine.reserve_memory(weight)?),
            _ => None,
        };
        Ok(Reader {
            default_stream: content.is_remote(length).then(ReadStream::new),
            array,
            length,
            content,
            allocation: OnceLock::new(),
            _held: held,
        })
    }

    /// Returns the description of the array.
    pub fn array(&self) -> &Arc<Array> {
        &self.array
    }

    /// Returns whether reading may take long because bytes are in a remote source.
    pub fn is_remote(&self) -> bool {
        self.default_stream.is_some()
    }

    /// Returns the number of bytes of all elements.
    pub fn length(&self) -> u64 {
        self.length
    }

    /// Reads the `length` bytes at `offset`. Fewer bytes are returned only where the array ends.
    ///
    /// # Errors
    /// Fails if a part of the bytes cannot be read or decoded. Such a part is never replaced by
    /// zeros.
    pub fn read(&self, offset: u64, length: usize) -> Result<Bytes> {
        self.read_with_cancel(offset, length, &CancelToken::default())
    }

    /// Reads like [`read`](Self::read), until `cancel` reports that the reader has gone.
    ///
    /// # Errors
    /// Fails as [`read_in_stream`](Self::read_in_stream) does.
    pub fn read_with_cancel(
        &self,
        offset: u64,
        length: usize,
        cancel: &CancelToken,
    ) -> Result<Bytes> {
        self.read_in_stream(self.default_stream.as_ref(), offset, length, cancel)
    }

    /// Reads like `read`, until `cancel` reports that the reader has gone. A decode that no other
    /// reader waits for is then given up. For reads that belong to `stream`, the chunks that a
    /// sequential reader needs next are decoded ahead.
    ///
    /// # Errors
    /// Fails as `read` does, or with [`Error::cancelled`](crate::error::Error::cancelled) once the
    /// read is cancelled.
    pub fn read_in_stream(
        &self,
        stream: Option<&ReadStream>,
        offset: u64,
        length: usize,
        cancel: &CancelToken,
    ) -> Result<Bytes> {
        let end = self.read_end(offset, length);
        if offset >= end {
            return Ok(Bytes::from(Vec::new()));
        }
        match &self.content {
            ReaderStorage::Stored(stored) => stored.read(offset, end, stream, cancel),
            ReaderStorage::Strided(strided) => strided.read(offset, end, stream, cancel),
            ReaderStorage::Selected(elements) => elements.read_to(offset, end, cancel),
            ReaderStorage::Virtual(parts) => parts.read(offset, end, cancel),
        }
    }

    /// Reads like [`read_in_stream`](Self::read_in_stream), but returns `None` if that would
    /// require decoding, waiting or searching an index. Available are bytes of one chunk that is
    /// already decoded, and bytes that the file stores unencoded.
    ///
    /// # Errors
    /// Fails as `read` does.
    pub fn try_read(
        &self,
        stream: &ReadStream,
        offset: u64,
        length: usize,
    ) -> Result<Option<Bytes>> {
        let end = self.read_end(offset, length);
        if offset >= end {
            return Ok(Some(Bytes::from(Vec::new())));
        }
        match &self.content {
            ReaderStorage::Stored(stored) => stored.try_read(offset, end, Some(stream)),
            ReaderStorage::Strided(strided) => strided.try_read(offset, end, Some(stream)),
            ReaderStorage::Selected(_) | ReaderStorage::Virtual(_) => Ok(None),
        }
    }

    /// Reads at most `length` bytes from `offset` on of the decoded chunk at grid coordinates
    /// `place`. An edge chunk is read as a whole, including elements outside the array.
    ///
    /// # Errors
    /// `NotFound` if the chunk does not exist. Otherwise fails as `read_in_stream` does.
    pub fn read_chunk(
        &self,
        place: &[u64],
        offset: u64,
        length: usize,
        cancel: &CancelToken,
    ) -> Result<Bytes> {
        match &self.content {
            ReaderStorage::Stored(stored) => stored.read_chunk(place, offset, length, cancel),
            _ => Err(Error::NotFound),
        }
    }

    /// Reads like `read_chunk`, but returns `None` if the chunk is not decoded yet.
    pub fn try_read_chunk(&self, place: &[u64], offset: u64, length: usize) -> Option<Bytes> {
        match &self.content {
            ReaderStorage::Stored(stored) => stored.try_read_chunk(place, offset, length),
            _ => None,
        }
    }

    fn read_end(&self, offset: u64, length: usize) -> u64 {
        Extent::saturating(offset, length as u64)
            .end()
            .min(self.length)
    }

    /// Returns whether bytes are slow to read because they have to be decoded, or collected from a
    /// strided block or from several sources.
    pub fn is_slow_to_read(&self) -> bool {
        match &self.content {
            ReaderStorage::Stored(stored) => stored.is_encoded(),
            _ => true,
        }
    }

    /// Passes all bytes to `visit` in order. Each piece of an encoded block is decoded once.
    ///
    /// # Errors
    /// Fails as `read` does.
    pub fn read_all(&self, visit: &mut dyn FnMut(&[u8])) -> Result<()> {
        const PART: u64 = 1 << 20;
        let piece = match &self.content {
            ReaderStorage::Stored(stored) => {
                stored.chunk_bytes().unwrap_or(1).min(limits::CHUNK_BYTES)
            }
            _ => 1,
        };
        let part = piece * (PART / piece).max(1);
        for offset in (0..self.length).step_by(part as usize) {
            visit(&self.read(offset, part as usize)?);
        }
        Ok(())
    }

    /// Returns which parts of the array are stored. The first call walks over the chunk index
    /// within limits, and later calls return the same result.
    ///
    /// # Errors
    /// Fails if the chunk index is damaged.
    pub fn allocation(&self) -> Result<Allocation> {
        if let Some(known) = self.allocation.get() {
            return Ok(known.clone());
        }
        let found = match &self.content {
            ReaderStorage::Stored(stored) => stored.allocation()?,
            ReaderStorage::Strided(strided) => {
                Allocation::dense(strided.stored_bytes(self.length)?, self.length)
            }
            ReaderStorage::Selected(_) | ReaderStorage::Virtual(_) => {
                Allocation::dense(self.length, self.length)
            }
        };
        Ok(self.allocation.get_or_init(|| found).clone())
    }
}

impl SourceReader for Reader {
    fn array(&self) -> &Arc<Array> {
        &self.array
    }

    fn read(&self, offset: u64, length: usize, cancel: &CancelToken) -> Result<Bytes> {
        self.read_with_cancel(offset, length, cancel)
    }
}

impl SelectableArray for Reader {
    fn array(&self) -> &Arc<Array> {
        &self.array
    }

    fn is_remote(&self) -> bool {
        self.is_remote()
    }

    fn read_in_order(
        &self,
        stream: Option<&ReadStream>,
        offset: u64,
        length: usize,
        cancel: &CancelToken,
    ) -> Result<Bytes> {
        self.read_in_stream(stream, offset, length, cancel)
    }
}

impl StoredElements for Reader {
    fn read_stored(&self, offset: u64, length: usize, cancel: &CancelToken) -> Result<Bytes> {
        self.read_with_cancel(offset, length, cancel)
    }

    fn known_allocation(&self) -> Option<Allocation> {
        self.allocation().ok()
    }
}

impl ReaderStorage {
    fn new(engine: &Arc<Engine>, array: &Arc<Array>, length: u64, depth: usize) -> Result<Self> {
        Ok(match &array.storage {
            Ok(Storage::Strided(strided)) if length > 0 => {
                ReaderStorage::Strided(StridedReader::new(engine, array, strided)?)
            }
            Ok(Storage::Selected(selected)) if length > 0 => {
                let base = Reader::new_nested(engine, Arc::clone(&selected.base), depth)?;
                let selection = &selected.selection;
                ReaderStorage::Selected(SelectedElements::new(Arc::new(base), selection)?)
            }
            Ok(Storage::Virtual(mappings)) if length > 0 => {
                ReaderStorage::Virtual(open_virtual_array(engine, array, mappings, depth)?)
            }
            _ => ReaderStorage::Stored(StoredArray::new(engine, array)?),
        })
    }

    /// Returns whether the array's `length` bytes are in a remote source. Always false for a
    /// virtual array.
    fn is_remote(&self, length: u64) -> bool {
        match self {
            ReaderStorage::Stored(stored) => stored.is_remote(0, length.min(1)),
            ReaderStorage::Strided(strided) => strided.is_remote(),
            ReaderStorage::Selected(elements) => elements.is_remote(),
            ReaderStorage::Virtual(_) => false,
        }
    }

    /// Returns the memory in bytes that the storage takes in addition to the array's description.
    fn weight(&self, array: &Array) -> u64 {
        match (self, &array.storage) {
            (ReaderStorage::Virtual(parts), _) => parts.weight(),
            (ReaderStorage::Strided(_), Ok(Storage::Strided(strided))) => strided.base.weight(),
            (ReaderStorage::Selected(_), Ok(Storage::Selected(selected))) => selected.base.weight(),
            _ => 0,
        }
    }
}

/// Returns the virtual array that `mappings` assemble from other arrays, each with a reader of its
/// own.
fn open_virtual_array(
    engine: &Arc<Engine>,
    array: &Arc<Array>,
    mappings: &Mappings,
    depth: usize,
) -> Result<VirtualArray> {
    let sources = &engine.sources;
    let engine = Arc::clone(engine);
    let open_reader = move |array| -> Result<Box<dyn SourceReader>> {
        Ok(Box::new(Reader::new_nested(&engine, array, depth + 1)?))
    };
    VirtualArray::new(array, mappings, depth, sources, Box::new(open_reader))
}
