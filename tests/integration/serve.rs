//! Responses of `h5fs serve`: everything that a mount shows, with ranges and conditional requests.

use std::fs;
use std::path::Path;

use crate::harness::{LONG, Mount, SOON, eventually, fixture, tree};
use crate::objects::server::Server;
use crate::served::{Served, archive, encoded};

/// The expected results come from a mount, through the kernel's own lookups and reads.
#[test]
fn what_a_mount_shows_is_served() {
    let file = fixture("tiny.latest.h5");
    let mount = Mount::new(&file);
    let served = Served::new(&[], &[&file]);
    let views = [
        "npy",
        "csv",
        "html",
        "file.zarr",
        "parquet",
        "json",
        "attrs",
        "text",
    ];
    let views = views.map(|view| mount.at(".h5fs").join(view));
    let paths = views
        .iter()
        .flat_map(|view| tree(view))
        .chain(tree(&mount.path));
    let mut count = 0;
    for path in paths.filter(|path| path.is_file()) {
        let target = encoded(path.strip_prefix(&mount.path).expect("beneath"));
        let answer = served.get(&format!("/{target}"));
        let expected = fs::read(&path).expect("the mount");
        if path.extension().is_some_and(|suffix| suffix == "html") {
            let own = without_script(&String::from_utf8(answer.ok()).expect("text"));
            assert_eq!(own, String::from_utf8_lossy(&expected), "{target}");
            continue;
        }
        assert_eq!(
            answer.field("content-length"),
            expected.len().to_string(),
            "{target}"
        );
        assert_eq!(answer.field("x-content-type-options"), "nosniff");
        assert_eq!(answer.ok(), expected, "{target}");
        count += 1;
    }
    assert!(count > 150, "{count}");
    let chosen = served.get("/contiguous%5B3:5%5D").ok();
    assert_eq!(
        chosen,
        fs::read(mount.at("contiguous[3:5]")).expect("the mount")
    );
}

/// Removes the parts of a page that the server adds.
fn without_script(page: &str) -> String {
    let mut rest = page.replace("script-src 'self'; connect-src 'self'; ", "");
    let mut kept = String::new();
    while let Some(begin) = ["<script", " data-"]
        .iter()
        .filter_map(|mark| rest.find(mark))
        .min()
    {
        let end = if rest[begin..].starts_with("<script") {
            rest[begin..].find("</script>\n").expect("an end") + "</script>\n".len()
        } else {
            let word = &rest[begin + 1..];
            let bare = word.find([' ', '>', '=']).expect("an end");
            match word.as_bytes()[bare] {
                b'=' => word.match_indices('"').nth(1).expect("a value").0 + 2,
                _ => bare + 1,
            }
        };
        kept.push_str(&rest[..begin]);
        rest = rest.split_off(begin + end);
    }
    kept + &rest
}

