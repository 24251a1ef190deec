//! The columns of a datatype, and the text of their cells.
//!
//! | class | text |
//! |---|---|
//! | integer | decimal |
//! | float | the shortest text that restores the number; `NaN`, `inf`, `-inf` |
//! | string | its bytes |
//! | enumeration | the name, or the number of a value without a name |
//! | boolean, enumeration of FALSE and TRUE | `true`, `false` |
//! | complex | two columns, as its parts |
//! | NumPy's `datetime64` | ISO 8601; empty for `NaT` |
//! | bit field, other opaque, time | hexadecimal |
//! | reference | the path of its target; empty for a null reference |
//! | variable-length sequence | a JSON list |
//!
//! Compounds and arrays have the columns of their parts. The words `NaN` and `inf` were chosen
//! because pandas, polars, DuckDB and R all parse them as numbers; some of these programs do not
//! parse other spellings.
//!
//! In a padded table, zeros that do not change the value are added to a number: before the first
//! digit of an integer, and after the last digit of a fraction. Most programs still parse its type
//! and value (DuckDB parses such integers as text), while spaces would make it a string for other
//! programs. For `NaN` and `inf`, no padding works in all programs, so spaces precede them.

use h5fs_reader::error::{Error, Result};
use h5fs_reader::model::Datatype;
use h5fs_reader::model::datatype::Class;
use h5fs_reader::model::datetime64::Datetime64;
use h5fs_reader::model::number;
use h5fs_reader::model::text_length::TextLengthCalculator;
use h5fs_reader::model::value::{TextContext, ValueWriter};
use h5fs_reader::wire::{to_u64, to_usize};

use crate::csv::fields::CellKind;
use crate::csv::padding::Padding;
use crate::elements::{formatting_cost, numpy_datatype};
use crate::limits;

/// Maximum length in bytes of an element, and of an element's text.
const MAX_ELEMENT_BYTES: u64 = limits::TEXT_ELEMENT_BYTES;

/// A column of cells, and where its values are in an element.
#[derive(Debug)]
struct DatatypeColumn {
    kind: ColumnKind,
    /// The offset of the column's value in an element, in bytes.
    offset: usize,
    /// The padding of cells to the length of the longest cell; `None` if the cells cannot be
    /// padded.
    padding: Option<Padding>,
    is_padded: bool,
    writer: ValueWriter,
    /// A function that computes the length of a cell without writing it, for datatypes that have
    /// one.
    length: Option<TextLengthCalculator>,
}

/// The kind of a column's values, which decides whether cells need quotes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ColumnKind {
    Integer,
    Float,
    /// Words that never need quotes, such as `true`.
    Word,
    Reference,
    Instant,
    Text,
}

/// The CSV columns for elements of one datatype; at least one column.
#[derive(Debug)]
pub struct DatatypeColumns {
    list: Vec<DatatypeColumn>,
    names: Vec<Vec<u8>>,
    /// Total length of all column names in bytes.
    name_bytes: u64,
    values: u64,
}

impl DatatypeColumns {
    /// Returns the columns of `datatype`. The name of each column begins with `name`. Returns
    /// `None` if the datatype does not have columns, such as a compound without members.
    ///
    /// # Errors
    /// `Limit` for too many columns, or an element that is too long.
    pub fn from_datatype(datatype: &Datatype, name: &[u8]) -> Result<Option<Self>> {
        let mut columns = DatatypeColumns {
            list: Vec::new(),
            names: Vec::new(),
            name_bytes: 0,
            values: 0,
        };
        Error::check_limit(
            u64::from(datatype.size),
            MAX_ELEMENT_BYTES,
            "size of an element as csv",
        )?;
        columns.add_columns(datatype, name.to_vec(), 0)?;
        // A group's table has one `DatatypeColumns` value for each of its columns.
        columns.list.shrink_to_fit();
        columns.names.shrink_to_fit();
        Ok((!columns.list.is_empty()).then_some(columns))
    }

    /// Returns the names of the columns.
    pub fn names(&self) -> &[Vec<u8>] {
        &self.names
    }

