//! The files that an administrator installs: scripts, manual pages, completions and units.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::harness::{Finished, H5FS, LONG, SOON, h5fs, run, tree};

fn in_repository(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// Returns whether a tool for examining files is installed. Otherwise skips the test.
fn is_there(program: &str) -> bool {
    let found = Command::new("sh")
        .args(["-c", "command -v \"$0\" > /dev/null", program])
        .status();
    let is_there = found.is_ok_and(|status| status.success());
    if !is_there {
        crate::harness::skip(&format!("{program} is not installed"));
    }
    is_there
}

fn said(program: &str, arguments: &[&str]) -> Finished {
    run(Command::new(program).args(arguments), SOON)
}

/// Installs into a temporary directory, as a package would.
fn installed(prefix: &str) -> (tempfile::TempDir, PathBuf) {
    let directory = tempfile::tempdir().expect("temporary directory");
    let top = directory.path().canonicalize().expect("path");
    let mut install = Command::new(in_repository("scripts/install"));
    install.args(["--prefix", prefix, "--binary", H5FS, "--destdir"]);
    run(install.arg(&top), LONG).success();
    (directory, top)
}

/// Returns the shell scripts in the directories with scripts.
fn shell_scripts() -> Vec<PathBuf> {
    let directories = [
        "scripts",
        ".ci",
        "tests/packages",
        "packaging",
        "packaging/aur",
    ]
    .map(in_repository);
    let entries = directories
        .iter()
        .flat_map(|directory| fs::read_dir(directory).expect("a directory"));
    let files = entries.map(|entry| entry.expect("entry").path());
    let of_a_shell = |file: &PathBuf| {
        let text = fs::read_to_string(file).unwrap_or_default();
        let first = text.lines().next().unwrap_or_default().to_owned();
        first.starts_with("#!") && first.ends_with("sh") || first.starts_with("# shellcheck")
    };
    files.filter(of_a_shell).collect()
}

#[test]
fn an_installation_leaves_nothing_behind() {
    for (prefix, helper) in [("/usr", "usr/sbin"), ("/opt/h5fs", "opt/h5fs/sbin")] {
        let (_kept, top) = installed(prefix);
        let program = top.join(&prefix[1..]).join("bin/h5fs");
        let version = run(Command::new(&program).arg("--version"), SOON).success();
        assert_eq!(
            version.text(),
            format!("h5fs {}\n", env!("CARGO_PKG_VERSION"))
        );
        let link = fs::read_link(top.join(helper).join("mount.h5fs")).expect("a link");
        assert_eq!(link, Path::new(prefix).join("bin/h5fs"));
        let files = tree(&top).into_iter().filter(|path| !path.is_dir());
        assert_eq!(files.count(), 8, "{prefix}");

        let mut uninstall = Command::new(in_repository("scripts/uninstall"));
        run(
            uninstall.args(["--prefix", prefix, "--destdir"]).arg(&top),
            SOON,
        )
        .success();
        let left = tree(&top).into_iter().filter(|path| !path.is_dir());
        assert_eq!(left.count(), 0, "{prefix}");
    }
}

/// Crates under licences that `deny.toml` names in addition to MIT and Apache, with words of the
/// licence texts.
#[test]
fn the_licences_of_what_is_linked_are_collected() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let mut collect = Command::new(crate::harness::python());
    collect.arg(in_repository("packaging/notices/notices.py"));
    collect
        .arg("x86_64-unknown-linux-gnu")
        .arg(directory.path());
    run(collect.current_dir(in_repository("")), LONG).success();

    let notices = fs::read_to_string(directory.path().join("THIRD-PARTY.txt")).expect("notices");
    for (name, words) in [
        (
            "ring ",
            "THE SOFTWARE IS PROVIDED \"AS IS\" AND THE AUTHOR DISCLAIMS ALL WARRANTIES",
        ),
        ("libbz2-rs-sys ", "Julian R Seward"),
        ("lz4-sys ", "Yann Collet"),
        (
            "zstd-sys ",
            "Redistribution and use in source and binary forms",
        ),
        (
            "webpki-roots ",
            "Community Data License Agreement - Permissive - Version 2.0",
        ),
        ("Rust's standard library ", "The Rust Project Developers"),
        ("The tables of Unicode ", "UNICODE LICENSE V3"),
        ("musl,", "Rich Felker"),
    ] {
        let parts: Vec<&str> = notices.split("\n\n====").collect();
        let of_it = parts.iter().filter(|part| {
            let (heading, _) = part.split_once("====\n\n").unwrap_or_default();
            heading.lines().any(|line| line.starts_with(name))
        });
        assert!(
            of_it.clone().any(|part| part.contains(words)),
            "{name}: {:?}",
            of_it.count()
        );
    }
    assert!(
        !notices.contains("GNU GENERAL PUBLIC LICENSE\n"),
        "no text that binds the program"
    );

    let bill = fs::read_to_string(directory.path().join("h5fs.cdx.json")).expect("bill");
    let lock = fs::read_to_string(in_repository("Cargo.lock")).expect("Cargo.lock");
    for name in ["ring", "zstd-sys", "clap"] {
        let (_, entry) = lock
            .split_once(&format!("name = \"{name}\"\n"))
            .expect(name);
        let checksum = entry.split('"').nth(5).expect("the checksum");
        assert!(bill.contains(checksum), "{name}: {checksum}");
    }
    // Build and test dependencies are not part of the program.
    for name in ["cc", "clap_derive", "proptest", "syn", "tempfile"] {
        assert!(lock.contains(&format!("name = \"{name}\"\n")), "{name}");
        assert!(
            !bill.contains(&format!("\"{name}\"")),
            "{name} is in the bill"
        );
        assert!(
            !notices.contains(&format!("\n{name} ")),
            "{name} is in the notices"
        );
    }
}

