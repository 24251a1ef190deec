//! The output of a Lempel-Ziv decoder, which is also its history: literals are appended, and
//! matches repeat bytes that were written before.

use crate::wire::Count;

/// The output buffer of a Lempel-Ziv decoder, which is filled from its start.
#[derive(Debug)]
pub(crate) struct History<'a> {
    buffer: &'a mut [u8],
    written: usize,
}

impl<'a> History<'a> {
    /// Creates an empty history that fills `buffer`.
    pub(crate) fn new(buffer: &'a mut [u8]) -> Self {
        History { buffer, written: 0 }
    }

    /// Returns the number of bytes that were written into the buffer so far.
    pub(crate) fn written(&self) -> usize {
        self.written
    }

    /// Appends `bytes`. Returns `None` if the buffer has too little room.
    pub(crate) fn append_literals(&mut self, bytes: &[u8]) -> Option<()> {
        let end = self.written.checked_add(bytes.len())?;
        self.buffer
            .get_mut(self.written..end)?
            .copy_from_slice(bytes);
        self.written = end;
        Some(())
    }

    /// Appends `length` bytes, each equal to the byte `distance` before it. Returns `None` if the
    /// buffer has too little room, or if fewer than `distance` bytes are written.
    pub(crate) fn copy_back(&mut self, distance: usize, length: usize) -> Option<()> {
        let start = self.written.checked_sub(distance)?;
        let end = self.written.checked_add(length)?;
        let window = self.buffer.get_mut(start..end)?;
        // A match may overlap itself. The window then starts with one period of the repeated bytes,
        // and each copy doubles the repeated part. Even a run of one byte therefore takes few
        // copies.
        let mut done = distance;
        while (1..window.len()).contains(&done) {
            let step = done.min(window.len().minus_or_zero(done));
            window.copy_within(..step, done);
            done = done.plus(step);
        }
        self.written = end;
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn matches_may_overlap_themselves() {
        let mut buffer = [0; 12];
        let mut history = History::new(&mut buffer);
        history.append_literals(b"abc").unwrap();
        history.copy_back(3, 7).unwrap();
        history.copy_back(1, 2).unwrap();
        assert_eq!(history.written(), 12);
        assert_eq!(&buffer, b"abcabcabcaaa");
    }

    #[test]
    fn nothing_outside_the_buffer_is_accessed() {
        let mut buffer = [0; 4];
        let mut history = History::new(&mut buffer);
        history.append_literals(b"ab").unwrap();
        assert_eq!(history.copy_back(3, 1), None);
        assert_eq!(history.copy_back(1, 3), None);
        assert_eq!(history.copy_back(1, usize::MAX), None);
        assert_eq!(history.append_literals(b"abc"), None);
    }
}
