//! The pandas `HDFStore`, format `fixed`: a group with `pandas_type` = `frame` or `series`.
//!
//! A frame stores its columns in blocks of one datatype. `blockN_values` has the rows of a block,
//! and `blockN_items` the names of its columns. `axis0` has the names of all columns in order, and
//! `axis1` the index. A series has `index` and `values`.
//!
//! An axis with several levels has the values of level N in `AXIS_levelN`, and their codes in
//! `AXIS_labelN`. An axis of categories has the categories in `AXIS_categories`. If an array has an
//! attribute `shape`, or an attribute `transposed` of 0, its stored element is a placeholder, and
//! the array is empty.

use std::sync::Arc;

use h5fs_conventions::pandas_categories::parse_pickle;
use h5fs_reader::error::{Error, Result, quote};
use h5fs_reader::model::array::{Array, Storage};
use h5fs_reader::model::attribute_value::{
    attribute_content, attribute_exists, attribute_integers, attribute_text, decode_strings,
};
use h5fs_reader::model::datatype::Class;
use h5fs_reader::model::{NodeId, Shape};
use h5fs_reader::wire::to_u64;

use crate::limits;
use crate::table::column::{ColumnSource, GroupTable, RowField};
use crate::table::frame::{
    self, NamedColumn, ValueDescription, column_source, may_be_pickle, read_flag,
    unnamed_index_name,
};
use crate::table::group::{Group, malformed_member_error, unsupported_member_error};
use crate::table::labels::{ColumnLabels, parse_frequency, read_single_label};
use crate::table::objects::{PickledTexts, parse_columns};
use crate::table::time::PandasTime;

/// Maximum memory in bytes of a parsed pickle.
const PICKLE_MEMORY: u64 = 64 << 20;

/// Returns the table of a frame: the index, and the columns in their order.
///
/// # Errors
/// `Corrupt` if a member is malformed; `Unsupported` for columns of Python objects.
pub(super) fn frame_table(group: &Group<'_>) -> Result<GroupTable> {
    let blocks = count_attribute(group, b"nblocks")?.unwrap_or(0);
    let mut columns = Vec::new();
    for block in 0..blocks {
        add_block(group, block, &mut columns)?;
    }
    let order = axis_names(group, b"axis0")?;
    table_with_index(group, b"axis1", columns, &order)
}

/// Returns the table of a series: the index and the values.
///
/// # Errors
/// Fails as [`frame_table`] does.
pub(super) fn series_table(group: &Group<'_>) -> Result<GroupTable> {
    let name = read_name(group, group.id)?;
    let name = name.unwrap_or_else(|| single_label(b"values"));
    let values = member_source(group, b"values", b"value_type")?;
    let columns = vec![(name.texts.concat(), values)];
    table_with_index(group, b"index", columns, &name)
}

/// Adds the columns of block number `block` to `columns`.
fn add_block(group: &Group<'_>, block: u64, columns: &mut Vec<NamedColumn>) -> Result<()> {
    let names = axis_names(group, format!("block{block}_items").as_bytes())?.texts;
    let name = format!("block{block}_values").into_bytes();
    let sources = block_columns(group, &name, names.len())?;
    if sources.len() != names.len() || columns.len() + names.len() > limits::CSV_COLUMNS {
        return Err(malformed_member_error(
            &name,
            "has an unexpected number of columns",
        ));
    }
    for source in &sources {
        group.budget.spend(source.weight())?;
    }
    columns.extend(names.into_iter().zip(sources));
    Ok(())
}

/// Returns the sources of the columns of a block. `name` is the member with the values, and `count`
/// is the number of columns.
fn block_columns(group: &Group<'_>, name: &[u8], count: usize) -> Result<Vec<ColumnSource>> {
    let values = member_values(group, name)?;
    if values.rows() == 0 {
        // Only the names of the columns are shown.
        let nothing = ColumnSource::Values(values.with_class(Class::Bool));
        return Ok(vec![nothing; count]);
    }
    if is_pickled(&values) {
        let columns = pickled_columns(group, &values, name)?;
        return Ok(columns.into_iter().map(ColumnSource::Texts).collect());
    }
    let kind = value_description(group, values.node, b"value_type")?;
    let parts = values.element_fields()?.into_iter();
    Ok(parts.map(|part| column_source(part, &kind)).collect())
}

/// Returns a table that consists of the index `axis` and of `columns` in the order `order`.
fn table_with_index(
    group: &Group<'_>,
    axis: &[u8],
    columns: Vec<NamedColumn>,
    order: &ColumnLabels,
) -> Result<GroupTable> {
    let index = match level_count(group, axis)? {
        Some(levels) => (0..levels)
            .map(|level| index_level(group, axis, level))
            .collect::<Result<_>>()?,
        None => vec![single_index(group, axis, &columns)?],
    };
    let rows = index.first().map_or(0, |(_, index)| index.rows());
    let mut table = GroupTable::with_row_count(rows);
    for (name, column) in index {
        table.push(name, column)?;
    }
    frame::add_columns(&mut table, columns, &[], order)?;
    Ok(table)
}

