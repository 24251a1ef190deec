//! Blocks that are one bzip2 stream. It consists of blocks of its own, of up to 900 kB before runs are
//! put in, that begin at any bit with a mark and need nothing of each other: each is decoded alone, as
//! a stream of one block, several of them at the same time.
//!
//! A block of few symbols may hold 45 MB; what is kept of it is no longer than the [symbols](super::runs).
//!
//! How long a block's content is, only decoding tells: the first reader that goes far decodes what is
//! before, once; from then on any place is found.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::num::NonZeroU64;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use crate::asdf::compression::Encoded;
use crate::asdf::compression::bit_marks::{BitMarks, END, Mark};
use crate::asdf::compression::resumable::Resumable;
use crate::asdf::compression::runs::Content;
use crate::asdf::scan;
use crate::error::{Error, Result};
use crate::filter;
use crate::limits;
use crate::memory::buffer::Buffer;
use crate::model::storage::{Help, IsWanted, still};
use crate::wire::{to_u64, to_usize};

/// Bytes that a block of 900 000 symbols takes at most: 20 bits each, and its tables.
const BLOCK_BYTES: u64 = 3 << 20;

/// Where a block may end: at the next mark, or at one of those after it where that one is not a mark but
/// data.
const ENDS: usize = 3;

/// Blocks that are decoded before their turn.
const LEAD: usize = 16;

/// The bit at which the first block begins, after `BZh` and a digit.
const FIRST_BIT: u64 = 32;

/// A block that is one bzip2 stream.
pub struct Bzip2Blocks {
    encoded: Encoded,
    piece: u64,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    marks: BitMarks,
    /// The blocks of which the place is known.
    chain: Vec<Link>,
    /// Where the chain goes on.
    tip: Tip,
    /// How the stream ends, once the chain has come there.
    end: Option<Result<()>>,
    /// What was decoded before the chain has come there, by mark.
    ahead: BTreeMap<usize, Result<Outcome>>,
    /// The marks whose blocks are being decoded.
    under_way: BTreeSet<usize>,
    /// The contents decoded or needed last, by mark.
    kept: VecDeque<(usize, Arc<Content>)>,
}

/// A block whose place is known.
#[derive(Clone, Copy)]
struct Link {
    mark: usize,
    /// Offset of its content.
    start: u64,
}

#[derive(Default, Clone, Copy)]
struct Tip {
    mark: usize,
    start: u64,
    /// The checksum of the blocks so far.
    sum: u32,
}

/// A decoded block.
#[derive(Clone, Copy)]
struct Outcome {
    length: u64,
    sum: u32,
    /// The mark after it.
    next: usize,
}

/// A block to decode.
struct Job {
    mark: usize,
    bit: u64,
    ends: Vec<(usize, u64)>,
    /// Nothing marks the block's end: the stream may be cut there.
    is_cut: bool,
}

impl std::fmt::Debug for Bzip2Blocks {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Bzip2Blocks(at {})", self.encoded.offset)
    }
}

