//! Sources that another process, the fetcher, reads over a network.
//!
//! This process, the worker, parses files and has no network access. The fetcher has network access
//! and does not parse HDF5 or ASDF. The two exchange [messages](message) over a pair of sockets.
//!
//! The two also share one file in memory, the *stage*, which the fetcher writes and the worker
//! reads. Each object has its own region in the stage: if the region starts at offset `region`,
//! byte `n` of the object is at `region + n`. The stage is sparse and uses memory only for staged
//! bytes. Bytes in the fetcher's disk cache are not copied to the stage; the fetcher sends the
//! [file](segment) instead, open for reading.

pub mod connection;
pub mod directory;
mod failure;
#[cfg(any(test, feature = "testing"))]
pub mod fake;
mod listings;
pub mod message;
pub mod object;
mod page_location;
mod pages;
pub(super) mod prefix;
pub mod segment;
mod segments;
mod staging;
pub mod state;
#[cfg(test)]
mod tests;
