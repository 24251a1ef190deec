//! The minimum and maximum of sorted columns, with which readers skip row groups (`Statistics` of
//! parquet.thrift).
//!
//! The first read of the footer determines them by reading all values of each column that may be
//! sorted, and caches them. They do not change the length of the footer. A column that is not
//! sorted has an unknown field of the same length instead, which readers skip.

use std::cmp::Ordering;
use std::ops::Range;
use std::sync::Mutex;

use h5fs_reader::array::CancelToken;
use h5fs_reader::error::Result;
use h5fs_reader::memory::lock::lock;
use h5fs_reader::wire::{to_u64, to_usize};

use crate::limits;
use crate::parquet::field::LeafColumn;
use crate::parquet::layout::FileLayout;
use crate::parquet::leaf::{EncodedValues, PageLayout};
use crate::parquet::schema::{ColumnType, LogicalType, PhysicalType};
use crate::parquet::thrift::StructWriter;
use crate::text_files::text::InMemoryContent;

/// A function that returns the cached bounds. If none are cached, it computes them with its
/// argument, and caches the result. All open files of an unchanged table share the cache.
pub type BoundsCache = Box<
    dyn Fn(&mut dyn FnMut() -> Result<InMemoryContent>) -> Result<InMemoryContent> + Send + Sync,
>;

/// Size in bytes of a cached record: whether a column has bounds in a row group, and the two
/// bounds.
const RECORD_BYTES: usize = 1 + 2 * MAX_NUMBER_BYTES;

/// Maximum size of a number in bytes.
const MAX_NUMBER_BYTES: usize = 8;

/// Number of rows to read at a time.
const BATCH: u64 = 16 << 10;

/// A field number that parquet.thrift does not use in `Statistics`.
const UNKNOWN_FIELD: i16 = 15;

/// The statistics of a file's columns: minimum and maximum in each row group.
pub(super) struct Statistics {
    /// The indices of the columns that may be sorted. Only their bounds are determined.
    columns: Vec<usize>,
    cache: BoundsCache,
    found: Mutex<Option<InMemoryContent>>,
}

/// The bounds (minimum and maximum) of all columns that may be sorted. They are empty while the
/// length of the footer is computed, because they do not change the length.
#[derive(Clone, Copy, Default)]
pub(super) struct ValueBounds<'a> {
    columns: &'a [usize],
    records: &'a [u8],
}

impl Statistics {
    pub(super) fn new(columns: &[LeafColumn], layout: &FileLayout, keep: BoundsCache) -> Self {
        let may_be_sorted =
            |(_, column): &(usize, &LeafColumn)| layout.groups > 1 && is_sort_candidate(column);
        let searched = columns.iter().enumerate().filter(may_be_sorted);
        Statistics {
            columns: searched.map(|(number, _)| number).collect(),
            cache: keep,
            found: Mutex::default(),
        }
    }

