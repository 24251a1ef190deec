//! Tests how tags, dates and samples distinguish the states of an object.

use super::*;

const FIRST_DAY: &str = "Sun, 06 Nov 1994 08:49:37 GMT";
const NEXT_DAY: &str = "Mon, 07 Nov 1994 08:49:37 GMT";

/// The new state has the same length, and the same entity tag or an unusable one. An open object
/// keeps the bytes of one state. A new connection with a disk cache reads the new state.
#[test]
fn an_open_object_keeps_the_bytes_of_one_state() {
    let (old, new) = (content(LARGE), vec![7; LARGE]);
    for tag in ["\"1\"", "\"\"", "W/\"1\"", "W/\"\"", ""] {
        let (server, directory) = (Server::start(), tempfile::tempdir().unwrap());
        server.put_dated("/a.h5", old.clone(), tag, FIRST_DAY);
        let settings = RemoteSettings {
            disk_cache: Some(directory.path().to_owned()),
            ..quick()
        };
        let connection = fetcher(&server.url("/a.h5"), &settings);
        let object = open(&connection, "").unwrap();
        assert_eq!(read(&object, 0, MIB).unwrap(), old[..MIB], "{tag}");
        server.put_dated("/a.h5", new.clone(), tag, NEXT_DAY);
        assert_eq!(
            cause(read(&object, LARGE - MIB, MIB)),
            Some(Cause::Stale),
            "{tag}"
        );
        let again = open(&connection, "").unwrap();
        assert_eq!(read(&again, 0, LARGE).unwrap(), new, "{tag}");
        server.put_dated("/a.h5", old.clone(), tag, FIRST_DAY);
        let mounted = open(&fetcher(&server.url("/a.h5"), &settings), "").unwrap();
        assert_eq!(read(&mounted, 0, LARGE).unwrap(), old, "{tag}");
        let warnings = connection.warnings();
        let is_weak = tag != "\"1\"";
        assert_eq!(warnings.len(), usize::from(is_weak), "{warnings:?}");
        let names_it = |text: &String| {
            text.contains("/a.h5: not cached on disk: ")
                && text.contains(if tag == "W/\"1\"" {
                    "is weak"
                } else {
                    "no entity tag"
                })
        };
        assert!(warnings.iter().all(names_it), "{warnings:?}");
    }
}

/// Two servers with one name have the same bytes and date, but different entity tags.
#[test]
fn weak_tags_are_not_compared() {
    let bytes = content(LARGE);
    for no_conditions in [false, true] {
        for has_weak_tags in [false, true] {
            let server = Server::start();
            server.faults(|to| to.no_conditions = no_conditions);
            server.put_dated("/a.h5", bytes.clone(), "\"1\"", FIRST_DAY);
            let settings = RemoteSettings {
                has_weak_tags,
                ..quick()
            };
            let connection = fetcher(&server.url("/a.h5"), &settings);
            let object = open(&connection, "").unwrap();
            server.put_dated("/a.h5", bytes.clone(), "\"2\"", FIRST_DAY);
            let rest = read(&object, LARGE - MIB, MIB);
            if !has_weak_tags {
                let text = rest.unwrap_err().to_string();
                assert!(text.contains("`etag=weak`"), "{text}");
                // A reader that continues receives the same hint.
                let text = read(&object, MIB, MIB).unwrap_err().to_string();
                assert!(text.contains("`etag=weak`"), "{text}");
                continue;
            }
            assert_eq!(rest.unwrap(), bytes[LARGE - MIB..]);
            let seen = server.seen();
            assert!(!seen.is_empty());
            assert!(seen.iter().all(|one| one.header("if-match").is_none()));
            // A different date still means a different state.
            server.put_dated("/a.h5", bytes.clone(), "\"2\"", NEXT_DAY);
            let other = read(&object, MIB, MIB);
            assert!(!other.clone().unwrap_err().to_string().contains("etag"));
            assert_eq!(cause(other), Some(Cause::Stale));
        }
    }
}

/// Checking the state finds another entity tag, and the error names the option.
#[test]
fn a_changed_tag_error_names_the_option() {
    use h5fs_reader::source::open::OpenSource;
    let server = Server::start();
    server.put_dated("/a.h5", content(LARGE), "\"1\"", FIRST_DAY);
    let url = server.url("/a.h5");
    let connection = fetcher_for(&url, &quick(), Duration::from_millis(100));
    let object = open(&connection, "").unwrap();
    assert!(!object.is_changed());
    server.put_dated("/a.h5", content(LARGE), "\"2\"", FIRST_DAY);
    eventually("the other tag", || object.is_changed());
    let text = read(&object, MIB, MIB).unwrap_err().to_string();
    assert!(text.contains("`etag=weak`"), "{text}");
}

