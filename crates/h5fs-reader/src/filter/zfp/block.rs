//! One block of ZFP: 4^rank numbers, their bits in planes from the highest down.
//!
//! Within a plane, a number that had a one bit in an earlier plane has its bit stored directly. The
//! bits of the other numbers are run-length coded. The numbers are in base -2, in the order of
//! their expected size. After reordering, they are transformed in each dimension. Floats share one
//! exponent (P. Lindstrom, "Fixed-Rate Compressed Floating-Point Arrays", 2014; reversible mode:
//! zfp 1.0, "Algorithm").

use crate::filter::zfp::order;
use crate::filter::zfp::stream::BitStream;
use crate::wire::Count;

/// ZFP's compression mode: the bounds on the bits and bit planes of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Mode {
    /// The minimum number of bits in a block. Shorter blocks are padded.
    min_bits: u32,
    /// The maximum number of bits in a block.
    max_bits: u32,
    /// The maximum number of bit planes of a block.
    max_planes: u32,
    /// The lowest binary exponent of a bit plane of floats. Below `MIN_EXPONENT` in reversible
    /// mode.
    min_exponent: i32,
}

impl Mode {
    const MAX_BITS: u32 = 16_658;
    const MAX_PLANES: u32 = 64;
    const MIN_EXPONENT: i32 = -1074;

    /// Decodes a mode of twelve bits: fixed rate, fixed precision, reversible, or fixed accuracy.
    /// Returns `None` if the mode is out of range.
    pub(super) fn from_short_mode(mode: u64) -> Option<Self> {
        let all = Mode {
            min_bits: 1,
            max_bits: Self::MAX_BITS,
            max_planes: Self::MAX_PLANES,
            min_exponent: Self::MIN_EXPONENT,
        };
        let mode = i32::try_from(mode).ok()?;
        let next = mode.checked_add(1)?.unsigned_abs();
        Some(match mode {
            ..2048 => Mode {
                min_bits: next,
                max_bits: next,
                ..all
            },
            2048..2176 => Mode {
                max_planes: next.checked_sub(2048)?,
                ..all
            },
            2176 => Mode {
                min_exponent: Self::MIN_EXPONENT.checked_sub(1)?,
                ..all
            },
            _ => Mode {
                min_exponent: mode.checked_sub(2177)?.checked_add(Self::MIN_EXPONENT)?,
                ..all
            },
        })
    }

    /// Decodes a mode from the 52 bits that follow twelve ones, which state each bound separately.
    /// Returns `None` if the bounds are invalid.
    pub(super) fn from_long_mode(mode: u64) -> Option<Self> {
        let field = |place: u32, width: u32| {
            let mask = 1_u64.wrapping_shl(width).wrapping_sub(1);
            i32::try_from(mode.wrapping_shr(place) & mask).ok()
        };
        let mode = Mode {
            min_bits: field(0, 15)?.checked_add(1)?.unsigned_abs(),
            max_bits: field(15, 15)?.checked_add(1)?.unsigned_abs(),
            max_planes: field(30, 7)?.checked_add(1)?.unsigned_abs(),
            min_exponent: field(37, 15)?.checked_sub(16_495)?,
        };
        (mode.min_bits <= mode.max_bits && mode.max_planes <= Self::MAX_PLANES).then_some(mode)
    }

    fn is_reversible(self) -> bool {
        self.min_exponent < Self::MIN_EXPONENT
    }
}

/// The integers of a block: its elements, or the mantissas of floats of the same size.
pub(super) trait ZfpInteger: Copy + Default {
    const BYTES: usize;
    const BITS: u32;
    /// Number of bits that code the number of bit planes in reversible mode.
    const PLANES_BITS: u32;
    /// Number of bits of a float's exponent.
    const EXPONENT_BITS: u32;

    /// Returns the number whose digits in base -2 are the low bits of `digits`.
    fn from_negabinary(digits: u64) -> Self;
    fn add(self, other: Self) -> Self;
    fn sub(self, other: Self) -> Self;
    fn half(self) -> Self;
    /// Returns the bits of the float that this fixed-point number means, scaled by 2 to the
    /// `exponent`. The number's highest bits are a sign and a guard bit.
    fn scaled(self, exponent: i32) -> Self;
    /// Converts this number to the bits of a float: inverts all bits except the sign if the number
    /// is negative.
    fn sign_magnitude(self) -> Self;
    /// Writes the number in little-endian order.
    fn store(self, place: &mut [u8]);
}

