//! Global heaps: collections of objects of any size, which variable-length elements, region
//! references and virtual datasets point into (HDF5 3.0, III.E).

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::hdf5::file::metadata::Metadata;
use crate::hdf5::file::number_form::Address;
use crate::hdf5::heap::texts::Texts;
use crate::limits;
use crate::memory::shared_lru::FileLru;
use crate::source::check_range;
use crate::wire::{Cursor, joined, to_u64, to_usize};

/// Bytes of a collection's header and of an object's, padded to a multiple of 8.
const HEADER: u64 = 16;

/// Bytes that are fetched at a time when a collection's directory is made.
const WINDOW: u64 = 16 << 10;

/// The objects of one collection.
#[derive(Debug)]
pub(crate) struct Directory {
    at: u64,
    /// The collection from its start, as far as it was read for its directory: all of a small one.
    bytes: Vec<u8>,
    /// Index, absolute offset of the data, size; sorted by index.
    objects: Vec<(u16, u64, u64)>,
}

/// All global heap collections of a file.
#[derive(Debug)]
pub(crate) struct GlobalHeap {
    metadata: Arc<Metadata>,
    directories: Arc<FileLru<u64, Arc<Directory>>>,
    texts: Arc<Texts>,
}

impl GlobalHeap {
    /// The global heap of the file that `metadata` reads; what is in its collections is kept in
    /// `directories`.
    pub(crate) fn new(metadata: Arc<Metadata>, directories: FileLru<u64, Arc<Directory>>) -> Self {
        GlobalHeap {
            metadata,
            directories: Arc::new(directories),
            texts: Arc::default(),
        }
    }

    /// The same heap as `metadata` reads it.
    pub(crate) fn within(&self, metadata: &Arc<Metadata>) -> Self {
        GlobalHeap {
            metadata: Arc::clone(metadata),
            directories: Arc::clone(&self.directories),
            texts: Arc::clone(&self.texts),
        }
    }

    /// Forgets the ends of strings.
    pub(crate) fn forget(&self) {
        self.texts.clear();
    }

    /// Asks for these collections, as far as they are not known.
    pub(crate) fn expect(&self, collections: impl Iterator<Item = Address>) {
        let mut different = BTreeSet::new();
        for collection in collections {
            if different.len() < limits::RANGES_AT_ONCE {
                different.insert(collection.offset());
            }
        }
        different.retain(|&collection| self.directories.get(collection).is_none());
        // Most collections are shorter than what is read of them at first.
        let ranges = joined(different.into_iter().map(|at| (at, WINDOW)));
        self.metadata.expect_at(ranges.into_iter());
    }

    /// The part `part`, in bytes, of object `index` in the collection at absolute offset
    /// `collection`, which has to hold `length` bytes.
    ///
    /// # Errors
    /// `Corrupt` where there is no such object, two of them, or it has another length; `Limit` over
    /// the limit.
    pub(crate) fn part(
        &self,
        collection: Address,
        index: u32,
        length: u64,
        part: Range<u64>,
    ) -> Result<Vec<u8>> {
        let (directory, at) = self.object(collection, index, length)?;
        let wanted = part.end.min(length).saturating_sub(part.start);
        if wanted > limits::VARIABLE_LENGTH_BYTES {
            return Err(Error::limit(
                "variable-length element",
                limits::VARIABLE_LENGTH_BYTES,
            ));
        }
        self.bytes(&directory, at.saturating_add(part.start), wanted)
    }

    /// The first `length` bytes of object `index` in the collection at absolute offset
    /// `collection`.
    ///
    /// # Errors
    /// Fails as [`part`](Self::part) does.
    pub(crate) fn beginning(
        &self,
        collection: Address,
        index: u32,
        length: u64,
    ) -> Result<Vec<u8>> {
        let directory = self.directory(collection)?;
        let (at, size) = directory.find(index)?;
        if length <= size {
            self.bytes(&directory, at, length)
        } else {
            Err(Error::corrupt("global heap object: ends too early", at))
        }
    }

    /// Bytes before the first NUL in the first `length` bytes of object `index` in the collection
    /// at absolute offset `collection`.
    ///
    /// # Errors
    /// Fails as [`part`](Self::part) does.
    pub(crate) fn text_bytes(&self, collection: Address, index: u32, length: u64) -> Result<u64> {
        let (directory, at) = self.object(collection, index, length)?;
        let fetch = |part: Range<u64>| {
            self.bytes(&directory, part.start, part.end.saturating_sub(part.start))
        };
        let end = self.texts.end(at..at.saturating_add(length), fetch)?;
        Ok(end.saturating_sub(at))
    }

    /// The collection of an object that has to hold `length` bytes, and its absolute offset.
    fn object(
        &self,
        collection: Address,
        index: u32,
        length: u64,
    ) -> Result<(Arc<Directory>, u64)> {
        let directory = self.directory(collection)?;
        let (at, size) = directory.find(index)?;
        if length == size {
            Ok((directory, at))
        } else {
            Err(Error::corrupt(
                "global heap object: not as long as its element says",
                at,
            ))
        }
    }

