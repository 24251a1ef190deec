//! The pandas `HDFStore`, format `table`: a dataset `table` of compounds, in a group with
//! `pandas_type` = `frame_table` or `series_table`.
//!
//! A member of the compound is the index, a single column (a data column), or an array with the
//! columns of one datatype (a block). Attributes of the dataset describe each member. Their names
//! are the member's name and a suffix:
//!
//! - `_kind`: the pickled names of the columns
//! - `_dtype`: the datatype of the columns
//! - `_meta`: `category` if the values are codes of the categories in `meta/NAME/meta/table`
//! - `_nan_rep`: the text of a missing value
//!
//! The group's pickled attribute `info` has time zones, and the name and frequency of the index.
//! `non_index_axes` has the order of the columns.

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::sync::Arc;

use h5fs_conventions::pandas_categories::parse_pickle;
use h5fs_conventions::pickle::{Pickle, PickleValue, ValueIndex};
use h5fs_reader::error::{Error, Result, quote};
use h5fs_reader::model::attribute_value::{attribute_content, decode_strings, with_attribute_name};
use h5fs_reader::model::datatype::Class;
use h5fs_reader::model::{Attribute, Node};
use h5fs_reader::wire::to_u64;

use crate::table::column::{ColumnSource, GroupTable, RowField};
use crate::table::frame::{
    self, NamedColumn, ValueDescription, may_be_pickle, read_flag, unnamed_index_name,
};
use crate::table::group::{Group, malformed_member_error, node_field, unsupported_member_error};
use crate::table::labels::{ColumnLabels, format_label, parse_frequency, read_labels};

/// The name of the dataset that contains the rows.
const TABLE: &[u8] = b"table";

/// The suffixes of those attributes of the dataset that are read. The name of the described member
/// precedes the suffix.
const SUFFIXES: [&[u8]; 4] = [b"_kind", b"_dtype", b"_meta", b"_nan_rep"];

/// Returns the table: the index, and the columns in the frame's order.
///
/// # Errors
/// `Corrupt` if the dataset is malformed; `Unsupported` for names, periods and pickles of
/// unsupported kinds.
pub(super) fn table(group: &Group<'_>) -> Result<GroupTable> {
    let frame = PandasFrame::new(group)?;
    let columns = frame.columns()?;
    let mut table = GroupTable::with_row_count(frame.rows.rows());
    if frame.levels.is_empty() {
        let name = frame.index_name()?;
        let name = name.unwrap_or_else(|| unnamed_index_name(&columns));
        table.push(name, frame.index_source()?)?;
    }
    frame::add_columns(&mut table, columns, &frame.levels, &frame.column_order()?)?;
    Ok(table)
}

/// The pickled attribute `info` of the group, and the dictionary in it for each member of the
/// compound.
type PickledInfo = (Pickle, HashMap<Vec<u8>, ValueIndex>);

/// A frame or series in the format `table`: the dataset with the rows, and the attributes that
/// describe it.
struct PandasFrame<'a> {
    group: &'a Group<'a>,
    rows: RowField,
    /// The attributes of the dataset that are texts, by name.
    attributes: HashMap<Vec<u8>, Vec<u8>>,
    /// The group's pickled attribute `info`, and its dictionary for each member; `None` if the
    /// group does not have this attribute.
    info: Option<PickledInfo>,
    /// The members of the compound that are levels of a multi-level index.
    levels: Vec<Vec<u8>>,
    /// The text that marks a missing value in columns without an attribute `_nan_rep`.
    missing: Option<Arc<[u8]>>,
}

impl<'a> PandasFrame<'a> {
    fn new(group: &'a Group<'a>) -> Result<Self> {
        let node = group.member(TABLE)?;
        Ok(PandasFrame {
            group,
            rows: node_field(&node, TABLE)?,
            attributes: read_attributes(group, &node)?,
            info: read_info(group)?,
            levels: index_level_names(group)?,
            missing: missing_text(group)?,
        })
    }

    /// Returns all columns except the index, in the order of the file.
    fn columns(&self) -> Result<Vec<NamedColumn>> {
        let Class::Compound(members) = &self.rows.datatype.class else {
            return Err(unsupported_member_error(
                TABLE,
                "elements that are not compounds",
            ));
        };
        let mut columns = Vec::new();
        for member in members.iter().filter(|member| member.name != b"index") {
            let values = self
                .rows
                .subfield(member.offset.into(), member.datatype.clone());
            let parts = values.element_fields()?;
            let names = self.column_names(&member.name)?;
            if names.len() != parts.len() {
                return Err(malformed_member_error(
                    &member.name,
                    "has an unexpected number of columns",
                ));
            }
            let sources = self.column_sources(parts, &member.name)?;
            for (name, source) in names.into_iter().zip(sources) {
                self.group.budget.spend(source.weight())?;
                columns.push((name, source));
            }
        }
        Ok(columns)
    }

