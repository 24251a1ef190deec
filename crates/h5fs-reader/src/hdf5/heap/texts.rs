//! The ends of long strings on the global heap.
//!
//! Any number of elements may point to one string, each with another length, and strings overlap in
//! a damaged file. Therefore runs of bytes without a NUL are remembered instead of strings, and
//! each run is searched only once.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Mutex;

use crate::error::Result;
use crate::limits;
use crate::memory::lock::lock;
use crate::wire::{Count, Extent, to_u64};

/// Minimum length in bytes of a string whose end is remembered, and the length of the first read.
const MIN_REMEMBERED_BYTES: u64 = 1024;

/// Number of bytes of each further read.
const NEXT_READ_BYTES: u64 = 64 << 10;

/// Runs of a file's bytes without a NUL, as absolute offsets of the first byte and of the byte
/// after the last.
#[derive(Debug, Default)]
pub(crate) struct NulFreeRanges(Mutex<BTreeMap<u64, u64>>);

impl NulFreeRanges {
    /// Returns the absolute offset of the first NUL in the range `bytes` of the file, or the end of
    /// the range if there is no NUL. `fetch` reads a range of the file.
    ///
    /// # Errors
    /// Fails if `fetch` fails.
    pub(crate) fn find_text_end(
        &self,
        bytes: Range<u64>,
        fetch: impl Fn(Range<u64>) -> Result<Vec<u8>>,
    ) -> Result<u64> {
        let mut at = bytes.start;
        let mut length = MIN_REMEMBERED_BYTES;
        while at < bytes.end {
            if let Some(end) = self.end_of_run(at) {
                (at, length) = (end.min(bytes.end), MIN_REMEMBERED_BYTES);
                continue;
            }
            let rest = Extent::from_range(at, bytes.end);
            let piece = rest.first(length).range();
            let found = fetch(piece.clone())?.iter().position(|&byte| byte == 0);
            if let Some(nul) = found {
                at = rest.skip(to_u64(nul)).start();
                break;
            }
            at = piece.end;
            length = NEXT_READ_BYTES;
        }
        if at.minus_or_zero(bytes.start) >= MIN_REMEMBERED_BYTES {
            self.remember(bytes.start..at);
        }
        Ok(at)
    }

    /// Drops all remembered runs.
    pub(crate) fn clear(&self) {
        lock(&self.0).clear();
    }

    fn end_of_run(&self, at: u64) -> Option<u64> {
        let (_, &end) = lock(&self.0).range(..=at).next_back()?;
        (end > at).then_some(end)
    }

    fn remember(&self, mut run: Range<u64>) {
        let mut runs = lock(&self.0);
        while let Some((&start, &end)) = runs.range(..=run.end).next_back()
            && end >= run.start
        {
            runs.remove(&start);
            run = run.start.min(start)..run.end.max(end);
        }
        if runs.len() >= limits::LONG_STRINGS {
            runs.clear();
        }
        runs.insert(run.start, run.end);
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    /// Checks strings within each other, with the inner ones first, with the outer ones first, and
    /// with a later end.
    #[test]
    fn bytes_are_searched_once() {
        const LENGTH: u64 = 1 << 20;
        let mut content = vec![b'x'; 1 << 20];
        content[1_000_000] = 0;
        let fetched = Cell::new(0);
        let fetch = |part: Range<u64>| {
            fetched.set(fetched.get() + part.end - part.start);
            Ok(content[part.start as usize..part.end as usize].to_vec())
        };
        let texts = NulFreeRanges::default();
        for start in (0..500).rev().chain(0..500) {
            assert_eq!(texts.find_text_end(start..LENGTH, fetch), Ok(1_000_000));
            assert_eq!(
                texts.find_text_end(start..LENGTH - start, fetch),
                Ok(1_000_000)
            );
            assert_eq!(
                texts.find_text_end(start..900_000 + start, fetch),
                Ok(900_000 + start)
            );
        }
        assert_eq!(texts.find_text_end(1_000_001..LENGTH, fetch), Ok(LENGTH));
        assert!(
            fetched.get() < 3 * LENGTH + 2000 * MIN_REMEMBERED_BYTES,
            "{}",
            fetched.get()
        );
        texts.clear();
        assert_eq!(texts.find_text_end(0..LENGTH, fetch), Ok(1_000_000));
    }
}
