//! A mounted file in one of its states: the open container, and caches of results derived from its
//! content. A change of the file by a writer begins a new state.

use std::any::Any;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Deref;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::time::{Duration, Instant};

use h5fs_conventions::matlab_empty;
use h5fs_conventions::padded::{DimensionLengths, PaddedContainer};
use h5fs_reader::array::kinds::vlen::VariableLengthContent;
use h5fs_reader::array::{Engine, Reader};
use h5fs_reader::error::{Error, Result};
use h5fs_reader::memory::cancel::{CancelToken, Canceller};
use h5fs_reader::memory::lock::lock;
use h5fs_reader::memory::request_budget::{RequestBudget, RequestBudgetGuard};
use h5fs_reader::memory::weighted_lru::WeightedLru;
use h5fs_reader::model::array::{Fill, Layout, Storage};
use h5fs_reader::model::datatype::ByteOrder;
use h5fs_reader::model::paths::PathIndex;
use h5fs_reader::model::storage::{Pipeline, StoredExtent};
use h5fs_reader::model::{Array, Container, Datatype, Node, NodeId, Shape};
use h5fs_reader::source::identity::Identity;
use h5fs_reader::source::neighbours::Neighbours;
use h5fs_reader::source::open::OpenedState;
use h5fs_reader::wire::to_u64;
use h5fs_view::elements::part::ArrayPart;
use h5fs_view::elements::raw::RawElements;
use h5fs_view::text_files::text::InMemoryContent;
use h5fs_view::view::View;

use crate::data_files::crawl::Crawler;
use crate::data_files::indexes::FilePathIndex;
use crate::data_files::watch::SourceWatch;
use crate::errno::{is_fault, stale_error};
use crate::limits;
use crate::name;
use crate::stat::SourceAttributes;
use crate::state::counts::{CountCache, CountKey, CountResult};
use crate::state::inode::{SOURCE, TreeNumber};

/// Maximum total length of the full names in the cache of shortened names, in bytes.
const SHORTENED_NAME_BYTES: u64 = 1 << 20;

/// Time for which a growing file is shown in its last seen state, before the file is checked for
/// growth again.
const GROWTH_CHECK_INTERVAL: Duration = Duration::from_millis(200);

/// The cache key of a shortened name: the group whose directory has the name, and the name as
/// shown.
type ShortenedNameKey = (NodeId, Box<[u8]>);

/// The cache key of a text or another result: the object, and the name of the result.
type TextKey = (NodeId, Box<[u8]>);

/// The cache key of a part of an array: the node of the array, and the selector.
type PartKey = (NodeId, Box<[u8]>);

/// An open file, with its state, its watch for changes, and its shown name.
pub(crate) struct OpenedFile {
    pub(crate) container: Arc<dyn Container>,
    pub(crate) origin: Arc<SourceAttributes>,
    pub(crate) neighbours: Arc<Neighbours>,
    /// The state in which the file was opened. `None` if the file is not watched for changes.
    pub(crate) state: Option<Arc<dyn OpenedState>>,
    /// The watch for changes of an externally linked file. `None` for the source, which
    /// [`Mount`](super::mount::Mount) watches.
    pub(crate) watch: Option<SourceWatch>,
    /// Shown name of the file's directory in `.h5fs/external`; empty for the source.
    pub(crate) shown_name: Box<[u8]>,
}

/// A mounted file in one of its states, with the budget of one request or without a budget.
pub(crate) struct FileState {
    pub(crate) container: Arc<dyn Container>,
    /// The budget that limits what one request may read from the container.
    pub(crate) budget: RequestBudget,
    shared: Arc<SharedFileState>,
}

