//! pandas' `HDFStore`, format `fixed`: a group that says `pandas_type` = `frame` or `series`.
//!
//! A frame has its columns in blocks of one type: `blockN_values`, a row each row, and
//! `blockN_items`, the names of its columns. `axis0` has the names of all columns in order, `axis1`
//! the index. An axis of several levels has the values of level N in `AXIS_levelN`, and numbers of
//! them in `AXIS_labelN`. A series has `index` and `values`. Where an array has an attribute
//! `shape`, or one `transposed` that is 0, what is stored stands for no rows.

use std::sync::Arc;

use crate::error::{Error, Result, quoted};
use crate::limits;
use crate::model::Shape;
use crate::model::array::{Array, Storage};
use crate::model::attribute_value::{content, integers, text};
use crate::model::datatype::Class;
use crate::view::table::column::{GroupTable, Part, Source, sort_as};
use crate::view::table::group::{Group, missing};
use crate::view::table::objects::{Texts, columns};
use crate::view::table::pandas_table::source;
use crate::wire::to_u64;

/// Bytes of memory that a pickle takes while it is read.
const PICKLE_ROOM: u64 = 64 << 20;

/// A column, and its name.
type Named = (Vec<u8>, Source);

/// The table of a frame: the index, and the columns in their order.
///
/// # Errors
/// `Corrupt` where a member is not as it must be; `Unsupported` for columns of Python objects.
pub(super) fn frame(group: &Group<'_>) -> Result<GroupTable> {
    let blocks = number(group, b"nblocks")?.unwrap_or(0);
    let mut columns = Vec::new();
    for block in 0..blocks {
        add_block(group, block, &mut columns)?;
    }
    let order = axis_names(group, b"axis0")?;
    sort_as(&mut columns, &order);
    with_index(group, b"axis1", columns)
}

/// The table of a series: the index and the values.
///
/// # Errors
/// As [`frame`].
pub(super) fn series(group: &Group<'_>) -> Result<GroupTable> {
    let name = named(group.text(b"name")?).unwrap_or_else(|| b"values".to_vec());
    let values = column(group, b"values", b"value_type")?;
    with_index(group, b"index", vec![(name, values)])
}

/// Adds the columns of a block.
fn add_block(group: &Group<'_>, block: u64, columns: &mut Vec<Named>) -> Result<()> {
    let names = axis_names(group, format!("block{block}_items").as_bytes())?;
    let name = format!("block{block}_values").into_bytes();
    let sources = block_columns(group, &name, names.len())?;
    if sources.len() != names.len() || columns.len() + names.len() > limits::CSV_COLUMNS {
        return Err(missing(&name, "has another number of columns"));
    }
    columns.extend(names.into_iter().zip(sources));
    Ok(())
}

/// The columns in a block that has so many.
fn block_columns(group: &Group<'_>, name: &[u8], count: usize) -> Result<Vec<Source>> {
    let values = values(group, name)?;
    if values.rows() == 0 {
        return Ok(vec![Source::Values(values); count]);
    }
    if is_pickled(&values) {
        let columns = pickled(group, &values, name)?;
        return Ok(columns.into_iter().map(Source::Texts).collect());
    }
    let parts = values.elements()?.into_iter();
    parts
        .map(|part| typed(group, part, b"value_type"))
        .collect()
}

/// The table of an index and columns.
fn with_index(group: &Group<'_>, axis: &[u8], columns: Vec<Named>) -> Result<GroupTable> {
    let index = index(group, axis)?;
    let rows = index.first().map_or(0, |(_, index)| index.rows());
    let mut table = GroupTable::of_rows(rows);
    for (name, column) in index.into_iter().chain(columns) {
        table.push(name, column)?;
    }
    Ok(table)
}

/// The columns of the index.
fn index(group: &Group<'_>, axis: &[u8]) -> Result<Vec<Named>> {
    let Some(levels) = levels(group, axis)? else {
        let values = values(group, axis)?;
        let name = named(text(group.container, values.node, b"name")?);
        let index = column(group, axis, b"kind")?;
        return Ok(vec![(name.unwrap_or_else(|| b"index".to_vec()), index)]);
    };
    let level = |level| {
        let names = values(group, &numbered(axis, "level", level))?;
        let name = named(text(group.container, names.node, b"name")?);
        let name = name.unwrap_or_else(|| format!("level_{level}").into_bytes());
        let codes = values(group, &numbered(axis, "label", level))?;
        Ok((name, Source::Categories { codes, names }))
    };
    (0..levels).map(level).collect()
}

