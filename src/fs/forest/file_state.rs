//! One mounted file in one of its states: the open container, and what was worked out from it.

use std::hash::Hash;
use std::ops::Deref;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::time::{Duration, Instant};

use crate::array::kinds::vlen::VariableLength;
use crate::array::{Engine, Reader};
use crate::error::{Error, Result};
use crate::fs::errno::{is_fault, stale};
use crate::fs::forest::crawl::Crawler;
use crate::fs::forest::indexes::FileIndex;
use crate::fs::forest::watch::Watch;
use crate::fs::name;
use crate::fs::stat::Origin;
use crate::fs::state::counts::{Counted, CountedText, Counts};
use crate::fs::state::inode::{SOURCE, Tree};
use crate::limits;
use crate::memory::cancel::{CancelToken, Canceller};
use crate::memory::effort::{Effort, Granted};
use crate::memory::lock::lock;
use crate::memory::weighted_lru::WeightedLru;
use crate::model::array::{Fill, Layout, Storage};
use crate::model::datatype::ByteOrder;
use crate::model::paths::PathIndex;
use crate::model::storage::{Pipeline, StoredExtent};
use crate::model::{Array, Container, Datatype, Node, NodeId, Shape};
use crate::source::identity::Identity;
use crate::source::neighbours::Neighbours;
use crate::source::open::OpenedState;
use crate::view::View;
use crate::view::elements::matlab_empty;
use crate::view::elements::padded::{Lengths, Padded};
use crate::view::elements::part::Part;
use crate::view::elements::raw::Raw;
use crate::view::table::Convention;
use crate::view::texts::text::Text;
use crate::wire::to_u64;

/// Bytes of the full names that are remembered for names that were cut.
const CUT_NAMES: u64 = 1 << 20;

/// How long a file that grows is shown as it was seen last.
const GROWTH: Duration = Duration::from_millis(200);

/// A cut name: the group of its directory, and the name as shown.
type CutName = (NodeId, Box<[u8]>);

/// A text that belongs to an object: the object, and what the text is called.
type TextName = (NodeId, Box<[u8]>);

/// A part of an array: its node, and the selector.
type PartName = (NodeId, Box<[u8]>);

/// A file that is open, and where it came from.
pub(in crate::fs) struct OpenedFile {
    pub(in crate::fs) container: Arc<dyn Container>,
    pub(in crate::fs) origin: Arc<Origin>,
    pub(in crate::fs) neighbours: Arc<Neighbours>,
    /// The state that it was opened in.
    pub(in crate::fs) state: Option<Arc<dyn OpenedState>>,
    /// Tells whether it has changed; the source's own state is watched elsewhere.
    pub(in crate::fs) watch: Option<Watch>,
    /// The name of its directory; empty for the source.
    pub(in crate::fs) shown: Box<[u8]>,
}

/// One mounted file in one of its states, for one request or for all.
pub(in crate::fs) struct FileState {
    pub(in crate::fs) container: Arc<dyn Container>,
    /// Pays for what the container looks at.
    pub(in crate::fs) effort: Effort,
    shared: Arc<SharedState>,
}

