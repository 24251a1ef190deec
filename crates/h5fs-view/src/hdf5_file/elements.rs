//! How the stored elements of an array become elements of the computed file.

use h5fs_reader::hdf5::encode::global_heap;
use h5fs_reader::model::Datatype;
use h5fs_reader::model::datatype::{
    ByteOrder, Charset, Class, Member, ReferenceKind, StringPadding,
};
use h5fs_reader::wire::{to_u64, to_usize};

use crate::limits;

/// Bytes of a variable-length element in the computed file.
const VARIABLE_LENGTH_ELEMENT: u32 = global_heap::NULL_ELEMENT.len() as u32;

/// Bytes of an object reference in the computed file.
const OBJECT_REFERENCE: u32 = 8;

/// Bytes of a region reference in the computed file.
pub(super) const REGION_REFERENCE: u32 = 12;

/// The conversion from stored elements to elements of the computed file: all bytes stay the same
/// except those of some parts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct ElementConversion {
    pub(super) parts: Vec<ConvertedPart>,
}

/// A part of each element that has other bytes in the computed file. It begins at the same offset.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ConvertedPart {
    pub(super) offset: usize,
    /// Number of bytes in a stored element.
    pub(super) stored_size: usize,
    pub(super) kind: PartKind,
}

/// What a converted part is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum PartKind {
    /// An object reference, which gets the address of the object in the computed file.
    Reference,
    /// A pointer to a sequence on a heap, with base elements of `base_size` bytes, each with object
    /// references at the offsets `references`.
    Sequence {
        base_size: u64,
        references: Vec<usize>,
    },
    /// A reference to a region of an array: a pointer to the array's address and a selection.
    Region,
    /// A text of UCS-4 characters, which becomes a text of UTF-8.
    Ucs4(ByteOrder),
}

/// The reason why a datatype or an element is not in the computed file.
pub(super) type AbsenceReason = &'static str;

/// A part of the computed file, or the reason why it is absent.
pub(super) type OrAbsent<T> = Result<T, AbsenceReason>;

impl ElementConversion {
    /// Returns the conversion of a datatype, or the reason why an array of this type is absent.
    pub(super) fn from_datatype(datatype: &Datatype) -> OrAbsent<Self> {
        let mut conversion = ElementConversion::default();
        if needs_conversion(datatype) {
            if u64::from(datatype.size) > limits::HDF5_FILE_CONVERTED_BYTES {
                return Err(TOO_LARGE);
            }
            conversion.add_parts(datatype, 0)?;
        }
        Ok(conversion)
    }

    /// Returns whether all bytes stay the same.
    pub(super) fn is_identity(&self) -> bool {
        self.parts.is_empty()
    }

    /// Returns the number of parts of an element that point to a heap.
    pub(super) fn heap_parts(&self) -> usize {
        let parts = self.parts.iter();
        parts.filter(|part| part.kind.is_on_heap()).count()
    }

