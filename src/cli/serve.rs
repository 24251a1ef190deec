//! `h5fs serve`: serves the trees over HTTP, without a mount.
//!
//! The process that the user calls opens the listening socket, creates the token, and prints the
//! URL. As the *keeper* of a worker it waits for signals. At the end it removes the file of a Unix
//! socket. It parses no data file.
//!
//! The *worker* receives the socket and the token over its supervision socket, never on a command
//! line. The worker opens the sources, enters its sandbox, and answers requests. A source by URL
//! also has a fetcher, as in a mount.

pub(in crate::cli) mod server;
pub(in crate::cli) mod worker;
