//! The content of the blocks of a bzip2 stream. A run of up to 255 equal bytes is encoded as four
//! equal bytes and a count. With such runs, 900 000 symbols may decode to 45 MB. Long content is
//! therefore kept in memory in this form.

use std::ops::Range;

use crate::error::Result;
use crate::wire::{Count, to_u64, to_usize};

/// Maximum number of bytes of content that is kept without an encoding of runs.
const MAX_PLAIN_BYTES: usize = 2 << 20;

/// Number of equal bytes after which a count follows.
const RUN_PREFIX: usize = 4;

/// Maximum length of one run.
const MAX_RUN_LENGTH: usize = 255;

/// The decoded content of one bzip2 block.
#[derive(Debug, Default)]
pub(super) struct BlockContent {
    length: u64,
    bytes: Vec<u8>,
    /// Whether runs are encoded in `bytes`, as four equal bytes and a count.
    is_run_encoded: bool,
    /// The length and the byte of the run at the end, which is not in `bytes` yet. Empty until runs
    /// are encoded.
    run: (usize, u8),
}

impl BlockContent {
    /// Appends decoded bytes to the content.
    pub(super) fn push(&mut self, part: &[u8]) {
        self.length = self.length.plus(to_u64(part.len()));
        if !self.is_run_encoded && self.bytes.len().plus(part.len()) > MAX_PLAIN_BYTES {
            self.is_run_encoded = true;
            let flat = std::mem::take(&mut self.bytes);
            self.push_runs(&flat);
        }
        if self.is_run_encoded {
            self.push_runs(part);
        } else {
            self.bytes.extend_from_slice(part);
        }
    }

    fn push_runs(&mut self, part: &[u8]) {
        for equal in part.chunk_by(|one, next| one == next) {
            let Some(&byte) = equal.first() else {
                continue;
            };
            let (before, last) = self.run;
            if before > 0 && last != byte {
                self.end_run();
            }
            self.run = (self.run.0.plus(equal.len()), byte);
        }
    }

    fn end_run(&mut self) {
        let (mut left, byte) = std::mem::take(&mut self.run);
        while left > 0 {
            let count = left.min(MAX_RUN_LENGTH);
            let stored = count.min(RUN_PREFIX);
            self.bytes.resize(self.bytes.len().plus(stored), byte);
            let more = count.minus_or_zero(RUN_PREFIX);
            let more = u8::try_from(more).ok().filter(|_| stored == RUN_PREFIX);
            self.bytes.extend(more);
            left = left.minus_or_zero(count);
        }
    }

    /// Completes the content, after which no bytes are appended.
    pub(super) fn finish(mut self) -> Self {
        self.end_run();
        self.bytes.shrink_to_fit();
        self
    }

    /// Returns the length of the decoded content in bytes.
    pub(super) fn length(&self) -> u64 {
        self.length
    }

    /// Returns the memory in bytes that the content takes.
    pub(super) fn weight(&self) -> u64 {
        to_u64(self.bytes.capacity())
    }

    /// Appends the bytes of `range` of the content to `to`, up to the end of the content.
    ///
    /// # Errors
    /// `Limit` for offsets that exceed the address space.
    pub(super) fn append(&self, range: Range<u64>, to: &mut Vec<u8>) -> Result<()> {
        let range = to_usize(range.start)?..to_usize(range.end.min(self.length))?;
        if !self.is_run_encoded {
            to.extend_from_slice(self.bytes.get(range).unwrap_or_default());
            return Ok(());
        }
        let (mut rest, mut at) = (self.bytes.as_slice(), 0_usize);
        while at < range.end
            && let Some((byte, count)) = next_run(&mut rest)
        {
            let end = at.plus(count);
            let within = end.min(range.end).minus_or_zero(at.max(range.start));
            to.resize(to.len().plus(within), byte);
            at = end;
        }
        Ok(())
    }
}

/// Removes an encoded run from the front of `rest`. Returns the run's byte and its length, or
/// `None` at the end.
fn next_run(rest: &mut &[u8]) -> Option<(u8, usize)> {
    let &byte = rest.first()?;
    let equal = rest
        .iter()
        .take(RUN_PREFIX)
        .take_while(|&&other| other == byte);
    let equal = equal.count();
    *rest = rest.get(equal..)?;
    if equal < RUN_PREFIX {
        return Some((byte, equal));
    }
    let (&more, after) = rest.split_first()?;
    *rest = after;
    Some((byte, RUN_PREFIX.plus(usize::from(more))))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn content(runs: &[(u8, usize)]) -> Vec<u8> {
        let runs = runs.iter().map(|&(byte, count)| vec![byte; count]);
        runs.collect::<Vec<_>>().concat()
    }

    fn content_in_parts(bytes: &[u8], part: usize) -> BlockContent {
        let mut content = BlockContent::default();
        bytes.chunks(part).for_each(|part| content.push(part));
        content.finish()
    }

    fn range(content: &BlockContent, range: Range<u64>) -> Vec<u8> {
        let mut bytes = Vec::new();
        content.append(range, &mut bytes).unwrap();
        bytes
    }

    #[test]
    fn a_long_run_takes_little() {
        let zeros = vec![0; 46_000_000];
        let content = content_in_parts(&zeros, 1 << 20);
        assert_eq!(content.length(), 46_000_000);
        assert!(content.weight() < 1_000_000);
        assert!(range(&content, 30_000_001..30_001_002) == [0; 1001]);
        let short = content_in_parts(&zeros[..MAX_PLAIN_BYTES], 1 << 20);
        assert!(!short.is_run_encoded);
        assert!(range(&short, 7..9) == [0; 2]);
    }

    proptest! {
        #[test]
        fn any_range_equals_the_input(
            runs in proptest::collection::vec((0..3_u8, 0..600_usize), 0..30),
            part in 1..700_usize,
            start in 0..9000_u64,
            length in 0..4000_u64,
        ) {
            let bytes = content(&runs);
            let mut shortened = BlockContent { is_run_encoded: true, ..BlockContent::default() };
            bytes.chunks(part).for_each(|part| shortened.push(part));
            let shortened = shortened.finish();
            let whole = range(&shortened, 0..u64::MAX);
            prop_assert!(whole == bytes);
            let (from, to) = (start as usize, (start + length) as usize);
            let expected = bytes.get(from..to.min(bytes.len())).unwrap_or_default();
            prop_assert_eq!(&range(&shortened, start..start + length)[..], expected);
            prop_assert_eq!(&range(&content_in_parts(&bytes, part), start..start + length)[..], expected);
        }
    }
}