#[test]
fn directories_are_listed_and_data_files_have_pages() {
    let (_kept, top) = archive(b"some bytes");
    let served = Served::new(&[], &[&top]);
    let page = String::from_utf8(served.get("/").ok()).expect("text");
    for part in [
        "<a href=\"./a.h5/?page\">a.h5/</a>",
        "<a href=\"./bytes\">bytes</a> — 10 bytes",
    ] {
        assert!(page.contains(part), "{page}");
    }
    let leads = |target: &str| {
        let answer = served.get(target);
        assert_eq!(answer.status, 302, "{target}");
        answer.field("location").to_owned()
    };
    assert_eq!(leads("/a.h5"), "./a.h5/");
    assert_eq!(leads("/a.h5/"), ".h5fs/html/index.html");
    assert_eq!(leads("/a.h5/group"), "./group/");
    assert_eq!(leads("/a.h5/?page"), ".h5fs/html/index.html");
    // The page's own link to the directory leads there.
    let inner = ["Sec-Fetch-Site: same-origin"];
    let listed = String::from_utf8(served.ask("GET", "/a.h5/", &inner).ok()).expect("text");
    assert!(listed.contains("./contiguous"), "{listed}");
    let page = served.get("/a.h5/.h5fs/html/index.html");
    assert_eq!(page.field("content-type"), "text/html; charset=utf-8");
    assert!(
        page.field("content-security-policy")
            .starts_with("default-src 'none';")
    );
    let json = served
        .ask("GET", "/a.h5/", &["Accept: application/json"])
        .ok();
    for (accept, kind) in [
        (
            "text/html, application/json;q=0",
            "text/html; charset=utf-8",
        ),
        (
            "text/html, application/json;q=0.9",
            "text/html; charset=utf-8",
        ),
        ("text/html;q=0.5, application/json", "application/json"),
        ("application/jsonl", "text/html; charset=utf-8"),
    ] {
        let answer = served.ask("GET", "/a.h5/?list", &[&format!("Accept: {accept}")]);
        assert_eq!(answer.field("content-type"), kind, "{accept}");
    }
    let json: serde_json::Value = serde_json::from_slice(&json).expect("JSON");
    let names: Vec<_> = json
        .as_array()
        .expect("an array")
        .iter()
        .map(|it| &it["name"])
        .collect();
    let expected = [
        "chunked",
        "compact",
        "contiguous",
        "grid",
        "group",
        "growing",
        "text",
    ];
    assert!(
        expected
            .iter()
            .all(|name| names.iter().any(|own| *own == name)),
        "{names:?}"
    );
    let list = String::from_utf8(served.get("/a.h5/?list").ok()).expect("text");
    assert!(list.contains("<a href=\".h5fs/\">") && list.contains("./contiguous"));
    // An HTML file of another author is not served as a page.
    fs::write(top.join("evil.html"), "<script>alert(1)</script>").expect("write");
    let evil = served.get("/evil.html");
    assert_eq!(evil.field("content-type"), "application/octet-stream");
}

/// RFC 9110, section 14, defines the expected responses. `http/ranges.rs` of h5fs-tree
/// tests more cases.
#[test]
fn ranges_are_sent() {
    let bytes: Vec<u8> = (0..=255).collect();
    let (_kept, top) = archive(&bytes);
    let served = Served::new(&[], &[&top]);
    let ask = |range: &str| served.ask("GET", "/bytes", &[&format!("Range: bytes={range}")]);
    for (range, expected) in [
        ("0-0", 0..1),
        ("0-9", 0..10),
        ("250-", 250..256),
        ("-6", 250..256),
        ("200-999", 200..256),
        ("0-9,5-19", 0..20),
    ] {
        let answer = ask(range);
        let content_range = format!("bytes {}-{}/256", expected.start, expected.end - 1);
        assert_eq!(answer.status, 206, "{range}");
        assert_eq!(answer.field("content-range"), content_range);
        assert_eq!(answer.field("content-length"), expected.len().to_string());
        assert_eq!(answer.body, &bytes[expected]);
    }
    for range in ["256-", "-0", "300-400"] {
        let answer = ask(range);
        assert_eq!(
            (answer.status, answer.field("content-range")),
            (416, "bytes */256"),
            "{range}"
        );
    }
    let many: Vec<_> = (0..65).map(|n| format!("{0}-{0}", 2 * n)).collect();
    assert_eq!(ask(&many.join(",")).status, 416);
    let kinds = [(); 2].map(|()| ask("0-1,250-").field("content-type").to_owned());
    assert_ne!(
        kinds[0], kinds[1],
        "a source could hold a boundary that it knows"
    );
    let answer = ask("0-1,250-");
    let kind = answer.field("content-type");
    let boundary = kind
        .strip_prefix("multipart/byteranges; boundary=")
        .expect("parts");
    let part = |range: &str, bytes: &[u8]| {
        let head = format!(
            "\r\n--{boundary}\r\nContent-Type: application/octet-stream\r\n\
             Content-Range: bytes {range}/256\r\n\r\n"
        );
        [head.as_bytes(), bytes].concat()
    };
    let end = format!("\r\n--{boundary}--\r\n");
    let expected = [
        part("0-1", &bytes[..2]),
        part("250-255", &bytes[250..]),
        end.into(),
    ]
    .concat();
    assert!(answer.status == 206 && answer.is_whole);
    assert_eq!(answer.body, expected);
    // Ranges apply only to GET, and only in bytes.
    let head = served.ask("HEAD", "/bytes", &["Range: bytes=0-1"]);
    assert_eq!((head.status, head.field("content-length")), (200, "256"));
    assert_eq!(
        served.ask("GET", "/bytes", &["Range: rows=0-1"]).ok(),
        bytes
    );
}

