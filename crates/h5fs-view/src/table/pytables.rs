//! The meaning of values that PyTables stores in HDF5 types without a defined meaning.
//!
//! | HDF5 | PyTables |
//! |---|---|
//! | bit field of 8 bits | boolean |
//! | time of 4 bytes | seconds since 1970 |
//! | time of 8 bytes | seconds since 1970 in the upper half, signed microseconds in the lower |
//!
//! An attribute of the root group identifies a file that PyTables wrote (PyTables user's guide,
//! "PyTables file format").

use h5fs_reader::error::Result;
use h5fs_reader::model::Container;
use h5fs_reader::model::attribute_value::attribute_exists;
use h5fs_reader::model::datatype::{Charset, Class, Datatype, Member, StringPadding};
use h5fs_reader::model::number;
use h5fs_reader::model::shape::product;
use h5fs_reader::wire::to_usize;

use crate::elements::Elements;
use crate::elements::converted::ConvertedElements;
use crate::table::time::{PandasTime, TimeUnit};

/// The attribute of the root group that PyTables writes in each file.
const FORMAT_ATTRIBUTE: &[u8] = b"PYTABLES_FORMAT_VERSION";

/// Maximum length of an instant as text: `1901-12-13T20:45:52.000001`.
const INSTANT_LENGTH: u32 = 26;

/// Converts elements in a file of PyTables to the types that they represent. Instants become texts
/// (ISO 8601). Elements in any other file are returned unchanged.
///
/// # Errors
/// Fails if the attribute of the root group cannot be read; `Limit` for an array that is longer
/// than any file can be.
pub fn convert_elements(container: &dyn Container, elements: Elements) -> Result<Elements> {
    let (Some(dims), Some(datatype)) = (&elements.dims, represented_type(&elements.datatype))
    else {
        return Ok(elements);
    };
    if !attribute_exists(container, container.root(), FORMAT_ATTRIBUTE)? {
        return Ok(elements);
    }
    let (stored, meant) = (elements.datatype, datatype.clone());
    let content = ConvertedElements {
        count: product(dims)?,
        stored_size: stored.size.into(),
        size: meant.size.into(),
        content: elements.content,
        conversion: move |element: &[u8], out: &mut Vec<u8>| convert(&stored, &meant, element, out),
    };
    Ok(Elements {
        datatype,
        dims: elements.dims,
        content: Box::new(content),
    })
}

/// Returns the datatype that elements of type `stored` represent; `None` if it equals `stored`. The
/// members of a compound have no gaps between them.
fn represented_type(stored: &Datatype) -> Option<Datatype> {
    match &stored.class {
        Class::Bitfield { .. } if stored.size == 1 => Some(Datatype {
            size: 1,
            class: Class::Bool,
        }),
        Class::Time { .. } if matches!(stored.size, 4 | 8) => Some(Datatype {
            size: INSTANT_LENGTH,
            class: Class::String {
                padding: StringPadding::NullPadded,
                charset: Charset::Ascii,
            },
        }),
        Class::Array { base, dims } => {
            let base = represented_type(base)?;
            let size = dims
                .iter()
                .try_fold(base.size, |size, &dim| size.checked_mul(dim))?;
            let (base, dims) = (Box::new(base), dims.clone());
            let class = Class::Array { base, dims };
            Some(Datatype { size, class })
        }
        Class::Compound(members) => represented_record(members),
        _ => None,
    }
}

fn represented_record(members: &[Member]) -> Option<Datatype> {
    let meant: Vec<_> = members
        .iter()
        .map(|member| represented_type(&member.datatype))
        .collect();
    if meant.iter().all(Option::is_none) {
        return None;
    }
    let mut size = 0_u32;
    let mut fields = Vec::with_capacity(members.len());
    for (member, meant) in members.iter().zip(meant) {
        let datatype = meant.unwrap_or_else(|| member.datatype.clone());
        let offset = size;
        size = size.checked_add(datatype.size)?;
        fields.push(Member {
            name: member.name.clone(),
            offset,
            datatype,
        });
    }
    let class = Class::Compound(fields);
    Some(Datatype { size, class })
}

