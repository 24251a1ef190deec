//! The fields of the elements of an array.
//!
//! | array | table |
//! |---|---|
//! | of compounds | a row for each element, a field for each member |
//! | of other elements, scalar or of one dimension | a row for each element, one field |
//! | of two dimensions | a row for each index of the first, a field for each index of the second: `0`, `1` … |
//! | of more dimensions | not a table |
//!
//! A compound in a compound becomes a group. So does a complex number, with the fields `r` and `i`.
//! An array in an element becomes a list.

use std::sync::Arc;

use h5fs_conventions::stored_type as numbers;
use h5fs_reader::error::{Error, Result};
use h5fs_reader::model::Datatype;
use h5fs_reader::model::datatype::{Class, Member};
use h5fs_reader::model::datetime64::Datetime64;
use h5fs_reader::model::shape::product;
use h5fs_reader::wire::to_usize;

use crate::elements::missing::MissingValues;
use crate::elements::{Elements, numpy_datatype};
use crate::limits;
use crate::parquet::encoding::ValueEncoding;
use crate::parquet::field::{Field, FieldContent, utf8_name};
use crate::parquet::leaf::{Leaf, PageLayout};
use crate::parquet::ragged::{SequenceLists, SequenceValues};
use crate::parquet::stored::{
    ArrayRows, MissingValueRule, PointerContext, StoredLeaf, ValueLocation,
};
use crate::parquet::table::{KeyValueMetadata, ParquetFields, ParquetTable};

/// The rule that divides an array into the rows of a table.
enum TableKind {
    /// One row for each element.
    Elements,
    /// One row for each index of the first dimension. A row has this many elements, and each is a
    /// field.
    Matrix(u64),
}

impl TableKind {
    fn from_datatype(datatype: &Datatype, dims: Option<&[u64]>) -> Option<Self> {
        let is_record =
            matches!(datatype.class, Class::Compound(_)) && datatype.complex_part().is_none();
        match dims {
            _ if is_record => Some(TableKind::Elements),
            None | Some([] | [_]) => Some(TableKind::Elements),
            Some(&[_, columns]) => {
                let is_table = (1..=limits::PARQUET_COLUMNS).contains(&columns);
                is_table.then_some(TableKind::Matrix(columns))
            }
            _ => None,
        }
    }
}

/// Returns whether an array with elements of `datatype` and dimensions `dims` can be shown as a
/// table.
pub fn has_columns(datatype: &Datatype, dims: Option<&[u64]>) -> bool {
    let of_row = match TableKind::from_datatype(datatype, dims) {
        Some(TableKind::Matrix(columns)) => columns,
        Some(TableKind::Elements) => 1,
        None => return false,
    };
    let bytes = u64::from(datatype.size).saturating_mul(of_row);
    bytes <= limits::TEXT_ELEMENT_BYTES && has_field(datatype)
}

/// Returns whether values of `datatype` can be a Parquet field.
fn has_field(datatype: &Datatype) -> bool {
    match &datatype.class {
        Class::Compound(members) => members.iter().any(|member| has_field(&member.datatype)),
        Class::Array { base, dims } => !dims.contains(&0) && has_field(base),
        Class::Complex(part) => has_field(part),
        Class::VariableLength(base) => ValueEncoding::can_represent_item(base),
        _ => ValueEncoding::can_represent(datatype),
    }
}

/// Returns the table of an array called `name`. `missing` says which elements are missing. Returns
/// `None` if Parquet does not have fields for the elements. `unit` is the number of rows in a chunk
/// of the array.
///
/// # Errors
/// `Limit` for too many fields.
pub fn array_table(
    elements: Elements,
    missing: Option<MissingValues>,
    name: &[u8],
    unit: u64,
    pointers: PointerContext,
    description: KeyValueMetadata,
) -> Result<Option<ParquetTable>> {
    let datatype = numpy_datatype(&elements.datatype);
    let dims = elements.dims.as_deref();
    let Some(kind) = TableKind::from_datatype(&datatype, dims) else {
        return Ok(None);
    };
    let size = u64::from(datatype.size);
    let (rows, of_row) = match (&kind, dims) {
        (TableKind::Matrix(columns), Some([rows, ..])) => (*rows, *columns),
        _ => (dims.map_or(Ok(0), product)?, 1),
    };
    Error::check_limit(
        size.saturating_mul(of_row),
        limits::TEXT_ELEMENT_BYTES,
        "bytes of a row of a Parquet file",
    )?;
    let mut builder = FieldBuilder::new(
        ArrayRows {
            content: Arc::from(elements.content),
            row_bytes: size.saturating_mul(of_row),
        },
        Arc::new(pointers),
    );
    let missing = missing.map(Arc::new);
    let mut fields = Vec::new();
    let is_record = matches!(datatype.class, Class::Compound(_));
    for number in 0..of_row {
        let name = match kind {
            TableKind::Matrix(_) => number.to_string(),
            TableKind::Elements => utf8_name(name),
        };
        builder.mask = missing.as_ref().map(|missing| ColumnMask {
            missing: Arc::clone(missing),
            datatype: datatype.clone(),
            elements_per_row: of_row,
            element_index: number,
        });
        let offset = number.saturating_mul(size);
        match builder.field_content(&name, &datatype, offset, &[])? {
            Some(FieldContent::Group(members)) if is_record => fields.extend(members),
            Some(content) => fields.push(Field { name, content }),
            None => {}
        }
    }
    let fields = ParquetFields {
        fields,
        columns_without_field: builder.members_without_field,
    };
    Ok((!fields.fields.is_empty()).then_some(ParquetTable {
        rows: 0..rows,
        chunk_rows: unit,
        fields,
        description,
    }))
}

