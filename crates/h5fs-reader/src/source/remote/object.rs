//! Remote objects as sources.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use crate::error::{Error, Result};
use crate::limits;
use crate::memory::cancel::WantedCheck;
use crate::source::attributes::FileAttributes;
use crate::source::open::{OpenSource, OpenedState, SharedState};
use crate::source::remote::connection::Connection;
use crate::source::remote::failure::is_missing;
use crate::source::remote::staging::StagedObject;
use crate::source::remote::state::ObjectState;
use crate::source::{Source, Urgency};
use crate::wire::{Count, Extent, to_u64};

/// Minimum size in bytes of the blocks to which a short read is extended. A short read is usually
/// of metadata, and further metadata is usually close.
const BLOCK: u64 = 256 << 10;

/// An object in the state in which it was opened. Bytes of another state are never returned.
#[derive(Debug)]
pub struct RemoteObject {
    connection: Arc<Connection>,
    staging: Arc<StagedObject>,
    /// Offset of the first metadata page of the file, and the length of each such page.
    pages: OnceLock<(u64, u64)>,
    /// Whether the whole object was already requested because it is small.
    is_requested_whole: AtomicBool,
}

impl RemoteObject {
    /// Opens the object called `name`, relative to the URL's prefix. The empty name is the URL's
    /// own object. Returns `None` if the object does not exist.
    ///
    /// # Errors
    /// Fails with the server's error: `EACCES`, `EIO`, or `Usage` if the server does not support
    /// ranges. Fails with [`Error::cancelled`] if `is_wanted` returns false.
    pub fn find(
        connection: &Arc<Connection>,
        name: &[u8],
        is_wanted: &WantedCheck<'_>,
    ) -> Result<Option<Self>> {
        Self::open_with_length(connection, name, None, is_wanted)
    }

    /// Opens an object like [`find`](Self::find), with an expected length of `length` bytes.
    ///
    /// # Errors
    /// Fails as [`find`](Self::find) does.
    pub(super) fn find_with_length(
        connection: &Arc<Connection>,
        name: &[u8],
        length: u64,
        is_wanted: &WantedCheck<'_>,
    ) -> Result<Option<Self>> {
        Self::open_with_length(connection, name, Some(length), is_wanted)
    }

