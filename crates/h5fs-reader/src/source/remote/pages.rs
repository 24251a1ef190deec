//! The pages of the stage, with their state: requested, staged or being read.
//!
//! A page is [`PAGE`] bytes of the stage, identified by its number there. Its bytes may be in a
//! segment instead.
//!
//! Wanted pages are requested in *runs*. Runs that a request waits for come before expected ones,
//! and the number of concurrent runs is bounded in [`limits`]. When too many pages are staged, the
//! least recently read ones are dropped, but never a page that is being read.

use std::collections::{HashMap, VecDeque};
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use lru::LruCache;

use crate::error::{Cause, Error, Result};
use crate::limits;
use crate::source::Urgency;
use crate::source::remote::message::Request;
use crate::source::remote::page_location::PageLocation;
use crate::source::remote::segment::{PAGE, Segment};
use crate::source::remote::staging::{StagedObject, length};
use crate::wire::{Count, Extent, to_u64};

/// Maximum number of pages of one run (contiguous pages that are requested together), unless a
/// single structure is longer.
const MAX_RUN_PAGES: u64 = (4 << 20) / PAGE;

/// Largest gap, in pages, between wanted pages of one run that a reader waits for. The pages of the
/// gap are fetched too, because another run costs more.
const MAX_NEEDED_GAP: u64 = 1;

/// Largest gap, in pages, between wanted pages of one run that no reader waits for. A gap of
/// several pages is also at most half as long as the run before it. A crawl wants scattered pages
/// of each object, and a request costs more than these extra pages.
const MAX_EXPECTED_GAP: u64 = 4;

/// Time after which a prefetched page that was not read may be dropped in favour of other
/// prefetched pages.
const UNREAD_PAGE_LIFETIME: Duration = Duration::from_secs(10);

/// How long failed pages are not requested again. A kernel that reads ahead retries a failed read,
/// and the reader would wait twice.
pub(super) const FAILURE_VALIDITY: Duration = Duration::from_millis(100);

/// The table of the pages of the stage that are requested, staged or pinned.
#[derive(Debug)]
pub(super) struct PageTable {
    table: HashMap<u64, PageEntry>,
    /// Staged pages that were read and are not pinned. The least recently read page is dropped
    /// first.
    read: LruCache<u64, ()>,
    /// Staged pages that no reader has read so far, with the time when they arrived.
    unread: LruCache<u64, Instant>,
    /// Number of pages that are staged or requested. Its maximum is `max_pages`.
    used_pages: u64,
    max_pages: u64,
    /// The runs in progress, by request number.
    runs_in_progress: HashMap<u64, PageRun>,
    needed: VecDeque<PageRun>,
    expected: VecDeque<PageRun>,
    /// Recently failed pages.
    failures: VecDeque<RunFailure>,
    /// Messages for the fetcher, in order.
    requests: Vec<Request>,
}

#[derive(Debug)]
struct PageEntry {
    state: PageState,
    /// Number of readers that have pinned the page, because they wait for it or read it.
    pins: usize,
}

#[derive(Debug)]
enum PageState {
    /// The page was not requested.
    Missing,
    /// The page is in a queued run.
    Queued(Urgency),
    /// The page is in a run in progress.
    Requested,
    /// The bytes have arrived.
    Staged(PageLocation),
    /// The request failed; readers get the error.
    Failed(Error),
}

/// Contiguous pages of one object, requested together.
#[derive(Debug)]
struct PageRun {
    object: Arc<StagedObject>,
    pages: Range<u64>,
    /// First page that is not staged yet.
    next: u64,
    urgency: Urgency,
}

/// The failure of a range of pages.
#[derive(Debug)]
struct RunFailure {
    since: Instant,
    pages: Range<u64>,
    error: Error,
}

impl PageTable {
    /// Creates an empty table that keeps at most `bytes` bytes of pages.
    pub(super) fn new(bytes: u64) -> Self {
        PageTable {
            table: HashMap::new(),
            read: LruCache::unbounded(),
            unread: LruCache::unbounded(),
            used_pages: 0,
            max_pages: bytes.div_ceil(PAGE),
            runs_in_progress: HashMap::new(),
            needed: VecDeque::new(),
            expected: VecDeque::new(),
            failures: VecDeque::new(),
            requests: Vec::new(),
        }
    }

