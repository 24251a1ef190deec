//! What a convention says of an array: its rows, and how its elements depend on other arrays.

use serde::{Deserialize, Serialize};

use crate::joined::paths::Path;
use crate::model::attribute::AttributeContent;

/// What the conventions of AnnData, pandas and HDMF say of an array; the default says nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(in crate::joined) struct Convention {
    /// The group or column whose arrays have a meaning together only.
    pub(in crate::joined) whole: Option<Path>,
    pub(in crate::joined) rows: Rows,
    /// The array whose first dimension has the rows that this one has.
    pub(in crate::joined) table: Option<Path>,
    pub(in crate::joined) relation: Relation,
    /// The array with the labels of the columns of a matrix.
    pub(in crate::joined) labels: Option<Path>,
    /// The attribute that refers to another array or group, and the path of that.
    pub(in crate::joined) reference: Option<(Vec<u8>, Path)>,
    /// Attributes without which the elements cannot be understood.
    pub(in crate::joined) terms: Vec<(Vec<u8>, AttributeContent)>,
}

/// What the first dimension of an array is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(in crate::joined) enum Rows {
    #[default]
    Unknown,
    /// The rows of a table: those of the files follow one another.
    Following,
    /// One more than the rows of a matrix. The first element of every later file is left out.
    FollowingButFirst,
    /// No rows: the arrays of all files must be the same.
    Fixed,
}

/// How the elements of an array depend on another array.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(in crate::joined) enum Relation {
    #[default]
    None,
    /// Numbers of rows of this array (HDMF `DynamicTableRegion`).
    RowsOf(Path),
    /// Each element is where a list of elements of this array ends (HDMF `VectorIndex`).
    EndsIn(Path),
    /// `indptr` of a matrix of so many columns, whose entries this array has.
    PointsTo { entries: Path, columns: Option<u64> },
    /// Numbers of the names in this array.
    Codes { names: Path, is_ordered: bool },
    /// Records, of which these fields are numbers of the names in these arrays.
    Fields(Vec<(Vec<u8>, Path)>),
    /// Names that other arrays have the numbers of.
    Names,
    /// What cannot be joined, and why.
    Refused(String),
    /// The same of what is of no use in another file. The whole that it belongs to is reported.
    Unneeded(String),
}

/// A group that is a table.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(in crate::joined) struct Table {
    pub(in crate::joined) group: Path,
    /// The array whose first dimension is the rows.
    pub(in crate::joined) rows: Path,
    /// The attribute that lists the columns, and what it lists.
    pub(in crate::joined) columns: Option<(Vec<u8>, Vec<Vec<u8>>)>,
    /// Whether a column says which file each row is from.
    pub(in crate::joined) has_files: bool,
}

impl Relation {
    /// The arrays that the elements depend on.
    pub(in crate::joined) fn targets(&self) -> Vec<&Path> {
        match self {
            Relation::RowsOf(path)
            | Relation::EndsIn(path)
            | Relation::PointsTo { entries: path, .. }
            | Relation::Codes { names: path, .. } => vec![path],
            Relation::Fields(fields) => fields.iter().map(|(_, names)| names).collect(),
            _ => Vec::new(),
        }
    }

    /// Whether the elements must not decrease, and end at the length of another array.
    pub(in crate::joined) fn is_index(&self) -> bool {
        matches!(self, Relation::EndsIn(_) | Relation::PointsTo { .. })
    }
}

impl Convention {
    /// That of rows of a table.
    pub(super) fn rows() -> Self {
        Convention {
            rows: Rows::Following,
            ..Convention::default()
        }
    }

    /// That of names, which other arrays have the numbers of.
    pub(super) fn names(whole: Option<Path>) -> Self {
        Convention {
            whole,
            rows: Rows::Fixed,
            relation: Relation::Names,
            ..Convention::default()
        }
    }

    pub(super) fn refused(reason: impl Into<String>) -> Self {
        Convention {
            relation: Relation::Refused(reason.into()),
            ..Convention::default()
        }
    }

    /// The same of an array that has no rows.
    pub(super) fn fixed(self) -> Self {
        Convention {
            rows: Rows::Fixed,
            ..self
        }
    }

    /// The same as a part of a whole.
    pub(super) fn of(self, whole: &Path) -> Self {
        Convention {
            whole: Some(Path::clone(whole)),
            ..self
        }
    }

    pub(super) fn with(self, relation: Relation) -> Self {
        Convention { relation, ..self }
    }

    /// The same of an array with as many rows as the array at `table`.
    pub(super) fn in_table(self, table: Option<Path>) -> Self {
        Convention { table, ..self }
    }

    /// The same with an attribute that refers to what is at `path`.
    pub(super) fn referring(self, attribute: &[u8], path: &Path) -> Self {
        Convention {
            reference: Some((attribute.to_vec(), Path::clone(path))),
            ..self
        }
    }
}
