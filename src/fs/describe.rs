//! From what stands under a name to what is told of it; and what is told of the source itself.

use std::sync::Arc;
use std::sync::PoisonError;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use nix::errno::Errno;

use crate::detect;
use crate::error::{Error, Result, quoted};
use crate::fs::errno::{is_fault, refusal, stale};
use crate::fs::external::{Place, Standing};
use crate::fs::inode::{self, What};
use crate::fs::live::Live;
use crate::fs::namespace::{Directory, Found, Namespace};
use crate::fs::object::{self, Stored};
use crate::fs::trees::ViewTree;
use crate::fs::watch::Watch;
use crate::fs::{Entry, Fault, Filesystem, Ino, Kind, Outdate, Stat, kind_of, lock, open_source};
use crate::memory::effort::Granted;
use crate::model::{LinkTarget, Node};
use crate::source::changes::Changes;

/// How long a source that cannot be opened again is left alone: whoever writes it may be in the middle.
const RETRY: Duration = Duration::from_millis(100);

impl Filesystem {
    /// The state of the source that is shown now.
    pub(super) fn live(&self) -> Result<Arc<Live>> {
        if let Some(watch) = &self.watch
            && self.is_due(watch)
        {
            self.renew(watch);
        }
        self.current().ok_or_else(stale)
    }

    /// Whether the source is to be opened anew.
    fn is_due(&self, watch: &Watch) -> bool {
        match self.current() {
            Some(live) if live.is_growing() => watch.may_have_grown() || live.is_changed(),
            Some(live) => watch.is_changed() || live.is_changed(),
            None => true,
        }
    }

    /// Whether the source has changed, and has not only grown.
    pub(super) fn is_changed_now(&self) -> bool {
        let is_growing = self.current().is_some_and(|live| live.is_growing());
        !is_growing && self.watch.as_ref().is_some_and(Watch::is_changed_now)
    }

    /// Takes note of what the system tells of changes: of writes that have ended, and of names that
    /// have gone.
    pub(super) fn look(&self) {
        if let Some(changes) = self.changes() {
            changes.look();
        }
    }

    /// What tells of changes.
    pub(super) fn changes(&self) -> Option<&Arc<Changes>> {
        self.watch.as_ref()?.changes()
    }

    /// Which state of the source is shown, counted from 0; `None` once it has changed and cannot be opened
    /// again.
    pub fn generation(&self) -> Option<u32> {
        self.live().ok().map(|live| live.generation)
    }

    /// The numbers, counted or not, that stood for another state of the source; the root is one of them.
    pub fn outdated(&self) -> Vec<Ino> {
        self.outdated_by(self.current().map(|live| live.generation))
    }

    /// As [`outdated`](Self::outdated), where the state `generation` of the source is shown.
    pub(super) fn outdated_by(&self, generation: Option<u32>) -> Vec<Ino> {
        let mut outdated = self.inodes.outdated(generation);
        outdated.push(inode::ROOT);
        outdated
    }

    /// Has `outdate` called for all numbers of a state of the source, before the next one is shown.
    pub(super) fn call_when_outdated(&self, outdate: Outdate) {
        let set = self.outdate.set(outdate);
        debug_assert!(set.is_ok());
    }

    /// The kernel keeps no listing of the root from before the state `generation` of the source.
    pub(super) fn set_relisted(&self, generation: u32) {
        self.relisted.store(generation, Ordering::Release);
    }

    fn current(&self) -> Option<Arc<Live>> {
        let live = self.live.read().unwrap_or_else(PoisonError::into_inner);
        live.clone()
    }

