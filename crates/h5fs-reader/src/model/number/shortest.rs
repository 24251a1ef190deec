//! The shortest decimal digits of numbers with more significant bits than a 64-bit float.
//!
//! The algorithm is from Steele and White, "How to print floating-point numbers accurately" (1990),
//! which NumPy uses to print a `longdouble`. Digits are written until no other number of the format
//! is equally near. The arithmetic is exact and uses integers of unlimited size.

use std::cmp::Ordering;

use crate::wire::Count;

/// An unsigned integer of any size, lowest 32 bits first, without leading zero words.
#[derive(Clone)]
struct BigInteger(Vec<u32>);

impl BigInteger {
    /// Returns `number * 2^shift`.
    fn from_shifted(number: u128, shift: u32) -> Self {
        let (words, bits) = (shift.wrapping_shr(5), shift & 31);
        let mut all = vec![0; usize::try_from(words).unwrap_or(0)];
        for place in 0..4_u32 {
            let word = number.checked_shr(place.wrapping_mul(32)).unwrap_or(0);
            all.push(u32::try_from(word & 0xFFFF_FFFF).unwrap_or(0));
        }
        let mut shifted = BigInteger(all);
        shifted.multiply(1_u32.wrapping_shl(bits));
        shifted.trimmed()
    }

    fn trimmed(mut self) -> Self {
        while self.0.last() == Some(&0) {
            self.0.pop();
        }
        self
    }

    fn multiply(&mut self, factor: u32) {
        let mut carry = 0_u64;
        for word in &mut self.0 {
            // A product of two 32-bit numbers plus such a carry fits in 64 bits.
            carry = u64::from(*word)
                .wrapping_mul(factor.into())
                .wrapping_add(carry);
            *word = low_word(carry);
            carry = carry.wrapping_shr(32);
        }
        if carry > 0 {
            self.0.push(low_word(carry));
        }
    }

    /// Multiplies the integer by ten `powers` times.
    fn multiply_by_power_of_ten(&mut self, powers: u32) {
        for _ in 0..powers {
            self.multiply(10);
        }
    }

    fn plus(&self, other: &BigInteger) -> BigInteger {
        let length = self.0.len().max(other.0.len());
        let mut carry = 0_u64;
        let mut sum = Vec::new();
        for place in 0..length {
            let [one, two] = [self, other].map(|part| part.0.get(place).copied().unwrap_or(0));
            carry = carry.wrapping_add(one.into()).wrapping_add(two.into());
            sum.push(low_word(carry));
            carry = carry.wrapping_shr(32);
        }
        if carry > 0 {
            sum.push(low_word(carry));
        }
        BigInteger(sum)
    }

    /// Subtracts `other`, which must not be greater.
    fn subtract(&mut self, other: &BigInteger) {
        let mut borrow = false;
        let mut places = other.0.iter();
        for word in &mut self.0 {
            let taken = places.next().copied().unwrap_or(0);
            let (rest, first) = word.overflowing_sub(taken);
            let (rest, second) = rest.overflowing_sub(borrow.into());
            *word = rest;
            borrow = first || second;
        }
        while self.0.last() == Some(&0) {
            self.0.pop();
        }
    }

    fn compare(&self, other: &BigInteger) -> Ordering {
        let by_length = self.0.len().cmp(&other.0.len());
        by_length.then_with(|| self.0.iter().rev().cmp(other.0.iter().rev()))
    }

    /// Divides the integer by `divisor`. Returns the quotient, which must be below ten, and keeps
    /// the remainder in `self`.
    fn divide_digit(&mut self, divisor: &BigInteger) -> u8 {
        let mut digit = 0_u8;
        while digit < 9 && self.compare(divisor).is_ge() {
            self.subtract(divisor);
            digit = digit.wrapping_add(1);
        }
        digit
    }
}

fn low_word(number: u64) -> u32 {
    u32::try_from(number & 0xFFFF_FFFF).unwrap_or(0)
}

