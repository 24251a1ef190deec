//! Error messages on standard error.

use std::io::{self, Write};

use h5fs_reader::error::Error;

use crate::cli::text::printable::{printable, printable_bytes};

/// Prints an error message. Ignores a closed standard error.
pub(in crate::cli) fn print_error(text: &str) {
    let _ = writeln!(io::stderr(), "h5fs: {text}");
}

/// Prints an error about `file`. The message starts with the file's name.
pub(in crate::cli) fn print_file_error(file: &[u8], error: &Error) {
    print_error(&message_about(file, &printable(&error.to_string())));
}

/// Returns the text of an error about `file`, without the file's name.
pub(in crate::cli) fn reason_of(file: &[u8], error: &Error) -> String {
    let text = printable(&error.to_string());
    without_name(&printable_bytes(file), &text).to_owned()
}

/// Returns a message about `file`, which starts with the file's name. The name is not added if
/// `text` already starts with it.
pub(in crate::cli) fn message_about(file: &[u8], text: &str) -> String {
    let file = printable_bytes(file);
    format!("{file}: {}", without_name(&file, text))
}

fn without_name<'t>(file: &str, text: &'t str) -> &'t str {
    let rest = text.strip_prefix(file);
    rest.and_then(|rest| rest.strip_prefix(": "))
        .unwrap_or(text)
}
