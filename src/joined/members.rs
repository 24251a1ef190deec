//! The files that are joined: what is known of each, and those that are open.

pub(super) mod content;
pub(crate) mod kept;
mod opening;
pub(super) mod scan;
pub(super) mod skeleton;

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use lru::LruCache;
use nix::errno::Errno;

use crate::array::Engine;
use crate::error::{Cause, Error, Result};
use crate::joined::members::content::Known;
use crate::joined::members::kept::Kept;
pub(crate) use crate::joined::members::kept::Key;
use crate::joined::members::opening::PendingMembers;
use crate::joined::members::scan::{Common, Scan, scan};
use crate::joined::members::skeleton::Skeleton;
use crate::joined::paths::{Path, Told};
use crate::limits;
use crate::memory::cancel::CancelToken;
use crate::memory::lock::lock;
use crate::model::{Container, LinkTarget, NodeId, NodeKind};
use crate::source::neighbours::Neighbours;
use crate::wire::{Count, to_u64};

/// Opens members.
pub(crate) trait OpenMember: Send + Sync {
    /// The paths of the members from the directory, in their order.
    fn names(&self) -> &[Path];

    /// Opens a member, which must be in the state in which it was opened first.
    ///
    /// # Errors
    /// Fails if it is no file of a known format, or cannot be opened; `Stale` if it has changed.
    fn open(&self, number: usize) -> Result<Opened>;

    /// What the state of a member is known by, so that what was read of it need not be read again;
    /// `None` where a change would not show.
    fn key(&self, number: usize) -> Option<Key>;

    /// Whether opening one takes requests to a server.
    fn is_far(&self) -> bool;

    /// Whether the block that elements are in is compared with its checksum before they are read.
    fn verifies(&self) -> bool;

    /// Is told that all members are to be scanned.
    fn begin(&self);

    /// Is told that one more has been, or that what was read of it is known from before.
    ///
    /// # Errors
    /// [`Error::unwanted`] where nobody waits for it any more.
    fn scanned(&self, was_known: bool) -> Result<()>;
}

/// A member that is open.
pub(crate) struct Opened {
    pub(crate) container: Arc<dyn Container>,
    /// The other files that it leads to.
    pub(crate) neighbours: Arc<Neighbours>,
}

/// A member that could be read.
#[derive(Debug)]
pub(super) struct Member {
    /// Its number among all files of the directory.
    pub(super) number: usize,
    pub(super) name: Path,
    /// The number of its skeleton.
    pub(super) skeleton: usize,
    /// The length of each dimension.
    pub(super) lengths: Box<[u64]>,
    /// The dimensions of variables that are shorter than these.
    short: Vec<(usize, Box<[u64]>)>,
    /// What is known of the elements of each variable.
    pub(super) values: Box<[Known]>,
}

/// All members.
pub(super) struct Members {
    pub(super) list: Vec<Member>,
    pub(super) skeletons: Vec<Arc<Skeleton>>,
    /// What the members of each skeleton have alike.
    pub(super) common: Vec<Common>,
    opener: Box<dyn OpenMember>,
    engine: Arc<Engine>,
    /// By the numbers of their files.
    open: Mutex<LruCache<usize, Arc<dyn Container>>>,
    /// Far ones that are being opened.
    openings: PendingMembers<Arc<dyn Container>>,
    /// Bytes of arrays that may still stand in memory.
    inline: AtomicU64,
    /// Bytes that may still be read to be compared.
    compared: AtomicU64,
    weight: u64,
}

/// Members that are kept open.
pub(in crate::joined) const OPEN: NonZeroUsize = NonZeroUsize::new(64).unwrap();

/// Threads that scan far members, most of whose time is waiting.
const FAR_THREADS: usize = 64;

/// Those of a near directory at most.
const NEAR_THREADS: usize = 16;

