//! The long table of a variable: a row for each value, with a column for each coordinate.
//!
//! The columns are those of xarray's `to_dataframe`. First come the dimensions, then the
//! coordinates of dimensions for which the selection has a single index, then all other
//! coordinates, then the variable. For a dimension without a coordinate variable, the column has
//! the row's index in the dimension, and is named like the dimension's scale.

use std::ops::Range;
use std::sync::Arc;

use h5fs_conventions::dimensions::last_name;
use h5fs_reader::array::Engine;
use h5fs_reader::error::{Error, Result};
use h5fs_reader::model::selector::Selector;
use h5fs_reader::model::{Array, Container, NodeId};

use crate::cf::column::{DecodedColumn, RowNumberColumn};
use crate::cf::coordinates::{Coordinate, CoordinateFinder};
use crate::cf::group_variables::GroupVariable;
use crate::cf::row_mapping::VariableRows;
use crate::cf::siblings::GroupVariableCache;
use crate::cf::variable::Variable;
use crate::csv::CsvTable;
use crate::csv::fields::{ColumnReader, ColumnsFromRow};
use crate::elements::Elements;
use crate::json::SharedPaths;

/// The file that contains a variable, and the functions that find and open other objects of the
/// file.
pub struct VariableContext<'a> {
    /// The objects of the file.
    pub container: Arc<dyn Container>,
    /// Finds the path of an object.
    pub paths: SharedPaths,
    /// A function that opens all elements of an array.
    pub open: &'a dyn Fn(NodeId, &Arc<Array>) -> Result<Elements>,
}

/// The columns of a long table, and the number of its rows.
pub struct LongTable {
    /// The number of rows.
    pub rows: u64,
    /// The columns, with the coordinates first.
    pub columns: Vec<LongColumn>,
}

/// A column of a long table.
pub enum LongColumn {
    /// A column with the decoded elements of a variable or coordinate.
    Decoded(Box<DecodedColumn>),
    /// A column with the row's index in a dimension without a coordinate variable.
    RowNumbers(RowNumberColumn),
}

/// Returns the columns of the variable at `path`, or of a selection from it. `stored` are the
/// selected elements.
///
/// # Errors
/// `NotFound` if the selection is not within the variable. Fails if a coordinate cannot be read.
pub fn variable_columns(
    variable: Variable,
    path: &[u8],
    stored: Elements,
    selector: Option<&Selector>,
    around: &VariableContext<'_>,
) -> Result<LongTable> {
    let rows = VariableRows::new(&variable, selector)?;
    let mut columns = coordinate_columns(&variable, path, &rows, around)?;
    columns.push(value_column(variable, last_name(path), stored, around)?);
    Ok(LongTable {
        rows: rows.count()?,
        columns,
    })
}

/// Returns the columns of a group's `variables`, which have the same axes. `path` is the path of
/// the group.
///
/// # Errors
/// `NotFound` if `variables` is empty. Fails if a variable or a coordinate cannot be read.
pub fn group_columns(
    variables: Vec<GroupVariable>,
    path: &[u8],
    around: &VariableContext<'_>,
) -> Result<LongTable> {
    let first = variables.first().ok_or(Error::NotFound)?;
    let rows = VariableRows::new(&first.variable, None)?;
    let path = [path, b"/", &first.name].concat();
    let mut columns = coordinate_columns(&first.variable, &path, &rows, around)?;
    for GroupVariable { name, variable, .. } in variables {
        let stored = (around.open)(variable.node, &variable.array)?;
        columns.push(value_column(variable, &name, stored, around)?);
    }
    Ok(LongTable {
        rows: rows.count()?,
        columns,
    })
}

/// Returns the column of a variable's values.
fn value_column(
    variable: Variable,
    name: &[u8],
    stored: Elements,
    around: &VariableContext<'_>,
) -> Result<LongColumn> {
    // netCDF adds this prefix to a variable that is named like a dimension, but is not its
    // coordinate.
    let name = name.strip_prefix(b"_nc4_non_coord_").unwrap_or(name);
    let (container, paths) = (&around.container, &around.paths);
    let name = name.to_vec();
    let values = DecodedColumn::new(name, stored, variable.decoding, None, container, paths)?;
    Ok(LongColumn::Decoded(Box::new(values)))
}

/// Creates the CSV table with the rows `shown` of `long`. If the table has too many values to count
/// its bytes, and all columns are numbers and times, they have a fixed width.
///
/// # Errors
/// `Limit` for names that are too long.
pub fn create_csv_table(
    long: LongTable,
    shown: Range<u64>,
    engine: Arc<Engine>,
) -> Result<CsvTable> {
    let first = shown.start;
    let fields = long.columns.into_iter().map(|column| match column {
        LongColumn::Decoded(column) => Box::new(ColumnsFromRow {
            fields: *column,
            first,
        }) as Box<dyn ColumnReader>,
        LongColumn::RowNumbers(fields) => Box::new(ColumnsFromRow { fields, first }),
    });
    let count = shown.end.saturating_sub(first);
    Ok(CsvTable::with_header(fields.collect(), count, engine)?.pad_if_long())
}

/// Returns the columns of the variable's coordinates: first those of the row dimensions, then all
/// others.
fn coordinate_columns(
    variable: &Variable,
    path: &[u8],
    rows: &VariableRows,
    around: &VariableContext<'_>,
) -> Result<Vec<LongColumn>> {
    let finder = CoordinateFinder {
        container: &*around.container,
        paths: &around.paths,
        node: variable.node,
        scales: &variable.scales,
        dims: &variable.dims(),
        path,
        siblings: &GroupVariableCache::default(),
    };
    let mut columns = Vec::new();
    let mut taken = Vec::new();
    for (number, &dimension) in rows.dimensions.iter().enumerate() {
        if variable.scales.get(dimension) == Some(&Some(variable.node)) {
            continue;
        }
        columns.push(match finder.dimension_coordinate(dimension)? {
            Some(coordinate) => {
                taken.push(coordinate.variable.node);
                coordinate_column(coordinate, rows, around)?
            }
            None => LongColumn::RowNumbers(RowNumberColumn {
                name: [finder.dimension_name(dimension)?],
                row_mapping: rows.position_mapping(number),
                padding: None,
            }),
        });
    }
    let all = 0..variable.scales.len();
    let dropped: Vec<usize> = all.filter(|own| !rows.dimensions.contains(own)).collect();
    for coordinate in finder.other_coordinates(&dropped, &taken)? {
        columns.push(coordinate_column(coordinate, rows, around)?);
    }
    Ok(columns)
}

fn coordinate_column(
    coordinate: Coordinate,
    rows: &VariableRows,
    around: &VariableContext<'_>,
) -> Result<LongColumn> {
    let variable = coordinate.variable;
    let stored = (around.open)(variable.node, &variable.array)?;
    let place = rows.coordinate_mapping(&coordinate.dimensions, &variable.dims());
    let (container, paths) = (&around.container, &around.paths);
    let column = DecodedColumn::new(
        coordinate.name,
        stored,
        variable.decoding,
        Some(place),
        container,
        paths,
    )?;
    Ok(LongColumn::Decoded(Box::new(column)))
}
