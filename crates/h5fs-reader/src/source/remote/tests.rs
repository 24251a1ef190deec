//! Tests of the worker's end against a fetcher that serves objects from memory.

mod disk_cache_pages;

use std::ops::Range;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use crate::error::{Cause, Error, Result};
use crate::limits;
use crate::memory::cancel::{CancelToken, Canceller};
use crate::memory::lock::lock;
use crate::source::directory::{Directory, EntryType};
use crate::source::local::audience::Readers;
use crate::source::local::raw_file::RawFile;
use crate::source::neighbours::Neighbours;
use crate::source::neighbours::policy::OtherFilesPolicy;
use crate::source::open::OpenSource;
use crate::source::remote::directory::RemoteDirectory;
use crate::source::remote::fake::{
    FakeConnection, FakeFetcher, LONG, bytes, connect_fake_fetcher, fetcher_with_checks,
    normal_fetcher, start,
};
use crate::source::remote::message::{
    Counters, FailureKind, ListedName, ListedType, PACKET, Reply, Request,
};
use crate::source::remote::object::RemoteObject;
use crate::source::remote::pages::FAILURE_VALIDITY;
use crate::source::remote::state::ObjectState;
use crate::source::{Source, Urgency};
use crate::testing::eventually;

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;

fn read(object: &RemoteObject, at: u64, length: u64) -> Result<Vec<u8>> {
    let mut buffer = vec![0; length as usize];
    object.read_at(at, &mut buffer)?;
    Ok(buffer)
}

fn cause(read: Result<Vec<u8>>) -> Cause {
    match read {
        Err(Error::Io { cause, .. }) => cause,
        other => panic!("{other:?}"),
    }
}

#[test]
fn short_reads_fetch_whole_blocks() {
    let pair = normal_fetcher();
    let object = pair.open(10 * MIB + 5);
    assert_eq!(object.length(), 10 * MIB + 5);
    for at in [300 * KIB, 300 * KIB + 7, 511 * KIB, 256 * KIB] {
        assert_eq!(read(&object, at, 1000).unwrap(), bytes(at, 1000));
    }
    assert_eq!(pair.fetched(), [(256 * KIB, 256 * KIB, true)]);
    // The last page ends at the end of the object.
    assert_eq!(
        read(&object, 10 * MIB + 4, 1).unwrap(),
        bytes(10 * MIB + 4, 1)
    );
    assert_eq!(pair.fetched()[1..], [(10 * MIB, 5, true)]);
    for (at, length) in [(10 * MIB + 4, 2), (u64::MAX, 2), (11 * MIB, 0)] {
        let past = read(&object, at, length).unwrap_err();
        assert!(matches!(past, Error::Corrupt { .. }), "{past}");
    }
}

/// A small object of 8 MiB takes two requests, because a run has at most 4 MiB. A longer object
/// arrives in parts.
#[test]
fn a_small_object_is_fetched_whole() {
    let pair = normal_fetcher();
    let small = pair.open(limits::SMALL_OBJECT);
    for at in (0..limits::SMALL_OBJECT - 1000).step_by(100 * KIB as usize) {
        assert_eq!(read(&small, at, 1000).unwrap(), bytes(at, 1000));
    }
    let halves = [(0, 4 * MIB, false), (4 * MIB, 4 * MIB, false)];
    assert_eq!(pair.fetched(), halves);
    let large = pair.open(limits::SMALL_OBJECT + 1);
    read(&large, MIB, 1000).unwrap();
    assert_eq!(pair.fetched()[2..], [(MIB, 256 * KIB, true)]);
    let of_name = |name: &str, length| {
        pair.put(name, length, "\"1\"");
        let found = RemoteObject::find(&pair.connection, name.as_bytes(), &|| true);
        found.unwrap().unwrap()
    };
    let member = of_name("small", limits::SMALL_MEMBER);
    member.prefetch(&[(MIB / 2, 10)], Urgency::Needed);
    read(&member, 0, 10).unwrap();
    assert_eq!(pair.fetched()[3..], [(0, MIB, false)]);
    read(&of_name("large", limits::SMALL_MEMBER + 1), MIB / 2, 10).unwrap();
    assert_eq!(pair.fetched()[4..], [(MIB / 2, 256 * KIB, true)]);
}

/// The bytes of a small object evict at most a quarter of the staged bytes.
#[test]
fn a_small_object_is_fetched_in_parts_by_a_small_cache() {
    let pair = connect_fake_fetcher(16 * MIB, LONG, Box::new(FakeFetcher::serve));
    read(&pair.open(4 * MIB), MIB, 10).unwrap();
    assert_eq!(pair.fetched(), [(0, 4 * MIB, false)]);
    read(&pair.open(4 * MIB + 1), MIB, 10).unwrap();
    assert_eq!(pair.fetched()[1..], [(MIB, 256 * KIB, true)]);
}

