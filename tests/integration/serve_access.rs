//! Access control of `h5fs serve`, its sockets, and the cost of many clients.

use std::fs::{self, File};
use std::io::{BufRead, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::Path;

use nix::sys::signal::Signal;

use crate::harness::{SOON, eventually, fixture, h5fs, is_root, processes_of, run};
use crate::objects::server::Server;
use crate::served::{Answer, Served, archive, send};

#[test]
fn who_is_not_let_in_learns_nothing() {
    let file = fixture("tiny.latest.h5");
    let served = Served::new(&["--allow-origin", "https://viewer.example"], &[&file]);
    let token = served.token().to_owned();
    assert!(token.len() == 32 && token.bytes().all(|byte| byte.is_ascii_hexdigit()));
    let ask = |method: &str, target: &str, fields: &[&str]| {
        let mut stream = served.connect();
        send(
            &mut stream,
            method,
            target,
            &[&["Connection: close"], fields].concat(),
        );
        Answer::read(stream, method)
    };
    let local = "Host: 127.0.0.1";
    let own = format!("Host: {}", served.authority());
    for target in [
        "/",
        "/contiguous",
        "/nothing",
        "/contiguous?token=",
        "/?token=0123",
    ] {
        let answer = ask("GET", target, &[local]);
        assert_eq!(answer.status, 401, "{target}");
        assert!(answer.field("etag").is_empty() && !answer.fields.contains_key("set-cookie"));
    }
    let by_query = format!("/contiguous?token={token}");
    assert_eq!(ask("GET", &by_query, &[local]).status, 200);
    assert_eq!(ask("GET", &by_query, &["Host: evil.example"]).status, 421);
    assert_eq!(ask("GET", &by_query, &[]).status, 400);
    assert_eq!(
        ask("GET", &by_query, &[local, "Host: localhost"]).status,
        400
    );
    // A browser stores the cookie, and is redirected to the URL without the token.
    let entered = ask("GET", &by_query, &[&own, "Accept: text/html,*/*"]);
    assert_eq!(
        (entered.status, entered.field("location")),
        (302, "./contiguous")
    );
    let cookie = entered.field("set-cookie").to_owned();
    // A browser that comes from another site receives a page that loads the target again. After a
    // redirect from another site, the browser would not send the cookie.
    let site = ["Sec-Fetch-Site: cross-site", &own, "Accept: text/html"];
    let led = ask("GET", &by_query, &site);
    assert_eq!((led.status, led.field("set-cookie")), (200, &*cookie));
    let page = String::from_utf8_lossy(&led.body).into_owned();
    assert!(page.contains("content=\"0; url=./contiguous?page\"") && !page.contains(&token));
    let program = ["Sec-Fetch-Site: cross-site", local];
    let bytes = ask("GET", &by_query, &program);
    assert_eq!((bytes.status, bytes.body.len()), (200, 400));
    let (pair, rest) = cookie.split_once("; ").expect("attributes");
    assert_eq!(rest, "HttpOnly; SameSite=Strict; Path=/");
    let kept = format!("Cookie: other=1; {pair}");
    assert_eq!(ask("GET", "/contiguous", &[&own, &kept]).status, 200);
    // Other sites cannot read responses, except the permitted origin.
    let evil = ask("GET", &by_query, &[local, "Origin: https://evil.example"]);
    assert!(!evil.fields.contains_key("access-control-allow-origin"));
    assert_eq!(evil.field("cross-origin-resource-policy"), "same-origin");
    let named = ask("GET", &by_query, &[local, "Origin: https://viewer.example"]);
    assert_eq!(
        named.field("access-control-allow-origin"),
        "https://viewer.example"
    );
    assert_eq!(
        ask("OPTIONS", "/", &[local, "Origin: https://viewer.example"]).status,
        204
    );
    assert_eq!(
        ask("OPTIONS", "/", &[local, "Origin: https://evil.example"]).status,
        200
    );
    for method in ["POST", "PUT", "DELETE", "PATCH", "TRACE", "PROPPATCH"] {
        let answer = ask(method, &by_query, &[local]);
        assert_eq!(
            (answer.status, answer.field("allow")),
            (405, "OPTIONS, GET, HEAD, PROPFIND"),
            "{method}"
        );
    }
    assert_eq!(
        ask("GET", &by_query, &[local, "Content-Length: 5"]).status,
        413
    );
    // The token is not visible to other users.
    let processes = processes_of(&file);
    assert!(processes.len() >= 2, "{processes:?}");
    for process in processes {
        for (what, has) in [("cmdline", "tiny.latest.h5"), ("environ", "PATH=")] {
            let text = match fs::read(format!("/proc/{}/{what}", process.pid)) {
                // Only root can read the environment of a sandboxed process.
                Err(_) if what == "environ" && !is_root() => continue,
                text => text.expect(what),
            };
            let holds = |word: &str| text.windows(word.len()).any(|part| part == word.as_bytes());
            assert!(holds(has) && !holds(&token), "{what}");
        }
    }
}

/// Another user of this machine listens on another port of its loopback addresses. A browser sends
/// that server each cookie for such an address, and the server forwards the cookie to ours.
#[test]
fn no_other_server_of_the_machine_gets_a_cookie_that_lets_in() {
    let file = fixture("tiny.latest.h5");
    let [one, other] = [(); 2].map(|()| Served::new(&[], &[&file]));
    let ask = |target: &str, fields: &[&str]| {
        let mut stream = one.connect();
        send(
            &mut stream,
            "GET",
            target,
            &[&["Connection: close"], fields].concat(),
        );
        Answer::read(stream, "GET")
    };
    let name = one.authority().split(':').next().expect("a name");
    let digits = name
        .strip_prefix("h5fs-")
        .and_then(|name| name.strip_suffix(".localhost"));
    assert!(digits.is_some_and(|digits| digits.len() == 32), "{name}");
    assert_ne!(
        one.authority().split(':').next(),
        other.authority().split(':').next()
    );
    let by_query = format!("/contiguous?token={}", one.token());
    let page = "Accept: text/html";
    let own = format!("Host: {}", one.authority());
    let entered = ask(&by_query, &[&own, page]);
    let cookie = entered.field("set-cookie");
    assert!(!cookie.contains(one.token()) && !cookie.to_ascii_lowercase().contains("domain"));
    let (pair, _) = cookie.split_once(';').expect("attributes");
    let kept = format!("Cookie: {pair}");
    assert_eq!(ask("/contiguous", &[&own, &kept]).status, 200);
    let of_other = format!("Host: {}", other.authority());
    for (host, status) in [
        ("Host: 127.0.0.1", 401),
        ("Host: localhost", 401),
        (&of_other, 421),
        ("Host: h5fs.localhost", 421),
    ] {
        assert_eq!(ask("/contiguous", &[host, &kept]).status, status, "{host}");
        let refused = ask(&by_query, &[host, page]);
        assert_eq!(refused.status, 421, "{host}");
        assert!(!refused.fields.contains_key("set-cookie"), "{host}");
    }
    // A program may send the token with any name of this machine.
    let bearer = format!("Authorization: Bearer {}", one.token());
    assert_eq!(
        ask("/contiguous", &["Host: 127.0.0.1", &bearer]).ok().len(),
        400
    );
}

#[test]
fn what_is_no_request_ends_the_connection() {
    let file = fixture("tiny.latest.h5");
    let served = Served::new(&[], &[&file]);
    let many: String = (0..100).map(|n| format!("A{n}: 1\r\n")).collect();
    for (text, status) in [
        ("nonsense\r\n\r\n".to_owned(), 400),
        ("GET / HTTP/3.0\r\n\r\n".to_owned(), 400),
        ("GET /a b HTTP/1.1\r\n\r\n".to_owned(), 400),
        ("GET / HTTP/1.1\r\nHost : localhost\r\n\r\n".to_owned(), 400),
        (
            "GET / HTTP/1.1\r\nContent-Length: x\r\n\r\n".to_owned(),
            400,
        ),
        (
            format!("GET / HTTP/1.1\r\nHost: localhost\r\n{many}\r\n"),
            431,
        ),
        (
            format!("GET / HTTP/1.1\r\nA: {}\r\n\r\n", "x".repeat(20_000)),
            431,
        ),
    ] {
        let mut stream = served.connect();
        let _ = stream.write_all(text.as_bytes());
        assert_eq!(Answer::read(stream, "GET").status, status, "{text:.40}");
    }
    assert_eq!(served.get("/contiguous").status, 200);
}

/// A thousand connections have no thread each, and slow readers do not delay other requests.
#[test]
fn many_and_slow_clients_cost_little() {
    let (_kept, top) = archive(b"");
    let big = File::create(top.join("big")).expect("create");
    big.set_len(1 << 30).expect("length");
    let served = Served::new(&["--threads", "2"], &[&top]);
    let idle: Vec<_> = (0..400).map(|_| served.connect()).collect();
    let token = format!("Authorization: Bearer {}", served.token());
    let slow: Vec<_> = (0..100)
        .map(|_| {
            let mut stream = served.connect();
            send(&mut stream, "GET", "/big", &["Host: localhost", &token]);
            let mut begun = [0; 16];
            stream.read_exact(&mut begun).expect("a beginning");
            stream
        })
        .collect();
    for _ in 0..3 {
        assert_eq!(served.get("/a.h5/contiguous").ok().len(), 400);
    }
    let worker = served.worker();
    // 2 threads that answer requests, 16 for slow requests, 16 for other files, 2 for heavy work,
    // and a few more.
    assert!(worker.threads() < 45, "{}", worker.threads());
    assert!(worker.peak() < 160 << 20, "{} MiB", worker.peak() >> 20);
    drop((idle, slow));
    assert_eq!(served.get("/a.h5/contiguous").status, 200);
}

#[test]
fn a_file_that_changes_is_never_sent_as_if_whole() {
    let (_kept, top) = archive(b"");
    let big = top.join("big");
    fs::write(&big, vec![7; 48 << 20]).expect("write");
    let served = Served::new(&[], &[&top]);
    let token = format!("Authorization: Bearer {}", served.token());
    let mut stream = served.connect();
    let fields = ["Host: localhost", &token, "Connection: close"];
    send(&mut stream, "GET", "/big", &fields);
    let mut begun = [0; 1];
    stream.read_exact(&mut begun).expect("a beginning");
    // Overwritten in place, by a writer without a lock.
    fs::write(&big, vec![8; 48 << 20]).expect("write");
    let answer = Answer::read((&begun[..]).chain(stream), "GET");
    assert!(!answer.is_whole, "{} bytes", answer.body.len());
    assert!(
        answer.body.iter().all(|byte| *byte == 7),
        "bytes of two states"
    );
    assert_eq!(served.get("/big").ok(), vec![8; 48 << 20]);
}

#[test]
fn signals_end_it_and_nothing_is_left() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let socket = directory.path().join("socket");
    let listen = format!("unix:{}", socket.display());
    let file = directory.path().join("a.h5");
    fs::copy(fixture("tiny.latest.h5"), &file).expect("copy");
    for signal in [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP] {
        let mut served = Served::new(&["--listen", &listen, "--no-token"], &[&file]);
        assert_eq!(served.url, "http://localhost/");
        let mode = fs::metadata(&socket).expect("socket").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let mut stream = UnixStream::connect(&socket).expect("a connection");
        // A proxy may use any host name.
        let fields = ["Host: hub.example", "Connection: close"];
        send(&mut stream, "GET", "/contiguous", &fields);
        assert_eq!(Answer::read(stream, "GET").ok().len(), 400);
        let again = run(h5fs(["serve", "--listen", &listen]).arg(&file), SOON);
        assert!(
            again.one_line().contains("Address already in use"),
            "{again:?}"
        );
        served.end(signal);
        assert!(!socket.exists());
        eventually(SOON, "its processes end", || processes_of(&file).is_empty());
    }
    // After the keeper is killed, the worker ends, and a new server can use the path.
    let mut served = Served::new(&["--listen", &listen, "--no-token"], &[&file]);
    served.child.kill().expect("kill");
    served.child.wait().expect("an end");
    eventually(SOON, "the worker ends", || {
        UnixStream::connect(&socket).is_err()
    });
    drop(Served::new(&["--listen", &listen, "--no-token"], &[&file]));
}

