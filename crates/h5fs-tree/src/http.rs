//! The trees over HTTP/1.1, without a mount. The server uses the trees by the same requests as the
//! kernel. Only `server` uses hyper and tokio, and no file here depends on a data format.
//!
//! A request goes from `server` through `access` to `site`, and from there to a tree as lookups and
//! an open. The content is generated piece by piece while it is sent.
//!
//! | file | content |
//! |---|---|
//! | `server` | connections, and the threads that handle their requests |
//! | `access` | access control: token, host, origin |
//! | `target` | the path of a request as names |
//! | `site` | the response to a request |
//! | `conditions`, `ranges`, `multipart`, `media`, `gzip` | the parts of a response; RFC 9110 |
//! | `preferences`, `random` | preferences of clients; random words that cannot be guessed |
//! | `trees` | one source or several, and paths in them |
//! | `content`, `listing`, `search` | the bytes of files, directories as texts, search results |
//! | `dav` | WebDAV: the properties of files as XML |
//! | `h5grove` | the routes of h5grove: the parameters of requests, the content of answers |
//! | `fault` | refusals |

mod access;
mod conditions;
mod content;
mod dav;
mod fault;
mod gzip;
mod h5grove;
mod listing;
mod media;
mod multipart;
mod preferences;
pub mod random;
mod ranges;
mod search;
mod server;
mod site;
mod target;
mod trees;

pub use access::{AccessRules, Token, is_usual_loopback};
pub use server::{Listener, Server};
pub use trees::ServedTrees;