/// What is gathered of members as they are scanned.
#[derive(Default)]
struct Gathered<'f> {
    kept: Option<Kept<'f>>,
    list: Vec<Member>,
    skeletons: HashMap<Arc<Skeleton>, usize>,
    common: Vec<Common>,
    elements: HashSet<Arc<[u8]>>,
    weight: u64,
    told: Vec<(usize, Told)>,
    failed: Option<Error>,
}

impl Members {
    /// Scans all members but those of which `kept` has what was read of them.
    ///
    /// # Errors
    /// Fails if what is known of them takes too much memory, or the work is to end.
    pub(super) fn scan(
        engine: &Arc<Engine>,
        opener: Box<dyn OpenMember>,
        threads: usize,
        kept: Option<&File>,
        told: &mut Vec<Told>,
    ) -> Result<Self> {
        let files = opener.names().len();
        if files > limits::JOINED_FILES {
            let most = to_u64(limits::JOINED_FILES);
            return Err(Error::limit("joined: files of a directory", most));
        }
        opener.begin();
        let gathered = gather(engine, &*opener, threads, kept);
        if let Some(error) = gathered.failed {
            return Err(error);
        }
        let mut list = gathered.list;
        list.sort_by_key(|member| member.number);
        let mut unread = gathered.told;
        unread.sort_by_key(|(number, _)| *number);
        told.extend(unread.into_iter().map(|(_, told)| told));
        let mut skeletons: Vec<_> = gathered.skeletons.into_iter().collect();
        skeletons.sort_by_key(|(_, number)| *number);
        Ok(Members {
            list,
            skeletons: skeletons
                .into_iter()
                .map(|(skeleton, _)| skeleton)
                .collect(),
            common: gathered.common,
            opener,
            engine: Arc::clone(engine),
            open: Mutex::new(LruCache::new(OPEN)),
            openings: PendingMembers::default(),
            inline: AtomicU64::new(limits::JOINED_BYTES),
            compared: AtomicU64::new(limits::JOINED_BYTES),
            weight: gathered.weight,
        })
    }

    /// Counts bytes of an array that stands in memory; whether there is room for them.
    pub(super) fn take_inline(&self, bytes: u64) -> bool {
        take(&self.inline, bytes)
    }

    /// The skeleton of a member.
    pub(super) fn skeleton(&self, member: &Member) -> &Skeleton {
        &self.skeletons[member.skeleton]
    }

    /// Opens the file of a member, by its number among all, for a request that may be cancelled. A
    /// request that waits for a server counts as heavy.
    ///
    /// # Errors
    /// Fails as [`OpenMember::open`] does; [`Error::unwanted`] once the request is cancelled, or is
    /// put off.
    pub(super) fn open_for(
        self: &Arc<Self>,
        file: usize,
        cancel: &CancelToken,
    ) -> Result<Arc<dyn Container>> {
        if !self.is_far() {
            return self.open(file);
        }
        if let Some(open) = lock(&self.open).get(&file) {
            return Ok(Arc::clone(open));
        }
        cancel.begin_heavy()?;
        PendingMembers::open(self, file, cancel, Members::open)
    }

    /// Like [`open_for`](Self::open_for), for work that nothing cancels.
    ///
    /// # Errors
    /// Fails as [`OpenMember::open`] does.
    pub(super) fn open(&self, file: usize) -> Result<Arc<dyn Container>> {
        if let Some(open) = lock(&self.open).get(&file) {
            return Ok(Arc::clone(open));
        }
        let opened = self.opener.open(file)?.container;
        let gone = lock(&self.open).push(file, Arc::clone(&opened));
        drop(gone);
        Ok(opened)
    }

