//! Filter 2, shuffle: the first bytes of all elements, then all second bytes, and so on. Bytes
//! after the last whole element are stored unchanged at the end. Parameter 0 is the size of an
//! element.

use crate::error::{Error, Result};
use crate::filter::DecoderResources;
use crate::memory::buffer::Buffer;
use crate::wire::Count;

/// Returns the bytes of a chunk in the original order of its elements.
///
/// # Errors
/// `Corrupt` if the parameter is missing or zero.
pub fn decode(bytes: Buffer, parameters: &[u32], context: &DecoderResources) -> Result<Buffer> {
    let size = parameters
        .first()
        .and_then(|&size| usize::try_from(size).ok());
    let Some(size) = size.filter(|&size| size > 0) else {
        return Err(Error::corrupt("shuffle: the element size is missing", None));
    };
    if size == 1 || bytes.len().minus_or_zero(size) < size {
        return Ok(bytes);
    }
    let mut elements = context.pool.buffer(bytes.len())?;
    unshuffle(&bytes, size, &mut elements);
    Ok(elements)
}

/// Reverses a byte shuffle: `shuffled` contains the shuffled bytes of elements of `size` bytes, and
/// the elements are written into `elements`. Both slices have the same length.
pub(crate) fn unshuffle(shuffled: &[u8], size: usize, elements: &mut [u8]) {
    let count = elements.len().checked_div(size).unwrap_or(0);
    let whole = count.times(size);
    let Some((planes, elements)) = copy_unshuffled_tail(shuffled, elements, whole) else {
        return;
    };
    let plane = |byte: usize| planes.get(byte.times(count)..).unwrap_or_default();
    assemble_elements(plane, size, elements);
}

/// Assembles elements of `size` bytes and writes them into `elements`. `plane(j)` starts with byte
/// j of each element.
pub(crate) fn assemble_elements<'a>(
    plane: impl Fn(usize) -> &'a [u8],
    size: usize,
    elements: &mut [u8],
) {
    // An element is written in several passes. A tile of elements stays in the first-level cache
    // between the passes.
    const TILE_BYTES: usize = 16 << 10;
    let tile = TILE_BYTES.checked_div(size).unwrap_or(1).max(64);
    let tile_bytes = tile.times(size).max(1);
    for (number, elements) in elements.chunks_mut(tile_bytes).enumerate() {
        let first = number.times(tile);
        let length = elements.len().checked_div(size).unwrap_or(0);
        let plane = |byte| -> &[u8] {
            let plane: &[u8] = plane(byte);
            let plane = plane.get(first..).unwrap_or_default();
            plane.get(..length).unwrap_or_default()
        };
        join_tile(plane, size, elements);
    }
}

/// Copies the bytes after the first `whole` bytes from `shuffled` to `elements`, because they are
/// not shuffled. Returns the first `whole` bytes of both slices, or `None` if one of them is
/// shorter.
pub(crate) fn copy_unshuffled_tail<'s, 'e>(
    shuffled: &'s [u8],
    elements: &'e mut [u8],
    whole: usize,
) -> Option<(&'s [u8], &'e mut [u8])> {
    let (shuffled, rest) = shuffled.split_at_checked(whole)?;
    let (elements, after) = elements.split_at_mut_checked(whole)?;
    for (to, from) in after.iter_mut().zip(rest) {
        *to = *from;
    }
    Some((shuffled, elements))
}

fn join_tile<'a>(plane: impl Fn(usize) -> &'a [u8], size: usize, elements: &mut [u8]) {
    match size {
        2 => return join2(elements, [plane(0), plane(1)]),
        4 => return join4(elements, [0, 1, 2, 3].map(plane)),
        8 => return join8(elements, [0, 1, 2, 3, 4, 5, 6, 7].map(plane)),
        _ => {}
    }
    let mut byte = 0_usize;
    while size.minus_or_zero(byte) >= 8 {
        let planes = [0, 1, 2, 3, 4, 5, 6, 7].map(|next| plane(byte.wrapping_add(next)));
        join_eight_planes(elements, size, byte, planes);
        byte = byte.wrapping_add(8);
    }
    for byte in byte..size {
        join1(elements, size, byte, plane(byte));
    }
}

/// Number of elements that are assembled at a time. The compiler vectorizes loops that join two
/// runs of this known length, but not loops that join four. Bytes are therefore first joined to
/// pairs, and pairs to elements, which is eight times faster.
const BLOCK: usize = 64;

