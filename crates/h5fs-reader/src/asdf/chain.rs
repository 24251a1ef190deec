//! The chain of consecutive blocks in a file ("Low-level file layout": Blocks).
//!
//! The headers are read in order, each at the end of the previous block. The block index is trusted
//! only if the chain is broken or its beginning is missing, because an index may be outdated or
//! wrong. Only the offset of each block is kept in memory, and its header is read again when it is
//! needed.

use std::ops::Range;

use crate::asdf::block::{Block, HEADER, MAGIC};
use crate::asdf::window::{self, Window};
use crate::asdf::{block_index, scan};
use crate::error::{Error, Result};
use crate::limits;
use crate::source::{Source, Urgency};
use crate::wire::{Count, Extent, to_u64, to_usize};

/// The blocks of a file.
#[derive(Debug, Default)]
pub(crate) struct BlockList {
    /// The file offsets of the blocks, ascending. A block with a damaged header does not hide the
    /// following blocks.
    pub(crate) list: Vec<u64>,
    /// The error at which the walk along the chain ended. The list may then be incomplete. `None`
    /// if the list is complete.
    pub(crate) chain_error: Option<Error>,
}

/// Searches for the first block from the file offset `from` on. Returns a list of that block alone,
/// or an empty list if no block is found.
///
/// # Errors
/// `Io` if the source cannot be read.
pub(crate) fn list_first_block(source: &dyn Source, from: u64) -> Result<BlockList> {
    let mut blocks = BlockList::default();
    let range = Extent::saturating(from, limits::BLOCK_SEARCH).range();
    if let Some(at) = scan::find(source, &range, MAGIC)? {
        let lost = lost_blocks(source, from..at)?;
        blocks.list.push(lost.first().copied().unwrap_or(at));
    }
    Ok(blocks)
}

/// Returns the offsets of blocks with overwritten headers: those that the block index lists in
/// `gap`, the bytes before the first block that was found. If the list of blocks lacked them, each
/// block number would refer to a wrong block.
fn lost_blocks(source: &dyn Source, gap: Range<u64>) -> Result<Vec<u64>> {
    let length = gap.end.minus_or_zero(gap.start);
    if length < HEADER || scan::find_nonzero(source, &gap)?.is_none() {
        return Ok(Vec::new());
    }
    let mut index = block_index::read(source)?.unwrap_or_default();
    let first = index.iter().position(|&at| at == gap.end);
    let are_within = index.first().is_some_and(|&at| at >= gap.start);
    index.truncate(first.filter(|_| are_within).unwrap_or(0));
    Ok(index)
}

/// Lists all blocks by following the chain from the first block at or after the file offset `from`.
///
/// # Errors
/// `Io` if the source cannot be read.
pub(crate) fn walk_blocks(source: &dyn Source, from: u64) -> Result<BlockList> {
    let range = Extent::saturating(from, limits::BLOCK_SEARCH).range();
    let mut blocks = BlockList::default();
    let Some(first) = scan::find(source, &range, MAGIC)? else {
        if range.end < source.length() {
            let error = Error::limit("bytes before the first block", limits::BLOCK_SEARCH);
            blocks.chain_error = Some(error);
        }
        return Ok(blocks);
    };
    blocks.list = lost_blocks(source, from..first)?;
    prefetch_headers(source);
    let mut window = Window::new(source);
    let (mut at, mut doubt) = (Some(first), None);
    while let Some(here) = at {
        if blocks.list.len() >= limits::BLOCKS {
            blocks.chain_error = Some(Error::limit("number of blocks", to_u64(limits::BLOCKS)));
            return Ok(blocks);
        }
        let block = Block::parse(&mut window, here);
        at = match block.and_then(|block| next_structure(source, &mut window, &block)) {
            Ok(NextBlock::Block(next)) => Some(next),
            Ok(NextBlock::None) => None,
            Ok(NextBlock::Uncertain(why)) => {
                doubt = Some(why);
                None
            }
            Err(error) if error.is_transient() => {
                let known = [blocks.list, vec![here]].concat();
                blocks.list = read_indexed_blocks(&mut window, &known)?.ok_or(error)?;
                return Ok(blocks);
            }
            Err(error) => {
                blocks.chain_error = Some(error);
                None
            }
        };
        blocks.list.push(here);
    }
    if doubt.is_some() && block_index::read(source)?.as_ref() != Some(&blocks.list) {
        blocks.chain_error = doubt;
    }
    if blocks.chain_error.is_some() {
        recover(source, &mut blocks)?;
    }
    Ok(blocks)
}

