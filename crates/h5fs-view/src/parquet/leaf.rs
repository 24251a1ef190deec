//! A leaf: a column of values of one Parquet type, and the layout of the values in a page.

use std::ops::Range;
use std::sync::Arc;

use h5fs_reader::array::CancelToken;
use h5fs_reader::error::{Error, Result};
use h5fs_reader::wire::to_usize;

use crate::parquet::schema::{ColumnType, PhysicalType};
use crate::view::View;

/// A column: the type of its values, their layout, and where they come from.
pub(super) struct Leaf {
    pub(super) kind: ColumnType,
    pub(super) body: PageLayout,
    /// Whether values may be missing. Elements of fixed-length lists are never missing.
    pub(super) is_optional: bool,
    pub(super) values: Box<dyn LeafValues>,
    /// The lists of a column of lists whose lengths vary. The values of the column are then the
    /// elements of the lists. `None` for any other column.
    pub(super) variable_lists: Option<Box<dyn ListLengths>>,
}

/// The layout of the values in a page.
#[derive(Debug, Clone)]
pub(super) enum PageLayout {
    /// Values of this many bytes each, one after another.
    Plain(u64),
    /// One bit for each value, beginning with the lowest bit of a byte.
    Bits,
    /// Dictionary indices.
    Indices(Dictionary),
    /// Values of varying length, packed at the beginning of the page. The length of the page is
    /// this many bytes for each value, which is the maximum. Zeros fill the page after the last
    /// value.
    Slots(u64),
    /// Values of varying length, one after another. The page has exactly their total length, which
    /// is counted by reading the values before the file is created.
    Counted,
}

/// The distinct values of a column, in a dictionary page.
#[derive(Debug, Clone)]
pub(super) struct Dictionary {
    /// The values in PLAIN encoding.
    pub(super) values: Arc<[u8]>,
    pub(super) count: u64,
    /// Size of a dictionary index in bytes: 1 or 2.
    pub(super) index_bytes: u64,
}

/// The properties of the array that contains the values of a leaf.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ValueOrigin {
    /// Whether no other leaf has values from this array.
    pub(super) is_only_leaf: bool,
    /// Whether all bytes of the array come from a local file or from memory, not from a remote
    /// server.
    pub(super) is_local: bool,
    /// Whether the chunks of the array must be decoded.
    pub(super) is_decoded: bool,
}

impl ValueOrigin {
    /// Returns the properties of the array `content`. `is_alone` says whether no other leaf has
    /// values from it.
    pub(super) fn from_view(content: &dyn View, is_alone: bool) -> Self {
        ValueOrigin {
            is_only_leaf: is_alone,
            is_local: content.is_near(),
            is_decoded: content.chunk_values() > 0,
        }
    }

    /// Returns whether reading more values than needed is costly.
    pub(super) fn is_costly_to_read(self) -> bool {
        self.is_decoded || !self.is_local
    }
}

/// The source of a leaf's values.
pub(super) trait LeafValues: Send + Sync {
    /// Returns the memory in bytes that one row occupies while it is read.
    fn row_bytes(&self) -> u64;

    /// Appends the encoded values of the rows `rows` to `out`. A boolean takes one byte. A
    /// dictionary index is little-endian.
    ///
    /// # Errors
    /// Fails if the values cannot be read.
    fn write(&self, rows: Range<u64>, cancel: &CancelToken, out: &mut EncodedValues) -> Result<()>;

    /// Appends the encoded values of `rows`, at least of the first row. Stops once `out` has
    /// [`BATCH_BYTES`] bytes, because a text may be long. Returns the number of the first row that
    /// was not written.
    ///
    /// # Errors
    /// Fails if the values cannot be read.
    fn write_limited(
        &self,
        rows: Range<u64>,
        cancel: &CancelToken,
        out: &mut EncodedValues,
    ) -> Result<u64> {
        let next = rows.end;
        self.write(rows, cancel, out)?;
        Ok(next)
    }

    /// Returns the properties of the array that contains the values; `None` if the values are
    /// computed, or come from several arrays.
    fn origin(&self) -> Option<ValueOrigin> {
        None
    }

    /// Returns the minimum and the maximum of the values in the rows `_rows`, in PLAIN encoding.
    /// Returns `None` if they are unknown until the values are read.
    fn bounds(&self, _rows: Range<u64>) -> Option<[Vec<u8>; 2]> {
        None
    }

    /// Returns the memory in bytes that the values' descriptions occupy.
    fn own_bytes(&self) -> u64;
}

/// The lists of a column of lists whose lengths vary.
pub(super) trait ListLengths: Send + Sync {
    /// Returns the number of elements in the list of each of `rows`.
    ///
    /// # Errors
    /// Fails if the lists cannot be read.
    fn lengths(&self, rows: Range<u64>, cancel: &CancelToken) -> Result<Vec<u64>>;

    /// Returns the range of elements that the lists of `rows` consist of, if all elements of the
    /// column are in one array. The leaf's values are then numbered by elements, not by rows.
    /// Returns `None` if the elements are not in one array.
    ///
    /// # Errors
    /// Fails if the lists cannot be read.
    fn elements(&self, rows: &Range<u64>, cancel: &CancelToken) -> Result<Option<Range<u64>>>;
}

/// Number of bytes after which [`LeafValues::write_limited`] stops, for values of varying length.
pub(super) const BATCH_BYTES: usize = 256 << 10;

/// The encoded values of a batch of rows.
#[derive(Debug, Default)]
pub(super) struct EncodedValues {
    /// The values that are not missing, one after another.
    pub(super) bytes: Vec<u8>,
    /// For an optional leaf: for each row, whether it has a value. Not used for other leaves.
    pub(super) present: Vec<bool>,
}

impl Dictionary {
    /// Returns the dictionary value at `index`, in PLAIN encoding. `kind` is the type of the
    /// dictionary's values.
    ///
    /// # Errors
    /// `Corrupt` if the index is out of range.
    pub(super) fn value(&self, index: &[u8], kind: ColumnType) -> Result<Vec<u8>> {
        let index = index.iter().rev();
        let index = index.fold(0, |index, &byte| index << 8 | usize::from(byte));
        let mut entries: &[u8] = &self.values;
        let mut entry: &[u8] = &[];
        for _ in 0..=index {
            let length = match kind.physical {
                PhysicalType::ByteArray => {
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
    /// Returns whether the length or the number of the values must be counted before the file is
    /// created.
    pub(super) fn has_counted_length(&self) -> bool {
        matches!(self.body, PageLayout::Counted)
    }
}

impl PageLayout {
    /// Returns the length in bytes of the values of `rows` rows, each of which has `repeats`
    /// values. `counted` is the counted length, if the column is counted.
    pub(super) fn bytes(&self, rows: u64, repeats: u64, counted: u64) -> u64 {
        let values = rows.saturating_mul(repeats);
        match self {
            PageLayout::Plain(width) | PageLayout::Slots(width) => values.saturating_mul(*width),
            PageLayout::Bits => values.div_ceil(8),
            PageLayout::Indices(dictionary) => values
                .div_ceil(8)
                .saturating_mul(8)
                .saturating_mul(dictionary.index_bytes),
            PageLayout::Counted => counted,
        }
    }
}