/// The part of a file's state that all requests share, with the caches of what was worked out.
pub(in crate::fs) struct SharedState {
    /// Counts the states of the source.
    pub(in crate::fs) generation: u32,
    /// The number of its tree.
    pub(in crate::fs) tree: Tree,
    pub(in crate::fs) engine: Arc<Engine>,
    pub(in crate::fs) origin: Arc<Origin>,
    pub(in crate::fs) neighbours: Arc<Neighbours>,
    /// The name of its directory; empty for the source.
    pub(in crate::fs) shown: Box<[u8]>,
    opened: Instant,
    state: Option<Arc<dyn OpenedState>>,
    watch: Option<Watch>,
    index: Arc<FileIndex>,
    /// Ends the requests under way, once it is over.
    ended: Canceller,
    is_over: AtomicBool,
    pub(in crate::fs) crawler: Crawler,
    readers: Mutex<WeightedLru<NodeId, Arc<Reader>>>,
    variable_length: Mutex<WeightedLru<NodeId, Arc<VariableLength>>>,
    variable_length_parts: Mutex<WeightedLru<PartName, Arc<VariableLength>>>,
    cut_names: Mutex<WeightedLru<CutName, Option<Box<[u8]>>>>,
    /// Texts, and why there is none.
    texts: Mutex<WeightedLru<TextName, Result<Text>>>,
    counts: Counts,
    conventions: Mutex<WeightedLru<NodeId, Option<Convention>>>,
    /// Whether groups of ASDF hold an array, at any depth.
    with_arrays: Mutex<WeightedLru<NodeId, bool>>,
    /// Whether groups have variables that stand side by side in a table.
    with_variables: Mutex<WeightedLru<NodeId, bool>>,
    /// The lengths of unlimited dimensions.
    lengths: Arc<Lengths>,
    /// Whether all chunks of an array have gone through its filters.
    filtered: Mutex<WeightedLru<NodeId, bool>>,
}

/// A cache of a file's state.
trait Kept {
    fn clear(&self);

    /// Bytes of memory that it takes.
    fn weight(&self) -> u64;
}

impl<K: Hash + Eq, V> Kept for Mutex<WeightedLru<K, V>> {
    fn clear(&self) {
        lock(self).clear();
    }

    fn weight(&self) -> u64 {
        lock(self).weight()
    }
}

impl Kept for Lengths {
    /// A document that is being made needs the lengths of its own state to its end.
    fn clear(&self) {}

    fn weight(&self) -> u64 {
        lock(&self.known).weight()
    }
}

impl Deref for FileState {
    type Target = SharedState;

    fn deref(&self) -> &SharedState {
        &self.shared
    }
}

impl FileState {
    pub(in crate::fs) fn new(
        generation: u32,
        tree: Tree,
        opened: OpenedFile,
        engine: Arc<Engine>,
        index: Arc<FileIndex>,
    ) -> Self {
        FileState {
            container: opened.container,
            effort: Effort::default(),
            shared: Arc::new(SharedState {
                generation,
                tree,
                engine,
                origin: opened.origin,
                neighbours: opened.neighbours,
                shown: opened.shown,
                opened: Instant::now(),
                state: opened.state,
                watch: opened.watch,
                index,
                ended: Canceller::default(),
                is_over: AtomicBool::new(false),
                crawler: Crawler::default(),
                readers: Mutex::new(WeightedLru::new(limits::READERS)),
                variable_length: Mutex::new(WeightedLru::new(limits::READERS)),
                variable_length_parts: Mutex::new(WeightedLru::new(limits::READERS)),
                cut_names: Mutex::new(WeightedLru::new(CUT_NAMES)),
                texts: Mutex::new(WeightedLru::new(limits::KEPT_TEXTS)),
                counts: Counts::default(),
                conventions: Mutex::new(WeightedLru::new(limits::CONVENTIONS)),
                with_arrays: Mutex::new(WeightedLru::new(limits::CONVENTIONS)),
                with_variables: Mutex::new(WeightedLru::new(limits::CONVENTIONS)),
                lengths: Arc::new(Lengths::new(limits::CONVENTIONS)),
                filtered: Mutex::new(WeightedLru::new(limits::CONVENTIONS)),
            }),
        }
    }

    /// The same for one request, which may look at so much until the second result is dropped, or
    /// the request is to end.
    pub(in crate::fs) fn for_request(&self, cancel: &CancelToken) -> (Arc<Self>, Granted) {
        let effort = Effort::of_a_request();
        let granted = effort.granted(&self.until_over(cancel));
        let file = FileState {
            container: Arc::clone(&self.container).for_request(&effort),
            effort,
            shared: Arc::clone(&self.shared),
        };
        (Arc::new(file), granted)
    }

