//! Mounts of object stores other than Amazon's, with imitations of these stores and with Azurite.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::harness::{Finished, LONG, Mount, SOON, fixture, h5fs, run, script, skip};
use crate::objects::server::Server;
use crate::objects::sigv4::Keys;
use crate::prefix::directory;
use crate::web::{Web, free_port, is_the_directory};

/// Creates a directory `top` with the archive as the bucket `data` and as the public bucket `open`.
fn buckets() -> (tempfile::TempDir, tempfile::TempDir, PathBuf) {
    let (own, archive) = (tempfile::tempdir().expect("a directory"), directory());
    let top = own.path().join("top");
    for bucket in ["data", "open"] {
        let bucket = top.join(bucket).join("runs");
        fs::create_dir_all(bucket.parent().expect("a bucket")).expect("directories");
        let mut copy = Command::new("cp");
        run(copy.arg("-r").arg(archive.path()).arg(&bucket), LONG).success();
    }
    (own, archive, top)
}

/// Lists a source with these options and environment variables.
fn listed(source: &str, options: &[&str], variables: &[(&str, &str)]) -> Finished {
    let mut command = h5fs(["ls", "-R"]);
    command.args(options).arg(source);
    command.envs(variables.iter().copied());
    command.env("HOME", "/nonexistent");
    run(&mut command, LONG)
}

fn file(top: &Path, name: &str) -> String {
    format!("{}.{name}", top.display())
}

#[test]
fn a_bucket_of_google_is_the_tree_that_the_directory_is() {
    let (_own, archive, top) = buckets();
    let google = Web::by("clouds.py", &top, &["google"]);
    let endpoint = google.url("");
    for name in ["account", "user"] {
        let credentials = file(&top, name);
        let options = ["--endpoint", &endpoint, "--credentials", &credentials];
        is_the_directory("gs://data/runs/", &options, archive.path());
    }
    let options = ["--endpoint", &endpoint, "--anonymous"];
    is_the_directory("gs://open/runs/", &options, archive.path());
}

#[test]
fn tokens_of_google_are_found_where_its_libraries_find_them() {
    let (_own, archive, top) = buckets();
    let google = Web::by("clouds.py", &top, &["google"]);
    let endpoint = google.url("");
    let near = run(h5fs(["ls", "-R"]).arg(archive.path()), LONG)
        .success()
        .text();
    let user = file(&top, "user");
    let named = ("GOOGLE_APPLICATION_CREDENTIALS", user.as_str());
    let far = listed("gs://data/runs/", &["--endpoint", &endpoint], &[named]);
    assert_eq!(far.success().text(), near);
    // An emulator admits every client.
    let emulator = endpoint.trim_start_matches("http://");
    for host in [emulator, &endpoint] {
        let far = listed("gs://open/runs/", &[], &[("STORAGE_EMULATOR_HOST", host)]);
        assert_eq!(far.success().text(), near);
    }
    // Refused credentials, and invalid credentials files.
    let text = file(&top, "text");
    fs::write(&text, "sesame").expect("a file");
    for (name, word) in [
        ("wrong", "no token was issued"),
        ("text", "not JSON"),
        ("none", "No such file"),
    ] {
        let credentials = file(&top, name);
        let options = ["--endpoint", &endpoint, "--credentials", &credentials];
        let refused = listed("gs://data/runs/", &options, &[]);
        assert!(!refused.status.success());
        assert!(refused.stderr.contains(word), "{refused:?}");
        assert!(!refused.stderr.contains("sesame"), "{refused:?}");
    }
}

/// Google's servers accept the signatures of the S3 protocol.
#[test]
fn keys_of_google_sign_as_those_of_amazon() {
    let server = Server::start();
    server.put(
        "/data/runs/a.h5",
        fs::read(fixture("tiny.latest.h5")).expect("the fixture"),
    );
    let keys = Keys {
        id: "GOOG1EXAMPLE".to_owned(),
        secret: "bGoa+V7g/yqDXvKRqq+JTFn4uQZbPiQJo4pf9RzJ".to_owned(),
        token: String::new(),
        region: "auto".to_owned(),
    };
    server.faults(|to| to.keys = Some(keys));
    let endpoint = server.url("");
    let variables = [
        ("GS_ACCESS_KEY_ID", "GOOG1EXAMPLE"),
        (
            "GS_SECRET_ACCESS_KEY",
            "bGoa+V7g/yqDXvKRqq+JTFn4uQZbPiQJo4pf9RzJ",
        ),
    ];
    let options = ["--endpoint", endpoint.as_str()];
    let far = listed("gs://data/runs/", &options, &variables)
        .success()
        .text();
    assert!(far.contains("a.h5"), "{far}");
    let other = [variables[0], ("GS_SECRET_ACCESS_KEY", "other")];
    assert!(!listed("gs://data/runs/", &options, &other).status.success());
}

