//! Codes of RFC 1951 as tables: what the next bits mean is looked up, not searched for.

#![expect(
    clippy::arithmetic_side_effects,
    clippy::as_conversions,
    reason = "numbers here are bounded by a mask, by a table or by the length of a slice"
)]

use super::{Stop, Taken};

/// Entries of all tables of one code together: zlib's `enough 288 10 15`, `enough 32 8 15`, rounded up.
pub(super) const LITERAL_TABLE: usize = 2048;
pub(super) const DISTANCE_TABLE: usize = 512;
pub(super) const LENGTH_TABLE: usize = 128;

/// Symbols of the largest code.
const SYMBOLS: usize = 288;

/// What a table's entry means; its lowest four bits are those of the code. Without any of these: a base
/// from bit 16 on, and extra bits from bit 8 on.
pub(super) const LITERAL: u32 = 1 << 31;
pub(super) const SPECIAL: u32 = 1 << 15;
pub(super) const SUBTABLE: u32 = SPECIAL | 1 << 14;
pub(super) const END: u32 = SPECIAL | 1 << 13;

/// Base and extra bits of the length symbols from 257 on (RFC 1951, 3.2.5).
const LENGTHS: [(u16, u8); 29] = [
    (3, 0),
    (4, 0),
    (5, 0),
    (6, 0),
    (7, 0),
    (8, 0),
    (9, 0),
    (10, 0),
    (11, 1),
    (13, 1),
    (15, 1),
    (17, 1),
    (19, 2),
    (23, 2),
    (27, 2),
    (31, 2),
    (35, 3),
    (43, 3),
    (51, 3),
    (59, 3),
    (67, 4),
    (83, 4),
    (99, 4),
    (115, 4),
    (131, 5),
    (163, 5),
    (195, 5),
    (227, 5),
    (258, 0),
];

/// Base and extra bits of the distance symbols.
const DISTANCES: [(u16, u8); 30] = [
    (1, 0),
    (2, 0),
    (3, 0),
    (4, 0),
    (5, 1),
    (7, 1),
    (9, 2),
    (13, 2),
    (17, 3),
    (25, 3),
    (33, 4),
    (49, 4),
    (65, 5),
    (97, 5),
    (129, 6),
    (193, 6),
    (257, 7),
    (385, 7),
    (513, 8),
    (769, 8),
    (1025, 9),
    (1537, 9),
    (2049, 10),
    (3073, 10),
    (4097, 11),
    (6145, 11),
    (8193, 12),
    (12289, 12),
    (16385, 13),
    (24577, 13),
];

/// The `count` lowest bits.
pub(super) fn low(count: u32) -> u64 {
    1_u64.unbounded_shl(count).wrapping_sub(1)
}

/// The entry for the code at the start of `bits`.
#[inline(always)]
pub(super) fn lookup(table: &[u32], main: u32, bits: u64) -> u32 {
    let place = (bits & low(main)) as usize;
    let entry = table.get(place).copied().unwrap_or(SPECIAL);
    if entry & SUBTABLE != SUBTABLE {
        return entry;
    }
    let place = (entry >> 16) as usize + (bits >> main & low(entry >> 8 & 15)) as usize;
    table.get(place).copied().unwrap_or(SPECIAL)
}

pub(super) fn literal(symbol: u32) -> u32 {
    match symbol {
        0..=255 => LITERAL | symbol << 16,
        256 => END,
        _ => based(LENGTHS.get(symbol as usize - 257)),
    }
}

pub(super) fn distance(symbol: u32) -> u32 {
    based(DISTANCES.get(symbol as usize))
}

fn based(symbol: Option<&(u16, u8)>) -> u32 {
    symbol.map_or(SPECIAL, |&(base, extra)| {
        u32::from(base) << 16 | u32::from(extra) << 8
    })
}

