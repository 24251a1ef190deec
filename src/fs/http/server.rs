//! Connections. Only this file and its submodules know hyper and tokio.
//!
//! One thread serves all connections and never reads from a source. [`Workers`] handle every
//! request to a tree, as they do for the kernel's. A client that reads slowly occupies no thread,
//! and only one small piece of its response is in memory.

use std::collections::hash_map::RandomState;
use std::convert::Infallible;
use std::future::{Future, poll_fn};
use std::hash::{BuildHasher, DefaultHasher, Hash, Hasher};
use std::io;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use h5fs_reader::error::{Error, Result};
use http::header::{CONNECTION, HeaderValue};
use http::{Request, Response, StatusCode, Version};
use hyper::body::{Body, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use tokio::net::{TcpListener, UnixListener};
use tokio::runtime::Runtime;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::fs::http::access::Access;
use crate::fs::http::fault::Fault;
use crate::fs::http::gzip::{self, Packer};
use crate::fs::http::server::asking::Questions;
use crate::fs::http::server::clock::Clock;
use crate::fs::http::server::guests::Guests;
use crate::fs::http::server::peer::{Answering, Peer};
use crate::fs::http::server::sent::Sent;
use crate::fs::http::server::wire::{Stream, Wire};
use crate::fs::http::site::{Site, refused};
use crate::fs::http::trees::Trees;
use crate::fs::workers::Object;
use crate::limits;
use crate::view::texts::html::script;

mod asking;
mod clock;
mod guests;
mod peer;
mod sent;
mod wire;

/// A listening socket.
#[derive(Debug)]
pub enum Listener {
    /// A network socket.
    Network(std::net::TcpListener),
    /// A Unix socket of this machine.
    Unix(std::os::unix::net::UnixListener),
}

/// A server that does not accept connections yet. No thread was started, so the process may drop
/// its privileges now, including the right to open sockets.
pub struct Server {
    runtime: Runtime,
    listener: Listening,
}

enum Listening {
    Network(TcpListener),
    Unix(UnixListener),
}

impl Server {
    /// Creates a server for the clients of this socket.
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

    /// Serves these trees until the process ends. `threads` requests are handled concurrently.
    pub fn serve(self, trees: Trees, access: Access, threads: usize) -> ! {
        let site = Site {
            trees: Arc::new(trees),
            access,
            packer: Packer::default(),
            script: gzip::packed_once(script::TEXT.as_bytes()).map(Into::into),
            seed: RandomState::new().build_hasher().finish(),
        };
        let shared = Arc::new(Shared {
            site,
            guests: Arc::default(),
            questions: Arc::new(Questions::of(threads)),
        });
        self.runtime.block_on(take_all(self.listener, shared))
    }
}

/// State that all connections share.
struct Shared {
    site: Site,
    guests: Arc<Guests>,
    questions: Arc<Questions>,
}

/// Accepts connections, within the limit.
async fn take_all(listener: Listening, shared: Arc<Shared>) -> ! {
    /// Pause when the system cannot accept one more.
    const PAUSE: Duration = Duration::from_millis(100);
    let places = Arc::new(Semaphore::new(limits::HTTP_CONNECTIONS));
    loop {
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
        let Ok(stream) = taken else {
            tokio::time::sleep(PAUSE).await;
            continue;
        };
        if let Some(place) = place(&places, &shared.guests).await {
            drop(tokio::spawn(speak(stream, Arc::clone(&shared), place)));
        }
    }
}

/// Reserves a slot for a connection. Further connections wait in the system's queue, unless a slot
/// is occupied by a client without access.
async fn place(places: &Arc<Semaphore>, guests: &Guests) -> Option<OwnedSemaphorePermit> {
    if places.available_permits() == 0 {
        guests.send_first_away();
    }
    Arc::clone(places).acquire_owned().await.ok()
}

/// Serves the requests of one connection.
async fn speak(stream: Stream, shared: Arc<Shared>, place: OwnedSemaphorePermit) {
    let (guest, mut sent_away) = shared.guests.receive(limits::HTTP_ENTRY);
    let peer = Arc::new(Peer::new(guest));
    let answer = service_fn(|request| {
        let shared = Arc::clone(&shared);
        // The response counts as started now, not when the future is first polled.
        let answering = Peer::answer(&peer);
        async move { Ok::<_, Infallible>(shared.answer(request, answering).await) }
    });
    let connection = http1::Builder::new()
        .timer(Clock)
        .header_read_timeout(limits::HTTP_IDLE)
        .max_buf_size(limits::HTTP_HEAD)
        .max_headers(limits::HTTP_FIELDS)
        .serve_connection(Wire::new(stream, Arc::clone(&peer)), answer);
    let mut connection = pin!(connection);
    let ended = poll_fn(|context| match connection.as_mut().poll(context) {
        Poll::Pending => Pin::new(&mut sent_away).poll(context).map(Ok),
        ended => ended,
    });
    if let Err(error) = ended.await {
        log::debug!("a connection ended: {error}");
    }
    drop(place);
}

impl Shared {
    async fn answer(
        self: Arc<Self>,
        request: Request<Incoming>,
        answering: Answering,
    ) -> Response<Sent> {
        let (parts, body) = request.into_parts();
        let has_body = !body.is_end_stream();
        let asked = self.site.admit(&parts, has_body);
        let is_let_in = asked
            .as_ref()
            .map_or_else(|turned| turned.is_let_in, |_| true);
        if is_let_in {
            answering.let_in();
        }
        let mut answer = match asked {
            Err(turned) => turned.answer,
            Ok(_) if self.questions.are_too_many() => refused(&too_many()),
            Ok(asked) => {
                let of = (Object::Description(hash(&asked.path())), None);
                let shared = Arc::clone(&self);
                let answered = self.questions.ask(of, asked, move |asked, cancel| {
                    shared.site.answer(asked, cancel)
                });
                let answered = answered.await.1;
                answered.unwrap_or_else(|error| refused(&Fault::of(&error)))
            }
        };
        if has_body || !is_let_in {
            // A request body is not read, and a client without access does not keep its connection.
            let close = HeaderValue::from_static("close");
            answer.headers_mut().insert(CONNECTION, close);
        }
        let is_old = parts.version < Version::HTTP_11;
        let questions = Arc::clone(&self.questions);
        answer.map(|content| Sent::new(questions, content, answering, is_old))
    }
}

fn hash(path: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    path.hash(&mut hasher);
    hasher.finish()
}

fn too_many() -> Fault {
    let reason = "too many requests are waiting";
    Fault::new(StatusCode::SERVICE_UNAVAILABLE, reason)
}
