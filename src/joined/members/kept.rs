//! What was read of members, kept in a file for the next time.
//!
//! A member is known by its key, which follows from its path and its state. What is of several
//! members stands in the file once: skeletons, attributes of an object, elements. A record refers to
//! them by their digests. What cannot be read of the file is read of the member again.

pub(crate) mod frames;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::joined::members::content::{Known, Same, hashes};
use crate::joined::members::kept::frames::{Digest, Frame, Head};
use crate::joined::members::opener::Key;
use crate::joined::members::scan::{Attributes, Common, Scan};
use crate::joined::members::skeleton::Skeleton;
use crate::joined::paths::Path;
use crate::limits;
use crate::wire::{Count, to_u64};

/// The form of the records. It changes with what is read of a member, or how it is written.
const FORM: u32 = 5;

/// The kinds of frames.
const SKELETON: u8 = 1;
const ATTRIBUTES: u8 = 2;
const ELEMENTS: u8 = 3;
const RECORD: u8 = 4;

/// What was read of one member.
#[derive(Serialize, Deserialize)]
struct Record {
    maker: Maker,
    key: Key,
    skeleton: Digest,
    /// Of the groups, then of the variables.
    attributes: Vec<Digest>,
    scalars: BTreeMap<Path, Same>,
    lengths: Box<[u64]>,
    short: Vec<(usize, Box<[u64]>)>,
    values: Vec<Value>,
}

/// What is known of the elements of a variable.
#[derive(Serialize, Deserialize)]
enum Value {
    Nothing,
    Hash([u64; 2]),
    Ends(Digest, [u64; 2]),
    Elements(Digest),
}

/// The program that wrote a record: another one may find something else in the same file.
#[derive(PartialEq, Eq, Serialize, Deserialize)]
struct Maker {
    version: String,
    form: u32,
    /// Its hash of something: values are compared by such hashes.
    hash: [u64; 2],
}

impl Maker {
    fn this() -> Self {
        Maker {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            form: FORM,
            hash: hashes(b"h5fs"),
        }
    }
}

/// The file in which what was read of members is kept. All that is written goes to its end.
pub(super) struct Kept<'f> {
    file: &'f File,
    head: Head,
    /// What is in it.
    known: HashSet<Digest>,
    /// Bytes that may still be added.
    left: u64,
    /// The digests of elements that are in it, by their places in memory, where they stay.
    elements: HashMap<usize, Digest>,
}

impl<'f> Kept<'f> {
    /// Reads the file, and hands to `take` what it has of the members with these keys.
    ///
    /// # Errors
    /// Fails with the system's error; `InvalidData` if it has no head.
    pub(super) fn read(
        file: &'f File,
        keys: &HashMap<Key, usize>,
        take: &mut dyn FnMut(usize, Scan),
    ) -> io::Result<Self> {
        let length = file.metadata()?.len().min(limits::JOINED_KEPT);
        let mut bytes = vec![0; usize::try_from(length).unwrap_or(0)];
        file.read_exact_at(&mut bytes, 0)?;
        let (head, rest) = Head::of(&bytes).ok_or(io::ErrorKind::InvalidData)?;
        let frames = head.frames(rest);
        let mut library = Library::of(&frames);
        let mut taken = HashSet::new();
        for frame in frames.iter().filter(|frame| frame.kind == RECORD) {
            let record = decoded::<Record>(frame.content);
            let record = record.filter(|record| record.maker == Maker::this());
            let Some((record, &number)) =
                record.and_then(|own| keys.get(&own.key).map(|number| (own, number)))
            else {
                continue;
            };
            if let Some(scan) = library.scan(record).filter(|_| taken.insert(number)) {
                take(number, scan);
            }
        }
        Ok(Kept {
            file,
            head,
            known: library.frames.into_keys().collect(),
            left: limits::JOINED_KEPT.left_after(length),
            elements: HashMap::new(),
        })
    }