/// Returns the files in the package of a crate.
fn packaged(name: &str) -> Vec<String> {
    let mut list = Command::new(env!("CARGO"));
    list.args([
        "package",
        "--list",
        "--locked",
        "--offline",
        "--allow-dirty",
    ]);
    list.args(["--package", name])
        .current_dir(in_repository(""));
    let list = run(&mut list, LONG).success();
    list.text().lines().map(str::to_owned).collect()
}

#[test]
fn each_crate_has_what_builds_it_and_no_more() {
    for (name, needed) in [
        ("h5fs", &["README.md", "src/main.rs", "docs/limits.md"][..]),
        ("h5fs-tree", &["src/http/server.rs"]),
        // The style of pages.
        ("h5fs-view", &["src/documents/html/style.css"]),
        ("h5fs-joined", &["src/lib.rs"]),
        ("h5fs-conventions", &["src/lib.rs"]),
        ("h5fs-fetcher", &["src/lib.rs"]),
        ("h5fs-reader", &["src/lib.rs"]),
    ] {
        let files = packaged(name);
        for file in ["Cargo.lock", "Cargo.toml", "LICENSE"].iter().chain(needed) {
            assert!(files.iter().any(|found| found == file), "{name}: {file}");
        }
        for directory in ["tests/", "scripts/", "packaging/", ".ci/", "docs/gallery/"] {
            let there = files.iter().find(|file| file.starts_with(directory));
            assert_eq!(there, None, "{name}");
        }
    }
}

