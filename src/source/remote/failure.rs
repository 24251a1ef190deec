//! The errors of objects.

use nix::libc;

use crate::error::line::one_line;
use crate::error::{Cause, Error};
use crate::source::remote::message::Failure;

/// Whether a request failed because there is no such object.
pub(super) fn is_missing(error: &Error) -> bool {
    const MISSING: Cause = Cause::System(libc::ENOENT);
    matches!(error, Error::Io { cause, .. } if *cause == MISSING)
}

/// The error that a failure of the fetcher is.
pub(super) fn failed(failure: Failure, text: &str) -> Error {
    let text = one_line(text);
    let cause = match failure {
        Failure::NotFound => Cause::System(libc::ENOENT),
        Failure::Denied => Cause::System(libc::EACCES),
        Failure::Changed => Cause::Stale,
        Failure::NoRanges => return Error::Usage(text),
        Failure::TimedOut | Failure::Other => Cause::Failed,
        Failure::NoRoom => Cause::OutOfMemory,
    };
    Error::caused(cause, text)
}

/// The object is in another state, or gone.
pub(super) fn changed() -> Error {
    Error::caused(Cause::Stale, "the object has changed")
}

/// The fetcher has ended, or makes no sense.
pub(super) fn ended() -> Error {
    Error::caused(Cause::Failed, "the process that has the network has ended")
}

/// The fetcher does not answer in time.
pub(super) fn silent() -> Error {
    Error::caused(
        Cause::Failed,
        "no answer from the process that has the network",
    )
}

/// The fetcher answers something else.
pub(super) fn unfitting() -> Error {
    Error::caused(Cause::Failed, "an answer to another question")
}
