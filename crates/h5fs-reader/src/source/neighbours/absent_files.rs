//! Warnings about referenced files that do not exist, each reported once.

use std::collections::HashSet;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::mem;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::limits;
use crate::memory::lock::lock;

/// A referenced file that is absent or may not be opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AbsentFile {
    /// The object that references the file, or the file's own name.
    pub object: String,
    /// The consequence of the file's absence for the user, as text.
    pub reason: String,
}

/// The absent files of one source.
#[derive(Debug, Default)]
pub(in crate::source) struct AbsentFileLog {
    hasher: RandomState,
    reported: Mutex<ReportedAbsences>,
    has_unread: AtomicBool,
}

#[derive(Debug, Default)]
struct ReportedAbsences {
    /// Hashes of the objects reported so far.
    known: HashSet<u64>,
    unread: Vec<AbsentFile>,
}

impl AbsentFileLog {
    /// Records that `object` lacks a file. Does nothing if the object was recorded before, or
    /// [`NAMED_ABSENT`](limits::NAMED_ABSENT) objects were recorded.
    pub(in crate::source) fn record(&self, object: &str, reason: &str) {
        let mut met = lock(&self.reported);
        let is_full = met.known.len() >= limits::NAMED_ABSENT;
        if is_full || !met.known.insert(self.hasher.hash_one(object)) {
            return;
        }
        met.unread.push(AbsentFile {
            object: object.chars().take(limits::ERROR_LINE).collect(),
            reason: reason.to_owned(),
        });
        self.has_unread.store(true, Ordering::Release);
    }

    /// Returns the records added since the last call.
    pub(in crate::source) fn take_new(&self) -> Vec<AbsentFile> {
        if self.has_unread.swap(false, Ordering::AcqRel) {
            mem::take(&mut lock(&self.reported).unread)
        } else {
            Vec::new()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_absent_file_is_reported_once_up_to_a_limit() {
        let absent = AbsentFileLog::default();
        let objects =
            |absent: &AbsentFileLog| absent.take_new().into_iter().map(|lack| lack.object);
        for object in ["a", "b", "a"] {
            absent.record(object, "missing");
        }
        assert_eq!(objects(&absent).collect::<Vec<_>>(), ["a", "b"]);
        absent.record("b", "missing");
        assert_eq!(absent.take_new(), []);
        for number in 0..=limits::NAMED_ABSENT {
            absent.record(&number.to_string(), "missing");
        }
        assert_eq!(objects(&absent).count(), limits::NAMED_ABSENT - 2);
    }
}
