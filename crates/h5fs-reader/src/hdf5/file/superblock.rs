//! The superblock: the widths of the file's numbers, and the addresses of its first structures
//! (HDF5 3.0, II.A "Disk Format: Level 0A").

use crate::error::{Error, Result};
use crate::hdf5::file::number_form::{Address, AddressEncoding};
use crate::source::{Source, read_block};
use crate::wire::checksum::lookup3;
use crate::wire::{Count, Cursor};

/// The first bytes of a superblock.
pub(crate) const SIGNATURE: &[u8; 8] = b"\x89HDF\r\n\x1a\n";

/// Number of bytes that are enough for a superblock of every version, whatever its sizes of offsets
/// and lengths.
const MAX_BYTES: u64 = 512;

/// The fields of a superblock that a reader needs. Addresses are absolute file offsets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Superblock {
    /// Version of the superblock, 0 to 3.
    pub(crate) version: u8,
    /// The encoding of addresses and lengths. The stored base address may differ from the offset of
    /// the signature, if bytes were added or removed before the superblock. The offset of the
    /// signature is then used as the base address, and the stored end of the file is moved
    /// accordingly.
    pub(crate) address_encoding: AddressEncoding,
    /// File consistency flags, which are meaningful from version 3 on.
    pub(crate) consistency_flags: u8,
    /// The address of the object header of the superblock extension, if there is one.
    pub(crate) extension: Option<Address>,
    /// The address of the driver information block, which only versions 0 and 1 can have.
    pub(crate) driver_information: Option<Address>,
    /// The end of the file as an absolute offset, according to the superblock. 0 if the superblock
    /// does not store it.
    pub(crate) end_of_file: u64,
    /// The address of the object header of the root group.
    pub(crate) root: Address,
}

/// The program that is writing the file, or that never closed it, according to the consistency
/// flags.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WriterState {
    /// No writer.
    None,
    /// A single writer that appends and keeps the file readable for multiple readers (SWMR).
    Swmr,
    /// A writer that does not keep the file readable.
    NotSwmr,
}

/// Finds the signature at offset 0, 512, or each double of the previous offset. Returns the offset
/// of the signature, or `None` if there is none.
pub(crate) fn find_signature(source: &dyn Source) -> Option<u64> {
    let offsets = std::iter::once(0).chain(std::iter::successors(Some(512_u64), |offset| {
        offset.checked_mul(2)
    }));
    let mut signature = [0; SIGNATURE.len()];
    offsets
        .take_while(|&offset| offset < source.length())
        .find(|&offset| source.read_at(offset, &mut signature).is_ok() && signature == *SIGNATURE)
}

impl Superblock {
    /// Reads the superblock whose signature is at `at`.
    ///
    /// # Errors
    /// `Corrupt` if the superblock is truncated, its checksum is wrong, or its sizes of offsets and
    /// lengths are not 2, 4, 8, 16 or 32. `Unsupported` for an unknown version.
    pub(crate) fn read(source: &dyn Source, at: u64) -> Result<Self> {
        let length = source.length().minus_or_zero(at).min(MAX_BYTES);
        let block = read_block(source, at, length, "superblock")?;
        let mut cursor = Cursor::new(&block, at, "superblock");
        cursor.expect_signature(SIGNATURE)?;
        match cursor.u8()? {
            version @ 0..=1 => Self::read_old(cursor, version, at),
            version @ 2..=3 => Self::read_new(cursor, version, at, &block),
            version => Err(cursor.unsupported(&format!("version {version}"))),
        }
    }

    /// Returns the writer according to the file consistency flags, which have a meaning only from
    /// version 3 on.
    pub(crate) fn writer(&self) -> WriterState {
        const WRITE_ACCESS: u8 = 0b001;
        const SWMR_WRITE: u8 = 0b100;
        match (
            self.version,
            self.consistency_flags & (WRITE_ACCESS | SWMR_WRITE),
        ) {
            (..3, _) | (_, 0) => WriterState::None,
            (_, flags) if flags == WRITE_ACCESS | SWMR_WRITE => WriterState::Swmr,
            _ => WriterState::NotSwmr,
        }
    }

