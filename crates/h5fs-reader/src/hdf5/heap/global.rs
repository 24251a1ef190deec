//! Global heaps: collections of objects of any size. Variable-length elements, region references
//! and virtual datasets point to these objects (HDF5 3.0, III.E).

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::hdf5::file::metadata::Metadata;
use crate::hdf5::file::number_form::Address;
use crate::hdf5::heap::texts::NulFreeRanges;
use crate::limits;
use crate::memory::shared_lru::FileLru;
use crate::source::check_range;
use crate::wire::{Count, Cursor, Extent, merge_ranges, to_u64};

/// Number of bytes of a collection's header, and also of an object's header. Both are padded to a
/// multiple of 8.
const PADDED_HEADER_BYTES: u64 = 16;

/// Number of bytes that are read at a time when a collection's directory is built.
const WINDOW_BYTES: u64 = 16 << 10;

/// The directory of one global heap collection: the location of each object.
#[derive(Debug)]
pub(crate) struct ObjectDirectory {
    at: u64,
    /// The first bytes of the collection, if one read contained all object headers. Empty for a
    /// collection whose directory needed several reads.
    bytes: Vec<u8>,
    /// The index of each object and the extent of its data in the file, sorted by index.
    objects: Vec<(u16, Extent)>,
}

/// All global heap collections of a file.
#[derive(Debug)]
pub(crate) struct GlobalHeap {
    metadata: Arc<Metadata>,
    directories: Arc<FileLru<u64, Arc<ObjectDirectory>>>,
    texts: Arc<NulFreeRanges>,
}

impl GlobalHeap {
    /// Returns the global heap of the file that `metadata` reads. The directories of its
    /// collections are cached in `directories`.
    pub(crate) fn new(
        metadata: Arc<Metadata>,
        directories: FileLru<u64, Arc<ObjectDirectory>>,
    ) -> Self {
        GlobalHeap {
            metadata,
            directories: Arc::new(directories),
            texts: Arc::default(),
        }
    }

    /// Returns a view of the same heap that reads through `metadata`.
    pub(crate) fn with_metadata(&self, metadata: &Arc<Metadata>) -> Self {
        GlobalHeap {
            metadata: Arc::clone(metadata),
            directories: Arc::clone(&self.directories),
            texts: Arc::clone(&self.texts),
        }
    }

    /// Drops the remembered ends of long strings.
    pub(crate) fn clear_text_ends(&self) {
        self.texts.clear();
    }

    /// Asks a remote source for the collections at these addresses, except those whose directories
    /// are cached.
    pub(crate) fn prefetch_collections(&self, collections: impl Iterator<Item = Address>) {
        let mut different = BTreeSet::new();
        for collection in collections {
            if different.len() < limits::RANGES_AT_ONCE {
                different.insert(collection.offset());
            }
        }
        different.retain(|&collection| self.directories.get(collection).is_none());
        // Most collections are shorter than the first read.
        let ranges = merge_ranges(different.into_iter().map(|at| (at, WINDOW_BYTES)));
        self.metadata.prefetch_at(ranges.into_iter());
    }

    /// Returns the range `part`, in bytes, of object `index` in the collection at absolute offset
    /// `collection`. The object must have `length` bytes.
    ///
    /// # Errors
    /// `Corrupt` if the collection has no or two objects `index`, or if the length differs. `Limit`
    /// for a range of more than [`limits::VARIABLE_LENGTH_BYTES`] bytes.
    pub(crate) fn read_object_range(
        &self,
        collection: Address,
        index: u32,
        length: u64,
        part: Range<u64>,
    ) -> Result<Vec<u8>> {
        let (directory, object) = self.find_object(collection, index, length)?;
        let wanted = object.first(part.end).skip(part.start);
        Error::check_limit(
            wanted.length(),
            limits::VARIABLE_LENGTH_BYTES,
            "variable-length element",
        )?;
        self.read_part(&directory, wanted)
    }

