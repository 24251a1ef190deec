//! What the parts of a connection tell each other of its client.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::fs::http::server::guests::Guest;

/// The client of a connection.
pub(super) struct Peer {
    guest: Guest,
    is_answered: AtomicBool,
    has_no_end: AtomicBool,
    is_whole: AtomicBool,
}

/// An answer to a client, until all of it was handed on.
pub(super) struct Answering(Arc<Peer>);

impl Peer {
    pub(super) fn new(guest: Guest) -> Self {
        Peer {
            guest,
            is_answered: AtomicBool::new(false),
            has_no_end: AtomicBool::new(false),
            is_whole: AtomicBool::new(false),
        }
    }

    /// Begins an answer.
    pub(super) fn answer(peer: &Arc<Self>) -> Answering {
        peer.is_answered.store(true, Ordering::Relaxed);
        Answering(Arc::clone(peer))
    }

    /// Whether an answer to it is under way.
    pub(super) fn is_answered(&self) -> bool {
        self.is_answered.load(Ordering::Relaxed)
    }

    /// Whether the end of the connection alone tells it that an answer is whole.
    pub(super) fn has_no_end(&self) -> bool {
        self.has_no_end.load(Ordering::Relaxed)
    }

    /// Whether all of such an answer was handed on.
    pub(super) fn is_whole(&self) -> bool {
        self.is_whole.load(Ordering::Relaxed)
    }
}

impl Answering {
    /// The client has shown what lets it in.
    pub(super) fn let_in(&self) {
        self.0.guest.let_in();
    }

    /// The answer has neither a length nor an end of its own.
    pub(super) fn set_without_end(&self) {
        self.0.has_no_end.store(true, Ordering::Relaxed);
    }

    /// All of it was handed on.
    pub(super) fn set_whole(&self) {
        self.0.is_whole.store(true, Ordering::Relaxed);
    }
}

impl Drop for Answering {
    fn drop(&mut self) {
        self.0.is_answered.store(false, Ordering::Relaxed);
    }
}
