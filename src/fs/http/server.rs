//! Connections: the only file that knows hyper and tokio.
//!
//! One thread waits for all connections, and reads nothing of a source: every question to a tree is
//! answered in the threads of [`Workers`], as those of the kernel are. A client that reads slowly has
//! no thread, and one small piece of its answer in memory.

use std::collections::hash_map::RandomState;
use std::convert::Infallible;
use std::future::Future;
use std::hash::{BuildHasher, DefaultHasher, Hash, Hasher};
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use http::header::{CONNECTION, HeaderValue};
use http::{Request, Response};
use hyper::body::{Body, Frame, Incoming, SizeHint};
use hyper::rt::{Read, ReadBufCursor, Sleep, Timer, Write};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio::runtime::Runtime;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

use crate::array::{Bytes, CancelToken};
use crate::error::{Error, Result};
use crate::fs::http::access::Access;
use crate::fs::http::content::{Content, Pieces};
use crate::fs::http::fault::Fault;
use crate::fs::http::gzip::Packer;
use crate::fs::http::site::{Site, refused};
use crate::fs::http::trees::Trees;
use crate::fs::workers::{Asker, Object, Of, Workers};
use crate::limits;
use crate::memory::cancel::Ticket;

/// A socket that listens.
#[derive(Debug)]
pub enum Listener {
    /// Of the network.
    Network(std::net::TcpListener),
    /// Of this machine.
    Unix(std::os::unix::net::UnixListener),
}

/// A server that takes no connections yet. No thread has been started: the process may give up its
/// rights now, that to open sockets too.
pub struct Server {
    runtime: Runtime,
    listener: Listening,
}

enum Listening {
    Network(TcpListener),
    Unix(UnixListener),
}

impl Server {
    /// A server for the clients of this socket.
    ///
    /// # Errors
    /// Fails with the system's error.
    pub fn new(listener: Listener) -> Result<Self> {
        let made = || -> io::Result<Self> {
            let mut runtime = tokio::runtime::Builder::new_current_thread();
            let runtime = runtime.enable_io().enable_time().build()?;
            let entered = runtime.enter();
            let listener = match listener {
                Listener::Network(listener) => {
                    listener.set_nonblocking(true)?;
                    Listening::Network(TcpListener::from_std(listener)?)
                }
                Listener::Unix(listener) => {
                    listener.set_nonblocking(true)?;
                    Listening::Unix(UnixListener::from_std(listener)?)
                }
            };
            drop(entered);
            Ok(Server { runtime, listener })
        };
        made().map_err(|error| Error::io(&error, "listening"))
    }

    /// Serves these trees as long as the process runs; so many requests are answered at a time.
    pub fn serve(self, trees: Trees, access: Access, threads: usize) -> ! {
        let site = Site {
            trees: Arc::new(trees),
            access,
            packer: Packer::default(),
            seed: RandomState::new().build_hasher().finish(),
        };
        let shared = Arc::new(Shared {
            site,
            workers: Workers::apart(threads),
            large: Arc::new(Semaphore::new(limits::HTTP_LARGE_PIECES)),
        });
        self.runtime.block_on(take_all(self.listener, shared))
    }
}

/// What all connections share.
struct Shared {
    site: Site,
    workers: Workers,
    /// Large pieces of answers that may be in memory.
    large: Arc<Semaphore>,
}

/// Takes connections, as many as there are places.
async fn take_all(listener: Listening, shared: Arc<Shared>) -> ! {
    /// Where the system has no room for one more.
    const PAUSE: Duration = Duration::from_millis(100);
    let places = Arc::new(Semaphore::new(limits::HTTP_CONNECTIONS));
    loop {
        // Those beyond wait in the system's queue.
        let Ok(place) = Arc::clone(&places).acquire_owned().await else {
            continue;
        };
        let taken = match &listener {
            Listening::Network(listener) => {
                let taken = listener.accept().await;
                taken.map(|(stream, _)| {
                    let _ = stream.set_nodelay(true);
                    Stream::Network(stream)
                })
            }
            Listening::Unix(listener) => {
                let taken = listener.accept().await;
                taken.map(|(stream, _)| Stream::Unix(stream))
            }
        };
        match taken {
            Ok(stream) => drop(tokio::spawn(speak(stream, Arc::clone(&shared), place))),
            Err(_) => tokio::time::sleep(PAUSE).await,
        }
    }
}

/// Answers the requests of one connection.
async fn speak(stream: Stream, shared: Arc<Shared>, place: OwnedSemaphorePermit) {
    let answer = service_fn(|request| {
        let shared = Arc::clone(&shared);
        async move { Ok::<_, Infallible>(shared.answer(request).await) }
    });
    let connection = http1::Builder::new()
        .timer(Clock)
        .header_read_timeout(limits::HTTP_IDLE)
        .max_buf_size(limits::HTTP_HEAD)
        .max_headers(limits::HTTP_FIELDS)
        .serve_connection(Wire::new(stream), answer)
        .await;
    if let Err(error) = connection {
        log::debug!("a connection ended: {error}");
    }
    drop(place);
}

