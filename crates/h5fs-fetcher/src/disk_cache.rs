//! The disk cache, which all mounts of a user share.
//!
//! The key of an object is a hash of its server, path, entity tag, length and date. The object's
//! pages are in [segments](Segment). The object's URL, which `h5fs cache list` shows, is in a
//! separate file. No file contains a secret, and each file may be deleted at any time.
//!
//! The least recently used segments are deleted first. If the disk is full, writing to the cache
//! stops.

pub mod contents;

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::ops::Range;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, OnceLock};
use std::time::{Duration, SystemTime};

use h5fs_reader::error::io_error_message;
use h5fs_reader::memory::lock::lock;
use h5fs_reader::source::remote::segment::{ObjectKey, PAGE, PAGES, Segment, checksum};
use h5fs_reader::source::remote::state::ObjectState;
use h5fs_reader::wire::{to_u64, to_usize};
use nix::fcntl::{Flock, FlockArg, OFlag};
use sha2::{Digest, Sha256};

use crate::limits;
use crate::settings::RemoteSettings;

/// Version of the format of cache files. Each version has its own subdirectory.
const FORMAT_VERSION: &str = "h5fs-1";

/// Maximum number of bytes that are written to the cache before its size is measured again.
const MEASURE_INTERVAL_BYTES: u64 = 64 << 20;

/// Precision of the recorded time at which a segment was last used.
const USE_TIME_PRECISION: Duration = Duration::from_secs(60);

/// Suffix of a cache file with the state of an object.
const STATE_SUFFIX: &str = ".state";
/// Suffix of a cache file with the URL of an object.
const NAME_SUFFIX: &str = ".name";

/// Maximum size in bytes of a file with the state of an object.
const STATE_BYTES: u64 = 4096;

/// A cache directory.
#[derive(Debug)]
pub struct DiskCache {
    directory: PathBuf,
    /// Maximum total size of the cache files, in bytes.
    max_bytes: u64,
    /// Number of bytes that may be written before the cache's size is measured again.
    left: Mutex<u64>,
    /// The reason why nothing is written any longer. Set after a write has failed.
    full_reason: OnceLock<String>,
    /// Whether nothing is read any longer, because a wrong page could not be removed.
    is_reading_disabled: AtomicBool,
}

impl DiskCache {
    /// Opens the cache that the settings name, if they name one.
    ///
    /// # Errors
    /// Fails with the system's error. `PermissionDenied` if other users can access the directory.
    pub fn from_settings(settings: &RemoteSettings) -> io::Result<Option<Self>> {
        let open = |directory: &PathBuf| Self::open(directory, settings.disk_cache_size());
        settings.disk_cache.as_ref().map(open).transpose()
    }

