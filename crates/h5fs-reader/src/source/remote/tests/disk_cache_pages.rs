//! Tests of pages in files of the fetcher's disk cache.

use std::fs::{self, File};
use std::num::NonZeroUsize;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

use super::*;
use crate::source::local::descriptors::max_open_files;
use crate::source::local::rights;
use crate::source::remote::segment::{ObjectKey, PAGE, PAGES, Segment};

const KEY: ObjectKey = ObjectKey([7; 32]);

/// The disk cache of a fetcher: a directory of segment files.
struct Cache(tempfile::TempDir);

impl Cache {
    fn new() -> Arc<Self> {
        Arc::new(Cache(tempfile::tempdir().unwrap()))
    }

    fn path(&self, name: u64) -> std::path::PathBuf {
        self.0.path().join(name.to_string())
    }

    /// Writes bytes of the object, whose first page is at `offset`, to a file, and opens the file.
    fn write_segment(&self, name: u64, offset: u64, length: u64) -> File {
        let mut options = File::options();
        let file = options.read(true).write(true).create(true).truncate(false);
        let segment = Segment::new(file.open(self.path(name)).unwrap(), KEY);
        for at in (offset..offset + length).step_by(PAGE as usize) {
            let page = bytes(at, PAGE.min(offset + length - at));
            segment.write(at / PAGE, &page).unwrap();
        }
        File::open(self.path(name)).unwrap()
    }

    /// Flips a bit in each page of a file.
    fn flip(&self, name: u64) {
        let file = File::options().read(true).write(true).open(self.path(name));
        let file = file.unwrap();
        for at in (8192 + 1000..file.metadata().unwrap().len()).step_by(PAGE as usize) {
            let mut byte = [0];
            file.read_exact_at(&mut byte, at).unwrap();
            file.write_all_at(&[byte[0] ^ 4], at).unwrap();
        }
    }

    /// Returns the number of files of the cache that this process has open.
    fn open(&self) -> usize {
        let own = fs::read_dir("/proc/self/fd").unwrap();
        let targets = own.filter_map(|entry| fs::read_link(entry.unwrap().path()).ok());
        targets
            .filter(|path| path.starts_with(self.0.path()))
            .count()
    }
}

fn segment_reply(id: u64, length: u64) -> Reply {
    Reply::InSegment {
        id,
        length,
        key: KEY,
    }
}

