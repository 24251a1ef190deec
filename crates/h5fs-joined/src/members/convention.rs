//! The rules of a convention (AnnData, pandas or HDMF) for an array: which of its elements are
//! rows, and which other arrays its elements depend on.

use h5fs_reader::memory::allocation_size;
use h5fs_reader::model::attribute::AttributeContent;
use h5fs_reader::wire::Count;
use serde::{Deserialize, Serialize};

use crate::paths::Path;

/// The rules of AnnData, pandas or HDMF for an array. The default contains no rules.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct ConventionRules {
    /// The group or column whose arrays are meaningful only together. If one of these arrays is
    /// omitted, all of them are.
    pub(crate) whole: Option<Path>,
    pub(crate) rows: FirstDimensionMeaning,
    /// The array whose first dimension has the rows of this array's table.
    pub(crate) table: Option<Path>,
    pub(crate) relation: ElementRelation,
    /// The array with the column labels of a matrix.
    pub(crate) labels: Option<Path>,
    /// The name of an attribute that refers to another array or group, and the path of this target.
    pub(crate) reference: Option<(Vec<u8>, Path)>,
    /// Attributes that are necessary to interpret the elements, so their values must be equal in
    /// all files.
    pub(crate) terms: Vec<(Vec<u8>, AttributeContent)>,
}

/// The meaning of the elements along an array's first dimension.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) enum FirstDimensionMeaning {
    #[default]
    Unknown,
    /// Rows of a table. The rows of all files are concatenated.
    TableRows,
    /// Ends of the rows of a sparse matrix (the array `indptr` of csr): one element more than the
    /// matrix has rows. The first element, 0, is omitted in every file except the first.
    RowEnds,
    /// No rows: the arrays of all files must be equal.
    EqualInAllFiles,
}

/// The dependence of an array's elements on the elements of another array.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) enum ElementRelation {
    #[default]
    None,
    /// The elements are row numbers of this array (HDMF `DynamicTableRegion`).
    RowsOf(Path),
    /// Each element is the end of a list in this array (HDMF `VectorIndex`).
    ListEndsIn(Path),
    /// The array is the `indptr` of a sparse matrix with this number of columns. `entries` is an
    /// array with one element for each stored value of the matrix.
    SparseRowEnds { entries: Path, columns: Option<u64> },
    /// Each element is the number of a name in the array `names`. `is_ordered` says whether the
    /// names are ordered categories.
    Codes { names: Path, is_ordered: bool },
    /// The elements are records. Each of these fields contains numbers of names in the field's own
    /// array.
    Fields(Vec<CodedField>),
    /// The elements are names. Other arrays refer to the names by number.
    Names,
    /// The array cannot be joined, for this reason.
    Refused(String),
    /// The array cannot be joined, for this reason, and is useless without the other arrays of its
    /// group. The group is reported instead of the array.
    RefusedWithGroup(String),
}

/// A field of records whose values are numbers of the names in an array.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct CodedField {
    pub(crate) name: Vec<u8>,
    pub(crate) names: Path,
    pub(crate) is_ordered: bool,
}

/// A group that is a table according to AnnData, pandas or HDMF.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct MemberTable {
    pub(crate) group: Path,
    /// The array whose first dimension has the table's rows.
    pub(crate) rows: Path,
    /// The name of the group's attribute that lists the columns, and the names of the columns.
    pub(crate) columns: Option<(Vec<u8>, Vec<Vec<u8>>)>,
    /// Whether the joined table has a column with the name of each row's file.
    pub(crate) has_files: bool,
}

impl ElementRelation {
    /// Returns the paths of the arrays that the elements depend on.
    pub(crate) fn target_arrays(&self) -> Vec<&Path> {
        match self {
            ElementRelation::RowsOf(path)
            | ElementRelation::ListEndsIn(path)
            | ElementRelation::SparseRowEnds { entries: path, .. }
            | ElementRelation::Codes { names: path, .. } => vec![path],
            ElementRelation::Fields(fields) => fields.iter().map(|field| &field.names).collect(),
            _ => Vec::new(),
        }
    }

