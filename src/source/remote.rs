//! A source that another process, the fetcher, reads over a network.
//!
//! This process parses and has no network; the fetcher has one and parses no HDF5 or ASDF. They
//! speak [messages](message) over a pair of sockets, and share one file in memory, the *stage*,
//! which the fetcher writes and this process reads. Each object has a region of its own in the
//! stage, so that byte `n` of the object stands at `region + n`: the stage is sparse, and takes the
//! memory of what is staged alone. What the fetcher has on disk, it does not copy to the stage: it
//! hands over the [file](segment), open for reading.

pub mod connection;
pub mod directory;
mod failure;
#[cfg(test)]
pub(crate) mod fake;
mod listings;
pub mod message;
pub mod object;
mod pages;
mod place;
pub(super) mod prefix;
pub mod segment;
mod segments;
mod staging;
pub mod state;
#[cfg(test)]
mod tests;