    /// The same for the request that `other` is for, which may look at no more for that.
    pub(in crate::fs) fn for_request_of(&self, other: &FileState) -> Arc<Self> {
        let effort = other.effort.clone();
        Arc::new(FileState {
            container: Arc::clone(&self.container).for_request(&effort),
            effort,
            shared: Arc::clone(&self.shared),
        })
    }

    /// The same for a part of its request, which may look at `bytes` of what the request may.
    pub(in crate::fs) fn for_a_part(&self, bytes: u64) -> Arc<Self> {
        let effort = self.effort.part(bytes);
        Arc::new(FileState {
            container: Arc::clone(&self.container).for_request(&effort),
            effort,
            shared: Arc::clone(&self.shared),
        })
    }

    /// The same file after a writer has appended to it, opened as `opened`. A writer that lets
    /// others read leaves links alone, so what was found of them stays.
    pub(in crate::fs) fn grown(&self, opened: OpenedFile) -> Self {
        let (engine, index) = (Arc::clone(&self.engine), Arc::clone(&self.index));
        FileState::new(self.generation, self.tree, opened, engine, index)
    }

    /// Like [`Effort::granted`], for work that ends when this state is over.
    pub(in crate::fs) fn granted(&self, cancel: &CancelToken) -> Granted {
        self.effort.granted(&self.until_over(cancel))
    }

    /// The token of a request, for work that also ends when this state is over.
    pub(in crate::fs) fn until_over(&self, cancel: &CancelToken) -> CancelToken {
        cancel.clone().or(&self.ended)
    }

    /// The container for what is kept and serves other requests: none of them ends it.
    fn lasting_container(&self) -> Arc<dyn Container> {
        Arc::clone(&self.container).for_request(&Effort::default())
    }

    /// What is left of it as long as a request is under way, or a file open.
    pub(in crate::fs) fn rest(&self) -> Weak<SharedState> {
        Arc::downgrade(&self.shared)
    }

    /// Ends the requests under way, and lets go of what is kept: whoever asks for it on is told that
    /// it is over.
    pub(in crate::fs) fn end(&self) {
        self.is_over.store(true, Ordering::Relaxed);
        self.ended.cancel();
        self.retire();
    }

