//! The coding parameters of a scan (ITU-T T.87, A.2.1 and C.2.4.1.1).

use crate::wire::Count;

/// The coding parameters that a stream presets. A zero means that the value follows from the other
/// parameters.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct PresetParameters {
    pub(super) thresholds: [u16; 3],
    pub(super) reset: u16,
}

/// The coding parameters of one scan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct CodingParameters {
    /// The largest possible value of a sample (MAXVAL).
    pub(super) max_value: i32,
    /// The largest difference between a decoded sample and the original (NEAR).
    pub(super) near: i32,
    /// The thresholds T1, T2 and T3 that quantize differences of neighbouring samples.
    thresholds: [i32; 3],
    /// Number of samples counted in a context before its counters are halved (RESET).
    pub(super) reset: u32,
    /// Number of different values of a prediction error (RANGE).
    pub(super) range: i32,
    /// Number of bits of a prediction error in an escaped code (qbpp).
    pub(super) error_bits: u32,
    /// Number of bits of the longest code (LIMIT).
    pub(super) limit: u32,
}

impl CodingParameters {
    /// Computes the parameters of a scan of samples of `bits` bits. Returns `None` if one is
    /// outside its range.
    pub(super) fn new(bits: u32, near: u8, preset: &PresetParameters) -> Option<Self> {
        let max_value = 1_i32.wrapping_shl(bits).wrapping_sub(1);
        let given = |value: u16, usual: i32| match i32::from(value) {
            0 => usual,
            value => value,
        };
        let near = i32::from(near);
        if near > max_value.wrapping_shr(1) {
            return None;
        }
        let [t1, t2, t3] = thresholds(max_value, near);
        let thresholds = [
            given(preset.thresholds[0], t1),
            given(preset.thresholds[1], t2),
            given(preset.thresholds[2], t3),
        ];
        let reset = given(preset.reset, 64);
        let bounds = [&[near.wrapping_add(1)], &thresholds[..], &[max_value]].concat();
        if !bounds.is_sorted() || !(3..=max_value.max(255)).contains(&reset) {
            return None;
        }
        let step = near.wrapping_mul(2).wrapping_add(1);
        let range = max_value
            .wrapping_add(near.wrapping_mul(2))
            .checked_div(step)?
            .wrapping_add(1);
        let value_bits = bits_below(max_value.wrapping_add(1)).max(2);
        Some(CodingParameters {
            max_value,
            near,
            thresholds,
            reset: reset.unsigned_abs(),
            range,
            error_bits: bits_below(range),
            limit: value_bits.plus(value_bits.max(8)).times(2),
        })
    }

    /// Returns the distance between two adjacent values of a prediction error.
    #[inline(always)]
    pub(super) fn step(&self) -> i32 {
        self.near.wrapping_mul(2).wrapping_add(1)
    }

    /// Quantizes a difference of neighbouring samples to one of nine levels, -4 to 4.
    #[inline(always)]
    pub(super) fn gradient_level(&self, difference: i32) -> i32 {
        let size = difference.wrapping_abs();
        let level = i32::from(size > self.near)
            .wrapping_add(i32::from(size >= self.thresholds[0]))
            .wrapping_add(i32::from(size >= self.thresholds[1]))
            .wrapping_add(i32::from(size >= self.thresholds[2]));
        signed(level, difference.wrapping_shr(31))
    }
}

/// Returns `number` negated if `sign` is -1, and `number` if `sign` is 0.
#[inline(always)]
pub(super) fn signed(number: i32, sign: i32) -> i32 {
    (number ^ sign).wrapping_sub(sign)
}

/// Returns the number of bits that every number below `bound` fits into.
fn bits_below(bound: i32) -> u32 {
    32_u32.minus_or_zero(bound.wrapping_sub(1).leading_zeros())
}

/// Returns the default thresholds T1, T2 and T3, for a stream that does not preset them.
fn thresholds(max_value: i32, near: i32) -> [i32; 3] {
    const BASIC: [i32; 3] = [3, 7, 21];
    let mut least = near.wrapping_add(1);
    let mut thresholds = [0; 3];
    let numbers = thresholds.iter_mut().zip(BASIC).zip(2_i32..).zip([3, 5, 7]);
    for (((threshold, basic), offset), of_near) in numbers {
        let of_near = near.wrapping_mul(of_near);
        let wanted = if max_value >= 128 {
            let factor = max_value.min(4095).wrapping_add(128).wrapping_shr(8);
            factor
                .wrapping_mul(basic.wrapping_sub(offset))
                .wrapping_add(offset)
                .wrapping_add(of_near)
        } else {
            let factor = 256_i32.checked_div(max_value.wrapping_add(1)).unwrap_or(1);
            let scaled = basic.checked_div(factor).unwrap_or(basic);
            scaled.wrapping_add(of_near).max(offset)
        };
        *threshold = if (least..=max_value).contains(&wanted) {
            wanted
        } else {
            least
        };
        least = *threshold;
    }
    thresholds
}