    /// Opens the changed source anew.
    fn renew(&self, watch: &Watch) {
        let mut renewed = lock(&self.renewed);
        let live = self.current();
        let is_early = match &live {
            Some(live) => live.is_growing() && live.is_recent(),
            None => renewed.elapsed() < RETRY,
        };
        if is_early || !self.is_due(watch) {
            return;
        }
        let was_live = live.is_some();
        let growing = live.filter(|live| live.is_growing());
        if growing.is_none() {
            // What is gone and what comes are not in memory together.
            self.drop_live();
        }
        let mut reopened = self.reopen(watch, growing.as_ref());
        if reopened == Err(stale()) {
            // The same writer may have done one thing more, as closing it.
            reopened = self.reopen(watch, growing.as_ref());
        }
        if let Err(error) = reopened {
            if was_live {
                log::warn!("{}: has changed: {error}", watch.path().display());
            }
            self.drop_live();
        }
        *renewed = Instant::now();
    }

    /// Shows nothing. Whoever has a file open keeps no more of what was shown than that.
    fn drop_live(&self) {
        let mut live = self.live.write().unwrap_or_else(PoisonError::into_inner);
        let before = live.take();
        drop(live);
        if let Some(before) = before {
            before.retire();
        }
    }

    /// Shows the source as it is now: the same one, if a writer has only appended to it; else another, and what
    /// was opened before stays stale.
    fn reopen(&self, watch: &Watch, before: Option<&Arc<Live>>) -> Result<()> {
        let own = self.options.guard.as_ref();
        if own.is_some_and(|own| own.is_on_the_way(watch.path())) {
            return Err(refusal(Errno::EDEADLK, "its own mount hides it"));
        }
        let mut reopened = watch.reopen()?;
        let grows = |live: &Live| live.is_growing() && !live.is_changed();
        let before = before.filter(|live| grows(live) && watch.is_same_file(&reopened));
        if before.is_none() && !self.options.force {
            detect::refuse_locked(&reopened.file())?;
        }
        let opened = open_source(reopened.file(), watch, &self.others, &self.options)?;
        let is_growing = opened.container.is_growing();
        if before.is_some() && !is_growing && (reopened.is_young() || reopened.is_changed_now()) {
            // The writer has just closed it, or is about to: until all is written, what was seen last is right.
            return Ok(());
        }
        if !is_growing && reopened.is_changed_now() {
            return Err(stale());
        }
        watch.watch(reopened);
        let mut origin = self.origin.write().unwrap_or_else(PoisonError::into_inner);
        *origin = Arc::clone(&opened.origin);
        drop(origin);
        if let Some(before) = before {
            let live = Arc::new(before.grown(opened));
            *self.live.write().unwrap_or_else(PoisonError::into_inner) = Some(live);
            before.retire();
            return Ok(());
        }
        let generation = self.generation.fetch_add(1, Ordering::Relaxed);
        self.enliven(opened, generation.wrapping_add(1));
        log::warn!("{}: has changed; opened anew", watch.path().display());
        Ok(())
    }

    pub(super) fn space<'a>(&'a self, live: &'a Live) -> Namespace<'a> {
        Namespace {
            live,
            inodes: &self.inodes,
            others: &self.others,
        }
    }

    /// What a number stands for, and in which file.
    pub(super) fn standing(&self, ino: Ino) -> Result<(Arc<Live>, inode::Entry)> {
        self.look();
        let source = self.live()?;
        let entry = self.entry(&source, ino)?;
        if entry.tree < inode::FIRST_FILE {
            return Ok((source, entry));
        }
        Ok((self.others.get(&source, entry.tree)?, entry))
    }

    /// As [`standing`](Self::standing), for a request, which may look at so much until the last result
    /// is dropped.
    pub(super) fn requested(&self, ino: Ino) -> Result<(Arc<Live>, inode::Entry, Granted)> {
        let (live, entry) = self.standing(ino)?;
        let (live, granted) = live.for_request();
        Ok((live, entry, granted))
    }

    /// What a number stands for.
    pub(super) fn entry(&self, live: &Live, ino: Ino) -> Result<inode::Entry> {
        let entry = self.inodes.get(ino);
        entry
            .filter(|entry| entry.generation == live.generation)
            .ok_or_else(stale)
    }

