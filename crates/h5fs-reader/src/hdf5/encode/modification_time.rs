//! The object modification time message (HDF5 3.0, IV.A.2.s).

use crate::hdf5::encode::Message;
use crate::hdf5::message::kind;

/// Encodes a time in seconds since 1970 UTC. `H5Oget_info` ignores this message in a version 2
/// object header, and takes the time from
/// [`with_modification_time`](super::object_header::ObjectHeader::with_modification_time). The older
/// `H5Gget_objinfo` reads both.
pub fn encode(seconds: u32) -> Message {
    const VERSION: u8 = 1;
    let mut data = vec![VERSION, 0, 0, 0];
    data.extend(seconds.to_le_bytes());
    Message {
        kind: kind::MODIFICATION_TIME,
        flags: 0,
        data,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The expected bytes are written from the specification.
    #[test]
    fn a_time_has_four_bytes() {
        assert_eq!(
            encode(0x1234_5678).data(),
            [1, 0, 0, 0, 0x78, 0x56, 0x34, 0x12]
        );
    }
}