    /// Adds what was read of a member. Its elements stay where they are in memory.
    pub(super) fn put(&mut self, key: Key, scan: &Scan) {
        let mut out = Vec::new();
        let record = Record {
            maker: Maker::this(),
            key,
            skeleton: self.one(SKELETON, &encoded(&*scan.skeleton), &mut out),
            attributes: scan
                .common
                .attributes
                .iter()
                .map(|own| self.one(ATTRIBUTES, &encoded(&**own), &mut out))
                .collect(),
            scalars: scan.common.scalars.clone(),
            lengths: scan.lengths.clone(),
            short: scan.short.clone(),
            values: scan
                .values
                .iter()
                .map(|known| self.value(known, &mut out))
                .collect(),
        };
        self.one(RECORD, &encoded(&record), &mut out);
        let Some(left) = self.left.checked_sub(to_u64(out.len())) else {
            self.left = 0;
            return;
        };
        self.left = left;
        if let Err(error) = self.file.write_all(&out) {
            log::debug!("what is read of files that are joined is not kept: {error}");
            self.left = 0;
        }
    }

    /// The digest of what the file has once.
    fn one(&mut self, kind: u8, content: &[u8], out: &mut Vec<u8>) -> Digest {
        let digest = self.head.digest(kind, content);
        if self.known.insert(digest) {
            self.head.append(kind, digest, content, out);
        }
        digest
    }

    fn value(&mut self, known: &Known, out: &mut Vec<u8>) -> Value {
        match known {
            Known::Nothing => Value::Nothing,
            Known::Hash(hash) => Value::Hash(*hash),
            Known::Ends(ends, hash) => Value::Ends(self.one(ELEMENTS, ends, out), *hash),
            Known::Elements(elements) => {
                let place = elements.as_ptr().addr();
                if let Some(&digest) = self.elements.get(&place).filter(|_| !elements.is_empty()) {
                    return Value::Elements(digest);
                }
                let digest = self.one(ELEMENTS, elements, out);
                self.elements.insert(place, digest);
                Value::Elements(digest)
            }
        }
    }
}

/// What the bytes of a file hold of members.
struct Library<'b> {
    frames: HashMap<Digest, Frame<'b>>,
    skeletons: HashMap<Digest, Arc<Skeleton>>,
    attributes: HashMap<Digest, Attributes>,
    elements: HashMap<Digest, Arc<[u8]>>,
}

impl<'b> Library<'b> {
    fn of(frames: &[Frame<'b>]) -> Self {
        let frames = frames.iter().map(|frame| (frame.digest, *frame));
        Library {
            frames: frames.collect(),
            skeletons: HashMap::new(),
            attributes: HashMap::new(),
            elements: HashMap::new(),
        }
    }

    /// What a record tells; `None` where a part of it is not there.
    fn scan(&mut self, record: Record) -> Option<Scan> {
        let Library {
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
            shared(attributes, digest, || {
                decoded(content(digest, ATTRIBUTES)?).map(Arc::new)
            })
        };
        let attributes = record.attributes.iter().map(of_object);
        let attributes = attributes.collect::<Option<_>>()?;
        let mut elements =
            |digest: &Digest| shared(elements, digest, || Some(content(digest, ELEMENTS)?.into()));
        let known = |value: &Value| match value {
            Value::Nothing => Some(Known::Nothing),
            Value::Hash(hash) => Some(Known::Hash(*hash)),
            Value::Ends(digest, hash) => Some(Known::Ends(elements(digest)?, *hash)),
            Value::Elements(digest) => elements(digest).map(Known::Elements),
        };
        let values = record.values.iter().map(known);
        let values = values.collect::<Option<_>>()?;
        let skeleton = shared(skeletons, &record.skeleton, || {
            decoded(content(&record.skeleton, SKELETON)?).map(Arc::new)
        });
        Some(Scan {
            skeleton: skeleton?,
            common: Common {
                attributes,
                scalars: record.scalars,
                differing: BTreeSet::new(),
            },
            lengths: record.lengths,
            short: record.short,
            values,
            // What was refused may be allowed the next time: it is not kept.
            refused: Vec::new(),
        })
    }
}

/// What has this digest, made once.
fn shared<T: ?Sized>(
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
    // It fails for sequences of unknown length, which none of these is.
    postcard::to_allocvec(value).unwrap_or_default()
}

fn decoded<T: DeserializeOwned>(bytes: &[u8]) -> Option<T> {
    postcard::from_bytes(bytes).ok()
}