    fn open_with_length(
        connection: &Arc<Connection>,
        name: &[u8],
        length: Option<u64>,
        is_wanted: &WantedCheck<'_>,
    ) -> Result<Option<Self>> {
        match connection.open(name, length, is_wanted) {
            Ok(staging) => Ok(Some(RemoteObject {
                connection: Arc::clone(connection),
                staging: Arc::new(staging),
                pages: OnceLock::new(),
                is_requested_whole: AtomicBool::new(false),
            })),
            Err(error) if is_missing(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Returns the state of the object when it was opened, from the server's response.
    pub(super) fn object_state(&self) -> &ObjectState {
        self.staging.state()
    }

    /// Returns whether the object is unchanged, from a recent check or a new one. Returns false if
    /// the check is inconclusive.
    pub(super) fn is_unchanged(&self) -> bool {
        self.connection.is_unchanged(&self.staging)
    }

    /// Requests all bytes of a small object on the first access to bytes that are not staged,
    /// because one request replaces many. `is_there` returns whether the accessed bytes are staged.
    /// The object is requested as a whole only once: evicted bytes are later requested in parts.
    fn request_small_object(&self, is_there: impl FnOnce() -> bool) {
        let small = if self.staging.is_url_object() {
            limits::SMALL_OBJECT
        } else {
            limits::SMALL_MEMBER
        };
        // A small object must not evict more than a quarter of the staged bytes.
        let most = small.min(self.connection.max_staged_bytes() / 4);
        if self.length() <= most
            && !self.is_requested_whole.load(Ordering::Relaxed)
            && !is_there()
            && !self.is_requested_whole.swap(true, Ordering::Relaxed)
        {
            let all = [(0, self.length())];
            self.connection
                .prefetch(&self.staging, &all, Urgency::Expected);
        }
    }

    /// Returns the range to fetch for `wanted`. A range shorter than one block is extended to whole
    /// blocks. A block has the size of a metadata page, within limits, or [`BLOCK`] bytes if there
    /// are no metadata pages.
    fn fetch_range(&self, wanted: Extent) -> Range<u64> {
        let at = wanted.start();
        let known = self.pages.get().filter(|(base, _)| *base <= at);
        let (base, block) = known.map_or((0, BLOCK), |(base, page)| {
            (*base, (*page).clamp(BLOCK, limits::PAGED_BLOCK))
        });
        if wanted.length() >= block {
            return wanted.range();
        }
        let past = at.minus_or_zero(base).checked_rem(block).unwrap_or(0);
        let blocks = wanted.end().minus_or_zero(base);
        let end = blocks.checked_next_multiple_of(block);
        let end = end.and_then(|blocks| blocks.checked_add(base));
        at.minus_or_zero(past)..end.unwrap_or(u64::MAX)
    }

    /// Extends expected ranges of a file with metadata pages as [`fetch_range`](Self::fetch_range)
    /// does, because other reads of the same page will follow. Omits staged ranges, and ranges
    /// beyond the first `limits::HINTED_RANGES`.
    fn blocks_of(&self, ranges: &[(u64, u64)]) -> Vec<(u64, u64)> {
        let ranges = ranges.iter().take(limits::HINTED_RANGES);
        let absent = ranges.filter(|(at, length)| !self.is_available(*at, *length));
        let blocks = absent.map(|(at, length)| {
            let around = Extent::from(self.fetch_range(Extent::saturating(*at, *length)));
            (around.start(), around.length())
        });
        blocks.collect()
    }
}

impl OpenSource for RemoteObject {
    fn opened_state(&self) -> SharedState {
        Arc::<StagedObject>::clone(&self.staging)
    }

    /// Returns whether the server's responses have shown a change of the object. Starts a check in
    /// the background when one is due.
    fn is_changed(&self) -> bool {
        if self.staging.begin_check_if_due(self.connection.validity()) {
            self.connection.check_state(&self.staging);
        }
        self.staging.has_ended()
    }

    /// Returns the attributes. All users of the mount may read the object, because the server
    /// granted access to the user who mounts.
    fn attributes(&self) -> Result<FileAttributes> {
        let (uid, gid) = self.connection.owner();
        let state = self.staging.state();
        Ok(FileAttributes {
            size: state.length,
            uid,
            gid,
            mode: 0o100_444,
            modified: (state.modified, 0),
        })
    }
}

impl Source for RemoteObject {
    fn length(&self) -> u64 {
        self.staging.state().length
    }

    fn is_remote(&self) -> bool {
        true
    }

    fn prefetch(&self, ranges: &[(u64, u64)], urgency: Urgency) {
        self.request_small_object(|| {
            ranges
                .iter()
                .all(|(at, length)| self.is_available(*at, *length))
        });
        if urgency == Urgency::Expected && self.pages.get().is_some() {
            let blocks = self.blocks_of(ranges);
            return self.connection.prefetch(&self.staging, &blocks, urgency);
        }
        self.connection.prefetch(&self.staging, ranges, urgency);
    }

    fn is_available(&self, at: u64, length: u64) -> bool {
        self.connection.is_staged(&self.staging, at, length)
    }

    /// Records the pages. If a mount shows this object alone, prefetches the first page, which
    /// contains all metadata of a small file. A single command, or one of many objects beneath a
    /// prefix, needs too little of that page.
    fn set_metadata_pages(&self, base: u64, length: u64) {
        // The pages of a file never change. A second file in the same object does not replace them.
        let is_mounted = self.connection.is_mounted() && self.staging.is_url_object();
        if self.pages.set((base, length)).is_ok() && is_mounted {
            let first = (base, length.min(limits::FIRST_PAGE));
            self.connection
                .prefetch(&self.staging, &[first], Urgency::Expected);
        }
    }

    fn metadata_pages(&self) -> Option<(u64, u64)> {
        self.pages.get().copied()
    }

    fn read_cancellable(
        &self,
        at: u64,
        buffer: &mut [u8],
        is_wanted: &WantedCheck<'_>,
    ) -> Result<()> {
        let length = to_u64(buffer.len());
        let wanted = Extent::checked(at, length).filter(|wanted| wanted.is_within(self.length()));
        let past_end = || format!("{length} bytes reach past the end of the object");
        let wanted = wanted.ok_or_else(|| Error::corrupt(past_end(), at))?;
        self.request_small_object(|| self.is_available(at, length));
        let around = self.fetch_range(wanted);
        self.connection
            .read(&self.staging, at, buffer, around, is_wanted)
    }
}

impl Drop for RemoteObject {
    fn drop(&mut self) {
        self.connection.close(&self.staging);
    }
}
