//! A text that is generated while it is read.
//!
//! Writing such a text can pause after any part and resume later. Between two reads, an open file
//! keeps the position of the writer, and the rest of the last part that was not read yet. No thread
//! waits between reads. Sequential reads cost the same as writing the text once. A read at an
//! earlier offset restarts at the beginning, or at the nearest known position.

use std::sync::{Mutex, MutexGuard};

use h5fs_reader::array::{Bytes, CancelToken};
use h5fs_reader::error::{Error, Result};
use h5fs_reader::memory::lock::lock;
use h5fs_reader::wire::{to_u64, to_usize};

use crate::view::View;

/// A text that is written part by part (an element or a line), and can be resumed between any two
/// parts.
pub trait ResumableText: Send + Sync {
    /// A position between two parts of the text.
    type ResumePoint: Send;

    /// Returns the position before the first part.
    fn begin(&self) -> Self::ResumePoint;

    /// Returns whether writing can resume at known positions, not only where the last read ended.
    fn has_resume_points(&self) -> bool {
        false
    }

    /// Returns a known position at or before byte `offset` of the text, and the offset of that
    /// position; `None` if no such position is known.
    fn nearest_resume_point(&self, _offset: u64) -> Option<(Self::ResumePoint, u64)> {
        None
    }

    /// Appends parts from the position `place` on to `out`: at least one, and further ones until
    /// `out` holds `enough` bytes. Moves `place` after the last part. Returns whether there may be
    /// more parts. The function is not called again after it has returned false.
    ///
    /// # Errors
    /// Fails if a part cannot be written. The caller then uses neither `place` nor `out`.
    /// [`Error::cancelled`] once the request is cancelled.
    fn write_from(
        &self,
        place: &mut Self::ResumePoint,
        enough: usize,
        cancel: &CancelToken,
        out: &mut Vec<u8>,
    ) -> Result<bool>;

    /// Returns the memory in bytes that the text's data occupies.
    fn own_bytes(&self) -> u64 {
        0
    }

    /// Returns the memory in bytes that `place` occupies.
    fn progress_bytes(&self, _place: &Self::ResumePoint) -> u64 {
        0
    }
}

/// An open file whose content is a resumable text.
pub struct StreamedText<T: ResumableText> {
    text: T,
    /// Length of the whole text in bytes.
    length: u64,
    state: Mutex<ReaderPosition<T::ResumePoint>>,
}

/// The state of an open file between two reads: the position of the writer, and the piece of the
/// text that was written last.
struct ReaderPosition<P> {
    /// The position of the writer; `None` before the first read.
    place: Option<P>,
    /// Offset of `piece` in the text.
    start: u64,
    /// The piece of the text that was written last.
    piece: Vec<u8>,
    /// Whether the text ends after `piece`.
    is_at_end: bool,
}

impl<P> Default for ReaderPosition<P> {
    fn default() -> Self {
        ReaderPosition {
            place: None,
            start: 0,
            piece: Vec::new(),
            is_at_end: false,
        }
    }
}

/// Amount of text to write at a time, in bytes.
const PIECE: usize = 64 << 10;

impl<T: ResumableText> StreamedText<T> {
    /// Creates a file with the text `text`, which has `length` bytes.
    pub fn new(text: T, length: u64) -> Self {
        StreamedText {
            text,
            length,
            state: Mutex::default(),
        }
    }

    /// Returns the resumable text of the file.
    #[cfg(test)]
    pub fn text(&self) -> &T {
        &self.text
    }

    /// Locks the state of the open file. Resets the state if a panic has poisoned the lock.
    fn lock_state(&self) -> MutexGuard<'_, ReaderPosition<T::ResumePoint>> {
        self.without_poison(lock(&self.state))
    }

    /// Resets the locked state to the state before the first read if a panic has poisoned the lock.
    fn without_poison<'a>(
        &'a self,
        mut state: MutexGuard<'a, ReaderPosition<T::ResumePoint>>,
    ) -> MutexGuard<'a, ReaderPosition<T::ResumePoint>> {
        if self.state.is_poisoned() {
            *state = ReaderPosition::default();
            self.state.clear_poison();
        }
        state
    }
}

