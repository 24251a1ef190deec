//! Notifications of changes to watched files, from inotify(7).
//!
//! A `write` updates the file's times when it starts. A reader that compares only the times takes
//! half-written content for the final state, until the next write. The kernel reports a `write`
//! after it has ended and before its caller continues. A watch set before the first read therefore
//! reports every byte that was read too early.
//!
//! The kernel does not report changes made on another machine, or on a lower layer of stacked
//! filesystems. For stores to mapped memory and for Linux's asynchronous I/O (`io_submit`), it
//! reports only that the file was closed.

use std::collections::HashMap;
use std::fs::File;
use std::os::fd::{AsFd, AsRawFd};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, Weak};
use std::time::Duration;

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::eventfd::{EfdFlags, EventFd};
use nix::sys::inotify::{AddWatchFlags, InitFlags, Inotify, InotifyEvent, WatchDescriptor};
use nix::sys::statfs::{self, FsType, fstatfs};

use crate::limits;
use crate::memory::lock::lock;

/// Filesystems whose files only this kernel can change, and only by calls that it reports.
const FULLY_REPORTED_FILESYSTEMS: [FsType; 8] = [
    statfs::EXT4_SUPER_MAGIC,
    statfs::BTRFS_SUPER_MAGIC,
    statfs::TMPFS_MAGIC,
    statfs::F2FS_SUPER_MAGIC,
    statfs::MSDOS_SUPER_MAGIC,
    // The layers of an overlay may only be changed through the overlay.
    statfs::OVERLAYFS_SUPER_MAGIC,
    // XFS; musl does not define a constant for it.
    FsType(0x5846_5342),
    // ZFS, which is maintained outside the kernel.
    FsType(0x2fc1_2fc1),
];

/// The watches of all files of a mount.
#[derive(Debug)]
pub struct ChangeWatcher {
    inotify: Inotify,
    watched: Mutex<HashMap<WatchDescriptor, Vec<Weak<FileEvents>>>>,
    /// Number of events for all watched files so far.
    event_count: AtomicU64,
    /// Becomes readable after an event, whichever thread read it from inotify.
    event_fd: EventFd,
}

/// The events seen for one file.
#[derive(Debug, Default)]
struct FileEvents {
    is_changed: AtomicBool,
    is_closed: AtomicBool,
}

/// A watch for changes of one file. The file itself need not stay open.
#[derive(Debug)]
pub struct FileWatch {
    changes: Arc<ChangeWatcher>,
    descriptor: WatchDescriptor,
    events: Arc<FileEvents>,
    can_report_every_write: bool,
}

impl ChangeWatcher {
    /// Creates the inotify instance. Returns `None` if the system's limit of instances is reached.
    pub fn new() -> Option<Arc<Self>> {
        let flags = InitFlags::IN_CLOEXEC | InitFlags::IN_NONBLOCK;
        let inotify = Inotify::init(flags);
        let inotify = inotify.inspect_err(|errno| log::debug!("inotify: {errno}"));
        let news = EventFd::from_flags(EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK);
        Some(Arc::new(ChangeWatcher {
            inotify: inotify.ok()?,
            watched: Mutex::default(),
            event_count: AtomicU64::new(0),
            event_fd: news.ok()?,
        }))
    }

    /// Watches `file`. Returns `None` if the mount or its user has too many watches.
    pub fn watch(self: &Arc<Self>, file: &File) -> Option<FileWatch> {
        let mask = AddWatchFlags::IN_MODIFY
            | AddWatchFlags::IN_CLOSE_WRITE
            | AddWatchFlags::IN_ATTRIB
            | AddWatchFlags::IN_MOVE_SELF
            | AddWatchFlags::IN_DELETE_SELF;
        // Another file may have taken the name, but the descriptor still refers to this file.
        let path = format!("/proc/self/fd/{}", file.as_raw_fd());
        let is_local = fstatfs(file)
            .is_ok_and(|kind| FULLY_REPORTED_FILESYSTEMS.contains(&kind.filesystem_type()));
        let signs = Arc::<FileEvents>::default();
        let mut watched = self.lock();
        // Pending events are about other files.
        self.process_events(&mut watched);
        if watched.len() >= limits::FILE_WATCHES {
            return None;
        }
        let descriptor = self.inotify.add_watch(path.as_str(), mask);
        let descriptor =
            descriptor.inspect_err(|errno| log::debug!("the file cannot be watched: {errno}"));
        let descriptor = descriptor.ok()?;
        let watching = watched.entry(descriptor).or_default();
        watching.push(Arc::downgrade(&signs));
        Some(FileWatch {
            changes: Arc::clone(self),
            descriptor,
            events: signs,
            can_report_every_write: is_local,
        })
    }

    /// Reads all pending events, including every write that ended before this call.
    pub fn read_pending(&self) {
        self.process_events(&mut self.lock());
    }

    /// Returns the number of events for all watched files so far.
    pub fn event_count(&self) -> u64 {
        self.event_count.load(Ordering::Acquire)
    }

