//! The trees over HTTP/1.1, without a mount: the same requests as those of the kernel, asked by
//! clients of a socket. Only `server` knows hyper and tokio, and nothing here knows a format.
//!
//! A request goes from `server` to `site`, past `access`, and from there to a tree as lookups and an
//! open; the content goes back a piece after another.
//!
//! | file | content |
//! |---|---|
//! | `server` | connections, and the threads that work for them |
//! | `access` | who is let in: token, host, origin |
//! | `target` | the path of a request as names |
//! | `site` | the answer to a request |
//! | `conditions`, `ranges`, `multipart`, `media`, `gzip` | the parts of an answer; RFC 9110 |
//! | `preferences`, `chance` | what a client would rather have; words that nobody can guess |
//! | `trees` | one source, or several; places in them |
//! | `content`, `listing`, `search` | the bytes of files, directories as texts, what is found in them |
//! | `fault` | refusals |

mod access;
pub mod chance;
mod conditions;
mod content;
mod fault;
mod gzip;
mod listing;
mod media;
mod multipart;
mod preferences;
mod ranges;
mod search;
mod server;
mod site;
mod target;
mod trees;

pub use access::{Access, Token, is_usual_loopback};
pub use server::{Listener, Server};
pub use trees::Trees;
