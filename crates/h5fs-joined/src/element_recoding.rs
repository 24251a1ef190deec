//! Converts elements of members to elements of the joined array.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use h5fs_conventions::packing::Packing;
use h5fs_conventions::stored_type::ExactNumber;
use h5fs_reader::error::{Error, Result};
use h5fs_reader::memory::allocation_size;
use h5fs_reader::model::Datatype;
use h5fs_reader::model::array::ElementRecoder;
use h5fs_reader::model::attribute_value::decode_integers;
use h5fs_reader::model::datatype::{ByteOrder, Class, Member};
use h5fs_reader::wire::{Count, to_u64, to_usize};

/// Length in bytes of the prefix that the joined file writes before each pointer that comes from a
/// member's file. The prefix is the number of this file plus one, or [`JOINED_FILE_PREFIX`].
pub(super) const PREFIX_BYTES: usize = 8;

/// The prefix of a pointer to an object that only the joined file has. The number of the object's
/// node follows.
pub(super) const JOINED_FILE_PREFIX: [u8; PREFIX_BYTES] = [0xFF; PREFIX_BYTES];

/// A conversion of the elements of one member to elements of the joined array.
#[derive(Debug)]
pub(super) enum Recoding {
    /// Unpacks numbers to floats of this size in bytes.
    Unpack(Arc<Packing>, usize),
    /// Pads texts to the common length with this byte.
    PadText(u8),
    /// Writes a prefix before each pointer.
    PrefixPointers {
        spans: Arc<[CopiedSpan]>,
        prefix: [u8; PREFIX_BYTES],
    },
    /// Converts each field separately.
    RecodeFields(Vec<(FieldCopy, Renumbering)>),
}

/// The byte range of a field in a stored element, and the byte range of the field in the joined
/// element. An element that is not a record counts as one field.
#[derive(Debug, Clone)]
pub(super) struct FieldCopy {
    pub(super) source_bytes: Range<usize>,
    pub(super) target_bytes: Range<usize>,
    /// Number of values in the field. Each value of a text field may be longer in the joined array.
    pub(super) value_count: usize,
    /// The stored and the joined integer type of the field, if its values are renumbered.
    pub(super) integer_types: Option<(Datatype, Datatype)>,
}

/// The conversion of the numbers in one file to numbers in the joined array. A number refers to a
/// row, a category or an entry of another array.
#[derive(Debug, Clone)]
pub(super) enum Renumbering {
    Unchanged,
    /// Replaces the number i by element i of the list. A negative number is a missing value and
    /// becomes -1.
    CodeTable(Arc<[u64]>),
    /// Adds `by` to each number of the file. A number is invalid if it is negative, or greater than
    /// `most` before the addition.
    Offset {
        by: u64,
        most: u64,
    },
}

/// The [`Renumbering`] of each file, by file number.
pub(super) type FileRenumberings = HashMap<usize, Renumbering>;

/// Returns the approximate memory of the renumberings in bytes. Files with equal lists of codes
/// share the memory of the list.
pub(super) fn renumberings_weight(numberings: &FileRenumberings) -> u64 {
    /// Approximate size in bytes of an entry of the hash map, without its key and its value.
    const ENTRY: usize = 16;
    let entry = size_of::<(usize, Renumbering)>().plus(ENTRY);
    let codes = numberings.values().filter_map(|own| match own {
        Renumbering::CodeTable(codes) => Some((codes.as_ptr(), size_of_val(&**codes))),
        _ => None,
    });
    let codes: HashMap<_, _> = codes.collect();
    let codes = codes.into_values().map(allocation_size);
    to_u64(numberings.len().times(entry)).plus(u64::sum(codes))
}

impl Renumbering {
    /// Converts a number of the file to a number of the joined array.
    ///
    /// # Errors
    /// `Corrupt` if no number of the joined array corresponds to the number.
    fn renumber(&self, own: i128) -> Result<i128> {
        let nowhere = || Error::corrupt("joined: a number without a target", None);
        match self {
            Renumbering::Unchanged => Ok(own),
            Renumbering::CodeTable(_) if own < 0 => Ok(-1),
            Renumbering::CodeTable(numbers) => {
                let place = usize::try_from(own).ok();
                let found = place.and_then(|place| numbers.get(place));
                found.map(|&number| number.into()).ok_or_else(nowhere)
            }
            Renumbering::Offset { by, most } => {
                let is_known = (0..=i128::from(*most)).contains(&own);
                is_known.then(|| own + i128::from(*by)).ok_or_else(nowhere)
            }
        }
    }
}

