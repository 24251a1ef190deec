//! Errors of remote objects.

use nix::libc;

use crate::error::line::escape_to_one_line;
use crate::error::{Cause, Error};
use crate::source::remote::message::FailureKind;

/// Returns whether a request failed because the object does not exist.
pub(super) fn is_missing(error: &Error) -> bool {
    const MISSING: Cause = Cause::System(libc::ENOENT);
    matches!(error, Error::Io { cause, .. } if *cause == MISSING)
}

/// Converts a failure of the fetcher to an error.
pub(super) fn fetcher_failure_error(failure: FailureKind, text: &str) -> Error {
    let text = escape_to_one_line(text);
    let cause = match failure {
        FailureKind::NotFound => Cause::System(libc::ENOENT),
        FailureKind::Denied => Cause::System(libc::EACCES),
        FailureKind::Changed => Cause::Stale,
        FailureKind::NoRanges => return Error::Usage(text),
        FailureKind::TimedOut | FailureKind::Other => Cause::Unavailable,
        FailureKind::NoRoom => Cause::OutOfMemory,
    };
    Error::from_cause(cause, text)
}

/// Returns the error for an object that was replaced or deleted.
pub(super) fn object_changed_error() -> Error {
    Error::from_cause(Cause::Stale, "the object has changed")
}

/// Returns the error for a fetcher that has ended or sent an invalid message.
pub(super) fn fetcher_ended_error() -> Error {
    Error::from_cause(Cause::Unavailable, "the fetcher has ended")
}

/// Returns the error for a fetcher that did not reply in time.
pub(super) fn fetcher_silent_error() -> Error {
    Error::from_cause(Cause::Unavailable, "the fetcher does not answer")
}

/// Returns the error for a reply of the wrong type.
pub(super) fn unexpected_reply_error() -> Error {
    Error::from_cause(
        Cause::Unavailable,
        "the response does not belong to the request",
    )
}
