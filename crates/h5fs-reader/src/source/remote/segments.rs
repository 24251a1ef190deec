//! The segments (files of the disk cache) that the worker has open. Each file is open only once.

use std::fs::File;
use std::num::NonZeroUsize;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::sync::{Arc, Weak};

use crate::error::{Error, Result};
use crate::limits;
use crate::source::local::descriptors::max_open_files;
use crate::source::remote::segment::{ObjectKey, Segment};
use crate::wire::Count;

/// The open segments. The one received longest ago is first.
#[derive(Debug)]
pub(super) struct OpenSegments {
    open: Vec<(SegmentId, Weak<Segment>)>,
    most: usize,
}

/// The identity of a segment: the device and inode of its file, and the object's key.
type SegmentId = (u64, u64, ObjectKey);

impl OpenSegments {
    /// Creates an empty list.
    pub(super) fn new() -> Self {
        let most = NonZeroUsize::new(limits::OPEN_SEGMENTS).unwrap_or(NonZeroUsize::MIN);
        OpenSegments {
            open: Vec::new(),
            most: max_open_files(most).get(),
        }
    }

    /// Returns the segment of a received file. If the same file is already open, returns that
    /// segment.
    ///
    /// # Errors
    /// `Corrupt` if the file is not a regular file.
    pub(super) fn insert(&mut self, file: OwnedFd, key: ObjectKey) -> Result<Arc<Segment>> {
        let file = File::from(file);
        let metadata = file.metadata();
        let metadata = metadata.map_err(|error| Error::from_io(&error, "the cache on disk"))?;
        if !metadata.is_file() {
            return Err(Error::corrupt(
                "reply of the fetcher: not a regular file",
                None,
            ));
        }
        let id = (metadata.dev(), metadata.ino(), key);
        let mut known = None;
        self.open.retain(|(own, segment)| {
            let segment = segment.upgrade();
            if *own == id {
                known = segment;
                false
            } else {
                segment.is_some()
            }
        });
        let segment = known.unwrap_or_else(|| Arc::new(Segment::new(file, key)));
        self.open.push((id, Arc::downgrade(&segment)));
        Ok(segment)
    }

    /// Returns the segments above the limit, starting with the one received longest ago.
    pub(super) fn segments_above_limit(&self) -> Vec<Arc<Segment>> {
        let surplus = self.open.len().minus_or_zero(self.most);
        let oldest = self.open.iter().take(surplus);
        oldest
            .filter_map(|(_, segment)| segment.upgrade())
            .collect()
    }
}
