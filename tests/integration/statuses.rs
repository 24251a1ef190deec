//! Exit statuses of the commands, and the output of `h5fs check --json`.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::harness::{Finished, H5FS, Mount, SOON, fixture, h5fs, is_root, python, run};
use crate::inspect::damaged;

/// Writes `sound.h5`, and `bad.h5` with an unreadable object. Also writes `lacking.h5` with a
/// virtual dataset that lacks one of its two sources, and `text.h5`, which is not a data file.
fn written() -> (tempfile::TempDir, PathBuf) {
    let directory = tempfile::tempdir().expect("temporary directory");
    let top = directory.path().join("top");
    fs::create_dir(&top).expect("a directory");
    fs::copy(fixture("tiny.latest.h5"), top.join("sound.h5")).expect("copy");
    let (_kept, bad) = damaged(b"OHDR", 1, 30);
    fs::copy(bad, top.join("bad.h5")).expect("copy");
    let code = r#"
import h5py
layout = h5py.VirtualLayout((4,), 'i4')
layout[:2] = h5py.VirtualSource('gone "1".h5', 'd', (2,))
with h5py.File('lacking.h5', 'w', libver='latest') as f:
    f.create_virtual_dataset(b'two\nlines \xff', layout)
"#;
    let mut program = Command::new(python());
    run(program.args(["-c", code]).current_dir(&top), SOON).success();
    fs::write(top.join("text.h5"), "no such format").expect("write");
    (directory, top)
}

fn tell(words: &[&str], top: &Path) -> Finished {
    run(h5fs(words).current_dir(top), SOON)
}

#[test]
fn the_status_of_a_check_says_what_was_found() {
    let (_kept, top) = written();
    for (words, status) in [
        (&["sound.h5"][..], 0),
        (&["bad.h5"], 1),
        (&["lacking.h5"], 1),
        (&["none.h5"], 3),
        (&["text.h5"], 3),
        (&["sound.h5", "sound.h5"], 0),
        (&["sound.h5", "lacking.h5"], 1),
        (&["bad.h5", "none.h5", "sound.h5"], 3),
        (&["text.h5", "bad.h5"], 3),
        (&["."], 1),
        (&[".", "none"], 3),
        (&[], 2),
        (&["--nonsense", "sound.h5"], 2),
    ] {
        for options in [&["check"][..], &["check", "--json"]] {
            let told = tell(&[options, words].concat(), &top);
            assert_eq!(told.status.code(), Some(status), "{words:?}: {told:?}");
        }
    }
    let several = tell(&["check", "bad.h5", "none.h5", "text.h5"], &top);
    let last = several.text().lines().last().map(str::to_owned);
    let last = last.expect("a sum");
    assert!(
        last.starts_with("3 files, ") && last.ends_with(", 2 not opened"),
        "{last}"
    );
    let alone = |name| tell(&["check", name], &top).one_line().to_owned();
    let unopened = format!("{}\n{}\n", alone("none.h5"), alone("text.h5"));
    assert_eq!(several.stderr, unopened);
}

/// A file without read permission is reported, also within a directory.
#[test]
fn a_check_without_permission_is_no_sound_one() {
    if !is_root() {
        crate::harness::skip("only root can become somebody else");
        return;
    }
    let (kept, top) = written();
    for name in ["bad.h5", "lacking.h5", "text.h5"] {
        fs::remove_file(top.join(name)).expect("removal");
    }
    fs::copy(top.join("sound.h5"), top.join("secret.h5")).expect("copy");
    fs::create_dir(top.join("closed")).expect("a directory");
    let program = kept.path().join("h5fs");
    fs::copy(H5FS, &program).expect("copy");
    let mode = fs::Permissions::from_mode;
    for (path, bits) in [
        (kept.path().to_owned(), 0o755),
        (top.clone(), 0o755),
        (top.join("sound.h5"), 0o644),
        (top.join("secret.h5"), 0o600),
        (top.join("closed"), 0o700),
    ] {
        fs::set_permissions(path, mode(bits)).expect("chmod");
    }
    let check = |words: &[&str]| {
        let mut command = Command::new(&program);
        command.arg("check").args(words).current_dir(&top);
        run(command.uid(65534).gid(65534), SOON)
    };
    let secret = check(&["secret.h5"]);
    assert_eq!(secret.status.code(), Some(3), "{secret:?}");
    assert_eq!(secret.one_line(), "h5fs: secret.h5: Permission denied");
    let all = check(&["."]);
    assert_eq!(all.status.code(), Some(3), "{all:?}");
    let mut lines: Vec<_> = all.stderr.lines().collect();
    lines.sort_unstable();
    let denied = ["closed", "secret.h5"];
    let reasons = denied.map(|name| format!("h5fs: ./{name}: Permission denied"));
    let joining = denied.map(|name| {
        format!("h5fs: .: warning: .h5fs/joined:{name}: left out: {name}: Permission denied")
    });
    assert_eq!(lines, [reasons, joining].concat());
    let text = all.text();
    assert!(
        text.starts_with("2 files, ") && text.ends_with(", 2 not opened\n"),
        "{text}"
    );
}