    /// What tells the elements of an array of a file from others, if they are not too many with those
    /// that were asked for before; `None` of those that are, or that lead elsewhere.
    ///
    /// # Errors
    /// Fails if they cannot be read.
    pub(super) fn hash_of(&self, file: usize, path: &[u8]) -> Result<Option<[u64; 2]>> {
        let container = self.open(file)?;
        let id = node_at(&*container, path)?;
        let NodeKind::Array(array) = &container.node(id)?.kind else {
            return Ok(None);
        };
        let bytes = array.bytes()?;
        let is_small = bytes <= limits::JOINED_COMPARED && take(&self.compared, bytes);
        if !is_small {
            return Ok(None);
        }
        self.verify(&*container, id)?;
        let elements = content::elements(&self.engine, &*container, array)?;
        Ok(elements.map(|elements| content::hashes(&elements)))
    }

    /// Compares the block that the elements of an array are in with its checksum, if that is wanted.
    ///
    /// # Errors
    /// `Corrupt` where it has another; fails if it cannot be read.
    pub(super) fn verify(&self, container: &dyn Container, array: NodeId) -> Result<()> {
        if self.opener.verifies() {
            content::verify(&self.engine, container, array)
        } else {
            Ok(())
        }
    }

    /// Whether opening one takes requests to a server.
    pub(super) fn is_far(&self) -> bool {
        self.opener.is_far()
    }

    /// Bytes of memory that is kept of them, about.
    pub(super) fn weight(&self) -> u64 {
        self.weight
    }
}

impl AsRef<PendingMembers<Arc<dyn Container>>> for Members {
    fn as_ref(&self) -> &PendingMembers<Arc<dyn Container>> {
        &self.openings
    }
}

/// Takes bytes of those that are `left`; whether there are so many.
fn take(left: &AtomicU64, bytes: u64) -> bool {
    let order = Ordering::Relaxed;
    let rest = |left: u64| left.checked_sub(bytes);
    left.fetch_update(order, order, rest).is_ok()
}

impl Member {
    /// The dimensions of a variable as they are stored, where these are not those of its dimensions.
    pub(super) fn short(&self, variable: usize) -> Option<&[u64]> {
        let short = &self.short;
        let at = short.binary_search_by_key(&variable, |short| short.0);
        at.ok().and_then(|at| short.get(at)).map(|short| &*short.1)
    }
}

fn gather<'f>(
    engine: &Arc<Engine>,
    opener: &dyn OpenMember,
    threads: usize,
    kept: Option<&'f File>,
) -> Gathered<'f> {
    let mut gathered = Gathered::default();
    let known = kept.map_or_else(HashSet::new, |file| gathered.take_kept(opener, file));
    let gathered = Mutex::new(gathered);
    let next = AtomicUsize::new(0);
    let work = || {
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            let Some(name) = opener.names().get(number) else {
                return;
            };
            if known.contains(&number) {
                continue;
            }
            // The state before anything was read.
            let mut key = kept.and_then(|_| opener.key(number));
            let scanned = opener.open(number).and_then(|opened| {
                let scanned = scan(engine, &opened.container, opener.verifies());
                // The key says nothing of other files, as raw files and sources of virtual datasets.
                key = key.filter(|_| opened.neighbours.states().is_empty());
                scanned
            });
            let mut gathered = lock(&gathered);
            gathered.take(number, name, scanned, key);
            if let Err(error) = opener.scanned(false) {
                gathered.failed = Some(error);
            }
            if gathered.failed.is_some() {
                return;
            }
        }
    };
    let most = if opener.is_far() {
        FAR_THREADS
    } else {
        threads.min(NEAR_THREADS)
    };
    let others = most
        .min(opener.names().len().left_after(known.len()))
        .left_after(1);
    thread::scope(|scope| {
        for _ in 0..others {
            let thread = thread::Builder::new().name("join".to_owned());
            // Fewer threads take longer.
            let _ = thread.spawn_scoped(scope, work);
        }
        work();
    });
    gathered
        .into_inner()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Whether a member is left out for an error: it will be the same the next time, or the member is
/// another one by now, which the next listing of the directory tells.
fn is_left_out(error: &Error) -> bool {
    const DENIED: [i32; 2] = [Errno::EPERM as i32, Errno::EACCES as i32];
    match error {
        Error::Io { cause, .. } => match cause {
            Cause::System(number) => DENIED.contains(number),
            Cause::Forbidden | Cause::Stale => true,
            Cause::Failed | Cause::OutOfMemory | Cause::Unwanted => false,
        },
        error => !error.is_passing(),
    }
}

