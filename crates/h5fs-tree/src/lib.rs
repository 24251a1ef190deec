//! The mounted tree. [`Filesystem`] handles requests without a mount. Only the files of `fuse`
//! know the kernel's protocol, and only the files of `http` know HTTP.
//!
//! # Layers
//!
//! A request passes through these modules, from the top:
//!
//! | module or file | content |
//! |---|---|
//! | `fuse`, `http` | protocol of the kernel and of HTTP clients: decode, call, reply |
//! | `workers` | the scheduling of requests |
//! | `served_tree` | what is mounted: one file, or a directory of files |
//! | `archive` | a directory of files; each data file in it is a `Filesystem` |
//! | `document`, `path_resolution` | NDL documents of objects; paths, for commands that do not mount |
//! | `filesystem` | the requests about one file |
//! | `node_table` | for each type of inode, the node that implements requests about it |
//! | `views` | `.h5fs` and its trees of views: CSV files, pictures, Zarr stores … |
//! | `nodes` | the nodes of the file's own tree; methods common to all nodes |
//! | `names` | links as names, and the targets of links |
//! | `data_files` | the open source and the targets of its external links, and how they change |
//! | `requests` | the trait with the kernel's requests, for one file and for a directory of files |
//! | `state` | inode numbers, handles, listings, counts, errors |
//! | `stat`, `options`, `name`, `errno`, `metrics` | attributes, options, escaped names, error numbers, metrics |
//!
//! # Embedding
//!
//! A program reads the tree of a file without a mount:
//!
//! ```no_run
//! use h5fs_tree::{Filesystem, Options, Requests};
//!
//! # fn main() -> h5fs_reader::error::Result<()> {
//! let tree = Filesystem::open("run.h5".as_ref(), &Options::default())?;
//! let entry = tree.resolve(b"/run/temp")?;
//! let file = tree.open_file(entry.ino)?.handle;
//! let bytes = tree.read(file, 0, 4096)?;
//! println!("{} of {} bytes", bytes.len(), entry.attributes.size);
//! tree.release(file);
//! # Ok(())
//! # }
//! ```

#![forbid(unsafe_code)]

pub mod errno;
pub mod fuse;
pub mod http;
pub mod limits;
pub mod metrics;
pub mod name;

#[cfg(test)]
mod fake;
#[cfg(test)]
mod tests;

mod archive;
mod data_files;
mod document;
mod filesystem;
mod mount_process;
mod names;
mod node_table;
mod nodes;
mod options;
mod path_resolution;
mod requests;
mod served_tree;
mod stat;
mod state;
mod views;
mod workers;

pub use archive::Archive;
pub use data_files::unread_source::UnreadSource;
pub use filesystem::Filesystem;
/// Prevents the mount from accessing itself.
pub use h5fs_reader::source::mounts::mount_guard::MountGuard;
/// Determines which other files the mounted file may reference.
pub use h5fs_reader::source::neighbours::policy::OtherFilesPolicy as External;
pub use mount_process::MountProcess;
pub use nodes::node::Defect;
pub use options::Options;
pub use requests::{
    AttributesCallback, DataFormat, EntryCallback, FollowedLinks, Ino, ListingDetail, ObjectAnswer,
    ObjectQuery, ObjectQuestion, Requests, SeekKind, Version,
};
pub use served_tree::ServedTree;
pub use stat::{DirEntry, FileKind, LookupEntry, SourceAttributes, Stat};
pub use state::errors::timestamp_of;
pub use state::handle::{Caching, Handle, OpenedHandle};
pub use state::traffic::{RequestCounters, RequestType};
/// Describes the content of `.h5fs` for users.
pub use views::guide::{GUIDE, GuideRow};
