//! The examples of README.md and docs/views.md: `scripts/demo` prints what they say it prints.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::harness::{H5FS, LONG, python, run};

const ROOT: &str = env!("CARGO_MANIFEST_DIR");

/// A command as one types it, and the lines that it prints.
type Example = (String, Vec<String>);

/// The commands behind `$ `, each with the lines below it, up to the next command or a `None`.
fn examples<'a>(lines: impl Iterator<Item = Option<&'a str>>) -> Vec<Example> {
    let mut examples: Vec<Example> = Vec::new();
    let mut is_output = false;
    for line in lines {
        if let Some(command) = line.and_then(|line| line.strip_prefix("$ ")) {
            examples.push((command.to_owned(), Vec::new()));
            is_output = true;
        } else if let (Some(line), Some((_, output))) = (line, examples.last_mut()) {
            output.extend(is_output.then(|| undated(line)));
        } else {
            is_output = false;
        }
    }
    for (_, output) in &mut examples {
        let length = output.iter().rposition(|line| !line.is_empty());
        output.truncate(length.map_or(0, |last| last + 1));
    }
    examples
}

/// A line of `ls -l` without owner, group and time; any other line as it is.
fn undated(line: &str) -> String {
    let words: Vec<&str> = line.split_whitespace().collect();
    match words[..] {
        [mode, links, _, _, size, _, _, _, name] if mode.starts_with("-r") => {
            format!("{mode} {links} {size} {name}")
        }
        _ => line.to_owned(),
    }
}

/// The examples of a document: its indented blocks.
fn documented(document: &str) -> Vec<Example> {
    let text = fs::read_to_string(Path::new(ROOT).join(document)).expect(document);
    let code = |line| str::strip_prefix(line, "    ").or_else(|| line.is_empty().then_some(line));
    examples(text.lines().map(code))
}

/// The examples that the demo prints, with the program under test and the tests' Python.
fn printed() -> Vec<Example> {
    let (program, python) = (PathBuf::from(H5FS), python());
    let directories = [&program, &python].map(|path| path.parent().expect("a directory"));
    let inherited = env::var_os("PATH").unwrap_or_default();
    let paths = directories.into_iter().map(Path::to_owned);
    let paths = env::join_paths(paths.chain(env::split_paths(&inherited))).expect("PATH");
    let mut tour = Command::new(Path::new(ROOT).join("scripts/tour"));
    let text = run(tour.env("PATH", paths), LONG).success().text();
    examples(text.lines().map(Some))
}

#[test]
fn the_documents_show_what_the_demo_prints() {
    let printed = printed();
    let mut compared = 0;
    for (document, is_complete) in [("README.md", true), ("docs/views.md", false)] {
        for (command, output) in documented(document) {
            let found = printed.iter().find(|(other, _)| *other == command);
            // docs/views.md also has commands that need programs which the demo does not install.
            assert!(found.is_some() || !is_complete, "{document}: {command}");
            if let Some((_, expected)) = found {
                assert_eq!(output, *expected, "{document}: {command}");
                compared += 1;
            }
        }
    }
    assert!(compared > 12, "{compared} examples");
}
