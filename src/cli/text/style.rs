//! Colours for terminals that support them: SGR sequences of ECMA-48, section 8.3.117.

use std::io::IsTerminal;

/// The kind of object that a text names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::cli) enum Style {
    Plain,
    Directory,
    Symlink,
    Dataset,
    /// An object that cannot be read.
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
pub(in crate::cli) struct Coloring(bool);

impl Coloring {
    /// Returns whether to colour an output: only a terminal, and not if a non-empty `NO_COLOR` or
    /// `TERM` forbids it.
    pub(in crate::cli) fn for_output(is_terminal: bool) -> Self {
        let wanted = std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
        Coloring(wanted && is_terminal && has_cursor())
    }

    /// Returns whether the output is coloured.
    pub(in crate::cli) fn is_on(self) -> bool {
        self.0
    }

    /// Returns the control sequences before and after a text of this style.
    pub(in crate::cli) fn control_sequences(self, style: Style) -> (&'static str, &'static str) {
        match style {
            Style::Plain => ("", ""),
            _ if !self.0 => ("", ""),
            _ => (style.start(), "\x1b[0m"),
        }
    }
}

/// Returns whether the output is a terminal that supports control sequences.
pub(in crate::cli) fn supports_control_sequences(output: &impl IsTerminal) -> bool {
    output.is_terminal() && has_cursor()
}

fn has_cursor() -> bool {
    std::env::var_os("TERM").is_some_and(|term| term != "dumb")
}