/// A listing contains entity tags as well.
#[test]
fn weak_tags_of_a_listing_are_ignored() {
    let server = Server::start();
    server.put_dated("/bucket/d/a.h5", vec![1; 9], "\"1\"", FIRST_DAY);
    let Ok(Location::Url(endpoint)) = Location::parse(server.url("").into()) else {
        panic!("no URL");
    };
    for has_weak_tags in [false, true] {
        let settings = RemoteSettings {
            endpoint: Some(endpoint.clone()),
            has_weak_tags,
            ..quick()
        };
        let (names, _) = fetcher("s3://bucket/d/", &settings)
            .list(b"", b"", &|| true)
            .unwrap();
        let ListedType::Object(state) = &names[0].entry_type else {
            panic!("no object");
        };
        assert_eq!(state.etag.is_empty(), has_weak_tags);
        assert_eq!((state.length, state.modified), (9, 784_111_777));
    }
}

#[test]
fn a_source_without_validators_is_sampled() {
    use h5fs_reader::source::open::OpenSource;
    let old = content(4 * MIB);
    let changed = |at: usize| {
        let mut bytes = old.clone();
        bytes[at] ^= 1;
        bytes
    };
    for (tag, new) in [
        ("", changed(0)),
        ("\"\"", changed(4 * MIB - 1)),
        ("", vec![0; 9]),
    ] {
        let (server, directory) = (Server::start(), tempfile::tempdir().unwrap());
        server.put_dated("/a.h5", old.clone(), tag, "");
        let settings = RemoteSettings {
            disk_cache: Some(directory.path().to_owned()),
            ..quick()
        };
        let connection = fetcher(&server.url("/a.h5"), &settings);
        let object = open(&connection, "").unwrap();
        let warnings = connection.warnings();
        assert!(
            matches!(&warnings[..], [one, two] if one.contains("first and last 64 KiB")
                && two.contains("cached on disk: the server sends neither")),
            "{warnings:?}"
        );
        assert_eq!(read(&object, 0, 4 * MIB).unwrap(), old);
        let kept = std::fs::read_dir(directory.path().join("h5fs-1")).unwrap();
        assert_eq!(kept.count(), 1, "the lock, and nothing else");
        // The same content is the same state. Each check starts with a request for one byte,
        // after the previous check has ended. So two such requests mean one complete check.
        server.put_dated("/a.h5", old.clone(), tag, "");
        server.seen();
        let looks = std::cell::Cell::new(0);
        eventually("two looks", || {
            assert!(!object.is_changed());
            let seen = server.seen();
            looks.set(looks.get() + seen.iter().filter(|one| one.sent == 1).count());
            looks.get() >= 2
        });
        server.put_dated("/a.h5", new.clone(), tag, "");
        eventually("the change", || object.is_changed());
        let again = open(&connection, "").unwrap();
        assert_eq!(read(&again, 0, new.len()).unwrap(), new);
    }
}

/// The received bytes belong to the old state, and so does the hash that replaces the entity tag.
#[test]
fn a_change_after_the_first_bytes_is_detected() {
    use h5fs_reader::source::open::OpenSource;
    let server = Server::start();
    let (old, new) = (content(MIB), vec![7; MIB]);
    server.put_dated("/a.h5", new.clone(), "", "");
    let first = &old[..OPEN_STAGED_BYTES as usize];
    let head = format!(
        "HTTP/1.1 206 -\r\ncontent-range: bytes 0-{}/{MIB}\r\ncontent-length: {OPEN_STAGED_BYTES}\r\n\r\n",
        OPEN_STAGED_BYTES - 1
    );
    server.faults(|to| {
        to.raw = Some(Raw {
            left: 1,
            of: "",
            bytes: [head.as_bytes(), first].concat(),
            then: Then::Next,
        });
    });
    let connection = fetcher(&server.url("/a.h5"), &quick());
    let object = open(&connection, "").unwrap();
    assert_eq!(read(&object, 0, 100).unwrap(), old[..100]);
    eventually("the change", || object.is_changed());
    let again = open(&connection, "").unwrap();
    assert_eq!(read(&again, 0, MIB).unwrap(), new);
}
