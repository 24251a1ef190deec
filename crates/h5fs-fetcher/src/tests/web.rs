//! Tests directories of web servers. The server refuses every HEAD request.

use h5fs_reader::source::directory::Directory;
use h5fs_reader::source::remote::directory::RemoteDirectory;

use super::*;

/// Starts a server with this page at `/d/`.
fn serving(page: &str) -> Server {
    let server = Server::start();
    server.put("/d/", page.as_bytes().to_vec());
    server
}

fn names(connection: &Connection, prefix: &str) -> Vec<(String, ListedType)> {
    let (names, next) = connection.list(prefix.as_bytes(), b"", &|| true).unwrap();
    assert!(next.is_empty());
    let named = names.into_iter().map(|name| {
        let text = String::from_utf8(name.name).unwrap();
        (text, name.entry_type)
    });
    named.collect()
}

const PAGE: &str =
    "<title>Index of /d</title><a href=\"a.h5\">a</a><a href=\"sub/\">sub</a></html>";

#[test]
fn a_name_is_looked_up_on_the_server() {
    let server = serving(PAGE);
    server.put_tagged("/d/a.h5", vec![7; 300], "\"1\"");
    server.put_tagged("/d/hidden.h5", vec![7; 5], "\"2\"");
    server.put("/x.h5", vec![1]);
    let connection = fetcher(&server.url("/d/"), &quick());
    let listed = names(&connection, "");
    let wanted = [
        ("a.h5", ListedType::ObjectWithoutMetadata),
        ("sub", ListedType::Prefix),
    ];
    assert_eq!(listed, wanted.map(|(name, named)| (name.to_owned(), named)));
    for (name, length) in [("a.h5", 300), ("hidden.h5", 5)] {
        let found = names(&connection, name);
        let [(found, ListedType::Object(state))] = &found[..] else {
            panic!("{found:?}");
        };
        assert_eq!((found.as_str(), state.length), (name, length));
        let object = open(&connection, name).unwrap();
        assert_eq!(object.length(), length);
    }
    assert_eq!(names(&connection, "none.h5"), []);
    server.seen();
    for out in [
        "../x.h5",
        "..",
        "sub/../../x.h5",
        "/x.h5",
        "sub//x",
        "a\0",
        "../",
    ] {
        let found = connection.list(out.as_bytes(), b"", &|| true);
        assert!(
            found.is_err() || found.is_ok_and(|(names, _)| names.is_empty()),
            "{out}"
        );
    }
    assert!(
        server.seen().is_empty(),
        "nothing beside the directory is asked for"
    );
}

/// If a server redirects from a name to the same path with a `/`, the name is a directory.
#[test]
fn a_redirect_to_a_slash_is_a_directory() {
    let server = serving(PAGE);
    server.put("/d/s+b/", PAGE.as_bytes().to_vec());
    server.faults(|to| {
        // Servers encode different characters.
        to.portal = Some(Arc::new(|seen: &objects::server::Seen| {
            let place = "/d/s+b/".to_owned();
            (seen.path == "/d/s%2Bb").then(|| (301, vec![("location", place)]))
        }));
    });
    let connection = fetcher(&server.url("/d/"), &quick());
    let found = names(&connection, "s+b");
    assert_eq!(found, [("s+b".to_owned(), ListedType::Prefix)]);
}

/// Some servers send an empty object as a whole instead of a range.
#[test]
fn an_empty_object_needs_no_ranges() {
    let server = Server::start();
    server.put_tagged("/empty", Vec::new(), "\"1\"");
    server.faults(|to| to.no_ranges = true);
    let connection = fetcher(&server.url("/empty"), &quick());
    assert_eq!(open(&connection, "").unwrap().length(), 0);
}

/// Zenodo lists the files of a record under another path than the files themselves.
#[test]
fn a_record_has_files() {
    let server = Server::start();
    let text = br#"{"enabled": true, "entries": [{"key": "a.h5", "size": 300}]}"#;
    server.put("/api/records/1/files", text.to_vec());
    server.put("/records/1/files/a.h5", vec![7; 300]);
    let connection = fetcher(&server.url("/records/1/files/"), &quick());
    assert_eq!(
        names(&connection, ""),
        [("a.h5".to_owned(), ListedType::ObjectWithoutMetadata)]
    );
    assert!(
        matches!(&names(&connection, "a.h5")[..], [(_, ListedType::Object(state))] if state.length == 300)
    );
}

