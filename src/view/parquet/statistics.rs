//! The least and the greatest values of columns that are sorted, by which readers pass over groups
//! of rows (`Statistics` of parquet.thrift).
//!
//! They are found when the footer is read for the first time, by a look at all values of such a
//! column, and kept from then on. What is found changes no length: a column that turns out not to be
//! sorted has a field in their place that readers do not know, and pass over.

use std::cmp::Ordering;
use std::ops::Range;
use std::sync::Mutex;

use crate::array::CancelToken;
use crate::error::Result;
use crate::limits;
use crate::memory::lock::lock;
use crate::view::parquet::field::Column;
use crate::view::parquet::layout::Layout;
use crate::view::parquet::leaf::{Body, Written};
use crate::view::parquet::schema::{Logical, Physical, Type};
use crate::view::parquet::thrift::Struct;
use crate::view::texts::text::Text;
use crate::wire::{to_u64, to_usize};

/// Keeps what is found of a table that does not change, for all its readers.
pub(crate) type Keep = Box<dyn Fn(&mut dyn FnMut() -> Result<Text>) -> Result<Text> + Send + Sync>;

/// Bytes that are kept of a column in a group: whether it has bounds, and both.
const RECORD: usize = 1 + 2 * VALUE;

/// Bytes of a number, at most.
const VALUE: usize = 8;

/// Rows that are looked at together.
const BATCH: u64 = 16 << 10;

/// A field of `Statistics` whose number means nothing.
const UNKNOWN: i16 = 15;

/// What is known of the columns of a file.
pub(super) struct Statistics {
    /// The numbers of the columns that may be sorted.
    columns: Vec<usize>,
    keep: Keep,
    found: Mutex<Option<Text>>,
}

/// What was found; nothing yet while lengths are counted.
#[derive(Clone, Copy, Default)]
pub(super) struct Bounds<'a> {
    columns: &'a [usize],
    records: &'a [u8],
}

impl Statistics {
    pub(super) fn of(columns: &[Column], layout: &Layout, keep: Keep) -> Self {
        let may_be_sorted =
            |(_, column): &(usize, &Column)| layout.groups > 1 && is_searched(column);
        let searched = columns.iter().enumerate().filter(may_be_sorted);
        Statistics {
            columns: searched.map(|(number, _)| number).collect(),
            keep,
            found: Mutex::default(),
        }
    }

    /// The columns that may have bounds, none of which is known.
    pub(super) fn none(&self) -> Bounds<'_> {
        Bounds {
            columns: &self.columns,
            records: &[],
        }
    }

    /// Hands on the bounds, which are found by the first call.
    ///
    /// # Errors
    /// [`Error::unwanted`](crate::error::Error::unwanted) once the request is to end; as `take` does.
    pub(super) fn with<T>(
        &self,
        columns: &[Column],
        layout: &Layout,
        cancel: &CancelToken,
        take: impl FnOnce(Bounds<'_>) -> Result<T>,
    ) -> Result<T> {
        if self.columns.is_empty() {
            return take(Bounds::default());
        }
        let mut found = cancel.lock(&self.found)?;
        let text = match &*found {
            Some(text) => text.clone(),
            None => {
                let mut search = || Ok(Text::new(self.search(columns, layout, cancel)?));
                found.insert((self.keep)(&mut search)?).clone()
            }
        };
        drop(found);
        take(Bounds {
            columns: &self.columns,
            records: text.bytes(),
        })
    }

    fn search(&self, columns: &[Column], layout: &Layout, cancel: &CancelToken) -> Result<Vec<u8>> {
        cancel.begin_heavy()?;
        let mut left = limits::PARQUET_SORTED;
        let mut records = Vec::new();
        for column in self
            .columns
            .iter()
            .filter_map(|&number| columns.get(number))
        {
            let bounds = match sorted(column, layout, &mut left, cancel) {
                Err(error) if error.is_unwanted() => return Err(error),
                bounds => bounds.unwrap_or(None),
            };
            // Of one that is not sorted, or cannot be read, there is nothing to tell.
            let none = || vec![0; RECORD * to_usize(layout.groups).unwrap_or(0)];
            records.extend(bounds.unwrap_or_else(none));
        }
        records.shrink_to_fit();
        Ok(records)
    }

    pub(super) fn own_bytes(&self) -> u64 {
        let found = lock(&self.found).as_ref().map_or(0, Text::weight);
        to_u64(self.columns.capacity() * size_of::<usize>()).saturating_add(found)
    }
}

