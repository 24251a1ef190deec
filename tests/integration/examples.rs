//! The commands in README.md and in the documents. `scripts/tour` runs them and compares their
//! output with the output in the document. Also tests the example file that they use.

use std::collections::BTreeSet;
use std::env;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::harness::{H5FS, LONG, SOON, h5fs, python, run, script};

const ROOT: &str = env!("CARGO_MANIFEST_DIR");

/// Documents whose commands `scripts/tour` does not run, with the reason.
const ELSEWHERE: [(&str, &str); 4] = [
    ("docs/by-trade.md", "scripts/recipes runs them"),
    ("docs/python.md", "scripts/python-tests runs them"),
    ("docs/recipes.md", "scripts/recipes runs them"),
    (
        "docs/install.md",
        "they install: scripts/package and scripts/clean-root run most of them",
    ),
];

/// Permitted reasons for which a command of a document is not run.
const REASONS: [&str; 8] = [
    "builds or installs",
    "needs a container",
    "needs a desktop",
    "needs a login",
    "needs a second user",
    "needs a server",
    "needs S3",
    "needs SELinux",
];

/// First words of commands in documents.
const PROGRAMS: [&str; 20] = [
    "apt",
    "apt-get",
    "bwrap",
    "cargo",
    "cat",
    "cp",
    "docker",
    "fusermount3",
    "getfattr",
    "h5fs",
    "ls",
    "mkdir",
    "mount",
    "pip",
    "podman",
    "python3",
    "setpriv",
    "sudo",
    "systemctl",
    "unshare",
];

/// Returns README.md and docs/*.md.
fn documents() -> Vec<String> {
    let entries = fs::read_dir(Path::new(ROOT).join("docs")).expect("docs");
    let names = entries.map(|entry| entry.expect("entry").file_name());
    let names = names.map(|name| name.into_string().expect("a name"));
    let mut documents: Vec<String> = names
        .filter(|name| name.ends_with(".md"))
        .map(|name| format!("docs/{name}"))
        .collect();
    documents.push("README.md".to_owned());
    documents.sort();
    documents
}

fn text(document: &str) -> String {
    fs::read_to_string(Path::new(ROOT).join(document)).expect(document)
}

/// Returns the documents that `scripts/tour` runs.
fn toured() -> Vec<String> {
    let mut documents = documents();
    documents.retain(|document| ELSEWHERE.iter().all(|(other, _)| document != other));
    documents
}

/// Counts the commands of a document: lines that start with `$ `, and blocks of Python.
fn count(document: &str) -> usize {
    let text = text(document);
    let is_command = |line: &&str| line.starts_with("    $ ") || *line == "```python";
    text.lines().filter(is_command).count()
}

/// Returns lines of indented blocks that look like commands, but do not start with `$ `.
fn unmarked(document: &str) -> Vec<String> {
    let mut unmarked = Vec::new();
    let mut has_commands = false;
    for line in text(document).lines() {
        let Some(line) = line.strip_prefix("    ") else {
            has_commands &= line.is_empty();
            continue;
        };
        has_commands |= line.starts_with("$ ");
        let first = line.split(' ').next().unwrap_or_default();
        let is_one = PROGRAMS.contains(&first) || first.starts_with("scripts/");
        if is_one && !has_commands {
            unmarked.push(line.to_owned());
        }
    }
    unmarked
}

/// Returns a PATH in which the program under test and the tests' Python precede the user's
/// directories.
fn paths() -> std::ffi::OsString {
    let (program, python) = (PathBuf::from(H5FS), python());
    let directories = [&program, &python].map(|path| path.parent().expect("a directory"));
    let inherited = env::var_os("PATH").unwrap_or_default();
    let paths = directories.into_iter().map(Path::to_owned);
    env::join_paths(paths.chain(env::split_paths(&inherited))).expect("PATH")
}