/// Hugging Face lists the files of a dataset page by page, and redirects from each file to a signed
/// URL.
#[test]
fn a_dataset_has_files() {
    const TOKEN: &str = "token-for-the-hub-alone";
    let (hub, bytes) = (Server::start(), Server::start());
    let content = content(MIB);
    bytes.put("/lfs/1", content.clone());
    let tree = "/api/datasets/o/n/tree/main";
    let file = |path: &str| format!(r#"{{"type":"file","oid":"1","size":5,"path":"{path}"}}"#);
    let directory = r#"{"type":"directory","oid":"2","size":0,"path":"runs/sub"}"#;
    let page = |entries: &[&str]| format!("[{}]", entries.join(",")).into_bytes();
    hub.put(&format!("{tree}/runs/sub"), page(&[]));
    let (first, second) = (
        page(&[&file("runs/a b.h5"), directory]),
        page(&[&file("runs/c.h5")]),
    );
    let signed = format!("http://127.1:{}/lfs/1?X-Amz-Signature=s", bytes.port());
    let answered = |body: &[u8], more: &str| {
        let head = format!(
            "HTTP/1.1 200 -\r\n{more}content-length: {}\r\n\r\n",
            body.len()
        );
        [head.as_bytes(), body].concat()
    };
    let next = format!(
        "link: <{}?cursor=two>; rel=\"next\"\r\n",
        hub.url(&format!("{tree}/runs"))
    );
    hub.faults(|to| {
        to.portal = Some(Arc::new(move |seen: &objects::server::Seen| {
            let is_file = seen.path == "/datasets/o/n/resolve/main/runs/a%20b.h5";
            is_file.then(|| (302, vec![("location", signed.clone())]))
        }));
        to.raw = Some(Raw {
            left: 1,
            of: "tree/main/runs",
            bytes: answered(&first, &next),
            then: Then::Next,
        });
    });
    hub.put(&format!("{tree}/runs"), second);
    let directory = tempfile::tempdir().unwrap();
    let token = directory.path().join("token");
    std::fs::write(&token, TOKEN).unwrap();
    let settings = RemoteSettings {
        bearer_token_file: Some(token),
        ..leading_to(&[&bytes])
    };
    let connection = fetcher(&hub.url("/datasets/o/n/resolve/main/runs/"), &settings);
    let wanted = [
        ("a b.h5", ListedType::ObjectWithoutMetadata),
        ("c.h5", ListedType::ObjectWithoutMetadata),
        ("sub", ListedType::Prefix),
    ];
    assert_eq!(
        names(&connection, ""),
        wanted.map(|(name, named)| (name.to_owned(), named))
    );
    let asked: Vec<_> = hub.seen().into_iter().map(|one| one.path).collect();
    assert_eq!(
        asked,
        [format!("{tree}/runs"), format!("{tree}/runs?cursor=two")]
    );
    assert_eq!(
        names(&connection, "sub"),
        [("sub".to_owned(), ListedType::Prefix)]
    );
    assert_eq!(names(&connection, "none"), []);
    let object = open(&connection, "a b.h5").unwrap();
    assert_eq!(read(&object, 0, MIB).unwrap(), content);
    let bearer = format!("Bearer {TOKEN}");
    assert!(
        hub.seen()
            .iter()
            .all(|one| one.header("authorization") == Some(&bearer))
    );
    let led: Vec<_> = bytes.seen();
    assert!(!led.is_empty() && led.iter().all(|one| one.header("authorization").is_none()));
    // A page that names itself as the next page.
    let itself = answered(&page(&[]), &next);
    hub.faults(|to| {
        to.raw = Some(Raw {
            left: 2,
            of: "tree/main/runs",
            bytes: itself,
            then: Then::Next,
        });
    });
    assert_eq!(
        cause(connection.list(b"", b"", &|| true)),
        Some(Cause::Unavailable)
    );
}

/// A truncated page, or a page of a proxy, is not read as a directory with fewer names.
#[test]
fn an_incomplete_index_is_requested_again() {
    let server = serving(PAGE);
    let connection = fetcher(&server.url("/d/"), &quick());
    for body in [
        "<title>Index of /d</title><a href=\"a.h5\">a</a>",
        "<title>Busy</title></html>",
    ] {
        names(&connection, "");
        let head = format!("HTTP/1.1 200 -\r\ncontent-length: {}\r\n\r\n", body.len());
        server.faults(|to| {
            to.raw = Some(Raw {
                left: 2,
                of: "/d/",
                bytes: (head + body).into_bytes(),
                then: Then::Next,
            });
        });
        assert_eq!(names(&connection, "").len(), 2, "{body}");
    }
    assert_eq!(connection.counters().unwrap().retries, 4);
}

/// After the time limit, the error still says why the listing could not be read.
#[test]
fn a_repeatedly_truncated_listing_is_reported() {
    let server = serving("<title>Index of /d</title><a href=\"a.h5\">a</a>");
    server.faults(|to| to.latency = Duration::from_millis(300));
    let settings = RemoteSettings {
        timeout: Some(Duration::from_secs(2)),
        ..quick()
    };
    let connection = fetcher(&server.url("/d/"), &settings);
    let error = connection.list(b"", b"", &|| true).unwrap_err();
    let text = error.to_string();
    assert!(
        text.contains("the server's listing cannot be read"),
        "{text}"
    );
    // If no byte arrived, the error says so.
    server.faults(|to| to.hang = u32::MAX);
    let error = connection.list(b"", b"", &|| true).unwrap_err();
    assert!(
        error.to_string().contains("no response arrived in time"),
        "{error}"
    );
}

/// Looking up each name of a directory that cannot be listed does not wait for each name.
#[test]
fn a_listing_that_fails_slowly_fails_for_all_names() {
    let server = Server::start();
    server.put("/bucket/d/a.h5", content(MIB));
    server.faults(|to| to.page = 1);
    server.put("/bucket/d/b.h5", content(MIB));
    let Ok(Location::Url(endpoint)) = Location::parse(server.url("").into()) else {
        panic!("no URL");
    };
    let settings = RemoteSettings {
        timeout: Some(Duration::from_secs(2)),
        endpoint: Some(endpoint),
        ..quick()
    };
    let connection = fetcher_for("s3://bucket/d/", &settings, Duration::ZERO);
    let directory = RemoteDirectory::open(&connection).unwrap();
    // The listing sends bytes slowly and without end.
    let drip = b"HTTP/1.1 200 -\r\ntransfer-encoding: chunked\r\n\r\n".to_vec();
    server.faults(|to| {
        to.raw = Some(Raw {
            left: u32::MAX,
            of: "list-type=2",
            bytes: drip,
            then: Then::Forever(b"1\r\n<\r\n".to_vec(), Duration::from_millis(50)),
        });
    });
    let began = Instant::now();
    for name in 0..20 {
        let path = format!("{name}.h5");
        assert!(directory.path_info(Path::new(&path), false).is_err());
    }
    let took = began.elapsed();
    assert!(took < 10 * settings.deadline(), "{took:?}");
}

#[test]
fn a_page_without_an_index_is_an_error_at_once() {
    let server = serving("<title>Welcome</title></html>");
    let connection = fetcher(&server.url("/d/"), &quick());
    let refused = connection.list(b"", b"", &|| true).unwrap_err();
    assert!(refused.to_string().contains("lists no names"), "{refused}");
    let methods: Vec<_> = server.seen().into_iter().map(|seen| seen.method).collect();
    assert_eq!(methods, ["GET", "PROPFIND"]);
}

/// Reading stops at a page that exceeds the size limit.
#[test]
fn the_size_of_a_page_is_limited() {
    let links = "<a href=\"a.h5\">a</a>".repeat(limits::LISTING_BYTES / 20);
    let server = serving(&format!("<title>Index of /d</title>{links}</html>"));
    let connection = fetcher(&server.url("/d/"), &quick());
    assert!(connection.list(b"", b"", &|| true).is_err());
}

/// If the server redirects to another server, the page comes from there, but the names are
/// requested here.
#[test]
fn names_of_a_redirected_index_are_requested_here() {
    let (server, other) = (Server::start(), serving(PAGE));
    let place = other.url("{path}");
    server.faults(|to| to.redirect = Some(place));
    other.put("/d/a.h5", vec![7; 300]);
    let connection = fetcher(&server.url("/d/"), &leading_to(&[&other]));
    assert_eq!(names(&connection, "").len(), 2);
    assert_eq!(open(&connection, "a.h5").unwrap().length(), 300);
}
