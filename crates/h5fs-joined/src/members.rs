//! The members of a joined directory: the scan of each member, and a cache of open members.

pub(super) mod content;
pub(super) mod convention;
mod conventions;
mod far_opening;
mod layout;
pub(super) mod links;
pub(crate) mod member_cache;
pub mod opener;
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

use h5fs_conventions::padded::pad_array;
use h5fs_reader::array::Engine;
use h5fs_reader::error::{Cause, Error, Result};
use h5fs_reader::memory::cancel::CancelToken;
use h5fs_reader::memory::lock::lock;
use h5fs_reader::memory::request_budget::RequestBudget;
use h5fs_reader::model::{Array, Container, NodeId, NodeKind};
use h5fs_reader::wire::{Count, to_u64};
use lru::LruCache;

use crate::limits;
use crate::members::content::ElementSummary;
use crate::members::far_opening::PendingMembers;
use crate::members::links::OpenFile;
use crate::members::member_cache::MemberCache;
use crate::members::opener::is_permanently_omitted;
pub use crate::members::opener::{MemberFiles, MemberKey, OpenedMember};
use crate::members::scan::{CommonMetadata, MemberScan, scan};
use crate::members::skeleton::Skeleton;
use crate::paths::{Omission, Path};

/// Options of a scan of all members.
pub struct ScanOptions<'a> {
    /// Number of threads that scan local members.
    pub threads: usize,
    /// The cache file in which the scans of members are stored for later joins.
    pub cache_file: Option<&'a File>,
    /// Cancels the scan once no request waits for its result.
    pub cancel: &'a CancelToken,
}

/// An array in a member's open file.
pub(super) struct MemberVariable {
    /// The file that contains the array: the member, or the target file of one of its links.
    pub(super) file: Arc<OpenFile>,
    pub(super) node: NodeId,
    pub(super) array: Arc<Array>,
}

/// The result of a successful scan of one member.
#[derive(Debug)]
pub(super) struct Member {
    /// The member's index among all files of the directory.
    pub(super) number: usize,
    pub(super) name: Path,
    /// The index of the member's skeleton in [`Members::skeletons`].
    pub(super) skeleton: usize,
    /// The length of each dimension of the skeleton.
    pub(super) lengths: Box<[u64]>,
    /// The stored lengths of variables that are shorter than their dimensions, by variable index.
    stored_lengths: Vec<(usize, Box<[u64]>)>,
    /// For each variable of the skeleton, its elements or a summary of them, as far as the scan
    /// read them.
    pub(super) summaries: Box<[ElementSummary]>,
    /// Paths of objects that the joined file cannot show, each with the reason.
    pub(super) refusals: Vec<(Path, String)>,
}

/// The members of a joined directory that were scanned.
pub(super) struct Members {
    pub(super) list: Vec<Member>,
    pub(super) skeletons: Vec<Arc<Skeleton>>,
    /// For each skeleton, the attributes and scalars that all its members have in common.
    pub(super) common_metadata: Vec<CommonMetadata>,
    opener: Box<dyn MemberFiles>,
    engine: Arc<Engine>,
    /// Cache of open members, by file number.
    open_members: Mutex<LruCache<usize, Arc<OpenFile>>>,
    /// Remote members that threads are opening.
    pending_members: PendingMembers<Arc<OpenFile>>,
    /// Remaining budget in bytes for the elements of joined arrays in memory.
    inline_budget: AtomicU64,
    /// Remaining budget in bytes for elements that are read only to compare members.
    comparison_budget: AtomicU64,
    /// Remaining number of members that may be opened again only to compare them.
    reopen_budget: AtomicU64,
    weight: u64,
}

/// Maximum number of members in the cache of open members.
pub(crate) const MAX_OPEN_MEMBERS: NonZeroUsize = NonZeroUsize::new(64).unwrap();

/// Number of threads that scan remote members. These threads mostly wait for the server.
const REMOTE_SCAN_THREADS: usize = 64;

