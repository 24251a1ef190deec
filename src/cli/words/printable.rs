//! How text from an untrusted file (a name, a path) is shown on a terminal or in a log line.

use std::fmt::Write;

use crate::error::line::turns_direction;

/// `text` on one line and without power over a terminal: control characters and those that turn the
/// writing direction become escapes (`\n`, `\u{1b}`), and so does the backslash that would read as
/// one.
pub(crate) fn printable(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for character in text.chars() {
        push(&mut shown, character);
    }
    shown
}

/// The same for bytes that need not be UTF-8: those that are not become `\xNN`.
pub(crate) fn printable_bytes(bytes: &[u8]) -> String {
    let mut shown = String::with_capacity(bytes.len());
    for piece in bytes.utf8_chunks() {
        for character in piece.valid().chars() {
            push(&mut shown, character);
        }
        for byte in piece.invalid() {
            // Writing to a String cannot fail.
            let _ = write!(shown, "\\x{byte:02x}");
        }
    }
    shown
}

/// The same for text that an untrusted process should have made printable already: escapes in it
/// stay as they are.
pub(crate) fn harmless(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '\\' => shown.push(character),
            _ => push(&mut shown, character),
        }
    }
    shown
}

fn push(shown: &mut String, character: char) {
    if character.is_control() || turns_direction(character) || character == '\\' {
        shown.extend(character.escape_default());
    } else {
        shown.push(character);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_reaches_the_terminal_raw() {
        assert_eq!(printable("plain ü 数"), "plain ü 数");
        assert_eq!(printable("a\nb\x1b[2J"), "a\\nb\\u{1b}[2J");
        assert_eq!(printable("gnp\u{202e}exe"), "gnp\\u{202e}exe");
        assert_eq!(harmless(&printable("a\nb\\")), "a\\nb\\\\");
        assert_eq!(harmless("a\x1b[2J"), "a\\u{1b}[2J");
        assert_eq!(printable_bytes(b"a\xff\\b"), "a\\xff\\\\b");
    }
}
