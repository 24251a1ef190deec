//! What clap says of a wrong command line, in one line.

use std::error::Error as _;

use clap::error::{ContextKind, ContextValue};

/// Clap's message without the usage, and with the word that may have been meant.
pub(in crate::cli) fn line(error: &clap::Error) -> String {
    let line = match (error.source(), text_of(error, ContextKind::InvalidArg)) {
        // A value that one of our own parsers refused; which of the operands it is shows.
        (Some(reason), Some(operand)) if operand.starts_with('<') => reason.to_string(),
        (Some(reason), Some(argument)) => format!("{argument}: {reason}"),
        _ => match text_of(error, ContextKind::InvalidSubcommand) {
            // To clap, a word too many after the mount point might have been a subcommand.
            Some(word) => format!("unexpected argument '{word}' found"),
            None => first_paragraph(&error.render().to_string()),
        },
    };
    match text_of(error, ContextKind::SuggestedArg) {
        Some(meant) => format!("{line}; did you mean '{meant}'?"),
        None => line,
    }
}

fn text_of(error: &clap::Error, kind: ContextKind) -> Option<&str> {
    match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text),
        _ => None,
    }
}

fn first_paragraph(text: &str) -> String {
    let paragraph: Vec<&str> = text
        .lines()
        .map(str::trim)
        .take_while(|line| !line.is_empty())
        .collect();
    let line = paragraph.join(" ");
    line.strip_prefix("error: ").unwrap_or(&line).to_owned()
}
