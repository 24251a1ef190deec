//! A running `h5fs serve`, and a client that reads its raw responses.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::harness::{MOUNT_LIMIT, Process, SOON, fixture, h5fs, processes_of, wait};

/// A running server. Dropping the value stops the server.
pub(crate) struct Served {
    pub(crate) child: Child,
    pub(crate) output: BufReader<ChildStdout>,
    pub(crate) url: String,
    /// A path in the arguments of its processes, to find them.
    mark: PathBuf,
}

impl Served {
    pub(crate) fn new(words: &[&str], sources: &[&Path]) -> Self {
        Self::of("serve", words, sources)
    }

    pub(crate) fn of(command: &str, words: &[&str], sources: &[&Path]) -> Self {
        let mut child = h5fs([command])
            .args(words)
            .args(sources)
            .env_remove("DISPLAY")
            .env_remove("WAYLAND_DISPLAY")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("h5fs serve");
        let mut output = BufReader::new(child.stdout.take().expect("a pipe"));
        let mut url = String::new();
        output.read_line(&mut url).expect("a line");
        if url.is_empty() {
            let mut errors = String::new();
            let _ = child
                .stderr
                .take()
                .map(|mut text| text.read_to_string(&mut errors));
            panic!("no server: {errors}");
        }
        let mark = sources
            .first()
            .map_or_else(PathBuf::new, |path| path.to_path_buf());
        Served {
            child,
            output,
            url: url.trim_end().to_owned(),
            mark,
        }
    }

    pub(crate) fn token(&self) -> &str {
        self.url
            .split_once("?token=")
            .map_or("", |(_, token)| token)
    }

    /// Returns the host and the port of the printed URL.
    pub(crate) fn authority(&self) -> &str {
        let rest = self.url.strip_prefix("http://").expect("a URL");
        rest.split('/').next().expect("an authority")
    }

    /// Returns the address of the socket. Not every machine resolves names below `localhost`.
    pub(crate) fn address(&self) -> String {
        match self.authority().split_once(".localhost:") {
            Some((_, port)) => format!("127.0.0.1:{port}"),
            None => self.authority().to_owned(),
        }
    }

    pub(crate) fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address()).expect("a connection");
        stream.set_read_timeout(Some(SOON)).expect("a limit");
        stream
    }

    /// Sends a request with these header lines, and with the host and the token. Returns the
    /// response.
    #[track_caller]
    pub(crate) fn ask(&self, method: &str, target: &str, fields: &[&str]) -> Answer {
        let token = format!("Authorization: Bearer {}", self.token());
        let own = ["Host: localhost", &token, "Connection: close"];
        let mut stream = self.connect();
        send(&mut stream, method, target, &[&own, fields].concat());
        Answer::read(stream, method)
    }

    #[track_caller]
    pub(crate) fn get(&self, target: &str) -> Answer {
        self.ask("GET", target, &[])
    }

    pub(crate) fn worker(&self) -> Process {
        let mut all = processes_of(&self.mark).into_iter();
        let worker = all.rfind(|process| process.is_called("worker"));
        worker.expect("a worker")
    }

    #[track_caller]
    pub(crate) fn end(&mut self, signal: Signal) {
        kill(Pid::from_raw(self.child.id() as i32), signal).expect("a signal");
        let status = wait(&mut self.child, MOUNT_LIMIT).expect("an end");
        assert!(status.success(), "{signal}: {status}");
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        if self.child.try_wait().is_ok_and(|ended| ended.is_none()) {
            let _ = kill(Pid::from_raw(self.child.id() as i32), Signal::SIGTERM);
            let _ = wait(&mut self.child, MOUNT_LIMIT);
        }
    }
}

pub(crate) fn send(stream: &mut impl Write, method: &str, target: &str, fields: &[&str]) {
    let fields: String = fields.iter().map(|field| format!("{field}\r\n")).collect();
    let head = format!("{method} {target} HTTP/1.1\r\n{fields}\r\n");
    stream.write_all(head.as_bytes()).expect("a request");
}

/// A response that was read until the server closed the connection.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) fields: BTreeMap<String, String>,
    pub(crate) body: Vec<u8>,
    /// Whether the whole body was received.
    pub(crate) is_whole: bool,
}

impl Answer {
    #[track_caller]
    pub(crate) fn read(stream: impl Read, method: &str) -> Self {
        let mut stream = BufReader::new(stream);
        let mut lines = Vec::new();
        loop {
            let mut line = String::new();
            stream.read_line(&mut line).expect("a line");
            match line.trim_end() {
                "" => break,
                line => lines.push(line.to_owned()),
            }
        }
        let status = lines
            .first()
            .and_then(|line| line.split(' ').nth(1)?.parse().ok());
        let fields = lines.iter().filter_map(|line| line.split_once(": "));
        let fields: BTreeMap<String, String> = fields
            .map(|(name, text)| (name.to_ascii_lowercase(), text.to_owned()))
            .collect();
        let mut body = Vec::new();
        let _ = stream.read_to_end(&mut body);
        let mut is_whole = true;
        if fields.contains_key("transfer-encoding") {
            (body, is_whole) = unchunked(&body);
        } else if let Some(length) = fields.get("content-length")
            && method != "HEAD"
            && status != Some(304)
        {
            is_whole = length.parse() == Ok(body.len());
        }
        Answer {
            status: status.expect("a status"),
            fields,
            body,
            is_whole,
        }
    }

    pub(crate) fn field(&self, name: &str) -> &str {
        self.fields.get(name).map_or("", String::as_str)
    }

    #[track_caller]
    pub(crate) fn ok(self) -> Vec<u8> {
        let text = String::from_utf8_lossy(&self.body);
        assert!(
            self.status == 200 && self.is_whole,
            "{}: {text}",
            self.status
        );
        self.body
    }
}

/// Decodes a chunked body (RFC 9112, section 7.1). Also returns whether the last chunk is present.
pub(crate) fn unchunked(mut body: &[u8]) -> (Vec<u8>, bool) {
    let mut content = Vec::new();
    loop {
        let Some(end) = body.windows(2).position(|pair| pair == b"\r\n") else {
            return (content, false);
        };
        let length = str::from_utf8(&body[..end]).ok();
        let length = length.and_then(|text| usize::from_str_radix(text, 16).ok());
        let length = length.expect("a length");
        if length == 0 {
            return (content, true);
        }
        let Some(chunk) = body.get(end + 2..end + 2 + length) else {
            return (content, false);
        };
        content.extend_from_slice(chunk);
        body = body.get(end + 2 + length + 2..).unwrap_or_default();
    }
}

/// Percent-encodes a path as a request target.
pub(crate) fn encoded(path: &Path) -> String {
    let bytes = path.as_os_str().as_encoded_bytes().iter();
    let encode = |byte: &u8| match byte {
        b'/' => "/".to_owned(),
        byte if byte.is_ascii_alphanumeric() => char::from(*byte).to_string(),
        byte => format!("%{byte:02x}"),
    };
    bytes.map(encode).collect()
}

/// Creates a directory with `a.h5`, and with `bytes`, which contains these bytes.
pub(crate) fn archive(bytes: &[u8]) -> (tempfile::TempDir, PathBuf) {
    let directory = tempfile::tempdir().expect("temporary directory");
    let top = directory.path().canonicalize().expect("path");
    fs::copy(fixture("tiny.latest.h5"), top.join("a.h5")).expect("copy");
    fs::write(top.join("bytes"), bytes).expect("write");
    (directory, top)
}
