//! The description of a table: named columns of one length, and the location of their values.

use std::sync::Arc;

use h5fs_reader::error::{Error, Result, quote};
use h5fs_reader::memory::allocation_size;
use h5fs_reader::model::datatype::Class;
use h5fs_reader::model::shape::product;
use h5fs_reader::model::{Array, Datatype, Node, NodeId};
use h5fs_reader::wire::to_u64;

use crate::elements::numpy_datatype;
use crate::limits;
use crate::table::objects::PickledTexts;
use crate::table::time::PandasTime;

/// Maximum number of array elements in a row for which each element becomes a column. Longer arrays
/// become one column of lists.
pub(super) const MAX_SPLIT_ELEMENTS: u64 = 16;

/// The table of a group.
#[derive(Debug, Default)]
pub struct GroupTable {
    /// The number of rows.
    pub rows: u64,
    /// The columns in their order.
    pub columns: Vec<Column>,
    /// Whether a floating-point NaN is a missing value, as in pandas.
    pub is_nan_missing: bool,
    /// Approximate memory in bytes of the columns' descriptions.
    weight: u64,
    /// The number of compound and array values that were split into columns, including values that
    /// resulted in zero columns.
    split_values: usize,
}

/// A column of a table, with one value for each row.
#[derive(Debug)]
pub struct Column {
    /// The name of the column, with bytes as in the file.
    pub name: Vec<u8>,
    /// The array or arrays that contain the values, and their meaning.
    pub source: ColumnSource,
}

/// Where a column's values are stored, and how they are interpreted.
#[derive(Debug, Clone)]
pub enum ColumnSource {
    /// The values are stored as they are.
    Values(RowField),
    /// The values are stored, and the rule `missing` says which of them are missing.
    Masked {
        /// The stored values.
        values: RowField,
        /// The rule for missing values.
        missing: MissingRule,
    },
    /// The values are `names`. For each row, `codes` has the index of its name, or a negative
    /// number for a missing value.
    Categories {
        /// For each row, the index of its category's name.
        codes: RowField,
        /// The names of the categories.
        names: Arc<ColumnSource>,
    },
    /// The values are lists. The first array in `ends` has the end of each row's list in the next
    /// array of `ends`. The last array in `ends` has ends in `values`.
    Lists {
        /// The ends of lists, outermost lists first.
        ends: Vec<RowField>,
        /// The elements of the innermost lists.
        values: RowField,
    },
    /// The values are row or column numbers in a sparse matrix, each less than `bound`. They are
    /// stored as integers.
    BoundedIndices {
        /// The stored numbers.
        values: RowField,
        /// The number of rows or columns of the matrix.
        bound: u64,
    },
    /// The value of a row is the number of the run that contains the row, counted from 0. `ends`
    /// has the beginning of each run, and the end of the last run.
    Runs {
        /// The beginning of each run, and the end of the last run.
        ends: RowField,
        /// The number of rows.
        rows: u64,
    },
    /// The values are stored numbers that represent times.
    Times {
        /// The stored numbers.
        values: RowField,
        /// The kind of time that they represent.
        time: PandasTime,
    },
    /// The values are texts in a Python pickle.
    Texts(PickledTexts),
}

/// The rule that decides which values of a column are missing.
#[derive(Debug, Clone)]
pub enum MissingRule {
    /// A value is missing if this mask is not zero in the same row.
    MaskNotZero(RowField),
    /// A value is missing if it equals this number.
    Number(f64),
    /// A value is missing if it equals this text.
    Text(Arc<[u8]>),
}

/// A field of an array's rows: one value in each row, at a fixed offset in the row. The rows of an
/// array are its parts along the first dimension.
#[derive(Debug, Clone)]
pub struct RowField {
    /// The node of the array.
    pub node: NodeId,
    /// The array, which is the content of `node`.
    pub array: Arc<Array>,
    /// The offset of the value in the row, in bytes.
    pub offset: u64,
    /// The datatype of the value.
    pub datatype: Datatype,
}

