//! A source that is open: a file of this machine, or an object of a store. Nothing above asks which
//! of them it is.

use std::fmt;
use std::io;
use std::sync::Arc;

use nix::errno::Errno;

use crate::error::Result;
use crate::memory::cancel::CancelToken;
use crate::source::Source;
use crate::source::attributes::Attributes;
use crate::source::identity::Identity;
use crate::source::local::acl::Acl;
use crate::source::local::audience::Audience;

/// A file or an object that is open, in the state in which it was opened.
pub trait OpenSource: Source {
    /// The state in which it was opened, which is watched as long as this is kept.
    fn state(&self) -> SharedState;

    /// Whether it is in another state by now, as far as can be told.
    fn is_changed(&self) -> bool;

    /// Waits until [`is_changed`](Self::is_changed) tells of a short while ago, where a look takes long
    /// and is done in the background.
    ///
    /// # Errors
    /// [`Error::unwanted`](crate::error::Error::unwanted) if `cancel` ends the request before.
    fn refresh(&self, _cancel: &CancelToken) -> Result<()> {
        Ok(())
    }

    /// Its attributes as they are now.
    ///
    /// # Errors
    /// `Io` with the system's error.
    fn attributes(&self) -> Result<Attributes>;

    /// The users that may read it.
    ///
    /// # Errors
    /// `Io` with the system's error.
    fn audience(&self) -> Result<Audience> {
        Ok(Audience::of(self.attributes()?, self.acl()))
    }

    /// Its access control list, if it has one.
    fn acl(&self) -> Option<Acl> {
        None
    }

    /// Whether a writer has it locked.
    ///
    /// # Errors
    /// Fails with the system's error.
    fn write_lock(&self) -> io::Result<WriteLock> {
        Ok(WriteLock::Free)
    }

    /// What tells the state in which it was opened from others.
    fn opened(&self) -> Identity {
        self.state().identity().clone()
    }
}

/// An open source that many share.
pub type SharedOpen = Arc<dyn OpenSource>;

/// The state in which a source was opened; the source may be closed by now.
pub trait OpenedState: Send + Sync + fmt::Debug {
    /// What tells it from others.
    fn identity(&self) -> &Identity;

    /// Whether a write that was under way will be seen when it ends, or none was.
    fn is_settled(&self) -> bool;

    /// Whether this is over, or what was read of it may have been half written, without a trace in
    /// the source's times.
    fn is_over(&self) -> bool;

    /// Whether a writer may append to the source, and lets others read.
    fn may_grow(&self) -> bool {
        false
    }
}

/// A state that many share.
pub type SharedState = Arc<dyn OpenedState>;

/// The lock that a writer takes on a file; flock(2).
#[derive(Debug)]
pub enum WriteLock {
    /// No writer has it.
    Free,
    /// A writer has it.
    Taken,
    /// The filesystem has no locks, and says so.
    Unsupported(io::Error),
}

impl WriteLock {
    /// The state that the refusal of the shared lock means.
    pub(super) fn refused(errno: Errno) -> io::Result<Self> {
        match errno {
            Errno::EWOULDBLOCK => Ok(WriteLock::Taken),
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
    fn a_filesystem_without_locks_is_told_from_one_that_fails() {
        for errno in [Errno::ENOLCK, Errno::ENOSYS, Errno::EOPNOTSUPP] {
            let lock = WriteLock::refused(errno).unwrap();
            assert!(matches!(lock, WriteLock::Unsupported(_)), "{errno}");
        }
        let taken = WriteLock::refused(Errno::EWOULDBLOCK).unwrap();
        assert!(matches!(taken, WriteLock::Taken));
        WriteLock::refused(Errno::EIO).unwrap_err();
    }
}