fn hand_over(fetcher: &FakeFetcher, reply: &Reply, files: &[BorrowedFd<'_>]) {
    rights::send_with_files(fetcher.socket.as_fd(), &reply.encode(), files).unwrap();
}

/// Creates a fetcher that stores each request's bytes in the segment of its first page, and sends
/// that segment.
fn keeper(cache: &Arc<Cache>, most: u64) -> FakeConnection {
    let cache = Arc::clone(cache);
    let keep = move |fetcher: &FakeFetcher, request: &Request| match request {
        Request::Fetch {
            id, offset, length, ..
        } => {
            let file = cache.write_segment(*offset / PAGE / PAGES, *offset, *length);
            hand_over(fetcher, &segment_reply(*id, *length), &[file.as_fd()]);
        }
        _ => fetcher.serve(request),
    };
    connect_fake_fetcher(most, LONG, Box::new(keep))
}

fn discarded_pages(pair: &FakeConnection) -> Vec<u64> {
    let asked = lock(&pair.fetcher.asked);
    let pages = asked.iter().filter_map(|request| match request {
        Request::DiscardCorruptPage { offset, .. } => Some(*offset),
        _ => None,
    });
    pages.collect()
}

/// In each range, pages are alternately staged and stored in a segment.
#[test]
fn a_range_may_be_in_the_stage_and_in_segments() {
    let cache = Cache::new();
    let own = Arc::clone(&cache);
    let mixed = move |fetcher: &FakeFetcher, request: &Request| match request {
        Request::Fetch {
            id,
            object,
            offset,
            length,
            ..
        } => {
            for at in (0..*length).step_by(PAGE as usize) {
                let (first, page) = (offset + at, PAGE.min(length - at));
                if (at / PAGE).is_multiple_of(2) {
                    fetcher.write(*object, first, page);
                    let (id, length) = (*id, at + page);
                    fetcher.send_reply(&Reply::Staged { id, length });
                } else {
                    let file = own.write_segment(first % 3, first, page);
                    hand_over(fetcher, &segment_reply(*id, at + page), &[file.as_fd()]);
                }
            }
        }
        _ => fetcher.serve(request),
    };
    let pair = connect_fake_fetcher(64 * MIB, LONG, Box::new(mixed));
    let length = 10 * MIB + PAGE + 5;
    let object = pair.open(length);
    assert!(read(&object, 0, length).unwrap() == bytes(0, length));
    let parts = [
        (PAGE - 1, 2),
        (PAGE, PAGE),
        (PAGE + 7, 3 * PAGE),
        (2 * MIB + 100, 100_000),
        (length - 5, 5),
        (length - PAGE - 9, PAGE + 9),
    ];
    for (at, length) in parts {
        assert!(read(&object, at, length).unwrap() == bytes(at, length));
    }
    assert_eq!(pair.fetched().len(), 3, "all of it came once");
}

#[test]
fn segment_pages_are_dropped_without_freeing_the_stage() {
    let cache = Cache::new();
    let pair = keeper(&cache, MIB);
    let object = pair.open(20 * MIB + 5);
    for _ in 0..2 {
        assert!(read(&object, 3, 20 * MIB).unwrap() == bytes(3, 20 * MIB));
        assert!(pair.connection.staged_bytes() <= MIB);
    }
    let asked = lock(&pair.fetcher.asked).clone();
    let is_drop = |request: &Request| matches!(request, Request::FreeStage { .. });
    assert!(!asked.iter().any(is_drop), "{asked:?}");
    assert_eq!(cache.open(), 1, "the same file is open once");
    drop(object);
    pair.wait_until(|asked| {
        asked
            .iter()
            .any(|request| matches!(request, Request::Close { .. }))
    });
    assert_eq!(cache.open(), 0);
}

/// Uses one file for every 4 pages. All pages are read again, many at a time.
#[test]
fn few_files_are_open_at_a_time() {
    let files = 2 * limits::OPEN_SEGMENTS as u64;
    let most = max_open_files(NonZeroUsize::new(limits::OPEN_SEGMENTS).unwrap()).get();
    let cache = Cache::new();
    let own = Arc::clone(&cache);
    let keep = move |fetcher: &FakeFetcher, request: &Request| match request {
        Request::Fetch {
            id, offset, length, ..
        } => {
            let file = own.write_segment(offset / (4 * PAGE), *offset, *length);
            hand_over(fetcher, &segment_reply(*id, *length), &[file.as_fd()]);
        }
        _ => fetcher.serve(request),
    };
    let pair = connect_fake_fetcher(256 * MIB, LONG, Box::new(keep));
    let object = pair.open(files * 4 * PAGE);
    thread::scope(|scope| {
        for reader in 0..4 {
            let (object, cache) = (&object, &cache);
            scope.spawn(move || {
                for number in (reader..files).chain(reader..files).step_by(4) {
                    let at = number * 4 * PAGE + 5;
                    assert!(read(object, at, PAGE).unwrap() == bytes(at, PAGE));
                    // The limit, plus the files of the readers and the one that the fetcher sends.
                    assert!(cache.open() <= most + 10);
                }
            });
        }
    });
    assert!(pair.fetched().len() as u64 > files, "some came twice");
}

/// Flips, truncates or empties a file, before or after pages of it were read.
#[test]
fn a_changed_segment_returns_no_wrong_byte() {
    type Damage = fn(&Cache);
    let damages: [Damage; 3] = [
        |cache| cache.flip(0),
        |cache| {
            let file = File::options().write(true).open(cache.path(0));
            file.unwrap().set_len(100_000).unwrap();
        },
        |cache| fs::write(cache.path(0), "").unwrap(),
    ];
    for damage in damages {
        for was_read in [false, true] {
            let cache = Cache::new();
            let file = cache.write_segment(0, 0, 3 * MIB);
            let first = Mutex::new(true);
            let once = move |fetcher: &FakeFetcher, request: &Request| match request {
                Request::Fetch { id, length, .. } if std::mem::take(&mut *lock(&first)) => {
                    hand_over(fetcher, &segment_reply(*id, *length), &[file.as_fd()]);
                }
                _ => fetcher.serve(request),
            };
            let pair = connect_fake_fetcher(64 * MIB, LONG, Box::new(once));
            let object = pair.open(3 * MIB);
            if was_read {
                assert!(read(&object, 0, 3 * MIB).unwrap() == bytes(0, 3 * MIB));
            }
            damage(&cache);
            assert!(read(&object, 10, 3 * MIB - 20).unwrap() == bytes(10, 3 * MIB - 20));
            let forgotten = discarded_pages(&pair);
            assert!(forgotten.len() > 40, "{forgotten:?}");
            assert!(forgotten.iter().all(|offset| offset % PAGE == 0));
            assert_eq!(pair.connection.staged_bytes(), 3 * MIB);
        }
    }
}

#[test]
fn a_permanently_corrupt_segment_is_an_error() {
    let cache = Cache::new();
    let file = cache.write_segment(0, 0, MIB);
    cache.flip(0);
    let insist = move |fetcher: &FakeFetcher, request: &Request| match request {
        Request::Fetch { id, length, .. } => {
            hand_over(fetcher, &segment_reply(*id, *length), &[file.as_fd()]);
        }
        _ => fetcher.serve(request),
    };
    let pair = connect_fake_fetcher(64 * MIB, LONG, Box::new(insist));
    let object = pair.open(MIB);
    assert_eq!(cause(read(&object, 0, MIB)), Cause::Unavailable);
    assert_eq!(cause(read(&object, MIB / 2, 10)), Cause::Unavailable);
    assert!(pair.fetched().len() < 10);
    pair.connection.counters().unwrap();
}

/// Checks that each mismatched file ends the connection.
#[test]
fn files_that_do_not_belong_to_a_reply_end_the_connection() {
    let directory = tempfile::tempdir().unwrap();
    let regular = || tempfile::tempfile().unwrap();
    let of = |path: &Path| File::open(path).unwrap();
    let (read_end, _write_end) = std::io::pipe().unwrap();
    let pipe = File::from(std::os::fd::OwnedFd::from(read_end));
    let staged = Reply::Staged {
        id: 0,
        length: 256 * KIB,
    };
    let failed = Reply::Failed {
        id: 0,
        failure: FailureKind::Other,
        text: String::new(),
    };
    let whole = segment_reply(0, 256 * KIB);
    let lies = [
        (whole.clone(), vec![of(directory.path())]),
        (whole.clone(), vec![of(Path::new("/dev/zero"))]),
        (whole.clone(), vec![pipe]),
        (whole.clone(), vec![]),
        (whole, vec![regular(), regular()]),
        (staged, vec![regular()]),
        (failed, vec![regular()]),
        (segment_reply(0, 1 << 40), vec![regular()]),
    ];
    for (reply, files) in lies {
        let told = format!("{reply:?} {files:?}");
        let lie = move |fetcher: &FakeFetcher, request: &Request| match request {
            Request::Fetch { id, .. } => {
                let mut reply = reply.clone();
                if let Reply::Staged { id: own, .. }
                | Reply::InSegment { id: own, .. }
                | Reply::Failed { id: own, .. } = &mut reply
                {
                    *own = *id;
                }
                let files: Vec<_> = files.iter().map(AsFd::as_fd).collect();
                hand_over(fetcher, &reply, &files);
            }
            _ => fetcher.serve(request),
        };
        let pair = connect_fake_fetcher(64 * MIB, LONG, Box::new(lie));
        let object = pair.open(MIB);
        assert_eq!(cause(read(&object, 0, 10)), Cause::Unavailable, "{told}");
        pair.connection.counters().expect_err(&told);
    }
}
