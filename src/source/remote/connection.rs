//! The parsing process's end of the connection to the fetcher.
//!
//! Any thread asks, and waits for its answer as long as the fetcher may take. Two threads carry the
//! packets, so that none who holds the state waits for a socket: a fetcher that is slow to read
//! must not keep its own replies from being taken.

mod carried;

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
use crate::memory::cancel::IsWanted;
use crate::memory::lock::lock;
use crate::source::Urgency;
use crate::source::open::OpenedState;
use crate::source::remote::failure::{ended, failed, silent, unfitting};
use crate::source::remote::message::{
    Counters, FIRST, Failure, ListedName, PACKET, Reply, Request,
};
use crate::source::remote::pages::Pages;
use crate::source::remote::place::{Place, fill};
use crate::source::remote::segment::PAGE;
use crate::source::remote::segments::Segments;
use crate::source::remote::staging::{Staging, length};
use crate::wire::{Count, Extent, to_u64, to_usize};

/// Bytes of the stage that are set aside for an object of which no length is known.
const REGION: u64 = 1 << 40;

/// Bytes of one read for which pages are kept at a time.
const WINDOW: u64 = 4 << 20;

/// How long the counters are waited for: the fetcher asks nobody for them.
const COUNTING: Duration = Duration::from_secs(2);

/// How often pages are asked for that are wrong in the cache on disk: the first time, they are
/// forgotten there.
const ATTEMPTS: usize = 3;

/// How often a reader that waits looks whether it is still wanted.
const LOOK: Duration = Duration::from_millis(100);

/// What the connection is told of the source and of the mount.
#[derive(Debug, Clone)]
pub struct Terms {
    /// The URL of the object, or of the prefix, as people may see it: without its query, and
    /// without a user.
    pub url: PathBuf,
    /// Bytes of staged pages that are kept.
    pub kept: u64,
    /// How long an answer is waited for: somewhat longer than the fetcher tries.
    pub patience: Duration,
    /// How long an object is taken to be in the state in which an answer has shown it last.
    pub valid: Duration,
    /// The user and the group that own what is mounted.
    pub owner: (u32, u32),
    /// Whether a mount reads it, and not one command.
    pub is_mounted: bool,
}

/// The connection. It ends when it is dropped.
#[derive(Debug)]
pub struct Connection {
    terms: Terms,
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    socket: OwnedFd,
    /// Read only.
    stage: File,
    state: Mutex<State>,
    /// An answer has come.
    answered: Condvar,
    /// There is a packet to send, or nothing any more.
    sending: Condvar,
}

#[derive(Debug)]
struct State {
    pages: Pages,
    segments: Segments,
    calls: HashMap<u64, Call>,
    last_id: u64,
    /// Where the next region begins.
    free: u64,
    packets: VecDeque<Vec<u8>>,
    /// What whoever mounts has to know.
    warnings: Vec<String>,
    /// When a request was given up first to which the server has not answered, if it has answered
    /// none since.
    unanswered: Option<SystemTime>,
    is_over: bool,
}

/// A request that is no `Fetch`.
#[derive(Debug)]
enum Call {
    /// Somebody waits for the reply, of which a part may have come.
    Waits(Option<Reply>),
    /// Asks whether the object is still in its state; nobody waits.
    Looks(Arc<Staging>),
}

/// Pages that are kept for one reader.
struct Pinned<'a> {
    shared: &'a Shared,
    pages: Range<u64>,
}

impl Connection {
    /// Speaks through `socket` with the fetcher, which writes the `stage`. The threads for it are
    /// started here, and have the rights that the caller has now.
    ///
    /// # Errors
    /// `Io` where no thread can be started.
    pub fn start(socket: OwnedFd, stage: File, terms: Terms) -> Result<Arc<Self>> {
        let shared = Arc::new(Shared {
            socket,
            stage,
            state: Mutex::new(State {
                pages: Pages::new(terms.kept),
                segments: Segments::new(),
                calls: HashMap::new(),
                last_id: 0,
                free: 0,
                packets: VecDeque::new(),
                warnings: Vec::new(),
                unanswered: None,
                is_over: false,
            }),
            answered: Condvar::new(),
            sending: Condvar::new(),
        });
        let connection = Arc::new(Connection {
            terms,
            shared: Arc::clone(&shared),
        });
        let own = Arc::clone(&shared);
        spawn("fetch-send", move || own.send_all())?;
        spawn("fetch-receive", move || shared.receive_all())?;
        Ok(connection)
    }

