//! The data files of an archive: the open ones, and the ones with inodes that the kernel knows.
//!
//! A member is opened when an entry inside it is requested. The number of open members is bounded;
//! the least recently used one is closed. A closed member keeps the numbers of its inodes and its
//! last state. So reopening it is invisible: numbers, handles and the kernel's caches stay valid.
//! If a member has changed in the meantime, it has a new generation, like a mounted file.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use h5fs_reader::error::Result;
use h5fs_reader::memory::cancel::CancelToken;
use h5fs_reader::memory::lock::lock;
use h5fs_reader::wire::to_u64;
use lru::LruCache;

use crate::archive::heavy_members::{HeavyMembers, HeavyRequest, MAX_LIGHT_BYTES};
use crate::data_files::mount::LastSeenState;
use crate::filesystem::Filesystem;
use crate::limits;
use crate::requests::{Ino, Requests};
use crate::state::handle::Handle;
use crate::state::inodes::Inodes;

/// A function that opens a member.
pub(super) type OpenMemberFunction =
    Box<dyn Fn(&OpeningArguments<'_>) -> Result<Filesystem> + Send + Sync>;

/// The arguments for opening a data file. Inodes and the last seen state come from the previous
/// time that the file was open.
pub(super) struct OpeningArguments<'a> {
    /// Path from the root of the archive.
    pub(super) path: &'a Path,
    /// Whether to open a joined file. Then `path` is its name, which selects the data files to
    /// join.
    pub(super) is_joined: bool,
    /// The token that cancels the opening if no request waits for it.
    pub(super) cancel: &'a CancelToken,
    pub(super) inodes: &'a Arc<Inodes>,
    /// The state of the data file when it was last open; `None` if it was never open.
    pub(super) last_seen: Option<LastSeenState>,
}

/// A data file of the archive, open or closed, or a joined file.
pub(super) struct ArchiveMember {
    /// Inode number of the data file's directory in the mount.
    pub(super) entry: Ino,
    path: PathBuf,
    /// Whether this is a joined file.
    pub(super) is_joined: bool,
    inodes: Arc<Inodes>,
    state: Mutex<MemberState>,
    /// A lock held by the thread that opens the data file, so that others wait for the result.
    /// Opening may take long.
    opening: Mutex<()>,
    /// Memory of the data file in bytes at the last measurement. Stays set after it is closed.
    weight: AtomicU64,
}

#[derive(Default)]
struct MemberState {
    open: Option<Arc<OpenMemberFile>>,
    last_seen: Option<LastSeenState>,
}

/// An open data file.
pub(super) struct OpenMemberFile {
    pub(super) filesystem: Filesystem,
    /// Memory in bytes at the last measurement.
    measured_weight: AtomicU64,
}

/// Maximum number of joined files that stay open for later requests. Opening a joined file again
/// scans all its data files, which takes long.
const OPEN_JOINED: usize = 4;

/// All data files of the archive that are open or have inodes known to the kernel.
pub(super) struct ArchiveMembers {
    open: OpenMemberFunction,
    max_open: usize,
    known: Mutex<HashMap<Ino, KnownMember>>,
    recent: Mutex<RecentMembers>,
    /// The open joined files.
    joined: Mutex<RecentMembers>,
    heavy: HeavyMembers,
}

/// A list of open data files, in the order of their last use.
struct RecentMembers {
    /// Maximum number of open data files. `max_bytes` is the maximum of their total memory.
    max_members: usize,
    max_bytes: u64,
    /// Open data files by the inode number of their directory, each with its memory in bytes.
    members: LruCache<Ino, (Arc<ArchiveMember>, u64)>,
    /// Total memory of all data files in the list, in bytes.
    weight: u64,
}

impl RecentMembers {
    /// Removes the least recently used data files from the list while `is_too_much` returns true.
    /// Returns the removed ones, which the caller closes.
    fn close_while(&mut self, is_too_much: impl Fn(&Self) -> bool) -> Vec<Arc<ArchiveMember>> {
        let mut closed = Vec::new();
        while is_too_much(self) {
            let Some((_, (member, weight))) = self.members.pop_lru() else {
                break;
            };
            self.weight = self.weight.saturating_sub(weight);
            closed.push(member);
        }
        closed
    }

    fn new(most: usize, most_bytes: u64) -> Mutex<Self> {
        Mutex::new(RecentMembers {
            max_members: most,
            max_bytes: most_bytes,
            members: LruCache::unbounded(),
            weight: 0,
        })
    }
}

/// A data file that is open, or that has handles or inodes in use.
struct KnownMember {
    member: Arc<ArchiveMember>,
    is_open: bool,
    /// Number of handles and inodes of the data file that are in use.
    use_count: u64,
}

impl ArchiveMembers {
    /// Creates an empty set of data files. `open` opens a data file; at most `most` are open at the
    /// same time.
    pub(super) fn new(open: OpenMemberFunction, most: usize) -> Self {
        ArchiveMembers {
            open,
            max_open: most.max(1),
            known: Mutex::default(),
            recent: RecentMembers::new(most.max(1), limits::OPEN_MOUNTED_BYTES),
            joined: RecentMembers::new(OPEN_JOINED, limits::JOINED_BYTES),
            heavy: HeavyMembers::default(),
        }
    }

