//! The object reference count message (HDF5 3.0, IV.A.2.w).

use crate::hdf5::encode::{DO_NOT_SHARE, Message};
use crate::hdf5::message::kind;

/// Encodes the number of hard links to an object, and of uses of a committed datatype. A header
/// needs this message if the number is not 1. The HDF5 library relies on it to visit an object with
/// several names only once, and to end in a cycle of groups.
pub fn encode(count: u32) -> Message {
    const VERSION: u8 = 0;
    let mut data = vec![VERSION];
    data.extend(count.to_le_bytes());
    Message {
        kind: kind::REFERENCE_COUNT,
        flags: DO_NOT_SHARE,
        data,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The message of a group with two names that h5py wrote with `libver="v108"`.
    #[test]
    fn the_bytes_equal_those_of_the_library() {
        assert_eq!(encode(2).data(), [0, 2, 0, 0, 0]);
    }
}
