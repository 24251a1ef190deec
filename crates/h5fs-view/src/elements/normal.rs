//! Elements in the normal form that NumPy's own readers return.
//!
//! | stored | normal form |
//! |---|---|
//! | a boolean byte other than 0 and 1 | 1 |
//! | a string that ends at its first NUL, with bytes after the NUL | zeros after the string |
//! | a string padded with spaces | zeros in place of the padding |
//!
//! libhdf5 reads such strings into NumPy's `S` in this way. All other bytes are unchanged. A record
//! whose members overlap is unchanged as a whole.

use h5fs_reader::error::Result;
use h5fs_reader::model::datatype::{Class, Datatype, Member, StringPadding};
use h5fs_reader::model::shape::product;
use h5fs_reader::model::text::without_padding;
use h5fs_reader::wire::to_usize;

use crate::elements::Elements;
use crate::elements::converted::ConvertedElements;

/// Converts each element to its normal form.
///
/// # Errors
/// `Limit` for an array that is longer than any file can be.
pub(crate) fn normalize(elements: Elements) -> Result<Elements> {
    let (Some(dims), Some(normal)) = (
        &elements.dims,
        NormalConversion::from_datatype(&elements.datatype),
    ) else {
        return Ok(elements);
    };
    let size = u64::from(elements.datatype.size);
    let content = ConvertedElements {
        count: product(dims)?,
        stored_size: size,
        size,
        content: elements.content,
        conversion: move |element: &[u8], out: &mut Vec<u8>| {
            let start = out.len();
            out.extend_from_slice(element);
            normal.apply(&mut out[start..]);
        },
    };
    Ok(Elements {
        content: Box::new(content),
        ..elements
    })
}

/// A conversion to the normal form, for a datatype that needs one.
#[derive(Debug, PartialEq, Eq)]
enum NormalConversion {
    Boolean,
    Text(StringPadding),
    /// The element consists of values of this many bytes, and each needs the inner conversion.
    Each(usize, Box<NormalConversion>),
    /// The fields of the element at these offsets (start, end) need the inner conversion.
    Fields(Vec<(usize, usize, NormalConversion)>),
}

impl NormalConversion {
    /// Returns the conversion for a datatype; `None` if every element is already in normal form.
    fn from_datatype(datatype: &Datatype) -> Option<Self> {
        match &datatype.class {
            Class::Bool => Some(NormalConversion::Boolean),
            _ if datatype.is_boolean() => Some(NormalConversion::Boolean),
            Class::String { padding, .. } => {
                let is_other = *padding != StringPadding::NullPadded;
                is_other.then_some(NormalConversion::Text(*padding))
            }
            Class::Array { base, .. } => {
                let size = to_usize(base.size.into()).ok().filter(|&size| size > 0)?;
                Some(NormalConversion::Each(
                    size,
                    Box::new(NormalConversion::from_datatype(base)?),
                ))
            }
            Class::Compound(members) if has_no_overlap(members) => {
                let field = |start: u32, datatype: &Datatype| {
                    let start = to_usize(start.into()).ok()?;
                    let end = start.checked_add(to_usize(datatype.size.into()).ok()?)?;
                    Some((start, end, NormalConversion::from_datatype(datatype)?))
                };
                let fields = members.iter();
                let fields = fields.filter_map(|member| field(member.offset, &member.datatype));
                let fields: Vec<_> = fields.collect();
                (!fields.is_empty()).then_some(NormalConversion::Fields(fields))
            }
            _ => None,
        }
    }

    fn apply(&self, element: &mut [u8]) {
        match self {
            NormalConversion::Boolean => {
                let set = element.iter().any(|&byte| byte != 0);
                element.fill(0);
                if let Some(first) = element.first_mut() {
                    *first = set.into();
                }
            }
            NormalConversion::Text(padding) => {
                let text = without_padding(element, *padding).len();
                element[text..].fill(0);
            }
            NormalConversion::Each(size, inner) => {
                let parts = element.chunks_exact_mut(*size);
                parts.for_each(|part| inner.apply(part));
            }
            NormalConversion::Fields(fields) => {
                for (start, end, inner) in fields {
                    if let Some(field) = element.get_mut(*start..*end) {
                        inner.apply(field);
                    }
                }
            }
        }
    }
}

/// Returns whether no two members of a compound overlap. Otherwise the conversion of one member
/// could change another.
fn has_no_overlap(members: &[Member]) -> bool {
    let place = |member: &Member| {
        let end = member.offset.saturating_add(member.datatype.size);
        (member.offset, end)
    };
    let mut places: Vec<(u32, u32)> = members.iter().map(place).collect();
    places.sort_unstable();
    places.is_sorted_by(|(_, end), (start, _)| end <= start)
}

#[cfg(test)]
mod tests {
    use super::*;
    use h5fs_reader::model::datatype::Charset;
    use h5fs_reader::testing::{int, member, type_of};

    fn text(size: u32, padding: StringPadding) -> Datatype {
        let charset = Charset::Ascii;
        type_of(size, Class::String { padding, charset })
    }

    fn applied(datatype: &Datatype, element: &[u8]) -> Option<Vec<u8>> {
        let mut element = element.to_vec();
        NormalConversion::from_datatype(datatype)?.apply(&mut element);
        Some(element)
    }

    /// Expected: the elements as h5py reads them.
    #[test]
    fn elements_equal_those_of_numpy() {
        use StringPadding::{NullPadded, NullTerminated, SpacePadded};
        let terminated = text(4, NullTerminated);
        assert_eq!(applied(&terminated, b"a\0xy").unwrap(), b"a\0\0\0");
        assert_eq!(applied(&terminated, b"abcd").unwrap(), b"abcd");
        assert_eq!(applied(&text(4, SpacePadded), b"a b ").unwrap(), b"a b\0");
        assert_eq!(applied(&text(4, NullPadded), b"a\0xy"), None);
        let boolean = || type_of(1, Class::Bool);
        assert_eq!(applied(&boolean(), &[2]).unwrap(), [1]);
        let base = Box::new(boolean());
        let both = type_of(
            2,
            Class::Array {
                base,
                dims: vec![2],
            },
        );
        let members = vec![
            member("n", 0, int(2)),
            member("b", 2, both),
            member("s", 5, terminated),
        ];
        let record = type_of(9, Class::Compound(members));
        let made = applied(&record, b"\x02\x02\xff\0\x07ab\0c").unwrap();
        assert_eq!(made, b"\x02\x02\x01\0\x07ab\0\0");
        let plain = Class::Compound(vec![member("n", 0, int(2))]);
        assert_eq!(NormalConversion::from_datatype(&type_of(2, plain)), None);
    }

    #[test]
    fn types_with_overlapping_members_are_not_normalized() {
        let made = |offset| {
            let text = text(4, StringPadding::NullTerminated);
            let members = vec![member("n", offset, int(4)), member("s", 0, text)];
            applied(
                &type_of(8, Class::Compound(members)),
                b"a\0xy\x01\x02\x03\x04",
            )
        };
        assert_eq!(made(4).unwrap(), b"a\0\0\0\x01\x02\x03\x04");
        for offset in 0..4 {
            assert_eq!(made(offset), None);
        }
    }
}