/// Assembles elements of two bytes: plane j contains byte j of each element.
fn join2(elements: &mut [u8], [a, b]: [&[u8]; 2]) {
    let (elements, _) = elements.as_chunks_mut::<2>();
    for ((element, &a), &b) in elements.iter_mut().zip(a).zip(b) {
        *element = [a, b];
    }
}

/// Assembles elements of four bytes: plane j contains byte j of each element.
fn join4(elements: &mut [u8], planes: [&[u8]; 4]) {
    let (blocks, after) = elements.as_chunks_mut::<{ 4 * BLOCK }>();
    let [a, b, c, d] = planes.map(|plane| plane.as_chunks::<BLOCK>().0);
    for ((((block, a), b), c), d) in blocks.iter_mut().zip(a).zip(b).zip(c).zip(d) {
        let joined = interleave_pairs(&pairs(a, b), &pairs(c, d));
        let (elements, _) = block.as_chunks_mut::<4>();
        for (element, joined) in elements.iter_mut().zip(joined) {
            *element = joined.to_le_bytes();
        }
    }
    join_rest(after, 4, &planes);
}

/// Assembles elements of eight bytes: plane j contains byte j of each element.
fn join8(elements: &mut [u8], planes: [&[u8]; 8]) {
    let (blocks, after) = elements.as_chunks_mut::<{ 8 * BLOCK }>();
    let [a, b, c, d, e, f, g, h] = planes.map(|plane| plane.as_chunks::<BLOCK>().0);
    let low = a.iter().zip(b).zip(c).zip(d);
    let high = e.iter().zip(f).zip(g).zip(h);
    for ((block, (((a, b), c), d)), (((e, f), g), h)) in blocks.iter_mut().zip(low).zip(high) {
        let low = interleave_pairs(&pairs(a, b), &pairs(c, d));
        let high = interleave_pairs(&pairs(e, f), &pairs(g, h));
        let (elements, _) = block.as_chunks_mut::<8>();
        for ((element, low), high) in elements.iter_mut().zip(low).zip(high) {
            let joined = u64::from(low) | u64::from(high).wrapping_shl(32);
            *element = joined.to_le_bytes();
        }
    }
    join_rest(after, 8, &planes);
}

#[inline]
fn pairs(low: &[u8; BLOCK], high: &[u8; BLOCK]) -> [u16; BLOCK] {
    let mut pairs = [0; BLOCK];
    for ((pair, &low), &high) in pairs.iter_mut().zip(low).zip(high) {
        *pair = u16::from_le_bytes([low, high]);
    }
    pairs
}

#[inline]
fn interleave_pairs(low: &[u16; BLOCK], high: &[u16; BLOCK]) -> [u32; BLOCK] {
    let mut fours = [0; BLOCK];
    for ((four, &low), &high) in fours.iter_mut().zip(low).zip(high) {
        *four = u32::from(low) | u32::from(high).wrapping_shl(16);
    }
    fours
}

/// Assembles the elements after the last whole block of `BLOCK` elements.
fn join_rest(elements: &mut [u8], size: usize, planes: &[&[u8]]) {
    for (byte, plane) in planes.iter().enumerate() {
        join1(elements, size, byte, plane.as_chunks::<BLOCK>().1);
    }
}

/// Writes the bytes from index `byte` to `byte + 7` of every element. Eight bytes of each of eight
/// planes form a square that is transposed in registers. This takes an eighth of the loads and
/// stores of a copy by single bytes, whatever the element's size.
fn join_eight_planes(elements: &mut [u8], size: usize, byte: usize, planes: [&[u8]; 8]) {
    let mut squares = elements.chunks_exact_mut(size.times(8));
    for (square, columns) in squares.by_ref().zip(transposed(planes)) {
        for (element, column) in square.chunks_exact_mut(size).zip(columns) {
            let place = element.get_mut(byte..);
            if let Some(place) = place.and_then(|place| place.first_chunk_mut::<8>()) {
                *place = column.to_le_bytes();
            }
        }
    }
    let after = squares.into_remainder();
    for (byte, plane) in (byte..).zip(planes) {
        join1(after, size, byte, plane.as_chunks::<8>().1);
    }
}

