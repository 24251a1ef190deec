//! `h5fs serve`: the trees over HTTP, without a mount.
//!
//! What the user calls is the *server's keeper*: it opens the socket that listens, makes the token,
//! prints the URL, waits for signals and takes a Unix socket away at the end. It parses nothing. The
//! *worker* gets the socket and the token by its leash, never on a command line; it opens the
//! sources, enters its cage, and answers. A source by URL has a fetcher beside it, as in a mount.

pub(in crate::cli) mod arguments;
pub(in crate::cli) mod listen;
pub(in crate::cli) mod server;
pub(in crate::cli) mod worker;
