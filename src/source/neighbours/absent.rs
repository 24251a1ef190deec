//! Other files that a file names and that are not there, each told once.

use std::collections::HashSet;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::mem;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::limits;
use crate::memory::lock::lock;

/// Something that is absent, or may not be opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lack {
    /// The object that names it, or its own name.
    pub object: String,
    /// What follows from that.
    pub reason: String,
}

/// What a file lacks.
#[derive(Debug, Default)]
pub(in crate::source) struct Absent {
    hasher: RandomState,
    met: Mutex<Met>,
    has_news: AtomicBool,
}

#[derive(Debug, Default)]
struct Met {
    /// Hashes of the objects.
    known: HashSet<u64>,
    news: Vec<Lack>,
}

impl Absent {
    /// Takes down what `object` lacks, unless that is known, or too much is.
    pub(in crate::source) fn meet(&self, object: &str, reason: &str) {
        let mut met = lock(&self.met);
        let is_full = met.known.len() >= limits::NAMED_ABSENT;
        if is_full || !met.known.insert(self.hasher.hash_one(object)) {
            return;
        }
        met.news.push(Lack {
            object: object.chars().take(limits::ERROR_LINE).collect(),
            reason: reason.to_owned(),
        });
        self.has_news.store(true, Ordering::Release);
    }

    /// What was taken down since this was called last.
    pub(in crate::source) fn news(&self) -> Vec<Lack> {
        if self.has_news.swap(false, Ordering::AcqRel) {
            mem::take(&mut lock(&self.met).news)
        } else {
            Vec::new()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_told_once_up_to_a_bound() {
        let absent = Absent::default();
        let objects = |absent: &Absent| absent.news().into_iter().map(|lack| lack.object);
        for object in ["a", "b", "a"] {
            absent.meet(object, "missing");
        }
        assert_eq!(objects(&absent).collect::<Vec<_>>(), ["a", "b"]);
        absent.meet("b", "missing");
        assert_eq!(absent.news(), []);
        for number in 0..=limits::NAMED_ABSENT {
            absent.meet(&number.to_string(), "missing");
        }
        assert_eq!(objects(&absent).count(), limits::NAMED_ABSENT - 2);
    }
}
