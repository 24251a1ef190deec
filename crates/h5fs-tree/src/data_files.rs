//! The data files of a mount: the source, the members of a directory of files, and the targets of
//! external links. This module tracks which files are open and how they change.
//!
//! | file | content |
//! |---|---|
//! | `served_tree` | what is mounted: one file, or a directory of files |
//! | `archive` | a directory of files; each data file in it is a `Filesystem` |
//! | `mount` | one file in its current state, and the transition to the next |
//! | `file_state` | a file in one of its states, and results derived from it |
//! | `other_files` | the targets of external links |
//! | `unread_source`, `opening`, `watch` | opening a file, and detecting changes |
//! | `indexes`, `crawl` | the paths of objects; read-ahead of metadata in remote files |

pub(super) mod archive;
pub(super) mod crawl;
pub(super) mod file_state;
pub(super) mod indexes;
pub(super) mod missing_source;
pub(super) mod mount;
pub(super) mod opening;
pub(super) mod other_files;
pub(super) mod served_tree;
pub(super) mod unread_source;
pub(super) mod watch;
