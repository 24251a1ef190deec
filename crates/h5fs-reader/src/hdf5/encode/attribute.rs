//! The attribute message, version 3, and the attribute info message of an object with compact
//! attributes (HDF5 3.0, IV.A.2.m and IV.A.2.v).

use crate::error::Result;
use crate::hdf5::encode::{
    DO_NOT_SHARE, Message, address_field, charset_number, check_name, length_field,
};
use crate::hdf5::message::kind;
use crate::model::datatype::Charset;
use crate::wire::Count;

const WHAT: &str = "attribute message";

/// An attribute of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AttributeMessage<'a> {
    /// The bytes of the name.
    pub name: &'a [u8],
    /// The encoding that the message declares for the name.
    pub charset: Charset,
    /// The datatype message, or a pointer to the message of a committed datatype.
    pub datatype: &'a Message,
    /// The dataspace message.
    pub dataspace: &'a Message,
    /// The elements as stored, in C order.
    pub elements: &'a [u8],
}

/// Encodes an attribute. The length of `elements` must be the product of the number of elements and
/// their size.
///
/// # Errors
/// `Limit` for a message of 64 KiB or more, `Unsupported` for a name that is empty or contains a
/// NUL.
pub fn encode(attribute: &AttributeMessage<'_>) -> Result<Message> {
    const VERSION: u8 = 3;
    const FLAGS: u8 = 0;
    let AttributeMessage {
        name,
        charset,
        datatype,
        dataspace,
        elements,
    } = attribute;
    check_name(name, WHAT)?;
    let mut data = vec![VERSION, FLAGS];
    let name_size = name.len().plus_one();
    for size in [name_size, datatype.data.len(), dataspace.data.len()] {
        data.extend(length_field(size, WHAT)?.to_le_bytes());
    }
    data.push(charset_number(*charset));
    data.extend_from_slice(name);
    data.push(0);
    data.extend(&datatype.data);
    data.extend(&dataspace.data);
    data.extend_from_slice(elements);
    Message::new(kind::ATTRIBUTE, 0, data, WHAT)
}

/// Encodes the attribute info message of an object of `count` compact attributes, whose creation
/// orders are 0 to `count - 1`. Without this message, `h5diff` fails and the netCDF library loses
/// the order of the attributes.
pub fn encode_info(count: u16) -> Message {
    const VERSION: u8 = 0;
    const ORDER_TRACKED: u8 = 0b01;
    let mut data = vec![VERSION, ORDER_TRACKED];
    data.extend(count.to_le_bytes());
    // The fractal heap and its index by name.
    data.extend([address_field(None); 2].concat());
    Message {
        kind: kind::ATTRIBUTE_INFO,
        flags: DO_NOT_SHARE,
        data,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Error;
    use crate::hdf5::encode::{dataspace, datatype};
    use crate::model::datatype::ByteOrder;
    use crate::model::{Datatype, Shape};

    fn encode_attribute(name: &[u8], datatype: &Message, elements: &[u8]) -> Result<Message> {
        let scalar = dataspace::encode(&Shape::fixed(vec![])).unwrap();
        encode(&AttributeMessage {
            name,
            charset: Charset::Ascii,
            datatype,
            dataspace: &scalar,
            elements,
        })
    }

    fn int32() -> Message {
        datatype::encode(&Datatype::integer(4, true, ByteOrder::Little)).unwrap()
    }

    /// The attribute that h5py wrote for `attrs["a"] = np.int32(7)` with `libver="v108"`.
    #[test]
    fn the_bytes_equal_those_of_the_library() {
        let message = encode_attribute(b"a", &int32(), &[7, 0, 0, 0]).unwrap();
        let mut expected = b"\x03\0\x02\0\x0c\0\x04\0\0a\0".to_vec();
        expected.extend([0x10, 8, 0, 0, 4, 0, 0, 0, 0, 0, 32, 0]);
        expected.extend([2, 0, 0, 0]);
        expected.extend([7, 0, 0, 0]);
        assert_eq!(message.data(), expected);
    }

    /// The expected bytes are written from the specification.
    #[test]
    fn the_info_message_has_no_addresses() {
        let expected = [&[0, 1, 2, 1][..], &[0xff; 16]].concat();
        assert_eq!(encode_info(0x102).data(), expected);
    }

    #[test]
    fn an_attribute_has_less_than_64_kib() {
        let overhead = encode_attribute(b"a", &int32(), &[]).unwrap().data().len();
        let elements = vec![0; 65_536 - overhead];
        let longest = encode_attribute(b"a", &int32(), &elements[1..]).unwrap();
        assert_eq!(longest.data().len(), 65_535);
        let longer = encode_attribute(b"a", &int32(), &elements);
        assert!(matches!(longer, Err(Error::Limit { .. })));
        let long_name = encode_attribute(&[b'n'; 70_000], &int32(), &[]);
        assert!(matches!(long_name, Err(Error::Limit { .. })));
    }

    #[test]
    fn names_that_the_library_refuses_are_refused() {
        for name in [&b""[..], b"a\0b"] {
            let attribute = encode_attribute(name, &int32(), &[0; 4]);
            assert!(matches!(attribute, Err(Error::Unsupported { .. })));
        }
    }
}