    /// Waits for an event, for at most `most`. Returns at once if an event arrived since the last
    /// call returned.
    pub fn wait(&self, most: Duration) {
        let told = [self.inotify.as_fd(), self.event_fd.as_fd()];
        let mut waiting = told.map(|told| PollFd::new(told, PollFlags::POLLIN));
        let timeout = PollTimeout::try_from(most).unwrap_or(PollTimeout::MAX);
        if let Err(errno) = poll(&mut waiting, timeout)
            && errno != Errno::EINTR
        {
            std::thread::sleep(most);
        }
        // The read fails if the descriptor is not readable.
        let _ = self.event_fd.read();
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<WatchDescriptor, Vec<Weak<FileEvents>>>> {
        lock(&self.watched)
    }

    fn process_events(&self, watched: &mut HashMap<WatchDescriptor, Vec<Weak<FileEvents>>>) {
        loop {
            match self.inotify.read_events() {
                Ok(events) => events.iter().for_each(|event| self.notify(watched, event)),
                Err(Errno::EINTR) => {}
                Err(_) => return,
            }
        }
    }

    fn notify(
        &self,
        watched: &mut HashMap<WatchDescriptor, Vec<Weak<FileEvents>>>,
        event: &InotifyEvent,
    ) {
        let tell = |signs: &FileEvents| match event.mask {
            AddWatchFlags::IN_CLOSE_WRITE => signs.is_closed.store(true, Ordering::Release),
            _ => signs.is_changed.store(true, Ordering::Release),
        };
        let all = |watching: &Vec<Weak<FileEvents>>| {
            watching
                .iter()
                .filter_map(Weak::upgrade)
                .for_each(|signs| tell(&signs));
        };
        if event.mask.contains(AddWatchFlags::IN_Q_OVERFLOW) {
            watched.values().for_each(all);
        } else if let Some(watching) = watched.get(&event.wd) {
            all(watching);
        } else {
            return;
        }
        self.event_count.fetch_add(1, Ordering::Release);
        // If no thread waits, the descriptor stays readable for the next one.
        let _ = self.event_fd.write(1);
    }
}

impl FileWatch {
    /// Returns whether the file was written, renamed or given other times since the watch began.
    pub fn is_changed(&self) -> bool {
        self.events.is_changed.load(Ordering::Acquire)
    }

    /// Returns whether a process that had the file open for writing has closed it since the watch
    /// began.
    pub(crate) fn has_writer_closed(&self) -> bool {
        self.events.is_closed.load(Ordering::Acquire)
    }

    /// Returns whether the kernel reports every write to the file.
    pub(crate) fn can_report_every_write(&self) -> bool {
        self.can_report_every_write
    }
}

impl Drop for FileWatch {
    fn drop(&mut self) {
        let mut watched = self.changes.lock();
        let Some(watching) = watched.get_mut(&self.descriptor) else {
            return;
        };
        let own = Arc::as_ptr(&self.events);
        watching.retain(|signs| !std::ptr::eq(signs.as_ptr(), own));
        if watching.is_empty() {
            watched.remove(&self.descriptor);
            // The file may have been deleted, and the watch with it.
            let _ = self.changes.inotify.rm_watch(self.descriptor);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::FileExt;

    fn writing(path: &std::path::Path) -> File {
        File::options().write(true).open(path).unwrap()
    }

    #[test]
    fn a_write_is_reported_after_it_ended() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let changes = ChangeWatcher::new().unwrap();
        let watch = changes.watch(file.as_file()).unwrap();
        let writer = writing(file.path());
        changes.read_pending();
        assert!(!watch.is_changed() && changes.event_count() == 0);
        writer.write_all_at(b"new", 0).unwrap();
        changes.read_pending();
        assert!(watch.is_changed() && !watch.has_writer_closed());
        // A new watch reports only later changes.
        let later = changes.watch(file.as_file()).unwrap();
        drop(writer);
        changes.wait(Duration::from_secs(60));
        changes.read_pending();
        assert!(!later.is_changed() && later.has_writer_closed() && watch.has_writer_closed());
    }

    #[test]
    fn a_closed_file_is_still_watched() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let changes = ChangeWatcher::new().unwrap();
        let opened = File::open(file.path()).unwrap();
        let [first, second] = [0; 2].map(|_| changes.watch(&opened).unwrap());
        drop((opened, first));
        let writer = writing(file.path());
        writer.write_all_at(b"new", 0).unwrap();
        changes.read_pending();
        assert!(second.is_changed());
        drop(second);
        assert!(changes.lock().is_empty());
        writer.write_all_at(b"newer", 0).unwrap();
        changes.read_pending();
        assert_eq!(changes.event_count(), 1);
    }

    #[test]
    fn a_removed_name_is_reported() {
        let directory = tempfile::tempdir().unwrap();
        let [path, other] = ["source", "other"].map(|name| directory.path().join(name));
        let changes = ChangeWatcher::new().unwrap();
        for go in [
            |path: &std::path::Path, _: &std::path::Path| std::fs::remove_file(path),
            |path: &std::path::Path, other: &std::path::Path| std::fs::rename(path, other),
            |path: &std::path::Path, other: &std::path::Path| std::fs::rename(other, path),
        ] {
            std::fs::write(&path, b"old").unwrap();
            let watch = changes.watch(&File::open(&path).unwrap()).unwrap();
            go(&path, &other).unwrap();
            changes.read_pending();
            assert!(watch.is_changed());
        }
    }

    #[test]
    fn watches_are_bounded() {
        let directory = tempfile::tempdir().unwrap();
        let changes = ChangeWatcher::new().unwrap();
        let watch = |number: usize| {
            let path = directory.path().join(number.to_string());
            std::fs::write(&path, b"").unwrap();
            changes.watch(&File::open(&path).unwrap())
        };
        let kept: Vec<_> = (0..limits::FILE_WATCHES).map_while(watch).collect();
        assert_eq!(kept.len(), limits::FILE_WATCHES);
        assert!(watch(limits::FILE_WATCHES).is_none());
        drop(kept);
        assert!(watch(0).is_some());
    }
}