/// The part of a file's state that all requests share, with the caches of derived results.
pub(crate) struct SharedFileState {
    /// Generation of the source, counted from 0.
    pub(crate) generation: u32,
    /// Tree number of the file's own tree, which is part of its inode numbers.
    pub(crate) tree: TreeNumber,
    pub(crate) engine: Arc<Engine>,
    pub(crate) origin: Arc<SourceAttributes>,
    pub(crate) neighbours: Arc<Neighbours>,
    /// Shown name of the file's directory in `.h5fs/external`; empty for the source.
    pub(crate) shown_name: Box<[u8]>,
    opened: Instant,
    state: Option<Arc<dyn OpenedState>>,
    watch: Option<SourceWatch>,
    index: Arc<FilePathIndex>,
    /// Cancels running requests when the state ends.
    end_canceller: Canceller,
    has_ended: AtomicBool,
    pub(crate) crawler: Crawler,
    readers: Mutex<WeightedLru<NodeId, Arc<Reader>>>,
    variable_length: Mutex<WeightedLru<NodeId, Arc<VariableLengthContent>>>,
    variable_length_parts: Mutex<WeightedLru<PartKey, Arc<VariableLengthContent>>>,
    shortened_names: Mutex<WeightedLru<ShortenedNameKey, Option<Box<[u8]>>>>,
    /// Texts about objects, or the permanent errors of creating them.
    texts: Mutex<WeightedLru<TextKey, Result<InMemoryContent>>>,
    counts: CountCache,
    /// Other results that views derive from objects, or the permanent errors of deriving them.
    derived: Mutex<WeightedLru<TextKey, Result<Arc<dyn Any + Send + Sync>>>>,
    /// The lengths of unlimited dimensions, by dimension.
    lengths: Arc<DimensionLengths>,
}

/// A cache of results that are derived from one state of a file.
trait FileCache {
    fn clear(&self);

    /// Returns the memory of the cache in bytes.
    fn weight(&self) -> u64;
}

impl<K: Hash + Eq, V> FileCache for Mutex<WeightedLru<K, V>> {
    fn clear(&self) {
        lock(self).clear();
    }

    fn weight(&self) -> u64 {
        lock(self).weight()
    }
}

impl FileCache for DimensionLengths {
    /// Does nothing: a document that is being written needs the dimension lengths of its own state
    /// until it is complete.
    fn clear(&self) {}

    fn weight(&self) -> u64 {
        lock(&self.length_by_scale).weight()
    }
}

impl Deref for FileState {
    type Target = SharedFileState;

    fn deref(&self) -> &SharedFileState {
        &self.shared
    }
}

impl FileState {
    pub(crate) fn new(
        generation: u32,
        tree: TreeNumber,
        opened: OpenedFile,
        engine: Arc<Engine>,
        index: Arc<FilePathIndex>,
    ) -> Self {
        FileState {
            container: opened.container,
            budget: RequestBudget::default(),
            shared: Arc::new(SharedFileState {
                generation,
                tree,
                engine,
                origin: opened.origin,
                neighbours: opened.neighbours,
                shown_name: opened.shown_name,
                opened: Instant::now(),
                state: opened.state,
                watch: opened.watch,
                index,
                end_canceller: Canceller::default(),
                has_ended: AtomicBool::new(false),
                crawler: Crawler::default(),
                readers: Mutex::new(WeightedLru::new(limits::READERS)),
                variable_length: Mutex::new(WeightedLru::new(limits::READERS)),
                variable_length_parts: Mutex::new(WeightedLru::new(limits::READERS)),
                shortened_names: Mutex::new(WeightedLru::new(SHORTENED_NAME_BYTES)),
                texts: Mutex::new(WeightedLru::new(limits::KEPT_TEXTS)),
                counts: CountCache::default(),
                derived: Mutex::new(WeightedLru::new(limits::KEPT_DERIVED)),
                lengths: Arc::new(DimensionLengths::new(limits::DIMENSION_LENGTHS)),
            }),
        }
    }

    /// Returns this state with a budget for one request, which `cancel` cancels. The budget applies
    /// until the returned guard is dropped.
    pub(crate) fn for_request(&self, cancel: &CancelToken) -> (Arc<Self>, RequestBudgetGuard) {
        let budget = RequestBudget::for_request();
        let granted = budget.renew_for(&self.token_until_end(cancel));
        let file = FileState {
            container: Arc::clone(&self.container).for_request(&budget),
            budget,
            shared: Arc::clone(&self.shared),
        };
        (Arc::new(file), granted)
    }

    /// Returns this state with the budget of the request that uses the state `other` of another
    /// file.
    pub(crate) fn with_budget_of(&self, other: &FileState) -> Arc<Self> {
        let budget = other.budget.clone();
        Arc::new(FileState {
            container: Arc::clone(&self.container).for_request(&budget),
            budget,
            shared: Arc::clone(&self.shared),
        })
    }

    /// Returns this state with a budget of at most `bytes` bytes, which are taken from the budget
    /// of the request.
    pub(crate) fn with_partial_budget(&self, bytes: u64) -> Arc<Self> {
        let budget = self.budget.sub_budget(bytes);
        Arc::new(FileState {
            container: Arc::clone(&self.container).for_request(&budget),
            budget,
            shared: Arc::clone(&self.shared),
        })
    }

