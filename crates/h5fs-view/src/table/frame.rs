//! The common part of the pandas formats `fixed` and `table`: the meaning of stored values, and the
//! names and the order of columns.

use std::collections::HashMap;
use std::sync::Arc;

use h5fs_reader::error::Result;
use h5fs_reader::model::attribute_value::attribute_content;
use h5fs_reader::model::datatype::{Charset, Class};
use h5fs_reader::model::{Datatype, NodeId};

use crate::table::column::{ColumnSource, GroupTable, MissingRule, RowField};
use crate::table::group::Group;
use crate::table::labels::ColumnLabels;
use crate::table::time::{Frequency, PandasTime, TimeUnit};

/// The name of a column, and the source of its values.
pub(super) type NamedColumn = (Vec<u8>, ColumnSource);

/// The description of stored values by the attributes in the file.
#[derive(Default)]
pub(super) struct ValueDescription {
    /// The name of the datatype in pandas (`datetime64[us]`, `float64`); may be empty.
    pub(super) dtype: Vec<u8>,
    /// Whether the values are instants with a time zone. They are stored in UTC.
    pub(super) is_utc: bool,
    /// The frequency of the values; `None` if they are not periods.
    pub(super) frequency: Option<Frequency>,
    /// The text that marks a missing value; `None` if there is no such text.
    pub(super) missing: Option<Arc<[u8]>>,
}

/// Returns the column source for the stored values `values`, whose meaning is `kind`.
pub(super) fn column_source(values: RowField, kind: &ValueDescription) -> ColumnSource {
    let name = &kind.dtype[..];
    let class = name.split(|&byte| byte == b'[').next().unwrap_or(name);
    let time = match class {
        b"datetime64" => Some(PandasTime::Instant {
            unit: time_unit(name),
            is_utc: kind.is_utc,
        }),
        b"timedelta64" => Some(PandasTime::Duration(time_unit(name))),
        b"date" => Some(PandasTime::Day),
        _ => kind.frequency.map(PandasTime::Period),
    };
    match (time, &values.datatype.class) {
        (Some(time), Class::Integer { .. }) => ColumnSource::Times { values, time },
        // The class is PyTables' time column of 32 bits.
        (Some(time), &Class::Time { order, bits }) => {
            let signed = true;
            let values = values.with_class(Class::Integer {
                order,
                signed,
                bits,
            });
            ColumnSource::Times { values, time }
        }
        (_, class) => match (class, &kind.missing) {
            _ if is_bool(name, &values) => ColumnSource::Values(values.with_class(Class::Bool)),
            (Class::String { .. }, Some(missing)) => ColumnSource::Masked {
                values,
                missing: MissingRule::Text(Arc::clone(missing)),
            },
            _ => ColumnSource::Values(values),
        },
    }
}

fn is_bool(kind: &[u8], values: &RowField) -> bool {
    let is_bits = matches!(values.datatype.class, Class::Bitfield { .. });
    values.datatype.size == 1 && (kind == b"bool" || is_bits)
}

/// Returns the value of a boolean attribute; `None` if the attribute does not exist. PyTables
/// stores booleans as bit fields.
///
/// # Errors
/// Fails if the attribute cannot be read.
pub(super) fn read_flag(group: &Group<'_>, node: NodeId, name: &[u8]) -> Result<Option<bool>> {
    let content = attribute_content(group.container, node, name)?;
    Ok(content.map(|content| content.elements.iter().any(|&byte| byte != 0)))
}

/// Returns whether a string of this datatype may be a pickle. PyTables stores texts as UTF-8, and
/// pickles as bytes.
pub(super) fn may_be_pickle(datatype: &Datatype) -> bool {
    let (Class::String { charset, .. } | Class::VariableString { charset, .. }) = &datatype.class
    else {
        return false;
    };
    *charset == Charset::Ascii
}

/// Returns the unit in the brackets of a pandas datatype, such as `datetime64[us]`. Without
/// brackets, the unit is the nanosecond.
fn time_unit(kind: &[u8]) -> TimeUnit {
    let is = |unit: &[u8]| kind.windows(unit.len()).any(|part| part == unit);
    let of_second = match () {
        () if is(b"[s") => 1,
        () if is(b"[ms") => 1000,
        () if is(b"[us") => 1_000_000,
        () => return TimeUnit::NANOSECOND,
    };
    TimeUnit {
        per_second: of_second,
    }
}

/// Returns the name of an index that has no name in the file. pandas' `reset_index` chooses the
/// same name.
pub(super) fn unnamed_index_name(columns: &[NamedColumn]) -> Vec<u8> {
    let is_taken = columns.iter().any(|(name, _)| name == b"index");
    if is_taken { "level_0" } else { "index" }.into()
}

/// Adds `columns` to a table: first the columns that `first` names, then those that `order` names,
/// then all others in the order of the file. A complex number becomes two columns.
///
/// # Errors
/// Fails as [`GroupTable::push`] does.
pub(super) fn add_columns(
    table: &mut GroupTable,
    mut columns: Vec<NamedColumn>,
    first: &[Vec<u8>],
    order: &ColumnLabels,
) -> Result<()> {
    sort_by_order(&mut columns, first.iter().chain(&order.texts));
    let is_short = order.has_only_times && columns.iter().all(|(name, _)| name.ends_with(MIDNIGHT));
    for (mut name, source) in columns {
        if is_short {
            name.truncate(name.len() - MIDNIGHT.len());
        }
        match &source {
            ColumnSource::Values(values) if values.datatype.complex_part().is_some() => {
                table.push_values(&name, values, None)?;
            }
            _ => table.push(name, source)?,
        }
    }
    Ok(())
}

/// The time of day in the name of a column that is a date or a duration of whole days. Like pandas,
/// h5fs omits the time if all names on an axis end with it.
const MIDNIGHT: &[u8] = b" 00:00:00";

/// Sorts columns by the position of their names in `order`. Columns that `order` does not contain
/// follow in the order of the file.
fn sort_by_order<'a, T>(columns: &mut [(Vec<u8>, T)], order: impl Iterator<Item = &'a Vec<u8>>) {
    let mut places: HashMap<&[u8], usize> = HashMap::new();
    for (place, name) in order.enumerate() {
        places.entry(name).or_insert(place);
    }
    let place = |name: &[u8]| places.get(name).copied().unwrap_or(usize::MAX);
    columns.sort_by_key(|(name, _)| place(name));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_in_the_order_of_names() {
        let texts = |names: &[&str]| -> Vec<Vec<u8>> {
            names.iter().map(|name| name.as_bytes().to_vec()).collect()
        };
        let mut columns: Vec<_> = texts(&["c", "x", "a", "b", "a"])
            .into_iter()
            .zip(0..)
            .collect();
        sort_by_order(&mut columns, texts(&["a", "b", "c"]).iter());
        let numbers: Vec<i32> = columns.into_iter().map(|(_, number)| number).collect();
        assert_eq!(numbers, [2, 4, 3, 0, 1]);
    }
}