    /// The URL, as people may see it.
    pub fn url(&self) -> &Path {
        &self.terms.url
    }

    /// What whoever mounts has to know, by now.
    pub fn warnings(&self) -> Vec<String> {
        self.shared.state().warnings.clone()
    }

    /// How long what an answer has shown holds.
    pub(super) fn valid(&self) -> Duration {
        self.terms.valid
    }

    /// The user and the group that own what is mounted.
    pub(super) fn owner(&self) -> (u32, u32) {
        self.terms.owner
    }

    /// Bytes of staged pages that are kept.
    pub(super) fn kept(&self) -> u64 {
        self.terms.kept
    }

    /// Whether a mount reads what the URL names.
    pub(super) fn is_mounted(&self) -> bool {
        self.terms.is_mounted
    }

    /// The path of the URL's prefix: what stands before its last `/`.
    pub(super) fn prefix(&self) -> PathBuf {
        let url = self.url().as_os_str().as_bytes();
        match url.strip_suffix(b"/") {
            Some(prefix) => OsStr::from_bytes(prefix).into(),
            None => self.url().parent().unwrap_or(Path::new("")).to_path_buf(),
        }
    }

    /// Opens the object called `name`, relative to the URL's prefix; empty for the URL's own. It is
    /// said to have `length` bytes, if that is known.
    ///
    /// # Errors
    /// Fails with the server's error; [`is_missing`](super::failure::is_missing) tells that there
    /// is none.
    pub(super) fn open(&self, name: &[u8], length: Option<u64>) -> Result<Staging> {
        let said = length.and_then(|length| length.checked_next_multiple_of(PAGE));
        // The first bytes come in any case, whatever the length is now.
        let region = said.map_or(REGION, |said| said.max(FIRST));
        let opened = self.open_in(name, region)?;
        if opened.state().length <= region {
            return Ok(opened);
        }
        self.close(&opened);
        let needed = opened.state().length.next_multiple_of(PAGE);
        let opened = self.open_in(name, needed)?;
        if opened.state().length <= needed {
            Ok(opened)
        } else {
            Err(Error::caused(Cause::Stale, "an object that grows"))
        }
    }

    fn open_in(&self, name: &[u8], bytes: u64) -> Result<Staging> {
        let region = self.shared.reserve(bytes)?;
        let (name, called) = (name.to_vec(), name.to_vec());
        let opened = self.call(|id| Request::Open { id, name, region })?;
        let Reply::Opened {
            object,
            state,
            staged,
            ..
        } = opened
        else {
            return Err(unfitting());
        };
        let staged = staged.min(state.length);
        let opened = Staging::new(object, region, &called, state);
        let mut state = self.shared.state();
        if opened.state().length <= bytes {
            let used = opened.state().length.next_multiple_of(PAGE);
            state.give_back(Extent::cut(region, bytes).range(), used);
            let whole = if staged == opened.state().length {
                staged
            } else {
                staged.left_after(staged % PAGE)
            };
            let pages = opened.pages_of(0, whole);
            state.pages.staged_unasked(pages);
        }
        self.shared.settle(state);
        Ok(opened)
    }

    /// The object is used no more.
    pub(super) fn close(&self, object: &Staging) {
        let mut state = self.shared.state();
        state.pages.forget(object);
        state.queue_requests();
        state.send(&Request::Close {
            object: object.number,
        });
        state.send(&Request::Drop {
            place: object.region,
            length: object.state().length.next_multiple_of(PAGE),
        });
        self.shared.settle(state);
    }

    /// A page of the names that [`List`](Request::List) tells of, and what asks for the next page;
    /// empty at the end.
    ///
    /// # Errors
    /// Fails with the server's error.
    pub fn list(&self, prefix: &[u8], after: &[u8]) -> Result<(Vec<ListedName>, Vec<u8>)> {
        let (prefix, after) = (prefix.to_vec(), after.to_vec());
        match self.call(|id| Request::List { id, prefix, after })? {
            Reply::Listed { entries, next, .. } => Ok((entries, next)),
            _ => Err(unfitting()),
        }
    }

