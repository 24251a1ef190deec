//! The hot loop of the decoder: literals and matches, as long as there is input and room for whole ones.
//!
//! Its speed is that of a chain: bits, a look into a table, how many bits that takes, the next bits. So one
//! look gives two symbols where it can, and what is known to be long enough is not asked for again.

#![expect(
    clippy::arithmetic_side_effects,
    clippy::as_conversions,
    reason = "numbers here are bounded by a mask, by a table or by the length of a slice"
)]

use super::codes::{END, LITERAL, SPECIAL, lookup, low};
use super::pairs::pair;
use super::symbol::Symbol;
use super::{DISTANCE_BITS, Inflater, LITERAL_BITS, Stage, Stop, Taken, Work};

/// Symbols of two literals and the longest match, and what copying may write beyond it.
const ROOM: usize = 2 + 258 + 16;

impl Inflater {
    /// Decodes while input and room are plenty; whether the block has ended.
    #[inline(never)]
    pub(super) fn fast<S: Symbol>(&mut self, work: &mut Work<'_, S>) -> Taken<bool> {
        // Kept in registers: writing through the output might change what stands in memory.
        let (input, output) = (work.input, &mut *work.output);
        let (mut used, mut at) = (work.used, work.at);
        let (mut bits, mut count) = (self.bits, self.count);
        let last_input = input.len().saturating_sub(8);
        let last_room = output.len().saturating_sub(ROOM);
        let mut ended = Ok(false);
        if used < last_input && at < last_room {
            let (literals, distances) = (&*self.literals, &*self.distances);
            let pairs = self.pairs.table(literals);
            while used < last_input && at < last_room {
                fill(input, &mut used, &mut bits, &mut count);
                let next = pair(pairs, bits);
                let length = if next.is_other() {
                    let entry = lookup(literals, LITERAL_BITS, bits);
                    if entry & SPECIAL != 0 {
                        bits >>= entry & 15;
                        count -= entry & 15;
                        ended = match entry & END {
                            END => Ok(true),
                            _ => Err(Stop::Damaged("no such code")),
                        };
                        break;
                    }
                    let value = value(entry, &mut bits, &mut count);
                    if entry & LITERAL != 0 {
                        put(output, at, (entry >> 16) as u16 & 0xff);
                        at += 1;
                        continue;
                    }
                    value
                } else {
                    bits >>= next.bits();
                    count -= next.bits();
                    put(output, at, next.literals());
                    at += next.count();
                    next.length()
                };
                if length == 0 {
                    continue;
                }
                let entry = lookup(distances, DISTANCE_BITS, bits);
                if entry & SPECIAL != 0 {
                    ended = Err(Stop::Damaged("no such distance"));
                    break;
                }
                let distance = value(entry, &mut bits, &mut count);
                if distance > at {
                    ended = Err(Stop::Damaged("a distance beyond the beginning"));
                    break;
                }
                copy(output, at, distance, length);
                at += length;
            }
        }
        (work.used, work.at) = (used, at);
        (self.bits, self.count) = (bits, count);
        if let Ok(true) = ended {
            self.stage = Stage::Block;
        }
        ended
    }
}

/// Reads bits until there are 56 of them, as many as a length and a distance take; eight bytes of input must
/// be left.
#[inline(always)]
fn fill(input: &[u8], used: &mut usize, bits: &mut u64, count: &mut u32) {
    let next = input.get(*used..).and_then(|rest| rest.first_chunk::<8>());
    *bits |= u64::from_le_bytes(next.copied().unwrap_or_default()) << (*count & 63);
    *used += ((63 - (*count & 63)) >> 3) as usize;
    *count |= 56;
}

/// Takes a code and its extra bits; gives the base and what they add.
#[inline(always)]
fn value(entry: u32, bits: &mut u64, count: &mut u32) -> usize {
    let (code, extra) = (entry & 15, entry >> 8 & 15);
    let added = (*bits >> code & low(extra)) as u32;
    *bits >>= code + extra;
    *count -= code + extra;
    ((entry >> 16) + added) as usize
}

/// Writes two literals.
#[inline(always)]
fn put<S: Symbol>(output: &mut [S], at: usize, bytes: u16) {
    let room = output.get_mut(at..);
    if let Some(room) = room.and_then(|room| room.first_chunk_mut::<2>()) {
        *room = S::literals(bytes);
    }
}

/// Copies a match of up to 258 symbols; what it writes beyond will be written again. It reads as few as it
/// can of those written last, which are still on their way to memory.
#[inline(always)]
fn copy<S: Symbol>(output: &mut [S], at: usize, distance: usize, length: usize) {
    match distance {
        4.. if length <= 4 => copy_by::<4, S>(output, at, distance, length),
        16.. => copy_by::<16, S>(output, at, distance, length),
        8.. => copy_by::<8, S>(output, at, distance, length),
        4.. => copy_by::<4, S>(output, at, distance, length),
        2.. => copy_by::<2, S>(output, at, distance, length),
        _ => {
            let symbol = output.get(at.wrapping_sub(1)).copied();
            let room = output.get_mut(at..at + length);
            if let (Some(symbol), Some(room)) = (symbol, room) {
                room.fill(symbol);
            }
        }
    }
}

/// Copies `N` symbols at a time, which is not more than the distance: none is read before it is written.
#[inline(always)]
fn copy_by<const N: usize, S: Symbol>(output: &mut [S], at: usize, distance: usize, length: usize) {
    let mut to = at;
    while to < at + length {
        let from = output.get(to.wrapping_sub(distance)..);
        let chunk = from.and_then(|symbols| symbols.first_chunk::<N>()).copied();
        let room = output.get_mut(to..);
        let room = room.and_then(|room| room.first_chunk_mut::<N>());
        if let (Some(chunk), Some(room)) = (chunk, room) {
            *room = chunk;
        }
        to += N;
    }
}
