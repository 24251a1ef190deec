//! Secrets of each kind are sent only to their own server, and appear nowhere else.

use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

use crate::fetcher::{SECRET, server_of};
use crate::harness::{LONG, MOUNT_LIMIT, Mount, Process, SOON, h5fs, is_root, run, tree};
use crate::objects::server::{Seen, Server};
use crate::web::Web;

const NAME: &str = "groups.latest.h5";

/// Number of bytes of memory that are examined at a time.
const PIECE: usize = 4096;

/// The arguments of a command.
type Words<'a> = &'a [&'a str];

/// The environment variables of a command, by name.
type Variables<'a> = &'a [(&'a str, &'a str)];

/// Secrets, and a server that must receive none of them. The server has the object of the fixture.
struct Kept<'a> {
    secrets: &'a [&'a str],
    other: Server,
}

impl<'a> Kept<'a> {
    fn new(secrets: &'a [&'a str]) -> Self {
        let other = server_of(NAME);
        Kept { secrets, other }
    }

    /// Starts a server that redirects each request for the object to the other server.
    fn origin(&self) -> Server {
        let (origin, place) = (server_of(NAME), self.place());
        origin.faults(|to| to.redirect = Some(place));
        origin
    }

    /// Returns the URL of the object on the other server, whose host differs from `127.0.0.1`.
    fn place(&self) -> String {
        format!("http://127.1:{}/data/{NAME}", self.other.port())
    }

    /// Mounts `source`, with its log and its cache in a directory, and reads the whole mount. Then
    /// searches for the secrets, which are in the source or in the `variables`. The search covers
    /// everything that the system shows about the mount, and the requests to the other server.
    fn in_mount(&self, source: Words<'_>, variables: Variables<'_>) {
        let directory = tempfile::tempdir().expect("directory");
        let at = |name: &str| directory.path().join(name);
        let mount = Mount::prepare();
        let mut command = h5fs(source);
        command
            .arg(&mount.path)
            .arg("--disk-cache")
            .arg(at("cache"));
        command.args(["--redirect-ports", &self.other.port().to_string()]);
        command.arg("--log-file").arg(at("log"));
        command.env("H5FS_LOG", "trace").env("HOME", "/nonexistent");
        command.envs(variables.iter().copied());
        let mounted = run(&mut command, MOUNT_LIMIT).success();
        for path in tree(&mount.path) {
            // Directories and links cannot be read, and need not be.
            let _ = fs::read(path);
        }
        let status = fs::read(mount.at(".h5fs/status")).expect("status");
        put(&at("said"), mounted.stderr.as_bytes());
        put(&at("status"), &status);
        let mounts = fs::read("/proc/self/mountinfo").expect("mounts");
        put(&at("mounts"), &mounts);
        let processes = mount.processes();
        assert!(processes.iter().any(|process| process.is_called("worker")));
        for process in processes {
            let shown = at(&process.pid.to_string());
            fs::create_dir(&shown).expect("directory");
            write_down(&process, &shown);
        }
        mount.unmount();
        mount.must_be_gone(SOON);
        let log = fs::read_to_string(at("log")).expect("the log");
        assert!(log.contains(": debug: "), "{log}");
        let names: String = tree(directory.path())
            .iter()
            .map(|path| format!("{}\n", path.display()))
            .collect();
        put(&at("names"), names.as_bytes());
        for secret in self.secrets {
            assert_eq!(files_with(directory.path(), secret), "", "{secret}");
        }
        // The searched files contain text that is not secret.
        let known = files_with(directory.path(), NAME);
        assert!(known.contains("/status"), "{known}");
        assert!(!is_root() || known.contains("/memory"), "{known}");
        self.are_kept_from_the_other();
    }

    fn are_kept_from_the_other(&self) {
        let seen = self.other.seen();
        assert!(!seen.is_empty(), "nobody was led there");
        for one in seen {
            let text = format!("{one:?}");
            let is_told = self.secrets.iter().any(|secret| text.contains(secret));
            assert!(!is_told, "{text}");
        }
    }
}