    /// Removes and returns the messages for the fetcher.
    pub(super) fn take_requests(&mut self) -> impl Iterator<Item = Request> {
        self.requests.drain(..)
    }

    /// Returns the number of pages that are staged or requested.
    #[cfg(test)]
    pub(super) fn staged_or_requested(&self) -> u64 {
        self.used_pages
    }

    /// Returns the number of remembered failed runs.
    #[cfg(test)]
    pub(super) fn failures(&self) -> usize {
        self.failures.len()
    }

    /// Returns the number of queued runs that no reader waits for.
    #[cfg(test)]
    pub(super) fn expected_count(&self) -> usize {
        self.expected.len()
    }

    /// Pins these pages until [`unpin`](Self::unpin): once staged, they are not dropped.
    pub(super) fn pin(&mut self, pages: &Range<u64>) {
        for number in pages.clone() {
            let failed = self.failure_of(number).cloned();
            let page = self.table.entry(number).or_insert(PageEntry {
                state: PageState::Missing,
                pins: 0,
            });
            if let (PageState::Missing, Some(error)) = (&page.state, failed) {
                page.state = PageState::Failed(error);
            }
            page.pins = page.pins.plus_one();
            if page.pins == 1 && matches!(page.state, PageState::Staged(_)) {
                self.read.pop(&number);
                self.unread.pop(&number);
            }
        }
    }

    /// Removes one reader's pin of these pages.
    pub(super) fn unpin(&mut self, pages: &Range<u64>) {
        for number in pages.clone() {
            let Some(page) = self.table.get_mut(&number) else {
                continue;
            };
            page.pins = page.pins.minus_or_zero(1);
            if page.pins > 0 {
                continue;
            }
            match page.state {
                PageState::Staged(_) => {
                    self.read.put(number, ());
                }
                PageState::Missing | PageState::Failed(_) => {
                    self.table.remove(&number);
                }
                PageState::Queued(_) | PageState::Requested => {}
            }
        }
        self.make_room(0);
    }

    /// Returns whether all of these pages are staged, or the error of a page that failed.
    pub(super) fn check_staged(&self, pages: &Range<u64>) -> Result<bool> {
        let mut is_staged = true;
        for number in pages.clone() {
            match self.table.get(&number).map(|page| &page.state) {
                Some(PageState::Staged(_)) => {}
                Some(PageState::Failed(error)) => return Err(error.clone()),
                _ => is_staged = false,
            }
        }
        Ok(is_staged)
    }

    /// Returns where the bytes of these pages are stored, up to the first page that is not staged.
    pub(super) fn locations(&self, pages: &Range<u64>) -> Vec<PageLocation> {
        let staged = pages.clone().map_while(|number| {
            let page = self.table.get(&number)?;
            match &page.state {
                PageState::Staged(place) => Some(place.clone()),
                _ => None,
            }
        });
        staged.collect()
    }

    /// Discards a pinned page whose bytes failed verification in its segment, so that it is fetched
    /// again. Returns whether the page was still staged.
    pub(super) fn discard_corrupt(&mut self, number: u64) -> bool {
        match self.table.get_mut(&number) {
            Some(page) if matches!(page.state, PageState::Staged(PageLocation::Segment(_))) => {
                page.state = PageState::Missing;
                self.used_pages = self.used_pages.minus_or_zero(1);
                true
            }
            _ => false,
        }
    }

    /// Drops the unpinned pages in a segment.
    pub(super) fn drop_segment_pages(&mut self, segment: &Arc<Segment>) {
        let pages = self.table.iter().filter(|(_, page)| match &page.state {
            PageState::Staged(PageLocation::Segment(own)) => {
                page.pins == 0 && Arc::ptr_eq(own, segment)
            }
            _ => false,
        });
        let numbers: Vec<u64> = pages.map(|(number, _)| *number).collect();
        for number in numbers {
            self.read.pop(&number);
            self.unread.pop(&number);
            self.drop_page(number);
        }
    }

