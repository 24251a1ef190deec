//! Jenkins' lookup3 (`hashlittle`, initial value 0), the checksum of all HDF5 metadata since 1.8.
//!
//! HDF5 3.0 names "Jenkins' lookup3 algorithm" without a definition. Bob Jenkins released the
//! algorithm to the public domain in May 2006.

use crate::wire::Count;

/// Returns the lookup3 hash of `bytes`, from the initial value 0.
pub fn lookup3(bytes: &[u8]) -> u32 {
    let mut words = HashState::new(bytes.len());
    let last = words.mix_all_but_last(bytes);
    words.finish(last)
}

/// Returns the lookup3 hash of `bytes`, with zeros in place of the four bytes from index `place`
/// on. Used for a block that contains its own checksum there.
pub(crate) fn lookup3_with_zeros(bytes: &[u8], place: usize) -> u32 {
    let mut words = HashState::new(bytes.len());
    // The first bytes, in whole blocks, that contain the four bytes at `place`. They are copied and
    // mixed in before the other bytes.
    let front = place.plus(4).next_multiple_of(BLOCK);
    let (front, rest) = bytes.split_at_checked(front).unwrap_or((bytes, &[]));
    let mut front = front.to_vec();
    let hole = front.iter_mut().skip(place).take(4);
    hole.for_each(|byte| *byte = 0);
    let last = words.mix_all_but_last(&front);
    if rest.is_empty() {
        return words.finish(last);
    }
    words.mix_block(last);
    let last = words.mix_all_but_last(rest);
    words.finish(last)
}

/// Number of bytes that are mixed in at a time.
const BLOCK: usize = 12;

/// The three words of the hash's internal state.
struct HashState(u32, u32, u32);

impl HashState {
    fn new(length: usize) -> Self {
        // The algorithm takes the length modulo 2^32.
        let length = u32::try_from(length & 0xffff_ffff).unwrap_or(0);
        let start = 0xdead_beef_u32.wrapping_add(length);
        HashState(start, start, start)
    }

    /// Mixes all blocks of twelve bytes into the state, except the last block, which is returned.
    /// The last block may be shorter.
    fn mix_all_but_last<'a>(&mut self, bytes: &'a [u8]) -> &'a [u8] {
        let mut rest = bytes;
        while let Some((block, after)) = rest.split_first_chunk::<BLOCK>() {
            if after.is_empty() {
                break;
            }
            self.mix_block(block);
            rest = after;
        }
        rest
    }

    fn mix_block(&mut self, block: &[u8]) {
        self.add(block);
        let HashState(a, b, c) = self;
        mix(a, b, c);
    }

    /// Adds up to twelve bytes to the state, as three little-endian words. Missing bytes count as
    /// zeros.
    fn add(&mut self, block: &[u8]) {
        let word = |at: usize| {
            let mut word = [0; 4];
            let part = block.get(at..).unwrap_or_default();
            word.iter_mut().zip(part).for_each(|(to, from)| *to = *from);
            u32::from_le_bytes(word)
        };
        self.0 = self.0.wrapping_add(word(0));
        self.1 = self.1.wrapping_add(word(4));
        self.2 = self.2.wrapping_add(word(8));
    }

    fn finish(mut self, last: &[u8]) -> u32 {
        if !last.is_empty() {
            self.add(last);
            let HashState(a, b, c) = &mut self;
            finish(a, b, c);
        }
        self.2
    }
}

fn mix(a: &mut u32, b: &mut u32, c: &mut u32) {
    for rotations in [[4, 6, 8], [16, 19, 4]] {
        let [first, second, third] = rotations;
        *a = a.wrapping_sub(*c) ^ c.rotate_left(first);
        *c = c.wrapping_add(*b);
        *b = b.wrapping_sub(*a) ^ a.rotate_left(second);
        *a = a.wrapping_add(*c);
        *c = c.wrapping_sub(*b) ^ b.rotate_left(third);
        *b = b.wrapping_add(*a);
    }
}

fn finish(a: &mut u32, b: &mut u32, c: &mut u32) {
    *c = (*c ^ *b).wrapping_sub(b.rotate_left(14));
    *a = (*a ^ *c).wrapping_sub(c.rotate_left(11));
    *b = (*b ^ *a).wrapping_sub(a.rotate_left(25));
    *c = (*c ^ *b).wrapping_sub(b.rotate_left(16));
    *a = (*a ^ *c).wrapping_sub(c.rotate_left(4));
    *b = (*b ^ *a).wrapping_sub(a.rotate_left(14));
    *c = (*c ^ *b).wrapping_sub(b.rotate_left(24));
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values from the self-test `driver5` of Bob Jenkins' own lookup3.c.
    #[test]
    fn agrees_with_the_authors_own_values() {
        assert_eq!(lookup3(b""), 0xdead_beef);
        assert_eq!(lookup3(b"Four score and seven years ago"), 0x1777_0551);
    }

    #[test]
    fn the_checksum_field_counts_as_zeros() {
        let zeros_at = |place: usize, length: u8| {
            let mut bytes: Vec<u8> = (1..=length).collect();
            bytes[place..place + 4].fill(0);
            lookup3(&bytes)
        };
        for (place, length) in [(0, 4), (8, 12), (8, 13), (10, 24), (10, 25), (3, 100)] {
            let bytes: Vec<u8> = (1..=length).collect();
            assert_eq!(lookup3_with_zeros(&bytes, place), zeros_at(place, length));
        }
    }
}
