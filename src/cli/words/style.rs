//! Colour, where a terminal can show it and its user wants it: SGR sequences of ECMA-48, 8.3.117.

use std::io::IsTerminal;

/// The kind of thing that a text stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::cli) enum Style {
    Plain,
    Directory,
    Symlink,
    Dataset,
    /// A thing that cannot be read.
    Fault,
}

impl Style {
    fn start(self) -> &'static str {
        match self {
            Style::Plain => "",
            Style::Directory => "\x1b[1;34m",
            Style::Symlink => "\x1b[36m",
            Style::Dataset => "\x1b[32m",
            Style::Fault => "\x1b[1;31m",
        }
    }
}

/// Whether an output is coloured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::cli) struct Paint(bool);

impl Paint {
    /// The paint that fits an output: colour on a terminal, unless `NO_COLOR` (of any length but
    /// 0) or `TERM` is against it.
    pub(in crate::cli) fn of(is_terminal: bool) -> Self {
        let wanted = std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
        Paint(wanted && is_terminal && has_cursor())
    }

    /// Whether there is colour.
    pub(in crate::cli) fn is_on(self) -> bool {
        self.0
    }

    /// The sequences before and after a text of this style.
    pub(in crate::cli) fn around(self, style: Style) -> (&'static str, &'static str) {
        match style {
            Style::Plain => ("", ""),
            _ if !self.0 => ("", ""),
            _ => (style.start(), "\x1b[0m"),
        }
    }
}

/// Whether the output is a terminal that understands control sequences.
pub(in crate::cli) fn moves_cursor(output: &impl IsTerminal) -> bool {
    output.is_terminal() && has_cursor()
}

fn has_cursor() -> bool {
    std::env::var_os("TERM").is_some_and(|term| term != "dumb")
}
