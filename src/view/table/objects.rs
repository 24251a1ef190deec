//! NumPy's arrays of Python objects, pickled: the text of each.

use std::sync::Arc;

use crate::model::number::Real;
use crate::view::table::pickle::{Index, Pickle, Value};

/// The text of each value of a column; `None` for a missing one.
pub(crate) type Texts = Arc<[Option<Box<[u8]>>]>;

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
    let Value::Global(name) = pickle.get(callable)? else {
        return None;
    };
    if !name.ends_with(b".multiarray._reconstruct") {
        return None;
    }
    // Version, shape, type, whether in Fortran's order, items in C's order.
    let &[_, shape, _, _, items] = pickle.items(state)? else {
        return None;
    };
    let items = pickle.items(items)?;
    let count = match pickle.items(shape)? {
        [_] => 1,
        &[_, columns] => pickle.count(columns)?,
        _ => return None,
    };
    let column = |first| {
        let items = items.iter().skip(first).step_by(count);
        items.map(|&item| text(&pickle, item)).collect()
    };
    let is_whole = items.len().checked_rem(count) == Some(0);
    is_whole.then(|| (0..count).map(column).collect())?
}

/// The text of a value, within `None` where it is missing.
fn text(pickle: &Pickle, item: Index) -> Option<Option<Box<[u8]>>> {
    let text = match pickle.get(item)? {
        Value::None => return Some(None),
        Value::Float(number) if number.is_nan() => return Some(None),
        Value::Float(number) => {
            let mut text = Vec::new();
            Real::Double(*number).write(&mut text);
            text
        }
        Value::Bool(value) => value.to_string().into_bytes(),
        _ => pickle.text(item)?,
    };
    Some(Some(text.into()))
}
