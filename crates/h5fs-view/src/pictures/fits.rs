//! FITS files: an image, or a table of records.
//!
//! The files follow the FITS Standard, version 4.0. A header consists of cards of 80 characters
//! ([`cards`]), and big-endian data follows. Header and data are each padded to blocks of 2880
//! bytes. An array of numbers is an image in the primary unit, with the array's last axis first
//! (`NAXIS1`). Records are a binary table (7.3) after an empty primary unit, with a row for each
//! element and a column for each field ([`mod@column`]). Unsigned numbers and signed bytes are
//! stored minus the offset in `BZERO` or `TZEROn` (5.2.5, Table 19).

pub mod attributes;
pub mod cards;
pub mod column;
pub mod group;
mod number;

use h5fs_reader::error::Result;
use h5fs_reader::model::datatype::Class;
use h5fs_reader::model::shape::product;
use h5fs_reader::model::{Array, Datatype};

use crate::elements::converted::ConvertedElements;
use crate::elements::normal::normalize;
use crate::elements::{Elements, element_type, numpy_datatype};
use crate::framed::FramedFile;
use crate::pictures::fits::cards::Cards;
use crate::pictures::fits::column::FitsColumns;
use crate::pictures::fits::number::{FitsNumberType, RecordConversion};
use crate::pictures::image::PixelType;
use crate::view::View;

/// Size of a FITS block in bytes.
const BLOCK: u64 = 2880;

/// Creates the FITS file of `elements`. `attributes` are further cards of its header. Returns
/// `None` for a datatype that FITS does not support, for a scalar number, and for a null dataspace.
///
/// # Errors
/// `Limit` if the file is longer than any file can be.
pub fn file(elements: Elements, attributes: &Cards) -> Result<Option<FramedFile>> {
    match HduKind::from_datatype(&elements.datatype, elements.dims.as_deref()) {
        Some(HduKind::Image(pixel)) => image(pixel, elements, attributes).map(Some),
        Some(HduKind::Table(columns)) => table(&columns, elements, attributes).map(Some),
        None => Ok(None),
    }
}

/// Returns whether FITS supports the datatype and the shape of an array.
///
/// # Errors
/// `Limit` for an array that is longer than any file can be.
pub fn is_fits_array(array: &Array) -> Result<bool> {
    let (datatype, dims) = element_type(&array.datatype, &array.shape)?;
    Ok(HduKind::from_datatype(&datatype, dims.as_deref()).is_some())
}

/// The kind of FITS header and data unit (HDU) that contains an array.
enum HduKind {
    Image(PixelType),
    Table(FitsColumns),
}

impl HduKind {
    fn from_datatype(datatype: &Datatype, dims: Option<&[u64]>) -> Option<Self> {
        let dims = dims?;
        if let Some(pixel) = PixelType::from_datatype(datatype) {
            return (!dims.is_empty()).then_some(HduKind::Image(pixel));
        }
        let datatype = numpy_datatype(datatype);
        let is_record = matches!(datatype.class, Class::Compound(_) | Class::Complex(_));
        let columns = is_record.then(|| FitsColumns::from_datatype(&datatype))?;
        columns.map(HduKind::Table)
    }
}

fn image(pixel: PixelType, elements: Elements, attributes: &Cards) -> Result<FramedFile> {
    let elements = normalize(elements)?;
    let dims = elements.dims.unwrap_or_default();
    let number = FitsNumberType::from_pixel(pixel);
    let mut cards = Cards::default();
    cards.logical("SIMPLE", true);
    cards.integer("BITPIX", number.bitpix());
    cards.axes(dims.iter().rev().copied());
    cards.logical("EXTEND", true);
    if let Some(zero) = number.zero_offset() {
        cards.integer("BSCALE", 1);
        cards.integer("BZERO", zero);
    }
    cards.append(attributes);
    let count = product(&dims)?;
    let size = number.size();
    let content = if number.is_unchanged() {
        elements.content
    } else {
        converted_view(
            elements.content,
            RecordConversion::from_number(number),
            count,
        )
    };
    let bytes = count.saturating_mul(size);
    FramedFile::new(cards.header(), content, bytes, BLOCK)
}

fn table(columns: &FitsColumns, elements: Elements, attributes: &Cards) -> Result<FramedFile> {
    let rows = product(&elements.dims.unwrap_or_default())?;
    let record = columns.record_conversion(elements.datatype.size);
    let width = record.size();
    let header = table_header(&columns.cards(), width, rows, attributes);
    let content = converted_view(elements.content, record, rows);
    FramedFile::new(header, content, rows.saturating_mul(width), BLOCK)
}

/// Creates the two headers of a table's file: the header of the empty primary unit, and the header
/// of the binary table. `columns` has the cards of the columns. `width` is the length of a row in
/// bytes.
fn table_header(columns: &Cards, width: u64, rows: u64, attributes: &Cards) -> Vec<u8> {
    let mut primary = Cards::default();
    primary.logical("SIMPLE", true);
    primary.integer("BITPIX", 8);
    primary.axes([]);
    primary.logical("EXTEND", true);
    let mut cards = Cards::default();
    cards.text("XTENSION", b"BINTABLE");
    cards.integer("BITPIX", 8);
    cards.axes([width, rows]);
    cards.integer("PCOUNT", 0);
    cards.integer("GCOUNT", 1);
    cards.append(columns);
    cards.append(attributes);
    [primary.header(), cards.header()].concat()
}

fn converted_view(content: Box<dyn View>, record: RecordConversion, count: u64) -> Box<dyn View> {
    Box::new(ConvertedElements {
        content,
        count,
        stored_size: record.stored_size(),
        size: record.size(),
        conversion: record,
    })
}
