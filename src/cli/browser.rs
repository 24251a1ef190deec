//! Opens pages and directories with the user's preferred program, by xdg-open.

use std::io::{self, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use h5fs_reader::error::io_error_message;

use crate::cli::text::error_message::print_error;
use crate::cli::text::secrets;

const OPENER: &str = "xdg-open";

/// Prints the path of the HTML page about the source that is mounted at `point`, and opens the page
/// in a browser. If the page cannot be opened, the user can still open the printed path. Some
/// programs that open the page do not return before the browser ends.
pub(in crate::cli) fn open_page(point: &Path) {
    let page = page_path(point);
    let mut output = io::stdout();
    let _ = writeln!(output, "{}", page.display()).and_then(|()| output.flush());
    let started = Command::new(OPENER)
        .arg(&page)
        .env_remove(secrets::SECRETS_VARIABLE)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        // Ctrl-C must end this process, but not a browser that is already running.
        .process_group(0)
        .spawn();
    let ended = started.and_then(|mut opener| opener.wait());
    let reason = match ended {
        Ok(status) if status.success() => return,
        Ok(status) => format!("{OPENER}: {status}"),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            format!("{OPENER} is not installed")
        }
        Err(error) => format!("{OPENER}: {}", io_error_message(&error)),
    };
    print_error(&format!("{reason}; open the page above in a browser"));
}

/// Returns the path of the HTML page about a mounted file. For a mounted directory, returns the
/// mount point, because only the files in the directory have pages.
fn page_path(point: &Path) -> PathBuf {
    let page = point.join(".h5fs/html/index.html");
    if page.exists() {
        page
    } else {
        point.to_owned()
    }
}