fn put(path: &Path, bytes: &[u8]) {
    fs::write(path, bytes).expect("a file");
}

/// Returns the files in a directory that contain a text, one per line.
fn files_with(directory: &Path, text: &str) -> String {
    let mut grep = Command::new("grep");
    let found = run(grep.args(["-rlaF", "-e", text]).arg(directory), LONG);
    assert_eq!(found.stderr, "");
    found.text()
}

/// Writes everything that the system shows about a process to files, including the memory of the
/// worker.
fn write_down(process: &Process, into: &Path) {
    let proc = PathBuf::from(format!("/proc/{}", process.pid));
    let is = |role: &str| process.is_called(role);
    // The supervisor has the user's environment, and the fetcher has the secrets.
    let has_secrets = is("supervisor") || is("fetcher");
    for name in ["cmdline", "comm", "maps", "limits", "environ"] {
        if name != "environ" || !has_secrets {
            let content = match fs::read(proc.join(name)) {
                // Only root can read these files of a sandboxed process.
                Err(_) if matches!(name, "maps" | "environ") && !is_root() => Vec::new(),
                content => content.expect(name),
            };
            assert!(
                !content.is_empty() || name == "environ" || !is_root(),
                "{name}"
            );
            put(&into.join(name), &content);
        }
    }
    let limits = fs::read_to_string(into.join("limits")).expect("limits");
    let mut lines = limits.lines();
    let cores = lines.find(|line| line.starts_with("Max core file size"));
    let is_off = cores.is_some_and(|line| line.split_whitespace().any(|word| word == "0"));
    assert!(is_off, "{cores:?}");
    let open: Vec<_> = match fs::read_dir(proc.join("fd")) {
        Err(_) if !is_root() => Vec::new(),
        open => open.expect("descriptors").flatten().collect(),
    };
    assert!(!open.is_empty() || !is_root(), "no descriptors");
    for entry in open {
        let name = entry.file_name().into_string().expect("a number");
        let link = fs::read_link(entry.path()).unwrap_or_default();
        put(
            &into.join(format!("link-{name}")),
            link.as_os_str().as_encoded_bytes(),
        );
        let is_file = fs::metadata(entry.path()).is_ok_and(|it| it.is_file());
        if is_file && !is("fetcher") {
            copy_data(&entry.path(), &into.join(format!("file-{name}")));
        }
    }
    if is("worker") {
        copy_memory(&proc, &into.join("memory"));
    }
}

/// Copies the data of a file without its holes.
fn copy_data(from: &Path, to: &Path) {
    // Some descriptors cannot be opened for reading.
    let (Ok(mut from), mut to) = (File::open(from), File::create(to).expect("a file")) else {
        return;
    };
    let mut end = 0;
    while let Ok(start) = rustix::fs::seek(&from, rustix::fs::SeekFrom::Data(end)) {
        end = rustix::fs::seek(&from, rustix::fs::SeekFrom::Hole(start)).expect("an end");
        from.seek(SeekFrom::Start(start)).expect("a place");
        let mut data = (&from).take(end - start);
        std::io::copy(&mut data, &mut to).expect("a copy");
    }
}

/// Copies the writable memory of a process, as a core file would contain it, without pages of
/// zeros.
fn copy_memory(proc: &Path, to: &Path) {
    // Only root may read the memory.
    let Ok(memory) = File::open(proc.join("mem")) else {
        assert!(!is_root(), "no memory");
        return;
    };
    let maps = fs::read_to_string(proc.join("maps")).expect("maps");
    let mut to = std::io::BufWriter::new(File::create(to).expect("a file"));
    for line in maps.lines() {
        let mut words = line.split(' ');
        let (range, rights) = (words.next().unwrap_or(""), words.next().unwrap_or(""));
        let number = |text: &str| u64::from_str_radix(text, 16).expect("an address");
        let (start, end) = range.split_once('-').expect("a range");
        if !rights.starts_with("rw") {
            continue;
        }
        for at in (number(start)..number(end)).step_by(PIECE) {
            let mut piece = [0; PIECE];
            if memory.read_exact_at(&mut piece, at).is_ok() && piece != [0; PIECE] {
                to.write_all(&piece).expect("a copy");
            }
        }
    }
}