/// Python parses each line separately. The result must agree with the output for people.
#[test]
fn a_check_in_json_says_what_its_lines_say() {
    let (_kept, top) = written();
    let read = r#"
import json, os, subprocess, sys
program, *sources = sys.argv[1:]
def told(*options):
    done = subprocess.run([program, 'check', *options, *sources], capture_output=True)
    # What keeps files from being shown as one is told to people alone.
    lines = done.stderr.splitlines(keepends=True)
    errors = [line for line in lines if not line.startswith(b'h5fs: .: warning: .h5fs/joined:')]
    return done.returncode, done.stdout, b''.join(errors)
status, text, errors = told('--data')
same, lines, same_errors = told('--json', '--data')
assert (status, errors) == (same, same_errors), (status, same, errors, same_errors)
*faults, total = map(json.loads, lines.decode().splitlines())
*wanted, sum_line = text.decode().splitlines() if text else ['']
assert total.pop('kind') == 'sum' and total.pop('read') is True
unopened = [fault for fault in faults if fault['kind'] == 'unopened']
rest = [fault for fault in faults if fault['kind'] != 'unopened']
for fault in unopened:
    assert set(fault) == {'source', 'kind', 'reason'}, fault
    assert f"h5fs: {fault['source']}: {fault['reason']}" in errors.decode().splitlines()
assert len(unopened) == total['unopened'] == errors.count(b'\n')
kinds = [fault['kind'] for fault in rest]
assert kinds.count('unreadable') == total['unreadable']
assert kinds.count('missing') == total['missing']
assert len(rest) == len(wanted) == total['unreadable'] + total['missing']
several = len(sources) > 1 or os.path.isdir(sources[0])
for fault, line in zip(rest, wanted):
    path = os.fsencode(fault['path']).replace(b'\n', b'\\n').replace(b'\xff', b'\\xff').decode()
    name = f"{fault['source']}: " if several else ''
    assert line == f"{name}{path}: {fault['reason']}", (line, fault)
if sum_line:
    assert f"{total['objects']} object" in sum_line and f" {total['bytes']} bytes read" in sum_line
    assert f" {total['unreadable']} unreadable" in sum_line
print(total['files'], status, sorted(kinds))
"#;
    let both = "['missing', 'unreadable']";
    for (sources, wanted) in [
        (&["sound.h5"][..], "1 0 []".to_owned()),
        (&["bad.h5"], "1 1 ['unreadable']".to_owned()),
        (&["lacking.h5"], "1 1 ['missing']".to_owned()),
        (&["none.h5"], "1 3 []".to_owned()),
        (&["."], format!("3 1 {both}")),
        (
            &["lacking.h5", "text.h5", "bad.h5", "none.h5"],
            format!("4 3 {both}"),
        ),
    ] {
        let mut program = Command::new(python());
        program
            .args(["-c", read, H5FS])
            .args(sources)
            .current_dir(&top);
        assert_eq!(
            run(&mut program, SOON).success().text().trim(),
            wanted,
            "{sources:?}"
        );
    }
}

/// The expected statuses are those of the table in docs/install.md.
#[test]
fn the_statuses_of_the_other_commands() {
    let (_kept, top) = written();
    let mount = Mount::new(&top.join("sound.h5"));
    let (point, free) = (mount.path.display().to_string(), Mount::prepare());
    let free = free.path.display().to_string();
    for (words, status) in [
        (&["ls", "sound.h5"][..], 0),
        (&["ls", "sound.h5", "nothing"], 1),
        (&["ls", "none.h5"], 1),
        (&["ls", "--nonsense"], 2),
        (&["cat", "sound.h5", "contiguous"], 0),
        (&["cat", "sound.h5", "nothing"], 1),
        (&["cat", "text.h5", "x"], 1),
        (&["cat", "sound.h5"], 2),
        (&["ndl", "sound.h5"], 0),
        (&["ndl", "none.h5"], 1),
        (&["ndl"], 2),
        (&["status", &point], 0),
        (&["status", &free], 1),
        (&["status"], 2),
        (&["list"], 0),
        (&["list", "more"], 2),
        (&["view", "none.h5"], 1),
        (&["view"], 2),
        (&["none.h5", &free], 1),
        (&["sound.h5", &point], 1),
        (&["sound.h5", &free, "-o", "nonsense"], 2),
        (&["sound.h5"], 2),
    ] {
        let told = tell(words, &top);
        if words[0] == "list" && status == 0 {
            // Mounts of other tests may be dead.
            assert!(matches!(told.status.code(), Some(0 | 1)), "{told:?}");
            continue;
        }
        assert_eq!(told.status.code(), Some(status), "{words:?}: {told:?}");
    }
}
