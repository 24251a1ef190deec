//! Blocks that are one bzip2 stream. The stream consists of bzip2 blocks of up to 900 kB before
//! runs are expanded. Each begins with a magic number of 48 bits at any bit position. The bzip2
//! blocks are independent, so several are decoded at the same time, each as a stream of one block.
//!
//! A bzip2 block with few symbols may decode to 45 MB. The cache therefore keeps long content with
//! encoded runs, which takes at most about one byte for each symbol (module `content`).
//!
//! A bzip2 block's decoded length is known only after decoding. A first read far ahead therefore
//! decodes all earlier bzip2 blocks once. Later reads find the bzip2 block of any offset without
//! decoding others.

mod bit_marks;
mod content;
mod single_block;

use std::collections::VecDeque;
use std::panic::resume_unwind;
use std::thread;

use crate::asdf::compression::bzip2::bit_marks::{BitMark, BitMarks};
use crate::asdf::compression::bzip2::content::BlockContent;
use crate::asdf::compression::bzip2::single_block::{SingleBlock, read_bits};
use crate::asdf::compression::encoded::EncodedBlock;
use crate::asdf::compression::resumable_block::{ResumableBlock, ResumableCodec};
use crate::error::{Error, Result};
use crate::filter;
use crate::limits;
use crate::memory::buffer::Buffer;
use crate::memory::cancel::{WantedCheck, check_wanted};
use crate::model::storage::DecodeContext;
use crate::wire::{Count, to_u64, to_usize};

/// Maximum number of stored bytes of a bzip2 block with 900 000 symbols: 20 bits per symbol, and
/// the tables.
const BLOCK_BYTES: u64 = 3 << 20;

/// Number of magic numbers that are tried as the end of a bzip2 block. The next magic number may be
/// compressed data with the same bits.
const MAX_END_CANDIDATES: usize = 3;

/// Maximum number of bzip2 blocks that are decoded at a time. The contents of that many fit into
/// [`limits::BZIP2_KEPT`] bytes.
const MAX_PARALLEL_BLOCKS: usize = 8;

/// The bit at which the first bzip2 block begins, after `BZh` and a digit.
const FIRST_BIT: u64 = 32;

/// A block that is one bzip2 stream.
pub type Bzip2Block = ResumableBlock<Bzip2>;

/// The codec of a block that is one bzip2 stream.
#[derive(Debug)]
pub struct Bzip2;

/// The bzip2 blocks of the stream that are known so far, and their cached contents.
#[derive(Default)]
pub struct Bzip2Progress {
    marks: BitMarks,
    /// The consecutive bzip2 blocks from the start of the stream whose content offsets are known.
    chain: Vec<ChainLink>,
    /// The position after the last bzip2 block of `chain`.
    tip: ChainEnd,
    /// The result of the check at the stream's end, once the chain has reached it.
    end: Option<Result<()>>,
    /// The contents of the most recently used bzip2 blocks, the most recent last. Each content is
    /// stored with the index of its block's magic number.
    kept: VecDeque<(usize, BlockContent)>,
}

/// A bzip2 block whose content offset is known.
#[derive(Clone, Copy)]
struct ChainLink {
    mark: usize,
    /// The offset of the bzip2 block's content in the content of the whole stream.
    start: u64,
}

#[derive(Default, Clone, Copy)]
struct ChainEnd {
    mark: usize,
    start: u64,
    /// The combined checksum of the bzip2 blocks before this position.
    sum: u32,
}

/// A decoded bzip2 block.
struct DecodedBlock {
    content: BlockContent,
    sum: u32,
    /// The index of the magic number that follows the bzip2 block.
    next: usize,
}

/// A bzip2 block to decode.
struct DecodeJob {
    mark: usize,
    bit: u64,
    ends: Vec<(usize, u64)>,
    /// Whether no magic number follows the bzip2 block, because the stream may be truncated there.
    is_possibly_truncated: bool,
}