impl RowField {
    /// Returns the field that covers whole rows of the array `node`; `None` for a node without
    /// rows.
    ///
    /// # Errors
    /// `Limit` for a row that is too long.
    pub fn from_node(node: &Node) -> Result<Option<Self>> {
        let array = node.array();
        array.map_or(Ok(None), |array| Self::from_array(node.id, array))
    }

    /// Returns the field that covers whole rows of `array`, which is the array of `node`. Returns
    /// `None` for a scalar array.
    ///
    /// # Errors
    /// `Limit` for a row that is too long.
    pub fn from_array(node: NodeId, array: &Arc<Array>) -> Result<Option<Self>> {
        let Some((_, inner)) = array.shape.dims().split_first() else {
            return Ok(None);
        };
        Ok(Some(RowField {
            node,
            array: Arc::clone(array),
            offset: 0,
            datatype: row_type(&numpy_datatype(&array.datatype), inner)?,
        }))
    }

    /// Returns the number of rows of the array.
    pub fn rows(&self) -> u64 {
        self.array.shape.dims().first().copied().unwrap_or(0)
    }

    /// Returns the length of a row of the array in bytes.
    pub fn row_bytes(&self) -> Result<u64> {
        let dims = self.array.shape.dims();
        let elements = product(dims.get(1..).unwrap_or_default())?;
        let size = u64::from(self.array.datatype.size);
        check_row_bytes(elements.checked_mul(size))
    }

    /// Returns a smaller field: the value of type `datatype` at `offset` within this field's value.
    pub(crate) fn subfield(&self, offset: u64, datatype: Datatype) -> Self {
        RowField {
            node: self.node,
            array: Arc::clone(&self.array),
            offset: self.offset.saturating_add(offset),
            datatype,
        }
    }

    /// Returns the field for the member `name` of a compound value; `None` if the compound does not
    /// have this member.
    pub fn member(&self, name: &[u8]) -> Option<Self> {
        let Class::Compound(members) = &self.datatype.class else {
            return None;
        };
        let member = members.iter().find(|member| member.name == name)?;
        Some(self.subfield(member.offset.into(), member.datatype.clone()))
    }

    /// Returns one field for each element of an array value. For any other value, returns only the
    /// field itself.
    ///
    /// # Errors
    /// `Limit` if there are more elements than a table may have columns.
    pub(crate) fn element_fields(&self) -> Result<Vec<Self>> {
        let Class::Array { base, dims } = &self.datatype.class else {
            return Ok(vec![self.clone()]);
        };
        let count = element_count(dims)?;
        if count > to_u64(limits::CSV_COLUMNS) {
            return Err(too_many_columns_error());
        }
        if base.weight().saturating_mul(count) > limits::TABLE_BYTES {
            return Err(table_weight_error());
        }
        let size = u64::from(base.size);
        Ok((0..count)
            .map(|number| self.subfield(number * size, Datatype::clone(base)))
            .collect())
    }

    /// Returns the same field, with its bytes interpreted as the datatype class `class`.
    pub(crate) fn with_class(self, class: Class) -> Self {
        let size = self.datatype.size;
        RowField {
            datatype: Datatype { size, class },
            ..self
        }
    }

    /// Returns whether both fields are in the same array.
    pub(crate) fn has_same_array(&self, other: &RowField) -> bool {
        Arc::ptr_eq(&self.array, &other.array)
    }

    /// Returns the approximate memory of the field in bytes, without the memory of its array.
    fn weight(&self) -> u64 {
        to_u64(size_of::<RowField>()).saturating_add(self.datatype.weight())
    }

    /// Returns the approximate memory of the field and its array in bytes.
    fn weight_with_array(&self) -> u64 {
        self.weight().saturating_add(self.array.weight())
    }
}

