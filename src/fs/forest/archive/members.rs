//! The data files of an archive: those that are open, and those of which the kernel knows inodes.
//!
//! A member is opened when something inside of it is asked for. A bounded number of members is
//! open; the one that was used least recently is closed. A closed member keeps the numbers of its
//! inodes and the state that it was seen in, so that it can be opened again without a trace: the
//! numbers, the handles and what the kernel keeps stay right. A member that has changed meanwhile
//! shows another generation, as a mounted file does.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use lru::LruCache;

use crate::error::Result;
use crate::fs::filesystem::Filesystem;
use crate::fs::forest::archive::heavy::{Heavy, LIGHT, Request};
use crate::fs::forest::mount::Seen;
use crate::fs::requests::{Ino, Requests};
use crate::fs::state::handle::Handle;
use crate::fs::state::inodes::Inodes;
use crate::limits;
use crate::memory::cancel::CancelToken;
use crate::memory::lock::lock;
use crate::wire::to_u64;

/// Opens the member of the second argument as the first one says.
pub(super) type OpenMember = Box<dyn Fn(&Opening<'_>) -> Result<Filesystem> + Send + Sync>;

/// What opening a member takes over from the last time.
pub(super) struct Opening<'a> {
    /// From the root of the archive.
    pub(super) path: &'a Path,
    /// Whether it is several files as one, of the name that the path is.
    pub(super) is_joined: bool,
    /// Ends the work where nobody waits for it any more.
    pub(super) cancel: &'a CancelToken,
    pub(super) inodes: &'a Arc<Inodes>,
    /// The state that it was seen in last.
    pub(super) seen: Option<Seen>,
}

/// A data file of the archive.
pub(super) struct Member {
    /// The number of its entry, which is its root's.
    pub(super) entry: Ino,
    path: PathBuf,
    /// Whether it is several files as one.
    pub(super) is_joined: bool,
    inodes: Arc<Inodes>,
    state: Mutex<State>,
    /// Held by the thread that opens it, which may take long.
    opening: Mutex<()>,
    /// Bytes that it took when that was looked at last, open or closed.
    weight: AtomicU64,
}

#[derive(Default)]
struct State {
    open: Option<Arc<OpenMemberFile>>,
    seen: Option<Seen>,
}

/// A member that is open.
pub(super) struct OpenMemberFile {
    pub(super) filesystem: Filesystem,
    /// Bytes that it was found to take when that was looked at last.
    weighed: AtomicU64,
}

/// Several files as one that are open at a time: to scan the files takes long.
const OPEN_JOINED: usize = 4;

/// All members.
pub(super) struct Members {
    open: OpenMember,
    most: usize,
    known: Mutex<HashMap<Ino, Known>>,
    recent: Mutex<Recent>,
    /// Those that are several files as one.
    joined: Mutex<Recent>,
    heavy: Heavy,
}

/// Open members.
struct Recent {
    /// How many may be open, and the bytes that they may take, together.
    most: usize,
    most_bytes: u64,
    /// By their entries, each with the bytes that it takes.
    members: LruCache<Ino, (Arc<Member>, u64)>,
    /// Bytes of all of them.
    weight: u64,
}

impl Recent {
    /// Takes members out, the least recently used first, while `is_too_much`.
    fn close_while(&mut self, is_too_much: impl Fn(&Self) -> bool) -> Vec<Arc<Member>> {
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
        Mutex::new(Recent {
            most,
            most_bytes,
            members: LruCache::unbounded(),
            weight: 0,
        })
    }
}

/// A member that is open, or has been.
struct Known {
    member: Arc<Member>,
    is_open: bool,
    /// Handles and inodes of it that are known outside.
    uses: u64,
}

impl Members {
    /// Members that `open` opens, `most` of them at a time.
    pub(super) fn new(open: OpenMember, most: usize) -> Self {
        Members {
            open,
            most: most.max(1),
            known: Mutex::default(),
            recent: Recent::new(most.max(1), limits::OPEN_MOUNTED_BYTES),
            joined: Recent::new(OPEN_JOINED, limits::JOINED_BYTES),
            heavy: Heavy::default(),
        }
    }