/// Maximum number of threads that scan a local directory.
const MAX_LOCAL_SCAN_THREADS: usize = 16;

/// The results of a scan in progress.
#[derive(Default)]
struct ScanResults<'f> {
    cache: Option<MemberCache<'f>>,
    list: Vec<Member>,
    skeletons: HashMap<Arc<Skeleton>, usize>,
    common_metadata: Vec<CommonMetadata>,
    elements: HashSet<Arc<[u8]>>,
    weight: u64,
    omissions: Vec<(usize, Omission)>,
    failure: Option<Error>,
}

impl Members {
    /// Scans all members, except those whose scans are in the cache file. Adds each member that
    /// must be omitted to `omissions`.
    ///
    /// # Errors
    /// Fails if the scans need too much memory, a member cannot be read now but may be readable
    /// later, or the scan is cancelled.
    pub(super) fn scan(
        engine: &Arc<Engine>,
        opener: Box<dyn MemberFiles>,
        scanning: &ScanOptions<'_>,
        omissions: &mut Vec<Omission>,
    ) -> Result<Self> {
        let files = opener.member_paths().len();
        Error::check_limit(files, limits::JOINED_FILES, "joined: files of a directory")?;
        opener.report_start();
        let gathered = scan_members(engine, &*opener, scanning);
        if let Some(error) = gathered.failure {
            return Err(error);
        }
        let mut list = gathered.list;
        list.sort_by_key(|member| member.number);
        let mut unread = gathered.omissions;
        unread.sort_by_key(|(number, _)| *number);
        omissions.extend(unread.into_iter().map(|(_, omission)| omission));
        let mut skeletons: Vec<_> = gathered.skeletons.into_iter().collect();
        skeletons.sort_by_key(|(_, number)| *number);
        let rest = limits::JOINED_BYTES.minus_or_zero(gathered.weight);
        Ok(Members {
            list,
            skeletons: skeletons
                .into_iter()
                .map(|(skeleton, _)| skeleton)
                .collect(),
            common_metadata: gathered.common_metadata,
            opener,
            engine: Arc::clone(engine),
            open_members: Mutex::new(LruCache::new(MAX_OPEN_MEMBERS)),
            pending_members: PendingMembers::default(),
            inline_budget: AtomicU64::new(rest),
            comparison_budget: AtomicU64::new(limits::JOINED_BYTES),
            reopen_budget: AtomicU64::new(limits::JOINED_REOPENED),
            weight: gathered.weight,
        })
    }

    /// Reserves memory for a joined array in the budget for arrays in memory. Returns false if the
    /// budget does not suffice.
    pub(super) fn reserve_inline(&self, bytes: u64) -> bool {
        reserve(&self.inline_budget, bytes)
    }

    /// Returns the skeleton of a member.
    pub(super) fn member_skeleton(&self, member: &Member) -> &Skeleton {
        &self.skeletons[member.skeleton]
    }

    /// Opens a member by its file number, for a request that may be cancelled. A request that waits
    /// for a server counts as heavy.
    ///
    /// # Errors
    /// Fails as [`MemberFiles::reopen`] does. Returns [`Error::cancelled`] if the request is
    /// cancelled or postponed.
    pub(super) fn open_cancellable(
        self: &Arc<Self>,
        file: usize,
        cancel: &CancelToken,
    ) -> Result<Arc<OpenFile>> {
        if !self.is_remote() {
            return self.open(file);
        }
        if let Some(open) = self.cached_member(file) {
            return Ok(open);
        }
        cancel.require_heavy_slot()?;
        PendingMembers::open(self, file, cancel, Members::open)
    }

    /// Opens a member like [`open_cancellable`](Self::open_cancellable), but cannot be cancelled.
    ///
    /// # Errors
    /// Fails as [`MemberFiles::reopen`] does.
    pub(super) fn open(&self, file: usize) -> Result<Arc<OpenFile>> {
        if let Some(open) = self.cached_member(file) {
            return Ok(open);
        }
        let opened = OpenFile::new(self.opener.reopen(file)?);
        let gone = lock(&self.open_members).push(file, Arc::clone(&opened));
        drop(gone);
        Ok(opened)
    }

