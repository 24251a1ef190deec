//! The user's own program for pages and directories, as xdg-open finds it.

use std::io::{self, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::cli::words::complaint::complain;
use crate::cli::words::secrets;
use crate::error::words_of;

const OPENER: &str = "xdg-open";

/// Prints the path of the page about what is mounted at `point`, and opens it. Where that cannot be
/// done, the path is all that the user needs. Some openers end when the browser does.
pub(in crate::cli) fn show(point: &Path) {
    let page = page(point);
    let mut output = io::stdout();
    let _ = writeln!(output, "{}", page.display()).and_then(|()| output.flush());
    let started = Command::new(OPENER)
        .arg(&page)
        .env_remove(secrets::VARIABLE)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        // Ctrl-C is for this process, and not for a browser that was not there before.
        .process_group(0)
        .spawn();
    let ended = started.and_then(|mut opener| opener.wait());
    let reason = match ended {
        Ok(status) if status.success() => return,
        Ok(status) => format!("{OPENER}: {status}"),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            format!("{OPENER} is not installed")
        }
        Err(error) => format!("{OPENER}: {}", words_of(&error)),
    };
    complain(&format!("{reason}; open the page above in a browser"));
}

/// The page about a file; a directory of files has none, and is looked at itself.
fn page(point: &Path) -> PathBuf {
    let page = point.join(".h5fs/html/index.html");
    if page.exists() {
        page
    } else {
        point.to_owned()
    }
}