/// Evicted bytes return in parts as they are read.
#[test]
fn a_small_object_is_fetched_whole_only_once() {
    let pair = connect_fake_fetcher(8 * MIB, LONG, Box::new(FakeFetcher::serve));
    pair.put("other", 100 * MIB, "\"1\"");
    let other = RemoteObject::find(&pair.connection, b"other", &|| true).unwrap();
    let small = pair.open(2 * MIB);
    read(&small, MIB, 10).unwrap();
    read(&other.unwrap(), 0, 30 * MIB).unwrap();
    let before = pair.fetched().len();
    assert_eq!(read(&small, MIB, 10).unwrap(), bytes(MIB, 10));
    assert_eq!(pair.fetched()[before..], [(MIB, 256 * KIB, true)]);
    assert!(pair.connection.staged_bytes() <= 8 * MIB);
}

#[test]
fn a_paged_file_is_read_by_its_pages() {
    let pair = normal_fetcher();
    let object = pair.open(20 * MIB);
    // The first page arrives before any read.
    object.set_metadata_pages(0, 4 * MIB);
    pair.wait_until(|_| object.is_available(0, 4 * MIB));
    let first = (0, 4 * MIB, false);
    assert_eq!(read(&object, 5 * MIB, 100).unwrap(), bytes(5 * MIB, 100));
    assert_eq!(
        read(&object, 8 * MIB - 1, 1).unwrap(),
        bytes(8 * MIB - 1, 1)
    );
    let near = 512 * KIB;
    assert_eq!(
        pair.fetched(),
        [first, (5 * MIB, near, true), (8 * MIB - near, near, true)]
    );
    // Expected ranges within one page arrive together.
    let at = 9 * MIB;
    object.prefetch(&[(at + 1, 10), (at + MIB - 1, 1)], Urgency::Expected);
    assert_eq!(read(&object, at, MIB).unwrap(), bytes(at, MIB));
    assert_eq!(pair.fetched()[3..], [(at, MIB, false)]);
}

#[test]
fn the_first_page_is_prefetched_only_for_the_url_object() {
    let pair = normal_fetcher();
    let object = pair.open(20 * MIB);
    object.set_metadata_pages(0, 16 * MIB);
    pair.wait_until(|_| object.is_available(0, limits::FIRST_PAGE));
    pair.put("other", 20 * MIB, "\"1\"");
    let other = RemoteObject::find(&pair.connection, b"other", &|| true).unwrap();
    other.unwrap().set_metadata_pages(0, 4 * MIB);
    let asked: u64 = pair.fetched().iter().map(|(_, length, _)| length).sum();
    assert_eq!(asked, limits::FIRST_PAGE);
}

#[test]
fn staged_bytes_do_not_fetch_their_page() {
    let pair = normal_fetcher();
    let object = pair.open(20 * MIB);
    // No page size is known yet.
    read(&object, 4 * MIB, 100).unwrap();
    object.set_metadata_pages(2 * MIB, MIB);
    pair.wait_until(|_| object.is_available(2 * MIB, MIB));
    object.prefetch(&[(4 * MIB + 7, 10)], Urgency::Expected);
    read(&object, 8 * MIB, 100).unwrap();
    let near = [
        (4 * MIB, 256 * KIB, true),
        (2 * MIB, MIB, false),
        (8 * MIB, 512 * KIB, true),
    ];
    assert_eq!(pair.fetched(), near);
}

#[test]
fn near_ranges_are_requested_together() {
    let pair = normal_fetcher();
    let object = pair.open(64 * MIB);
    // Nine chunks of 1 MiB with gaps of 40 KiB, in reverse order; a distant range; and one inside
    // another.
    let mut ranges: Vec<_> = (0..9).map(|i| (i * (MIB + 40 * KIB), MIB)).collect();
    ranges.reverse();
    ranges.extend([(32 * MIB, 10), (100, 1000)]);
    object.prefetch(&ranges, Urgency::Needed);
    object.prefetch(
        &[(64 * MIB + 1, 10), (u64::MAX, 1), (5, 0)],
        Urgency::Needed,
    );
    assert_eq!(read(&object, 32 * MIB, 10).unwrap(), bytes(32 * MIB, 10));
    for (at, length) in ranges {
        assert_eq!(read(&object, at, length).unwrap(), bytes(at, length));
    }
    let end = (9 * MIB + 8 * 40 * KIB).next_multiple_of(64 * KIB);
    let expected = [
        (0, 4 * MIB, true),
        (4 * MIB, 4 * MIB, true),
        (8 * MIB, end - 8 * MIB, true),
        (32 * MIB, 64 * KIB, true),
    ];
    assert_eq!(pair.fetched(), expected);
}