    /// Returns a member from the cache of open members. Returns `None` if the member is not cached,
    /// or if a file to which the member refers, such as a source of a virtual dataset, was found to
    /// have changed.
    fn cached_member(&self, file: usize) -> Option<Arc<OpenFile>> {
        let mut open = lock(&self.open_members);
        let open = open
            .get(&file)
            .filter(|open| !open.has_linked_file_changed());
        open.map(Arc::clone)
    }

    /// Returns an array of a member. `file` is the open member. The array is padded to the lengths
    /// of its dimensions.
    ///
    /// # Errors
    /// `Stale` if the array has changed since the scan. Fails if it cannot be read.
    pub(super) fn open_variable(
        &self,
        file: &Arc<OpenFile>,
        member: &Member,
        variable: usize,
        budget: &RequestBudget,
    ) -> Result<MemberVariable> {
        let scanned = &self.member_skeleton(member).variables[variable];
        let name = || {
            let (file, path) = (member.name.escape_ascii(), scanned.path.escape_ascii());
            format!("{file}:/{path}")
        };
        let found = file.object_at(&*self.opener, &scanned.path, budget)?;
        let (file, node) = found.ok_or_else(|| Error::from_cause(Cause::Stale, name()))?;
        let array = match &file.for_request(budget).node(node)?.kind {
            NodeKind::Array(array) => Arc::clone(array),
            _ => return Err(Error::corrupt("joined: a member has no array", None)),
        };
        let dims = scanned.dims.iter().map(|&dim| member.lengths[dim]);
        let dims: Vec<u64> = dims.collect();
        let stored = member.stored_lengths(variable).unwrap_or(&dims);
        if array.shape.dims() != stored || array.datatype != scanned.datatype {
            return Err(Error::from_cause(Cause::Stale, name()));
        }
        let array = if stored == dims {
            array
        } else {
            Arc::new(pad_array(&array, dims))
        };
        Ok(MemberVariable { file, node, array })
    }

    /// Returns whether `files` members may be opened again to compare their elements. Members that
    /// fit into the cache of open members are free. More members must be local, and their number is
    /// subtracted from the budget for opening members again.
    pub(super) fn reserve_reopening(&self, files: usize) -> bool {
        files <= MAX_OPEN_MEMBERS.get()
            || !self.is_remote() && reserve(&self.reopen_budget, to_u64(files))
    }

    /// Returns two hashes of the elements of a member's variable. Returns `None` if the variable is
    /// too large, the budget for comparisons does not suffice, or the elements are in files that
    /// may not be shown.
    ///
    /// # Errors
    /// Fails if the elements cannot be read.
    pub(super) fn hash_variable(
        &self,
        member: &Member,
        variable: usize,
    ) -> Result<Option<[u64; 2]>> {
        let open = self.open(member.number)?;
        let MemberVariable { file, node, array } =
            self.open_variable(&open, member, variable, &RequestBudget::default())?;
        let bytes = array.byte_length()?;
        let is_small = bytes <= limits::JOINED_COMPARED && reserve(&self.comparison_budget, bytes);
        if !is_small {
            return Ok(None);
        }
        self.verify(&**file.container(), node)?;
        let elements = content::read_elements(&self.engine, &**file.container(), &array);
        let elements = content::ignore_hidden_elements(elements)?;
        Ok(elements.map(|elements| content::hash_pair(&elements)))
    }

    /// Verifies the checksum of the block that contains an array, if verification is enabled.
    ///
    /// # Errors
    /// `Corrupt` if the checksum differs. Fails if the block cannot be read.
    pub(super) fn verify(&self, container: &dyn Container, array: NodeId) -> Result<()> {
        if self.opener.should_verify() {
            content::verify(&self.engine, container, array)
        } else {
            Ok(())
        }
    }

