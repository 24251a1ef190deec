//! The worker's end of the connection to the fetcher.
//!
//! Any thread may send a request and wait for the reply, up to the fetcher's time limit. Two
//! threads transfer the packets, so that no thread waits for a socket while it holds the lock. A
//! fetcher that reads slowly thus cannot stop its own replies from being read.

mod packet_transfer;

use std::collections::{HashMap, VecDeque};
use std::ffi::OsStr;
use std::fs::File;
use std::ops::Range;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use rustix::net::{Shutdown, shutdown};

use crate::error::{Cause, Error, Result};
use crate::limits;
use crate::memory::cancel::WantedCheck;
use crate::memory::lock::lock;
use crate::source::Urgency;
use crate::source::open::OpenedState;
use crate::source::remote::failure::{
    fetcher_ended_error, fetcher_failure_error, fetcher_silent_error, unexpected_reply_error,
};
use crate::source::remote::message::{
    Counters, FailureKind, ListedName, OPEN_STAGED_BYTES, PACKET, Reply, Request,
};
use crate::source::remote::page_location::{PageLocation, read_pages};
use crate::source::remote::pages::PageTable;
use crate::source::remote::segment::PAGE;
use crate::source::remote::segments::OpenSegments;
use crate::source::remote::staging::{StagedObject, length};
use crate::wire::{Count, Extent, to_u64, to_usize};

/// Number of bytes of the stage that are reserved for an object of unknown length.
const UNKNOWN_LENGTH_REGION: u64 = 1 << 40;

/// Maximum number of bytes of one read whose pages are pinned at the same time.
const MAX_PINNED_BYTES: u64 = 4 << 20;

/// Time limit for a request for the fetcher's counters, which does not depend on a server.
const COUNTERS_TIMEOUT: Duration = Duration::from_secs(2);

/// Maximum number of attempts to read pages that are corrupt in the disk cache. After each failed
/// attempt, the fetcher removes the corrupt pages from the cache.
const ATTEMPTS: usize = 3;

/// Interval at which a caller that waits for a reply checks for cancellation.
const CANCEL_CHECK_INTERVAL: Duration = Duration::from_millis(100);

/// Settings of the connection, from the source and the mount.
#[derive(Debug, Clone)]
pub struct ConnectionSettings {
    /// The displayed URL of the object or prefix, without query and user information.
    pub url: PathBuf,
    /// Maximum number of bytes of staged pages.
    pub max_staged_bytes: u64,
    /// Time limit for a reply: slightly longer than the fetcher's own limit.
    pub reply_timeout: Duration,
    /// How long the state of an object, as seen in the last response, is assumed to be current.
    pub validity: Duration,
    /// User and group ID of the owner of the mounted files.
    pub owner: (u32, u32),
    /// Whether a mount uses the connection, and not a single command.
    pub is_mounted: bool,
}

/// A connection to the fetcher. Dropping the connection ends it.
#[derive(Debug)]
pub struct Connection {
    settings: ConnectionSettings,
    shared: Arc<SharedConnection>,
}

#[derive(Debug)]
struct SharedConnection {
    socket: OwnedFd,
    /// The stage: the file in memory that the fetcher writes, open for reading.
    stage: File,
    state: Mutex<ConnectionState>,
    /// Notified when a reply arrives.
    reply_arrived: Condvar,
    /// Notified when a packet is queued or the connection ends.
    packet_queued: Condvar,
}

#[derive(Debug)]
struct ConnectionState {
    pages: PageTable,
    segments: OpenSegments,
    calls: HashMap<u64, PendingCall>,
    last_id: u64,
    /// Offset in the stage where the next region starts.
    next_region: u64,
    packets: VecDeque<Vec<u8>>,
    /// Warnings for the user who mounts.
    warnings: Vec<String>,
    /// Time of the first request that timed out since the server's last response.
    unanswered: Option<SystemTime>,
    has_ended: bool,
}

/// A request other than `Fetch` whose reply is pending.
#[derive(Debug)]
enum PendingCall {
    /// A caller waits for the reply. A part of the reply may have arrived.
    AwaitingReply(Option<Reply>),
    /// A check of the object's state that no caller waits for.
    StateCheck(Arc<StagedObject>),
}

