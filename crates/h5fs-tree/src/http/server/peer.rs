//! State of a client that the stream and the responses of its connection share.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::http::server::unauthorized::UnauthorizedClient;

/// The client of a connection.
pub(super) struct Peer {
    client: UnauthorizedClient,
    is_answered: AtomicBool,
    is_unbounded: AtomicBool,
    is_complete: AtomicBool,
}

/// A response in progress. It ends when hyper has received all of its bytes.
pub(super) struct PendingResponse(Arc<Peer>);

impl Peer {
    pub(super) fn new(client: UnauthorizedClient) -> Self {
        Peer {
            client,
            is_answered: AtomicBool::new(false),
            is_unbounded: AtomicBool::new(false),
            is_complete: AtomicBool::new(false),
        }
    }

    /// Records that a response to the client is in progress, until the returned value is dropped.
    pub(super) fn begin_response(peer: &Arc<Self>) -> PendingResponse {
        peer.is_answered.store(true, Ordering::Relaxed);
        PendingResponse(Arc::clone(peer))
    }

    /// Returns whether a response is in progress.
    pub(super) fn is_response_pending(&self) -> bool {
        self.is_answered.load(Ordering::Relaxed)
    }

    /// Returns whether the current response has neither a length nor an end marker, so that only
    /// the end of the connection ends it.
    pub(super) fn is_close_delimited(&self) -> bool {
        self.is_unbounded.load(Ordering::Relaxed)
    }

    /// Returns whether hyper has received all bytes of a response without an end marker.
    pub(super) fn is_complete(&self) -> bool {
        self.is_complete.load(Ordering::Relaxed)
    }
}

impl PendingResponse {
    /// Records that the client has access, so that it is not disconnected as a client without
    /// access.
    pub(super) fn grant_access(&self) {
        self.0.client.grant_access();
    }

    /// Records that the response has neither a length nor an end marker, so that only the end of
    /// the connection ends it.
    pub(super) fn set_close_delimited(&self) {
        self.0.is_unbounded.store(true, Ordering::Relaxed);
    }

    /// Records that hyper has received all bytes of the response.
    pub(super) fn set_complete(&self) {
        self.0.is_complete.store(true, Ordering::Relaxed);
    }
}

impl Drop for PendingResponse {
    fn drop(&mut self) {
        self.0.is_answered.store(false, Ordering::Relaxed);
    }
}
