//! Measures the processor time of a call in all threads that work for it.
//!
//! The system adds the time of an ended thread only to the whole process, and other tests run in
//! the same process. So the time of the process is only an upper bound. If a call exceeds its
//! limit, the test is repeated in its own process, where the time is exact.

use std::collections::BTreeMap;
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use nix::sys::resource::{UsageWho, getrusage};

/// Elapsed time after which a request counts as hanging, on a busy machine.
pub(crate) const HANGS: Duration = Duration::from_secs(1200);

/// Environment variable that is set in the process of a test that runs alone.
const ALONE: &str = "H5FS_TEST_ALONE";

/// Tests that were repeated alone, with their results.
static REPEATED: Mutex<BTreeMap<String, bool>> = Mutex::new(BTreeMap::new());

/// Runs `work`. Fails if it used the processors for `most` or longer.
#[track_caller]
pub(crate) fn within<T>(most: Duration, work: impl FnOnce() -> T) -> T {
    named_within("", most, work)
}

/// Like `within`, with a name for the message.
#[track_caller]
pub(crate) fn named_within<T>(name: &str, most: Duration, work: impl FnOnce() -> T) -> T {
    let (start, before) = (Instant::now(), processor_time());
    let done = work();
    let spent = processor_time() - before;
    assert!(spent < most || passes_alone(), "{name} took {spent:?}");
    assert!(start.elapsed() < HANGS, "{name} took {:?}", start.elapsed());
    done
}

/// Returns the processor time of all threads of this process, including ended ones.
pub(crate) fn processor_time() -> Duration {
    let usage = getrusage(UsageWho::RUSAGE_SELF).expect("the usage of this process");
    let parts = [usage.user_time(), usage.system_time()];
    let parts = parts.map(|time| (time.tv_sec(), time.tv_usec()));
    parts
        .into_iter()
        .map(|(seconds, micros)| duration(seconds, micros))
        .sum()
}

fn duration(seconds: i64, micros: i64) -> Duration {
    let seconds = u64::try_from(seconds).expect("a time since the start");
    let micros = u64::try_from(micros).expect("a part of a second");
    Duration::from_secs(seconds) + Duration::from_micros(micros)
}

/// Returns whether the calling test passes in its own process. That process does not repeat the
/// test again.
fn passes_alone() -> bool {
    let thread = std::thread::current();
    // If there is one thread for all tests, no other test runs at the same time.
    let Some(test) = thread.name().filter(|name| *name != "main") else {
        return false;
    };
    if std::env::var_os(ALONE).is_some() {
        return false;
    }
    let known = REPEATED.lock().expect("tests").get(test).copied();
    known.unwrap_or_else(|| {
        let passed = repeated(test);
        REPEATED
            .lock()
            .expect("tests")
            .insert(test.to_owned(), passed);
        passed
    })
}

fn repeated(test: &str) -> bool {
    let program = std::env::current_exe().expect("this program");
    let mut command = Command::new(program);
    command
        .args([test, "--exact", "--include-ignored"])
        .env(ALONE, "1");
    let ended = command.stdin(Stdio::null()).output().expect("a process");
    let output = String::from_utf8_lossy(&ended.stdout);
    assert!(output.contains("running 1 test"), "{test}: {output}");
    ended.status.success()
}

/// Uses this much processor time in another thread, which then ends.
fn busy_elsewhere(time: Duration) {
    let busy = move || {
        let own = || {
            let usage = getrusage(UsageWho::RUSAGE_THREAD).expect("the usage of a thread");
            duration(usage.user_time().tv_sec(), usage.user_time().tv_usec())
        };
        while own() < time {
            std::hint::black_box((0..10_000_u64).sum::<u64>());
        }
    };
    std::thread::spawn(busy).join().expect("a thread");
}

#[test]
fn the_time_of_a_thread_that_has_ended_counts() {
    let before = processor_time();
    busy_elsewhere(Duration::from_millis(200));
    assert!(processor_time() - before >= Duration::from_millis(200));
}

/// The repetition fails too, because the work takes as long there.
#[test]
fn work_over_its_limit_fails_its_test() {
    let long = || {
        within(Duration::from_millis(50), || {
            busy_elsewhere(Duration::from_millis(200));
        });
    };
    if std::env::var_os(ALONE).is_some() {
        return long();
    }
    std::panic::catch_unwind(long).expect_err("a test that fails");
}

/// The repetition passes, because only the simulated other tests took long.
#[test]
fn work_of_other_tests_fails_no_test() {
    let long = Duration::from_millis(if std::env::var_os(ALONE).is_some() {
        0
    } else {
        200
    });
    within(Duration::from_millis(150), || busy_elsewhere(long));
}
