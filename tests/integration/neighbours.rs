//! Files that a file names: what is served where they may be opened, and what where they may not.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use nix::errno::Errno;

use crate::harness::{Mount, run, script};

/// What a dataset answers.
#[derive(Debug, PartialEq, Eq)]
enum Answer {
    /// The bytes of the file of this name, with `.bytes` after it.
    Bytes(&'static str),
    /// The virtual dataset's fill value.
    Fill,
    Refused,
}

use Answer::{Bytes, Fill, Refused};

/// The files that `neighbours.py` writes.
fn made() -> (tempfile::TempDir, PathBuf) {
    let directory = tempfile::tempdir().expect("temporary directory");
    let top = directory.path().canonicalize().expect("path");
    run(script("neighbours.py").arg(&top), Duration::from_secs(60)).success();
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

/// Each kind of neighbour, with its answer within the directory and anywhere.
const KINDS: &[(&str, Answer, Answer)] = &[
    ("near", Bytes("values"), Bytes("values")),
    ("below", Bytes("values"), Bytes("values")),
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

#[test]
fn families_and_split_files_are_read_from_one_member() {
    let (_directory, top) = made();
    let drivers = top.join("drivers");
    let first_members = ["family-earliest-00000", "family-latest-00000"];
    for name in first_members
        .into_iter()
        .chain(["split-earliest-m", "split-latest-m"])
    {
        let source = drivers.join(format!("{name}.h5"));
        let mount = Mount::new(&source);
        for dataset in ["values", "chunked", "large", "text"] {
            expect(&mount, &drivers, dataset, &Bytes(dataset));
        }
        let links = fs::read_dir(mount.at("group")).expect("group");
        assert_eq!(links.count(), 50, "{name}");
        // without its other members there is no file
        let (_, refused) = Mount::attempt(&source, &["-o", "external=none"]);
        let line = refused.one_line().to_owned();
        assert!(line.contains("external=none"), "{line}");
    }
}
