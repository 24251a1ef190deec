//! Pages of `h5fs serve`: their script, its requests, and interaction in a browser.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use crate::harness::{LONG, Mount, python, run, script};
use crate::served::Served;

/// Writes the file of `tests/fixtures/interactive.py`.
fn written(directory: &Path) -> PathBuf {
    of_command("write", directory.join("a file.h5"))
}

fn of_command(command: &str, file: PathBuf) -> PathBuf {
    run(script("interactive.py").arg(command).arg(&file), LONG).success();
    file
}

/// Writes the file of `tests/fixtures/instrument.py`.
fn instrument(directory: &Path) -> PathBuf {
    let file = directory.join("instrument.h5");
    run(script("instrument.py").arg("write").arg(&file), LONG).success();
    file
}

fn browser_script(name: &str) -> Command {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/browser");
    let mut command = Command::new(python());
    command.env("PYTHONDONTWRITEBYTECODE", "1");
    command.arg(directory.join(name));
    command
}

/// Runs a script of `tests/browser` with a server's URL and a path. Skips the test without a
/// browser.
fn browse(name: &str, served: &Served, path: &Path) {
    let ended = run(browser_script(name).arg(&served.url).arg(path), LONG);
    match ended.stderr.strip_prefix("skipped: ") {
        Some(why) => crate::harness::skip(why.trim_end()),
        None => drop(ended.success()),
    }
}

/// Uses mouse and keys in a browser.
#[test]
fn a_browser_works_the_pages() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let file = written(directory.path());
    browse("served.py", &Served::new(&[], &[&file]), &file);
}

/// Compares values, axis ends, lines and tables with h5py, also on a slow connection and with
/// fingers.
#[test]
fn a_browser_shows_true_values() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let file = instrument(directory.path());
    browse("instrument.py", &Served::new(&[], &[&file]), &file);
}

/// Chooses axes, draws profiles, and opens copied links.
#[test]
fn a_browser_explores_an_array() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let file = instrument(directory.path());
    browse("exploring.py", &Served::new(&[], &[&file]), &file);
}

#[test]
fn a_picture_and_its_controls_fit_into_a_window() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let file = instrument(directory.path());
    browse("stage.py", &Served::new(&[], &[&file]), &file);
}

/// Replaces, shortens and extends files while their pages are open.
#[test]
fn a_browser_notices_changes() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let top = directory.path();
    run(browser_script("changed.py").arg("write").arg(top), LONG).success();
    let files = ["changed.h5", "growing.h5"].map(|name| top.join(name));
    let served = Served::new(&[], &[&files[0], &files[1]]);
    browse("changed.py", &served, top);
}

#[test]
fn a_browser_reaches_the_joined_file_by_clicking() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let top = directory.path();
    run(browser_script("listing.py").arg("write").arg(top), LONG).success();
    browse("listing.py", &Served::new(&[], &[top]), top);
}

#[test]
fn pages_of_a_server_alone_have_a_script() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let file = written(directory.path());
    let served = Served::new(&[], &[&file]);
    let target = "/.h5fs/html/pictures/stack.html";
    let page = served.get(target);
    let policy = page.field("content-security-policy").to_owned();
    let text = String::from_utf8(page.ok()).expect("text");
    assert!(policy.contains("script-src 'self'; connect-src 'self';"));
    assert!(text.contains("script-src 'self'; connect-src 'self';"));
    assert!(!policy.contains("script-src 'unsafe") && !text.contains("<script>"));
    let (_, behind) = text.split_once("<script src=\"../").expect("a script");
    let (place, _) = behind.split_once('"').expect("its place");
    let script = served.get(&format!("/.h5fs/html/{place}"));
    assert_eq!(
        script.field("content-type"),
        "text/javascript; charset=utf-8"
    );
    assert!(script.field("cache-control").ends_with("immutable"));
    let script = script.ok();
    assert!((1000..120_000).contains(&script.len()), "{}", script.len());
    // Clients without the token do not receive the script. No other response is a script or permits
    // one.
    let mut stream = served.connect();
    crate::served::send(
        &mut stream,
        "GET",
        "/?script=",
        &["Host: localhost", "Connection: close"],
    );
    assert_eq!(crate::served::Answer::read(stream, "GET").status, 401);
    let raw = served.get("/line");
    assert_eq!(raw.field("content-type"), "application/octet-stream");
    assert!(!raw.field("content-security-policy").contains("script-src"));
    let mount = Mount::new(&file);
    let own = std::fs::read_to_string(mount.at(target.trim_start_matches('/'))).expect("a page");
    assert!(
        !own.contains("script") && !own.contains(" data-"),
        "a page that is a file"
    );
}

