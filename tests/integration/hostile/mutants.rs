//! Thousands of files with small faults. With any fault, a walk over the whole file ends soon,
//! needs little memory, and never panics.
//!
//! `H5FS_MUTANTS` is the number of mutants, and `H5FS_MUTANTS_SEED` the seed. `H5FS_MUTANTS_OF` is
//! a directory whose files are mutated instead of the fixtures. `H5FS_MUTANTS_OBJECTS` is the
//! number of objects that are read in each mutant, including the trees of `.h5fs`.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::mutation::{Original, Random};
use super::processor::{HANGS, processor_time};
use super::visit::{Bounds, open_and_walk};
use crate::harness::{LONG, fixtures, run};

/// Size limit of mutated files in bytes, because a larger file costs more time without more
/// structures.
const LARGEST: u64 = 64 << 10;

/// Limit of processor time for one mutant. The lengths of its texts (csv, json, text, cf) are
/// counted up to a limit, which takes seconds in a test build.
const SLOWEST: Duration = Duration::from_secs(30);

/// Number of walks after which a mutant counts as slow.
const REPETITIONS: usize = 3;

/// Limit of kilobytes for one mutant. The documented memory is the cache, 64 MiB, and the chunk
/// that is decoded.
const MEMORY: u64 = 200 << 10;

/// Kilobytes of address space of the child process.
const ADDRESS_SPACE: u64 = 6 << 20;

fn setting(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// Tests a thousand mutants, or the number in the environment. A child process tests them, so that
/// its memory can be measured and it can be killed.
#[test]
fn a_thousand_mutants() {
    let count: u64 = setting("H5FS_MUTANTS").map_or(1000, |n| n.parse().expect("a number"));
    let directory = setting("H5FS_MUTANTS_OF").map_or_else(|| fixtures().into(), PathBuf::from);
    // One limit per call, because some shells accept only one. The option -e makes a failure
    // visible.
    let limited = format!("set -e; ulimit -c 0; ulimit -v {ADDRESS_SPACE}; exec \"$0\" \"$@\"");
    let mut child = Command::new("sh");
    child
        .args(["-c", &limited])
        .arg(std::env::current_exe().expect("this program"))
        .args(["--exact", "hostile::mutants::the_mutants", "--ignored"])
        .arg("--nocapture")
        .env("H5FS_MUTANTS", count.to_string())
        .env("H5FS_MUTANTS_OF", directory);
    let limit = LONG + Duration::from_secs(count / 20);
    let finished = run(&mut child, limit);
    print!("{}", finished.text());
    assert!(
        finished.status.success(),
        "{}{}",
        finished.text(),
        finished.stderr
    );
}

#[test]
#[ignore = "a_thousand_mutants runs it, in a process of its own: cargo test a_thousand_mutants"]
fn the_mutants() {
    let number = |name| setting(name).map(|n| n.parse().expect("a number"));
    let count: u64 = number("H5FS_MUTANTS").expect("how many");
    let seed = number("H5FS_MUTANTS_SEED").unwrap_or(1);
    let keep = setting("H5FS_MUTANTS_KEEP").map(PathBuf::from);
    let directory = setting("H5FS_MUTANTS_OF").expect("a directory");
    let originals = originals(Path::new(&directory));
    assert!(!originals.is_empty(), "no small files in {directory}");
    println!("{count} mutants of {} files, seed {seed}", originals.len());
    note_panics();
    watch_for_hangs();
    let mut bounds = Bounds::SMALL;
    if let Some(objects) = setting("H5FS_MUTANTS_OBJECTS") {
        bounds.objects = objects.parse().expect("a number");
    }
    let mut report = Report::default();
    for (mutant, (name, original)) in (0..count).zip(originals.iter().cycle()) {
        let mut random = Random(seed.wrapping_mul(1 << 32).wrapping_add(mutant));
        let bytes = original.mutant(&mut random);
        let label = format!("mutant {mutant} of {name}");
        begin(&label);
        if let Some(directory) = &keep {
            fs::write(directory.join("current"), &bytes).expect("write");
        }
        let complaints = report.look_at(&label, &bytes, bounds);
        if let (Some(directory), true) = (&keep, complaints) {
            let file = label.replace([' ', '/'], "-");
            fs::write(directory.join(file), bytes).expect("write");
        }
    }
    begin("");
    report.finish(count);
}

/// Returns the small files of a directory, sorted by name.
fn originals(directory: &Path) -> Vec<(String, Original)> {
    let entries = fs::read_dir(directory).expect("directory").flatten();
    let paths: BTreeSet<PathBuf> = entries.map(|entry| entry.path()).collect();
    paths
        .iter()
        .filter(|path| {
            path.metadata()
                .is_ok_and(|m| m.is_file() && m.len() <= LARGEST)
        })
        .map(|path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            (
                name.into_owned(),
                Original::new(fs::read(path).expect("read")),
            )
        })
        .collect()
}