#[test]
fn the_documents_show_what_their_commands_print() {
    let documents = toured();
    let mut tour = Command::new(Path::new(ROOT).join("scripts/tour"));
    let told = run(tour.args(&documents).env("PATH", paths()), LONG).success();
    let printed = told.text();
    let run = printed
        .lines()
        .filter(|line| line.starts_with("$ "))
        .count();
    let mut left_out = 0;
    for line in told.stderr.lines() {
        let Some((reason, number)) = line
            .strip_prefix("not run (")
            .and_then(|rest| rest.split_once("): "))
        else {
            continue;
        };
        let is_lack = reason.starts_with("without ");
        assert!(
            is_lack || REASONS.contains(&reason),
            "{reason} is no reason"
        );
        left_out += number.parse::<usize>().expect("a number");
    }
    let written: usize = documents.iter().map(|document| count(document)).sum();
    assert_eq!(run + left_out, written, "{printed}{}", told.stderr);
    assert!(run > 60, "{run} commands");
    // A test's own output is captured and would not be shown.
    let _ = write!(std::io::stderr(), "{}", told.stderr);
    for (document, reason) in ELSEWHERE {
        let count = count(document).max(unmarked(document).len());
        let _ = writeln!(
            std::io::stderr(),
            "not run ({reason}): {count} of {document}"
        );
    }
}

#[test]
fn commands_of_documents_say_that_they_are() {
    for document in toured() {
        let unmarked = unmarked(&document);
        assert!(unmarked.is_empty(), "{document}: {unmarked:?}");
    }
}

/// Links between documents lead to existing headings.
#[test]
fn links_of_documents_lead_to_headings() {
    let all = documents();
    let targets: BTreeSet<String> = all
        .iter()
        .flat_map(|document| {
            let headings = anchors(&text(document))
                .into_iter()
                .map(move |anchor| format!("{document}#{anchor}"));
            headings.chain([document.clone()]).collect::<Vec<_>>()
        })
        .collect();
    let mut links = 0;
    for document in &all {
        let directory = Path::new(document).parent().expect("a directory");
        for link in local_links(&text(document)) {
            let target = match link.strip_prefix('#') {
                Some(_) => format!("{document}{link}"),
                None => directory.join(&link).display().to_string(),
            };
            let is_file = Path::new(ROOT).join(&target).exists();
            assert!(is_file || targets.contains(&target), "{document}: {link}");
            links += 1;
        }
    }
    assert!(links > 80, "{links} links");
}

/// Returns the anchors that GitHub gives to headings.
fn anchors(text: &str) -> Vec<String> {
    let headings = text.lines().filter(|line| line.starts_with('#'));
    headings
        .map(|heading| {
            let title = heading
                .trim_start_matches('#')
                .trim()
                .to_lowercase()
                .replace(' ', "-");
            title
                .chars()
                .filter(|c| c.is_alphanumeric() || matches!(c, '-' | '_'))
                .collect()
        })
        .collect()
}

/// Returns the targets of links that are not URLs.
fn local_links(text: &str) -> Vec<String> {
    let parts = text.split("](").skip(1);
    let targets = parts.filter_map(|part| part.split_once(')'));
    let local = targets.map(|(target, _)| target.to_owned());
    local
        .filter(|target| !target.contains("://") && !target.contains(['\n', ' ']))
        .collect()
}

/// The example is what its script writes, as h5py reads both.
#[test]
fn the_example_is_that_of_its_script() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let (ours, fresh) = (
        directory.path().join("climate.h5"),
        directory.path().join("fresh.h5"),
    );
    run(h5fs(["example"]).current_dir(&directory), SOON).success();
    let writer = Path::new(ROOT).join("scripts/example.py");
    run(Command::new(python()).arg(&writer).arg(&fresh), LONG).success();
    run(script("same_file.py").arg(&ours).arg(&fresh), LONG).success();

    let months = |name: &str| directory.path().join(name).join("");
    run(h5fs(["example", "2025/"]).current_dir(&directory), SOON).success();
    run(
        Command::new(python()).arg(writer).arg(months("fresh")),
        LONG,
    )
    .success();
    for month in 1..=12 {
        let [ours, fresh] =
            ["2025", "fresh"].map(|of| months(of).join(format!("2025-{month:02}.nc")));
        run(script("same_file.py").arg(ours).arg(fresh), LONG).success();
    }
    let again = run(h5fs(["example", "2025/"]).current_dir(&directory), SOON);
    assert!(again.one_line().contains("2025"), "{again:?}");

    // An existing file is not overwritten.
    fs::write(&fresh, "mine").expect("a file");
    let refused = run(h5fs(["example"]).arg(&fresh), SOON);
    assert!(refused.one_line().contains("fresh.h5"), "{refused:?}");
    assert_eq!(fs::read(&fresh).expect("a file"), b"mine");
}