impl Bounds<'_> {
    /// The statistics of a group's column, with its bounds, or with as many other bytes.
    pub(super) fn add(
        self,
        statistics: Struct,
        (group, number): (u64, usize),
        column: &Column,
    ) -> Struct {
        let Ok(place) = self.columns.binary_search(&number) else {
            return statistics;
        };
        let width = column.leaf.kind.physical.bytes() as usize;
        let groups = self.records.len() / self.columns.len().max(1) / RECORD;
        let record = usize::try_from(group).ok().filter(|group| *group < groups);
        let record = record.map(|group| (place * groups + group) * RECORD);
        let record = record.and_then(|start| self.records.get(start..start + RECORD));
        match record {
            Some([1, values @ ..]) => {
                let (least, greatest) = values.split_at(VALUE);
                let greatest = statistics.binary(5, &greatest[..width]);
                greatest.binary(6, &least[..width])
            }
            // Two fields, each with its number and its length.
            _ => statistics.binary(UNKNOWN, &vec![0; 2 * width + 2]),
        }
    }
}

/// Whether a look at the values of a column may find bounds: they are numbers in an array of their
/// own, which is near.
fn is_searched(column: &Column) -> bool {
    let leaf = &column.leaf;
    let is_number = match leaf.kind.physical {
        Physical::Int32 | Physical::Int64 => leaf.kind.logical != Logical::String,
        Physical::Float | Physical::Double => true,
        _ => false,
    };
    let origin = leaf.values.origin();
    let is_alone = origin.is_some_and(|origin| origin.is_alone && origin.is_near);
    is_number && is_alone && matches!(leaf.body, Body::Plain(_)) && !column.is_in_lists()
}

/// The records of the groups of a column whose values ascend, or descend, from the first to the
/// last; `None` of others, and of one with more values than are `left` to be looked at.
fn sorted(
    column: &Column,
    layout: &Layout,
    left: &mut u64,
    cancel: &CancelToken,
) -> Result<Option<Vec<u8>>> {
    if layout.count() > *left {
        return Ok(None);
    }
    let mut run = Run::default();
    let mut records = Vec::new();
    for number in 0..layout.groups {
        let rows = layout.rows_of(number);
        *left = left.saturating_sub(rows.end - rows.start);
        let Some(ends) = run.group(column, rows, cancel)? else {
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
        let bounds = bounds.map(|(value, is_least)| bound(value, kind, is_least));
        [1].into_iter().chain(bounds.into_iter().flatten())
    });
    Ok(Some(records.collect()))
}

/// A PLAIN number, filled up.
type Plain = [u8; VALUE];

/// Values that were looked at, in one order so far.
#[derive(Default)]
struct Run {
    /// How each value is to the next that differs from it.
    order: Option<Ordering>,
    last: Option<i128>,
}

impl Run {
    /// The first and the last value of a group; `None` where one is missing or out of order.
    fn group(
        &mut self,
        column: &Column,
        rows: Range<u64>,
        cancel: &CancelToken,
    ) -> Result<Option<[Plain; 2]>> {
        let leaf = &column.leaf;
        let width = to_usize(leaf.kind.physical.bytes())?;
        let mut ends: Option<[Plain; 2]> = None;
        let mut written = Written::default();
        let mut first = rows.start;
        while first < rows.end {
            let end = rows.end.min(first.saturating_add(BATCH));
            written.bytes.clear();
            written.present.clear();
            leaf.values.write(first..end, cancel, &mut written)?;
            if written.present.contains(&false) {
                return Ok(None);
            }
            let values = written.bytes.chunks_exact(width).map(filled);
            for value in values {
                if !key(value, leaf.kind).is_some_and(|key| self.goes_on(key)) {
                    return Ok(None);
                }
                ends = Some([ends.map_or(value, |ends| ends[0]), value]);
            }
            first = cancel.advance(first, end)?;
        }
        Ok(ends)
    }

