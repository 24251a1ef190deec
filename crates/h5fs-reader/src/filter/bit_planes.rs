//! Bit-shuffled bytes, in the order of bitshuffle and Blosc: the lowest bits of the first bytes of
//! all elements come first. Their second bits follow, and so on up to the highest bits of the last
//! bytes. Within such a run, bit k of byte m belongs to element 8 m + k.

use crate::filter::shuffle::{copy_unshuffled_tail, transposed, unshuffle};
use crate::wire::Count;

/// Reverses a bit shuffle: `planes` contains the shuffled bits of elements of `size` bytes, and the
/// elements are written into `elements`. Both slices have the same length. Only a multiple of 8
/// elements is shuffled, and the bytes after the last such element are copied unchanged.
pub(crate) fn unbitshuffle(planes: &[u8], size: usize, scratch: &mut Vec<u8>, elements: &mut [u8]) {
    let unit = size.times(8);
    let left = planes.len().checked_rem(unit).unwrap_or(0);
    let whole = planes.len().minus_or_zero(left);
    let Some((planes, elements)) = copy_unshuffled_tail(planes, elements, whole) else {
        return;
    };
    if size == 1 {
        return join_bits(planes, elements);
    }
    let plane_bytes = whole.checked_div(size).unwrap_or(0).max(1);
    scratch.resize(whole, 0);
    let bits = planes.chunks_exact(plane_bytes);
    for (bits, bytes) in bits.zip(scratch.chunks_exact_mut(plane_bytes)) {
        join_bits(bits, bytes);
    }
    unshuffle(scratch, size, elements);
}

/// Combines eight runs of bits into bytes: run k, which is one eighth of `bits`, contains bit k of
/// each byte.
///
/// Eight bytes of each of the eight runs form a square. Each row of the transposed square is one
/// word with the 64 bits of eight result bytes. Transposing the bits of that word gives the result.
fn join_bits(bits: &[u8], bytes: &mut [u8]) {
    let run = bits.len().wrapping_shr(3);
    let mut runs = bits.chunks_exact(run.max(1));
    let runs = [(); 8].map(|()| runs.next().unwrap_or_default());
    let (squares, _) = bytes.as_chunks_mut::<64>();
    for (square, rows) in squares.iter_mut().zip(transposed(runs)) {
        let (words, _) = square.as_chunks_mut::<8>();
        for (word, row) in words.iter_mut().zip(rows) {
            *word = transpose_bits(row).to_le_bytes();
        }
    }
    // The last bytes of each run, fewer than eight.
    let whole = run & !7;
    let (words, _) = bytes.as_chunks_mut::<8>();
    for (place, word) in words.iter_mut().enumerate().skip(whole) {
        let row = runs.map(|run| run.get(place).copied().unwrap_or(0));
        *word = transpose_bits(u64::from_le_bytes(row)).to_le_bytes();
    }
}

/// Transposes a square of eight by eight bits, with one row in each byte: bit k of byte b becomes
/// bit b of byte k.
fn transpose_bits(square: u64) -> u64 {
    let swap = |square: u64, mask: u64, bits: u32| {
        let differ = (square ^ square.wrapping_shr(bits)) & mask;
        square ^ differ ^ differ.wrapping_shl(bits)
    };
    let square = swap(square, 0x00aa_00aa_00aa_00aa, 7);
    let square = swap(square, 0x0000_cccc_0000_cccc, 14);
    swap(square, 0x0000_0000_f0f0_f0f0, 28)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Encodes one bit at a time, as the format is defined.
    fn bitshuffle(elements: &[u8], size: usize) -> Vec<u8> {
        let count = elements.len() / size / 8 * 8;
        let mut planes = elements.to_vec();
        planes[..count * size].fill(0);
        for (place, byte) in elements[..count * size].iter().enumerate() {
            let (element, j) = (place / size, place % size);
            for bit in 0..8 {
                let run = (j * 8 + bit) * count / 8;
                planes[run + element / 8] |= (byte >> bit & 1) << (element % 8);
            }
        }
        planes
    }

    /// The input is eight `u2` numbers 0..8, the example of the bitshuffle paper.
    #[test]
    fn bits_of_one_weight_are_neighbours() {
        let numbers: Vec<u8> = (0..8_u16).flat_map(u16::to_le_bytes).collect();
        let mut planes = vec![0xaa, 0xcc, 0xf0];
        planes.resize(16, 0);
        let mut elements = vec![0; 16];
        unbitshuffle(&planes, 2, &mut Vec::new(), &mut elements);
        assert_eq!(elements, numbers);
    }

    #[test]
    fn every_size_agrees_with_the_definition() {
        let mut scratch = Vec::new();
        for size in [1, 2, 3, 4, 7, 8, 16, 17, 300] {
            for count in [0, 7, 8, 16, 27, 56, 64, 72, 136, 1029] {
                let length = count * size;
                let elements: Vec<u8> =
                    (0..length).map(|place| ((place * 77) >> 3) as u8).collect();
                let mut decoded = vec![0; length];
                let planes = bitshuffle(&elements, size);
                unbitshuffle(&planes, size, &mut scratch, &mut decoded);
                assert_eq!(decoded, elements, "{size} {count}");
            }
        }
    }
}
