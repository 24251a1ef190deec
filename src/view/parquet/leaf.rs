//! A leaf: a column of values of one type, and the layout of the values in a page.

use std::ops::Range;
use std::sync::Arc;

use h5fs_reader::array::CancelToken;
use h5fs_reader::error::{Error, Result};
use h5fs_reader::wire::to_usize;

use crate::view::View;
use crate::view::parquet::schema::{Physical, Type};

/// A column.
pub(super) struct Leaf {
    pub(super) kind: Type,
    pub(super) body: Body,
    /// Whether values may be missing. Values within lists of fixed length are never missing.
    pub(super) is_optional: bool,
    pub(super) values: Box<dyn LeafValues>,
    /// The lists of a column of varying-length lists. `values` are then the elements of the lists.
    pub(super) ragged: Option<Box<dyn Lists>>,
}

/// The layout of the values in a page.
#[derive(Debug, Clone)]
pub(super) enum Body {
    /// Values of this many bytes each, one after another.
    Plain(u64),
    /// One bit for each value, beginning with the lowest bit of a byte.
    Bits,
    /// Dictionary indices.
    Indices(Dictionary),
    /// Values of varying length, one after another. The page has this many bytes for each value;
    /// zeros fill the rest.
    Slots(u64),
    /// Values of varying length, one after another. Their total length was counted.
    Counted,
}

/// The distinct values of a column.
#[derive(Debug, Clone)]
pub(super) struct Dictionary {
    /// The values in PLAIN encoding.
    pub(super) values: Arc<[u8]>,
    pub(super) count: u64,
    /// Bytes of a dictionary index: 1 or 2.
    pub(super) index_bytes: u64,
}

/// The array that contains the values of a leaf.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ValueOrigin {
    /// Whether the array does not contain the values of other leaves.
    pub(super) is_alone: bool,
    /// Whether the whole array is local.
    pub(super) is_near: bool,
    /// Whether the chunks of the array must be decoded.
    pub(super) is_decoded: bool,
}

impl ValueOrigin {
    /// Returns the origin of values in `content`.
    pub(super) fn from_view(content: &dyn View, is_alone: bool) -> Self {
        ValueOrigin {
            is_alone,
            is_near: content.is_near(),
            is_decoded: content.chunk_values() > 0,
        }
    }

    /// Returns whether it is costly to read beyond the wanted values.
    pub(super) fn is_costly(self) -> bool {
        self.is_decoded || !self.is_near
    }
}

/// The values of a leaf.
pub(super) trait LeafValues: Send + Sync {
    /// Returns the bytes of memory that a row takes while it is read.
    fn row_bytes(&self) -> u64;

    /// Appends the values of some rows. A boolean takes one byte. A dictionary index takes its
    /// bytes in little-endian order.
    ///
    /// # Errors
    /// Fails if the values cannot be read.
    fn write(&self, rows: Range<u64>, cancel: &CancelToken, out: &mut Written) -> Result<()>;

    /// Appends the values of the first rows, at least one, and stops once `out` has [`ENOUGH`]
    /// bytes, because a text may be long. Returns the next row.
    ///
    /// # Errors
    /// Fails if the values cannot be read.
    fn write_some(&self, rows: Range<u64>, cancel: &CancelToken, out: &mut Written) -> Result<u64> {
        let next = rows.end;
        self.write(rows, cancel, out)?;
        Ok(next)
    }

    /// Returns the array that contains the values; `None` if they are computed, or come from
    /// several arrays.
    fn origin(&self) -> Option<ValueOrigin> {
        None
    }

    /// Returns the minimum and maximum of the values in some rows, in PLAIN encoding, if they are
    /// known without reading the values.
    fn bounds(&self, _rows: Range<u64>) -> Option<[Vec<u8>; 2]> {
        None
    }

    /// Returns the bytes of memory that the values take.
    fn own_bytes(&self) -> u64;
}

/// The lists of a column.
pub(super) trait Lists: Send + Sync {
    /// Returns the number of elements in the list of each row.
    ///
    /// # Errors
    /// Fails if the lists cannot be read.
    fn lengths(&self, rows: Range<u64>, cancel: &CancelToken) -> Result<Vec<u64>>;

    /// Returns the elements of the lists of some rows, if all elements are in one array. The leaf's
    /// values are then numbered by elements, not by rows.
    ///
    /// # Errors
    /// Fails if the lists cannot be read.
    fn elements(&self, rows: &Range<u64>, cancel: &CancelToken) -> Result<Option<Range<u64>>>;
}

/// Bytes of values of varying length to write at a time.
pub(super) const ENOUGH: usize = 256 << 10;

/// The encoded values of some rows.
#[derive(Debug, Default)]
pub(super) struct Written {
    /// The values that are not missing, one after another.
    pub(super) bytes: Vec<u8>,
    /// Whether each row has a value, for an optional leaf.
    pub(super) present: Vec<bool>,
}

impl Dictionary {
    /// Returns the entry with this index, in PLAIN encoding. `kind` is the type of the entries.
    ///
    /// # Errors
    /// `Corrupt` if the index is out of range.
    pub(super) fn value(&self, index: &[u8], kind: Type) -> Result<Vec<u8>> {
        let index = index.iter().rev();
        let index = index.fold(0, |index, &byte| index << 8 | usize::from(byte));
        let mut entries: &[u8] = &self.values;
        let mut entry: &[u8] = &[];
        for _ in 0..=index {
            let length = match kind.physical {
                Physical::ByteArray => {
                    let length = entries.first_chunk().copied().map_or(0, u32::from_le_bytes);
                    to_usize(u64::from(length) + 4)?
                }
                physical => to_usize(physical.bytes())?,
            };
            let nowhere = || Error::corrupt("parquet: a value beyond its dictionary", None);
            (entry, entries) = entries.split_at_checked(length).ok_or_else(nowhere)?;
        }
        Ok(entry.to_vec())
    }
}

impl Leaf {
    /// Returns whether the bytes and the number of the values must be counted.
    pub(super) fn is_counted(&self) -> bool {
        matches!(self.body, Body::Counted)
    }
}

impl Body {
    /// Returns the bytes of the values of `rows` rows, with `repeats` values each. `counted` is the
    /// counted length, if any.
    pub(super) fn bytes(&self, rows: u64, repeats: u64, counted: u64) -> u64 {
        let values = rows.saturating_mul(repeats);
        match self {
            Body::Plain(width) | Body::Slots(width) => values.saturating_mul(*width),
            Body::Bits => values.div_ceil(8),
            Body::Indices(dictionary) => values
                .div_ceil(8)
                .saturating_mul(8)
                .saturating_mul(dictionary.index_bytes),
            Body::Counted => counted,
        }
    }
}