/// Prefetches the headers of all blocks that the block index lists, if the source is remote. The
/// index need not be correct, because the walk follows the chain.
fn prefetch_headers(source: &dyn Source) {
    const INDEX_LOOK: u64 = 64 << 10;
    if !source.is_remote() {
        return;
    }
    if let Ok(Some(index)) = block_index::read_in_last(source, INDEX_LOOK) {
        let headers = index.into_iter().take(limits::RANGES_AT_ONCE);
        let headers: Vec<_> = headers.map(|at| (at, window::MIN_READ)).collect();
        source.prefetch(&headers, Urgency::Expected);
    }
}

/// Returns the offsets in the block index, for a chain that a read error interrupts at the header
/// of the last `known` block. Returns `None` if the index does not begin with the `known` blocks,
/// or if no block begins at its next offset.
fn read_indexed_blocks(window: &mut Window<'_>, known: &[u64]) -> Result<Option<Vec<u64>>> {
    let index = block_index::read(window.source())?.unwrap_or_default();
    let Some(beyond) = index.strip_prefix(known) else {
        return Ok(None);
    };
    let is_none = |&at| matches!(Block::parse(window, at), Err(error) if !error.is_transient());
    let agrees = !beyond.first().is_some_and(is_none);
    Ok(agrees.then_some(index))
}

/// The structure that follows a block in the file.
enum NextBlock {
    Block(u64),
    None,
    /// No block was found, but more blocks may follow, and the error says why. If the block index
    /// lists exactly the blocks found so far, the list is complete.
    Uncertain(Error),
}

/// Determines which structure follows `block`.
///
/// # Errors
/// Fails if the chain is broken: neither a block nor an index nor zeros follow.
fn next_structure(
    source: &dyn Source,
    window: &mut Window<'_>,
    block: &Block,
) -> Result<NextBlock> {
    let room = if block.is_overfull {
        block.used_size
    } else {
        block.allocated_size
    };
    let next = block.data_offset.checked_add(room);
    let next = next.filter(|&next| next <= window.length());
    if block.streamed {
        return structure_after_streamed(window, block, next);
    }
    let Some(next) = next else {
        return Err(Error::corrupt(
            "block: reaches past the end of the file",
            block.header_offset,
        ));
    };
    let index = to_u64(block_index::MAGIC.len());
    let bytes = window.piece(Extent::saturating(next, index))?;
    let begins_with_zeros = bytes.iter().take(MAGIC.len()).all(|&byte| byte == 0);
    if bytes.starts_with(MAGIC) {
        return Ok(NextBlock::Block(next));
    }
    if bytes.len() < MAGIC.len() || bytes == block_index::MAGIC {
        return Ok(NextBlock::None);
    }
    let error = Error::corrupt("no block begins at the end of the previous block", next);
    if !begins_with_zeros {
        return Err(error);
    }
    let zeros = Extent::saturating(next, limits::BLOCK_INDEX_SEARCH).range();
    Ok(match scan::find_nonzero(source, &zeros)? {
        None => NextBlock::None,
        Some(_) => NextBlock::Uncertain(error),
    })
}

/// Determines which structure follows a block with the streamed flag. `next` is the offset at which
/// the block would end without this flag, or `None` if that is past the end of the file.
fn structure_after_streamed(
    window: &mut Window<'_>,
    block: &Block,
    next: Option<u64>,
) -> Result<NextBlock> {
    let next = next.filter(|&next| next > block.data_offset);
    Ok(match next {
        Some(next) if window.piece(Extent::saturating(next, 4))? == MAGIC => {
            let error = "block: it is streamed, but another block follows";
            NextBlock::Uncertain(Error::corrupt(error, block.header_offset))
        }
        _ => NextBlock::None,
    })
}