/// Returns the name and the source of the index, which is the axis `axis` with one level.
fn single_index(group: &Group<'_>, axis: &[u8], columns: &[NamedColumn]) -> Result<NamedColumn> {
    let node = member_values(group, axis)?.node;
    let name = read_name(group, node)?.map(|name| name.texts.concat());
    let name = name.unwrap_or_else(|| unnamed_index_name(columns));
    Ok((name, member_source(group, axis, b"kind")?))
}

/// Returns the name and the source of level `level` of an index with several levels.
fn index_level(group: &Group<'_>, axis: &[u8], level: u64) -> Result<NamedColumn> {
    let axis_level = numbered_name(axis, "level", level);
    let name = read_name(group, member_values(group, &axis_level)?.node)?;
    let name = name.map(|name| name.texts.concat());
    let name = name.unwrap_or_else(|| format!("level_{level}").into_bytes());
    let codes = member_values(group, &numbered_name(axis, "label", level))?;
    let names = Arc::new(member_source(group, &axis_level, b"kind")?);
    Ok((name, ColumnSource::Categories { codes, names }))
}

/// Returns the number of levels of an axis; `None` for an axis with one level.
fn level_count(group: &Group<'_>, axis: &[u8]) -> Result<Option<u64>> {
    let variety = group.attribute_text(&[axis, b"_variety"].concat())?;
    if variety.is_some_and(|variety| variety == b"multi") {
        count_attribute(group, &[axis, b"_nlevels"].concat())
    } else {
        Ok(None)
    }
}

/// Returns the column names on an axis. The names of several levels are joined as `a.b`.
fn axis_names(group: &Group<'_>, axis: &[u8]) -> Result<ColumnLabels> {
    let Some(levels) = level_count(group, axis)? else {
        return level_names(group, axis);
    };
    let mut names: Vec<Vec<u8>> = Vec::new();
    for level in 0..levels {
        let parts = level_names(group, &numbered_name(axis, "level", level))?.texts;
        let labels = member_values(group, &numbered_name(axis, "label", level))?;
        let labels = group.read_integers(&labels)?.unwrap_or_default();
        names.resize(labels.len(), Vec::new());
        for (name, label) in names.iter_mut().zip(labels) {
            let part = usize::try_from(label).ok();
            let part = part.and_then(|label| parts.get(label));
            let part = part.map(Vec::as_slice).unwrap_or_default();
            if level > 0 {
                name.push(b'.');
            }
            group.budget.spend_on_name(part.len())?;
            name.extend_from_slice(part);
        }
    }
    Ok(ColumnLabels {
        texts: names,
        has_only_times: false,
    })
}

/// Returns the names on an axis with one level, or on one level of an axis with several levels.
fn level_names(group: &Group<'_>, axis: &[u8]) -> Result<ColumnLabels> {
    let (time, values) = match member_source(group, axis, b"kind")? {
        ColumnSource::Texts(texts) => return texts.labels(group.budget),
        ColumnSource::Times { values, time } => (Some(time), values),
        ColumnSource::Values(values) | ColumnSource::Masked { values, .. } => (None, values),
        _ => return Err(unsupported_member_error(axis, "labels of this type")),
    };
    let Some(time) = time else {
        let texts = group.read_names(&values)?;
        let are_times = false;
        return Ok(ColumnLabels {
            texts,
            has_only_times: are_times,
        });
    };
    let names = group
        .read_integers(&values)?
        .unwrap_or_default()
        .into_iter();
    let names = names.map(|number| {
        let mut name = Vec::new();
        time.write_name(i64::try_from(number).unwrap_or(i64::MIN), &mut name);
        name
    });
    Ok(ColumnLabels {
        texts: names.collect(),
        has_only_times: !matches!(time, PandasTime::Period(_)),
    })
}

/// Returns the values of the member `name`. If its stored element is a placeholder, the result has
/// no rows.
fn member_values(group: &Group<'_>, name: &[u8]) -> Result<RowField> {
    let part = group.member_field(name)?;
    let is_empty = read_flag(group, part.node, b"transposed")? == Some(false)
        || attribute_exists(group.container, part.node, b"shape")?;
    Ok(if is_empty { without_rows(&part) } else { part })
}

/// Returns whether the values are one pickled array of Python objects.
fn is_pickled(values: &RowField) -> bool {
    matches!(values.datatype.class, Class::VariableLength(_))
}

/// Returns the columns of a pickled array of Python objects.
fn pickled_columns(group: &Group<'_>, values: &RowField, name: &[u8]) -> Result<Vec<PickledTexts>> {
    let pickle = group.read_first_sequence(values)?;
    let _room = group.engine.reserve_memory(PICKLE_MEMORY)?;
    let unknown = || {
        let what = format!("{}: Python objects", quote(name));
        Error::unsupported(what, None)
    };
    parse_columns(&pickle).ok_or_else(unknown)
}

