//! The decoding of the elements of a variable, to bytes and to text.

use h5fs_conventions::packing::Packing;
use h5fs_conventions::stored_type::{ExactNumber, StoredType};
use h5fs_conventions::time::{TEXT_BYTES, Tick, TicksSinceEpoch, TimeUnits};
use h5fs_reader::error::{Error, Result};
use h5fs_reader::model::Datatype;
use h5fs_reader::model::datatype::{ByteOrder, Charset, Class, StringPadding};
use h5fs_reader::model::numpy::numpy_literal;
use h5fs_reader::model::value::{TextContext, ValueWriter};

use crate::csv::fields::CellKind;
use crate::csv::padding::Padding;
use crate::elements::Elements;
use crate::limits;

/// The rule that converts the stored elements of a variable to values.
#[derive(Debug)]
pub(crate) enum Decoding {
    Numbers(Packing),
    Times(Packing, TimeUnits),
    /// Numbers that xarray marks as booleans with the attribute `dtype` = `bool`.
    Booleans(Packing),
    Texts(ValueWriter),
    /// Characters; the characters along the last dimension form a text.
    Characters,
}

/// The kind of the values that a variable's elements are decoded to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DecodedKind {
    /// Values equal to the stored elements, none of which is missing.
    Stored,
    /// IEEE 754 floating-point numbers of this many bytes.
    Number(u32),
    /// Integers of this type, none of which is missing.
    Integer(StoredType),
    /// Times as numbers of nanoseconds or microseconds since 1970-01-01.
    Instant {
        is_nanosecond: bool,
    },
    /// Times in a calendar that `datetime64` does not have. The times are decoded to texts of at
    /// most this many characters.
    Time(usize),
    Boolean,
    Text,
}

/// The value of `NaT` in `datetime64`.
const NO_TIME: TicksSinceEpoch = TicksSinceEpoch::MIN;

/// Size in bytes of a time as a NumPy string, which has four bytes for each character.
const TIME_TEXT_BYTES: usize = 4 * TEXT_BYTES;

impl Decoding {
    /// Returns the kind of the decoded values.
    pub(crate) fn decoded_kind(&self) -> DecodedKind {
        match self {
            Decoding::Numbers(packing) if packing.is_identity() => DecodedKind::Stored,
            Decoding::Numbers(packing) => match packing.unpacked_integer_type() {
                Some(integers) => DecodedKind::Integer(integers),
                None => DecodedKind::Number(packing.datatype().size),
            },
            Decoding::Times(_, units) => match units.datetime64_precision() {
                Some(tick) => DecodedKind::Instant {
                    is_nanosecond: tick == Tick::Nanosecond,
                },
                None => DecodedKind::Time(TEXT_BYTES),
            },
            Decoding::Booleans(_) => DecodedKind::Boolean,
            Decoding::Texts(_) | Decoding::Characters => DecodedKind::Text,
        }
    }

    /// Returns the padding of the values' texts to the length of the longest text; `None` for
    /// values that cannot be padded.
    pub(super) fn padding(&self) -> Option<Padding> {
        match self {
            Decoding::Numbers(packing) => Padding::for_numbers(&packing.datatype()),
            Decoding::Times(..) => Some(Padding::for_times(TEXT_BYTES)),
            Decoding::Booleans(_) | Decoding::Texts(_) | Decoding::Characters => None,
        }
    }

    /// Returns whether an element may be missing.
    pub(super) fn can_be_missing(&self) -> bool {
        match self {
            Decoding::Numbers(packing) | Decoding::Times(packing, _) => packing.can_be_missing(),
            Decoding::Booleans(_) | Decoding::Texts(_) | Decoding::Characters => false,
        }
    }

    /// Returns whether the elements are floating-point numbers that are not decoded.
    pub(super) fn is_undecoded_float(&self) -> bool {
        match self {
            Decoding::Numbers(packing) => {
                packing.is_identity() && matches!(packing.datatype().class, Class::Float(_))
            }
            _ => false,
        }
    }

    /// Returns the dimensions of the decoded values. `stored` has the dimensions of the stored
    /// elements. For characters, the last dimension is dropped.
    pub(super) fn decoded_dims(&self, stored: &[u64]) -> Vec<u64> {
        let taken = usize::from(matches!(self, Decoding::Characters));
        stored[..stored.len().saturating_sub(taken)].to_vec()
    }