/// Staged pages are fetched again if many pages around them are wanted; others are not.
#[test]
fn near_expected_ranges_are_requested_together() {
    const PAGE: u64 = 64 * KIB;
    let pair = normal_fetcher();
    let object = pair.open(64 * MIB);
    object.prefetch(&[(10 * PAGE, PAGE), (100 * PAGE, PAGE)], Urgency::Needed);
    read(&object, 10 * PAGE, 10).unwrap();
    pair.wait_until(|_| pair.fetched().len() == 2);
    let pages = |range: Range<u64>| (range.start * PAGE, (range.end - range.start) * PAGE);
    object.prefetch(&[pages(4..9), pages(11..18)], Urgency::Expected);
    object.prefetch(&[pages(99..100), pages(102..104)], Urgency::Expected);
    let all = read(&object, 4 * PAGE, 14 * PAGE).unwrap();
    assert!(all == bytes(4 * PAGE, 14 * PAGE));
    let all = read(&object, 99 * PAGE, 5 * PAGE).unwrap();
    assert!(all == bytes(99 * PAGE, 5 * PAGE));
    let fetched: Vec<_> = pair.fetched()[2..]
        .iter()
        .map(|(at, n, _)| (*at, *n))
        .collect();
    let expected = [
        pages(4..18),
        pages(99..100),
        pages(102..104),
        pages(101..102),
    ];
    assert_eq!(fetched, expected);
}

/// The fetcher does not reply until the test lets it.
#[test]
fn needed_runs_come_first_and_requests_are_limited() {
    let pair = connect_fake_fetcher(
        256 * MIB,
        LONG,
        Box::new(|fetcher, request| {
            if !matches!(request, Request::Fetch { .. }) {
                fetcher.serve(request);
            }
        }),
    );
    let object = pair.open(256 * MIB);
    let each = |first: u64, count: u64| -> Vec<_> {
        (first..first + count).map(|i| (i * 256 * KIB, 1)).collect()
    };
    object.prefetch(&each(0, 300), Urgency::Expected);
    pair.wait_until(|_| pair.fetched().len() == limits::EXPECTED_RUNS_ASKED);
    object.prefetch(&each(200, 300), Urgency::Needed);
    pair.wait_until(|_| pair.fetched().len() == limits::NEEDED_RUNS_ASKED);
    // A range that was expected is needed now, but is not requested twice.
    let (expected, needed) = (limits::EXPECTED_RUNS_ASKED, limits::NEEDED_RUNS_ASKED);
    assert!(pair.fetched()[..expected].iter().all(|fetch| !fetch.2));
    assert!(pair.fetched()[expected..].iter().all(|fetch| fetch.2));
    let asked = lock(&pair.fetcher.asked).clone();
    for request in asked {
        pair.fetcher.serve(&request);
    }
    pair.wait_until(|_| pair.fetched().len() >= needed + 32);
    assert!(
        pair.fetched()[expected..needed + 32]
            .iter()
            .all(|fetch| fetch.2)
    );
    let mut places: Vec<_> = pair.fetched().iter().map(|fetch| fetch.0).collect();
    let all = places.len();
    places.sort_unstable();
    places.dedup();
    assert_eq!(places.len(), all);
}

#[test]
fn excess_prefetches_are_dropped() {
    let pair = connect_fake_fetcher(
        1 << 30,
        LONG,
        Box::new(|fetcher, request| {
            if !matches!(request, Request::Fetch { .. }) {
                fetcher.serve(request);
            }
        }),
    );
    let object = pair.open(1 << 40);
    let ranges: Vec<_> = (0..10_000).map(|i| (i * 256 * KIB, 1)).collect();
    for part in ranges.chunks(100) {
        object.prefetch(part, Urgency::Expected);
    }
    pair.wait_until(|_| pair.fetched().len() == limits::EXPECTED_RUNS_ASKED);
    let queued = pair.connection.queued();
    assert_eq!(queued, limits::EXPECTED_RUNS);
}

#[test]
fn staged_pages_are_limited() {
    let pair = connect_fake_fetcher(MIB, LONG, Box::new(FakeFetcher::serve));
    let object = pair.open(40 * MIB);
    for round in 0..2 {
        for at in (0..40 * MIB).step_by(MIB as usize) {
            assert_eq!(read(&object, at, MIB).unwrap(), bytes(at, MIB), "{round}");
            assert!(pair.connection.staged_bytes() <= MIB);
        }
    }
    // A read longer than the limit is read in parts.
    let all = read(&object, 3, 40 * MIB - 3).unwrap();
    assert!(all == bytes(3, 40 * MIB - 3));
    assert!(pair.connection.staged_bytes() <= MIB);
}

