//! Makes text from an untrusted file (a name, a path) safe for a terminal or a log line.

use std::fmt::Write;

use h5fs_reader::error::line::is_bidi_control;

/// Returns `text` on one line and without effect on a terminal. Control characters and characters
/// that change the writing direction become escapes (`\n`, `\u{1b}`). A backslash is escaped as
/// well.
pub(crate) fn printable(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for character in text.chars() {
        push(&mut shown, character);
    }
    shown
}

/// Does the same as [`printable`] for bytes. Invalid UTF-8 becomes `\xNN`.
pub(crate) fn printable_bytes(bytes: &[u8]) -> String {
    let mut shown = String::with_capacity(bytes.len());
    for piece in bytes.utf8_chunks() {
        for character in piece.valid().chars() {
            push(&mut shown, character);
        }
        for byte in piece.invalid() {
            // Writing to a `String` does not fail.
            let _ = write!(shown, "\\x{byte:02x}");
        }
    }
    shown
}

/// Does the same as [`printable`] for text from an untrusted process that should already have
/// escaped it. Backslashes stay unchanged.
pub(crate) fn printable_untrusted(text: &str) -> String {
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
    if character.is_control() || is_bidi_control(character) || character == '\\' {
        shown.extend(character.escape_default());
    } else {
        shown.push(character);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_escaped() {
        assert_eq!(printable("plain ü 数"), "plain ü 数");
        assert_eq!(printable("a\nb\x1b[2J"), "a\\nb\\u{1b}[2J");
        assert_eq!(printable("gnp\u{202e}exe"), "gnp\\u{202e}exe");
        assert_eq!(printable_untrusted(&printable("a\nb\\")), "a\\nb\\\\");
        assert_eq!(printable_untrusted("a\x1b[2J"), "a\\u{1b}[2J");
        assert_eq!(printable_bytes(b"a\xff\\b"), "a\\xff\\\\b");
    }
}