/// Writes the byte at index `byte` of every element.
fn join1(elements: &mut [u8], size: usize, byte: usize, plane: &[u8]) {
    for (to, from) in elements.iter_mut().skip(byte).step_by(size).zip(plane) {
        *to = *from;
    }
}

/// Returns the transposed squares of eight bytes of each of eight runs: word i contains byte i of
/// each run.
#[inline]
pub(crate) fn transposed<'a>(runs: [&'a [u8]; 8]) -> impl Iterator<Item = [u64; 8]> + use<'a> {
    let [a, b, c, d, e, f, g, h] = runs.map(|run| run.as_chunks::<8>().0);
    let low = a.iter().zip(b).zip(c).zip(d);
    let high = e.iter().zip(f).zip(g).zip(h);
    low.zip(high)
        .map(|((((a, b), c), d), (((e, f), g), h))| [a, b, c, d, e, f, g, h])
        .map(|rows| transpose_bytes(rows.map(|row| u64::from_le_bytes(*row))))
}

/// Transposes a square of eight by eight bytes: swaps halves of words, then quarters, then bytes.
fn transpose_bytes(rows: [u64; 8]) -> [u64; 8] {
    const BYTES: u64 = 0x00ff_00ff_00ff_00ff;
    const PAIRS: u64 = 0x0000_ffff_0000_ffff;
    const FOURS: u64 = 0x0000_0000_ffff_ffff;
    let swap = |low: u64, high: u64, bits: u32, mask: u64| {
        let differ = (low.wrapping_shr(bits) ^ high) & mask;
        (low ^ differ.wrapping_shl(bits), high ^ differ)
    };
    let [a, b, c, d, e, f, g, h] = rows;
    let ((a, e), (b, f)) = (swap(a, e, 32, FOURS), swap(b, f, 32, FOURS));
    let ((c, g), (d, h)) = (swap(c, g, 32, FOURS), swap(d, h, 32, FOURS));
    let ((a, c), (b, d)) = (swap(a, c, 16, PAIRS), swap(b, d, 16, PAIRS));
    let ((e, g), (f, h)) = (swap(e, g, 16, PAIRS), swap(f, h, 16, PAIRS));
    let ((a, b), (c, d)) = (swap(a, b, 8, BYTES), swap(c, d, 8, BYTES));
    let ((e, f), (g, h)) = (swap(e, f, 8, BYTES), swap(g, h, 8, BYTES));
    [a, b, c, d, e, f, g, h]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decode(bytes: Vec<u8>, parameters: &[u32]) -> Result<Vec<u8>> {
        super::decode(bytes.into(), parameters, &DecoderResources::default()).map(Buffer::into_vec)
    }

    /// Shuffles as the format is defined: byte j of element i is stored at `j * count + i`.
    fn shuffle(elements: &[u8], size: usize) -> Vec<u8> {
        let count = elements.len() / size;
        let (whole, rest) = elements.split_at(count * size);
        let plane = |byte| whole.iter().skip(byte).step_by(size);
        (0..size).flat_map(plane).chain(rest).copied().collect()
    }

    #[test]
    fn planes_become_elements_and_the_rest_stays() {
        let decoded = decode(vec![1, 4, 2, 5, 3, 6, 7, 8], &[3]);
        assert_eq!(decoded, Ok(vec![1, 2, 3, 4, 5, 6, 7, 8]));
    }

    #[test]
    fn every_size_agrees_with_the_definition() {
        for size in [1, 2, 3, 4, 5, 7, 8, 9, 12, 16, 17, 24, 100, 20_000] {
            for length in [0, 1, size, 2 * size + 1, 8 * size, 77 * size + size / 2] {
                let elements: Vec<u8> =
                    (0..length).map(|place| ((place * 31) >> 3) as u8).collect();
                let decoded = decode(shuffle(&elements, size), &[size as u32]);
                assert_eq!(decoded.as_ref(), Ok(&elements), "{size} {length}");
            }
        }
        let elements: Vec<u8> = (0..100_003_u32)
            .map(|place| ((place * 77) >> 5) as u8)
            .collect();
        for size in [2, 4, 8, 12] {
            let decoded = decode(shuffle(&elements, size), &[size as u32]);
            assert_eq!(decoded.as_ref(), Ok(&elements), "{size}");
        }
    }

    #[test]
    fn an_element_size_is_required() {
        assert!(decode(vec![1, 2], &[]).is_err());
        assert!(decode(vec![1, 2], &[0]).is_err());
    }
}