    /// Opens the cache in a directory, and creates the directory if it does not exist. `most` is
    /// the maximum size in bytes.
    ///
    /// # Errors
    /// Fails with the system's error. `PermissionDenied` if other users can access the directory.
    pub(super) fn open(directory: &Path, most: u64) -> io::Result<Self> {
        let directory = std::path::absolute(directory)?.join(FORMAT_VERSION);
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&directory)?;
        Self::open_existing(directory, most)
    }

    /// Opens an existing cache, to list or trim it.
    ///
    /// # Errors
    /// Fails as `open` does. `NotFound` if the cache does not exist.
    pub fn open_to_manage(directory: &Path) -> io::Result<Self> {
        Self::open_existing(std::path::absolute(directory)?.join(FORMAT_VERSION), 0)
    }

    fn open_existing(directory: PathBuf, most: u64) -> io::Result<Self> {
        let metadata = directory.symlink_metadata()?;
        let is_own = metadata.uid() == nix::unistd::geteuid().as_raw();
        if !metadata.is_dir() || !is_own || metadata.mode() & 0o077 != 0 {
            let reason = format!("{}: other users have access", directory.display());
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, reason));
        }
        Ok(DiskCache {
            directory,
            max_bytes: most,
            left: Mutex::new(0),
            full_reason: OnceLock::new(),
            is_reading_disabled: AtomicBool::new(false),
        })
    }

    /// Measures the size of the cache, and checks that the current user can write to its directory.
    ///
    /// # Errors
    /// Fails with the system's error.
    pub(super) fn check_writable(self) -> io::Result<Self> {
        create_cache_file(&self.directory.join("lock"))?;
        self.enforce_limit();
        Ok(self)
    }

    /// Returns the directory that contains the cache files.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Returns the cache key of an object in this state. `place` is the object's location. Returns
    /// `None` without a strong entity tag, because two states of the object could then have the
    /// same key.
    pub(super) fn key(&self, place: &str, state: &ObjectState) -> Option<ObjectKey> {
        state.has_strong_tag().then(|| {
            let hash = Sha256::new()
                .chain_update(place)
                .chain_update([0])
                .chain_update(state.length.to_le_bytes())
                .chain_update(state.modified.to_le_bytes())
                .chain_update(&state.etag);
            ObjectKey(hash.finalize().into())
        })
    }

    /// Returns the reason why nothing is written any longer, or `None` if pages are still written.
    pub(super) fn full_reason(&self) -> Option<&str> {
        self.full_reason.get().map(String::as_str)
    }

    /// Returns the state that the cache recorded last for the object at this location. Returns
    /// `None` if no state is recorded, or if the record is damaged.
    pub(super) fn state(&self, place: &str) -> Option<ObjectState> {
        let mut record = Vec::new();
        let file = open_cache_file(&self.state_path(place), OpenOptions::new().read(true)).ok()?;
        file.take(STATE_BYTES).read_to_end(&mut record).ok()?;
        let (stated, facts) = record.split_first_chunk()?;
        let is_right = checksum(&ObjectKey(Sha256::digest(place).into()), 0, facts) == *stated;
        let (length, facts) = facts.split_first_chunk().filter(|_| is_right)?;
        let (modified, etag) = facts.split_first_chunk()?;
        Some(ObjectState {
            length: u64::from_le_bytes(*length),
            modified: i64::from_le_bytes(*modified),
            etag: etag.to_vec(),
        })
    }

    /// Records the state of the object at this location.
    pub(super) fn store_state(&self, place: &str, state: &ObjectState) {
        let mut facts = state.length.to_le_bytes().to_vec();
        facts.extend_from_slice(&state.modified.to_le_bytes());
        facts.extend_from_slice(&state.etag);
        let stated = checksum(&ObjectKey(Sha256::digest(place).into()), 0, &facts);
        let path = self.state_path(place);
        self.attempt_write(|| {
            let mut file = create_cache_file(&path)?;
            file.set_len(0)?;
            file.write_all(&[&stated[..], &facts].concat())
        });
    }

    /// Stores the URL of an object, which `h5fs cache list` shows.
    pub(super) fn set_name(&self, key: &ObjectKey, name: &str) {
        let mut ends = (0..=name.len().min(limits::CACHED_NAME)).rev();
        let end = ends.find(|end| name.is_char_boundary(*end));
        let name = end.and_then(|end| name.get(..end)).unwrap_or_default();
        let path = self.directory.join(format!("{}{NAME_SUFFIX}", hex(&key.0)));
        self.attempt_write(|| {
            let mut file = create_cache_file(&path)?;
            file.set_len(0)?;
            file.write_all(name.as_bytes())
        });
    }

    /// Reads the page with this number into `page`, which has the page's length. Returns whether
    /// the cache contains the page.
    pub(super) fn read_page(&self, key: &ObjectKey, number: u64, page: &mut [u8]) -> bool {
        let read = self.open_segment(key, number).and_then(|segment| {
            let is_right = segment.read(number, page)?;
            if is_right {
                touch(segment.file())?;
            }
            Ok(is_right)
        });
        read.unwrap_or(false)
    }

    /// Returns the segment that contains the first of the pages `numbers`, and the number of
    /// consecutive pages from that page on that the segment contains. The caller must verify the
    /// checksums of the pages. Returns `None` if the segment cannot be read.
    pub(super) fn find_segment(
        &self,
        key: &ObjectKey,
        numbers: &Range<u64>,
    ) -> Option<(Segment, u64)> {
        let end = (numbers.start / PAGES + 1) * PAGES;
        let own = numbers.start..numbers.end.min(end);
        let found = self.open_segment(key, own.start).and_then(|segment| {
            let written = segment.present_pages(&own)?;
            touch(segment.file())?;
            Ok((segment, written))
        });
        found.ok()
    }

    /// Removes a page from the cache, because its content was wrong.
    pub(super) fn remove_page(&self, key: &ObjectKey, number: u64) {
        let file = open_cache_file(
            &self.segment_path(key, number),
            OpenOptions::new().write(true),
        );
        let forgotten = file.and_then(|file| Segment::new(file, *key).mark_absent(number));
        if let Err(error) = forgotten
            && error.kind() != io::ErrorKind::NotFound
            && !self.is_reading_disabled.swap(true, Ordering::Relaxed)
        {
            let directory = self.directory.display();
            let reason = io_error_message(&error);
            log::warn!("{directory}: the disk cache is no longer read: {reason}");
        }
    }

    fn open_segment(&self, key: &ObjectKey, number: u64) -> io::Result<Segment> {
        if self.is_reading_disabled.load(Ordering::Relaxed) {
            return Err(io::ErrorKind::InvalidData.into());
        }
        let file = open_cache_file(
            &self.segment_path(key, number),
            OpenOptions::new().read(true),
        )?;
        Ok(Segment::new(file, *key))
    }

    /// Writes the page with this number to the cache. The page has [`PAGE`] bytes, or fewer if it
    /// is the last page of the object.
    pub(super) fn write_page(&self, key: &ObjectKey, number: u64, page: &[u8]) {
        let path = self.segment_path(key, number);
        let is_written = self
            .attempt_write(|| Segment::new(create_cache_file(&path)?, *key).write(number, page));
        if is_written {
            let mut left = lock(&self.left);
            let (more, is_due) = left.overflowing_sub(to_u64(page.len()));
            *left = if is_due { 0 } else { more };
            drop(left);
            if is_due {
                self.enforce_limit();
            }
        }
    }

    /// Returns the path of the segment file that contains the page with this number.
    fn segment_path(&self, key: &ObjectKey, number: u64) -> PathBuf {
        let name = format!("{}-{:x}", hex(&key.0), number / PAGES);
        self.directory.join(name)
    }

    fn state_path(&self, place: &str) -> PathBuf {
        let name = format!("{}{STATE_SUFFIX}", hex(&Sha256::digest(place)));
        self.directory.join(name)
    }

    /// Calls `write`, unless an earlier write has failed. Returns whether `write` succeeded.
    fn attempt_write(&self, write: impl FnOnce() -> io::Result<()>) -> bool {
        if self.full_reason.get().is_some() {
            return false;
        }
        let written = write();
        if let Err(error) = &written {
            let directory = self.directory.display();
            let reason = io_error_message(error);
            let text = format!("{directory}: the disk cache is no longer written: {reason}");
            if self.full_reason.set(text.clone()).is_ok() {
                log::warn!("{text}");
            }
        }
        written.is_ok()
    }

    /// Measures the size of the cache, and deletes the least recently used files if it exceeds the
    /// limit. Only one process at a time does so.
    fn enforce_limit(&self) {
        let left = self.max_bytes / 8 * 7;
        let there = self.with_lock(false, || self.delete_beyond(self.max_bytes, left));
        let there = there.map_or(self.max_bytes, |(_, there)| there);
        let step = MEASURE_INTERVAL_BYTES.min(self.max_bytes / 16);
        *lock(&self.left) = self.max_bytes.saturating_sub(there).min(step);
    }

    /// Calls `act` while no other process deletes cache files. If another process holds the lock,
    /// waits for the lock if `waits` is set, and fails otherwise.
    fn with_lock<T>(&self, waits: bool, act: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
        let file = create_cache_file(&self.directory.join("lock"))?;
        let how = if waits {
            FlockArg::LockExclusive
        } else {
            FlockArg::LockExclusiveNonblock
        };
        let held = Flock::lock(file, how);
        let _held = held.map_err(|(_, errno)| io::Error::from(errno))?;
        act()
    }
}

