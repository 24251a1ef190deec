//! Fetches ranges of remote objects for a process that parses them.
//!
//! A fetcher is the only process of h5fs with network access and credentials. It downloads objects,
//! or parts of them, for the parsing process. It parses HTTP, TLS and the listings of object
//! stores, but no data files. Requests arrive as packets of
//! [`h5fs_reader::source::remote::message`] on a socket. The fetched bytes go to the stage, a file
//! in memory that only the fetcher writes. The parsing process receives files of the disk cache as
//! read-only descriptors.
//!
//! A program calls [`Fetcher::new`], restricts itself to the files and ports that the fetcher
//! needs, and calls [`Fetcher::serve`].
//!
//! # Layers
//!
//! A file imports only from layers below its own. `tests/integration/layering.rs` checks this.
//!
//! | layer | modules | content |
//! |---|---|---|
//! | 9 | [`fetcher`](Fetcher) | one source: its server, its credentials, what its sandbox must permit |
//! | 8 | `service` | pending requests, their replies, and the stage |
//! | 7 | `cached`, `names` | objects with pages in the disk cache; names with a prefix |
//! | 6 | `transfer` | one range: retries, resumption, and comparison of every response |
//! | 5 | `exchange` | one request: signature, redirects, renewed credentials |
//! | 4 | `login` | tokens, netrc and cookies for HTTP servers |
//! | 3 | `signer`, `address` | credentials of object stores; the URI of an object or of a listing |
//! | 2 | `client` | HTTP, proxies, certificates of a file |
//! | 2 | `disk_cache` | pages of objects in a directory |
//! | 2 | `rate_limits`, `page_budget` | limits on the requests to each host, and on the listings in memory |
//! | 1 | `retries`, `pelican` | the time and the number of attempts; directors and caches of Pelican |
//! | 1 | [`settings`] | the options of a source by URL |
//! | 0 | `hosts`, `links`, `fetch_error` | permitted hosts, `Link` headers, the reason why a fetch failed |
//! | 0 | [`limits`] | the limits of this crate |

#![forbid(unsafe_code)]

mod address;
mod cached;
mod client;
mod disk_cache;
mod exchange;
mod fetch_error;
mod fetcher;
mod hosts;
pub mod limits;
mod links;
mod login;
mod names;
mod page_budget;
mod pelican;
mod rate_limits;
mod retries;
mod service;
pub mod settings;
mod signer;
#[cfg(test)]
mod tests;
mod transfer;

pub use disk_cache::DiskCache;
pub use disk_cache::contents::CachedSource;
pub use fetcher::{Fetcher, refuse_all};
pub use settings::{NetrcChoice, RemoteSettings};
pub use signer::files::StartOpener;
