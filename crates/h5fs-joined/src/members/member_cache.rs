//! Stores the scans of members in a cache file for later joins.
//!
//! A member is identified by its key, a hash of its path and state. Data that several members share
//! are stored once: skeletons, attributes of an object, elements. A record refers to shared data by
//! their digests. If data of a record cannot be read, the member is scanned again.

pub mod frames;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use h5fs_reader::wire::{Count, to_u64};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::limits;
use crate::members::content::{ElementSummary, TreeScalar, hash_pair};
use crate::members::member_cache::frames::{CacheFrame, CacheHeader, Digest};
use crate::members::opener::MemberKey;
use crate::members::scan::{AttributeList, CommonMetadata, MemberScan};
use crate::members::skeleton::Skeleton;
use crate::paths::Path;

/// Version of the record format. It must change whenever the content or the encoding of a scan
/// changes.
const RECORD_VERSION: u32 = 6;

/// Kind byte of a frame that contains a skeleton. The constants after this one are the kind bytes
/// of other frames.
const SKELETON_FRAME: u8 = 1;
const ATTRIBUTES_FRAME: u8 = 2;
const ELEMENTS_FRAME: u8 = 3;
const RECORD_FRAME: u8 = 4;

/// The stored scan of one member, which refers to shared data by digests.
#[derive(Serialize, Deserialize)]
struct MemberRecord {
    maker: ProgramBuild,
    key: MemberKey,
    skeleton: Digest,
    /// Digests of the attributes of each group, followed by those of each variable.
    attributes: Vec<Digest>,
    scalars: BTreeMap<Path, TreeScalar>,
    lengths: Box<[u64]>,
    short: Vec<(usize, Box<[u64]>)>,
    values: Vec<SummaryRecord>,
}

/// The stored form of an `ElementSummary`, which refers to elements by digest.
#[derive(Serialize, Deserialize)]
enum SummaryRecord {
    Nothing,
    Hash([u64; 2]),
    Ends(Digest, [u64; 2]),
    Elements(Digest),
}

/// The program build that wrote a record. Another version may scan the same file differently.
#[derive(PartialEq, Eq, Serialize, Deserialize)]
struct ProgramBuild {
    version: String,
    form: u32,
    /// The build's hash of a fixed text. Elements are compared by hashes, and the hash function may
    /// differ between builds.
    hash: [u64; 2],
}

impl ProgramBuild {
    fn current() -> Self {
        ProgramBuild {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            form: RECORD_VERSION,
            hash: hash_pair(b"h5fs"),
        }
    }
}

/// The cache file of stored scans. New records are appended.
pub(super) struct MemberCache<'f> {
    file: &'f File,
    header: CacheHeader,
    /// Digests of the frames in the file.
    known_digests: HashSet<Digest>,
    /// Number of bytes that may still be appended to the file.
    remaining_bytes: u64,
    /// The digest of each stored list of elements, by the address of the elements in memory. The
    /// elements stay at this address.
    elements: HashMap<usize, Digest>,
}

impl<'f> MemberCache<'f> {
    /// Reads the cache file, and calls `take` for each stored scan whose member has one of `keys`.
    ///
    /// # Errors
    /// Fails with the system's error. `InvalidData` if the file has no valid header.
    pub(super) fn read(
        file: &'f File,
        keys: &HashMap<MemberKey, usize>,
        take: &mut dyn FnMut(usize, MemberScan),
    ) -> io::Result<Self> {
        let length = file.metadata()?.len().min(limits::JOINED_KEPT);
        let mut bytes = vec![0; usize::try_from(length).unwrap_or(0)];
        file.read_exact_at(&mut bytes, 0)?;
        let (head, rest) = CacheHeader::parse(&bytes).ok_or(io::ErrorKind::InvalidData)?;
        let frames = head.frames(rest);
        let mut library = DecodedFrames::from_frames(&frames);
        let mut taken = HashSet::new();
        for frame in frames.iter().filter(|frame| frame.kind == RECORD_FRAME) {
            let record = decoded::<MemberRecord>(frame.content);
            let record = record.filter(|record| record.maker == ProgramBuild::current());
            let Some((record, &number)) =
                record.and_then(|own| keys.get(&own.key).map(|number| (own, number)))
            else {
                continue;
            };
            if let Some(scan) = library
                .restore_scan(record)
                .filter(|_| taken.insert(number))
            {
                take(number, scan);
            }
        }
        Ok(MemberCache {
            file,
            header: head,
            known_digests: library.frames.into_keys().collect(),
            remaining_bytes: limits::JOINED_KEPT.minus_or_zero(length),
            elements: HashMap::new(),
        })
    }

    /// Appends the scan of a member to the file. The elements of the scan must keep their addresses
    /// in memory.
    pub(super) fn write_member(&mut self, key: MemberKey, scan: &MemberScan) {
        let mut out = Vec::new();
        let record = MemberRecord {
            maker: ProgramBuild::current(),
            key,
            skeleton: self.append_if_new(SKELETON_FRAME, &encoded(&*scan.skeleton), &mut out),
            attributes: scan
                .common_metadata
                .attributes
                .iter()
                .map(|own| self.append_if_new(ATTRIBUTES_FRAME, &encoded(&**own), &mut out))
                .collect(),
            scalars: scan.common_metadata.scalars.clone(),
            lengths: scan.lengths.clone(),
            short: scan.stored_lengths.clone(),
            values: scan
                .summaries
                .iter()
                .map(|known| self.record_summary(known, &mut out))
                .collect(),
        };
        self.append_if_new(RECORD_FRAME, &encoded(&record), &mut out);
        let Some(left) = self.remaining_bytes.checked_sub(to_u64(out.len())) else {
            self.remaining_bytes = 0;
            return;
        };
        self.remaining_bytes = left;
        if let Err(error) = self.file.write_all(&out) {
            log::debug!("writing what is known about joined files: {error}");
            self.remaining_bytes = 0;
        }
    }