macro_rules! int {
    ($int:ident, $uint:ident, $float:ident, $planes:literal, $exponent:literal) => {
        impl ZfpInteger for $int {
            const BYTES: usize = size_of::<$int>();
            const BITS: u32 = $int::BITS;
            const PLANES_BITS: u32 = $planes;
            const EXPONENT_BITS: u32 = $exponent;

            #[expect(clippy::as_conversions, reason = "the low bits are meant")]
            fn from_negabinary(digits: u64) -> Self {
                let ones_at_odd_places = 0xaaaa_aaaa_aaaa_aaaa_u64;
                let number = (digits ^ ones_at_odd_places).wrapping_sub(ones_at_odd_places);
                number as $int
            }

            fn add(self, other: Self) -> Self {
                self.wrapping_add(other)
            }

            fn sub(self, other: Self) -> Self {
                self.wrapping_sub(other)
            }

            fn half(self) -> Self {
                self.wrapping_shr(1)
            }

            #[expect(
                clippy::as_conversions,
                reason = "rounding to the nearest float is meant, and there is no other conversion"
            )]
            fn scaled(self, exponent: i32) -> Self {
                let guarded = $int::BITS.wrapping_sub(2).cast_signed();
                let scale = power_of_two(exponent.wrapping_sub(guarded)) as $float;
                (scale * self as $float).to_bits().cast_signed()
            }

            fn sign_magnitude(self) -> Self {
                if self < 0 { self ^ $int::MAX } else { self }
            }

            fn store(self, place: &mut [u8]) {
                let bytes = self.to_le_bytes();
                place
                    .iter_mut()
                    .zip(bytes)
                    .for_each(|(to, from)| *to = from);
            }
        }
    };
}

int!(i32, u32, f32, 5, 8);
int!(i64, u64, f64, 6, 11);

/// Returns 2 to the `exponent`, which is below 1024. Returns 0 if the result is too small for a
/// float.
fn power_of_two(exponent: i32) -> f64 {
    const MANTISSA_BITS: u32 = 52;
    let bits = match exponent {
        -1022.. => {
            u64::from(exponent.wrapping_add(1023).unsigned_abs()).wrapping_shl(MANTISSA_BITS)
        }
        -1074.. => 1_u64.wrapping_shl(exponent.wrapping_add(1074).unsigned_abs()),
        _ => 0,
    };
    f64::from_bits(bits)
}

/// A decoder of the consecutive blocks of one array.
#[derive(Debug)]
pub(super) struct BlockDecoder<I> {
    mode: Mode,
    rank: u32,
    order: &'static [u8],
    digits: Vec<u64>,
    block: Vec<I>,
}

impl<I: ZfpInteger> BlockDecoder<I> {
    /// Creates a decoder for arrays of `rank` dimensions, 1 to 4.
    pub(super) fn new(rank: usize, mode: Mode) -> Self {
        let order = order::block_order(rank);
        BlockDecoder {
            mode,
            rank: u32::try_from(rank).unwrap_or(0),
            order,
            digits: vec![0; order.len()],
            block: vec![I::default(); order.len()],
        }
    }

    /// Decodes the next block of integers. Returns `None` if too few bits remain.
    pub(super) fn integers(&mut self, bits: &mut BitStream<'_>) -> Option<&[I]> {
        self.block_of_integers(bits, 0, self.mode.max_planes)?;
        Some(&self.block)
    }

    /// Decodes the next block of floats, and returns the bits of each float. Returns `None` if too
    /// few bits remain.
    pub(super) fn floats(&mut self, bits: &mut BitStream<'_>) -> Option<&[I]> {
        if !bits.bit()? {
            self.block.fill(I::default());
            bits.skip(self.mode.min_bits.minus_or_zero(1))?;
            return Some(&self.block);
        }
        let mut used = 1_u32;
        if self.mode.is_reversible() {
            used = 2;
            if bits.bit()? {
                self.block_of_integers(bits, used, 0)?;
                for number in &mut self.block {
                    *number = number.sign_magnitude();
                }
                return Some(&self.block);
            }
        }
        let bias = 1_i32
            .wrapping_shl(I::EXPONENT_BITS.wrapping_sub(1))
            .wrapping_sub(1);
        let stored = i32::try_from(bits.read(I::EXPONENT_BITS)?).ok()?;
        let exponent = stored.wrapping_sub(bias);
        used = used.wrapping_add(I::EXPONENT_BITS);
        self.block_of_integers(bits, used, self.planes_above(exponent))?;
        if self.mode.is_reversible() && stored == 0 {
            self.block.fill(I::default());
            return Some(&self.block);
        }
        for number in &mut self.block {
            *number = number.scaled(exponent);
        }
        Some(&self.block)
    }

    /// Returns the number of bit planes that are stored for floats with this common exponent: the
    /// planes at or above the lowest exponent of the mode.
    fn planes_above(&self, exponent: i32) -> u32 {
        let growth = self.rank.wrapping_mul(2).wrapping_add(2).cast_signed();
        let planes = exponent
            .wrapping_sub(self.mode.min_exponent)
            .wrapping_add(growth);
        self.mode.max_planes.min(u32::try_from(planes).unwrap_or(0))
    }