    /// Returns the data file at `path`, or the joined file named `path`. `entry` is the inode
    /// number of its directory.
    pub(super) fn get(&self, entry: Ino, path: &Path, is_joined: bool) -> Arc<ArchiveMember> {
        let mut known = lock(&self.known);
        let known = known.entry(entry).or_insert_with(|| KnownMember {
            member: Arc::new(ArchiveMember {
                entry,
                path: path.to_path_buf(),
                is_joined,
                inodes: Arc::new(Inodes::for_member()),
                state: Mutex::default(),
                opening: Mutex::default(),
                weight: AtomicU64::new(0),
            }),
            is_open: false,
            use_count: 0,
        });
        Arc::clone(&known.member)
    }

    /// Opens the joined file that `name` selects. The caller owns the opened file, which does not
    /// count as an open member.
    ///
    /// # Errors
    /// Fails if the files cannot be joined.
    pub(super) fn open_joined(&self, name: &Path) -> Result<Filesystem> {
        (self.open)(&OpeningArguments {
            path: name,
            is_joined: true,
            cancel: &CancelToken::default(),
            inodes: &Arc::new(Inodes::for_member()),
            last_seen: None,
        })
    }

    /// Returns the list of open files that `member` belongs to: joined files have a list of their
    /// own.
    fn recent_list(&self, member: &ArchiveMember) -> &Mutex<RecentMembers> {
        if member.is_joined {
            &self.joined
        } else {
            &self.recent
        }
    }

    /// Returns the number of open data files, and their total memory in bytes.
    pub(super) fn open_totals(&self) -> (usize, u64) {
        let recent = lock(&self.recent);
        (recent.members.len(), recent.weight)
    }

    /// Calls `answer` with the filesystem of `member`, opening it if necessary. A joined file is
    /// first updated if its directory has changed.
    ///
    /// # Errors
    /// Fails if the member cannot be opened, or with the error of `answer`.
    pub(super) fn with_member<T>(
        &self,
        member: &Arc<ArchiveMember>,
        cancel: &CancelToken,
        answer: impl FnOnce(&Filesystem) -> Result<T>,
    ) -> Result<T> {
        self.with_member_without_refresh(member, cancel, |filesystem| {
            if member.is_joined {
                filesystem.refresh(cancel)?;
            }
            answer(filesystem)
        })
    }

    /// Calls `answer` like [`with_member`](Self::with_member), for requests about open files. A
    /// joined file is not updated for changes of its directory, because a read must not list
    /// directories.
    pub(super) fn with_member_without_refresh<T>(
        &self,
        member: &Arc<ArchiveMember>,
        cancel: &CancelToken,
        answer: impl FnOnce(&Filesystem) -> Result<T>,
    ) -> Result<T> {
        let (opened, _request) = self.begin_request(member, cancel)?;
        let answered = answer(&opened.filesystem);
        // The call may have filled caches of the member.
        if opened.weight_change() > MAX_LIGHT_BYTES / to_u64(self.max_open) {
            self.make_room(member, &opened);
        }
        answered
    }

    /// Opens `member` if necessary, and registers a request to it. A request to a heavy member
    /// waits for admission.
    fn begin_request(
        &self,
        member: &Arc<ArchiveMember>,
        cancel: &CancelToken,
    ) -> Result<(Arc<OpenMemberFile>, Option<HeavyRequest<'_>>)> {
        let begin = || {
            self.heavy
                .begin_request(member.entry, member.weight(), cancel)
        };
        let request = begin()?;
        let opened = self.open_member(member, cancel)?;
        if request.is_some() || member.weight() <= MAX_LIGHT_BYTES {
            return Ok((opened, request));
        }
        // Only opening the member revealed that it is heavy.
        drop(opened);
        let request = begin()?;
        Ok((self.open_member(member, cancel)?, request))
    }

    fn open_member(
        &self,
        member: &Arc<ArchiveMember>,
        cancel: &CancelToken,
    ) -> Result<Arc<OpenMemberFile>> {
        if let Some(opened) = self.touch_if_open(member) {
            return Ok(opened);
        }
        let opening = lock(&member.opening);
        if let Some(opened) = self.touch_if_open(member) {
            // Another thread has opened the member in the meantime.
            return Ok(opened);
        }
        if member.is_joined {
            self.make_room_for_joined();
        }
        let seen = lock(&member.state).last_seen.clone();
        let filesystem = (self.open)(&OpeningArguments {
            path: &member.path,
            is_joined: member.is_joined,
            cancel,
            inodes: &member.inodes,
            last_seen: seen,
        })?;
        let opened = Arc::new(OpenMemberFile {
            filesystem,
            measured_weight: AtomicU64::new(0),
        });
        let mut state = lock(&member.state);
        state.open = Some(Arc::clone(&opened));
        known_member(&mut lock(&self.known), member).is_open = true;
        let mut recent = lock(self.recent_list(member));
        let weighed = (Arc::clone(member), 0);
        if let Some((_, weight)) = recent.members.put(member.entry, weighed) {
            recent.weight = recent.weight.saturating_sub(weight);
        }
        drop(recent);
        drop(state);
        drop(opening);
        self.make_room(member, &opened);
        Ok(opened)
    }