impl<P> ReaderPosition<P> {
    /// Creates a state in which no text is written yet. The writer is at the position `place`,
    /// whose offset in the text is `start`.
    fn from_resume_point((place, start): (P, u64)) -> Self {
        ReaderPosition {
            place: Some(place),
            start,
            ..ReaderPosition::default()
        }
    }

    /// Returns the offset in the text where `piece` ends.
    fn end(&self) -> u64 {
        self.start + to_u64(self.piece.len())
    }

    /// Returns the bytes of `piece` from `offset` of the text on; empty if `offset` is not in
    /// `piece`.
    fn piece_from(&self, offset: u64) -> &[u8] {
        let within = offset.checked_sub(self.start).map(to_usize);
        match within {
            Some(Ok(within)) => self.piece.get(within..).unwrap_or_default(),
            _ => &[],
        }
    }

    /// Replaces `piece` with the next piece of the text, which has at least `enough` bytes unless
    /// the text ends.
    fn advance<T: ResumableText<ResumePoint = P>>(
        &mut self,
        (text, length): (&T, u64),
        enough: usize,
        cancel: &CancelToken,
    ) -> Result<()> {
        self.start = self.end();
        self.piece.clear();
        let place = self.place.get_or_insert_with(|| text.begin());
        match text.write_from(place, enough, cancel, &mut self.piece) {
            Ok(is_more) => {
                self.is_at_end = !is_more;
                if self.end() > length || self.is_at_end && self.end() < length {
                    *self = ReaderPosition::default();
                    let what = "text: it has changed since it was counted";
                    return Err(Error::corrupt(what, None));
                }
                Ok(())
            }
            Err(error) => {
                *self = ReaderPosition::default();
                Err(error)
            }
        }
    }

    /// Drops the part of the state that a repeated read at `offset` does not need, after a read
    /// failed or was cancelled.
    fn keep_piece_for(&mut self, offset: u64) {
        if offset < self.start {
            *self = ReaderPosition::default();
        } else if offset <= self.end() {
            self.release_before(offset);
        }
    }

    /// Drops the bytes of `piece` before `offset` of the text, unless the remaining bytes fill at
    /// least half of the buffer.
    fn release_before(&mut self, offset: u64) {
        let rest = self.piece_from(offset);
        if rest.len() < self.piece.capacity() / 2 {
            self.piece = rest.to_vec();
            self.start = offset;
        }
    }
}

impl<T: ResumableText> View for StreamedText<T> {
    fn length(&self) -> u64 {
        self.length
    }

    fn is_uncached(&self) -> bool {
        !self.text.has_resume_points()
    }

    fn own_bytes(&self) -> u64 {
        let state = self.lock_state();
        let place = state.place.as_ref();
        let place = place.map_or(0, |place| self.text.progress_bytes(place));
        let piece = to_u64(state.piece.capacity());
        self.text
            .own_bytes()
            .saturating_add(place)
            .saturating_add(piece)
    }

    fn forget(&self) {
        *self.lock_state() = ReaderPosition::default();
    }

