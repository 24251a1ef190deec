//! A crawler that reads the metadata of a remote file ahead of requests: group after group, below
//! each group that a user has opened.
//!
//! Without the crawler, a recursive walk would need several round trips for each object: for its
//! header, and then for the structures that the header references. So a thread reads all objects
//! breadth first, with non-blocking requests. If bytes are missing, they are requested, and the
//! thread continues with the next object. The thread waits only when all objects lack bytes. The
//! results stay in the caches of the file and of its source, where the walk's own requests find
//! them.

use std::collections::{HashSet, VecDeque};
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex, Weak};
use std::thread;

use h5fs_reader::error::Result;
use h5fs_reader::memory::lock::lock;
use h5fs_reader::memory::request_budget::RequestBudget;
use h5fs_reader::model::array::Storage;
use h5fs_reader::model::{Container, LinkTarget, NodeId, NodeKind};

use crate::limits;

/// The crawler of one file. Clones share the groups that are still to be crawled.
#[derive(Default)]
pub(crate) struct Crawler(Arc<Mutex<CrawlState>>);

#[derive(Default)]
struct CrawlState {
    /// Groups that were crawled or are in progress.
    crawled_groups: HashSet<NodeId>,
    /// Groups that a user has opened and that still wait to be crawled.
    pending_groups: VecDeque<NodeId>,
    is_running: bool,
}

impl CrawlState {
    /// Marks a group as crawled. Returns true if it was not marked before.
    fn mark_crawled(&mut self, group: NodeId) -> bool {
        if self.crawled_groups.contains(&group) {
            return false;
        }
        if self.crawled_groups.len() >= limits::CRAWLED_GROUPS {
            self.crawled_groups.clear();
        }
        self.crawled_groups.insert(group)
    }
}

impl Crawler {
    /// Crawls everything below `group`, which a user has opened, in a separate thread.
    pub(crate) fn crawl_group(&self, container: &Arc<dyn Container>, group: NodeId) {
        if !container.is_remote() || container.is_growing() {
            return;
        }
        let mut state = lock(&self.0);
        if state.pending_groups.len() >= limits::CRAWLS || !state.mark_crawled(group) {
            return;
        }
        container.prefetch_subtree(group);
        state.pending_groups.push_back(group);
        if state.is_running {
            return;
        }
        let (own, container) = (Arc::downgrade(&self.0), Arc::clone(container));
        let crawl = thread::Builder::new().name("crawl".to_owned());
        let spawned = crawl.spawn(move || crawl_groups(&own, &container));
        // Without the thread, a walk reads each object separately.
        state.is_running = spawned.is_ok();
        if !state.is_running {
            state.pending_groups.clear();
        }
    }
}

/// Crawls the opened groups until none is left or the file is closed.
fn crawl_groups(crawler: &Weak<Mutex<CrawlState>>, container: &Arc<dyn Container>) {
    while let Some(state) = crawler.upgrade() {
        let mut opened = lock(&state);
        let Some(group) = opened.pending_groups.pop_front() else {
            opened.is_running = false;
            return;
        };
        drop(opened);
        let mut is_new = |group| {
            let state = crawler.upgrade();
            state.is_some_and(|state| lock(&state).mark_crawled(group))
        };
        drop(state);
        crawl(container, group, &mut is_new, &|| {
            crawler.strong_count() > 0
        });
    }
}

/// A structure of the file for the crawler to read.
#[derive(Clone, Copy)]
enum CrawlSubject {
    Links(NodeId),
    Object(NodeId),
    /// The chunk index of an array with this many chunks. `stat` needs it for the stored bytes.
    Chunks(NodeId, u64),
}

/// A structure to read, and the number of attempts so far.
struct CrawlItem(CrawlSubject, u32);