/// Writes a file with a secret.
fn file(directory: &TempDir, name: &str, text: &str) -> String {
    let path = directory.path().join(name);
    put(&path, text.as_bytes());
    path.display().to_string()
}

#[test]
fn of_a_url() {
    let kept = Kept::new(&[SECRET]);
    let origin = kept.origin();
    let source = origin.url(&format!("/data/{NAME}?token={SECRET}"));
    let source = source.replace("http://", &format!("http://joe:{SECRET}@"));
    kept.in_mount(&[&source], &[("AWS_SECRET_ACCESS_KEY", SECRET)]);
    let seen = origin.seen();
    let got_it = |one: &Seen| one.path.contains(SECRET) && one.header("authorization").is_some();
    assert!(!seen.is_empty() && seen.iter().all(got_it), "{seen:?}");
}

#[test]
fn keys_of_amazon() {
    const TOKEN: &str = "a-session-token-of-which-nobody-hears";
    let kept = Kept::new(&[SECRET, TOKEN, "AKIDEXAMPLE"]);
    let origin = kept.origin();
    let endpoint = origin.url("");
    let directory = tempfile::tempdir().expect("directory");
    let text = format!(
        "[default]\naws_access_key_id = AKIDEXAMPLE\naws_secret_access_key = {SECRET}\n\
         aws_session_token = {TOKEN}\n"
    );
    let credentials = file(&directory, "keys", &text);
    let source = format!("s3://data/{NAME}");
    let by_file = [
        "--credentials",
        &credentials,
        "--endpoint",
        &endpoint,
        &source,
    ];
    let by_variables = &by_file[2..];
    let variables = [
        ("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE"),
        ("AWS_SECRET_ACCESS_KEY", SECRET),
        ("AWS_SESSION_TOKEN", TOKEN),
        ("AWS_REGION", "eu-north-1"),
    ];
    let ways: [(Words<'_>, Variables<'_>); 2] =
        [(by_variables, &variables), (&by_file, &variables[3..])];
    for (source, variables) in ways {
        kept.in_mount(source, variables);
        let seen = origin.seen();
        let is_signed = |one: &Seen| {
            let signed = one.header("authorization").unwrap_or_default();
            signed.contains("AKIDEXAMPLE") && one.header("x-amz-security-token") == Some(TOKEN)
        };
        assert!(!seen.is_empty() && seen.iter().all(is_signed), "{seen:?}");
    }
}

#[test]
fn logins() {
    const BASIC: &str = "am9lOndvcmQtdGhhdC1ub2JvZHktc2Vlcw==";
    let [token, key, word, cookie] = [
        "token-that-nobody-sees",
        "key-that-nobody-sees",
        "word-that-nobody-sees",
        "cookie-that-nobody-sees",
    ];
    let secrets = [token, key, word, cookie, BASIC];
    let kept = Kept::new(&secrets);
    let origin = kept.origin();
    let directory = tempfile::tempdir().expect("directory");
    let headers = file(&directory, "headers", &format!("X-Api-Key: {key}\n"));
    let machine = format!("machine 127.0.0.1 login joe password {word}\n");
    let netrc = file(&directory, "netrc", &machine);
    let line = format!("127.0.0.1\tFALSE\t/\tTRUE\t0\tid\t{cookie}\n");
    let jar = file(&directory, "jar", &line);
    let tokens = file(&directory, "token", token);
    let options = ["--header-file", &headers, "--cookies", &jar];
    let url = origin.url(&format!("/data/{NAME}"));
    let by_netrc = format!("--netrc={netrc}");
    let (basic, bearer) = (format!("Basic {BASIC}"), format!("Bearer {token}"));
    let ways: [(Words<'_>, Variables<'_>, &str); 4] = [
        (&["--bearer-token-file", &tokens], &[], &bearer),
        (&[], &[("H5FS_BEARER_TOKEN", token)], &bearer),
        (&[&by_netrc], &[], &basic),
        (&["--netrc"], &[("NETRC", &netrc)], &basic),
    ];
    for (way, variables, shown) in ways {
        kept.in_mount(&[&options[..], way, &[&url]].concat(), variables);
        let seen = origin.seen();
        let is_shown = |one: &Seen| {
            let of = |name| one.header(name).unwrap_or_default().to_owned();
            (of("authorization"), of("x-api-key"), of("cookie"))
                == (shown.to_owned(), key.to_owned(), format!("id={cookie}"))
        };
        assert!(!seen.is_empty() && seen.iter().all(is_shown), "{seen:?}");
    }
}