    /// Returns the names of the columns in a member of the compound.
    fn column_names(&self, member: &[u8]) -> Result<Vec<Vec<u8>>> {
        let kind = self.attribute(member, b"_kind").unwrap_or_default();
        let budget = self.group.budget;
        let names = match parse_pickle(kind, budget)? {
            Some(names) => read_labels(&names, names.root_value(), budget)?,
            None => None,
        };
        names.map(|names| names.texts).ok_or_else(|| {
            let what = format!("names of the columns in {}", quote(member));
            Error::unsupported(what, None)
        })
    }

    /// Returns the sources of the columns `parts`, which are in one member and share its
    /// description.
    fn column_sources(&self, parts: Vec<RowField>, member: &[u8]) -> Result<Vec<ColumnSource>> {
        let parts = parts.into_iter();
        if let Some(names) = self.categories(member)? {
            let coded = |codes| ColumnSource::Categories {
                codes,
                names: Arc::clone(&names),
            };
            return Ok(parts.map(coded).collect());
        }
        let kind = self.value_description(member)?;
        Ok(parts
            .map(|part| frame::column_source(part, &kind))
            .collect())
    }

    /// Returns the description of the values of a member that does not have categories.
    fn value_description(&self, member: &[u8]) -> Result<ValueDescription> {
        let name = self.attribute(member, b"_dtype").unwrap_or_default();
        Ok(ValueDescription {
            dtype: name.to_vec(),
            is_utc: self.has_zone(member)?,
            missing: match self.attribute(member, b"_nan_rep") {
                Some(text) => Some(text.into()),
                None => self.missing.clone(),
            },
            frequency: None,
        })
    }

    /// Returns the source of the index, which has one level.
    fn index_source(&self) -> Result<ColumnSource> {
        let index = self.rows.member(b"index");
        let index = index.ok_or_else(|| malformed_member_error(b"index", "does not exist"))?;
        if let Some(names) = self.categories(b"index")? {
            let codes = index;
            return Ok(ColumnSource::Categories { codes, names });
        }
        let missing = self.attribute(b"index", b"_nan_rep").unwrap_or(b"nan");
        let name = self.attribute(b"index", b"_kind").unwrap_or_default();
        let kind = ValueDescription {
            dtype: name.to_vec(),
            is_utc: self.has_zone(b"index")?,
            missing: (!missing.is_empty()).then(|| missing.into()),
            frequency: match (name, self.info_value(b"index", b"freq")?) {
                (b"integer", Some((info, length))) if !info.is_none(length) => {
                    let unknown = || Error::unsupported("periods of an unusual length", None);
                    Some(parse_frequency(info, length).ok_or_else(unknown)?)
                }
                _ => None,
            },
        };
        Ok(frame::column_source(index, &kind))
    }

    /// Returns the categories of a member's values; `None` if the values are not categories.
    fn categories(&self, member: &[u8]) -> Result<Option<Arc<ColumnSource>>> {
        if self.attribute(member, b"_meta") != Some(b"category") {
            return Ok(None);
        }
        let mut group = *self.group;
        for name in [b"meta", member, b"meta"] {
            group = group.group_at(group.member(name)?.id);
        }
        let frame = PandasFrame::new(&group)?;
        let values = frame.rows.member(b"values");
        let values = values.ok_or_else(|| malformed_member_error(b"values", "does not exist"))?;
        let kind = frame.value_description(b"values")?;
        Ok(Some(Arc::new(frame::column_source(values, &kind))))
    }

    /// Returns the attribute of the dataset whose name is a member's name followed by `suffix`.
    fn attribute(&self, member: &[u8], suffix: &[u8]) -> Option<&[u8]> {
        let text = self.attributes.get(&[member, suffix].concat());
        text.map(Vec::as_slice)
    }

    /// Returns the value of `key` in the dictionary that the pickled attribute `info` has for a
    /// member; `None` if `info`, the dictionary or the key does not exist.
    fn info_value(&self, member: &[u8], key: &[u8]) -> Result<Option<(&Pickle, ValueIndex)>> {
        let Some((info, members)) = &self.info else {
            return Ok(None);
        };
        let Some(&member) = members.get(member) else {
            return Ok(None);
        };
        // Many members may share one dictionary.
        self.group.budget.spend(to_u64(info.pairs(member).len()))?;
        Ok(info.value(member, key).map(|value| (info, value)))
    }

    /// Returns whether a member's values are instants with a time zone. They are stored in UTC.
    fn has_zone(&self, member: &[u8]) -> Result<bool> {
        let zone = self.info_value(member, b"tz")?;
        Ok(zone.is_some_and(|(info, zone)| !info.is_none(zone)))
    }

    fn index_name(&self) -> Result<Option<Vec<u8>>> {
        match self.info_value(b"index", b"index_name")? {
            Some((info, name)) if !info.is_none(name) => {
                format_label(info, name, self.group.budget)
            }
            _ => Ok(None),
        }
    }

