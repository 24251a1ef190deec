//! Messages about failures, on standard error.

use std::io::{self, Write};

use crate::cli::words::printable::{printable, printable_bytes};
use crate::error::Error;

/// Says what went wrong; a closed standard error is no reason to fail once more.
pub(in crate::cli) fn complain(text: &str) {
    let _ = writeln!(io::stderr(), "h5fs: {text}");
}

/// Says what is wrong with `file`, whose name the error may begin with already.
pub(in crate::cli) fn complain_of(file: &[u8], error: &Error) {
    complain(&of_text(file, &printable(&error.to_string())));
}

/// A text about `file`, whose name it may begin with already.
pub(in crate::cli) fn of_text(file: &[u8], text: &str) -> String {
    let file = printable_bytes(file);
    let reason = text.strip_prefix(&format!("{file}: ")).unwrap_or(text);
    format!("{file}: {reason}")
}
