//! HTML in which names and values from a file cannot inject markup.
//!
//! Markup is part of the program (`&'static str`). Data from a file is appended as text, which is
//! escaped, or as a [`Url`]. [`Html`] does not accept data in any other way.

use std::fmt::{self, Write};

use h5fs_reader::error::line::is_bidi_control;

use crate::limits;

/// HTML text in which all data from a file is escaped.
#[derive(Debug, Default)]
pub struct Html(String);

/// The URL of a file in the mount, relative to the page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Url(String);

impl Html {
    /// Appends markup.
    pub(super) fn markup(&mut self, markup: &'static str) -> &mut Self {
        self.0.push_str(markup);
        self
    }

    /// Appends bytes as escaped text. Characters that are not printable become escapes. A text of
    /// more than [`limits::HTML_TEXT`] characters is cut, and ends in `…`.
    pub(super) fn text(&mut self, text: impl AsRef<[u8]>) -> &mut Self {
        self.limited_text(text.as_ref(), limits::HTML_TEXT, true)
    }

    /// Does the same as [`text`](Self::text), with the higher limit [`limits::HTML_LONG_TEXT`].
    pub(super) fn long_text(&mut self, text: impl AsRef<[u8]>) -> &mut Self {
        self.limited_text(text.as_ref(), limits::HTML_LONG_TEXT, true)
    }

    fn limited_text(&mut self, text: &[u8], mut room: usize, keeps_lines: bool) -> &mut Self {
        for piece in text.utf8_chunks() {
            for character in piece.valid().chars() {
                if !decrement_room(&mut room) {
                    return self.markup("…");
                }
                self.character(character, keeps_lines);
            }
            for byte in piece.invalid() {
                if !decrement_room(&mut room) {
                    return self.markup("…");
                }
                self.formatted(format_args!("\\x{byte:02x}"));
            }
        }
        self
    }

    /// Appends a number.
    pub(super) fn number(&mut self, number: impl fmt::Display) -> &mut Self {
        self.text(number.to_string())
    }

    /// Appends a point of an SVG path: its two coordinates.
    pub(super) fn point(&mut self, x: f64, y: f64) -> &mut Self {
        self.formatted(format_args!("{x:.1} {y:.1}"));
        self
    }

    /// Appends a link with a text.
    pub(super) fn link(&mut self, url: &Url, text: impl AsRef<[u8]>) -> &mut Self {
        self.markup("<a href=\"").url(url).markup("\">");
        self.text(text).markup("</a>")
    }

    /// Appends a URL, escaped for the value of an attribute in double quotes.
    pub(super) fn url(&mut self, url: &Url) -> &mut Self {
        self.0.push_str(&url.0);
        self
    }

    /// Appends other HTML.
    pub(super) fn append_html(&mut self, piece: &Html) -> &mut Self {
        self.0.push_str(&piece.0);
        self
    }

    /// Returns the HTML as bytes.
    pub(super) fn finish(self) -> Vec<u8> {
        self.0.into_bytes()
    }

    fn character(&mut self, character: char, keeps_lines: bool) {
        match character {
            '&' => self.0.push_str("&amp;"),
            '<' => self.0.push_str("&lt;"),
            '>' => self.0.push_str("&gt;"),
            '"' => self.0.push_str("&quot;"),
            '\'' => self.0.push_str("&#39;"),
            '\n' | '\t' if keeps_lines => self.0.push(character),
            _ if character.is_control() || is_bidi_control(character) => {
                self.0.extend(character.escape_default());
            }
            _ => self.0.push(character),
        }
    }

    fn formatted(&mut self, text: fmt::Arguments<'_>) {
        // Writing to a String cannot fail.
        let _ = self.0.write_fmt(text);
    }
}

/// Subtracts one from `room`, unless it is 0. Returns whether it was not 0.
fn decrement_room(room: &mut usize) -> bool {
    let rest = room.checked_sub(1);
    *room = rest.unwrap_or(0);
    rest.is_some()
}

impl Url {
    /// Encodes the path of a file, relative to the page's directory. The path has any bytes, with
    /// `/` between names. All characters except unreserved ones (RFC 3986, section 2.3) are
    /// encoded. A name therefore cannot be parsed as a scheme, a query or a fragment.
    pub fn from_path(path: &[u8]) -> Self {
        let mut url = String::with_capacity(path.len());
        for &byte in path {
            match byte {
                b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' => url.push(byte.into()),
                b'-' | b'.' | b'_' | b'~' | b'/' => url.push(byte.into()),
                // Writing to a String cannot fail.
                _ => drop(write!(url, "%{byte:02X}")),
            }
        }
        Url(url)
    }

    /// Returns the URL with a trailing slash, as for a directory.
    pub fn with_trailing_slash(mut self) -> Self {
        self.0.push('/');
        self
    }
}

/// Escapes a name for HTML. Characters that are not printable become escapes, line breaks among
/// them.
pub fn escape_name(name: &[u8]) -> String {
    let mut html = Html::default();
    html.limited_text(name, usize::MAX, false);
    html.0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &[u8]) -> String {
        let mut html = Html::default();
        html.text(text);
        html.0
    }

    #[test]
    fn nothing_of_a_text_is_markup() {
        assert_eq!(
            text(b"<script>alert('a\"&')</script>"),
            "&lt;script&gt;alert(&#39;a&quot;&amp;&#39;)&lt;/script&gt;"
        );
        assert_eq!(text("Utö 数".as_bytes()), "Utö 数");
        assert_eq!(text(b"a\x1b\0\xff"), "a\\u{1b}\\u{0}\\xff");
        assert_eq!(text("gnp\u{202e}exe".as_bytes()), "gnp\\u{202e}exe");
        assert_eq!(text(b"a\n\tb"), "a\n\tb");
    }

    #[test]
    fn a_long_text_is_cut() {
        let most = "ü".repeat(limits::HTML_TEXT);
        assert_eq!(text(most.as_bytes()), most);
        assert_eq!(text(format!("{most}ü").as_bytes()), format!("{most}…"));
        assert_eq!(
            text(&[0xff; 1 << 20]).len(),
            4 * limits::HTML_TEXT + "…".len()
        );
    }

    #[test]
    fn no_name_is_more_than_a_path() {
        let url = |path: &[u8]| Url::from_path(path).0;
        assert_eq!(url(b"../png/a b.png"), "../png/a%20b.png");
        assert_eq!(url(b"javascript:alert(1)"), "javascript%3Aalert%281%29");
        assert_eq!(url(b"a\"><b>'&?#%2F"), "a%22%3E%3Cb%3E%27%26%3F%23%252F");
        assert_eq!(url("ü\0".as_bytes()), "%C3%BC%00");
        assert_eq!(url(b"x[0,:].csv"), "x%5B0%2C%3A%5D.csv");
    }

    #[test]
    fn a_link_has_a_reference_and_a_text() {
        let mut html = Html::default();
        html.link(&Url::from_path(b"a\"b"), b"<a>");
        assert_eq!(html.0, "<a href=\"a%22b\">&lt;a&gt;</a>");
    }
}