/// Pages that are pinned for one read. Dropping this value unpins them.
struct PinnedPages<'a> {
    shared: &'a SharedConnection,
    pages: Range<u64>,
}

impl Connection {
    /// Starts a connection through `socket` to the fetcher, which writes the `stage`. The
    /// connection's threads inherit the caller's current privileges.
    ///
    /// # Errors
    /// `Io` if a thread cannot be started.
    pub fn start(socket: OwnedFd, stage: File, terms: ConnectionSettings) -> Result<Arc<Self>> {
        let shared = Arc::new(SharedConnection {
            socket,
            stage,
            state: Mutex::new(ConnectionState {
                pages: PageTable::new(terms.max_staged_bytes),
                segments: OpenSegments::new(),
                calls: HashMap::new(),
                last_id: 0,
                next_region: 0,
                packets: VecDeque::new(),
                warnings: Vec::new(),
                unanswered: None,
                has_ended: false,
            }),
            reply_arrived: Condvar::new(),
            packet_queued: Condvar::new(),
        });
        let connection = Arc::new(Connection {
            settings: terms,
            shared: Arc::clone(&shared),
        });
        let own = Arc::clone(&shared);
        spawn("fetch-send", move || own.send_all())?;
        spawn("fetch-receive", move || shared.receive_all())?;
        Ok(connection)
    }

    /// Returns the displayed URL.
    pub fn url(&self) -> &Path {
        &self.settings.url
    }

    /// Returns the warnings so far for the user who mounts.
    pub fn warnings(&self) -> Vec<String> {
        self.shared.state().warnings.clone()
    }

    /// Returns how long the state in a response is assumed to be current.
    pub(super) fn validity(&self) -> Duration {
        self.settings.validity
    }

    /// Returns the user and group ID of the owner of the mounted files.
    pub(super) fn owner(&self) -> (u32, u32) {
        self.settings.owner
    }

    /// Returns the maximum number of bytes of staged pages.
    pub(super) fn max_staged_bytes(&self) -> u64 {
        self.settings.max_staged_bytes
    }

    /// Returns whether a mount uses the connection.
    pub(super) fn is_mounted(&self) -> bool {
        self.settings.is_mounted
    }

    /// Returns the URL up to its last `/`, without that `/`.
    pub(super) fn prefix(&self) -> PathBuf {
        let url = self.url().as_os_str().as_bytes();
        match url.strip_suffix(b"/") {
            Some(prefix) => OsStr::from_bytes(prefix).into(),
            None => self.url().parent().unwrap_or(Path::new("")).to_path_buf(),
        }
    }

    /// Opens the object called `name`, relative to the URL's prefix. The empty name is the URL's
    /// own object. `length` is the expected length, if known.
    ///
    /// # Errors
    /// - [`Error::cancelled`] if `is_wanted` returns false.
    /// - Else the server's error. [`is_missing`](super::failure::is_missing) recognizes the error
    ///   of an absent object.
    pub(super) fn open(
        &self,
        name: &[u8],
        length: Option<u64>,
        is_wanted: &WantedCheck<'_>,
    ) -> Result<StagedObject> {
        let said = length.and_then(|length| length.checked_next_multiple_of(PAGE));
        // The region must fit the first bytes, which are staged even if the object's length has
        // changed.
        let region = said.map_or(UNKNOWN_LENGTH_REGION, |said| said.max(OPEN_STAGED_BYTES));
        let opened = self.open_in(name, region, is_wanted)?;
        if opened.state().length <= region {
            return Ok(opened);
        }
        self.close(&opened);
        let needed = opened.state().length.next_multiple_of(PAGE);
        let opened = self.open_in(name, needed, is_wanted)?;
        if opened.state().length <= needed {
            Ok(opened)
        } else {
            Err(Error::from_cause(
                Cause::Stale,
                "reading an object that grows",
            ))
        }
    }

