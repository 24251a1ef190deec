//! Why a request to a server failed.

use std::time::Duration;

use crate::source::remote::message::Failure;

/// A failure, and whether it may pass.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Trouble {
    pub(super) failure: Failure,
    /// For people; it names no secret.
    pub(super) text: String,
    pub(super) remedy: Remedy,
}

/// What may help.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Remedy {
    /// Nothing.
    None,
    /// Another attempt, after this time if the server wishes for one.
    Again(Option<Duration>),
    /// Another login: the one that there is may have expired.
    Login,
}

/// Servers behind one name may tag the same bytes differently.
const RETAGGED: &str = "the object has another entity tag; if its servers give differing tags, \
    `etag=weak` compares its length and its date alone";

/// No answer, or not all of it.
const LATE: &str = "no answer came in time";

impl Trouble {
    /// A failure that another attempt does not help.
    pub(super) fn new(failure: Failure, text: impl Into<String>) -> Self {
        Trouble {
            failure,
            text: text.into(),
            remedy: Remedy::None,
        }
    }

    /// Another failure that another attempt does not help.
    pub(super) fn other(text: impl Into<String>) -> Self {
        Self::new(Failure::Other, text)
    }

    /// A failure that another login may help.
    pub(super) fn of_login(text: impl Into<String>) -> Self {
        Trouble {
            remedy: Remedy::Login,
            ..Self::new(Failure::Denied, text)
        }
    }

    /// The same failure, after another login has not helped.
    pub(super) fn after_login(self) -> Self {
        match self.remedy {
            Remedy::Login => Trouble {
                remedy: Remedy::None,
                ..self
            },
            Remedy::None | Remedy::Again(_) => self,
        }
    }

    /// A failure that may pass; if it does not in time, it is that no answer came.
    pub(super) fn passing(text: impl Into<String>) -> Self {
        Trouble {
            failure: Failure::TimedOut,
            text: text.into(),
            remedy: Remedy::Again(None),
        }
    }

    /// The time for an answer is over. It says nothing of why the answers before were of no use.
    pub(super) fn late() -> Self {
        Self::passing(LATE)
    }

    /// Whether nothing but the time that is over is known of the failure.
    pub(super) fn is_late(&self) -> bool {
        self.text == LATE
    }

    /// The object is no longer in the state in which it was opened.
    pub(super) fn changed() -> Self {
        Self::new(Failure::Changed, "the object has changed")
    }

    /// The same, where nothing but another entity tag tells that.
    pub(super) fn retagged() -> Self {
        Self::new(Failure::Changed, RETAGGED)
    }

    /// Whether nothing but another entity tag tells of a change.
    pub(super) fn is_retagged(&self) -> bool {
        self.text == RETAGGED
    }
}
