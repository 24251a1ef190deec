//! The content of an answer, on its way to a client.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use hyper::body::{Body, Frame, SizeHint};
use tokio::sync::OwnedSemaphorePermit;

use crate::array::Bytes;
use crate::error::Error;
use crate::fs::http::content::{Content, Pieces};
use crate::fs::http::server::asking::{Answered, Questions};
use crate::fs::http::server::peer::Answering;
use crate::limits;

/// The content of an answer, on its way.
pub(super) struct Sent {
    questions: Arc<Questions>,
    answering: Answering,
    state: Sending,
    /// When the last piece was handed on.
    handed: Option<Instant>,
}

enum Sending {
    Over,
    Whole(bytes::Bytes),
    Pieces(Box<dyn Pieces>),
    /// The next piece is worked out.
    Waiting(Answered<Box<dyn Pieces>, Option<bytes::Bytes>>, Option<u64>),
}

impl Sent {
    /// This content; a client of an old version of HTTP knows lengths, and no other end.
    pub(super) fn new(
        questions: Arc<Questions>,
        content: Content,
        answering: Answering,
        is_old: bool,
    ) -> Self {
        let state = match content {
            Content::Empty => Sending::Over,
            Content::Whole(bytes) => Sending::Whole(bytes),
            Content::Pieces(pieces) => Sending::Pieces(pieces),
        };
        if is_old && matches!(&state, Sending::Pieces(pieces) if pieces.left().is_none()) {
            answering.set_without_end();
        }
        Sent {
            questions,
            answering,
            state,
            handed: None,
        }
    }

    /// Begins to work out the next piece: a large one, where there is room and the client reads
    /// fast.
    fn ask_next(&self, pieces: Box<dyn Pieces>) -> Sending {
        let room = self.room();
        self.ask(pieces, room)
    }

    /// The same ahead of the client, where that is a large piece.
    fn ask_ahead(&self, pieces: Box<dyn Pieces>) -> Sending {
        match self.room() {
            Some(room) => self.ask(pieces, Some(room)),
            None => Sending::Pieces(pieces),
        }
    }

    /// Room for a large piece.
    fn room(&self) -> Option<OwnedSemaphorePermit> {
        const FAST: Duration = Duration::from_secs(1);
        let is_fast = self.handed.is_none_or(|handed| handed.elapsed() < FAST);
        self.questions.room().filter(|_| is_fast)
    }

    fn ask(&self, pieces: Box<dyn Pieces>, mut room: Option<OwnedSemaphorePermit>) -> Sending {
        let most = match room {
            Some(_) => limits::HTTP_LARGE_PIECE,
            None => limits::HTTP_PIECE,
        };
        let left = pieces.left();
        let next = self
            .questions
            .ask(pieces.of(), pieces, move |pieces, cancel| {
                let piece = pieces.next(most, cancel)?;
                Ok(piece.map(|bytes| Piece::of(bytes, room.take())))
            });
        Sending::Waiting(next, left)
    }
}

/// A piece, and its place among the large ones.
struct Piece {
    bytes: Bytes,
    _room: Option<OwnedSemaphorePermit>,
}

impl Piece {
    /// The bytes as hyper takes them. A client that reads slowly keeps no chunk in memory of which
    /// they are a part.
    fn of(bytes: Bytes, room: Option<OwnedSemaphorePermit>) -> bytes::Bytes {
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

impl Body for Sent {
    type Data = bytes::Bytes;
    type Error = Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<bytes::Bytes>, Error>>> {
        loop {
            match std::mem::replace(&mut self.state, Sending::Over) {
                Sending::Over => {
                    self.answering.set_whole();
                    return Poll::Ready(None);
                }
                Sending::Whole(bytes) => {
                    return Poll::Ready(Some(Ok(Frame::data(bytes))));
                }
                Sending::Pieces(pieces) => self.state = self.ask_next(pieces),
                Sending::Waiting(mut next, left) => {
                    let Poll::Ready((pieces, piece)) = next.as_mut().poll(context) else {
                        self.state = Sending::Waiting(next, left);
                        return Poll::Pending;
                    };
                    let Some(bytes) = piece.inspect_err(|error| {
                        log::warn!("an answer was cut off: {error}");
                    })?
                    else {
                        continue;
                    };
                    // While this one is sent, the next is worked out.
                    if let Some(pieces) = pieces {
                        self.state = match pieces.left() {
                            Some(0) => Sending::Over,
                            _ => self.ask_ahead(pieces),
                        };
                    }
                    self.handed = Some(Instant::now());
                    return Poll::Ready(Some(Ok(Frame::data(bytes))));
                }
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(self.state, Sending::Over)
    }

    fn size_hint(&self) -> SizeHint {
        let left = match &self.state {
            Sending::Over => Some(0),
            Sending::Whole(bytes) => u64::try_from(bytes.len()).ok(),
            Sending::Pieces(pieces) => pieces.left(),
            Sending::Waiting(_, left) => *left,
        };
        left.map_or_else(SizeHint::default, SizeHint::with_exact)
    }
}
