//! A leaf: a column of values of one type, and how they stand in a page.

use std::ops::Range;
use std::sync::Arc;

use crate::array::CancelToken;
use crate::error::{Error, Result};
use crate::view::View;
use crate::view::parquet::schema::{Physical, Type};
use crate::wire::to_usize;

/// A column.
pub(super) struct Leaf {
    pub(super) kind: Type,
    pub(super) body: Body,
    /// Whether values may be missing. A column that is in lists has them all.
    pub(super) is_optional: bool,
    pub(super) values: Box<dyn Values>,
    /// Of a column of lists: where they are. The values are then those of their elements.
    pub(super) ragged: Option<Box<dyn Lists>>,
}

/// How the values of a page stand in it.
#[derive(Debug, Clone)]
pub(super) enum Body {
    /// One after another, each of so many bytes.
    Plain(u64),
    /// A bit each, the lowest of a byte first.
    Bits,
    /// Numbers of entries of a dictionary.
    Indices(Dictionary),
    /// One after another, of any length, and zeros where they take fewer bytes than so many for
    /// each.
    Slots(u64),
    /// One after another, of any length, as many bytes as were counted.
    Counted,
}

/// The values that the values of a column are some of.
#[derive(Debug, Clone)]
pub(super) struct Dictionary {
    /// PLAIN.
    pub(super) values: Arc<[u8]>,
    pub(super) count: u64,
    /// Bytes of the number of a value: 1 or 2.
    pub(super) index_bytes: u64,
}

/// The array that the values of a leaf stand in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Origin {
    /// Whether it holds the values of no other leaf.
    pub(super) is_alone: bool,
    /// Whether none of it is far away.
    pub(super) is_near: bool,
    /// Whether its chunks are decoded.
    pub(super) is_decoded: bool,
}

impl Origin {
    /// That of values of `content`.
    pub(super) fn of(content: &dyn View, is_alone: bool) -> Self {
        Origin {
            is_alone,
            is_near: content.is_near(),
            is_decoded: content.chunk_values() > 0,
        }
    }

    /// Whether it costs much to read on where nothing is wanted.
    pub(super) fn is_costly(self) -> bool {
        self.is_decoded || !self.is_near
    }
}

/// The values of a leaf.
pub(super) trait Values: Send + Sync {
    /// Bytes of memory that a row takes while it is read.
    fn row_bytes(&self) -> u64;

    /// Appends the values that rows have. Booleans take a byte each, numbers of a dictionary's
    /// entries their bytes, little-endian.
    ///
    /// # Errors
    /// Fails if they cannot be read.
    fn write(&self, rows: Range<u64>, cancel: &CancelToken, out: &mut Written) -> Result<()>;

    /// Appends the values of the first of these rows, of one at least, and of no more once `out` has
    /// [`ENOUGH`] bytes: a text may be long. Gives the row that comes next.
    ///
    /// # Errors
    /// Fails if they cannot be read.
    fn write_some(&self, rows: Range<u64>, cancel: &CancelToken, out: &mut Written) -> Result<u64> {
        let next = rows.end;
        self.write(rows, cancel, out)?;
        Ok(next)
    }

    /// The array that they stand in; `None` where they are computed, or come from several.
    fn origin(&self) -> Option<Origin> {
        None
    }

    /// The least and the greatest of the values that these rows have, PLAIN, where that costs no
    /// look at them.
    fn bounds(&self, _rows: Range<u64>) -> Option<[Vec<u8>; 2]> {
        None
    }

    /// Bytes of memory that it takes.
    fn own_bytes(&self) -> u64;
}

/// Where the lists of rows are.
pub(super) trait Lists: Send + Sync {
    /// How many elements the list of each row has.
    ///
    /// # Errors
    /// Fails if that cannot be found out.
    fn lengths(&self, rows: Range<u64>, cancel: &CancelToken) -> Result<Vec<u64>>;

    /// The elements of the lists of these rows, where all of them stand one after another, so that
    /// the leaf's values are those of elements and not of rows.
    ///
    /// # Errors
    /// Fails if that cannot be found out.
    fn elements(&self, rows: &Range<u64>, cancel: &CancelToken) -> Result<Option<Range<u64>>>;
}

/// Bytes of values that are written together where each has a length of its own.
pub(super) const ENOUGH: usize = 256 << 10;

/// The values of some rows.
#[derive(Debug, Default)]
pub(super) struct Written {
    /// Of those that are there, one after another.
    pub(super) bytes: Vec<u8>,
    /// Of an optional leaf: whether each row has a value.
    pub(super) present: Vec<bool>,
}

impl Dictionary {
    /// Returns the entry with a number, PLAIN, of a dictionary of values of this type.
    ///
    /// # Errors
    /// `Corrupt` where there is no such entry.
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
    /// Whether the bytes of its values, and their number, have to be counted.
    pub(super) fn is_counted(&self) -> bool {
        matches!(self.body, Body::Counted)
    }
}

impl Body {
    /// Bytes of the values of so many rows, with `repeats` values each; `counted` are those that
    /// were counted.
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
