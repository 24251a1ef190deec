//! What blocks hold: their content as arrays of bytes, and whether it has its checksum.

use std::sync::{Arc, OnceLock};

use md5::{Digest, Md5};

use crate::asdf::block::{Block, Blocks};
use crate::asdf::compression::resumable::Resumables;
use crate::asdf::compression::{self, plain::Plain};
use crate::error::{Error, Result};
use crate::model::Shape;
use crate::model::array::{Array, Fill, Layout};
use crate::model::datatype::{ByteOrder, Datatype};
use crate::model::storage::{Extent, Pieces, Pipeline, Storage};
use crate::source::SharedSource;

/// The blocks of a file with their content.
#[derive(Debug)]
pub struct Contents {
    source: SharedSource,
    blocks: Blocks,
    cells: Vec<Cell>,
    resumables: Arc<Resumables>,
}

/// What is known of a block once it was asked for.
#[derive(Debug, Default)]
struct Cell {
    array: OnceLock<Arc<Array>>,
    base: OnceLock<Arc<Array>>,
    verified: OnceLock<Result<()>>,
}

impl Contents {
    /// The blocks of `source`.
    pub fn new(source: SharedSource, blocks: Blocks) -> Self {
        let cells = blocks.list.iter().map(|_| Cell::default()).collect();
        Contents {
            source,
            blocks,
            cells,
            resumables: Arc::default(),
        }
    }

    /// The blocks.
    pub fn blocks(&self) -> &Blocks {
        &self.blocks
    }

    /// The content as bytes: a plain block as it stands in the file.
    ///
    /// # Errors
    /// As the header is damaged; what cannot be decoded is an error of the array's storage.
    pub fn array(&self, place: usize) -> Result<Arc<Array>> {
        let block = self.blocks.get(place)?;
        let cell = self.cells.get(place).ok_or(Error::NotFound)?;
        if let Some(array) = cell.array.get() {
            return Ok(Arc::clone(array));
        }
        let storage = match block.size() {
            Ok(length) if block.is_plain() => {
                Ok(Storage::Extents(vec![self.extent(block, 0, length)]))
            }
            _ => self.pieces(block).map(Storage::Encoded),
        };
        let is_passing = matches!(&storage, Err(error) if error.is_passing());
        let array = Arc::new(bytes(block, storage));
        match is_passing {
            true => Ok(array),
            false => Ok(Arc::clone(cell.array.get_or_init(|| array))),
        }
    }

    /// The content as bytes that are fetched in pieces, for elements that stand at strides: what is
    /// fetched for one element serves its neighbours.
    ///
    /// # Errors
    /// As the header is damaged, or the block cannot be decoded.
    pub fn base(&self, place: usize) -> Result<Arc<Array>> {
        let block = self.blocks.get(place)?;
        let cell = self.cells.get(place).ok_or(Error::NotFound)?;
        let array = match block.is_plain() {
            false => self.array(place)?,
            true => Arc::clone(cell.base.get_or_init(|| {
                let storage = self.plain(block).map(Storage::Encoded);
                Arc::new(bytes(block, storage))
            })),
        };
        match &array.storage {
            Ok(_) => Ok(array),
            Err(error) => Err(error.clone()),
        }
    }

    /// `length` bytes of a plain block's content.
    pub fn extent(&self, block: &Block, offset: u64, length: u64) -> Extent {
        Extent {
            source: Arc::clone(&self.source),
            offset: block.data.saturating_add(offset),
            length,
        }
    }

    fn pieces(&self, block: &Block) -> Result<Arc<dyn Pieces>> {
        compression::pieces(&self.source, block, &self.resumables)
    }

    fn plain(&self, block: &Block) -> Result<Arc<dyn Pieces>> {
        let content = self.extent(block, 0, block.size()?);
        Ok(Arc::new(Plain::new(content)))
    }

    /// Compares the block with its checksum. The specification has the sum of the stored bytes; most
    /// compressed blocks were written with that of the decoded ones.
    ///
    /// # Errors
    /// `Corrupt` where it is neither, otherwise as the block cannot be read.
    pub fn verify(&self, place: usize) -> Result<()> {
        let block = self.blocks.get(place)?;
        let cell = self.cells.get(place).ok_or(Error::NotFound)?;
        if let Some(verified) = cell.verified.get() {
            return verified.clone();
        }
        match self.verified(block) {
            Err(error) if error.is_passing() => Err(error),
            verified => cell.verified.get_or_init(|| verified).clone(),
        }
    }

    fn verified(&self, block: &Block) -> Result<()> {
        block.size()?;
        if !block.has_checksum() || block.has_sum_of_stored(&*self.source)? {
            return Ok(());
        }
        if !block.is_plain() && self.sum_of_decoded(block)? == block.checksum {
            return Ok(());
        }
        Err(Error::corrupt("block: the checksum is another", block.at))
    }

    fn sum_of_decoded(&self, block: &Block) -> Result<[u8; 16]> {
        let pieces = self.pieces(block)?;
        let mut sum = Md5::new();
        for piece in 0..pieces.bytes().div_ceil(pieces.piece_bytes().max(1)) {
            sum.update(&*pieces.decode(piece)?);
        }
        Ok(sum.finalize().into())
    }
}

/// An array of bytes, as long as the block's content.
fn bytes(block: &Block, storage: Result<Storage>) -> Array {
    Array {
        datatype: Datatype::integer(1, false, ByteOrder::Little),
        shape: Shape::fixed(vec![block.size().unwrap_or(0)]),
        fill: Fill::Zero,
        layout: Layout::Block,
        chunk_shape: None,
        pipeline: Pipeline::default(),
        storage,
    }
}