    /// Requests pages like [`request`](Self::request), but at most as many as the table may keep.
    pub(super) fn request_ahead(
        &mut self,
        object: &Arc<StagedObject>,
        ranges: &[Range<u64>],
        urgency: Urgency,
    ) {
        let mut left = self.max_pages;
        let within = ranges.iter().map_while(|range| {
            let pages = length(range).min(left);
            left = left.minus_or_zero(pages);
            (pages > 0).then(|| Extent::from(range.clone()).first(pages).range())
        });
        let within: Vec<_> = within.collect();
        self.request(object, &within, urgency);
    }

    /// Requests the pages of `ranges`, which are sorted, unless they are staged or already
    /// requested.
    pub(super) fn request(
        &mut self,
        object: &Arc<StagedObject>,
        ranges: &[Range<u64>],
        urgency: Urgency,
    ) {
        let wanted = ranges.iter().flat_map(Range::clone);
        let mut run: Option<Range<u64>> = None;
        for number in wanted {
            if !self.is_lacking(number, urgency) {
                continue;
            }
            match &mut run {
                Some(run) if self.can_join(run, number, urgency) => {
                    self.drop_staged(run.end..number);
                    run.end = number.plus_one();
                }
                _ => {
                    let done = run.replace(number..number.plus_one());
                    self.queue(object, done, urgency);
                }
            }
        }
        self.queue(object, run, urgency);
    }

    /// Requests pages like [`request`](Self::request), for a structure that a request waits for.
    /// Also fetches absent pages around the structure, within `block`.
    pub(super) fn request_around(
        &mut self,
        object: &Arc<StagedObject>,
        pages: &Range<u64>,
        block: &Range<u64>,
    ) {
        let is_lacking = |number: &u64| self.is_lacking(*number, Urgency::Needed);
        let mut lacking = pages.clone().filter(is_lacking);
        let Some(first) = lacking.next() else {
            return;
        };
        let last = lacking.next_back().unwrap_or(first);
        let is_absent = |number: &u64| self.is_lacking(*number, Urgency::Needed);
        let before = (block.start..first).rev().take_while(is_absent).last();
        let behind = (last.plus_one()..block.end).take_while(is_absent).last();
        let run = before.unwrap_or(first)..behind.unwrap_or(last).plus_one();
        self.queue(object, Some(run), Urgency::Needed);
    }

    /// Returns whether a page must be requested, or requested with higher urgency.
    fn is_lacking(&self, number: u64, urgency: Urgency) -> bool {
        match self.table.get(&number).map(|page| &page.state) {
            None | Some(PageState::Missing) => self.failure_of(number).is_none(),
            Some(PageState::Queued(queued)) => *queued < urgency,
            Some(PageState::Requested | PageState::Staged(_) | PageState::Failed(_)) => false,
        }
    }

    /// Returns the error of a page that failed recently.
    fn failure_of(&self, number: u64) -> Option<&Error> {
        let mut failures = self.failures.iter();
        let failure = failures.find(|failure| {
            failure.pages.contains(&number) && failure.since.elapsed() < FAILURE_VALIDITY
        })?;
        Some(&failure.error)
    }

    /// Records failed pages, so that a retry of the read does not wait for the same failure again.
    /// Ignores errors whose cause is not `Cause::Unavailable`.
    fn remember_failure(&mut self, pages: Range<u64>, error: &Error) {
        let Error::Io {
            cause: Cause::Unavailable,
            ..
        } = error
        else {
            return;
        };
        if self.failures.len() >= limits::FAILED_RUNS {
            self.failures.pop_front();
        }
        self.failures.push_back(RunFailure {
            since: Instant::now(),
            pages,
            error: error.clone(),
        });
    }

    fn can_join(&self, run: &Range<u64>, number: u64, urgency: Urgency) -> bool {
        let wide = match urgency {
            Urgency::Needed => MAX_NEEDED_GAP,
            Urgency::Expected => (length(run) / 2).clamp(MAX_NEEDED_GAP, MAX_EXPECTED_GAP),
        };
        number.minus_or_zero(run.end) <= wide
            && number.minus_or_zero(run.start) < MAX_RUN_PAGES.min(self.max_pages.wrapping_shr(2))
            && (run.end..number)
                .all(|between| self.is_lacking(between, urgency) || self.is_idle(between))
    }

