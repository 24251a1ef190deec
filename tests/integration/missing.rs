//! Missing files that another file needs: the replacement values, and the reports.

use std::fs;
use std::path::PathBuf;

use nix::errno::Errno;

use crate::harness::{Finished, LONG, Mount, SOON, eventually, h5fs, run, script};

/// Creates the directory of files that `missing.py` writes.
fn made() -> (tempfile::TempDir, PathBuf) {
    let directory = tempfile::tempdir().expect("temporary directory");
    run(script("missing.py").arg(directory.path()), LONG).success();
    let source = directory.path().join("whole.h5");
    (directory, source)
}

fn sorted(text: &str) -> Vec<&str> {
    let mut lines: Vec<_> = text.lines().collect();
    lines.sort_unstable();
    lines
}

const DATASETS: [&str; 3] = ["fixed", "growing", "nested"];

#[test]
fn a_check_names_what_is_missing() {
    const FILL: &str = "missing; its elements are fill values";
    let (_directory, source) = made();
    for options in [&["check"][..], &["check", "--data"]] {
        let checked = run(h5fs(options).arg(&source), LONG);
        assert_eq!(checked.status.code(), Some(1));
        assert_eq!(checked.stderr, "");
        let text = checked.text();
        let lines = sorted(&text);
        let read = if options.len() > 1 {
            "read"
        } else {
            "not read"
        };
        // 16, 6 and 4 elements of 4 bytes, and the root
        let summary = format!("4 objects, 104 bytes {read}, 1 unreadable, 6 missing");
        let mut wanted = vec![
            format!("/fixed: virtual source gone.h5:data: {FILL}"),
            format!("/fixed: virtual source b.h5:nothing: {FILL}"),
            format!("/growing: virtual source gone.h5:data: {FILL}"),
            format!("/nested: virtual source far_gone.h5:data: {FILL}"),
            "/no_file: link to gone.h5:/data: no such file".to_owned(),
            "/no_object: link to a.h5:/nothing: no such object".to_owned(),
            summary,
        ];
        wanted.sort_unstable();
        let is_refused = |line: &&str| line.starts_with("/refused: link to /etc/passwd:/data: ");
        assert_eq!(lines.iter().filter(|line| is_refused(line)).count(), 1);
        let others = lines.into_iter().filter(|line| !is_refused(line));
        assert_eq!(others.collect::<Vec<_>>(), wanted);
    }
    let several = run(h5fs(["check"]).arg(&source).arg(&source), LONG);
    assert!(several.text().ends_with(", 2 unreadable, 12 missing\n"));
}

#[test]
fn a_mount_names_each_missing_file_once() {
    let (directory, source) = made();
    let mount = Mount::new(&source);
    for _ in 0..2 {
        for name in DATASETS {
            let wanted = fs::read(directory.path().join(format!("{name}.bytes"))).expect("bytes");
            assert_eq!(fs::read(mount.at(name)).expect(name), wanted, "{name}");
        }
        for link in ["no_file", "refused", "there", "soft"] {
            fs::read_link(mount.at(link)).expect(link);
        }
    }
    let errors = fs::read_to_string(mount.at(".h5fs/errors")).expect("errors");
    let untimed = errors.lines().filter_map(|line| line.split_once(' '));
    let untimed: Vec<_> = untimed.map(|(_, line)| line).collect();
    let reason = "missing; its elements in virtual datasets are fill values";
    let sources = ["gone.h5:data", "b.h5:nothing", "far_gone.h5:data"];
    let sources = sources.map(|source| format!("{source}: {reason}"));
    assert_eq!(untimed[..3], sources, "{errors}");
    assert_eq!(untimed[3], "/no_file: link to gone.h5:/data: no such file");
    assert!(untimed[4].starts_with("/refused: link to /etc/passwd:/data: "));
    assert_eq!(untimed.len(), 5, "{errors}");
    assert_eq!(mount.status("errors"), 5);
}

#[test]
fn a_directory_tells_the_errors_of_all_its_files() {
    let (directory, _) = made();
    let mount = Mount::new(directory.path());
    fs::read(mount.at("whole.h5/fixed")).expect("fixed");
    let errors = fs::read_to_string(mount.at(".h5fs/errors")).expect("errors");
    let own = fs::read_to_string(mount.at("whole.h5/.h5fs/errors")).expect("errors");
    let line = "gone.h5:data: missing; its elements in virtual datasets are fill values\n";
    assert!(errors.contains(&format!(" whole.h5:{line}")), "{errors}");
    assert!(own.contains(&format!(" {line}")), "{own}");
    assert_eq!(mount.status("errors"), 2);
}

#[test]
fn a_missing_source_is_an_error_with_strict() {
    let (directory, source) = made();
    let mount = Mount::with(&source, &["-o", "strict"]);
    for name in DATASETS {
        let code = fs::read(mount.at(name)).expect_err(name).raw_os_error();
        assert_eq!(code, Some(Errno::EIO as i32), "{name}");
    }
    assert_eq!(fs::read(mount.at("there")).expect("there").len(), 16);
    // Parts with existing sources can be read, and so can a part whose source appears later.
    let wanted = fs::read(directory.path().join("fixed.bytes")).expect("bytes");
    let part = &wanted[32..48];
    assert_eq!(fs::read(mount.at("fixed[8:12]")).expect("a part"), part);
    fs::copy(
        directory.path().join("b.h5"),
        directory.path().join("gone.h5"),
    )
    .expect("copy");
    eventually(SOON, "the source is read", || {
        fs::read(mount.at("fixed[4:8]")).is_ok_and(|read| read == part)
    });
}

/// The commands that read a file warn about each missing file once, as a mount's log does.
#[test]
fn commands_warn_of_what_is_missing() {
    let (_directory, source) = made();
    let said = |command: &str, words: &[&str]| {
        let mut command = h5fs([command]);
        run(command.arg(&source).args(words), LONG)
    };
    let missing = |finished: &Finished| {
        let name = format!("h5fs: {}: warning: ", source.display());
        let lines = finished
            .stderr
            .lines()
            .filter_map(|line| line.strip_prefix(&name));
        let words = lines.filter(|line| line.starts_with("gone.h5:data: missing"));
        words.count()
    };
    for (command, words) in [("cat", &["fixed"][..]), ("ndl", &["--values=100"])] {
        let warned = said(command, words);
        assert!(
            warned.status.success() && missing(&warned) == 1,
            "{warned:?}"
        );
        let quiet = said(command, &[words, &["-q"]].concat());
        assert_eq!((quiet.status.success(), &quiet.stderr[..]), (true, ""));
        assert_eq!(quiet.stdout, warned.stdout);
    }
    let listed = said("ls", &["no_file"]);
    assert!(
        listed
            .stderr
            .contains("warning: /no_file: link to gone.h5:/data: no such file")
    );
    let refused = said("cat", &["--strict", "fixed"]);
    assert_eq!((refused.status.code(), refused.stdout.len()), (Some(1), 0));
}