impl Bzip2Blocks {
    /// The block as a stream, in pieces of `piece` bytes.
    pub fn new(encoded: Encoded, piece: NonZeroU64) -> Self {
        Bzip2Blocks {
            encoded,
            piece: piece.get(),
            state: Mutex::default(),
            changed: Condvar::new(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'a>(&self, state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        let waited = self.changed.wait(state);
        waited.unwrap_or_else(PoisonError::into_inner)
    }

    /// Decodes on until the chain has come to byte `end`, and of the last byte to the stream's end.
    fn reach(&self, end: u64, is_wanted: &IsWanted<'_>) -> Result<()> {
        let mut state = self.state();
        while state.tip.start < end || end == self.encoded.decoded && state.end.is_none() {
            still(is_wanted)?;
            state = self.advance(state, is_wanted)?;
        }
        match &state.end {
            Some(Err(error)) if end == self.encoded.decoded => Err(error.clone()),
            _ => Ok(()),
        }
    }

    /// The block with byte `at` of the content, and where it begins.
    fn block(&self, at: u64, is_wanted: &IsWanted<'_>) -> Result<(u64, Arc<Content>)> {
        let mut state = self.state();
        loop {
            if state.tip.start <= at {
                state = self.advance(state, is_wanted)?;
                continue;
            }
            let after = state.chain.partition_point(|link| link.start <= at);
            let place = after.checked_sub(1);
            let link = place.and_then(|place| state.chain.get(place)).copied();
            let link = link.ok_or(Error::NotFound)?;
            if let Some(content) = state.kept(link.mark) {
                return Ok((link.start, content));
            }
            if state.under_way.contains(&link.mark) {
                state = self.wait(state);
                continue;
            }
            let job = state.job(link.mark, &self.encoded)?;
            let (unlocked, decoded) = self.run(state, &job, is_wanted);
            drop(unlocked);
            return Ok((link.start, decoded?.1));
        }
    }

    /// Makes the chain one block longer, decodes a block for it, or waits for one who does.
    fn advance<'a>(
        &'a self,
        mut state: MutexGuard<'a, State>,
        is_wanted: &IsWanted<'_>,
    ) -> Result<MutexGuard<'a, State>> {
        if let Some(end) = &state.end {
            end.clone()?;
            return Err(self.encoded.corrupt("block: ends before data_size"));
        }
        if state.grow(&self.encoded)? {
            return Ok(state);
        }
        let Some(job) = state.claim(&self.encoded)? else {
            return Ok(self.wait(state));
        };
        let mark = job.mark;
        let (mut state, decoded) = self.run(state, &job, is_wanted);
        let outcome = match decoded {
            Err(error @ Error::Io { .. }) => return Err(error),
            decoded => decoded.map(|(outcome, _)| outcome),
        };
        state.ahead.insert(mark, outcome);
        Ok(state)
    }

    /// Decodes a block while the state is free for others.
    fn run<'a>(
        &'a self,
        mut state: MutexGuard<'a, State>,
        job: &Job,
        is_wanted: &IsWanted<'_>,
    ) -> (MutexGuard<'a, State>, Result<(Outcome, Arc<Content>)>) {
        state.under_way.insert(job.mark);
        drop(state);
        let mut broken = Broken {
            blocks: self,
            mark: Some(job.mark),
        };
        let decoded = self.decoded(job, is_wanted);
        broken.mark = None;
        let mut state = self.state();
        state.under_way.remove(&job.mark);
        self.changed.notify_all();
        if let Ok((_, content)) = &decoded {
            state.keep(job.mark, Arc::clone(content));
        }
        (state, decoded)
    }

    fn decoded(&self, job: &Job, is_wanted: &IsWanted<'_>) -> Result<(Outcome, Arc<Content>)> {
        if job.is_cut {
            return self.decoded_to_the_end(job, is_wanted);
        }
        let mut error = self.encoded.corrupt("bzip2: ends too early");
        for &(next, end) in &job.ends {
            let alone = Alone::cut(&self.encoded, job.bit, end)?;
            match self.content(&alone, is_wanted) {
                Ok((content, true)) => {
                    let (length, sum) = (content.length(), alone.sum);
                    let outcome = Outcome { length, sum, next };
                    return Ok((outcome, Arc::new(content)));
                }
                Ok((_, false)) => {}
                Err(unwanted) if unwanted.is_unwanted() => return Err(unwanted),
                Err(damage) => error = self.encoded.placed(damage),
            }
        }
        Err(error)
    }

    /// What a stream of one block holds, and whether it is whole.
    fn content(&self, alone: &Alone, is_wanted: &IsWanted<'_>) -> Result<(Content, bool)> {
        let mut content = Content::default();
        let most = self.encoded.decoded;
        let is_whole = filter::bzip2::each_part(&alone.stream, most, is_wanted, &mut |part| {
            content.push(part);
        })?;
        Ok((content.finish(), is_whole))
    }

    /// The last block of a stream that lacks its end.
    fn decoded_to_the_end(
        &self,
        job: &Job,
        is_wanted: &IsWanted<'_>,
    ) -> Result<(Outcome, Arc<Content>)> {
        let to = self.encoded.stored.saturating_mul(8);
        let alone = Alone::open(&self.encoded, job.bit, to)?;
        let (content, _) = self.content(&alone, is_wanted)?;
        if content.length() == 0 {
            return Err(self.encoded.corrupt("bzip2: ends too early"));
        }
        let outcome = Outcome {
            length: content.length(),
            sum: alone.sum,
            next: job.mark.saturating_add(1),
        };
        Ok((outcome, Arc::new(content)))
    }
}

/// Lets others decode a block after a panic.
struct Broken<'a> {
    blocks: &'a Bzip2Blocks,
    mark: Option<usize>,
}