#[test]
fn prefetches_leave_room_for_read_pages() {
    let pair = connect_fake_fetcher(4 * MIB, LONG, Box::new(FakeFetcher::serve));
    let object = pair.open(100 * MIB);
    read(&object, 99 * MIB, 1).unwrap();
    object.prefetch(&[(0, 50 * MIB)], Urgency::Expected);
    pair.wait_until(|_| pair.fetched().len() > 2);
    // Waits until no more pages are requested: the counters are returned after all earlier
    // requests.
    let mut asked = 0;
    while asked < pair.fetched().len() {
        asked = pair.fetched().len();
        pair.connection.counters().unwrap();
    }
    read(&object, 99 * MIB, 1).unwrap();
    let fetched = pair.fetched();
    let metadata = fetched.iter().filter(|fetch| fetch.0 >= 98 * MIB);
    assert_eq!(metadata.count(), 1, "metadata was pushed out: {fetched:?}");
    // Further pages arrive as the earlier ones are read.
    for at in (0..50 * MIB).step_by(MIB as usize) {
        assert_eq!(read(&object, at, MIB).unwrap(), bytes(at, MIB));
    }
    let bytes: u64 = pair.fetched().iter().map(|fetch| fetch.1).sum();
    assert!(bytes <= 51 * MIB, "{bytes}");
}

#[test]
fn a_change_leaves_old_bytes_or_estale() {
    let pair = connect_fake_fetcher(
        64 * MIB,
        LONG,
        Box::new(|fetcher, request| match request {
            Request::Fetch { id, offset, .. } if *offset >= 8 * MIB => {
                fetcher.fail(*id, FailureKind::Changed);
            }
            _ => fetcher.serve(request),
        }),
    );
    let object = pair.open(16 * MIB);
    read(&object, 0, 10).unwrap();
    assert_eq!(cause(read(&object, 9 * MIB, 10)), Cause::Stale);
    assert_eq!(read(&object, 5, 10).unwrap(), bytes(5, 10), "it was cached");
    assert_eq!(cause(read(&object, 4 * MIB, 10)), Cause::Stale);
    assert_eq!(
        pair.fetched().len(),
        2,
        "a state that is over is not asked for"
    );
}

#[test]
fn failures_are_reported_and_retried() {
    let failures = [
        (FailureKind::TimedOut, Cause::Unavailable),
        (FailureKind::Other, Cause::Unavailable),
        (FailureKind::Denied, Cause::System(nix::libc::EACCES)),
        (FailureKind::NoRoom, Cause::OutOfMemory),
    ];
    let left: Vec<_> = failures.iter().map(|(failure, _)| *failure).rev().collect();
    let left = Arc::new(Mutex::new(left));
    let failing = Arc::clone(&left);
    let pair = connect_fake_fetcher(
        64 * MIB,
        LONG,
        Box::new(move |fetcher, request| match request {
            Request::Fetch { id, .. } if !lock(&failing).is_empty() => {
                fetcher.fail(*id, *lock(&failing).last().unwrap());
            }
            _ => fetcher.serve(request),
        }),
    );
    let object = pair.open(MIB);
    for (_, expected) in failures {
        let (begun, before) = (Instant::now(), pair.fetched().len());
        assert_eq!(cause(read(&object, 0, 10)), expected);
        if expected == Cause::Unavailable {
            // A reader that retries at once gets the same error without a request; a later reader
            // does not.
            object.prefetch(&[(0, 10)], Urgency::Needed);
            assert_eq!(cause(read(&object, 5, 10)), expected);
            let asked = pair.fetched().len() - before;
            assert!(
                asked == 1 || begun.elapsed() >= FAILURE_VALIDITY,
                "{asked} times"
            );
            thread::sleep(FAILURE_VALIDITY);
        }
        lock(&left).pop();
    }
    assert_eq!(read(&object, 0, 10).unwrap(), bytes(0, 10));
}

#[test]
fn failures_are_remembered_within_the_limit() {
    let pair = connect_fake_fetcher(
        64 * MIB,
        LONG,
        Box::new(|fetcher, request| match request {
            Request::Fetch { id, .. } => fetcher.fail(*id, FailureKind::TimedOut),
            _ => fetcher.serve(request),
        }),
    );
    let object = pair.open(1000 * MIB);
    for number in 0..2 * limits::FAILED_RUNS as u64 {
        assert_eq!(cause(read(&object, number * MIB, 10)), Cause::Unavailable);
    }
    assert_eq!(pair.connection.failures(), limits::FAILED_RUNS);
}

#[test]
fn a_deleted_object_is_stale_and_an_absent_one_missing() {
    let pair = connect_fake_fetcher(
        64 * MIB,
        LONG,
        Box::new(|fetcher, request| match request {
            Request::Fetch { id, .. } => fetcher.fail(*id, FailureKind::NotFound),
            _ => fetcher.serve(request),
        }),
    );
    let object = pair.open(MIB);
    assert_eq!(cause(read(&object, 0, 10)), Cause::Stale);
    assert!(
        RemoteObject::find(&pair.connection, b"none", &|| true)
            .unwrap()
            .is_none()
    );
}

