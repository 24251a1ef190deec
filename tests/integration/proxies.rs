//! Sources by URL through a proxy that records all requests. Only the proxy resolves host names.

use std::fs;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use tempfile::TempDir;

use crate::fetcher::{SECRET, server_of};
use crate::harness::{Finished, MOUNT_LIMIT, fixture, h5fs, run};
use crate::objects::server::{Seen, Server};

const NAME: &str = "groups.latest.h5";

/// A proxy with squid's default behaviour: it forwards requests in absolute form, and permits
/// tunnels to port 443 only. All hosts are the same server.
struct RecordingProxy {
    address: SocketAddr,
    sent: Arc<Mutex<Vec<u8>>>,
    is_over: Arc<AtomicBool>,
}

impl RecordingProxy {
    fn start(server: &Server) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("its address");
        let sent: Arc<Mutex<Vec<u8>>> = Arc::default();
        let is_over = Arc::new(AtomicBool::new(false));
        let (own, over, to) = (Arc::clone(&sent), Arc::clone(&is_over), server.port());
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                if over.load(Ordering::Relaxed) {
                    break;
                }
                let sent = Arc::clone(&own);
                // A client that hangs up is not a failure.
                thread::spawn(move || drop(forward(&client, to, &sent)));
            }
        });
        RecordingProxy {
            address,
            sent,
            is_over,
        }
    }

    fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Returns the requests since the last call.
    fn sent(&self) -> String {
        let sent = std::mem::take(&mut *self.sent.lock().expect("the record"));
        String::from_utf8_lossy(&sent).into_owned()
    }
}

impl Drop for RecordingProxy {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        // Wakes the thread that accepts connections.
        let _ = TcpStream::connect(self.address);
    }
}

/// Records and answers the requests of a connection.
fn forward(client: &TcpStream, to: u16, sent: &Mutex<Vec<u8>>) -> io::Result<()> {
    let mut input = BufReader::new(client.try_clone()?);
    while let Some(head) = head(&mut input)? {
        sent.lock().expect("the record").extend_from_slice(&head);
        let text = String::from_utf8_lossy(&head).into_owned();
        let (line, rest) = text.split_once("\r\n").unwrap_or_default();
        let words: Vec<&str> = line.split(' ').collect();
        let path = words.get(1).and_then(|uri| uri.strip_prefix("http://"));
        let path = path.map(|uri| uri.find('/').map_or("/", |slash| &uri[slash..]));
        let mut output = client;
        let Some(path) = path else {
            output.write_all(b"HTTP/1.1 403 -\r\ncontent-length: 0\r\n\r\n")?;
            return Ok(());
        };
        let mut server = TcpStream::connect(("127.0.0.1", to))?;
        server.write_all(format!("{} {path} HTTP/1.1\r\n{rest}", words[0]).as_bytes())?;
        let mut answer = BufReader::new(server);
        let Some(head) = self::head(&mut answer)? else {
            return Ok(());
        };
        output.write_all(&head)?;
        let text = String::from_utf8_lossy(&head).to_ascii_lowercase();
        let length = text.split("content-length: ").nth(1);
        let length = length.and_then(|rest| rest.lines().next()?.parse().ok());
        io::copy(&mut answer.take(length.unwrap_or(0)), &mut output)?;
    }
    Ok(())
}

/// Reads the lines of a message up to the empty line.
fn head(input: &mut impl BufRead) -> io::Result<Option<Vec<u8>>> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        if input.read_until(b'\n', &mut head)? == 0 {
            return Ok(None);
        }
    }
    Ok(Some(head))
}

/// Runs `h5fs ls` with options and variables, without other proxies and credentials.
fn listed(options: &[&str], variables: &[(&str, &str)]) -> Finished {
    let mut command = h5fs(["ls", "--timeout", "10"]);
    let all = std::env::vars_os().map(|(name, _)| name);
    for name in all.filter(|name| {
        let name = name.to_string_lossy().to_ascii_lowercase();
        name.ends_with("_proxy") || name.starts_with("aws_")
    }) {
        command.env_remove(name);
    }
    command.args(options).env("HOME", "/nonexistent");
    command.envs(variables.iter().copied());
    run(&mut command, MOUNT_LIMIT)
}