impl Drop for Broken<'_> {
    fn drop(&mut self) {
        if let Some(mark) = self.mark {
            self.blocks.state().under_way.remove(&mark);
            self.blocks.changed.notify_all();
        }
    }
}

impl State {
    /// Takes the next block into the chain, or finds the stream's end; false where the block is not yet
    /// decoded.
    fn grow(&mut self, encoded: &Encoded) -> Result<bool> {
        let mark = self.mark(self.tip.mark, encoded)?;
        let end = match mark {
            Some(mark) if mark.is_end => self.checked_end(mark, encoded)?,
            Some(_) => match self.ahead.remove(&self.tip.mark) {
                None => return Ok(false),
                Some(Ok(outcome)) => {
                    self.append(outcome);
                    if self.tip.start <= encoded.decoded {
                        return Ok(true);
                    }
                    Err(encoded.corrupt("block: longer than data_size"))
                }
                Some(Err(error)) => Err(error),
            },
            None if self.tip.mark > 0 && self.tip.start == encoded.decoded => {
                encoded.warn_of_cut();
                Ok(())
            }
            None => Err(encoded.corrupt("bzip2: no block where one should be")),
        };
        self.end = Some(end);
        Ok(true)
    }

    fn append(&mut self, outcome: Outcome) {
        let Tip { mark, start, sum } = self.tip;
        self.chain.push(Link { mark, start });
        self.tip = Tip {
            mark: outcome.next,
            start: start.saturating_add(outcome.length),
            sum: sum.rotate_left(1) ^ outcome.sum,
        };
    }

    /// Whether the stream ends as it should: as long as the header says, with the checksum of all blocks.
    fn checked_end(&self, mark: Mark, encoded: &Encoded) -> Result<Result<()>> {
        let at = mark.bit.saturating_add(48);
        let bytes = bits(encoded, at, at.saturating_add(32))?;
        Ok(if self.tip.start < encoded.decoded {
            Err(encoded.corrupt("block: ends before data_size"))
        } else if bytes != self.tip.sum.to_be_bytes() {
            Err(encoded.corrupt("bzip2: the stream's checksum is another"))
        } else {
            Ok(())
        })
    }

    /// The first block at or after the tip that nobody has decoded or is decoding.
    fn claim(&mut self, encoded: &Encoded) -> Result<Option<Job>> {
        for number in (self.tip.mark..).take(LEAD) {
            match self.mark(number, encoded)? {
                Some(mark) if !mark.is_end => {}
                _ => return Ok(None),
            }
            if !self.ahead.contains_key(&number) && !self.under_way.contains(&number) {
                return self.job(number, encoded).map(Some);
            }
        }
        Ok(None)
    }

    fn job(&mut self, mark: usize, encoded: &Encoded) -> Result<Job> {
        let bit = self.mark(mark, encoded)?.ok_or(Error::NotFound)?.bit;
        let mut ends = Vec::new();
        let until = (bit / 8).saturating_add(BLOCK_BYTES);
        for number in (mark.saturating_add(1)..).take(ENDS) {
            match self.marks.get(number, encoded, until)? {
                Some(end) => ends.push((number, end.bit)),
                None => break,
            }
        }
        let is_cut = ends.is_empty() && until >= encoded.stored;
        Ok(Job {
            mark,
            bit,
            ends,
            is_cut,
        })
    }

    /// A mark near the tip. The first must stand after the stream's header.
    fn mark(&mut self, number: usize, encoded: &Encoded) -> Result<Option<Mark>> {
        let until = match number.checked_sub(1) {
            None => FIRST_BIT,
            Some(before) => self.marks.known(before).map_or(0, |mark| mark.bit),
        };
        let until = (until / 8).saturating_add(BLOCK_BYTES);
        let mark = self.marks.get(number, encoded, until)?;
        Ok(mark.filter(|mark| number > 0 || mark.bit == FIRST_BIT))
    }

    fn kept(&mut self, mark: usize) -> Option<Arc<Content>> {
        let place = self.kept.iter().position(|(kept, _)| *kept == mark)?;
        let entry = self.kept.remove(place)?;
        let content = Arc::clone(&entry.1);
        self.kept.push_back(entry);
        Some(content)
    }

