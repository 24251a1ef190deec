//! A text that is written while it is read.
//!
//! Such a text can be left after any part of it and gone on with later. From one read to the next
//! an open file keeps the place where the writing has come to, and what was written of the last
//! part and not yet asked for; before the first read it keeps nothing. No thread and no buffer
//! belongs to a text that is not being read. Reading on costs what writing costs; to go back is to
//! begin anew, or at the nearest place that the text knows.

use std::sync::{Mutex, MutexGuard};

use crate::array::{Bytes, CancelToken};
use crate::error::{Error, Result};
use crate::view::View;
use crate::wire::{to_u64, to_usize};

/// A text that is written part by part (an element, a line), and gone on with from any place
/// between two parts.
pub(crate) trait ResumableText: Send + Sync {
    /// A place between two parts.
    type Progress: Send;

    /// The place before the first part.
    fn begin(&self) -> Self::Progress;

    /// Whether it can be gone on with from places that are not those of the last read.
    fn has_places(&self) -> bool {
        false
    }

    /// A known place at or before byte `offset`, and the byte that it is at.
    fn near(&self, _offset: u64) -> Option<(Self::Progress, u64)> {
        None
    }

    /// Appends the parts from `place` on to `out`, at least one, until that has `enough` bytes, and
    /// moves `place` behind them; says whether there may be more. Not called again after it has
    /// said no.
    ///
    /// # Errors
    /// Fails if a part cannot be written. Neither `place` nor `out` is used any more then.
    fn write_on(
        &self,
        place: &mut Self::Progress,
        enough: usize,
        out: &mut Vec<u8>,
    ) -> Result<bool>;

    /// Bytes of memory that the text takes for itself.
    fn own_bytes(&self) -> u64 {
        0
    }

    /// Bytes of memory that `place` takes.
    fn progress_bytes(&self, _place: &Self::Progress) -> u64 {
        0
    }
}

/// An open file that shows such a text.
pub(crate) struct Streamed<T: ResumableText> {
    text: T,
    /// Bytes of all parts.
    length: u64,
    state: Mutex<State<T::Progress>>,
}

/// How far the reader is.
struct State<P> {
    /// Where the writing has come to; `None` before the first read.
    place: Option<P>,
    /// Where `piece` begins in the text.
    start: u64,
    /// The part that was written last.
    piece: Vec<u8>,
    /// Whether nothing comes behind `piece`.
    is_whole: bool,
}

impl<P> Default for State<P> {
    fn default() -> Self {
        State {
            place: None,
            start: 0,
            piece: Vec::new(),
            is_whole: false,
        }
    }
}

/// Bytes that are written at a time.
const PIECE: usize = 64 << 10;

impl<T: ResumableText> Streamed<T> {
    /// A file that shows `text`, of so many bytes.
    pub(crate) fn new(text: T, length: u64) -> Self {
        Streamed {
            text,
            length,
            state: Mutex::default(),
        }
    }

    /// The text itself.
    #[cfg(test)]
    pub(crate) fn text(&self) -> &T {
        &self.text
    }

    /// The state; where a panic left it between two parts, that before the first read.
    fn state(&self) -> MutexGuard<'_, State<T::Progress>> {
        self.state.lock().unwrap_or_else(|poisoned| {
            let mut state = poisoned.into_inner();
            *state = State::default();
            self.state.clear_poison();
            state
        })
    }
}

impl<P> State<P> {
    /// The state before the part that is written next, `place`, at byte `start`.
    fn at((place, start): (P, u64)) -> Self {
        State {
            place: Some(place),
            start,
            ..State::default()
        }
    }

    /// Where the piece ends.
    fn end(&self) -> u64 {
        self.start + to_u64(self.piece.len())
    }

    /// The rest of the piece from `offset` of the text on; empty where that is not in it.
    fn rest(&self, offset: u64) -> &[u8] {
        let within = offset.checked_sub(self.start).map(to_usize);
        match within {
            Some(Ok(within)) => self.piece.get(within..).unwrap_or_default(),
            _ => &[],
        }
    }

    /// Writes the next piece, of `enough` bytes or a part more, in the place of the present one.
    fn advance<T: ResumableText<Progress = P>>(
        &mut self,
        (text, length): (&T, u64),
        enough: usize,
    ) -> Result<()> {
        self.start = self.end();
        self.piece.clear();
        let place = self.place.get_or_insert_with(|| text.begin());
        match text.write_on(place, enough, &mut self.piece) {
            Ok(is_more) => {
                self.is_whole = !is_more;
                if self.end() > length || self.is_whole && self.end() < length {
                    *self = State::default();
                    let what = "text: has changed since it was counted";
                    return Err(Error::corrupt(what, None));
                }
                Ok(())
            }
            Err(error) => {
                *self = State::default();
                Err(error)
            }
        }
    }

    /// Keeps what a read at `offset`, which was broken off, needs once more.
    fn keep_for(&mut self, offset: u64) {
        if offset < self.start {
            *self = State::default();
        } else if offset <= self.end() {
            self.release_before(offset);
        }
    }

    /// Lets go of all of the piece before `offset` of the text, and of a buffer that is far too
    /// large for the rest.
    fn release_before(&mut self, offset: u64) {
        let rest = self.rest(offset);
        if rest.len() < self.piece.capacity() / 2 {
            self.piece = rest.to_vec();
            self.start = offset;
        }
    }
}