impl ColumnSource {
    /// Returns the number of values in the column.
    pub fn rows(&self) -> u64 {
        match self {
            ColumnSource::Texts(texts) => texts.rows(),
            ColumnSource::Runs { rows, .. } => *rows,
            _ => self.row_field().map_or(0, RowField::rows),
        }
    }

    /// Returns the node of the array that has one value for each row of the table; `None` if there
    /// is no such array.
    pub fn node(&self) -> Option<NodeId> {
        self.row_field().map(|part| part.node)
    }

    /// Returns the field that has one value for each row of the table; `None` if there is no such
    /// field.
    fn row_field(&self) -> Option<&RowField> {
        Some(match self {
            ColumnSource::Values(values)
            | ColumnSource::Masked { values, .. }
            | ColumnSource::BoundedIndices { values, .. }
            | ColumnSource::Times { values, .. } => values,
            ColumnSource::Categories { codes, .. } => codes,
            ColumnSource::Lists { ends, values } => ends.first().unwrap_or(values),
            ColumnSource::Texts(_) | ColumnSource::Runs { .. } => return None,
        })
    }

    /// Returns the text that marks a missing value; `None` if no text does.
    fn missing_text(&self) -> Option<&Arc<[u8]>> {
        match self {
            ColumnSource::Masked {
                missing: MissingRule::Text(text),
                ..
            } => Some(text),
            _ => None,
        }
    }

    /// Returns the approximate memory of the source in bytes. The array of the values and the text
    /// for missing values are not included, because several columns may share them.
    pub(super) fn weight(&self) -> u64 {
        let rows = self.row_field().map_or(0, RowField::weight);
        let others = match self {
            ColumnSource::Categories { names, .. } => names
                .weight()
                .saturating_add(names.weight_not_shared_with(None)),
            ColumnSource::Masked {
                missing: MissingRule::MaskNotZero(mask),
                ..
            } => mask.weight_with_array(),
            ColumnSource::Lists { ends, values } => ends
                .iter()
                .map(RowField::weight_with_array)
                .fold(values.weight_with_array(), u64::saturating_add),
            ColumnSource::Texts(texts) => texts.weight(),
            ColumnSource::Runs { ends, .. } => ends.weight_with_array(),
            _ => 0,
        };
        rows.saturating_add(others)
    }

    /// Returns the approximate memory in bytes of the source's array and of its text for missing
    /// values. Either is left out if the previous column `before` has the same one.
    fn weight_not_shared_with(&self, before: Option<&ColumnSource>) -> u64 {
        let array = before.and_then(ColumnSource::row_field);
        let is_new = |own: &&RowField| !array.is_some_and(|array| array.has_same_array(own));
        let array = self.row_field().filter(is_new);
        let text = before.and_then(ColumnSource::missing_text);
        let is_new = |own: &&Arc<[u8]>| !text.is_some_and(|text| Arc::ptr_eq(text, own));
        let text = self.missing_text().filter(is_new);
        let array = array.map_or(0, |part| part.array.weight());
        array.saturating_add(text.map_or(0, |text| allocation_size(text.len())))
    }
}

impl GroupTable {
    /// Creates a table with `rows` rows, to which columns are added.
    pub(crate) fn with_row_count(rows: u64) -> Self {
        GroupTable {
            rows,
            ..GroupTable::default()
        }
    }

    /// Adds a column.
    ///
    /// # Errors
    /// `Corrupt` for a column with another number of rows than the table; `Limit` for too many
    /// columns, or for too much memory.
    pub fn push(&mut self, name: Vec<u8>, source: ColumnSource) -> Result<()> {
        let rows = source.rows();
        if rows != self.rows {
            let name = quote(&name);
            let what = format!(
                "table: column {name} has {rows} rows instead of {}",
                self.rows
            );
            return Err(Error::corrupt(what, None));
        }
        if self.columns.len() >= limits::CSV_COLUMNS {
            return Err(too_many_columns_error());
        }
        let last = self.columns.last().map(|column| &column.source);
        self.weight = self
            .weight
            .saturating_add(source.weight())
            .saturating_add(source.weight_not_shared_with(last))
            .saturating_add(to_u64(size_of::<Column>()))
            .saturating_add(allocation_size(name.len()));
        if self.weight > limits::TABLE_BYTES {
            return Err(table_weight_error());
        }
        self.columns.push(Column { name, source });
        Ok(())
    }