    /// Counts a lookup of `found` and describes it.
    ///
    /// # Errors
    /// As [`refuse_unread`](Self::refuse_unread).
    pub(super) fn enter(
        &self,
        directory: &Directory<'_>,
        found: &Found,
        at_any_cost: bool,
    ) -> Result<Entry> {
        self.refuse_unread(directory, found)?;
        let ino = self.inodes.enter(found.ino, &found.entry);
        let described = self.describe(directory, ino, found, at_any_cost);
        // The kernel is not told of it, so that it cannot forget it.
        described.inspect_err(|_| self.forget(ino, 1))
    }

    /// Nothing is told of an object that cannot be read now: the next time it may be told what it is.
    ///
    /// # Errors
    /// As it cannot be read.
    pub(super) fn refuse_unread(&self, directory: &Directory<'_>, found: &Found) -> Result<()> {
        match &found.object {
            Some(Err(error)) if error.is_passing() => {
                self.note(&directory.space, found.ino, &found.entry, error);
                Err(error.clone())
            }
            _ => Ok(()),
        }
    }

    /// What `stat` tells of `found`, which stands in `directory` if it is a link; what is costly is left
    /// out unless it is wanted `at_any_cost`.
    ///
    /// # Errors
    /// As that cannot be found out now.
    pub(super) fn describe(
        &self,
        directory: &Directory<'_>,
        ino: Ino,
        found: &Found,
        at_any_cost: bool,
    ) -> Result<Entry> {
        let mut stat = self.bare(directory.space.live, ino, kind_of(found.entry.what));
        // Other files come and go, and what cannot be read now may be read next time.
        let mut cacheable = found.target.other_file().is_none();
        let is_known = matches!(found.object, None | Some(Ok(_)));
        match (&found.object, found.entry.what) {
            (Some(Ok(node)), what) => {
                stat.modified = node.modified.map_or(stat.modified, |seconds| (seconds, 0));
                if what == What::Object {
                    let live = directory.space.live;
                    (stat, cacheable) = with_content(live, node, stat, at_any_cost)?;
                    // Its block may say how long it is.
                    cacheable &= !node.is_partial();
                }
            }
            (Some(Err(error)), _) => self.note(&directory.space, ino, &found.entry, error),
            (None, What::Link) => {
                let text = directory.text(&found.target);
                cacheable &= !matches!(&text, Err(error) if error.is_passing());
                let length = text.map_or(0, |text| text.len());
                stat = stat.sized(crate::wire::to_u64(length), None);
            }
            (None, _) => {
                if let LinkTarget::Damaged(error) = &found.target {
                    self.note(&directory.space, ino, &found.entry, error);
                }
            }
        }
        Ok(Entry {
            ino,
            generation: found.entry.generation,
            attributes: stat,
            cacheable: cacheable && is_known && directory.space.live.is_settled(),
        })
    }

    /// What `stat` tells of what is not in the file.
    pub(super) fn fixed(&self, live: &Live, ino: Ino) -> Result<Entry> {
        let entry = self.entry(live, ino)?;
        Ok(Entry {
            ino,
            generation: live.generation,
            attributes: self.bare(live, ino, kind_of(entry.what)),
            cacheable: live.is_settled(),
        })
    }

    /// What `stat` tells of a directory as far as `.` and `..` need it.
    pub(super) fn directory_entry(&self, live: &Live, ino: Ino) -> Result<Entry> {
        Ok(Entry {
            cacheable: false,
            ..self.fixed(live, ino)?
        })
    }

    pub(super) fn bare(&self, live: &Live, ino: Ino, kind: Kind) -> Stat {
        live.origin.stat(ino, kind, &self.options)
    }

