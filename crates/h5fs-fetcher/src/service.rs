//! Receives requests of the parsing process, answers them in several threads, and sends the
//! replies.

mod queue;
pub(super) mod stage;
mod uncached;

use std::collections::HashMap;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use h5fs_reader::error::io_error_message;
use h5fs_reader::memory::lock::lock;
use h5fs_reader::source::local::rights;
use h5fs_reader::source::remote::message::{ListedType, OPEN_STAGED_BYTES, PACKET, Reply, Request};
use h5fs_reader::source::remote::segment::{PAGE, Segment};
use h5fs_reader::source::remote::state::ObjectState;
use h5fs_reader::wire::{to_u64, to_usize};
use sha2::{Digest, Sha256};

use crate::address::SourceAddress;
use crate::cached::{CachedObject, NextLocation};
use crate::disk_cache::DiskCache;
use crate::exchange::{ConnectionCounters, RequestSender};
use crate::fetch_error::FetchError;
use crate::limits;
use crate::names;
use crate::names::page::NamesPage;
use crate::names::web::{NamesRequest, ServerProtocol};
use crate::page_budget::{PageReservation, PageSlots};
use crate::retries::RetryBudget;
use crate::service::queue::{FetchJob, JobQueue};
use crate::service::stage::Stage;
use crate::service::uncached::GivenWarnings;
use crate::settings::RemoteSettings;
use crate::transfer::{Transfer, TransferStop};

/// Number of bytes of a requested range after which the parsing process receives another report of
/// how many have arrived.
const REPORT_INTERVAL_BYTES: u64 = 256 << 10;

/// The state that the threads of the fetcher share.
pub(super) struct Service {
    socket: OwnedFd,
    stage: Stage,
    exchange: RequestSender,
    cache: Option<DiskCache>,
    given_warnings: GivenWarnings,
    server_protocol: ServerProtocol,
    listings: PageSlots,
    deadline: Duration,
    connections: usize,
    queue: JobQueue,
    objects: Mutex<HashMap<u32, Arc<OpenObject>>>,
    last_object: AtomicU32,
    /// Whether a warning that the server changes entity tags of unchanged objects has been logged.
    is_retagged: AtomicBool,
}

/// An object that the parsing process has opened.
struct OpenObject {
    name: Vec<u8>,
    /// The object's location, which is its key in the disk cache.
    location: String,
    stage_offset: u64,
    state: ObjectState,
}

impl Service {
    pub(super) fn new(
        socket: OwnedFd,
        stage: Stage,
        exchange: RequestSender,
        cache: Option<DiskCache>,
        settings: &RemoteSettings,
    ) -> Self {
        Service {
            socket,
            stage,
            exchange,
            cache,
            given_warnings: GivenWarnings::default(),
            server_protocol: ServerProtocol::default(),
            listings: PageSlots::default(),
            deadline: settings.deadline(),
            connections: settings.connections(),
            queue: JobQueue::default(),
            objects: Mutex::default(),
            last_object: AtomicU32::new(0),
            is_retagged: AtomicBool::new(false),
        }
    }

    /// Receives requests and has them answered until the socket is closed or an invalid packet
    /// arrives.
    pub(super) fn run(self) {
        let service = Arc::new(self);
        while let Some(request) = receive(&service.socket) {
            match request {
                Request::Cancel { id } => service.queue.cancel(id),
                Request::FreeStage {
                    stage_offset: place,
                    length,
                } => service.stage.drop_bytes(place, length),
                Request::Close { object } => {
                    lock(&service.objects).remove(&object);
                }
                Request::DiscardCorruptPage { object, offset } => {
                    service.remove_corrupt_page(object, offset);
                }
                Request::GetCounters { id } => service.reply(&Reply::Counted {
                    id,
                    counters: service.exchange.counters.counters(),
                }),
                Request::Open { id, .. }
                | Request::Fetch { id, .. }
                | Request::Check { id, .. }
                | Request::List { id, .. } => service.enqueue(id, request),
            }
        }
        // The threads of the connections end with the process.
    }

