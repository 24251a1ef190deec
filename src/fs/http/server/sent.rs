//! The content of a response while it is sent.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use h5fs_reader::array::Bytes;
use h5fs_reader::error::Error;
use hyper::body::{Body, Frame, SizeHint};
use tokio::sync::OwnedSemaphorePermit;

use crate::fs::http::content::{Content, Pieces};
use crate::fs::http::server::asking::{Answered, Questions};
use crate::fs::http::server::peer::Answering;
use crate::limits;

/// The content of a response while it is sent.
pub(super) struct Sent {
    questions: Arc<Questions>,
    answering: Answering,
    state: Sending,
    /// Time when the last piece was handed to hyper.
    handed: Option<Instant>,
}

enum Sending {
    Over,
    Whole(bytes::Bytes),
    Pieces(Box<dyn Pieces>),
    /// The next piece is being generated.
    Waiting(Answered<Box<dyn Pieces>, Option<bytes::Bytes>>, Option<u64>),
}

impl Sent {
    /// Creates the body of a response. A client with an old version of HTTP supports only lengths,
    /// not end markers.
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

    /// Starts to generate the next piece. The piece is large if a slot is free and the client reads
    /// fast.
    fn ask_next(&self, pieces: Box<dyn Pieces>) -> Sending {
        let room = self.room();
        self.ask(pieces, room)
    }

    /// Starts to generate the next piece ahead of the client, if the piece is large.
    fn ask_ahead(&self, pieces: Box<dyn Pieces>) -> Sending {
        match self.room() {
            Some(room) => self.ask(pieces, Some(room)),
            None => Sending::Pieces(pieces),
        }
    }

    /// Reserves a slot for a large piece.
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

/// A piece, with its slot for large pieces.
struct Piece {
    bytes: Bytes,
    _room: Option<OwnedSemaphorePermit>,
}

impl Piece {
    /// Converts the bytes for hyper. Shared bytes are copied, so that a slow client does not keep a
    /// whole chunk in memory.
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
                        log::warn!("a response was cut off: {error}");
                    })?
                    else {
                        continue;
                    };
                    // The next piece is generated while this one is sent.
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
