//! Text from a file or a server, escaped so that it can be a part of one line of output.

/// Returns whether `character` is a control character of the Unicode bidirectional algorithm. Such
/// a character can make a name look like another name.
pub fn is_bidi_control(character: char) -> bool {
    matches!(character, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Returns `text` as one line that cannot control a terminal. Control characters, and characters
/// that change the writing direction, become escapes. Quotes and backslashes are not escaped, so
/// that text that was escaped before stays the same.
pub fn escape_to_one_line(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for character in text.chars() {
        if character.is_control() || is_bidi_control(character) {
            shown.extend(character.escape_default());
        } else {
            shown.push(character);
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_escaped_once() {
        let line = "it's \"a\\b\"\n\u{1b}[2J gnp\u{202e}exe ü";
        let once = "it's \"a\\b\"\\n\\u{1b}[2J gnp\\u{202e}exe ü";
        assert_eq!(escape_to_one_line(line), once);
        assert_eq!(escape_to_one_line(once), once);
    }
}