    /// Returns whether the elements must not decrease, and must end at the length of another array.
    pub(crate) fn is_index(&self) -> bool {
        matches!(
            self,
            ElementRelation::ListEndsIn(_) | ElementRelation::SparseRowEnds { .. }
        )
    }
}

impl CodedField {
    fn weight(&self) -> u64 {
        u64::sum([size_of::<Self>(), self.name.len(), self.names.len()].map(allocation_size))
    }
}

impl ElementRelation {
    /// Returns the approximate memory that the relation refers to in bytes, in addition to its own
    /// size.
    fn weight(&self) -> u64 {
        match self {
            ElementRelation::Fields(fields) => u64::sum(fields.iter().map(CodedField::weight)),
            ElementRelation::Refused(reason) | ElementRelation::RefusedWithGroup(reason) => {
                allocation_size(reason.len())
            }
            other => u64::sum(
                other
                    .target_arrays()
                    .into_iter()
                    .map(|path| allocation_size(path.len())),
            ),
        }
    }
}

impl ConventionRules {
    /// Returns the approximate memory that the rules refer to in bytes, in addition to their own
    /// size.
    pub(super) fn weight(&self) -> u64 {
        let paths = [&self.whole, &self.table, &self.labels]
            .into_iter()
            .flatten();
        let paths = paths.map(|path| allocation_size(path.len()));
        let reference = self.reference.iter();
        let reference = reference
            .map(|(name, path)| allocation_size(name.len()).plus(allocation_size(path.len())));
        let terms = self.terms.iter().map(|(name, content)| {
            let own = size_of::<(Vec<u8>, AttributeContent)>();
            let parts = [own, name.len(), content.elements.len()].map(allocation_size);
            content.datatype.weight().plus(u64::sum(parts))
        });
        let parts = paths.chain(reference).chain(terms);
        u64::sum(parts).plus(self.relation.weight())
    }

    /// Creates the rules for an array with rows of a table.
    pub(super) fn new_rows() -> Self {
        ConventionRules {
            rows: FirstDimensionMeaning::TableRows,
            ..ConventionRules::default()
        }
    }

    /// Creates the rules for an array of names that other arrays refer to by number.
    pub(super) fn new_names(whole: Option<Path>) -> Self {
        ConventionRules {
            whole,
            rows: FirstDimensionMeaning::EqualInAllFiles,
            relation: ElementRelation::Names,
            ..ConventionRules::default()
        }
    }

    pub(super) fn new_refused(reason: impl Into<String>) -> Self {
        ConventionRules {
            relation: ElementRelation::Refused(reason.into()),
            ..ConventionRules::default()
        }
    }

    /// Returns the rules with a first dimension that has no rows: the arrays of all files must be
    /// equal.
    pub(super) fn with_first_dimension_equal(self) -> Self {
        ConventionRules {
            rows: FirstDimensionMeaning::EqualInAllFiles,
            ..self
        }
    }

    /// Returns the rules with `whole` as the group whose arrays are meaningful only together.
    pub(super) fn with_required_group(self, whole: &Path) -> Self {
        ConventionRules {
            whole: Some(Path::clone(whole)),
            ..self
        }
    }

    pub(super) fn with_relation(self, relation: ElementRelation) -> Self {
        ConventionRules { relation, ..self }
    }

    /// Returns the rules with `table` as the array that has the same rows.
    pub(super) fn with_table_rows(self, table: Option<Path>) -> Self {
        ConventionRules { table, ..self }
    }

    /// Returns the rules with the attribute `attribute`, which refers to the object at `path`.
    pub(super) fn with_reference(self, attribute: &[u8], path: &Path) -> Self {
        ConventionRules {
            reference: Some((attribute.to_vec(), Path::clone(path))),
            ..self
        }
    }
}