    /// Returns the filesystem of `member` if it is open, and marks `member` as most recently used.
    fn touch_if_open(&self, member: &ArchiveMember) -> Option<Arc<OpenMemberFile>> {
        let opened = member.filesystem_if_open()?;
        lock(self.recent_list(member))
            .members
            .promote(&member.entry);
        Some(opened)
    }

    /// Measures the memory of `member`. Then closes the least recently used data files until the
    /// number of open files and their memory are within the limits.
    fn make_room(&self, member: &ArchiveMember, opened: &OpenMemberFile) {
        let weight = opened.filesystem.weight();
        if !member.is_joined {
            member.weight.store(weight, Ordering::Relaxed);
        }
        let mut recent = lock(self.recent_list(member));
        if let Some((_, known)) = recent.members.peek_mut(&member.entry) {
            let before = std::mem::replace(known, weight);
            opened.measured_weight.store(weight, Ordering::Relaxed);
            recent.weight = recent.weight.saturating_sub(before).saturating_add(weight);
        }
        let closed = recent.close_while(|recent| {
            recent.members.len() > recent.max_members
                || recent.weight > recent.max_bytes && recent.members.len() > 1
        });
        drop(recent);
        closed.iter().for_each(|member| self.close(member));
    }

    /// Closes the least recently used joined files so that another one can be opened. The joined
    /// file to be opened is assumed to need as much memory as the heaviest open one.
    fn make_room_for_joined(&self) {
        let mut recent = lock(&self.joined);
        let heaviest = recent.members.iter().map(|(_, (_, weight))| *weight).max();
        let next = heaviest.unwrap_or(0);
        let closed = recent.close_while(|recent| {
            recent.weight.saturating_add(next) > recent.max_bytes && !recent.members.is_empty()
        });
        drop(recent);
        closed.iter().for_each(|member| self.close(member));
    }

    fn close(&self, member: &ArchiveMember) {
        let mut state = lock(&member.state);
        let closed = state.open.take();
        if let Some(closed) = &closed {
            state.last_seen = closed.filesystem.last_seen().or(state.last_seen.take());
        }
        let mut known = lock(&self.known);
        if let Some(own) = known.get_mut(&member.entry) {
            own.is_open = false;
            if own.use_count == 0 {
                known.remove(&member.entry);
            }
        }
        drop(known);
        drop(state);
        // Dropping the filesystem may take time, so the locks are released first.
        drop(closed);
    }

    /// Counts one more handle or inode of `member` that is in use. While any is in use, `member`
    /// keeps its inode numbers.
    pub(super) fn add_use(&self, member: &Arc<ArchiveMember>) {
        let mut known = lock(&self.known);
        let own = known_member(&mut known, member);
        own.use_count = own.use_count.saturating_add(1);
    }

    /// Subtracts one use of the data file whose directory has the inode number `entry`.
    pub(super) fn remove_use(&self, entry: Ino) {
        let mut known = lock(&self.known);
        if let Some(own) = known.get_mut(&entry) {
            own.use_count = own.use_count.saturating_sub(1);
            if own.use_count == 0 && !own.is_open {
                known.remove(&entry);
            }
        }
    }
}

/// Returns the record of the member, creating it if necessary.
fn known_member<'a>(
    all: &'a mut HashMap<Ino, KnownMember>,
    member: &Arc<ArchiveMember>,
) -> &'a mut KnownMember {
    all.entry(member.entry).or_insert_with(|| KnownMember {
        member: Arc::clone(member),
        is_open: false,
        use_count: 0,
    })
}

impl ArchiveMember {
    /// Returns the inodes within the data file.
    pub(super) fn inodes(&self) -> &Inodes {
        &self.inodes
    }

    /// Returns the memory in bytes at the last measurement.
    fn weight(&self) -> u64 {
        self.weight.load(Ordering::Relaxed)
    }

    /// Returns the member's filesystem, if it is open.
    pub(super) fn filesystem_if_open(&self) -> Option<Arc<OpenMemberFile>> {
        lock(&self.state).open.clone()
    }
}

impl OpenMemberFile {
    /// Measures the memory of the data file. Returns the absolute difference from the last recorded
    /// measurement, in bytes.
    fn weight_change(&self) -> u64 {
        let counted = self.measured_weight.load(Ordering::Relaxed);
        self.filesystem.weight().abs_diff(counted)
    }
}

impl ArchiveMember {
    /// Closes the file or directory of `handle`, unless the data file is closed.
    pub(super) fn release(&self, handle: Handle) {
        if let Some(open) = self.filesystem_if_open() {
            open.filesystem.release(handle);
        }
    }
}
