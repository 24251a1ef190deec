//! A part of a stream decoded before its turn comes, without what stands before it.
//!
//! Where a block begins is not written anywhere; it is searched for, by what the header of a block with codes of its own
//! must look like (RFC 1951, 3.2.7). What refers to bytes before the part is marked until they are known; once none of
//! the last 32 KiB is, decoding goes on as usual. That a block did begin there shows when the decoder that comes from the
//! beginning meets its first bit: the part is used then, and only then.

#![expect(
    clippy::arithmetic_side_effects,
    clippy::as_conversions,
    reason = "numbers here are bounded by a mask or by the length of a slice"
)]

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;

use super::symbol::{Marked, Symbol};
use super::{Inflater, ORDER, Stage, Step, WINDOW, Work};

/// Bytes in which a block is searched for: zlib's are shorter.
const SEARCHED: i64 = 256 << 10;

/// Symbols that are decoded between two looks at whether they are wanted still.
const STEP: usize = 64 << 10;

/// A part of a stream that begins with a block.
pub(super) struct Part {
    /// What it is decoded to, behind a window of marks.
    marked: Decoded<Marked>,
    /// Symbols at the end of it that are known.
    known: usize,
    /// What it is decoded to from there on, behind the window, once that is known.
    bytes: Option<Decoded<u8>>,
    /// The decoder where the part ends.
    inflater: Inflater,
    /// Bytes of the input that are done with.
    used: usize,
}

/// Decodes from the first block that begins at bit `from` of the input or behind, to the end of the input or of the
/// last block, at most `room` bytes; `None` where none is found, it is damaged, or the part is not wanted any more.
/// Tells the bit where the block begins as soon as it is `found`.
///
/// What is found and damaged was hardly ever a block. It is not searched for another one then: a stream may be full of
/// such.
pub(super) fn decode(
    input: &[u8],
    from: i64,
    room: usize,
    is_wanted: &AtomicBool,
    found: &Sender<i64>,
) -> Option<Part> {
    let bits = (from..from + 8 * SEARCHED).take_while(|_| is_wanted.load(Ordering::Relaxed));
    let mut starts = bits.filter(|&bit| may_begin(input, bit));
    let (start, block) = starts.find_map(|bit| Some((bit, Inflater::at_block(input, bit)?)))?;
    found.send(start).ok()?;
    Part::from(input, block, room, is_wanted)
}

impl Part {
    fn from(
        input: &[u8],
        (inflater, used): (Inflater, usize),
        room: usize,
        is_wanted: &AtomicBool,
    ) -> Option<Self> {
        let mut part = Part {
            marked: Decoded::behind(Marked::window().collect()),
            known: 0,
            bytes: None,
            inflater,
            used,
        };
        while part.len() + STEP <= room && is_wanted.load(Ordering::Relaxed) {
            let step = part.step(input);
            if step.damage.is_some() {
                return None;
            }
            let is_stuck = step.used == 0 && step.written == 0;
            if is_stuck || part.inflater.stage == Stage::Block && part.inflater.is_last {
                break;
            }
        }
        is_wanted.load(Ordering::Relaxed).then_some(part)
    }

    /// Bytes it is decoded to.
    fn len(&self) -> usize {
        let bytes = self.bytes.as_ref().map_or(0, |bytes| bytes.decoded().len());
        self.marked.decoded().len() + bytes
    }

    /// Decodes to the end of a block, or as much as a step is.
    fn step(&mut self, input: &[u8]) -> Step {
        let input = input.get(self.used..).unwrap_or_default();
        if self.bytes.is_none()
            && self.known >= WINDOW
            && let Some(window) = self.marked.all().last_chunk::<WINDOW>()
        {
            let window = window.iter().filter_map(|symbol| symbol.known());
            self.bytes = Some(Decoded::behind(window.collect()));
        }
        let step = match &mut self.bytes {
            Some(bytes) => bytes.append(&mut self.inflater, input),
            None => self.append_marked(input),
        };
        self.used += step.used;
        step
    }

    fn append_marked(&mut self, input: &[u8]) -> Step {
        let step = self.marked.append(&mut self.inflater, input);
        let all = self.marked.all();
        let new = all.get(all.len() - step.written..).unwrap_or_default();
        self.known = match new.iter().rposition(|symbol| symbol.known().is_none()) {
            Some(unknown) => new.len() - unknown - 1,
            None => self.known + new.len(),
        };
        step
    }

