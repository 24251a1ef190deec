//! A cache for the lengths of generated texts, such as the CSV file of an array. The bytes of a
//! text are counted once, by generating all of it. The count is the text's length and some resume
//! points, which are the offsets of some units, such as lines.

use std::sync::{Arc, Mutex};

use h5fs_reader::array::Engine;
use h5fs_reader::error::Result;
use h5fs_reader::memory::cancel::CancelToken;
use h5fs_reader::memory::lock::lock;
use h5fs_reader::memory::request_budget::RequestBudget;
use h5fs_reader::memory::weighted_lru::WeightedLru;
use h5fs_reader::model::NodeId;
use h5fs_view::text_files::counted_text::{TextLengthIndex, TextUnits};
use h5fs_view::text_files::streamed::ResumableText;

use crate::limits;
use crate::state::inode::TreeNumber;

/// The cache key of a text whose bytes are counted: the object, the part of it, and the form of the
/// text.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct CountKey {
    /// Tree number of the text's form, such as CSV or JSON.
    pub(crate) form_number: TreeNumber,
    pub(crate) node: NodeId,
    /// The selector of a part of the array, or empty for the whole object.
    pub(crate) selector: Box<[u8]>,
}

/// The result of counting the bytes of a text: its length and its resume points. `Ok(None)` means
/// that the text is longer than the limit for counting.
pub(crate) type CountResult = Result<Option<Arc<TextLengthIndex>>>;

/// The result of counting the bytes of a text; `None` until it is available. Calls for the same
/// text wait for the lock, so that the bytes are counted only once.
type CountSlot = Arc<Mutex<Option<CountResult>>>;

/// A cache of the lengths and resume points of texts, limited by memory.
pub(crate) struct CountCache(pub(crate) Mutex<WeightedLru<CountKey, CountSlot>>);

impl Default for CountCache {
    fn default() -> Self {
        CountCache(Mutex::new(WeightedLru::new(limits::COUNTS)))
    }
}

impl CountCache {
    /// Returns the length and the resume points of `text`, from the cache or from `count`. Errors
    /// are cached too, unless a later attempt may succeed. `cancel` ends waiting for another call
    /// that counts the same text.
    ///
    /// # Errors
    /// Fails with the errors of `count`.
    pub(crate) fn get_or_count(
        &self,
        text: CountKey,
        cancel: &CancelToken,
        count: impl FnOnce() -> CountResult,
    ) -> CountResult {
        let once = self.slot(&text);
        let mut known = cancel.lock(&once)?;
        if let Some(counted) = &*known {
            return counted.clone();
        }
        let counted = count();
        let weight = match &counted {
            Ok(count) => count.as_ref().map_or(0, |count| count.weight()),
            Err(error) if error.is_transient() => return counted,
            Err(_) => 0,
        };
        *known = Some(counted.clone());
        lock(&self.0).put(text, Arc::clone(&once), weight);
        counted
    }

    fn slot(&self, text: &CountKey) -> CountSlot {
        let mut counts = lock(&self.0);
        if let Some(once) = counts.get(text) {
            return Arc::clone(once);
        }
        let once = CountSlot::default();
        counts.put(text.clone(), Arc::clone(&once), 0);
        once
    }
}

/// Determines the length in bytes of the text that consists of `units`, such as lines, and the
/// offsets of some units.
///
/// # Errors
/// Fails if a unit cannot be written, and with
/// [`Error::cancelled`](h5fs_reader::error::Error::cancelled) if the request with this `budget`
/// must end.
pub(crate) fn count_units(
    units: &dyn TextUnits,
    engine: &Engine,
    budget: &RequestBudget,
) -> CountResult {
    if units.uniform_units().is_none() && units.value_count() > limits::QUICK_VALUES {
        budget.cancel_token().require_heavy_slot()?;
    }
    let count = TextLengthIndex::measure(units, engine, budget)?;
    Ok(count.map(Arc::new))
}

/// Determines the length in bytes of a text that can only be written sequentially, and the points
/// where writing can resume.
///
/// # Errors
/// Fails as [`count_units`] does.
pub(crate) fn count_sequential_text(
    text: &impl ResumableText,
    budget: &RequestBudget,
) -> CountResult {
    let count = TextLengthIndex::measure_parts(text, budget, || {
        budget.cancel_token().require_heavy_slot()
    })?;
    Ok(count.map(Arc::new))
}

#[cfg(test)]
mod tests {
    use std::ops::Range;
    use std::sync::atomic::{AtomicU32, Ordering};

    use h5fs_reader::error::{Cause, Error};

    use super::*;

    /// A text of one line that counts how often it is written. Writing fails with the error the
    /// first time.
    struct FailingLine(AtomicU32, Error);

    impl TextUnits for FailingLine {
        fn count(&self) -> u64 {
            1
        }

        fn write(
            &self,
            units: Range<u64>,
            _: usize,
            _: &CancelToken,
            out: &mut Vec<u8>,
        ) -> Result<u64> {
            out.extend_from_slice(b"line\n");
            match self.0.fetch_add(1, Ordering::Relaxed) {
                0 => Err(self.1.clone()),
                _ => Ok(units.end),
            }
        }
    }

    fn count_with_error(error: Error) -> (Vec<bool>, u32) {
        let (counts, engine) = (CountCache::default(), Engine::new(0, 1));
        let line = FailingLine(AtomicU32::new(0), error);
        let text = CountKey {
            form_number: 9,
            node: NodeId::for_test(1),
            selector: (*b"").into(),
        };
        let times = 0..3;
        let budget = RequestBudget::default();
        let count_line = || count_units(&line, &engine, &budget);
        let count = |_| {
            let counted = counts.get_or_count(text.clone(), &budget.cancel_token(), count_line);
            counted.is_ok()
        };
        let found = times.map(count).collect();
        (found, line.0.into_inner())
    }

    #[test]
    fn a_text_is_counted_again_only_after_a_transient_error() {
        let passing = Error::from_cause(Cause::Unavailable, "a disk that does not answer");
        assert_eq!(count_with_error(passing), (vec![false, true, true], 2));
        let lasting = Error::corrupt("a unit", None);
        assert_eq!(count_with_error(lasting), (vec![false; 3], 1));
    }
}