    /// Adds the columns for the field `values`. Each member of a compound (`a.b`), both parts of a
    /// complex number, and each element of a short array (`a[0][1]`) become a column. Any other
    /// value becomes one column.
    ///
    /// # Errors
    /// Fails as [`push`](Self::push) does.
    pub(crate) fn push_values(
        &mut self,
        name: &[u8],
        values: &RowField,
        missing: Option<&MissingRule>,
    ) -> Result<()> {
        self.split_values = self.split_values.saturating_add(1);
        if self.split_values > 2 * limits::CSV_COLUMNS {
            return Err(too_many_columns_error());
        }
        if let Some(part) = values.datatype.complex_part() {
            let imaginary = values.subfield(part.size.into(), part.clone());
            self.push_values(
                &joined_name(name, b"r"),
                &values.subfield(0, part.clone()),
                missing,
            )?;
            return self.push_values(&joined_name(name, b"i"), &imaginary, missing);
        }
        match &values.datatype.class {
            Class::Compound(members) => {
                for member in members {
                    let part = values.subfield(member.offset.into(), member.datatype.clone());
                    self.push_values(&joined_name(name, &member.name), &part, missing)?;
                }
                Ok(())
            }
            Class::Array { dims, .. } if element_count(dims)? <= MAX_SPLIT_ELEMENTS => {
                let elements = values.element_fields()?;
                let missing = missing.map(|missing| missing.element_rules(elements.len()));
                let missing = missing.transpose()?.unwrap_or_default();
                for (number, element) in elements.iter().enumerate() {
                    let name = indexed_name(name, dims, to_u64(number));
                    self.push_values(&name, element, missing.get(number))?;
                }
                Ok(())
            }
            _ => {
                let values = values.clone();
                let source = match missing.cloned() {
                    Some(missing) => ColumnSource::Masked { values, missing },
                    None => ColumnSource::Values(values),
                };
                self.push(name.to_vec(), source)
            }
        }
    }

    /// Returns the approximate memory of the table in bytes.
    pub fn weight(&self) -> u64 {
        self.weight
    }
}

impl MissingRule {
    /// Splits the rule for an array value into rules for its `count` elements.
    fn element_rules(&self, count: usize) -> Result<Vec<MissingRule>> {
        let MissingRule::MaskNotZero(mask) = self else {
            return Ok(vec![self.clone(); count]);
        };
        let elements = mask.element_fields()?;
        if elements.len() != count {
            return Err(Error::corrupt("table: a mask of another shape", None));
        }
        Ok(elements.into_iter().map(MissingRule::MaskNotZero).collect())
    }
}

/// Joins two names: `a.b`, or the inner name alone if the outer one is empty.
fn joined_name(outer: &[u8], inner: &[u8]) -> Vec<u8> {
    match outer {
        b"" => inner.to_vec(),
        _ => [outer, b".", inner].concat(),
    }
}

/// Returns `name[1][2]` for element `number` of an array in C order.
fn indexed_name(name: &[u8], dims: &[u32], number: u64) -> Vec<u8> {
    let mut left = number;
    let mut indices = Vec::new();
    for &dim in dims.iter().rev() {
        let dim = u64::from(dim.max(1));
        indices.push(format!("[{}]", left % dim));
        left /= dim;
    }
    indices.reverse();
    [name, indices.concat().as_bytes()].concat()
}

fn element_count(dims: &[u32]) -> Result<u64> {
    let dims: Vec<u64> = dims.iter().copied().map(u64::from).collect();
    product(&dims)
}