    fn open_in(
        &self,
        name: &[u8],
        bytes: u64,
        is_wanted: &WantedCheck<'_>,
    ) -> Result<StagedObject> {
        let region = self.shared.reserve(bytes)?;
        let (name, called) = (name.to_vec(), name.to_vec());
        let opened = self.call(is_wanted, |id| Request::Open { id, name, region });
        // The fetcher may have staged the first bytes already.
        let opened = opened.inspect_err(|_| self.shared.drop_staged(region, OPEN_STAGED_BYTES))?;
        let Reply::Opened {
            object,
            state,
            staged,
            ..
        } = opened
        else {
            return Err(unexpected_reply_error());
        };
        let staged = staged.min(state.length);
        let opened = StagedObject::new(object, region, &called, state);
        let mut state = self.shared.state();
        if opened.state().length <= bytes {
            let used = opened.state().length.next_multiple_of(PAGE);
            state.release_unused(Extent::saturating(region, bytes).range(), used);
            let whole = if staged == opened.state().length {
                staged
            } else {
                staged.minus_or_zero(staged % PAGE)
            };
            let pages = opened.pages_of(0, whole);
            state.pages.record_staged_unrequested(pages);
        }
        self.shared.send_due_packets(state);
        Ok(opened)
    }

    /// Closes the object.
    pub(super) fn close(&self, object: &StagedObject) {
        let mut state = self.shared.state();
        state.pages.remove_object(object);
        state.queue_requests();
        state.send(&Request::Close {
            object: object.number,
        });
        state.send(&Request::FreeStage {
            stage_offset: object.region,
            length: object.state().length.next_multiple_of(PAGE),
        });
        self.shared.send_due_packets(state);
    }

    /// Requests one page of the names that start with `prefix`, see [`List`](Request::List).
    /// `after` is empty or the token of the page. Returns the names and the token of the next page,
    /// which is empty at the end.
    ///
    /// # Errors
    /// Fails with the server's error, or with [`Error::cancelled`] if `is_wanted` returns false.
    pub fn list(
        &self,
        prefix: &[u8],
        after: &[u8],
        is_wanted: &WantedCheck<'_>,
    ) -> Result<(Vec<ListedName>, Vec<u8>)> {
        let (prefix, after) = (prefix.to_vec(), after.to_vec());
        match self.call(is_wanted, |id| Request::List { id, prefix, after })? {
            Reply::Listed { entries, next, .. } => Ok((entries, next)),
            _ => Err(unexpected_reply_error()),
        }
    }

    /// Returns the network counters.
    ///
    /// # Errors
    /// `Io` if the fetcher has ended or does not reply.
    pub fn counters(&self) -> Result<Counters> {
        let patience = self.settings.reply_timeout.min(COUNTERS_TIMEOUT);
        match self.call_with_timeout(patience, &|| true, |id| Request::GetCounters { id })? {
            Reply::Counted { counters, .. } => Ok(counters),
            _ => Err(unexpected_reply_error()),
        }
    }

    /// Returns the time of the first request that timed out since the server's last response.
    /// Returns `None` if the server responds.
    pub fn unanswered_since(&self) -> Option<SystemTime> {
        self.shared.state().unanswered
    }

    /// Sends a check of the object's state, without waiting for the reply.
    pub(super) fn check_state(&self, object: &Arc<StagedObject>) {
        let mut state = self.shared.state();
        let id = state.next_id();
        state
            .calls
            .insert(id, PendingCall::StateCheck(Arc::clone(object)));
        state.send(&Request::Check {
            id,
            object: object.number,
        });
        self.shared.send_due_packets(state);
    }