impl Bzip2Block {
    /// Decodes bzip2 blocks until the chain contains the content up to byte `end`. If `end` is the
    /// end of the content, decodes until the end of the stream.
    fn decode_until(
        &self,
        progress: &mut Bzip2Progress,
        end: u64,
        help: &DecodeContext<'_>,
    ) -> Result<()> {
        let is_last = end == self.encoded.decoded;
        while progress.tip.start < end || is_last && progress.end.is_none() {
            check_wanted(help.is_wanted)?;
            self.advance(progress, help)?;
        }
        match &progress.end {
            Some(Err(error)) if is_last => Err(error.clone()),
            _ => Ok(()),
        }
    }

    /// Decodes the next bzip2 blocks of the stream and appends them to `progress.chain`, or detects the
    /// end of the stream.
    fn advance(&self, progress: &mut Bzip2Progress, help: &DecodeContext<'_>) -> Result<()> {
        if let Some(end) = &progress.end {
            end.clone()?;
            return Err(self.encoded.corrupt("block: ends before data_size"));
        }
        let jobs = progress.next_jobs(&self.encoded, (help.threads)())?;
        if jobs.is_empty() {
            progress.end = Some(progress.check_end(&self.encoded)?);
            return Ok(());
        }
        for (job, decoded) in jobs.iter().zip(self.decode_all(&jobs, help)) {
            if job.mark != progress.tip.mark || progress.end.is_some() {
                // The magic number was data of the previous block.
                continue;
            }
            match decoded {
                Ok(decoded) => progress.append(decoded),
                Err(error) if error.is_transient() => return Err(error),
                Err(error) => progress.end = Some(Err(error)),
            }
            if progress.tip.start > self.encoded.decoded {
                let error = self.encoded.corrupt("block: longer than data_size");
                progress.end = Some(Err(error));
            }
        }
        Ok(())
    }

    /// Appends the content from byte `at` to `end` to `bytes`. Stops at the end of the bzip2 block
    /// that contains byte `at`.
    fn append_content(
        &self,
        progress: &mut Bzip2Progress,
        at: u64,
        end: u64,
        bytes: &mut Vec<u8>,
        help: &DecodeContext<'_>,
    ) -> Result<()> {
        let after = progress.chain.partition_point(|link| link.start <= at);
        let place = after.checked_sub(1).ok_or(Error::NotFound)?;
        let link = *progress.chain.get(place).ok_or(Error::NotFound)?;
        if progress.cached_content(link.mark).is_none() {
            let jobs = progress.known_jobs(place, &self.encoded, (help.threads)())?;
            for (job, decoded) in jobs.iter().zip(self.decode_all(&jobs, help)).rev() {
                match decoded {
                    Ok(decoded) => progress.cache_content(job.mark, decoded.content),
                    Err(error) if job.mark == link.mark => return Err(error),
                    // The reader that needs the block reports the error again.
                    Err(_) => {}
                }
            }
        }
        let content = progress.cached_content(link.mark).ok_or(Error::NotFound)?;
        let within = |at: u64| at.checked_sub(link.start).ok_or(Error::NotFound);
        content.append(within(at)?..within(end)?, bytes)
    }

