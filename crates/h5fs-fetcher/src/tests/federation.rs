//! A Pelican federation on this machine: a director and several caches, some of which fail.

use super::objects::server::Seen;
use super::*;

type Headers = Vec<(&'static str, String)>;

/// Starts a federation that is its own director. The director names these caches, the first one
/// first.
fn federation(caches: &[&Server]) -> Server {
    let server = Server::start();
    let places: Vec<_> = caches.iter().map(|cache| cache.url("/ns/a.h5")).collect();
    let own = server.url("");
    server.put(
        "/.well-known/pelican-configuration",
        format!("{{\"director_endpoint\": \"{own}\"}}").into(),
    );
    server.faults(|to| {
        to.portal = Some(Arc::new(move |seen: &Seen| {
            let links = places.iter().enumerate().rev();
            let links = links.map(|(at, place)| {
                format!("<{place}>; rel=\"duplicate\"; pri={}; depth=2", at + 1)
            });
            let links: Vec<_> = links.collect();
            let headers: Headers =
                vec![("location", places[0].clone()), ("link", links.join(", "))];
            (seen.path == "/ns/a.h5").then_some((307, headers))
        }));
    });
    server
}

fn url(federation: &Server) -> String {
    federation.url("/ns/a.h5").replace("http://", "pelican://")
}

#[test]
fn an_object_comes_from_the_cache_that_the_director_names() {
    let (near, far) = (Server::start(), Server::start());
    let bytes = content(LARGE);
    for cache in [&near, &far] {
        cache.put_tagged("/ns/a.h5", bytes.clone(), "\"1\"");
    }
    let federation = federation(&[&near, &far]);
    let connection = fetcher(&url(&federation), &leading_to(&[&near, &far]));
    let object = open(&connection, "").unwrap();
    assert_eq!(read(&object, MIB / 2, 10).unwrap(), bytes[MIB / 2..][..10]);
    let asked: Vec<_> = federation.seen().into_iter().map(|one| one.path).collect();
    assert_eq!(asked, ["/.well-known/pelican-configuration", "/ns/a.h5"]);
    assert_eq!((near.seen().len(), far.seen().len()), (2, 0));
    // If a cache fails, even in the middle of an object, the next cache is used.
    near.faults(|to| to.status = Some(502));
    assert_eq!(read(&object, 0, LARGE).unwrap(), bytes);
    assert!(!far.seen().is_empty() && federation.seen().is_empty());
}

#[test]
fn an_unreachable_cache_is_skipped() {
    let (gone, broken, last) = (Server::start(), Server::start(), Server::start());
    let bytes = content(MIB);
    last.put("/ns/a.h5", bytes.clone());
    broken.faults(|to| to.status = Some(500));
    let federation = federation(&[&gone, &broken, &last]);
    let settings = leading_to(&[&gone, &broken, &last]);
    drop(gone);
    let object = open(&fetcher(&url(&federation), &settings), "").unwrap();
    assert_eq!(read(&object, 0, MIB).unwrap(), bytes);
    assert_eq!(federation.seen().len(), 2);
}

#[test]
fn requests_end_if_all_caches_fail() {
    let (first, second) = (Server::start(), Server::start());
    for cache in [&first, &second] {
        cache.faults(|to| to.status = Some(404));
    }
    let federation = federation(&[&first, &second]);
    let connection = fetcher(&url(&federation), &leading_to(&[&first, &second]));
    assert!(
        RemoteObject::find(&connection, b"", &|| true)
            .unwrap()
            .is_none()
    );
    let asked = [&federation, &first, &second].map(|server| server.seen().len());
    assert_eq!(asked, [3, 2, 1], "the director is asked once more");
}

#[test]
fn a_server_without_configuration_is_rejected() {
    let server = Server::start();
    let find = || RemoteObject::find(&fetcher(&url(&server), &quick()), b"", &|| true);
    assert!(
        find().unwrap().is_none(),
        "as any server says that there is no such place"
    );
    server.put("/.well-known/pelican-configuration", b"{}".to_vec());
    let error = find().map(|_| ()).unwrap_err().to_string();
    assert!(error.contains("names no director"), "{error}");
    for (director, reason) in [
        (
            "http://169.254.169.254",
            "to an address of a private network",
        ),
        ("https://127.0.0.1:1", "to port 1 of 127.0.0.1"),
    ] {
        let text = format!("{{\"director_endpoint\": \"{director}\"}}");
        server.put("/.well-known/pelican-configuration", text.into());
        let error = find().map(|_| ()).unwrap_err().to_string();
        assert!(error.contains(reason), "{error}");
    }
}

/// A federation may name any host as its director. Secrets for the federation's own host are not
/// sent to this director.
#[test]
fn no_secret_is_sent_to_another_director() {
    let (federation, director) = (Server::start(), Server::start());
    for (named, is_shown) in [(&director, false), (&federation, true)] {
        let text = format!("{{\"director_endpoint\": \"{}\"}}", named.url(""));
        federation.put("/.well-known/pelican-configuration", text.into());
        named.put("/ns/a.h5", content(MIB));
        let source = url(&federation).replace("pelican://", "pelican://joe:sesame@");
        let source = format!("{source}?directread&authz=sesame");
        open(&fetcher(&source, &leading_to(&[&director])), "").unwrap();
        let mut seen = named.seen();
        seen.retain(|one| one.path.starts_with("/ns/"));
        assert!(!seen.is_empty());
        for one in seen {
            let has_secret = one.path.contains("sesame");
            assert_eq!(has_secret, is_shown, "{one:?}");
            assert_eq!(one.header("authorization").is_some(), is_shown, "{one:?}");
            assert!(one.path.contains("directread"), "{one:?}");
        }
    }
}
