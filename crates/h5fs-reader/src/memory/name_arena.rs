//! An arena of names, stored in blocks of equal size. Growing the arena never copies names into a
//! buffer of twice the size, and small blocks fit into memory that was freed elsewhere.

use crate::wire::Count;

/// Length in bytes, with the prefix, from which a name gets a block of its own.
const LONG_NAME_BYTES: usize = NameArena::BLOCK_BYTES / 16;

/// Size in bytes of the length prefix that is stored before each name.
const PREFIX: usize = size_of::<u16>();

/// An append-only store of names. Each name is stored after its length in two bytes.
#[derive(Debug, Default)]
pub struct NameArena {
    blocks: Vec<Vec<u8>>,
    /// Index of the block to which the next short names are added.
    open_block: usize,
    weight: usize,
}

/// The position of a name in the arena.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NamePosition(u32);

impl NameArena {
    /// Size in bytes of a block.
    pub(crate) const BLOCK_BYTES: usize = 64 << 10;

    /// Adds a name and returns its position. Returns `None` if the name, or the arena, would be too
    /// long.
    pub fn put(&mut self, name: &[u8]) -> Option<NamePosition> {
        let length = u16::try_from(name.len()).ok()?.to_le_bytes();
        let needed = name.len().checked_add(length.len())?;
        let block = if needed > LONG_NAME_BYTES {
            self.add_block(needed)
        } else {
            self.block_with_space(needed)
        };
        let bytes = self.blocks.get_mut(block)?;
        let at = block
            .checked_mul(Self::BLOCK_BYTES)?
            .checked_add(bytes.len())?;
        bytes.extend(length);
        bytes.extend_from_slice(name);
        u32::try_from(at).ok().map(NamePosition)
    }

    /// Returns the index of a block with room for `needed` more bytes.
    fn block_with_space(&mut self, needed: usize) -> usize {
        let open = self.blocks.get(self.open_block);
        let room = open.map_or(0, |open| Self::BLOCK_BYTES.minus_or_zero(open.len()));
        if room < needed {
            self.open_block = self.add_block(Self::BLOCK_BYTES);
        }
        self.open_block
    }

    fn add_block(&mut self, bytes: usize) -> usize {
        // Many arenas hold only a few names, so the first block grows with its names.
        let room = if self.blocks.is_empty() { 0 } else { bytes };
        self.blocks.push(Vec::with_capacity(room));
        self.weight = self.weight.plus(bytes);
        self.blocks.len().minus_or_zero(1)
    }

    /// Returns the name at a position.
    pub fn get(&self, NamePosition(at): NamePosition) -> &[u8] {
        let at = usize::try_from(at).unwrap_or(usize::MAX);
        let bytes = self.blocks.get(at / Self::BLOCK_BYTES);
        let name = bytes.and_then(|bytes| bytes.get(at % Self::BLOCK_BYTES..));
        let name = name.and_then(<[u8]>::split_first_chunk::<PREFIX>);
        let name = name.and_then(|(length, rest)| rest.get(..u16::from_le_bytes(*length).into()));
        name.unwrap_or_default()
    }

    /// Returns the number of bytes that the name at a position takes in the arena, including the
    /// length prefix.
    pub fn stored_bytes(&self, at: NamePosition) -> usize {
        self.get(at).len().plus(PREFIX)
    }

    /// Returns the memory in bytes of all blocks.
    pub fn weight(&self) -> usize {
        self.weight
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stored_names_are_returned_with_little_overhead() {
        let name = |i: usize| vec![i.to_le_bytes()[0]; i * i * 7919 % 65_536 / (1 + i % 30)];
        let mut names = NameArena::default();
        let places: Vec<_> = (0..1000).map(|i| names.put(&name(i)).unwrap()).collect();
        for (i, &place) in places.iter().enumerate() {
            assert_eq!(names.get(place), name(i));
        }
        let bytes: usize = (0..1000).map(|i| name(i).len() + 2).sum();
        assert!(bytes > 40 * NameArena::BLOCK_BYTES);
        assert!(
            names.weight() < bytes + bytes / 10,
            "{} for {bytes}",
            names.weight()
        );
        assert_eq!(names.put(&[0; 65_536]), None);
    }
}
