//! Mounts every fixture, and compares the mount with what h5py reads during the test.

use std::fs;

use crate::harness::{LONG, Mount, fixtures, run, script};

/// The themes, each with the prefixes of its fixtures' names.
pub(crate) const THEMES: &[(&str, &[&str])] = &[
    (
        "superblocks",
        &[
            "superblock-",
            "user-block-",
            "offsets-",
            "paged",
            "prepended",
            "trailing-",
        ],
    ),
    (
        "headers",
        &["header-", "old-messages", "shared-messages", "times-"],
    ),
    ("groups", &["groups", "symbol-table-", "names"]),
    ("links", &["links.", "external-links", "user-defined-links"]),
    ("datatypes", &["datatypes", "complex-", "committed"]),
    ("dataspaces", &["dataspaces"]),
    (
        "variable",
        &[
            "text-values",
            "sequences",
            "records-with-",
            "standard-references",
        ],
    ),
    ("layouts", &["layouts", "tiny", "corruptible", "sparse"]),
    ("indices", &["chunk-indices", "partial-edges"]),
    ("filters", &["filters", "filter-masks"]),
    ("fill_and_size", &["fill-values", "resized"]),
    ("attributes", &["attribute-"]),
    ("plugins", &["codecs", "numeric-codecs", "layout-5"]),
    ("rare", &["cache-image", "filtered-heaps", "heap-objects"]),
    ("virtual_datasets", &["virtual"]),
    ("large", &["links-100k", "attributes-100k"]),
];

fn names() -> Vec<String> {
    let entries = fs::read_dir(fixtures()).expect("fixtures");
    let mut names: Vec<String> = entries
        .map(|e| e.expect("entry").file_name().into_string().expect("text"))
        .collect();
    names.sort();
    names
}

#[track_caller]
fn compare(theme: &str) {
    let (_, beginnings) = THEMES
        .iter()
        .find(|(name, _)| *name == theme)
        .expect("theme");
    let of_theme = |name: &&String| beginnings.iter().any(|b| name.starts_with(b));
    let mut comparison = script("compare.py");
    let mut mounts = Vec::new();
    for name in names().iter().filter(of_theme) {
        let file = fixtures().join(name);
        let mount = Mount::new(&file);
        comparison.arg(&mount.path).arg(&file);
        mounts.push(mount);
    }
    let said = run(&mut comparison, LONG);
    assert!(said.status.success(), "{}{}", said.text(), said.stderr);
}

macro_rules! themes {
    ($($theme:ident),*) => {
        $(#[test] fn $theme() { compare(stringify!($theme)); })*

        #[test]
        fn every_theme_is_tested() {
            let tested = [$(stringify!($theme)),*];
            assert_eq!(tested.as_slice(), THEMES.iter().map(|(name, _)| *name).collect::<Vec<_>>());
        }
    };
}

themes!(
    superblocks,
    headers,
    groups,
    links,
    datatypes,
    dataspaces,
    variable,
    layouts,
    indices,
    filters,
    fill_and_size,
    attributes,
    plugins,
    rare,
    virtual_datasets,
    large
);

/// Every new fixture must have a theme.
#[test]
fn every_fixture_has_one_theme() {
    for name in names() {
        let themes = THEMES
            .iter()
            .filter(|(_, b)| b.iter().any(|b| name.starts_with(b)));
        assert_eq!(themes.count(), 1, "{name}");
    }
}