    /// Returns the digest of a frame with this content. Adds the frame to `out` if the file does
    /// not contain it.
    fn append_if_new(&mut self, kind: u8, content: &[u8], out: &mut Vec<u8>) -> Digest {
        let digest = self.header.digest(kind, content);
        if self.known_digests.insert(digest) {
            self.header.append(kind, digest, content, out);
        }
        digest
    }

    fn record_summary(&mut self, known: &ElementSummary, out: &mut Vec<u8>) -> SummaryRecord {
        match known {
            ElementSummary::NotRead => SummaryRecord::Nothing,
            ElementSummary::Hash(hash) => SummaryRecord::Hash(*hash),
            ElementSummary::EndsAndHash(ends, hash) => {
                SummaryRecord::Ends(self.append_if_new(ELEMENTS_FRAME, ends, out), *hash)
            }
            ElementSummary::Elements(elements) => {
                let place = elements.as_ptr().addr();
                if let Some(&digest) = self.elements.get(&place).filter(|_| !elements.is_empty()) {
                    return SummaryRecord::Elements(digest);
                }
                let digest = self.append_if_new(ELEMENTS_FRAME, elements, out);
                self.elements.insert(place, digest);
                SummaryRecord::Elements(digest)
            }
        }
    }
}

/// The frames of a cache file, and the skeletons, attributes and elements that were decoded from
/// them.
struct DecodedFrames<'b> {
    frames: HashMap<Digest, CacheFrame<'b>>,
    skeletons: HashMap<Digest, Arc<Skeleton>>,
    attributes: HashMap<Digest, AttributeList>,
    elements: HashMap<Digest, Arc<[u8]>>,
}

impl<'b> DecodedFrames<'b> {
    fn from_frames(frames: &[CacheFrame<'b>]) -> Self {
        let frames = frames.iter().map(|frame| (frame.digest, *frame));
        DecodedFrames {
            frames: frames.collect(),
            skeletons: HashMap::new(),
            attributes: HashMap::new(),
            elements: HashMap::new(),
        }
    }

    /// Restores the scan of a record. Returns `None` if a frame that the record refers to is
    /// missing.
    fn restore_scan(&mut self, record: MemberRecord) -> Option<MemberScan> {
        let DecodedFrames {
            frames,
            skeletons,
            attributes,
            elements,
        } = self;
        let content = |digest: &Digest, kind| {
            let frame = frames.get(digest).filter(|frame| frame.kind == kind);
            frame.map(|frame| frame.content)
        };
        let of_object = |digest: &Digest| {
            get_or_decode(attributes, digest, || {
                decoded(content(digest, ATTRIBUTES_FRAME)?).map(Arc::new)
            })
        };
        let attributes = record.attributes.iter().map(of_object);
        let attributes = attributes.collect::<Option<_>>()?;
        let mut elements = |digest: &Digest| {
            get_or_decode(elements, digest, || {
                Some(content(digest, ELEMENTS_FRAME)?.into())
            })
        };
        let known = |value: &SummaryRecord| match value {
            SummaryRecord::Nothing => Some(ElementSummary::NotRead),
            SummaryRecord::Hash(hash) => Some(ElementSummary::Hash(*hash)),
            SummaryRecord::Ends(digest, hash) => {
                Some(ElementSummary::EndsAndHash(elements(digest)?, *hash))
            }
            SummaryRecord::Elements(digest) => elements(digest).map(ElementSummary::Elements),
        };
        let values = record.values.iter().map(known);
        let values = values.collect::<Option<_>>()?;
        let skeleton = get_or_decode(skeletons, &record.skeleton, || {
            decoded(content(&record.skeleton, SKELETON_FRAME)?).map(Arc::new)
        });
        Some(MemberScan {
            skeleton: skeleton?,
            common_metadata: CommonMetadata {
                attributes,
                scalars: record.scalars,
                differing_scalars: BTreeSet::new(),
            },
            lengths: record.lengths,
            stored_lengths: record.short,
            summaries: values,
            // Refusals are not stored, because they may be permitted the next time.
            refusals: Vec::new(),
        })
    }
}

/// Returns the value in `known` with this digest. If there is none, creates the value with `make`
/// and adds it to `known`.
fn get_or_decode<T: ?Sized>(
    known: &mut HashMap<Digest, Arc<T>>,
    digest: &Digest,
    make: impl FnOnce() -> Option<Arc<T>>,
) -> Option<Arc<T>> {
    if let Some(own) = known.get(digest) {
        return Some(Arc::clone(own));
    }
    let made = make()?;
    known.insert(*digest, Arc::clone(&made));
    Some(made)
}

fn encoded<T: Serialize>(value: &T) -> Vec<u8> {
    // Encoding fails only for sequences of unknown length, which these types do not contain.
    postcard::to_allocvec(value).unwrap_or_default()
}

fn decoded<T: DeserializeOwned>(bytes: &[u8]) -> Option<T> {
    postcard::from_bytes(bytes).ok()
}