    /// Keeps the content, and as many of the others as fit beside it.
    fn keep(&mut self, mark: usize, content: Arc<Content>) {
        self.kept.retain(|(kept, _)| *kept != mark);
        self.kept.push_back((mark, content));
        let bytes = |kept: &VecDeque<(usize, Arc<Content>)>| -> u64 {
            kept.iter().map(|(_, content)| content.weight()).sum()
        };
        while self.kept.len() > 1 && bytes(&self.kept) > limits::BZIP2_KEPT {
            self.kept.pop_front();
        }
    }
}

/// A stream of one block.
struct Alone {
    stream: Vec<u8>,
    /// The block's checksum, and so the stream's.
    sum: u32,
}

impl Alone {
    /// The block that stands from bit `from` to bit `to` of the stream.
    fn cut(encoded: &Encoded, from: u64, to: u64) -> Result<Self> {
        let Alone { mut stream, sum } = Alone::open(encoded, from, to)?;
        let over = u32::try_from(to.saturating_sub(from) % 8).unwrap_or(0);
        let rest = match over {
            0 => 0,
            _ => stream.pop().unwrap_or(0),
        };
        let tail = u128::from(END) << 80 | u128::from(sum) << 48;
        let tail = tail.wrapping_shr(over) | u128::from(rest) << 120;
        stream.extend_from_slice(&tail.to_be_bytes());
        Ok(Alone { stream, sum })
    }

    /// The same, without the end of the stream.
    fn open(encoded: &Encoded, from: u64, to: u64) -> Result<Self> {
        let at = encoded.offset;
        let mut stream = scan::piece(&*encoded.source, at..at.saturating_add(4))?;
        if !matches!(stream.as_slice(), [b'B', b'Z', b'h', b'1'..=b'9']) {
            return Err(encoded.corrupt("bzip2: no header"));
        }
        let block = bits(encoded, from, to)?;
        let sum = block.get(6..10).and_then(|sum| sum.try_into().ok());
        let sum = u32::from_be_bytes(sum.unwrap_or_default());
        stream.extend_from_slice(&block);
        Ok(Alone { stream, sum })
    }
}

/// Bits `from..to` of the stream; those that fill up the last byte are zero.
fn bits(encoded: &Encoded, from: u64, to: u64) -> Result<Vec<u8>> {
    let first = encoded.offset.saturating_add(from / 8);
    let end = encoded.offset.saturating_add(to.div_ceil(8));
    let end = end.min(encoded.offset.saturating_add(encoded.stored));
    let mut bytes = scan::piece(&*encoded.source, first..end)?;
    let shift = u32::try_from(from % 8).unwrap_or(0);
    let mut before = 0_u8;
    for byte in bytes.iter_mut().rev() {
        let pair = u16::from_be_bytes([*byte, before]).wrapping_shl(shift);
        before = std::mem::replace(byte, pair.to_be_bytes()[0]);
    }
    let count = to.saturating_sub(from);
    bytes.truncate(to_usize(count.div_ceil(8))?);
    let over = u32::try_from(count % 8).unwrap_or(0);
    if let (1.., Some(last)) = (over, bytes.last_mut()) {
        *last &= 0xff_u8.wrapping_shl(8_u32.wrapping_sub(over));
    }
    Ok(bytes)
}

impl Resumable for Bzip2Blocks {
    fn encoded(&self) -> &Encoded {
        &self.encoded
    }

    fn piece_bytes(&self) -> u64 {
        self.piece
    }

    fn is_sequential(&self) -> bool {
        false
    }

    fn decode(&self, piece: u64, help: &mut Help<'_>) -> Result<Buffer> {
        let mut at = piece.saturating_mul(self.piece);
        let end = at.saturating_add(self.piece).min(self.encoded.decoded);
        self.reach(end, help.is_wanted)?;
        let mut bytes = Vec::with_capacity(to_usize(end.saturating_sub(at))?);
        while at < end {
            let (start, content) = self.block(at, help.is_wanted)?;
            let range = at.saturating_sub(start)..end.saturating_sub(start);
            let before = bytes.len();
            content.append(range, &mut bytes)?;
            if bytes.len() == before {
                return Err(Error::NotFound);
            }
            at = at.saturating_add(to_u64(bytes.len().saturating_sub(before)));
        }
        Ok(bytes.into())
    }

    fn forget(&self) {
        if let Ok(mut state) = self.state.try_lock() {
            *state = State::default();
        }
        self.changed.notify_all();
    }
}