    /// Returns the state of this file after a writer has appended to it. `opened` is the file
    /// opened again. The path index is reused, because a writer that permits concurrent readers
    /// does not change links.
    pub(crate) fn after_growth(&self, opened: OpenedFile) -> Self {
        let (engine, index) = (Arc::clone(&self.engine), Arc::clone(&self.index));
        FileState::new(self.generation, self.tree, opened, engine, index)
    }

    /// Grants a budget like [`RequestBudget::renew_for`]. The end of this state cancels the work
    /// too.
    pub(crate) fn grant_budget(&self, cancel: &CancelToken) -> RequestBudgetGuard {
        self.budget.renew_for(&self.token_until_end(cancel))
    }

    /// Returns a token that is cancelled with `cancel`, or when this state ends.
    pub(crate) fn token_until_end(&self, cancel: &CancelToken) -> CancelToken {
        cancel.clone().or_cancelled_by(&self.end_canceller)
    }

    /// Returns the container without the budget of a request. Cached content reads from this
    /// container, because cancelling one request must not fail the reads of other requests.
    fn unbudgeted_container(&self) -> Arc<dyn Container> {
        Arc::clone(&self.container).for_request(&RequestBudget::default())
    }

    /// Returns a weak reference to the part of this state that all requests share. The shared part
    /// is dropped when no request runs and no file is open in this state.
    pub(crate) fn downgrade_shared(&self) -> Weak<SharedFileState> {
        Arc::downgrade(&self.shared)
    }

    /// Ends the state: cancels running requests and clears the caches. Later requests for this
    /// state fail with `ESTALE`.
    pub(crate) fn end(&self) {
        self.has_ended.store(true, Ordering::Relaxed);
        self.end_canceller.cancel();
        self.clear_caches();
    }

    /// Returns whether the state has ended.
    pub(crate) fn has_ended(&self) -> bool {
        self.has_ended.load(Ordering::Relaxed)
    }

    /// Clears the caches, because the mount shows a later state and an open file may keep this
    /// state in memory for long.
    pub(crate) fn clear_caches(&self) {
        self.container.drop_caches();
        self.caches().iter().for_each(|kept| kept.clear());
    }

    /// Returns the approximate memory of this open file in bytes.
    pub(crate) fn weight(&self) -> u64 {
        let kept = self.caches().map(FileCache::weight).into_iter();
        kept.fold(self.container.weight(), u64::saturating_add)
    }

    /// Returns all caches of results that are derived from this state.
    fn caches(&self) -> [&dyn FileCache; 8] {
        [
            &self.readers,
            &self.variable_length,
            &self.variable_length_parts,
            &self.shortened_names,
            &self.texts,
            &self.counts.0,
            &self.derived,
            &*self.lengths,
        ]
    }

    /// Returns whether `other` is the same state of the same file, possibly with the budget of
    /// another request.
    pub(crate) fn is_same_state(&self, other: &FileState) -> bool {
        Arc::ptr_eq(&self.shared, &other.shared)
    }

    /// Returns the time when the file was opened in this state.
    pub(crate) fn opened_at(&self) -> Instant {
        self.opened
    }

    /// Returns the identity of the state in which the file was opened. Returns `None` if the file
    /// is not watched for changes.
    pub(crate) fn identity(&self) -> Option<Identity> {
        self.state.as_ref().map(|state| state.identity().clone())
    }

    /// Returns a text that identifies this state of the file in pages and in the conditions of
    /// requests. A growing file keeps the text while data is appended. Returns `None` if the file
    /// is not watched for changes.
    pub(crate) fn state_tag(&self) -> Option<String> {
        let identity = self.identity()?;
        let mut hasher = DefaultHasher::new();
        let fixed = Some(identity).filter(|_| !self.is_growing());
        (fixed, self.generation).hash(&mut hasher);
        Some(format!("state-{:016x}", hasher.finish()))
    }

    /// Returns whether the file is growing: a writer has it open and may append to it.
    pub(crate) fn is_growing(&self) -> bool {
        self.container.is_growing()
    }

