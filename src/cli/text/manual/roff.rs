//! Converts the texts of manual pages to roff.
//!
//! The markup is a subset of Markdown: `# SECTION`, `## Part`, paragraphs, examples indented by
//! four spaces, `` `literal text` ``, `*placeholder*`. A line that starts with `: ` describes the
//! line before it. Its continuation lines start with two spaces. A line `{name}` is replaced by
//! generated roff.

use std::iter::Peekable;
use std::str::Lines;

/// Maximum length of a line in bytes without a warning from mandoc.
const MAX_LINE_BYTES: usize = 79;

/// Converts a text to roff. `made` returns the roff that replaces each `{name}`.
pub(super) fn from_text(text: &str, made: impl Fn(&str) -> String) -> String {
    let mut page = RoffPage::default();
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        let name = line
            .strip_prefix('{')
            .and_then(|rest| rest.strip_suffix('}'));
        if let Some(part) = line.strip_prefix("## ") {
            page.heading("SS", part);
        } else if let Some(section) = line.strip_prefix("# ") {
            page.heading("SH", section);
        } else if let Some(name) = name {
            let roff = made(name);
            debug_assert!(!roff.is_empty(), "nothing is made for {name}");
            page.insert(&roff);
        } else if let Some(first) = line.strip_prefix("    ") {
            page.example(first, take_indented_lines(&mut lines, "    "));
        } else if let Some(body) = lines.peek().and_then(|next| next.strip_prefix(": ")) {
            lines.next();
            let rest: Vec<&str> = take_indented_lines(&mut lines, "  ").collect();
            page.add_item(line, &format!("{body} {}", rest.join(" ")));
        } else if !line.is_empty() {
            let rest: Vec<&str> =
                std::iter::from_fn(|| lines.next_if(|next| !next.is_empty())).collect();
            page.paragraph(&format!("{line} {}", rest.join(" ")));
        }
    }
    page.roff
}

/// Returns the following lines that start with `indent`, without the indent.
fn take_indented_lines<'a>(
    lines: &mut Peekable<Lines<'a>>,
    indent: &'static str,
) -> impl Iterator<Item = &'a str> {
    std::iter::from_fn(move || lines.next_if(|next| next.starts_with(indent)))
        .map(move |line| &line[indent.len()..])
}

/// The roff text of a manual page, or of a part of a page.
#[derive(Default)]
pub(super) struct RoffPage {
    pub(super) roff: String,
    is_below_heading: bool,
}

impl RoffPage {
    pub(super) fn heading(&mut self, macro_name: &str, text: &str) {
        self.line(&format!(".{macro_name} \"{}\"", inline_to_roff(text)));
        self.is_below_heading = true;
    }

    /// Adds a term and its description, both with markup.
    pub(super) fn add_item(&mut self, term: &str, body: &str) {
        self.line(".TP");
        self.line(&inline_to_roff(term));
        self.add_filled(body);
        self.is_below_heading = false;
    }

    pub(super) fn paragraph(&mut self, text: &str) {
        self.begin_paragraph();
        self.add_filled(text);
    }

    fn example<'a>(&mut self, first: &'a str, rest: impl Iterator<Item = &'a str>) {
        self.begin_paragraph();
        self.line(".RS 4");
        self.line(".EX");
        for line in std::iter::once(first).chain(rest) {
            self.line(&escape_request(escaped(line)));
        }
        self.line(".EE");
        self.line(".RE");
    }

    /// Adds lines with markup, without joining them.
    pub(super) fn add_lines(&mut self, lines: &[String]) {
        let lines: Vec<String> = lines
            .iter()
            .map(|line| escape_request(inline_to_roff(line)))
            .collect();
        self.line(&lines.join("\n.br\n"));
    }

    pub(super) fn insert(&mut self, roff: &str) {
        self.roff.push_str(roff);
        self.is_below_heading = false;
    }

    fn begin_paragraph(&mut self) {
        if !self.is_below_heading {
            self.line(".PP");
        }
        self.is_below_heading = false;
    }

    fn line(&mut self, line: &str) {
        self.roff.push_str(line);
        self.roff.push('\n');
    }

    /// Adds a text, wrapped to lines of at most [`MAX_LINE_BYTES`] bytes.
    fn add_filled(&mut self, text: &str) {
        let text = inline_to_roff(text);
        let mut line = String::new();
        for word in text.split_whitespace() {
            if !line.is_empty() && mandoc_width(&line) + 1 + mandoc_width(word) > MAX_LINE_BYTES {
                self.line(&escape_request(std::mem::take(&mut line)));
            }
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
        self.line(&escape_request(line));
    }
}

/// Returns the length of a text in bytes as mandoc counts it: a non-ASCII character counts as an
/// escape such as `\[u2026]`.
fn mandoc_width(text: &str) -> usize {
    let widths = text
        .chars()
        .map(|character| if character.is_ascii() { 1 } else { 8 });
    widths.sum()
}

/// Converts a text with markup to roff.
pub(super) fn inline_to_roff(text: &str) -> String {
    let mut roff = String::new();
    for (index, piece) in text.trim().split('`').enumerate() {
        let is_typed = index % 2 == 1;
        if is_typed {
            roff.push_str(&format!("\\fB{}\\fR", escaped(piece)));
            continue;
        }
        for (index, piece) in piece.split('*').enumerate() {
            match index % 2 {
                1 => roff.push_str(&format!("\\fI{}\\fR", escaped(piece))),
                _ => roff.push_str(&escaped(piece)),
            }
        }
    }
    roff
}

fn escaped(text: &str) -> String {
    let mut roff = String::new();
    for character in text.chars() {
        match character {
            '\\' => roff.push_str("\\e"),
            '-' => roff.push_str("\\-"),
            '\'' => roff.push_str("\\(aq"),
            '"' => roff.push_str("\\(dq"),
            '^' => roff.push_str("\\(ha"),
            '~' => roff.push_str("\\(ti"),
            other => roff.push(other),
        }
    }
    roff
}

/// Protects a line from being read as a roff request.
fn escape_request(line: String) -> String {
    if line.starts_with('.') {
        return format!("\\&{line}");
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_becomes_roff() {
        let text = "# NAME\n\na `-b` *c*\nd\n\ne\n\n    .f \\g\n\n`h`\n: i\n  j\n{k}\n";
        let roff = from_text(text, |name| format!("made {name}\n"));
        let expected = ".SH \"NAME\"\na \\fB\\-b\\fR \\fIc\\fR d\n.PP\ne\n.PP\n.RS 4\n.EX\n\
                        \\&.f \\eg\n.EE\n.RE\n.TP\n\\fBh\\fR\ni j\nmade k\n";
        assert_eq!(roff, expected);
    }

    #[test]
    fn lines_are_short() {
        let text = "a-word's `~` ".repeat(40);
        let roff = from_text(&text, str::to_owned);
        assert!(
            roff.lines().all(|line| line.len() <= MAX_LINE_BYTES),
            "{roff}"
        );
        assert!(roff.lines().count() > 5);
    }
}
