//! Formats clap's error for an invalid command line as one line.

use std::error::Error as _;

use clap::error::{ContextKind, ContextValue};

/// Returns clap's message without the usage, and with the suggested word if there is one.
pub(in crate::cli) fn one_line_message(error: &clap::Error) -> String {
    let line = match (error.source(), text_of(error, ContextKind::InvalidArg)) {
        // One of our own parsers rejected the value of an operand. Its message already identifies
        // the operand.
        (Some(reason), Some(operand)) if operand.starts_with('<') => reason.to_string(),
        (Some(reason), Some(argument)) => format!("{argument}: {reason}"),
        _ => match text_of(error, ContextKind::InvalidSubcommand) {
            // clap treats an extra word after the mount point as an unknown subcommand.
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
