//! The disk cache as a tool: prefetching, listing and trimming.

use std::fs;
use std::path::Path;
use std::process::Stdio;

use crate::harness::{Finished, LONG, Mount, fixture, h5fs, run, script, tree};
use crate::inspect::on_a_terminal;
use crate::objects::server::Server;

/// Serves a file of `remote.py` with 50 datasets, whose expected bytes are in the directory
/// `small`.
fn served(top: &Path) -> Server {
    run(script("remote.py").arg(top), LONG).success();
    let server = Server::start();
    let bytes = fs::read(top.join("small.h5")).expect("the file");
    server.put("/data/small.h5", bytes);
    server
}

fn cache(words: &[&str]) -> Finished {
    run(h5fs(["cache"]).args(words), LONG)
}

#[test]
fn a_cache_is_filled_listed_and_made_smaller() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let top = directory.path();
    let server = served(top);
    let url = format!("{}?token=sesame", server.url("/data/small.h5"));
    let kept = top.join("cache").display().to_string();
    let filled = run(
        h5fs(["prefetch", "--disk-cache", &kept, &url, "/"]).stdin(Stdio::null()),
        LONG,
    );
    let filled = filled.success();
    assert_eq!((filled.text().as_str(), filled.stderr.as_str()), ("", ""));
    // All bytes are cached. The mount sends one request to check that the object is unchanged.
    server.seen();
    let mount = Mount::with(Path::new(&url), &["--disk-cache", &kept]);
    for path in tree(&top.join("small")) {
        let seen = fs::read(mount.path.join(path.file_name().expect("a name")));
        assert!(seen.expect("a dataset") == fs::read(&path).expect("its bytes"));
    }
    let seen = server.seen();
    let sent: usize = seen.iter().map(|one| one.sent).sum();
    assert_eq!((seen.len(), sent), (1, 1), "{seen:?}");
    drop(mount);
    let listed = cache(&["list", &kept]).success().text();
    let lines: Vec<&str> = listed.lines().collect();
    assert_eq!(lines.len(), 2, "{listed}");
    assert!(
        lines[0].ends_with(&server.url("/data/small.h5")),
        "{listed}"
    );
    assert!(lines[1].ends_with("1 sources") && !listed.contains("sesame"));
    let json = cache(&["list", "--json", &kept]).success().text();
    assert!(json.contains(&server.url("/data/small.h5")), "{json}");
    let bytes = |text: &str| {
        let start = text.find("\"bytes\": ").expect("a member") + "\"bytes\": ".len();
        let digits = text[start..].bytes().take_while(u8::is_ascii_digit).count();
        text[start..start + digits]
            .parse::<u64>()
            .expect("a number")
    };
    let length = fs::metadata(top.join("small.h5")).expect("the file").len();
    assert!(
        (length..length + (1 << 20)).contains(&bytes(&json)),
        "{json}"
    );
    // A cache below the given size is left unchanged.
    cache(&["trim", "--size", "1G", &kept]).success();
    assert_eq!(cache(&["list", "--json", &kept]).text(), json);
    cache(&["clear", &kept]).success();
    let empty = cache(&["list", "--json", &kept]).success().text();
    assert_eq!(empty, "{\"bytes\": 0, \"sources\": []}\n");
}

#[test]
fn what_is_no_cache_and_no_size_is_refused_in_one_line() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let top = directory.path().display().to_string();
    let told = |words: &[&str]| {
        let told = cache(words);
        (told.status.code(), told.one_line().to_owned())
    };
    let (code, line) = told(&["list", &top]);
    assert!(code == Some(1) && line.contains(&top), "{line}");
    let (code, line) = told(&["trim", &top]);
    assert!(code == Some(2) && line.contains("--size"), "{line}");
    let (code, line) = told(&["clear", "--size", "1G", &top]);
    assert!(code == Some(2) && line.contains("trim"), "{line}");
    assert!(!directory.path().join("h5fs-1").exists(), "nothing is made");
    let told = run(
        &mut h5fs(["prefetch", "http://127.0.0.1:9/a.h5", "/"]),
        LONG,
    );
    assert!(told.one_line().contains("--disk-cache"), "{told:?}");
    let options = ["prefetch", "--disk-cache", &top, "a.h5", "/"];
    let told = run(&mut h5fs(options), LONG);
    assert!(told.one_line().contains("not a URL"), "{told:?}");
}