impl<'f> Gathered<'f> {
    /// Takes what a file keeps of members, and returns the numbers of these.
    fn take_kept(&mut self, opener: &dyn OpenMember, file: &'f File) -> HashSet<usize> {
        let numbers = 0..opener.names().len();
        let keys = numbers.filter_map(|number| Some((opener.key(number)?, number)));
        let mut known = HashSet::new();
        let read = Kept::read(file, &keys.collect(), &mut |number, scan| {
            let Some(name) = opener.names().get(number) else {
                return;
            };
            self.take(number, name, Ok(scan), None);
            if let Err(error) = opener.scanned(true) {
                self.failed = Some(error);
            }
            known.insert(number);
        });
        match read {
            Ok(kept) => self.kept = Some(kept),
            Err(error) => log::debug!("what was read of files that are joined: {error}"),
        }
        known
    }

    /// Takes what was read of a member, and keeps it by the `key`, if there is one, for the next time.
    fn take(&mut self, number: usize, name: &Path, scanned: Result<Scan>, key: Option<Key>) {
        let mut scan = match scanned {
            Ok(scan) => scan,
            Err(error) if is_left_out(&error) => {
                let what = name.escape_ascii().to_string();
                let reason = format!("left out: {error}");
                self.told.push((number, Told { what, reason }));
                return;
            }
            // It may be read the next time: to leave it out would show fill in its place.
            Err(error) => {
                self.failed = Some(error);
                return;
            }
        };
        let own = size_of::<Member>().with_more(name.len());
        self.weight = self.weight.with_more(to_u64(own)).with_more(scan.weight());
        let values = scan.values.into_iter();
        scan.values = values.map(|known| self.shared(known)).collect();
        if let (Some(kept), Some(key)) = (&mut self.kept, key) {
            kept.put(key, &scan);
        }
        let skeleton = self.skeleton(scan.skeleton, scan.common);
        self.list.push(Member {
            number,
            name: Path::clone(name),
            skeleton,
            lengths: scan.lengths,
            short: scan.short,
            values: scan.values,
        });
        if self.weight > limits::JOINED_BYTES {
            let most = limits::JOINED_BYTES;
            self.failed = Some(Error::limit("joined: bytes that are kept of files", most));
        } else if self.skeletons.len() > limits::JOINED_SKELETONS {
            let most = to_u64(limits::JOINED_SKELETONS);
            self.failed = Some(Error::limit("joined: kinds of files that differ", most));
        }
    }

    /// The number of a skeleton, whose members have no more than this in common.
    fn skeleton(&mut self, skeleton: Arc<Skeleton>, common: Common) -> usize {
        if let Some(&number) = self.skeletons.get(&skeleton) {
            self.common[number].keep(&common);
            return number;
        }
        let number = self.skeletons.len();
        let attributes = common.attributes.iter().flat_map(|own| own.iter());
        let attributes: usize = attributes
            .map(|(name, value)| name.len() + value.elements.len() + 150)
            .sum();
        self.weight = self
            .weight
            .with_more(skeleton.weight())
            .with_more(to_u64(attributes));
        self.skeletons.insert(skeleton, number);
        self.common.push(common);
        number
    }

    /// The same elements, in memory once for all members that have them.
    fn shared(&mut self, known: Known) -> Known {
        let Known::Elements(elements) = known else {
            // The ends of a long one are few bytes.
            return known;
        };
        if let Some(kept) = self.elements.get(&elements) {
            return Known::Elements(Arc::clone(kept));
        }
        self.weight = self.weight.with_more(to_u64(elements.len()).with_more(64));
        self.elements.insert(Arc::clone(&elements));
        Known::Elements(elements)
    }
}