#[test]
fn a_silent_fetcher_is_an_error_within_the_time_limit() {
    let patience = Duration::from_secs(2);
    let pair = connect_fake_fetcher(
        64 * MIB,
        patience,
        Box::new(|fetcher, request| {
            if !matches!(request, Request::Fetch { .. } | Request::GetCounters { .. }) {
                fetcher.serve(request);
            }
        }),
    );
    let object = pair.open(MIB);
    let begun = Instant::now();
    assert_eq!(cause(read(&object, 0, 10)), Cause::Unavailable);
    pair.connection.counters().unwrap_err();
    assert!(begun.elapsed() < LONG);
    pair.wait_until(|asked| {
        let cancels = asked
            .iter()
            .filter(|request| matches!(request, Request::Cancel { .. }));
        cancels.count() == 2
    });
    // A late reply is ignored.
    let late = lock(&pair.fetcher.asked).clone();
    late.iter().for_each(|request| pair.fetcher.serve(request));
    assert_eq!(cause(read(&object, 0, 10)), Cause::Unavailable);
}

#[test]
fn a_cancelled_reader_stops_waiting() {
    let pair = connect_fake_fetcher(
        64 * MIB,
        LONG,
        Box::new(|fetcher, request| {
            if !matches!(request, Request::Fetch { .. }) {
                fetcher.serve(request);
            }
        }),
    );
    let object = pair.open(MIB);
    let is_wanted = || pair.fetched().is_empty();
    let gone = object
        .read_cancellable(0, &mut [0; 10], &is_wanted)
        .unwrap_err();
    assert!(gone.is_cancelled());
    pair.wait_until(|asked| {
        asked
            .iter()
            .any(|request| matches!(request, Request::Cancel { .. }))
    });
}

/// Creates a fetcher that does not reply to requests for opening an object.
fn fetcher_without_openings() -> FakeConnection {
    connect_fake_fetcher(
        64 * MIB,
        LONG,
        Box::new(|fetcher, request| {
            if !matches!(request, Request::Open { .. }) {
                fetcher.serve(request);
            }
        }),
    )
}

fn is_open(request: &&Request) -> bool {
    matches!(request, Request::Open { .. })
}

fn is_cancel(request: &Request) -> bool {
    matches!(request, Request::Cancel { .. })
}

#[test]
fn a_cancelled_opening_stops_waiting() {
    let pair = fetcher_without_openings();
    pair.put("", MIB, "\"1\"");
    let canceller = Canceller::default();
    let token = canceller.token();
    let open =
        |token: &CancelToken| RemoteObject::find(&pair.connection, b"", &|| !token.is_cancelled());
    thread::scope(|scope| {
        let gone = scope.spawn(|| open(&token));
        let other = scope.spawn(|| open(&CancelToken::default()));
        pair.wait_until(|asked| asked.iter().filter(is_open).count() == 2);
        let begun = Instant::now();
        canceller.cancel();
        let gone = gone.join().unwrap();
        assert!(gone.is_err_and(|error| error.is_cancelled()));
        assert!(begun.elapsed() < LONG / 6);
        pair.wait_until(|asked| asked.iter().any(is_cancel));
        let asked = lock(&pair.fetcher.asked).clone();
        let cancelled = asked.iter().find_map(|request| match request {
            Request::Cancel { id } => Some(*id),
            _ => None,
        });
        // The late reply to the cancelled request opens an object that is closed at once.
        let opens: Vec<_> = asked.iter().filter(is_open).collect();
        opens.iter().for_each(|request| pair.fetcher.serve(request));
        let number = opens.iter().position(
            |request| matches!(request, Request::Open { id, .. } if cancelled == Some(*id)),
        );
        let closed = Request::Close {
            object: number.unwrap() as u32,
        };
        pair.wait_until(|asked| asked.contains(&closed));
        let object = other.join().unwrap().unwrap().unwrap();
        assert_eq!(read(&object, 0, 10).unwrap(), bytes(0, 10));
    });
}

#[test]
fn a_cancelled_opening_of_another_object_is_unwanted() {
    let pair = fetcher_without_openings();
    let own = Path::new("s3://bucket/run.h5");
    let neighbours = Neighbours::for_object(
        own,
        &pair.connection,
        OtherFilesPolicy::WithinDirectory,
        Readers::Owner,
    );
    let gone = neighbours.open(b"other.h5", &|| false).unwrap_err();
    assert!(gone.is_cancelled(), "{gone}");
    let raw = RawFile::new(Arc::new(neighbours), b"raw".to_vec());
    let gone = raw
        .read_cancellable(0, &mut [0; 10], &|| false)
        .unwrap_err();
    assert!(gone.is_cancelled(), "{gone}");
    // Only a read opens a raw file, because only a read can be cancelled.
    raw.prefetch(&[(0, 10)], Urgency::Needed);
    assert!(raw.is_remote() && !raw.is_available(0, 10));
    pair.connection.counters().unwrap();
    let asked = lock(&pair.fetcher.asked).clone();
    assert_eq!(asked.iter().filter(is_open).count(), 2);
}