    /// Puts the part behind `end` of the output, and its decoder in the place of the one that has come to its
    /// beginning. Gives the bytes of the input that are done with then; `None` where there is no whole window or no room.
    pub(super) fn take(
        self,
        inflater: &mut Inflater,
        output: &mut [u8],
        end: &mut usize,
    ) -> Option<usize> {
        let (before, room) = output.split_at_mut_checked(*end)?;
        let window = before.last_chunk::<WINDOW>()?;
        let room = room.get_mut(..self.len())?;
        let marked = self.marked.decoded();
        let (first, rest) = room.split_at_mut_checked(marked.len())?;
        for (room, symbol) in first.iter_mut().zip(marked) {
            *room = symbol.resolved(window);
        }
        if let Some(bytes) = &self.bytes {
            rest.copy_from_slice(bytes.decoded());
        }
        let mut sum = inflater.sum;
        sum.add(room);
        *end += room.len();
        *inflater = self.inflater;
        inflater.sum = sum;
        Some(self.used)
    }
}

/// Symbols behind a window, and room for more.
struct Decoded<S> {
    symbols: Vec<S>,
    end: usize,
}

impl<S: Symbol> Decoded<S> {
    fn behind(window: Vec<S>) -> Self {
        Decoded {
            end: window.len(),
            symbols: window,
        }
    }

    fn all(&self) -> &[S] {
        self.symbols.get(..self.end).unwrap_or_default()
    }

    fn decoded(&self) -> &[S] {
        self.all().get(WINDOW..).unwrap_or_default()
    }

    /// Decodes to the end of a block, or as much as a step is.
    fn append(&mut self, inflater: &mut Inflater, input: &[u8]) -> Step {
        let room = self.end + STEP;
        // Blocks may be many and short: only what the last one took is made anew.
        if self.symbols.len() < room {
            self.symbols.resize(room, S::literal(0));
        }
        let output = self.symbols.get_mut(..room).unwrap_or_default();
        // The next block's beginning, not this one's.
        let end = inflater.bit(0) + 1;
        let step = inflater.inflate_until(input, output, self.end, end);
        self.end += step.written;
        step
    }
}

impl Inflater {
    /// The decoder in front of a block that begins at `bit`, if the block is one with codes of its own, and the bytes of
    /// the input that are done with.
    fn at_block(input: &[u8], bit: i64) -> Option<(Self, usize)> {
        let place = usize::try_from(bit / 8).ok()?;
        let (first, skipped) = (*input.get(place)?, (bit % 8) as u32);
        let inflater = Inflater {
            stage: Stage::Block,
            bits: u64::from(first >> skipped),
            count: 8 - skipped,
            ..Inflater::default()
        };
        let mut trial = inflater.clone();
        let rest = input.get(place + 1..)?;
        let mut work = Work::<u8> {
            input: rest,
            used: 0,
            output: &mut [],
            at: 0,
        };
        let begins = trial.block(&mut work).is_ok() && trial.stage == Stage::Codes;
        begins.then_some((inflater, place + 1))
    }
}

/// Whether the header of a block with codes of its own might begin here, as far as a short look tells: that it is not the last
/// one, that it does not have too many symbols, and that the code of code lengths is complete.
fn may_begin(input: &[u8], bit: i64) -> bool {
    let Some(head) = peek(input, bit) else {
        return false;
    };
    if head & 7 != 0b100 || head >> 3 & 31 > 29 || head >> 8 & 31 > 29 {
        return false;
    }
    let count = (head >> 13 & 15) as usize + 4;
    let Some(lengths) = peek(input, bit + 17) else {
        return false;
    };
    let share = |place: usize| match lengths >> (3 * place) & 7 {
        0 => 0,
        length => 128_u32 >> length,
    };
    (0..count.min(ORDER.len())).map(share).sum::<u32>() == 128
}

/// At least 57 bits from `bit` on.
fn peek(input: &[u8], bit: i64) -> Option<u64> {
    let place = usize::try_from(bit / 8).ok()?;
    let bytes = input.get(place..)?.first_chunk::<8>()?;
    Some(u64::from_le_bytes(*bytes) >> (bit % 8))
}