/// The state while digits are written: the remaining fraction is `rest / scale`. A decimal number
/// that is smaller by less than `below / scale`, or larger by less than `above / scale`, is parsed
/// as the same number.
struct Remainder {
    rest: BigInteger,
    scale: BigInteger,
    below: BigInteger,
    above: BigInteger,
    /// Whether a decimal number halfway between two numbers of the format is parsed as this one.
    is_even: bool,
}

impl Remainder {
    /// Creates the state for `mantissa * 2^exponent`. The mantissa's highest bit is the format's
    /// highest significant bit.
    fn new(mantissa: u128, exponent: i32) -> Self {
        let up = u32::try_from(exponent).unwrap_or(0);
        let down = if exponent < 0 {
            exponent.unsigned_abs()
        } else {
            0
        };
        let spacing_halves_below = mantissa.is_power_of_two();
        let below = if spacing_halves_below { 1 } else { 2 };
        // All values are four times as large, so that a quarter of a spacing is an integer.
        // Exponents are small.
        Remainder {
            rest: BigInteger::from_shifted(mantissa, up.plus(2)),
            scale: BigInteger::from_shifted(1, down.plus(2)),
            below: BigInteger::from_shifted(below, up),
            above: BigInteger::from_shifted(2, up),
            is_even: mantissa & 1 == 0,
        }
    }

    fn multiply(&mut self) {
        for part in [&mut self.rest, &mut self.below, &mut self.above] {
            part.multiply(10);
        }
    }

    fn is_within(&self, order: Ordering) -> bool {
        order.is_lt() || self.is_even && order.is_eq()
    }

    /// Returns whether the digits so far, including the current one, are parsed as the number.
    fn can_end_rounded_down(&self) -> bool {
        self.is_within(self.rest.compare(&self.below))
    }

    /// Returns whether the digits so far, with the current one incremented, are parsed as the
    /// number.
    fn can_end_rounded_up(&self) -> bool {
        let reach = self.rest.plus(&self.above);
        self.is_within(self.scale.compare(&reach))
    }

    /// Moves the decimal point so that the first digit is next. `power` is an estimate of the first
    /// digit's power of ten, and the result is the exact power.
    fn align_first_digit(&mut self, power: i32) -> i32 {
        let powers = power.unsigned_abs();
        if power >= 0 {
            self.scale.multiply_by_power_of_ten(powers);
        } else {
            for part in [&mut self.rest, &mut self.below, &mut self.above] {
                part.multiply_by_power_of_ten(powers);
            }
        }
        let mut tenfold = self.scale.clone();
        tenfold.multiply(10);
        if self.rest.compare(&tenfold).is_ge() {
            self.scale = tenfold;
            return power.wrapping_add(1);
        }
        if self.rest.compare(&self.scale).is_lt() && !self.can_end_rounded_up() {
            self.multiply();
            return power.wrapping_sub(1);
        }
        power
    }

    /// Returns whether the last digit, `digit`, has to be incremented.
    fn must_round_up(&self, digit: u8) -> bool {
        match (self.can_end_rounded_down(), self.can_end_rounded_up()) {
            (true, false) => false,
            (false, _) => true,
            (true, true) => {
                let twice = self.rest.plus(&self.rest);
                match twice.compare(&self.scale) {
                    Ordering::Less => false,
                    Ordering::Greater => true,
                    Ordering::Equal => digit & 1 == 1,
                }
            }
        }
    }
}

/// Returns the shortest decimal digits of `mantissa * 2^exponent` in ASCII, and the first digit's
/// power of ten. The mantissa must have all significant bits of its format. `power` is an estimate
/// of the first digit's power of ten.
pub(super) fn shortest_digits(mantissa: u128, exponent: i32, power: i32) -> (Vec<u8>, i32) {
    let mut left = Remainder::new(mantissa, exponent);
    let power = left.align_first_digit(power);
    let mut digits = Vec::new();
    loop {
        let digit = left.rest.divide_digit(&left.scale);
        if left.can_end_rounded_down() || left.can_end_rounded_up() {
            let up = u8::from(left.must_round_up(digit));
            digits.push(b'0'.wrapping_add(digit).wrapping_add(up));
            return (digits, power);
        }
        digits.push(b'0'.wrapping_add(digit));
        left.multiply();
    }
}
