//! Compares docs/formats.md, which lists the sections of the formats, with the repository: the
//! source files, tests and fixtures in its tables must exist.

use std::fs;
use std::path::{Path, PathBuf};

use crate::fixtures::THEMES;

/// The first words of the column "h5fs".
const STATES: [&str; 4] = ["read", "written", "refused", "not applicable"];

/// The content of the column "tests" of a row whose section no test covers.
const NO_TEST: &str = "no test";

/// The header of each table of sections begins with one of these words.
const TABLES: [&str; 3] = ["section", "structure", "schema"];

/// A section of a specification.
struct Row {
    section: String,
    state: String,
    sources: String,
    tests: String,
}

fn in_repository(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Returns the rows of the tables of sections.
fn rows() -> Vec<Row> {
    let document = read(&in_repository("docs/formats.md"));
    let lines = document
        .lines()
        .filter_map(|line| line.strip_prefix("| ")?.strip_suffix('|'));
    let mut rows = Vec::new();
    for line in lines {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        let [section, state, sources, tests] = cells[..] else {
            assert_eq!(cells.len(), 2, "a row of another table: {line}");
            continue;
        };
        if !TABLES.contains(&section) {
            rows.push(Row {
                section: section.to_owned(),
                state: state.to_owned(),
                sources: sources.to_owned(),
                tests: tests.to_owned(),
            });
        }
    }
    assert!(rows.len() > 150, "{} rows", rows.len());
    rows
}

/// Returns the words of a cell in backticks.
fn quoted(cell: &str) -> impl Iterator<Item = &str> {
    cell.split('`').skip(1).step_by(2)
}

fn source(path: &str) -> PathBuf {
    if path.starts_with("crates/") {
        in_repository(path)
    } else {
        in_repository("crates/h5fs-reader/src").join(path)
    }
}

/// Returns whether the code has a test of this name.
fn has_test(code: &str, name: &str) -> bool {
    code.split("#[test]").skip(1).any(|rest| {
        let declared = rest.split_once("fn ").map_or("", |(_, rest)| rest);
        declared.split('(').next() == Some(name)
    })
}

/// Returns whether `tests/fixtures` has a writer of the file: a function, or a text with the name.
fn has_fixture(file: &str) -> bool {
    let base = file.split('.').next().unwrap_or(file);
    let function = format!("def {}(", base.replace('-', "_"));
    let text = format!("\"{base}");
    let entries = fs::read_dir(in_repository("tests/fixtures")).expect("fixtures");
    let mut paths = entries.map(|entry| entry.expect("entry").path());
    paths.any(|path| {
        let is_python = path.extension().is_some_and(|extension| extension == "py");
        is_python && (read(&path).contains(&function) || read(&path).contains(&text))
    })
}

#[test]
fn each_section_has_a_state() {
    for row in rows() {
        let Row { section, state, .. } = &row;
        let is_known = STATES.iter().any(|known| state.starts_with(known));
        assert!(is_known, "{section}: {state}");
        if !state.starts_with("not applicable") {
            assert!(quoted(&row.sources).next().is_some(), "{section}: source");
            let is_tested = quoted(&row.tests).next().is_some() || row.tests == NO_TEST;
            assert!(is_tested, "{section}: tests");
        }
    }
}

#[test]
fn source_files_of_sections_exist() {
    for row in rows() {
        for path in quoted(&row.sources) {
            assert!(source(path).is_file(), "{}: {path}", row.section);
        }
    }
}

/// A fixture belongs to the theme of the test before it.
#[test]
fn tests_and_fixtures_of_sections_exist() {
    for row in rows() {
        let mut beginnings: &[&str] = &[];
        for name in quoted(&row.tests) {
            let place = format!("{}: {name}", row.section);
            if let Some(theme) = name.strip_prefix("fixtures::") {
                let known = THEMES.iter().find(|(known, _)| *known == theme);
                (_, beginnings) = *known.expect(&place);
            } else if name.ends_with(".h5") {
                let is_read = beginnings.iter().any(|start| name.starts_with(start));
                assert!(is_read && has_fixture(name), "{place}");
            } else {
                let (path, test) = name.rsplit_once("::").expect(&place);
                let file = if path.ends_with(".rs") {
                    source(path)
                } else {
                    in_repository("tests/integration")
                        .join(path.replace("::", "/"))
                        .with_extension("rs")
                };
                assert!(has_test(&read(&file), test), "{place}");
            }
        }
    }
}
