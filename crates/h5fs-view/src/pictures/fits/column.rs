//! The columns of a binary table (FITS 4.0, 7.3), one for each field of a record.
//!
//! | field | column |
//! |---|---|
//! | integer, float, boolean | `B`, `I`, `J`, `K`, `E`, `D`, `L` |
//! | complex number | `C`, `M` |
//! | string of fixed length | `A` |
//! | opaque | `B`, its bytes |
//! | array of the types above | the same, repeated, with `TDIMn` |
//! | record within the record | separate columns, `a.b` |
//!
//! Fields of other datatypes do not have a column.

use h5fs_reader::model::Datatype;
use h5fs_reader::model::datatype::{ByteOrder, Class, StringPadding};
use h5fs_reader::wire::checksum::lookup3;
use h5fs_reader::wire::to_usize;

use crate::limits;
use crate::pictures::fits::cards::Cards;
use crate::pictures::fits::number::{
    FitsNumberType, FitsValueConversion, RecordConversion, ValueSlot,
};
use crate::pictures::image::{PixelKind, PixelType};

/// The columns of a binary table, in order.
#[derive(Debug)]
pub(super) struct FitsColumns(Vec<FitsColumn>);

/// A column of a binary table, and the location of its values in a stored record.
#[derive(Debug, Clone)]
pub(super) struct FitsColumn {
    name: Vec<u8>,
    pub(super) values: ValueSlot,
    /// The letter of the column's type in `TFORMn`, such as `J`.
    code: char,
    /// Number of values of this type in a row.
    repeat: u64,
    /// The dimensions of the values in a row, fastest first; empty for a single value, and for an
    /// array with one dimension.
    dims: Vec<u64>,
    zero: Option<i128>,
}

impl FitsColumns {
    /// Returns the columns of elements of `datatype`, a NumPy type. Returns `None` if there are no
    /// columns, or more than FITS allows, or if an element is too long.
    pub(super) fn from_datatype(datatype: &Datatype) -> Option<Self> {
        let is_short = u64::from(datatype.size) <= limits::TEXT_ELEMENT_BYTES;
        let mut columns = Vec::new();
        add_columns(datatype, b"", 0, &mut columns);
        let is_table = (1..=limits::FITS_COLUMNS).contains(&columns.len());
        (is_short && is_table).then_some(FitsColumns(columns))
    }

    pub(super) fn cards(&self) -> Cards {
        cards(self.0.iter().map(FitsColumn::description))
    }

    /// Returns the conversion of a stored record of `stored_size` bytes to a row of the binary
    /// table.
    pub(super) fn record_conversion(&self, stored_size: u32) -> RecordConversion {
        let values = self.0.iter().map(|column| column.values.clone());
        let stored_size = to_usize(stored_size.into()).unwrap_or(usize::MAX);
        RecordConversion::new(values.collect(), stored_size)
    }
}

/// The cards that describe a column in the header.
pub(super) struct FitsColumnDescription {
    pub(super) name: Vec<u8>,
    /// The value of the card `TFORMn`.
    pub(super) form: String,
    dims: Vec<u64>,
    zero: Option<i128>,
}

impl FitsColumnDescription {
    /// Describes a column of texts, each `width` bytes long. If a text has characters outside
    /// ASCII, the column's type is bytes instead of characters.
    pub(super) fn text(name: &[u8], width: usize, is_ascii: bool) -> Self {
        let code = if is_ascii { 'A' } else { 'B' };
        FitsColumnDescription {
            name: name.to_vec(),
            form: format!("{width}{code}"),
            dims: Vec::new(),
            zero: None,
        }
    }
}

/// Creates the cards of all columns of a table.
pub(super) fn cards(columns: impl ExactSizeIterator<Item = FitsColumnDescription>) -> Cards {
    let mut cards = Cards::default();
    cards.fixed_format("TFIELDS", columns.len());
    for (number, column) in columns.enumerate() {
        let keyword = |name: &str| format!("{name}{}", number + 1);
        let name = to_printable(&column.name);
        let short = shorten_to_card(&name);
        cards.text(&keyword("TTYPE"), &short);
        if short != name {
            cards.text(&keyword("TCOMM"), &name);
        }
        cards.text(&keyword("TFORM"), column.form.as_bytes());
        if !column.dims.is_empty() {
            let dims: Vec<String> = column.dims.iter().map(u64::to_string).collect();
            cards.text(&keyword("TDIM"), format!("({})", dims.join(",")).as_bytes());
        }
        if let Some(zero) = column.zero {
            cards.integer(&keyword("TSCAL"), 1);
            cards.integer(&keyword("TZERO"), zero);
        }
    }
    cards
}