#[test]
fn a_tag_is_that_of_one_state() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let file = directory.path().join("a.h5");
    fs::copy(fixture("tiny.latest.h5"), &file).expect("copy");
    let served = Served::new(&[], &[&file]);
    let mut tag = String::new();
    eventually(SOON, "a tag, once the file has rested", || {
        tag = served.get("/contiguous").field("etag").to_owned();
        !tag.is_empty()
    });
    let first = served.get("/contiguous").ok();
    let head = served.ask("HEAD", "/contiguous", &[]);
    assert!(head.body.is_empty() && head.field("content-length") == first.len().to_string());
    assert_eq!(head.field("etag"), tag);
    let known = format!("If-None-Match: {tag}");
    let same = served.ask("GET", "/contiguous", &[&known]);
    assert_eq!(
        (same.status, same.field("etag"), same.body.len()),
        (304, &*tag, 0)
    );
    // A file that replaces the source may have the same or an earlier date.
    assert!(!head.fields.contains_key("last-modified"));
    let later = "If-Modified-Since: Fri, 31 Dec 2100 23:59:59 GMT";
    assert_eq!(served.ask("GET", "/contiguous", &[later]).ok(), first);
    assert_eq!(
        served
            .ask("GET", "/contiguous", &["If-Match: \"other\""])
            .status,
        412
    );
    let [range, go_on] = ["Range: bytes=4-7".to_owned(), format!("If-Range: {tag}")];
    let rest = served.ask("GET", "/contiguous", &[&range, &go_on]);
    assert_eq!((rest.status, &rest.body[..]), (206, &first[4..8]));
    assert_ne!(served.get("/compact").field("etag"), tag);

    // Another file replaces the source, so cached responses are invalid.
    let other = directory.path().join("other");
    fs::copy(fixture("groups.latest.h5"), &other).expect("copy");
    fs::rename(&other, &file).expect("rename");
    eventually(SOON, "the new file", || {
        served.get("/contiguous").status == 404
    });
    fs::copy(fixture("tiny.latest.h5"), &other).expect("copy");
    fs::rename(&other, &file).expect("rename");
    eventually(SOON, "the first again", || {
        served.get("/contiguous").status == 200
    });
    assert_eq!(served.ask("GET", "/contiguous", &[&known]).ok(), first);
    assert_eq!(
        served.ask("GET", "/contiguous", &[&range, &go_on]).ok(),
        first
    );
}

#[test]
fn a_text_is_compressed_where_that_is_taken() {
    let file = fixture("tiny.latest.h5");
    let served = Served::new(&[], &[&file]);
    let page = "/.h5fs/html/index.html";
    let plain = served.get(page);
    assert_eq!(plain.field("vary"), "accept-encoding");
    let packed = served.ask("GET", page, &["Accept-Encoding: gzip"]);
    assert!(packed.is_whole && packed.field("content-encoding") == "gzip");
    assert!(packed.body.len() < plain.body.len());
    let mut unpacked = vec![0; plain.body.len()];
    let length = libdeflater::Decompressor::new().gzip_decompress(&packed.body, &mut unpacked);
    assert_eq!(length, Ok(plain.body.len()));
    assert_eq!(unpacked, plain.body);
    let array = served.ask("GET", "/contiguous", &["Accept-Encoding: gzip"]);
    assert_eq!(array.field("content-encoding"), "");
}

