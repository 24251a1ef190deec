//! The content of blocks as arrays of bytes, and the verification of their checksums.

use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};

use lru::LruCache;
use md5::{Digest, Md5};

use crate::asdf::block::Block;
use crate::asdf::chain::BlockList;
use crate::asdf::compression::chunk_table::SharedChunkTables;
use crate::asdf::compression::{self, BlockCaches};
use crate::error::{Error, Result};
use crate::memory::lock::lock;
use crate::model::Shape;
use crate::model::array::{Array, Fill, Layout, Storage};
use crate::model::datatype::{ByteOrder, Datatype};
use crate::model::extras::ArrayBytesReader;
use crate::model::storage::{Pipeline, StoredExtent};
use crate::source::SharedSource;
use crate::wire::{Count, Extent};

/// Number of blocks of an ASDF file whose headers and decoders are cached.
const BLOCK_CACHE: NonZeroUsize = NonZeroUsize::new(1024).unwrap();

/// The blocks of a file with their content.
#[derive(Debug)]
pub(crate) struct BlockContents {
    source: SharedSource,
    blocks: BlockList,
    cached: Mutex<LruCache<usize, Arc<CachedBlock>>>,
    /// For each block, whether its checksum was verified.
    verified_blocks: Vec<AtomicBool>,
    caches: BlockCaches,
}

/// A recently used block.
#[derive(Debug)]
struct CachedBlock {
    block: Block,
    array: OnceLock<Arc<Array>>,
    /// The error of a wrong checksum, after it was found. Locked while the checksum is computed, so
    /// that only one thread computes it.
    fault: Mutex<Option<Error>>,
}

impl CachedBlock {
    fn new(block: Block) -> Self {
        CachedBlock {
            block,
            array: OnceLock::new(),
            fault: Mutex::default(),
        }
    }
}

impl BlockContents {
    pub(crate) fn new(source: SharedSource, blocks: BlockList, tables: &SharedChunkTables) -> Self {
        BlockContents {
            source,
            verified_blocks: blocks.list.iter().map(|_| AtomicBool::default()).collect(),
            blocks,
            cached: Mutex::new(LruCache::sparse(BLOCK_CACHE)),
            caches: BlockCaches::new(tables),
        }
    }

    pub(crate) fn blocks(&self) -> &BlockList {
        &self.blocks
    }

    /// Returns the header of the block with the index `place` in the file's list of blocks.
    ///
    /// # Errors
    /// `NotFound` if `place` is after the last block. Otherwise fails if the header is damaged.
    pub(crate) fn block(&self, place: usize) -> Result<Block> {
        self.cached_block(place).map(|cached| cached.block.clone())
    }

    fn cached_block(&self, place: usize) -> Result<Arc<CachedBlock>> {
        if let Some(cached_block) = self.lock_cache().get(&place) {
            return Ok(Arc::clone(cached_block));
        }
        let block = Block::read(&*self.source, self.blocks.block_offset(place)?)?;
        let mut cached = self.lock_cache();
        let cached_block = cached.get_or_insert(place, || Arc::new(CachedBlock::new(block)));
        Ok(Arc::clone(cached_block))
    }

    fn lock_cache(&self) -> MutexGuard<'_, LruCache<usize, Arc<CachedBlock>>> {
        lock(&self.cached)
    }

    /// Returns the content of the block with the index `place` as an array of bytes. An
    /// uncompressed block is read directly from the file.
    ///
    /// # Errors
    /// Fails if the header is damaged. If the block cannot be decoded, the array's storage is the
    /// error.
    pub(crate) fn array(&self, place: usize) -> Result<Arc<Array>> {
        let cached = self.cached_block(place)?;
        if let Some(array) = cached.array.get() {
            return Ok(Arc::clone(array));
        }
        let block = &cached.block;
        let storage = match block.content_length() {
            Ok(length) if block.is_plain() => {
                let extent = self.extent(block, 0, length);
                extent.map(|extent| Storage::Extents(vec![extent]))
            }
            _ => compression::open_piece_decoder(&self.source, block, &self.caches)
                .map(Storage::Encoded),
        };
        let is_passing = matches!(&storage, Err(error) if error.is_transient());
        let array = Arc::new(bytes(block, storage));
        if is_passing {
            Ok(array)
        } else {
            Ok(Arc::clone(cached.array.get_or_init(|| array)))
        }
    }

    /// Returns the location in the file of `length` bytes of an uncompressed block's content, from
    /// the offset `offset` in the content on.
    ///
    /// # Errors
    /// `Corrupt` if the end overflows.
    pub(crate) fn extent(&self, block: &Block, offset: u64, length: u64) -> Result<StoredExtent> {
        let content = Extent::new(block.data_offset, offset.plus(length), "block")?;
        Ok(StoredExtent {
            source: Arc::clone(&self.source),
            extent: content.skip(offset),
        })
    }

    /// Compares the block with the checksum in its header, if it has one. The specification
    /// requires the checksum of the stored bytes, but most compressed blocks were written with the
    /// checksum of the decoded bytes.
    ///
    /// # Errors
    /// `Corrupt` if the checksum matches neither the stored nor the decoded bytes. Otherwise fails
    /// if the block cannot be read.
    pub(crate) fn verify(&self, place: usize, read_all: &ArrayBytesReader<'_>) -> Result<()> {
        let cached = self.cached_block(place)?;
        let is_verified = self.verified_blocks.get(place).ok_or(Error::NotFound)?;
        let mut fault = lock(&cached.fault);
        if is_verified.load(Ordering::Relaxed) {
            return Ok(());
        }
        if let Some(error) = &*fault {
            return Err(error.clone());
        }
        let verified = self.compare_checksum(place, &cached.block, read_all);
        match &verified {
            Ok(()) => is_verified.store(true, Ordering::Relaxed),
            Err(error) if error.is_transient() => {}
            Err(error) => *fault = Some(error.clone()),
        }
        verified
    }

    fn compare_checksum(
        &self,
        place: usize,
        block: &Block,
        read_all: &ArrayBytesReader<'_>,
    ) -> Result<()> {
        block.content_length()?;
        if !block.has_checksum() || block.matches_checksum(&*self.source)? {
            return Ok(());
        }
        if !block.is_plain() {
            let mut sum = Md5::new();
            read_all(&self.array(place)?, &mut |bytes| sum.update(bytes))?;
            if sum.finalize()[..] == block.checksum {
                return Ok(());
            }
        }
        Err(Error::corrupt("block: wrong checksum", block.header_offset))
    }
}

/// Returns the description of the block's content as an array of bytes, which `storage` provides.
fn bytes(block: &Block, storage: Result<Storage>) -> Array {
    Array {
        datatype: Datatype::integer(1, false, ByteOrder::Little),
        shape: Shape::fixed(vec![block.content_length().unwrap_or(0)]),
        fill: Fill::Zero,
        layout: Layout::Block,
        chunk_shape: None,
        pipeline: Pipeline::default(),
        storage,
    }
}
