//! Processor time of a call, whichever threads work for it.
//!
//! The system counts the time of a thread that has ended for the whole process alone, and other tests run
//! in the same process. The time of the process is therefore an upper bound. A call over its limit may be
//! innocent: its test is then repeated in a process of its own, where the bound is exact.

use std::collections::BTreeMap;
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use nix::sys::resource::{UsageWho, getrusage};

/// Clock time after which a request is taken to hang, on a machine that is busy with other things.
pub(crate) const HANGS: Duration = Duration::from_secs(1200);

/// Set in the process of a test that runs alone.
const ALONE: &str = "H5FS_TEST_ALONE";

/// Tests that were repeated alone, and whether they passed.
static REPEATED: Mutex<BTreeMap<String, bool>> = Mutex::new(BTreeMap::new());

/// Does `work`, and fails if it took `most` of the processors or more.
#[track_caller]
pub(crate) fn within<T>(most: Duration, work: impl FnOnce() -> T) -> T {
    named_within("", most, work)
}

/// The same of work with a name, for the message.
#[track_caller]
pub(crate) fn named_within<T>(name: &str, most: Duration, work: impl FnOnce() -> T) -> T {
    let (start, before) = (Instant::now(), processor_time());
    let done = work();
    let spent = processor_time() - before;
    assert!(spent < most || passes_alone(), "{name} took {spent:?}");
    assert!(start.elapsed() < HANGS, "{name} took {:?}", start.elapsed());
    done
}

/// Returns the processor time of all threads of this process, those that have ended included.
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

/// Whether the calling test passes in a process of its own. There, it is not repeated again.
fn passes_alone() -> bool {
    let thread = std::thread::current();
    // With one thread for all tests nothing else runs meanwhile.
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

/// Lets another thread, which has ended afterwards, take so much of a processor.
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

/// The repetition fails, as the work is as long there.
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

/// The repetition takes little: only what stands in for other tests took long.
#[test]
fn work_of_other_tests_fails_no_test() {
    let long = Duration::from_millis(if std::env::var_os(ALONE).is_some() {
        0
    } else {
        200
    });
    within(Duration::from_millis(150), || busy_elsewhere(long));
}