    fn goes_on(&mut self, key: i128) -> bool {
        let order = match self.last.replace(key) {
            Some(last) => last.cmp(&key),
            None => Ordering::Equal,
        };
        order == Ordering::Equal || *self.order.get_or_insert(order) == order
    }
}

fn filled(value: &[u8]) -> Plain {
    let mut plain = [0; VALUE];
    plain[..value.len()].copy_from_slice(value);
    plain
}

/// A number that is greater where the value is; `None` of NaN.
fn key(value: Plain, kind: Type) -> Option<i128> {
    let [a, b, c, d, ..] = value;
    let is_unsigned = matches!(
        kind.logical,
        Logical::Integer {
            is_signed: false,
            ..
        }
    );
    Some(match kind.physical {
        Physical::Float => key_of_real(f32::from_le_bytes([a, b, c, d]).into())?,
        Physical::Double => key_of_real(f64::from_le_bytes(value))?,
        Physical::Int32 if !is_unsigned => i32::from_le_bytes([a, b, c, d]).into(),
        Physical::Int64 if !is_unsigned => i64::from_le_bytes(value).into(),
        _ => u64::from_le_bytes(value).into(),
    })
}

fn key_of_real(value: f64) -> Option<i128> {
    // The two zeros are equal.
    let bits = i128::from((value.abs()).to_bits());
    let key = if value < 0.0 { -bits } else { bits };
    (!value.is_nan()).then_some(key)
}

