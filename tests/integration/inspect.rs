//! `h5fs check` and `h5fs ls -l` of sound and damaged files, and on a terminal.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::harness::{Finished, H5FS, LONG, fixture, fixtures, h5fs, python, run, script};

fn check(options: &[&str], source: &Path) -> Finished {
    run(h5fs(["check"]).args(options).arg(source), LONG)
}

/// Runs a line of Python in which `f` is the file, with h5py and numpy imported. Returns its
/// output.
fn ask(source: &Path, mode: &str, code: &str) -> String {
    let mut command = Command::new(python());
    command.arg("-c").arg(format!(
        "import sys, h5py, numpy\nf = h5py.File(sys.argv[1], sys.argv[2], libver='latest')\n{code}\nf.close()"
    ));
    run(command.arg(source).arg(mode), LONG).success().text()
}

fn temporary(name: &str) -> (tempfile::TempDir, PathBuf) {
    let directory = tempfile::tempdir().expect("temporary directory");
    let path = directory.path().join(name);
    (directory, path)
}

/// Copies `corruptible.h5` and changes one byte at `offset` after the start of the `nth` match of
/// `pattern`.
pub(crate) fn damaged(pattern: &[u8], nth: usize, offset: usize) -> (tempfile::TempDir, PathBuf) {
    let (directory, path) = temporary("damaged.h5");
    let mut content = fs::read(fixture("corruptible.h5")).expect("fixture");
    let windows = content.windows(pattern.len()).enumerate();
    let mut places = windows.filter(|(_, window)| *window == pattern);
    let place = places.nth(nth).expect("the pattern").0 + offset;
    content[place] ^= 0x55;
    fs::write(&path, content).expect("write");
    (directory, path)
}

/// Returns the single fault and the summary of a check.
#[track_caller]
fn one_fault(finished: &Finished) -> (String, String) {
    assert_eq!(finished.status.code(), Some(1), "{finished:?}");
    assert_eq!(finished.stderr, "");
    let text = finished.text();
    let lines: Vec<&str> = text.lines().collect();
    let [fault, summary] = lines[..] else {
        panic!("not one line and a summary: {text}");
    };
    assert!(summary.ends_with(" 1 unreadable"), "{summary}");
    (fault.to_owned(), summary.to_owned())
}

// ------------------------------------------------------------------ check

#[test]
fn a_check_of_a_sound_file_counts_what_is_in_it() {
    // visititems visits every object except the root once, even if it has several names
    let objects = "n = []\nf.visititems(lambda name, _: n.append(name))\nprint(len(n) + 1)";
    let bytes =
        "n = []\nf.visititems(lambda _, o: n.append(o.size * o.dtype.itemsize))\nprint(sum(n))";
    for name in [
        "tiny.latest.h5",
        "tiny.earliest.h5",
        "links.latest.h5",
        "names.earliest.h5",
        "attribute-counts.latest.h5",
        "attribute-sizes.earliest.h5",
    ] {
        let source = fixture(name);
        let said = check(&["--data"], &source).success();
        let wanted = ask(&source, "r", objects);
        let counted = said.text();
        let counted = counted.split(' ').next().expect("a number");
        assert_eq!(counted, wanted.trim(), "{name}: {}", said.text());
        assert!(said.text().ends_with(", 0 unreadable\n"), "{}", said.text());
        assert_eq!(said.stderr, "", "{name}: no progress in a file");
    }
    let source = fixture("partial-edges.latest.h5");
    let wanted = format!(" {} bytes read,", ask(&source, "r", bytes).trim());
    let said = check(&["--data"], &source).success().text();
    assert!(said.contains(&wanted), "{said}: {wanted}");
    let said = check(&[], &source).success().text();
    assert!(said.contains(&wanted.replace("read", "not read")), "{said}");
}

#[test]
fn a_damaged_chunk_is_found_by_reading_the_data() {
    // values 262144 to 262147 are the start of the second chunk of each dataset
    let chunk = [0, 0, 4, 0, 1, 0, 4, 0, 2, 0, 4, 0, 3, 0, 4, 0];
    let (_directory, source) = damaged(&chunk, 1, 4);
    let said = check(&[], &source).success().text();
    assert_eq!(said, "6 objects, 12582992 bytes not read, 0 unreadable\n");
    let (fault, summary) = one_fault(&check(&["--data"], &source));
    assert!(fault.starts_with("/second: "), "{fault}");
    assert!(fault.contains("fletcher32"), "{fault}");
    assert!(summary.starts_with("6 objects, "), "{summary}");
}

