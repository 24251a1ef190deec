//! The description of an array: what it is and where its bytes stand, but not the bytes.

use std::sync::Arc;

use crate::error::{Error, Result};
use crate::model::storage::{Pipeline, Storage};
use crate::model::{Datatype, Shape};

/// HDF5: dataset. ASDF: ndarray.
#[derive(Debug)]
pub struct Array {
    /// The type of one stored element.
    pub datatype: Datatype,
    /// The extent.
    pub shape: Shape,
    /// What elements that are stored nowhere read as.
    pub fill: Fill,
    /// The layout's name as the user is told it.
    pub layout: Layout,
    /// The chunks' shape in elements, where the file stores chunks.
    pub chunk_shape: Option<Vec<u64>>,
    /// The filters of the chunks, in writing order.
    pub pipeline: Pipeline,
    /// Where the bytes are, or why they cannot be read although all else is known.
    pub storage: Result<Storage>,
}

impl Array {
    /// Bytes of all elements, the size of the raw file.
    ///
    /// # Errors
    /// `Limit` where they do not fit 63 bits.
    pub fn bytes(&self) -> Result<u64> {
        const MOST: u64 = i64::MAX.unsigned_abs();
        let size = u64::from(self.datatype.size);
        let bytes = self.shape.elements()?.checked_mul(size);
        bytes
            .filter(|&bytes| bytes <= MOST)
            .ok_or_else(|| Error::limit("size of an array", MOST))
    }
}

/// What elements that are stored nowhere read as.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fill {
    /// The format's default: zeros (HDF5: also where the fill value is undefined).
    Zero,
    /// One element's bytes, in the stored type.
    Value(Arc<[u8]>),
}

impl Fill {
    /// Whether every byte is zero.
    pub fn is_zero(&self) -> bool {
        match self {
            Fill::Zero => true,
            Fill::Value(element) => element.iter().all(|&byte| byte == 0),
        }
    }
}

/// Where the file keeps the elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layout {
    /// In the object header.
    Compact,
    /// In one piece.
    Contiguous,
    /// In chunks.
    Chunked,
    /// In other datasets.
    Virtual,
    /// In other files, raw.
    External,
    /// ASDF: in the tree.
    Inline,
    /// ASDF: in a block.
    Block,
}