    /// Puts a request into the queue. Starts another thread if all threads are busy.
    fn enqueue(self: &Arc<Self>, id: u64, request: Request) {
        match self.queue.push(id, request, self.connections) {
            Ok(false) => {}
            Ok(true) => {
                let service = Arc::clone(self);
                let thread = thread::Builder::new()
                    .name("connection".to_owned())
                    .stack_size(limits::CONNECTION_STACK)
                    .spawn(move || service.run_thread());
                if let Err(error) = thread {
                    log::warn!(
                        "no thread for another connection: {}",
                        io_error_message(&error)
                    );
                }
            }
            Err(_) => self.send_failure(id, &FetchError::permanent("too many concurrent requests")),
        }
    }

    fn run_thread(&self) {
        loop {
            let job = self.queue.next();
            let reply = self.perform(&job);
            self.warn_cache_full();
            self.queue.finish(job.id);
            match reply {
                Ok(reply) => self.reply(&reply),
                Err(TransferStop::Failed(trouble)) => self.send_failure(job.id, &trouble),
                Err(TransferStop::Cancelled) => {}
            }
        }
    }

    fn perform(&self, job: &FetchJob) -> Result<Reply, TransferStop> {
        match &job.request {
            Request::Open { name, region, .. } => self.open(job, name, *region),
            Request::Fetch {
                object,
                offset,
                length,
                ..
            } => self.fetch(job, *object, *offset, *length),
            Request::Check { object, .. } => self.check_state(job, *object),
            Request::List { prefix, after, .. } => self.list(job, prefix, after),
            Request::GetCounters { .. }
            | Request::Cancel { .. }
            | Request::FreeStage { .. }
            | Request::Close { .. }
            | Request::DiscardCorruptPage { .. } => {
                Err(FetchError::permanent("no work for a connection").into())
            }
        }
    }

    fn open(&self, job: &FetchJob, name: &[u8], region: u64) -> Result<Reply, TransferStop> {
        let (place, shown) = self.exchange.location(name)?;
        let (state, staged) = match self.open_cached(job, name, &place, region)? {
            Some(known) => known,
            None => self.open_fetched(job, name, (&place, &shown), region)?,
        };
        let number = self.last_object.fetch_add(1, Ordering::Relaxed);
        let opened = OpenObject {
            name: name.to_vec(),
            location: place,
            stage_offset: region,
            state: state.clone(),
        };
        let mut objects = lock(&self.objects);
        if objects.len() >= limits::FETCHED_OBJECTS {
            return Err(FetchError::permanent("too many objects are open").into());
        }
        objects.insert(number, Arc::new(opened));
        Ok(Reply::Opened {
            id: job.id,
            object: number,
            state,
            staged,
        })
    }

    /// Opens an object from the disk cache. Returns the object's state, and the number of its first
    /// bytes that were written to the stage, at the offset `region`. Returns `None` if the cache
    /// contains no state of the object, or if the object has another state on the server.
    fn open_cached(
        &self,
        job: &FetchJob,
        name: &[u8],
        place: &str,
        region: u64,
    ) -> Result<Option<(ObjectState, u64)>, TransferStop> {
        let known = self.cache.as_ref().and_then(|cache| cache.state(place));
        let Some(known) = known else {
            return Ok(None);
        };
        let now = self.object_state(job, name)?;
        if !known.is_same(&now) {
            return Ok(None);
        }
        let mut stage = |at: u64, bytes: &[u8]| self.stage.write(region, at, bytes);
        let first = 0..OPEN_STAGED_BYTES.min(known.length);
        let staged = self.cached(place, &known).read(&first, &mut stage)?;
        ConnectionCounters::add(&self.exchange.counters.disk_bytes, staged);
        Ok(Some((known, staged)))
    }