/// Filters of plugins that are not built here. The library writes the chunks as raw bytes.
#[test]
fn filters_that_cannot_be_undone_are_named() {
    const FILTERS: [(u16, &str); 6] = [
        (305, "LZO"),
        (32002, "MAFISC"),
        (32012, "JPEG-LS"),
        (32017, "SZ"),
        (32024, "SZ3"),
        (32028, "SPERR"),
    ];
    let (_directory, source) = temporary("filters.h5");
    let numbers = FILTERS.map(|(number, _)| number);
    let code = format!(
        r#"
for number in {numbers:?}:
    plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    plist.set_chunk((4,))
    plist.set_filter(number, h5py.h5z.FLAG_OPTIONAL, ())
    space = h5py.h5s.create_simple((4,))
    dataset = h5py.h5d.create(f.id, b"%d" % number, h5py.h5t.STD_U8LE, space, plist)
    dataset.write_direct_chunk((0,), b"encoded")"#
    );
    ask(&source, "w", &code);
    let finished = check(&[], &source);
    assert_eq!(finished.status.code(), Some(1), "{finished:?}");
    let faults = finished.text();
    for (number, name) in FILTERS {
        let fault = format!("/{number}: filter {number} ({name}) is not supported");
        assert!(faults.contains(&fault), "{fault} in {faults}");
    }
}

#[test]
fn a_damaged_chunk_index_is_found_without_reading_the_data() {
    let (_directory, source) = damaged(b"FADB", 0, 16);
    let (fault, _) = one_fault(&check(&[], &source));
    assert!(
        fault.starts_with('/') && fault.contains("checksum"),
        "{fault}"
    );
}

#[test]
fn damaged_objects_are_told_and_the_others_looked_at() {
    // the root's header is the first; the others belong to the datasets and to the group
    let mut told = Vec::new();
    for nth in 1..6 {
        let (_directory, source) = damaged(b"OHDR", nth, 30);
        let (fault, summary) = one_fault(&check(&["--data"], &source));
        let (path, reason) = fault.split_once(": ").expect("a path and a reason");
        assert!(reason.contains("checksum"), "{fault}");
        // the content of a group that cannot be read is not found
        let met = if path == "/group" { "5" } else { "6" };
        assert!(summary.starts_with(met), "{summary}");
        told.push(path.to_owned());
    }
    told.sort();
    assert_eq!(
        told,
        ["/first", "/group", "/group/inside", "/second", "/third"]
    );
}

#[test]
fn hostile_names_and_damaged_attributes_take_one_line_each() {
    let (_directory, source) = temporary("hostile.h5");
    // the bytes of this dataset are in a missing file
    let code = r#"
f.create_dataset("red\x1b[31m\nline", (10,), "i4", external=[("missing.bin", 0, 40)])
f["soft"] = h5py.SoftLink("/nowhere")
f["sound"] = numpy.arange(3)
f["sound"].attrs["two\nlines"] = "first"
f["again"] = f["sound"]
f["sound"].attrs["vlen"] = numpy.array(["a text on the heap"], dtype=h5py.string_dtype())"#;
    ask(&source, "w", code);
    let (fault, summary) = one_fault(&check(&["--data"], &source));
    assert!(fault.starts_with("/red\\u{1b}[31m\\nline: "), "{fault}");
    assert!(summary.starts_with("3 objects, 24 bytes read"), "{summary}");
    // the heap of the attribute's text
    let mut content = fs::read(&source).expect("read");
    let heap = content.windows(4).position(|w| w == b"GCOL").expect("heap");
    content[heap] ^= 1;
    fs::write(&source, content).expect("write");
    let said = check(&[], &source);
    assert_eq!(said.status.code(), Some(1));
    let text = said.text();
    assert!(text.contains(": attribute vlen: "), "{text}");
}

#[test]
fn a_check_says_what_cannot_be_opened() {
    let (_directory, source) = temporary("no.h5");
    fs::write(&source, "no such format").expect("write");
    let finished = check(&[], &source);
    assert!(finished.one_line().contains("no.h5"), "{finished:?}");
    assert_eq!(finished.text(), "");
}