/// Returns the datatype of a row: the element's datatype if `inner` is empty, and otherwise an
/// array type with the dimensions `inner`.
fn row_type(element: &Datatype, inner: &[u64]) -> Result<Datatype> {
    if inner.is_empty() {
        return Ok(element.clone());
    }
    let bytes = product(inner)?.checked_mul(element.size.into());
    let size = check_row_bytes(bytes)?;
    let dim = |&dim: &u64| u32::try_from(dim).unwrap_or(u32::MAX);
    let (base, dims) = match &element.class {
        Class::Array { base, dims } => {
            let dims = inner.iter().map(dim).chain(dims.iter().copied());
            (base.clone(), dims.collect())
        }
        _ => (Box::new(element.clone()), inner.iter().map(dim).collect()),
    };
    Ok(Datatype {
        size: u32::try_from(size).unwrap_or(u32::MAX),
        class: Class::Array { base, dims },
    })
}

fn check_row_bytes(bytes: Option<u64>) -> Result<u64> {
    let most = limits::TEXT_ELEMENT_BYTES;
    let too_long = || Error::limit("bytes of a row of a table", most);
    bytes.filter(|&bytes| bytes <= most).ok_or_else(too_long)
}

pub(super) fn table_weight_error() -> Error {
    Error::limit("bytes of the columns of a table", limits::TABLE_BYTES)
}

fn too_many_columns_error() -> Error {
    Error::limit("columns of a table", to_u64(limits::CSV_COLUMNS))
}

#[cfg(test)]
mod tests {
    use super::*;
    use h5fs_reader::model::Shape;
    use h5fs_reader::model::array::{Fill, Layout, Storage};
    use h5fs_reader::model::storage::Pipeline;
    use h5fs_reader::testing::{int, member, type_of};

    fn part(datatype: Datatype, dims: &[u64]) -> Result<RowField> {
        let array = Array {
            datatype,
            shape: Shape::fixed(dims.to_vec()),
            fill: Fill::Zero,
            layout: Layout::Contiguous,
            chunk_shape: None,
            pipeline: Pipeline(Vec::new()),
            storage: Ok(Storage::Fill),
        };
        let part = RowField::from_array(NodeId::for_test(1), &Arc::new(array))?;
        Ok(part.expect("an array with rows"))
    }

    fn compound(members: Vec<(&str, u32, Datatype)>, size: u32) -> Datatype {
        let members = members.into_iter();
        let members = members.map(|(name, offset, datatype)| member(name, offset, datatype));
        type_of(size, Class::Compound(members.collect()))
    }

    fn array(base: Datatype, dims: &[u32]) -> Datatype {
        let count: u32 = dims.iter().product();
        let (size, base) = (base.size * count, Box::new(base));
        let dims = dims.to_vec();
        type_of(size, Class::Array { base, dims })
    }

    /// Returns the columns: name, offset in the row, bytes.
    fn columns(values: &RowField) -> Result<Vec<(String, u64, u32)>> {
        let mut table = GroupTable::with_row_count(values.rows());
        table.push_values(b"v", values, None)?;
        let columns = table.columns.into_iter().map(|column| {
            let part = column.source.row_field().unwrap();
            let name = String::from_utf8(column.name).unwrap();
            (name, part.offset, part.datatype.size)
        });
        Ok(columns.collect())
    }

    fn column_properties(columns: &[(&str, u64, u32)]) -> Vec<(String, u64, u32)> {
        let columns = columns.iter();
        columns
            .map(|&(name, offset, size)| (name.to_owned(), offset, size))
            .collect()
    }