    fn read_for(&self, offset: u64, length: usize, cancel: &CancelToken) -> Result<Bytes> {
        // Another read may hold the lock while it waits for a server.
        let mut state = self.without_poison(cancel.lock(&self.state)?);
        if offset < state.start {
            *state = self
                .text
                .nearest_resume_point(offset)
                .map_or_else(ReaderPosition::default, ReaderPosition::from_resume_point);
        }
        if offset > state.end()
            && let Some((place, start)) = self.text.nearest_resume_point(offset)
            && start > state.end()
        {
            *state = ReaderPosition::from_resume_point((place, start));
        }
        let mut out = Vec::with_capacity(length.min(PIECE));
        while out.len() < length {
            let next = offset + to_u64(out.len());
            let rest = state.piece_from(next);
            let taken = rest.len().min(length - out.len());
            if taken > 0 {
                out.extend_from_slice(&rest[..taken]);
                continue;
            }
            if state.is_at_end {
                break;
            }
            // Writes at most the bytes that the read needs, or that it must skip to reach its
            // offset.
            let enough = match next.saturating_sub(state.end()) {
                0 => length - out.len(),
                ahead => to_usize(ahead).unwrap_or(PIECE),
            };
            let advanced = cancel.check_cancelled();
            let text = (&self.text, self.length);
            match advanced.and_then(|()| state.advance(text, enough.min(PIECE), cancel)) {
                Ok(()) => {}
                // A read that returned fewer bytes would look like the end of the file.
                Err(error) => {
                    state.keep_piece_for(offset);
                    return Err(error);
                }
            }
        }
        state.release_before(offset + to_u64(out.len()));
        Ok(out.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use h5fs_reader::memory::cancel::Canceller;
    use std::sync::atomic::{AtomicU32, Ordering};

    /// A text of numbers of seven digits, one on each line, and the result at the end.
    struct NumberLines {
        count: u32,
        end: Result<()>,
        begun: AtomicU32,
        written: AtomicU32,
        /// A number that cannot be written, and how many attempts fail.
        failing: (u32, AtomicU32),
        /// The number at which the read is cancelled.
        cancelling: Option<(u32, Canceller)>,
    }

    impl ResumableText for NumberLines {
        type ResumePoint = u32;

        fn begin(&self) -> u32 {
            self.begun.fetch_add(1, Ordering::Relaxed);
            0
        }

        fn write_from(
            &self,
            place: &mut u32,
            enough: usize,
            _: &CancelToken,
            out: &mut Vec<u8>,
        ) -> Result<bool> {
            while out.len() < enough && *place < self.count {
                let (number, times) = &self.failing;
                let left = times.load(Ordering::Relaxed);
                if place == number && left > 0 {
                    times.store(left - 1, Ordering::Relaxed);
                    return Err(Error::NotFound);
                }
                assert_ne!(*place, u32::MAX - 1, "on purpose");
                if let Some((_, asked)) = self.cancelling.as_ref().filter(|(at, _)| at == place) {
                    asked.cancel();
                }
                out.extend_from_slice(format!("{place:07}\n").as_bytes());
                self.written.fetch_add(1, Ordering::Relaxed);
                *place += 1;
            }
            if *place < self.count {
                Ok(true)
            } else {
                self.end.clone().map(|()| false)
            }
        }
    }

    fn numbers(count: u32, end: Result<()>) -> StreamedText<NumberLines> {
        let text = NumberLines {
            count,
            end,
            begun: AtomicU32::new(0),
            written: AtomicU32::new(0),
            failing: (0, AtomicU32::new(0)),
            cancelling: None,
        };
        StreamedText::new(text, 8 * u64::from(count))
    }

    fn begun(text: &StreamedText<NumberLines>) -> u32 {
        text.text().begun.load(Ordering::Relaxed)
    }

    #[test]
    fn backward_reads_write_the_text_again() {
        let text = numbers(100_000, Ok(()));
        for at in (0..800_000).step_by(80_000) {
            let part = text.read_at(at, 80_000).unwrap();
            assert_eq!(part.len(), 80_000);
            assert_eq!(&part[..8], format!("{:07}\n", at / 8).as_bytes());
        }
        assert!(text.read_at(800_000, 10).unwrap().is_empty());
        assert_eq!(text.text().written.load(Ordering::Relaxed), 100_000);
        assert_eq!(begun(&text), 1);
        assert_eq!(
            &text.read_at(79_992, 16).unwrap()[..],
            b"0009999\n0010000\n"
        );
        assert_eq!(begun(&text), 2);
    }

    #[test]
    fn reads_of_any_length_return_each_byte_once() {
        let text = numbers(5_000, Ok(()));
        let whole = numbers(5_000, Ok(())).read_at(0, 50_000).unwrap();
        let mut at = 0;
        for length in (1..).map(|step| step * 7 % 300 + 1) {
            let part = text.read_at(at as u64, length).unwrap();
            assert_eq!(part[..], whole[at..whole.len().min(at + length)]);
            at += part.len();
            if part.is_empty() {
                break;
            }
        }
        assert_eq!((at, begun(&text)), (40_000, 1));
    }

    #[test]
    fn an_open_text_keeps_little_memory() {
        let text = numbers(100_000, Ok(()));
        assert_eq!(text.own_bytes(), 0);
        assert_eq!(begun(&text), 0);
        for (at, length) in [(0, 1), (1, 131_072), (131_073, 4), (600_000, 77)] {
            text.read_at(at, length).unwrap();
            assert!(text.own_bytes() < 32, "{}", text.own_bytes());
        }
        text.forget();
        assert_eq!(&text.read_at(600_080, 8).unwrap()[..], b"0075010\n");
    }

    #[test]
    fn an_error_is_not_the_end_of_the_text() {
        let text = numbers(2, Err(Error::NotFound));
        assert_eq!(&text.read_at(0, 8).unwrap()[..], b"0000000\n");
        for offset in [0, 8, 16] {
            assert!(matches!(text.read_at(offset, 100), Err(Error::NotFound)));
        }
    }

    #[test]
    fn a_failed_read_can_be_repeated() {
        let mut text = numbers(4, Ok(()));
        text.text.failing = (2, AtomicU32::new(2));
        assert!(text.read_at(0, 100).is_err());
        assert!(text.read_at(16, 100).is_err());
        assert_eq!(&text.read_at(16, 100).unwrap()[..], b"0000002\n0000003\n");
        assert_eq!(begun(&text), 3);
    }

    /// A read is cancelled between two pieces, and then repeated.
    #[test]
    fn a_cancelled_read_can_be_repeated() {
        // One read begins within the last piece, the other one skips a part of the text.
        for (offset, length) in [(12, 600_000), (600_000, 9)] {
            let mut text = numbers(100_000, Ok(()));
            let asked = Canceller::default();
            let token = asked.token();
            text.text.cancelling = Some((20_000, asked));
            text.read_at(3, 9).unwrap();
            let broken_off = text.read_for(offset, length, &token);
            assert!(broken_off.is_err_and(|error| error.is_cancelled()));
            let again = text.read_at(offset, 9).unwrap();
            let whole = format!("{:07}\n{:07}\n", offset / 8, offset / 8 + 1);
            let from = usize::try_from(offset % 8).unwrap();
            assert_eq!(again[..], whole.as_bytes()[from..from + 9], "{offset}");
        }
    }

    #[test]
    fn a_cancelled_read_does_not_wait_for_another() {
        let text = numbers(2, Ok(()));
        let canceller = Canceller::default();
        let token = canceller.token();
        canceller.cancel();
        let held = text.lock_state();
        let broken_off = text.read_for(0, 8, &token);
        assert!(broken_off.is_err_and(|error| error.is_cancelled()));
        drop(held);
        assert_eq!(&text.read_at(0, 8).unwrap()[..], b"0000000\n");
    }

    #[test]
    fn a_text_is_restarted_after_a_panic() {
        let text = numbers(u32::MAX, Ok(()));
        text.read_at(0, 8).unwrap();
        text.lock_state().place = Some(u32::MAX - 1);
        let panics = || text.read_at(8, 1).is_ok();
        assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(panics)).is_err());
        assert_eq!(&text.read_at(8, 8).unwrap()[..], b"0000001\n");
    }
}