/// The number of levels of an axis; `None` where it has but itself.
fn levels(group: &Group<'_>, axis: &[u8]) -> Result<Option<u64>> {
    let variety = group.text(&[axis, b"_variety"].concat())?;
    match variety.is_some_and(|variety| variety == b"multi") {
        true => number(group, &[axis, b"_nlevels"].concat()),
        false => Ok(None),
    }
}

/// The names on an axis of columns; of several levels joined as `a.b`.
fn axis_names(group: &Group<'_>, axis: &[u8]) -> Result<Vec<Vec<u8>>> {
    let Some(levels) = levels(group, axis)? else {
        return group.names(&values(group, axis)?);
    };
    let mut names: Vec<Vec<u8>> = Vec::new();
    for level in 0..levels {
        let parts = group.names(&values(group, &numbered(axis, "level", level))?)?;
        let labels = group.names(&values(group, &numbered(axis, "label", level))?)?;
        names.resize(labels.len(), Vec::new());
        for (name, label) in names.iter_mut().zip(labels) {
            let label = str::from_utf8(&label)
                .ok()
                .and_then(|label| label.parse().ok());
            let part = label.and_then(|label: usize| parts.get(label));
            if level > 0 {
                name.push(b'.');
            }
            name.extend_from_slice(part.map(Vec::as_slice).unwrap_or_default());
        }
    }
    Ok(names)
}

/// The values of a member; no rows where it stands for nothing.
fn values(group: &Group<'_>, name: &[u8]) -> Result<Part> {
    let part = group.part(name)?;
    let transposed = integers(group.container, part.node, b"transposed")?;
    let is_empty = transposed.is_some_and(|transposed| transposed == [0])
        || content(group.container, part.node, b"shape")?.is_some();
    Ok(match is_empty {
        true => without_rows(&part),
        false => part,
    })
}

/// Whether values are one array of Python objects, pickled.
fn is_pickled(values: &Part) -> bool {
    matches!(values.datatype.class, Class::VariableLength(_))
}

/// The columns of an array of Python objects.
fn pickled(group: &Group<'_>, values: &Part, name: &[u8]) -> Result<Vec<Texts>> {
    let pickle = group.first_sequence(values)?;
    let _room = group.engine.hold(PICKLE_ROOM)?;
    let unknown = || {
        let what = format!("{}: Python objects", quoted(name));
        Error::unsupported(what, None)
    };
    columns(&pickle).ok_or_else(unknown)
}

/// The same values, none of them.
fn without_rows(part: &Part) -> Part {
    let array = Array {
        datatype: part.array.datatype.clone(),
        shape: Shape::fixed(vec![0]),
        fill: part.array.fill.clone(),
        layout: part.array.layout,
        chunk_shape: None,
        pipeline: part.array.pipeline.clone(),
        storage: Ok(Storage::Empty),
    };
    Part {
        array: Arc::new(array),
        ..part.clone()
    }
}

/// A member with one value each row, as its attribute `kind` says.
fn column(group: &Group<'_>, name: &[u8], kind: &[u8]) -> Result<Source> {
    let values = values(group, name)?;
    if !is_pickled(&values) {
        return typed(group, values, kind);
    }
    let columns = pickled(group, &values, name)?;
    match <[_; 1]>::try_from(columns) {
        Ok([column]) => Ok(Source::Texts(column)),
        Err(_) => Err(missing(name, "has several columns")),
    }
}

/// The values as the attribute `kind` of their array says.
fn typed(group: &Group<'_>, values: Part, kind: &[u8]) -> Result<Source> {
    let attribute = |name| text(group.container, values.node, name);
    let kind = attribute(kind)?.unwrap_or_default();
    let is_utc = content(group.container, values.node, b"tz")?.is_some();
    Ok(source(values, &kind, is_utc, b"nan"))
}

/// A name that is not Python's `None`, pickled.
fn named(name: Option<Vec<u8>>) -> Option<Vec<u8>> {
    name.filter(|name| name != b"N.")
}

/// `AXIS_level0`.
fn numbered(axis: &[u8], what: &str, number: u64) -> Vec<u8> {
    [axis, format!("_{what}{number}").as_bytes()].concat()
}

/// An attribute that counts something of which there are columns, or fewer.
fn number(group: &Group<'_>, name: &[u8]) -> Result<Option<u64>> {
    let numbers = integers(group.container, group.id, name)?;
    let number = numbers.and_then(|numbers| numbers.first().copied());
    let Some(number) = number.and_then(|number| u64::try_from(number).ok()) else {
        return Ok(None);
    };
    let most = to_u64(limits::CSV_COLUMNS);
    match number <= most {
        true => Ok(Some(number)),
        false => Err(Error::limit("columns of a table", most)),
    }
}