    /// Returns whether the members are on a server, so that opening one sends requests.
    pub(super) fn is_remote(&self) -> bool {
        self.opener.is_remote()
    }

    /// Returns the approximate memory of all scans, in bytes.
    pub(super) fn weight(&self) -> u64 {
        self.weight
    }
}

impl AsRef<PendingMembers<Arc<OpenFile>>> for Members {
    fn as_ref(&self) -> &PendingMembers<Arc<OpenFile>> {
        &self.pending_members
    }
}

/// Subtracts bytes from the remaining budget `left`. Returns false, and subtracts nothing, if the
/// budget does not suffice.
fn reserve(left: &AtomicU64, bytes: u64) -> bool {
    let order = Ordering::Relaxed;
    let rest = |left: u64| left.checked_sub(bytes);
    left.fetch_update(order, order, rest).is_ok()
}

impl Member {
    /// Returns the stored lengths of a variable that is shorter than its dimensions, or `None` for
    /// any other variable.
    pub(super) fn stored_lengths(&self, variable: usize) -> Option<&[u64]> {
        let short = &self.stored_lengths;
        let at = short.binary_search_by_key(&variable, |short| short.0);
        at.ok().and_then(|at| short.get(at)).map(|short| &*short.1)
    }
}

fn scan_members<'f>(
    engine: &Arc<Engine>,
    opener: &dyn MemberFiles,
    scanning: &ScanOptions<'f>,
) -> ScanResults<'f> {
    let (kept, cancel) = (scanning.cache_file, scanning.cancel);
    let mut gathered = ScanResults {
        weight: opener.weight(),
        ..ScanResults::default()
    };
    let known = kept.map_or_else(HashSet::new, |file| {
        gathered.load_cached_scans(opener, file)
    });
    let gathered = Mutex::new(gathered);
    let next = AtomicUsize::new(0);
    let work = || {
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            let Some(name) = opener.member_paths().get(number) else {
                return;
            };
            if known.contains(&number) {
                continue;
            }
            // The state of the file before any read.
            let mut key = kept.and_then(|_| opener.cache_key(number));
            let scanned = opener.open(number, cancel).and_then(|opened| {
                let member = OpenFile::new(opened);
                let scanned = scan(engine, opener, &member);
                // The key does not depend on other files, such as raw files and sources of virtual
                // datasets.
                let is_whole = |scan: &MemberScan| {
                    scan.refusals.is_empty() && member.has_used_no_other_files()
                };
                let is_whole = scanned.as_ref().is_ok_and(is_whole);
                // If the member has changed since it was listed, its scan is not stored.
                key = key.filter(|key| is_whole && opener.cache_key(number) == Some(*key));
                scanned
            });
            let scanned = scanned.map_err(|error| (is_permanently_omitted(&error, opener), error));
            let mut gathered = lock(&gathered);
            gathered.add_scan(number, name, scanned, key);
            opener.report_scanned(false);
            if let Err(error) = cancel.check_cancelled() {
                gathered.failure = Some(error);
            }
            if gathered.failure.is_some() {
                return;
            }
        }
    };
    let most = if opener.is_remote() {
        REMOTE_SCAN_THREADS
    } else {
        scanning.threads.min(MAX_LOCAL_SCAN_THREADS)
    };
    let others = most
        .min(opener.member_paths().len().minus_or_zero(known.len()))
        .minus_or_zero(1);
    thread::scope(|scope| {
        for _ in 0..others {
            let thread = thread::Builder::new().name("join".to_owned());
            // If a thread cannot start, the other threads do its work.
            let _ = thread.spawn_scoped(scope, work);
        }
        work();
    });
    gathered
        .into_inner()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
}

