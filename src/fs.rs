//! The mounted tree. [`Filesystem`] answers requests without a mount; only the files of
//! `fs/fuse` know the kernel's side, and only those of `fs/http` that of clients by HTTP.
//!
//! A request passes these rooms, from the top:
//!
//! | room or file | content |
//! |---|---|
//! | `fuse`, `http` | the kernel's side, and that of clients by HTTP: unpack, call, reply |
//! | `workers` | the order in which requests are answered |
//! | `requests` | the requests of the kernel, which a file and a directory of files answer |
//! | `forest` | the data files: the source, the members of a directory, those that links lead to |
//! | `filesystem`, `document` | each request about one file as a method; its document |
//! | `views` | `.h5fs` and its trees of views: the nodes of CSV files, pictures, Zarr stores … |
//! | `nodes` | the table of nodes; those of the file's own tree; the methods that all nodes have |
//! | `names` | links as names, paths, and where links lead |
//! | `state` | what is kept of a file: inode numbers, handles, listings, counts, what is damaged |
//! | `stat`, `options`, `name`, `errno`, `metrics` | answers, escaped names, error numbers, figures |

pub mod errno;
pub mod fuse;
pub mod http;
pub mod metrics;
pub mod name;

#[cfg(test)]
mod fake;
#[cfg(test)]
mod tests;

mod document;
mod filesystem;
mod forest;
mod names;
mod nodes;
mod options;
mod requests;
mod stat;
mod state;
mod views;
mod workers;

/// Keeps the mount from looking into itself.
pub use crate::source::mounts::mount_guard::MountGuard;
/// Says to which other files the mounted one may lead.
pub use crate::source::neighbours::policy::Policy as External;
pub use filesystem::Filesystem;
pub use forest::archive::Archive;
pub use forest::served::Served;
pub use forest::unread::Unread;
pub use nodes::node::Finding;
pub use options::Options;
pub use requests::{Detail, Ino, Requests, Take, TakeWithAttributes, Version, Whence};
pub use stat::{DirEntry, Entry, Kind, Origin, Stat};
pub(crate) use state::errors::timestamp_of;
pub use state::handle::{Caching, Handle, Opened};
pub use state::resident::Resident;
pub use state::traffic::{Call, Traffic};
/// Tells people what stands beneath `.h5fs`.
pub use views::guide::{GUIDE, GuideRow};