    /// Returns whether replies about the file may be cached. If so, no writer appends to the file,
    /// and every later change of the file and of the files that it references will be noticed.
    pub(crate) fn is_cacheable(&self) -> bool {
        let own = self
            .state
            .as_ref()
            .is_none_or(|state| state.has_no_pending_write());
        !self.is_growing() && own && self.neighbours.states().can_notice_every_change()
    }

    /// Converts `error`, the result of a request about this file, to `ESTALE` in two cases. The
    /// request was cancelled because the state has ended. Or the file appears damaged but changed a
    /// moment ago, so its writer may not have finished.
    pub(crate) fn convert_error(&self, error: Error) -> Error {
        let is_given_up = error.is_cancelled() && self.has_ended();
        if is_given_up || is_fault(&error) && self.is_half_written() {
            return stale_error();
        }
        error
    }

    /// Returns whether the file changed under the mount so recently that the write may be
    /// incomplete.
    pub(crate) fn is_half_written(&self) -> bool {
        let age = self.state.as_ref().map(|state| state.identity().age());
        let is_young = age.flatten().is_some_and(|age| age < limits::HALF_WRITTEN);
        self.generation > 0 && is_young && !self.is_growing()
    }

    /// Returns whether the file was opened so recently that growth since then is ignored.
    pub(crate) fn is_recently_opened(&self) -> bool {
        self.opened.elapsed() < GROWTH_CHECK_INTERVAL
    }

    /// Returns whether `watch` watches this file, to which an external link leads. The file may
    /// have changed since it was opened in this state.
    pub(crate) fn is_same_file(&self, watch: &SourceWatch) -> bool {
        let own = self.watch.as_ref().map(SourceWatch::identity);
        own.is_some_and(|own| own.is_of_same_file(&watch.identity()))
    }

    /// Returns whether this externally linked file, or a file that it references, has changed since
    /// it was opened. Uses the results of recent checks.
    pub(crate) fn is_changed(&self) -> bool {
        let neighbours = self.neighbours.states();
        self.watch.as_ref().is_some_and(SourceWatch::is_changed) || neighbours.is_changed()
    }

    /// Checks now whether this externally linked file has changed since it was opened. Also returns
    /// true if a file that it references was read and has changed.
    pub(crate) fn is_changed_now(&self) -> bool {
        let neighbours = self.neighbours.states();
        self.watch.as_ref().is_some_and(SourceWatch::is_changed_now)
            || neighbours.has_found_change()
    }

    /// Returns whether `group` is the root of the mount.
    pub(crate) fn is_mount_root(&self, group: NodeId) -> bool {
        self.tree == SOURCE && group == self.container.root()
    }

    /// Returns the index that maps each object to its path, building the index if necessary.
    pub(crate) fn path_index(&self) -> Arc<PathIndex> {
        self.crawler
            .crawl_group(&self.container, self.container.root());
        self.index.get(&self.container)
    }

    /// Creates an empty index for an externally linked file of the same mount.
    pub(crate) fn index_for_linked_file(&self) -> Arc<FilePathIndex> {
        Arc::new(self.index.for_linked_file())
    }

    /// Returns a container where each netCDF variable is padded to the length of its dimensions.
    pub(crate) fn padded_variables(&self) -> Arc<dyn Container> {
        let container = Arc::clone(&self.container);
        let (index, whole) = (Arc::clone(&self.index), Arc::clone(&container));
        let is_linked = move |node| {
            let index = index.get(&whole);
            Ok(index.checked_parent_and_name(node)?.is_some() || !index.is_complete())
        };
        let (budget, lengths) = (self.budget.clone(), Arc::clone(&self.lengths));
        let (engine, is_linked) = (Arc::clone(&self.engine), Arc::new(is_linked));
        Arc::new(PaddedContainer::new(
            container, engine, budget, lengths, is_linked,
        ))
    }

    /// Returns a node with the array that the writer of `node` intended, or `None` if the stored
    /// array is the intended one. They differ for empty arrays of MATLAB.
    pub(crate) fn intended_node(&self, node: &Node) -> Result<Option<Arc<Node>>> {
        matlab_empty::empty_array_node(&*self.container, &self.engine, node)
    }

