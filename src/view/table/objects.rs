//! NumPy's arrays of Python objects, pickled: the text of each.

use std::sync::Arc;

use crate::error::Result;
use crate::limits;
use crate::view::table::budget::Budget;
use crate::view::table::labels::{self, Labels};
use crate::view::table::pickle::{Index, Pickle, Value};
use crate::wire::to_u64;

/// The texts of a column of such an array. A pickle may name one text very often, so that they are
/// made when they are read.
#[derive(Debug, Clone)]
pub(crate) struct Texts {
    pickle: Arc<Pickle>,
    /// The list of the items of all columns, in C's order.
    items: Index,
    /// The number of the column, and of all columns.
    column: usize,
    columns: usize,
}

/// Reads a pickled array and gives the texts of its columns, of a vector one column; `None` for
/// what is no such array, or has objects of other kinds than texts, numbers and missing ones.
pub(super) fn columns(bytes: &[u8]) -> Option<Vec<Texts>> {
    let pickle = Pickle::read(bytes)?;
    let Value::Object {
        callable,
        state: Some(state),
        ..
    } = *pickle.get(pickle.top())?
    else {
        return None;
    };
    if !pickle.is_global(callable, b".multiarray", b"_reconstruct") {
        return None;
    }
    // Version, shape, type, whether in Fortran's order, items in C's order.
    let &[_, shape, _, _, items] = pickle.items(state)? else {
        return None;
    };
    let columns = match pickle.items(shape)? {
        [_] => 1,
        &[_, columns] => pickle.count(columns)?,
        _ => return None,
    };
    let all = pickle.items(items)?;
    let is_whole = all.len().checked_rem(columns) == Some(0);
    let is_known = |&item| is_known(&pickle, item);
    let most = all.len().clamp(1, limits::CSV_COLUMNS);
    if !is_whole || columns > most || !all.iter().all(is_known) {
        return None;
    }
    let pickle = Arc::new(pickle);
    let column = |column| Texts {
        pickle: Arc::clone(&pickle),
        items,
        column,
        columns,
    };
    Some((0..columns).map(column).collect())
}

impl Texts {
    /// The number of rows.
    pub(crate) fn rows(&self) -> u64 {
        to_u64(self.all().len() / self.columns)
    }

    /// Appends the text of a row, if it has one; gives whether it has.
    pub(super) fn write(&self, row: usize, out: &mut Vec<u8>) -> bool {
        let place = row.checked_mul(self.columns);
        let place = place.and_then(|place| place.checked_add(self.column));
        let item = place.and_then(|place| self.all().get(place));
        let written = item.and_then(|&item| write(&self.pickle, item, out));
        written == Some(true)
    }

    /// The texts as names of columns.
    ///
    /// # Errors
    /// `Limit` for too many or too long ones.
    pub(super) fn labels(&self, budget: &Budget) -> Result<Labels> {
        let labels = labels::labels(&self.pickle, self.items, budget)?;
        Ok(labels.unwrap_or_default())
    }

    /// Its part of the bytes of memory that all columns take, about.
    pub(super) fn weight(&self) -> u64 {
        let all = self.pickle.weight();
        all.div_ceil(to_u64(self.columns.max(1)))
    }

    fn all(&self) -> &[Index] {
        self.pickle.items(self.items).unwrap_or_default()
    }
}

/// Whether a value is a text, a number, a time or a missing one.
fn is_known(pickle: &Pickle, item: Index) -> bool {
    is_missing(pickle, item)
        || matches!(pickle.get(item), Some(Value::Bool(_)))
        || labels::is_known(pickle, item)
}

/// Whether a value is one of those that stand for a missing one.
fn is_missing(pickle: &Pickle, item: Index) -> bool {
    match pickle.get(item) {
        Some(Value::None) => true,
        Some(Value::Float(number)) => number.is_nan(),
        Some(Value::Global(_, name)) => pickle.text(*name).as_deref() == Some(b"NA"),
        Some(Value::Object { .. }) => pickle
            .call(item)
            .is_some_and(|(name, _)| name == b"_nat_unpickle"),
        _ => false,
    }
}

/// Appends the text of a value; gives whether there is one, and `None` for an object of another
/// kind.
fn write(pickle: &Pickle, item: Index, out: &mut Vec<u8>) -> Option<bool> {
    if is_missing(pickle, item) {
        return Some(false);
    }
    match pickle.get(item)? {
        Value::Bool(value) => out.extend_from_slice(value.to_string().as_bytes()),
        _ => labels::write(pickle, item, out)?,
    }
    Some(true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::tests::processor_time;

    /// NumPy's array of so many objects, the first one and others that `rest` names.
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

    /// Each copy of the text would take a millisecond.
    #[test]
    fn a_long_text_that_is_named_often_is_not_copied() {
        let count = limits::PICKLE_VALUES / 2;
        let first = [&text(12 << 20)[..], b"q\x00"].concat();
        let bytes = array(count, &first, &b"h\x00".repeat(count - 1));
        let before = processor_time();
        let columns = columns(&bytes).unwrap();
        assert!((processor_time() - before).as_secs() < 20);
        assert_eq!((columns.len(), columns[0].rows()), (1, count as u64));
    }

    #[test]
    fn what_is_known_has_a_text_or_is_missing() {
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
            let columns = columns(&array(1, &item, b"")).unwrap();
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
            assert!(columns(&array(1, &item, b"")).is_none(), "{item:?}");
        }
    }
}
