//! pandas' `HDFStore`, format `table`: a dataset `table` of compounds in a group that says
//! `pandas_type` = `frame_table` or `series_table`.
//!
//! A member of the compound is the index, one column (a data column), or an array that holds the
//! columns of one type (a block). Its name with `_kind` at the end is an attribute of the dataset:
//! the columns' names, pickled; with `_dtype`, their type; with `_meta`, whether they are numbers
//! of categories, which stand in `meta/NAME/meta/table`. `info` of the group, pickled, knows time
//! zones and the name of the index, `non_index_axes` the order of the columns.

use crate::error::{Error, Result, quoted};
use crate::model::attribute_value;
use crate::model::datatype::Class;
use crate::view::table::column::{GroupTable, Missing, Part, Source, TimeUnit, sort_as};
use crate::view::table::group::{Group, missing, part_of};
use crate::view::table::pickle::{Index, Pickle};

/// The dataset with the rows.
const TABLE: &[u8] = b"table";

/// The table: the index, and the columns in the frame's order.
///
/// # Errors
/// `Corrupt` where the dataset is not as it must be; `Unsupported` for names that are not
/// understood.
pub(super) fn table(group: &Group<'_>) -> Result<GroupTable> {
    let frame = Frame::new(group)?;
    let mut columns = frame.columns()?;
    sort_as(&mut columns, &frame.order());
    let mut table = GroupTable::of_rows(frame.rows.rows());
    let levels = frame.levels();
    if levels.is_empty() {
        let index = frame.rows.member(b"index");
        let index = index.ok_or_else(|| missing(b"index", "is not there"))?;
        let kind = frame.attribute(b"index", b"_kind")?.unwrap_or_default();
        table.push(frame.index_name(), frame.source(index, b"index", &kind)?)?;
    }
    let (first, rest): (Vec<_>, Vec<_>) = columns
        .into_iter()
        .partition(|(name, _)| levels.contains(name));
    for (name, source) in first.into_iter().chain(rest) {
        table.push(name, source)?;
    }
    Ok(table)
}

/// The dataset with the rows, and what is known of it.
struct Frame<'a> {
    group: &'a Group<'a>,
    rows: Part,
    /// The group's `info`.
    info: Option<Pickle>,
    /// The text that stands for a missing one.
    missing: Vec<u8>,
}

impl<'a> Frame<'a> {
    fn new(group: &'a Group<'a>) -> Result<Self> {
        let node = group.member(TABLE)?;
        let info = group.text(b"info")?;
        Ok(Frame {
            group,
            rows: part_of(&node, TABLE)?,
            info: info.and_then(|info| Pickle::read(&info)),
            missing: group.text(b"nan_rep")?.unwrap_or_else(|| b"nan".to_vec()),
        })
    }

    /// All columns but the index, in the order of the file.
    fn columns(&self) -> Result<Vec<(Vec<u8>, Source)>> {
        let Class::Compound(members) = &self.rows.datatype.class else {
            return Err(missing(TABLE, "is not made of compounds"));
        };
        let mut columns = Vec::new();
        for member in members.iter().filter(|member| member.name != b"index") {
            let values = self.rows.at(member.offset.into(), member.datatype.clone());
            let parts = values.elements()?;
            let names = self.names(&member.name)?;
            if names.len() != parts.len() {
                return Err(missing(&member.name, "has another number of columns"));
            }
            let kind = self.attribute(&member.name, b"_dtype")?.unwrap_or_default();
            for (name, part) in names.into_iter().zip(parts) {
                columns.push((name, self.source(part, &member.name, &kind)?));
            }
        }
        Ok(columns)
    }

    /// The names of the columns in a member of the compound.
    fn names(&self, member: &[u8]) -> Result<Vec<Vec<u8>>> {
        let kind = self.attribute(member, b"_kind")?.unwrap_or_default();
        let names = Pickle::read(&kind).and_then(|names| names.texts(names.top()));
        names.ok_or_else(|| {
            let what = format!("names of the columns in {}", quoted(member));
            Error::unsupported(what, None)
        })
    }