    /// Returns the number of values in one element of the array. A value that is costly to format
    /// counts several times.
    pub fn value_count(&self) -> u64 {
        self.values
    }

    /// Pads the cells if all columns are numbers. Returns the length of an element's text in bytes,
    /// including separators; `None` if the cells are not padded.
    pub(crate) fn pad_columns(&mut self) -> Option<u64> {
        let widths = self.list.iter().map(|column| column.padding);
        let widths = widths.map(|padding| Some(to_u64(padding?.width()) + 1));
        let width = widths.sum::<Option<u64>>()?;
        for column in &mut self.list {
            column.is_padded = true;
        }
        Some(width)
    }

    /// Appends the cell of `element` in column `column`.
    ///
    /// # Errors
    /// Fails as [`ValueWriter::write_text`] does.
    pub fn write(
        &self,
        element: &[u8],
        column: usize,
        context: &TextContext<'_>,
        out: &mut Vec<u8>,
    ) -> Result<CellKind> {
        self.list[column].write(element, context, out)
    }

    /// Returns whether [`cells_length`](Self::cells_length) can compute the length of the cells of
    /// each element.
    pub(crate) fn can_measure_cells(&self) -> bool {
        let mut columns = self.list.iter();
        columns.all(|column| column.length.is_some() && !column.is_padded)
    }

    /// Returns the total length in bytes of the cells of `element`, if the length can be computed
    /// without writing the cells.
    pub(crate) fn cells_length(&self, element: &[u8], scratch: &mut Vec<u8>) -> Option<usize> {
        let lengths = self.list.iter().map(|column| {
            let bytes = element.get(column.offset..)?;
            column.length.as_ref()?.length(bytes, false, scratch)
        });
        lengths.sum()
    }

    /// Adds the columns of a value of type `datatype`. The value is at `offset` in an element, and
    /// its columns are called `name` or begin with `name`.
    fn add_columns(&mut self, datatype: &Datatype, name: Vec<u8>, offset: u64) -> Result<()> {
        if let Some(part) = datatype.complex_part() {
            let second = offset.saturating_add(part.size.into());
            self.add_columns(part, joined_name(&name, b"r"), offset)?;
            return self.add_columns(part, joined_name(&name, b"i"), second);
        }
        match &datatype.class {
            Class::Compound(members) => members.iter().try_for_each(|member| {
                let place = offset.saturating_add(member.offset.into());
                self.add_columns(&member.datatype, joined_name(&name, &member.name), place)
            }),
            Class::Array { base, dims } => self.add_array(base, dims, &name, offset),
            _ => self.push_column(datatype, name, offset),
        }
    }

    fn add_array(&mut self, base: &Datatype, dims: &[u32], name: &[u8], offset: u64) -> Result<()> {
        let Some((&dim, inner)) = dims.split_first() else {
            return self.add_columns(base, name.to_vec(), offset);
        };
        // An array of elements without bytes may claim any number of elements.
        let dim = if base.size == 0 { 0 } else { dim };
        let below = inner.iter().map(|&dim| u64::from(dim));
        let stride = below.fold(u64::from(base.size), u64::saturating_mul);
        for index in 0..u64::from(dim) {
            let name = [name, format!("[{index}]").as_bytes()].concat();
            let place = offset.saturating_add(index.saturating_mul(stride));
            self.add_array(base, inner, &name, place)?;
        }
        Ok(())
    }

    fn push_column(&mut self, datatype: &Datatype, name: Vec<u8>, offset: u64) -> Result<()> {
        Error::check_room(self.list.len(), limits::CSV_COLUMNS, "columns of a csv")?;
        self.name_bytes = self.name_bytes.saturating_add(to_u64(name.len()));
        Error::check_limit(
            self.name_bytes,
            MAX_ELEMENT_BYTES,
            "names of the columns of a csv",
        )?;
        self.names.push(name);
        self.values = self.values.saturating_add(formatting_cost(datatype));
        let datatype = numpy_datatype(datatype);
        let kind = ColumnKind::from_datatype(&datatype);
        let is_number = matches!(kind, ColumnKind::Integer | ColumnKind::Float);
        let padding = is_number.then(|| Padding::for_numbers(&datatype));
        self.list.push(DatatypeColumn {
            kind,
            offset: to_usize(offset)?,
            padding: padding.flatten(),
            is_padded: false,
            writer: ValueWriter::new(&datatype)?,
            length: TextLengthCalculator::from_datatype(&datatype),
        });
        Ok(())
    }
}