/// Reads the objects below `group` breadth first, while `goes_on` returns true. Skips groups for
/// which `is_new` returns false.
fn crawl(
    container: &Arc<dyn Container>,
    group: NodeId,
    is_new: &mut dyn FnMut(NodeId) -> bool,
    goes_on: &dyn Fn() -> bool,
) {
    let mut queue = VecDeque::from([CrawlItem(CrawlSubject::Links(group), 0)]);
    let mut window: Vec<CrawlItem> = Vec::new();
    let mut left = limits::CRAWLED_OBJECTS;
    let mut chunks_left = limits::CRAWLED_CHUNKS;
    while goes_on() {
        refill(&**container, &mut window, &mut queue);
        if window.is_empty() {
            return;
        }
        let (mut wait, mut is_stuck) = (None, true);
        for CrawlItem(subject, looks) in std::mem::take(&mut window) {
            let budget = RequestBudget::non_blocking();
            let glance = Arc::clone(container).for_request(&budget);
            let found = subject.read(&*glance, &budget, left);
            if let Some(put_off) = budget.take_wait() {
                wait.get_or_insert(put_off);
                if looks < limits::CRAWL_LOOKS {
                    window.push(CrawlItem(subject, looks.saturating_add(1)));
                }
                continue;
            }
            is_stuck = false;
            for subject in found.unwrap_or_default() {
                match subject {
                    CrawlSubject::Links(group) if !is_new(group) => continue,
                    CrawlSubject::Object(_) => left = left.saturating_sub(1),
                    // The index of a small array is only a structure or two, like its header.
                    CrawlSubject::Chunks(_, chunks) if chunks > limits::LISTED_CHUNKS => {
                        match chunks_left.checked_sub(chunks) {
                            Some(fewer) => chunks_left = fewer,
                            None => continue,
                        }
                    }
                    CrawlSubject::Links(_) | CrawlSubject::Chunks(..) => {}
                }
                queue.push_back(CrawlItem(subject, 0));
            }
        }
        if let (true, Some(wait)) = (is_stuck, wait) {
            wait();
        }
    }
}

/// Moves structures from `queue` to `window`, the list of structures whose bytes were requested,
/// once the window is half empty. Requests the headers of all moved objects at once, so that one
/// request fetches nearby headers together.
fn refill(container: &dyn Container, window: &mut Vec<CrawlItem>, queue: &mut VecDeque<CrawlItem>) {
    if window.len() > limits::CRAWL_WINDOW / 2 {
        return;
    }
    queue.make_contiguous().sort_by_key(CrawlItem::address);
    let room = limits::CRAWL_WINDOW - window.len();
    let more: Vec<CrawlItem> = queue.drain(..room.min(queue.len())).collect();
    let objects: Vec<NodeId> = more.iter().filter_map(CrawlItem::address).collect();
    if !objects.is_empty() {
        container.prefetch_nodes(&objects);
    }
    window.extend(more);
}

impl CrawlItem {
    /// Returns the address of the object, or `None` for a structure other than an object, which
    /// thus sorts first.
    fn address(&self) -> Option<NodeId> {
        match self.0 {
            CrawlSubject::Object(node) => Some(node),
            CrawlSubject::Links(_) | CrawlSubject::Chunks(..) => None,
        }
    }
}

impl CrawlSubject {
    /// Reads the structure. Returns the structures to read next, with at most `left` objects among
    /// them.
    fn read(
        self,
        glance: &dyn Container,
        budget: &RequestBudget,
        left: usize,
    ) -> Result<Vec<CrawlSubject>> {
        match self {
            CrawlSubject::Links(group) => linked_objects(glance, group, left),
            CrawlSubject::Object(node) => {
                let found = glance.node(node)?;
                Ok(match &found.kind {
                    NodeKind::Group => vec![CrawlSubject::Links(node)],
                    NodeKind::Array(array) => {
                        let chunks = array.chunk_count();
                        let chunks = chunks.map(|count| CrawlSubject::Chunks(node, count));
                        chunks.into_iter().collect()
                    }
                    _ => Vec::new(),
                })
            }
            CrawlSubject::Chunks(node, _) => {
                let found = glance.node(node)?;
                if let NodeKind::Array(array) = &found.kind
                    && let Ok(Storage::Chunked(chunked)) = &array.storage
                {
                    let pass = &mut |_: &[u64], _| ControlFlow::Continue(());
                    chunked.index.walk(budget, pass)?;
                }
                Ok(Vec::new())
            }
        }
    }
}