    /// Returns whether a page is staged and not pinned.
    fn is_idle(&self, number: u64) -> bool {
        let page = self.table.get(&number);
        page.is_some_and(|page| page.pins == 0 && matches!(page.state, PageState::Staged(_)))
    }

    /// Drops the staged and unpinned pages among `pages`, because the request of a run that
    /// contains them fetches them again.
    fn drop_staged(&mut self, pages: Range<u64>) {
        for number in pages {
            if self.is_idle(number) {
                self.read.pop(&number);
                self.unread.pop(&number);
                self.drop_page(number);
            }
        }
    }

    fn queue(&mut self, object: &Arc<StagedObject>, pages: Option<Range<u64>>, urgency: Urgency) {
        let Some(pages) = pages else { return };
        for number in pages.clone() {
            let page = self.table.entry(number).or_insert(PageEntry {
                state: PageState::Missing,
                pins: 0,
            });
            if !matches!(
                page.state,
                PageState::Requested | PageState::Staged(_) | PageState::Failed(_)
            ) {
                page.state = PageState::Queued(urgency);
            }
        }
        let run = PageRun {
            object: Arc::clone(object),
            next: pages.start,
            pages,
            urgency,
        };
        match urgency {
            Urgency::Needed => self.needed.push_back(run),
            Urgency::Expected => self.queue_expected(run),
        }
    }

    /// Queues a run that no reader waits for. If the queue is full, its oldest run is removed.
    fn queue_expected(&mut self, run: PageRun) {
        if self.expected.len() >= limits::EXPECTED_RUNS
            && let Some(oldest) = self.expected.pop_front()
        {
            self.unqueue(&oldest);
        }
        self.expected.push_back(run);
    }

    /// Resets the state of the pages of a run that was removed from the queue.
    fn unqueue(&mut self, run: &PageRun) {
        for number in run.pages.clone() {
            let Some(page) = self.table.get_mut(&number) else {
                continue;
            };
            match (&page.state, page.pins) {
                (PageState::Queued(urgency), 0) if *urgency == run.urgency => {
                    self.table.remove(&number);
                }
                (PageState::Queued(urgency), _) if *urgency == run.urgency => {
                    page.state = PageState::Missing;
                }
                _ => {}
            }
        }
    }

    /// Requests queued runs, up to the limit of concurrent runs. `number` returns a new request
    /// number.
    pub(super) fn request_queued(&mut self, number: &mut dyn FnMut() -> u64) {
        while let Some(run) = self.next_run() {
            for pages in self.queued_parts(&run) {
                self.make_room(length(&pages));
                self.start_run(&run, pages, number());
            }
        }
    }

    fn next_run(&mut self) -> Option<PageRun> {
        let under_way = self.runs_in_progress.len();
        if under_way < limits::NEEDED_RUNS_ASKED
            && let Some(run) = self.needed.pop_front()
        {
            return Some(run);
        }
        if under_way >= limits::EXPECTED_RUNS_ASKED {
            return None;
        }
        let pages = length(&self.expected.front()?.pages);
        self.can_request_expected(pages)
            .then(|| self.expected.pop_front())?
    }

    /// Returns whether `pages` more expected pages may be requested. Expected pages may fill at
    /// most three quarters of the table, and may evict only pages that were read or are stale.
    fn can_request_expected(&mut self, pages: u64) -> bool {
        let is_stale = |came: &Instant| came.elapsed() >= UNREAD_PAGE_LIFETIME;
        let fits = |own: &Self| {
            let unread = to_u64(own.unread.len()).plus(own.pages_in_progress());
            unread.plus(pages) <= own.max_pages.minus_or_zero(own.max_pages.wrapping_shr(2))
        };
        while !fits(self)
            && let Some((&oldest, came)) = self.unread.peek_lru()
            && is_stale(came)
        {
            self.unread.pop_lru();
            self.drop_page(oldest);
        }
        let free = self.max_pages.minus_or_zero(self.used_pages);
        fits(self) && pages <= free.plus(to_u64(self.read.len()))
    }