    /// Decodes the integers of a block, of which `used` bits were already read. `planes` is the
    /// maximum number of bit planes, and is ignored in reversible mode.
    fn block_of_integers(
        &mut self,
        bits: &mut BitStream<'_>,
        used: u32,
        planes: u32,
    ) -> Option<()> {
        let mut used = used;
        let mut planes = planes;
        if self.mode.is_reversible() {
            planes = u32::try_from(bits.read(I::PLANES_BITS)?)
                .ok()?
                .wrapping_add(1);
            used = used.wrapping_add(I::PLANES_BITS);
        }
        let budget = self.mode.max_bits.minus_or_zero(used);
        self.digits.fill(0);
        used = used.wrapping_add(read_planes(
            bits,
            budget,
            I::BITS,
            planes,
            &mut self.digits,
        )?);
        bits.skip(self.mode.min_bits.minus_or_zero(used))?;
        for (&digits, &place) in self.digits.iter().zip(self.order) {
            *self.block.get_mut(usize::from(place))? = I::from_negabinary(digits);
        }
        let undo = if self.mode.is_reversible() {
            undo_differences
        } else {
            undo_transform
        };
        for dimension in (0..self.rank).rev() {
            for_each_quad(&mut self.block, dimension, undo);
        }
        Some(())
    }
}

/// Reads the bit planes of a block, from bit `width - 1` of each number down: at most `planes`
/// planes and `budget` bits. Returns the number of bits read.
fn read_planes(
    bits: &mut BitStream<'_>,
    budget: u32,
    width: u32,
    planes: u32,
    digits: &mut [u64],
) -> Option<u32> {
    let lowest = width.minus_or_zero(planes);
    let mut left = budget;
    // The numbers before this index had a one bit in an earlier plane. Their bits are stored
    // directly.
    let mut known = 0_usize;
    for plane in (lowest..width).rev() {
        if left == 0 {
            break;
        }
        let one = 1_u64.wrapping_shl(plane);
        let as_they_are = known.min(usize::try_from(left).ok()?);
        left = left.wrapping_sub(u32::try_from(as_they_are).ok()?);
        for group in digits.get_mut(..as_they_are)?.chunks_mut(32) {
            // Only the ones are visited, because most bits of most planes are zeros.
            let mut ones = bits.read(u32::try_from(group.len()).ok()?)?;
            while ones != 0 {
                *group.get_mut(usize::try_from(ones.trailing_zeros()).ok()?)? |= one;
                ones &= ones.wrapping_sub(1);
            }
        }
        // For the other numbers, one bit states whether they contain a one. If so, zeros precede
        // that one.
        while left > 0 && known < digits.len() {
            left = left.wrapping_sub(1);
            if !bits.bit()? {
                break;
            }
            while left > 0 && known.wrapping_add(1) < digits.len() {
                left = left.wrapping_sub(1);
                if bits.bit()? {
                    break;
                }
                known = known.wrapping_add(1);
            }
            *digits.get_mut(known)? |= one;
            known = known.wrapping_add(1);
        }
    }
    Some(budget.wrapping_sub(left))
}

/// Four numbers that are adjacent in one dimension.
type Quad<'a, I> = [&'a mut I; 4];

/// Calls `undo` with each group of four numbers that are adjacent in `dimension`.
fn for_each_quad<I: ZfpInteger>(block: &mut [I], dimension: u32, undo: fn(Quad<'_, I>)) {
    let step = 1_usize.wrapping_shl(dimension.wrapping_mul(2));
    for part in block.chunks_exact_mut(step.wrapping_mul(4)) {
        let mut quarters = part.chunks_exact_mut(step);
        let [x, y, z, w] = [(); 4].map(|()| quarters.next().unwrap_or_default());
        for (((x, y), z), w) in x.iter_mut().zip(y).zip(z).zip(w) {
            undo([x, y, z, w]);
        }
    }
}

/// Reverses ZFP's transform, which is close to a cosine transform.
fn undo_transform<I: ZfpInteger>([x, y, z, w]: Quad<'_, I>) {
    // The sum, and twice the other number less the sum.
    let turn = |one: I, other: I| {
        let sum = one.add(other);
        (sum, other.sub(sum.sub(other)))
    };
    *y = y.add(w.half());
    *w = w.sub(y.half());
    (*y, *w) = turn(*y, *w);
    (*z, *x) = turn(*z, *x);
    (*y, *z) = turn(*y, *z);
    (*w, *x) = turn(*w, *x);
}

/// Reverses the transform of reversible mode: third-order differences.
fn undo_differences<I: ZfpInteger>([x, y, z, w]: Quad<'_, I>) {
    *w = w.add(*z);
    *z = z.add(*y);
    *w = w.add(*z);
    *y = y.add(*x);
    *z = z.add(*y);
    *w = w.add(*z);
}
