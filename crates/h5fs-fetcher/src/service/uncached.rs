//! Warns about objects that cannot be cached although a disk cache is configured.

use std::collections::HashSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use h5fs_reader::memory::lock::lock;
use h5fs_reader::source::remote::state::ObjectState;

use crate::disk_cache::DiskCache;
use crate::limits;

/// The warnings that were already given. None of them is repeated.
#[derive(Debug, Default)]
pub(super) struct GivenWarnings {
    objects: Mutex<HashSet<String>>,
    is_full: AtomicBool,
}

impl GivenWarnings {
    /// Returns the warning for an object in this state if the object cannot be cached. Each object
    /// causes at most one warning, and the total number of warnings is bounded.
    pub(super) fn object_warning(
        &self,
        shown: &str,
        state: &ObjectState,
        has_weak_tags: bool,
    ) -> Option<String> {
        let reason = uncached_reason(state, has_weak_tags)?;
        let mut told = lock(&self.objects);
        let is_new = told.len() < limits::EARLY_LINES && told.insert(shown.to_owned());
        is_new.then(|| format!("{shown}: not cached on disk: {reason}"))
    }

    /// Returns the warning that the cache is full, unless this warning was already given.
    pub(super) fn cache_warning(&self, cache: &DiskCache) -> Option<String> {
        let full = cache.full_reason()?;
        let is_new = !self.is_full.swap(true, Ordering::Relaxed);
        is_new.then(|| full.to_owned())
    }
}

/// Returns the reason why an object in this state is not cached, if there is one.
fn uncached_reason(state: &ObjectState, has_weak_tags: bool) -> Option<&'static str> {
    if state.has_strong_tag() {
        return None;
    }
    Some(match state.etag.as_slice() {
        [] if has_weak_tags => "`etag=weak` ignores entity tags",
        [] => "the server sends no entity tag",
        [b'W', b'/', ..] => "its entity tag is weak",
        _ if state.is_sampled() => "the server sends neither an entity tag nor a date",
        _ => "its entity tag has no quotes",
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_object_is_warned_about_once_up_to_a_limit() {
        let told = GivenWarnings::default();
        let state = |etag: &[u8]| ObjectState {
            etag: etag.to_vec(),
            ..ObjectState::default()
        };
        let tell = |etag: &[u8], weak| told.object_warning("http://h/a", &state(etag), weak);
        assert_eq!(tell(b"\"1\"", false), None);
        let text = tell(b"W/\"1\"", false).unwrap();
        assert_eq!(
            text,
            "http://h/a: not cached on disk: its entity tag is weak"
        );
        assert_eq!(tell(b"W/\"1\"", false), None);
        for (etag, weak, word) in [
            (&b""[..], true, "etag=weak"),
            (b"", false, "no entity tag"),
            (b"abc", false, "quotes"),
            (b"\0sample", false, "neither"),
        ] {
            assert!(uncached_reason(&state(etag), weak).unwrap().contains(word));
        }
        let many = (0..100).filter_map(|number| {
            let shown = format!("http://h/{number}");
            told.object_warning(&shown, &state(b""), false)
        });
        assert_eq!(many.count(), limits::EARLY_LINES - 1);
    }
}
