//! Columns whose values are stored at a fixed offset in each row of an array.

use std::ops::Range;
use std::sync::Arc;

use h5fs_conventions::stored_type as numbers;
use h5fs_reader::array::{Bytes, CancelToken};
use h5fs_reader::error::{Error, Result};
use h5fs_reader::model::datatype::{ReferenceKind, StringPadding};
use h5fs_reader::model::text::without_padding;
use h5fs_reader::model::value::TextContext;
use h5fs_reader::model::{Container, Datatype, Reference};
use h5fs_reader::wire::{to_u64, to_usize};

use crate::elements::missing::MissingValues;
use crate::json::SharedPaths;
use crate::limits;
use crate::parquet::encoding::ValueConversion;
use crate::parquet::leaf::{BATCH_BYTES, EncodedValues, LeafValues, ValueOrigin};
use crate::view::View;

/// Amount of row data to read at a time, in bytes.
const BATCH: u64 = 256 << 10;

/// The container and the function that are needed to follow pointers and references.
pub struct PointerContext {
    /// The container that follows the pointers.
    pub container: Arc<dyn Container>,
    /// The function that finds the paths of referenced objects.
    pub paths: SharedPaths,
}

/// A view of the rows of an array, one after another.
#[derive(Clone)]
pub(super) struct ArrayRows {
    pub(super) content: Arc<dyn View>,
    /// Length of a row in bytes.
    pub(super) row_bytes: u64,
}

/// The location of a column's value in each row of an array.
#[derive(Clone)]
pub(super) struct ValueLocation {
    pub(super) rows: ArrayRows,
    /// The offset of the value in the row, in bytes.
    pub(super) offset: usize,
    /// Size of the value in bytes.
    pub(super) size: usize,
}

/// The values of a leaf column that are stored in the rows of an array.
pub(super) struct StoredLeaf {
    pub(super) location: ValueLocation,
    /// The fixed-length lists that contain the value, outermost first. Each has a length, and the
    /// distance between two elements in bytes.
    pub(super) lists: Vec<(u32, u64)>,
    pub(super) encoding: ValueConversion,
    pub(super) pointers: Arc<PointerContext>,
    pub(super) missing_rule: Option<MissingValueRule>,
    /// Memory in bytes that the datatype occupies.
    pub(super) weight: u64,
}

/// The rule that decides which values are missing.
pub(super) enum MissingValueRule {
    /// A value is missing if the mask at this location is not zero in the same row.
    MaskNotZero(ValueLocation),
    /// A value is missing if it equals this number.
    Number(numbers::StoredType, f64),
    /// A value is missing if it is this integer.
    Integer(numbers::StoredType, i128),
    /// A value is missing if it is negative.
    Negative(numbers::StoredType),
    /// A value is missing if it has this text.
    Text(StringPadding, Arc<[u8]>),
    /// A value is missing if it is a null reference.
    Null(ReferenceKind, Arc<PointerContext>),
    /// A value is missing if the mask of the array marks its element. `at` is the index of the
    /// element in its row.
    Masked {
        missing: Arc<MissingValues>,
        datatype: Datatype,
        /// Number of elements in a row.
        of_row: u64,
        at: usize,
    },
}

impl ArrayRows {
    /// Splits `bytes` into `count` rows, which may have a length of zero.
    fn split_rows<'a>(
        &self,
        bytes: &'a [u8],
        count: u64,
    ) -> Result<impl Iterator<Item = &'a [u8]>> {
        let each = to_usize(self.row_bytes)?;
        let empty = if each == 0 { to_usize(count)? } else { 0 };
        let rows = bytes.chunks_exact(each.max(1));
        Ok(rows.chain(std::iter::repeat_n(&b""[..], empty)))
    }

    /// Reads exactly the bytes of `rows`.
    fn read_rows(&self, rows: &Range<u64>, cancel: &CancelToken) -> Result<Bytes> {
        let length = to_usize((rows.end - rows.start).saturating_mul(self.row_bytes))?;
        let start = rows.start.saturating_mul(self.row_bytes);
        let bytes = self.content.read_for(start, length, cancel)?;
        if bytes.len() == length {
            Ok(bytes)
        } else {
            Err(Error::corrupt("array: fewer elements than its shape", None))
        }
    }
}

impl ValueLocation {
    /// Returns the properties of the array that contains the value.
    pub(super) fn origin(&self) -> ValueOrigin {
        let is_alone = self.rows.row_bytes == to_u64(self.size);
        ValueOrigin::from_view(&*self.rows.content, is_alone)
    }