/// RFC 9110, sections 8.8.3, 13.1 and 15.4.5, defines the expected responses.
#[test]
fn a_tag_is_that_of_the_bytes_that_are_sent() {
    let (_kept, top) = archive(b"some bytes");
    let served = Served::new(&[], &[&top]);
    let page = "/a.h5/.h5fs/html/index.html";
    let gzip = "Accept-Encoding: gzip";
    let (mut plain, mut packed) = (String::new(), String::new());
    eventually(SOON, "tags, once the file has rested", || {
        plain = served.get(page).field("etag").to_owned();
        packed = served.ask("GET", page, &[gzip]).field("etag").to_owned();
        !plain.is_empty() && !packed.is_empty()
    });
    assert_ne!(plain, packed);
    let ask = |fields: &[&str]| {
        let answer = served.ask("GET", page, fields);
        let field = |name| answer.field(name).to_owned();
        (answer.status, field("etag"), field("content-encoding"))
    };
    let none_match = |tag: &str| format!("If-None-Match: {tag}");
    let with_match = |tag: &str| format!("If-Match: {tag}");
    let (identity, range) = ("gzip;q=0", "Range: bytes=0-9");
    let identity = format!("Accept-Encoding: {identity}");
    let bare = String::new;
    let packed_content = (200, packed.clone(), "gzip".to_owned());
    let plain_content = (200, plain.clone(), bare());
    for (fields, expected) in [
        (
            vec![gzip, &none_match(&packed)],
            (304, packed.clone(), bare()),
        ),
        (vec![gzip, &none_match(&plain)], packed_content.clone()),
        (vec![gzip, &none_match("*")], (304, packed.clone(), bare())),
        (
            vec![&identity, &none_match(&plain)],
            (304, plain.clone(), bare()),
        ),
        (vec![&identity, &none_match(&packed)], plain_content.clone()),
        (vec![gzip, &with_match(&packed)], packed_content),
        (vec![gzip, &with_match(&plain)], (412, bare(), bare())),
        (vec![&identity, &with_match(&plain)], plain_content),
        (vec![&identity, &with_match(&packed)], (412, bare(), bare())),
        // Ranges apply to the uncompressed bytes.
        (
            vec![gzip, range, &with_match(&packed)],
            (412, bare(), bare()),
        ),
        (
            vec![gzip, range, &with_match(&plain)],
            (206, plain.clone(), bare()),
        ),
    ] {
        assert_eq!(ask(&fields), expected, "{fields:?}");
    }
    // A missing entity tag is not sent as an empty one.
    let status = served.ask("GET", "/a.h5/.h5fs/status", &["If-None-Match: *"]);
    assert_eq!(
        (status.status, status.fields.contains_key("etag")),
        (304, false)
    );
}

/// The caches of clients outlast the server only if the tags do.
#[test]
fn original_files_have_the_same_tag_in_the_next_run() {
    let documents = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs");
    let target = "/.h5fs/original/serve.md";
    let tags = [(); 2].map(|()| {
        let served = Served::new(&[], &[&documents]);
        let mut tag = String::new();
        // A file that was just checked out gets a tag after a minute.
        eventually(LONG, "a tag", || {
            tag = served.get(target).field("etag").to_owned();
            !tag.is_empty()
        });
        assert_ne!(served.get("/serve.md").field("etag"), tag);
        tag
    });
    assert_eq!(tags[0], tags[1]);
}