    /// A column of the member called `member`, whose type is `kind`.
    fn source(&self, part: Part, member: &[u8], kind: &[u8]) -> Result<Source> {
        let meta = self.attribute(member, b"_meta")?;
        if meta.is_some_and(|meta| meta == b"category") {
            let names = self.categories(member)?;
            return Ok(Source::Categories { codes: part, names });
        }
        let is_utc = self.zone(member);
        Ok(source(part, kind, is_utc, &self.missing))
    }

    /// The categories of a member.
    fn categories(&self, member: &[u8]) -> Result<Part> {
        let mut group = *self.group;
        for name in [b"meta", member, b"meta"] {
            group = group.at(group.member(name)?.id);
        }
        let values = group.part(TABLE)?.member(b"values");
        values.ok_or_else(|| missing(b"values", "is not there"))
    }

    /// An attribute of the dataset, of a member of the compound.
    fn attribute(&self, member: &[u8], suffix: &[u8]) -> Result<Option<Vec<u8>>> {
        let name = [member, suffix].concat();
        attribute_value::text(self.group.container, self.rows.node, &name)
    }

    /// What `info` says of a member.
    fn known(&self, member: &[u8], key: &[u8]) -> Option<(&Pickle, Index)> {
        let info = self.info.as_ref()?;
        let of_member = info.value(info.top(), member)?;
        Some((info, info.value(of_member, key)?))
    }

    /// Whether a member is of instants of a time zone, which are stored in UTC.
    fn zone(&self, member: &[u8]) -> bool {
        let zone = self.known(member, b"tz");
        zone.is_some_and(|(info, zone)| !info.is_none(zone))
    }

    fn index_name(&self) -> Vec<u8> {
        let name = self.known(b"index", b"index_name");
        let name = name.and_then(|(info, name)| info.text(name));
        name.unwrap_or_else(|| b"index".to_vec())
    }

    /// The columns of the frame in their order, as far as that is known.
    fn order(&self) -> Vec<Vec<u8>> {
        let order = || {
            let axes = self.group.text(b"non_index_axes").ok()??;
            let axes = Pickle::read(&axes)?;
            let &[axis, ..] = axes.items(axes.top())? else {
                return None;
            };
            let &[_, names] = axes.items(axis)? else {
                return None;
            };
            axes.texts(names)
        };
        order().unwrap_or_default()
    }

    /// The columns that are the levels of an index of several.
    fn levels(&self) -> Vec<Vec<u8>> {
        let levels = || {
            let levels = self.group.text(b"levels").ok()??;
            let levels = Pickle::read(&levels)?;
            levels.texts(levels.top())
        };
        levels().unwrap_or_default()
    }
}

/// The values of a part whose type pandas calls `kind`.
pub(super) fn source(values: Part, kind: &[u8], is_utc: bool, missing: &[u8]) -> Source {
    let class = match kind.split(|&byte| byte == b'[').next() {
        Some(class) => class,
        None => kind,
    };
    match (class, &values.datatype.class) {
        (b"datetime64", Class::Integer { .. }) => Source::Instants {
            unit: time_unit(kind),
            values,
            is_utc,
        },
        (b"timedelta64", Class::Integer { .. }) => Source::Durations {
            unit: time_unit(kind),
            values,
        },
        (b"bool", _) | (_, Class::Bitfield { .. }) if values.datatype.size == 1 => {
            Source::Values(values.taken_as(Class::Bool))
        }
        (_, Class::String { .. }) => Source::Masked {
            values,
            missing: Missing::Text(missing.to_vec()),
        },
        _ => Source::Values(values),
    }
}

/// The unit in brackets, nanoseconds without any.
fn time_unit(kind: &[u8]) -> TimeUnit {
    let is = |unit: &[u8]| kind.windows(unit.len()).any(|part| part == unit);
    let of_second = match () {
        () if is(b"[s") => 1,
        () if is(b"[ms") => 1000,
        () if is(b"[us") => 1_000_000,
        () => return TimeUnit::NANOSECOND,
    };
    TimeUnit { of_second }
}