    /// Passes the value of each row to `take`.
    ///
    /// # Errors
    /// Fails if a row cannot be read, or as `take` does.
    pub(super) fn visit_rows(
        &self,
        rows: Range<u64>,
        cancel: &CancelToken,
        take: &mut dyn FnMut(&[u8]) -> Result<()>,
    ) -> Result<()> {
        let at_a_time = (BATCH / self.rows.row_bytes.max(1)).max(1);
        let mut first = rows.start;
        while first < rows.end {
            let end = rows.end.min(first.saturating_add(at_a_time));
            let bytes = self.rows.read_rows(&(first..end), cancel)?;
            for row in self.rows.split_rows(&bytes, end - first)? {
                take(self.value_bytes(row, 0)?)?;
            }
            first = cancel.next_batch(first, end)?;
        }
        Ok(())
    }

    /// Returns the bytes of the value that is `distance` bytes after this location in `row`.
    fn value_bytes<'a>(&self, row: &'a [u8], distance: usize) -> Result<&'a [u8]> {
        let start = self.offset.saturating_add(distance);
        let value = row.get(start..start.saturating_add(self.size));
        value.ok_or_else(|| Error::corrupt("table: a row that is too short", None))
    }
}

impl MissingValueRule {
    /// Returns, for each of `values` in `rows`, whether the value is missing. `bytes` are the bytes
    /// of these rows.
    fn find_missing(
        &self,
        values: &[&[u8]],
        rows: &Range<u64>,
        bytes: &[u8],
        cancel: &CancelToken,
    ) -> Result<Vec<bool>> {
        let each = values.iter();
        Ok(match self {
            MissingValueRule::MaskNotZero(place) => {
                let bytes = place.rows.read_rows(rows, cancel)?;
                let rows = place.rows.split_rows(&bytes, rows.end - rows.start)?;
                let values = rows.map(|row| place.value_bytes(row, 0));
                let is_set = |value: &[u8]| value.iter().any(|&byte| byte != 0);
                values
                    .map(|value| value.map(is_set))
                    .collect::<Result<_>>()?
            }
            MissingValueRule::Number(stored, absent) => {
                let is_absent = |value: f64| value == *absent || value.is_nan() && absent.is_nan();
                each.map(|value| is_absent(stored.read_number(value).as_f64()))
                    .collect()
            }
            MissingValueRule::Integer(stored, absent) => each
                .map(|value| stored.read_number(value).as_integer() == Some(*absent))
                .collect(),
            MissingValueRule::Negative(stored) => each
                .map(|value| {
                    stored
                        .read_number(value)
                        .as_integer()
                        .is_some_and(i128::is_negative)
                })
                .collect(),
            MissingValueRule::Text(padding, text) => each
                .map(|value| without_padding(value, *padding) == &**text)
                .collect(),
            MissingValueRule::Null(kind, pointers) => each
                .map(|value| Ok(pointers.container.reference(*kind, value)? == Reference::Null))
                .collect::<Result<_>>()?,
            MissingValueRule::Masked {
                missing,
                datatype,
                of_row,
                at,
            } => {
                let first = rows.start.saturating_mul(*of_row);
                let count = (rows.end - rows.start).saturating_mul(*of_row);
                let all = missing.find_missing(datatype, first, count, bytes, cancel)?;
                let of_row = to_usize(*of_row)?.max(1);
                all.chunks(of_row)
                    .map(|row| row.get(*at).copied().unwrap_or(false))
                    .collect()
            }
        })
    }
}

impl StoredLeaf {
    /// Appends the values of `rows` until `out` has `enough` bytes. Returns the number of the first
    /// row that was not written.
    fn write_until(
        &self,
        enough: usize,
        rows: Range<u64>,
        cancel: &CancelToken,
        out: &mut EncodedValues,
    ) -> Result<u64> {
        let at_a_time = (BATCH / self.location.rows.row_bytes.max(1)).max(1);
        let mut next = rows.start;
        while next < rows.end && out.bytes.len() < enough {
            let end = rows.end.min(next.saturating_add(at_a_time));
            let count = self.write_batch(&(next..end), enough, cancel, out)?;
            next = cancel.next_batch(next, next.saturating_add(count))?;
        }
        Ok(next)
    }

    /// Appends the values of `rows`, which are read together. If the values have pointers to texts,
    /// stops once `out` has `enough` bytes. Returns the number of rows that were written.
    fn write_batch(
        &self,
        rows: &Range<u64>,
        enough: usize,
        cancel: &CancelToken,
        out: &mut EncodedValues,
    ) -> Result<u64> {
        let bytes = self.location.rows.read_rows(rows, cancel)?;
        let is_all = self.location.size == bytes.len()
            || self.location.rows.row_bytes == to_u64(self.location.size);
        if is_all && matches!(self.encoding, ValueConversion::Copy) && self.missing_rule.is_none() {
            out.bytes.extend_from_slice(&bytes);
            return Ok(rows.end - rows.start);
        }
        let count = rows.end - rows.start;
        let Some(absent) = &self.missing_rule else {
            return self.write_required_values(&bytes, count, enough, out);
        };
        let each = self.location.rows.split_rows(&bytes, count)?;
        let values: Vec<&[u8]> = each
            .map(|row| self.location.value_bytes(row, 0))
            .collect::<Result<_>>()?;
        let missing = absent.find_missing(&values, rows, &bytes, cancel)?;
        for (number, (value, is_missing)) in (0..).zip(values.iter().zip(missing)) {
            if out.bytes.len() >= enough {
                return Ok(number);
            }
            out.present.push(!is_missing);
            if !is_missing {
                self.push_encoded(value, out)?;
            }
        }
        Ok(rows.end - rows.start)
    }