    /// Returns the reader of the array of `node`. All handles of the array share one reader.
    pub(crate) fn reader(&self, node: NodeId, array: &Arc<Array>) -> Result<Arc<Reader>> {
        // In a growing file, a description read later may contain more elements. A padded variable
        // has another shape.
        let is_right = |reader: &Reader| {
            if self.is_growing() {
                Arc::ptr_eq(reader.array(), array)
            } else {
                reader.array().shape == array.shape
            }
        };
        if let Some(reader) = lock(&self.readers).get(&node)
            && is_right(reader)
        {
            return Ok(Arc::clone(reader));
        }
        let reader = Arc::new(Reader::new(&self.engine, Arc::clone(array))?);
        let mut readers = lock(&self.readers);
        if let Some(kept) = readers.get(&node)
            && is_right(kept)
        {
            return Ok(Arc::clone(kept));
        }
        readers.put(node, Arc::clone(&reader), array.weight());
        Ok(reader)
    }

    /// Opens the raw bytes of an array for one handle.
    ///
    /// # Errors
    /// Fails if it is known before reading that the array cannot be read.
    pub(crate) fn open_bytes(&self, array: Arc<Array>) -> Result<Box<dyn View>> {
        if array.byte_length()? == 0 {
            array.storage.as_ref().map_err(Clone::clone)?;
            return Ok(Box::new(InMemoryContent::new(Vec::new())));
        }
        let reader = Reader::new(&self.engine, array)?;
        Ok(Box::new(RawElements::new(Arc::new(reader))))
    }

    /// Opens a range of stored bytes of the file for one handle.
    ///
    /// # Errors
    /// Fails as [`open_bytes`](Self::open_bytes) does.
    pub(crate) fn open_extent(&self, stored: StoredExtent) -> Result<Box<dyn View>> {
        self.open_bytes(Arc::new(Array {
            datatype: Datatype::integer(1, false, ByteOrder::Little),
            shape: Shape::fixed(vec![stored.extent.length()]),
            fill: Fill::Zero,
            layout: Layout::Block,
            chunk_shape: None,
            pipeline: Pipeline::default(),
            storage: Ok(Storage::Extents(vec![stored])),
        }))
    }

    /// Returns the content of the variable-length array of `node`, which caches the offsets of its
    /// elements.
    pub(crate) fn variable_length_content(
        &self,
        node: NodeId,
        array: &Arc<Array>,
    ) -> Result<Arc<VariableLengthContent>> {
        if let Some(content) = lock(&self.variable_length).get(&node) {
            return Ok(Arc::clone(content));
        }
        let reader = self.reader(node, array)?;
        let content = VariableLengthContent::new(reader, self.unbudgeted_container())?;
        let content = Arc::new(content.ok_or(Error::NotFound)?);
        let mut kept = lock(&self.variable_length);
        if let Some(content) = kept.get(&node) {
            return Ok(Arc::clone(content));
        }
        let weight = array.weight().saturating_add(content.weight());
        kept.put(node, Arc::clone(&content), weight);
        Ok(content)
    }

    /// Returns the variable-length content of the part of an array that `selector` names. The
    /// result is cached, because a lookup, `stat` and an open need it one after another. For
    /// growing files, the result is not cached.
    pub(crate) fn variable_length_part_content(
        &self,
        node: NodeId,
        selector: &[u8],
        part: &ArrayPart,
    ) -> Result<Arc<VariableLengthContent>> {
        let name: PartKey = (node, selector.into());
        if let Some(content) = lock(&self.variable_length_parts).get(&name) {
            return Ok(Arc::clone(content));
        }
        let content = Arc::new(part.variable_length_values(self.unbudgeted_container())?);
        if !self.is_growing() {
            let own = content.weight().saturating_add(to_u64(selector.len()));
            let weight = own.saturating_add(part.array().weight());
            let gone = lock(&self.variable_length_parts).put(name, Arc::clone(&content), weight);
            drop(gone);
        }
        Ok(content)
    }

    /// Returns the text about `object` with the name `shown`: the name of an attribute file, or the
    /// suffix of a view. The text comes from the cache or from `render`, because a lookup, `stat`
    /// and an open need it one after another. Permanent errors are cached too. Texts of growing
    /// files are not cached.
    ///
    /// # Errors
    /// Fails with the errors of `render`, and with `Io` (`ENOMEM`) if all open files together need
    /// too much memory.
    pub(crate) fn cached_text(
        &self,
        object: NodeId,
        shown: &[u8],
        render: impl FnOnce() -> Result<InMemoryContent>,
    ) -> Result<InMemoryContent> {
        let key: TextKey = (object, shown.into());
        if let Some(text) = lock(&self.texts).get(&key) {
            return text.clone()?.open_copy(&self.engine);
        }
        let text = render();
        let may_be_kept = !text.as_ref().is_err_and(Error::is_transient);
        if may_be_kept && !self.is_growing() {
            let own = text
                .as_ref()
                .map_or(to_u64(size_of::<Error>()), InMemoryContent::weight);
            let weight = own.saturating_add(to_u64(shown.len()));
            let gone = lock(&self.texts).put(key, text.clone(), weight);
            drop(gone);
        }
        text?.open_copy(&self.engine)
    }