impl ColumnKind {
    fn from_datatype(datatype: &Datatype) -> Self {
        match &datatype.class {
            Class::Opaque { .. } if Datetime64::from_datatype(datatype).is_some() => {
                ColumnKind::Instant
            }
            Class::Integer { .. } if datatype.size <= 16 => ColumnKind::Integer,
            Class::Float(format) if datatype.size <= 16 && number::is_decodable(format) => {
                ColumnKind::Float
            }
            Class::Integer { .. }
            | Class::Float(_)
            | Class::Time { .. }
            | Class::Bitfield { .. }
            | Class::Opaque { .. }
            | Class::Bool => ColumnKind::Word,
            Class::Reference(_) => ColumnKind::Reference,
            _ => ColumnKind::Text,
        }
    }
}

impl DatatypeColumn {
    fn write(
        &self,
        element: &[u8],
        context: &TextContext<'_>,
        out: &mut Vec<u8>,
    ) -> Result<CellKind> {
        let bytes = element.get(self.offset..).unwrap_or_default();
        let start = out.len();
        self.writer.write_text(bytes, context, out)?;
        match self.kind {
            ColumnKind::Text => return Ok(CellKind::Text),
            ColumnKind::Reference if out.get(start..) == Some(b"null") => {
                out.truncate(start);
                return Ok(CellKind::Missing);
            }
            ColumnKind::Instant if out.len() == start => return Ok(CellKind::Missing),
            ColumnKind::Instant => return Ok(CellKind::Unquoted),
            ColumnKind::Reference => return Ok(CellKind::Text),
            ColumnKind::Float if out.ends_with(b"nan") => {
                out.truncate(start);
                out.extend_from_slice(b"NaN");
            }
            ColumnKind::Float | ColumnKind::Integer | ColumnKind::Word => {}
        }
        if let Some(padding) = self.padding.filter(|_| self.is_padded) {
            padding.pad(start, out)?;
        }
        Ok(CellKind::Unquoted)
    }
}

