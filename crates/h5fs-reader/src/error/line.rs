//! Text from a file or a server as a part of a line.

/// Returns whether a character is a mark of the bidirectional algorithm. Such a mark can make a
/// name read as another.
pub fn is_bidi_control(character: char) -> bool {
    matches!(character, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Returns a text on one line that cannot control a terminal. Control characters, and characters
/// that change the writing direction, become escapes. Quotes and backslashes stay, so that an
/// escaped text is not escaped again.
pub fn one_line(text: &str) -> String {
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
        assert_eq!(one_line(line), once);
        assert_eq!(one_line(once), once);
    }
}