    /// Returns the length and the resume points of `text`, from the cache or from `count`. Returns
    /// `None` if the text is too long for its bytes to be counted. Results of growing files are not
    /// cached.
    ///
    /// # Errors
    /// Fails with the errors of `count`.
    pub(crate) fn count_text(
        &self,
        text: CountKey,
        count: impl FnOnce() -> CountResult,
    ) -> CountResult {
        if self.is_growing() {
            count()
        } else {
            self.counts
                .get_or_count(text, &self.budget.cancel_token(), count)
        }
    }

    /// Returns a result that a view derives from `object`, from the cache or from `find`, because a
    /// listing, a lookup and `stat` need it one after another. `name` identifies the result among
    /// those of the object. `weight` returns the memory of the result in bytes. Permanent errors
    /// are cached too. For growing files, nothing is cached.
    pub(crate) fn derived<T: Any + Send + Sync>(
        &self,
        object: NodeId,
        name: &[u8],
        weight: impl FnOnce(&T) -> u64,
        find: impl FnOnce() -> Result<T>,
    ) -> Result<Arc<T>> {
        let key: TextKey = (object, name.into());
        let known = lock(&self.derived).get(&key).cloned();
        if let Some(Ok(known)) = known.map(|known| Ok(known?.downcast::<T>())).transpose()? {
            return Ok(known);
        }
        let found = find().map(Arc::new);
        let may_be_kept = !found.as_ref().is_err_and(Error::is_transient);
        if may_be_kept && !self.is_growing() {
            let own = found
                .as_ref()
                .map_or(to_u64(size_of::<Error>()), |found| weight(found));
            let weight = own.saturating_add(to_u64(name.len()));
            let kept = found
                .clone()
                .map(|found| found as Arc<dyn Any + Send + Sync>);
            let gone = lock(&self.derived).put(key, kept, weight);
            drop(gone);
        }
        found
    }

    /// Returns the name, as in the file, of the link that the directory of `group` shows as
    /// `shown`. Returns `None` if the directory shows no such link.
    pub(crate) fn name_in_file(&self, group: NodeId, shown: &[u8]) -> Result<Option<Vec<u8>>> {
        self.name_in_file_within(group, shown, &mut { limits::CUT_NAME_LINKS })
    }

    /// Finds the name in the file like [`name_in_file`](Self::name_in_file), reading at most `left`
    /// links. Subtracts the links read from `left`.
    pub(crate) fn name_in_file_within(
        &self,
        group: NodeId,
        shown: &[u8],
        left: &mut usize,
    ) -> Result<Option<Vec<u8>>> {
        let at_root = group == self.container.root();
        if !name::is_shortened(shown) {
            return Ok(name::unescape(shown, at_root));
        }
        let key: ShortenedNameKey = (group, shown.into());
        if let Some(found) = lock(&self.shortened_names).get(&key) {
            return Ok(found.as_deref().map(<[u8]>::to_vec));
        }
        let granted = *left;
        let found = self.find_shortened(group, shown, at_root, left)?;
        if *left == 0 && granted < limits::CUT_NAME_LINKS {
            // The name may come after the links that were examined, so the result is not cached.
            return Ok(found);
        }
        let weight = key
            .1
            .len()
            .saturating_add(found.as_ref().map_or(0, Vec::len));
        let kept = found.as_deref().map(Into::into);
        lock(&self.shortened_names).put(key, kept, to_u64(weight));
        Ok(found)
    }

    fn find_shortened(
        &self,
        group: NodeId,
        shown: &[u8],
        at_root: bool,
        left: &mut usize,
    ) -> Result<Option<Vec<u8>>> {
        let mut links = self.container.links(group)?;
        while let Some(link) = links.next()? {
            if name::escape(&link.name, at_root) == shown {
                return Ok(Some(link.name));
            }
            *left = left.saturating_sub(link.cost());
            if *left == 0 {
                break;
            }
        }
        Ok(None)
    }
}