#[test]
fn a_command_line_that_cannot_be_meant_is_refused() {
    let file = fixture("tiny.latest.h5");
    let told = |words: &[&str], sources: &[&Path]| {
        let ended = run(h5fs(["serve"]).args(words).args(sources), SOON);
        (ended.status.code(), ended.one_line().to_owned())
    };
    let served = Served::new(&[], &[&file]);
    let (code, line) = told(&["--listen", &served.address()], &[&file]);
    assert!(
        code == Some(1) && line.contains("Address already in use"),
        "{line}"
    );
    let (code, line) = told(&["--no-token"], &[&file]);
    assert!(
        code == Some(2) && line.contains("--no-token is only for unix:PATH"),
        "{line}"
    );
    let (code, line) = told(&[], &[&file, &file]);
    assert!(
        code == Some(2) && line.contains("two sources are named tiny.latest.h5"),
        "{line}"
    );
    let (code, line) = told(&["--allow-other"], &[&file]);
    assert!(
        code == Some(2) && line.contains("options of a mount"),
        "{line}"
    );
    let (code, line) = told(&[], &[Path::new("/nothing.h5")]);
    assert!(
        code == Some(1) && line.contains("/nothing.h5: No such file"),
        "{line}"
    );
}

#[test]
fn several_sources_are_directories() {
    let (_kept, top) = archive(b"some bytes");
    let other = fixture("groups.latest.h5");
    let served = Served::new(&[], &[&top.join("a.h5"), &other, &top]);
    let page = String::from_utf8(served.get("/").ok()).expect("text");
    let name = top
        .file_name()
        .and_then(|name| name.to_str())
        .expect("a name");
    for part in ["a.h5", "groups.latest.h5", name] {
        assert!(
            page.contains(&format!("<a href=\"./{part}/?page\">")),
            "{page}"
        );
    }
    assert_eq!(served.get("/a.h5/contiguous").ok().len(), 400);
    assert_eq!(served.get(&format!("/{name}/bytes")).ok(), b"some bytes");
    assert_eq!(
        served.get(&format!("/{name}/a.h5/contiguous")).ok().len(),
        400
    );
    assert_eq!(served.get("/nothing/contiguous").status, 404);
    assert_eq!(
        served.get("/a.h5/").field("location"),
        ".h5fs/html/index.html"
    );
}

#[test]
fn an_object_from_a_server_is_served() {
    let file = fixture("tiny.latest.h5");
    let server = Server::start();
    server.put("/data/a.h5", fs::read(&file).expect("read"));
    let url = server.url("/data/a.h5");
    let served = Served::new(&[], &[Path::new(&url)]);
    let local = run(h5fs(["cat"]).arg(&file).arg("contiguous"), SOON).success();
    assert_eq!(served.get("/contiguous").ok(), local.stdout);
}

#[test]
fn without_a_display_a_view_is_served() {
    let file = fixture("tiny.latest.h5");
    let mut served = Served::of("view", &[], &[&file]);
    let mut line = String::new();
    served.output.read_line(&mut line).expect("a line");
    let address = served.address();
    let port = address.rsplit(':').next().expect("a port");
    let host = fs::read_to_string("/proc/sys/kernel/hostname").expect("a name");
    assert_eq!(
        line.trim_end(),
        format!("ssh -L {port}:127.0.0.1:{port} {}", host.trim())
    );
    let first = served.get("/");
    assert_eq!(
        (first.status, first.field("location")),
        (302, ".h5fs/html/index.html")
    );
    served.end(Signal::SIGINT);
}