/// Joins the names of a value and of its part: `a.b`, or the part's name alone if the value has no
/// name.
fn joined_name(name: &[u8], part: &[u8]) -> Vec<u8> {
    match name {
        [] => part.to_vec(),
        name => [name, part].join(&b'.'),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use h5fs_reader::model::datatype::ByteOrder;
    use h5fs_reader::testing::{int, member, type_of};

    fn columns(datatype: &Datatype) -> DatatypeColumns {
        DatatypeColumns::from_datatype(datatype, b"")
            .unwrap()
            .unwrap()
    }

    fn cell(columns: &DatatypeColumns, element: &[u8]) -> String {
        let mut out = b"before,".to_vec();
        let context = TextContext::without_pointers(usize::MAX);
        columns.write(element, 0, &context, &mut out).unwrap();
        String::from_utf8(out.split_off(7)).unwrap()
    }

    fn format_padded(datatype: &Datatype, element: &[u8]) -> String {
        let mut columns = columns(datatype);
        let width = columns.pad_columns().unwrap();
        let cell = cell(&columns, element);
        assert_eq!(cell.len() as u64 + 1, width);
        cell
    }

    #[test]
    fn padding_does_not_change_numbers() {
        assert_eq!(format_padded(&int(1), &[0x80]), "-128");
        assert_eq!(format_padded(&int(2), &[0xF9, 0xFF]), "-00007");
        assert_eq!(format_padded(&int(2), &[7, 0]), "000007");
        let single = Datatype::ieee(4, ByteOrder::Little);
        let of_single = |value: f32| format_padded(&single, &value.to_le_bytes());
        assert_eq!(of_single(1.5), "1.5000000000000");
        assert_eq!(of_single(f32::NAN), "            NaN");
        assert_eq!(of_single(f32::NEG_INFINITY), "           -inf");
        let double = Datatype::ieee(8, ByteOrder::Little);
        let of_double = |value: f64| format_padded(&double, &value.to_le_bytes());
        assert_eq!(of_double(-1e300), "-1.0000000000000000e+300");
        assert_eq!(of_double(0.1), "0.1000000000000000000000");
        assert_eq!(
            of_double(-2.225_073_858_507_201_4e-308),
            "-2.2250738585072014e-308"
        );
        for bits in (0..2000).map(|step| step * 0x001F_3F5A_7B9C_0D11) {
            let value = f64::from_bits(bits);
            if value.is_finite() {
                assert_eq!(of_double(value).parse::<f64>().unwrap().to_bits(), bits);
            }
        }
    }

    #[test]
    fn the_longest_values_fit_padded_cells() {
        let long =
            [i128::MIN, i128::MAX].map(|value| format_padded(&int(16), &value.to_le_bytes()));
        assert_eq!(long[0], i128::MIN.to_string());
        assert_eq!(long[1], format!("0{}", i128::MAX));
        assert_eq!(
            format_padded(&int(8), &i64::MIN.to_le_bytes()),
            i64::MIN.to_string()
        );
        let byte = Datatype::integer(1, false, ByteOrder::Little);
        assert_eq!(format_padded(&byte, &[7]), "007");
        let single = Datatype::ieee(4, ByteOrder::Little);
        let smallest = format_padded(&single, &(-f32::MIN_POSITIVE).to_le_bytes());
        assert_eq!(smallest, "-1.17549440e-38");
    }

    #[test]
    fn names_and_booleans_are_words() {
        let named = |pairs: &[(&str, u8)]| {
            let pairs = pairs.iter();
            let members = pairs.map(|(name, value)| (name.as_bytes().to_vec(), vec![*value]));
            let members = members.collect();
            let base = Box::new(int(1));
            type_of(1, Class::Enumeration { base, members })
        };
        let colours = columns(&named(&[("RED", 1), ("a,b", 2)]));
        let cells = [1, 2, 0x80].map(|value| cell(&colours, &[value]));
        assert_eq!(cells, ["RED", "a,b", "-128"]);
        let boolean = columns(&named(&[("FALSE", 0), ("TRUE", 1)]));
        let cells = [0, 1].map(|value| cell(&boolean, &[value]));
        assert_eq!(cells, ["false", "true"]);
        assert!(columns(&named(&[])).pad_columns().is_none());
    }

    #[test]
    fn fields_and_arrays_become_columns() {
        let base = Box::new(int(1));
        let dims = vec![2, 2];
        let matrix = type_of(4, Class::Array { base, dims });
        let inner = type_of(5, Class::Compound(vec![member("f", 1, matrix)]));
        let record = vec![member("x, y", 0, int(2)), member("in", 2, inner)];
        let mut columns = columns(&type_of(7, Class::Compound(record)));
        let names = [
            "x, y",
            "in.f[0][0]",
            "in.f[0][1]",
            "in.f[1][0]",
            "in.f[1][1]",
        ];
        assert_eq!(columns.names(), names.map(|name| name.as_bytes().to_vec()));
        assert_eq!(
            (columns.value_count(), columns.pad_columns()),
            (5, Some(7 + 4 * 5))
        );
    }

    #[test]
    fn hostile_types_are_rejected() {
        let base = Box::new(int(1));
        let dims = vec![1 << 16, 1 << 16];
        let many = type_of(8, Class::Array { base, dims });
        assert!(matches!(
            DatatypeColumns::from_datatype(&many, b""),
            Err(Error::Limit { .. })
        ));
        let base = Box::new(type_of(0, Class::Compound(vec![])));
        let dims = vec![u32::MAX];
        let empty = type_of(0, Class::Array { base, dims });
        assert!(
            DatatypeColumns::from_datatype(&empty, b"")
                .unwrap()
                .is_none()
        );
        let long = type_of(u32::MAX, Class::Opaque { tag: vec![] });
        assert!(matches!(
            DatatypeColumns::from_datatype(&long, b""),
            Err(Error::Limit { .. })
        ));
    }
}
