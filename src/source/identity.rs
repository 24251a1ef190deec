//! Which state of which file or object bytes are of.

use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use crate::source::remote::state::ObjectState;

/// The facts that tell one state of a source from another.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Identity {
    /// Of a file.
    File(Fingerprint),
    /// Of an object.
    Object(Arc<ObjectIdentity>),
    /// Of the files of a directory together.
    Directory(Arc<DirectoryIdentity>),
}

/// The facts of the files of a directory.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct DirectoryIdentity {
    /// The path of the directory.
    pub path: PathBuf,
    /// A hash of the paths and states of all files.
    pub state: u64,
}

/// The facts of an object: its name among those of its URL, and what the server says of it.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct ObjectIdentity {
    /// Relative to the URL's prefix; empty for the URL's own.
    pub name: Vec<u8>,
    /// Its length, its entity tag and its time.
    pub state: ObjectState,
}

/// The facts of a file: device, inode, size, and both change times.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Fingerprint {
    pub(super) device: u64,
    pub(super) inode: u64,
    pub(super) size: u64,
    pub(super) modified: (i64, i64),
    pub(super) changed: (i64, i64),
}

impl Identity {
    /// Whether both are states of one file or object.
    pub fn is_of_same_file(&self, other: &Self) -> bool {
        match (self, other) {
            (Identity::File(own), Identity::File(other)) => own.is_of_same_file(other),
            (Identity::Object(own), Identity::Object(other)) => own.name == other.name,
            (Identity::Directory(own), Identity::Directory(other)) => own.path == other.path,
            _ => false,
        }
    }

    /// Whether nothing that is known of both tells them apart: a listing of a server may know less of
    /// an object than its answer does.
    pub fn agrees_with(&self, other: &Self) -> bool {
        match (self, other) {
            (Identity::Object(own), Identity::Object(other)) => {
                own.name == other.name && own.state.agrees_with(&other.state)
            }
            (own, other) => own == other,
        }
    }

    /// Whether a listing tells all of an object that an answer tells.
    pub fn is_comparable_to(&self, listed: &Self) -> bool {
        match (self, listed) {
            (Identity::Object(own), Identity::Object(listed)) => {
                own.state.comparable() == listed.state.comparable()
            }
            (own, listed) => own == listed,
        }
    }

    /// Whether nobody has written for so long. Nobody writes into an object: another takes its
    /// place.
    pub fn is_calm_for(&self, time: Duration) -> bool {
        match self {
            Identity::File(fingerprint) => fingerprint.rest().is_some_and(|rest| rest >= time),
            Identity::Object(_) | Identity::Directory(_) => true,
        }
    }

    /// How long ago the content changed; `None` where that is in the future, or not known.
    pub fn age(&self) -> Option<Duration> {
        match self {
            Identity::File(fingerprint) => since(fingerprint.modified),
            Identity::Object(object) => since((object.state.modified, 0)),
            Identity::Directory(_) => None,
        }
    }
}

impl Fingerprint {
    /// Of the file that has this `metadata`.
    pub fn of(metadata: &std::fs::Metadata) -> Self {
        Fingerprint {
            device: metadata.dev(),
            inode: metadata.ino(),
            size: metadata.size(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
        }
    }

    /// Whether both are states of one file.
    pub fn is_of_same_file(&self, other: &Self) -> bool {
        (self.device, self.inode) == (other.device, other.inode)
    }

    /// How long ago the file was written or its attributes were changed; `None` where that is in
    /// the future. A program that copies a file may have set the time of its content back.
    pub fn rest(&self) -> Option<Duration> {
        since(self.changed)
    }
}

fn since((seconds, nanoseconds): (i64, i64)) -> Option<Duration> {
    let seconds = Duration::from_secs(u64::try_from(seconds).ok()?);
    let nanoseconds = Duration::from_nanos(u64::try_from(nanoseconds).ok()?);
    let then = SystemTime::UNIX_EPOCH.checked_add(seconds.checked_add(nanoseconds)?)?;
    SystemTime::now().duration_since(then).ok()
}