    /// Whether nothing of it is to be opened any more.
    pub(in crate::fs) fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }

    /// Lets go of what is kept to be found again: another state is shown now, and a file of this
    /// one may stay open for long.
    pub(in crate::fs) fn retire(&self) {
        self.container.forget();
        self.kept().iter().for_each(|kept| kept.clear());
    }

    /// Bytes of memory, about, that it takes as long as it is open.
    pub(in crate::fs) fn weight(&self) -> u64 {
        let kept = self.kept().map(Kept::weight).into_iter();
        kept.fold(self.container.weight(), u64::saturating_add)
    }

    /// The caches of what was worked out.
    fn kept(&self) -> [&dyn Kept; 11] {
        [
            &self.readers,
            &self.variable_length,
            &self.variable_length_parts,
            &self.cut_names,
            &self.texts,
            &self.counts.0,
            &self.conventions,
            &self.with_arrays,
            &self.with_variables,
            &*self.lengths,
            &self.filtered,
        ]
    }

    /// Whether `other` is this state of the same file, for whatever request.
    pub(in crate::fs) fn is_same_state(&self, other: &FileState) -> bool {
        Arc::ptr_eq(&self.shared, &other.shared)
    }

    /// When it was opened in this state.
    pub(in crate::fs) fn opened(&self) -> Instant {
        self.opened
    }

    /// What tells the state that it was opened in from others.
    pub(in crate::fs) fn identity(&self) -> Option<Identity> {
        self.state.as_ref().map(|state| state.identity().clone())
    }

    /// Whether a writer appends to it.
    pub(in crate::fs) fn is_growing(&self) -> bool {
        self.container.is_growing()
    }

    /// Whether what is told of it may be kept: no writer appends to it, and none may have been at
    /// work unseen when it was opened, or a neighbour of it.
    pub(in crate::fs) fn is_settled(&self) -> bool {
        let own = self.state.as_ref().is_none_or(|state| state.is_settled());
        !self.is_growing() && own && self.neighbours.states().is_settled()
    }

    /// What a request about this file is told of an error: `ESTALE` where it was given up because
    /// this state is over. Damage in a file that has changed under the mount a moment ago is not
    /// that of its next state either: whoever writes it may go on.
    pub(in crate::fs) fn told(&self, error: Error) -> Error {
        let is_given_up = error.is_unwanted() && self.is_over();
        if is_given_up || is_fault(&error) && self.is_half_written() {
            return stale();
        }
        error
    }

    /// Whether it was written so lately, under the mount, that its next bytes may be to come.
    pub(in crate::fs) fn is_half_written(&self) -> bool {
        let age = self.state.as_ref().map(|state| state.identity().age());
        let is_young = age.flatten().is_some_and(|age| age < limits::HALF_WRITTEN);
        self.generation > 0 && is_young && !self.is_growing()
    }

    /// Whether it was opened so lately that it is shown as it is even if it has grown since.
    pub(in crate::fs) fn is_recent(&self) -> bool {
        self.opened.elapsed() < GROWTH
    }

    /// Whether this other file is the one that `watch` watches, changed or not.
    pub(in crate::fs) fn is_of_same_file(&self, watch: &Watch) -> bool {
        let own = self.watch.as_ref().map(Watch::identity);
        own.is_some_and(|own| own.is_of_same_file(&watch.identity()))
    }

    /// Whether this other file, or one that it takes elements from, has changed since it was
    /// opened, as far as was seen lately.
    pub(in crate::fs) fn is_changed(&self) -> bool {
        let neighbours = self.neighbours.states();
        self.watch.as_ref().is_some_and(Watch::is_changed) || neighbours.is_changed()
    }

    /// Whether this other file has changed since it was opened, as it is now, or one was read that
    /// had.
    pub(in crate::fs) fn is_changed_now(&self) -> bool {
        let neighbours = self.neighbours.states();
        self.watch.as_ref().is_some_and(Watch::is_changed_now) || neighbours.met_a_change()
    }

    /// Whether `group` is the root of the mount.
    pub(in crate::fs) fn is_mount_root(&self, group: NodeId) -> bool {
        self.tree == SOURCE && group == self.container.root()
    }

    /// The object-to-path index.
    pub(in crate::fs) fn index(&self) -> Arc<PathIndex> {
        self.crawler
            .look_into(&self.container, self.container.root());
        self.index.get(&self.container)
    }

    /// The place for the index of another file of the mount.
    pub(in crate::fs) fn index_of_another(&self) -> Arc<FileIndex> {
        Arc::new(self.index.of_another())
    }

    /// The file with each variable of netCDF as long as its dimensions.
    pub(in crate::fs) fn variables(&self) -> Arc<dyn Container> {
        let container = Arc::clone(&self.container);
        let (index, whole) = (Arc::clone(&self.index), Arc::clone(&container));
        let is_linked = move |node| {
            let index = index.get(&whole);
            Ok(index.known_place(node)?.is_some() || !index.is_complete())
        };
        let (effort, lengths) = (self.effort.clone(), Arc::clone(&self.lengths));
        let (engine, is_linked) = (Arc::clone(&self.engine), Arc::new(is_linked));
        Arc::new(Padded::new(container, engine, effort, lengths, is_linked))
    }

    /// The node with the array that its writer means, where that is not the stored one.
    pub(in crate::fs) fn meant(&self, node: &Node) -> Result<Option<Arc<Node>>> {
        matlab_empty::meant(&*self.container, &self.engine, node)
    }

    /// The reader of the array of `node`; handles that are open at a time share one.
    pub(in crate::fs) fn reader(&self, node: NodeId, array: &Arc<Array>) -> Result<Arc<Reader>> {
        // Of a file that grows, a description that was read later may hold more.
        // A variable that is padded has another shape.
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

    /// An array of bytes, opened for one reader.
    ///
    /// # Errors
    /// Fails if it is known before reading that it cannot be read.
    pub(in crate::fs) fn open_bytes(&self, array: Arc<Array>) -> Result<Box<dyn View>> {
        if array.bytes()? == 0 {
            array.storage.as_ref().map_err(Clone::clone)?;
            return Ok(Box::new(Text::new(Vec::new())));
        }
        let reader = Reader::new(&self.engine, array)?;
        Ok(Box::new(Raw::new(Arc::new(reader))))
    }

    /// A run of bytes, opened for one reader.
    ///
    /// # Errors
    /// Fails as [`open_bytes`](Self::open_bytes) does.
    pub(in crate::fs) fn open_extent(&self, stored: StoredExtent) -> Result<Box<dyn View>> {
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

    /// The content of the variable-length array of `node`, which keeps where its elements begin.
    pub(in crate::fs) fn variable_length(
        &self,
        node: NodeId,
        array: &Arc<Array>,
    ) -> Result<Arc<VariableLength>> {
        if let Some(content) = lock(&self.variable_length).get(&node) {
            return Ok(Arc::clone(content));
        }
        let reader = self.reader(node, array)?;
        let content = VariableLength::new(reader, self.lasting_container())?;
        let content = Arc::new(content.ok_or(Error::NotFound)?);
        let mut kept = lock(&self.variable_length);
        if let Some(content) = kept.get(&node) {
            return Ok(Arc::clone(content));
        }
        let weight = array.weight().saturating_add(content.weight());
        kept.put(node, Arc::clone(&content), weight);
        Ok(content)
    }

    /// What the elements of variable length stand for in the part of an array that `selector`
    /// names; a lookup, `stat` and an open want it one after another. Of a file that grows none is kept.
    pub(in crate::fs) fn variable_length_part(
        &self,
        node: NodeId,
        selector: &[u8],
        part: &Part,
    ) -> Result<Arc<VariableLength>> {
        let name: PartName = (node, selector.into());
        if let Some(content) = lock(&self.variable_length_parts).get(&name) {
            return Ok(Arc::clone(content));
        }
        let content = Arc::new(part.variable_length(self.lasting_container())?);
        if !self.is_growing() {
            let own = content.weight().saturating_add(to_u64(selector.len()));
            let weight = own.saturating_add(part.array().weight());
            let gone = lock(&self.variable_length_parts).put(name, Arc::clone(&content), weight);
            drop(gone);
        }
        Ok(content)
    }

    /// The text that belongs to `object` and is called `shown`: an attribute's by the name of its
    /// file, the object's own by its suffix. It is rendered by `render` unless it is still kept: a
    /// lookup, `stat` and an open want it one after another. What is wrong with it is kept, too, unless
    /// it may be right the next time. Of a file that grows nothing is kept.
    ///
    /// # Errors
    /// Fails with the errors of `render`; `Io` (`ENOMEM`) where all that is open takes too much memory.
    pub(in crate::fs) fn kept_text(
        &self,
        object: NodeId,
        shown: &[u8],
        render: impl FnOnce() -> Result<Text>,
    ) -> Result<Text> {
        let key: TextName = (object, shown.into());
        if let Some(text) = lock(&self.texts).get(&key) {
            return text.clone()?.opened(&self.engine);
        }
        let text = render();
        let may_be_kept = !text.as_ref().is_err_and(Error::is_passing);
        if may_be_kept && !self.is_growing() {
            let own = text
                .as_ref()
                .map_or(to_u64(size_of::<Error>()), Text::weight);
            let weight = own.saturating_add(to_u64(shown.len()));
            let gone = lock(&self.texts).put(key, text.clone(), weight);
            drop(gone);
        }
        text?.opened(&self.engine)
    }

    /// The count of `text`, made by `count` unless it is still kept; `None` where it is too long to
    /// be counted. Of a file that grows none is kept.
    ///
    /// # Errors
    /// Fails with the errors of `count`.
    pub(in crate::fs) fn count(
        &self,
        text: CountedText,
        count: impl FnOnce() -> Counted,
    ) -> Counted {
        if self.is_growing() {
            count()
        } else {
            self.counts.of(text, &self.effort.cancel(), count)
        }
    }

    /// The convention by which `group` is a table, which `find` finds unless that is still kept: a
    /// listing, a lookup and `stat` want it one after another. Of a file that grows none is kept.
    pub(in crate::fs) fn convention(
        &self,
        group: NodeId,
        find: impl FnOnce() -> Result<Option<Convention>>,
    ) -> Result<Option<Convention>> {
        if let Some(known) = lock(&self.conventions).get(&group) {
            return Ok(*known);
        }
        let found = find()?;
        if !self.is_growing() {
            lock(&self.conventions).put(group, found, 0);
        }
        Ok(found)
    }

    /// Whether `group` holds an array, which `find` finds out unless that is still kept.
    pub(in crate::fs) fn holds_arrays(
        &self,
        group: NodeId,
        find: impl FnOnce() -> Result<bool>,
    ) -> Result<bool> {
        if let Some(known) = lock(&self.with_arrays).get(&group) {
            return Ok(*known);
        }
        let found = find()?;
        lock(&self.with_arrays).put(group, found, 0);
        Ok(found)
    }

    /// Whether `group` has variables that stand side by side in a table, which `find` finds out unless
    /// that is still kept. Of a file that grows none is kept.
    pub(in crate::fs) fn has_variables(
        &self,
        group: NodeId,
        find: impl FnOnce() -> Result<bool>,
    ) -> Result<bool> {
        if let Some(known) = lock(&self.with_variables).get(&group) {
            return Ok(*known);
        }
        let found = find()?;
        if !self.is_growing() {
            lock(&self.with_variables).put(group, found, 0);
        }
        Ok(found)
    }

    /// Whether all chunks of the array of `node` have gone through its filters, which `find` finds
    /// out unless that is still kept. Of a file that grows it is not known.
    pub(in crate::fs) fn are_all_filtered(
        &self,
        node: NodeId,
        find: impl FnOnce() -> Result<bool>,
    ) -> Result<bool> {
        if self.is_growing() {
            return Ok(false);
        }
        if let Some(known) = lock(&self.filtered).get(&node) {
            return Ok(*known);
        }
        let found = find()?;
        lock(&self.filtered).put(node, found, 0);
        Ok(found)
    }

    /// The name, as in the file, of the link that `group` shows as `shown`; `None` where it shows
    /// none.
    pub(in crate::fs) fn real_name(&self, group: NodeId, shown: &[u8]) -> Result<Option<Vec<u8>>> {
        self.real_name_within(group, shown, &mut { limits::CUT_NAME_LINKS })
    }

    /// Like [`real_name`](Self::real_name), looking through no more links than are `left`.
    pub(in crate::fs) fn real_name_within(
        &self,
        group: NodeId,
        shown: &[u8],
        left: &mut usize,
    ) -> Result<Option<Vec<u8>>> {
        let at_root = group == self.container.root();
        if !name::is_cut(shown) {
            return Ok(name::unescape(shown, at_root));
        }
        let key: CutName = (group, shown.into());
        if let Some(found) = lock(&self.cut_names).get(&key) {
            return Ok(found.as_deref().map(<[u8]>::to_vec));
        }
        let granted = *left;
        let found = self.find_cut(group, shown, at_root, left)?;
        if *left == 0 && granted < limits::CUT_NAME_LINKS {
            // It may be behind what others have left.
            return Ok(found);
        }
        let weight = key
            .1
            .len()
            .saturating_add(found.as_ref().map_or(0, Vec::len));
        let kept = found.as_deref().map(Into::into);
        lock(&self.cut_names).put(key, kept, to_u64(weight));
        Ok(found)
    }

    fn find_cut(
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
