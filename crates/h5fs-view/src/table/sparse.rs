//! Sparse matrices of AnnData, 10x Genomics and MATLAB. The table has one row for each stored value, with
//! its row and column in the matrix, counted from 0.
//!
//! | property of the group | matrix |
//! |---|---|
//! | `encoding-type`, or `h5sparse_format` in older files | `csr_matrix`, `csc_matrix`; `csr`, `csc` |
//! | `MATLAB_sparse` | compressed by columns, from MATLAB 7.3 |
//! | none; the name is `matrix`, with the members `barcodes` and `features` or `genes` | compressed by columns, from 10x Genomics |
//!
//! The members are `data`, `indices`, and `indptr`, which has the end of each row (or column). In
//! MATLAB, the last two are `ir` and `jc`, and a matrix without values, which has only `jc`, is no
//! table. As in scipy, an `indptr` that [decreases, or does not end with the number of
//! values](super::runs::check_run_ends), is an error. So is an `indptr` whose length does not match
//! the shape, and an index outside of the shape.

use h5fs_reader::error::{Error, Result};
use h5fs_reader::model::attribute_value::attribute_integers;

use crate::table::column::{ColumnSource, GroupTable, RowField};
use crate::table::group::{ENCODING, Group};

/// The axis of the matrix that `indptr` divides into runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CompressedAxis {
    Rows,
    Columns,
}

/// Returns whether the group is a sparse matrix.
///
/// # Errors
/// Fails if an attribute or a member cannot be read.
pub(super) fn is_table(group: &Group<'_>) -> Result<bool> {
    Ok(compressed_axis(group)?.is_some())
}

/// Name of the attribute with the number of rows of a sparse matrix of MATLAB.
const MATLAB_ROWS: &[u8] = b"MATLAB_sparse";

fn compressed_axis(group: &Group<'_>) -> Result<Option<CompressedAxis>> {
    if is_of_matlab(group)? {
        let has_values = group.find_member(b"data")?.is_some();
        return Ok(has_values.then_some(CompressedAxis::Columns));
    }
    let encoding = match group.attribute_text(ENCODING)? {
        Some(encoding) => Some(encoding),
        None => group.attribute_text(b"h5sparse_format")?,
    };
    match encoding.as_deref() {
        Some(b"csr_matrix" | b"csr") => return Ok(Some(CompressedAxis::Rows)),
        Some(b"csc_matrix" | b"csc") => return Ok(Some(CompressedAxis::Columns)),
        Some(_) => return Ok(None),
        None => {}
    }
    // `indptr` is checked first, because most groups do not have it.
    for name in [&b"indptr"[..], b"indices", b"data", b"barcodes"] {
        if group.find_member(name)?.is_none() {
            return Ok(None);
        }
    }
    let has_features =
        group.find_member(b"features")?.is_some() || group.find_member(b"genes")?.is_some();
    Ok(has_features.then_some(CompressedAxis::Columns))
}

fn is_of_matlab(group: &Group<'_>) -> Result<bool> {
    Ok(attribute_integers(group.container, group.id, MATLAB_ROWS)?.is_some())
}

/// Returns the number of rows of a matrix of MATLAB, and of its columns, whose ends are `ends`.
fn matlab_shape(group: &Group<'_>, ends: &RowField) -> Result<Option<[u64; 2]>> {
    let rows = attribute_integers(group.container, group.id, MATLAB_ROWS)?;
    let rows = rows.and_then(|rows| u64::try_from(*rows.first()?).ok());
    Ok(rows.map(|rows| [rows, ends.rows().saturating_sub(1)]))
}

/// Returns the number of rows and columns of the matrix. The file has them in an attribute, or, in
/// files of 10x Genomics, in a member `shape`. Returns `None` if the file has neither.
fn matrix_shape(group: &Group<'_>) -> Result<Option<[u64; 2]>> {
    let mut numbers = None;
    for name in [&b"shape"[..], b"h5sparse_shape"] {
        numbers = attribute_integers(group.container, group.id, name)?;
        if numbers.is_some() {
            break;
        }
    }
    if numbers.is_none()
        && let Some(shape) = group.find_member(b"shape")?
        && let Some(part) = RowField::from_node(&shape)?
    {
        numbers = group.read_integers(&part)?;
    }
    let Some(numbers) = numbers else {
        return Ok(None);
    };
    let dims: Option<Vec<u64>> = numbers.iter().map(|&dim| dim.try_into().ok()).collect();
    match dims.as_deref() {
        Some(&[rows, columns]) => Ok(Some([rows, columns])),
        _ => Err(Error::corrupt(
            "table: a shape without two dimensions",
            None,
        )),
    }
}

/// Returns the table of a matrix, with the columns `row`, `col` and `value`.
///
/// # Errors
/// `Corrupt` if a member is malformed.
pub(super) fn table(group: &Group<'_>) -> Result<GroupTable> {
    let is_of_matlab = is_of_matlab(group)?;
    let [indices, ends] = if is_of_matlab {
        [b"ir", &b"jc"[..]]
    } else {
        [b"indices", &b"indptr"[..]]
    };
    let (values, indices) = (group.member_field(b"data")?, group.member_field(indices)?);
    let ends = group.member_field(ends)?;
    if ends.rows() == 0 {
        return Err(Error::corrupt(
            "table: an indptr that does not begin with 0",
            None,
        ));
    }
    let rows = values.rows();
    let compressed = compressed_axis(group)?.unwrap_or(CompressedAxis::Rows);
    let shape = if is_of_matlab {
        matlab_shape(group, &ends)?
    } else {
        matrix_shape(group)?
    };
    let others = match shape {
        Some([rows, columns]) => {
            let (runs, bound) = match compressed {
                CompressedAxis::Rows => (rows, columns),
                CompressedAxis::Columns => (columns, rows),
            };
            if ends.rows() - 1 != runs {
                let places = ends.rows();
                let what = format!("table: an indptr of {places} positions for {runs} runs");
                return Err(Error::corrupt(what, None));
            }
            ColumnSource::BoundedIndices {
                values: indices,
                bound,
            }
        }
        None => ColumnSource::Values(indices),
    };
    let runs = ColumnSource::Runs { ends, rows };
    let (row, column) = match compressed {
        CompressedAxis::Columns => (others, runs),
        CompressedAxis::Rows => (runs, others),
    };
    let mut table = GroupTable::with_row_count(rows);
    table.push(b"row".to_vec(), row)?;
    table.push(b"col".to_vec(), column)?;
    table.push(b"value".to_vec(), ColumnSource::Values(values))?;
    Ok(table)
}
