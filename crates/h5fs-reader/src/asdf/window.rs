//! Reads of small structures at increasing offsets. Neighbouring structures are read in one piece.

use crate::error::Result;
use crate::source::{self, Source};
use crate::wire::{Count, Extent, to_u64, to_usize};

/// Number of bytes of the first read, and of each read if structures are far apart.
pub(crate) const MIN_READ: u64 = 256;

/// Maximum number of bytes of one read.
const MAX_READ: u64 = 64 << 10;

/// The most recently read bytes of a source.
#[derive(Debug)]
pub(crate) struct Window<'a> {
    source: &'a dyn Source,
    start: u64,
    bytes: Vec<u8>,
    /// Length of the next read in bytes.
    next_read_length: u64,
}

impl<'a> Window<'a> {
    /// Creates an empty window on `source`.
    pub(crate) fn new(source: &'a dyn Source) -> Self {
        Window {
            source,
            start: 0,
            bytes: Vec::new(),
            next_read_length: MIN_READ,
        }
    }

    pub(crate) fn source(&self) -> &'a dyn Source {
        self.source
    }

    /// Returns the length of the source in bytes.
    pub(crate) fn length(&self) -> u64 {
        self.source.length()
    }

    /// Returns the bytes in the range `part` of the source, truncated at the end of the source.
    ///
    /// # Errors
    /// `Io` if the source cannot be read.
    pub(crate) fn piece(&mut self, part: impl Into<Extent>) -> Result<&[u8]> {
        let part = part.into();
        let end = part.end().min(self.length());
        let start = part.start().min(end);
        if start < self.start || end > self.end() {
            self.fetch(start, end)?;
        }
        let from = to_usize(start.minus_or_zero(self.start))?;
        let to = to_usize(end.minus_or_zero(self.start))?;
        Ok(self.bytes.get(from..to).unwrap_or_default())
    }

    fn end(&self) -> u64 {
        Extent::saturating(self.start, to_u64(self.bytes.len())).end()
    }

    fn fetch(&mut self, start: u64, end: u64) -> Result<()> {
        let near = self.start..=Extent::saturating(self.end(), self.next_read_length).end();
        self.next_read_length = if near.contains(&start) {
            self.next_read_length.times(2).min(MAX_READ)
        } else {
            MIN_READ
        };
        let until = Extent::saturating(start, self.next_read_length).end();
        let until = until.min(self.length()).max(end);
        let read = |until: u64| {
            let length = until.minus_or_zero(start);
            source::read_block(self.source, start, length, "piece of the file")
        };
        // The read-ahead may have failed on a damaged part of the disk, so only the requested bytes
        // are read.
        self.bytes = match read(until) {
            Ok(bytes) => bytes,
            Err(_) => {
                self.next_read_length = MIN_READ;
                read(end)?
            }
        };
        self.start = start;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::memory::cancel::WantedCheck;
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;
    use crate::error::Error;

    /// A source that counts its reads. Each byte is the low byte of its offset. The bytes from
    /// offset 900 000 on cannot be read.
    #[derive(Debug, Default)]
    struct CountedSource(AtomicU64);

    impl Source for CountedSource {
        fn length(&self) -> u64 {
            1_000_000
        }

        fn read_cancellable(&self, at: u64, buffer: &mut [u8], _: &WantedCheck<'_>) -> Result<()> {
            self.0.fetch_add(1, Ordering::Relaxed);
            for (at, byte) in (at..).zip(buffer) {
                if at >= 900_000 {
                    return Err(Error::corrupt("broken", at));
                }
                *byte = at.to_le_bytes()[0];
            }
            Ok(())
        }
    }

    #[test]
    fn many_small_pieces_are_few_reads() {
        let source = CountedSource::default();
        let mut window = Window::new(&source);
        for at in (0..900_000_u64).step_by(10) {
            let first = at.to_le_bytes()[0];
            assert_eq!(
                window.piece(at..at + 2),
                Ok(&[first, first.wrapping_add(1)][..])
            );
        }
        assert!(source.0.load(Ordering::Relaxed) < 100);
    }

    #[test]
    fn distant_structures_are_read_separately() {
        let source = CountedSource::default();
        let mut window = Window::new(&source);
        for at in (0..9).map(|place| place * 100_000) {
            window.piece(at..at + 2).unwrap();
            assert!(window.bytes.len() <= 512);
        }
        assert_eq!(window.piece(899_998..900_000).unwrap().len(), 2);
        window
            .piece(899_999..900_001)
            .expect_err("beyond the break");
        assert_eq!(window.piece(2_000_000..2_000_001), Ok(&[][..]));
    }
}
