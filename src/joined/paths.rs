//! Paths of objects; what is certain, and what is told.

use std::sync::Arc;

/// The path of an object in a file: names with a slash between them, none before the first. That of
/// the root is empty.
pub(in crate::joined) type Path = Arc<[u8]>;

/// What is certain, or the reason why it is not.
pub(in crate::joined) type Sure<T> = Result<T, String>;

/// Something that is not joined, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Told {
    /// The member or the object.
    pub(crate) what: String,
    pub(crate) reason: String,
}

/// The path of what is called `name` in the group at `group`.
pub(in crate::joined) fn beneath(group: &[u8], name: &[u8]) -> Path {
    if group.is_empty() {
        return name.into();
    }
    [group, b"/", name].concat().into()
}

/// The path of the group that holds what is at `path`, and its name there.
pub(in crate::joined) fn split(path: &[u8]) -> (&[u8], &[u8]) {
    match path.iter().rposition(|&byte| byte == b'/') {
        Some(at) => (&path[..at], &path[at + 1..]),
        None => (b"", path),
    }
}
