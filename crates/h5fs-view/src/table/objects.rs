//! NumPy arrays of Python objects, stored as pickles, and the text of each object.

use std::sync::Arc;

use h5fs_conventions::pickle::{Pickle, PickleValue, ValueIndex};
use h5fs_conventions::table_budget::TableBudget;
use h5fs_reader::error::Result;
use h5fs_reader::wire::to_u64;

use crate::limits;
use crate::table::labels::{self, ColumnLabels};

/// One column of a pickled array of Python objects. The text of an object is formatted each time it
/// is read, because a pickle may refer to one long text very often.
#[derive(Debug, Clone)]
pub struct PickledTexts {
    pickle: Arc<Pickle>,
    /// The list in the pickle with the objects of all columns, in C order.
    items: ValueIndex,
    /// The index of this column. `columns` is the number of columns.
    column: usize,
    columns: usize,
}

/// Parses a pickled array, and returns its columns. A vector has one column. Returns `None` if the
/// pickle is not an array, or has objects other than texts, numbers, times and missing values.
pub(super) fn parse_columns(bytes: &[u8]) -> Option<Vec<PickledTexts>> {
    let pickle = Pickle::read(bytes)?;
    let PickleValue::Object {
        callable,
        state: Some(state),
        ..
    } = *pickle.get(pickle.root_value())?
    else {
        return None;
    };
    if !pickle.is_global(callable, b".multiarray", b"_reconstruct") {
        return None;
    }
    // The state is: version, shape, type, whether the order is Fortran's, items in C order.
    let &[_, shape, _, _, items] = pickle.items(state)? else {
        return None;
    };
    let columns = match pickle.items(shape)? {
        [_] => 1,
        &[_, columns] => pickle.unsigned_integer(columns)?,
        _ => return None,
    };
    let all = pickle.items(items)?;
    let is_whole = all.len().checked_rem(columns) == Some(0);
    let is_known = |&item| is_supported(&pickle, item);
    let most = all.len().clamp(1, limits::CSV_COLUMNS);
    if !is_whole || columns > most || !all.iter().all(is_known) {
        return None;
    }
    let pickle = Arc::new(pickle);
    let column = |column| PickledTexts {
        pickle: Arc::clone(&pickle),
        items,
        column,
        columns,
    };
    Some((0..columns).map(column).collect())
}

impl PickledTexts {
    /// Returns the number of rows.
    pub fn rows(&self) -> u64 {
        to_u64(self.all_items().len() / self.columns)
    }

    /// Appends the text of the object in row `row`. Returns false if the value is missing.
    pub(super) fn write(&self, row: usize, out: &mut Vec<u8>) -> bool {
        let place = row.checked_mul(self.columns);
        let place = place.and_then(|place| place.checked_add(self.column));
        let item = place.and_then(|place| self.all_items().get(place));
        let written = item.and_then(|&item| write(&self.pickle, item, out));
        written == Some(true)
    }

    /// Returns the texts of this column as names of other columns.
    ///
    /// # Errors
    /// `Limit` if the budget is exceeded.
    pub(super) fn labels(&self, budget: &TableBudget) -> Result<ColumnLabels> {
        let labels = labels::read_labels(&self.pickle, self.items, budget)?;
        Ok(labels.unwrap_or_default())
    }

    /// Returns the approximate memory of the pickle in bytes, divided by the number of its columns.
    pub(super) fn weight(&self) -> u64 {
        let all = self.pickle.weight();
        all.div_ceil(to_u64(self.columns.max(1)))
    }

    fn all_items(&self) -> &[ValueIndex] {
        self.pickle.items(self.items).unwrap_or_default()
    }
}

/// Returns whether a value is supported: a text, a number, a boolean, a time or a missing value.
fn is_supported(pickle: &Pickle, item: ValueIndex) -> bool {
    is_missing(pickle, item)
        || matches!(pickle.get(item), Some(PickleValue::Bool(_)))
        || labels::can_write(pickle, item)
}

/// Returns whether a value represents a missing value.
fn is_missing(pickle: &Pickle, item: ValueIndex) -> bool {
    match pickle.get(item) {
        Some(PickleValue::None) => true,
        Some(PickleValue::Float(number)) => number.is_nan(),
        Some(PickleValue::Global(_, name)) => pickle.text(*name).as_deref() == Some(b"NA"),
        Some(PickleValue::Object { .. }) => pickle
            .constructor_call(item)
            .is_some_and(|(name, _)| name == b"_nat_unpickle"),
        _ => false,
    }
}

/// Appends the text of an object. Returns false for a missing value, and `None` for an unsupported
/// object.
fn write(pickle: &Pickle, item: ValueIndex, out: &mut Vec<u8>) -> Option<bool> {
    if is_missing(pickle, item) {
        return Some(false);
    }
    match pickle.get(item)? {
        PickleValue::Bool(value) => out.extend_from_slice(value.to_string().as_bytes()),
        _ => labels::write_scalar(pickle, item, out)?,
    }
    Some(true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use h5fs_reader::testing::processor_time;

    /// Returns a pickled NumPy array of `count` objects: the first one, and those that `rest`
    /// refers to.
    fn array(count: usize, first: &[u8], rest: &[u8]) -> Vec<u8> {
        let shape = [&b"J"[..], &(count as u32).to_le_bytes(), b"\x85"].concat();
        let function = b"cnumpy.core.multiarray\n_reconstruct\n)R(K\x01";
        let head = [b"\x80\x02", &function[..], &shape, b"N\x89("].concat();
        [&head, first, rest, b"ltb."].concat()
    }

    fn text(length: usize) -> Vec<u8> {
        let mut text = [&b"X"[..], &(length as u32).to_le_bytes()].concat();
        text.resize(text.len() + length, b'x');
        text
    }

    /// Copying the text once takes about a millisecond.
    #[test]
    fn a_repeated_long_text_is_not_copied() {
        let count = limits::PICKLE_VALUES / 2;
        let first = [&text(12 << 20)[..], b"q\x00"].concat();
        let bytes = array(count, &first, &b"h\x00".repeat(count - 1));
        let before = processor_time();
        let columns = parse_columns(&bytes).unwrap();
        assert!((processor_time() - before).as_secs() < 20);
        assert_eq!((columns.len(), columns[0].rows()), (1, count as u64));
    }

    #[test]
    fn known_objects_become_texts_or_missing_values() {
        let date = |bytes: &[u8]| {
            let length = [bytes.len() as u8];
            [b"cdatetime\ndate\nC", &length[..], bytes, b"\x85R"].concat()
        };
        let known: [(&[u8], Option<&[u8]>); 7] = [
            (b"N", None),
            (b"cpandas\nNA\n", None),
            (b"Gx", None),
            (b"\x88", Some(b"true")),
            (b"K\x07", Some(b"7")),
            (&text(2), Some(b"xx")),
            (&date(&[7, 232, 1, 2]), Some(b"2024-01-02")),
        ];
        for (item, expected) in known {
            let item = match item {
                b"Gx" => [&b"G"[..], &f64::NAN.to_be_bytes()].concat(),
                item => item.to_vec(),
            };
            let columns = parse_columns(&array(1, &item, b"")).unwrap();
            let mut written = Vec::new();
            let is_there = columns[0].write(0, &mut written);
            assert_eq!(is_there.then_some(&written[..]), expected);
        }
        let unknown = [
            b"]".to_vec(),
            b"cos\nsystem\n".to_vec(),
            date(&[1; 5]),
            date(b"abc"),
        ];
        for item in unknown {
            assert!(parse_columns(&array(1, &item, b"")).is_none(), "{item:?}");
        }
    }
}