/// Converts an element from the datatype `stored` to the datatype `meant`, and appends it.
fn convert(stored: &Datatype, meant: &Datatype, element: &[u8], out: &mut Vec<u8>) {
    match (&stored.class, &meant.class) {
        (&Class::Time { order, bits }, Class::String { .. }) => {
            let word = number::bit_field(element, order, bits).unwrap_or(0);
            write_instant(word, element.len() > 4, out);
        }
        (Class::Array { base, .. }, Class::Array { base: meant, .. }) => {
            let size = to_usize(base.size.into()).unwrap_or(usize::MAX).max(1);
            for element in element.chunks_exact(size) {
                convert(base, meant, element, out);
            }
        }
        (Class::Compound(members), Class::Compound(fields)) => {
            for (member, field) in members.iter().zip(fields) {
                let start = to_usize(member.offset.into()).unwrap_or(usize::MAX);
                let size = to_usize(member.datatype.size.into()).unwrap_or(usize::MAX);
                let value = element.get(start..start.saturating_add(size));
                convert(
                    &member.datatype,
                    &field.datatype,
                    value.unwrap_or_default(),
                    out,
                );
            }
        }
        _ => out.extend_from_slice(element),
    }
}

/// Appends an instant as text, padded with NULs. `word` is the stored integer: seconds, or, with
/// `is_long`, seconds in the upper and microseconds in the lower half.
fn write_instant(word: u128, is_long: bool, out: &mut Vec<u8>) {
    let end = out.len() + INSTANT_LENGTH as usize;
    let half = |shift: u32| i64::from((word >> shift) as u32 as i32);
    let (of_second, count) = if !is_long {
        (1, half(0))
    } else {
        (1_000_000, half(32) * 1_000_000 + half(0))
    };
    let is_utc = false;
    let unit = TimeUnit {
        per_second: of_second,
    };
    PandasTime::Instant { unit, is_utc }.write(count, out);
    out.resize(end, 0);
}

#[cfg(test)]
mod tests {
    use super::*;
    use h5fs_reader::model::datatype::{BitRange, ByteOrder};
    use h5fs_reader::testing::{member, type_of};

    fn bits(size: u32) -> BitRange {
        let precision = (size * 8) as u16;
        BitRange {
            offset: 0,
            precision,
        }
    }

    fn time(size: u32, order: ByteOrder) -> Datatype {
        let bits = bits(size);
        type_of(size, Class::Time { order, bits })
    }

    fn flag() -> Datatype {
        let (order, bits) = (ByteOrder::Little, bits(1));
        type_of(1, Class::Bitfield { order, bits })
    }

    fn convert_element(stored: &Datatype, element: &[u8]) -> String {
        let (meant, mut out) = (represented_type(stored).unwrap(), Vec::new());
        convert(stored, &meant, element, &mut out);
        assert_eq!(out.len(), meant.size as usize);
        String::from_utf8(out).unwrap().replace('\0', " ")
    }

    /// The bytes are those that PyTables 3.11 wrote for the times 1700000000.25 and -1.5. Expected
    /// is Python's `datetime.utcfromtimestamp(…).isoformat()`, without trailing zeros.
    #[test]
    fn times_are_instants() {
        use ByteOrder::{Big, Little};
        let long = time(8, Little);
        let later = [0x90, 0xd0, 3, 0, 0, 0xf1, 0x53, 0x65];
        assert_eq!(convert_element(&long, &later), "2023-11-14T22:13:20.25    ");
        let before = [0xe0, 0x5e, 0xf8, 0xff, 0xff, 0xff, 0xff, 0xff];
        assert_eq!(
            convert_element(&long, &before),
            "1969-12-31T23:59:58.5     "
        );
        let short = [0x65, 0x53, 0xf1, 0];
        let text = convert_element(&time(4, Big), &short);
        assert_eq!(text, "2023-11-14T22:13:20       ");
    }

    #[test]
    fn fields_of_a_record_are_packed() {
        let pair = type_of(
            2,
            Class::Array {
                base: Box::new(flag()),
                dims: vec![2],
            },
        );
        let record = type_of(
            12,
            Class::Compound(vec![
                member("set", 0, pair),
                member("at", 8, time(4, ByteOrder::Little)),
            ]),
        );
        let text = convert_element(&record, &[0, 1, 9, 9, 9, 9, 9, 9, 5, 0, 0, 0]);
        assert_eq!(text, " \u{1}1970-01-01T00:00:05       ");
        let plain = type_of(
            4,
            Class::Compound(vec![member("x", 0, time(2, ByteOrder::Big))]),
        );
        assert_eq!(represented_type(&plain), None);
    }
}
