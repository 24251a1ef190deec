//! Other objects with the same prefix as the mounted object.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use lru::LruCache;

use crate::error::Error;
use crate::limits;
use crate::memory::cancel::WantedCheck;
use crate::memory::lock::lock;
use crate::source::neighbours::policy::{
    OpenRefusal, OpenedPath, OtherFilesPolicy, refusal, unreadable_error,
};
use crate::source::open::{OpenSource, SharedOpenSource};
use crate::source::remote::connection::Connection;
use crate::source::remote::object::RemoteObject;

/// An object, or `None` if it does not exist, and the time of the request.
type KnownObject = (Instant, Option<Arc<RemoteObject>>);

/// The prefix of a URL: the part before its last `/`.
#[derive(Debug)]
pub(in crate::source) struct Prefix {
    connection: Arc<Connection>,
    path: PathBuf,
    policy: OtherFilesPolicy,
    /// Recently requested objects by name, including names without an object.
    known: Mutex<LruCache<Vec<u8>, KnownObject>>,
}

impl Prefix {
    /// Returns the prefix of the URL of `connection`.
    pub(in crate::source) fn new(connection: &Arc<Connection>, policy: OtherFilesPolicy) -> Self {
        Prefix {
            connection: Arc::clone(connection),
            path: connection.prefix(),
            policy,
            known: Mutex::new(LruCache::sparse(limits::OPEN_NEIGHBOURS)),
        }
    }

    pub(in crate::source) fn path(&self) -> &Path {
        &self.path
    }

    pub(in crate::source) fn policy(&self) -> OtherFilesPolicy {
        self.policy
    }

    /// Opens the object at the relative `path`. No policy allows a path outside the prefix: the
    /// user has not chosen to contact other servers or prefixes. If `is_wanted` returns false, the
    /// error is [`Error::cancelled`].
    pub(in crate::source) fn open(&self, path: &Path, is_wanted: &WantedCheck<'_>) -> OpenedPath {
        let Some(name) = name(path) else {
            return Err(refusal(path, "it leads outside the source's prefix"));
        };
        let place = self.path.join(OsStr::from_bytes(&name));
        let failed = |error: Error| {
            let error = if error.is_cancelled() {
                error
            } else {
                unreadable_error(&place, &error.to_string())
            };
            OpenRefusal::Failed(place.clone(), error)
        };
        let found = self.find(name, is_wanted).map_err(failed)?;
        let found = found.map(|object| -> SharedOpenSource { object });
        Ok(found.map(|object| (object, place)))
    }

    fn find(
        &self,
        name: Vec<u8>,
        is_wanted: &WantedCheck<'_>,
    ) -> crate::error::Result<Option<Arc<RemoteObject>>> {
        if let Some((since, found)) = lock(&self.known).get(&name)
            && since.elapsed() < self.connection.validity()
            && !found.as_ref().is_some_and(|object| object.is_changed())
        {
            return Ok(found.clone());
        }
        let found = RemoteObject::find(&self.connection, &name, is_wanted)?.map(Arc::new);
        let gone = lock(&self.known).put(name, (Instant::now(), found.clone()));
        drop(gone);
        Ok(found)
    }
}

/// Returns the name of the object at a relative path, or `None` if the path leads out of the
/// prefix.
fn name(path: &Path) -> Option<Vec<u8>> {
    let mut parts: Vec<&[u8]> = Vec::new();
    for component in path.components() {
        match component {
            Component::Normal(part) => parts.push(part.as_encoded_bytes()),
            Component::CurDir => {}
            Component::ParentDir => drop(parts.pop()?),
            Component::RootDir | Component::Prefix(_) => return None,
        }
    }
    Some(parts.join(&b'/')).filter(|name| !name.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_name_leads_out() {
        let named = |path: &str| name(Path::new(path)).map(|name| String::from_utf8(name).unwrap());
        assert_eq!(named("a/b.h5").as_deref(), Some("a/b.h5"));
        assert_eq!(named("./a//../b.h5").as_deref(), Some("b.h5"));
        for path in ["..", "../b.h5", "a/../../b.h5", "/a", "", ".", "a/.."] {
            assert_eq!(named(path), None, "{path}");
        }
    }
}