/// Adds the blocks after the break in the chain to `blocks`, from the block index. Then clears
/// `chain_error`. Changes nothing if the index contradicts the blocks before the break, or if no
/// block begins at any of the further offsets.
fn recover(source: &dyn Source, blocks: &mut BlockList) -> Result<()> {
    let Some(index) = block_index::read(source)? else {
        return Ok(());
    };
    let count = blocks.list.len();
    let mut window = Window::new(source);
    let mut is_block = |at: u64| Block::parse(&mut window, at).is_ok();
    let mut agrees = |(&known, &entry): (&u64, &u64)| known == entry || !is_block(known);
    if index.len() <= count || !blocks.list.iter().zip(&index).all(&mut agrees) {
        return Ok(());
    }
    let beyond = index.get(count..).unwrap_or_default();
    if beyond.iter().any(|&at| is_block(at)) {
        blocks.list.extend(beyond);
        blocks.chain_error = None;
    }
    Ok(())
}

impl BlockList {
    /// Returns the index into the list for the block `number`, as an ndarray's `source` states it.
    /// Negative numbers count from the end. Errors refer to the file offset `at` of the `source`.
    ///
    /// # Errors
    /// `Corrupt` if the block does not exist. If the list may be incomplete, the error that ended
    /// the walk along the chain.
    pub(crate) fn list_index(&self, number: i128, at: u64) -> Result<usize> {
        let count = i128::from(to_u64(self.list.len()));
        let place = match number {
            0.. => Some(number),
            _ => number.checked_add(count),
        };
        if let (true, Some(error)) = (number < 0, &self.chain_error) {
            return Err(error.clone());
        }
        let place = place.filter(|&place| place < count);
        let place = place.and_then(|place| u64::try_from(place).ok());
        place.map_or_else(|| Err(self.missing(number, at)), to_usize)
    }

    fn missing(&self, number: i128, at: u64) -> Error {
        match &self.chain_error {
            Some(error) => error.clone(),
            None => Error::corrupt(format!("ndarray: there is no block {number}"), at),
        }
    }

