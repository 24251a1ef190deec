//! Blocks that are one bzip2 stream. It consists of blocks of its own, of up to 900 kB before runs
//! are put in, that begin at any bit with a mark and need nothing of each other: each is decoded
//! alone, as a stream of one block, several of them at the same time.
//!
//! A block of few symbols may hold 45 MB; it is kept in no more bytes than the symbols (`content`).
//!
//! Only decoding tells the length of a block's content: the first reader that goes far decodes the
//! blocks before its place, once; from then on any place is found.

mod alone;
mod bit_marks;
mod content;

use std::collections::VecDeque;
use std::panic::resume_unwind;
use std::thread;

use crate::asdf::compression::bzip2::alone::{Alone, bits};
use crate::asdf::compression::bzip2::bit_marks::{BitMarks, Mark};
use crate::asdf::compression::bzip2::content::Content;
use crate::asdf::compression::encoded::Encoded;
use crate::asdf::compression::resumed::{Codec, Resumed};
use crate::error::{Error, Result};
use crate::filter;
use crate::limits;
use crate::memory::buffer::Buffer;
use crate::memory::cancel::{IsWanted, still};
use crate::model::storage::Help;
use crate::wire::{Count, to_u64, to_usize};

/// Bytes that a block of 900 000 symbols takes at most: 20 bits each, and its tables.
const BLOCK_BYTES: u64 = 3 << 20;

/// Marks at which a block may end: the next one, or one after it if that is not a mark but data.
const ENDS: usize = 3;

/// Blocks that are decoded at a time at most: as many as are kept.
const TOGETHER: usize = 8;

/// The bit at which the first block begins, after `BZh` and a digit.
const FIRST_BIT: u64 = 32;

/// A block that is one bzip2 stream.
pub type Bzip2Block = Resumed<Bzip2>;

/// One bzip2 stream.
#[derive(Debug)]
pub struct Bzip2;

/// The knowledge of the stream so far.
#[derive(Default)]
pub struct Progress {
    marks: BitMarks,
    /// The blocks of which the place is known.
    chain: Vec<Link>,
    /// Where the chain goes on.
    tip: Tip,
    /// How the stream ends, once the chain has come there.
    end: Option<Result<()>>,
    /// The contents decoded or needed last, by mark.
    kept: VecDeque<(usize, Content)>,
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
struct Decoded {
    content: Content,
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

impl Bzip2Block {
    /// Decodes on until the chain has come to byte `end`, and of the last byte to the stream's end.
    fn reach(&self, progress: &mut Progress, end: u64, help: &Help<'_>) -> Result<()> {
        let is_last = end == self.encoded.decoded;
        while progress.tip.start < end || is_last && progress.end.is_none() {
            still(help.is_wanted)?;
            self.advance(progress, help)?;
        }
        match &progress.end {
            Some(Err(error)) if is_last => Err(error.clone()),
            _ => Ok(()),
        }
    }

    /// Makes the chain longer by the next blocks, or finds the stream's end.
    fn advance(&self, progress: &mut Progress, help: &Help<'_>) -> Result<()> {
        if let Some(end) = &progress.end {
            end.clone()?;
            return Err(self.encoded.corrupt("block: ends before data_size"));
        }
        let jobs = progress.next_jobs(&self.encoded, (help.threads)())?;
        if jobs.is_empty() {
            progress.end = Some(progress.checked_end(&self.encoded)?);
            return Ok(());
        }
        for (job, decoded) in jobs.iter().zip(self.decode_all(&jobs, help)) {
            if job.mark != progress.tip.mark || progress.end.is_some() {
                // Not a mark, but data of the block before.
                continue;
            }
            match decoded {
                Ok(decoded) => progress.append(decoded),
                Err(error) if error.is_passing() => return Err(error),
                Err(error) => progress.end = Some(Err(error)),
            }
            if progress.tip.start > self.encoded.decoded {
                let error = self.encoded.corrupt("block: longer than data_size");
                progress.end = Some(Err(error));
            }
        }
        Ok(())
    }

