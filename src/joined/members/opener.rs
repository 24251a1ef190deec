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

    /// Opens a member, which must be in the state in which it was opened first.
    ///
    /// # Errors
    /// Fails if it is no file of a known format, or cannot be opened; `Stale` if it has changed.
    fn open(&self, number: usize) -> Result<Opened>;

    /// Opens the file that an open one calls `name` in a link; `None` where there is none.
    ///
    /// # Errors
    /// Fails if it may not be opened, or is no file of a known format.
    fn open_linked(&self, from: &Opened, name: &[u8]) -> Result<Option<Opened>>;

    /// What the state of a member is known by, so that what was read of it need not be read again;
    /// `None` where a change would not show.
    fn key(&self, number: usize) -> Option<Key>;

    /// Whether opening one takes requests to a server.
    fn is_far(&self) -> bool;

    /// Whether the block that elements are in is compared with its checksum before they are read.
    fn verifies(&self) -> bool;

    /// Is told that all members are to be scanned.
    fn begin(&self);

    /// Is told that one more has been, or that what was read of it is known from before.
    ///
    /// # Errors
    /// [`Error::unwanted`] where nobody waits for it any more.
    fn scanned(&self, was_known: bool) -> Result<()>;
}

/// A member that is open.
pub(crate) struct Opened {
    pub(crate) container: Arc<dyn Container>,
    /// The other files that it leads to.
    pub(crate) neighbours: Arc<Neighbours>,
}

/// Whether a member is left out for an error: it will be the same the next time, or the member is
/// another one by now, which the next listing of the directory tells.
pub(super) fn is_left_out(error: &Error) -> bool {
    const DENIED: [i32; 2] = [Errno::EPERM as i32, Errno::EACCES as i32];
    match error {
        Error::Io { cause, .. } => match cause {
            Cause::System(number) => DENIED.contains(number),
            Cause::Forbidden | Cause::Stale | Cause::Missing => true,
            Cause::Failed | Cause::OutOfMemory | Cause::Unwanted => false,
        },
        error => !error.is_passing(),
    }
}