impl FieldCopy {
    fn recode(&self, numbering: &Renumbering, stored: &[u8], element: &mut [u8]) -> Result<()> {
        let own = stored
            .get(self.source_bytes.clone())
            .ok_or_else(short_element_error)?;
        let element = element
            .get_mut(self.target_bytes.clone())
            .ok_or_else(short_element_error)?;
        let Some((from, to)) = &self.integer_types else {
            let own_size = (own.len() / self.value_count.max(1)).max(1);
            let size = (element.len() / self.value_count.max(1)).max(1);
            let values = own
                .chunks_exact(own_size)
                .zip(element.chunks_exact_mut(size));
            for (own, value) in values {
                value
                    .get_mut(..own.len())
                    .ok_or_else(short_element_error)?
                    .copy_from_slice(own);
            }
            return Ok(());
        };
        let size = to_usize(to.size.into())?.max(1);
        let numbers = decode_integers(from, own).ok_or_else(short_element_error)?;
        for (number, element) in numbers.into_iter().zip(element.chunks_exact_mut(size)) {
            write_integer(numbering.renumber(number)?, to, element);
        }
        Ok(())
    }
}

/// Writes an integer as an element of the type `datatype`. The integer must fit in the type.
pub(super) fn write_integer(number: i128, datatype: &Datatype, element: &mut [u8]) {
    for (byte, own) in element.iter_mut().zip(number.to_le_bytes()) {
        *byte = own;
    }
    if let Class::Integer { order, .. } = datatype.class
        && order == ByteOrder::Big
    {
        element.reverse();
    }
}

/// A range of bytes that is copied unchanged from the stored element to the joined element.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct CopiedSpan {
    source_start: usize,
    target_start: usize,
    length: usize,
    /// Whether the bytes are a pointer. The joined file writes the prefix of the member before it.
    is_pointer: bool,
}

impl ElementRecoder for Recoding {
    fn recode(&self, stored: &[u8], element: &mut [u8]) -> Result<()> {
        match self {
            Recoding::Unpack(packing, size) => unpack(packing, stored, *size, element),
            Recoding::PadText(byte) => {
                let (own, rest) = element
                    .split_at_mut_checked(stored.len())
                    .ok_or_else(short_element_error)?;
                own.copy_from_slice(stored);
                rest.fill(*byte);
            }
            Recoding::PrefixPointers { spans, prefix } => {
                for span in &**spans {
                    let own = stored
                        .get(span.source_start..span.source_start + span.length)
                        .ok_or_else(short_element_error)?;
                    let mut to = span.target_start;
                    if span.is_pointer {
                        write_bytes(element, to, prefix)?;
                        to += PREFIX_BYTES;
                    }
                    write_bytes(element, to, own)?;
                }
            }
            Recoding::RecodeFields(fields) => {
                for (field, numbering) in fields {
                    field.recode(numbering, stored, element)?;
                }
            }
        }
        Ok(())
    }
}

fn short_element_error() -> Error {
    Error::corrupt("joined: an element of an unexpected length", None)
}

fn write_bytes(element: &mut [u8], at: usize, bytes: &[u8]) -> Result<()> {
    let place = element
        .get_mut(at..at + bytes.len())
        .ok_or_else(short_element_error)?;
    place.copy_from_slice(bytes);
    Ok(())
}

/// Unpacks a stored number to a float of `size` bytes. A missing value becomes NaN.
fn unpack(packing: &Packing, stored: &[u8], size: usize, element: &mut [u8]) {
    let number = packing.decode_number(stored);
    let number = number.map_or(f64::NAN, ExactNumber::as_f64);
    if size == 4 {
        element.copy_from_slice(&(number as f32).to_le_bytes());
    } else {
        element.copy_from_slice(&number.to_le_bytes());
    }
}