    /// What the network took so far.
    ///
    /// # Errors
    /// `Io` where the fetcher has ended or does not answer.
    pub fn counters(&self) -> Result<Counters> {
        let patience = self.terms.patience.min(COUNTING);
        match self.call_within(patience, |id| Request::Count { id })? {
            Reply::Counted { counters, .. } => Ok(counters),
            _ => Err(unfitting()),
        }
    }

    /// Since when the server has not answered, as far as it was asked.
    pub fn unanswered_since(&self) -> Option<SystemTime> {
        self.shared.state().unanswered
    }

    /// Has the fetcher look whether the object is still in its state. Nobody waits for that.
    pub(super) fn look(&self, object: &Arc<Staging>) {
        let mut state = self.shared.state();
        let id = state.next_id();
        state.calls.insert(id, Call::Looks(Arc::clone(object)));
        state.send(&Request::Check {
            id,
            object: object.number,
        });
        self.shared.settle(state);
    }

    /// Whether the object is in its state: if it was not seen in it lately, the fetcher looks, and
    /// this waits for what that tells. False where nothing does.
    pub(super) fn is_unchanged(&self, object: &Arc<Staging>) -> bool {
        if object.is_due(self.valid()) {
            self.look(object);
        }
        let deadline = Instant::now().checked_add(self.terms.patience);
        let mut state = self.shared.state();
        while object.is_looked_at() && !state.is_over {
            let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            if left == Some(Duration::ZERO) {
                return false;
            }
            let step = left.unwrap_or(LOOK);
            let waited = self.shared.answered.wait_timeout(state, step);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        drop(state);
        object.is_fresh(self.valid())
    }

    /// Has these bytes of the object staged, offset and length of each.
    pub(super) fn prefetch(&self, object: &Arc<Staging>, ranges: &[(u64, u64)], urgency: Urgency) {
        let mut pages: Vec<Range<u64>> = Vec::new();
        let ranges = ranges.iter().take(limits::HINTED_RANGES);
        pages.extend(ranges.map(|(offset, length)| object.pages_of(*offset, *length)));
        pages.sort_unstable_by_key(|range| (range.start, range.end));
        // No page is gone through twice.
        let mut end = 0;
        for range in &mut pages {
            range.start = range.start.max(end);
            end = end.max(range.end);
        }
        pages.retain(|range| !range.is_empty());
        let mut state = self.shared.state();
        if !object.is_over() {
            state.pages.hint(object, &pages, urgency);
        }
        self.shared.settle(state);
    }

    /// Whether these bytes of the object are staged.
    pub(super) fn has(&self, object: &Staging, at: u64, length: u64) -> bool {
        let pages = object.pages_of(at, length);
        self.shared.state().pages.outcome(&pages) == Ok(true)
    }

    /// Fills `buffer` with the bytes of the object at `at`, which are all inside it. Where they are
    /// not staged, those `around` them come along.
    ///
    /// # Errors
    /// `ESTALE` where bytes are missing and the object has changed; else fails with the server's
    /// error; `EIO` where no answer comes; [`Error::unwanted`] once `is_wanted` says so.
    pub(super) fn read(
        &self,
        object: &Arc<Staging>,
        at: u64,
        buffer: &mut [u8],
        around: Range<u64>,
        is_wanted: &IsWanted<'_>,
    ) -> Result<()> {
        let all = to_u64(buffer.len());
        if all > WINDOW {
            let ahead = Extent::cut(at, all).after(WINDOW);
            let ahead = [(ahead.start(), ahead.length())];
            self.prefetch(object, &ahead, Urgency::Expected);
        }
        let mut at = at;
        for part in buffer.chunks_mut(to_usize(WINDOW)?) {
            self.read_part(object, at, part, &around, is_wanted)?;
            at = Extent::cut(at, to_u64(part.len())).end();
        }
        Ok(())
    }

    fn read_part(
        &self,
        object: &Arc<Staging>,
        at: u64,
        part: &mut [u8],
        around: &Range<u64>,
        is_wanted: &IsWanted<'_>,
    ) -> Result<()> {
        for _ in 0..ATTEMPTS {
            let pinned = self.shared.pin(object, at, to_u64(part.len()), around)?;
            let places = self.await_staged(&pinned, is_wanted)?;
            let wrong = fill(part, object, at, &places, &self.shared.stage)?;
            if wrong.is_empty() {
                return Ok(());
            }
            self.shared.lose(object, &wrong);
        }
        Err(failed(Failure::Other, "wrong bytes in the cache on disk"))
    }

    /// Waits until the pages are there: where they stand.
    fn await_staged(&self, pinned: &Pinned<'_>, is_wanted: &IsWanted<'_>) -> Result<Vec<Place>> {
        let deadline = Instant::now().checked_add(self.terms.patience);
        let mut state = self.shared.state();
        loop {
            if state.pages.outcome(&pinned.pages)? {
                return Ok(state.pages.places(&pinned.pages));
            }
            if state.is_over {
                return Err(ended());
            }
            if !is_wanted() {
                return Err(Error::unwanted());
            }
            let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            if left == Some(Duration::ZERO) {
                let error = silent();
                state.pages.give_up(&pinned.pages, Some(&error));
                self.shared.settle(state);
                return Err(error);
            }
            let step = left.unwrap_or(LOOK).min(LOOK);
            let waited = self.shared.answered.wait_timeout(state, step);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Sends the request that `of` makes of its number, and waits for the reply.
    fn call(&self, of: impl FnOnce(u64) -> Request) -> Result<Reply> {
        self.call_within(self.terms.patience, of)
    }

    fn call_within(&self, patience: Duration, of: impl FnOnce(u64) -> Request) -> Result<Reply> {
        let deadline = Instant::now().checked_add(patience);
        let mut state = self.shared.state();
        let id = state.next_id();
        state.calls.insert(id, Call::Waits(None));
        let is_sent = state.send(&of(id));
        self.shared.sending.notify_one();
        if !is_sent {
            state.calls.remove(&id);
            return Err(Error::limit("request to the fetcher", to_u64(PACKET)));
        }
        loop {
            if let Some(Call::Waits(Some(reply))) = state.calls.get(&id)
                && !matches!(reply, Reply::Listed { is_last: false, .. })
                && let Some(Call::Waits(Some(reply))) = state.calls.remove(&id)
            {
                return match reply {
                    Reply::Failed { failure, text, .. } => Err(failed(failure, &text)),
                    reply => Ok(reply),
                };
            }
            let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            if state.is_over || left == Some(Duration::ZERO) {
                state.calls.remove(&id);
                let error = if state.is_over { ended() } else { silent() };
                state.send(&Request::Cancel { id });
                self.shared.settle(state);
                return Err(error);
            }
            let waited = self
                .shared
                .answered
                .wait_timeout(state, left.unwrap_or(LOOK));
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

#[cfg(test)]
impl Connection {
    /// Bytes of the pages that are staged or asked for.
    pub(super) fn taken(&self) -> u64 {
        self.shared.state().pages.taken().times(PAGE)
    }

    /// Runs of which it is remembered that they failed.
    pub(super) fn failures(&self) -> usize {
        self.shared.state().pages.failures()
    }

    /// Runs that nobody waits for, and that wait to be asked for.
    pub(super) fn queued(&self) -> usize {
        self.shared.state().pages.expected()
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.shared.end();
        // The thread that takes replies ends with the socket.
        let _ = shutdown(&self.shared.socket, Shutdown::Both);
    }
}

impl Drop for Pinned<'_> {
    fn drop(&mut self) {
        let mut state = self.shared.state();
        state.pages.unpin(&self.pages);
        if state.pages.outcome(&self.pages) != Ok(true) {
            state.pages.give_up(&self.pages, None);
        }
        self.shared.settle(state);
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    /// Has said what there is to be said by now, and releases the state.
    fn settle(&self, mut state: MutexGuard<'_, State>) {
        state.ask();
        let is_idle = state.packets.is_empty();
        drop(state);
        if !is_idle {
            self.sending.notify_one();
        }
    }

    fn reserve(&self, bytes: u64) -> Result<u64> {
        let mut state = self.state();
        let region = state.free;
        let end = region
            .checked_add(bytes)
            .filter(|end| i64::try_from(*end).is_ok());
        state.free = end.ok_or_else(|| Error::limit("objects that are opened", region))?;
        Ok(region)
    }

    /// Keeps the pages of these bytes for a reader, and has those asked for that are missing.
    fn pin(
        &self,
        object: &Arc<Staging>,
        at: u64,
        bytes: u64,
        around: &Range<u64>,
    ) -> Result<Pinned<'_>> {
        let pages = object.pages_of(at, bytes);
        let mut state = self.state();
        state.pages.pin(&pages);
        let pinned = Pinned {
            shared: self,
            pages: pages.clone(),
        };
        if state.pages.outcome(&pages) != Ok(false) {
            return Ok(pinned);
        }
        if let Some(why) = object.over() {
            drop(state);
            return Err(why.clone());
        }
        if length(around) <= limits::PAGED_BLOCK.times(2) {
            let around = object.pages_of(around.start, length(around));
            state.pages.want_around(object, &pages, &around);
        } else {
            let pages = std::slice::from_ref(&pages);
            state.pages.want(object, pages, Urgency::Needed);
        }
        self.settle(state);
        Ok(pinned)
    }

    /// Has these pages, which are wrong in the cache on disk, forgotten there.
    fn lose(&self, object: &Staging, pages: &[u64]) {
        let mut state = self.state();
        for number in pages {
            if state.pages.lose(*number) {
                let bytes = object.bytes_of(&(*number..number.one_more()));
                state.send(&Request::Forget {
                    object: object.number,
                    offset: bytes.start,
                });
            }
        }
        self.settle(state);
    }

    /// Nothing is said any more, and nobody waits.
    fn end(&self) {
        let mut state = self.state();
        state.is_over = true;
        state.pages.break_off(&ended());
        state.packets.clear();
        drop(state);
        self.sending.notify_all();
        self.answered.notify_all();
    }
}

impl State {
    fn next_id(&mut self) -> u64 {
        self.last_id = self.last_id.wrapping_add(1);
        self.last_id
    }

    /// Takes back what a region has over the bytes that are `used`, if it is the last.
    fn give_back(&mut self, region: Range<u64>, used: u64) {
        if self.free == region.end && used < length(&region) {
            self.free = Extent::from(region).first(used).end();
        }
    }

    /// Has the pages that are wanted asked for, as many at a time as may be.
    fn ask(&mut self) {
        if !self.is_over {
            let last_id = &mut self.last_id;
            self.pages.ask(&mut || {
                *last_id = last_id.wrapping_add(1);
                *last_id
            });
        }
        self.queue_requests();
    }

    fn queue_requests(&mut self) {
        let requests: Vec<Request> = self.pages.requests().collect();
        for request in requests {
            self.send(&request);
        }
    }

    /// Notes whether a reply tells that the server answers, or that it does not.
    fn note(&mut self, reply: &Reply) {
        match reply {
            Reply::Failed { failure, .. } => match failure {
                Failure::TimedOut => {
                    self.unanswered.get_or_insert_with(SystemTime::now);
                }
                Failure::NotFound | Failure::Denied | Failure::Changed | Failure::NoRanges => {
                    self.unanswered = None;
                }
                Failure::NoRoom | Failure::Other => {}
            },
            Reply::Opened { .. } | Reply::Staged { .. } | Reply::Listed { .. } => {
                self.unanswered = None;
            }
            // Of these, the fetcher knows without the server.
            Reply::Kept { .. } | Reply::Counted { .. } | Reply::Warned { .. } => {}
        }
    }

    /// Queues a packet; false where it is too long for one.
    fn send(&mut self, request: &Request) -> bool {
        let packet = request.encode();
        let fits = packet.len() <= PACKET;
        if fits && !self.is_over {
            self.packets.push_back(packet);
        }
        fits
    }
}

fn spawn(name: &str, run: impl FnOnce() + Send + 'static) -> Result<()> {
    let thread = thread::Builder::new().name(name.to_owned()).spawn(run);
    let failed = |error| Error::io(&error, "a thread to speak with the fetcher");
    thread.map(drop).map_err(failed)
}