#[test]
fn arrived_bytes_are_read_before_the_rest() {
    let pair = connect_fake_fetcher(
        64 * MIB,
        LONG,
        Box::new(|fetcher, request| match request {
            Request::Fetch {
                id, object, offset, ..
            } => {
                fetcher.write(*object, *offset, MIB);
                fetcher.send_reply(&Reply::Staged {
                    id: *id,
                    length: MIB + 7,
                });
            }
            _ => fetcher.serve(request),
        }),
    );
    let object = pair.open(16 * MIB);
    object.prefetch(&[(0, 4 * MIB)], Urgency::Expected);
    assert_eq!(read(&object, 0, MIB).unwrap(), bytes(0, MIB));
    let looks = AtomicU32::new(0);
    let is_wanted = || looks.fetch_add(1, Ordering::SeqCst) < 2;
    let gone = object.read_cancellable(MIB, &mut [0; 10], &is_wanted);
    assert!(gone.unwrap_err().is_cancelled());
}

#[test]
fn opening_may_stage_the_first_bytes() {
    let pair = connect_fake_fetcher(
        64 * MIB,
        LONG,
        Box::new(|fetcher, request| match request {
            Request::Open { id, region, .. } => {
                lock(&fetcher.open).push((Vec::new(), *region));
                fetcher.write(0, 0, 100 * KIB);
                fetcher.send_reply(&Reply::Opened {
                    id: *id,
                    object: 0,
                    state: ObjectState {
                        length: 100 * KIB,
                        ..ObjectState::default()
                    },
                    staged: 100 * KIB,
                });
            }
            _ => fetcher.serve(request),
        }),
    );
    let object = RemoteObject::find(&pair.connection, b"", &|| true)
        .unwrap()
        .unwrap();
    assert_eq!(read(&object, 0, 100 * KIB).unwrap(), bytes(0, 100 * KIB));
    assert_eq!(pair.fetched(), []);
}

#[test]
fn a_check_detects_another_state() {
    let pair = fetcher_with_checks();
    let object = pair.open(MIB);
    assert!(!object.is_changed());
    pair.put("", MIB, "\"2\"");
    assert!(!object.is_changed(), "it was seen a moment ago");
    let end = Instant::now() + LONG;
    while !object.is_changed() {
        assert!(Instant::now() < end);
        thread::sleep(Duration::from_millis(1));
    }
    let checks = lock(&pair.fetcher.asked).clone();
    let checks = checks
        .iter()
        .filter(|request| matches!(request, Request::Check { .. }));
    assert_eq!(checks.count(), 1);
}

fn check_requests(fetcher: &FakeFetcher) -> Vec<Request> {
    let asked = lock(&fetcher.asked).clone();
    let is_look = |request: &Request| matches!(request, Request::Check { .. });
    asked.into_iter().filter(is_look).collect()
}

/// The fetcher does not reply to a check until the test lets it. Two checks would start in this
/// time.
#[test]
fn checks_of_sampled_objects_do_not_block() {
    let pair = connect_fake_fetcher(
        64 * MIB,
        Duration::from_millis(600),
        Box::new(|fetcher, request| {
            if !matches!(request, Request::Check { .. }) {
                fetcher.serve(request);
            }
        }),
    );
    pair.put("", MIB, "\0one");
    let object = RemoteObject::find(&pair.connection, b"", &|| true)
        .unwrap()
        .unwrap();
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(2) {
        assert!(!object.is_changed());
        thread::sleep(Duration::from_millis(5));
    }
    let asked = check_requests(&pair.fetcher);
    assert_eq!(asked.len(), 1);
    pair.put("", MIB, "\0two");
    pair.fetcher.serve(&asked[0]);
    eventually("the change", || object.is_changed());
}