    /// Returns the datatype of one element after characters are joined to texts. `dims` are the
    /// dimensions of the stored elements. A text counts as one element.
    ///
    /// # Errors
    /// `Limit` for a text with too many characters.
    pub(super) fn joined_type(&self, stored: &Datatype, dims: &[u64]) -> Result<Datatype> {
        match self {
            Decoding::Characters => text_type(dims.last().copied().unwrap_or(1)),
            _ => Ok(stored.clone()),
        }
    }

    /// Joins the characters along the last dimension to texts. Other elements are returned
    /// unchanged.
    ///
    /// # Errors
    /// Fails as [`joined_type`](Self::joined_type) does.
    pub(super) fn join_characters(&self, stored: Elements) -> Result<Elements> {
        let dims = stored.dims.unwrap_or_default();
        Ok(Elements {
            datatype: self.joined_type(&stored.datatype, &dims)?,
            dims: Some(self.decoded_dims(&dims)),
            content: stored.content,
        })
    }

    /// Returns whether the decoded elements have the same bytes as the stored elements.
    pub(crate) fn is_identity(&self) -> bool {
        match self {
            Decoding::Numbers(packing) => packing.is_identity(),
            Decoding::Texts(..) | Decoding::Characters => true,
            Decoding::Times(..) | Decoding::Booleans(_) => false,
        }
    }

    /// Returns the NumPy type of the decoded elements for the header of an .npy file, and the size
    /// of one decoded element in bytes. `joined` is the result of
    /// [`joined_type`](Self::joined_type). Returns `None` if NumPy does not have the datatype.
    pub(super) fn numpy_type(&self, joined: &Datatype) -> Option<(String, u32)> {
        let datatype = match self {
            Decoding::Numbers(packing) => packing.datatype(),
            Decoding::Times(_, units) => match units.datetime64_precision() {
                Some(Tick::Microsecond) => return Some(("'<M8[us]'".to_owned(), 8)),
                Some(Tick::Nanosecond) => return Some(("'<M8[ns]'".to_owned(), 8)),
                None => Datatype {
                    size: u32::try_from(TIME_TEXT_BYTES).ok()?,
                    class: Class::Ucs4(ByteOrder::Little),
                },
            },
            Decoding::Booleans(_) => Datatype {
                size: 1,
                class: Class::Bool,
            },
            Decoding::Texts(..) | Decoding::Characters => joined.clone(),
        };
        Some((numpy_literal(&datatype)?, datatype.size))
    }

    /// Decodes an element, and appends its value: bytes for an unpacked number, a time of
    /// `datetime64` or a boolean, and text for any other value. Returns false for a missing
    /// element.
    ///
    /// # Errors
    /// Fails as [`write_text`](Self::write_text) does.
    pub(crate) fn write_value(
        &self,
        element: &[u8],
        context: &TextContext<'_>,
        out: &mut Vec<u8>,
    ) -> Result<bool> {
        match self {
            Decoding::Numbers(packing) if !packing.is_identity() => {
                let is_there = packing
                    .decode_number(element)
                    .is_some_and(|number| !number.is_nan());
                if is_there {
                    packing.decode(element, out)?;
                }
                Ok(is_there)
            }
            Decoding::Times(packing, units) if units.datetime64_precision().is_some() => {
                let time = decode_time(packing, units, element)?;
                out.extend(time.into_iter().flat_map(TicksSinceEpoch::to_le_bytes));
                Ok(time.is_some())
            }
            Decoding::Booleans(packing) => {
                out.push(is_true(packing, element).into());
                Ok(true)
            }
            _ => Ok(self.write_text(element, context, out)? != CellKind::Missing),
        }
    }

