//! The trait through which members are listed and opened.

use std::sync::Arc;

use h5fs_reader::error::{Cause, Error, Result};
use h5fs_reader::memory::cancel::CancelToken;
use h5fs_reader::model::Container;
use h5fs_reader::source::neighbours::Neighbours;
use nix::errno::Errno;

use crate::paths::Path;

/// A hash that identifies a member together with the state of its file.
pub type MemberKey = [u8; 32];

/// Access to the members of a directory: lists and opens their files.
pub trait MemberFiles: Send + Sync {
    /// Returns the paths of the members relative to the directory, sorted. The number of a member
    /// is its index in the returned slice.
    fn member_paths(&self) -> &[Path];

    /// Opens the member with this number for a scan with the token `cancel`.
    ///
    /// # Errors
    /// Fails if the format of the file is unknown, or the file cannot be opened. `Stale` if it has
    /// changed since the members were listed. [`Error::cancelled`] once the scan is cancelled.
    fn open(&self, number: usize, cancel: &CancelToken) -> Result<OpenedMember>;

    /// Opens a member whose scan is known, from this process or from the cache file. The opening
    /// cannot be cancelled, because several requests may wait for it.
    ///
    /// # Errors
    /// Fails as [`open`](Self::open) does. `Stale` if its state differs from the scanned state.
    fn reopen(&self, number: usize) -> Result<OpenedMember>;

    /// Opens the file `name`, which is the target of a link in the open file `from`. Returns `None`
    /// if the target does not exist.
    ///
    /// # Errors
    /// Fails if the target must not be opened, or its format is unknown. [`Error::cancelled`] once
    /// `cancel` is cancelled.
    fn open_linked(
        &self,
        from: &OpenedMember,
        name: &[u8],
        cancel: &CancelToken,
    ) -> Result<Option<OpenedMember>>;

    /// Returns the key under which the scan of a member is stored. Returns `None` if the member
    /// could change without a change of its key.
    fn cache_key(&self, number: usize) -> Option<MemberKey>;

    /// Returns the approximate memory of this opener, in bytes.
    fn weight(&self) -> u64;

    /// Returns whether opening a member needs requests to a server.
    fn is_remote(&self) -> bool;

    /// Returns whether a member that cannot be read at the moment is omitted.
    fn can_omit_unreadable(&self) -> bool;

    /// Returns whether the checksum of a block is verified before its elements are read.
    fn should_verify(&self) -> bool;

    /// Reports the start of a scan of all members.
    fn report_start(&self);

    /// Reports that one more member was scanned. `was_known` says whether the scan came from the
    /// cache file.
    fn report_scanned(&self, was_known: bool);
}

/// An open file: a member, or the target of a link.
pub struct OpenedMember {
    /// The container with the objects of the file.
    pub container: Arc<dyn Container>,
    /// The other files that the content of this file refers to.
    pub neighbours: Arc<Neighbours>,
}

/// Returns whether a member is omitted because of an error. An omission must be permanent: the
/// error will recur, or the member has changed, which the next listing of the directory shows. A
/// server may refuse access now and permit it after the next login, so such a member is omitted
/// only if the user permits a partial result.
pub(super) fn is_permanently_omitted(error: &Error, opener: &dyn MemberFiles) -> bool {
    const DENIED: [i32; 2] = [Errno::EPERM as i32, Errno::EACCES as i32];
    match error {
        Error::Io { cause, .. } => match cause {
            Cause::Forbidden | Cause::Stale | Cause::Missing => true,
            Cause::OutOfMemory | Cause::Cancelled => false,
            Cause::System(number) if DENIED.contains(number) && !opener.is_remote() => true,
            Cause::System(_) | Cause::Unavailable => opener.can_omit_unreadable(),
        },
        error => !error.is_transient(),
    }
}