    fn read_old(mut cursor: Cursor<'_>, version: u8, base: u64) -> Result<Self> {
        cursor.skip(4)?; // versions of free space, root entry and shared headers, reserved
        let form = AddressEncoding::read(&mut cursor, base)?;
        cursor.skip(1 + 2 + 2)?; // reserved, leaf and internal node K of groups
        cursor.skip(4)?; // consistency flags, unused in these versions
        if version == 1 {
            cursor.skip(2 + 2)?; // K of indexed storage, reserved
        }
        let stored_base = cursor.uint(form.size_of_offsets.bytes())?;
        form.read_address(&mut cursor)?; // free space
        let end_of_file = read_end_of_file(form, &mut cursor, stored_base)?;
        let driver_information = form.read_address(&mut cursor)?;
        cursor.skip(form.size_of_lengths.bytes())?; // link name offset of the root entry
        let root = read_root_address(form, &mut cursor)?;
        Ok(Superblock {
            version,
            address_encoding: form,
            consistency_flags: 0,
            extension: None,
            driver_information,
            end_of_file,
            root,
        })
    }

    fn read_new(mut cursor: Cursor<'_>, version: u8, base: u64, block: &[u8]) -> Result<Self> {
        let form = AddressEncoding::read(&mut cursor, base)?;
        let consistency_flags = cursor.u8()?;
        let stored_base = cursor.uint(form.size_of_offsets.bytes())?;
        let extension = form.read_address(&mut cursor)?;
        let end_of_file = read_end_of_file(form, &mut cursor, stored_base)?;
        let root = read_root_address(form, &mut cursor)?;
        let body = block.get(..cursor.position()).unwrap_or_default();
        if cursor.u32()? != lookup3(body) {
            return Err(Error::corrupt("superblock: wrong checksum", base));
        }
        Ok(Superblock {
            version,
            address_encoding: form,
            consistency_flags,
            extension,
            driver_information: None,
            end_of_file,
            root,
        })
    }
}

fn read_root_address(form: AddressEncoding, cursor: &mut Cursor<'_>) -> Result<Address> {
    let root = form.read_address(cursor)?;
    root.ok_or_else(|| cursor.corrupt("the root group has no address"))
}

/// Reads the end-of-file address and returns it as an absolute offset. The offset is adjusted to
/// the actual base address. Returns 0 for the undefined address.
fn read_end_of_file(
    form: AddressEncoding,
    cursor: &mut Cursor<'_>,
    stored_base: u64,
) -> Result<u64> {
    let stored = cursor.optional_uint(form.size_of_offsets.bytes())?;
    // An end before the base is clamped. The end is only compared with the file's length.
    let end = |stored: u64| {
        let relative = stored.minus_or_zero(stored_base);
        relative.plus(form.base)
    };
    Ok(stored.map_or(0, end))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hdf5::testing;
    use crate::source::memory::MemorySource;

    fn version_0(user_block: usize) -> Vec<u8> {
        let mut file = vec![b'u'; user_block];
        file.extend_from_slice(SIGNATURE);
        file.extend_from_slice(&[0, 0, 0, 0, 0, 8, 8, 0, 4, 0, 16, 0, 0, 0, 0, 0]);
        for address in [0, u64::MAX, 2048, u64::MAX, 0, 96] {
            file.extend_from_slice(&u64::to_le_bytes(address));
        }
        file
    }

    #[test]
    fn consistency_flags_apply_from_version_3() {
        let source = MemorySource::new(version_0(0));
        let read = Superblock::read(&source, 0).unwrap();
        let writer = |version, consistency_flags| {
            let superblock = Superblock {
                version,
                consistency_flags,
                ..read.clone()
            };
            superblock.writer()
        };
        assert_eq!(writer(3, 0), WriterState::None);
        assert_eq!(writer(3, 1), WriterState::NotSwmr);
        assert_eq!(writer(3, 4), WriterState::NotSwmr);
        assert_eq!(writer(3, 5), WriterState::Swmr);
        assert_eq!(writer(2, 5), WriterState::None);
    }

    #[test]
    fn addresses_begin_after_the_user_block() {
        let source = MemorySource::new(version_0(1024));
        let at = find_signature(&source).unwrap();
        let superblock = Superblock::read(&source, at).unwrap();
        assert_eq!(
            (superblock.address_encoding.base, superblock.root),
            (1024, testing::at(1024 + 96))
        );
        assert_eq!(superblock.end_of_file, 1024 + 2048);
        assert_eq!(superblock.driver_information, None);
    }

    #[test]
    fn the_signature_is_found_only_at_doubling_offsets() {
        assert_eq!(
            find_signature(&MemorySource::new(version_0(512))),
            Some(512)
        );
        assert_eq!(find_signature(&MemorySource::new(version_0(1536))), None);
        assert_eq!(find_signature(&MemorySource::new(vec![])), None);
    }

    #[test]
    fn odd_sizes_of_numbers_are_refused() {
        let mut file = version_0(0);
        file[13] = 3;
        assert!(Superblock::read(&MemorySource::new(file), 0).is_err());
    }
}