    /// The data file at `path` with the entry `entry`, or several files as one.
    pub(super) fn get(&self, entry: Ino, path: &Path, is_joined: bool) -> Arc<Member> {
        let mut known = lock(&self.known);
        let known = known.entry(entry).or_insert_with(|| Known {
            member: Arc::new(Member {
                entry,
                path: path.to_path_buf(),
                is_joined,
                inodes: Arc::new(Inodes::of_a_member()),
                state: Mutex::default(),
                opening: Mutex::default(),
                weight: AtomicU64::new(0),
            }),
            is_open: false,
            uses: 0,
        });
        Arc::clone(&known.member)
    }

    /// Opens the files as one that `name` chooses. No list of open members has them.
    ///
    /// # Errors
    /// Fails if the files cannot be joined.
    pub(super) fn open_joined(&self, name: &Path) -> Result<Filesystem> {
        (self.open)(&Opening {
            path: name,
            is_joined: true,
            cancel: &CancelToken::default(),
            inodes: &Arc::new(Inodes::of_a_member()),
            seen: None,
        })
    }

    /// The open members of the kind of one.
    fn list_of(&self, member: &Member) -> &Mutex<Recent> {
        if member.is_joined {
            &self.joined
        } else {
            &self.recent
        }
    }

    /// How many members are open, and the bytes that they take.
    pub(super) fn open_now(&self) -> (usize, u64) {
        let recent = lock(&self.recent);
        (recent.members.len(), recent.weight)
    }

    /// The answer of the member, opened if need be, as its directory is now.
    ///
    /// # Errors
    /// Fails if it cannot be opened, or as `answer` says.
    pub(super) fn ask<T>(
        &self,
        member: &Arc<Member>,
        cancel: &CancelToken,
        answer: impl FnOnce(&Filesystem) -> Result<T>,
    ) -> Result<T> {
        self.ask_as_seen(member, cancel, |filesystem| {
            if member.is_joined {
                filesystem.refresh(cancel)?;
            }
            answer(filesystem)
        })
    }

    /// Like [`ask`](Self::ask), for what is open: several files as one answer as their directory was
    /// seen last, since nothing is listed for a read.
    pub(super) fn ask_as_seen<T>(
        &self,
        member: &Arc<Member>,
        cancel: &CancelToken,
        answer: impl FnOnce(&Filesystem) -> Result<T>,
    ) -> Result<T> {
        let (opened, _request) = self.begin(member, cancel)?;
        let answered = answer(&opened.filesystem);
        // What it worked out for the answer, it may keep.
        if opened.weigh() > LIGHT / to_u64(self.most) {
            self.make_room(member, &opened);
        }
        answered
    }

    /// Opens the member for a request, which waits where the member is heavy.
    fn begin(
        &self,
        member: &Arc<Member>,
        cancel: &CancelToken,
    ) -> Result<(Arc<OpenMemberFile>, Option<Request<'_>>)> {
        let begin = || self.heavy.begin(member.entry, member.weight(), cancel);
        let request = begin()?;
        let opened = self.opened(member, cancel)?;
        if request.is_some() || member.weight() <= LIGHT {
            return Ok((opened, request));
        }
        // Only now is it known to be heavy.
        drop(opened);
        let request = begin()?;
        Ok((self.opened(member, cancel)?, request))
    }