/// Fills a table whose first part is looked up with `main` bits, from the lengths of the symbols' codes
/// (RFC 1951, 3.2.2). Codes that are not given are special. As in zlib, a code may leave bits out only
/// where it is the only one, and of one bit.
pub(super) fn build(
    table: &mut [u32],
    main: u32,
    lengths: &[u8],
    entry: impl Fn(u32) -> u32,
) -> Taken<()> {
    let mut counts = [0_u32; 16];
    for &length in lengths {
        if let Some(count) = counts.get_mut(usize::from(length)) {
            *count += 1;
        }
    }
    let mut next = [0_u32; 16];
    let (mut code, mut longest) = (0, 0);
    for (length, (&count, next)) in counts.iter().zip(&mut next).enumerate().skip(1) {
        code <<= 1;
        *next = code;
        code += count;
        if code > 1 << length {
            return Err(Stop::Damaged("too many codes"));
        }
        if count > 0 {
            longest = length;
        }
    }
    if longest > 1 && code != 1 << 15 {
        return Err(Stop::Damaged("too few codes"));
    }
    table.fill(SPECIAL);
    let first = 1 << main;
    let mut free = first;
    let mut symbols = [(0, 0); SYMBOLS];
    for &(length, symbol) in by_length(lengths, &counts, &mut symbols) {
        let (length, symbol) = (u32::from(length), u32::from(symbol));
        let Some(next) = next.get_mut(length as usize) else {
            continue;
        };
        let code = (next.reverse_bits() >> (32 - length)) as usize;
        *next += 1;
        let left = counts;
        if let Some(count) = counts.get_mut(length as usize) {
            *count = count.saturating_sub(1);
        }
        let entry = entry(symbol) | length;
        if length <= main {
            let places = table.get_mut(code..first).unwrap_or_default();
            places
                .iter_mut()
                .step_by(1 << length)
                .for_each(|place| *place = entry);
            continue;
        }
        let Some(root) = table.get_mut(code & (first - 1)) else {
            continue;
        };
        if *root & SUBTABLE != SUBTABLE {
            // As zlib does: as long as codes of this length do not fill it, the subtable has to be longer.
            let width = width(&left, length, main);
            *root = SUBTABLE | (free as u32) << 16 | width << 8;
            free += 1 << width;
        }
        let (start, width) = ((*root >> 16) as usize, *root >> 8 & 15);
        let end = start + (1 << width);
        let places = table
            .get_mut(start + (code >> main)..end)
            .unwrap_or_default();
        places
            .iter_mut()
            .step_by(1 << (length - main))
            .for_each(|place| *place = entry);
    }
    Ok(())
}

/// The symbols that have codes, by the codes' lengths: the codes of a subtable follow each other then, and its longest
/// is the last.
fn by_length<'a>(
    lengths: &[u8],
    counts: &[u32; 16],
    symbols: &'a mut [(u8, u16); SYMBOLS],
) -> &'a [(u8, u16)] {
    let mut places = [0_usize; 16];
    let mut end = 0;
    for (place, &count) in places.iter_mut().zip(counts).skip(1) {
        *place = end;
        end += count as usize;
    }
    for (&length, symbol) in lengths.iter().zip(0..).filter(|&(&length, _)| length > 0) {
        if let Some(place) = places.get_mut(usize::from(length)) {
            if let Some(slot) = symbols.get_mut(*place) {
                *slot = (length, symbol);
            }
            *place += 1;
        }
    }
    symbols.get(..end).unwrap_or_default()
}

/// Bits of the subtable whose shortest codes have `length` bits: all codes that are left, from the
/// shortest on, until they fill it.
fn width(left_over: &[u32; 16], length: u32, main: u32) -> u32 {
    let mut width = length - main;
    let mut left = 1_i64 << width;
    while width + main < 15 {
        let count = left_over.get((width + main) as usize).copied().unwrap_or(0);
        left -= i64::from(count);
        if left <= 0 {
            break;
        }
        width += 1;
        left <<= 1;
    }
    width
}