/// Returns the objects to which the first `most` links of a group lead, sorted by address.
fn linked_objects(glance: &dyn Container, group: NodeId, most: usize) -> Result<Vec<CrawlSubject>> {
    let mut links = glance.links(group)?;
    let mut nodes = Vec::new();
    for _ in 0..most {
        match links.next()? {
            Some(link) => {
                if let LinkTarget::Hard(node) = link.target {
                    nodes.push(node);
                }
            }
            None => break,
        }
    }
    nodes.sort_unstable();
    nodes.dedup();
    Ok(nodes.into_iter().map(CrawlSubject::Object).collect())
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;
    use crate::fake::{FakeContainer, ROOT};

    /// Crawls everything below the root. Returns how often objects were read.
    fn count_reads(fake: FakeContainer) -> usize {
        let looks = Arc::clone(&fake.looks);
        let container: Arc<dyn Container> = Arc::new(fake);
        let mut state = CrawlState::default();
        let root = container.root();
        assert!(state.mark_crawled(root));
        crawl(
            &container,
            root,
            &mut |group| state.mark_crawled(group),
            &|| true,
        );
        looks.load(Ordering::SeqCst)
    }

    #[test]
    fn each_object_is_prefetched_once() {
        let mut fake = FakeContainer::new();
        for group in 1..=10 {
            fake.add_group(group * 1000, 1);
            fake.add_hard_link(ROOT, format!("group{group}"), group * 1000);
            // Adds a link back to the root, which must not be followed again.
            fake.add_hard_link(group * 1000, "back", ROOT);
            for data in 1..=10 {
                fake.add_bytes(group * 1000 + data * 8, 1, b"data");
                fake.add_hard_link(group * 1000, format!("data{data}"), group * 1000 + data * 8);
            }
        }
        // Each group, its ten datasets, and the root that each group links back to.
        assert_eq!(count_reads(fake), 10 * 12);
    }

    #[test]
    fn the_number_of_prefetched_objects_is_limited() {
        let mut fake = FakeContainer::new();
        for group in 1..=2 {
            fake.add_group(group * 8, 1);
            fake.add_hard_link(ROOT, format!("group{group}"), group * 8);
            for data in 1..=limits::CRAWLED_OBJECTS as u64 {
                let data = group * 1_000_000 + data * 8;
                fake.add_bytes(data, 1, b"data");
                fake.add_hard_link(group * 8, format!("data{data}"), data);
            }
        }
        assert_eq!(count_reads(fake), limits::CRAWLED_OBJECTS);
    }

    #[test]
    fn an_object_that_never_arrives_is_abandoned() {
        let mut fake = FakeContainer::new();
        for data in [8, 16] {
            fake.add_bytes(data, 1, b"data");
            fake.add_hard_link(ROOT, format!("data{data}"), data);
        }
        fake.make_absent(8);
        assert_eq!(count_reads(fake), 2 + limits::CRAWL_LOOKS as usize);
    }

    #[test]
    fn a_crawl_ends_when_the_file_is_closed() {
        let mut fake = FakeContainer::new();
        fake.add_bytes(8, 1, b"data");
        fake.add_hard_link(ROOT, "data", 8);
        let container: Arc<dyn Container> = Arc::new(fake.clone());
        let asked = AtomicUsize::new(0);
        let goes_on = || asked.fetch_add(1, Ordering::SeqCst) == 0;
        crawl(&container, container.root(), &mut |_| true, &goes_on);
        assert_eq!(fake.looks.load(Ordering::SeqCst), 0);
    }

    #[test]
    fn the_number_of_remembered_groups_is_limited() {
        let mut state = CrawlState::default();
        let node = |number: usize| NodeId::for_test(number as u64 * 8);
        assert!(state.mark_crawled(node(0)) && !state.mark_crawled(node(0)));
        for number in 1..limits::CRAWLED_GROUPS {
            assert!(state.mark_crawled(node(number)));
        }
        assert!(!state.mark_crawled(node(0)));
        assert!(state.mark_crawled(node(limits::CRAWLED_GROUPS)));
        assert_eq!(state.crawled_groups.len(), 1);
    }

    #[test]
    fn only_remote_groups_are_prefetched_up_to_a_limit() {
        let crawler = Crawler::default();
        let fake = FakeContainer::new();
        let near: Arc<dyn Container> = Arc::new(fake.clone());
        crawler.crawl_group(&near, near.root());
        assert!(lock(&crawler.0).crawled_groups.is_empty());
        let mut far = fake;
        far.is_remote = true;
        let far: Arc<dyn Container> = Arc::new(far);
        // The flag simulates a busy thread, so that opened groups wait.
        lock(&crawler.0).is_running = true;
        for number in 0..2 * limits::CRAWLS as u64 {
            crawler.crawl_group(&far, NodeId::for_test(number * 8));
        }
        assert_eq!(lock(&crawler.0).pending_groups.len(), limits::CRAWLS);
    }
}