    /// `length` bytes at absolute offset `at`, of an object in `directory`.
    fn bytes(&self, directory: &Directory, at: u64, length: u64) -> Result<Vec<u8>> {
        match directory.kept(at, length) {
            Some(bytes) => Ok(bytes.to_vec()),
            None => self.metadata.bytes(at, length, "global heap object"),
        }
    }

    /// The whole of object `index` in the collection at absolute offset `collection`, which has
    /// `most` bytes.
    ///
    /// # Errors
    /// Fails as [`part`](Self::part) does.
    pub(crate) fn whole_object(
        &self,
        collection: Address,
        index: u32,
        most: u64,
    ) -> Result<Vec<u8>> {
        let size = self.object_bytes(collection, index)?;
        if size > most {
            return Err(Error::limit("global heap object", most));
        }
        self.part(collection, index, size, 0..size)
    }

    /// How many bytes object `index` in the collection at absolute offset `collection` has.
    ///
    /// # Errors
    /// Fails as [`part`](Self::part) does.
    pub(crate) fn object_bytes(&self, collection: Address, index: u32) -> Result<u64> {
        let (_, size) = self.directory(collection)?.find(index)?;
        Ok(size)
    }

    fn directory(&self, collection: Address) -> Result<Arc<Directory>> {
        if let Some(directory) = self.directories.get(collection.offset()) {
            return Ok(directory);
        }
        let directory = Arc::new(Directory::read(&self.metadata, collection.offset())?);
        let weight = directory.weight();
        self.directories
            .put(collection.offset(), Arc::clone(&directory), weight);
        Ok(directory)
    }
}

impl Directory {
    /// Bytes of memory that it takes, about.
    fn weight(&self) -> u64 {
        let objects = self
            .objects
            .capacity()
            .saturating_mul(size_of::<(u16, u64, u64)>());
        to_u64(objects.saturating_add(self.bytes.capacity()))
    }

    /// Absolute offset and size of the data of object `index`.
    fn find(&self, index: u32) -> Result<(u64, u64)> {
        let first = self
            .objects
            .partition_point(|(own, ..)| u32::from(*own) < index);
        let mut found = self.objects.iter().skip(first);
        let mut next = || found.next().filter(|(own, ..)| u32::from(*own) == index);
        match (next(), next()) {
            (Some(&(_, at, size)), None) => Ok((at, size)),
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

    /// The `length` bytes at absolute offset `at`, where they are in memory.
    fn kept(&self, at: u64, length: u64) -> Option<&[u8]> {
        let start = usize::try_from(at.checked_sub(self.at)?).ok()?;
        let end = start.checked_add(usize::try_from(length).ok()?)?;
        self.bytes.get(start..end)
    }

    fn read(metadata: &Metadata, at: u64) -> Result<Self> {
        const WHAT: &str = "global heap collection";
        let mut window = Window {
            metadata,
            start: at,
            bytes: Vec::new(),
        };
        let header = window.header(at)?;
        let mut cursor = Cursor::new(&header, at, WHAT);
        cursor.signature(b"GCOL")?;
        cursor.version(1..=1)?;
        cursor.skip(3)?;
        let size = metadata.length(&mut cursor)?;
        check_range(&**metadata.source(), at, size, WHAT)?;
        let end = at.saturating_add(size);
        let mut objects = Vec::new();
        let mut position = at.saturating_add(HEADER);
        while position.saturating_add(HEADER) <= end {
            let header = window.header(position)?;
            let mut cursor = Cursor::new(&header, position, "global heap object");
            let index = cursor.u16()?;
            cursor.skip(2 + 4)?; // the reference count, which is 0 for living objects too; reserved
            let size = metadata.length(&mut cursor)?;
            const FREE_SPACE: u16 = 0;
            if index == FREE_SPACE {
                break;
            }
            let data = position.saturating_add(HEADER);
            if size > end.saturating_sub(data) {
                return Err(cursor.corrupt("reaches past its collection"));
            }
            if objects.len() > usize::from(u16::MAX) {
                return Err(cursor.corrupt("is one of more than there are numbers for"));
            }
            objects.push((index, data, size));
            position = data.saturating_add(size.next_multiple_of(8));
        }
        objects.sort_by_key(|(index, ..)| *index);
        let bytes = if window.start == at {
            window.bytes
        } else {
            Vec::new()
        };
        Ok(Directory { at, bytes, objects })
    }
}

/// The part of the file that was read last, so that the headers of small objects cost few reads.
struct Window<'a> {
    metadata: &'a Metadata,
    start: u64,
    bytes: Vec<u8>,
}

impl Window<'_> {
    /// The header at absolute offset `at`.
    fn header(&mut self, at: u64) -> Result<[u8; 16]> {
        let end = self.start.saturating_add(to_u64(self.bytes.len()));
        if at < self.start || at.saturating_add(HEADER) > end {
            let source = self.metadata.source();
            let length = source.available(at).clamp(HEADER, WINDOW);
            self.metadata.effort().spend(length)?;
            self.bytes = self.metadata.bytes(at, length, "global heap collection")?;
            self.start = at;
        }
        let within = to_usize(at.saturating_sub(self.start))?;
        let header = self
            .bytes
            .get(within..)
            .and_then(|bytes| bytes.first_chunk());
        header
            .copied()
            .ok_or_else(|| Error::corrupt("global heap collection: ends too early", at))
    }
}