/// Returns the listing of the same file on this machine.
fn near() -> String {
    let mut command: Command = h5fs([Path::new("ls"), &fixture(NAME)]);
    run(&mut command, MOUNT_LIMIT).success().text()
}

#[test]
fn http_goes_through_a_proxy_in_absolute_form() {
    let server = server_of(NAME);
    let proxy = RecordingProxy::start(&server);
    let url = format!("http://files.invalid:8080/data/{NAME}?a=b");
    let with_login = proxy.url().replace("http://", "http://joe:sesame@");
    for named in [&proxy.url(), &with_login] {
        let far = listed(&[&url], &[("http_proxy", named)]);
        assert_eq!(far.success().text(), near());
        let sent = proxy.sent();
        let line = format!("GET {url} HTTP/1.1\r\n");
        assert!(sent.starts_with(&line), "{sent}");
        assert!(sent.contains("\r\nhost: files.invalid:8080\r\n"), "{sent}");
        assert!(!sent.contains("CONNECT"), "{sent}");
        // Output of `printf joe:sesame | base64`.
        let login = "\r\nProxy-Authorization: Basic am9lOnNlc2FtZQ==\r\n";
        assert_eq!(sent.contains(login), *named == with_login, "{sent}");
    }
    // A directory, for which several names are requested.
    server.put(
        "/d/",
        b"<title>Index of /d/</title><a href=\"a.h5\">a</a></html>".to_vec(),
    );
    server.put("/d/a.h5", fs::read(fixture(NAME)).expect("the fixture"));
    let far = listed(&["http://files.invalid/d/"], &[("ALL_PROXY", &proxy.url())]);
    assert_eq!(far.success().text(), "a.h5\n");
    assert!(
        proxy
            .sent()
            .starts_with("GET http://files.invalid/d/ HTTP/1.1\r\n")
    );
    // TLS uses a tunnel. Requests to exempt hosts go directly.
    let over_tls = listed(
        &["https://files.invalid/a.h5"],
        &[("https_proxy", &proxy.url())],
    );
    assert!(!over_tls.status.success());
    let sent = proxy.sent();
    assert!(
        sent.starts_with("CONNECT files.invalid:443 HTTP/1.1\r\n"),
        "{sent}"
    );
    let variables = [
        ("http_proxy", proxy.url()),
        ("no_proxy", "files.invalid".to_owned()),
    ];
    let variables = variables
        .each_ref()
        .map(|(name, value)| (*name, value.as_str()));
    assert!(!listed(&[&url], &variables).status.success());
    assert_eq!(proxy.sent(), "");
}

#[test]
fn a_socks_proxy_is_refused_and_not_passed_by() {
    let server = server_of(NAME);
    let variables = [("ALL_PROXY", "socks5h://127.0.0.1:1")];
    let far = listed(&["http://files.invalid/a.h5"], &variables);
    assert!(far.one_line().contains("SOCKS"), "{far:?}");
    let near_by = listed(&[&server.url(&format!("/data/{NAME}"))], &variables);
    assert_eq!(near_by.success().text(), near());
}

/// A kind of secret, and the arguments and variables of a command that sends such a secret.
type Secret = (&'static str, Vec<String>, Vec<(&'static str, String)>);