    /// Returns the names of the frame's columns in their order; an empty list if the group does not
    /// have `non_index_axes`.
    fn column_order(&self) -> Result<ColumnLabels> {
        const AXES: &[u8] = b"non_index_axes";
        let Some(axes) = read_pickle(self.group, AXES)? else {
            return Ok(ColumnLabels::default());
        };
        let axis = match axes.items(axes.root_value()) {
            Some([]) => return Ok(ColumnLabels::default()),
            axes => axes.and_then(|axes| axes.first().copied()),
        };
        match axis.and_then(|axis| axes.items(axis)) {
            Some(&[_, names]) => read_labels(&axes, names, self.group.budget)?,
            _ => None,
        }
        .ok_or_else(|| unsupported_attribute_error(AXES))
    }
}

/// Reads the attributes of the dataset that describe its members, all in one pass. There may be
/// several for each of a thousand members.
fn read_attributes(group: &Group<'_>, node: &Node) -> Result<HashMap<Vec<u8>, Vec<u8>>> {
    let mut all = HashMap::new();
    let mut take = |attribute: Attribute| -> Result<()> {
        let unreadable = |error| with_attribute_name(error, &attribute.name);
        let content = attribute.content.map_err(unreadable)?;
        if let Class::String { .. } | Class::VariableString { .. } = content.datatype.class {
            let name = attribute.name;
            let length = name.len().saturating_add(content.elements.len());
            group.budget.spend_on_name(length)?;
            // An empty string has a null dataspace.
            let texts = decode_strings(group.container, &content.datatype, &content.elements)?;
            all.insert(name, texts.into_iter().next().unwrap_or_default());
        }
        Ok(())
    };
    let mut failure = Ok(());
    group.container.attributes(node.id, &mut |attribute| {
        let is_wanted = |suffix: &&[u8]| attribute.name.ends_with(suffix);
        if SUFFIXES.iter().any(is_wanted) {
            failure = take(attribute);
        }
        match failure {
            Ok(()) => ControlFlow::Continue(()),
            Err(_) => ControlFlow::Break(()),
        }
    })?;
    failure.map(|()| all)
}

/// Reads the pickled attribute `info` of the group, and finds the dictionary for each member of the
/// compound in it. Returns `None` if the attribute does not exist.
fn read_info(group: &Group<'_>) -> Result<Option<PickledInfo>> {
    const INFO: &[u8] = b"info";
    let Some(info) = read_pickle(group, INFO)? else {
        return Ok(None);
    };
    if !matches!(
        info.get(info.root_value()),
        Some(PickleValue::Dictionary(_))
    ) {
        return Err(unsupported_attribute_error(INFO));
    }
    let mut members = HashMap::new();
    for &(name, value) in info.pairs(info.root_value()) {
        if let Some(name) = info.text(name) {
            group.budget.spend_on_name(name.len())?;
            members.insert(name.into_owned(), value);
        }
    }
    Ok(Some((info, members)))
}

/// Returns the names of the levels of a multi-level index; empty for any other index.
fn index_level_names(group: &Group<'_>) -> Result<Vec<Vec<u8>>> {
    const LEVELS: &[u8] = b"levels";
    let Some(levels) = read_pickle(group, LEVELS)? else {
        return Ok(Vec::new());
    };
    let names = read_labels(&levels, levels.root_value(), group.budget)?;
    names
        .map(|names| names.texts)
        .ok_or_else(|| unsupported_attribute_error(LEVELS))
}

/// Returns the text that marks a missing value in columns without an attribute `_nan_rep`. Returns
/// `None` if an attribute of the group says that each column with missing values has its own
/// `_nan_rep`, as pandas writes it since version 3.1.
fn missing_text(group: &Group<'_>) -> Result<Option<Arc<[u8]>>> {
    if read_flag(group, group.id, b"data_col_nan_rep")? == Some(true) {
        return Ok(None);
    }
    let content = attribute_content(group.container, group.id, b"nan_rep")?;
    let is_pickle = content.is_some_and(|content| may_be_pickle(&content.datatype));
    // A pickled Python `None` means that there is no such text.
    let text = group.attribute_text(b"nan_rep")?;
    let text = text.filter(|text| !is_pickle || text != b"N.");
    Ok(Some(text.unwrap_or_else(|| b"nan".to_vec()).into()))
}

/// Reads and parses the pickle in an attribute of the group; `None` if the attribute is absent, or
/// is not a text.
///
/// # Errors
/// `Unsupported` for an unsupported pickle, because the values or their names may have another
/// meaning.
fn read_pickle(group: &Group<'_>, attribute: &[u8]) -> Result<Option<Pickle>> {
    let Some(text) = group.attribute_text(attribute)? else {
        return Ok(None);
    };
    let pickle = parse_pickle(&text, group.budget)?;
    pickle
        .map(Some)
        .ok_or_else(|| unsupported_attribute_error(attribute))
}

fn unsupported_attribute_error(attribute: &[u8]) -> Error {
    let what = format!("attribute {}: the pickle in it", quote(attribute));
    Error::unsupported(what, None)
}
