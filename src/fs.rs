//! The mounted tree. [`Filesystem`] answers requests without a mount; only the files of
//! `fs/fuse` know the kernel's side.
//!
//! A request passes these files, each of which imports only from those below it:
//!
//! | file | content |
//! |---|---|
//! | `fuse`, `workers` | unpack, call, reply; the order in which requests are answered |
//! | `served`, `archive` | one file, or a directory of files |
//! | `filesystem`, `walk`, `document`, `unread` | each request as a method; paths; documents |
//! | `nodes` | the table: the node that answers for each type of inode |
//! | `views` | the directory `.h5fs` and the table of what stands in it |
//! | `source_tree`, `selection`, `other_nodes` | the nodes of objects, links, parts of arrays |
//! | `view_nodes`, `attribute_file`, `reference_link`, `frame` | the nodes of the trees of views |
//! | `store`, `store_object`, `store_chunks` | the nodes of a Zarr store within the directory of an object |
//! | `blocks`, `tree_text`, `status` | the single nodes in `.h5fs` |
//! | `node`, `object`, `xattr` | the methods of every node: stat, open, list, lookup; attributes |
//! | `view_group`, `follow`, `lacks` | directories of views; where links lead; what is missing |
//! | `mount`, `opening`, `faults`, `errors` | the mounted file in its present state; damage met |
//! | `trees` | the table of the trees of views |
//! | `namespace`, `other_files`, `handle` | links as names; other files; what is open |
//! | `file_state`, `indexes`, `counts` | a file in one of its states; paths of objects; lengths |
//! | `pins` | open documents of files that grow |
//! | `watch` | changes of files |
//! | `requests` | the requests of the kernel, which a file and a directory of files answer |
//! | `listing`, `inodes`, `inode` | places in a listing; inode numbers, and what they stand for |
//! | `stat`, `options`, `name`, `symlink`, `errno` | answers, names, texts of links, error numbers |

pub mod errno;
pub mod fuse;
pub mod name;

#[cfg(test)]
mod fake;
#[cfg(test)]
mod tests;

mod archive;
mod attribute_file;
mod blocks;
mod counts;
mod crawl;
mod document;
mod errors;
mod faults;
mod file_state;
mod filesystem;
mod follow;
mod frame;
mod handle;
mod indexed;
mod indexes;
mod inode;
mod inodes;
mod lacks;
mod listing;
mod mount;
mod namespace;
mod node;
mod nodes;
mod object;
mod opening;
mod options;
mod other_files;
mod other_nodes;
mod pins;
mod reference_link;
mod requests;
mod selection;
mod served;
mod site;
mod source_tree;
mod stat;
mod status;
mod store;
mod store_chunks;
mod store_object;
mod symlink;
mod tree_text;
mod trees;
mod unread;
mod view_group;
mod view_nodes;
mod views;
mod walk;
mod watch;
mod workers;
mod xattr;

/// Keeps the mount from looking into itself.
pub use crate::source::mount_guard::MountGuard;
/// Says to which other files the mounted one may lead.
pub use crate::source::policy::Policy as External;
pub use archive::Archive;
pub use filesystem::Filesystem;
pub use handle::{Caching, Handle, Opened};
pub use node::Finding;
pub use options::Options;
pub use requests::{Detail, Ino, Requests, Take, TakeWithAttributes, Whence};
pub use served::Served;
pub use stat::{DirEntry, Entry, Kind, Origin, Stat};
pub use unread::Unread;