    /// Returns placeholders, from which the length of the footer is computed before the bounds are
    /// known.
    pub(super) fn placeholders(&self) -> ValueBounds<'_> {
        ValueBounds {
            columns: &self.columns,
            records: &[],
        }
    }

    /// Calls `take` with the bounds. The first call reads the columns to find the bounds.
    ///
    /// # Errors
    /// [`Error::cancelled`](h5fs_reader::error::Error::cancelled) once the request is cancelled.
    /// Otherwise fails as `take` does.
    pub(super) fn with_bounds<T>(
        &self,
        columns: &[LeafColumn],
        layout: &FileLayout,
        cancel: &CancelToken,
        take: impl FnOnce(ValueBounds<'_>) -> Result<T>,
    ) -> Result<T> {
        if self.columns.is_empty() {
            return take(ValueBounds::default());
        }
        let mut found = cancel.lock(&self.found)?;
        let text = match &*found {
            Some(text) => text.clone(),
            None => {
                let mut search = || {
                    Ok(InMemoryContent::new(
                        self.determine_bounds(columns, layout, cancel)?,
                    ))
                };
                found.insert((self.cache)(&mut search)?).clone()
            }
        };
        drop(found);
        take(ValueBounds {
            columns: &self.columns,
            records: text.bytes(),
        })
    }

    fn determine_bounds(
        &self,
        columns: &[LeafColumn],
        layout: &FileLayout,
        cancel: &CancelToken,
    ) -> Result<Vec<u8>> {
        cancel.require_heavy_slot()?;
        let mut left = limits::PARQUET_SORTED;
        let mut records = Vec::new();
        for column in self
            .columns
            .iter()
            .filter_map(|&number| columns.get(number))
        {
            let bounds = match sorted_bounds(column, layout, &mut left, cancel) {
                Err(error) if error.is_cancelled() => return Err(error),
                bounds => bounds.unwrap_or(None),
            };
            // A column that is not sorted, or cannot be read, does not have bounds.
            let none = || vec![0; RECORD_BYTES * to_usize(layout.groups).unwrap_or(0)];
            records.extend(bounds.unwrap_or_else(none));
        }
        records.shrink_to_fit();
        Ok(records)
    }

    pub(super) fn own_bytes(&self) -> u64 {
        let found = lock(&self.found)
            .as_ref()
            .map_or(0, InMemoryContent::weight);
        to_u64(self.columns.capacity() * size_of::<usize>()).saturating_add(found)
    }
}

impl ValueBounds<'_> {
    /// Adds the bounds of a column in row group `group` to its statistics. Without bounds, adds a
    /// placeholder of the same length.
    pub(super) fn add_to_statistics(
        self,
        statistics: StructWriter,
        (group, number): (u64, usize),
        column: &LeafColumn,
    ) -> StructWriter {
        let Ok(place) = self.columns.binary_search(&number) else {
            return statistics;
        };
        let width = column.leaf.kind.physical.bytes() as usize;
        let groups = self.records.len() / self.columns.len().max(1) / RECORD_BYTES;
        let record = usize::try_from(group).ok().filter(|group| *group < groups);
        let record = record.map(|group| (place * groups + group) * RECORD_BYTES);
        let record = record.and_then(|start| self.records.get(start..start + RECORD_BYTES));
        match record {
            Some([1, values @ ..]) => {
                let (least, greatest) = values.split_at(MAX_NUMBER_BYTES);
                let greatest = statistics.binary(5, &greatest[..width]);
                greatest.binary(6, &least[..width])
            }
            // The placeholder has the length of two fields, each with its number and length.
            _ => statistics.binary(UNKNOWN_FIELD, &vec![0; 2 * width + 2]),
        }
    }
}

/// Returns whether the bounds of a column are determined by reading it. Its values must be numbers
/// in a local array that has no other column.
fn is_sort_candidate(column: &LeafColumn) -> bool {
    let leaf = &column.leaf;
    let is_number = match leaf.kind.physical {
        PhysicalType::Int32 | PhysicalType::Int64 => leaf.kind.logical != LogicalType::String,
        PhysicalType::Float | PhysicalType::Double => true,
        _ => false,
    };
    let origin = leaf.values.origin();
    let is_alone = origin.is_some_and(|origin| origin.is_only_leaf && origin.is_local);
    is_number && is_alone && matches!(leaf.body, PageLayout::Plain(_)) && !column.is_in_lists()
}

