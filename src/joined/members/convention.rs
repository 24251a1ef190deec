//! The rules of a convention for an array: its rows, and the dependence of its elements on other
//! arrays.

use h5fs_reader::memory::allocation_size;
use h5fs_reader::model::attribute::AttributeContent;
use h5fs_reader::wire::Count;
use serde::{Deserialize, Serialize};

use crate::joined::paths::Path;

/// The rules of AnnData, pandas or HDMF for an array. The default is empty.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(in crate::joined) struct Convention {
    /// The group or column whose arrays are meaningful only together.
    pub(in crate::joined) whole: Option<Path>,
    pub(in crate::joined) rows: FirstDimension,
    /// The array whose first dimension has the same rows.
    pub(in crate::joined) table: Option<Path>,
    pub(in crate::joined) relation: Relation,
    /// The array with the labels of the columns of a matrix.
    pub(in crate::joined) labels: Option<Path>,
    /// The attribute that refers to another array or group, and the path of its target.
    pub(in crate::joined) reference: Option<(Vec<u8>, Path)>,
    /// Attributes that are necessary to interpret the elements.
    pub(in crate::joined) terms: Vec<(Vec<u8>, AttributeContent)>,
}

/// The meaning of an array's first dimension.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(in crate::joined) enum FirstDimension {
    #[default]
    Unknown,
    /// Rows of a table. The rows of all files are concatenated.
    Following,
    /// One more than the rows of a matrix. The first element is omitted in every file except the
    /// first.
    FollowingButFirst,
    /// No rows: the arrays of all files must be equal.
    Fixed,
}

/// The dependence of an array's elements on another array.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(in crate::joined) enum Relation {
    #[default]
    None,
    /// Row numbers of this array (HDMF `DynamicTableRegion`).
    RowsOf(Path),
    /// Each element is the end of a list in this array (HDMF `VectorIndex`).
    EndsIn(Path),
    /// The array `indptr` of a sparse matrix with this number of columns. `entries` is the array of
    /// the matrix's entries.
    PointsTo { entries: Path, columns: Option<u64> },
    /// Numbers of names in this array.
    Codes { names: Path, is_ordered: bool },
    /// Records with these fields. Each field contains numbers of names in its array.
    Fields(Vec<CodedField>),
    /// Names that other arrays refer to by number.
    Names,
    /// The array cannot be joined, for this reason.
    Refused(String),
    /// The array cannot be joined, for this reason, and is useless in other files. The group that
    /// contains it is reported instead.
    Unneeded(String),
}

/// A field of records whose values are numbers of the names in an array.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(in crate::joined) struct CodedField {
    pub(in crate::joined) name: Vec<u8>,
    pub(in crate::joined) names: Path,
    pub(in crate::joined) is_ordered: bool,
}

/// A group that is a table.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(in crate::joined) struct MemberTable {
    pub(in crate::joined) group: Path,
    /// The array whose first dimension has the rows.
    pub(in crate::joined) rows: Path,
    /// The attribute that lists the columns, and its names.
    pub(in crate::joined) columns: Option<(Vec<u8>, Vec<Vec<u8>>)>,
    /// Whether the joined table has a column with the file of each row.
    pub(in crate::joined) has_files: bool,
}

impl Relation {
    /// Returns the arrays on which the elements depend.
    pub(in crate::joined) fn targets(&self) -> Vec<&Path> {
        match self {
            Relation::RowsOf(path)
            | Relation::EndsIn(path)
            | Relation::PointsTo { entries: path, .. }
            | Relation::Codes { names: path, .. } => vec![path],
            Relation::Fields(fields) => fields.iter().map(|field| &field.names).collect(),
            _ => Vec::new(),
        }
    }

    /// Returns whether the elements must not decrease, and must end at the length of another array.
    pub(in crate::joined) fn is_index(&self) -> bool {
        matches!(self, Relation::EndsIn(_) | Relation::PointsTo { .. })
    }
}

impl CodedField {
    fn weight(&self) -> u64 {
        u64::sum([size_of::<Self>(), self.name.len(), self.names.len()].map(allocation_size))
    }
}

impl Relation {
    /// Bytes of memory that it takes besides its own size, about.
    fn weight(&self) -> u64 {
        match self {
            Relation::Fields(fields) => u64::sum(fields.iter().map(CodedField::weight)),
            Relation::Refused(reason) | Relation::Unneeded(reason) => allocation_size(reason.len()),
            other => u64::sum(
                other
                    .targets()
                    .into_iter()
                    .map(|path| allocation_size(path.len())),
            ),
        }
    }
}

impl Convention {
    /// Bytes of memory that it takes besides its own size, about.
    pub(super) fn weight(&self) -> u64 {
        let paths = [&self.whole, &self.table, &self.labels]
            .into_iter()
            .flatten();
        let paths = paths.map(|path| allocation_size(path.len()));
        let reference = self.reference.iter();
        let reference = reference
            .map(|(name, path)| allocation_size(name.len()).with_more(allocation_size(path.len())));
        let terms = self.terms.iter().map(|(name, content)| {
            let own = size_of::<(Vec<u8>, AttributeContent)>();
            let parts = [own, name.len(), content.elements.len()].map(allocation_size);
            content.datatype.weight().with_more(u64::sum(parts))
        });
        let parts = paths.chain(reference).chain(terms);
        u64::sum(parts).with_more(self.relation.weight())
    }

    /// Creates the rules for an array with rows of a table.
    pub(super) fn rows() -> Self {
        Convention {
            rows: FirstDimension::Following,
            ..Convention::default()
        }
    }

    /// Creates the rules for names that other arrays refer to by number.
    pub(super) fn names(whole: Option<Path>) -> Self {
        Convention {
            whole,
            rows: FirstDimension::Fixed,
            relation: Relation::Names,
            ..Convention::default()
        }
    }

    pub(super) fn refuse(reason: impl Into<String>) -> Self {
        Convention {
            relation: Relation::Refused(reason.into()),
            ..Convention::default()
        }
    }

    /// Returns these rules for an array without rows.
    pub(super) fn fixed(self) -> Self {
        Convention {
            rows: FirstDimension::Fixed,
            ..self
        }
    }

    /// Returns these rules for an array of the given group.
    pub(super) fn within(self, whole: &Path) -> Self {
        Convention {
            whole: Some(Path::clone(whole)),
            ..self
        }
    }

    pub(super) fn add_relation(self, relation: Relation) -> Self {
        Convention { relation, ..self }
    }

    /// Returns these rules for an array with as many rows as the array at `table`.
    pub(super) fn in_table(self, table: Option<Path>) -> Self {
        Convention { table, ..self }
    }

    /// Returns these rules with an attribute that refers to the object at `path`.
    pub(super) fn referring(self, attribute: &[u8], path: &Path) -> Self {
        Convention {
            reference: Some((attribute.to_vec(), Path::clone(path))),
            ..self
        }
    }
}
