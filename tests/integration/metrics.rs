//! The metrics of mounts, as Prometheus's client library and promtool read them.

use std::collections::HashMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::harness::{Mount, SOON, eventually, fixture, h5fs, is_root, python, run, skip, tree};
use crate::inspect::damaged;
use crate::messages::kill_both;

/// Parses the text with prometheus_client. Prints a line for each sample, with its labels sorted by
/// name.
const PARSE: &str = r#"
import sys
from prometheus_client.parser import text_string_to_metric_families

for family in text_string_to_metric_families(sys.stdin.read()):
    assert family.documentation and family.type in ("counter", "gauge"), family
    for sample in family.samples:
        labels = ",".join(f"{name}={value}" for name, value in sorted(sample.labels.items()))
        print(sample.name, int(sample.value), labels)
"#;

/// Returns the metrics of the mounts at these points, or of all mounts.
fn metrics(points: &[&Path]) -> String {
    run(h5fs(["metrics"]).args(points), SOON).success().text()
}

/// Parses the samples in a text.
fn samples(text: &str) -> Vec<String> {
    let mut parse = Command::new("sh");
    parse.args(["-c", r#"printf %s "$2" | "$0" -c "$1""#]);
    parse.arg(python()).args([PARSE, text]);
    let parsed = run(&mut parse, SOON).success().text();
    parsed.lines().map(str::to_owned).collect()
}

/// Returns the value of the sample with this name and these labels.
fn value(samples: &[String], name: &str, labels: &str) -> u64 {
    let mut values = samples.iter().filter_map(|sample| {
        let (series, found) = sample.split_once(' ')?;
        let (value, found) = found.split_once(' ')?;
        (series == name && found == labels).then(|| value.parse().expect("a number"))
    });
    let value = values.next();
    value.unwrap_or_else(|| panic!("no {name} {labels} in {samples:#?}"))
}

#[test]
fn several_mounts_tell_their_figures_in_one_text() {
    let (_kept, damaged) = damaged(b"OHDR", 1, 30);
    let directory = tempfile::tempdir().expect("temporary directory");
    let odd = directory.path().join("a \"b\"\\ c.h5");
    fs::copy(fixture("tiny.latest.h5"), &odd).expect("copy");
    let mounts = [Mount::new(&odd), Mount::new(&damaged)];
    let (files, others): (Vec<_>, Vec<_>) = tree(&mounts[0].path)
        .into_iter()
        .partition(|path| path.is_file());
    let directories = others.iter().filter(|path| !path.is_symlink()).count() + 1;
    // The kernel requests the bytes of one inode once, even if it has several names.
    let bytes: HashMap<_, _> = files
        .iter()
        .map(|file| {
            let number = file.metadata().expect("attributes").ino();
            (number, fs::read(file).expect("bytes").len())
        })
        .collect();
    let bytes: usize = bytes.values().sum();
    for path in tree(&mounts[1].path) {
        // One of these files is damaged.
        let _ = fs::File::open(path);
    }

    let text = metrics(&[&mounts[0].path, &mounts[1].path]);
    let figures = samples(&text);
    let of = |number: usize, source: &Path| {
        let mount = mounts[number].path.display();
        format!("mount={mount},source={}", source.display())
    };
    let (first, second) = (of(0, &odd), of(1, &damaged));
    for labels in [&first, &second] {
        assert_eq!(value(&figures, "h5fs_up", labels), 1);
        assert!(value(&figures, "h5fs_resident_memory_bytes", labels) > 1 << 20);
        assert!(value(&figures, "h5fs_cache_capacity_bytes", labels) > 1 << 20);
    }
    let served = value(&figures, "h5fs_bytes_served_total", &first);
    assert!(
        served >= u64::try_from(bytes).expect("few"),
        "{served} of {bytes}"
    );
    let asked = |request: &str| {
        let labels = first.replace(",source", &format!(",request={request},source"));
        value(&figures, "h5fs_requests_total", &labels)
    };
    assert!(asked("opendir") >= u64::try_from(directories).expect("few"));
    assert!(asked("open") >= u64::try_from(files.len()).expect("few"));
    assert!(asked("read") > 0);
    let errors = |labels: &str, kind: &str| {
        let labels = format!("kind={kind},{labels}");
        value(&figures, "h5fs_errors_total", &labels)
    };
    assert_eq!(
        (errors(&first, "corrupt"), errors(&second, "corrupt")),
        (0, 1)
    );
    assert_eq!((errors(&second, "io"), errors(&second, "missing")), (0, 0));
    for mount in &mounts {
        let own = fs::read_to_string(mount.at(".h5fs/metrics")).expect("metrics");
        assert!(samples(&own).len() > 10, "{own}");
    }

    promtool(&text);
}

/// Checks the text with promtool.
fn promtool(text: &str) {
    let is_there = |tool: &str| {
        let mut look = Command::new("sh");
        look.args(["-c", &format!("command -v {tool}")]);
        look.stdout(Stdio::null())
            .status()
            .is_ok_and(|status| status.success())
    };
    if !is_there("promtool") {
        skip("there is no promtool");
        return;
    }
    let mut check = Command::new("sh");
    check.args(["-c", r#"printf %s "$0" | promtool check metrics"#, text]);
    let checked = run(&mut check, SOON).success();
    assert_eq!(checked.text() + &checked.stderr, "");
}

#[test]
fn a_directory_of_files_has_figures_of_all() {
    let (_kept, source) = damaged(b"OHDR", 1, 30);
    let directory = tempfile::tempdir().expect("temporary directory");
    for name in ["a.h5", "b.h5"] {
        fs::copy(&source, directory.path().join(name)).expect("copy");
    }
    let mount = Mount::new(directory.path());
    for path in tree(&mount.path) {
        let _ = fs::File::open(path);
    }
    let figures = samples(&metrics(&[&mount.path]));
    let (point, top) = (mount.path.display(), directory.path().display());
    let labels = format!("kind=corrupt,mount={point},source={top}");
    assert_eq!(value(&figures, "h5fs_errors_total", &labels), 2);
    let labels = format!("mount={point},source={top}");
    assert_eq!(value(&figures, "h5fs_files_open", &labels), 2);
}

#[test]
fn a_mount_that_is_not_well_is_not_up() {
    if !is_root() {
        skip("only root can unmount what is dead");
        return;
    }
    let directory = tempfile::tempdir().expect("temporary directory");
    let file = directory.path().join("x.h5");
    fs::copy(fixture("tiny.latest.h5"), &file).expect("copy");
    let (stale, dead) = (Mount::new(&file), Mount::new(&fixture("tiny.latest.h5")));
    let plain = Mount::with(&fixture("tiny.latest.h5"), &["--noviews"]);
    let up = |mount: &Mount, source: &Path| {
        let (point, source) = (mount.path.display(), source.display());
        let all = samples(&metrics(&[]));
        value(&all, "h5fs_up", &format!("mount={point},source={source}"))
    };
    fs::remove_file(&file).expect("removal");
    kill_both(&dead);
    eventually(SOON, "it is stale", || up(&stale, &file) == 0);
    assert_eq!(up(&dead, &fixture("tiny.latest.h5")), 0);
    assert_eq!(up(&plain, &fixture("tiny.latest.h5")), 1);
    run(Command::new("umount").arg(&dead.path), SOON).success();
    let none = run(h5fs(["metrics"]).arg(&dead.path), SOON);
    let wanted = format!("{}: not a mount of h5fs", dead.path.display());
    assert!(none.one_line().ends_with(&wanted), "{none:?}");
}
