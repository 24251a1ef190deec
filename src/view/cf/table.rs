//! The long table of a variable: a row for each value, with a column for each coordinate.
//!
//! The columns are those of xarray's `to_dataframe`. First come the dimensions, then the
//! coordinates of dimensions with an integer index and all other coordinates, then the variable. A
//! dimension without a coordinate variable has the index in the dimension, and the name of its
//! scale.

use std::ops::Range;
use std::sync::Arc;

use h5fs_reader::array::Engine;
use h5fs_reader::error::{Error, Result};
use h5fs_reader::model::selector::Selector;
use h5fs_reader::model::{Array, Container, NodeId};

use crate::view::cf::column::{DecodedColumn, RowNumberColumn};
use crate::view::cf::coordinates::{Coordinate, Finder};
use crate::view::cf::group_variables::GroupVariable;
use crate::view::cf::row_mapping::VariableRows;
use crate::view::cf::siblings::Siblings;
use crate::view::cf::variable::Variable;
use crate::view::csv::CsvTable;
use crate::view::csv::fields::{Fields, ShiftedFields};
use crate::view::elements::Elements;
use crate::view::elements::dimensions::last_name;
use crate::view::texts::json::SharedPaths;

/// The file that contains a variable, and the functions that find and open its other objects.
pub(crate) struct Surroundings<'a> {
    pub(crate) container: Arc<dyn Container>,
    pub(crate) paths: SharedPaths,
    /// A function that opens all elements of an array.
    pub(crate) open: &'a dyn Fn(NodeId, &Arc<Array>) -> Result<Elements>,
}

/// The columns of a long table, and the number of its rows.
pub(crate) struct LongTable {
    pub(crate) rows: u64,
    pub(crate) columns: Vec<LongColumn>,
}

/// A column of a long table.
pub(crate) enum LongColumn {
    /// A column with the decoded elements of a variable or coordinate.
    Values(Box<DecodedColumn>),
    /// A column with the row's index in a dimension without a coordinate variable.
    Numbers(RowNumberColumn),
}

/// Returns the columns of the variable at `path`, or of a selection from it. `stored` are the
/// selected elements.
///
/// # Errors
/// `NotFound` if the variable does not have the part. Fails if a coordinate cannot be read.
pub(crate) fn columns(
    variable: Variable,
    path: &[u8],
    stored: Elements,
    selector: Option<&Selector>,
    around: &Surroundings<'_>,
) -> Result<LongTable> {
    let rows = VariableRows::new(&variable, selector)?;
    let mut columns = coordinates(&variable, path, &rows, around)?;
    columns.push(values(variable, last_name(path), stored, around)?);
    Ok(LongTable {
        rows: rows.count()?,
        columns,
    })
}

/// Returns the columns of a group's `variables`, which have the same axes. `path` is the path of
/// the group.
///
/// # Errors
/// `NotFound` without variables. Fails if a variable or a coordinate cannot be read.
pub(crate) fn side_by_side(
    variables: Vec<GroupVariable>,
    path: &[u8],
    around: &Surroundings<'_>,
) -> Result<LongTable> {
    let first = variables.first().ok_or(Error::NotFound)?;
    let rows = VariableRows::new(&first.variable, None)?;
    let path = [path, b"/", &first.name].concat();
    let mut columns = coordinates(&first.variable, &path, &rows, around)?;
    for GroupVariable { name, variable, .. } in variables {
        let stored = (around.open)(variable.node, &variable.array)?;
        columns.push(values(variable, &name, stored, around)?);
    }
    Ok(LongTable {
        rows: rows.count()?,
        columns,
    })
}

/// Returns the column of a variable's values.
fn values(
    variable: Variable,
    name: &[u8],
    stored: Elements,
    around: &Surroundings<'_>,
) -> Result<LongColumn> {
    // netCDF adds this prefix to a variable that is named like a dimension, but is not its
    // coordinate.
    let name = name.strip_prefix(b"_nc4_non_coord_").unwrap_or(name);
    let (container, paths) = (&around.container, &around.paths);
    let name = name.to_vec();
    let values = DecodedColumn::new(name, stored, variable.decoding, None, container, paths)?;
    Ok(LongColumn::Values(Box::new(values)))
}

/// Creates the CSV table of the rows `shown`. If all columns are numbers and times, a long table
/// has columns of fixed width.
///
/// # Errors
/// `Limit` for names that are too long.
pub(crate) fn table(long: LongTable, shown: Range<u64>, engine: Arc<Engine>) -> Result<CsvTable> {
    let first = shown.start;
    let fields = long.columns.into_iter().map(|column| match column {
        LongColumn::Values(column) => Box::new(ShiftedFields {
            fields: *column,
            first,
        }) as Box<dyn Fields>,
        LongColumn::Numbers(fields) => Box::new(ShiftedFields { fields, first }),
    });
    let count = shown.end.saturating_sub(first);
    Ok(CsvTable::with_header(fields.collect(), count, engine)?.padded_if_long())
}

/// Returns the columns of the coordinates.
fn coordinates(
    variable: &Variable,
    path: &[u8],
    rows: &VariableRows,
    around: &Surroundings<'_>,
) -> Result<Vec<LongColumn>> {
    let finder = Finder {
        container: &*around.container,
        paths: &around.paths,
        variable,
        path,
        siblings: &Siblings::default(),
    };
    let mut columns = Vec::new();
    let mut taken = Vec::new();
    for (number, &dimension) in rows.dimensions.iter().enumerate() {
        if variable.scales.get(dimension) == Some(&Some(variable.node)) {
            continue;
        }
        columns.push(match finder.of_dimension(dimension)? {
            Some(coordinate) => {
                taken.push(coordinate.variable.node);
                column(coordinate, rows, around)?
            }
            None => LongColumn::Numbers(RowNumberColumn {
                name: [finder.name(dimension)?],
                place: rows.number(number),
                padding: None,
            }),
        });
    }
    let all = 0..variable.scales.len();
    let dropped: Vec<usize> = all.filter(|own| !rows.dimensions.contains(own)).collect();
    for coordinate in finder.other_coordinates(&dropped, &taken)? {
        columns.push(column(coordinate, rows, around)?);
    }
    Ok(columns)
}

fn column(
    coordinate: Coordinate,
    rows: &VariableRows,
    around: &Surroundings<'_>,
) -> Result<LongColumn> {
    let variable = coordinate.variable;
    let stored = (around.open)(variable.node, &variable.array)?;
    let place = rows.map_to(&coordinate.dimensions, &variable.dims());
    let (container, paths) = (&around.container, &around.paths);
    let column = DecodedColumn::new(
        coordinate.name,
        stored,
        variable.decoding,
        Some(place),
        container,
        paths,
    )?;
    Ok(LongColumn::Values(Box::new(column)))
}
