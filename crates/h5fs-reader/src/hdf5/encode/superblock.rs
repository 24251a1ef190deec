//! The superblock, version 2 (HDF5 3.0, II.A "Disk Format: Level 0A").

use crate::hdf5::encode::address_field;
use crate::hdf5::file::superblock::SIGNATURE;
use crate::wire::checksum::lookup3;

/// Number of bytes of the superblock, which begins at address 0.
pub const LENGTH: u64 = 48;

/// The fields of the superblock that differ from file to file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Superblock {
    /// The address of the object header of the root group.
    pub root: u64,
    /// The address after the last byte of the file. The HDF5 library refuses a shorter file.
    pub end_of_file: u64,
}

impl Superblock {
    /// Returns the [`LENGTH`] bytes of the superblock.
    pub fn encode(&self) -> Vec<u8> {
        const VERSION: u8 = 2;
        const SIZE_OF_OFFSETS: u8 = 8;
        const SIZE_OF_LENGTHS: u8 = 8;
        const CONSISTENCY_FLAGS: u8 = 0;
        const BASE: u64 = 0;
        let mut block = SIGNATURE.to_vec();
        block.extend([VERSION, SIZE_OF_OFFSETS, SIZE_OF_LENGTHS, CONSISTENCY_FLAGS]);
        let extension = None;
        for address in [
            Some(BASE),
            extension,
            Some(self.end_of_file),
            Some(self.root),
        ] {
            block.extend(address_field(address));
        }
        block.extend(lookup3(&block).to_le_bytes());
        block
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The superblock of a file that h5py wrote with `libver="v108"`.
    #[test]
    fn the_bytes_equal_those_of_the_library() {
        let superblock = Superblock {
            root: 0x30,
            end_of_file: 0x3408,
        };
        let mut expected = b"\x89HDF\r\n\x1a\n\x02\x08\x08\0".to_vec();
        expected.extend([0; 8]);
        expected.extend([0xff; 8]);
        expected.extend([0x08, 0x34, 0, 0, 0, 0, 0, 0, 0x30, 0, 0, 0, 0, 0, 0, 0]);
        expected.extend([0x12, 0x28, 0x5c, 0x29]);
        assert_eq!(superblock.encode(), expected);
        assert_eq!(LENGTH, expected.len() as u64);
    }
}