    /// Appends bytes of the block that holds byte `at` of the content, from there up to `end`.
    fn copy(
        &self,
        progress: &mut Progress,
        at: u64,
        end: u64,
        bytes: &mut Vec<u8>,
        help: &Help<'_>,
    ) -> Result<()> {
        let after = progress.chain.partition_point(|link| link.start <= at);
        let place = after.checked_sub(1).ok_or(Error::NotFound)?;
        let link = *progress.chain.get(place).ok_or(Error::NotFound)?;
        if progress.kept(link.mark).is_none() {
            let jobs = progress.known_jobs(place, &self.encoded, (help.threads)())?;
            for (job, decoded) in jobs.iter().zip(self.decode_all(&jobs, help)).rev() {
                match decoded {
                    Ok(decoded) => progress.keep(job.mark, decoded.content),
                    Err(error) if job.mark == link.mark => return Err(error),
                    // The reader that needs it meets the error again.
                    Err(_) => {}
                }
            }
        }
        let content = progress.kept(link.mark).ok_or(Error::NotFound)?;
        let within = |at: u64| at.checked_sub(link.start).ok_or(Error::NotFound);
        content.append(within(at)?..within(end)?, bytes)
    }

    /// Decodes blocks, the first of them by this thread.
    fn decode_all(&self, jobs: &[Job], help: &Help<'_>) -> Vec<Result<Decoded>> {
        let is_wanted = help.is_wanted;
        let Some((first, others)) = jobs.split_first() else {
            return Vec::new();
        };
        thread::scope(|scope| {
            let begin = |job| {
                let thread = thread::Builder::new().name("bzip2".to_owned());
                let thread = thread.spawn_scoped(scope, move || self.decode_one(job, is_wanted));
                (job, thread)
            };
            let others: Vec<_> = others.iter().map(begin).collect();
            let mut all = vec![self.decode_one(first, is_wanted)];
            all.extend(others.into_iter().map(|(job, thread)| match thread {
                Ok(thread) => thread.join().unwrap_or_else(|panic| resume_unwind(panic)),
                // There is no thread for it.
                Err(_) => self.decode_one(job, is_wanted),
            }));
            all
        })
    }

    fn decode_one(&self, job: &Job, is_wanted: &IsWanted<'_>) -> Result<Decoded> {
        if job.is_cut {
            return self.decode_to_the_end(job, is_wanted);
        }
        let mut error = self.encoded.corrupt("bzip2: ends too early");
        for &(next, end) in &job.ends {
            let alone = Alone::cut(&self.encoded, job.bit, end)?;
            match self.content(&alone, is_wanted) {
                Ok((content, true)) => {
                    let sum = alone.sum;
                    return Ok(Decoded { content, sum, next });
                }
                Ok((_, false)) => {}
                Err(unwanted) if unwanted.is_unwanted() => return Err(unwanted),
                Err(damage) => error = self.encoded.placed(damage),
            }
        }
        Err(error)
    }

    /// The content of a stream of one block, and whether it is whole.
    fn content(&self, alone: &Alone, is_wanted: &IsWanted<'_>) -> Result<(Content, bool)> {
        let mut content = Content::default();
        let most = self.encoded.decoded;
        let is_whole = filter::bzip2::each_part(&alone.stream, most, is_wanted, &mut |part| {
            content.push(part);
        })?;
        Ok((content.finish(), is_whole))
    }

    /// The last block of a stream that lacks its end.
    fn decode_to_the_end(&self, job: &Job, is_wanted: &IsWanted<'_>) -> Result<Decoded> {
        let to = self.encoded.stored.length().times(8);
        let alone = Alone::open(&self.encoded, job.bit, to)?;
        let (content, _) = self.content(&alone, is_wanted)?;
        if content.length() == 0 {
            return Err(self.encoded.corrupt("bzip2: ends too early"));
        }
        let (sum, next) = (alone.sum, job.mark.one_more());
        Ok(Decoded { content, sum, next })
    }
}

impl Progress {
    fn append(&mut self, decoded: Decoded) {
        let Tip { mark, start, sum } = self.tip;
        self.chain.push(Link { mark, start });
        self.tip = Tip {
            mark: decoded.next,
            start: start.with_more(decoded.content.length()),
            sum: sum.rotate_left(1) ^ decoded.sum,
        };
        self.keep(mark, decoded.content);
    }