/// The mask of missing elements, for one column of the array's table.
struct ColumnMask {
    missing: Arc<MissingValues>,
    datatype: Datatype,
    elements_per_row: u64,
    element_index: u64,
}

/// A builder of Parquet fields, which visits the members of a datatype.
pub(super) struct FieldBuilder {
    rows: ArrayRows,
    pointers: Arc<PointerContext>,
    mask: Option<ColumnMask>,
    leaves: u64,
    name_bytes: u64,
    /// The members that cannot be Parquet fields, and the reason for each.
    pub(super) members_without_field: Vec<(String, &'static str)>,
}

impl FieldBuilder {
    pub(super) fn new(rows: ArrayRows, pointers: Arc<PointerContext>) -> Self {
        FieldBuilder {
            rows,
            pointers,
            mask: None,
            leaves: 0,
            name_bytes: 0,
            members_without_field: Vec::new(),
        }
    }

    /// Returns the field of a value of type `datatype`, which begins at `offset` in a row. `lists`
    /// describes the arrays that contain the value, outermost first: the length of each, and the
    /// distance between two of its elements in bytes. Returns `None` if Parquet does not have a
    /// field for the datatype.
    ///
    /// # Errors
    /// `Limit` for too many fields.
    pub(super) fn field_content(
        &mut self,
        path: &str,
        datatype: &Datatype,
        offset: u64,
        lists: &[(u32, u64)],
    ) -> Result<Option<FieldContent>> {
        if let Some(part) = datatype.complex_part() {
            let part = |name: &[u8], offset: u32| Member {
                name: name.to_vec(),
                offset,
                datatype: part.clone(),
            };
            let parts = [part(b"r", 0), part(b"i", datatype.size / 2)];
            return self.group(path, &parts, offset, lists);
        }
        match &datatype.class {
            Class::Compound(members) => self.group(path, members, offset, lists),
            Class::Array { base, dims } => self.list(path, base, dims, offset, lists),
            _ => self.leaf(path, datatype, offset, lists),
        }
    }

    fn group(
        &mut self,
        path: &str,
        members: &[Member],
        offset: u64,
        lists: &[(u32, u64)],
    ) -> Result<Option<FieldContent>> {
        let mut fields = Vec::new();
        for member in members {
            let name = utf8_name(&member.name);
            let path = if path.is_empty() {
                name.clone()
            } else {
                format!("{path}.{name}")
            };
            self.name_bytes = self.name_bytes.saturating_add(path.len() as u64);
            Error::check_limit(
                self.name_bytes,
                limits::PARQUET_NAMES,
                "names of the columns of a Parquet file",
            )?;
            let offset = offset.saturating_add(member.offset.into());
            if let Some(content) = self.field_content(&path, &member.datatype, offset, lists)? {
                fields.push(Field { name, content });
            }
        }
        Ok((!fields.is_empty()).then_some(FieldContent::Group(fields)))
    }

    fn list(
        &mut self,
        path: &str,
        base: &Datatype,
        dims: &[u32],
        offset: u64,
        lists: &[(u32, u64)],
    ) -> Result<Option<FieldContent>> {
        if dims.contains(&0) {
            self.record_without_field(path, "an array without elements");
            return Ok(None);
        }
        let mut lists = lists.to_vec();
        for (number, &dim) in dims.iter().enumerate() {
            let inner = dims.get(number + 1..).unwrap_or_default();
            let inner = inner.iter().map(|&dim| u64::from(dim));
            let apart = inner.fold(base.size.into(), u64::saturating_mul);
            lists.push((dim, apart));
        }
        let element = self.field_content(path, base, offset, &lists)?;
        Ok(element.map(|element| {
            let inner = dims.iter().rev();
            inner.fold(element, |inner, &dim| {
                FieldContent::FixedLengthList(dim, Box::new(inner))
            })
        }))
    }