#[test]
fn manual_pages_are_well_formed() {
    let helper = run(&mut h5fs(["--man", "mount.h5fs"]), SOON)
        .success()
        .text();
    for word in ["fstab", "allow_other", "run_as=USER", "h5fs(1)"] {
        let plain = ["\\fB", "\\fI", "\\fR", "\\"]
            .iter()
            .fold(helper.clone(), |text, font| text.replace(font, ""));
        assert!(plain.contains(word), "{word} is not in {plain}");
    }
    if !is_there("mandoc") {
        return;
    }
    let (_kept, top) = installed("/usr");
    for (page, words) in [
        (
            "man1/h5fs.1",
            [
                "EXIT STATUS",
                "--disk-cache",
                "h5fs check",
                "user.h5fs.dtype",
            ],
        ),
        (
            "man7/h5fs-views.7",
            ["csv/PATH.csv", "file.zarr/", "%2F", "original/PATH"],
        ),
        (
            "man8/mount.h5fs.8",
            ["umount(8)", "EXIT STATUS", "cache_size=SIZE", "/etc/fstab"],
        ),
    ] {
        let page = top.join("usr/share/man").join(page).display().to_string();
        let told = said("mandoc", &["-Tlint", &page]);
        assert_eq!(told.text(), "", "{told:?}");
        let shown = said("mandoc", &["-Tutf8", &page]).success().text();
        // mandoc prints bold and underlined letters twice, with a backspace between them.
        let struck: Vec<char> = shown.chars().collect();
        let is_kept = |at: &usize| struck[*at] != '\u{8}' && struck.get(at + 1) != Some(&'\u{8}');
        let plain: String = (0..struck.len())
            .filter(is_kept)
            .map(|at| struck[at])
            .collect();
        for word in words {
            assert!(plain.contains(word), "{page}: {word} is not in {plain}");
        }
    }
}

/// A line that ends at the cursor, the expected last word after completion, and whether more can be
/// typed after it. `climate.h5` is the example.
const COMPLETED: [(&[&str], &str); 11] = [
    (&["che"], "check"),
    (&["check", "--da"], "--data"),
    (&["--allow-o"], "--allow-other"),
    (&["clim"], "climate.h5"),
    (&["climate.h5", "mnt", "--external", "w"], "within"),
    (&["climate.h5", "mnt", "--verify", "of"], "off"),
    (&["ls", "--sandbox", "of"], "off"),
    (&["climate.h5", "mnt", "-o", "allow"], "allow_other"),
    (
        &["climate.h5", "mnt", "-o", "force,external=a"],
        "force,external=any",
    ),
    (&["cat", "climate.h5", "stat"], "stations/"),
    (&["cat", "climate.h5", "surface/la"], "surface/land"),
];

/// Creates a directory with the example, in which lines are completed.
fn with_example() -> tempfile::TempDir {
    let directory = tempfile::tempdir().expect("temporary directory");
    run(h5fs(["example"]).current_dir(&directory), SOON).success();
    directory
}

/// Returns a shell whose PATH starts with the program under test.
fn shell(name: &str, directory: &Path) -> Command {
    let mut shell = Command::new(name);
    let inherited = std::env::var_os("PATH").unwrap_or_default();
    let own = Path::new(H5FS).parent().expect("a directory").to_owned();
    let paths = std::env::join_paths([own].into_iter().chain(std::env::split_paths(&inherited)));
    shell
        .env("PATH", paths.expect("PATH"))
        .current_dir(directory);
    shell
}

#[test]
fn completions_work_in_bash() {
    let (_kept, top) = installed("/usr");
    let directory = with_example();
    let script = top.join("usr/share/bash-completion/completions/h5fs");
    // calls the script's function as bash does, and completes file names (`-o default`) if the
    // function finds none
    let asked = r#"
        source "$0"
        [[ $(complete -p h5fs) == *"-o default"* ]] || exit 1
        COMP_WORDS=(h5fs "$@")
        COMP_CWORD=$#
        word=${COMP_WORDS[COMP_CWORD]}
        _h5fs h5fs "$word" "${COMP_WORDS[COMP_CWORD - 1]}"
        echo "${COMPREPLY[@]:-$(compgen -f -- "$word")}"
    "#;
    let completed = |words: &[&str]| {
        let mut bash = shell("bash", directory.path());
        bash.args(["-c", asked]).arg(&script).args(words);
        run(&mut bash, SOON).success().text().trim_end().to_owned()
    };
    for (line, word) in COMPLETED {
        // bash splits a word at `=` and replaces only the part after it.
        let pieces: Vec<&str> = line.iter().flat_map(|word| cut(word)).collect();
        let replaced = match word.rsplit_once('=') {
            Some((_, behind)) => behind,
            None => word,
        };
        assert_eq!(completed(&pieces), replaced, "{line:?}");
    }
    assert_eq!(completed(&["check", "--rec"]), "");
    assert_eq!(
        completed(&["cat", "climate.h5", "surface/"]),
        "surface/land surface/north surface/temperature"
    );
    assert_eq!(
        completed(&["ls", "climate.h5", ".h5fs/csv/stat"]),
        ".h5fs/csv/stations/ .h5fs/csv/stations.csv"
    );
}