#[test]
fn bytes_of_sampled_objects_do_not_confirm_the_state() {
    let pair = normal_fetcher();
    pair.put("", 1000 * MIB, "\0one");
    let object = RemoteObject::find(&pair.connection, b"", &|| true)
        .unwrap()
        .unwrap();
    let mut at = 0;
    while check_requests(&pair.fetcher).is_empty() {
        read(&object, at, 10).unwrap();
        at += MIB;
        assert!(!object.is_changed());
        thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn objects_have_separate_regions_and_free_them() {
    let pair = normal_fetcher();
    let first = pair.open(3 * MIB + 1);
    pair.put("other", MIB, "\"o\"");
    let other = RemoteObject::find(&pair.connection, b"other", &|| true)
        .unwrap()
        .unwrap();
    read(&first, 0, 3 * MIB).unwrap();
    read(&other, 0, MIB).unwrap();
    let open = lock(&pair.fetcher.open).clone();
    assert!(open[1].1 > open[0].1 + 3 * MIB);
    drop((first, other));
    assert_eq!(pair.connection.staged_bytes(), 0);
    pair.wait_until(|asked| {
        let closed = asked
            .iter()
            .filter(|request| matches!(request, Request::Close { .. }));
        closed.count() == 2
    });
}

/// Creates a fetcher whose one listed page omits all `count` objects and has a token for more.
fn fetcher_with_listing(count: usize) -> FakeConnection {
    let list = |fetcher: &FakeFetcher, request: &Request| match request {
        Request::List { id, .. } => fetcher.send_reply(&Reply::Listed {
            id: *id,
            is_last: true,
            entries: vec![ListedName {
                name: b"a".to_vec(),
                entry_type: ListedType::Prefix,
            }],
            next: b"more".to_vec(),
        }),
        _ => fetcher.serve(request),
    };
    let pair = start(64 * MIB, LONG, Duration::from_secs(1), Box::new(list));
    for number in 0..count {
        pair.put(&format!("o{number}"), MIB, "\"1\"");
    }
    pair
}

/// Returns the number of requests of one type.
fn count(pair: &FakeConnection, is_one: fn(&Request) -> bool) -> usize {
    lock(&pair.fetcher.asked)
        .iter()
        .filter(|request| is_one(request))
        .count()
}

#[test]
fn objects_of_a_prefix_stay_open_within_the_limit() {
    let most = limits::KEPT_OBJECTS.get();
    let pair = fetcher_with_listing(most + 10);
    let directory = RemoteDirectory::open(&pair.connection).unwrap();
    for number in 0..most + 10 {
        directory
            .open(Path::new(&format!("o{number}")), &|| true)
            .unwrap();
    }
    pair.connection.counters().unwrap();
    let closed = count(&pair, |request| matches!(request, Request::Close { .. }));
    assert_eq!(closed, 10);
}

#[test]
fn a_reopened_object_is_checked_when_due() {
    let pair = fetcher_with_listing(1);
    let directory = RemoteDirectory::open(&pair.connection).unwrap();
    let path = Path::new("o0");
    let first = |directory: &RemoteDirectory| {
        let opened = directory.open(path, &|| true).unwrap();
        let source = opened.content.into_source(path, None).unwrap();
        let mut byte = [0];
        source.read_at(MIB / 2, &mut byte).unwrap();
        (opened.entry_id, byte)
    };
    let opens = |request: &Request| matches!(request, Request::Open { .. });
    let checks = |request: &Request| matches!(request, Request::Check { .. });
    let before = first(&directory);
    assert_eq!(first(&directory), before);
    thread::sleep(Duration::from_millis(1100));
    assert_eq!(first(&directory), before);
    assert_eq!((count(&pair, opens), count(&pair, checks)), (1, 1));
    assert_eq!(pair.fetched().len(), 1, "its bytes have stayed");
    pair.put("o0", MIB, "\"2\"");
    thread::sleep(Duration::from_millis(1100));
    let after = first(&directory);
    assert_ne!(after.0, before.0);
    assert_eq!((count(&pair, opens), count(&pair, checks)), (2, 2));
}

/// A listing may be outdated: the object is longer now.
#[test]
fn a_region_fits_any_actual_length() {
    let pair = normal_fetcher();
    for (name, length) in [("a", 3 * MIB), ("b", 300 * KIB), ("c", 0)] {
        pair.put(name, length, name);
    }
    let open = |name: &str, told| {
        let found =
            RemoteObject::find_with_length(&pair.connection, name.as_bytes(), told, &|| true);
        found.unwrap().unwrap()
    };
    let objects = [
        open("a", 10),
        open("b", 300 * KIB),
        open("c", MIB),
        open("a", 3 * MIB),
    ];
    for object in objects.iter().chain(&objects) {
        let length = object.length();
        assert!(read(object, 0, length).unwrap() == bytes(0, length));
    }
    let opened = lock(&pair.fetcher.open).len();
    assert_eq!(opened, objects.len() + 1, "the first was opened twice");
}

/// Uses a server whose listing never ends, with new names or the same page again and again.
#[test]
fn an_endless_listing_is_an_error() {
    let pair = connect_fake_fetcher(
        64 * MIB,
        LONG,
        Box::new(|fetcher, request| match request {
            Request::List { id, after, .. } => {
                let number = after
                    .iter()
                    .fold(0, |sum, byte| sum * 256 + u64::from(*byte));
                let name = |i: u64| ListedName {
                    name: format!("{number} {i} {}", "n".repeat(200)).into_bytes(),
                    entry_type: ListedType::Object(ObjectState::default()),
                };
                fetcher.send_reply(&Reply::Listed {
                    id: *id,
                    is_last: true,
                    entries: (0..10).map(name).collect(),
                    next: (number + 1).to_be_bytes().to_vec(),
                });
            }
            _ => fetcher.serve(request),
        }),
    );
    let directory = RemoteDirectory::open(&pair.connection).unwrap();
    let mut names = directory.list(Path::new("")).unwrap();
    let mut count = 0;
    let ended = names.visit(0, &mut |_| {
        count += 1;
        false
    });
    let most = limits::LISTED_PAGES as u64;
    assert_eq!(ended.unwrap_err(), Error::limit("pages of a listing", most));
    assert_eq!(count, 2 + 10 * limits::LISTED_PAGES);
    let listing = lock(&pair.fetcher.asked).len();
    // The names are too many for the cache: each name needs one request for itself, and one for
    // names beneath it.
    let there = directory.path_info(Path::new("x"), false).unwrap();
    assert_eq!(there.kind, EntryType::Directory);
    assert_eq!(lock(&pair.fetcher.asked).len() - listing, 2);
}

#[test]
fn a_page_in_several_replies_is_limited() {
    // Sends `parts` replies of `names` names of ten bytes.
    let listed = |parts: usize, names: usize| {
        let say = move |fetcher: &FakeFetcher, request: &Request| {
            let Request::List { id, .. } = request else {
                return fetcher.serve(request);
            };
            for part in 1..=parts {
                let name = |number: usize| ListedName {
                    name: format!("{:010}", part * names + number).into_bytes(),
                    entry_type: ListedType::Prefix,
                };
                fetcher.send_reply(&Reply::Listed {
                    id: *id,
                    is_last: part == parts,
                    entries: (0..names).map(name).collect(),
                    next: Vec::new(),
                });
            }
        };
        let pair = connect_fake_fetcher(64 * MIB, LONG, Box::new(say));
        pair.connection
            .list(b"", b"", &|| true)
            .map(|(names, _)| names)
    };
    let most = limits::LISTING_NAMES;
    let all = listed(100, most / 100).unwrap();
    assert!(all.len() == most && all.is_sorted_by_key(|entry| &entry.name));
    assert!(listed(101, most / 100).is_err());
}

/// Checks that each invalid message ends the connection and wakes waiting readers at once.
#[test]
fn a_hostile_fetcher_ends_the_connection() {
    let lies: [fn(&FakeFetcher, u64); 5] = [
        |fetcher, _| fetcher.send_packet(b"nonsense"),
        |fetcher, _| fetcher.send_packet(&[5; 9]),
        |fetcher, id| {
            fetcher.send_reply(&Reply::Staged {
                id,
                length: 1 << 40,
            });
        },
        |fetcher, _| fetcher.send_packet(&vec![1; PACKET + 1]),
        |fetcher, _| {
            rustix::net::shutdown(&fetcher.socket, rustix::net::Shutdown::Both).unwrap();
        },
    ];
    for lie in lies {
        let pair = connect_fake_fetcher(
            64 * MIB,
            LONG,
            Box::new(move |fetcher, request| match request {
                Request::Fetch { id, .. } => lie(fetcher, *id),
                _ => fetcher.serve(request),
            }),
        );
        let object = pair.open(MIB);
        let begun = Instant::now();
        assert_eq!(cause(read(&object, 0, 10)), Cause::Unavailable);
        assert_eq!(cause(read(&object, 0, 10)), Cause::Unavailable);
        pair.connection.counters().unwrap_err();
        assert!(begun.elapsed() < LONG);
    }
}

#[test]
fn unrequested_replies_are_ignored() {
    let pair = connect_fake_fetcher(
        64 * MIB,
        LONG,
        Box::new(|fetcher, request| {
            let id = 1 << 40;
            fetcher.send_reply(&Reply::Staged { id, length: 10 });
            fetcher.fail(id, FailureKind::Changed);
            fetcher.send_reply(&Reply::Counted {
                id,
                counters: Counters::default(),
            });
            fetcher.serve(request);
        }),
    );
    let object = pair.open(MIB);
    assert_eq!(read(&object, 0, MIB).unwrap(), bytes(0, MIB));
    assert!(!object.is_changed());
    assert!(pair.connection.counters().unwrap().requests > 0);
}

/// Stages, reads and drops pages in many threads at the same time.
#[test]
fn many_readers_in_a_small_cache_read_right_bytes() {
    let pair = connect_fake_fetcher(2 * MIB, LONG, Box::new(FakeFetcher::serve));
    let object = pair.open(32 * MIB + 77);
    thread::scope(|scope| {
        for reader in 0..8_u64 {
            let object = &object;
            scope.spawn(move || {
                for step in 0..60_u64 {
                    let seed = reader * 1000 + step;
                    let at = seed.wrapping_mul(6_364_136_223_846_793_005) % (31 * MIB);
                    let length = [10, 70 * KIB, 300 * KIB][(seed % 3) as usize];
                    if seed % 2 == 0 {
                        object.prefetch(&[(at, length), (at / 2, length)], Urgency::Expected);
                    }
                    assert!(read(object, at, length).unwrap() == bytes(at, length));
                }
            });
        }
    });
    assert!(pair.connection.staged_bytes() <= 2 * MIB);
}
