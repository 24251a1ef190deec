//! The attributes of an object. They are messages in the object's header (compact) or on a fractal
//! heap (dense). Dense attributes are found in a version 2 B-tree (HDF5 3.0, IV.A.2.v and III.A.2,
//! record type 8).

use std::cmp::Ordering;
use std::ops::ControlFlow;
use std::sync::Arc;

use crate::error::{Error, Result, quote};
use crate::hdf5::btree_v2::BtreeV2;
use crate::hdf5::file::metadata::Metadata;
use crate::hdf5::file::number_form::Address;
use crate::hdf5::heap::fractal::{ASSUMED_HEADER_BYTES, FractalHeap, ListingAllowance};
use crate::hdf5::message::on_heap::DenseStorageInfo;
use crate::hdf5::message::{attribute, kind};
use crate::hdf5::object_header::{ObjectHeader, RawMessage};
use crate::hdf5::shared::SharedMessages;
use crate::limits;
use crate::model::Attribute;
use crate::wire::checksum::lookup3;
use crate::wire::{Count, Cursor, to_usize};

/// Record type of the version 2 B-tree that indexes attributes by the hash of the name.
const NAME_INDEX_TYPE: u8 = 8;

/// Number of bytes of the field "Maximum Creation Index" in the attribute info message.
const CREATION_ORDER_BYTES: usize = 2;

/// Number of bytes of a fractal heap ID in a record of the name index.
const HEAP_ID_BYTES: usize = 8;

/// The offset in bytes of the hash in a record of the name index, after the heap ID, the message's
/// flags and the creation order.
const HASH_OFFSET: usize = HEAP_ID_BYTES + 1 + 4;

/// The attributes of one object.
#[derive(Debug)]
pub(crate) struct Attributes<'a> {
    metadata: &'a Arc<Metadata>,
    shared: &'a SharedMessages,
    header: &'a ObjectHeader,
    dense: Option<DenseStorage>,
}

#[derive(Debug)]
struct DenseStorage {
    heap: FractalHeap,
    name_index: Address,
}

impl<'a> Attributes<'a> {
    /// Opens the attributes of the object with this `header`.
    ///
    /// # Errors
    /// Fails if the message or heap that locates the attributes is damaged.
    pub(crate) fn open(
        metadata: &'a Arc<Metadata>,
        shared: &'a SharedMessages,
        header: &'a ObjectHeader,
    ) -> Result<Self> {
        let info = header.find(kind::ATTRIBUTE_INFO).map(|message| {
            let mut cursor = Cursor::new(message.data, message.at, "attribute info message");
            DenseStorageInfo::read(metadata, CREATION_ORDER_BYTES, &mut cursor)
        });
        let dense = match info.transpose()?.flatten() {
            Some(DenseStorageInfo { heap, name_index }) => {
                metadata.prefetch([heap, name_index].map(|at| (at, ASSUMED_HEADER_BYTES)));
                let heap = FractalHeap::open(metadata, heap)?.for_full_listing();
                Some(DenseStorage { heap, name_index })
            }
            None => None,
        };
        Ok(Attributes {
            metadata,
            shared,
            header,
            dense,
        })
    }

    /// Calls `visit` with each attribute from number `next` on until `visit` breaks, and sets
    /// `next` to the number after the last one. The attributes are in
    /// creation order if it is known. Otherwise, compact attributes are in the order of their
    /// messages in the header, and dense attributes in the order of the names' hashes. An attribute that cannot be read is skipped.
    ///
    /// # Errors
    /// Returns the error of the first skipped attribute.
    pub(crate) fn visit(
        &self,
        next: &mut u64,
        visit: &mut dyn FnMut(Attribute) -> ControlFlow<()>,
    ) -> Result<()> {
        let first = to_usize(*next)?;
        let mut failure = Ok(());
        let mut hand_on = |attribute: Result<Attribute>| {
            *next = next.plus_one();
            match attribute {
                Ok(attribute) => visit(attribute),
                Err(error) => {
                    log::warn!("an attribute is skipped: {error}");
                    if failure.is_ok() {
                        failure = Err(error);
                    }
                    ControlFlow::Continue(())
                }
            }
        };
        match &self.dense {
            None => _ = self.compact_attributes(first).try_for_each(&mut hand_on),
            Some(dense) => self.visit_dense(dense, first, &mut hand_on)?,
        }
        failure
    }

    /// Returns the attribute called `name`, or `None` if the object has no such attribute.
    ///
    /// # Errors
    /// Fails if no readable attribute has this name and some attributes cannot be read.
    pub(crate) fn find(&self, name: &[u8]) -> Result<Option<Attribute>> {
        if let Some(dense) = &self.dense {
            return self.find_dense(dense, name);
        }
        let mut nameless = Ok(None);
        for attribute in self.compact_attributes(0) {
            match attribute {
                Ok(attribute) if attribute.name == name => return Ok(Some(attribute)),
                Ok(_) => {}
                Err(error) => nameless = nameless.and(Err(error)),
            }
        }
        nameless
    }