/// Returns whether elements of this type contain a reference. The target of a stored reference does
/// not exist in the joined file.
pub(super) fn has_references(datatype: &Datatype) -> bool {
    match &datatype.class {
        Class::Reference(_) => true,
        Class::Compound(members) => members
            .iter()
            .any(|member| has_references(&member.datatype)),
        Class::Array { base, .. } | Class::VariableLength(base) => has_references(base),
        _ => false,
    }
}

/// Returns the element type with a prefix before each pointer, and the spans that convert a stored
/// element. Returns `None` if the type is too long, or contains references or nested pointers.
pub(super) fn add_pointer_prefixes(datatype: &Datatype) -> Option<(Datatype, Vec<CopiedSpan>)> {
    let mut spans = Vec::new();
    let own = add_prefixes_within(datatype, 0, 0, &mut spans)?;
    Some((own, spans))
}

/// Maximum number of spans in one element. A compound may have thousands of fields.
const MAX_SPANS: usize = 4096;

fn add_prefixes_within(
    datatype: &Datatype,
    from: usize,
    to: usize,
    spans: &mut Vec<CopiedSpan>,
) -> Option<Datatype> {
    if spans.len() > MAX_SPANS {
        return None;
    }
    let size = to_usize(datatype.size.into()).ok()?;
    let class = match &datatype.class {
        Class::Compound(members) => return compound(members, from, to, spans),
        Class::Array { base, dims } if base.has_pointers() => {
            let count = dims.iter().try_fold(1_usize, |all, &dim| {
                all.checked_mul(to_usize(dim.into()).ok()?)
            })?;
            if count > MAX_SPANS {
                return None;
            }
            let length = to_usize(base.size.into()).ok()?;
            let mut own: Option<Datatype> = None;
            for number in 0..count {
                let step = own.as_ref().map_or(0, |own| own.size as usize);
                own = Some(add_prefixes_within(
                    base,
                    from + number * length,
                    to + number * step,
                    spans,
                )?);
            }
            let base = own?;
            let size = base.size.checked_mul(u32::try_from(count).ok()?)?;
            let class = Class::Array {
                base: Box::new(base),
                dims: dims.clone(),
            };
            return Some(Datatype { size, class });
        }
        Class::VariableLength(base) if base.has_pointers() => return None,
        Class::Reference(_) => return None,
        class => class.clone(),
    };
    let is_pointer = datatype.has_pointers();
    spans.push(CopiedSpan {
        source_start: from,
        target_start: to,
        length: size,
        is_pointer,
    });
    let prefix = if is_pointer { PREFIX_BYTES } else { 0 };
    Some(Datatype {
        size: u32::try_from(size + prefix).ok()?,
        class,
    })
}

fn compound(
    members: &[Member],
    from: usize,
    to: usize,
    spans: &mut Vec<CopiedSpan>,
) -> Option<Datatype> {
    let mut offset = 0_usize;
    let mut own = Vec::new();
    for member in members {
        let at = from + to_usize(member.offset.into()).ok()?;
        let datatype = add_prefixes_within(&member.datatype, at, to + offset, spans)?;
        let size = to_usize(datatype.size.into()).ok()?;
        own.push(Member {
            name: member.name.clone(),
            offset: u32::try_from(offset).ok()?,
            datatype,
        });
        offset = offset.checked_add(size)?;
    }
    Some(Datatype {
        size: u32::try_from(offset).ok()?,
        class: Class::Compound(own),
    })
}

/// Returns the prefix for the pointers of the file with this number.
pub(super) fn file_prefix(file: usize) -> [u8; PREFIX_BYTES] {
    (to_u64(file) + 1).to_le_bytes()
}

/// Splits a pointer of the joined file into a file number and the pointer as this file stores it.
/// Returns `None` if the pointer is null, or points to an object that only the joined file has.
pub(super) fn split_pointer(element: &[u8]) -> Option<(usize, &[u8])> {
    let (prefix, own) = element.split_first_chunk::<PREFIX_BYTES>()?;
    if *prefix == JOINED_FILE_PREFIX {
        return None;
    }
    let file = u64::from_le_bytes(*prefix).checked_sub(1)?;
    Some((usize::try_from(file).ok()?, own))
}