    /// Iterates over the parts of a stored element that point to a heap, with their bytes.
    pub(super) fn heap_pointers<'a>(
        &'a self,
        element: &'a [u8],
    ) -> impl Iterator<Item = (&'a ConvertedPart, &'a [u8])> {
        let parts = self.parts.iter().filter(|part| part.kind.is_on_heap());
        parts.map(move |part| (part, part.stored(element)))
    }

    /// Returns whether elements contain addresses of objects.
    pub(super) fn has_references(&self) -> bool {
        self.parts.iter().any(|part| match &part.kind {
            PartKind::Reference | PartKind::Region => true,
            PartKind::Sequence { references, .. } => !references.is_empty(),
            PartKind::Ucs4(_) => false,
        })
    }

    /// Returns the memory in bytes that the list of parts takes.
    pub(super) fn weight(&self) -> u64 {
        let references = self.parts.iter().map(|part| match &part.kind {
            PartKind::Sequence { references, .. } => to_u64(size_of_val(&**references)),
            _ => 0,
        });
        references.fold(to_u64(size_of_val(&*self.parts)), u64::saturating_add)
    }

    /// Adds the parts of a value of this type, which begins at `start`.
    fn add_parts(&mut self, datatype: &Datatype, start: u64) -> OrAbsent<()> {
        let kind = match &datatype.class {
            Class::Reference(ReferenceKind::Object) if datatype.size == OBJECT_REFERENCE => {
                PartKind::Reference
            }
            Class::Reference(ReferenceKind::Region) => PartKind::Region,
            Class::Reference(_) => return Err(UNKNOWN_REFERENCE),
            Class::VariableString { .. } => PartKind::Sequence {
                base_size: 1,
                references: Vec::new(),
            },
            Class::VariableLength(base) => PartKind::Sequence {
                base_size: base.size.into(),
                references: reference_offsets(base)?,
            },
            Class::Ucs4(order) => PartKind::Ucs4(*order),
            Class::Compound(members) => {
                let mut members = members.iter();
                return members.try_for_each(|member| {
                    let start = start.saturating_add(member.offset.into());
                    self.add_parts(&member.datatype, start)
                });
            }
            Class::Array { base, dims } if needs_conversion(base) => {
                let count = dims.iter().map(|&dim| u64::from(dim));
                let count = count.fold(1, u64::saturating_mul);
                return (0..count).try_for_each(|number| {
                    let start = start.saturating_add(number.saturating_mul(base.size.into()));
                    self.add_parts(base, start)
                });
            }
            _ => return Ok(()),
        };
        if self.parts.len() >= limits::HDF5_FILE_CONVERTED_PARTS {
            return Err("elements of too many references or variable-length values");
        }
        let sizes = to_usize(start).and_then(|start| Ok((start, to_usize(datatype.size.into())?)));
        let (offset, stored_size) = sizes.map_err(|_| TOO_LARGE)?;
        self.parts.push(ConvertedPart {
            offset,
            stored_size,
            kind,
        });
        Ok(())
    }
}

impl ConvertedPart {
    /// Returns the bytes of the part in a stored element.
    pub(super) fn stored<'a>(&self, element: &'a [u8]) -> &'a [u8] {
        let end = self.offset.saturating_add(self.stored_size);
        element.get(self.offset..end).unwrap_or_default()
    }
}

impl PartKind {
    /// Returns whether the part points to a value on a heap.
    pub(super) fn is_on_heap(&self) -> bool {
        matches!(self, PartKind::Sequence { .. } | PartKind::Region)
    }
}

const TOO_LARGE: AbsenceReason = "elements with references that are too large";

const UNKNOWN_REFERENCE: AbsenceReason = "references of HDF5 1.12, or without 8 bytes";

/// Returns whether values of this type have other bytes in the computed file.
pub(super) fn needs_conversion(datatype: &Datatype) -> bool {
    match &datatype.class {
        Class::Ucs4(_) => true,
        Class::Compound(members) => {
            let mut members = members.iter();
            members.any(|member| needs_conversion(&member.datatype))
        }
        Class::Array { base, .. } => needs_conversion(base),
        _ => datatype.has_pointers(),
    }
}

/// Returns the offsets of the object references in a base element of a sequence.
fn reference_offsets(base: &Datatype) -> OrAbsent<Vec<usize>> {
    let conversion = ElementConversion::from_datatype(base)?;
    let parts = conversion.parts.iter().map(|part| match part.kind {
        PartKind::Reference => Ok(part.offset),
        _ => Err("sequences of variable-length values or region references"),
    });
    parts.collect()
}

