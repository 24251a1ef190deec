//! The ends of long strings on the global heap.
//!
//! Any number of elements may point to one string, each with another length, and in a damaged file
//! strings overlap. So runs of the file's bytes are remembered, not strings: each is searched once.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Mutex;

use crate::error::Result;
use crate::limits;
use crate::memory::lock::lock;
use crate::wire::{Count, Extent, to_u64};

/// Bytes of a string from which on they are remembered, and that are looked at first.
const LONG: u64 = 1024;

/// Bytes that are looked at at a time then.
const PIECE: u64 = 64 << 10;

/// Runs of a file's bytes without a NUL: absolute offsets of the first byte and of the one behind
/// the last.
#[derive(Debug, Default)]
pub(crate) struct Texts(Mutex<BTreeMap<u64, u64>>);

impl Texts {
    /// The offset of the first NUL in `bytes`, or where they end; `fetch` reads some of them.
    ///
    /// # Errors
    /// The errors of `fetch`.
    pub(crate) fn end(
        &self,
        bytes: Range<u64>,
        fetch: impl Fn(Range<u64>) -> Result<Vec<u8>>,
    ) -> Result<u64> {
        let mut at = bytes.start;
        let mut length = LONG;
        while at < bytes.end {
            if let Some(end) = self.end_of_run(at) {
                (at, length) = (end.min(bytes.end), LONG);
                continue;
            }
            let rest = Extent::between(at, bytes.end);
            let piece = rest.first(length).range();
            let found = fetch(piece.clone())?.iter().position(|&byte| byte == 0);
            if let Some(nul) = found {
                at = rest.after(to_u64(nul)).start();
                break;
            }
            at = piece.end;
            length = PIECE;
        }
        if at.left_after(bytes.start) >= LONG {
            self.remember(bytes.start..at);
        }
        Ok(at)
    }

    /// Forgets all.
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

    /// Strings within each other, the inner ones first, the outer ones first, and one that ends
    /// later.
    #[test]
    fn bytes_are_looked_through_once() {
        const LENGTH: u64 = 1 << 20;
        let mut content = vec![b'x'; 1 << 20];
        content[1_000_000] = 0;
        let fetched = Cell::new(0);
        let fetch = |part: Range<u64>| {
            fetched.set(fetched.get() + part.end - part.start);
            Ok(content[part.start as usize..part.end as usize].to_vec())
        };
        let texts = Texts::default();
        for start in (0..500).rev().chain(0..500) {
            assert_eq!(texts.end(start..LENGTH, fetch), Ok(1_000_000));
            assert_eq!(texts.end(start..LENGTH - start, fetch), Ok(1_000_000));
            assert_eq!(
                texts.end(start..900_000 + start, fetch),
                Ok(900_000 + start)
            );
        }
        assert_eq!(texts.end(1_000_001..LENGTH, fetch), Ok(LENGTH));
        assert!(
            fetched.get() < 3 * LENGTH + 2000 * LONG,
            "{}",
            fetched.get()
        );
        texts.clear();
        assert_eq!(texts.end(0..LENGTH, fetch), Ok(1_000_000));
    }
}
