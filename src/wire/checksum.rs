//! Jenkins' lookup3 (`hashlittle`, initial value 0), the checksum of all HDF5 metadata since 1.8.
//!
//! HDF5 3.0 speaks of "Jenkins' lookup3 algorithm" without stating it; the algorithm is Bob Jenkins',
//! in the public domain since May 2006.

/// The lookup3 hash of `bytes`, from the initial value 0.
pub fn lookup3(bytes: &[u8]) -> u32 {
    // The algorithm takes the length modulo 2^32.
    let length = u32::try_from(bytes.len() & 0xffff_ffff).unwrap_or(0);
    let start = 0xdead_beef_u32.wrapping_add(length);
    let (mut a, mut b, mut c) = (start, start, start);
    let mut rest = bytes;
    while rest.len() > 12 {
        let (block, after) = rest.split_at(12);
        add(block, &mut a, &mut b, &mut c);
        mix(&mut a, &mut b, &mut c);
        rest = after;
    }
    if rest.is_empty() {
        return c;
    }
    add(rest, &mut a, &mut b, &mut c);
    finish(&mut a, &mut b, &mut c);
    c
}

/// Adds up to twelve bytes to the three words, missing ones as zeros.
fn add(block: &[u8], a: &mut u32, b: &mut u32, c: &mut u32) {
    let mut words = block.chunks(4).map(|part| {
        let mut word = [0; 4];
        word.iter_mut().zip(part).for_each(|(to, from)| *to = *from);
        u32::from_le_bytes(word)
    });
    for word in [a, b, c] {
        *word = word.wrapping_add(words.next().unwrap_or(0));
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
}