    /// Returns the first `length` bytes of object `index` in the collection at absolute offset
    /// `collection`.
    ///
    /// # Errors
    /// Fails as [`read_object_range`](Self::read_object_range) does.
    pub(crate) fn read_object_prefix(
        &self,
        collection: Address,
        index: u32,
        length: u64,
    ) -> Result<Vec<u8>> {
        let directory = self.read_directory(collection)?;
        let object = directory.find(index)?;
        if length <= object.length() {
            self.read_part(&directory, object.first(length))
        } else {
            let what = "global heap object: ends too early";
            Err(Error::corrupt(what, object.start()))
        }
    }

    /// Returns the number of bytes before the first NUL of object `index` in the collection at
    /// absolute offset `collection`. The object must have `length` bytes.
    ///
    /// # Errors
    /// Fails as [`read_object_range`](Self::read_object_range) does.
    pub(crate) fn text_length(&self, collection: Address, index: u32, length: u64) -> Result<u64> {
        let (directory, object) = self.find_object(collection, index, length)?;
        let fetch = |part: Range<u64>| self.read_part(&directory, part.into());
        let end = self.texts.find_text_end(object.range(), fetch)?;
        Ok(end.minus_or_zero(object.start()))
    }

    /// Returns the directory of the collection and the extent of object `index`, which must have
    /// `length` bytes.
    fn find_object(
        &self,
        collection: Address,
        index: u32,
        length: u64,
    ) -> Result<(Arc<ObjectDirectory>, Extent)> {
        let directory = self.read_directory(collection)?;
        let object = directory.find(index)?;
        if length == object.length() {
            Ok((directory, object))
        } else {
            let what = "global heap object: its length differs from its element";
            Err(Error::corrupt(what, object.start()))
        }
    }

    /// Returns the bytes of `part`, a range of the file within an object of `directory`.
    fn read_part(&self, directory: &ObjectDirectory, part: Extent) -> Result<Vec<u8>> {
        match directory.bytes_in_memory(part) {
            Some(bytes) => Ok(bytes.to_vec()),
            None => {
                let (at, length) = (part.start(), part.length());
                self.metadata
                    .read_uncached(at, length, "global heap object")
            }
        }
    }

    /// Returns all bytes of object `index` in the collection at absolute offset `collection`.
    ///
    /// # Errors
    /// Fails as [`read_object_range`](Self::read_object_range) does. `Limit` if the object is
    /// longer than `most` bytes.
    pub(crate) fn read_whole_object(
        &self,
        collection: Address,
        index: u32,
        most: u64,
    ) -> Result<Vec<u8>> {
        let size = self.object_length(collection, index)?;
        Error::check_limit(size, most, "global heap object")?;
        self.read_object_range(collection, index, size, 0..size)
    }

    /// Returns the length in bytes of object `index` in the collection at absolute offset
    /// `collection`.
    ///
    /// # Errors
    /// Fails as [`read_object_range`](Self::read_object_range) does.
    pub(crate) fn object_length(&self, collection: Address, index: u32) -> Result<u64> {
        Ok(self.read_directory(collection)?.find(index)?.length())
    }

    fn read_directory(&self, collection: Address) -> Result<Arc<ObjectDirectory>> {
        if let Some(directory) = self.directories.get(collection.offset()) {
            return Ok(directory);
        }
        let directory = Arc::new(ObjectDirectory::read(&self.metadata, collection.offset())?);
        let weight = directory.weight();
        self.directories
            .put(collection.offset(), Arc::clone(&directory), weight);
        Ok(directory)
    }
}

impl ObjectDirectory {
    /// Returns the approximate memory in bytes that the directory takes.
    fn weight(&self) -> u64 {
        let objects = self.objects.capacity().times(size_of::<(u16, Extent)>());
        to_u64(objects.plus(self.bytes.capacity()))
    }