    fn pages_in_progress(&self) -> u64 {
        let runs = self.runs_in_progress.values();
        u64::sum(runs.map(|run| run.pages.end.minus_or_zero(run.next)))
    }

    /// Returns the parts of a run whose pages are still queued in this run. Other pages were
    /// requested earlier.
    fn queued_parts(&self, run: &PageRun) -> Vec<Range<u64>> {
        let mut parts: Vec<Range<u64>> = Vec::new();
        for number in run.pages.clone() {
            let state = self.table.get(&number).map(|page| &page.state);
            if !matches!(state, Some(PageState::Queued(urgency)) if *urgency == run.urgency) {
                continue;
            }
            match parts.last_mut() {
                Some(part) if part.end == number => part.end = number.plus_one(),
                _ => parts.push(number..number.plus_one()),
            }
        }
        parts
    }

    fn start_run(&mut self, run: &PageRun, pages: Range<u64>, id: u64) {
        for number in pages.clone() {
            if let Some(page) = self.table.get_mut(&number) {
                page.state = PageState::Requested;
            }
        }
        self.used_pages = self.used_pages.plus(length(&pages));
        let bytes = run.object.bytes_of(&pages);
        self.requests.push(Request::Fetch {
            id,
            object: run.object.number,
            offset: bytes.start,
            length: length(&bytes),
            is_needed: run.urgency == Urgency::Needed,
        });
        let run = PageRun {
            object: Arc::clone(&run.object),
            next: pages.start,
            pages,
            urgency: run.urgency,
        };
        self.runs_in_progress.insert(id, run);
    }

    /// Drops unpinned pages until `pages` more pages fit.
    fn make_room(&mut self, pages: u64) {
        while self.used_pages.plus(pages) > self.max_pages {
            let oldest = self.read.pop_lru().map(|(number, ())| number);
            let oldest = oldest.or_else(|| self.unread.pop_lru().map(|(number, _)| number));
            match oldest {
                Some(number) => self.drop_page(number),
                None => return,
            }
        }
    }

    /// Removes a staged page, and tells the fetcher to free its part of the stage.
    fn drop_page(&mut self, number: u64) {
        let page = self.table.remove(&number);
        self.used_pages = self.used_pages.minus_or_zero(1);
        if page
            .is_some_and(|page| matches!(page.state, PageState::Staged(PageLocation::Segment(_))))
        {
            return;
        }
        let place = number.times(PAGE);
        match self.requests.last_mut() {
            Some(Request::FreeStage {
                stage_offset: first,
                length,
            }) if first.checked_add(*length) == Some(place) => {
                *length = length.plus(PAGE);
            }
            _ => self.requests.push(Request::FreeStage {
                stage_offset: place,
                length: PAGE,
            }),
        }
    }

    /// Records that the first `bytes` bytes of a run have arrived. The new ones are stored at
    /// `place`. Returns the run's object, or `None` if no run in progress has the number `id`.
    ///
    /// # Errors
    /// `Corrupt` if more bytes arrived than were requested.
    pub(super) fn record_staged(
        &mut self,
        id: u64,
        bytes: u64,
        place: &PageLocation,
    ) -> Result<Option<Arc<StagedObject>>> {
        let Some(run) = self.runs_in_progress.get_mut(&id) else {
            return Ok(None);
        };
        let object = Arc::clone(&run.object);
        let all = length(&object.bytes_of(&run.pages));
        if bytes > all {
            return Err(Error::corrupt(
                "reply of the fetcher: too much is staged",
                None,
            ));
        }
        let end = if bytes == all {
            run.pages.end
        } else {
            Extent::from(run.pages.clone()).first(bytes / PAGE).end()
        };
        let come = run.next..end;
        run.next = end.max(run.next);
        if run.next == run.pages.end {
            self.runs_in_progress.remove(&id);
        }
        come.for_each(|number| self.stage(number, place.clone()));
        Ok(Some(object))
    }