impl<'f> ScanResults<'f> {
    /// Reads the scans that the cache file contains. Returns the numbers of the members with a
    /// stored scan.
    fn load_cached_scans(&mut self, opener: &dyn MemberFiles, file: &'f File) -> HashSet<usize> {
        let numbers = 0..opener.member_paths().len();
        let keys = numbers.filter_map(|number| Some((opener.cache_key(number)?, number)));
        let mut known = HashSet::new();
        let read = MemberCache::read(file, &keys.collect(), &mut |number, scan| {
            let Some(name) = opener.member_paths().get(number) else {
                return;
            };
            self.add_scan(number, name, Ok(scan), None);
            opener.report_scanned(true);
            known.insert(number);
        });
        match read {
            Ok(kept) => self.cache = Some(kept),
            Err(error) => log::debug!("reading what is known about joined files: {error}"),
        }
        known
    }

    /// Adds the scan of a member to the results, and stores it in the cache file under `key` if the
    /// member has a key. For an error, the flag in `scanned` states whether the member is omitted
    /// because of the error.
    fn add_scan(
        &mut self,
        number: usize,
        name: &Path,
        scanned: std::result::Result<MemberScan, (bool, Error)>,
        key: Option<MemberKey>,
    ) {
        let mut scan = match scanned {
            Ok(scan) => scan,
            Err((true, error)) => {
                let what = name.escape_ascii().to_string();
                let reason = format!("left out: {error}");
                self.omissions.push((
                    number,
                    Omission {
                        subject: what,
                        reason,
                    },
                ));
                return;
            }
            // The member may be readable later. Omitting it would show fill values in its place.
            Err((false, error)) => {
                self.failure = Some(error);
                return;
            }
        };
        let own = size_of::<Member>().plus(name.len());
        self.weight = self.weight.plus(to_u64(own)).plus(scan.weight());
        let values = scan.summaries.into_iter();
        scan.summaries = values.map(|known| self.share_elements(known)).collect();
        if let (Some(kept), Some(key)) = (&mut self.cache, key) {
            kept.write_member(key, &scan);
        }
        let skeleton = self.add_skeleton(scan.skeleton, scan.common_metadata);
        self.list.push(Member {
            number,
            name: Path::clone(name),
            skeleton,
            lengths: scan.lengths,
            stored_lengths: scan.stored_lengths,
            summaries: scan.summaries,
            refusals: scan.refusals,
        });
        if self.weight > limits::JOINED_BYTES {
            let most = limits::JOINED_BYTES;
            self.failure = Some(Error::limit("joined: kept bytes of files", most));
        } else if self.skeletons.len() > limits::JOINED_SKELETONS {
            let most = to_u64(limits::JOINED_SKELETONS);
            self.failure = Some(Error::limit(
                "joined: number of different kinds of files",
                most,
            ));
        }
    }

    /// Adds a skeleton to the list, unless an equal one exists. Returns its index. Attributes and
    /// scalars stay common to all members with this skeleton only if `common` has the same values.
    fn add_skeleton(&mut self, skeleton: Arc<Skeleton>, common: CommonMetadata) -> usize {
        if let Some(&number) = self.skeletons.get(&skeleton) {
            self.common_metadata[number].retain_equal(&common);
            return number;
        }
        let number = self.skeletons.len();
        let attributes = common.attributes.iter().flat_map(|own| own.iter());
        let attributes: usize = attributes
            .map(|(name, value)| name.len() + value.elements.len() + 150)
            .sum();
        self.weight = self.weight.plus(skeleton.weight()).plus(to_u64(attributes));
        self.skeletons.insert(skeleton, number);
        self.common_metadata.push(common);
        number
    }

    /// Returns a summary that shares its elements with equal elements of other members, so that
    /// equal elements are in memory only once.
    fn share_elements(&mut self, known: ElementSummary) -> ElementSummary {
        let ElementSummary::Elements(elements) = known else {
            // The ends of a long coordinate have few bytes.
            return known;
        };
        if let Some(kept) = self.elements.get(&elements) {
            return ElementSummary::Elements(Arc::clone(kept));
        }
        self.weight = self.weight.plus(to_u64(elements.len()).plus(64));
        self.elements.insert(Arc::clone(&elements));
        ElementSummary::Elements(elements)
    }
}