    /// Returns the file offset of the block with the index `place` in the list.
    ///
    /// # Errors
    /// `NotFound` if `place` is after the last block.
    pub(crate) fn block_offset(&self, place: usize) -> Result<u64> {
        self.list.get(place).copied().ok_or(Error::NotFound)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::asdf::block::tests::block;
    use crate::memory::cancel::WantedCheck;
    use crate::source::memory::MemorySource;
    use crate::source::recording::RoundTripRecorder;

    fn walk_file(bytes: Vec<u8>) -> (BlockList, Vec<Result<Block>>) {
        let source = MemorySource::new(bytes);
        let blocks = walk_blocks(&source, 0).unwrap();
        let list = blocks.list.iter();
        let list = list.map(|&at| Block::read(&source, at)).collect();
        (blocks, list)
    }

    fn places(list: &[Result<Block>]) -> Vec<Option<u64>> {
        let at = |block: &Result<Block>| block.as_ref().ok().map(|block| block.header_offset);
        list.iter().map(at).collect()
    }

    fn first_block(list: &[Result<Block>]) -> &Block {
        list[0].as_ref().unwrap()
    }

    #[test]
    fn blocks_follow_their_allocated_sizes() {
        let bytes = [b"\xd3\xd3BL ".to_vec(), block(b"abc", 5), block(b"", 0)].concat();
        let (blocks, list) = walk_file([bytes, b"\0\0\0\0\0".to_vec()].concat());
        assert_eq!(places(&list), [Some(5), Some(64)]);
        assert_eq!(
            (
                first_block(&list).data_offset,
                first_block(&list).content_length()
            ),
            (59, Ok(3))
        );
        assert_eq!(
            (blocks.list_index(-1, 7), blocks.chain_error.is_none()),
            (Ok(1), true)
        );
        for number in [2, -3] {
            let why = blocks.list_index(number, 7).unwrap_err().to_string();
            assert_eq!(
                why,
                format!("ndarray: there is no block {number} (corrupt, at byte 7)")
            );
        }
    }

    #[test]
    fn an_index_leads_over_a_broken_chain() {
        let index = b"#ASDF BLOCK INDEX\n%YAML 1.1\n---\n- 0\n- 56\n- 112\n...\n".to_vec();
        let mut second = block(b"ab", 2);
        second[0] = b'x';
        let bytes = [block(b"ab", 2), second, block(b"cd", 2), index].concat();
        let (_, list) = walk_file(bytes.clone());
        assert_eq!(places(&list), [Some(0), None, Some(112)]);
        let (without, list) = walk_file(bytes[..168].to_vec());
        assert_eq!(places(&list), [Some(0)]);
        assert!(
            without.list_index(-1, 7).is_err(),
            "which block is the last is not known"
        );
    }

    #[test]
    fn remote_block_headers_are_requested_together() {
        let blocks: Vec<u8> = (0..50).flat_map(|_| block(&[7; 99_946], 99_946)).collect();
        let offsets = (0..50).map(|number| format!("- {}\n", number * 100_000));
        let list: String = offsets.collect();
        let index = format!("#ASDF BLOCK INDEX\n%YAML 1.1\n---\n{list}...\n");
        let far = RoundTripRecorder::new([blocks.clone(), index.into_bytes()].concat());
        assert_eq!(walk_blocks(&*far, 0).unwrap().list.len(), 50);
        assert!(far.round_trips() <= 4, "{}", far.round_trips());
        let without = RoundTripRecorder::new(blocks);
        assert_eq!(walk_blocks(&*without, 0).unwrap().list.len(), 50);
        assert!(without.round_trips() > 4);
    }

    #[test]
    fn an_overfull_block_is_valid_if_the_next_follows_it() {
        let full = |content: &[u8]| {
            let mut bytes = block(content, 9);
            bytes[21] = 4;
            bytes
        };
        let (_, list) = walk_file([full(b"abcdefghi"), block(b"jk", 2)].concat());
        assert_eq!(places(&list), [Some(0), Some(63)]);
        assert_eq!(
            (
                first_block(&list).allocated_size,
                first_block(&list).content_length()
            ),
            (4, Ok(9))
        );
        // Either no block follows, or a block begins where the allocated size ends. In both cases,
        // the wrong size is unknown.
        let (_, last) = walk_file(full(b"abcdefghi"));
        assert!(first_block(&last).content_length().is_err());
        let within = [full(b"abcd\xd3BLK!"), block(b"jk", 2)].concat();
        assert!(first_block(&walk_file(within).1).content_length().is_err());
    }

    #[test]
    fn zeros_hide_no_blocks() {
        let chain = [block(b"ab", 2), block(b"cd", 2), block(b"ef", 2)].concat();
        let index = b"#ASDF BLOCK INDEX\n%YAML 1.1\n---\n- 0\n- 56\n- 112\n...\n";
        let mut hidden = chain.clone();
        hidden[56..60].fill(0);
        let (blocks, list) = walk_file([&hidden[..], index].concat());
        assert_eq!(
            (places(&list), blocks.list_index(-1, 7)),
            (vec![Some(0), None, Some(112)], Ok(2))
        );
        let (blocks, _) = walk_file(hidden.clone());
        assert!(blocks.list_index(-1, 7).is_err() && blocks.list_index(0, 7) == Ok(0));
        // The last block is completely overwritten.
        hidden[112..].fill(0);
        hidden[56..112].fill(0);
        let (blocks, _) = walk_file([&hidden[..], index].concat());
        assert!(blocks.list_index(-1, 7).is_err() && blocks.list_index(1, 7).is_err());
        // No block is missing if the index agrees, or if only zeros follow.
        let zeros = vec![0; 100_000];
        let (blocks, _) = walk_file([&chain[..], &zeros, index].concat());
        assert_eq!(
            (blocks.list_index(-1, 7), blocks.chain_error),
            (Ok(2), None)
        );
        let (blocks, _) = walk_file([&chain[..], &zeros].concat());
        assert_eq!(
            (blocks.list_index(-1, 7), blocks.chain_error),
            (Ok(2), None)
        );
    }

    #[test]
    fn a_first_block_without_magic_is_still_counted() {
        let index = b"#ASDF BLOCK INDEX\n%YAML 1.1\n---\n- 3\n- 59\n...\n";
        let mut bytes = [&b"\n\0 "[..], &block(b"ab", 2), &block(b"cd", 2), index].concat();
        bytes[3] = 0;
        let (blocks, list) = walk_file(bytes.clone());
        assert_eq!(places(&list), [None, Some(59)]);
        assert_eq!(
            (blocks.list_index(1, 7), blocks.list_index(-1, 7)),
            (Ok(1), Ok(1))
        );
        let source = MemorySource::new(bytes.clone());
        assert_eq!(list_first_block(&source, 0).unwrap().list, [3]);
        // An index that begins elsewhere does not describe the gap.
        assert_eq!(list_first_block(&source, 4).unwrap().list, [59]);
        let end = bytes.len() - index.len();
        bytes.truncate(end);
        assert_eq!(places(&walk_file(bytes).1), [Some(59)]);
    }

    #[test]
    fn a_streamed_flag_before_other_blocks_is_ignored() {
        let index = b"#ASDF BLOCK INDEX\n%YAML 1.1\n---\n- 0\n- 56\n...\n";
        let mut chain = [block(b"ab", 2), block(b"cd", 2)].concat();
        chain[9] = 1;
        let (blocks, _) = walk_file([&chain[..], index].concat());
        assert_eq!(blocks.list_index(-1, 7), Ok(1));
        let (blocks, _) = walk_file(chain);
        assert!(blocks.list_index(-1, 7).is_err() && blocks.list_index(1, 7).is_err());
        assert_eq!(blocks.list_index(0, 7), Ok(0));
    }

    /// A source that fails if a read touches bytes in this range, as on a damaged disk.
    #[derive(Debug)]
    struct DamagedDisk(MemorySource, Range<u64>);

    impl Source for DamagedDisk {
        fn length(&self) -> u64 {
            self.0.length()
        }

        fn read_cancellable(
            &self,
            at: u64,
            buffer: &mut [u8],
            is_wanted: &WantedCheck<'_>,
        ) -> Result<()> {
            let end = at + to_u64(buffer.len());
            if at < self.1.end && end > self.1.start {
                let error = std::io::Error::from_raw_os_error(5);
                return Err(Error::from_io(&error, "a bad disk"));
            }
            self.0.read_cancellable(at, buffer, is_wanted)
        }
    }

    #[test]
    fn a_header_that_cannot_be_read_hides_no_indexed_blocks() {
        const NEXT: u64 = 100_000;
        let chain = block(b"ab", NEXT - 54).repeat(3);
        let walk_damaged = |index: &str, bad| {
            let index = format!("#ASDF BLOCK INDEX\n%YAML 1.1\n---\n{index}...\n");
            let bytes = [&chain[..], index.as_bytes()].concat();
            let blocks = walk_blocks(&DamagedDisk(MemorySource::new(bytes), bad), 0);
            blocks.map(|blocks| (blocks.list, blocks.chain_error))
        };
        let (second, third) = (NEXT, 2 * NEXT);
        let index = "- 0\n- 100000\n- 200000\n";
        for bad in [
            second..second + 1,
            second + 30..second + 31,
            third..third + 4,
            third + 53..third + 54,
            second..third + 1,
        ] {
            assert_eq!(walk_damaged(index, bad), Ok((vec![0, second, third], None)));
        }
        for index in [
            "- 0\n- 100001\n- 200000\n",
            "- 0\n- 100000\n- 200001\n",
            "- 0\n",
        ] {
            let walked = walk_damaged(index, second + 30..second + 31);
            assert!(matches!(walked, Err(Error::Io { .. })), "{index}");
        }
    }

    #[test]
    fn a_block_of_any_size_ends_the_chain() {
        let mut huge = block(b"ab", 2);
        huge[14..22].fill(0xff);
        let mut streamed = block(b"", 0);
        streamed[9] = 1;
        streamed[14..38].fill(0xff);
        streamed.extend(b"\xd3BLK and more");
        for (bytes, is_broken) in [(huge, true), (streamed, false)] {
            let (blocks, list) = walk_file(bytes);
            assert_eq!((list.len(), blocks.chain_error.is_some()), (1, is_broken));
        }
    }
}