    /// Whether the stream ends at the tip as it should: as long as the header says, with the
    /// checksum of all blocks.
    fn checked_end(&mut self, encoded: &Encoded) -> Result<Result<()>> {
        let Some(mark) = self.mark(self.tip.mark, encoded)? else {
            if self.tip.mark > 0 && self.tip.start == encoded.decoded {
                encoded.warn_of_cut();
                return Ok(Ok(()));
            }
            return Ok(Err(encoded.corrupt("bzip2: no block where one should be")));
        };
        let at = mark.bit.with_more(48);
        let bytes = bits(encoded, at, at.with_more(32))?;
        Ok(if self.tip.start < encoded.decoded {
            Err(encoded.corrupt("block: ends before data_size"))
        } else if bytes != self.tip.sum.to_be_bytes() {
            Err(encoded.corrupt("bzip2: the stream's checksum is another"))
        } else {
            Ok(())
        })
    }

    /// The next blocks from the tip on, none where the stream ends.
    fn next_jobs(&mut self, encoded: &Encoded, threads: usize) -> Result<Vec<Job>> {
        let mut jobs = Vec::new();
        for number in (self.tip.mark..).take(threads.clamp(1, TOGETHER)) {
            match self.mark(number, encoded)? {
                Some(mark) if !mark.is_end => jobs.push(self.job(number, encoded)?),
                _ => break,
            }
        }
        Ok(jobs)
    }

    /// The block at `place` of the chain; if the one before it is kept, a reader reads on, and the
    /// blocks behind it are decoded too.
    fn known_jobs(&mut self, place: usize, encoded: &Encoded, threads: usize) -> Result<Vec<Job>> {
        let before = place.checked_sub(1).and_then(|place| self.chain.get(place));
        let goes_on = before.is_some_and(|link| self.kept.iter().any(|kept| kept.0 == link.mark));
        let most = if goes_on {
            threads.clamp(1, TOGETHER)
        } else {
            1
        };
        let links = self.chain.iter().skip(place).take(most);
        let marks: Vec<usize> = links.map(|link| link.mark).collect();
        marks
            .into_iter()
            .map(|mark| self.job(mark, encoded))
            .collect()
    }

    fn job(&mut self, mark: usize, encoded: &Encoded) -> Result<Job> {
        let bit = self.mark(mark, encoded)?.ok_or(Error::NotFound)?.bit;
        let mut ends = Vec::new();
        let until = (bit / 8).with_more(BLOCK_BYTES);
        for number in (mark.one_more()..).take(ENDS) {
            match self.marks.get(number, encoded, until)? {
                Some(end) => ends.push((number, end.bit)),
                None => break,
            }
        }
        let is_cut = ends.is_empty() && until >= encoded.stored.length();
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
        let until = (until / 8).with_more(BLOCK_BYTES);
        let mark = self.marks.get(number, encoded, until)?;
        Ok(mark.filter(|mark| number > 0 || mark.bit == FIRST_BIT))
    }

    /// The content of the block at this mark, if it is kept; it is the last to go then.
    fn kept(&mut self, mark: usize) -> Option<&Content> {
        let place = self.kept.iter().position(|(kept, _)| *kept == mark)?;
        let entry = self.kept.remove(place)?;
        self.kept.push_back(entry);
        self.kept.back().map(|(_, content)| content)
    }

    /// Keeps the content, and as many of the others as fit beside it.
    fn keep(&mut self, mark: usize, content: Content) {
        self.kept.retain(|(kept, _)| *kept != mark);
        self.kept.push_back((mark, content));
        let mut bytes: u64 = self.kept.iter().map(|(_, content)| content.weight()).sum();
        while self.kept.len() > 1
            && bytes > limits::BZIP2_KEPT
            && let Some((_, gone)) = self.kept.pop_front()
        {
            bytes = bytes.left_after(gone.weight());
        }
    }
}

impl Codec for Bzip2 {
    type State = Progress;

    fn decode(
        block: &Bzip2Block,
        progress: &mut Progress,
        piece: u64,
        help: &mut Help<'_>,
    ) -> Result<Buffer> {
        let wanted = block.encoded.piece(piece, block.piece);
        let length = to_usize(wanted.length())?;
        block.reach(progress, wanted.end(), help)?;
        let mut bytes = Vec::with_capacity(length);
        while bytes.len() < length {
            let before = bytes.len();
            let rest = wanted.after(to_u64(before));
            block.copy(progress, rest.start(), rest.end(), &mut bytes, help)?;
            if bytes.len() == before {
                return Err(Error::NotFound);
            }
        }
        Ok(bytes.into())
    }
}