    /// Counts a lookup of what the directory of other files shows as `name`.
    pub(super) fn enter_other(&self, source: &Live, name: &[u8]) -> Result<Entry> {
        let standing = self.others.find(source, name)?;
        let entry = |what, tree, node| inode::Entry {
            what,
            generation: source.generation,
            tree,
            node,
            parent: inode::of_generation(source.generation, inode::EXTERNAL),
            name: name.into(),
        };
        let root = source.container.root();
        match standing {
            Standing::File(live) => {
                let root = live.container.root();
                let found = Found {
                    ino: inode::of_node(live.generation, live.tree, root),
                    entry: entry(What::Group, live.tree, root),
                    object: Some(live.container.node(root)),
                    target: LinkTarget::Hard(root),
                };
                let directory = self.space(&live).directory(root);
                Ok(Entry {
                    // Once the file has changed, another directory stands here.
                    cacheable: false,
                    ..self.enter(&directory, &found, true)?
                })
            }
            Standing::Spelling(place) => {
                let ino = inode::of_link(source.generation, inode::SPELLINGS, root, name);
                let entry = entry(What::Spelling, inode::SOURCE, root);
                let ino = self.inodes.enter(ino, &entry);
                self.spelling(ino, &spelled(&place))
            }
        }
    }

    /// The text of a link from one spelling of another file's name to its own.
    pub(super) fn spelled(&self, source: &Live, name: &[u8]) -> Result<Vec<u8>> {
        match self.others.find(source, name)? {
            Standing::Spelling(place) => Ok(spelled(&place)),
            Standing::File(_) => Err(stale()),
        }
    }

    /// What `stat` tells of such a link.
    pub(super) fn spelling(&self, ino: Ino, text: &[u8]) -> Result<Entry> {
        let source = self.live()?;
        let stat = self.bare(&source, ino, Kind::Symlink);
        Ok(Entry {
            ino,
            generation: source.generation,
            attributes: stat.sized(crate::wire::to_u64(text.len()), None),
            cacheable: false,
        })
    }

    /// Remembers what is wrong with an object, and logs it once.
    pub(super) fn note(
        &self,
        space: &Namespace<'_>,
        ino: Ino,
        entry: &inode::Entry,
        error: &Error,
    ) {
        if !is_fault(error) {
            return;
        }
        let text = error.to_string();
        let fault = Fault {
            text: text.clone(),
            is_passing: error.is_passing(),
        };
        let known = lock(&self.faults).put(ino, fault);
        if known.is_none_or(|known| known.text != text) {
            let path = space.file_path(entry, 1).unwrap_or_default();
            let tree = ViewTree::of_number(entry.tree);
            let file = match (&*space.live.shown, tree) {
                (b"", None) => String::new(),
                (b"", Some(tree)) => format!("{}:", tree.name.escape_ascii()),
                (shown, _) => format!("{}:", shown.escape_ascii()),
            };
            log::warn!("{file}{}: {text}", quoted(&path));
        }
    }

    /// Forgets what kept an object from being read, if that was not its own fault.
    pub(super) fn forgive(&self, ino: Ino) {
        let mut faults = lock(&self.faults);
        if faults.peek(&ino).is_some_and(|fault| fault.is_passing) {
            faults.pop(&ino);
        }
    }

    /// What is wrong with a damaged link.
    pub(super) fn damage(&self, live: &Live, entry: &inode::Entry) -> Error {
        let directory = self.space(live).directory(entry.node);
        match directory.find(&entry.name).map(|found| found.target) {
            Ok(LinkTarget::Damaged(error)) | Err(error) => error,
            Ok(_) => Error::corrupt("link: leads to no object", None),
        }
    }
}

fn with_content(live: &Live, node: &Node, stat: Stat, at_any_cost: bool) -> Result<(Stat, bool)> {
    let (size, stored) = object::measure(live, node, at_any_cost)?;
    let (stored, cacheable) = match stored {
        Stored::Known(stored) => (stored, true),
        Stored::Unknown => (Some(size), false),
    };
    let mut stat = stat.sized(size, stored);
    stat.links = node.link_count.max(1);
    Ok((stat, cacheable))
}

/// The text of a link in the directory of other files.
fn spelled(place: &Place) -> Vec<u8> {
    match place {
        Place::Root => b"../..".to_vec(),
        Place::Other(shown) => shown.clone(),
    }
}
