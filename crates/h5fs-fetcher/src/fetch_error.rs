//! The reasons why a request to a server fails.

use std::time::Duration;

use h5fs_reader::source::remote::message::FailureKind;

/// The reason why a request failed, and the action that may help.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FetchError {
    pub(super) failure: FailureKind,
    /// Message for the user, without secrets.
    pub(super) text: String,
    pub(super) retry_action: RetryAction,
}

/// The action after which a failed request may succeed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RetryAction {
    /// No action helps.
    None,
    /// Another attempt. If the server requests a pause, the pause precedes the attempt.
    Retry(Option<Duration>),
    /// A new login, because the current one may have expired.
    Login,
}

/// Message for an object whose entity tag alone has changed. Several servers with one name may send
/// different entity tags for the same bytes.
const ENTITY_TAG_CHANGED: &str = "the object has another entity tag; if its servers send different tags, \
                        `etag=weak` compares only length and date";

/// Message for a response that has not arrived completely within the time limit.
const TIMED_OUT: &str = "no response arrived in time";

impl FetchError {
    /// Returns a permanent failure.
    pub(super) fn new(failure: FailureKind, text: impl Into<String>) -> Self {
        FetchError {
            failure,
            text: text.into(),
            retry_action: RetryAction::None,
        }
    }

    /// Returns a permanent failure of the kind `Other`.
    pub(super) fn permanent(text: impl Into<String>) -> Self {
        Self::new(FailureKind::Other, text)
    }

    /// Returns a failure after which a new login may help.
    pub(super) fn login_needed(text: impl Into<String>) -> Self {
        FetchError {
            retry_action: RetryAction::Login,
            ..Self::new(FailureKind::Denied, text)
        }
    }

    /// Returns the failure as permanent if it can only be fixed by a login, because a new login has
    /// already been tried.
    pub(super) fn permanent_after_login(self) -> Self {
        match self.retry_action {
            RetryAction::Login => FetchError {
                retry_action: RetryAction::None,
                ..self
            },
            RetryAction::None | RetryAction::Retry(_) => self,
        }
    }

    /// Returns a temporary failure, after which the request is retried. If no retry succeeds in
    /// time, the failure is a timeout.
    pub(super) fn temporary(text: impl Into<String>) -> Self {
        FetchError {
            failure: FailureKind::TimedOut,
            text: text.into(),
            retry_action: RetryAction::Retry(None),
        }
    }

    /// Returns the failure of a request whose time limit has elapsed. If an earlier attempt has
    /// failed, its message is shown instead.
    pub(super) fn timed_out() -> Self {
        Self::temporary(TIMED_OUT)
    }

    /// Returns whether the failure is only that the time limit has elapsed, without the message of
    /// an earlier attempt.
    pub(super) fn is_timeout(&self) -> bool {
        self.text == TIMED_OUT
    }

    /// Returns the failure that the object has changed since it was opened.
    pub(super) fn object_changed() -> Self {
        Self::new(FailureKind::Changed, "the object has changed")
    }

    /// Returns the failure that only the entity tag of the object has changed.
    pub(super) fn entity_tag_changed() -> Self {
        Self::new(FailureKind::Changed, ENTITY_TAG_CHANGED)
    }

    /// Returns whether only the entity tag of the object has changed.
    pub(super) fn is_entity_tag_change(&self) -> bool {
        self.text == ENTITY_TAG_CHANGED
    }
}
