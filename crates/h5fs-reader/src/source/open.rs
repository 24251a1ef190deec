//! Open sources: local files, and objects in a store. Callers need not distinguish the two.

use std::fmt;
use std::io;
use std::sync::Arc;

use nix::errno::Errno;

use crate::error::Result;
use crate::memory::cancel::CancelToken;
use crate::source::Source;
use crate::source::attributes::FileAttributes;
use crate::source::identity::Identity;
use crate::source::local::acl::Acl;
use crate::source::local::audience::Audience;

/// An open file or object, in the state in which it was opened.
pub trait OpenSource: Source {
    /// Returns the state in which the source was opened. The state is watched until it is dropped.
    fn opened_state(&self) -> SharedState;

    /// Returns whether the source has changed since it was opened, as far as can be determined.
    fn is_changed(&self) -> bool;

    /// Waits until [`is_changed`](Self::is_changed) is up to date. Sources that check for changes
    /// in the background override this method.
    ///
    /// # Errors
    /// [`Error::cancelled`](crate::error::Error::cancelled) if `cancel` ends the request first.
    fn await_change_check(&self, _cancel: &CancelToken) -> Result<()> {
        Ok(())
    }

    /// Returns the current attributes.
    ///
    /// # Errors
    /// `Io` with the system's error.
    fn attributes(&self) -> Result<FileAttributes>;

    /// Returns the users who may read the source.
    ///
    /// # Errors
    /// `Io` with the system's error.
    fn audience(&self) -> Result<Audience> {
        Ok(Audience::new(self.attributes()?, self.acl()))
    }

    /// Returns the access control list, if the source has one.
    fn acl(&self) -> Option<Acl> {
        None
    }

    /// Returns whether a writer has locked the source.
    ///
    /// # Errors
    /// Fails with the system's error.
    fn write_lock(&self) -> io::Result<WriteLock> {
        Ok(WriteLock::Free)
    }

    /// Returns the identity of the state in which the source was opened.
    fn opened_identity(&self) -> Identity {
        self.opened_state().identity().clone()
    }
}

/// An open source with shared ownership.
pub type SharedOpenSource = Arc<dyn OpenSource>;

/// The state in which a source was opened. The source itself may be closed.
pub trait OpenedState: Send + Sync + fmt::Debug {
    /// Returns the identity of the state.
    fn identity(&self) -> &Identity;

    /// Returns whether every write that was in progress when the source was opened will be noticed
    /// when it ends, or no write was in progress.
    fn has_no_pending_write(&self) -> bool;

    /// Returns whether the source has left this state, or the state may have been half written
    /// although the source's times are unchanged.
    fn has_ended(&self) -> bool;

    /// Returns whether a writer may append to the source while others read.
    fn may_grow(&self) -> bool {
        false
    }
}

/// The state in which a source was opened, with shared ownership.
pub type SharedState = Arc<dyn OpenedState>;

/// The state of the lock that a writer holds on a file; flock(2).
#[derive(Debug)]
pub enum WriteLock {
    /// No writer holds the lock.
    Free,
    /// A writer holds the lock.
    Held,
    /// The filesystem does not support locks; contains its error.
    Unsupported(io::Error),
}

impl WriteLock {
    /// Converts the error of a refused shared lock to the state of the writer's lock.
    pub(super) fn from_lock_error(errno: Errno) -> io::Result<Self> {
        match errno {
            Errno::EWOULDBLOCK => Ok(WriteLock::Held),
            Errno::ENOLCK | Errno::ENOSYS | Errno::EOPNOTSUPP => {
                Ok(WriteLock::Unsupported(errno.into()))
            }
            _ => Err(errno.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_lock_support_differs_from_failure() {
        for errno in [Errno::ENOLCK, Errno::ENOSYS, Errno::EOPNOTSUPP] {
            let lock = WriteLock::from_lock_error(errno).unwrap();
            assert!(matches!(lock, WriteLock::Unsupported(_)), "{errno}");
        }
        let taken = WriteLock::from_lock_error(Errno::EWOULDBLOCK).unwrap();
        assert!(matches!(taken, WriteLock::Held));
        WriteLock::from_lock_error(Errno::EIO).unwrap_err();
    }
}