/// A value as a bound: of the two zeros the one that bounds the other.
fn bound(value: Plain, kind: Type, is_least: bool) -> Plain {
    let is_real = matches!(kind.physical, Physical::Float | Physical::Double);
    if !is_real || key(value, kind) != Some(0) {
        return value;
    }
    let mut zero = [0; VALUE];
    if is_least {
        zero[kind.physical.bytes() as usize - 1] = 0x80;
    }
    zero
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Error;
    use crate::view::parquet::field::{Content, Field, Flat};
    use crate::view::parquet::leaf::{Leaf, Origin, Values};

    /// Numbers in an array of their own; after the last, one that cannot be read.
    struct Numbers(Vec<Option<f64>>);

    impl Values for Numbers {
        fn row_bytes(&self) -> u64 {
            8
        }

        fn write(&self, rows: Range<u64>, _: &CancelToken, out: &mut Written) -> Result<()> {
            for row in rows {
                let value = self.0.get(row as usize);
                let value = value.ok_or_else(|| Error::corrupt("a chunk", None))?;
                out.present.push(value.is_some());
                out.bytes
                    .extend(value.iter().flat_map(|value| value.to_le_bytes()));
            }
            Ok(())
        }

        fn origin(&self) -> Option<Origin> {
            Some(Origin {
                is_alone: true,
                is_near: true,
                is_decoded: false,
            })
        }

        fn own_bytes(&self) -> u64 {
            0
        }
    }

    /// The bounds of such a column of six rows, two in each group.
    fn bounds(values: &[Option<f64>]) -> Option<Vec<[f64; 2]>> {
        let leaf = Leaf {
            kind: Type::plain(Physical::Double),
            body: Body::Plain(8),
            is_optional: true,
            values: Box::new(Numbers(values.to_vec())),
            ragged: None,
        };
        let content = Content::Leaf(Box::new(leaf));
        let name = "x".to_owned();
        let columns = Flat::of(vec![Field { name, content }]).columns;
        let layout = Layout::of(&columns, 0..6, 2, Vec::new()).unwrap();
        let statistics = Statistics::of(&columns, &layout, Box::new(|find| find()));
        let cancel = CancelToken::default();
        let records = statistics.with(&columns, &layout, &cancel, |found| {
            let lengths = [found, statistics.none()];
            let lengths = lengths.map(|bounds| {
                let added = bounds.add(Struct::default(), (1, 0), &columns[0]);
                added.end().len()
            });
            assert_eq!(lengths[0], lengths[1]);
            Ok(found.records.to_vec())
        });
        let records = records.unwrap();
        let records: Vec<&[u8]> = records.chunks(RECORD).collect();
        assert_eq!(records.len(), 3);
        let is_found = |record: &&[u8]| record[0] == 1;
        assert!(records.iter().all(is_found) || !records.iter().any(is_found));
        let number = |bytes: &[u8]| f64::from_le_bytes(*bytes.first_chunk().unwrap());
        let both = |record: &&[u8]| [number(&record[1..]), number(&record[1 + VALUE..])];
        is_found(&records[0]).then(|| records.iter().map(both).collect())
    }

    fn of(values: [f64; 6]) -> Option<Vec<[f64; 2]>> {
        bounds(&values.map(Some))
    }

    #[test]
    fn columns_that_are_sorted_have_bounds() {
        let inf = f64::INFINITY;
        let ascending = of([-inf, -2.5, -2.5, 1.0, 3.0, inf]);
        assert_eq!(ascending.unwrap(), [[-inf, -2.5], [-2.5, 1.0], [3.0, inf]]);
        let descending = of([9.0, 9.0, 9.0, 1.0, 1.0, -4.0]);
        assert_eq!(descending.unwrap(), [[9.0, 9.0], [1.0, 9.0], [-4.0, 1.0]]);
        assert_eq!(of([7.0; 6]).unwrap(), [[7.0; 2]; 3]);
    }

    #[test]
    fn a_zero_bounds_the_other_one() {
        let [first, second, _] = *of([0.0, 1.0, 1.0, 2.0, 3.0, 4.0]).unwrap() else {
            panic!("three groups")
        };
        assert!(first[0].is_sign_negative() && second[0] == 1.0);
        let of_zeros = of([-1.0, -0.0, 0.0, -0.0, 0.0, 0.0]).unwrap();
        assert!(of_zeros[0][1].is_sign_positive());
        assert!(of_zeros[2][0].is_sign_negative() && of_zeros[2][1].is_sign_positive());
    }

    #[test]
    fn others_have_none() {
        assert_eq!(of([1.0, 2.0, 3.0, 2.5, 4.0, 5.0]), None);
        assert_eq!(of([2.0, 2.0, 1.0, 1.0, 1.0, 1.5]), None);
        assert_eq!(of([1.0, 2.0, 3.0, 4.0, 5.0, f64::NAN]), None);
        assert_eq!(of([f64::NAN; 6]), None);
        let missing = [1.0, 2.0, 3.0, 4.0, 5.0].map(Some);
        assert_eq!(bounds(&[&missing[..], &[None]].concat()), None);
        // Nor has one of which a part cannot be read.
        assert_eq!(bounds(&missing), None);
    }

    #[test]
    fn integers_are_compared_as_what_they_are() {
        let signed = Type::integer(64, true);
        let unsigned = Type::integer(64, false);
        let minus_one = u64::MAX.to_le_bytes();
        assert_eq!(key(minus_one, signed), Some(-1));
        assert_eq!(key(minus_one, unsigned), Some(i128::from(u64::MAX)));
        let narrow = filled(&u32::MAX.to_le_bytes());
        assert_eq!(key(narrow, Type::integer(32, true)), Some(-1));
        assert_eq!(
            key(narrow, Type::integer(32, false)),
            Some(i128::from(u32::MAX))
        );
    }

    #[test]
    fn no_more_values_are_looked_at_than_are_counted() {
        let columns = Vec::new();
        let layout = Layout::of(&columns, 0..1000, 100, Vec::new()).unwrap();
        let leaf = Leaf {
            kind: Type::plain(Physical::Double),
            body: Body::Plain(8),
            is_optional: false,
            values: Box::new(Numbers(vec![Some(1.0); 1000])),
            ragged: None,
        };
        let column = Column {
            leaf,
            path: Vec::new(),
            lists: Vec::new(),
        };
        let cancel = CancelToken::default();
        let mut left = 1500;
        assert!(
            sorted(&column, &layout, &mut left, &cancel)
                .unwrap()
                .is_some()
        );
        assert_eq!(left, 500);
        assert!(
            sorted(&column, &layout, &mut left, &cancel)
                .unwrap()
                .is_none()
        );
        assert_eq!(left, 500);
    }
}