/// Returns the pieces into which bash splits a word.
fn cut(word: &str) -> Vec<&str> {
    match word.rsplit_once('=') {
        Some((before, behind)) => vec![before, "=", behind],
        None => vec![word],
    }
}

#[test]
fn completions_work_in_fish() {
    let (_kept, top) = installed("/usr");
    if !is_there("fish") {
        return;
    }
    let directory = with_example();
    let script = top.join("usr/share/fish/vendor_completions.d/h5fs.fish");
    let completed = |line: &str| {
        let asked = format!("source {}; complete -C 'h5fs {line}'", script.display());
        let mut fish = shell("fish", directory.path());
        let told = run(fish.args(["--no-config", "-c", &asked]), SOON).success();
        let words = told.text();
        let words = words
            .lines()
            .map(|line| line.split('\t').next().unwrap_or_default().to_owned());
        words.collect::<Vec<_>>()
    };
    for (line, word) in COMPLETED {
        assert_eq!(completed(&line.join(" ")), [word], "{line:?}");
    }
    assert!(completed("check --rec").is_empty());
    let names = ["surface/land", "surface/north", "surface/temperature"];
    assert_eq!(completed("cat climate.h5 surface/"), names);
}

#[test]
fn completions_work_in_zsh() {
    let (_kept, top) = installed("/usr");
    if !is_there("zsh") {
        return;
    }
    let directory = with_example();
    let functions = top.join("usr/share/zsh/vendor-completions");
    let type_it = in_repository("tests/packages/complete.zsh");
    for (line, word) in COMPLETED {
        let typed = format!("h5fs {}", line.join(" "));
        let mut zsh = shell("zsh", directory.path());
        zsh.arg("-f").arg(&type_it).arg(&functions).arg(&typed);
        let told = run(&mut zsh, SOON).success().text();
        let before = &line[..line.len() - 1];
        let expected = [&["h5fs"], before, &[word]].concat().join(" ");
        assert_eq!(told.trim_end(), expected, "{line:?}");
    }
}

#[test]
fn scripts_and_units_have_no_faults() {
    if is_there("shellcheck") {
        let mut scripts = shell_scripts();
        scripts.sort();
        assert!(scripts.len() > 15, "{scripts:?}");
        let mut check = Command::new("shellcheck");
        check.arg("-x").args(scripts).current_dir(in_repository(""));
        assert_eq!(run(&mut check, SOON).success().text(), "");
    }
    if is_there("systemd-analyze") {
        for name in [
            "srv-runs.mount",
            "srv-runs.automount",
            "h5fs@.service",
            "h5fs-metrics.service",
            "h5fs-metrics.timer",
        ] {
            let unit = in_repository("packaging/systemd").join(name);
            let told = said(
                "systemd-analyze",
                &["verify", "--man=no", &unit.display().to_string()],
            );
            // If the program is not installed, the program of the service is missing.
            let mut faults = told
                .stderr
                .lines()
                .filter(|line| !line.contains("not executable"));
            assert_eq!(faults.next(), None, "{told:?}");
        }
    }
}
