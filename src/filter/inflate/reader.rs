//! A zlib stream as something to read from its beginning on, decoded by two threads.
//!
//! One goes on where the last round ended; the other begins somewhere ahead of it, where it finds a block. If the
//! first comes to that block, what the second made of it is taken over.

#![expect(
    clippy::arithmetic_side_effects,
    reason = "numbers here are bounded by the length of a slice"
)]

mod second;

use std::io::{self, Read};
use std::sync::Arc;
use std::time::Instant;

use second::{Begun, Second};

use super::{Inflater, WINDOW, bits};
use crate::error::Error;
use crate::wire::to_u64;

/// Stored bytes of a round.
const INPUT: usize = 3 << 18;

/// Decoded bytes of a round, for each of the threads.
const ROOM: usize = 1 << 20;

/// Stored bytes that are not worth a thread.
const FEW: usize = 64 << 10;

/// Rounds that the first thread does alone, at most, after the second was of no use.
const MOST_ALONE: u32 = 15;

/// The decoder of a stream.
pub struct Reader<R> {
    stored: R,
    /// Stored bytes that are not done with.
    input: Arc<Vec<u8>>,
    run: Run,
    /// Where what was not given begins.
    given: usize,
    second: Second,
    /// What the second thread is about to decode.
    begun: Option<Begun>,
    /// How often in a row it decoded nothing that could be taken over.
    vain: u32,
    /// Rounds for which it is not asked again.
    alone: u32,
    /// Why no more stored bytes can be had. What was decoded before is given first.
    failure: Option<io::Error>,
}

/// What a round goes on from, and makes.
struct Run {
    inflater: Inflater,
    /// A window, what was decoded behind it up to `end`, and room.
    output: Vec<u8>,
    end: usize,
    is_done: bool,
    /// Why there is nothing behind `end`.
    damage: Option<Error>,
}

impl<R: Read> Reader<R> {
    /// The stream that is `stored`, decoded by as many threads, two at most.
    pub fn new(stored: R, threads: usize) -> Self {
        Reader {
            stored,
            input: Arc::default(),
            run: Run {
                inflater: Inflater::default(),
                output: vec![0; WINDOW + 2 * ROOM],
                end: 0,
                is_done: false,
                damage: None,
            },
            given: 0,
            second: Second::new(threads),
            begun: None,
            vain: 0,
            alone: 0,
            failure: None,
        }
    }

    /// Decodes some more, what was decoded before being given; and lets the second thread begin with what comes
    /// after.
    fn round(&mut self) -> io::Result<()> {
        self.given = self.run.keep_window();
        let used = match self.begun.take() {
            Some(begun) => {
                let (used, is_taken) = self.run.by_two(&self.input, begun);
                self.vain = match is_taken {
                    true => 0,
                    false => self.vain.saturating_add(1),
                };
                self.alone = self.vain.saturating_sub(1).min(MOST_ALONE);
                used
            }
            None => self.run.forward(&self.input, 0, i64::MAX),
        };
        let read = self.refill(used);
        let decoded = self.run.end - self.given;
        if used == 0 && read == 0 && decoded == 0 && !self.run.is_done {
            return Err(self.end());
        }
        if let Some(left) = self.alone.checked_sub(1) {
            self.alone = left;
            return Ok(());
        }
        let reach = reach(self.input.len(), used, decoded);
        self.begun = reach.and_then(|reach| self.second.begin(&self.input, reach));
        Ok(())
    }

    /// Drops the stored bytes that are done with, and reads as many as are missing then; gives their number.
    fn refill(&mut self, used: usize) -> usize {
        let input = Arc::make_mut(&mut self.input);
        input.drain(..used);
        let before = input.len();
        let missing = to_u64(INPUT.saturating_sub(before));
        let read = self.stored.by_ref().take(missing).read_to_end(input);
        self.failure = read.err();
        input.len() - before
    }

    /// Why there is no more although the stream has not ended.
    fn end(&mut self) -> io::Error {
        let damage = self.run.damage.take().map(io::Error::other);
        let failure = damage.or_else(|| self.failure.take());
        failure.unwrap_or_else(|| io::ErrorKind::UnexpectedEof.into())
    }
}

/// Stored bytes for the first thread of the next round, as the last one used and decoded so many: half of them, or
/// as many as there is room for; `None` where a second thread does not pay.
fn reach(input: usize, used: usize, decoded: usize) -> Option<usize> {
    let fitting = used.saturating_mul(ROOM).checked_div(decoded)?;
    let reach = (input / 2).min(fitting / 8 * 7);
    (reach >= FEW).then_some(reach)
}

impl<R: Read> Read for Reader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.given == self.run.end && !self.run.is_done {
            self.round()?;
        }
        let decoded = self.run.output.get(self.given..self.run.end);
        let read = decoded.unwrap_or_default().read(buffer)?;
        self.given += read;
        Ok(read)
    }
}

impl Run {
    /// Moves the window to the front; gives where it ends.
    fn keep_window(&mut self) -> usize {
        let window = self.end.saturating_sub(WINDOW);
        self.output.copy_within(window..self.end, 0);
        self.end -= window;
        self.end
    }

    /// Decodes on from byte `used` of the input, up to a block that begins at bit `end` of it or behind. Gives the
    /// bytes that are done with.
    fn forward(&mut self, input: &[u8], used: usize, end: i64) -> usize {
        if self.damage.is_some() {
            return used;
        }
        let input = input.get(used..).unwrap_or_default();
        let room = self.output.len().min(self.end + ROOM);
        let output = self.output.get_mut(..room).unwrap_or_default();
        let end = end.saturating_sub(bits(used));
        let step = self.inflater.inflate_until(input, output, self.end, end);
        self.end += step.written;
        self.is_done = step.is_done;
        self.damage = step.damage;
        used + step.used
    }

    /// Decodes to where the second thread was to search, and on to the block that it has found. If one does begin
    /// there, waits for the part and takes it over. Gives the bytes that are done with, and whether it did.
    fn by_two(&mut self, input: &[u8], begun: Begun) -> (usize, bool) {
        let started = Instant::now();
        let mut used = self.forward(input, 0, begun.from());
        let mut is_met = false;
        if self.is_between_blocks()
            // Who searches for longer may not find anything.
            && let Some(start) = begun.found(started.elapsed())
        {
            used = self.forward(input, used, start);
            is_met = self.is_between_blocks() && self.inflater.bit(used) == start;
        }
        let part = begun.end(is_met);
        let taken =
            part.and_then(|part| part.take(&mut self.inflater, &mut self.output, &mut self.end));
        (taken.unwrap_or(used), taken.is_some())
    }

    fn is_between_blocks(&self) -> bool {
        self.damage.is_none() && self.inflater.is_between_blocks()
    }
}

#[cfg(test)]
mod tests;
