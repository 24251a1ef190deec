//! Short runs of the soak tests. `scripts/soak` runs each of them for a chosen time.

use std::path::Path;
use std::process::Command;

use crate::harness::{H5FS, LONG, python, run};

/// Runs a part of the soak test for `least` rounds.
#[track_caller]
fn part(name: &str, least: u32) {
    let parts = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/soak");
    let mut command = Command::new(python());
    command.arg("-B").arg(parts.join(name)).args([H5FS, "0"]);
    command.arg(least.to_string()).env("SOAK_ENTRIES", "20000");
    // Delays can only be measured on an idle machine, by scripts/soak.
    command.envs([("SOAK_AT_ONCE", "30"), ("SOAK_LAG", "15")]);
    let done = run(&mut command, LONG);
    assert!(done.status.success(), "{}{}", done.text(), done.stderr);
}

#[test]
fn opening_and_closing_leaves_nothing_open() {
    part("handles.py", 200);
}

#[test]
fn mounting_and_unmounting_leaves_nothing_behind() {
    part("mounts.py", 20);
}

#[test]
fn sixty_four_readers_read_what_is_there() {
    part("readers.py", 2);
}

#[test]
fn files_that_change_are_read_in_one_state() {
    part("changes.py", 50);
}

#[test]
fn files_of_a_directory_come_change_grow_and_go() {
    part("archive.py", 30);
}

#[test]
fn files_that_are_shown_as_one_come_change_and_go() {
    part("joined.py", 6);
}

#[test]
fn what_a_writer_appends_is_seen() {
    // This number is in seconds rather than rounds. Delays cannot be measured on a busy machine.
    part("growth.py", 3);
}

#[test]
fn seeks_in_a_directory_land_where_they_were() {
    part("directory.py", 500);
}

#[test]
fn whatever_would_change_something_is_refused() {
    part("refusals.py", 1);
}
