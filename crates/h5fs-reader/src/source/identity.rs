//! Identities of the states of files and objects.

use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use crate::source::remote::state::ObjectState;

/// The facts that distinguish one state of a source from another.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Identity {
    /// Identity of a file.
    File(Fingerprint),
    /// Identity of an object.
    Object(Arc<ObjectIdentity>),
    /// Common identity of the files of a directory.
    Directory(Arc<DirectoryIdentity>),
}

/// The identity of the files of a directory.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct DirectoryIdentity {
    /// The path of the directory.
    pub path: PathBuf,
    /// A hash of the paths and states of all files of the directory.
    pub state: u64,
}

/// The identity of an object: its name relative to the URL, and its validators from the server.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct ObjectIdentity {
    /// Name relative to the URL's prefix. The name is empty if the URL is the object's own.
    pub name: Vec<u8>,
    /// Length, entity tag and modification time of the object.
    pub state: ObjectState,
}

/// The identity of a file: device, inode, size, modification time and status change time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Fingerprint {
    pub(super) device: u64,
    pub(super) inode: u64,
    pub(super) size: u64,
    pub(super) modified: (i64, i64),
    pub(super) changed: (i64, i64),
}

impl Identity {
    /// Returns whether both identities are states of the same file or object.
    pub fn is_of_same_file(&self, other: &Self) -> bool {
        match (self, other) {
            (Identity::File(own), Identity::File(other)) => own.is_of_same_file(other),
            (Identity::Object(own), Identity::Object(other)) => own.name == other.name,
            (Identity::Directory(own), Identity::Directory(other)) => own.path == other.path,
            _ => false,
        }
    }

    /// Returns whether no known fact distinguishes the two identities. A listing of a server may
    /// contain fewer facts about an object than a response.
    pub fn is_consistent_with(&self, other: &Self) -> bool {
        match (self, other) {
            (Identity::Object(own), Identity::Object(other)) => {
                own.name == other.name && own.state.is_consistent_with(&other.state)
            }
            (own, other) => own == other,
        }
    }

    /// Returns whether `listed`, an identity from a listing, has the same length and the same
    /// entity tag as this identity from a response, apart from the notation of the tag. Without
    /// tags, the dates must be equal. Identities of files and directories must be equal.
    pub fn is_comparable_to(&self, listed: &Self) -> bool {
        match (self, listed) {
            (Identity::Object(own), Identity::Object(listed)) => {
                own.state.to_comparable_form() == listed.state.to_comparable_form()
            }
            (own, listed) => own == listed,
        }
    }

    /// Returns whether the file has not been changed for at least `time`. Returns true for an
    /// object, because it is never written in place, and for a directory.
    pub fn is_unmodified_for(&self, time: Duration) -> bool {
        match self {
            Identity::File(fingerprint) => fingerprint
                .time_since_change()
                .is_some_and(|rest| rest >= time),
            Identity::Object(_) | Identity::Directory(_) => true,
        }
    }

    /// Returns the time since the content changed, or `None` if the time is in the future or
    /// unknown.
    pub fn age(&self) -> Option<Duration> {
        match self {
            Identity::File(fingerprint) => elapsed_since(fingerprint.modified),
            Identity::Object(object) => elapsed_since((object.state.modified, 0)),
            Identity::Directory(_) => None,
        }
    }
}

impl Fingerprint {
    /// Returns the identity of the file with this `metadata`.
    pub fn from_metadata(metadata: &std::fs::Metadata) -> Self {
        Fingerprint {
            device: metadata.dev(),
            inode: metadata.ino(),
            size: metadata.size(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
        }
    }

    /// Returns whether both fingerprints are states of the same file.
    pub fn is_of_same_file(&self, other: &Self) -> bool {
        (self.device, self.inode) == (other.device, other.inode)
    }

    /// Returns the time since the status change time (`st_ctime`), or `None` if the status change
    /// time is in the future. The modification time is not used, because a program that copies a
    /// file may set it back.
    pub(crate) fn time_since_change(&self) -> Option<Duration> {
        elapsed_since(self.changed)
    }
}

fn elapsed_since((seconds, nanoseconds): (i64, i64)) -> Option<Duration> {
    let seconds = Duration::from_secs(u64::try_from(seconds).ok()?);
    let nanoseconds = Duration::from_nanos(u64::try_from(nanoseconds).ok()?);
    let then = SystemTime::UNIX_EPOCH.checked_add(seconds.checked_add(nanoseconds)?)?;
    SystemTime::now().duration_since(then).ok()
}