/// Returns commands for all kinds of secrets, with a server on this machine.
fn secrets(server: &Server, own: &TempDir) -> Vec<Secret> {
    let file = |name: &str, text: &str| {
        let path = own.path().join(name);
        fs::write(&path, text).expect("a file");
        path.display().to_string()
    };
    let words = |words: &[&str]| words.iter().map(ToString::to_string).collect::<Vec<_>>();
    let url = server.url(&format!("/data/{NAME}"));
    let by_name = url.replace("127.0.0.1", "localhost");
    let with_password = url.replace("http://", &format!("http://joe:{SECRET}@"));
    let token = file("token", SECRET);
    let headers = file("headers", &format!("X-Api-Key: {SECRET}\n"));
    let machine = format!("machine localhost login joe password {SECRET}\n");
    let netrc = format!("--netrc={}", file("netrc", &machine));
    let line = format!("127.0.0.1\tFALSE\t/\tTRUE\t0\tid\t{SECRET}\n");
    let jar = file("jar", &line);
    let credentials = format!(
        "{{\"AccessKeyId\": \"AKID\", \"SecretAccessKey\": \"{SECRET}\", \"Token\": \"{SECRET}\", \
         \"Expiration\": \"2099-01-01T00:00:00Z\"}}"
    );
    server.put("/creds", credentials.into_bytes());
    let access = format!("{{\"access_token\": \"{SECRET}\", \"expires_in\": 3600}}");
    let metadata = "/computeMetadata/v1/instance/service-accounts/default/token";
    server.put(metadata, access.into_bytes());
    let (endpoint, host) = (server.url(""), format!("127.0.0.1:{}", server.port()));
    server.put(
        &format!("/acct/data/{NAME}"),
        fs::read(fixture(NAME)).expect("the fixture"),
    );
    let of_store =
        |scheme: &str| words(&["--endpoint", &endpoint, &format!("{scheme}data/{NAME}")]);
    let sas = format!("sv=2021-12-02&se=2099-01-01&sp=r&sr=c&sig={SECRET}");
    let creds = server.url("/creds");
    vec![
        (
            "a token of the environment",
            words(&[&by_name]),
            vec![("H5FS_BEARER_TOKEN", SECRET.to_owned())],
        ),
        (
            "a file with a token",
            words(&["--bearer-token-file", &token, &url]),
            vec![],
        ),
        ("headers", words(&["--header-file", &headers, &url]), vec![]),
        ("netrc", words(&[&netrc, &by_name]), vec![]),
        ("cookies", words(&["--cookies", &jar, &url]), vec![]),
        ("the password of a URL", words(&[&with_password]), vec![]),
        (
            "a signature of Azure's",
            of_store("az://acct/"),
            vec![("AZURE_STORAGE_SAS_TOKEN", sas)],
        ),
        (
            "the token of a container",
            of_store("s3://"),
            vec![
                ("AWS_CONTAINER_CREDENTIALS_FULL_URI", creds),
                ("AWS_CONTAINER_AUTHORIZATION_TOKEN", SECRET.to_owned()),
            ],
        ),
        (
            "a token of Google's",
            of_store("gs://"),
            vec![("GCE_METADATA_HOST", host)],
        ),
    ]
}

#[test]
fn what_is_for_this_machine_goes_through_no_proxy() {
    let (server, own) = (server_of(NAME), tempfile::tempdir().expect("a directory"));
    let proxy = RecordingProxy::start(&server);
    let address = proxy.url();
    for (kind, words, own_variables) in secrets(&server, &own) {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        for variable in ["http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"] {
            let mut variables = vec![(variable, address.as_str())];
            variables.extend(
                own_variables
                    .iter()
                    .map(|(name, value)| (*name, value.as_str())),
            );
            let far = listed(&words, &variables);
            assert_eq!(far.success().text(), near(), "{kind}, {variable}");
            assert_eq!(proxy.sent(), "", "{kind}, {variable}");
            let seen = server.seen();
            let is_shown = seen.iter().any(|one| {
                let fields = one.headers.iter().map(|(_, value)| value.as_str());
                let mut fields = fields.chain([one.path.as_str()]);
                fields.any(|text| text.contains(SECRET) || text.starts_with("Basic "))
            });
            assert!(is_shown, "{kind}: {seen:?}");
        }
    }
}

