//! Paths of objects in the joined file, and reasons why objects are omitted.

use std::sync::Arc;

/// The path of an object in a file: names separated by slashes, without a leading slash. The path
/// of the root is empty.
pub(crate) type Path = Arc<[u8]>;

/// The result of joining an array or placing a member: a value, or the reason for an omission.
pub(crate) type OmissionResult<T> = Result<T, String>;

/// A member or object that the joined file omits, with the reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Omission {
    /// The name of the member, or the path of the object with a leading slash.
    pub subject: String,
    /// The reason, as a part of a message.
    pub reason: String,
}

/// Returns the path of the object `name` in the group at `group`.
pub(crate) fn child_path(group: &[u8], name: &[u8]) -> Path {
    if group.is_empty() {
        return name.into();
    }
    [group, b"/", name].concat().into()
}

/// Splits a path into the path of its group and the name in this group.
pub(crate) fn split_path(path: &[u8]) -> (&[u8], &[u8]) {
    match path.iter().rposition(|&byte| byte == b'/') {
        Some(at) => (&path[..at], &path[at + 1..]),
        None => (b"", path),
    }
}