    fn stage(&mut self, number: u64, place: PageLocation) {
        let Some(page) = self.table.get_mut(&number) else {
            return;
        };
        page.state = PageState::Staged(place);
        if page.pins == 0 {
            self.unread.put(number, Instant::now());
        }
    }

    /// Records pages that the fetcher staged without a `Fetch` request, when it opened an object.
    pub(super) fn record_staged_unrequested(&mut self, pages: Range<u64>) {
        self.make_room(length(&pages));
        for number in pages {
            let page = PageEntry {
                state: PageState::Missing,
                pins: 0,
            };
            self.table.entry(number).or_insert(page);
            self.used_pages = self.used_pages.plus_one();
            self.stage(number, PageLocation::Stage);
        }
        self.make_room(0);
    }

    /// Records that the request of a run failed. Returns the run's object, or `None` if no run in
    /// progress has the number `id`.
    pub(super) fn record_failed(&mut self, id: u64, error: &Error) -> Option<Arc<StagedObject>> {
        let run = self.runs_in_progress.remove(&id)?;
        self.remember_failure(run.next..run.pages.end, error);
        for number in run.next..run.pages.end {
            self.used_pages = self.used_pages.minus_or_zero(1);
            match self.table.get_mut(&number) {
                Some(page) if page.pins > 0 => page.state = PageState::Failed(error.clone()),
                _ => drop(self.table.remove(&number)),
            }
        }
        Some(run.object)
    }

    /// Cancels the runs in progress that contain these pages. With an error, runs that other
    /// readers wait for are cancelled as well, and pages that are not staged fail with the error.
    pub(super) fn cancel_runs(&mut self, pages: &Range<u64>, error: Option<&Error>) {
        let overlaps = |run: &PageRun| run.next < pages.end && pages.start < run.pages.end;
        let is_pinned = |run: &PageRun| {
            let mut numbers = run.next..run.pages.end;
            numbers.any(|number| self.table.get(&number).is_some_and(|page| page.pins > 0))
        };
        let runs = self.runs_in_progress.iter();
        let over = runs.filter(|(_, run)| overlaps(run) && (error.is_some() || !is_pinned(run)));
        let over: Vec<u64> = over.map(|(id, _)| *id).collect();
        let unwanted = Error::cancelled();
        for id in over {
            self.requests.push(Request::Cancel { id });
            self.record_failed(id, error.unwrap_or(&unwanted));
        }
        if let Some(error) = error {
            self.remember_failure(pages.clone(), error);
            for number in pages.clone() {
                match self.table.get_mut(&number) {
                    Some(page) if !matches!(page.state, PageState::Staged(_)) => {
                        page.state = PageState::Failed(error.clone());
                    }
                    _ => {}
                }
            }
        }
    }

    /// Fails all waiting readers with `error`, because the connection has ended.
    pub(super) fn fail_all(&mut self, error: &Error) {
        let ids: Vec<u64> = self.runs_in_progress.keys().copied().collect();
        for id in ids {
            self.record_failed(id, error);
        }
        for run in std::mem::take(&mut self.needed)
            .iter()
            .chain(&std::mem::take(&mut self.expected))
        {
            self.unqueue(run);
        }
    }

    /// Removes a closed object and all its pages.
    pub(super) fn remove_object(&mut self, object: &StagedObject) {
        let is_own = |run: &PageRun| run.object.number == object.number;
        let asked = self.runs_in_progress.iter().filter(|(_, run)| is_own(run));
        let asked: Vec<u64> = asked.map(|(id, _)| *id).collect();
        for id in asked {
            self.requests.push(Request::Cancel { id });
            self.record_failed(id, &Error::cancelled());
        }
        self.needed.retain(|run| !is_own(run));
        self.expected.retain(|run| !is_own(run));
        let own = object.pages();
        let numbers = self.table.keys().filter(|number| own.contains(number));
        let numbers: Vec<u64> = numbers.copied().collect();
        for number in numbers {
            self.read.pop(&number);
            self.unread.pop(&number);
            if let Some(page) = self.table.remove(&number)
                && matches!(page.state, PageState::Staged(_))
            {
                self.used_pages = self.used_pages.minus_or_zero(1);
            }
        }
    }
}
