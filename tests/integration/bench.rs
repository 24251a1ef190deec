//! Runs `scripts/bench` once with small data, to check that every case reads the right bytes. Times
//! are not checked.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::harness::{H5FS, LONG, python, run};

/// Returns the command of `scripts/bench`. If it hangs, it is stopped in a way that lets it
/// unmount.
fn bench(data: &Path) -> Command {
    let mut command = Command::new("timeout");
    command.arg("550").arg(python());
    command.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/bench/main.py"));
    command.args(["--binary", H5FS, "--data"]).arg(data);
    command
}

fn peers_are_there() -> bool {
    let mut import = Command::new(python());
    import.args(["-c", "import asdf, h5py, hdf5plugin, lz4"]);
    run(&mut import, LONG).status.success()
}

#[test]
fn every_case_runs() {
    if !peers_are_there() {
        crate::harness::skip("Python has not all of the libraries to measure against");
        return;
    }
    let directory = tempfile::tempdir().expect("temporary directory");
    let (table, chart) = (
        directory.path().join("table.md"),
        directory.path().join("chart.svg"),
    );
    let mut small = bench(&directory.path().join("data"));
    small
        .args(["--size", "2M", "--rounds", "1", "--markdown"])
        .arg(&table);
    small.arg("--chart").arg(&chart);
    let said = run(&mut small, LONG).success().text();

    let listed = run(bench(directory.path()).arg("--list"), LONG)
        .success()
        .text();
    let names: Vec<&str> = listed
        .lines()
        .filter_map(|line| line.split(' ').next())
        .collect();
    assert!(names.contains(&"gzip-shuffle"), "{listed}");
    for name in names {
        assert!(
            said.lines()
                .any(|line| line.starts_with(&format!("{name} "))),
            "no {name}: {said}"
        );
    }
    // `scripts/test` does not install the tools of `scripts/bench`.
    for line in said.lines() {
        if let (Some((case, _)), Some((_, tool))) = (line.split_once(' '), line.split_once("  no "))
        {
            let tool = tool.split(' ').next().unwrap_or_default();
            crate::harness::skip(&format!("{case}: no {tool}"));
        }
    }
    assert!(
        fs::read_to_string(table)
            .expect("table")
            .contains("| `cat`, shuffle and gzip |")
    );
    assert!(
        fs::read_to_string(chart)
            .expect("chart")
            .starts_with("<svg ")
    );
}