    fn open_fetched(
        &self,
        job: &FetchJob,
        name: &[u8],
        (place, shown): (&str, &str),
        region: u64,
    ) -> Result<(ObjectState, u64), TransferStop> {
        let mut first = Vec::new();
        let mut sink = |at: u64, bytes: &[u8]| {
            first.extend_from_slice(bytes);
            self.stage.write(region, at, bytes)
        };
        let mut state = self.with_transfer(job, name, |transfer| {
            transfer.open(OPEN_STAGED_BYTES, &mut sink)
        })?;
        if !state.has_validator() {
            let shown = self.exchange.address.url();
            self.warn(format!(
                "{shown}: the server sends neither an entity tag nor a date: only the length and \
                 the first and last 64 KiB show a change"
            ));
            self.set_sampled_tag(job, name, &mut state, &first)?;
        }
        self.warn_uncached(shown, &state);
        self.cached(place, &state)
            .store_opened((place, shown), &state, &first);
        Ok((state, to_u64(first.len())))
    }

    /// Sets an entity tag for an object whose server sends none: a hash of the first and the last
    /// page. The bytes `come` have already arrived from the server and are not requested again,
    /// because the object may have changed since.
    fn set_sampled_tag(
        &self,
        job: &FetchJob,
        name: &[u8],
        state: &mut ObjectState,
        come: &[u8],
    ) -> Result<(), TransferStop> {
        let end = state.length;
        let first = PAGE.min(end);
        let last = end.saturating_sub(PAGE).max(first);
        let mut hash = Sha256::new();
        for range in [0..first, last..end] {
            if let (Ok(start), Ok(end)) = (to_usize(range.start), to_usize(range.end))
                && let Some(bytes) = come.get(start..end)
            {
                hash.update(bytes);
                continue;
            }
            let mut sink = |_: u64, bytes: &[u8]| {
                hash.update(bytes);
                Ok(())
            };
            self.with_transfer(job, name, |transfer| {
                transfer.fetch(range, state, &mut sink)
            })?;
        }
        state.set_sample(&hash.finalize());
        Ok(())
    }

    /// Logs a warning, and sends it to the user who mounts.
    pub(super) fn warn(&self, text: String) {
        log::warn!("{text}");
        self.reply(&Reply::Warning { id: 0, text });
    }

    fn warn_uncached(&self, shown: &str, state: &ObjectState) {
        let has_weak_tags = self.exchange.has_weak_tags;
        let told = self.cache.as_ref().and_then(|_| {
            self.given_warnings
                .object_warning(shown, state, has_weak_tags)
        });
        told.into_iter().for_each(|text| self.warn(text));
    }

    /// Sends the warning that the cache is full to the user who mounts, at most once. The cache
    /// itself has already logged the reason.
    fn warn_cache_full(&self) {
        let cache = self.cache.as_ref();
        if let Some(text) = cache.and_then(|cache| self.given_warnings.cache_warning(cache)) {
            self.reply(&Reply::Warning { id: 0, text });
        }
    }

