//! A block as described by its header ("Low-level file layout": Blocks).

use md5::{Digest, Md5};

use crate::asdf::scan;
use crate::asdf::window::Window;
use crate::error::{Error, Result};
use crate::source::{self, Source};
use crate::wire::{Count, Extent, to_u64};

/// The magic bytes of every block.
pub const MAGIC: &[u8; 4] = b"\xd3BLK";

const STREAMED: u32 = 1;

/// Length in bytes of a block header with all known fields, including the magic bytes and the field
/// `header_size`.
pub(crate) const HEADER: u64 = 54;

/// One block as described by its header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Block {
    /// The file offset of the magic bytes.
    pub header_offset: u64,
    /// Whether the block extends to the end of the file. The sizes in its header are then
    /// meaningless.
    pub streamed: bool,
    /// The compression code, padded with NUL. All NUL for an uncompressed block.
    pub compression: [u8; 4],
    /// Number of bytes from the start of the data to the next block.
    pub allocated_size: u64,
    /// Number of stored bytes, as the header states it.
    pub used_size: u64,
    /// Number of decoded bytes, as the header states it.
    pub data_size: u64,
    /// The MD5 checksum in the header. All bytes are zero if the block has no checksum.
    pub checksum: [u8; 16],
    /// File offset of the stored bytes.
    pub data_offset: u64,
    /// Number of stored bytes: `used_size`, or for a streamed block the number of bytes up to the
    /// end of the file.
    pub stored_bytes: u64,
    /// Whether `used_size` exceeds `allocated_size`, and the next block begins directly after the
    /// stored bytes. `allocated_size` is then wrong.
    pub is_overfull: bool,
}

impl Block {
    /// Reads the header of the block whose magic bytes are at the file offset `at`.
    ///
    /// # Errors
    /// `Corrupt` if the magic bytes are missing, or the header is truncated or too short.
    pub fn read(source: &dyn Source, at: u64) -> Result<Self> {
        Self::parse(&mut Window::new(source), at)
    }

    pub(super) fn parse(window: &mut Window<'_>, at: u64) -> Result<Self> {
        let length = window.length();
        let bytes = window.piece(Extent::saturating(at, HEADER))?;
        if to_u64(bytes.len()) < HEADER {
            return Err(Error::corrupt(
                "block header: reaches past the end of the file",
                at,
            ));
        }
        if !bytes.starts_with(MAGIC) {
            return Err(Error::corrupt(
                "block header: its magic number is missing",
                at,
            ));
        }
        let header = HeaderBytes(bytes);
        let header_size = header.number(4, 2);
        if header_size < 48 {
            return Err(Error::corrupt("block header: smaller than 48 bytes", at));
        }
        let data = at.checked_add(6).and_then(|at| at.checked_add(header_size));
        let data = data
            .filter(|&data| data <= length)
            .ok_or_else(|| Error::corrupt("block header: reaches past the end of the file", at))?;
        let streamed = header.number(6, 4) & u64::from(STREAMED) != 0;
        let used_size = header.number(22, 8);
        let mut block = Block {
            header_offset: at,
            streamed,
            compression: header.bytes(10),
            allocated_size: header.number(14, 8),
            used_size,
            data_size: header.number(30, 8),
            checksum: header.bytes(38),
            data_offset: data,
            stored_bytes: if streamed {
                length.minus_or_zero(data)
            } else {
                used_size
            },
            is_overfull: false,
        };
        block.is_overfull = is_overfull(window, &block)?;
        Ok(block)
    }

    /// Returns whether the content is uncompressed.
    pub fn is_plain(&self) -> bool {
        self.compression == [0; 4]
    }

    /// Returns the compression code as text for messages, or `none` for an uncompressed block.
    pub(crate) fn compression_name(&self) -> String {
        if self.is_plain() {
            return "none".to_owned();
        }
        let end = self.compression.iter().rposition(|&byte| byte != 0);
        let name = self.compression.iter().take(end.map_or(0, Count::plus_one));
        name.copied()
            .flat_map(std::ascii::escape_default)
            .map(char::from)
            .collect()
    }

