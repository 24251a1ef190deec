//! How the stored elements of an array become elements of the computed file.

use h5fs_reader::hdf5::encode::global_heap;
use h5fs_reader::model::Datatype;
use h5fs_reader::model::datatype::{Class, Member, ReferenceKind};
use h5fs_reader::wire::to_usize;

use crate::limits;

/// Bytes of a variable-length element in the computed file.
const VARIABLE_LENGTH_ELEMENT: u32 = global_heap::NULL_ELEMENT.len() as u32;

/// Bytes of an object reference in the computed file.
const OBJECT_REFERENCE: u32 = 8;

/// The conversion from stored elements to elements of the computed file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ElementConversion {
    /// The bytes stay the same.
    None,
    /// Each element contains object references at these offsets, which get the address of the
    /// object in the computed file.
    References(Vec<usize>),
    /// Each element points to a sequence of base elements of `base_size` bytes on a heap.
    VariableLength { base_size: u64 },
}

/// The reason why a datatype or an element is not in the computed file.
pub(super) type AbsenceReason = &'static str;

/// A part of the computed file, or the reason why it is absent.
pub(super) type OrAbsent<T> = Result<T, AbsenceReason>;

impl ElementConversion {
    /// Returns the conversion of a datatype, or the reason why an array of this type is absent.
    pub(super) fn from_datatype(datatype: &Datatype) -> OrAbsent<Self> {
        match &datatype.class {
            Class::VariableString { .. } => Ok(ElementConversion::VariableLength { base_size: 1 }),
            Class::VariableLength(base) if base.has_pointers() => {
                Err("variable-length sequences of references or of variable-length values")
            }
            Class::VariableLength(base) => Ok(ElementConversion::VariableLength {
                base_size: base.size.into(),
            }),
            _ if datatype.has_pointers() => {
                let mut offsets = Vec::new();
                add_reference_offsets(datatype, 0, &mut offsets)?;
                Ok(ElementConversion::References(offsets))
            }
            _ => Ok(ElementConversion::None),
        }
    }
}

/// Appends the offset of each object reference in an element of this type, which begins at `start`.
fn add_reference_offsets(
    datatype: &Datatype,
    start: u64,
    offsets: &mut Vec<usize>,
) -> OrAbsent<()> {
    match &datatype.class {
        Class::Reference(ReferenceKind::Object) if datatype.size == OBJECT_REFERENCE => {
            if offsets.len() >= limits::HDF5_FILE_REFERENCES {
                return Err("elements of too many references");
            }
            offsets.extend(to_usize(start).ok());
            Ok(())
        }
        Class::Reference(_) => Err("references to regions, or of HDF5 1.12"),
        Class::VariableString { .. } | Class::VariableLength(_) => {
            Err("records or arrays with variable-length members")
        }
        Class::Compound(members) => members.iter().try_for_each(|member| {
            let start = start.saturating_add(member.offset.into());
            add_reference_offsets(&member.datatype, start, offsets)
        }),
        Class::Array { base, dims } if base.has_pointers() => {
            let count = dims.iter().map(|&dim| u64::from(dim));
            let count = count.fold(1, u64::saturating_mul);
            (0..count).try_for_each(|number| {
                let start = start.saturating_add(number.saturating_mul(base.size.into()));
                add_reference_offsets(base, start, offsets)
            })
        }
        _ => Ok(()),
    }
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
        Class::Compound(members) if datatype.has_pointers() => {
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
        Class::Array { base, dims } if datatype.has_pointers() => {
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
        Class::Reference(_) => Err("references to regions, or of HDF5 1.12"),
        Class::Ucs4(_) => Err("texts of UCS-4"),
        _ => Ok(datatype.clone()),
    }
}

#[cfg(test)]
mod tests {
    use h5fs_reader::model::datatype::{Charset, StringPadding};
    use h5fs_reader::testing::{int, member, type_of};

    use super::*;

    fn reference() -> Datatype {
        type_of(8, Class::Reference(ReferenceKind::Object))
    }

    #[test]
    fn references_are_found_at_their_offsets() {
        let base = Box::new(reference());
        let pair = type_of(
            16,
            Class::Array {
                base,
                dims: vec![2],
            },
        );
        let members = vec![member("n", 0, int(4)), member("pair", 4, pair)];
        let record = type_of(20, Class::Compound(members));
        assert_eq!(
            ElementConversion::from_datatype(&record),
            Ok(ElementConversion::References(vec![4, 12]))
        );
        assert_eq!(
            ElementConversion::from_datatype(&int(4)),
            Ok(ElementConversion::None)
        );
    }

    #[test]
    fn elements_of_too_many_references_are_absent() {
        let base = Box::new(reference());
        let many = |count: usize| {
            let dims = vec![u32::try_from(count).unwrap()];
            let base = base.clone();
            ElementConversion::from_datatype(&type_of(8, Class::Array { base, dims }))
        };
        assert!(many(limits::HDF5_FILE_REFERENCES).is_ok());
        assert!(many(limits::HDF5_FILE_REFERENCES + 1).is_err());
    }

    #[test]
    fn pointers_have_addresses_of_eight_bytes() {
        let (padding, charset) = (StringPadding::NullTerminated, Charset::Utf8);
        let text = type_of(12, Class::VariableString { padding, charset });
        assert_eq!(computed_datatype(&text).unwrap().size, 16);
        let record = type_of(12, Class::Compound(vec![member("text", 0, text)]));
        assert!(computed_datatype(&record).is_err());
        assert!(ElementConversion::from_datatype(&record).is_err());
    }
}