/// The node at a path of a file.
///
/// # Errors
/// Fails if a group on the way cannot be read; `Corrupt` if it leads nowhere.
pub(super) fn node_at(container: &dyn Container, path: &[u8]) -> Result<NodeId> {
    let mut node = container.root();
    for name in path
        .split(|&byte| byte == b'/')
        .filter(|name| !name.is_empty())
    {
        match container.link(node, name)?.map(|link| link.target) {
            Some(LinkTarget::Hard(next)) => node = next,
            _ => {
                let what = format!("joined: no {} in a member", path.escape_ascii());
                return Err(Error::corrupt(what, None));
            }
        }
    }
    Ok(node)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::array::CacheSize;

    fn scan_of(group: String, values: Vec<Known>) -> Scan {
        Scan {
            skeleton: Arc::new(Skeleton {
                groups: vec![group.into_bytes().into()],
                variables: Vec::new(),
                dimensions: Vec::new(),
            }),
            common: Common::default(),
            lengths: Box::default(),
            short: Vec::new(),
            values: values.into(),
        }
    }

    fn gathered(scans: impl Iterator<Item = Scan>) -> Gathered<'static> {
        let mut gathered = Gathered::default();
        for (number, scan) in scans.enumerate() {
            gathered.take(number, &Path::from(&b"name"[..]), Ok(scan), None);
        }
        gathered
    }

    #[test]
    fn files_that_differ_have_a_bound() {
        let differ =
            |count| gathered((0..count).map(|n: usize| scan_of(n.to_string(), Vec::new())));
        assert!(differ(limits::JOINED_SKELETONS).failed.is_none());
        let failed = differ(limits::JOINED_SKELETONS + 1).failed;
        assert!(matches!(failed, Some(Error::Limit { .. })));
    }

    #[test]
    fn what_is_kept_has_a_bound_and_equal_elements_count_once() {
        const MIB: usize = 1 << 20;
        let files = limits::JOINED_BYTES as usize / MIB + 1;
        let of = |first: &dyn Fn(usize) -> u8| {
            let known = (0..files).map(|n| {
                let mut elements = vec![0; MIB];
                elements[0] = first(n);
                vec![Known::Elements(elements.into())]
            });
            gathered(known.map(|known| scan_of(String::new(), known)))
        };
        let alike = of(&|_| 7);
        assert!(alike.failed.is_none() && alike.weight < 2 * MIB as u64);
        assert!(matches!(of(&|n| n as u8).failed, Some(Error::Limit { .. })));
    }

    struct Names(Vec<Path>);

    impl OpenMember for Names {
        fn names(&self) -> &[Path] {
            &self.0
        }

        fn open(&self, _number: usize) -> Result<Opened> {
            Err(Error::NotFound)
        }

        fn key(&self, _number: usize) -> Option<Key> {
            None
        }

        fn is_far(&self) -> bool {
            false
        }

        fn verifies(&self) -> bool {
            false
        }

        fn begin(&self) {}

        fn scanned(&self, _was_known: bool) -> Result<()> {
            Ok(())
        }
    }

    #[test]
    fn arrays_in_memory_have_a_bound_together() {
        let engine = Engine::new(CacheSize::from(1 << 20), 1);
        let members = Members::scan(&engine, Box::new(Names(vec![])), 1, None, &mut Vec::new());
        let members = members.unwrap();
        assert!(members.take_inline(limits::JOINED_BYTES - 1));
        assert!(!members.take_inline(2) && members.take_inline(1) && !members.take_inline(1));
    }

    #[test]
    fn files_have_a_bound() {
        let engine = Engine::new(CacheSize::from(1 << 20), 1);
        let scan = |count| {
            let names = Names(vec![Path::default(); count]);
            Members::scan(&engine, Box::new(names), 1, None, &mut Vec::new())
        };
        assert!(scan(2).is_ok());
        let many = scan(limits::JOINED_FILES + 1);
        assert!(matches!(many, Err(Error::Limit { .. })));
    }
}