/// Some secrets may be sent only over TLS or to this machine. They are not sent over http to
/// another host, nor to a proxy on the way there.
#[test]
fn secrets_over_http_go_through_no_proxy() {
    let (server, own) = (server_of(NAME), tempfile::tempdir().expect("a directory"));
    let proxy = RecordingProxy::start(&server);
    let address = proxy.url();
    let elsewhere = |text: &str| {
        let own = format!("127.0.0.1:{}", server.port());
        let named = format!("localhost:{}", server.port());
        text.replace(&own, "files.invalid")
            .replace(&named, "files.invalid")
    };
    let mut asked = secrets(&server, &own);
    // Signatures and presigned URLs may be sent over http, but only directly.
    let keys = vec![
        ("AWS_ACCESS_KEY_ID", "AKID".to_owned()),
        ("AWS_SECRET_ACCESS_KEY", "key".to_owned()),
        ("AWS_SESSION_TOKEN", SECRET.to_owned()),
    ];
    let source = ["--endpoint", "http://files.invalid", "s3://data/a.h5"];
    asked.push(("keys", source.map(str::to_owned).to_vec(), keys));
    let presigned = format!("http://files.invalid/data/{NAME}?X-Amz-Signature={SECRET}");
    asked.push(("a presigned URL", vec![presigned], vec![]));
    for (kind, words, own_variables) in asked {
        // These secrets are sent only to their own host, which this URL does not name.
        if matches!(kind, "netrc" | "cookies" | "a token of the environment") {
            continue;
        }
        let words: Vec<String> = words.iter().map(|word| elsewhere(word)).collect();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let own_variables = own_variables.iter();
        let own_variables: Vec<_> = own_variables
            .map(|(name, value)| (*name, elsewhere(value)))
            .collect();
        for variable in ["http_proxy", "ALL_PROXY"] {
            let mut variables = vec![(variable, address.as_str())];
            variables.extend(
                own_variables
                    .iter()
                    .map(|(name, value)| (*name, value.as_str())),
            );
            let refused = listed(&words, &variables);
            assert!(!refused.status.success(), "{kind}, {variable}");
            assert!(!refused.stderr.contains(SECRET), "{kind}: {refused:?}");
            assert_eq!(proxy.sent(), "", "{kind}, {variable}");
        }
    }
    let password = format!("http://joe:{SECRET}@files.invalid/a.h5");
    let refused = listed(&[&password], &[("http_proxy", &address)]);
    let told = "a user and a password are sent only over https";
    assert!(refused.one_line().contains(told), "{refused:?}");
    let variables = [
        (
            "AWS_CONTAINER_CREDENTIALS_FULL_URI",
            "http://files.invalid/creds",
        ),
        ("AWS_CONTAINER_AUTHORIZATION_TOKEN", SECRET),
    ];
    let refused = listed(&["s3://data/a.h5"], &variables);
    let told = "AWS_CONTAINER_CREDENTIALS_FULL_URI: credentials are accepted only over https";
    assert!(refused.one_line().contains(told), "{refused:?}");
}

#[test]
fn a_redirect_to_a_private_name_is_not_passed_on() {
    let server = server_of(NAME);
    let proxy = RecordingProxy::start(&server);
    let url = format!("http://files.invalid/data/{NAME}");
    for (host, is_followed) in [
        ("localhost", false),
        ("metadata.google.internal", false),
        ("metadata", false),
        ("vault.internal", false),
        ("nas.local", false),
        ("intranet", false),
        ("127.1", false),
        ("2130706433", false),
        ("169.254.169.254", false),
        ("10.0.0.1", false),
        ("files.example.org", true),
    ] {
        server.faults(|to| {
            let place = format!("http://{host}/elsewhere/{NAME}");
            to.redirect = Some(place);
        });
        if is_followed {
            let at = format!("/elsewhere/{NAME}");
            server.put(&at, fs::read(fixture(NAME)).expect("the fixture"));
            server.faults(|to| {
                let place = to.redirect.take().expect("a place");
                to.portal = Some(Arc::new(move |seen: &Seen| {
                    let is_origin = seen.path.starts_with("/data/");
                    is_origin.then(|| (307, vec![("location", place.clone())]))
                }));
            });
        }
        let far = listed(&[&url], &[("http_proxy", &proxy.url())]);
        assert_eq!(far.status.success(), is_followed, "{host}: {far:?}");
        let sent = proxy.sent();
        assert_eq!(sent.contains("/elsewhere/"), is_followed, "{host}: {sent}");
    }
}