/// Returns the type that elements of this type have in the computed file, where an address has 8
/// bytes.
///
/// # Errors
/// Returns the reason if the type cannot be expressed.
pub(super) fn computed_datatype(datatype: &Datatype) -> OrAbsent<Datatype> {
    let sized = |size: u32, class: Class| Ok(Datatype { size, class });
    match &datatype.class {
        Class::VariableString { .. } => sized(VARIABLE_LENGTH_ELEMENT, datatype.class.clone()),
        Class::VariableLength(base) => {
            let base = Box::new(computed_datatype(base)?);
            sized(VARIABLE_LENGTH_ELEMENT, Class::VariableLength(base))
        }
        Class::Compound(members) if needs_conversion(datatype) => {
            let members = members.iter().map(|member| {
                let converted = computed_datatype(&member.datatype)?;
                let is_equal = converted.size == member.datatype.size;
                let member = |datatype| Member {
                    datatype,
                    ..member.clone()
                };
                is_equal
                    .then(|| member(converted))
                    .ok_or("records with addresses that do not have 8 bytes")
            });
            let members = members.collect::<Result<_, _>>()?;
            sized(datatype.size, Class::Compound(members))
        }
        Class::Array { base, dims } if needs_conversion(datatype) => {
            let converted = computed_datatype(base)?;
            if converted.size != base.size {
                return Err("arrays of addresses that do not have 8 bytes");
            }
            let class = Class::Array {
                base: Box::new(converted),
                dims: dims.clone(),
            };
            sized(datatype.size, class)
        }
        Class::Reference(ReferenceKind::Object) => sized(OBJECT_REFERENCE, datatype.class.clone()),
        Class::Reference(ReferenceKind::Region) => sized(REGION_REFERENCE, datatype.class.clone()),
        Class::Reference(_) => Err(UNKNOWN_REFERENCE),
        Class::Ucs4(_) => sized(
            datatype.size,
            Class::String {
                padding: StringPadding::NullPadded,
                charset: Charset::Utf8,
            },
        ),
        _ => Ok(datatype.clone()),
    }
}

#[cfg(test)]
mod tests {
    use h5fs_reader::testing::{int, member, type_of};

    use super::*;

    fn reference() -> Datatype {
        type_of(8, Class::Reference(ReferenceKind::Object))
    }

    fn parts(datatype: &Datatype) -> OrAbsent<Vec<(usize, PartKind)>> {
        let conversion = ElementConversion::from_datatype(datatype)?;
        let parts = conversion.parts.into_iter();
        Ok(parts.map(|part| (part.offset, part.kind)).collect())
    }

    #[test]
    fn converted_parts_are_found_at_their_offsets() {
        let base = Box::new(reference());
        let pair = type_of(
            16,
            Class::Array {
                base: base.clone(),
                dims: vec![2],
            },
        );
        let (padding, charset) = (StringPadding::NullTerminated, Charset::Utf8);
        let text = type_of(16, Class::VariableString { padding, charset });
        let list = type_of(16, Class::VariableLength(base));
        let members = vec![
            member("n", 0, int(4)),
            member("pair", 4, pair),
            member("text", 20, text),
            member("list", 36, list.clone()),
        ];
        let record = type_of(52, Class::Compound(members));
        let sequence = |base_size, references| PartKind::Sequence {
            base_size,
            references,
        };
        let expected = vec![
            (4, PartKind::Reference),
            (12, PartKind::Reference),
            (20, sequence(1, vec![])),
            (36, sequence(8, vec![0])),
        ];
        assert_eq!(parts(&record), Ok(expected));
        assert_eq!(parts(&int(4)), Ok(vec![]));
        let nested = type_of(16, Class::VariableLength(Box::new(list)));
        assert!(parts(&nested).is_err());
    }

    #[test]
    fn large_elements_that_need_a_conversion_are_absent() {
        let record = |size: u64, datatype| {
            let size = u32::try_from(size).unwrap();
            let members = vec![member("only", 0, datatype)];
            ElementConversion::from_datatype(&type_of(size, Class::Compound(members)))
        };
        let most = limits::HDF5_FILE_CONVERTED_BYTES;
        assert!(record(most, reference()).is_ok());
        assert!(record(most + 1, reference()).is_err());
        assert!(record(most + 1, int(4)).is_ok());
    }

    #[test]
    fn elements_of_too_many_converted_parts_are_absent() {
        let base = Box::new(reference());
        let many = |count: usize| {
            let dims = vec![u32::try_from(count).unwrap()];
            let base = base.clone();
            ElementConversion::from_datatype(&type_of(8, Class::Array { base, dims }))
        };
        assert!(many(limits::HDF5_FILE_CONVERTED_PARTS).is_ok());
        assert!(many(limits::HDF5_FILE_CONVERTED_PARTS + 1).is_err());
    }

    #[test]
    fn pointers_have_addresses_of_eight_bytes() {
        let (padding, charset) = (StringPadding::NullTerminated, Charset::Utf8);
        let text = type_of(12, Class::VariableString { padding, charset });
        assert_eq!(computed_datatype(&text).unwrap().size, 16);
        let record = type_of(12, Class::Compound(vec![member("text", 0, text)]));
        assert!(computed_datatype(&record).is_err());
    }
}
