//! The files that are joined: what is known of each, and those that are open.

pub(super) mod content;
pub(super) mod convention;
mod conventions;
pub(crate) mod kept;
pub(super) mod links;
pub(crate) mod opener;
mod opening;
pub(super) mod scan;
pub(super) mod skeleton;
#[cfg(test)]
mod tests;
mod walk;

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use lru::LruCache;

use crate::array::Engine;
use crate::error::{Cause, Error, Result};
use crate::joined::members::content::Known;
use crate::joined::members::kept::Kept;
use crate::joined::members::links::OpenFile;
use crate::joined::members::opener::is_left_out;
pub(crate) use crate::joined::members::opener::{Key, OpenMember, Opened};
use crate::joined::members::opening::PendingMembers;
use crate::joined::members::scan::{Common, Scan, scan};
use crate::joined::members::skeleton::Skeleton;
use crate::joined::paths::{Path, Told};
use crate::limits;
use crate::memory::cancel::CancelToken;
use crate::memory::effort::Effort;
use crate::memory::lock::lock;
use crate::model::{Array, Container, NodeId, NodeKind};
use crate::view::elements::padded::padded;
use crate::wire::{Count, to_u64};

/// How members are scanned.
pub(crate) struct Scanning<'a> {
    /// Threads that scan members of this machine.
    pub(crate) threads: usize,
    /// The file in which what is read of members is kept for the next time.
    pub(crate) kept: Option<&'a File>,
    /// Ends the scan where nobody waits for it any more.
    pub(crate) cancel: &'a CancelToken,
}

