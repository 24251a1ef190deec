//! Responses to refused and failed requests, with the reason as text.

use h5fs_reader::error::Error;
use http::StatusCode;
use nix::errno::Errno;

use crate::errno;

/// The status and reason of a refused request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RequestFault {
    pub(super) status: StatusCode,
    pub(super) reason: String,
}

impl RequestFault {
    pub(super) fn new(status: StatusCode, reason: impl Into<String>) -> Self {
        let reason = reason.into();
        RequestFault { status, reason }
    }

    /// Creates a fault with the status 400 (Bad Request).
    pub(super) fn bad_request(reason: &str) -> Self {
        RequestFault::new(StatusCode::BAD_REQUEST, reason)
    }

    /// Converts an error of a served tree to a status and a reason.
    pub(super) fn from_error(error: &Error) -> Self {
        let status = match error {
            // A usage error explains why a path leads nowhere.
            Error::NotFound | Error::Usage(_) => StatusCode::NOT_FOUND,
            _ => status_for_errno(errno::from_error(error)),
        };
        let reason = match error {
            Error::NotFound => "no such file or directory".to_owned(),
            error => error.to_string(),
        };
        RequestFault { status, reason }
    }
}

fn status_for_errno(number: i32) -> StatusCode {
    match Errno::from_raw(number) {
        Errno::EACCES | Errno::EPERM => StatusCode::FORBIDDEN,
        Errno::ENOENT | Errno::ENOTDIR | Errno::ELOOP | Errno::ENAMETOOLONG | Errno::EISDIR => {
            StatusCode::NOT_FOUND
        }
        // A retry may succeed.
        Errno::ESTALE | Errno::ENOMEM | Errno::EMFILE | Errno::ENFILE | Errno::EINTR => {
            StatusCode::SERVICE_UNAVAILABLE
        }
        _ => StatusCode::INTERNAL_SERVER_ERROR,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::errno::{stale_error, too_long_error};

    #[test]
    fn errors_have_their_statuses() {
        let status = |error: Error| RequestFault::from_error(&error).status.as_u16();
        assert_eq!(status(Error::NotFound), 404);
        assert_eq!(status(Error::Usage("out of range".to_owned())), 404);
        assert_eq!(status(stale_error()), 503);
        assert_eq!(status(too_long_error()), 500);
        assert_eq!(status(errno::refusal_error(Errno::EACCES, "x")), 403);
        assert_eq!(status(errno::refusal_error(Errno::EIO, "x")), 500);
        assert_eq!(status(errno::refusal_error(Errno::ENOMEM, "x")), 503);
    }
}