    /// Returns whether the object is unchanged. If its state was not confirmed recently, sends a
    /// check and waits for the reply. Returns false if the check is inconclusive.
    pub(super) fn is_unchanged(&self, object: &Arc<StagedObject>) -> bool {
        if object.begin_check_if_due(self.validity()) {
            self.check_state(object);
        }
        let deadline = Instant::now().checked_add(self.settings.reply_timeout);
        let mut state = self.shared.state();
        while object.is_being_checked() && !state.has_ended {
            let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            if left == Some(Duration::ZERO) {
                return false;
            }
            let step = left.unwrap_or(CANCEL_CHECK_INTERVAL);
            let waited = self.shared.reply_arrived.wait_timeout(state, step);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        drop(state);
        object.is_fresh(self.validity())
    }

    /// Requests that these ranges of the object, each an offset and a length, be staged.
    pub(super) fn prefetch(
        &self,
        object: &Arc<StagedObject>,
        ranges: &[(u64, u64)],
        urgency: Urgency,
    ) {
        let mut pages: Vec<Range<u64>> = Vec::new();
        let ranges = ranges.iter().take(limits::HINTED_RANGES);
        pages.extend(ranges.map(|(offset, length)| object.pages_of(*offset, *length)));
        pages.sort_unstable_by_key(|range| (range.start, range.end));
        // Overlaps are removed, so that no page is processed twice.
        let mut end = 0;
        for range in &mut pages {
            range.start = range.start.max(end);
            end = end.max(range.end);
        }
        pages.retain(|range| !range.is_empty());
        let mut state = self.shared.state();
        if !object.has_ended() {
            state.pages.request_ahead(object, &pages, urgency);
        }
        self.shared.send_due_packets(state);
    }

    /// Returns whether `length` bytes of the object at offset `at` are staged.
    pub(super) fn is_staged(&self, object: &StagedObject, at: u64, length: u64) -> bool {
        let pages = object.pages_of(at, length);
        self.shared.state().pages.check_staged(&pages) == Ok(true)
    }

    /// Fills `buffer` with the object's bytes at `at`, which are all inside the object. If the
    /// bytes are not staged, the range `around` is fetched with them.
    ///
    /// # Errors
    /// - `ESTALE` if bytes are missing and the object has changed.
    /// - `EIO` if no reply arrives.
    /// - [`Error::cancelled`] if `is_wanted` returns false.
    /// - Else the server's error.
    pub(super) fn read(
        &self,
        object: &Arc<StagedObject>,
        at: u64,
        buffer: &mut [u8],
        around: Range<u64>,
        is_wanted: &WantedCheck<'_>,
    ) -> Result<()> {
        let all = to_u64(buffer.len());
        if all > MAX_PINNED_BYTES {
            let ahead = Extent::saturating(at, all).skip(MAX_PINNED_BYTES);
            let ahead = [(ahead.start(), ahead.length())];
            self.prefetch(object, &ahead, Urgency::Expected);
        }
        let mut at = at;
        for part in buffer.chunks_mut(to_usize(MAX_PINNED_BYTES)?) {
            self.read_part(object, at, part, &around, is_wanted)?;
            at = Extent::saturating(at, to_u64(part.len())).end();
        }
        Ok(())
    }

    fn read_part(
        &self,
        object: &Arc<StagedObject>,
        at: u64,
        part: &mut [u8],
        around: &Range<u64>,
        is_wanted: &WantedCheck<'_>,
    ) -> Result<()> {
        for _ in 0..ATTEMPTS {
            let pinned = self.shared.pin(object, at, to_u64(part.len()), around)?;
            let places = self.await_staged(&pinned, is_wanted)?;
            let wrong = read_pages(part, object, at, &places, &self.shared.stage)?;
            if wrong.is_empty() {
                return Ok(());
            }
            self.shared.discard_corrupt_pages(object, &wrong);
        }
        Err(fetcher_failure_error(
            FailureKind::Other,
            "wrong bytes in the cache on disk",
        ))
    }

    /// Waits until the pages are staged. Returns where the bytes of each page are stored.
    fn await_staged(
        &self,
        pinned: &PinnedPages<'_>,
        is_wanted: &WantedCheck<'_>,
    ) -> Result<Vec<PageLocation>> {
        let deadline = Instant::now().checked_add(self.settings.reply_timeout);
        let mut state = self.shared.state();
        loop {
            if state.pages.check_staged(&pinned.pages)? {
                return Ok(state.pages.locations(&pinned.pages));
            }
            if state.has_ended {
                return Err(fetcher_ended_error());
            }
            if !is_wanted() {
                return Err(Error::cancelled());
            }
            let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            if left == Some(Duration::ZERO) {
                let error = fetcher_silent_error();
                state.pages.cancel_runs(&pinned.pages, Some(&error));
                self.shared.send_due_packets(state);
                return Err(error);
            }
            let step = left
                .unwrap_or(CANCEL_CHECK_INTERVAL)
                .min(CANCEL_CHECK_INTERVAL);
            let waited = self.shared.reply_arrived.wait_timeout(state, step);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Sends the request that `build` creates for a new request number, and waits for the reply.
    ///
    /// # Errors
    /// - [`Error::cancelled`] if `is_wanted` returns false. The request is cancelled.
    /// - `EIO` if no reply arrives. The request is cancelled.
    /// - Else the server's error.
    fn call(
        &self,
        is_wanted: &WantedCheck<'_>,
        build: impl FnOnce(u64) -> Request,
    ) -> Result<Reply> {
        self.call_with_timeout(self.settings.reply_timeout, is_wanted, build)
    }

    fn call_with_timeout(
        &self,
        patience: Duration,
        is_wanted: &WantedCheck<'_>,
        build: impl FnOnce(u64) -> Request,
    ) -> Result<Reply> {
        let deadline = Instant::now().checked_add(patience);
        let mut state = self.shared.state();
        let id = state.next_id();
        state.calls.insert(id, PendingCall::AwaitingReply(None));
        let is_sent = state.send(&build(id));
        self.shared.packet_queued.notify_one();
        if !is_sent {
            state.calls.remove(&id);
            return Err(Error::limit("request to the fetcher", to_u64(PACKET)));
        }
        loop {
            if let Some(PendingCall::AwaitingReply(Some(reply))) = state.calls.get(&id)
                && !matches!(reply, Reply::Listed { is_last: false, .. })
                && let Some(PendingCall::AwaitingReply(Some(reply))) = state.calls.remove(&id)
            {
                return match reply {
                    Reply::Failed { failure, text, .. } => {
                        Err(fetcher_failure_error(failure, &text))
                    }
                    reply => Ok(reply),
                };
            }
            let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            let error = if state.has_ended {
                Some(fetcher_ended_error())
            } else if !is_wanted() {
                Some(Error::cancelled())
            } else if left == Some(Duration::ZERO) {
                Some(fetcher_silent_error())
            } else {
                None
            };
            if let Some(error) = error {
                // A reply that arrives later belongs to no call. If it opens an object, the object
                // is closed.
                state.calls.remove(&id);
                state.send(&Request::Cancel { id });
                self.shared.send_due_packets(state);
                return Err(error);
            }
            let step = left
                .unwrap_or(CANCEL_CHECK_INTERVAL)
                .min(CANCEL_CHECK_INTERVAL);
            let waited = self.shared.reply_arrived.wait_timeout(state, step);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

#[cfg(test)]
impl Connection {
    /// Returns the number of bytes of the pages that are staged or requested.
    pub(super) fn staged_bytes(&self) -> u64 {
        self.shared.state().pages.staged_or_requested().times(PAGE)
    }

    /// Returns the number of remembered failed runs.
    pub(super) fn failures(&self) -> usize {
        self.shared.state().pages.failures()
    }

    /// Returns the number of queued runs that no reader waits for.
    pub(super) fn queued(&self) -> usize {
        self.shared.state().pages.expected_count()
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.shared.end();
        // Closing the socket ends the thread that receives replies.
        let _ = shutdown(&self.shared.socket, Shutdown::Both);
    }
}

impl Drop for PinnedPages<'_> {
    fn drop(&mut self) {
        let mut state = self.shared.state();
        state.pages.unpin(&self.pages);
        if state.pages.check_staged(&self.pages) != Ok(true) {
            state.pages.cancel_runs(&self.pages, None);
        }
        self.shared.send_due_packets(state);
    }
}

impl SharedConnection {
    fn state(&self) -> MutexGuard<'_, ConnectionState> {
        lock(&self.state)
    }

    /// Queues the packets that are due, and releases the lock.
    fn send_due_packets(&self, mut state: MutexGuard<'_, ConnectionState>) {
        state.request_pages();
        let is_idle = state.packets.is_empty();
        drop(state);
        if !is_idle {
            self.packet_queued.notify_one();
        }
    }

    fn reserve(&self, bytes: u64) -> Result<u64> {
        let mut state = self.state();
        let region = state.next_region;
        let end = region
            .checked_add(bytes)
            .filter(|end| i64::try_from(*end).is_ok());
        state.next_region = end.ok_or_else(|| Error::limit("number of open objects", region))?;
        Ok(region)
    }

    /// Frees the first `length` bytes of a region, which no open object uses.
    fn drop_staged(&self, region: u64, length: u64) {
        let mut state = self.state();
        state.send(&Request::FreeStage {
            stage_offset: region,
            length,
        });
        self.send_due_packets(state);
    }

    /// Pins the pages that contain `bytes` bytes of the object at offset `at`, and requests those
    /// that are missing.
    fn pin(
        &self,
        object: &Arc<StagedObject>,
        at: u64,
        bytes: u64,
        around: &Range<u64>,
    ) -> Result<PinnedPages<'_>> {
        let pages = object.pages_of(at, bytes);
        let mut state = self.state();
        state.pages.pin(&pages);
        let pinned = PinnedPages {
            shared: self,
            pages: pages.clone(),
        };
        if state.pages.check_staged(&pages) != Ok(false) {
            return Ok(pinned);
        }
        if let Some(why) = object.end_reason() {
            drop(state);
            return Err(why.clone());
        }
        if length(around) <= limits::PAGED_BLOCK.times(2) {
            let around = object.pages_of(around.start, length(around));
            state.pages.request_around(object, &pages, &around);
        } else {
            let pages = std::slice::from_ref(&pages);
            state.pages.request(object, pages, Urgency::Needed);
        }
        self.send_due_packets(state);
        Ok(pinned)
    }

    /// Asks the fetcher to remove these corrupt pages from the disk cache.
    fn discard_corrupt_pages(&self, object: &StagedObject, pages: &[u64]) {
        let mut state = self.state();
        for number in pages {
            if state.pages.discard_corrupt(*number) {
                let bytes = object.bytes_of(&(*number..number.plus_one()));
                state.send(&Request::DiscardCorruptPage {
                    object: object.number,
                    offset: bytes.start,
                });
            }
        }
        self.send_due_packets(state);
    }

    /// Ends the connection: discards the queued packets, and wakes all waiting callers, which then
    /// fail.
    fn end(&self) {
        let mut state = self.state();
        state.has_ended = true;
        state.pages.fail_all(&fetcher_ended_error());
        state.packets.clear();
        drop(state);
        self.packet_queued.notify_all();
        self.reply_arrived.notify_all();
    }
}

impl ConnectionState {
    fn next_id(&mut self) -> u64 {
        self.last_id = self.last_id.wrapping_add(1);
        self.last_id
    }

    /// Frees the part of a region after its first `used` bytes, if the region is the last one in
    /// the stage.
    fn release_unused(&mut self, region: Range<u64>, used: u64) {
        if self.next_region == region.end && used < length(&region) {
            self.next_region = Extent::from(region).first(used).end();
        }
    }

    /// Requests the wanted pages, within the limit of concurrent requests.
    fn request_pages(&mut self) {
        if !self.has_ended {
            let last_id = &mut self.last_id;
            self.pages.request_queued(&mut || {
                *last_id = last_id.wrapping_add(1);
                *last_id
            });
        }
        self.queue_requests();
    }

    fn queue_requests(&mut self) {
        let requests: Vec<Request> = self.pages.take_requests().collect();
        for request in requests {
            self.send(&request);
        }
    }

    /// Records whether a reply shows that the server responds or has timed out.
    fn record_responsiveness(&mut self, reply: &Reply) {
        match reply {
            Reply::Failed { failure, .. } => match failure {
                FailureKind::TimedOut => {
                    self.unanswered.get_or_insert_with(SystemTime::now);
                }
                FailureKind::NotFound
                | FailureKind::Denied
                | FailureKind::Changed
                | FailureKind::NoRanges => {
                    self.unanswered = None;
                }
                FailureKind::NoRoom | FailureKind::Other => {}
            },
            Reply::Opened { .. } | Reply::Staged { .. } | Reply::Listed { .. } => {
                self.unanswered = None;
            }
            // The fetcher sends these replies without contacting the server.
            Reply::InSegment { .. } | Reply::Counted { .. } | Reply::Warning { .. } => {}
        }
    }

    /// Queues a packet. Returns false if the request is too long for one packet.
    fn send(&mut self, request: &Request) -> bool {
        let packet = request.encode();
        let fits = packet.len() <= PACKET;
        if fits && !self.has_ended {
            self.packets.push_back(packet);
        }
        fits
    }
}

fn spawn(name: &str, run: impl FnOnce() + Send + 'static) -> Result<()> {
    let thread = thread::Builder::new().name(name.to_owned()).spawn(run);
    let failed = |error| Error::from_io(&error, "starting a thread for the fetcher");
    thread.map(drop).map_err(failed)
}
