//! A zlib stream (RFC 1950, RFC 1951) decoded part by part, by a decoder that is plain data: a copy of it
//! is a place from which the stream can be decoded again.
//!
//! Written for this because libdeflate decodes only whole streams, and no other decoder is both fast and
//! can be copied, or begin where what stands before is not known. What was decoded before stands in front of the
//! room for more, so that the decoder has no window of its own.

#![expect(
    clippy::arithmetic_side_effects,
    clippy::as_conversions,
    reason = "numbers here are bounded by a mask, by a table or by the length of a slice"
)]

mod adler;
mod ahead;
mod codes;
mod fast;
mod pairs;
mod reader;
mod symbol;

use adler::Adler;
use codes::{
    DISTANCE_TABLE, END, LENGTH_TABLE, LITERAL, LITERAL_TABLE, SPECIAL, build, distance, literal,
    lookup, low,
};
use pairs::Pairs;
pub use reader::Reader;
use symbol::Symbol;

use crate::error::{Error, Result};

/// Bytes of what was decoded before that later bytes may refer to.
pub const WINDOW: usize = 32 << 10;

/// Bits of a code that the first table looks at.
const LITERAL_BITS: u32 = 10;
const DISTANCE_BITS: u32 = 8;
const LENGTH_BITS: u32 = 7;

/// The order in which the lengths of the code of code lengths are stored.
const ORDER: [u8; 19] = [
    16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15,
];

/// The decoder. A copy goes on where the original was.
#[derive(Clone)]
pub struct Inflater {
    stage: Stage,
    /// Bits that were read and not used, the next one lowest.
    bits: u64,
    count: u32,
    is_last: bool,
    literals: Box<[u32; LITERAL_TABLE]>,
    distances: Box<[u32; DISTANCE_TABLE]>,
    /// Whether these are the tables of the fixed codes.
    is_fixed: bool,
    pairs: Pairs,
    sum: Adler,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    Header,
    Block,
    /// Bytes that are stored as they are.
    Stored(usize),
    Codes,
    /// The rest of a match for which there was no room.
    Match {
        length: usize,
        distance: usize,
    },
    Trailer,
    Done,
}

/// How far a step has come.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// Bytes of the input that are done with.
    pub used: usize,
    /// Bytes written.
    pub written: usize,
    /// Whether the stream has ended, its checksum being right.
    pub is_done: bool,
    /// Why there is nothing behind what was written.
    damage: Option<Error>,
}

/// Bits of so many bytes.
fn bits(bytes: usize) -> i64 {
    8 * bytes as i64
}

type Taken<T> = std::result::Result<T, Stop>;

/// Why decoding stops.
enum Stop {
    /// The input is at its end.
    Starved,
    Damaged(&'static str),
}

impl Default for Inflater {
    fn default() -> Self {
        Inflater {
            stage: Stage::Header,
            bits: 0,
            count: 0,
            is_last: false,
            literals: Box::new([SPECIAL; LITERAL_TABLE]),
            distances: Box::new([SPECIAL; DISTANCE_TABLE]),
            is_fixed: false,
            pairs: Pairs::default(),
            sum: Adler::default(),
        }
    }
}

/// What a call of `inflate` works on.
struct Work<'a, S> {
    input: &'a [u8],
    used: usize,
    output: &'a mut [S],
    at: usize,
}

impl Inflater {
    /// Decodes from `input` into `output` from its byte `at` on, until it is full, the stream ends, or the
    /// input does. In front of `at` stand the bytes decoded before, the last [`WINDOW`] of them at
    /// least.
    ///
    /// # Errors
    /// `Corrupt` for a damaged stream.
    pub fn inflate(&mut self, input: &[u8], output: &mut [u8], at: usize) -> Result<Step> {
        let step = self.inflate_until(input, output, at, i64::MAX);
        match step.damage {
            Some(damage) => Err(damage),
            None => Ok(step),
        }
    }

