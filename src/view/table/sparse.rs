//! Sparse matrices, as AnnData and 10x Genomics store them: a row for each stored value, with the row
//! and the column of the matrix that it stands in, both counted from 0.
//!
//! | the group says | it is |
//! |---|---|
//! | `encoding-type`, or `h5sparse_format` in older files | `csr_matrix`, `csc_matrix`; `csr`, `csc` |
//! | nothing, and is called `matrix`, with the members `barcodes` and `features` or `genes` | compressed by columns, as 10x Genomics writes it |
//!
//! The members are `data`, `indices`, and `indptr`, which says where the values of each row (or
//! column) end. What scipy refuses is refused: an `indptr` that [decreases or ends
//! elsewhere](super::runs::check), one of another length than the shape has, and places outside of
//! the shape.

use crate::error::{Error, Result};
use crate::model::attribute_value::integers;
use crate::view::table::column::{GroupTable, Part, Source};
use crate::view::table::group::{ENCODING, Group};

/// What `indptr` counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Compressed {
    Rows,
    Columns,
}

/// Whether the group is such a matrix.
///
/// # Errors
/// Fails if that cannot be found out.
pub(super) fn is_named(group: &Group<'_>) -> Result<bool> {
    Ok(compressed(group)?.is_some())
}

fn compressed(group: &Group<'_>) -> Result<Option<Compressed>> {
    let encoding = match group.text(ENCODING)? {
        Some(encoding) => Some(encoding),
        None => group.text(b"h5sparse_format")?,
    };
    match encoding.as_deref() {
        Some(b"csr_matrix" | b"csr") => return Ok(Some(Compressed::Rows)),
        Some(b"csc_matrix" | b"csc") => return Ok(Some(Compressed::Columns)),
        Some(_) => return Ok(None),
        None => {}
    }
    // Most groups have no `indptr`, and are asked for nothing else.
    for name in [&b"indptr"[..], b"indices", b"data", b"barcodes"] {
        if group.find(name)?.is_none() {
            return Ok(None);
        }
    }
    let has_features = group.find(b"features")?.is_some() || group.find(b"genes")?.is_some();
    Ok(has_features.then_some(Compressed::Columns))
}

/// The rows and the columns of the matrix: an attribute, or in files of 10x Genomics a member; `None`
/// where nothing says so.
fn shape(group: &Group<'_>) -> Result<Option<[u64; 2]>> {
    let mut numbers = None;
    for name in [&b"shape"[..], b"h5sparse_shape"] {
        numbers = integers(group.container, group.id, name)?;
        if numbers.is_some() {
            break;
        }
    }
    if numbers.is_none()
        && let Some(shape) = group.find(b"shape")?
        && let Some(part) = Part::of(&shape)?
    {
        numbers = group.numbers(&part)?;
    }
    let Some(numbers) = numbers else {
        return Ok(None);
    };
    let dims: Option<Vec<u64>> = numbers.iter().map(|&dim| dim.try_into().ok()).collect();
    match dims.as_deref() {
        Some(&[rows, columns]) => Ok(Some([rows, columns])),
        _ => Err(Error::corrupt(
            "table: a shape that is not of two dimensions",
            None,
        )),
    }
}

/// The table of a matrix: `row`, `col`, `value`.
///
/// # Errors
/// `Corrupt` where a member is not as it must be.
pub(super) fn table(group: &Group<'_>) -> Result<GroupTable> {
    let (values, indices) = (group.part(b"data")?, group.part(b"indices")?);
    let ends = group.part(b"indptr")?;
    if ends.rows() == 0 {
        return Err(Error::corrupt("table: an indptr without a beginning", None));
    }
    let rows = values.rows();
    let compressed = compressed(group)?.unwrap_or(Compressed::Rows);
    let others = match shape(group)? {
        Some([rows, columns]) => {
            let (runs, bound) = match compressed {
                Compressed::Rows => (rows, columns),
                Compressed::Columns => (columns, rows),
            };
            if ends.rows() - 1 != runs {
                let places = ends.rows();
                let what = format!("table: an indptr of {places} places for {runs} runs");
                return Err(Error::corrupt(what, None));
            }
            Source::Places {
                values: indices,
                bound,
            }
        }
        None => Source::Values(indices),
    };
    let runs = Source::Runs { ends, rows };
    let (row, column) = match compressed {
        Compressed::Columns => (others, runs),
        Compressed::Rows => (runs, others),
    };
    let mut table = GroupTable::of_rows(rows);
    table.push(b"row".to_vec(), row)?;
    table.push(b"col".to_vec(), column)?;
    table.push(b"value".to_vec(), Source::Values(values))?;
    Ok(table)
}