    fn leaf(
        &mut self,
        path: &str,
        datatype: &Datatype,
        offset: u64,
        lists: &[(u32, u64)],
    ) -> Result<Option<FieldContent>> {
        if let Class::VariableLength(base) = &datatype.class
            && lists.is_empty()
            && self.mask.is_none()
            && let Some(content) = self.sequences(datatype.size, base, offset)?
        {
            return Ok(Some(content));
        }
        let encoded = match ValueEncoding::from_datatype(datatype)? {
            Ok(encoded) => encoded,
            Err(reason) => {
                self.record_without_field(path, reason);
                return Ok(None);
            }
        };
        let absent = match &self.mask {
            Some(_) if !lists.is_empty() => {
                self.record_without_field(path, "lists with possibly missing elements");
                return Ok(None);
            }
            Some(masked) => Some(MissingValueRule::Masked {
                missing: Arc::clone(&masked.missing),
                datatype: masked.datatype.clone(),
                of_row: masked.elements_per_row,
                at: to_usize(masked.element_index)?,
            }),
            None if lists.is_empty() => self.missing_rule_of_type(datatype),
            None => None,
        };
        self.encoded_leaf(encoded, datatype, offset, lists, absent)
    }

    /// Returns the rule for missing values that the datatype alone determines: null references, and
    /// `NaT`. Returns `None` for other datatypes.
    fn missing_rule_of_type(&self, datatype: &Datatype) -> Option<MissingValueRule> {
        match datatype.class {
            Class::Reference(kind) => {
                Some(MissingValueRule::Null(kind, Arc::clone(&self.pointers)))
            }
            _ => {
                let integers = Datetime64::from_datatype(datatype)?.integer_datatype();
                let stored = numbers::StoredType::new(&integers)?;
                Some(MissingValueRule::Integer(stored, i64::MIN.into()))
            }
        }
    }

    /// Returns the leaf column of values with the encoding `encoded`.
    ///
    /// # Errors
    /// `Limit` for too many leaves.
    pub(super) fn encoded_leaf(
        &mut self,
        encoded: ValueEncoding,
        datatype: &Datatype,
        offset: u64,
        lists: &[(u32, u64)],
        absent: Option<MissingValueRule>,
    ) -> Result<Option<FieldContent>> {
        self.leaves += 1;
        Error::check_limit(
            self.leaves,
            limits::PARQUET_COLUMNS,
            "columns of a Parquet file",
        )?;
        let is_optional = absent.is_some();
        let stored = StoredLeaf {
            location: ValueLocation {
                rows: self.rows.clone(),
                offset: to_usize(offset)?,
                size: to_usize(datatype.size.into())?,
            },
            lists: lists.to_vec(),
            encoding: encoded.encoding,
            pointers: Arc::clone(&self.pointers),
            missing_rule: absent,
            weight: datatype.weight(),
        };
        Ok(Some(FieldContent::Leaf(Box::new(Leaf {
            kind: encoded.kind,
            body: encoded.body,
            is_optional,
            values: Box::new(stored),
            variable_lists: None,
        }))))
    }

    /// Returns the leaf column of variable-length sequences; `None` if Parquet does not have a type
    /// for their elements.
    fn sequences(
        &mut self,
        size: u32,
        base: &Datatype,
        offset: u64,
    ) -> Result<Option<FieldContent>> {
        let Some(encoded) = ValueEncoding::from_item_type(base)? else {
            return Ok(None);
        };
        let sequences = SequenceLists {
            location: ValueLocation {
                rows: self.rows.clone(),
                offset: to_usize(offset)?,
                size: to_usize(size.into())?,
            },
            size: base.size.into(),
            pointers: Arc::clone(&self.pointers),
        };
        Ok(Some(FieldContent::VariableLengthList(Box::new(Leaf {
            kind: encoded.kind,
            body: PageLayout::Counted,
            is_optional: false,
            values: Box::new(SequenceValues {
                sequences: sequences.clone(),
                encoding: encoded.encoding,
            }),
            variable_lists: Some(Box::new(sequences)),
        }))))
    }

    /// Records that the member at `path` cannot be a Parquet field.
    pub(super) fn record_without_field(&mut self, path: &str, reason: &'static str) {
        if self.members_without_field.len() < limits::PARQUET_SAID {
            self.members_without_field.push((path.to_owned(), reason));
        }
    }
}
