//! The body of a response, generated piece by piece while hyper sends it.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use h5fs_reader::array::Bytes;
use h5fs_reader::error::Error;
use hyper::body::{Body, Frame, SizeHint};
use tokio::sync::OwnedSemaphorePermit;

use crate::http::content::{ResponseContent, StreamedContent};
use crate::http::server::dispatcher::{DispatchFuture, RequestDispatcher};
use crate::http::server::peer::PendingResponse;
use crate::limits;

/// The body of a response, generated piece by piece while hyper sends it.
pub(super) struct ResponseBody {
    dispatcher: Arc<RequestDispatcher>,
    response: PendingResponse,
    state: BodyState,
    /// Time when hyper received the last piece.
    last_piece_at: Option<Instant>,
}

enum BodyState {
    Over,
    Whole(bytes::Bytes),
    Pieces(Box<dyn StreamedContent>),
    /// The next piece is being generated.
    Waiting(
        DispatchFuture<Box<dyn StreamedContent>, Option<bytes::Bytes>>,
        Option<u64>,
    ),
}

impl ResponseBody {
    /// Creates the body of a response. A client of HTTP/1.0 needs a length, because it does not
    /// support chunked transfer coding.
    pub(super) fn new(
        questions: Arc<RequestDispatcher>,
        content: ResponseContent,
        answering: PendingResponse,
        is_old: bool,
    ) -> Self {
        let state = match content {
            ResponseContent::Empty => BodyState::Over,
            ResponseContent::Whole(bytes) => BodyState::Whole(bytes),
            ResponseContent::Pieces(pieces) => BodyState::Pieces(pieces),
        };
        if is_old && matches!(&state, BodyState::Pieces(pieces) if pieces.remaining().is_none()) {
            answering.set_close_delimited();
        }
        ResponseBody {
            dispatcher: questions,
            response: answering,
            state,
            last_piece_at: None,
        }
    }

    /// Starts to generate the next piece of the content. The piece is large if a slot for large
    /// pieces is free and the client reads fast.
    fn start_next_piece(&self, pieces: Box<dyn StreamedContent>) -> BodyState {
        let room = self.reserve_large_piece();
        self.request_piece(pieces, room)
    }

    /// Starts to generate the next piece before hyper requests it, if the piece is large.
    fn start_large_piece_early(&self, pieces: Box<dyn StreamedContent>) -> BodyState {
        match self.reserve_large_piece() {
            Some(room) => self.request_piece(pieces, Some(room)),
            None => BodyState::Pieces(pieces),
        }
    }

    /// Reserves a slot for a large piece, if the client reads fast.
    fn reserve_large_piece(&self) -> Option<OwnedSemaphorePermit> {
        const FAST: Duration = Duration::from_secs(1);
        let is_fast = self
            .last_piece_at
            .is_none_or(|handed| handed.elapsed() < FAST);
        self.dispatcher.reserve_large_piece().filter(|_| is_fast)
    }

    fn request_piece(
        &self,
        pieces: Box<dyn StreamedContent>,
        mut room: Option<OwnedSemaphorePermit>,
    ) -> BodyState {
        let most = match room {
            Some(_) => limits::HTTP_LARGE_PIECE,
            None => limits::HTTP_PIECE,
        };
        let left = pieces.remaining();
        let next =
            self.dispatcher
                .dispatch(pieces.request_subject(), pieces, move |pieces, cancel| {
                    let piece = pieces.next_piece(most, cancel)?;
                    Ok(piece.map(|bytes| Piece::into_bytes(bytes, room.take())))
                });
        BodyState::Waiting(next, left)
    }
}

/// A piece of the body, with the slot that it occupies if it is large.
struct Piece {
    bytes: Bytes,
    _room: Option<OwnedSemaphorePermit>,
}

impl Piece {
    /// Converts the bytes for hyper. Shared bytes are copied, so that a slow client does not keep a
    /// whole chunk in memory.
    fn into_bytes(bytes: Bytes, room: Option<OwnedSemaphorePermit>) -> bytes::Bytes {
        let bytes = if bytes.is_shared() {
            bytes.into_vec().into()
        } else {
            bytes
        };
        bytes::Bytes::from_owner(Piece { bytes, _room: room })
    }
}

impl AsRef<[u8]> for Piece {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Body for ResponseBody {
    type Data = bytes::Bytes;
    type Error = Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<bytes::Bytes>, Error>>> {
        loop {
            match std::mem::replace(&mut self.state, BodyState::Over) {
                BodyState::Over => {
                    self.response.set_complete();
                    return Poll::Ready(None);
                }
                BodyState::Whole(bytes) => {
                    return Poll::Ready(Some(Ok(Frame::data(bytes))));
                }
                BodyState::Pieces(pieces) => self.state = self.start_next_piece(pieces),
                BodyState::Waiting(mut next, left) => {
                    let Poll::Ready((pieces, piece)) = next.as_mut().poll(context) else {
                        self.state = BodyState::Waiting(next, left);
                        return Poll::Pending;
                    };
                    let Some(bytes) = piece.inspect_err(|error| {
                        log::warn!("a response was cut off: {error}");
                    })?
                    else {
                        continue;
                    };
                    // The next piece is generated while this one is sent.
                    if let Some(pieces) = pieces {
                        self.state = match pieces.remaining() {
                            Some(0) => BodyState::Over,
                            _ => self.start_large_piece_early(pieces),
                        };
                    }
                    self.last_piece_at = Some(Instant::now());
                    return Poll::Ready(Some(Ok(Frame::data(bytes))));
                }
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(self.state, BodyState::Over)
    }

    fn size_hint(&self) -> SizeHint {
        let left = match &self.state {
            BodyState::Over => Some(0),
            BodyState::Whole(bytes) => u64::try_from(bytes.len()).ok(),
            BodyState::Pieces(pieces) => pieces.remaining(),
            BodyState::Waiting(_, left) => *left,
        };
        left.map_or_else(SizeHint::default, SizeHint::with_exact)
    }
}