    fn cached(&self, place: &str, state: &ObjectState) -> CachedObject<'_> {
        CachedObject::new(self.cache.as_ref(), place, state)
    }

    fn fetch(
        &self,
        job: &FetchJob,
        object: u32,
        offset: u64,
        length: u64,
    ) -> Result<Reply, TransferStop> {
        let object = self.object(object)?;
        let end = offset
            .checked_add(length)
            .filter(|end| *end <= object.state.length);
        let end = end.ok_or_else(|| FetchError::permanent("a range beyond the object's end"))?;
        let mut cached = self.cached(&object.location, &object.state);
        let mut stage = |at: u64, bytes: &[u8]| self.stage.write(object.stage_offset, at, bytes);
        let (mut at, mut told) = (offset, offset);
        let mut hands_over = true;
        while at < end {
            match cached.next_location(&(at..end), hands_over, &mut stage)? {
                NextLocation::Segment(segment, come) => {
                    hands_over = self.send_segment(job.id, &segment, at - offset, come - offset);
                    if hands_over {
                        (at, told) = (come, come);
                    }
                }
                NextLocation::Server(missing) => {
                    ConnectionCounters::add(&self.exchange.counters.disk_bytes, missing.start - at);
                    at = missing.end;
                    let mut sink = |at: u64, bytes: &[u8]| {
                        stage(at, bytes)?;
                        cached.store(at, bytes);
                        let staged = at + to_u64(bytes.len());
                        if staged < end && staged - told >= REPORT_INTERVAL_BYTES {
                            told = staged;
                            self.report_staged(job.id, staged - offset);
                        }
                        Ok(())
                    };
                    if !missing.is_empty() {
                        self.with_transfer(job, &object.name, |transfer| {
                            transfer.fetch(missing, &object.state, &mut sink)
                        })?;
                    }
                }
            }
        }
        Ok(Reply::Staged { id: job.id, length })
    }

    /// Tells the parsing process how many bytes of its requested range are in the stage.
    fn report_staged(&self, id: u64, length: u64) {
        self.reply(&Reply::Staged { id, length });
    }

    /// Sends the file of the cache segment with the bytes `staged..length` of a requested range.
    /// The stage contains the preceding bytes. Returns whether the file was sent, which fails if
    /// too many descriptors are in transit.
    fn send_segment(&self, id: u64, segment: &Segment, staged: u64, length: u64) -> bool {
        if staged > 0 {
            self.report_staged(id, staged);
        }
        let key = *segment.key();
        let kept = Reply::InSegment { id, length, key };
        let is_sent = send(&self.socket, &kept, &[segment.file().as_fd()]).is_ok();
        if is_sent {
            ConnectionCounters::add(&self.exchange.counters.disk_bytes, length - staged);
        }
        is_sent
    }

    /// Removes a page of an object from the disk cache, because the parsing process has found it
    /// corrupt.
    fn remove_corrupt_page(&self, object: u32, offset: u64) {
        if let Ok(object) = self.object(object) {
            self.cached(&object.location, &object.state)
                .remove_page(offset);
        }
    }

    fn check_state(&self, job: &FetchJob, number: u32) -> Result<Reply, TransferStop> {
        let object = self.object(number)?;
        let mut state = self.object_state(job, &object.name)?;
        if object.state.is_sampled() && !state.has_validator() {
            self.set_sampled_tag(job, &object.name, &mut state, &[])?;
        }
        if state.differs_only_in_tag(&object.state) {
            return Err(FetchError::entity_tag_changed().into());
        }
        Ok(Reply::Opened {
            id: job.id,
            object: number,
            state,
            staged: 0,
        })
    }

    fn list(&self, job: &FetchJob, prefix: &[u8], after: &[u8]) -> Result<Reply, TransferStop> {
        let token = std::str::from_utf8(after);
        let token = token.map_err(|_| FetchError::permanent("a listing without a start"))?;
        // Released when the names have been sent.
        let room = self.listings.new_reservation();
        let mut page = self.request_names(job, prefix, token, &room)?;
        let listed = |is_last, entries, next| Reply::Listed {
            id: job.id,
            is_last,
            entries,
            next,
        };
        while let Some(entries) = page.take_packet() {
            self.reply(&listed(false, entries, Vec::new()));
        }
        Ok(listed(true, page.names, page.next.into_bytes()))
    }

    /// Requests a page of the names that start with `prefix` from the server. `token` selects the
    /// page.
    fn request_names(
        &self,
        job: &FetchJob,
        prefix: &[u8],
        token: &str,
        room: &PageReservation<'_>,
    ) -> Result<NamesPage, TransferStop> {
        if self.exchange.address.url().is_web_page() {
            let question = NamesRequest {
                server_protocol: &self.server_protocol,
                exchange: &self.exchange,
                prefix,
                reservation: room,
            };
            let page = question.fetch_names(self.retry_budget(job))?;
            return Ok(self.comparable_page(page));
        }
        let url = self.exchange.address.url();
        let directory = url.directory().as_bytes();
        let whole = [directory, prefix].concat();
        let wanted =
            |address: &SourceAddress, region: &str| address.listing_target(prefix, token, region);
        let mut transfer = Transfer::new(&self.exchange, &wanted, self.retry_budget(job));
        loop {
            let body = transfer.request_page(room);
            match body.and_then(|(body, _)| names::parse_store_page(url.scheme(), &body, &whole)) {
                Ok(page) => return Ok(self.comparable_page(page)),
                Err(trouble) => {
                    room.release();
                    transfer.wait_to_retry(TransferStop::Failed(trouble))?;
                }
            }
        }
    }

    /// Reduces the states of the objects in a page to the fields that are compared with later
    /// states.
    fn comparable_page(&self, mut page: NamesPage) -> NamesPage {
        for listed in &mut page.names {
            if let ListedType::Object(state) = &mut listed.entry_type {
                *state = self.exchange.comparable_state(std::mem::take(state));
            }
        }
        page
    }

    fn retry_budget<'a>(&self, job: &'a FetchJob) -> RetryBudget<'a> {
        RetryBudget::new(self.deadline, &job.is_cancelled).with_prefetch(job.is_prefetch())
    }

    /// Requests the current state of the object `name`.
    fn object_state(&self, job: &FetchJob, name: &[u8]) -> Result<ObjectState, TransferStop> {
        // A closure, because the method itself is not general enough over its lifetime.
        self.with_transfer(job, name, |transfer| {
            let state = transfer.object_state()?;
            Ok(state)
        })
    }

    /// Calls `act` with a transfer of the object `name`.
    fn with_transfer<T>(
        &self,
        job: &FetchJob,
        name: &[u8],
        act: impl FnOnce(&mut Transfer<'_>) -> Result<T, TransferStop>,
    ) -> Result<T, TransferStop> {
        let wanted = |address: &SourceAddress, region: &str| address.object_target(name, region);
        act(&mut Transfer::new(
            &self.exchange,
            &wanted,
            self.retry_budget(job),
        ))
    }

    fn object(&self, number: u32) -> Result<Arc<OpenObject>, FetchError> {
        let object = lock(&self.objects).get(&number).cloned();
        object.ok_or_else(|| FetchError::permanent("the object is not open"))
    }

    fn send_failure(&self, id: u64, trouble: &FetchError) {
        log::debug!("{}", trouble.text);
        if trouble.is_entity_tag_change() && !self.is_retagged.swap(true, Ordering::Relaxed) {
            let shown = self.exchange.address.url();
            log::warn!("{shown}: {}", trouble.text);
        }
        self.reply(&failure_reply(id, trouble));
    }

    fn reply(&self, reply: &Reply) {
        let _gone = send(&self.socket, reply, &[]);
    }
}

