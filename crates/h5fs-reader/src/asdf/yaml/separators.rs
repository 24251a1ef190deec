//! U+2028 and U+2029. In YAML 1.1 they are line breaks that are kept in a text. The parser, which
//! implements YAML 1.2, treats them as ordinary characters.
//!
//! Within quotes and without adjacent white space, both versions agree. Otherwise, the parser first
//! receives line feeds instead, and returns the range of each scalar. A scalar with such a
//! separator is then rewritten in double quotes, with `"\L"` and `"\P"`.

use std::ops::Range;

use crate::wire::Count;

/// The line separator and the paragraph separator.
pub(super) const SEPARATORS: [char; 2] = ['\u{2028}', '\u{2029}'];

/// A text in which line feeds replace separators.
pub(super) struct NormalizedText {
    pub(super) text: String,
    /// The byte offset of each line feed that replaced a separator, ascending, with the separator
    /// that it replaced.
    places: Vec<(usize, char)>,
}

/// The style of a scalar.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Style {
    Plain,
    Single,
    Double,
}

/// A scalar that contains replaced separators.
pub(super) struct Scalar {
    /// The byte range of the scalar in [`NormalizedText::text`], including its quotes.
    pub(super) range: Range<usize>,
    pub(super) style: Style,
}

impl NormalizedText {
    /// Replaces the separators of a text by line feeds. Unless `all` is set, replaces only
    /// separators with adjacent white space.
    pub(super) fn new(text: &str, all: bool) -> Self {
        let is_white = |c: char| matches!(c, ' ' | '\t' | '\r' | '\n');
        let mut replaced = NormalizedText {
            text: String::with_capacity(text.len()),
            places: Vec::new(),
        };
        let mut before = None;
        let mut characters = text.chars().peekable();
        while let Some(character) = characters.next() {
            let is_beside = before.is_some_and(is_white)
                || characters.peek().is_some_and(|next| is_white(*next));
            if SEPARATORS.contains(&character) && (all || is_beside) {
                replaced.places.push((replaced.text.len(), character));
                replaced.text.push('\n');
            } else {
                replaced.text.push(character);
            }
            before = Some(character);
        }
        replaced
    }

    /// Returns whether the byte `range` of the text contains a replaced separator.
    pub(super) fn has_replaced_separator(&self, range: &Range<usize>) -> bool {
        let next = self
            .places
            .partition_point(|(place, _)| *place < range.start);
        let next = self.places.get(next);
        next.is_some_and(|(place, _)| range.contains(place))
    }

    /// Returns the text in which each of `scalars` is rewritten in double quotes, with escapes
    /// instead of its separators. The scalars must be in the order of the text.
    pub(super) fn with_escapes(&self, scalars: &[Scalar]) -> String {
        let mut out = String::with_capacity(self.text.len());
        let mut end = 0;
        for scalar in scalars {
            out.push_str(self.text.get(end..scalar.range.start).unwrap_or_default());
            self.write(scalar, &mut out);
            end = scalar.range.end;
        }
        out.push_str(self.text.get(end..).unwrap_or_default());
        out
    }

    fn write(&self, scalar: &Scalar, out: &mut String) {
        let text = self.text.get(scalar.range.clone()).unwrap_or_default();
        out.push('"');
        match scalar.style {
            Style::Plain => self.write_flow(text.trim_end(), scalar, out),
            Style::Single | Style::Double => {
                let mut inner = text.chars();
                inner.next();
                inner.next_back();
                self.write_flow(inner.as_str(), scalar, out);
            }
        }
        out.push('"');
    }

    /// Writes `text`, the content of `scalar` without its quotes, as the content of a double-quoted
    /// scalar.
    fn write_flow(&self, text: &str, scalar: &Scalar, out: &mut String) {
        let quote = usize::from(scalar.style != Style::Plain);
        let start = scalar.range.start.plus(quote);
        let is_double = scalar.style == Style::Double;
        let mut rest = text;
        while let Some(first) = rest.chars().next() {
            let place = start.plus(text.len().minus_or_zero(rest.len()));
            let behind = rest.get(first.len_utf8()..).unwrap_or_default();
            let is_break = behind.starts_with(['\r', '\n']);
            rest = match first {
                ' ' | '\t' | '\r' | '\n' => self.write_white((rest, place), false, out),
                '\\' if is_double && is_break => {
                    self.write_white((behind, place.plus_one()), true, out)
                }
                '\\' if is_double => {
                    let escaped = behind.chars().next();
                    out.push(first);
                    out.extend(escaped);
                    let length = escaped.map_or(0, char::len_utf8);
                    behind.get(length..).unwrap_or_default()
                }
                '\'' if scalar.style == Style::Single => {
                    out.push(first);
                    behind.strip_prefix('\'').unwrap_or(behind)
                }
                _ if is_double => {
                    out.push(first);
                    behind
                }
                _ => {
                    write_escaped(first, out);
                    behind
                }
            };
        }
    }

    /// Writes the white space at the start of `text`, which is at byte `place` of the normalized
    /// text. If `is_escaped` is set, the white space follows a backslash. Returns the remaining
    /// text. Blanks next to separators are removed. The first line break is removed if it is a line
    /// feed or follows a backslash.
    fn write_white<'t>(
        &self,
        (text, place): (&'t str, usize),
        is_escaped: bool,
        out: &mut String,
    ) -> &'t str {
        let end = text.find(|c| !matches!(c, ' ' | '\t' | '\r' | '\n'));
        let (white, behind) = text.split_at(end.unwrap_or(text.len()));
        if self.has_replaced_separator(&(place..place.plus(white.len()))) {
            let breaks = self.breaks(white, place);
            let is_dropped = is_escaped || breaks.starts_with('\n');
            let kept = breaks.chars().skip(usize::from(is_dropped));
            kept.for_each(|kept| write_escaped(kept, out));
        } else {
            out.push_str(if is_escaped { "\\" } else { "" });
            out.push_str(white);
        }
        behind
    }

    /// Returns only the line breaks of `text`, which begins at byte `place` of the normalized text.
    fn breaks(&self, text: &str, place: usize) -> String {
        let breaks = text.match_indices('\n');
        breaks
            .map(|(at, _)| self.line_break_at(place.plus(at)))
            .collect()
    }

    /// Returns the line break that the original text contains at byte `place` of the normalized
    /// text: a separator or a line feed.
    fn line_break_at(&self, place: usize) -> char {
        let found = self.places.binary_search_by_key(&place, |(own, _)| *own);
        let found = found.ok().and_then(|found| self.places.get(found));
        found.map_or('\n', |(_, separator)| *separator)
    }
}

fn write_escaped(character: char, out: &mut String) {
    match character {
        '\n' => out.push_str("\\n"),
        '\t' => out.push_str("\\t"),
        '"' => out.push_str("\\\""),
        '\\' => out.push_str("\\\\"),
        '\u{2028}' => out.push_str("\\L"),
        '\u{2029}' => out.push_str("\\P"),
        _ => out.push(character),
    }
}
