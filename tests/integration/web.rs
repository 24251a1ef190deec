//! Mounted directories of web servers, including servers of other makes.

use std::fs;
use std::io::{BufRead, BufReader};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use nix::errno::Errno;

use crate::harness::{LONG, Mount, SOON, eventually, fixture, h5fs, run, script, skip};
use crate::objects::server::Server;
use crate::prefix::{content, directory, errno, names};

/// A server of another make. Dropping the value stops the server.
pub(crate) struct Web {
    process: Child,
    port: u16,
}

impl Drop for Web {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Web {
    /// Starts a Python server of `directory`, with index pages or WebDAV.
    fn python(directory: &Path, kind: &[&str]) -> Self {
        Self::by("web_server.py", directory, kind)
    }

    /// Starts a server by a script, which prints its port.
    pub(crate) fn by(name: &str, directory: &Path, kind: &[&str]) -> Self {
        let mut command = script(name);
        command.arg(directory).args(kind).stdout(Stdio::piped());
        let mut process = command.spawn().expect("Python");
        let output = process.stdout.take().expect("its output");
        let mut line = String::new();
        BufReader::new(output).read_line(&mut line).expect("a line");
        let port = line.trim().parse().expect("a port");
        Web { process, port }
    }

    /// Starts a program and waits until it listens on the port.
    pub(crate) fn listening(mut command: Command, port: u16) -> Option<Self> {
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let process = command.spawn().ok()?;
        let web = Web { process, port };
        eventually(LONG, "the server listens", || {
            TcpStream::connect(("127.0.0.1", port)).is_ok()
        });
        Some(web)
    }

    /// Starts nginx with index pages in HTML or JSON, if it is installed.
    fn nginx(directory: &Path, own: &Path, format: &str) -> Option<Self> {
        let port = free_port();
        let (own, directory) = (own.display(), directory.display());
        let temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"];
        let temporary: String = temporary
            .map(|name| format!("{name}_temp_path {own}/{name};"))
            .concat();
        let text = format!(
            "daemon off; master_process off; pid {own}/pid; error_log {own}/error.log; events {{}}
             http {{ access_log off; {temporary} server {{ listen 127.0.0.1:{port};
             root {directory}; autoindex on; autoindex_format {format}; }} }}"
        );
        let file = format!("{own}/nginx.conf");
        fs::write(&file, text).expect("its settings");
        let mut command = Command::new("nginx");
        command.args(["-e", "stderr", "-c", &file]);
        Self::listening(command, port)
    }

    /// Starts Caddy, if it is installed.
    fn caddy(directory: &Path, own: &Path) -> Option<Self> {
        let port = free_port();
        let mut command = Command::new("caddy");
        command.args(["file-server", "--browse", "--root"]);
        command.arg(directory);
        command.arg("--listen").arg(format!("127.0.0.1:{port}"));
        for name in ["HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME"] {
            command.env(name, own);
        }
        Self::listening(command, port)
    }

