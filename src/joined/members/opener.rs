//! How members are opened.

use std::sync::Arc;

use nix::errno::Errno;

use crate::error::{Cause, Error, Result};
use crate::joined::paths::Path;
use crate::model::Container;
use crate::source::neighbours::Neighbours;

/// What a member in one state is known by.
pub(crate) type Key = [u8; 32];

/// Opens members.
pub(crate) trait OpenMember: Send + Sync {
    /// The paths of the members from the directory, in their order.
    fn names(&self) -> &[Path];

    /// Opens a member to scan it.
    ///
    /// # Errors
    /// Fails if it is no file of a known format, or cannot be opened; `Stale` if it has changed since
    /// the members were listed.
    fn open(&self, number: usize) -> Result<Opened>;

    /// Opens a member that was scanned, by this or by an earlier process.
    ///
    /// # Errors
    /// Fails as [`open`](Self::open) does; `Stale` if it is not in the state in which it was scanned.
    fn open_again(&self, number: usize) -> Result<Opened>;

    /// Opens the file that an open one calls `name` in a link; `None` where there is none.
    ///
    /// # Errors
    /// Fails if it may not be opened, or is no file of a known format.
    fn open_linked(&self, from: &Opened, name: &[u8]) -> Result<Option<Opened>>;

    /// What the state of a member is known by, so that what was read of it need not be read again;
    /// `None` where a change would not show.
    fn key(&self, number: usize) -> Option<Key>;

    /// Bytes of memory of what the members are opened by, about.
    fn weight(&self) -> u64;

    /// Whether opening one takes requests to a server.
    fn is_far(&self) -> bool;

    /// Whether a member that cannot be read now is left out.
    fn is_partial(&self) -> bool;

    /// Whether the block that elements are in is compared with its checksum before they are read.
    fn verifies(&self) -> bool;

    /// Is told that all members are to be scanned.
    fn begin(&self);

    /// Is told that one more has been, or that what was read of it is known from before.
    fn scanned(&self, was_known: bool);
}

/// A member that is open.
pub(crate) struct Opened {
    pub(crate) container: Arc<dyn Container>,
    /// The other files that it leads to.
    pub(crate) neighbours: Arc<Neighbours>,
}

/// Whether a member is left out for an error: it will be the same the next time, or the member is
/// another one by now, which the next listing of the directory tells. What a server refuses, it may
/// give to the next login: such a member is left out only if the user asks for a part.
pub(super) fn is_left_out(error: &Error, opener: &dyn OpenMember) -> bool {
    const DENIED: [i32; 2] = [Errno::EPERM as i32, Errno::EACCES as i32];
    match error {
        Error::Io { cause, .. } => match cause {
            Cause::Forbidden | Cause::Stale | Cause::Missing => true,
            Cause::OutOfMemory | Cause::Unwanted => false,
            Cause::System(number) if DENIED.contains(number) && !opener.is_far() => true,
            Cause::System(_) | Cause::Failed => opener.is_partial(),
        },
        error => !error.is_passing(),
    }
}