/// Runs a fetcher that cannot work: answers every request with `reason` until the socket is closed.
pub(super) fn refuse_all(socket: &OwnedFd, reason: &str) {
    let trouble = FetchError::permanent(reason);
    while let Some(request) = receive(socket) {
        match request {
            Request::Open { id, .. }
            | Request::Fetch { id, .. }
            | Request::Check { id, .. }
            | Request::List { id, .. }
            | Request::GetCounters { id } => {
                let _gone = send(socket, &failure_reply(id, &trouble), &[]);
            }
            Request::Cancel { .. }
            | Request::FreeStage { .. }
            | Request::Close { .. }
            | Request::DiscardCorruptPage { .. } => {}
        }
    }
}

fn failure_reply(id: u64, trouble: &FetchError) -> Reply {
    Reply::Failed {
        id,
        failure: trouble.failure,
        text: trouble.text.clone(),
    }
}

/// Receives the next request from the socket. Returns `None` if the socket was closed, or if the
/// packet is invalid.
fn receive(socket: &OwnedFd) -> Option<Request> {
    let mut packet = vec![0; PACKET];
    loop {
        match rustix::io::read(socket, &mut packet) {
            Ok(0) => return None,
            Ok(length) => return Request::decode(&packet[..length]).ok(),
            Err(rustix::io::Errno::INTR) => {}
            Err(_) => return None,
        }
    }
}

/// Sends a reply to the parsing process, together with open files.
fn send(socket: &OwnedFd, reply: &Reply, files: &[BorrowedFd<'_>]) -> io::Result<()> {
    rights::send_with_files(socket.as_fd(), &reply.encode(), files)
}