    #[test]
    fn values_of_parts_are_several_columns() {
        let matrix = columns(&part(int(2), &[5, 2, 2]).unwrap()).unwrap();
        let expected = [
            ("v[0][0]", 0, 2),
            ("v[0][1]", 2, 2),
            ("v[1][0]", 4, 2),
            ("v[1][1]", 6, 2),
        ];
        assert_eq!(matrix, column_properties(&expected));
        let record = compound(vec![("a", 4, int(1)), ("b", 1, array(int(1), &[2]))], 5);
        let record = columns(&part(record, &[3, 1]).unwrap()).unwrap();
        assert_eq!(
            record,
            column_properties(&[("v[0].a", 4, 1), ("v[0].b[0]", 1, 1), ("v[0].b[1]", 2, 1)])
        );
        let long = columns(&part(int(1), &[3, 17]).unwrap()).unwrap();
        assert_eq!(long, column_properties(&[("v", 0, 17)]));
        assert_eq!(columns(&part(int(1), &[3, 0]).unwrap()).unwrap(), []);
    }

    #[test]
    fn a_mask_is_divided_with_its_values() {
        let values = part(int(4), &[3, 2]).unwrap();
        let mask = part(int(1), &[3, 2]).unwrap();
        let mut table = GroupTable::with_row_count(3);
        let missing = MissingRule::MaskNotZero(mask);
        table.push_values(b"v", &values, Some(&missing)).unwrap();
        let masks = table.columns.iter().map(|column| match &column.source {
            ColumnSource::Masked {
                values,
                missing: MissingRule::MaskNotZero(mask),
            } => (values.offset, mask.offset),
            other => panic!("{other:?}"),
        });
        assert_eq!(masks.collect::<Vec<_>>(), [(0, 0), (4, 1)]);
        let missing = MissingRule::MaskNotZero(part(int(1), &[3, 3]).unwrap());
        let other = table.push_values(b"w", &values, Some(&missing));
        assert!(matches!(other, Err(Error::Corrupt { .. })));
    }

    #[test]
    fn a_shared_missing_text_is_charged_once() {
        let text: Arc<[u8]> = vec![b'x'; 8 << 20].into();
        let filled = |share: &dyn Fn() -> Arc<[u8]>| {
            let mut table = GroupTable::with_row_count(2);
            (0..8).try_for_each(|_| {
                let values = part(int(1), &[2])?;
                let missing = MissingRule::Text(share());
                table.push(b"v".to_vec(), ColumnSource::Masked { values, missing })
            })?;
            Ok(table.weight())
        };
        let shared = filled(&|| Arc::clone(&text)).unwrap();
        assert!(shared > 8 << 20 && shared < 9 << 20, "{shared}");
        let apart: Result<u64> = filled(&|| text.to_vec().into());
        assert!(matches!(apart, Err(Error::Limit { .. })));
    }

    #[test]
    fn columns_of_another_length_are_rejected() {
        let mut table = GroupTable::with_row_count(3);
        let values = part(int(4), &[4]).unwrap();
        let refused = table.push(b"v".to_vec(), ColumnSource::Values(values));
        assert!(matches!(refused, Err(Error::Corrupt { .. })));
    }

    #[test]
    fn hostile_types_are_rejected() {
        let is_limit = |found: Result<_>| matches!(found, Err(Error::Limit { .. }));
        // There are sixteen columns of sixteen columns, and so on, with and without a value at the
        // innermost level.
        for leaf in [int(1), compound(vec![], 0)] {
            let deep = (0..6).fold(leaf, |inner, _| {
                let size = inner.size;
                array(compound(vec![("a", 0, inner)], size), &[16])
            });
            assert!(is_limit(columns(&part(deep, &[2]).unwrap())));
        }
        assert!(part(int(8), &[2, 1 << 30]).is_err());
        let names = (0..65_536).map(|number| (vec![b'a' + (number % 26) as u8; 600], number));
        let enumeration = Class::Enumeration {
            base: Box::new(int(4)),
            members: names
                .map(|(name, number)| (name, vec![number as u8; 4]))
                .collect(),
        };
        let heavy = part(type_of(4, enumeration), &[2]).unwrap();
        assert!(is_limit(columns(&heavy)));
    }
}