#[test]
fn what_cannot_be_cached_is_told_with_the_reason() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let server = Server::start();
    let bytes = fs::read(fixture("tiny.latest.h5")).expect("the fixture");
    let put = |name: &str, tag: &str| {
        let path = format!("/data/{name}");
        server.put_tagged(&path, bytes.clone(), tag);
    };
    put("p/weak.h5", "W/\"1\"");
    put("p/none.h5", "");
    put("p/strong.h5", "\"1\"");
    let kept = directory.path().join("cache").display().to_string();
    let endpoint = server.url("");
    let prefetch = |url: &str, more: &[&str]| {
        let options = ["prefetch", "--anonymous", "--endpoint", &endpoint];
        let words = [&options[..], &["--disk-cache", &kept], more, &[url, "/"]].concat();
        run(&mut h5fs(words), LONG)
    };
    let told = prefetch(&server.url("/data/p/weak.h5"), &[]);
    assert_eq!(told.status.code(), Some(1));
    let line = format!(
        "h5fs: warning: {}: not cached on disk: its entity tag is weak",
        server.url("/data/p/weak.h5")
    );
    assert_eq!(told.one_line(), line);
    // Reports each object of a prefix that cannot be cached. The other objects are cached.
    let told = prefetch("s3://data/p/", &[]);
    assert_eq!(told.status.code(), Some(1));
    let mut lines: Vec<&str> = told.stderr.lines().collect();
    lines.sort_unstable();
    let [none, weak] = lines[..] else {
        panic!("{told:?}");
    };
    assert!(none.contains("s3://data/p/none.h5: ") && none.ends_with("sends no entity tag"));
    assert!(
        weak.contains("s3://data/p/weak.h5: ") && weak.ends_with("is weak"),
        "{weak}"
    );
    let listed = cache(&["list", &kept]).success().text();
    assert!(
        listed.contains("strong.h5") && !listed.contains("weak.h5"),
        "{listed}"
    );
    let told = prefetch(&server.url("/data/p/none.h5"), &["--quiet"]);
    assert_eq!((told.status.code(), told.stderr.as_str()), (Some(1), ""));
    let told = prefetch(&server.url("/data/p/strong.h5"), &["--etag", "weak"]);
    let line = told.one_line();
    assert!(line.contains("`etag=weak` ignores entity tags"), "{line}");
    assert!(
        prefetch(&server.url("/data/p/strong.h5"), &[])
            .status
            .success()
    );
}

#[test]
fn a_terminal_shows_how_far_it_has_come() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let server = served(directory.path());
    // Several times the interval at which the progress line is updated.
    server.faults(|to| to.latency = std::time::Duration::from_millis(400));
    let url = server.url("/data/small.h5");
    let shown = |cache: &str, variables: &[(&str, &str)]| {
        let kept = directory.path().join(cache).display().to_string();
        let words = format!("prefetch --disk-cache '{kept}' '{url}'");
        on_a_terminal(&words, Path::new("/"), variables)
    };
    let line = shown("one", &[]);
    assert!(
        line.contains(" objects, ") && line.contains("iB/s\x1b[K"),
        "{line:?}"
    );
    assert!(
        line.ends_with("\r\x1b[K"),
        "it is gone in the end: {line:?}"
    );
    assert_eq!(shown("two", &[("TERM", "dumb")]), "");
}

/// The other paths are still read.
#[test]
fn what_is_not_there_is_told_by_name() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let server = served(directory.path());
    let kept = directory.path().join("cache").display().to_string();
    let url = server.url("/data/small.h5");
    let words = ["prefetch", "--disk-cache", &kept, &url, "none", "d0*"];
    let told = run(&mut h5fs(words), LONG);
    assert_eq!(told.status.code(), Some(1));
    assert!(told.one_line().contains("none"), "{told:?}");
    let listed = cache(&["list", &kept]).success().text();
    assert!(listed.contains(&url), "{listed}");
}
