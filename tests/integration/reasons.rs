//! Reasons why a path does not exist. The commands explain them, while a mount can only return
//! ENOENT.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use nix::errno::Errno;

use crate::harness::{Finished, Mount, SOON, h5fs, python, run};

/// Writes `main.h5` with dangling links and arrays, `other.h5` next to it, and a file in the parent
/// directory. Also returns the shape that h5py prints.
fn written() -> (tempfile::TempDir, PathBuf, String) {
    let directory = tempfile::tempdir().expect("temporary directory");
    let top = directory.path().join("top");
    fs::create_dir(&top).expect("a directory");
    let code = r#"
import h5py, numpy
with h5py.File('main.h5', 'w', libver='latest') as f:
    f['temp'] = numpy.zeros((365, 36, 72), 'i2')
    f['table'] = numpy.zeros(10, [('flux', 'f4'), ('pos', [('x', 'f8'), ('y', 'f8')])])
    f['wide'] = numpy.zeros(1, [('column %d' % n, 'u1') for n in range(2000)])
    f['null'] = h5py.Empty('f4')
    f['group/inner'] = 1
    f['soft'] = h5py.SoftLink('/nowhere/x')
    f['group/chain'] = h5py.SoftLink('/soft')
    f['circle'] = h5py.SoftLink('circle')
    f['to_temp'] = h5py.SoftLink('temp')
    f['no_file'] = h5py.ExternalLink('missing.h5', '/x')
    f['no_object'] = h5py.ExternalLink('other.h5', '/nothing')
    f['refused'] = h5py.ExternalLink('../above.h5', '/x')
    print(list(f['temp'].shape))
for name in ['other.h5', '../above.h5']:
    with h5py.File(name, 'w') as f:
        f['x'] = 1
"#;
    let mut program = Command::new(python());
    let said = run(program.args(["-c", code]).current_dir(&top), SOON).success();
    (directory, top, said.text().trim().to_owned())
}

fn tell(words: &[&str], top: &Path) -> Finished {
    run(h5fs(words).current_dir(top), SOON)
}

/// Returns the last line on standard error. A warning may precede it.
#[track_caller]
fn reason(words: &[&str], top: &Path) -> String {
    let told = tell(words, top);
    assert_eq!(told.status.code(), Some(1), "{told:?}");
    assert_eq!(told.stdout, b"", "{told:?}");
    told.stderr.lines().last().expect("a line").to_owned()
}

#[test]
fn a_selector_that_picks_nothing_is_explained() {
    let (_kept, top, shape) = written();
    let outside = format!("out of range: the shape is {shape}");
    for (path, wanted) in [
        ("temp[999]", format!("999 is {outside}")),
        ("temp[..., -73]", format!("-73 is {outside}")),
        ("to_temp[999]", format!("999 is {outside}")),
        (
            "temp[0,0,0,0]",
            format!("too many indices (4): the shape is {shape}"),
        ),
        (".h5fs/csv/temp[999].csv", format!("999 is {outside}")),
        (
            "temp[x]",
            "`x` is not an index, and the elements have no fields".to_owned(),
        ),
        (
            "temp[::0]",
            "`::0` has a step of 0, and the elements have no fields".to_owned(),
        ),
        ("temp[0", "no `]` closes the bracket".to_owned()),
        ("temp[]", "the brackets are empty".to_owned()),
        ("temp[0]x", "`x` follows the last bracket".to_owned()),
        (
            "table[none]",
            "there is no field `none`; there are flux, pos".to_owned(),
        ),
        (
            "table[pos][z]",
            "there is no field `z`; there are x, y".to_owned(),
        ),
        (
            "null[0]",
            "the dataspace is null: there are no elements to select".to_owned(),
        ),
        (
            "group[0]",
            "a selector needs an array, and this object is not an array".to_owned(),
        ),
        (
            "soft[0]",
            "/soft: link to /nowhere/x: no such object".to_owned(),
        ),
        ("nothing[0]", "no such name".to_owned()),
        ("t*[999]", "no name matches this pattern".to_owned()),
    ] {
        for command in ["cat", "ls"] {
            let line = reason(&[command, "main.h5", path], &top);
            assert_eq!(line, format!("h5fs: {path}: {wanted}"), "{command}");
        }
    }
    let line = reason(&["cat", ".", "main.h5/temp[999]"], &top);
    assert_eq!(line, format!("h5fs: main.h5/temp[999]: 999 is {outside}"));
    let line = reason(&["ndl", "main.h5", "temp[999]"], &top);
    assert_eq!(line, format!("h5fs: temp[999]: 999 is {outside}"));
    let wide = reason(&["cat", "main.h5", "wide[none]"], &top);
    assert!(
        wide.contains("column 0, column 1, ") && wide.ends_with(", …"),
        "{wide}"
    );
    assert!(wide.len() < 1000, "{wide}");
}

#[test]
fn a_link_that_leads_nowhere_is_named() {
    let (_kept, top, _) = written();
    let refused = "link to ../above.h5:/x: ../above.h5 (external=within: it leads outside the \
                   source's directory)";
    for (path, wanted) in [
        ("soft", "link to /nowhere/x: no such object"),
        ("soft/more", "/soft: link to /nowhere/x: no such object"),
        ("group/chain", "/soft: link to /nowhere/x: no such object"),
        ("no_file", "link to missing.h5:/x: no such file"),
        ("no_object", "link to other.h5:/nothing: no such object"),
        ("refused", refused),
        ("circle", "Too many levels of symbolic links"),
        ("temp/more", "/temp: Not a directory"),
        ("group/inner/more", "/group/inner: Not a directory"),
        ("nothing/more", "no such name"),
    ] {
        for command in ["cat", "ndl"] {
            let line = reason(&[command, "main.h5", path], &top);
            assert_eq!(line, format!("h5fs: {path}: {wanted}"), "{command}");
        }
        // In a directory, the path of a link starts at the top of the directory.
        let inside = format!("main.h5/{path}");
        let top_of = if wanted.starts_with('/') {
            "/main.h5"
        } else {
            ""
        };
        let line = reason(&["cat", ".", &inside], &top);
        assert_eq!(line, format!("h5fs: {inside}: {top_of}{wanted}"));
    }
    let listed = reason(&["ls", "main.h5", "no_file/"], &top);
    assert_eq!(
        listed,
        "h5fs: no_file/: link to missing.h5:/x: no such file"
    );
    let directory = reason(&["cat", "main.h5", "group"], &top);
    assert_eq!(directory, "h5fs: group: is a directory");
}

/// The kernel receives the same error as always.
#[test]
fn a_mount_answers_that_there_is_no_such_file() {
    let (_kept, top, _) = written();
    let mount = Mount::new(&top.join("main.h5"));
    for path in [
        "temp[999]",
        "temp[x]",
        "temp[0",
        "table[none]",
        "soft",
        "no_file",
        "refused",
    ] {
        let error = fs::metadata(mount.at(path)).expect_err("a path that leads nowhere");
        assert_eq!(error.raw_os_error(), Some(Errno::ENOENT as i32), "{path}");
    }
}