    /// Appends the values of the `count` rows in `bytes`, for a column without missing values. If
    /// the values are not simply copied, stops once `out` has `enough` bytes. Returns the number of
    /// rows that were written.
    fn write_required_values(
        &self,
        bytes: &[u8],
        count: u64,
        enough: usize,
        out: &mut EncodedValues,
    ) -> Result<u64> {
        let each = to_usize(self.location.rows.row_bytes)?.max(1);
        match (&self.encoding, &*self.lists, self.location.size) {
            // Copying a few bytes is fast if their number is a constant.
            (ValueConversion::Copy, [], 4) => {
                self.copy_values::<4>(bytes.chunks_exact(each), out)?;
            }
            (ValueConversion::Copy, [], 8) => {
                self.copy_values::<8>(bytes.chunks_exact(each), out)?;
            }
            _ => {
                for (number, row) in (0..).zip(self.location.rows.split_rows(bytes, count)?) {
                    if out.bytes.len() >= enough {
                        return Ok(number);
                    }
                    let most = self.max_row_end(out);
                    self.write_lists(row, 0, &self.lists, most, out)?;
                }
            }
        }
        Ok(count)
    }

    /// Returns the maximum length of `out` after one more row. Without this limit, a row of many
    /// pointers could produce an unlimited text.
    fn max_row_end(&self, out: &EncodedValues) -> usize {
        match self.encoding {
            ValueConversion::ComputedText(_) | ValueConversion::Path(..) => {
                out.bytes.len().saturating_add(limits::PARQUET_TEXT)
            }
            _ => usize::MAX,
        }
    }

    fn copy_values<'a, const SIZE: usize>(
        &self,
        rows: impl Iterator<Item = &'a [u8]>,
        out: &mut EncodedValues,
    ) -> Result<()> {
        for row in rows {
            let value = row
                .get(self.location.offset..)
                .and_then(<[u8]>::first_chunk);
            let value: &[u8; SIZE] =
                value.ok_or_else(|| Error::corrupt("table: a row that is too short", None))?;
            out.bytes.extend_from_slice(value);
        }
        Ok(())
    }

    /// Appends the values in the nested lists of one row. `distance` is the offset in bytes of the
    /// current list element from the column's location. `most` is the maximum length of `out`.
    fn write_lists(
        &self,
        row: &[u8],
        distance: usize,
        lists: &[(u32, u64)],
        most: usize,
        out: &mut EncodedValues,
    ) -> Result<()> {
        let Some((&(count, apart), inner)) = lists.split_first() else {
            if out.bytes.len() > most {
                let most = to_u64(limits::PARQUET_TEXT);
                return Err(Error::limit("texts of a row of a Parquet file", most));
            }
            return self.push_encoded(self.location.value_bytes(row, distance)?, out);
        };
        let apart = to_usize(apart)?;
        for number in 0..to_usize(count.into())? {
            let further = number.saturating_mul(apart);
            self.write_lists(row, distance.saturating_add(further), inner, most, out)?;
        }
        Ok(())
    }

    fn push_encoded(&self, value: &[u8], out: &mut EncodedValues) -> Result<()> {
        let PointerContext { container, paths } = &*self.pointers;
        let context = TextContext::new(&**container, &**paths, limits::PARQUET_TEXT);
        self.encoding.push_value(value, &context, &mut out.bytes)
    }
}

impl LeafValues for StoredLeaf {
    fn row_bytes(&self) -> u64 {
        self.location.rows.row_bytes
    }

    fn write(&self, rows: Range<u64>, cancel: &CancelToken, out: &mut EncodedValues) -> Result<()> {
        self.write_until(usize::MAX, rows, cancel, out)?;
        Ok(())
    }

    fn write_limited(
        &self,
        rows: Range<u64>,
        cancel: &CancelToken,
        out: &mut EncodedValues,
    ) -> Result<u64> {
        self.write_until(BATCH_BYTES, rows, cancel, out)
    }

    fn origin(&self) -> Option<ValueOrigin> {
        Some(self.location.origin())
    }

    fn own_bytes(&self) -> u64 {
        self.weight
    }
}