/// Replaces each character that a card cannot contain with `_`.
fn to_printable(name: &[u8]) -> Vec<u8> {
    let shown = |&byte: &u8| match byte {
        b' '..=b'~' => byte,
        _ => b'_',
    };
    name.iter().map(shown).collect()
}

/// Shortens a column's name to fit in one card, as `TTYPEn` requires (FITS 4.0, 4.2.1.2). A name
/// that is too long becomes its first characters, `~`, and 8 hexadecimal digits of its hash.
fn shorten_to_card(name: &[u8]) -> Vec<u8> {
    /// Maximum characters between the quotes of a card.
    const MOST: usize = 68;
    const HASH: usize = 9;
    let quotes = |name: &[u8]| name.iter().filter(|&&byte| byte == b'\'').count();
    if name.len() + quotes(name) <= MOST {
        return name.to_vec();
    }
    let lengths = (0..=name.len().min(MOST - HASH)).rev();
    let fits = |length: &usize| length + quotes(&name[..*length]) <= MOST - HASH;
    let length = { lengths }.find(fits).unwrap_or(0);
    let hash = format!("~{:08x}", lookup3(name));
    [&name[..length], hash.as_bytes()].concat()
}

impl FitsColumn {
    /// Returns the column for a value of type `datatype` at `offset` in a record; `None` if FITS
    /// does not have columns of this type.
    pub(super) fn from_datatype(name: &[u8], datatype: &Datatype, offset: u64) -> Option<Self> {
        let (base, dims) = match &datatype.class {
            Class::Array { base, dims } => {
                let dims = dims.iter().rev().map(|&dim| u64::from(dim));
                (&**base, dims.collect())
            }
            _ => (datatype, Vec::new()),
        };
        let size = u64::from(base.size);
        let count = dims
            .iter()
            .try_fold(1, |count: u64, &dim| count.checked_mul(dim))?;
        let (form, code, each) = value_conversion(base)?;
        let values = ValueSlot {
            offset: to_usize(offset).ok()?,
            length: to_usize(size.checked_mul(count)?).ok()?,
            form,
        };
        let zero = match form {
            FitsValueConversion::Numbers(number) => number.zero_offset(),
            _ => None,
        };
        // Each byte of a text counts as a value.
        let inner = (each > 1 && !dims.is_empty()).then_some(each);
        let dims: Vec<u64> = inner.into_iter().chain(dims).collect();
        Some(FitsColumn {
            name: if name.is_empty() { b"value" } else { name }.to_vec(),
            values,
            code,
            repeat: count.checked_mul(each)?,
            dims: if dims.len() > 1 { dims } else { Vec::new() },
            zero,
        })
    }

    /// Returns whether each row of the column is one floating-point number.
    pub(super) fn is_float(&self) -> bool {
        self.repeat == 1 && matches!(self.code, 'E' | 'D')
    }

    pub(super) fn description(&self) -> FitsColumnDescription {
        FitsColumnDescription {
            name: self.name.clone(),
            form: format!("{}{}", self.repeat, self.code),
            dims: self.dims.clone(),
            zero: self.zero,
        }
    }
}

/// Appends the columns for a value of type `datatype` at `offset` in a record.
fn add_columns(datatype: &Datatype, name: &[u8], offset: u64, columns: &mut Vec<FitsColumn>) {
    if columns.len() > limits::FITS_COLUMNS {
        return;
    }
    let Class::Compound(members) = &datatype.class else {
        columns.extend(FitsColumn::from_datatype(name, datatype, offset));
        return;
    };
    for member in members {
        let name = match name {
            b"" => member.name.clone(),
            _ => [name, b".", &member.name].concat(),
        };
        let offset = offset.saturating_add(member.offset.into());
        add_columns(&member.datatype, &name, offset, columns);
    }
}

/// Returns how values of a datatype are converted, the letter of their FITS type, and the number of
/// FITS values for one stored value. Returns `None` if FITS does not have the datatype.
fn value_conversion(datatype: &Datatype) -> Option<(FitsValueConversion, char, u64)> {
    let size = u64::from(datatype.size);
    let width = to_usize(size).ok().filter(|&width| width > 0)?;
    if let Some(pixel) = PixelType::from_datatype(datatype) {
        return Some(match (pixel.kind, pixel.bytes) {
            (PixelKind::Boolean, _) => (FitsValueConversion::Logicals, 'L', 1),
            _ => (
                FitsValueConversion::Numbers(FitsNumberType::from_pixel(pixel)),
                type_letter(pixel),
                1,
            ),
        });
    }
    match &datatype.class {
        Class::Complex(part) => {
            let pixel =
                PixelType::from_datatype(part).filter(|pixel| pixel.kind == PixelKind::Float)?;
            let code = if pixel.bytes == 8 { 'M' } else { 'C' };
            Some((
                FitsValueConversion::Numbers(FitsNumberType::from_pixel(pixel)),
                code,
                1,
            ))
        }
        Class::String { padding, .. } => {
            let ends_at_nul = *padding == StringPadding::NullTerminated;
            Some((FitsValueConversion::Text { ends_at_nul, width }, 'A', size))
        }
        Class::Ucs4(order) => {
            let is_big_endian = *order == ByteOrder::Big;
            let form = FitsValueConversion::Ucs4 {
                is_big_endian,
                width,
            };
            Some((form, 'A', size))
        }
        Class::Opaque { .. } => Some((FitsValueConversion::Bytes, 'B', size)),
        _ => None,
    }
}