    /// Decodes an element, and appends the bytes in the type of [`numpy_type`](Self::numpy_type).
    ///
    /// # Errors
    /// `Limit` for a time out of range, and for an integer that the type of `scale_factor` cannot
    /// represent.
    pub(super) fn decode(&self, element: &[u8], out: &mut Vec<u8>) -> Result<()> {
        match self {
            Decoding::Numbers(packing) => packing.decode(element, out)?,
            Decoding::Times(packing, units) => {
                let time = decode_time(packing, units, element)?;
                match units.datetime64_precision() {
                    Some(_) => out.extend_from_slice(&time.unwrap_or(NO_TIME).to_le_bytes()),
                    None => {
                        let mut text = Vec::new();
                        if let Some(time) = time {
                            units.write(time, &mut text);
                        }
                        let end = out.len() + TIME_TEXT_BYTES;
                        out.extend(text.iter().flat_map(|&byte| u32::from(byte).to_le_bytes()));
                        out.resize(end, 0);
                    }
                }
            }
            Decoding::Booleans(packing) => out.push(is_true(packing, element).into()),
            Decoding::Texts(..) | Decoding::Characters => out.extend_from_slice(element),
        }
        Ok(())
    }

    /// Decodes an element to a number, a time or a boolean, and appends its text. The text is empty
    /// if the element is missing. Texts and characters are appended as they are stored.
    ///
    /// # Errors
    /// `Limit` for a time out of range, and for an integer that the type of `scale_factor` cannot
    /// represent.
    pub(crate) fn write_number_text(&self, element: &[u8], out: &mut Vec<u8>) -> Result<CellKind> {
        match self {
            Decoding::Numbers(packing) => Ok(word_cell(packing.write_unpacked(element, out)?)),
            Decoding::Times(packing, units) => {
                let number = packing.decode_number(element);
                let written = number.map(|number| units.write_number(number, out));
                Ok(word_cell(written.transpose()?.unwrap_or(false)))
            }
            Decoding::Booleans(packing) => {
                let text: &[u8] = if is_true(packing, element) {
                    b"true"
                } else {
                    b"false"
                };
                out.extend_from_slice(text);
                Ok(CellKind::Unquoted)
            }
            Decoding::Texts(_) | Decoding::Characters => {
                out.extend_from_slice(element);
                Ok(CellKind::Text)
            }
        }
    }

    /// Decodes an element, and appends its text. The text is empty if the element is missing.
    ///
    /// # Errors
    /// `Limit` for a time out of range; otherwise fails as [`ValueWriter::text`] does.
    pub(super) fn write_text(
        &self,
        element: &[u8],
        context: &TextContext<'_>,
        out: &mut Vec<u8>,
    ) -> Result<CellKind> {
        match self {
            Decoding::Numbers(_) | Decoding::Times(..) | Decoding::Booleans(_) => {
                self.write_number_text(element, out)
            }
            Decoding::Texts(writer) => {
                writer.write_text(element, context, out)?;
                Ok(CellKind::Text)
            }
            Decoding::Characters => {
                let end = element.iter().rposition(|&byte| byte != 0);
                out.extend_from_slice(&element[..end.map_or(0, |last| last + 1)]);
                Ok(CellKind::Text)
            }
        }
    }
}

/// Returns the kind of a cell whose text never needs quotes.
fn word_cell(is_there: bool) -> CellKind {
    if is_there {
        CellKind::Unquoted
    } else {
        CellKind::Missing
    }
}

/// Decodes an element to a time; `None` if the element is missing.
fn decode_time(
    packing: &Packing,
    units: &TimeUnits,
    element: &[u8],
) -> Result<Option<TicksSinceEpoch>> {
    match packing.decode_number(element) {
        Some(number) => units.convert_to_ticks(number),
        None => Ok(None),
    }
}

/// Decodes an element to a boolean: false if its number is 0. A missing element is true, as NaN is
/// true in NumPy.
fn is_true(packing: &Packing, element: &[u8]) -> bool {
    let number = packing.decode_number(element);
    number.is_none_or(|number| !number.equals(ExactNumber::Integer(0)))
}

/// Returns the datatype of a text of this many characters.
fn text_type(characters: u64) -> Result<Datatype> {
    let most = limits::TEXT_ELEMENT_BYTES;
    let size = u32::try_from(characters).ok();
    let size = size.filter(|&size| u64::from(size) <= most);
    Ok(Datatype {
        size: size.ok_or_else(|| Error::limit("characters of a text", most))?,
        class: Class::String {
            padding: StringPadding::NullPadded,
            charset: Charset::Utf8,
        },
    })
}
