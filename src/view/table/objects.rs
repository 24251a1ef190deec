//! NumPy's arrays of Python objects, pickled: the text of each.

use std::sync::Arc;

use crate::error::Result;
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
    let mut text = Vec::new();
    let is_known = |&item| {
        text.clear();
        write(&pickle, item, &mut text).is_some()
    };
    if !is_whole || columns > all.len().max(1) || !all.iter().all(is_known) {
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

/// Appends the text of a value; gives whether there is one, and `None` for an object of another
/// kind.
fn write(pickle: &Pickle, item: Index, out: &mut Vec<u8>) -> Option<bool> {
    match pickle.get(item)? {
        Value::None => return Some(false),
        Value::Float(number) if number.is_nan() => return Some(false),
        Value::Bool(value) => out.extend_from_slice(value.to_string().as_bytes()),
        Value::Global(_, name) if pickle.text(*name).as_deref() == Some(b"NA") => {
            return Some(false);
        }
        _ if pickle
            .call(item)
            .is_some_and(|(name, _)| name == b"_nat_unpickle") =>
        {
            return Some(false);
        }
        _ => labels::write(pickle, item, out)?,
    }
    Some(true)
}