    fn opened(&self, member: &Arc<Member>, cancel: &CancelToken) -> Result<Arc<OpenMemberFile>> {
        if let Some(opened) = self.used(member) {
            return Ok(opened);
        }
        let opening = lock(&member.opening);
        if let Some(opened) = self.used(member) {
            // Another thread has opened it meanwhile.
            return Ok(opened);
        }
        if member.is_joined {
            self.make_room_for_joined();
        }
        let seen = lock(&member.state).seen.clone();
        let filesystem = (self.open)(&Opening {
            path: &member.path,
            is_joined: member.is_joined,
            cancel,
            inodes: &member.inodes,
            seen,
        })?;
        let opened = Arc::new(OpenMemberFile {
            filesystem,
            weighed: AtomicU64::new(0),
        });
        let mut state = lock(&member.state);
        state.open = Some(Arc::clone(&opened));
        known_as(&mut lock(&self.known), member).is_open = true;
        let mut recent = lock(self.list_of(member));
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

    /// The member, if it is open, as the one that was used last.
    fn used(&self, member: &Member) -> Option<Arc<OpenMemberFile>> {
        let opened = member.open_already()?;
        lock(self.list_of(member)).members.promote(&member.entry);
        Some(opened)
    }

    /// Counts what the open member takes, and closes members, the least recently used
    /// first, until so many are open as may be, and these are not too heavy.
    fn make_room(&self, member: &Member, opened: &OpenMemberFile) {
        let weight = opened.filesystem.weight();
        if !member.is_joined {
            member.weight.store(weight, Ordering::Relaxed);
        }
        let mut recent = lock(self.list_of(member));
        if let Some((_, known)) = recent.members.peek_mut(&member.entry) {
            let before = std::mem::replace(known, weight);
            opened.weighed.store(weight, Ordering::Relaxed);
            recent.weight = recent.weight.saturating_sub(before).saturating_add(weight);
        }
        let closed = recent.close_while(|recent| {
            recent.members.len() > recent.most
                || recent.weight > recent.most_bytes && recent.members.len() > 1
        });
        drop(recent);
        closed.iter().for_each(|member| self.close(member));
    }

    /// Closes joined files, the least recently used first, before another choice of the same files is
    /// joined: it takes no more memory than the heaviest of them, about.
    fn make_room_for_joined(&self) {
        let mut recent = lock(&self.joined);
        let heaviest = recent.members.iter().map(|(_, (_, weight))| *weight).max();
        let next = heaviest.unwrap_or(0);
        let closed = recent.close_while(|recent| {
            recent.weight.saturating_add(next) > recent.most_bytes && !recent.members.is_empty()
        });
        drop(recent);
        closed.iter().for_each(|member| self.close(member));
    }

    fn close(&self, member: &Member) {
        let mut state = lock(&member.state);
        let closed = state.open.take();
        if let Some(closed) = &closed {
            state.seen = closed.filesystem.seen().or(state.seen.take());
        }
        let mut known = lock(&self.known);
        if let Some(own) = known.get_mut(&member.entry) {
            own.is_open = false;
            if own.uses == 0 {
                known.remove(&member.entry);
            }
        }
        drop(known);
        drop(state);
        // What it holds may take time to drop, for which others need not wait.
        drop(closed);
    }

    /// Counts one more use of the member, which keeps its numbers.
    pub(super) fn use_once_more(&self, member: &Arc<Member>) {
        let mut known = lock(&self.known);
        let own = known_as(&mut known, member);
        own.uses = own.uses.saturating_add(1);
    }

    /// Takes back one use.
    pub(super) fn leave(&self, entry: Ino) {
        let mut known = lock(&self.known);
        if let Some(own) = known.get_mut(&entry) {
            own.uses = own.uses.saturating_sub(1);
            if own.uses == 0 && !own.is_open {
                known.remove(&entry);
            }
        }
    }
}

/// What is known of the member.
fn known_as<'a>(all: &'a mut HashMap<Ino, Known>, member: &Arc<Member>) -> &'a mut Known {
    all.entry(member.entry).or_insert_with(|| Known {
        member: Arc::clone(member),
        is_open: false,
        uses: 0,
    })
}

impl Member {
    /// The numbers of its inodes.
    pub(super) fn inodes(&self) -> &Inodes {
        &self.inodes
    }

    /// Bytes that it took when that was looked at last.
    fn weight(&self) -> u64 {
        self.weight.load(Ordering::Relaxed)
    }

    /// The member, if it is open.
    pub(super) fn open_already(&self) -> Option<Arc<OpenMemberFile>> {
        lock(&self.state).open.clone()
    }
}

impl OpenMemberFile {
    /// How far what it takes now is from what was counted.
    fn weigh(&self) -> u64 {
        let counted = self.weighed.load(Ordering::Relaxed);
        self.filesystem.weight().abs_diff(counted)
    }
}

impl Member {
    /// Closes what `handle` stands for, if the member is open.
    pub(super) fn release(&self, handle: Handle) {
        if let Some(open) = self.open_already() {
            open.filesystem.release(handle);
        }
    }
}
