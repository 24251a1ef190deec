//! Accepts connections and serves HTTP. Only this file and its submodules use hyper and tokio.
//!
//! One thread serves all connections and never reads from a source. [`Workers`] handle every
//! request to a tree, as for the kernel's requests. A client that reads slowly occupies no thread,
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
use h5fs_view::documents::html::script;
use http::header::{CONNECTION, HeaderValue};
use http::{Request, Response, StatusCode, Version};
use hyper::body::{Body, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use tokio::net::{TcpListener, UnixListener};
use tokio::runtime::Runtime;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::http::access::AccessRules;
use crate::http::fault::RequestFault;
use crate::http::gzip::{self, TextCompressor};
use crate::http::server::client_stream::{ClientSocket, ClientStream};
use crate::http::server::clock::TokioTimer;
use crate::http::server::dispatcher::RequestDispatcher;
use crate::http::server::peer::{Peer, PendingResponse};
use crate::http::server::response_body::ResponseBody;
use crate::http::server::unauthorized::UnauthorizedClients;
use crate::http::site::{EarlyResponse, Site, fault_response};
use crate::http::trees::ServedTrees;
use crate::limits;
use crate::workers::RequestObject;

mod client_stream;
mod clock;
mod dispatcher;
mod peer;
mod response_body;
mod unauthorized;

/// A socket that accepts connections.
#[derive(Debug)]
pub enum Listener {
    /// A TCP socket.
    Network(std::net::TcpListener),
    /// A Unix domain socket.
    Unix(std::os::unix::net::UnixListener),
}

/// A server that does not accept connections before [`serve`](Self::serve) is called. No thread is
/// running, so the process may drop its privileges, including the right to open sockets.
pub struct Server {
    runtime: Runtime,
    listener: AsyncListener,
}

enum AsyncListener {
    Network(TcpListener),
    Unix(UnixListener),
}

impl Server {
    /// Creates a server for the connections that `listener` accepts.
    ///
    /// # Errors
    /// Fails with the error of the operating system.
    pub fn new(listener: Listener) -> Result<Self> {
        let made = || -> io::Result<Self> {
            let mut runtime = tokio::runtime::Builder::new_current_thread();
            let runtime = runtime.enable_io().enable_time().build()?;
            let entered = runtime.enter();
            let listener = match listener {
                Listener::Network(listener) => {
                    listener.set_nonblocking(true)?;
                    AsyncListener::Network(TcpListener::from_std(listener)?)
                }
                Listener::Unix(listener) => {
                    listener.set_nonblocking(true)?;
                    AsyncListener::Unix(UnixListener::from_std(listener)?)
                }
            };
            drop(entered);
            Ok(Server { runtime, listener })
        };
        made().map_err(|error| Error::from_io(&error, "listening"))
    }

    /// Serves `trees` until the process ends. At most `threads` requests are handled concurrently.
    pub fn serve(self, trees: ServedTrees, access: AccessRules, threads: usize) -> ! {
        let site = Site {
            trees: Arc::new(trees),
            access,
            compressor: TextCompressor::default(),
            script: gzip::compress_shared(script::SCRIPT.as_bytes()).map(Into::into),
            seed: RandomState::new().build_hasher().finish(),
        };
        let shared = Arc::new(ServerContext {
            site,
            clients: Arc::default(),
            dispatcher: Arc::new(RequestDispatcher::new(threads)),
        });
        self.runtime.block_on(accept_all(self.listener, shared))
    }
}

/// State that all connections share.
struct ServerContext {
    site: Site,
    clients: Arc<UnauthorizedClients>,
    dispatcher: Arc<RequestDispatcher>,
}

/// Accepts and serves connections, within the limit of connections.
async fn accept_all(listener: AsyncListener, shared: Arc<ServerContext>) -> ! {
    /// Pause after the operating system could not accept a connection.
    const PAUSE: Duration = Duration::from_millis(100);
    let places = Arc::new(Semaphore::new(limits::HTTP_CONNECTIONS));
    loop {
        let taken = match &listener {
            AsyncListener::Network(listener) => {
                let taken = listener.accept().await;
                taken.map(|(stream, _)| {
                    let _ = stream.set_nodelay(true);
                    ClientSocket::Network(stream)
                })
            }
            AsyncListener::Unix(listener) => {
                let taken = listener.accept().await;
                taken.map(|(stream, _)| ClientSocket::Unix(stream))
            }
        };
        let Ok(stream) = taken else {
            tokio::time::sleep(PAUSE).await;
            continue;
        };
        if let Some(place) = wait_for_slot(&places, &shared.clients).await {
            drop(tokio::spawn(serve_connection(
                stream,
                Arc::clone(&shared),
                place,
            )));
        }
    }
}

/// Waits for one of the limited connection slots. If all are taken, disconnects the oldest client
/// without access, if there is one. Meanwhile, new connections wait in the operating system's
/// queue. Returns `None` only if the semaphore `places` is closed.
async fn wait_for_slot(
    places: &Arc<Semaphore>,
    clients: &UnauthorizedClients,
) -> Option<OwnedSemaphorePermit> {
    if places.available_permits() == 0 {
        clients.disconnect_oldest();
    }
    Arc::clone(places).acquire_owned().await.ok()
}

/// Serves the requests of one connection, which occupies the slot `place`.
async fn serve_connection(
    stream: ClientSocket,
    shared: Arc<ServerContext>,
    place: OwnedSemaphorePermit,
) {
    let (client, mut sent_away) = shared.clients.register(limits::HTTP_ENTRY);
    let peer = Arc::new(Peer::new(client));
    let answer = service_fn(|request| {
        let shared = Arc::clone(&shared);
        // The response counts as started now, not when the future is first polled.
        let answering = Peer::begin_response(&peer);
        async move { Ok::<_, Infallible>(shared.answer(request, answering).await) }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer)
        .header_read_timeout(limits::HTTP_IDLE)
        .max_buf_size(limits::HTTP_HEAD)
        .max_headers(limits::HTTP_FIELDS)
        .serve_connection(ClientStream::new(stream, Arc::clone(&peer)), answer);
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

impl ServerContext {
    async fn answer(
        self: Arc<Self>,
        request: Request<Incoming>,
        answering: PendingResponse,
    ) -> Response<ResponseBody> {
        let (parts, body) = request.into_parts();
        let has_body = !body.is_end_stream();
        let asked = self.site.admit(&parts, has_body);
        let is_let_in = asked
            .as_ref()
            .map_or_else(|turned| turned.is_admitted, |_| true);
        if is_let_in {
            answering.grant_access();
        }
        let asked = match asked {
            Ok(asked) if asked.may_have_body() => match read_body(body).await {
                Ok(body) => asked
                    .with_body(&body)
                    .map_err(|fault| EarlyResponse::refusal(&fault)),
                Err(fault) => Err(EarlyResponse::refusal(&fault)),
            },
            asked => asked,
        };
        let mut answer = match asked {
            Err(turned) => turned.response,
            Ok(_) if self.dispatcher.is_overloaded() => fault_response(&overload_fault()),
            Ok(asked) => {
                let of = (RequestObject::Description(hash(&asked.path())), None);
                let shared = Arc::clone(&self);
                let answered = self.dispatcher.dispatch(of, asked, move |asked, cancel| {
                    shared.site.respond_with_retry(asked, cancel)
                });
                let answered = answered.await.1;
                answered.unwrap_or_else(|error| fault_response(&RequestFault::from_error(&error)))
            }
        };
        if has_body || !is_let_in {
            // A request body is not read, and a client without access does not keep its connection.
            let close = HeaderValue::from_static("close");
            answer.headers_mut().insert(CONNECTION, close);
        }
        let is_old = parts.version < Version::HTTP_11;
        let questions = Arc::clone(&self.dispatcher);
        answer.map(|content| ResponseBody::new(questions, content, answering, is_old))
    }
}

/// Reads the body of a request, which names properties.
///
/// # Errors
/// 413 for a body of more than [`limits::DAV_BODY`] bytes, 400 for one that breaks off.
async fn read_body(mut body: Incoming) -> std::result::Result<Vec<u8>, RequestFault> {
    let mut bytes = Vec::new();
    while let Some(frame) = poll_fn(|context| Pin::new(&mut body).poll_frame(context)).await {
        let broken = |_| RequestFault::bad_request("the body of the request breaks off");
        if let Ok(part) = frame.map_err(broken)?.into_data() {
            bytes.extend_from_slice(&part);
        }
        if bytes.len() > limits::DAV_BODY {
            let reason = "the body of the request is too long";
            return Err(RequestFault::new(StatusCode::PAYLOAD_TOO_LARGE, reason));
        }
    }
    Ok(bytes)
}

fn hash(path: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    path.hash(&mut hasher);
    hasher.finish()
}

fn overload_fault() -> RequestFault {
    let reason = "too many requests are waiting";
    RequestFault::new(StatusCode::SERVICE_UNAVAILABLE, reason)
}
