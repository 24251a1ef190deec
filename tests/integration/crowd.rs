//! Slow requests, in any number, do not delay other requests, and end when their callers end.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use crate::harness::{LONG, Mount, Process, SOON, eventually, run, script, wait};

/// Ten times the time that is promised for 99 of 100 responses, because other tests may keep the
/// machine busy.
const LATEST: Duration = Duration::from_secs(1);

fn source() -> &'static Path {
    static PATH: OnceLock<PathBuf> = OnceLock::new();
    PATH.get_or_init(|| {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("crowd.h5");
        run(script("crowd.py").arg("make").arg(&path), LONG).success();
        path
    })
}

/// Processes that wait for slow responses. Dropping the value kills them.
struct Crowd(Child);

impl Crowd {
    /// Starts the processes and waits until the worker is busy with them.
    fn of(what: &str, count: u32, mount: &Mount, worker: &Process) -> Self {
        let before = worker.processor_time();
        let mut command = script("crowd.py");
        command.arg(what).arg(&mount.path).arg(count.to_string());
        let crowd = Crowd(Command::spawn(&mut command).expect("python"));
        let is_busy = || worker.processor_time() > before + Duration::from_millis(300);
        eventually(SOON, "a crowd at work", is_busy);
        crowd
    }

    fn waits(&mut self) -> bool {
        self.0.try_wait().expect("a child").is_none()
    }

    /// Kills the processes. The processes must end, and so must the work for them.
    #[track_caller]
    fn end(mut self, worker: &Process) {
        self.0.kill().expect("alive");
        assert!(wait(&mut self.0, SOON).is_some(), "killed, it waits on");
        let mut before = worker.processor_time();
        eventually(SOON, "an end of the work for it", || {
            std::thread::sleep(Duration::from_millis(200));
            let now = worker.processor_time();
            now - std::mem::replace(&mut before, now) <= Duration::from_millis(20)
        });
    }
}

impl Drop for Crowd {
    fn drop(&mut self) {
        let _ = self.0.kill();
    }
}

/// Returns the 99th percentile of the times of these requests for other objects.
fn latest(mount: &Mount, first: usize) -> Duration {
    let mut all = Vec::new();
    let mut ask = |question: &dyn Fn()| {
        let asked = Instant::now();
        question();
        all.push(asked.elapsed());
    };
    // These names have not been looked up before, so the kernel cannot answer.
    for number in first..first + 50 {
        let path = mount.at(&format!("quick/{number:04}"));
        ask(&|| assert_eq!(fs::metadata(&path).expect("stat").len(), 8000));
        ask(&|| assert_eq!(fs::read(&path).expect("read")[0], number as u8));
        ask(&|| assert!(fs::read_dir(&mount.path).expect("list").count() >= 3));
        let text = mount.at(&format!(".h5fs/csv/quick/{number:04}.csv"));
        let last = format!("{}\n", number + 999);
        ask(&|| assert!(fs::read_to_string(&text).expect("read").ends_with(&last)));
    }
    all.sort_unstable();
    all[all.len() * 99 / 100]
}

#[track_caller]
fn others_are_answered(what: &str, options: &str, counts: &[u32]) {
    let mount = Mount::with(source(), &["-o", options]);
    let (worker, _) = mount.worker_and_supervisor(source());
    for (round, count) in counts.iter().enumerate() {
        let mut crowd = Crowd::of(what, *count, &mount, &worker);
        let latest = latest(&mount, round * 50);
        assert!(crowd.waits(), "{what} of {count} did not take long");
        eprintln!("{what} of {count}: 99 of 100 others within {latest:?}");
        assert!(latest <= LATEST, "{what} of {count}: {latest:?}");
        assert!(worker.threads() < 60, "{} threads", worker.threads());
        crowd.end(&worker);
    }
}

#[test]
fn of_sizes_that_are_counted() {
    others_are_answered("stat", "threads=2", &[8, 24, 100, 1000]);
}

#[test]
fn of_large_chunks() {
    // Neither the kernel nor the mount caches decoded chunks.
    others_are_answered(
        "read",
        "threads=2,direct_io,cache_size=1M",
        &[8, 24, 100, 1000],
    );
}