#[cfg(test)]
mod tests {
    use super::*;
    use h5fs_reader::model::datatype::{Charset, StringPadding};
    use h5fs_reader::testing::{int, member, type_of};

    #[test]
    fn pointers_are_prefixed_with_their_file() {
        let (padding, charset) = (StringPadding::NullTerminated, Charset::Utf8);
        let text = type_of(16, Class::VariableString { padding, charset });
        // Two bytes of padding separate the fields.
        let table = type_of(
            22,
            Class::Compound(vec![member("n", 0, int(4)), member("s", 6, text)]),
        );
        let (own, spans) = add_pointer_prefixes(&table).unwrap();
        assert_eq!(own.size, 4 + 8 + 16);
        let stored: Vec<u8> = (0..22).collect();
        let mut element = vec![0xAA; 28];
        let recoding = Recoding::PrefixPointers {
            spans: spans.into(),
            prefix: file_prefix(2),
        };
        recoding.recode(&stored, &mut element).unwrap();
        assert_eq!(element[..4], [0, 1, 2, 3]);
        assert_eq!(split_pointer(&element[4..]), Some((2, &stored[6..])));
        assert_eq!(split_pointer(&[0; 24]), None);
    }

    /// In the merged list `a x y z`, the names `x z` have the codes 1 and 3, and -1 stays missing.
    /// The second field is copied.
    #[test]
    fn codes_are_renumbered_for_the_merged_list() {
        let byte = Datatype::integer(1, true, ByteOrder::Little);
        let wide = Datatype::integer(2, true, ByteOrder::Big);
        let codes = FieldCopy {
            source_bytes: 0..1,
            target_bytes: 0..2,
            value_count: 1,
            integer_types: Some((byte, wide)),
        };
        let rest = FieldCopy {
            source_bytes: 1..3,
            target_bytes: 2..6,
            value_count: 2,
            integer_types: None,
        };
        let numbering = Renumbering::CodeTable([1, 3].into());
        let recoding =
            Recoding::RecodeFields(vec![(codes, numbering), (rest, Renumbering::Unchanged)]);
        let recode = |code: u8| {
            let mut element = vec![0; 6];
            let made = recoding.recode(&[code, b'a', b'b'], &mut element);
            made.map(|()| element)
        };
        assert_eq!(recode(1).unwrap(), [0, 3, b'a', 0, b'b', 0]);
        assert_eq!(recode(0xFF).unwrap(), [0xFF, 0xFF, b'a', 0, b'b', 0]);
        assert!(recode(2).is_err());
    }

    #[test]
    fn row_numbers_are_offset_and_stay_in_their_file() {
        let moved = Renumbering::Offset { by: 7, most: 2 };
        assert_eq!(moved.renumber(2).unwrap(), 9);
        assert!(moved.renumber(3).is_err() && moved.renumber(-1).is_err());
    }

    #[test]
    fn a_short_text_is_padded() {
        let mut element = *b"......";
        Recoding::PadText(b' ').recode(b"ab", &mut element).unwrap();
        assert_eq!(&element, b"ab    ");
        Recoding::PadText(0).recode(b"abc", &mut element).unwrap();
        assert_eq!(&element, b"abc\0\0\0");
        Recoding::PadText(0)
            .recode(b"longer than that", &mut element)
            .unwrap_err();
    }

    #[test]
    fn references_and_nested_pointers_are_not_joined() {
        use h5fs_reader::model::datatype::ReferenceKind;
        let reference = type_of(8, Class::Reference(ReferenceKind::Object));
        assert!(has_references(&reference) && add_pointer_prefixes(&reference).is_none());
        let list = type_of(16, Class::VariableLength(Box::new(reference)));
        assert!(has_references(&list) && add_pointer_prefixes(&list).is_none());
        let numbers = type_of(16, Class::VariableLength(Box::new(int(4))));
        assert_eq!(add_pointer_prefixes(&numbers).unwrap().0.size, 24);
    }
}
