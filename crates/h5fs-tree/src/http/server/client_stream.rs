//! The byte stream of a connection, adapted to hyper.

use std::future::Future;
use std::io;
use std::os::fd::AsFd;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use hyper::rt::{Read, ReadBufCursor, Write};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use rustix::net::sockopt::set_socket_linger;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpStream, UnixStream};
use tokio::time::{Sleep, sleep};

use crate::http::server::peer::Peer;
use crate::limits;

/// The socket of a connection.
pub(super) enum ClientSocket {
    Network(TcpStream),
    Unix(UnixStream),
}

/// The socket of a connection with a timeout, as hyper uses it. A client that accepts no bytes for
/// [`limits::HTTP_IDLE`] is disconnected.
pub(super) struct ClientStream {
    stream: ClientSocket,
    peer: Arc<Peer>,
    stall_timer: Option<Pin<Box<Sleep>>>,
    /// State since the client closed its sending side; `None` before.
    half_closed: Option<HalfClosedState>,
    /// Whether closing the connection before the response is complete must be reported as a reset.
    resets_on_close: bool,
}

/// The state of a client that has closed its sending side. The client still waits for its response,
/// or has disconnected. Over a network, these cases look the same until the server sends bytes.
struct HalfClosedState {
    /// Time at which the client is disconnected.
    disconnect_at: Instant,
    /// Timer for the next check of the client.
    check: Pin<Box<Sleep>>,
}

impl HalfClosedState {
    const CHECK_INTERVAL: Duration = Duration::from_millis(500);

    fn starting_now() -> Self {
        HalfClosedState {
            disconnect_at: Instant::now() + limits::HTTP_HALF_CLOSED,
            check: Box::pin(sleep(Self::CHECK_INTERVAL)),
        }
    }
}

impl ClientSocket {
    /// Returns whether the client has closed both directions of the connection.
    fn is_closed_by_client(&self) -> bool {
        let socket = match self {
            ClientSocket::Network(stream) => stream.as_fd(),
            ClientSocket::Unix(stream) => stream.as_fd(),
        };
        let mut looked = [PollFd::new(socket, PollFlags::empty())];
        let gone = PollFlags::POLLHUP | PollFlags::POLLERR;
        let is_told = poll(&mut looked, PollTimeout::ZERO).is_ok_and(|count| count > 0);
        is_told
            && looked
                .iter()
                .any(|socket| socket.revents().is_some_and(|own| own.intersects(gone)))
    }
}

impl ClientStream {
    pub(super) fn new(stream: ClientSocket, peer: Arc<Peer>) -> Self {
        ClientStream {
            stream,
            peer,
            stall_timer: None,
            half_closed: None,
            resets_on_close: false,
        }
    }

    /// Returns `Ready` when a client that has closed its sending side no longer waits for a
    /// response.
    fn poll_half_closed(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let is_taking = self.stall_timer.is_some();
        let is_waiting = self.peer.is_response_pending() || is_taking;
        let ended = self
            .half_closed
            .get_or_insert_with(HalfClosedState::starting_now);
        loop {
            let is_late = !is_taking && ended.disconnect_at <= Instant::now();
            if !is_waiting || is_late || self.stream.is_closed_by_client() {
                return Poll::Ready(Ok(()));
            }
            ready!(ended.check.as_mut().poll(context));
            ended.check = Box::pin(sleep(HalfClosedState::CHECK_INTERVAL));
        }
    }

    /// Makes the operating system reset the connection if it is closed early. This is only done if
    /// the end of the connection marks the end of a response, so that the client can detect an
    /// incomplete response.
    fn reset_on_early_close(&mut self) -> io::Result<()> {
        if let ClientSocket::Network(stream) = &self.stream
            && self.peer.is_close_delimited()
            && !self.resets_on_close
        {
            set_socket_linger(stream, Some(Duration::ZERO))?;
            self.resets_on_close = true;
        }
        Ok(())
    }

    /// Returns the result `written` of a write. While the write is pending, measures the time and
    /// disconnects a client that is too slow.
    fn check_stall<T>(
        &mut self,
        written: Poll<io::Result<T>>,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.stall_timer = None;
            if let Some(ended) = &mut self.half_closed {
                ended.disconnect_at = Instant::now() + limits::HTTP_HALF_CLOSED;
            }
            return written;
        }
        let begin = || Box::pin(sleep(limits::HTTP_IDLE));
        let stalled = self.stall_timer.get_or_insert_with(begin);
        ready!(stalled.as_mut().poll(context));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

macro_rules! on_stream {
    ($wire:expr, $stream:ident => $call:expr) => {
        match &mut $wire.stream {
            ClientSocket::Network($stream) => {
                let $stream = Pin::new($stream);
                $call
            }
            ClientSocket::Unix($stream) => {
                let $stream = Pin::new($stream);
                $call
            }
        }
    };
}

impl Read for ClientStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        mut into: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        if self.half_closed.is_some() {
            return self.poll_half_closed(context);
        }
        // Requests are short. Without unsafe code, the cursor only accepts copies.
        let mut memory = [0; 4096];
        let room = into.remaining().min(memory.len());
        let mut buffer = ReadBuf::new(memory.get_mut(..room).unwrap_or_default());
        ready!(on_stream!(self, stream => stream.poll_read(context, &mut buffer)))?;
        if room > 0 && buffer.filled().is_empty() {
            return self.poll_half_closed(context);
        }
        into.put_slice(buffer.filled());
        Poll::Ready(Ok(()))
    }
}

impl Write for ClientStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.reset_on_early_close()?;
        let written = on_stream!(self, stream => stream.poll_write(context, bytes));
        self.check_stall(written, context)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        on_stream!(self, stream => stream.poll_flush(context))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if let ClientSocket::Network(stream) = &self.stream
            && self.resets_on_close
        {
            if !self.peer.is_complete() {
                return Poll::Ready(Ok(()));
            }
            set_socket_linger(stream, None)?;
            self.resets_on_close = false;
        }
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
        self.reset_on_early_close()?;
        let written = on_stream!(self, stream => stream.poll_write_vectored(context, all));
        self.check_stall(written, context)
    }
}