// ------------------------------------------------------------------ ls -l

/// The mode of datasets in a mount depends on the mode of the file.
fn readable_by_all(source: &Path) {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(source, fs::Permissions::from_mode(0o644)).expect("chmod");
}

#[test]
fn a_long_listing_has_aligned_columns() {
    let (_directory, source) = temporary("columns.h5");
    let code = r#"
f.create_dataset("a", data=numpy.zeros((1000, 20), "<f8"), chunks=(100, 20), shuffle=True, compression=4)
f.create_dataset("record", data=numpy.zeros(3, [("x", "<i4"), ("y", "<f8")]))
f["scalar"] = numpy.int16(7)
f["null"] = h5py.Empty("f4")
f["g/inner"] = 1
f["link"] = h5py.SoftLink("a")"#;
    ask(&source, "w", code);
    readable_by_all(&source);
    let listing = run(h5fs(["ls", "-l"]).arg(&source), LONG).success().text();
    let stored = ask(&source, "r", "print(f['a'].id.get_storage_size())");
    let stored: u64 = stored.trim().parse().expect("a number");
    assert!((1..=512).contains(&stored), "one block of 512 bytes");
    let wanted = [
        "-r--r--r-- float64  [1000,20] [100,20] shuffle,deflate(4) 512 160000 a",
        "dr-xr-xr-x -        -         -        -                    -      - g",
        "lrwxrwxrwx -        -         -        -                    0      1 link -> a",
        "-r--r--r-- float32  null      -        -                    0      0 null",
        "-r--r--r-- compound [3]       -        -                  512     36 record",
        "-r--r--r-- int16    []        -        -                  512      2 scalar",
    ];
    let mut lines: Vec<&str> = listing.lines().collect();
    lines.sort_by_key(|line| line.split_whitespace().nth(7));
    assert_eq!(lines, wanted);
}

#[test]
fn a_long_listing_of_many_names_ends() {
    let source = fixture("links-100k.latest.h5");
    let finished = run(h5fs(["ls", "-l"]).arg(&source).arg("many"), LONG);
    let text = finished.success().text();
    assert_eq!(text.lines().count(), 100_000);
}

// ------------------------------------------------------------------ terminals

/// Returns the program's output on a terminal, which `script` provides.
pub(crate) fn on_a_terminal(arguments: &str, source: &Path, variables: &[(&str, &str)]) -> String {
    let source = String::from_utf8_lossy(source.as_os_str().as_bytes()).into_owned();
    let mut command = Command::new("script");
    command.args(["-qec", &format!("'{H5FS}' {arguments} '{source}'")]);
    command.arg("/dev/null").env_remove("NO_COLOR");
    command.env("TERM", "xterm").envs(variables.iter().copied());
    run(&mut command, LONG).text()
}

#[test]
fn colour_is_for_terminals_that_want_it() {
    let source = fixture("tiny.latest.h5");
    let coloured = on_a_terminal("ls", &source, &[]);
    for wanted in [
        "\x1b[1;34mgroup\x1b[0m",
        "\x1b[36msecond_name\x1b[0m",
        "\x1b[32mchunked\x1b[0m",
    ] {
        assert!(coloured.contains(wanted), "{coloured:?}");
    }
    for variables in [("NO_COLOR", "1"), ("TERM", "dumb")] {
        let plain = on_a_terminal("ls -l", &source, &[variables]);
        assert!(plain.contains("second_name -> group"), "{plain:?}");
        assert!(!plain.contains('\x1b'), "{plain:?}");
    }
    let piped = run(h5fs(["ls", "-lR"]).arg(&source), LONG).success().text();
    assert!(!piped.contains('\x1b'), "{piped:?}");
    let (_directory, source) = damaged(b"OHDR", 1, 30);
    let coloured = on_a_terminal("ls", &source, &[]);
    assert_eq!(coloured.matches("\x1b[1;31m").count(), 1, "{coloured:?}");
}