#[test]
fn a_container_of_azure_is_the_tree_that_the_directory_is() {
    let (_own, archive, top) = buckets();
    let azure = Web::by("clouds.py", &top, &["azure"]);
    for name in ["key", "signature"] {
        let credentials = file(&top, name);
        let options = ["--credentials", credentials.as_str()];
        is_the_directory("az://acct/data/runs/", &options, archive.path());
    }
    let endpoint = azure.url("");
    let options = ["--endpoint", &endpoint, "--anonymous"];
    is_the_directory(
        "abfss://open@acct.dfs.core.windows.net/runs/",
        &options,
        archive.path(),
    );
}

#[test]
fn credentials_of_azure_are_found_where_its_tools_find_them() {
    let (_own, archive, top) = buckets();
    let azure = Web::by("clouds.py", &top, &["azure"]);
    let endpoint = azure.url("/acct");
    let near = run(h5fs(["ls", "-R"]).arg(archive.path()), LONG)
        .success()
        .text();
    let source = "az://acct/data/runs/";
    let text = |name: &str| fs::read_to_string(file(&top, name)).expect("a file");
    let part = |text: &str, start: &str| {
        let mut parts = text.split(';').filter_map(|part| part.strip_prefix(start));
        parts.next().expect("a part").to_owned()
    };
    let (key, signature) = (text("key"), text("signature"));
    let sas = format!("?{}", part(&signature, "SharedAccessSignature="));
    let options = ["--endpoint", endpoint.as_str()];
    for (options, name, value) in [
        (&[][..], "AZURE_STORAGE_CONNECTION_STRING", &key),
        (&options, "AZURE_STORAGE_KEY", &part(&key, "AccountKey=")),
        (&options, "AZURE_STORAGE_SAS_TOKEN", &sas),
    ] {
        let far = listed(source, options, &[(name, value)]);
        assert_eq!(far.success().text(), near, "{name}");
    }
    let wrong = file(&top, "wrong");
    for (options, word) in [
        (&["--credentials", wrong.as_str()][..], "403"),
        (&options[..], "`anonymous`"),
    ] {
        let refused = listed(source, options, &[]);
        assert!(
            !refused.status.success() && refused.stderr.contains(word),
            "{refused:?}"
        );
    }
    let other = listed(
        "az://else/data/",
        &[],
        &[("AZURE_STORAGE_CONNECTION_STRING", &key)],
    );
    assert!(other.stderr.contains("another account"), "{other:?}");
}

/// The secret in a shared access signature is never printed.
#[test]
fn a_signature_of_azure_is_shown_nowhere() {
    let (_own, _archive, top) = buckets();
    let _azure = Web::by("clouds.py", &top, &["azure"]);
    let credentials = file(&top, "signature");
    let secret = fs::read_to_string(&credentials).expect("credentials");
    assert!(secret.contains("sig="), "{secret}");
    let options = ["--credentials", credentials.as_str()];
    let mount = Mount::with(Path::new("az://acct/data/runs/"), &options);
    let _ = fs::metadata(mount.at("none.h5"));
    let line = crate::harness::mount_line(&mount.path);
    let status = fs::read_to_string(mount.at(".h5fs/status")).expect("the status");
    let absent = run(h5fs(["ls", "az://acct/none/"]).args(options), LONG);
    // Each text names the source, so it could also contain the query.
    for text in [line, status, absent.stderr] {
        assert!(text.contains("az://acct/"), "{text}");
        assert!(!text.contains("sig="), "{text}");
    }
    mount.unmount();
    mount.must_be_gone(SOON);
}

/// Uses Azurite, the emulator by the makers of Azure, if it is installed.
#[test]
fn a_container_of_azurite_is_the_tree_that_the_directory_is() {
    let (_own, archive, top) = buckets();
    let state = tempfile::tempdir().expect("a directory");
    let port = free_port();
    let mut command = Command::new("azurite-blob");
    command.args([
        "--silent",
        "--skipApiVersionCheck",
        "--disableTelemetry",
        "--blobPort",
    ]);
    command
        .arg(port.to_string())
        .arg("--location")
        .arg(state.path());
    let Some(azurite) = Web::listening(command, port) else {
        return skip("Azurite is not installed");
    };
    let filled = run(
        script("azurite.py")
            .arg(azurite.url(""))
            .arg(top.join("data")),
        LONG,
    );
    let credentials = filled.success().text();
    let file = state.path().join("credentials");
    fs::write(&file, credentials).expect("a file");
    let file = file.display().to_string();
    let options = ["--credentials", file.as_str()];
    is_the_directory("az://devstoreaccount1/data/runs/", &options, archive.path());
}