fn type_letter(pixel: PixelType) -> char {
    match (pixel.kind, pixel.bytes) {
        (PixelKind::Float, 8) => 'D',
        (PixelKind::Float, _) => 'E',
        (_, 1) => 'B',
        (_, 2) => 'I',
        (_, 4) => 'J',
        _ => 'K',
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use h5fs_reader::model::datatype::Charset;
    use h5fs_reader::testing::{int, member, type_of};

    fn describe_columns(datatype: &Datatype) -> Vec<(String, String, Vec<u64>)> {
        let columns = FitsColumns::from_datatype(datatype).unwrap();
        let each = columns.0.iter().map(FitsColumn::description);
        each.map(|column| {
            let name = String::from_utf8(column.name).unwrap();
            (name, column.form, column.dims)
        })
        .collect()
    }

    /// astropy rejects a table whose `TTYPEn` continues in a second card.
    #[test]
    fn a_long_name_fits_one_card() {
        let short = |name: &str| String::from_utf8(shorten_to_card(name.as_bytes())).unwrap();
        let most = "n".repeat(68);
        assert_eq!(short(&most), most);
        let [one, other] = ["n".repeat(69), "n".repeat(70)].map(|name| short(&name));
        assert!(one.starts_with(&"n".repeat(59)) && one.len() == 68 && one != other);
        let quoted = short(&"'".repeat(35));
        assert_eq!(quoted.matches('\'').count(), 29);
        let description = FitsColumnDescription::text("n".repeat(69).as_bytes(), 1, true);
        let header = String::from_utf8(cards(vec![description].into_iter()).header()).unwrap();
        let card = |start: &str| {
            header
                .as_bytes()
                .chunks(80)
                .any(|card| card.starts_with(start.as_bytes()))
        };
        assert!(
            card(&format!("TTYPE1  = '{one}'")) && card("TCOMM1  = 'nnn"),
            "{header}"
        );
    }

    /// The codes and the order of dimensions follow "FITS 4.0", 7.3.1 and 7.3.2.
    #[test]
    fn a_field_is_a_column() {
        let matrix = Class::Array {
            base: Box::new(int(2)),
            dims: vec![2, 3],
        };
        let text = |size| {
            type_of(
                size,
                Class::String {
                    padding: StringPadding::NullPadded,
                    charset: Charset::Ascii,
                },
            )
        };
        let names = Class::Array {
            base: Box::new(text(5)),
            dims: vec![4],
        };
        let inner = Class::Compound(vec![member("x", 0, Datatype::ieee(4, ByteOrder::Big))]);
        let record = Class::Compound(vec![
            member("n", 0, int(8)),
            member("matrix", 8, type_of(12, matrix)),
            member("names", 20, type_of(20, names)),
            member("inner", 40, type_of(4, inner)),
            member("ok", 44, type_of(1, Class::Bool)),
            member("odd", 45, int(3)),
            member("text", 48, text(7)),
        ]);
        let column = |name: &str, form: &str, dims: &[u64]| {
            (name.to_owned(), form.to_owned(), dims.to_vec())
        };
        assert_eq!(
            describe_columns(&type_of(55, record)),
            [
                column("n", "1K", &[]),
                column("matrix", "6I", &[3, 2]),
                column("names", "20A", &[5, 4]),
                column("inner.x", "1E", &[]),
                column("ok", "1L", &[]),
                column("text", "7A", &[]),
            ]
        );
    }

    #[test]
    fn the_number_of_columns_is_within_the_standard() {
        let record = |count: usize| {
            let members = (0..count).map(|number| member(&number.to_string(), 0, int(1)));
            FitsColumns::from_datatype(&type_of(1, Class::Compound(members.collect())))
        };
        assert!(record(0).is_none() && record(1).is_some());
        assert!(record(999).is_some() && record(1000).is_none());
    }
}
