//! The stream of a connection, as hyper takes it.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use hyper::rt::{Read, ReadBufCursor, Write};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpStream, UnixStream};

use crate::limits;

/// The stream of a connection.
pub(super) enum Stream {
    Network(TcpStream),
    Unix(UnixStream),
}

/// The same for hyper. A client that takes nothing for [`limits::HTTP_IDLE`] is left.
pub(super) struct Wire {
    stream: Stream,
    stalled: Option<Pin<Box<tokio::time::Sleep>>>,
}

impl Wire {
    pub(super) fn new(stream: Stream) -> Self {
        Wire {
            stream,
            stalled: None,
        }
    }

    /// Passes the outcome of a write on, and watches the time while there is none.
    fn watched<T>(
        &mut self,
        written: Poll<io::Result<T>>,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.stalled = None;
            return written;
        }
        let begin = || Box::pin(tokio::time::sleep(limits::HTTP_IDLE));
        let stalled = self.stalled.get_or_insert_with(begin);
        ready!(stalled.as_mut().poll(context));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

macro_rules! on_stream {
    ($wire:expr, $stream:ident => $call:expr) => {
        match &mut $wire.stream {
            Stream::Network($stream) => {
                let $stream = Pin::new($stream);
                $call
            }
            Stream::Unix($stream) => {
                let $stream = Pin::new($stream);
                $call
            }
        }
    };
}

impl Read for Wire {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        mut into: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        // Requests are short. Without unsafe code the cursor takes copies alone.
        let mut memory = [0; 4096];
        let room = into.remaining().min(memory.len());
        let mut buffer = ReadBuf::new(memory.get_mut(..room).unwrap_or_default());
        ready!(on_stream!(self, stream => stream.poll_read(context, &mut buffer)))?;
        into.put_slice(buffer.filled());
        Poll::Ready(Ok(()))
    }
}

impl Write for Wire {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = on_stream!(self, stream => stream.poll_write(context, bytes));
        self.watched(written, context)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        on_stream!(self, stream => stream.poll_flush(context))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        on_stream!(self, stream => stream.poll_shutdown(context))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        all: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = on_stream!(self, stream => stream.poll_write_vectored(context, all));
        self.watched(written, context)
    }
}
