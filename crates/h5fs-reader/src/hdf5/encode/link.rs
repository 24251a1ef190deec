//! The link message, and the link info and group info messages of a group with compact links (HDF5
//! 3.0, IV.A.2.g, IV.A.2.c and IV.A.2.k).

use crate::error::{Error, Result};
use crate::hdf5::encode::{
    CONSTANT, Message, address_field, charset_number, check_name, length_field,
};
use crate::hdf5::message::kind;
use crate::model::datatype::Charset;

const WHAT: &str = "link message";

/// A link of a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LinkMessage<'a> {
    /// The bytes of the name.
    pub name: &'a [u8],
    /// The encoding that the message declares for the name.
    pub charset: Charset,
    /// The position of the link in the creation order of the group, from 0.
    pub creation_order: u64,
    /// The target of the link.
    pub target: LinkInformation<'a>,
}

/// The target of a link, which the specification calls "Link information".
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LinkInformation<'a> {
    /// The address of an object header.
    Hard(u64),
    /// A path from the group of the link or, with a leading `/`, from the root group.
    Soft(&'a [u8]),
}

/// Encodes a link.
///
/// # Errors
/// `Unsupported` for an empty name, a name with a NUL, or an empty soft link. `Limit` for a message
/// of 64 KiB or more.
pub fn encode(link: &LinkMessage<'_>) -> Result<Message> {
    const VERSION: u8 = 1;
    const NAME_LENGTH_HAS_TWO_BYTES: u8 = 0b01;
    const HAS_CREATION_ORDER: u8 = 0x04;
    const HAS_TYPE: u8 = 0x08;
    const HAS_CHARSET: u8 = 0x10;
    const SOFT: u8 = 1;
    check_texts(link)?;
    let mut flags = HAS_CREATION_ORDER;
    let mut fields = Vec::new();
    if let LinkInformation::Soft(_) = link.target {
        flags |= HAS_TYPE;
        fields.push(SOFT);
    }
    fields.extend(link.creation_order.to_le_bytes());
    // The field of the character set is omitted for ASCII.
    if link.charset != Charset::Ascii {
        flags |= HAS_CHARSET;
        fields.push(charset_number(link.charset));
    }
    match u8::try_from(link.name.len()) {
        Ok(length) => fields.push(length),
        Err(_) => {
            flags |= NAME_LENGTH_HAS_TWO_BYTES;
            fields.extend(length_field(link.name.len(), WHAT)?.to_le_bytes());
        }
    }
    fields.extend(link.name);
    fields.extend(encode_information(link.target)?);
    let data = [&[VERSION, flags][..], &fields].concat();
    Message::new(kind::LINK, 0, data, WHAT)
}

fn check_texts(link: &LinkMessage<'_>) -> Result<()> {
    check_name(link.name, WHAT)?;
    if link.target == LinkInformation::Soft(&[]) {
        let what = format!("{WHAT}: an empty soft link");
        return Err(Error::unsupported(what, None));
    }
    Ok(())
}

fn encode_information(target: LinkInformation<'_>) -> Result<Vec<u8>> {
    match target {
        LinkInformation::Hard(address) => Ok(address.to_le_bytes().to_vec()),
        LinkInformation::Soft(path) => {
            let length = length_field(path.len(), WHAT)?;
            Ok([&length.to_le_bytes()[..], path].concat())
        }
    }
}

/// Encodes the link info message of a group of `count` compact links, whose creation orders are 0
/// to `count - 1`.
pub fn encode_info(count: u64) -> Message {
    const VERSION: u8 = 0;
    const ORDER_TRACKED: u8 = 0b01;
    const ORDER_INDEXED: u8 = 0b10;
    let mut data = vec![VERSION, ORDER_TRACKED | ORDER_INDEXED];
    data.extend(count.to_le_bytes());
    // The fractal heap, and its indices by name and by creation order.
    data.extend([address_field(None); 3].concat());
    Message {
        kind: kind::LINK_INFO,
        flags: 0,
        data,
    }
}

/// Encodes the group info message with the defaults of the library.
pub fn encode_group_info() -> Message {
    const VERSION: u8 = 0;
    const FLAGS: u8 = 0;
    Message {
        kind: kind::GROUP_INFO,
        flags: CONSTANT,
        data: vec![VERSION, FLAGS],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn data(link: LinkMessage<'_>) -> Vec<u8> {
        encode(&link).unwrap().data().to_vec()
    }

    /// The links of a group that h5py wrote with `track_order=True` and `libver="v108"`.
    #[test]
    fn the_bytes_equal_those_of_the_library() {
        let soft = LinkMessage {
            name: b"soft",
            charset: Charset::Ascii,
            creation_order: 0,
            target: LinkInformation::Soft(b"/d"),
        };
        assert_eq!(data(soft), b"\x01\x0c\x01\0\0\0\0\0\0\0\0\x04soft\x02\0/d");
        let hard = LinkMessage {
            name: "é".as_bytes(),
            charset: Charset::Utf8,
            creation_order: 1,
            target: LinkInformation::Hard(0xef),
        };
        let expected = b"\x01\x14\x01\0\0\0\0\0\0\0\x01\x02\xc3\xa9\xef\0\0\0\0\0\0\0";
        assert_eq!(data(hard), expected);
        let info = encode_info(2);
        let expected = [&[0, 3, 2, 0, 0, 0, 0, 0, 0, 0][..], &[0xff; 24]].concat();
        assert_eq!(info.data(), expected);
        assert_eq!(encode_group_info().data(), [0, 0]);
    }

    fn hard(name: &[u8]) -> LinkMessage<'_> {
        LinkMessage {
            name,
            charset: Charset::Ascii,
            creation_order: 0,
            target: LinkInformation::Hard(0),
        }
    }

    /// The expected prefix is written from the specification.
    #[test]
    fn a_long_name_has_a_length_of_two_bytes() {
        let name = [b'n'; 256];
        let long = data(hard(&name));
        assert_eq!(long[..12], [1, 0x05, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
        assert_eq!(data(hard(&name[..255]))[10], 255);
    }

    #[test]
    fn texts_that_no_reader_accepts_are_refused() {
        let soft = |path| LinkMessage {
            target: LinkInformation::Soft(path),
            ..hard(b"n")
        };
        for link in [hard(b""), hard(b"a\0b"), soft(b"")] {
            assert!(matches!(encode(&link), Err(Error::Unsupported { .. })));
        }
        let long = vec![b'n'; 70_000];
        for link in [hard(&long), hard(&long[..65_535]), soft(&long)] {
            assert!(matches!(encode(&link), Err(Error::Limit { .. })));
        }
    }
}