/// Starts the server for these credentials with `clouds.py`, which checks the credentials that it
/// receives.
fn cloud(kind: &str) -> (TempDir, PathBuf, Web) {
    let own = tempfile::tempdir().expect("a directory");
    let top = own.path().join("top");
    fs::create_dir(&top).expect("a directory");
    let web = Web::by("clouds.py", &top, &[kind]);
    (own, top, web)
}

#[test]
fn accounts_of_google() {
    let account = include_str!("../fixtures/account.pem");
    let line = account.lines().nth(1).expect("a line of a key");
    let secrets = [line, "-that-nobody-sees"];
    let kept = Kept::new(&secrets);
    let (_own, top, google) = cloud("google");
    let endpoint = google.url("");
    let source = format!("gs://away-{}/{NAME}", kept.other.port());
    for name in ["account", "user"] {
        let path = format!("{}.{name}", top.display());
        let by_file = ["--credentials", &path, "--endpoint", &endpoint, &source];
        kept.in_mount(&by_file, &[]);
        kept.in_mount(&by_file[2..], &[("GOOGLE_APPLICATION_CREDENTIALS", &path)]);
    }
}

#[test]
fn keys_of_google() {
    let kept = Kept::new(&[SECRET, "GOOG1EXAMPLE"]);
    let origin = kept.origin();
    let endpoint = origin.url("");
    let source = ["--endpoint", &endpoint, &format!("gs://data/{NAME}")];
    let variables = [
        ("GS_ACCESS_KEY_ID", "GOOG1EXAMPLE"),
        ("GS_SECRET_ACCESS_KEY", SECRET),
    ];
    kept.in_mount(&source, &variables);
    let seen = origin.seen();
    let is_signed = |one: &Seen| {
        let signed = one.header("authorization").unwrap_or_default();
        signed.contains("GOOG1EXAMPLE")
    };
    assert!(!seen.is_empty() && seen.iter().all(is_signed), "{seen:?}");
}

#[test]
fn keys_and_signatures_of_azure() {
    let (_own, top, azure) = cloud("azure");
    let path = |name: &str| format!("{}.{name}", top.display());
    let text = |name: &str| fs::read_to_string(path(name)).expect("a connection string");
    let part = |text: &str, start: &str| {
        let mut parts = text.split(';').filter_map(|part| part.strip_prefix(start));
        parts.next().expect("a part").to_owned()
    };
    let (key, signature) = (text("key"), text("signature"));
    let own_key = part(&key, "AccountKey=");
    let sas = part(&signature, "SharedAccessSignature=");
    let (_, sig) = sas.split_once("sig=").expect("a signature");
    // As written in the string, and as decoded for signing.
    let secrets = [own_key.as_str(), sig, "c2VzYW1l+"];
    let kept = Kept::new(&secrets);
    let endpoint = azure.url("/acct");
    let source = format!("az://acct/away-{}/{NAME}", kept.other.port());
    for name in ["key", "signature"] {
        kept.in_mount(&["--credentials", &path(name), &source], &[]);
        let variable = ("AZURE_STORAGE_CONNECTION_STRING", text(name));
        kept.in_mount(&[&source], &[(variable.0, &variable.1)]);
    }
    for variable in [
        ("AZURE_STORAGE_KEY", own_key.as_str()),
        ("AZURE_STORAGE_SAS_TOKEN", &sas),
    ] {
        kept.in_mount(&["--endpoint", &endpoint, &source], &[variable]);
    }
}
