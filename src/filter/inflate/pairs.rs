//! The literal and length codes of a block as a table of what stands most often at one place: two literals, a
//! literal and a length, or one of them. One look into it costs as much as into a table of single codes.

#![expect(
    clippy::arithmetic_side_effects,
    clippy::as_conversions,
    reason = "numbers here are bounded by a mask, by a table or by the length of a slice"
)]

use super::LITERAL_BITS;
use super::codes::{LITERAL, SPECIAL, lookup};

/// Bits that the table looks at: a literal that is rare and a length that is not.
const BITS: u32 = 11;
const ENTRIES: usize = 1 << BITS;

/// What the next bits stand for. From bit 0 on: the number of bits; from bit 4 on: the number of
/// literals; from bit 8 on: two literals; from bit 24 on: a length, 0 for none.
#[derive(Clone, Copy)]
pub(super) struct Pair(u32);

impl Pair {
    /// What only the codes' own table can tell.
    const OTHER: Pair = Pair(0);

    #[inline(always)]
    pub(super) fn is_other(self) -> bool {
        self.0 == 0
    }

    #[inline(always)]
    pub(super) fn bits(self) -> u32 {
        self.0 & 15
    }

    #[inline(always)]
    pub(super) fn count(self) -> usize {
        (self.0 >> 4 & 3) as usize
    }

    #[inline(always)]
    pub(super) fn literals(self) -> u16 {
        (self.0 >> 8) as u16
    }

    #[inline(always)]
    pub(super) fn length(self) -> usize {
        (self.0 >> 24) as usize
    }
}

/// The table of a block, made when it is first used. A copy has none.
#[derive(Default)]
pub(super) struct Pairs {
    table: Option<Box<[Pair; ENTRIES]>>,
    is_made: bool,
}

impl Clone for Pairs {
    fn clone(&self) -> Self {
        Pairs::default()
    }
}

impl Pairs {
    /// Another block has begun.
    pub(super) fn forget(&mut self) {
        self.is_made = false;
    }

    /// The table for the codes that `literals` is the table of.
    pub(super) fn table(&mut self, literals: &[u32]) -> &[Pair; ENTRIES] {
        let none = || Box::new([Pair::OTHER; ENTRIES]);
        let table = self.table.get_or_insert_with(none);
        if !self.is_made {
            make(literals, table);
            self.is_made = true;
        }
        table
    }
}

/// What the next bits stand for.
#[inline(always)]
pub(super) fn pair(table: &[Pair; ENTRIES], bits: u64) -> Pair {
    let place = bits as usize & (ENTRIES - 1);
    table.get(place).copied().unwrap_or(Pair::OTHER)
}

fn make(literals: &[u32], table: &mut [Pair; ENTRIES]) {
    let mut singles = [0; ENTRIES];
    for (bits, single) in (0..).zip(&mut singles) {
        *single = lookup(literals, LITERAL_BITS, bits);
    }
    for (bits, pair) in table.iter_mut().enumerate() {
        *pair = joined(&singles, bits);
    }
}

/// The entry for `bits`. All that it might be is made and then chosen from: no branch here could be foretold.
#[inline(always)]
fn joined(singles: &[u32; ENTRIES], bits: usize) -> Pair {
    let single = |bits: usize| singles.get(bits & (ENTRIES - 1)).copied().unwrap_or(0);
    let is_literal = |entry: u32| entry & LITERAL != 0;
    // A length without extra bits that a byte holds.
    let is_length = |entry: u32| entry & (LITERAL | SPECIAL | 0xf00) == 0 && entry >> 24 == 0;
    let base = |entry: u32| entry >> 16 & 0xff;
    let first = single(bits);
    let taken = first & 15;
    let second = single(bits >> taken);
    let both = taken + (second & 15);
    let literal = base(first) << 8 | 1 << 4;
    let alone = if is_literal(first) {
        literal | taken
    } else {
        base(first) << 24 | taken
    };
    let with_length = literal | base(second) << 24 | both;
    let with_literal = base(first) << 8 | base(second) << 16 | 2 << 4 | both;
    let joins = is_literal(first) & (both <= BITS);
    let pair = if joins & is_length(second) {
        with_length
    } else {
        alone
    };
    let pair = if joins & is_literal(second) {
        with_literal
    } else {
        pair
    };
    let is_pair = (taken <= BITS) & (is_literal(first) | is_length(first));
    Pair(if is_pair { pair } else { 0 })
}
