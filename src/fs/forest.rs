//! The data files of a mount: the source, the members of a directory of files, and those that
//! external links lead to; which are open, and what they are when they have changed.
//!
//! | file | content |
//! |---|---|
//! | `served` | what is mounted: one file, or a directory of files |
//! | `archive` | a directory of files; each data file in it is a `Filesystem` |
//! | `mount` | one file in its present state, and its next one |
//! | `file_state` | a file in one of its states, and what was worked out from it |
//! | `other_files` | the files that links lead to |
//! | `unread`, `opening`, `watch` | how a file is opened, and whether it has changed |
//! | `indexes`, `crawl` | the paths of objects; a far file is looked into ahead of its readers |

pub(super) mod archive;
pub(super) mod crawl;
pub(super) mod file_state;
pub(super) mod gone;
pub(super) mod indexes;
pub(super) mod mount;
pub(super) mod opening;
pub(super) mod other_files;
pub(super) mod served;
pub(super) mod unread;
pub(super) mod watch;