    /// Decodes bzip2 blocks in parallel, the first of them in this thread.
    fn decode_all(
        &self,
        jobs: &[DecodeJob],
        help: &DecodeContext<'_>,
    ) -> Vec<Result<DecodedBlock>> {
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
                // No thread could be started for this block.
                Err(_) => self.decode_one(job, is_wanted),
            }));
            all
        })
    }

    fn decode_one(&self, job: &DecodeJob, is_wanted: &WantedCheck<'_>) -> Result<DecodedBlock> {
        if job.is_possibly_truncated {
            return self.decode_to_the_end(job, is_wanted);
        }
        let mut error = self.encoded.corrupt("bzip2: ends too early");
        for &(next, end) in &job.ends {
            let alone = SingleBlock::cut(&self.encoded, job.bit, end)?;
            match self.decode_content(&alone, is_wanted) {
                Ok((content, true)) => {
                    let sum = alone.sum;
                    return Ok(DecodedBlock { content, sum, next });
                }
                Ok((_, false)) => {}
                Err(unwanted) if unwanted.is_cancelled() => return Err(unwanted),
                Err(damage) => error = self.encoded.with_offset(damage),
            }
        }
        Err(error)
    }

    /// Decodes a stream of one bzip2 block. Returns the content, and whether the stream is
    /// complete.
    fn decode_content(
        &self,
        alone: &SingleBlock,
        is_wanted: &WantedCheck<'_>,
    ) -> Result<(BlockContent, bool)> {
        let mut content = BlockContent::default();
        let most = self.encoded.decoded;
        let is_whole =
            filter::bzip2::decode_in_parts(&alone.stream, most, is_wanted, &mut |part| {
                content.push(part);
            })?;
        Ok((content.finish(), is_whole))
    }

    /// Decodes the last bzip2 block of a truncated stream.
    fn decode_to_the_end(
        &self,
        job: &DecodeJob,
        is_wanted: &WantedCheck<'_>,
    ) -> Result<DecodedBlock> {
        let to = self.encoded.stored.length().times(8);
        let alone = SingleBlock::cut_without_end(&self.encoded, job.bit, to)?;
        let (content, _) = self.decode_content(&alone, is_wanted)?;
        if content.length() == 0 {
            return Err(self.encoded.corrupt("bzip2: ends too early"));
        }
        let (sum, next) = (alone.sum, job.mark.plus_one());
        Ok(DecodedBlock { content, sum, next })
    }
}

impl Bzip2Progress {
    fn append(&mut self, decoded: DecodedBlock) {
        let ChainEnd { mark, start, sum } = self.tip;
        self.chain.push(ChainLink { mark, start });
        self.tip = ChainEnd {
            mark: decoded.next,
            start: start.plus(decoded.content.length()),
            sum: sum.rotate_left(1) ^ decoded.sum,
        };
        self.cache_content(mark, decoded.content);
    }

    /// Checks that the stream ends correctly at the tip, with the length in the header and the
    /// checksum of all blocks. The outer error is a failure to read. The inner error is the failure
    /// of the check.
    fn check_end(&mut self, encoded: &EncodedBlock) -> Result<Result<()>> {
        let Some(mark) = self.find_mark(self.tip.mark, encoded)? else {
            if self.tip.mark > 0 && self.tip.start == encoded.decoded {
                encoded.warn_truncated();
                return Ok(Ok(()));
            }
            return Ok(Err(encoded.corrupt("bzip2: a block is missing")));
        };
        let at = mark.bit.plus(48);
        let bytes = read_bits(encoded, at, at.plus(32))?;
        Ok(if self.tip.start < encoded.decoded {
            Err(encoded.corrupt("block: ends before data_size"))
        } else if bytes != self.tip.sum.to_be_bytes() {
            Err(encoded.corrupt("bzip2: wrong checksum of the stream"))
        } else {
            Ok(())
        })
    }

    /// Returns the next bzip2 blocks from the tip on, or an empty list at the end of the stream.
    fn next_jobs(&mut self, encoded: &EncodedBlock, threads: usize) -> Result<Vec<DecodeJob>> {
        let mut jobs = Vec::new();
        for number in (self.tip.mark..).take(threads.clamp(1, MAX_PARALLEL_BLOCKS)) {
            match self.find_mark(number, encoded)? {
                Some(mark) if !mark.is_end => jobs.push(self.job(number, encoded)?),
                _ => break,
            }
        }
        Ok(jobs)
    }