    /// Starts WsgiDAV without HTML pages, if it is installed.
    fn wsgidav(directory: &Path, own: &Path) -> Option<Self> {
        let port = free_port();
        let settings = format!(
            "{{\"host\": \"127.0.0.1\", \"port\": {port}, \"http_authenticator\":
               {{\"domain_controller\": null}}, \"simple_dc\": {{\"user_mapping\": {{\"*\": true}}}},
               \"provider_mapping\": {{\"/\": \"{}\"}}, \"dir_browser\": {{\"enable\": false}}}}",
            directory.display()
        );
        let file = own.join("wsgidav.json");
        fs::write(&file, settings).expect("its settings");
        let mut command = Command::new("wsgidav");
        command.arg("--config").arg(&file);
        Self::listening(command, port)
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }
}

pub(crate) fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.local_addr().expect("its address").port()
}

/// Creates a directory that contains the directory `archive`.
fn archive() -> (tempfile::TempDir, tempfile::TempDir) {
    let (own, archive) = (tempfile::tempdir().expect("a directory"), directory());
    std::os::unix::fs::symlink(archive.path(), own.path().join("archive")).expect("a link");
    // The server may run as another user.
    for directory in [own.path(), archive.path()] {
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        fs::set_permissions(directory, mode).expect("its mode");
    }
    (own, archive)
}

/// Checks that the mounted URL shows the same tree as the directory.
pub(crate) fn is_the_directory(url: &str, options: &[&str], directory: &Path) {
    let (near, far) = (Mount::new(directory), Mount::with(Path::new(url), options));
    // A lookup shows that this is a data file, which its name does not show.
    assert!(far.at("2026/a b+c/ü%2F&.dat").is_dir());
    assert_eq!(errno(fs::metadata(far.at("none"))), Errno::ENOENT);
    assert_eq!(errno(fs::metadata(far.at("2026/none.h5"))), Errno::ENOENT);
    let large = fs::metadata(far.at("2026/large.bin")).expect("stat");
    assert_eq!(large.len(), 3_000_000);
    let (near, far) = (content(&near), content(&far));
    assert_eq!(near.len(), far.len());
    for (one, other) in near.iter().zip(&far) {
        assert_eq!(one.0, other.0);
        assert!(one.1 == other.1, "{}", one.0.display());
    }
}

#[test]
fn pages_of_python_are_a_directory() {
    let (own, archive) = archive();
    let web = Web::python(own.path(), &[]);
    is_the_directory(&web.url("/archive/"), &[], archive.path());
    // The parent directory has another file, which is not shown.
    fs::write(own.path().join("beside.h5"), "x").expect("a file");
    let mount = Mount::new(Path::new(&web.url("/archive/2026/")));
    assert_eq!(names(&mount.path).len(), 4);
    assert_eq!(errno(fs::metadata(mount.at("beside.h5"))), Errno::ENOENT);
}

#[test]
fn a_page_of_the_web_is_listed_and_checked_without_a_mount() {
    let (own, archive) = archive();
    let web = Web::python(own.path(), &[]);
    let url = web.url("/archive/");
    let listed = run(&mut h5fs(["ls", &url]), LONG).success().text();
    let near = run(h5fs(["ls"]).arg(archive.path()), LONG).success().text();
    assert_eq!(listed, near);
    let checked = run(&mut h5fs(["check", &url]), LONG);
    assert!(checked.status.success(), "{checked:?}");
    let inside = run(&mut h5fs(["ls", &url, "run 1.h5"]), LONG)
        .success()
        .text();
    let near = run(h5fs(["ls"]).arg(archive.path()).arg("run 1.h5"), LONG);
    assert_eq!(inside, near.success().text());
}

#[test]
fn pages_of_nginx_are_a_directory() {
    let (own, archive) = archive();
    for format in ["html", "json"] {
        let Some(web) = Web::nginx(own.path(), own.path(), format) else {
            return skip("nginx is not installed");
        };
        is_the_directory(&web.url("/archive/"), &[], archive.path());
    }
}

#[test]
fn pages_of_caddy_are_a_directory() {
    let ((own, archive), settings) = (archive(), tempfile::tempdir().expect("a directory"));
    let Some(web) = Web::caddy(own.path(), settings.path()) else {
        return skip("Caddy is not installed");
    };
    is_the_directory(&web.url("/archive/"), &[], archive.path());
}

#[test]
fn collections_of_webdav_are_directories() {
    let (own, archive) = archive();
    let web = Web::python(own.path(), &["webdav"]);
    is_the_directory(&web.url("/archive/"), &[], archive.path());
}

#[test]
fn collections_of_wsgidav_are_directories() {
    let ((own, archive), settings) = (archive(), tempfile::tempdir().expect("a directory"));
    let Some(web) = Web::wsgidav(archive.path(), settings.path()) else {
        return skip("WsgiDAV is not installed");
    };
    drop(own);
    is_the_directory(&web.url("/"), &[], archive.path());
}

/// A THREDDS data server has separate paths for catalogs and files.
#[test]
fn a_catalog_of_thredds_is_a_directory() {
    let server = Server::start();
    let catalog = |content: &str| {
        format!(
            "<catalog xmlns=\"http://www.unidata.ucar.edu/namespaces/thredds/InvCatalog/v1.0\" \
             xmlns:xlink=\"http://www.w3.org/1999/xlink\"><service name=\"http\" \
             serviceType=\"HTTPServer\" base=\"/thredds/fileServer/\"/>{content}</catalog>"
        )
    };
    let top = catalog(
        "<dataset name=\"runs\"><dataset name=\"tiny\" urlPath=\"runs/tiny 1.h5\"/>\
         <catalogRef xlink:href=\"2026/catalog.xml\" xlink:title=\"2026\"/></dataset>",
    );
    let sub = catalog("<dataset name=\"deep\" urlPath=\"runs/2026/notes.txt\"/>");
    server.put("/thredds/catalog/runs/catalog.xml", top.into_bytes());
    server.put("/thredds/catalog/runs/2026/catalog.xml", sub.into_bytes());
    let bytes = fs::read(fixture("tiny.latest.h5")).expect("the fixture");
    server.put("/thredds/fileServer/runs/tiny 1.h5", bytes.clone());
    server.put("/thredds/fileServer/runs/2026/notes.txt", b"words".to_vec());
    let mount = Mount::new(Path::new(&server.url("/thredds/catalog/runs/")));
    let listed = names(&mount.path);
    assert_eq!(
        listed.into_iter().collect::<Vec<_>>(),
        ["2026", "tiny 1.h5"]
    );
    let near = Mount::new(&fixture("tiny.latest.h5"));
    assert_eq!(names(&mount.at("tiny 1.h5")), names(&near.path));
    let original = fs::read(mount.at(".h5fs/original/tiny 1.h5"));
    assert!(original.expect("the file") == bytes);
    assert_eq!(
        fs::read(mount.at("2026/notes.txt")).expect("a file"),
        b"words"
    );
    assert_eq!(errno(fs::metadata(mount.at("2025"))), Errno::ENOENT);
}

/// Only a lookup shows whether such a name is a directory, and a listing leaves the type open.
#[test]
fn links_to_directories_need_no_slash() {
    let (own, archive) = archive();
    let web = Web::python(own.path(), &["bare"]);
    is_the_directory(&web.url("/archive/"), &[], archive.path());
    // A walk through the mount enters all directories.
    let mount = Mount::new(Path::new(&web.url("/archive/")));
    let mut find = Command::new("find");
    find.arg(&mount.path).args([
        "-name",
        ".h5fs",
        "-prune",
        "-o",
        "-type",
        "f",
        "-name",
        "large.bin",
        "-print",
    ]);
    assert_eq!(run(&mut find, LONG).success().text().lines().count(), 1);
}

#[test]
fn what_h5fs_serves_is_a_directory() {
    let archive = directory();
    let mut command = h5fs(["serve", "--listen", "127.0.0.1:0"]);
    command.arg(archive.path()).stdout(Stdio::piped());
    let mut process = command.spawn().expect("the program");
    let output = process.stdout.take().expect("its output");
    let mut line = String::new();
    BufReader::new(output).read_line(&mut line).expect("a line");
    let (url, token) = line.trim().split_once("?token=").expect("a token");
    let file = tempfile::NamedTempFile::new().expect("a file");
    fs::write(&file, token).expect("a file");
    let token = file.path().display().to_string();
    let options = ["--bearer-token-file", token.as_str()];
    // Compares the original bytes of the files. The other parts are shown as they are served.
    let originals = format!("{url}.h5fs/original/");
    is_the_directory(&originals, &options, archive.path());
    let far = Mount::with(Path::new(url), &options);
    content(&far);
    drop(far);
    let _ = process.kill();
    let _ = process.wait();
}

/// The API of the Hub says which names are directories.
#[test]
fn a_tree_of_a_dataset_is_a_directory() {
    let server = Server::start();
    let bytes = fs::read(fixture("tiny.latest.h5")).expect("the fixture");
    let top =
        r#"[{"type": "directory", "path": "runs 1"}, {"type": "file", "path": "odd", "size": 5}]"#;
    let sub = r#"[{"type": "file", "path": "runs 1/a.h5", "size": 5}]"#;
    server.put("/api/datasets/o/n/tree/main", top.into());
    server.put("/api/datasets/o/n/tree/main/runs 1", sub.into());
    server.put("/datasets/o/n/resolve/main/runs 1/a.h5", bytes.clone());
    server.put("/datasets/o/n/resolve/main/odd", b"words".to_vec());
    let mount = Mount::new(Path::new(&server.url("/datasets/o/n/resolve/main/")));
    let found = content(&mount);
    assert!(found.len() > 5, "{found:?}");
    assert_eq!(fs::read(mount.at("odd")).expect("a file"), b"words");
    // A listing with names of other directories is rejected.
    let wrong = r#"[{"type": "file", "path": "other/a.h5", "size": 5}]"#;
    server.put("/api/datasets/o/n/tree/main", wrong.into());
    let url = server.url("/datasets/o/n/resolve/main/");
    let refused = run(&mut h5fs(["ls", "--timeout", "1", &url]), LONG);
    assert!(
        !refused.status.success() && !refused.text().contains("a.h5"),
        "{refused:?}"
    );
}

#[test]
fn what_lists_no_names_is_refused_in_one_line() {
    let server = Server::start();
    server.put("/app/", b"<html><title>Sign in</title></html>".to_vec());
    for (path, word) in [("/app/", "neither with an index page"), ("/none/", "404")] {
        let url = server.url(path);
        let (mount, finished) = Mount::attempt(Path::new(&url), &["--timeout", "10"]);
        assert!(!finished.status.success() && !mount.is_up());
        assert!(finished.one_line().contains(word), "{finished:?}");
        mount.must_be_gone(SOON);
    }
}