    /// Returns the length of the decoded content in bytes.
    ///
    /// # Errors
    /// `Corrupt` if the sizes, the compression and the streamed flag in the header contradict each
    /// other.
    pub(crate) fn content_length(&self) -> Result<u64> {
        if self.streamed && !self.is_plain() {
            return Err(Error::corrupt(
                "block: streamed and compressed",
                self.header_offset,
            ));
        }
        if !self.streamed && self.used_size > self.allocated_size && !self.is_overfull {
            return Err(Error::corrupt(
                "block: used_size exceeds allocated_size",
                self.header_offset,
            ));
        }
        if !self.streamed && self.is_plain() && self.used_size != self.data_size {
            return Err(Error::corrupt(
                "block: it is not compressed, but used_size differs from data_size",
                self.header_offset,
            ));
        }
        if self.is_plain() {
            Ok(self.stored_bytes)
        } else {
            Ok(self.data_size)
        }
    }

    /// Returns whether the header contains a checksum.
    pub(crate) fn has_checksum(&self) -> bool {
        self.checksum != [0; 16]
    }

    /// Returns whether the MD5 checksum of the stored bytes equals the checksum in the header.
    /// Reads all stored bytes, a piece at a time.
    ///
    /// # Errors
    /// `Io` or `Corrupt` if the stored bytes cannot be read.
    pub(crate) fn matches_checksum(&self, source: &dyn Source) -> Result<bool> {
        const PIECE: u64 = 1 << 20;
        let mut rest = source::check_range(source, self.data_offset, self.stored_bytes, "block")?;
        let mut sum = Md5::new();
        while !rest.is_empty() {
            sum.update(scan::read_truncated(source, rest.first(PIECE))?);
            rest = rest.skip(PIECE);
        }
        Ok(sum.finalize()[..] == self.checksum)
    }
}

/// The bytes of a block header, whose fields are big-endian and at fixed offsets.
struct HeaderBytes<'a>(&'a [u8]);

impl HeaderBytes<'_> {
    fn number(&self, at: usize, width: usize) -> u64 {
        let bytes = self.0.iter().skip(at).take(width);
        bytes.fold(0, |number, &byte| number.wrapping_shl(8) | u64::from(byte))
    }

    fn bytes<const N: usize>(&self, at: usize) -> [u8; N] {
        let mut bytes = [0; N];
        let from = self.0.iter().skip(at);
        bytes
            .iter_mut()
            .zip(from)
            .for_each(|(to, from)| *to = *from);
        bytes
    }
}

/// Returns whether the block stores more bytes than were allocated and the next block follows the
/// stored bytes directly. The allocated size is then wrong.
fn is_overfull(window: &mut Window<'_>, block: &Block) -> Result<bool> {
    if block.streamed || block.used_size <= block.allocated_size {
        return Ok(false);
    }
    let mut begins_at = |length: u64| match block.data_offset.checked_add(length) {
        Some(at) => Ok(window.piece(Extent::saturating(at, 4))? == MAGIC),
        None => Ok(false),
    };
    Ok(!begins_at(block.allocated_size)? && begins_at(block.used_size)?)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::source::memory::MemorySource;

    /// Returns an uncompressed block of `content` with `allocated` bytes.
    pub(in crate::asdf) fn block(content: &[u8], allocated: u64) -> Vec<u8> {
        let size = u64::try_from(content.len()).unwrap();
        let mut bytes = MAGIC.to_vec();
        bytes.extend(48_u16.to_be_bytes());
        bytes.extend([0; 8]);
        for size in [allocated, size, size] {
            bytes.extend(size.to_be_bytes());
        }
        bytes.extend([0; 16]);
        bytes.extend(content);
        bytes.resize(54 + usize::try_from(allocated).unwrap(), b'-');
        bytes
    }

    fn read(bytes: Vec<u8>) -> Result<Block> {
        Block::read(&MemorySource::new(bytes), 0)
    }

    #[test]
    fn a_plain_block_has_one_size() {
        let mut bytes = block(b"abcd", 8);
        bytes[37] = 3;
        assert!(read(bytes).unwrap().content_length().is_err());
    }

    #[test]
    fn a_streamed_block_reaches_to_the_end() {
        let mut bytes = block(b"", 0);
        bytes[9] = 1;
        bytes[14..38].fill(0xff);
        bytes.extend(b"\xd3BLK and more");
        assert_eq!(read(bytes).unwrap().content_length(), Ok(13));
    }

    #[test]
    fn contradictory_headers_are_errors_of_their_block() {
        let mut huge = block(b"ab", 2);
        huge[14..22].fill(0xff);
        assert!(read(huge).unwrap().content_length().is_ok());
        let mut small = block(b"ab", 2);
        small[5] = 40;
        assert!(read(small).is_err());
    }
}