#[test]
fn a_check_ends_with_its_summary_on_a_terminal_too() {
    let source = fixture("links-100k.latest.h5");
    let shown = on_a_terminal("check", &source, &[]);
    let summary = "3 objects, 3 bytes not read, 0 unreadable";
    assert!(shown.contains(summary), "{shown:?}");
    assert!(!on_a_terminal("check", &source, &[("TERM", "dumb")]).contains('\x1b'));
}

// ------------------------------------------------------------------ cat

#[test]
fn references_of_every_kind_are_shown_as_paths() {
    let finished = run(
        h5fs(["cat"])
            .arg(fixture("standard-references.latest.h5"))
            .arg(".h5fs/json/references.json"),
        LONG,
    );
    let text = finished.success().text();
    let known = r#"["/target", "/", "/target", "/target/@units", "other.h5:@0x"#;
    assert!(text.starts_with(known), "{text}");
    assert!(text.trim_end().ends_with(r#"", null]"#), "{text}");
}

/// Each line starts with its file, and the last line sums up all files.
#[test]
fn a_directory_is_checked_file_by_file() {
    let (_first, damaged) = damaged(b"OHDR", 1, 30);
    let (_kept, top) = temporary("archive");
    fs::create_dir_all(top.join("sub")).unwrap();
    fs::copy(fixture("tiny.latest.h5"), top.join("sub/good.h5")).unwrap();
    fs::write(top.join("notes.txt"), "no data").unwrap();
    let good = check(&[], &top).success().text();
    assert!(
        good.starts_with("1 file, ") && good.ends_with(" 0 unreadable\n"),
        "{good}"
    );

    fs::copy(&damaged, top.join("bad.h5")).unwrap();
    let alone = check(&[], &damaged).text();
    let both = check(&["-j2"], &top);
    assert!(!both.status.success());
    let name = top.join("bad.h5").display().to_string();
    let (lines, last) = both
        .text()
        .trim_end()
        .rsplit_once('\n')
        .map(|(a, b)| (a.to_owned(), b.to_owned()))
        .expect("two lines");
    for (line, own) in lines.lines().zip(alone.lines()) {
        assert_eq!(line, format!("{name}: {own}"));
    }
    assert_eq!(lines.lines().count() + 1, alone.lines().count());
    assert!(last.starts_with("2 files, "), "{last}");

    let missing = check(&[], &top.join("none"));
    assert!(missing.one_line().contains("No such file"), "{missing:?}");
    let named = run(
        h5fs(["check"]).args([top.join("none"), top.join("sub/good.h5")]),
        LONG,
    );
    assert!(
        !named.status.success() && named.stderr.contains("none: "),
        "{named:?}"
    );
    assert!(named.text().starts_with("2 files, "), "{named:?}");
}

// ------------------------------------------------------------------ ndl

#[test]
fn descriptions_in_json_say_what_those_in_yaml_say() {
    let entries = fs::read_dir(fixtures()).expect("fixtures");
    let mut files: Vec<PathBuf> = entries.map(|e| e.expect("entry").path()).collect();
    // These take half a minute in PyYAML, and contain no structure that smaller files lack.
    files.retain(|file| !file.to_string_lossy().contains("-100k"));
    files.sort();
    run(script("descriptions.py").arg(H5FS).args(files), LONG).success();
}

// ------------------------------------------------------------------ unknown objects, and views

/// Runs a Python program in a new directory.
fn made(code: &str) -> (tempfile::TempDir, PathBuf) {
    let directory = tempfile::tempdir().expect("temporary directory");
    let top = directory.path().canonicalize().expect("path");
    let mut command = Command::new(python());
    run(command.arg("-c").arg(code).current_dir(&top), LONG).success();
    (directory, top)
}

/// Writes dataframes as a later anndata might write them, and an ndarray of a later ASDF version.
fn later_libraries() -> (tempfile::TempDir, PathBuf) {
    made(
        r"
import h5py, numpy
def frame(f, name, columns):
    group = f.create_group(name)
    group.attrs['encoding-type'] = 'dataframe'
    group.attrs['_index'] = '_index'
    group.attrs['column-order'] = columns
    group['x'] = numpy.arange(3.0)
    return group
with h5py.File('later.h5', 'w') as f:
    index = frame(f, 'obs', ['x']).create_group('_index')
    index.attrs['encoding-type'] = 'later-array'
    frame(f, 'var', 7)['_index'] = numpy.arange(3)
    good = frame(f, 'good', ['x'])
    good['_index'] = numpy.arange(3)
with open('later.asdf', 'wb') as f:
    f.write(b'#ASDF 1.0.0\n%YAML 1.1\n%TAG ! tag:stsci.edu:asdf/\n--- !core/asdf-1.1.0\n'
            b'x: !core/ndarray-1.0.0 {source: 0, byteorder: little, shape: [1], datatype: float24}\n...\n')
",
    )
}

#[test]
fn what_is_not_known_is_not_called_damage() {
    let (_kept, top) = later_libraries();
    for (file, path, reason) in [
        (
            "later.h5",
            ".h5fs/csv/obs.csv",
            "column _index of a dataframe: encoding-type later-array is not supported",
        ),
        (
            "later.h5",
            ".h5fs/parquet/obs.parquet",
            "encoding-type later-array is not supported",
        ),
        (
            "later.h5",
            ".h5fs/csv/var.csv",
            "attribute column-order: a list of names of this type is not supported",
        ),
        ("later.asdf", "x", "datatype float24 is not supported"),
    ] {
        let read = run(h5fs(["cat"]).arg(top.join(file)).arg(path), LONG);
        assert_eq!(read.status.code(), Some(1), "{read:?}");
        assert!(read.stderr.contains(reason), "{path}: {}", read.stderr);
        assert!(!read.stderr.contains("corrupt"), "{path}: {}", read.stderr);
    }
}

#[test]
fn a_check_of_the_views_counts_their_refusals() {
    let (_kept, top) = later_libraries();
    let file = top.join("later.h5");
    let plain = check(&[], &file);
    assert_eq!(plain.status.code(), Some(0), "{plain:?}");
    for options in [&["--views"][..], &["--views", "--data"]] {
        let checked = check(options, &file);
        assert_eq!(checked.status.code(), Some(1), "{checked:?}");
        let text = checked.text();
        let mut lines: Vec<&str> = text.lines().collect();
        let sum = lines.pop().expect("a sum");
        for view in [
            "csv/obs.csv",
            "csv/var.csv",
            "parquet/obs.parquet",
            "parquet/var.parquet",
        ] {
            let starts = |line: &&&str| line.starts_with(&format!("/.h5fs/{view}: "));
            assert_eq!(lines.iter().filter(starts).count(), 1, "{view}: {text}");
        }
        assert!(!text.contains("good"), "{text}");
        assert!(
            lines.iter().all(|line| line.ends_with("is not supported")),
            "{text}"
        );
        assert!(
            sum.ends_with(&format!(" {} unreadable", lines.len())),
            "{sum}"
        );
    }
}

#[test]
fn a_check_of_a_directory_counts_what_is_not_joined() {
    let (_kept, top) = made(
        r"
import h5py, numpy
for number, units in enumerate(['m', 'K']):
    with h5py.File('%d.h5' % number, 'w') as f:
        time = f.create_dataset('time', data=numpy.arange(3.0) + 3 * number)
        time.make_scale('time')
        for name in ['same', 'other']:
            made = f.create_dataset(name, data=numpy.arange(3.0))
            made.dims[0].attach_scale(time)
            made.attrs['units'] = 'm' if name == 'same' else units
",
    );
    let plain = check(&["-q"], &top);
    assert_eq!(plain.status.code(), Some(0), "{plain:?}");
    let checked = check(&["--views"], &top);
    assert_eq!(checked.status.code(), Some(1), "{checked:?}");
    let text = checked.text();
    let lines: Vec<&str> = text.lines().collect();
    let [fault, sum] = lines[..] else {
        panic!("not one line and a sum: {text}");
    };
    let begins = format!("{}/.h5fs/joined: /other: units differ", top.display());
    assert!(fault.starts_with(&begins), "{fault}");
    assert!(
        sum.starts_with("2 files, ") && sum.ends_with(" 1 unreadable"),
        "{sum}"
    );
    let json = check(&["--views", "--json"], &top).text();
    let first: serde_json::Value =
        serde_json::from_str(json.lines().next().expect("a line")).expect("JSON");
    assert_eq!(first["path"], "/other");
    assert!(
        first["source"]
            .as_str()
            .is_some_and(|name| name.ends_with("/.h5fs/joined"))
    );
}