    /// As `inflate`, but only to the first block that begins at bit `end` of the input, or behind.
    fn inflate_until<S: Symbol>(
        &mut self,
        input: &[u8],
        output: &mut [S],
        at: usize,
        end: i64,
    ) -> Step {
        let mut work = Work {
            input,
            used: 0,
            output,
            at,
        };
        let stop = loop {
            let written = work.at;
            let step = match self.stage {
                Stage::Header => self.header(&mut work),
                Stage::Block if self.bit(work.used) >= end => break None,
                Stage::Block => self.block(&mut work),
                Stage::Stored(left) => self.stored(&mut work, left),
                Stage::Codes => self.codes(&mut work),
                Stage::Match { length, distance } => self.rest(&mut work, length, distance),
                Stage::Trailer => self.trailer(&mut work),
                Stage::Done => break None,
            };
            let new = work.output.get(written..work.at);
            S::add_to(&mut self.sum, new.unwrap_or_default());
            if let Err(stop) = step {
                break Some(stop);
            }
            let is_full = work.at >= work.output.len();
            if is_full
                && matches!(
                    self.stage,
                    Stage::Stored(1..) | Stage::Codes | Stage::Match { .. }
                )
            {
                // Codes may go on with the end of the stream: only a byte more tells.
                break None;
            }
        };
        self.bits &= low(self.count);
        let damage = match stop {
            Some(Stop::Damaged(what)) => Some(Error::corrupt(format!("zlib: {what}"), None)),
            _ => None,
        };
        Step {
            used: work.used,
            written: work.at - at,
            is_done: self.stage == Stage::Done,
            damage,
        }
    }

    /// The bit of the input that comes next, when so many bytes of it were read; before its first one where bits that were
    /// read before are left.
    fn bit(&self, used: usize) -> i64 {
        bits(used) - i64::from(self.count)
    }

    /// Whether a block has ended and another one follows.
    fn is_between_blocks(&self) -> bool {
        self.stage == Stage::Block && !self.is_last
    }

    /// Reads bits until there are 56 of them, or the input ends.
    fn refill<S>(&mut self, work: &mut Work<'_, S>) {
        match work
            .input
            .get(work.used..)
            .and_then(|rest| rest.first_chunk::<8>())
        {
            Some(&next) => {
                self.bits |= u64::from_le_bytes(next) << self.count;
                work.used += ((63 - self.count) >> 3) as usize;
                self.count |= 56;
            }
            None => {
                while self.count < 56
                    && let Some(&byte) = work.input.get(work.used)
                {
                    self.bits |= u64::from(byte) << self.count;
                    work.used += 1;
                    self.count += 8;
                }
            }
        }
    }

    fn take(&mut self, count: u32) -> Taken<u32> {
        if count > self.count {
            return Err(Stop::Starved);
        }
        let bits = (self.bits & low(count)) as u32;
        self.bits >>= count;
        self.count -= count;
        Ok(bits)
    }

