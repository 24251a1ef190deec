//! The object header, version 2, in one chunk without continuations (HDF5 3.0, IV.A.1.b).

use crate::error::{Error, Result};
use crate::hdf5::encode::{Message, length_field};
use crate::hdf5::message::kind;
use crate::limits;
use crate::wire::checksum::lookup3;
use crate::wire::{Count, to_u64};

const SIGNATURE: &[u8; 4] = b"OHDR";
const VERSION: u8 = 2;

/// Header flag: the field "Size of Chunk #0" has four bytes.
const SIZE_HAS_FOUR_BYTES: u8 = 0b10;
/// Header flag: the creation order of attributes is tracked, so that each message has a field
/// "Creation Order" of two bytes.
const ATTRIBUTE_ORDER_TRACKED: u8 = 0b100;
/// Header flag: the four times of the object are stored.
const TIMES_STORED: u8 = 0x20;

/// Number of bytes of the four times.
const TIMES: usize = 4 * 4;
/// Number of bytes of the other fields before the messages: signature, version, flags and size.
const PREFIX: usize = 4 + 1 + 1 + 4;
const CHECKSUM: usize = 4;

/// An object header to which messages are added in order.
#[derive(Debug, Clone, Default)]
pub struct ObjectHeader {
    modification_time: Option<u32>,
    message_count: usize,
    attribute_count: u16,
    /// The encoded messages.
    messages: Vec<u8>,
    /// The length of `messages`.
    size: u32,
}

impl ObjectHeader {
    /// Creates a header without messages and without times.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the modification time, in seconds since 1970 UTC. The header also needs an access,
    /// change and birth time, which become the same time. `H5Oget_info` takes the time of a version
    /// 2 header only from these fields, and ignores the modification time message.
    #[must_use]
    pub fn with_modification_time(mut self, seconds: u32) -> Self {
        self.modification_time = Some(seconds);
        self
    }

    /// Appends a message. The creation order of an attribute is the number of attributes before it.
    ///
    /// # Errors
    /// `Limit` for a header that the reader of this crate would refuse: more than
    /// [`limits::HEADER_MESSAGES`] messages or [`limits::HEADER_BYTES`] bytes. `Limit` for more
    /// than 65,535 attributes, because the creation order has two bytes.
    pub fn add(&mut self, message: &Message) -> Result<()> {
        let what = "messages of an object header";
        Error::check_room(self.message_count, limits::HEADER_MESSAGES, what)?;
        let creation_order = self.next_creation_order(message)?;
        let length = length_field(message.data.len(), "header message")?;
        let [kind, _] = message.kind.to_le_bytes();
        self.messages.push(kind);
        self.messages.extend(length.to_le_bytes());
        self.messages.push(message.flags);
        self.messages.extend(creation_order.to_le_bytes());
        self.messages.extend(&message.data);
        self.message_count = self.message_count.plus_one();
        let what = "bytes of an object header";
        Error::check_limit(self.length(), limits::HEADER_BYTES, what)?;
        let size = u32::try_from(self.messages.len());
        self.size = size.map_err(|_| Error::limit(what, limits::HEADER_BYTES))?;
        Ok(())
    }

    /// Returns the creation order of a message, and counts attributes. Other messages than
    /// attributes have creation order 0.
    fn next_creation_order(&mut self, message: &Message) -> Result<u16> {
        if message.kind != kind::ATTRIBUTE {
            return Ok(0);
        }
        let order = self.attribute_count;
        let next = order.checked_add(1);
        let what = "attributes of an object header";
        self.attribute_count = next.ok_or_else(|| Error::limit(what, u64::from(u16::MAX)))?;
        Ok(order)
    }

    /// Returns the length of the header in bytes.
    pub fn length(&self) -> u64 {
        let times = self.modification_time.map_or(0, |_| TIMES);
        to_u64(Count::sum([PREFIX, times, self.messages.len(), CHECKSUM]))
    }

    /// Returns the [`length`](Self::length) bytes of the header.
    pub fn encode(&self) -> Vec<u8> {
        let flags = SIZE_HAS_FOUR_BYTES | ATTRIBUTE_ORDER_TRACKED;
        let mut block = SIGNATURE.to_vec();
        block.push(VERSION);
        match self.modification_time {
            None => block.push(flags),
            Some(seconds) => {
                block.push(flags | TIMES_STORED);
                block.extend([seconds.to_le_bytes(); 4].concat());
            }
        }
        block.extend(self.size.to_le_bytes());
        block.extend(&self.messages);
        block.extend(lookup3(&block).to_le_bytes());
        block
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hdf5::encode::CONSTANT;

    fn message(kind: u16, flags: u8, data: &[u8]) -> Message {
        let data = data.to_vec();
        Message { kind, flags, data }
    }

    /// The bytes are written from the specification. An independent implementation of lookup3 gave
    /// the checksum.
    #[test]
    fn only_attributes_are_numbered() {
        let mut header = ObjectHeader::new();
        header
            .add(&message(kind::GROUP_INFO, CONSTANT, &[0, 0]))
            .unwrap();
        header
            .add(&message(kind::ATTRIBUTE, 0, &[7, 8, 9]))
            .unwrap();
        header.add(&message(kind::ATTRIBUTE, 0, &[])).unwrap();
        let mut expected = b"OHDR\x02\x06\x17\0\0\0".to_vec();
        expected.extend([0x0a, 2, 0, 1, 0, 0, 0, 0]);
        expected.extend([0x0c, 3, 0, 0, 0, 0, 7, 8, 9]);
        expected.extend([0x0c, 0, 0, 0, 1, 0]);
        expected.extend([0xed, 0x6c, 0x90, 0x3a]);
        assert_eq!(header.encode(), expected);
        assert_eq!(header.length(), expected.len() as u64);
    }

    /// The bytes and the checksum are from the same sources.
    #[test]
    fn one_time_becomes_four() {
        let header = ObjectHeader::new().with_modification_time(0x0102_0304);
        let mut expected = b"OHDR\x02\x26".to_vec();
        expected.extend([4, 3, 2, 1].repeat(4));
        expected.extend([0; 4]);
        expected.extend([0x82, 0xcb, 0xbb, 0x52]);
        assert_eq!(header.encode(), expected);
        assert_eq!(header.length(), expected.len() as u64);
    }

    #[test]
    fn the_length_of_a_header_is_limited() {
        let mut header = ObjectHeader::new();
        let long = message(kind::LINK, 0, &[0; 65_535]);
        let failure = (0..300).find_map(|_| header.add(&long).err());
        assert!(matches!(failure, Some(Error::Limit { .. })));
        let mut header = ObjectHeader::new();
        let attribute = message(kind::ATTRIBUTE, 0, &[]);
        for _ in 0..65_535 {
            header.add(&attribute).unwrap();
        }
        assert!(matches!(header.add(&attribute), Err(Error::Limit { .. })));
    }
}