#[derive(Default)]
struct Report {
    opened: u64,
    errors: usize,
    objects: usize,
    slowest: (Duration, String),
    /// The longest request.
    longest: (Duration, String),
    largest: (u64, String),
    complaints: Vec<String>,
}

impl Report {
    /// Walks one mutant. Returns whether there is a complaint.
    fn look_at(&mut self, label: &str, bytes: &[u8], bounds: Bounds) -> bool {
        let before = self.complaints.len();
        let resident = reset_peak();
        let walk = || {
            let start = processor_time();
            let outcome = std::panic::catch_unwind(|| open_and_walk(bytes.to_vec(), bounds));
            (outcome, processor_time() - start)
        };
        let (outcome, mut time) = walk();
        // Other tests run in the same process, so each time is only an upper bound.
        for _ in 0..REPETITIONS {
            if time > SLOWEST {
                time = time.min(walk().1);
            }
        }
        let memory = status("VmHWM:").saturating_sub(resident);
        if let Ok(Ok(seen)) = outcome {
            self.opened += 1;
            self.errors += seen.errors;
            self.objects += seen.objects;
            if seen.longest > self.longest.0 {
                self.longest = (seen.longest, label.to_owned());
            }
            let lost = seen.lost.iter();
            self.complaints
                .extend(lost.map(|path| format!("{label}: listed and not found: {path}")));
        }
        // Includes panics of decoding threads, which no caller sees.
        let panics = std::mem::take(&mut *PANICS.lock().expect("panics"));
        self.complaints
            .extend(panics.iter().map(|panic| format!("{label}: {panic}")));
        if time > SLOWEST {
            self.complaints.push(format!("{label}: took {time:?}"));
        }
        if memory > MEMORY {
            self.complaints.push(format!("{label}: took {memory} kB"));
        }
        if time > self.slowest.0 {
            self.slowest = (time, label.to_owned());
        }
        if memory > self.largest.0 {
            self.largest = (memory, label.to_owned());
        }
        for complaint in &self.complaints[before..] {
            println!("{complaint}");
        }
        self.complaints.len() > before
    }

    fn finish(&self, count: u64) {
        println!(
            "{} of {count} opened; {} objects, {} errors; slowest {:?} ({}), \
             longest request {:?} ({}), largest {} kB ({})",
            self.opened,
            self.objects,
            self.errors,
            self.slowest.0,
            self.slowest.1,
            self.longest.0,
            self.longest.1,
            self.largest.0,
            self.largest.1
        );
        assert!(self.complaints.is_empty(), "{}", self.complaints.join("\n"));
    }
}

static PANICS: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Installs a hook that records the panics of all threads.
fn note_panics() {
    let usual = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        let between = CURRENT.lock().is_ok_and(|label| label.is_empty());
        match PANICS.lock() {
            Ok(mut panics) if !between => panics.push(panic.to_string().replace('\n', " ")),
            _ => usual(panic),
        }
    }));
}

/// The label and number of the current mutant.
static CURRENT: Mutex<String> = Mutex::new(String::new());
static NUMBER: AtomicU64 = AtomicU64::new(0);

fn begin(label: &str) {
    label.clone_into(&mut CURRENT.lock().expect("label"));
    NUMBER.fetch_add(1, Ordering::Relaxed);
}

/// Aborts the process with the label of the mutant if there is no progress.
fn watch_for_hangs() {
    std::thread::spawn(|| {
        let mut last = (0, Instant::now());
        loop {
            std::thread::sleep(Duration::from_millis(200));
            let number = NUMBER.load(Ordering::Relaxed);
            if number != last.0 {
                last = (number, Instant::now());
            } else if last.1.elapsed() > HANGS {
                println!("{} hangs", CURRENT.lock().expect("label"));
                std::process::exit(3);
            }
        }
    });
}

/// Resets the peak memory of this process. Returns the current memory in kilobytes.
fn reset_peak() -> u64 {
    fs::write("/proc/self/clear_refs", "5").expect("clear_refs");
    status("VmRSS:")
}

/// Returns a field of this process's status in kilobytes.
fn status(name: &str) -> u64 {
    let text = fs::read_to_string("/proc/self/status").expect("status");
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    let figure = line.and_then(|line| line.split_whitespace().next()?.parse().ok());
    figure.expect("a figure")
}
