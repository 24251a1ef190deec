//! The cost of the mappings, aliases and references of one ASDF tree.

use h5fs_tree::{FileKind, Requests};

use super::asdf::file;
use super::requests::{costs_little, many};

/// Aliases of aliases, aliases of nodes below long names, and references with many names.
#[test]
fn links_of_a_tree() {
    let mut aliases = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n".to_owned();
    for level in 1..60 {
        let all = vec![format!("*a{}", level - 1); 9].join(", ");
        aliases += &format!("a{level}: &a{level} [{all}]\n");
    }
    let timed = costs_little(file(&aliases, &[]));
    timed.tree.answers(&[
        ("a0/8", "file of 2 bytes: [120, 10]"),
        ("a59/8", "link: ../a58"),
    ]);
    let key = "k".repeat(many(20_000));
    let mut text = String::new();
    for level in 0..500 {
        text += &format!("{:level$}? {key}\n{:level$}:\n", "", "");
        if level == 499 {
            text += &format!("{:level$} &deep end\n", "");
        }
    }
    text += "aliases:\n";
    text += &"- *deep\n".repeat(1000);
    let timed = costs_little(file(&text, &[]));
    let too_deep = "file of 0 bytes: [error: alias: its node has no path, or the path is too long*";
    timed
        .tree
        .answers(&[("aliases/0", too_deep), ("aliases/999", too_deep)]);
    let uri = "/7".repeat(many(1_000_000));
    let others: String = (0..many(100_000)).map(|i| format!("k{i}: 0\n")).collect();
    let text = format!("{others}7: 0\nself: {{$ref: '#{uri}'}}\n");
    let zero = "file of 2 bytes: [48, 10]";
    let timed = costs_little(file(text, &[]));
    let too_long = "file of 0 bytes: [error: text of a reference is over the limit of 65536]";
    timed
        .tree
        .answers(&[("k4", zero), ("7", zero), ("self", too_long)]);
    let text = format!(
        "x: &x\n  7: *x\n  {}\nself: {{$ref: '#/x{uri}'}}\n",
        others.replace('\n', "\n  ")
    );
    let timed = costs_little(file(text, &[]));
    timed
        .tree
        .answers(&[("x/k4", zero), ("x/7", "link: ."), ("self", too_long)]);
}

/// A cyclic reference in a mapping that contains itself. Its names are compared with names of
/// megabytes.
#[test]
fn a_reference_beside_long_names() {
    const BYTES: usize = if cfg!(debug_assertions) {
        600_000
    } else {
        6_000_000
    };
    let long: String = ["A", "B", "C", "D", "E", "F", "G", "y", "z"]
        .map(|letter| format!("  ? {}\n  : 1\n", letter.repeat(BYTES)))
        .concat();
    let around = "/m".repeat(32_000);
    let text = format!("bad: &bad\n  m: *bad\n{long}  x: {{$ref: '#/bad{around}'}}\n");
    let timed = costs_little(file(text, &[]));
    let too_long = "link: error: text of a symbolic link: File name too long";
    timed
        .tree
        .answers(&[("bad/m", "link: ."), ("bad/x", too_long)]);
}

/// References with many names. The lookup searches among them for a name that is too long to be
/// shown.
#[test]
fn a_cut_name_among_long_ways() {
    let names = "/a".repeat(30_000);
    let references: String = (0..many(200))
        .map(|i| format!("  r{i}: {{$ref: '#{names}'}}\n"))
        .collect();
    let deep: String = (0..900).map(|_| "{n: ").collect();
    let deep = format!("deep: {deep}&deep {{q: 1}}{}\n", "}".repeat(900));
    let aliases: String = (0..many(100_000))
        .map(|i| format!("  a{i}: *deep\n"))
        .collect();
    let long = "l".repeat(300);
    for (before, links) in [("", references), (&*deep, aliases)] {
        let text = format!("{before}bad:\n{links}  {long}: 1\n");
        let mut timed = costs_little(file(text, &[]));
        let bad = timed.tree.0.resolve(b"bad").expect("a group").ino;
        let shown = h5fs_tree::name::escape(long.as_bytes(), false);
        let found = timed.time("lookup of a cut name", "bad", |fs| fs.lookup(bad, &shown));
        assert!(found.is_some_and(|found| found.attributes.kind == FileKind::File));
    }
}

/// Many entries in one mapping, equal keys, and merge keys.
#[test]
fn wide_mappings() {
    let wide: String = (0..many(190_000))
        .map(|i| format!("  k{i:06}: v\n"))
        .collect();
    let timed = costs_little(file(format!("bad: &bad\n{wide}merged:\n  <<: *bad\n"), &[]));
    let v = "file of 2 bytes: [118, 10]";
    timed.tree.answers(&[
        ("bad/k000001", v),
        ("merged/k000001", "link: ../bad/k000001"),
    ]);
    let same: String = (0..many(14_000))
        .map(|i| format!("  !t{i} k: v\n"))
        .collect();
    let timed = costs_little(file(format!("bad:\n{same}"), &[]));
    timed.tree.answers(&[("bad/k", v), ("bad/k%~2", v)]);
}