/// Returns the field `part` in a copy of its array that has no rows.
fn without_rows(part: &RowField) -> RowField {
    let array = Array {
        datatype: part.array.datatype.clone(),
        shape: Shape::fixed(vec![0]),
        fill: part.array.fill.clone(),
        layout: part.array.layout,
        chunk_shape: None,
        pipeline: part.array.pipeline.clone(),
        storage: Ok(Storage::Empty),
    };
    RowField {
        array: Arc::new(array),
        ..part.clone()
    }
}

/// Returns the source of the member `name`, which has one value for each row. `kind` is the name of
/// the attribute with the datatype of the values.
fn member_source(group: &Group<'_>, name: &[u8], kind: &[u8]) -> Result<ColumnSource> {
    let codes = member_values(group, name)?;
    if is_pickled(&codes) {
        let columns = pickled_columns(group, &codes, name)?;
        return match <[_; 1]>::try_from(columns) {
            Ok([column]) => Ok(ColumnSource::Texts(column)),
            Err(_) => Err(unsupported_member_error(
                name,
                "several columns of Python objects",
            )),
        };
    }
    if attribute_text(group.container, codes.node, kind)?.as_deref() == Some(b"category") {
        let names = [name, b"_categories"].concat();
        let values = member_values(group, &names)?;
        let names = if is_pickled(&values) {
            return Err(unsupported_member_error(
                &names,
                "categories of Python objects",
            ));
        } else {
            Arc::new(typed_source(group, values, kind)?)
        };
        return Ok(ColumnSource::Categories { codes, names });
    }
    typed_source(group, codes, kind)
}

/// Returns the source of `values`. `kind` is the name of the attribute of their array that has
/// their datatype.
fn typed_source(group: &Group<'_>, values: RowField, kind: &[u8]) -> Result<ColumnSource> {
    let kind = value_description(group, values.node, kind)?;
    Ok(column_source(values, &kind))
}

/// Returns the meaning of an array's values, from the attributes of `node`. `kind` is the name of
/// the attribute with the datatype.
fn value_description(group: &Group<'_>, node: NodeId, kind: &[u8]) -> Result<ValueDescription> {
    let container = group.container;
    let class = attribute_text(container, node, b"index_class")?;
    let frequency = match class.as_deref() {
        Some(b"period") => {
            let unknown = || Error::unsupported("periods of an unusual length", None);
            let length = attribute_text(container, node, b"freq")?.unwrap_or_default();
            let length = parse_pickle(&length, group.budget)?;
            let length = length.and_then(|length| parse_frequency(&length, length.root_value()));
            Some(length.ok_or_else(unknown)?)
        }
        _ => None,
    };
    // Since pandas 3.1, an empty text means that there are no missing values.
    let missing = if attribute_exists(container, node, b"nan_rep")? {
        attribute_text(container, node, b"nan_rep")?.unwrap_or_default()
    } else {
        b"nan".to_vec()
    };
    group.budget.spend_on_name(missing.len())?;
    Ok(ValueDescription {
        dtype: attribute_text(container, node, kind)?.unwrap_or_default(),
        is_utc: attribute_exists(container, node, b"tz")?,
        frequency,
        missing: (!missing.is_empty()).then(|| missing.into()),
    })
}

/// Returns the name of a series or an index, which is a text, a number or a pickled object. Returns
/// `None` if the name is Python's `None`.
fn read_name(group: &Group<'_>, node: NodeId) -> Result<Option<ColumnLabels>> {
    let Some(content) = attribute_content(group.container, node, b"name")? else {
        return Ok(None);
    };
    let texts = decode_strings(group.container, &content.datatype, &content.elements)?;
    let Some(text) = texts.into_iter().next() else {
        return Ok(Some(single_label(b"")));
    };
    let is_pickle = may_be_pickle(&content.datatype);
    let pickle = if is_pickle {
        parse_pickle(&text, group.budget)?
    } else {
        None
    };
    match pickle {
        Some(pickle) if pickle.is_none(pickle.root_value()) => Ok(None),
        Some(pickle) => read_single_label(&pickle, group.budget),
        None => Ok(Some(single_label(&text))),
    }
}

/// Creates a list of one name.
fn single_label(text: &[u8]) -> ColumnLabels {
    ColumnLabels {
        texts: vec![text.to_vec()],
        has_only_times: false,
    }
}

/// Returns the name of a numbered member, such as `AXIS_level0`, where `what` is `level`.
fn numbered_name(axis: &[u8], what: &str, number: u64) -> Vec<u8> {
    [axis, format!("_{what}{number}").as_bytes()].concat()
}

/// Returns the number in an attribute of the group; `None` if the attribute does not exist or is
/// not a number. A number above the maximum number of columns is an error.
fn count_attribute(group: &Group<'_>, name: &[u8]) -> Result<Option<u64>> {
    let numbers = attribute_integers(group.container, group.id, name)?;
    let number = numbers.and_then(|numbers| numbers.first().copied());
    let Some(number) = number.and_then(|number| u64::try_from(number).ok()) else {
        return Ok(None);
    };
    let most = to_u64(limits::CSV_COLUMNS);
    if number <= most {
        Ok(Some(number))
    } else {
        Err(Error::limit("columns of a table", most))
    }
}