    /// Returns the extent of the data of object `index` in the file.
    ///
    /// # Errors
    /// `Corrupt` if the collection has no or two objects `index`.
    fn find(&self, index: u32) -> Result<Extent> {
        let first = self
            .objects
            .partition_point(|(own, _)| u32::from(*own) < index);
        let mut found = self.objects.iter().skip(first);
        let mut next = || found.next().filter(|(own, _)| u32::from(*own) == index);
        match (next(), next()) {
            (Some(&(_, data)), None) => Ok(data),
            (None, _) => Err(Error::corrupt(
                format!("global heap: no object {index}"),
                self.at,
            )),
            (Some(_), Some(_)) => Err(Error::corrupt(
                format!("global heap: two objects {index}"),
                self.at,
            )),
        }
    }

    /// Returns the bytes of the range `part` of the file, if the directory has them in memory.
    fn bytes_in_memory(&self, part: Extent) -> Option<&[u8]> {
        let start = usize::try_from(part.start().checked_sub(self.at)?).ok()?;
        let end = start.checked_add(usize::try_from(part.length()).ok()?)?;
        self.bytes.get(start..end)
    }

    fn read(metadata: &Metadata, at: u64) -> Result<Self> {
        const WHAT: &str = "global heap collection";
        let mut window = HeapWindow {
            metadata,
            start: at,
            bytes: Vec::new(),
        };
        let header = window.header(at)?;
        let mut cursor = Cursor::new(&header, at, WHAT);
        cursor.expect_signature(b"GCOL")?;
        cursor.read_version(1..=1)?;
        cursor.skip(3)?;
        let size = metadata.read_length(&mut cursor)?;
        let collection = check_range(&**metadata.source(), at, size, WHAT)?;
        let mut objects = Vec::new();
        let mut rest = collection.skip(PADDED_HEADER_BYTES);
        while rest.length() >= PADDED_HEADER_BYTES {
            let header = window.header(rest.start())?;
            let mut cursor = Cursor::new(&header, rest.start(), "global heap object");
            let index = cursor.u16()?;
            cursor.skip(2 + 4)?; // reference count (0 for some valid objects), reserved
            let size = metadata.read_length(&mut cursor)?;
            const FREE_SPACE: u16 = 0;
            if index == FREE_SPACE {
                break;
            }
            let data = rest.skip(PADDED_HEADER_BYTES);
            if size > data.length() {
                return Err(cursor.corrupt("reaches past its collection"));
            }
            if objects.len() > usize::from(u16::MAX) {
                return Err(cursor.corrupt("the collection has too many objects"));
            }
            objects.push((index, data.first(size)));
            rest = data.skip(size.next_multiple_of(8));
        }
        objects.sort_by_key(|(index, _)| *index);
        let bytes = if window.start == at {
            window.bytes
        } else {
            Vec::new()
        };
        Ok(ObjectDirectory { at, bytes, objects })
    }
}

/// The part of the file that was read last. Small objects need fewer reads, because one window
/// contains the headers of several objects.
struct HeapWindow<'a> {
    metadata: &'a Metadata,
    start: u64,
    bytes: Vec<u8>,
}

impl HeapWindow<'_> {
    /// Returns the header of a collection or an object at absolute offset `at`. Reads a new window
    /// if the header is not in the window.
    fn header(&mut self, at: u64) -> Result<[u8; 16]> {
        if let Some(header) = self.bytes_in_memory(at) {
            return Ok(header);
        }
        let source = self.metadata.source();
        let length = source
            .contiguous_bytes(at)
            .clamp(PADDED_HEADER_BYTES, WINDOW_BYTES);
        self.metadata.budget().spend(length)?;
        self.bytes = self
            .metadata
            .read_uncached(at, length, "global heap collection")?;
        self.start = at;
        let header = self.bytes_in_memory(at);
        header.ok_or_else(|| Error::corrupt("global heap collection: ends too early", at))
    }

    /// Returns the header at absolute offset `at`, or `None` if its bytes are not in the window.
    fn bytes_in_memory(&self, at: u64) -> Option<[u8; 16]> {
        let within = usize::try_from(at.checked_sub(self.start)?).ok()?;
        self.bytes.get(within..)?.first_chunk().copied()
    }
}