/// Returns the bounds of a column whose values never decrease or never increase, one record for
/// each row group. Returns `None` for other columns, and if the column has more than `left` values.
/// `left` is the number of values that may still be read for the whole file. It is reduced by the
/// number of values in the row groups that were read.
fn sorted_bounds(
    column: &LeafColumn,
    layout: &FileLayout,
    left: &mut u64,
    cancel: &CancelToken,
) -> Result<Option<Vec<u8>>> {
    if layout.row_count() > *left {
        return Ok(None);
    }
    let mut run = ValueOrder::default();
    let mut records = Vec::new();
    for number in 0..layout.groups {
        let rows = layout.group_row_range(number);
        *left = left.saturating_sub(rows.end - rows.start);
        let Some(ends) = run.read_group_ends(column, rows, cancel)? else {
            return Ok(None);
        };
        records.push(ends);
    }
    let kind = column.leaf.kind;
    let records = records.into_iter().flat_map(|[first, last]| {
        let (least, greatest) = match run.order {
            Some(Ordering::Greater) => (last, first),
            _ => (first, last),
        };
        let bounds = [(least, true), (greatest, false)];
        let bounds = bounds.map(|(value, is_least)| to_bound(value, kind, is_least));
        [1].into_iter().chain(bounds.into_iter().flatten())
    });
    Ok(Some(records.collect()))
}

/// A number in PLAIN encoding, followed by zeros.
type PaddedNumber = [u8; MAX_NUMBER_BYTES];

/// The sort order of the values of a column that have been read so far.
#[derive(Default)]
struct ValueOrder {
    /// Whether the values increase or decrease; `None` while all values are equal.
    order: Option<Ordering>,
    last: Option<i128>,
}

impl ValueOrder {
    /// Returns the first and the last value of a row group; `None` if a value is missing or out of
    /// order.
    fn read_group_ends(
        &mut self,
        column: &LeafColumn,
        rows: Range<u64>,
        cancel: &CancelToken,
    ) -> Result<Option<[PaddedNumber; 2]>> {
        let leaf = &column.leaf;
        let width = to_usize(leaf.kind.physical.bytes())?;
        let mut ends: Option<[PaddedNumber; 2]> = None;
        let mut written = EncodedValues::default();
        let mut first = rows.start;
        while first < rows.end {
            let end = rows.end.min(first.saturating_add(BATCH));
            written.bytes.clear();
            written.present.clear();
            leaf.values.write(first..end, cancel, &mut written)?;
            if written.present.contains(&false) {
                return Ok(None);
            }
            let values = written.bytes.chunks_exact(width).map(pad_value);
            for value in values {
                if !sort_key(value, leaf.kind).is_some_and(|key| self.is_in_order(key)) {
                    return Ok(None);
                }
                ends = Some([ends.map_or(value, |ends| ends[0]), value]);
            }
            first = cancel.next_batch(first, end)?;
        }
        Ok(ends)
    }

    fn is_in_order(&mut self, key: i128) -> bool {
        let order = match self.last.replace(key) {
            Some(last) => last.cmp(&key),
            None => Ordering::Equal,
        };
        order == Ordering::Equal || *self.order.get_or_insert(order) == order
    }
}

fn pad_value(value: &[u8]) -> PaddedNumber {
    let mut plain = [0; MAX_NUMBER_BYTES];
    plain[..value.len()].copy_from_slice(value);
    plain
}

/// Converts a number to an integer that sorts in the same order; `None` for NaN.
fn sort_key(value: PaddedNumber, kind: ColumnType) -> Option<i128> {
    let [a, b, c, d, ..] = value;
    let is_unsigned = matches!(
        kind.logical,
        LogicalType::Integer {
            is_signed: false,
            ..
        }
    );
    Some(match kind.physical {
        PhysicalType::Float => real_sort_key(f32::from_le_bytes([a, b, c, d]).into())?,
        PhysicalType::Double => real_sort_key(f64::from_le_bytes(value))?,
        PhysicalType::Int32 if !is_unsigned => i32::from_le_bytes([a, b, c, d]).into(),
        PhysicalType::Int64 if !is_unsigned => i64::from_le_bytes(value).into(),
        _ => u64::from_le_bytes(value).into(),
    })
}

fn real_sort_key(value: f64) -> Option<i128> {
    // Positive and negative zero are equal.
    let bits = i128::from((value.abs()).to_bits());
    let key = if value < 0.0 { -bits } else { bits };
    (!value.is_nan()).then_some(key)
}