impl Shared {
    async fn answer(self: Arc<Self>, request: Request<Incoming>) -> Response<Sent> {
        let (parts, body) = request.into_parts();
        let has_body = !body.is_end_stream();
        let asked = self.site.admit(&parts, has_body);
        let mut answer = match asked {
            Err(answer) => *answer,
            Ok(asked) => {
                let of = (Object::Description(hash(&asked.path())), None);
                let shared = Arc::clone(&self);
                let answered = self.ask(of, asked, move |asked, cancel| {
                    shared.site.answer(asked, cancel)
                });
                let answered = answered.await.1;
                answered.unwrap_or_else(|error| refused(&Fault::of(&error)))
            }
        };
        if has_body {
            // What it sends is not read.
            let close = HeaderValue::from_static("close");
            answer.headers_mut().insert(CONNECTION, close);
        }
        answer.map(|content| Sent::new(self, content))
    }

    /// Has a worker do what has to be done with what is `held`; it is given back, unless that
    /// panicked. Once nobody waits for the outcome, the work ends.
    fn ask<R: Send + 'static, T: Send + 'static>(
        &self,
        of: Of,
        held: R,
        work: impl FnMut(&mut R, &CancelToken) -> Result<T> + Send + 'static,
    ) -> Answered<R, T> {
        let (sender, answered) = oneshot::channel();
        let ticket = Arc::<Ticket>::default();
        let left = Left(Arc::clone(&ticket));
        let asker = Asker {
            unique: 0,
            thread: 0,
        };
        let whole = (CancelToken::default(), ticket);
        self.workers
            .request(("http", of), asker, whole, held, work, move |held, done| {
                // Nobody waits where the connection is gone.
                let _ = sender.send((held, done));
            });
        Box::pin(async move {
            let answered = answered.await;
            drop(left);
            match answered {
                Ok((held, done)) => (Some(held), done),
                Err(_) => (
                    None,
                    Err(Error::io(&io::ErrorKind::Other.into(), "a defect of h5fs")),
                ),
            }
        })
    }
}

/// What was held for a request, and its outcome, once they are there.
type Answered<R, T> = Pin<Box<dyn Future<Output = (Option<R>, Result<T>)> + Send>>;

fn hash(path: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    path.hash(&mut hasher);
    hasher.finish()
}

/// Gives up the work that it waits for, when it is dropped.
struct Left(Arc<Ticket>);

impl Drop for Left {
    fn drop(&mut self) {
        self.0.leave();
    }
}

/// The content of an answer, on its way.
struct Sent {
    shared: Arc<Shared>,
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
    fn new(shared: Arc<Shared>, content: Content) -> Self {
        let state = match content {
            Content::Empty => Sending::Over,
            Content::Whole(bytes) => Sending::Whole(bytes),
            Content::Pieces(pieces) => Sending::Pieces(pieces),
        };
        Sent {
            shared,
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
        let room = Arc::clone(&self.shared.large).try_acquire_owned();
        room.ok().filter(|_| is_fast)
    }

    fn ask(&self, pieces: Box<dyn Pieces>, mut room: Option<OwnedSemaphorePermit>) -> Sending {
        let most = match room {
            Some(_) => limits::HTTP_LARGE_PIECE,
            None => limits::HTTP_PIECE,
        };
        let left = pieces.left();
        let next = self.shared.ask(pieces.of(), pieces, move |pieces, cancel| {
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
    ) -> Poll<Option<std::result::Result<Frame<bytes::Bytes>, Error>>> {
        loop {
            match std::mem::replace(&mut self.state, Sending::Over) {
                Sending::Over => return Poll::Ready(None),
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
                        return Poll::Ready(None);
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

/// The stream of a connection.
enum Stream {
    Network(TcpStream),
    Unix(UnixStream),
}

/// The same for hyper. A client that takes nothing for [`limits::HTTP_IDLE`] is left.
struct Wire {
    stream: Stream,
    stalled: Option<Pin<Box<tokio::time::Sleep>>>,
}

impl Wire {
    fn new(stream: Stream) -> Self {
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

/// The clock by which hyper waits.
#[derive(Debug)]
struct Clock;

impl Timer for Clock {
    fn sleep(&self, duration: Duration) -> Pin<Box<dyn Sleep>> {
        Box::pin(Slept(Box::pin(tokio::time::sleep(duration))))
    }

    fn sleep_until(&self, deadline: Instant) -> Pin<Box<dyn Sleep>> {
        Box::pin(Slept(Box::pin(tokio::time::sleep_until(deadline.into()))))
    }
}

struct Slept(Pin<Box<tokio::time::Sleep>>);

impl Future for Slept {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        self.0.as_mut().poll(context)
    }
}

impl Sleep for Slept {}
