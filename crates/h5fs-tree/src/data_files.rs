//! One data file of a mount and the targets of its external links: which files are open, and how
//! they change.
//!
//! | file | content |
//! |---|---|
//! | `mount` | one file in its current state, and the transition to the next |
//! | `file_state` | a file in one of its states, and results derived from it |
//! | `open_inode`, `pins` | open files and directories; the states to which open files are bound |
//! | `other_files` | the targets of external links |
//! | `unread_source`, `opening`, `watch` | opening a file, and detecting changes |
//! | `missing_source` | what is shown while the source cannot be opened |
//! | `indexes`, `crawl` | the paths of objects; read-ahead of metadata in remote files |

pub(super) mod crawl;
pub(super) mod file_state;
pub(super) mod indexes;
pub(super) mod missing_source;
pub(super) mod mount;
pub(super) mod open_inode;
pub(super) mod opening;
pub(super) mod other_files;
pub(super) mod pins;
pub(super) mod unread_source;
pub(super) mod watch;