    /// Does `parse`, or nothing where the input ends within it.
    fn whole<S>(
        &mut self,
        work: &mut Work<'_, S>,
        parse: impl FnOnce(&mut Self, &mut Work<'_, S>) -> Taken<()>,
    ) -> Taken<()> {
        let before = (
            self.bits & low(self.count),
            self.count,
            work.used,
            self.is_last,
        );
        let parsed = parse(self, work);
        if let Err(Stop::Starved) = parsed {
            (self.bits, self.count, work.used, self.is_last) = before;
        }
        parsed
    }

    fn header<S>(&mut self, work: &mut Work<'_, S>) -> Taken<()> {
        self.whole(work, |this, work| {
            this.refill(work);
            let header = this.take(16)?.swap_bytes() >> 16;
            if header % 31 != 0 || header >> 8 & 15 != 8 || header >> 12 > 7 || header & 0x20 != 0 {
                return Err(Stop::Damaged("no header"));
            }
            this.stage = Stage::Block;
            Ok(())
        })
    }

    fn trailer<S>(&mut self, work: &mut Work<'_, S>) -> Taken<()> {
        self.whole(work, |this, work| {
            this.refill(work);
            this.take(this.count % 8)?;
            let stored = this.take(32)?.swap_bytes();
            if stored != this.sum.value() {
                return Err(Stop::Damaged("the checksum is another"));
            }
            this.stage = Stage::Done;
            Ok(())
        })
    }

    fn block<S>(&mut self, work: &mut Work<'_, S>) -> Taken<()> {
        if self.is_last {
            self.stage = Stage::Trailer;
            return Ok(());
        }
        self.whole(work, |this, work| {
            this.refill(work);
            this.is_last = this.take(1)? == 1;
            this.stage = match this.take(2)? {
                0 => {
                    this.take(this.count % 8)?;
                    this.refill(work);
                    let (length, inverse) = (this.take(16)?, this.take(16)?);
                    if length ^ inverse != 0xffff {
                        return Err(Stop::Damaged("a stored block's length"));
                    }
                    Stage::Stored(length as usize)
                }
                1 => {
                    this.fixed()?;
                    Stage::Codes
                }
                2 => {
                    this.dynamic(work)?;
                    Stage::Codes
                }
                _ => return Err(Stop::Damaged("no such kind of block")),
            };
            Ok(())
        })
        .inspect_err(|_| self.stage = Stage::Block)
    }

    fn stored<S: Symbol>(&mut self, work: &mut Work<'_, S>, mut left: usize) -> Taken<()> {
        // What was read ahead comes first: whole bytes, since the block begins with one.
        self.bits &= low(self.count);
        while self.count >= 8
            && left > 0
            && let Some(room) = work.output.get_mut(work.at)
        {
            *room = S::literal(self.bits as u8);
            self.bits >>= 8;
            self.count -= 8;
            left -= 1;
            work.at += 1;
        }
        let rest = work.input.get(work.used..).unwrap_or_default();
        let room = work.output.get_mut(work.at..).unwrap_or_default();
        if self.count == 0 {
            let count = left.min(rest.len()).min(room.len());
            if let (Some(room), Some(rest)) = (room.get_mut(..count), rest.get(..count)) {
                S::copy_bytes(room, rest);
            }
            work.used += count;
            work.at += count;
            left -= count;
        }
        let is_full = work.at >= work.output.len();
        self.stage = if left == 0 {
            Stage::Block
        } else {
            Stage::Stored(left)
        };
        if left == 0 || is_full {
            Ok(())
        } else {
            Err(Stop::Starved)
        }
    }

    fn fixed(&mut self) -> Taken<()> {
        if self.is_fixed {
            return Ok(());
        }
        let mut lengths = [8; 288];
        lengths
            .iter_mut()
            .skip(144)
            .take(112)
            .for_each(|length| *length = 9);
        lengths
            .iter_mut()
            .skip(256)
            .take(24)
            .for_each(|length| *length = 7);
        self.pairs.forget();
        build(&mut *self.literals, LITERAL_BITS, &lengths, literal)?;
        build(&mut *self.distances, DISTANCE_BITS, &[5; 32], distance)?;
        self.is_fixed = true;
        Ok(())
    }

    fn dynamic<S>(&mut self, work: &mut Work<'_, S>) -> Taken<()> {
        let literals = self.take(5)? as usize + 257;
        let distances = self.take(5)? as usize + 1;
        let count = self.take(4)? as usize + 4;
        if literals > 286 || distances > 30 {
            return Err(Stop::Damaged("too many symbols"));
        }
        let mut lengths = [0_u8; 19];
        for &place in ORDER.iter().take(count) {
            self.refill(work);
            let length = self.take(3)? as u8;
            if let Some(slot) = lengths.get_mut(usize::from(place)) {
                *slot = length;
            }
        }
        let mut table = [SPECIAL; LENGTH_TABLE];
        build(&mut table, LENGTH_BITS, &lengths, |symbol| {
            LITERAL | symbol << 16
        })?;
        let mut lengths = [0_u8; 286 + 30];
        let all = lengths.get_mut(..literals + distances).unwrap_or_default();
        let mut filled = 0;
        while filled < all.len() {
            self.refill(work);
            let entry = table
                .get(self.bits as usize & (LENGTH_TABLE - 1))
                .copied()
                .unwrap_or(SPECIAL);
            if entry & SPECIAL != 0 {
                // Unknown bits are zeros: what they mean is not known either.
                let starved = self.count < LENGTH_BITS;
                return Err(if starved {
                    Stop::Starved
                } else {
                    Stop::Damaged("a code's length")
                });
            }
            self.take(entry & 15)?;
            let before = filled
                .checked_sub(1)
                .and_then(|place| all.get(place))
                .copied();
            let (length, times) = match (entry >> 16 & 31, before) {
                (16, None) => return Err(Stop::Damaged("a code's length")),
                (16, Some(before)) => (before, self.take(2)? + 3),
                (17, _) => (0, self.take(3)? + 3),
                (18, _) => (0, self.take(7)? + 11),
                (length, _) => (length as u8, 1),
            };
            let end = filled + times as usize;
            let slots = all.get_mut(filled..end);
            slots
                .ok_or(Stop::Damaged("too many lengths of codes"))?
                .fill(length);
            filled = end;
        }
        let (literals, distances) = all.split_at_checked(literals).unwrap_or_default();
        if literals.get(256).is_none_or(|&length| length == 0) {
            return Err(Stop::Damaged("a block without an end"));
        }
        self.pairs.forget();
        self.is_fixed = false;
        build(&mut *self.literals, LITERAL_BITS, literals, literal)?;
        build(&mut *self.distances, DISTANCE_BITS, distances, distance)
    }

    /// Decodes literals and matches until the block ends or there is no room for more.
    fn codes<S: Symbol>(&mut self, work: &mut Work<'_, S>) -> Taken<()> {
        if !self.fast(work)? {
            while work.at < work.output.len() && self.stage == Stage::Codes {
                self.whole(work, Self::one)?;
            }
        }
        Ok(())
    }

    /// Decodes one literal or match, or the block's end.
    fn one<S: Symbol>(&mut self, work: &mut Work<'_, S>) -> Taken<()> {
        self.refill(work);
        let entry = self.entry(&*self.literals, LITERAL_BITS)?;
        if entry & SPECIAL != 0 {
            self.take(entry & 15)?;
            self.stage = Stage::Block;
            return Ok(());
        }
        if entry & LITERAL != 0 {
            self.take(entry & 15)?;
            if let Some(room) = work.output.get_mut(work.at) {
                *room = S::literal((entry >> 16) as u8);
            }
            work.at += 1;
            return Ok(());
        }
        let length = self.value(entry)?;
        let entry = self.entry(&*self.distances, DISTANCE_BITS)?;
        let distance = self.value(entry)?;
        if distance > work.at {
            return Err(Stop::Damaged("a distance beyond the beginning"));
        }
        self.rest(work, length, distance)
    }

    /// The entry of the next code; only that of the block's end is special.
    fn entry(&self, table: &[u32], main: u32) -> Taken<u32> {
        let entry = lookup(table, main, self.bits & low(self.count));
        match entry & SPECIAL != 0 && entry & END != END {
            false => Ok(entry),
            // Bits that are not there are taken for zeros.
            true if self.count < 15 => Err(Stop::Starved),
            true => Err(Stop::Damaged("no such code")),
        }
    }

    fn value(&mut self, entry: u32) -> Taken<usize> {
        self.take(entry & 15)?;
        let extra = self.take(entry >> 8 & 15)?;
        Ok(((entry >> 16) + extra) as usize)
    }

    /// Copies a match as far as there is room.
    fn rest<S: Symbol>(
        &mut self,
        work: &mut Work<'_, S>,
        length: usize,
        distance: usize,
    ) -> Taken<()> {
        let count = length.min(work.output.len().saturating_sub(work.at));
        for at in work.at..work.at + count {
            let byte = work.output.get(at.wrapping_sub(distance)).copied();
            if let (Some(byte), Some(room)) = (byte, work.output.get_mut(at)) {
                *room = byte;
            }
        }
        work.at += count;
        self.stage = match length - count {
            0 => Stage::Codes,
            length => Stage::Match { length, distance },
        };
        Ok(())
    }
}

#[cfg(test)]
mod tests;
