//! Secrets on a command line: the query of a presigned URL, and the password before a host.
//!
//! Every user can read the command lines of all processes. So a command that is called with such a
//! URL immediately executes itself again with a redacted URL. The secret is passed in the
//! environment, which only the same user can read. The parsing process does not receive the secret.

use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt;

use h5fs_reader::source::location::{Location, Url};

use crate::cli::invocation::{Invocation, Role};

/// Environment variable with the URLs as the user wrote them, one per line. A URL contains no
/// newline.
pub(in crate::cli) const SECRETS_VARIABLE: &str = "H5FS_SECRET_URLS";

/// Executes the command again if its arguments contain a secret. Returns `None` if the arguments
/// contain no secret, and the error if the execution fails.
pub(in crate::cli) fn restart_without_secrets(call: &Invocation) -> Option<io::Error> {
    let shown: Vec<_> = call.arguments.iter().map(without_secrets).collect();
    let secrets: Vec<&str> = (call.arguments.iter().zip(&shown))
        .filter(|(argument, shown)| argument != shown)
        .filter_map(|(argument, _)| argument.to_str())
        .collect();
    if secrets.is_empty() {
        return None;
    }
    let again = Invocation {
        program: call.program,
        role: Role::Launcher,
        arguments: shown,
    };
    match again.restart_command(Role::Launcher) {
        Ok(mut command) => Some(command.env(SECRETS_VARIABLE, secrets.join("\n")).exec()),
        Err(error) => Some(error),
    }
}

/// Returns an argument without the secrets of its URL.
fn without_secrets(argument: &OsString) -> OsString {
    match Location::parse(argument.clone()) {
        Ok(Location::Url(url)) if url.has_secrets() => url.to_string().into(),
        _ => argument.clone(),
    }
}

/// Returns the URL with the secrets that the user wrote in it. Returns the URL unchanged if there
/// are none.
pub(in crate::cli) fn with_secrets(url: &Url) -> Url {
    let given = std::env::var(SECRETS_VARIABLE).unwrap_or_default();
    let urls = given
        .lines()
        .filter_map(|line| match Location::parse(line.into()) {
            Ok(Location::Url(url)) => Some(url),
            _ => None,
        });
    let urls: Vec<_> = urls.collect();
    let same = urls
        .iter()
        .find(|given| given.to_string() == url.to_string());
    let beneath = || urls.iter().find_map(|given| url.with_user_info_from(given));
    let found = same.cloned().or_else(beneath);
    found.unwrap_or_else(|| url.clone())
}
