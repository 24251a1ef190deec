//! New-style groups with many links. The link messages are on a fractal heap. They are found in a
//! version 2 B-tree by the hash of the name (HDF5 3.0, III.A.2, record type 5).

use std::cmp::Ordering;
use std::sync::Arc;

use crate::error::{Error, Result, quote};
use crate::hdf5::btree_v2::{BtreeV2, RecordCursor};
use crate::hdf5::file::metadata::Metadata;
use crate::hdf5::file::number_form::Address;
use crate::hdf5::heap::fractal::{ASSUMED_HEADER_BYTES, FractalHeap, ListingAllowance};
use crate::hdf5::message::link;
use crate::hdf5::message::on_heap::DenseStorageInfo;
use crate::limits;
use crate::model::{Link, LinkStream};
use crate::wire::checksum::lookup3;
use crate::wire::{Count, Cursor, to_u64};

/// Record type of the version 2 B-tree that indexes links by the hash of the name.
const NAME_INDEX: u8 = 5;

/// The links of a group on a fractal heap.
#[derive(Debug, Clone)]
pub(crate) struct DenseLinks {
    metadata: Arc<Metadata>,
    heap: Address,
    name_index: Address,
}

impl DenseLinks {
    /// Returns the links whose fractal heap and name index are at the addresses in `place`.
    pub(crate) fn new(metadata: &Arc<Metadata>, place: &DenseStorageInfo) -> Self {
        DenseLinks {
            metadata: Arc::clone(metadata),
            heap: place.heap,
            name_index: place.name_index,
        }
    }

    /// Opens the index by hash of the name. Each record begins with the hash.
    fn open_name_index(&self) -> Result<BtreeV2> {
        let headers = [self.name_index, self.heap].map(|at| (at, ASSUMED_HEADER_BYTES));
        self.metadata.prefetch(headers);
        let index = BtreeV2::open(Arc::clone(&self.metadata), self.name_index, NAME_INDEX)?;
        Ok(index.ordered_by_hash(0))
    }

    /// Finds the link called `name` by descent, first by the name's hash and then by the name.
    pub(crate) fn find(&self, name: &[u8]) -> Result<Option<Link>> {
        let index = self.open_name_index()?;
        let heap = FractalHeap::open(&self.metadata, self.heap)?;
        let mut allowance = ListingAllowance::new(&self.metadata);
        let sought = lookup3(name);
        let mut found = None;
        let mut compare = |record: &[u8]| -> Result<Ordering> {
            let mut cursor = Cursor::new(record, self.name_index, "link name record");
            match sought.cmp(&cursor.u32()?) {
                Ordering::Equal => {}
                order => return Ok(order),
            }
            let link = self.read_link(&heap, &mut allowance, &mut cursor)?;
            let order = name.cmp(&link.name);
            if order.is_eq() {
                found = Some(link);
            }
            Ok(order)
        };
        index.find(&mut compare)?;
        Ok(found)
    }

    /// Reads the heap ID at the cursor `record`, and the link with this ID from `heap`.
    fn read_link(
        &self,
        heap: &FractalHeap,
        allowance: &mut ListingAllowance,
        record: &mut Cursor<'_>,
    ) -> Result<Link> {
        let message =
            heap.object_within_allowance(allowance, record.read_bytes(record.remaining())?)?;
        link::read(
            &self.metadata,
            &mut Cursor::new(&message, self.heap, "link message"),
        )
    }
}

/// A stream of the links of a group in the order of the hashes of their names.
pub(crate) struct DenseLinkStream {
    links: DenseLinks,
    heap: FractalHeap,
    records: RecordCursor,
    allowance: ListingAllowance,
    /// The error of the first skipped link. Each call at the end of the stream returns this error.
    failure: Option<Error>,
    /// The name that was returned last. If the next link has the same name, it is skipped, because
    /// a search for the name finds only the first.
    last_name: Option<Vec<u8>>,
}

impl DenseLinkStream {
    /// Creates a stream of all links from the first.
    pub(crate) fn new(links: &DenseLinks) -> Result<Self> {
        let index = links.open_name_index()?;
        let heap = FractalHeap::open(&links.metadata, links.heap)?;
        Ok(DenseLinkStream {
            links: links.clone(),
            heap: heap.for_full_listing(),
            records: index.cursor(0),
            allowance: ListingAllowance::new(&links.metadata),
            failure: None,
            last_name: None,
        })
    }

    /// Returns the name of the link before the position `position`, or `None` if there is no such
    /// link or it cannot be read.
    fn name_before(&mut self, position: u64) -> Option<Vec<u8>> {
        self.records.seek(position.checked_sub(1)?);
        let record = self.records.next_record().ok()??;
        let (_, link) = self.read_link(&record).ok()?;
        Some(link.name)
    }

    /// Reads the hash and the link of a `record` of the index.
    fn read_link(&mut self, record: &[u8]) -> Result<(u32, Link)> {
        let mut cursor = Cursor::new(record, self.links.name_index, "link name record");
        let hash = cursor.u32()?;
        let link = self
            .links
            .read_link(&self.heap, &mut self.allowance, &mut cursor)?;
        Ok((hash, link))
    }

    /// Returns the error for a link that is skipped because the index has a wrong hash for its
    /// name. No search for the name finds the link.
    fn wrong_hash_error(&self, name: &[u8]) -> Error {
        let what = format!("link {}: the index has another hash for it", quote(name));
        Error::corrupt(what, self.links.name_index)
    }
}

impl LinkStream for DenseLinkStream {
    fn position(&self) -> u64 {
        self.records.position()
    }

    fn seek(&mut self, position: u64) -> Result<()> {
        self.failure.take_if(|_| position == 0);
        if position != self.records.position() {
            self.allowance = ListingAllowance::new(&self.links.metadata);
            self.last_name = self.name_before(position);
            self.records.seek(position);
        }
        Ok(())
    }

    fn next(&mut self) -> Result<Option<Link>> {
        let mut unread = 0..limits::UNREAD_LINKS;
        let mut passed = 0..limits::PASSED_LINKS;
        while let Some(record) = self.records.next_record()? {
            self.allowance.check(self.links.heap)?;
            match self.read_link(&record) {
                Ok((hash, link)) => {
                    let is_same = self.last_name.as_ref() == Some(&link.name);
                    if !is_same && lookup3(&link.name) == hash {
                        self.last_name = Some(link.name.clone());
                        return Ok(Some(link));
                    }
                    if !is_same {
                        let error = self.wrong_hash_error(&link.name);
                        self.failure.get_or_insert(error);
                    }
                    if passed.next().is_none() {
                        let most = to_u64(limits::PASSED_LINKS);
                        return Err(Error::limit("links of one name or hash", most));
                    }
                    continue;
                }
                Err(error) => _ = self.failure.get_or_insert(error),
            }
            if unread.next().is_none() {
                let most = to_u64(limits::UNREAD_LINKS);
                return Err(Error::limit("links that cannot be read", most));
            }
        }
        self.failure.clone().map_or(Ok(None), Err)
    }

    fn weight(&self) -> u64 {
        let name = self.last_name.as_ref().map_or(0, Vec::len);
        let own = to_u64(size_of::<Self>().plus(name));
        own.plus(self.records.weight())
    }
}