/// Returns the length in bytes of the page with this number. `length` is the length of the object.
pub(super) fn page_length(number: u64, length: u64) -> usize {
    let left = length.saturating_sub(number.saturating_mul(PAGE));
    to_usize(left.min(PAGE)).unwrap_or(0)
}

fn create_cache_file(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    open_cache_file(path, options.mode(0o600))
}

/// Opens a file of the cache. Opening does not block if another kind of file, such as a pipe, is at
/// the path.
fn open_cache_file(path: &Path, options: &mut OpenOptions) -> io::Result<File> {
    let flags = OFlag::O_NONBLOCK | OFlag::O_NOFOLLOW;
    let file = options.custom_flags(flags.bits()).open(path)?;
    if file.metadata()?.is_file() {
        Ok(file)
    } else {
        Err(io::Error::other("not a regular file"))
    }
}

/// Updates the time at which a segment was last used.
fn touch(file: &File) -> io::Result<()> {
    let now = SystemTime::now();
    let used = file.metadata()?.modified()?;
    match now.duration_since(used) {
        Ok(age) if age > USE_TIME_PRECISION => file.set_modified(now),
        _ => Ok(()),
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::FileExt;

    use super::*;

    /// Number of bytes before the first page of a segment.
    const TABLE: u64 = 8192;

    fn state(etag: &str) -> ObjectState {
        ObjectState {
            length: 3 * PAGE + 5,
            etag: etag.as_bytes().to_vec(),
            modified: 7,
        }
    }

    fn cache(most: u64) -> (tempfile::TempDir, DiskCache) {
        let directory = tempfile::tempdir().unwrap();
        let cache = DiskCache::open(directory.path(), most).unwrap();
        (directory, cache)
    }

    fn page(byte: u8) -> Vec<u8> {
        vec![byte; to_usize(PAGE).unwrap()]
    }

    #[test]
    fn a_cached_page_belongs_to_one_object_state() {
        let (directory, cache) = cache(1 << 30);
        let key = cache.key("http://h/a.h5", &state("\"1\"")).unwrap();
        cache.write_page(&key, 2, &page(2));
        cache.write_page(&key, 3, b"last!");
        let other = DiskCache::open(directory.path(), 1 << 30).unwrap();
        let mut seen = page(0);
        assert!(other.read_page(&key, 2, &mut seen));
        assert_eq!(seen, page(2));
        assert!(other.read_page(&key, 3, &mut seen[..5]));
        assert!(!other.read_page(&key, 1, &mut seen) && !other.read_page(&key, 3, &mut seen));
        for (place, etag) in [("http://h/a.h5", "\"2\""), ("http://h/b.h5", "\"1\"")] {
            let key = other.key(place, &state(etag)).unwrap();
            assert!(!other.read_page(&key, 2, &mut seen));
        }
        assert!(cache.key("http://h/a.h5", &state("W/\"1\"")).is_none());
        assert!(cache.key("http://h/a.h5", &state("")).is_none());
    }

    #[test]
    fn a_state_is_remembered() {
        let (_directory, cache) = cache(1 << 30);
        assert_eq!(cache.state("http://h/a"), None);
        for etag in ["\"a long one\"", "\"1\""] {
            cache.store_state("http://h/a", &state(etag));
            assert_eq!(cache.state("http://h/a"), Some(state(etag)));
        }
    }

    /// Flips every bit of the table entry and of the state, and bits throughout the page.
    #[test]
    fn a_flipped_bit_makes_a_page_absent_and_never_wrong() {
        let (_directory, cache) = cache(1 << 30);
        let key = cache.key("http://h/a", &state("\"1\"")).unwrap();
        cache.write_page(&key, 0, &page(9));
        cache.store_state("http://h/a", &state("\"1\""));
        let path = cache.segment_path(&key, 0);
        let flip = |path: &Path, bit: u64| {
            let file = create_cache_file(path).unwrap();
            let mut byte = [0];
            file.read_exact_at(&mut byte, bit / 8).unwrap();
            byte[0] ^= 1 << (bit % 8);
            file.write_all_at(&byte, bit / 8).unwrap();
        };
        let of_page = (TABLE * 8..(TABLE + PAGE) * 8).step_by(4001);
        for bit in (0..64).chain(of_page) {
            flip(&path, bit);
            assert!(!cache.read_page(&key, 0, &mut page(0)), "bit {bit}");
            flip(&path, bit);
        }
        assert!(cache.read_page(&key, 0, &mut page(0)));
        let path = cache.state_path("http://h/a");
        let bits = path.metadata().unwrap().len() * 8;
        for bit in 0..bits {
            flip(&path, bit);
            assert_eq!(cache.state("http://h/a"), None, "bit {bit}");
            flip(&path, bit);
        }
        assert!(cache.state("http://h/a").is_some());
    }

    #[test]
    fn the_least_recently_used_segments_are_deleted() {
        let (_directory, cache) = cache(1 << 20);
        let keys: Vec<_> = (0..40)
            .map(|n| {
                cache
                    .key("http://h/a", &state(&format!("\"{n}\"")))
                    .unwrap()
            })
            .collect();
        let began = SystemTime::now() - Duration::from_secs(1000);
        for (n, key) in (0_u64..).zip(&keys) {
            cache.write_page(key, 0, &page(1));
            let path = cache.segment_path(key, 0);
            if let Ok(file) = File::open(path) {
                file.set_modified(began + Duration::from_secs(n)).unwrap();
            }
        }
        let there: Vec<_> = keys
            .iter()
            .map(|key| cache.read_page(key, 0, &mut page(0)))
            .collect();
        assert!(!there[0] && there[39], "{there:?}");
        let sizes = fs::read_dir(cache.directory()).unwrap();
        let bytes: u64 = sizes
            .map(|file| file.unwrap().metadata().unwrap().blocks() * 512)
            .sum();
        assert!(bytes <= (1 << 20) + (1 << 16) * 2, "{bytes}");
    }

    #[test]
    fn only_the_user_can_access_the_cache_directory() {
        let (directory, cache) = cache(1 << 20);
        let mode = |path: &Path| path.metadata().unwrap().mode() & 0o777;
        assert_eq!(mode(cache.directory()), 0o700);
        let key = cache.key("http://h/a", &state("\"1\"")).unwrap();
        cache.write_page(&key, 0, &page(1));
        assert_eq!(mode(&cache.segment_path(&key, 0)), 0o600);
        let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        fs::set_permissions(cache.directory(), open).unwrap();
        let refused = DiskCache::open(directory.path(), 1 << 20).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::PermissionDenied);
    }

    #[test]
    fn pages_one_after_another_are_handed_over_with_their_segment() {
        let (_directory, cache) = cache(1 << 30);
        let key = cache.key("http://h/a", &state("\"1\"")).unwrap();
        for number in [5, 6, 8, PAGES - 1, PAGES] {
            cache.write_page(&key, number, &page(number as u8));
        }
        let written = |numbers: Range<u64>| cache.find_segment(&key, &numbers).unwrap().1;
        assert_eq!((written(5..9), written(6..7), written(7..9)), (2, 1, 0));
        // The next page is in another file.
        assert_eq!(written(PAGES - 1..PAGES + 1), 1);
        assert!(
            cache
                .find_segment(&key, &(3 * PAGES..3 * PAGES + 1))
                .is_none()
        );
        let (segment, _) = cache.find_segment(&key, &(5..7)).unwrap();
        let mut seen = page(0);
        assert!(segment.read(6, &mut seen).unwrap() && seen == page(6));
        segment
            .file()
            .write_at(b"x", 0)
            .expect_err("it is read only");
        // A removed page is also missing for a reader with an open segment.
        cache.remove_page(&key, 6);
        assert_eq!(written(5..9), 1);
        assert!(!segment.read(6, &mut seen).unwrap());
        // A missing file is not an error.
        fs::remove_file(cache.segment_path(&key, 6)).unwrap();
        cache.remove_page(&key, 6);
        assert_eq!(written(PAGES..PAGES + 1), 1);
    }

    #[test]
    fn reading_stops_if_a_wrong_page_cannot_be_removed() {
        let (_directory, cache) = cache(1 << 30);
        let key = cache.key("http://h/a", &state("\"1\"")).unwrap();
        cache.write_page(&key, 1, &page(1));
        // No user can open a directory for writing.
        fs::create_dir(cache.segment_path(&key, PAGES)).unwrap();
        cache.remove_page(&key, PAGES);
        assert!(!cache.read_page(&key, 1, &mut page(0)));
        assert!(cache.find_segment(&key, &(1..2)).is_none());
    }

    /// Neither opening nor reading waits for a writer of the pipe.
    #[test]
    fn a_pipe_in_the_cache_is_ignored() {
        let (_directory, cache) = cache(1 << 30);
        let key = cache.key("http://h/a", &state("\"1\"")).unwrap();
        let pipes = [cache.segment_path(&key, 0), cache.state_path("http://h/a")];
        for pipe in &pipes {
            nix::unistd::mkfifo(pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
        }
        let (done, is_done) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            let is_there = cache.read_page(&key, 0, &mut page(0));
            let is_written = cache.find_segment(&key, &(0..1)).is_some();
            let is_known = cache.state("http://h/a").is_some();
            cache.write_page(&key, 0, &page(1));
            cache.remove_page(&key, 0);
            let is_read = cache.read_page(&key, 0, &mut page(0));
            done.send(is_there || is_written || is_known || is_read)
        });
        let found = is_done.recv_timeout(Duration::from_secs(60));
        // Opens the other end, so that a blocked thread continues.
        for pipe in &pipes {
            let _ = OpenOptions::new().read(true).write(true).open(pipe);
        }
        assert_eq!(found, Ok(false));
    }

    #[test]
    fn a_failed_write_disables_the_cache() {
        let (directory, cache) = cache(1 << 20);
        fs::remove_dir_all(directory.path()).unwrap();
        let key = cache.key("http://h/a", &state("\"1\"")).unwrap();
        cache.write_page(&key, 0, &page(1));
        assert!(cache.full_reason().is_some());
        assert!(!cache.read_page(&key, 0, &mut page(0)));
    }
}
