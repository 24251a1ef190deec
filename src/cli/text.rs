//! Text for the user: help, manual pages, messages, logs and colours.

pub(in crate::cli) mod completions;
pub(in crate::cli) mod error_message;
pub(in crate::cli) mod example;
pub(in crate::cli) mod fusermount;
pub(in crate::cli) mod lines;
pub(in crate::cli) mod log_file;
pub(in crate::cli) mod logging;
pub(in crate::cli) mod manual;
pub(in crate::cli) mod printable;
pub(in crate::cli) mod progress;
pub(in crate::cli) mod refusal;
pub(in crate::cli) mod schemes;
pub(in crate::cli) mod secrets;
pub(in crate::cli) mod style;
pub(in crate::cli) mod synonyms;