    /// Returns the bzip2 block with the index `place` in the chain. If the content of the previous
    /// block is cached, the reader is sequential, and the result contains the following blocks too.
    fn known_jobs(
        &mut self,
        place: usize,
        encoded: &EncodedBlock,
        threads: usize,
    ) -> Result<Vec<DecodeJob>> {
        let before = place.checked_sub(1).and_then(|place| self.chain.get(place));
        let goes_on = before.is_some_and(|link| self.kept.iter().any(|kept| kept.0 == link.mark));
        let most = if goes_on {
            threads.clamp(1, MAX_PARALLEL_BLOCKS)
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

    fn job(&mut self, mark: usize, encoded: &EncodedBlock) -> Result<DecodeJob> {
        let bit = self.find_mark(mark, encoded)?.ok_or(Error::NotFound)?.bit;
        let mut ends = Vec::new();
        let until = (bit / 8).plus(BLOCK_BYTES);
        for number in (mark.plus_one()..).take(MAX_END_CANDIDATES) {
            match self.marks.get(number, encoded, until)? {
                Some(end) => ends.push((number, end.bit)),
                None => break,
            }
        }
        let is_cut = ends.is_empty() && until >= encoded.stored.length();
        Ok(DecodeJob {
            mark,
            bit,
            ends,
            is_possibly_truncated: is_cut,
        })
    }

    /// Returns the magic number with the index `number`. Returns `None` if it is not within a
    /// block's maximum length of the previous magic number. The first magic number must directly
    /// follow the stream's header.
    fn find_mark(&mut self, number: usize, encoded: &EncodedBlock) -> Result<Option<BitMark>> {
        let until = match number.checked_sub(1) {
            None => FIRST_BIT,
            Some(before) => self.marks.known_mark(before).map_or(0, |mark| mark.bit),
        };
        let until = (until / 8).plus(BLOCK_BYTES);
        let mark = self.marks.get(number, encoded, until)?;
        Ok(mark.filter(|mark| number > 0 || mark.bit == FIRST_BIT))
    }

    /// Returns the cached content of the bzip2 block whose magic number has the index `mark`, and
    /// makes it the most recently used. Returns `None` if it is not cached.
    fn cached_content(&mut self, mark: usize) -> Option<&BlockContent> {
        let place = self.kept.iter().position(|(kept, _)| *kept == mark)?;
        let entry = self.kept.remove(place)?;
        self.kept.push_back(entry);
        self.kept.back().map(|(_, content)| content)
    }

    /// Caches the content of the bzip2 block whose magic number has the index `mark`. Drops the
    /// least recently used contents that no longer fit into the limit.
    fn cache_content(&mut self, mark: usize, content: BlockContent) {
        self.kept.retain(|(kept, _)| *kept != mark);
        self.kept.push_back((mark, content));
        let mut bytes: u64 = self.kept.iter().map(|(_, content)| content.weight()).sum();
        while self.kept.len() > 1
            && bytes > limits::BZIP2_KEPT
            && let Some((_, gone)) = self.kept.pop_front()
        {
            bytes = bytes.minus_or_zero(gone.weight());
        }
    }
}

impl ResumableCodec for Bzip2 {
    type ResumeState = Bzip2Progress;

    fn decode(
        block: &Bzip2Block,
        progress: &mut Bzip2Progress,
        piece: u64,
        help: &mut DecodeContext<'_>,
    ) -> Result<Buffer> {
        let wanted = block.encoded.piece(piece, block.piece);
        let length = to_usize(wanted.length())?;
        block.decode_until(progress, wanted.end(), help)?;
        let mut bytes = Vec::with_capacity(length);
        while bytes.len() < length {
            let before = bytes.len();
            let rest = wanted.skip(to_u64(before));
            block.append_content(progress, rest.start(), rest.end(), &mut bytes, help)?;
            if bytes.len() == before {
                return Err(Error::NotFound);
            }
        }
        Ok(bytes.into())
    }
}