impl<T: ResumableText> View for Streamed<T> {
    fn length(&self) -> u64 {
        self.length
    }

    fn is_uncached(&self) -> bool {
        !self.text.has_places()
    }

    fn own_bytes(&self) -> u64 {
        let state = self.state();
        let place = state.place.as_ref();
        let place = place.map_or(0, |place| self.text.progress_bytes(place));
        let piece = to_u64(state.piece.capacity());
        self.text
            .own_bytes()
            .saturating_add(place)
            .saturating_add(piece)
    }

    fn forget(&self) {
        *self.state() = State::default();
    }

    fn read_for(&self, offset: u64, length: usize, cancel: &CancelToken) -> Result<Bytes> {
        let mut state = self.state();
        if offset < state.start {
            *state = self
                .text
                .near(offset)
                .map_or_else(State::default, State::at);
        }
        if offset > state.end()
            && let Some((place, start)) = self.text.near(offset)
            && start > state.end()
        {
            *state = State::at((place, start));
        }
        let mut out = Vec::with_capacity(length.min(PIECE));
        while out.len() < length {
            let next = offset + to_u64(out.len());
            let rest = state.rest(next);
            let taken = rest.len().min(length - out.len());
            if taken > 0 {
                out.extend_from_slice(&rest[..taken]);
                continue;
            }
            if state.is_whole {
                break;
            }
            // No more than is asked for, or is passed over on the way there.
            let enough = match next.saturating_sub(state.end()) {
                0 => length - out.len(),
                ahead => to_usize(ahead).unwrap_or(PIECE),
            };
            let advanced = cancel.go_on();
            let text = (&self.text, self.length);
            match advanced.and_then(|()| state.advance(text, enough.min(PIECE))) {
                Ok(()) => {}
                // Fewer bytes would be the end of the file.
                Err(error) => {
                    state.keep_for(offset);
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
    use crate::memory::cancel::Canceller;
    use std::sync::atomic::{AtomicU32, Ordering};

    /// Numbers of seven digits and a line break each, and how they end.
    struct Numbers {
        count: u32,
        end: Result<()>,
        begun: AtomicU32,
        written: AtomicU32,
        /// The number that cannot be written, the first so many times.
        failing: (u32, AtomicU32),
        /// The number at which the reader is told to end.
        cancelling: Option<(u32, Canceller)>,
    }

    impl ResumableText for Numbers {
        type Progress = u32;

        fn begin(&self) -> u32 {
            self.begun.fetch_add(1, Ordering::Relaxed);
            0
        }

        fn write_on(&self, place: &mut u32, enough: usize, out: &mut Vec<u8>) -> Result<bool> {
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

    fn numbers(count: u32, end: Result<()>) -> Streamed<Numbers> {
        let text = Numbers {
            count,
            end,
            begun: AtomicU32::new(0),
            written: AtomicU32::new(0),
            failing: (0, AtomicU32::new(0)),
            cancelling: None,
        };
        Streamed::new(text, 8 * u64::from(count))
    }

    fn begun(text: &Streamed<Numbers>) -> u32 {
        text.text().begun.load(Ordering::Relaxed)
    }

    #[test]
    fn reading_on_writes_once_and_going_back_begins_anew() {
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
    fn reads_of_any_length_meet_each_byte_once() {
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
    fn an_open_text_keeps_a_part_at_most() {
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
    fn an_error_is_no_end() {
        let text = numbers(2, Err(Error::NotFound));
        assert_eq!(&text.read_at(0, 8).unwrap()[..], b"0000000\n");
        for offset in [0, 8, 16] {
            assert!(matches!(text.read_at(offset, 100), Err(Error::NotFound)));
        }
    }

    #[test]
    fn what_failed_can_be_read_later() {
        let mut text = numbers(4, Ok(()));
        text.text.failing = (2, AtomicU32::new(2));
        assert!(text.read_at(0, 100).is_err());
        assert!(text.read_at(16, 100).is_err());
        assert_eq!(&text.read_at(16, 100).unwrap()[..], b"0000002\n0000003\n");
        assert_eq!(begun(&text), 3);
    }

    /// A read that is told to end between two pieces, and asked for again.
    #[test]
    fn what_is_broken_off_is_read_as_it_is() {
        // Taken from the last piece first, and passed over on the way.
        for (offset, length) in [(12, 600_000), (600_000, 9)] {
            let mut text = numbers(100_000, Ok(()));
            let asked = Canceller::default();
            let token = asked.token();
            text.text.cancelling = Some((20_000, asked));
            text.read_at(3, 9).unwrap();
            let broken_off = text.read_for(offset, length, &token);
            assert!(broken_off.is_err_and(|error| error.is_unwanted()));
            let again = text.read_at(offset, 9).unwrap();
            let whole = format!("{:07}\n{:07}\n", offset / 8, offset / 8 + 1);
            let from = usize::try_from(offset % 8).unwrap();
            assert_eq!(again[..], whole.as_bytes()[from..from + 9], "{offset}");
        }
    }

    #[test]
    fn a_text_that_panics_is_begun_anew() {
        let text = numbers(u32::MAX, Ok(()));
        text.read_at(0, 8).unwrap();
        text.state().place = Some(u32::MAX - 1);
        let panics = || text.read_at(8, 1).is_ok();
        assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(panics)).is_err());
        assert_eq!(&text.read_at(8, 8).unwrap()[..], b"0000001\n");
    }
}
