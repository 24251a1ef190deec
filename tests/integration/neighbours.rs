//! Files that a file refers to: what is served if they may be opened, and what if not.

use std::fs;
use std::os::unix::fs::{FileExt, MetadataExt, symlink};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::sys::stat::{Mode, SFlag, mknod};

use crate::harness::{LONG, Mount, run, script};
use crate::hostile::asdf::{exploded, file as asdf};
use crate::hostile::hdf5::*;

/// The result of reading a dataset.
#[derive(Debug, PartialEq, Eq)]
enum Answer {
    /// The bytes of the file with this name and the suffix `.bytes`.
    Bytes(&'static str),
    /// The virtual dataset's fill value.
    Fill,
    Refused,
}

use Answer::{Bytes, Fill, Refused};

/// Creates the files that `neighbours.py` writes.
fn made() -> (tempfile::TempDir, PathBuf) {
    let directory = tempfile::tempdir().expect("temporary directory");
    let top = directory.path().canonicalize().expect("path");
    run(script("neighbours.py").arg(&top), LONG).success();
    (directory, top)
}

#[track_caller]
fn expect(mount: &Mount, beside: &Path, dataset: &str, answer: &Answer) {
    let read = fs::read(mount.at(dataset));
    match answer {
        Bytes(name) => {
            let wanted = fs::read(beside.join(format!("{name}.bytes"))).expect("expected bytes");
            assert_eq!(read.expect(dataset), wanted, "{dataset}");
        }
        Fill => assert_eq!(read.expect(dataset), [7, 0, 0, 0].repeat(20), "{dataset}"),
        Refused => {
            let code = read.expect_err(dataset).raw_os_error();
            assert_eq!(code, Some(Errno::EIO as i32), "{dataset}");
        }
    }
}

/// Each kind of neighbour, with its results for the policies `within` and `any`.
const KINDS: &[(&str, Answer, Answer)] = &[
    ("near", Bytes("values"), Bytes("values")),
    ("below", Bytes("values"), Bytes("values")),
    ("nested", Bytes("values"), Bytes("values")),
    ("leads_below", Bytes("values"), Bytes("values")),
    ("leads_out", Refused, Bytes("values")),
    ("magic", Refused, Bytes("values")),
    ("up", Refused, Bytes("values")),
    ("absolute", Refused, Bytes("values")),
    ("fifo", Refused, Refused),
    ("directory", Refused, Refused),
    ("ring", Refused, Refused),
];

#[test]
fn the_policy_says_which_files_are_opened() {
    let (_directory, top) = made();
    let inside = top.join("inside");
    let source = inside.join("main.h5");
    for policy in ["none", "within", "any"] {
        let mount = Mount::with(&source, &["-o", &format!("external={policy}")]);
        let check = |dataset: &str, answer: &Answer| expect(&mount, &inside, dataset, answer);
        check("values", &Bytes("values"));
        check("virtual_own", &Bytes("values"));
        for (kind, within, any) in KINDS {
            let answer = match policy {
                "none" => &Refused,
                "within" => within,
                _ => any,
            };
            check(&format!("virtual_{kind}"), answer);
            check(&format!("external_{kind}"), answer);
        }
        let open = policy != "none";
        let round = fs::read(mount.at("round")).expect_err("a link that leads to itself");
        let wanted = if open { Errno::ELOOP } else { Errno::ENOENT };
        assert_eq!(round.raw_os_error(), Some(wanted as i32), "{round}");
        check("virtual_absent", if open { &Fill } else { &Refused });
        check("virtual_absent_up", if open { &Fill } else { &Refused });
        check("external_absent", &Refused);
        let raw = if open { &Bytes("values") } else { &Refused };
        check("virtual_raw", raw);
        let segments = if open { &Bytes("values") } else { &Refused };
        check("external_segments", segments);
        let short = if open {
            &Bytes("external_short")
        } else {
            &Refused
        };
        check("external_short", short);
    }
}

/// Reads a virtual source continuously, while there are more sources than may stay open.
#[test]
fn a_source_that_is_read_stays_open() {
    const ROW: u64 = 32;
    let directory = tempfile::tempdir().expect("temporary directory");
    let mut fixture = script("nested_sources.py");
    run(fixture.arg(directory.path()), LONG).success();
    let mount = Mount::with(&directory.path().join("main.h5"), &["-o", "direct_io"]);
    let rows = fs::File::open(mount.at("rows")).expect("rows");
    let number_at = |offset: u64| {
        let mut bytes = [0; 4];
        rows.read_exact_at(&mut bytes, offset).expect("a number");
        u64::from(u32::from_le_bytes(bytes)) * 4
    };
    for row in 1..300 {
        for offset in [0, row * ROW] {
            assert_eq!(number_at(offset), offset);
        }
    }
    assert_eq!(number_at(ROW / 2), ROW / 2);
}

/// A pointer in an element refers to the file that contains the element, rather than to the file of
/// the virtual dataset.
#[test]
fn what_points_into_another_file_is_not_looked_up_in_this_one() {
    let (_directory, top) = made();
    let mount = Mount::new(&top.join("pointers/main.h5"));
    let read = |path: &str| fs::read_to_string(mount.at(path));
    assert_eq!(read("own_text").unwrap(), "wrong\nother\nwords\n");
    assert_eq!(
        read(".h5fs/json/own_references.json").unwrap().trim(),
        r#"["/text", "/text", "/text"]"#
    );
    for name in ["text", "records", "references"] {
        for path in [
            format!("others_{name}"),
            format!(".h5fs/json/others_{name}.json"),
        ] {
            let code = read(&path).expect_err(&path).raw_os_error();
            let is_refused = [Errno::EIO, Errno::EOPNOTSUPP].map(|errno| Some(errno as i32));
            assert!(is_refused.contains(&code), "{path}: {code:?}");
        }
    }
}

/// `here` is next to the link, and `there` is next to the linked file. `both` is next to each of
/// them, with different content. `led` is a link next to the link, and leads to a file next to the
/// linked file.
#[test]
fn neighbours_are_beside_the_link_first_and_then_beside_the_file() {
    let (_directory, top) = made();
    let expected = top.join("inside");
    let link = top.join("links/link/main.h5");
    for policy in ["within", "any"] {
        let mount = Mount::with(&link, &["-o", &format!("external={policy}")]);
        for name in ["here", "there", "both", "led"] {
            let is_outside = policy == "within" && ["here", "both"].contains(&name);
            let answer = if is_outside { Refused } else { Bytes("values") };
            expect(&mount, &expected, &format!("virtual_{name}"), &answer);
            expect(&mount, &expected, &format!("raw_{name}"), &answer);
            if is_outside {
                assert!(!mount.at(&format!("link_{name}")).exists());
            } else {
                expect(&mount, &expected, &format!("link_{name}"), &answer);
            }
        }
    }
    let mount = Mount::new(&top.join("links/outer.h5"));
    for name in ["here", "there", "both", "led"] {
        for dataset in [
            format!("virtual_{name}"),
            format!("raw_{name}"),
            format!("whole/virtual_{name}"),
            format!("whole/raw_{name}"),
            format!("whole/link_{name}"),
        ] {
            expect(&mount, &expected, &dataset, &Bytes("values"));
        }
    }
}

/// Reads more raw files than a process may have open by default on many systems.
#[test]
fn few_of_many_raw_files_stay_open() {
    const FILES: u8 = 250;
    let directory = tempfile::tempdir().expect("temporary directory");
    let mut file = Hdf5::new();
    let links: Vec<Message> = (0..FILES)
        .map(|i| {
            let name = format!("{i:03}.raw");
            fs::write(directory.path().join(&name), [i; 4]).expect("raw file");
            let dataset = file.put_in_raw_file(&name, 4);
            hard_link(format!("{i:03}").as_bytes(), dataset)
        })
        .collect();
    let root = file.put(&group(&links));
    let source = directory.path().join("main.h5");
    fs::write(&source, file.rooted(root)).expect("main.h5");
    let mount = Mount::new(&source);
    for i in 0..FILES {
        let bytes = fs::read(mount.at(&format!("{i:03}"))).expect("a dataset");
        assert_eq!(bytes, [i; 4]);
    }
    let (worker, _) = mount.worker_and_supervisor(&source);
    let open = fs::read_dir(format!("/proc/{}/fd", worker.pid)).expect("descriptors");
    let open = open.count();
    assert!(open < 160, "{open} are open");
}

#[test]
fn families_split_and_multi_files_are_read_from_one_member() {
    let (_directory, top) = made();
    let drivers = top.join("drivers");
    for name in [
        "family-earliest-00000",
        "family-latest-00000",
        "split-earliest-m",
        "split-latest-m",
        "multi-earliest-s",
    ] {
        let source = drivers.join(format!("{name}.h5"));
        let mount = Mount::new(&source);
        for dataset in ["values", "chunked", "large", "text"] {
            expect(&mount, &drivers, dataset, &Bytes(dataset));
        }
        let links = fs::read_dir(mount.at("group")).expect("group");
        assert_eq!(links.count(), 50, "{name}");
        // without its other members the file cannot be opened
        let (_, refused) = Mount::attempt(&source, &["-o", "external=none"]);
        let line = refused.one_line().to_owned();
        assert!(line.contains("external=none"), "{line}");
    }
}

/// The superblock's extension, which would name the members, is itself in another member.
#[test]
fn a_multi_file_that_does_not_name_its_members_is_refused() {
    let (_directory, top) = made();
    let source = top.join("drivers/multi-latest-s.h5");
    let (_, refused) = Mount::attempt(&source, &[]);
    let line = refused.one_line();
    assert!(line.contains("another file of the multi driver"), "{line}");
}

#[test]
fn of_an_onion_the_first_revision_is_shown() {
    let (_directory, top) = made();
    let drivers = top.join("drivers");
    let mount = Mount::new(&drivers.join("onion.h5"));
    expect(&mount, &drivers, "values", &Bytes("values"));
}

/// The names of a virtual source's members derive from the name of the source, rather than from the
/// file that refers to it.
#[test]
fn virtual_sources_have_members_of_their_own() {
    let (_directory, top) = made();
    let drivers = top.join("drivers");
    for first in ["family-latest-00000", "split-latest-m"] {
        let mount = Mount::new(&drivers.join(format!("of-{first}.h5")));
        expect(&mount, &drivers, "values", &Bytes("values"));
    }
    let mount = Mount::new(&drivers.join("own-0.h5"));
    expect(&mount, &drivers, "values", &Refused);
}

/// Files that are numbered from 0 are usually not members of a family.
#[test]
fn a_file_that_is_cut_off_does_not_go_on_in_the_next() {
    let (_directory, top) = made();
    let drivers = top.join("drivers");
    for name in ["series-0.h5", "plain-0.h5"] {
        let mount = Mount::new(&drivers.join(name));
        expect(&mount, &drivers, "values", &Refused);
    }
}

/// The blocks of an exploded ASDF file are read only from regular files of the directory.
#[test]
fn blocks_of_an_exploded_file_that_are_no_files() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let inside = directory.path().join("inside");
    fs::create_dir(&inside).expect("a directory");
    let at = |name: &str| inside.join(name);
    fs::write(at("good"), exploded(b"goodness")).expect("a block");
    fs::write(directory.path().join("outside"), exploded(b"outside!")).expect("a block");
    fs::create_dir(at("directory")).expect("a directory");
    symlink("../outside", at("out")).expect("a link");
    symlink("/dev/zero", at("zero")).expect("a link");
    symlink("loop", at("loop")).expect("a link");
    let mode = Mode::S_IRWXU;
    nix::unistd::mkfifo(&at("fifo"), mode).expect("mkfifo");
    let _socket = UnixListener::bind(at("socket")).expect("a socket");
    let zero = nix::sys::stat::makedev(1, 5);
    if let Err(error) = mknod(&at("device"), SFlag::S_IFCHR, mode, zero) {
        eprintln!("without a device: {error}");
    }
    let bad = [
        "directory",
        "out",
        "zero",
        "loop",
        "fifo",
        "socket",
        "device",
        "absent",
    ];
    let array = |name: &str| {
        format!(
            "{name}: !core/ndarray-1.1.0 {{source: {name}, datatype: uint8, byteorder: little, shape: [8]}}\n"
        )
    };
    let arrays: String = bad
        .iter()
        .chain(&["good"])
        .map(|name| array(name))
        .collect();
    let source = at("main.asdf");
    fs::write(&source, asdf(arrays, &[])).expect("main.asdf");
    let mount = Mount::with(&source, &[]);
    for name in bad {
        let read = fs::read(mount.at(name)).expect_err(name);
        assert_eq!(read.raw_os_error(), Some(Errno::EIO as i32), "{name}");
    }
    assert_eq!(fs::read(mount.at("good")).expect("good"), b"goodness");
}

/// Two files refer to each other: to each other's references, and through each other's groups.
#[test]
fn references_round_in_circles() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let to = |other: &str| {
        format!(
            "round: {{$ref: '{other}.asdf#/round'}}\ngroup: {{next: {{$ref: '{other}.asdf#/group'}}}}"
        )
    };
    for (own, other) in [("a", "b"), ("b", "a")] {
        let path = directory.path().join(format!("{own}.asdf"));
        fs::write(path, asdf(to(other), &[])).expect(own);
    }
    let mount = Mount::with(&directory.path().join("a.asdf"), &[]);
    let read = fs::read(mount.at("round")).expect_err("no end");
    assert_eq!(read.raw_os_error(), Some(Errno::ELOOP as i32));
    let number = |path: &str| fs::metadata(mount.at(path)).expect(path).ino();
    assert_eq!(number("group/next/next"), number("group"));
    assert_ne!(number("group/next"), number("group"));
}