/// Returns the lines of a search result, and the last line with the counts.
#[track_caller]
fn found(served: &Served, wanted: &str) -> (Vec<Value>, Value) {
    let answer = served.get(&format!("/.h5fs/html/?search={wanted}"));
    assert_eq!(
        answer.field("content-type"),
        "application/jsonl; charset=utf-8"
    );
    let text = String::from_utf8(answer.ok()).expect("text");
    let lines = text
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"));
    let (mut counts, mut found): (Vec<Value>, Vec<Value>) =
        lines.partition(|line: &Value| line.get("objects").is_some());
    found.sort_by_key(ToString::to_string);
    (found, counts.pop().expect("an end"))
}

/// The names and attributes are those that the fixture writes.
#[test]
fn names_and_attributes_are_found() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let served = Served::new(&[], &[&written(directory.path())]);
    let (lines, end) = found(&served, "TEMPerature");
    let page = "names/again/er/Temperature.html";
    let name = "names/again/er/Temperature";
    let value = "Air temperature in Haparanda";
    assert_eq!(
        lines,
        [
            json!({"attribute": "long_name", "page": page, "path": name, "value": value}),
            json!({"page": page, "path": name}),
            json!({"page": page, "path": "names/soft temperature"}),
        ]
    );
    assert_eq!(end["is_whole"], true);
    assert!(end["objects"].as_u64() > Some(1100), "{end}");
    // Matches in the name of an attribute, and in the name of a group that ends like a page.
    let (lines, _) = found(&served, "ong_NA");
    assert_eq!(lines.len(), 1);
    let (lines, _) = found(&served, "x%20%3Cb");
    assert_eq!(
        lines[0]["page"],
        "names/page%2Ehtml/x%20%3Cb%3E%26%22%27.html".replace("%2E", "%252E")
    );
    assert_eq!(
        served
            .get(&format!(
                "/.h5fs/html/{}",
                lines[0]["page"].as_str().expect("text")
            ))
            .status,
        200
    );
    let (lines, _) = found(&served, "index");
    assert_eq!(lines[0]["page"], "%2569ndex.html");
    assert_eq!(found(&served, "nothing%20of%20this").0, [] as [Value; 0]);
}

#[test]
fn a_search_is_bounded_and_says_so() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let served = Served::new(&[], &[&written(directory.path())]);
    let (lines, end) = found(&served, "item");
    assert_eq!((lines.len(), &end["is_whole"]), (1000, &json!(false)));
    for wanted in ["", "%zz", &"x".repeat(257)] {
        let target = format!("/.h5fs/html/?search={wanted}");
        assert_eq!(served.get(&target).status, 400, "{wanted}");
    }
    assert_eq!(served.get("/?search=x").status, 404);
    assert_eq!(served.get("/.h5fs/npy/?search=x").status, 404);
    let deep = of_command("deep", directory.path().join("deep.h5"));
    let served = Served::new(&[], &[&deep]);
    let (lines, end) = found(&served, "below");
    let (errors, names): (Vec<&Value>, Vec<&Value>) =
        lines.iter().partition(|line| line.get("error").is_some());
    assert_eq!((names.len(), errors.len()), (128, 1));
    let error = errors[0]["error"].as_str().expect("text");
    assert!(error.contains("depth of the searched groups"), "{error}");
    assert_eq!(end["is_whole"], true);
}
