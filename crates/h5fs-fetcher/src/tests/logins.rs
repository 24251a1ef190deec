//! Tokens, headers, netrc and cookies, with two servers that require a login.
//!
//! All servers listen on this machine. The URL's server is `127.0.0.1`, the login server is
//! `localhost`, and the server with the bytes is `127.1`. netrc and cookies treat these names as
//! different hosts.

use super::objects::server::Seen;
use super::*;
use crate::settings::NetrcChoice;

/// Writes a file with this content in a temporary directory.
fn file(content: &str) -> (tempfile::TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a file");
    std::fs::write(&path, content).unwrap();
    (directory, path)
}

fn refusal_message(source: &str, settings: &RemoteSettings) -> String {
    let Ok(Location::Url(url)) = Location::parse(source.into()) else {
        panic!("{source} is no URL");
    };
    match prepare(&url, settings) {
        Err(Error::Usage(text)) => text,
        _ => panic!("{source} is not refused"),
    }
}

/// Returns the headers that may contain a secret.
fn secrets(seen: &Seen) -> Vec<(&str, &str)> {
    let names = ["authorization", "cookie", "x-api-key"];
    let of = |name| seen.header(name).map(|value| (name, value));
    names.into_iter().filter_map(of).collect()
}

fn led_to(place: String) -> Option<(u16, Vec<(&'static str, String)>)> {
    Some((302, vec![("location", place)]))
}

/// Servers that imitate NASA's Earthdata. The data server redirects to the login server. The login
/// server requires a name and a password, and redirects back with a code. The data server sets a
/// cookie for the code. With the cookie, it redirects to a signed URL on a third server, which has
/// the bytes.
struct Earthdata {
    data: Server,
    logins: Server,
    bytes: Server,
}

impl Earthdata {
    fn start(content: Vec<u8>) -> Self {
        let earthdata = Earthdata {
            data: Server::start(),
            logins: Server::start(),
            bytes: Server::start(),
        };
        earthdata.bytes.put("/bucket/a.h5", content);
        let logins = format!("http://localhost:{}", earthdata.logins.port());
        let (data, signed) = (
            earthdata.data.url(""),
            format!(
                "http://127.1:{}/bucket/a.h5?X-Amz-Signature=s",
                earthdata.bytes.port()
            ),
        );
        let back = format!("{data}/login?code=c&state=/a.h5");
        earthdata.data.faults(|to| {
            to.portal = Some(Arc::new(move |seen: &Seen| {
                if seen.path.starts_with("/login?code=c") {
                    let cookie = "session=1; Path=/; HttpOnly".to_owned();
                    return Some((
                        302,
                        vec![("location", "/a.h5".to_owned()), ("set-cookie", cookie)],
                    ));
                }
                match seen.header("cookie") {
                    Some("session=1") => led_to(signed.clone()),
                    _ => led_to(format!("{logins}/oauth/authorize?state=/a.h5")),
                }
            }));
        });
        earthdata.logins.faults(|to| {
            to.portal = Some(Arc::new(move |seen: &Seen| {
                match seen.header("authorization") {
                    Some("Basic am9lOnNlc2FtZQ==") => led_to(back.clone()),
                    _ => Some((
                        401,
                        vec![("www-authenticate", "Basic realm=\"logins\"".to_owned())],
                    )),
                }
            }));
        });
        earthdata
    }

    fn settings(&self, netrc: &Path) -> RemoteSettings {
        RemoteSettings {
            netrc: Some(NetrcChoice::File(netrc.to_owned())),
            ..leading_to(&[&self.logins, &self.bytes])
        }
    }
}

#[test]
fn a_login_with_redirects_ends_at_the_object() {
    let content = content(3 * MIB);
    let earthdata = Earthdata::start(content.clone());
    let (_kept, netrc) = file("machine localhost login joe password sesame\n");
    let connection = fetcher(&earthdata.data.url("/a.h5"), &earthdata.settings(&netrc));
    let object = open(&connection, "").unwrap();
    assert_eq!(
        read(&object, 2 * MIB, 100).unwrap(),
        content[2 * MIB..][..100]
    );
    let (data, logins, bytes) = (
        earthdata.data.seen(),
        earthdata.logins.seen(),
        earthdata.bytes.seen(),
    );
    let told: Vec<_> = data
        .iter()
        .map(|one| (one.path.as_str(), secrets(one)))
        .collect();
    let cookie = ("cookie", "session=1");
    assert_eq!(
        told,
        [
            ("/a.h5", vec![]),
            ("/login?code=c&state=/a.h5", vec![]),
            ("/a.h5", vec![cookie])
        ]
    );
    assert_eq!(
        secrets(&logins[0]),
        [("authorization", "Basic am9lOnNlc2FtZQ==")]
    );
    assert_eq!(logins.len(), 1);
    assert!(
        bytes.len() >= 2 && bytes.iter().all(|one| secrets(one).is_empty()),
        "{bytes:?}"
    );
    // An expired signed URL is requested again, with the cookie alone.
    earthdata.bytes.faults(|to| to.status = Some(403));
    let fresh = Server::start();
    fresh.put("/bucket/a.h5", content.clone());
    let place = fresh.url("/bucket/a.h5");
    drop(connection);
    earthdata.data.faults(|to| {
        to.portal = Some(Arc::new(move |seen: &Seen| {
            seen.header("cookie").and_then(|_| led_to(place.clone()))
        }));
    });
    let settings = RemoteSettings {
        cookies: Some(file_of_cookies(&netrc)),
        ..leading_to(&[&fresh])
    };
    let object = open(&fetcher(&earthdata.data.url("/a.h5"), &settings), "").unwrap();
    assert_eq!(read(&object, MIB, 10).unwrap(), content[MIB..][..10]);
}

/// Writes a cookie file next to another file.
fn file_of_cookies(beside: &Path) -> PathBuf {
    let path = beside.with_file_name("cookies.txt");
    std::fs::write(&path, "127.0.0.1\tFALSE\t/\tTRUE\t0\tsession\t1\n").unwrap();
    path
}

#[test]
fn without_a_login_the_message_says_how_to_give_one() {
    let earthdata = Earthdata::start(content(MIB));
    let url = earthdata.data.url("/a.h5");
    let (_kept, netrc) = file("machine example.org login joe password sesame\n");
    let none = leading_to(&[&earthdata.logins]);
    for (settings, hint) in [(&none, true), (&earthdata.settings(&netrc), false)] {
        let connection = fetcher(&url, settings);
        let error = open(&connection, "").map(|_| ()).unwrap_err().to_string();
        assert!(error.contains("the server answers 401"), "{error}");
        assert_eq!(error.contains("`netrc`"), hint, "{error}");
        assert!(
            earthdata
                .logins
                .seen()
                .iter()
                .all(|one| secrets(one).is_empty())
        );
    }
}

#[test]
fn tokens_and_headers_are_sent_only_to_the_server_of_the_url() {
    let (server, other) = (Server::start(), Server::start());
    let bytes = content(MIB);
    other.put("/a.h5", bytes.clone());
    let to = other.url("/a.h5");
    server.faults(|faults| faults.redirect = Some(to));
    let (_first, token) = file("abc.def\n");
    let (_second, headers) = file("X-Api-Key: k\n");
    let settings = RemoteSettings {
        bearer_token_file: Some(token),
        header_file: Some(headers),
        ..leading_to(&[&other])
    };
    let connection = fetcher(&server.url("/a.h5"), &settings);
    let object = open(&connection, "").unwrap();
    assert_eq!(read(&object, MIB / 2, 10).unwrap(), bytes[MIB / 2..][..10]);
    let (own, led) = (server.seen(), other.seen());
    let shown = [("authorization", "Bearer abc.def"), ("x-api-key", "k")];
    assert!(
        !own.is_empty() && own.iter().all(|one| secrets(one) == shown),
        "{own:?}"
    );
    assert!(
        !led.is_empty() && led.iter().all(|one| secrets(one).is_empty()),
        "{led:?}"
    );
}

/// The user writes a new token to the file.
#[test]
fn a_token_that_is_refused_is_read_again() {
    let server = Server::start();
    let bytes = content(LARGE);
    server.put("/a.h5", bytes.clone());
    let wanted = Arc::new(Mutex::new("Bearer first"));
    let current = Arc::clone(&wanted);
    server.faults(|to| {
        to.portal = Some(Arc::new(move |seen: &Seen| {
            let is_known = seen.header("authorization") == Some(*current.lock().unwrap());
            (!is_known).then(|| (401, Vec::new()))
        }));
    });
    let (_kept, token) = file("first\n");
    let settings = RemoteSettings {
        bearer_token_file: Some(token.clone()),
        ..quick()
    };
    let connection = fetcher(&server.url("/a.h5"), &settings);
    let object = open(&connection, "").unwrap();
    *wanted.lock().unwrap() = "Bearer second";
    std::fs::write(&token, "second").unwrap();
    assert_eq!(
        read(&object, LARGE - MIB, 10).unwrap(),
        bytes[LARGE - MIB..][..10]
    );
    *wanted.lock().unwrap() = "Bearer third";
    assert_eq!(
        cause(read(&object, MIB, 10)),
        Some(Cause::System(libc::EACCES))
    );
}

/// The response of a server whose login has expired, in place of an object.
type ExpiredLoginResponse = Box<dyn Fn(&Server) -> (u16, Vec<(&'static str, String)>)>;

fn page() -> Vec<(&'static str, String)> {
    vec![("content-type", "Text/HTML; charset=utf-8".to_owned())]
}

/// A login can expire in many ways. In each case the files are read again, once per request.
#[test]
fn a_login_that_expires_without_a_401_is_read_again() {
    let bytes = content(LARGE);
    let ways: [(&str, ExpiredLoginResponse); 6] = [
        ("a page", Box::new(|_| (200, page()))),
        (
            "a redirect to a page of another server",
            Box::new(|other| (302, vec![("location", other.url("/login"))])),
        ),
        (
            "a redirect to a page with ranges",
            Box::new(|other| (302, vec![("location", other.url("/ranges"))])),
        ),
        (
            "a redirect to a page with conditions",
            Box::new(|other| (302, vec![("location", other.url("/conditions"))])),
        ),
        (
            "a redirect that is not followed",
            Box::new(|_| {
                (
                    302,
                    vec![("location", "http://127.0.0.1:1/login".to_owned())],
                )
            }),
        ),
        (
            "a redirect in a circle",
            Box::new(|_| (302, vec![("location", "/a.h5".to_owned())])),
        ),
    ];
    for (name, way) in ways {
        let (server, other) = (Server::start(), Server::start());
        server.put("/a.h5", bytes.clone());
        other.faults(|to| {
            to.portal = Some(Arc::new(|seen: &Seen| match seen.path.as_str() {
                "/login" => Some((200, page())),
                "/conditions" if seen.header("if-match").is_some() => Some((412, page())),
                "/conditions" => Some((200, page())),
                "/ranges" => Some(match seen.header("range") {
                    Some(range) if range.starts_with("bytes=0-") => {
                        let range = ("content-range", "bytes 0-5/6".to_owned());
                        let body = (objects::server::BODY, "<html>".to_owned());
                        (206, [page(), vec![range, body]].concat())
                    }
                    _ => {
                        let range = ("content-range", "bytes */6".to_owned());
                        (416, [page(), vec![range]].concat())
                    }
                }),
                _ => None,
            }));
        });
        let wanted = Arc::new(Mutex::new("Bearer first"));
        let (current, expired) = (Arc::clone(&wanted), way(&other));
        server.faults(|to| {
            to.portal = Some(Arc::new(move |seen: &Seen| {
                let is_known = seen.header("authorization") == Some(*current.lock().unwrap());
                (!is_known).then(|| expired.clone())
            }));
        });
        let (_kept, token) = file("first");
        let settings = RemoteSettings {
            bearer_token_file: Some(token.clone()),
            timeout: Some(Duration::from_secs(4)),
            ..leading_to(&[&other])
        };
        let connection = fetcher(&server.url("/a.h5"), &settings);
        let object = open(&connection, "").unwrap();
        // The login has expired, and is renewed afterwards.
        *wanted.lock().unwrap() = "Bearer second";
        let denied = || cause(open(&connection, ""));
        assert_eq!(denied(), Some(Cause::System(libc::EACCES)), "{name}");
        std::fs::write(&token, "second").unwrap();
        assert_eq!(
            read(&object, LARGE - MIB, 10).unwrap(),
            bytes[LARGE - MIB..][..10],
            "{name}"
        );
        // The login is renewed while it expires.
        *wanted.lock().unwrap() = "Bearer third";
        std::fs::write(&token, "third").unwrap();
        assert_eq!(
            read(&object, 6 * MIB, 10).unwrap(),
            bytes[6 * MIB..][..10],
            "{name}"
        );
        assert!(open(&connection, "").is_ok(), "{name}");
        // The login is not renewed.
        *wanted.lock().unwrap() = "Bearer fourth";
        let began = Instant::now();
        let error = open(&connection, "").map(|_| ()).unwrap_err();
        assert!(error.to_string().contains("login"), "{name}: {error}");
        assert_eq!(
            cause::<()>(Err(error)),
            Some(Cause::System(libc::EACCES)),
            "{name}"
        );
        assert!(began.elapsed() < settings.deadline(), "{name}");
    }
}

/// Without a login, the error names the options that configure one.
#[test]
fn a_login_page_error_names_the_login_options() {
    let server = Server::start();
    let body = || vec![(objects::server::BODY, "<html></html>".to_owned())];
    server.faults(|to| {
        to.portal = Some(Arc::new(move |_: &Seen| {
            Some((200, [page(), body()].concat()))
        }));
    });
    for (path, is_denied) in [("/a.h5", true), ("/a.html", false)] {
        let connection = fetcher(&server.url(path), &quick());
        let error = open(&connection, "").map(|_| ()).unwrap_err();
        let text = error.to_string();
        assert_eq!(text.contains("`netrc`"), is_denied, "{text}");
        assert_eq!(text.contains("no ranges"), !is_denied, "{text}");
    }
}

/// A page with a password field is not an index page, even if it has links.
#[test]
fn a_login_page_is_not_an_index_page() {
    let server = Server::start();
    let index = b"<title>Index of /d/</title><a href=\"a.h5\">a</a></html>".to_vec();
    let login = b"<!DOCTYPE html><html><title>Index of /d/</title><a href=\"help.h5\">?</a>\
        <form><input name=p type='password'></form></html>"
        .to_vec();
    server.put("/d/", index);
    server.put("/login", login);
    let wanted = Arc::new(Mutex::new("Bearer first"));
    let current = Arc::clone(&wanted);
    server.faults(|to| {
        to.portal = Some(Arc::new(move |seen: &Seen| {
            let is_known = seen.header("authorization") == Some(*current.lock().unwrap());
            let led = (302, vec![("location", "/login".to_owned())]);
            (!is_known && seen.path != "/login").then_some(led)
        }));
    });
    let (_kept, token) = file("first");
    let settings = RemoteSettings {
        bearer_token_file: Some(token.clone()),
        ..quick()
    };
    let connection = fetcher(&server.url("/d/"), &settings);
    let listed = || {
        let (names, _) = connection.list(b"", b"", &|| true)?;
        Ok(names.into_iter().map(|one| one.name).collect::<Vec<_>>())
    };
    assert_eq!(listed(), Ok(vec![b"a.h5".to_vec()]));
    *wanted.lock().unwrap() = "Bearer second";
    assert_eq!(cause(listed()), Some(Cause::System(libc::EACCES)));
    std::fs::write(&token, "second").unwrap();
    assert_eq!(listed(), Ok(vec![b"a.h5".to_vec()]));
}

#[test]
fn a_login_that_cannot_be_used_is_refused_at_once() {
    let (_kept, token) = file("sesame street\n");
    let with = |change: &dyn Fn(&mut RemoteSettings)| {
        let mut settings = quick();
        change(&mut settings);
        settings
    };
    let of_token = with(&|to| to.bearer_token_file = Some(token.clone()));
    let text = refusal_message("https://127.0.0.1/a.h5", &of_token);
    assert_eq!(
        text,
        format!(
            "bearer_token_file: {}: it contains no bearer token",
            token.display()
        )
    );
    std::fs::write(&token, "sesame").unwrap();
    let text = refusal_message("http://192.0.2.1/a.h5", &of_token);
    assert_eq!(text, "a token and headers are sent only over https");
    let text = refusal_message("s3://bucket/a.h5", &of_token);
    assert!(
        text.starts_with("tokens, headers, netrc and cookies are only for http://"),
        "{text}"
    );
    let absent = with(&|to| to.cookies = Some("/no/such/jar".into()));
    let text = refusal_message("https://127.0.0.1/a.h5", &absent);
    assert_eq!(text, "cookies: /no/such/jar: No such file or directory");
}

#[test]
fn a_redirect_to_another_port_names_the_option() {
    let (server, other) = (Server::start(), Server::start());
    let to = other.url("/a.h5");
    server.faults(|faults| faults.redirect = Some(to));
    let connection = fetcher(&server.url("/a.h5"), &quick());
    let error = open(&connection, "").map(|_| ()).unwrap_err().to_string();
    let port = other.port();
    let told = format!(
        "a redirect to port {port} of 127.0.0.1 (`redirect_ports={port}` allows it) is not followed"
    );
    assert!(error.contains(&told), "{error}");
    assert!(other.seen().is_empty());
}