/// An array of a member that is open.
pub(super) struct MemberVariable {
    /// The member, or the file that a link of it leads into.
    pub(super) file: Arc<OpenFile>,
    pub(super) node: NodeId,
    pub(super) array: Arc<Array>,
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
    /// Paths of what cannot be shown, and why.
    pub(super) refused: Vec<(Path, String)>,
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
    open: Mutex<LruCache<usize, Arc<OpenFile>>>,
    /// Far ones that are being opened.
    openings: PendingMembers<Arc<OpenFile>>,
    /// Bytes of arrays that may still stand in memory.
    inline: AtomicU64,
    /// Bytes that may still be read to be compared.
    compared: AtomicU64,
    /// Files that may still be opened once more for that.
    reopened: AtomicU64,
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
    /// Scans all members but those of which what was read is kept.
    ///
    /// # Errors
    /// Fails if what is known of them takes too much memory, or the work is to end.
    pub(super) fn scan(
        engine: &Arc<Engine>,
        opener: Box<dyn OpenMember>,
        scanning: &Scanning<'_>,
        told: &mut Vec<Told>,
    ) -> Result<Self> {
        let files = opener.names().len();
        if files > limits::JOINED_FILES {
            let most = to_u64(limits::JOINED_FILES);
            return Err(Error::limit("joined: files of a directory", most));
        }
        opener.begin();
        let gathered = gather(engine, &*opener, scanning);
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
        let rest = limits::JOINED_BYTES.left_after(gathered.weight);
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
            inline: AtomicU64::new(rest),
            compared: AtomicU64::new(limits::JOINED_BYTES),
            reopened: AtomicU64::new(limits::JOINED_REOPENED),
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
    /// Fails as [`OpenMember::open_again`] does; [`Error::unwanted`] once the request is cancelled, or is
    /// put off.
    pub(super) fn open_for(
        self: &Arc<Self>,
        file: usize,
        cancel: &CancelToken,
    ) -> Result<Arc<OpenFile>> {
        if !self.is_far() {
            return self.open(file);
        }
        if let Some(open) = self.kept_open(file) {
            return Ok(open);
        }
        cancel.begin_heavy()?;
        PendingMembers::open(self, file, cancel, Members::open)
    }

    /// Like [`open_for`](Self::open_for), for work that nothing cancels.
    ///
    /// # Errors
    /// Fails as [`OpenMember::open_again`] does.
    pub(super) fn open(&self, file: usize) -> Result<Arc<OpenFile>> {
        if let Some(open) = self.kept_open(file) {
            return Ok(open);
        }
        let opened = OpenFile::new(self.opener.open_again(file)?);
        let gone = lock(&self.open).push(file, Arc::clone(&opened));
        drop(gone);
        Ok(opened)
    }

    /// The file of a member that is open, unless a source of its virtual datasets has come or gone.
    fn kept_open(&self, file: usize) -> Option<Arc<OpenFile>> {
        let mut open = lock(&self.open);
        let open = open.get(&file).filter(|open| !open.met_a_change());
        open.map(Arc::clone)
    }

    /// The array of a member, which is open as `file`, as long as its dimensions.
    ///
    /// # Errors
    /// `Stale` if it is another one than when the member was scanned; fails if it cannot be read.
    pub(super) fn variable(
        &self,
        file: &Arc<OpenFile>,
        member: &Member,
        variable: usize,
        effort: &Effort,
    ) -> Result<MemberVariable> {
        let scanned = &self.skeleton(member).variables[variable];
        let name = || {
            let (file, path) = (member.name.escape_ascii(), scanned.path.escape_ascii());
            format!("{file}:/{path}")
        };
        let found = file.at(&*self.opener, &scanned.path, effort)?;
        let (file, node) = found.ok_or_else(|| Error::caused(Cause::Stale, name()))?;
        let array = match &file.for_request(effort).node(node)?.kind {
            NodeKind::Array(array) => Arc::clone(array),
            _ => return Err(Error::corrupt("joined: no array in a member", None)),
        };
        let dims = scanned.dims.iter().map(|&dim| member.lengths[dim]);
        let dims: Vec<u64> = dims.collect();
        let stored = member.short(variable).unwrap_or(&dims);
        if array.shape.dims() != stored || array.datatype != scanned.datatype {
            return Err(Error::caused(Cause::Stale, name()));
        }
        let array = if stored == dims {
            array
        } else {
            Arc::new(padded(&array, dims))
        };
        Ok(MemberVariable { file, node, array })
    }

    /// Whether so many members may be opened once more to be compared.
    pub(super) fn may_read_now(&self, files: usize) -> bool {
        files <= OPEN.get() || !self.is_far() && take(&self.reopened, to_u64(files))
    }

    /// What tells the elements of an array of a file from others, if they are not too many with those
    /// that were asked for before; `None` of those that are, or that lead elsewhere.
    ///
    /// # Errors
    /// Fails if they cannot be read.
    pub(super) fn hash_of(&self, member: &Member, variable: usize) -> Result<Option<[u64; 2]>> {
        let open = self.open(member.number)?;
        let MemberVariable { file, node, array } =
            self.variable(&open, member, variable, &Effort::default())?;
        let bytes = array.bytes()?;
        let is_small = bytes <= limits::JOINED_COMPARED && take(&self.compared, bytes);
        if !is_small {
            return Ok(None);
        }
        self.verify(&**file.container(), node)?;
        let elements = content::elements(&self.engine, &**file.container(), &array);
        let elements = content::compared(elements)?;
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

impl AsRef<PendingMembers<Arc<OpenFile>>> for Members {
    fn as_ref(&self) -> &PendingMembers<Arc<OpenFile>> {
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
    scanning: &Scanning<'f>,
) -> Gathered<'f> {
    let (kept, cancel) = (scanning.kept, scanning.cancel);
    let mut gathered = Gathered {
        weight: opener.weight(),
        ..Gathered::default()
    };
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
                let member = OpenFile::new(opened);
                let scanned = scan(engine, opener, &member);
                // The key says nothing of other files, as raw files and sources of virtual datasets.
                let is_whole = |scan: &Scan| scan.refused.is_empty() && member.stands_alone();
                let is_whole = scanned.as_ref().is_ok_and(is_whole);
                // A member of another state than listed has none.
                key = key.filter(|key| is_whole && opener.key(number) == Some(*key));
                scanned
            });
            let scanned = scanned.map_err(|error| (is_left_out(&error, opener), error));
            let mut gathered = lock(&gathered);
            gathered.take(number, name, scanned, key);
            opener.scanned(false);
            if let Err(error) = cancel.go_on() {
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
        scanning.threads.min(NEAR_THREADS)
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
            opener.scanned(true);
            known.insert(number);
        });
        match read {
            Ok(kept) => self.kept = Some(kept),
            Err(error) => log::debug!("what was read of files that are joined: {error}"),
        }
        known
    }

    /// Takes what was read of a member, and keeps it by the `key`, if there is one, for the next time.
    /// An error says first whether the member is left out for it.
    fn take(
        &mut self,
        number: usize,
        name: &Path,
        scanned: std::result::Result<Scan, (bool, Error)>,
        key: Option<Key>,
    ) {
        let mut scan = match scanned {
            Ok(scan) => scan,
            Err((true, error)) => {
                let what = name.escape_ascii().to_string();
                let reason = format!("left out: {error}");
                self.told.push((number, Told { what, reason }));
                return;
            }
            // It may be read the next time: to leave it out would show fill in its place.
            Err((false, error)) => {
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
            refused: scan.refused,
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