/// Returns a value as a minimum (if `is_least`) or a maximum, in PLAIN encoding. A floating-point
/// zero becomes the negative zero for a minimum, and the positive zero for a maximum.
fn to_bound(value: PaddedNumber, kind: ColumnType, is_least: bool) -> PaddedNumber {
    let is_real = matches!(kind.physical, PhysicalType::Float | PhysicalType::Double);
    if !is_real || sort_key(value, kind) != Some(0) {
        return value;
    }
    let mut zero = [0; MAX_NUMBER_BYTES];
    if is_least {
        zero[kind.physical.bytes() as usize - 1] = 0x80;
    }
    zero
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parquet::field::{Field, FieldContent, FlatFields};
    use crate::parquet::leaf::{Leaf, LeafValues, ValueOrigin};
    use h5fs_reader::error::Error;

    /// A column of numbers and missing values, the only one of its array. Rows after the last value
    /// cannot be read.
    struct TestNumbers(Vec<Option<f64>>);

    impl LeafValues for TestNumbers {
        fn row_bytes(&self) -> u64 {
            8
        }

        fn write(&self, rows: Range<u64>, _: &CancelToken, out: &mut EncodedValues) -> Result<()> {
            for row in rows {
                let value = self.0.get(row as usize);
                let value = value.ok_or_else(|| Error::corrupt("a chunk", None))?;
                out.present.push(value.is_some());
                out.bytes
                    .extend(value.iter().flat_map(|value| value.to_le_bytes()));
            }
            Ok(())
        }

        fn origin(&self) -> Option<ValueOrigin> {
            Some(ValueOrigin {
                is_only_leaf: true,
                is_local: true,
                is_decoded: false,
            })
        }

        fn own_bytes(&self) -> u64 {
            0
        }
    }

    /// Returns the bounds of a column with the six rows `values`, in row groups of two. Returns
    /// `None` if the column is not sorted.
    fn bounds(values: &[Option<f64>]) -> Option<Vec<[f64; 2]>> {
        let leaf = Leaf {
            kind: ColumnType::plain(PhysicalType::Double),
            body: PageLayout::Plain(8),
            is_optional: true,
            values: Box::new(TestNumbers(values.to_vec())),
            variable_lists: None,
        };
        let content = FieldContent::Leaf(Box::new(leaf));
        let name = "x".to_owned();
        let columns = FlatFields::flatten(vec![Field { name, content }]).columns;
        let layout = FileLayout::compute(&columns, 0..6, 2, Vec::new()).unwrap();
        let statistics = Statistics::new(&columns, &layout, Box::new(|find| find()));
        let cancel = CancelToken::default();
        let records = statistics.with_bounds(&columns, &layout, &cancel, |found| {
            let lengths = [found, statistics.placeholders()];
            let lengths = lengths.map(|bounds| {
                let added = bounds.add_to_statistics(StructWriter::default(), (1, 0), &columns[0]);
                added.finish().len()
            });
            assert_eq!(lengths[0], lengths[1]);
            Ok(found.records.to_vec())
        });
        let records = records.unwrap();
        let records: Vec<&[u8]> = records.chunks(RECORD_BYTES).collect();
        assert_eq!(records.len(), 3);
        let is_found = |record: &&[u8]| record[0] == 1;
        assert!(records.iter().all(is_found) || !records.iter().any(is_found));
        let number = |bytes: &[u8]| f64::from_le_bytes(*bytes.first_chunk().unwrap());
        let both = |record: &&[u8]| {
            [
                number(&record[1..]),
                number(&record[1 + MAX_NUMBER_BYTES..]),
            ]
        };
        is_found(&records[0]).then(|| records.iter().map(both).collect())
    }

    fn bounds_of_values(values: [f64; 6]) -> Option<Vec<[f64; 2]>> {
        bounds(&values.map(Some))
    }

    #[test]
    fn sorted_columns_have_bounds() {
        let inf = f64::INFINITY;
        let ascending = bounds_of_values([-inf, -2.5, -2.5, 1.0, 3.0, inf]);
        assert_eq!(ascending.unwrap(), [[-inf, -2.5], [-2.5, 1.0], [3.0, inf]]);
        let descending = bounds_of_values([9.0, 9.0, 9.0, 1.0, 1.0, -4.0]);
        assert_eq!(descending.unwrap(), [[9.0, 9.0], [1.0, 9.0], [-4.0, 1.0]]);
        assert_eq!(bounds_of_values([7.0; 6]).unwrap(), [[7.0; 2]; 3]);
    }

    #[test]
    fn bounds_distinguish_the_signs_of_zero() {
        let [first, second, _] = *bounds_of_values([0.0, 1.0, 1.0, 2.0, 3.0, 4.0]).unwrap() else {
            panic!("three groups")
        };
        assert!(first[0].is_sign_negative() && second[0] == 1.0);
        let of_zeros = bounds_of_values([-1.0, -0.0, 0.0, -0.0, 0.0, 0.0]).unwrap();
        assert!(of_zeros[0][1].is_sign_positive());
        assert!(of_zeros[2][0].is_sign_negative() && of_zeros[2][1].is_sign_positive());
    }

    #[test]
    fn unsorted_and_missing_values_have_no_bounds() {
        assert_eq!(bounds_of_values([1.0, 2.0, 3.0, 2.5, 4.0, 5.0]), None);
        assert_eq!(bounds_of_values([2.0, 2.0, 1.0, 1.0, 1.0, 1.5]), None);
        assert_eq!(bounds_of_values([1.0, 2.0, 3.0, 4.0, 5.0, f64::NAN]), None);
        assert_eq!(bounds_of_values([f64::NAN; 6]), None);
        let missing = [1.0, 2.0, 3.0, 4.0, 5.0].map(Some);
        assert_eq!(bounds(&[&missing[..], &[None]].concat()), None);
        // The same holds if a part cannot be read.
        assert_eq!(bounds(&missing), None);
    }

    #[test]
    fn integers_are_compared_by_signedness() {
        let signed = ColumnType::integer(64, true);
        let unsigned = ColumnType::integer(64, false);
        let minus_one = u64::MAX.to_le_bytes();
        assert_eq!(sort_key(minus_one, signed), Some(-1));
        assert_eq!(sort_key(minus_one, unsigned), Some(i128::from(u64::MAX)));
        let narrow = pad_value(&u32::MAX.to_le_bytes());
        assert_eq!(sort_key(narrow, ColumnType::integer(32, true)), Some(-1));
        assert_eq!(
            sort_key(narrow, ColumnType::integer(32, false)),
            Some(i128::from(u32::MAX))
        );
    }

    #[test]
    fn the_number_of_examined_values_is_limited() {
        let columns = Vec::new();
        let layout = FileLayout::compute(&columns, 0..1000, 100, Vec::new()).unwrap();
        let leaf = Leaf {
            kind: ColumnType::plain(PhysicalType::Double),
            body: PageLayout::Plain(8),
            is_optional: false,
            values: Box::new(TestNumbers(vec![Some(1.0); 1000])),
            variable_lists: None,
        };
        let column = LeafColumn {
            leaf,
            path: Vec::new(),
            lists: Vec::new(),
        };
        let cancel = CancelToken::default();
        let mut left = 1500;
        assert!(
            sorted_bounds(&column, &layout, &mut left, &cancel)
                .unwrap()
                .is_some()
        );
        assert_eq!(left, 500);
        assert!(
            sorted_bounds(&column, &layout, &mut left, &cancel)
                .unwrap()
                .is_none()
        );
        assert_eq!(left, 500);
    }
}
