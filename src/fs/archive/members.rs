//! The data files of an archive: those that are open, and those of which the kernel knows inodes.
//!
//! A member is opened when something inside of it is asked for. A bounded number of members is
//! open; the one that was used least recently is closed. A closed member keeps the numbers of its
//! inodes and the state that it was seen in, so that it can be opened again without a trace: the
//! numbers, the handles and what the kernel keeps stay right. A member that has changed meanwhile
//! shows another generation, as a mounted file does.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use lru::LruCache;

use crate::error::Result;
use crate::fs::filesystem::Filesystem;
use crate::fs::handle::{Handle, Opened};
use crate::fs::inodes::Inodes;
use crate::fs::requests::Ino;
use crate::limits;
use crate::memory::lock::lock;
use crate::source::identity::Identity;

/// Opens the member of the second argument as the first one says.
pub(super) type OpenMember = Box<dyn Fn(&Opening<'_>) -> Result<Filesystem> + Send + Sync>;

/// What opening a member takes over from the last time.
pub(super) struct Opening<'a> {
    /// From the root of the archive.
    pub(super) path: &'a Path,
    pub(super) inodes: &'a Arc<Inodes>,
    /// The state that it was seen in last, and its generation.
    pub(super) seen: Option<(Identity, u32)>,
}

/// A data file of the archive.
pub(super) struct Member {
    /// The number of its entry, which is its root's.
    pub(super) entry: Ino,
    path: PathBuf,
    inodes: Arc<Inodes>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    open: Option<Arc<OpenMemberFile>>,
    seen: Option<(Identity, u32)>,
}

/// A member that is open.
pub(super) struct OpenMemberFile {
    pub(super) filesystem: Filesystem,
    /// Its own handles, by those of the archive.
    handles: Mutex<HashMap<u64, Opened>>,
}

/// All members.
pub(super) struct Members {
    open: OpenMember,
    most: usize,
    known: Mutex<HashMap<Ino, Known>>,
    /// The open ones, by their entries.
    recent: Mutex<LruCache<Ino, Arc<Member>>>,
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
            recent: Mutex::new(LruCache::unbounded()),
        }
    }

    /// The data file at `path` with the entry `entry`.
    pub(super) fn get(&self, entry: Ino, path: &Path) -> Arc<Member> {
        let mut known = lock(&self.known);
        let known = known.entry(entry).or_insert_with(|| Known {
            member: Arc::new(Member {
                entry,
                path: path.to_path_buf(),
                inodes: Arc::new(Inodes::of_a_member()),
                state: Mutex::default(),
            }),
            is_open: false,
            uses: 0,
        });
        Arc::clone(&known.member)
    }

    /// The member, opened if need be.
    ///
    /// # Errors
    /// As it cannot be opened.
    pub(super) fn opened(&self, member: &Arc<Member>) -> Result<Arc<OpenMemberFile>> {
        let mut state = lock(&member.state);
        if let Some(opened) = state.open.clone() {
            // `make_room` takes these two locks in the other order.
            drop(state);
            lock(&self.recent).promote(&member.entry);
            return Ok(opened);
        }
        let filesystem = (self.open)(&Opening {
            path: &member.path,
            inodes: &member.inodes,
            seen: state.seen.clone(),
        })?;
        let handles = Mutex::default();
        let opened = Arc::new(OpenMemberFile {
            filesystem,
            handles,
        });
        state.open = Some(Arc::clone(&opened));
        drop(state);
        if let Some(known) = lock(&self.known).get_mut(&member.entry) {
            known.is_open = true;
        }
        lock(&self.recent).put(member.entry, Arc::clone(member));
        self.make_room();
        Ok(opened)
    }

    /// Closes members, the least recently used first, until so many are open as may be, and these
    /// are not too heavy.
    pub(super) fn make_room(&self) {
        loop {
            let mut recent = lock(&self.recent);
            let weights = recent.iter().map(|(_, member)| member.weight());
            let is_heavy = weights.sum::<u64>() > limits::OPEN_MOUNTED_BYTES;
            if recent.len() <= self.most && !(is_heavy && recent.len() > 1) {
                return;
            }
            let Some((_, member)) = recent.pop_lru() else {
                return;
            };
            drop(recent);
            self.close(&member);
        }
    }

    fn close(&self, member: &Member) {
        let mut state = lock(&member.state);
        let closed = state.open.take();
        if let Some(closed) = &closed {
            state.seen = closed.filesystem.seen().or(state.seen.take());
        }
        drop(state);
        let mut known = lock(&self.known);
        if let Some(own) = known.get_mut(&member.entry) {
            own.is_open = false;
            if own.uses == 0 {
                known.remove(&member.entry);
            }
        }
        drop(known);
        // What it holds may take time to drop, for which others need not wait.
        drop(closed);
    }

    /// Counts one more use of the member, which keeps its numbers.
    pub(super) fn use_once_more(&self, member: &Arc<Member>) {
        let mut known = lock(&self.known);
        let own = known.entry(member.entry).or_insert_with(|| Known {
            member: Arc::clone(member),
            is_open: false,
            uses: 0,
        });
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

impl Member {
    /// The numbers of its inodes.
    pub(super) fn inodes(&self) -> &Inodes {
        &self.inodes
    }

    fn weight(&self) -> u64 {
        let state = lock(&self.state);
        let open = state.open.as_ref();
        open.map_or(0, |open| open.filesystem.weight())
    }
}

impl Member {
    /// The member, if it is open and nobody is about to open or close it.
    pub(super) fn open_already(&self) -> Option<Arc<OpenMemberFile>> {
        self.state.try_lock().ok()?.open.clone()
    }
}

impl OpenMemberFile {
    /// The member's own handle for `handle` of the archive, if it has one.
    pub(super) fn known_handle(&self, handle: u64) -> Option<Handle> {
        lock(&self.handles).get(&handle).map(|known| known.handle)
    }

    /// The member's own handle for `handle` of the archive; `open` opens it where the member was
    /// closed since.
    ///
    /// # Errors
    /// As it cannot be opened again.
    pub(super) fn handle(
        &self,
        handle: u64,
        open: impl FnOnce(&Filesystem) -> Result<Opened>,
    ) -> Result<Handle> {
        if let Some(known) = lock(&self.handles).get(&handle) {
            return Ok(known.handle);
        }
        let opened = open(&self.filesystem)?;
        let mut handles = lock(&self.handles);
        if let Some(known) = handles.get(&handle) {
            // Another reader of the handle was faster.
            self.filesystem.release(opened.handle);
            return Ok(known.handle);
        }
        handles.insert(handle, opened);
        Ok(opened.handle)
    }

    /// Keeps the member's own handle `opened` for `handle` of the archive.
    pub(super) fn keep(&self, handle: u64, opened: Opened) {
        lock(&self.handles).insert(handle, opened);
    }

    /// Closes what `handle` of the archive stands for.
    pub(super) fn release(&self, handle: u64) {
        let released = lock(&self.handles).remove(&handle);
        if let Some(opened) = released {
            self.filesystem.release(opened.handle);
        }
    }
}

impl Member {
    /// Closes what `handle` of the archive stands for, if the member is open.
    pub(super) fn release(&self, handle: u64) {
        let open = lock(&self.state).open.clone();
        if let Some(open) = open {
            open.release(handle);
        }
    }
}