#[test]
fn the_tags_of_objects_are_as_strong_as_those_of_their_server() {
    let server = Server::start();
    let bytes = fs::read(fixture("tiny.latest.h5")).expect("read");
    server.put_tagged("/data/strong.h5", bytes.clone(), "\"1\"");
    server.put_tagged("/data/weak.h5", bytes, "W/\"1\"");
    let endpoint = server.url("");
    let words = ["--endpoint", &endpoint, "--anonymous"];
    let tags = [(); 2].map(|()| {
        let served = Served::new(&words, &[Path::new("s3://data/")]);
        let targets = [
            "/.h5fs/original/strong.h5",
            "/.h5fs/original/weak.h5",
            "/strong.h5/contiguous",
        ];
        targets.map(|target| {
            let tag = served.get(target).field("etag").to_owned();
            assert!(!tag.is_empty(), "{target}");
            tag
        })
    });
    assert_eq!(tags[0][0], tags[1][0]);
    assert_ne!(tags[0][1], tags[1][1]);
    // This program computes the content of other files.
    assert_ne!(tags[0][2], tags[1][2]);
    server.put_tagged("/data/strong.h5", b"other bytes".to_vec(), "\"2\"");
    let served = Served::new(&words, &[Path::new("s3://data/")]);
    let changed = served.get("/.h5fs/original/strong.h5");
    assert_ne!(changed.field("etag"), tags[0][0]);
    assert_eq!(changed.ok(), b"other bytes");
}

/// A document that can only be written from start to end is also the same each time.
#[test]
fn documents_that_are_written_in_order_have_tags() {
    let served = Served::new(&[], &[&fixture("groups.latest.h5")]);
    let listed = served.ask("GET", "/.h5fs/ndl/", &["Accept: application/json"]);
    let listed: serde_json::Value = serde_json::from_slice(&listed.body).expect("JSON");
    let entries = listed.as_array().expect("a list").iter();
    let names = entries.filter_map(|entry| entry["name"].as_str());
    let name = names.into_iter().find(|name| name.ends_with(".json"));
    let of_object = format!("/.h5fs/ndl/{}", name.expect("a document"));
    for target in ["/.h5fs/tree.json", "/.h5fs/ndl.yaml", &of_object] {
        let mut tag = String::new();
        eventually(SOON, "a tag, once the file has rested", || {
            tag = served.get(target).field("etag").to_owned();
            !tag.is_empty()
        });
        let condition = format!("If-None-Match: {tag}");
        let again = served.ask("GET", target, &[&condition]);
        assert_eq!((again.status, again.body.len()), (304, 0), "{target}");
        assert_eq!(served.get(target).field("etag"), tag, "{target}");
    }
}

#[test]
fn no_target_leads_elsewhere() {
    let (_kept, top) = archive(b"some bytes");
    std::os::unix::fs::symlink("/etc/passwd", top.join("out")).expect("link");
    std::os::unix::fs::symlink("bytes", top.join("in")).expect("link");
    let served = Served::new(&[], &[&top]);
    assert_eq!(served.get("/in").ok(), b"some bytes");
    let long = format!("/{}", "a".repeat(300));
    let longer = format!("/{}", "a".repeat(20_000));
    for (target, status) in [
        ("/..", 400),
        ("/../../etc/passwd", 400),
        ("/%2e%2e/%2e%2e/etc/passwd", 400),
        ("/a.h5/../bytes", 400),
        ("/..%2f..%2fetc%2fpasswd", 400),
        ("//etc/passwd", 400),
        ("/bytes%00", 400),
        ("/bytes%", 400),
        ("/out", 404),
        ("/etc/passwd", 404),
        ("/bytes/", 404),
        ("/a.h5/nothing", 404),
        ("/a.h5/contiguous%5B999%5D", 404),
        ("/a.h5/.h5fs/file.zarr/chunked/c/9/9", 404),
        (&long, 404),
        (&longer, 431),
        ("*", 400),
    ] {
        let answer = served.get(target);
        let shown = &target[..target.len().min(40)];
        assert_eq!(answer.status, status, "{shown}");
        assert!(
            !answer.body.windows(5).any(|part| part == b"root:"),
            "{shown}"
        );
    }
    let far = served.get("http://localhost/bytes").ok();
    assert_eq!(far, b"some bytes");
    assert_eq!(served.get("http://evil.example/bytes").status, 421);
    let absent = served.get("/a.h5/contiguous%5B999%5D");
    assert!(String::from_utf8_lossy(&absent.body).contains("out of range"));
}