    fn compact_attributes(&self, first: usize) -> impl Iterator<Item = Result<Attribute>> {
        let messages = self.header.messages();
        let attributes = messages.filter(|message| message.kind == kind::ATTRIBUTE);
        let mut attributes: Vec<RawMessage<'_>> = attributes.collect();
        attributes.sort_by_key(|message| message.creation_index);
        attributes.into_iter().skip(first).map(|message| {
            let body = self.shared.resolve(&message)?;
            attribute::read(
                self.metadata,
                self.shared,
                &mut body.cursor("attribute message"),
            )
        })
    }

    /// Visits dense attributes through the name index, which is complete. In some files, the index
    /// by creation order lacks an attribute. The HDF5 libraries do not use that index either.
    fn visit_dense(
        &self,
        dense: &DenseStorage,
        first: usize,
        hand_on: &mut dyn FnMut(Result<Attribute>) -> ControlFlow<()>,
    ) -> Result<()> {
        let index = self.open_name_index(dense)?;
        Error::check_limit(
            index.record_count(),
            limits::ATTRIBUTES,
            "attributes of an object",
        )?;
        let mut records = Vec::new();
        let mut cursor = index.cursor(0);
        let mut last = 0;
        while let Some(record) = cursor.next_record()? {
            // If the hashes are out of order, a search would not find all listed names.
            let hash = record_hash(dense, &record)?;
            if hash < last {
                let what = "attribute name index: its hashes are not sorted";
                return Err(Error::corrupt(what, dense.name_index));
            }
            last = hash;
            records.push((self.creation_order(dense, &record)?, record));
        }
        records.sort_by_key(|(creation_order, _)| *creation_order);
        let mut allowance = ListingAllowance::new(self.metadata);
        for (_, record) in records.into_iter().skip(first) {
            allowance.check(dense.name_index)?;
            let attribute = self
                .read_record(dense, &mut allowance, &record)
                .and_then(|attribute| check_hash(dense, &record, attribute));
            if hand_on(attribute).is_break() {
                break;
            }
        }
        Ok(())
    }

    fn creation_order(&self, dense: &DenseStorage, record: &[u8]) -> Result<u32> {
        let mut cursor = Cursor::new(record, dense.name_index, "attribute name record");
        cursor.skip(HEAP_ID_BYTES + 1)?; // heap ID, message flags
        cursor.u32()
    }

    fn find_dense(&self, dense: &DenseStorage, name: &[u8]) -> Result<Option<Attribute>> {
        let index = self.open_name_index(dense)?;
        let mut allowance = ListingAllowance::new(self.metadata);
        let sought = lookup3(name);
        let mut found = None;
        let mut compare = |record: &[u8]| -> Result<Ordering> {
            match sought.cmp(&record_hash(dense, record)?) {
                Ordering::Equal => {}
                order => return Ok(order),
            }
            let attribute = self.read_record(dense, &mut allowance, record)?;
            let attribute = check_hash(dense, record, attribute)?;
            let order = name.cmp(&attribute.name);
            if order.is_eq() {
                found = Some(attribute);
            }
            Ok(order)
        };
        index.find(&mut compare)?;
        Ok(found)
    }

    fn open_name_index(&self, dense: &DenseStorage) -> Result<BtreeV2> {
        let index = BtreeV2::open(Arc::clone(self.metadata), dense.name_index, NAME_INDEX_TYPE)?;
        Ok(index.ordered_by_hash(HASH_OFFSET))
    }

    /// Reads the attribute that `record` of the name index locates. A record begins with the heap
    /// ID and the message's flags.
    fn read_record(
        &self,
        dense: &DenseStorage,
        allowance: &mut ListingAllowance,
        record: &[u8],
    ) -> Result<Attribute> {
        const SHARED: u8 = 0b10;
        let mut cursor = Cursor::new(record, dense.name_index, "attribute record");
        let id = cursor.read_bytes(HEAP_ID_BYTES)?;
        let message = match cursor.u8()? & SHARED {
            0 => dense.heap.object_within_allowance(allowance, id)?,
            _ => self
                .shared
                .read_from_heap(kind::ATTRIBUTE, id, dense.name_index.offset())?,
        };
        let mut cursor = Cursor::new(&message, dense.name_index, "attribute message");
        attribute::read(self.metadata, self.shared, &mut cursor)
    }
}

/// Returns the hash of the name in a record of the name index.
fn record_hash(dense: &DenseStorage, record: &[u8]) -> Result<u32> {
    let mut cursor = Cursor::new(record, dense.name_index, "attribute name record");
    cursor.skip(HASH_OFFSET)?;
    cursor.u32()
}

/// Checks that `record` contains the hash of the attribute's name, because otherwise a search for
/// the name would not find the record. Returns the attribute.
fn check_hash(dense: &DenseStorage, record: &[u8], attribute: Attribute) -> Result<Attribute> {
    if lookup3(&attribute.name) == record_hash(dense, record)? {
        Ok(attribute)
    } else {
        let name = quote(&attribute.name);
        let what = format!("attribute {name}: the index has another hash for it");
        Err(Error::corrupt(what, dense.name_index))
    }
}
